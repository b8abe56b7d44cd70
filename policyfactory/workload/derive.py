"""A log made from another one: fewer lines, times from a new zero, and a header that says so."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
from typing import Any

import numpy as np

from policyfactory.workload.moments import site_clock
from policyfactory.workload.swf.log import SwfLog

__all__ = ["derive"]


def derive(log: SwfLog, rows: Any, *, shift: int, note: str) -> SwfLog:
    """Return the lines ``rows`` with times counted from ``shift`` s later.

    As in the archive's cleaned files, MaxJobs stays what it was and a note says how many jobs were removed, so
    that the three numbers can be checked against each other.

    Parameters
    ----------
    log : SwfLog
        Where the lines are from.
    rows : slice, mask or indices
        Which lines.
    shift : int
        Second of the log's clock that becomes 0.
    note : str
        What was done, for the header.
    """
    chosen = log.select(rows)
    submit = np.where(chosen.submit >= 0, chosen.submit - shift, chosen.submit)
    values = {"MaxRecords": str(len(chosen))}
    if log.header.positive("MaxJobs") is None:
        values["MaxJobs"] = str(len(log))
    unix_start = log.header.unix_start
    if unix_start is not None:
        values["UnixStartTime"] = str(unix_start + shift)
        clock, _ = site_clock(log.header)
        known = chosen.submit >= 0
        if known.any():
            end = chosen.submit[known] + np.maximum(chosen.wait[known], 0) + np.maximum(chosen.run_time[known], 0)
            values |= _dates({"StartTime": unix_start + shift, "EndTime": unix_start + int(end.max())}, clock)
    notes = [f"{note} ({len(log) - len(chosen)} jobs removed)"]
    if shift:
        notes.append(f"time 0 is second {shift} of the original log")
    return dataclasses.replace(chosen, submit=submit, header=log.header.replace(values, tuple(notes)))


def _dates(unix: dict[str, int], clock: dt.tzinfo | None) -> dict[str, str]:
    """Return times as the headers of the archive have them; a time beyond all calendars is left out."""
    dates = {}
    for label, seconds in unix.items():
        with contextlib.suppress(ValueError, OverflowError, OSError):
            moment = dt.datetime.fromtimestamp(seconds, clock or dt.UTC)
            dates[label] = moment.strftime("%a %b %d %H:%M:%S %Z %Y")
    return dates
