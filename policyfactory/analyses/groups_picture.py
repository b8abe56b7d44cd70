"""The groups as a picture: how much longer or shorter each of them waits under each policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.group_table import GroupTable
from policyfactory.analyses.over_cases import mark_of
from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.core.text import shortened
from policyfactory.report.numbers import Scale, scale_for
from policyfactory.statistics.intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_groups"]

_USERS = 8  # those with most work; the table has all
_LESS, _MORE = COLOURS[0], COLOURS[1]
_FAINTEST, _STRONGEST = 0.06, 0.85


def draw_groups(tables: Sequence[GroupTable]) -> Figure:
    """Draw the difference of each group's mean wait from the baseline's: a panel a grouping, a row a policy.

    Parameters
    ----------
    tables : sequence of GroupTable
        The groupings of one log, with at least two policies.

    Returns
    -------
    Figure
    """
    count = len(tables[0].policies) - 1
    figure = new_figure(7.0, 0.5 + len(tables) * (1.15 + 0.34 * count))
    panels = figure.subplots(len(tables), 1, squeeze=False)[:, 0]
    shown = [each.value for table in tables for row in table.wait.differences for each in row[: _most(table)]]
    scale = scale_for("s", shown)
    strongest = float(np.max(np.abs([value for value in shown if np.isfinite(value)]), initial=0.0)) or 1.0
    for axes, table in zip(panels, tables, strict=True):
        _panel(axes, table, scale, strongest)
    unit = scale.label
    figure.suptitle(f"Mean wait minus that under {shortened(tables[0].policies[0], 30)} ({unit})", fontsize=11)
    return figure


def _most(table: GroupTable) -> int:
    return _USERS if table.grouping.name == "user" else len(table.labels)


def _panel(axes: Any, table: GroupTable, scale: Scale, strongest: float) -> None:
    columns = min(_most(table), len(table.labels))
    rows = table.wait.differences[1:]
    colours = np.ones((len(rows), columns, 3))
    for k, row in enumerate(rows):
        for g, each in enumerate(row[:columns]):
            colours[k, g] = _colour(each.value / strongest)
            _number(axes, (g, k), each, scale)
    axes.imshow(colours, aspect="auto")
    shares = [f"{share:.2g} %" if share < 99.5 else "100 %" for share in table.job_share[:columns]]
    ticks = [f"{name}\n{share}" for name, share in zip(table.shorts[:columns], shares, strict=True)]
    axes.set_xticks(range(columns), ticks, fontsize=8)
    axes.set_yticks(range(len(rows)), [shortened(name, 16) for name in table.policies[1:]], fontsize=9)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)
    names = {"size": "processors", "runtime": "actual run time", "request": "requested time", "user": "user"}
    axes.set_title(f"by {names[table.grouping.name]}", loc="left", fontsize=10)


def _colour(strength: float) -> NDArray[np.float64]:
    """Return white for 0, blue for less, orange for more; a square root makes small differences visible."""
    from matplotlib.colors import to_rgb

    if strength == 0 or not np.isfinite(strength):
        return np.ones(3)
    full = np.array(to_rgb(_LESS if strength < 0 else _MORE))
    part = _FAINTEST + (_STRONGEST - _FAINTEST) * float(np.sqrt(abs(strength)))
    mixed: NDArray[np.float64] = 1 - part * (1 - full)
    return mixed


def _number(axes: Any, place: tuple[int, int], each: Estimate, scale: Scale) -> None:
    if not np.isfinite(each.value):
        return
    sure = mark_of(each) in {"better", "worse"}
    axes.text(
        *place,
        _number_text(each.value / scale.divisor),
        ha="center",
        va="center",
        fontsize=8.5,
        fontweight="bold" if sure else "normal",
    )


def _number_text(value: float) -> str:
    """Return a difference with two digits after the point at most; what is not zero is not shown as zero."""
    size = abs(value)
    if size == 0:
        return "0"
    return f"{value:+.1g}" if size < 0.005 else f"{value:+.{0 if size >= 100 else 1 if size >= 10 else 2}f}"
