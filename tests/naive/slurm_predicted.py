"""Numbers that change while Slurm runs, plainly: predictions at submission and anew, waits and thresholds.

The plain Slurm tells the plain predictor (`naive.predicted`) what has started and ended by now; whenever a job is
described, everything is worked out anew from that. What the engine's slurm/numbers.py does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from naive.online import Job as Past
from naive.predicted import Predicted
from naive.slurm import Job, Placed, Simulation
from naive.slurm_jobs import Entry
from policyfactory.site.model import Site

__all__ = ["Seen", "follow_run", "foresee_record", "run_numbered"]

# A job's place in the order of submission, its predictions, and how long it has waited -> its number.
Number = Callable[[int, Sequence[float], int], int]


@dataclasses.dataclass
class Seen(Predicted):
    """The predictor, and who has ever started."""

    def __post_init__(self) -> None:
        self.features, self.predictions, self.noted, self.due = {}, {}, set(), 0
        self.began: dict[int, int] = {}

    def last_started(self, mine: list[Past]) -> Past | None:
        """Return the last to start, even if it was put back; of one second's starts that of the last submitted."""
        began = [one for one in mine if one.id in self.began]
        return max(began, key=lambda one: (self.began[one.id], one.id), default=None)


def follow_run(seen: Seen, entries: Mapping[int, Entry], now: int) -> None:
    """Tell the predictor what has started and ended by now."""
    seen.now = now
    for place, entry in entries.items():
        seen.jobs[place].start, seen.jobs[place].end = entry.start, entry.end
        if entry.start >= 0:
            seen.began[place] = entry.start
    seen.queue = [job for job in seen.jobs if job.id in seen.features and job.start < 0]


def _foretell_submitted(seen: Seen, job: Past) -> None:
    """Describe and predict a job that is submitted now."""
    features = seen.described(job)
    known = seen.known[job.id].user >= 0
    others = [one for one in seen.of_user(seen.known[job.id].user) if one.id in seen.features]
    waiting = sum(one.start < 0 for one in others)
    running = sum(one.start >= 0 and one.end > seen.now for one in others)
    seen.features[job.id] = features
    counts = [float(waiting), float(running)] if known else [0.0, 0.0]
    seen.predictions[job.id] = [*seen.predicted(features), *counts]


def foresee_record(seen: Seen, start: Sequence[int], end: Sequence[int]) -> None:
    """Predict each job of a record when it is submitted, of which nothing later than that is told."""
    for job in sorted(seen.jobs, key=lambda job: (job.submit, job.id)):
        seen.now = now = job.submit
        for one in seen.jobs:
            if 0 <= start[one.id] <= now:
                one.start, one.end = start[one.id], end[one.id]
                seen.began[one.id] = one.start
        _foretell_submitted(seen, job)


def _foretell_waiting(seen: Seen, entries: Mapping[int, Entry], now: int) -> list[Past]:
    """Predict anew, if it is time, the waiting jobs of users of whom a job has ended."""
    if not seen.period or now < seen.due:
        return []
    seen.due = (now // seen.period + 1) * seen.period
    follow_run(seen, entries, now)
    jobs = seen.to_renew()
    for job in jobs:
        seen.predictions[job.id][:3] = seen.predicted(seen.described(job))
    return jobs


class _Numbered(Simulation):
    def __init__(
        self, site: Site, jobs: Sequence[Job], number: Number, seen: Seen | None, *, waits: bool, begin: int
    ) -> None:
        super().__init__(site, jobs, begin=begin)
        self.number, self.seen, self.waits = number, seen, waits
        self.place = {job.id: place for place, job in enumerate(sorted(jobs, key=lambda job: (job.submit, job.id)))}

    def _by_place(self) -> dict[int, Entry]:
        return {self.place[id_]: entry for id_, entry in self.entries.items()}

    def _number(self, job: Job, waited: int) -> int:
        place = self.place[job.id]
        predictions = () if self.seen is None else self.seen.predictions[place]
        return self.number(place, predictions, waited)

    def _submit(self, job: Job) -> bool:
        if self.seen is not None:
            follow_run(self.seen, self._by_place(), self.c.now)
            _foretell_submitted(self.seen, self.seen.jobs[self.place[job.id]])
        job.site_factor = self._number(job, 0)
        return super()._submit(job)

    def _calculate(self) -> None:
        now = self.next_calculation
        ready = [entry for entry in self.c.pending if self._is_ready(entry, now)]
        again = []
        if ready and self.seen is not None:
            entries = self._by_place()
            again = [entries[job.id] for job in _foretell_waiting(self.seen, entries, now)]
        for entry in [*again, *(ready if self.waits else [])]:
            entry.job.site_factor = self._number(entry.job, now - entry.job.submit)
        super()._calculate()

    def _is_ready(self, entry: Entry, now: int) -> bool:
        """Say whether a job may start, even if the next pass has yet to find that what it waited for has ended."""
        return entry.begin <= now if entry.begin >= 0 else entry.job.after in self.c.ended


def run_numbered(
    site: Site, jobs: Sequence[Job], number: Number, seen: Seen | None, *, waits: bool, begin: int
) -> dict[int, Placed]:
    """Return what becomes of each job whose number is asked for at its submission, and again at calculations.

    Parameters
    ----------
    number : function
        Makes the numbers.
    seen : Seen or None
        What predicts; without it the function gets no predictions.
    waits : bool
        Whether it is asked for all jobs at calculations.
    begin : int
        When slurmctld starts.
    """
    return _Numbered(site, jobs, number, seen, waits=waits, begin=begin).run()
