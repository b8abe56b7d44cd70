"""What is given of the jobs: requests as users write them, groups of like jobs, the clock of the site."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from naive.predicted import usual_requests
from policyfactory.prediction.features import NAMES, _dense, known_of, missing, raised_requests, requests_of
from policyfactory.workload.jobs import Attributes, Workload


def workload(requests: list[int], **columns: object) -> Workload:
    n = len(requests)
    given = {"run_time": [5] * n, "processors": [1] * n, "user": [1] * n, "submit": list(range(n))} | columns
    numbers = {name: np.array(given[name]) for name in ("submit", "run_time", "processors", "user")}
    return Workload(
        "log", 8, np.arange(1, n + 1), requested_time=np.array(requests), start=np.full(n, -1), **numbers,
        unix_start=columns.get("unix_start"), time_zone=columns.get("time_zone"), attributes=columns.get("attributes"),
    )  # fmt: skip


def test_a_request_raised_to_the_run_time_is_undone() -> None:
    assert requests_of(workload([3600] * 10 + [3607, 3599, 7200, 7211, 3660])).tolist() == (
        [3600.0] * 11 + [3599.0, 7200.0, 3600.0, 3660.0]
    )


def test_a_raised_request_does_not_tell_by_its_groups_that_the_job_ran_longer() -> None:
    groups = known_of(workload([3600] * 11 + [3607, 3611, 7200], user=np.zeros(14, dtype=np.int64))).groups
    assert (groups[10] == groups[11]).all()
    assert (groups[11] == groups[12]).all()
    assert (groups[12] != groups[13]).any()


def test_requests_that_tell_the_run_time_are_unusual_and_just_above_it() -> None:
    requests, run_time = [3600] * 10 + [3607, 3607, 3607, 3667, 3600], [60] * 10 + [3607, 3548, 3547, 3660, 3600]
    raised = raised_requests(workload(requests, run_time=np.array(run_time)))
    assert np.flatnonzero(raised).tolist() == [10, 11, 13]
    # Nor does a request to the second tell, whatever is usual; whole minutes are limits that were reached.
    same = [61, 95, 3599, 3600, 120, 7], [61, 95, 3599, 3600, 120, 6]
    assert np.flatnonzero(raised_requests(workload(same[0], run_time=np.array(same[1])))).tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_requests_are_those_of_the_plain_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice([60, 61, 90, 100, 120, 121, 130, 600], 12).tolist()
    requests = rng.choice(values, 200).tolist()
    assert requests_of(workload(requests)).tolist() == usual_requests(requests, 60)


def test_jobs_of_one_group_agree_in_its_keys_and_others_do_not() -> None:
    rng = np.random.default_rng(3)
    n = 400
    user, width = rng.integers(-1, 4, n), rng.integers(1, 4, n)
    requests = (60 * rng.integers(1, 4, n)).tolist()
    attributes = Attributes(**{field.name: rng.integers(-1, 3, n) for field in dataclasses.fields(Attributes)})
    known = known_of(workload(requests, user=user, processors=width, attributes=attributes))
    executable, group, wanted = attributes.executable, attributes.group, np.array(requests)
    kinds = [
        (user, wanted, width, executable), (user, width), (user, wanted), (user, executable), (user,), (group,),
        (wanted, width),
    ]  # fmt: skip
    numbers: set[int] = set()
    for kind, keys in enumerate(kinds):
        column = known.groups[:, kind]
        assert ((column < 0) == (keys[0] < 0)).all()
        of_key = {tuple(int(key[row]) for key in keys): int(column[row]) for row in range(n) if keys[0][row] >= 0}
        assert [of_key[tuple(int(key[row]) for key in keys)] for row in np.flatnonzero(keys[0] >= 0)] == (
            column[column >= 0].tolist()
        )
        assert len(set(of_key.values())) == len(of_key), "two keys, one number"
        assert numbers.isdisjoint(of_key.values()), "two kinds, one number"
        numbers |= set(of_key.values())
    assert numbers == set(range(len(numbers)))


@pytest.mark.parametrize("largest", [3, 1000, 1 << 40])
def test_values_are_numbered_as_by_sorting(largest: int) -> None:
    values = np.random.default_rng(1).integers(0, largest, 500)
    assert _dense(values).tolist() == np.unique(values, return_inverse=True)[1].tolist()
    assert _dense(np.empty(0, dtype=np.int64)).tolist() == []


def test_facts_and_outcomes() -> None:
    # 2001-07-01 was a Sunday, summer time in Stockholm: 22:30 UTC the day before is half past midnight.
    jobs = workload(
        [600, 600], run_time=[5, 900], processors=[2, 8], unix_start=993940200, time_zone="Europe/Stockholm"
    )
    known = known_of(jobs)
    assert known.facts[1, :5].tolist() == [np.log(600), np.log(8), -1, -1, -1]
    assert known.facts[0, NAMES.index("hour")] == 0.5
    assert known.facts[0, NAMES.index("weekday")] == 3  # days since the Unix clock's, a Thursday
    np.testing.assert_allclose(known.outcome[:, :3], [[np.log(5), 1, 5 / 600], [np.log(900), 10 / 900, 1]])


def test_what_is_missing_is_said() -> None:
    assert missing(workload([60], user=[-1]))[0].startswith("users")
    assert missing(workload([60])) == ("group, executable, queue, requested memory",)
    known = Attributes(*np.zeros((6, 1), dtype=np.int64))
    assert missing(workload([60], attributes=known)) == ()
