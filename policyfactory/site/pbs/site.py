"""A PBS complex as a site: queues become partitions, limits become the QOS of each, in the words of Slurm.

PBS looks at its queues in the order of their Priority, and at each event: so tiers are the ranks of priorities, and the
passes have no bounds. Of the jobs that wait, ``backfill_depth`` get reservations (administrator's guide of PBS
Professional, section on backfilling); 1 without it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policyfactory.core.errors import SiteError
from policyfactory.site.consistent import check_site
from policyfactory.site.hostlist import compress
from policyfactory.site.known import known_settings, with_hints
from policyfactory.site.model import Limits, NodeGroup, NotModelled, Partition, Qos, Site
from policyfactory.site.origin import Origin, Setting
from policyfactory.site.pbs.qmgr import Node, Server, read_nodes, read_server
from policyfactory.site.settings import Priority, Scheduling
from policyfactory.site.slurm.quantities import refused, whole
from policyfactory.site.values import parse_memory
from policyfactory.workload.accounting.times import duration

__all__ = ["import_pbs"]

_FIELDS = {"ncpus": "cores", "mem": "memory", "nodect": "nodes", "ngpus": "gpus"}
_ENTITY = re.compile(r"\[?\s*([ugpo]):([\w.@-]+)\s*=\s*([^\],\s][^\],]*)\]?", re.ASCII)
_CLASSES = {("o", "PBS_ALL"): "total", ("u", "PBS_GENERIC"): "per_user"}
# What qmgr calls the settings of a partition, and what to do where they contradict each other.
_NAMES = {
    "min_nodes": ("resources_min.nodect",),
    "max_nodes": ("resources_max.nodect",),
    "max_time": ("resources_max.walltime",),
    "default_time": ("resources_default.walltime",),
}
_CURES = {
    "fewest": "lower resources_min.nodect or raise resources_max.nodect",
    "few": "lower resources_min.nodect, or give what pbsnodes -av prints of all nodes",
}
_EXPRESS = 150  # queues of this priority stop jobs of others
_ALL = 1_000_000  # jobs: more than wait anywhere, as PBS looks at all of them
_MONTH = 30 * 86400.0


def import_pbs(path: Path, nodes: Path | None) -> tuple[Site, dict[str, str]]:
    """Return a site, and the SHA-256 of every file that it was read from.

    Parameters
    ----------
    path : Path
        What ``qmgr -c 'print server'`` prints.
    nodes : Path or None
        What ``pbsnodes -av`` prints.

    Raises
    ------
    SiteError
        If a file is not what it should be, or there is none of the nodes.
    InputError
        If a file cannot be read.
    """
    server = read_server(path)
    if nodes is None:
        raise SiteError(f"{path}: does not name the nodes; give them with --nodes: pbsnodes -av > nodes.txt")
    found, digest = read_nodes(nodes)
    missing = _judged(server)
    origin = Origin(_NAMES, _CURES)
    partitions, qos = _queues(server, found, missing, origin)
    site = Site(
        path.stem,
        tuple(_groups(found, missing)),
        tuple(partitions),
        "pbs",
        tuple(qos),
        priority=Priority(kind="basic"),
        scheduling=_scheduling(server, missing),
        enforced=("limits", "qos"),
        not_modelled=with_hints(missing, "pbs"),
    )
    check_site(site, f"{path.name} with {nodes.name}", origin)
    return site, {path.name: server.digest, nodes.name: digest}


def _judged(server: Server) -> list[NotModelled]:
    """Return the attributes that matter and are not modelled; resources are judged where they are read."""
    found = []
    for kind, name, attributes in (
        ("server", "server", server.attributes),
        *(("queue", f"queue {name}", attributes) for name, attributes in server.queues.items()),
    ):
        known = known_settings("pbs", kind)
        for setting in attributes.values():
            one = known.judge(setting.key.partition(".")[0], setting.value, setting.place, name)
            found += [] if one is None else [dataclasses.replace(one, name=f"{name} {setting.key}")]
    return found


def _scheduling(server: Server, missing: list[NotModelled]) -> Scheduling:
    given = server.attributes
    depth = whole(given["backfill_depth"], 0, 10_000) if "backfill_depth" in given else 1
    iteration = whole(given["scheduler_iteration"], 1, 86400) if "scheduler_iteration" in given else 600
    if "scheduling" in given and not _true(given["scheduling"]):
        effect = "no job would start until it is switched on"
        missing.append(NotModelled("server scheduling", "False", given["scheduling"].place, effect))
    formula, eligible = given.get("job_sort_formula"), given.get("eligible_time_enable")
    if formula is not None and "eligible_time" in formula.value and not (eligible is not None and _true(eligible)):
        effect = "eligible_time would be 0 in the formula: set server eligible_time_enable = True"
        missing.append(NotModelled("server eligible_time_enable", "False", formula.place, effect))
    return Scheduling(
        backfill=depth > 0,
        select="cores+memory",
        default_queue_depth=_ALL,
        sched_interval=float(iteration),
        batch_sched_delay=0.0,
        bf_interval=1.0,
        bf_window=_MONTH,
        bf_resolution=1.0,
        bf_max_job_test=_ALL,
        bf_job_part_count_reserve=depth,
        bf_continue=True,
    )


# Nodes. --------------------------------------------------------------------------------------------------------------


def _groups(nodes: list[Node], missing: list[NotModelled]) -> list[NodeGroup]:
    groups: list[tuple[NodeGroup, list[str]]] = []
    away = [node for node in nodes if {"offline", "down", "state-unknown"} & set(_words(node, "state"))]
    if away:
        effect = "they are taken as there: what pbsnodes prints is how they are now, and not how they were"
        names = compress(node.name for node in away)
        missing.append(NotModelled("nodes offline or down", names[:200], away[0].place, effect))
    for node in nodes:
        one = NodeGroup(
            "",
            _number(node, "resources_available.ncpus", _number(node, "pcpus", 1)),
            _megabytes(node),
            _number(node, "resources_available.ngpus", 0),
        )
        if one.cores < 1:
            raise SiteError(
                f"{node.place}: node {node.name} has no ncpus; set resources_available.ncpus, or leave it out"
            )
        if groups and groups[-1][0] == one:
            groups[-1][1].append(node.name)
        else:
            groups.append((one, [node.name]))
    return [dataclasses.replace(group, names=compress(names)) for group, names in groups]


def _words(node: Node, key: str) -> list[str]:
    return [word.strip() for word in node.attributes.get(key, "").split(",") if word.strip()]


def _number(node: Node, key: str, default: int) -> int:
    value = node.attributes.get(key)
    return default if value is None else whole(Setting(key, value, node.place), 0, 10**7)


def _megabytes(node: Node) -> int:
    value = node.attributes.get("resources_available.mem")
    return 0 if value is None else _size(Setting("resources_available.mem", value, node.place))


def _size(setting: Setting) -> int:
    # Bytes without a unit, or b; words (w) are of no use any more.
    text = setting.value.strip()
    if re.fullmatch(r"\d{1,18}b?", text, re.ASCII | re.IGNORECASE):
        return math.ceil(int(text.rstrip("bB")) / 2**20)
    megabytes = parse_memory(text)
    if megabytes is None:
        raise refused(setting, "a size such as 64gb")
    return megabytes


# Queues. -------------------------------------------------------------------------------------------------------------


def _queues(
    server: Server, nodes: list[Node], missing: list[NotModelled], origin: Origin
) -> tuple[list[Partition], list[Qos]]:
    """Return a partition for each execution queue, and its limits as its QOS."""
    queues = {name: attributes for name, attributes in server.queues.items() if not _routes(attributes)}
    if not queues:
        raise SiteError("there is no execution queue; give what qmgr -c 'print server' prints of the whole server")
    ranks = {name: whole(one["Priority"], -1024, 1023) if "Priority" in one else 0 for name, one in queues.items()}
    tiers = {priority: tier for tier, priority in enumerate(sorted(set(ranks.values())), 1)}
    default = server.attributes.get("default_queue")
    several = len(queues) > 1
    partitions, qos = [], []
    for name, attributes in queues.items():
        if ranks[name] >= _EXPRESS:
            effect = "it may be an express queue, whose jobs would stop those of others"
            missing.append(
                NotModelled(f"queue {name} Priority", str(ranks[name]), attributes["Priority"].place, effect)
            )
        own = _with_server(server, attributes, several=several, missing=missing if name == next(iter(queues)) else [])
        origin.note(f"partition {name}", "", own)
        limits = _limits(name, own, missing)
        partition = _partition(name, own, nodes)
        has_limits = limits != Qos(limits.name)
        qos += [limits] if has_limits else []
        partitions.append(
            dataclasses.replace(
                partition,
                tier=tiers[ranks[name]],
                default=default is not None and default.value == name,
                qos=limits.name if has_limits else "",
            )
        )
    return partitions, qos


def _routes(attributes: Mapping[str, Setting]) -> bool:
    return "queue_type" in attributes and attributes["queue_type"].value.lower().startswith("r")


def _with_server(
    server: Server, attributes: Mapping[str, Setting], *, several: bool, missing: list[NotModelled]
) -> dict[str, Setting]:
    """Return a queue's attributes with what the server says for all; limits over several queues are no queue's own."""
    own = dict(attributes)
    for key, setting in server.attributes.items():
        kind = key.partition(".")[0]
        if kind in {"resources_max", "resources_default"}:
            own.setdefault(key, setting)
        elif kind in {"max_run", "max_run_res", "max_queued", "max_queued_res"}:
            if several:
                effect = "it is a limit over all queues together"
                missing.append(NotModelled(f"server {key}", setting.value, setting.place, effect))
            else:
                own.setdefault(key, setting)
    return own


def _partition(name: str, own: Mapping[str, Setting], nodes: list[Node]) -> Partition:
    longest, usual = own.get("resources_max.walltime"), own.get("resources_default.walltime")
    place = own["resources_default.place"].value.lower() if "resources_default.place" in own else ""
    max_time = math.inf if longest is None else _seconds(longest)
    default_time = math.inf if usual is None else _seconds(usual)
    bound = [node.name for node in nodes if node.attributes.get("queue") == name]
    chunk = own.get("default_chunk.Qlist")
    if chunk is not None:
        names = [node.name for node in nodes if chunk.value in _words(node, "resources_available.Qlist")]
    else:
        names = bound or [node.name for node in nodes if "queue" not in node.attributes]
    return Partition(
        name,
        "ALL" if len(names) == len(nodes) else compress(names),
        max_time=max_time,
        # The server's default is cut at the queue's limit.
        default_time=min(default_time, max_time) if math.isfinite(default_time) else math.inf,
        max_nodes=whole(own["resources_max.nodect"]) if "resources_max.nodect" in own else math.inf,
        min_nodes=max(whole(own["resources_min.nodect"]), 1) if "resources_min.nodect" in own else 1,
        exclusive="excl" in re.split(r"[:=]", place),
        up=all(_true(own[key]) for key in ("started",) if key in own),
    )


def _limits(name: str, own: Mapping[str, Setting], missing: list[NotModelled]) -> Qos:
    """Return the limits of a queue as a QOS."""
    groups: dict[str, dict[str, Any]] = {"total": {}, "per_user": {}, "per_job": {}}
    older = {"max_running": ("total", "jobs"), "max_user_run": ("per_user", "jobs")}
    for key, setting in own.items():
        kind, _, resource = key.partition(".")
        if key in older:
            group, field = older[key]
            _lower(groups[group], field, float(whole(setting)))
        elif kind in {"max_run", "max_queued", "max_run_res"}:
            field = {"max_run": "jobs", "max_queued": "submitted"}.get(kind, _FIELDS.get(resource, ""))
            for entity, who, amount in _entities(setting):
                group = _CLASSES.get((entity, who), "")
                if not group or not field:
                    effect = "jobs would wait where those of this group, project, user or resource are beyond it"
                    missing.append(
                        NotModelled(f"queue {name} {key}", f"{entity}:{who}={amount}", setting.place, effect)
                    )
                else:
                    _lower(groups[group], field, _amount(dataclasses.replace(setting, value=amount), resource))
        elif kind == "resources_max" and resource not in {"walltime", "nodect"} and resource in _FIELDS:
            groups["per_job"][_FIELDS[resource]] = _amount(setting, resource)
        elif (kind, resource) in {
            ("resources_min", "nodect"),
            ("resources_max", "walltime"),
            ("resources_max", "nodect"),
        }:
            continue
        elif kind in {"resources_min", "resources_max", "max_queued_res"}:
            effect = "jobs that ask for other amounts would not come into the queue"
            missing.append(NotModelled(f"queue {name} {key}", setting.value, setting.place, effect))
    made = {group: Limits(**values) for group, values in groups.items()}
    return Qos(f"queue-{name}", total=made["total"], per_user=made["per_user"], per_job=made["per_job"])


def _lower(limits: dict[str, Any], field: str, most: float) -> None:
    limits[field] = min(most, limits.get(field, math.inf))


def _entities(setting: Setting) -> list[tuple[str, str, str]]:
    """Return kind, name and amount of each ``[u:PBS_GENERIC=4]``."""
    parts = [part.strip() for part in setting.value.split(",") if part.strip()]
    found = [_ENTITY.fullmatch(part) for part in parts]
    if not parts or None in found:
        raise refused(setting, "limits such as [u:PBS_GENERIC=4]")
    return [(match[1], match[2], match[3].strip('" \t')) for match in found if match is not None]


def _amount(setting: Setting, resource: str) -> float:
    return float(_size(setting)) if resource == "mem" else float(whole(setting))


def _seconds(setting: Setting) -> float:
    text = setting.value
    # Seconds, minutes:seconds or hours:minutes:seconds.
    seconds = int(text) if re.fullmatch(r"\d{1,10}", text, re.ASCII) else duration(text)
    if seconds is None or seconds < 1:
        raise refused(setting, "a time such as 24:00:00")
    return float(seconds)


def _true(setting: Setting) -> bool:
    word = setting.value.lower()
    if word not in {"true", "false", "t", "f", "1", "0", "y", "n", "yes", "no"}:
        raise refused(setting, "True or False")
    return word in {"true", "t", "1", "y", "yes"}
