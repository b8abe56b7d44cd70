"""What a site's QOS and associations let run, plainly (Slurm 22.05, src/slurmctld/acct_policy.c).

Nothing is counted ahead: every question looks at all running jobs.
"""

from __future__ import annotations

import dataclasses
import math

from naive.slurm_jobs import Allocation, Entry, Job
from policyfactory.site.model import Association, Limits, Partition, Qos, Site

__all__ = ["Account", "Request", "Rules"]

RESOURCES = ("cores", "memory", "nodes", "gpus")


@dataclasses.dataclass(frozen=True)
class Request:
    """What a job would hold; the nodes are those chosen, if any were."""

    cores: int
    memory: int
    gpus: int
    nodes: int
    chosen: frozenset[int] = frozenset()

    @classmethod
    def of(cls, allocation: Allocation, *, count_all: bool = False) -> Request:
        """Return that of a placed job; ``count_all``: as one whose nodes are not known yet."""
        cores, memory, gpus = (sum(share[k] for share in allocation.values()) for k in range(3))
        return cls(cores, memory, gpus, len(allocation), frozenset() if count_all else frozenset(allocation))


# A user in an account, or an account: (account, user or "").
Account = tuple[str, str]


class Rules:
    """The limits of a site."""

    def __init__(self, site: Site) -> None:
        self.on = "limits" in site.enforced
        self.known_only = bool(site.associations) and bool(
            set(site.enforced) & {"associations", "limits", "qos", "safe"}
        )
        self.qos = {qos.name: qos for qos in site.qos}
        self.associations = {(one.account.lower(), one.user.lower()): one for one in site.associations}

    def chain(self, job: Job) -> list[Association]:
        """Return the job's association and the accounts above it, root last; empty if it has none."""
        one = self.associations.get((job.account.lower(), job.user.lower()))
        found = []
        while one is not None:
            found.append(one)
            above = (one.account if one.user else one.parent or "root").lower(), ""
            one = None if (one.account, one.user) == ("root", "") else self.associations.get(above)
        return found

    def refused(self, job: Job) -> bool:
        # A real job always has an account; of one whose log does not say it nothing is held against it.
        return self.known_only and bool(job.account) and not self.chain(job)

    def lifts(self, qos: str, flag: str) -> bool:
        """Return whether the job's own QOS lifts a limit of its partition."""
        return qos in self.qos and flag in self.qos[qos].flags

    def qos_of(self, job: Job) -> str:
        """Return the job's own QOS, or the default of the nearest association that has one, or ``normal``."""
        for name in (job.qos, *(one.default_qos for one in self.chain(job)), "normal"):
            if name:
                return name if name in self.qos else ""
        return ""

    def both_qos(self, partition: Partition, name: str) -> list[Qos]:
        """Return the two QOS that limit a job, the one whose word counts first."""
        own, its = self.qos.get(name), self.qos.get(partition.qos)
        both = [own, its] if own is not None and "OverPartQOS" in own.flags else [its, own]
        return [qos for place, qos in enumerate(both) if qos is not None and qos not in both[:place]]

    def inherited(self, chain: list[Association], what: str, resource: str = "") -> float:
        """Return what the nearest association of the chain says."""
        for one in chain:
            value = getattr(one, what)
            value = getattr(value, resource) if resource else value
            if not math.isinf(value):
                return float(value)
        return math.inf

    def may_submit(self, job: Job, partition: Partition, present: list[Entry]) -> bool:
        """Return whether the job is taken at all; ``present``: all that wait or run."""
        if not self.on:
            return True
        chain = self.chain(job)
        total = user = account = math.inf
        for qos in self.both_qos(partition, self.qos_of(job)):
            of_qos = self._of_qos(present, qos)
            for known, limit, group in (
                (total, qos.total, of_qos),
                (account, qos.per_account, [one for one in of_qos if one.job.account == job.account]),
                (user, qos.per_user, [one for one in of_qos if _same_user(one.job, job)]),
            ):
                if math.isinf(known) and len(group) >= limit.submitted:
                    return False
            total, account = min(total, qos.total.submitted), min(account, qos.per_account.submitted)
            user = min(user, qos.per_user.submitted)
        if math.isinf(total) and any(len(self._below(present, one)) >= one.total.submitted for one in chain):
            return False
        own = self.inherited(chain, "own", "submitted") if math.isinf(min(user, account)) else math.inf
        return not (chain and job.user) or len(self._below(present, chain[0])) < own

    def _of_qos(self, entries: list[Entry], qos: Qos) -> list[Entry]:
        return [one for one in entries if qos in self.both_qos(one.partition, one.qos)]

    def _below(self, entries: list[Entry], association: Association) -> list[Entry]:
        return [one for one in entries if association in self.chain(one.job)]

    def before_placing(self, entry: Entry, running: list[Entry]) -> bool:
        """Return whether the numbers of running jobs and the longest times let it run (runnable_pre_select)."""
        if not self.on:
            return True
        job, chain = entry.job, self.chain(entry.job)
        if self.refused(job):
            return False  # it has no association
        jobs = account = user = wall = math.inf
        for qos in self.both_qos(entry.partition, entry.qos):
            of_qos = self._of_qos(running, qos)
            if math.isinf(jobs) and len(of_qos) >= qos.total.jobs:
                return False
            if math.isinf(account) and sum(one.job.account == job.account for one in of_qos) >= qos.per_account.jobs:
                return False
            if math.isinf(user) and sum(_same_user(one.job, job) for one in of_qos) >= qos.per_user.jobs:
                return False
            if math.isinf(wall) and entry.limit > qos.max_wall:
                return False
            # What the first QOS limits, the second and the associations do not.
            jobs, account = _either(jobs, qos.total.jobs), _either(account, qos.per_account.jobs)
            user, wall = _either(user, qos.per_user.jobs), _either(wall, qos.max_wall)
        if math.isinf(jobs) and any(len(self._below(running, one)) >= one.total.jobs for one in chain):
            return False
        own = self.inherited(chain, "own", "jobs") if math.isinf(min(account, user)) else math.inf
        if chain and job.user and len(self._below(running, chain[0])) >= own:
            return False
        return not (math.isinf(wall) and entry.limit > self.inherited(chain, "max_wall"))

    def most_nodes(self, entry: Entry) -> float:
        """Return the most nodes that any limit leaves (acct_policy_get_max_nodes)."""
        if not self.on:
            return math.inf
        job_limits = total = math.inf
        both, chain = self.both_qos(entry.partition, entry.qos), self.chain(entry.job)
        for kind in ("per_account", "per_job", "per_user"):
            job_limits = min(job_limits, _first(both, kind, "nodes"))
        total = _first(both, "total", "nodes")
        most = min(job_limits, total)
        for place, one in enumerate(chain):
            grouped = math.isinf(total) and one.total.nodes < most
            most = min(most, one.total.nodes) if grouped else most
            if place == 0 and math.isinf(job_limits):
                most = min(most, self.inherited(chain, "per_job", "nodes"))
            if grouped:
                break
        return most

    def after_placing(self, entry: Entry, request: Request, running: list[Entry]) -> bool:
        """Return whether what it would hold fits into every limit beside what others hold (runnable_post_select)."""
        if not self.on:
            return True
        job, chain = entry.job, self.chain(entry.job)
        said: set[tuple[str, str]] = set()
        for qos in self.both_qos(entry.partition, entry.qos):
            of_qos = self._of_qos(running, qos)
            new: set[tuple[str, str]] = set()
            for kind, group in (
                ("total", of_qos),
                ("per_job", []),
                ("per_account", [one for one in of_qos if one.job.account == job.account]),
                ("per_user", [one for one in of_qos if _same_user(one.job, job)]),
            ):
                limits = getattr(qos, kind)
                counted = [name for name in RESOURCES if (kind, name) not in said]
                if not _fits(limits, request, group, counted):
                    return False
                new |= {(kind, name) for name in RESOURCES if not math.isinf(getattr(limits, name))}
            if any(_on_each(request, name) > getattr(qos.per_node, name) for name in _left(said)):
                return False
            new |= {("per_node", name) for name in RESOURCES if not math.isinf(getattr(qos.per_node, name))}
            said |= new
        for one in chain:
            counted = [name for name in RESOURCES if ("total", name) not in said]
            if not _fits(one.total, request, self._below(running, one), counted):
                return False
        if any(_on_each(request, name) > self.inherited(chain, "per_node", name) for name in _left(said)):
            return False
        return all(
            getattr(request, name) <= self.inherited(chain, "per_job", name)
            for name in RESOURCES
            if ("per_job", name) not in said
        )


def _left(said: set[tuple[str, str]]) -> list[str]:
    """Return of which resources no QOS has limited what a job has of each node."""
    return [name for name in ("cores", "memory", "gpus") if ("per_node", name) not in said]


def _on_each(request: Request, name: str) -> int:
    """Return what a job has of each node, a whole number (_validate_tres_limits_for_qos, its divisor)."""
    return int(getattr(request, name)) // request.nodes


def _same_user(one: Job, other: Job) -> bool:
    """Return whether two jobs are known to be of one user."""
    return bool(one.user) and one.user == other.user


def _either(first: float, second: float) -> float:
    return second if math.isinf(first) else first


def _first(both: list[Qos], kind: str, resource: str) -> float:
    """Return the limit of the first QOS that has one."""
    values = (float(getattr(getattr(qos, kind), resource)) for qos in both)
    return next((value for value in values if not math.isinf(value)), math.inf)


def _fits(limits: Limits, request: Request, group: list[Entry], counted: list[str]) -> bool:
    held = set().union(*(one.allocation for one in group)) if group else set()
    for name in counted:
        limit = getattr(limits, name)
        if math.isinf(limit):
            continue
        wanted = getattr(request, name)
        if name == "nodes":
            # A node that the group has already is not counted a second time.
            wanted = len(request.chosen - held) if request.chosen & held else wanted
            used = len(held)
        else:
            part = ("cores", "memory", "gpus").index(name)
            used = sum(share[part] for one in group for share in one.allocation.values())
        if wanted > limit or (wanted and wanted + used > limit):
            return False
    return True
