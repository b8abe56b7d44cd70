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

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.engine.forest import LEAF, Forest

if TYPE_CHECKING:
    from policyfactory.predict.options import PredictorOptions

__all__ = ["QUANTILE", "flattened", "train"]

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
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        loss="quantile" if quantile else "poisson",
        quantile=QUANTILE if quantile else None,
        max_iter=options.trees,
        max_leaf_nodes=options.leaves,
        min_samples_leaf=_SMALLEST_LEAF,
        max_features=0.5,
        l2_regularization=5.0,
        max_bins=127,
        early_stopping=False,
        random_state=0,
    )
    # One thread: the sums of histograms are then added in one order, on any machine.
    with threadpool_limits(1):
        model.fit(features, outcome)
    return model


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
