"""Site files: a site as TOML. What is not written has the scheduler's default: a small site takes three lines."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from policyfactory.core.errors import SiteError
from policyfactory.core.files import atomic_write
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.text import enumerated, shortened
from policyfactory.core.toml import dump_toml, read_toml
from policyfactory.site.consistent import MOST_ENTRIES, check_site
from policyfactory.site.model import (
    Association,
    Limits,
    NodeGroup,
    NotModelled,
    Outage,
    Partition,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Site,
)
from policyfactory.site.values import (
    FLAG,
    HOSTS,
    MEMORY,
    MOMENT,
    MOST_CORES,
    MOST_GPUS,
    NAMES,
    NUMBER,
    NUMBERS,
    SECONDS,
    SHARES,
    TEXT,
    Kind,
    choice,
    count,
    read_value,
)

__all__ = ["SITE_SCHEMA", "dump_site", "read_site", "site_and_digest", "write_site", "written_values"]

SITE_SCHEMA = 1

_MAX_BYTES = 1 << 26
_PAGE = "docs/site.md"

T = TypeVar("T")

_COUNT, _LIMIT = count(), count(unlimited=True)
_WEIGHT = count(0, 2**32 - 1)

# By class, the kind of each field, in the order in which a file has them. Fields of the class Limits are tables.
_FIELDS: dict[type, dict[str, Kind]] = {
    Limits: {
        "jobs": _LIMIT, "submitted": _LIMIT, "nodes": _LIMIT, "cores": _LIMIT, "memory": MEMORY, "gpus": _LIMIT,
    },
    NodeGroup: {
        "names": HOSTS, "cores": count(1, MOST_CORES), "memory": MEMORY, "gpus": count(0, MOST_GPUS), "weight": _WEIGHT,
    },
    Partition: {
        "name": TEXT, "nodes": HOSTS, "default": FLAG, "tier": count(0, 65535), "job_factor": count(0, 65535),
        "max_time": SECONDS, "default_time": SECONDS, "max_nodes": _LIMIT, "min_nodes": _COUNT, "exclusive": FLAG,
        "qos": TEXT, "allowed_accounts": NAMES, "allowed_qos": NAMES, "up": FLAG,
    },
    Qos: {
        "name": TEXT, "priority": _WEIGHT, "max_wall": SECONDS, "usage_factor": NUMBER, "flags": NAMES,
    },
    Association: {
        "account": TEXT, "user": TEXT, "parent": TEXT, "shares": SHARES, "max_wall": SECONDS, "default_qos": TEXT,
        "qos": NAMES,
        "priority": _WEIGHT,
    },
    Priority: {
        "kind": choice(("multifactor", "basic")), "age": _WEIGHT, "fair_share": _WEIGHT, "job_size": _WEIGHT,
        "partition": _WEIGHT, "qos": _WEIGHT, "association": _WEIGHT, "tres": NUMBERS, "max_age": SECONDS,
        "favor_small": FLAG, "calculation_period": SECONDS, "half_life": SECONDS, "flags": NAMES,
    },
    Scheduling: {
        "backfill": FLAG, "select": choice(("cores", "cores+memory", "nodes")), "default_queue_depth": _COUNT,
        "partition_job_depth": _COUNT, "sched_interval": SECONDS, "batch_sched_delay": SECONDS,
        "sched_max_job_start": _COUNT, "bf_interval": SECONDS, "bf_window": SECONDS,
        "bf_resolution": SECONDS, "bf_max_job_test": _COUNT, "bf_max_job_part": _COUNT, "bf_max_job_user": _COUNT,
        "bf_max_job_user_part": _COUNT, "bf_max_job_assoc": _COUNT, "bf_max_job_start": _COUNT, "bf_continue": FLAG,
        "bf_min_prio_reserve": NUMBER, "bf_job_part_count_reserve": _COUNT, "bf_min_age_reserve": SECONDS,
        "default_memory_per_core": MEMORY, "default_memory_per_node": MEMORY,
        "kill_overrun": SECONDS,
    },
    Reservation: {
        "name": TEXT, "nodes": HOSTS, "start": MOMENT, "end": MOMENT, "users": NAMES, "accounts": NAMES,
        "known": MOMENT,
    },
    Outage: {"nodes": HOSTS, "start": MOMENT, "end": MOMENT, "drained": FLAG, "reason": TEXT},
    NotModelled: {"name": TEXT, "value": TEXT, "place": TEXT, "effect": TEXT},
    Site: {"name": TEXT, "enforced": NAMES, "remarks": NAMES},
}  # fmt: skip
_LIMITS = {Qos: ("total", "per_user", "per_account", "per_job"), Association: ("total", "own", "per_job")}
# What a site has one of, and what it has several of.
_TABLES: dict[str, type] = {"priority": Priority, "scheduling": Scheduling}
_LISTS: dict[str, type] = {
    "nodes": NodeGroup, "partitions": Partition, "qos": Qos, "associations": Association,
    "reservations": Reservation, "outages": Outage, "not_modelled": NotModelled,
}  # fmt: skip
# What stands for an entry in a message.
_NAMED = ("name", "names", "account")


def site_and_digest(path: Path | str) -> tuple[Site, str]:
    """Return the site of a file, and the SHA-256 of the bytes that it was read from; errors as for `read_site`."""
    path = Path(path)
    data, content = read_toml(path, limit=_MAX_BYTES, page=_PAGE)
    return _site_of(content, path), sha256_bytes(data)


def read_site(path: Path | str) -> Site:
    """Read a site file.

    Parameters
    ----------
    path : Path or str
        TOML, of schema 1.

    Returns
    -------
    Site
        Which contradicts itself nowhere; a site without a name gets the file's.

    Raises
    ------
    SiteError
        If it is of a newer schema, has an unknown key, a value of another kind, or contradicts itself.
    InputError
        If it cannot be read or is no TOML.
    """
    return site_and_digest(path)[0]


def _site_of(content: dict[str, Any], path: Path) -> Site:
    schema = content.pop("schema", None)
    if schema is None:
        raise SiteError(f"{path}: has no schema; begin the file with: schema = {SITE_SCHEMA}")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise SiteError(f"{path}: schema is {schema!r}; begin the file with: schema = {SITE_SCHEMA}")
    if schema > SITE_SCHEMA:
        raise SiteError(
            f"{path}: is a site file of schema {schema}, and this policyfactory reads up to {SITE_SCHEMA}; "
            "update policyfactory, or make the file again with policyfactory site import"
        )
    # There were sites of PBS once; those of Slurm said so.
    if content.pop("scheduler", "slurm") != "slurm":
        raise SiteError(
            f"{path}: scheduler: only sites of Slurm are read; for OpenPBS see policyfactory export --to pbs"
        )
    _check_keys(content, [*_FIELDS[Site], *_TABLES, *_LISTS], str(path))
    given: dict[str, Any] = {"name": path.stem}
    for name, kind in _FIELDS[Site].items():
        if name in content:
            given[name] = read_value(kind, content[name], f"{path}: {name}")
    for name, table in _TABLES.items():
        if name in content:
            given[name] = _read(table, content[name], f"{path}: {name}")
    for name, entry in _LISTS.items():
        given[name] = _read_list(entry, content.get(name, []), f"{path}: {name}")
    site = Site(**given)
    check_site(site, str(path))
    return site


def dump_site(site: Site) -> str:
    """Return a site as TOML, which `read_site` reads as an equal one; defaults are left out."""
    content: dict[str, Any] = {"schema": SITE_SCHEMA}
    content |= {"name": site.name, **written_values(site)}
    for name in _TABLES:
        content[name] = _table(getattr(site, name)) or None
    for name in _LISTS:
        content[name] = [_table(entry) for entry in getattr(site, name)] or None
    return dump_toml(content)


def write_site(site: Site, path: Path) -> None:
    """Write a site file.

    Raises
    ------
    SiteError
        If it is larger than what would be read again.
    OutputError
        If it cannot be written.
    """
    text = dump_site(site)
    if len(text) > _MAX_BYTES:
        raise SiteError(
            f"{path}: has {len(text):,} characters, more than the {_MAX_BYTES:,} that are read again; leave out old "
            "reservations and outages"
        )
    atomic_write(path, text)


def written_values(entry: Any, *, every: bool = False) -> dict[str, Any]:
    """Return the plain values of a table of a site as TOML has them, without tables inside it.

    Parameters
    ----------
    entry : Site, Partition, Qos, Limits, Priority and the like
        The table.
    every : bool
        Also those that are the defaults.
    """
    defaults = {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(entry)
    }
    return {
        name: kind.write(getattr(entry, name))
        for name, kind in _FIELDS[type(entry)].items()
        if every or not _equal(getattr(entry, name), defaults[name])
    }


def _read_list(entry: type[T], value: Any, where: str) -> tuple[T, ...]:
    if not isinstance(value, list) or len(value) > MOST_ENTRIES:
        raise SiteError(f"{where} is no list of at most {MOST_ENTRIES:,} tables; {_PAGE} shows the layout")
    return tuple(_read(entry, one, f"{where}[{number}]") for number, one in enumerate(value, 1))


def _read(entry: type[T], value: Any, where: str) -> T:
    """Return the table of a class; in messages it has its name, if it has one."""
    if not isinstance(value, Mapping):
        raise SiteError(f"{where} is {shortened(repr(value), 60)}; expected a table; {_PAGE} shows the layout")
    named = next((value[name] for name in _NAMED if isinstance(value.get(name), str)), None)
    if named is not None:
        where = f"{where} ({shortened(named, 40)})"
    fields, limits = _FIELDS[entry], _LIMITS.get(entry, ())
    _check_keys(value, [*fields, *limits], where)
    required = [
        field.name
        for field in dataclasses.fields(entry)  # type: ignore[arg-type]
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    missing = [name for name in required if name not in value]
    if missing:
        raise SiteError(f"{where}: {enumerated(missing)} is not given; {_PAGE} shows the layout")
    given = {name: read_value(kind, value[name], f"{where}: {name}") for name, kind in fields.items() if name in value}
    given |= {name: _read(Limits, value[name], f"{where}: {name}") for name in limits if name in value}
    return entry(**given)


def _check_keys(content: Mapping[str, Any], known: list[str], where: str) -> None:
    for key in content:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise SiteError(f"{where}: there is no key {shortened(key, 40)!r}; {hint}there are {', '.join(known)}")


def _table(entry: Any) -> dict[str, Any]:
    table = written_values(entry)
    for name in _LIMITS.get(type(entry), ()):
        limits = _table(getattr(entry, name))
        if limits:
            table[name] = limits
    return table


def _equal(value: Any, default: Any) -> bool:
    both = isinstance(value, float) and isinstance(default, float) and math.isnan(value) and math.isnan(default)
    return bool(both or value == default)
