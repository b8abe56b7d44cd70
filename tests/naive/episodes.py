"""Episodes, plainly: what engine/episodes.py and observed.py do, one at a time and written to be read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator, Sequence

from naive.online import Job, Online


@dataclasses.dataclass
class Seen:
    """What is seen at a decision: the jobs that waited when the pass began, and which of their places can be chosen."""

    jobs: list[tuple[float, ...]]
    machine: tuple[float, ...]
    running: list[tuple[float, ...]]
    allowed: list[int]
    cost: float


class Episode(Online):
    """An episode: `seen` is None when it is over; nothing to decide at all is one empty decision."""

    def __init__(
        self,
        jobs: Sequence[Job],
        machine: int,
        now: int,
        *,
        backfills: bool = True,
        ticks: int = 1,
        cost: str = "",
    ) -> None:
        super().__init__(jobs, machine, lambda job, now, oldest, free: 0.0)
        self.now, self.backfills, self.ticks, self.cost_kind = now, backfills, ticks, cost
        self.running = [job for job in jobs if job.start >= 0]
        self.measured = [job for job in jobs if job.start < 0]
        self.queue = [job for job in self.measured if job.submit < now]
        self.to_come = [job for job in self.measured if job.submit >= now]
        self.starts = 0
        self.reported = 0.0
        self.reward_part = 0.0
        self.replaced = False
        for job in self.running:
            job.end = job.start + job.run_time
        self.passes = self.play()
        self.seen: Seen | None = next(self.passes, None) or Seen([], (), [], [0], 0.0)
        self.nothing = not self.seen.jobs

    def step(self, at: int) -> None:
        assert self.seen is not None
        self.replaced = not self.nothing and at not in self.seen.allowed
        if self.replaced:
            at = self.seen.allowed[0]
        try:
            self.seen = None if self.nothing else self.passes.send(at)
        except StopIteration:
            self.seen = None
        total = self.total()
        self.reward_part, self.reported = total - self.reported, total

    def total(self) -> float:
        """Return what all jobs that were submitted have cost until now."""
        costs = []
        for job in self.measured:
            if job.submit <= self.now:
                wait, p = (job.start if job.start >= 0 else self.now) - job.submit, job.run_time
                costs.append(
                    {
                        "": 0.0,
                        "wait": wait / self.ticks,
                        "turnaround": (wait + p) / self.ticks,
                        "bsld": max((wait + p) / max(p, 10 * self.ticks), 1.0),
                        "slowdown": max((wait + p) / max(p, self.ticks), 1.0),
                    }[self.cost_kind]
                )
        return math.fsum(costs)

    def play(self) -> Generator[Seen, int, None]:
        """One pass at each instant; gives what is seen where more than one answer is possible, and is sent a place."""
        while self.to_come or self.queue:
            times = [job.end for job in self.running] + [job.submit for job in self.to_come[:1]]
            self.now = min(times)
            self.running = [job for job in self.running if job.end > self.now]
            while self.to_come and self.to_come[0].submit == self.now:
                self.queue.append(self.to_come.pop(0))
            self.shown, self.free_then = list(self.queue), self.free()
            self.ran = sorted(self.running, key=lambda job: job.start + job.estimate)
            self.remember()
            head = None
            while head is None and any(job.processors <= self.free() for job in self.queue):
                job = self.queue[0] if len(self.queue) == 1 else self.shown[(yield self.look(self.queue))]
                if job.processors <= self.free():
                    self.start_now(job)
                else:
                    head = job
            if head is None or not self.backfills:
                continue
            shadow, extra = self.reservation(head, self.free())
            while candidates := [job for job in self.queue if self.may(job, shadow, extra)]:
                job = candidates[0]
                if len(candidates) > 1:
                    job = self.shown[(yield self.look(candidates, shadow, extra))]
                if self.now + job.estimate > shadow:
                    extra -= job.processors
                job.backfilled = True
                self.start_now(job)

    def may(self, job: Job, shadow: int, extra: int) -> bool:
        leaves_it = job.processors <= extra or self.now + job.estimate <= shadow
        return job.processors <= self.free() and leaves_it

    def start_now(self, job: Job) -> None:
        self.start(job)
        self.running.append(job)

    def log(self, ticks: int) -> float:
        return math.log10(ticks / self.ticks + 10) - 1

    def remember(self) -> None:
        """Write down what is shown of the jobs for the whole pass."""
        m, f = self.machine, self.free_then
        self.rows = [
            (
                self.log(self.now - job.submit),
                math.log10(max(job.estimate / self.ticks, 1)),
                math.log10(job.processors),
                math.log10(job.processors / m),
                min(1.0, max(0.0, f - job.processors + 1.0)),
                f / m,
            )
            for job in self.shown
        ]
        self.of_running = [
            (
                self.log(job.predicted_end(self.now) - self.now),
                self.log(self.now - job.start),
                job.processors / m,
            )
            for job in self.ran
        ]

    def look(self, possible: list[Job], shadow: int | None = None, extra: int = 0) -> Seen:
        reserved = (0.0, 0.0, 0.0) if shadow is None else (1.0, extra / self.machine, self.log(shadow - self.now))
        counts = (math.log10(1 + len(self.queue)), math.log10(1 + len(self.running)))
        machine = (self.free() / self.machine, *counts, *reserved)
        allowed = [self.shown.index(job) for job in possible]
        return Seen(self.rows, machine, self.of_running, allowed, self.total())


def begin(jobs: Sequence[Job], machine: int, now: int, **rules: object) -> Episode:
    """Return an episode at its first decision; jobs that run have a start."""
    return Episode(jobs, machine, now, **rules)


def step_all(episodes: Sequence[Episode], actions: Sequence[int]) -> None:
    """Take a decision in each that is not over."""
    for episode, action in zip(episodes, actions, strict=True):
        if episode.seen is not None:
            episode.step(action)
