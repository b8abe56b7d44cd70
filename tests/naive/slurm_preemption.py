"""Which running jobs Slurm stops for others, plainly.

Facts: Slurm 24.11, src/interfaces/preempt.c and the plugins preempt/partition_prio and preempt/qos (who may stop whom,
in which order); select/cons_tres/job_test.c, _run_now (which of them are stopped); slurmctld/node_scheduler.c,
_preempt_jobs (when); slurmctld/job_mgr.c, job_time_limit (what becomes of them after their grace time). The same in
22.05. Suspending them (SUSPEND, GANG) and stopping within a QOS (WITHIN) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from naive.slurm_jobs import Allocation, Demand, Entry
from naive.slurm_limits import Rules
from naive.slurm_nodes import Nodes, Use, place
from policyfactory.site.model import Site
from policyfactory.site.values import LONGEST_TIME

__all__ = ["Preemption", "merge_sorted"]

# Seconds in which a job stops no more jobs after it has stopped some (KillWait and MessageTimeout).
PATIENCE = 40
MOST = 0xFFFF


class Preemption:
    """Who may be stopped for whom on a site."""

    def __init__(self, site: Site, nodes: Nodes, rules: Rules) -> None:
        self.settings, self.nodes, self.rules = site.preemption, nodes, rules
        self.on = site.preemption.on
        self.by_partition = site.preemption.kind == "partition_prio"

    def mode(self, entry: Entry) -> str:
        """Return what becomes of a job that is stopped: off (it is not), requeue or cancel."""
        if not self.on:
            return "off"
        qos = self.rules.qos.get(entry.qos)
        said = entry.partition.preempt_mode if self.by_partition else qos.preempt_mode if qos is not None else ""
        mode = said or self.settings.mode
        return "cancel" if mode == "requeue" and not self.settings.job_requeue else mode

    def grace(self, entry: Entry) -> int:
        """Return the seconds that a job has left when it is to be stopped."""
        qos = self.rules.qos.get(entry.qos)
        if self.by_partition:
            return int(min(entry.partition.grace_time, LONGEST_TIME))
        return int(min(qos.grace_time, LONGEST_TIME)) if qos is not None else 0

    def _exempt(self, entry: Entry, now: int) -> bool:
        """Return whether a running job is safe from all others."""
        times = [qos.exempt_time for qos in self.rules.both_qos(entry.partition, entry.qos)]
        exempt = next((time for time in times if not math.isinf(time)), self.settings.exempt_time)
        return entry.priority > self.settings.min_exempt_priority or now < entry.start + exempt

    def _may_stop(self, entry: Entry, other: Entry) -> bool:
        if self.mode(other) == "off":
            return False
        if self.by_partition:
            return other.partition.tier < entry.partition.tier
        mine = self.rules.qos.get(entry.qos)
        return mine is not None and bool(other.qos) and other.qos != entry.qos and other.qos in mine.preempts

    def goes_before(self, entry: Entry, other: Entry) -> bool:
        """Return whether a job is before another in the queue, whatever else is said of them."""
        if not self.on:
            return False
        if self.by_partition:
            shared = self.nodes.of_partition[entry.partition.name] & self.nodes.of_partition[other.partition.name]
            return bool(shared) and entry.partition.tier > other.partition.tier
        mine = self.rules.qos.get(entry.qos)
        return mine is not None and bool(other.qos) and other.qos != entry.qos and other.qos in mine.preempts

    def candidates(self, entry: Entry, running: Iterable[Entry], now: int) -> list[Entry]:
        """Return the running jobs that may be stopped for one, in the order in which they would be."""
        if not self.on:
            return []
        members = self.nodes.of_partition[entry.partition.name]
        found = sorted(
            (
                one
                for one in running
                if self._may_stop(entry, one) and not self._exempt(one, now) and members & set(one.allocation)
            ),
            key=lambda one: one.job.id,
        )
        if self.settings.youngest_first:
            return sorted(found, key=lambda one: -one.start)
        return sorted(found, key=self._rank)

    def _rank(self, entry: Entry) -> tuple[int, int]:
        """Return which jobs are stopped first: those of low tiers or QOS, and of these the small ones."""
        qos = self.rules.qos.get(entry.qos)
        high = entry.partition.tier if self.by_partition else qos.priority if qos is not None else 0
        return min(high, MOST), min(len(entry.allocation), MOST)

    def make_room(
        self, demand: Demand, among: set[int], use: Use, candidates: list[Entry]
    ) -> tuple[Allocation, list[Entry]] | None:
        """Return where a job could run if others were stopped, and which ones; None if it could not.

        Jobs are taken away one by one until it fits. The one that made the difference is then put first, those of which
        it would have many nodes after it, and all is tried again, so that fewer are stopped.
        """
        count, passes = len(candidates), 0
        while True:
            tried = self._until_it_fits(demand, among, use, candidates)
            if tried is None:
                return None
            at, found = tried
            got, passes = set(found), passes + 1
            if passes - 1 > self.settings.reorder_count or count <= passes:
                return found, [one for one in candidates[: at + 1] if got & set(one.allocation)]
            before = candidates[:at]
            if not self.settings.strict_order:
                before.sort(key=lambda one, got=got: -len(got & set(one.allocation)))
            candidates = [candidates[at], *before, *candidates[at + 1 :]]

    def _until_it_fits(
        self, demand: Demand, among: set[int], use: Use, candidates: list[Entry]
    ) -> tuple[int, Allocation] | None:
        """Take jobs away one by one; return after which one it fits, and where."""
        future = use.copy()
        for at, other in enumerate(candidates):
            if not among & set(other.allocation):
                continue
            future.add(other, -1)
            found = place(self.nodes, demand, among, future)
            if found is not None:
                return at, found
        return None


def merge_sorted(entries: list[Entry], ahead: Callable[[Entry, Entry], bool]) -> list[Entry]:
    """Return jobs in order, as glibc's qsort has it: by merging halves.

    Who may stop whom makes no order by itself: A before B before C before A can be. Then the way of sorting decides.
    """
    if len(entries) < 2:
        return entries
    half = len(entries) // 2
    first, second = merge_sorted(entries[:half], ahead), merge_sorted(entries[half:], ahead)
    merged: list[Entry] = []
    while first and second:
        merged.append(second.pop(0) if ahead(second[0], first[0]) else first.pop(0))
    return [*merged, *first, *second]
