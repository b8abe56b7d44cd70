"""What a log-only export would have done, by logs made by hand and by a simulation."""

from __future__ import annotations

import dataclasses
import gzip
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from daily_log import daily, recorded
from policyfactory.core.errors import InputError, PolicyfactoryError, TraceFormatError, WorkloadError
from policyfactory.policy.store import resolve
from policyfactory.review.shadow import Logged, compare_orders, judge_simulated, read_shadow, shadow
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.lublin import default_workload
from policyfactory.workload.presets import CleaningStep
from policyfactory.workload.swf.files import write_swf
from policyfactory.workload.swf.log import log_of_workload

BEGIN = 1_700_000_000
LINE = (
    "[2026-01-01T00:00:00.000] job_submit/lua: policyfactory-shadow: policy=saf at={at} job={job} user=1000 "
    "submit={submit} time={time} processors={processors} score=1 number={number} present={present} us=3\n"
)


def line_of(**changes: object) -> str:
    usual = {"at": 10, "job": "7", "submit": 10, "time": 60, "processors": 2, "number": 5, "present": "-"}
    return LINE.format(**(usual | changes))


def test_lines_are_read_among_others_and_what_cannot_be_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "slurmctld.log"
    bad = [
        line_of(job="7;rm"),
        line_of(number="nan"),
        line_of(time="1e99"),
        line_of(submit=-4),
        "policyfactory-shadow: policy=\x1b[31m job=\n",
        "policyfactory-shadow: " + "x" * 9000 + "\n",
    ]
    file.write_text("other\n" + line_of() + "".join(bad) + line_of(job="-", present=4294901759), encoding="utf-8")
    log = read_shadow(file)
    assert [line.job for line in log.lines] == ["7", ""]
    assert math.isnan(log.lines[0].present)
    assert log.lines[1].present == 4294901759
    assert log.unread == len(bad)
    assert log.policies == ("saf",)
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert read_shadow(packed).lines == log.lines


@pytest.mark.parametrize(
    "head",
    [
        "", "[2026-01-01T00:00:00.000] ", "[Jan 01 00:00:00] lua: ", "[2026-01-01T00:00:00+01:00] sched: lua: ",
        "slurmctld: lua: ", "Jan  1 00:00:00 head slurmctld[77]: lua: ",
        "2026-01-01T00:00:00.123456+01:00 head slurmctld[77]: slurmctld: ",
    ],
)  # fmt: skip
def test_the_mark_is_where_slurmctld_puts_it(head: str, tmp_path: Path) -> None:
    mark = "policyfactory-shadow: "
    (tmp_path / "log").write_text(head + mark + line_of().partition(mark)[2])
    assert len(read_shadow(tmp_path / "log").lines) == 1


@pytest.mark.parametrize(
    "before", ["x ", "[2026-01-01T00:00:00.000] error: no account ", "[2026-01-01T00:00:00.000] name=", "x" * 4096]
)
def test_a_mark_that_a_user_wrote_is_passed_over(before: str, tmp_path: Path) -> None:
    mark = "policyfactory-shadow: "
    forged = before + mark + line_of(job="9", number=99).partition(mark)[2]
    (tmp_path / "log").write_text(forged + line_of() + "y" * (1 << 20) + forged)
    assert [line.job for line in read_shadow(tmp_path / "log").lines] == ["7"]


def test_what_unpacks_out_of_proportion_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(line_of().encode() + bytes(32 << 20)))
    with pytest.raises(InputError, match="unpacks to more than 50 times its size"):
        read_shadow(tmp_path / "bomb.gz")


def test_what_is_no_such_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_shadow(tmp_path / "none")
    (tmp_path / "log").write_text("nothing\n")
    with pytest.raises(TraceFormatError, match="no line of a log-only export"):
        read_shadow(tmp_path / "log")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(line_of().encode() * 50)[:40])
    with pytest.raises(PolicyfactoryError):
        read_shadow(tmp_path / "cut.gz")
    packed = bytearray(gzip.compress(line_of().encode() * 50))
    packed[10] = 0xFF  # the kind of the first block: there is no such one
    (tmp_path / "broken.gz").write_bytes(packed)
    with pytest.raises(InputError, match="is damaged and cannot be unpacked"):
        read_shadow(tmp_path / "broken.gz")


def test_long_words_take_no_longer_than_short_ones(tmp_path: Path) -> None:
    # The square of their length was 50 s for these 400 lines.
    times = []
    for word in ("x" * 4000, "x " * 2000):
        (tmp_path / "log").write_text(("policyfactory-shadow: " + word + "\n") * 400 + line_of())
        begin = time.process_time()
        assert read_shadow(tmp_path / "log").unread == 400
        times.append(time.process_time() - begin)
    assert times[0] < 20 * times[1] + 1


def logged(at: int, number: float, present: float = math.nan) -> Logged:
    return Logged(at, "", "", at, 60, 1, number, present, math.nan)


def test_pairs_by_hand() -> None:
    # Jobs 0, 1, 2 wait from 0, 10, 20 and start at 100, 200, 300; job 3 comes later and never waits beside one.
    submit, start = np.array([0, 10, 20, 400]), np.array([100, 200, 300, 400])
    rows = np.arange(4)
    lines = [logged(0, 1.0, 9), logged(10, 2.0, 9), logged(20, 3.0, 9), logged(400, 9.0, 9)]
    found = compare_orders(submit, start, rows, lines)
    assert (found.starts, found.passed, found.pairs, found.other, found.by_submit) == (2, 2, 3, 3, 0)
    assert found.tau == -1
    assert (found.prior, found.other_prior) == (3, 0)
    assert found.up.tolist() == [0, 1, 2, 0]
    assert found.down.tolist() == [2, 1, 0, 0]
    # Equal numbers: the earlier submission goes first, as it did.
    same = compare_orders(submit, start, rows, [logged(line.instant, 1.0) for line in lines])
    assert (same.other, same.tau) == (0, 1)
    # A number that is logged after a start says nothing about it: at 100, job 2 still had 0.
    late = compare_orders(
        submit, start, np.array([0, 1, 2, 2]), [logged(0, 1.0), logged(10, 0.5), logged(20, 0.0), logged(150, 3.0)]
    )
    assert (late.pairs, late.other) == (3, 1)
    # Job 2 could run from 150 on: at 100 it waited for something else.
    held = compare_orders(submit, start, rows, lines, np.array([0, 10, 150, 400]))
    assert (held.starts, held.passed, held.pairs, held.other) == (2, 2, 2, 2)


def made(tmp_path: Path, numbers: Sequence[float], workload: Workload, start: np.ndarray) -> tuple[Path, Path]:
    """Write accounting as sacct prints it and the lines of a log-only export; the times are those of a schedule."""
    head = "JobID|UID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|Partition"
    rows, lines = [head], []
    for at, number in enumerate(numbers):
        submit, begin = BEGIN + int(workload.submit[at]), BEGIN + int(start[at])
        run, minutes = int(workload.run_time[at]), -(-int(workload.requested_time[at]) // 60)
        size = int(workload.processors[at])
        rows.append(f"{at + 1}|1000|COMPLETED|{submit}|{begin}|{begin + run}|{run}|{minutes}|{size}|{size}|batch")
        lines.append(
            line_of(at=submit, job="-", submit=submit, time=60 * minutes, processors=size, number=repr(float(number)))
        )
    (tmp_path / "sacct.txt").write_text("\n".join(rows) + "\n")
    (tmp_path / "slurmctld.log").write_text("".join(lines))
    return tmp_path / "slurmctld.log", tmp_path / "sacct.txt"


def test_a_busy_queue_is_told_and_the_order_that_was_is_the_same_order(tmp_path: Path) -> None:
    jobs = default_workload().select(np.arange(3000))
    base = simulate(jobs, "FCFS", backfill="none")
    log, accounting = made(tmp_path, -jobs.requested_time.astype(float) * jobs.processors, jobs, base.start)
    found = shadow(log, [accounting])
    assert found.matched.without == 0
    assert found.pairs.pairs > 1000
    assert 0.05 < found.pairs.other / found.pairs.pairs < 0.95
    assert found.pairs.by_submit == 0  # nothing was backfilled
    assert found.judged is not None
    assert "pairs of waiting jobs" in found.verdict.sentences[0]
    # Numbers that fall with the submissions are first come, first served: no pair differs.
    log, accounting = made(tmp_path, -jobs.submit.astype(float), jobs, base.start)
    same = shadow(log, [accounting])
    assert (same.pairs.other, same.pairs.passed) == (0, 0)
    assert same.judged is not None
    means = list(same.judged.means.values())
    assert means[0] == means[1]


def test_an_unsound_simulation_does_not_head_what_is_sound(tmp_path: Path) -> None:
    jobs = default_workload().select(np.arange(1000))
    base = simulate(jobs, "FCFS", backfill="none")
    log, accounting = made(tmp_path, -jobs.requested_time.astype(float), jobs, base.start + 500_000)
    found = shadow(log, [accounting])
    assert found.verdict.light == "unsound"
    assert found.verdict.title.startswith("The orders are compared")
    assert "pairs of waiting jobs" in found.verdict.sentences[0]
    assert "The simulation is unsound" in found.verdict.sentences[1]
    columns = [column for section in found.sections() for table in section.tables for column in table.columns]
    assert not any(column.unit == "jobs" for column in columns)
    assert not any(section.paragraphs for section in found.sections())


def test_a_log_out_of_submit_order_is_the_same_queue(tmp_path: Path) -> None:
    jobs = default_workload().select(np.arange(1000))
    jobs = dataclasses.replace(jobs, start=simulate(jobs, "FCFS").start, unix_start=BEGIN)
    log, _ = made(tmp_path, -jobs.requested_time.astype(float), jobs, jobs.start)
    swf = log_of_workload(jobs)
    found = []
    for at, rows in enumerate([np.arange(1000), np.random.default_rng(1).permutation(1000)]):
        write_swf(swf.select(rows), tmp_path / f"{at}.swf")
        pairs = shadow(log, [tmp_path / f"{at}.swf"]).pairs
        found.append((pairs.starts, pairs.pairs, pairs.other))
    assert found[0] == found[1]
    assert found[0][1] > 1000


@pytest.mark.parametrize(("invented", "light"), [(0.66, "unsound"), (0.02, "better")])
def test_invented_requests_are_no_basis_of_a_verdict(invented: float, light: str) -> None:
    log = recorded(daily(), "FCFS")
    step = CleaningStep("changed", int(invented * 1000), "no requested time, the run time taken", "", 1, 1)
    report = dataclasses.replace(log.cleaning, read=1000, kept=1000, steps=(step,))
    verdict = judge_simulated(dataclasses.replace(log, cleaning=report), resolve("SPF")).verdict
    assert verdict.light == light
    assert ("have no requested time in the log" in verdict.sentences[0]) == (light == "unsound")
    assert f"{100 * invented:.3g} % of the jobs changed (no requested time" in verdict.caveats[1]


@pytest.mark.parametrize(
    ("record", "policy", "light", "last"),
    [
        ("FCFS", "SPF", "better", "In the record"),
        ("FCFS", "LPF", "worse", "In the record"),
        # WFP3 is better than first come, first served, and worse than SPF.
        ("SPF", "WFP3", "worse", "In the record"),
        ("", "LPF", "worse", "It cannot be compared with the record"),
        ("", "SPF", "cannot tell", "It cannot be compared with the record"),
    ],
)
def test_the_simulation_and_the_record_are_judged_by_the_common_rule(
    record: str, policy: str, light: str, last: str
) -> None:
    verdict = judge_simulated(recorded(daily(), record) if record else daily(), resolve(policy)).verdict
    assert (verdict.light, verdict.sentences[-1][: len(last)]) == (light, last)


def test_nobody_waits_few_jobs_and_another_cluster_cannot_be_told(tmp_path: Path) -> None:
    jobs = default_workload().select(np.arange(300))
    log, accounting = made(tmp_path, jobs.submit.astype(float), jobs, jobs.submit)
    quiet = shadow(log, [accounting])
    assert quiet.verdict.light == "cannot tell"
    assert "Cannot tell: at 0 starts" in quiet.verdict.sentences[0]
    (tmp_path / "slurmctld.log").write_text(line_of(job="99999"))
    with pytest.raises(WorkloadError, match="give the accounting of the same cluster"):
        shadow(log, [accounting])


def test_arrays_that_are_logged_again_and_again_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = default_workload().select(np.arange(50))
    log, accounting = made(tmp_path, jobs.submit.astype(float), jobs, jobs.submit)
    head, *rows = accounting.read_text().splitlines()
    tasks = [f"9_{at}|" + row.partition("|")[2] for at, row in enumerate(rows)]
    accounting.write_text("\n".join([head, *tasks]) + "\n")
    log.write_text(line_of(job="9", at=BEGIN) * 5)
    assert len(shadow(log, [accounting]).matched.lines) == 250
    monkeypatch.setattr("policyfactory.review.shadow._MOST_PAIRS", 249)
    with pytest.raises(WorkloadError, match="more than 249 jobs, the tasks of an array counted each time"):
        shadow(log, [accounting])


def test_jobs_are_found_by_what_was_asked_for_or_allocated_and_larger_ones_counted(tmp_path: Path) -> None:
    head = "JobID|UID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|Partition"
    # Asked for by GPU: recorded so since Slurm 24.05, and before only by what ran; slurm.conf's default by GPU.
    sizes = [(1, 32, 32), (2, 1, 32), (3, 1, 12), (4, 1, 1)]
    rows = [
        f"{job}|1000|COMPLETED|{BEGIN + job * 100}|{BEGIN + 900}|{BEGIN + 960}|60|5|{asked}|{given}|batch"
        for job, asked, given in sizes
    ]
    (tmp_path / "sacct.txt").write_text("\n".join([head, *rows]) + "\n")
    counted = zip(sizes, (32, 32, 1, 1), strict=True)
    lines = [
        line_of(at=BEGIN + job * 100, job="-", submit=BEGIN + job * 100, time=300, processors=size)
        for (job, _, _), size in counted
    ]
    (tmp_path / "log").write_text("".join(lines))
    found = shadow(tmp_path / "log", [tmp_path / "sacct.txt"])
    assert (sorted(found.matched.rows.tolist()), found.matched.without, found.matched.larger) == ([0, 1, 2, 3], 0, 1)
    assert any(text.startswith("1 job got more processors than the score counted") for text in found.verdict.caveats)
