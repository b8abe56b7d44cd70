"""What jobs get that ask for no memory or no cores, drawn by hand.

Times are seconds from the start of slurmctld; the first pass is at 3.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from naive.slurm_cases import TIMES, scheduling
from naive.slurm_jobs import Job
from policyfactory.site.model import NodeGroup, Partition, Site

Simulate = Callable[..., dict[int, object]]


@pytest.fixture(params=TIMES)
def simulate(request: pytest.FixtureRequest) -> Simulate:
    return request.param


def starts(schedule: dict[int, object]) -> list[int]:
    return [placed.start for _, placed in sorted(schedule.items())]


def test_a_partition_says_what_its_jobs_get_of_memory(simulate: Simulate) -> None:
    # Of 1,000 MB a job has 600 of the one partition, 400 of the other with two cores, and 300 of the cluster's.
    site = Site(
        "drawn",
        (NodeGroup("n1", 8, 1000),),
        (
            Partition("node", default_memory_per_node=600),
            Partition("core", default_memory_per_core=200),
            Partition("other"),
        ),
        **scheduling(select="cores+memory", default_memory_per_core=300),
    )
    jobs = [
        Job(1, 0, 600, 600, 1, 1, partition="node"),
        Job(2, 0, 1200, 1200, 1, 2, partition="core"),
        Job(3, 0, 600, 600, 1, 1, partition="node"),
        Job(4, 0, 600, 600, 1, 1, partition="other"),
        # What a job asks for itself goes before.
        Job(5, 0, 600, 600, 1, 1, 400, partition="node"),
    ]
    # Jobs 1 and 2 fill it, then 3 and 2; jobs 4 and 5 have 700 MB together.
    assert starts(simulate(site, jobs, begin=0)) == [3, 3, 603, 1203, 1203]


@pytest.mark.parametrize(
    ("memory", "ran", "expected"),
    # A job that ran had the cores that the log says: one, as it must have asked for it.
    [(400, False, [3, 3, 603]), (600, False, [3, 603, 603]), (400, True, [3, 3, 3])],
)
def test_each_gpu_brings_cores_and_memory(simulate: Simulate, memory: int, ran: bool, expected: list[int]) -> None:
    # Two jobs of a GPU have all eight cores, or else more memory than there is, and the node is planned for the second.
    site = Site(
        "drawn",
        (NodeGroup("n1", 8, 1000, 2),),
        (Partition("gpu", default_memory_per_gpu=memory, default_cores_per_gpu=4), Partition("cpu")),
        **scheduling(select="cores+memory", default_memory_per_core=10),
    )
    jobs = [
        Job(1, 0, 600, 600, 1, 1, gpus=1, partition="gpu", ran=ran),
        Job(2, 0, 600, 600, 1, 1, gpus=1, partition="gpu", ran=ran),
        Job(3, 0, 600, 600, 1, 1, partition="cpu", ran=ran),
    ]
    assert starts(simulate(site, jobs, begin=0)) == expected
