"""Machines of several resources, plainly: what engine/resources*.py and placement.py do.

One instant at a time; every pass sorts the whole queue, adds up what every running job holds, and keeps nothing for the
next. Vectors are tuples with processors first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

Vector = tuple[int, ...]


@dataclasses.dataclass
class Job:
    """A job, and what becomes of it; times in ticks. It holds ``counters`` of the machine and places on nodes."""

    id: int
    submit: int
    run_time: int
    estimate: int
    counters: Vector = ()
    nodes: int = 0
    on_each: Vector = ()
    whole: bool = False
    start: int = -1
    end: int = -1
    backfilled: bool = False
    placed: tuple[int, ...] = ()

    def predicted_end(self, now: int) -> int:
        """Return when it ends by its estimate; one that has outlived it counts as ending now."""
        return max(self.start + self.estimate, now)


# (job, now, submit time of the oldest waiting job, processors free as the pass begins) -> lower runs first
Score = Callable[[Job, int, int, int], float]


def less(one: Vector, other: Vector) -> Vector:
    return tuple(a - b for a, b in zip(one, other, strict=True))


def fits(ask: Vector, free: Vector) -> bool:
    return all(a <= b for a, b in zip(ask, free, strict=True))


@dataclasses.dataclass
class Online:
    """A machine with counters and nodes. ``run`` fills in the jobs' start, end, backfilled and nodes."""

    jobs: Sequence[Job]
    counters: Vector
    nodes: Sequence[Vector]
    score: Score
    backfill: str = "easy"
    threshold: float = math.inf
    ties: str = "fifo"
    backfill_score: Score | None = None
    best_fit: bool = False

    def run(self) -> None:
        self.to_come = sorted(self.jobs, key=lambda job: (job.submit, job.id))
        self.queue: list[Job] = []
        self.running: list[Job] = []
        while self.to_come or self.queue:
            self.now = min([job.end for job in self.running] + [job.submit for job in self.to_come[:1]])
            self.running = [job for job in self.running if job.end > self.now]
            while self.to_come and self.to_come[0].submit == self.now:
                self.queue.append(self.to_come.pop(0))
            self.schedule()

    # What is free. --------------------------------------------------------------------------------------------------

    def free_counters(self, holders: list[Job]) -> Vector:
        free = self.counters
        for job in holders:
            free = less(free, job.counters)
        return free

    def free_on(self, node: int, holders: list[Job]) -> Vector:
        free = self.nodes[node]
        for job in holders:
            if node in job.placed:
                free = less(free, self.nodes[node] if job.whole else job.on_each)
        return free

    def fitting_nodes(self, job: Job, holders: list[Job]) -> list[int]:
        """Return the nodes on which ``job`` fits beside ``holders``."""
        free = [self.free_on(node, holders) for node in range(len(self.nodes))]
        return [
            node
            for node in range(len(self.nodes))
            if fits(job.on_each, free[node]) and (not job.whole or free[node] == self.nodes[node])
        ]

    def fits(self, job: Job, holders: list[Job]) -> bool:
        if not fits(job.counters, self.free_counters(holders)):
            return False
        return job.nodes == 0 or len(self.fitting_nodes(job, holders)) >= job.nodes

    def free_processors(self) -> int:
        if self.nodes:
            return sum(self.free_on(node, self.running)[0] for node in range(len(self.nodes)))
        return self.free_counters(self.running)[0]

    # One pass. ------------------------------------------------------------------------------------------------------

    def sort_queue(self) -> None:
        """Sort by score; those that have waited longer than the threshold before the others, in submit order."""
        oldest = min((job.submit for job in self.queue), default=0)

        def key(job: Job) -> tuple[float, ...]:
            tie = (job.submit, job.id) if self.ties == "fifo" else (-job.submit, -job.id)
            if self.now - job.submit > self.threshold:
                return (0, job.submit, job.id, 0)
            return (1, self.value(self.score, job, oldest), *tie)

        self.queue.sort(key=key)

    def value(self, score: Score, job: Job, oldest: int) -> float:
        value = score(job, self.now, oldest, self.free_first)
        return math.inf if math.isnan(value) else value

    def schedule(self) -> None:
        self.free_first = self.free_processors()
        self.sort_queue()
        if self.backfill == "conservative":
            self.plan()
            return
        while self.queue and self.fits(self.queue[0], self.running):
            job = self.queue[0]
            self.start(job, self.by_packing(job, self.fitting_nodes(job, self.running)))
        if self.queue and self.backfill == "easy":
            self.backfill_behind(self.queue[0])

    def by_packing(self, job: Job, nodes: list[int], spared: Sequence[int] = ()) -> tuple[int, ...]:
        """Return the nodes that ``job`` takes of those it fits on: the spared ones first, then as they are packed."""

        def key(node: int) -> tuple[int, ...]:
            return (node not in spared, self.free_on(node, self.running)[0] if self.best_fit else 0, node)

        return tuple(sorted(sorted(nodes, key=key)[: job.nodes]))

    def start(self, job: Job, nodes: tuple[int, ...]) -> None:
        self.queue.remove(job)
        job.start, job.end, job.placed = self.now, self.now + job.run_time, nodes
        self.running.append(job)

    def shadow_time(self, head: Job) -> int:
        """Return the earliest time at which, by the estimates, the head fits."""
        for instant in sorted({job.predicted_end(self.now) for job in self.running}):
            if self.fits(head, self.holders_at(instant)):
                return instant
        raise AssertionError("a job fits when all others have ended")

    def holders_at(self, instant: int) -> list[Job]:
        return [job for job in self.running if job.predicted_end(self.now) > instant]

    def backfill_behind(self, head: Job) -> None:
        """Start what leaves the head's reservation as it is."""
        shadow = self.shadow_time(head)
        oldest = min(job.submit for job in self.queue)
        candidates = self.queue[1:]
        if self.backfill_score is not None:
            own = self.backfill_score
            candidates = sorted(candidates, key=lambda job: self.value(own, job, oldest))
        for job in candidates:
            if not self.fits(job, self.running):
                continue
            nodes = self.by_packing(job, self.fitting_nodes(job, self.running))
            if self.now + job.estimate > shadow:
                nodes = self.by_packing(
                    job, self.fitting_nodes(job, self.running), self.spared_nodes(job, head, shadow)
                )
                later = self.holders_at(shadow)
                if not self.fits(head, [*later, dataclasses.replace(job, placed=nodes)]):
                    continue
            job.backfilled = True
            self.start(job, nodes)

    def spared_nodes(self, job: Job, head: Job, shadow: int) -> list[int]:
        """Return the nodes that, with ``job`` on them, are at the shadow time as useful to the head as without."""
        later = self.holders_at(shadow)
        useful = self.fitting_nodes(head, later)
        everywhere = dataclasses.replace(job, placed=tuple(self.fitting_nodes(job, self.running)))
        left = self.fitting_nodes(head, [*later, everywhere])
        return [node for node in everywhere.placed if node not in useful or node in left]

    # Conservative. --------------------------------------------------------------------------------------------------

    def plan(self) -> None:
        """Reserve for every job in the queue's order; start those whose reservation begins now."""
        held = [(self.now, max(job.predicted_end(self.now), self.now + 1), job) for job in self.running]
        stayed = False
        for job in list(self.queue):
            length = max(job.estimate, 1)
            begin, nodes = self.earliest(job, length, held)
            held.append((begin, begin + length, dataclasses.replace(job, placed=nodes)))
            if begin > self.now:
                stayed = True
            else:
                job.backfilled = stayed
                self.start(job, nodes)

    def earliest(self, job: Job, length: int, held: list[tuple[int, int, Job]]) -> tuple[int, tuple[int, ...]]:
        """Return when a job fits for so long beside what is held, and on which nodes."""
        for begin in sorted({self.now, *(end for _, end, _ in held)}):
            # It is only where others begin that less is free.
            instants = [begin, *(other for other, _, _ in held if begin < other < begin + length)]
            at = [[one for since, until, one in held if since <= instant < until] for instant in instants]
            if not all(fits(job.counters, self.free_counters(holders)) for holders in at):
                continue
            nodes = set(range(len(self.nodes))).intersection(*(self.fitting_nodes(job, holders) for holders in at))
            if len(nodes) >= job.nodes:
                free = {node: self.free_on(node, at[0])[0] if self.best_fit else 0 for node in nodes}
                return begin, tuple(sorted(sorted(nodes, key=lambda node: (free[node], node))[: job.nodes]))
        raise AssertionError("a job fits when all others have ended")


def easy_on(jobs: Sequence[Job], counters: Vector, nodes: Sequence[Vector], score: Score, **rules: Any) -> None:
    """Strict order or EASY backfilling (rules: the fields of Online); fills in start, end, backfilled and nodes."""
    Online(jobs, counters, nodes, score, **rules).run()


def timed_on(jobs: Sequence[Job], counters: Vector, nodes: Sequence[Vector], score: Score, **rules: Any) -> None:
    """The same: here every score may change with time."""
    Online(jobs, counters, nodes, score, **rules).run()


def conservative_on(jobs: Sequence[Job], counters: Vector, nodes: Sequence[Vector], score: Score, **rules: Any) -> None:
    """Conservative backfilling; fills in start, end, backfilled and nodes."""
    Online(jobs, counters, nodes, score, "conservative", **rules).run()
