"""The command ``policyfactory distill``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from naive.network import random_network
from policyfactory.policy.network import Network, save_network
from policyfactory.policy.store import load_model

FEW = ("--window-jobs", 100, "--training-windows", 6, "--choosing-windows", 4, "--judged-windows", 6)
SHORT = (*FEW, "--family", "power")


@pytest.fixture
def log(output_of) -> Path:
    words = ("--processors", 64, "--jobs", 1500, "--load", 0.9, "--estimates", "tsafrir")
    return output_of("log.swf", "workload", "lublin", *words)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    network = Network.of("ROOT", ("log10(max(p, 1))", "log10(q)"), [([[-1.0], [-0.5]], [0.0])])
    save_network(network, tmp_path / "net.json")
    return tmp_path / "net.json"


@pytest.mark.usefixtures("log", "net")
def test_a_network_becomes_a_model_that_can_be_exported(run, tmp_path: Path) -> None:
    done = run("distill", "net.json", "log.swf", "--output", "found", *SHORT)
    assert "P*SQRT(Q) (choice)" in done.stdout
    assert "orders 100.0 %" in done.stdout
    assert "Kendall's tau" in done.stdout
    assert "the same" in done.stdout
    assert "mean_bsld is that of ROOT;" in done.stdout
    assert "ROOT plays the windows for training" in done.stderr
    assert "everything is in found/" in done.stderr
    files = sorted(path.name for path in (tmp_path / "found").iterdir())
    assert files == ["agreement.png", "policy.json", "report.json", "static.json"]
    assert load_model(tmp_path / "found" / "policy.json").policy.formula == "p*sqrt(q)"
    report = json.loads((tmp_path / "found" / "report.json").read_text())
    assert report["candidates"][0]["judged"]["pairs"] == 1.0
    assert {row["role"] for row in report["judged"]} == {"choice", "network", "beside"}
    assert report["provenance"]["network_digest"]
    run("export", "found/policy.json", "--to", "python", "--output", "order.py")
    run("evaluate", "log.swf", "--policies", "FCFS,net.json,found/policy.json", "--analyses", "none", "--output", "ev")
    # It is not replaced by accident, and is with --overwrite.
    refused = run("distill", "net.json", "log.swf", "--output", "found", *SHORT, code=1)
    assert "policy.json: exists; add --overwrite" in refused.stderr
    save_network(random_network(7, (6, 12, 1)), tmp_path / "net.json")
    done = run("distill", "net.json", "log.swf", "--output", "found", *SHORT, "--overwrite")
    assert "it is another policy, not a copy" in " ".join(done.stderr.split())


@pytest.mark.usefixtures("log", "net")
def test_the_same_windows_for_everything_are_said_to_be_no_evidence(run) -> None:
    done = run("distill", "net.json", "log.swf", "--windows", "3x200jobs", "--family", "power")
    assert "nothing was held out: it was fitted, chosen and judged on the same windows" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--window-jobs", 900), 1, "windows of 900 jobs, and the shortest of the parts"),
        (("--goal", "speed"), 2, "there is no goal 'speed'"),
        (("--goal", "user_max_bsld"), 1, "user"),
        (("--family", "liner"), 2, "there is no family 'liner'"),
        (("--parts", "1,2"), 2, "write three whole percentages"),
        (("--decisions", 0), 2, "--decisions 0: expected a whole number, 1 to"),
        (("--margin", 2), 2, "--margin 2.0: give a share of pairs"),
    ],
)
@pytest.mark.usefixtures("log", "net")
def test_what_cannot_be_is_said_before_anything_is_written(run, tmp_path: Path, words, code: int, said: str) -> None:
    done = run("distill", "net.json", "log.swf", "--output", "none", *words, code=code)
    assert said in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("log")
def test_half_a_network_is_refused_in_one_sentence(run, net: Path) -> None:
    net.write_text(net.read_text()[:300])
    done = run("distill", "net.json", "log.swf", code=1)
    assert done.stderr.startswith("error: ")
    assert "net.json" in done.stderr
    assert "Traceback" not in done.stderr
