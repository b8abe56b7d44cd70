"""From a site to what the engine takes of it: nodes, reservations, settings, weights, limits, shares, defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.engine.slurm.holding import CLOSES, MAINTAINS, OVERLAPS
from policyfactory.engine.slurm.jobs import PER_NODE, SlurmMachine, SlurmSettings
from policyfactory.engine.slurm.nodes import CORES
from policyfactory.engine.slurm.priority import FairShares, PriorityWeights
from policyfactory.site.fits import Layout, lay_out, node_numbers
from policyfactory.site.model import PARAMETERS, Association, Limits, Partition, Qos, Reservation, Scheduling, Site
from policyfactory.workload.jobs import Requests

YEAR = 365 * 86400
# A requeued job waits for its old credential to end.
_REQUEUE = 121
_KILL_WAIT = 30
_FAR = 2**50
_EIGHT = 8  # nodes in a word
NODE_ORDER = re.compile(r"(\d+)")


def node_order(site: Site) -> Int64Array:
    """Return the node numbers of a site in the order in which Slurm looks at them: by name, numbers by their value."""

    def key(number: int) -> list[tuple[int, int, str]]:
        parts = NODE_ORDER.split(names[number])
        return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts if part]

    names = site.node_names
    return np.array(sorted(range(len(names)), key=key), dtype=np.int64)


def counts_memory(site: Site, layout: Layout) -> bool:
    """Tell whether memory of nodes is given to jobs: not where no node is said to have any."""
    return site.scheduling.select == "cores+memory" and bool(layout.memory.any())


def node_capacity(site: Site, layout: Layout) -> Int64Array:
    """Return what each node has for the engine, (N, 4): whole cores; no end of memory where it is not counted."""
    counted = (layout.memory > 0) & counts_memory(site, layout)
    memory = np.where(counted, layout.memory, _FAR)
    return np.stack([layout.cores // layout.threads, memory, layout.gpus, layout.weight], axis=1).astype(np.int64)


def machine_of(site: Site, unix_start: int | None) -> tuple[SlurmMachine, Layout]:
    """Return the machine for the engine, its nodes in Slurm's order, and the layout in that order.

    Parameters
    ----------
    site : Site
        Its nodes, partitions, reservations and outages.
    unix_start : int or None
        Unix time of the workload's 0, which the machine's times do not count from.

    Raises
    ------
    UsageError
        If the site has reservations or outages and the workload does not say when its clock began.
    """
    if unix_start is None and (site.reservations or site.outages):
        raise UsageError(
            f"site {site.name} has reservations or outages, and the log does not say at what date its clock began; "
            "add UnixStartTime to its header, or leave them out of the site file"
        )
    order = node_order(site)
    plain = lay_out(site)
    layout = Layout(
        names=tuple(plain.names[number] for number in order),
        cores=plain.cores[order],
        memory=plain.memory[order],
        gpus=plain.gpus[order],
        weight=plain.weight[order],
        threads=plain.threads[order],
        members=plain.members[:, order],
    )
    position = np.argsort(order)

    def mask(hosts: str, what: str) -> Int64Array:
        row = np.zeros(len(order), dtype=np.int64)
        row[position[node_numbers(site, hosts, what)]] = 1
        return row

    events = _events(site, mask)
    has = node_capacity(site, layout)
    has = np.concatenate([has, np.zeros((-len(has) % _EIGHT, has.shape[1]), np.int64)])
    return SlurmMachine(
        has=has,
        cores=has[:, CORES].astype(np.int32),
        partition=_rows(list(layout.members), len(has)),
        tier=np.array([partition.tier for partition in site.partitions], dtype=np.int64),
        closed=np.array([not partition.up for partition in site.partitions], dtype=np.uint8),
        reserved=_rows([mask(held.nodes, f"reservation {held.name!r}") for held in site.reservations], len(has)),
        reservation=np.array(
            [[_up(held.start), _up(held.end), _up(held.known), _kind_of(held)] for held in site.reservations],
            dtype=np.int64,
        ).reshape(-1, 4),
        event=np.array([[time, kind] for time, kind, _ in events], dtype=np.int64).reshape(-1, 2),
        of_event=_rows([nodes for _, _, nodes in events], len(has)),
    ), layout


def _events(site: Site, mask: Callable[[str, str], Int64Array]) -> list[tuple[int, int, Int64Array]]:
    """Return when nodes go (1: down, 2: drained) and come (0: those that no other outage has), and which."""
    moments = []
    for number, outage in enumerate(site.outages):
        moments.append((math.ceil(outage.start), number, 2 if outage.drained else 1))
        if math.isfinite(outage.end):
            moments.append((math.ceil(outage.end), number, 0))
    nodes = [mask(outage.nodes, "an outage") for outage in site.outages]
    out = np.zeros(len(site.node_names), dtype=np.int64)
    events = []
    for time, number, kind in sorted(moments, key=lambda moment: moment[0]):
        out += nodes[number] if kind else -nodes[number]
        events.append((time, kind, nodes[number] if kind else nodes[number] * (out == 0)))
    return events


def _rows(rows: Sequence[Int64Array], nodes: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    masks = np.zeros((len(rows), nodes), dtype=np.uint8)
    for mask, row in zip(masks, rows, strict=True):
        mask[: len(row)] = row
    return masks


def _up(seconds: float) -> int:
    return math.ceil(min(max(seconds, -_FAR), _FAR))


def version_number(site: Site) -> int:
    """Return the version of Slurm whose rules hold for the engine: 2411 of 24.11."""
    return int(site.scheduling.rules_version.replace(".", ""))


def settings_of(site: Site, origin: int, turn_round: int = 0, *, stops: bool = False) -> SlurmSettings:
    """Return the settings for the engine.

    Parameters
    ----------
    site : Site
        Its scheduling parameters and priority weights.
    origin : int
        When the scheduler was started (Unix seconds).
    turn_round : int
        Seconds from a job's end until its nodes are free.
    stops : bool
        Whether the run stops where priorities are calculated.
    """
    given = site.scheduling
    overrun = given.kill_overrun // 60 * 60 if math.isfinite(given.kill_overrun) else YEAR
    recalculated = site.priority.kind == "multifactor"
    passes: dict[str, Any] = {how.engine: int(getattr(given, name)) for name, how in PARAMETERS.items()}
    for name in ("sched_interval", "interval", "resolution"):
        passes[name] = max(passes[name], 1)
    if given.bf_max_job_assoc:
        passes["most_of_user"] = 0
    passes["least_priority"] = float(given.bf_min_prio_reserve)
    return SlurmSettings(
        backfill=given.backfill,
        **passes,
        overrun=int(overrun),
        kill_wait=_KILL_WAIT,
        turn_round=turn_round,
        origin=origin,
        calculation=int(site.priority.calculation_period) if recalculated else 0,
        requeue_delay=_REQUEUE,
        version=version_number(site),
        plan_all="limits" in site.enforced
        or site.preemption.on
        or (recalculated and bool(site.priority.job_size or site.priority.tres.get("cpu"))),
        stops=stops,
    )


def weights_of(site: Site) -> PriorityWeights:
    """Return what time and usage count on a site."""
    given, flags = site.priority, {flag.upper() for flag in site.priority.flags}
    on = given.kind == "multifactor"
    return PriorityWeights(
        age=float(given.age) if on else 0.0,
        fair_share=float(given.fair_share) if on else 0.0,
        max_age=max(float(given.max_age), 1.0),  # another type would be another kernel
        decay=1.0 - 0.693 / given.half_life if given.half_life > 0 else 1.0,
        tree="NO_FAIR_TREE" not in flags,
        tail="limits" in site.enforced,
        from_submission="ACCRUE_ALWAYS" in flags,
        billing=np.array([_billing(its.billing) for its in site.partitions], dtype=np.float64),
        largest=2 if "MAX_TRES_GRES" in flags else int("MAX_TRES" in flags),
    )


def _billing(weights: Mapping[str, float]) -> tuple[float, ...]:
    if not weights:
        return (math.nan,) * 4
    return tuple(weights.get(name, 0.0) for name in ("cpu", "mem", "node", "gres/gpu"))


# Limits: what a job is counted in, and the most that each counter may hold. -------------------------------------------

# Columns of the engine's limits after the first one, running jobs.
_HELD = ("nodes", "cores", "memory", "gpus")
_NONE = (math.inf,) * 5
_ALONE = ("job",)  # nothing is held together: a limit of one job
_EACH = ("node",)  # nor here: a limit of one job on each of its nodes
_ROWS: dict[tuple[str, ...], int] = {_ALONE: -1, _EACH: PER_NODE}

# What is held together, and the most of it: (kind of counter, of what), limits.
_Line = tuple[tuple[str, ...], tuple[float, ...]]


class Enforced:
    """What a site keeps users to.

    A limit that the first QOS sets replaces that of the second and of the associations: the partition's QOS comes
    first, unless the job's own has the flag OverPartQOS.

    Parameters
    ----------
    site : Site
        Its QOS, associations, and which of their limits are enforced.
    """

    def __init__(self, site: Site) -> None:
        self.on = "limits" in site.enforced
        # Where no association is known (no --sacctmgr), nobody is a stranger.
        asked = {"associations", "limits", "qos", "safe"} & set(site.enforced)
        self.known_only = bool(site.associations and asked)
        self.qos = {qos.name: qos for qos in site.qos}
        # sacctmgr keeps names in lower case, a queue has them as they are.
        self.associations = {(its.account.lower(), its.user.lower()): its for its in site.associations}

    def chain(self, account: str, user: str) -> list[Association]:
        """Return the association of a user and the accounts above it, root last; empty if there is none."""
        found: list[Association] = []
        level = self.associations.get((account.lower(), user.lower()))
        while level is not None and level not in found:
            found.append(level)
            above = (level.account if level.user else level.parent or "root").lower(), ""
            level = None if (level.account, level.user) == _ROOT else self.associations.get(above)
        return found

    def qos_of(self, named: str, chain: list[Association]) -> str:
        """Return the QOS of a job: the one it names, the nearest default, or normal; empty if there is no such."""
        name = next((name for name in (named, *(association.default_qos for association in chain)) if name), "normal")
        return name if name in self.qos else ""

    def known_of(self, asked: Requests, row: int) -> tuple[list[Association], str]:
        """Return the chain of associations of a job and its QOS."""
        chain = self.chain(asked.name_of("account", row) or "", asked.name_of("user_name", row) or "")
        return chain, self.qos_of(asked.name_of("qos", row) or "", chain)

    def lifts(self, name: str, flag: str) -> bool:
        """Tell whether a job's own QOS lifts a limit of its partition (``PartitionTimeLimit`` and the like)."""
        return name in self.qos and flag in self.qos[name].flags

    def both(self, partition: Partition, name: str) -> list[Qos]:
        """Return the QOS that limit a job, the one whose word counts first."""
        named, its = self.qos.get(name), self.qos.get(partition.qos)
        both = [named, its] if named is not None and "OverPartQOS" in named.flags else [its, named]
        return [qos for number, qos in enumerate(both) if qos is not None and qos not in both[:number]]

    def longest(self, partition: Partition, name: str, chain: list[Association]) -> float:
        """Return the seconds that a job may ask for (MaxWall)."""
        if not self.on:
            return math.inf
        given = [limited.max_wall for limited in self.both(partition, name)] + [limited.max_wall for limited in chain]
        return next((wall for wall in given if not math.isinf(wall)), math.inf)

    def most_nodes(self, partition: Partition, name: str, chain: list[Association]) -> float:
        """Return the most nodes that the limits leave a job; the first account that lowers it ends the search."""
        if not self.on:
            return math.inf

        def of_qos(kind: str) -> float:
            given = (float(getattr(qos, kind).nodes) for qos in self.both(partition, name))
            return next((nodes for nodes in given if not math.isinf(nodes)), math.inf)

        alone, together = min(map(of_qos, ("per_account", "per_job", "per_user"))), of_qos("total")
        most = min(alone, together)
        for level, association in enumerate(chain):
            lower = math.isinf(together) and association.total.nodes < most
            if lower:
                most = association.total.nodes
            if level == 0 and math.isinf(alone):
                most = min(most, self._inherited(chain, "per_job", "nodes"))
            if lower:
                break
        return float(most)

    def lines(
        self, partition: Partition, name: str, chain: list[Association], account: str, user: str
    ) -> Iterator[_Line]:
        """Give the counters of a job with their limits; of one whose user is not known (empty) no other job counts."""
        if not self.on:
            return
        limited: set[tuple[str, str]] = set()
        for qos in self.both(partition, name):
            new: set[tuple[str, str]] = set()
            for kind, of in (
                ("total", ("qos", qos.name)),
                ("per_account", ("qos account", qos.name, account)),
                ("per_user", ("qos user", qos.name, user)),
                ("per_job", _ALONE),
                ("per_node", _EACH),
            ):
                limits = getattr(qos, kind)
                yield (of if user or kind != "per_user" else _ALONE), _most(limits, kind, limited)
                new |= {(kind, what) for what in ("jobs", *_HELD) if not math.isinf(getattr(limits, what))}
            limited |= new
        for association in chain:
            yield ("association", association.account, association.user), _most(association.total, "total", limited)
        if chain:
            leaf = chain[0]
            most = self._inherited(chain, "own", "jobs")
            if user and not limited & {("per_account", "jobs"), ("per_user", "jobs")}:
                yield ("association", leaf.account, leaf.user or f"number {user}"), (most, *_NONE[1:])
            for kind, of in (("per_job", _ALONE), ("per_node", _EACH)):
                inherited = Limits(**{what: self._inherited(chain, kind, what) for what in _HELD})
                yield of, _most(inherited, kind, limited)

    @staticmethod
    def _inherited(chain: list[Association], kind: str, what: str) -> float:
        """Return the limit of the nearest association that has one."""
        given = (float(getattr(getattr(association, kind), what)) for association in chain)
        return next((value for value in given if not math.isinf(value)), math.inf)


def _most(limits: Limits, kind: str, limited: set[tuple[str, str]]) -> tuple[float, ...]:
    return tuple(math.inf if (kind, what) in limited else float(getattr(limits, what)) for what in ("jobs", *_HELD))


def array_line(array: int, limit: int) -> _Line:
    """Return the counter of an array of which so many tasks may run at once."""
    return ("array", str(array)), (float(limit), *_NONE[1:])


class Counters:
    """The counters of jobs, by kinds of jobs that have the same."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[_Line, ...], int] = {}

    def add(self, lines: Iterable[_Line]) -> int:
        """Return the kind of jobs with these counters, in their order.

        A job is counted once in each; the smallest of the limits holds.
        """
        merged: dict[tuple[str, ...], tuple[float, ...]] = {}
        for of, most in lines:
            merged[of] = tuple(map(min, merged.get(of, _NONE), most))
        return self._kinds.setdefault(tuple(merged.items()), len(self._kinds))

    def arrays(self, kinds: Int64Array) -> tuple[Int64Array, Int64Array, FloatArray, tuple[tuple[str, ...], ...]]:
        """Return where the counters of each job begin, the counters with the rows of their limits, the limits.

        Last, what each row of the counters is. What nobody is limited in is not counted.
        """
        limited = {of for lines in self._kinds for of, most in lines if most != _NONE} - set(_ROWS)
        held = tuple(sorted(limited))
        row = {of: number for number, of in enumerate(held)}
        limits: dict[tuple[float, ...], int] = {_NONE: 0}
        pairs = [
            [
                (row[of] if of in limited else _ROWS[of], limits.setdefault(most, len(limits)))
                for of, most in lines
                if of in limited or (of in _ROWS and most != _NONE)
            ]
            for lines in self._kinds
        ]
        begins = np.zeros(len(kinds) + 1, dtype=np.int64)
        np.cumsum(np.array([len(of) for of in pairs], dtype=np.int64)[kinds], out=begins[1:])
        flat = [pair for kind in kinds.tolist() for pair in pairs[kind]] if any(pairs) else []
        most = np.array(list(limits), dtype=np.float64)
        return begins, np.array(flat, dtype=np.int64).reshape(-1, 2), most, held


# Shares of associations. ----------------------------------------------------------------------------------------------

_ROOT = ("root", "")


def shares_of(site: Site) -> tuple[FairShares, dict[tuple[str, str], int]]:
    """Return the shares of a site, and the number of each association by account and user.

    An account that counts as its parent does (``shares`` NaN) gives its children to that parent.

    Parameters
    ----------
    site : Site
        Its associations.
    """
    known = {(association.account, association.user): association for association in site.associations}
    known.setdefault(_ROOT, Association("root"))

    def above(association: Association) -> tuple[str, str]:
        key = (association.account, "") if association.user else (association.parent or "root", "")
        while key != _ROOT and math.isnan(known[key].shares):
            key = (known[key].parent or "root", "")
        return key

    ordered = [_ROOT]
    below: dict[tuple[str, str], list[tuple[str, str]]] = {key: [] for key in known}
    for key, association in known.items():
        if key != _ROOT:
            below[above(association)].append(key)
    for key in ordered:
        ordered.extend(below[key])
    number = {key: number for number, key in enumerate(ordered)}
    count = len(ordered)
    parent, share = np.full(count, -1, dtype=np.int64), np.ones(count)
    for key, its in below.items():
        total = sum(known[child].shares for child in its if not math.isnan(known[child].shares))
        for child in its:
            parent[number[child]] = number[key]
            share[number[child]] = known[child].shares / total if total else 0.0
            if math.isnan(known[child].shares):
                share[number[child]] = math.nan if child[1] else 0.0
    begins = np.zeros(count + 1, dtype=np.int64)
    np.cumsum([len(below[key]) for key in ordered], out=begins[1:])
    children = np.array([number[child] for key in ordered for child in below[key]], dtype=np.int64)
    is_user = np.array([bool(key[1]) for key in ordered], dtype=np.uint8)
    shares = FairShares(
        parent=parent,
        is_user=is_user,
        share=share,
        children_from=begins,
        children=children,
        usage=np.zeros(count),
        factor=np.zeros(count),
        level=np.zeros(count),
    )
    return shares, number


# Who may use a reservation, and which others its jobs pass over (slurmctld/reservation.c) -----------------------------


def lets_in(reservation: Reservation, user: str, accounts: Sequence[str]) -> bool:
    """Tell whether a job may use a reservation (_valid_job_access_resv).

    Parameters
    ----------
    reservation : Reservation
    user : str
        Its user.
    accounts : sequence of str
        Its account; where associations are enforced, the accounts above as well.
    """
    if not reservation.users and not reservation.accounts:
        return False
    # Of a list of users and one of accounts both hold, and then it is the user's own account that counts.
    mine = accounts[:1] if reservation.users else accounts
    return _names(reservation.users, [user]) and _names(reservation.accounts, mine)


def _names(listed: Sequence[str], mine: Sequence[str]) -> bool:
    if any(name.startswith("-") for name in listed):
        return not any(f"-{name}" in listed for name in mine)
    return not listed or any(name in listed for name in mine)


def _kind_of(reservation: Reservation) -> int:
    """Return the kind of a reservation for the engine; one for nobody is a maintenance, too."""
    flags = {flag.upper() for flag in reservation.flags}
    maintains = "MAINT" in flags or not reservation.users + reservation.accounts
    closes = maintains or "ALL_NODES" in flags
    return CLOSES * closes + MAINTAINS * maintains + OVERLAPS * ("OVERLAP" in flags)


# What a job is given that asks for no memory, or for GPUs and no cores: its partition's defaults, or the cluster's ----
# The rules are those of Slurm 22.05 to 26.05 (job_mgr.c, _validate_job_desc; select/cons_tres, _set_gpu_defaults).


class JobDefaults(NamedTuple):
    """What each job (n,) is given if it does not ask; MB, cores; 0: nothing.

    Parameters
    ----------
    node_memory, core_memory, gpu_memory, gpu_cores : int64 array (n,)
        For each of its nodes, cores and GPUs.
    """

    node_memory: Int64Array
    core_memory: Int64Array
    gpu_memory: Int64Array
    gpu_cores: Int64Array


def defaults_of(site: Site, partition: Int64Array) -> JobDefaults:
    """Return the defaults of jobs by the numbers of their partitions (n,)."""
    rows = [_of_partition(its, site.scheduling) for its in site.partitions]
    return JobDefaults(*np.array(rows, dtype=np.int64).reshape(-1, 4)[partition].T)


def _of_partition(its: Partition, cluster: Scheduling) -> tuple[int, int, int, int]:
    # Memory of either kind that the partition has goes before both of the cluster's.
    of_memory = its if its.default_memory_per_node or its.default_memory_per_core else cluster
    node = of_memory.default_memory_per_node
    return (
        node,
        0 if node else of_memory.default_memory_per_core,
        its.default_memory_per_gpu or cluster.default_memory_per_gpu,
        its.default_cores_per_gpu or cluster.default_cores_per_gpu,
    )


def with_default_cores(
    cores: Int64Array,
    nodes: Int64Array,
    node_gpus: Int64Array,
    defaults: JobDefaults,
    ran: NDArray[np.bool_],
) -> Int64Array:
    """Return the cores of jobs, with those that GPUs bring to a job that asks for one of each node.

    Parameters
    ----------
    cores, nodes, node_gpus : int64 array (n,)
        As asked; GPUs of each node.
    defaults : JobDefaults
    ran : bool array (n,)
        Whether a log says when the job started: its cores are those that it got.
    """
    by_gpus = nodes * node_gpus * defaults.gpu_cores
    return np.where(~ran & (cores <= nodes) & (by_gpus > cores), by_gpus, cores)
