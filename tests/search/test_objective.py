"""What a formula is worth: by hand, and the guards that put it out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policyfactory.policy.policy import Policy
from policyfactory.search.environment.goals import Band, goal_of
from policyfactory.search.families import REFERENCES, family_of
from policyfactory.search.formulas import distance_of, worth
from policyfactory.search.judging import gain
from policyfactory.search.learner import draw_windows, measured, played
from policyfactory.search.options import TrainOptions, parse_bands
from policyfactory.workload.clean import read
from support import shared_path

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


def test_the_formula_that_leaves_the_machine_idle_is_out_however_small_its_slowdown() -> None:
    workload = read(shared_path("traces/lublin_256.swf"), estimate_missing="runtime")
    options = TrainOptions(backfill="none", windows="rlscheduler:10x1024jobs:1")
    windows = played(draw_windows(workload, options).cut(workload, "judged"), options.rules)
    # Half of the slowdown under SAF, by leaving processors idle until the next small job comes.
    idle = Policy("idle", "log10(p) + 2.461*log10(q) - 0.02*(log10(w + 10) - 1) + 1.032*min(1, max(0, f - q + 1))")
    values, base = (measured(windows, one, goal_of("mean_bsld")) for one in (idle, REFERENCES["SAF"]))
    made = worth(values, base, "mean_bsld", options.guard_bands)
    assert made.means[0] < 0.5 * base[:, 0].mean()
    assert made.gain < -0.5
    assert "utilisation is" in made.out
    assert made.objective > made.gain
