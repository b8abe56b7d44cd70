"""A user's own form: any expression over p, q and r with named coefficients, such as ``a*p**b*q + c*log10(r)``."""

from __future__ import annotations

import numpy as np

from policyfactory.core.errors import FitError, UsageError
from policyfactory.fit.expand import Monomial, are_free, expand, monomial_name, nonlinear_names, parse_form
from policyfactory.fit.nonlinear import STARTS, fit_nonlinear
from policyfactory.fit.result import Fit, Term, exact_fit
from policyfactory.fit.sample import Sample
from policyfactory.policy.nodes import Expression
from policyfactory.workload.header import printable

__all__ = ["fit_user_form", "split_name"]

_MOST_COEFFICIENTS = 40


def split_name(text: str, default: str) -> tuple[str, str]:
    """Return name and formula of ``NAME=FORMULA``; without a name, ``default``.

    Raises
    ------
    UsageError
        If the name cannot be the name of a policy.
    """
    name, sign, formula = text.partition("=")
    if not sign:
        return default, text.strip()
    name = name.strip()
    if not (0 < len(name) <= 40 and name.isprintable() and not set(name) & set("/\\|`<>")):
        raise UsageError(
            f"the name {name[:40]!r} of a form cannot be used; write NAME=FORMULA, a short name without / \\ |"
        )
    return name, formula.strip()


def fit_user_form(sample: Sample, text: str, *, name: str = "form", seed: int = 1, starts: int = STARTS) -> Fit:
    """Return the fit of one form: exact where it is linear in effective coefficients, else iterative."""
    form = parse_form(text)
    count = len(form.coefficients)
    if not 0 < count <= _MOST_COEFFICIENTS:
        raise FitError(
            f"{printable(text, 200)}: has {count} coefficients, expected 1 to {_MOST_COEFFICIENTS}; write for example "
            "a*log10(p)*q + b*log10(r), where a and b are found by the fit"
        )
    if not form.variables:
        raise FitError(f"{printable(text, 200)}: is the same for all jobs and ranks none; use p, q or r in it")
    unknown = sorted(form.variables - {"p", "q", "r"})
    if unknown:
        raise FitError(f"{printable(text, 200)}: has {', '.join(unknown)}, which no score table knows; use p, q and r")
    expanded = expand(form)
    if expanded is None or not are_free([key for key in expanded if key]):
        return fit_nonlinear(sample, text, nonlinear_names(form), name=name, seed=seed, starts=starts)
    return _fit_linear(sample, expanded, name)


def _fit_linear(sample: Sample, expanded: dict[Monomial, Expression], name: str) -> Fit:
    offset = expanded.pop((), None)
    terms = tuple(Term.of(value.text(), monomial_name(key)) for key, value in expanded.items())
    design = np.column_stack([sample.values(term.text) for term in terms])
    broken = int((~np.isfinite(design)).any(axis=1).sum())
    if broken:
        raise FitError(
            f"{name}: is not finite on {broken} of {len(sample)} rows (for example 1/log10(q) where q = 1); use a form "
            "that has a value for every job"
        )
    text = "" if offset is None else offset.text()
    return exact_fit(sample, terms, design, name=name, family="user", offset=text)
