"""What an arena says of candidates: ratios to the published policy, with intervals, as values and as JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.policy.nodes import PREDICTIONS
from policyfactory.policy.policy import Policy
from policyfactory.search.ledger import Counted
from policyfactory.search.published import Best
from policyfactory.search.replicated import AIMS
from policyfactory.statistics.adjusted import adjusted, level_of
from policyfactory.statistics.compare import Paired, verdict_of
from policyfactory.statistics.drawn import freedom_of
from policyfactory.statistics.intervals import Estimate, Interval

__all__ = ["Judged", "Judgement", "Verdict", "ratios_of"]

KIND = "judgement"
SCHEMA = 1
CANNOT_TELL = "cannot tell"


def ratios_of(values: FloatArray, baseline: FloatArray) -> dict[str, float | None]:
    """Return the ratio of each aim's mean over the replicas; None where the baseline's is 0.

    Parameters
    ----------
    values, baseline : float64 array (replicas, len(AIMS))
        The aims.
    """
    own, other = values.mean(axis=0).tolist(), baseline.mean(axis=0).tolist()
    made = {name: a / b if b else math.nan for name, a, b in zip(AIMS, own, other, strict=True)}
    return {name: value if math.isfinite(value) else None for name, value in made.items()}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What a candidate is worth on the part of the log that is held out.

    Parameters
    ----------
    tried : int
        Candidates that were ever tried on the log; intervals are adjusted by it.
    error : str
        Why there is none; empty if there is one.
    estimate : Estimate or None
        Mean over the replicas of the logarithm of the ratio, with its interval at 95 %.
    values, baseline : float64 array (replicas, len(AIMS)) or None
        The aims of the candidate and of the baseline.
    weeks : Estimate or None
        The change in % over the weeks of the part itself; None where it has no two weeks.
    blocks : float
        How many blocks its weeks make.
    """

    tried: int
    error: str
    estimate: Estimate | None = None
    values: FloatArray | None = None
    baseline: FloatArray | None = None
    weeks: Estimate | None = None
    blocks: float = 0.0

    @property
    def interval(self) -> Interval | None:
        """The adjusted interval of the ratio over replicas; None with fewer than six."""
        one = self.estimate
        if one is None or one.interval is None:
            return None
        wide = adjusted(one.value, one.interval, freedom_of(one.cases), self.tried)
        return Interval(_exp(wide.low), _exp(wide.high))

    @property
    def weeks_interval(self) -> Interval | None:
        """The adjusted interval of the ratio over the weeks of the part itself; None where they are too few."""
        if self.weeks is None or self.weeks.interval is None:
            return None
        wide = adjusted(self.weeks.value, self.weeks.interval, self.blocks - 1, self.tried)
        return Interval(max(1 + wide.low / 100, 0.0), 1 + wide.high / 100)

    @property
    def verdict(self) -> str:
        """``better`` or ``worse``, by the replicas, if the weeks do not say the contrary; else ``cannot tell``."""
        own, weeks = _word(self.interval), _word(self.weeks_interval)
        return CANNOT_TELL if {own, weeks} == {"better", "worse"} else own

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        if self.error or self.estimate is None or self.values is None or self.baseline is None:
            return {"error": self.error}
        weeks = self.weeks
        return {
            "ratio": _finite(_exp(self.estimate.value)),
            "interval": _ends(self.interval),
            "level": level_of(self.tried),
            "verdict": self.verdict,
            "aims": ratios_of(self.values, self.baseline),
            "weeks": {
                "ratio": None if weeks is None else _finite(1 + weeks.value / 100),
                "interval": _ends(self.weeks_interval),
                "verdict": _word(self.weeks_interval),
            },
            "error": None,
        }


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What a candidate is worth on the training replicas.

    Parameters
    ----------
    name : str
        Its name.
    text : str
        What was given, at most 200 characters of it.
    policy : Policy or None
        What was read; None if it could not be.
    error : str
        Why it has no score; empty if it has one.
    paired : Paired or None
        The logarithm of the ratio of its mean bounded slowdown to the baseline's, over the replicas.
    values, baseline : float64 array (replicas, len(AIMS)) or None
        The aims of the candidate and of the baseline.
    seconds : float
        How long it took.
    without_number : float
        Share of the jobs whose score at submission is no finite number.
    verdict : Verdict or None
        What is held out says, where it was asked.
    """

    name: str
    text: str
    policy: Policy | None
    error: str
    paired: Paired | None = None
    values: FloatArray | None = None
    baseline: FloatArray | None = None
    seconds: float = 0.0
    without_number: float = 0.0
    verdict: Verdict | None = None

    @property
    def log_ratio(self) -> float:
        """Mean over the replicas of the logarithm of the ratio; less is better; infinite of one without a score."""
        if self.error or self.paired is None or not math.isfinite(self.paired.estimate.value):
            return math.inf
        return self.paired.estimate.value

    @property
    def ratio(self) -> float:
        """The ratio: the geometric mean over the replicas; less is better; infinite of one without a score."""
        return _exp(self.log_ratio)

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the ratio over the replicas; None with fewer than six, and without a score."""
        if self.error or self.paired is None or self.paired.estimate.interval is None:
            return None
        interval = self.paired.estimate.interval
        return Interval(_exp(interval.low), _exp(interval.high))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        policy = self.policy
        said: dict[str, Any] = {"name": self.name, "given": self.text, "error": self.error or None}
        if policy is not None:
            said |= {
                "formula": policy.expression.text(),
                "static": policy.is_static,
                "reads_predictions": [name for name in PREDICTIONS if name in policy.variables],
                "seconds": round(self.seconds, 3),
            }
        if not self.error and self.values is not None and self.baseline is not None:
            said |= {
                "log_ratio": _finite(self.log_ratio),
                "ratio": _finite(self.ratio),
                "interval": _ends(self.interval),
                "aims": ratios_of(self.values, self.baseline),
                "without_number": self.without_number,
            }
        return said if self.verdict is None else {**said, "held_out": self.verdict.as_dict()}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """What was said of candidates.

    Parameters
    ----------
    sha256, log : str
        Digest of the jobs, and the log's name.
    settings : mapping
        What the scores depend on.
    baseline : Best
        The published policy that ratios are to.
    candidates : tuple of Judged
        In the order in which they were given.
    counted : Counted
        What the ledger says of the log.
    held_out : bool
        Whether what is held out was asked.
    """

    sha256: str
    log: str
    settings: Mapping[str, Any]
    baseline: Best
    candidates: tuple[Judged, ...]
    counted: Counted
    held_out: bool

    @property
    def best(self) -> Judged:
        """The candidate with the least ratio on the training replicas; the first of equal ones."""
        return min(self.candidates, key=lambda one: one.log_ratio)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        means = np.array(self.baseline.values).mean(axis=0).tolist()
        return {
            "kind": KIND,
            "schema_version": SCHEMA,
            "log": {"name": self.log, "sha256": self.sha256},
            "settings": dict(self.settings),
            "baseline": {
                "policy": self.baseline.policy.name,
                "formula": self.baseline.policy.formula,
                "means": dict(zip(AIMS, means, strict=True)),
                "published": self.baseline.means,
            },
            "candidates": [one.as_dict() for one in self.candidates],
            "ledger": dataclasses.asdict(self.counted),
        }


def _word(interval: Interval | None) -> str:
    """Return what the interval of a ratio says."""
    if interval is None:
        return CANNOT_TELL
    verdict = verdict_of(Interval(interval.low - 1, interval.high - 1))
    return verdict if verdict in {"better", "worse"} else CANNOT_TELL


def _ends(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [_finite(interval.low), _finite(interval.high)]


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
