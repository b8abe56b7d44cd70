"""What every analysis is: it looks at each schedule once, keeps little, and concludes when all are seen."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray
from policyfactory.core.text import DAY, anchors, counted, enumerated, shortened
from policyfactory.report.caveats import listed, noun, too_few_cases
from policyfactory.report.sections import Cell, Column, Columns, Picture, Section, Table, scale_for, with_ends
from policyfactory.statistics.compare import verdict_of
from policyfactory.statistics.intervals import (
    MIN_CASES,
    Estimate,
    Interval,
    estimate_drawn,
    estimate_mean,
    estimate_median,
    judged_together,
    logarithms,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.simulation.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation


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
    def heading(self) -> str:
        """What stands above a panel of the log."""
        return f"{shortened(self.log, 44)}, {self.cases}"

    @property
    def no_intervals(self) -> str:
        """Why the log has no intervals, from a blank on; empty where there are enough cases."""
        return "" if len(self.kept) >= MIN_CASES else f" {too_few_cases(len(self.kept), self.noun)}"

    @property
    def drawn(self) -> float | None:
        """The widening of cases that were drawn from the log; None of others (`Evaluation.drawn`)."""
        return self.evaluation.drawn(self.log)

    @property
    def machine(self) -> int:
        """Processors of the machine."""
        return max(case.machine for case in self.evaluation.cases if case.log == self.log)

    def number(self, index: int) -> int:
        """Return the number of the log's case ``index``, counted from 0."""
        number: int = self.evaluation.cases[int(self.evaluation.rows(self.log)[index])].number
        return number

    def case_name(self, number: int) -> str:
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
        return np.array([[of(kept) for kept in case] for case in self.kept], dtype=np.float64)


# What every analysis is -----------------------------------------------------------------------------------------------


View = TypeVar("View", bound=LogView)
How: TypeAlias = Literal["median", "mean", "count", "share"]


class Analysis(abc.ABC):
    """Base of the analyses: frozen dataclasses whose fields are their options.

    ``observe`` runs beside other simulations in a thread of its own; what it returns must be small (memory is flat in
    the number of cases) and must not refer to the schedule's arrays.
    """

    name: ClassVar[str]
    log: str = ""

    @classmethod
    def with_options(cls, options: Mapping[str, Any]) -> Self:
        """Return the analysis with ``options`` for its fields.

        Raises
        ------
        UsageError
            If it has no such option.
        """
        declared: list[dataclasses.Field[Any]] = list(dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else []
        fields = [field.name for field in sorted(declared, key=lambda field: bool(field.kw_only))]
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

    def by_log(
        self, evaluation: Evaluation, seen: list[list[Any]], view: Callable[[Evaluation, str, list[list[Any]]], View]
    ) -> list[View]:
        """Return each log that is looked at, with what was kept of its cases."""
        return [
            view(evaluation, log, [seen[row] for row in evaluation.rows(log).tolist()])
            for log in evaluation.logs
            if self.log in {"", log}
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
        check_case(cases, self.name, self.log)


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


def check_case(cases: Sequence[Case], analysis: str, log: str, number: int | None = None) -> None:
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


# What the cases of a log say together ---------------------------------------------------------------------------------

# Estimates over cases, and differences from the baseline paired by case.
#
# What is kept of a schedule is a few numbers. Shares and counts are averaged over the cases (shares add up to 100
# then); of what has heavy tails (waits, slowdowns and their ratios) the median over the cases is taken. Differences
# from the baseline are paired by case. 95 % intervals where there are enough cases.


def estimate_of(values: FloatArray, how: How = "median") -> Estimate:
    """Return the estimate over the cases of the values that there are (NaN: a case has none), with its interval.

    Parameters
    ----------
    values : float64 array (cases,)
        One number of each case.
    how : {"median", "mean", "count", "share"}
        ``count`` is a mean of what is never below 0, ``share`` one of shares in %: their intervals are not outside.
    """
    known = values[np.isfinite(values)]
    if how == "median":
        return estimate_median(known)
    ends = {"mean": (-math.inf, math.inf), "count": (0.0, math.inf), "share": (0.0, 100.0)}
    return estimate_mean([known]).within(*ends[how])


def differences_of(values: FloatArray, how: How = "median") -> list[Estimate]:
    """Return the estimate of (value minus the baseline's), paired by case, of each policy.

    Parameters
    ----------
    values : float64 array (cases, policies)
        NaN where a case has none; the baseline is the first column.
    how : str
        As in `estimate_of`.
    """
    return [estimate_of(column, how) for column in (values - values[:, :1]).T]


def marks_of(
    differences: Sequence[Estimate], values: FloatArray, drawn: float | None, *, lower_is_better: bool | None = True
) -> list[str]:
    """Return the verdicts on the policies' differences in one number, judged together (`judged_together`).

    Parameters
    ----------
    differences : sequence of Estimate
        Of each policy; the first, the baseline's own, has no verdict, and nothing without an interval has one.
    values : float64 array (cases, policies)
        What they are differences of; at least 0.
    drawn : float or None
        The widening of cases that were drawn from one log (`LogView.drawn`): verdicts are then those of the log.
    lower_is_better : bool or None
        Which way is good; None: what differs is ``higher`` or ``lower``.
    """
    compared = (differences if drawn is None else _of_draws(differences, values, drawn))[1:]
    alone = [verdict_of(difference.interval, lower_is_better=lower_is_better) for difference in compared]
    called = judged_together(alone, [difference.p for difference in compared])
    marks = {"differs": "higher", "too few cases": ""}
    return [
        "",
        *(
            "lower" if verdict == "differs" and difference.value < 0 else marks.get(verdict, verdict)
            for difference, (verdict, _) in zip(compared, called, strict=True)
        ),
    ]


def _of_draws(differences: Sequence[Estimate], values: FloatArray, widening: float) -> list[Estimate]:
    """Return how far each policy is from the baseline over draws of a log, in logarithms (`estimate_drawn`)."""
    changes = logarithms(values, 0.0)
    changes = changes - changes[:, :1]
    return [
        plain if plain.interval is None else estimate_drawn(change[np.isfinite(change)], widening=widening)
        for plain, change in zip(differences, changes.T, strict=True)
    ]


# Tables and pictures of analyses --------------------------------------------------------------------------------------

# A row a log and policy, values beside their differences from the baseline.


def log_column(*, several: bool) -> Columns:
    """Return the column of the log, if there are several; each row begins with a view of its log."""
    return {Column("log"): lambda view, *_: view.log} if several else {}


def policy_table(
    name: str, title: str, logs: Sequence[LogView], columns: Columns, note: str = "", *, first: int = 0
) -> Table:
    """Return a table with a row a log and policy.

    Parameters
    ----------
    name, title, note : str
        As the table has them.
    logs : sequence of LogView
        The logs.
    columns : mapping of Column to callable
        What follows the names; each callable makes a cell from the log and the index of the policy.
    first : int
        Index of the first policy that has a row; 1 leaves the baseline out.
    """
    rows = [(view, index) for view in logs for index in range(first, len(view.policies))]
    names = {**log_column(several=len(logs) > 1), Column("policy"): lambda view, index: view.policies[index]}
    return Table.of(name, title, {**names, **columns}, rows, note)


def compared_columns(
    column: Column, values: Callable[[Any], FloatArray], baseline: str, *, lower_is_better: bool = True
) -> Columns:
    """Return the columns of a median over cases and of its difference from the baseline.

    Parameters
    ----------
    column : Column
        What the number of a case is.
    values : callable
        From a log to its numbers, float64 array (cases, policies).
    baseline : str
        Its name.
    lower_is_better : bool
        Which way is good.
    """
    minus = dataclasses.replace(
        column, title=f"{column.title}, difference", help=f"from {baseline}; median over cases, paired"
    )
    return {
        dataclasses.replace(column, help=f"{column.help}; median over cases"): lambda view, index: estimate_cell(
            values(view)[:, index]
        ),
        minus: lambda view, index: difference_cell(
            values(view), index, drawn=view.drawn, lower_is_better=lower_is_better
        ),
    }


def stem_by_log(stem: str, logs: Sequence[str]) -> dict[str, str]:
    """Return a name for the file of each log: ``stem`` if there is one log, else with the log's name in it.

    Parameters
    ----------
    stem : str
        What the files show.
    logs : sequence of str
        Names of logs, all distinct, which may hold anything.
    """
    if len(logs) <= 1:
        return dict.fromkeys(logs, stem)
    return {log: f"{stem}-{part}" for log, part in zip(logs, anchors(logs), strict=True)}


def pictures_by_log(
    stem: str,
    logs: Sequence[View],
    title: str | Callable[[View], str],
    draw: Callable[[View], Figure],
    note: str,
    number: int = 0,
) -> tuple[Picture, ...]:
    """Return a picture for each log.

    Parameters
    ----------
    stem : str
        Name of its file.
    logs : sequence of LogView
        The logs.
    title : str or callable
        What it shows, after the name of the log; or what makes that from the log.
    draw : callable
        Draws a log.
    note : str
        What must be known to read it.
    number : int
        Number of the case that it shows; 0: it is about all.
    """
    stems = stem_by_log(stem, [view.log for view in logs])
    pictures = []
    for view in logs:
        where = f"{view.log}, {view.case_name(number)}" if number else view.log
        what = title if isinstance(title, str) else title(view)
        pictures.append(Picture(stems[view.log], f"{where}: {what}", functools.partial(draw, view), note))
    return tuple(pictures)


# Cells. --------------------------------------------------------------------------------------------------------------


def estimate_cell(values: FloatArray, how: How = "median", mark: str = "") -> Cell:
    """Return the cell of `estimate_of`; empty without a case."""
    return cell_of(estimate_of(values, how), mark)


def cell_of(estimate: Estimate, mark: str = "") -> Cell:
    """Return the cell of an estimate; empty without a case."""
    return Cell(estimate.value if estimate.cases else None, estimate.interval, mark)


def difference_cell(values: FloatArray, index: int, *, drawn: float | None, lower_is_better: bool = True) -> Cell:
    """Return the cell of a policy's median difference with its verdict; empty for the baseline."""
    if not index:
        return Cell(None)
    differences = differences_of(values)
    return cell_of(differences[index], marks_of(differences, values, drawn, lower_is_better=lower_is_better)[index])


# Sentences of analyses ------------------------------------------------------------------------------------------------

# Estimates, differences, and names of cases and policies as a text has them.


def shared_unit(seconds: Iterable[float]) -> str:
    """Return the unit in which all these times are shown, so that they can be compared: s, min, h or d.

    Parameters
    ----------
    seconds : iterable of float
        The times; not finite ones do not count.
    """
    largest = max((abs(value) for value in seconds if math.isfinite(value)), default=0.0)
    # Waits are given in hours; only what takes weeks is not.
    return "d" if largest >= 10 * DAY else scale_for("s", [min(largest, DAY)]).label


def value_text(estimate: Estimate, unit: str = "1", *, signed: bool = False) -> str:
    """Return the value with its unit and interval: ``12.3 % [11.9 to 12.8 %]``."""
    text, ends = with_ends(estimate.value, estimate.interval, unit, signed=signed)
    return f"{text} [{ends}]" if ends else text


def difference_text(difference: Estimate, unit: str, words: tuple[str, str]) -> str:
    """Return a difference in words: ``7.71 h longer (95 % interval 4.86 to 15.5 h)``.

    Parameters
    ----------
    difference : Estimate
        With a value.
    unit : str
        Its unit.
    words : tuple of str
        What a positive and a negative difference are called.
    """
    value, interval = difference.value, difference.interval
    if value < 0 and interval is not None:
        interval = Interval(-interval.high, -interval.low)
    text, ends = with_ends(abs(value), interval, unit)
    return f"{text} {words[0] if value > 0 else words[1]}{f' (95 % interval {ends})' if ends else ''}"


def against(evaluation: Evaluation) -> str:
    """Return what the marks of a table mean; nothing where there is nobody to compare with."""
    if len(evaluation.policies) == 1:
        return ""
    return f" Marks: against {evaluation.baseline}, paired by case."


def marked_in_words(
    policies: Sequence[str],
    mark: Callable[[int], str],
    phrases: Mapping[str, str],
    named: Callable[[str], str] = str,
    what: str = "",
) -> str:
    """Return which policies have which verdict, in sentences that begin with a blank.

    Parameters
    ----------
    policies : sequence of str
        The first is the baseline.
    mark : callable
        From the index of a policy to its verdict.
    phrases : mapping of str to str
        Verdict -> what the sentence begins with; in this order, before what shows no difference.
    named : callable
        From a policy that differs to its name in the sentence, with a number perhaps.
    what : str
        What no difference is shown in.
    """
    marked: dict[str, list[str]] = {}
    for index, policy in enumerate(policies[1:], 1):
        verdict = mark(index)
        marked.setdefault(verdict, []).append(policy if verdict == "no difference" else named(policy))
    every = {**phrases, "no difference": f"No difference{what and f' in {what}'} is shown from {policies[0]}"}
    return "".join(listed(phrase, marked.get(word, [])) for word, phrase in every.items())


def differences_in_words(
    view: LogView,
    values: FloatArray,
    what: tuple[str, str],
    words: tuple[str, str],
    *,
    lower_is_better: bool = True,
) -> str:
    """Return how each policy differs from the baseline in one number, in sentences that begin with a blank.

    Parameters
    ----------
    view : LogView
        The log.
    values : float64 array (cases, policies)
        The number.
    what : tuple of str
        What it is called, and its unit.
    words : tuple of str
        What a positive and a negative difference are called.
    lower_is_better : bool
        Which way is good.
    """
    name, unit = what
    differs, same, policies = [], [], view.policies
    differences = differences_of(values)
    marks = marks_of(differences, values, view.drawn, lower_is_better=lower_is_better)
    for policy, difference, mark in list(zip(policies, differences, marks, strict=True))[1:]:
        if mark == "no difference" or difference.value == 0:
            same.append(policy)
        elif np.isfinite(difference.value):
            differs.append(f"{policy} {difference_text(difference, unit, words)}")
    text = f" {name[0].upper()}{name[1:]}, against {policies[0]}: {'; '.join(differs)}." if differs else ""
    if same:
        under = "any policy" if len(same) == len(policies) - 1 > 1 else enumerated(same)
        text += f" No difference in {name} under {under}."
    return text
