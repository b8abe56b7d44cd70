"""What the pictures of analyses share: looks for a dozen policies and more, panels, and curves over a common axis.

Policies are told apart by colour first, then by dash or hatch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from policyfactory.core.options import FloatArray
from policyfactory.core.picture import COLOURS, new_figure, plain_numbers
from policyfactory.core.text import DAY, HOUR, MINUTE, WEEK, format_duration, shortened
from policyfactory.evaluate.analyses.analysis import LogView

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Curve",
    "Panel",
    "area_look",
    "colour_of",
    "dash_of",
    "draw_panels",
    "is_dashed",
    "key_below",
    "line_look",
    "name_panel",
    "name_rows",
    "panels_down",
]

_LINES = (*COLOURS[:6], COLOURS[7], "#8C6D31")
_AREAS = (*COLOURS[:7], "#999999", "#6B4226", "#5E3C99", "#A6D854", "#1B3A57")
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1, 1, 1)))
_HATCHES = ("", "////", "....", "xxxx")
_BASELINE = COLOURS[1]
_OTHERS = (COLOURS[0], COLOURS[2], COLOURS[3], COLOURS[5], COLOURS[7], COLOURS[4])
_LINE_STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1, 1, 1)))


def line_look(place: int) -> dict[str, Any]:
    """Return colour and dash of the line at ``place``, as matplotlib's plot takes them."""
    dash = _DASHES[place // len(_LINES) % len(_DASHES)]
    return {"color": _LINES[place % len(_LINES)], "linestyle": dash, "linewidth": 1.6}


def is_dashed(place: int) -> bool:
    """Return whether the line at ``place`` is dashed: its colour is another line's too."""
    return place >= len(_LINES)


def area_look(place: int) -> dict[str, Any]:
    """Return colour and hatch of the area at ``place``, as matplotlib's fill_between takes them."""
    hatch = _HATCHES[place // len(_AREAS) % len(_HATCHES)]
    return {"facecolor": _AREAS[place % len(_AREAS)], "hatch": hatch, "edgecolor": "white", "linewidth": 0.0}


def colour_of(place: int) -> str:
    """Return the colour of the contender at ``place``; the baseline (0) is orange in all pictures."""
    return _BASELINE if place == 0 else _OTHERS[(place - 1) % len(_OTHERS)]


def dash_of(place: int) -> Any:
    """Return the line style of the contender at ``place``: colours come again from the eighth on, dashed."""
    return _LINE_STYLES[0 if place == 0 else (place - 1) // len(_OTHERS) % len(_LINE_STYLES)]


def panels_down(logs: int, height: float) -> tuple[Figure, list[Any]]:
    """Return a figure of 7 inches with one panel of ``height`` inches a log, one below the other."""
    figure = new_figure(7.0, logs * height + 0.5)
    return figure, list(figure.subplots(logs, 1, squeeze=False).ravel())


def name_rows(axes: Any, own: LogView) -> None:
    """Give a panel a row a policy, the baseline on top, and the name of its log as the title."""
    axes.set_yticks(range(len(own.policies)), [shortened(policy) for policy in own.policies])
    axes.set_ylim(len(own.policies) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    name_panel(axes, own)


def name_panel(axes: Any, own: LogView) -> None:
    """Give a panel the name of its log as the title."""
    axes.set_title(f"{shortened(own.log, 44)}, {own.cases}", loc="left", fontsize=10)


def key_below(figure: Figure, text: str) -> None:
    """Write how to read the picture below it."""
    figure.supxlabel(text, fontsize=8, x=0.99, ha="right")


_NAMED = 7  # policies with a colour of their own
_UNNAMED = "#b0b0b0"
_REFERENCE: dict[str, Any] = {"color": "#000000", "linewidth": 1.6, "linestyle": (0, (2, 1.5)), "zorder": 5}
_TICKS = (1, 10, MINUTE, 10 * MINUTE, HOUR, 4 * HOUR, DAY, 4 * DAY, 2 * WEEK, 8 * WEEK, 32 * WEEK, 128 * WEEK)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One policy's curve.

    Parameters
    ----------
    name : str
        The policy.
    x, y : float64 array (n,)
        Its points.
    """

    name: str
    x: FloatArray
    y: FloatArray


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """The curves of all policies, the baseline's first.

    Parameters
    ----------
    title : str
        What is shown.
    x_label, y_label : str
        The axes, with units.
    curves : sequence of Curve
        In the order of the policies.
    durations : bool
        Whether x is a duration in seconds, shown on a logarithmic axis.
    log_y : bool
        Whether y is shown on a logarithmic axis.
    steps : bool
        Whether y stays between two points what it is at the first.
    marks : sequence of (float, str)
        Vertical lines and what they are.
    reference : Curve or None
        A curve that is no policy's, black and dashed.
    """

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    durations: bool = False
    log_y: bool = False
    steps: bool = False
    marks: Sequence[tuple[float, str]] = ()
    reference: Curve | None = None


def draw_panels(panels: Sequence[Panel], *, height: float = 2.9) -> Figure:
    """Draw panels below each other, with one legend for all.

    The first seven policies have a colour of their own (the baseline is orange and dashed), the others are grey.

    Parameters
    ----------
    panels : sequence of Panel
        With the same policies, and the same reference or none, in each.
    height : float
        Of a panel, in inches.

    Returns
    -------
    Figure
    """
    names = [curve.name for curve in panels[0].curves]
    shown = min(len(names), _NAMED)
    reference = panels[0].reference
    lines = -(-(shown + (len(names) > shown) + (reference is not None)) // 4)
    figure = new_figure(7.0, height * len(panels) + 0.3 + 0.25 * lines)
    grid = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for at, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        _draw_curves(axes, panel)
        # Panels below each other that have the same axis need its label once.
        if at + 1 == len(panels) or panels[at + 1].x_label != panel.x_label:
            axes.set_xlabel(panel.x_label)
    _legend(figure, names, reference)
    return figure


def _draw_curves(axes: Any, panel: Panel) -> None:
    where = {"drawstyle": "steps-post"} if panel.steps else {}
    for at in reversed(range(len(panel.curves))):
        curve = panel.curves[at]
        axes.plot(curve.x, curve.y, **_look(at), **where)
    if panel.reference is not None:
        axes.plot(panel.reference.x, panel.reference.y, **_REFERENCE, **where)
    axes.set_ylabel(panel.y_label)
    axes.set_title(panel.title, loc="left", fontsize=10)
    if panel.log_y and any((curve.y > 0).any() for curve in panel.curves):
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
    for x, text in panel.marks:
        axes.axvline(x, color="#7f7f7f", linewidth=1, linestyle=":")
        axes.annotate(
            text, (x, 1), xycoords=("data", "axes fraction"), xytext=(2, -2), textcoords="offset points",
            rotation=90, va="top", ha="left", fontsize=7.5, color="#555555",
        )  # fmt: skip
    if panel.durations:
        _duration_axis(axes)


def _look(at: int) -> dict[str, Any]:
    if at < _NAMED:
        style = {"linestyle": (0, (5, 2)), "zorder": 4} if at == 0 else {"zorder": 3}
        return {"color": colour_of(at), "linewidth": 1.6, **style}
    return {"color": _UNNAMED, "linewidth": 1.0, "zorder": 2}


def _legend(figure: Figure, names: Sequence[str], reference: Curve | None) -> None:
    from matplotlib.lines import Line2D

    shown = min(len(names), _NAMED)
    handles = [Line2D([], [], **_look(at)) for at in range(shown)]
    labels = [shortened(name, 24) for name in names[:shown]]
    if len(names) > shown:
        handles.append(Line2D([], [], **_look(shown)))
        labels.append(f"{len(names) - shown} others")
    if reference is not None:
        handles.insert(0, Line2D([], [], **_REFERENCE))
        labels.insert(0, shortened(reference.name, 24))
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), fontsize=9)


def _duration_axis(axes: Any) -> None:
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    inside = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(inside, [format_duration(tick) for tick in inside])
    axes.xaxis.set_minor_locator(NullLocator())
