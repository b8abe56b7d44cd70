"""What a log looks like: the numbers in which one machine's load differs from another's.

Utilisation is the sum of run time x allocated processors over the jobs that have both, divided by the machine's
processors x (last end - first start). Premature jobs are those whose request is at least 100 times their run
time. Lines that are parts of a job (status 2, 3, 4) are joined first; nothing else is dropped: each number says of
itself which jobs it counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.units import DAY
from policyfactory.workload.header import printable
from policyfactory.workload.machine import known_machine, size_of
from policyfactory.workload.parts import join_parts
from policyfactory.workload.swf.log import SwfLog

__all__ = ["Description", "Occupancy", "describe", "description_rows", "joined_log", "occupancy"]

PREMATURE = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Occupancy:
    """How full the machine was, by the recorded starts.

    Parameters
    ----------
    peak : int
        Most processors in use at once.
    above : float
        Share of the time (first start to last end) with more processors in use than the machine has, 0 to 1.
    utilisation : float
        Used processor seconds / processor seconds there were, 0 to 1; NaN without a machine.
    """

    peak: int
    above: float
    utilisation: float


class Shown(NamedTuple):
    """How the table shows a number: its label, its format, in how many of its units, and what stands for unknown."""

    label: str
    form: str = ",.0f"
    unit: int = 1
    unknown: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """The numbers of one log, in the order of the table; NaN where the log does not say.

    Shares are 0 to 1, times are seconds.
    """

    name: str
    sha256: str
    jobs: Annotated[int, Shown("jobs")]
    machine: Annotated[int | None, Shown("MaxProcs")]
    nodes: Annotated[int | None, Shown("MaxNodes")]
    unix_start: int | None
    time_zone: str | None
    span: Annotated[float, Shown("span, days", ",.1f", DAY)]
    utilisation: Annotated[float, Shown("utilisation (first start to last end), %", ".2%")]
    users: Annotated[int, Shown("users", unknown=0)]
    mean_processors: Annotated[float, Shown("mean size, processors", ",.1f")]
    largest_job: Annotated[int, Shown("largest size")]
    size_gcd: Annotated[int, Shown("gcd of sizes")]
    serial_share: Annotated[float, Shown("serial, % of known sizes", ".1%")]
    power_of_two_share: Annotated[float, Shown("powers of two, % of known sizes", ".1%")]
    mean_run_time: Annotated[float, Shown("mean run time, s")]
    median_run_time: Annotated[float, Shown("median run time, s")]
    mean_requested_time: Annotated[float, Shown("mean request, s")]
    distinct_requests: Annotated[int, Shown("distinct requests")]
    mean_accuracy: Annotated[float, Shown("mean run / request", ",.3f")]
    median_accuracy: Annotated[float, Shown("median run / request", ",.3f")]
    premature_share: Annotated[float, Shown("request / run ≥ 100, % of both known", ".2%")]
    mean_wait: Annotated[float, Shown("mean wait of all jobs with one, s")]
    request_missing_share: Annotated[float, Shown("request missing, % of jobs", ".2%")]
    requested_processors_missing_share: Annotated[float, Shown("requested q missing, % of jobs", ".2%")]
    allocated_missing_share: Annotated[float, Shown("allocated q missing, % of jobs", ".2%")]
    size_differs_share: Annotated[float, Shown("requested ≠ allocated, % of both known", ".2%")]
    overrun_share: Annotated[float, Shown("run > request, % of both known", ".2%")]
    zero_run_share: Annotated[float, Shown("run 0, % of jobs", ".3%")]
    missing_run_share: Annotated[float, Shown("run missing, % of jobs", ".2%")]
    out_of_order_share: Annotated[float, Shown("out of order, % of lines", ".2%")]
    tie_share: float
    above_capacity_share: float
    peak_processors: Annotated[int, Shown("peak processors")]
    statuses: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON values: None for what is not known."""
        values = dataclasses.asdict(self)
        return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in values.items()}


def joined_log(log: SwfLog) -> SwfLog:
    """Return the log with one line for each job: parts (status 2, 3, 4) joined or left out."""
    joined = join_parts(log)
    away = joined.summed_up | joined.merged_away
    return joined.log.select(~away) if away.any() else joined.log


def share(mask: NDArray[np.bool_], base: NDArray[np.bool_] | None = None) -> float:
    """Return which part of ``base`` (default: all) is in ``mask``; NaN for an empty base."""
    total = len(mask) if base is None else int(np.count_nonzero(base))
    hits = np.count_nonzero(mask if base is None else mask & base)
    return float(hits) / total if total else math.nan


def mean(values: NDArray[Any]) -> float:
    """Return the mean; NaN of nothing."""
    return float(values.mean()) if len(values) else math.nan


def median(values: NDArray[Any]) -> float:
    """Return the median; NaN of nothing."""
    return float(np.median(values)) if len(values) else math.nan


def occupancy(log: SwfLog, machine: int | None) -> Occupancy:
    """Return how full the machine was.

    Parameters
    ----------
    log : SwfLog
        Jobs with run time and allocated processors count for the utilisation; for the peak also those whose
        requested processors alone are known. An unknown wait counts as 0.
    machine : int or None
        Processors of the machine.
    """
    sizes = size_of(log)
    ran = (log.run_time > 0) & (sizes > 0) & (log.submit >= 0)
    if not ran.any():
        return Occupancy(0, math.nan, math.nan)
    start = (log.submit + np.maximum(log.wait, 0))[ran]
    run_time, size = log.run_time[ran], sizes[ran]
    end = start + run_time
    times = np.concatenate([end, start])
    # Stable: at one instant processors are given back before they are taken.
    order = np.argsort(times, kind="stable")
    times = times[order]
    used = np.cumsum(np.concatenate([-size, size])[order])
    peak = int(used.max())
    if machine is None:
        return Occupancy(peak, math.nan, math.nan)
    over = float(np.diff(times)[used[:-1] > machine].sum()) / float(times[-1] - times[0])
    known = log.allocated[ran] > 0
    if not known.any():
        return Occupancy(peak, over, math.nan)
    area = float((run_time[known].astype(np.float64) * size[known]).sum())
    return Occupancy(peak, over, area / (machine * float(end[known].max() - start[known].min())))


def describe(log: SwfLog, machine: int | None = None, *, force: bool = False) -> Description:
    """Return the numbers of a log.

    Parameters
    ----------
    log : SwfLog
        As it was read.
    machine : int, optional
        Processors of the machine (default: the header's; where it has none, utilisation is NaN).
    force : bool
        Use ``machine`` also where the header has another number.

    Raises
    ------
    UsageError
        If ``machine`` contradicts the header and is not forced.
    """
    log = joined_log(log)
    machine, _ = known_machine(log, machine, force=force) or (None, "")
    use = occupancy(log, machine)
    submitted = log.submit[log.submit >= 0]
    size = size_of(log)
    sizes = size[size > 0]
    two_sizes = (log.allocated > 0) & (log.requested > 0)
    ran, asked = log.run_time > 0, log.requested_time > 0
    two_times = ran & asked
    run_time = log.run_time[log.run_time >= 0]
    accuracy = log.run_time[two_times] / log.requested_time[two_times]
    statuses = zip(*np.unique(log.status, return_counts=True), strict=True)
    return Description(
        name=printable(log.name, 80),
        sha256=log.sha256,
        jobs=len(log),
        machine=machine,
        nodes=log.header.nodes,
        unix_start=log.header.unix_start,
        time_zone=log.header.time_zone,
        span=float(submitted.max() - submitted.min()) if len(submitted) else math.nan,
        utilisation=use.utilisation,
        users=len(np.unique(log.user[log.user >= 0])),
        mean_processors=mean(sizes),
        largest_job=int(sizes.max(initial=0)),
        size_gcd=int(np.gcd.reduce(sizes)),
        serial_share=share(sizes == 1),
        power_of_two_share=share((sizes & (sizes - 1)) == 0),
        mean_run_time=mean(run_time),
        median_run_time=median(run_time),
        mean_requested_time=mean(log.requested_time[asked]),
        distinct_requests=len(np.unique(log.requested_time[asked])),
        mean_accuracy=mean(accuracy),
        median_accuracy=median(accuracy),
        premature_share=share(log.requested_time >= PREMATURE * log.run_time, two_times),
        mean_wait=mean(log.wait[log.wait >= 0]),
        request_missing_share=share(~asked),
        requested_processors_missing_share=share(log.requested <= 0),
        allocated_missing_share=share(log.allocated <= 0),
        size_differs_share=share(log.allocated != log.requested, two_sizes),
        overrun_share=share(log.run_time > log.requested_time, (log.run_time >= 0) & asked),
        zero_run_share=share(log.run_time == 0),
        missing_run_share=share(log.run_time < 0),
        out_of_order_share=share(np.diff(log.submit) < 0),
        tie_share=share(np.diff(log.submit) == 0),
        above_capacity_share=use.above,
        peak_processors=use.peak,
        statuses={str(status): int(count) for status, count in statuses},
    )


# The table of a description. ------------------------------------------------------------------------------------------

_STATUS = {
    "-1": "status -1 (unknown)",
    "0": "status 0 (failed)",
    "1": "status 1 (completed)",
    "5": "status 5 (cancelled)",
}
_OTHER_STATUS = "status not of the format"


def description_rows(descriptions: list[Description]) -> list[list[str]]:
    """Return the cells of the table: the name of the number, then one cell for each log."""
    hints = get_type_hints(Description, include_extras=True)
    shown = {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}
    rows = [[how.label, *(_cell(getattr(log, name), how) for log in descriptions)] for name, how in shown.items()]
    statuses = [Counter[str]() for _ in descriptions]
    for log, counted in zip(descriptions, statuses, strict=True):
        for status, jobs in log.statuses.items():
            counted[_STATUS.get(status, _OTHER_STATUS)] += jobs
    # A status that no log has is not worth a line.
    seen = [label for label in (*_STATUS.values(), _OTHER_STATUS) if any(counted[label] for counted in statuses)]
    return rows + [[label, *(f"{counted[label]:,}" for counted in statuses)] for label in seen]


def _cell(value: float | None, how: Shown) -> str:
    if value is None or math.isnan(value) or value == how.unknown:
        return "-"
    return format(value / how.unit, how.form).removesuffix("%")
