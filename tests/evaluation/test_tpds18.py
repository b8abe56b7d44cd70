"""evaluate/tpds18.toml: it can be read, and small runs of it show what docs/tuning.md says of the paper's tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.options import ResampleTable
from policyfactory.evaluation.protocol import Protocol, read_protocol
from policyfactory.evaluation.results_folder import Result
from policyfactory.evaluation.study import RunSettings, read_logs, run_protocol, selected
from policyfactory.simulation.tuning.tuner import Tuner
from policyfactory.workload.clean import read
from support import ROOT

TWELVE = ("FCFS", "LCFS", "SPF", "LPF", "SQF", "LQF", "LEXP", "SEXP", "SRF", "LRF", "SAF", "LAF")
SWAPPED = {"LEXP": "SEXP", "SEXP": "LEXP", "SRF": "LRF", "LRF": "SRF"}


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return read_protocol(ROOT / "evaluate" / "tpds18.toml")


def small(protocol: Protocol, experiment: str, log: str, count: int, weeks: int) -> Protocol:
    (plan,) = selected(protocol, [experiment], [log]).experiments
    table = plan.table.model_copy(update={"resample": ResampleTable(count=count, length=f"{weeks}w")})
    plan = dataclasses.replace(plan, table=table, analyses=())
    return dataclasses.replace(protocol, experiments=(plan,), claims=())


def run(protocol: Protocol, traces: Path) -> Result:
    return run_protocol(protocol, read_logs(protocol, [traces]), RunSettings())


def changes(study: Result) -> dict[str, float]:
    """Return the total wait of each contender against the baseline's, in %."""
    evaluation = study.outcomes[0].evaluation
    total = evaluation.matrix(evaluation.logs[0], "total_wait").sum(axis=0)
    return dict(zip(evaluation.policies, 100 * (total / total[0] - 1), strict=True))


def apart(actual: dict[str, float], printed: dict[str, float]) -> float:
    return float(np.sqrt(np.mean([(actual[name] - printed[name]) ** 2 for name in printed])))


def plan_of(protocol: Protocol, name: str) -> Experiment:
    return next(plan for plan in protocol.experiments if plan.name == name)


def test_the_protocol_is_the_papers(protocol: Protocol) -> None:
    tables = plan_of(protocol, "tables")
    assert tables.table.resample == ResampleTable(count=60, length="2y")
    assert tables.policies[:12] == TWELVE
    assert tables.rules.threshold == 40 * 3600
    tuners = [one for one in tables.contenders if isinstance(one, Tuner)]
    assert {(one.feedback, one.period_s) for one in tuners} == {
        (feedback, days * 86400)
        for feedback in ("simulate", "noisy", "bandit", "random", "thompson", "ucb")
        for days in (1, 7)
    }
    assert all((one.discount, one.epsilon, one.noise) == (1.0, 0.1, 0.2) for one in tuners)
    assert all(tuple(arm.name for arm in one.arms) == TWELVE for one in tuners)


def test_table_3_is_that_of_the_paper_but_for_the_exchanged_columns(protocol: Protocol) -> None:
    (printed,) = [one.values for one in plan_of(protocol, "tables").references if one.source == "table 3"]
    (read,) = [one.values for one in plan_of(protocol, "as-run").references]
    assert sum(len(row) for row in printed.values()) == 33
    for log, row in printed.items():
        assert {SWAPPED.get(name, name): value for name, value in row.items()} == read[log]


@pytest.mark.parametrize(
    ("log", "lines", "text", "workflow"),
    [
        ("KTH-SP2-1996-2.1-cln", 28_476, 28_475, 27_992),
        ("SDSC-BLUE-2000-4.2-cln", 243_306, 232_562, 209_102),
        ("CEA-Curie-2011-2.1-cln", 312_826, 312_807, 290_124),
    ],
)
def test_the_job_counts_of_table_1_are_those_before_the_filter(
    shared: Callable[[str], Path], log: str, lines: int, text: int, workflow: int
) -> None:
    # 28k, 243k and 312k are printed.
    for preset, jobs in (("tpds18", text), ("tpds18-workflow", workflow)):
        workload = read(shared(f"traces/{log}.swf.gz"), preset=preset)
        report = workload.cleaning
        assert (len(workload), report.read) == (jobs, lines)


@pytest.mark.slow
def test_the_rules_of_the_authors_and_the_exchanged_names_come_nearer_to_table_3(
    protocol: Protocol, shared: Callable[[str], Path]
) -> None:
    """On KTH-SP2, 12 resampled years: the distance to the 11 printed numbers falls step by step."""
    traces = shared("traces")
    own = changes(run(small(protocol, "own-order", "kth-sp2", 12, 52), traces))
    fcfs = changes(run(small(protocol, "as-run", "kth-sp2", 12, 52), traces))
    printed = dict(plan_of(protocol, "tables").references[0].values["kth-sp2"])
    exchanged = dict(plan_of(protocol, "as-run").references[0].values["kth-sp2"])
    assert apart(fcfs, printed) < apart(own, printed) - 2
    assert apart(fcfs, exchanged) < apart(fcfs, printed) - 2
    assert apart(fcfs, exchanged) < 4


@pytest.mark.slow
def test_what_the_paper_says_of_tuners_holds_on_sdsc_blue(protocol: Protocol, shared: Callable[[str], Path]) -> None:
    result = changes(run(small(protocol, "tables", "sdsc-blue", 4, 40), shared("traces")))
    best = min(result[name] for name in TWELVE)
    for full in ("Full, week", "Full, day", "Noisy, week", "Noisy, day"):
        assert result[full] < 0.75 * best
        assert all(
            result[full] < result[f"{other}, {period}"] for other in ("Bandit", "Random") for period in ("week", "day")
        )
    assert result["Random, week"] < 0
    assert result["Random, day"] < 0


def test_a_threshold_of_0_makes_all_policies_first_come_first_served(
    protocol: Protocol, shared: Callable[[str], Path]
) -> None:
    study = run(selected(protocol, ["figure-1-zero"]), shared("traces"))
    assert max(map(abs, changes(study).values())) < 0.01
    free = run(selected(protocol, ["figure-1"]), shared("traces"))
    assert changes(free)["SPF"] < -25
