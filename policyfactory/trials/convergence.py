"""How precise scores are: their spread over repetitions against the number of trials (figure 2 of paper 004)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.picture import keeps_settings
from policyfactory.core.random import generator
from policyfactory.trials.estimators import ESTIMATORS, Estimator, estimate, trials_run
from policyfactory.trials.run import GenerateOptions, check_options
from policyfactory.trials.tuples import Tuple, cut_tuple, draw_places
from policyfactory.workload.jobs import Workload

__all__ = [
    "COLUMNS",
    "EstimatorPrecision",
    "convergence_csv",
    "draw_convergence",
    "measure_convergence",
    "trial_counts",
]

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
    cuts = [cut_tuple(workload, int(place), options.state_size, options.queue_size) for place in places]
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

    from policyfactory.core.picture import COLOURS, new_figure, save_picture

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
