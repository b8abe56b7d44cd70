"""Limits on what a job has of each of its nodes (MaxTRESPerNode), drawn by hand; the first pass is at 3."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from naive.slurm_cases import TIMES
from naive.slurm_jobs import Job
from policyfactory.site.model import Association, Limits, NodeGroup, Partition, Qos, Site

Simulate = Callable[..., dict[int, object]]
NEVER = -1


@pytest.mark.parametrize("simulate", TIMES)
@pytest.mark.parametrize(
    ("of_qos", "of_account", "expected"),
    [
        (Limits(cores=4), Limits(), [3, 3, NEVER, 3]),
        # In whole numbers: seven cores of two nodes are three of each.
        (Limits(cores=3), Limits(), [NEVER, 3, NEVER, 3]),
        # What the QOS says goes before the account's.
        (Limits(cores=8), Limits(cores=1), [3, 3, 3, 3]),
        (Limits(), Limits(cores=2), [NEVER, NEVER, NEVER, 3]),
        (Limits(gpus=1), Limits(cores=4), [3, 3, NEVER, NEVER]),
    ],
)
def test_who_asks_for_more_of_a_node_waits_in_vain_and_keeps_nobody_back(
    simulate: Simulate, of_qos: Limits, of_account: Limits, expected: list[int]
) -> None:
    site = Site(
        "drawn",
        (NodeGroup("n[1-4]", 8, gpus=2),),
        (Partition("batch"),),
        qos=(Qos("normal", per_node=of_qos),),
        associations=(Association("root"), Association("lab", per_node=of_account), Association("lab", "a")),
        enforced=("associations", "limits", "qos"),
    )
    asked = [(1, 4, 0), (2, 7, 0), (1, 5, 0), (1, 1, 2)]
    jobs = [
        Job(id_, 0, 600, 600, nodes, cores, gpus=gpus, account="lab", user="a")
        for id_, (nodes, cores, gpus) in enumerate(asked, 1)
    ]
    schedule = simulate(site, jobs, begin=0)
    assert [schedule[job.id].start for job in jobs] == expected
