"""Speed of the fits: all 576 forms in under a second, a thousand resamplings in seconds.

The plain way (numpy's lstsq for each of the 576 forms) is measured in the same run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from floors import record
from policyfactory.fitting.bootstrap import bootstrap
from policyfactory.fitting.forms import fit_all_forms, fit_all_polynomials
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.trials.table import ScoreTable, read_score_table

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="module")
def sample() -> Sample:
    path = SHARED / "oracles" / "sc17-score-distribution.csv"
    if path.exists():
        return prepare(read_score_table(path))
    rng = np.random.default_rng(1)
    n = 6912
    p, q, r = 10 ** rng.uniform(0, 5, n), np.floor(2 ** rng.uniform(0, 8, n)), rng.uniform(1e3, 1.6e5, n)
    score = np.clip(8e-6 * np.log10(p) * q + 0.007 * np.log10(r) + rng.normal(0, 0.005, n), 0, 1)
    return prepare(ScoreTable(p, q, r, score, np.full(n, np.nan), np.repeat(np.arange(n // 32), 32)))


@pytest.mark.benchmark(group="all 576 forms, 6,912 jobs", timer=time.process_time)
def test_all_forms(benchmark: Any, sample: Sample) -> None:
    from naive.fit import fit_forms

    fit_all_forms(sample)
    result = benchmark(fit_all_forms, sample)
    if benchmark.enabled:
        spent = benchmark.stats.stats.min
        begin = time.process_time()
        fit_forms(sample.p, sample.q, sample.r, sample.score)
        plainly = time.process_time() - begin
        record(
            "fits",
            "all 576 forms",
            spent,
            "CPU s",
            ceiling=1.0,
            ratio=plainly / spent,
            to="numpy.linalg.lstsq one by one",
        )
    assert result.forms == 576


@pytest.mark.benchmark(group="polynomials, 6,912 jobs", timer=time.process_time)
def test_all_polynomials(benchmark: Any, sample: Sample) -> None:
    benchmark(fit_all_polynomials, sample)
    if benchmark.enabled:
        record("fits", "polynomials of six degrees, with diagnostics", benchmark.stats.stats.min, "CPU s")


@pytest.mark.benchmark(group="bootstrap of the 10 best forms, 216 tuples", timer=time.process_time)
@pytest.mark.parametrize("replicates", [200, 1000])
def test_bootstrap(benchmark: Any, sample: Sample, replicates: int) -> None:
    fits = fit_all_forms(sample).fits[:10]
    benchmark.pedantic(bootstrap, (fits, sample), {"replicates": replicates, "seed": 1}, rounds=3, warmup_rounds=1)
    if benchmark.enabled:
        record("fits", f"{replicates} resamplings of the 10 best forms", benchmark.stats.stats.min, "CPU s")
