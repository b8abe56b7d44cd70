"""A fitted formula: its text, its derivatives, its errors, by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from policyfactory.fitting.regression import Fit, Term, exact_fit, sum_of_terms
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.policy.expression import parse


@pytest.fixture(scope="module")
def sample(made) -> Sample:  # type: ignore[no-untyped-def]
    return prepare(made(lambda p, q, r: 0.02 + 1e-8 * p * q, noise=1e-3, tuples=4, size=8))


def fit_of(sample: Sample, *texts: str, offset: str = "") -> Fit:
    terms = tuple(Term.of(text, f"k{number}") for number, text in enumerate(texts))
    design = np.column_stack([sample.values(text) for text in texts])
    return exact_fit(sample, terms, design, name="made", family="user", offset=offset)


@pytest.mark.parametrize(
    ("terms", "coefficients", "text"),
    [
        (("p", "q"), (2.0, 3.0), "2*p + 3*q"),
        (("p", "q"), (2.0, -3.0), "2*p - 3*q"),
        (("p", "q"), (-2.0, 0.0), "-2*p + 0*q"),
        (("1", "1/p", "r"), (0.5, 4.0, -1.0), "0.5 + 4/p - 1*r"),
        (("p*q/r",), (2.0,), "2*p*q/r"),
        (("log10(p)*q", "1/(p*q)"), (1.5, -0.25), "1.5*log10(p)*q - 0.25/(p*q)"),
    ],
)
def test_the_text_has_signs_and_numbers_in_front(terms, coefficients, text: str) -> None:  # type: ignore[no-untyped-def]
    assert sum_of_terms([parse(term) for term in terms], coefficients).text() == text


def test_a_sum_of_nothing_is_no_formula() -> None:
    with pytest.raises(ValueError, match="at least one term"):
        sum_of_terms([], [])


def test_the_errors_are_those_of_the_rows(sample: Sample) -> None:
    fit = fit_of(sample, "1", "p*q", offset="0.001*log10(r)")
    residual = sample.score - sample.values(fit.expression)
    assert fit.converged
    assert fit.is_linear
    assert fit.method.startswith("exact")
    assert fit.mae == pytest.approx(np.abs(residual).mean(), rel=1e-12)
    assert fit.sse == pytest.approx(((sample.weight * residual) ** 2).sum(), rel=1e-9)
    assert fit.linear_target(sample) == pytest.approx(sample.score - 0.001 * np.log10(sample.r), rel=1e-12)
    weighted = np.column_stack([sample.weight, sample.weight * sample.p * sample.q])
    normed = weighted / np.linalg.norm(weighted, axis=0)
    assert fit.condition == pytest.approx(np.linalg.cond(normed), rel=0.5)


def test_the_source_names_the_coefficients_and_groups_sums(sample: Sample) -> None:
    assert fit_of(sample, "1", "p", "p + q", offset="r - p").source == "k0 + k1*p + k2*(p + q) + (r - p)"
    assert fit_of(sample, "p/q", offset="-r").source == "k0*p/q + (-r)"
    assert fit_of(sample, "-p", offset="q*r").source == "k0*(-p) + q*r"


def test_ratios_are_between_the_terms_that_vary(sample: Sample) -> None:
    fit = fit_of(sample, "1", "p", "p*q")
    assert (fit.base, fit.last) == (1, 2)
    assert (fit_of(sample, "1").base, fit_of(sample, "1").last) == (0, 0)
    bent = dataclasses.replace(fit, terms=(*fit.terms[:2], dataclasses.replace(fit.terms[2], linear=False)))
    assert (bent.base, bent.last) == (1, 1)


def test_without_linear_terms_the_formula_is_the_rest(sample: Sample) -> None:
    fit = dataclasses.replace(fit_of(sample, "p"), terms=(Term("inside", "k0", "?", linear=False),), offset="q*r")
    assert fit.text == "q*r"
    assert not fit.is_linear


@pytest.mark.parametrize("exponent", [0.8, -1.5, 1e-5])
def test_the_slope_in_a_coefficient_is_the_derivative(sample: Sample, exponent: float) -> None:
    terms = (Term.of(f"p**{exponent}*q", "a"), Term("inside", "b", "?", linear=False))
    fit = dataclasses.replace(
        fit_of(sample, "p", "q"), source="a*p**b*q", terms=terms, coefficients=np.array([3e-4, exponent])
    )
    value = sample.p**exponent * sample.q
    expected = np.column_stack([value, 3e-4 * value * np.log(sample.p)])
    # A central difference with the step cbrt(eps) has an error of about eps^(2/3), 4e-11, times what it is taken of.
    assert np.abs(fit.design(sample) - expected).max(axis=0) == pytest.approx([0, 0], abs=3e-8 * np.abs(expected).max())
    residual = sample.score - sample.values(fit.expression)
    assert fit.linear_target(sample) == pytest.approx(residual + fit.design(sample) @ fit.coefficients, rel=1e-12)


@pytest.mark.parametrize("inside", [500.0, 1e-5, -1e-5])
def test_the_step_of_a_slope_fits_the_size_of_the_coefficient(sample: Sample, inside: float) -> None:
    terms = (Term.of(f"log10(p + {inside})", "a"), Term("inside", "b", "?", linear=False))
    fit = dataclasses.replace(
        fit_of(sample, "p", "q"), source="a*log10(p + b)", terms=terms, coefficients=np.array([2.0, inside])
    )
    expected = 2 / (np.log(10) * (sample.p + inside))
    # Steps that are a thousand times too small lose all but four digits in the difference.
    assert np.abs(fit.design(sample)[:, 1] - expected).max() < 2e-6 * expected.max()
