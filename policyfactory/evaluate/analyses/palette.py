"""Colours and dashes for a dozen policies and more: told apart by colour first, then by dash or hatch."""

from __future__ import annotations

from typing import Any

from policyfactory.core.picture import COLOURS

__all__ = ["area_look", "is_dashed", "line_look", "shortened"]

_LINES = (*COLOURS[:6], COLOURS[7], "#8C6D31")
_AREAS = (*COLOURS[:7], "#999999", "#6B4226", "#5E3C99", "#A6D854", "#1B3A57")
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1, 1, 1)))
_HATCHES = ("", "////", "....", "xxxx")


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


def shortened(name: str, length: int) -> str:
    """Return a name of at most ``length`` letters, cut in the middle: names often end in a number."""
    if len(name) <= length:
        return name
    tail = (length - 3) // 2
    return f"{name[: length - 3 - tail]}...{name[-tail:]}"
