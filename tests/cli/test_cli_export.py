"""The command ``policyfactory export``."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from pathlib import Path

import pytest

from policyfactory.policy.catalogue import CATALOGUE
from policyfactory.policy.policy import Epoch
from policyfactory.policy.store import load_model

PROGRAMS = {"python": ".py", "c": ".c", "lua": ".lua", "latex": ".tex", "json": ".json"}
QUEUE = """JOBID,PRIORITY,SUBMIT_TIME,TIME_LIMIT,CPUS,USER
9,9,1767312000,UNLIMITED,1,ann
8,8,1767311900,1:00:00,1,bob
7,7,1767310000,5:00,2,ann
6,0,1767310000,5:00,2,ann
"""


@pytest.mark.parametrize("target", PROGRAMS)
def test_every_program_to_stdout_and_to_a_file(run, tmp_path: Path, target: str) -> None:
    shown = run("export", "F1", "--to", target, "--epoch", "2026-01-01")
    assert shown.stderr == ""
    assert "log10" in shown.stdout
    file = f"f1{PROGRAMS[target]}"
    done = run("export", "F1", "--to", target.upper(), "-o", file, "--epoch", "2026-01-01")
    # The same command gives the same bytes, wherever they go.
    assert (tmp_path / file).read_text() == shown.stdout
    assert done.stdout == ""
    assert f"wrote {file}: F1 as" in done.stderr
    if target != "json":
        assert f"policyfactory export F1 --to {target} --epoch 2026-01-01" in shown.stdout


def test_an_exported_model_is_read_again(run, tmp_path: Path) -> None:
    run("export", "WFP3", "--to", "json", "--output", "wfp3.json")
    assert load_model(tmp_path / "wfp3.json").policy == CATALOGUE["WFP3"]
    out = run("export", "wfp3.json", "--to", "lua").stdout
    assert "local value = -pf_powi(w / p, 3) * q" in out
    digest = hashlib.sha256((tmp_path / "wfp3.json").read_bytes()).hexdigest()
    assert f"-- Model: wfp3.json, SHA-256 {digest}" in out


def test_an_open_epoch_is_said(run) -> None:
    assert "fix it with --epoch" in run("export", "F1", "--to", "c").stderr
    assert run("export", "SAF", "--to", "c").stderr == ""


def test_epoch_and_processors(run, tmp_path: Path) -> None:
    for text, seconds in [("2026-01-01", 1_767_225_600), ("2026-01-01T08:00+02:00", 1_767_247_200)]:
        value = json.loads(run("export", "F1", "--to", "json", "--epoch", text).stdout)
        assert value["epoch"] == {"rule": "fixed", "unix_time": seconds}
    rule = json.loads(run("export", "F1", "--to", "json", "--epoch", "oldest-waiting", "--threshold", "20h").stdout)
    assert rule["epoch"] == {"rule": "oldest-waiting", "unix_time": None}
    assert rule["threshold_s"] == 72_000
    value["formula"], value["name"] = "q/m + p", "share"
    (tmp_path / "share.json").write_text(json.dumps(value))
    assert "_div(q, 1024.0) + p" in run("export", "share.json", "--to", "python", "--processors", "1024").stdout
    assert Epoch("fixed", 5).describe() in run("export", "F1", "--to", "python", "--epoch", "5").stdout


def test_slurm_is_the_default_and_the_file_says_all_that_the_command_says(run, tmp_path: Path) -> None:
    done = run("export", "SAF", "-o", "job_submit.lua")
    text = (tmp_path / "job_submit.lua").read_text()
    assert "policyfactory export SAF --to slurm-site-factor-lua" in text
    assert "no --workload LOG: the range of scores is that of the model workload" in done.stderr
    for line in done.stderr.split("\nscores ")[0].splitlines():
        if line.startswith("  "):
            assert line.strip() in text
    for title in ("Settings:", "Install:", "Roll back:", "Limits:"):
        assert f"\n{title}\n" in done.stderr
        assert f"-- {title}\n" in text
    assert "ties: 0 % of neighbouring scores of 1,000,000 jobs share a whole number" in done.stderr
    # Nothing is written twice without being asked for.
    again = run("export", "SAF", "-o", "job_submit.lua", code=1)
    assert "job_submit.lua: exists; add --overwrite" in again.stderr
    run("export", "SAF", "-o", "job_submit.lua", "--overwrite")
    assert (tmp_path / "job_submit.lua").read_text() == text


def test_the_range_is_learnt_from_the_clusters_own_jobs(run, tmp_path: Path) -> None:
    lines = [
        f"{i} {i * 10} 5 50 {1 + i % 4} -1 -1 {1 + i % 4} {60 * (1 + i % 7)} -1 1 1 1 1 1 1 -1 -1" for i in range(50)
    ]
    (tmp_path / "own.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    done = run("export", "SAF", "--workload", "own.swf")
    assert "-- Range learnt from: own, 50 jobs (SHA-256 " in done.stdout
    assert "Scores from 60.0 to 1680.0 become whole numbers" in done.stdout
    assert "ties: 0 % of neighbouring scores" in done.stderr
    assert "no --workload" not in done.stderr


def test_a_policy_with_ties_is_said_to_be_on_another_scale(run) -> None:
    done = run("export", "QUA", "--epoch", "2026-01-01")
    assert "on a scale of logarithms, which keeps more of them apart in the same order" in done.stderr
    assert "on a scale of logarithms, in the same order" in done.stdout
    # Even so, jobs of one second differ by less than a number beside r**4.
    assert "warning: more than 1 % ties: give the cluster's own jobs (--workload LOG)" in done.stderr


def test_several_files_need_a_folder(run, tmp_path: Path) -> None:
    message = run("export", "SAF", "--to", "slurm-site-factor-c", code=2).stderr
    assert "name a folder: --output FOLDER" in message
    run("export", "SAF", "--to", "slurm-site-factor-c", "-o", "plugin")
    names = {path.name for path in (tmp_path / "plugin").iterdir()}
    assert "Makefile" in names
    assert len(names) > 2
    (tmp_path / "file").touch()
    message = run("export", "SAF", "--to", "slurm-site-factor-c", "-o", "file", code=1).stderr
    assert "file: is a file, and slurm-site-factor-c has" in message
    # One file goes into a folder under the name that the scheduler wants.
    run("export", "SAF", "-o", "plugin")
    assert (tmp_path / "plugin" / "job_submit.lua").exists()


def test_a_program_is_executable(run, tmp_path: Path) -> None:
    run("export", "SAF", "--to", "pbs", "-o", "saf.sh")
    assert os.access(tmp_path / "saf.sh", os.X_OK)


def test_a_preview_shows_who_moves(run, tmp_path: Path) -> None:
    (tmp_path / "queue.csv").write_text(QUEUE)
    done = run("export", "SAF", "--preview", "queue.csv")
    assert "held jobs (priority 0), left out as an export releases none: 1" in done.stderr
    assert "jobs without a time limit, ordered as if they asked for 365d: 1" in done.stderr
    assert "3 jobs: up 1, down 1, same place 1." in done.stdout
    assert "First to start: job 7 of ann (5m, q = 2, waited 33m 20s), from place 3 to 1." in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit() and "job" not in line]
    assert [row[:2] for row in rows] == [["1", "3"], ["2", "2"], ["3", "1"]]
    # The file itself is written, and its installation told, only where an output says.
    assert "function" not in done.stdout
    assert "Install:" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["queue.csv"]


def test_a_preview_as_json_and_from_stdin(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "queue.csv").write_text(QUEUE)
    arguments = ["export", "F1", "--to", "python", "--json", "--at", "1767312100"]
    value = json.loads(run(*arguments, "--preview", "queue.csv").stdout)
    assert value["at"] == 1767312100
    assert [job["job"] for job in value["jobs"]] == ["7", "8", "9"]
    assert [job["waited"] for job in value["jobs"]] == [2100, 200, 100]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(QUEUE.encode())))
    assert json.loads(run(*arguments, "--preview", "-").stdout) == value


def test_an_order_that_stays_is_said(run, tmp_path: Path) -> None:
    (tmp_path / "queue.csv").write_text("job,submit,limit,cpus\na,5,60,1\nb,6,60,2\n")
    assert "No change: 2 jobs in this order today already." in run(
        "export", "SAF", "--to", "python", "--preview", "queue.csv"
    ).stdout  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["F1", "--to", "perl"], 2, "unknown target 'perl'; choose one of slurm-site-factor-lua:"),
        (["F9", "--to", "c"], 2, "unknown policy 'F9'; did you mean F"),
        (["F1"], 1, "give the date from which it counts: --epoch 2026-01-01"),
        (["F1", "--to", "pbs", "--epoch", "soon"], 2, "epoch 'soon' is no date; write 2026-01-01"),
        (["F1", "--to", "c", "--processors", "0"], 2, "0 processors can not be meant"),
        (["F1", "--to", "c", "-o", "none/f1.c"], 1, "the folder none does not exist; create it first"),
        (["none.json", "--to", "c"], 1, "no such file"),
        (["SAF", "--workload", "none.swf"], 1, "none.swf"),
        (["F1", "--epoch", "oldest-waiting"], 1, "which slurm-site-factor-lua can not do; give a fixed date"),
        (["SAF", "--threshold", "20"], 2, "'20' has no unit"),
        (["SAF", "--life", "30"], 2, "'30' has no unit"),
        (["SAF", "--life", "inf"], 2, "--life inf"),
        (["F1", "--epoch", "2026-01-01", "--begin", "2025-01-01"], 2, "before its epoch, where r is negative"),
        (["SAF", "--json"], 2, "belong to a preview; add --preview"),
        (["SAF", "--to", "c", "--preview", "none.csv"], 1, "none.csv: no such file"),
        (["SAF", "--to", "c", "--preview", "q", "--time-zone", "Mars"], 2, "--time-zone 'Mars' is unknown"),
    ],
)
def test_wrong_use(run, tmp_path: Path, arguments: list[str], code: int, says: str) -> None:
    done = run("export", *arguments, code=code)
    assert says in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_what_the_fit_warned_of_is_said_and_stands_in_the_file(run, tmp_path: Path) -> None:
    value = json.loads(run("export", "SAF", "--to", "json").stdout)
    value["diagnostics"] = {"warnings": ["not monotone\x1b[31m ]]\nos.execute('x')"]}
    (tmp_path / "odd.json").write_text(json.dumps(value))
    done = run("export", "odd.json", "--to", "slurm-site-factor-lua")
    assert "warning: of the fit: not monotone?[31m ]]?os.execute('x')" in done.stderr
    said = [line for line in done.stdout.splitlines() if "Warning of the fit" in line]
    assert said == ["-- Warning of the fit: not monotone<U+001B>[31m ]]<U+000A>os.execute('x')"]
