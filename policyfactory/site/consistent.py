"""Whether a site contradicts itself: limits that exclude each other, names that nothing has, two of what is one."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Iterator

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.text import shortened
from policyfactory.core.units import format_duration
from policyfactory.site.hostlist import MOST_HOSTS, MOST_NAMED, count_hosts, expand
from policyfactory.site.known import known_settings
from policyfactory.site.model import Association, Partition, Qos, Scheduling, Site
from policyfactory.site.values import LONGEST_TEXT, MOST_NAMES

__all__ = ["MOST_ENTRIES", "check_site", "contradictions"]

MOST_ENTRIES = 500_000  # of a list of tables
_MOST_SHOWN = 5
_LONGEST_LINE = 400
# By what has them, the fields that are names, or several.
_NAMES = {
    "partition": ("name", "qos", "allowed_accounts", "allowed_qos"),
    "QOS": ("name", "flags"),
    "association": ("account", "user", "parent", "default_qos", "qos"),
    "reservation": ("name", "users", "accounts"),
}
_MOST_CORES = 2**31  # as of any machine


def check_site(site: Site, where: str) -> None:
    """Refuse a site that contradicts itself.

    Parameters
    ----------
    site : Site
        Any.
    where : str
        Where it comes from, for the message.

    Raises
    ------
    SiteError
        With the first contradictions, each with its cure.
    """
    found = list(contradictions(site))
    if found:
        rest = len(found) - _MOST_SHOWN
        lines = [shortened(line, _LONGEST_LINE) for line in found[:_MOST_SHOWN]] + (
            [f"and {rest:,} more"] if rest > 0 else []
        )
        raise SiteError("\n".join([f"{where}: {lines[0]}", *(f"    {line}" for line in lines[1:])]))


def contradictions(site: Site) -> Iterator[str]:
    """Give in words what contradicts what, and the cure."""
    yield from _long_names(site)
    for name in ("nodes", "partitions", "qos", "associations", "reservations", "outages", "not_modelled"):
        if len(getattr(site, name)) > MOST_ENTRIES:
            yield f"there are {len(getattr(site, name)):,} {name}, more than {MOST_ENTRIES:,}; leave out the oldest"
    found, nodes = _nodes(site)
    yield from found
    if nodes is None:
        return
    if (too_many := _too_many(site)) is not None:
        yield too_many
        return
    if not site.partitions:
        yield 'there is no partition; add partitions = [{name = "batch"}]'
    yield from _twice("partition", (one.name for one in site.partitions))
    yield from _twice("QOS", (one.name for one in site.qos))
    defaults = [one.name for one in site.partitions if one.default]
    if len(defaults) > 1:
        yield f"partitions {', '.join(defaults)} are all the default; keep default = true on one"
    known = frozenset(one.name for one in site.qos)
    for partition in site.partitions:
        yield from _partition(partition, nodes, known)
    for qos in site.qos:
        yield from _qos(qos)
        yield from _in_vain(f"QOS {qos.name}", "flags", qos.flags, "qos_flags")
    yield from _in_vain("priority", "flags", site.priority.flags, "flags")
    yield from _in_vain("priority", "tres", site.priority.tres, "tres")
    yield from _associations(site.associations, known)
    yield from _times(site, nodes)
    yield from _scheduling(site.scheduling)


def _long_names(site: Site) -> Iterator[str]:
    """Say which names are longer than a site file may have them."""
    tables = (site.partitions, site.qos, site.associations, site.reservations)
    if len(site.name) > LONGEST_TEXT:
        yield f"{site.name} is a name of {len(site.name):,} characters; give a shorter one"
    for (kind, fields), entries in zip(_NAMES.items(), tables, strict=True):
        names_of = operator.attrgetter(*fields)
        for entry in entries:
            for value in names_of(entry):
                names = (value,) if isinstance(value, str) else value
                if len(names) > MOST_NAMES:
                    yield f"{kind}: {names[0]} and others are {len(names):,} names; give at most {MOST_NAMES:,}"
                for name in names:
                    if len(name) > LONGEST_TEXT:
                        yield f"{kind}: {name} is a name of {len(name):,} characters; give a shorter one"


def _too_many(site: Site) -> str | None:
    """Say if the host lists of partitions, reservations and outages together would take too long to go through."""
    total = 0
    lists = [one.nodes for one in site.partitions]
    lists += [one.nodes for one in site.reservations]
    lists += [one.nodes for one in site.outages]
    for hosts in lists:
        try:
            # All nodes cost little, as no names are made of them.
            total += 1000 if hosts.upper() == "ALL" else count_hosts(hosts)
        except UsageError as error:
            return f"{error}"
        if total > MOST_NAMED:
            return (
                f"partitions, reservations and outages name more than {MOST_NAMED:,} nodes together; leave out old "
                "reservations and outages"
            )
    return None


def _nodes(site: Site) -> tuple[list[str], frozenset[str] | None]:
    """Return what is wrong with the nodes, and the names of all; None if they cannot be known."""
    if not site.nodes:
        return ['there is no node; add nodes = [{names = "cn[001-100]", cores = 48}]'], None
    names: list[str] = []
    cores = 0
    for group in site.nodes:
        try:
            of_group = expand(group.names)
        except UsageError as error:
            return [str(error)], None
        if not of_group:
            return ["a group of nodes has no names; give it names"], None
        names += of_group
        cores += group.cores * len(of_group)
        if len(names) > MOST_HOSTS:
            return [f"there are more than {MOST_HOSTS:,} nodes; check the host lists"], None
    found = list(_twice("node", names, cure="name each node in one group"))
    if cores > _MOST_CORES:
        found.append(f"the nodes have {cores:,} cores in all, more than {_MOST_CORES:,}; check their cores")
    return found, frozenset(names)


def _twice(what: str, names: Iterable[str], cure: str = "give each its own name") -> Iterator[str]:
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{what} {name} is there {times} times; {cure}"


def _partition(one: Partition, nodes: frozenset[str], known: frozenset[str]) -> Iterator[str]:
    what = f"partition {one.name}"
    if one.nodes.upper() != "ALL":
        yield from _hosts(what, one.nodes, nodes)
    if one.min_nodes > one.max_nodes:
        yield f"{what}: min_nodes {one.min_nodes} is more than max_nodes {one.max_nodes:.0f}; no job fits both"
    if math.isfinite(one.default_time) and one.default_time > one.max_time:
        yield (
            f"{what}: default_time {format_duration(one.default_time)} is more than max_time "
            f"{format_duration(one.max_time)}; lower the default or raise the limit"
        )
    if not one.max_time > 0:
        yield f"{what}: max_time is 0, no job fits; leave it out for no limit"
    # Without any QOS the file does not say which there are.
    for name in (one.qos, *one.allowed_qos) if known else ():
        if name and name not in known:
            yield f"{what} names QOS {name}, which is not there; add it to qos"


def _hosts(what: str, hosts: str, nodes: frozenset[str]) -> Iterator[str]:
    try:
        names = expand(hosts)
    except UsageError as error:
        yield f"{what}: {error}"
        return
    missing = [name for name in names if name not in nodes]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        yield f"{what} names node {missing[0]}{more}, which is not there; add it to the nodes, or check the spelling"


def _qos(one: Qos) -> Iterator[str]:
    if one.usage_factor < 0:
        yield f"QOS {one.name}: usage_factor {one.usage_factor} is below 0; give 0 for jobs that do not count"
    for name in ("jobs", "nodes", "cores", "memory", "gpus"):
        job, total = getattr(one.per_job, name), getattr(one.total, name)
        if math.isfinite(job) and job > total:
            yield (
                f"QOS {one.name}: a job may have {name} {job:.0f}, and all jobs together {total:.0f}; lower per_job "
                "or raise total"
            )


def _in_vain(what: str, field: str, words: Iterable[str], kind: str) -> Iterator[str]:
    """Say which words of a field nothing would read."""
    known = known_settings("slurm", kind)
    for word in words:
        if word.lower() not in known.modelled | known.silent:
            there = ", ".join(known.names[name] for name in sorted(known.modelled))
            yield f"{what}: {field} has {word}, which has no effect; take it out, there are {there}"


def _associations(associations: tuple[Association, ...], known: frozenset[str]) -> Iterator[str]:
    accounts = {one.account: one for one in associations if not one.user}
    yield from _twice("association", (f"{one.account}/{one.user}" if one.user else one.account for one in associations))
    for one in associations:
        what = f"user {one.user} of account {one.account}" if one.user else f"account {one.account}"
        if one.user and one.account not in accounts and one.account != "root":
            yield f'{what}: the account is not there; add {{account = "{one.account}"}} to associations'
        if one.parent and one.parent not in accounts and one.parent != "root":
            yield f'{what}: its parent {one.parent} is not there; add {{account = "{one.parent}"}} to associations'
        for name in (one.default_qos, *one.qos) if known else ():
            if name and name not in known:
                yield f"{what} names QOS {name}, which is not there; add it to qos"
        if one.default_qos and one.qos and one.default_qos not in one.qos:
            yield f"{what}: its default QOS {one.default_qos} is none of those that it may use; add it to qos"
    yield from _circles(accounts)


def _circles(accounts: dict[str, Association]) -> Iterator[str]:
    ends: set[str] = {"", "root"}
    for name in accounts:
        path: list[str] = []
        at = name
        while at not in ends and at in accounts and at not in path:
            path.append(at)
            at = accounts[at].parent
        if at in path:
            yield f"accounts {' > '.join([*path[path.index(at) :], at])} are each other's parents; break the circle"
        ends.update(path)


def _times(site: Site, nodes: frozenset[str]) -> Iterator[str]:
    for one in site.reservations:
        what = f"reservation {one.name}"
        if one.nodes.upper() != "ALL":
            yield from _hosts(what, one.nodes, nodes)
        if not one.end > one.start:
            yield f"{what} ends at or before its start; correct one of the two"
    for outage in site.outages:
        what = f"outage of {outage.nodes[:40]}"
        if outage.nodes.upper() != "ALL":
            yield from _hosts(what, outage.nodes, nodes)
        if not outage.end > outage.start:
            yield f"{what} ends at or before its start; correct one of the two"


def _scheduling(one: Scheduling) -> Iterator[str]:
    for name in ("bf_interval", "bf_window", "bf_resolution"):
        if not 0 < getattr(one, name) < math.inf:
            yield f"scheduling: {name} is {getattr(one, name)}; it is a time above 0"
    if one.bf_window < one.bf_resolution:
        yield "scheduling: bf_window is shorter than bf_resolution; raise the one or lower the other"
    if one.default_memory_per_core and one.default_memory_per_node:
        yield "scheduling: default_memory_per_core and default_memory_per_node exclude each other; give one"
