"""The Gymnasium environment: its interface, its rewards, its guards, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from environment_logs import busy_log
from policyfactory.core.errors import UsageError
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import read_swf
from support import extra_module, shared_path

gymnasium = extra_module("gymnasium", "rl")
NAME = extra_module("policyfactory.search.environment.env", "rl").NAME
check_env = extra_module("gymnasium.utils.env_checker", "rl").check_env


def make(log: Any = None, **options: Any) -> Any:
    return gymnasium.make(NAME, workload=busy_log() if log is None else log, **{"jobs": 40, **options}).unwrapped


def play(env: Any, choose: Any, **reset: Any) -> tuple[list[float], dict[str, Any]]:
    observation, info = env.reset(**reset)
    rewards, over = [], False
    while not over:
        assert env.observation_space.contains(observation)
        assert (info["action_mask"] == env.action_masks()).all()
        observation, reward, over, cut, info = env.step(choose(env))
        rewards.append(reward)
        assert not cut
    return rewards, info


def by_policy(name: str) -> Any:
    return lambda env: int(np.argmin(env.scores(name)))


def at_random(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda env: int(rng.choice(np.flatnonzero(env.action_masks())))


@pytest.mark.parametrize("options", [{}, {"lead_in": 30}, {"reward": "interval"}, {"mode": "paper"}], ids=str)
def test_gymnasium_finds_nothing_to_say(options: dict[str, Any]) -> None:
    check_env(make(render_mode="rgb_array", **options))


@pytest.mark.parametrize("mode", ["standard", "paper"])
def test_the_same_seed_is_the_same_episode(mode: str) -> None:
    env = make(mode=mode)
    seen = []
    for seed in (3, 3, 4):
        rewards, info = play(env, at_random(1), seed=seed)
        seen.append((rewards, info["goal"], info["guards"]))
    assert seen[0] == seen[1] != seen[2]
    # Without a seed it goes on: another window, and the same after the same seed.
    assert [play(env, at_random(1), seed=3)[1]["goal"], play(env, at_random(1))[1]["goal"]] == [
        play(env, at_random(1), seed=3)[1]["goal"],
        play(env, at_random(1))[1]["goal"],
    ]


def test_saf_step_by_step_is_saf() -> None:
    log = busy_log()
    env = make(log)
    rewards, info = play(env, by_policy("SAF"), options={"start": 37})
    whole = simulate(log.select(slice(37, 77), rebase=True), "SAF")
    assert env.schedule().start.tolist() == whole.start.tolist()
    assert info["goal"] == measure(whole, "mean_bsld")["mean_bsld"]
    assert info["guards"] == measure(whole, info["guards"])
    assert set(info["guards"]) == {"utilisation", "p99_wait", "max_wait", "area_weighted_wait"}
    assert rewards == [0.0] * (len(rewards) - 1) + [-info["goal"]]


@pytest.mark.parametrize("lead_in", [0, 40])
@pytest.mark.parametrize("goal", ["mean_bsld", "mean_wait", "mean_turnaround", "mean_slowdown"])
def test_what_accrues_adds_up_to_the_goal(goal: str, lead_in: int) -> None:
    env = make(goal=goal, reward="interval", lead_in=lead_in)
    some = 0
    for seed in range(10):
        rewards, info = play(env, at_random(seed), seed=seed)
        assert sum(rewards) == pytest.approx(-info["goal"], rel=1e-9)
        assert max(rewards) < 1e-9
        some += len({reward for reward in rewards if reward < 0}) > 5
    assert some > 5


def test_more_utilisation_is_a_larger_reward() -> None:
    rewards, info = play(make(goal="utilisation"), by_policy("SAF"), seed=1)
    assert sum(rewards) == info["goal"] == info["guards"]["utilisation"] > 0


def test_a_goal_of_the_users_own() -> None:
    def jobs_that_waited(schedule: Schedule) -> float:
        return float((schedule.wait > 0).sum())

    rewards, info = play(make(goal=jobs_that_waited), by_policy("FCFS"), seed=1)
    assert sum(rewards) == -info["goal"] < 0


def test_a_masked_choice_is_replaced_by_the_first_that_can_be() -> None:
    one, other = make(), make()
    rng = np.random.default_rng(2)
    one.reset(seed=5), other.reset(seed=5)
    replaced, over = 0, False
    while not over:
        action = int(rng.integers(0, 40))
        masked = not other.action_masks()[action]
        instead = int(np.flatnonzero(other.action_masks())[0]) if masked else action
        seen, _, over, _, info = one.step(action)
        expected, *_ = other.step(instead)
        assert info["replaced"] == masked
        assert all((seen[part] == expected[part]).all() for part in seen)
        replaced += masked
    assert replaced > 10


def test_an_episode_without_a_decision_takes_one_step() -> None:
    """Jobs that come one after the other: nobody is asked anything."""
    number, unknown = np.arange(6), np.full(6, -1)
    log = Workload("alone", 4, number, number * 100, number * 0 + 5, number * 0 + 9, number * 0 + 4, unknown, unknown)
    env = make(log, jobs=6, reward="interval", goal="mean_turnaround")
    _, info = env.reset(seed=1)
    assert info["action_mask"].tolist() == [True] + [False] * 5
    _, reward, over, _, info = env.step(0)
    assert (over, reward, info["goal"]) == (True, -5.0, 5.0)


def test_pictures_show_and_none_are_made_unasked() -> None:
    env = make(render_mode="rgb_array", lead_in=30)
    env.reset(seed=1)
    before = env.render()
    assert (before.shape, before.dtype) == ((400, 900, 3), np.uint8)
    for _ in range(5):
        env.step(by_policy("SAF")(env))
    assert (env.render() != before).any()
    quiet = make()
    quiet.reset(seed=1)
    assert quiet.render() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "papers"}, "mode is 'papers'; choose standard or paper"),
        ({"window": 40}, "there is no option 'window'; .*there are jobs, goal, "),
        ({"render_mode": "human"}, "render_mode is 'human'; choose rgb_array"),
        ({"log": np.arange(3)}, "mode standard takes a Workload or the path of a log, not a ndarray"),
    ],
)
def test_what_cannot_be_made(options: dict[str, Any], message: str) -> None:
    from policyfactory.search.environment.env import SchedulingEnv

    options = {"jobs": 10, **options}
    with pytest.raises(UsageError, match=message):
        SchedulingEnv(options.pop("log", busy_log()), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first": 3}, "reset has no option 'first'; give start"),
        ({"start": "first"}, "start is 'first'; give the number"),
        ({"start": 81}, "start 81: windows of 40 jobs of random begin with job 0 to 80"),
    ],
)
def test_a_reset_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make().reset(options=options)


@pytest.mark.parametrize("mode", ["standard", "paper"])
def test_a_step_behind_the_end(mode: str) -> None:
    env = make(mode=mode)
    play(env, at_random(1), seed=1)
    with pytest.raises(UsageError, match="the episode is over; reset begins the next"):
        env.step(0)


def test_mode_paper_is_the_program() -> None:
    """Observations, rewards and resets of the original environment, through this one."""
    import gzip
    import json

    with gzip.open(shared_path("oracles/rlscheduler_env.json.gz")) as file:
        known = json.load(file)
    log = read_swf(shared_path("traces/lublin_256.swf"))
    for seed in (0, 1):
        env = make(log, mode="paper", jobs=256)
        starts = []
        for number in range(20):
            env.reset(seed=seed if number == 0 else None)
            starts.append(int(env.episodes.window(0)))
        assert starts == known["training_resets"]["lublin_256.swf"][f"seed{seed}"]["start_indices"]
    goals = {
        "mean_bsld": "avg_bounded_slowdown",
        "mean_wait": "avg_wait",
        "mean_turnaround": "avg_turnaround",
        "mean_slowdown": "avg_slowdown",
        "utilisation_to_last_start": "utilization_raw",
    }
    for episode, goal in zip(known["logs"]["lublin_256.swf"]["episodes"], goals, strict=False):
        rules = {True: "easy", False: "none"}[bool(episode["backfill"])]
        env = make(log, mode="paper", jobs=episode["n_jobs"], goal=goal, rules=_rules(rules))
        slots = iter(episode["slots"])
        observation, _ = env.reset(options={"start": episode["start_index"]})
        rewards, over, number = [], False, 0
        while not over:
            assert env.action_masks().sum() == episode["visible_counts"][number]
            observation, reward, over, _, _ = env.step(next(slots))
            rewards.append(reward)
            number += 1
        value = episode["metrics"][goals[goal]] * (100 if goal.startswith("utilisation") else 1)
        assert sum(rewards) == pytest.approx(-value, rel=1e-12)
        assert observation.shape == (1024,)


def _rules(backfill: str) -> Any:
    from policyfactory.simulation.rules import Rules

    return Rules(backfill=backfill)
