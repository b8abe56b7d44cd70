"""simulate(): rules, epochs, units and refusals, on schedules worked by hand."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from policyfactory.core.errors import EvaluationError, UsageError, WorkloadError
from policyfactory.policy.policy import Epoch, Policy
from policyfactory.policy.store import resolve
from policyfactory.prediction.training import Predictor
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.simulation.tuning.tuner import simulate_periods
from policyfactory.workload.jobs import Workload
from refusals import refused


def workload(machine: int, *jobs: tuple[int, int, int, int], **more: object) -> Workload:
    """Return a workload of (submit, run time, request, processors), job ids from 1."""
    submit, run_time, request, width = np.array(jobs, dtype=np.int64).reshape(-1, 4).T
    unknown = np.full(len(submit), -1)
    ids = np.arange(1, len(submit) + 1)
    return Workload("by hand", machine, ids, submit, run_time, request, width, unknown, unknown, **more)


# 4 processors:
#   job   submit  run  request  q
#    1       0     8      10    3
#    2       1     4       4    4     the head from 1 on; reserved at 10
#    3       2     7       7    1     ends by 9: may go ahead
#    4       3     9       9    1     would end after 10, and there is no extra processor
#    5       4     6       6    1     ends at 15 from 9 ...
FIVE = ((0, 8, 10, 3), (1, 4, 4, 4), (2, 7, 7, 1), (3, 9, 9, 1), (4, 6, 6, 1))


def test_strict_order() -> None:
    # 1: 0-8; 2: 8-12; 3, 4, 5 side by side from 12
    schedule = simulate(workload(4, *FIVE), resolve("FCFS"), Rules(backfill="none"))
    assert schedule.start.tolist() == [0, 8, 12, 12, 12]
    assert schedule.end.tolist() == [8, 12, 19, 21, 18]
    assert not schedule.backfilled.any()


def test_easy() -> None:
    #        0 1 2       8 9   13        22
    #  q=1   . . 3 3 3 3 3 .|2            3 goes ahead (2 + 7 <= 10); 4 and 5 may not
    #  q=3   1 1 1 1 1 1 . .|2   4 5      1 ends early at 8, 3 at 9: then 2 fits; 4, 5 after it
    schedule = simulate(workload(4, *FIVE), resolve("FCFS"))
    assert schedule.start.tolist() == [0, 9, 2, 13, 13]
    assert schedule.backfilled.tolist() == [False, False, True, False, False]


def test_easy_with_an_order_for_backfilling() -> None:
    # At 3 and 4 nothing fits beside 3. Submitted all at 2, the shortest of 3, 4, 5 is tried first: 5 (2 + 6 <= 10).
    at_once = workload(4, *FIVE[:2], *((2, *job[1:]) for job in FIVE[2:]))
    assert simulate(at_once, resolve("FCFS")).backfilled.tolist() == [False, False, True, False, False]
    shortest = simulate(at_once, resolve("FCFS"), Rules(backfill_policy=resolve("SPF")))
    assert shortest.backfilled.tolist() == [False, False, False, False, True]


def test_easy_by_actual_run_time() -> None:
    # The head is reserved at 8, when 1 really ends, so 3 (2 + 7) may not go ahead; 5 (4 + 6) neither.
    schedule = simulate(workload(4, *FIVE), resolve("FCFS"), Rules(decide_by="runtime"))
    assert schedule.start.tolist() == [0, 8, 12, 12, 12]


def test_easy_by_prediction() -> None:
    # 1 is believed to end at 3: 3 is not let ahead at 2 (it is believed to take 2). From 3 on 1 has outlived the
    # prediction and counts as ending now, so nothing may pass the head.
    predictions = np.array([3, 4, 2, 1, 1])
    schedule = simulate(workload(4, *FIVE), resolve("FCFS"), Rules(decide_by="prediction"), predictions)
    assert schedule.start.tolist() == [0, 8, 12, 12, 12]
    # Believed to take 1, job 3 is let ahead, and holds the head up to 9.
    predictions[2] = 1
    schedule = simulate(workload(4, *FIVE), resolve("FCFS"), Rules(decide_by="prediction"), predictions)
    assert schedule.start.tolist() == [0, 9, 2, 13, 13]


def test_conservative_reserves_for_all() -> None:
    # 4 processors: 1 holds 3 to 10. 2 (q 4) is reserved 10-14, 3 (q 2, 9 long) 14-23. 4 (q 1, 7 long) fits at once.
    # 5 (q 1, 8 long, submitted at 4) would end at 12, in 2's place; EASY refuses it as well. 6 (q 2) goes behind 3.
    jobs = workload(4, (0, 10, 10, 3), (1, 4, 4, 4), (2, 9, 9, 2), (3, 7, 7, 1), (4, 8, 8, 1))
    schedule = simulate(jobs, resolve("FCFS"), Rules(backfill="conservative"))
    assert schedule.start.tolist() == [0, 10, 14, 3, 14]
    assert schedule.backfilled.tolist() == [False, False, False, True, False]


def test_conservative_delays_nobody_where_easy_does() -> None:
    # 3 processors; 1 holds 2 to 6. Queue: 2 (q 3, 6-8), 3 (q 2, 8-18), 4 (q 1, 30 long) with no extra processor at 6.
    # At 8 EASY starts 3 and 4 together. With 2 being of q 2, one is extra: EASY lets 4 start at 3 (to 33), and then
    # 3, of q 3, has to wait to 33; conservative keeps 3's place at 8 and starts 4 behind it at 18.
    jobs = workload(3, (0, 6, 6, 2), (1, 2, 2, 2), (2, 10, 10, 3), (3, 30, 30, 1))
    assert simulate(jobs, resolve("FCFS")).start.tolist() == [0, 6, 33, 3]
    assert simulate(jobs, resolve("FCFS"), Rules(backfill="conservative")).start.tolist() == [0, 6, 8, 18]


def test_threshold_is_strict_and_goes_by_submission() -> None:
    # One processor, longest first. At 10 jobs 2, 3, 4 have waited 9, 8, 7: with theta 9 nobody has waited longer, so
    # 4 runs to 13; then 2 and 3 are overdue (12, 11). With theta just under 9 job 2 is overdue at 10, job 3 at 11.
    jobs = workload(1, (0, 10, 10, 1), (1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 3, 1))
    longest = resolve("LPF")
    assert simulate(jobs, longest).start.tolist() == [0, 15, 13, 10]
    assert simulate(jobs, longest, Rules(threshold=9)).start.tolist() == [0, 13, 14, 10]
    assert simulate(jobs, longest, Rules(threshold=8.5)).start.tolist() == [0, 10, 11, 13]
    # The policy's own threshold holds where the rules have none.
    own = dataclasses.replace(longest, threshold=8)
    assert simulate(jobs, own).start.tolist() == [0, 10, 11, 13]
    assert simulate(jobs, own, Rules(threshold=9)).start.tolist() == [0, 13, 14, 10]


def test_ties() -> None:
    jobs = workload(1, (0, 9, 9, 1), (1, 2, 2, 1), (1, 2, 2, 1), (2, 2, 2, 1))
    assert simulate(jobs, resolve("SPF")).start.tolist() == [0, 9, 11, 13]
    assert simulate(jobs, resolve("SPF"), Rules(ties="lifo")).start.tolist() == [0, 13, 11, 9]


def test_time_dependent_policy() -> None:
    # LEXP at 10: expansion factors 1 + 9/9 = 2, 1 + 4/2 = 3: job 3 first; at 12 job 2.
    jobs = workload(1, (0, 10, 10, 1), (1, 9, 9, 1), (6, 2, 2, 1))
    assert simulate(jobs, resolve("LEXP")).start.tolist() == [0, 12, 10]
    # At 8: 1 + 7/9 and 1 + 2/2: job 3 too; at 7: 1 + 6/9 and 1 + 1/2: job 2.
    assert simulate(workload(1, (0, 7, 7, 1), *((1, 9, 9, 1), (6, 2, 2, 1))), resolve("LEXP")).start.tolist() == [
        0,
        7,
        16,
    ]


def test_scores_that_are_no_numbers_run_last() -> None:
    # log10(r - 3): NaN at r < 3, -inf at 3, then numbers. With w the scores are taken anew at each pass.
    jobs = workload(1, (0, 9, 9, 1), (2, 1, 1, 1), (3, 1, 1, 1), (4, 1, 1, 1), (5, 1, 1, 1))
    for formula in ("log10(r - 3)", "log10(r - 3) + 0*w"):
        for backfill in ("none", "easy", "conservative"):
            schedule = simulate(jobs, Policy("odd", formula), Rules(backfill=backfill))
            assert schedule.start.tolist() == [0, 12, 9, 10, 11]


def test_overrun() -> None:
    # Job 1 asks for 3 and takes 5.
    jobs = workload(1, (0, 5, 3, 1), (1, 1, 1, 1))
    runs_on = simulate(jobs, resolve("FCFS"))
    assert runs_on.end.tolist() == [5, 6]
    killed = simulate(jobs, resolve("FCFS"), Rules(overrun="kill"))
    assert killed.end.tolist() == [3, 4]


def test_job_of_no_run_time() -> None:
    # Job 1 ends at the instant of its start, so job 2 starts then as well.
    assert simulate(workload(1, (0, 0, 5, 1), (0, 2, 5, 1)), resolve("FCFS")).start.tolist() == [0, 0]


def test_ticks() -> None:
    # Microseconds; p, the threshold and the epoch are in seconds all the same.
    times = [(0, 10_000_000, 10_000_000, 1), (1_000_000, 1, 1_000_000, 1), (1_000_001, 1, 2_000_000, 1)]
    jobs = workload(1, *times, ticks=10**6)
    assert simulate(jobs, resolve("LPF")).start.tolist() == [0, 10_000_001, 10_000_000]
    assert simulate(jobs, resolve("LPF"), Rules(threshold=8.9999995)).start.tolist() == [0, 10_000_000, 10_000_001]
    # abs(p - 1): job 2 first only if p is 1 (s), not 1,000,000.
    assert simulate(jobs, Policy("one", "abs(p - 1)")).start.tolist() == [0, 10_000_000, 10_000_001]


def test_epochs() -> None:
    # abs(r - 20): nearest to 20 s after the epoch first.
    jobs = workload(1, (100, 50, 50, 1), (105, 1, 1, 1), (121, 1, 1, 1), (130, 1, 1, 1), unix_start=1000)
    near = Policy("near", "abs(r - 20)")
    assert simulate(jobs, near).start.tolist() == [100, 152, 150, 151]  # r = 5, 21, 30
    fixed = dataclasses.replace(near, epoch=Epoch("fixed", 1085))
    assert simulate(jobs, fixed).start.tolist() == [100, 150, 151, 152]  # r = 20, 36, 45
    oldest = dataclasses.replace(near, epoch=Epoch("oldest-waiting"))
    # At 150 the oldest is job 2: r = 0, 16, 25. At 151 still: job 4 next. Then job 2 alone.
    assert simulate(jobs, oldest).start.tolist() == [100, 152, 150, 151]
    # The same with an r that matters once the oldest has gone: after job 2 (r = 0 first), r counts from job 3.
    first = Policy("first", "abs(r - 9)", epoch=Epoch("oldest-waiting"))
    assert simulate(jobs, first).start.tolist() == [100, 151, 150, 152]


def test_fixed_epoch_needs_the_date_of_the_log() -> None:
    policy = Policy("fixed", "log10(r)*q", epoch=Epoch("fixed", 10**9))
    refused(EvaluationError, "fixed r UnixStartTime 1000000000", simulate, workload(1, (0, 1, 1, 1)), policy)
    # Without r in it, the formula needs no date.
    assert simulate(workload(1, (0, 1, 1, 1)), dataclasses.replace(policy, formula="p*q")).start.tolist() == [0]


def test_machine_size_in_a_formula() -> None:
    # Nearest to half the machine first: q 3 of 6.
    jobs = workload(6, (0, 9, 9, 6), (1, 1, 1, 6), (2, 1, 1, 1), (3, 1, 1, 3))
    half = Policy("half", "abs(q - m/2)")
    assert simulate(jobs, half, Rules(backfill="none")).start.tolist() == [0, 10, 9, 9]


def test_result_is_in_the_order_of_the_rows() -> None:
    jobs = workload(1, (0, 5, 5, 1), (1, 1, 1, 1), (1, 1, 1, 1))
    swapped = dataclasses.replace(jobs, job_id=np.array([1, 9, 4]))
    schedule = simulate(swapped, resolve("FCFS"))
    assert schedule.start.tolist() == [0, 6, 5]
    assert schedule.workload is swapped
    assert schedule.policy_name == "FCFS"
    assert len(schedule) == 3


def test_no_jobs() -> None:
    for rules in (Rules(), Rules(backfill="conservative")):
        assert len(simulate(workload(1), resolve("FCFS"), rules)) == 0
    assert len(simulate(workload(1), resolve("LEXP"))) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backfill": "aggressive"}, "backfill aggressive"),
        ({"decide_by": "guess"}, "request runtime prediction guess"),
        ({"ties": "random"}, "choose fifo random"),
        ({"overrun": "stop"}, "choose kill stop"),
        ({"threshold": -1.0}, "threshold -1.0"),
        ({"threshold": math.nan}, "threshold nan"),
        ({"backfill": "none", "backfill_policy": resolve("SPF")}, "easy none"),
    ],
)
def test_rules_are_refused(given: dict[str, object], message: str) -> None:
    refused(UsageError, message, Rules, **given)


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ({"prediction": np.ones(2, dtype=np.int64)}, {"compatibility": "sc17"}),
        ({"prediction": np.ones(2, dtype=np.int64)}, {"compatibility": "rlscheduler"}),
        ({"prediction": np.ones(2, dtype=np.int64)}, {"backfill": "slurm"}),
        ({"tie_rank": np.arange(2)}, {"compatibility": "none"}),
        ({"tie_rank": np.arange(2)}, {"compatibility": "sc17"}),
        ({"tie_rank": np.arange(2)}, {"compatibility": "rlscheduler"}),
        ({"tie_rank": np.arange(2)}, {"backfill": "slurm"}),
        ({"predictor": Predictor()}, {"compatibility": "sc17"}),
        ({"predictor": Predictor()}, {"compatibility": "rlscheduler"}),
        ({"predictor": Predictor()}, {"compatibility": "ocst"}),
    ],
)
def test_an_argument_that_nothing_reads_is_refused(given: dict[str, Any], rules: dict[str, Any]) -> None:
    jobs = workload(1, (0, 1, 1, 1), (0, 1, 1, 1))
    (name,), (own,) = given, rules.items()
    facts = f"{name} {own[0]} {own[1]}"
    refused(UsageError, facts, simulate, jobs, "FCFS", **given, **rules)
    if name != "predictor":
        refused(UsageError, facts, simulate_periods, jobs, [resolve("FCFS")], Rules(**rules), [0, 1], **given)


def test_predictions_are_refused() -> None:
    jobs = workload(1, (0, 1, 1, 1), (0, 1, 1, 1))
    by_prediction = Rules(decide_by="prediction")
    refused(EvaluationError, "column predicted", simulate, jobs, resolve("FCFS"), by_prediction)
    refused(EvaluationError, "1 shape", simulate, jobs, resolve("FCFS"), by_prediction, np.array([1]))
    refused(EvaluationError, "float64 type 2", simulate, jobs, resolve("FCFS"), by_prediction, np.array([1.5, 2.0]))
    refused(EvaluationError, "2 -3", simulate, jobs, resolve("FCFS"), by_prediction, np.array([1, -3]))


def test_times_beyond_the_clock_are_refused() -> None:
    refused(WorkloadError, "64 beyond", workload, 1, (0, 2**61, 2**61, 1), (0, 2**61, 2**61, 1))
    jobs = workload(1, (0, 10, 10, 1), (0, 10, 10, 1))
    predictions = np.array([10, 2**62])
    refused(EvaluationError, "2 clock", simulate, jobs, resolve("FCFS"), Rules(decide_by="prediction"), predictions)
