"""Mappings: what the columns of a table of jobs mean, as data.

A mapping is a TOML file. It names the column of each thing an import wants, its unit, the values that stand for none,
and what there is to know of the machine. It holds no expressions: a stranger's mapping can only name columns.
"""

from __future__ import annotations

import csv
import dataclasses
import difflib
import functools
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NoReturn

from policyfactory.core.errors import InputError, UsageError
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.workload.accounting.record import State
from policyfactory.workload.accounting.source import FORMATS
from policyfactory.workload.header import printable

__all__ = [
    "BEHIND_FORMS",
    "COUNTS",
    "DURATIONS",
    "DURATION_UNITS",
    "FIELDS",
    "MEMORY_UNITS",
    "NAMES",
    "PUBLISHED",
    "SCHEMA",
    "STOCK",
    "TIMES",
    "TIME_UNITS",
    "Filter",
    "MappedColumn",
    "MappedMachine",
    "PublishedTable",
    "TableMapping",
    "check_beginning",
    "find_mapping",
    "find_published",
    "parse_mapping",
    "read_mapping",
    "stock_mapping",
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
class MappedColumn:
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
class MappedMachine:
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
    fields: Mapping[str, tuple[MappedColumn, ...]]
    zone: str = "UTC"
    unit: Literal["cpus", "nodes"] = "cpus"
    header: tuple[str, ...] = ()
    states: Mapping[str, str] = dataclasses.field(default_factory=dict)
    filters: tuple[Filter, ...] = ()
    repeated: Literal["runs", "jobs"] = "runs"
    machine: MappedMachine = dataclasses.field(default_factory=MappedMachine)
    page: str = ""
    licence: str = ""
    cite: str = ""
    notes: tuple[str, ...] = ()
    sha256: str = ""

    @property
    def limited(self) -> bool:
        """Tell whether the table has a column of requested times."""
        return "limit" in self.fields


# Reading a mapping ----------------------------------------------------------------------------------------------------

# A small TOML file, each key of which is known; whatever is wrong is named with its place.


SCHEMA = 1
_LARGEST = 1 << 18  # bytes
_MOST_POINTS = 500  # of a line: names inside names take the square of their number
_MOST = 1000  # entries of a list
_LONGEST = 2000  # characters of a text
_TABLES = {"table", "machine", "columns", "states", "filter"}
_HEAD = {"schema", "title", "page", "licence", "cite", "notes"}
_TABLE = {"form", "zone", "unit", "header", "repeated"}
_CHOICES = {"form": ("csv", "parquet", "tsv", "blank"), "unit": ("cpus", "nodes"), "repeated": ("runs", "jobs")}
_COLUMN = {"column", "unit", "none", "unlimited", "times", "by", "after", "before", "tres"}
# What there must be; of the second pair one is enough, since the other follows.
_NEEDED = (
    ("submit",),
    ("start", "wait"),
    ("end", "run_time"),
    ("requested", "allocated", "requested_nodes", "allocated_nodes"),
)


class _MappingPlace:
    """Where in a mapping something stands, for messages."""

    def __init__(self, path: str, table: str = "") -> None:
        self.path, self.table = path, table

    def at(self, table: str) -> _MappingPlace:
        """Return the place of a table."""
        return _MappingPlace(self.path, table)

    def refuse(self, text: str) -> NoReturn:
        """Raise the error for something in this table."""
        where = f" [{self.table}]" if self.table else ""
        raise InputError(f"{self.path}:{where} {text}; docs/modern-logs.md shows the layout")

    def known(self, content: Mapping[str, Any], names: Iterable[str]) -> None:
        """Refuse a key that is none of ``names``, with the nearest of these."""
        names = list(names)
        for key in content:
            if key not in names:
                near = difflib.get_close_matches(key[:60], names, n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                self.refuse(f"the key {printable(key, 60)!r} is not known; {hint}there are {', '.join(sorted(names))}")

    def text(self, content: Mapping[str, Any], key: str, default: str = "") -> str:
        """Return a text."""
        value = content.get(key, default)
        if not isinstance(value, str) or len(value) > _LONGEST:
            self.refuse(f"{key} is {_shown(value)}; a text of at most {_LONGEST:,} characters is expected")
        return value

    def texts(self, content: Mapping[str, Any], key: str) -> tuple[str, ...]:
        """Return a list of texts; numbers are taken as they are printed, and a single one as a list."""
        value = content.get(key, [])
        values = value if isinstance(value, list) else [value]
        if len(values) > _MOST or not all(type(one) in {str, int} for one in values):
            self.refuse(f"{key} is {_shown(value)}; a list of at most {_MOST:,} texts or whole numbers is expected")
        return tuple(printable(str(one), _LONGEST) if type(one) is int else one for one in values)

    def number(self, content: Mapping[str, Any], key: str) -> int | None:
        """Return a whole number of at least 1, None if there is none."""
        value = content.get(key)
        if value is not None and (type(value) is not int or not 1 <= value <= 1 << 31):
            cure = "; by = 100 divides by 100" if key == "times" else ""
            self.refuse(f"{key} is {_shown(value)}; a whole number from 1 to {1 << 31:,} is expected{cure}")
        return value

    def table_of(self, content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """Return a table, empty if there is none."""
        value = content.get(key, {})
        if not isinstance(value, dict):
            self.refuse(f"{key} is {_shown(value)}; a table [{key}] is expected")
        return value


def _shown(value: object) -> str:
    return printable(repr(value), 60)


def read_mapping(path: Path) -> TableMapping:
    """Read a mapping of one's own.

    Parameters
    ----------
    path : Path
        The file; the mapping is called as its stem.

    Raises
    ------
    InputError
        If it cannot be read, is no TOML, or a key or a value in it is wrong: the table and the key are named.
    """
    data = read_bytes(path, limit=_LARGEST)
    if any(line.count(b".") > _MOST_POINTS for line in data.splitlines()):
        raise InputError(f"{path}: a line has more than {_MOST_POINTS} points; a mapping has no such names")
    return parse_mapping(data, str(path), printable(path.stem, 60))


def parse_mapping(data: bytes, path: str, name: str) -> TableMapping:
    """Return the mapping that a text is.

    Parameters
    ----------
    data : bytes
        TOML in UTF-8.
    path, name : str
        For messages, and what the mapping is called.

    Raises
    ------
    InputError
        As `read_mapping`.
    """
    try:
        content = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no TOML ({printable(str(error), 120)}); a mapping is a text in TOML") from None
    place = _MappingPlace(printable(path, 300))
    place.known(content, _HEAD | _TABLES)
    if type(content.get("schema")) is not int:
        place.refuse(f"schema is {_shown(content.get('schema'))}; write schema = {SCHEMA}")
    if content["schema"] != SCHEMA:
        place.refuse(f"schema is {content['schema']}, this version reads {SCHEMA}: use a newer policyfactory")
    table, at = place.table_of(content, "table"), place.at("table")
    at.known(table, _TABLE)
    choices: dict[str, Any] = {}
    for key, allowed in _CHOICES.items():
        choices[key] = at.text(table, key, {"form": "", "unit": "cpus", "repeated": "runs"}[key])
        if choices[key] not in allowed:
            at.refuse(f"{key} is {_shown(choices[key])}; one of {', '.join(allowed)} is expected")
    return TableMapping(
        name=name,
        title=place.text(content, "title", name),
        fields=_fields(place.at("columns"), place.table_of(content, "columns")),
        zone=at.text(table, "zone", "UTC"),
        header=at.texts(table, "header"),
        states=_states(place.at("states"), place.table_of(content, "states")),
        filters=_filters(place.at("filter"), content.get("filter", [])),
        machine=_machine(place.at("machine"), place.table_of(content, "machine")),
        page=place.text(content, "page"),
        licence=place.text(content, "licence"),
        cite=place.text(content, "cite"),
        notes=place.texts(content, "notes"),
        sha256=sha256_bytes(data),
        **choices,
    )


def _fields(place: _MappingPlace, content: Mapping[str, Any]) -> dict[str, tuple[MappedColumn, ...]]:
    place.known(content, FIELDS)
    missing = next((names for names in _NEEDED if not any(name in content for name in names)), None)
    if missing:
        place.refuse(f"has no {' and no '.join(missing)}; {'one of them' if len(missing) > 1 else 'it'} is needed")
    fields = {}
    for name, value in content.items():
        choices = value if isinstance(value, list) else [value]
        if not choices or len(choices) > _MOST:
            place.refuse(f"{name} is an empty list; give the column's name")
        fields[name] = tuple(_column(place.at(f"columns.{name}"), name, one) for one in choices)
    return fields


def _column(place: _MappingPlace, field: str, value: Any) -> MappedColumn:
    """Return a column: a name, or a table with more about it."""
    content = {"column": value} if isinstance(value, str) else value
    if not isinstance(content, dict):
        place.refuse(f"is {_shown(value)}; the name of a column or a table with it is expected")
    place.known(content, _COLUMN)
    name = place.text(content, "column")
    if not name:
        place.refuse("has no column; write column = and its name in the table")
    unit = place.text(
        content, "unit", {"memory": "MB"}.get(field, "date" if field in TIMES else "s" if field in DURATIONS else "")
    )
    units = (
        TIME_UNITS
        if field in TIMES
        else DURATION_UNITS
        if field in DURATIONS
        else MEMORY_UNITS
        if field == "memory"
        else ("",)
    )
    if unit not in units or (unit == "deadline" and field != "limit"):
        place.refuse(f"unit is {_shown(unit)}; {', '.join(units).strip() or 'no unit'} is expected for {field}")
    for key, allowed in (("unlimited", ("limit",)), ("times", COUNTS), ("by", COUNTS), ("tres", COUNTS)):
        if key in content and field not in allowed:
            place.refuse(f"{key} means nothing for {field}; it is for {', '.join(allowed)}")
    if field in TIMES + NAMES and ("after" in content or "before" in content) and field != "job":
        place.refuse(f"after and before mean nothing for {field}; they are for numbers and the job's id")
    return MappedColumn(
        name,
        unit,
        place.texts(content, "none"),
        place.texts(content, "unlimited"),
        place.number(content, "times") or 1,
        place.text(content, "after"),
        place.text(content, "before"),
        place.texts(content, "tres"),
        place.number(content, "by") or 1,
    )


def _states(place: _MappingPlace, content: Mapping[str, Any]) -> dict[str, str]:
    names = [state.name for state in State]
    for cell, meaning in content.items():
        if meaning not in names:
            place.refuse(f"{printable(cell, 60)!r} is {_shown(meaning)}; one of {', '.join(names)} is expected")
    return dict(content)


def _filters(place: _MappingPlace, content: Any) -> tuple[Filter, ...]:
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        place.refuse("is no list of tables; write [[filter]]")
    filters = []
    for one in content:
        place.known(one, ("column", "keep", "drop", "why"))
        chosen = Filter(
            place.text(one, "column"), place.texts(one, "keep"), place.texts(one, "drop"), place.text(one, "why")
        )
        if not chosen.column or bool(chosen.keep) == bool(chosen.drop):
            place.refuse("needs a column, and either the cells to keep or those to drop")
        filters.append(chosen)
    return tuple(filters)


def _machine(place: _MappingPlace, content: Mapping[str, Any]) -> MappedMachine:
    place.known(content, ("computer", "installation", "nodes", "cores_per_node", "shared"))
    shared = content.get("shared", True)
    if not isinstance(shared, bool):
        place.refuse(f"shared is {_shown(shared)}; true or false is expected")
    return MappedMachine(
        place.text(content, "computer"),
        place.text(content, "installation"),
        place.number(content, "nodes"),
        place.number(content, "cores_per_node"),
        shared,
    )


# The mappings that come along -----------------------------------------------------------------------------------------

# The mappings that come along, one for each published data set: the files ``*.toml`` beside this one.


# In the order of the documentation.
STOCK = (
    "kestrel", "eagle", "pm100", "fugaku", "ccin2p3", "lassen", "aurora", "polaris", "theta", "supercloud", "frontier",
    "theta-swf", "adastra",
)  # fmt: skip


@functools.cache
def stock_mapping(name: str) -> TableMapping:
    """Return the mapping that comes along under a name of `STOCK`."""
    return parse_mapping(files(__package__).joinpath(f"{name}.toml").read_bytes(), f"{name}.toml", name)


def find_mapping(name: str) -> TableMapping | None:
    """Return the mapping called ``name``, None if it is a format of accounting logs.

    Raises
    ------
    UsageError
        If there is neither; all names are in the message.
    """
    if name in FORMATS:
        return None
    if name in STOCK:
        return stock_mapping(name)
    known = [*FORMATS, *STOCK]
    near = difflib.get_close_matches(name[:60].casefold(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"--format {printable(name, 40)!r}: no such format; {hint}accounting logs are {', '.join(FORMATS)}, published "
        f"tables {', '.join(STOCK)}; a table of your own needs --mapping FILE"
    )


# Published tables of jobs by name: where those are that can be downloaded without a form ------------------------------

# ``published.csv`` has their addresses, and the sizes and digests of files as other users of them have published these
# (NREL's hpc-oda project), where one has; a file whose digest is not known is checked by its beginning alone.


# Formats whose tables have no open address, and why.
BEHIND_FORMS = {
    "aurora": "behind a form (name and address)",
    "polaris": "behind a form (name and address)",
    "theta": "behind a form (name and address)",
    "theta-swf": "not at one address",
    "frontier": "at no open address that is known",
}
_LARGEST_PUBLISHED = 8 << 30  # bytes; of a file whose size is not known
_BEGINNINGS = {".parquet": b"PAR1", ".zip": b"PK\x03\x04", ".gz": b"\x1f\x8b"}


@dataclasses.dataclass(frozen=True, slots=True)
class PublishedTable:
    """One file of a published data set.

    Parameters
    ----------
    name : str
        What ``workload download`` calls it.
    form : str
        The format that reads it, of ``workload import``.
    file : str
        What it is called here.
    address : str
        Where it is.
    size : int or None
        Its bytes.
    sha256 : str or None
        Its digest.
    """

    name: str
    form: str
    file: str
    address: str
    size: int | None = None
    sha256: str | None = None

    @property
    def page(self) -> str:
        """Where the data set is described."""
        return stock_mapping(self.form).page

    @property
    def largest(self) -> int:
        """Bytes beyond which it is another file."""
        return self.size or _LARGEST_PUBLISHED

    def url(self, base: str | None = None) -> str:
        """Return where the file is, at its own address or in the folder of a mirror."""
        return self.address if base is None else f"{base.rstrip('/')}/{self.file}"


def _read_table() -> dict[str, PublishedTable]:
    lines = files(__package__).joinpath("published.csv").read_text(encoding="utf-8").splitlines()
    return {
        row["name"]: PublishedTable(
            row["name"], row["form"], row["file"], row["address"],
            int(row["size"]) if row["size"] else None, row["sha256"] or None,
        )
        for row in csv.DictReader(lines)
    }  # fmt: skip


PUBLISHED = _read_table()


def find_published(name: str) -> PublishedTable | None:
    """Return the table called ``name``, None if nothing among the tables is called like it.

    Raises
    ------
    UsageError
        If it is a data set of several files, or one that cannot be downloaded, or nearly the name of a table.
    """
    wanted = name[:60].casefold()
    if wanted in PUBLISHED:
        return PUBLISHED[wanted]
    if wanted in BEHIND_FORMS:
        page = stock_mapping(wanted).page
        raise UsageError(
            f"{wanted}: its tables are {BEHIND_FORMS[wanted]}{f'; see {page}' if page else ''}; once you have them: "
            f"policyfactory workload import FILE... --format {wanted}"
        )
    parts = [one.name for one in PUBLISHED.values() if one.form == wanted]
    if parts:
        raise UsageError(f"{wanted}: a data set of {len(parts)} files; name some of {parts[0]} to {parts[-1]}")
    near = difflib.get_close_matches(wanted, PUBLISHED, n=2, cutoff=0.8)
    if near:
        raise UsageError(f"no table is called {printable(name, 60)!r}; near are {', '.join(near)}")
    return None


def check_beginning(path: Path, table: PublishedTable) -> None:
    """Check that a file begins as its kind does.

    Raises
    ------
    InputError
        If it does not: a page that says why there is no file, perhaps.
    """
    with path.open("rb") as file:
        begin = file.read(512)
    expected = next((mark for suffix, mark in _BEGINNINGS.items() if table.file.endswith(suffix)), None)
    page = begin.lstrip()[:1] == b"<"
    if not begin or page or (expected is not None and not begin.startswith(expected)):
        raise InputError(
            f"begins with {printable(begin[:20].decode('utf-8', 'replace'), 40)!r}, and is no {table.file}"
        )
