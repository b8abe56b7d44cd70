"""Resampled logs: what is drawn, what stays together, and what does not depend on how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from naive import resample as naive
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.random import generator
from policyfactory.core.text import WEEK
from policyfactory.workload import resample as module
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import MAX_JOBS, MAX_WEEKS, Resampling, UserWeeks, parse_length, resample
from refusals import refused

COLUMNS = ("submit", "run_time", "requested_time", "processors", "user")


def make(submit: Any, user: Any, *, ticks: int = 1, **changes: Any) -> Workload:
    """Return jobs whose run time is their own place, so that each can be recognised."""
    n = len(submit)
    place = np.arange(n)
    columns = {"run_time": place, "requested_time": place + 1, "processors": place % 7 + 1, "start": submit}
    return Workload("toy", 7, place + 11, submit, user=user, ticks=ticks, **{**columns, **changes})  # type: ignore[arg-type]


def rows(workload: Workload) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(workload, name).tolist() for name in COLUMNS), strict=True))


@st.composite
def logs(draw: st.DrawFn) -> Workload:
    ticks = draw(st.sampled_from([1, 1, 1000]))
    weeks = draw(st.integers(2, 5))
    # Few different instants: many ties, and jobs exactly on the edges of weeks.
    instants = st.one_of(
        st.integers(0, (weeks + 1) * WEEK * ticks - 1),
        st.builds(lambda week, second: week * WEEK * ticks + second, st.integers(0, weeks), st.integers(0, 2)),
    )
    times = [0, *draw(st.lists(instants, max_size=30)), weeks * WEEK * ticks + draw(st.integers(0, 5))]
    submit = np.sort(np.array(times)) + draw(st.sampled_from([0, 12_345]))
    users = draw(st.lists(st.integers(-2, 4), min_size=len(times), max_size=len(times)))
    return make(submit, np.array(users), ticks=ticks)


def can_differ(log: Workload, draw: str) -> bool:
    """Return whether draws can differ: of active weeks, somebody needs two."""
    week = (log.submit - log.submit[0]) // (WEEK * log.ticks)
    there = {(max(user, -1), at) for user, at in zip(log.user.tolist(), week.tolist(), strict=True) if at < week[-1]}
    return draw == "log" or len(there) > len({user for user, _ in there})


@pytest.fixture(scope="module")
def kth(shared: Callable[[str], Path]) -> Workload:
    return read(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"))


@pytest.fixture(scope="module")
def history(kth: Workload) -> UserWeeks:
    return UserWeeks(kth)


@given(
    logs(),
    st.integers(1, 6),
    st.integers(0, 2**40),
    st.sampled_from(["log", "active"]),
    st.sampled_from([(1, 0), (7, 0), (99, 1 << 20)]),
)
def test_a_resample_is_that_of_its_plain_twin(
    log: Workload, weeks: int, seed: int, draw: Any, bounds: tuple[int, int]
) -> None:
    assume(can_differ(log, draw))
    with pytest.MonkeyPatch.context() as patch:
        # However many weeks are drawn at once, and whether there is memory for a table of all users and weeks.
        patch.setattr(module, "_AT_ONCE", bounds[0])
        patch.setattr(module, "_SMALL_TABLE", bounds[1])
        history = UserWeeks(log)
        made = history.sample(weeks, seed, 3, draw)
    uniform = generator(seed, module._PURPOSE, 3).random((weeks, history.users))
    assert rows(made) == naive.resample(rows(log), uniform.tolist(), draw, log.ticks)
    assert made.job_id.tolist() == list(range(1, len(made) + 1))
    assert (made.start == -1).all()
    assert history.jobs + history.left_out == len(log)


@given(logs(), st.integers(1, 4), st.integers(1, 4), st.sampled_from(["log", "active"]))
def test_the_first_weeks_of_a_longer_resample_are_those_of_a_shorter_one(
    log: Workload, weeks: int, more: int, draw: Any
) -> None:
    assume(can_differ(log, draw))
    short, long = (resample(log, weeks=length, seed=5, draw=draw) for length in (weeks, weeks + more))
    first = long.select(long.submit < weeks * WEEK * log.ticks)
    assert rows(first) == rows(short)


def test_a_user_s_week_stays_whole_and_at_its_time_of_the_week(kth: Workload, history: UserWeeks) -> None:
    made = history.sample(30, seed=2)
    blocks: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for row in rows(kth.select(slice(0, history.jobs))):
        blocks.setdefault((row[4], row[0] // WEEK), []).append((row[0] % WEEK, *row[1:]))
    of_user: dict[int, set[tuple[Any, ...]]] = {}
    for (user, _), block in blocks.items():
        of_user.setdefault(user, set()).add(tuple(block))
    new: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for row in rows(made):
        new.setdefault((row[4], row[0] // WEEK), []).append((row[0] % WEEK, *row[1:]))
    assert len(new) > 300
    for (user, _), block in new.items():
        assert tuple(block) in of_user[user]
    # Both clocks begin at the same time of the week.
    assert made.unix_start == kth.unix_start is not None


def test_week_0_begins_where_the_log_does_also_where_its_clock_began_earlier() -> None:
    log = make(np.array([1_000, 1_000 + WEEK, 1_000 + 2 * WEEK]), np.array([1, 1, 1]), unix_start=5_000)
    made = resample(log, weeks=1, seed=0)
    assert made.unix_start == 6_000
    assert made.submit.tolist() == [0]


def test_the_job_that_ends_the_last_week_is_not_in_it() -> None:
    exactly = make(np.array([0, 5, 2 * WEEK]), np.array([1, 1, 1]))
    history = UserWeeks(exactly)
    assert (history.weeks, history.jobs, history.left_out) == (2, 2, 1)
    refused(WorkloadError, "whole week toy", UserWeeks, make(np.array([0, 5, WEEK - 1]), np.array([1, 1, 1])))
    refused(WorkloadError, "whole week toy", UserWeeks, exactly.select(slice(0, 0)))


@pytest.mark.parametrize("last", [WEEK, 2 * WEEK - 1])
def test_one_whole_week_is_nothing_to_draw_from_for_every_draw_would_be_the_same(last: int) -> None:
    log = make(np.array([0, 5, last]), np.array([1, 2, 1]))
    refused(WorkloadError, "whole every 3 toy", UserWeeks, log)
    refused(WorkloadError, "least whole 3 toy", resample, log, weeks=2, seed=1)


def test_active_weeks_are_not_drawn_where_nobody_has_two() -> None:
    log = make(np.array([0, WEEK, 2 * WEEK]), np.array([1, 2, 1]))
    refused(WorkloadError, "2 users toy", resample, log, weeks=4, seed=1, draw="active")
    assert len({resample(log, weeks=4, seed=seed).sha256() for seed in range(10)}) > 5


def test_unknown_users_are_one_user() -> None:
    log = make(np.array([0, 10, 20, WEEK, WEEK + 1, WEEK + 2, 2 * WEEK]), np.full(7, -1))
    assert UserWeeks(log).users == 1
    assert len(resample(log, weeks=50, seed=1)) == 150


def test_jobs_of_one_second_go_by_user_and_then_as_in_the_log() -> None:
    times = [0, 0, 0, 0, *[WEEK] * 4, 2 * WEEK]
    log = make(np.array(times), np.array([2, 1, 2, 1, 2, 1, 2, 1, 1]))
    made = [place % 4 for place in resample(log, weeks=1, seed=0).run_time.tolist()]
    assert made == [1, 3, 0, 2]


def test_expected_jobs_and_work_by_hand() -> None:
    # Two whole weeks: user 1 has 2 jobs in the first week only, user 2 one in each.
    log = make(
        np.array([0, 1, 2, WEEK + 3, 2 * WEEK]),
        np.array([1, 1, 2, 2, 2]),
        run_time=np.array([10, 20, 30, 40, 50]),
        processors=np.array([1, 2, 3, 4, 5]),
    )
    history = UserWeeks(log)
    assert history.expected_jobs("log") == 2.0
    assert history.expected_jobs("active") == 3.0
    assert history.expected_work("log") == (10 + 40 + 90 + 160) / 2
    assert history.expected_work("active") == 50 + (90 + 160) / 2


@pytest.mark.parametrize(("draw", "weeks"), [pytest.param("log", 5_000, marks=pytest.mark.slow), ("active", 1_000)])
def test_jobs_and_work_of_a_week_are_as_expected_on_average(history: UserWeeks, draw: Any, weeks: int) -> None:
    # New weeks are independent; a correct program fails each z test with a chance of 1e-6. Drawing among 48 weeks in
    # place of the 47 there are would be 5.5 standard errors off.
    made = history.sample(weeks, seed=11, draw=draw)
    week = made.submit // WEEK
    for weights, expected in (
        (np.ones(len(made)), history.expected_jobs(draw)),
        (made.run_time.astype(np.float64) * made.processors, history.expected_work(draw)),
    ):
        weekly = np.bincount(week, weights, minlength=weeks)
        z = (weekly.mean() - expected) / (weekly.std(ddof=1) / np.sqrt(weeks))
        assert 2 * stats.norm.sf(abs(z)) > 1e-6


def test_every_week_of_a_user_is_drawn_equally_often() -> None:
    # One user, 9 weeks of one job each; chi-squared over 4,500 draws fails a correct program with a chance of 1e-6.
    log = make(np.arange(10) * WEEK, np.ones(10, dtype=np.int64))
    drawn = np.bincount(resample(log, weeks=4_500, seed=3).run_time, minlength=9)
    assert len(drawn) == 9
    assert stats.chisquare(drawn).pvalue > 1e-6


def test_users_and_weeks_are_drawn_independently() -> None:
    # Two users with 3 weeks each: 9 pairs in 4,500 new weeks, and 9 pairs of one user in successive weeks.
    submit = np.repeat(np.arange(4) * WEEK, 2)
    made = resample(make(submit, np.tile([1, 2], 4)), weeks=4_500, seed=4)
    first, second = (made.run_time[made.user == user] // 2 for user in (1, 2))
    assert stats.chisquare(np.bincount(first * 3 + second, minlength=9)).pvalue > 1e-6
    assert stats.chisquare(np.bincount(first[:-1] * 3 + first[1:], minlength=9)).pvalue > 1e-6


def test_a_seed_and_a_number_decide_everything(kth: Workload, history: UserWeeks) -> None:
    made = history.sample(20, seed=7, number=2)
    assert made.sha256() == resample(kth, weeks=20, seed=7, number=2).sha256()
    assert made.sha256() == "c0ff1447b256e1e195c740941a6f2d277674eb658caffc5eca915690dd0cf158"
    others = [history.sample(20, seed=7, number=3), history.sample(20, seed=8, number=2)]
    assert len({made.sha256(), *(other.sha256() for other in others)}) == 3
    assert made.name == "KTH-SP2-1996-2.1-cln[r2]"
    assert "seed 7, number 2" in made.origin
    assert len(history.sample(seed=7)) == len(history.sample(history.weeks, seed=7))


@pytest.mark.parametrize(
    ("text", "weeks"), [("2y", 104), ("104w", 104), ("728d", 104), ("1w", 1), (" LOG ", None), ("604800", 1)]
)
def test_lengths(text: str, weeks: int | None) -> None:
    assert parse_length(text) == weeks


@pytest.mark.parametrize("text", ["", "2x", "10d", "0", "0w", "inf", "-2y", "1e9w", "9999y", "99999w", "2.5y"])
def test_a_text_that_is_no_length_is_refused(text: str) -> None:
    refused(UsageError, "", parse_length, text)


def test_what_is_out_of_range_is_refused(kth: Workload, history: UserWeeks, monkeypatch: pytest.MonkeyPatch) -> None:
    for weeks in (0, -3, MAX_WEEKS + 1):
        refused(UsageError, f"{weeks:,} 5,200", history.sample, weeks)
    refused(UsageError, "1 numbered", history.sample, 1, number=0)
    refused(UsageError, "seed -1", history.sample, 1, seed=-1)
    refused(UsageError, "log active all", Resampling, 3, "all")  # type: ignore[arg-type]
    assert MAX_JOBS > 10**7
    monkeypatch.setattr(module, "MAX_JOBS", 10_000)
    refused(UsageError, "KTH-SP2-1996-2.1-cln 10,000", history.sample, 20)


def test_a_log_of_absurd_length_is_no_length_of_a_resample() -> None:
    history = UserWeeks(make(np.array([0, WEEK // 2, 10**15]), np.array([1, 2, 1])))
    assert history.weeks > 10**9
    refused(UsageError, "1 5,200", history.sample)
    assert len(history.sample(5_200, seed=1)) == 0


def test_a_resample_may_be_empty_and_is_then_a_workload_without_jobs() -> None:
    log = make(np.array([0, 5 * WEEK]), np.array([1, 1]))
    made = [resample(log, weeks=1, seed=seed) for seed in range(20)]
    assert {len(one) for one in made} == {0, 1}


def test_a_resample_can_be_resampled(history: UserWeeks) -> None:
    once = history.sample(10, seed=1)
    twice = resample(once, weeks=5, seed=1)
    assert (twice.machine, twice.time_zone) == (once.machine, once.time_zone)
    # Its weeks begin with its own first job.
    assert once.unix_start is not None
    assert twice.unix_start == once.unix_start + once.submit[0]
    assert set(twice.run_time.tolist()) <= set(once.run_time.tolist())
