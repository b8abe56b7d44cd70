"""EstimatorPrecision against the number of trials."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from naive.trials import workload_of
from policyfactory.core.errors import UsageError
from policyfactory.trials.run import (
    EstimatorPrecision,
    Scores,
    convergence_csv,
    draw_convergence,
    measure_convergence,
    trial_counts,
)
from policyfactory.trials.table import GenerateOptions
from refusals import refused

OPTIONS = GenerateOptions(tuples=2, trials=8_000, state_size=4, queue_size=8)


@pytest.fixture(scope="module")
def result():
    return measure_convergence(workload_of(), OPTIONS, repeats=20)


def test_counts_double_up_to_the_last():
    assert trial_counts(256_000) == [1000 * 2**k for k in range(9)]
    assert trial_counts(5_000) == [1000, 2000, 4000, 5000]
    assert trial_counts(600) == [600]
    assert trial_counts(1_000) == [1000]
    assert trial_counts(1_999) == [1000, 1999]
    assert trial_counts(2_000) == [1000, 2000]


def test_the_spread_falls_with_the_root_of_the_trials_and_is_what_is_stated(result):
    for estimator in ("paper", "stratified"):
        rows = [row for row in result if row.estimator == estimator]
        assert [row.trials for row in rows] == (
            [1000, 2000, 4000, 8000] if estimator == "paper" else [1024, 2016, 4000, 8000]
        )
        slope = np.polyfit(np.log([row.trials for row in rows]), np.log([row.stated for row in rows]), 1)[0]
        assert slope == pytest.approx(-0.5, abs=0.05)
        # 16 deviations of 20 repetitions: their root mean square is within 20 % of the truth, 1e-4 a comparison.
        for row in rows:
            assert row.spread == pytest.approx(row.stated, rel=0.25)
            assert row.speed > 0


def test_the_stratified_estimator_is_the_more_precise(result):
    for paper, stratified in zip(result[1::2], result[0::2], strict=True):
        assert (paper.estimator, stratified.estimator) == ("paper", "stratified")
        assert stratified.stated < paper.stated / 3


def test_numbers_and_picture_are_written(result, tmp_path):
    lines = convergence_csv(result).splitlines()
    assert lines[0] == "trials,estimator,spread,stated,trials_per_second"
    assert len(lines) == 1 + len(result)
    picture = draw_convergence(result, tmp_path / "c.svg", "two tuples")
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_progress_ends_where_it_said():
    reported = []
    measure_convergence(
        workload_of(), GenerateOptions(1, 1_000, 4, 8), repeats=2, report=lambda *now: reported.append(now)
    )
    assert reported[-1] == (4_000, 4_000)


def test_one_repetition_has_no_deviation():
    refused(UsageError, "1 2", measure_convergence, workload_of(), OPTIONS, repeats=1)


def test_spread_claim_and_speed_by_hand(monkeypatch):
    # Scores of 1/8 that are by turns 0.01 higher and lower, twice as far with the paper's estimator; errors of 0.02 in
    # the first tuple and 0.04 in the second; a quarter of a second for each measurement.
    drawn, reported, clock = [], [], iter(np.arange(100) / 4)

    def fake(_problem, estimator, trials, words):
        drawn.append(tuple(words))
        off = (0.01 if len(drawn) % 2 else -0.01) * (2 if estimator == "paper" else 1)
        return Scores(np.full(8, 1 / 8 + off), np.full(8, 0.02 if (len(drawn) - 1) // 4 % 2 == 0 else 0.04), trials)

    monkeypatch.setattr("policyfactory.trials.run.estimate", fake)
    monkeypatch.setattr("policyfactory.trials.run.time.perf_counter", lambda: next(clock))
    options = GenerateOptions(2, 1_000, 4, 8)
    result = measure_convergence(workload_of(), options, repeats=4, report=lambda *now: reported.append(now))
    # Four values +-d around their mean: variance 4 d^2 / 3. The mean score is 1/8.
    for row, size, trials in zip(result, (0.01, 0.02), (1_024, 1_000), strict=True):
        assert row.spread == pytest.approx(8 * size * np.sqrt(4 / 3), rel=1e-12)
        assert row.stated == pytest.approx(8 * np.sqrt((0.02**2 + 0.04**2) / 2), rel=1e-12)
        assert (row.trials, row.speed) == (trials, trials * 4 * 2 / 0.5)
    assert [row.estimator for row in result] == ["stratified", "paper"]
    assert reported == [(4_000 * k, 16_000) for k in range(1, 5)]
    # Every repetition of every measurement has orders of its own.
    assert len(set(drawn)) == len(drawn) == 16
    assert {len(words) for words in drawn} == {4}
    seeds = [word for words in drawn for word in words]
    assert 0 < min(seeds) < 2**31 < max(seeds) < 2**32


def test_the_numbers_as_csv():
    result = [
        EstimatorPrecision("paper", 1000, 0.5, 0.25, 12345.6),
        EstimatorPrecision("stratified", 1024, 1 / 3, 0.1, 9.4),
    ]
    assert convergence_csv(result) == (
        "trials,estimator,spread,stated,trials_per_second\n"
        "1000,paper,0.5,0.25,12346\n1024,stratified,0.3333333333333333,0.1,9\n"
    )


def test_how_many_repetitions_can_be_meant(monkeypatch):
    known = np.array([[0.4, 0.6], [0.6, 0.4]])
    monkeypatch.setattr("policyfactory.trials.run._repeat", lambda *_: (known, known))
    options = GenerateOptions(1, 16, 0, 2)
    assert len(measure_convergence(workload_of(), options, repeats=2)) == 2
    assert len(measure_convergence(workload_of(), options, repeats=10_000)) == 2
    refused(UsageError, "10001 repetitions", measure_convergence, workload_of(), options, repeats=10_001)


def test_repetitions_are_ten_as_in_the_paper_and_two_at_the_least():
    assert inspect.signature(measure_convergence).parameters["repeats"].default == 10
    refused(UsageError, "1 repetitions", measure_convergence, workload_of(), OPTIONS, repeats=1)
