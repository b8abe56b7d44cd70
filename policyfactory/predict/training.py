"""Training: from the features and outcomes of jobs that have ended to forests of regression trees.

The trees are those of scikit-learn's histogram gradient boosting. Shortness and share of the request are means of
numbers between 0 and 1, mostly close to one of the two, and errors near 0 matter as they do in a ratio: Poisson's
deviance, whose forest is the logarithm of the mean. The quantile has a loss of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.engine.forest import LEAF, Forest

if TYPE_CHECKING:
    from policyfactory.predict.options import PredictorOptions

__all__ = ["QUANTILE", "flattened", "train"]

QUANTILE = 0.9
_SMALLEST_LEAF = 40  # jobs


def train(features: FloatArray, outcome: FloatArray, options: PredictorOptions, *, quantile: bool = False) -> Forest:
    """Return the forest that predicts an outcome.

    Parameters
    ----------
    features : float64 array (n, FEATURES)
        Of jobs when they were submitted.
    outcome : float64 array (n,)
        In (0, 1].
    options : PredictorOptions
        Trees and leaves.
    quantile : bool
        Predict the ninth decile; else the logarithm of the mean.
    """
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
    return flattened(model)


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
