"""The values of a site file: how each kind is written, and read back with what was expected in its message."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.text import shortened
from policyfactory.core.units import parse_duration
from policyfactory.site.hostlist import count_hosts
from policyfactory.workload.accounting.times import duration

__all__ = [
    "FLAG",
    "HOSTS",
    "LATEST",
    "LONGEST_TEXT",
    "LONGEST_TIME",
    "MEMORY",
    "MOMENT",
    "MOST_CORES",
    "MOST_GPUS",
    "MOST_NAMES",
    "NAMES",
    "NUMBER",
    "NUMBERS",
    "SECONDS",
    "SHARES",
    "TEXT",
    "Kind",
    "choice",
    "count",
    "parse_memory",
    "read_value",
]

_LARGEST = 2**53  # beyond, a float is no longer exact
LATEST = 1 << 40  # Unix seconds: beyond all calendars
LONGEST_TEXT = 10_000
LONGEST_TIME = 1 << 33  # seconds: more than 200 years
MOST_CORES = 1_000_000  # of a node
MOST_GPUS = 10_000  # of a node
MOST_NAMES = 100_000
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([KMGTP]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_MB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_UNLIMITED = {"unlimited", "infinite", "inf"}


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value.

    Parameters
    ----------
    read : function of a value of TOML
        Returns the value of the model; a ValueError says what was expected instead.
    write : function of a value of the model
        Returns the value for TOML.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


class _WrongError(ValueError):
    """Says what is wrong with a value, and not what was expected."""


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
        raise ValueError(f"a text of at most {LONGEST_TEXT:,} printable characters")
    return value


def _hosts(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError('a host list, for example "cn[001-100]"')
    if value.upper() == "ALL":
        return "ALL"
    try:
        count_hosts(value)
    except UsageError as error:
        raise _WrongError(str(error)) from None
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_NAMES:
        raise ValueError(f'a list of at most {MOST_NAMES:,} texts, for example ["normal", "long"]')
    return tuple(_text(name) for name in value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise ValueError("a number")
    return float(value)


def _numbers(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping) or len(value) > 100:
        raise ValueError('a table of numbers, for example {cpu = 1000, "gres/gpu" = 3000}')
    return {_text(name): _number(number) for name, number in value.items()}


def _shares(value: Any) -> float:
    if value == "parent":
        return math.nan
    try:
        shares = _number(value)
    except ValueError:
        shares = -1.0
    if shares < 0:
        raise ValueError('a number of shares from 0, or "parent"')
    return shares


def _seconds(value: Any) -> float:
    expected = (
        'a time with its unit: "24h", "90m", "30s", "7d", "24:00:00", "1-00:00:00" or "unlimited"'
        f"; at most {LONGEST_TIME // 86400}d"
    )
    if value == 0 and not isinstance(value, bool):
        return 0.0
    if not isinstance(value, str):
        raise ValueError(expected)
    clean = value.strip().lower()
    if clean in _UNLIMITED:
        return math.inf
    if ":" in clean or "-" in clean:
        # 10:00 would be minutes and seconds to Slurm, and hours to most people.
        seconds: float | None = duration(clean) if clean.count(":") == 2 or "-" in clean else None
    else:
        try:
            seconds = parse_duration(clean, unit=True)
        except UsageError:
            seconds = None
    if seconds is None or not seconds <= LONGEST_TIME:
        raise ValueError(expected)
    return float(seconds)


def _write_seconds(value: float) -> Any:
    if math.isinf(value):
        return "unlimited"
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if value and value % size == 0:
            return f"{int(value // size)}{unit}"
    return f"{int(value)}s"


def parse_memory(text: str) -> int | None:
    """Return the MB of a size such as ``192G``, ``64000`` or ``1.5T``, rounded up; None if it is none."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        return None
    megabytes = math.ceil(float(match[1]) * _MB[match[2].upper()])
    return megabytes if megabytes <= _LARGEST else None


def _memory(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST:
        return value
    megabytes = parse_memory(value) if isinstance(value, str) else None
    if megabytes is None:
        raise ValueError(f'a size such as "192G", or a whole number of MB; at most {_LARGEST // 1024**3}P')
    return megabytes


def _write_memory(value: float) -> Any:
    for unit, size in (("T", 1024**2), ("G", 1024)):
        if value and value % size == 0:
            return f"{int(value // size)}{unit}"
    return int(value)


def _moment(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LATEST:
        return float(value)
    try:
        moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, dt.datetime) or moment.tzinfo is None:
        raise ValueError('a date and time of day with its zone, "2026-03-01T08:00:00+01:00", or Unix seconds')
    return moment.timestamp()


def _write_moment(value: float) -> Any:
    if math.isinf(value):
        return None
    try:
        moment = dt.datetime.fromtimestamp(int(value), dt.UTC)
    except (ValueError, OverflowError, OSError):
        return int(value)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def count(low: int = 0, high: int = _LARGEST, *, unlimited: bool = False) -> Kind:
    """Return the kind of whole numbers from ``low`` to ``high``; with ``unlimited``, also of that word."""
    word = ', or "unlimited"' if unlimited else ""

    def read(value: Any) -> float:
        if unlimited and isinstance(value, str) and value.lower() in _UNLIMITED:
            return math.inf
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"a whole number from {low:,} to {high:,}{word}")
        return value

    return Kind(read, lambda value: "unlimited" if math.isinf(value) else int(value))


def choice(words: Sequence[str]) -> Kind:
    """Return the kind of one of several words."""

    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return str(value)

    return Kind(read, _same)


TEXT = Kind(_text, _same)
HOSTS = Kind(_hosts, _same)
FLAG = Kind(_flag, _same)
NAMES = Kind(_names, list)
NUMBER = Kind(_number, lambda value: int(value) if value == int(value) else value)
NUMBERS = Kind(_numbers, lambda value: {name: NUMBER.write(number) for name, number in value.items()})
SHARES = Kind(_shares, lambda value: "parent" if math.isnan(value) else NUMBER.write(value))
SECONDS = Kind(_seconds, _write_seconds)
MEMORY = Kind(_memory, _write_memory)
MOMENT = Kind(_moment, _write_moment)


def read_value(kind: Kind, value: Any, where: str) -> Any:
    """Return a value of the model.

    Raises
    ------
    SiteError
        If it is not of that kind.
    """
    try:
        return kind.read(value)
    except _WrongError as error:
        raise SiteError(f"{where}: {error}") from None
    except ValueError as error:
        given = shortened(repr(value), 60)
        raise SiteError(f"{where} is {given}; expected {error}") from None
