"""Resampling tuples: equal to doing it row by row, honest coverage, honest hold-out."""

from __future__ import annotations

import dataclasses
from typing import cast

import numpy as np
import pytest

from naive.fit import refit as naive_refit
from policyfactory.fitting import bootstrap as resample
from policyfactory.fitting.bootstrap import (
    Refit,
    ResampledFit,
    bootstrap,
    draw_counts,
    interval,
    ladder,
    measure_certainty,
    refit,
)
from policyfactory.fitting.forms import FormsResult, fit_all_forms, fit_all_polynomials, fit_user_form
from policyfactory.fitting.regression import Fit
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.trials.table import ScoreTable


@pytest.fixture(scope="module")
def uneven(sc17_table: ScoreTable) -> Sample:
    """Twenty tuples of different sizes, in mixed order."""
    rng = np.random.default_rng(7)
    rows = np.sort(rng.choice(20 * 32, 500, replace=False))
    return prepare(sc17_table.select(rng.permutation(rows)))


@pytest.fixture(scope="module")
def uneven_fits(uneven: Sample) -> list[Fit]:
    return [*fit_all_forms(uneven).fits[:3], *fit_all_polynomials(uneven)[0][:2]]


@pytest.mark.parametrize("block", [1, 1 << 10, 1 << 16])
def test_a_refit_is_the_fit_of_the_copied_rows(
    uneven: Sample, uneven_fits: list[Fit], monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(resample, "_BLOCK", block)
    drawn = np.random.default_rng(8).integers(0, uneven.tuples, (6, uneven.tuples))
    counts = np.stack([np.bincount(row, minlength=uneven.tuples) for row in drawn], axis=1)
    for fit in uneven_fits:
        prepared = refit(fit, uneven)
        solutions = prepared.solve(counts)
        coefficients = prepared.coefficients(solutions)
        errors = prepared.absolute_errors(solutions, counts)
        for number, row in enumerate(drawn):
            expected, mae = naive_refit(fit.design(uneven), uneven.score, uneven.weight, uneven.tuple_of, row.tolist())
            assert coefficients[:, number] == pytest.approx(expected, rel=1e-6)
            assert errors[number] == pytest.approx(mae, rel=1e-8)


def test_all_tuples_once_is_the_fit_itself(
    sc17: Sample, sc17_forms: FormsResult, sc17_polynomials: tuple[Fit, ...], sc17_power: Fit
) -> None:
    fits = [sc17_forms.fits[0], sc17_polynomials[5], sc17_power]
    once = np.ones((sc17.tuples, 1), dtype=np.int64)
    for fit in fits:
        prepared = refit(fit, sc17)
        solutions = prepared.solve(once)
        # The sextic's condition number is 1.5e5.
        assert prepared.coefficients(solutions)[:, 0] == pytest.approx(fit.coefficients, rel=1e-6)
        assert prepared.absolute_errors(solutions, once)[0] == pytest.approx(fit.mae, rel=1e-9)


def test_a_form_with_an_offset_is_refitted_with_it(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-9 * p * q + 0.005 * np.log10(r), tuples=10))
    candidate = bootstrap([fit_user_form(sample, "1e-9*p*q + a*log10(r)")], sample, replicates=5, seed=1).candidates[0]
    assert candidate.coefficients == pytest.approx(np.full((1, 5), 0.005), rel=1e-9)
    assert candidate.mae.max() < 1e-12
    assert candidate.held_out < 1e-12


def test_draws_are_of_tuples_with_replacement() -> None:
    counts = draw_counts(50, 400, seed=3)
    assert counts.shape == (50, 400)
    assert (counts.sum(axis=0) == 50).all()
    # A tuple is missing from a replicate with probability (1 - 1/50)^50 = 0.364; the standard deviation of this share
    # over 20,000 (nearly independent) cells is 0.0034: six of them, a chance of 1e-9.
    assert np.mean(counts == 0) == pytest.approx(0.98**50, abs=0.02)
    assert np.array_equal(counts, draw_counts(50, 400, seed=3))
    assert not np.array_equal(counts, draw_counts(50, 400, seed=4))


def test_ranks_and_shares(sc17: Sample, sc17_forms: FormsResult) -> None:
    result = bootstrap(sc17_forms.fits[:8], sc17, replicates=100, seed=1)
    ranks = np.stack([candidate.rank for candidate in result.candidates])
    assert np.array_equal(np.sort(ranks, axis=0), np.repeat(np.arange(1, 9)[:, None], 100, axis=1))
    assert sum(candidate.first for candidate in result.candidates) == pytest.approx(1)
    errors = np.stack([candidate.mae for candidate in result.candidates])
    assert np.array_equal(errors.argmin(axis=0), ranks.argmin(axis=0))


def test_the_published_order_is_not_certain(sc17: Sample, sc17_forms: FormsResult) -> None:
    # With 216 tuples the first five forms change places: F1 is first in about a quarter of the resamplings.
    result = bootstrap(sc17_forms.fits, sc17, replicates=100, seed=1)
    shares = [candidate.first for candidate in result.candidates]
    # Binomial standard deviation at 0.25 and 100 replicates: 0.04.
    assert 0.1 < shares[0] < 0.4
    assert sum(share > 0 for share in shares) >= 5


def test_the_interval_covers_the_truth(made) -> None:  # type: ignore[no-untyped-def]
    # 60 tables of 40 tuples each; a 95 % percentile interval with 40 units covers about 92 %. Fewer than 46 of 60 have
    # a chance below 1e-4 under 92 %, and an interval of the job instead of the tuple would cover about half.
    covered = 0
    for seed in range(60):
        sample = prepare(made(lambda p, q, r: 1e-8 * p * q + 0.004 * np.log10(r), noise=2e-3, tuples=40, seed=seed))
        fit = fit_user_form(sample, "a*p*q + b*log10(r)")
        low, high = interval(bootstrap([fit], sample, replicates=100, seed=seed).candidates[0].coefficients[1])
        covered += low <= 0.004 <= high
    assert covered >= 46


def test_held_out_errors_are_on_tuples_that_were_not_fitted(uneven: Sample, uneven_fits: list[Fit]) -> None:
    # As scikit-learn's GroupKFold, which puts equal ones in an order of its own before 1.7: the largest tuple first, of
    # equal ones the last, each to the part with the fewest rows.
    sizes = np.bincount(uneven.tuple_of).tolist()
    parts: list[list[int]] = [[] for _ in range(5)]
    for number in sorted(range(len(sizes)), key=lambda number: (sizes[number], number), reverse=True):
        min(parts, key=lambda part: sum(sizes[held] for held in part)).append(number)
    fit = uneven_fits[4]  # QDR
    design, total = fit.design(uneven), 0.0
    for part in parts:
        test = np.isin(uneven.tuple_of, part)
        kept = sorted(set(uneven.tuple_of[~test].tolist()))
        coefficients, _ = naive_refit(design, uneven.score, uneven.weight, uneven.tuple_of, kept)
        total += float(np.abs(design[test] @ coefficients - uneven.score[test]).sum())
    result = bootstrap([fit], uneven, replicates=0, seed=1).candidates[0]
    assert result.held_out == pytest.approx(total / len(uneven), rel=1e-7)
    assert result.coefficients.shape == (8, 0)
    assert np.isnan(result.first)


@pytest.mark.slow
def test_a_nonlinear_form_is_searched_anew_without_the_tuples_that_are_held_out(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 3e-8 * p**0.8 * q, noise=3e-3, tuples=10, size=6))
    form, total = "a*p**b*q", 0.0
    for part in resample._folds(sample).T == 1:
        fit = fit_user_form(sample.of_tuples(~part), form)
        held = sample.of_tuples(part)
        total += float(np.abs(held.values(fit.expression) - held.score).sum())
    result = bootstrap([fit_user_form(sample, form)], sample, replicates=0, seed=1).candidates[0]
    assert result.held_out == pytest.approx(total / len(sample), rel=1e-9)


def test_noise_shows_in_the_held_out_error_of_a_rich_form(made) -> None:  # type: ignore[no-untyped-def]
    # The truth is LIN; the sextic has 30 terms too many for 8 tuples.
    sample = prepare(made(lambda p, q, r: 0.03 + 1e-8 * p + 1e-5 * q + 1e-8 * r, noise=5e-3, tuples=8))
    polynomials = fit_all_polynomials(sample)[0]
    lin, sextic = (bootstrap([polynomials[k]], sample, replicates=0, seed=1).candidates[0] for k in (0, 5))
    assert sextic.held_out > 2 * lin.held_out


def test_the_noise_alone_is_the_error_of_the_true_formula(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0.5 + 0 * p, noise=0.01, tuples=200))
    assert sample.noise_mae == pytest.approx(np.abs(sample.score - 0.5).mean(), rel=0.03)


def test_fewer_than_five_tuples_have_no_held_out_error(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0.5 + 0 * p, noise=0.01, tuples=3))
    assert np.isnan(bootstrap(fit_all_polynomials(sample)[0][:1], sample, replicates=3, seed=1).candidates[0].held_out)


def test_the_ladder_doubles_up_to_all() -> None:
    assert ladder(216).tolist() == [25, 50, 100, 216]
    assert ladder(6000).tolist() == [25, 50, 100, 200, 400, 800, 1600, 3200, 6000]
    assert ladder(26).tolist() == [26]
    assert ladder(3).tolist() == [3]


def test_certainty_grows_with_the_tuples(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-8 * p * q + 0.004 * np.log10(r), noise=3e-3, tuples=400))
    fits = fit_all_forms(sample).fits[:6]
    assert fits[0].name == "p*q + log10(r)"
    result = measure_certainty(fits, sample, replicates=60, seed=1)
    assert result.sizes.tolist() == [25, 50, 100, 200, 400]
    assert result.first.sum(axis=0) == pytest.approx(np.ones(5))
    assert result.first[0, -1] >= result.first[0, 0]
    assert result.certain_from() in {25, 50, 100, 200, 400}
    width = result.ratio[0, :, 2] - result.ratio[0, :, 0]
    # Sixteen times the tuples: a quarter of the width; half is far away from chance.
    assert width[-1] < width[0] / 2
    assert (result.ratio[0, :, 0] <= 4e5).all()
    assert (result.ratio[0, :, 2] >= 4e5).all()
    # Disjoint tables: 16 of 25 tuples, 8 of 50, none of more.
    assert np.isfinite(result.disjoint[:, :2]).all()
    assert np.isnan(result.disjoint[:, 2:]).all()
    assert result.disjoint[:, :2].sum(axis=0) == pytest.approx([1, 1])


@pytest.mark.slow
def test_drawing_and_disjoint_tables_agree(made) -> None:  # type: ignore[no-untyped-def]
    # 64 disjoint tables of 25 against 200 drawn ones: standard deviation of the difference at 0.5 is 0.07; 0.3 is
    # more than four of them.
    sample = prepare(made(lambda p, q, r: 2e-9 * p * q + 0.004 * np.log10(r), noise=5e-3, tuples=1600))
    result = measure_certainty(fit_all_forms(sample).fits[:5], sample, replicates=200, seed=1)
    assert np.abs(result.first[:, 0] - result.disjoint[:, 0]).max() < 0.3


def test_nothing_is_certain_where_nothing_is_different(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0.03 + 0 * p, noise=0.01, tuples=50))
    result = measure_certainty(fit_all_forms(sample).fits[:10], sample, replicates=40, seed=1)
    assert result.certain_from() is None


def test_the_interval_is_the_central_95_percent() -> None:
    assert interval(np.arange(1001.0)) == pytest.approx((25, 975))
    assert interval(np.array([7.0])) == (7, 7)
    assert np.isnan(interval(np.empty(0))).all()


def test_shares_and_ratios_by_hand(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0.02 - 1e-10 * p * q + 0.005 * np.log10(r), tuples=5))
    fit = fit_user_form(sample, "z + a*p*q + b*log10(r)")
    place = {term.coefficient: at for at, term in enumerate(fit.terms)}
    drawn = np.empty((3, 4))
    drawn[place["z"]] = [-1, -1, -1, -1]
    drawn[place["a"]] = [-2, -4, 5, -10]
    drawn[place["b"]] = [1, 0, 10, -5]
    candidate = ResampledFit(fit, drawn, np.ones(4), np.array([1, 2, 1, 1]), 0.1)
    assert candidate.first == 0.75
    # The constant's sign is not told; a zero has not the sign of the fit either.
    assert candidate.other_sign() == {"a (p*q)": 0.25, "b (log10(r))": 0.5}
    assert candidate.ratios()[place["a"]].tolist() == [-1, -1, 1, -1]
    assert candidate.ratios()[place["b"]].tolist() == [0.5, 0, 2, -0.5]
    assert dataclasses.replace(candidate, coefficients=drawn[:, :0]).other_sign() == {}, "nothing was drawn"


def test_equal_errors_rank_in_the_order_given(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0.03 + 0 * p, noise=0.01, tuples=6))
    fits = [fit_user_form(sample, text) for text in ("a*p + b*q", "a*p + b*q", "a*p + b")]
    steps: list[int] = []
    result = bootstrap(fits, sample, replicates=8, seed=2, advance=lambda: steps.append(1))
    assert (result.candidates[1].rank == result.candidates[0].rank + 1).all()
    assert result.candidates[1].first == 0
    assert (len(steps), result.replicates, result.seed) == (3, 8, 2)


def test_five_tuples_have_a_held_out_error_each_left_out_once(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0.03 + 0 * p, noise=0.01, tuples=5, size=8))
    fit = fit_user_form(sample, "a*p + b")
    design, total = fit.design(sample), 0.0
    for left in range(5):
        out = sample.tuple_of == left
        coefficients, _ = naive_refit(
            design, sample.score, sample.weight, sample.tuple_of, sorted({0, 1, 2, 3, 4} - {left})
        )
        total += float(np.abs(design[out] @ coefficients - sample.score[out]).sum())
    candidate = bootstrap([fit], sample, replicates=1, seed=1).candidates[0]
    assert candidate.held_out == pytest.approx(total / len(sample), rel=1e-9)


def test_the_first_and_the_last_tuple_are_drawn_too() -> None:
    assert draw_counts(7, 30, seed=1).max(axis=1).min() > 0, "the first and the last tuple are drawn too"


def test_tuples_that_do_not_determine_the_form_get_the_solution_of_least_norm(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 1e-7 * p + 1e-4 * q + 0.01, noise=1e-3, tuples=6, size=2))
    fit = fit_user_form(sample, "a*p + b*q + c*r + d")
    prepared = refit(fit, sample)
    # Each tuple alone: two rows for four coefficients, so the rows are met. Beside them a replicate of everything.
    counts = np.column_stack([np.eye(6, dtype=np.int64), np.ones(6, dtype=np.int64)])
    solutions = prepared.solve(counts)
    assert prepared.absolute_errors(solutions, counts)[:6].max() < 1e-9
    assert prepared.coefficients(solutions)[:, 6] == pytest.approx(fit.coefficients, rel=1e-6)
    for tuple_ in range(6):
        rows = sample.tuple_of == tuple_
        weight = sample.weight[rows]
        matrix = prepared.basis[rows] * weight[:, None]
        # Where the two rows differ by far in weight, the lighter one is lost in the products of the heavier one.
        expected, *_ = np.linalg.lstsq(matrix, sample.score[rows] * weight, rcond=1e-7)
        assert np.linalg.norm(solutions[:, tuple_]) <= np.linalg.norm(expected) * 1.01


def test_what_rounding_alone_determines_gets_the_solution_of_least_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two terms; one tuple has next to nothing to say of the second, below the rounding of the first.
    right = np.array([[1.0, 1.0], [1.0, 1.0]])
    gram = np.array([np.diag([1.0, 3e-16]), np.diag([1.0, 0.5])])
    columns = (np.empty((0, 2)), np.eye(2), gram, right, np.empty(0))
    prepared = Refit(*columns, sample=cast(Sample, None))
    result = prepared.solve(np.array([[1, 0, 3], [0, 2, 1]]))
    assert result == pytest.approx(np.array([[1, 1, 1], [0, 2, 8]]), rel=1e-12)
    monkeypatch.setattr(np.linalg, "lstsq", lambda *_, **__: pytest.fail("for those that are not determined only"))
    assert prepared.solve(np.array([[0, 3], [2, 1]])) == pytest.approx(np.array([[1, 1], [2, 8]]), rel=1e-12)


def test_ranks_begin_at_one_and_parts_at_five_tuples(made) -> None:  # type: ignore[no-untyped-def]
    sample = prepare(made(lambda p, q, r: 0.01 + 1e-5 * q, noise=1e-3, tuples=5))
    fits = [fit_user_form(sample, form) for form in ("a*q + b", "a*p + b", "a*r")]
    candidates = bootstrap(fits, sample, replicates=20, seed=1).candidates
    ranks = np.stack([candidate.rank for candidate in candidates])
    assert (np.sort(ranks, axis=0) == [[1], [2], [3]]).all()
    assert [np.isfinite(candidate.held_out) for candidate in candidates] == [True] * 3
    few = prepare(made(lambda p, q, r: 0.01 + 1e-5 * q, noise=1e-3, tuples=4))
    assert np.isnan(bootstrap([fit_user_form(few, "a*q + b")], few, replicates=0, seed=1).candidates[0].held_out)
