"""``policyfactory policy explain`` of jobs that are predicted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import Run
from habits import users_with_habits, write_log
from policyfactory.prediction.store import save_forests
from site_history import BEGIN, FIRST_GROUP, FIRST_USER, make_site_past

INDEX = {
    "kind": "policyfactory-model",
    "schema_version": 1,
    "name": "INDEX",
    "formula": "-ln(s) + ln(e) + 0.4*ln(q)",
}
AT = 200_000


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "index.json").write_text(json.dumps(INDEX))
    write_log(tmp_path / "site.swf", users_with_habits(1, jobs=300, days=3))
    save_forests(make_site_past().forests, tmp_path / "model.json", provenance={})
    return tmp_path


def words_of(text: str) -> str:
    return " ".join(text.split())


def test_a_job_of_a_log(run: Run, site: Path) -> None:
    command = ("policy", "explain", "./index.json", "--workload", "site.swf", "--job-id", 250)
    out = words_of(run(*command, "--predictor", "model.json").stdout)
    jobs = users_with_habits(1, jobs=300, days=3)
    assert f"p = {jobs.requested_time[249]} s" in out
    assert " jobs of its user had ended; the last five " in out
    assert "of its user waited and" in out
    assert "waited when it was submitted, " in out
    assert "By its request alone its score would be" in out
    value = json.loads(run(*command, "--predictor", "model.json", "--json").stdout)
    assert set(value["jobs"][0]["job"]) == {"p", "q", "e", "s"}
    assert value["jobs"][0]["seen"][0].split(";")[0] in out
    # Without a model one is trained from the log itself, of which there is too little.
    assert "Too few jobs had ended in the log for a model to be trained." in words_of(run(*command).stdout)


def test_a_job_of_a_log_by_a_policy_without_predictions(run: Run, site: Path) -> None:
    out = words_of(run("policy", "explain", "SAF", "--workload", "site.swf", "--job-id", 250).stdout)
    assert "waited when it was submitted, " in out
    assert "of its user" not in out


def test_jobs_that_are_about_to_be_submitted(run: Run, site: Path) -> None:
    make_site_past().bring_up(site / "history", AT)
    more = ("--history", "history", "--predictor", "model.json", "--at", BEGIN + AT + 60)
    jobs = ("--job", "p=1h q=2", "--job", "p=1h q=4")
    command = ("policy", "explain", "./index.json", *jobs, *more)
    out = words_of(run(*command, "--user", FIRST_USER, "--group", FIRST_GROUP).stdout)
    assert "of its user had ended; the last five" in out
    assert "The history was brought up to date 1m before." in out
    assert "Order (ties by submit time)" in out
    unknown = words_of(run(*command).stdout)
    assert "Its user is not known, so there is no past to look at. The request is taken for the run time." in unknown
    new = words_of(run(*command, "--user", 4).stdout)
    assert "No job of its user had ended." in new
    (site / "history").unlink()
    assert "There is no history yet." in words_of(run(*command, "--user", FIRST_USER).stdout)
    # By the clock of this machine.
    assert "expected to run" in run("policy", "explain", "./index.json", *jobs, *more[:4]).stdout


def test_a_damaged_history_is_named(run: Run, site: Path) -> None:
    make_site_past().bring_up(site / "history", AT)
    (site / "history").write_bytes((site / "history").read_bytes()[:-5])
    error = run(
        *("policy", "explain", "./index.json", "--job", "p=1h q=2", "--user", FIRST_USER),
        *("--history", "history", "--predictor", "model.json"),
        code=1,
    ).stderr
    assert "it is damaged" in error


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--job-id", "5"], "--job-id 5: of which log? Give --workload LOG"),
        (["--job", "p=1h q=1", "--processors", "8"], "--processors 8: is for a log; give --workload LOG"),
        (["--job-id", "5", "--job", "p=1h q=1"], "leave one out"),
        (["--workload", "site.swf"], "INDEX is a formula; give a job"),
        (["--workload", "site.swf", "--job", "p=1h q=1"], "leave out --job"),
        (["--workload", "site.swf", "--job-id", "5000"], "has no job 5000"),
        (
            ["--workload", "site.swf", "--job-id", "5", "--output", "a.svg"],
            "inputs of a network do, and this is a job of a log",
        ),
        (["--workload", "site.swf", "--job-id", "5", "--history", "h"], "add --job"),
        (["--job", "p=1h q=1", "--history", "h"], "what predicts? Give --predictor model.json"),
        (["--job", "p=1h q=1", "--predictor", "model.json"], "--predictor model.json: give --workload LOG --job-id N"),
        (["--job", "p=1h q=1", "--user", "5"], "--user 5: is for a history"),
        (["--job", "p=1h q=1", "--at", "5"], "--at 5: is for a history"),
        (
            ["--job", "p=1h q=1", "--history", "h", "--predictor", "model.json", "--group", "5"],
            "--group 5: is for a user",
        ),
        (["--job", "p=1h", "--history", "h", "--predictor", "model.json"], "lacks q"),
        (["--job", "p=1h q=1", "--history", "h", "--predictor", "model.json", "--at", "soon"], "--at"),
        (["--job", "p=1h q=1", "--history", "h", "--predictor", "model.json", "--user", "-3"], "--user"),
    ],
)
def test_wrong_use(run: Run, site: Path, arguments: list[str], says: str) -> None:
    done = run("policy", "explain", "./index.json", *arguments, code=2)
    assert says in words_of(done.stderr)
    assert done.stdout == ""


def test_requests_that_were_filled_are_no_predictions(run: Run, site: Path) -> None:
    lines = (site / "site.swf").read_text().splitlines()
    fields = [line.split() for line in lines[1:]]
    for line in fields[::3]:
        line[8] = "-1"
    (site / "site.swf").write_text("\n".join([lines[0], *map(" ".join, fields)]) + "\n")
    command = ("policy", "explain", "./index.json", "--workload", "site.swf", "--job-id", 250)
    error = words_of(run(*command, "--estimate-missing", "runtime", code=1).stderr)
    assert "which is what is to be predicted" in error


def test_another_file_is_no_model(run: Run, site: Path) -> None:
    command = ("policy", "explain", "./index.json", "--workload", "site.swf", "--job-id", 250)
    assert "is it a file of policyfactory predict" in words_of(
        run(*command, "--predictor", "index.json", code=1).stderr
    )
