"""What is kept of a site's users: ends are noted once and in order, the file is whole, bounded, and without names."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from policyfactory.core.errors import InputError, OutputError, TraceFormatError, UsageError
from policyfactory.prediction.history import (
    MOST_JOBS,
    Asleep,
    Ended,
    History,
    HistoryLimits,
    Means,
    UserPast,
    without_numbers,
)
from policyfactory.prediction.history_file import (
    HEADER,
    LINE,
    SiteJob,
    hash_with,
    key_of,
    key_path,
    read_history,
    read_jobs,
    update,
    write_history,
)
from policyfactory.workload.accounting.record import State
from refusals import refusal, refused

HASHED = hash_with(bytes(32))
LIMITS = HistoryLimits()
COLUMNS = "JobID|UID|GID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|AllocNodes"
NOW = 1_800_000_000


def sacct(*rows: Sequence[object]) -> str:
    return "\n".join([COLUMNS, *("|".join(map(str, row)) for row in rows)]) + "\n"


def job(name: str, submit: int, start: int = -1, end: int = -1, user: str = "1000", **more: object) -> SiteJob:
    state = State.completed if end >= 0 else State.running if start >= 0 else State.pending
    fields = {"group": "100", "run": max(end - start, 0), "request": 3600, "processors": 4, "state": state, "tasks": 1}
    return SiteJob(name, user, submit=submit, start=start, end=end, **{**fields, **more})  # type: ignore[arg-type]


def test_lines_of_sacct_become_jobs(tmp_path: Path) -> None:
    text = sacct(
        ["1", 1000, 100, "COMPLETED", NOW, NOW + 5, NOW + 65, 60, 10, 4, 16, 1],
        ["1.batch", "", "", "COMPLETED", NOW, NOW + 5, NOW + 65, 60, "", 4, 4, 1],
        ["2_[0-20%3]", 1000, 100, "PENDING", NOW, "Unknown", "Unknown", 0, 10, 2, 2, 0],
        ["3", 1001, 100, "CANCELLED by 0", NOW, "None", NOW + 9, 0, 10, 2, 2, 0],
        ["4", 1001, 100, "RUNNING", NOW, NOW + 1, "Unknown", 8, "UNLIMITED", 2, 2, 1],
        ["5", 1001, 100, "PENDING", NOW, "Unknown", "Unknown", 0, "Partition_Limit", 2, 2, 0],
        ["1", 1000, 100, "TIMEOUT", NOW, NOW + 500, NOW + 1100, 600, 10, 4, 16, 1],
    )
    (tmp_path / "sacct.txt").write_text(text)
    said: list[str] = []
    found = {one.job: one for one in read_jobs(tmp_path / "sacct.txt", notify=said.append)}
    assert said == []
    # One that waits without a limit has that of its partition, which sacct does not say yet; it is only counted.
    assert set(found) == {"1", "2_[0-20%3]", "3", "4", "5"}
    assert found["1"] == job("1", NOW, NOW + 500, NOW + 1100, run=600, request=600, state=State.timeout)
    assert (found["2_[0-20%3]"].tasks, found["4"].request, found["3"].start) == (21, 365 * 86_400, -1)


def test_the_components_of_a_het_job_are_one_job(tmp_path: Path) -> None:
    parts = [[f"20+{part}", 1000, 100, "COMPLETED", NOW, NOW + 5, NOW + 65, 60, 10, 4, 4, 1] for part in range(3)]
    other = ["21+0", 1000, 100, "RUNNING", NOW, NOW + 5, "Unknown", 60, 10, 4, 4, 1]
    (tmp_path / "sacct.txt").write_text(sacct(*parts, other))
    found = read_jobs(tmp_path / "sacct.txt")
    assert [(one.job, one.processors) for one in found] == [("20+0", 12), ("21+0", 4)]


def test_lines_that_cannot_be_read_are_said_and_of_none_else_nothing_is_made(tmp_path: Path) -> None:
    rows = [
        [job, 1000, 100, "COMPLETED", when, NOW, NOW + 60, 60, 10, 4, 4, 1] for job, when in enumerate([NOW, "9.1."])
    ]
    path, said = tmp_path / "sacct.txt", list[str]()
    path.write_text(sacct(*rows))
    assert [one.job for one in read_jobs(path, notify=said.append)] == ["0"]
    assert [words for words in said if "sacct.txt:3" in words and "'9.1.'" in words] == said
    assert len(said) == 1
    path.write_text(sacct(rows[1]))
    refused(TraceFormatError, "sacct.txt:2 Submit 9.1. SLURM_TIME_FORMAT", read_jobs, path)


def test_jobs_whose_limit_is_not_known_are_said(tmp_path: Path) -> None:
    rows = [
        [job, 1000, 100, "COMPLETED", NOW, NOW, NOW + 60, 60, limit, 4, 4, 1] for job, limit in enumerate([10, "", ""])
    ]
    path, said = tmp_path / "sacct.txt", list[str]()
    path.write_text(sacct(*rows))
    assert [job.job for job in read_jobs(path, notify=said.append)] == ["0"]
    (words,) = said
    assert "time limit is not known: 2 (the first: job 1)" in words


def test_a_job_that_is_over_at_a_time_that_nobody_knows_runs_no_more() -> None:
    history = History()
    rows = [job("1", NOW, NOW + 5, state=State.node_fail), job("2", NOW, NOW + 5)]
    assert update(history, rows, NOW + 100, HASHED, LIMITS)[:3] == (0, 0, 1)


def test_a_long_name_is_cut_where_luas_is_by_bytes() -> None:
    assert without_numbers("x" * 99 + "é12") == "x" * 99 + "é".encode()[:1].decode("utf-8", "surrogateescape")
    assert HASHED(without_numbers("x" * 99 + "é")) != HASHED("x" * 99)


def test_an_end_is_noted_once_and_in_its_order() -> None:
    history = History()
    first = [job("1", NOW, NOW, NOW + 50), job("2", NOW + 1, NOW + 1, NOW + 20), job("3", NOW + 2, NOW + 2)]
    assert update(history, first, NOW + 100, HASHED, LIMITS)[:3] == (2, 0, 1)
    # The third ends, and the accounting shows an earlier end only now.
    late = job("4", NOW + 3, NOW + 3, NOW + 30)
    again = [*first[:2], first[2]._replace(end=NOW + 150, run=148, state=State.failed), late]
    assert update(history, again, NOW + 200, HASHED, LIMITS)[:3] == (2, 0, 0)
    assert update(history, again, NOW + 300, HASHED, LIMITS).changed == ()
    user = history.users[HASHED("u1000")]
    assert [one.end - NOW for one in user.jobs] == [20, 50, 30, 150]
    assert user.started == (NOW + 3, 3600, 4, 0)
    assert user.jobs[-1] == Ended(NOW + 150, 3600, 4, 148, 0)
    assert history.groups[HASHED("g100")].count == history.shapes[HASHED("s3600/4")].count == 4


def test_what_was_cancelled_before_it_started_counts_nowhere_what_was_killed_for_the_time_that_it_ran() -> None:
    history = History()
    rows = [
        job("1", NOW, end=NOW + 40, state=State.cancelled, run=0),
        job("2", NOW + 1, NOW + 1, NOW + 61, state=State.cancelled),
        job("3", NOW + 2, NOW + 2, NOW + 32, state=State.timeout),
    ]
    assert update(history, rows, NOW + 100, HASHED, LIMITS)[:3] == (2, 0, 0)
    user = history.users[HASHED("u1000")]
    assert [(one.run, one.status) for one in user.jobs] == [(30, 0), (60, 5)]
    assert user.ended == history.groups[HASHED("g100")].count == history.shapes[HASHED("s3600/4")].count == 2


def test_what_happens_after_the_instant_is_left_to_the_next_update() -> None:
    history = History()
    rows = [job("1", NOW, NOW + 10, NOW + 20), job("2", NOW + 5), job("3", NOW + 30)]
    assert update(history, rows, NOW + 9, HASHED, LIMITS)[:3] == (0, 2, 0)
    user = history.users[HASHED("u1000")]
    assert (user.submitted, user.burst, user.started) == (NOW + 5, 1, None)
    assert update(history, rows, NOW + 15, HASHED, LIMITS)[:3] == (0, 1, 1)
    assert update(history, rows, NOW + 30, HASHED, LIMITS)[:3] == (1, 2, 0)
    assert (user.submitted, user.burst, user.ended) == (NOW + 30, 2, 1)
    refused(UsageError, "clock back 1800000030", update, history, rows, NOW, HASHED, LIMITS)


def test_a_run_time_that_cannot_be_is_the_time_since_the_submission() -> None:
    history = History()
    update(history, [job("1", NOW - 500, NOW - 400, NOW - 100, run=10**18)], NOW, HASHED, LIMITS)
    assert [ended.run for ended in history.users[HASHED("u1000")].jobs] == [400]


def test_names_tell_groups_apart_if_the_accounting_has_them(tmp_path: Path) -> None:
    columns, rows = COLUMNS.replace("JobID", "JobID|JobName"), []
    for at, name in enumerate(["step 7 of 12", "step 8 of 12", "other", ""]):
        times = [NOW + at, NOW + at, NOW + at + 60, 60]
        rows.append("|".join(map(str, [at + 1, name, 1000, 100, "COMPLETED", *times, 10, 4, 4, 1])))
    path, history = tmp_path / "sacct.txt", History()
    path.write_text("\n".join([columns, *rows]) + "\n")
    update(history, read_jobs(path), NOW + 900, HASHED, LIMITS)
    groups = history.users[HASHED("u1000")].groups
    steps = HASHED("nstep # of #")
    assert [groups[0, 600, 4, name].count for name in (steps, HASHED("nother"), "-")] == [2, 1, 1]
    assert (groups[3, 0, 0, steps].count, groups[4, 0, 0, "-"].count) == (2, 4)
    write_history(history, path, HASHED)
    assert read_history(path, HASHED).names
    assert "step" not in path.read_text()
    # Without the column nobody's name counts.
    update(history, [job("9", NOW, NOW, NOW + 1000)], NOW + 1000, HASHED, LIMITS)
    assert not history.names
    assert groups[3, 0, 0, "-"].count == 2


def test_an_array_is_as_many_submissions() -> None:
    history = History()
    update(
        history, [job("1_[0-4]", NOW, tasks=5), job("2", NOW + 599), job("3", NOW + 5000)], NOW + 600, HASHED, LIMITS
    )
    user = history.users[HASHED("u1000")]
    assert (user.waiting, user.burst) == (6, 5)


def test_means_forget() -> None:
    means = Means()
    for run in (100, 1000):
        means.note(Ended(NOW, 500, 1, run, 1))
    assert means.ln_run == pytest.approx((math.log(100) + math.log(1000)) / 2)
    assert (means.shortness, means.share) == pytest.approx(((0.1 + 0.01) / 2, (0.2 + 1.0) / 2))
    for _ in range(300):
        means.note(Ended(NOW, 500, 1, 0, 0))
    assert (means.ln_run, means.shortness) == pytest.approx((0.0, 1.0), abs=1e-9)


def long_history() -> History:
    history = History()
    rows = [
        job(
            str(at),
            NOW + at,
            NOW + at + 1,
            NOW + 2 * at + 10,
            user=str(70_400_500 + at % 7),
            request=60 * (1 + at % 40),
        )
        for at in range(1000)
    ]
    update(history, [*rows, job("w", NOW + 3000)], NOW + 3000, HASHED, LIMITS)
    return history


def test_a_file_comes_back_as_it_was_and_has_no_names(tmp_path: Path) -> None:
    path, history = tmp_path / "history", long_history()
    assert max(len(user.jobs) for user in history.users.values()) == MOST_JOBS
    write_history(history, path, HASHED)
    found = read_history(path, HASHED)
    # Nothing waits or runs of most users: theirs is read when something happens.
    assert (len(found.users), len(found.asleep)) == (1, 7)
    assert all(found.asleep[name].seen == history.users[name].seen for name in found.asleep)
    write_history(found, tmp_path / "again", HASHED)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    for name in list(found.asleep):
        found.user(name)
    assert found == history
    assert not any(str(number) in path.read_text() for number in range(70_400_500, 70_400_507))
    lines = path.read_bytes()[:HEADER].decode(), path.read_bytes()[HEADER : HEADER + LINE].decode()
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    assert read_history(tmp_path / "none", HASHED) == History()


def test_what_is_kept_is_bounded() -> None:
    history = long_history()
    history.forget(HistoryLimits(users=3, user_groups=5, groups=1, noted=10))
    assert (len(history.users), len(history.groups), len(history.shapes), len(history.noted)) == (3, 1, 10, 10)
    assert all(len(user.groups) <= 5 for user in history.users.values())
    # Those that went are not noted again.
    assert history.floor == min(history.noted.values()) - 2
    before = {name: user.ended for name, user in history.users.items()}
    update(history, [job("5", NOW + 5, NOW + 6, NOW + 20, user="70400505")], NOW + 4000, HASHED, LIMITS)
    assert {name: user.ended for name, user in history.users.items() if name in before} == before
    refused(UsageError, "users 0 history", HistoryLimits, users=0)


def test_users_asleep_go_and_come_like_others(tmp_path: Path) -> None:
    path = tmp_path / "history"
    write_history(long_history(), path, HASHED)
    found = read_history(path, HASHED)
    found.forget(HistoryLimits(users=3))
    assert (len(found.users), len(found.asleep)) == (1, 2)
    awake, rested = long_history(), read_history(path, HASHED)
    more = [job(f"n{at}", NOW + 4000 + at, NOW + 4100, NOW + 4200, user=str(70_400_500 + at)) for at in range(3)]
    for history in (awake, rested):
        update(history, more, NOW + 5000, HASHED, LIMITS)
    assert len(rested.asleep) == 4
    write_history(awake, tmp_path / "one", HASHED)
    write_history(rested, tmp_path / "other", HASHED)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_what_a_stranger_wrote_of_a_user_is_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "history"
    for wrong in ("U 0 0 1 5 0\nJ 1 2\n", "U 0 0 1 5 0\nL 5 5 5 5\nJ 7 7 7 7 1\nK 1 x 1 - 0 0 0 1 1\n"):
        history = History(NOW)
        history.asleep[HASHED("u1000")] = Asleep(5, wrong, lambda _: UserPast())
        write_history(history, path, HASHED)
        with refusal(InputError, "history damaged"):
            update(read_history(path, HASHED), [job("1", NOW + 5)], NOW + 9, HASHED, LIMITS)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-5], "history bytes place 81,003"),
        (lambda data: b"what is this\n" + data, "history begin"),
        (lambda data: data.replace(b"-history 1 ", b"-history 9 "), "history version 9"),
        (lambda data: data.replace(b"features 1 ", b"features 7 "), "history set 7"),
        (lambda data: data[:-2] + b"X\n", "history damaged"),
        (lambda data: data[: HEADER + 2] + b"-" + data[HEADER + 3 :], "history entry 1"),
    ],
)
def test_a_damaged_file_is_named_with_the_cure(tmp_path: Path, damage: object, words: str) -> None:
    path = tmp_path / "history"
    write_history(long_history(), path, HASHED)
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with refusal(InputError, words) as error:
        read_history(path, HASHED)
    assert "remove it" in str(error.value)


def test_the_key_is_made_once_and_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "history"
    key = key_of(path)
    assert key_of(path) == key
    assert stat.S_IMODE(key_path(path).stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["history.key"]
    write_history(long_history(), path, hash_with(key))
    refused(InputError, "history history.key", read_history, path, HASHED)
    key_path(path).write_text("no key")
    refused(InputError, "history.key 64 hexadecimal", key_of, path)
    refused(OutputError, "history exist", key_of, tmp_path / "nowhere/history")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    refused(OutputError, "history choose", key_of, tmp_path / "history")


def test_wrong_accounting_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    wrong = {
        "": "sacct.txt sacct fail",
        "JobID|UID|State|Submit|Start|End|AllocCPUS\n": "sacct.txt:1 TimelimitRaw column",
        sacct(["1", "ann", 100, "RUNNING", NOW, NOW, "Unknown", 0, 10, 4, 4, 1]): "sacct.txt:2 UID column ann",
    }
    for text, words in wrong.items():
        path.write_text(text)
        refused(TraceFormatError, words, read_jobs, path)
