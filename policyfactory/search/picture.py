"""The learning curve: how good the best was after how much work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.core.text import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.search.result import Trained

__all__ = ["draw_learning"]

_MOST_NAMED = 8  # curves with a name of their own in the legend


def draw_learning(trained: Trained) -> Figure:
    """Draw the best so far of each search over the work done, relative to the baseline.

    Parameters
    ----------
    trained : Trained
        The run.

    Returns
    -------
    Figure
    """
    figure = new_figure(7.0, 4.0)
    axes = figure.add_subplot()
    curves = trained.learned.curves
    for number, (name, points) in enumerate(curves.items()):
        label = shortened(name, 40) if number < _MOST_NAMED else None
        work, best = zip(*points, strict=True)
        axes.plot(work, best, color=COLOURS[number % len(COLOURS)], linewidth=1.4, label=label)
    if trained.learned.axis:
        axes.set_xlabel(trained.learned.work)
        axes.set_ylabel(trained.learned.axis)
    else:
        axes.axhline(0, color="black", linewidth=1)
        name = trained.task.baseline.name
        axes.annotate(name, (0, 0), xytext=(4, 4), textcoords="offset points", fontsize=9)
        axes.set_xlabel(f"{trained.learned.work} tried")
        how = f"ratio to {name}'s, minus 1" if trained.settings.get("objective") == "mean" else f"log ratio to {name}'s"
        axes.set_ylabel(f"{trained.task.options.goal} of the best inside the bands,\n{how}")
    if curves:
        axes.legend(fontsize=8)
    return figure
