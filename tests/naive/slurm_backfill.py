"""Slurm's backfilling pass, plainly (Slurm 22.05 and 24.11, src/plugins/sched/backfill/backfill.c, _attempt_backfill).

In what they differ: slurm_versions.py.
"""

from __future__ import annotations

import dataclasses
import math

from naive.slurm_jobs import Allocation, Demand, Entry, Job, may_use
from naive.slurm_limits import Request
from naive.slurm_nodes import will_run, will_run_from
from naive.slurm_passes import Controller
from naive.slurm_versions import Versioned

__all__ = ["Backfill"]

MOST_TASKS = 20  # of an array that are planned (bf_max_job_array_resv)


@dataclasses.dataclass
class Row:
    """A stretch of time, and the nodes that no waiting job has reserved in it."""

    begin: int
    end: int
    free: set[int]


class Table:
    """The plan of a pass: rows one after the other in time, from the pass to the end of the window."""

    def __init__(
        self,
        now: int,
        window: int,
        resolution: int,
        available: set[int],
        most_rows: int,
        versioned: Versioned,
    ) -> None:
        self.resolution, self.most_rows, self.versioned = resolution, most_rows, versioned
        self.rows = [Row(self.floor(now), self.floor(now + window), set(available))]
        # Rows that were made; those that were merged again still count.
        self.made = 1

    def floor(self, time: int) -> int:
        return time // self.resolution * self.resolution

    def end(self, time: int) -> int:
        """Return a time at which something planned ends, rounded."""
        return self.floor(time + (self.resolution - 1) * self.versioned.rounds_up)

    @property
    def full(self) -> bool:
        return self.made >= self.most_rows

    def reserve(self, start: int, end: int, nodes: set[int]) -> None:
        """Take nodes out of the rows from start to end, cutting rows at both."""
        start = max(start, self.rows[0].begin)
        end = max(end, start + self.resolution)
        at = next((k for k, row in enumerate(self.rows) if row.end >= start), None)
        if at is None:
            return
        before = max(at - 1, 0)
        if self.rows[at].end > start:
            row = self.rows[at]
            self.rows.insert(at + 1, Row(start, row.end, set(row.free)))
            row.end = start
            self.made += 1
        after = None
        for k in range(at + 1, len(self.rows)):
            row = self.rows[k]
            if end < row.end:
                self.rows.insert(k + 1, Row(end, row.end, set(row.free)))
                row.end = end
                self.made += 1
            row.free -= nodes
            if row.end == end:
                after = self.rows[k + 1] if k + 1 < len(self.rows) else None
                break
        self._merge(before, after)

    def _merge(self, first: int, after: Row | None) -> None:
        """Join the first two neighbours alike, of the rows that were touched."""
        for k in range(first, len(self.rows) - 1):
            if self.rows[k] is after:
                return
            if self.rows[k].free == self.rows[k + 1].free:
                self.rows[k].end = self.rows[k + 1].end
                del self.rows[k + 1]
                return

    def free_between(self, start: int, end: int, nodes: set[int]) -> tuple[set[int], int]:
        """Return which of the nodes no row from start to end (included) has reserved, and when more may be free.

        That is the end of the first row after which nodes come back that are not free in it; 0: there is none.
        """
        left, later = set(nodes), 0
        for k, row in enumerate(self.rows):
            follows = not later and row.end > start and k + 1 < len(self.rows)
            if follows and not nodes & self.rows[k + 1].free <= left & row.free:
                later = row.end
            if row.end <= start:
                continue
            if row.begin > end:
                if self.versioned.looks_past_end and not later and k + 2 < len(self.rows):
                    later = self.rows[k + 1].end
                break
            left &= row.free
        return left, later

    def conflict(self, start: int, end: int, nodes: set[int]) -> bool:
        return any(row.end > start and row.begin < end and not nodes <= row.free for row in self.rows)


class Backfill:
    """One pass over the queue: a start now, or a reservation, for each job that is looked at."""

    def __init__(self, controller: Controller) -> None:
        self.c, self.settings, self.now = controller, controller.settings, controller.now
        self.table = Table(
            self.now,
            int(self.settings.bf_window),
            int(self.settings.bf_resolution),
            controller.available,
            self.settings.bf_max_job_test,
            controller.versioned,
        )
        self.versioned = controller.versioned
        self.tried = 0
        self.seen: dict[tuple[str, ...], int] = {}
        self.reserved_in: dict[str, int] = {}
        self.started: list[Entry] = []
        self.over = False
        self.planned: set[int] = set()
        # Of the array looked at last: tasks that are planned, and whether the rest of it is passed over.
        self.array, self.planned_tasks, self.rest_left = -1, 0, False

    def run(self) -> list[Entry]:
        """Return the jobs that it starts, in order."""
        c = self.c
        queue = c.queue()
        if c.planned:
            c.changed = self.now
        c.planned = set()
        for entry in c.pending:
            entry.plan = 0
        for entry in queue:
            follows = self._is_of_array(entry.job) and self.planned_tasks
            if self.over or (self.tried >= self.settings.bf_max_job_test and not follows):
                break
            self._look_at(entry)
        # Nodes that are kept for somebody and have something free are marked so, which counts as a change.
        c.planned = {i for i in self.planned if c.use.cores[i] < c.nodes.cores[i]}
        if c.planned:
            c.changed = self.now
        return self.started

    def _look_at(self, entry: Entry) -> None:
        c, settings, partition = self.c, self.settings, entry.partition
        if entry not in c.pending or c.array_is_full(entry.job):  # started in another partition
            return
        if self._is_of_array(entry.job):
            if self.rest_left:
                return
        else:
            self.array, self.planned_tasks = entry.job.array, 0
        # Only where a task is started or planned the next one is looked at.
        self.rest_left = True
        if not may_use(partition, entry.job, entry.qos):
            return
        if not c.rules.before_placing(entry, c.running):
            return
        now_only = entry.priority < settings.bf_min_prio_reserve
        now_only |= bool(settings.bf_min_age_reserve) and self.now - entry.begin < settings.bf_min_age_reserve
        count = settings.bf_job_part_count_reserve
        now_only |= bool(count) and self.reserved_in.get(partition.name, 0) >= count
        if self._enough_looked_at(entry):
            return
        demand = c.demand(entry)
        if demand is None:
            return
        limit = int(min(entry.limit, partition.max_time))
        qos = c.rules.qos.get(entry.qos)
        if c.preemption.on and qos is not None and "NoReserve" in qos.flags:
            limit = 60  # who comes later may stop it
        later, counted = self._try(entry, demand, limit, self.now, False, now_only)
        while later:
            later, counted = self._try(entry, demand, limit, later, counted, now_only)

    def _is_of_array(self, job: Job) -> bool:
        """Return whether a job is a task of the array that was looked at last."""
        return 0 <= job.array == self.array

    def _plan_task(self, job: Job) -> None:
        """Count a task that is planned: no more are than may run at once, in 24.11 beside those that do."""
        self.planned_tasks += 1
        most = MOST_TASKS
        if job.array_limit > 0 and self.versioned.counts_running:
            most = min(most, job.array_limit - sum(one.job.array == job.array for one in self.c.running))
        self.rest_left = self.planned_tasks >= most

    def _enough_looked_at(self, entry: Entry) -> bool:
        """Return whether enough jobs of its user, partition or association were looked at; if not, count this one."""
        settings, job = self.settings, entry.job
        association = settings.bf_max_job_assoc and bool(self.c.rules.chain(job))
        by_user = settings.bf_max_job_user if not settings.bf_max_job_assoc else 0
        counters = [
            (settings.bf_max_job_user_part, ("user in part", job.user, entry.partition.name)),
            (settings.bf_max_job_part, ("part", entry.partition.name)),
            (settings.bf_max_job_assoc if association else 0, ("association", job.account, job.user)),
            (by_user, ("user", job.user)),
        ]
        counters = [(most, key) for most, key in counters if most]
        if any(self.seen.get(key, 0) >= most for most, key in counters):
            return True
        for _, key in counters:
            self.seen[key] = self.seen.get(key, 0) + 1
        return False

    def _try(
        self, entry: Entry, demand: Demand, limit: int, start: int, counted: bool, now_only: bool
    ) -> tuple[int, bool]:
        """Look for a start from an instant on; return from when to look again (0: done), and whether it was tried."""
        c = self.c
        mine = c.own_reservation(entry.job) if entry.job.reservation else None
        if mine is not None and not mine.start <= start <= mine.end:
            return 0, counted
        left, overlap, moved = c.nodes_without_reservations(entry, start)
        tries = 0
        while left is None and tries < 10:
            # Maintenance of all nodes: from its end on.
            start, tries = moved, tries + 1
            left, also, moved = c.nodes_without_reservations(entry, start)
            overlap |= also
        if left is None:
            return 0, counted
        if self.versioned.stays_in_window and start > self.window_end:
            return 0, counted
        end = max(start, self.now) + limit
        usable = left & c.nodes.of_partition[entry.partition.name] & c.available
        nodes, later = self.table.free_between(start, end, usable)
        later = self._or_end_of_reservation(start, later, overlap)
        again = 0 if now_only else later
        large = {i for i in nodes if c.nodes.big_enough(i, demand)}
        if len(large if self.versioned.small_first else nodes) < demand.least:
            return again, counted
        nodes = large
        self.tried += not counted
        # For now, it is looked where it could start if all were gone that may be stopped for it.
        gone = c.preemption.candidates(entry, c.running, self.now)
        if self.versioned.looks_from_start:
            busy = set(c.completing)
            found = will_run_from(
                c.nodes, demand, nodes, c.use, c.running, self.now, start, later, busy, gone, now_only=now_only
            )
        else:
            found = will_run(c.nodes, demand, nodes, c.use, c.running, self.now, gone, now_only=now_only)
        if found is None:
            return again, True
        begin, allocation = max(found[0], start), found[1]
        entry.cores_seen = sum(cores for cores, _, _ in allocation.values())
        if self.versioned.conflicts_first and begin > self.now and self._conflicts(begin, limit, allocation):
            return begin, True
        if begin <= self.now and set(allocation) & set(c.completing):
            begin, later = self.now + 1, 0
        if begin <= self.now:
            outcome = c.try_now(entry, nodes, "backfill")
            if outcome == "started":
                self._has_started(entry)
            if outcome in {"started", "reserved", "accounting"}:
                return 0, True
            later = 0
        return self._reserve(entry, allocation, begin, limit, later, now_only), True

    def _conflicts(self, begin: int, limit: int, allocation: Allocation) -> bool:
        """Return whether nodes that the job would have are reserved for another in its time."""
        table = self.table
        return table.conflict(table.floor(begin), table.end(begin + limit), set(allocation))

    @property
    def window_end(self) -> int:
        return self.table.floor(self.now + int(self.settings.bf_window))

    def _or_end_of_reservation(self, start: int, later: int, overlap: bool) -> int:
        """Return the sooner of ``later`` and the second after the next end of a reservation, rounded up."""
        ends = [one.end for one in self.c.reservations if one.end >= start]
        if not overlap or not ends:
            return later
        end = -(-math.ceil(min(ends)) // self.table.resolution) * self.table.resolution + 1
        return end if end < self.window_end and (not later or end < later) else later

    def _has_started(self, entry: Entry) -> None:
        self.started.append(entry)
        self.rest_left = False
        stays = self.c.preemption.mode(entry) == "off"
        if entry.demand.whole and stays and not self.table.full:
            self.table.reserve(0, self.table.end(entry.believed_end), set(entry.allocation))
        most = self.settings.bf_max_job_start
        self.over = bool(most) and len(self.started) >= most

    def _reserve(self, entry: Entry, allocation: Allocation, begin: int, limit: int, later: int, now_only: bool) -> int:
        """Write the job into the plan; return from when to look again instead, or 0."""
        c, table, name = self.c, self.table, entry.partition.name
        if begin > self.now and now_only:
            return 0
        if later and begin > later:
            return later
        if begin > self.now + self.settings.bf_window:
            entry.plan = begin
            return 0
        start, end, nodes = table.floor(begin), table.end(begin + limit), set(allocation)
        if begin > self.now and self._conflicts(begin, limit, allocation):
            return begin
        if not c.rules.after_placing(entry, Request.of(allocation, count_all=True), c.running):
            return 0
        qos = c.rules.qos.get(entry.qos)
        if qos is not None and "NoReserve" in qos.flags:
            return 0
        count = self.settings.bf_job_part_count_reserve
        if count:
            if self.reserved_in.get(name, 0) >= count:
                return 0
            self.reserved_in[name] = self.reserved_in.get(name, 0) + 1
        entry.plan = begin
        self.planned |= nodes
        if table.full:
            self.over = True
            return 0
        table.reserve(start, end, nodes)
        self._plan_task(entry.job)
        return 0
