"""Agents: policies step by step on real logs, and MaskablePPO of sb3-contrib."""

from __future__ import annotations

import numpy as np
import pytest

import policyfactory as pf
from environment_logs import busy_log
from policyfactory.search.environment.episodes import EpisodeOptions, Episodes
from support import extra_module, shared_path

LOGS = ("KTH-SP2-1996-2.1-cln", "SDSC-BLUE-2000-4.2-cln", "HPC2N-2002-2.1-cln")
FITTING = pf.Policy("FITTING", "p*q/(1 + 0.001*w) + 1e9*(1 - min(1, max(0, f - q + 1)))")


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_policies_step_by_step_on_a_real_log(name: str) -> None:
    log = pf.read(shared_path(f"traces/{name}.swf.gz"))[:12_000]
    episodes = Episodes(log, EpisodeOptions(jobs=1500))
    for policy in ("SAF", "WFP3", FITTING):
        for first in (0, 4321, 10_500):
            episodes.begin(0, first)
            decisions = 0
            while not episodes.done[0]:
                episodes.step(np.array([np.argmin(episodes.scores(policy))]))
                decisions += 1
            whole = pf.simulate(log.select(slice(first, first + 1500), rebase=True), policy)
            assert episodes.schedule().start.tolist() == whole.start.tolist()
            assert decisions > 20


def test_masked_ppo_learns_without_a_masked_choice() -> None:
    contrib = extra_module("sb3_contrib", "test-rl")
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    from policyfactory.search.environment.env import SchedulingEnv

    class Watch(BaseCallback):
        replaced, ends = 0, 0

        def _on_step(self) -> bool:
            self.replaced += sum(info["replaced"] for info in self.locals["infos"])
            self.ends += sum("guards" in info for info in self.locals["infos"])
            return True

    options = {"workload": busy_log(), "jobs": 30, "lead_in": 10, "reward": "interval"}
    envs = make_vec_env(SchedulingEnv, 2, seed=1, env_kwargs=options)
    model = contrib.MaskablePPO("MultiInputPolicy", envs, n_steps=64, batch_size=64, n_epochs=2, seed=1, device="cpu")
    watch = Watch()
    model.learn(256, callback=watch)
    assert (watch.replaced, model.num_timesteps) == (0, 256)
    assert watch.ends > 3
