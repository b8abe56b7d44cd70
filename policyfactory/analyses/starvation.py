"""The longest waits, and what the threshold did about them.

How often the threshold acted can be told from the schedule alone: a job whose wait at its start is longer than the
threshold was overdue, so it had been put at the head of the queue. Some of these were started as backfilled jobs while
another waited ahead of them; the others were started from the head.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import LogAnalysis, texts
from policyfactory.analyses.plots import Curve, Panel, draw_panels
from policyfactory.analyses.tables import (
    compared_cells,
    compared_columns,
    median_cell,
    policy_columns,
    policy_rows,
    stem_by_log,
)
from policyfactory.analyses.waits import LogWaits, Waits, waits_of
from policyfactory.analyses.wording import place_of, shared_unit
from policyfactory.core.errors import UsageError
from policyfactory.core.text import counted, enumerated, number_text
from policyfactory.core.units import MINUTE, format_duration, parse_duration
from policyfactory.policy.policy import Policy
from policyfactory.report.sections import Cell, Column, Picture, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["Starvation"]

FloatArray = NDArray[np.float64]

# The curve's points: from a minute to four years, four in each doubling of the wait.
_CURVE = tuple(round(MINUTE * 2 ** (k / 4)) for k in range(85))

_ACTED = (
    Column("threshold", "", "waits beyond it put a job at the head of the queue"),
    Column("overdue", "jobs", "jobs whose wait at their start was longer than the threshold"),
    Column("overdue, share", "%", "of the jobs of a case; median over cases"),
    Column("from the head", "jobs", "overdue jobs that were started with none waiting ahead of them"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Starvation(LogAnalysis):
    """Longest waits, p99, and jobs that waited longer than the threshold.

    Parameters
    ----------
    beyond : sequence of str
        Waits; how many jobs waited longer than each is counted, whatever the threshold.

    Raises
    ------
    UsageError
        If one of ``beyond`` is no finite duration.
    """

    name: ClassVar[str] = "starvation"

    beyond: Sequence[str] = ("20h", "40h", "1w")

    def __post_init__(self) -> None:
        given = texts(self.name, "beyond", self.beyond)
        for text in given:
            if math.isinf(parse_duration(text)):
                raise UsageError(f"analysis starvation: beyond has {text!r}; give waits as text, for example 20h, 1w")
        object.__setattr__(self, "beyond", tuple(sorted(set(given), key=parse_duration)))

    def observe(self, case: Case, schedule: Schedule) -> Waits:
        """Return the longest wait and how many jobs waited longer than what."""
        return waits_of(schedule, (*(int(parse_duration(text)) for text in self.beyond), *_CURVE))

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the longest waits, the counts, the words, and how the waits are distributed."""
        logs = self.chosen_logs(evaluation)
        by_log = {log: LogWaits(log, evaluation.policies, [seen[row] for row in evaluation.rows(log)]) for log in logs}
        tables = (
            _longest_table(evaluation, by_log),
            _waits_table(evaluation, by_log),
            _overdue_table(by_log, self.beyond),
        )
        pictures = tuple(
            Picture(
                stem,
                f"{log}: how many jobs wait longer than so long",
                functools.partial(_draw, by_log[log], len(self.beyond)),
                "Both axes are logarithmic: the right end of a curve is the longest wait of one job.",
            )
            for log, stem in stem_by_log("waits", logs).items()
            if any(waits.longest > MINUTE for case in by_log[log].cases for waits in case)
        )
        sentences = starvation_in_words(evaluation, by_log, self.beyond)
        return Section("starvation", "The longest waits, and the threshold", sentences, tables, pictures)


def _longest_table(evaluation: Evaluation, by_log: dict[str, LogWaits]) -> Table:
    logs = list(by_log)
    unit = shared_unit(own.longest(k)[1].longest for own in by_log.values() for k in range(len(own.policies)))
    columns = policy_columns(
        logs,
        Column("longest wait", "s", "of any job in any case", shown=unit),
        Column("case"),
        Column("job", "", "its id in the log"),
        Column("user"),
        Column("processors", "processors"),
        Column("requested time", "s"),
        Column("run time", "s"),
    )

    def cells(log: str, k: int) -> list[Cell]:
        row, waits = by_log[log].longest(k)
        if waits.longest == 0:
            return [Cell(0.0), *[Cell(None)] * 6]
        number = evaluation.cases[int(evaluation.rows(log)[row])].number
        user = "unknown" if waits.user < 0 else str(waits.user)
        about = (str(number), str(waits.job_id), user, waits.processors, waits.requested, waits.run_time)
        return [Cell(waits.longest), *(Cell(value) for value in about)]

    rows = policy_rows(logs, evaluation.policies, cells)
    return Table("longest", "The job that waits longest under each policy", columns, rows)


def _waits_table(evaluation: Evaluation, by_log: dict[str, LogWaits]) -> Table:
    unit = shared_unit(value for own in by_log.values() for value in own.values("longest").ravel())
    columns = policy_columns(
        list(by_log),
        *compared_columns("p99 wait", "s", "99 % of a case's jobs wait less", evaluation.baseline, unit),
        *compared_columns("longest wait", "s", "of a case", evaluation.baseline, unit),
    )

    def cells(log: str, k: int) -> tuple[Cell, ...]:
        own = by_log[log]
        return (*compared_cells(own.values("p99"), k), *compared_cells(own.values("longest"), k))

    return Table("waits", "The long waits of a case", columns, policy_rows(list(by_log), evaluation.policies, cells))


def _overdue_table(by_log: dict[str, LogWaits], beyond: Sequence[str]) -> Table:
    logs = list(by_log)
    acted = any(own.has_threshold(k) for own in by_log.values() for k in range(len(own.policies)))
    columns = [*policy_columns(logs), *(_ACTED if acted else ())]
    for text in beyond:
        columns.append(Column(f"over {text}", "jobs", f"jobs that waited longer than {text}"))
        columns.append(Column(f"over {text}, share", "%", "of the jobs of a case; median over cases"))

    def cells(log: str, k: int) -> list[Cell]:
        own, row = by_log[log], _acted_cells(by_log[log], k) if acted else []
        for at in range(len(beyond)):
            row += [Cell(own.beyond(at, k)), median_cell(own.beyond_share(at)[:, k])]
        return row

    rows = policy_rows(logs, by_log[logs[0]].policies, cells)
    return Table("overdue", "Jobs that waited too long", tuple(columns), rows, "Jobs are those of all cases.")


def _acted_cells(own: LogWaits, k: int) -> list[Cell]:
    if not own.has_threshold(k):
        return [Cell("none"), Cell(None), Cell(None), Cell(None)]
    share = median_cell(own.share("overdue")[:, k])
    counts = (Cell(own.count("overdue", k)), share, Cell(own.count("from_head", k)))
    return [Cell(own.threshold_text(k)), *counts]


def _draw(own: LogWaits, first: int) -> Figure:
    """Draw the share of the jobs that wait longer than x; the curve's counts begin at place ``first``."""
    x = np.array(_CURVE, dtype=np.float64)
    curves = []
    for k, policy in enumerate(own.policies):
        count = np.array([own.beyond(first + at, k) for at in range(len(_CURVE))], dtype=np.float64)
        there = count > 0
        end = max(own.longest(k)[1].longest, MINUTE)
        curves.append(Curve(policy, np.append(x[there], end), 100.0 * np.append(count[there], 1.0) / own.jobs))
    thresholds = {own.threshold(k) for k in range(len(own.policies))} - {math.inf}
    marks = [(theta, f"threshold {format_duration(theta)}") for theta in sorted(thresholds) if theta >= MINUTE]
    panel = Panel(
        f"{own.jobs:,} jobs", "wait", "jobs that wait longer (%)", curves, durations=True, log_y=True, marks=marks
    )
    return draw_panels([panel], height=3.4)


# In words. ------------------------------------------------------------------------------------------------------------


_TOLD = 6  # policies; the tables have all
_OFTEN = 0.05  # share of the jobs from which the order is for a good part that of submission


def starvation_in_words(
    evaluation: Evaluation, by_log: Mapping[str, LogWaits], beyond: Sequence[str]
) -> tuple[str, ...]:
    """Return, for each log, the longest waits and what the threshold did.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    by_log : mapping of str to LogWaits
        The waits of each log.
    beyond : sequence of str
        Waits that were counted.
    """
    paragraphs = []
    for log, own in by_log.items():
        name = f"{log}: " if len(by_log) > 1 else ""
        paragraphs.append(name + _longest(evaluation, log, own))
        paragraphs.append(name + _threshold(evaluation, own, beyond))
    return tuple(paragraphs)


def _longest(evaluation: Evaluation, log: str, own: LogWaits) -> str:
    several = len(own.cases) > 1
    sentences = []
    for k, policy in enumerate(own.policies[:_TOLD]):
        row, waits = own.longest(k)
        if waits.longest == 0:
            sentences.append(f"{policy}: no job waits")
            continue
        number = evaluation.cases[int(evaluation.rows(log)[row])].number
        where = f" of {place_of(evaluation, log, number)}" if several else ""
        sentences.append(
            f"{policy}: {format_duration(waits.longest)}, job {waits.job_id}{where} "
            f"({counted(waits.processors, 'processor')}, {format_duration(waits.requested)} requested, "
            f"{format_duration(waits.run_time)} run)"
        )
    more = " Those of the other policies are in the table." if len(own.policies) > _TOLD else ""
    return f"The longest wait of any job, {'; '.join(sentences)}.{more}"


def _threshold(evaluation: Evaluation, own: LogWaits, beyond: Sequence[str]) -> str:
    with_one = [k for k in range(len(own.policies)) if own.has_threshold(k)]
    if not with_one:
        return f"There is no threshold. {_would_be(own, beyond)}"
    lengths = {own.threshold_text(k) for k in with_one}
    text = f"Jobs that wait longer than {enumerated(sorted(lengths))} go first, in the order of their submission. "
    if len(with_one) < len(own.policies):
        rest = [name for k, name in enumerate(own.policies) if k not in with_one]
        text += f"{enumerated(rest)} {'have' if len(rest) > 1 else 'has'} no threshold. "
    overdue = {k: own.count("overdue", k) for k in with_one}
    if not any(overdue.values()):
        return f"{text}It never acted: no job waited that long."
    idle = [k for k in with_one if overdue[k] and _is_submission_order(evaluation, k)]
    acted = [k for k in with_one if overdue[k] and k not in idle]
    counts = "; ".join(_how_often_it_acted(own, k) for k in acted[:_TOLD])
    parts = [f"Of {own.jobs:,} jobs that happened to {counts}."] if acted else []
    often = [own.policies[k] for k in acted if overdue[k] >= _OFTEN * own.jobs]
    if often:
        parts.append(
            f"Under {enumerated(often)} so many are overdue that the order is for a good part that of submission."
        )
    parts += [
        f"Under {own.policies[k]} it changes nothing ({counted(overdue[k], 'job was', 'jobs were')} overdue): the "
        "queue is in the order of submission anyway."
        for k in idle
    ]
    never = [own.policies[k] for k in with_one if not overdue[k]]
    if never:
        parts.append(f"Under {enumerated(never)} it never acted: no job waited that long.")
    return text + " ".join(parts)


def _how_often_it_acted(own: LogWaits, k: int) -> str:
    overdue = own.count("overdue", k)
    beyond = own.longest(k)[1].longest - own.threshold(k)
    return (
        f"{overdue:,} under {own.policies[k]} ({number_text(100 * overdue / own.jobs)} %; "
        f"the longest wait is {format_duration(beyond)} beyond it)"
    )


def _is_submission_order(evaluation: Evaluation, k: int) -> bool:
    contender = evaluation.contenders[k]
    return isinstance(contender, Policy) and contender.formula.strip() == "r"


def _would_be(own: LogWaits, beyond: Sequence[str]) -> str:
    if not beyond:
        return ""
    lengths = enumerated(beyond)
    sentences = []
    for k, policy in enumerate(own.policies[:_TOLD]):
        counts = [own.beyond(at, k) for at in range(len(beyond))]
        sentences.append(
            f"{policy} {enumerated(f'{count:,}' for count in counts)}" if any(counts) else f"{policy} none"
        )
    return (
        f"Of {own.jobs:,} jobs these waited longer than {lengths}: {'; '.join(sentences)}. A threshold of that length "
        "would have put them first, and so changed the waits of others."
    )
