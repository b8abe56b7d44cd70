"""Pictures of an evaluation: box plots of the windows, and intervals of the differences from the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.picture import COLOURS, new_figure
from policyfactory.evaluate.compare import Comparison
from policyfactory.evaluate.display import Scale, scale_for
from policyfactory.evaluate.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.evaluate.run import Evaluation

__all__ = ["draw_boxes", "draw_differences"]

FloatArray = NDArray[np.float64]

_BASELINE, _POLICY, _NEUTRAL = COLOURS[1], COLOURS[0], "#7f7f7f"
_LOG_FROM = 20.0  # a range of values wider than this factor is shown on a logarithmic scale
_FEW = 5  # with fewer windows a box would say more than is known: the windows themselves are drawn
_COLOUR_OF = {"better": COLOURS[2], "worse": COLOURS[1], "differs": COLOURS[0]}
_PER_ROW = 2


def _panels(count: int, rows: int) -> tuple[Figure, list[Any]]:
    """Return a figure with one panel a trace, two abreast, each high enough for ``rows`` names."""
    across = min(count, _PER_ROW)
    down = -(-count // _PER_ROW)
    figure = new_figure(7.5 if across == 1 else 12.0, down * max(2.2, 1.1 + 0.32 * rows) + 0.3)
    grid = figure.subplots(down, across, squeeze=False)
    panels = list(grid.ravel())
    for unused in panels[count:]:
        unused.set_axis_off()
    return figure, panels[:count]


def _short(name: str, length: int = 28) -> str:
    return name if len(name) <= length else f"{name[: length - 3]}..."


def _names_down(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(1, len(names) + 1), [_short(name) for name in names])
    axes.set_ylim(len(names) + 0.6, 0.4)
    axes.grid(visible=False, axis="y")


def draw_boxes(evaluation: Evaluation, metric: str) -> Figure:
    """Draw one metric: a panel a trace, a box a policy, a dot a window.

    The box is the middle half of the windows, the line in it the median, whiskers reach to the last window within 1.5
    box lengths. The baseline has its own colour. The axis is logarithmic where the values span a factor of 20.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    metric : str
        One of its metrics.

    Returns
    -------
    Figure
    """
    figure, panels = _panels(len(evaluation.traces), len(evaluation.policies))
    scale = scale_for(METRICS[metric].unit, evaluation.values[:, :, evaluation.metrics.index(metric)].ravel().tolist())
    for axes, trace in zip(panels, evaluation.traces, strict=True):
        values = evaluation.matrix(trace, metric) / scale.divisor
        columns = [column[np.isfinite(column)] for column in values.T]
        _boxes(axes, columns)
        _names_down(axes, evaluation.policies)
        _value_axis(axes, np.concatenate(columns), f"{metric}{f' ({scale.label})' if scale.label else ''}")
        windows = "the whole log" if len(values) == 1 else f"{len(values)} windows"
        axes.set_title(f"{_short(trace, 44)}, {windows}", loc="left", fontsize=10)
    most = max(len(evaluation.rows(trace)) for trace in evaluation.traces)
    key = "Dot: a window; box: the middle half of the windows; line: median." if most >= _FEW else "Dot: a window."
    _key_below(figure, f"{key} Orange: the baseline.")
    return figure


def _key_below(figure: Figure, text: str) -> None:
    figure.supxlabel(text, fontsize=8, x=0.99, ha="right")


def _boxes(axes: Any, columns: Sequence[FloatArray]) -> None:
    places = range(1, len(columns) + 1)
    colours = [_BASELINE, *[_POLICY] * (len(columns) - 1)]
    for place, column, colour in zip(places, columns, colours, strict=True):
        if len(column) >= _FEW:
            _box(axes, place, column, colour)
    for place, column, colour in zip(places, columns, colours, strict=True):
        # Spread by a fixed pattern, so that equal data give equal pictures.
        spread = 0.16 * np.sin(2.4 * np.arange(len(column))) if len(column) >= _FEW else np.zeros(len(column))
        few = len(column) < _FEW
        axes.scatter(column, place + spread, s=36 if few else 10, color=colour, alpha=0.8, linewidths=0, zorder=3)


def _box(axes: Any, place: int, column: FloatArray, colour: str) -> None:
    low, median, high = np.quantile(column, [0.25, 0.5, 0.75])
    reach = 1.5 * (high - low)
    ends = column[(column >= low - reach) & (column <= high + reach)]
    axes.plot([ends.min(), ends.max()], [place, place], color=colour, linewidth=1.2)
    axes.barh(place, high - low, left=low, height=0.6, facecolor="white", zorder=2)
    axes.barh(place, high - low, left=low, height=0.6, facecolor=colour, alpha=0.3, zorder=2)
    axes.plot([median, median], [place - 0.3, place + 0.3], color="black", linewidth=1.8, zorder=4)


def _value_axis(axes: Any, values: FloatArray, label: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xlabel(label)
    if len(values) and values.min() > 0 and values.max() / values.min() >= _LOG_FROM:
        axes.set_xscale("log")
        decades = np.log10(values.max() / values.min())
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 3.0)))
        axes.xaxis.set_major_formatter(_plain_numbers())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(f"{label}, logarithmic")


def draw_differences(comparisons: Sequence[Comparison], metric: str) -> Figure:
    """Draw the paired differences from the baseline with their 95 % intervals, a panel a trace.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Of `compare.compare`; those of ``metric`` are drawn.
    metric : str
        The metric.

    Returns
    -------
    Figure
    """
    rows = [row for row in comparisons if row.metric == metric]
    traces = list(dict.fromkeys(row.trace for row in rows))
    ends = [end for row in rows for end in (row.difference, *_ends(row))]
    scale = scale_for(METRICS[metric].unit, ends)
    figure, panels = _panels(len(traces), max(sum(row.trace == trace for row in rows) for trace in traces))
    for axes, trace in zip(panels, traces, strict=True):
        own = [row for row in rows if row.trace == trace]
        _intervals(axes, own, scale)
        _names_down(axes, [row.policy for row in own])
        unit = f" ({scale.label})" if scale.label else ""
        bent = ", partly logarithmic" if axes.get_xscale() == "symlog" else ""
        axes.set_xlabel(f"{metric} minus {_short(own[0].baseline, 20)}'s in the same window{unit}{bent}")
        axes.set_title(_short(trace, 44), loc="left", fontsize=10)
    _verdict_legend(panels[0], rows)
    _key_below(figure, "Dot: median over the windows; bar: 95 % interval.")
    return figure


def _ends(row: Comparison) -> tuple[float, ...]:
    return (row.interval.low, row.interval.high) if row.interval else ()


def _intervals(axes: Any, rows: Sequence[Comparison], scale: Scale) -> None:
    axes.axvline(0, color="black", linewidth=1)
    for place, row in enumerate(rows, 1):
        colour = _COLOUR_OF.get(row.verdict, _NEUTRAL)
        if row.interval:
            low, high = row.interval.low / scale.divisor, row.interval.high / scale.divisor
            axes.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.6, solid_capstyle="butt")
        axes.plot(row.difference / scale.divisor, place, "o", color=colour, markersize=6)
    reaches = [max(abs(end) for end in (row.difference, *_ends(row))) for row in rows]
    reaches = [reach / scale.divisor for reach in reaches if np.isfinite(reach) and reach > 0]
    if reaches and max(reaches) / np.median(reaches) >= _LOG_FROM:
        # One huge difference would hide the others: linear around zero, logarithmic outside.
        axes.set_xscale("symlog", linthresh=float(np.median(reaches)))
        axes.xaxis.set_major_formatter(_plain_numbers())


def _plain_numbers() -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:,.6g}")


def _verdict_legend(axes: Any, rows: Sequence[Comparison]) -> None:
    from matplotlib.lines import Line2D

    found = list(dict.fromkeys(row.verdict for row in rows))
    handles = [Line2D([], [], color=_COLOUR_OF.get(word, _NEUTRAL), marker="o", linewidth=3) for word in found]
    axes.figure.legend(handles, found, loc="outside lower left", ncols=len(found), fontsize=9)
