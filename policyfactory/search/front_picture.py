"""The picture of a Pareto front: what the goal gains against each of its prices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from policyfactory.core.picture import COLOURS, new_figure, plain_numbers
from policyfactory.core.text import shortened
from policyfactory.search.judging import Ranked
from policyfactory.search.pareto import COSTS, Member
from policyfactory.search.play import MEASURED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from policyfactory.search.result import Trained

__all__ = ["draw_front"]

_WORDS = {
    "p99_wait": "99 % quantile of the wait",
    "max_wait": "longest wait",
    "area_weighted_wait": "area-weighted wait",
}
_TRIED, _FRONT, _OUT, _PUBLISHED = "#b0b0b0", COLOURS[0], COLOURS[1], "black"
_FAR = 20.0  # times the baseline's: what lies beyond is not drawn


def draw_front(trained: Trained) -> Figure:
    """Draw goal against price, as ratios to the baseline, in a panel for each price.

    Parameters
    ----------
    trained : Trained
        A run on replicas.

    Returns
    -------
    Figure
    """
    figure = new_figure(11.0, 4.4)
    panels = figure.subplots(1, len(COSTS), sharex=True)
    for number, (axes, cost) in enumerate(zip(panels, COSTS, strict=True), 1):
        _panel(axes, trained, number)
        axes.set_title(_WORDS[cost], fontsize=10)
        axes.set_xlabel(trained.task.options.goal, fontsize=9)
    panels[0].set_ylabel(f"ratio to {trained.task.baseline.name}", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=6, fontsize=8)
    return figure


def _panel(axes: Axes, trained: Trained, number: int) -> None:
    """Draw one price: the place of its ratio in a member's."""
    drawn = [one for one in trained.members if _is_near(one, number)]
    learned = [one for one in drawn if one.ranked.learned]
    groups = (
        ("tried", _TRIED, 10, [one for one in learned if not one.on_front]),
        ("front, within the limits", _FRONT, 26, [one for one in learned if one.on_front and not one.ranked.out]),
        ("front, beyond them", _OUT, 26, [one for one in learned if one.on_front and one.ranked.out]),
    )
    for label, colour, size, members in groups:
        points = [(one.ratios[0], one.ratios[number]) for one in members]
        axes.scatter(*_columns(points), s=size, color=colour, label=label, zorder=3 if size > 10 else 2)
    chosen = [one for one in drawn if one.ranked.candidate is trained.chosen.winner]
    points = [(one.ratios[0], one.ratios[number]) for one in chosen]
    axes.scatter(
        *_columns(points), s=130, facecolors="none", edgecolors=COLOURS[2], linewidths=1.8, label="choice", zorder=4
    )
    published = [one for one in drawn if not one.ranked.learned]
    points = [(one.ratios[0], one.ratios[number]) for one in published]
    axes.scatter(*_columns(points), s=30, color=_PUBLISHED, marker="x", label="published", zorder=4)
    for one in published:
        # The baseline stands where the lines cross, and in the label of the axis.
        if one.name != trained.task.baseline.name:
            _write(axes, shortened(one.name, 16), one, number)
    for place, one in enumerate(trained.front, 1):
        if one in drawn and one.ranked.learned:
            _write(axes, str(place), one, number)
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.axvline(1, color="grey", linewidth=0.8)
    bound = _bound(trained, number)
    if bound is not None:
        axes.axhline(bound, color=_OUT, linewidth=1, linestyle="--", label="limit")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(axis.get_major_formatter())
        plain_numbers(axis, minor=False)
        _ticks(axis)
    axes.tick_params(labelsize=8)
    axes.margins(0.12)


def _ticks(axis: object) -> None:
    """Put a few round numbers on an axis, however little of a decade it shows."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))  # type: ignore[attr-defined]
    axis.set_minor_locator(NullLocator())  # type: ignore[attr-defined]


def _write(axes: Axes, text: str, one: Member, number: int) -> None:
    place = one.ratios[0], one.ratios[number]
    axes.annotate(text, place, xytext=(4, 3), textcoords="offset points", fontsize=7)


def _is_near(one: Member, number: int) -> bool:
    values = one.ratios[0], one.ratios[number]
    return all(math.isfinite(value) and 1 / _FAR < value < _FAR for value in values)


def _columns(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _bound(trained: Trained, number: int) -> float | None:
    """Return the most that a price may be, as a ratio to the baseline's; None without a limit or band."""
    cost = COSTS[number - 1]
    base: Ranked = next(
        one.ranked for one in trained.members if one.name == trained.task.baseline.name and not one.ranked.learned
    )
    value = base.means[MEASURED.index(cost)]
    for band in trained.task.options.guard_bands:
        if band.guard == cost and value:
            bound = band.bound(value) / value
            return bound if bound < _FAR else None
    return None
