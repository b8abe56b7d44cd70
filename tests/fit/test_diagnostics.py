"""Every warning has a fit that earns it, and one that does not."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.fit.bootstrap import bootstrap
from policyfactory.fit.diagnostics import agreement, diagnose, slopes
from policyfactory.fit.forms import fit_all_forms
from policyfactory.fit.inference import infer
from policyfactory.fit.model import examine
from policyfactory.fit.polynomials import fit_all_polynomials
from policyfactory.fit.result import Fit
from policyfactory.fit.sample import Sample, prepare
from policyfactory.fit.userform import fit_user_form
from policyfactory.policy.expression import parse


def warnings(fit: Fit, sample: Sample) -> str:
    return "\n".join(diagnose(fit, sample, infer(fit, sample)).warnings)


def test_f1_on_the_published_table_has_a_term_in_place_of_a_constant(sc17: Sample) -> None:
    # With a constant the coefficient of log10(r) is negative: the term is there for the level 1/32 of the scores.
    found = warnings(fit_all_forms(sc17).fits[0], sc17).splitlines()
    assert len(found) == 2
    assert "no constant, so log10(r) stands in for the level" in found[0]
    assert "orders only 27% of the pairs" in found[1]
    with_constant = fit_user_form(sc17, "a*log10(p)*q + b*log10(r) + c")
    assert with_constant.coefficients[0] > 0 > with_constant.coefficients[1]
    assert with_constant.mae < fit_all_forms(sc17).fits[0].mae


def test_a_formula_that_is_the_truth_has_nothing_against_it(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-7 * p + 1e-4 * q + 2e-7 * r, noise=1e-4))
    assert warnings(fit_user_form(sample, "a*p + b*q + c*r"), sample) == ""


def test_the_quartic_has_inflated_ill_conditioned_and_unstable_coefficients(sc17: Sample) -> None:
    quartic = fit_all_polynomials(sc17)[3]
    candidate = bootstrap([quartic], sc17, replicates=100, seed=1).candidates[0]
    found = "\n".join(examine(quartic, sc17, candidate).diagnosis.warnings)
    assert "variance inflation above 10 for 18 of 19 terms" in found
    assert "largest 1.086e+04, q**3" in found
    assert "ill-conditioned: condition number 2.9e+03" in found
    assert "sign not certain" in found
    assert "not monotone: the formula falls as q grows" in found


def test_lin_lets_later_jobs_overtake(sc17: Sample) -> None:
    lin = fit_all_polynomials(sc17)[0]
    found = {slope.variable: slope.falling for slope in slopes(lin.expression, sc17)}
    assert found == {"p": 0.0, "q": 0.0, "r": 1.0}
    assert "a later job overtakes an equal earlier one" in warnings(lin, sc17)


@pytest.mark.parametrize(
    ("formula", "falling"),
    [
        ("p*q + r", (0, 0, 0)),
        ("-p + q + r", (1, 0, 0)),
        ("log10(p)/q", (0, 1, 0)),
        ("p + 5*q - r", (0, 0, 1)),
        ("q", (0, 0, 0)),
        ("-p*q*r", (1, 1, 1)),
    ],
)
def test_where_a_formula_falls(sc17: Sample, formula: str, falling: tuple[float, ...]) -> None:
    found = [slope.falling for slope in slopes(parse(formula), sc17)]
    # log10(p) is 0 at p = 1: there 1/q does not count, so the share is a little below 1.
    assert found == pytest.approx(falling, abs=0.06)


def test_half_a_range_counts_as_half(made) -> None:  # type: ignore[no-untyped-def]
    # p is log-uniform on 1 to 1e5, so (log10(p) - 2.5)^2 falls over the first half of its quantiles.
    sample = prepare(made(lambda p, q, r: 0 * p + 0.5, tuples=200))
    found = slopes(parse("(log10(p) - 2.5)**2 + q + r"), sample)
    assert found[0].falling == pytest.approx(0.5, abs=0.06)


def test_agreement_counts_pairs_by_hand(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0 * p + 0.5, tuples=2, size=3))
    first = np.array([1.0, 2.0, 3.0, 1.0, 1.0, 2.0])
    second = np.array([1.0, 3.0, 2.0, 5.0, 1.0, 1.0])
    # Tuple 1: (1,2) same, (1,3) same, (2,3) other: 2 of 3. Tuple 2: (1,2) tied by the first, not counted; (1,3) is
    # ordered the other way, (2,3) is tied by the second and counts one half: 0.5 of 2.
    assert agreement(first, second, sample) == pytest.approx(2.5 / 5)
    assert agreement(first, first, sample) == 1
    assert agreement(first, -first, sample) == 0
    assert agreement(np.ones(6), second, sample) == 1, "nothing is ordered, so nothing is ordered otherwise"


def test_a_term_that_orders_alone_is_told(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-12 * p * q + 0.1 * np.log10(r)))
    found = warnings(fit_user_form(sample, "a*p*q + b*log10(r)"), sample)
    assert "the term log10(r) alone orders" in found
    balanced = prepare(made(lambda p, q, r: 3e-3 * np.log10(p) + 3e-3 * np.log10(r)))
    assert "alone orders" not in warnings(fit_user_form(balanced, "a*log10(p) + b*log10(r) + c*q"), balanced)


def test_an_uncertain_minimum_is_told(made) -> None:  # type: ignore[no-untyped-def]
    # Nothing but noise: the exponent is arbitrary.
    sample = prepare(made(lambda p, q, r: 0 * p + 0.03, noise=0.01, tuples=6))
    fit = fit_user_form(sample, "a*p**b*q**c*r**d", starts=3)
    assert fit.converged or "the minimum is uncertain" in warnings(fit, sample)


def test_a_stable_sign_is_not_warned_of(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-8 * p * q + 0.004 * np.log10(r), noise=1e-3))
    fit = fit_user_form(sample, "a*p*q + b*log10(r)")
    candidate = bootstrap([fit], sample, replicates=50, seed=1).candidates[0]
    assert candidate.other_sign() == {"a (p*q)": 0.0, "b (log10(r))": 0.0}
    assert "sign" not in "\n".join(examine(fit, sample, candidate).diagnosis.warnings)
