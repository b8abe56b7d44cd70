"""The values of a site file: how each kind is written, and read back with what was expected in its message."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from policyfactory.core.errors import UsageError
from policyfactory.core.text import shortened
from policyfactory.workload.accounting.times import given_duration
from policyfactory.workload.declared import LARGEST, TEXT, Kind, WrongValueError, count

LATEST = 1 << 40  # Unix seconds: beyond all calendars
LONGEST_TIME = 1 << 33  # seconds: more than 200 years
MOST_CORES = 1_000_000  # of a node
MOST_GPUS = 10_000  # of a node
MOST_THREADS = 256  # of a core
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([KMGTP]?)(?:i?B)?", re.ASCII | re.IGNORECASE)
_MB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_UNLIMITED = {"unlimited", "infinite", "inf"}
_VERSION = re.compile(r"(?:slurm(?:-wlm)?\s+)?(\d{1,2})\.(\d{1,2})(?:[.\-~+]?[A-Za-z0-9.\-~+]{0,30})?", re.ASCII)


def _hosts(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError('a host list, for example "cn[001-100]"')
    if value.upper() == "ALL":
        return "ALL"
    try:
        count_hosts(value)
    except UsageError as error:
        raise WrongValueError(str(error)) from None
    return value


def parse_version(text: str) -> tuple[int, int] | None:
    """Return the number of a version of Slurm, as ``slurm 24.11.5`` or ``24.11``; None if it is none."""
    match = _VERSION.fullmatch(text.strip().lower())
    return None if match is None else (int(match[1]), int(match[2]))


def write_version(number: tuple[int, int]) -> str:
    """Return the number of a version as Slurm writes it."""
    return f"{number[0]}.{number[1]:02}"


def _version(value: Any) -> str:
    number = parse_version(value) if isinstance(value, str) else None
    if number is None:
        raise ValueError('a version of Slurm in quotes, for example "24.11"')
    return write_version(number)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise ValueError("a number")
    return float(value)


def _numbers(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping) or len(value) > 100:
        raise ValueError('a table of numbers, for example {cpu = 1000, "gres/gpu" = 3000}')
    numbers = {TEXT.read(name).lower(): _number(number) for name, number in value.items()}
    if len(numbers) < len(value):
        raise ValueError("each name once, whether CPU or cpu")
    return numbers


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
    # 10:00 would be minutes and seconds to Slurm, and hours to most people.
    seconds = given_duration(clean, unit=True, minutes=False)
    if seconds is None or not seconds <= LONGEST_TIME:
        raise ValueError(expected)
    return float(seconds)


def _in_units(value: float, units: dict[str, int]) -> str:
    return next((f"{int(value // size)}{unit}" for unit, size in units.items() if value and value % size == 0), "")


def _write_seconds(value: float) -> Any:
    if math.isinf(value):
        return "unlimited"
    return _in_units(value, {"d": 86400, "h": 3600, "m": 60}) or f"{int(value)}s"


def parse_memory(text: str) -> int | None:
    """Return the MB of a size such as ``192G``, ``64000`` or ``1.5T``, rounded up; None if it is none."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        return None
    megabytes = math.ceil(float(match[1]) * _MB[match[2].upper()])
    return megabytes if megabytes <= LARGEST else None


def _memory(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
        return value
    megabytes = parse_memory(value) if isinstance(value, str) else None
    if megabytes is None:
        raise ValueError(f'a size such as "192G", or a whole number of MB; at most {LARGEST // 1024**3}P')
    return megabytes


def _write_memory(value: float) -> Any:
    return _in_units(value, {"T": 1024**2, "G": 1024}) or int(value)


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


def _limit(value: Any) -> float:
    if isinstance(value, str) and value.lower() in _UNLIMITED:
        return math.inf
    try:
        return int(COUNT.read(value))
    except ValueError as error:
        raise ValueError(f'{error}, or "unlimited"') from None


COUNT = count()
LIMIT = Kind(_limit, lambda value: "unlimited" if math.isinf(value) else int(value))
WEIGHT = count(0, 2**32 - 1)
HOSTS = Kind(_hosts)
VERSION = Kind(_version)
NUMBER = Kind(_number, lambda value: int(value) if value == int(value) else value)
NUMBERS = Kind(_numbers, lambda value: {name: NUMBER.write(number) for name, number in value.items()})
SHARES = Kind(_shares, lambda value: "parent" if math.isnan(value) else NUMBER.write(value))
SECONDS = Kind(_seconds, _write_seconds)
MEMORY = Kind(_memory, _write_memory)
MOMENT = Kind(_moment, _write_moment)


# Host lists -----------------------------------------------------------------------------------------------------------

# Host lists, as Slurm writes them: ``cn[001-100,200]``, ``r[1-2]n[1-4],login``; expanded and compressed.
#
# The grammar (man page of slurm.conf): names separated by commas; in brackets numbers and ranges of numbers, each of
# which gives a name; its numbers have at least as many digits as the first of their range, zeros included. Several
# brackets give every combination, the last one changing fastest. Beyond Slurm's, a name may go on behind its brackets.


MOST_HOSTS = 200_000
MOST_WRITTEN = 16_000_000  # characters of all names of a list, or of all nodes
MOST_NAMED = 2_000_000  # names in all host lists of a site together, but for those that are written alike

_LONGEST = 4_000_000  # characters: every host of the most written out
_LONGEST_NAME = 1024  # of a host; a name of DNS has at most 253 characters
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_LITERAL = re.compile(r"[A-Za-z0-9_.-]*", re.ASCII)
_NUMBERED = re.compile(r"(.*?)(\d{1,9})(\D*)", re.ASCII | re.DOTALL)


def expand(text: str, *, repeated: bool = False) -> tuple[str, ...]:
    """Return the names of a host list, in its order; none for an empty text.

    Parameters
    ----------
    text : str
        A host list.
    repeated : bool
        Take a name that comes again once, as Slurm does in a partition; without it such a list is refused.

    Raises
    ------
    UsageError
        If it is no host list, names one twice, or more than `MOST_HOSTS`, which are counted before any name is made.
    """
    items, _ = _counted(text)
    names = tuple(name for parts in items for name in _host_names(parts))
    if repeated:
        return tuple(dict.fromkeys(names))
    if len(set(names)) < len(names):
        twice = next(name for name, group in itertools.groupby(sorted(names)) if len(list(group)) > 1)
        raise UsageError(f"host list {_shown(text)} names {twice} twice; name each host once")
    return names


def count_hosts(text: str) -> int:
    """Return how many names a host list has, without making them; one that comes again counts again.

    Raises
    ------
    UsageError
        As `expand`, but for names that come twice.
    """
    return _counted(text)[1]


class Named:
    """Counts the names in many host lists together: a short file can name the same nodes again and again."""

    def __init__(self) -> None:
        self._total = 0

    def add(self, names: int) -> None:
        """Count names.

        Raises
        ------
        UsageError
            If there are too many now.
        """
        self._total += names
        if self._total > MOST_NAMED:
            raise UsageError(f"all host lists up to here name more than {MOST_NAMED:,} nodes together; leave some out")

    def expand(self, text: str, *, repeated: bool = False) -> tuple[str, ...]:
        """Return the names of a host list; parameters and errors are those of `expand`."""
        names = expand(text, repeated=repeated)
        self.add(len(names))
        return names


def compress(names: Iterable[str]) -> str:
    """Return a host list of the names, in their order.

    Parameters
    ----------
    names : iterable of str
        Of hosts, without brackets and commas.
    """
    runs: list[tuple[str, str, list[tuple[str, str]]]] = []
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            runs.append((name, "", []))
            continue
        before, digits, after = match.groups()
        if not runs or not runs[-1][2] or runs[-1][:2] != (before, after):
            runs.append((before, after, [(digits, digits)]))
            continue
        ranges = runs[-1][2]
        first, last = ranges[-1]
        if digits == f"{int(last) + 1:0{len(first)}}":
            ranges[-1] = (first, digits)
        else:
            ranges.append((digits, digits))
    return ",".join(_written(*run) for run in runs)


def _written(before: str, after: str, ranges: list[tuple[str, str]]) -> str:
    if not ranges:
        return before
    texts = [first if first == last else f"{first}-{last}" for first, last in ranges]
    numbers = texts[0] if len(texts) == 1 and "-" not in texts[0] else f"[{','.join(texts)}]"
    return f"{before}{numbers}{after}"


def _items(text: str) -> Iterator[str]:
    """Give the parts between commas that are in no bracket."""
    depth = begin = 0
    for position, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth not in {0, 1}:
            raise UsageError(f"host list {_shown(text)}: a bracket inside another, or one that was not opened")
        if character == "," and not depth:
            yield text[begin:position]
            begin = position + 1
    if depth:
        raise UsageError(f"host list {_shown(text)}: a bracket is not closed; write for example cn[001-100]")
    if text.strip():
        yield text[begin:]


_Part = str | list[tuple[int, int, int]]


def _counted(text: str) -> tuple[list[list[_Part]], int]:
    """Return the parts of each item of a host list, and how many names there are."""
    if len(text) > _LONGEST:
        raise UsageError(f"a host list of {len(text):,} characters; at most {_LONGEST:,} are read")
    items = [_parts(item, text) for item in _items(text)]
    count = written = 0
    for parts in items:
        product = 1
        for part in parts:
            product *= sum(last - first + 1 for first, last, _ in part) if isinstance(part, list) else 1
        count += product
        if count > MOST_HOSTS:
            raise UsageError(f"host list {_shown(text)} names more than {MOST_HOSTS:,} hosts; check its ranges")
        length = _length(parts)
        written += product * length
        if length > _LONGEST_NAME:
            raise UsageError(
                f"host list {_shown(text)} has a name of {length:,} characters; a host's has at most {_LONGEST_NAME:,}"
            )
        if written > MOST_WRITTEN:
            raise UsageError(
                f"host list {_shown(text)}: its names have more than {MOST_WRITTEN:,} characters together; shorten them"
            )
    return items, count


def _length(parts: list[_Part]) -> int:
    """Return the most characters that a name of these parts can have."""
    return sum(
        len(part) if isinstance(part, str) else max(max(width, len(str(last))) for _, last, width in part)
        for part in parts
    )


def _parts(item: str, text: str) -> list[_Part]:
    """Return literals, and of each bracket first and last number and the digits of each range."""
    item = item.strip()
    parts: list[_Part] = []
    for number, piece in enumerate(re.split(r"[\[\]]", item)):
        if number % 2 == 0:
            if not _LITERAL.fullmatch(piece):
                raise UsageError(f"host list {_shown(text)}: {_shown(piece)} is no name; letters, digits, - _ . are")
            parts.append(piece)
            continue
        ranges = []
        for span in piece.split(","):
            match = _RANGE.fullmatch(span.strip())
            if match is None or int(match[2] or match[1]) < int(match[1]):
                raise UsageError(f"host list {_shown(text)}: {_shown(span)} is no range; write for example 001-100")
            ranges.append((int(match[1]), int(match[2] or match[1]), len(match[1])))
        parts.append(ranges)
    if parts == [""]:
        raise UsageError(f"host list {_shown(text)}: a name is empty; is there a comma too many?")
    return parts


def _host_names(parts: list[_Part]) -> Iterator[str]:
    choices = [
        [part]
        if isinstance(part, str)
        else [f"{number:0{width}}" for first, last, width in part for number in range(first, last + 1)]
        for part in parts
    ]
    return map("".join, itertools.product(*choices))


def _shown(text: str) -> str:
    return repr(shortened(text, 60))
