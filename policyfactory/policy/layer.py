"""A dense layer of a network."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError

__all__ = ["WIDEST", "FloatArray32", "Layer"]

FloatArray32: TypeAlias = NDArray[np.float32]
WIDEST = 1024  # inputs or outputs


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """A dense layer.

    Parameters
    ----------
    weights : float32 array (inputs, outputs)
        By what each input is multiplied for each output. (The weight of a linear layer of torch is its transpose.)
    biases : float32 array (outputs,)
        What is added.
    """

    weights: FloatArray32
    biases: FloatArray32

    def __post_init__(self) -> None:
        """Keep copies that cannot be written.

        Raises
        ------
        UsageError
            If shapes do not fit each other, a layer is wider than 1024, or a number is not finite.
        """
        for name in ("weights", "biases"):
            # What is too large for a float32 becomes infinite and is refused.
            with np.errstate(over="ignore"):
                column = np.array(getattr(self, name), dtype=np.float32, order="C")
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        shape = self.weights.shape
        if len(shape) != 2 or min(shape) == 0 or self.biases.shape != shape[1:]:
            raise UsageError(
                f"has weights of shape {shape} and biases of shape {self.biases.shape}; give weights (inputs, outputs) "
                "and one bias for each output"
            )
        if max(shape) > WIDEST:
            raise UsageError(f"is {shape[0]:,} x {shape[1]:,}; at most {WIDEST:,} inputs and outputs are taken")
        if not (np.isfinite(self.weights).all() and np.isfinite(self.biases).all()):
            raise UsageError("has a number that is not finite (a training that diverged?); use an earlier checkpoint")
