"""Precision against the number of trials."""

from __future__ import annotations

import numpy as np
import pytest

from naive.trials import workload_of
from policyfactory.core.errors import UsageError
from policyfactory.trials.convergence import convergence_csv, draw_convergence, measure_convergence, trial_counts
from policyfactory.trials.run import GenerateOptions

OPTIONS = GenerateOptions(tuples=2, trials=8_000, state_size=4, queue_size=8)


@pytest.fixture(scope="module")
def found():
    return measure_convergence(workload_of(), OPTIONS, repeats=20)


def test_counts_double_up_to_the_last():
    assert trial_counts(256_000) == [1000 * 2**k for k in range(9)]
    assert trial_counts(5_000) == [1000, 2000, 4000, 5000]
    assert trial_counts(600) == [600]


def test_the_spread_falls_with_the_root_of_the_trials_and_is_what_is_stated(found):
    for estimator in ("paper", "stratified"):
        rows = [row for row in found if row.estimator == estimator]
        assert [row.trials for row in rows] == (
            [1000, 2000, 4000, 8000] if estimator == "paper" else [1024, 2016, 4000, 8000]
        )
        slope = np.polyfit(np.log([row.trials for row in rows]), np.log([row.stated for row in rows]), 1)[0]
        assert slope == pytest.approx(-0.5, abs=0.05)
        # 16 deviations of 20 repetitions: their root mean square is within 20 % of the truth, 1e-4 a comparison.
        for row in rows:
            assert row.spread == pytest.approx(row.stated, rel=0.25)
            assert row.speed > 0


def test_the_stratified_estimator_is_the_more_precise(found):
    for paper, stratified in zip(found[1::2], found[0::2], strict=True):
        assert (paper.estimator, stratified.estimator) == ("paper", "stratified")
        assert stratified.stated < paper.stated / 3


def test_numbers_and_picture_are_written(found, tmp_path):
    lines = convergence_csv(found).splitlines()
    assert lines[0] == "trials,estimator,spread,stated,trials_per_second"
    assert len(lines) == 1 + len(found)
    picture = draw_convergence(found, tmp_path / "c.svg", "two tuples")
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_progress_ends_where_it_said():
    told = []
    measure_convergence(workload_of(), GenerateOptions(1, 1_000, 4, 8), repeats=2, report=lambda *now: told.append(now))
    assert told[-1] == (4_000, 4_000)


def test_one_repetition_has_no_deviation():
    with pytest.raises(UsageError, match="1 repetitions; a standard deviation needs 2"):
        measure_convergence(workload_of(), OPTIONS, repeats=1)
