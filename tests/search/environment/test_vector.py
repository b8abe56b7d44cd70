"""The vector environment gives what as many single ones give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from environment_logs import busy_log
from policyfactory.core.errors import UsageError
from support import extra_module

gymnasium = extra_module("gymnasium", "rl")
SchedulingEnv = extra_module("policyfactory.search.environment.env", "rl").SchedulingEnv
SchedulingVectorEnv = extra_module("policyfactory.search.environment.env", "rl").SchedulingVectorEnv


def flat(value: Any) -> list[tuple[str, Any]]:
    """Return everything in an observation or info, with its place."""
    if isinstance(value, dict):
        return [(f"{name}.{place}", one) for name in sorted(value) for place, one in flat(value[name])]
    return [("", value)]


def same(one: Any, other: Any) -> None:
    first, second = flat(one), flat(other)
    assert [place for place, _ in first] == [place for place, _ in second]
    for (place, a), (_, b) in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=place)
        assert a.dtype == b.dtype, place


@pytest.mark.parametrize(
    "options",
    [{}, {"lead_in": 20, "reward": "interval"}, {"mode": "paper"}, {"goal": "user_max_bsld"}],
    ids=str,
)
def test_as_single_environments_side_by_side(options: dict[str, Any]) -> None:
    log, count = busy_log(), 5
    options = {"jobs": 30, **options}
    vector = SchedulingVectorEnv(log, num_envs=count, **options)
    single = gymnasium.vector.SyncVectorEnv([lambda: SchedulingEnv(log, **options)] * count)
    assert vector.observation_space == single.observation_space
    assert vector.action_space == single.action_space
    assert vector.metadata["autoreset_mode"] == single.metadata["autoreset_mode"]
    (seen, info), (expected, expected_info) = vector.reset(seed=7), single.reset(seed=7)
    same(seen, expected)
    same(info, expected_info)
    rng, ends = np.random.default_rng(1), 0
    for _ in range(150):
        masks = vector.action_masks()
        actions = np.array([rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in masks])
        if rng.random() < 0.1:
            actions = rng.integers(0, 30, count)
        step, expected_step = vector.step(actions), single.step(actions)
        for one, other in zip(step, expected_step, strict=True):
            same(one, other)
        ends += int(step[2].sum())
    assert ends > 5
    single.close()


def test_the_same_seed_gives_the_same_bytes() -> None:
    runs = []
    for _ in range(2):
        vector = SchedulingVectorEnv(busy_log(), num_envs=4, jobs=30, reward="interval")
        seen, info = vector.reset(seed=3)
        bytes_ = [value.tobytes() for _, value in flat(seen)]
        for _ in range(80):
            actions = np.argmax(info["action_mask"], axis=1)
            seen, rewards, _, _, info = vector.step(actions)
            bytes_ += [rewards.tobytes(), *(value.tobytes() for _, value in flat(seen))]
        runs.append(bytes_)
    assert runs[0] == runs[1]


def test_some_can_begin_anew_alone() -> None:
    vector = SchedulingVectorEnv(busy_log(), num_envs=3, jobs=30)
    before, _ = vector.reset(seed=1)
    which = np.array([False, True, False])
    after, info = vector.reset(seed=[9, 8, 7], options={"reset_mask": which, "start": 11})
    assert (before["jobs"][~which] == after["jobs"][~which]).all()
    assert (before["jobs"][which] != after["jobs"][which]).any()
    assert info["_now"].tolist() == which.tolist()


def test_pictures() -> None:
    vector = SchedulingVectorEnv(busy_log(), num_envs=2, jobs=30, render_mode="rgb_array")
    vector.reset(seed=1)
    assert [picture.shape for picture in vector.render()] == [(400, 900, 3)] * 2
    assert SchedulingVectorEnv(busy_log(), num_envs=2, jobs=30).render() is None


def test_refusals() -> None:
    with pytest.raises(UsageError, match="num_envs is 0; give a whole number from 1"):
        SchedulingVectorEnv(busy_log(), num_envs=0)
    with pytest.raises(UsageError, match="render_mode is 'human'"):
        SchedulingVectorEnv(busy_log(), render_mode="human", jobs=30)
    vector = SchedulingVectorEnv(busy_log(), num_envs=3, jobs=30)
    with pytest.raises(UsageError, match="2 seeds for 3 environments"):
        vector.reset(seed=[1, 2])
    with pytest.raises(UsageError, match="reset_mask has shape \\(2,\\); give 3 truth values"):
        vector.reset(options={"reset_mask": np.array([True, False])})
    vector.reset(seed=1)
    with pytest.raises(UsageError, match="actions have shape \\(2,\\); give one slot for each of 3 env"):
        vector.step(np.array([0, 0]))
