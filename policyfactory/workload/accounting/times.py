"""Times in accounting logs: zones, hours that come twice when summer time ends, durations as Slurm writes them."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import itertools
import os
import re
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.text import parse_duration
from policyfactory.workload.header import printable

# What a column of times has where there is none, where the text is none, and where it can mean two.
NO_TIME, UNREADABLE, AMBIGUOUS = -1, -2, -3

# What Slurm prints where there is no time (22.05.8, seen).
_NO_TIME = frozenset({"", "Unknown", "None", "N/A", "NONE", "(null)", "0"})
_DURATION = re.compile(r"(?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,5}))?(?::(\d{1,5}))?(?:\.\d{1,9})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?(Z|[+-]\d{2}:\d{2})?", re.ASCII)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(Z|[+-]\d{2}:?\d{2})?", re.ASCII)
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
# Readings are an hour apart, or half an hour on Lord Howe Island.
_TOLERANCE = 300
# Beyond all calendars; the table of records takes it as unknown, and counts it.
_LATEST = 1 << 62
# Dates as Slurm prints them, one after the other; pandas alone would take other forms too.
_DATES = re.compile(r"(?:[12]\d{3}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})+", re.ASCII)
_DATE_LENGTH = 19
# For fewer dates pandas is not loaded.
_MANY = 1000


def find_zone(name: str) -> dt.tzinfo:
    """Return the time zone called ``name``, for example ``Europe/Berlin``.

    Raises
    ------
    UsageError
        If this computer knows none of that name.
    """
    try:
        if not _ZONE.fullmatch(name):
            # Whatever else it is, zoneinfo would look for a module or a file of that name.
            raise ValueError(name)
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"--time-zone {printable(name, 60)!r}: no such time zone on this computer; write for example "
            "Europe/Berlin or UTC (timedatectl list-timezones prints the names)"
        ) from None


def machine_zone() -> tuple[dt.tzinfo, str]:
    """Return this machine's time zone and its name, with its summer time.

    Raises
    ------
    UsageError
        If the variable TZ is set to what is no zone's name.
    """
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name:
        target = os.path.realpath("/etc/localtime")
        name = target.partition("/zoneinfo/")[2].removeprefix("posix/")
    if not name:
        return dt.UTC, "UTC"
    if name.startswith("/"):
        name = Path(name).as_posix().partition("/zoneinfo/")[2]
    try:
        return zoneinfo.ZoneInfo(name), name
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"this machine's time zone {printable(name, 60)!r} is not known; say where the log is from with --time-zone"
        ) from None


def parse_date(text: str, zone: dt.tzinfo, option: str) -> int:
    """Return the Unix time of a date ``2026-03-01[T12:00[:00]]`` in ``zone``, or with an offset of its own.

    Unix seconds are taken as they are; eight digits are refused, as they may be meant as a date.

    Raises
    ------
    UsageError
        If it is none.
    """
    clean = text.strip()
    if clean.isascii() and clean.isdigit() and len(clean) <= 12 and len(clean) != 8:
        return int(clean)
    try:
        if not _DATE.fullmatch(clean):
            raise ValueError
        moment = dt.datetime.fromisoformat(clean)
    except ValueError as error:
        why = f" ({error})" if str(error) else ""
        raise UsageError(
            f"{option} {printable(text, 40)!r}: no such date{why}; write for example 2026-11-20, "
            "2026-11-20T16:00, or Unix seconds"
        ) from None
    return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).timestamp())


def shown(seconds: int, zone: dt.tzinfo) -> str:
    """Return a Unix time as a date and time of day in ``zone``; one beyond all calendars as its number."""
    try:
        return dt.datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%d %H:%M:%S %Z")
    except (ValueError, OverflowError, OSError):
        return f"second {seconds}"


def until_midnight(seconds: int, zone: dt.tzinfo) -> int:
    """Return how many seconds (at least 1) the day of a Unix time still has in ``zone``."""
    now = dt.datetime.fromtimestamp(seconds, zone)
    tomorrow = (now + dt.timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return max(round((tomorrow - now).total_seconds()), 1)


def duration(text: str) -> int | None:
    """Return the seconds of a duration as Slurm reads and prints it, None if it is none.

    ``minutes``, ``minutes:seconds``, ``hours:minutes:seconds``, ``days-hours``, ``days-hours:minutes``,
    ``days-hours:minutes:seconds`` (man page of sbatch, option ``--time``); parts of a second are cut off.
    """
    match = _DURATION.fullmatch(text)
    if not match:
        return None
    days, *rest = match.groups()
    parts = [int(part) for part in rest if part is not None]
    if days is not None:
        hours, minutes, seconds = [*parts, 0, 0][:3]
        return int(days) * 86400 + hours * 3600 + minutes * 60 + seconds
    if len(parts) == 3:
        return parts[0] * 3600 + parts[1] * 60 + parts[2]
    return parts[0] * 60 + (parts[1] if len(parts) == 2 else 0)


def given_duration(text: str, *, unit: bool, minutes: bool) -> float | None:
    """Return the seconds of ``2h30m`` or of a time as Slurm writes it; None of what is neither.

    ``unit``: a number alone is none; ``minutes``: ``10:00`` is minutes and seconds, as for Slurm, and else none.
    """
    if ":" in text or "-" in text:
        return duration(text) if minutes or text.count(":") == 2 or "-" in text else None
    with contextlib.suppress(UsageError):
        return parse_duration(text, unit=unit)
    return None


class Clock:
    """Reads times: Unix seconds, or a date and time of day in a zone.

    Parameters
    ----------
    zone : tzinfo
        Zone of times that have none.

    Attributes
    ----------
    used : bool
        A time was read that needed the zone: a log of Unix seconds never does.
    """

    def __init__(self, zone: dt.tzinfo = dt.UTC) -> None:
        self.zone, self.used = zone, False

    def read(self, text: str) -> tuple[int, ...]:
        """Return the Unix times that ``text`` can mean.

        Returns
        -------
        tuple of int
            None at all: the log has no time there. One: that is it. Two, the first earlier: an hour that comes
            twice, when summer time ends. Two, the first later: a time that never was, since clocks had been put
            forward; the first is that of a clock nobody had put forward.

        Raises
        ------
        ValueError
            If it is no time.
        """
        if text.isdigit() and text != "0":
            return (int(text),)
        if text in _NO_TIME:
            return ()
        if not _ISO.fullmatch(text):
            raise ValueError(text)
        if len(text) > 19:
            return (int(dt.datetime.fromisoformat(text).timestamp()),)
        minute, seconds = _minute(text[:16], self.zone), int(text[17:])
        self.used = True
        if seconds > 60:
            raise ValueError(text)
        return tuple([start + seconds for start in minute])

    def column(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the Unix time of each of many texts, or `NO_TIME`, `UNREADABLE` or `AMBIGUOUS`."""
        numbers = np.full(len(texts), NO_TIME, dtype=np.int64)
        known = np.array([text not in _NO_TIME for text in texts], dtype=bool)
        numbers[known] = self._numbers(list(itertools.compress(texts, known)))
        return numbers

    def _number(self, text: str) -> int:
        try:
            times = self.read(text)
        except ValueError:
            return UNREADABLE
        return AMBIGUOUS if len(times) > 1 else max(NO_TIME, min(times[0], _LATEST))

    def _numbers(self, texts: list[str]) -> NDArray[np.int64] | list[int]:
        """Return the time of each text that says one, many together where all are of one form."""
        numbers = whole_numbers(texts)
        if numbers is not None:
            return numbers
        if len(texts) < _MANY or set(map(len, texts)) != {_DATE_LENGTH} or not _DATES.fullmatch("".join(texts)):
            return [self._number(text) for text in texts]
        import pandas as pd

        self.used = True
        dates = pd.to_datetime(texts, format="%Y-%m-%dT%H:%M:%S", errors="coerce")
        times = dates.tz_localize(self.zone, ambiguous="NaT", nonexistent="NaT")
        numbers = np.array(np.maximum(times.as_unit("s").asi8, NO_TIME))
        for row in np.flatnonzero(times.isna()).tolist():
            numbers[row] = self._number(texts[row])
        return numbers


# Times of a log stand close together: most share their minute with many others.
@functools.lru_cache(maxsize=1 << 16)
def _minute(text: str, zone: dt.tzinfo) -> tuple[int, ...]:
    moment = dt.datetime.fromisoformat(text).replace(tzinfo=zone)
    first, second = int(moment.timestamp()), int(moment.replace(fold=1).timestamp())
    return (first,) if first == second else (first, second)


def whole_numbers(texts: Sequence[str]) -> NDArray[np.int64] | None:
    """Return the numbers of texts that are all digits, None if one is something else or beyond 64 bits."""
    joined = "".join(texts)
    if not (joined.isascii() and joined.isdigit()) or "" in texts:
        return np.empty(0, dtype=np.int64) if not len(texts) else None
    try:
        return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
    except (OverflowError, ValueError):
        return None


def settle(times: Sequence[tuple[int, ...]], held: int | None) -> tuple[list[int | None], str]:
    """Choose among times that can mean two.

    Parameters
    ----------
    times : sequence of tuple
        What `Clock.read` says of submit, start and end.
    held : int or None
        Seconds from start to end, by the log: run time and suspended time.

    Returns
    -------
    list of int or None
        The three times.
    str
        ``"settled"``: the run time and the order of the times leave one choice; ``"guessed"``: they do not, and the
        earlier one is taken; ``"never"``: one of them is a time that never was.
    """
    choices: list[list[int | None]] = [[*sorted(time)] or [None] for time in times]
    never = any(len(time) == 2 and time[0] > time[1] for time in times)
    readings: list[list[int | None]] = []
    for submit, start, end in itertools.product(*choices):
        if submit is not None and start is not None and start < submit:
            continue
        if start is not None and end is not None:
            apart = 0 if held is None else abs(end - start - held)
            if end < start or apart > _TOLERANCE:
                continue
        readings.append([submit, start, end])
    if never:
        return (readings[0] if readings else [choice[-1] for choice in choices]), "never"
    if not readings:
        return [choice[0] for choice in choices], "guessed"
    return readings[0], "settled" if len(readings) == 1 else "guessed"


def settle_rows(
    columns: Mapping[str, NDArray[np.int64]],
    texts: Callable[[str], Sequence[str]],
    held: NDArray[np.int64],
    rows: NDArray[np.bool_],
    clock: Clock,
) -> list[tuple[int, str]]:
    """Choose among times that can mean two, in some rows, and return which rows and how each was settled.

    Parameters
    ----------
    columns : mapping of str to int64 array (n,)
        Times, as `Clock.column` gives them; changed. Of those beside submit, start and end the first reading is taken.
    texts : callable
        Gives the cells of a column.
    held : int64 array (n,)
        Seconds from start to end, by the log; -1 where it does not say.
    rows : bool array (n,)
        Which rows.
    clock : Clock
        Reads the cells.
    """
    settled = []
    for row in np.flatnonzero(rows).tolist():
        readings = {
            name: clock.read(texts(name)[row]) if column[row] == AMBIGUOUS else tuple(column[row : row + 1].tolist())
            for name, column in columns.items()
        }
        readings = {name: () if times == (NO_TIME,) else times for name, times in readings.items()}
        three = [readings.get(name, ()) for name in ("submit", "start", "end")]
        chosen, how = settle(three, None if held[row] < 0 else int(held[row]))
        first = {name: times[0] if times else None for name, times in readings.items()}
        for name, time in (first | dict(zip(("submit", "start", "end"), chosen, strict=True))).items():
            if name in columns:
                columns[name][row] = NO_TIME if time is None else time
        settled.append((row, how))
    return settled
