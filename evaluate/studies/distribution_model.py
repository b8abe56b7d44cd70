"""A simulated cluster: when all work units are done, on so many workers, at such costs of sending them about.

A discrete event simulation of what a run on Dask does. The command and the scheduler are one process each and do one
thing at a time; every worker does one work unit and holds one more; a work unit goes from the command to the scheduler
to a worker, and its result goes the same way back. evaluate/studies/distribution.py measures what it needs.
"""  # noqa: INP001 (beside the package, not a part of it)

from __future__ import annotations

import dataclasses
import heapq
from collections import deque
from collections.abc import Sequence

__all__ = ["Costs", "Outcome", "simulate"]

# As policyfactory.parallel.dask does: so many work units are under way, and each result calls the next one.
_FEWEST, _EACH = 1_024, 4
_READY, _ARRIVE, _REACH, _FINISH, _RETURN, _KEEP = range(6)


@dataclasses.dataclass(frozen=True)
class Costs:
    """What it costs to have a work unit done elsewhere, in seconds and bytes.

    Parameters
    ----------
    command : float
        Processor time of the command for a work unit: made, sent, received, written down.
    scheduler : float
        Processor time of the scheduler for a work unit: assigned to a worker, its end noted.
    worker : float
        Time of a worker for a work unit beside the work itself.
    latency : float
        Time of a message from one process to another.
    piece_bytes, result_bytes : float
        Size of a work unit and of what was found.
    shared_bytes : float
        Size of what each worker gets once.
    bandwidth : float
        Bytes a second through the one link of the scheduler.
    start : float
        When the first worker is there.
    start_each : float
        Time from one worker to the next.
    first : float
        Time that a worker's first work unit takes longer: kernels are read from disk, or compiled.
    """

    command: float = 0.0
    scheduler: float = 0.0
    worker: float = 0.0
    latency: float = 0.0
    piece_bytes: float = 0.0
    result_bytes: float = 0.0
    shared_bytes: float = 0.0
    bandwidth: float = float("inf")
    start: float = 0.0
    start_each: float = 0.0
    first: float = 0.0


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came out.

    Parameters
    ----------
    seconds : float
        From the start of the command to the last result.
    work : float
        Sum of the work units' own times.
    scheduler, command : float
        Share of the time in which the scheduler and the command were busy.
    last : float
        Time at the end in which at least one worker had nothing to do and no work unit was left to give out.
    """

    seconds: float
    work: float
    scheduler: float
    command: float
    last: float


class _Serial:
    """A process that does one thing at a time, in the order in which it is asked to."""

    def __init__(self) -> None:
        self.free = 0.0
        self.busy = 0.0

    def serve(self, now: float, seconds: float) -> float:
        """Return when it is done."""
        self.free = max(self.free, now) + seconds
        self.busy += seconds
        return self.free


class _Cluster:
    """The state of the simulation; a worker holds at most ``held`` work units, the one that it does among them."""

    def __init__(self, seconds: Sequence[float], workers: int, costs: Costs, held: int) -> None:
        self.units, self.costs, self.held = seconds, costs, held
        self.events: list[tuple[float, int, int, int, int]] = []
        self.order = 0
        self.command, self.scheduler = _Serial(), _Serial()
        self.made = 0
        self.waiting: deque[int] = deque()  # at the scheduler
        self.given = [0] * workers  # to each worker, and not yet returned
        self.there = [False] * workers
        self.used = [False] * workers
        self.doing = [False] * workers
        self.beside: list[deque[int]] = [deque() for _ in range(workers)]  # at the worker, not begun
        self.rooms: list[deque[int]] = [deque() for _ in range(held)]  # workers by what they were given; may be old
        self.rich: deque[int] = deque()  # workers that may have a work unit that is not begun
        self.kept = 0
        self.end = 0.0
        self.dry: float | None = None

    def at(self, time: float, kind: int, unit: int, worker: int) -> None:
        heapq.heappush(self.events, (time, self.order, kind, unit, worker))
        self.order += 1

    def make(self, now: float) -> None:
        """Make the next work unit in the command and send it, if there is one."""
        if self.made < len(self.units):
            done = self.command.serve(now, self.costs.command / 2)
            self.at(done + self.costs.latency, _ARRIVE, self.made, -1)
            self.made += 1

    def room(self) -> int:
        """Return the worker that has least to do and takes one more, or -1."""
        for count, workers in enumerate(self.rooms):
            while workers:
                worker = workers[0]
                if self.there[worker] and self.given[worker] == count:
                    return worker
                workers.popleft()
        return -1

    def give(self, now: float) -> None:
        """Give out what waits at the scheduler, as long as a worker takes it."""
        while self.waiting:
            worker = self.room()
            if worker < 0:
                return
            self.send(now, self.waiting.popleft(), worker)

    def send(self, now: float, unit: int, worker: int) -> None:
        self.given[worker] += 1
        if self.given[worker] < self.held:
            self.rooms[self.given[worker]].append(worker)
        self.at(now + self.costs.latency, _REACH, unit, worker)

    def begin(self, now: float, worker: int) -> None:
        """Let the worker begin the next work unit that lies beside it."""
        if self.doing[worker] or not self.beside[worker]:
            return
        unit = self.beside[worker].popleft()
        first = 0.0 if self.used[worker] else self.costs.first
        self.used[worker] = self.doing[worker] = True
        self.at(now + self.costs.worker + first + self.units[unit], _FINISH, unit, worker)

    def steal(self, now: float, thief: int) -> None:
        """Take a work unit that lies beside another worker, as Dask does when one has nothing."""
        while self.rich:
            victim = self.rich.popleft()
            if self.beside[victim] and self.doing[victim]:
                unit = self.beside[victim].pop()
                self.given[victim] -= 1
                self.rooms[self.given[victim]].append(victim)
                self.send(now + 2 * self.costs.latency, unit, thief)
                return


def simulate(seconds: Sequence[float], workers: int, costs: Costs, *, held: int = 2) -> Outcome:
    """Run the work units on the workers.

    Parameters
    ----------
    seconds : sequence of float
        Time that each work unit takes on a worker, in the order in which they are given out.
    workers : int
        How many workers.
    costs : Costs
        The rest.
    held : int
        Pieces that a worker holds at once, the one that it does among them.
    """
    cluster = _Cluster(seconds, workers, costs, held)
    scheduler, link = cluster.scheduler, costs.bandwidth
    for worker in range(workers):
        cluster.at(costs.start + worker * costs.start_each, _READY, -1, worker)
    for _ in range(min(len(seconds), max(_FEWEST, _EACH * workers))):
        cluster.make(0.0)
    while cluster.kept < len(seconds):
        now, _, kind, unit, worker = heapq.heappop(cluster.events)
        if kind == _READY:
            cluster.there[worker] = True
            done = scheduler.serve(now, costs.shared_bytes / link)
            cluster.rooms[0].append(worker)
            cluster.give(done + costs.latency)
            if not cluster.given[worker]:
                cluster.steal(done, worker)
        elif kind == _ARRIVE:
            done = scheduler.serve(now, costs.scheduler / 2 + costs.piece_bytes / link)
            cluster.waiting.append(unit)
            cluster.give(done)
        elif kind == _REACH:
            cluster.beside[worker].append(unit)
            cluster.begin(now, worker)
            if cluster.beside[worker]:
                cluster.rich.append(worker)
        elif kind == _FINISH:
            cluster.doing[worker] = False
            cluster.begin(now, worker)
            cluster.at(now + costs.latency, _RETURN, unit, worker)
        elif kind == _RETURN:
            done = scheduler.serve(now, costs.scheduler / 2 + costs.result_bytes / link)
            cluster.given[worker] -= 1
            cluster.rooms[cluster.given[worker]].append(worker)
            cluster.give(done)
            if not cluster.given[worker]:
                cluster.steal(done, worker)
                if cluster.made == len(seconds) and cluster.dry is None and not cluster.given[worker]:
                    cluster.dry = now
            cluster.at(done + costs.latency, _KEEP, unit, -1)
        else:
            cluster.end = cluster.command.serve(now, costs.command / 2)
            cluster.kept += 1
            cluster.make(now)
    end = cluster.end
    return Outcome(
        seconds=end,
        work=float(sum(seconds)),
        scheduler=scheduler.busy / end if end else 0.0,
        command=cluster.command.busy / end if end else 0.0,
        last=0.0 if cluster.dry is None else end - cluster.dry,
    )
