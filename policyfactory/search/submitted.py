"""Candidates that others hand in: formulas as texts, which are read and never run, their faults as data.

A line is a formula, or a JSON object with a ``formula`` and, if it is given one, a ``name``; what else the object has
is ignored. Blank lines and lines that begin with # are skipped. Sizes are bounded, formulas are read by
`policyfactory.policy.expression`, and one that cannot be used is no error of the others.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from policyfactory.core.errors import FormulaError, PolicyfactoryError, UsageError
from policyfactory.core.text import shortened
from policyfactory.policy.policy import Policy

__all__ = ["MOST_BYTES", "MOST_CANDIDATES", "Given", "Submitted", "lines_of", "submitted"]

Given: TypeAlias = str | Mapping[str, Any] | Policy

MOST_CANDIDATES = 1_000
MOST_BYTES = 1 << 24
_LONGEST_LINE = 20_000  # characters
_LONGEST_ECHO, _LONGEST_ERROR = 200, 1_000  # characters of what was given, and of what is said of it
_SOURCE = "handed in to policyfactory judge"


@dataclasses.dataclass(frozen=True, slots=True)
class Submitted:
    """A candidate as it was read.

    Parameters
    ----------
    name : str
        Its name; ``candidate-N`` if it has none.
    text : str
        What was given, at most 200 characters of it.
    policy : Policy or None
        The policy; None if it cannot be used.
    error : str
        Why it cannot be used; empty if it can.
    """

    name: str
    text: str
    policy: Policy | None
    error: str = ""


def submitted(given: Iterable[Given]) -> tuple[Submitted, ...]:
    """Read candidates.

    Parameters
    ----------
    given : iterable of str, mapping or Policy
        Lines as of a file, mappings as of its JSON objects, or policies that are formulas.

    Raises
    ------
    UsageError
        If there is none, or more than `MOST_CANDIDATES`.
    """
    read: list[Submitted] = []
    for one in given:
        if isinstance(one, str) and (not one.strip() or one.lstrip().startswith("#")):
            continue
        if len(read) == MOST_CANDIDATES:
            raise UsageError(f"more than {MOST_CANDIDATES:,} candidates; hand them in by several runs")
        read.append(_read(one, f"candidate-{len(read) + 1}"))
    if not read:
        raise UsageError("no candidate; give formulas, or a file with one a line: policyfactory judge LOG 'p*q'")
    return tuple(read)


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a file; bytes that are no UTF-8 become a sign that is in no formula."""
    return data.decode("utf-8", errors="replace").split("\n")


def _read(given: Given, default: str) -> Submitted:
    name, text = default, ""
    try:
        if isinstance(given, Policy):
            name, text = given.name, given.formula
            given.expression.text()
            return Submitted(name, text[:_LONGEST_ECHO], given)
        text = given if isinstance(given, str) else ""
        name, text = _named(given, default)
        policy = Policy(name, text.strip(), source=_SOURCE)
        _ = policy.program
    except (PolicyfactoryError, RecursionError) as error:
        return Submitted(shortened(name, 100), text.strip()[:_LONGEST_ECHO], None, _said(error)[:_LONGEST_ERROR])
    return Submitted(name, text.strip()[:_LONGEST_ECHO], policy)


def _said(error: Exception) -> str:
    """Return an error in one line."""
    if isinstance(error, FormulaError) and error.position is not None:
        return f"{error.reason} (at character {error.position + 1})"
    return " ".join(str(error).split()) if isinstance(error, PolicyfactoryError) else "it is nested too deeply"


def _named(given: str | Mapping[str, Any], default: str) -> tuple[str, str]:
    """Return name and formula of a line or of an object."""
    if isinstance(given, str):
        if len(given) > _LONGEST_LINE:
            raise UsageError(f"a line of {len(given):,} characters; at most {_LONGEST_LINE:,} are read")
        if not given.lstrip().startswith("{"):
            return default, given
    try:
        content: Mapping[str, Any] = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        raise UsageError('no JSON object; write {"name": "mine", "formula": "p*q"} in one line') from None
    name, formula = content.get("name", default), content.get("formula")
    if not isinstance(formula, str) or not isinstance(name, str):
        raise UsageError('"formula" and "name" are texts; write {"name": "mine", "formula": "p*q"}')
    return name, formula
