"""Small random workloads, and the plain simulator run on a Workload, for the tests of the online engine."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from naive.network import random_network
from naive.network import score as network_score
from naive.online import Job, Online, Score
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.simulation.simulate import Rules
from policyfactory.workload.jobs import Workload

Plain = Callable[[np.float64, np.float64, np.float64, np.float64, np.float64], np.float64]


def _log(function: Callable[[float], float], value: float) -> float:
    # The C library's, as in the kernels: numpy's own can differ in the last digit.
    return function(value) if value > 0 else (-math.inf if value == 0 else math.nan)


# The same arithmetic twice: as the package's formula and as Python on numpy's doubles (1/0 is inf, no exception).
FORMULAS: dict[str, Plain] = {
    "r": lambda p, q, r, w, f: r,
    "-r": lambda p, q, r, w, f: -r,
    "p": lambda p, q, r, w, f: p,
    "-p": lambda p, q, r, w, f: -p,
    "q": lambda p, q, r, w, f: q,
    "-q": lambda p, q, r, w, f: -q,
    "p*q": lambda p, q, r, w, f: p * q,
    "-p/q": lambda p, q, r, w, f: -p / q,
    "log10(r)*q": lambda p, q, r, w, f: _log(math.log10, r) * q,
    "p*q + 5*r": lambda p, q, r, w, f: p * q + 5 * r,
    "-(w + p)/p": lambda p, q, r, w, f: -(w + p) / p,
    "(w + p)/p": lambda p, q, r, w, f: (w + p) / p,
    "-(w/p)**3*q": lambda p, q, r, w, f: -((w / p) * (w / p) * (w / p)) * q,
    "-w/(log2(q)*p)": lambda p, q, r, w, f: -w / (_log(math.log2, q) * p),
    "p - 3*w": lambda p, q, r, w, f: p - 3 * w,
    "p/q - 4*min(1, max(0, f - q + 1))": lambda p, q, r, w, f: p / q - 4 * min(1.0, max(0.0, f - q + 1)),
    "(f - 3)*q + w/(f + p)": lambda p, q, r, w, f: (f - 3) * q + w / (f + p),
}
TIMED = tuple(text for text in FORMULAS if {"w", "f"} & set(text))
STATIC = tuple(text for text in FORMULAS if text not in TIMED)


def policy(text: str, rule: str = "window-start") -> Policy:
    """Return the policy of a formula."""
    return Policy(name=text, formula=text, epoch=Epoch(rule))


# The last is static: a network of what never changes.
NETWORKS = (
    Policy.from_network(random_network(1)),
    Policy.from_network(random_network(2, (2, 9, 1), ("w/(p + 1)", "min(1, max(0, f - q + 1))"))),
    Policy.from_network(random_network(3, (3, 4, 1), ("log10(p)", "q/m", "0.5"))),
)


@dataclasses.dataclass(frozen=True)
class Shape:
    """How a random workload looks; small numbers everywhere, so that ties are the rule."""

    jobs: int = 30
    machine: int = 8
    gap: int = 6
    longest: int = 12
    overruns: bool = True
    ticks: int = 1


def random_workload(rng: np.random.Generator, shape: Shape = Shape()) -> Workload:
    """Return a workload with simultaneous events, jobs of no run time, early ends and (if asked for) overruns."""
    n = int(rng.integers(1, shape.jobs + 1))
    machine = int(rng.integers(1, shape.machine + 1))
    submit = np.cumsum(rng.integers(0, shape.gap, n) * (rng.random(n) < 0.7))
    request = rng.integers(1, shape.longest + 1, n)
    run_time = rng.integers(0, shape.longest + 1, n)
    run_time = np.where(rng.random(n) < 0.3, request, run_time)
    if not shape.overruns:
        run_time = np.minimum(run_time, request)
    width = np.minimum(rng.geometric(0.35, n), machine)
    width = np.where(rng.random(n) < 0.1, machine, width)
    unknown = np.full(n, -1)
    ids = rng.permutation(n) + 1 if rng.random() < 0.5 else np.arange(1, n + 1)
    return Workload("random", machine, ids, submit, run_time, request, width, unknown, unknown, ticks=shape.ticks)


def random_rules(rng: np.random.Generator, backfill: str, compatibility: str = "none") -> Rules:
    """Return rules that the plain simulator has as well."""
    own = policy(str(rng.choice(list(FORMULAS)))) if backfill == "easy" and rng.random() < 0.4 else None
    return Rules(
        backfill=backfill,
        decide_by=str(rng.choice(["request", "runtime", "prediction"])),
        threshold=float(rng.choice([math.inf, 0, 2.5, 10, 30])),
        ties=str(rng.choice(["fifo", "lifo"])),
        overrun=str(rng.choice(["run", "kill"])),
        backfill_policy=own,
        compatibility=compatibility,
    )


def plain_of(policy_: Policy, machine: int) -> Plain:
    """Return the policy as a plain function of p, q, r, w and f."""
    network = policy_.network
    if network is None:
        return FORMULAS[policy_.formula]

    def plain(*values: np.float64) -> np.float64:
        p, q, r, w, f = map(float, values)
        return np.float64(network_score(network, {"p": p, "q": q, "r": r, "w": w, "f": f, "m": machine}))

    return plain


def score_of(workload: Workload, policy_: Policy, since: int | None = None) -> Score:
    """Return the policy as a plain function of a job; r counts from ``since``, or the workload's first submission."""
    plain, ticks = plain_of(policy_, workload.machine), workload.ticks
    first = int(workload.submit.min()) if since is None else since
    from_oldest = policy_.epoch.rule == "oldest-waiting"

    def score(job: Job, now: int, oldest: int, free: int) -> float:
        r = (job.submit - (oldest if from_oldest else first)) / ticks
        p, w = job.estimate / ticks, (now - job.submit) / ticks
        return float(plain(*(np.float64(value) for value in (p, job.processors, r, w, free))))

    return score


@dataclasses.dataclass(frozen=True)
class Extra:
    """What the rules may ask for besides: predicted run times, the recorded order of simultaneous submissions."""

    prediction: np.ndarray | None = None
    tie_rank: np.ndarray | None = None


def plain_jobs(workload: Workload, rules: Rules, extra: Extra = Extra()) -> list[Job]:
    """Return the jobs for the plain simulator."""
    run_time = workload.run_time
    if rules.overrun == "kill":
        run_time = np.minimum(run_time, workload.requested_time)
    estimates = {"request": workload.requested_time, "runtime": run_time, "prediction": extra.prediction}
    # Of ocst: the last submitted has the least rank.
    given = np.zeros(len(workload)) if extra.tie_rank is None else extra.tie_rank
    newest_first = np.lexsort((-workload.job_id, given, -workload.submit))
    tie_rank = np.empty(len(workload), dtype=np.int64)
    tie_rank[newest_first] = np.arange(len(workload))
    columns = (workload.job_id, workload.submit, run_time, estimates[rules.decide_by], workload.processors, tie_rank)
    return [Job(*(int(value) for value in row)) for row in zip(*columns, strict=True)]


def plain_rules(rules: Rules) -> dict[str, str]:
    """Return what the plain simulator is told of the rules, but for the orders and the threshold."""
    ocst = rules.compatibility == "ocst"
    return {
        "backfill": rules.backfill,
        "ties": "tie_rank" if ocst else rules.ties,
        "extra": "partial" if ocst else "full",
    }


def own_order(policy_: Policy, rules: Rules) -> Policy | None:
    """Return the order of the candidates for backfilling if it is not simply the queue's."""
    return policy_ if rules.compatibility == "ocst" and rules.backfill_policy is None else rules.backfill_policy


def plain_schedule(
    workload: Workload, policy_: Policy, rules: Rules, extra: Extra = Extra()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return start, end and backfilled of each row of ``workload`` by the plain simulator."""
    jobs, own = plain_jobs(workload, rules, extra), own_order(policy_, rules)
    online = Online(
        jobs,
        workload.machine,
        score_of(workload, policy_),
        threshold=rules.threshold * workload.ticks,
        backfill_score=None if own is None else score_of(workload, own),
        **plain_rules(rules),
    )
    with np.errstate(all="ignore"):
        online.run()
    return columns_of(jobs)


def columns_of(jobs: list[Job]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return start, end and backfilled."""
    start, end, backfilled = zip(*((job.start, job.end, job.backfilled) for job in jobs), strict=True)
    return np.array(start), np.array(end), np.array(backfilled)
