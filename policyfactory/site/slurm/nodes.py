"""The nodes of a slurm.conf: NodeName and DownNodes, with what NodeName=DEFAULT says of those that follow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from policyfactory.core.errors import SiteError, UsageError
from policyfactory.core.text import enumerated, shortened
from policyfactory.site.hostlist import MOST_HOSTS, compress, expand
from policyfactory.site.known import known_settings
from policyfactory.site.model import NodeGroup, NotModelled, Outage
from policyfactory.site.origin import Origin, Setting
from policyfactory.site.slurm.conf import Conf, Record
from policyfactory.site.slurm.quantities import gpus, gres, listed, refused, types_of_gpus, whole
from policyfactory.site.values import MOST_CORES, MOST_GPUS

__all__ = ["Nodes", "read_nodes"]

_GONE = ("down", "drain", "fail")
_MOST_FEATURES = 100


@dataclasses.dataclass(slots=True)
class Nodes:
    """The nodes of a site, and what is not modelled of them.

    Parameters
    ----------
    groups : list of NodeGroup
        In the order of the file.
    outages : list of Outage
        Nodes whose State is DOWN, DRAIN or FAIL.
    features : dict of str to list of str
        Names of the nodes of each feature, for node sets.
    future : set of str
        Names of the nodes whose State is FUTURE, which are in no group.
    seen : set of str
        Names of all of them.
    threads : int
        The most threads of a core.
    not_modelled : list of NotModelled
        Settings that matter.
    """

    groups: list[NodeGroup] = dataclasses.field(default_factory=list)
    outages: list[Outage] = dataclasses.field(default_factory=list)
    features: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    future: set[str] = dataclasses.field(default_factory=set)
    seen: set[str] = dataclasses.field(default_factory=set)
    threads: int = 1
    not_modelled: list[NotModelled] = dataclasses.field(default_factory=list)


def read_nodes(conf: Conf, origin: Origin) -> Nodes:
    """Return the nodes of a slurm.conf.

    Parameters
    ----------
    conf : Conf
        The file.
    origin : Origin
        Is told where DownNodes stands.

    Raises
    ------
    SiteError
        If a value is none that Slurm would take (names file and line).
    """
    nodes = Nodes()
    defaults: dict[str, Setting] = {}
    resources: list[dict[str, int]] = []
    for record in conf.records:
        if record.kind == "nodename":
            _judge(nodes, record)
            if record.name.upper() == "DEFAULT":
                defaults.update(record.settings)
            else:
                resources.append(_take(nodes, record, {**defaults, **record.settings}, reported=conf.reported))
        elif record.kind == "downnodes":
            state = record.settings.get("state")
            origin.note(f"outage of {record.name[:40]}", record.place, record.settings)
            _go_down(nodes, record.name, "down" if state is None else state.value, record.settings)
        elif record.kind == "frontendname":
            effect = "jobs would be launched from front end nodes, which can be down"
            nodes.not_modelled.append(NotModelled("FrontendName", record.name, record.place, effect))
    place = next((record.place for record in conf.records if record.kind == "nodename"), "")
    types = types_of_gpus(resources)
    if len(types) > 1:
        effect = "jobs that ask for one type of GPU would wait for nodes that have it"
        nodes.not_modelled.append(NotModelled("NodeName Gres", ", ".join(types), place, effect))
    if nodes.features:
        effect = "jobs with --constraint would wait for nodes that have these features"
        nodes.not_modelled.append(NotModelled("NodeName Features", ",".join(nodes.features)[:200], place, effect))
    nodes.groups = _joined(nodes.groups)
    return nodes


def _judge(nodes: Nodes, record: Record) -> None:
    known = known_settings("slurm", "node")
    for setting in record.settings.values():
        found = known.judge(setting.key, setting.value, setting.place, f"NodeName={record.name[:40]}")
        if found is not None:
            nodes.not_modelled.append(found)


def _take(nodes: Nodes, record: Record, settings: Mapping[str, Setting], *, reported: bool) -> dict[str, int]:
    """Add the nodes of a line; return their generic resources."""
    try:
        names = expand(record.name)
    except UsageError as error:
        raise SiteError(f"{record.place}: {error}") from None
    again = next((name for name in names if name in nodes.seen), None)
    if again is not None:
        raise SiteError(f"{record.place}: node {shortened(again)} is there a second time; name each node on one line")
    nodes.seen.update(names)
    if len(nodes.seen) > MOST_HOSTS:
        raise SiteError(f"{record.place}: more than {MOST_HOSTS:,} nodes; check the host lists")
    state = settings["state"].value.lower() if "state" in settings else "unknown"
    if state.startswith("future"):
        effect = "the nodes are left out: they are no part of the cluster yet"
        nodes.future.update(names)
        nodes.not_modelled.append(NotModelled(f"NodeName={record.name[:40]} State", "FUTURE", record.place, effect))
        return {}
    counts = gres(settings["gres"]) if "gres" in settings else {}
    if gpus(counts) > MOST_GPUS:
        raise refused(settings["gres"], f"at most {MOST_GPUS:,} GPUs of a node")
    others = [name for name in counts if name.partition(":")[0] != "gpu"]
    if others:
        effect = f"jobs that ask for {shortened(enumerated(others), 200)} would wait for it"
        place = settings["gres"].place
        nodes.not_modelled.append(
            NotModelled(f"NodeName={record.name[:40]} Gres", settings["gres"].value, place, effect)
        )
    threads = _number(settings, "threadspercore", 1)
    nodes.threads = max(nodes.threads, threads)
    memory = _number(settings, "realmemory", 1, low=0) - _number(settings, "memspeclimit", 0, low=0)
    # A node of which no memory is named has 1 MB to Slurm, and nobody counts it.
    memory = memory if "realmemory" in settings and memory > 1 else 0
    weight = _number(settings, "weight", 1, low=0, high=2**32 - 1)
    cores = _cores(nodes, record, settings, threads)
    if cores > MOST_CORES:
        raise SiteError(
            f"{record.place}: NodeName={record.name[:40]} has {cores:,} cores, more than the {MOST_CORES:,} of a node; "
            "check its Sockets, CoresPerSocket and ThreadsPerCore"
        )
    if cores < 1:
        raise SiteError(f"{record.place}: NodeName={record.name[:40]} keeps all its cores for the system; check them")
    nodes.groups.append(NodeGroup(record.name, cores, max(memory, 0), gpus(counts), weight))
    for name in ("feature", "features"):
        features = listed(settings[name].value) if name in settings else ()
        if len(features) > _MOST_FEATURES:
            raise SiteError(f"{settings[name].place}: more than {_MOST_FEATURES:,} features of a node; leave some out")
        for feature in features:
            nodes.features.setdefault(feature, []).extend(names)
    # What scontrol shows is how they are now, and not how they were.
    if not reported and state.startswith(_GONE):
        _go_down(nodes, record.name, state, settings)
    return counts


def _cores(nodes: Nodes, record: Record, settings: Mapping[str, Setting], threads: int) -> int:
    """Return the CPUs of each node, without those that are kept for the system."""
    cpus, cores = _counted(nodes, record, settings, threads)
    if "corespeccount" in settings:
        # CPUs may count cores, or threads.
        return cpus - _number(settings, "corespeccount", 0, low=0) * (1 if cpus == cores else threads)
    if "cpuspeclist" in settings:
        return cpus - _listed_cpus(settings["cpuspeclist"])
    return cpus


def _counted(nodes: Nodes, record: Record, settings: Mapping[str, Setting], threads: int) -> tuple[int, int]:
    """Return the CPUs and the cores of each node as Slurm counts them (22.05.8, read_config.c)."""
    given = settings.get("cpus", settings.get("procs"))
    boards, of_socket = _number(settings, "boards", 1), _number(settings, "corespersocket", 1)
    wanted = 0 if given is None else whole(given, 1, MOST_CORES)
    if "socketsperboard" in settings:
        sockets = boards * _number(settings, "socketsperboard", 1)
    elif "sockets" in settings:
        sockets = _number(settings, "sockets", 1)
    else:
        sockets = boards if wanted % (of_socket * threads) or not wanted else wanted // (of_socket * threads)
    cores = sockets * of_socket
    if given is None or wanted in {sockets, cores, cores * threads}:
        return wanted or cores * threads, cores
    effect = (
        f"it is none of Sockets, Sockets*CoresPerSocket and that times ThreadsPerCore; Slurm takes the last, "
        f"{cores * threads:,}, and so do we"
    )
    nodes.not_modelled.append(NotModelled(f"NodeName={record.name[:40]} {given.key}", given.value, given.place, effect))
    return cores * threads, cores


def _listed_cpus(setting: Setting) -> int:
    try:
        return len(expand(f"[{setting.value}]"))
    except UsageError as error:
        raise SiteError(f"{setting.place}: {setting.key}: {error}") from None


def _number(settings: Mapping[str, Setting], key: str, default: int, low: int = 1, high: int = 2**40) -> int:
    return whole(settings[key], low, high) if key in settings else default


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
