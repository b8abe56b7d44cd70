"""Every metric on one schedule that is worked by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import schedule_metrics
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.engine.metrics import busy_integrals, slowdown, total, weighted_total
from policyfactory.simulation.metrics import METRICS, StoppedRuns, measure
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.workload.jobs import Workload
from refusals import refused
from support import examples

# 4 processors, four jobs (A, B, C, D):
#
#   processors     0         10        20   25   30        40
#        1         A A A A A A B B B B B B B B B B D D D D        A: submit  0, start  0, end 12 (q 1)
#        2         C . . . . . B B B B B B B B B B D D D D        B: submit  2, start 12, end 32 (q 3)
#        3         C . . . . . B B B B B B B B B B D D D D        C: submit  0, start  0, end  2 (q 2)
#        4         . . . . . . . . . . . . . . . . D D D D        D: submit 12, start 32, end 40 (q 4)
#
#            w   p   q  (w+p)/max(p,10)  bsld   slowdown  pp-bsld     turnaround  area
#        A   0  12   1    12/12 = 1      1      1         1           12          12
#        B  10  20   3    30/20 = 1.5    1.5    1.5       0.5 -> 1    30          60
#        C   0   2   2     2/10 -> 1     1      1         0.1 -> 1     2           4
#        D  20   8   4    28/10 = 2.8    2.8    28/8=3.5  0.7 -> 1    28          32
EXPECTED = {
    "mean_wait": 30 / 4,
    "median_wait": 5,  # of 0, 0, 10, 20
    "p95_wait": 18.5,  # 2.85 of the way through 0, 0, 10, 20: 10 + 0.85 x 10
    "p99_wait": 19.7,
    "max_wait": 20,
    "mean_bsld": 6.3 / 4,
    "median_bsld": 1.25,  # of 1, 1, 1.5, 2.8
    "p95_bsld": 1.5 + 0.85 * 1.3,
    "p99_bsld": 1.5 + 0.97 * 1.3,
    "max_bsld": 2.8,
    "mean_slowdown": 7 / 4,
    "median_slowdown": 1.25,
    "p95_slowdown": 1.5 + 0.85 * 2,
    "p99_slowdown": 1.5 + 0.97 * 2,
    "max_slowdown": 3.5,
    "mean_pp_bsld": 1,
    "median_pp_bsld": 1,
    "p95_pp_bsld": 1,
    "p99_pp_bsld": 1,
    "max_pp_bsld": 1,
    "mean_turnaround": 72 / 4,
    "median_turnaround": 20,  # of 2, 12, 28, 30
    "p95_turnaround": 28 + 0.85 * 2,
    "p99_turnaround": 28 + 0.97 * 2,
    "max_turnaround": 30,
    "utilisation": 100 * 108 / 160,
    "utilisation_to_last_start": 100 * 108 / (4 * 32),
    "makespan": 40,
    "area_weighted_response": (12 * 12 + 60 * 30 + 4 * 2 + 32 * 28) / 108,
    "area_weighted_wait": (60 * 10 + 32 * 20) / 108,
    # In use: 3 for 2 s, 1 for 10 s, 3 for 20 s, 4 for 8 s: mean 2.7, mean square (18 + 10 + 180 + 128)/40 = 8.4.
    "throughput_sd": 100 * math.sqrt(8.4 - 2.7**2) / 4,
    "sc17_bsld": 6.3 / 4,  # with no more than 16 jobs, all of them
    # The users are unknown, so one.
    "user_mean_bsld": 6.3 / 4,
    "user_max_bsld": 6.3 / 4,
    "total_wait": 30,
    "backfilled": 1,
    "preempted": 3,
    "lost_node_hours": 1.5,
}


def schedule(ticks: int = 1, late: int = 0) -> Schedule:
    submit, start, end = (np.array(times) * ticks + late for times in ([0, 2, 0, 12], [0, 12, 0, 32], [12, 32, 2, 40]))
    order = np.argsort(submit, kind="stable")
    width = np.array([1, 3, 2, 4])
    unknown = np.full(4, -1)
    workload = Workload(
        "by hand", 4, np.arange(4), submit[order], (end - start)[order], np.full(4, 99), width[order], unknown, unknown,
        ticks=ticks,
    )  # fmt: skip
    backfilled = np.array([False, False, True, False])[order]
    stopped = StoppedRuns(np.array([1, 0, 2, 0]), np.array([3600, 0, 1800, 0]))
    return Schedule(start[order], end[order], backfilled, workload, "any", Rules(), stopped=stopped)


@pytest.mark.parametrize("name", EXPECTED)
def test_by_hand(name: str) -> None:
    assert measure(schedule(), [name]) == {name: pytest.approx(EXPECTED[name], rel=1e-14)}


def test_every_metric_is_tested_and_described() -> None:
    assert set(METRICS) == set(EXPECTED)
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.unit in {"s", "1", "%", "jobs", "runs", "h"}
        assert metric.description
    assert METRICS["utilisation"].lower_is_better is False
    assert METRICS["backfilled"].lower_is_better is None


def test_no_value_lies_beyond_the_bounds_of_its_metric() -> None:
    for name, metric in METRICS.items():
        assert metric.lowest <= EXPECTED[name] <= metric.highest
        assert metric.lowest == (1.0 if "sld" in name or "slowdown" in name else 0.0)
    assert {name: one.highest for name, one in METRICS.items() if math.isfinite(one.highest)} == {
        "utilisation": 100.0,
        "throughput_sd": 50.0,
    }


def test_neither_the_unit_of_the_clock_nor_its_start_matters() -> None:
    for other in (schedule(ticks=10**6), schedule(late=10**9)):
        assert measure(other) == pytest.approx(EXPECTED, rel=1e-14)


def test_per_processor_slowdown_above_one() -> None:
    # One job of 2 processors that waits 95 s and runs 5 s: (95 + 5)/(2 x 10) = 5.
    unknown = np.array([-1])
    one, workload = np.array([1]), None
    workload = Workload("one", 4, one, np.array([0]), np.array([5]), np.array([5]), np.array([2]), unknown, unknown)
    result = Schedule(np.array([95]), np.array([100]), np.array([False]), workload, "any", Rules())
    values = measure(result, ["mean_pp_bsld", "mean_bsld", "mean_slowdown"])
    assert values == {"mean_pp_bsld": 5, "mean_bsld": 10, "mean_slowdown": 20}


def test_the_summary_has_times_in_words_and_in_seconds() -> None:
    zero = np.zeros(2, dtype=np.int64)
    workload = Workload("two", 4, zero, zero, zero + 5, zero + 5, zero + 1, zero - 1, zero - 1)
    waits = {"2h 1m (7,300.5 s)": (7_298, 7_303), "22.5 s": (15, 30), "14d 11h (1,250,001 s)": (0, 2_500_002)}
    for words, wait in waits.items():
        start = np.array(wait)
        summary = Schedule(start, start + 5, zero == 1, workload, "any", Rules()).summary()
        assert f" {words}\n" in summary


def test_sc17_leaves_out_the_first_16_submitted() -> None:
    # 18 jobs of 10 s, each waits 10 s more than the one before; the first submitted is dispatched last.
    zero, number = np.zeros(18, dtype=np.int64), np.arange(18)
    workload = Workload("many", 18, number, number, zero + 10, zero + 10, zero + 1, zero - 1, zero - 1)
    start = number * 11
    start[0] = 1000
    result = Schedule(start, start + 10, number < 0, workload, "any", Rules())
    assert measure(result, ["sc17_bsld"]) == {"sc17_bsld": ((160 + 10) / 10 + (170 + 10) / 10) / 2}


def test_jobs_of_no_run_time() -> None:
    # Slowdown takes a run time under 1 s as 1 s; nothing was done, so nothing is weighted.
    unknown, zero = np.array([-1]), np.array([0])
    workload = Workload("none", 4, zero, zero, zero, np.array([5]), np.array([2]), unknown, unknown)
    values = measure(Schedule(zero + 30, zero + 30, zero == 1, workload, "any", Rules()))
    assert values["mean_slowdown"] == 30
    assert values["utilisation"] == 0
    assert values["throughput_sd"] == 0
    assert values["area_weighted_response"] == values["area_weighted_wait"] == 30
    at_once = Schedule(zero, zero, zero == 1, workload, "any", Rules())
    assert measure(at_once, ["makespan", "utilisation", "throughput_sd"]) == dict.fromkeys(
        ["makespan", "utilisation", "throughput_sd"], 0
    )


def test_refusals() -> None:
    refused(UsageError, "speed mean_wait", measure, schedule(), ["speed"])
    empty = np.array([], dtype=np.int64)
    workload = Workload("empty", 4, empty, empty, empty, empty, empty, empty, empty)
    refused(EvaluationError, "empty measure", measure, Schedule(empty, empty, empty == 1, workload, "any", Rules()))


@examples(200)
@given(st.lists(st.floats(-1e12, 1e12), max_size=50))
def test_total_is_exact_to_the_last_digits(values: list[float]) -> None:
    exact = schedule_metrics.total(values)
    # Neumaier's bound: one rounding of the result, and a second-order term of the sum of magnitudes.
    magnitude = schedule_metrics.total([abs(value) for value in values])
    bound = abs(exact) * Fraction(2) ** -52 + magnitude * len(values) ** 2 * Fraction(2) ** -105
    assert abs(Fraction(total(np.array(values, dtype=np.float64))) - exact) <= bound


def test_total_where_a_plain_sum_is_lost() -> None:
    assert total(np.array([1e16, 1.0, -1e16])) == 1.0


def test_kernels_on_random_schedules() -> None:
    rng = np.random.default_rng(61)
    for _ in range(50):
        start, length, width = rng.integers(0, 30, 20), rng.integers(0, 10, 20), rng.integers(1, 5, 20)
        assert busy_integrals(start, start + length, width) == schedule_metrics.busy_integrals(
            start, start + length, width
        )
        assert weighted_total(start, length, width) == schedule_metrics.weighted_total(start, length, width)
        actual = slowdown(start, length, width, 3)
        assert actual.tolist() == [float(value) for value in schedule_metrics.slowdown(start, length, width, 3)]
