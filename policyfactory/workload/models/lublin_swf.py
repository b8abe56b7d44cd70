"""Model jobs as a log of the Standard Workload Format, in the columns of the archive's program."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.artefact import atomic_write
from policyfactory.core.units import HOUR, format_duration
from policyfactory.core.version import __version__
from policyfactory.workload.models.lublin import offered_load
from policyfactory.workload.models.lublin_constants import JobClass
from policyfactory.workload.models.lublin_streams import Draw
from policyfactory.workload.models.tsafrir import Estimates
from policyfactory.workload.swf.header import parse_header, printable
from policyfactory.workload.swf.log import FIELDS, SwfLog

__all__ = ["format_log", "load_of", "log_of_draw", "write_log"]

# As the archive's program prints; a longer number moves the rest of its line.
_ROW = "%5d %7d %2d %7d %3d %2d %2d %2d {request} %2d %d %2d %2d %2d %d %2d %2d %2d\n"
_PIECE = 100_000  # lines
Column = NDArray[np.int64]
_LONGEST_RUN = 162_754  # floor(e^12) s


def log_of_draw(draw: Draw, how: tuple[str, ...], estimates: Estimates | None = None) -> SwfLog:
    """Return the jobs as a log whose header tells how they were made.

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
    return SwfLog(
        name=name,
        path=name,
        header=parse_header([f"; {line}" for line in _header(draw, how, columns)]),
        line=np.arange(1, jobs + 1),
        **columns,
    )


def _header(draw: Draw, how: tuple[str, ...], columns: dict[str, Any]) -> list[str]:
    model = draw.model
    jobs = len(draw.submit)
    estimated = bool((columns["requested_time"] >= 0).all())
    longest = int(columns["requested_time"].max()) if estimated else _LONGEST_RUN
    lines = [
        "Version: 2.2",
        f"Computer: none, jobs of a model for {model.processors} processors",
        "Information: https://www.cs.huji.ac.il/labs/parallel/workload/m_lublin99/",
        f"Conversion: policyfactory {__version__}, {printable(how[0], 400)}",
        f"MaxJobs: {jobs}",
        f"MaxRecords: {jobs}",
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
        f"Note: {_load(draw.submit, columns['run_time'], draw.processors, model.processors)}",
        *(f"Note: {printable(line, 400)}" for line in how[1:]),
        f"Note: field 15 (queue): {'0 interactive, 1 batch' if model.typed else '0, one type of jobs'}",
    ]
    return lines


def load_of(log: SwfLog, machine: int) -> str:
    """Return the offered load of a model log in words."""
    return _load(log.submit, log.run_time, log.allocated, machine)


def _load(submit: Column, run_time: Column, processors: Column, machine: int) -> str:
    load = offered_load(submit, run_time, processors, machine)
    span = format_duration(int(submit[-1] - submit[0]))
    return (
        f"offered load {load:.4f} (run time x processors, over {machine} processors x the {span} from first to last "
        "submission)"
    )


def _constants(job_class: JobClass) -> str:
    """Return all parameters of a class as ``name=value``."""
    values = [f"{name}={getattr(job_class, name):g}" for name in job_class.__slots__ if name != "name"]
    return f"{job_class.name}: {' '.join(values)}"


def format_log(log: SwfLog) -> bytes:
    """Return the text of a model log: header, then a line for each job as the archive's program prints it."""
    head = "".join(f"{line}\n" for line in log.header.lines)
    row_format = _ROW.format(request="%6d" if (log.requested_time >= 0).any() else "%2d")
    parts = [head.encode()]
    for first in range(0, len(log), _PIECE):
        # Python's numbers are many times larger than their digits: a piece at a time.
        cells = [column[first : first + _PIECE].tolist() for column in log.columns().values()]
        parts.append("".join(row_format % row for row in zip(*cells, strict=True)).encode())
    return b"".join(parts)


def write_log(log: SwfLog, path: Path) -> None:
    """Write a model log; a name that ends in ``.gz`` is packed (the same bytes every time).

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    text = format_log(log)
    atomic_write(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
