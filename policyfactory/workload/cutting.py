"""Cutting a log line by line: the windows of `policyfactory.workload.windows`, with all 18 fields kept."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import re

import numpy as np

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.units import format_duration, parse_duration
from policyfactory.workload.derive import derive, site_clock
from policyfactory.workload.swf.header import printable
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import WindowSpec, slices_by_jobs, slices_by_time, slices_sc17, too_few

__all__ = ["cut_between", "cut_windows", "in_order", "parse_moment"]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?(Z|[+-]\d{2}:\d{2})?")


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
    if spec.rule == "jobs":
        slices = slices_by_jobs(log.submit, spec.jobs, spec.count)
    elif spec.rule == "sc17":
        slices = slices_sc17(log.submit, spec.length, spec.count)
    else:
        slices = slices_by_time(log.submit, spec.length, spec.count)
    if len(slices) < (spec.count or 1):
        span = format_duration(float(log.submit[-1] - log.submit[0]))
        raise WorkloadError(too_few(printable(log.path, 300), spec, len(slices), f"{len(log):,} jobs in {span}"))
    digits = max(2, len(str(len(slices))))
    return [
        _piece(log, rows, f"window {number} of {len(slices)}, {spec}, cut by policyfactory", f"-w{number:0{digits}}")
        for number, rows in enumerate(slices, start=1)
    ]


def _piece(log: SwfLog, rows: slice, note: str, suffix: str = "") -> SwfLog:
    zero = math.floor(log.submit[rows.start])
    piece = derive(log, rows, shift=zero, note=note)
    return dataclasses.replace(piece, name=f"{log.name}{suffix}")


def cut_between(
    log: SwfLog, *, start: str | None = None, end: str | None = None, skip: int = 0, jobs: int | None = None
) -> SwfLog:
    """Return the jobs submitted from ``start`` on and before ``end``, and of these ``jobs`` after the first ``skip``.

    Parameters
    ----------
    log : SwfLog
        In submit order.
    start, end : str, optional
        A duration after the first job, or a date on the clock of the site (see `parse_moment`).
    skip, jobs : int
        Cut by number.

    Raises
    ------
    UsageError
        If a time cannot be read, or a date is given for a log without one.
    WorkloadError
        If no job is left.
    """
    first = 0 if start is None else int(np.searchsorted(log.submit, parse_moment(log, start, "--from")))
    last = len(log) if end is None else int(np.searchsorted(log.submit, parse_moment(log, end, "--to")))
    first += skip
    if jobs is not None:
        last = min(last, first + jobs)
    if first >= last:
        span = format_duration(float(log.submit[-1] - log.submit[0]))
        raise WorkloadError(
            f"{printable(log.path, 300)}: no job is left; the log has {len(log):,} jobs in {span}: choose a later "
            "--to, an earlier --from or a smaller --skip"
        )
    return _piece(log, slice(first, last), "cut by policyfactory workload window")


def parse_moment(log: SwfLog, text: str, option: str) -> float:
    """Return the second of the log's clock that ``text`` means.

    Parameters
    ----------
    log : SwfLog
        In submit order.
    text : str
        A duration after the first job (``30d``), or a date and time as ISO 8601 has it; without an offset it is on
        the clock of the site.
    option : str
        For messages.

    Raises
    ------
    UsageError
        If it is neither, or is a date and the header has no UnixStartTime.
    """
    clean = text.strip()
    if not _DATE.fullmatch(clean):
        try:
            return float(log.submit[0]) + parse_duration(clean)
        except UsageError:
            raise UsageError(
                f"{option} {text!r}: write a time after the first job (30d, 12h) or a date (2000-05-01T12:00)"
            ) from None
    if log.header.unix_start is None:
        raise UsageError(
            f"{option} {text!r}: the header of {log.name} has no UnixStartTime; write a time after the first job (30d)"
        )
    try:
        moment = dt.datetime.fromisoformat(clean)
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: no such date ({error}); write for example 2000-05-01T12:00") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=site_clock(log.header)[0] or dt.UTC)
    return moment.timestamp() - log.header.unix_start
