"""The table of a description: one row for each number, one column for each log."""

from __future__ import annotations

import math

from policyfactory.core.units import DAY
from policyfactory.workload.describe import Description

__all__ = ["description_rows"]

_STATUS = {"-1": "unknown", "0": "failed", "1": "completed", "5": "cancelled"}


def _number(value: float | None, form: str = ",.0f") -> str:
    return "-" if value is None or math.isnan(value) else format(value, form)


def _percent(value: float) -> str:
    return _number(100 * value, ".2f")


def description_rows(descriptions: list[Description]) -> list[list[str]]:
    """Return the cells of the table: the name of the number, then one cell for each log."""
    columns = [_column(description) for description in descriptions]
    rows = [[label, *(column[label] for column in columns)] for label in columns[0]]
    for status, meaning in _STATUS.items():
        rows.append([f"status {status} ({meaning})", *(_number(log.statuses.get(status, 0)) for log in descriptions)])
    others = [sum(count for status, count in log.statuses.items() if status not in _STATUS) for log in descriptions]
    rows.append(["status not of the format", *map(_number, others)])
    # A status that no log has is not worth a line.
    return [row for row in rows if not row[0].startswith("status") or set(row[1:]) != {"0"}]


def _column(log: Description) -> dict[str, str]:
    """Return the numbers of one log as texts."""
    return {
        "jobs": _number(log.jobs),
        "MaxProcs": _number(log.machine),
        "MaxNodes": _number(log.nodes),
        "span, days": _number(log.span / DAY, ".1f"),
        "utilisation, %": _percent(log.utilisation),
        "users": _number(log.users or None),
        "mean size, processors": _number(log.mean_processors, ",.1f"),
        "largest size": _number(log.largest_job),
        "gcd of sizes": _number(log.size_gcd),
        "serial jobs, %": _number(100 * log.serial_share, ".1f"),
        "powers of two, %": _number(100 * log.power_of_two_share, ".1f"),
        "mean run time, s": _number(log.mean_run_time),
        "median run time, s": _number(log.median_run_time),
        "mean request, s": _number(log.mean_requested_time),
        "distinct requests": _number(log.distinct_requests),
        "mean run / request": _number(log.mean_accuracy, ".3f"),
        "median run / request": _number(log.median_accuracy, ".3f"),
        "request / run ≥ 100, %": _percent(log.premature_share),
        "mean wait, s": _number(log.mean_wait),
        "request missing, %": _percent(log.request_missing_share),
        "requested q missing, %": _percent(log.requested_processors_missing_share),
        "allocated q missing, %": _percent(log.allocated_missing_share),
        "requested ≠ allocated, %": _percent(log.size_differs_share),
        "run > request, %": _percent(log.overrun_share),
        "run 0, %": _number(100 * log.zero_run_share, ".3f"),
        "run missing, %": _percent(log.missing_run_share),
        "out of order, %": _percent(log.out_of_order_share),
        "peak processors": _number(log.peak_processors),
    }
