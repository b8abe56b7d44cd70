"""A fit as a model file: the same order, the whole story, read back equal."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from policyfactory.core.errors import FitError, UsageError
from policyfactory.fitting import model as module
from policyfactory.fitting.fits import fit, sentences
from policyfactory.fitting.forms import FormsResult, fit_all_forms, fit_mixture, fit_user_form
from policyfactory.fitting.model import Fitted
from policyfactory.fitting.regression import Fit, shown_term, sort_key
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.policy.algebra import Shorter
from policyfactory.policy.store import load_model, model_to_json, save_model
from policyfactory.trials.table import ScoreTable
from refusals import refused


def test_a_saved_fit_is_read_back(sc17_table: ScoreTable, tmp_path: Path) -> None:
    sample = prepare(sc17_table)
    model = Fitted(fit_all_forms(sample).fits[0], sample).model("learned")
    save_model(model, tmp_path / "learned.json")
    back = load_model(tmp_path / "learned.json")
    assert back.policy == model.policy
    # The ratio of two coefficients. Their sums have 6,912 addends, and the design has condition 6: the last digits are
    # the processor's, up to 6912 * 6 * 2.2e-16 = 1e-11 of the whole.
    first, factor, last = re.split(r"([0-9.]{15,})", back.policy.formula)
    assert (first, last) == ("log10(p)*q + ", "*log10(r)")
    assert float(factor) == pytest.approx(870.9600701902991, rel=1e-11)
    assert back.policy.epoch.rule == "window-start"
    assert math.isinf(back.policy.threshold)
    assert [(c.name, c.term, c.unit) for c in back.coefficients] == [
        ("k1", "log10(p)*q", "1/processors"),
        ("k2", "log10(r)", "1"),
    ]
    assert all(c.stderr > 0 for c in back.coefficients)
    written = json.loads((tmp_path / "learned.json").read_text(encoding="utf-8"))
    assert written["latex"].startswith("\\log_{10}")
    assert written["diagnostics"]["mae"] == pytest.approx(0.0052776, abs=5e-8)
    assert written["diagnostics"]["tuples"] == 216
    assert written["provenance"]["inputs"]["sc17-score-distribution"] == sc17_table.sha256


def test_the_sort_key_orders_as_the_fit_does(
    sc17: Sample, sc17_forms: FormsResult, sc17_polynomials: tuple[Fit, ...], sc17_power: Fit
) -> None:
    fits = [
        *sc17_forms.fits[::40],
        *sc17_polynomials,
        fit_mixture(sc17),
        sc17_power,
        fit_user_form(sc17, "1e-9*p*q + a*log10(r)"),
    ]
    rng = np.random.default_rng(1)
    p, q, r = np.ceil(10 ** rng.uniform(0, 5, 1000)), np.floor(2 ** rng.uniform(0, 8, 1000)), rng.uniform(1, 1e5, 1000)
    for found in fits:
        model = Fitted(found, sc17).model("x")
        key = model.policy.scores(p, q, r)
        score = sc17.with_jobs(p, q, r).values(found.expression)
        order = np.argsort(score, kind="stable")
        # Two jobs may change places only where rounding cannot tell them apart.
        fall = np.diff(key[order])
        assert (fall >= -1e-9 * np.ptp(key)).all(), found.name


def test_the_sort_key_of_a_job_is_a_number_and_of_arrays_an_array(sc17: Sample) -> None:
    with_r, without = (Fitted(fit_user_form(sc17, form), sc17) for form in ("a*p*q + b*log10(r)", "a*p*sqrt(q) + b*p"))
    p, q, r = np.array([60.0, 3600.0]), np.array([1.0, 64.0]), np.array([10.0, 1e5])
    expected = with_r.policy.scores(p, q, r)
    assert expected[0] != expected[1]
    np.testing.assert_array_equal(with_r.priority(p, q, r), expected)
    np.testing.assert_array_equal(with_r.priority(3600, 64, r), with_r.policy.scores(*np.broadcast_arrays(3600, 64, r)))
    assert isinstance(with_r.priority(3600, 64, 1e5), float)
    assert with_r.priority(3600, 64, 1e5) == expected[1]
    assert without.priority(60, 1) == without.policy.scores(60, 1, 0)[0]
    refused(UsageError, "has r", with_r.priority, 3600, 64)


def test_a_long_name_is_cut(sc17: Sample) -> None:
    assert Fitted(fit_user_form(sc17, "a*p*q", name="x" * 120), sc17).model().policy.name == "x" * 100


def test_a_summary_has_coefficients_certainty_and_each_warning(sc17_table: ScoreTable) -> None:
    found = fit(sc17_table, "polynomials", bootstrap=20, seed=3)[0]
    told = dict(re.split(r"  +", line.strip(), maxsplit=1) for line in found.summary().splitlines()[1:])
    assert repr(found) == f"<{found.summary().splitlines()[0]}>"
    assert told["rank"] == f"{found.rank} of {found.of}"
    for term, value, error in zip(found.fit.terms, found.fit.coefficients, found.inference.stderr, strict=True):
        words = told[f"{term.coefficient}, of {shown_term(term)}"]
        assert float(words.split()[0]) == pytest.approx(value, rel=1e-3)
        assert f"{error:.2g}" in words
    warnings = found.diagnosis.warnings
    assert warnings
    assert [told[f"warning {number}"] for number in range(1, len(warnings) + 1)] == list(warnings)
    assert found.candidate is not None
    assert f"{found.candidate.first:.0%} of 20" in told["first of all fits"]
    alone = Fitted(found.fit, found.sample)
    assert "first of all fits" not in alone.summary()
    assert re.search(r"rank +1 of 1\n", alone.summary())


def test_bootstrap_and_held_out_error_go_into_the_model(sc17_table: ScoreTable) -> None:
    run = fit(sc17_table, "linear", bootstrap=20, seed=3)
    written = model_to_json(run.winner.model("mix"))
    diagnostics = written["diagnostics"]
    assert diagnostics["bootstrap"]["replicates"] == 20
    assert diagnostics["bootstrap"]["unit"] == "tuple"
    assert set(diagnostics["bootstrap"]["coefficients_95"]) == {f"theta{k}" for k in range(5)}
    assert diagnostics["mae_held_out"] > diagnostics["mae"]
    assert diagnostics["vif"]["theta0"] is None
    assert written["provenance"]["seed"] == 3
    json.dumps(written, allow_nan=False)


def test_the_model_knows_the_range_of_its_data_and_shortens_long_formulas(made) -> None:  # type: ignore[no-untyped-def]
    table = made(lambda p, q, r: 1e-7 * p + 1e-4 * q + 0.01, noise=1e-4, tuples=4, size=8)
    sample = prepare(table)
    long = "log10(" + " + ".join(["p", *["q"] * 70]) + ")"
    model = Fitted(fit_user_form(sample, f"a*{long} + b", name="n" * 260), sample).model("x")
    written = model_to_json(model)["diagnostics"]["data_range"]
    for column, name in ((sample.p, "p_s"), (sample.q, "q_processors"), (sample.r, "r_s")):
        assert written[name] == [column.min(), column.max()]
    term = next(c.term for c in model.coefficients if c.name == "a")
    assert len(term) == 200
    assert term == long[:197] + "..."
    assert f"{'n' * 197}... (user)" in model.policy.description


def test_texts_of_two_hundred_letters_are_whole_and_longer_ones_cut(made) -> None:  # type: ignore[no-untyped-def]
    table = made(lambda p, q, r: 1e-7 * p + 0.01, noise=1e-4, tuples=4, size=8)
    for length, ending in ((199, "n"), (200, "n"), (201, "...")):
        sample = dataclasses.replace(prepare(table), name="s" * (length - 1) + "\a")
        model = Fitted(fit_user_form(sample, "a*p + b", name="n" * length), sample).model("x")
        name = model.policy.description.split(": ")[1].removesuffix(" (user)")
        assert (len(name), name.endswith(ending)) == (min(length, 200), True)
        source = model.policy.source.removeprefix("policyfactory fit, score table ")
        assert source == ("s" * (length - 1) + "?" if length <= 200 else "s" * 200 + "...")


def test_a_term_is_shown_rounded_unless_it_is_searched(sc17: Sample) -> None:
    linear, searched = fit_user_form(sc17, "1.23456789*p**1.23456789*a + b"), fit_user_form(sc17, "a*p**b + c")
    assert shown_term(linear.terms[0]) == "1.2346*p**1.2346"
    assert [shown_term(term) for term in searched.terms if not term.linear] == [
        term.text for term in searched.terms if not term.linear
    ]


def test_a_formula_that_could_not_be_shortened_says_why(sc17: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = Fitted(fit_user_form(sc17, "a*p + b"), sc17)
    assert "formula_as_fitted" not in fitted.model("x").diagnostics
    kept = Shorter(fitted.fit.expression, "none: q has another order where numbers are very large or small")
    monkeypatch.setattr(module, "shorter_formula", lambda _: kept)
    said = fitted.model("x").diagnostics["formula_as_fitted"]
    assert said == "a shorter one: none: q has another order where numbers are very large or small"


def test_what_was_not_held_out_has_no_error(sc17_table: ScoreTable) -> None:
    winner = fit(sc17_table, "linear", bootstrap=2).winner
    assert winner.candidate is not None
    without = dataclasses.replace(winner, candidate=dataclasses.replace(winner.candidate, held_out=math.nan))
    assert without.model("x").diagnostics["mae_held_out"] is None


def test_display_rounds_and_the_model_does_not(sc17: Sample, sc17_power: Fit) -> None:
    power = sc17_power
    assert sort_key(power, digits=3) == "p**0.625*q + 99300*log10(r)"
    exponent = float(power.coefficients[[term.coefficient for term in power.terms].index("b")])
    assert f"p**{exponent!r}*q" in sort_key(power)
    # The search ends where the sum of 6,912 squares, known to 1e-13 of itself, changes no more: within
    # sqrt(6912 * 1e-13) = 2.6e-5 of the exponent's standard error of 0.22. The rest is the processor's.
    assert exponent == pytest.approx(0.6246408, abs=6e-6)


def test_a_run_has_what_was_asked_for(sc17_table: ScoreTable) -> None:
    run = fit(sc17_table, ["forms", "polynomials", "linear", "mine=a*p + b*r"], top=3, bootstrap=0)
    assert len(run) == 360 + 6 + 1 + 1
    assert [item.mae for item in run] == sorted(item.mae for item in run)
    names = {item.fit.name for item in run.examined}
    assert {"LIN", "SEX", "MIX", "mine", "log10(p)*q + log10(r)", "p*q + log10(r)"} <= names
    assert len(names) == 6 + 1 + 1 + 3
    assert run.winner.rank == 1
    assert run.certainty is None


def test_what_a_table_does_not_determine_is_said_and_the_rest_is_fitted(sc17_table: ScoreTable) -> None:
    # Two sizes of jobs: q and q**2 cannot be told apart.
    q = np.where(sc17_table.q > 8, 16.0, 4.0)
    table = ScoreTable(sc17_table.p, q, sc17_table.r, sc17_table.score, sc17_table.stderr, sc17_table.tuple_id)
    run = fit(table, "polynomials", bootstrap=0)
    assert [item.name for item in run] == ["LIN"]
    assert set(run.failures) == {"QDR", "CUB", "QUA", "QUI", "SEX"}
    assert any(line.startswith("Not fitted: QDR: the 8 terms are linearly dependent") for line in sentences(run))
    one = ScoreTable(sc17_table.p, 0 * q + 1, sc17_table.r, sc17_table.score, sc17_table.stderr, sc17_table.tuple_id)
    refused(FitError, "MIX nothing scores", fit, one, "linear", bootstrap=0)


def test_steps_are_reported(sc17_table: ScoreTable) -> None:
    steps: dict[str, list[int]] = {}

    def progress(title: str, total: int):  # type: ignore[no-untyped-def]
        steps[title] = [total, 0]

        def step() -> None:
            steps[title][1] += 1

        return step

    fit(sc17_table, "polynomials", bootstrap=5, certainty=True, progress=progress)
    assert steps == {"resampling tuples": [6, 6], "diagnosing": [6, 6], "tables of growing size": [6, 6]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "polynomial"}, "polynomial polynomials"),
        ({"family": ()}, "nothing fit"),
        ({"top": 0}, "1 least"),
        ({"bootstrap": -1}, "0 least"),
    ],
)
def test_invalid_options(sc17_table: ScoreTable, options: dict[str, object], message: str) -> None:
    refused(UsageError, message, fit, sc17_table, **options)  # type: ignore[arg-type]


def test_two_forms_of_one_name_and_certainty_without_draws(sc17_table: ScoreTable) -> None:
    refused(UsageError, "x forms", fit, sc17_table, ["x=a*p", "X=a*q"])
    refused(UsageError, "--bootstrap 1", fit, sc17_table, "linear", bootstrap=0, certainty=True)


def test_one_tuple_is_not_enough(sc17_table: ScoreTable) -> None:
    refused(FitError, "1 0 sc17-score-distribution", prepare, sc17_table.select(slice(0, 32)))
