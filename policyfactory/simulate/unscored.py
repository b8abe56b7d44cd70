"""Jobs that a policy gives no score: NaN, which sorts behind all others without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.errors import EvaluationError
from policyfactory.core.text import counted
from policyfactory.core.units import DAY
from policyfactory.simulate.asked import asked_of
from policyfactory.simulate.metrics import TAU

if TYPE_CHECKING:
    from policyfactory.policy.policy import Policy
    from policyfactory.workload.jobs import Workload

__all__ = ["unscored"]

_WAITED = (0.0, float(DAY))  # s: as a job is submitted, and after a day


def unscored(workload: Workload, policy: Policy) -> str:
    """Return how many jobs a policy gives no score; empty if none.

    Parameters
    ----------
    workload : Workload
        The jobs; r counts from the first submission, predictions are as if requests were exact.
    policy : Policy
        The policy.

    Raises
    ------
    EvaluationError
        If it gives no job a score: that is no order.
    """
    if not len(workload):
        return ""
    p = np.minimum(workload.requested_time / workload.ticks, np.finfo(np.float64).max)
    r = (workload.submit - workload.submit.min()) / workload.ticks
    if policy.epoch.rule == "fixed" and workload.unix_start is not None and policy.epoch.unix_time is not None:
        r = r + (workload.unix_start + workload.submit.min() / workload.ticks - policy.epoch.unix_time)
    waits = _WAITED[:1] if policy.is_static else _WAITED
    nan = np.isnan([_scores(workload, policy, (p, r, np.full(len(p), waited))) for waited in waits])
    lacking = nan.any(axis=0)
    count = int(lacking.sum())
    if not count:
        return ""
    at = int(np.argmax(lacking))
    first = f"job {workload.job_id[at]} (p {p[at]:g}, q {workload.processors[at]}, r {r[at]:g})"
    why = "0/0, or a logarithm or root of a negative number" if policy.function is None else "its function returns NaN"
    if nan.all():
        raise EvaluationError(
            f"policy {policy.name}: none of the {counted(count, 'job')} of {workload.name} has a score, all are NaN, "
            f"as of {first}: {why}; give a policy that is a number for every job"
        )
    return (
        f"policy {policy.name} has no score (NaN) for {count:,} of {counted(len(workload), 'job')} of {workload.name}, "
        f"which come behind all others; the first is {first}: {why}"
    )


def _scores(workload: Workload, policy: Policy, given: tuple[FloatArray, FloatArray, FloatArray]) -> FloatArray:
    p, r, w = given
    one = np.ones(len(p))
    # In the order of PREDICTIONS: e, s, e90, user_waiting, user_running.
    predicted = np.array([p, TAU / np.maximum(p, TAU), p, one, one]) if policy.needs_predictions else None
    asked = asked_of(workload, policy)
    with np.errstate(all="ignore"):
        return policy.scores(
            p, workload.processors, r, w, m=workload.machine, predictions=predicted, asked=asked, undefined=np.nan
        )
