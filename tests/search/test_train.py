"""A run: what it finds, that it goes on, and that the number of workers says nothing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from policyfactory.core.errors import EvaluationError, OutputError, UsageError
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import load_model
from policyfactory.search.environment.goals import goal_of
from policyfactory.search.families import REFERENCES, family_of
from policyfactory.search.formulas import Evolution, FormulaSearch
from policyfactory.search.learner import MEASURED, draw_windows, measured, played
from policyfactory.search.options import SearchOptions, TrainOptions
from policyfactory.search.run import train
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.models.lublin import generate_lublin
from policyfactory.workload.models.tsafrir import tsafrir_estimates
from refusals import refusal, refused

SMALL = TrainOptions(window_jobs=80, training_windows=6, choosing_windows=4, judged_windows=6, bands=())
FEW = SearchOptions(families=("power", "linear"), restarts=2, evaluations=20)


@pytest.fixture(scope="module")
def workload():
    return generate_lublin(64, 1500, seed=5)


@pytest.mark.parametrize("compatibility", ["none", "rlscheduler"])
@pytest.mark.parametrize("backfill", ["easy", "none"])
@pytest.mark.parametrize("name", ["power", "linear", "fits"])
def test_a_window_is_played_as_the_simulator_plays_it(workload, name: str, backfill: str, compatibility: str) -> None:
    rules = Rules(backfill=backfill, compatibility=compatibility)
    parts = draw_windows(workload, SMALL).cut(workload, "training")
    form = family_of(name).form
    windows = played(parts, rules)
    for values in (family_of(name).start, tuple(-0.3 for _ in form.names)):
        got = measured(windows, form.with_values(values), goal_of("mean_bsld"))
        policy = form.fixed(dict(zip(form.names, values, strict=True)), "x")
        for row, part in zip(got, parts, strict=True):
            schedule = simulate(part, policy, rules)
            assert row.tolist() == list(measure(schedule, ["mean_bsld", *MEASURED[1:]]).values())


def test_a_search_finds_the_least_of_a_bowl_and_is_told_the_same_again() -> None:
    family = family_of("p + a*q - b*w + c*r")

    def search() -> tuple[np.ndarray, int]:
        evolution = Evolution(family, 7, (0, 1), 0.5)
        batches = 0
        while not evolution.over and batches < 200:
            asked = evolution.ask()
            evolution.tell(asked, [float(((one - [0.3, -1.0, 2.0]) ** 2).sum()) for one in asked])
            batches += 1
        return evolution.centre, batches

    state = np.random.get_state()[1].tolist()  # noqa: NPY002 (that nobody touches it)
    centre, batches = search()
    assert centre == pytest.approx([0.3, -1.0, 2.0], abs=0.05)
    again, others = search()
    assert (again.tolist(), others) == (centre.tolist(), batches)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_what_is_learned_is_better_where_it_was_learned(workload) -> None:
    options = TrainOptions(windows="5x150jobs", bands=())
    search = SearchOptions(families=("linear",), restarts=1, evaluations=80, objective="mean", pull=0.0)
    found = train(workload, FormulaSearch.of(search), options)
    values = {one.policy.name: one.means[0] for one in found.standings}
    assert values[found.policy.name] < min(values["SAF"], values["P*SQRT(Q)"], values["FCFS"])
    assert "nothing was held out" in " ".join(found.warnings)
    # What the report says is what the simulator gives.
    parts = draw_windows(workload, options).cut(workload, "judged")
    own = [measure(simulate(part, found.policy), "mean_bsld")["mean_bsld"] for part in parts]
    assert values[found.policy.name] == pytest.approx(np.mean(own), rel=1e-12)


@pytest.mark.parametrize("workers", [2, pytest.param(Workers(2, "loky"), marks=pytest.mark.slow)], ids=str)
def test_any_number_of_workers_finds_the_same(workload, workers: int | Workers) -> None:
    alone, together = (train(workload, FormulaSearch.of(FEW), SMALL, workers=count).as_dict() for count in (1, workers))
    assert alone == together


def test_a_family_may_read_predictions_which_other_programs_do_not_make(workload, tmp_path: Path) -> None:
    family, workload = "index=-ln(s) + a*ln(e) + b*ln(q)", tsafrir_estimates(workload, max_estimate=64_800, seed=5)
    few = SearchOptions(families=(family,), start=(("a", 1.0), ("b", 0.4)), restarts=1, evaluations=10)
    train(workload, FormulaSearch.of(few), SMALL, output=tmp_path / "found")
    assert load_model(tmp_path / "found" / "policy.json").policy.variables == {"e", "s", "q"}
    paper = dataclasses.replace(SMALL, mode="paper")
    with refusal(UsageError, "index e s rlscheduler"):
        train(workload, FormulaSearch.of(few), paper, output=tmp_path / "paper")
    assert not list(tmp_path.glob("paper/*"))


def test_an_interrupted_run_goes_on_and_finds_the_same(workload, tmp_path: Path, monkeypatch) -> None:
    whole = train(workload, FormulaSearch.of(FEW), SMALL, output=tmp_path / "whole")
    folder = tmp_path / "cut"
    calls = []

    def stop(*arguments):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return measured(*arguments)

    with monkeypatch.context() as changed:
        changed.setattr("policyfactory.search.formulas.measured", stop)
        with pytest.raises(KeyboardInterrupt):
            train(workload, FormulaSearch.of(FEW), SMALL, output=folder)
    journal = folder / "train.partial"
    assert journal.exists()
    # The last record is torn, as by a kill.
    journal.write_bytes(journal.read_bytes()[:-7])
    with refusal(OutputError, "train.partial finished candidates"):
        train(workload, FormulaSearch.of(SearchOptions(restarts=1)), SMALL, output=folder)
    again = train(workload, FormulaSearch.of(FEW), SMALL, output=folder)
    assert not journal.exists()
    for name in ("policy.json", "history.csv", "report.json", "learning.png"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert again.as_dict() == whole.as_dict()


def test_the_folder_has_a_model_with_named_coefficients_and_is_not_replaced(workload, tmp_path: Path) -> None:
    found = train(workload, FormulaSearch.of(FEW), SMALL, output=tmp_path)
    model = load_model(tmp_path / "policy.json")
    assert model.policy.formula == found.policy.formula
    assert {one.name: one.value for one in model.coefficients} == {
        one.name: one.value for one in found.chosen.winner.coefficients
    }
    assert model.coefficients[0].term == "log10(q)"
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["policy"] == found.policy.name
    assert report["judged"][0]["role"] == "choice"
    assert len((tmp_path / "history.csv").read_text().splitlines()) == 1 + len(found.learned.history)
    refused(OutputError, "policy.json exists", train, workload, FormulaSearch.of(FEW), SMALL, output=tmp_path)


def test_a_formula_outside_its_bands_is_no_candidate(workload) -> None:
    # The largest first: however the coefficient is set in so small steps, some job waits far longer than under SAF.
    tight = TrainOptions(window_jobs=200, training_windows=6, choosing_windows=4, bands=(("max_wait", 1.0),))
    large = SearchOptions(families=("large=a*p - p*q",), restarts=1, evaluations=10, step=0.001)
    refused(EvaluationError, "candidates longest", train, workload, FormulaSearch.of(large), tight)


def test_the_choice_looks_at_the_windows_for_choosing_only(workload) -> None:
    found = train(workload, FormulaSearch.of(FEW), SMALL)
    windows = played(draw_windows(workload, SMALL).cut(workload, "choosing"), Rules())
    base = measured(windows, REFERENCES["SAF"], goal_of("mean_bsld"))[:, 0]
    gains = {
        one.policy.name: np.log(measured(windows, one.policy, goal_of("mean_bsld"))[:, 0] / base).mean()
        for one in found.learned.candidates
    }
    assert gains[found.policy.name] == min(gains.values())


@pytest.mark.parametrize(
    ("family", "facts"), [("a*n + p", "form reads n"), ("mine=log10(-p)*a", "mine finite --start")]
)
def test_a_family_that_ranks_no_job_is_refused_and_leaves_nothing_behind(
    workload, tmp_path: Path, family: str, facts: str
) -> None:
    search = FormulaSearch.of(SearchOptions(families=(family,), start=(("a", 1.0),)))
    refused(UsageError, facts, train, workload, search, SMALL, output=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_error_before_anything_is_finished_leaves_no_journal(workload, tmp_path: Path, monkeypatch) -> None:
    def fail(windows, policy, goal):
        if policy is REFERENCES["SAF"]:
            return measured(windows, policy, goal)
        raise EvaluationError("no; try again")

    monkeypatch.setattr("policyfactory.search.formulas.measured", fail)
    refused(EvaluationError, "no", train, workload, FormulaSearch.of(FEW), SMALL, output=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_options_without_effect_are_refused(workload) -> None:
    refused(UsageError, "--window-jobs --judged-windows", TrainOptions, replicas=2, window_jobs=9, judged_windows=3)
    parts = {"parts": (30, 30, 40), "choosing_windows": 3}
    refused(UsageError, "--parts --choosing-windows --windows", TrainOptions, windows="2x90jobs", **parts)
    given = TrainOptions(windows="2x90jobs", window_jobs=90)
    refused(UsageError, "--window-jobs --windows", train, workload, FormulaSearch.of(FEW), given)
