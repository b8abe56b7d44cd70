"""What a formula is worth: by hand, and the guards that put it out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policyfactory.environment.goals import goal_of
from policyfactory.environment.guards import Band
from policyfactory.search.families import family_of
from policyfactory.search.objective import distance_of, gain, worth
from policyfactory.search.options import TrainOptions, parse_bands

# Two windows: goal, utilisation, p99 wait, longest wait, area-weighted wait.
SAF = np.array([[10.0, 80.0, 100.0, 1000.0, 50.0], [40.0, 60.0, 100.0, 3000.0, 50.0]])
HALF = SAF * [0.5, 1, 1, 1, 1]


def test_half_the_slowdown_in_each_window_is_a_log_ratio_of_minus_ln_2() -> None:
    made = worth(HALF, SAF, "mean_bsld", ())
    assert made.gain == made.objective == pytest.approx(-math.log(2))
    assert made.means == (12.5, 70.0, 100.0, 2000.0, 50.0)
    assert worth(HALF, SAF, "mean_bsld", (), distance=0.25).objective == pytest.approx(0.25 - math.log(2))


def test_one_window_decides_the_mean_and_not_the_log_ratio() -> None:
    one = np.array([8.0, 400.0])
    other = np.array([10.0, 100.0])
    bsld = goal_of("mean_bsld")
    assert gain(one, other, bsld, "mean") == pytest.approx(408 / 110 - 1)
    assert gain(one, other, bsld, "log-ratio") == pytest.approx((math.log(0.8) + math.log(4)) / 2)


def test_more_utilisation_is_better_and_a_wait_of_nothing_is_finite() -> None:
    up = gain(np.array([84.0]), np.array([80.0]), goal_of("utilisation"), "log-ratio")
    assert up == pytest.approx(math.log(81 / 85))
    assert gain(np.array([0.0]), np.array([99.0]), goal_of("mean_wait"), "log-ratio") == pytest.approx(-math.log(100))


def test_outside_a_band_it_is_out_and_costs_by_how_far() -> None:
    bands = (Band("utilisation", 0.95), Band("max_wait", 1.5))
    idle = HALF * [1, 0.9, 1, 1, 1]
    made = worth(idle, SAF, "mean_bsld", bands)
    assert "utilisation" in made.out
    # The bound is 66.5 %, 63 % were used: 10 times 5.556 % of it.
    assert made.objective == pytest.approx(-math.log(2) + 10 * (66.5 - 63.0) / 63.0)
    starved = worth(HALF * [1, 1, 1, 2, 1], SAF, "mean_bsld", bands)
    assert "longest wait is" in starved.out
    assert starved.objective == pytest.approx(-math.log(2) + 10 * (4000 - 3000) / 3000)
    assert worth(HALF * [1, 0.96, 1, 1.4, 1], SAF, "mean_bsld", bands).out == ""


def test_the_distance_is_in_units_of_the_scale() -> None:
    family = family_of("p + a*q - b*w", {"b": 100.0})
    assert distance_of(family, np.array([2.0, 200.0])) == pytest.approx((4 + 1) / 2)


def test_bands_are_read_from_a_list() -> None:
    bands = TrainOptions(bands=parse_bands("utilisation=0.9, max_wait=2")).guard_bands
    assert [(band.guard, band.factor) for band in bands] == [("utilisation", 0.9), ("max_wait", 2.0)]
    assert TrainOptions(bands=parse_bands("none")).guard_bands == ()
    assert {band.guard for band in TrainOptions().guard_bands} >= {"utilisation", "max_wait"}
