"""Jobs per CPU second under Slurm's own rules, beside EASY without a plan of nodes.

    pytest benchmarks/test_slurm.py --benchmark-enable

The logs of test_easy.py on the sites that are assumed of them, in the order of submission and by SAF: all of KTH-SP2,
and parts of the others, those of CEA-Curie from times of many waiting jobs.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from test_easy import read

from floors import record
from policyfactory.policy.catalogue import resolve
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.simulate import simulate
from policyfactory.site.default import site_of

# First row and last.
PARTS = {"KTH-SP2": (0, None), "SDSC-BLUE": (0, 20_000), "CEA-Curie": (100_000, 104_000)}


@pytest.mark.benchmark(group="Slurm's rules", timer=time.process_time)
@pytest.mark.parametrize("policy", ["FCFS", "SAF"])
@pytest.mark.parametrize("log", PARTS)
def test_slurm(benchmark: Any, log: str, policy: str) -> None:
    whole, order = read(log), resolve(policy)
    first, last = PARTS[log]
    jobs, under_slurm = whole[first:last], Rules(backfill="slurm", site=site_of(whole))
    if benchmark.enabled:
        simulate(jobs[:50], order, under_slurm)
        simulate(jobs, order)
    benchmark.pedantic(simulate, (jobs, order, under_slurm), rounds=3)
    if benchmark.enabled:
        best = min(_seconds(jobs, order) for _ in range(5))
        seconds = benchmark.stats.stats.min
        what = f"{log}, {policy}, {len(jobs):,} jobs"
        record("Slurm's rules", what, len(jobs) / seconds / 1e3, "k jobs/CPU s", ratio=best / seconds, to="EASY")


def _seconds(jobs: Any, order: Any) -> float:
    begin = time.process_time()
    simulate(jobs, order)
    return time.process_time() - begin
