"""The SC'17 kernel against its twin: the same starts and ends, to the last bit, on random workloads."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import sc17 as naive
from naive.small_workloads import KERNELS, small_workload
from policyfactory.engine.compat.sc17 import (
    BY_FORMULA,
    BY_KEY,
    DELAY,
    EXCHANGE,
    F4,
    PLACE,
    SORTED,
    UNICEF,
    WFP,
    Sc17Jobs,
    Sc17Order,
    _counted,
    new_space,
    program_keys,
    sort_visible,
)
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE
from policyfactory.simulation.compat import OWN_KEYS, simulate_sc17
from policyfactory.simulation.prepare import formula_of
from policyfactory.simulation.simulate import Rules
from policyfactory.workload.jobs import Workload

# Others: the package's formula, and the same arithmetic by hand (x: the p of the policy; now: whole seconds).
OTHERS: dict[str, naive.Key | naive.FromOldest] = {
    "-p*q": lambda job, now: -job.x * job.processors,
    "q": lambda job, now: job.processors,
    "-(w + p)/p": lambda job, now: naive.divide(-(now - job.submit + job.x), job.x),
    "p - 3*w": lambda job, now: job.x - 3 * (now - job.submit),
    # r counts from the oldest of the jobs that are seen: other wide jobs go first as it is dispatched.
    "q*r - p": naive.FromOldest(lambda job, now, oldest: job.processors * (job.submit - oldest) - job.x),
}
NAMES = (*OWN_KEYS, *OTHERS)


def policy(name: str) -> Policy:
    epoch = Epoch("oldest-waiting") if isinstance(OTHERS.get(name), naive.FromOldest) else Epoch()
    return CATALOGUE[name] if name in CATALOGUE else Policy(name, name, epoch=epoch)


def order(name: str) -> str | naive.Key | naive.FromOldest:
    return OTHERS.get(name, name)


def plain(workload: Workload, name: str, rules: Rules) -> list[naive.Job]:
    columns = (workload.submit, workload.run_time, workload.requested_time, workload.processors)
    zero = int(workload.submit[0])
    jobs = []
    for submit, run_time, request, processors in zip(*(column.tolist() for column in columns), strict=True):
        x = float(request if rules.decide_by == "request" else run_time)
        jobs.append(naive.Job(submit - zero, float(run_time), x, x, processors))
    naive.sc17(jobs, workload.machine, order(name), rules.backfill == "easy")
    return jobs


def assert_same(workload: Workload, name: str, rules: Rules) -> list[naive.Job]:
    jobs = plain(workload, name, rules)
    schedule = simulate_sc17(workload, policy(name), rules)
    zero = int(workload.submit[0]) * 10**9
    for what in ("start", "end"):
        wanted = np.rint(np.array([getattr(job, what) for job in jobs]) * 1e9).astype(np.int64) + zero
        np.testing.assert_array_equal(getattr(schedule, what), wanted, err_msg=f"{what} {name} {rules}")
    assert schedule.backfilled.tolist() == [job.backfilled for job in jobs]
    return jobs


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Draw 17 to 70 jobs: simultaneous arrivals, no run time, overruns, equal jobs, jobs as wide as the machine."""
    machine = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(17, 70))
    # Seconds that single precision holds to the 2.6 ms of a dispatch, and seconds that it does not.
    scale = draw(st.sampled_from([1, 1, 50, 100_000]))
    gap = draw(st.sampled_from([0, 1, 4, 20]))
    submit = np.cumsum(rng.integers(0, gap + 1, n) * (rng.random(n) < 0.6)) * scale
    request = rng.integers(1, draw(st.sampled_from([2, 9, 40])), n) * scale
    run_time = rng.integers(0, 12, n) * scale
    run_time = np.where(rng.random(n) < 0.3, request + rng.integers(-1, 3, n), run_time)
    width = np.where(rng.random(n) < 0.2, machine, np.minimum(rng.geometric(0.4, n), machine))
    unknown = np.full(n, -1)
    return Workload("drawn", machine, np.arange(n), submit + 7, run_time, request, width, unknown, unknown)


@pytest.mark.parametrize("decide_by", ["request", "runtime"])
@pytest.mark.parametrize("backfill", ["none", "easy"])
@given(workload=workloads(), name=st.sampled_from(NAMES))
def test_drawn_workloads(workload: Workload, name: str, backfill: str, decide_by: str) -> None:
    assert_same(workload, name, Rules(backfill=backfill, decide_by=decide_by, compatibility="sc17"))


@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("name", NAMES)
def test_a_long_queue(name: str, backfill: str) -> None:
    # Hundreds of jobs wait, so that the window of 32 is full and most arrivals are not seen.
    rng = np.random.default_rng(17)
    n, unknown = 300, np.full(300, -1)
    submit, request = np.sort(rng.integers(0, 2000, n)), rng.choice([60, 300, 900], n)
    run_time = np.maximum(rng.integers(0, 2, n) * request, rng.integers(1, 300, n))
    width = np.minimum(rng.geometric(0.2, n), 16)
    workload = Workload("burst", 16, np.arange(n), submit, run_time, request, width, unknown, unknown)
    jobs = assert_same(workload, name, Rules(backfill=backfill, compatibility="sc17"))
    # Under "q" the head is the narrowest, so that nothing can go before it.
    assert any(job.backfilled for job in jobs) == (backfill == "easy" and name != "q")


def test_a_rest_of_minus_one_is_left_out() -> None:
    # 3 processors: A takes 2 at 30 and runs far over its request of 300,000 s. B needs 2, so that C, of 1, may go
    # before it whenever A's end is expected. But 300,001 s after A's submission A has run 300,000.997 s, which is
    # 300,001.0 in single precision: its rest is -1, the mark of a job that has ended, and nothing can be reserved.
    for arrival, goes in ((300_030, True), (300_031, False), (300_032, True)):
        assert goes_before([(30, 400_000, 300_000, 2), (200_000, 5, 10, 2), (arrival, 5, 10, 1)], 3) == goes
    # D, dispatched 12 jobs after A, has -0.97 left: it is picked, A is not. B, of 3, can start with nothing to spare
    # then. One second later both are over, and A's 3 processors leave one to spare.
    rows = [(30, 400_000, 300_000, 3), *[(30, 0, 1, 1)] * 11, (30, 400_000, 300_000, 2), (200_000, 5, 10, 3)]
    assert not goes_before([*rows, (300_031, 5, 10, 1)], 6)
    assert goes_before([*rows, (300_032, 5, 10, 1)], 6)


def test_of_equal_rests_in_seconds_the_first_dispatched_is_picked() -> None:
    # A (3 processors, from 10.0052 to 110.0052 by its request) and B (2, from 20.0026 to 110.0026) have the same
    # seconds left. A is picked, with which C, of 4, can start and nothing is to spare; with B it needed both.
    rows = [(10, 0, 1, 1), (10, 100, 100, 3), (20, 90, 90, 2), (30, 10, 10, 4)]
    assert not goes_before([*rows, (50, 500, 500, 1)], 6)
    assert goes_before([*rows, (50, 10, 10, 1)], 6)


def test_wfp3_divides_in_single_precision() -> None:
    # 99,999,998 is 100,000,000 in single precision: the two are equal and stay as they are.
    starts = by_hand([(5, 1000, 1000, 1), (10, 7, 100_000_000, 1), (10, 7, 99_999_998, 1)], "WFP3", 1)
    assert starts[1] < starts[2]
    starts = by_hand([(5, 1000, 1000, 1), (10, 7, 100_000_000, 1), (10, 7, 99_999_990, 1)], "WFP3", 1)
    assert starts[1] > starts[2]


@pytest.mark.parametrize("name", ["F1", "F2", "F3", "F4"])
def test_keys_of_the_programs_functions(name: str) -> None:
    rng = np.random.default_rng(8)
    p, q, r = rng.integers(0, 200_000, 400), rng.integers(1, 2000, 400), np.sort(rng.integers(0, 10**6, 400))
    p[:3], r[:2], r[3] = 0, 0, 1
    jobs = [naive.Job(int(c), float(a), float(a), float(a), int(b)) for a, b, c in zip(p, q, r, strict=True)]
    keys = program_keys(int(name[1]), p.astype(float), q, r.astype(float))
    assert keys.tolist() == naive.program_keys(name, jobs)
    assert keys[0] == -math.inf
    # The published formula has the merged coefficients, rounded to three digits: nearly the same order.
    order = np.argsort(np.argsort(CATALOGUE[name].scores(p[3:], q[3:], r[3:])))
    assert np.corrcoef(order, np.argsort(np.argsort(keys[3:])))[0, 1] > 0.9999


def goes_before(rows: list[tuple[int, int, int, int]], machine: int) -> bool:
    """Say whether the last of ``rows``, after 16 jobs that do nothing, is backfilled as it comes, under FCFS."""
    rows = [(0, 0, 1, 1)] * 16 + rows
    unknown = np.full(len(rows), -1)
    workload = Workload("rests", machine, np.arange(len(rows)), *np.array(rows).T, unknown, unknown)
    last = assert_same(workload, "FCFS", Rules(compatibility="sc17"))[-1]
    return last.backfilled and last.start < last.submit + 1


def by_hand(rows: list[tuple[int, int, int, int]], name: str, machine: int, **rules: str) -> list[float]:
    """Return the starts of jobs (submit, run time, request, processors) that come after 16 that do nothing."""
    rows = [(0, 0, 1, 1)] * 16 + rows
    submit, run_time, request, width = np.array(rows).T
    unknown = np.full(len(rows), -1)
    workload = Workload("hand", machine, np.arange(len(rows)), submit, run_time, request, width, unknown, unknown)
    given: dict[str, str] = {"backfill": "none", "decide_by": "request", "compatibility": "sc17", **rules}
    schedule = simulate_sc17(workload, policy(name), Rules(**given))  # type: ignore[arg-type]
    return (schedule.start[16:] / 1e9).tolist()


def test_each_dispatch_takes_its_time() -> None:
    starts = by_hand([(100, 50, 50, 1), (100, 50, 50, 1), (200, 50, 50, 2)], "FCFS", 2)
    assert starts == pytest.approx([100 + DELAY, 100 + 2 * DELAY, 200 + DELAY], abs=1e-9)
    assert pytest.approx(0.00261024742, abs=1e-11) == DELAY


def test_no_sort_at_the_end_of_a_sleep() -> None:
    # The machine is idle until 100, when two jobs come: the first of the log is taken, though SPF has the other first.
    starts = by_hand([(100, 50, 50, 2), (100, 10, 10, 2)], "SPF", 2)
    assert starts == pytest.approx([100 + DELAY, 150 + 2 * DELAY], abs=1e-9)
    # It does not fit while another runs: then the queue is sorted at once, and the shorter and narrower one goes.
    starts = by_hand([(90, 60, 60, 1), (100, 50, 50, 2), (100, 10, 10, 1)], "SPF", 2)
    assert starts[2] == pytest.approx(100 + DELAY, abs=1e-9)


def test_the_33rd_job_is_not_seen() -> None:
    # One job runs, 32 long ones wait, then a short one comes: it has to wait until it is among the first 32.
    rows = [(10, 100, 100, 1), *((20, 50, 50, 1) for _ in range(32)), (30, 1, 1, 1)]
    starts = by_hand(rows, "SPF", 1)
    assert sorted(range(len(rows)), key=lambda row: starts[row]).index(33) == 2
    rows = [(10, 100, 100, 1), *((20, 50, 50, 1) for _ in range(31)), (30, 1, 1, 1)]
    starts = by_hand(rows, "SPF", 1)
    assert sorted(range(len(rows)), key=lambda row: starts[row]).index(32) == 1


def test_one_job_is_backfilled_at_a_time_and_the_head_is_chosen_anew() -> None:
    # 4 processors: A has 2 until 100 (by request). B needs all 4. C (until 60) and D (until 90) may go before it.
    rows = [(0, 100, 100, 2), (10, 50, 50, 4), (20, 40, 40, 1), (20, 70, 70, 1), (20, 90, 90, 1)]
    starts = by_hand(rows, "FCFS", 4, backfill="easy")
    assert starts[2:4] == pytest.approx([20 + DELAY, 20 + 2 * DELAY], abs=1e-9)
    assert 100 < starts[1] < 101
    assert starts[4] > starts[1]


@pytest.mark.parametrize("count", [1, 2, 31, 32])
def test_the_exchange_sort_is_the_programs(count: int) -> None:
    """All jobs come at once and go one by one: their order shows how often and how equal requests were turned round."""
    rows = [(5, 1000, 1000, 1), *((10, 7, 30, 1) for _ in range(count))]
    starts = by_hand(rows, "SPF", 1)
    queue, expected = list(range(1, count + 1)), []
    equal = [naive.Job(10, 7.0, 30.0, 30.0, 1) for _ in range(count + 1)]
    number = {id(job): at for at, job in enumerate(equal)}
    # Once when they come, once when the running job ends, and then once for each, before it is dispatched and while
    # it runs, as long as two are left.
    waiting = naive.exchange_sort([equal[at] for at in queue]) if count > 1 else [equal[at] for at in queue]
    while waiting:
        if len(waiting) > 1:
            waiting = naive.exchange_sort(waiting)
        expected.append(number[id(waiting.pop(0))])
        if len(waiting) > 1:
            waiting = naive.exchange_sort(waiting)
    assert sorted(range(1, count + 1), key=lambda row: starts[row]) == expected


def test_policies_that_are_not_the_programs() -> None:
    # A formula under the name of one of the programs' policies is a formula.
    own = Policy("F1", "-p")
    starts = [(5, 100, 100, 1), (10, 7, 7, 1), (10, 9, 9, 1)]
    rows = np.array([(0, 0, 1, 1)] * 16 + starts).T
    unknown = np.full(19, -1)
    workload = Workload("hand", 1, np.arange(19), *rows, unknown, unknown)
    schedule = simulate_sc17(workload, own, Rules(backfill="none", compatibility="sc17"))
    assert schedule.start[18] < schedule.start[17]
    # r may count from the job that has waited longest.
    moving = Policy("oldest", "-r", epoch=Epoch("oldest-waiting"))
    schedule = simulate_sc17(workload, moving, Rules(backfill="none", compatibility="sc17"))
    assert schedule.start[17] < schedule.start[18]
    # No number is the last of all, wherever it comes from.
    shorter_never = Policy("root", "sqrt(p - 8) - w/1000000")
    schedule = simulate_sc17(workload, shorter_never, Rules(backfill="none", compatibility="sc17"))
    assert schedule.start[18] < schedule.start[17]


def test_the_cube_of_wfp3_is_rounded_once() -> None:
    rng = np.random.default_rng(4)
    ages, requests = rng.integers(0, 10**6, 5000).astype(np.float32), rng.integers(1, 10**5, 5000).astype(np.float32)
    ratios = (ages / requests).astype(np.float64)
    cubes = ratios * ratios * ratios
    assert cubes.tolist() == [naive.cube(ratio) for ratio in ratios.tolist()]
    powers = np.array([math.pow(ratio, 3.0) for ratio in ratios.tolist()])
    np.testing.assert_allclose(cubes, powers, rtol=2.3e-16)


def test_in_second_0_a_job_of_no_run_time_goes_ahead_of_a_head_that_fits() -> None:
    # A head that fits is reserved second 0, and a job that is believed to take no time ends by then in that second.
    n, unknown = 22, np.full(22, -1)
    columns = (np.arange(n), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.full(n, 2), np.full(n, 2))
    for first, moved in ((0, True), (1, False)):
        submit = columns[1] + np.where(np.arange(n) < 16, 0, first)
        workload = Workload("zero", 5, columns[0], submit, *columns[2:], unknown, unknown)
        rules = Rules(backfill="easy", decide_by="runtime", compatibility="sc17")
        assert any(job.backfilled for job in assert_same(workload, "F4", rules)) == moved


def test_in_second_0_nothing_else_goes_ahead_of_a_head_that_fits() -> None:
    # Jobs of one processor, none left over beyond what the head is reserved: they have to take their turn.
    n, unknown = 22, np.full(22, -1)
    columns = (np.arange(n), np.zeros(n, dtype=np.int64), np.full(n, 5), np.full(n, 5), np.ones(n, dtype=np.int64))
    workload = Workload("one each", 40, *columns, unknown, unknown)
    jobs = assert_same(workload, "F4", Rules(backfill="easy", decide_by="runtime", compatibility="sc17"))
    assert not any(job.backfilled for job in jobs)


KINDS = {"F4": BY_KEY, "SPF": EXCHANGE, "WFP3": WFP, "UNICEF": UNICEF, "p - 3*w": BY_FORMULA, "q*r - p": BY_FORMULA}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("count", [2, 3, 9, 32])
def test_the_visible_part_is_sorted_whatever_its_order_was(name: str, count: int) -> None:
    # 40 jobs, the queue begins at place 5; in a run it is nearly in order all the time.
    for seed in range(6):
        rng = np.random.default_rng([17, seed])
        submit, request = np.sort(rng.integers(0, 50, 40)), rng.integers(1, 9, 40) * 10.0
        submit[:2] = 0
        width, unknown = rng.integers(1, 7, 40), np.full(40, -1)
        whole = request.astype(np.int64)
        log = Workload("log", 6, np.arange(40), submit, whole, whole, width, unknown, unknown)
        plain = [
            naive.Job(int(r), p, p, p, int(q)) for r, p, q in zip(submit.tolist(), request.tolist(), width, strict=True)
        ]
        none = np.full(40, np.nan)
        jobs = Sc17Jobs(submit * 1.0, request, request, request, width, none, none, np.zeros(40, dtype=np.bool_))
        chosen = policy(name)
        formula = formula_of(log, chosen)
        key = {
            "F4": program_keys(F4, request, width, submit * 1.0),
            "UNICEF": np.log2(width) * request,
        }.get(name, request)
        space = new_space(40, 6, backfill=False)
        space.clock[0] = 60.25
        space.queue[:] = rng.permutation(40)
        space.state[PLACE] = 5
        before = space.queue.tolist()
        work = (np.empty(32), np.empty((4 + formula.depth, 32)))
        with np.errstate(all="ignore"):
            sort_visible(jobs, space, Sc17Order(KINDS[name], key, formula, 6.0, False, 32, *work), count)
        wanted = naive.Sc17([plain[at] for at in before], 6, naive.KEYS.get(name, order(name)), backfill=False)
        wanted.now = 60.25
        wanted.array = wanted.array[: 5 + count]
        wanted.sort(5)
        number = {id(job): at for at, job in enumerate(plain)}
        assert space.queue[5 : 5 + count].tolist() == [number[id(job)] for job in wanted.array[5:]]
        assert space.queue[:5].tolist() == before[:5]
        assert space.queue[5 + count :].tolist() == before[5 + count :], "what is not seen stays"
        # Keys that do not change: what is in order is not looked at again.
        assert space.state[SORTED] == (5 + count if name == "F4" else 0)


def test_requests_of_days_are_rounded_to_single_precision() -> None:
    # What is left of a request is then known to a hundredth of a second: equal rests, and others in another order.
    rng = np.random.default_rng(77)
    for _ in range(400):
        workload, scale = small_workload(rng, 17), int(rng.choice([997, 30_000, 2_000_000]))
        names = ("submit", "run_time", "requested_time")
        times = {name: getattr(workload, name) * scale + (name == "submit") * 16_000_000 for name in names}
        KERNELS["sc17"][1](rng, dataclasses.replace(workload, **times))


def test_a_rest_that_is_nearly_minus_one_is_counted() -> None:
    one, start = np.ones(1), np.array([999_990.05])
    jobs = Sc17Jobs(one, one, one, 9 * one, np.array([3]), start, one, np.zeros(1, dtype=np.bool_))
    assert _counted(jobs, 0, 999_999.05, 1_000_000.0, 0.06) == 3
    jobs.start[0] = 999_990.0
    assert _counted(jobs, 0, 999_999.0, 1_000_000.0, 0.0) == 0


def test_a_job_of_a_second_does_not_go_ahead_of_a_head_that_fits() -> None:
    n, unknown = 22, np.full(22, -1)
    columns = (np.arange(n), np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64), np.ones(n, dtype=np.int64))
    workload = Workload("a second each", 40, *columns, np.ones(n, dtype=np.int64), unknown, unknown)
    jobs = assert_same(workload, "F4", Rules(backfill="easy", decide_by="runtime", compatibility="sc17"))
    assert not any(job.backfilled for job in jobs)
