"""What an export target is, and what all generated files have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from policyfactory import __version__
from policyfactory.core.units import format_duration
from policyfactory.policy.nodes import VARIABLES
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model

__all__ = ["Target", "ascii_text", "header", "identifier"]

_WIDTH = 110


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A language or scheduler that a policy can be handed to.

    Parameters
    ----------
    name : str
        As in ``--to NAME``.
    suffix : str
        Of the file, with its dot.
    description : str
        In words.
    render : function of Model to str
        Gives the whole text of the file.
    """

    name: str
    suffix: str
    description: str
    render: Callable[[Model], str]


def ascii_text(text: str) -> str:
    """Return ``text`` as printable ASCII in one line, in which nothing opens, closes or continues a comment.

    Names and descriptions come from model files of strangers and go into comments of four languages. (In Lua a
    long comment opens only directly after ``--``; here a blank stands between.)
    """
    shown = "".join(c if " " <= c <= "~" and c != "\\" else f"<U+{ord(c):04X}>" for c in text)
    # Comments of C, and its trigraphs: ??/ is a backslash, which would join the next line to the comment.
    for pair in ("/*", "*/", "??"):
        while pair in shown:
            shown = shown.replace(pair, f"{pair[0]} {pair[1]}")
    return shown


def identifier(name: str) -> str:
    """Return a policy's name as part of an identifier: lower-case ASCII letters, digits, underscores."""
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in name.lower())
    return kept[:40].strip("_") or "policy"


def header(model: Model, target: str) -> list[str]:
    """Return what a reader of the generated file must know, as lines for its comment."""
    policy = model.policy
    lines = [
        f"Policy {policy.name}: {policy.description}" if policy.description else f"Policy {policy.name}",
        f"Made by policyfactory {__version__}, export --to {target}; make it again rather than edit it.",
        "",
        *_folded("score = ", policy.formula),
        "The job with the LOWER score runs first; ties go by submit time, then by job id.",
        *(f"  {name}: {VARIABLES[name]}" for name in VARIABLES if name in policy.variables),
        *_epoch_lines(policy),
        "No value (0/0, logarithm of a negative number) becomes +inf: runs last. log10(0) is -inf: runs first.",
    ]
    if not policy.is_static:
        lines.append("The score changes while a job waits: compute it again at every scheduling pass.")
    if policy.threshold != float("inf"):
        lines.append(
            f"Jobs that have waited longer than {format_duration(policy.threshold)} go first, in submit order."
        )
    if policy.source:
        lines.append(f"Source: {policy.source}")
    command = model.provenance.get("command")
    if isinstance(command, str):
        lines.append(f"Model made by: {command[:500]}")
    return [ascii_text(line) for line in lines]


def _epoch_lines(policy: Policy) -> list[str]:
    return [f"Epoch: {policy.epoch.describe()}."] if "r" in policy.variables else []


def _folded(start: str, formula: str) -> list[str]:
    """Return the formula in lines of readable width, broken at blanks."""
    lines = [start]
    for word in formula.split(" "):
        if len(lines[-1]) + len(word) > _WIDTH:
            lines.append("    ")
        lines[-1] += word + " "
    return [line.rstrip() for line in lines]
