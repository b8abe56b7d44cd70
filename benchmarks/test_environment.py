"""Decisions per CPU second with all that is seen of them, on one core, against the plain twin in the same run.

    pytest benchmarks/test_environment.py --benchmark-enable

64 episodes of 256 jobs of the log Lublin-1, side by side; episodes that are over begin anew, and that counts. One agent
takes the job of the least p q, looked up in what it is shown, the other one at random.
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
from policyfactory.search.environment.episodes import EpisodeOptions, Episodes
from policyfactory.simulation.rules import Rules
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))
COUNT, JOBS, FLOOR = 64, 256, 0.35
GROUP = "environment"
SMALL = os.environ.get("POLICYFACTORY_BENCH_SMALL") == "1"

Agent = Callable[[Episodes, np.random.Generator], np.ndarray]


@pytest.fixture(scope="module")
def lublin() -> Workload:
    path = SHARED / "traces" / "lublin_256.swf"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return read(path, estimate_missing="runtime")


def least_area(episodes: Episodes, _: np.random.Generator) -> np.ndarray:
    # No more slots are looked at than show a job.
    used = int(episodes.mask.any(axis=0).nonzero()[0][-1]) + 1
    shown = episodes.view.jobs[:, :used]
    return np.where(episodes.mask[:, :used], shown[:, :, 1] + shown[:, :, 2], np.inf).argmin(axis=1)


def at_random(episodes: Episodes, rng: np.random.Generator) -> np.ndarray:
    used = int(episodes.mask.any(axis=0).nonzero()[0][-1]) + 1
    return (rng.random((len(episodes), used), dtype=np.float32) * episodes.mask[:, :used]).argmax(axis=1)


def begin(episodes: Episodes, rng: np.random.Generator) -> None:
    for at in np.flatnonzero(episodes.done).tolist():
        episodes.begin(at, int(rng.integers(episodes.first, episodes.last + 1)))


def seconds_a_step(episodes: Episodes, agent: Agent, steps: int) -> tuple[float, float]:
    """Return CPU seconds a decision: of the environment alone, and with the agent's choices."""
    rng, own = np.random.default_rng(1), 0.0
    begin_all = time.process_time()
    for _ in range(steps):
        actions = agent(episodes, rng)
        since = time.process_time()
        episodes.step(actions)
        begin(episodes, rng)
        own += time.process_time() - since
    return own / (steps * len(episodes)), (time.process_time() - begin_all) / (steps * len(episodes))


@pytest.mark.benchmark(group=GROUP, timer=time.process_time)
@pytest.mark.parametrize("agent", [least_area, at_random], ids=["least p q", "random"])
@pytest.mark.parametrize("backfill", ["easy", "none"])
def test_decisions(benchmark: Any, lublin: Workload, backfill: str, agent: Agent) -> None:
    episodes = Episodes(lublin, EpisodeOptions(jobs=JOBS, rules=Rules(backfill=backfill)), COUNT)
    rng = np.random.default_rng(0)
    for at in range(COUNT):
        episodes.begin(at, int(rng.integers(episodes.first, episodes.last + 1)))
    steps = 50 if SMALL else 1000
    seconds_a_step(episodes, agent, 20)
    alone, _ = benchmark.pedantic(seconds_a_step, (episodes, agent, steps), rounds=1)
    if benchmark.enabled:
        alone = min(alone, *(seconds_a_step(episodes, agent, steps)[0] for _ in range(4)))
        plain = plain_seconds(lublin, backfill)
        what = f"mode standard, backfilling {backfill}, {'least p q' if agent is least_area else 'random'}"
        record(GROUP, what, 1e-6 / alone, "M decisions/CPU s", floor=FLOOR, ratio=plain / alone, to="the plain twin")


def plain_seconds(log: Workload, backfill: str) -> float:
    """Return CPU seconds a decision of the twin, which is asked for the first job that can be chosen."""
    from naive import episodes as naive
    from naive.online_cases import plain_jobs

    window = log.select(slice(4000, 4000 + JOBS), rebase=True)
    since, count = time.process_time(), 0
    episode = naive.begin(plain_jobs(window, Rules()), log.machine, 0, backfills=backfill == "easy")
    while episode.seen is not None:
        episode.step(episode.seen.allowed[0])
        count += 1
    return (time.process_time() - since) / count


@pytest.mark.benchmark(group=GROUP, timer=time.process_time)
@pytest.mark.parametrize("mode", ["standard", "paper"])
def test_vector_environment(benchmark: Any, lublin: Workload, mode: str) -> None:
    """With what Gymnasium asks for besides: copies of the observations, infos, rewards and windows drawn anew."""
    pytest.importorskip("gymnasium", reason="pip install 'policyfactory[rl]'")
    from policyfactory.search.environment.env import SchedulingVectorEnv

    vector = SchedulingVectorEnv(lublin, mode=mode, num_envs=COUNT, jobs=JOBS)
    vector.reset(seed=1)
    steps = 20 if SMALL else 500

    def run() -> float:
        own = 0.0
        for _ in range(steps):
            actions = vector.action_masks().argmax(axis=1)
            since = time.process_time()
            vector.step(actions)
            own += time.process_time() - since
        return own / (steps * COUNT)

    run()
    alone = benchmark.pedantic(run, rounds=1)
    if benchmark.enabled:
        record(GROUP, f"Gymnasium's vector environment, mode {mode}", 1e-6 / alone, "M decisions/CPU s")
