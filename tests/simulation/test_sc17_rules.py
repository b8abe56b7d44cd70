"""The SC'17 mode as a rule of simulate: what it refuses, and on what clock its schedules are."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import CATALOGUE, resolve
from policyfactory.simulation.compat import TICKS, simulate_sc17
from policyfactory.simulation.metrics import METRICS, measure
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.jobs import Workload
from refusals import refused

SC17 = Rules(compatibility="sc17")


def workload(ticks: int = 1, *, late: int = 0, jobs: int = 60, unix_start: int | None = None) -> Workload:
    rng = np.random.default_rng(9)
    submit = np.cumsum(rng.integers(0, 40, jobs)) + late
    request, width = rng.integers(1, 300, jobs), rng.integers(1, 5, jobs)
    unknown = np.full(jobs, -1)
    columns = (submit * ticks, np.maximum(request // 2, 1) * ticks, request * ticks, width)
    return Workload(
        "some", 6, np.arange(jobs), *columns, unknown, unknown, unix_start=unix_start, ticks=ticks
    )  # fmt: skip


def test_simulate_hands_over() -> None:
    schedule = simulate(workload(), resolve("F2"), SC17)
    direct = simulate_sc17(workload(), resolve("F2"), SC17)
    np.testing.assert_array_equal(schedule.start, direct.start)
    assert (schedule.workload.ticks, schedule.policy_name, schedule.rules) == (TICKS, "F2", SC17)
    assert not np.array_equal(schedule.start // TICKS, simulate(workload(), resolve("F2")).start)


@pytest.mark.parametrize("name", ["FCFS", "SPF", "WFP3", "F1", "SAF", "LEXP"])
def test_neither_the_unit_of_the_clock_nor_its_start_matters(name: str) -> None:
    wanted = measure(simulate(workload(), resolve(name), SC17))
    for other in (workload(ticks=1000), workload(late=777)):
        assert measure(simulate(other, resolve(name), SC17)) == pytest.approx(wanted, rel=1e-12)


def test_every_metric_reads_the_fine_clock() -> None:
    # Within what the dispatches take, a machine that is never full gives the same whoever simulates.
    calm = dataclasses.replace(workload(), machine=10_000)
    ours, theirs = measure(simulate(calm, resolve("FCFS"))), measure(simulate(calm, resolve("FCFS"), SC17))
    # A quick succession of dispatches waits for one another.
    most = 0.0027 * len(calm)
    for name in METRICS:
        assert theirs[name] == pytest.approx(ours[name], rel=1e-3, abs=most), name


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"backfill": "conservative"}, "backfill conservative"),
    ({"decide_by": "prediction"}, "decide_by prediction"),
    ({"threshold": 3600.0}, "threshold 3600"),
    ({"ties": "lifo"}, "ties lifo"),
    ({"overrun": "kill"}, "overrun kill"),
    ({"backfill_policy": CATALOGUE["SAF"]}, "backfill_policy given"),
)


@pytest.mark.parametrize(("rule", "message"), REFUSED, ids=[next(iter(rule)) for rule, _ in REFUSED])
def test_rules_that_the_programs_do_not_have(rule: dict[str, Any], message: str) -> None:
    refused(UsageError, message, Rules, **rule, compatibility="sc17")


def test_a_policy_with_a_threshold_is_refused() -> None:
    refused(UsageError, "late 7200 SC'17", simulate, workload(), Policy("late", "p", threshold=7200), SC17)


def test_a_policy_that_sees_free_processors_is_refused() -> None:
    refused(UsageError, "fits f", simulate, workload(), Policy("fits", "p + f*q"), SC17)


def test_times_that_the_programs_cannot_have() -> None:
    fine = workload(ticks=1000)
    odd = dataclasses.replace(fine, run_time=fine.run_time + 1)
    refused(EvaluationError, "times 1/1000 SC'17 some", simulate, odd, resolve("FCFS"), SC17)
    long = workload()
    long = dataclasses.replace(long, run_time=np.full(len(long), 2**31))
    refused(EvaluationError, "SC'17 2**31 some", simulate, long, resolve("FCFS"), SC17)


def test_no_job_and_few_jobs() -> None:
    assert len(simulate(workload(jobs=0), resolve("F1"), SC17)) == 0
    # The first 16 go in the order of the log, whatever the policy.
    few = workload(jobs=16)
    starts = [simulate(few, resolve(name), SC17).start.tolist() for name in ("FCFS", "SPF", "LAF", "LEXP")]
    assert all(own == sorted(own) == starts[0] for own in starts)


def test_jobs_of_one_second_are_taken_in_the_order_of_the_rows() -> None:
    # Unlike our own rule, which goes by the job's number.
    one = workload(jobs=3)
    one = dataclasses.replace(
        one, machine=4, job_id=np.array([3, 2, 1]), submit=np.zeros(3), processors=np.full(3, 4), run_time=np.full(3, 5)
    )
    assert simulate(one, resolve("FCFS")).start.tolist() == [10, 5, 0]
    assert (simulate(one, resolve("FCFS"), SC17).start // TICKS).tolist() == [0, 5, 10]


def test_a_formula_counts_r_as_it_says() -> None:
    known = workload(unix_start=1_000_000)
    for epoch in (Epoch(), Epoch("oldest-waiting"), Epoch("fixed", 999_000)):
        policy = Policy("newest", "-log10(r + 1)", epoch=epoch)
        assert simulate(known, policy, SC17).start.shape == (60,)
    first, fixed = (
        simulate(known, Policy("late", "p - 100*log10(r + 1)", epoch=epoch), SC17).start
        for epoch in (Epoch(), Epoch("fixed", 0))
    )
    assert not np.array_equal(first, fixed)
    refused(
        EvaluationError, "when began 0 some", simulate, workload(), Policy("late", "r*p", epoch=Epoch("fixed", 0)), SC17
    )


def test_seeing_the_whole_queue() -> None:
    # What the window of 32 jobs does can be measured by taking it away.
    crowd = workload(jobs=200)
    rules = Rules(backfill="none", compatibility="sc17")
    seen = simulate_sc17(crowd, resolve("SPF"), rules, visible=len(crowd))
    assert (
        measure(seen, ["sc17_bsld"])["sc17_bsld"]
        < measure(simulate(crowd, resolve("SPF"), rules), ["sc17_bsld"])["sc17_bsld"]
    )
    assert math.isclose(seen.start.min() / TICKS, crowd.submit[0] + 0.00261024742, abs_tol=1e-9)
