"""Cutting a workload into windows: by time, by number of jobs, and as the programs of SC'17 and RLScheduler do.

Each rule is a function of the submit times that returns slices; the others apply it to a workload, each window
re-based to its own first job (but those of RLScheduler, whose program keeps the log's clock). The machine is empty when
a window begins.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.units import format_duration, parse_duration
from policyfactory.workload.jobs import Workload

__all__ = [
    "WindowSpec",
    "cut",
    "parse_windows",
    "random_rlscheduler",
    "slices_by_jobs",
    "slices_by_time",
    "slices_of",
    "slices_rlscheduler",
    "slices_sc17",
    "starts_rlscheduler",
]

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
    own = seed.removeprefix("numpy")
    words = np.frombuffer(hashlib.sha512(seed.encode()).digest()[:8], dtype="<u4")
    return np.random.RandomState(int(own) if own != seed else words)


def slices_rlscheduler(submit: NDArray[np.int64], jobs: int, count: int, seed: str) -> list[slice]:
    """Return windows as RLScheduler's program draws them; see `starts_rlscheduler`."""
    starts = starts_rlscheduler(len(submit), jobs, count, seed).tolist()
    return [slice(first, first + jobs) for first in starts]


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
        slices = slices_rlscheduler(submit, spec.jobs, spec.count or 0, spec.seed)
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
