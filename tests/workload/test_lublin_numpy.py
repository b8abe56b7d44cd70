"""Our own stream of the Lublin-Feitelson model against the model's exact distributions.

All tests are seeded. False-alarm rates are those of another seed: 1e-4 for each chi-square and Kolmogorov-Smirnov
test (33 of them), 6e-5 for each mean within 4 standard errors (22), below 3e-3 for all comparisons of twenty seeds
with twenty seeds together.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from naive.lublin_measures import CONFIGS, flatten, measure, model_of
from policyfactory.core.errors import UsageError
from policyfactory.workload.jobs import offered_load
from policyfactory.workload.models.lublin import (
    MAX_LN_GAP,
    TYPELESS,
    Draw,
    LublinModel,
    clock_time,
    daily_weights,
    default_workload,
    draw_jobs,
    generate_lublin,
    scale_to_load,
)
from refusals import refused
from support import some_by_day

FALSE_ALARM = 1e-4
JOBS = 200_000


@pytest.fixture(scope="module")
def oracle(shared: Callable[[str], Path]) -> dict:
    return json.loads(shared("oracles/lublin_oracle.json").read_text())


@pytest.fixture(scope="module")
def draws() -> dict[str, Draw]:
    return {name: draw_jobs(model_of(name), JOBS, seed=7) for name in CONFIGS}


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """P value of counts under probabilities, rare classes merged."""
    common = probabilities * counts.sum() >= 10
    counts = np.append(counts[common], counts[~common].sum())
    probabilities = np.append(probabilities[common], probabilities[~common].sum())
    keep = probabilities * counts.sum() > 1
    return float(
        stats.chisquare(counts[keep], probabilities[keep] / probabilities[keep].sum() * counts[keep].sum()).pvalue
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_sizes_and_run_times_follow_the_exact_distributions(oracle: dict, draws: dict, name: str) -> None:
    draw = draws[name]
    for kind, job_class in enumerate(draw.model.classes):
        exact = oracle["configs"][name]["analytic"][job_class.name]
        nodes, run = draw.processors[draw.kind == kind], draw.run_time[draw.kind == kind]
        sizes = np.array([int(size) for size in exact["node_pmf_power_of_two"]])
        probabilities = np.array(list(exact["node_pmf_power_of_two"].values()))
        counts = np.array([(nodes == size).sum() for size in sizes])
        other = len(nodes) - counts.sum()
        p_sizes = chi_square(np.append(counts, other), np.append(probabilities, 1 - probabilities.sum()))
        limits = np.array([int(limit) for limit in exact["P(runtime<=k)"]])
        cdf = np.array([0, *exact["P(runtime<=k)"].values(), 1])
        counts = np.diff([0, *(int((run <= limit).sum()) for limit in limits), len(run)])
        p_runs = chi_square(counts, np.diff(cdf))
        assert min(p_sizes, p_runs) > FALSE_ALARM, job_class.name
        # Floor of the run time loses about half a second of the mean.
        error = run.std() / np.sqrt(len(run))
        assert run.mean() == pytest.approx(exact["mean_runtime_before_truncation_to_int"] - 0.5, abs=4 * error)


@pytest.mark.parametrize("name", CONFIGS)
def test_gaps_follow_the_exact_distribution(oracle: dict, draws: dict, name: str) -> None:
    draw = draws[name]
    for kind, job_class in enumerate(draw.model.classes):
        gaps = np.diff(draw.weighted[draw.kind == kind], prepend=0)
        whole = stats.gamma(job_class.aarr * job_class.arar, scale=job_class.barr)
        logs = np.log(gaps)
        assert logs.max() <= MAX_LN_GAP + 1e-9
        assert stats.kstest(logs, lambda x, w=whole: w.cdf(x) / w.cdf(MAX_LN_GAP)).pvalue > FALSE_ALARM
        error = gaps.std() / np.sqrt(len(gaps))
        mean = oracle["configs"][name]["analytic"][job_class.name]["mean_interarrival_this_class"]
        assert gaps.mean() == pytest.approx(mean, abs=4 * error)
    if draw.model.typed:
        # Renewal streams of 8 weeks and more: the share differs by a few standard deviations of 20 samples at most.
        share = oracle["configs"][name]["analytic"]["merged"]["share_interactive"]
        spread = oracle["configs"][name]["per_seed_10000_jobs"]["share_interactive_type0"]["sd_between_seeds"]
        assert (draw.kind == 0).mean() == pytest.approx(share, abs=5 * spread / np.sqrt(JOBS / 10_000))


@pytest.mark.parametrize("name", some_by_day(CONFIGS, 2))
def test_twenty_seeds_agree_with_twenty_of_the_archives_program(oracle: dict, name: str) -> None:
    """Each mean differs by less than 5.5 standard errors (Student, 38 degrees of freedom: 3e-6 each, 150 a model)."""
    model = model_of(name)
    measured = []
    for seed in range(1, 21):
        draw = draw_jobs(model, 10_000, seed=seed)
        sample = measure(draw.submit, draw.processors, draw.run_time, draw.kind, model.processors)
        # Our printed clock is the exact one.
        measured.append({key.replace("printed_clock", "exact_clock"): value for key, value in sample.items()})
    compared = 0
    for key, (mean, deviation) in flatten(oracle["configs"][name]["per_seed_10000_jobs"]).items():
        # A quantile of whole numbers is not normal: the whole distributions are compared above.
        if "_quantiles" not in key and "printed_clock" not in key:
            values = np.array([sample[key] for sample in measured], dtype=float)
            error = np.sqrt((deviation**2 + values.var(ddof=1)) / 20)
            assert abs(values.mean() - mean) <= 5.5 * error + 1e-12, key
            compared += deviation > 0
    assert compared > 60


def hourly(times: np.ndarray) -> np.ndarray:
    return np.bincount(times // 3600 % 24, minlength=24) / len(times)


def test_daily_cycle_is_right_also_after_200_000_jobs(oracle: dict) -> None:
    """Arrivals are clustered, so their spread is the oracle's between samples of 10,000 (z < 5: 1e-5 in all)."""
    model = LublinModel.for_machine(256)
    exact = daily_weights(TYPELESS).reshape(24, 2).sum(axis=1) / 48
    sampled = oracle["configs"]["typeless_256"]["per_seed_10000_jobs"]["hourly_arrival_fraction_exact_clock"]
    spread = np.array(sampled["sd_between_seeds"])
    ours = draw_jobs(model, 240_000, seed=11).submit[200_000:]
    assert (np.abs(hourly(ours) - exact) < 5 * spread / 2).all()
    # The archive's program is half a second a job behind by then: a day and more, another phase altogether.
    theirs = draw_jobs(model, 240_000, seed=11, stream="drand48").submit[200_000:]
    assert (np.abs(hourly(theirs) - exact) > 5 * spread / 2).any()


def test_clock_undoes_the_weights_bucket_by_bucket() -> None:
    weights = daily_weights(TYPELESS)
    for start_hour in (0, 8, 23):
        time, weighted = 0.0, 0.0
        for bucket in range(100):
            assert clock_time(np.array([weighted]), TYPELESS, start_hour) == pytest.approx([time], abs=1e-6)
            weighted += 1800 * weights[(bucket + 2 * start_hour) % 48]
            time += 1800


@pytest.mark.parametrize("typed", [False, True])
def test_the_first_jobs_of_many_are_the_jobs_of_few(typed: bool) -> None:
    model = LublinModel.for_machine(100, typed=typed)
    few, many = draw_jobs(model, 777, seed=4), draw_jobs(model, 9_000, seed=4)
    other = draw_jobs(model, 777, seed=5)
    for column in ("submit", "processors", "run_time", "kind", "weighted"):
        assert (getattr(few, column) == getattr(many, column)[:777]).all(), column
    assert (few.submit != other.submit).any()
    assert (few.processors != other.processors).any()


@settings(max_examples=60, deadline=None)
@given(
    processors=st.integers(1, 3000),
    typed=st.booleans(),
    stream=st.sampled_from(["numpy", "drand48"]),
    jobs=st.integers(1, 200),
    seed=st.integers(0, 2**63 - 1),
)
def test_any_machine_gets_jobs_that_fit(processors: int, typed: bool, stream, jobs: int, seed: int) -> None:
    workload = generate_lublin(processors, jobs, seed=seed, typed=typed, stream=stream)  # Workload checks itself
    assert len(workload) == jobs
    assert workload.run_time.min() >= 1
    assert workload.run_time.max() <= 162_754


def test_jobs_above_a_machine_of_100_are_drawn_again_and_counted() -> None:
    """A size of 2^7 = 128 has probability w * 0.14 * (log2(100) - 6.5) / 2.5 = 0.464 %; 5 sigma: 6e-7."""
    draw = draw_jobs(LublinModel.for_machine(100), JOBS, seed=2)
    probability = 0.576 * 0.14 * (np.log2(100) - 6.5) / 2.5
    assert draw.oversized == pytest.approx(JOBS * probability, abs=5 * np.sqrt(JOBS * probability))
    assert draw.processors.max() <= 100
    # Drawing again changes neither the serial share nor that of the other sizes.
    assert (draw.processors == 1).mean() == pytest.approx(0.244, abs=5 * np.sqrt(0.244 * 0.756 / JOBS))


@pytest.mark.parametrize("stream", ["numpy", "drand48"])
@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("load", [0.3, 0.9, 1.5])
def test_offered_load_is_met(stream, typed: bool, load: float) -> None:
    workload = generate_lublin(200, 5000, seed=9, stream=stream, typed=typed, load=load)
    plain = generate_lublin(200, 5000, seed=9, stream=stream, typed=typed)
    got = workload.offered_load
    # Times are whole seconds: the span is wrong by at most one of them.
    assert got == pytest.approx(load, rel=1.5 / int(np.ptp(workload.submit)))
    jobs = sorted(zip(workload.processors.tolist(), workload.run_time.tolist(), strict=True))
    assert jobs == sorted(zip(plain.processors.tolist(), plain.run_time.tolist(), strict=True))


def test_scaling_keeps_the_day_at_24_hours() -> None:
    model = LublinModel.for_machine(256)
    draw = scale_to_load(draw_jobs(model, 100_000, seed=6), 0.3)
    exact = daily_weights(TYPELESS).reshape(24, 2).sum(axis=1) / 48
    assert np.corrcoef(hourly(draw.submit), exact)[0, 1] > 0.99
    assert np.ptp(draw.submit) > 1.5 * np.ptp(draw_jobs(model, 100_000, seed=6).submit)


def test_load_by_hand() -> None:
    # 10 s x 2 + 30 s x 4 = 140 processor seconds, on 7 processors in 40 s.
    submit, run, nodes = np.array([5, 45]), np.array([10, 30]), np.array([2, 4])
    assert offered_load(submit, run, nodes, 7) == 0.5
    assert np.isnan(offered_load(submit[:1], run[:1], nodes[:1], 7))


def test_start_hour_turns_the_day() -> None:
    exact = daily_weights(TYPELESS).reshape(24, 2).sum(axis=1) / 48
    for stream in ("numpy", "drand48"):
        draw = draw_jobs(LublinModel.for_machine(256, start_hour=9), 10_000, seed=1, stream=stream)
        assert np.corrcoef(hourly(draw.submit + 9 * 3600), exact)[0, 1] > 0.95
        assert np.corrcoef(hourly(draw.submit), exact)[0, 1] < 0.5


def test_default_workload_is_what_its_text_says() -> None:
    workload = default_workload()
    assert len(workload) == 20_000
    assert workload.machine == 256
    assert (workload.requested_time >= workload.run_time).all()
    assert workload.requested_time.max() == 64_800
    assert np.ptp(workload.submit) // 86_400 == 211
    assert workload.offered_load == pytest.approx(0.87, abs=0.005)
    first = default_workload(100)
    assert first.origin.startswith("the first 100 jobs of: ")
    assert (first.requested_time == workload.requested_time[:100]).all()
    assert (first.submit == workload.submit[:100]).all()
    assert default_workload(seed=1).sha256() != workload.sha256()


def test_sizes_by_type_and_for_all() -> None:
    both = LublinModel.for_machine(256, typed=True, umed=5.6)
    assert [(c.umed, c.uhi) for c in both.classes] == [(5.6, 8), (5.6, 8)]
    apart = LublinModel.for_machine(256, typed=True, uhi=(6.5, 8), umed=(4, 6), uprob=(0.7, 0.8))
    assert [(c.umed, c.uhi, c.uprob) for c in apart.classes] == [(4, 6.5, 0.7), (6, 8, 0.8)]
    smallest = LublinModel.for_machine(4).classes[0]
    assert (smallest.ulow, smallest.umed, smallest.uhi) == (0.8, 1.4, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"processors": 0}, "0 processors"),
        ({"processors": 2**40}, "give 1"),
        ({"jobs": 0}, "0 1"),
        ({"jobs": 10**9}, "1 jobs"),
        ({"seed": -1}, "seed -1"),
        ({"stream": "mt19937"}, "mt19937 unknown"),
        ({"load": 0.0}, "load 0"),
        ({"load": float("nan")}, "load nan 0.001"),
        ({"load": 0.9, "jobs": 1}, "2 --jobs"),
        ({"uhi": 9}, "UHI 9 log2 256 8 --processors"),
        ({"umed": 0.5}, "ascend"),
        ({"ulow": -1}, "ascend"),
        ({"uprob": 1.5}, "UPROB 1.5"),
        ({"umed": float("inf")}, "finite number"),
        ({"umed": (4, 5)}, "--typed typeless 4"),
        ({"processors": 100, "ulow": 6.55, "umed": 6.6}, "100 processors --ulow"),
    ],
)
def test_what_is_out_of_range_is_refused(arguments: dict, message: str) -> None:
    refused(UsageError, message, generate_lublin, **{"processors": 256, "jobs": 10, "seed": 1} | arguments)


def test_a_model_made_by_hand_is_checked_as_well() -> None:
    refused(UsageError, "2 typed", LublinModel, 128, True, (TYPELESS,))
    refused(UsageError, "24 start", LublinModel, 128, False, (TYPELESS,), start_hour=24)
    refused(UsageError, "-1 machine", LublinModel, -1, False, (TYPELESS,))
