"""From a site to what the engine takes of it: nodes, partitions, reservations, node events, settings, weights."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import UsageError
from policyfactory.engine.slurm_demand import CORES
from policyfactory.engine.slurm_jobs import Machine, Settings
from policyfactory.engine.slurm_priority import Weights
from policyfactory.site.layout import Layout, lay_out, node_numbers
from policyfactory.site.model import Site

__all__ = [
    "NODE_ORDER",
    "YEAR",
    "counts_memory",
    "machine_of",
    "node_capacity",
    "node_order",
    "settings_of",
    "weights_of",
]

YEAR = 365 * 86400
# A requeued job waits for its old credential to end.
_REQUEUE = 121
_KILL_WAIT = 30
_FAR = 2**50
_EIGHT = 8  # nodes in a word
NODE_ORDER = re.compile(r"(\d+)")


def node_order(site: Site) -> Int64Array:
    """Return the node numbers of a site in the order in which Slurm looks at them: by name, numbers by their value."""

    def key(number: int) -> list[tuple[int, int, str]]:
        parts = NODE_ORDER.split(names[number])
        return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts if part]

    names = site.node_names
    return np.array(sorted(range(len(names)), key=key), dtype=np.int64)


def counts_memory(site: Site, layout: Layout) -> bool:
    """Tell whether memory of nodes is given to jobs: not where no node is said to have any."""
    return site.scheduling.select == "cores+memory" and bool(layout.memory.any())


def node_capacity(site: Site, layout: Layout) -> Int64Array:
    """Return what each node has for the engine, (N, 4); no end of memory where it is not counted."""
    counted = (layout.memory > 0) & counts_memory(site, layout)
    memory = np.where(counted, layout.memory, _FAR)
    return np.stack([layout.cores, memory, layout.gpus, layout.weight], axis=1).astype(np.int64)


def machine_of(site: Site, unix_start: int | None) -> tuple[Machine, Layout]:
    """Return the machine for the engine, its nodes in Slurm's order, and the layout in that order.

    Parameters
    ----------
    site : Site
    unix_start : int or None
        Unix time of the workload's 0, which the machine's times do not count from.

    Raises
    ------
    UsageError
        If the site has reservations or outages and the workload does not say when its clock began.
    """
    if unix_start is None and (site.reservations or site.outages):
        raise UsageError(
            f"site {site.name} has reservations or outages, and the log does not say at what date its clock began; "
            "add UnixStartTime to its header, or leave them out of the site file"
        )
    order = node_order(site)
    plain = lay_out(site)
    layout = Layout(
        tuple(plain.names[number] for number in order),
        plain.cores[order],
        plain.memory[order],
        plain.gpus[order],
        plain.weight[order],
        plain.members[:, order],
    )
    place = np.argsort(order)

    def mask(hosts: str, what: str) -> Int64Array:
        row = np.zeros(len(order), dtype=np.int64)
        row[place[node_numbers(site, hosts, what)]] = 1
        return row

    events = _events(site, mask)
    has = node_capacity(site, layout)
    has = np.concatenate([has, np.zeros((-len(has) % _EIGHT, has.shape[1]), np.int64)])
    return Machine(
        has=has,
        cores=has[:, CORES].astype(np.int32),
        partition=_rows(list(layout.members), len(has)),
        tier=np.array([partition.tier for partition in site.partitions], dtype=np.int64),
        closed=np.array([not partition.up for partition in site.partitions], dtype=np.uint8),
        reserved=_rows([mask(one.nodes, f"reservation {one.name!r}") for one in site.reservations], len(has)),
        reservation=np.array(
            [[_up(one.start), _up(one.end), _up(one.known), not one.users + one.accounts] for one in site.reservations],
            dtype=np.int64,
        ).reshape(-1, 4),
        event=np.array([[time, kind] for time, kind, _ in events], dtype=np.int64).reshape(-1, 2),
        of_event=_rows([nodes for _, _, nodes in events], len(has)),
    ), layout


def _events(site: Site, mask: Callable[[str, str], Int64Array]) -> list[tuple[int, int, Int64Array]]:
    """Return when nodes go (1: down, 2: drained) and come (0: those that no other outage has), and which."""
    moments = []
    for number, one in enumerate(site.outages):
        moments.append((math.ceil(one.start), number, 2 if one.drained else 1))
        if math.isfinite(one.end):
            moments.append((math.ceil(one.end), number, 0))
    nodes = [mask(one.nodes, "an outage") for one in site.outages]
    out = np.zeros(len(site.node_names), dtype=np.int64)
    events = []
    for time, number, kind in sorted(moments, key=lambda moment: moment[0]):
        out += nodes[number] if kind else -nodes[number]
        events.append((time, kind, nodes[number] if kind else nodes[number] * (out == 0)))
    return events


def _rows(rows: Sequence[Int64Array], nodes: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    masks = np.zeros((len(rows), nodes), dtype=np.uint8)
    for mask, row in zip(masks, rows, strict=True):
        mask[: len(row)] = row
    return masks


def _up(seconds: float) -> int:
    return math.ceil(min(max(seconds, -_FAR), _FAR))


def settings_of(site: Site, origin: int, turn_round: int = 0, *, stops: bool = False) -> Settings:
    """Return the settings for the engine.

    Parameters
    ----------
    site : Site
    origin : int
        When the scheduler was started (Unix seconds).
    turn_round : int
        Seconds from a job's end until its nodes are free.
    stops : bool
        Whether the run stops where priorities are calculated.
    """
    given = site.scheduling
    overrun = given.kill_overrun // 60 * 60 if math.isfinite(given.kill_overrun) else YEAR
    recalculated = site.priority.kind == "multifactor"
    return Settings(
        backfill=given.backfill,
        queue_depth=given.default_queue_depth,
        partition_depth=given.partition_job_depth,
        most_starts=given.sched_max_job_start,
        sched_interval=max(int(given.sched_interval), 1),
        batch_delay=int(given.batch_sched_delay),
        interval=max(int(given.bf_interval), 1),
        window=int(given.bf_window),
        resolution=max(int(given.bf_resolution), 1),
        most_tested=given.bf_max_job_test,
        most_of_partition=given.bf_max_job_part,
        most_of_user=0 if given.bf_max_job_assoc else given.bf_max_job_user,
        most_of_user_partition=given.bf_max_job_user_part,
        most_of_association=given.bf_max_job_assoc,
        most_started=given.bf_max_job_start,
        reserved_of_partition=given.bf_job_part_count_reserve,
        least_age=int(given.bf_min_age_reserve),
        least_priority=float(given.bf_min_prio_reserve),
        overrun=int(overrun),
        kill_wait=_KILL_WAIT,
        turn_round=turn_round,
        origin=origin,
        calculation=int(site.priority.calculation_period) if recalculated else 0,
        requeue_delay=_REQUEUE,
        plan_all="limits" in site.enforced
        or (recalculated and bool(site.priority.job_size or site.priority.tres.get("cpu"))),
        stops=stops,
    )


def weights_of(site: Site) -> Weights:
    """Return what time and usage count on a site."""
    given, flags = site.priority, {flag.upper() for flag in site.priority.flags}
    on = given.kind == "multifactor"
    return Weights(
        age=float(given.age) if on else 0.0,
        fair_share=float(given.fair_share) if on else 0.0,
        max_age=max(given.max_age, 1.0),
        decay=1.0 - 0.693 / given.half_life if given.half_life > 0 else 1.0,
        tree="NO_FAIR_TREE" not in flags,
        tail="limits" in site.enforced,
        from_submission="ACCRUE_ALWAYS" in flags,
    )
