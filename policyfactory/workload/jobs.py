"""The workload: a frozen table of rigid jobs and the machine they run on."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import math
import re
import zoneinfo
from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import keeps_settings, new_figure, plain_numbers
from policyfactory.core.text import DAY, facts_html, format_duration, parse_duration
from policyfactory.workload.header import Header, printable
from policyfactory.workload.presets import CleaningReport

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def _freeze(table: object, names: Iterable[str], what: str) -> None:
    """Make columns of a table int64 arrays that cannot be written.

    Raises
    ------
    WorkloadError
        If they have different shapes.
    """
    shapes: dict[tuple[int, ...], str] = {}
    for name in names:
        column = np.ascontiguousarray(getattr(table, name), dtype=np.int64).view()
        column.flags.writeable = False
        object.__setattr__(table, name, column)
        shapes.setdefault(column.shape, name)
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        different = ", ".join(map(str, sorted(shapes)))
        which = ", ".join(shapes[shape] for shape in sorted(shapes))
        raise WorkloadError(f"{what} of shapes {different}; each job has one of each ({which})")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """Columns of the Standard Workload Format that predictions look at; int64 arrays (n,), -1 where unknown.

    All but the status are known when a job is submitted.

    Parameters
    ----------
    requested_memory : array
        Field 10, KB per processor.
    group, executable, queue, partition : array
        Fields 13 to 16, numbers that stand for names.
    status : array
        Field 11: 0 failed, 1 completed, 5 cancelled. An outcome: nothing may look at it before the job has ended.

    Raises
    ------
    WorkloadError
        If the arrays have different shapes.
    """

    requested_memory: Int64Array
    group: Int64Array
    executable: Int64Array
    queue: Int64Array
    partition: Int64Array
    status: Int64Array

    def __post_init__(self) -> None:
        _freeze(self, [field.name for field in dataclasses.fields(self)], "attributes")

    def __len__(self) -> int:
        return len(self.group)

    def select(self, rows: Any) -> Attributes:
        """Return those of some jobs: a slice, a mask or indices."""
        return Attributes(**{field.name: getattr(self, field.name)[rows] for field in dataclasses.fields(self)})

    def without(self, names: Iterable[str]) -> Attributes:
        """Return these attributes with some of them unknown.

        Raises
        ------
        UsageError
            If there is no such attribute, or it is the status.
        """
        known = [field.name for field in dataclasses.fields(self) if field.name != "status"]
        none = np.broadcast_to(np.int64(-1), len(self))
        for name in names:
            if name not in known:
                raise UsageError(f"there is no attribute {name!r} to leave out; choose of {', '.join(known)}")
        return dataclasses.replace(self, **dict.fromkeys(names, none))

    @classmethod
    def unknown(cls, jobs: int) -> Attributes:
        """Return those of ``jobs`` jobs of which nothing is known."""
        none = np.broadcast_to(np.int64(-1), jobs)
        return cls(**{field.name: none for field in dataclasses.fields(cls)})


# What jobs ask for besides processors and time ------------------------------------------------------------------------

# Nodes, memory, GPUs, and the queue, QOS and account they name.


# Columns whose numbers are places in a tuple of names, and the key of that tuple.
NAMED = {
    "partition": "partition",
    "qos": "qos",
    "account": "account",
    "user_name": "user",
    "partitions": "partitions",
}
# What the 18 fields of a plain log say, which its digest has never had.
_PLAIN = ("partition", "memory")
_LATER = ("array", "array_limit", "allocated_nodes", "partitions")
_NONE = np.empty(0, dtype=np.int64)  # stands for a column that was not given


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """What each job asks for; read-only int64 arrays (n,), -1 where the log does not say.

    Parameters
    ----------
    nodes : array
        Nodes, at least 1.
    memory : array
        Memory in MB, over the whole job.
    gpus : array
        GPUs, over the whole job.
    exclusive : array
        1 if it takes whole nodes, 0 if it shares them.
    eligible : array
        Time on the workload's clock from which it may start (a begin time, a dependency that was met).
    after : array
        Number of the job that must have ended first; one that the workload does not have has ended already.
    partition, qos, account, user_name : array
        Places in ``names["partition"]``, ``names["qos"]``, ``names["account"]`` and ``names["user"]``.
    array, array_limit : array
        A number that the tasks of one job array share, and how many of them may run at once, at least 1; both -1 where
        no limit is known.
    allocated_nodes : array
        Nodes that it had, at least 1, where ``nodes`` is not known: they show how large nodes are.
    partitions : array
        Places in ``names["partitions"]``: lists of all partitions in which it may start, ``fat,thin``, where these are
        several; ``partition`` is the one in which it did.
    names : mapping of str to tuple of str
        The names; a key may be absent where nothing is named.
    assumed : tuple of str
        What was filled in without the log's saying so, in words.

    Raises
    ------
    WorkloadError
        If the arrays have different shapes, or a number is no such request.
    """

    nodes: Int64Array
    memory: Int64Array
    gpus: Int64Array
    exclusive: Int64Array
    eligible: Int64Array
    after: Int64Array
    partition: Int64Array
    qos: Int64Array
    account: Int64Array
    user_name: Int64Array
    array: Int64Array = dataclasses.field(default_factory=lambda: _NONE)
    array_limit: Int64Array = dataclasses.field(default_factory=lambda: _NONE)
    allocated_nodes: Int64Array = dataclasses.field(default_factory=lambda: _NONE)
    partitions: Int64Array = dataclasses.field(default_factory=lambda: _NONE)
    names: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _LATER:
            if getattr(self, name) is _NONE:
                object.__setattr__(self, name, np.full(np.shape(self.nodes), -1, dtype=np.int64))
        _freeze(self, COLUMNS, "requests")
        if unknown := set(self.names) - set(NAMED.values()):
            raise WorkloadError(f"names of {min(unknown)!a}; requests have names of {', '.join(NAMED.values())}")
        names = {key: tuple(names) for key, names in self.names.items()}
        for key, known in names.items():
            if not all(isinstance(name, str) for name in known):
                raise WorkloadError(f"the requests' names of {key} are not all texts")
        object.__setattr__(self, "names", MappingProxyType(names))
        for name in COLUMNS:
            self._check(name)

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only also where another process is given it.
        columns = (getattr(self, name) for name in COLUMNS)
        return Requests, (*columns, dict(self.names), self.assumed)

    def _check(self, name: str) -> None:
        column = getattr(self, name)
        # Most logs say nothing of most columns: two passes tell that nothing is wrong.
        least, greatest = int(column.min(initial=-1)), int(column.max(initial=-1))
        if least >= -1 and greatest < 0:
            return
        most = 1 if name == "exclusive" else None
        expected = "0, 1 or -1 (not known)" if name == "exclusive" else "at least 0, or -1 (not known)"
        if name in NAMED:
            most = len(self.names.get(NAMED[name], ())) - 1
            expected = f"the place of one of {most + 1} names, or -1 (not known)"
        wrong = column < -1
        if name in {"nodes", "array_limit", "allocated_nodes"}:
            wrong |= column == 0
            expected = "at least 1, or -1 (not known)"
        if most is not None and greatest > most:
            wrong |= column > most
        if wrong.any():
            row = int(np.argmax(wrong))
            raise WorkloadError(
                f"the requests' {name} of the job at place {row} is {column[row]}, expected {expected} "
                f"({int(wrong.sum()):,} such jobs)"
            )

    def __len__(self) -> int:
        return len(self.nodes)

    @classmethod
    def unknown(cls, jobs: int) -> Requests:
        """Return those of ``jobs`` jobs of which nothing is known."""
        none = np.broadcast_to(np.int64(-1), jobs)
        columns: dict[str, Any] = dict.fromkeys(COLUMNS, none)
        return cls(**columns)

    def select(self, rows: Any) -> Requests:
        """Return those of some jobs: a slice, a mask or indices."""
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def shifted(self, by: Int64Array | int) -> Requests:
        """Return the same requests on a clock that began earlier: times are ``by`` ticks larger, at least 0.

        Parameters
        ----------
        by : int64 array (n,) or int
            How much later each job is submitted, or all are; may be negative.
        """
        moved = np.where(self.eligible >= 0, np.maximum(self.eligible + by, 0), -1)
        return dataclasses.replace(self, eligible=moved)

    def in_ticks(self, factor: int) -> Requests:
        """Return the same requests on a clock with ``factor`` times as many ticks."""
        return dataclasses.replace(self, eligible=np.where(self.eligible >= 0, self.eligible * factor, -1))

    def repeated(self, rows: Any, by: Int64Array) -> Requests:
        """Return the requests of jobs that are submitted again at other times, in another order.

        Each job keeps its delay from its submission to its eligible time. No job waits for another one, and none is a
        task of an array: the numbers are new, and a job can be there more than once, or without the others.

        Parameters
        ----------
        rows : indices
            Which jobs.
        by : int64 array (m,)
            How much later each of them is submitted; may be negative.
        """
        chosen = self.select(rows)
        none = np.full(len(chosen), -1)
        return dataclasses.replace(chosen.shifted(by), after=none, array=none, array_limit=none)

    def known(self, name: str) -> int:
        """Return for how many jobs the column ``name`` has a value."""
        return int(np.count_nonzero(getattr(self, name) >= 0))

    def name_of(self, column: str, row: int) -> str | None:
        """Return the name that the job ``row`` has in ``column`` (one of `NAMED`), None if the log does not say."""
        number = int(getattr(self, column)[row])
        return None if number < 0 else self.names[NAMED[column]][number]

    def identity(self) -> bytes:
        """Return a digest for the identity of the input; nothing where only fields of a plain log are known."""
        if not self.assumed and not any(self.known(name) for name in COLUMNS if name not in _PLAIN):
            return b""
        digest = hashlib.sha256(repr((sorted(self.names.items()), self.assumed)).encode())
        for name in COLUMNS:
            # The identity of a log without arrays is what it was before there were such columns.
            if name not in _LATER or self.known(name):
                digest.update(getattr(self, name).tobytes())
        return digest.digest()


COLUMNS = tuple(field.name for field in dataclasses.fields(Requests) if field.name not in {"names", "assumed"})


# The workload: a frozen table of rigid jobs and the machine they run on -----------------------------------------------


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
    cleaning: CleaningReport = dataclasses.field(default_factory=CleaningReport)
    attributes: Attributes | None = None
    requests: Requests | None = None

    def __post_init__(self) -> None:
        _freeze(self, _COLUMNS, f"{self.name}: columns")
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
        for what, kind in (("attributes", Attributes), ("requests", Requests)):
            given = getattr(self, what)
            if not isinstance(given, kind | None):
                raise WorkloadError(f"{self.name}: {what} are a {type(given).__name__}; give {kind.__name__}")
            if given is not None and len(given) != n:
                raise WorkloadError(f"{self.name}: {what} of {len(given):,} jobs, expected {n:,}")
        rules = (
            ("submit", self.submit < 0, "a submit time of at least 0"),
            ("run_time", self.run_time < 0, "a run time of at least 0"),
            ("requested_time", self.requested_time < 1, "a requested time of at least 1"),
            ("processors", self.processors < 1, "at least 1 processor"),
            ("processors", self.processors > self.machine, f"at most the machine's {self.machine} processors"),
        )
        for column, broken, expected in rules:
            if broken.any():
                row = int(np.argmax(broken))
                raise WorkloadError(
                    f"{self.name}: job {self.job_id[row]} has {column} {getattr(self, column)[row]}, expected "
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
            row = int(np.argmax(np.diff(self.submit) < 0)) + 1
            raise WorkloadError(f"{self.name}: job {self.job_id[row]} comes before the job ahead of it; sort the log")

    def __len__(self) -> int:
        return len(self.job_id)

    def __getitem__(self, rows: slice) -> Workload:
        return self.select(rows)

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {len(self):,} jobs on {self.machine:,} processors>"

    @property
    def same_requests(self) -> NDArray[np.bool_]:
        """Which requests are the run time, to the second and no whole minutes, as no user asks: bool array (n,)."""
        same: NDArray[np.bool_] = self.requested_time == self.run_time
        same &= self.requested_time % (60 * self.ticks) != 0
        return same

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
        found, rows = _columns_of(frame, name), len(frame)
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
            If a moment cannot be read or is behind the other, or a date is given and the log has none.
        WorkloadError
            If no job is left.
        """
        if not len(self):
            return self
        first, clock = float(self.submit[0]) / self.ticks, zone(self.time_zone)[0]
        moments = {"start": start, "end": end}
        seconds = seconds_of(moments, log=self.name, first=first, unix_start=self.unix_start, clock=clock)
        bounds = np.searchsorted(self.submit, seconds * self.ticks).tolist()
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


# Moments of a log -----------------------------------------------------------------------------------------------------

# As people write them: a time after its first job, or a date on the clock of its site.


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


def seconds_of(
    moments: Mapping[str, str | None], *, log: str, first: float, unix_start: int | None, clock: dt.tzinfo | None
) -> FloatArray:
    """Return the seconds of a log's clock at which a period begins and ends; without a moment it has no end there.

    Parameters
    ----------
    moments : mapping of str to str
        What is given, for messages (``--from``, ``--to``): a duration after the first job (``30d``), or a month, date,
        or date and time as ISO 8601 has it; without an offset it is on the clock of the site.
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
        If one is neither, or is a date and the log has none, or the period ends before it begins.
    """
    seconds = [
        limit if text is None else _second_of(text, what, log=log, first=first, unix_start=unix_start, clock=clock)
        for limit, (what, text) in zip((-math.inf, math.inf), moments.items(), strict=True)
    ]
    if seconds[0] >= seconds[1]:
        given = " is not before ".join(f"{what} {text}" for what, text in moments.items())
        raise UsageError(f"{given}, so no job is between them; give the earlier one first")
    return np.array(seconds)


def _second_of(
    text: str, what: str, *, log: str, first: float, unix_start: int | None, clock: dt.tzinfo | None
) -> float:
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


# Which column of a table of pandas is which field of a job ------------------------------------------------------------

# The fields, with other names by which they are found where no column has their own: in any case, with _ or blanks.
_NAMES: dict[str, tuple[str, ...]] = {
    "submit": ("submit_time", "submitted", "arrival", "arrival_time"),
    "run_time": ("runtime", "elapsed", "duration"),
    "processors": ("procs", "cores", "cpus", "ncpus"),
    "requested_time": ("requested_run_time", "request", "estimate"),
    "job_id": ("jobid", "job_number"),
    "user": ("user_id", "uid"),
    "start": ("start_time", "started"),
}
_NEEDED = ("submit", "run_time", "processors")


def _columns_of(frame: pd.DataFrame, name: str) -> dict[str, Int64Array]:
    """Return the columns of a table that are fields of jobs, whole numbers, in the order of its rows.

    Raises
    ------
    WorkloadError
        If one is missing or there twice, or has gaps.
    """
    columns: dict[str, Int64Array] = {}
    for field, others in _NAMES.items():
        column = _column_of(frame, name, field, others)
        if column is None:
            continue
        numbers = np.asarray(frame[column])
        if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
            raise WorkloadError(f"{name}: column {column} has {numbers.dtype} or gaps; give a number for each job")
        columns[field] = np.rint(numbers).astype(np.int64)
    if missing := [field for field in _NEEDED if field not in columns]:
        has = ", ".join(map(str, frame)) or "none"
        known = "; ".join(f"{field} (or {', '.join(others)})" for field, others in _NAMES.items())
        raise WorkloadError(
            f"{name}: the table has no column {' and no column '.join(missing)}; it has {has}. "
            f"{', '.join(_NEEDED)} are needed, others are read where they are there: {known}. Rename yours "
            "(frame.rename(columns={...}))"
        )
    return columns


def _column_of(frame: pd.DataFrame, name: str, field: str, others: tuple[str, ...]) -> Hashable | None:
    """Return the column of a field: the one of its own name, or the only one of another name; None if there is none."""
    if field in frame:
        return field
    found = [column for column in frame if "_".join(str(column).lower().replace("-", " ").split()) in {field, *others}]
    if len(found) > 1:
        raise WorkloadError(f"{name}: columns {' and '.join(map(str, found))} are both {field}; drop one of them")
    return found[0] if found else None
