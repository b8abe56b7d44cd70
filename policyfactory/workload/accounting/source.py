"""The text of an accounting log: a file, packed or not, or stdin; read once, a block at a time."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import hashlib
import importlib
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, cast

from policyfactory.core.errors import InputError, TraceFormatError, UsageError
from policyfactory.core.inputs import note_input, open_input
from policyfactory.workload.accounting.gridengine import is_record
from policyfactory.workload.accounting.record import Record, RecordBlock, Remark
from policyfactory.workload.accounting.sacct_columns import RECOMMENDED, delimiter_of
from policyfactory.workload.accounting.times import Clock
from policyfactory.workload.header import printable
from policyfactory.workload.swf.files import GZIP, OTHER_PACKINGS, PART, unpacked

# A line of an accounting log has some hundreds of characters; one with a submit line in it some thousands.
_LONGEST_LINE = 1 << 20
# Characters of a block, at least, but for the last.
_BLOCK = 1 << 20
# 16 GiB of text are more than 50 million lines; what unpacks to more is no log, or an attack.
_LARGEST_TEXT = 16 << 30
_OTHER_FORMS = OTHER_PACKINGS | {b"\xff\xfe": "as UTF-16 text", b"\xfe\xff": "as UTF-16 text"}


class Source:
    """One input: its beginning can be looked at, then its text is read once.

    Bytes that are no UTF-8 are kept as surrogates, so that names stay apart; `printable` escapes them. The digest is
    that of the file as it lies on the disk; it is known once the text has been read.

    Parameters
    ----------
    path : Path or str
        The file; ``-`` is stdin.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be read, is damaged, cut off or packed in another way.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = None if str(path) == "-" else Path(path)
        self.name = "stdin" if self._path is None else str(path)
        self._digest = hashlib.sha256()
        self._text = codecs.iterdecode(self._unpacked(), "utf-8", "surrogateescape")
        first = ""
        while len(first) < HEAD and (chunk := next(self._text, "")):
            first += chunk
        self._first = first.removeprefix("\ufeff")

    @property
    def sha256(self) -> str:
        """Digest of what has been read, in hexadecimal."""
        return self._digest.hexdigest()

    @property
    def head(self) -> str:
        """The first 64 KiB of text."""
        return self._first[:HEAD]

    def chunks(self) -> Iterator[str]:
        """Give the text in parts of any length, line ends kept; can be asked for once."""
        yield self._first
        yield from self._text

    def blocks(self) -> Iterator[list[str]]:
        """Give the lines without their ends (LF, CR LF), some thousand at a time; can be asked for once.

        Raises
        ------
        TraceFormatError
            If a line has more than 2**20 characters.
        """
        count, size = 0, 0
        waiting: list[str] = []
        for chunk in self.chunks():
            waiting.append(chunk)
            size += len(chunk)
            if size < _BLOCK:
                continue
            lines = self._split("".join(waiting), count)
            waiting, size = [lines.pop()], 0
            count += len(lines)
            yield lines
        *lines, last = self._split("".join(waiting), count)
        yield [*lines, last.removesuffix("\r")] if last else lines

    def lines(self) -> Iterator[str]:
        """Give the lines one by one; otherwise as `blocks`."""
        return itertools.chain.from_iterable(self.blocks())

    def _split(self, text: str, before: int) -> list[str]:
        """Return the lines of a text; the last is what stands behind the last line end."""
        lines = text.split("\n")
        if max(map(len, lines)) > _LONGEST_LINE:
            number = before + 1 + next(index for index, line in enumerate(lines) if len(line) > _LONGEST_LINE)
            raise TraceFormatError(
                f"{self.name}:{number}: a line of more than {_LONGEST_LINE:,} characters; is this an accounting log?"
            )
        if "\r" in text:
            *lines, last = lines
            return [*(line.removesuffix("\r") for line in lines), last]
        return lines

    def _blocks(self) -> Iterator[bytes]:
        try:
            if self._path is not None:
                note_input(self._path)
            with contextlib.nullcontext(sys.stdin.buffer) if self._path is None else open_input(self._path) as file:
                while block := file.read(PART):
                    self._digest.update(block)
                    yield block
        except FileNotFoundError:
            raise InputError(f"{self.name}: no such file; check the name and the current folder {Path.cwd()}") from None
        except IsADirectoryError:
            raise InputError(f"{self.name}: is a directory; name a file in it") from None
        except OSError as error:
            raise InputError(
                f"{self.name}: cannot be read: {error.strerror}; check its permissions and the disk"
            ) from None

    def _unpacked(self) -> Iterator[bytes]:
        blocks = self._blocks()
        first = next(blocks, b"")
        for magic, packing in _OTHER_FORMS.items():
            if first.startswith(magic):
                raise InputError(f"{self.name}: is packed or written {packing}; only plain text and gzip are read")
        blocks = itertools.chain([first], blocks)
        room = _LARGEST_TEXT
        for part in unpacked(blocks, self.name) if first.startswith(GZIP) else blocks:
            room -= len(part)
            if room < 0:
                raise InputError(f"{self.name}: has more than {_LARGEST_TEXT:,} bytes of text; split the log")
            yield part


# Which accounting log a file is ---------------------------------------------------------------------------------------

# The readers there are, and how a file's first lines show its format.


# A reader is ``read(text, path, clock)``: the text of one file as it takes it, the file's name for messages, and what
# reads its times. It gives a Record for each run of a job, or a RecordBlock of many, and a Remark for
# whatever it leaves out or mends. It raises TraceFormatError only if the file as a whole cannot be used; a single bad
# line is a Remark.
LogReader = Callable[[Iterable[Any], str, Clock], Iterator[Record | RecordBlock | Remark]]

# Bytes at the beginning of a file that are looked at.
HEAD = 1 << 16

_SCONTROL = re.compile(r"JobId=\d{1,10} (?:Array\w+=\S* |Het\w+=\S* )*(?:Job)?Name=")
_FILETXT_LINE = re.compile(rf"(?!{_SCONTROL.pattern})JobId=")
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
    recognises : callable
        Whether a line is of such a file.
    takes : {"lines", "blocks", "chunks"}
        The method of `Source` whose text its reader takes.
    looks : int
        At how many of the first lines that are not blank, one of which has to be recognised.
    """

    name: str
    description: str
    recognises: Callable[[str], object]
    takes: Literal["lines", "blocks", "chunks"] = "lines"
    looks: int = 1

    def reader(self) -> LogReader:
        """Return the function ``read`` of the module of its name, which is loaded only now."""
        module = importlib.import_module(f"policyfactory.workload.accounting.{self.name.replace('-', '_')}")
        return cast("LogReader", module.read)


FORMATS = {
    known.name: known
    for known in (
        Format("sacct", "Slurm: output of sacct -P, with its header line", delimiter_of, "blocks"),
        Format("sacct-json", "Slurm: output of sacct --json", lambda line: line.lstrip().startswith("{"), "chunks"),
        Format("filetxt", "Slurm: file of the plugin jobcomp/filetxt", _FILETXT_LINE.match),
        Format(
            "pbs", "OpenPBS, PBS Professional, TORQUE: accounting log with its E records", _PBS_LINE.match, looks=100
        ),
        Format("gridengine", "Grid Engine: the file accounting(5) of the qmaster", is_record, looks=100),
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
        if any(map(known.recognises, lines[: known.looks])):
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
