"""Which jobs the Lublin-Feitelson model describes: its constants, and its parameters for a machine of any size.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid
jobs", Journal of Parallel and Distributed Computing 63 (2003), https://doi.org/10.1016/S0743-7315(03)00108-4,
with the values of the program that the Parallel Workloads Archive distributes (128 processors).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError

__all__ = [
    "BATCH",
    "BUCKET",
    "BUCKETS",
    "INTERACTIVE",
    "MAX_LN_GAP",
    "MAX_LN_RUN",
    "TYPELESS",
    "JobClass",
    "LublinModel",
    "PerClass",
    "SizeOptions",
    "daily_weights",
]

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
    "all", 0.244, 0.576, 0.8, 4.5, 7.0, 0.86, 4.2, 0.94, 312.0, 0.03, -0.0054, 0.78,
    10.2303, 0.4871, 1.0225, 8.1737, 3.9631,
)  # fmt: skip
INTERACTIVE = JobClass(
    "interactive", 0.1541, 0.625, 1.0, 3.0, 5.5, 0.705, 3.8351, 0.6605, 7.073, 0.6856, -0.0118, 0.9156,
    6.5510, 0.6621, 0.9797, 8.9186, 3.6680,
)  # fmt: skip
BATCH = JobClass(
    "batch", 0.2927, 0.6686, 1.2, 5.0, 7.0, 0.875, 6.57, 0.823, 639.1, 0.0156, -0.003, 0.6986,
    6.0415, 0.8531, 1.0519, 6.1271, 5.2740,
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
