"""Small parts of the tables of a report."""

from __future__ import annotations

from collections.abc import Sequence

from policyfactory.evaluate.report.html.text import anchors
from policyfactory.evaluate.report.sections import Column

__all__ = ["file_stems", "policy_column"]


def file_stems(names: Sequence[str]) -> list[str]:
    """Return a stem of a file for each name: lower-case letters, digits and hyphens, all distinct."""
    return anchors(names)


def policy_column() -> Column:
    """Return the column of the policies' names."""
    return Column("policy")
