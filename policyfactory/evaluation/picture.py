"""Pictures: boxes in rows, estimates in rows, cells, and curves over a common axis; panels below each other.

A picture is as wide as a phone in portrait can show; what is drawn has a shape, a dash or a number beside its colour.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    new_figure,
    plain_numbers,
)
from policyfactory.core.text import DAY, HOUR, MINUTE, WEEK, counted, format_duration, number_text, shortened
from policyfactory.report.sections import Scale, scale_for
from policyfactory.simulation.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.statistics.compare import Comparison, Rank
    from policyfactory.statistics.evaluation import Evaluation
    from policyfactory.statistics.intervals import Interval

_BASELINE, _POLICY, _NEUTRAL = VERMILION, BLUE, "#6e6e6e"
_OTHERS = (BLUE, GREEN, PURPLE, SKY, BLACK, ORANGE)
_LINE_STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1, 1, 1)))
_AREAS = (*COLOURS[:7], "#999999", "#6B4226", "#5E3C99", "#A6D854", "#1B3A57")
_HATCHES = ("", "////", "....", "xxxx")
_CELLS = ("#E8863C", "#f3f3f3", "#4A96C9")  # from -1 to 1
_WIDTH = 7.0  # inches
_AXIS = 0.85  # inches of a panel for its title and axis
LOG_FROM = 20.0  # a range of values wider than this factor is shown on a logarithmic scale
_FEW = 5  # with fewer cases a box would say more than is known: the cases themselves are drawn
_MANY = 200  # with more cases a box's own are a cloud: only those beyond the whiskers are drawn
_LOOK_OF = {
    "better": (GREEN, "o", True),
    "worse": (VERMILION, "s", True),
    "differs": (BLUE, "^", True),
    "no difference": (_NEUTRAL, "o", False),
    "baseline": ("#000000", "D", True),
    "policy": (_POLICY, "o", True),
}
_STATISTIC = {
    "median": "median over the cases",
    "mean": "mean over the cases",
    "ratio": "ratio of the sums over the cases",
    "weeks": "difference of the means over all jobs",
}
_UNKNOWN = (_NEUTRAL, "x", True)
_REFERENCE: dict[str, Any] = {"color": "#000000", "linewidth": 1.6, "linestyle": (0, (2, 1.5)), "zorder": 5}
_TICKS = (1, 10, MINUTE, 10 * MINUTE, HOUR, 4 * HOUR, DAY, 4 * DAY, 2 * WEEK, 8 * WEEK, 32 * WEEK, 128 * WEEK)


def line_look(index: int) -> dict[str, Any]:
    """Return colour and dash of the line of the contender at ``index``; the baseline (0) is orange in all pictures."""
    colour = _BASELINE if index == 0 else _OTHERS[(index - 1) % len(_OTHERS)]
    dash = _LINE_STYLES[max(0, index - 1) // len(_OTHERS) % len(_LINE_STYLES)]
    return {"color": colour, "linestyle": dash, "linewidth": 1.6, "zorder": 3 if index == 0 else 2}


def area_look(index: int) -> dict[str, Any]:
    """Return colour and hatch of the area at ``index``, as matplotlib's fill_between takes them."""
    hatch = _HATCHES[index // len(_AREAS) % len(_HATCHES)]
    return {"facecolor": _AREAS[index % len(_AREAS)], "hatch": hatch, "edgecolor": "white", "linewidth": 0.0}


# Panels and rows. -----------------------------------------------------------------------------------------------------


def panels_down(titles: Sequence[str], heights: Sequence[float]) -> tuple[Figure, list[Any]]:
    """Return a figure with titled panels below each other, each so many inches high beside its title and axis."""
    figure = new_figure(_WIDTH, sum(heights) + _AXIS * len(heights) + 0.5)
    panels = list(figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights).ravel())
    if layout := figure.get_layout_engine():
        layout.set(h_pad=0.09)  # type: ignore[call-arg]
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(shortened(title, 80), loc="left", fontsize=10, fontweight="bold")
    return figure, panels


def _height(rows: int, row: float = 0.3) -> float:
    return max(0.9, row * (rows + 0.4))


def name_rows(axes: Any, names: Sequence[str], chosen: str = "") -> None:
    """Give a panel a row a policy, the first on top; the chosen one has a word and a colour of its own."""
    axes.set_yticks(range(len(names)), [_named(name, chosen) for name in names])
    _mark(axes.get_yticklabels(), names, chosen)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.3, -0.7)
    axes.grid(visible=False, axis="y")


def row_colours(names: Sequence[str], chosen: str = "") -> list[str]:
    """Return the colour of each row: where a policy was chosen, it alone has that of a policy."""
    others = _NEUTRAL if chosen else _POLICY
    return [_BASELINE, *(_POLICY if name == chosen else others for name in names[1:])]


def _named(name: str, chosen: str) -> str:
    return f"{shortened(name)} (chosen)" if name == chosen else shortened(name)


def _mark(labels: Iterable[Any], names: Iterable[str], chosen: str) -> None:
    for label, name in zip(labels, names, strict=True):
        if name == chosen:
            label.set(color=_POLICY, fontweight="bold")


def _numbers_right(axes: Any, heading: str, texts: Sequence[str]) -> None:
    style = {"transform": axes.get_yaxis_transform(), "fontsize": 9, "ha": "right"}
    edge = 1.02 + 0.0125 * max(map(len, [heading, *texts]))
    for row, text in enumerate(texts):
        axes.text(edge, row, text, va="center", **style)
    axes.text(edge, -0.8, heading, va="bottom", color=_NEUTRAL, **style)


def key_below(figure: Figure, text: str) -> None:
    """Write how to read a picture below it."""
    figure.supxlabel(f"{text[0].upper()}{text[1:]}.", fontsize=8.5, x=0.01, ha="left", color="#404040")


def _cases(count: int) -> str:
    return "one case" if count == 1 else f"{count} cases"


# Boxes. ---------------------------------------------------------------------------------------------------------------


def draw_boxes(evaluation: Evaluation, metric: str, shown: str = "", chosen: str = "") -> Figure:
    """Draw one metric: a panel a log, a box a policy, a dot a case, or a week of a whole log.

    The box is the middle half of the cases, the line in it the median (also written at the right, where a whole log has
    its value), whiskers reach to the last case within 1.5 box lengths. The baseline has its own colour. The axis is
    logarithmic where the values span a factor of 20.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    metric : str
        One of its metrics.
    shown : str
        The unit in which seconds are shown (`sections.shown_units`); empty: chosen from the values.
    chosen : str
        Name of the policy that was chosen: it has a word and a colour of its own.

    Returns
    -------
    Figure
    """
    weekly = [evaluation.weekly_matrix(log, metric) for log in evaluation.logs]
    whole = [evaluation.matrix(log, metric) for log in evaluation.logs]
    matrices = [cases if weeks is None else weeks for cases, weeks in zip(whole, weekly, strict=True)]
    titles = [
        f"{log}, {_cases(len(values)) if weeks is None else f'{len(values)} weeks'}"
        for log, values, weeks in zip(evaluation.logs, matrices, weekly, strict=True)
    ]
    figure, panels = panels_down(titles, [_height(len(evaluation.policies))] * len(matrices))
    scale = scale_for(METRICS[metric].unit, np.concatenate(matrices).ravel().tolist(), shown)
    for axes, matrix, cases in zip(panels, matrices, whole, strict=True):
        columns = [column[np.isfinite(column)] / scale.divisor for column in matrix.T]
        box_rows(axes, columns, row_colours(evaluation.policies, chosen))
        name_rows(axes, evaluation.policies, chosen)
        _value_axis(
            axes, np.concatenate(columns), f"{METRICS[metric].title}{f' ({scale.label})' if scale.label else ''}"
        )
        # Of weeks, the metric itself, which is over all jobs.
        finite = [column[np.isfinite(column)] / scale.divisor for column in cases.T]
        medians = [number_text(float(np.median(column))) if len(column) else "-" for column in finite]
        _numbers_right(axes, "median" if len(cases) > 1 else "value", medians)
    most = max(map(len, matrices))
    unit = "week" if all(weeks is not None for weeks in weekly) else "case"
    dots = f"dot: a {unit}" if most <= _MANY else f"dot: a {unit} beyond the whiskers"
    boxes = f"box: the middle half of the {unit}s, line: median, " if most >= _FEW else ""
    key_below(figure, f"{boxes}{dots}; orange: {shortened(evaluation.baseline)}, the baseline")
    return figure


def box_rows(axes: Any, columns: Sequence[FloatArray], colours: Sequence[str]) -> None:
    """Draw the values of each row: a box of the middle half where there are some, and the cases as dots."""
    for row, (column, colour) in enumerate(zip(columns, colours, strict=True)):
        few, drawn = len(column) < _FEW, column
        if not few:
            low, middle, high = np.quantile(column, [0.25, 0.5, 0.75])
            reach = 1.5 * (high - low)
            ends = column[(column >= low - reach) & (column <= high + reach)]
            draw_box(axes, row, (ends.min(), low, middle, high, ends.max()), colour)
            if len(column) > _MANY:
                drawn = column[(column < ends.min()) | (column > ends.max())]
        # Spread by a fixed pattern, so that equal data give equal pictures.
        spread = np.zeros(len(drawn)) if few else 0.2 * np.sin(2.4 * np.arange(len(drawn)))
        size = 6 if few else 3
        axes.plot(drawn, row + spread, "o", color=colour, markersize=size, markeredgewidth=0, alpha=0.75, zorder=3)


def draw_box(axes: Any, row: int, ends: Sequence[float], colour: str) -> None:
    """Draw a box in a row: the ends of its whiskers, of the box, and the line in it, ascending."""
    least, low, middle, high, most = ends
    axes.plot([least, most], [row, row], color=colour, linewidth=1.2)
    axes.barh(row, high - low, left=low, height=0.62, facecolor="white", zorder=2)
    axes.barh(row, high - low, left=low, height=0.62, facecolor=colour, alpha=0.25, edgecolor=colour, zorder=2)
    axes.plot([middle, middle], [row - 0.31, row + 0.31], color="black", linewidth=2, zorder=4)


def _value_axis(axes: Any, values: FloatArray, label: str) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_xlabel(label)
    if len(values) and values.min() > 0 and values.max() / values.min() >= LOG_FROM:
        axes.set_xscale("log")
        decades = np.log10(values.max() / values.min())
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 3.0)))
        plain_numbers(axes.xaxis, minor=False)
        axes.set_xlabel(f"{label}, logarithmic")


# Estimates. -----------------------------------------------------------------------------------------------------------


def draw_differences(comparisons: Sequence[Comparison], metric: str, shown: str = "", chosen: str = "") -> Figure:
    """Draw the paired differences from the baseline with their 95 % intervals, a panel a log.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Of `compare.compare`; those of ``metric`` are drawn.
    metric : str
        The metric.
    shown : str
        The unit in which seconds are shown (`sections.shown_units`); empty: chosen from the values.
    chosen : str
        Name of the policy that was chosen: it has a word and a colour of its own.

    Returns
    -------
    Figure
    """
    rows = [row for row in comparisons if row.metric == metric]
    logs = list(dict.fromkeys(row.log for row in rows))
    parts = [[row for row in rows if row.log == log] for log in logs]
    scale = scale_for(rows[0].unit, [end for row in rows for end in (row.difference, *_ends(row.interval))], shown)
    titles = [
        f"{log}, {counted(part[0].cases, 'week') if part[0].statistic == 'weeks' else _cases(part[0].cases)}"
        for log, part in zip(logs, parts, strict=True)
    ]
    figure, panels = panels_down(titles, [_height(len(part)) for part in parts])
    for axes, part in zip(panels, parts, strict=True):
        axes.axvline(0, color="black", linewidth=1)
        _estimates(axes, [(row.difference, row.interval, row.verdict) for row in part], scale)
        _bend(axes, part, scale)
        name_rows(axes, [row.policy for row in part], chosen)
        unit = f" ({scale.label})" if scale.label else ""
        bent = ", partly logarithmic" if axes.get_xscale() == "symlog" else ""
        axes.set_xlabel(f"{_what_differs(part[0])}{unit}{bent}")
    _verdict_legend(figure, [row.verdict for row in rows])
    what = _STATISTIC[rows[0].statistic] if any(row.cases > 1 for row in rows) else "the difference"
    key_below(figure, f"marker: {what}{_bars(row.interval for row in rows)}")
    return figure


def _what_differs(row: Comparison) -> str:
    baseline = shortened(row.baseline, 20)
    if row.statistic == "ratio":
        return f"{METRICS[row.metric].title}: change against {baseline}"
    if row.statistic == "weeks":
        return f"{METRICS[row.metric].title} minus {baseline}'s"
    return f"{METRICS[row.metric].title} minus {baseline}'s in the same case"


def _bars(intervals: Iterable[Interval | None]) -> str:
    return "; bar: 95 % interval" if any(intervals) else ""


def _ends(interval: Interval | None) -> tuple[float, ...]:
    return (interval.low, interval.high) if interval else ()


def _estimates(axes: Any, rows: Iterable[tuple[float, Interval | None, str]], scale: Scale) -> None:
    for row, (value, interval, verdict) in enumerate(rows):
        colour, marker, filled = _LOOK_OF.get(verdict, _UNKNOWN)
        if interval:
            ends = [end / scale.divisor for end in _ends(interval)]
            axes.plot(ends, [row, row], color=colour, linewidth=2.5, alpha=0.6, solid_capstyle="butt")
            axes.plot(ends, [row, row], "|", color=colour, markersize=9, markeredgewidth=1.6)
        face = colour if filled else "white"
        axes.plot(value / scale.divisor, row, marker, color=colour, markerfacecolor=face, markersize=6.5, zorder=3)


def _bend(axes: Any, rows: Sequence[Comparison], scale: Scale) -> None:
    """Make the axis linear around zero and logarithmic outside where one huge difference would hide the others."""
    reaches = [max(abs(end) for end in (row.difference, *_ends(row.interval))) / scale.divisor for row in rows]
    reaches = [reach for reach in reaches if np.isfinite(reach) and reach > 0]
    if reaches and max(reaches) / np.median(reaches) >= LOG_FROM:
        axes.set_xscale("symlog", linthresh=float(np.median(reaches)))
        plain_numbers(axes.xaxis)


def _verdict_legend(figure: Figure, verdicts: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    words = list(dict.fromkeys(verdicts))
    handles = []
    for word in words:
        colour, marker, filled = _LOOK_OF.get(word, _UNKNOWN)
        face = colour if filled else "white"
        handles.append(Line2D([], [], color=colour, marker=marker, markerfacecolor=face, linewidth=2.5))
    figure.legend(handles, words, loc="outside upper right", ncols=len(words), fontsize=9)


def draw_ranks(ranks: Mapping[str, Sequence[Rank]], metric: str, chosen: str = "") -> Figure:
    """Draw the mean rank of each policy with its 95 % interval, a panel a log, the best on top.

    Parameters
    ----------
    ranks : mapping of str to sequence of Rank
        Title of the panel (a log) -> `ranks.mean_ranks`; the first policy is the baseline.
    metric : str
        What was ranked.
    chosen : str
        Name of the policy that was chosen: it has a word and a colour of its own.

    Returns
    -------
    Figure
    """
    from matplotlib.ticker import MaxNLocator

    titles = [f"{log}, {_cases(rows[0].mean.cases)}" for log, rows in ranks.items()]
    figure, panels = panels_down(titles, [_height(len(rows)) for rows in ranks.values()])
    for axes, rows in zip(panels, ranks.values(), strict=True):
        ordered = sorted(rows, key=lambda row: (np.isnan(row.mean.value), row.mean.value))
        words = ["baseline" if row is rows[0] else "policy" for row in ordered]
        drawn = [(row.mean.value, row.mean.interval, word) for row, word in zip(ordered, words, strict=True)]
        _estimates(axes, drawn, Scale(1, ""))
        name_rows(axes, [row.policy for row in ordered], chosen)
        _numbers_right(axes, "mean rank", [f"{row.mean.value:.2f}" for row in ordered])
        axes.set_xlim(0.7, len(rows) + 0.3)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(f"mean rank by {METRICS[metric].title} (1 is the best of {len(rows)})")
    every = [row for rows in ranks.values() for row in rows]
    _verdict_legend(figure, ["baseline", "policy"])
    key_below(figure, f"marker: mean over the cases{_bars(row.mean.interval for row in every)}")
    return figure


# Cells. ---------------------------------------------------------------------------------------------------------------


def draw_wins(
    wins: Mapping[str, Int64Array], cases: Mapping[str, int], policies: Sequence[str], chosen: str = ""
) -> Figure:
    """Draw in how many cases each policy beats each other, a panel a log.

    Parameters
    ----------
    wins : mapping of str to int64 array (policies, policies)
        Log -> `ranks.wins`.
    cases : mapping of str to int
        Log -> in how many cases.
    policies : sequence of str
        Their names.
    chosen : str
        Name of the policy that was chosen: it has a word and a colour of its own.

    Returns
    -------
    Figure
    """
    titles = [f"{log}, {_cases(cases[log])}" for log in wins]
    places = range(len(policies))
    figure, panels = panels_down(titles, [_height(len(policies) + 3, 0.36)] * len(wins))
    for axes, log in zip(panels, wins, strict=True):
        # What a policy loses counts as much as what it wins, and a draw for neither.
        share = (wins[log] - wins[log].T) / cases[log]
        np.fill_diagonal(share, np.nan)
        texts = [[f"{count}" for count in row] for row in wins[log]]
        for index in places:
            texts[index][index] = "–"
        draw_cells(axes, share, texts)
        if len(policies) < 8:
            axes.set_aspect("equal", anchor="W")
        axes.set_yticks(places, [_named(name, chosen) for name in policies])
        axes.set_xticks(
            places, [shortened(name, 16) for name in policies], rotation=45, ha="right", rotation_mode="anchor"
        )
        _mark(axes.get_yticklabels(), policies, chosen)
        _mark(axes.get_xticklabels(), policies, chosen)
    key = "number: cases in which the row's policy is better than the column's; blue: it wins more often than it loses"
    key_below(figure, f"{key},\norange: it loses more often; draws count for neither")
    return figure


def draw_cells(
    axes: Any, strengths: FloatArray, texts: Sequence[Sequence[str]], bold: Sequence[Sequence[bool]] = ()
) -> None:
    """Draw a table of cells, from orange (-1) to blue (1), white where nothing is known, with a text in each."""
    from matplotlib.colors import LinearSegmentedColormap

    rows, columns = strengths.shape
    colours = LinearSegmentedColormap.from_list("cells", _CELLS)
    edges = (np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5)
    axes.pcolormesh(
        *edges, np.ma.masked_invalid(strengths), cmap=colours, vmin=-1, vmax=1, edgecolor="white", linewidth=1
    )
    axes.set_ylim(rows - 0.5, -0.5)
    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            weight = "bold" if bold and bold[row][column] else "normal"
            axes.text(column, row, text, ha="center", va="center", fontsize=8, fontweight=weight)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


# Curves. --------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One policy's curve.

    Parameters
    ----------
    name : str
        The policy.
    x, y : float64 array (n,)
        Its points.
    band : tuple of float64 array (n,), optional
        Lower and upper end of what is shaded around it.
    """

    name: str
    x: FloatArray
    y: FloatArray
    band: tuple[FloatArray, FloatArray] | None = None


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
    whole : bool
        Whether x is a whole number.
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
    whole: bool = False
    marks: Sequence[tuple[float, str]] = ()
    reference: Curve | None = None


def draw_panels(panels: Sequence[Panel], *, height: float = 2.9) -> Figure:
    """Draw panels below each other, with one legend for all; the baseline is orange.

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
    reference = panels[0].reference
    legend = 0.25 * -(-len(names) // 4) / len(panels)
    figure, grid = panels_down([panel.title for panel in panels], [height - _AXIS + legend] * len(panels))
    for number, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        _draw_curves(axes, panel)
        # Panels below each other that have the same axis need its label once.
        if number + 1 == len(panels) or panels[number + 1].x_label != panel.x_label:
            axes.set_xlabel(panel.x_label)
    _legend(figure, names, reference)
    return figure


def _draw_curves(axes: Any, panel: Panel) -> None:
    from matplotlib.ticker import MaxNLocator

    where = {"drawstyle": "steps-post"} if panel.steps else {}
    # The baseline is drawn last, above the others.
    for index, curve in reversed(list(enumerate(panel.curves))):
        look = line_look(index)
        axes.plot(curve.x, curve.y, marker="o" if len(curve.x) == 1 else None, **look, **where)
        if curve.band is not None:
            axes.fill_between(curve.x, *curve.band, color=look["color"], alpha=0.12, linewidth=0)
            for edge in curve.band:
                axes.plot(curve.x, edge, color=look["color"], linewidth=0.6, alpha=0.7, linestyle=(0, (4, 3)))
    if panel.reference is not None:
        axes.plot(panel.reference.x, panel.reference.y, **_REFERENCE, **where)
    axes.set_ylabel(panel.y_label)
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
    if panel.whole:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _legend(figure: Figure, names: Sequence[str], reference: Curve | None) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **line_look(index)) for index in range(len(names))]
    labels = [shortened(name, 24) for name in names]
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
