"""Slurm's multifactor priority and fair share, plainly (Slurm 22.05, src/plugins/priority/multifactor)."""

from __future__ import annotations

import dataclasses
import math

from naive.slurm_billing import billed
from naive.slurm_jobs import Entry, Job
from naive.slurm_limits import Account, Rules
from naive.slurm_nodes import Nodes
from policyfactory.site.model import Site

__all__ = ["Priorities"]

NO_VALUE = 4294967294.0  # Slurm's mark for "not set", used as a number where accounts count as their parents
LARGEST = 4294967295


@dataclasses.dataclass
class Share:
    """A node of the tree of accounts."""

    key: Account
    shares: float  # NaN: as its parent
    order: int
    usage: float = 0.0
    children: list[Share] = dataclasses.field(default_factory=list)
    above: Share | None = None  # whose usage it adds to
    level: Share | None = None  # among whose children it competes
    level_shares: float = 0.0
    effective: float = 0.0
    ratio: float = 0.0
    factor: float = 0.0

    @property
    def user(self) -> bool:
        return bool(self.key[1])

    @property
    def as_parent(self) -> bool:
        return math.isnan(self.shares)


class Priorities:
    """The factors of every job, and the usage that fair share looks at."""

    def __init__(self, site: Site, nodes: Nodes, rules: Rules) -> None:
        self.site, self.settings, self.rules = site, site.priority, rules
        self.flags = {flag.upper() for flag in site.priority.flags}
        self.cluster_nodes, self.cluster_cores = len(nodes.cores), sum(nodes.cores)
        self.of_partition = {
            name: {
                "cpu": sum(nodes.cores[i] for i in members),
                "mem": sum(nodes.memory[i] for i in members),
                "node": len(members),
                "gres/gpu": sum(nodes.gpus[i] for i in members),
            }
            for name, members in nodes.of_partition.items()
        }
        self.most_of_parts = max((part.job_factor for part in site.partitions), default=0)
        self.most_of_qos = max((qos.priority for qos in site.qos), default=0)
        self.decay = 1 - 0.693 / self.settings.half_life if self.settings.half_life > 0 else 1.0
        self.last = -1
        self._grow()

    def _grow(self) -> None:
        root = Share(("root", ""), 1.0, -1)
        self.tree = {root.key: root}
        for order, one in enumerate(self.site.associations):
            if (one.account, one.user) != root.key:
                self.tree[one.account, one.user] = Share((one.account, one.user), one.shares, order)
        self.root = root
        for one in self.site.associations:
            share = self.tree[one.account, one.user]
            if share is root:
                continue
            share.above = self.tree[(one.account, "") if one.user else (one.parent or "root", "")]
        for share in self.tree.values():
            level = share.above
            # Below an account that counts as its parent one competes with those beside that account.
            while level is not None and level.as_parent and level.above is not None:
                level = level.above
            share.level = level
            if level is not None:
                level.children.append(share)
        for share in self.tree.values():
            total = sum(child.shares for child in share.children if not child.as_parent)
            for child in share.children:
                child.level_shares = total
        self.users = sum(share.user for share in self.tree.values())

    def run_of(self, entry: Entry, since: int, until: int) -> None:
        """Add what a job has used between two instants to its user and all accounts above, decayed over that time."""
        run = max(until - max(since, entry.start), 0)
        qos = self.rules.qos.get(entry.qos)
        used = run * self.decay**run * billed(entry, self.flags) * (qos.usage_factor if qos is not None else 1.0)
        share = self.tree.get((entry.job.account, entry.job.user))
        while share is not None:
            share.usage += used
            share = share.above

    def finished(self, entry: Entry, now: int) -> None:
        """Count the rest of a job that ends; Slurm does so only where limits are enforced."""
        if self.rules.on:
            self.run_of(entry, self.last, now)

    def calculate(self, now: int, running: list[Entry], pending: list[Entry], *, reset: bool = False) -> None:
        """Decay all usage, count that of the running jobs, and set the priorities of those that wait."""
        if reset:
            for share in self.tree.values():
                share.usage = 0.0
        if self.last >= 0 and now > self.last:
            for share in self.tree.values():
                share.usage *= self.decay ** (now - self.last)
        for entry in running:
            self.run_of(entry, self.last, now)
        if "NO_FAIR_TREE" in self.flags:
            self._classic(self.root)
        else:
            self._rank_all()
        self.last = now
        for entry in pending:
            if not entry.held and self.settings.kind == "multifactor":
                new = self.priority(entry, now)
                entry.priority = max(new, entry.priority) if "INCR_ONLY" in self.flags else new

    def _rank_all(self) -> None:
        self.rank = self.untied = self.users
        self._rank(self.root.children, tied=False)

    def _rank(self, siblings: list[Share], *, tied: bool) -> None:
        """Fair Tree: walk the tree from the most under-served on; users get ranks as they are met."""
        for one in siblings:
            above = one.level.usage if one.level is not None else 0.0
            one.effective = one.usage / above if above else 0.0
            mine = 0.0 if not one.level_shares else one.shares / one.level_shares
            if one.as_parent:
                one.ratio = math.inf if one.user else NO_VALUE
            elif mine == 0:
                one.ratio = 0.0
            else:
                one.ratio = mine / one.effective if one.effective else math.inf
        previous = NO_VALUE
        for place, one in enumerate(sorted(siblings, key=lambda share: (-share.ratio, not share.user))):
            same = tied if place == 0 and tied else previous == one.ratio
            if one.user:
                if not same:
                    self.rank = self.untied
                one.factor = self.rank / self.users
                self.untied -= 1
            else:
                # Version 22.05 means to merge tied accounts, but never does: the tie only passes on to the first user.
                self._rank(one.children, tied=same)
            previous = one.ratio

    def _classic(self, share: Share) -> None:
        """The older formula: 2 ** -(effective usage / share)."""
        whole = self.root.usage
        for one in share.children:
            norm = min(one.usage / whole, 1.0) if whole else 0.0
            shares = 1.0
            at: Share | None = one.level if one.as_parent else one
            while at is not None and at.level is not None:
                shares *= at.shares / at.level_shares if at.level_shares else 0.0
                at = at.level
            if share is self.root:
                one.effective = norm
            elif one.as_parent or not one.level_shares:
                one.effective = share.effective
            else:
                one.effective = norm + (share.effective - norm) * (one.shares / one.level_shares)
            one.factor = 2.0 ** -(one.effective / shares) if shares > 0 else 0.0
            self._classic(one)

    def at_submission(self, entry: Entry, now: int) -> None:
        """Set the first priority; under priority/basic the order of submission decides."""
        entry.priority = LARGEST if self.settings.kind == "basic" else self.priority(entry, now)

    def priority(self, entry: Entry, now: int) -> int:
        """Return the weighed sum, added in Slurm's order (_get_priority_internal), cut to 1 ... 2**32 - 1."""
        weights, job, part = self.settings, entry.job, entry.partition.job_factor
        age = weights.age * min(max(now - entry.accrue, 0) / weights.max_age, 1.0) if entry.accrue >= 0 else 0.0
        share, qos = self.tree.get((job.account, job.user)), self.rules.qos.get(entry.qos)
        others: float = age + weights.association * self._of_association(job)
        others += weights.fair_share * share.factor if share is not None else 0.0
        others += weights.job_size * self._size(entry)
        raw_part = self.flags & {"NO_NORMAL_PART", "NO_NORMAL_ALL"}
        of_part = weights.partition * (part if raw_part else part / self.most_of_parts if self.most_of_parts else 0.0)
        if not job.partitions:
            others += of_part
        if qos is not None and self.most_of_qos:
            raw_qos = self.flags & {"NO_NORMAL_QOS", "NO_NORMAL_ALL"}
            others += weights.qos * (qos.priority if raw_qos else qos.priority / self.most_of_qos)
        others += self._resources(entry)
        others += job.site_factor
        # In a list of partitions that of each is added last.
        return min(int(max(of_part + others if job.partitions else others, 1)), LARGEST)

    def _of_association(self, job: Job) -> float:
        """Return the priority of the user in the account, or the nearest account above that has one."""
        given = [one.priority for one in self.site.associations]
        mine = next((one.priority for one in self.rules.chain(job) if one.priority), 0)
        raw = self.flags & {"NO_NORMAL_ASSOC", "NO_NORMAL_ALL"}
        return mine if raw or not mine else mine / max(given)

    def _size(self, entry: Entry) -> float:
        cores, nodes = entry.cores_seen or entry.demand.cores, entry.demand.least
        if "SMALL_RELATIVE_TO_TIME" in self.flags:
            size = max(nodes * self.cluster_cores / self.cluster_nodes, cores) / (entry.limit / 60) / self.cluster_cores
            size = 1 - size if self.settings.favor_small else size
        elif self.settings.favor_small:
            size = 1 - (nodes / self.cluster_nodes + cores / self.cluster_cores) / 2
        else:
            size = (nodes / self.cluster_nodes + cores / self.cluster_cores) / 2
        return min(max(size, 0.0), 1.0)

    def _resources(self, entry: Entry) -> float:
        demand = entry.demand
        asked = {
            "cpu": entry.cores_seen or demand.cores,
            "mem": demand.memory * demand.least or demand.memory_per_core * demand.cores,
            "node": demand.least,
            "gres/gpu": demand.gpus * demand.least,
        }
        whole = self.of_partition[entry.partition.name]
        raw = self.flags & {"NO_NORMAL_TRES", "NO_NORMAL_ALL"}
        return sum(
            self.settings.tres[name] * (count if raw else count / whole[name] if whole[name] else 0)
            for name, count in asked.items()
            if name in self.settings.tres
        )
