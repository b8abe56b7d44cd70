"""Replicas: each job once, users' weeks moved around, bursts jittered, the load scaled."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.text import WEEK
from policyfactory.workload.jobs import Attributes, Workload
from policyfactory.workload.resample import Replicas, loads_of
from refusals import refused

WEEKS = 10


def log_of(n: int = 2_000, users: int = 12, ticks: int = 1) -> Workload:
    rng = np.random.default_rng(4)
    submit = np.sort(rng.integers(0, WEEKS * WEEK, n)) * ticks
    submit -= submit[0]
    submit[-1] = WEEKS * WEEK * ticks + 5 * ticks
    return Workload(
        "log", 64, np.arange(1, n + 1), submit, rng.integers(1, 500, n) * ticks, rng.integers(500, 900, n) * ticks,
        rng.integers(1, 9, n), rng.integers(0, users, n), np.full(n, -1), unix_start=1_000_000, ticks=ticks,
        attributes=Attributes(*np.broadcast_to(np.arange(n), (6, n))),
    )  # fmt: skip


@pytest.mark.parametrize("ticks", [1, 1000])
def test_each_job_is_there_once_and_its_user_s_jobs_moved_by_one_number_of_weeks(ticks: int) -> None:
    log = log_of(ticks=ticks)
    replica = Replicas(log, jitter=0, seed=3).sample(1)
    row = replica.attributes.queue  # the row of the log
    assert sorted(row) == list(range(len(log) - 1)), "the last job is no part of a whole week"
    for column in ("run_time", "requested_time", "processors", "user"):
        assert getattr(replica, column).tolist() == getattr(log, column)[row].tolist()
    moved = (replica.submit - log.submit[row]) % (WEEKS * WEEK * ticks)
    shifts = {int(user): set(moved[replica.user == user].tolist()) for user in set(replica.user.tolist())}
    assert all(len(some) == 1 and not next(iter(some)) % (WEEK * ticks) for some in shifts.values())
    assert len({next(iter(some)) for some in shifts.values()}) > 3, "not all users alike"


def test_bursts_move_together_and_by_no_more_than_the_jitter() -> None:
    log = log_of()
    still, moved = (Replicas(log, jitter=jitter, seed=3).sample(2) for jitter in (0, 1800))
    order = np.argsort(still.attributes.queue)
    by = moved.submit[np.argsort(moved.attributes.queue)] - still.submit[order]
    span = WEEKS * WEEK
    by = (by + span // 2) % span - span // 2
    assert 1700 < abs(by).max() <= 1800
    together = 0
    for user in range(12):
        rows = np.flatnonzero(log.user[:-1] == user)
        burst = np.cumsum(np.diff(log.submit[rows], prepend=-WEEK) >= 600)
        for one in np.unique(burst):
            moves = by[rows[burst == one]]
            together += len(moves) > 1
            assert len(set(moves.tolist())) == 1
    assert together > 10


def test_jobs_of_unknown_users_move_day_by_day() -> None:
    log = dataclasses.replace(log_of(), user=np.full(2_000, -1))
    replica = Replicas(log, jitter=0).sample(1)
    row = replica.attributes.queue
    moved = (replica.submit - log.submit[row]) % (WEEKS * WEEK)
    assert all(len(set(moved[log.submit[row] // 86_400 == day].tolist())) == 1 for day in range(7 * WEEKS))
    assert len(set(moved.tolist())) == WEEKS


def test_the_past_stays_as_it_is_and_the_load_is_scaled() -> None:
    log = log_of()
    replicas = Replicas(log, lead_in=500, jitter=0)
    plain, dense = replicas.sample(1), replicas.sample(1, 1.25)
    for replica in (plain, dense):
        assert replica.submit[:500].tolist() == log.submit[:500].tolist()
        assert replica.attributes.queue[:500].tolist() == list(range(500))
    first = log.submit[500]
    np.testing.assert_allclose(dense.submit[500:] - first, (plain.submit[500:] - first) / 1.25, atol=0.5)
    assert "load x 1.25" in dense.origin


def test_the_same_number_is_the_same_replica() -> None:
    replicas = Replicas(log_of(), seed=8)
    assert replicas.sample(3).submit.tolist() == Replicas(log_of(), seed=8).sample(3).submit.tolist()
    assert replicas.sample(3).submit.tolist() != replicas.sample(4).submit.tolist()


@pytest.mark.parametrize("count", [1, 2, 5, 20, 21])
def test_loads_are_spread_evenly(count: int) -> None:
    loads = loads_of(count)
    np.testing.assert_allclose(sorted(loads), 0.8 + 0.4 * (np.arange(count) + 0.5) / count)
    assert count < 5 or abs(np.diff(loads)).min() > 0.05


def test_wrong_use_is_said() -> None:
    log = log_of()
    refused(WorkloadError, "whole weeks 50 log", Replicas, log, lead_in=1_950)
    refused(WorkloadError, "0 jobs log", Replicas, log, lead_in=2_000)
    refused(UsageError, "0 replica", Replicas(log).sample, 0)
    refused(UsageError, "0 times", Replicas(log).sample, 1, 0)
    refused(UsageError, "jitter 86,400", Replicas, log, jitter=1e9)


# Halves. --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ticks", [1, 1000])
@pytest.mark.parametrize("users", [1, 5, 40])
def test_two_halves_have_each_job_once_and_half_the_weeks(users: int, ticks: int) -> None:
    log = log_of(users=users, ticks=ticks)
    replicas = Replicas(log, jitter=0, seed=3)
    one, other = replicas.half(1), replicas.half(2)
    rows = [half.attributes.queue for half in (one, other)]
    assert sorted(np.concatenate(rows)) == list(range(len(log) - 1))
    if users == 40:
        assert not {*one.user.tolist()} & {*other.user.tolist()}, "a user is in one of them"
    for half in (one, other):
        assert half.submit[-1] <= WEEKS // 2 * WEEK * ticks * 1.5
        assert 0.35 * len(log) < len(half) < 0.65 * len(log)
        # The load of a half is that of the whole log.
        area = (half.run_time * half.processors).sum() / ticks
        whole = (log.run_time[:-1] * log.processors[:-1]).sum() / ticks
        span = WEEKS // 2 * WEEK * area / (whole / 2)
        assert half.submit[-1] / ticks == pytest.approx(span, rel=0.02)
    again = replicas.half(3)
    assert {*again.user.tolist()} != {*one.user.tolist()} or users < 40, "the next pair is dealt anew"


def test_halves_keep_the_past_and_the_time_of_the_week() -> None:
    log = log_of()
    half = Replicas(log, lead_in=500, jitter=0).half(2, 0.8)
    assert half.submit[:500].tolist() == log.submit[:500].tolist()
    assert half.user[:500].tolist() == log.user[:500].tolist()
    assert (np.diff(half.submit) >= 0).all()
    row = half.attributes.queue[500:]
    area = (log.run_time * log.processors).astype(float)
    jobs = np.arange(500, len(log) - 1)
    jobs = jobs[log.submit[jobs] - log.submit[500] < 2 * (Replicas(log, lead_in=500).weeks // 2) * WEEK]
    faster = 0.8 / (2 * area[row].sum() / area[jobs].sum())
    moved = (half.submit[500:] - log.submit[500]) * faster
    there = (log.submit[row] - log.submit[500]) % WEEK
    off = (moved - there) % WEEK
    assert np.minimum(off, WEEK - off).max() <= 1, "but for rounding"


def test_one_user_s_only_week_cannot_be_dealt() -> None:
    log = log_of(users=1)
    first = dataclasses.replace(log, submit=np.where(np.arange(2_000) < 1_999, np.sort(log.submit) // 20, log.submit))
    refused(WorkloadError, "dealt 1,999 log", Replicas(first).half, 1)
