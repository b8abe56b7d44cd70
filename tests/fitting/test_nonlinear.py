"""The search over nonlinear coefficients: its starts, its minima, what it says of them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from policyfactory.core.errors import FitError
from policyfactory.fitting import forms as module
from policyfactory.fitting.forms import fit_nonlinear, fit_user_form
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.policy.expression import parse
from refusals import refused


@pytest.fixture(scope="module")
def sample(made) -> Sample:  # type: ignore[no-untyped-def]
    return prepare(made(lambda p, q, r: 3e-8 * p**0.8 * q + 0.005 * np.log10(r), noise=1e-4, tuples=12, size=8))


def values(fit) -> dict[str, float]:  # type: ignore[no-untyped-def]
    return {term.coefficient: float(value) for term, value in zip(fit.terms, fit.coefficients, strict=True)}


def test_starts_are_exponents_first_then_small_and_of_any_size_by_turns() -> None:
    points = module._starts(3, 2000, seed=1)
    assert len(points) == 2000
    assert [point.tolist() for point in points[:3]] == [[1.0] * 3, [0.5] * 3, [-0.5] * 3]
    small, any_size = np.array(points[3::2]), np.array(points[4::2])
    # 2,994 draws of each: none in the outermost hundred-and-twentieth has a probability of 1e-11.
    assert (np.abs(small) <= 2).all()
    assert small.min() < -1.966
    assert small.max() > 1.966
    logs = np.log10(np.abs(any_size))
    assert -6 <= logs.min() < -5.9
    assert 5.9 < logs.max() <= 6
    assert 0.3 < (any_size > 0).mean() < 0.7
    assert [point.tolist() for point in module._starts(3, 2, seed=1)] == [[1.0] * 3, [0.5] * 3]
    again, other = module._starts(3, 5, seed=1), module._starts(3, 5, seed=2)
    assert np.array_equal(again[4], points[4])
    assert not np.array_equal(other[4], points[4])


def test_equal_minima_are_polished_once() -> None:
    costs = [1.0, 1.0 + 5e-7, 1.0 + 5e-6, 2.0, 2.0]
    minima = [module._Minimum((float(k),), cost, ended=True) for k, cost in enumerate(costs)]
    assert [minimum.values[0] for minimum in module._different(minima)] == [0, 2, 3]
    assert module._different([]) == []


def test_the_result_has_the_errors_of_its_rows(sample: Sample) -> None:
    fit = fit_nonlinear(sample, "a*p**b*q + c*log10(r)", frozenset({"b"}), name="power", starts=6)
    residual = sample.score - sample.values(fit.expression)
    assert fit.mae == pytest.approx(np.abs(residual).mean(), rel=1e-12)
    assert fit.sse == pytest.approx(((sample.weight * residual) ** 2).sum(), rel=1e-12)
    slopes = fit.design(sample) * sample.weight[:, None]
    assert fit.condition == pytest.approx(np.linalg.cond(slopes / np.linalg.norm(slopes, axis=0)), rel=1e-6)
    assert [(term.coefficient, term.linear) for term in fit.terms] == [("a", True), ("c", True), ("b", False)]
    assert (fit.name, fit.source) == ("power", "a*p**b*q + c*log10(r)")
    assert "from 6 starts" in fit.method
    ended = [int(word) for word in fit.method.replace(",", "").split() if word.isdigit()]
    assert ended[0] == 6
    assert sum(ended[1:]) == 6, "every start ended at the best minimum, at a worse one or at none"
    assert fit.converged
    # It is a minimum: exponents on both sides are worse.
    for step in (-1e-3, 1e-3):
        near = fit_user_form(sample, f"a*p**{values(fit)['b'] + step!r}*q + c*log10(r)")
        assert near.sse > fit.sse


def test_one_start_alone_is_never_certain(sample: Sample) -> None:
    form = ("a*p**b*q + c*log10(r)", frozenset({"b"}))
    assert not fit_nonlinear(sample, *form, name="x", starts=1).converged
    assert fit_nonlinear(sample, *form, name="x", starts=2).converged


def test_a_search_that_is_cut_off_has_not_ended(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    search = scipy.optimize.least_squares

    def cut_off(*arguments, **options):  # type: ignore[no-untyped-def]
        result = search(*arguments, **options)
        result.status = 0  # the most evaluations were reached
        return result

    monkeypatch.setattr(scipy.optimize, "least_squares", cut_off)
    fit = fit_nonlinear(sample, "a*p**b*q + c*log10(r)", frozenset({"b"}), name="x", starts=3)
    assert "0 of them ended at the best minimum, 0 at worse ones, 3 at none" in fit.method
    assert not fit.converged


def test_the_search_sees_the_first_tuples_and_the_end_sees_all(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fit_nonlinear(sample, "a*p**b*q + c*log10(r)", frozenset({"b"}), name="x", starts=4)
    seen: list[int] = []
    make = module._Problem.__init__

    def watched(self, part, text, names):  # type: ignore[no-untyped-def]
        seen.append(part.tuples)
        make(self, part, text, names)

    monkeypatch.setattr(module._Problem, "__init__", watched)
    monkeypatch.setattr(module, "_SEARCH_TUPLES", 4)
    part = fit_nonlinear(sample, "a*p**b*q + c*log10(r)", frozenset({"b"}), name="x", starts=4)
    assert sorted(seen) == [4, 12]
    assert values(part) == pytest.approx(values(whole), rel=1e-5)
    seen.clear()
    monkeypatch.setattr(module, "_SEARCH_TUPLES", 12)
    fit_nonlinear(sample, "a*p**b*q + c*log10(r)", frozenset({"b"}), name="x", starts=4)
    assert seen == [12]


def test_a_part_without_a_linear_coefficient_is_searched_too(made) -> None:  # type: ignore[no-untyped-def]
    exact = prepare(made(lambda p, q, r: 3e-8 * p**0.8 * q + 0.005 * np.log10(r), tuples=6, size=8))
    fit = fit_user_form(exact, "3e-8*p**b*q + c*log10(r)", starts=6)
    assert values(fit) == pytest.approx({"b": 0.8, "c": 0.005}, rel=1e-6)
    assert fit.offset == f"3e-8*p**{parse(repr(values(fit)['b'])).text()}*q"
    alone = prepare(made(lambda p, q, r: 1 / (1 + 0.25 * np.log10(r)), tuples=6, size=8))
    fit = fit_user_form(alone, "1/(1 + b*log10(r))", starts=6)
    assert values(fit) == pytest.approx({"b": 0.25}, rel=1e-6)
    assert fit.mae < 1e-8


def test_a_coefficient_that_runs_away_is_reported(made) -> None:  # type: ignore[no-untyped-def]
    # q/(q + b) tends to a straight line as b grows: the better, the larger b.
    table = prepare(made(lambda p, q, r: 2e-4 * q + 0 * p, tuples=6, size=8))
    fit = fit_user_form(table, "a*q/(q + b)", starts=8)
    far = abs(values(fit)["b"]) > 1e8
    assert far == ("ran to the edge" in fit.method)
    assert not (far and fit.converged)
    # One of two is enough.
    table = prepare(made(lambda p, q, r: 2e-5 * q * np.sqrt(p), tuples=6, size=8))
    fit = fit_user_form(table, "a*q*p**c/(q + b)", starts=6)
    assert values(fit)["c"] == pytest.approx(0.5, rel=1e-3)
    assert (abs(values(fit)["b"]) > 1e8) == ("ran to the edge" in fit.method)


def test_starts_without_a_value_are_counted_as_such(sample: Sample) -> None:
    refused(FitError, "5 starts", fit_nonlinear, sample, "a*p*log10(b - b)", frozenset({"b"}), name="x", starts=5)


def problem_of(sample: Sample) -> module._Problem:
    return module._Problem(sample, "a*p**b*q + c*log10(r)", frozenset({"b"}))


def test_the_best_of_what_is_polished_is_taken_and_equal_ends_are_counted(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = module._SAME
    # By the value at which a search begins or is polished: its cost, and whether it ended.
    ends = {1.0: (1.0, True), 0.5: (1.0 * (1 + same), True), -0.5: (1.5, True)}
    polished = {1.0: (0.9, True), -0.5: (0.8, True)}
    calls: list[float] = []

    def minimise(_: object, start: np.ndarray) -> module._Minimum:
        value = float(start[0])
        known = polished if len(calls) >= 4 else ends
        calls.append(value)
        cost, ended = known.get(value, (7.0, False))
        return module._Minimum((value,), cost, ended)

    monkeypatch.setattr(module._Problem, "minimise", minimise)
    fit = fit_nonlinear(sample, "a*p**b*q + c*log10(r)", frozenset({"b"}), name="x", starts=4)
    assert values(fit)["b"] == -0.5
    assert "2 of them ended at the best minimum, 1 at worse ones, 1 at none" in fit.method
    assert fit.converged


def test_a_coefficient_at_the_limit_has_not_run_away(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, away in ((module._RAN_AWAY, False), (module._RAN_AWAY * 1.01, True)):
        monkeypatch.setattr(
            module._Problem, "minimise", lambda _, start, value=value: module._Minimum((value,), 1.0, ended=True)
        )
        fit = fit_nonlinear(sample, "a*log10(b*p)*q + c*log10(r)", frozenset({"b"}), name="x", starts=3)
        assert ("ran to the edge" in fit.method) == away
        assert fit.converged != away


def test_what_has_no_value_has_no_solution(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = len(sample)
    good, rest = np.ones((rows, 2)), np.linspace(0, 1, rows)
    good[:, 1] = rest
    zero, endless, gap = good.copy(), good.copy(), rest.copy()
    zero[:, 1] = 0
    endless[0, 1] = np.inf
    gap[0] = np.inf
    problem = problem_of(sample)
    for values_, columns in (
        (np.array([np.nan]), (good, rest)),
        (np.array([1.0]), (zero, rest)),
        (np.array([1.0]), (endless, rest)),
        (np.array([1.0]), (good, gap)),
    ):
        monkeypatch.setattr(problem, "columns", lambda _, columns=columns: columns)
        solution, residual = problem.solve_linear(values_)
        assert solution.shape == (0,)
        assert residual.tolist() == [np.inf] * rows
        minimum = problem.minimise(values_)
        assert (minimum.cost, minimum.ended) == (np.inf, False)
    monkeypatch.setattr(problem, "columns", lambda _: (good, rest))
    solution, residual = problem.solve_linear(np.array([1.0]))
    assert solution == pytest.approx([0, 1], abs=1e-12)
    assert residual == pytest.approx(np.zeros(rows), abs=1e-12)


def test_a_solver_that_fails_finds_nothing(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "lstsq", failed)
    solution, residual = problem_of(sample).solve_linear(np.array([1.0]))
    assert solution.shape == (0,)
    assert residual.tolist() == [np.inf] * len(sample)


def test_a_start_with_a_value_in_some_rows_only_is_none(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(sample)
    gap = np.linspace(0, 1, len(sample))
    gap[0] = np.inf
    monkeypatch.setattr(problem, "columns", lambda _: (np.empty((len(sample), 0)), gap))
    minimum = problem.minimise(np.array([1.0]))
    assert (minimum.cost, minimum.ended) == (np.inf, False)


def test_a_search_that_breaks_off_has_not_ended(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    def broken(*_: object, **__: object) -> None:
        raise ValueError("residuals are not finite in the initial point")

    monkeypatch.setattr(scipy.optimize, "least_squares", broken)
    minimum = problem_of(sample).minimise(np.array([1.0]))
    assert (minimum.values, minimum.cost, minimum.ended) == ((1.0,), np.inf, False)


def test_what_cannot_be_multiplied_out_is_refused(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "expand", lambda *_: None)
    refused(FitError, "multiplied terms", problem_of, sample)


def test_the_seed_that_is_not_given_is_one() -> None:
    assert inspect.signature(fit_nonlinear).parameters["seed"].default == 1


def test_an_infinite_slope_alone_is_the_edge_of_a_form(sample: Sample) -> None:
    problem = module._Problem(sample, "a*(p - b)**0.5 + c", frozenset({"b"}))
    edge = module._Minimum((float(sample.p.min()),), 1.0, ended=True)
    refused(FitError, "minimum value 0.5", module._fit, sample, problem, edge, name="x", method="", converged=True)


def test_the_condition_does_not_depend_on_units(sample: Sample) -> None:
    best = module._Minimum((0.8,), 1.0, ended=True)
    conditions = []
    for factor in (1, 1e-40):
        problem = module._Problem(sample, f"{factor}*a*p**b*q + c*log10(r)", frozenset({"b"}))
        conditions.append(module._fit(sample, problem, best, name="x", method="", converged=True).condition)
    assert conditions[1] == pytest.approx(conditions[0], rel=1e-6)
