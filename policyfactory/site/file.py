"""Site files: a site as TOML, and whether it contradicts itself.

What is not written has the scheduler's default: a small site takes three lines. Contradictions are limits that exclude
each other, names that nothing has, two of what is one.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib.resources
import math
import operator
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.files import atomic_write, dump_toml
from policyfactory.core.inputs import read_toml, sha256_bytes
from policyfactory.core.text import format_duration, shortened
from policyfactory.site.model import (
    Association,
    Contradiction,
    Limits,
    NotModelled,
    Origin,
    Partition,
    Qos,
    Reservation,
    Scheduling,
    Setting,
    Site,
    declared_settings,
)
from policyfactory.site.values import MOST_HOSTS, MOST_NAMED, MOST_WRITTEN, count_hosts, expand
from policyfactory.workload.declared import LONGEST_TEXT, MOST_NAMES, TableReading, written_table
from policyfactory.workload.header import printable

SITE_SCHEMA = 1

_MAX_BYTES = 1 << 26
_PAGE = "docs/site.md"


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
        raise SiteError(f"{path}: schema is {shortened(repr(schema))}; begin the file with: schema = {SITE_SCHEMA}")
    if schema > SITE_SCHEMA:
        raise SiteError(
            f"{path}: is a site file of schema {shortened(str(schema))}, and this policyfactory reads up to "
            f"{SITE_SCHEMA}; update policyfactory, or make the file again with policyfactory site import"
        )
    # There were sites of PBS once; those of Slurm said so.
    if content.pop("scheduler", "slurm") != "slurm":
        raise SiteError(
            f"{path}: scheduler: only sites of Slurm are read; for OpenPBS see policyfactory export --to pbs"
        )
    reading = TableReading(SiteError, f"{_PAGE} shows the layout")
    site = reading.table(Site, {"name": printable(path.stem, 200), **content}, str(path))
    check_site(site, str(path))
    return site


def dump_site(site: Site) -> str:
    """Return a site as TOML, which `read_site` reads as an equal one; defaults are left out."""
    return dump_toml({"schema": SITE_SCHEMA, **written_table(site)})


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


# Contradictions -------------------------------------------------------------------------------------------------------


MOST_ENTRIES = 200_000  # of a list of tables
MOST_OF_A_KIND = {"partitions": 10_000, "qos": 10_000, "associations": 100_000}  # of these lists
_MOST_SHOWN = 5
_TWICE = " twice"
# By what has them, the fields that are names, or several.
_NAMES = {
    "partition": ("name", "qos", "allowed_accounts", "allowed_qos"),
    "QOS": ("name", "flags", "preempts"),
    "association": ("account", "user", "parent", "default_qos", "qos"),
    "reservation": ("name", "users", "accounts"),
}
_MOST_CORES = 2**31  # as of any machine


def check_site(site: Site, where: str, origin: Origin | None = None) -> None:
    """Refuse a site that contradicts itself.

    Parameters
    ----------
    site : Site
        Any.
    where : str
        Where it comes from, for the message.
    origin : Origin, optional
        Of an imported site, where its entries stand in the scheduler's own files.

    Raises
    ------
    SiteError
        With the first contradictions, each with its cure.
    """
    found = list(contradictions(site))
    twice = {contradiction.entry for contradiction in found if contradiction.kind.endswith(_TWICE)}
    # Of two of a name it could not be said which of them is meant.
    found = [
        contradiction
        for contradiction in found
        if contradiction.kind.endswith(_TWICE) or contradiction.entry not in twice
    ]
    if found:
        lines = [
            contradiction.sentence() if origin is None else origin.sentence(contradiction, where)
            for contradiction in found[:_MOST_SHOWN]
        ]
        if len(found) > _MOST_SHOWN:
            lines.append(f"and {len(found) - _MOST_SHOWN:,} more")
        first = f"{where}: {lines[0]}" if origin is None else lines[0]
        raise SiteError("\n".join([first, *(f"    {line}" for line in lines[1:])]))


def contradictions(site: Site) -> Iterator[Contradiction]:
    """Give what contradicts what, with the cure."""
    yield from _long_names(site)
    for name in ("nodes", "partitions", "qos", "associations", "reservations", "outages", "not_modelled"):
        most = MOST_OF_A_KIND.get(name, MOST_ENTRIES)
        if (entries := len(getattr(site, name))) > most:
            yield Contradiction("many", "", f"there are {entries:,} {name}, more than {most:,}", "leave out the oldest")
    found, nodes = _nodes(site)
    yield from found
    if nodes is None:
        return
    if (too_many := _too_many(site)) is not None:
        yield too_many
        return
    if not site.partitions:
        yield Contradiction("no partition", "", "there is no partition", 'add partitions = [{name = "batch"}]')
    yield from _twice("partition", (f"partition {partition.name}" for partition in site.partitions))
    yield from _twice("QOS", (f"QOS {qos.name}" for qos in site.qos))
    defaults = [partition.name for partition in site.partitions if partition.default]
    if len(defaults) > 1:
        text = f"partitions {', '.join(defaults)} are all the default"
        yield Contradiction("defaults", f"partition {defaults[1]}", text, "keep default = true on one")
    known = frozenset(qos.name for qos in site.qos)
    lists: _Lists = {}
    for partition in site.partitions:
        yield from _partition(partition, nodes, known, lists)
        yield from _in_vain(f"partition {partition.name}", "billing", partition.billing, "tres")
    for qos in site.qos:
        yield from _qos(qos)
        yield from _unknown_qos(f"QOS {qos.name}", f"QOS {qos.name}", qos.preempts, known)
        yield from _in_vain(f"QOS {qos.name}", "flags", qos.flags, "qos_flags")
    yield from _in_vain("priority", "flags", site.priority.flags, "flags")
    yield from _in_vain("priority", "tres", site.priority.tres, "tres")
    yield from _associations(site.associations, known)
    yield from _times(site, nodes, lists)
    yield from _scheduling(site.scheduling)


def _long_names(site: Site) -> Iterator[Contradiction]:
    """Say which names are longer than a site file may have them, or too many."""
    cure = "give a shorter one"
    if len(site.name) > LONGEST_TEXT:
        yield Contradiction("name", "", f"{shortened(site.name)} is a name of {len(site.name):,} characters", cure)
    tables = (site.partitions, site.qos, site.associations, site.reservations)
    for (kind, fields), entries in zip(_NAMES.items(), tables, strict=True):
        names_of = operator.attrgetter(*fields)
        for entry in entries:
            for value in names_of(entry):
                names = (value,) if isinstance(value, str) else value
                if len(names) > MOST_NAMES:
                    text = f"{kind}: {shortened(names[0])} and others are {len(names):,} names"
                    yield Contradiction("names", "", text, f"give at most {MOST_NAMES:,}")
                for name in names:
                    if len(name) > LONGEST_TEXT:
                        text = f"{kind}: {shortened(name)} is a name of {len(name):,} characters"
                        yield Contradiction("name", f"{kind} {name}", text, cure)


def _too_many(site: Site) -> Contradiction | None:
    """Say if the host lists of partitions, reservations and outages together would take too long to go through."""
    total = 0
    lists = [partition.nodes for partition in site.partitions]
    lists += [reservation.nodes for reservation in site.reservations]
    lists += [outage.nodes for outage in site.outages]
    for hosts in dict.fromkeys(lists):
        try:
            # All nodes cost little, as no names are made of them.
            total += 1000 if hosts.upper() == "ALL" else count_hosts(hosts)
        except UsageError as error:
            return _hosts_wrong("", error)
        if total > MOST_NAMED:
            text = f"partitions, reservations and outages name more than {MOST_NAMED:,} nodes together"
            return Contradiction("many", "", text, "leave out old reservations and outages")
    return None


def _hosts_wrong(entry: str, error: UsageError) -> Contradiction:
    """Return that a host list is wrong; its error says how, and the cure."""
    text, _, cure = str(error).partition("; ")
    return Contradiction("host list", entry, f"{entry}: {text}" if entry else text, cure or "check the host list")


def _nodes(site: Site) -> tuple[list[Contradiction], frozenset[str] | None]:
    """Return what is wrong with the nodes, and the names of all; None if they cannot be known."""
    if not site.nodes:
        return [
            Contradiction("no node", "", "there is no node", 'add nodes = [{names = "cn[001-100]", cores = 48}]')
        ], None
    names: list[str] = []
    cores = written = 0
    for group in site.nodes:
        try:
            of_group = expand(group.names)
        except UsageError as error:
            return [_hosts_wrong("", error)], None
        if not of_group:
            return [Contradiction("no name", "", "a group of nodes has no names", "give it names")], None
        names += of_group
        written += sum(map(len, of_group))
        cores += group.cores * len(of_group)
        if group.cores % group.threads:
            text = f"nodes {shortened(group.names)}: {group.cores} cores are no multiple of threads, {group.threads}"
            return [Contradiction("threads", "", text, "count each thread of a core in cores")], None
        if written > MOST_WRITTEN:
            text = f"the names of the nodes have more than {MOST_WRITTEN:,} characters together"
            return [Contradiction("many", "", text, "shorten the names")], None
        if len(names) > MOST_HOSTS:
            return [
                Contradiction("many", "", f"there are more than {MOST_HOSTS:,} nodes", "check the host lists")
            ], None
    found = list(_twice("node", (f"node {name}" for name in names), cure="name each node in one group"))
    if cores > _MOST_CORES:
        text = f"the nodes have {cores:,} cores in all, more than {_MOST_CORES:,}"
        found.append(Contradiction("cores", "", text, "check their cores"))
    return found, frozenset(names)


def _twice(what: str, entries: Iterable[str], cure: str = "give each its own name") -> Iterator[Contradiction]:
    for entry, times in Counter(entries).items():
        if times > 1:
            yield Contradiction(f"{what}{_TWICE}", entry, f"{entry} is there {times} times", cure)


def _partition(
    partition: Partition, nodes: frozenset[str], known: frozenset[str], lists: _Lists
) -> Iterator[Contradiction]:
    entry = f"partition {partition.name}"
    size = len(nodes)
    if partition.nodes.upper() != "ALL":
        size, found = _hosts(entry, partition.nodes, nodes, lists)
        yield from found
    if partition.min_nodes > partition.max_nodes:
        most = f"{partition.max_nodes:.0f}"
        text = f"{entry}: min_nodes {partition.min_nodes} is more than max_nodes {most}; no job fits both"
        yield Contradiction("fewest", entry, text, "lower min_nodes or raise max_nodes")
    elif partition.min_nodes > max(size, 1):
        text = f"{entry}: min_nodes {partition.min_nodes} is more than its nodes, {size:,}; no job fits"
        yield Contradiction("few", entry, text, "lower min_nodes or add nodes")
    if math.isfinite(partition.default_time) and partition.default_time > partition.max_time:
        most = format_duration(partition.max_time)
        text = f"{entry}: default_time {format_duration(partition.default_time)} is more than max_time {most}"
        yield Contradiction("default time", entry, text, "lower the default or raise the limit")
    if not partition.max_time > 0:
        yield Contradiction("no time", entry, f"{entry}: max_time is 0, no job fits", "leave it out for no limit")
    if partition.default_memory_per_core and partition.default_memory_per_node:
        text = f"{entry}: default_memory_per_core and default_memory_per_node exclude each other"
        yield Contradiction("memory", entry, text, "give one")
    yield from _unknown_qos(entry, entry, (partition.qos, *partition.allowed_qos), known)


def _unknown_qos(entry: str, what: str, names: Iterable[str], known: frozenset[str]) -> Iterator[Contradiction]:
    # Without any QOS the file does not say which there are.
    for name in names if known else ():
        if name and name not in known:
            yield Contradiction("no QOS", entry, f"{what} names QOS {name}, which is not there", "add it to qos")


# By host list, how many nodes it has and which of them are not there: one that is written again costs nothing.
_Lists = dict[str, tuple[int, list[str]]]


def _hosts(entry: str, hosts: str, nodes: frozenset[str], lists: _Lists) -> tuple[int, list[Contradiction]]:
    """Return how many nodes a host list has, and what is wrong with it."""
    if hosts not in lists:
        try:
            names = expand(hosts)
        except UsageError as error:
            return 0, [_hosts_wrong(entry, error)]
        lists[hosts] = len(names), [name for name in names if name not in nodes]
    size, missing = lists[hosts]
    if not missing:
        return size, []
    more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
    text = f"{entry} names node {missing[0]}{more}, which is not there"
    return size, [Contradiction("no node", entry, text, "add it to the nodes, or check the spelling")]


def _qos(qos: Qos) -> Iterator[Contradiction]:
    entry = f"QOS {qos.name}"
    if qos.usage_factor < 0:
        text = f"{entry}: usage_factor {qos.usage_factor} is below 0"
        yield Contradiction("factor", entry, text, "give 0 for jobs that do not count")
    yield from _of_nodes(entry, qos.per_node)
    for name in ("jobs", "nodes", "cores", "memory", "gpus"):
        job, total = getattr(qos.per_job, name), getattr(qos.total, name)
        if math.isfinite(job) and job > total:
            text = f"{entry}: a job may have {name} {job:.0f}, and all jobs together {total:.0f}"
            yield Contradiction("job above all", entry, text, "lower per_job or raise total")


def _of_nodes(entry: str, limits: Limits) -> Iterator[Contradiction]:
    for name in ("jobs", "submitted", "nodes"):
        if math.isfinite(getattr(limits, name)):
            text = f"{entry}: per_node has {name}, which has no effect"
            yield Contradiction("in vain", entry, text, "take it out, there are cores, memory, gpus")


def _in_vain(entry: str, field: str, words: Iterable[str], kind: str) -> Iterator[Contradiction]:
    """Say which words of a field nothing would read."""
    known = known_settings(kind)
    for word in words:
        if word.lower() not in known.modelled | known.silent:
            there = ", ".join(known.names[name] for name in sorted(known.modelled))
            text = f"{entry}: {field} has {word}, which has no effect"
            yield Contradiction("in vain", entry, text, f"take it out, there are {there}")


def _associations(associations: tuple[Association, ...], known: frozenset[str]) -> Iterator[Contradiction]:
    accounts = {association.account: association for association in associations if not association.user}
    entries = (association.entry for association in associations)
    yield from _twice("association", entries)
    for association in associations:
        entry = association.entry
        what = (
            f"user {association.user} of account {association.account}"
            if association.user
            else f"account {association.account}"
        )
        for name, words in (
            (association.account if association.user else "", "the account is"),
            (association.parent, f"its parent {association.parent} is"),
        ):
            if name and name not in accounts and name != "root":
                cure = f'add {{account = "{name}"}} to associations'
                yield Contradiction("no account", entry, f"{what}: {words} not there", cure)
        yield from _unknown_qos(entry, what, (association.default_qos, *association.qos), known)
        yield from _of_nodes(entry, association.per_node)
        if association.default_qos and association.qos and association.default_qos not in association.qos:
            text = f"{what}: its default QOS {association.default_qos} is none of those that it may use"
            yield Contradiction("default QOS", entry, text, "add it to qos")
    yield from _circles(accounts)


def _circles(accounts: dict[str, Association]) -> Iterator[Contradiction]:
    ends: set[str] = {"", "root"}
    for name in accounts:
        path: list[str] = []
        account = name
        while account not in ends and account in accounts and account not in path:
            path.append(account)
            account = accounts[account].parent
        if account in path:
            text = f"accounts {' > '.join([*path[path.index(account) :], account])} are each other's parents"
            yield Contradiction("circle", f"association {account}", text, "break the circle")
        ends.update(path)


def _times(site: Site, nodes: frozenset[str], lists: _Lists) -> Iterator[Contradiction]:
    for kind, entries in (
        ("reservation", ((f"reservation {reservation.name}", reservation) for reservation in site.reservations)),
        ("outage", ((f"outage of {outage.nodes[:40]}", outage) for outage in site.outages)),
    ):
        for entry, period in entries:
            if isinstance(period, Reservation):
                yield from _in_vain(entry, "flags", period.flags, "reservation")
            if period.nodes.upper() != "ALL":
                yield from _hosts(entry, period.nodes, nodes, lists)[1]
            if not period.end > period.start:
                yield Contradiction(
                    f"{kind} ends", entry, f"{entry} ends at or before its start", "correct one of the two"
                )


def _scheduling(scheduling: Scheduling) -> Iterator[Contradiction]:
    for name in ("bf_interval", "bf_window", "bf_resolution"):
        if not 0 < getattr(scheduling, name) < math.inf:
            yield Contradiction(
                "no time", "", f"scheduling: {name} is {getattr(scheduling, name)}", "it is a time above 0"
            )
    for name in ("default_queue_depth", "bf_max_job_test"):
        if not getattr(scheduling, name):
            cure = f"give at least 1, or leave it out for {getattr(Scheduling(), name)}"
            text = f"scheduling: {name} is 0, and a pass would look at no job"
            yield Contradiction("no depth", "scheduling", text, cure)
    if scheduling.bf_window < scheduling.bf_resolution:
        text = "scheduling: bf_window is shorter than bf_resolution"
        yield Contradiction("window", "scheduling", text, "raise the one or lower the other")
    if scheduling.default_memory_per_core and scheduling.default_memory_per_node:
        text = "scheduling: default_memory_per_core and default_memory_per_node exclude each other"
        yield Contradiction("memory", "", text, "give one")


# Which settings of Slurm are modelled ---------------------------------------------------------------------------------

# Which settings of Slurm are modelled, which change nobody's start, and what the others would change.


UNKNOWN = "unknown to policyfactory: check its spelling, or what it does in your version of the scheduler"

_LONGEST = 1000  # characters that a reader looks at
_LONGEST_KEY = 80
_MOST_HINTS = 100
_MOST_ALIKE = 100
_MOST_EFFECTS = 200
_OTHERS = "of many kinds: look at these lines"
_HARMLESS = frozenset({"", "(null)", "none", "no", "off", "n/a", "false"})


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a file or a record.

    Parameters
    ----------
    names : mapping of str to str
        As Slurm writes them, by lower case.
    modelled, silent : frozenset of str
        In lower case.
    effects : mapping of str to str
        By lower case, what a setting that matters would change.
    harmless : mapping of str to frozenset of str
        Values of these that change nothing.
    """

    names: Mapping[str, str]
    modelled: frozenset[str]
    silent: frozenset[str]
    effects: Mapping[str, str]
    harmless: Mapping[str, frozenset[str]]

    def judge(self, settings: Iterable[Setting], origin: Origin, of: str = "") -> int:
        """Keep with an origin what of some settings is neither modelled nor changes nothing.

        Parameters
        ----------
        settings : iterable of Setting
            As they stand there.
        origin : Origin
            Of the site.
        of : str
            What they belong to, for their names: ``PartitionName=gpu``.

        Returns
        -------
        int
            How many of them nobody knows.
        """
        unknown = 0
        for setting in settings:
            lower, short = setting.key.lower(), setting.value[:_LONGEST].strip().lower()
            if lower in self.modelled or lower in self.silent:
                continue
            effect = self.effects.get(lower, UNKNOWN)
            unknown += effect == UNKNOWN
            if effect == UNKNOWN or not (
                short in _HARMLESS or short.endswith("/none") or short in self.harmless[lower]
            ):
                name = f"{of} {self.names.get(lower, setting.key)}".strip()[:_LONGEST]
                origin.differs(Setting(name, setting.value[:_LONGEST], setting.location), effect)
        return unknown


def with_hints(missing: Iterable[NotModelled]) -> tuple[NotModelled, ...]:
    """Return what is not modelled with the nearest name beside an unknown one; of one effect the first hundred.

    A name is compared with all that Slurm has: of a million that nobody knows this took more than five minutes.
    """
    alike: Counter[str] = Counter()
    first_left: dict[str, NotModelled] = {}
    kinds = (kind for kind, table in _table().items() if "modelled" in table)
    names = functools.reduce(operator.or_, (dict(known_settings(kind).names) for kind in kinds))
    hints: dict[str, str] = {}
    found = []
    for setting in missing:
        effect = setting.effect if setting.effect in alike or len(alike) < _MOST_EFFECTS else _OTHERS
        alike[effect] += 1
        if alike[effect] > _MOST_ALIKE:
            first_left.setdefault(effect, setting)
            continue
        key = setting.name.rpartition(" ")[2].lower()
        if setting.effect == UNKNOWN and key not in names and (key in hints or len(hints) < _MOST_HINTS):
            if key not in hints:
                near = difflib.get_close_matches(key[:_LONGEST_KEY], names, n=1, cutoff=0.8)
                hints[key] = f" (did you mean {names[near[0]]}?)" if near else ""
            setting = dataclasses.replace(setting, effect=f"{UNKNOWN}{hints[key]}")  # noqa: PLW2901 (the same with its hint)
        found.append(setting)
    for effect, setting in first_left.items():
        more = f"and {alike[effect] - _MOST_ALIKE:,} more, from {setting.name} on"
        found.append(NotModelled(more[:_LONGEST], "", setting.place, effect))
    return tuple(found)


@functools.cache
def _table() -> Mapping[str, Any]:
    file = importlib.resources.files(f"{__package__}.slurm").joinpath("keys.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


@functools.cache
def known_settings(kind: str) -> Settings:
    """Return the settings of a kind, a table of ``keys.toml``."""
    table = _table()[kind]
    modelled = [*table["modelled"].split(), *declared_settings().get(kind, ())]
    silent, matters = table["silent"].split(), table.get("matters", {})
    return Settings(
        {name.lower(): name for name in (*modelled, *silent, *matters)},
        frozenset(name.lower() for name in modelled),
        frozenset(name.lower() for name in silent),
        {name.lower(): entry["effect"] for name, entry in matters.items()},
        {name.lower(): frozenset(entry.get("harmless", ())) for name, entry in matters.items()},
    )
