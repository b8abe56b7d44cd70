"""Rules(compatibility="ocst"): every start that ocst itself recorded, the plain simulator, each of its rules alone."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.online import Online
from naive.online_cases import (
    FORMULAS,
    STATIC,
    TIMED,
    Extra,
    Shape,
    columns_of,
    plain_jobs,
    plain_schedule,
    policy,
    random_rules,
    random_workload,
)
from naive.orders import ORDERS
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.engine.easy import SortedRun, easy_until, new_queue
from policyfactory.engine.events import (
    BOUNDS,
    HIGH,
    LOW,
    NEVER,
    PREDICTED,
    WIDEST,
    WIDTH,
    Order,
    new_heap,
    new_jobs,
    new_running,
    new_state,
    place_of_instant,
    put_listed,
    reserve_listed,
    tagged,
)
from policyfactory.policy.store import resolve
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import LARGEST_MACHINE, Workload
from refusals import refused
from support import cases

Columns = dict[str, np.ndarray]
Oracle = Callable[[str], Columns]

QUEUES = ("spf", "sqf", "saf", "srf", "lexp", "sexp", "lcfs", "lpf", "lqf", "laf", "lrf")
RECORDED = (
    "fcfs-fcfs-thr0",
    "fcfs-spf-thr0",
    "fcfs-saf-thr0",
    "spf-fcfs-thrinf",
    "saf-fcfs-thrinf",
    *(f"{name}-{name}-thr{threshold}" for name in QUEUES for threshold in ("inf", "72000")),
)
# Jobs as wide as the machine, ties everywhere, bursts of equal jobs; no job outlives its request.
SHAPES = (
    Shape(overruns=False),
    Shape(jobs=60, machine=5, gap=3, overruns=False),
    Shape(jobs=80, machine=40, gap=2, longest=5, overruns=False),
    Shape(jobs=25, machine=3, gap=2, longest=4, ticks=4, overruns=False),
)


def workload_of(columns: Columns) -> Workload:
    unknown = np.full(len(columns["job_id"]), -1)
    names = ("job_id", "submit", "runtime", "requested", "procs")
    return Workload("KTH-SP2", 100, *(columns[name] for name in names), unknown, unknown)


def rules_of(name: str) -> Rules:
    primary, backfill, threshold = name.split("-")
    own = None if backfill == primary else resolve(backfill)
    limit = math.inf if threshold == "thrinf" else float(threshold.removeprefix("thr"))
    return Rules(compatibility="ocst", threshold=limit, backfill_policy=own)


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_start(name: str, oracle: Oracle) -> None:
    expected = oracle(f"ocst_kth5k_{name}")
    order = resolve(name.split("-", maxsplit=1)[0])
    schedule = simulate(workload_of(expected), order, rules_of(name), tie_rank=expected["tie_rank"])
    np.testing.assert_array_equal(schedule.start, expected["start"])


def test_all_recorded_runs_are_here(shared: Callable[[str], Path]) -> None:
    result = {path.name for path in shared("oracles/online").glob("ocst_*.csv.gz")}
    assert result == {f"ocst_kth5k_{name}.csv.gz" for name in RECORDED}


def test_the_recorded_order_of_rows_does_not_matter(oracle: Oracle) -> None:
    expected = oracle("ocst_kth5k_saf-saf-thr72000")
    shuffled = np.lexsort((np.random.default_rng(3).random(5000), expected["submit"]))
    columns = {name: values[shuffled] for name, values in expected.items()}
    rules = rules_of("saf-saf-thr72000")
    schedule = simulate(workload_of(columns), resolve("SAF"), rules, tie_rank=columns["tie_rank"])
    np.testing.assert_array_equal(schedule.start, columns["start"])


def assert_same(workload: Workload, text: str, rules: Rules, extra: Extra) -> None:
    start, end, backfilled = plain_schedule(workload, policy(text), rules, extra)
    schedule = simulate(workload, policy(text), rules, extra.prediction, extra.tie_rank)
    np.testing.assert_array_equal(schedule.start, start, err_msg=f"{text} {rules}")
    np.testing.assert_array_equal(schedule.end, end)
    np.testing.assert_array_equal(schedule.backfilled, backfilled)


@pytest.mark.parametrize("formulas", [STATIC, TIMED], ids=["static", "timed"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_workloads(shape: Shape, formulas: tuple[str, ...]) -> None:
    rng = np.random.default_rng([41, SHAPES.index(shape), len(formulas)])
    for _ in cases(15, 200):
        workload = random_workload(rng, shape)
        backfill = "none" if rng.random() < 0.1 else "easy"
        tie_rank = rng.permutation(len(workload)) if rng.random() < 0.5 else None
        believed = workload.run_time + rng.integers(0, 4, len(workload))
        rules = random_rules(rng, backfill, "ocst")
        assert_same(workload, str(rng.choice(formulas)), rules, Extra(believed, tie_rank))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 3)), min_size=2, max_size=25),
    st.sampled_from(sorted(FORMULAS)),
    st.sampled_from([math.inf, 0, 3]),
)
def test_drawn_bursts(jobs: list[tuple[int, int, int]], text: str, threshold: float) -> None:
    # Equal jobs that start together: what counts at the shadow time hangs on the order of the running list.
    gap, run_time, width = np.array(jobs).T
    unknown = np.full(len(jobs), -1)
    columns = (np.arange(len(jobs)), np.cumsum(gap // 2), run_time, np.maximum(run_time, 3), width, unknown, unknown)
    assert_same(Workload("drawn", 5, *columns), text, Rules(compatibility="ocst", threshold=threshold), Extra())


def test_the_defaults_are_those_of_ocst() -> None:
    rules = Rules(compatibility="ocst")
    assert (rules.threshold, rules.ties) == (0, "lifo")
    assert Rules(compatibility="ocst", threshold=math.inf).threshold == math.inf
    assert Rules().threshold == math.inf
    # Jobs that have waited at all go first, so every order is first come, first served, but for jobs just submitted.
    workload = random_workload(np.random.default_rng(5), Shape(jobs=60, overruns=False, gap=2))
    assert (simulate(workload, policy("-p"), rules).start != simulate(workload, policy("-p")).start).any()


def two_waiting(**columns: list[int]) -> Workload:
    """One job fills the machine of four until 10; two more are submitted at 1."""
    given = {"job_id": [1, 2, 3], "submit": [0, 1, 1], "run_time": [10, 5, 5], "processors": [4, 4, 4], **columns}
    requested = given.pop("requested_time", given["run_time"])
    arrays = {name: np.array(values) for name, values in given.items()}
    unknown = np.full(len(given["job_id"]), -1)
    return Workload("small", 4, requested_time=np.array(requested), user=unknown, start=unknown, **arrays)


def test_the_last_of_an_instant_goes_first() -> None:
    rules = Rules(compatibility="ocst", threshold=math.inf)
    assert simulate(two_waiting(), resolve("SPF"), rules).start.tolist() == [0, 15, 10]
    recorded = simulate(two_waiting(), resolve("SPF"), rules, tie_rank=np.array([0, 1, 2]))
    assert recorded.start.tolist() == [0, 10, 15]
    # Overdue as well, where later instants come later.
    assert simulate(two_waiting(), resolve("SPF"), Rules(compatibility="ocst")).start.tolist() == [0, 15, 10]


def test_only_as_many_as_the_head_needs_count_at_the_shadow_time() -> None:
    # Jobs 1 and 2 end together, by their requests, at 10; job 3 needs one of them. Job 4 would outlast that instant.
    jobs = two_waiting(
        job_id=[1, 2, 3, 4],
        submit=[0, 0, 1, 2],
        run_time=[10, 10, 5, 20],
        processors=[1, 2, 2, 1],
    )
    assert simulate(jobs, resolve("FCFS")).start.tolist() == [0, 0, 10, 2]
    assert simulate(jobs, resolve("FCFS"), Rules(compatibility="ocst")).start.tolist() == [0, 0, 10, 10]


@pytest.mark.parametrize(
    ("rules", "tie_rank", "error", "words"),
    [
        (Rules(compatibility="ocst"), [1, 2], EvaluationError, "tie_rank shape 2"),
        (Rules(compatibility="ocst"), [1.0, 2.0, 3.0], EvaluationError, "tie_rank float64"),
        (Rules(), [1, 2, 3], UsageError, "tie_rank ocst"),
    ],
)
def test_a_rank_that_cannot_be_used(rules: Rules, tie_rank: list[float], error: type[Exception], words: str) -> None:
    refused(error, words, simulate, two_waiting(), resolve("FCFS"), rules, tie_rank=np.array(tie_rank))


def test_jobs_that_outlive_their_request_are_refused() -> None:
    jobs = two_waiting(requested_time=[10, 4, 5])
    refused(EvaluationError, "2 5 4", simulate, jobs, resolve("FCFS"), Rules(compatibility="ocst"))
    killed = simulate(jobs, resolve("FCFS"), Rules(compatibility="ocst", overrun="kill"))
    assert killed.end.tolist() == [10, 19, 15]


def test_no_machine_is_beyond_its_counters() -> None:
    assert LARGEST_MACHINE <= WIDEST
    jobs = dataclasses.replace(two_waiting(), machine=LARGEST_MACHINE)
    assert simulate(jobs, resolve("FCFS"), Rules(compatibility="ocst")).wait.tolist() == [0] * len(jobs)


def test_what_ocst_does_not_have_is_refused() -> None:
    refused(UsageError, "conservative backfilling", Rules, compatibility="ocst", backfill="conservative")
    refused(UsageError, "sc17 choose easy", Rules, compatibility="easy")  # type: ignore[arg-type]


# docs/simulator.md has their shares: jobs of KTH-SP2 (28,467) that start at another time when one rule of ocst is taken
# over alone, or all but the threshold. The threshold of 0 alone is first come, first served.
HOURS_40 = 144000.0
ALONE = {
    ("FCFS", math.inf): {"ties": 764, "counted": 2886, "candidates": 0, "threshold": 0, "all": 3257},
    ("SPF", math.inf): {"ties": 12095, "counted": 4351, "candidates": 0, "threshold": 14539, "all": 12045},
    ("SAF", math.inf): {"ties": 9257, "counted": 5132, "candidates": 0, "threshold": 14891, "all": 9026},
    ("SAF", HOURS_40): {"ties": 8376, "counted": 3844, "candidates": 1542, "threshold": 14549, "all": 8848},
}
BY_DAY = ("SAF", HOURS_40)


@pytest.mark.parametrize(
    ("name", "threshold"), [pytest.param(*case, marks=() if case == BY_DAY else pytest.mark.slow) for case in ALONE]
)
def test_each_rule_alone(name: str, threshold: float, shared: Callable[[str], Path]) -> None:
    log = read(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"))
    order, ours = resolve(name), Rules(threshold=threshold, overrun="kill")
    assert len(log) == 28467

    def starts(**rules: object) -> np.ndarray:
        return simulate(log, order, dataclasses.replace(ours, **rules)).start

    jobs = plain_jobs(log, ours)
    Online(jobs, log.machine, ORDERS[name.lower()], threshold=threshold, extra="partial").run()
    expected = starts()
    result = {
        "ties": starts(ties="lifo"),
        "counted": columns_of(jobs)[0],
        "candidates": starts(backfill_policy=order),
        "threshold": starts(threshold=0.0),
        "all": starts(compatibility="ocst"),
    }
    assert {rule: int((start != expected).sum()) for rule, start in result.items()} == ALONE[name, threshold]


def listed(columns: list[tuple[int, int, int]]) -> np.ndarray:
    """Return a table of running jobs: predicted end, processors, job; behind it what an earlier use has left there."""
    running = new_running(20)
    low = int(running[BOUNDS, LOW])
    running[PREDICTED], running[WIDTH] = 5, tagged(9, 1)
    for at, (predicted, processors, job) in enumerate(columns):
        running[PREDICTED, low + at], running[WIDTH, low + at] = predicted, tagged(processors, job)
    running[BOUNDS, HIGH] = low + len(columns)
    return running


def test_jobs_of_an_instant_are_numbered_from_the_last() -> None:
    submit = np.array([0, 0, 0, 5, 5, 9, 12, 12])
    assert [place_of_instant(submit, job) for job in range(8)] == [2, 1, 0, 4, 3, 5, 7, 6]


def test_where_a_job_stands_among_those_that_end_with_it() -> None:
    # In front of all; but a backfilled one behind those that were backfilled in the same pass, from sequence 4 on.
    backfilled, sequence = np.array([False, True, True, False, True, True]), np.array([3, 4, 5, 6, 7, 8])
    running = listed([(4, 1, 0)])
    orders = []
    for job in range(6):
        put_listed(running, sequence, backfilled, 4, job, 5, job + 10)
        places = range(running[BOUNDS, LOW] + 1, running[BOUNDS, HIGH])
        assert all(running[PREDICTED, at] == 5 for at in places)
        orders.append([int(running[WIDTH, at]) for at in places])
    wanted = [[0], [1, 0], [1, 2, 0], [3, 1, 2, 0], [4, 3, 1, 2, 0], [4, 5, 3, 1, 2, 0]]
    assert orders == [[tagged(job + 10, job) for job in order] for order in wanted]
    # Those of an earlier pass are not waited for; and nobody looks behind the last.
    put_listed(running, sequence, backfilled, 9, 5, 5, 15)
    assert running[WIDTH, running[BOUNDS, LOW] + 1] == tagged(15, 5)
    alone = listed([(4, 1, 0), (5, 2, 1)])
    put_listed(alone, sequence, backfilled, 4, 2, 5, 7)
    assert alone[WIDTH, alone[BOUNDS, HIGH] - 1] == tagged(7, 2)
    assert alone[BOUNDS, HIGH] - alone[BOUNDS, LOW] == 3


def test_what_is_left_at_the_shadow_time() -> None:
    # At 5 there end jobs 1 and 2 of this pass (2 and 3 processors), then 3 and 4 of earlier ones (4 and 1).
    sequence = np.array([0, 8, 9, 1, 2])
    running = listed([(5, 2, 1), (5, 3, 2), (5, 4, 3), (5, 1, 4)])
    # From the last of this pass to the first, then on, until there is enough: 3, 5, 9, 10.
    assert [reserve_listed(running, sequence, 8, 0, needed) for needed in (4, 6, 10)] == [
        (5, 1, 1),
        (5, 3, 1),
        (5, 0, 1),
    ]
    # Needed 2: one of them is enough, the last is asked first.
    assert reserve_listed(running, sequence, 8, 0, 2) == (5, 1, 1)
    # With one of this pass, or none, they count in the order of the list.
    assert reserve_listed(running, sequence, 9, 0, 6) == (5, 3, 0)
    assert reserve_listed(listed([(5, 3, 2), (5, 4, 3)]), sequence, 9, 0, 4) == (5, 3, 0)
    # Nothing behind the end of the list is looked at.
    assert reserve_listed(listed([(5, 2, 1), (5, 3, 2)]), sequence, 8, 0, 4) == (5, 1, 1)


def fcfs(rows: list[tuple[int, int, int, int]], machine: int) -> list[int]:
    n, order = len(rows), Order(NEVER, last_first=False, backfill=True, own_order=False)
    jobs = new_jobs(*np.array(rows).T, key=np.arange(n), backfill_key=np.arange(n), listed=True)
    easy_until(jobs, SortedRun(new_state(machine), new_heap(n), new_running(n), new_queue(n)), order)
    return jobs.start.tolist()


def test_a_reservation_by_jobs_of_the_pass_holds_in_that_pass_only() -> None:
    # A and B, of 2 and 3 of 8 processors, run from 0 to 10. In their pass A counts first for C, the head; later B.
    begin = [(0, 10, 10, 2), (0, 10, 10, 3)]
    # C needs 6: first A and B leave 2 to spare, too few for D; then B alone, with nothing left for E.
    assert fcfs([*begin, (0, 5, 5, 6), (0, 100, 100, 3), (1, 100, 100, 2)], 8) == [0, 0, 10, 15, 10]
    # C needs 5: first A leaves nothing; then B leaves one, for D, when E comes, which does not fit itself.
    assert fcfs([*begin, (0, 5, 5, 5), (0, 100, 100, 1), (1, 100, 100, 8)], 8) == [0, 0, 10, 1, 101]
