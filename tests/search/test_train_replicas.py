"""A search on replicas: against the published policy that is best there, in the honest closed loop at its end."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from habits import users_with_habits
from policyfactory.core.errors import EvaluationError, UsageError, WorkloadError
from policyfactory.policy.store import load_model
from policyfactory.search.environment.goals import Band, EpisodeLimit, goal_of
from policyfactory.search.families import PREDICTED, PUBLISHED, family_of
from policyfactory.search.formulas import FormulaSearch, term_of
from policyfactory.search.learner import draw_windows, measured
from policyfactory.search.options import SearchOptions, TrainOptions
from policyfactory.search.replicated import Part, replicated
from policyfactory.search.run import train
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Workload
from refusals import refused

FEW = SearchOptions(families=("predicted", "power"), restarts=1, evaluations=16)
SMALL = TrainOptions(replicas=6, bands=())
GOAL = goal_of("mean_bsld")


@pytest.fixture(scope="module")
def workload() -> Workload:
    return users_with_habits(3, jobs=2_400, days=112)


@pytest.fixture(scope="module")
def found(workload: Workload):
    return train(workload, FormulaSearch.of(FEW), SMALL)


def replicas_of(workload: Workload, step: int):
    edges = [0, 960, 1440, 2400]
    return replicated(workload, Part(*edges[step : step + 2]), Rules(), count=6, seed=1 + step)


def test_the_baseline_is_the_published_policy_that_is_best_on_the_training_replicas(workload, found) -> None:
    training = replicas_of(workload, 0)
    logs = {one.name: np.log(measured(training, one, GOAL)[:, 0]).mean() for one in PUBLISHED}
    assert found.task.baseline.name == min(logs, key=logs.__getitem__)
    names = [one.policy.name for one in found.standings]
    assert found.task.baseline.name in names
    assert {"FCFS", "SAF", "P*SQRT(Q)"} <= set(names)


def test_the_choice_is_by_the_second_part_and_its_worth_by_the_honest_closed_loop_on_the_third(workload, found) -> None:
    choosing = replicas_of(workload, 1)
    base = measured(choosing, found.task.baseline, GOAL)[:, 0]
    gains = {
        one.policy.name: np.log(measured(choosing, one.policy, GOAL)[:, 0] / base).mean()
        for one in found.learned.candidates
    }
    assert found.policy.name == min(gains, key=gains.__getitem__)
    first = found.chosen.ranked[0]
    assert first.gain == pytest.approx(min(one.gain for one in found.chosen.ranked))
    replicas = replicas_of(workload, 2)
    replicas.learns = True
    judged = measured(replicas, found.policy, GOAL)
    assert found.standings[0].means == pytest.approx(judged.mean(axis=0))


def test_the_margin_over_the_runner_up_has_its_interval(found) -> None:
    margin, interval = found.chosen.margin, found.chosen.margin.estimate.interval
    assert interval.low <= margin.estimate.value <= interval.high
    assert margin.estimate.value <= 0
    assert f"beside {found.chosen.runner_up.policy.name}, the second (95 % interval" in found.margin
    report = found.as_dict()
    assert report["margin"] == found.margin
    assert report["baseline"] == found.task.baseline.name
    assert report["windows"]["noun"] == "replicas"
    assert report["windows"]["judged"] == [[1440, 2400]] * 6
    assert "On 6 replicas of later jobs, where predictors learn in each run, " in found.verdict
    json.dumps(report, allow_nan=False)


@pytest.mark.slow
def test_any_number_of_workers_finds_the_same(workload: Workload, found, tmp_path: Path) -> None:
    again = train(workload, FormulaSearch.of(FEW), SMALL, workers=2, output=tmp_path)
    assert again.as_dict()["candidates"] == found.as_dict()["candidates"]
    assert load_model(tmp_path / "policy.json").policy.formula == found.policy.formula


@pytest.mark.slow
def test_an_interrupted_run_goes_on_and_finds_the_same(workload: Workload, tmp_path: Path, monkeypatch) -> None:
    options = TrainOptions(replicas=2, bands=())
    search = SearchOptions(families=("power", "linear"), restarts=1, evaluations=12)
    train(workload, FormulaSearch.of(search), options, output=tmp_path / "whole")
    calls = []

    def stop(*arguments):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return measured(*arguments)

    with monkeypatch.context() as changed:
        changed.setattr("policyfactory.search.formulas.measured", stop)
        with pytest.raises(KeyboardInterrupt):
            train(workload, FormulaSearch.of(search), options, output=tmp_path / "cut")
    assert (tmp_path / "cut" / "train.partial").exists()
    train(workload, FormulaSearch.of(search), options, output=tmp_path / "cut")
    for name in ("policy.json", "history.csv", "report.json", "learning.png", "front.json", "front.png"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_limit_is_times_the_baselines_or_a_time() -> None:
    assert EpisodeLimit.of("--max-p99", "p99_wait", "1.1x").bound(100.0) == pytest.approx(110.0)
    assert EpisodeLimit.of("--max-p99", "p99_wait", " 20H ").bound(100.0) == 72_000.0
    for bad in ("1.1", "x", "-1x", "nanx", "0h", "inf", "", "1e9x"):
        refused(UsageError, "--max-p99 1.1x 20h", TrainOptions, max_p99=bad)
    options = TrainOptions(max_p99="1.1x", max_longest="20d")
    assert [(type(one), one.guard) for one in options.guard_bands] == [
        (Band, "utilisation"), (Band, "area_weighted_wait"), (EpisodeLimit, "p99_wait"), (EpisodeLimit, "max_wait"),
    ]  # fmt: skip


def test_what_is_beyond_a_limit_is_out(workload: Workload) -> None:
    search, options = SearchOptions(families=("power",), restarts=1, evaluations=10), TrainOptions(replicas=2, bands=())
    refused(EvaluationError, "1s longest", train, workload, FormulaSearch.of(search), options, max_longest="1s")


@pytest.mark.parametrize("name", PREDICTED)
def test_a_family_with_predictions_begins_at_the_index_that_worked(name: str) -> None:
    family = family_of(name)
    assert {"e", "s", "q"} <= family.form.expression.variables
    assert family.start[:2] == (-0.5, 0.3)
    assert len(family.start) == len(family.scale) == len(family.form.names)
    policy = family.form.fixed(dict(zip(family.form.names, family.start, strict=True)), "x")
    predictions = [[100.0, 20.0], [0.1, 0.5], [400.0, 60.0], [0, 3], [0, 1]]
    assert np.isfinite(policy.scores([600, 60], [4, 1], [0, 5], [60, 0], predictions=predictions)).all()


def test_a_threshold_is_a_coefficient_of_a_family(workload: Workload) -> None:
    family = family_of("predicted-threshold", {"t": 3.0})
    assert family.form.names == ("a", "b", "t")
    tried = family.form.with_values([-0.5, 0.3, 3.0])
    fixed = family.form.fixed({"a": -0.5, "b": 0.3, "t": 3.0}, "x")
    assert tried.threshold == fixed.threshold == 1000.0
    assert math.isfinite(family.form.with_values([0, 0, 1e9]).threshold)
    assert term_of(family.form, "t") == "log10(threshold)"
    replicas = replicas_of(workload, 0)
    without = family_of("predicted").form.with_values([-0.5, 0.3])
    starts = [replicas.schedule(0, one).start for one in (tried, fixed, without)]
    assert starts[0].tolist() == starts[1].tolist() != starts[2].tolist()


def test_what_cannot_be_is_said(workload: Workload) -> None:
    for changes, said in (
        ({"replicas": -1}, "--replicas -1"),
        ({"replicas": 2, "loads": (2.0, 1.0)}, "ascending loads"),
        ({"replicas": 2, "windows": "3x50jobs"}, "--windows --mode"),
        ({"replicas": 2, "mode": "paper"}, "--windows --mode"),
    ):
        refused(UsageError, said, TrainOptions, **changes)
    refused(WorkloadError, "whole weeks", train, workload[:300], FormulaSearch.of(FEW), SMALL)

    class Other:
        name = "ppo"

    refused(UsageError, "--replicas learner", train, workload, Other(), SMALL)
    assert draw_windows(workload, SMALL).training.tolist() == [[0, 960]] * 6
