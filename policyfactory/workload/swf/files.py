"""Reading and writing the Standard Workload Format, version 2.2 (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).

Lines that begin with ``;`` are comments, those before the first job the header. A job is a line of 18 numbers
separated by blanks; further fields are read where the header names them (`policyfactory.workload.swf.log`). The whole
text is scanned by one compiled kernel, so that 312,826 jobs take a fraction of a second.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import InputError, TraceFormatError, UsageError
from policyfactory.core.files import atomic_write
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.core.jit import interruptible
from policyfactory.workload.header import Header, parse_header, printable
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.log import (
    EXTRA_FIELDS,
    FIELD_NAMES,
    FIELDS,
    WHOLE_FIELDS,
    WIDEST,
    SwfLog,
    log_of_workload,
    named_fields,
)

# As of a file that is not packed: some ten million jobs. What unpacks to more is no log, or an attack.
_LARGEST_TEXT = 1 << 30
_LARGEST_HEADER = 1 << 20
_SHORTEST_JOB = 36  # bytes of a line: 18 digits, 17 blanks, a line feed
OTHER_PACKINGS = {
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x1f\x9d": "compress",
}
# How the accounting of schedulers begins; the readers of `workload import` know more of it.
_ACCOUNTING = {
    "the output of sacct --json": re.compile(rb"\{"),
    "a file of Slurm's plugin jobcomp/filetxt": re.compile(rb"JobId=\d"),
    "the output of sacct": re.compile(
        rb"JobID(?:Raw)?\b|(?:\w+[|\x1f])+(?:JobID|State|Submit)|[^|;]*(?:\|[^|]*){5}", re.IGNORECASE
    ),
    "an accounting log of PBS": re.compile(rb"\d{1,2}/\d{1,2}/\d{4} \d{2}:\d{2}:\d{2};[A-Za-z];"),
}
_MODEL_FILE = re.compile(rb'"kind"\s*:\s*"policyfactory-(?:model|network)"')
_LARGEST_MODEL = 8 << 20
# Widths like those of the archive's own files; a longer number moves the rest of its line.
WIDTHS = (5, 8, 6, 6, 4, 6, 5, 4, 6, 5, 2, 3, 3, 3, 2, 2, 2, 2)
# From so many lines on a compiled kernel prints them: it takes as long to load as Python to print fewer. Python prints
# as many at a time.
_MANY = 100_000


def read_swf(path: Path | str) -> SwfLog:
    """Read a log, plain or packed with gzip (recognised by content, not by name).

    Parameters
    ----------
    path : Path or str
        The file.

    Raises
    ------
    InputError
        If there is no such file, it is a directory, is damaged, cut off, packed in another way or too large.
    TraceFormatError
        If a line is not a job of 18 numbers (file, line and field are named), or there is no job at all.
    UsageError
        If it is no path.
    """
    if not isinstance(path, Path | str):
        raise UsageError(f"{ascii(path)[:60]} is no workload; a Workload or the path of a log is expected")
    path = Path(path)
    raw = read_bytes(path)
    for magic, packing in OTHER_PACKINGS.items():
        if raw.startswith(magic):
            raise InputError(f"{path}: is packed with {packing}, only gzip is read here; unpack it first")
    digest = sha256_bytes(raw)
    if raw.startswith(GZIP):
        return parse_swf(_unpack(raw, path), path, sha256=digest)
    return parse_swf(raw, path, sha256=digest)


def _unpack(raw: bytes, path: Path) -> bytearray:
    """Return what a file packed with gzip holds, in one growing buffer: parts that are joined would be held twice."""
    text = bytearray()
    room = _LARGEST_TEXT
    blocks = (raw[begin : begin + PART] for begin in range(0, len(raw), PART))
    for part in unpacked(blocks, str(path)):
        room -= len(part)
        if room < 0:
            raise InputError(f"{path}: unpacks to more than {_LARGEST_TEXT:,} bytes; unpack it and split the log")
        if len(part) == PART and b"\n" not in part and b"\r" not in part:
            raise TraceFormatError(f"{path}: unpacks to a line of more than {PART:,} characters; is this a log?")
        text += part
    return text


def parse_swf(text: bytes | bytearray, path: Path | str, *, sha256: str = "") -> SwfLog:
    """Return the log that ``text`` is; ``path`` is for messages and the log's name.

    Raises
    ------
    TraceFormatError
        As `read_swf`.
    """
    # Loaded here, so that commands that read no log start without the compiler.
    from policyfactory.workload.swf import scan

    path = Path(path)
    if text.isspace() or not text:
        raise TraceFormatError(f"{path}: is empty; a log has a line of 18 numbers for each job")
    header, text, start, skipped, oddities = _split(text, path)
    first = min(text.find(b"\n", start) if start < len(text) else start, start + _LARGEST_HEADER)
    fields = line_fields(header, bytes(text[start:first]))
    # Space for what the text can hold at most: not for a line feed or a point each.
    lines = min(text.count(b"\n", start), (len(text) - start) // _SHORTEST_JOB + 1)
    points = min(sum(text.count(mark, start) for mark in (b".", b"e", b"E")), lines * len(fields.rows))
    values = np.empty((len(fields.names), lines), dtype=np.int64)
    line = np.empty(lines, dtype=np.int64)
    decimals = np.empty((points, 6), dtype=np.int64)
    outcome = np.zeros(8, dtype=np.int64)
    data = np.frombuffer(text, dtype=np.uint8, offset=start)
    data.flags.writeable = False  # one type, and one compiled kernel, whatever the text is in
    interruptible(scan.scan_jobs, data, values, line, decimals, outcome, fields.rows)
    result, jobs, special, comments, blanks, fault_line, fault_field, fault_byte = outcome.tolist()
    if result != scan.OK:
        fault = _Fault(path, text, start, skipped + fault_line + 1, first=jobs == 0)
        _refuse(fault, result, fields, fault_field, fault_byte)
    if jobs == 0:
        raise TraceFormatError(f"{path}: has a header of {skipped:,} lines and no job; is it the whole file?")
    columns: dict[str, NDArray[Any]] = {field: values[number, :jobs] for number, field in enumerate(fields.names)}
    line = line[:jobs] + (skipped + 1)
    _put_decimals(columns, fields, decimals[:special], _Fault(path, text, start, 0), line)
    oddities |= {"comment lines between the jobs": comments, "blank lines": blanks}
    oddities |= {f"lines with {fields.ignored}": jobs if fields.ignored else 0}
    return SwfLog(
        name=log_name(path),
        path=str(path),
        header=header,
        line=line,
        sha256=sha256,
        oddities={what: count for what, count in oddities.items() if count},
        extra={name: columns.pop(name) for name in fields.names[scan.FIELD_COUNT :]},
        **columns,
    )


def log_name(path: Path) -> str:
    """Return a log's name: its file's, without .gz, .swf and .txt."""
    name = path.name
    for suffix in (".gz", ".swf", ".txt"):
        name = name.removesuffix(suffix)
    return printable(name or path.name, 80)


def _split(text: bytes | bytearray, path: Path) -> tuple[Header, bytes | bytearray, int, int, dict[str, int]]:
    """Return the header, the text (its last byte is a line feed), where its rest begins, the lines before, what is odd.

    The rest is not cut off: it would be held twice.
    """
    oddities = {}
    if text.startswith(b"\xef\xbb\xbf"):
        text = text[3:]
        oddities["a byte order mark"] = 1
    if b"\n" not in text and b"\r" in text:
        text = text.replace(b"\r", b"\n")
        oddities["line ends of an old Mac (CR)"] = text.count(b"\n")
    if not text.endswith(b"\n"):
        text += b"\n"
    begin = 0
    skipped = 0
    lines: list[str] = []
    returns = 0
    while begin < len(text):
        end = text.index(b"\n", begin)
        line = text[begin : min(end, begin + _LARGEST_HEADER)].rstrip(b"\r")
        content = line.lstrip()
        if content and not content.startswith(b";"):
            break
        returns += text[begin:end].endswith(b"\r")
        if content:
            # Bytes that are no UTF-8 are kept as they are, and written back so.
            lines.append(content.decode("utf-8", errors="surrogateescape"))
        skipped += 1
        begin = end + 1
        if begin > _LARGEST_HEADER:
            raise TraceFormatError(
                f"{path}:{skipped}: more than {_LARGEST_HEADER:,} bytes of comments ahead of the first job; "
                "is this a log?"
            )
    if returns or b"\r\n" in text[begin : begin + 10_000]:
        oddities["lines that end as on Windows (CR LF)"] = text.count(b"\r\n")
    return parse_header(lines), text, begin, skipped, oddities


@dataclasses.dataclass(frozen=True, slots=True)
class _Fault:
    """Where in a file something is wrong; ``first``: in its very first job line."""

    path: Path
    text: bytes | bytearray
    start: int
    line: int
    first: bool = False

    @property
    def hint(self) -> str:
        """What to do about it; a fault in the very first job more often means: not such a file at all."""
        if self.first:
            return "; is this a log in the Standard Workload Format (18 numbers a line, -1 for unknown)?"
        return "; mend or delete this line"

    def cut(self, first: int, end: int) -> bytes:
        """Return some bytes behind the header; places are counted from its end."""
        return bytes(self.text[self.start + first : self.start + end])

    def token(self, first: int, end: int | None = None) -> str:
        """Return the token that begins at byte ``first``, fit to be printed."""
        text = self.cut(first, end if end is not None else first + 200)
        if end is None:
            text = re.split(rb"[ \t\r\n]", text, maxsplit=1)[0]
        return printable(text.decode("utf-8", errors="replace"), 40)


def _refuse(fault: _Fault, result: int, fields: LineFields, field: int, byte: int) -> NoReturn:
    """Raise the error for a line that the scan could not read."""
    from policyfactory.workload.swf import scan

    where = f"{fault.path}:{fault.line}"
    if fault.first:
        _refuse_other_files(fault, where)
    if result == scan.BAD_WIDTH:
        width = len(fields.rows)
        more = "" if width == len(FIELDS) else f", {len(FIELDS)} and {width - len(FIELDS)} more"
        raise TraceFormatError(f"{where}: {field} fields, a job has {width} (-1 for unknown{more}){fault.hint}")
    named = fields.called(field)
    token = fault.token(byte)
    if result == scan.TOO_LARGE:
        raise TraceFormatError(f"{where}: {named} is {token}, a number of at most 18 digits is expected{fault.hint}")
    raise TraceFormatError(f"{where}: {named} is {token!r}, a number is expected{fault.hint}")


def _refuse_other_files(fault: _Fault, where: str) -> None:
    """Raise the error for a model file, or for what an accounting log begins with, if it is one."""
    start = fault.cut(0, _LARGEST_MODEL).lstrip()
    if start.startswith(b"{") and _MODEL_FILE.search(start):
        raise TraceFormatError(
            f"{fault.path}: is a model file (a policy), where a log is expected; name it with --policies"
        )
    line = fault.cut(0, 10_000).lstrip()[:2000].partition(b"\n")[0]
    for kind, beginning in _ACCOUNTING.items():
        if beginning.match(line):
            raise TraceFormatError(
                f"{where}: this looks like {kind}: make a log of it first: policyfactory workload import "
                f"{shlex.quote(printable(str(fault.path), 300))} --output LOG.swf"
            )


def _put_decimals(
    columns: dict[str, NDArray[Any]],
    fields: LineFields,
    decimals: NDArray[np.int64],
    fault: _Fault,
    line: NDArray[np.int64],
) -> None:
    """Put the numbers that are not whole into their columns, which become float64."""
    from policyfactory.workload.swf import scan

    for number in np.unique(decimals[:, 1]).tolist():
        field = fields.names[number]
        is_whole = field in WHOLE_FIELDS or (field in EXTRA_FIELDS and field != "eligible")
        rows, _, first, end, behind, kind = decimals[decimals[:, 1] == number].T
        digits = columns[field][rows].astype(np.float64)
        # Correctly rounded: both are exact.
        values = digits / 10.0 ** np.minimum(behind, 22)
        for index in np.flatnonzero(kind == scan.IRREGULAR).tolist():
            values[index] = _decimal(fault.cut(int(first[index]), int(end[index])))
        wrong = ~(np.abs(values) < 1e18)
        if is_whole:
            wrong |= values != np.floor(values)
        if wrong.any():
            index = int(np.argmax(wrong))
            expected = "a whole number" if is_whole else "a number of at most 18 digits"
            raise TraceFormatError(
                f"{fault.path}:{line[rows[index]]}: {fields.called(fields.rows.tolist().index(number))} is "
                f"{fault.token(int(first[index]), int(end[index]))!r}, {expected} is expected{fault.hint}"
            )
        columns[field] = columns[field].astype(np.int64 if is_whole else np.float64)
        columns[field][rows] = values


def _decimal(token: bytes) -> float:
    """Return the value of a number with an exponent or many digits, NaN if it is none."""
    try:
        return float(token) if b"_" not in token and len(token) <= 400 else float("nan")
    except ValueError:
        return float("nan")


def format_swf(log: SwfLog | Workload, widths: Sequence[int] = WIDTHS) -> bytes:
    """Return the text of a log: its header as it was read, then one line for each job.

    Decimals are written with as many digits as give the same number when read again.

    Parameters
    ----------
    log : SwfLog or Workload
        The jobs.
    widths : sequence of int
        The least width of each of the 18 fields.
    """
    return b"".join(_parts(log, widths))


def _parts(jobs: SwfLog | Workload, widths: Sequence[int]) -> Iterator[bytes]:
    """Give the text of a log in parts: Python's numbers are many times larger than their digits."""
    log = log_of_workload(jobs) if isinstance(jobs, Workload) else jobs
    yield "".join(f"{line}\n" for line in log.header.lines).encode("utf-8", errors="surrogateescape")
    columns = [*log.columns().values(), *log.extra.values()]
    widths = [*widths, *(1 for _ in log.extra)]
    if len(log) >= _MANY and all(column.dtype == np.int64 for column in columns):
        from policyfactory.workload.swf.scan import printed

        yield from printed(columns, widths)
        return
    row = " ".join(f"%{width}s" for width in widths) + "\n"
    for first in range(0, len(log), _MANY):
        cells = zip(*(_cells(column[first : first + _MANY]) for column in columns), strict=True)
        yield "".join(row % numbers for numbers in cells).encode()


def _cells(column: NDArray[Any]) -> list[Any]:
    """Return what is printed of a column: whole numbers without a point."""
    if column.dtype == np.int64:
        return cast("list[Any]", column.tolist())
    return [int(value) if value.is_integer() else value for value in column.tolist()]


def write_swf(
    log: SwfLog | Workload, path: Path | str | None, widths: Sequence[int] = WIDTHS, *, level: int = 9
) -> None:
    """Write a log or a workload, a part at a time.

    Parameters
    ----------
    log : SwfLog or Workload
        The jobs.
    path : Path or str or None
        The file; a name that ends in ``.gz`` is packed (the same bytes every time). None: stdout.
    widths : sequence of int
        The least width of each of the 18 fields.
    level : int
        How hard it is packed, 1 to 9.

    Raises
    ------
    OutputError
        If the file cannot be written; an earlier one stays as it was.
    """
    if path is None:
        sys.stdout.buffer.write(format_swf(log, widths))
        return
    path = Path(path)
    parts = _parts(log, widths)
    atomic_write(path, _packed(parts, level) if path.suffix == ".gz" else parts)


def _packed(parts: Iterator[bytes], level: int) -> Iterator[bytes]:
    packer = zlib.compressobj(level, wbits=31)
    for part in parts:
        yield packer.compress(part)
    yield packer.flush()


# Which fields a line of a log has -------------------------------------------------------------------------------------

# Which fields a line of a log has, and what is kept of them: the 18, and further ones that the header names.


@dataclasses.dataclass(frozen=True, slots=True)
class LineFields:
    """The fields of a line.

    Parameters
    ----------
    names : tuple of str
        What is kept: the 18, and those of `EXTRA_FIELDS` that the header names.
    rows : int64 array (fields,)
        For each field of a line its place among these, -1 if it is passed over.
    ignored : str
        What is passed over, in words; empty: nothing.
    """

    names: tuple[str, ...]
    rows: NDArray[np.int64]
    ignored: str = ""

    def called(self, field: int) -> str:
        """Return what messages call the field at place ``field``, from 0."""
        row = int(self.rows[field]) if field < len(self.rows) else -1
        if row < 0:
            return f"field {field + 1}"
        name = self.names[row]
        return f"field {field + 1} ({FIELD_NAMES.get(name) or EXTRA_FIELDS[name].partition(',')[0]})"


def line_fields(header: Header, first: bytes) -> LineFields:
    """Return what a line has, by the header or, for fields without a name, by the first line.

    Parameters
    ----------
    header : Header
        May name further fields.
    first : bytes
        The first line of a job.
    """
    named = named_fields(header)[: WIDEST - len(FIELDS)]
    rows = list(range(len(FIELDS)))
    names = list(FIELDS)
    for name in named:
        known = name in EXTRA_FIELDS and name not in names
        rows.append(len(names) if known else -1)
        names += [name] if known else []
    width = len(first.split(maxsplit=WIDEST))
    if not named and len(FIELDS) < width <= WIDEST:
        rows += [-1] * (width - len(FIELDS))
    passed = [column + 1 for column, row in enumerate(rows) if row < 0]
    ignored = ""
    if passed:
        fields = f"field {passed[0]}" if len(passed) == 1 else f"fields {', '.join(map(str, passed))}"
        ignored = f"{fields} that no name of ExtraFields tells the meaning of, passed over"
    return LineFields(tuple(names), np.array(rows, dtype=np.int64), ignored)


# Text that is packed with gzip ----------------------------------------------------------------------------------------

# Text that is packed with gzip, a part at a time, so that a file cannot unpack into more memory than there is.


GZIP = b"\x1f\x8b"
PART = 1 << 20  # bytes
# The logs of the archive pack to a fifth or an eighth of their size, the most alike lines of sacct to a fortieth; gzip
# can reach a thousandth.
_LARGEST_RATIO, _FROM = 50, 8 << 20


def unpacked(blocks: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Give what gzip members hold, in parts of at most `PART` bytes; zero bytes behind the last one are padding.

    Parameters
    ----------
    blocks : iterable of bytes
        The packed file in blocks.
    source : str
        Its name, for messages.

    Raises
    ------
    InputError
        If it is damaged, cut off, or unpacks to more than 50 times its size (from 8 MiB on).
    """
    rest = iter(blocks)
    data = next(rest, b"")
    taken, given = len(data), 0
    member = zlib.decompressobj(wbits=31)
    while True:
        try:
            part = member.decompress(data, PART)
        except zlib.error as error:
            raise InputError(
                f"{source}: is damaged and cannot be unpacked ({error}); download or copy it again"
            ) from None
        given += len(part)
        data = member.unconsumed_tail
        if given > _FROM and given > _LARGEST_RATIO * (taken - len(data)):
            raise InputError(
                f"{source}: unpacks to more than {_LARGEST_RATIO} times its size, which no log does; if it is one, "
                "unpack it first (gunzip)"
            )
        yield part
        if member.eof:
            data = member.unused_data.lstrip(b"\0")
            while not data and (block := next(rest, b"")):
                taken += len(block)
                data = block.lstrip(b"\0")
            if not data:
                return
            member = zlib.decompressobj(wbits=31)
        elif not data and len(part) < PART:
            data = next(rest, b"")
            taken += len(data)
            if not data:
                raise InputError(
                    f"{source}: ends in the middle of its packed data, after {given:,} bytes of text: it was cut off; "
                    "download or copy it again (gzip -t says whether it is whole)"
                )
