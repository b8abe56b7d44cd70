"""How far each candidate orders queues as the network does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.core.text import shortened
from policyfactory.search.distill_candidates import KINDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.search.distill_result import Distilled

__all__ = ["draw_agreement"]

_MOST_DRAWN = 16
_WORDS = {"static": "a key that never changes", "w": "with the wait", "f": "with the free processors"}


def draw_agreement(found: Distilled) -> Figure:
    """Draw the share of pairs ordered as by the network, of the best candidates.

    Parameters
    ----------
    found : Distilled
        The run.

    Returns
    -------
    Figure
    """
    kept = list(found.rated[:_MOST_DRAWN])
    kept += [one for one in (found.chosen.choice, found.chosen.static) if one not in kept]
    kept.reverse()
    figure = new_figure(7.0, 1.4 + 0.28 * len(kept))
    axes = figure.add_subplot()
    for number, kind in enumerate(KINDS):
        places = [at for at, one in enumerate(kept) if one.formula.kind == kind]
        if places:
            shares = [100 * kept[at].judged.pairs for at in places]
            axes.barh(places, shares, color=COLOURS[number], label=_WORDS[kind], height=0.7)
    for at, one in enumerate(kept):
        interval = one.judged.interval
        if interval is not None:
            axes.plot([100 * interval[0], 100 * interval[1]], [at, at], color="black", linewidth=1.4)
    names = [
        shortened(one.formula.policy.name, 30) + (" (choice)" if one is found.chosen.choice else "") for one in kept
    ]
    axes.set_yticks(range(len(kept)), names, fontsize=8)
    axes.set_xlim(0, 100)
    axes.axvline(50, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel(
        f"pairs ordered as by network {shortened(found.network.name, 30)} on the judged windows, %\n(line: 95 % "
        "interval over the windows; dotted: by chance)",
        fontsize=8,
    )
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncol=len(KINDS), frameon=False)
    axes.set_ylim(-0.6, len(kept) - 0.4)
    return figure
