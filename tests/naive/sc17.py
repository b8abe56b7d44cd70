"""The scheduler of the SC'17 programs, plainly: one instant at a time, whole queue sorted at each turn.

Written from the rules in docs/papers.md, to be read beside them. Times are doubles, in seconds; arithmetic that the
program does in single precision goes through numpy.float32.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

LATENCY = 13.01 * 2 * 100e-6
DELAY = LATENCY + 1000 / (0.97 * 125e6)
AT_ONCE = 1e-5
FIRST, WINDOW = 16, 32
INT_MAX = 2**31 - 1


@dataclasses.dataclass
class Job:
    """A job, and what becomes of it; ``x`` is the p of the policy, ``request`` that of backfilling."""

    submit: int
    run_time: float
    x: float
    request: float
    processors: int
    start: float = math.nan
    due: float = math.nan
    end: float = math.nan
    backfilled: bool = False


# (job, whole second of the clock) -> lower runs first; None: the order is left as it is
Key = Callable[[Job, int], float]


@dataclasses.dataclass(frozen=True)
class FromOldest:
    """A key that also takes the first submit time of the jobs that are seen."""

    key: Callable[[Job, int, int], float]


def divide(a: float, b: float) -> float:
    """Divide as C does: by zero too."""
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def log10(value: float) -> float:
    return math.log10(value) if value > 0 else -math.inf


def cube(value: float) -> float:
    """Return pow(value, 3), rounded once; C libraries are off by one in the last digit now and then."""
    return float(Fraction(value) ** 3) if math.isfinite(value) else value


def wfp(job: Job, now: int) -> float:
    with np.errstate(all="ignore"):
        ratio = np.float32(now - job.submit) / np.float32(job.x)
    return -(cube(float(ratio)) * job.processors)


def unicef(job: Job, now: int) -> float:
    return -divide(now - job.submit + 1e-20, math.log2(job.processors + 1e-20) * job.x)


def f4(job: Job, now: int) -> float:
    size = (0.0056500287 * job.x) * (0.0000024814 * math.sqrt(job.processors))
    return size + 0.0074444355 * log10(job.submit)


def f3(job: Job, now: int) -> float:
    return (-0.2188093701 * job.x) * (-0.0000000049 * job.processors) + 0.0073580361 * log10(job.submit)


def f2(job: Job, now: int) -> float:
    size = (0.0000342717 * math.sqrt(job.x)) * (0.0076562110 * job.processors)
    return size + 0.0067364626 * log10(job.submit)


def f1(job: Job, now: int) -> float:
    return (-0.0155183403 * log10(job.x)) * (-0.0005149209 * job.processors) + 0.0069596182 * log10(job.submit)


def program_keys(name: str, jobs: Sequence[Job]) -> list[float]:
    """Return the keys of F1 to F4, which do not change with time."""
    return [KEYS[name](job, 0) for job in jobs]


KEYS: dict[str, Key] = {"WFP3": wfp, "UNICEF": unicef, "F4": f4, "F3": f3, "F2": f2, "F1": f1}


def exchange_sort(queue: list[Job]) -> list[Job]:
    """Sort by x as SPT does: equal keys come out in another order at each call."""
    queue = list(queue)
    for a in range(len(queue)):
        for b in range(len(queue)):
            if queue[a].x < queue[b].x:
                queue[a], queue[b] = queue[b], queue[a]
    return queue


class Sc17:
    """The dispatcher. ``run`` fills in the jobs' start, end and backfilled."""

    def __init__(self, jobs: Sequence[Job], machine: int, order: str | Key | FromOldest, backfill: bool) -> None:
        self.jobs = list(jobs)
        self.array = list(jobs)
        self.free = machine
        self.order = order
        self.backfill = backfill
        self.now = 0.0
        self.running: list[Job] = []  # in the order of dispatch

    def run(self) -> None:
        for i in range(len(self.array)):
            self.wait_for_head(i)
            job = self.array[i]
            self.free -= job.processors
            start = self.now + DELAY
            self.go_on_to(self.now + LATENCY)
            self.go_on_to(start)
            job.start, job.due = start, start + job.run_time
            self.running.append(job)
            self.complete()
        while self.running:
            self.next_event()

    def wait_for_head(self, i: int) -> None:
        """Return when the job at place i is the next to go and fits."""
        while True:
            if i >= FIRST:
                self.sort(i)
            job, together = self.array[i], 1
            if self.now < job.submit:
                self.go_on_to(float(job.submit))
                together = sum(other.submit == job.submit for other in self.jobs)
            if self.free >= job.processors:
                return
            # Had several jobs come in the second that was waited for, the dispatcher is woken up at once.
            if together == 1:
                self.next_event()

    def complete(self) -> None:
        """Free the processors of all that end now, or so soon that it counts as now."""
        for job in [job for job in self.running if job.due - self.now < AT_ONCE]:
            job.end = self.now
            self.free += job.processors
            self.running.remove(job)

    def next_instant(self) -> float:
        submits = [float(job.submit) for job in self.jobs if job.submit > self.now]
        return min([*submits, *(job.due for job in self.running)], default=math.inf)

    def go_on_to(self, instant: float) -> None:
        while self.next_instant() < instant:
            self.next_event()
        self.now = instant
        self.complete()

    def next_event(self) -> None:
        self.now = self.next_instant()
        self.complete()

    def sort(self, i: int) -> None:
        """Order the visible part of the queue, and bring one job to its front if backfilling allows it."""
        now = int(self.now)
        queue = []
        for job in self.array[i : i + WINDOW]:
            if job.submit > now:
                break
            queue.append(job)
        if len(queue) <= 1:
            return
        if self.order == "SPF":
            queue = exchange_sort(queue)
        elif callable(self.order) or isinstance(self.order, FromOldest):
            oldest = min(job.submit for job in queue)
            if isinstance(self.order, FromOldest):
                keys = {id(job): self.order.key(job, now, oldest) for job in queue}
            else:
                keys = {id(job): self.order(job, now) for job in queue}
            queue.sort(key=lambda job: math.inf if math.isnan(keys[id(job)]) else keys[id(job)])
        if self.backfill:
            self.bring_forward(queue, now)
        self.array[i : i + len(queue)] = queue

    def bring_forward(self, queue: list[Job], now: int) -> None:
        shadow, extra = self.reservation(queue[0], now)
        for k in range(1, len(queue)):
            job = queue[k]
            in_time = job.processors <= self.free and now + job.request <= shadow
            if in_time or job.processors <= min(self.free, extra):
                job.backfilled = True
                queue.insert(0, queue.pop(k))
                return

    def reservation(self, head: Job, now: int) -> tuple[int, int]:
        """Return when the head can start, by the requests of the running jobs, and what is left over then."""
        if self.free >= head.processors:
            return 0, 0
        left = [job.request - float(np.float32(now - job.start)) for job in self.running]
        future = self.free
        while True:
            least, pick = INT_MAX, -1
            for j, value in enumerate(left):
                # -1 marks a job that has ended; one that is over its request by exactly that is taken for such.
                if value != -1.0 and value < least:
                    least, pick = int(value), j
            if pick < 0:
                return -1, -1
            left[pick] = INT_MAX
            future += self.running[pick].processors
            if future >= head.processors:
                return now + least, future - head.processors


def sc17(jobs: Sequence[Job], machine: int, order: str | Key | FromOldest, backfill: bool) -> None:
    """Schedule; ``order`` is FCFS, SPF, a name of `KEYS`, or a key."""
    Sc17(jobs, machine, KEYS.get(order, order) if isinstance(order, str) else order, backfill).run()


def mean_slowdown(jobs: Sequence[Job]) -> float:
    """Return the mean bounded slowdown of all but the first 16, as the programs print it."""
    values = [max(1.0, (job.end - job.submit) / max(job.end - job.start, 10.0)) for job in jobs[FIRST:]]
    return math.fsum(values) / len(values)
