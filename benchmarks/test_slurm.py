"""Jobs per CPU second under Slurm's own rules, beside EASY without a plan of nodes.

    pytest benchmarks/test_slurm.py --benchmark-enable

The logs of test_easy.py on the sites that are assumed of them, in the order of submission and by SAF: all of KTH-SP2
and of CEA-Curie, which is to take less than two and a half minutes, and a part of SDSC-BLUE.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from test_easy import read

from floors import record
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.prediction.training import Predictor
from policyfactory.simulation.predicted import run_predicted
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.site.fits import site_of

# The first rows of each log that are taken; how often.
PARTS = {"KTH-SP2": (None, 3), "SDSC-BLUE": (20_000, 3), "CEA-Curie": (None, 1)}
# CPU s for all of CEA-Curie: by the rules since 24.11 a pass plans up to 500 jobs, where those of 22.05 plan 100.
LONGEST = 150.0


@pytest.mark.benchmark(group="Slurm's rules", timer=time.process_time)
@pytest.mark.parametrize("policy", ["FCFS", "SAF"])
@pytest.mark.parametrize("log", PARTS)
def test_slurm(benchmark: Any, log: str, policy: str) -> None:
    whole, order = read(log), resolve(policy)
    last, rounds = PARTS[log]
    jobs, under_slurm = whole[:last], Rules(backfill="slurm", site=site_of(whole))
    if not benchmark.enabled:
        jobs = jobs[:4000]
    if benchmark.enabled:
        simulate(jobs[:50], order, under_slurm)
        simulate(jobs, order)
    benchmark.pedantic(simulate, (jobs, order, under_slurm), rounds=rounds)
    if benchmark.enabled:
        best = min(_seconds(jobs, order) for _ in range(5))
        seconds = benchmark.stats.stats.min
        what = f"{log}, {policy}, {len(jobs):,} jobs"
        speed, floor = len(jobs) / seconds / 1e3, len(jobs) / LONGEST / 1e3 if log == "CEA-Curie" else None
        record("Slurm's rules", what, speed, "k jobs/CPU s", floor=floor, ratio=best / seconds, to="EASY")


@pytest.mark.benchmark(group="numbers that change under Slurm's rules", timer=time.process_time)
@pytest.mark.parametrize("name", ["SPF", "WFP3", "predicted"])
def test_numbers_that_change(benchmark: Any, name: str) -> None:
    """With the wait, and with predictions by models of a run under EASY: what trainings take is not counted."""
    jobs = read("KTH-SP2") if benchmark.enabled else read("KTH-SP2")[:200]
    policy = Policy("predicted", "ln(e) - 0.5*ln(s) + 0.3*ln(q)") if name == "predicted" else resolve(name)
    predictor = None
    if policy.needs_predictions:
        predictor = Predictor(trainings=run_predicted(prepare(jobs, Rules()), policy).trainings)
    under_slurm = {"rules": Rules(backfill="slurm", site=site_of(jobs)), "predictor": predictor}
    simulate(jobs[:50], policy, **under_slurm)
    benchmark.pedantic(simulate, (jobs, policy), under_slurm, rounds=3)
    if benchmark.enabled:
        seconds = benchmark.stats.stats.min
        record("Slurm's rules", f"KTH-SP2, {name}: numbers", len(jobs) / seconds / 1e3, "k jobs/CPU s")


def _seconds(jobs: Any, order: Any) -> float:
    begin = time.process_time()
    simulate(jobs, order)
    return time.process_time() - begin
