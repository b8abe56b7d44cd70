"""The command ``policyfactory train``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from habits import users_with_habits, write_log
from policyfactory.policy.store import load_model

FEW = ("--window-jobs", 60, "--training-windows", 4, "--choosing-windows", 3, "--judged-windows", 6)
SHORT = (*FEW, "--restarts", 1, "--evaluations", 10, "--bands", "none")


@pytest.fixture
def log(output_of) -> Path:
    words = ("--processors", 64, "--jobs", 1000, "--estimates", "tsafrir")
    return output_of("log.swf", "workload", "lublin", *words)


def test_a_log_becomes_a_model_that_is_judged_and_can_be_exported(run, log: Path, tmp_path: Path) -> None:
    done = run("train", "log.swf", "--output", "found", *SHORT, "--family", "power", "--family", "mine=p + a*q*100")
    model = load_model(tmp_path / "found" / "policy.json")
    assert f"On 6 later windows mean_bsld of {model.policy.name} is" in done.stdout
    assert f"{model.policy.name}: {model.policy.formula}" in done.stdout
    assert "P*SQRT(Q)" in done.stdout
    assert "everything is in found/" in done.stderr
    report = json.loads((tmp_path / "found" / "report.json").read_text())
    assert {row["origin"].split(",")[0] for row in report["candidates"]} == {"power", "mine", "published"}
    assert report["provenance"]["seed"] == 1
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == [
        "history.csv", "learning.png", "policy.json", "report.json",
    ]  # fmt: skip
    run("export", "found/policy.json", "--to", "python", "--output", "order.py")
    assert "def " in (tmp_path / "order.py").read_text()
    # It is not replaced by accident, and is with --overwrite: by the same.
    refused = run("train", "log.swf", "--output", "found", *SHORT, code=1)
    assert "policy.json: exists; add --overwrite" in refused.stderr
    before = (tmp_path / "found" / "report.json").read_bytes()
    again = ("--family", "power", "--family", "mine=p + a*q*100", "--overwrite")
    run("train", "log.swf", "--output", "found", *SHORT, *again, "--workers", 2)
    after = json.loads((tmp_path / "found" / "report.json").read_text())
    assert after["candidates"] == json.loads(before)["candidates"]


@pytest.mark.parametrize("mode", ["standard", "paper"])
def test_the_same_windows_for_everything_are_said_to_be_no_evidence(run, log: Path, mode: str) -> None:
    windows = ("--windows", "rlscheduler:2x100jobs:1", "--mode", mode, "--backfill", "none", "--bands", "none")
    done = run("train", "log.swf", *windows, "--family", "fits", "--restarts", 1, "--evaluations", 10)
    assert "nothing was held out: it was learned, chosen and judged on the same windows" in done.stderr
    assert "Cannot tell. On 2 windows, the same that it was learned on, " in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--window-jobs", 500), 1, "windows of 500 jobs, and the shortest of the parts"),
        (("--windows", "90x1000jobs"), 1, "asked for, the log has"),
        (("--goal", "speed"), 2, "there is no goal 'speed'"),
        (("--goal", "user_max_bsld"), 1, "user"),
        (("--family", "liner"), 2, "there is no family 'liner'"),
        (("--family", "p*q"), 2, "has 0 coefficients"),
        (("--start", "a=x"), 2, "write NAME=NUMBER"),
        (("--parts", "1,2"), 2, "three whole percentages"),
        (("--parts", "a,b,c"), 2, "write three whole percentages"),
        (("--bands", "speed=2"), 2, "write GUARD=FACTOR"),
        (("--evaluations", 1), 2, "--evaluations 1: expected a whole number, 10 to"),
        (("--pull", -1), 2, "--pull -1"),
        (("--seed", -1), 2, "seed -1"),
        (("--replicas", 2, "--loads", "x"), 2, "write two numbers"),
        (("--start", "zz=3"), 2, "--start names zz; the coefficients to search are "),
        (("--loads", "0.9,1.1"), 2, "give --replicas 8 as well"),
        (
            ("--set", "rate=1", "--rounds", 3, "--device", "cuda"),
            2,
            "--rounds, --device, --set: said to the learner ppo",
        ),
        (("--learner", "ppo", "--pull", 3), 2, "--pull: said to the learner search"),
        (("--max-p99", "much"), 2, "as 1.1x, or a time, as 20h"),
        (("--pick", "1", "--family", "power", "--seed", 1), 2, "--family, --seed would be ignored"),
    ],
)
def test_what_cannot_be_is_said_before_any_work(run, log: Path, tmp_path: Path, words, code: int, said: str) -> None:
    done = run("train", "log.swf", "--output", "none", *words, code=code)
    assert said in done.stderr
    assert not (tmp_path / "none").exists()


def test_a_folder_in_use_is_refused(run, log: Path, tmp_path: Path) -> None:
    from policyfactory.core.files import exclusive

    (tmp_path / "busy").mkdir()
    with exclusive(tmp_path / "busy" / "policy.json"):
        done = run("train", "log.swf", "--output", "busy", *SHORT, code=1)
    assert "another run" in done.stderr


def test_a_search_on_replicas_is_against_the_best_published_policy(run, tmp_path: Path) -> None:
    write_log(tmp_path / "long.swf", users_with_habits(3, jobs=1_500, days=84))
    few = ("--replicas", 2, "--restarts", 1, "--evaluations", 10, "--max-p99", "9x", "--max-longest", "50d")
    done = run("train", "long.swf", "--output", "found", *few, "--family", "predicted", "--loads", "0.9,1.1")
    report = json.loads((tmp_path / "found" / "report.json").read_text())
    assert f"log ratio to {report['baseline']}" in " ".join(done.stdout.split())
    assert "Judged on 2 later replicas" in done.stdout
    assert report["margin"] in done.stdout
    assert [one["guard"] for one in report["limits"]] == ["p99_wait", "max_wait"]
    assert report["provenance"]["options"]["loads"] == [0.9, 1.1]
    # Another member of the front.
    front = json.loads((tmp_path / "found" / "front.json").read_text())["members"]
    assert "Pareto front on the 2 replicas for choosing" in done.stdout
    assert "add --overwrite" in run("train", "long.swf", "--output", "found", "--pick", "1", code=1).stderr
    done = run("train", "long.swf", "--output", "found", "--pick", front[-1]["name"], "--overwrite")
    assert f"policy.json is now {front[-1]['name']}: {front[-1]['model']['formula']}" in done.stderr
    assert load_model(tmp_path / "found" / "policy.json").policy.name == front[-1]["name"]
    assert "give a number or a name" in run("train", "long.swf", "-o", "found", "--pick", "none", code=2).stderr
