"""The polynomials of paper 002, table 1, and what its table 3 has on similar data."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.fitting.forms import POLYNOMIALS, fit_all_polynomials, fit_mixture, monomials
from policyfactory.fitting.regression import Fit, inflation
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.trials.table import ScoreTable


def test_the_monomials_are_those_of_table_1_and_two_degrees_more() -> None:
    assert monomials(1) == ("1", "p", "q", "r")
    assert monomials(2)[4:] == ("p**2", "q**2", "r**2", "p*q")
    assert monomials(3)[8:] == ("p**3", "q**3", "r**3", "p**2*q", "p*q**2")
    assert monomials(4)[13:] == ("p**4", "q**4", "r**4", "p**3*q", "p**2*q**2", "p*q**3")
    assert monomials(5)[19:] == ("p**5", "q**5", "r**5", "p**4*q", "p**3*q**2", "p**2*q**3", "p*q**4")
    assert [len(monomials(degree)) for degree in POLYNOMIALS.values()] == [4, 8, 13, 19, 26, 34]
    assert monomials(6)[26:] == ("p**6", "q**6", "r**6", "p**5*q", "p**4*q**2", "p**3*q**3", "p**2*q**4", "p*q**5")


def test_the_polynomials_of_the_catalogue_have_the_same_terms() -> None:
    from policyfactory.policy.expression import parse
    from policyfactory.policy.store import CATALOGUE

    jobs = {name: np.array([3.0, 50.0]) for name in "pqr"}
    for name, degree in list(POLYNOMIALS.items())[:4]:
        published = next(policy for key, policy in CATALOGUE.items() if key.startswith(name))
        assert published.variables == {"p", "q", "r"}
        # The constant may be left out of a sort key.
        count = published.expression.text().count(" + ") + published.expression.text().count(" - ") + 1
        assert count in {len(monomials(degree)), len(monomials(degree)) - 1}, (name, jobs)
        assert parse(monomials(degree)[-1]).variables <= published.variables


def test_lin_on_the_sc17_table_is_close_to_table_3(sc17_table: ScoreTable) -> None:
    # Table 3 was fitted to another sample of the same model: 3.24e-2, 1.15e-7, 2.61e-5, -1.57e-7, MAE 4.5e-3.
    lin = fit_all_polynomials(prepare(sc17_table))[0][0]
    assert lin.name == "LIN"
    assert lin.coefficients == pytest.approx([3.24e-2, 1.15e-7, 2.61e-5, -1.57e-7], rel=0.3)
    assert lin.mae == pytest.approx(4.5e-3, rel=0.05)


def test_the_inflation_of_lin_is_that_of_table_3(sc17: Sample) -> None:
    # 1.3 1.3 1.2 for p, q, r: no constant in the regressions. With it they would be 1.07 1.07 1.00.
    columns = np.column_stack([sc17.p, sc17.q, sc17.r])
    assert [f"{value:.1f}" for value in inflation(columns)] == ["1.3", "1.3", "1.2"]
    centred = inflation(columns - columns.mean(axis=0))
    assert [f"{value:.2f}" for value in centred] == ["1.07", "1.07", "1.00"]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_statsmodels_finds_the_same_coefficients(
    sc17: Sample, position: int, sc17_polynomials: tuple[Fit, ...]
) -> None:
    import statsmodels.api as sm

    fit = sc17_polynomials[position]
    design = fit.design(sc17)
    scale = np.linalg.norm(design * sc17.weight[:, None], axis=0)
    weights = (sc17.weight / sc17.weight.mean()) ** 2
    expected = sm.WLS(sc17.score, design / scale, weights=weights).fit(method="qr").params / scale
    assert np.allclose(fit.coefficients, expected, rtol=1e-8)


def test_a_sextic_is_found_again(made) -> None:  # type: ignore[no-untyped-def]
    # Coefficients of all sizes on columns from 1 to 1e30.
    rng = np.random.default_rng(2)
    texts = monomials(6)
    table = made(lambda p, q, r: 0 * p + 0.5)
    sample_columns = {"p": table.p, "q": table.q, "r": table.r}
    columns = [eval_monomial(text, sample_columns) for text in texts]
    true = np.array([rng.uniform(0.2, 1) * 0.01 / column.max() for column in columns])
    score = sum(c * column for c, column in zip(true, columns, strict=True))
    exact = ScoreTable(table.p, table.q, table.r, score, table.stderr, table.tuple_id)
    sextic = fit_all_polynomials(prepare(exact))[0][-1]
    assert sextic.mae < 1e-9
    # Condition number 1e5 and more: about 1e-16 times its square is what the coefficients can be off.
    assert np.median(np.abs(sextic.coefficients / true - 1)) < 1e-3


def eval_monomial(text: str, columns: dict[str, np.ndarray]) -> np.ndarray:
    value = np.ones(len(columns["p"]))
    for factor in text.replace("**", "^").split("*"):
        name, _, exponent = factor.partition("^")
        if name != "1":
            value = value * columns[name] ** int(exponent or 1)
    return value


def test_the_mixture_has_the_area_as_a_term(sc17: Sample) -> None:
    mixture = fit_mixture(sc17)
    assert [term.text for term in mixture.terms] == ["1", "p", "q", "r", "p*q"]
    assert [term.unit for term in mixture.terms] == ["1", "1/s", "1/processors", "1/s", "1/(s processors)"]


def test_polynomials_that_cannot_be_distinguished_are_named_and_refused(made) -> None:  # type: ignore[no-untyped-def]
    table = made(lambda p, q, r: 1e-7 * p + 1e-4 * q + 0.01, noise=1e-4, tuples=4)
    two_sizes = ScoreTable(
        table.p, np.where(table.q > 8, 16.0, 4.0), table.r, table.score, table.stderr, table.tuple_id
    )
    fits, failures = fit_all_polynomials(prepare(two_sizes))
    assert [fit.name for fit in fits] == ["LIN"]
    assert list(failures) == ["QDR", "CUB", "QUA", "QUI", "SEX"]
    assert all("linearly dependent" in reason for reason in failures.values())
