"""A whole fit on a small table: what is resampled, what is shown, what fails, and under which names."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest

from policyfactory.core.errors import FitError, UsageError
from policyfactory.fitting import fits as module
from policyfactory.fitting import regression
from policyfactory.fitting.fits import fit, report_tables
from policyfactory.fitting.forms import FormsResult, fit_all_forms
from policyfactory.fitting.sample import Sample
from policyfactory.trials.table import ScoreTable
from refusals import refused


@pytest.fixture(scope="module")
def table(made) -> ScoreTable:  # type: ignore[no-untyped-def]
    return made(lambda p, q, r: 1e-8 * p * q + 0.004 * np.log10(r), noise=3e-3, tuples=8, size=8)


@pytest.fixture(autouse=True)
def forms_once(table: ScoreTable, monkeypatch: pytest.MonkeyPatch, known: dict[str, FormsResult]) -> None:
    """Fit the 576 forms to the table once for all tests."""

    def once(sample: Sample) -> FormsResult:
        assert len(sample) == len(table)
        if "forms" not in known:
            known["forms"] = fit_all_forms(sample)
        return known["forms"]

    monkeypatch.setattr(module, "fit_all_forms", once)


@pytest.fixture(scope="module")
def known() -> dict[str, FormsResult]:
    return {}


def families(fits) -> list[str]:  # type: ignore[no-untyped-def]
    return [fit.family for fit in fits]


def test_twelve_forms_at_least_are_resampled_and_everything_with_a_name(table: ScoreTable, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(module, "_BUDGET", 0)
    run = fit(table, ["forms", "linear", "a*p", "B=b*q"], bootstrap=2)
    candidates = [candidate.fit for candidate in run.resampled.candidates]
    assert families(candidates).count("forms") == 12
    assert {fit.name for fit in candidates if fit.family != "forms"} == {"MIX", "form1", "B"}
    best = [item.fit for item in run if item.fit.family == "forms"][:12]
    assert [fit for fit in candidates if fit.family == "forms"] == best
    # Those without a bootstrap are in the ranking all the same.
    assert [item.rank for item in run] == list(range(1, len(run) + 1))


@pytest.mark.parametrize(
    # 64 rows: a form costs 64 residuals in each replicate, and in each of the five parts of the held-out error.
    ("budget", "replicates", "top", "forms"),
    [(64 * 20 * 15, 20, 1, 15), (64 * 20 * 15 - 1, 20, 1, 14), (64 * 5 * 13, 0, 1, 13), (0, 0, 14, 14)],
)
def test_as_many_forms_are_resampled_as_the_budget_allows(
    table: ScoreTable,
    monkeypatch,  # type: ignore[no-untyped-def]
    budget: int,
    replicates: int,
    top: int,
    forms: int,
) -> None:
    monkeypatch.setattr(module, "_BUDGET", budget)
    run = fit(table, top=top, bootstrap=replicates)
    assert len(run.resampled.candidates) == forms
    assert len(run.examined) == top


def test_the_winner_the_best_forms_and_all_names_are_shown(table: ScoreTable) -> None:
    run = fit(table, ["forms", "polynomials", "z=a*q/p"], top=2, bootstrap=0)
    shown = list(run.examined)
    assert shown[0] is run[0] is run.winner
    assert [item for item in shown if item.fit.family == "forms"] == [
        item for item in run if item.fit.family == "forms"
    ][:2]
    assert {item.name for item in shown if item.fit.family != "forms"} == {
        "LIN",
        "QDR",
        "CUB",
        "QUA",
        "QUI",
        "SEX",
        "z",
    }
    assert shown == [item for item in run if item in shown], "in the order of the ranking"
    assert run.enumerated is not None
    assert run.enumerated.forms == 576


def test_certainty_is_measured_on_twelve_forms_and_all_names(table: ScoreTable) -> None:
    run = fit(table, ["forms", "a*p"], bootstrap=1, certainty=True)
    assert run.certainty is not None
    assert families(run.certainty.fits).count("forms") == 12
    assert families(run.certainty.fits).count("user") == 1
    assert run.certainty.replicates == 1
    assert fit(table, "linear", bootstrap=1).certainty is None


def test_what_fails_is_kept_beside_what_does_not(table: ScoreTable) -> None:
    one = ScoreTable(table.p, np.ones(len(table)), table.r, table.score, table.stderr, table.tuple_id)
    run = fit(one, ["polynomials", "linear", "a*p + b"], bootstrap=0)
    assert [item.name for item in run] == ["form1"]
    assert list(run.failures) == ["LIN", "QDR", "CUB", "QUA", "QUI", "SEX", "MIX"]
    assert all("linearly dependent" in reason for reason in run.failures.values())
    refused(FitError, "LIN the 4 scores", fit, one, "polynomials", bootstrap=0)


@pytest.mark.slow
def test_a_form_that_cannot_be_refitted_leaves_the_others_their_intervals(
    table: ScoreTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    dependent = "(a*p + b)*(c*q + d*r) + 0.001*q"  # its linearisation has four columns of rank three
    # Differences are not exact: that they are dependent is seen from some 10,000 rows on.
    monkeypatch.setattr(regression, "_EPSILON", 1e-11)
    run = fit(table, ["SURE=a*p*q + b*log10(r)", f"LOOSE={dependent}"], bootstrap=4, certainty=True)
    assert {item.fit.name for item in run} == {"SURE", "LOOSE"}
    assert [item.fit.name for item in run.resampled.candidates] == ["SURE"]
    assert "linearly dependent" in run.resampled.refused["LOOSE"]
    assert any(line.startswith("Not resampled: LOOSE: the 4 terms") for line in module.sentences(run))
    alone = fit(table, dependent, bootstrap=4, certainty=True)
    assert alone.certainty is None
    assert not alone.resampled.candidates
    assert alone.plot() is not None


def test_forms_without_a_name_are_numbered(table: ScoreTable) -> None:
    run = fit(table, ["a*p", "x=a*q", "a*r"], bootstrap=0)
    assert {item.name for item in run} == {"form1", "x", "form3"}
    refused(UsageError, "form2 forms", fit, table, ["form2=a*p", "a*q"])


def test_the_seed_is_passed_on(table: ScoreTable) -> None:
    runs = [fit(table, "linear", bootstrap=6, seed=seed) for seed in (1, 1, 2)]
    drawn = [run.resampled.candidates[0].mae.tolist() for run in runs]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [run.resampled.seed for run in runs] == [1, 1, 2]


def test_what_is_fitted_without_options() -> None:
    parameters = inspect.signature(fit).parameters
    assert [parameters[name].default for name in ("family", "top", "bootstrap", "seed")] == ["forms", 1, 200, 1]
    refused(UsageError, "list scores", fit, [])  # type: ignore[arg-type]


def test_where_no_score_differs_there_is_nothing_to_learn(made) -> None:  # type: ignore[no-untyped-def]
    flat = made(lambda p, q, r: 0.25 + 0 * p, tuples=3, size=4)
    refused(FitError, "made equal nothing", fit, flat, "linear", bootstrap=0)
    # One tuple in which they do not is none to learn from, and no hindrance.
    score = np.where(flat.tuple_id == 0, flat.score, flat.p / np.bincount(flat.tuple_id, flat.p)[flat.tuple_id])
    assert fit(dataclasses.replace(flat, score=score), "a*p + b", bootstrap=0).winner.mae >= 0


@pytest.mark.parametrize(
    ("family", "suffix"),
    [
        (["forms", "F1=a*p + b*r"], "f1"),
        (["A_B=a*p", "A-B=b*q"], "a-b"),
        (["polynomials", "LIN=a*p"], "lin"),
        (["linear", "Mix=a*p"], "mix"),
    ],
)
def test_two_formulas_never_have_the_same_file(table: ScoreTable, family: list[str], suffix: str) -> None:
    refused(UsageError, f"NAME-{suffix}.json {family[-1].partition('=')[0]}", fit, table, family)


def test_names_of_forms_that_are_not_written_are_free(table: ScoreTable) -> None:
    assert {"F0", "F2"} <= {item.name for item in fit(table, ["forms", "F0=a*p", "F2=b*q"], top=1, bootstrap=0)}


def test_what_so_few_resamplings_show_is_not_said(table: ScoreTable) -> None:
    assert "replicates" in fit(table, ["a*p", "b*q"], bootstrap=40).summary()
    assert "replicates" not in fit(table, ["a*p", "b*q"], bootstrap=39).summary()
    assert "replicates" not in fit(table, "a*p", bootstrap=40).summary()


def test_an_error_below_that_of_the_noise_is_said_to_be_overfitted(made) -> None:  # type: ignore[no-untyped-def]
    few = made(lambda p, q, r: 0.2 + 1e-6 * p, noise=0.05, tuples=4, size=12)
    rich = fit(few, "polynomials", bootstrap=0)
    assert rich.winner.mae < (rich.sample.noise_mae or 0)
    assert "overfitted" in rich.summary()
    assert "held out" in rich.summary()
    poor = fit(made(lambda p, q, r: 1e-6 * p, noise=1e-5), "a*q", bootstrap=0).summary()
    assert not any(word in poor for word in ("overfitted", "held out"))


def test_how_nonlinear_forms_are_resampled_is_said(table: ScoreTable) -> None:
    def caption(form: str) -> str | None:
        return report_tables(fit(table, form, bootstrap=2))[0].note

    assert "linearised" in str(caption("a*p**b"))
    assert "linearised" not in str(caption("a*p"))


def test_every_file_that_is_written_is_named(table: ScoreTable, tmp_path: Path) -> None:
    written = fit(table, "linear", bootstrap=2, certainty=True).save(figures=tmp_path)
    assert set(written) == set(tmp_path.iterdir())
    assert tmp_path / "certainty.csv" in written
