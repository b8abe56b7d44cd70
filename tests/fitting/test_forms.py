"""The 576 forms: the published table's answer, aliases, and what has no value."""

from __future__ import annotations

import re

import numpy as np
import pytest

from naive.fit import FUNCTIONS
from naive.fit import fit_forms as naive_fit_forms
from policyfactory.fitting.forms import FormsResult, distinct_forms, fit_all_forms
from policyfactory.fitting.model import sort_key
from policyfactory.fitting.regression import solve
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.trials.table import ScoreTable

# Rank, form, ratio of the coefficients, mean absolute error: the exact solution of F1 to F4 (SC 2017, table 3).
PUBLISHED = [
    ("log10(p)*q + log10(r)", 870.96, 0.0052776),
    ("sqrt(p)*q + log10(r)", 2.5673e4, 0.0053168),
    ("p*q + log10(r)", 6.833e6, 0.0054076),
    ("p*sqrt(q) + log10(r)", 5.3096e5, 0.0054818),
]


def test_f1_to_f4_are_found_in_order_with_their_coefficients(sc17_table: ScoreTable) -> None:
    fits = fit_all_forms(prepare(sc17_table)).fits
    for fit, (name, ratio, mae) in zip(fits, PUBLISHED, strict=False):
        assert fit.name == name
        assert fit.coefficients[1] / fit.coefficients[0] == pytest.approx(ratio, rel=5e-5)
        assert fit.mae == pytest.approx(mae, abs=5e-8)


def test_they_are_shown_as_the_paper_writes_them(sc17: Sample, sc17_forms: FormsResult) -> None:
    fits = sc17_forms.fits
    assert [sort_key(fit, digits=3) for fit in fits[:4]] == [
        "log10(p)*q + 871*log10(r)",
        "sqrt(p)*q + 25700*log10(r)",
        "p*q + 6.83e6*log10(r)",
        "p*sqrt(q) + 531000*log10(r)",
    ]


def test_the_coefficients_of_the_artifacts_example_are_met(sc17: Sample, sc17_forms: FormsResult) -> None:
    # Paper 004 appendix A.5.2: (-0.0155183403 log10(p)) * (-0.0005149209 q) + 0.0069596182 log10(r), fitness 0.0052776.
    first = sc17_forms.fits[0]
    assert first.coefficients[0] == pytest.approx(0.0155183403 * 0.0005149209, rel=1e-5)  # leastsq stopped there
    assert first.coefficients[1] == pytest.approx(0.0069596182, rel=1e-7)


def test_576_ways_are_400_functions() -> None:
    forms = distinct_forms()
    assert sum(map(len, forms.values())) == 576
    assert len(forms) == 400
    assert len({way for ways in forms.values() for way in ways}) == 576


def test_aliases_have_the_values_of_their_function(sc17: Sample, sc17_forms: FormsResult) -> None:
    for fit in sc17_forms.fits[::9]:
        design = fit.design(sc17.first_tuples(2))
        for alias in fit.aliases:
            assert spans(alias, sc17.first_tuples(2), design), alias


def spans(alias: str, sample: Sample, design: np.ndarray) -> bool:
    """Whether any values of c1, c2, c3 give a column that the effective terms give too."""
    written = re.fullmatch(r"\(c1\*(\w+)\(p\) (.) c2\*(\w+)\(q\)\) (.) c3\*(\w+)\(r\)", alias)
    assert written
    a, op1, b, op2, c = written.groups()
    value = 0.7 * FUNCTIONS[a](sample.p)
    for operator, factor, function, x in ((op1, -1.3, b, sample.q), (op2, 2.1, c, sample.r)):
        other = factor * FUNCTIONS[function](x)
        value = value + other if operator == "+" else value * other if operator == "*" else value / other
    scale = np.linalg.norm(design, axis=0)
    solution, *_ = np.linalg.lstsq(design / scale, value, rcond=None)
    return bool(np.allclose(design / scale @ solution, value, rtol=1e-7))


def test_each_form_alone_gives_the_same_error(sc17: Sample, sc17_forms: FormsResult) -> None:
    expected = naive_fit_forms(sc17.p, sc17.q, sc17.r, sc17.score)
    actual = {alias: fit.mae for fit in sc17_forms.fits for alias in fit.aliases}
    assert actual.keys() == expected.keys()
    assert np.allclose([actual[alias] for alias in expected], list(expected.values()), rtol=1e-8)


def test_forms_without_a_value_are_counted_and_named(sc17: Sample, sc17_forms: FormsResult) -> None:
    # 1,740 of the 6,912 jobs have one processor: 1/log10(q) has no value there. No job has r = 1 or r = 0.
    result = sc17_forms
    assert int((sc17.q == 1).sum()) == 1740
    assert len(result.undefined) == 40
    assert all("log10(q)" in name.partition("/")[2] for name in result.undefined)
    assert len(result.fits) + len(result.undefined) == 400


def test_rows_with_a_zero_are_left_out_of_every_fit_and_counted(sc17_table: ScoreTable) -> None:
    p, r = sc17_table.p.copy(), sc17_table.r.copy()
    p[5], r[7], r[70] = 0, 0, 0
    changed = ScoreTable(p, sc17_table.q, r, sc17_table.score, sc17_table.stderr, sc17_table.tuple_id)
    sample = prepare(changed)
    assert sample.left_out == 3
    assert len(sample) == len(sc17_table) - 3
    assert fit_all_forms(sample).fits[0].name == PUBLISHED[0][0]


def test_a_known_formula_is_found_exactly(made) -> None:  # type: ignore[no-untyped-def]
    table = made(lambda p, q, r: 2e-6 * np.sqrt(p) / q + 0.004 * np.log10(r))
    best = fit_all_forms(prepare(table)).fits[0]
    assert best.name == "sqrt(p)/q + log10(r)"
    assert np.allclose(best.coefficients, [2e-6, 0.004], rtol=1e-9)
    assert best.mae < 1e-12


def test_one_processor_everywhere_leaves_what_can_be_distinguished(made) -> None:  # type: ignore[no-untyped-def]
    table = made(lambda p, q, r: 1e-8 * p + 0.004 * np.log10(r))
    narrow = ScoreTable(table.p, np.ones(len(table)), table.r, table.score, table.stderr, table.tuple_id)
    result = fit_all_forms(prepare(narrow))
    assert len(result.fits) + len(result.undefined) == 400
    # log10(q) is 0 everywhere: what multiplies it or divides by it cannot be fitted.
    assert all("log10(q)" not in fit.name for fit in result.fits)
    # Fifteen and more forms are the same on such rows; the true one is among the best.
    assert any(fit.name == "p*q + log10(r)" and fit.mae < 1e-12 for fit in result.fits)


def test_coefficients_are_those_of_the_terms_as_they_are_written(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0.01 + 0.02 / p + 1e-4 * q, noise=1e-3, tuples=4))
    fits = fit_all_forms(sample).fits
    assert any(term.text == "1/p" for fit in fits for term in fit.terms)
    for fit in fits:
        assert [term.coefficient for term in fit.terms] == [f"k{number}" for number in range(1, len(fit.terms) + 1)]
        if fit.condition < 1e3:
            columns = np.column_stack([sample.values(term.text) for term in fit.terms])
            expected = solve(columns, sample.score, sample.weight).coefficients
            np.testing.assert_allclose(fit.coefficients, expected, rtol=1e-8)
