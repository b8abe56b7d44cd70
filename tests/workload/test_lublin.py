"""The Lublin-Feitelson model in the archive program's random numbers: every row, every statistic."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive.lublin_streams as naive
from naive.lublin_measures import CONFIGS, flatten, measure, model_of
from policyfactory.workload.models.drand48 import seed48
from policyfactory.workload.models.lublin import (
    BATCH,
    INTERACTIVE,
    TYPELESS,
    Draw,
    LublinModel,
    archive_jobs,
    clock_time,
    daily_weights,
    draw_jobs,
    generate_lublin,
)
from policyfactory.workload.models.lublin_log import format_log, log_of_draw
from policyfactory.workload.swf.files import read_swf
from support import some_by_day

Shared = Callable[[str], Path]


@pytest.fixture(scope="module")
def oracle(shared: Shared) -> dict:
    return json.loads(shared("oracles/lublin_oracle.json").read_text())


def rows(draw: Draw) -> np.ndarray:
    return np.column_stack([draw.submit, draw.processors, draw.run_time, draw.kind])


def body(data: bytes) -> bytes:
    return b"".join(line for line in data.splitlines(keepends=True) if not line.startswith(b";"))


@pytest.mark.parametrize("name", CONFIGS)
def test_the_rule_for_sizes_and_the_constants_are_the_programs(oracle: dict, name: str) -> None:
    for job_class in model_of(name).classes:
        for parameter, value in oracle["configs"][name]["analytic"][job_class.name]["params"].items():
            assert getattr(job_class, parameter) == value, (job_class.name, parameter)


@pytest.mark.parametrize("job_class", [TYPELESS, INTERACTIVE, BATCH], ids=lambda c: c.name)
def test_weights_of_the_half_hours(oracle: dict, job_class) -> None:
    name = "typeless" if job_class is TYPELESS else job_class.name
    weights = daily_weights(job_class)
    assert weights == pytest.approx(oracle["weights_48_half_hours"][name], rel=1e-12)
    assert weights.mean() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("name", CONFIGS)
def test_golden_rows_and_digest(oracle: dict, name: str) -> None:
    golden = oracle["configs"][name]["golden_seed1"]
    got = rows(draw_jobs(model_of(name), 10_000, seed=1, stream="drand48"))
    assert got[:12].tolist() == golden["first_12"]
    text = "\n".join(" ".join(map(str, row)) for row in got.tolist())
    (digest,) = [value for key, value in golden.items() if key.startswith("sha256")]
    assert hashlib.sha256(text.encode()).hexdigest() == digest


@pytest.mark.parametrize("machine", [128, 256, 1024])
@pytest.mark.parametrize("typed", [False, True], ids=["typeless", "typed"])
def test_sample_logs_of_the_program_byte_for_byte(shared: Shared, machine: int, typed: bool) -> None:
    sample = shared(f"oracles/lublin/lublin_sample_{'typed' if typed else 'typeless'}_{machine}_seed1.swf")
    draw = draw_jobs(LublinModel.for_machine(machine, typed=typed), 2000, seed=1, stream="drand48")
    assert body(format_log(log_of_draw(draw, ("test",)))) == body(sample.read_bytes())


def test_published_trace_lublin_256(shared: Shared) -> None:
    draw = draw_jobs(LublinModel.for_machine(256), 10_000, seed=1487089399, stream="drand48")
    published = read_swf(shared("traces/lublin_256.swf"))
    columns = [published.submit, published.allocated, published.run_time, published.queue]
    assert (rows(draw) == np.column_stack(columns)).all()
    # The published file was stripped of its leading blanks.
    ours = b"".join(line.lstrip() for line in body(format_log(log_of_draw(draw, ("test",)))).splitlines(keepends=True))
    assert ours == body(shared("traces/lublin_256.swf").read_bytes())


def test_published_trace_lublin_256_new2(shared: Shared) -> None:
    draw = draw_jobs(LublinModel.for_machine(256, typed=True, umed=5.6), 10_000, seed=1568124476, stream="drand48")
    published = shared("traces/lublin_256_new2.swf").read_bytes()
    assert body(format_log(log_of_draw(draw, ("test",)))) == body(published)


@pytest.mark.parametrize("name", some_by_day(CONFIGS, 2))
def test_every_statistic_of_twenty_seeds(oracle: dict, name: str) -> None:
    model = model_of(name)
    measured = []
    for seed in range(1, 21):
        draw = draw_jobs(model, 10_000, seed=seed, stream="drand48")
        sample = measure(draw.submit, draw.processors, draw.run_time, draw.kind, model.processors)
        # The clock that the program's daily cycle goes by, not the one that it prints.
        exact = np.empty(len(draw.submit))
        for kind, job_class in enumerate(model.classes):
            mine = draw.kind == kind
            exact[mine] = clock_time(draw.weighted[mine], job_class, 0)
        shares = np.bincount(exact.astype(np.int64) // 3600 % 24, minlength=24) / len(exact)
        measured.append(sample | {f"hourly_arrival_fraction_exact_clock/{h}": x for h, x in enumerate(shares)})
    expected = flatten(oracle["configs"][name]["per_seed_10000_jobs"])
    assert len(expected) > 150
    for key, (mean, deviation) in expected.items():
        values = np.array([sample[key] for sample in measured], dtype=float)
        assert values.mean() == pytest.approx(mean, rel=1e-9, abs=1e-12), key
        assert values.std(ddof=1) == pytest.approx(deviation, rel=1e-6, abs=1e-12), key


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    processors=st.integers(2, 5000),
    typed=st.booleans(),
    start=st.integers(0, 47),
    jobs=st.integers(1, 60),
)
def test_kernel_is_its_plain_twin(seed: int, processors: int, typed: bool, start: int, jobs: int) -> None:
    model = LublinModel.for_machine(processors, typed=typed)
    constants = np.array([c.numbers() for c in model.classes])
    weights = np.array([daily_weights(c) for c in model.classes])
    columns, weighted = archive_jobs(seed48(seed), constants, weights, start, jobs)
    expected, gone = naive.archive_jobs(seed48(seed).tolist(), constants.tolist(), weights.tolist(), start, jobs)
    assert columns.T.tolist() == [list(row) for row in expected]
    assert weighted == pytest.approx(gone, rel=1e-12)


def test_jobs_larger_than_a_machine_of_100_are_cut_and_the_rest_is_the_programs() -> None:
    model = LublinModel.for_machine(100)
    draw = draw_jobs(model, 20_000, seed=5, stream="drand48")
    constants, weights = model.classes[0].numbers()[None], daily_weights(model.classes[0])[None]
    columns, _ = archive_jobs(seed48(5), constants, weights, 0, 20_000)
    too_large = columns[1] > 100
    assert set(columns[1][too_large].tolist()) == {128}
    assert draw.oversized == too_large.sum() > 0
    assert (draw.processors[too_large] == 100).all()
    assert (rows(draw)[~too_large] == columns.T[~too_large]).all()


def test_workload_of_the_model_says_what_it_is() -> None:
    workload = generate_lublin(256, 500, seed=3, stream="drand48")
    draw = draw_jobs(LublinModel.for_machine(256), 500, seed=3, stream="drand48")
    assert (workload.submit == draw.submit).all()
    assert (workload.requested_time == workload.run_time).all()
    assert "UMED 5.5" in workload.origin
    assert "drand48 stream, seed 3" in workload.origin
    assert "requested time = run time" in workload.origin
    assert workload.machine == 256
    assert workload.job_id.tolist() == list(range(1, 501))
