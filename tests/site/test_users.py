"""Users that a log numbers and does not name: limits of each of them hold, and what names alone could tell is said."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from policyfactory.evaluation.fidelity.compare import fidelity, verdict_of
from policyfactory.simulation.slurm.run import run_slurm
from policyfactory.site.fits import fit_jobs, with_alike_users
from policyfactory.site.model import Association, Limits, NodeGroup, Partition, Priority, Qos, Site
from policyfactory.workload.jobs import Requests, Workload
from support import OTHER_KERNEL

TREE = (Association("root"), Association("lab"), Association("lab", "ann"), Association("lab", "bob"))

UNLIKE = (*TREE[:3], Association("lab", "bob", shares=5.0))
UNNAMED = "do not name their user (sacct: User; workload import --user-names), and so not the shares and limits"


def work(users: list[int], names: list[int] | None = None) -> Workload:
    """Give jobs of one core and 100 s, all submitted at once, of account lab."""
    n = len(users)
    zeros, none, times = np.zeros(n, np.int64), np.full(n, -1), np.full(n, 100)
    requests = dataclasses.replace(
        Requests.unknown(n), account=zeros, user_name=none if names is None else np.array(names),
        names={"account": ("lab",), "user": () if names is None else ("ann", "bob")},
    )  # fmt: skip
    return Workload(
        "log", 100, np.arange(1, n + 1), zeros, times, times, zeros + 1, np.array(users), none, requests=requests
    )


def site(associations: tuple[Association, ...] = (), *, shares: int = 0, **limits: Limits) -> Site:
    qos = (Qos("normal", **{name: value for name, value in limits.items() if name.startswith("per_")}),)
    return Site(
        "here", (NodeGroup("n[1-9]", 1),), (Partition("batch", default=True),), qos=qos, associations=associations,
        enforced=("associations", "limits", "qos"), priority=Priority(fair_share=shares),
    )  # fmt: skip


def at_once(jobs: Workload, where: Site) -> int:
    start = run_slurm(jobs, where).start
    assert (start >= 0).all()
    return int((start < 50).sum())


@pytest.mark.parametrize(
    "where",
    [
        site(TREE, per_user=Limits(jobs=2)),
        site(TREE, per_user=Limits(cores=2)),
        site((TREE[0], Association("lab", own=Limits(jobs=2)), *TREE[2:])),
        # Of users that differ nobody knows who is who, but each has the limit of the account.
        site((TREE[0], Association("lab", own=Limits(jobs=2)), TREE[2], Association("lab", "bob", shares=9.0))),
    ],
)
def test_limits_of_each_user_count_by_name_or_else_by_number(where: Site) -> None:
    assert at_once(work([7, 7, 7, 7, 8, 8, 8], [0, 0, 0, 0, 1, 1, 1]), where) == 4
    assert at_once(work([7, 7, 7, 7, 8, 8, 8]), where) == 4
    assert at_once(work([7] * 7), where) == 2
    # Of whom nothing is known, no job counts with others.
    assert at_once(work([-1] * 7), where) == 7


def test_a_limit_of_each_user_stops_a_job_that_is_beyond_it_alone() -> None:
    jobs = dataclasses.replace(work([-1, -1]), processors=np.array([3, 2]))
    assert (run_slurm(jobs, site(TREE, per_user=Limits(cores=2))).start >= 0).tolist() == [False, True]


def test_users_of_an_account_that_are_all_alike_need_no_names() -> None:
    jobs = work([7, 8, 7, 9])
    assert jobs.requests is not None
    named = with_alike_users(jobs.requests, jobs.user, site(TREE))
    names = [named.name_of("user_name", row) for row in range(4)]
    assert names[0] == names[2]
    assert {names[0], names[1]} == {"ann", "bob"}
    # There are two associations: of a third user nothing is known.
    assert names[3] is None
    assert with_alike_users(jobs.requests, jobs.user, site(UNLIKE)) is jobs.requests


def test_what_the_users_names_alone_would_tell_is_said() -> None:
    other = site(UNLIKE, per_user=Limits(jobs=2), shares=1000)
    assert [text for text in fit_jobs(other, work([7, 8])).unknown if "user" in text] == [
        f"2 of 2 jobs {UNNAMED} that the site gives users by name; limits of each user count by the log's number"
    ]
    assert not [text for text in fit_jobs(site(TREE, shares=1000), work([7, 8])).unknown if "user" in text]
    assert not [text for text in fit_jobs(other, work([7, 8], [0, 1])).unknown if "user" in text]
    nobody = [text for text in fit_jobs(site(TREE, per_user=Limits(jobs=2)), work([-1])).unknown if "user" in text]
    assert nobody[0] == "1 of 1 jobs do not say their user, and so not the limits of each user"
    assert UNNAMED in nobody[1]


@OTHER_KERNEL
def test_a_replay_that_is_not_far_says_what_the_names_alone_would_tell() -> None:
    jobs = dataclasses.replace(work([7, 8] * 20), submit=np.arange(40) * 60, start=np.arange(40) * 60 + 1)
    found = fidelity(jobs, site(UNLIKE, per_user=Limits(jobs=2), shares=1000))
    assert found.light != "far"
    assert any(UNNAMED in text for text in verdict_of(found).caveats)
    assert any(UNNAMED in text for text in found.as_dict()["unknown"])
