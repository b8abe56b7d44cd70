"""Seconds for a forecast of a queue, once its model is trained: 200 futures of a day on two threads.

    pytest benchmarks/test_forecast.py --benchmark-enable

A queue of about a hundred waiting jobs of KTH-SP2 and one of about a thousand of CEA-Curie, where FCFS-EASY left them,
under EASY and by Slurm's rules on the assumed site. Under EASY a second and ten seconds are promised.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from test_easy import read

import policyfactory as pf
from floors import record
from policyfactory.forecasting.record import JobRecord
from policyfactory.simulation.on_site import jobs_on_site
from policyfactory.simulation.simulate import simulate
from policyfactory.simulation.slurm.queue import on_nodes
from policyfactory.site.fits import site_of
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload
from policyfactory.workload.snapshot import Snapshot

# Log, rules, waiting jobs, futures that are simulated, and seconds that are promised of 200.
CASES = [
    ("KTH-SP2", "EASY", 100, 200, 1.0),
    ("KTH-SP2", "Slurm's", 100, 200, None),
    ("CEA-Curie", "EASY", 1000, 200, 10.0),
    ("CEA-Curie", "Slurm's", 1000, 8, None),
]


def queue_of(log: Workload, waiting: int, site: Site | None) -> tuple[Snapshot, Workload]:
    """Return the queue of that instant of the second half at which about so many jobs wait, and the log up to it."""
    start = simulate(log, "FCFS").start
    log = dataclasses.replace(log, start=start, unix_start=log.unix_start or 0)
    log = log if site is None else jobs_on_site(log, site)[0]
    times = np.linspace(log.submit[len(log) // 2], log.submit[-1] - 2 * 86_400, 4000).astype(np.int64)
    count = np.searchsorted(log.submit, times, side="right") - np.searchsorted(np.sort(start), times, side="right")
    now = int(times[np.argmin(np.abs(count - waiting))])
    ones, end = np.ones(len(log)), start + log.run_time
    known = JobRecord(log, start, end, ones, ones, np.argsort(end, kind="stable"))
    if site is None:
        return known.snapshot(now)[0], log
    names = [partition.name for partition in site.partitions]
    return on_nodes(known.snapshot(now, names)[0], site), log


@pytest.mark.benchmark(group="forecasts")
@pytest.mark.parametrize(("name", "rules", "waiting", "futures", "most"), CASES)
def test_forecast(benchmark: Any, name: str, rules: str, waiting: int, futures: int, most: float | None) -> None:
    log = read(name)
    if not benchmark.enabled:
        log, waiting, futures = log[:3000], 5, 2
    site = site_of(log) if rules == "Slurm's" else None
    snapshot, log = queue_of(log, waiting, site)
    found = pf.forecast(snapshot, site, log, futures=2, workers=2)
    told = benchmark.pedantic(
        pf.forecast,
        (snapshot, site, log),
        {"futures": futures, "predictor": found.predictor, "workers": 2},
        rounds=3 if most else 1,
    )
    assert len(told.jobs) == len(snapshot.of("waiting"))
    if benchmark.enabled:
        seconds = benchmark.stats.stats.min
        what = f"{name}, {rules} rules, {len(told.jobs):,} waiting jobs, {futures} futures"
        record("forecasts", what, seconds, "s", ceiling=most)
