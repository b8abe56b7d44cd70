"""The picture of what each live input of a network does to a job's score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, plain_numbers
from policyfactory.core.units import HOUR
from policyfactory.policy.effects import CONSTANT, FITS, InputEffect, NetworkEffects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_effects"]

_ACROSS = 3  # panels beside each other, 2 where there are 4
_UNITS = {
    "w": ("wait (h)", HOUR),
    "p": ("requested run time (h)", HOUR),
    "q": ("processors", 1),
    "f": ("free processors", 1),
}


@keeps_settings
def draw_effects(effects: NetworkEffects) -> Figure:
    """Draw a panel for each live input, on one scale of scores: the mean over the jobs, and where 80 % of them lie."""
    live = effects.live
    across = 2 if len(live) in (2, 4) else min(max(len(live), 1), _ACROSS)
    down = max(-(-len(live) // across), 1)
    figure = new_figure(3.4 * across + 0.8, 2.7 * down + 1.0)
    panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for axes, effect in zip(panels, live, strict=False):
        _draw(axes, effect)
    for axes in panels[len(live) :]:
        axes.set_visible(False)
    for axes in panels[: len(live) : across]:
        axes.set_ylabel("change of the score\n(lower runs first)")
    dead = ", ".join(f"{one.formula} ({one.why_dead})" for one in effects.dead if one.label != CONSTANT)
    constants = sum(one.label == CONSTANT for one in effects.dead)
    if constants:
        dead += f"{', ' if dead else ''}{constants} constant{'s' if constants > 1 else ''}"
    below = "line: mean over the jobs, band: 80 % of them" + (f"; dead: {dead}" if dead else "")
    figure.suptitle(f"{effects.network.name}: what each input does, {effects.jobs.about}", fontsize=11)
    figure.supxlabel(below if len(below) <= 110 else below[:107] + "...", fontsize=8)
    return figure


def _draw(axes: Axes, effect: InputEffect) -> None:
    label, unit = _UNITS.get(effect.variable, (effect.formula, 1))
    x = effect.axis / unit
    if len(x) == 2:
        error = np.array([effect.mean - effect.low, effect.high - effect.mean])
        axes.bar([0, 1], effect.mean, width=0.5, color=COLOURS[0], alpha=0.6, yerr=np.maximum(error, 0.0), capsize=3)
        fits = effect.label == FITS
        axes.set_xticks([0, 1], ["no", "yes"] if fits else [f"{value:g}" for value in x])
        label = "" if fits else label
    else:
        axes.fill_between(x, effect.low, effect.high, color=COLOURS[0], alpha=0.2, linewidth=0)
        axes.plot(x, effect.mean, color=COLOURS[0])
        if effect.variable in ("w", "p", "q"):
            axes.set_xscale("log")
            plain_numbers(axes.xaxis, minor=False)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_title(f"{effect.label} ({100 * effect.share:.0f} %)", fontsize=10)
    axes.set_xlabel(label if len(label) <= 40 else label[:37] + "...", fontsize=9)
