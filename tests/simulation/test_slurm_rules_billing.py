"""What counts in usage, and so in fair share, drawn by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from naive.slurm_cases import TIMES_OF_OTHER_KERNEL, scheduling
from naive.slurm_jobs import Job
from policyfactory.site.model import Association, NodeGroup, Partition, Priority, Site

Simulate = Callable[..., dict[int, object]]
LAB = {"account": "lab"}


@pytest.mark.parametrize("simulate", TIMES_OF_OTHER_KERNEL)
@pytest.mark.parametrize(
    ("billing", "flag", "first"),
    [
        # Each second ann holds one core, 800 MB and a GPU, bob four cores and 40 MB: 1 to 4.
        ({}, "", "ann"),
        ({}, "MAX_TRES", "ann"),
        # 3.2 to 0.16: memory alone; 4.2 to 4.16: both.
        ({"mem": 0.004}, "", "bob"),
        ({"cpu": 1, "mem": 0.004}, "", "bob"),
        # The largest: 3.2 to 4; and with GPUs beside it 5.2 to 4.
        ({"cpu": 1, "mem": 0.004}, "MAX_TRES", "ann"),
        ({"cpu": 1, "mem": 0.004, "gres/gpu": 2}, "MAX_TRES", "ann"),
        ({"cpu": 1, "mem": 0.004, "gres/gpu": 2}, "MAX_TRES_GRES", "bob"),
        # The one node that each has counts alike: 11 to 14.
        ({"cpu": 1, "node": 10}, "", "ann"),
    ],
)
def test_who_was_billed_less_goes_first(
    simulate: Simulate, billing: Mapping[str, float], flag: str, first: str
) -> None:
    site = Site(
        "drawn",
        (NodeGroup("n[1-2]", 4, 1000, gpus=1),),
        (Partition("batch", billing=billing),),
        associations=(Association("root"), Association("lab"), Association("lab", "ann"), Association("lab", "bob")),
        priority=Priority(fair_share=10_000, calculation_period=60, flags=(flag,) if flag else ()),
        **scheduling(select="cores+memory"),
    )
    jobs = [
        Job(1, 0, 600, 600, 1, 1, 800, 1, user="ann", **LAB),
        Job(2, 0, 600, 600, 1, 4, 40, user="bob", **LAB),
        Job(3, 100, 600, 600, 2, 8, 100, user="ann", **LAB),
        Job(4, 100, 600, 600, 2, 8, 100, user="bob", **LAB),
    ]
    schedule = simulate(site, jobs, begin=0)
    order = (3, 4) if first == "ann" else (4, 3)
    assert [schedule[id_].start for id_ in (1, 2, *order)] == [3, 3, 603, 1203]
