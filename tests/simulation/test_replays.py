"""The plain Slurm beside records of a real one: in the real state it wants what the real one starts.

The records are of 120 jobs or so each, on a slurmctld with a fast clock (`schedulers.replays` made them). ``make
test-all`` looks at ten starts of one record of each case, at thirty of each of a later version, and lets a slurmctld
schedule thirty jobs anew; ``make nightly`` looks at all starts of all records, with their lags and whole schedules, and
replays every case.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys

import pytest

from naive import slurm_kernels
from naive.forced import Forced, Runs, Snapshot, Start, at_origin, distance, forced
from naive.slurm_forced import plain_jobs, starts_by, wanted_by
from naive.slurm_workload import run_fast
from schedulers.record import Job, Past, Record, Run, expand, moment, read_log, read_record, write_record
from schedulers.replay import BEGIN
from schedulers.replay_cases import CASES
from schedulers.replay_drawn import drawn
from schedulers.replay_mixed import COUNT
from schedulers.replays import FOLDER, ROOT, case_of, compare, force, names, record_of, records_of
from support import NIGHTLY

# Whose whole schedules are more than one and a half times as far from Slurm's as two of Slurm's own: of two replays
# each, which is one pair.
FARTHER = {"partition-limits", "policy-SAF", "qos-group", "tiers"}

# Of later versions of Slurm, one of each case; docs/fidelity.md has the numbers of all that were made.
MODERN = [(version, name) for version in ("24.11", "26.05") for name in names(FOLDER / version)]

nightly = pytest.mark.skipif(not NIGHTLY, reason="minutes: make nightly")


def test_there_is_a_record_of_every_case() -> None:
    assert names() == list(CASES)


@pytest.mark.parametrize("name", names())
def test_a_record_is_of_the_workload_that_its_case_makes(name: str) -> None:
    records = records_of(name)
    assert len(records) >= 1
    assert {record.case for record in records} == {name}
    jobs = CASES[name]().jobs
    assert all(record.jobs == jobs for record in records)


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_what_slurm_started_is_wanted_in_slurms_own_state(name: str) -> None:
    record = record_of(name)
    some = random.Random(1).sample([job.id for job in record.jobs], 10)
    result = forced(record, wanted_by(CASES[name]().site, record), only=some)
    assert len(result.starts) >= 10
    assert [start.job for start in result.starts if not start.wanted] == []


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name"), MODERN)
def test_what_a_later_slurm_started_is_wanted_by_its_rules(version: str, name: str) -> None:
    record, site = record_of(name, FOLDER / version), case_of(name).site
    assert record.version.startswith(version)
    assert record.jobs == case_of(name).jobs
    some = random.Random(1).sample([job.id for job in record.jobs], min(30, len(record.jobs)))
    result = force(record, site) if NIGHTLY else forced(record, wanted_by(site, record), only=some)
    assert len(result.starts) >= len(some)
    assert (result.agreement, result.placed_alike) == (1.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name"), MODERN)
def test_the_fast_slurm_makes_the_same_of_the_workload(version: str, name: str) -> None:
    record = record_of(name, FOLDER / version)
    site, jobs = at_origin(case_of(name).site, record), list(plain_jobs(case_of(name).site, record).values())
    assert run_fast(site, jobs, begin=record.begin, turnround=1) == slurm_kernels.slurm(site, jobs, record.begin, 1)


@nightly
@pytest.mark.parametrize("name", names())
def test_every_start_is_wanted_and_its_lag_is_that_of_the_passes(name: str) -> None:
    records, site = records_of(name), CASES[name]().site
    # Both kinds of passes come once in their interval; some seconds are the passes' own time on the fast clock.
    interval = max(site.scheduling.bf_interval if site.scheduling.backfill else 60.0, 10.0)
    # Of 120 starts two can hang on what the record does not say (docs/trust.md): those of all replays count.
    result = Forced(tuple(start for record in records for start in force(record, site).starts), ())
    assert result.agreement >= 0.99
    assert result.lag(0.9) <= 1.1 * interval
    assert result.lag(1.0) <= 1.5 * interval
    schedules = compare(records, site)
    assert schedules.difference == pytest.approx(0, abs=0.05)
    if name not in FARTHER and not math.isnan(schedules.itself):
        assert schedules.away <= 1.5 * schedules.itself


def test_a_modern_slurm_has_all_that_a_replay_imports() -> None:
    """In its folder are this package, which brings numpy and the like, and pytest."""
    program = "import sys; sys.modules['hypothesis'] = None; import schedulers.replays, schedulers.replay_preemption"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT / "tests", check=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
def test_all_jobs_of_a_drawn_case_start(seed: int) -> None:
    case = case_of(f"drawn-{seed}")
    assert case == drawn(seed)
    assert len(case.jobs) == COUNT
    ends = [job.run_time * 1000 for job in case.jobs]
    runs = [Run(0, end, (), "main", freed=(end + 1000,)) for end in ends]
    past = tuple(Past(job.submit * 1000, 0, (run,)) for job, run in zip(case.jobs, runs, strict=True))
    record = Record(case.name, 100, "24.11.5", BEGIN, BEGIN + 60, case.jobs, past, {}, ())
    starts = starts_by(case.site, record)
    assert all(start >= max(job.submit, job.eligible) for start, job in zip(starts, case.jobs, strict=True))


def test_a_case_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(SystemExit, match=r"no case fifos; there are fifo, .*, share-mix, .* drawn-1"):
        case_of("fifos")


def job(number: int, nodes: int = 1) -> Job:
    return Job(number, 0, 100, 120, nodes, nodes)


def small_record() -> Record:
    """Two jobs on two nodes, one after the other, then one that the first let wait; a node goes away meanwhile."""
    past = (
        Past(0, 0, (Run(10_000, 110_000, (0, 1), "main", freed=(110_500, 112_000)),), 0, ((0, 5),)),
        Past(1000, 1, (Run(115_400, 200_000, (1,), "backfill", freed=(200_000,)),), 0, ((1000, 4), (60_000, 7))),
        Past(2000, 2, (Run(115_500, 150_000, (0,), "main", freed=(150_000,)),), 0, ((2000, 3),)),
    )
    jobs = (job(1, 2), job(2), job(3))
    passes = {"main": (10_000, 115_500), "backfill": (115_400,)}
    return Record("small", 100, "22.05.8", 900, 1000, jobs, past, passes, ((120_000, "DOWN n2"),))


def test_lags_count_from_when_a_job_is_wanted_without_a_break() -> None:
    seen: list[Snapshot] = []

    def wanted(state: Snapshot) -> dict[int, tuple[int, ...]]:
        seen.append(state)
        busy = {node for one in state.running for node in one.nodes}
        # The third job is never wanted.
        free = tuple({0, 1} - busy)
        return {one.job.id: free for one in state.waiting if one.job.nodes <= len(free) and one.job.id != 3}

    result = forced(small_record(), wanted)
    assert [(start.job, start.by, start.wanted) for start in result.starts] == [
        (1, "main", True),
        (2, "backfill", True),
        (3, "main", False),
    ]
    assert result.starts[0].lag == 10.0
    # Wanted since the first job's end; before the first job's start too, but not without a break.
    assert result.starts[1].lag == pytest.approx(5.4)
    assert result.in_vain == ((2, 1.0, 10.0),)
    assert result.ignored(5.0) == 1
    assert result.agreement == pytest.approx(2 / 3)
    # The second job had one of the two nodes that it was wanted on.
    assert [start.there for start in result.starts] == [True, False, False]
    assert result.placed_alike == 0.5
    assert (result.lag(0.5), result.lag(1.0)) == (pytest.approx(5.4), 10.0)
    assert result.mean_lag == pytest.approx(7.7)
    assert seen[-1].away == {1}
    before = next(state for state in seen if state.now == 1115)
    assert before.running == ()
    # The node that others had first was free first; a pass is asked alone what it starts.
    cleaned = [(state.now, state.completing) for state in seen if state.completing and state.now < 1115]
    assert cleaned == [(1110, {0, 1}), (1110, {0})]
    assert [state.by for state in seen if state.by] == ["main", "backfill", "main"]
    assert [(one.job.id, one.priority, one.submit, one.eligible) for one in before.waiting] == [
        (2, 7, 1001, 1001),
        (3, 3, 1002, 1002),
    ]


def test_the_real_state_is_that_of_the_record() -> None:
    states: list[Snapshot] = []

    def wanted(state: Snapshot) -> dict[int, tuple[int, ...]]:
        states.append(state)
        return {}

    result = forced(small_record(), wanted, only=[3])
    assert result == Forced((Start(3, 115.5, "main", pytest.approx(float("nan"), nan_ok=True), there=False),), ())
    assert [state.running for state in states] == [(Runs(job(2), 1115, (1,)),)] * 2


def test_distances_are_relative_to_the_mean_wait() -> None:
    assert distance([1.0, 5.0], [2.0, 8.0], 4.0) == 0.5


def test_a_record_is_read_back(tmp_path) -> None:
    path = tmp_path / "small.json.gz"
    write_record(small_record(), path)
    assert read_record(path) == small_record()
    first = path.read_bytes()
    write_record(read_record(path), path)
    assert path.read_bytes() == first


LOG = """\
[2026-03-02T00:00:10.000] debug:  sched: Running job scheduler for full queue.
[2026-03-02T00:01:00.500] priority/multifactor: _get_priority_internal: Site priority is 40
[2026-03-02T00:01:00.501] priority/multifactor: _get_priority_internal: Job 1 priority: 40 +  0 + 2.00 = 42.70
[2026-03-02T00:01:00.502] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=42 usec=400
[2026-03-02T00:01:01.000] debug:  sched: Running job scheduler for default depth.
[2026-03-02T00:01:01.002] sched: Allocate JobId=1 NodeList=n[1-2,4] #CPUs=3 Partition=batch
[2026-03-02T00:01:30.000] requeue job JobId=1 due to failure of node n2
[2026-03-02T00:01:31.000] TRACE_JOBS: job_epilog_complete: enter JobId=1
[2026-03-02T00:01:32.000] TRACE_JOBS: job_epilog_complete: enter JobId=1
[2026-03-02T00:04:00.000] sched/backfill: _attempt_backfill: beginning
[2026-03-02T00:04:00.003] sched/backfill: _start_job: Started JobId=1 in batch on n3
[2026-03-02T00:05:00.250] _job_complete: JobId=1 WEXITSTATUS 0
[2026-03-02T00:05:00.251] _job_complete: JobId=1 done
[2026-03-02T00:05:01.000] TRACE_JOBS: job_epilog_complete: enter JobId=1
[2026-03-02T00:05:01.001] TRACE_JOBS: make_node_idle: enter JobId=1
"""


def test_the_log_of_slurmctld_says_what_became_of_jobs() -> None:
    origin = moment(LOG) // 1000 + 50
    past, passes = read_log(LOG, [3], origin)
    # Nobody cleans up on the node that failed.
    requeued = Run(1002, 30_000, (0, 1, 3), "main", "requeued", (30_000, 31_000, 32_000))
    runs = (requeued, Run(180_003, 240_251, (2,), "backfill", freed=(241_000,)))
    assert past == (Past(500 + 2, 3, runs, 40, ((501, 42),)),)
    # The first pass was before the workload began.
    assert passes == {"main": (1000,), "backfill": (180_000,)}
    with pytest.raises(RuntimeError, match=r"no start and end of the jobs \[2\]"):
        read_log(LOG, [3, 3], origin)


ARRAY = """\
[2026-03-02T00:01:00.000] _slurm_rpc_submit_batch_job: JobId=7 InitPrio=42 usec=400
[2026-03-02T00:01:00.100] _slurm_rpc_submit_batch_job: JobId=8 InitPrio=41 usec=400
[2026-03-02T00:01:01.000] sched: Allocate JobId=7_0(9) NodeList=n1 #CPUs=1 Partition=batch
[2026-03-02T00:01:01.100] sched: Allocate JobId=8 NodeList=n2 #CPUs=1 Partition=batch
[2026-03-02T00:01:31.000] _job_complete: JobId=7_0(9) done
[2026-03-02T00:01:32.000] TRACE_JOBS: job_epilog_complete: enter JobId=7_0(9)
[2026-03-02T00:01:32.100] priority/multifactor: _get_priority_internal: Job 7 priority: 0 +  0 + 2.00 = 50.00
[2026-03-02T00:01:32.200] priority/multifactor: _get_priority_internal: Job 9 priority: 0 +  0 + 2.00 = 60.00
[2026-03-02T00:01:33.000] sched: Allocate JobId=7_1(7) NodeList=n1 #CPUs=1 Partition=batch
[2026-03-02T00:01:34.000] _job_complete: JobId=8 done
[2026-03-02T00:01:35.000] _job_complete: JobId=7_1(7) done
"""


def test_tasks_of_arrays_are_jobs_of_their_own() -> None:
    origin = moment(ARRAY) // 1000
    past, _ = read_log(ARRAY, [0, 0, 0], origin, {"7": 1, "7_0": 1, "7_1": 2, "8": 3})
    assert [(one.submit, one.priorities) for one in past] == [
        (0, ((0, 42), (32_100, 50))),
        (0, ((0, 42), (32_100, 50))),
        (100, ((100, 41),)),
    ]
    assert [[(run.start, run.end, run.nodes, run.freed) for run in one.runs] for one in past] == [
        [(1000, 31_000, (0,), (32_000,))],
        [(33_000, 35_000, (0,), (35_000,))],
        [(1100, 34_000, (1,), (34_000,))],
    ]


LOG_OF_26_05 = """\
[2026-03-02T00:01:00.000] _slurm_rpc_submit_batch_job: JobId=1 SLUID=sAX9KJNXM9X100 InitPrio=42 usec=400
[2026-03-02T00:01:01.000] TRACE_JOBS: select_nodes: [JobId=1] change state: PENDING -> RUNNING
[2026-03-02T00:01:01.002] sched: Allocate JobId=1 NodeList=n1 #CPUs=1 Partition=batch
[2026-03-02T00:01:01.003] debug:  laying out the 1 tasks on 1 hosts n1 dist 8192
[2026-03-02T00:01:02.000] _slurm_rpc_submit_batch_job: JobId=2 SLUID=sAX9KJNXMB9X00 InitPrio=41 usec=400
[2026-03-02T00:01:30.000] sched/backfill: _attempt_backfill: beginning
[2026-03-02T00:01:30.010] TRACE_JOBS: select_nodes: [JobId=2] change state: PENDING -> RUNNING
[2026-03-02T00:01:30.020] debug:  laying out the 4 tasks on 2 hosts n[3-4] dist 8192
[2026-03-02T00:01:30.030] sched/backfill: _start_job: BACKFILL: Jobs backfilled since boot: 1
[2026-03-02T00:02:00.000] _job_complete: JobId=1 done
[2026-03-02T00:02:10.000] _job_complete: JobId=2 done
"""


def test_what_26_05_backfills_is_told_in_several_lines() -> None:
    past, _ = read_log(LOG_OF_26_05, [0, 0], moment(LOG_OF_26_05) // 1000)
    assert [[(run.start, run.end, run.nodes, run.by) for run in one.runs] for one in past] == [
        [(1002, 60_000, (0,), "main")],
        [(30_030, 70_000, (2, 3), "backfill")],
    ]
    assert [one.priorities for one in past] == [((0, 42),), ((2000, 41),)]


def test_nodes_are_named_as_slurm_does() -> None:
    assert expand("n7") == [6]
    assert expand("n[1-3,5]") == [0, 1, 2, 4]


LOG_OF_AN_ARRAY = """\
[2026-03-02T00:00:01.000] _slurm_rpc_submit_batch_job: JobId=5 InitPrio=10 usec=1
[2026-03-02T00:00:02.000] debug:  Job 5 priority: 0.0 = 20.0
[2026-03-02T00:00:03.000] debug:  Job 9 priority: 0.0 = 15.0
[2026-03-02T00:00:04.000] debug:  Job 5 priority: 0.0 = 30.0
[2026-03-02T00:00:05.000] sched: Allocate JobId=5_0(5) NodeList=n1 #CPUs=1 Partition=batch
[2026-03-02T00:00:05.100] sched: Allocate JobId=5_1(9) NodeList=n2 #CPUs=1 Partition=batch
[2026-03-02T00:00:06.000] _job_complete: JobId=5_0(5) done
[2026-03-02T00:00:06.100] _job_complete: JobId=5_1(9) done
"""


def test_a_task_that_has_left_its_array_has_priorities_of_its_own() -> None:
    origin = moment(LOG_OF_AN_ARRAY) // 1000
    past, _ = read_log(LOG_OF_AN_ARRAY, [0, 0], origin, {"5": 1, "5_0": 1, "5_1": 2}, {"9": 2})
    assert [one.priorities for one in past] == [
        ((0, 10), (1000, 20), (3000, 30)),
        ((0, 10), (1000, 20), (2000, 15)),
    ]
