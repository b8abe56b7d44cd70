"""The twin of `policyfactory.engine.compat.rlscheduler`: RLScheduler's clock, queue and view, as one would say them.

A job is a dictionary of number, submit, run, request, size (processors), nodes and shares (what is shown of it).
"""

from __future__ import annotations

from typing import Any

Job = dict[str, Any]
NEARLY_ONE = 1 - 1e-5


class Twin:
    """One window on an empty machine; `choose` a job again and again until it says that the episode is over."""

    def __init__(self, jobs: list[Job], nodes: int, *, backfill: bool) -> None:
        self.to_come = list(jobs)
        self.free = nodes
        self.backfill = backfill
        self.now = jobs[0]["submit"]
        self.queue = [self.to_come.pop(0)]
        self.running: list[Job] = []
        self.start: dict[int, int] = {}
        self.backfilled: set[int] = set()

    def choose(self, job: Job) -> bool:
        if job["nodes"] > self.free:
            shadow = self.shadow_time(job)
            while job["nodes"] > self.free:
                if self.backfill:
                    self.start_before(shadow)
                self.next_event()
        self.begin(job)
        while not self.queue:
            if not self.to_come:
                return True
            self.next_event()
        return False

    def begin(self, job: Job) -> None:
        self.start[job["number"]] = self.now
        self.free -= job["nodes"]
        self.queue.remove(job)
        self.running.append(job)

    def end(self, job: Job) -> int:
        return self.start[job["number"]] + job["run"]

    def requested_end(self, job: Job) -> int:
        return self.start[job["number"]] + job["request"]

    def next_event(self) -> None:
        self.running.sort(key=self.end)
        if self.to_come and (not self.running or self.to_come[0]["submit"] <= self.end(self.running[0])):
            self.queue.append(self.to_come.pop(0))
            self.now = max(self.now, self.queue[-1]["submit"])
        else:
            done = self.running.pop(0)
            self.now = max(self.now, self.end(done))
            self.free += done["nodes"]

    def shadow_time(self, job: Job) -> int:
        if not self.backfill:
            return 0
        self.running.sort(key=self.requested_end)
        free = self.free
        for one in self.running:
            free += one["nodes"]
            if free >= job["nodes"]:
                return self.requested_end(one)
        raise AssertionError("a job is larger than the machine")

    def start_before(self, shadow: int) -> None:
        self.queue.sort(key=lambda job: job["submit"])
        for job in list(self.queue):
            if self.now + job["request"] < shadow and job["nodes"] <= self.free:
                self.begin(job)
                self.backfilled.add(job["number"])

    def shown(self) -> list[Job]:
        self.queue.sort(key=lambda job: job["submit"])
        if len(self.queue) <= 128:
            return list(self.queue)
        # The program sorts by two of the SC'17 formulas first; all that is left of them is the order of such ties.
        self.queue.sort(key=lambda job: job["size"])
        self.queue.sort(key=lambda job: (job["request"], job["submit"]))
        short = list(self.queue)
        self.queue.sort(key=lambda job: (job["size"], job["submit"]))
        shown: list[Job] = []
        for pair in zip(short, self.queue, strict=True):
            shown += [number for number in dict.fromkeys(one["number"] for one in pair) if number not in shown]
        by_number = {job["number"]: job for job in self.queue}
        return [by_number[number] for number in shown[:128]]

    def rows(self) -> list[list[float]]:
        """What is shown of each of those jobs."""
        rows = []
        for job in self.shown():
            fits = NEARLY_ONE if job["nodes"] <= self.free else 1e-5
            rows.append([min((self.now - job["submit"]) / 43200, NEARLY_ONE), *job["shares"], fits])
        return rows
