"""Small random workloads that hold what goes wrong first, and each kernel compared with its plain twin on one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from naive import sc17, trials
from naive.allocation import allocate as plain_allocate
from naive.online import run_timetable
from naive.online_cases import (
    FORMULAS,
    STATIC,
    TIMED,
    Extra,
    columns_of,
    own_order,
    plain_jobs,
    plain_rules,
    plain_schedule,
    policy,
    random_rules,
    score_of,
)
from policyfactory.engine.metrics import allocate
from policyfactory.engine.trials import front_values, occupy, order_values, pose
from policyfactory.policy.store import CATALOGUE
from policyfactory.simulation.compat import OWN_KEYS, simulate_sc17
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.simulation.tuning.tuner import SwitchingSimulation
from policyfactory.workload.jobs import Workload

Rng = np.random.Generator

# What every thousand workloads hold, by the share of workloads in which it is at the least.
FEATURES: dict[str, tuple[float, Callable[[Workload], bool]]] = {
    "equal submit times": (0.5, lambda jobs: len(np.unique(jobs.submit)) < len(jobs)),
    "equal jobs": (0.2, lambda jobs: len(np.unique(_shapes(jobs), axis=0)) < len(jobs)),
    "a run time of zero": (0.3, lambda jobs: bool((jobs.run_time == 0).any())),
    "a job as large as the machine": (0.3, lambda jobs: bool((jobs.processors == jobs.machine).any())),
    "a request below the run time": (0.3, lambda jobs: bool((jobs.requested_time < jobs.run_time).any())),
    "a request above the run time": (0.5, lambda jobs: bool((jobs.requested_time > jobs.run_time).any())),
    "a machine of one processor": (0.08, lambda jobs: jobs.machine == 1),
    "one job": (0.01, lambda jobs: len(jobs) == 1),
    "ids against the submit order": (0.2, lambda jobs: bool((np.diff(jobs.job_id) < 0).any())),
    "a fine clock": (0.1, lambda jobs: jobs.ticks > 1),
}


def _shapes(jobs: Workload) -> np.ndarray:
    return np.stack((jobs.submit, jobs.run_time, jobs.requested_time, jobs.processors), axis=1)


def small_workload(rng: Rng, least: int = 1) -> Workload:
    """Return ``least`` to 24 jobs; times of a few seconds, so that what ends, is submitted and is due coincides."""
    n = least + int(rng.integers(0, 24 - least + 1) if rng.random() < 0.9 else rng.integers(0, 3))
    machine = 1 if rng.random() < 0.12 else int(rng.integers(2, 11))
    longest = int(rng.choice([2, 5, 12]))
    submit = np.cumsum(rng.integers(0, rng.choice([1, 2, 4, 8]), n) * (rng.random(n) < 0.7))
    request = rng.integers(1, longest + 1, n)
    run_time = np.where(rng.random(n) < 0.3, request, rng.integers(0, longest + 3, n))
    run_time = np.where(rng.random(n) < 0.08, 0, run_time)
    width = np.where(rng.random(n) < 0.12, machine, np.minimum(rng.geometric(0.4, n), machine))
    if rng.random() < 0.2:
        # One job again and again.
        submit, request, run_time, width = submit // 4, *(column[:1].repeat(n) for column in (request, run_time, width))
    ids = rng.permutation(n) + 1 if rng.random() < 0.5 else np.arange(1, n + 1)
    unknown = np.full(n, -1)
    ticks = 3 if rng.random() < 0.2 else 1
    return Workload("small", machine, ids, submit, run_time, request, width, unknown, unknown, ticks=ticks)


def _online(formulas: tuple[str, ...], backfill: str, compatibility: str = "none") -> Callable[[Rng, Workload], None]:
    def compare(rng: Rng, workload: Workload) -> None:
        rules = random_rules(rng, backfill, compatibility)
        believed = rng.integers(0, 15, len(workload))
        extra = Extra(believed)
        if compatibility == "ocst":
            rules = dataclasses.replace(rules, overrun="kill")
            tie_rank = rng.permutation(len(workload)) if rng.random() < 0.5 else None
            extra = Extra(np.maximum(believed, workload.run_time), tie_rank)
        chosen = policy(str(rng.choice(formulas)), "oldest-waiting" if rng.random() < 0.2 else "window-start")
        schedule = simulate(workload, chosen, rules, extra.prediction, extra.tie_rank)
        result = (schedule.start, schedule.end, schedule.backfilled)
        _equal(result, plain_schedule(workload, chosen, rules, extra), workload, f"{chosen.formula} {rules}")
        _allocated(schedule.start, schedule.end, workload)

    return compare


def _allocated(start: np.ndarray, end: np.ndarray, workload: Workload) -> None:
    """Compare the processor numbers."""
    by_start, by_end = np.argsort(start, kind="stable"), np.argsort(end, kind="stable")
    failed, first, stop, low, high = allocate(start, end, workload.processors, workload.machine, by_start, by_end)
    assert failed == -1
    result = [[(int(low[at]), int(high[at])) for at in range(a, b)] for a, b in zip(first, stop, strict=True)]
    lists = (start.tolist(), end.tolist(), workload.processors.tolist())
    assert result == plain_allocate(*lists, workload.machine)


def _switching(rng: Rng, workload: Workload) -> None:
    rules = random_rules(rng, "none" if rng.random() < 0.15 else "easy")
    if rng.random() < 0.5:
        rules = dataclasses.replace(rules, threshold=math.inf)
    thresholds = rng.choice([math.inf, 0.0, 3.0, 12.0], 3)
    policies = [
        dataclasses.replace(policy(str(text)), threshold=float(limit))
        for text, limit in zip(rng.choice(list(FORMULAS), 3), thresholds, strict=True)
    ]
    edges = np.sort(rng.integers(0, int(workload.submit[-1]) + 20, int(rng.integers(2, 7))))
    choices = rng.integers(3, size=len(edges) - 1)
    extra = Extra(rng.integers(0, 15, len(workload)))
    timetable = []
    for since, arm in zip([-math.inf, *edges[1:-1].tolist()], choices, strict=True):
        limit = policies[arm].threshold if math.isinf(rules.threshold) else rules.threshold
        own = own_order(policies[arm], rules)
        own_score = None if own is None else score_of(workload, own)
        timetable.append((since, score_of(workload, policies[arm]), limit * workload.ticks, own_score))
    jobs = plain_jobs(workload, rules, extra)
    with np.errstate(all="ignore"):
        run_timetable(jobs, workload.machine, timetable, **plain_rules(rules))
    simulation = SwitchingSimulation(workload, policies, rules, extra.prediction)
    simulation.run_timetable(choices, edges)
    schedule = simulation.schedule("switched")
    result = (schedule.start, schedule.end, schedule.backfilled)
    _equal(result, columns_of(jobs), workload, f"{[one.formula for one in policies]} {edges} {choices} {rules}")


def _sc17(rng: Rng, workload: Workload) -> None:
    workload = dataclasses.replace(workload, ticks=1)
    decide_by, backfill = str(rng.choice(["request", "runtime"])), str(rng.choice(["none", "easy"]))
    rules = Rules(backfill=backfill, decide_by=decide_by, compatibility="sc17")
    name = str(rng.choice(list(OWN_KEYS)))
    jobs = []
    for at in range(len(workload)):
        request, run_time = float(workload.requested_time[at]), float(workload.run_time[at])
        x = request if decide_by == "request" else run_time
        submit = int(workload.submit[at] - workload.submit[0])
        jobs.append(sc17.Job(submit, run_time, x, x, int(workload.processors[at])))
    sc17.sc17(jobs, workload.machine, name, backfill == "easy")
    schedule = simulate_sc17(workload, CATALOGUE[name], rules)
    zero = int(workload.submit[0]) * 10**9
    times = np.array([[job.start, job.end] for job in jobs]).T
    start, end = np.rint(times * 1e9).astype(np.int64) + zero
    expected = (start, end, np.array([job.backfilled for job in jobs]))
    _equal((schedule.start, schedule.end, schedule.backfilled), expected, workload, f"{name} {rules}")


def _trials(rng: Rng, workload: Workload) -> None:
    scale = int(rng.choice([1, 1, 10**9]))
    p, q, r = workload.run_time * scale, workload.processors, (workload.submit - workload.submit[0]) * scale
    state = int(rng.integers(0, len(workload) - 1))
    for result, expected in zip(
        occupy(p[:state], q[:state], r[:state], workload.machine),
        trials.occupy(p[:state], q[:state], r[:state], workload.machine),
        strict=True,
    ):
        np.testing.assert_array_equal(result, expected)
    problem = pose(p, q, r, workload.machine, state, 10 * scale)
    n = len(problem.p)
    orders = rng.permuted(np.tile(np.arange(n, dtype=np.uint8), (int(rng.integers(1, 20)), 1)), axis=1)
    values, expected = np.empty(len(orders)), np.empty(len(orders))
    order_values(problem, orders, values)
    trials.order_values(problem, orders, expected)
    np.testing.assert_array_equal(values, expected)
    fronts, expected = np.empty((1, n)), np.empty((1, n))
    front_values(problem, orders[:1], fronts)
    trials.front_values(problem, orders[:1], expected)
    np.testing.assert_array_equal(fronts, expected)


def _equal(result: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...], workload: Workload, case: str) -> None:
    for what, one, other in zip(("start", "end", "backfilled"), result, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=f"{what} {case} {workload}")


# Kernel: the fewest jobs that it takes, the comparison.
KERNELS: dict[str, tuple[int, Callable[[Rng, Workload], None]]] = {
    "easy, static": (1, _online(STATIC, "easy")),
    "easy, timed": (1, _online(TIMED, "easy")),
    "strict order": (1, _online(tuple(FORMULAS), "none")),
    "conservative": (1, _online(tuple(FORMULAS), "conservative")),
    "ocst": (1, _online(tuple(FORMULAS), "easy", "ocst")),
    "switching": (1, _switching),
    "sc17": (17, _sc17),
    "trials": (2, _trials),
}
