"""Jobs of the Lublin-Feitelson model, drawn from either of two streams of random numbers.

``numpy``: our own; vectorised, with a clock in fractions of a second, and such that the first jobs of a long
workload are the jobs of a shorter one. ``drand48``: the archive program's, number for number; its clock is
cut to whole seconds at each arrival, which loses half a second a job and lets the daily cycle drift.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.interruptible import interruptible
from policyfactory.core.jit import kernel
from policyfactory.core.random import generator
from policyfactory.workload.models.drand48 import seed48, uniform48
from policyfactory.workload.models.lublin_model import (
    BUCKET,
    BUCKETS,
    MAX_LN_GAP,
    MAX_LN_RUN,
    JobClass,
    LublinModel,
    daily_weights,
)

__all__ = ["Draw", "archive_jobs", "clock_time", "draw_drand48", "draw_numpy"]

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
        """Return the jobs ``rows``."""
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
    return Draw(model, submit, processors, run_time, kind, np.concatenate(weighted)[order], oversized)


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


def _sizes_of(job_class: JobClass, decide: FloatArray, stage: FloatArray, place: FloatArray) -> Int64Array:
    lower = stage <= job_class.uprob
    low = np.where(lower, job_class.ulow, job_class.umed)
    high = np.where(lower, job_class.umed, job_class.uhi)
    log2 = low + (high - low) * place
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
    return Draw(model, submit, np.minimum(nodes, model.processors), run_time, kind, weighted, oversized)


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
        own = min(kind, classes - 1)
        _next_arrival(state, kind, constants[own], weights[own], (bucket, points, share, clock, gone))
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
