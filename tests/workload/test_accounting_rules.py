"""The rules of an import: each has a count, and every record is a job or counted."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting_logs import COLUMNS, T0, UTC, Cells, column, counts, imported, job, sacct_text, waiting
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.workload import accounting
from policyfactory.workload.accounting.importing import import_logs
from policyfactory.workload.accounting.options import ImportRules, parse_limits
from policyfactory.workload.accounting.record import LimitKind, Record, State
from policyfactory.workload.accounting.rules import jobs_of
from policyfactory.workload.accounting.table import StepCounter, TableBuilder
from policyfactory.workload.header import counts_nodes, parse_header
from refusals import refusal, refused


def test_a_job_becomes_a_line_with_its_recorded_start(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1, 10, start=35, run=50, AllocCPUS=16, ReqCPUS=1), job(2))
    fields = ("submit", "wait", "run_time", "allocated", "requested", "requested_time", "status")
    assert column(done, *fields) == [(0, 0, 100, 4, 4, 3600, 1), (10, 25, 50, 16, 1, 3600, 1)]
    assert done.log.header.unix_start == T0
    assert counts(done)["rules.more_than_asked"] == 1


def test_the_requested_time_is_never_the_run_time(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1, TimelimitRaw=""), job(2, TimelimitRaw="UNLIMITED"), job(3, TimelimitRaw="7"))
    assert done.log.requested_time.tolist() == [-1, -1, 420]
    assert counts(done)["rules.no_limit"] == 1


@pytest.mark.parametrize(
    ("state", "status"),
    [("COMPLETED", 1), ("FAILED", 0), ("TIMEOUT", 0), ("NODE_FAIL", 0), ("OUT_OF_MEMORY", 0), ("CANCELLED by 5", 5),
     ("PREEMPTED", 5), ("NEW_WORD", -1)],
)  # fmt: skip
def test_the_state_becomes_the_status(tmp_path: Path, state: str, status: int) -> None:
    assert imported(tmp_path, job(1, State=state)).log.status.tolist() == [status]


def test_what_waits_or_runs_is_dropped_and_counted(tmp_path: Path) -> None:
    running = job(4, 1, State="RUNNING", End="Unknown", AllocCPUS=9)
    suspended = job(5, 1, State="SUSPENDED", End="Unknown")
    done = imported(tmp_path, job(1), waiting(2), waiting("57_[0-20%3]"), running, suspended)
    result = counts(done)
    assert result["rules.waits"] == 1
    assert result["rules.tasks_wait"] == 21
    assert result["rules.runs"] == 2
    assert (done.report.records, done.report.jobs) == (25, 1)
    # What runs has its processors.
    assert done.report.machine == 4 + 9 + 4


NEVER = {"State": "CANCELLED by 1000", "AllocNodes": 0, "ElapsedRaw": 0}


def test_a_job_cancelled_before_it_started_never_used_the_machine(tmp_path: Path) -> None:
    at_once = job(2, run=0, **NEVER)
    without = job(3, **(NEVER | {"Start": "None", "End": T0 + 700}))
    failed = job(4, run=0, **(NEVER | {"State": "FAILED"}))
    done = imported(tmp_path, job(1), at_once, without, failed)
    assert done.report.jobs == 1
    assert counts(done)["rules.cancelled"] == 2
    assert counts(done)["rules.never_started"] == 1
    kept = imported(tmp_path, job(1), at_once, without, keep_unstarted=True)
    fields = ("wait", "run_time", "allocated", "requested", "status")
    waited = (T0 + 700 - kept.log.submit[2] - kept.log.header.unix_start, -1, -1, 4, 5)
    assert column(kept, *fields)[1:] == [(0, -1, -1, 4, 5), waited]
    assert counts(kept)["rules.unstarted"] == 2


def test_the_cancelled_rest_of_an_array_is_as_many_jobs(tmp_path: Path) -> None:
    rest = waiting("57_[1-3]", **(NEVER | {"State": "CANCELLED by 0", "End": T0 + 9}))
    done = imported(tmp_path, job(1), rest)
    assert counts(done)["rules.cancelled"] == 3
    assert imported(tmp_path, job(1), rest, keep_unstarted=True).report.jobs == 4


def test_tasks_of_an_array_are_jobs_and_stand_in_their_order(tmp_path: Path) -> None:
    done = imported(tmp_path, job("11_10", AllocCPUS=3), job("11_2", AllocCPUS=2), job("7", AllocCPUS=1))
    assert done.log.allocated.tolist() == [1, 2, 3]


def test_components_of_a_het_job_are_one_job(tmp_path: Path) -> None:
    parts = [
        job("17+0", 5, start=20, run=50, AllocCPUS=2, AllocNodes=1),
        job("17+1", 5, start=20, run=60, AllocCPUS=4, AllocNodes=2, State="FAILED", TimelimitRaw=90),
    ]
    done = imported(tmp_path, job(1), *parts)
    fields = ("submit", "wait", "run_time", "allocated", "requested", "requested_time", "status")
    assert column(done, *fields)[1] == (5, 15, 60, 6, 8, 5400, 0)
    assert (done.report.jobs, done.report.count("merged")) == (2, 1)
    # The peak counts its processors once.
    assert imported(tmp_path, *parts).report.machine == 6
    nodes = imported(tmp_path, *parts, unit="nodes")
    assert column(nodes, "allocated", "requested") == [(3, -1)]


def test_a_het_job_of_which_one_part_has_no_limit_has_none(tmp_path: Path) -> None:
    done = imported(tmp_path, job("17+0"), job("17+1", TimelimitRaw="UNLIMITED"))
    assert done.log.requested_time.tolist() == [-1]
    running = job("18+1", State="RUNNING", End="Unknown")
    done = imported(tmp_path, job(1), job("18+0"), running)
    assert done.report.jobs == 1


def test_the_longest_limit_of_a_het_job_says_whether_it_was_asked_for(tmp_path: Path) -> None:
    parts = job("17+0", SubmitLine="sbatch x"), job("17+1", TimelimitRaw=90, SubmitLine="sbatch -t 90 x")
    path = tmp_path / "log.txt"
    path.write_text(sacct_text(*parts, columns=[*COLUMNS, "SubmitLine"]))
    done = import_logs([path], zone=UTC)
    assert done.log.requested_time.tolist() == [5400]
    assert counts(done)["rules.asked"] == 1


REQUEUED = [
    job(25, 0, start=20, run=4, State="REQUEUED"),
    job(25, 30, start=150, run=6, Eligible=T0 + 150),
]


def test_of_a_requeued_job_the_last_run_counts_from_the_first_submission(tmp_path: Path) -> None:
    done = imported(tmp_path, *REQUEUED)
    assert column(done, "submit", "wait", "run_time", "status") == [(0, 150, 6, 1)]
    assert counts(done)["rules.last_run"] == 1
    assert "rules.eligible" not in counts(done)


def test_the_runs_of_a_requeued_job_can_each_be_a_job_or_none(tmp_path: Path) -> None:
    each = imported(tmp_path, *REQUEUED, requeued="runs")
    assert column(each, "submit", "wait", "run_time", "status") == [(0, 20, 4, 0), (30, 120, 6, 1)]
    none = imported(tmp_path, job(1), *REQUEUED, requeued="drop")
    assert (none.report.jobs, none.report.count("dropped")) == (1, 2)


def test_a_requeued_job_that_is_not_over_is_no_job(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1), REQUEUED[0], waiting(25, 30))
    assert (done.report.jobs, done.report.count("dropped")) == (1, 2)
    running = job(25, 30, start=40, State="RUNNING", End="Unknown")
    assert imported(tmp_path, job(1), REQUEUED[0], running).report.jobs == 1


def test_a_requeued_job_cancelled_in_the_queue_keeps_its_last_run(tmp_path: Path) -> None:
    done = imported(tmp_path, REQUEUED[0], job(25, 30, run=0, **NEVER))
    assert column(done, "submit", "wait", "run_time", "status") == [(0, 20, 4, 5)]


def test_a_run_after_a_failed_node_belongs_to_its_job(tmp_path: Path) -> None:
    done = imported(tmp_path, job(10, 0, start=2, run=8, State="NODE_FAIL"), job(10, 11, start=131, run=83))
    assert column(done, "submit", "wait", "run_time") == [(0, 131, 83)]


def test_the_same_record_twice_counts_once(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1), job(2), job(1), *REQUEUED, *REQUEUED)
    assert done.report.jobs == 3
    assert counts(done)["rules.twice"] == 3


def test_parts_that_overlap_are_one_log(tmp_path: Path) -> None:
    first, second = tmp_path / "january", tmp_path / "february"
    first.write_text(sacct_text(job(1), job(2, 5, State="RUNNING", End="Unknown"), waiting(3, 6), job(4, 8, run=9)))
    second.write_text(sacct_text(job(2, 5), job(3, 6, start=90), job(4, 8, run=10), job(5, 9)))
    for paths in ([first, second], [second, first]):
        done = import_logs(paths, zone=UTC)
        assert done.report.jobs == 5
        assert counts(done)["rules.earlier_look"] == 2
        assert counts(done)["rules.contradicted"] == 1
        assert done.report.records == done.report.jobs + done.report.count("dropped")
        assert len(done.report.inputs) == 2


def test_the_sibling_that_ran_in_another_cluster_had_no_processors(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1), job(2, State="REVOKED", AllocNodes=0, AllocCPUS=9, ReqCPUS=9, run=50))
    assert (done.report.jobs, done.report.machine) == (1, 4)
    assert counts(done)["rules.cancelled"] == 1


def test_the_rest_of_an_array_of_an_earlier_look_waits_no_more(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("january", "february", "march"))
    first.write_text(sacct_text(job(1), job("9_0", 5), waiting("9_[1-6%2]", 5), waiting("8_[0,2-3]", 5)))
    second.write_text(sacct_text(job("9_1", 5, start=20), job("9_2", 5, start=30), waiting("9_[3-6%2]", 5)))
    third.write_text(sacct_text(job("9_4", 5, start=90), *(job(f"8_{task}", 5) for task in (0, 2, 3, 7))))
    done = import_logs([third, first, second], zone=UTC)
    assert counts(done)["rules.earlier_look"] == 6 + 3 + 1
    assert counts(done)["rules.tasks_wait"] == 3
    assert done.report.jobs == 9
    assert done.report.records == done.report.jobs + done.report.count("dropped")


def test_the_rest_of_an_array_is_no_other_of_its_number(tmp_path: Path) -> None:
    done = imported(tmp_path, job("9_1", 0), job("9_2", 0), waiting("9_[1-2]", 10**7))
    assert counts(done)["rules.tasks_wait"] == 2


def test_an_id_that_comes_again_is_another_job(tmp_path: Path) -> None:
    year = 365 * 86400
    done = imported(tmp_path, job(1), job(1, year), job(2), job(2, 500, UID=1001))
    assert done.report.jobs == 4
    assert counts(done)["rules.id_again"] == 2


def test_a_job_without_limit_has_minus_one_or_what_was_given(tmp_path: Path) -> None:
    rows = [job(1, TimelimitRaw="UNLIMITED"), job(2, TimelimitRaw="Partition_Limit"), job(3)]
    plain = imported(tmp_path, *rows)
    assert plain.log.requested_time.tolist() == [-1, -1, 3600]
    assert counts(plain)["rules.unlimited"] == 1
    assert counts(plain)["rules.partition_limit"] == 1
    stated = imported(tmp_path, *rows, unlimited=86400, partition_limit={"batch": 7200})
    assert stated.log.requested_time.tolist() == [86400, 7200, 3600]
    other = imported(tmp_path, *rows, job(4, Partition="short"), partition_limit={"short": 7200})
    assert other.log.requested_time.tolist() == [-1, -1, 3600, 3600]


def test_a_default_limit_is_recognised_where_it_was_given(tmp_path: Path) -> None:
    rows = [job(n, TimelimitRaw=60) for n in range(1, 13)] + [job(13, TimelimitRaw=7), job(14, Partition="short")]
    asks = imported(tmp_path, *rows)
    batch = asks.report.partitions[0]
    assert (batch.partition, batch.jobs, batch.commonest, round(batch.share, 3)) == ("batch", 13, 3600, 0.923)
    (question,) = asks.report.questions()
    assert "partition batch: 92 % of the limits are 1h; is that the partition's default" in question
    assert "--default-limit batch=1h," in question
    known = imported(tmp_path, *rows, default_limit={"batch": 3600})
    assert known.report.questions() == []
    assert counts(known)["rules.default_keep"] == 12
    assert known.log.requested_time.tolist() == [3600] * 12 + [420, 3600]
    unknown = imported(tmp_path, *rows, default_limit={"batch": 3600}, defaults="unknown")
    assert unknown.log.requested_time.tolist() == [-1] * 12 + [420, 3600]


def test_a_limit_that_was_asked_for_is_no_default() -> None:
    counter = StepCounter()
    gathering = TableBuilder(counter)
    kinds = [LimitKind.given, LimitKind.asked]
    records = [
        Record(n, str(n), T0, None, T0, T0 + 5, 5, 0, 60, kind, 1, 1, state=State.completed, partition="batch")
        for n, kind in enumerate(kinds, 1)
    ]
    gathering.add(records, "log")
    table = gathering.table()
    jobs_of(table, ImportRules(default_limit={"batch": 60}, defaults="unknown"), counter)
    assert table.limit.tolist() == [-1, 60]


def test_suspended_time_is_no_run_time(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1, run=5, ElapsedRaw=1, Suspended="00:00:04"))
    assert column(done, "run_time", "wait") == [(1, 0)]
    assert counts(done)["rules.suspended"] == 1
    assert "rules.end_apart" not in counts(done)


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (job(2, 50, start=20), "rules.early_start"),
        (job(2, run=-30, ElapsedRaw=5), "rules.early_end"),
        (job(2, Submit="Unknown"), "rules.no_submit"),
        (job(2, End="Unknown", ElapsedRaw=""), "rules.no_run_time"),
        (job(2, AllocCPUS="", ReqCPUS="", ReqTRES=""), "rules.no_size"),
    ],
)
def test_what_cannot_be_is_dropped_and_counted(tmp_path: Path, bad: Cells, what: str) -> None:
    done = imported(tmp_path, job(1), bad)
    assert done.report.jobs == 1
    assert counts(done)[what] == 1


def test_what_is_odd_is_kept_and_counted(tmp_path: Path) -> None:
    done = imported(
        tmp_path, job(1, run=100, ElapsedRaw=4000), job(2, Eligible=T0 + 9, start=20), job(3, State="NEW_WORD"),
        job(4, AllocCPUS=""), job(5, State="REQUEUED"),
    )  # fmt: skip
    result = counts(done)
    assert result["rules.overrun"] == 1
    assert result["rules.end_apart"] == 1
    assert result["rules.eligible"] == 1
    assert result["rules.no_word"] == 1
    assert result["rules.goes_on"] == 1
    assert result["rules.as_requested"] == 1
    assert done.report.jobs == 5


def test_partitions_are_chosen_by_name(tmp_path: Path) -> None:
    rows = [job(1), job(2, Partition="gpu", AllocCPUS=64), job(3, Partition="short")]
    done = imported(tmp_path, *rows, partitions=("batch", "short"))
    assert (done.report.jobs, counts(done)["rules.partition"]) == (2, 1)
    assert done.report.machine == 8
    refused(UsageError, "log.txt --partition big batch gpu short", imported, tmp_path, *rows, partitions=("big",))


def test_jobs_are_chosen_by_when_they_were_submitted(tmp_path: Path) -> None:
    rows = [job(n, 100 * n) for n in range(5)]
    done = imported(tmp_path, *rows, begin=T0 + 100, end=T0 + 300)
    assert column(done, "submit") == [(0,), (100,)]
    assert counts(done)["tables.outside"] == 3
    assert done.log.header.unix_start == T0 + 100


def test_nodes_can_be_the_unit(tmp_path: Path) -> None:
    done = imported(tmp_path, job(1, AllocNodes=3, ReqNodes=2, AllocCPUS=48), unit="nodes")
    # Two is the least that it asked for, and it may have asked for more.
    assert column(done, "allocated", "requested") == [(3, -1)]
    assert done.log.header.nodes == done.log.header.processors == 3
    assert counts_nodes(parse_header(list(done.log.header.lines)))
    assert not counts_nodes(imported(tmp_path, job(1)).log.header)
    assert not counts_nodes(parse_header(["; Note: a unit: nodes", "; Note: unit: nodesets", "; unit: nodes"]))
    with refusal(WorkloadError, "log.txt --unit nodes"):
        imported(tmp_path, job(1, AllocNodes="", NNodes="", ReqNodes="", ReqTRES="cpu=4"), unit="nodes")


def test_without_a_job_the_reasons_are_given(tmp_path: Path) -> None:
    refused(WorkloadError, "log.txt 1 records", imported, tmp_path, waiting(1))
    refused(UsageError, "log.txt job ever", imported, tmp_path, job(1, run=0, **NEVER), keep_unstarted=True)


def test_the_machine_is_the_most_in_use_at_once_or_what_was_given(tmp_path: Path) -> None:
    rows = [job(1, run=100, AllocCPUS=8), job(2, 50, AllocCPUS=5), job(3, 100, AllocCPUS=3)]
    done = imported(tmp_path, *rows)
    assert done.report.machine == 13
    assert "first at 2023-11-14 22:14:10 UTC: a lower bound" in done.report.machine_source
    path = tmp_path / "log.txt"
    stated = import_logs([path], zone=UTC, processors=7)
    assert stated.report.machine == stated.log.header.processors == 7
    assert counts(stated)["rules.larger"] == 1
    assert "13 in use at once" in stated.report.machine_source


def test_limits_of_partitions_are_known_in_units() -> None:
    assert parse_limits(["a=24h", "b=1-00:00:00", "c=90m", "d=24:00:00", "e=f=1h"], "--x") == {
        "a": 86400, "b": 86400, "c": 5400, "d": 86400, "e=f": 3600,
    }  # fmt: skip
    for wrong in ("24h", "=24h", "a=60", "a=", "a=0s", "a=10:30", "a=inf", "a=-1h"):
        refused(UsageError, "--x", parse_limits, [wrong], "--x")
    refused(UsageError, "--x 60 60m 60h", parse_limits, ["a=60"], "--x")
    refused(UsageError, "--x a twice", parse_limits, ["a=1h", "a=2h"], "--x")


TIME = st.one_of(st.none(), st.integers(-5, 60), st.integers(1 << 62, 1 << 70))
RECORD = st.builds(
    Record,
    line=st.integers(1, 9), job=st.sampled_from(["1", "2", "3_1", "17+0", "17+1", "5_[0-3]", ""]),
    submit=TIME, eligible=TIME, start=TIME, end=TIME, elapsed=TIME, suspended=TIME, limit=TIME,
    requested=TIME, allocated=TIME, requested_nodes=TIME, allocated_nodes=TIME, state=st.sampled_from(State),
    user=st.sampled_from(["", "a", "b"]), partition=st.sampled_from(["x", "y"]), group_id=st.sampled_from([None, "17"]),
    tasks=st.integers(1, 3),
)  # fmt: skip


@settings(max_examples=80)
@given(
    st.lists(RECORD, min_size=1, max_size=12),
    st.sampled_from(["last", "runs", "drop"]),
    st.booleans(),
    st.sampled_from(["cpus", "nodes"]),
)
def test_every_record_is_a_job_or_is_counted(records: list[Record], requeued: str, keep: bool, unit: str) -> None:
    counter = StepCounter()
    gathering = TableBuilder(counter)
    gathering.add(records, "log")
    table = gathering.table()
    try:
        jobs = jobs_of(table, ImportRules(requeued=requeued, keep_unstarted=keep, unit=unit), counter)
    except WorkloadError:
        return
    lost = sum(step.count for step in counter.steps() if step.action in {"dropped", "merged"})
    assert len(jobs.rows) + lost == sum(record.tasks for record in records)
    rows = jobs.rows
    assert (np.diff(table.submit[rows]) >= 0).all()
    ran = rows[jobs.allocated[rows] > 0]
    assert (table.start[ran] >= table.submit[ran]).all()
    assert (table.elapsed[ran] >= 0).all()
    assert keep or len(ran) == len(rows)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_the_peak_is_that_of_counting_every_second(jobs: list[tuple[int, int, int]]) -> None:
    counter = StepCounter()
    gathering = TableBuilder(counter)
    gathering.add(
        [
            Record(n, str(n), T0, T0, T0 + at, T0 + at + run, run, 0, requested=1, allocated=size,
                   allocated_nodes=1, state=State.completed)
            for n, (at, run, size) in enumerate(jobs)
        ],
        "log",
    )  # fmt: skip
    result = jobs_of(gathering.table(), ImportRules(), counter)
    level = [sum(size for at, run, size in jobs if at <= second < at + run) for second in range(50)]
    if max(level):
        assert (result.peak, result.peak_time) == (max(level), T0 + level.index(max(level)))


def test_numbers_that_no_cluster_has_are_unknown_and_counted(tmp_path: Path) -> None:
    huge = 10**21
    result = imported(
        tmp_path, job(1), job(2, TimelimitRaw=huge), job(3, AllocCPUS=huge, ReqCPUS=10**16), job(4, Submit=huge)
    )
    step = next(step for step in result.report.steps if step.what.startswith("records with numbers beyond"))
    assert (step.action, step.count, step.first_job) == ("changed", 3, "2")
    assert result.log.requested_time.tolist() == [3600, -1]


def test_arrays_that_never_ran_cannot_fill_the_memory(tmp_path: Path) -> None:
    rest = [waiting(f"{n}_[0-9999999]", State="CANCELLED", Start="None", End=T0 + 5) for n in range(1, 40)]
    with refusal(WorkloadError, "log.txt 390,000,000 1,000,000 1_ 0-9999999"):
        imported(tmp_path, *rest, keep_unstarted=True)
    assert len(imported(tmp_path, job(1), *rest).log) == 1


def test_the_more_records_there_are_the_more_tasks_that_never_ran_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policyfactory.workload.accounting.rules._FEW_TASKS", 30)
    rest = waiting("57_[1-50]", State="CANCELLED", Start="None", End=T0 + 5)
    with refusal(WorkloadError, "log.txt 51 40 57_"):
        imported(tmp_path, job(1), rest, keep_unstarted=True)
    assert len(imported(tmp_path, job(1), job(2), rest, keep_unstarted=True).log) == 52


def test_what_readers_say_is_in_the_table_and_all_of_it_is_said() -> None:
    folder = Path(accounting.__file__).parent
    table = tomllib.loads((folder / "remarks.toml").read_text())
    kinds = {f"{section}.{name}": texts for section, names in table.items() for name, texts in names.items()}
    readers = [path for place in (folder, folder.parent / "tables") for path in place.glob("*.py")]
    code = "".join(path.read_text() for path in readers if path.name != "record.py")
    said = {word for word in re.findall(r'"([\w-]+\.\w+)"', code) if word.partition(".")[0] in table}
    # How times were settled is said by the readers whose times are local.
    said |= {f"{form}.{how}" for form in ("sacct", "filetxt") for how in ("settled", "guessed", "never")}
    # Of tables also what cannot be read, by its kind.
    said |= {f"tables.{word}" for word in ("settled", "guessed", "never", "time", "duration", "count")}
    assert set(kinds) == said | {"sacct.unreadable"}
    assert {action for action, *_ in kinds.values()} == {"skipped", "dropped", "merged", "changed", "kept"}
