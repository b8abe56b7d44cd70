"""The measures of predictions, against known answers and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from policyfactory.review.predictions import area_under_curve, measures_of


def test_known_answers() -> None:
    found = measures_of(np.array([10.0, 200.0, 100.0]), np.array([20.0, 100.0, 100.0]), np.array([1.0, 3.0, 2.0]))
    assert found.jobs == 3
    assert found.absolute_s == pytest.approx(110 / 3)
    assert found.absolute_ln == pytest.approx(2 * math.log(2) / 3)
    assert found.median_ratio == 1
    assert found.under == pytest.approx(1 / 3)
    assert found.auc == 1


def test_a_second_is_the_least_time() -> None:
    found = measures_of(np.array([0.25]), np.array([0.0]), np.array([0.25]))
    assert (found.absolute_s, found.absolute_ln, found.median_ratio) == (0.25, 0, 0.25)
    assert math.isnan(found.auc)


def test_of_no_job_nothing_is_said() -> None:
    found = measures_of(*[np.empty(0)] * 3)
    assert found.jobs == 0
    assert math.isnan(found.absolute_ln)


@pytest.mark.parametrize("seed", range(10))
def test_the_area_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 12, 60).astype(np.float64)
    is_short = rng.random(60) < 0.3
    assert area_under_curve(values, is_short) == pytest.approx(roc_auc_score(is_short, -values))


def test_all_or_none_short() -> None:
    assert math.isnan(area_under_curve(np.arange(3.0), np.ones(3, dtype=np.bool_)))
    assert math.isnan(area_under_curve(np.arange(3.0), np.zeros(3, dtype=np.bool_)))
