"""Running jobs that are stopped for others, drawn by hand: by partition or QOS, put back into the queue or cancelled.

Times are as in test_slurm_rules: the first pass is at 3, one over the whole queue every 60 s. A stopped job leaves its
nodes a second later, and that is a pass; one that is put back is submitted then, and may start 121 s later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from naive.slurm_cases import TIMES_OF_OTHER_KERNEL, job
from naive.slurm_jobs import Job
from policyfactory.site.model import NodeGroup, Outage, Partition, Preemption, Qos, Site

pytestmark = pytest.mark.parametrize("simulate", TIMES_OF_OTHER_KERNEL)
Simulate = Callable[..., dict[int, object]]


def by_partition(
    nodes: int, mode: str = "requeue", *, of_idle: dict[str, object] | None = None, **more: object
) -> Site:
    """Return a site of nodes of one core with the partition idle, whose jobs are stopped for those of batch."""
    partitions = (
        Partition("batch", default=True, exclusive=True, tier=2),
        Partition("idle", exclusive=True, tier=1, **(of_idle or {})),
    )
    return Site(
        "drawn", (NodeGroup(f"n[1-{nodes}]"),), partitions, preemption=Preemption("partition_prio", mode, **more)
    )


def by_qos(nodes: int, mode: str = "requeue", *, of_low: dict[str, object] | None = None, **more: object) -> Site:
    """Return a site of nodes of one core with the QOS low, whose jobs are stopped for those of high."""
    qos = (Qos("normal"), Qos("low", 1, **(of_low or {})), Qos("high", 10, preempts=("low",)))
    partitions = (Partition("batch", default=True, exclusive=True),)
    return Site("drawn", (NodeGroup(f"n[1-{nodes}]"),), partitions, qos=qos, preemption=Preemption("qos", mode, **more))


def idle(id_: int, submit: int, run_time: int, nodes: int = 1) -> Job:
    return job(id_, submit, run_time, 60, nodes, partition="idle")


def low(id_: int, submit: int, run_time: int, nodes: int = 1) -> Job:
    return job(id_, submit, run_time, 60, nodes, qos="low")


def told(placed: object) -> tuple[int, int, int, int]:
    return placed.start, placed.end, placed.preempted, placed.lost


def test_a_job_of_a_lower_tier_is_put_back(simulate: Simulate) -> None:
    # 2 nodes   1 1|. 2 2 2 2|1 1 1 1 1     1 starts at 3 and is stopped at 30, for 2, which has the nodes at 31; 1 is
    #                                       submitted anew at 31, may start from 152 on, and does so in the pass at 161
    placed = simulate(by_partition(2), [idle(1, 0, 500, 2), job(2, 30, 100, 10, 2)], begin=0)
    assert told(placed[2]) == (31, 131, 0, 0)
    assert told(placed[1]) == (161, 661, 1, 54)


def test_or_cancelled(simulate: Simulate) -> None:
    placed = simulate(by_partition(2, "cancel"), [idle(1, 0, 500, 2), job(2, 30, 100, 10, 2)], begin=0)
    assert told(placed[2]) == (31, 131, 0, 0)
    assert told(placed[1]) == (3, 30, 1, 54)
    # What is not to be put back is cancelled.
    other = by_partition(2, job_requeue=False)
    assert simulate(other, [idle(1, 0, 500, 2), job(2, 30, 100, 10, 2)], begin=0) == placed


def test_a_partition_says_it_for_its_jobs(simulate: Simulate) -> None:
    jobs = [idle(1, 0, 500, 2), job(2, 30, 100, 10, 2)]
    placed = simulate(by_partition(2, of_idle={"preempt_mode": "cancel"}), jobs, begin=0)
    assert told(placed[1]) == (3, 30, 1, 54)
    # Who may not be stopped is waited for.
    placed = simulate(by_partition(2, of_idle={"preempt_mode": "off"}), jobs, begin=0)
    assert [told(placed[1]), told(placed[2])] == [(3, 503, 0, 0), (503, 603, 0, 0)]


def test_jobs_of_one_tier_are_not_stopped_for_each_other(simulate: Simulate) -> None:
    placed = simulate(by_partition(2), [job(1, 0, 500, 10, 2), job(2, 30, 100, 10, 2)], begin=0)
    assert [told(placed[1]), told(placed[2])] == [(3, 503, 0, 0), (503, 603, 0, 0)]


def test_a_job_of_a_qos_is_put_back(simulate: Simulate) -> None:
    jobs = [low(1, 0, 500, 2), job(2, 30, 100, 10, 2, qos="high")]
    placed = simulate(by_qos(2), jobs, begin=0)
    assert [told(placed[1]), told(placed[2])] == [(161, 661, 1, 54), (31, 131, 0, 0)]
    placed = simulate(by_qos(2, of_low={"preempt_mode": "cancel"}), jobs, begin=0)
    assert [told(placed[1]), told(placed[2])] == [(3, 30, 1, 54), (31, 131, 0, 0)]
    # Only for the QOS that says so.
    placed = simulate(by_qos(2), [low(1, 0, 500, 2), job(2, 30, 100, 10, 2)], begin=0)
    assert [told(placed[1]), told(placed[2])] == [(3, 503, 0, 0), (503, 603, 0, 0)]


def test_no_more_jobs_are_stopped_than_needed(simulate: Simulate) -> None:
    # Of idle jobs on one and on two nodes, those of fewer nodes come first, by their number; 4 needs one node.
    jobs = [idle(1, 0, 500, 2), idle(2, 0, 500), idle(3, 0, 500), job(4, 30, 100, 10)]
    placed = simulate(by_partition(4), jobs, begin=0)
    assert [placed[id_].preempted for id_ in range(1, 5)] == [0, 1, 0, 0]
    # For two nodes 2 and 3 are taken away first, and both are needed: they stay in front.
    placed = simulate(by_partition(4), [*jobs[:3], job(4, 30, 100, 10, 2)], begin=0)
    assert [placed[id_].preempted for id_ in range(1, 5)] == [0, 1, 1, 0]
    # For three nodes all are taken away; 1 made the difference and is put in front, and then only one more is needed.
    placed = simulate(by_partition(4), [*jobs[:3], job(4, 30, 100, 10, 3)], begin=0)
    assert [placed[id_].preempted for id_ in range(1, 5)] == [1, 1, 0, 0]


def test_the_youngest_can_be_first(simulate: Simulate) -> None:
    jobs = [idle(1, 0, 500), idle(2, 10, 500), job(3, 30, 100, 10)]
    assert simulate(by_partition(2), jobs, begin=0)[1].preempted == 1
    placed = simulate(by_partition(2, youngest_first=True), jobs, begin=0)
    assert [placed[id_].preempted for id_ in (1, 2)] == [0, 1]


def test_a_young_job_can_be_safe(simulate: Simulate) -> None:
    # 1 runs from 3 on and is safe until 103: the first pass from then on is at 120.
    placed = simulate(by_partition(2, exempt_time=100.0), [idle(1, 0, 500, 2), job(2, 30, 100, 10, 2)], begin=0)
    assert told(placed[2]) == (121, 221, 0, 0)
    # A QOS has its own word for it.
    site = by_qos(2, exempt_time=100.0, of_low={"exempt_time": 10.0})
    placed = simulate(site, [low(1, 0, 500, 2), job(2, 30, 100, 10, 2, qos="high")], begin=0)
    assert told(placed[2]) == (31, 131, 0, 0)


def test_a_job_of_a_high_priority_can_be_safe(simulate: Simulate) -> None:
    site = by_partition(2, min_exempt_priority=500.0)
    jobs = [dataclasses.replace(idle(1, 0, 500, 2), site_factor=501), job(2, 30, 100, 10, 2)]
    assert told(simulate(site, jobs, begin=0)[1]) == (3, 503, 0, 0)
    jobs[0] = dataclasses.replace(jobs[0], site_factor=500)
    assert told(simulate(site, jobs, begin=0)[1])[2] == 1


def test_grace_time_ends_at_a_look_at_limits(simulate: Simulate) -> None:
    # 1 is told at 30, may run until 70, and is stopped when limits are looked at, at 90.
    site = by_partition(2, of_idle={"grace_time": 40.0})
    placed = simulate(site, [idle(1, 0, 500, 2), job(2, 30, 100, 10, 2)], begin=0)
    assert told(placed[2]) == (90, 190, 0, 0)
    assert placed[1].preempted == 1
    assert placed[1].lost == 2 * 87
    # A job that ends by then is not stopped.
    placed = simulate(site, [idle(1, 0, 50, 2), job(2, 30, 100, 10, 2)], begin=0)
    assert [told(placed[1]), told(placed[2])] == [(3, 53, 0, 0), (53, 153, 0, 0)]


def test_a_grace_time_without_end_stops_nobody(simulate: Simulate) -> None:
    jobs = [job(1, 0, 500, 10, 2, partition="idle"), job(2, 30, 100, 10, 2)]
    placed = simulate(by_partition(2, of_idle={"grace_time": float("inf")}), jobs, begin=0)
    assert told(placed[1]) == (3, 503, 0, 0)
    assert placed[2].start >= 503


def test_grace_time_ends_with_the_run(simulate: Simulate) -> None:
    # 1 has 200 s left from 30 on, when its node fails at 100. It runs again from 250 on, and has all of them again from
    # 601 on: the look after 801 is that of 810.
    site = dataclasses.replace(by_partition(2, of_idle={"grace_time": 200.0}), outages=(Outage("n1", 100, 150),))
    jobs = [job(1, 0, 5000, 120, 2, partition="idle"), job(2, 30, 100, 10, 2), job(3, 600, 100, 10, 2)]
    placed = simulate(site, jobs, begin=0)
    assert [one.start for one in placed.values()] == [960, 150, 810]


def test_backfilling_stops_jobs_too(simulate: Simulate) -> None:
    # 3 nodes: 2 waits for 1, which runs to its limit at 603, and plans n1 and n2; 4, of one node, ends before that: it
    # has the node of 3 in the backfilling pass at 30.
    jobs = [job(1, 0, 600, 10, 2), idle(3, 0, 500), job(2, 20, 100, 10, 3), job(4, 21, 100, 5)]
    site = by_partition(3, "cancel", exempt_time=24.0)
    placed = simulate(site, jobs, begin=0)
    assert told(placed[3]) == (3, 30, 1, 27)
    # Main passes stop at 2, the next backfilling pass is at 60.
    assert (placed[4].start, placed[4].by) == (60, "backfill")


def test_who_is_looked_at_first(simulate: Simulate) -> None:
    # By its priority 2 would start before 3, but 3 may stop it.
    jobs = [
        job(1, 0, 50, 10, 2),
        dataclasses.replace(low(2, 10, 100, 2), site_factor=900),
        job(3, 20, 100, 10, 2, qos="high"),
    ]
    placed = simulate(by_qos(2), jobs, begin=0)
    assert [placed[3].start, placed[2].start] == [53, 153]
