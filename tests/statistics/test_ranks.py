"""Places of policies in a case."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from policyfactory.core.options import FloatArray
from policyfactory.statistics.compare import ranks


@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=st.integers(0, 5) | st.just(np.nan))
)
def test_places_are_those_of_scipy(values: FloatArray) -> None:
    for lower in (True, False):
        expected = rankdata(values if lower else -values, axis=1, nan_policy="omit")
        np.testing.assert_array_equal(ranks(values, lower_is_better=lower), expected)
