"""Tuners on jobs: what they choose, that the schedule follows, and that chance depends on the case alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import online
from policyfactory.core.errors import UsageError
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.simulation.on_site import simulate_timetable
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.simulation.tuning import tuner as tuners
from policyfactory.simulation.tuning.tuner import (
    FEEDBACKS,
    MAX_PERIODS,
    TunedSchedule,
    Tuner,
    period_costs,
    period_edges,
)
from policyfactory.site.fits import site_of
from policyfactory.workload.jobs import Workload
from refusals import refused

HOUR = 3600
LPF, SPF = resolve("LPF"), resolve("SPF")
FOUR = tuple(map(resolve, ("FCFS", "SPF", "LEXP", "LQF")))


def jobs(submit: Any, run_time: Any, processors: Any = 1, machine: int = 4, ticks: int = 1) -> Workload:
    submit, run_time = np.asarray(submit), np.asarray(run_time)
    n = len(submit)
    unknown = np.full(n, -1)
    return Workload(
        "jobs", machine, np.arange(n), submit * ticks, run_time * ticks, np.maximum(run_time, 1) * ticks,
        np.broadcast_to(processors, n).copy(), unknown, unknown, ticks=ticks,
    )  # fmt: skip


def one_way(periods: int = 6, ticks: int = 1) -> Workload:
    """Every hour two long and eight short jobs come at once, on one processor: shortest first is far better."""
    submit = np.repeat(np.arange(periods) * HOUR, 10)
    return jobs(submit, np.tile([700, 700, *[20] * 8], periods), machine=1, ticks=ticks)


def busy(seed: int = 0, n: int = 300) -> Workload:
    random = np.random.default_rng(seed)
    submit = np.sort(random.integers(0, 40 * HOUR, n))
    return jobs(submit, random.integers(1, 3 * HOUR, n), random.integers(1, 5, n))


def tuner(feedback: Any, arms: tuple[Policy, ...] = FOUR, **options: Any) -> Tuner:
    return Tuner(feedback, arms, feedback, options.pop("period_s", HOUR), **options)


def run(one: Tuner, workload: Workload, number: int = 1, rules: Rules | None = None) -> TunedSchedule:
    return one.run(workload, rules or Rules(), seed=3, number=number)


# What they choose. --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feedback", ["simulate", "noisy"])
def test_simulation_takes_the_better_policy_from_the_second_period_on(feedback: str) -> None:
    schedule = run(tuner(feedback, (LPF, SPF)), one_way())
    assert schedule.choices.tolist() == [0, 1, 1, 1, 1, 1]
    assert schedule.edges.tolist() == [HOUR * period for period in range(7)]
    # The first period is all that it loses against the best in hindsight.
    worst, best = (simulate(one_way(1), policy) for policy in (LPF, SPF))
    lost = schedule.start.sum() - simulate(one_way(), SPF).start.sum()
    assert lost == worst.start.sum() - best.start.sum()


def test_the_cost_of_a_period_with_numbers() -> None:
    result = period_costs(one_way(2), (LPF, SPF), Rules(), HOUR, {})
    # Longest first: 0, 700, 1400, 1420, ..., 1540; shortest first: 0, 20, ..., 140, 160, 860.
    each = [700 + 8 * 1400 + 20 * 28, 20 * 28 + 160 + 860]
    assert result.tolist() == [each, each]


def test_a_bandit_tries_each_and_stays_with_the_better() -> None:
    schedule = run(tuner("bandit", (LPF, SPF), epsilon=0.0), one_way())
    assert schedule.choices.tolist() == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("feedback", ["thompson", "ucb"])
def test_modern_bandits_come_to_the_better(feedback: str) -> None:
    choices = run(tuner(feedback, (LPF, SPF)), one_way(40)).choices
    assert choices[0] == 0
    assert choices[20:].mean() > 0.8


def test_noise_0_is_simulation_and_epsilon_1_is_chance() -> None:
    assert_same(run(tuner("noisy", noise=0.0), busy()), run(tuner("simulate"), busy()))
    assert_same(run(tuner("bandit", epsilon=1.0), busy()), run(tuner("random"), busy()))


def test_discount_0_takes_the_best_of_the_last_period_alone() -> None:
    workload = busy()
    table = period_costs(workload, FOUR, Rules(), HOUR, {})
    choices = run(tuner("simulate", discount=0.0), workload).choices
    assert choices.tolist() == [0, *table[:-1].argmin(axis=1).tolist()]
    assert len(set(choices.tolist())) > 1


def test_noise_changes_a_close_choice() -> None:
    exact, noisy = (run(tuner(feedback, noise=1.0), busy()).choices for feedback in ("simulate", "noisy"))
    assert (exact != noisy).any()


def assert_same(one: TunedSchedule, other: TunedSchedule) -> None:
    assert one.choices.tolist() == other.choices.tolist()
    assert one.start.tolist() == other.start.tolist()


# The schedule follows the choices. ----------------------------------------------------------------------------------


@pytest.mark.parametrize("feedback", FEEDBACKS)
@pytest.mark.parametrize("policy", ["SPF", "LEXP"])
def test_with_one_policy_a_tuner_is_that_policy(feedback: str, policy: str) -> None:
    rules = Rules(threshold=5 * HOUR)
    schedule, plain = (
        run(tuner(feedback, (resolve(policy),)), busy(), rules=rules),
        simulate(busy(), resolve(policy), rules),
    )
    assert schedule.start.tolist() == plain.start.tolist()
    assert schedule.end.tolist() == plain.end.tolist()
    assert schedule.backfilled.tolist() == plain.backfilled.tolist()
    assert (schedule.policy_name, schedule.rules, schedule.arms) == (feedback, rules, (policy,))


@given(seed=st.integers(0, 500), feedback=st.sampled_from(FEEDBACKS))
def test_the_policy_of_a_period_orders_the_queue_in_it(seed: int, feedback: str) -> None:
    workload = busy(seed, n=40)
    schedule = run(tuner(feedback), workload)
    first = int(schedule.edges[0])

    def score(job: online.Job, now: int, oldest: int, free: int) -> float:
        period = min((now - first) // HOUR, len(schedule.choices) - 1)
        waited, p = now - job.submit, job.estimate
        return (job.submit, p, -(waited + p) / p, -job.processors)[schedule.choices[period]]

    columns = (workload.submit, workload.run_time, workload.requested_time, workload.processors)
    twins = [online.Job(i, *map(int, row)) for i, row in enumerate(zip(*columns, strict=True))]
    online.easy_timed(twins, workload.machine, score)
    assert schedule.start.tolist() == [job.start for job in twins]


def test_time_is_counted_in_ticks() -> None:
    for feedback in FEEDBACKS:
        second, milli = (run(tuner(feedback, (LPF, SPF)), one_way(ticks=ticks)) for ticks in (1, 1000))
        assert milli.choices.tolist() == second.choices.tolist()
        assert (milli.start == 1000 * second.start).all()
        assert (milli.edges == 1000 * second.edges).all()


def test_periods_are_those_of_the_clock() -> None:
    workload = jobs([3 * HOUR - 1, 3 * HOUR, 5 * HOUR], [10, 10, 9 * HOUR], machine=1)
    assert period_edges(workload, HOUR).tolist() == [HOUR * edge for edge in (2, 3, 4, 5, 6)]
    # The last period has no end: no choice is made when nothing is submitted any more.
    schedule = run(tuner("random"), workload)
    assert schedule.edges.tolist() == [HOUR * edge for edge in (2, 3, 4, 5, 6)]
    assert len(schedule.choices) == 4


def test_no_job_is_no_period() -> None:
    schedule = run(tuner("bandit"), busy().select(slice(0, 0)))
    assert (len(schedule), schedule.choices.tolist(), schedule.edges.tolist()) == (0, [], [0])


# Chance. ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feedback", ["noisy", "bandit", "random", "thompson"])
def test_chance_depends_on_seed_and_case_alone(feedback: str) -> None:
    one = tuner(feedback, noise=1.0)
    assert_same(run(one, busy(), 1), run(dataclasses.replace(one, name="another"), busy(), 1))
    assert (run(one, busy(), 1).choices != run(one, busy(), 2).choices).any()
    other = one.run(busy(), Rules(), seed=4, number=1)
    assert (run(one, busy(), 1).choices != other.choices).any()


def test_a_case_is_simulated_once_for_all_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = tuners.simulate_periods

    def counted(*given: Any) -> Any:
        asked.append(given)
        return real(*given)

    monkeypatch.setattr(tuners, "simulate_periods", counted)
    scratch: dict[Any, Any] = {}
    for one in (tuner("simulate"), tuner("noisy"), tuner("simulate", discount=0.5), tuner("bandit")):
        one.run(busy(), Rules(), seed=0, number=1, scratch=scratch)
    assert len(asked) == 1
    tuner("simulate", period_s=2 * HOUR).run(busy(), Rules(), seed=0, number=1, scratch=scratch)
    tuner("simulate").run(busy(), Rules(threshold=HOUR), seed=0, number=1, scratch=scratch)
    tuner("simulate", FOUR[:2]).run(busy(), Rules(), seed=0, number=1, scratch=scratch)
    assert len(asked) == 4


def test_noise_leaves_the_shared_costs_alone() -> None:
    scratch: dict[Any, Any] = {}
    before = period_costs(busy(), FOUR, Rules(), HOUR, scratch).copy()
    tuner("noisy").run(busy(), Rules(), seed=0, number=1, scratch=scratch)
    assert (period_costs(busy(), FOUR, Rules(), HOUR, scratch) == before).all()


# Under Slurm's rules. ----------------------------------------------------------------------------------------------

SLURM = Rules(backfill="slurm")


def test_on_a_site_the_better_policy_is_chosen_and_the_schedule_is_that_of_the_choices() -> None:
    log = one_way()
    site = site_of(log)
    schedule = run(tuner("simulate", (LPF, SPF)), log, rules=SLURM)
    assert schedule.choices.tolist() == [0, 1, 1, 1, 1, 1]
    assert schedule.rules.site == site
    assert schedule.policy_name == "simulate"
    same = simulate_timetable(log, (LPF, SPF), schedule.rules, schedule.choices, schedule.edges)
    assert (schedule.start == same.start).all()
    rules = dataclasses.replace(SLURM, site=site)
    alone = [simulate(log.select(slice(10)), arm, rules) for arm in (LPF, SPF)]
    costs = period_costs(log, (LPF, SPF), rules, HOUR, {})
    assert costs[0].tolist() == [one.wait.sum() for one in alone]


def test_a_period_without_a_job_costs_nothing_on_a_site() -> None:
    rules = dataclasses.replace(SLURM, site=site_of(one_way()))
    late = jobs([0, 3 * HOUR], [60, 60], machine=1)
    assert period_costs(late, (SPF,), rules, HOUR, {})[1:3].tolist() == [[0], [0]]
    assert len(run(tuner("random", (SPF,)), jobs([], []), rules=SLURM)) == 0


@pytest.mark.parametrize("feedback", ["bandit", "thompson", "ucb"])
def test_what_watches_the_run_is_refused_under_slurms_rules(feedback: str) -> None:
    refused(UsageError, "feedback simulate", run, tuner(feedback), one_way(), rules=SLURM)


# What cannot be meant. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feedback": "oracle"}, "oracle feedback mine"),
        ({"epsilon": 1.5}, "epsilon 1.5 0 1 mine"),
        ({"discount": -0.1}, "discount -0.1 mine"),
        ({"noise": float("nan")}, "noise nan mine"),
        ({"period_s": 59}, "59 period mine"),
        ({"arms": ()}, "chooses nothing mine"),
        ({"arms": (SPF, SPF)}, "spf once mine"),
        ({"name": " x"}, "used"),
    ],
)
def test_a_wrong_tuner_is_refused(options: dict[str, Any], message: str) -> None:
    refused(UsageError, message, Tuner, **{"name": "mine", "arms": FOUR, **options})


def test_too_many_periods_are_refused_before_any_work() -> None:
    late = jobs([0, 60 * (MAX_PERIODS + 1)], [1, 1])
    refused(UsageError, "200,002 60 200,000 jobs", run, tuner("simulate", period_s=60), late)


def test_a_tuner_says_what_it_does() -> None:
    assert tuner("bandit").describe() == (
        "every 1h one of 4 policies: the least mean wait seen so far, in 10% of the periods any"
    )
    assert "off by up to 20%, each period weighing 0.5 of the next one" in tuner("noisy", discount=0.5).describe()
