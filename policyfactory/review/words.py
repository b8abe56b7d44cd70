"""A review as sections: tables of the ways, the weeks and the groups, and a picture of the weeks."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.picture import keeps_settings, new_figure
from policyfactory.report.sections import Cell, Column, Picture, Section
from policyfactory.review.simulated import means_of, plain_table, sign
from policyfactory.statistics.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.review.compared import Review

__all__ = ["sections_of"]

_MARKS = {-1: "lower", 0: "no difference", 1: "higher"}  # better or worse is for the verdict


def sections_of(review: Review) -> tuple[Section, ...]:
    """Return what a review found."""
    return (_times(review), _ways(review), _groups(review), _weeks(review))


def _cell(estimate: Estimate) -> Cell:
    mark = "" if estimate.interval is None else _MARKS[sign(estimate)]
    return Cell(estimate.value if np.isfinite(estimate.value) else None, estimate.interval, mark)


def _times(review: Review) -> Section:
    columns = (
        Column("time"),
        Column("jobs", ""),
        Column("weeks", ""),
        Column("mean wait", "s"),
        Column("mean bounded slowdown", "1"),
        Column("longest wait", "s"),
        Column("jobs that wait longer than 10 s", "%"),
    )
    rows = []
    for name, period in (("before", review.before), ("after", review.after)):
        of, weeks = means_of(period.schedule), period.weeks
        jobs = float(len(period.schedule))
        rows.append((name, jobs, float(len(weeks.jobs)), of.wait_s, of.bsld, of.longest_s, 100 * of.waiting))
    return Section("times", "The two times as recorded", (), (plain_table("times", "As recorded", columns, rows),))


def _ways(review: Review) -> Section:
    columns = (Column("load taken into account by"), Column("mean wait", "s"), Column("mean bounded slowdown", "1"))
    rows = [(way.name, _cell(way.wait), _cell(way.bsld)) for way in review.ways]
    tables = [plain_table("ways", "What changed, after minus before, at like load", columns, rows)]
    if review.gains:
        of_policy = (Column("time"), Column("mean bounded slowdown", "1"))
        gains = [(name, _cell(gain)) for name, gain in review.gains.items()]
        title = "The policy less first come, first served, both simulated"
        tables.append(plain_table("simulated", title, of_policy, gains))
    return Section("ways", "Did it help?", (), tuple(tables))


def _groups(review: Review) -> Section:
    columns = (
        Column("kind"),
        Column("group"),
        Column("jobs before", ""),
        Column("jobs after", ""),
        Column("mean wait before", "s"),
        Column("mean wait after", "s"),
        Column("change of the mean wait", "s"),
        Column("change of the mean bounded slowdown", "1"),
    )
    rows = [
        (
            group.kind,
            group.name,
            *(float(count) for count in group.jobs),
            *group.wait,
            _cell(group.of_wait),
            _cell(group.of_bsld),
        )
        for group in review.groups
    ]
    tables = (plain_table("groups", "Groups in the weeks of like load", columns, rows),) if rows else ()
    return Section("groups", "Who gained, who lost", (), tables)


def _weeks(review: Review) -> Section:
    columns = (
        Column("time"),
        Column("week"),
        Column("offered load", "1"),
        Column("jobs", ""),
        Column("mean wait", "s"),
        Column("mean bounded slowdown", "1"),
        Column("compared with week before"),
    )
    rows = []
    like = {after: before for before, after in review.pairs}
    for name, period in (("before", review.before), ("after", review.after)):
        weeks, jobs = period.weeks, period.schedule.workload
        begins = (jobs.unix_start or 0) + int(jobs.submit[0]) // jobs.ticks
        for at, (load, count, wait, bsld) in enumerate(
            zip(weeks.load, weeks.jobs, weeks.mean("wait"), weeks.mean("bsld"), strict=True)
        ):
            date = dt.datetime.fromtimestamp(begins + 7 * 86_400 * at, dt.UTC).strftime("%Y-%m-%d")
            other = str(like[at] + 1) if name == "after" and at in like else ""
            values = (float(value) if np.isfinite(value) else None for value in (wait, bsld))
            rows.append((name, f"{at + 1} (from {date})", float(load), float(count), *values, other))
    table = plain_table("weeks", "The weeks of both times", columns, rows)

    @keeps_settings
    def draw() -> Figure:
        figure = new_figure()
        axes = figure.subplots()
        for name, period, marker in (("before", review.before, "o"), ("after", review.after, "^")):
            axes.scatter(period.weeks.load, period.weeks.mean("bsld"), marker=marker, label=name, alpha=0.7)
        axes.set_xlabel("offered load of the week")
        axes.set_ylabel("mean bounded slowdown")
        axes.legend()
        return figure

    picture = Picture("load", "Mean bounded slowdown of each week against its offered load", draw)
    return Section("weeks", "Week by week", (), (table,), (picture,))
