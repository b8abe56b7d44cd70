"""Which jobs of a log a site could run at all, and why it could not run the others; outages are not looked at."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import SiteError
from policyfactory.core.options import Int64Array, Mask
from policyfactory.core.text import counted, enumerated, format_duration
from policyfactory.site.model import Limits, NodeGroup, Partition, Qos, Scheduling, Site
from policyfactory.site.values import expand
from policyfactory.workload.jobs import Requests, Workload

_MOST_NAMED = 5
_NOWHERE = -1
_LIFTING = ("PartitionTimeLimit", "PartitionMaxNodes", "PartitionMinNodes")  # flags of QOS


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionFit:
    """The jobs of a partition.

    Parameters
    ----------
    name : str
        The partition; what the log calls it, where the site has none of that name.
    jobs, fitting : int
        How many there are, and how many could run.
    """

    name: str
    jobs: int
    fitting: int


@dataclasses.dataclass(frozen=True, slots=True)
class SiteFit:
    """How well a log fits a site.

    Parameters
    ----------
    jobs, fitting : int
        How many there are, and how many could run.
    partitions : tuple of PartitionFit
        Those that jobs name, in the order of the site, then others.
    reasons : mapping of str to int
        Why jobs could not run, and how many each stops; of several the first is counted.
    first : tuple of (int, str)
        Numbers of the first jobs that could not, and why.
    unknown : tuple of str
        What the log does not say, of what the site limits.
    """

    jobs: int
    fitting: int
    partitions: tuple[PartitionFit, ...]
    reasons: Mapping[str, int]
    first: tuple[tuple[int, str], ...]
    unknown: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"schema_version": 1, **dataclasses.asdict(self), "other_cluster": self.other_cluster}

    @property
    def other_cluster(self) -> bool:
        """Whether most jobs do not fit."""
        return mostly_of_others(self.fitting, self.jobs)


def fit_jobs(site: Site, workload: Workload, never: Mapping[int, str] = MappingProxyType({})) -> SiteFit:
    """Return which jobs of a workload could run on an empty site.

    Parameters
    ----------
    site : Site
        Any.
    workload : Workload
        Any; what it does not say of a job (memory, nodes) stops none.
    never : mapping of int to str, optional
        Rows of jobs that the site's rules never let start, and why.
    """
    jobs = len(workload)
    requests = workload.requests if workload.requests is not None else Requests.unknown(jobs)
    numbered = _numbers_only(site, requests)
    if numbered:
        requests = dataclasses.replace(requests, partition=np.full(jobs, -1, dtype=np.int64))
    partition_of = partition_numbers(site, requests)
    layout = lay_out(site)
    judged = _Judged(workload, requests, partition_of == _NOWHERE, site, layout)
    for number in range(len(site.partitions)):
        mine = np.flatnonzero(partition_of == number)
        if len(mine):
            _judge(judged, mine, number)
    _judge_lists(judged, partition_of)
    _judge_qos(judged)
    for row, why in never.items():
        if not judged.reason[row]:
            judged.reason[row], judged.kind[row] = why, "limits and rights"
    rows = []
    stopped = judged.reason != ""
    known = dict.fromkeys(partition.name for partition in site.partitions)
    names = [*known, *(name for name in requests.names.get("partition", ()) if name not in known)]
    for number, name in enumerate(names):
        there = (partition_of == number) if number < len(known) else judged.lost(name)
        if there.any():
            rows.append(PartitionFit(name, int(there.sum()), int((there & ~stopped).sum())))
    kinds = Counter(judged.kind[stopped].tolist())
    first = [(int(workload.job_id[row]), str(judged.reason[row])) for row in np.flatnonzero(stopped)[:_MOST_NAMED]]
    return SiteFit(
        jobs,
        int(jobs - stopped.sum()),
        tuple(rows),
        dict(kinds.most_common()),
        tuple(first),
        (*_unknown(site, layout, requests, numbered=numbered), *_unknown_users(site, requests, workload.user)),
    )


def in_own_partitions(workload: Workload, site: Site) -> Workload:
    """Return a workload whose partitions are those of a site: where the log only numbers them, the default one.

    Parameters
    ----------
    workload : Workload
        Any; one that names its partitions is returned as it is.
    site : Site
        Any.
    """
    requests = workload.requests
    if requests is None or not _numbers_only(site, requests):
        return workload
    nowhere = np.full(len(workload), -1, dtype=np.int64)
    return dataclasses.replace(workload, requests=dataclasses.replace(requests, partition=nowhere))


def in_partitions(site: Site, workload: Workload) -> Mask:
    """Say which jobs are of partitions that a site has; those that name none are of the default one.

    Parameters
    ----------
    site : Site
        Any.
    workload : Workload
        Any.
    """
    if workload.requests is None or _numbers_only(site, workload.requests):
        return np.ones(len(workload), dtype=np.bool_)
    return np.asarray(partition_numbers(site, workload.requests) != _NOWHERE, dtype=np.bool_)


def without_strangers(workload: Workload, site: Site) -> tuple[Workload, str]:
    """Return a workload without the jobs of partitions that a site does not have, and in a sentence which these are.

    Parameters
    ----------
    workload : Workload
        Any. If most of its jobs are so, all stay: it is of another cluster, and who simulates it is told.
    site : Site
        A described one.

    Returns
    -------
    workload : Workload
        On the same clock.
    left_out : str
        How many there were, and the first of them; empty if none was left out.
    """
    requests, lost = workload.requests, ~in_partitions(site, workload)
    rows = np.flatnonzero(lost)
    if requests is None or not len(rows) or mostly_of_others(len(workload) - len(rows), len(workload)):
        return workload, ""
    names = requests.names["partition"]
    theirs = [f"{names[number]!a}" for number in np.unique(requests.partition[rows])[:_MOST_NAMED].tolist()]
    first = ", ".join(str(job) for job in workload.job_id[rows[:_MOST_NAMED]].tolist())
    more = ", ..." if len(rows) > _MOST_NAMED else ""
    sentence = (
        f"{len(rows):,} of {counted(len(workload), 'job')} of {workload.name} {'is' if len(rows) == 1 else 'are'} left "
        f"out: site {site.name} does not have {'their' if len(rows) > 1 else 'its'} partition {enumerated(theirs)} "
        f"(job{'s' if len(rows) > 1 else ''} {first}{more})."
    )
    return workload.select(~lost), sentence


def mostly_of_others(fitting: int, jobs: int) -> bool:
    """Say whether so few jobs of a log fit a site that it is another cluster's."""
    return 2 * fitting < jobs


def _numbers_only(site: Site, requests: Requests) -> bool:
    """Say whether a log numbers its partitions and does not name them, as most of the archive do."""
    named = requests.names.get("partition", ())
    known = {partition.name for partition in site.partitions}
    return bool(named) and all(name.isdigit() and name not in known for name in named)


def partition_numbers(site: Site, requests: Requests) -> Int64Array:
    """Return the number of each job's partition: that in which it was, or else the first it lists that the site has.

    It is the default one where the log names none, and -1 where the site has none of them.
    """
    number_of = {partition.name: number for number, partition in enumerate(site.partitions)}
    default = next((number for number, partition in enumerate(site.partitions) if partition.default), 0)
    named = requests.names.get("partition", ())
    # The last is that of jobs that name none.
    numbers = np.array([*(number_of.get(name, _NOWHERE) for name in named), default], dtype=np.int64)
    listed = [
        next((number_of[name] for name in names.split(",") if name in number_of), _NOWHERE)
        for names in requests.names.get("partitions", ())
    ]
    found = numbers[requests.partition]
    first = np.array([*listed, _NOWHERE], dtype=np.int64)[requests.partitions]
    return np.where(found == _NOWHERE, first, found)


class _Judged:
    """The first reason against each job, and its kind."""

    def __init__(self, workload: Workload, requests: Requests, nowhere: Mask, site: Site, layout: Layout) -> None:
        self.workload, self.requests, self.nowhere, self.site, self.layout = workload, requests, nowhere, site, layout
        self.reason = np.full(len(workload), "", dtype=object)
        self.kind = np.full(len(workload), "", dtype=object)
        for row in np.flatnonzero(nowhere).tolist():
            self.reason[row] = f"partition {requests.name_of('partition', row)} is not there"
        self.kind[nowhere] = "no such partition"
        flags = {qos.name: qos.flags for qos in site.qos}
        named = [flags.get(name.lower(), ()) for name in requests.names.get("qos", ())]
        # The last is that of jobs that name none.
        self.lifted = {
            flag: np.array([*(flag in its for its in named), False], dtype=np.bool_)[requests.qos] for flag in _LIFTING
        }

    def lost(self, partition: str) -> Mask:
        """Say which jobs were in a partition that is not there, and may start in no other."""
        number = self.requests.names["partition"].index(partition)
        return np.asarray((self.requests.partition == number) & self.nowhere, dtype=np.bool_)

    def stop(self, rows: Int64Array, wrong: Mask, kind: str, what: str, values: Int64Array, limit: str) -> None:
        """Note a reason for those of ``rows`` that are ``wrong`` and have none yet."""
        for index in np.flatnonzero(wrong & (self.reason[rows] == "")).tolist():
            self.reason[rows[index]] = f"{what} {values[index]:,}, {limit}"
            self.kind[rows[index]] = kind


def _judge(judged: _Judged, mine: Int64Array, number: int) -> None:
    """Judge the jobs of a partition."""
    requests, workload, partition = judged.requests, judged.workload, judged.site.partitions[number]
    members = judged.layout.members[number]
    has = {name: getattr(judged.layout, name)[members] for name in ("cores", "memory", "gpus")}
    where = f"and partition {partition.name} has"
    q, nodes = workload.processors[mine], requests.nodes[mine]
    judged.stop(mine, q > has["cores"].sum(), "cores", "cores", q, f"{where} {has['cores'].sum():,}")
    most = min(float(members.sum()), partition.max_nodes)
    many = (nodes > members.sum()) | ((nodes > most) & ~judged.lifted["PartitionMaxNodes"][mine])
    judged.stop(mine, many, "nodes", "nodes", nodes, f"and partition {partition.name} allows {most:,.0f}")
    few = (nodes >= 0) & (nodes < partition.min_nodes) & ~judged.lifted["PartitionMinNodes"][mine]
    judged.stop(mine, few, "nodes", "nodes", nodes, f"and partition {partition.name} asks for {partition.min_nodes:,}")
    counted = judged.site.scheduling.select == "cores+memory" and bool((has["memory"] > 0).all())
    for name, column in (("memory", requests.memory[mine]), ("gpus", requests.gpus[mine])):
        if name == "gpus" or counted:
            total = int(has[name].sum())
            unit = "MB of memory" if name == "memory" else "GPUs"
            judged.stop(mine, column > total, unit, unit, column, f"{where} {total:,}")
    _judge_placing(judged, mine, partition, has, memory=counted)
    times = -(-workload.requested_time[mine] // workload.ticks)
    limit = f"and partition {partition.name} allows {format_duration(partition.max_time)}"
    long = (times > partition.max_time) & ~judged.lifted["PartitionTimeLimit"][mine]
    judged.stop(mine, long, "requested time", "requested seconds", times, limit)
    for kind, allowed in (("account", partition.allowed_accounts), ("qos", partition.allowed_qos)):
        names = requests.names.get(kind, ())
        if allowed and names:
            places = getattr(requests, kind)[mine]
            lowered = [name.lower() for name in names]
            let_in = [
                judged.site.lets_in(partition, name) if kind == "account" else name in allowed for name in lowered
            ]
            wrong = ~np.array([*let_in, True])[places]
            for index in np.flatnonzero(wrong & (judged.reason[mine] == "")).tolist():
                judged.reason[mine[index]] = f"{kind} {names[places[index]]} may not use partition {partition.name}"
                judged.kind[mine[index]] = f"{kind} not allowed"


def _judge_lists(judged: _Judged, partition_of: Int64Array) -> None:
    """Judge jobs that their partition stops by the others of their lists: one in which they fit is enough."""
    requests = judged.requests
    number_of = {partition.name: number for number, partition in enumerate(judged.site.partitions)}
    lists_of: dict[int, list[int]] = {}
    for chosen, names in enumerate(requests.names.get("partitions", ())):
        for name in number_of.keys() & set(names.split(",")):
            lists_of.setdefault(number_of[name], []).append(chosen)
    for number, lists in sorted(lists_of.items()):
        listed = np.isin(requests.partitions, lists) & (partition_of != number)
        others = np.flatnonzero(listed & (judged.reason != ""))
        reason, kind = judged.reason[others], judged.kind[others]
        judged.reason[others] = ""
        _judge(judged, others, number)
        stopped = judged.reason[others] != ""
        judged.reason[others] = np.where(stopped, reason, "")
        judged.kind[others] = np.where(stopped, kind, "")


def _judge_placing(
    judged: _Judged, mine: Int64Array, partition: Partition, has: Mapping[str, Int64Array], *, memory: bool
) -> None:
    """Judge whether enough nodes have each job's share of cores, memory and GPUs."""
    requests, workload = judged.requests, judged.workload
    mine = mine[(requests.nodes[mine] > 0) & (judged.reason[mine] == "")]
    if not len(mine):
        return
    nodes = requests.nodes[mine]
    shares = [
        -(-column // nodes)
        for column in (workload.processors[mine], requests.memory[mine] * int(memory), requests.gpus[mine])
    ]
    asked, back = np.unique(np.column_stack([nodes, *shares]), axis=0, return_inverse=True)
    kinds, counts = np.unique(np.column_stack(list(has.values())), axis=0, return_counts=True)
    enough = np.array([counts[(kinds >= row[1:]).all(axis=1)].sum() >= row[0] for row in asked], dtype=np.bool_)
    limit = f"and too few nodes of partition {partition.name} have a job's share of cores, memory and GPUs"
    judged.stop(mine, ~enough[back.reshape(-1)], "cores, memory and GPUs of a node", "nodes", nodes, limit)


def _judge_qos(judged: _Judged) -> None:
    """Judge the jobs by what their QOS allows one job; without any QOS in the site file, none is judged."""
    requests = judged.requests
    known = {qos.name: qos for qos in judged.site.qos}
    for number, name in enumerate(requests.names.get("qos", ())):
        mine = np.flatnonzero(requests.qos == number)
        qos = known.get(name.lower())
        if qos is not None:
            _judge_one(judged, mine, qos)
        elif known:
            for row in mine[judged.reason[mine] == ""].tolist():
                judged.reason[row], judged.kind[row] = f"QOS {name} is not there", "no such QOS"


def _judge_one(judged: _Judged, mine: Int64Array, qos: Qos) -> None:
    requests, workload = judged.requests, judged.workload
    times = -(-workload.requested_time[mine] // workload.ticks)
    limit = f"and QOS {qos.name} allows {format_duration(qos.max_wall)}"
    judged.stop(mine, times > qos.max_wall, "requested time", "requested seconds", times, limit)
    for name, column in (
        ("cores", workload.processors), ("nodes", requests.nodes), ("memory", requests.memory), ("gpus", requests.gpus),
    ):  # fmt: skip
        most = min(getattr(qos.per_job, name), getattr(qos.total, name))
        if math.isfinite(most):
            values = column[mine]
            judged.stop(mine, values > most, "QOS", name, values, f"and QOS {qos.name} allows {most:,.0f}")


def _unknown(site: Site, layout: Layout, requests: Requests, *, numbered: bool) -> list[str]:
    """Return in words what the log does not say, of what the site has or limits."""
    found = []
    jobs = len(requests)
    if numbered:
        found.append("the log numbers its partitions and does not name them (; Partition: 1 batch)")
    for name, matters, what in (
        ("partition", len(site.partitions) > 1, "their partition: they are taken for jobs of the default one"),
        ("memory", site.scheduling.select == "cores+memory", "their memory, which nodes may not have for them"),
        ("gpus", bool(layout.gpus.any()), "their GPUs"),
        ("nodes", bool((layout.cores > 1).any()), "their nodes"),
        ("qos", len(site.qos) > 1, "their QOS, and so not its limits"),
        ("account", len(site.associations) > 0, "their account, and so not its shares and limits"),
    ):
        missing = jobs - requests.known(name)
        if matters and name == "memory" and missing == jobs:
            found.append("no job says its memory, so that it holds none: not even one that asks for none, and gets all")
        elif matters and missing:
            found.append(f"{missing:,} of {jobs:,} jobs do not say {what}")
    return found


def _unknown_users(site: Site, requests: Requests, user: Int64Array) -> Iterator[str]:
    """Give in words what a site has or limits by user, and cannot be held against jobs whose user is not known."""
    jobs = len(requests)
    nobody = int(((requests.user_name < 0) & (user < 0)).sum())
    of_users = any(qos.per_user != Limits() for qos in site.qos) or any(
        association.own != Limits() for association in site.associations
    )
    if nobody and of_users:
        yield f"{nobody:,} of {jobs:,} jobs do not say their user, and so not the limits of each user"
    named = with_alike_users(requests, user, site).user_name >= 0
    unnamed = int((~named & (requests.account >= 0)).sum())
    if unnamed and any(association.user for association in site.associations):
        yield (
            f"{unnamed:,} of {jobs:,} jobs do not name their user (sacct: User; workload import --user-names), and so "
            "not the shares and limits that the site gives users by name; limits of each user count by the log's number"
        )


# A site in numbers: arrays of what each node has, and which nodes each partition has ----------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What each node has; node numbers are places in `Site.node_names`, partitions as in ``Site.partitions``.

    Parameters
    ----------
    names : tuple of str
        Of the nodes.
    cores, memory, gpus, weight, threads : int64 array (nodes,)
        Processors, MB (0: not counted), GPUs, weight of each node; its processors that jobs have only together.
    members : bool array (partitions, nodes)
        Which nodes each partition has.
    """

    names: tuple[str, ...]
    cores: Int64Array
    memory: Int64Array
    gpus: Int64Array
    weight: Int64Array
    threads: Int64Array
    members: NDArray[np.bool_]


def partition_names(site: Site) -> list[str]:
    """Return the names of a site's partitions, the default one first."""
    return [partition.name for partition in sorted(site.partitions, key=lambda its: not its.default)]


def lay_out(site: Site) -> Layout:
    """Return the nodes of a site and of its partitions as arrays.

    Parameters
    ----------
    site : Site
        Whose host lists name nodes that it has.

    Raises
    ------
    SiteError
        If a partition names a node that the site does not have.
    """
    counts = [len(expand(group.names)) for group in site.nodes]

    def column(name: str) -> Int64Array:
        return np.repeat(np.array([getattr(group, name) for group in site.nodes], dtype=np.int64), counts)

    members = np.zeros((len(site.partitions), len(site.node_names)), dtype=np.bool_)
    first: dict[str, int] = {}  # of the partitions of each host list
    for row, partition in enumerate(site.partitions):
        if first.setdefault(partition.nodes, row) < row:
            members[row] = members[first[partition.nodes]]
        else:
            members[row, node_numbers(site, partition.nodes, f"partition {partition.name!r}")] = True
    return Layout(
        names=site.node_names,
        cores=column("cores"),
        memory=column("memory"),
        gpus=column("gpus"),
        weight=column("weight"),
        threads=column("threads"),
        members=members,
    )


def node_numbers(site: Site, hosts: str, what: str = "the host list") -> Int64Array:
    """Return the node numbers of a host list, ascending; ``ALL`` stands for all nodes.

    Parameters
    ----------
    site : Site
        Whose nodes they are.
    hosts : str
        A host list.
    what : str
        Whose list it is, for messages.

    Raises
    ------
    SiteError
        If the site does not have a node of it.
    """
    names = site.node_names
    if hosts.upper() == "ALL":
        return np.arange(len(names), dtype=np.int64)
    wanted = expand(hosts)
    number_of = {name: number for number, name in enumerate(names)}
    missing = [name for name in wanted if name not in number_of]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise SiteError(f"{what} names node {missing[0]}{more}, which the site does not have; add it to the nodes")
    return np.sort(np.array([number_of[name] for name in wanted], dtype=np.int64))


# The site that is assumed of a log where nobody has described one -----------------------------------------------------

# Its nodes are guessed from its jobs.


# Part of what is asked for that comes in whole nodes: KTH, HPC2N, SDSC-BLUE and Curie get the nodes that they had.
_NEARLY_ALL = 0.92
_LARGEST_NODE = 256
# Slurm's plans go node by node.
_MOST_NODES = 8192
_NAME = "assumed"


def site_of(workload: Workload) -> Site:
    """Return the site that is assumed of a log: one partition with the log's processors, and Slurm's defaults.

    Where of at least half of the jobs it is known how many nodes they ask for or had, nodes are as large as that needs
    them. Else a
    node has the largest number of processors, up to 256, that divides the machine and in whose multiples at least 92 %
    of all processors are asked for. Jobs get whole nodes where at least 92 % of them ask for such multiples. There are
    no more than 8,192 nodes, unless a job asks for more.

    Parameters
    ----------
    workload : Workload
        The whole log: its windows are assumed to be of one site.

    Returns
    -------
    Site
        ``assumed`` says in a sentence what it has.
    """
    requests = workload.requests or Requests.unknown(len(workload))
    node_counts = np.where(requests.nodes > 0, requests.nodes, requests.allocated_nodes)
    named, least = node_counts > 0, 1
    if 2 * int(named.sum()) >= max(len(workload), 1):
        cores = int((-(-workload.processors[named] // node_counts[named])).max())
        least = max(int(requests.nodes.max()), 1)
        why = "as large as the nodes that jobs ask for or had must be"
    else:
        cores = _cores_of_a_node(workload)
        why = "nearly all processors are asked for in multiples of it" if cores > 1 else "jobs have no common size"
    if -(-workload.machine // cores) > _MOST_NODES:
        cores = -(-workload.machine // _MOST_NODES)
        why = f"so that there are at most {_MOST_NODES:,}"
    full, rest = divmod(workload.machine, cores)
    if least > 1 and (rest or full < least):
        # Jobs that ask for more nodes than the processors make get them.
        full, rest = max(full + (rest > 0), least), 0
    groups = [NodeGroup(f"n[1-{full}]" if full > 1 else "n1", cores)] if full else []
    groups += [NodeGroup(f"n{full + 1}", rest)] if rest else []
    whole = bool(cores > 1 and len(workload) and (workload.processors % cores == 0).mean() >= _NEARLY_ALL)
    last = f", and one of {rest}" if rest and full else ""
    size = counted(cores, "processor")
    nodes = f"{counted(full, 'node')} of {size}{last} ({why})" if full else f"one node of {counted(rest, 'processor')}"
    return Site(
        _NAME,
        tuple(groups),
        (Partition("all", default=True, exclusive=whole),),
        assumed=f"Nobody described the site: one partition of {nodes}, "
        f"{'given to jobs as a whole' if whole else 'shared by jobs'}, and the default settings "
        f"and the rules of Slurm {Scheduling().rules_version} are assumed.",
    )


def _cores_of_a_node(workload: Workload) -> int:
    asked: Int64Array = workload.processors
    total = int(asked.sum())
    for cores in range(min(_LARGEST_NODE, workload.machine), 1, -1):
        if workload.machine % cores == 0 and int(asked[asked % cores == 0].sum()) >= _NEARLY_ALL * max(total, 1):
            return cores
    return 1


def as_assumed(workload: Workload, site: Site) -> Workload:
    """Return a workload as its assumed site takes it: without what only a described one could have.

    Partition, QOS, account, memory and GPUs are left out, and nodes that are too many or too small for their job. What
    else is known stays: other nodes, whether they are shared, when a job may start.

    Parameters
    ----------
    workload : Workload
        The log, or jobs of it.
    site : Site
        Of `site_of`.
    """
    if workload.requests is None:
        return workload
    none, nodes = np.full(len(workload), -1, dtype=np.int64), workload.requests.nodes
    cores = site.nodes[0].cores
    many = sum(len(expand(group.names)) for group in site.nodes if group.cores == cores)
    left_out: dict[str, Any] = dict.fromkeys(("partition", "qos", "account", "memory", "gpus"), none)
    left_out["nodes"] = np.where((nodes <= many) & (nodes * cores >= workload.processors), nodes, -1)
    return dataclasses.replace(workload, requests=dataclasses.replace(workload.requests, **left_out))


# Users that a log only numbers: where all users of an account have the same rights, any of their names will do --------


def with_alike_users(requests: Requests, user: Int64Array, site: Site) -> Requests:
    """Return requests in which users without a name have that of an association of their account, if all are alike.

    Shares and limits that all users of an account have do not depend on who is who. A user of two accounts can have
    two names, and of users beyond the associations of an account, and of accounts whose users differ, nothing is known.

    Parameters
    ----------
    requests : Requests
        Of some jobs.
    user : int64 array (n,)
        The log's number of each job's user, -1 for none.
    site : Site
        With its associations.
    """
    rows = np.flatnonzero((requests.user_name < 0) & (requests.account >= 0) & (user >= 0))
    names = list(requests.names.get("user", ()))
    free = _alike(site)
    if not len(rows) or not free:
        return requests
    column = requests.user_name.copy()
    pairs, which = np.unique(np.stack([requests.account[rows], user[rows]]), axis=1, return_inverse=True)
    of_pair = np.full(pairs.shape[1], -1, dtype=np.int64)
    for pair, account in enumerate(pairs[0].tolist()):
        if theirs := free.get(requests.names["account"][account]):
            of_pair[pair] = len(names)
            names.append(theirs.pop())
    column[rows] = of_pair[which.reshape(-1)]
    return dataclasses.replace(requests, user_name=column, names={**requests.names, "user": tuple(names)})


def _alike(site: Site) -> dict[str, list[str]]:
    """Return the users of each account whose users have the same shares and limits."""
    users: dict[str, list[str]] = {}
    kinds: dict[str, set[object]] = {}
    for association in site.associations:
        if association.user:
            users.setdefault(association.account, []).append(association.user)
            kinds.setdefault(association.account, set()).add(dataclasses.replace(association, user=""))
    return {account: theirs for account, theirs in users.items() if len(kinds[account]) == 1}
