"""The groups in words, and the table that sums them up: how many wait less or more, who is hit worst, who gains."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from policyfactory.analyses.grouping import GroupTable, Measure
from policyfactory.analyses.logs import LogView
from policyfactory.analyses.tables import cell_of, log_column
from policyfactory.analyses.wording import difference_text, shared_unit
from policyfactory.core.text import counted, enumerated, number_text
from policyfactory.report.sections import Cell, Column, Table
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.intervals import MIN_CASES

__all__ = ["MeasureName", "groups_in_words", "summary_table"]

MeasureName = Literal["wait", "bsld"]
_IN_WORDS = 6  # policies that are described in words, all logs together; the table has all


@dataclasses.dataclass(frozen=True, slots=True)
class _Score:
    """How the groups of one grouping fare under one policy.

    Parameters
    ----------
    groups : int
        All of them.
    compared : int
        Those that have an interval, or, where none has, enough jobs.
    tested : bool
        Whether any has an interval. Then a group differs if that is shown; else if its value is not zero.
    less, more : int
        Groups that have less, and more, than under the baseline.
    worst, best : int or None
        Of these the ones that lose and gain most.
    few : int or None
        The class that loses more than any of these, but has no interval.
    """

    groups: int
    compared: int
    tested: bool
    less: int
    more: int
    worst: int | None
    best: int | None
    few: int | None

    @property
    def worst_of_all(self) -> int | None:
        """The group that loses most, with an interval or without."""
        return self.worst if self.few is None else self.few


def _score(table: GroupTable, measure: Measure, k: int) -> _Score:
    own = measure.differences[k]
    verdicts = {int(g): measure.marks[k][g] for g in np.flatnonzero(table.enough)}
    tested = any(verdicts.values())
    less = [g for g, word in verdicts.items() if (word == "better" if tested else own[g].value < 0)]
    more = [g for g, word in verdicts.items() if (word == "worse" if tested else own[g].value > 0)]
    worst = max(more, key=lambda g: own[g].value, default=None)
    few = table.worst_without_interval(k) if measure is table.wait else None
    return _Score(
        len(table.labels),
        sum(bool(word) or not tested for word in verdicts.values()),
        tested,
        len(less),
        len(more),
        worst,
        min(less, key=lambda g: own[g].value, default=None),
        None if few == worst else few,
    )


def summary_table(tables: Sequence[GroupTable], least: int, of: MeasureName, several: bool) -> Table:  # noqa: FBT001
    """Return a row for each log, policy and grouping: how many groups fare better, who is hit worst, who gains most.

    Parameters
    ----------
    tables : sequence of GroupTable
        The groupings of each log.
    least : int
        Jobs that a group needs.
    of : {"wait", "bsld"}
        Which measure.
    several : bool
        Whether there are several logs.
    """
    base, measure = tables[0].baseline, getattr(tables[0], of)
    waits = [each.value for table in tables for row in table.wait.values for each in row]
    unit = shared_unit(waits) if of == "wait" else ""
    few = f"groups with jobs in fewer than {MIN_CASES} cases, or fewer than {least} jobs"

    def label(group: str) -> Callable[[GroupTable, int, _Score], str]:
        return lambda own, _, score: "none" if (at := getattr(score, group)) is None else own.labels[at]

    def difference(group: str) -> Callable[[GroupTable, int, _Score], Cell | None]:
        def cell(own: GroupTable, k: int, score: _Score) -> Cell | None:
            at = getattr(score, group)
            if at is None:
                return None
            measure = getattr(own, of)
            return cell_of(measure.differences[k][at], measure.marks[k][at])

        return cell

    shown, minus = "groups whose mean is shown to be", f"its mean minus that under {base}"
    extreme = "most, of those that are shown to differ"
    rises = f"{extreme}, or a class without an interval that waits longer still" if of == "wait" else extreme
    columns = {
        **log_column(several=several),
        Column("policy"): lambda own, k, _: own.policies[k],
        Column("by"): lambda own, *_: own.grouping.title,
        Column("lower", "groups", f"{shown} lower than under {base}"): lambda _, __, score: score.tested * score.less,
        Column("higher", "groups", f"{shown} higher than under {base}"): lambda _, __, score: score.tested * score.more,
        Column("same", "groups", "groups for which no difference is shown"): (
            lambda _, __, score: score.tested * (score.compared - score.less - score.more)
        ),
        Column("not known", "groups", few): lambda _, __, score: score.groups - score.tested * score.compared,
        Column("worst hit", "", f"the group whose mean rises {rises}"): label("worst_of_all"),
        Column("its loss", measure.unit, minus, unit): difference("worst_of_all"),
        Column("best off", "", f"the group whose mean falls {extreme}"): label("best"),
        Column("its gain", measure.unit, minus, unit): difference("best"),
    }
    rows = [
        (table, k, _score(table, getattr(table, of), k))
        for log in dict.fromkeys(table.log for table in tables)
        for k in range(1, len(tables[0].policies))
        for table in tables
        if table.log == log
    ]
    return Table.of(
        f"summary-{of}",
        f"Groups whose mean {measure.title} is lower or higher than under {base}",
        columns,
        rows,
        "Differences are medians over cases, paired by case. Where no group has an interval, worst hit and best off "
        "are those that differ most.",
    )


# Words. --------------------------------------------------------------------------------------------------------------


def groups_in_words(
    logs: Sequence[LogView], tables: Sequence[GroupTable], least: int, *, by_user: bool
) -> tuple[str, ...]:
    """Return who wins and who loses, a paragraph a log and policy.

    Parameters
    ----------
    logs : sequence of LogView
        The logs.
    tables : sequence of GroupTable
        The groupings of each log.
    least : int
        Jobs that a group needs to be named.
    by_user : bool
        Whether users are among the groupings that were asked for.
    """
    first = logs[0]
    nobody = [own.log for own in logs if by_user and not _groups(own, tables, "user")]
    without = [f"{enumerated(nobody)}: no job has a known user, so there are no groups by user."] if nobody else []
    if len(first.policies) == 1:
        alone = f"Only {first.baseline} was run: the tables say who waits how long, and there is nothing to compare."
        return (alone, *without)
    grouped = [own for own in logs if _groups(own, tables)]
    if not grouped:
        return tuple(without)
    named = max(1, _IN_WORDS // len(logs))
    paragraphs = [_how(grouped, least), *without]
    for own in grouped:
        name = f"{own.log}, " if len(logs) > 1 else ""
        paragraphs += [
            f"{name}{own.policies[k]} against {own.baseline}: {_policy_words(_groups(own, tables), k)}"
            for k in _best_policies(own, named)
        ]
    others = len(first.policies) - 1 - named
    if others > 0:
        paragraphs.append(
            f"In words: the {counted(named, 'policy', 'policies')} with the best {first.evaluation.metrics[0]}; the "
            f"other {others} {'are' if others > 1 else 'is'} in the tables."
        )
    return tuple(paragraphs)


def _groups(own: LogView, tables: Sequence[GroupTable], grouping: str = "") -> list[GroupTable]:
    """Return the groupings of a log, or the one of this name."""
    return [table for table in tables if table.log == own.log and grouping in ("", table.grouping.name)]


def _how(logs: Sequence[LogView], least: int) -> str:
    most = max(len(own.kept) for own in logs)
    (what, *others) = dict.fromkeys(own.noun for own in logs)
    what = "case" if others else what
    text = f"The mean wait of each group is compared with its mean wait under {logs[0].baseline}, {what} by {what}; "
    if most == 1:
        text += (
            f"there is one {what}, so these are the differences that happened there, without an interval: what would "
            "happen in another month is not known."
        )
    elif most < MIN_CASES:
        text += f"differences are medians over {most} {what}s, too few for an interval ({MIN_CASES} are needed)."
    else:
        text += (
            f"differences are medians over {most} {what}s. A group is said to wait less or more only where that stands "
            "with all policies judged together (Holm); of 100 groups that nothing happens to, up to 5 are called "
            "different by chance."
        )
    return f"{text} Of groups with fewer than {least} jobs only a class that loses most is named."


def _best_policies(own: LogView, count: int) -> list[int]:
    """Return the places of the policies, but for the baseline, that are best in the first metric, in their order."""
    metric = own.evaluation.metrics[0]
    matrix = own.evaluation.matrix(own.log, metric)
    values = np.nanmedian(np.where(np.isfinite(matrix), matrix, np.nan), axis=0)
    sign = -1.0 if METRICS[metric].lower_is_better is False else 1.0
    order = sorted(range(1, len(values)), key=lambda k: (np.inf if np.isnan(values[k]) else sign * values[k], k))
    return sorted(order[:count])


def _policy_words(tables: Sequence[GroupTable], k: int) -> str:
    if all(each.value == 0 for table in tables for each in table.wait.differences[k]):
        return "no group waits longer or shorter."
    own = [(table, _score(table, table.wait, k)) for table in tables]
    few = [_worst_words(table, k, score.few) for table, score in own if score.few is not None]
    unknown = f" Worst hit, but without an interval: {'; '.join(few)}." if few else ""
    scores = [(table, score) for table, score in own if score.compared]
    if not scores:
        return f"no group has enough jobs for an interval.{unknown}" if few else "no group has enough jobs to be named."
    many = [f"{score.compared:,} {table.grouping.many}" for table, score in scores]
    tested = any(score.tested for _, score in scores)
    if tested and not any(score.less or score.more for _, score in scores):
        return f"of {enumerated(many)} none is shown to wait longer or shorter.{unknown}"
    less = enumerated(f"{score.less:,} of {groups}" for groups, (_, score) in zip(many, scores, strict=True))
    text = f"{less} wait less; {enumerated(f'{score.more:,}' for _, score in scores)} more.{unknown}"
    worst = [_worst_words(table, k, score.worst) for table, score in scores if score.worst is not None]
    best = [_best_words(table, k, score.best) for table, score in scores if score.best is not None]
    if worst:
        text += f" Worst hit{' of those with enough jobs' if few else ''}: {'; '.join(worst)}."
    elif not few:
        text += " None is shown to wait longer." if tested else " None waits longer."
    return f"{text} Best off: {'; '.join(best)}." if best else text


def _worst_words(table: GroupTable, k: int, group: int) -> str:
    about = f"{counted(int(table.jobs[group]), 'job')}, {number_text(float(table.work_share[group]))} % of the work"
    longer = difference_text(table.wait.differences[k][group], "s", ("longer on average", ""))
    return f"{table.grouping.phrase}{table.labels[group]} ({about}), {longer}"


def _best_words(table: GroupTable, k: int, group: int) -> str:
    less = difference_text(table.wait.differences[k][group], "s", ("", "less"))
    return f"{table.grouping.phrase}{table.labels[group]}, {less}"
