"""Pictures of shares: which policies a tuner had in force, stacked, as time passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.analyses.palette import area_look
from policyfactory.core.picture import new_figure
from policyfactory.core.text import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.analyses.choices_shares import Shares

__all__ = ["draw_shares", "used_arms"]

_MOST_BINS = 52
_ABREAST = 2
_LONGEST, _LEGEND_WIDTH = 30, 84  # letters of a name, and of a line of the legend
_WEEKS_FROM = 60  # days from which time is counted in weeks


def used_arms(shares: Sequence[Shares]) -> list[str]:
    """Return the policies that some tuner chose, in the order of the tuners' lists.

    Parameters
    ----------
    shares : sequence of Shares
        Of one log or several.
    """
    names = list(dict.fromkeys(arm for one in shares for arm in one.arms))
    chosen = {one.arms[arm] for one in shares for arm in np.flatnonzero(one.shares() > 0)}
    return [name for name in names if name in chosen]


def draw_shares(shares: Sequence[Shares]) -> Figure:
    """Draw the shares of each tuner in a panel of its own, with one legend.

    Parameters
    ----------
    shares : sequence of Shares
        Of one log.

    Returns
    -------
    Figure
    """
    used = used_arms(shares)
    across = min(_ABREAST, len(shares))
    down = -(-len(shares) // across)
    lines = -(-len(used) // _legend_names(used)[1])
    figure = new_figure(7.0, (3.0 if across == 1 else 1.9) * down + 0.6 + 0.22 * lines)
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for axes in grid.ravel()[len(shares) :]:
        axes.set_axis_off()
    for at, (axes, one) in enumerate(zip(grid.ravel(), shares, strict=False)):
        unit = _panel(axes, one, used)
        axes.tick_params(labelbottom=at >= len(shares) - across)
        if at >= len(shares) - across:
            axes.set_xlabel(f"time ({unit})")
    figure.supylabel("share (%)", fontsize=10)
    _legend(figure, used)
    return figure


def _panel(axes: Any, one: Shares, used: Sequence[str]) -> str:
    days, rows = one.over_time(_MOST_BINS)
    unit, divisor = ("weeks", 7) if days[-1] >= _WEEKS_FROM else ("days", 1)
    bottom = np.zeros(len(rows))
    for place, name in enumerate(used):
        if name not in one.arms:
            continue
        top = bottom + rows[:, one.arms.index(name)]
        low, high = np.append(bottom, bottom[-1]), np.append(top, top[-1])
        axes.fill_between(days / divisor, low, high, step="post", **area_look(place))
        bottom = top
    axes.set_title(shortened(one.tuner, 40), loc="left", fontsize=9)
    axes.set_xlim(0, days[-1] / divisor)
    axes.set_ylim(0, 100)
    axes.grid(visible=False)
    return unit


def _legend_names(used: Sequence[str]) -> tuple[list[str], int]:
    """Return the names as they are written below the picture, and how many abreast."""
    names = [shortened(name, _LONGEST) for name in used]
    return names, max(1, min(6, len(used), _LEGEND_WIDTH // (max(map(len, names)) + 6)))


def _legend(figure: Figure, used: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    names, abreast = _legend_names(used)
    handles = [Patch(**area_look(place)) for place in range(len(used))]
    figure.legend(handles, names, loc="outside lower center", ncols=abreast, fontsize=9)
