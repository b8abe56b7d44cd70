"""Reading a mapping: a small TOML file, each key of which is known; whatever is wrong is named with its place."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from policyfactory.core.errors import InputError
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.workload.accounting.record import State
from policyfactory.workload.header import printable
from policyfactory.workload.tables.mapping import (
    COUNTS,
    DURATION_UNITS,
    DURATIONS,
    FIELDS,
    MEMORY_UNITS,
    NAMES,
    TIME_UNITS,
    TIMES,
    Column,
    Filter,
    Machine,
    TableMapping,
)

__all__ = ["SCHEMA", "parse_mapping", "read_mapping"]

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


class _Place:
    """Where in a mapping something stands, for messages."""

    def __init__(self, path: str, table: str = "") -> None:
        self.path, self.table = path, table

    def at(self, table: str) -> _Place:
        """Return the place of a table."""
        return _Place(self.path, table)

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
    place = _Place(printable(path, 300))
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


def _fields(place: _Place, content: Mapping[str, Any]) -> dict[str, tuple[Column, ...]]:
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


def _column(place: _Place, field: str, value: Any) -> Column:
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
    return Column(
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


def _states(place: _Place, content: Mapping[str, Any]) -> dict[str, str]:
    names = [state.name for state in State]
    for cell, meaning in content.items():
        if meaning not in names:
            place.refuse(f"{printable(cell, 60)!r} is {_shown(meaning)}; one of {', '.join(names)} is expected")
    return dict(content)


def _filters(place: _Place, content: Any) -> tuple[Filter, ...]:
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


def _machine(place: _Place, content: Mapping[str, Any]) -> Machine:
    place.known(content, ("computer", "installation", "nodes", "cores_per_node", "shared"))
    shared = content.get("shared", True)
    if not isinstance(shared, bool):
        place.refuse(f"shared is {_shown(shared)}; true or false is expected")
    return Machine(
        place.text(content, "computer"),
        place.text(content, "installation"),
        place.number(content, "nodes"),
        place.number(content, "cores_per_node"),
        shared,
    )
