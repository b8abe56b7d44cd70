"""What the scores of the SC'17 table are made of: facts that docs/how-certain.md tells."""

from __future__ import annotations

import numpy as np
import pytest

from policyfactory.fitting.sample import Sample


def first_of_the_shuffle(jobs: int) -> np.ndarray:
    """Return the probability of each job to end up first in the shuffle of the SC'17 program.

    It swaps position k with any of all positions, k = 0, 1, ..., not only with those from k on as Fisher and Yates do.
    """
    place = np.eye(jobs)  # place[job, position]
    for k in range(jobs):
        mean = place.mean(axis=1)
        place = place * (1 - 1 / jobs) + place[:, [k]] / jobs
        place[:, k] = mean
    return place[:, 0]


def test_the_shuffle_by_simulation() -> None:
    rng = np.random.default_rng(1)
    counts = np.zeros(8)
    for _ in range(20_000):
        order = list(range(8))
        for k in range(8):
            other = int(rng.integers(8))
            order[k], order[other] = order[other], order[k]
        counts[order[0]] += 1
    # Standard deviation of a share: at most 0.0025; five of them, a chance of 1e-6 for each of 8.
    assert counts / 20_000 == pytest.approx(first_of_the_shuffle(8), abs=0.0125)


def test_the_published_scores_follow_the_shuffle(sc17: Sample) -> None:
    expected = first_of_the_shuffle(32)
    assert expected.max() / expected.min() == pytest.approx(1.8, abs=0.02)
    by_place = sc17.score.reshape(-1, 32).mean(axis=0)
    assert np.corrcoef(expected, by_place)[0, 1] > 0.99
    # The distance to 1/32 is 0.0042; to the shuffle's probability 0.0017, which is what unbiased scores show.
    assert sc17.level_mae == pytest.approx(0.00416, abs=5e-5)
    assert np.abs(sc17.score.reshape(-1, 32) - expected).mean() == pytest.approx(0.00169, abs=5e-5)


def test_a_few_jobs_carry_the_weight(sc17: Sample) -> None:
    assert sc17.effective_tuples == pytest.approx(83.3, abs=0.1)
    weight = np.sort(sc17.weight**2)
    assert weight[-len(weight) // 100 :].sum() / weight.sum() == pytest.approx(0.6, abs=0.02)
