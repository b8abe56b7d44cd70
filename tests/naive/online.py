"""The online simulator, plainly: what engine/easy.py, timed.py, switching.py and conservative.py do.

One instant at a time, written to be read, not to be fast. Every pass sorts the whole queue and looks at all running
jobs; nothing is kept from one pass to the next. The switches ``events``, ``extra`` and ``tie_rank`` are the rules of
two other simulators (pyss, ocst), so that their results can be met as well.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any


@dataclasses.dataclass
class Job:
    """A job, and what becomes of it; times in ticks."""

    id: int
    submit: int
    run_time: int
    estimate: int
    processors: int
    tie_rank: int = 0
    start: int = -1
    end: int = -1
    sequence: int = -1
    backfilled: bool = False

    def predicted_end(self, now: int) -> int:
        """Return when it ends by its estimate; one that has outlived it counts as ending now."""
        return max(self.start + self.estimate, now)


# (job, now, submit time of the oldest waiting job, processors free as the pass begins) -> lower runs first
Score = Callable[[Job, int, int, int], float]


# What is in force: (from this instant on, order of the queue, threshold, order for backfilling or None).
Entry = tuple[float, Score, float, Score | None]


@dataclasses.dataclass
class Online:
    """A machine with a queue. ``run`` fills in the jobs' start, end and backfilled.

    With a ``timetable`` (entries in the order of their instants) each pass is made in the order that is in force then.
    """

    jobs: Sequence[Job]
    machine: int
    score: Score
    backfill: str = "easy"  # none, easy, conservative
    threshold: float = math.inf
    ties: str = "fifo"  # fifo, lifo, tie_rank (ocst: as recorded)
    backfill_score: Score | None = None
    events: str = "batch"  # batch; single (pyss): a pass after each event, submissions before completions
    extra: str = "full"  # full; partial (ocst): of the jobs predicted to end at the shadow time, only as many as needed
    timetable: Sequence[Entry] = ()
    cancelled: Mapping[int, int] = dataclasses.field(default_factory=dict)  # by id: when, if it waits still

    def run(self) -> None:
        self.to_come = sorted(self.jobs, key=lambda job: (job.submit, job.id))
        self.queue: list[Job] = []
        self.starts = 0
        self.running: list[Job] = []
        while self.to_come or self.queue:
            times = [job.end for job in self.running] + [job.submit for job in self.to_come[:1]]
            cancellations = [self.cancelled[job.id] for job in self.queue if job.id in self.cancelled]
            if cancellations and min(cancellations) < min(times, default=math.inf):
                self.cancel(min(cancellations))
                continue
            self.now = min(times)
            if self.events == "batch":
                self.running = [job for job in self.running if job.end > self.now]
                while self.to_come and self.to_come[0].submit == self.now:
                    self.queue.append(self.to_come.pop(0))
            elif self.to_come and self.to_come[0].submit == self.now:
                self.queue.append(self.to_come.pop(0))
            else:
                # The one of those that end now that was started first.
                ending = [job for job in self.running if job.end == self.now]
                self.running.remove(min(ending, key=lambda job: job.sequence))
            self.schedule()

    def cancel(self, now: int) -> None:
        """Take out of the queue who is cancelled now; what happens at the same instant has been."""
        self.now = now
        self.running = [job for job in self.running if job.end > now]
        self.queue = [job for job in self.queue if self.cancelled.get(job.id) != now]
        self.schedule()

    def free(self) -> int:
        """Return the processors that are free now."""
        held = self.running
        if self.events == "single":
            # A job whose estimate ends now counts as gone, though its completion comes later in this instant.
            held = [job for job in held if job.start + job.estimate > self.now]
        return self.machine - sum(job.processors for job in held)

    def start(self, job: Job) -> None:
        self.queue.remove(job)
        job.start, job.end, job.sequence = self.now, self.now + job.run_time, self.starts
        self.starts += 1

    def sort_queue(self) -> None:
        """Sort by score; those that have waited longer than the threshold before the others, in submit order."""
        oldest = min((job.submit for job in self.queue), default=0)

        def tie(job: Job) -> tuple[int, int]:
            if self.ties == "tie_rank":
                return (job.tie_rank, 0)
            return (job.submit, job.id) if self.ties == "fifo" else (-job.submit, -job.id)

        def key(job: Job) -> tuple[float, ...]:
            if self.now - job.submit > self.threshold:
                last = job.tie_rank if self.ties == "tie_rank" else job.id
                return (0, job.submit, last, 0)
            return (1, self.value(self.score, job, oldest), *tie(job))

        self.queue.sort(key=key)

    def value(self, score: Score, job: Job, oldest: int) -> float:
        value = score(job, self.now, oldest, self.free_first)
        return math.inf if math.isnan(value) else value

    def schedule(self) -> None:
        """Make one pass: Algorithm 1 of IEEE TPDS 29(10), 2018, section 4."""
        for since, *order in self.timetable:
            if since <= self.now:
                self.score, self.threshold, self.backfill_score = order
        self.free_first = self.free()
        self.sort_queue()
        if self.backfill == "conservative":
            self.plan()
            return
        heads: list[Job] = []
        while self.queue and self.queue[0].processors <= self.free() - self.held_by(heads):
            heads.append(self.queue[0])
            self.start(self.queue[0])
        before = self.running
        self.running = heads + before
        backfilled = []
        if self.queue and self.backfill == "easy":
            backfilled = self.backfill_behind(self.queue[0])
        # ocst's list as later passes see it: the order matters for extra="partial" only.
        self.running = backfilled + heads[::-1] + before

    def held_by(self, jobs: list[Job]) -> int:
        return sum(job.processors for job in jobs)

    def backfill_behind(self, head: Job) -> list[Job]:
        """Start what leaves the head's reservation as it is, and return it."""
        free = self.free()
        shadow, extra = self.reservation(head, free)
        oldest = min(job.submit for job in self.queue)
        candidates = self.queue[1:]
        if self.backfill_score is not None:
            own = self.backfill_score
            candidates = sorted(candidates, key=lambda job: self.value(own, job, oldest))
        started = []
        for job in candidates:
            if job.processors > free:
                continue
            ends_in_time = self.now + job.estimate <= shadow
            if ends_in_time or job.processors <= extra:
                free -= job.processors
                if not ends_in_time:
                    extra -= job.processors
                job.backfilled = True
                self.start(job)
                started.append(job)
        return started

    def reservation(self, head: Job, free: int) -> tuple[int, int]:
        """Return the earliest time at which the head fits, and the processors that are left over then."""
        by_end = sorted(self.running, key=lambda job: job.predicted_end(self.now))
        if self.events == "single":
            by_end = [job for job in by_end if job.start + job.estimate > self.now]
        available = free
        while available < head.processors:
            job = by_end.pop(0)
            shadow = job.predicted_end(self.now)
            available += job.processors
        if self.extra == "full":
            available += sum(job.processors for job in by_end if job.predicted_end(self.now) <= shadow)
        return shadow, available - head.processors

    def plan(self) -> None:
        """Give every queued job, in order, the earliest place; start those whose place begins now."""
        # What holds processors: (from, to, processors); one that has outlived its estimate until the next tick.
        held = [(self.now, max(job.start + job.estimate, self.now + 1), job.processors) for job in self.running]
        stayed = False
        for job in list(self.queue):
            length = max(job.estimate, 1)
            begin = self.earliest(held, job.processors, length)
            held.append((begin, begin + length, job.processors))
            if begin == self.now:
                self.start(job)
                self.running.insert(0, job)
                job.backfilled = stayed
            else:
                stayed = True

    def earliest(self, held: list[tuple[int, int, int]], processors: int, length: int) -> int:
        for begin in sorted({self.now, *(to for _, to, _ in held)}):
            # The use of processors only rises where something begins.
            instants = [begin, *(start for start, _, _ in held if begin < start < begin + length)]
            if all(
                sum(width for start, to, width in held if start <= instant < to) + processors <= self.machine
                for instant in instants
            ):
                return begin
        raise AssertionError("a job fits when all others have ended")


def easy(jobs: Sequence[Job], machine: int, score: Score, **rules: Any) -> None:
    """Strict order or EASY backfilling (rules: the fields of Online); fills in start, end and backfilled."""
    Online(jobs, machine, score, **rules).run()


def easy_cancelled(jobs: Sequence[Job], machine: int, score: Score, cancelled: Mapping[int, int], **rules: Any) -> None:
    """The same, where jobs are cancelled if they have not started by then (by id); they keep a start of -1."""
    Online(jobs, machine, score, cancelled=cancelled, **rules).run()


def easy_timed(jobs: Sequence[Job], machine: int, score: Score, **rules: Any) -> None:
    """The same: here every score may change with time."""
    Online(jobs, machine, score, **rules).run()


def run_timetable(jobs: Sequence[Job], machine: int, timetable: Sequence[Entry], **rules: Any) -> None:
    """One order after another."""
    Online(jobs, machine, timetable[0][1], timetable=timetable, **rules).run()


def easy_until(jobs: Sequence[Job], machine: int, score: Score, until: int, **rules: Any) -> list[Job]:
    """The jobs that are started before ``until``: nothing that comes later could change that."""
    Online(jobs, machine, score, **rules).run()
    return [job for job in jobs if job.start < until]


def timed_until(jobs: Sequence[Job], machine: int, score: Score, until: int, **rules: Any) -> list[Job]:
    """The same: here every score may change with time."""
    return easy_until(jobs, machine, score, until, **rules)


def total_waits(
    jobs: Sequence[Job], machine: int, scores: Sequence[Score], edges: Sequence[int], **rules: Any
) -> list[int]:
    """Total wait of the jobs submitted in each period, which have the machine for themselves."""
    waits = []
    for score, first, last in zip(scores, edges, edges[1:], strict=False):
        alone = [dataclasses.replace(job) for job in jobs if first <= job.submit < last]
        Online(alone, machine, score, **rules).run()
        waits.append(sum(job.start - job.submit for job in alone))
    return waits


def conservative(jobs: Sequence[Job], machine: int, score: Score, **rules: Any) -> None:
    """Conservative backfilling."""
    Online(jobs, machine, score, backfill="conservative", **rules).run()


def conservative_until(jobs: Sequence[Job], machine: int, score: Score, until: int, **rules: Any) -> list[Job]:
    """The jobs that are started before ``until``: nothing that comes later could change that."""
    return easy_until(jobs, machine, score, until, backfill="conservative", **rules)


def score_waiting(waiting: Sequence[Job], now: int, free: int, score: Score) -> list[float]:
    """Return the score of each waiting job now; what is no number runs last."""
    oldest = min(job.submit for job in waiting)
    values = [score(job, now, oldest, free) for job in waiting]
    return [math.inf if math.isnan(value) else value for value in values]
