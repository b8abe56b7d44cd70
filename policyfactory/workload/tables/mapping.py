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
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from policyfactory.core.errors import InputError, UsageError
from policyfactory.core.inputs import read_toml, sha256_bytes
from policyfactory.core.text import did_you_mean
from policyfactory.workload.accounting.record import State
from policyfactory.workload.accounting.source import FORMATS
from policyfactory.workload.declared import ANY_TEXT, CELLS, FLAG, Kind, TableReading, choice, count, kept
from policyfactory.workload.header import printable

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
# Of each field that has a unit the usual one, and all.
_UNITS_OF: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(TIMES, ("date", TIME_UNITS)),
    **dict.fromkeys(DURATIONS, ("s", tuple(DURATION_UNITS))),
    "memory": ("MB", tuple(MEMORY_UNITS)),
}
_PARTS_FOR = (*DURATIONS, *COUNTS, "job")
# Keys of a column that mean something for some fields only.
_KEYS_FOR = {
    "unlimited": ("limit",), "times": COUNTS, "by": COUNTS, "tres": COUNTS, "after": _PARTS_FOR, "before": _PARTS_FOR,
}  # fmt: skip
_NUMBER = count(1, 1 << 31)


def _times(value: Any) -> int:
    try:
        return int(_NUMBER.read(value))
    except ValueError as error:
        raise ValueError(f"{error}; by = 100 divides by 100") from None


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

    name: str = kept(ANY_TEXT, key="column")
    unit: str = kept(ANY_TEXT, "")
    none: tuple[str, ...] = kept(CELLS, ())
    unlimited: tuple[str, ...] = kept(CELLS, ())
    times: int = kept(Kind(_times), 1)
    after: str = kept(ANY_TEXT, "")
    before: str = kept(ANY_TEXT, "")
    tres: tuple[str, ...] = kept(CELLS, ())
    by: int = kept(_NUMBER, 1)


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

    column: str = kept(ANY_TEXT)
    keep: tuple[str, ...] = kept(CELLS, ())
    drop: tuple[str, ...] = kept(CELLS, ())
    why: str = kept(ANY_TEXT, "")


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

    computer: str = kept(ANY_TEXT, "")
    installation: str = kept(ANY_TEXT, "")
    nodes: int | None = kept(_NUMBER, None)
    cores_per_node: int | None = kept(_NUMBER, None)
    shared: bool = kept(FLAG, True)


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


# Reading a mapping: a small TOML file, whatever is wrong in it is named with its place --------------------------------


SCHEMA = 1
_LARGEST = 1 << 18  # bytes
_PAGE = "docs/import.md"
_HEAD = {"title": ANY_TEXT, "page": ANY_TEXT, "licence": ANY_TEXT, "cite": ANY_TEXT, "notes": CELLS}
_TABLE = {
    "form": choice("csv", "parquet", "tsv", "blank"),
    "zone": ANY_TEXT,
    "unit": choice("cpus", "nodes"),
    "header": CELLS,
    "repeated": choice("runs", "jobs"),
}
_STATE = choice(*(state.name for state in State))
# What there must be; of several one is enough, since the other follows.
_NEEDED = (
    ("submit",),
    ("start", "wait"),
    ("end", "run_time"),
    ("requested", "allocated", "requested_nodes", "allocated_nodes"),
)
_READING = TableReading(InputError, f"{_PAGE} shows the layout")


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
    data, content = read_toml(path, limit=_LARGEST, page=_PAGE)
    return _mapping(content, str(path), printable(path.stem, 60), sha256_bytes(data))


def parse_mapping(data: bytes, path: str, name: str) -> TableMapping:
    """Return the mapping that a text of ours is.

    Parameters
    ----------
    data : bytes
        TOML in UTF-8.
    path, name : str
        For messages, and what the mapping is called.

    Raises
    ------
    InputError
        If a key or a value in it is wrong.
    """
    return _mapping(tomllib.loads(data.decode("utf-8")), path, name, sha256_bytes(data))


def _mapping(content: dict[str, Any], path: str, name: str, digest: str) -> TableMapping:
    where = printable(path, 300)
    tables = {key: content.pop(key) for key in ("table", "machine", "columns", "states", "filter") if key in content}
    _READING.check_keys(content, ["schema", *_HEAD, "table", "machine", "columns", "states", "filter"], where)
    schema = content.pop("schema", None)
    if type(schema) is not int or schema != SCHEMA:
        cure = "use a newer policyfactory" if type(schema) is int else f"write schema = {SCHEMA}"
        raise InputError(f"{where}: schema is {schema!r:.60}, this version reads {SCHEMA}: {cure}")
    table = _READING.values(_TABLE, tables.get("table", {}), f"{where}: [table]")
    if "form" not in table:
        _READING.value(_TABLE["form"], "", f"{where}: [table]: form")
    states = _READING.mapping(tables.get("states", {}), f"{where}: [states]")
    return TableMapping(
        name=name,
        **{"title": name, **_READING.values(_HEAD, content, where)},
        **table,
        fields=_fields(_READING.mapping(tables.get("columns", {}), f"{where}: [columns]"), f"{where}: [columns]"),
        states={
            cell: _READING.value(_STATE, meaning, f"{where}: [states]: {cell[:60]!a}")
            for cell, meaning in states.items()
        },
        filters=_filters(tables.get("filter", []), f"{where}: [[filter]]"),
        machine=_READING.table(MappedMachine, tables.get("machine", {}), f"{where}: [machine]"),
        sha256=digest,
    )


def _fields(content: Mapping[str, Any], where: str) -> dict[str, tuple[MappedColumn, ...]]:
    _READING.check_keys(content, FIELDS, where)
    missing = next((names for names in _NEEDED if not any(name in content for name in names)), None)
    if missing:
        needed = "one of them" if len(missing) > 1 else "it"
        raise InputError(f"{where} has no {' and no '.join(missing)}; {needed} is needed; {_READING.page}")
    fields = {}
    for name, value in content.items():
        choices = value if isinstance(value, list) and value else [value]
        fields[name] = tuple(_column(name, choice, f"{where}: {name}") for choice in choices)
    return fields


def _column(field: str, value: Any, where: str) -> MappedColumn:
    """Return a column: a name, or a table with more about it."""
    if not value or not isinstance(value, str | Mapping):
        raise InputError(f"{where} is {value!r:.60}; the name of a column or a table with it is expected")
    content = {"column": value} if isinstance(value, str) else value
    column = _READING.table(MappedColumn, content, where)
    usual, units = _UNITS_OF.get(field, ("", ("",)))
    unit = column.unit or usual
    if unit not in units or (unit == "deadline" and field != "limit"):
        words = ", ".join(units).strip() or "no unit"
        raise InputError(f"{where}: unit is {unit[:60]!a}; expected {words} for {field}; {_READING.page}")
    for key, allowed in _KEYS_FOR.items():
        if key in content and field not in allowed:
            raise InputError(f"{where}: {key} means nothing for {field}; it is for {', '.join(allowed)}")
    return dataclasses.replace(column, unit=unit)


def _filters(content: Any, where: str) -> tuple[Filter, ...]:
    filters = _READING.rows(Filter, content, where)
    for number, rule in enumerate(filters, 1):
        if not rule.column or bool(rule.keep) == bool(rule.drop):
            raise InputError(f"{where}[{number}] needs a column, and either the cells to keep or those to drop")
    return filters


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
    hint = did_you_mean(name.casefold(), [*FORMATS, *STOCK], cutoff=0.5)
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
    parts = [mapping.name for mapping in PUBLISHED.values() if mapping.form == wanted]
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
