"""The map from scores to whole numbers that suits the jobs of a cluster."""

from __future__ import annotations

import numpy as np

from policyfactory.core.errors import ExportError
from policyfactory.export.expressible import check_size
from policyfactory.export.sample import Sample
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import LARGEST, Scale, scale_of

__all__ = ["learn_scale"]


def learn_scale(policy: Policy, sample: Sample, *, largest: int = LARGEST) -> Scale:
    """Return the map to whole numbers that suits the scores of a sample.

    Three quarters of the numbers go to the scores between their 0.1 % and 99.9 % quantiles.

    Parameters
    ----------
    policy : Policy
    sample : Sample
        Jobs like the cluster's.
    largest : int
        The highest number.

    Raises
    ------
    ExportError
        If the policy gives all jobs of the sample one score, or none that is finite; or has m.
    """
    check_size(policy)
    scores = sample.scores(policy)
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        raise ExportError(f"policy {policy.name} has no finite score for any job of {sample.origin}; check its formula")
    scale = scale_of(scores, largest=largest)
    if scale is None:
        raise ExportError(
            f"policy {policy.name} gives every job of {sample.origin} the score {scores[0]:g}; "
            "there is nothing to order by (does it need --workload, or another policy?)"
        )
    return scale
