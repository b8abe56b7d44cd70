"""Statistics of forecasts: intervals that would have been right, scores, and jobs that are cancelled before they start.

Earlier forecasts are compared with what came, and the next ones are stretched.

In ln(start + 60 s), the median is moved to where half of the earlier starts would have come before it, and distances
from it are multiplied by what the earlier forecasts would have needed to contain as many starts as they said, each end
by itself (split conformal prediction of quantiles: Y. Romano, E. Patterson and E. Candès, "Conformalized quantile
regression", NeurIPS 2019).
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import shortened
from policyfactory.engine.events import NEVER

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_ENDS = (0, 1, 3, 4)  # of these, all but the median
TRUSTED = 0.8  # of starts that intervals of 90 % must have contained
FEWEST = 30  # earlier forecasts without which nothing is stretched
_LEAST, _MOST = 0.5, 5.0  # factors
_FARTHEST, _NARROWEST = 0.7, 1e-3  # shift; distance
_RESOLUTION = 60.0  # s: below, starts are equal


# The forecast of an instant and what came: starts from then on at `LEVELS`, not stretched (float64 (5, jobs), s), and
# when the jobs started, at most the horizon (float64 (jobs,), s).
PastForecast = tuple[FloatArray, FloatArray]


@dataclasses.dataclass(frozen=True, slots=True)
class Stretch:
    """How much later the median is than futures say, and how much further from it the ends of intervals lie.

    Parameters
    ----------
    shift : float
        Of the median, in ln(start + 60 s).
    factors : tuple of 4 floats
        Of the levels 0.05, 0.25, 0.75 and 0.95.
    instants : int
        From how many earlier forecasts; 0: none, and all factors are 1.
    log, rules : str
        Of what these were.
    inside : float
        What share of the starts the intervals of 90 % contained in the end; NaN: not known.
    """

    shift: float = 0.0
    factors: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    instants: int = 0
    log: str = ""
    rules: str = ""
    inside: float = math.nan

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Stretch:
        """Return what `dataclasses.asdict` gives of one, as JSON has it.

        Raises
        ------
        ValueError
            If a value cannot be.
        """
        shift, factors = float(content["shift"]), tuple(float(value) for value in content["factors"])
        if len(factors) != 4 or not all(0 < value < 100 for value in (*factors, shift + 50)):
            raise ValueError(f"shift {shift} and factors {factors}, expected four between 0 and 100")
        inside, (log, rules) = content.get("inside"), (str(content.get(name, ""))[:200] for name in ("log", "rules"))
        known = math.nan if inside is None else float(inside)
        return cls(shift, factors, int(content["instants"]), shortened(log, 100), shortened(rules, 100), known)

    def apply(self, starts: FloatArray, horizon: float) -> FloatArray:
        """Return the starts of futures, stretched.

        Parameters
        ----------
        starts : float64 array (futures, jobs), s
        horizon : float, s
            Beyond which no start is told.
        """
        if not self.instants or not starts.size:
            return starts
        futures = len(starts)
        lowest, low, high, highest = self.factors
        levels = (np.arange(futures) + 0.5) / futures
        ends = [0.0, *LEVELS, 1.0]
        factors = np.interp(levels, ends, [lowest, lowest, low, (low + high) / 2, high, highest, highest])
        order = np.argsort(starts, axis=0, kind="stable")
        kept = np.take_along_axis(starts, order, axis=0)
        logs = np.log(kept + _RESOLUTION)
        middle = np.median(logs, axis=0)
        moved = np.exp(middle + self.shift + factors[:, None] * (logs - middle)) - _RESOLUTION
        # Factors that fall towards the ends could change the order.
        below, above = moved[: futures // 2], moved[futures // 2 :]
        below[:] = np.minimum.accumulate(below[::-1], axis=0)[::-1]
        above[:] = np.maximum.accumulate(above, axis=0)
        stretched = np.empty_like(starts)
        # What begins now, or beyond the horizon, does so still.
        moved = np.where((kept <= 0) | (kept >= horizon), kept, np.clip(moved, 0.0, horizon))
        np.put_along_axis(stretched, order, moved, axis=0)
        return stretched


def stretch_of(outcomes: Sequence[PastForecast], horizon: float) -> Stretch:
    """Return what earlier forecasts would have needed; each of them counts once, however many jobs it is of.

    Parameters
    ----------
    outcomes : sequence of PastForecast
        Of instants whose horizons are over.
    horizon : float, s
    """
    found: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for quantiles, start in outcomes:
        # Of a job that begins at once for certain, or beyond the horizon, there is no interval.
        open_ends = (quantiles[4] > 0) & ~((quantiles[0] >= horizon) & (start >= horizon))
        if open_ends.any():
            logs = np.log(quantiles[:, open_ends] + _RESOLUTION)
            distances = np.maximum(np.abs(logs[list(_ENDS)] - logs[2]), _NARROWEST)
            later = np.log(start[open_ends] + _RESOLUTION) - logs[2]
            found.append((later, distances, np.full(len(later), 1.0 / len(later))))
    if len(found) < FEWEST:
        return Stretch()
    later, distances, weights = (np.concatenate([part[which] for part in found], axis=-1) for which in range(3))
    shift = float(np.clip(_weighted(later, weights, 0.5), -_FARTHEST, _FARTHEST))
    factors = []
    for row, end in enumerate(_ENDS):
        # At the lower ends as many are to lie above as at the upper ends below.
        beyond = later - shift if end > 2 else shift - later
        needed = _weighted(beyond / distances[row], weights, max(LEVELS[end], 1 - LEVELS[end]))
        factors.append(float(np.clip(needed, _LEAST, _MOST)))
    lowest, low, high, highest = factors
    return Stretch(shift, (lowest, low, high, highest), len(found))


def _weighted(values: FloatArray, weights: FloatArray, share: float) -> float:
    """Return the least value up to which a share of the weights lies."""
    order = np.argsort(values, kind="stable")
    reached = np.searchsorted(np.cumsum(weights[order]), share * weights.sum())
    return float(values[order[min(reached, len(order) - 1)]])


# Scores ---------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Score:
    """How good a method is on some jobs, a mean over instants of means over jobs; NaN where there is none.

    Parameters
    ----------
    instants, jobs : int
    inside50, inside90 : float
        Share of starts in the intervals, of jobs whose start is not certain.
    early, late : float
        Share of them before and after the interval of 90 %.
    below : float
        Share that starts by the median.
    pinball : float, s
        Mean loss over the levels.
    absolute : float, s
        Error of the median.
    ratio : float
        e to the mean absolute error of ln(start + 60 s).
    minute, ten_minutes : float
        Share whose median is so near.
    """

    instants: int
    jobs: int
    inside50: float
    inside90: float
    early: float
    late: float
    below: float
    pinball: float
    absolute: float
    ratio: float
    minute: float
    ten_minutes: float


def score_of(outcomes: Sequence[PastForecast], horizon: float) -> Score:
    """Return how good forecasts are, of which each counts once, however many jobs it is of.

    Parameters
    ----------
    outcomes : sequence of PastForecast
    horizon : float, s
        Beyond which no start is told.
    """
    rows, count = [], 0
    for quantiles, start in outcomes:
        if not len(start):
            continue
        count += len(start)
        low, quarter, median, most, high = quantiles
        # Of a start that is certain, now or beyond the horizon, there is no interval.
        is_open = ~((low >= horizon) & (start >= horizon)) & ((high > 0) | (start > 0))
        error, logs = np.abs(start - median), np.abs(np.log((start + _RESOLUTION) / (median + _RESOLUTION)))
        inside = ((start >= quarter) & (start <= most)), ((start >= low) & (start <= high))
        shares = (*inside, start < low, start > high, start <= median)
        errors = (pinball(quantiles, start), error, logs, error <= 60, error <= 600)
        rows.append([*(_mean(share[is_open]) for share in shares), *map(_mean, errors)])
    if not rows:
        return Score(0, 0, *[np.nan] * 10)
    known = np.array(rows)
    means = [float(np.nanmean(column)) if np.isfinite(column).any() else np.nan for column in known.T]
    means[7] = float(np.exp(means[7]))
    return Score(len(rows), count, *means)


def pinball(quantiles: FloatArray, start: FloatArray) -> FloatArray:
    """Return the mean pinball loss over the levels of each job (R. Koenker and G. Bassett, Econometrica 46, 1978)."""
    levels, error = np.array(LEVELS)[:, None], start - quantiles
    return np.asarray(np.maximum(levels * error, (levels - 1) * error).mean(axis=0))


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else np.nan


# Jobs that wait until they start or are cancelled: how likely the latter is, and when they had started otherwise ------

# Of a job that was cancelled nobody knows when it would have started, and of one that started when it would have been
# cancelled: each ends the waiting that the other is counted in (competing risks, taken for independent of each other).


_GOLDEN = 0.618034


class CancellationHazard:
    """The hazard of being cancelled by the time waited (W. Nelson, Technometrics 14, 1972).

    Jobs that started, or wait still, count as long as they waited. All users are one: that one has cancelled more than
    others does not say that he will (docs/forecast.md).

    Parameters
    ----------
    waited : int64 array (n,), s
        How long jobs waited, up to now.
    gave_up : bool array (n,)
        Which of them were cancelled then.

    Attributes
    ----------
    times : int64 array (k,), s
        After which jobs were cancelled, ascending.
    """

    def __init__(self, waited: Int64Array, gave_up: NDArray[np.bool_]) -> None:
        self.times, counts = np.unique(waited[gave_up], return_counts=True)
        there = len(waited) - np.searchsorted(np.sort(waited), self.times)
        self._hazard = np.cumsum(counts / there)

    def draw(self, waited: int, chance: FloatArray) -> Int64Array:
        """Return for how long a job waits from then on until it is cancelled.

        Parameters
        ----------
        waited : int, s
        chance : float64 array (futures,)
            Uniform from 0 to 1.

        Returns
        -------
        int64 array (futures,), s
            At least 1; `policyfactory.engine.events.NEVER` where it is not cancelled as far as anybody has waited.
        """
        before = int(np.searchsorted(self.times, waited, side="right"))
        reached = (self._hazard[before - 1] if before else 0.0) - np.log1p(-chance)
        times = np.append(self.times, NEVER)[np.searchsorted(self._hazard, reached)]
        return np.where(times < NEVER, np.maximum(times - waited, 1), NEVER)


def starts_if_kept(starts: FloatArray, patience: Int64Array, horizon: float) -> FloatArray:
    """Return when jobs start that are not cancelled: where one was, as in the futures in which it starts later.

    Each takes the start of one of those, the one with most patience first (the redistribution to the right of B. Efron,
    5th Berkeley Symposium 4, 1967, which is the estimate of Kaplan and Meier).

    Parameters
    ----------
    starts : float64 array (futures, jobs), s
        At most the horizon.
    patience : int64 array (futures, jobs), s
        When it was cancelled if it waited still.
    horizon : float, s
    """
    kept = starts.copy()
    gone = (starts > patience) & (patience < horizon)
    for column in np.flatnonzero(gone.any(axis=0)).tolist():
        known = np.sort(starts[~gone[:, column], column]).tolist()
        futures = np.flatnonzero(gone[:, column])
        for future in futures[np.argsort(-patience[futures, column], kind="stable")].tolist():
            first = bisect_right(known, int(patience[future, column]))
            later = known[first + int(_GOLDEN * future % 1.0 * (len(known) - first))] if first < len(known) else horizon
            kept[future, column] = later
            insort(known, later)
    return kept
