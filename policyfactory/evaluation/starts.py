"""When each job ran, as a file: our own columns, those of Batsim's jobs.csv, which evalys reads, or a trace.

Batsim names the processors of a job, our simulator only counts them: numbers are assigned to the finished schedule (see
`policyfactory.engine.metrics`), so they are one valid choice, not a measurement.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import OutputError
from policyfactory.core.files import atomic_write
from policyfactory.core.options import Int64Array
from policyfactory.core.text import csv_text, distinct
from policyfactory.simulation.cases import Case, CaseFacts
from policyfactory.simulation.schedule import Schedule, processors_of, rectangles_of
from policyfactory.workload.windows import in_use

if TYPE_CHECKING:
    import pandas as pd

Layout = Literal["csv", "batsim", "trace"]


def _seconds(ticks: NDArray[np.int64], per_second: int) -> NDArray[np.int64] | NDArray[np.float64]:
    return ticks if per_second == 1 else ticks / per_second


def starts_frame(schedule: Schedule) -> pd.DataFrame:
    """Return one row a job, in the workload's order; times in seconds of the window's clock.

    Parameters
    ----------
    schedule : Schedule
        The schedule.

    Returns
    -------
    DataFrame
        job_id, submit, start, end, requested_time (s), processors, backfilled (0 or 1).
    """
    columns = ["job_id", "submit", "start", "end", "requested_time", "processors", "backfilled"]
    return schedule.frame()[columns].astype({"backfilled": np.int64})


def allocated_resources(schedule: Schedule) -> list[str]:
    """Return the processors of each job as an interval set, for example ``0-3 7``.

    Parameters
    ----------
    schedule : Schedule
        The schedule.

    Raises
    ------
    EvaluationError
        If more processors are used at some instant than the machine has.
    """
    first, stop, low, high = processors_of(schedule.workload, schedule.start, schedule.end)
    texts = [f"{a}-{b}" if a != b else str(a) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    return [" ".join(texts[a:b]) for a, b in zip(first.tolist(), stop.tolist(), strict=True)]


def batsim_frame(schedule: Schedule, workload_name: str) -> pd.DataFrame:
    """Return the schedule in the columns of Batsim's jobs.csv (version 4), which evalys reads.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    workload_name : str
        What the column ``workload_name`` says.

    Returns
    -------
    DataFrame
        One row a job; times in seconds; ``stretch`` is turnaround / execution time, empty for a job of 0 s; a
        job that was killed at its request is ``COMPLETED_WALLTIME_REACHED``; no energy is modelled (-1).
    """
    import pandas as pd

    jobs = schedule.workload
    execution = schedule.end - schedule.start
    turnaround = schedule.end - jobs.submit
    killed = execution < jobs.run_time
    stretch = np.full(len(jobs), np.nan)
    np.divide(turnaround, execution, out=stretch, where=execution > 0)
    columns = {
        "job_id": jobs.job_id,
        "workload_name": csv_text(workload_name),
        "profile": _seconds(jobs.run_time, jobs.ticks),
        "submission_time": _seconds(jobs.submit, jobs.ticks),
        "requested_number_of_resources": jobs.processors,
        "requested_time": _seconds(jobs.requested_time, jobs.ticks),
        "success": (~killed).astype(np.int64),
        "final_state": np.where(killed, "COMPLETED_WALLTIME_REACHED", "COMPLETED_SUCCESSFULLY"),
        "starting_time": _seconds(schedule.start, jobs.ticks),
        "execution_time": _seconds(execution, jobs.ticks),
        "finish_time": _seconds(schedule.end, jobs.ticks),
        "waiting_time": _seconds(schedule.start - jobs.submit, jobs.ticks),
        "turnaround_time": _seconds(turnaround, jobs.ticks),
        "stretch": stretch,
        "allocated_resources": allocated_resources(schedule),
        "consumed_energy": -1,
        "metadata": "",
    }
    return pd.DataFrame(columns)


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return a safe and distinct file name for each name (names come from logs and model files).

    Parameters
    ----------
    names : iterable of str
        Distinct names.
    """
    chosen = list(names)
    stems = (re.sub(r"[^A-Za-z0-9._+-]", "_", name).lstrip(".")[:100] or "_" for name in chosen)
    return dict(zip(chosen, distinct(stems), strict=True))


@dataclasses.dataclass(frozen=True, slots=True)
class StartsWriter:
    """Writes ``DIRECTORY/LOG/window-003/POLICY.csv``, one file a simulation (a `ScheduleSink` of `run.evaluate`).

    A trace ends in ``.json``.

    Parameters
    ----------
    directory : Path
        Where the folders of the logs go.
    layout : {"csv", "batsim", "trace"}
        Our own columns, Batsim's, or a trace for Perfetto.
    logs, policies : dict of str to str
        File name of each log and policy (`file_names`).
    """

    directory: Path
    layout: Layout
    logs: dict[str, str]
    policies: dict[str, str]

    def path(self, case: Case | CaseFacts, policy: str) -> Path:
        """Return the file of a case and a policy."""
        suffix = "json" if self.layout == "trace" else "csv"
        folder = self.directory / self.logs[case.log] / f"{case.kind}-{case.number:03d}"
        return folder / f"{self.policies[policy]}.{suffix}"

    def content(self, case: Case, schedule: Schedule) -> bytes:
        """Return the file of one schedule."""
        if self.layout == "trace":
            return trace_json(schedule, case.log).encode()
        frame = starts_frame(schedule) if self.layout == "csv" else batsim_frame(schedule, case.log)
        return frame.to_csv(index=False, lineterminator="\n").encode()

    def write(self, case: Case, policy: str, content: bytes) -> None:
        """Write the file of a case and a policy.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        path = self.path(case, policy)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{path.parent}: cannot be created: {error.strerror}; choose another --output") from None
        atomic_write(path, content)

    def has(self, case: Case, policy: str) -> bool:
        """Say whether the file of a case and a policy is there."""
        return self.path(case, policy).is_file()


# A schedule as a trace that Perfetto ----------------------------------------------------------------------------------

# A schedule as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing show: JSON, the Trace Event Format.


_MACHINE, _QUEUE = 1, 2  # "processes" of the trace


def trace_json(schedule: Schedule, log: str) -> str:
    """Return the schedule as a trace: what runs on which processors, how many wait, how many processors are in use.

    A job is an event on the line of the first of its neighbouring processors, one for each such block; which processors
    it has is one valid choice (see `policyfactory.engine.metrics`). A job of no time is no event. Time 0 is
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
        ("jobs in the queue", (jobs.submit, schedule.start, ones)),
        ("processors in use", (schedule.start, schedule.end, jobs.processors)),
    )
    for name, held in counters:
        instants, count = in_use(*held)
        for time, value in zip(micro(instants), count.tolist(), strict=True):
            events.append({"ph": "C", "name": name, "pid": _QUEUE, "ts": time, "args": {"count": value}})
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, separators=(",", ":")) + "\n"


def _ordered_by(schedule: Schedule) -> str:
    slurm = schedule.rules.backfill == "slurm"
    return f"{schedule.policy_name} under Slurm's rules" if slurm else schedule.policy_name


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}
