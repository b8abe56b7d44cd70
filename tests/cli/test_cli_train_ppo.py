"""The command ``policyfactory train --learner ppo``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from policyfactory.policy.store import load_model
from support import extra_module

FEW = ("--window-jobs", 40, "--choosing-windows", 3, "--judged-windows", 5, "--bands", "none", "--learner", "ppo")
SMALL = ("--rounds", 3, "--set", "windows=2", "--set", "rollouts=3", "--set", "checkpoint_every=1")


@pytest.fixture
def log(run, tmp_path: Path) -> Path:
    run("workload", "lublin", "--processors", 64, "--jobs", 500, "--estimates", "tsafrir", "--output", "log.swf")
    return tmp_path / "log.swf"


@pytest.mark.parametrize("mode", ["standard", "paper"])
def test_a_log_becomes_a_network_that_is_judged_and_evaluated(run, log: Path, tmp_path: Path, mode: str) -> None:
    extra_module("torch", "rl")
    done = run("train", "log.swf", "--output", "found", "--mode", mode, *FEW, *SMALL)
    model = load_model(tmp_path / "found" / "policy.json")
    network = model.policy.network
    assert network is not None
    assert network.mode == mode
    assert network.parameters == (961 if mode == "paper" else 897)
    assert network.diagnostics["goal"] == "mean_bsld"
    assert network.provenance["learner"] == "ppo"
    assert network.provenance["settings"]["rollouts"] == 3
    assert f"On 5 later windows mean_bsld of {model.policy.name} is" in done.stdout
    report = json.loads((tmp_path / "found" / "report.json").read_text())
    origins = [row["origin"] for row in report["candidates"] if row["learned"]]
    assert sorted(origin.split(",")[0] for origin in origins) == [f"checkpoint after round {n}" for n in (1, 2, 3)]
    lines = (tmp_path / "found" / "history.csv").read_text().splitlines()
    assert lines[0].startswith("round,decisions,round_decisions,learned_from,cost,SJF,F1,loss")
    assert len(lines) == 4
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == [
        "history.csv", "learning.png", "policy.json", "report.json",
    ]  # fmt: skip
    # The same seed, the same network.
    run("train", "log.swf", "--output", "again", "--mode", mode, *FEW, *SMALL)
    again = load_model(tmp_path / "again" / "policy.json").policy.network
    assert again == network
    if mode == "standard":
        run("evaluate", "log.swf", "--policies", "SAF,found/policy.json", "--output", "compared")


def test_the_papers_training_with_its_two_phases(run, log: Path, tmp_path: Path) -> None:
    extra_module("torch", "rl")
    paper = ("--mode", "paper", "--training", "paper", "--filtering", "paper", "--set", "filtered=1", "--rounds", 2)
    done = run("train", "log.swf", "--output", "found", *FEW, *paper, "--set", "windows=4", "--set", "passes=3")
    assert "phase 1 learns from" in done.stderr
    assert "windows, by --filtering paper" in done.stderr
    header, *rows = (tmp_path / "found" / "history.csv").read_text().splitlines()
    assert len(rows) == 2
    assert header.split(",")[-1] == "value_loss"
    assert all(float(row.split(",")[-1]) > 0 for row in rows)
    report = json.loads((tmp_path / "found" / "report.json").read_text())
    assert report["provenance"]["settings"]["filtering"] == "paper"


def test_a_run_that_ended_early_goes_on_or_is_refused(run, log: Path, tmp_path: Path) -> None:
    extra_module("torch", "rl")
    (tmp_path / "found").mkdir()
    partial = tmp_path / "found" / "train.partial"
    partial.write_bytes(b"PK\x03\x04 half of one")
    refused = run("train", "log.swf", "--output", "found", *FEW, *SMALL, code=1)
    assert "found/train.partial" in refused.stderr
    assert "damaged (16 bytes)" in refused.stderr
    assert "--overwrite drops it" in refused.stderr
    run("train", "log.swf", "--output", "found", *FEW, *SMALL, "--overwrite")
    assert not partial.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "speed=3"), "--set 'speed=3': write NAME=VALUE; the names are network, iterations"),
        (("--set", "network=lenet"), "looks at 128 slots at once and is no order of jobs"),
        (("--training", "paper"), "the value network of training paper looks at the 128 slots of mode paper"),
        (("--device", "cuda"), "torch finds no such device here"),
    ],
)
def test_wrong_use(run, log: Path, words: tuple[str, ...], said: str) -> None:
    torch = extra_module("torch", "rl")
    if "cuda" in words and torch.cuda.is_available():
        pytest.skip("there is one")
    assert said in run("train", "log.swf", *FEW, *words, code=2).stderr


def test_without_torch_the_extra_is_named(run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    said = run("train", "log.swf", "--output", "found", *FEW, code=2).stderr
    assert "the learner ppo needs torch, which is not installed: pip install 'policyfactory[rl]'" in said
    assert not (tmp_path / "found").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--filtering", "paper"), "--set filtered=N"),
        (("--set", "filtered=3"), "--filtering paper"),
        (("--rounds", 1, "--set", "iterations=3"), "--set iterations=3 and --rounds 1"),
        (("--training-windows", 3), "--training-windows: without effect"),
    ],
)
def test_options_without_effect_are_refused(run, log: Path, words: tuple[object, ...], said: str) -> None:
    extra_module("torch", "rl")
    assert said in " ".join(run("train", "log.swf", *FEW, *words, code=2).stderr.split())
