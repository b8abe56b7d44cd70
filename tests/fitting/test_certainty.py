"""How many tuples are needed: sets, shares and the verdict, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from naive.fit import refit as naive_refit
from policyfactory.fitting import bootstrap as module
from policyfactory.fitting.bootstrap import Certainty, certainty_csv, ladder, measure_certainty
from policyfactory.fitting.forms import fit_user_form
from policyfactory.fitting.regression import Fit
from policyfactory.fitting.sample import Sample, prepare


@pytest.fixture(scope="module")
def sample(made) -> Sample:  # type: ignore[no-untyped-def]
    return prepare(made(lambda p, q, r: 0.02 - 2e-10 * p * q + 0.005 * np.log10(r), noise=1e-3, tuples=30, size=6))


@pytest.fixture(scope="module")
def fits(sample: Sample) -> list[Fit]:
    return [fit_user_form(sample, "z + a*p*q + b*log10(r)", name="truth"), fit_user_form(sample, "a*p + b", name="p")]


def test_the_ladder_stops_where_the_next_step_is_near_the_whole() -> None:
    # A step is left out if all tuples are at most 1.3 times as many.
    assert ladder(32).tolist() == [32]
    assert ladder(33).tolist() == [25, 33]
    assert ladder(65).tolist() == [25, 65]
    assert ladder(66).tolist() == [25, 50, 66]


def of(first: list[float], fits: list[Fit]) -> Certainty:
    shares = np.array([first, [1 - share for share in first]])
    sizes = np.array([25, 50, 100, 200][: len(first)])
    ratio = np.arange(2.0 * len(first) * 3).reshape(2, len(first), 3)
    disjoint = np.full(shares.shape, np.nan)
    disjoint[:, 0] = [0.125, 0.875]
    return Certainty(tuple(fits), sizes, shares, shares / 100, ratio, disjoint, 40, 1)


@pytest.mark.parametrize(
    ("first", "size"),
    [
        ([0.96, 0.97, 0.99, 1.0], 25),
        ([0.99, 0.94, 0.95, 0.99], 100),
        ([0.2, 0.3, 0.4, 0.95], 200),
        ([0.99, 0.99, 0.99, 0.949], None),
    ],
)
def test_certain_means_95_percent_from_a_size_on(fits: list[Fit], first: list[float], size: int | None) -> None:
    assert of(first, fits).certain_from() == size


def test_the_numbers_as_csv(fits: list[Fit]) -> None:
    assert certainty_csv(of([0.25, 1.0], fits)) == (
        "tuples,form,first,first_disjoint,mae_median,ratio_low,ratio_median,ratio_high\n"
        "25,truth,0.25,0.125,0.0025,0,1,2\n"
        "25,p,0.75,0.875,0.0075,6,7,8\n"
        "50,truth,1,,0.01,3,4,5\n"
        "50,p,0,,0,9,10,11\n"
    )


def test_disjoint_sets_share_no_tuple() -> None:
    order = np.random.default_rng(1).permutation(203)
    sets = module._disjoint(order, 25)
    assert sets.shape == (203, 8)
    assert (sets.sum(axis=0) == 25).all()
    assert (sets.sum(axis=1) <= 1).all()
    assert module._disjoint(order[:199], 25).shape == (199, 0), "seven sets are too few"
    # Sets are drawn from the shuffled order, not from the table's.
    assert not sets[:25, 0].all()


def test_the_share_in_which_each_is_smallest() -> None:
    errors = np.array([[3.0, 1.0, 2.0, 2.0], [1.0, 2.0, 3.0, 2.0], [9.0, 9.0, 9.0, 9.0]])
    # Of equals the first counts.
    assert module._share_first(errors).tolist() == [0.75, 0.25, 0.0]
    assert np.isnan(module._share_first(np.empty((3, 0)))).all()


def test_draws_and_ratios_are_those_of_refits_row_by_row(sample: Sample, fits: list[Fit]) -> None:
    steps: list[int] = []
    result = measure_certainty(fits, sample, replicates=9, seed=4, advance=lambda: steps.append(1))
    assert result.sizes.tolist() == [30]
    assert (len(steps), result.replicates, result.seed, result.fits) == (2, 9, 4, tuple(fits))
    draws = module.generator(4, module._CERTAINTY_STREAM).integers(0, 30, (9, 30))
    errors, ratios = np.empty((2, 9)), np.empty(9)
    for position, fit in enumerate(fits):
        for number, row in enumerate(draws):
            coefficients, errors[position, number] = naive_refit(
                fit.design(sample), sample.score, sample.weight, sample.tuple_of, row.tolist()
            )
            if not position:
                ratios[number] = coefficients[fit.last] / abs(coefficients[fit.base])
    assert result.mae[:, 0] == pytest.approx(np.median(errors, axis=1), rel=1e-8)
    assert result.first[:, 0] == pytest.approx(np.bincount(errors.argmin(axis=0), minlength=2) / 9)
    assert result.ratio[0, 0] == pytest.approx(np.quantile(ratios, (0.025, 0.5, 0.975)), rel=1e-5)
    assert np.isnan(result.disjoint).all()


def test_small_sets_are_those_of_the_larger_and_their_errors_are_of_their_own_rows(
    sample: Sample, fits: list[Fit], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Steps of 3, 6, 12, 30 tuples: the small ones are computed in groups, and 10 disjoint sets of 3 are enough.
    monkeypatch.setattr(module, "_SMALLEST", 3)
    result = measure_certainty(fits, sample, replicates=9, seed=4)
    assert result.sizes.tolist() == [3, 6, 12, 30]
    rng = module.generator(4, module._CERTAINTY_STREAM)
    draws, order = rng.integers(0, 30, (9, 30)), rng.permutation(30)
    for step, size in enumerate([3, 6, 12, 30]):
        errors = [
            [
                naive_refit(fit.design(sample), sample.score, sample.weight, sample.tuple_of, row[:size].tolist())[1]
                for row in draws
            ]
            for fit in fits
        ]
        assert result.mae[:, step] == pytest.approx(np.median(errors, axis=1), rel=1e-6)
    apart = [
        [
            naive_refit(fit.design(sample), sample.score, sample.weight, sample.tuple_of, part.tolist())[1]
            for part in order.reshape(10, 3)
        ]
        for fit in fits
    ]
    assert result.disjoint[:, 0] == pytest.approx(np.bincount(np.argmin(apart, axis=0), minlength=2) / 10)
    assert np.isnan(result.disjoint[:, 1:]).all()


def test_the_ratio_is_over_the_size_of_the_first_varying_coefficient(made) -> None:  # type: ignore[no-untyped-def]
    exact = prepare(made(lambda p, q, r: 0.02 - 2e-10 * p * q + 0.005 * np.log10(r), tuples=10))
    fit = fit_user_form(exact, "z + a*p*q + b*log10(r)")
    result = measure_certainty([fit], exact, replicates=3, seed=1)
    assert result.ratio[0, 0] == pytest.approx(np.full(3, 0.005 / 2e-10), rel=1e-6)
