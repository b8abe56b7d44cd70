"""What predicts: how it learns, or a model that it keeps."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from policyfactory.core.arrays import FloatArray
from policyfactory.engine.forest import Forest, no_forest
from policyfactory.predict.options import PredictorOptions
from policyfactory.predict.training import train

__all__ = ["Forests", "Predictor", "Training", "train_forests"]


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

    at: int
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
