"""``policyfactory generate`` as a user runs it: results, interruptions, wrong use."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from policyfactory.core.files import exclusive
from policyfactory.trials.table import read_score_table

SMALL = ("--tuples", "3", "--trials", "512")


@pytest.fixture
def trace(shared) -> Path:
    return shared("traces/lublin_256.swf")


def test_without_a_log_the_embedded_workload_is_scored(run, tmp_path):
    done = run("generate", *SMALL)
    table = read_score_table(tmp_path / "training_data" / "lublin-256.csv")
    assert (len(table), table.tuples) == (96, 3)
    assert table.origin.startswith("Lublin-Feitelson")
    assert "jobs scored" in done.stdout
    assert "standard error of a score" in done.stdout
    assert "no log given" in done.stderr
    again = run("generate", *SMALL)
    assert "is complete; nothing was left to do" in again.stderr


def test_a_log_is_scored_with_every_option(run, tmp_path, trace):
    arguments = ("generate", trace, *SMALL, "--state-size", "8", "--queue-size", "16", "--estimator", "paper")
    done = run(*arguments, "--seed", "7", "--workers", "2", "--processors", "300", "--output", "t.csv")
    table = read_score_table(tmp_path / "t.csv")
    assert (len(table), table.tuples) == (48, 3)
    manifest = json.loads((tmp_path / "t.manifest.json").read_text())
    parameters = manifest["parameters"]
    assert {key: parameters[key] for key in ("estimator", "machine", "queue_size", "state_size", "trials", "seed")} == {
        "estimator": "paper", "machine": 300, "queue_size": 16, "state_size": 8, "trials": 512, "seed": 7,
    }  # fmt: skip
    assert set(manifest["inputs"]) == {"lublin_256", "lublin_256.swf"}
    assert manifest["command"].startswith("policyfactory generate ")
    assert "10,000 of 10,000 jobs kept" in done.stderr
    # The last state of the progress bar: tuples, speed, time left.
    assert re.search(r"3/3 .*trials/s .*left", done.stderr)


def test_trials_that_are_no_whole_blocks_are_rounded_up_and_it_is_said(run, trace):
    done = run("generate", trace, "--tuples", "2", "--trials", "300", "-o", "t.csv")
    words = "--trials 300 becomes 384: the stratified estimator runs whole blocks of 128 (4 x --queue-size)"
    assert words in " ".join(done.stderr.split())
    assert "becomes" not in run("generate", trace, "--tuples", "2", "--trials", "384", "-o", "u.csv").stderr


def test_a_smaller_machine_drops_the_jobs_that_do_not_fit_and_says_so(run, trace):
    done = run("generate", trace, *SMALL, "--processors", "64", "-o", "t.csv")
    dropped = re.search(r"([\d,]+) of 10,000 jobs kept", done.stderr)
    assert dropped is not None
    assert int(dropped[1].replace(",", "")) < 10_000


def test_the_model_makes_a_workload_for_any_machine(run, tmp_path):
    run("generate", *SMALL, "--processors", "100", "-o", "t.csv")
    assert json.loads((tmp_path / "t.manifest.json").read_text())["parameters"]["machine"] == 100
    assert read_score_table(tmp_path / "t.csv").q.max() <= 100


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-m", "policyfactory", "generate", *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_tuples(process: subprocess.Popen[str], partial: Path, count: int) -> None:
    """Wait until ``count`` tuples are on disk."""
    for _ in range(6000):
        if partial.exists() and partial.read_bytes().count(b"\n") > count:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.kill()
    pytest.fail("no tuple was finished in a minute")


# Long enough that a signal finds the run at work: a tenth of a second a tuple.
LONG = ("--tuples", "30", "--trials", "800000", "--output", "t.csv")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("undisturbed")
    process = start(folder, *LONG, "--workers", "1")
    process.communicate(timeout=600)
    assert process.returncode == 0
    return (folder / "t.csv").read_bytes()


@pytest.mark.fault
@pytest.mark.parametrize("jobs", ["1", "4"])
def test_after_kill_9_the_same_command_ends_with_the_same_bytes(run, tmp_path, undisturbed, jobs):
    process = start(tmp_path, *LONG, "--workers", jobs)
    wait_for_tuples(process, tmp_path / "t.csv.partial", 2)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=600)
    kept = (tmp_path / "t.csv.partial").read_bytes().count(b"\n") - 1
    assert not (tmp_path / "t.csv").exists()
    assert 2 <= kept < 30
    done = run("generate", *LONG, "--workers", jobs)
    assert f"{kept} tuples were finished by an earlier run" in done.stderr
    assert (tmp_path / "t.csv").read_bytes() == undisturbed
    assert not (tmp_path / "t.csv.partial").exists()
    assert read_score_table(tmp_path / "t.csv").tuples == 30


@pytest.mark.fault
def test_ctrl_c_says_what_is_kept_and_how_to_go_on(run, tmp_path, undisturbed):
    process = start(tmp_path, *LONG, "--workers", "2")
    wait_for_tuples(process, tmp_path / "t.csv.partial", 3)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Traceback" not in output
    kept = re.search(
        r"stopped by SIGINT: (\d+) of 30 tuples are kept in t.csv.partial; the same command goes on", output
    )
    assert kept is not None, output
    assert int(kept[1]) >= 3
    run("generate", *LONG, "--workers", "2")
    assert (tmp_path / "t.csv").read_bytes() == undisturbed


def test_two_runs_on_one_output(run, tmp_path):
    with exclusive(tmp_path / "t.csv"):
        assert "another run is writing it" in run("generate", *SMALL, "--output", "t.csv", code=1).stderr


def test_a_table_of_other_options_is_not_touched(run, tmp_path):
    run("generate", *SMALL, "--output", "t.csv")
    before = (tmp_path / "t.csv").read_bytes()
    output = run("generate", "--tuples", "4", "--trials", "512", "--output", "t.csv", code=1).stderr
    assert "t.csv: exists and was made with --tuples 3 (now 4); --overwrite replaces it" in output
    assert (tmp_path / "t.csv").read_bytes() == before


def test_where_all_jobs_are_alike_nobody_is_said_not_to_wait(run, tmp_path):
    lines = [f"{n} {10 * n} 0 3600 8 -1 -1 8 3600 -1 1 1 1 -1 1 -1 -1 -1\n" for n in range(1, 61)]
    (tmp_path / "alike.swf").write_text("; MaxProcs: 8\n; UnixStartTime: 0\n" + "".join(lines))
    done = run("generate", "alike.swf", *SMALL, "--output", "t.csv")
    assert "all jobs are alike" in done.stdout
    assert "machine is too large" not in done.stderr
    assert "nothing to learn" in done.stderr
    assert "nothing to learn" in run("fit", "t.csv", code=1).stderr


def test_convergence_is_drawn_and_tabulated(run, tmp_path):
    arguments = ("--convergence", "--trials", "4000", "--repeats", "3", "--tuples", "1")
    done = run("generate", *arguments, "--output", "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    lines = (tmp_path / "c.csv").read_text().splitlines()
    assert lines[0] == "trials,estimator,spread,stated,trials_per_second"
    assert len(lines) == 7
    for count in ("1,000", "2,000", "4,000"):
        assert count in done.stdout
    assert "gain" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("none.swf",), 1, "no such file"),
        ((".",), 1, "is a directory"),
        (("empty.swf",), 1, "empty.swf"),
        (("cut.swf.gz",), 1, "cut.swf.gz"),
        (("short.swf", "-o", "t.csv"), 1, "needs 16 + 32 = 48 consecutive jobs, the workload has 40"),
        (("-o", "folder.csv"), 1, "is a directory"),
        (("-o", "none/t.csv"), 1, "does not exist; create it first"),
        (("-o", "t.txt"), 2, "name it t.csv"),
        (("--convergence", "-o", "t.txt"), 2, "name a picture (.svg, .png, .pdf)"),
        (("--trials", "10"), 2, "needs at least 256"),
        (("--state-size", "-1"), 2, "--state-size -1: expected a whole number, 0 to 10,000"),
        (("none.swf", "--tuples", "0"), 2, "--tuples 0: expected a whole number, 1 to 10,000,000"),
        (("--workers", "0"), 2, "at least 1 worker"),
        (("--preset", "dirty"), 2, "dirty"),
        (("--repeats", "3"), 2, "--repeats is for --convergence"),
    ],
)
def test_wrong_use_is_reported_before_any_work(run, tmp_path, trace, arguments, code, message):
    lines = [line for line in trace.read_text().splitlines() if not line.startswith(";")]
    (tmp_path / "short.swf").write_text("; MaxProcs: 256\n" + "\n".join(lines[:40]) + "\n")
    (tmp_path / "empty.swf").write_text("")
    (tmp_path / "cut.swf.gz").write_bytes(gzip.compress(trace.read_bytes())[:2000])
    (tmp_path / "folder.csv").mkdir()
    if arguments[0] == "--preset":
        arguments = ("short.swf", *arguments)
    before = sorted(tmp_path.iterdir())
    output = run("generate", *arguments, code=code).stderr
    assert message in " ".join(output.replace("│", " ").split())
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_an_unwritable_folder_is_reported_before_any_work(run, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    assert "cannot write" in run("generate", *SMALL, "-o", "locked/t.csv", code=1).stderr


def test_output_that_cannot_be_written_is_reported_even_to_root(run):
    assert "cannot write" in run("generate", *SMALL, "-o", "/proc/t.csv", code=1).stderr
