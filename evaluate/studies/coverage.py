"""Measure the coverage of the intervals (docs/statistics.md): ``python evaluate/studies/coverage.py --output docs``.

Each experiment draws n cases from a known distribution and asks whether the 95 % interval of the statistic holds its
true value. It writes ``data/coverage.csv``: 2,000 experiments each, about four minutes on one core.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.files import atomic_write
from policyfactory.core.text import WEEK
from policyfactory.statistics.compare import ranks
from policyfactory.statistics.evaluation import block_weeks, estimate_weekly
from policyfactory.statistics.intervals import MIN_CASES, Estimate, estimate_mean, estimate_median, estimate_ratio

__all__ = ["CASES", "SETTINGS", "Setting", "held", "main"]

FloatArray = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], FloatArray]

CASES = (6, 10, 30, 60)
_PLACES = np.array([0.0, 0.3, 0.6, 1.5])  # how much better four policies are than the one before


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is estimated of what.

    Parameters
    ----------
    statistic, values : str
        What the CSV calls them.
    draw : callable
        Returns n cases: float64 array (n,), or (n, 2) for a ratio, or (n, policies) for places.
    truth : float
        The true value of the statistic.
    block : int
        Of weeks, how many are drawn together; six times as many are the least.
    """

    statistic: str
    values: str
    draw: Draw
    truth: float
    block: int = 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cases an experiment has, where that gives an interval."""
        return tuple(cases for cases in CASES if cases >= MIN_CASES * self.block)

    def estimate(self, cases: FloatArray, seed: int) -> Estimate:
        """Return the statistic of some cases with its interval."""
        if self.statistic == "median":
            return estimate_median(cases)
        if self.statistic == "mean":
            return estimate_mean([cases], seed=seed)
        if self.statistic == "ratio":
            return estimate_ratio(cases[:, 0], cases[:, 1], seed=seed)
        if self.statistic == "weeks":
            return estimate_weekly(cases[:, 0], cases[:, 1], self.block, seed=seed)
        return estimate_mean([ranks(cases)[:, 1]], seed=seed, places=True)


def _pairs(spread: float, noise: float) -> Draw:
    """Return pairs of a policy that is at 70 % of its baseline on average; both lognormal, as slowdowns are."""

    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        baseline = rng.lognormal(0, spread, n)
        return np.column_stack([0.7 * baseline * rng.lognormal(-(noise**2) / 2, noise, n), baseline])

    return draw


def _differences(rng: np.random.Generator, n: int) -> FloatArray:
    """Return differences of lognormal pairs with equal means."""
    pairs = _pairs(1.0, 0.3)(rng, n)
    result: FloatArray = pairs[:, 0] / 0.7 - pairs[:, 1]
    return result


def _four(rng: np.random.Generator, n: int) -> FloatArray:
    """Return the values of four policies that share the case's level."""
    return rng.lognormal(0, 1, (n, 1)) * rng.lognormal(-0.3 * _PLACES, 0.4, (n, 4))


def _weeks(rho: float, *, skewed: bool) -> Draw:
    """Return weeks whose means follow an autoregression, and which have different numbers of jobs."""

    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        noise = rng.normal(size=n) * math.sqrt(1 - rho**2)
        mean = np.empty(n)
        mean[0] = rng.normal()
        for week in range(1, n):
            mean[week] = rho * mean[week - 1] + noise[week]
        jobs = rng.lognormal(0, 0.3, n)
        return np.column_stack([jobs * (np.exp(mean) if skewed else mean), jobs])

    return draw


def _block(rho: float) -> int:
    """Return how many weeks are drawn together where their means follow an autoregression."""
    return block_weeks((1 + rho) / (1 - rho) * WEEK) or 1


def _median_difference() -> float:
    """Return the true median of the differences of lognormal pairs, by a sample of two million."""
    return float(np.median(_differences(np.random.default_rng(0), 2_000_000)))


def _mean_place() -> float:
    """Return the true mean place of the second of the four, by a sample of half a million."""
    values = _four(np.random.default_rng(0), 500_000)
    return 1 + float((values < values[:, [1]]).sum(axis=1).mean())


def _settings() -> list[Setting]:
    def normal(rng: np.random.Generator, n: int) -> FloatArray:
        return rng.normal(size=n)

    def lognormal(rng: np.random.Generator, n: int) -> FloatArray:
        return rng.lognormal(size=n)

    def heavy(rng: np.random.Generator, n: int) -> FloatArray:
        return rng.standard_t(2, size=n)

    return [
        Setting("median", "normal", normal, 0.0),
        Setting("median", "lognormal", lognormal, 1.0),
        Setting("median", "t with 2 degrees", heavy, 0.0),
        Setting("median", "differences of lognormal pairs", _differences, _median_difference()),
        Setting("mean", "normal", normal, 0.0),
        Setting("mean", "lognormal", lognormal, math.exp(0.5)),
        Setting("mean", "t with 2 degrees", heavy, 0.0),
        Setting("mean", "differences of lognormal pairs", _differences, 0.0),
        Setting("ratio", "lognormal pairs, spread 0.3, noise 0.1", _pairs(0.3, 0.1), -30.0),
        Setting("ratio", "lognormal pairs, spread 1, noise 0.3", _pairs(1.0, 0.3), -30.0),
        Setting("ratio", "lognormal pairs, spread 1, noise 1", _pairs(1.0, 1.0), -30.0),
        Setting("place", "four policies, lognormal", _four, _mean_place()),
        Setting("weeks", "normal, independent", _weeks(0, skewed=False), 0.0),
        Setting("weeks", "lognormal, independent", _weeks(0, skewed=True), math.exp(0.5)),
        Setting("weeks", "normal, correlation 0.4", _weeks(0.4, skewed=False), 0.0, _block(0.4)),
        Setting("weeks", "lognormal, correlation 0.4", _weeks(0.4, skewed=True), math.exp(0.5), _block(0.4)),
    ]


SETTINGS = _settings()


def held(setting: Setting, cases: int, experiments: int, seed: int = 1) -> int:
    """Return in how many of the experiments the interval holds the truth."""
    rng = np.random.default_rng([seed, cases, *map(ord, setting.statistic + setting.values)])
    result = 0
    for at in range(experiments):
        interval = setting.estimate(setting.draw(rng, cases), at % 5).interval
        assert interval is not None  # noqa: S101 (there are cases enough)
        result += interval.covers(setting.truth)
    return result


def main(arguments: list[str] | None = None) -> None:
    """Measure all settings and write the CSV."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--experiments", type=int, default=2_000)
    given = parser.parse_args(arguments)
    lines = ["statistic,values,cases,experiments,held,coverage"]
    for setting in SETTINGS:
        for cases in setting.sizes:
            result = held(setting, cases, given.experiments)
            share = result / given.experiments
            lines.append(f'{setting.statistic},"{setting.values}",{cases},{given.experiments},{result},{share:.4f}')
    (given.output / "data").mkdir(parents=True, exist_ok=True)
    atomic_write(given.output / "data" / "coverage.csv", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
