"""The Gantt chart: rectangles of processors and time, two policies one above the other on the same axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.excerpt import Excerpt
from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.core.text import shortened
from policyfactory.core.units import DAY, HOUR
from policyfactory.simulate.gantt import Rectangles, draw_rectangles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Colouring", "draw_gantt"]

Colouring = Literal["wait", "user"]
_LESS, _MORE, _SAME = COLOURS[5], COLOURS[4], "#c8c8c8"
_USERS = (COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[3], COLOURS[4], COLOURS[5], COLOURS[6])


def draw_gantt(excerpt: Excerpt, colour: Colouring, most: int) -> Figure:
    """Draw a stretch of one or two schedules.

    Parameters
    ----------
    excerpt : Excerpt
        The stretch.
    colour : {"wait", "user"}
        What the colours tell; of one policy alone it is the users.
    most : int
        Rectangles in all; the largest are drawn.

    Returns
    -------
    Figure
    """
    count = len(excerpt.policies)
    figure = new_figure(7.0, 0.8 + 3.0 * count)
    panels = figure.subplots(count, 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    if count == 1:
        colour = "user"
    users = _largest_users(excerpt)
    for k, axes in enumerate(panels):
        drawn = excerpt.drawn[k].largest(max(1, most // count))
        kinds = _by_wait(excerpt, k, drawn) if colour == "wait" else _by_user(excerpt, users, drawn)
        _panel(axes, excerpt, k, drawn, kinds)
    seconds = (excerpt.last - excerpt.first) / excerpt.jobs.ticks
    unit = "d" if seconds >= 2 * DAY else "h" if seconds >= 2 * HOUR else "min"
    panels[-1].set_xlabel(f"time since the first submission ({unit})")
    _legend(figure, excerpt, colour, users)
    return figure


def _by_wait(excerpt: Excerpt, k: int, drawn: Rectangles) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return which rectangles have which colour: the job waits less, more or as long as under the other policy."""
    own = (excerpt.change if k else -excerpt.change)[drawn.row]
    return [(_SAME, own == 0), (_LESS, own < 0), (_MORE, own > 0)]


def _largest_users(excerpt: Excerpt) -> NDArray[np.int64]:
    """Return the known users with most work in the stretch, under all policies together."""
    rows = np.concatenate([rectangles.row for rectangles in excerpt.drawn])
    area = np.concatenate([rectangles.area for rectangles in excerpt.drawn])
    user, code = np.unique(excerpt.jobs.user[rows], return_inverse=True)
    work = np.bincount(code, area, len(user))
    order = [at for at in np.argsort(-work, kind="stable") if user[at] >= 0]
    return user[order[: len(_USERS)]]


def _by_user(excerpt: Excerpt, users: NDArray[np.int64], drawn: Rectangles) -> list[tuple[str, NDArray[np.bool_]]]:
    own = excerpt.jobs.user[drawn.row]
    named = [(colour, own == user) for colour, user in zip(_USERS, users, strict=False)]
    return [(_SAME, ~np.isin(own, users)), *named]


def _panel(axes: Any, excerpt: Excerpt, k: int, drawn: Rectangles, kinds: list[tuple[str, NDArray[np.bool_]]]) -> None:
    scale = _scale(excerpt)
    origin = int(excerpt.jobs.submit[0])
    times = ((drawn.begin - origin) / scale, (drawn.end - origin) / scale)
    corners = [*times, drawn.low.astype(np.float64), drawn.high.astype(np.float64) + 1.0]
    backfilled = excerpt.backfilled[k][drawn.row]
    for colour, mask in kinds:
        for chosen, hatch in ((mask & ~backfilled, ""), (mask & backfilled, "/////")):
            draw_rectangles(axes, [side[chosen] for side in corners], colour, hatch)
    axes.set_xlim((excerpt.first - origin) / scale, (excerpt.last - origin) / scale)
    axes.set_ylim(0, excerpt.jobs.machine)
    if excerpt.loser is not None:
        own = drawn.row == excerpt.loser
        _outline(axes, [side[own] for side in corners], f"job {excerpt.jobs.job_id[excerpt.loser]}")
    axes.set_ylabel("processor")
    name = shortened(excerpt.policies[k], 40)
    axes.set_title(f"{name}: {excerpt.utilisation(k):.0f} % in use", loc="left", fontsize=10)
    axes.grid(visible=False)


def _scale(excerpt: Excerpt) -> float:
    seconds = (excerpt.last - excerpt.first) / excerpt.jobs.ticks
    return excerpt.jobs.ticks * (DAY if seconds >= 2 * DAY else HOUR if seconds >= 2 * HOUR else 60.0)


def _outline(axes: Any, corners: list[NDArray[np.float64]], name: str) -> None:
    from matplotlib.patches import Rectangle

    for left, right, low, high in zip(*corners, strict=True):
        axes.add_patch(
            Rectangle((left, low), right - left, high - low, fill=False, edgecolor="black", linewidth=1.6, zorder=5)
        )
    if len(corners[0]):
        at = int(np.argmax((corners[1] - corners[0]) * (corners[3] - corners[2])))
        left, right, low, high = (side[at] for side in corners)
        first, last = axes.get_xlim()
        # Beside a narrow rectangle there is room on one side at least.
        narrow = right - left < 0.12 * (last - first)
        leftwards = (left + right) / 2 > (first + last) / 2
        x, align = (
            (left, "right") if narrow and leftwards else (right, "left") if narrow else ((left + right) / 2, "center")
        )
        axes.text(
            x, (low + high) / 2, name, ha=align, va="center", fontsize=8, zorder=6,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1},
        )  # fmt: skip


def _legend(figure: Figure, excerpt: Excerpt, colour: Colouring, users: NDArray[np.int64]) -> None:
    from matplotlib.patches import Patch

    if colour == "wait":
        named = [(_LESS, "waits less than under the other"), (_MORE, "waits more"), (_SAME, "as long")]
    else:
        named = [(own, f"user {user}") for own, user in zip(_USERS, users, strict=False)]
        named.append((_SAME, "others"))
    handles = [Patch(facecolor=own, edgecolor="white", label=label) for own, label in named]
    if any(own.any() for own in excerpt.backfilled):
        handles.append(Patch(facecolor="#888888", edgecolor="white", hatch="/////", label="backfilled"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8.5)
