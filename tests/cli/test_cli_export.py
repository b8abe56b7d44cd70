"""The command ``policyfactory export``."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from pathlib import Path

import pytest

from policyfactory.exports import export as exporting
from policyfactory.policy.policy import Epoch
from policyfactory.policy.store import CATALOGUE, Model, load_model, save_model
from policyfactory.prediction.store import save_forests
from refusals import tell
from site_history import POLICY, small_forests

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
    assert f"written: {file}, F1 as" in done.stderr
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
    assert "\nSettings:\n  # Where slurm.conf has one of these lines already" in done.stderr
    assert "\n  JobSubmitPlugins=lua\n" in done.stderr
    assert "its limits: see the head of job_submit.lua (or --verbose)." in done.stderr
    assert "Install:" not in done.stderr
    assert "written: job_submit.uninstall.sh, which takes it out again" in done.stderr
    assert len(done.stderr.splitlines()) < 18
    assert "ties: 0 % of neighbouring scores share a whole number" in done.stderr
    assert "(measured on 1,000,000 draws from the model workload)" in done.stderr
    # Nothing is written twice without being asked for.
    again = run("export", "SAF", "-o", "job_submit.lua", code=1)
    assert "job_submit.lua: exists; add --overwrite" in again.stderr
    whole = run("export", "SAF", "-o", "job_submit.lua", "--overwrite", "--verbose").stderr
    assert (tmp_path / "job_submit.lua").read_text() == text
    for title in ("Settings:", "Install:", "Roll back:", "Limits:"):
        assert f"\n{title}\n" in whole
        assert f"-- {title}\n" in text
    for line in whole.split("\nno --workload")[0].splitlines():
        if line.startswith("  "):
            assert line.strip() in text
    # Where it goes to stdout, there is no name to give.
    assert "see the head of the file (or --verbose)." in run("export", "SAF").stderr


def test_the_head_is_that_of_the_file_that_has_it(run) -> None:
    done = run("export", "SAF", "--to", "slurm-site-factor-c", "-o", "plugin")
    assert f"see the head of {Path('plugin') / 'README.md'} (or --verbose)." in done.stderr


def test_the_range_is_learnt_from_the_clusters_own_jobs(run, tmp_path: Path) -> None:
    own_log(tmp_path)
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
    assert [(row[0], row[3]) for row in rows] == [("1", "3"), ("2", "2"), ("3", "1")]
    # The file itself is written, and its installation told, only where an output says.
    assert "function" not in done.stdout
    assert "Install:" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["queue.csv"]


def test_a_preview_on_a_narrow_screen_cuts_no_number(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyfactory.report.terminal._PIPED_WIDTH", 80)
    (tmp_path / "queue.csv").write_text(QUEUE)
    wide = json.loads(run("export", "SAF", "--preview", "queue.csv", "--json").stdout)
    lines = run("export", "SAF", "--preview", "queue.csv").stdout.splitlines()
    parts = [number for number, line in enumerate(lines) if line.startswith("The queue by SAF")]
    assert len(parts) > 1
    assert all(lines[number].endswith("(continued)") for number in parts[1:])
    assert sum(line.split()[:2] == ["1", "7"] for line in lines) == len(parts)
    assert any(line.split()[-1] == f"{wide['jobs'][0]['priority']:.10g}" for line in lines if line.strip())


def test_a_preview_warns_of_what_is_lost(run, tmp_path: Path) -> None:
    (tmp_path / "queue.csv").write_text(QUEUE)
    arguments = ["--threshold", "30m", "--preview", "queue.csv"]
    done = run("export", "SAF", *arguments)
    assert "warning: The policy's threshold is left out: jobs that have waited longer than 30m do not" in done.stderr
    assert " late" not in done.stdout
    now = "waits are counted up to the latest submission in the queue, 2026-01-02 00:00:00 UTC; --at says"
    assert now in run("export", "SAF", *arguments, "--time-zone", "UTC").stderr
    assert now not in run("export", "SAF", *arguments, "--time-zone", "UTC", "--at", "2026-01-03").stderr
    assert "threshold" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Compared by the formula's number alone: the site's other factors")
    able = run("export", "SAF", "--to", "oar", *arguments)
    assert "warning" not in able.stderr
    assert "33m 20s late" in able.stdout
    plain = run("export", "SAF", "--threshold", "30m")
    assert "warning: The policy's threshold is left out" in plain.stderr
    nice = run("export", "SAF", "--to", "slurm-nice", "--preview", "queue.csv").stdout
    assert "The number shown is the job's priority of today" in nice.splitlines()[-1]


def test_a_preview_counts_jobs_of_before_the_epoch(run, tmp_path: Path) -> None:
    (tmp_path / "queue.csv").write_text(QUEUE)
    done = run("export", "F1", "--to", "python", "--epoch", "1767311000", "--preview", "queue.csv")
    assert "Submitted before the epoch, and counted as submitted at it: 1 job." in done.stdout


def test_when_a_queue_was_printed_is_in_its_own_zone(run, tmp_path: Path) -> None:
    (tmp_path / "queue.csv").write_text("job,submit,limit,cpus\na,2026-07-01T12:00:00,60,1\nb,1782869999,60,2\n")
    arguments = ["export", "SAF", "--to", "c", "--preview", "queue.csv", "--time-zone", "Asia/Tokyo", "--json"]
    assert json.loads(run(*arguments, "--at", "2026-07-01T12:30").stdout)["at"] == 1_782_876_600


def test_a_preview_as_json_and_from_stdin(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "queue.csv").write_text(QUEUE)
    arguments = ["export", "F1", "--to", "python", "--json", "--at", "1767312100"]
    value = json.loads(run(*arguments, "--preview", "queue.csv").stdout)
    assert value["at"] == 1767312100
    assert [job["job"] for job in value["jobs"]] == ["7", "8", "9"]
    assert [job["waited"] for job in value["jobs"]] == [2100, 200, 100]
    assert value["compared"].startswith("Compared by the formula's number alone")
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
        (["F1", "--to", "xyz"], 2, "unknown target 'xyz'; the targets are slurm-site-factor-lua slurm-priority-lua"),
        (["F1", "--to", "pyhton"], 2, "unknown target 'pyhton'; did you mean python? The targets are slurm"),
        (["F1", "--to", "slurm-lua"], 2, "did you mean slurm-site-factor-lua or slurm-priority-lua? The targets"),
        (["SAF", "--weight", "1"], 2, "--weight 1: expected a whole number, 2 to 2,000,000,000"),
        (["SAF", "--weight", "2000000001"], 2, "--weight 2000000001: expected a whole number, 2 to"),
        (["SAF", "--to", "pbs", "--weight", "9"], 2, "--weight: pbs makes no whole numbers of the scores of SAF"),
        (["SAF", "--to", "python", "--weight", "9"], 2, "--weight: python makes no whole numbers"),
        (["."], 2, ".: that is a folder; name a model file in it"),
        (["F1", "--to", "c", "--epoch", "9999-12-31"], 2, "--epoch '9999-12-31' is outside the years 1970 to 2100"),
        (["F1", "--begin", "0001-01-01"], 2, "--begin '0001-01-01' is outside the years"),
        (["F9", "--to", "c"], 2, "unknown policy 'F9'; did you mean F"),
        (["F1"], 1, "give the date from which it counts: --epoch 2026-01-01"),
        (["F1", "--to", "pbs", "--epoch", "soon"], 2, "--epoch 'soon': no such date"),
        (["F1", "--to", "c", "--processors", "0"], 2, "--processors 0: a machine has at least 1 processor"),
        (["F1", "--to", "c", "-o", "none/f1.c"], 1, "the folder none does not exist; create it first"),
        (["none.json", "--to", "c"], 1, "no such file"),
        (["SAF", "--workload", "none.swf"], 1, "none.swf"),
        (["F1", "--epoch", "oldest-waiting"], 1, "which slurm-site-factor-lua cannot do; give a fixed date"),
        (["SAF", "--threshold", "20"], 2, "'20' has no unit"),
        (["SAF", "--life", "30"], 2, "--life '30' has no unit"),
        (["SAF", "--threshold", "foo"], 2, "--threshold 'foo' is not a duration; write"),
        (["SAF", "--life", "inf"], 2, "--life inf"),
        (["F1", "--epoch", "2026-01-01", "--begin", "2025-01-01"], 2, "--begin 2025-01-01 00:00:00 UTC is 365d before"),
        (
            ["SAF", "--to", "python", "--estimate-missing", "drop"],
            2,
            "--estimate-missing: for the jobs of --workload LOG",
        ),
        (["SAF", "--force-processors"], 2, "--force-processors: for the jobs of --workload LOG"),
        (["SAF", "--json"], 2, "belong to a preview; add --preview"),
        (["SAF", "--to", "c", "--preview", "none.csv"], 1, "none.csv: no such file"),
        (["SAF", "--to", "c", "--preview", "q", "--time-zone", "Mars"], 2, "--time-zone 'Mars': no such time zone"),
        (["SAF", "--to", "c", "--preview", "/dev/zero"], 1, "/dev/zero: is a device or a socket"),
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


def test_the_weight_is_the_largest_number(run, tmp_path: Path) -> None:
    done = run("export", "SAF", "--weight", "50000", "-o", "job_submit.lua")
    text = (tmp_path / "job_submit.lua").read_text()
    assert "export SAF --to slurm-site-factor-lua --weight 50000" in text
    assert "become whole numbers up to 50000, higher first" in text
    assert "are spread over the whole numbers to 50,000" in done.stderr
    assert "ties: 0.1" in done.stderr
    # Few numbers were asked for: what they cost is a note.
    few = run("export", "SAF", "--weight", "50").stderr
    assert "these ties are made by --weight 50: of jobs with one number the earlier submission goes first" in few
    assert "warning" not in few


def test_an_epoch_that_has_not_come_is_refused(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_now", lambda: 1_767_225_600 - 90_000)
    message = run("export", "F1", "--to", "c", "--epoch", "2026-01-01", code=2).stderr
    assert "--epoch 2026-01-01 00:00:00 UTC is in the future" in message
    assert run("export", "SAF", "--to", "c", "--epoch", "2026-01-01").stdout
    # The clocks of two computers need not agree.
    monkeypatch.setattr(exporting, "_now", lambda: 1_767_225_600 - 80_000)
    first = run("export", "F1", "--to", "c", "--epoch", "2026-01-01")
    # The file does not know what time it is.
    monkeypatch.setattr(exporting, "_now", lambda: 1_900_000_000)
    assert run("export", "F1", "--to", "c", "--epoch", "2026-01-01").stdout == first.stdout


def test_a_life_that_is_over_is_said(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_log(tmp_path)
    monkeypatch.setattr(exporting, "_now", lambda: 1_767_225_600 + 400 * 86_400)
    arguments = ["export", "F1", "--epoch", "2026-01-01", "--workload", "own.swf"]
    over = run(*arguments)
    span = "submissions from 2026-01-01 00:00:00 UTC to 2027-01-01 00:00:00 UTC"
    assert f"warning: the range of scores was learnt for {span}, which is over" in over.stderr
    assert "submitted from 2026-01-01 00:00:00 UTC to 2027-01-01 00:00:00 UTC (r from 0 to" in over.stdout
    assert "which is over" not in run(*arguments, "--life", "500d").stderr
    assert "which is over" not in run(*arguments, "--begin", "2027-01-01").stderr
    assert "which is over" not in run("export", "SAF", "--epoch", "2026-01-01", "--workload", "own.swf").stderr


@pytest.mark.parametrize("target", ["slurm-site-factor-lua", "gridengine", "pbs", "python", "json"])
@pytest.mark.parametrize(("begin", "day"), [("2026-01-05", "2026-01-05"), ("2099-01-01", "2026-01-11")])
def test_a_day_of_use_needs_a_day_from_which_r_counts(
    run, monkeypatch: pytest.MonkeyPatch, begin: str, day: str, target: str
) -> None:
    monkeypatch.setattr(exporting, "_now", lambda: 1_767_225_600 + 10 * 86_400)
    failed = run("export", "F1", "--to", target, "--begin", begin, code=2)
    tell(" ".join(failed.stderr.split()), f"--begin {begin} F1 --epoch {day}")
    # What is proposed is taken.
    run("export", "F1", "--to", "json", "--begin", begin, "--epoch", day)


def test_options_without_effect_are_said(run, tmp_path: Path) -> None:
    own_log(tmp_path)
    arguments = ["--epoch", "2026-01-01", "--begin", "2026-02-01", "--life", "30d", "--nodes", "4"]
    done = run("export", "SAF", *arguments, "--workload", "own.swf")
    assert "without effect, as the formula of SAF has no r: --epoch, --begin, --life\n" in done.stderr
    assert "without effect for slurm-site-factor-lua: --nodes\n" in done.stderr
    idle = run("export", "SAF", "--to", "python", "--workload", "own.swf").stderr
    assert idle == "without effect for python: --workload\n"
    idle = run("export", "F1", "--to", "python", *arguments[:4]).stderr
    assert idle == "without effect for python: --begin\n"
    used = run("export", "F1", "--epoch", "2026-01-01", "--life", "300d", "--workload", "own.swf").stderr
    assert "without effect" not in used


def test_a_log_of_whole_nodes_is_said(run, tmp_path: Path) -> None:
    own_log(tmp_path, "; Note: unit: nodes, of 4 processors each\n")
    said = "warning: own.swf counts whole nodes, and the scheduler's script counts processors as q: import"
    assert said in run("export", "SAF", "--workload", "own.swf").stderr
    assert said in run("export", "SAF", "--to", "pbs", "--workload", "own.swf").stderr
    assert "whole nodes" not in run("export", "SAF", "--to", "c", "--workload", "own.swf").stderr


def test_what_was_measured_without_a_log_is_said(run) -> None:
    weights = run("export", "SAF", "--to", "slurm-weights", "--processors", "64").stderr
    assert "no --workload LOG: it was measured on jobs of the model workload\n" in weights
    assert "range of scores" not in weights
    assert "warning: NOT exact: " in weights
    assert "without effect" not in run("export", "FCFS", "--to", "slurm-weights", "--nodes", "4").stderr


def test_files_of_an_earlier_export_are_named_and_stay(run, tmp_path: Path) -> None:
    (tmp_path / "ge").mkdir()
    (tmp_path / "ge" / "mine.txt").write_text("by hand")
    first = run("export", "LCFS", "--to", "gridengine", "-o", "ge")
    before = {path.name for path in (tmp_path / "ge").iterdir()}
    again = run("export", "LCFS", "--to", "gridengine", "-o", "ge", "--overwrite")
    assert "another export" not in first.stderr + again.stderr
    done = run("export", "SAF", "--to", "slurm-site-factor-c", "-o", "ge", "--overwrite")
    left = ", ".join(sorted(before - {"mine.txt"}))
    assert f"warning: ge has files of another export as well, which stay: {left}\n" in done.stderr
    assert before < {path.name for path in (tmp_path / "ge").iterdir()}


def test_a_folder_is_no_model_but_may_have_one(run, tmp_path: Path) -> None:
    (tmp_path / "learned").mkdir()
    assert "learned: that is a folder; name a model file" in run("export", "learned", code=2).stderr
    run("export", "SAF", "--to", "json", "-o", "learned/policy.json")
    message = run("export", "learned", code=2).stderr
    assert f"did you mean {Path('learned') / 'policy.json'}?" in message
    # A policy of the catalogue is not hidden by a folder of its name.
    (tmp_path / "SAF").mkdir()
    assert run("export", "SAF", "--to", "c").stdout


def own_log(folder: Path, head: str = "") -> None:
    lines = [
        f"{i} {i * 10} 5 50 {1 + i % 4} -1 -1 {1 + i % 4} {60 * (1 + i % 7)} -1 1 1 1 1 1 1 -1 -1" for i in range(50)
    ]
    (folder / "own.swf").write_text(f"; MaxProcs: 4\n{head}" + "\n".join(lines) + "\n")


def test_log_only_is_said_to_log_only_and_a_folder_of_files_in_one_line(run) -> None:
    only = run("export", "SAF", "--log-only", "-o", "log_only.lua").stderr
    assert "written: log_only.lua, SAF as Slurm: LOG ONLY" in only
    assert "that sets site_factor" not in only
    whole = run("export", "SAF", "--to", "slurm-site-factor-c", "-o", "plugin").stderr
    assert whole.count("C plugin") == 1
    assert whole.count("written: ") == 2
    assert "plugin/Makefile, plugin/README.md, SAF as Slurm" in whole


def test_a_formula_with_predictions_carries_its_forests(run, tmp_path: Path) -> None:
    save_model(Model(POLICY), tmp_path / "predicted.json")
    save_forests(small_forests(), tmp_path / "model.json", provenance={})
    words = ("export", "predicted.json", "--state", "/var/history", "--output")
    run(*words, "job_submit.lua", "--predictor", "model.json")
    text = (tmp_path / "job_submit.lua").read_text()
    digest = hashlib.sha256((tmp_path / "model.json").read_bytes()).hexdigest()
    assert f"-- Predictor: model.json, SHA-256 {digest}, " in text
    assert "--predictor model.json --state /var/history" in text
    assert 'local STATE = "/var/history"\nlocal STALE = 21600.0' in text


# The longest wait of the log is simulated; where predictions change meanwhile the kernel of Slurm's rules is another,
# which takes half a minute to compile.
@pytest.mark.slow
def test_with_a_log_its_forests_know_the_names_of_partitions(run, tmp_path: Path) -> None:
    save_model(Model(POLICY), tmp_path / "predicted.json")
    save_forests(small_forests(), tmp_path / "model.json", provenance={})
    words = ("export", "predicted.json", "--state", "/var/history", "--output")
    log = "; Queue: 1 batch\n; Queue: 7 a]]b\n; MaxProcs: 8\n" + "".join(
        f"{job} {job * 100} 5 50 2 -1 -1 2 {600 * job} -1 1 {job % 3} 1 -1 1 -1 -1 -1\n" for job in range(1, 40)
    )
    (tmp_path / "site.swf").write_text(log)
    run(*words, "named.lua", "--predictor", "model.json", "--workload", "site.swf", "--stale", "30m")
    text = (tmp_path / "named.lua").read_text()
    assert 'local QUEUES = {["a]]b"] = 7, ["batch"] = 1}' in text
    assert "local STALE = 1800.0" in text


def test_wrong_predictors_are_named(run, tmp_path: Path) -> None:
    save_model(Model(POLICY), tmp_path / "predicted.json")
    save_forests(small_forests(), tmp_path / "model.json", provenance={})
    other = json.loads((tmp_path / "model.json").read_text()) | {"feature_set": 99}
    (tmp_path / "other.json").write_text(json.dumps(other))

    def refused(*words: str, code: int = 1) -> str:
        return str(run("export", "predicted.json", *words, code=code).stderr)

    given = ("--predictor", "model.json")
    assert "give both: --predictor model.json --state" in refused()
    assert "give both: --predictor model.json --state" in refused(*given)
    assert "give an absolute path" in refused(*given, "--state", "history", code=2)
    assert "--stale" in refused(*given, "--state", "/history", "--stale", "soon", code=2)
    assert "give a time above 0" in refused(*given, "--state", "/history", "--stale", "0s", code=2)
    assert "99" in refused("--predictor", "other.json", "--state", "/history")
    assert "no such file" in refused("--predictor", "none.json", "--state", "/history")
    assert "a target that has them" in refused(*given, "--state", "/history", "--to", "pbs")
    idle = run("export", "SAF", *given, "--state", "/history").stderr
    assert "without effect for slurm-site-factor-lua: --predictor, --state" in idle
