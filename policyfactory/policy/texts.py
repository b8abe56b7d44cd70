"""The texts of a policy: what tables, reports and scripts can print."""

from __future__ import annotations

from policyfactory.core.errors import UsageError

__all__ = ["check_texts"]

_LONGEST_NAME = 100
_LONGEST_TEXT = 2000


def check_texts(name: str, description: str, source: str) -> None:
    """Refuse a name, or words about a policy, that could not be printed in one line.

    Raises
    ------
    UsageError
        Naming which.
    """
    if not (0 < len(name) <= _LONGEST_NAME and name.isprintable() and name.strip() == name):
        raise UsageError(
            f"the policy name {name[:_LONGEST_NAME]!r} cannot be used; "
            f"give 1 to {_LONGEST_NAME} printable characters without blanks around them"
        )
    for field, value in (("description", description), ("source", source)):
        if len(value) > _LONGEST_TEXT or not value.isprintable():
            raise UsageError(
                f"the {field} of policy {name} cannot be used; "
                f"give at most {_LONGEST_TEXT} printable characters in one line"
            )
