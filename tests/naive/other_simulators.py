"""The rules of simulators that are not EASY, plainly: what makes their recorded starts differ from ours.

Each is a restatement of a rule that ours does not have; it meets every recorded start (tests/engine).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from naive.online import Job

__all__ = ["accasim_easy", "batsched_easy_fast", "rlscheduler"]


class _Machine:
    """Running jobs and the clock."""

    def __init__(self, jobs: Sequence[Job], processors: int) -> None:
        self.to_come = sorted(jobs, key=lambda job: (job.submit, job.id))
        self.free = processors
        self.running: list[Job] = []
        self.queue: list[Job] = []
        self.now = 0

    def start(self, job: Job) -> None:
        self.queue.remove(job)
        job.start, job.end = self.now, self.now + job.run_time
        self.free -= job.processors
        self.running.append(job)

    def release(self, job: Job) -> None:
        self.running.remove(job)
        self.free += job.processors

    def next_instant(self) -> None:
        """Go to the next instant with all its completions, then its submissions."""
        times = [job.end for job in self.running] + [job.submit for job in self.to_come[:1]]
        self.now = min(times)
        for job in [job for job in self.running if job.end == self.now]:
            self.release(job)
        while self.to_come and self.to_come[0].submit == self.now:
            self.queue.append(self.to_come.pop(0))

    def slot(self, needed: int) -> int:
        """Return the earliest predicted end at which ``needed`` processors are free."""
        free = self.free
        for job in sorted(self.running, key=lambda job: job.start + job.estimate):
            free += job.processors
            if free >= needed:
                return job.start + job.estimate
        raise AssertionError("the job is wider than the machine")


def accasim_easy(jobs: Sequence[Job], processors: int) -> None:
    """Keep the head's first slot and do not try it before; start whatever else fits, whenever the head is due."""
    machine = _Machine(jobs, processors)
    slot = -1
    while machine.to_come or machine.queue:
        machine.next_instant()
        while machine.queue and machine.now >= slot:
            head = machine.queue[0]
            if head.processors > machine.free:
                slot = machine.slot(head.processors) if slot < 0 else slot
                break
            machine.start(head)
            slot = -1
        for job in machine.queue[1:]:
            if job.processors <= machine.free:
                machine.start(job)


def batsched_easy_fast(jobs: Sequence[Job], processors: int) -> None:
    """Let a job go ahead only if it ends by the slot that the head got when it became the head."""
    machine = _Machine(jobs, processors)
    head: Job | None = None
    slot = math.inf
    while machine.to_come or machine.queue:
        machine.next_instant()
        while machine.queue and machine.queue[0].processors <= machine.free:
            machine.start(machine.queue[0])
        if machine.queue and machine.queue[0] is not head:
            head = machine.queue[0]
            slot = machine.slot(head.processors)
        for job in machine.queue[1:]:
            if job.processors <= machine.free and machine.now + job.estimate <= slot:
                machine.start(job)


def rlscheduler(jobs: Sequence[Job], processors: int, score: Callable[[Job], float], backfill: bool) -> None:
    """Choose a job and hold it until it fits; one event at a time, submissions first."""
    machine = _Machine(jobs, processors)

    def one_event() -> None:
        # Of jobs that end together the first in the list is released first; each sort leaves its order to the next.
        machine.running.sort(key=lambda job: job.end)
        ending = machine.running[0] if machine.running else None
        if machine.to_come and (ending is None or machine.to_come[0].submit <= ending.end):
            machine.now = max(machine.now, machine.to_come[0].submit)
            machine.queue.append(machine.to_come.pop(0))
        elif ending is not None:
            machine.now = max(machine.now, ending.end)
            machine.release(ending)

    while machine.to_come or machine.queue:
        while not machine.queue:
            one_event()
        chosen = min(machine.queue, key=score)
        slot = -1
        if backfill and chosen.processors > machine.free:
            machine.running.sort(key=lambda job: job.start + job.estimate)
            slot = machine.slot(chosen.processors)
        while chosen.processors > machine.free:
            for job in list(machine.queue) if backfill else []:
                if job.processors <= machine.free and machine.now + job.estimate < slot:
                    machine.start(job)
            one_event()
        machine.start(chosen)
