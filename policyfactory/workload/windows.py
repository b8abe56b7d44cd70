"""Cutting a workload into windows: by time, by number of jobs, and as the programs of SC'17 and RLScheduler do.

Each rule is a function of the submit times that returns slices; the others apply it to a workload, each window
re-based to its own first job (but those of RLScheduler, whose program keeps the log's clock). The machine is empty when
a window begins.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.options import Int64Array
from policyfactory.core.text import DAY, HOUR, WEEK, format_duration, parse_duration
from policyfactory.workload.header import dates_of, printable
from policyfactory.workload.jobs import Workload, seconds_of, site_clock
from policyfactory.workload.machine import joined_log
from policyfactory.workload.swf.log import SwfLog

_SPEC = re.compile(r"(?:(sc17):)?(?:(\d{1,6})x)?(.+)", re.IGNORECASE)
_JOBS = re.compile(r"(\d{1,9})jobs?", re.IGNORECASE)
_DRAWN = re.compile(r"rlscheduler:(\d{1,6})x(\d{1,9})jobs?:((?:numpy)?\d{1,9})", re.IGNORECASE)
# The trial program of SC'17 gives each window 16 jobs before it looks at the clock.
SC17_FIRST_JOBS = 16
# RLScheduler draws the windows of real logs from their first jobs only.
RLSCHEDULER_JOBS = 10_000


@dataclasses.dataclass(frozen=True, slots=True)
class WindowSpec:
    """How to cut.

    Parameters
    ----------
    count : int or None
        How many windows, or None for as many as there are.
    length : int
        Length of a window in seconds; 0 if windows are counted in jobs.
    jobs : int
        Jobs in a window; 0 if windows are measured in time.
    rule : str
        ``"time"``, ``"jobs"``, ``"sc17"`` or ``"rlscheduler"``.
    seed : str
        Of windows that are drawn; see `starts_rlscheduler`.
    """

    count: int | None
    length: int
    jobs: int = 0
    rule: str = "time"
    seed: str = ""

    @property
    def keeps_clock(self) -> bool:
        """Whether times stay those of the log."""
        return self.rule == "rlscheduler"

    def __str__(self) -> str:
        if self.rule == "rlscheduler":
            return f"{self.count} windows of {self.jobs:,} jobs drawn as RLScheduler does (seed {self.seed})"
        count = "" if self.count is None else f"{self.count} x "
        size = f"{self.jobs:,} jobs" if self.rule == "jobs" else format_duration(self.length)
        return f"{count}{size}{' (SC17 rule)' if self.rule == 'sc17' else ''}"


def parse_windows(text: str) -> WindowSpec:
    """Return the cut that ``text`` asks for.

    For example ``10x15d``, ``15d`` (all there are), ``10x5000jobs``, ``sc17:10x15d``, ``rlscheduler:10x1024jobs:1``.

    Raises
    ------
    UsageError
        If it is none of these.
    """
    parts, drawn = _SPEC.fullmatch(text.strip()), _DRAWN.fullmatch(text.strip())
    expected = (
        "write for example 10x15d (10 windows of 15 days), 15d, 10x5000jobs, sc17:10x15d or rlscheduler:10x1024jobs:1 "
        "(ten windows of 1,024 jobs, drawn with seed 1)"
    )
    if drawn:
        windows, jobs = int(drawn.group(1)), int(drawn.group(2))
        if not (windows and jobs):
            raise UsageError(f"windows {text!r}: nothing to draw; {expected}")
        return WindowSpec(windows, 0, jobs, "rlscheduler", drawn.group(3).lower())
    if not parts:
        raise UsageError(f"windows {text!r}: {expected}")
    rule, number, size = parts.groups()
    count = None if number is None else int(number)
    if count == 0:
        raise UsageError(f"windows {text!r}: 0 windows; {expected}")
    in_jobs = _JOBS.fullmatch(size)
    if in_jobs and not rule:
        if int(in_jobs.group(1)) == 0:
            raise UsageError(f"windows {text!r}: windows of 0 jobs; {expected}")
        return WindowSpec(count, 0, int(in_jobs.group(1)), "jobs")
    try:
        length = parse_duration(size, unit=True)
    except UsageError as error:
        where = "" if size == text.strip() else f"{size!r} "
        what = str(error) if size.isdigit() else f"{where}is not a length"
        raise UsageError(f"windows {text!r}: {what}; {expected}") from None
    if not 0 < length < float("inf"):
        raise UsageError(f"windows {text!r}: a window needs an end; {expected}")
    return WindowSpec(count, int(length), 0, "sc17" if rule else "time")


def slices_by_time(submit: NDArray[np.int64], length: int, count: int | None = None) -> list[slice]:
    """Return the jobs of consecutive windows of equal length, the first beginning with the first job.

    Window k has the jobs submitted in [k length, (k + 1) length) after the first job. A window that the log ends
    in is left out (it has no regular end); so are windows without any job.

    Parameters
    ----------
    submit : int64 array (n,), ascending
        Submit times.
    length : int
        Of a window, in the unit of ``submit``.
    count : int, optional
        At most this many windows.
    """
    if _longer_than_all(submit, length):
        return []
    after = submit - submit[0]
    whole = int(after[-1] // length)
    edges = np.searchsorted(after, np.arange(whole + 1) * length)
    pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [slice(first, end) for first, end in pairs if end > first][:count]


def _longer_than_all(submit: NDArray[np.int64], length: int) -> bool:
    """Return whether no window of this length ends before the log does; the length may be beyond the clock's range."""
    return not len(submit) or length > int(submit[-1]) - int(submit[0])


def slices_by_jobs(submit: NDArray[np.int64], jobs: int, count: int | None = None) -> list[slice]:
    """Return consecutive windows of ``jobs`` jobs each; what is left over at the end is left out."""
    return [slice(first, first + jobs) for first in range(0, len(submit) - jobs + 1, jobs)][:count]


def slices_sc17(
    submit: NDArray[np.int64], length: int, count: int | None = None, first_jobs: int = SC17_FIRST_JOBS
) -> list[slice]:
    """Return windows as the driver programs of the SC'17 artifact cut them.

    A window has the 16 next jobs whatever their time, and all that follow while they are submitted no more than
    ``length`` after its first; the next one begins with the first job not taken. The window that the log ends in is
    left out: the drivers stop before it (after 64 windows of SDSC-BLUE and 15 of the 16 of CEA-Curie).

    Parameters
    ----------
    submit : int64 array (n,), ascending
        Submit times.
    length : int
        In the unit of ``submit``.
    count : int, optional
        At most this many windows.
    first_jobs : int
        Jobs taken without a look at the clock.
    """
    slices: list[slice] = []
    if _longer_than_all(submit, length):
        return slices
    first = 0
    while first < len(submit) and (count is None or len(slices) < count):
        end = int(np.searchsorted(submit, submit[first] + length, side="right"))
        end = max(end, first + first_jobs)
        if end >= len(submit):
            break
        slices.append(slice(first, end))
        first = end
    return slices


def starts_rlscheduler(jobs_of_log: int, jobs: int, count: int, seed: str) -> NDArray[np.int64]:
    """Return where the windows of RLScheduler's program begin: any two may overlap.

    One draw a window, from job ``jobs`` of the log (counted from 0) up to ``jobs`` + 2 before its end, or before job
    10,000. The generator is that of gym 0.14, numpy's seeded with two words of the SHA-512 digest of the seed.

    Parameters
    ----------
    jobs_of_log : int
        Jobs of the log.
    jobs : int
        Jobs of a window.
    count : int
        Windows.
    seed : str
        A whole number; ``numpy99`` seeds numpy's generator with 99 itself.

    Raises
    ------
    WorkloadError
        If the log has too few jobs.
    """
    end = min(jobs_of_log, RLSCHEDULER_JOBS) - jobs - 1
    if end <= jobs:
        raise WorkloadError(
            f"windows of {jobs:,} jobs cannot be drawn as RLScheduler does from {jobs_of_log:,} jobs (of which it uses "
            f"the first {RLSCHEDULER_JOBS:,}): more than {2 * jobs + 1:,} are needed; ask for shorter windows"
        )
    random = random_rlscheduler(seed)
    return np.array([random.randint(jobs, end) for _ in range(count)], dtype=np.int64)


def random_rlscheduler(seed: str) -> np.random.RandomState:
    """Return the generator of RLScheduler's program; the seeds are those of `starts_rlscheduler`."""
    digits = seed.removeprefix("numpy")
    words = np.frombuffer(hashlib.sha512(seed.encode()).digest()[:8], dtype="<u4")
    return np.random.RandomState(int(digits) if digits != seed else words)


def slices_of(spec: WindowSpec, submit: NDArray[np.int64], name: str, ticks: int = 1) -> list[slice]:
    """Return the jobs of each window that ``spec`` asks for, by whichever rule it names.

    Parameters
    ----------
    spec : WindowSpec
        How to cut.
    submit : array (n,), ascending
        Submit times.
    name : str
        Of the log, for messages.
    ticks : int
        Ticks of the submit times in a second.

    Raises
    ------
    WorkloadError
        If the log has fewer windows than asked for, or none.
    """
    if spec.rule == "jobs":
        slices = slices_by_jobs(submit, spec.jobs, spec.count)
    elif spec.rule == "rlscheduler":
        starts = starts_rlscheduler(len(submit), spec.jobs, spec.count or 0, spec.seed)
        slices = [slice(first, first + spec.jobs) for first in starts.tolist()]
    else:
        rule = slices_sc17 if spec.rule == "sc17" else slices_by_time
        slices = rule(submit, spec.length * ticks, spec.count)
    if len(slices) < (spec.count or 1):
        span = format_duration(float(submit[-1] - submit[0]) / ticks) if len(submit) else "0s"
        raise WorkloadError(
            f"{name}: {spec} asked for, the log has {len(slices)} such windows ({len(submit):,} jobs in {span}); ask "
            "for fewer or shorter ones"
        )
    return slices


def cut(workload: Workload, windows: WindowSpec | str) -> list[Workload]:
    """Return the windows, numbered from 1 in their names, each re-based to its first job if the rule has them so.

    Parameters
    ----------
    workload : Workload
        The jobs.
    windows : WindowSpec or str
        How to cut, as `parse_windows` reads it.

    Raises
    ------
    UsageError
        If the text is no way to cut.
    WorkloadError
        If the log has fewer windows than asked for, or none.
    """
    spec = parse_windows(windows) if isinstance(windows, str) else windows
    slices = slices_of(spec, workload.submit, workload.name, workload.ticks)
    return [
        workload.select(rows, name=f"{workload.name}[{number}]", rebase=not spec.keeps_clock)
        for number, rows in enumerate(slices, start=1)
    ]


# Logs made from other ones --------------------------------------------------------------------------------------------

# Logs made from other ones, all 18 fields kept: fewer lines, times from a new zero, and a header that says so.


def in_use(start: NDArray[Any], end: NDArray[Any], size: Int64Array) -> tuple[NDArray[Any], Int64Array]:
    """Return when the sum of the sizes of what runs changes, and what it is from then on: half-open, each time once."""
    times, inverse = np.unique(np.concatenate([start, end]), return_inverse=True)
    change = np.bincount(inverse.reshape(-1), np.concatenate([size, -size]).astype(np.float64), len(times))
    return times, np.cumsum(change).astype(np.int64)


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
            values |= dates_of(
                {"StartTime": unix_start + shift, "EndTime": unix_start + int(end.max())}, clock or dt.UTC
            )
    else:
        # Dates of the whole log, and nobody knows how long after its first one the part begins.
        values |= {label: "unknown" for label in ("StartTime", "EndTime") if log.header.text(label)}
    notes = [f"{note} ({len(log) - len(chosen)} jobs removed)"]
    if shift:
        notes.append(f"time 0 is second {shift} of the original log")
    extra = dict(chosen.extra)
    if "eligible" in extra:
        eligible = extra["eligible"]
        extra["eligible"] = np.where(eligible >= 0, np.maximum(eligible - shift, 0), -1)
    return dataclasses.replace(chosen, submit=submit, extra=extra, header=log.header.replace(values, tuple(notes)))


def in_order(log: SwfLog) -> tuple[SwfLog, int]:
    """Return the log sorted by submit time (ties as in the file), and how many jobs have none and are left out.

    A job that is written in parts, of which only the first has a submit time, is one line with the sum of their times.

    Raises
    ------
    WorkloadError
        If no job has a submit time.
    """
    log = joined_log(log)
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
        _cut(
            *(log, rows, f"window {number} of {len(slices)}, {spec}, cut by policyfactory", f"-w{number:0{digits}}"),
            keeps_clock=spec.keeps_clock,
        )
        for number, rows in enumerate(slices, start=1)
    ]


def _cut(log: SwfLog, rows: slice, note: str, suffix: str = "", *, keeps_clock: bool = False) -> SwfLog:
    zero = 0 if keeps_clock else math.floor(log.submit[rows.start])
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
        A duration after the first job, or a date on the clock of the site (see `policyfactory.workload.jobs`).
    skip, jobs : int
        Cut by number.

    Raises
    ------
    UsageError
        If a time cannot be read or is behind the other, or a date is given for a log without one.
    WorkloadError
        If no job is left.
    """
    first, last = np.searchsorted(
        log.submit,
        seconds_of(
            {"--from": start, "--to": end},
            log=log.name,
            first=float(log.submit[0]),
            unix_start=log.header.unix_start,
            clock=site_clock(log.header)[0],
        ),
    ).tolist()
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


# When jobs come: hours of the day and of the week on the clock of the site --------------------------------------------


# A log that lasts longer does not count in seconds; hours and weeks would say nothing.
LONGEST_SPAN = 200 * 366 * DAY

# The Unix clock began on a Thursday; weeks are counted from Monday.
_MONDAY = 4 * DAY


@dataclasses.dataclass(frozen=True, slots=True)
class Arrivals:
    """When the jobs of a log were submitted.

    Parameters
    ----------
    hour_of_week : int64 array (168,)
        Jobs submitted in each hour of the week, Monday 0 h first.
    hours_seen : int64 array (168,)
        How many of each of these hours the log lasts.
    per_week : int64 array (weeks,)
        Jobs of each week after the first job.
    clock : str
        Whose hours these are, in words.
    dated : bool
        Whether the log says when it was; if not, the days of the week are made up.
    """

    hour_of_week: NDArray[np.int64]
    hours_seen: NDArray[np.int64]
    per_week: NDArray[np.int64]
    clock: str
    dated: bool

    def rate(self, days: slice) -> NDArray[np.float64]:
        """Return the mean number of jobs an hour for each hour of the day, over some days (0 is Monday)."""
        jobs = self.hour_of_week.reshape(7, 24)[days].sum(axis=0)
        seen = self.hours_seen.reshape(7, 24)[days].sum(axis=0)
        return np.asarray(jobs / np.maximum(seen, 1), dtype=np.float64)


def arrivals(log: SwfLog) -> Arrivals:
    """Return when jobs come, by the clock of the site where the header has one.

    Raises
    ------
    WorkloadError
        If no job has a submit time, or they span more than `LONGEST_SPAN`.
    """
    submit = np.sort(np.floor(log.submit[log.submit >= 0]).astype(np.int64))
    if not len(submit) or submit[-1] > LONGEST_SPAN:
        raise WorkloadError(
            f"{log.name}: no submit times, or not in seconds; hours and weeks are unknown; give it times in seconds"
        )
    clock, name = site_clock(log.header)
    unix = log.header.unix_start
    dated = unix is not None and unix <= LONGEST_SPAN
    if unix is None or not dated:
        local, words = submit + _MONDAY, "hours of the log's own clock; the header has no UnixStartTime"
    else:
        words = f"{name} time" if clock is not None else f"UTC, as {name}"
        local = _local(submit + unix, clock)
    hours = (local - _MONDAY) // HOUR
    after = submit - submit[0]
    seen = np.arange(hours[0], hours[-1] + 1)
    return Arrivals(
        hour_of_week=np.bincount(hours % 168, minlength=168),
        hours_seen=np.bincount(seen % 168, minlength=168),
        per_week=np.bincount(after // WEEK),
        clock=words,
        dated=dated,
    )


def _local(unix: NDArray[np.int64], clock: dt.tzinfo | None) -> NDArray[np.int64]:
    """Return Unix times moved by the site's difference from UTC, summer time included."""
    if clock is None:
        return unix
    # Clocks change at full quarters of an hour.
    quarters, which = np.unique(unix // 900, return_inverse=True)
    offsets = [dt.datetime.fromtimestamp(quarter * 900, clock).utcoffset() for quarter in quarters.tolist()]
    seconds = np.array([0 if offset is None else int(offset.total_seconds()) for offset in offsets], dtype=np.int64)
    return unix + seconds[which]
