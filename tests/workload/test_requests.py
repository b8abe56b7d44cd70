"""What jobs ask for besides processors: it is checked, and goes along wherever jobs go."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import WorkloadError
from policyfactory.workload.jobs import COLUMNS, Attributes, Requests, Workload
from policyfactory.workload.resample import Replicas, UserWeeks
from policyfactory.workload.sensitivity import scale_load
from refusals import refused

WEEK = 604_800


def requests(n: int, **columns: Any) -> Requests:
    """Return requests of ``n`` jobs, each of two nodes."""
    known: dict[str, Any] = {"nodes": np.full(n, 2), "memory": 1000 * np.arange(1, n + 1), "qos": np.arange(n) % 2}
    known["names"] = {"qos": ("normal", "high")}
    return dataclasses.replace(Requests.unknown(n), **(known | columns))


def workload(n: int = 6, every: int = 100, **columns: Any) -> Workload:
    """Return ``n`` jobs, one every ``every`` s from second 1000 on, each eligible 7 s after its submission."""
    submit = 1000 + every * np.arange(n)
    rest = (np.full(n, 60), np.full(n, 90), np.full(n, 4), np.arange(n) % 3, np.full(n, -1))
    asked = requests(n, eligible=submit + 7, after=np.arange(n), **columns)
    return Workload("small", 16, np.arange(1, n + 1), submit, *rest, requests=asked)


def test_what_is_no_request_is_named() -> None:
    for columns, said in (
        ({"nodes": np.array([1, 0])}, "1 0"),
        ({"memory": np.array([-2, 1])}, "0 -2 -1"),
        ({"exclusive": np.array([2, 2])}, "is 2 0 1 -1"),
        ({"qos": np.array([0, 2])}, "1 2"),
        (
            {"partition": np.array([0, -1])},
            "0 partition",
        ),
        ({"names": {"queue": ("a",)}}, "queue partition"),
        ({"array_limit": np.array([1, 0])}, "array_limit 1 0"),
        ({"gpus": np.zeros(3)}, "2 3 nodes gpus"),
    ):
        refused(WorkloadError, said, requests, 2, **columns)
    refused(WorkloadError, "2 6 small", dataclasses.replace, workload(), requests=requests(2))
    refused(WorkloadError, "requests Requests small", dataclasses.replace, workload(), requests=3)


def test_a_log_without_arrays_is_the_log_that_it_was() -> None:
    plain = workload()
    assert dataclasses.replace(plain, requests=requests(6, **columns_of(plain))).sha256() == plain.sha256()
    arrays = workload(array=np.ones(6), array_limit=np.full(6, 2))
    assert arrays.sha256() != plain.sha256()
    again = pickle.loads(pickle.dumps(arrays)).requests
    assert (again.array.tolist(), again.array_limit.tolist()) == ([1] * 6, [2] * 6)
    # Jobs that are submitted again are no array: some of its tasks may not be there.
    assert again.repeated([0, 3, 3], np.zeros(3, dtype=np.int64)).known("array") == 0


def columns_of(jobs: Workload) -> dict[str, Any]:
    """Return the columns of requests that were made before there were arrays."""
    assert jobs.requests is not None
    return {name: getattr(jobs.requests, name) for name in COLUMNS if not name.startswith("array")}


def test_requests_can_not_be_changed_by_anybody_they_are_given_to() -> None:
    asked = pickle.loads(pickle.dumps(workload())).requests
    with pytest.raises(ValueError, match="read-only"):
        asked.nodes[0] = 1
    with pytest.raises(TypeError):
        asked.names["qos"] = ()
    assert asked.name_of("qos", 1) == "high"
    assert asked.name_of("account", 1) is None
    assert (asked.known("memory"), asked.known("gpus")) == (6, 0)
    assert Requests.unknown(0).known("nodes") == 0


def test_they_go_along_with_the_jobs_and_their_clock() -> None:
    jobs = workload()
    cut = jobs.select(slice(2, 4), rebase=True)
    assert cut.requests is not None
    assert cut.requests.memory.tolist() == [3000, 4000]
    assert cut.requests.eligible.tolist() == [7, 107]
    finer = cut.in_ticks(1000)
    assert finer.requests is not None
    assert finer.requests.eligible.tolist() == [7000, 107_000]
    # A job whose time was told before the new clock begins is eligible at its 0.
    assert Requests.unknown(1).shifted(-5).eligible.tolist() == [-1]
    assert cut.requests.shifted(-50).eligible.tolist() == [0, 57]
    heavier = scale_load(jobs, 2.0)
    assert heavier.requests is not None
    assert (heavier.requests.eligible - heavier.submit).tolist() == [7] * 6
    assert heavier.requests.after.tolist() == jobs.requests.after.tolist()  # type: ignore[union-attr]


def test_jobs_that_are_repeated_keep_their_delay_and_wait_for_nobody() -> None:
    jobs = workload(400, every=WEEK // 100)
    replica = Replicas(jobs, lead_in=30).sample(1, 1.1)
    resampled = UserWeeks(jobs).sample(3, seed=1)
    for made in (replica, resampled):
        assert made.requests is not None
        assert (made.requests.eligible - made.submit == 7).all()
        assert (made.requests.after == -1).all()
        assert made.requests.names == {"qos": ("normal", "high")}
    # The memory tells which job a repeated one was: its user went along with it.
    assert (jobs.user[replica.requests.memory // 1000 - 1] == replica.user).all()  # type: ignore[union-attr]
    assert (jobs.user[resampled.requests.memory // 1000 - 1] == resampled.user).all()  # type: ignore[union-attr]


def test_the_identity_of_the_input_has_what_a_plain_log_does_not_say() -> None:
    jobs = workload()
    plain = dataclasses.replace(jobs, requests=None)
    none = Requests.unknown(6)
    assert dataclasses.replace(jobs, requests=none).sha256() == plain.sha256()
    memory = dataclasses.replace(none, memory=np.full(6, 5))
    assert dataclasses.replace(jobs, requests=memory).sha256() == plain.sha256()
    others = [
        jobs,
        dataclasses.replace(jobs, requests=dataclasses.replace(memory, assumed=("mem=5",))),
        dataclasses.replace(jobs, requests=dataclasses.replace(jobs.requests, names={"qos": ("normal", "low")})),
        dataclasses.replace(jobs, requests=dataclasses.replace(jobs.requests, gpus=np.full(6, 1))),
    ]
    assert len({one.sha256() for one in (plain, *others)}) == 5


def test_attributes_of_other_lengths_are_refused() -> None:
    names = [field.name for field in dataclasses.fields(Attributes)]
    wrong = {name: np.zeros(at % 2 + 1) for at, name in enumerate(names)}
    refused(WorkloadError, "1 2", Attributes, **wrong)
