"""From a workload and a site to the engine's jobs, and which of them can never start."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError
from policyfactory.core.options import FloatArray, Int64Array, UInt8Array
from policyfactory.core.text import counted
from policyfactory.engine.slurm.jobs import (
    ABSENT,
    CLOSED,
    CONFINED,
    LIMITED,
    NEVER,
    REFUSED,
    SEVERAL,
    WELCOME,
    SlurmJobs,
)
from policyfactory.engine.slurm.nodes import (
    CORE_MEMORY,
    CORES,
    MOST_NODES,
    NODE_CORES,
    NODE_GPUS,
    NODE_MEMORY,
    NODES,
    TOTAL_CORES,
    WEIGHT,
    WHOLE,
    choose,
    divide,
    new_blocks,
    new_choice,
)
from policyfactory.simulation.slurm.machine import (
    YEAR,
    Counters,
    Enforced,
    array_line,
    counts_memory,
    defaults_of,
    lets_in,
    node_capacity,
    shares_of,
    version_number,
    with_default_cores,
)
from policyfactory.site.fits import (
    Layout,
    SiteFit,
    fit_jobs,
    in_own_partitions,
    in_partitions,
    lay_out,
    mostly_of_others,
    partition_numbers,
    with_alike_users,
    without_strangers,
)
from policyfactory.site.model import Association, Partition, Site
from policyfactory.workload.jobs import Requests, Workload


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The jobs of a workload on a site.

    Parameters
    ----------
    jobs : Jobs
        In the order of submission; behind them, jobs of several partitions in the others of these.
    order : int array (n,)
        The row of the workload of each of the first ones.
    held : tuple of (str, ...)
        What is held together: the kind of the counter, and of what.
    most : float64 array (L, 5)
        The limits.
    never : dict of int to str
        Rows of jobs that can never start, and why.
    qos : int64 array (n,)
        The number of the site's QOS of each, in the order of submission; -1 for none.
    exempt : int64 array (n,)
        Seconds after its start in which each is safe from being stopped for others.
    """

    jobs: SlurmJobs
    order: Int64Array
    held: tuple[tuple[str, ...], ...]
    most: FloatArray
    never: dict[int, str]
    qos: Int64Array
    exempt: Int64Array


class _Asked(NamedTuple):
    """What each job asks for on a site, in the rows of the workload; behind them, in its other partitions.

    Parameters
    ----------
    row : int64 array (n,)
        The row of the workload.
    log : Requests
        What the log says of it.
    user : int64 array (n,)
        A number for its user; -1 for none.
    partition : int64 array (n,)
        The number of the site's partition.
    limit : int64 array (n,)
        Seconds.
    request : int64 array (n, 8)
        As the engine has it: of cores, which have ``threads`` processors each.
    processors, threads : int64 array (n,)
        What it asks for in all; processors of each core of its partition.
    reservation : int64 array (n,)
        The number of the site's reservation; -1 for none.
    """

    row: Int64Array
    log: Requests
    user: Int64Array
    partition: Int64Array
    limit: Int64Array
    request: Int64Array
    processors: Int64Array
    threads: Int64Array
    reservation: Int64Array


def place_jobs(
    workload: Workload,
    site: Site,
    layout: Layout,
    associations: dict[tuple[str, str], int],
    factor: Int64Array | None = None,
    reservation: Int64Array | None = None,
) -> Placed:
    """Return the jobs for the engine.

    Parameters
    ----------
    workload : Workload
        The jobs.
    site : Site
        Where they run.
    layout : Layout
        Of its nodes.
    associations : dict
        The number of each by account and user.
    factor : int64 array (n,), optional
        site_factor of each row.
    reservation : int64 array (n,), optional
        The number of the site's reservation that each row asks for; -1 for none.

    Raises
    ------
    EvaluationError
        If the workload's clock does not count seconds, or it names a partition that the site does not have.
    """
    if workload.ticks != 1:
        raise EvaluationError(
            f"{workload.name} has {workload.ticks:,} ticks in a second; Slurm's clock counts seconds: round its times"
        )
    n = len(workload)
    asked = _asked_of(workload, site, layout, np.full(n, -1, dtype=np.int64) if reservation is None else reservation)
    job, submitted = asked.row, np.lexsort((workload.job_id, workload.submit))
    judge = _FitJudge(site, layout, asked, associations, np.concatenate([submitted, np.arange(n, len(job))]))
    order, first, other = _chained(asked, judge, submitted)
    begins, pairs, most, held = judge.counters.arrays(judge.counted[order])
    ranks = np.empty(len(job), dtype=np.int64)
    ranks[np.lexsort((np.arange(len(job)), workload.job_id[job]))] = np.arange(len(job))
    # On the Unix clock, as planned times are rounded there.
    zero = workload.unix_start or 0
    factor = np.zeros(n, dtype=np.int64) if factor is None else factor
    fixed = _fixed_part(site, layout, asked, judge, factor[job])
    longest = np.array([min(its.max_time, YEAR) for its in site.partitions], dtype=np.int64)[asked.partition]
    submit = workload.submit[job[order]] + zero
    several = np.bincount(first, minlength=len(job)) > 1
    jobs = SlurmJobs(
        ready=np.maximum(submit, asked.log.eligible[order] + zero),
        submit=np.where(np.arange(len(job)) < n, submit, NEVER),
        number=ranks[order],
        after=_after(workload, submitted)[first],
        run_time=workload.run_time[job[order]],
        limit=asked.limit[order],
        planned=_planned(site, np.minimum(asked.limit, longest), judge.no_reserve)[order],
        partition=asked.partition[order],
        user=np.unique(asked.user, return_inverse=True)[1].astype(np.int64)[order],
        association=judge.association[order],
        reservation=asked.reservation[order],
        request=asked.request[order],
        processors=asked.processors[order],
        threads=asked.threads[order],
        counters_from=begins,
        counters=pairs,
        in_array=(judge.in_array[order] + SEVERAL * several[first]).astype(np.uint8),
        hopeless=judge.hopeless[order],
        no_reserve=judge.no_reserve[order],
        fixed=fixed[order],
        by_processor=_by_processor(site, layout, asked.partition)[order],
        by_processor_beyond_share=_by_processor_beyond_share(site, layout, asked.limit)[order],
        even_share=(asked.request[:, NODES] * (layout.cores.sum() / len(layout.names)))[order],
        usage_factor=judge.usage_factor[order],
        first=first,
        other=other,
        cancelled=np.zeros((0, 2), dtype=np.int64),
    )
    qos, exempt = judge.qos[order], judge.exempt[order]
    return Placed(jobs=jobs, order=submitted, held=held, most=most, never=judge.never, qos=qos, exempt=exempt)


def _planned(site: Site, limit: Int64Array, no_reserve: UInt8Array) -> Int64Array:
    """Return what the plan counts: of jobs that may be stopped and for which nothing is reserved, a minute."""
    return np.where((no_reserve == 1) & site.preemption.on, _MINUTE, limit)


def _asked_of(workload: Workload, site: Site, layout: Layout, reservation: Int64Array) -> _Asked:
    log = workload.requests or Requests.unknown(len(workload))
    user = _users(workload, log)
    log = with_alike_users(log, workload.user, site)
    row, partition = _in_each_partition(log, site, partitions_of(workload, log, site))
    if len(row) > len(workload):
        log, user, reservation = log.select(row), user[row], reservation[row]
    request = _requests_of(workload, row, log, site, layout, partition)
    processors, threads = request[:, TOTAL_CORES].copy(), threads_of(layout)[partition]
    return _Asked(
        row=row,
        log=log,
        user=user,
        partition=partition,
        limit=limits_of(workload.requested_time[row], site, partition),
        request=_in_cores(request, threads),
        processors=processors,
        threads=threads,
        reservation=reservation,
    )


def _in_each_partition(asked: Requests, site: Site, partition: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the rows of jobs and their partitions: first all jobs, then the others of those that name several.

    These are in the order of their tiers (job_mgr.c, priority_sort_part_tier); what the site does not have is no
    partition of a job that may start in another.
    """
    rows, partition = np.arange(len(partition)), partition.copy()
    if asked.known("partitions") == 0:
        return rows, partition
    number_of = {its.name: number for number, its in enumerate(site.partitions)}
    lists = [
        sorted(
            dict.fromkeys(number_of[name] for name in names.split(",") if name in number_of),
            key=lambda number: -site.partitions[number].tier,
        )
        for names in asked.names["partitions"]
    ]
    more: list[tuple[int, int]] = []
    for row in np.flatnonzero(asked.partitions >= 0).tolist():
        numbers = lists[asked.partitions[row]]
        if numbers:
            partition[row] = numbers[0]
            more += [(row, number) for number in numbers[1:]]
    others = np.array(more, dtype=np.int64).reshape(-1, 2)
    return np.concatenate([rows, others[:, 0]]), np.concatenate([partition, others[:, 1]])


def _chained(asked: _Asked, judge: _FitJudge, submitted: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return which row of ``asked`` each of the engine's is, the first row of the same job, and the next one.

    A job is not queued in a partition in which it could never run, or where none looks at it, if it may in another;
    nor is such a job said to start never.
    """
    n, rows = len(submitted), len(asked.row)
    order = np.concatenate([submitted, np.arange(n, rows)])
    first, other = np.arange(rows), np.full(rows, -1, dtype=np.int64)
    number = np.argsort(order)
    several: dict[int, list[int]] = {}
    for row in range(n, rows):
        several.setdefault(int(asked.row[row]), [int(asked.row[row])]).append(row)
    for job, its in several.items():
        why = {row: judge.never.pop(row) for row in its if row in judge.never}
        absent = [row for row in its if judge.hopeless[row] == ABSENT]
        queued = [row for row in its if judge.hopeless[row] not in (ABSENT, REFUSED)] or absent[:1] or its[:1]
        if len(why) == len(its):
            judge.never[job] = why[queued[0]]
        left = [row for row in its if row not in queued]
        numbers = [number[row] for row in its]
        order[numbers] = [*queued, *left]
        first[numbers] = numbers[0]
        other[numbers[: len(queued) - 1]] = numbers[1 : len(queued)]
    return order, first, other


def _users(workload: Workload, asked: Requests) -> Int64Array:
    """Return a number for the user of each job, by its name, or else by the number that the log has; -1 for none."""
    beyond = len(asked.names.get("user", ()))
    numbered = np.where(workload.user >= 0, workload.user + beyond, -1)
    return np.where(asked.user_name >= 0, asked.user_name, numbered)


class _Kind(NamedTuple):
    """What a site's rules say of the jobs of one user under one account and QOS in one partition."""

    account: str
    user: str
    qos: str
    chain: list[Association]
    longest: float  # s
    most_nodes: float
    stranger: str  # why such a job is refused; empty if it is not
    not_let_in: str


def _distinct(columns: Sequence[Int64Array], order: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the rows, in an order, that are the first of their kind, and the kind of each row (n,)."""
    code = np.zeros(len(order), dtype=np.int64)
    for column in columns:
        if len(column) and (column != column[0]).any():
            number = np.unique(column, return_inverse=True)[1].astype(np.int64)
            code = np.unique(code * (number.max() + 1) + number, return_inverse=True)[1].astype(np.int64)
    _, met, number = np.unique(code[order], return_index=True, return_inverse=True)
    kind, rank = np.empty(len(order), dtype=np.int64), np.empty(len(met), dtype=np.int64)
    rank[np.argsort(met)] = np.arange(len(met))
    kind[order] = rank[number]
    return order[np.sort(met)], kind


class _FitJudge:
    """What a site's rules make of each job: its limits, its weight in fair share, and whether it can start at all.

    ``looked_at`` are the rows of ``asked`` in the order in which what concerns them is numbered.
    """

    def __init__(
        self, site: Site, layout: Layout, asked: _Asked, associations: dict[tuple[str, str], int], looked_at: Int64Array
    ) -> None:
        self.site, self.layout, self.rules, log = site, layout, Enforced(site), asked.log
        self.asked, self.allowed = asked, _allowed_to(log, site, asked.partition, self.rules)
        # Tasks of an array whose limit is known.
        self.in_array = (log.array >= 0) & (log.array_limit > 0)
        rows, self._kind = _distinct((asked.partition, log.account, log.user_name, log.qos, asked.user), looked_at)
        self._kinds = [self._kind_of(int(row)) for row in rows]
        self.counters, self.counted = self._counted(rows, looked_at)

        def of_kind(values: Iterable[float], dtype: type = np.float64) -> NDArray[Any]:
            return np.array(list(values), dtype=dtype)[self._kind]

        qos = [self.rules.qos.get(kind.qos) for kind in self._kinds]
        number_of = {its.name: number for number, its in enumerate(site.qos)}
        self.association = of_kind((associations.get((its.account, its.user), 0) for its in self._kinds), np.int64)
        self.association_priority = of_kind(
            next((level.priority for level in its.chain if level.priority), 0) for its in self._kinds
        )
        self.qos = of_kind((-1 if its is None else number_of[its.name] for its in qos), np.int64)
        self.qos_priority = of_kind(0 if its is None else its.priority for its in qos)
        self.usage_factor = of_kind(1 if its is None else its.usage_factor for its in qos)
        self.no_reserve = of_kind((its is not None and "NoReserve" in its.flags for its in qos), np.uint8)
        self.exempt = of_kind((self._exempt(int(row)) for row in rows), np.int64)
        self.hopeless = self._hopeless(
            of_kind(its.most_nodes for its in self._kinds),
            of_kind(its.longest for its in self._kinds),
            of_kind((bool(its.stranger) for its in self._kinds), np.bool_),
            of_kind((bool(its.not_let_in) for its in self._kinds), np.bool_),
        )
        self.never = {int(row): self._why(int(row)) for row in looked_at[self.hopeless[looked_at] != WELCOME]}

    def _kind_of(self, row: int) -> _Kind:
        log, rules, its = self.asked.log, self.rules, self._partition(row)
        account, user = log.name_of("account", row) or "", log.name_of("user_name", row) or ""
        chain, qos = rules.known_of(log, row)
        stranger = ""
        # A real job always has an account; of one whose log does not say it nothing is held against it.
        if rules.known_only and account and not chain:
            stranger = f"user {user or '(none)'} has no association with account {account or '(none)'}"
        return _Kind(
            account=account,
            user=user,
            qos=qos,
            chain=chain,
            longest=rules.longest(its, qos, chain),
            most_nodes=rules.most_nodes(its, qos, chain),
            stranger=stranger,
            not_let_in=_not_let_in(self.site, its, qos if log.qos[row] >= 0 else "", account),
        )

    def _partition(self, row: int) -> Partition:
        return self.site.partitions[int(self.asked.partition[row])]

    def _counted(self, rows: Int64Array, looked_at: Int64Array) -> tuple[Counters, Int64Array]:
        """Return the counters, and which of their kinds each row has."""
        counters, log = Counters(), self.asked.log
        lines = []
        for row, its in zip(rows.tolist(), self._kinds, strict=True):
            who = str(self.asked.user[row]) if self.asked.user[row] >= 0 else ""
            lines.append([*self.rules.lines(self._partition(row), its.qos, its.chain, its.account, who)])
        arrays = np.where(self.in_array, log.array, -1), np.where(self.in_array, log.array_limit, -1)
        firsts, kind = _distinct((self._kind, *arrays), looked_at)
        numbers = []
        for row in firsts.tolist():
            # The counter of an array is the first, where the engine looks for it.
            array = [array_line(int(log.array[row]), int(log.array_limit[row]))] if self.in_array[row] else []
            numbers.append(counters.add([*array, *lines[self._kind[row]]]))
        return counters, np.array(numbers, dtype=np.int64)[kind]

    def _exempt(self, row: int) -> int:
        """Return the seconds after its start in which a job is not stopped for others."""
        if not self.site.preemption.on:
            return 0
        both = self.rules.both(self._partition(row), self._kinds[int(self._kind[row])].qos)
        exempt = [its.exempt_time for its in both if math.isfinite(its.exempt_time)]
        return int(min([*exempt, self.site.preemption.exempt_time][0], _MANY))

    def _hopeless(
        self, most: FloatArray, longest: FloatArray, strangers: NDArray[np.bool_], not_let_in: NDArray[np.bool_]
    ) -> UInt8Array:
        """Return whether each job can never start, and why; no job has more nodes than its limits leave it."""
        asked, allowed = self.asked, self.allowed
        least = asked.request[:, NODES].copy()
        asked.request[:, MOST_NODES] = np.maximum(
            np.minimum(asked.request[:, MOST_NODES], most).astype(np.int64), least
        )
        tried = np.flatnonzero(~strangers & (least <= np.minimum(allowed.most_nodes, most)))
        impossible = np.zeros(len(least), dtype=np.bool_)
        impossible[tried] = self._impossible(tried)
        nodes = asked.log.nodes
        absent = (asked.limit > allowed.longest) | (nodes > allowed.most_nodes)
        absent |= (nodes > 0) & (nodes < allowed.least_nodes)
        for row in np.flatnonzero(asked.reservation >= 0).tolist():
            absent[row] |= not self._is_let_into_reservation(row)
        reasons = {
            REFUSED: strangers | impossible,
            ABSENT: absent,
            LIMITED: asked.limit > longest,
            CLOSED: not_let_in,
            CONFINED: most < least,
        }
        return np.select(list(reasons.values()), list(reasons), WELCOME).astype(np.uint8)

    def _impossible(self, rows: Int64Array) -> NDArray[np.bool_]:
        """Return which of some jobs could not run even if all nodes were empty."""
        site, layout, asked = self.site, self.layout, self.asked
        has, choice, version = node_capacity(site, layout), new_choice(len(layout.names)), version_number(site)
        blocks = new_blocks(np.concatenate([has.T, layout.members]))
        cores, nodes, empty = has[:, CORES].astype(np.int32), len(has), np.zeros_like(has)
        divide(blocks, cores, has[:, WEIGHT], cores, np.ones(nodes, np.uint8), np.zeros(nodes, np.int32))
        columns = (asked.partition[rows], *asked.request[rows].T)
        firsts, kind = _distinct(columns, np.arange(len(rows)))
        could = []
        for row in rows[firsts].tolist():
            members = layout.members[asked.partition[row]][blocks.first].astype(np.uint8)
            could.append(choose(asked.request[row], has, empty, blocks, blocks.weight, members, choice, version) > 0)
        return ~np.array(could, dtype=np.bool_)[kind]

    def _is_let_into_reservation(self, row: int) -> bool:
        its, reservation = self._kinds[int(self._kind[row])], self.site.reservations[self.asked.reservation[row]]
        above = self.rules.chain(its.account, its.user) if self.rules.known_only else []
        return lets_in(reservation, its.user, (its.account, *(association.account for association in above)))

    def _why(self, row: int) -> str:
        """Return why a job can never start."""
        its, partition, allowed = self._kinds[int(self._kind[row])], self._partition(row), self.allowed
        limit, nodes = int(self.asked.limit[row]), int(self.asked.log.nodes[row])
        code = self.hopeless[row]
        if code == REFUSED:
            too_small = f"the nodes of partition {partition.name} are too few or too small for it"
            return its.stranger or f"{too_small}, even if nothing else ran there"
        if code == LIMITED:
            return f"its limit of {limit:,} s is above MaxWall ({its.longest:,.0f} s)"
        if code == CLOSED:
            return its.not_let_in
        if code == CONFINED:
            least = int(self.asked.request[row, NODES])
            return f"its {least:,} nodes are more than its limits leave it ({its.most_nodes:,.0f})"
        if limit > allowed.longest[row]:
            return (
                f"its limit of {limit:,} s is above MaxTime of partition {partition.name} ({partition.max_time:,.0f} s)"
            )
        if nodes > allowed.most_nodes[row]:
            return f"its {nodes:,} nodes are above MaxNodes of partition {partition.name} ({partition.max_nodes:,.0f})"
        if 0 < nodes < allowed.least_nodes[row]:
            return f"its {nodes:,} nodes are below MinNodes of partition {partition.name} ({partition.min_nodes:,})"
        reservation = self.site.reservations[self.asked.reservation[row]]
        return f"reservation {reservation.name} is not open to user {its.user or '(none)'}"


def _not_let_in(site: Site, its: Partition, qos: str, account: str) -> str:
    """Return why a partition does not let a job in; empty if it does, or the log says neither QOS nor account."""
    if its.allowed_qos and qos and qos not in its.allowed_qos:
        return f"partition {its.name} is not open to QOS {qos}"
    if account and not site.lets_in(its, account):
        return f"partition {its.name} is not open to account {account}"
    return ""


def _after(workload: Workload, order: Int64Array) -> Int64Array:
    """Return the place in ``order`` of the job that each waits for; -1 for none, or one that is not there."""
    asked = workload.requests or Requests.unknown(len(workload))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    by_id = np.argsort(workload.job_id, kind="stable")
    position = np.searchsorted(workload.job_id[by_id], asked.after)
    found = (asked.after >= 0) & (position < len(by_id))
    row = by_id[np.where(found, position, 0)]
    found &= workload.job_id[row] == asked.after
    return np.where(found, rank[row], -1)[order]


# What each job asks for, in Slurm's words. ----------------------------------------------------------------------------

_MANY = 2**40
_MINUTE = 60


class _Allowed(NamedTuple):
    """What its partition allows each job, where its QOS does not lift that.

    Parameters
    ----------
    least_nodes : int64 array (n,)
        Nodes.
    most_nodes, longest : float64 array (n,)
        Nodes; seconds.
    """

    least_nodes: Int64Array
    most_nodes: FloatArray
    longest: FloatArray


def _allowed_to(asked: Requests, site: Site, partition: Int64Array, rules: Enforced) -> _Allowed:
    """Return what the partition of each job allows it."""

    def of_partition(name: str) -> FloatArray:
        return np.array([getattr(its, name) for its in site.partitions], dtype=np.float64)[partition]

    least, most, longest = (of_partition(name) for name in ("min_nodes", "max_nodes", "max_time"))
    if any(flag.startswith("Partition") for limits in site.qos for flag in limits.flags):
        # A job may have its QOS of its association.
        who = np.stack([asked.account, asked.user_name, asked.qos], axis=1)
        _, rows, kind = np.unique(who, axis=0, return_index=True, return_inverse=True)
        for flag, column, free in (
            ("PartitionMinNodes", least, 1.0),
            ("PartitionMaxNodes", most, math.inf),
            ("PartitionTimeLimit", longest, math.inf),
        ):
            lifted = np.array([rules.lifts(rules.known_of(asked, int(row))[1], flag) for row in rows], dtype=np.bool_)
            column[lifted[kind.reshape(-1)]] = free
    return _Allowed(least.astype(np.int64), most, longest)


def partitions_of(workload: Workload, asked: Requests, site: Site) -> Int64Array:
    """Return the number of the site's partition of each job, as `partition_numbers` does; an error where it has none.

    Raises
    ------
    EvaluationError
        If the site has no partition of a job.
    """
    partition = partition_numbers(site, asked)
    if (partition < 0).any():
        row = int(np.argmax(partition < 0))
        names, known = asked.names["partition"], sorted(its.name for its in site.partitions)
        raise EvaluationError(
            f"{workload.name}: job {workload.job_id[row]} asks for partition {names[asked.partition[row]]!a}, which "
            f"site {site.name} does not have (it has {', '.join(known)}); {int((partition < 0).sum()):,} "
            f"of {len(workload):,} jobs are so: is this log of another cluster? Add the partition to the site file, or "
            "choose the jobs of others (policyfactory workload clean --partition)"
        )
    return partition


def limits_of(requested: Int64Array, site: Site, partition: Int64Array) -> Int64Array:
    """Return the limit of each job in seconds: whole minutes, rounded up."""
    limit = requested.astype(np.float64)
    for number, its in enumerate(site.partitions):
        mine = (partition == number) & (limit <= 0)
        limit[mine] = its.default_time if math.isfinite(its.default_time) else its.max_time
    return np.ceil(np.minimum(limit, YEAR) / _MINUTE).astype(np.int64) * _MINUTE


def _requests_of(
    workload: Workload, row: Int64Array, asked: Requests, site: Site, layout: Layout, partition: Int64Array
) -> Int64Array:
    """Return the engine's requests; what a log says of the whole job is spread evenly over its nodes."""
    given, cores = site.scheduling, workload.processors[row]
    most_gpus = np.array([layout.gpus[row].max(initial=1) for row in layout.members])[partition]
    gpus = np.maximum(asked.gpus, 0)
    nodes = np.where((asked.nodes < 0) & (gpus > 0), -(-gpus // np.maximum(most_gpus, 1)), asked.nodes)
    known = nodes > 0
    node_gpus = np.where(known, -(-gpus // np.maximum(nodes, 1)), 0)
    defaults = defaults_of(site, partition)
    if defaults.gpu_cores.any():
        cores = with_default_cores(cores, nodes, node_gpus, defaults, workload.start[row] >= 0)
    # A job that says no number of nodes has those of its partition, whatever its QOS.
    least_nodes = np.array([its.min_nodes for its in site.partitions])[partition]
    most_nodes = np.array([min(its.max_nodes, _MANY) for its in site.partitions])[partition]
    request = np.zeros((len(cores), 8), dtype=np.int64)
    request[:, NODES] = np.where(known, nodes, least_nodes)
    request[:, MOST_NODES] = np.where(known, nodes, np.maximum(np.minimum(most_nodes, cores), request[:, NODES]))
    request[:, TOTAL_CORES] = np.where(known, np.maximum(cores, nodes), cores)
    request[:, NODE_GPUS] = node_gpus
    exclusive = np.array([its.exclusive for its in site.partitions])[partition]
    whole = exclusive | (asked.exclusive == 1) | (given.select == "nodes")
    request[:, WHOLE] = whole
    # As with --ntasks-per-node; what cannot be spread evenly is asked for in all.
    even = known & ~whole & (cores % np.maximum(nodes, 1) == 0) & (cores >= nodes)
    even |= known & ~whole & (cores < nodes)
    request[:, NODE_CORES] = np.where(even, np.maximum(cores // np.maximum(nodes, 1), 1), 0)
    given_memory = asked.memory >= 0
    of_node = np.where(known, -(-asked.memory // np.maximum(nodes, 1)), 0)
    of_core = np.where(known, 0, -(-asked.memory // cores))
    by_gpus = defaults.gpu_memory * node_gpus
    node_memory = np.where(by_gpus > 0, by_gpus, defaults.node_memory)
    core_memory = np.where(by_gpus > 0, 0, defaults.core_memory)
    # Who asks for none gets all of a node; but a log that says no job's memory does not say that they ask for none.
    if given_memory.any() and counts_memory(site, layout):
        node_memory[(node_memory == 0) & (core_memory == 0)] = -1
    request[:, NODE_MEMORY] = np.where(given_memory, of_node, node_memory)
    request[:, CORE_MEMORY] = np.where(given_memory, of_core, core_memory)
    return request


def threads_of(layout: Layout) -> Int64Array:
    """Return how many processors the cores of each partition have: the fewest, where its nodes differ."""
    fewest = [layout.threads[members].min(initial=layout.threads.max(initial=1)) for members in layout.members]
    return np.array(fewest, dtype=np.int64)


def _in_cores(request: Int64Array, threads: Int64Array) -> Int64Array:
    """Return requests for processors as requests for whole cores, of so many processors each.

    Slurm chooses nodes by processors, which are offered by whole cores, keeps a core back for each node that is still
    needed, and rounds up what a job has of each node: this comes to the same.
    """
    request[:, TOTAL_CORES] = np.maximum(-(-request[:, TOTAL_CORES] // threads), request[:, NODES])
    request[:, NODE_CORES] = -(-request[:, NODE_CORES] // threads)
    request[:, CORE_MEMORY] *= threads
    return request


# The parts of a priority that the request and the site decide (priority/multifactor). ---------------------------------

# Under priority/basic each job has a little less than the one before; that their order decides says the same.
_BASIC = 2.0**32 - 1


class Weighed(NamedTuple):
    """What site and request of each job (n,) count in its priority.

    Parameters
    ----------
    partition : int64 array
        Numbers of the site's partitions.
    limit : int64 array
        Seconds.
    nodes, cores : int64 array
        Nodes and processors, as they count for its size.
    qos, association : float64 array
        Their priorities.
    resources : mapping of str to float64 array
        What it asks for by TRES, memory in MB.
    """

    partition: Int64Array
    limit: Int64Array
    nodes: Int64Array
    cores: Int64Array
    qos: FloatArray
    association: FloatArray
    resources: Mapping[str, FloatArray]


def fixed_terms(site: Site, layout: Layout, jobs: Weighed) -> dict[str, FloatArray]:
    """Return the terms of the priority that time and usage do not change, by the columns of sprio.

    These are JOBSIZE, PARTITION, QOS, ASSOC, and TRES of each resource (``TRES cpu``).

    Parameters
    ----------
    site : Site
        With priority/multifactor.
    layout : Layout
        Of its nodes.
    jobs : Weighed
    """
    partition, given, flags = jobs.partition, site.priority, {flag.upper() for flag in site.priority.flags}
    nodes, cores = jobs.nodes.astype(np.float64), jobs.cores.astype(np.float64)
    all_nodes, all_cores = len(layout.names), int(layout.cores.sum())
    size = (nodes / all_nodes + cores / all_cores) / 2
    if "SMALL_RELATIVE_TO_TIME" in flags:
        size = np.maximum(nodes * all_cores / all_nodes, cores) / (jobs.limit / _MINUTE) / all_cores
    if given.favor_small:
        size = 1 - size
    factors = np.array([its.job_factor for its in site.partitions], dtype=np.float64)
    if not flags & {"NO_NORMAL_PART", "NO_NORMAL_ALL"}:
        factors /= max(factors.max(), 1.0)
    most = max((limits.priority for limits in site.qos), default=0)
    raw_qos = bool(flags & {"NO_NORMAL_QOS", "NO_NORMAL_ALL"})
    most_association = max((association.priority for association in site.associations), default=0)
    raw_association = bool(flags & {"NO_NORMAL_ASSOC", "NO_NORMAL_ALL"})
    return {
        "JOBSIZE": given.job_size * np.clip(size, 0.0, 1.0),
        "PARTITION": given.partition * factors[partition],
        "QOS": given.qos * (jobs.qos if raw_qos else jobs.qos / max(most, 1)),
        "ASSOC": given.association
        * (jobs.association if raw_association else jobs.association / max(most_association, 1)),
        **_resources(site, layout, jobs, raw=bool(flags & {"NO_NORMAL_TRES", "NO_NORMAL_ALL"})),
    }


def _fixed_part(site: Site, layout: Layout, asked: _Asked, judge: _FitJudge, factor: Int64Array) -> FloatArray:
    """Return the part of the priority of each job that does not change, its site_factor included."""
    request = asked.request
    if site.priority.kind != "multifactor":
        return np.full(len(request), _BASIC)
    nodes, cores = request[:, NODES], asked.processors
    of_cores = request[:, CORE_MEMORY] // asked.threads * cores
    memory = np.where(request[:, NODE_MEMORY] > 0, request[:, NODE_MEMORY] * nodes, of_cores)
    asks = {"cpu": cores, "mem": memory, "node": nodes, "gres/gpu": request[:, NODE_GPUS] * nodes}
    resources = {name: count.astype(np.float64) for name, count in asks.items()}
    weighed = Weighed(
        partition=asked.partition,
        limit=asked.limit,
        nodes=nodes,
        cores=cores,
        qos=judge.qos_priority,
        association=judge.association_priority,
        resources=resources,
    )
    terms = fixed_terms(site, layout, weighed)
    fixed = terms["JOBSIZE"] + terms["PARTITION"] + terms["QOS"] + terms["ASSOC"]
    by_resource = [term for name, term in terms.items() if name.startswith("TRES ")]
    return fixed + sum(by_resource, np.zeros(len(request))) + factor


def _by_processor(site: Site, layout: Layout, partition: Int64Array) -> FloatArray:
    """Return how much of the priority a processor more gives: a job may have more than it asks for on its nodes."""
    given, flags = site.priority, {flag.upper() for flag in site.priority.flags}
    if given.kind != "multifactor":
        return np.zeros(len(partition))
    size = 0.0 if "SMALL_RELATIVE_TO_TIME" in flags else given.job_size / (2 * int(layout.cores.sum()))
    weight = given.tres.get("cpu", 0.0)
    whole = np.maximum(layout.members @ layout.cores, 1)[partition].astype(np.float64)
    if flags & {"NO_NORMAL_TRES", "NO_NORMAL_ALL"}:
        whole[:] = 1.0
    each: FloatArray = (-size if given.favor_small else size) + weight / whole
    return each


def _by_processor_beyond_share(site: Site, layout: Layout, limit: Int64Array) -> FloatArray:
    """Return what a processor beyond an even share of its nodes gives a job, whose size counts by its time limit."""
    given, flags = site.priority, {flag.upper() for flag in site.priority.flags}
    if given.kind != "multifactor" or "SMALL_RELATIVE_TO_TIME" not in flags:
        return np.zeros(len(limit))
    each: FloatArray = given.job_size / (limit / _MINUTE) / int(layout.cores.sum())
    return -each if given.favor_small else each


def _resources(site: Site, layout: Layout, jobs: Weighed, *, raw: bool) -> dict[str, FloatArray]:
    """Return what PriorityWeightTRES gives each job, by resource."""
    has = {
        "cpu": layout.members @ layout.cores,
        "mem": layout.members @ layout.memory,
        "node": layout.members.sum(axis=1),
        "gres/gpu": layout.members @ layout.gpus,
    }
    found: dict[str, FloatArray] = {}
    for name, weight in site.priority.tres.items():
        if name in jobs.resources and name in has:
            whole, asked = has[name][jobs.partition], jobs.resources[name]
            found[f"TRES {name}"] = weight * (asked if raw else np.where(whole > 0, asked / np.maximum(whole, 1), 0.0))
    return found


# Jobs that could never start, before anything is simulated. -----------------------------------------------------------

_MOST_NAMED = 5


def fit_to(site: Site, workload: Workload) -> SiteFit:
    """Return which jobs of a workload could run on an empty site, by all that the simulation refuses jobs for.

    Parameters
    ----------
    site : Site
        Any. For a clock of other ticks than seconds, only what the jobs ask for is compared with what there is.
    workload : Workload
        Any; what it does not say of a job stops none.
    """
    if workload.ticks != 1:
        return fit_jobs(site, workload)
    inside = in_partitions(site, workload)
    rows = np.flatnonzero(inside)
    never = _never(workload.select(inside), site)
    return fit_jobs(site, workload, {int(rows[row]): why for row, why in never.items()})


def without_misfits(workload: Workload, site: Site) -> tuple[Workload, str]:
    """Return a workload without the jobs that could never start on a site, and in a sentence which these are.

    They ran, so the site has changed since, or its file is wrong; `policyfactory.evaluation.fidelity` says whether
    there are too many of them for anything that is simulated to be trusted.

    Parameters
    ----------
    workload : Workload
        Any; times in seconds.
    site : Site
        A described one.

    Returns
    -------
    workload : Workload
        On the same clock.
    left_out : str
        How many there were, and the first of them; empty if none was left out.

    Raises
    ------
    EvaluationError
        If most jobs are so, apart from those of partitions that the site does not have, or the clock does not count
        seconds.
    """
    workload, strangers = without_strangers(workload, site)
    if not in_partitions(site, workload).all():
        return workload, strangers
    never = _never(workload, site)
    if not never:
        return workload, strangers
    if mostly_of_others(len(workload) - len(never), len(workload)):
        raise EvaluationError(
            f"{workload.name}: {len(never):,} of {counted(len(workload), 'job')} never start on site {site.name}: "
            f"{never_words(workload, never)}; is this log of another cluster? policyfactory site check LOG SITE counts "
            "such jobs by their reasons; correct the site file"
        )
    stays = np.ones(len(workload), dtype=np.bool_)
    stays[list(never)] = False
    sentence = (
        f"{len(never):,} of {counted(len(workload), 'job')} of {workload.name} {'is' if len(never) == 1 else 'are'} "
        f"left out: {'it' if len(never) == 1 else 'they'} could never start on site {site.name}: "
        f"{never_words(workload, never)}."
    )
    return workload.select(stays), f"{strangers} {sentence}".strip()


def never_words(workload: Workload, never: Mapping[int, str]) -> str:
    """Return the first jobs that never start, by row, with the reason of each."""
    stopped: dict[str, list[int]] = {}
    for row, why in never.items():
        stopped.setdefault(why, []).append(int(workload.job_id[row]))
    reasons = [f"{_listed(jobs)} ({why})" for why, jobs in list(stopped.items())[:_MOST_NAMED]]
    return "; ".join(reasons) + ("; and others" if len(stopped) > _MOST_NAMED else "")


def _never(workload: Workload, site: Site) -> dict[int, str]:
    jobs = in_own_partitions(workload, site)
    return dict(sorted(place_jobs(jobs, site, lay_out(site), shares_of(site)[1]).never.items()))


def _listed(jobs: list[int]) -> str:
    rest = len(jobs) - _MOST_NAMED
    named = ", ".join(map(str, jobs[:_MOST_NAMED])) + (f" and {rest:,} more" if rest > 0 else "")
    return f"job{'s' if len(jobs) > 1 else ''} {named}"
