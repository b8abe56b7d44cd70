"""Which accounting log a file is: the readers there are, and how a file's first lines show its format."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from policyfactory.core.errors import TraceFormatError, UsageError
from policyfactory.workload.accounting.gridengine import is_record
from policyfactory.workload.accounting.record import Record, RecordBlock, Remark
from policyfactory.workload.accounting.sacct_columns import RECOMMENDED, delimiter_of
from policyfactory.workload.accounting.times import Clock
from policyfactory.workload.header import printable

__all__ = ["FORMATS", "HEAD", "Format", "LogReader", "detect", "find_format"]

# A reader is ``read(text, path, clock)``: the text of one file as it takes it, the file's name for messages, and what
# reads its times. It gives a Record for each run of a job, or a RecordBlock of many, and a Remark for
# whatever it leaves out or mends. It raises TraceFormatError only if the file as a whole cannot be used; a single bad
# line is a Remark.
LogReader = Callable[[Iterable[Any], str, Clock], Iterator[Record | RecordBlock | Remark]]

# Bytes at the beginning of a file that are looked at.
HEAD = 1 << 16

_SCONTROL = re.compile(r"JobId=\d{1,10} (?:Array\w+=\S* |Het\w+=\S* )*(?:Job)?Name=")
# What is no accounting that can be read, by its first line: what it is, and what to give in its place.
_OTHERS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        _SCONTROL,
        "what scontrol show job prints, which has the jobs that wait or run and those that ended minutes ago",
        f"give the accounting: {RECOMMENDED}",
    ),
    (
        re.compile(r"\s*JOBID\s+PARTITION\s", re.IGNORECASE),
        "the queue (squeue), which has no jobs that ended",
        f"give the accounting: {RECOMMENDED}",
    ),
    (
        re.compile(r"\s*JobID(?:Raw)?\s+\w", re.IGNORECASE),
        "the output of sacct without -P, which cuts cells off",
        f"print it again: {RECOMMENDED}",
    ),
    (
        re.compile(r'"JOB_[A-Z_]+" "[\d.]+" \d'),
        "an accounting log of LSF (lsb.acct), a format that is not read",
        "make a table of its jobs (CSV) and give it with a mapping of its columns, --mapping FILE.toml",
    ),
    (
        re.compile(r"={20,}$"),
        "what qacct -j prints",
        "give the file that it reads, $SGE_ROOT/$SGE_CELL/common/accounting",
    ),
)
_PBS_LINE = re.compile(r"\d{1,2}/\d{1,2}/\d{4} \d{2}:\d{2}:\d{2};[A-Za-z];[^;]*;")


@dataclasses.dataclass(frozen=True, slots=True)
class Format:
    """One format of accounting logs.

    Parameters
    ----------
    name : str
        What ``--format`` calls it.
    description : str
        What it is.
    module : str
        The module whose function ``read`` reads it; loaded only then.
    recognises : callable
        Whether a file is one, by its first lines that are not blank.
    takes : {"lines", "blocks", "chunks"}
        The method of `Source` whose text its reader takes.
    """

    name: str
    description: str
    module: str
    recognises: Callable[[list[str]], bool]
    takes: Literal["lines", "blocks", "chunks"] = "lines"

    def reader(self) -> LogReader:
        """Return the function that reads it."""
        module = importlib.import_module(f"policyfactory.workload.accounting.{self.module}")
        return cast("LogReader", module.read)


def _is_json(lines: list[str]) -> bool:
    return lines[0].lstrip().startswith("{")


def _is_sacct(lines: list[str]) -> bool:
    return delimiter_of(lines[0]) is not None


def _is_filetxt(lines: list[str]) -> bool:
    return lines[0].startswith("JobId=") and not _SCONTROL.match(lines[0])


def _is_gridengine(lines: list[str]) -> bool:
    return any(is_record(line) for line in lines[:100])


def _is_pbs(lines: list[str]) -> bool:
    return any(_PBS_LINE.match(line) for line in lines[:100])


FORMATS = {
    known.name: known
    for known in (
        Format("sacct", "Slurm: output of sacct -P, with its header line", "sacct", _is_sacct, "blocks"),
        Format("sacct-json", "Slurm: output of sacct --json", "sacct_json", _is_json, "chunks"),
        Format("filetxt", "Slurm: file of the plugin jobcomp/filetxt", "filetxt", _is_filetxt),
        Format("pbs", "OpenPBS, PBS Professional, TORQUE: accounting log with its E records", "pbs", _is_pbs),
        Format("gridengine", "Grid Engine: the file accounting(5) of the qmaster", "gridengine", _is_gridengine),
    )
}


def find_format(name: str) -> Format:
    """Return the format called ``name``.

    Raises
    ------
    UsageError
        If there is none.
    """
    if name not in FORMATS:
        raise UsageError(f"--format {printable(name, 40)!r}: no such format; known are {', '.join(FORMATS)}")
    return FORMATS[name]


def detect(head: str, path: str) -> Format:
    """Return the format of a file that begins with ``head``.

    Raises
    ------
    TraceFormatError
        If it is none that is known; the first line is shown.
    """
    lines = [line for line in head.removeprefix("\ufeff").splitlines() if line.strip()]
    if not lines:
        raise TraceFormatError(f"{path}: is empty; an accounting log has a line for each job")
    for known in FORMATS.values():
        if known.recognises(lines):
            return known
    if lines[0].lstrip().startswith(";") or re.match(r"\s*\d+(\s+-?\d+){17}\s*$", lines[0]):
        raise TraceFormatError(f"{path}: is a log in the Standard Workload Format already; use it as it is")
    for pattern, what, cure in _OTHERS:
        if pattern.match(lines[0]):
            raise TraceFormatError(f"{path}:1: this looks like {what}; {cure}")
    raise TraceFormatError(
        f"{path}:1: {printable(lines[0], 80)!r} is not recognised as an accounting log (known are "
        f"{', '.join(FORMATS)}); sacct needs -P and its header line (no -n), or name the format with --format"
    )
