"""Training: from the features and outcomes of jobs that have ended to forests of regression trees.

The trees are those of scikit-learn's histogram gradient boosting. Shortness and share of the request are means of
numbers between 0 and 1, mostly close to one of the two, and errors near 0 matter as they do in a ratio: Poisson's
deviance, whose forest is the logarithm of the mean. The quantile has a loss of its own.

Trees of a quantile promise too little of jobs that they were not trained on, the more so as users change from month to
month. So the newest tenth of the jobs is held out first, and all that is predicted is multiplied by what would have
been needed for nine tenths of those (split conformal prediction: Papadopoulos, Proedrou, Vovk and Gammerman, "Inductive
confidence machines for regression", ECML 2002; the newest in place of a random part).
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from policyfactory.core.options import FloatArray
from policyfactory.core.text import counted, format_duration
from policyfactory.engine.past import LEAF, SHORT_S, Forest, no_forest
from policyfactory.prediction.options import PredictorOptions

QUANTILE = 0.9
_SMALLEST_LEAF = 40  # jobs
_HELD_OUT = 0.1
_FEWEST_HELD_OUT = 10  # of fewer none is the ninth decile
_LEAST = 1e-6  # of a predicted share, as in `policyfactory.engine.predicted`


def train(features: FloatArray, outcome: FloatArray, options: PredictorOptions, *, quantile: bool = False) -> Forest:
    """Return the forest that predicts an outcome.

    Parameters
    ----------
    features : float64 array (n, FEATURES)
        Of jobs when they were submitted, those that ended last at the end.
    outcome : float64 array (n,)
        In (0, 1].
    options : PredictorOptions
        Trees and leaves.
    quantile : bool
        Predict the ninth decile; else the logarithm of the mean.
    """
    forest = flattened(_fitted(features, outcome, options, quantile=quantile))
    return _times(forest, _needed(features, outcome, options)) if quantile else forest


def _fitted(features: FloatArray, outcome: FloatArray, options: PredictorOptions, *, quantile: bool) -> Any:
    """Return the regressor of scikit-learn."""
    return _boosted(
        *(features, outcome),
        loss="quantile" if quantile else "poisson",
        quantile=QUANTILE if quantile else None,
        max_iter=options.trees,
        max_leaf_nodes=options.leaves,
        max_features=0.5,
        l2_regularization=5.0,
        max_bins=127,
        early_stopping=False,
    )


def _boosted(features: FloatArray, outcome: FloatArray, **how: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    # One thread: the sums of histograms are then added in one order, on any machine.
    with _threads().limit(limits=1):
        return HistGradientBoostingRegressor(min_samples_leaf=_SMALLEST_LEAF, random_state=0, **how).fit(
            features, outcome
        )


@functools.cache
def _threads() -> Any:
    """Return what limits the threads of the libraries in use; to find them takes as long as a small fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def quantile_model(
    features: FloatArray, values: FloatArray, level: float, trees: int
) -> Callable[[FloatArray], FloatArray]:
    """Return what predicts a quantile of any values from features, by gradient boosting.

    Parameters
    ----------
    features : float64 array (n, k)
    values : float64 array (n,)
    level : float
        Of the quantile, from 0 to 1.
    trees : int
    """
    model = _boosted(features, values, loss="quantile", quantile=level, max_iter=trees, max_leaf_nodes=15)

    def predict(asked: FloatArray) -> FloatArray:
        with _threads().limit(limits=1):
            return np.asarray(model.predict(asked))

    return predict


def _needed(features: FloatArray, outcome: FloatArray, options: PredictorOptions) -> float:
    """Return the factor by which a quantile of the older jobs would have been right of the newest."""
    held_out = int(_HELD_OUT * len(outcome))
    if held_out < _FEWEST_HELD_OUT:
        return 1.0
    older = _fitted(features[:-held_out], outcome[:-held_out], options, quantile=True)
    ratios = outcome[-held_out:] / np.clip(older.predict(features[-held_out:]), _LEAST, 1.0)
    rank = min(math.ceil(QUANTILE * (held_out + 1)), held_out)
    return float(np.sort(ratios)[rank - 1])


def _times(forest: Forest, factor: float) -> Forest:
    """Return a forest whose sums are those of another one times a factor."""
    leaves = np.where(forest.feature == LEAF, forest.threshold * factor, forest.threshold)
    return forest._replace(threshold=leaves, base=forest.base * factor)


def flattened(model: Any) -> Forest:
    """Return the trees of a fitted ``HistGradientBoostingRegressor`` in one table; missing values are not foreseen."""
    # scikit-learn has no public way to its trees; tests compare the sums with its own predictions.
    trees = [step[0].nodes for step in model._predictors]  # noqa: SLF001
    sizes = np.array([len(nodes) for nodes in trees], dtype=np.int64)
    roots = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    nodes, offset = np.concatenate(trees), np.repeat(roots, sizes)
    is_leaf = nodes["is_leaf"].astype(np.bool_)
    return Forest(
        feature=np.where(is_leaf, LEAF, nodes["feature_idx"]).astype(np.int64),
        threshold=np.where(is_leaf, nodes["value"], nodes["num_threshold"]).astype(np.float64),
        left=np.where(is_leaf, 0, nodes["left"] + offset).astype(np.int64),
        right=np.where(is_leaf, 0, nodes["right"] + offset).astype(np.int64),
        roots=roots,
        base=float(np.ravel(model._baseline_prediction)[0]),  # noqa: SLF001 (the same)
    )


# What predicts: how it learns, or a model that it keeps ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Forests:
    """A trained model.

    Parameters
    ----------
    shortness, share, tail : Forest
        As of `policyfactory.engine.predicted.Foresight`; the tail has no trees unless it was asked for.
    jobs : int
        Jobs that it was trained on; 0 if it was not.
    """

    shortness: Forest = dataclasses.field(default_factory=no_forest)
    share: Forest = dataclasses.field(default_factory=no_forest)
    tail: Forest = dataclasses.field(default_factory=no_forest)
    jobs: int = 0


class Training(NamedTuple):
    """A model, and the instant (ticks) from which on it is used."""

    instant: int
    forests: Forests


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """What predicts in a simulation.

    Parameters
    ----------
    options : PredictorOptions
        How it learns while the simulated time goes on.
    forests : Forests or None
        A model to be used as it is, so that nothing is trained.
    trainings : tuple of Training
        Models of an earlier run of the same jobs, to be used from the same instants on, so that nothing is trained.
    """

    options: PredictorOptions = dataclasses.field(default_factory=PredictorOptions)
    forests: Forests | None = None
    trainings: tuple[Training, ...] = ()


def train_forests(features: FloatArray, outcome: FloatArray, options: PredictorOptions, *, tail: bool) -> Forests:
    """Return the model of jobs that have ended.

    Parameters
    ----------
    features : float64 array (n, FEATURES)
        Of the jobs when they were submitted.
    outcome : float64 array (n, 4)
        As of `policyfactory.engine.past.Past`.
    options : PredictorOptions
        How.
    tail : bool
        Whether the ninth decile is wanted too.
    """
    shortness, share = (train(features, outcome[:, column], options) for column in (1, 2))
    last = train(features, outcome[:, 2], options, quantile=True) if tail else no_forest()
    return Forests(shortness, share, last, len(features))


# What a user's past shows of a job, in words for the user who waits ---------------------------------------------------


MOST_LIKE = 5  # jobs that are spoken of
_FADE = 0.05  # what one more job in between counts, in units of a logarithm: as in `policyfactory.engine.past`
_NUMBERS = ("", "", "two", "three", "four", "five")


class PastJob(NamedTuple):
    """A job that has ended: request (s), processors, run time (s)."""

    request: float
    processors: float
    run: float


@dataclasses.dataclass(frozen=True, slots=True)
class UserSeen:
    """What is known of a user when a job is submitted.

    Parameters
    ----------
    ended : int
        Jobs that had ended.
    jobs : tuple of PastJob
        The last of them, the newest first.
    waiting, running : int
        Other jobs that waited and ran.
    """

    ended: int = 0
    jobs: tuple[PastJob, ...] = ()
    waiting: int = 0
    running: int = 0


def most_like(seen: UserSeen, p: float, q: float) -> tuple[PastJob, ...]:
    """Return the jobs that are most like one that asks for ``p`` seconds and ``q`` processors, the newest first.

    Likeness is that of the predictor's features: |d ln request| + |d ln processors|, and 0.05 for each newer job.
    """

    def far(rank: int) -> float:
        job = seen.jobs[rank]
        return abs(math.log(job.request / p)) + abs(math.log(job.processors / q)) + _FADE * rank

    return tuple(seen.jobs[rank] for rank in sorted(heapq.nsmallest(MOST_LIKE, range(len(seen.jobs)), key=far)))


def sentences(seen: UserSeen | None, p: float, q: float) -> Iterator[str]:
    """Give in words what is known of the user of a job.

    Parameters
    ----------
    seen : UserSeen or None
        None: the user is not known.
    p, q : float
        What the job asks for: seconds, processors.
    """
    if seen is None:
        yield "Its user is not known, so there is no past to look at."
        return
    if seen.jobs:
        alike = most_like(seen, p, q)
        same = all(job.request == p and job.processors == q for job in alike)
        what = "that asked for the same" if same else "most like it"
        count = len(alike)
        which = f"the last {_NUMBERS[count]} {what}" if count > 1 else "it"
        yield (
            f"{counted(seen.ended, 'job')} of its user had ended; {which} ran {_range(alike)}, "
            f"{_short(alike)} under a minute."
        )
    else:
        yield "No job of its user had ended."
    yield f"{counted(seen.waiting, 'other job')} of its user waited and {seen.running:,} ran."


def _range(jobs: tuple[PastJob, ...]) -> str:
    least, most = (format_duration(round(bound(job.run for job in jobs))) for bound in (min, max))
    return least if least == most else f"{least} to {most}"


def _short(jobs: tuple[PastJob, ...]) -> str:
    count = sum(job.run < SHORT_S for job in jobs)
    if count in (0, len(jobs)):
        if len(jobs) == 1:
            return "which is" if count else "not"
        return "all" if count else "none"
    return f"{count} of them"
