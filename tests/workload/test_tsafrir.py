"""The Tsafrir-Etsion-Feitelson estimates in the original program's random numbers, and its fixed parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive.tsafrir as naive
from naive.tsafrir_measures import SAMPLES, measure
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.workload.models import tsafrir
from policyfactory.workload.models import tsafrir as tsafrir_bins
from policyfactory.workload.models.drand48 import GlibcRand
from policyfactory.workload.models.lublin import LublinModel, draw_jobs, generate_lublin
from policyfactory.workload.models.tsafrir import (
    assign,
    chance,
    distinct_estimates,
    draw_estimates,
    head_sizes,
    head_times,
    make_histogram,
    rank_head,
    tail_times,
    tsafrir_estimates,
)
from refusals import refused
from support import some_by_day

HOUR = 3600


@pytest.fixture(scope="module")
def oracle(shared: Callable[[str], Path]) -> dict:
    return json.loads(shared("oracles/tsafrir_oracle.json").read_text())


def reseeded(seed: int):
    """The oracle's statistics were made with rand() seeded as well, by seed + 1."""
    luck = chance(seed, "drand48")
    luck._rand = GlibcRand(seed + 1)
    return luck


@pytest.mark.parametrize(
    ("jobs", "longest", "seed"), [(1000, 64800, 0), (10_000, 162_754, 0), (10_000, 64800, 1)]
)  # fmt: skip
def test_golden_histograms_of_the_original_program(oracle: dict, jobs: int, longest: int, seed: int) -> None:
    golden = oracle["golden_histograms_original_program"][f"N{jobs}_Tmax{longest}_seed{seed}"]
    histogram = make_histogram(jobs, longest, (), chance(seed, "drand48"))
    assert np.column_stack([histogram.times, histogram.jobs]).tolist() == golden


def test_head_times(oracle: dict) -> None:
    for longest, times in oracle["head_times_by_Tmax"].items():
        assert head_times(int(longest)) == times
        assert len(set(times)) == 20


def test_head_sizes_and_constants(oracle: dict) -> None:
    assert head_sizes() == pytest.approx(oracle["constants"]["head_percent_by_rank_1_to_20"], rel=1e-12)
    assert sum(head_sizes()) == pytest.approx(89)
    assert list(tsafrir_bins.JOINT) == oracle["constants"]["joint_seconds"]
    assert [list(row) for row in tsafrir_bins._RANKS_SEEN] == oracle["constants"]["ttr_to_rank_sdsc106_ctc_kth4h_blue"]


def test_number_of_values_and_shares_of_the_popular_ones(oracle: dict) -> None:
    for jobs, expected in oracle["K_of_N"].items():
        assert distinct_estimates(int(jobs)) == expected["K"]
        for stream in ("numpy", "drand48"):
            histogram = make_histogram(int(jobs), 162_754, (), chance(3, stream))
            assert histogram.jobs.sum() == int(jobs)
            assert len(histogram.times) == expected["distinct_estimates_Tmax162754"]
            for count in (1, 2, 5, 10, 20, 50):
                assert histogram.share(count) == pytest.approx(expected[f"top{count}_share"], rel=1e-12), (jobs, count)


def test_a_tail_that_cannot_be_placed_is_shorter() -> None:
    # 250,000 jobs have 565 values, but of a longest of 4 h only 517 find a place (notes of the program's author).
    assert len(make_histogram(250_000, 4 * HOUR, (), chance(0, "numpy")).times) == 517
    # The value at x = 1 is the longest itself and moves 30 s down; the next minute is free.
    assert tail_times(2, 565, 7200, {7200})[-1] == 7170


@pytest.mark.slow
def test_ranks_of_the_head_over_two_thousand_seeds(oracle: dict) -> None:
    counts = np.zeros((20, 20))
    for seed in range(2000):
        for row, rank in enumerate(rank_head({}, reseeded(seed))):
            counts[row, rank - 1] += 1
    key = "P_rank_given_ttr (row ttr 0..19, column rank 1..20)"
    assert (counts / 2000 == np.array(oracle["head_mapping_2000_seeds"][key])).all()


@pytest.mark.parametrize("name", some_by_day(SAMPLES, 4))
def test_every_statistic_of_estimates_given_to_jobs(oracle: dict, name: str) -> None:
    sample, longest = name.split("_Tmax")
    mode, machine = sample.split("_")
    model = LublinModel.for_machine(int(machine), typed=mode == "typed")
    measured = []
    for seed in range(1, 21):
        run = draw_jobs(model, 10_000, seed=seed, stream="drand48").run_time
        luck = reseeded(seed)
        histogram = make_histogram(len(run), int(longest), (), luck)
        held = np.minimum(run, int(longest))
        measured.append(measure(run, held, tsafrir._give(held, histogram, luck), histogram, int(longest)))
    expected = oracle["assignment"][name]
    assert expected.pop("failed_seeds") == 0
    for key, value in expected.items():
        values = np.array([sample[key] for sample in measured], dtype=float)
        assert values.mean(axis=0) == pytest.approx(np.array(value["mean"]), rel=1e-9, abs=1e-12), key
        assert values.std(axis=0, ddof=1) == pytest.approx(np.array(value["sd"]), rel=1e-6, abs=1e-9), key


@given(st.data())
def test_assignment_is_its_plain_twin(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 30))
    estimates = sorted(data.draw(st.lists(st.integers(1, 20), min_size=n, max_size=n)), reverse=True)
    run = sorted((data.draw(st.integers(0, estimate)) for estimate in estimates), reverse=True)
    draws = data.draw(st.lists(st.integers(0, 2**62), min_size=n, max_size=n))
    given_ = assign(np.array(run), np.array(estimates), np.array(draws, dtype=np.int64)).tolist()
    assert given_ == naive.assign(run, estimates, draws)
    assert sorted(given_, reverse=True) == estimates
    assert all(e >= r for e, r in zip(given_, run, strict=True))


def test_all_runs_above_the_longest_request_are_cut_and_counted() -> None:
    workload = generate_lublin(256, 5000, seed=1)
    longest = 10 * HOUR
    expected = int((workload.run_time > longest).sum())
    made = draw_estimates(workload.run_time, longest, seed=1)
    assert made.cut == expected > 0
    assert (made.run_time == np.minimum(workload.run_time, longest)).all()
    assert (made.requested_time >= made.run_time).all()
    result = tsafrir_estimates(workload, max_estimate=longest, seed=1)
    assert (result.requested_time == made.requested_time).all()
    assert (result.run_time == made.run_time).all()
    assert f"{expected} run times cut to it" in result.origin
    assert "Tsafrir model, numpy stream, seed 1, at most 10h" in result.origin
    assert "requested time = run time" not in result.origin
    assert (result.submit == workload.submit).all()


def test_a_clock_of_microseconds_gets_requests_of_whole_seconds() -> None:
    import dataclasses

    workload = generate_lublin(64, 300, seed=2)
    fine = dataclasses.replace(
        workload,
        ticks=1000,
        submit=workload.submit * 1000,
        run_time=workload.run_time * 1000 - 1,
        requested_time=workload.run_time * 1000,
    )
    coarse = tsafrir_estimates(workload, max_estimate=18 * HOUR, seed=2)
    result = tsafrir_estimates(fine, max_estimate=18 * HOUR, seed=2)
    assert (result.requested_time == coarse.requested_time * 1000).all()
    assert (result.run_time <= result.requested_time).all()


@pytest.mark.parametrize(
    ("jobs", "longest", "bins", "message"),
    [
        (226, 64800, (), "226 227"),
        (1000, 5700, (), "5700 5701"),
        (1000, 64800, ((64801, 5),), "64801=5 1 64800"),
        (1000, 64800, ((600, 0),), "600=0 give 1 1000"),
        (1000, 64800, ((600, 1001),), "give 1 1000"),
        (1000, 64800, ((600, 5), (600, 6)), "600 5 6"),
        (1000, 64800, tuple((60 * k, 1) for k in range(1, 21)), "20 19"),
        (1000, 64800, ((600, 600), (900, 600)), "1200 1000"),
    ],
)
def test_what_is_out_of_range_is_refused(jobs: int, longest: int, bins: tuple, message: str) -> None:
    refused(UsageError, message, make_histogram, jobs, longest, bins, chance(0, "numpy"))


def test_unknown_stream_and_seed_are_refused() -> None:
    refused(UsageError, "mt unknown", chance, 0, "mt")
    refused(UsageError, "seed -1", chance, -1, "drand48")


def test_runs_that_no_estimates_can_cover_are_refused_with_the_cure() -> None:
    run = np.full(1000, 64800)
    refused(WorkloadError, "219 64800 218 --bin 64800=JOBS", draw_estimates, run, 64800, seed=0)
    made = draw_estimates(run, 64800, seed=0, user_bins=((64800, 1000),))
    assert (made.requested_time == 64800).all()
