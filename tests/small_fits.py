"""Small fits: forms are four fifths of the time that `learn` takes on a small log, and `distill`."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator

import pytest

from policyfactory.fitting import forms
from policyfactory.learning import steps
from policyfactory.search import distill_fit
from support import NIGHTLY

__all__ = ["few_fits"]


@contextlib.contextmanager
def few_fits() -> Iterator[None]:
    """Fit a twelfth of the forms and resample scores 20 times, not 200, in tests of what is done with fits.

    tests/fitting has what fits are. At night all forms are fitted, and scores resampled as often as for a user.
    """
    if NIGHTLY:
        yield
        return
    some = dict(itertools.islice(forms.distinct_forms().items(), 0, None, 12))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(forms, "distinct_forms", lambda: some)
        changed.setattr(distill_fit, "distinct_forms", lambda: some)
        changed.setattr(steps, "fit", functools.partial(steps.fit, bootstrap=20))
        yield
