"""Small evaluations by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from policyfactory.evaluation import run
from policyfactory.evaluation.analyses.analysis import Analysis
from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.options import DEFAULT_METRICS
from policyfactory.policy.policy import Policy
from policyfactory.simulation.cases import Case, CaseFacts, case_of
from policyfactory.simulation.metrics import METRICS, Metric
from policyfactory.simulation.simulate import Rules
from policyfactory.simulation.tuning.tuner import Contender
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.workload.jobs import Workload

# Log -> metric -> policy -> one value a case.
Table = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]


def run_cases(
    cases: Sequence[Case | Workload],
    contenders: Sequence[Contender],
    *,
    rules: Rules | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    analyses: Sequence[Analysis] = (),
    recorded: bool = False,
    **how: Any,
) -> Evaluation:
    """Run an experiment that is said in one line; ``how`` are keywords of `run.run_cases`."""
    own = tuple(case if isinstance(case, Case) else case_of(case) for case in cases)
    experiment = Experiment(
        "e", own, tuple(contenders), rules=rules or Rules(), metrics=tuple(metrics), analyses=tuple(analyses),
        recorded=recorded,
    )  # fmt: skip
    return run.run_cases(experiment, **how)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give three metrics: ``cost`` (lower is better), ``yield`` (higher is better), ``hue`` (neither)."""
    for name, unit, lower in (("cost", "1", True), ("delay", "s", True), ("yield", "%", False), ("hue", "jobs", None)):
        monkeypatch.setitem(METRICS, name, Metric(name, unit, lower, lambda schedule: 0.0, f"the {name}", name))


@pytest.fixture
def by_hand(toys: None) -> Callable[..., Evaluation]:
    """Give ``by_hand(table)``: an evaluation with these values."""

    def make(table: Table, longest: Mapping[str, Mapping[str, Sequence[float]]] | None = None) -> Evaluation:
        metrics = list(next(iter(table.values())))
        policies = list(next(iter(next(iter(table.values())).values())))
        cases: list[CaseFacts] = []
        blocks, waits = [], []
        for log, columns in table.items():
            count = len(next(iter(next(iter(columns.values())).values())))
            cases += [CaseFacts(log, at + 1, "window", 10, 4, 3600.0, None, f"{at:064x}") for at in range(count)]
            blocks.append([[[columns[m][p][n] for m in metrics] for p in policies] for n in range(count)])
            own = (longest or {}).get(log, {})
            waits.append([[own.get(p, [0.0] * count)[n] for p in policies] for n in range(count)])
        wait = np.concatenate([np.array(block, dtype=np.float64) for block in waits])
        return Evaluation(
            cases=tuple(cases),
            contenders=tuple(Policy(name, "p*q") for name in policies),
            metrics=tuple(metrics),
            rules=Rules(),
            values=np.concatenate([np.array(block, dtype=np.float64) for block in blocks]),
            longest_wait=wait,
            longest_wait_job=(np.arange(wait.size, dtype=np.int64) + 100).reshape(wait.shape),
            waiting=np.full(wait.shape, 5, dtype=np.int64),
        )

    return make
