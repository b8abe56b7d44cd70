"""What several analyses need of options, of words, and of the names of logs in tables and files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.text import enumerated, number_text
from policyfactory.core.units import DAY
from policyfactory.report.caveats import noun
from policyfactory.report.numbers import scale_for
from policyfactory.report.sections import Cell, Column
from policyfactory.report.tables import file_stems

if TYPE_CHECKING:
    from policyfactory.simulate.cases import Case
    from policyfactory.statistics.evaluation import Evaluation

__all__ = [
    "check_place",
    "chosen_logs",
    "log_cells",
    "log_columns",
    "place_of",
    "scaled",
    "shared_unit",
    "stem_by_log",
    "texts",
    "under_policies",
    "whole_number",
]


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
    found = (value,) if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(text, str) for text in found):
        raise UsageError(f"analysis {analysis}: {option} is {value!r}; give a text or a list of texts")
    return tuple(found)


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


def chosen_logs(evaluation: Evaluation, analysis: str, log: str) -> tuple[str, ...]:
    """Return the log that was asked for, or all if none was.

    Raises
    ------
    EvaluationError
        If there is no such log.
    """
    if log and log not in evaluation.logs:
        raise EvaluationError(f"analysis {analysis}: there is no log {log!r}; there are {', '.join(evaluation.logs)}")
    return (log,) if log else evaluation.logs


# Words. --------------------------------------------------------------------------------------------------------------


def under_policies(names: Sequence[str], others: int) -> str:
    """Return policies as ``under ...`` goes on: their names, or that it is all ``others`` but the baseline."""
    return "under any policy" if len(names) == others > 1 else f"under {enumerated(names)}"


def shared_unit(seconds: Iterable[float]) -> str:
    """Return the unit in which all these times are shown, so that they can be compared: s, min, h or d.

    Parameters
    ----------
    seconds : iterable of float
        The times; not finite ones do not count.
    """
    largest = max((abs(value) for value in seconds if math.isfinite(value)), default=0.0)
    # Waits are told in hours; only what takes weeks is not.
    return "d" if largest >= 10 * DAY else scale_for("s", [min(largest, DAY)]).label


def scaled(value: float, unit: str) -> str:
    """Return one number with the unit that suits it: ``4.20 h``."""
    scale = scale_for(unit, [value])
    return f"{number_text(value / scale.divisor)}{scale.suffix}"


def place_of(evaluation: Evaluation, log: str, number: int) -> str:
    """Return what a case is called in a sentence: ``window 3``, ``resampled log 3``, ``the log``."""
    kind = next(case.kind for case in evaluation.cases if case.log == log and case.number == number)
    return "the log" if kind == "log" else f"{noun(evaluation, log)} {number}"


# Logs in tables and files. -------------------------------------------------------------------------------------------


def log_columns(logs: Sequence[str]) -> tuple[Column, ...]:
    """Return a column for the log if there are several."""
    return (Column("log"),) if len(logs) > 1 else ()


def log_cells(logs: Sequence[str], log: str) -> tuple[Cell, ...]:
    """Return the cell of that column, if there is one."""
    return (Cell(log),) if len(logs) > 1 else ()


def stem_by_log(stem: str, logs: Sequence[str]) -> dict[str, str]:
    """Return a name for the file of each log: ``stem`` if there is one log, else with the log's name in it.

    Parameters
    ----------
    stem : str
        What the files show.
    logs : sequence of str
        Names of logs, all distinct, which may hold anything.
    """
    if len(logs) == 1:
        return {logs[0]: stem}
    return {log: f"{stem}-{part}" for log, part in zip(logs, file_stems(logs), strict=True)}
