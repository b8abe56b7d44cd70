"""From a workload to a score table: many tuples, many workers, one result whatever happens in between.

A tuple's jobs and its random orders depend on the seed and on the number of the tuple alone, and the table is
written in the order of the tuples. So neither the number of workers nor an interruption changes a byte of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.options import FloatArray
from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, save_picture
from policyfactory.core.random import generator
from policyfactory.core.version import __version__
from policyfactory.engine.metrics import TAU
from policyfactory.engine.trials import VARIANTS, Problem, add_blocks, add_orders, pose
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Backend, Notify, StopCheck, Workers
from policyfactory.trials.table import ESTIMATORS, Estimator, GenerateOptions, csv_rows, trials_run
from policyfactory.workload.jobs import Workload

_PLACES = 1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Tuple:
    """A tuple (S, Q): consecutive jobs of a workload, times counted from the first of them.

    Parameters
    ----------
    p, q, r : float64 array (n,)
        Run time (s), processors, submit time (s) of the jobs of Q.
    problem : Problem
        The same in ticks, with the machine after S, for the kernels.
    """

    p: NDArray[np.float64]
    q: NDArray[np.float64]
    r: NDArray[np.float64]
    problem: Problem


def count_places(workload: Workload, state_size: int, queue_size: int) -> int:
    """Return from how many places of the workload a tuple can be cut.

    Raises
    ------
    WorkloadError
        If the workload is shorter than a tuple.
    """
    size = state_size + queue_size
    if len(workload) < size:
        raise WorkloadError(
            f"{workload.name}: a tuple needs {state_size} + {queue_size} = {size} consecutive jobs, the workload has "
            f"{len(workload)}; use a longer log, or a smaller --state-size or --queue-size"
        )
    return len(workload) - size + 1


def draw_places(places: int, tuples: int, seed: int) -> NDArray[np.int64]:
    """Return the first job of each tuple: random, no place twice before every place was used once.

    The places of fewer tuples are the first of those of more.

    Parameters
    ----------
    places : int
        From how many places of the workload a tuple can be cut.
    tuples : int
        How many tuples.
    seed : int
        The user's seed.

    Returns
    -------
    int64 array (tuples,)
        Row of the workload at which each tuple begins.
    """
    rounds = -(-tuples // places)
    drawn = [generator(seed, _PLACES, number).permutation(places) for number in range(rounds)]
    return np.concatenate(drawn)[:tuples].astype(np.int64)


def cut_tuple(workload: Workload, first: int, state_size: int, queue_size: int) -> Tuple:
    """Return the tuple that begins at row ``first``: S, then Q, in submit order."""
    rows = slice(first, first + state_size + queue_size)
    p, q = workload.run_time[rows], workload.processors[rows]
    r = workload.submit[rows] - workload.submit[first]
    problem = pose(p, q, r, workload.machine, state_size, TAU * workload.ticks)
    queue = slice(state_size, None)
    return Tuple(p[queue] / workload.ticks, q[queue].astype(np.float64), r[queue] / workload.ticks, problem)


# Scores from trials: what is estimated, how, and how sure it is -------------------------------------------------------

# The score of job j of a tuple (S, Q), |Q| = n, is ``mean_j / (mean_1 + ... + mean_n)``: mean_k is the mean, over all
# orders of Q that begin with k, of the average bounded slowdown of Q. (Equation 3 of paper 004,
# doi:10.1145/3126908.3126955, in the limit of many trials: a random order begins with each job equally often.)
# Two estimators have this limit.
#
# paper
#     Uniformly random orders; sum of the values of the trials that j began, over the sum of all. Most of its error is
#     the chance of how often each job was first.
#
# stratified
#     Every job goes first in the same number of trials, and all jobs see the same orders of the others. A block is
#     one drawn order of Q, uniformly random, from which three more are made: its halves exchanged, and both backwards;
#     in each of the four, every job in turn is moved to the front: 4 n trials.
#
#     It estimates the same scores. Moving j to the front leaves the others in the order that they had, and in a
#     uniformly random order of Q the others are in uniformly random order. Exchanging the halves and going backwards
#     are fixed permutations of the places, and a uniformly random order stays one under these. So each of the four
#     trials of a block in which j goes first has an order that is uniformly distributed over those that begin with j,
#     and the block's mean Y_j has the expectation mean_j exactly, however the trials of a block depend on each other.
#     Blocks are independent, so the means over blocks converge to mean_j and their ratio to the score.
#
#     It does so with far less noise. What one order of the others costs, it costs nearly the same whoever goes
#     first: this part of Y_j is common to all jobs and leaves their ratio unchanged. Backwards, everybody who was ahead
#     of a job is behind it, so that whatever is a sum over pairs "i ahead of j" cancels in a block; the exchange of
#     halves does the same for what depends on the distance from the middle. docs/scores.md has the gains measured.
#
# Both are ratios of means over independent units (trials; blocks), whose standard error is that of the mean of
# ``Y_j - score_j T`` over the units, divided by the mean of their total T (the delta method).


# A kernel call is this long, then the caller is asked whether to go on: some hundredths of a second.
_TRIALS_A_CALL = 1 << 19


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores of the jobs of one tuple.

    Parameters
    ----------
    score, stderr : float64 array (n,)
        Score of each job of Q, and its standard error.
    trials : int
        How many trials were run.
    """

    score: FloatArray
    stderr: FloatArray
    trials: int


def estimate(
    problem: Problem,
    estimator: Estimator,
    trials: int,
    words: NDArray[np.int64],
    *,
    go_on: Callable[[], None] = lambda: None,
) -> Scores:
    """Return the scores of one tuple.

    Parameters
    ----------
    problem : Problem
        The tuple, n jobs in Q.
    estimator : {"stratified", "paper"}
        See the module.
    trials : int
        How many trials at least.
    words : int64 array (4,)
        Seed of the orders, from `core.random`.
    go_on : callable
        Called several times a second; an exception of its ends the work.
    """
    words = words.astype(np.int64)
    total = trials_run(estimator, trials, len(problem.p))
    if estimator == "paper":
        sums = np.zeros((len(problem.p), 3))
        for part in _parts(total, _TRIALS_A_CALL):
            go_on()
            add_orders(problem, words, part, sums)
        return _paper_scores(sums, total)
    block = VARIANTS * len(problem.p)
    sums = np.zeros((len(problem.p) + 1, 3))
    for part in _parts(total // block, _TRIALS_A_CALL // block):
        go_on()
        add_blocks(problem, words, part, sums)
    return _stratified_scores(sums, total)


def _parts(total: int, size: int) -> list[int]:
    whole, rest = divmod(total, size)
    return [size] * whole + [rest] * (rest > 0)


def _paper_scores(sums: FloatArray, trials: int) -> Scores:
    """Units are trials: Y_j is the trial's value if j was first, else 0; T is the value."""
    _, total, squares = sums.T
    score = total / total.sum()
    spread = (1.0 - 2.0 * score) * squares + score**2 * squares.sum()
    return _with_error(score, spread, trials, total.sum() / trials, trials)


def _stratified_scores(sums: FloatArray, trials: int) -> Scores:
    """Units are blocks: Y_j is the mean value of the block's trials with j first, T their sum over j."""
    mean, squares, products = sums[:-1].T
    blocks, _, total_squares = sums[-1]
    score = mean / mean.sum()
    spread = squares - 2.0 * score * products + score**2 * total_squares
    return _with_error(score, spread, int(blocks), mean.sum(), trials)


def _with_error(score: FloatArray, spread: FloatArray, units: int, mean_total: float, trials: int) -> Scores:
    """Return scores with standard errors; ``spread`` is the sum over units of (Y_j - score_j T)**2."""
    # Where all orders are alike the sum is 0, and rounding may leave it just below.
    stderr = np.sqrt(np.maximum(spread, 0.0) / (units * (units - 1.0))) / mean_total
    return Scores(score, stderr, trials)


# From a workload to a score table -------------------------------------------------------------------------------------


# Raised whenever the same options would give other scores: a partial table of older code is not continued.
_METHOD = 1
_ORDERS = 2
_TUPLES_A_UNIT = 64
_TRIALS_A_UNIT = 12_800_000
_FEWEST_UNITS = 64

Report = Callable[[int], None]


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
    workload: Workload, first: int, number: int, options: GenerateOptions, *, go_on: Callable[[], None] = lambda: None
) -> str:
    """Return the lines of the score table for tuple ``number``, which begins at row ``first`` of the workload."""
    cut = cut_tuple(workload, first, options.state_size, options.queue_size)
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
        (number, tuple_rows(workload, first, number, options, go_on=go_on))
        for number, first in zip(unit.numbers, unit.places, strict=True)
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


# How precise scores are -----------------------------------------------------------------------------------------------

# Their spread over repetitions against the number of trials (figure 2 of paper 004).


# 1 and 2 are the places and the orders of the tables; these orders are independent of both.
_REPEATS = 3
_FEWEST = 1000
COLUMNS = ("trials", "estimator", "spread", "stated", "trials_per_second")


@dataclasses.dataclass(frozen=True, slots=True)
class EstimatorPrecision:
    """How precise the scores of one estimator are after a number of trials.

    Parameters
    ----------
    estimator : {"stratified", "paper"}
        Which.
    trials : int
        Trials a tuple.
    spread : float
        Standard deviation of a job's score over the repetitions divided by the mean score 1 / |Q|; root mean
        square over jobs and tuples.
    stated : float
        What the standard errors of the scores say it is; likewise.
    speed : float
        Trials per second of one worker.
    """

    estimator: Estimator
    trials: int
    spread: float
    stated: float
    speed: float


def trial_counts(most: int) -> list[int]:
    """Return 1000, 2000, 4000, ... trials up to ``most``, which comes last."""
    counts: list[int] = []
    while not counts or counts[-1] * 2 <= most:
        counts.append(counts[-1] * 2 if counts else min(_FEWEST, most))
    return counts if counts[-1] == most else [*counts, most]


def measure_convergence(
    workload: Workload,
    options: GenerateOptions,
    repeats: int = 10,
    *,
    report: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[EstimatorPrecision]:
    """Return the precision of both estimators for 1000, 2000, 4000, ... up to ``options.trials`` trials.

    Parameters
    ----------
    workload : Workload
        Where the tuples are cut from.
    options : GenerateOptions
        ``tuples`` is how many tuples are measured; ``estimator`` is not used.
    repeats : int
        Independent repetitions of each measurement, at least 2; paper 004 has ten.
    report : callable
        Called with the trials done and to do.

    Raises
    ------
    UsageError, WorkloadError
        As in `policyfactory.trials.run.check_options`, or if there is nothing to take a deviation of.
    """
    if not 2 <= repeats <= 10_000:
        raise UsageError(f"{repeats} repetitions; a standard deviation needs 2 to 10000, the paper had 10")
    places = draw_places(check_options(workload, options), options.tuples, options.seed)
    cuts = [cut_tuple(workload, int(first), options.state_size, options.queue_size) for first in places]
    counts = trial_counts(options.trials)
    total = sum(counts) * len(ESTIMATORS) * repeats * len(cuts)
    done = 0
    rows = []
    for count in counts:
        for estimator in ESTIMATORS:
            spreads, stated, seconds = [], [], 0.0
            for number, cut in enumerate(cuts):
                begin = time.perf_counter()
                scores, errors = _repeat(cut, estimator, count, (options.seed, number, repeats))
                seconds += time.perf_counter() - begin
                spreads.append(scores.var(axis=0, ddof=1).mean())
                stated.append((errors**2).mean())
                done += count * repeats
                report(done, total)
            ran = trials_run(estimator, count, options.queue_size)
            scale = options.queue_size
            spread, claim = scale * float(np.sqrt(np.mean(spreads))), scale * float(np.sqrt(np.mean(stated)))
            rows.append(EstimatorPrecision(estimator, ran, spread, claim, ran * repeats * len(cuts) / seconds))
    return rows


def _repeat(
    cut: Tuple, estimator: Estimator, trials: int, stream: tuple[int, int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return scores and standard errors, (repeats, n) each, of independent repetitions."""
    seed, number, repeats = stream
    which = ESTIMATORS.index(estimator)
    drawn = [
        estimate(
            cut.problem,
            estimator,
            trials,
            generator(seed, _REPEATS, number, trials, which, repeat).integers(1, 2**32, size=4),
        )
        for repeat in range(repeats)
    ]
    return np.array([scores.score for scores in drawn]), np.array([scores.stderr for scores in drawn])


def convergence_csv(measured: list[EstimatorPrecision]) -> str:
    """Return the measurements as CSV, a line each."""
    lines = [",".join(COLUMNS)]
    lines += [f"{row.trials},{row.estimator},{row.spread!r},{row.stated!r},{row.speed:.0f}" for row in measured]
    return "\n".join(lines) + "\n"


@keeps_settings
def draw_convergence(measured: list[EstimatorPrecision], path: Path, title: str) -> Path:
    """Draw the spread against the number of trials for both estimators, as figure 2 of paper 004."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    figure = new_figure(7.0, 4.2)
    axis = figure.subplots()
    for colour, estimator in zip(COLOURS, ("paper", "stratified"), strict=False):
        rows = [row for row in measured if row.estimator == estimator]
        trials = [row.trials for row in rows]
        axis.plot(trials, [100 * row.spread for row in rows], "o", color=colour, label=f"{estimator}, measured")
        axis.plot(trials, [100 * row.stated for row in rows], "-", color=colour, label=f"{estimator}, stated")
    axis.set(xscale="log", yscale="log", title=title)
    axis.set_xlabel("trials of a tuple")
    axis.set_ylabel("standard deviation of a score\n(% of the mean score)")
    axis.xaxis.set_major_locator(LogLocator(base=2, numticks=20))
    axis.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
    )
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_xticks(sorted({row.trials for row in measured if row.estimator == "paper"}), minor=False)
    axis.minorticks_off()
    axis.legend()
    return save_picture(figure, path)
