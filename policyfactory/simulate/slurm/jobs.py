"""From a workload and a site to the engine's jobs, and which of them can never start."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.errors import EvaluationError
from policyfactory.engine.slurm_blocks import divide, new_blocks
from policyfactory.engine.slurm_demand import CORES, MOST_NODES, NODES, WEIGHT
from policyfactory.engine.slurm_jobs import ABSENT, CLOSED, CONFINED, LIMITED, REFUSED, WELCOME, Jobs
from policyfactory.engine.slurm_nodes import choose, new_choice
from policyfactory.simulate.slurm.counters import Counters, Enforced, array_line
from policyfactory.simulate.slurm.factors import by_core, fixed_part
from policyfactory.simulate.slurm.machine import YEAR, node_capacity
from policyfactory.simulate.slurm.requests import Allowed, allowed_to, limits_of, partitions_of, requests_of
from policyfactory.site.layout import Layout
from policyfactory.site.model import Association, Partition, Site
from policyfactory.site.users import with_alike_users
from policyfactory.workload.jobs import Workload
from policyfactory.workload.requests import Requests

__all__ = ["Placed", "place_jobs"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The jobs of a workload on a site.

    Parameters
    ----------
    jobs : Jobs
        In the order of submission.
    order : int array (n,)
        The row of the workload of each.
    held : tuple of (str, ...)
        What is held together: the kind of the counter, and of what.
    most : float64 array (L, 5)
        The limits.
    never : dict of int to str
        Rows of jobs that can never start, and why.
    """

    jobs: Jobs
    order: Int64Array
    held: tuple[tuple[str, ...], ...]
    most: FloatArray
    never: dict[int, str]


def place_jobs(
    workload: Workload,
    site: Site,
    layout: Layout,
    associations: dict[tuple[str, str], int],
    factor: Int64Array,
    reservation: Int64Array,
) -> Placed:
    """Return the jobs for the engine.

    Parameters
    ----------
    workload : Workload
    site : Site
    layout : Layout
        Of its nodes.
    associations : dict
        The number of each by account and user.
    factor : int64 array (n,)
        site_factor of each row.
    reservation : int64 array (n,)
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
    asked, n = workload.requests or Requests.unknown(len(workload)), len(workload)
    user = _users(workload, asked)
    asked = with_alike_users(asked, workload.user, site)
    partition = partitions_of(workload, asked, site)
    limit = limits_of(workload, site, partition)
    rules = Enforced(site)
    allowed = allowed_to(asked, site, partition, rules)
    request = requests_of(workload, asked, site, layout, partition)
    judge = _Judge(site, layout, rules, asked, user, partition, request, limit, allowed, reservation)
    order = np.lexsort((workload.job_id, workload.submit))
    for row in order:
        judge.look_at(int(row), associations)
    begins, pairs, most, held = judge.counters.arrays()
    ranks = np.empty(n, dtype=np.int64)
    ranks[np.argsort(workload.job_id, kind="stable")] = np.arange(n)
    # On the Unix clock, as planned times are rounded there.
    zero = workload.unix_start or 0
    priorities = judge.qos_priority, judge.association_priority
    fixed = fixed_part(site, layout, partition, request, limit, *priorities, factor)
    longest = np.array([min(its.max_time, YEAR) for its in site.partitions], dtype=np.int64)[partition]
    jobs = Jobs(
        ready=np.maximum(workload.submit, asked.eligible)[order] + zero,
        submit=workload.submit[order] + zero,
        number=ranks[order],
        after=_after(workload, asked, order),
        run_time=workload.run_time[order],
        limit=limit[order],
        planned=np.minimum(limit, longest)[order],
        partition=partition[order],
        user=np.unique(user, return_inverse=True)[1].astype(np.int64)[order],
        association=judge.association[order],
        reservation=reservation[order],
        request=request[order],
        counters_from=begins,
        counters=pairs,
        in_array=_in_array(asked)[order].astype(np.uint8),
        hopeless=judge.hopeless[order],
        no_reserve=judge.no_reserve[order],
        fixed=fixed[order],
        by_core=by_core(site, layout, partition)[order],
        usage_factor=judge.usage_factor[order],
    )
    return Placed(jobs, order, held, most, judge.never)


def _users(workload: Workload, asked: Requests) -> Int64Array:
    """Return a number for the user of each job, by its name, or else by the number that the log has; -1 for none."""
    beyond = len(asked.names.get("user", ()))
    numbered = np.where(workload.user >= 0, workload.user + beyond, -1)
    return np.where(asked.user_name >= 0, asked.user_name, numbered)


class _Judge:
    """What a site's rules make of each job: its limits, its weight in fair share, and whether it can start at all."""

    def __init__(
        self,
        site: Site,
        layout: Layout,
        rules: Enforced,
        asked: Requests,
        user: Int64Array,
        partition: Int64Array,
        request: Int64Array,
        limit: Int64Array,
        allowed: Allowed,
        reservation: Int64Array,
    ) -> None:
        self.site, self.layout, self.rules, self.asked, self.allowed = site, layout, rules, asked, allowed
        self.partition, self.request, self.limit, self.reservation = partition, request, limit, reservation
        self.user = user
        self.counters = Counters()
        self.has, self.choice = node_capacity(site, layout), new_choice(len(layout.names))
        self.blocks = new_blocks(np.concatenate([self.has.T, layout.members]))
        cores, nodes = self.has[:, CORES].astype(np.int32), len(self.has)
        divide(self.blocks, cores, self.has[:, WEIGHT], cores, np.ones(nodes, np.uint8), np.zeros(nodes, np.int32))
        jobs = len(asked)
        self.association = np.zeros(jobs, dtype=np.int64)
        self.qos_priority, self.association_priority, self.usage_factor = np.zeros(jobs), np.zeros(jobs), np.ones(jobs)
        self.no_reserve, self.hopeless = np.zeros(jobs, dtype=np.uint8), np.zeros(jobs, dtype=np.uint8)
        self.never: dict[int, str] = {}
        self.in_array = _in_array(asked)
        self._known: dict[tuple[int, ...], tuple[str, list[Association], float, float]] = {}
        self._could: dict[tuple[int, ...], bool] = {}

    def look_at(self, row: int, associations: dict[tuple[str, str], int]) -> None:
        """Fill in the row of a job."""
        asked, rules, its = self.asked, self.rules, self.site.partitions[self.partition[row]]
        account, user = asked.name_of("account", row) or "", asked.name_of("user_name", row) or ""
        key = tuple(int(column[row]) for column in (self.partition, asked.account, asked.user_name, asked.qos))
        if key not in self._known:
            chain, qos = rules.known_of(asked, row)
            self._known[key] = qos, chain, rules.longest(its, qos, chain), rules.most_nodes(its, qos, chain)
        qos, chain, longest, most = self._known[key]
        # The counter of an array is the first, where the engine looks for it.
        arrays = [array_line(int(asked.array[row]), int(asked.array_limit[row]))] if self.in_array[row] else []
        who = str(self.user[row]) if self.user[row] >= 0 else ""
        self.counters.add([*arrays, *rules.lines(its, qos, chain, account, who)])
        self.association[row] = associations.get((account, user), 0)
        self.association_priority[row] = next((one.priority for one in chain if one.priority), 0)
        if (one := rules.qos.get(qos)) is not None:
            self.qos_priority[row], self.usage_factor[row] = one.priority, one.usage_factor
            self.no_reserve[row] = "NoReserve" in one.flags
        least, widest = int(self.request[row, NODES]), min(float(self.request[row, MOST_NODES]), most)
        self.request[row, MOST_NODES] = max(int(widest), least)
        hopeless, why = WELCOME, ""
        # A real job always has an account; of one whose log does not say it nothing is held against it.
        if rules.known_only and account and not chain:
            hopeless, why = REFUSED, f"user {user or '(none)'} has no association with account {account or '(none)'}"
        elif least <= min(self.allowed.most_nodes[row], most) and (why := self._impossible(row, its)):
            hopeless = REFUSED
        elif why := self._absent(row, its, account, user):
            hopeless = ABSENT
        elif self.limit[row] > longest:
            hopeless, why = LIMITED, f"its limit of {self.limit[row]:,} s is above MaxWall ({longest:,.0f} s)"
        elif why := _not_let_in(its, qos if asked.qos[row] >= 0 else "", account):
            hopeless = CLOSED
        elif most < least:
            hopeless, why = CONFINED, f"its {least:,} nodes are more than its limits leave it ({most:,.0f})"
        self.hopeless[row] = hopeless
        if why:
            self.never[row] = why

    def _impossible(self, row: int, its: Partition) -> str:
        """Return why a job could not run even if all nodes were empty; empty if it could."""
        request, number = self.request[row], int(self.partition[row])
        key = (number, *map(int, request))
        if key not in self._could:
            members = self.layout.members[number][self.blocks.first].astype(np.uint8)
            empty = np.zeros_like(self.has)
            self._could[key] = choose(request, self.has, empty, self.blocks, members, self.choice) > 0
        if self._could[key]:
            return ""
        return f"the nodes of partition {its.name} are too few or too small for it, even if nothing else ran there"

    def _absent(self, row: int, its: Partition, account: str, user: str) -> str:
        """Return why a job is never looked at; empty if it is."""
        asked, limit = int(self.asked.nodes[row]), int(self.limit[row])
        if limit > self.allowed.longest[row]:
            return f"its limit of {limit:,} s is above MaxTime of partition {its.name} ({its.max_time:,.0f} s)"
        if asked > self.allowed.most_nodes[row]:
            return f"its {asked:,} nodes are above MaxNodes of partition {its.name} ({its.max_nodes:,.0f})"
        if 0 < asked < self.allowed.least_nodes[row]:
            return f"its {asked:,} nodes are below MinNodes of partition {its.name} ({its.min_nodes:,})"
        if self.reservation[row] >= 0:
            one = self.site.reservations[self.reservation[row]]
            if user not in one.users and account not in one.accounts:
                return f"reservation {one.name} is not open to user {user or '(none)'}"
        return ""


def _in_array(asked: Requests) -> NDArray[np.bool_]:
    """Say which jobs are tasks of an array whose limit is known."""
    return (asked.array >= 0) & (asked.array_limit > 0)


def _not_let_in(its: Partition, qos: str, account: str) -> str:
    """Return why a partition does not let a job in; empty if it does, or the log says neither QOS nor account."""
    if its.allowed_qos and qos and qos not in its.allowed_qos:
        return f"partition {its.name} is not open to QOS {qos}"
    if its.allowed_accounts and account and account not in its.allowed_accounts:
        return f"partition {its.name} is not open to account {account}"
    return ""


def _after(workload: Workload, asked: Requests, order: Int64Array) -> Int64Array:
    """Return the place in ``order`` of the job that each waits for; -1 for none, or one that is not there."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    by_id = np.argsort(workload.job_id, kind="stable")
    at = np.searchsorted(workload.job_id[by_id], asked.after)
    found = (asked.after >= 0) & (at < len(by_id))
    row = by_id[np.where(found, at, 0)]
    found &= workload.job_id[row] == asked.after
    return np.where(found, place[row], -1)[order]
