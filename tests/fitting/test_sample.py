"""The rows of a fit, by hand: order, weights, what is left out, what the numbers beside a fit mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policyfactory.core.errors import FitError
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.trials.table import ScoreTable
from refusals import refused


def table(stderr: float = 0.02) -> ScoreTable:
    """Return two rows of tuple 7, three of tuple 2 and two of tuple 4, mixed; one has p = 0 and one has r = 0."""
    return ScoreTable(
        p=np.array([10.0, 20.0, 0.0, 5.0, 1.0, 2.0, 9.0]),
        q=np.array([1.0, 2.0, 4.0, 2.0, 3.0, 1.0, 9.0]),
        r=np.array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 0.0]),
        score=np.array([0.4, 0.1, 0.3, 0.6, 0.2, 0.7, 0.9]),
        stderr=np.full(7, stderr),
        tuple_id=np.array([7, 2, 2, 7, 4, 2, 4]),
        name="t",
        origin="by hand",
        sha256="abc",
    )


@pytest.fixture
def sample() -> Sample:
    return prepare(table())


def test_rows_are_in_the_order_of_tuples_and_zeros_are_left_out(sample: Sample) -> None:
    # Tuple 2: (20, 2) and (2, 1); tuple 4: (1, 3); tuple 7: (10, 1) and (5, 2). In a tuple, as in the table.
    assert sample.p.tolist() == [20, 2, 1, 10, 5]
    assert sample.q.tolist() == [2, 1, 3, 1, 2]
    assert sample.r.tolist() == [3, 11, 9, 1, 7]
    assert sample.score.tolist() == [0.1, 0.7, 0.2, 0.4, 0.6]
    assert sample.weight.tolist() == [40, 2, 3, 10, 10]
    assert sample.starts.tolist() == [0, 2, 3]
    assert sample.tuple_of.tolist() == [0, 0, 1, 2, 2]
    assert (len(sample), sample.tuples, sample.left_out) == (5, 3, 2)
    assert (sample.name, sample.origin, sample.sha256) == ("t", "by hand", "abc")


def test_a_run_time_below_a_second_is_kept() -> None:
    short = table().select(slice(0, 2))
    kept = prepare(ScoreTable(short.p / 100, short.q, short.r / 100, short.score, short.stderr, short.tuple_id))
    assert (len(kept), kept.left_out) == (2, 0)


def test_the_level_is_one_over_the_size_of_each_tuple(sample: Sample) -> None:
    # 1/2 for the tuples of two, 1 for the tuple of one.
    assert sample.level_mae == pytest.approx((0.4 + 0.2 + 0.8 + 0.1 + 0.1) / 5)


def test_the_noise_is_a_mean_absolute_normal_error(sample: Sample) -> None:
    assert sample.noise_mae == pytest.approx(0.02 * math.sqrt(2 / math.pi))
    assert prepare(table(stderr=np.nan)).noise_mae is None


def test_tuples_count_by_their_squared_weights(sample: Sample) -> None:
    weights = [40**2 + 2**2, 3**2, 10**2 + 10**2]
    assert sample.effective_tuples == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))


def test_formulas_have_the_values_of_their_variables(sample: Sample) -> None:
    assert sample.values("p + 100*q + 10000*r").tolist() == [30220, 110102, 90301, 10110, 70205]
    others = sample.with_jobs(np.array([4.0]), np.array([2.0]), np.array([8.0]))
    assert others.values("sqrt(p)*q/r").tolist() == [0.5]
    for formula, unknown in (("p*w", "w"), ("q/m", "m"), ("w*m", "m, w"), ("p + f", "f")):
        refused(FitError, f"{unknown} table", sample.values, formula)


def test_the_first_tuples_are_a_sample_of_their_own(sample: Sample) -> None:
    first = sample.first_tuples(2)
    assert (first.tuples, len(first)) == (2, 3)
    assert first.starts.tolist() == [0, 2]
    for name in ("p", "q", "r", "score", "stderr", "weight", "tuple_of"):
        assert getattr(first, name).tolist() == getattr(sample, name)[:3].tolist()
    assert sample.first_tuples(3) is sample
    assert sample.first_tuples(4) is sample


def test_two_tuples_are_enough_and_one_is_not() -> None:
    assert prepare(table().select([1, 4])).tuples == 2
    refused(FitError, "1 0 3 t", prepare, table().select([1, 5, 6]))
