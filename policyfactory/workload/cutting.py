"""Cutting a log line by line: the windows of `policyfactory.workload.windows`, with all 18 fields kept."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from policyfactory.core.errors import WorkloadError
from policyfactory.core.units import format_duration
from policyfactory.workload.derive import derive
from policyfactory.workload.header import printable
from policyfactory.workload.moments import second_of, site_clock
from policyfactory.workload.swf.log import SwfLog
from policyfactory.workload.windows import WindowSpec, slices_of

__all__ = ["cut_between", "cut_windows", "in_order"]


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
    return _piece(log, slice(first, last), "cut by policyfactory workload window")


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
