"""Reservations for some, drawn by hand; the first pass is at 3."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from naive.slurm_cases import TIMES
from naive.slurm_jobs import Job
from policyfactory.site.model import Association, NodeGroup, Partition, Reservation, Site

Simulate = Callable[..., dict[int, object]]
NEVER = -1


@pytest.mark.parametrize("simulate", TIMES)
@pytest.mark.parametrize(
    ("users", "accounts", "expected"),
    [
        (("ann",), (), [3, NEVER]),
        (("-bob",), (), [3, NEVER]),
        ((), ("lab",), [3, 603]),
        # Below an account that may: where associations are enforced.
        ((), ("all",), [3, 603]),
        # Of both lists both hold, and the user's own account counts.
        (("ann",), ("lab",), [3, NEVER]),
        (("ann",), ("all",), [NEVER, NEVER]),
    ],
)
def test_who_may_use_a_reservation(
    simulate: Simulate, users: tuple[str, ...], accounts: tuple[str, ...], expected: list[int]
) -> None:
    associations = (
        Association("root"), Association("all"), Association("lab", parent="all"),
        Association("lab", "ann"), Association("lab", "bob"),
    )  # fmt: skip
    site = Site(
        "drawn",
        (NodeGroup("n[1-2]"),),
        (Partition("batch"),),
        associations=associations,
        enforced=("associations",),
        reservations=(Reservation("kept", "n1", 0, 86400, users, accounts),),
    )
    asked = {"account": "lab", "reservation": "kept"}
    jobs = [Job(1, 0, 600, 600, 1, user="ann", **asked), Job(2, 0, 600, 600, 1, user="bob", **asked)]
    # Who does not ask for it has the other node.
    jobs += [Job(number, 0, 600, 600, 1, user="ann", account="lab") for number in (3, 4)]
    schedule = simulate(site, jobs, begin=0)
    assert [schedule[job.id].start for job in jobs] == [*expected, 3, 603]


@pytest.mark.parametrize("simulate", TIMES)
@pytest.mark.parametrize(
    ("mine", "others", "expected"),
    [
        ((), (), [NEVER, 3]),
        (("OVERLAP",), (), [3, 3]),
        (("OVERLAP",), ("MAINT",), [NEVER, 3]),
        (("MAINT",), ("MAINT",), [3, 3]),
    ],
)
def test_whose_jobs_pass_over_another_reservation(
    simulate: Simulate, mine: tuple[str, ...], others: tuple[str, ...], expected: list[int]
) -> None:
    # Both have node 1 all day long.
    site = Site(
        "drawn",
        (NodeGroup("n[1-2]"),),
        (Partition("batch"),),
        reservations=(
            Reservation("mine", "n1", 0, 86400, ("ann",), flags=mine),
            Reservation("other", "n1", 0, 86400, ("bob",), flags=others),
        ),
    )
    jobs = [Job(1, 0, 600, 600, 1, user="ann", reservation="mine"), Job(2, 0, 600, 600, 1, user="ann")]
    schedule = simulate(site, jobs, begin=0)
    assert [schedule[job.id].start for job in jobs] == expected
