"""A schedule as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing show: JSON, the Trace Event Format."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.simulate.schedule import Schedule, rectangles_of

__all__ = ["trace_json"]

_MACHINE, _QUEUE = 1, 2  # "processes" of the trace


def trace_json(schedule: Schedule, log: str) -> str:
    """Return the schedule as a trace: what runs on which processors, how many wait, how many processors are in use.

    A job is an event on the line of the first of its neighbouring processors, one for each such block; which processors
    it has is one valid choice (see `policyfactory.engine.allocation`). A job of no time is no event. Time 0 is
    the first submission.

    Parameters
    ----------
    schedule : Schedule
        The schedule, of at least one job.
    log : str
        Name of the log.

    Raises
    ------
    EvaluationError
        If more processors are used at some instant than the machine has.
    """
    jobs = schedule.workload
    origin = int(jobs.submit[0])

    def micro(ticks: Int64Array) -> list[int]:
        return [(tick - origin) * 1_000_000 // jobs.ticks for tick in ticks.tolist()]

    drawn = rectangles_of(jobs, schedule.start, schedule.end, (origin, int(schedule.end.max()) + 1))
    begin, end, wait = micro(drawn.begin), micro(drawn.end), (schedule.start - jobs.submit) / jobs.ticks
    about = [
        {
            "job": int(jobs.job_id[row]),
            "user": int(jobs.user[row]),
            "processors": int(jobs.processors[row]),
            "requested time (s)": float(jobs.requested_time[row]) / jobs.ticks,
            "wait (s)": float(wait[row]),
            "backfilled": bool(schedule.backfilled[row]),
        }
        for row in range(len(jobs))
    ]
    events: list[dict[str, Any]] = [
        _named("process_name", _MACHINE, 0, f"{log}, {_ordered_by(schedule)}: {jobs.machine} processors"),
        _named("process_name", _QUEUE, 0, "queue and use"),
        *(_named("thread_name", _MACHINE, low, f"processor {low}") for low in np.unique(drawn.low).tolist()),
    ]
    blocks = zip(drawn.row.tolist(), begin, end, drawn.low.tolist(), drawn.high.tolist(), strict=True)
    for row, first, last, low, high in blocks:
        events.append(
            {
                "ph": "X",
                "name": f"job {about[row]['job']}",
                "cat": "job",
                "pid": _MACHINE,
                "tid": low,
                "ts": first,
                "dur": last - first,
                "args": {**about[row], "block": f"{low}-{high}"},
            }
        )
    ones = np.ones(len(jobs), dtype=np.int64)
    counters = (
        ("jobs in the queue", (jobs.submit, ones), (schedule.start, ones)),
        ("processors in use", (schedule.start, jobs.processors), (schedule.end, jobs.processors)),
    )
    for name, come, gone in counters:
        at, count = _course(come, gone)
        for time, value in zip(micro(at), count.tolist(), strict=True):
            events.append({"ph": "C", "name": name, "pid": _QUEUE, "ts": time, "args": {"count": value}})
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, separators=(",", ":")) + "\n"


def _ordered_by(schedule: Schedule) -> str:
    slurm = schedule.rules.backfill == "slurm"
    return f"{schedule.policy_name} under Slurm's rules" if slurm else schedule.policy_name


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _course(come: tuple[Int64Array, Int64Array], gone: tuple[Int64Array, Int64Array]) -> tuple[Int64Array, Int64Array]:
    """Return the times at which a number changes, and what it is from then on."""
    times = np.concatenate([come[0], gone[0]])
    at, code = np.unique(times, return_inverse=True)
    steps = np.zeros(len(at), dtype=np.int64)
    np.add.at(steps, code, np.concatenate([come[1], -gone[1]]))
    return at, np.cumsum(steps)
