"""The machine and the queue at a decision, as a picture."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.picture import COLOURS, keeps_settings, new_figure
from policyfactory.core.units import HOUR

__all__ = ["Look", "picture_of"]

# More bars than these would be lines.
_MOST = 60


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What is drawn.

    Parameters
    ----------
    title : str
        Of which log and window.
    now : float
        Seconds since the beginning of the window.
    machine : int
        Processors.
    since, left, width : arrays (k,)
        Of the running jobs: seconds since the start, requested seconds that are left, processors.
    waited, request, needs : arrays (n,)
        Of the waiting jobs in submit order: seconds waited, seconds requested, processors.
    """

    title: str
    now: float
    machine: int
    since: FloatArray
    left: FloatArray
    width: Int64Array
    waited: FloatArray
    request: FloatArray
    needs: Int64Array


@keeps_settings
def picture_of(look: Look) -> NDArray[np.uint8]:
    """Return a picture, uint8 array (400, 900, 3): the running jobs over time, and the queue beside them."""
    figure = new_figure(9.0, 4.0)
    figure.set_dpi(100)
    figure.suptitle(f"{look.title}, {look.now / HOUR:,.1f} h after its beginning")
    machine, queue = figure.subplots(1, 2)
    order = np.argsort(look.left, kind="stable")
    low = np.concatenate([[0], np.cumsum(look.width[order])])[:-1]
    span = (look.since + look.left)[order] / HOUR
    machine.barh(
        low, span, look.width[order], -look.since[order] / HOUR, align="edge", color=COLOURS[0], edgecolor="white"
    )
    machine.axvline(0.0, color=COLOURS[7])
    machine.set(ylim=(0, look.machine), xlabel="hours from now", ylabel="processors", title=_running(look))
    rows = np.arange(min(len(look.request), _MOST))
    fits = look.needs[rows] <= look.machine - int(look.width.sum())
    colours: list[Any] = [COLOURS[2] if one else COLOURS[1] for one in fits]
    queue.barh(rows, look.request[rows] / HOUR, 0.8, color=colours)
    if len(rows) <= 20:
        for row in rows.tolist():
            words = f" {look.needs[row]} for {look.request[row] / HOUR:.3g} h, waited {look.waited[row] / HOUR:.3g} h"
            queue.text(0.0, row, words, va="center", fontsize=7)
    queue.set(ylim=(max(len(rows), 8), -1), xlabel="requested hours", ylabel="place in the queue")
    queue.set(title=f"{len(look.request)} wait (green: fits now)", yticks=[])
    figure.canvas.draw()
    # The canvas is Agg's (new_figure); its own type does not say what it can.
    canvas: Any = figure.canvas
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[:, :, :3])


def _running(look: Look) -> str:
    return f"{len(look.width)} run, {look.machine - int(look.width.sum())} of {look.machine} processors free"
