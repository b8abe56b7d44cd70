"""Nodes and how Slurm (select/cons_tres) places a job on them, plainly.

Facts: Slurm 22.05, src/plugins/select/cons_tres/job_test.c and cons_common/job_test.c, and what 24.11 has of them in
src/plugins/select/cons_tres and src/plugins/topology/common; in what they differ: slurm_versions.py. Nodes are numbered
here in the natural order of their names, as slurmctld sorts them; ``Nodes.number`` gives their place in the site.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence

from naive.slurm_jobs import YEAR, Allocation, Demand, Entry
from naive.slurm_versions import versioned
from policyfactory.site.fits import lay_out, node_numbers
from policyfactory.site.model import Site

__all__ = ["Nodes", "Use", "natural", "overdue_end", "place", "place_empty", "taken_of", "will_run", "will_run_from"]

KILL_WAIT = 30


def natural(name: str) -> list[tuple[int, int | str]]:
    """Return a key that sorts n9 before n10; numbers with leading zeros are compared as text."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, part) if part[0] == "0" else (1, int(part)) if part.isdigit() else (2, part) for part in parts]


class Nodes:
    """What every node has: lists by internal number."""

    def __init__(self, site: Site) -> None:
        layout = lay_out(site)
        self.number = sorted(range(len(layout.names)), key=lambda i: natural(layout.names[i]))
        self.inner = {number: i for i, number in enumerate(self.number)}
        self.cores, self.memory, self.gpus, self.weight, self.threads = (
            [int(column[i]) for i in self.number]
            for column in (layout.cores, layout.memory, layout.gpus, layout.weight, layout.threads)
        )
        self.of_partition = {
            partition.name: {self.inner[int(i)] for i in layout.members[row].nonzero()[0]}
            for row, partition in enumerate(site.partitions)
        }
        # GPUs that the last job that asked for some found on a node; see `weigh`.
        self.gpus_found = [0] * len(self.cores)
        self.heavy: set[int] = set()  # nodes that are taken last among those of their weight
        self.versioned = versioned(site)
        self.takes_memory = site.scheduling.select == "cores+memory"
        self.over = site.scheduling.kill_overrun

    def named(self, site: Site, hosts: str) -> set[int]:
        return {self.inner[int(i)] for i in node_numbers(site, hosts)}

    def weigh(self, i: int) -> int:
        """Return the weight by which nodes are chosen.

        Looking for GPUs makes a node lighter by those found, and it stays so, for all jobs, until a job of its
        partition is next tried for a start (or submitted): backfilling in between prefers such nodes for its plans.
        """
        return (self.weight[i] * 2 + (i in self.heavy)) * 256 + 255 - self.gpus_found[i]

    def forget_gpus(self, among: Iterable[int]) -> None:
        for i in among:
            self.gpus_found[i] = 0

    def big_enough(self, i: int, demand: Demand) -> bool:
        """Return whether the empty node could take the job's least share: what Slurm tests before placing."""
        memory = demand.memory or demand.memory_per_core
        return self.memory[i] == 0 or memory <= self.memory[i]


@dataclasses.dataclass
class Use:
    """What is taken of each node, and by which jobs."""

    cores: list[int]
    memory: list[int]
    gpus: list[int]
    jobs: list[set[int]]
    sole: list[bool]  # a job that shares with nobody is there

    @classmethod
    def none(cls, count: int) -> Use:
        return cls([0] * count, [0] * count, [0] * count, [set() for _ in range(count)], [False] * count)

    def copy(self) -> Use:
        return Use(self.cores[:], self.memory[:], self.gpus[:], [set(jobs) for jobs in self.jobs], self.sole[:])

    def add(self, entry: Entry, sign: int = 1) -> None:
        """Take (or with -1 give back) what the job holds."""
        for i, (cores, memory, gpus) in entry.allocation.items():
            self.cores[i] += sign * cores
            self.memory[i] += sign * memory
            self.gpus[i] += sign * gpus
            (self.jobs[i].add if sign > 0 else self.jobs[i].discard)(entry.job.id)
            self.sole[i] = sign > 0 and entry.demand.whole


def place(nodes: Nodes, demand: Demand, among: Iterable[int], use: Use) -> Allocation | None:
    """Return where the job would go now; None if it can not.

    Slurm 22.05 tries twice, as if no core were in use and then with those that are free: where the way of choosing
    nodes finds no place on idle cores, it is not asked again.
    """
    among = [i for i in sorted(among) if _state_allows(nodes, demand, use, i)]
    idle = dataclasses.replace(use, cores=[0] * len(use.cores))
    if not nodes.versioned.skips_idle and _choose(nodes, demand, among, idle) is None:
        return None
    if demand.whole:
        among = [i for i in among if use.cores[i] == 0]
    chosen = _choose(nodes, demand, among, use)
    return None if chosen is None else {i: taken_of(nodes, demand, i, cores) for i, cores in chosen.items()}


def place_empty(nodes: Nodes, demand: Demand, among: Iterable[int]) -> int | None:
    """Return on how many nodes the job would run if nothing else did; None if it could not."""
    among = [i for i in sorted(among) if nodes.gpus[i] >= demand.gpus]
    chosen = _choose(nodes, demand, among, Use.none(len(nodes.cores)))
    return None if chosen is None else len(chosen)


def _state_allows(nodes: Nodes, demand: Demand, use: Use, i: int) -> bool:
    if nodes.takes_memory and nodes.memory[i] and not demand.no_memory:
        least = demand.memory or demand.memory_per_core
        # Who asks for no memory gets all of it, so nobody else may have any.
        if (nodes.memory[i] - use.memory[i] < least) if least else use.memory[i]:
            return False
    if demand.whole and (use.jobs[i] or use.gpus[i]):
        return False
    return not use.sole[i] and nodes.gpus[i] - use.gpus[i] >= demand.gpus


def taken_of(nodes: Nodes, demand: Demand, i: int, cores: int) -> tuple[int, int, int]:
    """Return what the job takes of a node: all threads of each core (dist_tasks.c, _cyclic_sync_core_bitmap)."""
    cores = -(-cores // nodes.threads[i]) * nodes.threads[i]
    memory = demand.memory or demand.memory_per_core * cores
    if nodes.takes_memory and not memory and not demand.no_memory:
        memory = nodes.memory[i]
    return cores, memory, nodes.gpus[i] if demand.whole else demand.gpus


def _cores_offered(nodes: Nodes, demand: Demand, i: int, use: Use) -> int:
    """Return how many cores of a node the job can use at all (can_job_run_on_node)."""
    free = nodes.cores[i] - use.cores[i]
    if free < demand.per_node:
        return 0
    if nodes.takes_memory and nodes.memory[i]:
        left = nodes.memory[i] - use.memory[i]
        if demand.memory > left:
            return 0
        if demand.memory_per_core and demand.memory_per_core * free > left:
            # Cores are left out one by one, with all of their threads.
            each = nodes.threads[i]
            free = 0 if demand.whole else left // (demand.memory_per_core * each) * each
    return free if free >= demand.per_node else 0


def _choose(nodes: Nodes, demand: Demand, among: list[int], use: Use) -> dict[int, int] | None:
    """Return cores by node (choose_nodes): best fit, then again without the nodes that offer few cores."""
    if len(among) < demand.least:
        return None
    for i in among:
        if demand.gpus and nodes.cores[i] - use.cores[i] >= max(demand.per_node, 1):
            found = nodes.gpus[i] - use.gpus[i]
            nodes.gpus_found[i] = min(found if demand.whole else demand.gpus, 255)
    offered = {i: _cores_offered(nodes, demand, i, use) for i in among}
    offered = {i: cores for i, cores in offered.items() if cores > 0}
    if demand.per_node and nodes.versioned.offers_tasks and not demand.gpus:
        offered = dict.fromkeys(offered, demand.per_node)
    if len(offered) < demand.least:
        return None
    most = max(min(demand.most, demand.cores), demand.least)
    weights = {i: cores + (nodes.gpus[i] - use.gpus[i]) * (demand.gpus > 0) for i, cores in offered.items()}
    if demand.gpus and demand.per_node:
        # Of a node with GPUs the cores beyond the job's own are hidden from it: such nodes all look alike.
        offered = dict.fromkeys(offered, demand.per_node)
    if nodes.versioned.takes_first and most == 1:
        return _first(nodes, demand, offered)
    chosen = _best_fit(nodes, demand, most, offered)
    if chosen is not None or len(offered) <= demand.least:
        return chosen
    for few in range(1, max(weights.values())):
        gone = [i for i in offered if weights[i] <= few][: len(offered) - demand.least]
        if not gone and few > 1:
            continue
        for i in gone:
            del offered[i]
        chosen = _best_fit(nodes, demand, most, offered)
        if chosen is not None or len(offered) <= demand.least:
            return chosen
    return None


def _first(nodes: Nodes, demand: Demand, offered: dict[int, int]) -> dict[int, int] | None:
    """Return the first of the lightest nodes on which a job for one node can run, and its cores there."""
    enough = [i for i in offered if offered[i] >= demand.cores]
    if not enough:
        return None
    first = min(enough, key=lambda i: (nodes.weigh(i), i))
    return {first: offered[first] if demand.whole else demand.per_node or demand.cores}


def _runs_of_nodes(nodes: Nodes, offered: dict[int, int]) -> list[list[int]]:
    """Return the sets of consecutive nodes; a node of another weight begins a new one."""
    sets: list[list[int]] = []
    for i in sorted(offered):
        if sets and sets[-1][-1] == i - 1 and nodes.weigh(i) == nodes.weigh(i - 1):
            sets[-1].append(i)
        else:
            sets.append([i])
    return sets


def _best_set(nodes: Nodes, sets: list[list[int]], offered: dict[int, int], need: int, need_nodes: float) -> int:
    """Return which set is taken next: of the lowest weight the tightest that suffices, or else the biggest."""
    best, best_cores, best_enough, best_weight = -1, 0, False, 0
    for at, run in enumerate(sets):
        if not run:
            continue
        cores, weight = sum(offered[i] for i in run), nodes.weigh(run[0])
        enough = cores >= need and len(run) >= need_nodes
        # A set that does not suffice, but is bigger than the best so far, is taken even if that one suffices.
        better = (enough and (not best_enough or cores < best_cores)) or (not enough and cores > best_cores)
        if best < 0 or weight < best_weight or (weight == best_weight and better):
            best, best_cores, best_enough, best_weight = at, cores, enough, weight
    return best


def _best_fit(nodes: Nodes, demand: Demand, most: float, offered: dict[int, int]) -> dict[int, int] | None:
    """Return cores by node (_eval_nodes): sets of consecutive nodes, until there are nodes and cores enough."""
    sets = _runs_of_nodes(nodes, offered)
    need, need_nodes, reserve, chosen = demand.cores, demand.least, demand.cores, dict[int, int]()
    while most > 0 and any(sets):
        at = _best_set(nodes, sets, offered, need, need_nodes)
        run = sets[at]
        if need_nodes <= 1:
            fitting = [i for i in run if offered[i] >= need]
            if fitting:
                run = [min(fitting, key=lambda i: (offered[i], i))]
        for i in run:
            if most == 0 or (need_nodes <= 0 and need <= 0):
                break
            if most == 1 and offered[i] < need:
                continue
            cores = offered[i]
            if not demand.whole:
                # One core is kept back for each further node that is still needed (eval_nodes_cpus_to_use).
                kept = max(need_nodes - 1, 0) * nodes.threads[i]
                cores = min(cores, max(reserve - kept, demand.per_node, 1))
            chosen[i] = demand.per_node or cores
            need, reserve, need_nodes, most = need - cores, reserve - cores, need_nodes - 1, most - 1
        if need_nodes <= 0 and need <= 0:
            return chosen
        sets[at] = []
    return None


def will_run(
    nodes: Nodes,
    demand: Demand,
    among: Iterable[int],
    use: Use,
    running: list[Entry],
    now: int,
    gone: Sequence[Entry] = (),
    *,
    now_only: bool,
) -> tuple[int, Allocation] | None:
    """Return when and where the job could start by the limits of the running jobs (_will_run_test).

    Jobs are taken away in the order in which they must have ended; the job is tried not after each of them but after
    batches, whose length in time doubles: 30 s after the first end, 60 s, 120 s, ... Those that may be stopped for the
    job, ``gone``, are taken away before.
    """
    among = list(among)
    found = place(nodes, demand, among, use)
    if found is not None:
        return now, found
    if now_only and not gone:
        return None
    future = use.copy()
    if gone:
        found = _without(nodes, demand, among, future, gone)
        if found is not None or now_only:
            return None if found is None else (now, found)
    running = [entry for entry in running if entry not in gone]
    ending = sorted(running, key=lambda entry: (entry.believed_end, entry.job.id))
    anchor, window, at = -1, 30, 0
    while at < len(ending):
        last, taken = None, 0
        while at < len(ending):
            entry, at = ending[at], at + 1
            if not set(among) & set(entry.allocation):
                continue
            if anchor < 0:
                anchor = entry.believed_end + 30 - entry.believed_end % 30
            last, taken = entry, taken + 1
            future.add(entry, -1)
            if at < len(ending) and (ending[at].believed_end > anchor + window or taken > 201):
                break
        if last is None:
            return None
        if taken > 201 and at < len(ending) and ending[at].believed_end <= anchor + window:
            continue
        window *= 2
        while at < len(ending) and ending[at].believed_end > anchor + window:
            window *= 2
        found = place(nodes, demand, among, future)
        if found is not None:
            return (last.believed_end if last.believed_end > now else overdue_end(last, nodes.over, now)), found
    return None


def will_run_from(
    nodes: Nodes,
    demand: Demand,
    among: Iterable[int],
    use: Use,
    running: list[Entry],
    now: int,
    start: int,
    until: int,
    completing: set[int],
    gone: Sequence[Entry] = (),
    *,
    now_only: bool,
) -> tuple[int, Allocation] | None:
    """Return when and where it could start from ``start`` on, by the rules of 24.11 (_will_run_test, _future_run_test).

    Jobs that end after ``until`` (0: never) are not waited for. Each look forgets what others found of GPUs; one for
    now prefers nodes where nothing is being cleaned up (_set_sched_weight).
    """
    among = list(among)
    nodes.forget_gpus(among)
    if start <= now:
        nodes.heavy = completing
        found = place(nodes, demand, among, use)
        nodes.heavy = set()
        if found is not None:
            return now, found
    if now_only and not gone:
        return None
    future, soonest = use.copy(), start + 1 if nodes.versioned.gone_at_start else start
    for entry in running:
        if entry.believed_end < soonest and set(among) & set(entry.allocation):
            future.add(entry, -1)
    found = _without(nodes, demand, among, future, [entry for entry in gone if entry.believed_end >= soonest])
    if found is not None:
        return now, found
    ending = [entry for entry in running if entry.believed_end >= soonest and entry not in gone]
    ending.sort(key=lambda entry: (entry.believed_end, entry.job.id))
    anchor, window, at, more = -1, 30, 0, True
    while more:
        last, following, taken, tested = None, None, 0, True
        while True:
            if at == len(ending) or (until and ending[at].believed_end > until):
                more = False
                break
            entry, at = ending[at], at + 1
            if not set(among) & set(entry.allocation):
                continue
            if anchor < 0:
                anchor = entry.believed_end + 30 - entry.believed_end % 30
            last = entry
            future.add(entry, -1)
            following = ending[at] if at < len(ending) else None
            if following is None:
                more = False
                break
            if following.believed_end > anchor + window:
                break
            taken += 1
            if taken > 201:
                tested = False
                break
        if last is None:
            return None
        if not tested:
            continue
        found = place(nodes, demand, among, future)
        if found is not None:
            if nodes.versioned.ends_there:
                there = (entry for entry in ending[:at] if set(found) & set(entry.allocation))
                last = max(there, key=lambda entry: entry.believed_end, default=last)
            return (last.believed_end if last.believed_end > now else overdue_end(last, nodes.over, now)), found
        window *= 2
        while following is not None and following.believed_end > anchor + window:
            window *= 2
    return None


def _without(
    nodes: Nodes, demand: Demand, among: Iterable[int], future: Use, gone: Iterable[Entry]
) -> Allocation | None:
    """Return where the job would go if some jobs were gone, which ``future`` then has no more."""
    for entry in gone:
        future.add(entry, -1)
    return place(nodes, demand, among, future)


def overdue_end(entry: Entry, over: float, now: int) -> int:
    """Return when a job that is over its limit is taken to end."""
    if math.isinf(over):
        return now + min(entry.limit, YEAR)
    return max(entry.believed_end + KILL_WAIT + int(over) // 60 * 60, now + 1)
