"""The exact solver against NIST's certified values, exact arithmetic, scipy and statsmodels."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive.fit import solve as naive_solve
from policyfactory.core.errors import FitError
from policyfactory.fitting import regression as wls
from policyfactory.fitting.regression import _refine, solve
from refusals import refused

NIST = Path(__file__).parent / "nist"


@dataclasses.dataclass(frozen=True)
class Certified:
    """A data set of the NIST Statistical Reference Datasets with its certified results."""

    design: np.ndarray
    y: np.ndarray
    coefficients: np.ndarray
    residual_sd: float

    @property
    def freedom(self) -> int:
        return len(self.y) - len(self.coefficients)


def certified(name: str) -> Certified:
    lines = (NIST / f"{name}.dat").read_text(encoding="ascii").splitlines()
    result = [line.split()[2:] for line in lines if line.startswith("# certified")]
    residual_sd = next(float(line.split()[2]) for line in lines if line.startswith("# residual_sd"))
    data = np.array([[float(v) for v in line.split(",")] for line in lines if line[0] not in "#y"])
    terms = len(result)
    if name == "Longley":
        design = np.column_stack([np.ones(len(data)), data[:, 1:]])
    else:
        # Correctly rounded powers: those of some versions of numpy are not (13**4 is off by a bit in 1.26).
        design = np.array([[float(Fraction(x) ** power) for power in range(terms)] for x in data[:, 1].tolist()])
    return Certified(design, data[:, 0], np.array([float(value) for value, _ in result]), residual_sd)


def digits(actual: np.ndarray, expected: np.ndarray) -> float:
    """Return the log relative error: the digits in which the worst coefficient agrees."""
    error = np.max(np.abs(actual - expected) / np.abs(expected))
    return float(-np.log10(max(error, 1e-16)))


# At least 8 digits wherever double precision allows it. Measured: Longley 14.6, Wampler1 to 5:
# 15.7, 13.2, 13.4, 11.4, 10.5.
@pytest.mark.parametrize("name", ["Longley", "Wampler1", "Wampler2", "Wampler3", "Wampler4", "Wampler5"])
def test_nist_reference_data_agree_to_8_digits(name: str) -> None:
    reference = certified(name)
    solution = solve(reference.design, reference.y)
    assert digits(solution.coefficients, reference.coefficients) >= 8
    sd = np.sqrt(solution.sse / reference.freedom)
    assert sd == pytest.approx(reference.residual_sd, rel=1e-9, abs=1e-9)


def test_filip_reaches_the_limit_of_double_precision() -> None:
    # The condition number is 5e9 after scaling (1.8e15 before): rounding the powers of x to doubles moves the solution
    # in its eighth digit, whatever the algorithm. The exact solution of the rounded columns shows this limit.
    reference = certified("Filip")
    solution = solve(reference.design, reference.y)
    limit = digits(
        np.array([float(value) for value in naive_solve(reference.design, reference.y)]), reference.coefficients
    )
    assert 7 <= limit < 8
    assert digits(solution.coefficients, reference.coefficients) >= 7
    assert solution.condition == pytest.approx(5.5e9, rel=0.2)
    assert np.sqrt(solution.sse / reference.freedom) == pytest.approx(reference.residual_sd, rel=1e-9)


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps, reason="no extended type to refine with on this platform"
)
def test_refinement_comes_to_its_end_on_wampler5() -> None:
    # The residual of the normal equations is summed in the extended type, so the first-order bound holds with its
    # epsilon, times the roundings in a sum (rows) for each term: 9.2 digits. In double precision it would be 5.9.
    # Measured with two versions of OpenBLAS and the kernels of three processors: 9.67 to 10.64.
    reference = certified("Wampler5")
    solution = solve(reference.design, reference.y)
    matrix, x = reference.design / solution.scale, solution.coefficients * solution.scale
    tangent = np.sqrt(solution.sse) / (np.linalg.norm(matrix) * np.linalg.norm(x))
    bound = np.finfo(np.longdouble).eps * (solution.condition + solution.condition**2 * tangent) * matrix.size
    assert digits(solution.coefficients, reference.coefficients) >= -np.log10(float(bound)) > 9


def test_longley_is_the_data_set_that_statsmodels_ships() -> None:
    from statsmodels.datasets import longley

    data = longley.load_pandas().data.to_numpy()
    reference = certified("Longley")
    assert np.array_equal(data[:, 0], reference.y)
    assert np.array_equal(data[:, 1:], reference.design[:, 1:])


def test_refinement_is_what_saves_wampler5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wls, "_TARGET_ERROR", np.inf)
    reference = certified("Wampler5")
    assert digits(solve(reference.design, reference.y).coefficients, reference.coefficients) < 8


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_random_problems_agree_with_exact_arithmetic(seed: int, terms: int) -> None:
    rng = np.random.default_rng(seed)
    design = rng.integers(-50, 50, (terms + 6, terms)).astype(float)
    design[:terms] += 100 * np.eye(terms)
    design *= 10.0 ** rng.integers(-8, 8, terms)
    target = rng.normal(size=len(design))
    weight = rng.integers(1, 1000, len(design)).astype(float)
    expected = naive_solve(design, target, weight)
    solution = solve(design, target, weight)
    assert np.allclose(solution.coefficients, [float(value) for value in expected], rtol=1e-11, atol=0)
    exact = [
        Fraction(w) * (sum(Fraction(x) * c for x, c in zip(row, expected, strict=True)) - Fraction(y))
        for row, y, w in zip(design.tolist(), target.tolist(), weight.tolist(), strict=True)
    ]
    assert solution.sse == pytest.approx(float(sum(value * value for value in exact)), rel=1e-9)


def test_the_weight_is_inside_the_square() -> None:
    # One constant for 0 and 1 with weights 1 and 3: minimise c^2 + 9 (c - 1)^2, c = 9/10 (not 3/4).
    solution = solve(np.ones((2, 1)), np.array([0.0, 1.0]), np.array([1.0, 3.0]))
    assert solution.coefficients[0] == pytest.approx(0.9, rel=1e-15)
    assert solution.sse == pytest.approx(0.9**2 + 9 * 0.1**2, rel=1e-14)


def test_weights_are_statsmodels_weights_squared() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(3)
    design, target, weight = rng.normal(size=(60, 3)), rng.normal(size=60), rng.uniform(1, 9, 60)
    expected = sm.WLS(target, design, weights=weight**2).fit().params
    assert np.allclose(solve(design, target, weight).coefficients, expected, rtol=1e-11)


def test_scipy_finds_the_same_minimum_by_iteration() -> None:
    from scipy.optimize import least_squares

    rng = np.random.default_rng(4)
    design, target, weight = rng.normal(size=(60, 3)), rng.normal(size=60), rng.uniform(1, 9, 60)
    result = least_squares(lambda c: weight * (design @ c - target), np.zeros(3), xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert np.allclose(solve(design, target, weight).coefficients, result.x, rtol=1e-7)


def test_the_factors_are_those_of_the_weighted_scaled_columns() -> None:
    rng = np.random.default_rng(5)
    design, weight = rng.normal(size=(30, 3)) * [1e-6, 1, 1e9], rng.uniform(1, 9, 30)
    solution = solve(design, rng.normal(size=30), weight)
    assert np.allclose(solution.q @ solution.r, design * weight[:, None] / solution.scale, rtol=1e-12)
    assert np.array_equal(np.frexp(solution.scale)[0], [0.5, 0.5, 0.5]), "a power of two rounds nothing"


def test_dependent_terms_are_an_error() -> None:
    x = np.arange(1.0, 9.0)
    refused(FitError, "3 terms", solve, np.column_stack([np.ones(8), x, 2 * x + 1]), x)


def test_too_few_rows_are_an_error() -> None:
    refused(FitError, "2 3", solve, np.ones((2, 3)), np.ones(2))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_an_error(bad: float) -> None:
    refused(FitError, "finite 0", solve, np.array([[1.0], [bad], [2.0]]), np.ones(3))
    refused(FitError, "finite 0", solve, np.array([[1.0], [3.0], [2.0]]), np.array([1.0, bad, 1.0]))


def test_as_many_rows_as_terms_are_met_exactly() -> None:
    solution = solve(np.array([[1.0, 1.0], [1.0, 3.0]]), np.array([5.0, 9.0]))
    assert solution.coefficients == pytest.approx([3.0, 2.0], rel=1e-15)
    assert solution.sse == pytest.approx(0, abs=1e-28)


def test_the_units_of_a_column_do_not_change_the_condition() -> None:
    rng = np.random.default_rng(6)
    design, target = rng.normal(size=(30, 3)), rng.normal(size=30)
    plain, other = solve(design, target), solve(design * [2.0**-40, 1.0, 2.0**33], target)
    assert other.condition == plain.condition
    norms = np.linalg.norm(design * [2.0**-40, 1.0, 2.0**33] / other.scale, axis=0)
    assert (norms >= 0.5).all()
    assert (norms < 1).all()
    # A column and another that differs from it by the angle of 3-4-5: singular values sqrt(1 +- 4/5).
    assert solve(np.array([[0.5, 0.4], [0.0, 0.3]]), np.ones(2)).condition == pytest.approx(3, rel=1e-14)


def test_a_term_that_is_zero_everywhere_is_an_error() -> None:
    refused(FitError, "2 terms", solve, np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]), np.ones(3))


@pytest.mark.parametrize(("angle", "fits"), [(2.0**-51, False), (2.0**-48, True)])
def test_terms_depend_on_each_other_where_the_condition_is_that_of_rounding(angle: float, fits: bool) -> None:
    # The columns (1, 0) and (1, angle) have the condition 2/angle; two terms are told apart up to 1/(2 eps) = 2**51.
    design = np.array([[1.0, 1.0], [0.0, angle]])
    if fits:
        assert solve(design, np.array([3.0, angle])).coefficients == pytest.approx([2.0, 1.0], rel=1e-9)
        return
    refused(FitError, "linearly dependent 2", solve, design, np.ones(2))


@pytest.mark.parametrize("size", [1.0, 0.01])
def test_the_bound_of_the_error_is_the_textbooks(size: float) -> None:
    # Bjorck 1996, section 1.4: eps (k + k^2 |r| / (|A| |x|)); here |A| = 5, |x| = 5, |r| = 10, k = 3 (times the size).
    matrix, x, residual = size * np.diag([3.0, 4.0]), np.array([3.0, 4.0]), size * np.array([6.0, 8.0])
    eps = np.finfo(float).eps
    assert wls._error_bound(3.0, residual, matrix, x) / eps == pytest.approx(3 + 9 * 0.4, rel=1e-14)
    assert wls._error_bound(3.0, residual, matrix, 0 * x) / eps == pytest.approx(3, rel=1e-14)


def test_one_step_of_refinement_corrects_a_small_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wls, "_REFINEMENTS", 1)
    rng = np.random.default_rng(5)
    matrix, right = rng.normal(size=(30, 3)), rng.normal(size=30)
    exact = np.linalg.lstsq(matrix, right, rcond=None)[0]
    x, residual = _refine(matrix, right, tuple(np.linalg.qr(matrix)), exact * (1 + 1e-5))
    np.testing.assert_allclose(x, exact, rtol=1e-11)
    np.testing.assert_allclose(residual, right - matrix @ exact, atol=1e-11)
