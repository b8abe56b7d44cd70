"""Pictures of courses of total wait: lines over time, and beside them where they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.analyses.palette import is_dashed, line_look
from policyfactory.core.picture import new_figure
from policyfactory.core.text import shortened
from policyfactory.core.units import DAY, HOUR, WEEK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.analyses.improvement_course import Courses

__all__ = ["draw_courses"]

_UNIT = {WEEK: "weeks", DAY: "days", HOUR: "hours"}


def draw_courses(courses: Courses, chosen: Sequence[int]) -> Figure:
    """Draw the mean course of the chosen contenders, the bands of the best and the worst, and all ends.

    Parameters
    ----------
    courses : Courses
        Of one log.
    chosen : sequence of int
        Which contenders.

    Returns
    -------
    Figure
    """
    figure = new_figure(7.0, max(3.6, 1.6 + 0.22 * len(chosen)))
    left, right = figure.subplots(1, 2, width_ratios=[3, 1.1], sharey=False)
    time = np.arange(courses.mean.shape[1] + 1)
    order = sorted(chosen, key=lambda at: courses.mean[at, -1])
    many = len(courses.total_s) > 1
    for at in chosen:
        look = line_look(chosen.index(at))
        left.plot(time, np.append(0.0, courses.mean[at]), **look)
        if many and at in (order[0], order[-1]):
            low, high = (np.append(0.0, edge) for edge in courses.band(at))
            left.fill_between(time, low, high, color=look["color"], alpha=0.15, linewidth=0)
    left.axhline(0, color="black", linewidth=1)
    left.set_xlim(0, time[-1])
    left.set_xlabel(f"time ({_UNIT[courses.bin_s]})")
    left.set_ylabel(f"total wait minus {shortened(courses.names[0], 16)}'s\n(% of the latter's total)")
    _ends(right, courses, {at: chosen.index(at) for at in order}, many=many)
    return figure


def _ends(axes: Any, courses: Courses, lines: dict[int, int], *, many: bool) -> None:
    order = list(lines)
    for place, at in enumerate(order):
        value, colour = courses.mean[at, -1], line_look(lines[at])["color"]
        if many:
            low, high = (edge[-1] for edge in courses.band(at))
            axes.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.45, solid_capstyle="butt")
        axes.plot(
            value, place, "o", color=colour, markersize=5, markerfacecolor="white" if is_dashed(lines[at]) else colour
        )
    axes.axvline(0, color="black", linewidth=1)
    axes.set_yticks(range(len(order)), [shortened(courses.names[at], 22) for at in order], fontsize=8)
    axes.yaxis.tick_right()
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("at the end (%)")
