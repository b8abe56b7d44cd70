"""The workload: a frozen table of rigid jobs and the machine they run on."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import WorkloadError
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.picture import keeps_settings, new_figure, plain_numbers
from policyfactory.core.text import facts_html
from policyfactory.core.units import DAY, format_duration
from policyfactory.workload.attributes import Attributes
from policyfactory.workload.cleaning_report import NOT_CLEANED, CleaningReport
from policyfactory.workload.moments import second_of, zone
from policyfactory.workload.requests import Requests

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["LARGEST_MACHINE", "Workload", "load_in_words", "offered_load", "work"]

LARGEST_MACHINE = 2**31  # processors

_LATEST = 2.0**62  # ticks
_COLUMNS = ("job_id", "submit", "run_time", "requested_time", "processors", "user", "start")


def offered_load(submit: Int64Array, run_time: Int64Array, processors: Int64Array, machine: int) -> float:
    """Return sum(run time * processors) / (machine * (last submission - first submission)).

    Parameters
    ----------
    submit, run_time, processors : int64 array (n,)
        Of jobs in submit order; times in one unit.
    machine : int
        Processors of the machine.

    Returns
    -------
    float
        NaN if all jobs are submitted at one time.
    """
    span = int(submit[-1] - submit[0]) if len(submit) else 0
    return work(run_time, processors) / (machine * span) if span else math.nan


def load_in_words(load: float, digits: int = 2) -> str:
    """Return "offered load 0.71"; for NaN that there is none, and why."""
    if math.isnan(load):
        return "no offered load, since all jobs are submitted at one instant"
    return f"offered load {load:.{digits}f}"


def work(run_time: Int64Array, processors: Int64Array) -> float:
    """Return sum(run time * processors), the work of jobs."""
    return float((run_time.astype(np.float64) * processors).sum())


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Workload:
    """Jobs in submit order, ready to simulate.

    Arrays are read-only, of shape (n,) and type int64; times are in seconds of one clock (unless ``ticks``
    says otherwise), processors in processors.

    Parameters
    ----------
    name : str
        What the workload is called in tables and pictures.
    machine : int
        Processors of the machine (m).
    job_id : array
        Unique number of each job; the last tie-breaker.
    submit : array
        Submit (release) time r, ascending, at least 0.
    run_time : array
        Actual run time, at least 0 (what the machine executes).
    requested_time : array
        Requested run time (what the scheduler knows), at least 1.
    processors : array
        Requested processors q, 1 to ``machine``.
    user : array
        User number, -1 if unknown.
    start : array
        Start time recorded in the log, -1 if unknown.
    unix_start : int or None
        Unix time of this clock's 0, if the log says so.
    time_zone : str or None
        Zone name of the site, if the log says so.
    ticks : int
        Ticks of the clock in a second (1; 1,000,000 for a log in microseconds).
    origin : str
        Where the jobs come from, in words (file and filter, or model and parameters).
    cleaning : CleaningReport
        What was dropped and changed when they were read from a log; empty for jobs from elsewhere.
    attributes : Attributes or None
        What else a log says of the jobs; None if nothing.
    requests : Requests or None
        What the jobs ask for besides processors and time; None if nothing is known.

    Raises
    ------
    WorkloadError
        If a column has the wrong length or a job breaks one of the rules above (named by its job id).
    """

    name: str
    machine: int
    job_id: Int64Array
    submit: Int64Array
    run_time: Int64Array
    requested_time: Int64Array
    processors: Int64Array
    user: Int64Array
    start: Int64Array
    unix_start: int | None = None
    time_zone: str | None = None
    ticks: int = 1
    origin: str = ""
    cleaning: CleaningReport = NOT_CLEANED
    attributes: Attributes | None = None
    requests: Requests | None = None

    def __post_init__(self) -> None:
        for column in _COLUMNS:
            array = np.ascontiguousarray(getattr(self, column), dtype=np.int64)
            if array is getattr(self, column):
                array = array.view()
            array.flags.writeable = False
            object.__setattr__(self, column, array)
        self._check()

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only also where another process is given it: kernels are compiled for that, and would be again.
        return Workload, tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def _check(self) -> None:
        n = len(self.job_id)
        if not 1 <= self.machine <= LARGEST_MACHINE:
            raise WorkloadError(
                f"{self.name}: a machine of {self.machine} processors; give --processors, from 1 to {LARGEST_MACHINE:,}"
            )
        for column in _COLUMNS:
            if getattr(self, column).shape != (n,):
                shape = getattr(self, column).shape
                raise WorkloadError(f"{self.name}: column {column} has shape {shape}, expected ({n},)")
        for what, kind in (("attributes", Attributes), ("requests", Requests)):
            said = getattr(self, what)
            if not isinstance(said, kind | None):
                raise WorkloadError(f"{self.name}: {what} are a {type(said).__name__}, not {kind.__name__}")
            if said is not None and len(said) != n:
                raise WorkloadError(f"{self.name}: {what} of {len(said):,} jobs, expected {n:,}")
        rules = (
            ("submit", self.submit < 0, "a submit time of at least 0"),
            ("run_time", self.run_time < 0, "a run time of at least 0"),
            ("requested_time", self.requested_time < 1, "a requested time of at least 1"),
            ("processors", self.processors < 1, "at least 1 processor"),
            ("processors", self.processors > self.machine, f"at most the machine's {self.machine} processors"),
        )
        for column, broken, expected in rules:
            if broken.any():
                at = int(np.argmax(broken))
                raise WorkloadError(
                    f"{self.name}: job {self.job_id[at]} has {column} {getattr(self, column)[at]}, expected "
                    f"{expected} ({int(broken.sum())} such jobs); clean the log first (policyfactory workload clean)"
                )
        # The latest that any schedule can end; added up in floating point, which does not wrap around.
        latest = sum(float(np.sum(column, dtype=np.float64)) for column in (self.run_time, self.requested_time))
        if latest + float(self.submit.max(initial=0)) >= _LATEST:
            raise WorkloadError(
                f"{self.name}: the times of its jobs add up to {latest:.3g} ticks of its clock, beyond 64 bits; is a "
                "time wrong? leave such jobs out (policyfactory workload show prints the mean request)"
            )
        if n and (np.diff(self.submit) < 0).any():
            at = int(np.argmax(np.diff(self.submit) < 0)) + 1
            raise WorkloadError(f"{self.name}: job {self.job_id[at]} comes before the job ahead of it; sort the log")

    def __len__(self) -> int:
        return len(self.job_id)

    def __getitem__(self, rows: slice) -> Workload:
        return self.select(rows)

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {len(self):,} jobs on {self.machine:,} processors>"

    @property
    def offered_load(self) -> float:
        """Run time x processors of all jobs, over the machine's from first to last submission; NaN without a span."""
        return offered_load(self.submit, self.run_time, self.processors, self.machine)

    def _repr_html_(self) -> str:
        span = float(self.submit[-1] - self.submit[0]) / self.ticks if len(self) else 0.0
        facts = {
            "from first to last submission": format_duration(span),
            "offered load: work over capacity in that time": f"{100 * self.offered_load:.1f} %" if span > 0 else "-",
            "where from": self.origin,
        }
        return facts_html(repr(self)[1:-1], facts)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        processors: int | None = None,
        name: str = "table",
        unix_start: int | None = None,
        time_zone: str | None = None,
    ) -> Workload:
        """Return the jobs of a table of pandas, sorted by submit time.

        Parameters
        ----------
        frame : DataFrame
            One row a job, times in seconds. Columns ``submit`` (or ``submit_time``, ``submitted``, ``arrival``,
            ``arrival_time``), ``run_time`` (``runtime``, ``elapsed``, ``duration``) and ``processors`` (``procs``,
            ``cores``, ``cpus``, ``ncpus``); where wanted ``requested_time`` (``requested_run_time``, ``request``,
            ``estimate``; else the run time, as if users knew it), ``job_id`` (``jobid``, ``job_number``; else 1, 2,
            ...), ``user`` (``user_id``, ``uid``) and ``start`` (``start_time``, ``started``; else unknown, -1), in
            upper or lower case. A column of the first name goes before those of others.
        processors : int, optional
            Processors of the machine; those of the largest job if not given.
        name : str
            What the workload is called.
        unix_start, time_zone : int, str, optional
            Unix time of second 0, and the name of the site's time zone.

        Raises
        ------
        WorkloadError
            If a column is missing, there twice or has gaps, or a job breaks a rule of `Workload`.
        """
        from policyfactory.workload.named_columns import columns_of

        found, rows = columns_of(frame, name), len(frame)
        order = np.argsort(found["submit"], kind="stable")
        columns: dict[str, Any] = {column: values[order] for column, values in found.items()}
        columns.setdefault("requested_time", np.maximum(columns["run_time"], 1))
        columns.setdefault("job_id", np.arange(1, rows + 1))
        for column in ("user", "start"):
            columns.setdefault(column, np.full(rows, -1))
        machine = int(columns["processors"].max(initial=1)) if processors is None else processors
        origin = f"{name}, a table of {rows:,} rows"
        return cls(name, machine, **columns, unix_start=unix_start, time_zone=time_zone, origin=origin)

    def frame(self) -> pd.DataFrame:
        """Return one row a job: a table of pandas with its number, times in seconds, processors and user."""
        import pandas as pd

        times = {"submit", "run_time", "requested_time", "start"}
        columns = {column: getattr(self, column) for column in _COLUMNS}
        if self.ticks > 1:
            for column in times:
                values = columns[column]
                columns[column] = np.where((column == "start") & (values < 0), -1.0, values / self.ticks)
        return pd.DataFrame(columns)

    def between(self, start: str | None = None, end: str | None = None) -> Workload:
        """Return the jobs submitted from ``start`` on and before ``end``.

        Parameters
        ----------
        start, end : str, optional
            A date on the clock of the site (``1996-10``, ``1996-10-15``, ``1996-10-15T12:00``) or a duration after the
            first job (``30d``); without it from the first or to the last job.

        Raises
        ------
        UsageError
            If a moment cannot be read, or a date is given and the log has none.
        WorkloadError
            If no job is left.
        """
        if not len(self):
            return self
        clock = zone(self.time_zone)[0]
        bounds = [0, len(self)]
        for at, (what, text) in enumerate((("start", start), ("end", end))):
            if text is not None:
                first = float(self.submit[0]) / self.ticks
                second = second_of(text, what, log=self.name, first=first, unix_start=self.unix_start, clock=clock)
                bounds[at] = int(np.searchsorted(self.submit, second * self.ticks))
        if bounds[0] >= bounds[1]:
            span = format_duration(float(self.submit[-1] - self.submit[0]) / self.ticks)
            raise WorkloadError(
                f"{self.name}: no job is left between {start} and {end}; the log has {len(self):,} jobs in {span}"
            )
        return self.select(slice(*bounds))

    @keeps_settings
    def plot(self) -> Figure:
        """Return a picture: jobs a day, run times, processors, and how much of their requests jobs use."""
        figure = new_figure(9.0, 5.5)
        figure.suptitle(f"{self.name}: {len(self):,} jobs")
        days, sizes, times, shares = figure.subplots(2, 2).ravel()
        if len(self):
            submit, run_time, requested_time = (
                column / self.ticks for column in (self.submit, self.run_time, self.requested_time)
            )
            day = ((submit - submit[0]) // DAY).astype(np.int64)
            days.bar(np.arange(day[-1] + 1), np.bincount(day), width=1.0)
            octave = np.bincount(np.ceil(np.log2(self.processors)).astype(np.int64))
            sizes.bar([f"{2**power}" for power in range(len(octave))], octave)
            longest = max(float(run_time.max()), float(requested_time.max()), 2.0)
            edges = np.geomspace(1.0, longest, 40)
            for label, values in (("run time", run_time), ("requested", requested_time)):
                times.hist(np.maximum(values, 1.0), edges, histtype="step", linewidth=1.5, label=label)
            times.legend(fontsize=9)
            shares.hist(np.minimum(run_time / np.maximum(requested_time, 1.0), 1.0), np.linspace(0.0, 1.0, 41))
        days.set(xlabel="day since the first submission", ylabel="jobs a day")
        sizes.set(xlabel="processors (up to)", ylabel="jobs")
        sizes.tick_params("x", rotation=45)
        times.set(xlabel="seconds", ylabel="jobs", xscale="log")
        plain_numbers(times.xaxis, minor=False)
        shares.set(xlabel="run time over requested time (at most 1)", ylabel="jobs")
        return figure

    def select(self, rows: Any, *, name: str | None = None, rebase: bool = False) -> Workload:
        """Return the jobs ``rows`` (slice, mask or ascending indices).

        Parameters
        ----------
        rows : slice or array
            Which jobs.
        name : str, optional
            A new name.
        rebase : bool
            Count times from the first selected job's submission.
        """
        columns: dict[str, Any] = {column: getattr(self, column)[rows] for column in _COLUMNS}
        if self.attributes is not None:
            columns["attributes"] = self.attributes.select(rows)
        if self.requests is not None:
            columns["requests"] = self.requests.select(rows)
        unix_start = self.unix_start
        if rebase and len(columns["submit"]):
            zero = int(columns["submit"][0])
            columns["submit"] = columns["submit"] - zero
            columns["start"] = np.where(columns["start"] >= 0, columns["start"] - zero, -1)
            if self.requests is not None:
                columns["requests"] = columns["requests"].shifted(-zero)
            if unix_start is not None:
                unix_start += zero // self.ticks
        return dataclasses.replace(self, name=name or self.name, unix_start=unix_start, **columns)

    def in_ticks(self, ticks: int) -> Workload:
        """Return the same jobs on a clock of ``ticks`` ticks in a second.

        Parameters
        ----------
        ticks : int
            A multiple of this clock's ticks.

        Raises
        ------
        WorkloadError
            If it is none, or times would leave the range of 64 bits.
        """
        factor, rest = divmod(ticks, self.ticks)
        if rest or factor < 1:
            raise WorkloadError(f"{self.name}: {ticks} ticks in a second; give a multiple of this clock's {self.ticks}")
        eligible = () if self.requests is None else (self.requests.eligible,)
        times = (self.submit, self.run_time, self.requested_time, self.start, *eligible)
        latest = max((int(column.max()) for column in times if len(column)), default=0)
        if latest * factor >= 1 << 62:
            raise WorkloadError(f"{self.name}: a time of {latest} ticks cannot be counted in 1/{ticks} s; cut the log")
        return dataclasses.replace(
            self,
            ticks=ticks,
            submit=self.submit * factor,
            run_time=self.run_time * factor,
            requested_time=self.requested_time * factor,
            start=np.where(self.start < 0, -1, self.start * factor),
            requests=None if self.requests is None else self.requests.in_ticks(factor),
        )

    def sha256(self) -> str:
        """Return a digest of the machine and of every job's numbers: the identity of the input.

        Attributes are not in it, and requests only where they say more than the 18 fields of a plain log do.
        """
        head = f"{self.machine} {self.ticks} {len(self)}\n".encode()
        asked = b"" if self.requests is None else self.requests.identity()
        return sha256_bytes(head + b"".join(getattr(self, column).tobytes() for column in _COLUMNS) + asked)
