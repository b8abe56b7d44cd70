"""From a workload to a score table: many tuples, many workers, one result whatever happens in between.

A tuple's jobs and its random orders depend on the seed and on the number of the tuple alone, and the table is
written in the order of the tuples. So neither the number of workers nor an interruption changes a byte of it.
"""

from __future__ import annotations

import dataclasses
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from policyfactory import __version__
from policyfactory.core.errors import UsageError
from policyfactory.core.random import check_seed, generator
from policyfactory.trials.estimators import ESTIMATORS, Estimator, check_trials, estimate
from policyfactory.trials.table import csv_rows
from policyfactory.trials.tuples import check_sizes, cut_tuple, draw_places
from policyfactory.workload.jobs import Workload

__all__ = [
    "DEFAULT_TRIALS",
    "DEFAULT_TUPLES",
    "GenerateOptions",
    "Report",
    "check_options",
    "describe",
    "finished_tuples",
    "tuple_rows",
]

# Raised whenever the same options would give other scores: a partial table of older code is not continued.
_METHOD = 1
_ORDERS = 2
_MAX_TUPLES = 10**7
DEFAULT_TUPLES = 441
DEFAULT_TRIALS = 256_000

Report = Callable[[int], None]


@dataclasses.dataclass(frozen=True, slots=True)
class GenerateOptions:
    """What determines the scores, next to the workload.

    Parameters
    ----------
    tuples : int
        How many tuples.
    trials : int
        Trials of each, at least; ``stratified`` runs whole blocks of 4 ``queue_size``.
    state_size, queue_size : int
        Jobs in S and in Q.
    estimator : {"stratified", "paper"}
        See `policyfactory.trials.estimators`.
    seed : int
        Seed of places and orders.
    """

    tuples: int = DEFAULT_TUPLES
    trials: int = DEFAULT_TRIALS
    state_size: int = 16
    queue_size: int = 32
    estimator: Estimator = "stratified"
    seed: int = 1


def check_options(workload: Workload, options: GenerateOptions) -> int:
    """Return from how many places of the workload a tuple can be cut.

    Raises
    ------
    UsageError
        If an option can not be meant.
    WorkloadError
        If the workload is shorter than a tuple.
    """
    check_seed(options.seed)
    if options.estimator not in ESTIMATORS:
        raise UsageError(f"unknown estimator {options.estimator!r}; {' and '.join(ESTIMATORS)} are known")
    if not 1 <= options.tuples <= _MAX_TUPLES:
        raise UsageError(f"{options.tuples} tuples; give 1 to {_MAX_TUPLES:,}")
    places = check_sizes(workload, options.state_size, options.queue_size)
    check_trials(options.trials, options.queue_size)
    return places


def describe(workload: Workload, options: GenerateOptions) -> dict[str, Any]:
    """Return all that determines the table, as JSON values: two runs with equal descriptions make equal tables."""
    return {
        **dataclasses.asdict(options),
        "machine": workload.machine,
        "method": _METHOD,
        "policyfactory": __version__,
        "workload_sha256": workload.sha256(),
    }


def tuple_rows(
    workload: Workload, place: int, number: int, options: GenerateOptions, *, go_on: Callable[[], None] = lambda: None
) -> str:
    """Return the lines of the score table for tuple ``number``, which begins at row ``place`` of the workload."""
    cut = cut_tuple(workload, place, options.state_size, options.queue_size)
    words = generator(options.seed, _ORDERS, number).integers(1, 2**32, size=4)
    scores = estimate(cut.problem, options.estimator, options.trials, words, go_on=go_on)
    return csv_rows((cut.p, cut.q, cut.r, scores.score, scores.stderr), number)


class _StopError(Exception):
    """_StopError is raised in a worker whose results nobody waits for any more."""


def finished_tuples(
    workload: Workload, options: GenerateOptions, numbers: list[int], *, jobs: int = 1
) -> Iterator[tuple[int, str]]:
    """Give the tuples ``numbers`` as they are finished: number and lines of the table.

    The workers are threads: the kernels hold no lock, the workload exists once, and nothing outlives the process.

    Parameters
    ----------
    workload : Workload
        The jobs.
    options : GenerateOptions
        The rest.
    numbers : list of int
        Which tuples.
    jobs : int
        How many workers.
    """
    places = draw_places(check_options(workload, options), options.tuples, options.seed)
    if jobs == 1 or len(numbers) < 2:
        yield from ((number, tuple_rows(workload, int(places[number]), number, options)) for number in numbers)
        return

    from joblib import Parallel, delayed

    stop = threading.Event()

    def go_on() -> None:
        if stop.is_set():
            raise _StopError

    def work(number: int) -> tuple[int, str]:
        return number, tuple_rows(workload, int(places[number]), number, options, go_on=go_on)

    parallel = Parallel(n_jobs=jobs, backend="threading", return_as="generator_unordered", batch_size=1)
    results = parallel(delayed(work)(number) for number in numbers)
    try:
        for result in results:  # noqa: UP028 (yield from would close joblib's generator before the lines below)
            yield result
    finally:
        stop.set()
        # Joblib warns of tuples that were finished but not asked for: that is what ending early means.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            results.close()
