"""Standard errors, t, inflation factors: against statsmodels' own, a sandwich by hand, and simulation."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest

from policyfactory.core.errors import FitError
from policyfactory.fitting import regression
from policyfactory.fitting.forms import FormsResult, fit_user_form
from policyfactory.fitting.regression import Fit, infer, inflation
from policyfactory.fitting.sample import Sample, prepare


def test_the_clustered_error_is_the_sandwich_by_hand(sc17: Sample, sc17_forms: FormsResult) -> None:
    fit = sc17_forms.fits[0]
    result = infer(fit, sc17)
    x = fit.design(sc17) * sc17.weight[:, None]
    residual = sc17.weight * (sc17.score - fit.design(sc17) @ fit.coefficients)
    bread = np.linalg.inv(x.T @ x)
    sums = np.stack([x[sc17.tuple_of == t].T @ residual[sc17.tuple_of == t] for t in range(sc17.tuples)])
    n, k, groups = len(sc17), x.shape[1], sc17.tuples
    # The usual correction for few groups, as Stata and statsmodels have it.
    correction = groups / (groups - 1) * (n - 1) / (n - k)
    expected = np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread) * correction)
    assert result.stderr == pytest.approx(expected, rel=1e-9)
    assert result.t == pytest.approx(fit.coefficients / expected, rel=1e-9)


def test_the_classical_error_is_the_textbook_one(sc17: Sample, sc17_polynomials: tuple[Fit, ...]) -> None:
    fit = sc17_polynomials[0]
    x = fit.design(sc17) * sc17.weight[:, None]
    variance = fit.sse / (len(sc17) - x.shape[1])
    expected = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * variance)
    assert infer(fit, sc17).stderr_classical == pytest.approx(expected, rel=1e-7)


def test_rows_of_a_tuple_are_not_independent(sc17: Sample, sc17_forms: FormsResult) -> None:
    # The classical error is 4 to 7 times too small on the published table: why the tuple is the unit.
    result = infer(sc17_forms.fits[0], sc17)
    assert (result.stderr / result.stderr_classical > 3).all()


def test_the_error_is_the_spread_over_new_tables(made) -> None:  # type: ignore[no-untyped-def]
    # 60 tables with an error that the jobs of a tuple share. The ratio of two standard deviations from 60 has a
    # relative error of 10 %; 0.6 to 1.5 is more than four of them: a chance below 1e-4 to fail without a fault.
    result, errors = [], []
    for seed in range(60):
        table = made(lambda p, q, r: 1e-8 * p * q + 0.004 * np.log10(r), tuples=60, seed=seed)
        rng = np.random.default_rng(1000 + seed)
        sample = prepare(table)
        shifted = sample.score * (1 + rng.normal(0, 0.05, sample.tuples)[sample.tuple_of])
        fit = fit_user_form(dataclasses.replace(sample, score=shifted), "a*p*q + b*log10(r)")
        result.append(fit.coefficients[1])
        errors.append(infer(fit, dataclasses.replace(sample, score=shifted)).stderr[1])
    assert 0.6 < np.mean(errors) / np.std(result) < 1.5


@pytest.mark.parametrize("weighted", [False, True])
def test_inflation_is_that_of_statsmodels(sc17: Sample, weighted: bool, sc17_polynomials: tuple[Fit, ...]) -> None:
    from statsmodels.stats.outliers_influence import variance_inflation_factor

    fit = sc17_polynomials[1]
    columns = fit.design(sc17) * sc17.weight[:, None] if weighted else fit.design(sc17)[:, 1:]
    unit = columns / np.linalg.norm(columns, axis=0)
    # From 0.15 on statsmodels centres the columns unless told not to.
    new = "standardize" in inspect.signature(variance_inflation_factor).parameters
    plain = {"standardize": False} if new else {}
    expected = [variance_inflation_factor(unit, k, **plain) for k in range(unit.shape[1])]
    assert inflation(columns) == pytest.approx(expected, rel=1e-6)
    result = infer(fit, sc17)
    # The constant has none among the unweighted terms: their regressions have no constant either.
    assert (result.vif_weighted if weighted else result.vif[1:]) == pytest.approx(expected, rel=1e-6)


def test_inflation_of_two_columns_by_hand() -> None:
    # cos = 0.6 between them: 1 / (1 - 0.36).
    columns = np.array([[1.0, 0.6], [0.0, 0.8]])
    assert inflation(columns) == pytest.approx([1 / 0.64, 1 / 0.64], rel=1e-14)
    assert inflation(np.eye(3)) == pytest.approx([1, 1, 1])
    assert inflation(columns * [1e-9, 1e6]) == pytest.approx([1 / 0.64, 1 / 0.64], rel=1e-12), "units are no matter"
    assert inflation(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])).tolist() == [np.inf, np.inf], "a column of zeros"
    assert inflation(np.ones((4, 2))).tolist() == [np.inf, np.inf]
    assert inflation(np.empty((4, 0))).shape == (0,)
    # Never below 1, not even by the rounding of its steps.
    rng = np.random.default_rng(3)
    assert min(inflation(np.linalg.qr(rng.normal(size=(9, 6)))[0] * 10.0**k).min() for k in range(-9, 9)) >= 1


def test_a_nonlinear_coefficient_has_the_error_of_its_linearisation(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 3e-8 * p**0.8 * q + 0.005 * np.log10(r), noise=1e-4, tuples=100))
    fit = fit_user_form(sample, "a*p**b*q + c*log10(r)")
    result = infer(fit, sample)
    truth = {"a": 3e-8, "b": 0.8, "c": 0.005}
    for term, value, error in zip(fit.terms, fit.coefficients, result.stderr, strict=True):
        # Five standard errors: a chance of 1e-6 each.
        assert abs(value - truth[term.coefficient]) < 5 * error
        assert 0 < error < abs(value)


def test_where_columns_depend_on_each_other_errors_are_infinite(made, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-6 * p * q, noise=1e-3))
    found = fit_user_form(sample, "a*p**b")

    def refuse(*_: object) -> None:
        raise FitError("linearly dependent")

    monkeypatch.setattr(regression, "solve", refuse)
    assert infer(found, sample).stderr.tolist() == infer(found, sample).stderr_classical.tolist() == [np.inf, np.inf]


def test_the_constant_has_no_inflation_of_its_own(sc17: Sample, sc17_polynomials: tuple[Fit, ...]) -> None:
    result = infer(sc17_polynomials[0], sc17)
    assert np.isnan(result.vif[0])
    assert not np.isnan(result.vif[1:]).any()
    assert (result.vif_weighted >= 1).all()


def test_errors_are_right_where_the_gram_matrix_is_singular(made) -> None:  # type: ignore[no-untyped-def]
    """Columns of condition 1e9, whose Gram matrix has 1e18, against 60 digits: late submissions, near each other."""
    from mpmath import mp, mpf

    table = made(lambda p, q, r: 0.01 + 1e-7 * r, noise=1e-3, tuples=3, size=20)
    sample = prepare(dataclasses.replace(table, r=table.r + 1_000_000))
    fit = fit_user_form(sample, "a + b*r + c*r**2 + d*r**3 + g*r**4 + h*r**5")
    with mp.workdps(60):
        x = mp.matrix([[mpf(w) * mpf(r) ** k for k in range(6)] for r, w in zip(sample.r, sample.weight, strict=True)])
        y = mp.matrix([mpf(w) * mpf(s) for s, w in zip(sample.score, sample.weight, strict=True)])
        bread = (x.T * x) ** -1
        residual = y - x * (bread * (x.T * y))
        variance = sum(one**2 for one in residual) / (len(sample) - 6)
        classical = [float(mp.sqrt(bread[k, k] * variance)) for k in range(6)]
        sums = mp.matrix([[sum(x[i, k] * residual[i] for i in rows) for k in range(6)] for rows in _rows(sample)])
        sandwich = bread * (sums.T * sums) * bread
        correction = mpf(3) / 2 * (len(sample) - 1) / (len(sample) - 6)
        robust = [float(mp.sqrt(sandwich[k, k] * correction)) for k in range(6)]
    result = infer(fit, sample)
    assert fit.condition > 1e8
    # Rounding times the condition.
    assert result.stderr_classical == pytest.approx(classical, rel=1e-14 * fit.condition)
    assert result.stderr == pytest.approx(robust, rel=1e-14 * fit.condition)


def _rows(sample: Sample) -> list[list[int]]:
    return [np.flatnonzero(sample.tuple_of == number).tolist() for number in range(sample.tuples)]
