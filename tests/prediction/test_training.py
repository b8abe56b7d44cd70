"""The compiled trees are those of scikit-learn, and training is the same each time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from policyfactory.core.jit import kernel
from policyfactory.engine.past import Forest, forest_sum
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import flattened, train


@kernel
def sums(forest: Forest, rows: np.ndarray) -> np.ndarray:
    values = np.empty(len(rows))
    for row in range(len(rows)):
        values[row] = forest_sum(forest, rows[row])
    return values


def sample(seed: int, rows: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, 6))
    features[:, 3] = rng.integers(0, 3, rows)
    return features, 1 / (1 + np.exp(-features[:, 0] - features[:, 3] + rng.normal(size=rows)))


def foretold(
    model: HistGradientBoostingRegressor, features: np.ndarray, outcome: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Return what a model predicts that is trained as ours are, by one thread: two would wait busily for each other."""
    with threadpool_limits(1):
        return np.asarray(model.fit(features, outcome).predict(rows))


@pytest.mark.parametrize("loss", ["poisson", "quantile"])
def test_the_sum_is_what_scikit_learn_predicts(loss: str) -> None:
    features, outcome = sample(1)
    quantile = 0.9 if loss == "quantile" else None
    model = HistGradientBoostingRegressor(loss=loss, quantile=quantile, max_iter=30, random_state=0)
    # Values between those that were seen, too.
    rows = np.concatenate([features, sample(2)[0] * 3])
    expected = foretold(model, features, outcome, rows)
    ours = sums(flattened(model), rows)
    np.testing.assert_allclose(np.exp(ours) if loss == "poisson" else ours, expected, rtol=1e-12)


def test_training_twice_gives_the_same_trees() -> None:
    features, outcome = sample(3)
    one, other = (train(features, outcome, PredictorOptions(trees=10)) for _ in range(2))
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


def test_the_quantile_is_exceeded_by_one_in_ten() -> None:
    forest = train(*sample(4), PredictorOptions(trees=60), quantile=True)
    features, outcome = sample(8)  # jobs that it was not trained on
    assert 0.06 < (outcome > sums(forest, features)).mean() < 0.14


def test_the_quantile_is_that_of_the_newest_jobs() -> None:
    # What the features do not tell: the last jobs run longer.
    features, outcome = sample(6)
    options = PredictorOptions(trees=30)
    drift = np.where(np.arange(len(outcome)) < 2600, 0.5, 0.8)
    tail = sums(train(features, drift * outcome, options, quantile=True), features)
    newest = slice(-200, None)
    assert (drift * outcome > tail)[newest].mean() < 0.15
    plain = HistGradientBoostingRegressor(loss="quantile", quantile=0.9, max_iter=30, random_state=0)
    old = foretold(plain, features[:2600], (drift * outcome)[:2600], features)
    assert (drift * outcome > old)[newest].mean() > 0.3


def test_of_few_jobs_none_is_held_out() -> None:
    features, outcome = sample(7, rows=99)
    forest = train(features, outcome, PredictorOptions(trees=3), quantile=True)
    assert forest.base == pytest.approx(np.quantile(outcome, 0.9))


def test_the_mean_is_the_mean() -> None:
    features, outcome = sample(5)
    mean = np.exp(sums(train(features, outcome, PredictorOptions(trees=60)), features))
    assert abs(mean.mean() - outcome.mean()) < 0.01
    assert np.corrcoef(mean, outcome)[0, 1] > 0.7
