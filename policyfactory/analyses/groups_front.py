"""Who wins and who loses at a glance: the groups that differ, a column a policy; all others in one sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from policyfactory.analyses.grouping import GroupTable
from policyfactory.analyses.tables import cell_of, log_column
from policyfactory.analyses.wording import shared_unit
from policyfactory.core.text import counted, enumerated
from policyfactory.report.sections import Cell, Column, Table
from policyfactory.statistics.intervals import Estimate

__all__ = ["front_table"]

_CLASSES = 6  # groups of one grouping and log; those that move most
_USERS = 3
_UNTESTED = "No intervals: this is what happened to these jobs, and not what would happen to others."


def front_table(tables: Sequence[GroupTable], *, several: bool) -> Table:
    """Return how much longer or shorter the groups wait than under the baseline.

    Parameters
    ----------
    tables : sequence of GroupTable
        The groupings of each log, with at least two policies.
    several : bool
        Whether there are several logs.
    """
    first = tables[0]
    rows, same, fewer, few = [], [], [], []
    for table in tables:
        worst = {table.worst_without_interval(place) for place in range(1, len(table.policies))} - {None}
        moved = [group for group in range(len(table.labels)) if group in worst or _moves(table, group)]
        most = _USERS if table.grouping.name == "user" else _CLASSES
        top = sorted(moved, key=lambda group: -_largest(table, group))[:most]
        kept = [group for group in moved if group in top or group in worst]
        rows += [(table, group) for group in kept]
        where = f"{table.log}, " if several else ""
        few += [
            f"{where}{table.grouping.phrase}{table.labels[group]} ({counted(int(table.jobs[group]), 'job')})"
            for group in kept
            if not table.enough[group]
        ]
        if quiet := len(table.labels) - len(moved):
            same.append(f"{where}{quiet} of {counted(len(table.labels), *_named(table))}")
        if more := len(moved) - len(kept):
            fewer.append(f"{where}{counted(more, *_named(table))}")
    shown = [each.value for own, group in rows for row in own.wait.differences[1:] for each in [row[group]]]
    unit = shared_unit(value for value in shown if np.isfinite(value))

    def difference(place: int, own: GroupTable, group: int) -> Cell:
        mark = own.wait.marks[place][group]
        return Cell(None) if mark == "no difference" else cell_of(own.wait.differences[place][group], mark)

    minus = f"mean wait minus that under {first.baseline}"
    columns = {
        **log_column(several=several),
        Column("group"): lambda own, group: f"{own.grouping.phrase}{own.labels[group]}",
        Column("share of jobs", "%"): lambda own, group: float(own.job_share[group]),
    } | {
        Column(name, "s", minus, unit): lambda own, group, place=place: difference(place, own, group)
        for place, name in enumerate(first.policies)
        if place
    }
    words = ["An empty cell: no difference is shown." if any(map(_tested, tables)) else _UNTESTED]
    words += [f"Too few jobs for an interval, but those that lose most: {enumerated(few)}." if few else ""]
    words += [f"No difference is shown, or nothing is known, for {enumerated(same)}." if same else ""]
    words += [f"Left out, since they differ less: {enumerated(fewer)}." if fewer else ""]
    note = " ".join(text for text in words if text)
    title = f"Mean wait of a group minus its mean wait under {first.baseline}"
    made = Table.of("who", title, columns, rows, note)
    return dataclasses.replace(made, names=2 if several else 1, front=True)


def _named(table: GroupTable) -> tuple[str, str]:
    many = table.grouping.many
    return many.removesuffix("es") if many.endswith("classes") else many.removesuffix("s"), many


def _moves(table: GroupTable, group: int) -> bool:
    """Return whether a group differs under any policy: by its intervals, or, where none has any, at all."""
    if _tested(table):
        return any(row[group] in {"better", "worse"} for row in table.wait.marks)
    return bool(table.enough[group]) and any(_size(row[group]) > 0 for row in table.wait.differences[1:])


def _tested(table: GroupTable) -> bool:
    return any(each.interval for row in table.wait.differences for each in row)


def _largest(table: GroupTable, group: int) -> float:
    return max(_size(row[group]) for row in table.wait.differences[1:])


def _size(each: Estimate) -> float:
    return abs(each.value) if np.isfinite(each.value) else 0.0
