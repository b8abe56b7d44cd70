"""What earlier forecasts teach: too narrow intervals become right, right ones stay, and few teach nothing."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.statistics.calibration import FEWEST, LEVELS, PastForecast, Stretch, starts_if_kept, stretch_of

HORIZON = 86_400.0


def outcomes(instants: int, narrow: float, late: float, seed: int) -> list[tuple[PastForecast, np.ndarray]]:
    """Return forecasts whose futures spread so much too little and come so much too early, with their futures."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(instants):
        middle = rng.uniform(6.0, 9.0, 5)
        start = np.exp(middle + late + rng.standard_normal(5)) - 60
        futures = np.exp(middle + narrow * rng.standard_normal((200, 5))) - 60
        start, futures = np.clip(start, 0, HORIZON), np.clip(futures, 1, HORIZON)
        found.append(((np.quantile(futures, LEVELS, axis=0), start), futures))
    return found


def inside(told: list[tuple[PastForecast, np.ndarray]], stretch: Stretch, low: int, high: int) -> float:
    contained = []
    for outcome, futures in told:
        quantiles = np.quantile(stretch.apply(futures, HORIZON), LEVELS, axis=0)
        contained.append((outcome[1] >= quantiles[low]) & (outcome[1] <= quantiles[high]))
    return float(np.mean(contained))


@pytest.mark.parametrize(("narrow", "late"), [(0.5, 0.0), (0.6, 0.5), (1.0, 0.0), (1.4, -0.4)])
def test_intervals_contain_what_they_say_once_earlier_forecasts_are_known(narrow: float, late: float) -> None:
    stretch = stretch_of([outcome for outcome, _ in outcomes(400, narrow, late, 1)], HORIZON)
    told = outcomes(400, narrow, late, 2)
    assert inside(told, stretch, 0, 4) == pytest.approx(0.9, abs=0.03)
    assert inside(told, stretch, 1, 3) == pytest.approx(0.5, abs=0.05)
    assert stretch.shift == pytest.approx(late, abs=0.15)


def test_few_forecasts_or_none_change_nothing() -> None:
    stretch = stretch_of([outcome for outcome, _ in outcomes(FEWEST - 1, 0.5, 0.0, 1)], HORIZON)
    futures = outcomes(1, 1.0, 0.0, 3)[0][1]
    assert stretch == Stretch()
    assert stretch.apply(futures, HORIZON).tobytes() == futures.tobytes()


def test_futures_keep_their_order_and_what_is_certain_stays() -> None:
    stretch = Stretch(0.3, (0.5, 3.0, 2.0, 0.6), 50)
    starts = np.sort(np.random.default_rng(1).integers(0, 90_000, (101, 1)), axis=0).astype(np.float64)
    starts[:5], starts[-5:] = 0, HORIZON
    moved = stretch.apply(np.minimum(starts, HORIZON), HORIZON)
    assert (np.diff(moved[:, 0]) >= 0).all()
    assert (moved[:5] == 0).all()
    assert (moved[-5:] == HORIZON).all()


def test_an_instant_with_many_jobs_counts_no_more_than_one_with_few() -> None:
    few = [outcome for outcome, _ in outcomes(60, 1.0, 0.0, 1)]
    crowd = (np.tile(np.array([[60.0], [100.0], [200.0], [300.0], [400.0]]), 5000), np.full(5000, 80_000.0))
    without, with_crowd = stretch_of(few, HORIZON), stretch_of([*few, crowd], HORIZON)
    assert with_crowd.factors[3] == pytest.approx(without.factors[3], rel=0.3)


def test_starts_of_jobs_that_are_cancelled_are_told_as_if_they_were_kept() -> None:
    rng = np.random.default_rng(4)
    futures = 4000
    start = np.minimum(rng.exponential(3600, (futures, 2)), HORIZON)
    patience = rng.exponential(5400, (futures, 2)).astype(np.int64) + 1
    patience[:, 1] = 2**62
    gone = start > patience
    # A cancelled job has no start: the horizon stands for it.
    kept = starts_if_kept(np.where(gone, HORIZON, start), patience, HORIZON)
    np.testing.assert_array_equal(kept[~gone], start[~gone])
    for level in (0.25, 0.5, 0.75):
        truth = -3600 * np.log(1 - level)
        assert np.quantile(kept[:, 0], level) == pytest.approx(truth, rel=0.08)
        # To leave those futures out would tell starts that are too early.
        assert np.quantile(start[~gone[:, 0], 0], level) < 0.8 * truth
