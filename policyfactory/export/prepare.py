"""What a site knows and a policy does not: from when r counts, and how large the machine is."""

from __future__ import annotations

import dataclasses
from typing import Literal

from policyfactory.core.errors import UsageError
from policyfactory.policy.nodes import Number, replace_variables
from policyfactory.policy.policy import Epoch
from policyfactory.policy.store import Model

__all__ = ["prepare"]


def prepare(
    model: Model,
    *,
    epoch: int | Literal["oldest-waiting"] | None = None,
    processors: int | None = None,
    threshold: float | None = None,
) -> Model:
    """Return the model with its epoch and threshold set and m replaced, where they are given.

    Parameters
    ----------
    model : Model
    epoch : int, "oldest-waiting" or None
        Unix time (s) from which r counts, or the rule that it counts from the job that has waited longest.
    processors : int or None
        Processors of the machine, written in place of m.
    threshold : float or None
        Jobs that have waited longer (s) go first; ``math.inf`` for never.

    Raises
    ------
    UsageError
        If ``processors`` is not positive, or the threshold is below 0.
    """
    policy = model.policy
    if epoch is not None:
        rule = Epoch("fixed", epoch) if isinstance(epoch, int) else Epoch(epoch)
        policy = dataclasses.replace(policy, epoch=rule)
    if threshold is not None:
        policy = dataclasses.replace(policy, threshold=threshold)
    if processors is not None:
        if processors < 1:
            raise UsageError(f"a machine of {processors} processors cannot be meant; give a number from 1")
        if "m" in policy.variables:
            expression = replace_variables(policy.expression, {"m": Number(float(processors))})
            policy = dataclasses.replace(policy, formula=expression.text())
    return dataclasses.replace(model, policy=policy)
