"""From a site to what the engine takes of its preemption: which jobs are stopped for which others, and how."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from policyfactory.core.options import UInt8Array
from policyfactory.engine.slurm.nodes import new_choice
from policyfactory.engine.slurm.priority import FairShares, PriorityWeights
from policyfactory.engine.slurm.stopping import GOES_BACK, IS_CANCELLED, NOT_SOON, STAYS, SlurmPreemption
from policyfactory.simulation.slurm.jobs import Placed
from policyfactory.site.fits import Layout
from policyfactory.site.model import Partition, Qos, Site
from policyfactory.site.values import LONGEST_TIME

K = TypeVar("K")
_OUTCOMES = {"off": STAYS, "requeue": GOES_BACK, "cancel": IS_CANCELLED}
_LARGEST_RANK = 0xFFFF
_DEPTH = 64  # of halves of halves of a queue


def preemption_of(
    site: Site, layout: Layout, nodes: int, placed: Placed, weights: PriorityWeights, shares: FairShares | None
) -> SlurmPreemption | None:
    """Return what the engine is given of a site's preemption; None if no job is ever stopped for another.

    Parameters
    ----------
    site : Site
        Its partitions or QOS, and PreemptType and the like.
    layout : Layout
        Of its nodes.
    nodes : int
        Of the engine's machine.
    placed : Placed
        The jobs.
    weights : PriorityWeights
        Of the run.
    shares : FairShares or None
        Of the run.
    """
    given, n = site.preemption, len(placed.jobs.ready)
    if not given.on:
        return None
    if given.kind == "partition_prio":
        kinds: tuple[Partition, ...] | tuple[Qos, ...] = site.partitions
        members = layout.members.astype(np.int64)
        shared = (members @ members.T > 0).astype(np.uint8)
        higher = _pairs(site.partitions, lambda kind, other: kind.tier > other.tier)
        before, kind, rank = higher & shared, placed.jobs.partition.copy(), [its.tier for its in site.partitions]
    else:
        kinds, kind, rank = site.qos, placed.qos, [its.priority for its in site.qos]
        before = higher = _pairs(site.qos, lambda kind, other: kind is not other and other.name in kind.preempts)
    outcome = np.array([_OUTCOMES[its.preempt_mode or given.mode] for its in kinds], dtype=np.int64)
    if not given.job_requeue:
        outcome[outcome == GOES_BACK] = IS_CANCELLED
    return SlurmPreemption(
        kind=kind,
        stops=higher & (outcome != STAYS).astype(np.uint8),
        goes_before=before,
        rank=np.minimum(np.array(rank, dtype=np.int64), _LARGEST_RANK),
        outcome=outcome,
        grace=np.array([int(min(its.grace_time, LONGEST_TIME)) for its in kinds], dtype=np.int64),
        exempt=placed.exempt,
        least_exempt=given.min_exempt_priority if math.isfinite(given.min_exempt_priority) else float(NOT_SOON),
        youngest_first=given.youngest_first,
        strict=given.strict_order,
        reorders=given.reorder_count,
        sorts=given.kind == "qos" or bool(site.reservations),
        weights=weights,
        shares=shares,
        until=np.full(n, NOT_SOON, dtype=np.int64),
        stopped_at=np.full(n, -1, dtype=np.int64),
        last_stopping=np.full(n, -NOT_SOON, dtype=np.int64),
        stopped=np.zeros(n, dtype=np.int64),
        lost=np.zeros(n, dtype=np.int64),
        back=np.full(n, -NOT_SOON, dtype=np.int64),
        candidate=np.zeros(n + 1, dtype=np.int64),
        gone=np.zeros(n + 1, dtype=np.uint8),
        mark=np.zeros(nodes, dtype=np.uint8),
        kept=new_choice(nodes),
        absent=np.zeros(n, dtype=np.uint8),
        merged=np.zeros(n, dtype=np.int64),
        stack=np.zeros((_DEPTH, 3), dtype=np.int64),
    )


def _pairs(kinds: Sequence[K], related: Callable[[K, K], bool]) -> UInt8Array:
    """Return which kinds stand in a relation to which others, (K, K)."""
    pairs = [[related(kind, other) for other in kinds] for kind in kinds]
    return np.array(pairs, dtype=np.uint8).reshape(len(kinds), len(kinds))
