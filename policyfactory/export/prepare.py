"""What a site knows and a policy does not: from when r counts, and how large the machine is."""

from __future__ import annotations

import dataclasses

from policyfactory.core.errors import UsageError
from policyfactory.policy.nodes import Number, replace_variables
from policyfactory.policy.policy import Epoch
from policyfactory.policy.store import Model

__all__ = ["prepare"]


def prepare(model: Model, *, epoch: int | None = None, processors: int | None = None) -> Model:
    """Return the model with its epoch fixed and m replaced, where they are given.

    Parameters
    ----------
    model : Model
    epoch : int or None
        Unix time (s) from which r counts.
    processors : int or None
        Processors of the machine, written in place of m.

    Raises
    ------
    UsageError
        If ``processors`` is not positive.
    """
    policy = model.policy
    if epoch is not None:
        policy = dataclasses.replace(policy, epoch=Epoch("fixed", epoch))
    if processors is not None:
        if processors < 1:
            raise UsageError(f"a machine of {processors} processors can not be meant; give a number from 1")
        if "m" in policy.variables:
            expression = replace_variables(policy.expression, {"m": Number(float(processors))})
            policy = dataclasses.replace(policy, formula=expression.text())
    return dataclasses.replace(model, policy=policy)
