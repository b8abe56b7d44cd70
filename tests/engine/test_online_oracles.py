"""Start times of other simulators (oracles/online), job by job.

agreed_*: two or three independent programs agree on KTH-SP2 made free of ties; the kernels must. pyss_*, ocst_*: on
the log with ties each has tie rules of its own, which the plain simulator has as switches. Averages of a plain
reference simulator on the full logs come from the same measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from naive.online import Job, Online
from naive.orders import ORDERS
from policyfactory.policy.store import resolve
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import read_swf
from support import some_by_day

Columns = dict[str, np.ndarray]

MICROSECONDS = 10**6


def workload_of(columns: Columns, machine: int = 100, ticks: int = 1) -> Workload:
    unknown = np.full(len(columns["job_id"]), -1)
    names = ("job_id", "submit", "runtime", "requested", "procs")
    return Workload("KTH-SP2", machine, *(columns[name] for name in names), unknown, unknown, ticks=ticks)


@pytest.mark.parametrize("log", ["kth5k", "kth"])
@pytest.mark.parametrize(
    ("order", "rules"),
    [
        ("fcfs-fcfs-thrinf", Rules()),
        ("fcfs-spf-thrinf", Rules(backfill_policy=resolve("SPF"))),
        ("spf-spf-thrinf", Rules()),
        ("saf-saf-thrinf", Rules()),
        ("saf-saf-thr72000000000", Rules(threshold=72000, backfill_policy=resolve("SAF"))),
        ("srf-srf-thrinf", Rules()),
        ("lexp-lexp-thrinf", Rules()),
        ("sqf-sqf-thrinf", Rules(ties="lifo")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_agreed_starts(
    order: str, rules: Rules, log: str, oracle: Callable[[str], Columns], shared: Callable[[str], Path]
) -> None:
    name = f"agreed_{log}_tiefree_{order}"
    if log == "kth" and order not in {"fcfs-fcfs-thrinf", "fcfs-spf-thrinf", "spf-spf-thrinf", "saf-saf-thrinf"}:
        # Only those four were kept for the whole log.
        assert not (shared("oracles/online") / f"{name}.csv.gz").exists()
        return
    expected = oracle(name)
    schedule = simulate(workload_of(expected, ticks=MICROSECONDS), resolve(order.split("-", maxsplit=1)[0]), rules)
    assert len(schedule) == {"kth5k": 5000, "kth": 27992}[log]
    np.testing.assert_array_equal(schedule.start, expected["start"])
    np.testing.assert_array_equal(schedule.backfilled, expected["backfilled"] == 1)


def plain_starts(columns: Columns, primary: str, backfill: str, **switches: object) -> np.ndarray:
    rank = columns.get("tie_rank", np.zeros(len(columns["job_id"]), dtype=np.int64))
    names = ("job_id", "submit", "runtime", "requested", "procs")
    jobs = [Job(*map(int, row)) for row in zip(*(columns[name] for name in names), rank, strict=True)]
    Online(jobs, 100, ORDERS[primary], backfill_score=ORDERS[backfill], **switches).run()
    return np.array([job.start for job in jobs])


# The kernels have no switch for pyss's passes: only the plain simulator meets its starts, and below the kernels differ
# from them in so many jobs of whole logs as are known.
@pytest.mark.parametrize(
    "name", some_by_day(["pyss_kth5k_fcfs", "pyss_kth5k_sjbf", "pyss_kth_fcfs", "pyss_kth_sjbf"], 2)
)
def test_pyss_starts(name: str, oracle: Callable[[str], Columns]) -> None:
    expected = oracle(name)
    backfill = "spf" if name.endswith("sjbf") else "fcfs"
    np.testing.assert_array_equal(plain_starts(expected, "fcfs", backfill, events="single"), expected["start"])


OCST = [
    *(f"fcfs-{backfill}-thr0" for backfill in ("fcfs", "spf", "saf")),
    "spf-fcfs-thrinf",
    "saf-fcfs-thrinf",
    *(
        f"{order}-{order}-thr{threshold}"
        for order in ("spf", "sqf", "saf", "srf", "lexp", "sexp", "lcfs", "lpf", "lqf", "laf", "lrf")
        for threshold in ("inf", "72000")
    ),
]


@pytest.mark.parametrize(
    "order",
    # By day those without a threshold and the first with one.
    [
        pytest.param(order, marks=pytest.mark.slow if order.endswith("thr72000") and "spf" not in order else ())
        for order in OCST
    ],
)
def test_ocst_starts(order: str, oracle: Callable[[str], Columns]) -> None:
    expected = oracle(f"ocst_kth5k_{order}")
    primary, backfill, threshold = order.split("-")
    limit = math.inf if threshold == "thrinf" else int(threshold.removeprefix("thr"))
    starts = plain_starts(expected, primary, backfill, ties="tie_rank", extra="partial", threshold=limit)
    np.testing.assert_array_equal(starts, expected["start"])


# Jobs that start at another time under our rule than under theirs (ONLINE_PEERS.md section 4): the whole difference
# is in the rules of ties that the twin's switches stand for.
@pytest.mark.parametrize(
    ("name", "policy", "rules", "differ"),
    [
        ("pyss_kth5k_fcfs", "FCFS", Rules(), 17),
        ("pyss_kth_fcfs", "FCFS", Rules(), 554),
        ("pyss_kth5k_sjbf", "FCFS", Rules(backfill_policy=resolve("SPF")), 16),
        ("pyss_kth_sjbf", "FCFS", Rules(backfill_policy=resolve("SPF")), 207),
        ("ocst_kth5k_fcfs-fcfs-thr0", "FCFS", Rules(), 715),
    ],
)
def test_difference_to_other_rules(
    name: str, policy: str, rules: Rules, differ: int, oracle: Callable[[str], Columns]
) -> None:
    expected = oracle(name)
    schedule = simulate(workload_of(expected), resolve(policy), rules)
    assert int((schedule.start != expected["start"]).sum()) == differ


def test_strict_order_as_accasim_and_rlscheduler(oracle: Callable[[str], Columns]) -> None:
    for name in ("accasim_kth5k_fifo-nobackfill", "rlscheduler_kth5k_fcfs-nobackfill"):
        expected = oracle(name)
        schedule = simulate(workload_of(expected), resolve("FCFS"), Rules(backfill="none"))
        np.testing.assert_array_equal(schedule.start, expected["start"])
    shortest = oracle("accasim_kth5k_sjf-nobackfill")
    schedule = simulate(workload_of(shortest), resolve("SPF"), Rules(backfill="none"))
    np.testing.assert_array_equal(schedule.start, shortest["start"])


def averages(workload: Workload, policy: str, rules: Rules) -> tuple[float, float, int, int]:
    values = measure(simulate(workload, resolve(policy), rules), ["mean_wait", "mean_bsld", "max_wait", "backfilled"])
    return (
        round(values["mean_wait"], 3),
        round(values["mean_bsld"], 4),
        int(values["max_wait"]),
        int(values["backfilled"]),
    )


SPF_BEHIND = Rules(backfill_policy=resolve("SPF"))
LONG = Rules(threshold=72000)
REFERENCE = {
    ("kth5k", "FCFS", Rules()): (8736.766, 123.4432, 248239, 3229),
    ("kth5k", "FCFS", SPF_BEHIND): (7550.068, 96.6029, 270415, 3271),
    ("kth", "FCFS", Rules()): (6351.493, 86.3712, 248239, 16601),
    ("kth", "FCFS", SPF_BEHIND): (5623.395, 66.4013, 270415, 16710),
    ("kth", "FCFS", Rules(backfill="none")): (218832.062, 4294.5004, 705687, 0),
    ("kth", "SPF", Rules()): (4377.621, 41.8744, 554232, None),
    ("kth", "SPF", LONG): (5279.836, 51.4400, 297936, None),
    ("kth", "SQF", Rules()): (6644.588, 75.6514, 2649678, None),
    ("kth", "SQF", LONG): (5447.984, 60.8834, 272277, None),
    ("kth", "SAF", Rules()): (5075.529, 40.6765, 2368711, None),
    ("kth", "SAF", LONG): (5145.344, 51.3231, 351865, None),
    ("kth", "SRF", Rules()): (5017.494, 49.3649, 574426, None),
    ("kth", "SRF", LONG): (5326.530, 51.7874, 245503, None),
    ("kth", "LEXP", Rules()): (5022.475, 50.7696, 357559, None),
    ("kth", "LEXP", LONG): (5168.204, 51.1213, 358875, None),
    ("kth", "LCFS", Rules()): (6466.020, 61.5599, 2729367, None),
    ("kth", "LPF", Rules()): (7992.432, 104.7909, 1643337, None),
    ("kth", "LQF", Rules()): (7130.663, 97.4847, 292087, None),
    ("kth", "LAF", Rules()): (8734.917, 125.7502, 826622, None),
    ("kth", "LRF", Rules()): (7514.285, 97.1595, 3097626, None),
    ("kth", "SEXP", Rules()): (7218.514, 83.4822, 2733695, None),
    ("kth", "SEXP", LONG): (6042.326, 73.2675, 359907, None),
}


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: f"{case[0]}-{case[1]}")
def test_reference_averages(case: tuple[str, str, Rules], oracle: Callable[[str], Columns]) -> None:
    log, policy, rules = case
    result = averages(workload_of(oracle(f"pyss_{log}_fcfs")), policy, rules)
    expected = REFERENCE[case]
    assert result[: 4 if expected[3] is not None else 3] == expected[: 4 if expected[3] is not None else 3]


def filtered(path: Path, machine: int) -> Workload:
    """Read a log as ONLINE_PEERS.md section 1 did for every program."""
    log = read_swf(path)
    width = np.where(log.requested > 0, log.requested, log.allocated)
    kept = (log.allocated <= machine) & (log.requested <= machine) & (width > 0)
    kept &= (log.run_time >= 0) & (log.submit >= 0)
    request = np.where(log.requested_time > 0, log.requested_time, log.run_time)
    run_time = np.maximum(np.minimum(log.run_time, request), 1)
    columns = (log.job_id, log.submit, run_time, np.maximum(request, 1), width)
    rows = np.flatnonzero(kept)
    rows = rows[np.lexsort((log.job_id[rows], log.submit[rows]))]
    unknown = np.full(len(rows), -1)
    return Workload(path.name, machine, *(column[rows] for column in columns), unknown, unknown)


BIG = {
    "SDSC-BLUE-2000-4.2-cln": {
        ("FCFS", math.inf): (7870.286, 37.4928, 428774, 160092),
        ("SPF", math.inf): (4702.479, 25.5613, 2861404, 70538),
        ("SAF", math.inf): (6775.249, 33.8328, 18679798, 14656),
        ("SAF", 72000): (5199.570, 19.4817, 424365, 84452),
    },
    "CEA-Curie-2011-2.1-cln": {
        ("FCFS", math.inf): (1371.354, 27.1060, 161691, 152517),
        ("SPF", math.inf): (733.321, 15.5100, 451641, 97939),
        ("SAF", math.inf): (978.162, 24.2668, 3285379, 12432),
        ("SAF", 72000): (633.377, 13.4300, 173505, 35737),
    },
}


@pytest.mark.parametrize(
    ("log", "machine", "jobs"), [("SDSC-BLUE-2000-4.2-cln", 1152, 232562), ("CEA-Curie-2011-2.1-cln", 93312, 312807)]
)
def test_reference_averages_of_large_logs(log: str, machine: int, jobs: int, shared: Callable[[str], Path]) -> None:
    workload = filtered(shared(f"traces/{log}.swf.gz"), machine)
    assert len(workload) == jobs
    for (policy, threshold), expected in BIG[log].items():
        assert averages(workload, policy, Rules(threshold=threshold)) == expected
