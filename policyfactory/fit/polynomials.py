"""The polynomials of paper 002 table 1 and the family's next two degrees, and the small linear mixture.

Degree d adds p^d, q^d, r^d and every p^i q^j with i + j = d and i, j >= 1; submit times never meet p or q, and the
constant is a term. LIN, QDR, CUB and QUA are the table's; QUI (quintic) adds p^5, q^5, r^5, p^4 q, p^3 q^2,
p^2 q^3, p q^4, and SEX (sextic) p^6, q^6, r^6, p^5 q, p^4 q^2, p^3 q^3, p^2 q^4, p q^5. The mixture MIX is the
constant, p, q, p*q and r: the job features of Legrand et al. (IPDPS 2019) that a score table has.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import FitError
from policyfactory.fit.result import Fit, Term, exact_fit
from policyfactory.fit.sample import Sample

__all__ = [
    "MIXTURE",
    "POLYNOMIALS",
    "fit_all_polynomials",
    "fit_determined_polynomials",
    "fit_mixture",
    "monomials",
]

POLYNOMIALS: dict[str, int] = {"LIN": 1, "QDR": 2, "CUB": 3, "QUA": 4, "QUI": 5, "SEX": 6}
MIXTURE = ("1", "p", "q", "r", "p*q")


def monomials(degree: int) -> tuple[str, ...]:
    """Return the terms of the polynomial of ``degree``, the constant first, in the order of paper 002 table 3."""
    texts = ["1", "p", "q", "r"]
    for d in range(2, degree + 1):
        texts += [f"{variable}**{d}" for variable in "pqr"]
        texts += [f"{_power('p', d - j)}*{_power('q', j)}" for j in range(1, d)]
    return tuple(texts)


def fit_all_polynomials(sample: Sample) -> list[Fit]:
    """Return LIN to SEX, in the order of their degrees."""
    fits, failures = fit_determined_polynomials(sample)
    if failures:
        name, reason = next(iter(failures.items()))
        raise FitError(f"{name}: {reason}")
    return fits


def fit_determined_polynomials(sample: Sample) -> tuple[list[Fit], dict[str, str]]:
    """Return the polynomials whose terms can be told apart on these rows, and why the others cannot be fitted.

    The columns of the largest are shared by all.
    """
    columns = _columns(sample, monomials(max(POLYNOMIALS.values())))
    fits: list[Fit] = []
    failures: dict[str, str] = {}
    for name, degree in POLYNOMIALS.items():
        texts = monomials(degree)
        try:
            fits.append(exact_fit(sample, _terms(texts), columns[:, : len(texts)], name=name, family="polynomials"))
        except FitError as error:
            failures[name] = str(error)
    return fits, failures


def fit_mixture(sample: Sample) -> Fit:
    """Return the linear mixture of p, q, r and p*q."""
    return exact_fit(sample, _terms(MIXTURE), _columns(sample, MIXTURE), name="MIX", family="linear")


def _terms(texts: tuple[str, ...]) -> tuple[Term, ...]:
    return tuple(Term.of(text, f"theta{number}") for number, text in enumerate(texts))


def _columns(sample: Sample, texts: tuple[str, ...]) -> NDArray[np.float64]:
    return np.column_stack([sample.values(text) for text in texts])


def _power(variable: str, exponent: int) -> str:
    return variable if exponent == 1 else f"{variable}**{exponent}"
