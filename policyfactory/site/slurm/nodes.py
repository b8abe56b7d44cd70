"""The nodes of a slurm.conf: NodeName and DownNodes, with what NodeName=DEFAULT says of those that follow."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.text import enumerated, shortened
from policyfactory.site.file import MOST_OF_A_KIND, known_settings
from policyfactory.site.model import NodeGroup, Origin, Outage, Partition, Setting
from policyfactory.site.slurm.conf import (
    ENDLESS,
    Conf,
    ConfRecord,
    gpus,
    gres,
    hosts,
    listed,
    refused,
    seconds,
    unsigned,
    yes,
)
from policyfactory.site.slurm.settings import NOT_HELD, job_defaults, weights_of
from policyfactory.site.values import MOST_CORES, MOST_GPUS, MOST_HOSTS, MOST_WRITTEN, Named, compress, expand

_GONE = ("down", "drain", "fail")
_MOST_FEATURES = 100  # of a node
_LONGEST_FEATURES = 10_000  # characters
_ONE = "slurmctld resets it to 1, and so do we"
_UNCOUNTED = "slurmctld cannot count it and leaves it out, and so do we"


@dataclasses.dataclass(slots=True)
class Nodes:
    """The nodes of a site, and what is not modelled of them.

    Parameters
    ----------
    groups : list of NodeGroup
        In the order of the file.
    outages : list of Outage
        Nodes whose State is DOWN, DRAIN or FAIL.
    features : dict of str to list of tuple of str
        Names of the nodes of each feature that a node set names, by the lines that have it.
    future : set of str
        Names of the nodes whose State is FUTURE, or that have no core for jobs: they are in no group.
    seen : set of str
        Names of all of them.
    away : list of str
        Of a report, names of those that are down or drained now.
    written : int
        Their characters.
    """

    groups: list[NodeGroup] = dataclasses.field(default_factory=list)
    outages: list[Outage] = dataclasses.field(default_factory=list)
    features: dict[str, list[tuple[str, ...]]] = dataclasses.field(default_factory=dict)
    future: set[str] = dataclasses.field(default_factory=set)
    seen: set[str] = dataclasses.field(default_factory=set)
    away: list[str] = dataclasses.field(default_factory=list)
    written: int = 0


def read_nodes(conf: Conf, origin: Origin) -> Nodes:
    """Return the nodes of a slurm.conf.

    Parameters
    ----------
    conf : Conf
        The file.
    origin : Origin
        Is told where DownNodes stands, what slurmctld corrects, and what is not modelled.

    Raises
    ------
    SiteError
        If a value is none that Slurm would take (names file and line).
    """
    nodes, known = Nodes(), known_settings("node")
    defaults: dict[str, Setting] = {}
    resources: list[dict[str, int]] = []
    named: dict[str, None] = {}
    for record in conf.records:
        if record.kind == "nodeset" and "feature" in record.settings:
            nodes.features[record.settings["feature"].value] = []
    for record in conf.records:
        if record.kind == "nodename":
            known.judge(record.settings.values(), origin, f"NodeName={record.name[:40]}")
            if record.name.upper() == "DEFAULT":
                # What nobody knows is said once, and not carried to each line.
                defaults.update((key, setting) for key, setting in record.settings.items() if key in known.names)
            else:
                settings = {**defaults, **record.settings}
                resources.append(_add_nodes(nodes, record, settings, origin, reported=conf.reported))
                if len(named) < _MOST_FEATURES:
                    named |= dict.fromkeys(_features(settings))
        elif record.kind == "frontendname" and record.name.upper() != "DEFAULT":
            origin.differs(
                record.setting("FrontendName"), "jobs would be launched from front end nodes, which can be down"
            )
    _down_nodes(conf, nodes, origin)
    location = next((record.location for record in conf.records if record.kind == "nodename"), "")
    types = sorted({name for counts in resources for name in counts if name.startswith("gpu:")})
    if len(types) > 1:
        effect = "jobs that ask for one type of GPU would wait for nodes that have it"
        origin.differs(Setting("NodeName Gres", ", ".join(types), location), effect)
    if named:
        effect = "jobs with --constraint would wait for nodes that have these features"
        origin.differs(Setting("NodeName Features", ",".join(named)[:200], location), effect)
    most = conf.settings.get("maxnodecount")
    if nodes.seen and most is not None and not conf.reported and unsigned(most, 32) > len(nodes.seen):
        origin.differs(most, "nodes that register themselves would be there too: scontrol -o show node has them")
    nodes.groups = _joined(nodes.groups)
    return nodes


def _add_nodes(
    nodes: Nodes, record: ConfRecord, settings: Mapping[str, Setting], origin: Origin, *, reported: bool
) -> dict[str, int]:
    """Add the nodes of a line; return their generic resources."""
    what, listing = f"NodeName={record.name[:40]}", hosts(record.name)
    try:
        names = expand(listing)
    except UsageError as error:
        raise SiteError(f"{record.location}: {error}") from None
    again = next((name for name in names if name in nodes.seen), None)
    if again is not None:
        # Fatal in read_config.c, _push_to_hashtbls.
        raise SiteError(
            f"{record.location}: node {shortened(again)} is there a second time; name each node on one line"
        )
    nodes.seen.update(names)
    nodes.written += sum(map(len, names))
    if len(nodes.seen) > MOST_HOSTS:
        raise SiteError(f"{record.location}: more than {MOST_HOSTS:,} nodes; check the host lists")
    if nodes.written > MOST_WRITTEN:
        raise SiteError(
            f"{record.location}: more than {MOST_WRITTEN:,} characters of names of nodes; shorten the names"
        )
    state = settings["state"].value.lower() if "state" in settings else "unknown"
    if state.startswith("future"):
        nodes.future.update(names)
        future = Setting("State", "FUTURE", record.location)
        origin.differs(future, "the nodes are left out: they are no part of the cluster yet", what)
        return {}
    counts, bad = gres(settings["gres"]) if "gres" in settings else ({}, [])
    for entry in bad:
        origin.correct(dataclasses.replace(settings["gres"], value=entry), what, _UNCOUNTED)
    if gpus(counts) > MOST_GPUS:
        raise refused(settings["gres"], f"at most {MOST_GPUS:,} GPUs of a node")
    others = [name for name in counts if name.partition(":")[0] != "gpu"]
    if others:
        effect = f"jobs that ask for {shortened(enumerated(others), 200)} would wait for it"
        origin.differs(dataclasses.replace(settings["gres"], key="Gres"), effect, what)
    threads = _one_or_more(origin, what, settings, "threadspercore")
    cores, threads = _cores(origin, what, settings, threads, reported=reported)
    if cores > MOST_CORES:
        raise SiteError(
            f"{record.location}: {what} has {cores:,} cores, more than the {MOST_CORES:,} of a node; check its "
            "Sockets, CoresPerSocket and ThreadsPerCore"
        )
    if cores < 1:
        nodes.future.update(names)
        origin.differs(record.setting(what), "the nodes are left out: all their cores are kept for the system")
        return {}
    weight = min(unsigned(settings["weight"], 32), 2**32 - 2) if "weight" in settings else 1
    nodes.groups.append(NodeGroup(listing, cores, _memory(origin, what, settings), gpus(counts), weight, threads))
    for feature in (features := _features(settings)):
        if feature in nodes.features:
            nodes.features[feature].append(names)
    if len(features) == _MOST_FEATURES:
        effect = f"the first {_MOST_FEATURES} features are read; by others the nodes are in no node set"
        origin.differs(Setting("Features", "", record.location), effect, what)
    # What scontrol shows is how they are now, and not how they were.
    if reported and any(word.startswith(_GONE) for word in state.split("+")):
        nodes.away += names
    elif not reported and state.startswith(_GONE):
        _go_down(nodes, listing, state, settings)
    return counts


def _features(settings: Mapping[str, Setting]) -> tuple[str, ...]:
    setting = settings.get("feature", settings.get("features"))
    return () if setting is None else listed(setting.value[:_LONGEST_FEATURES])[:_MOST_FEATURES]


def _memory(origin: Origin, what: str, settings: Mapping[str, Setting]) -> int:
    """Return the memory for jobs; a node of which none is named has 1 MB to Slurm, and nobody counts it."""
    memory = unsigned(settings["realmemory"], 64) if "realmemory" in settings else 1
    kept = unsigned(settings["memspeclimit"], 64) if "memspeclimit" in settings else 0
    if kept and kept >= memory:
        origin.correct(settings["memspeclimit"], what, "it is not less than RealMemory; slurmctld resets it to 0")
        kept = 0
    return memory - kept if memory > 1 else 0


def _cores(
    origin: Origin, what: str, settings: Mapping[str, Setting], threads: int, *, reported: bool
) -> tuple[int, int]:
    """Return the CPUs of each node, without those that are kept for the system, and the CPUs of each core.

    See read_config.c, _parse_nodename. CPUs may count cores, or threads.
    """
    cpus, cores = _counted(origin, what, settings, threads)
    threads = threads if cpus == cores * threads else 1
    kept = unsigned(settings["corespeccount"], 16) if "corespeccount" in settings else 0
    if kept >= cores:
        origin.correct(settings["corespeccount"], what, f"it is not less than the cores; {_ONE}")
        kept = 1
    if "cpuspeclist" in settings:
        numbers = _listed_cpus(settings["cpuspeclist"])
        if numbers and all(number < cpus for number in numbers):
            if kept and not reported:  # scontrol shows both of one setting
                origin.correct(settings["corespeccount"], what, "slurmctld passes over it, as CPUSpecList is given")
            return (cpus - len(numbers)) // threads * threads, threads
        origin.correct(settings["cpuspeclist"], what, "it is no list of the node's CPUs; slurmctld passes over it")
    return cpus - kept * threads, threads


def _counted(origin: Origin, what: str, settings: Mapping[str, Setting], threads: int) -> tuple[int, int]:
    """Return the CPUs and the cores of each node as Slurm counts them (read_config.c, _parse_nodename)."""
    key = "cpus" if "cpus" in settings else "procs"
    boards = _one_or_more(origin, what, settings, "boards")
    of_socket = _one_or_more(origin, what, settings, "corespersocket")
    wanted = _one_or_more(origin, what, settings, key) if key in settings else 0
    if "socketsperboard" in settings:
        sockets = boards * _one_or_more(origin, what, settings, "socketsperboard")
        if "sockets" in settings:
            origin.correct(settings["sockets"], what, "slurmctld takes SocketsPerBoard in its place, and so do we")
    elif "sockets" in settings:
        sockets = _one_or_more(origin, what, settings, "sockets")
    else:
        sockets = boards if wanted % (of_socket * threads) or not wanted else wanted // (of_socket * threads)
    cores = sockets * of_socket
    if not wanted or wanted in {sockets, cores, cores * threads}:
        return wanted or cores * threads, cores
    how = "it is none of Sockets, Sockets*CoresPerSocket and that times ThreadsPerCore; slurmctld takes the last"
    origin.correct(settings[key], what, how)
    return cores * threads, cores


def _listed_cpus(setting: Setting) -> list[int]:
    """Return the numbers of a list of CPUs; none if it is no list."""
    try:
        return [int(number) for number in expand(f"[{setting.value}]")]
    except UsageError:
        return []


def _one_or_more(origin: Origin, what: str, settings: Mapping[str, Setting], key: str) -> int:
    number = unsigned(settings[key], 16) if key in settings else 1
    if not number:
        origin.correct(settings[key], what, _ONE)
    return number or 1


def count_names(named: Named, names: int, location: str) -> None:
    """Count the names of a host list.

    Raises
    ------
    SiteError
        If all up to here have too many (names file and line).
    """
    try:
        named.add(names)
    except UsageError as error:
        raise SiteError(f"{location}: {error}") from None


def _down_nodes(conf: Conf, nodes: Nodes, origin: Origin) -> None:
    """Take DownNodes; nothing of such a line is fatal (slurmctld/read_config.c, _handle_downnodes_line)."""
    named = Named()
    for record in conf.records:
        if record.kind != "downnodes":
            continue
        setting = record.settings.get("state", Setting("State", "DOWN", record.location))
        line = record.setting("DownNodes")
        if not setting.value.lower().startswith(_GONE):
            origin.correct(setting, "DownNodes", "nodes of this state are not away; the line has no effect")
            continue
        try:
            names = expand(hosts(record.name), repeated=True)
        except UsageError:
            origin.correct(line, "", "it is no host list; slurmctld passes over the line")
            continue
        count_names(named, len(names), record.location)
        there = [name for name in names if name in nodes.seen and name not in nodes.future]
        if any(name not in nodes.seen for name in names):
            origin.correct(line, "", "not all of these nodes are there; slurmctld passes over those that are not")
        if there:
            origin.note(f"outage of {compress(there)[:40]}", record.location, record.settings)
            _go_down(nodes, compress(there), setting.value, record.settings)


def _go_down(nodes: Nodes, names: str, state: str, settings: Mapping[str, Setting]) -> None:
    reason = shortened(settings["reason"].value, 80) if "reason" in settings else "State in slurm.conf"
    nodes.outages.append(Outage(names, 0.0, drained=state.lower().startswith("drain"), reason=reason))


def _joined(groups: list[NodeGroup]) -> list[NodeGroup]:
    """Join neighbours that are alike: many a slurm.conf has a line for each node."""
    joined: list[tuple[NodeGroup, list[str]]] = []
    for group in groups:
        names = list(expand(group.names))
        if joined and dataclasses.replace(joined[-1][0], names="") == dataclasses.replace(group, names=""):
            joined[-1][1].extend(names)
        else:
            joined.append((group, names))
    return [dataclasses.replace(group, names=compress(names)) for group, names in joined]


# The partitions of a slurm.conf ---------------------------------------------------------------------------------------

# The partitions of a slurm.conf, with what PartitionName=DEFAULT says of those that follow, and node sets.


_MOST = MOST_OF_A_KIND["partitions"]
_ENDLESS = 2**32 - 1  # UNLIMITED, in 32 bits
_EXCLUSIVE = {
    "USER": "jobs of others would not start on a node that has a user's jobs",
    "TOPO": "jobs of others would not start on the same block of nodes",
}


def read_partitions(conf: Conf, nodes: Nodes, origin: Origin) -> list[Partition]:
    """Return the partitions of a slurm.conf.

    Parameters
    ----------
    conf : Conf
        The file.
    nodes : Nodes
        Its nodes, whose features node sets name.
    origin : Origin
        Is told where they stand, and what is not modelled of them.

    Raises
    ------
    SiteError
        If a value is none that Slurm would take (names file and line).
    """
    known = known_settings("partition")
    named = Named()
    sets = _node_sets(conf, nodes, named)
    order = {name: number for number, name in enumerate(name for group in nodes.groups for name in expand(group.names))}
    lists: dict[str, str] = {}  # many a cluster has partitions of the same nodes
    billing: dict[Setting, dict[str, float]] = {}  # as many have that of PartitionName=DEFAULT
    defaults: dict[str, Setting] = {}
    partitions: list[Partition] = []
    for record in conf.records:
        if record.kind != "partitionname":
            continue
        what = f"PartitionName={record.name}"
        known.judge(record.settings.values(), origin, what)
        if record.name.upper() == "DEFAULT":
            # What nobody knows is said once, and not carried to each partition.
            defaults.update((key, setting) for key, setting in record.settings.items() if key in known.names)
            continue
        settings = {**defaults, **record.settings}
        _partly(conf, what, settings, origin)
        listed_there = settings["nodes"].value if "nodes" in settings else ""
        if listed_there not in lists:
            lists[listed_there] = _nodes(settings, record, sets, order, nodes.future, named)
        members = lists[listed_there]
        if not members:
            how = "it has no nodes; slurmctld goes on, and its jobs never start"
            origin.remark("corrected", f"{shortened(what)} ({record.location})", how)
        origin.note(f"partition {record.name}", record.location, settings)
        if len(partitions) >= _MOST:
            raise SiteError(f"{record.location}: more than {_MOST:,} partitions; leave out those without jobs")
        more = job_defaults(settings, origin, what)
        weights = settings.get("tresbillingweights")
        if weights is not None and weights.value.lower() != "(null)":
            if weights not in billing:
                effect = "the {} that jobs hold would count in usage"
                billing[weights] = weights_of(weights, origin, effect, what, NOT_HELD)
            more["billing"] = billing[weights]
        partitions.append(dataclasses.replace(_partition(record.name, settings, members), **more))
    return partitions


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


def _partly(conf: Conf, what: str, settings: Mapping[str, Setting], origin: Origin) -> None:
    """Keep what is modelled for the whole cluster only, or in one of its values."""
    setting = settings.get("oversubscribe", settings.get("shared"))
    if setting is not None and setting.value.upper() not in {"NO", "EXCLUSIVE", "FORCE:1", "YES:1"}:
        origin.differs(setting, "several jobs would share the same cores", what)
    whose = settings.get("exclusive")
    if whose is not None and whose.value.upper() in _EXCLUSIVE:
        origin.differs(whose, _EXCLUSIVE[whose.value.upper()], what)
    over = settings.get("overtimelimit")
    if over is not None:
        ours, all_others = over.value.lower(), conf.value(over.key, "0").lower()
        if ours not in {all_others, "none"} and not (ours in ENDLESS and all_others in {"0", *ENDLESS}):
            effect = "jobs would be stopped so long after their limit, and not as the cluster says"
            origin.differs(over, effect, what)


# Nodes. --------------------------------------------------------------------------------------------------------------


def _node_sets(conf: Conf, nodes: Nodes, named: Named) -> dict[str, tuple[str, ...]]:
    """Return what each node set names: nodes, other node sets, or ALL."""
    sets: dict[str, tuple[str, ...]] = {}
    for record in conf.records:
        if record.kind == "nodeset":
            names: dict[str, None] = {}
            for some in nodes.features[record.settings["feature"].value] if "feature" in record.settings else ():
                count_names(named, len(some), record.location)
                names |= dict.fromkeys(some)
            if "nodes" in record.settings:
                names |= dict.fromkeys(_expanded(record.settings["nodes"], named))
            sets[record.name] = tuple(names)
    return sets


def _expanded(setting: Setting, named: Named) -> tuple[str, ...]:
    if "{" in setting.value:
        raise SiteError(
            f"{setting.location}: {setting.key} {shortened(setting.value, 60)!r} has a function of the topology; "
            "slurmctld alone has the nodes: (scontrol show config; scontrol -o show node; "
            "scontrol -o show partition) > slurm.conf"
        )
    try:
        return named.expand(hosts(setting.value), repeated=True)
    except UsageError as error:
        raise SiteError(f"{setting.location}: {error}") from None


def _nodes(
    settings: Mapping[str, Setting],
    record: ConfRecord,
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
            count_names(named, len(sets[name]), setting.location)
        count_names(named, len(names), setting.location)
    if any(name.upper() == "ALL" and name not in order for name in names):
        count_names(named, len(order), setting.location)
        names = {**dict.fromkeys(order), **{name: None for name in names if name.upper() != "ALL"}}
    for name in names:
        if name not in order and name not in future:
            # Fatal in slurmctld/read_config.c, _build_part_bitmaps, as is a node set that names itself.
            raise SiteError(
                f"{setting.location}: partition {shortened(record.name)} names node {shortened(name)}, which no "
                "NodeName has; add it, or take it out of Nodes"
            )
    return compress(sorted((name for name in names if name in order), key=order.__getitem__))
