"""What every analysis is: it looks at each schedule once, keeps little, and concludes when all are seen."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from policyfactory.analyses.logs import LogView
from policyfactory.core.errors import EvaluationError, UsageError

if TYPE_CHECKING:
    from policyfactory.report.sections import Section
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Analysis", "LogAnalysis", "check_place", "texts", "whole_number"]

View = TypeVar("View", bound=LogView)


class Analysis(abc.ABC):
    """Base of the analyses: frozen dataclasses whose fields are their options.

    ``observe`` runs beside other simulations in a thread of its own; what it returns must be small (memory is flat in
    the number of cases) and must not refer to the schedule's arrays.
    """

    name: ClassVar[str]

    @classmethod
    def with_options(cls, options: Mapping[str, Any]) -> Self:
        """Return the analysis with ``options`` for its fields.

        Raises
        ------
        UsageError
            If it has no such option.
        """
        declared: list[dataclasses.Field[Any]] = list(dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else []
        fields = [field.name for field in sorted(declared, key=lambda one: bool(one.kw_only))]
        for option in options:
            if option not in fields:
                known = f"it has {', '.join(fields)}" if fields else "it has none"
                raise UsageError(f"analysis {cls.name} has no option {option!r}; {known}")
        return cls(**options)

    def check(self, cases: Sequence[Case], policies: Sequence[str]) -> None:  # noqa: B027 (most fit any experiment)
        """Refuse, before anything is simulated, what the analysis cannot look at.

        Parameters
        ----------
        cases : sequence of Case
            What will be run at least.
        policies : sequence of str
            Names of the contenders.

        Raises
        ------
        UsageError
            If an option names a log, a case or a policy that there is not.
        """

    @abc.abstractmethod
    def observe(self, case: Case, schedule: Schedule) -> Any:
        """Return what is kept of one contender's schedule of one case; ``schedule.workload`` has the jobs."""

    @abc.abstractmethod
    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the section; ``seen[c][k]`` is what was kept of case c (row of ``evaluation``) and contender k."""

    def chosen_logs(self, evaluation: Evaluation) -> tuple[str, ...]:
        """Return the logs that are looked at: all."""
        return evaluation.logs

    def by_log(
        self, evaluation: Evaluation, seen: list[list[Any]], view: Callable[[Evaluation, str, list[list[Any]]], View]
    ) -> list[View]:
        """Return each log that is looked at, with what was kept of its cases."""
        return [
            view(evaluation, log, [seen[row] for row in evaluation.rows(log).tolist()])
            for log in self.chosen_logs(evaluation)
        ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogAnalysis(Analysis):
    """An analysis that may be of one log only.

    Parameters
    ----------
    log : str
        The log to look at; empty: each.
    """

    log: str = ""

    def check(self, cases: Sequence[Case], policies: Sequence[str]) -> None:
        """Refuse a log that there is not."""
        check_place(cases, self.name, self.log)

    def chosen_logs(self, evaluation: Evaluation) -> tuple[str, ...]:
        """Return the log that was asked for, or all if none was.

        Raises
        ------
        EvaluationError
            If there is no such log.
        """
        if self.log and self.log not in evaluation.logs:
            known = ", ".join(evaluation.logs)
            raise EvaluationError(f"analysis {self.name}: there is no log {self.log!r}; there are {known}")
        return (self.log,) if self.log else evaluation.logs


# Options. ------------------------------------------------------------------------------------------------------------


def whole_number(analysis: str, option: str, value: object, least: int) -> int:
    """Return ``value`` if it is a whole number of at least ``least``.

    Raises
    ------
    UsageError
        If it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"analysis {analysis}: {option} is {value!r}; give a whole number of at least {least}")
    return value


def texts(analysis: str, option: str, value: object) -> tuple[str, ...]:
    """Return ``value``, a text or a list of texts, as a tuple.

    Raises
    ------
    UsageError
        If it is neither.
    """
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(text, str) for text in given):
        raise UsageError(f"analysis {analysis}: {option} is {value!r}; give a text or a list of texts")
    return tuple(given)


def check_place(cases: Sequence[Case], analysis: str, log: str, number: int | None = None) -> None:
    """Refuse a log that there is not, and a case that none of the logs to look at has.

    Raises
    ------
    UsageError
        If so.
    """
    logs = list(dict.fromkeys(case.log for case in cases))
    if log not in ("", *logs):
        raise UsageError(
            f"analysis {analysis}: there is no log {log!r}; there {'is' if len(logs) == 1 else 'are'} {', '.join(logs)}"
        )
    numbers = [case.number for case in cases if log in {"", case.log}]
    if number is not None and number not in numbers:
        raise UsageError(
            f"analysis {analysis}: there is no case {number}; choose one of {min(numbers)} to {max(numbers)}"
        )
