"""What pictures of analyses share: panels, and looks for a dozen policies and more.

They are told apart by colour first, then by dash or hatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyfactory.core.picture import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["area_look", "colour_of", "dash_of", "is_dashed", "key_below", "line_look", "panels_down"]

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


def panels_down(logs: int, height: float, *, share_x: bool = False) -> tuple[Figure, list[Any]]:
    """Return a figure of 7 inches with one panel of ``height`` inches a log, one below the other."""
    figure = new_figure(7.0, logs * height + 0.5)
    return figure, list(figure.subplots(logs, 1, squeeze=False, sharex=share_x).ravel())


def key_below(figure: Figure, text: str) -> None:
    """Write how to read the picture below it."""
    figure.supxlabel(text, fontsize=8, x=0.99, ha="right")
