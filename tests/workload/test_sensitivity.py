"""Load scaling and requests of another kind: one thing changes, the rest stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from policyfactory.workload.sensitivity import (
    EstimateRule,
    Sensitivity,
    apply_estimates,
    parse_estimates,
    scale_load,
)
from refusals import refused

OTHERS = ("job_id", "run_time", "processors", "user")


@pytest.fixture(scope="module")
def kth(shared: Callable[[str], Path]) -> Workload:
    return read(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"))


def toy(submit: list[int], run_time: list[int] | None = None, *, ticks: int = 1) -> Workload:
    n = len(submit)
    run = np.array(run_time if run_time is not None else [10] * n)
    ones = np.ones(n, dtype=np.int64)
    return Workload(
        "toy", 4, np.arange(n), np.array(submit), run, run * 3 + 1, ones, ones, np.array(submit), ticks=ticks
    )


def unchanged(one: Workload, other: Workload, *names: str) -> None:
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_gaps_are_divided_and_nothing_else_changes(kth: Workload) -> None:
    scaled = scale_load(kth, 1.1)
    unchanged(scaled, kth, *OTHERS, "requested_time")
    assert np.abs((scaled.submit - kth.submit[0]) * 1.1 - (kth.submit - kth.submit[0])).max() <= 0.5 * 1.1 + 1e-6
    assert (scaled.start == -1).all()
    assert scaled.offered_load == pytest.approx(1.1 * kth.offered_load, rel=1e-6)
    # Run time x processors of the cleaned log over 100 processors x its span.
    assert "offered load 0.7011 -> 0.7712" in scaled.origin


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=30),
    st.one_of(st.floats(0.01, 100), st.sampled_from([0.01, 100.0, 1.0, 0.5, 2.0])),
)
def test_no_job_overtakes_another_and_rounding_does_not_add_up(submit: list[int], factor: float) -> None:
    log = toy(sorted(submit))
    scaled = scale_load(log, factor)
    assert (np.diff(scaled.submit) >= 0).all()
    assert scaled.submit[0] == log.submit[0]
    exact = (log.submit - log.submit[0]) / factor
    assert np.abs(scaled.submit - log.submit[0] - exact).max() <= 0.5


def test_a_factor_of_1_is_no_change(kth: Workload) -> None:
    assert scale_load(kth, 1.0) is kth
    assert Sensitivity().apply(kth, seed=1) is kth


@pytest.mark.parametrize("factor", [0.0, -1.0, 0.009, 101.0, float("nan"), float("inf")])
def test_a_factor_out_of_range_is_refused(factor: float) -> None:
    refused(UsageError, "outside 0.01 100", scale_load, toy([0, 1]), factor)


def test_arrivals_beyond_the_clock_are_refused() -> None:
    refused(WorkloadError, "larger factor 0.01 toy", scale_load, toy([0, 2**50]), 0.01)


def test_the_load_of_jobs_without_a_span_is_not_known() -> None:
    assert np.isnan(toy([5, 5]).offered_load)
    assert np.isnan(toy([]).offered_load)
    assert toy([0, 10]).offered_load == 20 / 40


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("user", EstimateRule("user")),
        (" Exact ", EstimateRule("exact")),
        ("noisy:0.2", EstimateRule("noisy", 0.2)),
        ("noisy:.5", EstimateRule("noisy", 0.5)),
        ("noisy:0", EstimateRule("noisy", 0.0)),
        ("tsafrir", EstimateRule("tsafrir")),
    ],
)
def test_rules_are_read_and_written(text: str, rule: EstimateRule) -> None:
    assert parse_estimates(text) == rule
    assert parse_estimates(str(rule)) == rule


@pytest.mark.parametrize(
    "text", ["", "perfect", "noisy", "noisy:", "noisy:-1", "noisy:x", "noisy:1e3", "exact:1", "noisy:9999999"]
)
def test_a_rule_that_is_not_known_is_refused(text: str) -> None:
    refused(UsageError, "estimates", parse_estimates, text)


def test_exact_requests_are_the_run_times_and_at_least_a_tick(kth: Workload) -> None:
    exact = apply_estimates(kth, "exact", seed=1)
    np.testing.assert_array_equal(exact.requested_time, kth.run_time)
    unchanged(exact, kth, *OTHERS, "submit", "start")
    assert apply_estimates(toy([0], [0]), "exact", seed=1).requested_time.tolist() == [1]
    assert apply_estimates(kth, "user", seed=1) is kth


@given(
    st.lists(st.integers(0, 10**7), min_size=1, max_size=20),
    st.floats(0, 1000).map(lambda value: round(value, 3)),
    st.integers(0, 99),
)
def test_a_noisy_request_lies_between_the_run_time_and_its_multiple(runs: list[int], noise: float, seed: int) -> None:
    log = toy([0] * len(runs), runs)
    noisy = apply_estimates(log, EstimateRule("noisy", noise), seed=seed)
    assert (noisy.requested_time >= np.maximum(log.run_time, 1)).all()
    assert (noisy.requested_time <= np.maximum(np.ceil(log.run_time * (1 + noise) + 1e-6), 1)).all()
    unchanged(noisy, log, *OTHERS, "submit", "start")


def test_noise_is_uniform_and_independent_of_the_run_time(kth: Workload) -> None:
    # Long runs, so that whole seconds do not matter; each test fails a correct program with a chance of 1e-6.
    noisy = apply_estimates(kth, "noisy:0.2", seed=4)
    long = kth.run_time > 5_000
    assert long.sum() > 8_000
    share = (noisy.requested_time[long] / kth.run_time[long] - 1) / 0.2
    assert stats.kstest(share, "uniform").pvalue > 1e-6
    assert stats.spearmanr(share, kth.run_time[long]).pvalue > 1e-6
    again = apply_estimates(kth, "noisy:0.2", seed=4)
    others = [apply_estimates(kth, "noisy:0.2", seed=5), apply_estimates(kth, "noisy:0.2", seed=4, number=2)]
    assert noisy.sha256() == again.sha256()
    assert len({noisy.sha256(), *(other.sha256() for other in others)}) == 3
    assert "uniform in 1 to 1.2 run times, seed 4, number 1" in noisy.origin


def test_noise_that_leaves_the_clock_is_refused() -> None:
    refused(WorkloadError, "smaller factor 1e+06 toy", apply_estimates, toy([0], [2**40]), "noisy:1000000", seed=0)


def test_requests_of_the_tsafrir_model_end_at_the_longest_of_the_log(kth: Workload) -> None:
    made = apply_estimates(kth, "tsafrir", seed=1)
    longest = int(kth.requested_time.max())
    assert made.requested_time.max() <= longest
    assert (made.requested_time >= made.run_time).all()
    unchanged(made, kth, "job_id", "processors", "user", "submit")
    assert (made.run_time == np.minimum(kth.run_time, longest)).all()
    assert made.sha256() != apply_estimates(kth, "tsafrir", seed=1, number=2).sha256()
    # Users ask for few round times; so does the model.
    assert len(np.unique(made.requested_time)) < 1_000
    assert apply_estimates(kth, "tsafrir", seed=1, longest_s=2 * longest).requested_time.max() > longest


def test_both_axes_at_once(kth: Workload) -> None:
    both = Sensitivity(1.2, parse_estimates("exact")).apply(kth, seed=1)
    np.testing.assert_array_equal(both.requested_time, kth.run_time)
    np.testing.assert_array_equal(both.submit, scale_load(kth, 1.2).submit)


def test_no_jobs_have_no_requests_to_change() -> None:
    empty = toy([])
    for rule in ("exact", "noisy:1", "tsafrir"):
        assert len(apply_estimates(empty, rule, seed=0)) == 0
    assert len(scale_load(empty, 2)) == 0
