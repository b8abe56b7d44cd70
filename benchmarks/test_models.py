"""How fast the workload models draw: `pytest benchmarks/test_models.py --benchmark-enable`."""

from __future__ import annotations

import time

import pytest

from floors import record
from policyfactory.workload.models.lublin import LublinModel, draw_jobs
from policyfactory.workload.models.tsafrir import draw_estimates


@pytest.mark.parametrize("mode", ["typeless", "typed"])
@pytest.mark.benchmark(group="a million Lublin jobs, numpy stream", timer=time.process_time)
def test_numpy_stream(benchmark, mode: str) -> None:
    model = LublinModel.for_machine(256, typed=mode == "typed")
    draw = benchmark.pedantic(draw_jobs, (model, 1_000_000), {"seed": 1}, rounds=5, warmup_rounds=1)
    assert len(draw.submit) == 1_000_000
    if benchmark.enabled:
        record("workload models", f"Lublin, {mode}", 1 / benchmark.stats.stats.min, "M jobs/CPU s")


@pytest.mark.parametrize("mode", ["typeless", "typed"])
@pytest.mark.benchmark(group="20,000 Lublin jobs, drand48 stream", timer=time.process_time)
def test_drand48_stream(benchmark, mode: str) -> None:
    model = LublinModel.for_machine(256, typed=mode == "typed")
    options = {"seed": 1, "stream": "drand48"}
    draw = benchmark.pedantic(draw_jobs, (model, 20_000), options, rounds=5, warmup_rounds=1)
    assert len(draw.submit) == 20_000
    if benchmark.enabled:
        speed = 0.02 / benchmark.stats.stats.min
        record("workload models", f"Lublin, {mode}, the archive's stream", speed, "M jobs/CPU s")


@pytest.mark.benchmark(group="estimates for a million jobs", timer=time.process_time)
def test_estimates(benchmark) -> None:
    run = draw_jobs(LublinModel.for_machine(256), 1_000_000, seed=1).run_time
    made = benchmark.pedantic(draw_estimates, (run, 64_800), {"seed": 1}, rounds=3, warmup_rounds=1)
    assert (made.requested_time >= made.run_time).all()
    if benchmark.enabled:
        record("workload models", "Tsafrir's estimates", 1 / benchmark.stats.stats.min, "M jobs/CPU s")
