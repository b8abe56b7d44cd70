"""Reading CEA-Curie (312,826 jobs, 29 MB of text, 3.6 MB packed): CPU seconds and MB/s, against pandas in the same run.

Run with ``pytest benchmarks/test_swf.py --benchmark-enable``. The target is under 0.5 s of CPU once the kernel is
compiled; pandas parses the same bytes with its C engine, header skipped, numbers only, nothing checked.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from floors import record
from policyfactory.workload.clean import clean
from policyfactory.workload.describe import describe
from policyfactory.workload.swf.files import format_swf, parse_swf, read_swf
from policyfactory.workload.swf.log import FIELDS

SHARED = Path(os.environ.get("POLICYFACTORY_SHARED", Path(__file__).resolve().parent.parent.parent / "shared"))
CURIE = SHARED / "traces" / "CEA-Curie-2011-2.1-cln.swf.gz"
LIMIT = 0.5

pytestmark = pytest.mark.skipif(not CURIE.exists(), reason="the log of CEA-Curie is not here")


def cpu_seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """Return the median CPU time of ``work``, after one call that is not counted."""
    work()
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def by_pandas(text: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(text), comment=";", sep=r"\s+", header=None, names=list(FIELDS))


def test_reading_curie_against_pandas(benchmark: BenchmarkFixture) -> None:
    text = gzip.decompress(CURIE.read_bytes())
    log, table = parse_swf(text, CURIE), by_pandas(text)
    assert len(log) == len(table) == 312_826
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(log, field), table[field].to_numpy())
    benchmark.pedantic(read_swf, args=(CURIE,), rounds=5)
    if not benchmark.enabled:
        return
    ours, theirs = cpu_seconds(lambda: parse_swf(text, CURIE)), cpu_seconds(lambda: by_pandas(text), rounds=3)
    whole, speed = cpu_seconds(lambda: read_swf(CURIE)), len(text) / 1e6 / ours
    record("parsing", "CEA-Curie, SWF text", speed, "MB/CPU s", ratio=theirs / ours, to="pandas.read_csv")
    record("parsing", "CEA-Curie, read_swf of the packed file", whole, "CPU s", ceiling=LIMIT)


def test_unpacking_and_hashing_are_part_of_it(benchmark: BenchmarkFixture) -> None:
    packed = CURIE.read_bytes()
    benchmark(lambda: (gzip.decompress(packed), hashlib.sha256(packed)))


def test_cleaning_curie(benchmark: BenchmarkFixture) -> None:
    log = read_swf(CURIE)
    benchmark(clean, log)
    if benchmark.enabled:
        record("parsing", "CEA-Curie, cleaning", benchmark.stats.stats.min, "s")


def test_describing_curie(benchmark: BenchmarkFixture) -> None:
    log = read_swf(CURIE)
    benchmark(describe, log)
    if benchmark.enabled:
        record("parsing", "CEA-Curie, describing", benchmark.stats.stats.min, "s")


def test_writing_curie(benchmark: BenchmarkFixture) -> None:
    log = read_swf(CURIE)
    benchmark.pedantic(format_swf, args=(log,), rounds=3)
    if benchmark.enabled:
        record("parsing", "CEA-Curie, writing the text", benchmark.stats.stats.min, "s")
