"""Model jobs as a log of the Standard Workload Format, as a recipe says, in the columns of the archive's program."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.text import HOUR, format_duration
from policyfactory.core.version import __version__
from policyfactory.workload.header import Header, parse_header, printable
from policyfactory.workload.jobs import load_in_words, offered_load
from policyfactory.workload.models.lublin import (
    Draw,
    JobClass,
    LublinModel,
    Stream,
    cut_run_times,
    draw_jobs,
    scale_to_load,
)
from policyfactory.workload.models.tsafrir import Estimates, UserBin, draw_estimates
from policyfactory.workload.swf.files import format_swf, write_swf
from policyfactory.workload.swf.log import FIELDS, SwfLog

# As the archive's program prints; a longer number moves the rest of its line.
_WIDTHS = (5, 7, 2, 7, 3, 2, 2, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2)
_REQUEST, _REQUEST_WIDTH = 8, 6
_LONGEST_RUN = 162_754  # floor(e^12) s


def log_of_draw(draw: Draw, how: tuple[str, ...], estimates: Estimates | None = None) -> SwfLog:
    """Return the jobs as a log whose header says how they were made.

    Unknown fields are -1; status is 1; field 15 (queue) is the type: 0 interactive or any, 1 batch. Requested
    processors (field 8) are -1 as in the archive's program, and so are requested times (field 9) without
    ``estimates``.

    Parameters
    ----------
    draw : Draw
        Jobs.
    how : tuple of str
        The command that made them, then further notes; one line each.
    estimates : Estimates, optional
        Requested times, and run times cut to the longest.
    """
    jobs = len(draw.submit)
    unknown = np.full(jobs, -1, dtype=np.int64)
    columns: dict[str, Any] = dict.fromkeys(FIELDS, unknown)
    columns |= {
        "job_id": np.arange(1, jobs + 1),
        "submit": draw.submit,
        "run_time": draw.run_time if estimates is None else estimates.run_time,
        "allocated": draw.processors,
        "requested_time": unknown if estimates is None else estimates.requested_time,
        "status": np.ones(jobs, dtype=np.int64),
        "queue": draw.kind,
    }
    name = f"lublin-{draw.model.processors}"
    log = SwfLog(name, name, Header(), line=np.arange(1, jobs + 1), **columns)
    header = parse_header([f"; {line}" for line in _header(log, draw.model, how)])
    return dataclasses.replace(log, header=header)


def _header(log: SwfLog, model: LublinModel, how: tuple[str, ...]) -> list[str]:
    longest = int(log.requested_time.max()) if (log.requested_time >= 0).all() else _LONGEST_RUN
    lines = [
        "Version: 2.2",
        f"Computer: none, jobs of a model for {model.processors} processors",
        "Information: https://www.cs.huji.ac.il/labs/parallel/workload/m_lublin99/",
        f"Conversion: policyfactory {__version__}, {printable(how[0], 400)}",
        f"MaxJobs: {len(log)}",
        f"MaxRecords: {len(log)}",
    ]
    if model.start_hour:
        # Only the hour of the day is meant.
        lines += [f"UnixStartTime: {model.start_hour * HOUR}", "TimeZoneString: UTC"]
    lines += [
        f"MaxNodes: {model.processors}",
        f"MaxProcs: {model.processors}",
        f"MaxRuntime: {longest}",
        f"Note: model: {model.describe()}",
        *(f"Note: constants: {_constants(job_class)}" for job_class in model.classes),
        f"Note: {load_of(log, model.processors)}",
        *(f"Note: {printable(line, 400)}" for line in how[1:]),
        f"Note: field 15 (queue): {'0 interactive, 1 batch' if model.typed else '0, one type of jobs'}",
    ]
    return lines


def load_of(log: SwfLog, machine: int) -> str:
    """Return the offered load of a model log in words."""
    load = offered_load(log.submit, log.run_time, log.allocated, machine)
    span = format_duration(int(log.submit[-1] - log.submit[0]))
    return (
        f"{load_in_words(load, 4)} (run time x processors, over {machine} processors x the {span} from first to last "
        "submission)"
    )


def _constants(job_class: JobClass) -> str:
    """Return all parameters of a class as ``name=value``."""
    values = [f"{name}={getattr(job_class, name):g}" for name in job_class.__slots__ if name != "name"]
    return f"{job_class.name}: {' '.join(values)}"


def _widths(log: SwfLog) -> tuple[int, ...]:
    requested = bool((log.requested_time >= 0).any())
    return tuple(_REQUEST_WIDTH if requested and column == _REQUEST else width for column, width in enumerate(_WIDTHS))


def format_log(log: SwfLog) -> bytes:
    """Return the text of a model log: header, then a line for each job as the archive's program prints it."""
    return format_swf(log, _widths(log))


def write_log(log: SwfLog, path: Path | None) -> None:
    """Write a model log as `format_log` has it, to stdout if ``path`` is None; ``.gz`` is packed.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    write_swf(log, path, _widths(log))


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """What determines a model log.

    Parameters
    ----------
    model : LublinModel
        Machine and classes of jobs.
    jobs : int
        How many.
    seed : int
        Seed of jobs and of requests.
    stream : {"numpy", "drand48"}
        Random numbers of both.
    load : float or None
        Offered load to meet, with the run times as they are after cutting.
    max_estimate : int or None
        Longest request (s) of the estimate model; without it there are no requests.
    user_bins : tuple of (int, int)
        Requests (s) and jobs that are known to use them.
    """

    model: LublinModel
    jobs: int
    seed: int
    stream: Stream = "numpy"
    load: float | None = None
    max_estimate: int | None = None
    user_bins: tuple[UserBin, ...] = ()


def make_log(recipe: Recipe, command: str) -> tuple[SwfLog, tuple[str, ...]]:
    """Return the log, and in words what was done.

    Parameters
    ----------
    recipe : Recipe
        What to make.
    command : str
        The command, for the header.

    Raises
    ------
    UsageError
        If a number is out of range.
    WorkloadError
        If the run times are too long for the requests.
    """
    draw = draw_jobs(recipe.model, recipe.jobs, seed=recipe.seed, stream=recipe.stream)
    how = f"{recipe.stream} stream, seed {recipe.seed}"
    notes = [f"random numbers: {how}"]
    if draw.oversized:
        what = "drawn again" if recipe.stream == "numpy" else "cut to it"
        notes.append(f"{draw.oversized} of {recipe.jobs} jobs were drawn larger than the machine and {what}")
    cut = 0
    if recipe.max_estimate is not None:
        # Before the load is met, which depends on the run times.
        draw, cut = cut_run_times(draw, recipe.max_estimate)
    if recipe.load is not None:
        draw = scale_to_load(draw, recipe.load)
        notes.append(f"gaps between arrivals (before the daily cycle) scaled to offered load {recipe.load:g}")
    estimates = None
    if recipe.max_estimate is not None:
        estimates = draw_estimates(
            draw.run_time, recipe.max_estimate, seed=recipe.seed, user_bins=recipe.user_bins, stream=recipe.stream
        )
        estimates = dataclasses.replace(estimates, cut=cut)
        notes.append(estimates.note)
    log = log_of_draw(draw, (command, *notes), estimates)
    return log, (recipe.model.describe(), f"{recipe.jobs:,} jobs; {load_of(log, recipe.model.processors)}", *notes)
