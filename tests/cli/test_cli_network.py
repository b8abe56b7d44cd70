"""Network files at the command line: shown, explained, evaluated, tuned with, and refused where a formula is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daily_log import daily
from naive.network import random_network
from policyfactory.policy.network import load_network, network_from_json, paper_inputs, save_network
from policyfactory.workload.swf.files import write_swf


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.json"
    save_network(random_network(5, (8, 32, 16, 8, 1), paper_inputs(100_000.0)), path)
    return path


@pytest.fixture
def small_log(tmp_path: Path) -> Path:
    path = tmp_path / "daily.swf"
    write_swf(daily(3), path)
    return path


def test_show(run, net: Path) -> None:
    done = run("policy", "show", "net.json")
    for text in (
        "Network NET",
        "min(w/43200, 0.99999)",
        "8-32-16-8-1, 961 numbers",
        "highest runs first",
        "no: scores change while jobs wait",
        load_network(net).digest,
    ):
        assert text in done.stdout
    assert "policyfactory policy explain net.json" in done.stderr
    value = json.loads(run("policy", "show", "net.json", "--json").stdout)
    assert network_from_json(value, "stdout") == load_network(net)


def test_explain_draws_the_live_inputs(run, net: Path, tmp_path: Path) -> None:
    done = run("policy", "explain", "net.json", "--output", "net.svg")
    for text in ("wait", "request", "processors (share)", "fits now", "dead: constant"):
        assert text in done.stdout
    assert (tmp_path / "net.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert "written: net.svg" in done.stderr
    assert "net.svg: exists; add --overwrite" in run("policy", "explain", "net.json", "-o", "net.svg", code=1).stderr
    run("policy", "explain", "net.json", "-o", "net.svg", "--overwrite")
    value = json.loads(run("policy", "explain", "net.json", "--json").stdout)
    assert [one["why_dead"] for one in value["inputs"]] == [""] * 3 + ["constant"] * 4 + [""]


def test_explain_over_a_log(run, net: Path, small_log: Path) -> None:
    out = run("policy", "explain", "net.json", "--workload", small_log).stdout
    assert "waiting jobs of" in out
    assert "under NET" in out


def test_explain_a_job(run, net: Path) -> None:
    out = run("policy", "explain", "net.json", "--job", "p=1h q=4 w=2h m=256 f=3").stdout
    assert "minus the network's output" in out
    assert "Enough free processors (4) changes the score" in out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("policy", "explain", "net.json", "--job", "p=1h q=4"), 2, "the job lacks w, m and f"),
        (("policy", "explain", "net.json", "--job", "p=1h", "--output", "x.svg"), 2, "--output x.svg: is for what"),
        (("policy", "explain", "net.json", "--output", "x.bmp"), 1, "a picture is .png, .svg or .pdf"),
        (("policy", "explain", "F1"), 2, "policy F1 is a formula; give a job: --job"),
        (("export", "net.json", "--to", "oar"), 2, "make a formula of it first: policyfactory distill net.json"),
        (("export", "net.json", "--to", "json"), 2, "make a formula of it first: policyfactory distill net.json"),
        (("export", "net.json", "--to", "latex"), 2, "make a formula of it first: policyfactory distill net.json"),
        (("workload", "show", "net.json"), 1, "is a model file (a policy), where a log is expected"),
    ],
)
def test_wrong_use(run, net: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    assert says in " ".join(run(*arguments, code=code).stderr.split())


@pytest.mark.usefixtures("blank_pictures")
def test_evaluated_like_a_formula(run, net: Path, small_log: Path, tmp_path: Path) -> None:
    run("evaluate", small_log, "--policies", "FCFS,SAF,net.json", "--output", "results", "--metric", "mean_bsld",
        "--analyses", "none")  # fmt: skip
    value = json.loads((tmp_path / "results" / "manifest.json").read_text(encoding="utf-8"))
    assert any(name.endswith("net.json") for name in value["inputs"])
    network = load_network(net)
    assert network.describe() in (tmp_path / "results" / "evaluation.json").read_text(encoding="utf-8")
    assert "NET" in (tmp_path / "results" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("blank_pictures")
def test_workers_of_any_kind_give_the_same(run, net: Path, small_log: Path, tmp_path: Path) -> None:
    for backend in ("threading", "loky"):
        run(
            "evaluate", small_log, "--policies", "SAF,net.json", "--windows", "2x1d", "--metric", "mean_bsld",
            "--output", backend, "--backend", backend, "--workers", "2",
        )  # fmt: skip
    one, other = ((tmp_path / name / "results.csv").read_bytes() for name in ("threading", "loky"))
    assert one == other


@pytest.mark.usefixtures("blank_pictures")
def test_a_tuner_takes_it(run, net: Path, small_log: Path, tmp_path: Path) -> None:
    run("tune", small_log, "--policies", "FCFS,net.json", "--period", "1d", "--output", "tuned")
    assert "NET" in (tmp_path / "tuned" / "report.html").read_text(encoding="utf-8")
