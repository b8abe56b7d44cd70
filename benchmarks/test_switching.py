"""Switching policies, periods on their own and the rules of ocst, as ratios to ``simulate`` in the same run.

    pytest benchmarks/test_switching.py --benchmark-enable -s

The ten static policies of the catalogue's twelve, a threshold of 40 h, the logs of test_easy.py.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

import numpy as np
import pytest
from test_easy import LOGS, read

from floors import hold, record
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.simulation.tuning.tuner import SwitchingSimulation, simulate_periods
from policyfactory.workload.jobs import Workload

STATIC = [resolve(name) for name in ("FCFS", "LCFS", "SPF", "LPF", "SQF", "LQF", "SRF", "LRF", "SAF", "LAF")]
TIMED = [resolve(name) for name in ("LEXP", "SEXP")]
RULES = Rules(threshold=144000)
GROUP = "switching policies"
LENGTHS = {"week": 7 * 86400, "day": 86400}

pytestmark = pytest.mark.skipif("not config.getoption('--benchmark-enable')")


@pytest.fixture(scope="module")
def logs() -> dict[str, Workload]:
    return {name: read(name).select(slice(None), rebase=True) for name in LOGS}


def seconds(run: Callable[[], object], rounds: int = 5) -> float:
    """Return the CPU time of the fastest of some runs (of one, in CI)."""
    times = []
    for _ in range(1 if os.environ.get("CI") == "true" else rounds):
        before = time.process_time()
        run()
        times.append(time.process_time() - before)
    return min(times)


def plain(workload: Workload, policies: list[Policy], rules: Rules = RULES) -> float:
    """Return the time of one simulation of each policy."""
    return sum(seconds(lambda policy=policy: simulate(workload, policy, rules)) for policy in policies)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("log", LOGS)
def test_switching(logs: dict[str, Workload], log: str, length: str) -> None:
    workload = logs[log]
    edges = np.arange(0, int(workload.submit[-1]) + LENGTHS[length], LENGTHS[length])
    choices = np.random.default_rng(1).integers(len(STATIC), size=len(edges) - 1)
    simulation = SwitchingSimulation(workload, STATIC, RULES)

    def timetable() -> None:
        simulation.reset()
        simulation.run_timetable(choices, edges)

    def steps() -> None:
        simulation.reset()
        for arm, until in zip(choices, [*edges[1:-1].tolist(), 1 << 62], strict=True):
            simulation.run(int(arm), until)

    timetable()
    one = plain(workload, STATIC) / len(STATIC)
    name, to = f"{log}, a switch a {length}", "one policy, simulated"
    # A change of policy is three calls of kernels from Python: some forty microseconds, as long as a day takes.
    least = 1 / (1.5 if length == "week" else 4)
    hold(f"{name}, by a timetable", one / seconds(timetable), least=least, group=GROUP, to=to)
    hold(f"{name}, step by step", one / seconds(steps), least=least, group=GROUP, to=to)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("log", LOGS)
def test_periods(logs: dict[str, Workload], log: str, length: str) -> None:
    workload = logs[log]
    edges = np.arange(0, int(workload.submit[-1]) + LENGTHS[length], LENGTHS[length])
    for kind, policies in (("static", STATIC), ("timed", TIMED)):
        simulate_periods(workload, policies, RULES, edges[:2])
        alone = seconds(lambda policies=policies: simulate_periods(workload, policies, RULES, edges), 3)
        ratio = plain(workload, policies) / alone
        name = f"{log}, each {length} alone, {kind}"
        # A period is called from Python: some twenty microseconds, as long as a day of KTH-SP2 takes.
        hold(name, ratio, least=1 / (1.2 if length == "week" else 2), group=GROUP, to="the log as a whole")


@pytest.mark.parametrize("threshold", [math.inf, 144000, 0], ids=str)
@pytest.mark.parametrize("log", LOGS)
def test_ocst(logs: dict[str, Workload], log: str, threshold: float) -> None:
    workload = logs[log]
    rules = Rules(compatibility="ocst", threshold=threshold)
    times = {
        policy.name: seconds(lambda policy=policy: simulate(workload, policy, rules), 3) for policy in STATIC + TIMED
    }
    slowest = max(times, key=times.__getitem__)
    mean = len(workload) * len(times) / sum(times.values())
    name, unit = f"{log}, threshold {threshold:g} s", "M jobs/CPU s"
    record("simulator, rules of ocst", f"{name}, 12 policies", mean / 1e6, unit, floor=1.5)
    slow = len(workload) / times[slowest] / 1e6
    record("simulator, rules of ocst", f"{name}, the slowest of 12", slow, unit, floor=1.0)
