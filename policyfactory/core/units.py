"""Durations and quantities as people write them: ``15d``, ``20h``, ``2h30m``, ``90``; and back."""

from __future__ import annotations

import math
import re

from policyfactory.core.errors import UsageError

__all__ = ["DAY", "HOUR", "MINUTE", "WEEK", "duration_text", "format_duration", "parse_duration"]

MINUTE = 60
HOUR = 3600
DAY = 86400
WEEK = 604800

_UNITS = {"w": WEEK, "d": DAY, "h": HOUR, "m": MINUTE, "s": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)([wdhms])")
_LONGEST = 10**15


def parse_duration(text: str, *, unit: bool = False) -> int | float:
    """Return the seconds of ``text``; ``inf`` (also ``none``) is ``math.inf``.

    Parameters
    ----------
    text : str
        A number of seconds, or numbers with units.
    unit : bool
        Refuse a number without a unit: where nobody means seconds, it is a slip.

    Raises
    ------
    UsageError
        If the text is no duration, or is not a whole number of seconds.
    """
    clean = text.strip().lower()
    shown = repr(text if len(text) <= 60 else text[:60] + "...")
    if clean in {"inf", "none"}:
        return math.inf
    if clean.isascii() and clean.isdigit() and len(clean) <= 15:
        if unit and int(clean):
            raise UsageError(
                f"{shown} has no unit; write {clean}m for minutes, {clean}h for hours, {clean}d for days, "
                f"{clean}s for seconds"
            )
        return int(clean)
    parts = _PART.findall(clean) if len(clean) <= 60 else []
    if not parts or "".join(number + unit for number, unit in parts) != clean:
        raise UsageError(f"{shown} is not a duration; write seconds or for example 15d, 20h, 2h30m, 1w, inf")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds != int(seconds):
        raise UsageError(f"duration {shown} is {seconds} s, which is not a whole number of seconds")
    return int(seconds)


def duration_text(name: str, seconds: float) -> str:
    """Return a number of seconds as `parse_duration` reads it: ``7200s``, ``inf``.

    Parameters
    ----------
    name : str
        What the time is, for messages.
    seconds : float
        A whole number from 0 to below 1e15, or inf.

    Raises
    ------
    UsageError
        If it is anything else.
    """
    if seconds == math.inf:
        return "inf"
    if not 0 <= seconds < _LONGEST or seconds != int(seconds):
        shown = "of hundreds of digits" if isinstance(seconds, int) and abs(seconds) > 10**300 else repr(seconds)
        raise UsageError(
            f"{name} {shown}: expected whole seconds, from 0 to below 1e15; write for example 7200 or '2h'"
        )
    return f"{int(seconds)}s"


def format_duration(seconds: float) -> str:
    """Return ``seconds`` with its two largest units, for example ``9d 14h``, ``3m 20s``, ``0s``."""
    if math.isinf(seconds):
        return "no limit"
    rest = round(abs(seconds))
    words = []
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count}{unit}")
    text = " ".join(words[:2]) or "0s"
    return f"-{text}" if seconds < 0 else text
