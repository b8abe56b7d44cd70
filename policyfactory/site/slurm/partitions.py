"""The partitions of a slurm.conf, with what PartitionName=DEFAULT says of those that follow, and node sets."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.text import shortened
from policyfactory.site.hostlist import Named, compress, expand
from policyfactory.site.known import known_settings
from policyfactory.site.model import NotModelled, Partition
from policyfactory.site.origin import Origin, Setting
from policyfactory.site.slurm.conf import Conf, Record
from policyfactory.site.slurm.nodes import Nodes
from policyfactory.site.slurm.quantities import ENDLESS, listed, refused, seconds, whole, yes

__all__ = ["read_partitions"]

_FEW = 65535
_MOST_NODES = 1 << 31


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
    known = known_settings("slurm", "partition")
    named = Named()
    sets = _node_sets(conf, nodes, named)
    order = {name: number for number, name in enumerate(name for one in nodes.groups for name in expand(one.names))}
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
            defaults.update(record.settings)
            continue
        settings = {**defaults, **record.settings}
        missing += _partly(conf, what, settings)
        hosts = _nodes(settings, record, sets, order, nodes.future, named)
        origin.note(f"partition {record.name}", record.place, settings)
        partitions.append(_partition(record.name, settings, hosts))
    return partitions, missing


def _partition(name: str, settings: Mapping[str, Setting], nodes: str) -> Partition:
    def number(key: str, default: int, high: int = _FEW) -> int:
        return whole(settings[key], 0, high) if key in settings else default

    # The older key stands for both.
    tier, factor = number("prioritytier", 1), number("priorityjobfactor", 1)
    if "priority" in settings:
        tier = factor = number("priority", 1)
    state = settings["state"].value.upper() if "state" in settings else "UP"
    if not state.startswith(("UP", "DOWN", "DRAIN", "INACTIVE")):
        raise refused(settings["state"], "UP, DOWN, DRAIN or INACTIVE")
    share = _shared(settings)
    default_time, most = settings.get("defaulttime"), settings.get("maxnodes")
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
        max_nodes=(math.inf if most is None or most.value.lower() in ENDLESS else whole(most, 0, _MOST_NODES)),
        min_nodes=max(number("minnodes", 1, _MOST_NODES), 1),
        exclusive=share == "EXCLUSIVE",
        qos=_named(settings, "qos"),
        allowed_accounts=_allowed(settings, "allowaccounts"),
        allowed_qos=_allowed(settings, "allowqos"),
        # Of one that is drained the jobs that wait still start.
        up=state.startswith(("UP", "DRAIN")),
    )


def _shared(settings: Mapping[str, Setting]) -> str:
    setting = settings.get("oversubscribe", settings.get("shared"))
    return "NO" if setting is None else setting.value.upper()


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
    """Return the names of the nodes of each node set."""
    sets: dict[str, tuple[str, ...]] = {}
    for record in conf.records:
        if record.kind == "nodeset":
            names: list[str] = []
            if "feature" in record.settings:
                names += nodes.features.get(record.settings["feature"].value, [])
                _counted(named, len(names), record.place)
            if "nodes" in record.settings:
                names += _expanded(record.settings["nodes"].value, record.settings["nodes"].place, named)
            sets[record.name] = tuple(dict.fromkeys(names))
    return sets


def _expanded(text: str, place: str, named: Named) -> tuple[str, ...]:
    try:
        return named.expand(text, repeated=True)
    except UsageError as error:
        raise SiteError(f"{place}: {error}") from None


def _counted(named: Named, names: int, place: str) -> None:
    try:
        named.add(names)
    except UsageError as error:
        raise SiteError(f"{place}: {error}") from None


def _nodes(
    settings: Mapping[str, Setting],
    record: Record,
    sets: Mapping[str, tuple[str, ...]],
    order: Mapping[str, int],
    future: Collection[str],
    named: Named,
) -> str:
    """Return the host list of a partition, in the order of the nodes; those that are no part of the cluster yet not."""
    if "nodes" not in settings or settings["nodes"].value.lower() in {"", "(null)"}:
        raise SiteError(f"{record.place}: partition {shortened(record.name)} has no Nodes; name them, or take it out")
    setting = settings["nodes"]
    if setting.value.upper() == "ALL":
        return "ALL"
    names: dict[str, None] = {}
    for name in _expanded(setting.value, setting.place, named):
        of_name = tuple(order) if name.upper() == "ALL" and name not in order else sets.get(name, (name,))
        _counted(named, len(of_name), setting.place)
        names |= dict.fromkeys(of_name)
    for name in names:
        if name not in order and name not in future:
            raise SiteError(
                f"{setting.place}: partition {shortened(record.name)} names node {shortened(name)}, which no NodeName "
                "has; add it, or take it out of Nodes"
            )
    return compress(sorted((name for name in names if name in order), key=order.__getitem__))
