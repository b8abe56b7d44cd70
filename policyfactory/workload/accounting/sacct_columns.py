"""The columns that ``sacct -P`` can print: which to ask for, which are read, and which there must be."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import TraceFormatError
from policyfactory.core.options import Int64Array
from policyfactory.workload.accounting.record import coded
from policyfactory.workload.accounting.times import whole_numbers
from policyfactory.workload.header import printable

# Free texts (job name, submit line, working directory) are not asked for: a `|` in one of them adds columns.
_FIELDS = (
    "JobIDRaw,JobID,UID,User,GID,Account,Partition,QOS,State,Submit,Eligible",
    "Start,End,ElapsedRaw,TimelimitRaw,ReqCPUS,AllocCPUS",
    "ReqNodes,NNodes,AllocNodes,ReqTRES,Suspended,Flags",
)
_COMMAND = "SLURM_TIME_FORMAT=%s sacct -a -X -D -P --noconvert -S 2026-01-01 -E now"

RECOMMENDED = f"{_COMMAND} -o {','.join(_FIELDS)}"

# The same for a terminal of 80 columns, to be copied as it stands: sacct adds up its options -o (22.05.8, seen).
RECOMMENDED_LINES = (
    f"{_COMMAND} \\",
    *(f"  -o {fields} \\" for fields in _FIELDS[:-1]),
    f"  -o {_FIELDS[-1]} > sacct.txt",
)

# Columns that hold what users write, in which a delimiter can stand (22.05.8: JobName and SubmitLine, seen).
_FREE = frozenset({
    "jobname", "submitline", "workdir", "comment", "admincomment", "systemcomment", "constraints", "container", "wckey",
    "reason", "stdin", "stdout", "stderr", "extra", "licenses",
})  # fmt: skip

# What is read of a line: the column of the same name, or of each list the first that the header has.
_WANTED: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("state", "submit", "eligible", "start", "end", "elapsed", "suspended")},
    **{name: (name,) for name in ("account", "partition", "qos", "cluster")},
    "id": ("jobid", "jobidraw"),
    "elapsed_raw": ("elapsedraw",),
    "limit_raw": ("timelimitraw",),
    "limit": ("timelimit",),
    "requested": ("reqcpus",),
    "allocated": ("alloccpus", "ncpus"),
    "requested_nodes": ("reqnodes",),
    "allocated_nodes": ("allocnodes", "nnodes"),
    "allocated_tres": ("alloctres",),
    "requested_tres": ("reqtres",),
    "requested_memory": ("reqmem",),
    "requested_gres": ("reqgres",),
    "allocated_gres": ("allocgres",),
    "user": ("uid", "user"),
    "group": ("gid", "group"),
    "submit_line": ("submitline",),
    "name": ("jobname",),
    "user_name": ("user",),
}
# What there must be: one column of each list.
_NEEDED = (
    ("JobID", "JobIDRaw"), ("State",), ("Submit",), ("Start",), ("End", "ElapsedRaw", "Elapsed"),
    ("TimelimitRaw", "Timelimit"), ("AllocCPUS", "ReqCPUS", "NCPUS", "AllocTRES"),
)  # fmt: skip
# Ways to read one line that are tried, and fields that are looked at for it.
_MOST_PLACEMENTS = 2000
_MOST_LOOKS = 60_000
_DELIMITER = re.compile(r"[^\w ]{1,8}", re.ASCII)
_COLUMN = re.compile(r"\w+", re.ASCII)


def delimiter_of(header: str) -> str | None:
    """Return what stands between the names of a header line (``--delimiter``); None if it is none of sacct -P.

    Blanks are none: what is aligned by them was printed without -P, and cells that are cut off.
    """
    match = _DELIMITER.search(header.strip(" "))
    if match is None:
        return None
    names = {name.casefold() for name in header.strip(" ").split(match[0])}
    known = names & {"jobid", "jobidraw", "state", "submit"}
    named = all(_COLUMN.fullmatch(name) for name in names - {""})
    return match[0] if named and (known if match[0] in "|\x1f" else len(known) > 1) else None


class Columns:
    """Where a header line says that things are.

    Parameters
    ----------
    header : str
        The header line.
    location : str
        File and line, for messages.

    Raises
    ------
    TraceFormatError
        If a column that is needed is missing, or there are two of one name.
    """

    def __init__(self, header: str, location: str) -> None:
        self.delimiter = delimiter_of(header) or "|"
        self.names = header.strip(" ").split(self.delimiter)
        # With -p in place of -P every line ends with a delimiter.
        self.closed = self.names[-1] == ""
        if self.closed:
            self.names.pop()
        known = [name.casefold() for name in self.names]
        times = Counter(known)
        double = next((name for name in self.names if times[name.casefold()] > 1), None)
        if double is not None:
            raise TraceFormatError(f"{location}: two columns are called {printable(double, 40)}; ask for it once")
        missing = [" or ".join(names) for names in _NEEDED if not any(name.casefold() in known for name in names)]
        if missing:
            raise TraceFormatError(
                f"{location}: no column {', no column '.join(missing)} among {printable(', '.join(self.names), 600)}; "
                f"ask for it: {RECOMMENDED}"
            )
        self.width = len(known)
        # The column of each of the wanted that the header has.
        self.number = {
            term: known.index(name)
            for term, names in _WANTED.items()
            if (name := next((name for name in names if name in known), None)) is not None
        }
        self._free = [number for number, name in enumerate(known) if name in _FREE]

    def is_called(self, term: str, name: str) -> bool:
        """Return whether what is read for ``term`` is the column ``name``."""
        return term in self.number and self.names[self.number[term]].casefold() == name

    def job(self, line: str) -> str:
        """Return the job id in a line, empty if it is cut off before."""
        return "".join(line.split(self.delimiter)[self.number["id"] :][:1])

    def name_of(self, term: str) -> str:
        """Return the name of the column that is read for ``term``."""
        return self.names[self.number[term]]

    def joined(self, pieces: list[str]) -> str | None:
        """Return a line that line breaks cut into pieces, without its free texts; None if they are elsewhere."""
        fields: list[str] = []
        for piece in pieces:
            first, *rest = piece.split(self.delimiter)
            if fields and len(fields) - 1 not in self._free:
                return None
            fields = [*fields[:-1], first, *rest] if fields else [first, *rest]
        if len(fields) != self.width:
            return None
        return self.delimiter.join("" if number in self._free else field for number, field in enumerate(fields))

    def placements(self, line: str) -> Iterator[str]:
        """Give the ways to read a line with too many fields, without its free texts: to these the surplus belongs.

        There is none if the header has no free text, or if there are more ways than can be tried.
        """
        fields = line.split(self.delimiter)
        surplus = len(fields) - self.width
        ways = math.comb(len(self._free) + surplus - 1, surplus) if self._free else 0
        if ways > _MOST_PLACEMENTS or ways * len(fields) > _MOST_LOOKS:
            return
        for cuts in itertools.combinations_with_replacement(self._free, surplus):
            row, first = [], 0
            for column in range(self.width):
                row.append("" if column in self._free else fields[first])
                first += 1 + cuts.count(column)
            yield self.delimiter.join(row)


# The lines of a table of text by column -------------------------------------------------------------------------------

# As texts, as numbers, or as numbers of their different texts.


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


class Rows:
    """Lines with as many fields as the header, column by column; a column that the header lacks is empty.

    Parameters
    ----------
    columns : Columns
        The header.
    lines : int64 array (n,)
        Line of each row, from 1.
    cells : object array (n, width), or int64 array (2, n, width)
        The text of each cell, or where it begins in ``data`` and where the delimiter behind it is.
    data : bytes or None
        The lines, each cell of them with the delimiter behind it: compiled kernels look at them.
    """

    def __init__(self, columns: Columns, lines: Int64Array, cells: NDArray[Any], data: bytes | None) -> None:
        self.columns, self.lines = columns, lines
        self._cells, self._data = cells, data
        # What was asked for: most columns are asked for again.
        self._texts: dict[str, list[str]] = {}
        self._coded: dict[str, tuple[Int64Array, list[str]]] = {}

    @classmethod
    def of_lines(cls, columns: Columns, numbers: Int64Array, lines: list[str], *, compiled: bool) -> Self:
        """Return the rows of lines with as many fields as the header.

        With ``compiled``, kernels look at the bytes: that is twice as fast, but they take a second to load.
        """
        text = columns.delimiter.join([*lines, ""])
        if not compiled:
            texts = np.array(text.split(columns.delimiter)[:-1], dtype=object)
            return cls(columns, numbers, texts.reshape(-1, columns.width), None)
        data = text.encode("utf-8", "surrogateescape")
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord(columns.delimiter))
        begins = np.concatenate([[0], ends + 1])[:-1]
        return cls(columns, numbers, np.reshape([begins, ends], (2, -1, columns.width)), data)

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, mask: NDArray[np.bool_]) -> Self:
        """Return the rows of ``mask``."""
        return type(self)(self.columns, self.lines[mask], self._cells[..., mask, :], self._data)

    def has(self, term: str) -> bool:
        """Tell whether the header has a column for ``term``."""
        return term in self.columns.number

    def texts(self, term: str) -> list[str]:
        """Return the cells of a column."""
        if term not in self._texts:
            self._texts[term] = self._cut(term) if self.has(term) else [""] * len(self)
        return self._texts[term]

    def _cut(self, term: str) -> list[str]:
        column: list[Any] = self._column(term).tolist()
        if self._data is None:
            return column
        begins, ends = column
        if self._data.isascii():
            text = self._data.decode()
            return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
        return [_text(self._data[begin:end]) for begin, end in zip(begins, ends, strict=True)]

    def coded(self, term: str) -> tuple[Int64Array, list[str]]:
        """Return a column as numbers of its different texts, and these."""
        if term not in self._coded:
            if self._data is None or not self.has(term):
                self._coded[term] = coded(self.texts(term))
            else:
                self._coded[term] = self._by_kernel(term, self._data)
        return self._coded[term]

    def _by_kernel(self, term: str, data: bytes) -> tuple[Int64Array, list[str]]:
        from policyfactory.workload.swf.scan import number_texts

        begins, ends = self._column(term)
        codes = np.empty(len(self), dtype=np.int64)
        firsts = number_texts(np.frombuffer(data, dtype=np.uint8), begins, ends, codes).tolist()
        return codes, [_text(data[begins[row] : ends[row]]) for row in firsts]

    def numbers(self, term: str) -> Int64Array | None:
        """Return a column of whole numbers, None if a cell is something else."""
        if self._data is None or not self.has(term):
            return whole_numbers(self.texts(term)) if self.has(term) else None
        from policyfactory.workload.swf.scan import read_digits

        numbers = np.empty(len(self), dtype=np.int64)
        begins, ends = self._column(term)
        return numbers if read_digits(np.frombuffer(self._data, dtype=np.uint8), begins, ends, numbers) else None

    def _column(self, term: str) -> NDArray[Any]:
        return self._cells[..., self.columns.number[term]]
