"""The tables of ``policyfactory evaluate``: medians with spread and rank, and paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policyfactory.cli.console import console, show_table
from policyfactory.evaluate.compare import Comparison
from policyfactory.evaluate.display import percent, scale_for
from policyfactory.evaluate.metrics import METRICS
from policyfactory.evaluate.summary import Summary

if TYPE_CHECKING:
    from policyfactory.evaluate.run import Evaluation

__all__ = ["show_differences", "show_medians"]

_BETWEEN = 3  # blanks that a table puts between two columns


def show_medians(evaluation: Evaluation, summaries: Sequence[Summary], trace: str) -> None:
    """Print a row a policy: median, middle half of the windows and mean rank in every metric."""
    windows = len(evaluation.rows(trace))
    groups = [
        _median_columns([row for row in summaries if row.trace == trace and row.metric == metric])
        for metric in evaluation.metrics
    ]
    if windows == 1:
        title = f"{trace}: the whole log is one window, so no spread; * best"
        caption = "rank: place among the policies, 1 is the best"
    else:
        title = f"{trace}: median (first to third quartile) over {windows} windows; * best median"
        caption = "rank: mean place in the windows among the policies, 1 is the best"
    _show_wide(title, list(evaluation.policies), groups, caption)


def _median_columns(rows: list[Summary]) -> list[list[str]]:
    scale = scale_for(rows[0].unit, [end for row in rows for end in (row.median, row.quartile_3 or 0.0)])
    values = [f"{rows[0].metric}{f' ({scale.label})' if scale.label else ''}"]
    places = ["rank"]
    for row in rows:
        spread = ""
        if row.quartile_1 is not None and row.quartile_3 is not None:
            spread = f" ({scale.text(row.quartile_1)} to {scale.text(row.quartile_3)})"
        values.append(f"{'* ' if row.best else ''}{scale.text(row.median)}{spread}")
        rank = "" if row.mean_rank is None else f"{row.mean_rank:.1f}" if row.windows > 1 else f"{row.rank}"
        places.append(rank)
    return [values, places] if METRICS[rows[0].metric].lower_is_better is not None else [values]


def show_differences(evaluation: Evaluation, comparisons: Sequence[Comparison], trace: str) -> None:
    """Print a row a policy but the baseline: the paired difference and its interval in every metric."""
    own = [row for row in comparisons if row.trace == trace]
    if not own:
        return
    groups = [_difference_columns([row for row in own if row.metric == metric]) for metric in evaluation.metrics]
    policies = [row.policy for row in own if row.metric == evaluation.metrics[0]]
    windows = len(evaluation.rows(trace))
    if any(row.interval for row in own):
        title = (
            f"{trace}: median difference from {evaluation.baseline}, window by window ({windows}), with 95 % interval"
        )
        caption = (
            "paired bootstrap over windows, 'no difference' where the interval covers zero; each interval has its 95 % "
            "for itself; percent: median of the windows' relative changes"
        )
    else:
        title = f"{trace}: difference from {evaluation.baseline}"
        caption = (
            "one window gives no interval" if windows == 1 else f"{windows} windows are too few for a 95 % interval"
        )
    _show_wide(title, policies, groups, caption)


def _difference_columns(rows: list[Comparison]) -> list[list[str]]:
    ends = [
        end
        for row in rows
        for end in (row.difference, *((row.interval.low, row.interval.high) if row.interval else ()))
    ]
    scale = scale_for(METRICS[rows[0].metric].unit, ends)
    cells = [f"{rows[0].metric}{f' ({scale.label})' if scale.label else ''}"]
    for row in rows:
        text = scale.text(row.difference, signed=True)
        if row.interval is not None:
            text += f" ({scale.text(row.interval.low, signed=True)} to {scale.text(row.interval.high, signed=True)})"
        if row.relative is not None and row.verdict != "no difference":
            text += f" {percent(row.relative)}"
        cells.append(f"{text} {row.verdict}" if row.interval is not None else text)
    return [cells]


def _show_wide(title: str, names: list[str], groups: list[list[list[str]]], caption: str) -> None:
    """Print groups of columns (each begins with its heading) in as many tables as the width asks for."""
    first = max(len("policy"), *map(len, names)) + _BETWEEN
    room = console().width - first - 1
    parts: list[list[list[str]]] = [[]]
    used = 0
    for group in groups:
        width = sum(max(map(len, column)) + _BETWEEN for column in group)
        if parts[-1] and used + width > room:
            parts.append([])
            used = 0
        parts[-1].extend(group)
        used += width
    for number, part in enumerate(parts):
        headings = ["policy", *(column[0] for column in part)]
        rows = [[name, *(column[at] for column in part)] for at, name in enumerate(names, 1)]
        last = number == len(parts) - 1
        show_table(title if number == 0 else f"{title} (continued)", headings, rows, caption=caption if last else None)
