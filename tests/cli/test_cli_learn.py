"""The command ``policyfactory learn``."""

from __future__ import annotations

import csv
import dataclasses
import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from daily_log import daily
from policyfactory.learning.learned import Learned
from policyfactory.learning.options import LearnOptions
from policyfactory.policy.store import load_model
from policyfactory.site.file import write_site
from policyfactory.site.model import NodeGroup, Partition, Site
from policyfactory.workload.swf.files import read_swf, write_swf
from policyfactory.workload.swf.log import log_of_workload
from small_fits import few_fits


@pytest.mark.usefixtures("blank_pictures")
def test_a_log_becomes_a_policy_tested_on_jobs_without_part_in_the_choice(run, tmp_path: Path) -> None:
    run("workload", "lublin", "--processors", 64, "--jobs", 1300, "--estimates", "tsafrir", "--output", "log.swf")
    few = ("--tuples", 32, "--trials", 320, "--threshold", "20h")
    with few_fits():
        done = run("learn", "log.swf", "--output", "my folder", *few)
    folder = tmp_path / "my folder"
    # The first quarter, the first half, and the second, in the log's order.
    numbers = [read_swf(folder / f"log-{part}.swf").job_id.tolist() for part in ("training", "choosing", "test")]
    assert [len(part) for part in numbers] == [325, 650, 650]
    assert numbers[0] == numbers[1][:325]
    assert numbers[1] + numbers[2] == read_swf(tmp_path / "log.swf").job_id.tolist()
    # Of the first half its second quarter is measured; of the whole log its second half.
    jobs = [
        json.loads((folder / part / "evaluation.json").read_text())["protocol"]["experiments"][0]["cases"][0]["jobs"]
        for part in ("choosing", "test")
    ]
    assert jobs == [325, 650]
    # The choice is that of the second part; the evidence is from the third.
    chosen = load_model(folder / "policy.json").policy.name
    choosing, test = (json.loads((folder / part / "evaluation.json").read_text()) for part in ("choosing", "test"))
    assert choosing["experiments"]["evaluation"]["winner"] == chosen
    assert chosen in {row["policy"] for row in test["experiments"]["evaluation"]["summary"]}
    assert (folder / "test" / "report.html").exists()
    assert f"{chosen} was the best of 13 policies on the second quarter of the jobs." in done.stdout
    assert "The verdict rests on 650 jobs" in done.stdout
    # The export is proposed where, and only where, it is shown to be better.
    assert ("Shown to be better" in done.stdout) == ("next: policyfactory export" in done.stderr)
    # All tables are in a file, on the screen there are the commands only.
    assert "$ policyfactory fit" in done.stdout
    assert "MAE" in (folder / "steps.txt").read_text()
    assert "MAE" not in done.stdout
    assert load_model(folder / "policy.json").policy.threshold == 72_000.0
    manifest = json.loads((folder / "policy.manifest.json").read_text())
    assert manifest["parameters"]["chosen"] == chosen
    # It is not replaced by accident.
    refused = run("learn", "log.swf", "--output", "my folder", *few, code=1)
    assert "policy.json: exists; add --overwrite" in refused.stderr
    # With the option it is, as a whole, the log of its steps included.
    steps = (folder / "steps.txt").read_text()
    with few_fits():
        again = run("learn", "log.swf", "--output", "my folder", *few, "--overwrite")
    assert "The verdict rests on 650 jobs" in again.stdout
    assert "The policy as a file" in steps
    assert (folder / "steps.txt").read_text().count("The policy as a file") == 1


def test_a_log_too_short_to_learn_from_is_refused_before_any_work(run, tmp_path: Path) -> None:
    run("workload", "lublin", "--processors", 64, "--jobs", 150, "--output", "short.swf")
    done = run("learn", "short.swf", "--estimate-missing", "runtime", code=1)
    assert "150 jobs are left after cleaning, and 200 are the least" in done.stderr
    assert "have no requested time" in run("learn", "short.swf", code=1).stderr
    assert not (tmp_path / "learned").exists()


def test_options_are_checked_before_any_work(run, tmp_path: Path) -> None:
    run("workload", "lublin", "--processors", 64, "--jobs", 250, "--estimates", "tsafrir", "--output", "log.swf")
    for option, value, said in [
        ("--metric", "bsld", "there is no metric 'bsld'; did you mean mean_bsld?"),
        ("--threshold", "soon", "soon"),
        ("--windows", "many", "many"),
        ("--seed", "-1", "seed"),
        ("--output", "a,b", "without one"),
    ]:
        assert said in run("learn", "log.swf", option, value, code=2).stderr
        assert not (tmp_path / "learned").exists(), option


@pytest.mark.slow
def test_with_a_date_formulas_count_from_the_first_day_of_the_log(run, tmp_path: Path) -> None:
    day = 1_767_225_600
    rows = [
        f"{n} {3600 + 600 * n} 0 {60 * (1 + n % 9)} {1 + n % 4} -1 -1 {1 + n % 4} 900 -1 1 1 1 -1 1 -1 -1 -1"
        for n in range(1, 301)
    ]
    (tmp_path / "dated.swf").write_text("\n".join([f"; UnixStartTime: {day}", "; MaxProcs: 8", *rows]) + "\n")
    run("learn", "dated.swf", "--tuples", 32, "--trials", 256)
    dated = sorted((tmp_path / "learned" / "dated").iterdir())
    assert {path.stem for path in dated} >= {"FCFS", "F1"}
    assert {load_model(path).policy.epoch.unix_time for path in dated} == {day}


def _columns(path: Path) -> list[tuple[str, ...]]:
    """Return the columns of a CSV file, in the order of their headings."""
    return sorted(zip(*csv.reader(path.read_text().splitlines()), strict=True))


@pytest.mark.slow
def test_the_printed_commands_run_as_printed(run, tmp_path: Path) -> None:
    # A log that says neither its machine nor all requests, so that each command needs what was said to learn.
    run("workload", "lublin", "--processors", 64, "--jobs", 900, "--estimates", "tsafrir", "--output", "full.swf")
    lines = (tmp_path / "full.swf").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("; MaxProcs", "; MaxNodes"))]
    rows = [line.split() for line in kept if not line.startswith(";")]
    for row in rows[::3]:
        row[8] = "-1"
    head = [line for line in kept if line.startswith(";")]
    (tmp_path / "a log.swf").write_text("\n".join([*head, *map(" ".join, rows)]) + "\n")
    reading = ("--processors", 64, "--estimate-missing", "runtime")
    few = ("--tuples", 32, "--trials", 320)
    done = run("learn", "a log.swf", *reading, *few, "--output", "my folder")
    commands = [shlex.split(line)[2:] for line in done.stdout.splitlines() if line.startswith("$ policyfactory")]
    assert [words[0] for words in commands[:4]] == ["workload", "workload", "workload", "generate"]
    assert {"fit", "evaluate", "export"} <= {words[0] for words in commands}
    before = {path: _columns(path) for path in (tmp_path / "my folder").rglob("*.csv")}
    for words in commands:
        run(*words)
    # They do what learn did, but for the place of the choice among the columns, of which evaluate knows nothing.
    assert {path: _columns(path) for path in before} == before
    # So does the one for after it, which is printed where the choice is better.
    options = LearnOptions(processors=64, estimate_missing="runtime")
    learned = SimpleNamespace(
        options=options,
        policy=load_model(tmp_path / "my folder" / "policy.json").policy,
        _day_of_use=lambda: "2023-01-01",
    )
    words = Learned.export_command(learned, "my folder/policy.json", "a log.swf")
    run(*words[1:])


@pytest.mark.slow
def test_on_a_site_that_is_far_from_the_record_the_exit_code_says_so(run, tmp_path: Path) -> None:
    jobs = daily(8)
    write_swf(log_of_workload(dataclasses.replace(jobs, start=jobs.submit + 50_000)), tmp_path / "log.swf")
    write_site(Site("small", (NodeGroup("n[1-4]"),), (Partition("all"),)), tmp_path / "s.toml")
    few = ("--tuples", 32, "--trials", 320, "--replicas", 0)
    done = run("learn", "log.swf", "--site", "s.toml", *few, "--output", "out", "--anyway", code=1)
    assert "its own jobs replayed on small: not to be trusted here" in done.stderr
    assert "$ policyfactory site replay log.swf s.toml" in done.stdout
    assert " --site s.toml --preset default" in done.stdout
    assert "Not to be trusted here" in done.stdout
    assert "No policy is recommended." in done.stdout
    assert "next: policyfactory export" not in done.stderr
    assert "everything is in out/" in done.stderr
