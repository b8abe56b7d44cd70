"""Steps and decisions per CPU second by RLScheduler's rules, against the plain twin in the same run.

    pytest benchmarks/test_rlscheduler.py --benchmark-enable

A step is one random choice among the jobs shown, with all 128 x 8 numbers that are shown after it, in 64 windows of 256
jobs of Lublin-1 side by side; a decision is one choice by a formula over the whole queue, in windows of 1,024 jobs. The
original takes 1,630 steps a second without backfilling and 2,910 with it (docs/rlscheduler.md), and table IX of its
paper has 0.71 ms for SJF's choice among 128 jobs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from floors import record
from policyfactory.policy.network import Network, paper_inputs
from policyfactory.policy.policy import Policy
from policyfactory.search.environment.episodes import EpisodeOptions, PaperEpisodes
from policyfactory.simulation.compat import CommittedLog, starts_by_formula
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.windows import starts_rlscheduler

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))
GROUP = "rules of RLScheduler"
EPISODES, JOBS = 64, 256
STEPS = {False: 200_000, True: 350_000}
DECISIONS = 500_000
PRINTED = {"SJF": 0.71, "kernel network": 0.30}


@pytest.fixture(scope="module")
def log() -> CommittedLog:
    path = SHARED / "traces" / "lublin_256.swf"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return CommittedLog.of_swf(read_swf(path))


def rate_of(benchmark: Any, run: Callable[[], int]) -> float:
    """Return how many a CPU second the fastest round makes; ``run`` returns how many it made."""
    made = [run()]
    benchmark.pedantic(lambda: made.append(run()), rounds=3)
    return float(made[0]) / benchmark.stats.stats.min if benchmark.enabled else 0.0


@pytest.mark.benchmark(group="RLScheduler's environment", timer=time.process_time)
@pytest.mark.parametrize("backfill", [False, True])
def test_steps(benchmark: Any, log: CommittedLog, backfill: bool) -> None:  # noqa: FBT001 (a parameter)
    rules = Rules(backfill="easy" if backfill else "none")
    episodes = PaperEpisodes(log, EpisodeOptions(JOBS, rules=rules), EPISODES)
    first = starts_rlscheduler(len(log), JOBS, EPISODES, "0")

    def run() -> int:
        random, steps = np.random.default_rng(0), 0
        episodes.begin_all(first)
        while not (over := episodes.done).all():
            steps += int(np.count_nonzero(~over))
            episodes.step((random.random(EPISODES) * np.maximum(episodes.shown, 1)).astype(np.int64))
        return steps

    rate = rate_of(benchmark, run)
    plain = plain_rate(log, int(first[0]), backfill=backfill)
    if benchmark.enabled:
        how = "with backfilling" if backfill else "no backfilling"
        record(GROUP, f"random choices, all that is shown, {how}", rate, "steps/CPU s", floor=STEPS[backfill],
               ratio=rate / plain, to="the plain Python twin")  # fmt: skip


def plain_rate(log: CommittedLog, first: int, *, backfill: bool) -> float:
    """Return the steps a CPU second of the twin in one window."""
    from naive.rlscheduler import Twin

    rows = slice(first, first + JOBS)
    columns = (log.jobs.submit, log.jobs.run_time, log.jobs.request, log.processors, log.jobs.nodes)
    names = ("submit", "run", "request", "size", "nodes")
    jobs = [
        dict(zip(names, values, strict=True)) | {"number": at, "shares": shares}
        for at, (*values, shares) in enumerate(
            zip(*(column[rows].tolist() for column in columns), log.jobs.features[rows].tolist(), strict=True)
        )
    ]
    twin, random, over, steps = Twin(jobs, log.nodes, backfill=backfill), np.random.default_rng(0), False, 0
    begin = time.process_time()
    while not over:
        shown = len(twin.rows())
        over = twin.choose(twin.shown()[int(random.random() * shown)])
        steps += 1
    return steps / (time.process_time() - begin)


@pytest.mark.benchmark(group="RLScheduler's rules, a formula chooses", timer=time.process_time)
@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("formula", ["p*q", "log10(p) + 0.511*log10(q) - 0.132*(log10(w + 10) - 1)"])
def test_decisions(benchmark: Any, log: CommittedLog, formula: str, backfill: bool) -> None:  # noqa: FBT001 (a parameter)
    policy, first = Policy("P", formula), starts_rlscheduler(len(log), 1024, 10, "1")
    r = log.jobs.submit.astype(float)

    def run() -> int:
        _, backfilled = starts_by_formula(log, policy, first, 1024, backfill=backfill, r=r)
        return int(np.count_nonzero(~backfilled))

    rate = rate_of(benchmark, run)
    if benchmark.enabled:
        kind = "static" if policy.is_static else "with the wait"
        how = "with backfilling" if backfill else "no backfilling"
        floor = DECISIONS if policy.is_static and not backfill else None
        record(GROUP, f"choices of a formula, whole queue, {kind}, {how}", rate, "decisions/CPU s", floor=floor)


@pytest.mark.benchmark(group="RLScheduler, table IX", timer=time.process_time)
@pytest.mark.parametrize("name", ["SJF", "kernel network"])
def test_a_choice_among_128_jobs(benchmark: Any, name: str) -> None:
    # All come at once, and one after another is started: there are 128 of them on average.
    random, n = np.random.default_rng(0), JOBS
    run_time, unknown = random.integers(60, 86_400, n), np.full(n, -1)
    at_once = Workload(
        "at once", 1, np.arange(1, n + 1), np.zeros(n), run_time, run_time, np.ones(n), unknown, unknown
    )  # fmt: skip
    log = CommittedLog.of_workload(at_once)
    policy = Policy("SJF", "p")
    if name != "SJF":
        widths = [(8, 32), (32, 16), (16, 8), (8, 1)]
        layers = [(random.normal(size=shape), random.normal(size=shape[1])) for shape in widths]
        policy = Policy.from_network(Network.of("N", paper_inputs(log.longest_run), layers, mode="paper"))
    first, r = np.zeros(1, dtype=np.int64), np.zeros(n)

    def run() -> int:
        for _ in range(20):
            starts_by_formula(log, policy, first, n, backfill=False, r=r)
        return 20 * n

    rate = rate_of(benchmark, run)
    if benchmark.enabled:
        record(GROUP, f"table IX: {name} chooses among 128 jobs (the paper: {PRINTED[name]} ms)", 1e6 / rate, "us")


@pytest.mark.benchmark(group="RLScheduler, table IX", timer=time.process_time)
@pytest.mark.parametrize("preset", ["paper", "ours"])
def test_an_epoch_of_training(benchmark: Any, log: CommittedLog, preset: Any) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'policyfactory[rl]'")
    if preset == "paper" and not benchmark.enabled:
        pytest.skip("takes minutes: python -m pytest benchmarks --benchmark-enable")
    from policyfactory.search.reinforce.options import ppo_options
    from policyfactory.search.reinforce.rollouts import PaperWorld
    from policyfactory.search.reinforce.training import AgentTraining

    options = ppo_options(preset, iterations=1)
    starts = np.arange(len(log) - JOBS + 1)

    def run() -> None:
        world = PaperWorld(log, JOBS, options.windows * options.rollouts, backfill=False)
        AgentTraining(world, starts, options, 0, {"log": log.name}).train()

    benchmark.pedantic(run, rounds=1)
    if benchmark.enabled:
        beside = " (the paper: 123 s)" if preset == "paper" else ""
        seconds = benchmark.stats.stats.min
        record(GROUP, f"table IX: an epoch of training, {preset}{beside}", seconds, "CPU s")
