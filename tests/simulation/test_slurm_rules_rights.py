"""Slurm's rules of QOS, accounts and partitions, drawn by hand: who may, how much, how long, and what that weighs.

Times are seconds from the start of slurmctld; the first pass is at 3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest

from naive.slurm_cases import TIMES, batch, job, scheduling
from naive.slurm_jobs import Job
from policyfactory.site.model import Association, Limits, NodeGroup, Partition, Priority, Qos, Site

Simulate = Callable[..., dict[int, object]]
LAB = {"account": "lab"}


@pytest.fixture(params=TIMES)
def simulate(request: pytest.FixtureRequest) -> Simulate:
    return request.param


def starts(schedule: dict[int, object]) -> list[int]:
    return [placed.start for _, placed in sorted(schedule.items())]


def users(**priority: int) -> tuple[Association, ...]:
    return (
        Association("root"),
        Association("lab"),
        *(Association("lab", user, priority=one) for user, one in priority.items()),
    )


def limited(nodes: tuple[NodeGroup, ...], *qos: Qos, **more: object) -> Site:
    more.setdefault("associations", users(a=0, b=0))
    return Site("drawn", nodes, (Partition("batch"),), qos=qos, enforced=("associations", "limits", "qos"), **more)


def one_a_pass(priority: Priority, **more: object) -> Site:
    """Return a site of two nodes, one of which starts a job at each full pass: 3, 60, 120."""
    return batch(3, priority=priority, **scheduling(backfill=False, sched_max_job_start=1), **more)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [((), [60, 3, 120]), (("NO_NORMAL_ASSOC",), [3, 120, 60])],
)
def test_priority_of_associations(simulate: Simulate, flags: tuple[str, ...], expected: list[int]) -> None:
    # In parts of the largest, 8, of 100: b 100, a 50, c, which has none of its own, 25 of the account above.
    # As they are, and so in hundreds: 400, 800, 200. Beside that a has 70 and c 500.
    site = one_a_pass(
        Priority(association=100, flags=flags),
        associations=(
            Association("root"), Association("lab", priority=2), Association("lab", "a", priority=4),
            Association("lab", "b", priority=8), Association("lab", "c"),
        ),
    )  # fmt: skip
    more = 401 if flags else 30
    jobs = [
        job(1, 0, 900, 60, user="a", site_factor=more, **LAB),  # 80; 801
        job(2, 0, 900, 60, user="b", **LAB),  # 100; 800, but it was submitted after 3
        job(3, 0, 900, 60, user="c", site_factor=600 if flags else 0, **LAB),  # 25; 800
    ]
    if flags:
        jobs[1] = dataclasses.replace(jobs[1], site_factor=-1)  # 799
    assert starts(simulate(site, jobs, begin=0)) == expected


def test_weights_of_what_is_asked_for(simulate: Simulate) -> None:
    # Of 8 cores, 2000 MB, 2 nodes and 4 GPUs, weighed 80, 200, 20 and 40:
    nodes = (NodeGroup("n[1-2]", 4, 1000, 2),)
    weights = {"cpu": 80.0, "mem": 200.0, "node": 20.0, "gres/gpu": 40.0}
    site = Site(
        "drawn",
        nodes,
        (Partition("batch"),),
        priority=Priority(tres=weights),
        **scheduling(backfill=False, sched_max_job_start=1, select="cores+memory"),
    )
    jobs = [
        Job(1, 0, 900, 3600, 1, 1, 600),  # 10 + 60 + 10 = 80
        Job(2, 0, 900, 3600, 1, 1, 100, gpus=2),  # 10 + 10 + 10 + 20 = 50
        Job(3, 0, 900, 3600, 1, 4, 300),  # 40 + 30 + 10 = 80, submitted together with 1, and of a higher number
        Job(4, 0, 900, 3600, 1, 1, 100, site_factor=31),  # 30 + 31 = 61
    ]
    assert starts(simulate(site, jobs, begin=0)) == [3, 180, 60, 120]


@pytest.mark.parametrize(
    "qos",
    [
        Qos("normal", per_user=Limits(memory=1000)),
        Qos("normal", total=Limits(memory=1000)),
        Qos("normal", per_user=Limits(gpus=2)),
        Qos("normal", per_account=Limits(gpus=2)),
    ],
)
def test_memory_and_gpus_that_jobs_hold_together(simulate: Simulate, qos: Qos) -> None:
    # 600 MB and two GPUs each: beside 1, 2 would be beyond the limit, and waits for it.
    site = limited((NodeGroup("n[1-4]", 4, 4000, 2),), qos, **scheduling(select="cores+memory"))
    jobs = [Job(id_, 0, run, 1200, 1, 1, 600, gpus=2, user="a", account="lab") for id_, run in ((1, 100), (2, 50))]
    assert starts(simulate(site, jobs, begin=0)) == [3, 103]


def test_memory_of_an_account_and_of_one_job(simulate: Simulate) -> None:
    accounts = (
        Association("root"), Association("lab", total=Limits(memory=1000)), Association("lab", "a"),
        Association("lab", "b", per_job=Limits(memory=500)),
    )  # fmt: skip
    site = limited(
        (NodeGroup("n[1-4]", 4, 4000),), Qos("normal"), associations=accounts, **scheduling(select="cores+memory")
    )
    jobs = [
        Job(1, 0, 100, 1200, 1, 1, 700, user="a", account="lab"),
        Job(2, 0, 100, 1200, 1, 1, 400, user="a", account="lab"),  # 1100 with 1
        Job(3, 0, 100, 1200, 1, 1, 300, user="b", account="lab"),  # 1000 with 1
        Job(4, 0, 100, 1200, 1, 1, 600, user="b", account="lab"),  # never: b's jobs have no more than 500
    ]
    assert starts(simulate(site, jobs, begin=0)) == [3, 103, 3, -1]


@pytest.mark.parametrize("of", ["qos", "account"])
def test_the_longest_time_of_a_qos_or_an_account(simulate: Simulate, of: str) -> None:
    accounts = (Association("root"), Association("lab", max_wall=900.0 if of == "account" else math.inf))
    qos = Qos("normal", max_wall=900.0 if of == "qos" else math.inf)
    site = limited((NodeGroup("n[1-4]"),), qos, associations=(*accounts, Association("lab", "a")))
    jobs = [job(1, 0, 60, 15, user="a", **LAB), job(2, 0, 60, 16, user="a", **LAB)]
    assert starts(simulate(site, jobs, begin=0)) == [3, -1]


@pytest.mark.parametrize(
    ("flag", "expected"),
    [("", [3, -1, -1, -1]), ("PartitionTimeLimit", [3, 3, -1, -1]), ("PartitionMaxNodes", [3, -1, 3, -1]),
     ("PartitionMinNodes", [3, -1, -1, 3])],
)  # fmt: skip
def test_what_a_qos_lifts_of_its_partition(simulate: Simulate, flag: str, expected: list[int]) -> None:
    site = batch(
        16,
        partitions=(Partition("batch", exclusive=True, max_time=600.0, min_nodes=2, max_nodes=4),),
        qos=(Qos("normal", flags=(flag,) if flag else ()),),
    )
    jobs = [job(1, 0, 60, 10, 2), job(2, 0, 60, 11, 2), job(3, 0, 60, 10, 5), job(4, 0, 60, 10, 1)]
    assert starts(simulate(site, jobs, begin=0)) == expected


def test_a_plan_counts_the_limit_of_the_partition_where_a_qos_lifts_it(simulate: Simulate) -> None:
    # 2 needs both nodes, and is planned for 663, when 1 ends. Slurm counts 10 minutes for 3, which asks for 30: at 30
    # it goes ahead, and 2 waits until 1030.
    jobs = [job(1, 0, 660, 11, qos="long"), job(2, 1, 60, 5, 2), job(3, 2, 1000, 30, qos="long")]
    for most, expected in ((600.0, [3, 1030, 30]), (math.inf, [3, 663, 723])):
        site = batch(
            2,
            partitions=(Partition("batch", exclusive=True, max_time=most),),
            qos=(Qos("normal"), Qos("long", flags=("PartitionTimeLimit",))),
        )
        assert starts(simulate(site, jobs, begin=0)) == expected


def test_nothing_is_held_against_a_job_whose_account_and_qos_are_not_said(simulate: Simulate) -> None:
    site = limited((NodeGroup("n[1-4]"),), Qos("normal"), Qos("high"))
    closed = dataclasses.replace(
        site, partitions=(Partition("batch", allowed_accounts=("lab",), allowed_qos=("high",)),)
    )
    jobs = [
        job(1, 0, 60, 10),
        job(2, 0, 60, 10, user="a", qos="high", account="lab"),
        job(3, 0, 60, 10, user="a", qos="normal", account="lab"),
        job(4, 0, 60, 10, user="x", qos="high", account="lab"),  # no association
    ]
    assert starts(simulate(closed, jobs, begin=0)) == [3, 3, -1, -1]


def test_nobody_is_a_stranger_where_no_association_is_known(simulate: Simulate) -> None:
    jobs = [job(1, 0, 60, 10, user="x", account="lab")]
    for enforced in (("associations",), ("associations", "limits", "qos")):
        for known, expected in (((), [3]), (users(a=0), [-1])):
            site = batch(1, enforced=enforced, associations=known, qos=(Qos("normal"),))
            assert starts(simulate(site, jobs, begin=0)) == expected


def test_names_of_users_and_accounts_are_the_same_in_capitals(simulate: Simulate) -> None:
    site = limited((NodeGroup("n1"),), Qos("normal"))
    assert starts(simulate(site, [job(1, 0, 60, 10, user="A", account="Lab")], begin=0)) == [3]


def test_a_partition_is_open_to_the_accounts_below_those_that_it_names(
    simulate: Simulate, request: pytest.FixtureRequest
) -> None:
    known = (Association("root"), Association("lab"), Association("theory", parent="lab"))
    known += (Association("theory", "a"), Association("lab", "b"))
    site = batch(2, partitions=(Partition("batch", allowed_accounts=("lab",)),), associations=known)
    jobs = [job(1, 0, 60, 10, user="a", account="theory"), job(2, 0, 60, 10, user="b", account="lab")]
    since = "22.05" not in request.node.callspec.id
    assert starts(simulate(site, jobs, begin=0)) == [3 if since else -1, 3]


def test_no_reservation_for_a_qos_without(simulate: Simulate) -> None:
    # 2 needs both nodes; with a plan for it 3 would not go ahead.
    jobs = [job(1, 0, 100, 5), job(2, 1, 60, 5, 2, qos="last"), job(3, 2, 600, 30)]
    for flags, expected in (((), [3, 103, 163]), (("NoReserve",), [3, 630, 30])):
        site = batch(2, qos=(Qos("normal"), Qos("last", flags=flags)))
        assert starts(simulate(site, jobs, begin=0)) == expected, flags
