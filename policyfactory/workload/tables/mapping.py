"""Mappings: what the columns of a table of jobs mean, as data.

A mapping is a TOML file. It names the column of each thing an import wants, its unit, the values that stand for none,
and what there is to know of the machine. It holds no expressions: a stranger's mapping can only name columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

__all__ = [
    "COUNTS",
    "DURATIONS",
    "DURATION_UNITS",
    "FIELDS",
    "MEMORY_UNITS",
    "NAMES",
    "TIMES",
    "TIME_UNITS",
    "Column",
    "Filter",
    "Machine",
    "TableMapping",
]

# What a table can say of a job, by how it is read.
TIMES = ("submit", "eligible", "start", "end")
DURATIONS = ("wait", "run_time", "suspended", "limit")
COUNTS = ("requested", "allocated", "requested_nodes", "allocated_nodes", "gpus", "memory", "exclusive")
NAMES = ("job", "state", "user", "group", "account", "partition", "qos", "name")
FIELDS = (*TIMES, *DURATIONS, *COUNTS, *NAMES)

# "date": dates and times of day, or what a Parquet column of times is in; "log": seconds since the UnixStartTime that a
# log of the Standard Workload Format has in its header.
TIME_UNITS = ("date", "s", "ms", "us", "ns", "log")
# "deadline": the moment at which a job that starts now must end, in place of a duration.
DURATION_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "deadline": 0.0}
# In MB; "slurm": a number with a unit, and n (each node) or c (each core) behind it, as sacct prints ReqMem.
MEMORY_UNITS = {"B": 2.0**-20, "KB": 2.0**-10, "MB": 1.0, "GB": 2.0**10, "slurm": 0.0}


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, and how its cells are read.

    Parameters
    ----------
    name : str
        What the table calls it.
    unit : str
        Of times one of `TIME_UNITS`, of durations one of `DURATION_UNITS`, of memory one of `MEMORY_UNITS`; empty for
        others.
    none : tuple of str
        Cells that say nothing.
    unlimited : tuple of str
        Cells of a limit that say there is none.
    times : int
        What each number stands for: 4 for four GPUs a node in a column of nodes.
    after, before : str
        The part of a cell that is read: what stands behind the last ``after``, and ahead of the first ``before`` in it.
    tres : tuple of str
        The cell is a list as Slurm prints it (``cpu=4,mem=8G`` or ``1=4,2=8192``), and this entry of it is read; the
        first that is there.
    by : int
        What each number is divided by, rounded up: 100 for percents of a core.
    """

    name: str
    unit: str = ""
    none: tuple[str, ...] = ()
    unlimited: tuple[str, ...] = ()
    times: int = 1
    after: str = ""
    before: str = ""
    tres: tuple[str, ...] = ()
    by: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Filter:
    """Which rows are of use.

    Parameters
    ----------
    column : str
        The column that is looked at.
    keep, drop : tuple of str
        Cells whose rows are kept (all others are dropped), or dropped. One of the two is empty.
    why : str
        Why, for the report.
    """

    column: str
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """What is known of the machine.

    Parameters
    ----------
    computer, installation : str
        What it is and where it stands, for the header.
    nodes : int or None
        Its nodes, where the data set says so and they did not change.
    cores_per_node : int or None
        Cores of each.
    shared : bool
        Jobs may share a node; if not, each job takes whole nodes.
    """

    computer: str = ""
    installation: str = ""
    nodes: int | None = None
    cores_per_node: int | None = None
    shared: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class TableMapping:
    """How a table of jobs is read.

    Parameters
    ----------
    name : str
        What ``--format`` calls it.
    title : str
        The data set.
    form : {"parquet", "csv", "tsv", "blank"}
        Parquet, or text: fields parted by commas (with quotes), by tabs, or by blanks (Standard Workload Format and
        its likes, with comments that begin with ``;``). CSV is taken for Parquet and Parquet for CSV: what a file is,
        its beginning shows; the form says how text is parted.
    zone : str
        Zone of times that have none.
    unit : {"cpus", "nodes"}
        What jobs are measured in; nodes where nodes are not shared.
    fields : mapping of str to tuple of Column
        For each of `FIELDS` that the table has the columns that may hold it; the first that is there is read.
    header : tuple of str
        Names of the columns, of a text without a line of names.
    states : mapping of str to str
        What a cell of the column of states means (a name of `State`); ``*`` stands for all others. Empty: the words of
        Slurm.
    filters : tuple of Filter
        Rows that are left out.
    repeated : {"runs", "jobs"}
        Rows with one id: runs of one job (as in accounting), or jobs of their own (tasks of an array, whose rows have
        the array's id; files whose ids begin anew).
    machine : Machine
        What is known of it.
    page, licence, cite : str
        Where the data set is described, its licence, and what to cite.
    notes : tuple of str
        What to know of the data set.
    sha256 : str
        Digest of the mapping file.
    """

    name: str
    title: str
    form: Literal["parquet", "csv", "tsv", "blank"]
    fields: Mapping[str, tuple[Column, ...]]
    zone: str = "UTC"
    unit: Literal["cpus", "nodes"] = "cpus"
    header: tuple[str, ...] = ()
    states: Mapping[str, str] = dataclasses.field(default_factory=dict)
    filters: tuple[Filter, ...] = ()
    repeated: Literal["runs", "jobs"] = "runs"
    machine: Machine = dataclasses.field(default_factory=Machine)
    page: str = ""
    licence: str = ""
    cite: str = ""
    notes: tuple[str, ...] = ()
    sha256: str = ""

    @property
    def limited(self) -> bool:
        """Tell whether the table has a column of requested times."""
        return "limit" in self.fields
