"""The parts of the Slurm kernels that can be asked by themselves, each answered by the plain Slurm.

Functions have the names and the arguments of the kernels, and take and fill the same arrays; what they answer comes
from slurm_nodes, slurm_backfill and slurm_priority. What is one step of a whole run is compared by `slurm` alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from naive.slurm import Job, Placed, simulate
from naive.slurm_backfill import Row, Table
from naive.slurm_jobs import Demand
from naive.slurm_nodes import Nodes, Use, place
from naive.slurm_priority import Priorities, Share
from policyfactory.core.options import Int32Array, Int64Array, UInt8Array, UInt64Array
from policyfactory.engine.slurm.nodes import (
    ALONE,
    BLOCKS,
    CORE_MEMORY,
    LISTED,
    MOST_NODES,
    NODE_CORES,
    NODE_GPUS,
    NODE_MEMORY,
    NODES,
    TOTAL_CORES,
    WHOLE,
    WORDS,
    Blocks,
    NodeChoice,
)
from policyfactory.engine.slurm.plan import BackfillPlan
from policyfactory.engine.slurm.priority import FairShares
from policyfactory.site.model import Site

__all__ = [
    "begin_plan",
    "choose",
    "choose_by_cores",
    "divide",
    "fair_tree",
    "is_reserved",
    "no_fair_tree",
    "reserve",
    "slurm",
    "usable_nodes",
]


def slurm(site: Site, jobs: Sequence[Job], begin: int, turnround: int) -> dict[int, Placed]:
    """Run all jobs; without their nodes, which the kernel does not tell."""
    placed = simulate(site, jobs, begin=begin, turnround=turnround)
    return {id_: dataclasses.replace(one, nodes=()) for id_, one in placed.items()}


# Which nodes a job gets.


def divide(
    blocks: Blocks,
    cores: Int32Array,
    weight: Int64Array,
    free: Int32Array,
    up: UInt8Array,
    completing: Int32Array,
) -> None:
    """Divide the nodes into blocks."""
    begins = [
        node
        for node in range(len(cores))
        if node == 0 or blocks.edge[node] > 0 or (up[node], completing[node]) != (up[node - 1], completing[node - 1])
    ]
    ends = [*begins[1:], len(cores)]
    for block, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        blocks.first[block], blocks.nodes[block], blocks.of[begin] = begin, end - begin, block
        blocks.cores[block], blocks.weight[block], blocks.free[block] = cores[begin], weight[begin], free[begin]
    blocks.size[BLOCKS], blocks.size[WORDS], blocks.size[LISTED] = len(begins), math.ceil(len(begins) / 64), 0


def parts(choice: NodeChoice) -> list[tuple[int, int]]:
    """Return the nodes of a choice in the order in which they were taken, and the cores of each."""
    columns = (choice.node, choice.many, choice.cores)
    taken = zip(*(column[: choice.parts[0]].tolist() for column in columns), strict=True)
    return [(node + at, cores) for node, many, cores in taken for at in range(many)]


def choose(
    request: Int64Array,
    has: Int64Array,
    used: Int64Array,
    blocks: Blocks,
    weights: Int64Array,
    allowed: UInt8Array,
    choice: NodeChoice,
    version: int,
) -> int:
    """Choose nodes for a job; see `slurm_nodes.place`."""
    size = blocks.size[BLOCKS]
    allowed = np.repeat(allowed[:size], blocks.nodes[:size])
    nodes = object.__new__(Nodes)
    nodes.cores, nodes.memory, nodes.gpus, nodes.weight = has.T.tolist()
    nodes.threads = [1] * len(has)
    nodes.gpus_found, nodes.takes_memory = [0] * len(has), True
    jobs = used[:, 3].tolist()
    use = Use(
        used[:, 0].tolist(),
        used[:, 1].tolist(),
        used[:, 2].tolist(),
        [set(range(min(count, 1))) for count in jobs],
        [count >= ALONE for count in jobs],
    )
    least = int(request[NODES])
    demand = Demand(
        least,
        int(request[MOST_NODES]),
        int(request[TOTAL_CORES]),
        max(int(request[NODE_MEMORY]), 0),
        int(request[CORE_MEMORY]),
        int(request[NODE_GPUS]),
        bool(request[WHOLE]),
        int(request[NODE_CORES]),
    )
    by_node = np.repeat(weights[:size], blocks.nodes[:size])
    nodes.weigh = lambda i: by_node[i]  # what a look for GPUs changes is left out of the kernel
    new = version >= 2411
    nodes.versioned = SimpleNamespace(skips_idle=new, offers_tasks=new, takes_first=version >= 2605)
    found = place(nodes, demand, np.flatnonzero(allowed).tolist(), use)
    for at, (node, (cores, _, _)) in enumerate((found or {}).items()):
        choice.node[at], choice.many[at], choice.cores[at] = node, 1, cores
    choice.parts[0] = len(found or {})
    return len(found or {})


def choose_by_cores(
    request: Int64Array,
    blocks: Blocks,
    weights: Int64Array,
    free: Int32Array,
    allowed: UInt8Array,
    choice: NodeChoice,
    version: int,
) -> int:
    """Choose nodes for a job that asks for cores alone; see `choose`."""
    size = blocks.size[BLOCKS]
    has = np.zeros((blocks.nodes[:size].sum(), 4), dtype=np.int64)
    for at, column in ((0, blocks.cores), (3, blocks.weight)):
        has[:, at] = np.repeat(column[:size], blocks.nodes[:size])
    used = np.zeros_like(has)
    by_node = np.repeat(free[:size], blocks.nodes[:size])
    used[:, 0] = has[:, 0] - np.maximum(by_node, 0)
    used[:, 3] = np.where(by_node < 0, ALONE, used[:, 0] > 0)
    return choose(request, has, used, blocks, weights, allowed, choice, version)


# The plan of the backfilling pass.


def _table(plan: BackfillPlan, resolution: int = 1, *, past_end: bool = False) -> Table:
    table = object.__new__(Table)
    table.versioned = SimpleNamespace(looks_past_end=past_end)
    table.resolution, table.most_rows, table.made, table.rows = resolution, 2**30, int(plan.size[0]), []
    at = 0
    while True:
        begin, end, following = plan.record[at].tolist()
        table.rows.append(Row(begin, end, _nodes(plan.free[at])))
        at = following
        if at == 0:
            return table


def rows(plan: BackfillPlan) -> list[tuple[int, int, list[int]]]:
    """Return the records of a plan in their order: begin, end and the nodes that are free."""
    return [(row.begin, row.end, sorted(row.free)) for row in _table(plan).rows]


def _write(table: Table, plan: BackfillPlan) -> None:
    for at, row in enumerate(table.rows):
        plan.record[at] = row.begin, row.end, at + 1
        _fill_in(plan.free[at], row.free)
    plan.record[len(table.rows) - 1, 2] = 0
    plan.size[0] = table.made


def _nodes(words: UInt64Array) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())


def _fill_in(words: UInt64Array, nodes: set[int]) -> None:
    words[:] = 0
    for node in nodes:
        words[node // 64] |= np.uint64(1 << (node % 64))


def begin_plan(plan: BackfillPlan, now: int, window: int, resolution: int, up: UInt64Array, words: int) -> None:
    """Begin a plan without reservations."""
    plan.size[1] = words
    _write(Table(now, window, resolution, _nodes(up), 2**30, None), plan)


def usable_nodes(
    plan: BackfillPlan, start: int, end: int, allowed: UInt64Array, nodes: UInt64Array, past_end: bool
) -> int:
    """Fill in which of the allowed nodes are free of reservations; return when to try again."""
    left, later = _table(plan, past_end=past_end).free_between(start, end, _nodes(allowed))
    _fill_in(nodes, left)
    return later


def is_reserved(plan: BackfillPlan, taken: UInt64Array, start: int, end: int) -> bool:
    """Tell whether one of some nodes is reserved."""
    return _table(plan).conflict(start, end, _nodes(taken))


def reserve(plan: BackfillPlan, taken: UInt64Array, start: int, end: int, resolution: int) -> None:
    """Reserve nodes. Records that were joined are no longer there, but still count."""
    table = _table(plan, resolution)
    table.reserve(start, end, _nodes(taken))
    _write(table, plan)


# Fair share.


def _priorities(shares: FairShares) -> tuple[Priorities, list[Share]]:
    """Return the tree of the plain Slurm; an association's share of its siblings stands for its number of shares."""
    tree = [
        Share((str(at), "user" if shares.is_user[at] else ""), float(share), at, usage=float(shares.usage[at]))
        for at, share in enumerate(shares.share)
    ]
    for at, one in enumerate(tree):
        children = [tree[child] for child in shares.children[shares.children_from[at] : shares.children_from[at + 1]]]
        one.children = sorted(children, key=lambda child: child.order)
        total = sum(child.shares for child in one.children if not math.isnan(child.shares))
        for child in one.children:
            child.level = child.above = one
            # Shares are parts of one already, where any sibling has some.
            child.level_shares = 1.0 if total else 0.0
    priorities = object.__new__(Priorities)
    priorities.root, priorities.users = tree[0], int(shares.is_user.sum())
    priorities.settings = SimpleNamespace()
    return priorities, tree


def _fill(shares: FairShares, tree: list[Share]) -> None:
    for at, one in enumerate(tree):
        shares.factor[at] = one.factor


def fair_tree(shares: FairShares) -> None:
    """Fill in the factors of users by Fair Tree."""
    priorities, tree = _priorities(shares)
    priorities._rank_all()
    _fill(shares, tree)


def no_fair_tree(shares: FairShares) -> None:
    """Fill in the factors of users by the rule before Fair Tree."""
    priorities, tree = _priorities(shares)
    priorities._classic(priorities.root)
    _fill(shares, tree)
