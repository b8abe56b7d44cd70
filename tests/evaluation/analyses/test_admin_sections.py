"""The sections for an administrator, as a whole experiment makes them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from policyfactory.core.errors import UsageError
from policyfactory.core.process import WorkCounter
from policyfactory.evaluation.analyses import make_analysis
from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.study import RunSettings, run_experiment
from policyfactory.policy.store import resolve
from policyfactory.simulation.cases import Case, case_of
from policyfactory.simulation.simulate import Rules
from policyfactory.simulation.tuning.tuner import Tuner
from policyfactory.workload.clean import read
from policyfactory.workload.windows import cut, parse_windows
from refusals import refused
from support import shared_path

NAMES = ("groups", "fairness", "starvation", "load", "gantt")


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    log = read(shared_path("traces/KTH-SP2-1996-2.1-cln.swf.gz"))
    parts = cut(log, parse_windows("6x2d"))
    cases = [case_of(part, number, log="KTH <1996>", kind="window") for number, part in enumerate(parts, 1)]
    arms = (resolve("FCFS"), resolve("SAF"))
    return Experiment(
        "all",
        tuple(cases),
        (*arms, Tuner("Tuned", arms, "bandit", 86_400)),
        rules=Rules(threshold=36_000.0),
        metrics=("mean_bsld",),
        analyses=tuple(make_analysis(name) for name in NAMES),
    )


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_sections(experiment: Experiment) -> None:
    one, two = (run_experiment(experiment, workers=workers).sections for workers in (1, 2))
    assert [section.name for section in one[-5:]] == list(NAMES)
    for first, second in zip(one, two, strict=True):
        assert first.paragraphs == second.paragraphs
        assert first.tables == second.tables
        assert [picture.title for picture in first.pictures] == [picture.title for picture in second.pictures]
    for section in one[-5:]:
        assert section.paragraphs
        assert section.pictures
        for table in section.tables:
            assert all(len(row) == len(table.columns) for row in table.rows)


def test_an_experiment_counts_for_who_asked_and_refuses_a_partial_file(experiment: Experiment) -> None:
    short = dataclasses.replace(
        experiment, cases=experiment.cases[:1], contenders=experiment.contenders[:2], analyses=()
    )
    followed: list[str] = []

    def follow(one: Experiment) -> WorkCounter:
        followed.append(one.name)
        return WorkCounter()

    first, second = run_experiment(short, progress=follow), run_experiment(short, progress=None)
    assert followed == ["all"]
    assert first.evaluation.frame().equals(second.evaluation.frame())
    misplaced: dict[str, Any] = {"partial": Path("x"), "overwrite": True, "beside": {}}
    for name, value in misplaced.items():
        refused(UsageError, f"all {name}", run_experiment, short, **{name: value})
    refused(UsageError, "partial ignored", run_experiment, short, RunSettings(partial=Path("x")))


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_looked_at_is_refused_before_anything_is_simulated(experiment: Experiment, name: str) -> None:
    def never() -> None:
        raise AssertionError("a case was made")

    cases = tuple(Case("KTH", number, "window", never) for number in (1, 2))  # type: ignore[arg-type]
    wrong = dataclasses.replace(experiment, cases=cases, analyses=(make_analysis(name, log="SDSC"),))
    refused(UsageError, f"{name} SDSC KTH", run_experiment, wrong)
