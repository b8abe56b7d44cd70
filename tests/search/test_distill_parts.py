"""The parts of a distillation against their plain twins: queues, pairs, agreement, and the fit of an order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau

from naive.distill import agreement, committed_decisions, decisions
from naive.network import random_network
from policyfactory.policy.network import Network, paper_inputs
from policyfactory.policy.policy import Policy
from policyfactory.search.distill_fit import (
    MOST_WAITING,
    Queues,
    agreement_of,
    collect_queues,
    draw_pairs,
    first_jobs,
    fit_order,
    search_order,
)
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.lublin import generate_lublin
from support import seeds, some_by_day


def crowd(seed: int, jobs: int = 60, machine: int = 12) -> Workload:
    """Return jobs that come fast, some of them at one instant."""
    rng = np.random.default_rng(seed)
    run_time = rng.integers(1, 400, jobs)
    requested_time, processors = run_time + rng.integers(0, 300, jobs), rng.integers(1, machine + 1, jobs)
    return workload(np.sort(rng.integers(0, 1500, jobs)), run_time, requested_time, processors, machine)


def workload(submit, run_time, requested_time, processors, machine: int) -> Workload:
    numbers, none = np.arange(1, len(submit) + 1), np.full(len(submit), -1)
    columns = {
        "job_id": numbers, "submit": submit, "run_time": run_time, "requested_time": requested_time,
        "processors": processors, "user": none, "start": none,
    }  # fmt: skip
    return Workload("crowd", machine, **columns)


def rows_of(queues: Queues) -> list[tuple[list[tuple[float, ...]], float]]:
    edges = queues.edges.tolist()
    columns = np.stack([queues.p, queues.q, queues.w], axis=1)
    return [
        ([tuple(row) for row in columns[first:end].tolist()], free)
        for first, end, free in zip(edges[:-1], edges[1:], queues.free.tolist(), strict=True)
    ]


@pytest.mark.parametrize("seed", seeds(1, 2, 4))
def test_the_queues_at_decisions_are_those_of_the_plain_simulator(seed: int) -> None:
    network, windows = random_network(seed), [crowd(seed), crowd(seed + 100)]
    policy = Policy.from_network(network)
    found = collect_queues(windows, policy, Rules(), decisions=10_000, seed=1, step=0)
    expected = [decisions(window, network) for window in windows]
    assert rows_of(found) == [*expected[0], *expected[1]]
    assert found.window.tolist() == [0] * len(expected[0]) + [1] * len(expected[1])
    # Fewer of them are some of these, in their order.
    few = rows_of(collect_queues(windows, policy, Rules(), decisions=7, seed=1, step=0))
    assert len(few) == 14
    places = [expected[0].index(one) for one in few[:7]]
    assert places == sorted(set(places))


@pytest.mark.parametrize(
    ("jobs", "backfill"),
    some_by_day([(60, False), (60, True), (150, False), (200, True)], 2),
)
def test_in_mode_paper_they_are_those_that_its_program_shows(backfill: bool, jobs: int) -> None:
    network = random_network(5, (8, 6, 1), paper_inputs(700.0))
    window = crowd(3, jobs)
    rules = Rules(backfill="easy" if backfill else "none", compatibility="rlscheduler")
    found = collect_queues([window], Policy.from_network(network), rules, decisions=10_000, seed=1, step=0)
    expected = committed_decisions(window, network, backfill=backfill)
    assert rows_of(found) == expected
    assert max(len(rows) for rows, _ in expected) == 128 or jobs < 128


def test_of_a_long_queue_some_jobs_are_kept_and_it_is_counted() -> None:
    rng = np.random.default_rng(1)
    jobs = MOST_WAITING + 100
    submit, run_time = np.arange(jobs), rng.integers(10**5, 10**6, jobs)
    window = workload(submit, run_time, run_time, np.ones(jobs, dtype=np.int64), 4)
    found = collect_queues([window], Policy("SPF", "p"), Rules(), decisions=10_000, seed=1, step=0)
    longest = np.diff(found.edges).max()
    assert longest == MOST_WAITING
    # Queues of exactly so many jobs are whole.
    assert 90 <= found.longer <= (np.diff(found.edges) == MOST_WAITING).sum()


def queues_of(lengths: list[int], seed: int = 1) -> Queues:
    rng, total = np.random.default_rng(seed), sum(lengths)
    decision = np.repeat(np.arange(len(lengths)), lengths)
    window = np.arange(len(lengths)) // 2
    p, q, w = rng.integers(1, 100, (3, total)).astype(float)
    return Queues(decision, p, q, w, rng.integers(0, 9, len(lengths)).astype(float), window, 9, 0)


def test_all_pairs_of_a_short_queue_are_drawn_and_some_of_a_long_one() -> None:
    queues = queues_of([2, 5, 30])
    preference = np.arange(len(queues.p), dtype=float)[::-1].copy()
    pairs = draw_pairs(queues, preference, most=10, seed=1, step=0)
    got = {tuple(sorted(pair)) for pair in zip(pairs.ahead.tolist(), pairs.behind.tolist(), strict=True)}
    assert len(got) == len(pairs) == 1 + 10 + 10
    assert set(itertools.combinations(range(2, 7), 2)) < got
    assert (pairs.ahead > pairs.behind).all()
    assert (queues.decision[pairs.ahead] == queues.decision[pairs.behind]).all()
    every = draw_pairs(queues, preference, most=1000, seed=1, step=0)
    assert len(every) == 1 + 10 + 30 * 29 // 2
    # Where the network sees no difference there is no pair.
    preference[2:5] = 0.5
    tied = draw_pairs(queues, preference, most=1000, seed=1, step=0)
    assert (tied.ties, len(tied)) == (3, len(every) - 3)


@pytest.mark.parametrize("seed", range(5))
def test_agreement_is_that_of_the_plain_twin(seed: int) -> None:
    lengths = [2, 3, 7, 12, 4]
    queues, rng = queues_of(lengths, seed), np.random.default_rng(seed)
    # Few different values: ties on both sides.
    preference, values = rng.integers(0, 6, (2, sum(lengths))).astype(float)
    pairs = draw_pairs(queues, preference, most=1000, seed=1, step=0)
    found = agreement_of(pairs, values)
    edges = queues.edges.tolist()
    both = list(zip(preference.tolist(), values.tolist(), strict=True))
    expected = agreement([both[first:end] for first, end in itertools.pairwise(edges)])
    assert (found.pairs, found.tau, found.first) == pytest.approx(expected, abs=1e-12)
    assert sum(every for _, every in found.by_window) == len(pairs)
    assert sum(own for own, _ in found.by_window) / len(pairs) == pytest.approx(found.pairs)


def test_without_ties_tau_is_kendalls() -> None:
    queues, rng = queues_of([9, 14, 5]), np.random.default_rng(8)
    preference, values = rng.normal(size=(2, 28))
    found = agreement_of(draw_pairs(queues, preference, most=1000, seed=1, step=0), values)
    edges = queues.edges.tolist()
    taus = [kendalltau(preference[a:b], values[a:b]).statistic for a, b in itertools.pairwise(edges)]
    assert found.tau == pytest.approx(np.mean(taus), abs=1e-12)
    assert agreement_of(draw_pairs(queues, values, most=9, seed=1, step=0), values).tau == 1.0
    assert agreement_of(draw_pairs(queues, values, most=9, seed=1, step=0), -values).pairs == 0.0
    assert first_jobs(queues, values).tolist() == [
        a + int(np.argmin(values[a:b])) for a, b in itertools.pairwise(edges)
    ]


def test_some_pairs_are_pairs_of_the_same_jobs() -> None:
    queues = queues_of([8, 3, 20])
    policy = Policy("X", "p + q*w/(1 + f)")
    pairs = draw_pairs(queues, queues.scores(policy), most=50, seed=1, step=0)
    some = pairs.some(12)
    assert len(some) == 12
    assert np.array_equal(some.preference, some.queues.scores(policy))
    assert agreement_of(some, some.queues.scores(policy)).pairs == 1.0
    assert len(some.queues.p) <= 24


def test_r_of_a_formula_counts_from_the_decision() -> None:
    queues = queues_of([4, 4])
    assert np.array_equal(queues.scores(Policy("FCFS", "r")), -queues.w)


def test_an_order_that_a_sum_of_terms_makes_is_found() -> None:
    rng = np.random.default_rng(3)
    true = np.array([1.0, -0.4, 2000.0])
    rows = rng.normal(size=(4000, 3)) * [1.0, 10.0, 0.001]
    rows *= np.where(rows @ true > 0, 1, -1)[:, None]
    found = fit_order(rows, 1e-6)
    assert ((rows @ found) > 0).mean() > 0.999
    assert found / found[0] == pytest.approx(true, rel=0.05)
    # However far apart the jobs of a pair are: only the side counts.
    stretched = fit_order(rows * rng.lognormal(0, 1, 4000)[:, None], 1e-6)
    assert ((rows @ stretched) > 0).mean() > 0.999
    assert np.array_equal(found, fit_order(rows, 1e-6))
    # The optimum of a convex loss: a stronger pull only makes it shorter.
    assert np.linalg.norm(fit_order(rows, 1.0)) < np.linalg.norm(found)


def test_it_is_the_logistic_regression_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(5)
    # Not separable, so that the optimum is inside; of length 1 in the scale of the columns, as the fit has them.
    rows = rng.normal([0.4, -0.2], 1.0, (600, 2))
    pull = 1e-3
    found = fit_order(rows, pull)
    scaled = rows / np.abs(rows).mean(axis=0)
    unit = scaled / np.linalg.norm(scaled, axis=1)[:, None]
    # Its loss is a sum, and half the squared length; a row turned round belongs to the other class.
    model = LogisticRegression(C=1 / (2 * pull * len(rows)), fit_intercept=False, tol=1e-10)
    model.fit(np.vstack([unit, -unit]), np.repeat([1, 0], len(rows)), np.full(2 * len(rows), 0.5))
    assert found * np.abs(rows).mean(axis=0) == pytest.approx(model.coef_[0], rel=1e-3)


def test_terms_that_say_nothing_are_not_fitted() -> None:
    assert fit_order(np.array([[1.0, 0.0], [2.0, 0.0]]), 1e-3) is None
    assert fit_order(np.array([[1.0, np.inf], [2.0, 0.0]]), 1e-3) is None


def test_a_curve_that_is_not_linear_in_its_coefficients_is_found_from_its_start() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(1, 100, (2, 2, 1000))

    def difference(values: np.ndarray) -> np.ndarray:
        formula = x * y ** values[0]
        given = formula[1] - formula[0]
        return given * side

    side = np.ones(1000)
    side = np.sign(difference(np.array([-0.7])))
    values, sign = search_order(difference, [0.5], 1e-6)
    assert (sign, values[0]) == (1.0, pytest.approx(-0.7, abs=0.1))
    side = -side
    assert search_order(difference, [0.5], 1e-6)[1] == -1.0


def test_the_network_of_the_twin_tells_jobs_apart() -> None:
    # The comparisons above would say nothing of a network that sees every job alike.
    window = generate_lublin(64, 200, seed=2)
    network = Network.of("X", ("log10(p)", "log10(q)"), [([[1.0], [0.3]], [0.0])])
    queues = collect_queues([window], Policy.from_network(network), Rules(), decisions=10, seed=1, step=0)
    pairs = draw_pairs(queues, queues.scores(Policy.from_network(network)), most=100, seed=1, step=0)
    assert len(pairs) > pairs.ties
