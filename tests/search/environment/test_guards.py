"""Guards: what is outside its band is said in words; the formula that cheats is found out."""

from __future__ import annotations

import math

import pytest

import policyfactory as pf
from naive.exploit import exploiting_schedule, lublin, means, windows
from policyfactory.core.errors import UsageError
from policyfactory.search.environment.goals import BANDS, GUARDS, Band, judge_guards, measure_guards
from refusals import refusal, refused

WELL = {"utilisation": 80.0, "p99_wait": 10_000.0, "max_wait": 20_000.0, "area_weighted_wait": 4_000.0}
# The worst that the bands allow beside that.
EDGE = {"utilisation": 76.0, "p99_wait": 18_600.0, "max_wait": 33_600.0, "area_weighted_wait": 9_600.0}


def test_what_is_as_the_baseline_or_better_is_inside() -> None:
    assert judge_guards(WELL, WELL) == ()
    assert judge_guards({"utilisation": 100.0, "p99_wait": 0.0, "max_wait": 0.0, "area_weighted_wait": 0.0}, WELL) == ()


@pytest.mark.parametrize("guard", GUARDS)
def test_the_edge_of_a_band_is_inside_and_beyond_it_is_not(guard: str) -> None:
    assert judge_guards(EDGE, WELL) == ()
    beyond = EDGE[guard] * (0.999 if guard == "utilisation" else 1.001)
    for value in (beyond, math.nan):
        breaches = judge_guards({**EDGE, guard: value}, WELL)
        assert [breach.guard for breach in breaches] == [guard]
        assert breaches[0].bound == pytest.approx(EDGE[guard])


def test_a_breach_in_words() -> None:
    idle, late = judge_guards({**WELL, "utilisation": 52.0, "max_wait": 36_000.0}, WELL)
    assert str(idle) == "utilisation is 52.0 %, below the least allowed, 76.0 %; the baseline's is 80.0 %"
    assert str(late) == "longest wait is 10h, above the most allowed, 9h 20m; the baseline's is 5h 33m"


def test_a_baseline_without_any_wait_leaves_an_hour() -> None:
    nobody_waits = {**dict.fromkeys(GUARDS, 0.0), "utilisation": 50.0}
    assert judge_guards({**nobody_waits, "max_wait": 3600.0}, nobody_waits) == ()
    assert len(judge_guards({**nobody_waits, "max_wait": 3601.0}, nobody_waits)) == 1


def test_bands_of_ones_own() -> None:
    tight = (Band("max_wait", 1.0), Band("mean_wait", 1.1))
    values = {"max_wait": 11.0, "mean_wait": 2.0}
    assert [breach.guard for breach in judge_guards(values, {"max_wait": 10.0, "mean_wait": 2.0}, tight)] == [
        "max_wait"
    ]
    assert {band.guard for band in BANDS} == set(GUARDS)


@pytest.mark.parametrize(
    ("band", "message"),
    [
        (("speed", 1.0), "speed guard"),
        (("backfilled", 1.0), "backfilled guard"),
        (("max_wait", 0.9), "max_wait factor 0.9 0.0 1"),
        (("utilisation", 1.1), "0 1"),
        (("utilisation", math.nan), "factor"),
        (("max_wait", 1.0, -1.0), "0 slack"),
    ],
)
def test_a_band_that_says_nothing(band: tuple[str, float], message: str) -> None:
    refused(UsageError, message, Band, *band)


def test_a_guard_that_was_not_measured() -> None:
    with refusal(UsageError, "max_wait measured"):
        judge_guards(WELL, {name: value for name, value in WELL.items() if name != "max_wait"})
    refused(UsageError, "utilisation measured", judge_guards, {}, WELL)


def test_the_formula_that_cheats_is_found_out() -> None:
    """It has a third of SAF's mean bounded slowdown, and the machine stands half idle."""
    jobs = windows(lublin())
    cheating = [exploiting_schedule(window) for window in jobs]
    saf = [pf.simulate(window, "SAF", backfill="none") for window in jobs]
    names = ("mean_bsld", "mean_wait", *GUARDS)
    measured, baseline = means(cheating, names), means(saf, names)
    # What the search that found it reported.
    assert measured["mean_bsld"] == pytest.approx(7.39, abs=0.005)
    assert measured["utilisation"] == pytest.approx(52, abs=0.5)
    assert measured["max_wait"] / 3600 == pytest.approx(390, abs=0.5)
    assert (measured["mean_wait"], baseline["mean_wait"]) == pytest.approx((40224, 14359), abs=0.5)
    assert measured["mean_bsld"] < baseline["mean_bsld"] / 3
    breaches = judge_guards(measured, baseline)
    assert {breach.guard for breach in breaches} == set(GUARDS)
    assert str(breaches[0]).startswith("utilisation is 51.9 %, below the least allowed, 67.8 %")
    # Window by window as well, at least by one of them; and SAF passes beside itself.
    for one, other in zip(cheating, saf, strict=True):
        assert judge_guards(measure_guards(one), measure_guards(other))
        assert not judge_guards(measure_guards(other), measure_guards(other))
