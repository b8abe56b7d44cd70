"""Pictures of an evaluation: boxes of the cases, differences from the baseline, ranks, wins; a panel a log.

Panels stand below each other, so that a picture is as wide as a phone in portrait can show; what is drawn has a shape
or a number beside its colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import COLOURS, new_figure, plain_numbers
from policyfactory.core.text import counted, number_text, shortened
from policyfactory.report.sections import Scale, scale_for
from policyfactory.simulate.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.statistics.compare import Comparison, Rank
    from policyfactory.statistics.evaluation import Evaluation
    from policyfactory.statistics.intervals import Interval

__all__ = ["draw_boxes", "draw_differences", "draw_ranks", "draw_wins"]


_BASELINE, _POLICY, _NEUTRAL = COLOURS[1], COLOURS[0], "#6e6e6e"
_WIDTH = 7.2  # inches
_LOG_FROM = 20.0  # a range of values wider than this factor is shown on a logarithmic scale
_FEW = 5  # with fewer cases a box would say more than is known: the cases themselves are drawn
_MANY = 200  # with more cases a box's own are a cloud: only those beyond the whiskers are drawn
_LOOK_OF = {
    "better": (COLOURS[2], "o", True),
    "worse": (COLOURS[1], "s", True),
    "differs": (COLOURS[0], "^", True),
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


def _panels(rows: Sequence[int], titles: Sequence[str], *, row_height: float = 0.3) -> tuple[Figure, list[Any]]:
    """Return a figure with a titled panel a log, each high enough for its number of names."""
    heights = [max(0.9, row_height * (count + 0.4)) for count in rows]
    figure = new_figure(_WIDTH, sum(heights) + 0.85 * len(rows) + 0.5)
    grid = figure.subplots(len(rows), 1, squeeze=False, height_ratios=heights)
    panels = list(grid.ravel())
    if layout := figure.get_layout_engine():
        layout.set(h_pad=0.09)  # type: ignore[call-arg]
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(shortened(title, 80), loc="left", fontsize=10, fontweight="bold")
    return figure, panels


def _names_down(axes: Any, names: Sequence[str], chosen: str) -> None:
    axes.set_yticks(range(1, len(names) + 1), [_named(name, chosen) for name in names])
    _mark(axes.get_yticklabels(), names, chosen)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) + 0.7, 0.3)
    axes.grid(visible=False, axis="y")


def _named(name: str, chosen: str) -> str:
    return f"{shortened(name)} (chosen)" if name == chosen else shortened(name)


def _mark(labels: Iterable[Any], names: Iterable[str], chosen: str) -> None:
    for label, name in zip(labels, names, strict=True):
        if name == chosen:
            label.set(color=_POLICY, fontweight="bold")


def _cases(count: int) -> str:
    return "one case" if count == 1 else f"{count} cases"


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
        The unit in which seconds are shown (`display.shown_units`); empty: chosen from the values.
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
    figure, panels = _panels([len(evaluation.policies)] * len(matrices), titles)
    scale = scale_for(METRICS[metric].unit, np.concatenate(matrices).ravel().tolist(), shown)
    for axes, matrix, cases in zip(panels, matrices, whole, strict=True):
        columns = [column[np.isfinite(column)] / scale.divisor for column in matrix.T]
        _boxes(axes, columns, evaluation.policies, chosen)
        _names_down(axes, evaluation.policies, chosen)
        _value_axis(
            axes, np.concatenate(columns), f"{METRICS[metric].title}{f' ({scale.label})' if scale.label else ''}"
        )
        # Of weeks, the metric itself, which is over all jobs.
        own = [column[np.isfinite(column)] / scale.divisor for column in cases.T]
        medians = [number_text(float(np.median(column))) if len(column) else "-" for column in own]
        _numbers_right(axes, "median" if len(cases) > 1 else "value", medians)
    most = max(map(len, matrices))
    unit = "week" if all(weeks is not None for weeks in weekly) else "case"
    dots = f"dot: a {unit}" if most <= _MANY else f"dot: a {unit} beyond the whiskers"
    boxes = f"box: the middle half of the {unit}s, line: median, " if most >= _FEW else ""
    _key_below(figure, f"{boxes}{dots}; orange: {shortened(evaluation.baseline)}, the baseline")
    return figure


def _numbers_right(axes: Any, heading: str, texts: Sequence[str]) -> None:
    style = {"transform": axes.get_yaxis_transform(), "fontsize": 9, "ha": "right"}
    longest = max(map(len, [heading, *texts]))
    place = 1.02 + 0.0125 * longest
    for row, text in enumerate(texts, 1):
        axes.text(place, row, text, va="center", **style)
    axes.text(place, 0.2, heading, va="bottom", color=_NEUTRAL, **style)


def _key_below(figure: Figure, text: str) -> None:
    figure.supxlabel(f"{text[0].upper()}{text[1:]}.", fontsize=8.5, x=0.01, ha="left", color="#404040")


def _boxes(axes: Any, columns: Sequence[FloatArray], names: Sequence[str], chosen: str) -> None:
    # Where one was chosen, it alone has the colour of a policy.
    others = _NEUTRAL if chosen else _POLICY
    colours = [_BASELINE, *(_POLICY if name == chosen else others for name in names[1:])]
    for place, (column, colour) in enumerate(zip(columns, colours, strict=True), 1):
        drawn = column
        if len(column) >= _FEW:
            low, high = _box(axes, place, column, colour)
            if len(column) > _MANY:
                drawn = column[(column < low) | (column > high)]
        few = len(column) < _FEW
        # Spread by a fixed pattern, so that equal data give equal pictures.
        spread = np.zeros(len(drawn)) if few else 0.2 * np.sin(2.4 * np.arange(len(drawn)))
        axes.scatter(drawn, place + spread, s=36 if few else 9, color=colour, alpha=0.75, linewidths=0, zorder=3)


def _box(axes: Any, place: int, column: FloatArray, colour: str) -> tuple[float, float]:
    low, median, high = np.quantile(column, [0.25, 0.5, 0.75])
    reach = 1.5 * (high - low)
    ends = column[(column >= low - reach) & (column <= high + reach)]
    axes.plot([ends.min(), ends.max()], [place, place], color=colour, linewidth=1.2)
    axes.barh(place, high - low, left=low, height=0.62, facecolor="white", zorder=2)
    axes.barh(place, high - low, left=low, height=0.62, facecolor=colour, alpha=0.25, edgecolor=colour, zorder=2)
    axes.plot([median, median], [place - 0.31, place + 0.31], color="black", linewidth=2, zorder=4)
    return float(ends.min()), float(ends.max())


def _value_axis(axes: Any, values: FloatArray, label: str) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_xlabel(label)
    if len(values) and values.min() > 0 and values.max() / values.min() >= _LOG_FROM:
        axes.set_xscale("log")
        decades = np.log10(values.max() / values.min())
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2.5 else (1.0, 3.0)))
        plain_numbers(axes.xaxis, minor=False)
        axes.set_xlabel(f"{label}, logarithmic")


def draw_differences(comparisons: Sequence[Comparison], metric: str, shown: str = "", chosen: str = "") -> Figure:
    """Draw the paired differences from the baseline with their 95 % intervals, a panel a log.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Of `compare.compare`; those of ``metric`` are drawn.
    metric : str
        The metric.
    shown : str
        The unit in which seconds are shown (`display.shown_units`); empty: chosen from the values.
    chosen : str
        Name of the policy that was chosen: it has a word and a colour of its own.

    Returns
    -------
    Figure
    """
    rows = [row for row in comparisons if row.metric == metric]
    logs = list(dict.fromkeys(row.log for row in rows))
    own = [[row for row in rows if row.log == log] for log in logs]
    scale = scale_for(rows[0].unit, [end for row in rows for end in (row.difference, *_ends(row.interval))], shown)
    figure, panels = _panels(
        [len(part) for part in own],
        [
            f"{log}, {counted(part[0].cases, 'week') if part[0].statistic == 'weeks' else _cases(part[0].cases)}"
            for log, part in zip(logs, own, strict=True)
        ],
    )
    for axes, part in zip(panels, own, strict=True):
        axes.axvline(0, color="black", linewidth=1)
        _estimates(axes, [(row.difference, row.interval, row.verdict) for row in part], scale)
        _bend(axes, part, scale)
        _names_down(axes, [row.policy for row in part], chosen)
        unit = f" ({scale.label})" if scale.label else ""
        bent = ", partly logarithmic" if axes.get_xscale() == "symlog" else ""
        axes.set_xlabel(f"{_what_differs(part[0])}{unit}{bent}")
    _verdict_legend(figure, [row.verdict for row in rows])
    what = _STATISTIC[rows[0].statistic] if any(row.cases > 1 for row in rows) else "the difference"
    _key_below(figure, f"marker: {what}{_bars(row.interval for row in rows)}")
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
    for place, (value, interval, verdict) in enumerate(rows, 1):
        colour, marker, filled = _LOOK_OF.get(verdict, _UNKNOWN)
        if interval:
            ends = [end / scale.divisor for end in _ends(interval)]
            axes.plot(ends, [place, place], color=colour, linewidth=2.5, alpha=0.6, solid_capstyle="butt")
            axes.plot(ends, [place, place], "|", color=colour, markersize=9, markeredgewidth=1.6)
        face = colour if filled else "white"
        axes.plot(value / scale.divisor, place, marker, color=colour, markerfacecolor=face, markersize=6.5, zorder=3)


def _bend(axes: Any, rows: Sequence[Comparison], scale: Scale) -> None:
    """Make the axis linear around zero and logarithmic outside where one huge difference would hide the others."""
    reaches = [max(abs(end) for end in (row.difference, *_ends(row.interval))) / scale.divisor for row in rows]
    reaches = [reach for reach in reaches if np.isfinite(reach) and reach > 0]
    if reaches and max(reaches) / np.median(reaches) >= _LOG_FROM:
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
    figure, panels = _panels([len(rows) for rows in ranks.values()], titles)
    for axes, rows in zip(panels, ranks.values(), strict=True):
        ordered = sorted(rows, key=lambda row: (np.isnan(row.mean.value), row.mean.value))
        words = ["baseline" if row is rows[0] else "policy" for row in ordered]
        drawn = [(row.mean.value, row.mean.interval, word) for row, word in zip(ordered, words, strict=True)]
        _estimates(axes, drawn, Scale(1, ""))
        _names_down(axes, [row.policy for row in ordered], chosen)
        _numbers_right(axes, "mean rank", [f"{row.mean.value:.2f}" for row in ordered])
        axes.set_xlim(0.7, len(rows) + 0.3)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(f"mean rank by {METRICS[metric].title} (1 is the best of {len(rows)})")
    every = [row for rows in ranks.values() for row in rows]
    _verdict_legend(figure, ["baseline", "policy"])
    _key_below(figure, f"marker: mean over the cases{_bars(row.mean.interval for row in every)}")
    return figure


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
    figure, panels = _panels([len(policies) + 3] * len(wins), titles, row_height=0.36)
    for axes, log in zip(panels, wins, strict=True):
        _win_cells(axes, wins[log], cases[log])
        if len(policies) < 8:
            axes.set_aspect("equal", anchor="W")
        places = range(len(policies))
        axes.set_yticks(places, [_named(name, chosen) for name in policies])
        axes.set_xticks(
            places, [shortened(name, 16) for name in policies], rotation=45, ha="right", rotation_mode="anchor"
        )
        _mark(axes.get_yticklabels(), policies, chosen)
        _mark(axes.get_xticklabels(), policies, chosen)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
    key = "number: cases in which the row's policy is better than the column's; blue: it wins more often than it loses"
    _key_below(figure, f"{key},\norange: it loses more often; draws count for neither")
    return figure


def _win_cells(axes: Any, counts: Int64Array, cases: int) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    count = len(counts)
    # What a policy loses counts as much as what it wins, and a draw for neither.
    share = (counts - counts.T) / cases
    np.fill_diagonal(share, np.nan)
    colours = LinearSegmentedColormap.from_list("wins", ["#E8863C", "#f3f3f3", "#4A96C9"])
    axes.pcolormesh(np.arange(count + 1) - 0.5, np.arange(count + 1) - 0.5, np.ma.masked_invalid(share),
                    cmap=colours, vmin=-1, vmax=1, edgecolor="white", linewidth=1)  # fmt: skip
    axes.set_ylim(count - 0.5, -0.5)
    for row in range(count):
        for column in range(count):
            text = "–" if row == column else f"{counts[row, column]}"
            axes.text(column, row, text, ha="center", va="center", fontsize=8)
