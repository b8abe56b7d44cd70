"""One log of an evaluation with what an analysis kept of its schedules, and what its cases are called in a sentence."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.text import counted
from policyfactory.report.caveats import noun
from policyfactory.statistics.intervals import MIN_CASES

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["LogView"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class LogView:
    """One log as an analysis sees it; analyses extend it by what they compute from ``kept``.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    log : str
        Name of the log.
    kept : list of list [case][policy]
        What ``observe`` returned.
    """

    evaluation: Evaluation
    log: str
    kept: list[list[Any]]

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the contenders; the first is the baseline."""
        return self.evaluation.policies

    @property
    def baseline(self) -> str:
        """Name of the baseline."""
        return self.evaluation.baseline

    @property
    def noun(self) -> str:
        """What a case is called: ``window``, ``resampled log``, ``log``."""
        return noun(self.evaluation, self.log)

    @property
    def cases(self) -> str:
        """How many cases of which kind there are: ``10 resamples``, ``the whole log``."""
        kind = self.evaluation.cases[int(self.evaluation.rows(self.log)[0])].kind
        return "the whole log" if kind == "log" else counted(len(self.kept), kind)

    @property
    def titled(self) -> str:
        """The log with its cases: ``kth (10 resamples)``."""
        return f"{self.log} ({self.cases})"

    @property
    def few_cases(self) -> str:
        """Why the log has no intervals."""
        return f"{self.cases.capitalize()}: too few cases for intervals ({MIN_CASES} are needed)."

    @property
    def no_intervals(self) -> str:
        """The same after other sentences, from a blank on; empty where there are enough cases."""
        enough = len(self.kept) >= MIN_CASES
        return "" if enough else f" No intervals: {counted(len(self.kept), self.noun)}, {MIN_CASES} are needed."

    @property
    def drawn(self) -> float | None:
        """The widening of cases that were drawn from the log; None of others (`Evaluation.drawn`)."""
        return self.evaluation.drawn(self.log)

    @property
    def machine(self) -> int:
        """Processors of the machine."""
        return max(case.machine for case in self.evaluation.cases if case.log == self.log)

    def number(self, at: int) -> int:
        """Return the number of the log's case ``at``, counted from 0."""
        number: int = self.evaluation.cases[int(self.evaluation.rows(self.log)[at])].number
        return number

    def place_of(self, number: int) -> str:
        """Return what a case is called in a sentence: ``window 3``, ``resampled log 3``, ``the log``."""
        return "the log" if self.noun == "log" else f"{self.noun} {number}"

    def values(self, get: str | Callable[[Any], Any]) -> FloatArray:
        """Return one number of what was kept: float64 array (cases, policies).

        Parameters
        ----------
        get : str or callable
            Name of the attribute, or what makes the number.
        """
        of = operator.attrgetter(get) if isinstance(get, str) else get
        return np.array([[of(one) for one in case] for case in self.kept], dtype=np.float64)
