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
from policyfactory.policy.policy import Policy
from policyfactory.simulate.rlscheduler import CommittedEpisodes, CommittedLog, starts_by_formula
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.windows import starts_rlscheduler

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))
GROUP = "rules of RLScheduler"
EPISODES, JOBS = 64, 256
STEPS = {False: 200_000, True: 350_000}
DECISIONS = 500_000


@pytest.fixture(scope="module")
def log() -> CommittedLog:
    path = SHARED / "traces" / "lublin_256.swf"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return CommittedLog.of_swf(read_swf(path))


def rate_of(benchmark: Any, run: Callable[[], int], rounds: int = 3) -> float:
    """Return how many a CPU second the fastest round makes; ``run`` returns how many it made."""
    made = [run()]
    benchmark.pedantic(lambda: made.append(run()), rounds=rounds)
    return float(made[0]) / benchmark.stats.stats.min if benchmark.enabled else 0.0


@pytest.mark.benchmark(group="RLScheduler's environment", timer=time.process_time)
@pytest.mark.parametrize("backfill", [False, True])
def test_steps(benchmark: Any, log: CommittedLog, backfill: bool) -> None:  # noqa: FBT001 (a parameter)
    episodes = CommittedEpisodes(log, EPISODES, JOBS, backfill=backfill)
    first = starts_rlscheduler(len(log), JOBS, EPISODES, "0")

    def run() -> int:
        random, steps = np.random.default_rng(0), 0
        episodes.reset(first)
        while not (over := episodes.over).all():
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
def test_decisions(benchmark: Any, log: CommittedLog, formula: str, backfill: bool) -> None:  # noqa: FBT001
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
