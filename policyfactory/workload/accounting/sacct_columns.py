"""The columns that ``sacct -P`` can print: which to ask for, which are read, and which there must be."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.header import printable

__all__ = ["RECOMMENDED", "RECOMMENDED_LINES", "Columns", "delimiter_of"]

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
    place : str
        File and line, for messages.

    Raises
    ------
    TraceFormatError
        If a column that is needed is missing, or there are two of one name.
    """

    def __init__(self, header: str, place: str) -> None:
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
            raise TraceFormatError(f"{place}: two columns are called {printable(double, 40)}; ask for it once")
        missing = [" or ".join(names) for names in _NEEDED if not any(name.casefold() in known for name in names)]
        if missing:
            raise TraceFormatError(
                f"{place}: no column {', no column '.join(missing)} among {printable(', '.join(self.names), 600)}; "
                f"ask for it: {RECOMMENDED}"
            )
        self.width = len(known)
        # The column of each of the wanted that the header has.
        self.place = {
            term: known.index(name)
            for term, names in _WANTED.items()
            if (name := next((name for name in names if name in known), None)) is not None
        }
        self._free = [place for place, name in enumerate(known) if name in _FREE]

    def is_called(self, term: str, name: str) -> bool:
        """Return whether what is read for ``term`` is the column ``name``."""
        return term in self.place and self.names[self.place[term]].casefold() == name

    def job(self, line: str) -> str:
        """Return the job id in a line, empty if it is cut off before."""
        return "".join(line.split(self.delimiter)[self.place["id"] :][:1])

    def name_of(self, term: str) -> str:
        """Return the name of the column that is read for ``term``."""
        return self.names[self.place[term]]

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
        return self.delimiter.join("" if at in self._free else field for at, field in enumerate(fields))

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
            row, at = [], 0
            for column in range(self.width):
                row.append("" if column in self._free else fields[at])
                at += 1 + cuts.count(column)
            yield self.delimiter.join(row)
