"""Which jobs make a tuple."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from naive.trials import workload_of
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.trials.run import count_places, cut_tuple, draw_places
from policyfactory.trials.table import GenerateOptions
from refusals import refused


def test_a_tuple_is_consecutive_jobs_with_times_from_the_first():
    workload = workload_of()
    cut = cut_tuple(workload, 7, 5, 9)
    queue = slice(12, 21)
    assert_array_equal(cut.p, workload.run_time[queue])
    assert_array_equal(cut.q, workload.processors[queue])
    assert_array_equal(cut.r, workload.submit[queue] - workload.submit[7])
    assert_array_equal(cut.problem.r, cut.r)


def test_a_log_in_microseconds_has_the_same_tuples_in_seconds():
    seconds, micro = (cut_tuple(workload_of(ticks=ticks), 3, 4, 6) for ticks in (1, 10**6))
    for column in ("p", "q", "r"):
        assert_array_equal(getattr(micro, column), getattr(seconds, column))
    assert_array_equal(micro.problem.p, seconds.problem.p.astype(np.int64) * 10**6)
    assert micro.problem.limits[2] == 10**7


def test_every_place_is_used_once_before_any_is_used_twice():
    places = draw_places(10, 25, seed=1)
    assert_array_equal(np.sort(places[:10]), np.arange(10))
    assert_array_equal(np.sort(places[10:20]), np.arange(10))
    assert_array_equal(draw_places(10, 7, seed=1), places[:7])
    assert not np.array_equal(draw_places(10, 25, seed=2), places)


def test_sizes_that_are_out_of_range_are_refused():
    workload = workload_of(20)
    assert count_places(workload, 5, 15) == 1
    refused(WorkloadError, "needs 16 32 48 20 random", count_places, workload, 16, 32)
    refused(UsageError, "--queue-size 2 255", GenerateOptions(state_size=5, queue_size=1).check)
    refused(UsageError, "--state-size 0 10,000", GenerateOptions(state_size=-1, queue_size=5).check)


def test_sizes_up_to_the_limits_are_accepted():
    workload = workload_of(10_010)
    assert count_places(workload, 0, 2) == 10_009
    assert count_places(workload, 16, 255) == 9_740
    assert count_places(workload, 10_000, 9) == 2
    assert count_places(workload, 10_000, 10) == 1
    refused(UsageError, "--queue-size 256", GenerateOptions(state_size=16, queue_size=256).check)
    refused(UsageError, "--state-size 10001", GenerateOptions(state_size=10_001, queue_size=2).check)
    refused(WorkloadError, "needs 10000 11 10011 random", count_places, workload, 10_000, 11)
    for tuples in (1, 10**7):
        GenerateOptions(tuples=tuples).check()
    for tuples in (0, 10**7 + 1):
        refused(UsageError, f"--tuples {tuples}", GenerateOptions(tuples=tuples).check)
    refused(UsageError, "-1 seed", GenerateOptions(seed=-1).check)
    refused(UsageError, "255 256 trials", GenerateOptions(trials=255).check)


def test_the_bounded_slowdown_divides_by_ten_seconds_at_least():
    assert [cut_tuple(workload_of(ticks=ticks), 0, 4, 6).problem.limits[2] for ticks in (1, 1000)] == [10, 10_000]


def test_no_two_purposes_of_scores_and_fits_share_random_numbers():
    from policyfactory.fitting import bootstrap
    from policyfactory.fitting import forms as nonlinear
    from policyfactory.trials import run
    from policyfactory.trials import run as convergence
    from policyfactory.trials import run as tuples

    streams = [tuples._PLACES, run._ORDERS, convergence._REPEATS]
    streams += [nonlinear._STREAM, bootstrap._STREAM, bootstrap._CERTAINTY_STREAM]
    assert len(set(streams)) == 6
