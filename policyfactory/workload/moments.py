"""Moments of a log, as people write them: a time after its first job, or a date on the clock of its site."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo

from policyfactory.core.errors import UsageError
from policyfactory.core.units import parse_duration
from policyfactory.workload.header import Header, printable

__all__ = ["second_of", "site_clock", "zone"]

_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?(Z|[+-]\d{2}:\d{2})?)?")


def zone(name: str | None) -> tuple[dt.tzinfo | None, str]:
    """Return the time zone of a name and the name, or None and why there is none."""
    if name is None:
        return None, "the header has no time zone"
    try:
        return zoneinfo.ZoneInfo(name), name
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None, f"time zone {printable(name, 40)} is not known to this computer"


def site_clock(header: Header) -> tuple[dt.tzinfo | None, str]:
    """Return the clock of a log's site and its name, or None and why there is none.

    TimeZoneString comes first, then the deprecated offset TimeZone (which knows no summer time).
    """
    clock, words = zone(header.time_zone)
    if clock is not None or header.utc_offset is None:
        return clock, words
    return dt.timezone(dt.timedelta(seconds=header.utc_offset)), f"UTC{header.utc_offset / 3600:+g} h"


def second_of(
    text: str, what: str, *, log: str, first: float, unix_start: int | None, clock: dt.tzinfo | None
) -> float:
    """Return the second of a log's clock that ``text`` means.

    Parameters
    ----------
    text : str
        A duration after the first job (``30d``), or a month, date, or date and time as ISO 8601 has it; without an
        offset it is on the clock of the site.
    what : str
        What is given, for messages: ``--from``.
    log : str
        Name of the log, for messages.
    first : float
        Submission of the first job.
    unix_start : int or None
        Unix time of the clock's 0.
    clock : tzinfo or None
        The clock of the site; None: UTC.

    Raises
    ------
    UsageError
        If it is neither, or is a date and the log has none.
    """
    clean = text.strip()
    if not _DATE.fullmatch(clean):
        try:
            return first + parse_duration(clean)
        except UsageError:
            raise UsageError(
                f"{what} {text!r}: write a time after the first job (30d, 12h) or a date (2000-05-01T12:00)"
            ) from None
    if unix_start is None:
        raise UsageError(
            f"{what} {text!r}: the header of {log} has no UnixStartTime; write a time after the first job (30d)"
        )
    try:
        moment = dt.datetime.fromisoformat(clean if len(clean) > len("2000-05") else f"{clean}-01")
    except ValueError as error:
        raise UsageError(f"{what} {text!r}: no such date ({error}); write for example 2000-05-01T12:00") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=clock or dt.UTC)
    return moment.timestamp() - unix_start
