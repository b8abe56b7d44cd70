"""Slurm's main scheduling pass and the start of a job, plainly.

Facts: Slurm 22.05, src/slurmctld/job_scheduler.c (_schedule, build_job_queue, sort_job_queue2) and node_scheduler.c
(select_nodes, _pick_best_nodes).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from naive.slurm_jobs import Allocation, Demand, Entry, Job, may_use
from naive.slurm_limits import Request, Rules
from naive.slurm_nodes import Nodes, Use, place, place_empty
from naive.slurm_preemption import PATIENCE, Preemption, merge_sorted
from naive.slurm_priority import Priorities
from naive.slurm_reservations import keeps_from, may_use_reservation, waited_for
from naive.slurm_versions import versioned
from policyfactory.site.model import Partition, Reservation, Site

__all__ = ["Controller"]


class Controller:
    """What slurmctld knows at an instant, and what it does with it. Nothing here knows when jobs really end."""

    def __init__(self, site: Site) -> None:
        self.site, self.settings = site, site.scheduling
        self.nodes, self.rules, self.versioned = Nodes(site), Rules(site), versioned(site)
        self.priorities = Priorities(site, self.nodes, self.rules)
        self.preemption = Preemption(site, self.nodes, self.rules)
        self.stop: Callable[[Entry], None] = lambda _: None  # stops a running job, or begins its grace time
        self.partitions = {partition.name: partition for partition in site.partitions}
        self.use = Use.none(len(self.nodes.cores))
        self.available = set(range(len(self.nodes.cores)))
        self.completing: dict[int, int] = {}  # node -> jobs that have ended there and are being cleaned up
        self.pending: list[Entry] = []
        self.running: list[Entry] = []
        self.ended: set[int] = set()
        self.reservations: list[Reservation] = []
        self.now = 0
        self.changed = 0
        self.planned: set[int] = set()

    def default_partition(self) -> str:
        return next((part.name for part in self.site.partitions if part.default), self.site.partitions[0].name)

    # The queue.

    def queue(self) -> list[Entry]:
        """Return the jobs that may start, in order; looking at them sets since when they are eligible."""
        limits_on, always = self.rules.on, "ACCRUE_ALWAYS" in self.priorities.flags
        for entry in self.pending:
            # The age of a job counts from here on, but is only looked at when priorities are next calculated.
            if entry.accrue < 0 and always:
                entry.accrue = entry.submit
            elif entry.accrue < 0 and not entry.held and (not limits_on or entry.begin <= self.now):
                entry.accrue = entry.begin
            if entry.begin < 0 and entry.job.after in self.ended:
                entry.begin = max(self.now, entry.job.eligible)
        found = [entry for entry in self.pending if self._may_be_looked_at(entry)]
        if not self.preemption.on:
            return sorted(found, key=self._order)
        return merge_sorted(sorted(found, key=lambda entry: (entry.job.id, entry.place)), self._is_ahead)

    def _is_ahead(self, entry: Entry, other: Entry) -> bool:
        if self.preemption.goes_before(entry, other):
            return True
        return not self.preemption.goes_before(other, entry) and self._order(entry) < self._order(other)

    def _order(self, entry: Entry) -> tuple[object, ...]:
        job = entry.job
        return not job.reservation, -entry.partition.tier, -entry.priority, entry.submit, job.id, entry.place

    def _may_be_looked_at(self, entry: Entry) -> bool:
        partition, job = entry.partition, entry.job
        if entry.held or not partition.up or entry.begin < 0 or entry.begin > self.now:
            return False
        if entry.limit > partition.max_time and not self.rules.lifts(entry.qos, "PartitionTimeLimit"):
            return False
        if max(job.nodes, 1) > partition.max_nodes and not self.rules.lifts(entry.qos, "PartitionMaxNodes"):
            return False
        if 0 < job.nodes < partition.min_nodes and not self.rules.lifts(entry.qos, "PartitionMinNodes"):
            return False
        if self.array_is_full(job):
            return False
        mine = self.own_reservation(job)
        return not job.reservation or (mine is not None and mine.start <= self.now <= mine.end)

    def array_is_full(self, job: Job) -> bool:
        """Return whether as many tasks of the job's array run as may (job_array_start_test in job_mgr.c).

        Such a task is not in the queue (JobArrayTaskLimit). Those that come to it in a pass, after others of the array
        were started, are passed over: they keep nobody back, and nothing is planned for them.
        """
        return 0 < job.array_limit <= sum(one.job.array == job.array for one in self.running)

    # Reservations.

    def own_reservation(self, job: Job) -> Reservation | None:
        for one in self.reservations:
            if one.name == job.reservation and may_use_reservation(one, job, self.rules):
                return one
        return None

    def nodes_without_reservations(self, entry: Entry, start: int) -> tuple[set[int] | None, bool, int]:
        """Return the nodes that no reservation keeps from the job from ``start`` on, and whether one keeps some.

        The nodes are None where maintenance has all of the partition's; the last number is when that ends.
        """
        everything = set(range(len(self.nodes.cores)))
        mine = self.own_reservation(entry.job) if entry.job.reservation else None
        left = everything if mine is None else self.nodes.named(self.site, mine.nodes)
        overlap = False
        members = self.nodes.of_partition[entry.partition.name]
        for one in self.reservations:
            if not keeps_from(one, mine) or one.start >= start + entry.limit or one.end <= start:
                continue
            kept = self.nodes.named(self.site, one.nodes)
            if mine is None and waited_for(one) and members <= kept:
                return None, overlap, math.ceil(one.end)
            overlap = overlap or bool(kept & (members if mine is None else left))
            left = left - kept
        return left, overlap, 0

    # A start.

    def demand(self, entry: Entry) -> Demand | None:
        """Return what the job asks for within the limits on nodes; None if they leave too few."""
        least, most = entry.demand.least, entry.demand.most
        # A job that says no number of nodes gets no more than the partition allows in any case.
        if math.isinf(most) or not self.rules.lifts(entry.qos, "PartitionMaxNodes"):
            most = min(most, entry.partition.max_nodes)
        limit = self.rules.most_nodes(entry)
        if min(most, limit) < least:
            return None
        return dataclasses.replace(entry.demand, least=least, most=min(most, limit))

    def _lets_in(self, partition: Partition, account: str) -> bool:
        """Say whether a partition is open to an account (slurmctld/partition_mgr.c; the accounts above: 24.11)."""
        parents = {one.account: one.parent or "root" for one in self.site.associations if not one.user}
        accounts = [account]
        while self.versioned.asks_above and accounts[-1] != "root" and len(accounts) <= len(parents):
            accounts.append(parents.get(accounts[-1], "root"))
        return any(name in partition.allowed_accounts for name in accounts)

    def try_now(self, entry: Entry, among: set[int], by: str) -> str:
        """Start the job now on some of these nodes, or return why not (select_nodes).

        ``started``; ``busy``, also where others were stopped for it; ``accounting``: a limit; ``partition``: it lets
        this QOS or account not in;
        ``reserved``; ``absent``: too few nodes are there, though none is busy; ``never``.
        """
        partition, job = entry.partition, entry.job
        if not self.rules.before_placing(entry, self.running):
            return "accounting"
        if not may_use(partition, job, entry.qos):
            return "partition"
        if partition.allowed_accounts and job.account and not self._lets_in(partition, job.account):
            return "partition"
        demand = self.demand(entry)
        if demand is None:
            return "accounting" if self.rules.most_nodes(entry) < entry.demand.least else "partition"
        error, allocation, count = self._pick(entry, demand, among)
        victims: list[Entry] = []
        if allocation is None and self.preemption.on:
            candidates = self.preemption.candidates(entry, self.running, self.now)
            room = self.preemption.make_room(demand, self._for_room(entry, demand, among), self.use, candidates)
            allocation, victims = room or (None, [])
        if allocation is not None:
            request = Request.of(allocation)
            entry.cores_seen = request.cores
        else:
            cores = entry.cores_seen or demand.cores
            memory = demand.memory * count or demand.memory_per_core * cores
            request = Request(cores, memory, demand.gpus * count, count)
        # A limit outweighs every other reason not to start: the job then keeps nobody else from starting.
        if not self.rules.after_placing(entry, request, self.running):
            return "accounting"
        if allocation is None:
            return error
        if victims:
            self._have_stopped(entry, victims)
            return "busy"
        self.start(entry, allocation, by)
        return "started"

    def _for_room(self, entry: Entry, demand: Demand, among: set[int]) -> set[int]:
        """Return the nodes on which jobs may be stopped for one."""
        members = {i for i in self.nodes.of_partition[entry.partition.name] & among if self.nodes.big_enough(i, demand)}
        left, _, _ = self.nodes_without_reservations(entry, self.now)
        return (members & self.available & (left or set())) - set(self.completing)

    def _have_stopped(self, entry: Entry, victims: list[Entry]) -> None:
        """Stop jobs, or begin their grace times; not again so soon after others were stopped for the job."""
        if entry.stopped_others > self.now - PATIENCE:
            return
        for one in (entry, *entry.others):
            one.stopped_others = self.now
        for one in victims:
            self.stop(one)

    def try_submission(self, entry: Entry) -> bool:
        """Return whether a job could ever run; nothing is started, but what was found of GPUs is found anew."""
        demand = self.demand(entry)
        if demand is None:
            return True
        members = {i for i in self.nodes.of_partition[entry.partition.name] if self.nodes.big_enough(i, demand)}
        self.nodes.forget_gpus(members)
        usable = members & self.available
        free = {i for i in usable if self._idle(i) or (not demand.whole and not self.use.sole[i])}
        return any(
            place_empty(self.nodes, demand, among) is not None
            for among in (free - set(self.completing), usable, members)
        )

    def _pick(self, entry: Entry, demand: Demand, among: set[int]) -> tuple[str, Allocation | None, int]:
        """Return why not, or where (_pick_best_nodes); and the number of nodes that it takes."""
        members = {i for i in self.nodes.of_partition[entry.partition.name] & among if self.nodes.big_enough(i, demand)}
        self.nodes.forget_gpus(members)
        left, overlap, _ = self.nodes_without_reservations(entry, self.now)
        usable = members & self.available & (left or set())
        free = {i for i in usable if self._idle(i) or (not demand.whole and not self.use.sole[i])}
        free -= set(self.completing)
        if self.preemption.on:
            # Nodes in use are not left out before: jobs there may be stopped.
            free = usable - set(self.completing)
        allocation = place(self.nodes, demand, free, self.use)
        if allocation is not None:
            return "", allocation, len(allocation)
        ever = possible = None
        if len(free) >= demand.least:
            possible = ever = place_empty(self.nodes, demand, usable)
        if ever is None:
            ever = place_empty(self.nodes, demand, self.nodes.of_partition[entry.partition.name])
        count = demand.least if ever is None else ever
        if ever is None:
            return ("reserved" if overlap else "never"), None, count
        if possible is None and len(free) == len(usable):
            return ("reserved" if left is None else "absent"), None, count
        return "busy", None, count

    def _idle(self, i: int) -> bool:
        return not self.use.jobs[i]

    def start(self, entry: Entry, allocation: Allocation, by: str) -> None:
        entry.allocation, entry.start, entry.started_by = allocation, self.now, by
        entry.believed_end = self.now + entry.limit
        self.use.add(entry)
        for one in (entry, *entry.others):
            self.pending.remove(one)
        self.running.append(entry)
        self.changed = self.now

    # The main pass.

    def main_pass(self, *, full: bool) -> list[Entry]:
        """Start jobs from the head of the queue; the first that can not blocks its partition and its nodes."""
        settings, available = self.settings, set(self.available)
        failed: set[str] = set()
        failed_reservations: set[str] = set()
        looked, started = 0, list[Entry]()
        of_partition = dict.fromkeys(self.partitions, 0)
        array = -1  # whose last task was not started: the others are passed over
        for entry in self.queue():
            if settings.sched_max_job_start and len(started) >= settings.sched_max_job_start:
                break
            name, job = entry.partition.name, entry.job
            # Started in another partition, or of a full array.
            if entry not in self.pending or self.array_is_full(job) or 0 <= job.array == array:
                continue
            array = job.array
            if settings.partition_job_depth:
                of_partition[name] += 1
                if of_partition[name] > settings.partition_job_depth:
                    continue
            # One more than the setting says is looked at.
            if not full and looked > settings.default_queue_depth:
                break
            looked += 1
            if job.reservation:
                if job.reservation in failed_reservations:
                    continue
            elif name in failed:
                self.changed = self.now
                continue
            if not self.rules.before_placing(entry, self.running):
                continue
            members = self.nodes.of_partition[name]
            # Where too few nodes are there at all, the partition is blocked without looking further.
            few = entry.demand.least > len(available & members)
            outcome = "few" if few else self.try_now(entry, available, "main")
            keeps = few or (outcome == "busy" and self._keeps_others_back(entry))
            if outcome == "started":
                started.append(entry)
                array = -1
            elif outcome == "never":
                # In one of its partitions it may still start: it is held where it has no other.
                entry.held = not entry.others
            elif outcome == "reserved" and job.reservation:
                available -= self.nodes.named(self.site, self.own_reservation(job).nodes)
            elif keeps and job.reservation and not few:
                failed_reservations.add(job.reservation)
            elif keeps:
                failed.add(name)
                available -= members
        return started

    def _keeps_others_back(self, entry: Entry) -> bool:
        settings = self.settings
        young = settings.bf_min_age_reserve and self.now - entry.begin < settings.bf_min_age_reserve
        return not young and not entry.priority < settings.bf_min_prio_reserve
