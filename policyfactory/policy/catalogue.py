"""The known policies, by name.

A formula is written so that LOWER runs first: "largest first" has a minus sign. At the edges the formulas do what
the programs of their papers do: log10(0) is minus infinity, so a job submitted at the epoch itself (r = 0) goes
first under F1 to F4; log2(1) is 0, so a job of one processor goes first under UNICEF.

Sources
-------
TPDS'18: Gaussier, Lelong, Reis, Trystram, "Online tuning of EASY-backfilling using queue reordering policies",
IEEE TPDS 29 (2018), section 4.1. SC'17: Carastan-Santos, de Camargo, "Obtaining dynamic scheduling policies with
simulation and machine learning", SC 2017, tables 2 and 3. Regression: Rosa, Carastan-Santos, Goldman, "An experimental
analysis of regression-obtained HPC scheduling heuristics", 2023, tables 1, 3, 4, 5. WFP3 and UNICEF: Tang, Lan, Desai,
Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems", CLUSTER 2009.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Protocol, TypeAlias

from policyfactory.core.errors import UsageError
from policyfactory.policy.nodes import format_number
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, load_model

__all__ = ["ALIASES", "CATALOGUE", "PolicyLike", "published_model", "resolve", "resolve_model"]

_TPDS = "Gaussier et al., TPDS 2018, section 4.1"
_SC17 = "Carastan-Santos and de Camargo, SC 2017, table 3"
_SC17_PROGRAMS = "Tang et al., CLUSTER 2009, as in the programs of Carastan-Santos and de Camargo, SC 2017"
_REGRESSION = "Rosa, Carastan-Santos and Goldman, 2023, table {table}"

_CLASSICAL = (
    ("FCFS", "r", "first come, first served"),
    ("LCFS", "-r", "last come, first served"),
    ("SPF", "p", "smallest requested run time first"),
    ("LPF", "-p", "longest requested run time first"),
    ("SQF", "q", "fewest processors first"),
    ("LQF", "-q", "most processors first"),
    ("LEXP", "-(w + p)/p", "largest expansion factor (wait + request)/request first: who waits long for a short job"),
    ("SEXP", "(w + p)/p", "smallest expansion factor (wait + request)/request first"),
    ("SRF", "p/q", "smallest ratio of run time to processors first"),
    ("LRF", "-p/q", "largest ratio of run time to processors first"),
    ("SAF", "p*q", "smallest area (run time times processors) first"),
    ("LAF", "-p*q", "largest area (run time times processors) first"),
)

_FITTED = (
    ("F1", "log10(p)*q + 870*log10(r)", "small jobs first, processors weighing most; early submission dominates"),
    ("F2", "sqrt(p)*q + 2.56e4*log10(r)", "small jobs first, run time by its square root; early submission dominates"),
    ("F3", "p*q + 6.86e6*log10(r)", "small area first; early submission dominates"),
    (
        "F4",
        "p*sqrt(q) + 5.3e5*log10(r)",
        "short jobs first, processors by their square root; early submission dominates",
    ),
)

_WAITING = (
    ("WFP3", "-(w/p)**3*q", "the longer the wait relative to the request, the sooner; wide jobs favoured"),
    (
        "UNICEF",
        "-(w + 1e-20)/(log2(q)*p)",
        "short and narrow jobs that have waited first; one processor before all others",
    ),
)

# Table 1: the monomials, in the order of the coefficients; LIN has the first 4, QDR 8, CUB 13, QUA 19.
_MONOMIALS = (
    "p", "q", "r",
    "p**2", "q**2", "r**2", "p*q",
    "p**3", "q**3", "r**3", "p**2*q", "p*q**2",
    "p**4", "q**4", "r**4", "p**3*q", "p**2*q**2", "p*q**3",
)  # fmt: skip
_DEGREES = {"LIN": "linear", "QDR": "quadratic", "CUB": "cubic", "QUA": "quartic"}

# Workload -> table and coefficients of LIN, QDR, CUB, QUA, the constant first.
_POLYNOMIALS: dict[str, tuple[int, str, dict[str, tuple[float, ...]]]] = {
    "SYNTHETIC": (3, "the Lublin-Feitelson model (256 processors)", {
        "LIN": (3.24e-2, 1.15e-7, 2.61e-5, -1.57e-7),
        "QDR": (3.70e-2, 2.65e-7, -3.05e-5, -3.96e-7, -3.04e-12, 1.17e-7, 2.75e-12, 6.77e-10),
        "CUB": (3.33e-2, 2.83e-7, 8.71e-5, -5.83e-7, -6.33e-14, -5.06e-7, 6.78e-12, -6.02e-10,
                -7.55e-18, 7.05e-10, -2.14e-17, -2.72e-14, 9.52e-12),
        "QUA": (4.83e-2, -6.42e-7, -2.40e-4, -6.50e-7, 1.66e-11, 2.41e-6, 8.81e-12, 1.14e-8,
                -2.03e-16, -9.52e-9, -4.67e-17, 9.29e-15, -7.94e-11,
                9.34e-22, 1.36e-11, 9.84e-23, -9.07e-19, 1.89e-16, 1.55e-13),
    }),
    "CTC-SP2": (4, "the log of the CTC IBM SP2", {
        "LIN": (3.11e-2, 3.00e-8, 5.42e-5, -6.41e-8),
        "QDR": (2.86e-2, 2.00e-7, 2.27e-5, 1.81e-7, -3.14e-12, -2.08e-8, -4.19e-12, 8.50e-10),
        "CUB": (2.42e-2, 1.18e-6, -1.72e-4, -1.37e-8, -3.50e-11, 1.66e-6, 4.57e-12, 3.89e-9,
                2.97e-16, -3.91e-9, -1.02e-16, -3.33e-14, -6.33e-12),
        "QUA": (6.09e-2, -3.13e-6, 8.73e-5, -2.40e-6, 1.42e-10, -8.57e-6, 1.86e-10, 1.49e-8,
                -2.46e-15, 6.03e-8, -4.92e-15, -6.88e-13, 2.37e-10,
                1.47e-20, -1.12e-10, 4.07e-20, 6.11e-18, -7.14e-16, -9.75e-13),
    }),
    "SDSC-BLUE": (5, "the log of SDSC Blue Horizon", {
        "LIN": (1.83e-2, 8.88e-8, 3.05e-5, -6.87e-8),
        "QDR": (1.39e-2, -1.47e-7, -8.40e-5, -4.02e-7, 5.59e-14, 6.92e-8, 5.77e-12, 5.50e-10),
        "CUB": (3.34e-2, 5.97e-8, 3.09e-5, -4.79e-7, 1.79e-12, -1.02e-7, 1.12e-11, -6.67e-10,
                -1.51e-17, 7.15e-11, -9.27e-17, -6.38e-16, 1.08e-12),
        "QUA": (2.27e-2, 1.58e-6, 1.07e-4, -1.77e-6, -4.00e-11, -1.91e-7, 1.04e-10, -6.55e-9,
                3.93e-16, 1.21e-10, -2.26e-15, 1.25e-13, 4.03e-12,
                -1.28e-21, -1.49e-14, 1.50e-20, -6.68e-19, -4.72e-17, 3.65e-16),
    }),
}  # fmt: skip


def _polynomial(coefficients: tuple[float, ...]) -> str:
    constant, *rest = coefficients
    terms = [format_number(constant)]
    for value, monomial in zip(rest, _MONOMIALS, strict=False):
        terms.append(f"{'-' if value < 0 else '+'} {format_number(abs(value))}*{monomial}")
    return " ".join(terms)


def _build() -> dict[str, Policy]:
    policies = [Policy(name, formula, words, _TPDS) for name, formula, words in _CLASSICAL]
    policies += [Policy(name, formula, words, _SC17_PROGRAMS) for name, formula, words in _WAITING]
    policies += [Policy(name, formula, words, _SC17) for name, formula, words in _FITTED]
    for workload, (table, words, fits) in _POLYNOMIALS.items():
        for kind, coefficients in fits.items():
            description = f"{_DEGREES[kind]} polynomial of p, q, r fitted to scores of {words}"
            source = _REGRESSION.format(table=table)
            policies.append(Policy(f"{kind}-{workload}", _polynomial(coefficients), description, source))
    return {policy.name: policy for policy in policies}


CATALOGUE: dict[str, Policy] = _build()

ALIASES: dict[str, str] = {
    "SPT": "SPF",
    "SJF": "SPF",
    "WFP": "WFP3",
    "UNI": "UNICEF",
    **{kind: f"{kind}-SYNTHETIC" for kind in _DEGREES},
}


class _HasPolicy(Protocol):
    """A model, or a fit: what a policy was made from."""

    @property
    def policy(self) -> Policy: ...


PolicyLike: TypeAlias = str | Policy | _HasPolicy


def resolve(spec: PolicyLike) -> Policy:
    """Return the policy that ``spec`` is or means: a catalogue name or alias (any case), a model file, a model, a fit.

    Raises
    ------
    UsageError
        If there is no such policy; near matches are named.
    ModelFileError, InputError
        If the model file cannot be used.
    """
    if isinstance(spec, Policy):
        return spec
    if isinstance(spec, str):
        return resolve_model(spec).policy
    policy = getattr(spec, "policy", None)
    if isinstance(policy, Policy):
        return policy
    if callable(spec) or hasattr(spec, "predict"):
        raise UsageError("a function is no policy yet; make one of it: Policy.from_function(function, 'NAME')")
    raise UsageError(f"{ascii(spec)[:60]} is no policy; give a name, a model file, a Policy, a model or a fit")


def resolve_model(spec: str) -> Model:
    """Return the model of a catalogue name or alias (any case), or of a model file; errors as for `resolve`."""
    name = spec.strip().upper()
    name = ALIASES.get(name, name)
    if name in CATALOGUE:
        return published_model(CATALOGUE[name])
    if len(spec) <= 1000 and spec.isprintable() and (spec.lower().endswith(".json") or "/" in spec):
        return load_model(Path(spec))
    known = [*CATALOGUE, *ALIASES]
    near = difflib.get_close_matches(name[:60], known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)};"
    shown = ascii(spec if len(spec) <= 60 else spec[:60] + "...")
    raise UsageError(f"unknown policy {shown}; {hint} A model file is named by its path (models/NAME.json)")


def published_model(policy: Policy) -> Model:
    """Return a catalogue policy as a model; it was not fitted here, so it has no errors or diagnostics."""
    return Model(policy, provenance={"origin": "published", "citation": policy.source})
