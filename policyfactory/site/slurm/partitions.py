"""The partitions of a slurm.conf, with what PartitionName=DEFAULT says of those that follow, and node sets."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.text import shortened
from policyfactory.site.consistent import MOST_OF_A_KIND
from policyfactory.site.hostlist import Named, compress, expand
from policyfactory.site.known import known_settings
from policyfactory.site.model import NotModelled, Partition
from policyfactory.site.origin import Origin, Setting
from policyfactory.site.slurm.conf import Conf, Record
from policyfactory.site.slurm.nodes import Nodes, count_names
from policyfactory.site.slurm.quantities import ENDLESS, hosts, listed, refused, seconds, unsigned, yes

__all__ = ["read_partitions"]

_MOST = MOST_OF_A_KIND["partitions"]
_ENDLESS = 2**32 - 1  # UNLIMITED, in 32 bits
_EXCLUSIVE = {
    "USER": "jobs of others would not start on a node that has a user's jobs",
    "TOPO": "jobs of others would not start on the same block of nodes",
}


def read_partitions(conf: Conf, nodes: Nodes, origin: Origin) -> tuple[list[Partition], list[NotModelled]]:
    """Return the partitions of a slurm.conf, and what is not modelled of them.

    Parameters
    ----------
    conf : Conf
        The file.
    nodes : Nodes
        Its nodes, whose features node sets name.
    origin : Origin
        Is told where they stand.

    Raises
    ------
    SiteError
        If a value is none that Slurm would take (names file and line).
    """
    known = known_settings("partition")
    named = Named()
    sets = _node_sets(conf, nodes, named)
    order = {name: number for number, name in enumerate(name for one in nodes.groups for name in expand(one.names))}
    lists: dict[str, str] = {}  # many a cluster has partitions of the same nodes
    defaults: dict[str, Setting] = {}
    partitions: list[Partition] = []
    missing: list[NotModelled] = []
    for record in conf.records:
        if record.kind != "partitionname":
            continue
        what = f"PartitionName={record.name}"
        for setting in record.settings.values():
            found = known.judge(setting.key, setting.value, setting.place, what)
            missing += [] if found is None else [found]
        if record.name.upper() == "DEFAULT":
            # What nobody knows is said once, and not carried to each partition.
            defaults.update((key, one) for key, one in record.settings.items() if key in known.names)
            continue
        settings = {**defaults, **record.settings}
        missing += _partly(conf, what, settings)
        listed_there = settings["nodes"].value if "nodes" in settings else ""
        if listed_there not in lists:
            lists[listed_there] = _nodes(settings, record, sets, order, nodes.future, named)
        members = lists[listed_there]
        if not members:
            how = "it has no nodes; slurmctld goes on, and its jobs never start"
            origin.remark("corrected", f"{shortened(what)} ({record.place})", how)
        origin.note(f"partition {record.name}", record.place, settings)
        if len(partitions) >= _MOST:
            raise SiteError(f"{record.place}: more than {_MOST:,} partitions; leave out those without jobs")
        partitions.append(_partition(record.name, settings, members))
    return partitions, missing


def _partition(name: str, settings: Mapping[str, Setting], nodes: str) -> Partition:
    def number(key: str, default: int, bits: int = 16) -> int:
        return unsigned(settings[key], bits) if key in settings else default

    # The older key stands for both.
    tier, factor = number("prioritytier", 1), number("priorityjobfactor", 1)
    if "priority" in settings:
        tier = factor = number("priority", 1)
    state = settings["state"].value.upper() if "state" in settings else "UP"
    if not state.startswith(("UP", "DOWN", "DRAIN", "INACTIVE")):
        raise refused(settings["state"], "UP, DOWN, DRAIN or INACTIVE")
    default_time, most = settings.get("defaulttime"), number("maxnodes", _ENDLESS, 32)
    return Partition(
        name,
        nodes,
        default="default" in settings and yes(settings["default"]),
        tier=tier,
        job_factor=factor,
        max_time=seconds(settings["maxtime"]) if "maxtime" in settings else math.inf,
        default_time=(
            seconds(default_time) if default_time is not None and default_time.value.lower() != "none" else math.inf
        ),
        max_nodes=math.inf if most == _ENDLESS else most,
        min_nodes=max(number("minnodes", 1, 32), 1),
        exclusive=_exclusive(settings),
        qos=_named(settings, "qos"),
        allowed_accounts=_allowed(settings, "allowaccounts"),
        allowed_qos=_allowed(settings, "allowqos"),
        # Of one that is drained the jobs that wait still start.
        up=state.startswith(("UP", "DRAIN")),
    )


def _exclusive(settings: Mapping[str, Setting]) -> bool:
    """Say whether jobs get whole nodes; since 26.05 Exclusive says it too."""
    shared = settings.get("oversubscribe", settings.get("shared"))
    if shared is not None and shared.value.upper() == "EXCLUSIVE":
        return True
    return "exclusive" in settings and settings["exclusive"].value.upper() in {"NODE", "TOPO"}


def _named(settings: Mapping[str, Setting], key: str) -> str:
    name = settings[key].value.lower() if key in settings else ""
    return "" if name in {"n/a", "(null)", "none"} else name


def _allowed(settings: Mapping[str, Setting], key: str) -> tuple[str, ...]:
    names = listed(settings[key].value.lower()) if key in settings else ()
    return () if names == ("all",) else names


def _partly(conf: Conf, what: str, settings: Mapping[str, Setting]) -> list[NotModelled]:
    """Return what is modelled for the whole cluster only, or in one of its values."""
    found = []
    setting = settings.get("oversubscribe", settings.get("shared"))
    if setting is not None and setting.value.upper() not in {"NO", "EXCLUSIVE", "FORCE:1", "YES:1"}:
        effect = "several jobs would share the same cores"
        found.append(NotModelled(f"{what} {setting.key}", setting.value, setting.place, effect))
    whose = settings.get("exclusive")
    if whose is not None and whose.value.upper() in _EXCLUSIVE:
        found.append(NotModelled(f"{what} {whose.key}", whose.value, whose.place, _EXCLUSIVE[whose.value.upper()]))
    for key, effect in (
        ("defmempercpu", "jobs that ask for no memory would be given this, and not what the cluster says"),
        ("defmempernode", "jobs that ask for no memory would be given this, and not what the cluster says"),
        ("overtimelimit", "jobs would be stopped so long after their limit, and not as the cluster says"),
    ):
        if key in settings:
            setting = settings[key]
            ours, all_others = setting.value.lower(), conf.value(setting.key, "0").lower()
            if ours not in {all_others, "none"} and not (ours in ENDLESS and all_others in {"0", *ENDLESS}):
                found.append(NotModelled(f"{what} {setting.key}", setting.value, setting.place, effect))
    return found


# Nodes. --------------------------------------------------------------------------------------------------------------


def _node_sets(conf: Conf, nodes: Nodes, named: Named) -> dict[str, tuple[str, ...]]:
    """Return what each node set names: nodes, other node sets, or ALL."""
    sets: dict[str, tuple[str, ...]] = {}
    for record in conf.records:
        if record.kind == "nodeset":
            names: dict[str, None] = {}
            for some in nodes.features[record.settings["feature"].value] if "feature" in record.settings else ():
                count_names(named, len(some), record.place)
                names |= dict.fromkeys(some)
            if "nodes" in record.settings:
                names |= dict.fromkeys(_expanded(record.settings["nodes"], named))
            sets[record.name] = tuple(names)
    return sets


def _expanded(setting: Setting, named: Named) -> tuple[str, ...]:
    if "{" in setting.value:
        raise SiteError(
            f"{setting.place}: {setting.key} {shortened(setting.value, 60)!r} has a function of the topology; "
            "slurmctld alone has the nodes: (scontrol show config; scontrol -o show node; "
            "scontrol -o show partition) > slurm.conf"
        )
    try:
        return named.expand(hosts(setting.value), repeated=True)
    except UsageError as error:
        raise SiteError(f"{setting.place}: {error}") from None


def _nodes(
    settings: Mapping[str, Setting],
    record: Record,
    sets: Mapping[str, tuple[str, ...]],
    order: Mapping[str, int],
    future: Collection[str],
    named: Named,
) -> str:
    """Return the host list of a partition, in the order of the nodes; those that are no part of the cluster yet not."""
    setting = settings.get("nodes")
    if setting is None or setting.value.lower() in {"", "(null)"}:
        return ""
    if setting.value.upper() == "ALL":
        return "ALL"
    names = dict.fromkeys(_expanded(setting, named))
    used: set[str] = set()
    while of_sets := [name for name in names if name in sets and name not in used]:
        used.update(of_sets)
        for name in of_sets:
            del names[name]
            names |= dict.fromkeys(sets[name])
            count_names(named, len(sets[name]), setting.place)
        count_names(named, len(names), setting.place)
    if any(name.upper() == "ALL" and name not in order for name in names):
        count_names(named, len(order), setting.place)
        names = {**dict.fromkeys(order), **{name: None for name in names if name.upper() != "ALL"}}
    for name in names:
        if name not in order and name not in future:
            # Fatal in slurmctld/read_config.c, _build_part_bitmaps, as is a node set that names itself.
            raise SiteError(
                f"{setting.place}: partition {shortened(record.name)} names node {shortened(name)}, which no NodeName "
                "has; add it, or take it out of Nodes"
            )
    return compress(sorted((name for name in names if name in order), key=order.__getitem__))
