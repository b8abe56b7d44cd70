"""The known policies, by name; ``catalogue.toml`` has them.

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
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Protocol, TypeAlias

from policyfactory.core.errors import UsageError
from policyfactory.policy.network import Network
from policyfactory.policy.nodes import format_number
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, load_model

__all__ = ["ALIASES", "CATALOGUE", "PolicyLike", "is_catalogued", "published_model", "resolve", "resolve_model"]

_REGRESSION = "Rosa, Carastan-Santos and Goldman, 2023, table {table}"
_KNOWN = tomllib.loads(files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8"))
_DEGREES: dict[str, str] = _KNOWN["polynomials"]["degrees"]


def _polynomial(coefficients: list[float]) -> str:
    constant, *rest = coefficients
    terms = [format_number(constant)]
    for value, monomial in zip(rest, _KNOWN["polynomials"]["monomials"], strict=False):
        terms.append(f"{'-' if value < 0 else '+'} {format_number(abs(value))}*{monomial}")
    return " ".join(terms)


def _build() -> dict[str, Policy]:
    policies = [
        Policy(name, formula, words, group["source"])
        for group in _KNOWN["group"]
        for name, (formula, words) in group["policies"].items()
    ]
    for workload, known in _KNOWN["polynomials"]["workloads"].items():
        source = _REGRESSION.format(table=known["table"])
        for kind, coefficients in known["fits"].items():
            description = f"{_DEGREES[kind]} polynomial of p, q, r fitted to scores of {known['words']}"
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


PolicyLike: TypeAlias = str | Path | Policy | Network | _HasPolicy


def resolve(spec: PolicyLike) -> Policy:
    """Return the policy that ``spec`` is or means: a catalogue name (any case), a file, a network, a model, a fit.

    Raises
    ------
    UsageError
        If there is no such policy; near matches are named.
    ModelFileError, InputError
        If the model file cannot be used.
    """
    if isinstance(spec, Policy):
        return spec
    if isinstance(spec, Network):
        return Policy.from_network(spec)
    if isinstance(spec, str | Path):
        return resolve_model(str(spec)).policy
    policy = getattr(spec, "policy", None)
    if isinstance(policy, Policy):
        return policy
    if callable(spec) or hasattr(spec, "predict"):
        raise UsageError("a function is no policy yet; make one of it: Policy.from_function(function, 'NAME')")
    raise UsageError(
        f"{ascii(spec)[:60]} is no policy; give a name, a model file, a Policy, a network, a model or a fit"
    )


def resolve_model(spec: str) -> Model:
    """Return the model of a catalogue name or alias (any case), or of a model file; errors as for `resolve`."""
    name = _catalogue_name(spec)
    if name in CATALOGUE:
        return published_model(CATALOGUE[name])
    if len(spec) <= 1000 and "\0" not in spec and (spec.lower().endswith(".json") or "/" in spec):
        return load_model(Path(spec))
    known = [*CATALOGUE, *ALIASES]
    near = difflib.get_close_matches(name[:60], known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    if not near and any(mark in spec for mark in "=*+("):
        hint = "a formula is given a name, --formula 'NAME=FORMULA', or in Python is Policy('NAME', 'FORMULA'); "
    shown = ascii(spec if len(spec) <= 60 else spec[:60] + "...")
    raise UsageError(
        f"unknown policy {shown}; {hint}`policyfactory policy list` shows all, and a model file is named by its path "
        "(models/NAME.json)"
    )


def is_catalogued(spec: str) -> bool:
    """Tell whether a text is a name or alias of the catalogue, and not a file."""
    return _catalogue_name(spec) in CATALOGUE


def _catalogue_name(spec: str) -> str:
    name = spec.strip().upper()
    return ALIASES.get(name, name)


def published_model(policy: Policy) -> Model:
    """Return a catalogue policy as a model; it was not fitted here, so it has no errors or diagnostics."""
    return Model(policy, provenance={"origin": "published", "citation": policy.source})
