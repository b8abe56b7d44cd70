"""How tuners choose: the equations with numbers, plain twins, and what the article leaves open."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import tuning as naive
from policyfactory.simulation.tuning.strategies import (
    Beliefs,
    EpsilonGreedy,
    FollowTheLeader,
    ThompsonSampling,
    Ucb,
    Uniform,
)
from policyfactory.simulation.tuning.tuner import noise_factors

WORLD = st.integers(1, 4).flatmap(
    lambda arms: st.lists(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 1000)).map(lambda seen: (seen[0], float(seen[1] * seen[0]))),
            min_size=arms,
            max_size=arms,
        ),
        min_size=1,
        max_size=12,
    )
)


def random(number: int = 0) -> np.random.Generator:
    return np.random.default_rng(number)


def chosen(leader: FollowTheLeader, periods: int) -> list[int]:
    return [leader.choose(period) for period in range(periods)]


# Full and noisy feedback. -------------------------------------------------------------------------------------------


def test_equations_4_and_5_with_numbers() -> None:
    costs = np.array([[10.0, 20.0], [30.0, 5.0], [1.0, 1.0]])
    # Sums before each period: (0, 0), (10, 20), (40, 25), (41, 26), and a period without costs.
    assert chosen(FollowTheLeader(costs, 1.0), 5) == [0, 0, 1, 1, 1]
    # Halved from period to period: (0, 0), (10, 20), (35, 15), (18.5, 8.5).
    assert chosen(FollowTheLeader(costs, 0.5), 4) == [0, 0, 1, 1]
    # The last period alone: (0, 0), (10, 20), (30, 5), (1, 1); equal costs: the first in the list.
    assert chosen(FollowTheLeader(costs, 0.0), 4) == [0, 0, 1, 0]


def test_equations_7_and_8_with_numbers() -> None:
    costs, factors = np.array([[10.0, 11.0], [10.0, 11.0]]), np.array([[1.2, 0.8], [0.8, 1.2]])
    # Seen are (12, 8.8) and (8, 13.2): sums (12, 8.8), then (20, 22).
    assert chosen(FollowTheLeader(costs * factors, 1.0), 3) == [0, 1, 0]


@given(
    costs=st.integers(1, 5).flatmap(
        lambda arms: st.lists(
            st.lists(st.integers(0, 20).map(float), min_size=arms, max_size=arms), min_size=1, max_size=8
        )
    ),
    discount=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_the_leader_is_that_of_the_plain_sum(costs: list[list[float]], discount: float) -> None:
    periods = len(costs) + 2
    expected = naive.follow_the_leader(costs, discount, periods)
    assert chosen(FollowTheLeader(np.array(costs), discount), periods) == expected


def test_noise_is_uniform_in_its_interval() -> None:
    factors = noise_factors((1000, 12), 0.2, random())
    assert 0.8 <= factors.min() < 0.801
    assert 1.199 < factors.max() <= 1.2
    # The mean of 12,000 has the standard deviation 0.4 / sqrt(12 x 12,000) = 0.00105; five of them: 1 in 1.7 million.
    assert factors.mean() == pytest.approx(1.0, abs=0.0053)
    assert (noise_factors((3, 2), 0.0, random()) == 1.0).all()


# Bandit feedback. ---------------------------------------------------------------------------------------------------


def test_equation_9_with_numbers() -> None:
    waits = EpsilonGreedy(3, 0.0, 1.0, random(), random())
    waits.learn(0, 0, 10, 1000.0)
    waits.learn(1, 1, 5, 250.0)
    waits.learn(2, 0, 30, 1000.0)
    # 2,000 s over 40 jobs and 250 s over 5; the third policy was not seen.
    assert waits.means().tolist() == [50.0, 50.0, 0.0]


def test_both_sums_of_equation_9_are_discounted() -> None:
    waits = EpsilonGreedy(2, 0.0, 0.5, random(), random())
    waits.learn(0, 0, 10, 1000.0)
    waits.learn(0, 1, 10, 900.0)
    waits.learn(2, 0, 30, 1000.0)
    # Two periods old: a quarter. Of the other one all is equally old, and its mean stays what it was.
    assert waits.means().tolist() == pytest.approx([(250 + 1000) / (2.5 + 30), 90.0])


def test_discount_0_keeps_the_last_period_of_a_policy_alone() -> None:
    waits = EpsilonGreedy(2, 0.0, 0.0, random(), random())
    for period, wait in enumerate((500.0, 100.0, 300.0)):
        waits.learn(period, 0, 10, wait)
    assert waits.means().tolist() == [30.0, 0.0]


@given(world=WORLD, epsilon=st.sampled_from([0.0, 0.3, 1.0]), discount=st.sampled_from([0.0, 0.5, 1.0]))
def test_epsilon_greedy_is_that_of_the_plain_equations(
    world: list[list[tuple[int, float]]], epsilon: float, discount: float
) -> None:
    arms, periods = len(world[0]), len(world)
    coins = random(1).random(periods)
    picks = random(2)
    drawn = [int(picks.integers(arms)) for _ in range(periods)]
    greedy = EpsilonGreedy(arms, epsilon, discount, random(1), random(2))
    choices = []
    for period, row in enumerate(world):
        choices.append(greedy.choose(period))
        greedy.learn(period, choices[-1], *row[choices[-1]])
    assert choices == naive.epsilon_greedy(world, arms, epsilon, discount, coins.tolist(), drawn)


def test_every_policy_is_tried_once_in_the_order_of_the_list() -> None:
    greedy = EpsilonGreedy(4, 0.0, 1.0, random(), random())
    choices = []
    for period in range(6):
        choices.append(greedy.choose(period))
        greedy.learn(period, choices[-1], 1, 100.0 - choices[-1])
    assert choices == [0, 1, 2, 3, 3, 3]


def test_a_period_without_an_end_teaches_nothing() -> None:
    greedy = EpsilonGreedy(2, 0.0, 1.0, random(), random())
    for period in range(3):
        assert greedy.choose(period) == 0
        greedy.learn(period, 0, 0, 0.0)
    greedy.learn(3, 0, 1, 1.0)
    assert greedy.choose(4) == 1


def test_epsilon_1_is_chance() -> None:
    greedy, chance = EpsilonGreedy(5, 1.0, 1.0, random(1), random(2)), Uniform(5, random(2))
    for period in range(50):
        arm = greedy.choose(period)
        assert arm == chance.choose(period)
        greedy.learn(period, arm, 1, float(arm))


def test_chance_takes_every_policy_alike() -> None:
    chance = Uniform(4, random(7))
    counts = np.bincount([chance.choose(period) for period in range(4000)], minlength=4)
    # Chi square with 3 degrees of freedom exceeds 21.1 once in 10,000.
    assert ((counts - 1000) ** 2 / 1000).sum() < 21.1


# Thompson sampling and UCB. -----------------------------------------------------------------------------------------


def _thompson(arms: int, discount: float = 1.0) -> Beliefs:
    return ThompsonSampling(arms, discount, random(3))


MODERN: tuple[Callable[..., Beliefs], ...] = (_thompson, lambda arms, discount=1.0: Ucb(arms, discount))


def played(bandit: Beliefs, means: list[float], periods: int, scale: float = 1.0) -> list[int]:
    """Let it choose where a period's mean wait is a policy's mean times a lognormal number."""
    noise = np.exp(random(5).normal(0.0, 0.5, (periods, len(means))))
    choices = []
    for period in range(periods):
        choices.append(bandit.choose(period))
        bandit.learn(period, choices[-1], 10, 10 * scale * means[choices[-1]] * noise[period, choices[-1]])
    return choices


@pytest.mark.parametrize("make", MODERN)
def test_a_modern_bandit_comes_to_the_best_policy(make: Callable[..., Beliefs]) -> None:
    choices = played(make(4), [3.0, 2.0, 1.0, 4.0], 120)
    assert np.mean(np.array(choices[60:]) == 2) > 0.9


@pytest.mark.parametrize("make", MODERN)
def test_the_scale_of_the_waits_does_not_matter(make: Callable[..., Beliefs]) -> None:
    assert played(make(3), [3.0, 2.0, 1.5], 60) == played(make(3), [3.0, 2.0, 1.5], 60, scale=2.0**20)


@pytest.mark.parametrize("make", MODERN)
def test_a_modern_bandit_begins_with_the_first_and_stays_where_nothing_waits(make: Callable[..., Beliefs]) -> None:
    bandit = make(3)
    for period in range(4):
        assert bandit.choose(period) == 0
        bandit.learn(period, 0, 5, 0.0)


@pytest.mark.parametrize("make", MODERN)
def test_a_modern_bandit_has_one_policy_to_choose(make: Callable[..., Beliefs]) -> None:
    assert played(make(1), [1.0], 5) == [0] * 5


@pytest.mark.parametrize("make", MODERN)
@pytest.mark.parametrize("discount", [0.5, 0.9])
def test_a_discount_lets_it_follow_a_change(make: Callable[..., Beliefs], discount: float) -> None:
    bandit = make(2, discount)
    for period in range(40):
        bandit.learn(period, period % 2, 10, 1000.0 if period % 2 else 100.0)
    for period in range(40, 50):
        bandit.learn(period, period % 2, 10, 100.0 if period % 2 else 1000.0)
    mean, _ = bandit.posterior()
    assert mean[1] < mean[0]
    steady = make(2)
    for period in range(50):
        steady.learn(period, period % 2, 10, 1000.0 if (period % 2) == (period < 40) else 100.0)
    mean, _ = steady.posterior()
    assert mean[1] > mean[0]


def test_the_posterior_of_ucb_with_numbers() -> None:
    bandit = Ucb(3, 1.0)
    bandit.learn(0, 0, 10, 600.0)
    bandit.learn(1, 0, 10, 1000.0)
    bandit.learn(2, 1, 20, 400.0)
    # The mean wait of all is 2,000 s / 40 jobs = 50 s: costs 1.2, 2 and 0.4 with weights 0.75, 0.75 and 1.5.
    centre = (0.75 * 1.2 + 0.75 * 2 + 1.5 * 0.4) / 3
    variance = (0.75 * 0.4**2 * 2 + 1) / 2
    prior = 1 / 0.4**2
    seen = np.array([1.5, 1.5, 0.0])
    mean, deviation = bandit.posterior()
    expected = (prior * centre + seen * np.array([1.6, 0.4, centre]) / variance) / (prior + seen / variance)
    assert mean == pytest.approx(expected)
    assert deviation == pytest.approx(1 / np.sqrt(prior + seen / variance))
