"""Sums of regression trees, one job at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.jit import inlined

__all__ = ["LEAF", "Forest", "forest_sum", "no_forest"]

LEAF = -1


class Forest(NamedTuple):
    """Regression trees, node by node; their number may be 0.

    Parameters
    ----------
    feature : int64 array (nodes,)
        Which feature a node looks at; `LEAF` for none.
    threshold : float64 array (nodes,)
        A job whose feature is at most that goes left; of a leaf, its value.
    left, right : int64 array (nodes,)
        Where a node's children are; not read of a leaf. A child stands behind its parent.
    roots : int64 array (trees,)
        Where each tree begins.
    base : float
        What is added to the sum.
    """

    feature: Int64Array
    threshold: FloatArray
    left: Int64Array
    right: Int64Array
    roots: Int64Array
    base: float


def no_forest() -> Forest:
    """Return a forest without trees."""
    none = np.empty(0, dtype=np.int64)
    return Forest(none, np.empty(0), none, none, none, 0.0)


@inlined
def forest_sum(forest: Forest, features: FloatArray) -> float:
    """Return the base plus the value of each tree's leaf, added in the order of the trees.

    ``features``: float64 array (at least as many as the forest looks at,), of one job.
    """
    total = forest.base
    for tree in range(len(forest.roots)):
        node = forest.roots[tree]
        looked_at = forest.feature[node]
        while looked_at != LEAF:
            node = forest.left[node] if features[looked_at] <= forest.threshold[node] else forest.right[node]
            looked_at = forest.feature[node]
        total += forest.threshold[node]
    return total
