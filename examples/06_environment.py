# %% [markdown]
# # Agents that decide
#
# The simulator as a Gymnasium environment (`pip install 'policyfactory[test-rl]'`): an agent picks job after job, first
# at random, then by a policy, then as MaskablePPO of sb3-contrib learns to in a minute.

# %%
import os
import time

import numpy as np

import policyfactory as pf
from policyfactory.search.environment.goals import judge_guards

try:
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import VecNormalize

    from policyfactory.search.environment.env import SchedulingEnv
except ImportError as missing:
    raise SystemExit(f"{missing}; this example needs more: pip install 'policyfactory[test-rl]'") from None

log = pf.default_workload()
test = SchedulingEnv(log, jobs=128, lead_in=128, starts=(6000, 9000), goal="mean_bsld")
rng = np.random.default_rng(1)


def play(agent, windows=20):
    """The goal's mean over windows, which are the same for every agent, and the guards'."""
    ends = []
    for seed in range(windows):
        observation, info = test.reset(seed=seed)
        while "goal" not in info:
            observation, _, _, _, info = test.step(agent(observation))
        ends.append(info)
    guards = {name: np.mean([end["guards"][name] for end in ends]) for name in ends[0]["guards"]}
    return np.mean([end["goal"] for end in ends]), guards


random, _ = play(lambda _: rng.choice(np.flatnonzero(test.action_masks())))
saf, baseline = play(lambda _: np.argmin(test.scores("SAF")))
print(f"mean bounded slowdown: at random {random:.1f}, SAF {saf:.1f}")

# %% [markdown]
# It learns on windows from earlier in the log. Its reward is what waiting costs, as it accrues decision by decision;
# the sum over an episode is minus the goal.


# %%
class JobByJob(BaseFeaturesExtractor):
    """One small network looks at each job alone: what it says is the preference for the job's slot."""

    def __init__(self, space):
        slots, inputs = space["jobs"].shape
        super().__init__(space, slots)
        sizes = zip((inputs, 32, 16, 8), (32, 16, 8, 1), strict=True)
        layers = [layer for size in sizes for layer in (torch.nn.Linear(*size), torch.nn.ReLU())]
        self.network = torch.nn.Sequential(*layers[:-1])

    def forward(self, seen):
        return self.network(seen["jobs"]).squeeze(-1)


class Until(BaseCallback):
    """Stops after so many seconds."""

    def __init__(self, seconds):
        super().__init__()
        self.end = time.monotonic() + seconds

    def _on_step(self):
        return time.monotonic() < self.end


given = {"workload": log, "jobs": 128, "lead_in": 128, "starts": (128, 5000), "reward": "interval"}
train = VecNormalize(make_vec_env(SchedulingEnv, 8, seed=1, env_kwargs=given), norm_obs=False, gamma=0.99)
torch.set_num_threads(1)  # the network is small: more threads wait for each other
network = {"features_extractor_class": JobByJob, "net_arch": {"pi": [], "vf": [64]}}
ppo = MaskablePPO("MultiInputPolicy", train, 1e-3, 128, 256, gamma=0.99, seed=1, device="cpu", policy_kwargs=network)
ppo.policy.action_net = torch.nn.Identity()
ppo.learn(10**9, callback=Until(float(os.environ.get("EXAMPLE_SECONDS", "60"))))
learned, guards = play(lambda observation: ppo.predict(observation, None, None, True, test.action_masks())[0])
print(f"MaskablePPO {learned:.1f} after {ppo.num_timesteps:,} decisions")

# %% [markdown]
# A goal can be met in ways that nobody wants, so the guards stand beside it: which of them are worse than SAF's by more
# than their bands?

# %%
for breach in judge_guards(guards, baseline):
    print("beside SAF:", breach)
