"""What a log is said to be good for, by small logs made for each answer."""

from __future__ import annotations

import json

import numpy as np
import pytest

from naive.logs import HEADER, log_of
from policyfactory.core.text import DAY, HOUR, WEEK
from policyfactory.workload.describe import describe, find_quirks, room_share, wait_tables
from policyfactory.workload.judge import LogJudgement, judge_log
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog
from snapshots import snapshot
from support import shared_path

Jobs = list[dict[str, object]]
MANY = HEADER.replace("MaxProcs: 10", "MaxProcs: 1000").replace("MaxNodes: 10", "MaxNodes: 1000")
LEARNING, TESTING, COMPARING = "learning an order", "testing an order", "comparing with the recorded schedule"


def queued(jobs: int = 3000, weeks: int = 16, processors: int = 10, load: float = 0.6, **fields: object) -> Jobs:
    """Return jobs of a machine with a queue: first come, first served, so that they wait for processors."""
    rng = np.random.default_rng(1)
    submit = np.sort(rng.integers(0, weeks * WEEK, jobs))
    size = rng.integers(1, processors + 1, jobs)
    mean = load * processors * weeks * WEEK / (jobs * (processors + 1) / 2)
    run_time = np.maximum(1, rng.exponential(mean, jobs)).astype(int)
    free = np.zeros(processors, dtype=int)
    made: Jobs = []
    start = 0
    for n in range(jobs):
        start = max(int(submit[n]), start, int(np.sort(free)[size[n] - 1]))
        free[np.argsort(free, kind="stable")[: size[n]]] = start + run_time[n]
        job: dict[str, object] = {"submit": submit[n], "wait": start - submit[n], "run_time": run_time[n]}
        made.append(
            job | {"allocated": size[n], "requested": size[n], "requested_time": 10**6, "user": n % 20} | fields
        )
    return made


def judged(log: SwfLog, machine: int | None = None) -> LogJudgement:
    return judge_log(log, describe(log, machine))


def grades(judgement: LogJudgement) -> dict[str, str]:
    return {use.name: use.grade for use in judgement.uses}


def reasons(judgement: LogJudgement, name: str) -> str:
    return next(use.why for use in judgement.uses if use.name == name)


def test_a_log_of_a_queue_is_good_for_all() -> None:
    judgement = judged(log_of(queued()))
    assert set(grades(judgement).values()) == {"good"}
    assert judgement.findings == ()
    snapshot(reasons(judgement, TESTING))


def test_submissions_that_are_starts_are_found_out() -> None:
    # Each job is submitted when it starts, on a machine that is full at times.
    jobs = [job | {"submit": int(job["submit"]) + int(job["wait"]), "wait": 0} for job in queued()]  # type: ignore[call-overload]
    judgement = judged(log_of(jobs))
    snapshot(judgement.findings[0], part="1")
    assert (grades(judgement)[TESTING], grades(judgement)[COMPARING]) == ("no", "no")
    # A hundredth with a wait is not enough to think otherwise; a twentieth is.
    for share, first in ((150, True), (20, False)):
        some = [job | ({"wait": 3600} if n % share == 0 else {}) for n, job in enumerate(jobs)]
        said = " ".join(judged(log_of(some)).findings)
        assert ("The submit times are the start times" in said) is first
    # On a machine that is never full the record may be right.
    judgement = judged(log_of(jobs, MANY))
    snapshot(" ".join(judgement.findings), part="2")


def test_a_log_without_waits_says_so() -> None:
    judgement = judged(log_of(queued(wait=-1)))
    snapshot(judgement.findings, part="1")
    limited = {COMPARING: "no", LEARNING: "limited"}
    assert grades(judgement) == dict.fromkeys(grades(judgement), "good") | limited
    snapshot(reasons(judgement, COMPARING), part="2")


def test_what_learn_cannot_tell_is_not_called_good() -> None:
    idle = judged(log_of(queued(load=0.02, wait=-1)))
    assert grades(idle)[LEARNING] == grades(idle)[TESTING] == "no"
    assert "hardly anybody waits" in reasons(idle, LEARNING)
    assert grades(judged(log_of(queued(load=0.35))))[LEARNING] == "limited"
    nothing = judged(log_of(queued(requested_time=-1)))
    snapshot((grades(nothing)[LEARNING], reasons(nothing, LEARNING)))


def test_a_peak_of_starts_that_nobody_knows_is_said_to_be_one() -> None:
    log = log_of(queued(load=2.0, wait=-1))
    description = describe(log)
    assert description.peak_processors > 10
    snapshot(" ".join(find_quirks(log, description)))


def test_many_sites_added_together_are_found_out() -> None:
    # Forty sites of 25 processors, each with a queue of serial jobs of its own.
    serial: dict[str, object] = {"allocated": 1, "requested": 1}
    rng = np.random.default_rng(2)
    few = [
        serial | {"submit": n * 600, "wait": int(rng.integers(0, DAY)), "run_time": int(rng.integers(1, 6 * HOUR))}
        for n in range(20_000)
    ]
    judgement = judged(log_of(few, MANY))
    snapshot(judgement.findings[0], part="1")
    assert grades(judgement)[TESTING] == "no"
    # Fuller: they wait while there are processors for all.
    full = [job | {"run_time": 4 * DAY} for job in few]
    snapshot(judged(log_of(full, MANY)).findings[0], reasons(judged(log_of(full, MANY)), LEARNING), part="2")
    # One machine for serial jobs that has a queue of its own is none.
    one = judged(log_of(queued(processors=1, jobs=4000), HEADER.replace("MaxProcs: 10", "MaxProcs: 1")))
    assert "many sites" not in " ".join(one.findings)


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("; Computer: LHC Computing Grid\n", True),
        ("; Installation: Multiple sites\n", True),
        ("; MaxNodes: 170 sites\n", True),
        ("; Computer: a cluster under Sun Grid Engine\n", False),
        ("; Information: used by many sites\n", False),
    ],
)
def test_a_header_that_speaks_of_many_sites_is_a_reason_to_look(header: str, found: bool) -> None:
    judgement = judged(log_of(queued(), header + "; UnixStartTime: 1000000000\n; MaxProcs: 10\n"))
    assert ("if its jobs did not stand in one queue" in " ".join(judgement.findings)) is found
    assert grades(judgement)[TESTING] == ("limited" if found else "good")


def test_jobs_that_wait_while_there_is_room_for_all_wait_for_something_else() -> None:
    # The same jobs, and a machine on which all of them fit at any time.
    judgement = judged(log_of(queued(), MANY))
    snapshot(" ".join(judgement.findings))
    assert grades(judgement)[COMPARING] == "no"


def test_the_share_of_jobs_with_room_by_hand() -> None:
    # Job 2 waits an hour behind job 1, which fills the machine; job 3 waits two hours, the first beside a full machine.
    jobs: Jobs = [
        {"submit": 0, "wait": 0, "run_time": HOUR, "allocated": 10},
        {"submit": 0, "wait": HOUR, "run_time": 10, "allocated": 10},
        {"submit": HOUR - 60, "wait": 2 * HOUR, "run_time": 10, "allocated": 1},
        {"submit": 9 * HOUR, "wait": 600, "run_time": 10, "allocated": 1},
    ]
    assert room_share(log_of(jobs), 10) == 1 / 2
    assert room_share(log_of(jobs), 19) == 1 / 2
    assert room_share(log_of(jobs), 20) == 1
    assert np.isnan(room_share(log_of(jobs[:1]), 10))


LIMITS: dict[str, tuple[Jobs, str, str, str]] = {
    "low load": (queued(load=0.2), TESTING, "no", "hardly anybody waits"),
    "some load": (queued(load=0.45), TESTING, "limited", "few wait"),
    "short": (queued(weeks=3), TESTING, "no", "3.0 weeks: 4 are the least"),
    "few weeks": (
        queued(weeks=8),
        TESTING,
        "limited",
        "only 8.0 weeks, so that intervals are wide; learn needs more than 12",
    ),
    "few jobs": (queued(jobs=100), "learning an order", "no", "100 jobs that ran: 250 are the least"),
    "no requests": (queued(requested_time=-1), TESTING, "no", "most requested times are missing"),
    "no users": (queued(user=-1), "predicting run times", "no", "users are not recorded"),
}


@pytest.mark.parametrize("case", LIMITS)
def test_what_a_log_is_not_good_for_has_a_reason(case: str) -> None:
    jobs, name, grade, why = LIMITS[case]
    judgement = judged(log_of(jobs))
    assert grades(judgement)[name] == grade
    assert why in reasons(judgement, name)


def test_a_log_that_tells_nothing_is_good_for_nothing() -> None:
    nothing: dict[str, object] = dict.fromkeys(
        ("submit", "wait", "run_time", "allocated", "requested", "requested_time", "status"), -1
    )
    judgement = judged(log_of([nothing, nothing], header=""))
    assert "good" not in grades(judgement).values()
    assert "nan" not in json.dumps(judgement.as_dict(), allow_nan=False)
    assert "give --processors" in reasons(judgement, TESTING)


def test_waits_over_time_by_queue_and_by_partition() -> None:
    jobs: Jobs = [
        {"submit": n * DAY, "wait": 60 * n, "queue": n % 3, "partition": 1, "run_time": 100, "allocated": n % 2 + 1}
        for n in range(28)
    ]
    by_time, by_queue = wait_tables(log_of(jobs))
    snapshot(by_time.title)
    assert [row["group"] for row in by_time.rows] == ["2001-09-09", "2001-09-16", "2001-09-23", "2001-09-30"]
    assert [row["mean"] for row in by_time.rows] == [180, 600, 1020, 1440]
    assert by_time.cells()[0][1:] == ["7", "25.0", "23.8", "3m", "3m", "5m 42s", "6m"]
    assert [row["group"] for row in by_queue.rows] == ["queue 0", "queue 1", "queue 2"]
    assert sum(row["share_of_work"] for row in by_queue.rows) == pytest.approx(1)
    # However many queues and however long a log: as many rows as a screen holds.
    long = [{"submit": n * 30 * DAY, "wait": -1, "queue": n} for n in range(100)]
    by_time, by_queue = wait_tables(log_of(long, header=""))
    assert len(by_time.rows) <= 12
    assert by_time.rows[0]["group"] == "day 1"
    assert by_queue.rows[-1]["group"] == "92 others"
    assert by_queue.cells()[0][-1] == "-"


def test_waits_have_the_words_and_the_names_of_the_header() -> None:
    jobs: Jobs = [{"queue": n % 2, "partition": n % 2 + 1} for n in range(4)]

    def groups(header: str) -> list[list[str]]:
        return [[row["group"] for row in table.rows] for table in wait_tables(log_of(jobs, header=header))[1:]]

    archive = "; Queue: 1 express\n; Partition: 2 batch\n"
    assert groups(archive) == [["queue 0", "queue express"], ["partition 1", "partition batch"]]
    imported = "; Queues: partitions of the scheduler\n; Queue: 1 batch\n; QOS: 2 high\n"
    assert groups(imported) == [["partition 0", "partition batch"], ["QOS 1", "QOS high"]]


def test_shares_name_their_denominators() -> None:
    failed: dict[str, object] = {"status": 0, "run_time": 100}
    jobs: Jobs = [failed | {"requested_time": 120}, failed | {"requested_time": 999}]
    jobs += [failed | {"requested_time": -1}] * 6 + [{"run_time": 50, "requested_time": 20}, {"run_time": -1}]
    log = log_of([job | {"cpu_time": "5.0", "memory": "1.5"} for job in jobs])
    said = find_quirks(log, describe(log))
    # Of the eight that failed, not of the two with a request.
    snapshot(said)
    # The table says the same.
    assert describe(log).overrun_share == 1 / 3
    assert not any(" of 0 lines" in sentence for sentence in said)


@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln", "SDSC-BLUE-2000-4.2-cln", "HPC2N-2002-2.1-cln"])
def test_the_archives_logs_are_good_for_all(name: str) -> None:
    judgement = judged(read_swf(shared_path(f"traces/{name}.swf.gz")))
    assert set(grades(judgement).values()) == {"good"}
    assert judgement.findings == ()
