"""What every analysis is: it looks at each schedule once, keeps little, and concludes when all are seen."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from policyfactory.core.errors import UsageError

if TYPE_CHECKING:
    from policyfactory.report.sections import Section
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Analysis"]


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
        fields: list[str] = [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
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
