"""Score tables to fit to: the published one, and ones whose formula is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from policyfactory.fitting.forms import FormsResult, fit_all_forms, fit_all_polynomials, fit_user_form
from policyfactory.fitting.regression import Fit
from policyfactory.fitting.sample import Sample, prepare
from policyfactory.trials.table import ScoreTable, read_score_table

Make = Callable[..., ScoreTable]


def make_table(
    formula: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    *,
    tuples: int = 40,
    noise: float = 0.0,
    seed: int = 1,
    size: int = 32,
) -> ScoreTable:
    """Return scores that follow a formula of p, q, r, with normal noise and jobs like those of a cluster."""
    rng = np.random.default_rng(seed)
    n = tuples * size
    p = np.ceil(10 ** rng.uniform(0, 5, n))
    q = np.floor(2 ** rng.uniform(0, 8, n))
    r = np.ceil(rng.uniform(1000, 150_000, n))
    score = np.clip(formula(p, q, r) + rng.normal(0, noise, n), 0, 1)
    stderr = np.full(n, noise or np.nan)
    return ScoreTable(p, q, r, score, stderr, np.repeat(np.arange(tuples), size), name="made")


@pytest.fixture(scope="session")
def made() -> Make:
    """Give ``made(formula, tuples=..., noise=..., seed=...)``."""
    return make_table


@pytest.fixture(scope="session")
def sc17_table(shared: Callable[[str], Path]) -> ScoreTable:
    """The score table of the SC'17 artifact: 216 tuples."""
    return read_score_table(shared("oracles/sc17-score-distribution.csv"))


@pytest.fixture(scope="session")
def sc17(sc17_table: ScoreTable) -> Sample:
    """The rows of the SC'17 table."""
    return prepare(sc17_table)


# Fits are frozen, here with their arrays: those that many tests ask for are made once.


def frozen(*fits: Fit) -> tuple[Fit, ...]:
    for fit in fits:
        fit.coefficients.setflags(write=False)
    return fits


@pytest.fixture(scope="session")
def sc17_forms(sc17: Sample) -> FormsResult:
    """The 576 forms, fitted to that table."""
    result = fit_all_forms(sc17)
    frozen(*result.fits)
    return result


@pytest.fixture(scope="session")
def sc17_polynomials(sc17: Sample) -> tuple[Fit, ...]:
    """The polynomials, fitted to that table."""
    return frozen(*fit_all_polynomials(sc17)[0])


@pytest.fixture(scope="session")
def power() -> str:
    """A form that is not linear in all coefficients."""
    return "a*p**b*q + c*log10(r)"


@pytest.fixture(scope="session")
def sc17_power(sc17: Sample, power: str) -> Fit:
    """That form, fitted to that table."""
    return frozen(fit_user_form(sc17, power))[0]
