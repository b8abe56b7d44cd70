"""The closed loop: jobs per CPU second with predictions at submission, and the CPU seconds of one training.

    pytest benchmarks/test_predicted.py --benchmark-enable

Predictions are made by two forests of 80 trees that are kept, so that nothing is trained in the loop; the time is that
of ``run_predicted``, from prepared jobs to starts and predictions, the numbering of groups of like jobs included. A
training is that of a month: two forests from the 30,000 jobs that ended last.
"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np
import pytest
from test_easy import LOGS, SHARED

from floors import record
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.prediction.features import known_of
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Forests, Predictor, train_forests
from policyfactory.simulation.predicted import run_predicted
from policyfactory.simulation.prepare import Prepared, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.workload.clean import read

POLICIES = {"FCFS": resolve("FCFS"), "-ln(s) + ln(e) + 0.4*ln(q)": Policy("PREDICTED", "-ln(s) + ln(e) + 0.4*ln(q)")}
ONCE = PredictorOptions(renew_s=0)
FLOOR, CEILING = 100_000.0, 2.0  # jobs per CPU second; CPU seconds of a training


@functools.cache
def prepared(name: str) -> Prepared:
    path = SHARED / "traces" / f"{LOGS[name][0]}.swf.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return prepare(read(path, estimate_missing="drop"), Rules())


@functools.cache
def sample(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and outcomes of jobs to train on."""
    jobs = prepared(name)
    features = run_predicted(jobs, POLICIES["FCFS"], Predictor(ONCE, Forests()), tail=False).features
    rows = slice(max(0, len(jobs) // 2 - ONCE.window), max(len(jobs) // 2, ONCE.window))
    return features[rows][: ONCE.window], known_of(jobs.workload).outcome[rows][: ONCE.window]


@functools.cache
def model(name: str) -> Forests:
    return train_forests(*sample(name), ONCE, tail=False)


@pytest.mark.benchmark(group="closed loop", timer=time.process_time)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("log", ["KTH-SP2", "SDSC-BLUE"])
def test_predictions_at_submission(benchmark: Any, log: str, policy: str) -> None:
    jobs, predictor = prepared(log), Predictor(ONCE, model(log))
    if benchmark.enabled:
        run_predicted(jobs, POLICIES[policy], predictor, tail=False)
    benchmark.pedantic(run_predicted, (jobs, POLICIES[policy], predictor), {"tail": False}, rounds=5)
    if benchmark.enabled:
        rate = len(jobs) / benchmark.stats.stats.min
        record("closed loop", f"{log}, {policy}", rate / 1e6, "M jobs/CPU s", floor=FLOOR / 1e6)


@pytest.mark.benchmark(group="closed loop", timer=time.process_time)
def test_a_training(benchmark: Any) -> None:
    features, outcome = sample("SDSC-BLUE")
    benchmark.pedantic(train_forests, (features, outcome, ONCE), {"tail": False}, rounds=5, warmup_rounds=1)
    if benchmark.enabled:
        record("closed loop", "training on 30,000 jobs", benchmark.stats.stats.min, "CPU s", ceiling=CEILING)
