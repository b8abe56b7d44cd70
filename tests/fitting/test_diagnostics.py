"""Every warning has a fit that earns it, and one that does not."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from policyfactory.fitting import model
from policyfactory.fitting.bootstrap import bootstrap
from policyfactory.fitting.forms import FormsResult, fit_user_form
from policyfactory.fitting.model import Fitted, agreement, diagnose, order_share, slopes
from policyfactory.fitting.regression import Fit, infer
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.policy.expression import parse
from policyfactory.trials.table import ScoreTable
from snapshots import snapshot


def warnings(fit: Fit, sample: Sample) -> str:
    return "\n".join(diagnose(fit, sample, infer(fit, sample)).warnings)


def test_f1_on_the_published_table_has_a_term_in_place_of_a_constant(sc17: Sample, sc17_forms: FormsResult) -> None:
    # With a constant the coefficient of log10(r) is negative: the term is there for the level 1/32 of the scores.
    result = warnings(sc17_forms.fits[0], sc17).splitlines()
    assert len(result) == 2
    snapshot(result[0], result[1])
    with_constant = fit_user_form(sc17, "a*log10(p)*q + b*log10(r) + c")
    assert with_constant.coefficients[0] > 0 > with_constant.coefficients[1]
    assert with_constant.mae < sc17_forms.fits[0].mae


def test_where_a_form_has_a_level_no_term_stands_in_for_it(made) -> None:  # type: ignore[no-untyped-def]
    # Without any level a*p has to climb to it; with a constant it falls.
    sample = prepare(made(lambda p, q, r: 0.03 - 1e-7 * p))
    snapshot(warnings(fit_user_form(sample, "a*p"), sample))
    for form in ("a*p + 0.000001", "a*p + b", "a*p**b"):
        assert "stands in for" not in warnings(fit_user_form(sample, form, starts=2), sample), form


def test_several_terms_in_place_of_a_constant_are_said_to_be_several(sc17: Sample) -> None:
    assert (
        "the form has no constant, so p, q and p*q stand in for one: fitted with a constant, their coefficients have"
        in warnings(fit_user_form(sc17, "a*p + b*q + c*p*q"), sc17)
    )


def test_a_formula_that_is_the_truth_has_nothing_against_it(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-7 * p + 1e-4 * q + 2e-7 * r, noise=1e-4))
    assert warnings(fit_user_form(sample, "a*p + b*q + c*r"), sample) == ""


def test_the_quartic_has_inflated_ill_conditioned_and_unstable_coefficients(
    sc17: Sample, sc17_polynomials: tuple[Fit, ...]
) -> None:
    quartic = sc17_polynomials[3]
    candidate = bootstrap([quartic], sc17, replicates=100, seed=1).candidates[0]
    result = "\n".join(Fitted(quartic, sc17, candidate).diagnosis.warnings)
    assert "variance inflation above 10 for 18 of 19 terms" in result
    assert "largest 1.086e+04, q**3" in result
    assert "ill-conditioned: condition number 2.9e+03" in result
    assert "sign not certain" in result
    assert "not monotone: the formula falls as q grows" in result


def test_lin_lets_later_jobs_overtake(sc17: Sample, sc17_polynomials: tuple[Fit, ...]) -> None:
    lin = sc17_polynomials[0]
    result = slopes(lin.expression, sc17)
    assert result == {"p": 0.0, "q": 0.0, "r": 1.0}
    snapshot(warnings(lin, sc17))


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
    result = list(slopes(parse(formula), sc17).values())
    # log10(p) is 0 at p = 1: there 1/q does not count, so the share is a little below 1.
    assert result == pytest.approx(falling, abs=0.06)


def test_half_a_range_counts_as_half(made) -> None:  # type: ignore[no-untyped-def]
    # p is log-uniform on 1 to 1e5, so (log10(p) - 2.5)^2 falls over the first half of its quantiles.
    sample = prepare(made(lambda p, q, r: 0 * p + 0.5, tuples=200))
    result = slopes(parse("(log10(p) - 2.5)**2 + q + r"), sample)
    assert result["p"] == pytest.approx(0.5, abs=0.06)


def test_agreement_counts_pairs_by_hand(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0 * p + 0.5, tuples=2, size=3))
    first = np.array([1.0, 2.0, 3.0, 1.0, 1.0, 2.0])
    second = np.array([1.0, 3.0, 2.0, 5.0, 1.0, 1.0])
    # Tuple 1: (1,2) same, (1,3) same, (2,3) other: 2 of 3. Tuple 2: (1,2) tied by the first, not counted; (1,3) is
    # ordered the other way, (2,3) is tied by the second and counts one half: 0.5 of 2.
    assert agreement(first, second, sample) == pytest.approx(2.5 / 5)
    assert agreement(first, first, sample) == 1
    assert agreement(first, -first, sample) == 0
    assert np.isnan(agreement(np.ones(6), second, sample)), "nothing is ordered"


def test_the_pairs_of_all_tuples_are_counted(made, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(model, "_PAIR_ROWS", 7)
    table = made(lambda p, q, r: 0 * p + 0.5, tuples=600, size=4)
    sample = prepare(table.select(np.delete(np.arange(2400), [5, 6, 11])))  # of different sizes
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 4, (2, len(sample))).astype(float)
    same = counted = 0.0
    for number in range(sample.tuples):
        rows = np.flatnonzero(sample.tuple_of == number)
        for a, b in itertools.combinations(rows, 2):
            counted += first[a] != first[b]
            same += (first[a] != first[b]) * (1 + np.sign(first[a] - first[b]) * np.sign(second[a] - second[b])) / 2
    assert agreement(first, second, sample) == pytest.approx(same / counted)


def test_a_term_that_orders_alone_is_reported(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-12 * p * q + 0.1 * np.log10(r)))
    result = warnings(fit_user_form(sample, "a*p*q + b*log10(r)"), sample)
    snapshot(result)
    balanced = prepare(made(lambda p, q, r: 3e-3 * np.log10(p) + 3e-3 * np.log10(r)))
    assert "alone orders" not in warnings(fit_user_form(balanced, "a*log10(p) + b*log10(r) + c*q"), balanced)


def test_an_uncertain_minimum_is_reported(made) -> None:  # type: ignore[no-untyped-def]
    # Nothing but noise: the exponent is arbitrary.
    sample = prepare(made(lambda p, q, r: 0 * p + 0.03, noise=0.01, tuples=6))
    fit = fit_user_form(sample, "a*p**b*q**c*r**d", starts=3)
    assert fit.converged or "the minimum is uncertain" in warnings(fit, sample)


def test_a_stable_sign_is_not_warned_of(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-8 * p * q + 0.004 * np.log10(r), noise=1e-3))
    fit = fit_user_form(sample, "a*p*q + b*log10(r)")
    candidate = bootstrap([fit], sample, replicates=50, seed=1).candidates[0]
    assert candidate.other_sign() == {"a (p*q)": 0.0, "b (log10(r))": 0.0}
    assert "sign" not in "\n".join(Fitted(fit, sample, candidate).diagnosis.warnings)


# Each limit, from both sides. ----------------------------------------------------------------------------------------


def queues(*jobs: list[tuple[float, float, float]]) -> Sample:
    """Return tuples of (p, q, score) as a sample; all jobs are submitted at 1."""
    p, q, score = np.array([job for queue in jobs for job in queue]).T
    number = np.repeat(np.arange(len(jobs)), [len(queue) for queue in jobs])
    return prepare(ScoreTable(p, q, np.ones(len(p)), score, np.full(len(p), np.nan), number))


def swapped(swaps: int) -> list[tuple[float, float, float]]:
    """Return five jobs of which so many pairs have the scores the other way round than the run times."""
    order = [0, 1, 2, 3, 4]
    while swaps:
        at = next(at for at in range(4) if order[at] < order[at + 1])
        order[at], order[at + 1] = order[at + 1], order[at]
        swaps -= 1
    return [(1.0 + at, 1.0, (1 + score) / 16) for at, score in enumerate(order)]


@pytest.fixture(scope="module")
def sound(made):  # type: ignore[no-untyped-def]
    """A fit without any warning: fit, sample, inference."""
    sample = prepare(made(lambda p, q, r: 1e-7 * p + 1e-4 * q + 2e-7 * r, noise=1e-4))
    fit = fit_user_form(sample, "a*p + b*q + c*r")
    return fit, sample, infer(fit, sample)


@pytest.mark.parametrize(
    ("vif", "weighted", "said"),
    [
        ((1, 9.5, 1), (1, 1, 9.5), []),
        ((1, 10, 1), (1, 1, 10), []),
        ((1, 10.5, 1), (1, 1, 1), ["variance inflation above 10 for 1 of 3 terms (largest 10.5, q)"]),
        ((12, np.nan, np.inf), (1, 1, 1), ["variance inflation above 10 for 2 of 3 terms (largest 1.798e+308, r)"]),
        ((np.nan, 1, 1), (10.5, 1, 11), ["inflation above 10 of the weighted rows for 2 of 3 terms (largest 11, r)"]),
    ],
)
def test_inflation_is_reported_above_ten(sound, vif, weighted, said: list[str]) -> None:  # type: ignore[no-untyped-def]
    fit, sample, inference = sound
    changed = dataclasses.replace(inference, vif=np.array(vif), vif_weighted=np.array(weighted))
    result = diagnose(fit, sample, changed).warnings
    assert len(result) == len(said)
    assert all(text in line for text, line in zip(said, result, strict=True))


def test_the_inflation_of_the_constant_is_not_reported(made) -> None:  # type: ignore[no-untyped-def]
    # It says only that the scores have a level; the order of a queue does not depend on it.
    sample = prepare(made(lambda p, q, r: 0.01 + 1e-7 * p + 1e-4 * q + 2e-7 * r, noise=1e-4))
    fit = fit_user_form(sample, "z + a*p + b*q + c*r")
    place = [term.text for term in fit.terms].index("1") if "1" in [term.text for term in fit.terms] else None
    inference = infer(fit, sample)
    factors = np.ones(len(fit.terms))
    if place is not None:
        factors[place] = 1000.0
    assert not diagnose(fit, sample, dataclasses.replace(inference, vif_weighted=factors)).warnings


@pytest.mark.parametrize(("condition", "reported"), [(29.5, False), (30.0, False), (30.5, True)])
def test_a_condition_is_reported_above_thirty(sound, condition: float, reported: bool) -> None:  # type: ignore[no-untyped-def]
    fit, sample, inference = sound
    result = diagnose(dataclasses.replace(fit, condition=condition), sample, inference).warnings
    assert any(f"ill-conditioned: condition number {condition}" in line for line in result) == reported
    assert len(result) == reported


def test_uncertain_signs_are_reported_worst_first(sound) -> None:  # type: ignore[no-untyped-def]
    fit, sample, inference = sound
    assert not diagnose(fit, sample, inference, {"a": 0.025, "b": 0.0}).warnings
    (one,) = diagnose(fit, sample, inference, {"a": 0.026}).warnings
    snapshot(one, part="1")
    (three,) = diagnose(fit, sample, inference, {"a": 0.1, "b": 0.4, "c": 0.3}).warnings
    snapshot(three, part="2")
    (four,) = diagnose(fit, sample, inference, {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.2}).warnings
    snapshot(four, part="3")


@pytest.mark.parametrize(("swaps", "share"), [((4, 5), 0.55), ((4, 6), 0.5), ((10, 10), 0.0)])
def test_an_order_is_reported_below_55_percent(swaps: tuple[int, int], share: float) -> None:
    sample = queues(*map(swapped, swaps))
    fit = fit_user_form(sample, "a*p")
    assert order_share(fit, sample) == share
    reported = f"orders only {share:.0%} of the pairs" in warnings(fit, sample)
    assert reported == (share < 0.55)


@pytest.mark.parametrize(("flips", "reported"), [(1, True), (2, False)])
def test_a_term_that_orders_98_percent_alone_is_reported(flips: int, reported: bool) -> None:
    # Five queues of five jobs are 50 pairs. p + 1.5*q orders a queue as p does, but for one pair where the
    # shortest job has q = 2 and the others have 1.
    plain = [(1.0 + at, 1.0, (2.5 + at) / 32) for at in range(5)]
    flipped = [(1.0, 2.0, 4.0 / 32), *plain[1:]]
    sample = queues(*[flipped] * flips, *[plain] * (5 - flips))
    fit = fit_user_form(sample, "a*p + b*q")
    assert fit.coefficients[1] / fit.coefficients[0] == pytest.approx(1.5)
    diagnosis = diagnose(fit, sample, infer(fit, sample))
    assert diagnosis.dominance["p"] == pytest.approx(1 - flips / 50)
    assert any("the term p alone orders 98.0%" in line for line in diagnosis.warnings) == reported


def test_one_term_has_nothing_to_dominate() -> None:
    sample = queues(swapped(0), swapped(1))
    for form in ("a*p", "a*p + b"):
        fit = fit_user_form(sample, form)
        assert diagnose(fit, sample, infer(fit, sample)).dominance == {}


def test_the_grid_has_21_quantiles_and_a_tiny_fall_is_none() -> None:
    jobs = [(float(p), 1.0 + p % 2, 0.01) for p in range(1, 102)]
    sample = queues(jobs[:51], jobs[51:])
    # The quantiles of 1, 2, ..., 101 are 1, 6, 11, ...: one of twenty steps falls.
    assert list(slopes(parse("abs(p - 6)"), sample).values()) == [0.05, 0.0, 0.0]
    assert slopes(parse("p - 1e-8*q"), sample)["q"] == 0.0
    assert slopes(parse("p - 1e-6*q"), sample)["q"] == 1.0
    assert list(slopes(parse("p - p"), sample).values()) == [0.0, 0.0, 0.0]


def test_pairs_are_counted_in_every_queue() -> None:
    pair = [(1.0, 1.0, 0.4), (2.0, 1.0, 0.6)]
    sample = queues(*[pair] * 502)
    first = np.tile([1.0, 2.0], 502)
    second = first.copy()
    second[2 * 499 : 2 * 499 + 2] = [2.0, 1.0]
    second[2 * 500 :] = 0.0
    assert agreement(first, second, sample) == (499 + 2 / 2) / 502
