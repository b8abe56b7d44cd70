"""From a workload to a score table: many tuples, many workers, one result whatever happens in between.

A tuple's jobs and its random orders depend on the seed and on the number of the tuple alone, and the table is
written in the order of the tuples. So neither the number of workers nor an interruption changes a byte of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from policyfactory.core.errors import UsageError
from policyfactory.core.random import check_seed, generator
from policyfactory.core.version import __version__
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Backend, Notify, StopCheck, Workers
from policyfactory.trials.estimators import ESTIMATORS, Estimator, check_trials, estimate, trials_run
from policyfactory.trials.table import csv_rows
from policyfactory.trials.tuples import MAX_QUEUE, MAX_STATE, count_places, cut_tuple, draw_places
from policyfactory.workload.jobs import Workload

__all__ = [
    "DEFAULT_TRIALS",
    "DEFAULT_TUPLES",
    "GenerateOptions",
    "Report",
    "TupleBatch",
    "check_options",
    "describe",
    "finished_tuples",
    "tuple_rows",
    "tuples_a_unit",
]

# Raised whenever the same options would give other scores: a partial table of older code is not continued.
_METHOD = 1
_ORDERS = 2
_MAX_TUPLES = 10**7
_TUPLES_A_UNIT = 64
_TRIALS_A_UNIT = 12_800_000
_FEWEST_UNITS = 64
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

    @property
    def trials_each(self) -> int:
        """Trials that are run of each tuple."""
        return trials_run(self.estimator, self.trials, self.queue_size)

    def check(self) -> None:
        """Check what can be checked without a workload.

        Raises
        ------
        UsageError
            If an option is out of range.
        """
        check_seed(self.seed)
        if self.estimator not in ESTIMATORS:
            raise UsageError(f"unknown estimator {self.estimator!r}; {' and '.join(ESTIMATORS)} are known")
        if not 1 <= self.tuples <= _MAX_TUPLES:
            raise UsageError(f"{self.tuples} tuples; give --tuples 1 to {_MAX_TUPLES:,}")
        if not 2 <= self.queue_size <= MAX_QUEUE:
            raise UsageError(f"a queue of {self.queue_size} jobs; give --queue-size 2 to {MAX_QUEUE}")
        if not 0 <= self.state_size <= MAX_STATE:
            raise UsageError(f"a state of {self.state_size} jobs; give --state-size 0 to {MAX_STATE}")
        check_trials(self.trials, self.queue_size)


def check_options(workload: Workload, options: GenerateOptions) -> int:
    """Return from how many places of the workload a tuple can be cut.

    Raises
    ------
    UsageError
        If an option is out of range.
    WorkloadError
        If the workload is shorter than a tuple.
    """
    options.check()
    return count_places(workload, options.state_size, options.queue_size)


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


class TupleBatch(NamedTuple):
    """Tuples that are scored together: their numbers, and the rows of the workload at which they begin."""

    numbers: tuple[int, ...]
    places: tuple[int, ...]


def _score(shared: tuple[Workload, GenerateOptions], unit: TupleBatch, go_on: StopCheck) -> list[tuple[int, str]]:
    """Return number and lines of the table of each tuple of a work unit."""
    workload, options = shared
    return [
        (number, tuple_rows(workload, place, number, options, go_on=go_on))
        for number, place in zip(unit.numbers, unit.places, strict=True)
    ]


def tuples_a_unit(backend: Backend, trials: int, tuples: int) -> int:
    """Return how many tuples are sent to a worker at once.

    A scheduler of Dask takes 1.6 ms of its one core for a work unit (docs/clusters.md), so there a unit takes about a
    second; a run has 64 units at least, if it has so many tuples.

    Parameters
    ----------
    backend : {"threading", "loky", "dask"}
        Who does the work; threads and processes of one machine get one tuple at a time.
    trials : int
        Trials of a tuple.
    tuples : int
        Tuples of the run.
    """
    if backend != "dask":
        return 1
    return max(1, min(_TUPLES_A_UNIT, _TRIALS_A_UNIT // trials, tuples // _FEWEST_UNITS))


def finished_tuples(
    workload: Workload,
    options: GenerateOptions,
    numbers: list[int],
    *,
    workers: Workers | int = 1,
    notify: Notify = lambda _: None,
) -> Generator[tuple[int, str]]:
    """Give the tuples ``numbers`` as they are finished: number and lines of the table.

    Parameters
    ----------
    workload : Workload
        The jobs.
    options : GenerateOptions
        The rest.
    numbers : list of int
        Which tuples.
    workers : Workers or int
        Who does the work; a number means so many threads.
    notify : callable
        Called with a sentence when a worker was lost, or workers are waited for.
    """
    places = draw_places(check_options(workload, options), options.tuples, options.seed)
    workers = Workers.of(workers)
    size = tuples_a_unit(workers.backend, options.trials, len(numbers))
    chunks = (numbers[begin : begin + size] for begin in range(0, len(numbers), size))
    units = (TupleBatch(tuple(chunk), tuple(places[chunk].tolist())) for chunk in chunks)
    with contextlib.closing(results(_score, (workload, options), units, workers, notify=notify)) as finished:
        for scored in finished:
            yield from scored
