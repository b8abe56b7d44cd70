"""How long jobs waited in the record: over time, by queue, by partition, and whether the machine had room for them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.units import DAY, format_duration
from policyfactory.workload.clock import LONGEST_SPAN
from policyfactory.workload.machine import size_of
from policyfactory.workload.swf.log import SwfLog

__all__ = ["COLUMNS", "LONG_WAIT", "WaitTable", "room_share", "wait_tables"]

LONG_WAIT = 600  # s: a scheduler that has room starts a job sooner
_PERIODS = 12
_GROUPS = 8
_LATEST = 253_370_764_800  # the year 9999: no date is later


@dataclasses.dataclass(frozen=True, slots=True)
class WaitTable:
    """The recorded waits of groups of jobs.

    Parameters
    ----------
    title : str
        What the groups are.
    rows : tuple of dict
        Of each group: its name, its jobs, their share of all jobs and of all work (0 to 1), and of those with a
        recorded wait the mean, the median, 95 % and the longest, s; NaN where none is recorded.
    """

    title: str
    rows: tuple[dict[str, Any], ...]

    def cells(self) -> list[list[str]]:
        """Return the cells of the table."""
        return [
            [
                row["group"],
                f"{row['jobs']:,}",
                f"{row['share_of_jobs']:.1%}".removesuffix("%"),
                f"{row['share_of_work']:.1%}".removesuffix("%"),
                *(_time(row[name]) for name in ("mean", "median", "p95", "longest")),
            ]
            for row in self.rows
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the table as JSON values: None for what is not known."""
        rows = [{k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in self.rows]
        return {"title": self.title, "rows": rows}


COLUMNS = ("", "jobs", "% of jobs", "% of work", "mean wait", "median", "95 % wait at most", "longest")


def _time(seconds: float) -> str:
    return "-" if math.isnan(seconds) else format_duration(float(round(seconds)))


def wait_tables(log: SwfLog) -> tuple[WaitTable, ...]:
    """Return the waits by time, and by queue and partition where the log has several.

    Parameters
    ----------
    log : SwfLog
        One line for each job.
    """
    tables = [_by_time(log)]
    for field, word in (("queue", "queue"), ("partition", "partition")):
        numbers = getattr(log, field)
        if len(np.unique(numbers[numbers >= 0])) > 1:
            tables.append(_by_number(log, numbers, word))
    return tuple(table for table in tables if table is not None)


def _by_time(log: SwfLog) -> WaitTable | None:
    known = log.submit >= 0
    if not known.any() or log.submit.max() > LONGEST_SPAN:
        return None
    first, last = float(log.submit[known].min()), float(log.submit[known].max())
    # Whole weeks, so that each period has as many weekends.
    weeks = max(1, math.ceil((last - first + 1) / (7 * DAY) / _PERIODS))
    length = weeks * 7 * DAY
    period = np.where(known, (log.submit - first) // length, -1).astype(np.int64)
    start = log.header.unix_start
    if start is not None and start + last > _LATEST:
        start = None

    def name(number: int) -> str:
        if start is None:
            return f"day {number * weeks * 7 + 1}"
        return f"{dt.datetime.fromtimestamp(start + first + number * length, dt.UTC):%Y-%m-%d}"

    plural = "week" if weeks == 1 else f"{weeks} weeks"
    groups = [(name(number), period == number) for number in range(int(period.max()) + 1)]
    return WaitTable(f"waits in the record, by {plural} of submission, from", _rows(log, groups))


def _by_number(log: SwfLog, numbers: NDArray[np.int64], word: str) -> WaitTable:
    values, jobs = np.unique(numbers, return_counts=True)
    most = values[np.argsort(-jobs, kind="stable")][:_GROUPS].tolist()
    groups = [(f"{word} {number}" if number >= 0 else f"no {word}", numbers == number) for number in sorted(most)]
    if len(values) > len(most):
        groups.append((f"{len(values) - len(most):,} others", ~np.isin(numbers, most)))
    return WaitTable(f"waits in the record, by {word}", _rows(log, groups))


def _rows(log: SwfLog, groups: list[tuple[str, NDArray[np.bool_]]]) -> tuple[dict[str, Any], ...]:
    work = np.maximum(log.run_time, 0).astype(np.float64) * np.maximum(size_of(log), 0)
    rows = []
    for name, members in groups:
        waits = log.wait[members & (log.wait >= 0)].astype(np.float64)
        ends = np.quantile(waits, [0.5, 0.95, 1.0]).tolist() if len(waits) else [math.nan] * 3
        rows.append(
            {
                "group": name,
                "jobs": int(np.count_nonzero(members)),
                "share_of_jobs": float(members.mean()),
                "share_of_work": float(work[members].sum() / max(work.sum(), 1.0)),
                "mean": float(waits.mean()) if len(waits) else math.nan,
                **dict(zip(("median", "p95", "longest"), ends, strict=True)),
            }
        )
    return tuple(rows)


def room_share(log: SwfLog, machine: int) -> float:
    """Return which part of the jobs that waited long did so for most of the time while everything would have fit.

    At such a time the processors of all jobs that were there, running and waiting, are at most the machine's: under
    any order all of them run, so that they wait for something else.

    Parameters
    ----------
    log : SwfLog
        One line for each job.
    machine : int
        Its processors.

    Returns
    -------
    float
        0 to 1, of the jobs that waited longer than `LONG_WAIT`; NaN if there is none.
    """
    size = size_of(log)
    ran = (log.run_time > 0) & (size > 0) & (log.submit >= 0) & (log.wait >= 0)
    submit, wait, size = log.submit[ran].astype(np.float64), log.wait[ran], size[ran]
    long = wait > LONG_WAIT
    if not long.any():
        return math.nan
    times = np.concatenate([submit, submit + wait + log.run_time[ran]])
    order = np.argsort(times, kind="stable")
    times = times[order]
    there = np.cumsum(np.concatenate([size, -size])[order])
    roomy = np.concatenate([[0.0], np.cumsum(np.diff(times) * (there[:-1] <= machine))])
    since, until = (np.interp(moment[long], times, roomy) for moment in (submit, submit + wait))
    return float(np.mean(until - since > wait[long] / 2))
