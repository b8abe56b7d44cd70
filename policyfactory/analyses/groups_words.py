"""The groups in words, and the table that sums them up: how many wait less or more, who is hit worst, who gains."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from policyfactory.analyses.estimates import mark_of
from policyfactory.analyses.grouping import GroupTable, Measure
from policyfactory.analyses.tables import cell_of, log_cells, log_columns
from policyfactory.analyses.wording import difference_text, shared_unit
from policyfactory.core.text import counted, enumerated, number_text
from policyfactory.report.caveats import noun
from policyfactory.report.sections import Cell, Column, Table
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.intervals import MIN_CASES, Estimate

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["MeasureName", "groups_in_words", "summary_table"]

MeasureName = Literal["wait", "bsld"]
_TOLD = 6  # policies told in words, all logs together; the table has all


@dataclasses.dataclass(frozen=True, slots=True)
class _Extreme:
    """The group that loses or gains most, with its difference from the baseline."""

    label: str
    phrase: str
    work_share: float
    jobs: int
    difference: Estimate


@dataclasses.dataclass(frozen=True, slots=True)
class _Score:
    """How the groups of one grouping fare under one policy.

    ``less``, ``more`` and ``same`` count groups with an interval; ``open`` those with enough jobs but in too few cases
    for one; ``few`` those with too few jobs. The extremes are among the groups that are shown to differ, or, where no
    group has an interval, among all that have enough jobs.
    """

    less: int
    more: int
    same: int
    open: int
    few: int
    worst: _Extreme | None
    best: _Extreme | None


def _score(table: GroupTable, measure: Measure, k: int) -> _Score:
    own = measure.differences[k]
    rows = np.flatnonzero(table.enough)
    verdicts = {int(g): mark_of(own[g]) for g in rows}
    tested = any(verdicts.values())

    def extreme(sign: int, verdict: str) -> _Extreme | None:
        among = [g for g, word in verdicts.items() if (word == verdict if tested else sign * own[g].value > 0)]
        if not among:
            return None
        at = max(among, key=lambda g: sign * own[g].value)
        phrase = f"{table.grouping.phrase}{table.labels[at]}"
        return _Extreme(table.labels[at], phrase, float(table.work_share[at]), int(table.jobs[at]), own[at])

    words = list(verdicts.values())
    counts = (words.count("better"), words.count("worse"), words.count("no difference"), words.count(""))
    return _Score(*counts, len(table.labels) - len(rows), extreme(1, "worse"), extreme(-1, "better"))


def summary_table(evaluation: Evaluation, grouped: dict[str, list[GroupTable]], least: int, of: MeasureName) -> Table:
    """Return a row for each log, policy and grouping: how many groups fare better, who is hit worst, who gains most.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    grouped : dict of str to list of GroupTable
        The groupings of each log.
    least : int
        Jobs that a group needs.
    of : {"wait", "bsld"}
        Which measure.
    """
    logs, base = list(grouped), evaluation.baseline
    measure: Measure = getattr(grouped[logs[0]][0], of)
    waits = [each.value for tables in grouped.values() for table in tables for row in table.wait.values for each in row]
    unit = shared_unit(waits) if of == "wait" else ""
    columns = (
        *log_columns(logs),
        Column("policy"),
        Column("by"),
        Column("lower", "groups", f"groups whose mean is shown to be lower than under {base}"),
        Column("higher", "groups", f"groups whose mean is shown to be higher than under {base}"),
        Column("same", "groups", "groups whose interval covers zero: no difference is shown"),
        Column("not known", "groups", f"groups with jobs in fewer than {MIN_CASES} cases, or fewer than {least} jobs"),
        Column("worst hit", "", "the group whose mean rises most, of those that are shown to differ"),
        Column("its loss", measure.unit, f"its mean minus that under {base}", shown=unit),
        Column("best off", "", "the group whose mean falls most, of those that are shown to differ"),
        Column("its gain", measure.unit, f"its mean minus that under {base}", shown=unit),
    )
    rows = [
        (*log_cells(logs, log), Cell(policy), Cell(table.grouping.title), *_score_cells(table, getattr(table, of), k))
        for log, tables in grouped.items()
        for k, policy in enumerate(evaluation.policies)
        if k > 0
        for table in tables
    ]
    return Table(
        f"summary-{of}",
        f"Groups whose mean {measure.title} is lower or higher than under {base}",
        columns,
        tuple(rows),
        "Differences are medians over cases, paired by case. Where no group has an interval, worst hit and best off "
        "are those that differ most.",
    )


def _score_cells(table: GroupTable, measure: Measure, k: int) -> list[Cell]:
    score = _score(table, measure, k)
    cells = [Cell(score.less), Cell(score.more), Cell(score.same), Cell(score.open + score.few)]
    for extreme in (score.worst, score.best):
        if extreme is None:
            cells += [Cell("none"), Cell(None)]
        else:
            cells += [Cell(extreme.label), cell_of(extreme.difference, mark_of(extreme.difference))]
    return cells


# Words. --------------------------------------------------------------------------------------------------------------


def groups_in_words(evaluation: Evaluation, grouped: dict[str, list[GroupTable]], least: int) -> tuple[str, ...]:
    """Return who wins and who loses, a paragraph a log and policy.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    grouped : dict of str to list of GroupTable
        The groupings of each log.
    least : int
        Jobs that a group needs to be named.
    """
    if len(evaluation.policies) == 1:
        return (
            f"Only {evaluation.baseline} was run: the tables say who waits how long, and there is nothing to compare.",
        )
    named = max(1, _TOLD // len(grouped))
    paragraphs = [_how(evaluation, grouped, least)]
    for log, tables in grouped.items():
        chosen = _best_policies(evaluation, log, named)
        name = f"{log}, " if len(grouped) > 1 else ""
        paragraphs += [
            f"{name}{evaluation.policies[k]} against {evaluation.baseline}: {_policy_words(tables, k)}" for k in chosen
        ]
    others = len(evaluation.policies) - 1 - named
    if others > 0:
        paragraphs.append(
            f"Told in words {'are' if named > 1 else 'is'} the {counted(named, 'policy', 'policies')} with the best "
            f"{evaluation.metrics[0]}; the other {others} {'are' if others > 1 else 'is'} in the tables."
        )
    return tuple(paragraphs)


def _how(evaluation: Evaluation, grouped: dict[str, list[GroupTable]], least: int) -> str:
    most = max(len(evaluation.rows(log)) for log in grouped)
    (what, *others) = dict.fromkeys(noun(evaluation, log) for log in grouped)
    what = "case" if others else what
    text = f"The mean wait of each group is compared with its mean wait under {evaluation.baseline}, {what} by {what}; "
    if most == 1:
        text += (
            f"there is one {what}, so these are the differences that happened there, without an interval: what would "
            "happen in another month is not known (cut the log with --windows)."
        )
    elif most < MIN_CASES:
        text += f"differences are medians over {most} {what}s, too few for an interval ({MIN_CASES} are needed)."
    else:
        text += (
            f"differences are medians over {most} {what}s. A group waits less or more only if the 95 % interval leaves "
            "out zero; of 100 groups that nothing happens to, up to 5 are called different by chance."
        )
    return f"{text} Groups with fewer than {least} jobs are not named."


def _best_policies(evaluation: Evaluation, log: str, count: int) -> list[int]:
    """Return the places of the policies, but for the baseline, that are best in the first metric, in their order."""
    metric = evaluation.metrics[0]
    values = np.nanmedian(np.where(np.isfinite(values := evaluation.matrix(log, metric)), values, np.nan), axis=0)
    sign = -1.0 if METRICS[metric].lower_is_better is False else 1.0
    order = sorted(range(1, len(values)), key=lambda k: (np.inf if np.isnan(values[k]) else sign * values[k], k))
    return sorted(order[:count])


def _policy_words(tables: Sequence[GroupTable], k: int) -> str:
    if all(each.value == 0 for table in tables for each in table.wait.differences[k]):
        return "no group waits longer or shorter."
    scores = [(table, _score(table, table.wait, k)) for table in tables]
    counts = [_counts(table, score, k) for table, score in scores]
    named = [count for count in counts if count[1]]
    if not named:
        return "no group has enough jobs to be named."
    tested = any(score.less + score.more + score.same for _, score in scores)
    if tested and not any(less or more for _, _, less, more in named):
        return f"of {enumerated(many for many, _, _, _ in named)} none is shown to wait longer or shorter."
    text = (
        f"{enumerated(f'{less:,} of {many}' for many, _, less, _ in named)} wait less; "
        f"{enumerated(f'{more:,}' for _, _, _, more in named)} more."
    )
    worst = [_worst_words(score.worst) for _, score in scores if score.worst]
    best = [_best_words(score.best) for _, score in scores if score.best]
    if worst:
        text += f" Worst hit: {'; '.join(worst)}."
    else:
        text += " None is shown to wait longer." if tested else " None waits longer."
    return f"{text} Best off: {'; '.join(best)}." if best else text


def _counts(table: GroupTable, score: _Score, k: int) -> tuple[str, int, int, int]:
    """Return how many groups are compared, in words and as a number, and how many of them wait less and more."""
    known = score.less + score.more + score.same
    if known:
        return f"{known:,} {table.grouping.many}", known, score.less, score.more
    own = [table.wait.differences[k][g].value for g in np.flatnonzero(table.enough)]
    less, more = sum(value < 0 for value in own), sum(value > 0 for value in own)
    return f"{score.open:,} {table.grouping.many}", score.open, less, more


def _worst_words(group: _Extreme) -> str:
    about = f"{counted(group.jobs, 'job')}, {number_text(group.work_share)} % of the work"
    return f"{group.phrase} ({about}), {difference_text(group.difference, 's', ('longer on average', ''))}"


def _best_words(group: _Extreme) -> str:
    return f"{group.phrase}, {difference_text(group.difference, 's', ('', 'less'))}"
