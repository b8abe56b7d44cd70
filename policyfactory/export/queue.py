"""The jobs that wait now, and their order: by the scores of a policy, and by what a scheduler makes of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray
from policyfactory.core.units import DAY
from policyfactory.export.expressible import check_asked, check_free, check_predictions, check_size
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import Scale

__all__ = [
    "UNLIMITED_S",
    "Queue",
    "before_epoch",
    "overdue",
    "policy_priorities",
    "scaled_priorities",
    "scores_of",
    "start_order",
]

# Stands for the requested time of a job without a limit: what Slurm itself plans such a job with.
UNLIMITED_S = 365 * DAY


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """Waiting jobs.

    Parameters
    ----------
    job : tuple of str
        Ids as the site writes them.
    user : tuple of str
        Names, empty where unknown.
    p : int64 array (n,)
        Requested run time, s.
    q : int64 array (n,)
        Requested processors.
    submit : int64 array (n,)
        Submit time, Unix s.
    priority : float64 array (n,) or None
        What the scheduler sorts by today, HIGHER first; None: submit order.
    now : int
        Unix time at which the queue is looked at.
    """

    job: tuple[str, ...]
    user: tuple[str, ...]
    p: NDArray[np.int64]
    q: NDArray[np.int64]
    submit: NDArray[np.int64]
    priority: NDArray[np.float64] | None
    now: int

    def __len__(self) -> int:
        return len(self.job)


def scores_of(policy: Policy, queue: Queue) -> FloatArray:
    """Return the score of every job of a queue at its ``now``; LOWER runs first.

    With a fixed epoch r is at least 1 s, as in the scripts of all schedulers: a job submitted before the epoch counts
    as submitted at it, and log10(r) always has a value. Without one, r counts from the submission of the job that has
    waited longest, whose r is 0, as in the simulator.

    Parameters
    ----------
    policy : Policy
    queue : Queue

    Raises
    ------
    ExportError
        If the formula has m, f, predictions or n, mem, g.
    """
    check_size(policy)
    check_free(policy, "a list of waiting jobs")
    check_predictions(policy, "a list of waiting jobs")
    check_asked(policy, "a list of waiting jobs")
    epoch = policy.epoch.unix_time
    oldest = queue.submit.min(initial=queue.now)
    r = queue.submit - oldest if epoch is None else np.maximum(queue.submit - epoch, 1)
    return policy.scores(queue.p, queue.q, r, queue.now - queue.submit)


def before_epoch(policy: Policy, queue: Queue) -> int:
    """Return how many jobs were submitted before the fixed date from which the policy counts r; 0 without one."""
    epoch = policy.epoch.unix_time
    if epoch is None or "r" not in policy.variables:
        return 0
    return int((queue.submit < epoch).sum())


def overdue(policy: Policy, queue: Queue) -> NDArray[np.bool_]:
    """Return which jobs have waited longer than the policy's threshold."""
    return np.asarray(queue.now - queue.submit > policy.threshold)


def policy_priorities(policy: Policy, queue: Queue) -> FloatArray:
    """Return numbers in the policy's own order, HIGHER first: overdue jobs in submit order, the others by score."""
    late = overdue(policy, queue)
    scores = scores_of(policy, queue)
    order = np.lexsort((np.arange(len(queue)), queue.submit, np.where(late, 0.0, scores), ~late))
    ranks = np.empty(len(queue))
    ranks[order] = np.arange(len(queue), 0, -1, dtype=np.float64)
    return ranks


def scaled_priorities(policy: Policy, scale: Scale) -> Callable[[Queue], FloatArray]:
    """Return the function from a queue to the whole numbers of a scale, for `Export.priorities`."""

    def priorities(queue: Queue) -> FloatArray:
        return scale.integers(scores_of(policy, queue)).astype(np.float64)

    return priorities


def start_order(priorities: FloatArray, submit: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the indices of jobs in the order of their starts: HIGHER first, ties by submit time, then by place."""
    return np.lexsort((np.arange(len(submit)), submit, -priorities))
