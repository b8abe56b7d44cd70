"""Workloads of the Lublin-Feitelson model, and the one that is used where no log is given.

The offered load of n jobs on m processors is the sum of run time times processors, over m times the time from
the first submission to the last. Asking for a load multiplies every gap between arrivals, in weighted seconds,
by one factor: the daily cycle keeps its 24 hours, sizes and run times stay, and the load is met by the very jobs
that are returned (not only in expectation, from which 10,000 jobs differ by 6 to 16 %).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.jit import interruptible, kernel
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.random import check_seed, generator
from policyfactory.core.text import HOUR
from policyfactory.workload.jobs import Workload, load_in_words, offered_load, work
from policyfactory.workload.models.drand48 import seed48, uniform48
from policyfactory.workload.models.tsafrir import tsafrir_estimates

Stream = Literal["numpy", "drand48"]

DEFAULT_JOBS = 20_000
DEFAULT_SEED = 2017
DEFAULT_MAX_ESTIMATE = 64_800
_DEFAULT_PROCESSORS = 256
_MAX_JOBS = 10_000_000
_LEAST_LOAD, _MOST_LOAD = 1e-3, 1e3


def generate_lublin(
    processors: int,
    jobs: int,
    *,
    seed: int,
    stream: Stream = "numpy",
    typed: bool = False,
    load: float | None = None,
    **sizes: Unpack[SizeOptions],
) -> Workload:
    """Return ``jobs`` jobs of the model for a machine of ``processors``.

    Parameters
    ----------
    processors : int
        Processors of the machine; need not be a power of two.
    jobs : int
        How many jobs.
    seed : int
        Seed of the random numbers.
    stream : {"numpy", "drand48"}
        Our random numbers, or those of the archive's program (same seed, same jobs).
    typed : bool
        Interactive and batch jobs with streams of arrivals of their own.
    load : float, optional
        Offered load to meet (see the module); without it the model's own arrivals.
    **sizes
        ``uhi``, ``umed``, ``ulow``, ``uprob``: see `LublinModel.for_machine`.

    Returns
    -------
    Workload
        Requested times are the run times (the model has none), as its ``origin`` says.

    Raises
    ------
    UsageError
        If an argument is out of range.

    Examples
    --------
    >>> import policyfactory as pf
    >>> pf.generate_lublin(256, 500, seed=1)
    <Workload lublin-256: 500 jobs on 256 processors>
    """
    model = LublinModel.for_machine(processors, typed=typed, **sizes)
    draw = draw_jobs(model, jobs, seed=seed, stream=stream)
    if load is not None:
        draw = scale_to_load(draw, load)
    loaded = "" if load is None else f", arrivals scaled to load {load:g}"
    return to_workload(draw, f"{stream} stream, seed {seed}{loaded}")


def draw_jobs(model: LublinModel, jobs: int, *, seed: int, stream: Stream = "numpy") -> Draw:
    """Return ``jobs`` jobs of ``model``.

    Raises
    ------
    UsageError
        If the number of jobs or the seed is out of range, or there is no such stream.
    """
    if not 1 <= jobs <= _MAX_JOBS:
        raise UsageError(f"{jobs} jobs; give 1 to {_MAX_JOBS:,}")
    if stream not in ("numpy", "drand48"):
        raise UsageError(f"unknown stream {stream!r}; numpy (ours) and drand48 (the archive's program) are known")
    check_seed(seed)
    return draw_numpy(model, jobs, seed) if stream == "numpy" else draw_drand48(model, jobs, seed)


def cut_run_times(draw: Draw, longest: int) -> tuple[Draw, int]:
    """Return the jobs with run times of at most ``longest`` seconds, and how many were cut."""
    return dataclasses.replace(draw, run_time=np.minimum(draw.run_time, longest)), int((draw.run_time > longest).sum())


def scale_to_load(draw: Draw, load: float) -> Draw:
    """Return the same jobs with arrivals so much denser or rarer that their offered load is ``load``.

    Every gap of weighted time is multiplied by one factor and sent through the daily cycle again. In a typed
    model jobs of the two streams may change places; no job leaves or joins. Jobs of the drand48 stream lose
    the whole-second clock of the archive's program here: times are cut to seconds when they are complete.

    Parameters
    ----------
    draw : Draw
        Jobs.
    load : float
        Offered load to meet, 0.001 to 1000.

    Raises
    ------
    UsageError
        If the load is outside that range or there are too few jobs to have one.
    """
    if not _LEAST_LOAD <= load <= _MOST_LOAD:
        raise UsageError(f"load {load:g} is outside {_LEAST_LOAD:g} to {_MOST_LOAD:g}; a busy machine has 0.7 to 1")
    if len(draw.submit) < 2:
        raise UsageError(f"{len(draw.submit)} job has no offered load; give at least 2 --jobs with --load")
    span = work(draw.run_time, draw.processors) / (draw.model.processors * load)
    times = _times(draw, _factor_for_span(draw, span))
    order = np.argsort(times, kind="stable")
    submit = np.floor(times[order]).astype(np.int64)
    return dataclasses.replace(draw.select(order), submit=submit)


def _times(draw: Draw, factor: float) -> NDArray[np.float64]:
    times = np.empty(len(draw.weighted))
    for number, job_class in enumerate(draw.model.classes):
        mine = draw.kind == number
        times[mine] = clock_time(draw.weighted[mine] * factor, job_class, draw.model.start_hour)
    return times


def _factor_for_span(draw: Draw, span: float) -> float:
    """Return the factor of weighted time at which first and last submission are ``span`` seconds apart."""
    # Arrivals ascend within a stream, so its first and last job are enough.
    ends = np.unique(np.concatenate([np.flatnonzero(draw.kind == k)[[0, -1]] for k in np.unique(draw.kind)]))
    few = draw.select(ends)
    low, high = math.log(1e-12), math.log(1e12)
    for _ in range(200):
        middle = (low + high) / 2
        if np.ptp(_times(few, math.exp(middle))) < span:
            low = middle
        else:
            high = middle
    return math.exp(high)


def to_workload(draw: Draw, how: str) -> Workload:
    """Return the jobs as a workload whose requested times are the run times.

    Parameters
    ----------
    draw : Draw
        Jobs.
    how : str
        Stream and seed, in words, for the workload's ``origin``.
    """
    jobs = len(draw.submit)
    load = offered_load(draw.submit, draw.run_time, draw.processors, draw.model.processors)
    cut = f", {draw.oversized} jobs larger than the machine changed" if draw.oversized else ""
    return Workload(
        name=f"lublin-{draw.model.processors}",
        machine=draw.model.processors,
        job_id=np.arange(1, jobs + 1),
        submit=draw.submit,
        run_time=draw.run_time,
        requested_time=draw.run_time,
        processors=draw.processors,
        user=np.full(jobs, -1),
        start=np.full(jobs, -1),
        # Only the hour of the day is meant.
        unix_start=draw.model.start_hour * HOUR or None,
        time_zone="UTC" if draw.model.start_hour else None,
        origin=f"{draw.model.describe()}, {how}, {jobs} jobs, {load_in_words(load, 3)}{cut}; "
        "requested time = run time (the model has none)",
    )


def default_workload(jobs: int = DEFAULT_JOBS, seed: int = DEFAULT_SEED) -> Workload:
    """Return the workload that is used where no log is given.

    Typeless, 256 processors, our own stream, requested times of the Tsafrir model with at most 18 h. The
    20,000 jobs of the default seed span 211 days at an offered load of 0.87.

    Parameters
    ----------
    jobs : int
        How many; fewer than 20,000 are the first of the 20,000.
    seed : int
        Seed of jobs and requests.
    """
    if not 1 <= jobs <= _MAX_JOBS:
        raise UsageError(f"{jobs} jobs; give 1 to {_MAX_JOBS:,}")
    whole = generate_lublin(_DEFAULT_PROCESSORS, max(jobs, DEFAULT_JOBS), seed=seed)
    estimated = tsafrir_estimates(whole, max_estimate=DEFAULT_MAX_ESTIMATE, seed=seed)
    if jobs >= DEFAULT_JOBS:
        return estimated
    return dataclasses.replace(estimated.select(slice(0, jobs)), origin=f"the first {jobs} jobs of: {estimated.origin}")


# Which jobs the Lublin-Feitelson model describes ----------------------------------------------------------------------

# Its constants, and its parameters for a machine of any size.
#
# U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid
# jobs", Journal of Parallel and Distributed Computing 63 (2003), https://doi.org/10.1016/S0743-7315(03)00108-4,
# with the values of the program that the Parallel Workloads Archive distributes (128 processors).


MAX_LN_RUN = 12.0  # a run time above e^12 s = 162,754 s is drawn again
MAX_LN_GAP = 13.0  # so is a gap between arrivals above e^13 weighted seconds
BUCKETS = 48
BUCKET = 1800  # s; the daily cycle has 48 buckets of half an hour
_FIRST_BUCKET = 11  # the cycle's gamma distribution is read from here, in half hours

PerClass = float | tuple[float, float]
_MAX_PROCESSORS = 2**30
_TOLERANCE = 1e-9
_LEAST_ACCEPTED = 0.01


@dataclasses.dataclass(frozen=True, slots=True)
class JobClass:
    """The parameters of one class of jobs; every gamma distribution is given by shape and scale.

    Parameters
    ----------
    name : str
        ``"all"``, ``"interactive"`` or ``"batch"``.
    serial : float
        Probability of one processor.
    pow2 : float
        Probability (of all jobs) of a size whose logarithm is rounded to a whole number.
    ulow, umed, uhi : float
        log2 of the processors of a parallel job is uniform on (ulow, umed) with probability ``uprob``, else on
        (umed, uhi).
    uprob : float
        See above.
    a1, b1, a2, b2 : float
        Gamma distributions of the natural logarithm of short and of long run times (s).
    pa, pb : float
        A job of n processors is short with probability pa * n + pb, held within 0 and 1.
    aarr, barr, arar : float
        Gamma distribution (shape aarr * arar, scale barr) of the natural logarithm of the gap between two
        arrivals, in weighted seconds.
    anum, bnum : float
        Gamma distribution over the half hours of the day: how many jobs arrive when.
    """

    name: str
    serial: float
    pow2: float
    ulow: float
    umed: float
    uhi: float
    uprob: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    barr: float
    arar: float
    anum: float
    bnum: float

    def numbers(self) -> NDArray[np.float64]:
        """Return the parameters in the order of the fields, the name left out: float64 array (17,)."""
        return np.array([getattr(self, field.name) for field in dataclasses.fields(self)[1:]], dtype=np.float64)


TYPELESS = JobClass(
    name="all", serial=0.244, pow2=0.576, ulow=0.8, umed=4.5, uhi=7.0, uprob=0.86,
    a1=4.2, b1=0.94, a2=312.0, b2=0.03, pa=-0.0054, pb=0.78,
    aarr=10.2303, barr=0.4871, arar=1.0225, anum=8.1737, bnum=3.9631,
)  # fmt: skip
INTERACTIVE = JobClass(
    name="interactive", serial=0.1541, pow2=0.625, ulow=1.0, umed=3.0, uhi=5.5, uprob=0.705,
    a1=3.8351, b1=0.6605, a2=7.073, b2=0.6856, pa=-0.0118, pb=0.9156,
    aarr=6.5510, barr=0.6621, arar=0.9797, anum=8.9186, bnum=3.6680,
)  # fmt: skip
BATCH = JobClass(
    name="batch", serial=0.2927, pow2=0.6686, ulow=1.2, umed=5.0, uhi=7.0, uprob=0.875,
    a1=6.57, b1=0.823, a2=639.1, b2=0.0156, pa=-0.003, pb=0.6986,
    aarr=6.0415, barr=0.8531, arar=1.0519, anum=6.1271, bnum=5.2740,
)  # fmt: skip


def daily_weights(job_class: JobClass) -> NDArray[np.float64]:
    """Return the arrival rate of each half hour of the day, relative to the mean.

    Parameters
    ----------
    job_class : JobClass
        The class of jobs.

    Returns
    -------
    float64 array (48,)
        Weight of the half hour that begins at 00:00, 00:30, ...; they average 1.
    """
    from scipy.special import gammainc

    # The distribution's unit is the half hour; bucket i of it is i - 1 half hours after midnight.
    bucket = np.arange(_FIRST_BUCKET, _FIRST_BUCKET + BUCKETS)
    mass = gammainc(job_class.anum, (bucket + 0.5) / job_class.bnum) - gammainc(
        job_class.anum, (bucket - 0.5) / job_class.bnum
    )
    weights = np.empty(BUCKETS)
    weights[(bucket - 1) % BUCKETS] = mass
    return np.asarray(weights / weights.mean())


class SizeOptions(TypedDict, total=False):
    """Sizes of jobs other than the rule's: one number for all jobs, or (interactive, batch)."""

    uhi: PerClass | None
    umed: PerClass | None
    ulow: PerClass | None
    uprob: PerClass | None


@dataclasses.dataclass(frozen=True, slots=True)
class LublinModel:
    """A machine and the classes of jobs that arrive at it.

    Parameters
    ----------
    processors : int
        Processors of the machine (m); need not be a power of two.
    typed : bool
        Two independent streams of arrivals, interactive and batch; otherwise one stream of all jobs.
    classes : tuple of JobClass
        (all,) or (interactive, batch).
    start_hour : int
        Hour of the day at time 0, 0 to 23.

    Raises
    ------
    UsageError
        If the parameters contradict each other or cannot give jobs that fit on the machine.
    """

    processors: int
    typed: bool
    classes: tuple[JobClass, ...]
    start_hour: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.processors <= _MAX_PROCESSORS:
            raise UsageError(f"a machine of {self.processors} processors; give 1 to {_MAX_PROCESSORS:,}")
        if not 0 <= self.start_hour <= 23:
            raise UsageError(f"start hour {self.start_hour} is no hour of the day; give 0 to 23")
        if len(self.classes) != (2 if self.typed else 1):
            raise UsageError(f"{len(self.classes)} classes of jobs; a typed model has 2, a typeless one has 1")
        for job_class in self.classes:
            _check_sizes(job_class, self.processors)

    @classmethod
    def for_machine(
        cls, processors: int, *, typed: bool = False, start_hour: int = 0, **sizes: Unpack[SizeOptions]
    ) -> LublinModel:
        """Return the model for a machine of ``processors``.

        The rule for sizes: UHI = log2(processors) and UMED = UHI - 2.5; in the typed model UMED = UHI - 2 for
        batch jobs, and interactive jobs have UHI = log2(processors) - 1.5. As soon as ``uhi`` or ``umed`` is
        given, jobs of every class may be as large as the machine unless ``uhi`` says otherwise. On a machine
        so small that UHI - 2.5 is below ULOW, UMED is half way between ULOW and UHI.

        Parameters
        ----------
        processors : int
            Processors of the machine.
        typed : bool
            Interactive and batch jobs apart.
        start_hour : int
            Hour of the day at time 0.
        **sizes
            ``uhi``, ``umed``, ``ulow``, ``uprob``: one number, or (interactive, batch) for the typed model.

        Raises
        ------
        UsageError
            If a number is out of range.
        """
        if not 1 <= processors <= _MAX_PROCESSORS:
            raise UsageError(f"a machine of {processors} processors; give 1 to {_MAX_PROCESSORS:,}")
        bases = (INTERACTIVE, BATCH) if typed else (TYPELESS,)
        given = {name: value for name, value in sizes.items() if value is not None}
        classes = tuple(
            _sized(base, processors, {name: _pick(name, value, number, typed=typed) for name, value in given.items()})
            for number, base in enumerate(bases)
        )
        return cls(processors, typed, classes, start_hour)

    def describe(self) -> str:
        """Return mode, machine and size parameters in one line."""
        sizes = "; ".join(
            f"{job_class.name}: ULOW {job_class.ulow:g}, UMED {job_class.umed:g}, UHI {job_class.uhi:g}, "
            f"UPROB {job_class.uprob:g}"
            for job_class in self.classes
        )
        mode = "typed" if self.typed else "typeless"
        return f"Lublin-Feitelson {mode}, {self.processors} processors, {sizes}, time 0 is {self.start_hour:02d}:00"


def _pick(name: str, value: object, number: int, *, typed: bool) -> float:
    if isinstance(value, tuple):
        if not typed:
            raise UsageError(
                f"{name} {value} has a number for each type of jobs, but the model is typeless; add --typed"
            )
        value = value[number]
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"{name} {value} is not a finite number; give for example {name} 5.5")
    return float(value)


def _sized(base: JobClass, processors: int, given: dict[str, float]) -> JobClass:
    """Return ``base`` with the sizes of the rule (see `LublinModel.for_machine`) and those given."""
    largest = math.log2(processors)
    uhi = largest
    if base is INTERACTIVE and not {"uhi", "umed"} & given.keys():
        uhi = max(largest - 1.5, min(largest, base.ulow))
    uhi = given.get("uhi", uhi)
    ulow = given.get("ulow", min(base.ulow, uhi))
    umed = uhi - (2.0 if base is BATCH else 2.5)
    if umed < ulow:
        umed = (ulow + uhi) / 2
    umed = given.get("umed", umed)
    return dataclasses.replace(base, ulow=ulow, umed=umed, uhi=uhi, uprob=given.get("uprob", base.uprob))


def _check_sizes(job_class: JobClass, processors: int) -> None:
    largest = math.log2(processors)
    who = f"{job_class.name} jobs"
    if job_class.uhi > largest + _TOLERANCE:
        raise UsageError(
            f"UHI {job_class.uhi:g} of {who} is above log2({processors}) = {largest:g}: jobs larger than the machine; "
            f"give at most {largest:g}, or more --processors"
        )
    if not 0 <= job_class.ulow <= job_class.umed <= job_class.uhi + _TOLERANCE:
        raise UsageError(
            f"ULOW {job_class.ulow:g}, UMED {job_class.umed:g}, UHI {job_class.uhi:g} of {who} do not ascend from 0; "
            f"for {processors} processors UHI is {largest:g} and UMED about {max(largest - 2.5, 0):g}"
        )
    if not 0 <= job_class.uprob <= 1:
        raise UsageError(f"UPROB {job_class.uprob:g} of {who} is no probability; give 0 to 1 (0.7 to 0.95 is usual)")
    # A size of 2^k is drawn from log2 within k - 1/2 and k + 1/2, so it may lie above the machine.
    fits = _two_stage_cdf(math.floor(largest + _TOLERANCE) + 0.5, job_class)
    if fits < _LEAST_ACCEPTED:
        raise UsageError(
            f"ULOW {job_class.ulow:g} to UHI {job_class.uhi:g} of {who}: powers of two near these sizes do not fit on "
            f"{processors} processors; give a smaller --ulow or --umed"
        )


def _two_stage_cdf(x: float, job_class: JobClass) -> float:
    """Return the probability that log2 of a parallel job's size, before rounding, is at most ``x``."""

    def part(low: float, high: float) -> float:
        return float(x >= low) if high <= low else min(max((x - low) / (high - low), 0.0), 1.0)

    first = part(job_class.ulow, job_class.umed)
    return job_class.uprob * first + (1 - job_class.uprob) * part(job_class.umed, job_class.uhi)


# Jobs of the Lublin-Feitelson model, drawn from either of two streams of random numbers -------------------------------

# ``numpy``: our own; vectorised, with a clock in fractions of a second, and such that the first jobs of a long
# workload are the jobs of a shorter one. ``drand48``: the archive program's, number for number; its clock is
# cut to whole seconds at each arrival, which loses half a second a job and lets the daily cycle drift.


_PURPOSE = 1103  # our branch of the random streams
_GAPS, _SIZES, _COMPONENTS, _RUNS = range(4)
_DAY = float(BUCKET * BUCKETS)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Jobs as drawn, in order of arrival; arrays of shape (n,).

    Parameters
    ----------
    model : LublinModel
        What they were drawn from.
    submit : int64 array
        Submit time, s.
    processors : int64 array
        1 to ``model.processors``.
    run_time : int64 array
        s, at least 1.
    kind : int64 array
        0 interactive (and every job of a typeless model), 1 batch.
    weighted : float64 array
        Arrival in weighted seconds of the job's own stream: the sum of the gaps before the daily cycle
        stretches the nights and squeezes the days.
    oversized : int
        Jobs that were first drawn larger than the machine: drawn again (numpy) or cut to it (drand48).
    """

    model: LublinModel
    submit: Int64Array
    processors: Int64Array
    run_time: Int64Array
    kind: Int64Array
    weighted: FloatArray
    oversized: int

    def select(self, rows: Int64Array) -> Draw:
        """Return the draw of the jobs at ``rows`` alone."""
        columns = ("submit", "processors", "run_time", "kind", "weighted")
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in columns})


def clock_time(weighted: FloatArray, job_class: JobClass, start_hour: int) -> FloatArray:
    """Return the times of day-and-night seconds that belong to ``weighted`` seconds.

    A half hour of weight W lasts 1800 W weighted seconds; a day of 48 of them, 86,400.

    Parameters
    ----------
    weighted : float64 array (n,)
        Weighted seconds since time 0.
    job_class : JobClass
        Whose daily cycle.
    start_hour : int
        Hour of the day at time 0.

    Returns
    -------
    float64 array (n,)
        Seconds since time 0.
    """
    weights = np.roll(daily_weights(job_class), -2 * start_hour)
    edges = np.concatenate(([0.0], np.cumsum(weights) * BUCKET))
    edges[-1] = _DAY
    days, rest = np.divmod(weighted, _DAY)
    return np.asarray(days * _DAY + np.interp(rest, edges, np.arange(BUCKETS + 1.0) * BUCKET))


def draw_numpy(model: LublinModel, jobs: int, seed: int) -> Draw:
    """Draw ``jobs`` jobs from our own stream.

    Parameters
    ----------
    model : LublinModel
        What to draw from.
    jobs : int
        How many.
    seed : int
        Seed; the first k jobs do not depend on ``jobs``.
    """
    weighted = [_draw_arrivals(c, jobs, seed, kind) for kind, c in enumerate(model.classes)]
    times = [clock_time(w, c, model.start_hour) for w, c in zip(weighted, model.classes, strict=True)]
    kind = np.repeat(np.arange(len(times)), jobs)
    # Both streams are long enough whatever the mixture; a tie goes to the interactive job, which is first here.
    order = np.argsort(np.concatenate(times), kind="stable")[:jobs]
    kind = kind[order]
    processors, run_time = np.empty(jobs, dtype=np.int64), np.empty(jobs, dtype=np.int64)
    oversized = 0
    for number, job_class in enumerate(model.classes):
        mine = kind == number
        count = int(mine.sum())
        processors[mine], redrawn = _draw_sizes(job_class, model.processors, count, seed, number)
        run_time[mine] = _draw_run_times(job_class, processors[mine], seed, number)
        oversized += redrawn
    submit = np.floor(np.concatenate(times)[order]).astype(np.int64)
    return Draw(
        model=model,
        submit=submit,
        processors=processors,
        run_time=run_time,
        kind=kind,
        weighted=np.concatenate(weighted)[order],
        oversized=oversized,
    )


def _draw_arrivals(job_class: JobClass, jobs: int, seed: int, kind: int) -> FloatArray:
    shape = job_class.aarr * job_class.arar
    logs = generator(seed, _PURPOSE, kind, _GAPS, 0).standard_gamma(shape, jobs) * job_class.barr
    for attempt in range(1, 1000):
        again = np.flatnonzero(logs > MAX_LN_GAP)
        if not len(again):
            break
        # Redrawn numbers come from a generator of their own, so that later jobs do not shift.
        logs[again] = generator(seed, _PURPOSE, kind, _GAPS, attempt).standard_gamma(shape, len(again)) * job_class.barr
    return np.asarray(np.cumsum(np.exp(logs)))


def _draw_sizes(job_class: JobClass, machine: int, jobs: int, seed: int, kind: int) -> tuple[Int64Array, int]:
    """Return processors of each job, and how many jobs were drawn again because they did not fit."""
    uniform = generator(seed, _PURPOSE, kind, _SIZES, 0).random((jobs, 3))
    # One number decides between one processor, a power of two, and other sizes.
    decide = uniform[:, 0]
    nodes = _sizes_of(job_class, decide, uniform[:, 1], uniform[:, 2])
    again = np.flatnonzero(nodes > machine)
    redrawn = len(again)
    for attempt in range(1, 10_000):
        if not len(again):
            break
        uniform = generator(seed, _PURPOSE, kind, _SIZES, attempt).random((len(again), 2))
        nodes[again] = _sizes_of(job_class, decide[again], uniform[:, 0], uniform[:, 1])
        again = again[nodes[again] > machine]
    return nodes, redrawn


def _sizes_of(job_class: JobClass, decide: FloatArray, stage: FloatArray, share: FloatArray) -> Int64Array:
    lower = stage <= job_class.uprob
    low = np.where(lower, job_class.ulow, job_class.umed)
    high = np.where(lower, job_class.umed, job_class.uhi)
    log2 = low + (high - low) * share
    log2 = np.where(decide <= job_class.serial + job_class.pow2, np.floor(log2 + 0.5), log2)
    nodes = np.floor(np.exp2(log2) + 0.5).astype(np.int64)
    nodes[decide <= job_class.serial] = 1
    return nodes


def _draw_run_times(job_class: JobClass, nodes: Int64Array, seed: int, kind: int) -> Int64Array:
    short = np.clip(job_class.pa * nodes + job_class.pb, 0.0, 1.0)
    logs = np.empty(len(nodes))
    again = np.arange(len(nodes))
    for attempt in range(1000):
        if not len(again):
            break
        component = generator(seed, _PURPOSE, kind, _COMPONENTS, attempt).random(len(again)) <= short[again]
        shape = np.where(component, job_class.a1, job_class.a2)
        scale = np.where(component, job_class.b1, job_class.b2)
        logs[again] = generator(seed, _PURPOSE, kind, _RUNS, attempt).standard_gamma(shape) * scale
        again = again[logs[again] > MAX_LN_RUN]
    return np.floor(np.exp(logs)).astype(np.int64)


def draw_drand48(model: LublinModel, jobs: int, seed: int) -> Draw:
    """Draw ``jobs`` jobs as the archive's program does after ``srand48(seed)``.

    The program gives a machine that is not a power of two some jobs that do not fit; they are cut to the machine
    and counted, and every other job stays as the program writes it.

    Parameters
    ----------
    model : LublinModel
        What to draw from.
    jobs : int
        How many.
    seed : int
        Seed; its lowest 32 bits count.
    """
    constants = np.array([c.numbers() for c in model.classes])
    weights = np.array([daily_weights(c) for c in model.classes])
    columns, weighted = interruptible(archive_jobs, seed48(seed), constants, weights, 2 * model.start_hour, jobs)
    submit, nodes, run_time, kind = columns
    oversized = int((nodes > model.processors).sum())
    return Draw(
        model=model,
        submit=submit,
        processors=np.minimum(nodes, model.processors),
        run_time=run_time,
        kind=kind,
        weighted=weighted,
        oversized=oversized,
    )


@kernel
def archive_jobs(
    state: Int64Array, constants: FloatArray, weights: FloatArray, start_bucket: int, jobs: int
) -> tuple[Int64Array, FloatArray]:
    """Return the jobs of the archive's program (its order of draws, its clock of whole seconds).

    Parameters
    ----------
    state : int64 array (1,)
        Of `drand48.seed48`; changed.
    constants : float64 array (classes, 17)
        `JobClass.numbers` of (all,) or of (interactive, batch).
    weights : float64 array (classes, 48)
        `daily_weights` of the same.
    start_bucket : int
        Half hour of the day at time 0.
    jobs : int
        How many.

    Returns
    -------
    columns : int64 array (4, jobs)
        Submit time (s), processors, run time (s), kind (0 interactive, 1 batch).
    weighted : float64 array (jobs,)
        Arrival in weighted seconds of the job's own stream.
    """
    columns = np.empty((4, jobs), dtype=np.int64)
    weighted = np.empty(jobs)
    classes = len(constants)
    # Of each stream: half hour, points unspent in it, share of it that is over, clock, weighted clock.
    bucket = np.full(2, start_bucket)
    points, share, clock, gone = np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    for kind in (1, 0):
        # A typeless model draws, and throws away, a first batch arrival as well.
        job_kind = min(kind, classes - 1)
        _next_arrival(state, kind, constants[job_kind], weights[job_kind], (bucket, points, share, clock, gone))
    if classes == 1:
        clock[1] = np.inf
    for job in range(jobs):
        kind = 1 if clock[1] < clock[0] else 0
        columns[0, job] = int(clock[kind])
        weighted[job] = gone[kind]
        _next_arrival(state, kind, constants[kind], weights[kind], (bucket, points, share, clock, gone))
        nodes = _draw_nodes(state, constants[kind])
        columns[1, job] = nodes
        columns[2, job] = _draw_run(state, constants[kind], nodes)
        columns[3, job] = kind
    return columns, weighted


@kernel
def _next_arrival(
    state: Int64Array,
    kind: int,
    c: FloatArray,
    weights: FloatArray,
    streams: tuple[Int64Array, FloatArray, FloatArray, FloatArray, FloatArray],
) -> None:
    bucket, points, share, clock, gone = streams
    while True:
        log = _gamma(state, c[12] * c[14], c[13])
        if log <= MAX_LN_GAP:
            break
    gap = math.exp(log)
    gone[kind] += gap
    points[kind] += gap / BUCKET
    elapsed = 0.0
    while points[kind] > weights[bucket[kind]]:
        points[kind] -= weights[bucket[kind]]
        bucket[kind] = (bucket[kind] + 1) % BUCKETS
        elapsed += BUCKET
    over = points[kind] / weights[bucket[kind]]
    elapsed += BUCKET * (over - share[kind])
    share[kind] = over
    clock[kind] = math.floor(clock[kind] + elapsed)


@kernel
def _draw_nodes(state: Int64Array, c: FloatArray) -> int:
    serial, pow2, ulow, umed, uhi, uprob = c[0], c[1], c[2], c[3], c[4], c[5]
    decide = uniform48(state)
    if decide <= serial:
        return 1
    low, high = (ulow, umed) if uniform48(state) <= uprob else (umed, uhi)
    log2 = low + (high - low) * uniform48(state)
    if decide <= serial + pow2:
        log2 = math.floor(log2 + 0.5)
    return math.floor(math.pow(2.0, log2) + 0.5)


@kernel
def _draw_run(state: Int64Array, c: FloatArray, nodes: int) -> int:
    a1, b1, a2, b2 = c[6], c[7], c[8], c[9]
    short = min(max(c[10] * nodes + c[11], 0.0), 1.0)
    while True:
        log = _gamma(state, a1, b1) if uniform48(state) <= short else _gamma(state, a2, b2)
        if log <= MAX_LN_RUN:
            return math.floor(math.exp(log))


@kernel
def _gamma(state: Int64Array, shape: float, scale: float) -> float:
    # A sum of exponentials for the whole part of the shape, a beta variate times an exponential for the rest.
    whole = math.floor(shape)
    total = 0.0
    for _ in range(whole):
        total += math.log(uniform48(state))
    value = -scale * total
    rest = shape - whole
    if rest > 0:
        while True:
            x = math.pow(uniform48(state), 1 / rest)
            y = math.pow(uniform48(state), 1 / (1 - rest))
            if x + y <= 1:
                break
        value += scale * (x / (x + y)) * -math.log(uniform48(state))
    return value
