"""The lines that an export with ``--log-only`` writes: what each job's number would have been.

They stand among other lines, in slurmctld.log or in the log of a script. The file is a stranger's: lines are bounded,
numbers are checked, and what cannot be read is counted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from policyfactory.core.errors import InputError, TraceFormatError
from policyfactory.core.inputs import note_input, open_input
from policyfactory.workload.header import printable
from policyfactory.workload.swf.files import GZIP, PART, unpacked

# Where slurmctld's log puts it: behind a time or syslog's head, and words of Slurm's own. Elsewhere on a line the mark
# stands in what a user wrote.
_MARK = re.compile(
    rb"(?:\[[^\[\]]{1,80}\] |(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.,Z+-]{8,24}) [^\s:]{1,255} "
    rb"slurmctld(?:\[\d{1,10}\])?: )?(?:slurmctld: )?(?:sched: )?(?:(?:job_submit/)?lua: )?policyfactory-shadow: "
)
_LONGEST_LINE = 4096
_MOST_LINES = 20_000_000
_LARGEST_LOG = 64 << 30  # bytes; a pipe may have no end
_LARGEST = float(1 << 40)
_FIELD = re.compile(r"\b(\w+)=(\S+)", re.ASCII)  # from the start of a word: else the square of its length
_JOB = re.compile(r"\d{1,15}(?:_\d{1,10})?", re.ASCII)
_NUMBERS = ("at", "submit", "time", "processors")


@dataclasses.dataclass(frozen=True, slots=True)
class Logged:
    """One line.

    Parameters
    ----------
    instant : int
        Unix time at which the number was computed.
    job : str
        The job's number as the scheduler writes it (``12``, ``12_3``); empty where it had none yet.
    user : str
        Number of its user; empty if unknown.
    submit, time, processors : int
        Submit time (Unix s), requested time (s) and processors that the number was computed from.
    number : float
        By what the scheduler would have sorted, HIGHER first.
    present : float
        Its priority then; NaN if unknown.
    cost_us : float
        What the computation took, microseconds; NaN if it was not measured.
    """

    instant: int
    job: str
    user: str
    submit: int
    time: int
    processors: int
    number: float
    present: float
    cost_us: float


@dataclasses.dataclass(frozen=True, slots=True)
class ShadowLog:
    """What was logged.

    Parameters
    ----------
    path : str
        The file.
    policies : tuple of str
        Names of the policies in it.
    lines : tuple of Logged
        In the order of the file.
    unread : int
        Lines that begin as ours do and cannot be read.
    sha256 : str
        Of the file, as it was read.
    """

    path: str
    policies: tuple[str, ...]
    lines: tuple[Logged, ...]
    unread: int
    sha256: str = ""


def read_shadow(path: Path | str) -> ShadowLog:
    """Read the lines of an export with ``--log-only``; all others are passed over.

    Parameters
    ----------
    path : Path or str
        slurmctld.log or a script's log, also packed with gzip.

    Raises
    ------
    InputError
        If the file cannot be read, is damaged, has more than 64 GiB, or unpacks to more than 50 times its size.
    TraceFormatError
        If no line in it is of such an export, or there are more than 20 million.
    """
    path = Path(path)
    name = printable(str(path), 300)
    lines: list[Logged] = []
    policies: dict[str, None] = {}
    unread, digest = 0, hashlib.sha256()
    for text in _ours(path, name, digest):
        fields = dict(_FIELD.findall(text))
        logged = _line(fields)
        if logged is None:
            unread += 1
            continue
        lines.append(logged)
        if len(lines) > _MOST_LINES:
            raise TraceFormatError(f"{name}: more than {_MOST_LINES:,} lines of scores; give a shorter time of the log")
        if (policy := fields.get("policy", "-")) != "-":
            policies[printable(policy, 60)] = None
    if not lines:
        odd = f" ({unread:,} begin as one and cannot be read)" if unread else ""
        raise TraceFormatError(
            f"{name}: no line of a log-only export in it{odd}; expected lines with 'policyfactory-shadow:', as "
            "export --log-only makes Slurm write (SlurmctldDebug=info or more)"
        )
    return ShadowLog(name, tuple(list(policies)[:10]), tuple(lines), unread, digest.hexdigest())


def _ours(path: Path, name: str, digest: Any) -> Iterator[str]:
    """Give what stands behind the mark in each line that has it."""
    try:
        note_input(path)
        with open_input(path) as file:
            blocks = _blocks(file, name, digest)
            first = next(blocks, b"")
            blocks = itertools.chain([first], blocks)
            begins, rest = True, b""
            for block in unpacked(blocks, name) if first.startswith(GZIP) else blocks:
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    yield from _behind_mark(line, begins=begins)
                    begins = True
                # Of a line that is longer only the beginning is looked at.
                if len(rest) > _LONGEST_LINE:
                    yield from _behind_mark(rest, begins=begins)
                    begins, rest = False, b""
            yield from _behind_mark(rest, begins=begins)
    except OSError as error:
        problem = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: cannot be read: {problem}; check the path and its permissions") from None


def _blocks(file: IO[bytes], name: str, digest: Any) -> Iterator[bytes]:
    room = _LARGEST_LOG
    while block := file.read(PART):
        room -= len(block)
        if room < 0:
            raise InputError(f"{name}: has more than {_LARGEST_LOG:,} bytes; give a shorter time of the log")
        digest.update(block)
        yield block


def _behind_mark(line: bytes, *, begins: bool) -> Iterator[str]:
    match = _MARK.match(line) if begins else None
    if match:
        yield line[match.end() : _LONGEST_LINE].decode("ascii", "replace")


def _line(fields: dict[str, str]) -> Logged | None:
    """Return a line; None if a part is missing or is no number that can be."""
    try:
        instant, submit, time, processors = (float(fields[name]) for name in _NUMBERS)
        number = float(fields["number"])
        present, cost = (math.nan if fields[name] == "-" else float(fields[name]) for name in ("present", "us"))
        job, user = fields["job"], fields["user"]
    except (KeyError, ValueError):
        return None
    # A job without a limit that is known has none to compare, but its number counts.
    whole = all(0 <= value <= _LARGEST for value in (instant, submit, processors)) and -1 <= time <= _LARGEST
    if not whole or math.isnan(number) or (job != "-" and not _JOB.fullmatch(job)):
        return None
    if not (math.isnan(cost) or 0 <= cost <= 1e12):
        return None
    if not 0 < present < 4_294_967_294:  # held, or not computed yet
        present = math.nan
    return Logged(
        instant=int(instant),
        job="" if job == "-" else job,
        user="" if user == "-" else user[:40],
        submit=int(submit),
        time=int(time),
        processors=int(processors),
        number=number,
        present=present,
        cost_us=cost,
    )
