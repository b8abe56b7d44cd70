"""The command ``policyfactory history``."""

from __future__ import annotations

from pathlib import Path

from policyfactory.prediction.history_file import hash_with, key_of, read_history

COLUMNS = "JobID|UID|GID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|AllocNodes"
NOW = 1_800_000_000
ROWS = (
    f"1|70400500|100|COMPLETED|{NOW}|{NOW + 5}|{NOW + 65}|60|10|4|4|1",
    f"2|70400501|100|FAILED|{NOW}|{NOW + 5}|{NOW + 665}|660|10|4|4|1",
    f"3|70400501|100|PENDING|{NOW + 9}|Unknown|Unknown|0|10|4|4|0",
)


def write(folder: Path, *rows: str, columns: str = COLUMNS) -> None:
    (folder / "sacct.txt").write_text("\n".join([columns, *rows]) + "\n")


def test_updates_go_on_from_one_another(run, tmp_path: Path) -> None:
    write(tmp_path, *ROWS)
    first = run("history", "update", "sacct.txt", "--state", "history", "--at", NOW + 100, "--renew", "--verbose")
    assert first.stdout.startswith("squeue -h -a -r -t PD -u 70400500 -o")
    assert "2 users; 1 jobs have ended since the last update, 1 wait and 1 run" in first.stderr
    again = run("history", "update", "sacct.txt", "--state", "history", "--at", NOW + 700, "--renew")
    assert again.stderr == ""
    assert again.stdout.count("\n") == again.stdout.count("-u 70400501 ") == 1
    history = read_history(tmp_path / "history", hash_with(key_of(tmp_path / "history")))
    assert history.instant == NOW + 700
    for user in ("u70400500", "u70400501"):
        past = history.user(hash_with(key_of(tmp_path / "history"))(user))
        assert past is not None
        assert past.ended == 1
    assert "704005" not in (tmp_path / "history").read_text()
    # Without a date: up to a second ago.
    run("history", "update", "sacct.txt", "--state", "now")
    assert read_history(tmp_path / "now", hash_with(key_of(tmp_path / "now"))).instant > NOW - 10**8


def test_the_accounting_is_not_replaced(run, tmp_path: Path) -> None:
    write(tmp_path, *ROWS)
    said = run("history", "update", "sacct.txt", "--state", "sacct.txt", code=2).stderr
    assert "is an input of this command" in said


def test_wrong_use_is_named_and_changes_nothing(run, tmp_path: Path) -> None:
    write(tmp_path, *ROWS)
    run("history", "update", "sacct.txt", "--state", "history", "--at", NOW + 100)
    before = (tmp_path / "history").read_bytes()

    def refused(*words: object, code: int = 1) -> str:
        said = run("history", "update", "sacct.txt", "--state", "history", *words, code=code).stderr
        assert (tmp_path / "history").read_bytes() == before
        return said

    assert "was the clock put back" in refused("--at", NOW, code=2)
    assert "users is 0" in refused("--users", 0, code=2)
    assert "no such file" in run("history", "update", "none.txt", "--state", "history", code=1).stderr
    assert "the folder" in run("history", "update", "sacct.txt", "--state", "none/history", code=1).stderr
    assert "pipe or a device" in run("history", "update", "sacct.txt", "--state", "/dev/null", code=1).stderr
    write(tmp_path, columns="JobID|UID|State|Submit|Start|End|AllocCPUS")
    assert "no column TimelimitRaw" in refused()
    (tmp_path / "sacct.txt").write_text("")
    assert "did sacct fail" in refused()
    write(tmp_path, *ROWS)
    before = before.replace(b"policyfactory-history 1 ", b"policyfactory-history 2 ")
    (tmp_path / "history").write_bytes(before)
    assert "version 2 of the format" in refused("--at", NOW + 200)
