"""The recorded schedule: when each job of a log really started, as the log has it, measured like any other.

It is nobody's simulation. A log's scheduler knew priorities, limits and reservations that are not in the log, lost
processors for a while, and ran jobs that cleaning drops; so what separates a replay from the record is not the policy
alone (D. G. Feitelson, D. Tsafrir and D. Krakov, "Experience with using the Parallel Workloads Archive", Journal of
Parallel and Distributed Computing 74(10), 2014, doi:10.1016/j.jpdc.2014.06.013).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from policyfactory.core.errors import EvaluationError
from policyfactory.simulate.metrics import measure
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule
from policyfactory.workload.jobs import Workload

__all__ = ["RECORDED", "Overuse", "lacking_starts", "measure_recorded", "overuse_of", "recorded_schedule"]

RECORDED = "recorded"
_NOT_RECORDED = frozenset({"backfilled"})  # a log does not say who was overtaken


@dataclasses.dataclass(frozen=True, slots=True)
class Overuse:
    """How much more than the machine a schedule uses.

    Parameters
    ----------
    peak : int
        The most processors in use at once.
    over_s : float
        Seconds in which more processors are in use than the machine has.
    span_s : float
        Seconds from the first submission to the last end.
    """

    peak: int
    over_s: float
    span_s: float


def lacking_starts(workload: Workload, lead_in: int = 0) -> str:
    """Return what keeps the recorded schedule from being known, in words; empty if each job has its start.

    Parameters
    ----------
    workload : Workload
        The jobs.
    lead_in : int
        So many of them, the first ones, are not measured: they need no start.
    """
    lacking = workload.start < workload.submit
    lacking[:lead_in] = False
    if not lacking.any():
        return ""
    first = workload.job_id[int(np.argmax(lacking))]
    count = int(np.count_nonzero(lacking))
    return f"{count:,} of {len(workload):,} jobs {'has' if count == 1 else 'have'} no recorded start, first job {first}"


def recorded_schedule(workload: Workload, lead_in: int = 0) -> Schedule:
    """Return the recorded schedule.

    Parameters
    ----------
    workload : Workload
        Jobs with recorded starts (`Workload.start`).
    lead_in : int
        So many of them, the first ones, may lack a start: they are as if they had never run.

    Returns
    -------
    Schedule
        Of that workload; each job ends at its recorded start plus its run time. Whether a job was backfilled is not
        known, and said of none.

    Raises
    ------
    EvaluationError
        If a job has no recorded start.
    """
    lacking = lacking_starts(workload, lead_in)
    if lacking:
        raise EvaluationError(
            f"{workload.name}: {lacking}, so the recorded schedule is not known; leave it out (--no-recorded, "
            "recorded = false), or use windows of the log in which all jobs have one"
        )
    backfilled = np.zeros(len(workload), dtype=np.bool_)
    known = workload.start >= workload.submit
    start = np.where(known, workload.start, workload.submit)
    end = np.where(known, start + workload.run_time, start)
    return Schedule(start, end, backfilled, workload, policy_name=RECORDED, rules=Rules())


def measure_recorded(schedule: Schedule, metrics: Sequence[str]) -> list[float]:
    """Return the metrics of the recorded schedule, NaN where a record has no answer.

    Parameters
    ----------
    schedule : Schedule
        The recorded schedule of at least one job.
    metrics : sequence of str
        Names in `METRICS`.
    """
    values = measure(schedule, metrics)
    return [math.nan if name in _NOT_RECORDED else values[name] for name in metrics]


def overuse_of(schedule: Schedule) -> Overuse:
    """Return how much more than the machine a schedule of at least one job uses: a record can, where it is wrong."""
    jobs = schedule.workload
    processors = np.concatenate([jobs.processors, -jobs.processors])
    when = np.concatenate([schedule.start, schedule.end])
    order = np.argsort(when, kind="stable")
    when, busy = when[order], np.cumsum(processors[order])
    last = np.append(when[1:] > when[:-1], True)  # in use is what is left when all of an instant has happened
    when, busy = when[last], busy[last]
    over = np.diff(when)[busy[:-1] > jobs.machine]
    span = int(schedule.end.max() - jobs.submit.min())
    return Overuse(int(busy.max(initial=0)), float(over.sum()) / jobs.ticks, float(span) / jobs.ticks)
