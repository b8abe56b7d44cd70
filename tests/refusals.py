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
# A cure is what to do, in a clause of its own, or what would have been right. That nothing was done is none.
_DO = """
    add ask change check choose clean combine convert correct count create cut declare delete describe do download
    draw drop evaluate explain export fit fix free generate give hand import install keep leave let look lower make
    mend move name omit pass pick print put quote read remove rename repair replace return round run save say see
    select set shorten simplify sort split start state step take test train try unpack update upgrade use wait write
"""
_RIGHT = (
    r"did you mean|\?$|\b(expected|known|needed|such as|like|instead|must|needs?|takes?|only|leave (it|them) out)\b",
    r"\b(at (most|least)|outside \S+ to|from \d\S* to|is for|are for|under|(is|are) (an? (whole )?number|written))\b",
    r"\(metrics: |\b(shows|prints|makes|says) (all|one|the|what)\b",
    # "; it has FCFS, SAF", "; inputs are formulas in p and q"
    r"[;?] (?!this|no)[^;:]*?\b(has|have|is|are|can|measures|begins|brings|were)\b(?! (no|not|unknown|got)\b)",
)
_CURE = re.compile(
    rf"([;:,(?.] |\b(and|or|to|then|first) )({'|'.join(_DO.split())})\b|{'|'.join(_RIGHT)}", re.IGNORECASE
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
