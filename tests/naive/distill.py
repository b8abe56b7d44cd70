"""The plain twins of a distillation: the queues at decisions, and how far two orders agree, one pair at a time."""

from __future__ import annotations

import itertools
from typing import Any

from naive.network import score
from naive.online import Job, Online
from naive.rlscheduler import Twin
from policyfactory.policy.network import Network
from policyfactory.workload.jobs import Workload

# A queue at a decision: the jobs (p, q, w) in the order of submission, and the processors free.
Decision = tuple[list[tuple[float, float, float]], float]


class Watched(Online):
    """The simulator, watched as each pass begins."""

    seen: list[Decision]

    def schedule(self) -> None:
        free = self.free()
        waiting = sorted(self.queue, key=lambda job: (job.submit, job.id))
        if len(waiting) > 1 and any(job.processors <= free for job in waiting):
            rows = [(float(job.estimate), float(job.processors), float(self.now - job.submit)) for job in waiting]
            self.seen.append((rows, float(free)))
        super().schedule()


def decisions(workload: Workload, network: Network) -> list[Decision]:
    """Return the queues at which a network of mode standard decides, in the order of time."""
    columns = (workload.submit, workload.run_time, workload.requested_time, workload.processors)
    jobs = [Job(number, *map(int, row)) for number, row in enumerate(zip(*columns, strict=True))]

    def value(job: Job, now: int, _: int, free: int) -> float:
        known = {"p": job.estimate, "q": job.processors, "w": now - job.submit, "m": workload.machine, "f": free}
        return score(network, {"r": 0.0, **{name: float(number) for name, number in known.items()}})

    online = Watched(jobs, workload.machine, value)
    online.seen = []
    online.run()
    return online.seen


def committed_decisions(workload: Workload, network: Network, *, backfill: bool) -> list[Decision]:
    """Return the queues, as they are shown, at which a network of mode paper decides among two jobs or more."""
    columns = (workload.submit, workload.run_time, workload.requested_time, workload.processors)
    jobs: list[dict[str, Any]] = [
        {"number": number, "submit": submit, "run": run, "request": request, "size": size, "nodes": size, "shares": []}
        for number, (submit, run, request, size) in enumerate(zip(*(one.tolist() for one in columns), strict=True))
    ]
    twin, seen, over = Twin(jobs, workload.machine, backfill=backfill), [], False
    while not over:
        shown = twin.shown()
        rows = [(float(job["request"]), float(job["size"]), float(twin.now - job["submit"])) for job in shown]
        if len(shown) > 1:
            seen.append((rows, float(twin.free)))
        names = {"m": float(workload.machine), "f": float(twin.free), "r": 0.0}
        values = [score(network, {**dict(zip("pqw", row, strict=True)), **names}) for row in rows]
        over = twin.choose(shown[values.index(min(values))])
    return seen


def agreement(queues: list[list[tuple[float, float]]]) -> tuple[float, float, float]:
    """Return the share of pairs ordered alike, Kendall's tau, and the share of decisions with the same job first.

    ``queues``: of each decision, the values of the network and of the formula for each job, lower runs first.
    """
    alike, every, taus, same = 0, 0, [], 0
    for jobs in queues:
        own, here = 0, 0
        for (one, other), (first, second) in zip(
            itertools.combinations(jobs, 2), itertools.combinations(range(len(jobs)), 2), strict=True
        ):
            if one[0] == other[0]:
                continue
            here += 1
            own += ((one[0], first) < (other[0], second)) == ((one[1], first) < (other[1], second))
        alike, every = alike + own, every + here
        if here:
            taus.append((own - (here - own)) / here)
        leaders = [min(range(len(jobs)), key=lambda at, which=which: (jobs[at][which], at)) for which in (0, 1)]
        same += leaders[0] == leaders[1]
    return alike / every, sum(taus) / len(taus), same / len(queues)
