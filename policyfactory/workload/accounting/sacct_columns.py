"""The columns that ``sacct -P`` can print: which of them are read, and which there must be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from operator import itemgetter

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting.recommended import RECOMMENDED
from policyfactory.workload.swf.header import printable

__all__ = ["TERMS", "WANTED", "Columns"]

# Columns that hold what users write, in which a delimiter can stand (22.05.8: JobName and SubmitLine, seen).
_FREE = frozenset({
    "jobname", "submitline", "workdir", "comment", "admincomment", "systemcomment", "constraints", "container", "wckey",
    "reason", "stdin", "stdout", "stderr", "extra", "licenses",
})  # fmt: skip

# What is read of a line, in this order: the first of each list that the header has.
WANTED: dict[str, tuple[str, ...]] = {
    "id": ("jobid", "jobidraw"),
    "state": ("state",),
    "submit": ("submit",),
    "eligible": ("eligible",),
    "start": ("start",),
    "end": ("end",),
    "elapsed_raw": ("elapsedraw",),
    "elapsed": ("elapsed",),
    "limit_raw": ("timelimitraw",),
    "limit": ("timelimit",),
    "requested": ("reqcpus",),
    "allocated": ("alloccpus", "ncpus"),
    "requested_nodes": ("reqnodes",),
    "allocated_nodes": ("allocnodes", "nnodes"),
    "allocated_tres": ("alloctres",),
    "requested_tres": ("reqtres",),
    "user": ("uid", "user"),
    "group": ("gid", "group"),
    "account": ("account",),
    "partition": ("partition",),
    "qos": ("qos",),
    "suspended": ("suspended",),
    "submit_line": ("submitline",),
    "cluster": ("cluster",),
}
# What there must be: one column of each list.
_NEEDED = (
    ("JobID", "JobIDRaw"), ("State",), ("Submit",), ("Start",), ("End", "ElapsedRaw", "Elapsed"),
    ("TimelimitRaw", "Timelimit"), ("AllocCPUS", "ReqCPUS", "NCPUS", "AllocTRES"),
)  # fmt: skip
_MOST_PLACEMENTS = 2000
_MOST_LOOKS = 60_000
TERMS = {name: place for place, name in enumerate(WANTED)}


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
        self.delimiter = "\x1f" if "\x1f" in header else "|"
        self.names = header.strip(" ").split(self.delimiter)
        # With -p in place of -P every line ends with a delimiter.
        self.closed = self.names[-1] == ""
        if self.closed:
            self.names.pop()
        known = [name.casefold() for name in self.names]
        double = next((name for name in self.names if known.count(name.casefold()) > 1), None)
        if double is not None:
            raise TraceFormatError(f"{place}: two columns are called {printable(double, 40)}; ask for it once")
        missing = [" or ".join(names) for names in _NEEDED if not any(name.casefold() in known for name in names)]
        if missing:
            raise TraceFormatError(
                f"{place}: no column {', no column '.join(missing)} among {printable(', '.join(self.names), 600)}; "
                f"ask for it: {RECOMMENDED}"
            )
        self.width = len(known)
        # Behind the last column stands an empty one, for all that the header does not have.
        self.positions = [
            next((known.index(name) for name in names if name in known), self.width) for names in WANTED.values()
        ]
        self.job_at = self.positions[TERMS["id"]]
        self.cluster_at = self.positions[TERMS["cluster"]]
        self.tells_allocation = self.positions[TERMS["allocated_tres"]] < self.width
        self.free = [place for place, name in enumerate(known) if name in _FREE]
        self.pick = itemgetter(*self.positions)

    def placements(self, fields: list[str]) -> Iterator[list[str]]:
        """Give the ways to read a line with too many fields: the surplus belongs to the free texts."""
        surplus = len(fields) - self.width
        for cuts in itertools.combinations_with_replacement(self.free, surplus):
            more = [0] * self.width
            for column in cuts:
                more[column] += 1
            rows, at = [], 0
            for count in more:
                rows.append(self.delimiter.join(fields[at : at + 1 + count]))
                at += 1 + count
            yield rows

    def too_many_placements(self, fields: list[str]) -> bool:
        """Tell whether there are more ways than can be tried, each of which looks at every field."""
        ways = 1
        for number in range(1, len(fields) - self.width + 1):
            ways = ways * (len(self.free) + number - 1) // number
            if ways > _MOST_PLACEMENTS or ways * len(fields) > _MOST_LOOKS:
                return True
        return False
