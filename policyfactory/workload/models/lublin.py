"""Workloads of the Lublin-Feitelson model, and the one that is used where no log is given.

The offered load of n jobs on m processors is the sum of run time times processors, over m times the time from
the first submission to the last. Asking for a load multiplies every gap between arrivals, in weighted seconds,
by one factor: the daily cycle keeps its 24 hours, sizes and run times stay, and the load is met by the very jobs
that are returned (not only in expectation, from which 10,000 jobs differ by 6 to 16 %).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.random import check_seed
from policyfactory.core.units import HOUR
from policyfactory.workload.jobs import Workload, load_in_words, offered_load, work
from policyfactory.workload.models.lublin_model import LublinModel, PerClass, SizeOptions
from policyfactory.workload.models.lublin_streams import Draw, clock_time, draw_drand48, draw_numpy
from policyfactory.workload.models.tsafrir import tsafrir_estimates

__all__ = [
    "DEFAULT_JOBS",
    "DEFAULT_MAX_ESTIMATE",
    "DEFAULT_SEED",
    "Draw",
    "LublinModel",
    "PerClass",
    "SizeOptions",
    "Stream",
    "cut_run_times",
    "default_workload",
    "draw_jobs",
    "generate_lublin",
    "scale_to_load",
    "to_workload",
]

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
