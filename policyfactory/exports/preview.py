"""What an export would do to the queue of today: who moves up, who moves down."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import counted, format_duration
from policyfactory.exports.content import Export
from policyfactory.exports.expressible import keeps_threshold
from policyfactory.exports.queue import Queue, before_epoch, overdue, policy_priorities, scores_of, start_order
from policyfactory.policy.policy import Policy

_ALONE = (
    "Compared by the formula's number alone: the site's other factors (fair-share, QOS, age, partition) are not in it."
)
_COMPARED = {
    "slurm-nice": (
        "The number shown is the job's priority of today (1,000,000,000 where the queue has none) less the nice value "
        "that the script sets, as if each user ran it for their own jobs: the site's other factors are in it as they "
        "are today."
    ),
    "slurm-weights": (
        "Compared by the number of these weights alone: the site's other factors (fair-share, QOS, partition) are "
        "not in it."
    ),
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """The order of a queue today and under an export.

    Parameters
    ----------
    queue : Queue
        The jobs that wait.
    scores : float64 array (n,)
        Values of the policy, LOWER first.
    priorities : float64 array (n,)
        What the scheduler will sort by, HIGHER first.
    today, new : int64 array (n,)
        Place of each job, from 1.
    late : bool array (n,)
        Jobs that have waited longer than the policy's threshold, where the target lets them go first.
    early : int
        Jobs submitted before the date from which r counts.
    compared : str
        What the number is that the jobs are compared by, in a sentence.
    """

    queue: Queue
    scores: FloatArray
    priorities: FloatArray
    today: Int64Array
    new: Int64Array
    late: NDArray[np.bool_]
    early: int
    compared: str

    @property
    def order(self) -> NDArray[np.intp]:
        """Indices of the jobs in the new order."""
        return np.argsort(self.new, kind="stable")

    def rows(self) -> list[dict[str, Any]]:
        """Return the jobs in the new order, as JSON values; a score that is not finite is null."""
        queue = self.queue
        return [
            {
                "place": int(self.new[i]),
                "today": int(self.today[i]),
                "up": int(self.today[i] - self.new[i]),
                "job": queue.job[i],
                "user": queue.user[i],
                "p": int(queue.p[i]),
                "q": int(queue.q[i]),
                "waited": int(queue.now - queue.submit[i]),
                "score": float(self.scores[i]) if np.isfinite(self.scores[i]) else None,
                "priority": float(self.priorities[i]),
                "overdue": bool(self.late[i]),
            }
            for i in self.order.tolist()
        ]

    def summary(self) -> tuple[str, ...]:
        """Return what changes, in sentences."""
        moved = self.today - self.new
        up, down, same = (int(sentences.sum()) for sentences in (moved > 0, moved < 0, moved == 0))
        if same == len(self.queue):
            return (f"No change: {counted(same, 'job')} in this order today already.", *self._notes())
        sentences = [f"{counted(len(self.queue), 'job')}: up {up:,}, down {down:,}, same place {same:,}."]
        first = int(self.order[0])
        sentences.append(f"First to start: {self._words(first)}, {_from(int(self.today[first]), 1)}.")
        oldest = int(np.argmin(self.queue.submit))
        sentences.append(
            f"Waits longest: {self._words(oldest)}, {_from(int(self.today[oldest]), int(self.new[oldest]))}."
        )
        lowest = int(np.argmin(moved))
        sentences.append(
            f"Falls furthest: {self._words(lowest)}, {_from(int(self.today[lowest]), int(self.new[lowest]))}."
        )
        return (*sentences, *self._notes())

    def _notes(self) -> list[str]:
        sentences = []
        if self.late.any():
            sentences.append(f"Waited longer than the policy's threshold: {counted(int(self.late.sum()), 'job')}.")
        if self.early:
            sentences.append(
                f"Submitted before the epoch, and counted as submitted at it: {counted(self.early, 'job')}."
            )
        return sentences

    def _words(self, i: int) -> str:
        queue = self.queue
        user = f" of {queue.user[i]}" if queue.user[i] else ""
        waited = format_duration(int(queue.now - queue.submit[i]))
        return f"job {queue.job[i]}{user} ({format_duration(int(queue.p[i]))}, q = {queue.q[i]:,}, waited {waited})"


def _from(today: int, new: int) -> str:
    return f"stays at place {new:,}" if today == new else f"from place {today:,} to {new:,}"


def preview(export: Export, policy: Policy, queue: Queue, *, target: str = "") -> Preview:
    """Return the order of a queue today (by its priorities, else by submit time) and under an export.

    Parameters
    ----------
    export : Export
        What the target made of the policy.
    policy : Policy
        What was exported.
    queue : Queue
        The jobs that wait.
    target : str
        Its name, for what is said of its number.

    Raises
    ------
    ExportError
        If the formula has m or f.
    """
    scores = scores_of(policy, queue)
    given = export.priorities
    priorities = policy_priorities(policy, queue) if given is None else given(queue)
    today = np.zeros(len(queue)) if queue.priority is None else queue.priority
    return Preview(
        queue=queue,
        scores=scores,
        priorities=priorities,
        today=np.argsort(start_order(today, queue.submit)) + 1,
        new=np.argsort(start_order(priorities, queue.submit)) + 1,
        late=overdue(policy, queue) & keeps_threshold(policy, export.limits),
        early=before_epoch(policy, queue),
        compared=_COMPARED.get(target, _ALONE),
    )
