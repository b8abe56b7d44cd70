"""Logs made from other ones, all 18 fields kept: fewer lines, times from a new zero, and a header that says so."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import WorkloadError
from policyfactory.core.units import format_duration
from policyfactory.workload.header import printable
from policyfactory.workload.moments import second_of, site_clock
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import WindowSpec, slices_of

__all__ = ["cut_between", "cut_windows", "derive", "in_order", "whole"]


def whole(values: NDArray[Any]) -> Int64Array:
    """Return times as whole seconds, halves rounded up."""
    if values.dtype == np.int64:
        return values
    return np.floor(values + 0.5).astype(np.int64)


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
    extra = dict(chosen.extra)
    if "eligible" in extra:
        eligible = extra["eligible"]
        extra["eligible"] = np.where(eligible >= 0, np.maximum(eligible - shift, 0), -1)
    return dataclasses.replace(chosen, submit=submit, extra=extra, header=log.header.replace(values, tuple(notes)))


def _dates(unix: dict[str, int], clock: dt.tzinfo | None) -> dict[str, str]:
    """Return times as the headers of the archive have them; a time beyond all calendars is left out."""
    dates = {}
    for label, seconds in unix.items():
        with contextlib.suppress(ValueError, OverflowError, OSError):
            moment = dt.datetime.fromtimestamp(seconds, clock or dt.UTC)
            dates[label] = moment.strftime("%a %b %d %H:%M:%S %Z %Y")
    return dates


def in_order(log: SwfLog) -> tuple[SwfLog, int]:
    """Return the log sorted by submit time (ties as in the file), and how many jobs have none and are left out.

    Raises
    ------
    WorkloadError
        If no job has a submit time.
    """
    known = np.flatnonzero(log.submit >= 0)
    if not len(known):
        raise WorkloadError(f"{printable(log.path, 300)}: no job has a submit time; there is nothing to cut")
    rows = known[np.argsort(log.submit[known], kind="stable")]
    return log.select(rows), len(log) - len(known)


def cut_windows(log: SwfLog, spec: WindowSpec) -> list[SwfLog]:
    """Return the windows that ``spec`` asks for, named NAME-w01, NAME-w02, ...

    Parameters
    ----------
    log : SwfLog
        In submit order.
    spec : WindowSpec
        How to cut.

    Raises
    ------
    WorkloadError
        If the log has fewer windows than asked for, or none.
    """
    slices = slices_of(spec, log.submit, printable(log.path, 300))
    digits = max(2, len(str(len(slices))))
    return [
        _cut(log, rows, f"window {number} of {len(slices)}, {spec}, cut by policyfactory", f"-w{number:0{digits}}")
        for number, rows in enumerate(slices, start=1)
    ]


def _cut(log: SwfLog, rows: slice, note: str, suffix: str = "") -> SwfLog:
    zero = math.floor(log.submit[rows.start])
    return dataclasses.replace(derive(log, rows, shift=zero, note=note), name=f"{log.name}{suffix}")


def cut_between(
    log: SwfLog, *, start: str | None = None, end: str | None = None, skip: int = 0, jobs: int | None = None
) -> SwfLog:
    """Return the jobs submitted from ``start`` on and before ``end``, and of these ``jobs`` after the first ``skip``.

    Parameters
    ----------
    log : SwfLog
        In submit order.
    start, end : str, optional
        A duration after the first job, or a date on the clock of the site (see `policyfactory.workload.moments`).
    skip, jobs : int
        Cut by number.

    Raises
    ------
    UsageError
        If a time cannot be read, or a date is given for a log without one.
    WorkloadError
        If no job is left.
    """
    first = 0 if start is None else int(np.searchsorted(log.submit, _second(log, start, "--from")))
    last = len(log) if end is None else int(np.searchsorted(log.submit, _second(log, end, "--to")))
    first += skip
    if jobs is not None:
        last = min(last, first + jobs)
    if first >= last:
        span = format_duration(float(log.submit[-1] - log.submit[0]))
        raise WorkloadError(
            f"{printable(log.path, 300)}: no job is left; the log has {len(log):,} jobs in {span}: choose a later "
            "--to, an earlier --from or a smaller --skip"
        )
    return _cut(log, slice(first, last), "cut by policyfactory workload window")


def _second(log: SwfLog, text: str, option: str) -> float:
    header = log.header
    return second_of(
        text,
        option,
        log=log.name,
        first=float(log.submit[0]),
        unix_start=header.unix_start,
        clock=site_clock(header)[0],
    )
