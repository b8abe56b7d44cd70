"""The one property of all messages: they name the value, its place and a cure, and are short.

What a test pins of a message are facts, not its sentence: ``refused(UsageError, "--from soon 30d", parse, "soon")``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from policyfactory.core.errors import PolicyfactoryError

LONGEST = 1200
# A cure is a second clause, a question, or what would have been right.
_CURE = re.compile(
    r"[;?]|--\w|\b(expected|outside|known|written|needed|such as|at (most|least)|there (is|are))\b"
    r"|\b(must|needs?|takes?|give|use|write|choose)\b"
)
_INNARDS = re.compile(r"Traceback|\bat 0x|PosixPath\(|\bnp\.\w+\(|<(class|function|module) ")


def named(fact: str, message: str) -> bool:
    """Return whether a fact is in a message, and no part of another word or number."""
    return re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(fact)}(?!\w|[.,]\d)", message) is not None


def tell(message: str, facts: str, *, cure: bool = True) -> None:
    """Assert that a message has all facts (parted by white space), a cure, and nothing from inside the program."""
    assert not (lost := [fact for fact in facts.split() if not named(fact, message)]), f"{lost} not in: {message}"
    assert _CURE.search(message) or not cure, f"no cure in: {message}"
    assert not _INNARDS.search(message), message
    assert len(message) <= LONGEST, message


@contextmanager
def refusal(
    error: type[PolicyfactoryError] | tuple[type[PolicyfactoryError], ...], facts: str, *, cure: bool = True
) -> Iterator[pytest.ExceptionInfo[PolicyfactoryError]]:
    """Expect an error of the project whose message tells the facts."""
    with pytest.raises(error) as caught:
        yield caught
    tell(str(caught.value), facts, cure=cure)


def refused(error: type[PolicyfactoryError], facts: str, call: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    """Expect that a call is refused with the facts; return the message."""
    with refusal(error, facts) as caught:
        call(*args, **kwargs)
    return str(caught.value)
