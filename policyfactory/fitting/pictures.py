"""Pictures of a fit: priority over p, q and r (paper 004 figure 3, paper 002 figure 2), ranking, certainty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.picture import BLACK, BLUE, COLOURS, VERMILION, new_figure, plain_numbers
from policyfactory.fitting.bootstrap import CERTAIN, Certainty, ResampledFit, interval
from policyfactory.fitting.regression import Fit, sort_key
from policyfactory.fitting.sample import Sample
from policyfactory.policy.algebra import SHOWN_DIGITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class FitPicture(NamedTuple):
    """What a picture shows, what draws it, and with how many dots an inch."""

    caption: str
    draw: Callable[[], Figure]
    dpi: int = 150


_GRID = 120
DPI = 110  # heat maps are smooth: more would only make the files larger
_UNITS = {"p": "run time p (s)", "q": "processors q", "r": "submit time r (h since the start)"}
_COLOUR_BAR = "place in the queue\n(0 first, 1 last)"


def draw_priority(fit: Fit, sample: Sample) -> Figure:
    """Draw the order of jobs over (p, q), (p, r) and (q, r), the third held at its median."""
    figure = new_figure(11.0, 3.9)
    axes = figure.subplots(1, 3)
    middle = {name: float(np.median(getattr(sample, name))) for name in "pqr"}
    mesh: Any = None
    for axis, (x, y) in zip(axes, (("p", "q"), ("p", "r"), ("q", "r")), strict=True):
        mesh = _heat_map(axis, fit, sample, (x, y), middle)
        rest = next(name for name in "pqr" if name not in (x, y))
        axis.set_title(f"at {_value(rest, middle[rest])}", fontsize=10)
    figure.colorbar(mesh, ax=axes, label=_COLOUR_BAR, shrink=0.9)
    key = sort_key(fit, digits=SHOWN_DIGITS)
    figure.suptitle(key if len(key) <= 90 else f"{fit.name}, {len(fit.terms)} terms", fontsize=11)
    return figure


def draw_polynomials(fits: list[Fit], sample: Sample) -> Figure:
    """Draw the order of jobs over (p, q) for each polynomial, r at its median."""
    columns = min(3, len(fits))
    rows = -(-len(fits) // columns)
    figure = new_figure(3.5 * columns + 1.0, 3.2 * rows)
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    middle = {name: float(np.median(getattr(sample, name))) for name in "pqr"}
    mesh: Any = None
    for axis, fit in zip(axes, fits, strict=False):
        mesh = _heat_map(axis, fit, sample, ("p", "q"), middle)
        axis.set_title(fit.name)
    for axis in axes[len(fits) :]:
        axis.set_visible(False)
    figure.colorbar(mesh, ax=axes.tolist(), label=_COLOUR_BAR, shrink=0.9)
    figure.suptitle(f"order over run time and processors at {_value('r', middle['r'])}", fontsize=11)
    return figure


def draw_ranking(known: Sequence[ResampledFit], sample: Sample) -> Figure:
    """Draw the mean absolute error of some fits with its bootstrap interval, the held-out error and the noise."""
    figure = new_figure(8.0, 0.36 * len(known) + 1.6)
    axis = figure.subplots()
    places = np.arange(len(known))[::-1]
    for height, candidate in zip(places, known, strict=True):
        if len(candidate.mae):
            axis.plot(interval(candidate.mae), [height, height], color=BLUE, linewidth=2, alpha=0.6)
    axis.plot([c.fit.mae for c in known], places, "o", color=BLUE, label="all tuples, line: 95 % (bootstrap)")
    axis.plot([c.held_out for c in known], places, "x", color=VERMILION, label="tuples held out")
    axis.axvline(sample.level_mae, color="0.4", linestyle="--", label="same score for every job of a queue")
    if sample.noise_mae is not None:
        axis.axvline(sample.noise_mae, color=BLACK, linestyle=":", label="noise of the scores alone")
    keys = [sort_key(candidate.fit, digits=SHOWN_DIGITS) for candidate in known]
    names = [key if len(key) <= 60 else candidate.fit.name for key, candidate in zip(keys, known, strict=True)]
    axis.set_yticks(places, names)
    axis.set_xlabel("mean absolute error of the score")
    axis.set_title(f"{sample.tuples:,} tuples, {len(sample):,} jobs", fontsize=10)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def draw_certainty(certainty: Certainty) -> Figure:
    """Draw how often each form is first, and how wide the interval of its coefficients is, by number of tuples."""
    figure = new_figure(10.5, 4.6)
    left, right = figure.subplots(1, 2)
    order = np.argsort(-certainty.first.max(axis=1), kind="stable")
    named = [int(k) for k in order if certainty.first[k].max() >= 0.05][:6]
    for colour, k in zip(COLOURS, named, strict=False):
        left.plot(certainty.sizes, certainty.first[k], "o-", color=colour, label=certainty.fits[k].name, markersize=4)
        left.plot(certainty.sizes, certainty.disjoint[k], "x", color=colour, markersize=7)
    others = 1 - certainty.first[named].sum(axis=0)
    if others.max() >= 0.005:
        left.plot(certainty.sizes, others, "--", color="0.6", label="all others")
    left.axhline(CERTAIN, color="0.4", linewidth=1, linestyle=":")
    left.text(certainty.sizes[0], CERTAIN - 0.015, f"{CERTAIN:.0%}", va="top", fontsize=8, color="0.3")
    left.set_ylim(-0.02, 1.02)
    left.set_ylabel("share of tables in which the form is first (1)")
    left.set_title("which form is best (crosses: disjoint tables)", fontsize=10)
    _ratio_panel(right, certainty)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=4, fontsize=8)
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xlabel("tuples in the table")
        axis.set_xticks(certainty.sizes, [f"{size:,}" for size in certainty.sizes], rotation=45)
        axis.minorticks_off()
    return figure


def _ratio_panel(axis: Axes, certainty: Certainty) -> None:
    best = certainty.fits[0]
    low, middle, high = certainty.ratio[0].T
    axis.fill_between(certainty.sizes, low, high, color=BLUE, alpha=0.25, label="95 % of the tables")
    axis.plot(certainty.sizes, middle, "o-", color=BLUE, markersize=4, label="median")
    if (low > 0).all():
        axis.set_yscale("log")
        _plain_log_ticks(axis)
    axis.set_ylabel(f"coefficient of {best.terms[best.last].text} over that of {best.terms[best.base].text}")
    axis.set_title(f"what its coefficient is worth: {best.name}", fontsize=10)
    axis.legend(fontsize=8)


def _heat_map(axis: Axes, fit: Fit, sample: Sample, names: tuple[str, str], middle: dict[str, float]) -> Any:
    """Draw the place of each point in the panel's own queue; return what the colour bar belongs to."""
    axes = [_axis_values(sample, name) for name in names]
    grid = dict(zip(names, np.meshgrid(*axes, indexing="xy"), strict=True))
    shape = grid[names[0]].shape
    p, q, r = (grid.get(name, np.full(shape, middle[name])).ravel() for name in "pqr")
    values = sample.with_jobs(p, q, r).values(fit.expression)
    ranks = _places(values).reshape(shape)
    shown = [axes[k] / (3600.0 if name == "r" else 1.0) for k, name in enumerate(names)]
    mesh = axis.pcolormesh(*shown, ranks, cmap="viridis", vmin=0, vmax=1, shading="nearest", rasterized=True)
    if np.ptp(ranks) > 0:
        axis.contour(*shown, ranks, levels=np.arange(0.1, 1.0, 0.1), colors="white", linewidths=0.5, alpha=0.7)
    axis.grid(visible=False)
    for name, which in zip(names, ("x", "y"), strict=True):
        getattr(axis, f"set_{which}label")(_UNITS[name])
        if name in "pq":
            getattr(axis, f"set_{which}scale")("log", base=10 if name == "p" else 2)
            plain_numbers(getattr(axis, f"{which}axis"))
    axis.minorticks_off()  # dozens of each axis, which take as long as the map
    return mesh


def _axis_values(sample: Sample, name: str) -> NDArray[np.float64]:
    column = getattr(sample, name)
    low, high = float(column.min()), float(column.max())
    if low == high:
        high = low * 1.01
    return np.geomspace(low, high, _GRID) if name in "pq" else np.linspace(low, high, _GRID)


def _places(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the other values that are smaller, 0 to 1."""
    distinct, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    before = np.cumsum(counts) - counts
    places: NDArray[np.float64] = (
        (before / max(len(values) - 1, 1))[number] if len(distinct) > 1 else np.zeros(len(values))
    )
    return places


def _value(name: str, value: float) -> str:
    return {"p": f"p = {value:.0f} s", "q": f"q = {value:g} processors", "r": f"r = {value / 3600:.1f} h"}[name]


def _plain_log_ticks(axis: Axes) -> None:
    from matplotlib.ticker import LogLocator

    axis.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=20))
    plain_numbers(axis.yaxis, minor=False)
