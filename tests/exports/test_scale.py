"""From scores to whole numbers: the order is kept, the range is learnt from jobs, ties are counted."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfactory.core.errors import ExportError, UsageError
from policyfactory.core.text import DAY, WEEK
from policyfactory.exports.content import ExportSite
from policyfactory.exports.sample import ExportSample, learn_scale, sample_of, wide_sample
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.scale import LARGEST, MOST_TIES, PriorityScale, scale_of, tie_share
from policyfactory.policy.store import CATALOGUE
from policyfactory.workload.jobs import Workload
from refusals import refused
from sites import make_sample

FINITE = st.floats(allow_nan=False, allow_infinity=False)
START = Epoch("fixed", 1_767_225_600)


def fixed(name: str) -> Policy:
    return dataclasses.replace(CATALOGUE[name], epoch=START)


@pytest.mark.parametrize("name", ["F1", "SAF", "LIN-SYNTHETIC"])
def test_no_inversion_and_few_ties_on_a_million_jobs(name: str) -> None:
    policy = fixed(name)
    sample = wide_sample(policy)
    assert len(sample) == 1_000_000
    scores = policy.scores(sample.p, sample.q, sample.r, sample.w)
    scale = learn_scale(policy, sample)
    order = np.argsort(scores, kind="stable")
    assert (np.diff(scale.integers(scores)[order]) <= 0).all()
    assert tie_share(scale, scores) < MOST_TIES


@given(st.lists(st.floats(), min_size=2, max_size=30), FINITE, FINITE)
def test_higher_scores_get_lower_numbers_within_the_range(scores: list[float], a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    if not (low < high and math.isfinite(high - low)):
        refused(ExportError, "mapped numbers", PriorityScale, low, high)
        return
    numbers = PriorityScale(low, high).integers(scores)
    assert numbers.min() >= 1
    assert numbers.max() <= LARGEST
    known = sorted((score, number) for score, number in zip(scores, numbers.tolist(), strict=True) if score < math.inf)
    assert all(first[1] >= second[1] for first, second in itertools.pairwise(known))
    last = [number for score, number in zip(scores, numbers, strict=True) if not score < math.inf]
    assert all(number == 1 for number in last)


@pytest.mark.parametrize("largest", [-5, 0, 1, LARGEST + 1])
def test_numbers_that_cannot_order_or_do_not_fit_are_refused(largest: int) -> None:
    refused(ExportError, "give 2 2,000,000,000", PriorityScale, 0.0, 1.0, largest)
    assert PriorityScale(0.0, 1.0, 2).integers([0.0, 1.0]).tolist() == [1, 1]
    assert PriorityScale(0.0, 1.0, 2).integers([-math.inf, math.inf]).tolist() == [2, 1]


def test_three_quarters_of_the_numbers_are_for_the_range() -> None:
    scale = PriorityScale(100.0, 200.0, largest=80_001)
    assert scale.integers([-math.inf, 100.0, 150.0, 200.0, math.inf, math.nan]).tolist() == [
        80_001, 70_001, 40_001, 10_001, 1, 1,
    ]  # fmt: skip


def test_the_range_is_the_0_1_and_99_9_per_cent_quantile() -> None:
    p = np.arange(100_001.0)
    sample = ExportSample(p, np.ones_like(p), np.zeros_like(p), np.zeros_like(p), "0 to 100,000 s")
    assert learn_scale(Policy("x", "p"), sample) == PriorityScale(100.0, 99_900.0)
    # What has no finite score does not stretch the range.
    assert learn_scale(Policy("x", "p + log10(p - 50000)*0"), sample).low == pytest.approx(50_051.0)


def test_a_range_of_few_jobs_that_differ() -> None:
    p = np.full(100_000, 60.0)
    p[0] = 7200.0
    sample = ExportSample(p, np.ones_like(p), p * 0, p * 0, "one long job")
    assert learn_scale(Policy("x", "p"), sample) == PriorityScale(60.0, 7200.0)


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("q", "alike 1 --workload"),
        ("log10(p - p)", "alike finite x"),
        ("p/m", "--processors size"),
    ],
)
def test_what_cannot_be_learnt_is_refused(formula: str, says: str) -> None:
    ones = np.ones(10)
    refused(ExportError, says, learn_scale, Policy("x", formula), ExportSample(ones, ones, ones, ones, "all alike"))


def test_ties_are_neighbours_with_one_number() -> None:
    scale = PriorityScale(0.0, 1.0, largest=5)
    # 5, 5, 4, 4, 3 ...: of the four pairs of neighbours that differ, those with one number count; equal scores do not.
    scores = [0.0, 0.01, 0.25, 0.25, 0.9, 0.95]
    numbers = scale.integers(scores).tolist()
    pairs = [(0, 1), (1, 2), (3, 4), (4, 5)]
    assert tie_share(scale, scores) == sum(numbers[i] == numbers[j] for i, j in pairs) / 4 > 0
    assert tie_share(scale, [0.5, 0.5]) == 0


def test_a_sample_holds_the_workloads_jobs_at_any_time_of_the_life() -> None:
    jobs = workload(ticks=1)
    sample = sample_of(jobs, fixed("F1"), begin=1_767_225_600 + 5 * DAY, life=10 * DAY, jobs=5000, seed=3)
    assert set(zip(sample.p.tolist(), sample.q.tolist(), strict=True)) == {(60.0, 1.0), (3600.0, 4.0), (7200.0, 2.0)}
    # Any part of the wait; the job whose start is not known has waited 0 s.
    waited = {p: set(sample.w[sample.p == p].tolist()) for p in (60.0, 3600.0, 7200.0)}
    assert waited == {60.0: set(range(6)), 3600.0: set(range(101)), 7200.0: {0}}
    assert sample.r.min() == pytest.approx(5 * DAY, rel=1e-2)
    assert sample.r.max() == pytest.approx(15 * DAY, rel=1e-2)
    assert jobs.sha256() in sample.origin
    again = sample_of(jobs, fixed("F1"), begin=1_767_225_600 + 5 * DAY, life=10 * DAY, jobs=5000, seed=3)
    assert np.array_equal(sample.r, again.r)


def test_ticks_are_seconds_in_a_sample() -> None:
    micro = sample_of(workload(ticks=1).in_ticks(1000), jobs=200)
    assert set(micro.p.tolist()) == {60.0, 3600.0, 7200.0}
    assert micro.w.max() <= 100


def test_without_recorded_waits_any_wait_up_to_a_week() -> None:
    jobs = dataclasses.replace(workload(), start=np.full(3, -1))
    sample = sample_of(jobs, CATALOGUE["WFP3"], jobs=20_000)
    assert (sample.w.min(), sample.w.max() // DAY) == (1, 6)
    # As many within each factor of ten: half of them under the root of a week.
    assert (sample.w <= WEEK**0.5).mean() == pytest.approx(0.5, abs=0.02)
    assert "as no wait is recorded" in sample.origin
    assert "w " not in sample_of(jobs, fixed("F1")).origin


def test_a_sample_says_for_which_submissions_it_is() -> None:
    dated = sample_of(workload(), fixed("F1"), life=10 * DAY, jobs=10).origin
    assert dated.endswith(", submitted from 2026-01-01 00:00:00 UTC to 2026-01-11 00:00:00 UTC (r from 0 to 864000 s)")
    assert sample_of(workload(), CATALOGUE["F1"], life=DAY, jobs=10).origin.endswith(", r from 0 to 86400 s")
    assert "submitted" not in sample_of(workload(), CATALOGUE["SAF"], jobs=10).origin


def test_from_when_r_counts_in_a_sample() -> None:
    moving = dataclasses.replace(CATALOGUE["F1"], epoch=Epoch("oldest-waiting"))
    assert sample_of(workload(), moving).r.max() <= WEEK
    assert sample_of(workload(), CATALOGUE["F1"], life=DAY).r.max() <= DAY
    refused(UsageError, "--epoch counts", sample_of, workload(), CATALOGUE["F1"], begin=5)
    assert sample_of(workload(), CATALOGUE["SAF"], begin=5, life=DAY).r.max() <= DAY
    refused(UsageError, "1d epoch --begin", sample_of, workload(), fixed("F1"), begin=1_767_225_600 - DAY)
    refused(UsageError, "0 life --life", sample_of, workload(), fixed("F1"), life=0)


def test_a_site_draws_its_sample_once_and_only_when_asked() -> None:
    calls = []

    def draw() -> ExportSample:
        calls.append(1)
        return make_sample(10)

    site = ExportSite(draw)
    assert not calls
    assert site.sample is site.sample
    assert len(calls) == 1


def workload(ticks: int = 1) -> Workload:
    return Workload(
        name="three",
        machine=8,
        job_id=np.array([1, 2, 3]),
        submit=np.array([0, 10, 20]),
        run_time=np.array([30, 40, 50]),
        requested_time=np.array([60, 3600, 7200]),
        processors=np.array([1, 4, 2]),
        user=np.array([1, 1, 1]),
        start=np.array([5, 110, -1]),
        ticks=ticks,
    )


def test_scores_that_are_all_the_same_have_no_scale() -> None:
    assert scale_of([]) is None
    assert scale_of([math.nan, math.inf, 3.0, 3.0]) is None
    assert scale_of([1.0, 2.0, math.inf], largest=9) == PriorityScale(1.001, 1.999, 9)
