"""The recorded schedule beside the policies: its row of values, and how far each policy is from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from policyfactory.core.text import enumerated, percent_change
from policyfactory.report.numbers import scale_for
from policyfactory.report.sections import Cell, Column, Section, Table
from policyfactory.report.tables import OF_PAIRS, difference_column
from policyfactory.simulate.schedule import RECORDED

if TYPE_CHECKING:
    from policyfactory.evaluate.experiment import Outcome
    from policyfactory.statistics.compare import Comparison

__all__ = ["RECORDED_NOTE", "recorded_section"]

RECORDED_NOTE = f"{RECORDED}: the same jobs as the log recorded them; it is no contender."
_HOW = (
    "Each policy minus the record of the same jobs. From each other the policies differ by their orders alone, since "
    "they are simulated alike; from the record they differ also by all that the simulation does not know."
)


def recorded_section(outcome: Outcome, units: Mapping[str, str]) -> Section:
    """Return the differences of the policies from the recorded schedule, which is shown.

    Parameters
    ----------
    outcome : Outcome
        The outcome.
    units : mapping of str to str
        The unit in which each metric is shown.
    """
    evaluation, pairs = outcome.evaluation, outcome.recorded_comparisons
    own = {(row.log, row.policy, row.metric): row for row in pairs}
    log = {Column("log"): lambda log, _: log} if len(evaluation.logs) > 1 else {}
    columns = {**log, Column("policy"): lambda _, policy: policy} | {
        difference_column(metric, pairs[0], units): lambda *at, metric=metric: _cell(own[*at, metric])
        for metric in evaluation.metrics
    }
    title = f"minus {RECORDED}: {OF_PAIRS[pairs[0].statistic].replace('the baseline', 'the record')}"
    table = Table.of("differences", title, columns, itertools.product(evaluation.logs, evaluation.policies))
    metric = evaluation.metrics[0]
    deciding = [[own[log, policy, metric] for policy in evaluation.policies] for log in evaluation.logs]
    words = [_within(rows, units[metric]) for rows in deciding]
    return Section("recorded", "Differences from the recorded schedule", (_HOW, *words), (table,))


def _cell(row: Comparison) -> Cell:
    # Better and worse are for policies: the record was made under other rules.
    differs = row.verdict in {"better", "worse", "differs"}
    direction = "lower" if row.difference < 0 else "higher"
    mark = (direction if differs else row.verdict) if row.interval else ""
    return Cell(row.difference if row.cases else None, row.interval, mark)


def _within(rows: Sequence[Comparison], shown: str) -> str:
    """Return how near the baseline's replay is to the record of a log, and which policies are further away."""
    base = rows[0]
    if not base.cases:
        return f"{base.log}: a record has no {base.metric}."
    bound = _bound(base)
    if bound == 0:
        return f"{base.log}: by {base.metric} the replay under {base.policy} is equal to the record."
    ends = (base.interval.low, base.interval.high) if base.interval else ()
    scale = scale_for(base.unit, [base.difference, *ends], shown if base.unit == "s" else "")
    distance = f"difference {scale.text(base.difference, signed=True)}{scale.suffix}"
    distance += f", {percent_change(base.relative)}" if base.relative is not None else ""
    if ends:
        low, high = (scale.text(end, signed=True) for end in ends)
        distance += f"; 95 % interval {low} to {high}{scale.suffix}"
    further = [row.policy for row in rows[1:] if row.cases and abs(row.difference) > bound]
    larger = f" Further from the record: {enumerated(further)}." if further else ""
    return (
        f"{base.log}: by {base.metric} the replay under {base.policy} is within {scale.text(bound)}{scale.suffix} of "
        f"the record ({distance}). So much of a difference from the record may be what the simulation leaves out, and "
        f"not the policy.{larger}"
    )


def _bound(row: Comparison) -> float:
    """Return how far a policy may be from the record: the far end of the interval, or the difference without one."""
    ends = (row.interval.low, row.interval.high) if row.interval else (row.difference,)
    return max((abs(end) for end in ends if math.isfinite(end)), default=0.0)
