"""Windows played by a network, and what is concluded from them; nothing here needs torch."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from naive.advantages import against_others, generalised, to_go
from naive.network import random_network
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.random import generator
from policyfactory.policy.network import Network
from policyfactory.policy.policy import Policy
from policyfactory.search.environment.goals import GOALS, goal_of
from policyfactory.search.reinforce.networks import layers_of, network_of
from policyfactory.search.reinforce.options import PpoOptions, changes_of, ppo_options
from policyfactory.search.reinforce.rollouts import ByLayers, PaperWorld, World, check_view, play
from policyfactory.search.reinforce.training import (
    by_other_rollouts,
    by_values,
    costs_to_go,
    filtered_starts,
    normalised,
)
from policyfactory.simulation.compat import CommittedLog
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from refusals import refused
from small_training import JOBS, all_starts, few, numbers_from, small_log, small_world

FIRST = np.array([0, 3, 250, 431, 77])


def network_for(world: World, seed: int = 1) -> Network:
    network = random_network(seed, (len(world.inputs), 32, 16, 8, 1), world.inputs)
    return Network(network.name, network.inputs, network.layers, mode=world.mode)


def decided(network: Network, world: World) -> ByLayers:
    return ByLayers(layers_of(numbers_from(network), len(world.inputs)))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("mode", ["paper", "standard"])
def test_the_largest_preference_is_the_schedule_of_the_policy(mode: str, backfill: bool, seed: int) -> None:
    world = small_world(mode, len(FIRST), backfill=backfill)
    network = network_for(world, seed)
    played = play(world, FIRST, decided(network, world))
    assert played.costs == pytest.approx(world.costs_of(Policy.from_network(network), FIRST), rel=1e-12)


@pytest.mark.parametrize("goal", [name for name in GOALS if not GOALS[name].of_users])
@pytest.mark.parametrize("mode", ["paper", "standard"])
def test_what_accrues_adds_up_to_the_goal(mode: str, goal: str) -> None:
    world = small_world(mode, 7, goal=goal)
    played = play(world, FIRST, decided(network_for(world), world), generator(1, 0), share=0.5)
    # Sums are made anew at each decision: the last bits differ.
    assert (np.diff(played.accrued, axis=1) >= -1e-9).all() or not world.accrues
    end = played.accrued[:, -1]
    if "utilisation" in goal and mode == "paper":
        # What accrues is the clock until the last start.
        start = world.episodes.batch.start  # type: ignore[attr-defined]
        assert end == pytest.approx((start.max(axis=1)[:5] - world.log.jobs.submit[FIRST]) / 864, rel=1e-12)  # type: ignore[attr-defined]
    else:
        assert end == pytest.approx(played.costs, rel=1e-9)
    assert (played.accrued[np.arange(5), played.decisions] == end).all()


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("goal", GOALS)
def test_goals_of_the_papers_world_are_those_of_its_schedules(goal: str, backfill: bool) -> None:
    user = np.random.default_rng(0).integers(-1, 4, len(small_log()))
    log = dataclasses.replace(small_log(), user=user)
    world = PaperWorld(CommittedLog.of_workload(log), JOBS, 5, backfill=backfill, goal=goal)
    sjf = Policy("SJF", "p")
    rules = Rules(compatibility="rlscheduler", backfill="easy" if backfill else "none")
    schedules = [simulate(log.select(slice(one, one + JOBS), rebase=True), sjf, rules) for one in FIRST]
    expected = [goal_of(goal).cost(one) for one in schedules]
    assert world.costs_of(sjf, FIRST) == pytest.approx(expected, rel=1e-9)
    played = play(world, FIRST, decided(network_for(world), world), generator(1, 0))
    if "utilisation" not in goal:
        assert played.accrued[:, -1] == pytest.approx(played.costs, rel=1e-9)


def test_what_is_kept_is_what_was_seen() -> None:
    world = small_world("paper", 5, backfill=False)
    every = play(world, FIRST, decided(network_for(world), world), generator(3, 0), share=1.0)
    assert len(every) == every.decisions.sum() == 5 * JOBS
    assert len(every.rows) == every.size.sum()
    assert (every.chosen < every.size).all()
    assert (every.log_probability <= 0).all()
    # The first decision of each window sees its first job alone: it has not waited, and fits.
    assert (every.size[:5] == 1).all()
    assert (every.rows[:5, 0] == 0).all()
    some = play(world, FIRST, decided(network_for(world), world), generator(3, 0), share=0.3)
    assert 0.2 < len(some) / len(every) < 0.4
    # The same choices, whatever is kept.
    assert np.array_equal(some.accrued, every.accrued)


def test_advantages_are_those_of_the_twin() -> None:
    world = small_world("paper", 8)
    first = np.repeat(FIRST[:2], 4)
    played = play(world, first, decided(network_for(world), world), generator(5, 0), share=1.0)
    assert len(set(played.decisions.tolist())) > 1
    episodes = [
        {
            "cost": np.diff(played.accrued[at])[:count].tolist(),
            "started": played.started[at, :count].tolist(),
            "whole": [float(played.costs[at])],
        }
        for at, count in enumerate(played.decisions.tolist())
    ]
    made = by_other_rollouts(played, 4, 0.9)
    values = np.random.default_rng(0).normal(0, 1, len(played))
    advantages, targets = by_values(played, values, 0.9, 0.7)
    of_episode = [values[played.episode == at].tolist() for at in range(8)]
    for place in range(0, len(played), 7):
        at, step = int(played.episode[place]), int(played.step[place])
        group = episodes[at // 4 * 4 : at // 4 * 4 + 4]
        assert made[place] == pytest.approx(against_others(group, at % 4, step, 0.9), rel=1e-9, abs=1e-9)
        expected = generalised(episodes[at]["cost"], of_episode[at], 0.9, 0.7)[step]
        assert advantages[place] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert targets[place] == pytest.approx(-to_go(episodes[at]["cost"], 0.9)[step], rel=1e-9)


def test_costs_to_go_by_hand() -> None:
    # Two decisions that cost 1 and 4, and one that costs 3.
    accrued = np.array([[2.0, 3.0, 7.0], [0.0, 3.0, 3.0]])
    made = costs_to_go(accrued, np.array([2, 1]), 0.5)
    assert made.tolist() == [[3.0, 4.0], [3.0, 0.0]]
    assert normalised(np.array([1.0, 3.0])) == pytest.approx([-1.0, 1.0])


def test_filtering_by_the_papers_rule_and_by_its_codes() -> None:
    world, starts = small_world("paper"), all_starts()
    values = world.costs_of(Policy("SJF", "p"), starts)
    kept = filtered_starts(world, starts, "paper")
    expected = (values > np.median(values)) & (values < 2 * values.mean())
    assert np.array_equal(kept, starts[expected])
    assert 0 < len(kept) < len(starts)
    assert np.array_equal(filtered_starts(world, starts, "code"), starts[(values > 10) & (values < 150)])
    assert np.array_equal(filtered_starts(world, starts, "none"), starts)
    least = starts[[int(np.argmin(values))]]
    refused(EvaluationError, "1 SJF 10 150", filtered_starts, world, least, "code")


def test_a_network_is_its_numbers_and_back() -> None:
    world = small_world("standard")
    network = network_for(world, 7)
    again = network_of(numbers_from(network), network.name, world.inputs)
    assert again == network
    assert again.parameters == len(numbers_from(network)) == 6 * 32 + 32 + 529 + 136 + 8


def test_presets_and_changes() -> None:
    assert ppo_options("paper") == PpoOptions(
        preset="paper", iterations=100, windows=100, rollouts=1, decisions=0, passes=80, batch=0, rate=3e-4,
        last_rate=3e-4, gamma=1.0, most_change=0.015, checkpoint_every=10,
    )  # fmt: skip
    assert changes_of(["rate=0.01", "iterations = 3", "network=kernel"]) == {
        "rate": 0.01,
        "iterations": 3,
        "network": "kernel",
    }
    for texts, said in (
        (["speed=3"], "--set speed=3 NAME=VALUE"),
        (["iterations=3.5"], "iterations number iterations=3.5"),
        (["rate=fast"], "rate number rate=fast"),
    ):
        refused(UsageError, said, changes_of, texts)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"preset": "theirs"}, "choose paper"),
        ({"network": "resnet"}, "mlp-v1 mlp-v2 mlp-v3 resnet --network"),
        ({"filtering": "some"}, "choose paper"),
        ({"iterations": 0}, "iterations 0 1 ppo"),
        ({"rate": 0.0}, "rate 0.0 0 ppo"),
        ({"gamma": 1.5}, "gamma 1.5 ppo"),
        ({"gae": -0.1}, "gae -0.1 ppo"),
        ({"rollouts": 1}, "compares rollouts 1 ppo"),
    ],
)
def test_wrong_options_are_named(changes: dict[str, object], said: str) -> None:
    refused(UsageError, said, few, **changes)


def test_what_does_not_suit_is_refused() -> None:
    refused(UsageError, "128 slots --mode", check_view, small_world("standard"), "network mlp-v1", "network kernel")
    assert (small_log().user < 0).all()
    refused(EvaluationError, "whose jobs -1 lublin-64", small_world, "paper", goal="user_max_bsld")
