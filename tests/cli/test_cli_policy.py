"""The command ``policyfactory policy``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyfactory.policy.store import ALIASES, CATALOGUE, model_from_json

INDEX = "-ln(s) + ln(e) + 0.4*ln(q)"


def test_list_names_every_policy(run) -> None:
    done = run("policy", "list")
    for name in CATALOGUE:
        assert f"\n  {name} " in done.stdout
    for alias in ALIASES:
        assert f"{alias} = " in done.stderr
    assert "\x1b" not in done.stdout


def test_list_as_json(run) -> None:
    done = run("policy", "list", "--json")
    result = [model_from_json(value, "list").policy for value in json.loads(done.stdout)]
    assert result == list(CATALOGUE.values())
    assert done.stderr == ""


def test_show(run) -> None:
    out = run("policy", "show", "lin").stdout
    for text in (
        "Policy LIN-SYNTHETIC",
        "0.0324 + 1.15e-7*p + 2.61e-5*q - 1.57e-7*r",
        r"1.15 \cdot 10^{-7} \, p",
        "p + 226.95652173913044*q - 1.3652173913043477*r",
        "requested run time of the job (s)",
        "lower runs first",
        "r counts from the first job of the workload (window)",
        "yes: a job's score never changes",
        "2023, table 3",
    ):
        assert text in out
    assert "no: scores change while jobs wait" in run("policy", "show", "WFP3").stdout


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("((m+r)/m)**100", "none: (r + m)**100 has another order where numbers are very large or small"),
        ("((p/(log2(123456.789)/2**17))**0.333)**100", "not found: a number of the formula is too long to be exact"),
    ],
)
def test_show_says_why_a_formula_is_not_shortened(formula: str, why: str, run, tmp_path: Path) -> None:
    model = {"kind": "policyfactory-model", "schema_version": 1, "name": "X", "formula": formula}
    (tmp_path / "x.json").write_text(json.dumps(model))
    assert why in run("policy", "show", "./x.json").stdout


def test_show_a_model_file_with_coefficients(run, tmp_path: Path) -> None:
    value = json.loads(run("policy", "show", "F2", "--json").stdout)
    value["coefficients"] = [{"name": "c1", "term": "log10(r)", "value": 25600, "stderr": 120.5, "unit": "1"}]
    value["name"] = "[red]mine[/red] %s"
    (tmp_path / "m.json").write_text(json.dumps(value))
    out = run("policy", "show", "m.json").stdout
    assert "Policy [red]mine[/red] %s" in out
    assert "std. error" in out
    assert "1.2e+02" in out


def test_explain_one_job(run) -> None:
    out = run("policy", "explain", "F1", "--job", "p=1h q=64 r=2d").stdout
    assert "Job: p = 3600 s (1h), q = 64, r = 172800 s (2d), policy F1" in out
    assert "227.603" in out
    assert "4784.27" in out
    assert "a longer request or more processors: later" in out
    assert "Half the processors (32) changes the score from 4784.27 to 4670.46: sooner." in out


def test_a_formula_with_predictions_is_shown_stored_and_explained(run, tmp_path: Path) -> None:
    model = {"kind": "policyfactory-model", "schema_version": 1, "name": "INDEX", "formula": INDEX}
    (tmp_path / "index.json").write_text(json.dumps(model))
    shown = run("policy", "show", "./index.json").stdout
    assert "predicted mean run time of the job, by its user's past (s)" in shown
    assert "only if it is predicted anew, once a job of its user has ended" in shown
    value = json.loads(run("policy", "show", "./index.json", "--json").stdout)
    assert (value["formula"], set(value["units"]), value["static"]) == (INDEX, {"e", "s", "q"}, True)
    (tmp_path / "again.json").write_text(json.dumps(value))
    jobs = ("--job", "q=16 s=0.3 e=20m", "--job", "q=16 s=0.9 e=20m")
    out = run("policy", "explain", "./again.json", *jobs).stdout
    assert "By the past of its user it is expected to run 20m on average." in out
    assert json.loads(run("policy", "explain", "./index.json", *jobs, "--json").stdout)["order"] == [2, 1]
    assert "the job lacks e and s" in run("policy", "explain", "./index.json", "--job", "q=1", code=2).stderr


def test_explain_ranks_several_jobs(run) -> None:
    jobs = ("p=2h q=1", "p=1h q=4", "p=30m q=2")
    options = [part for job in jobs for part in ("--job", job)]
    out = run("policy", "explain", "saf", *options).stdout
    assert "Job 3: p = 1800 s (30m), q = 2, policy SAF" in out
    places = [line.split()[:3] for line in out[out.index("Order") :].splitlines() if line[:3].strip().isdigit()]
    assert places == [["1", "3", "3600"], ["2", "1", "7200"], ["3", "2", "14400"]]
    value = json.loads(run("policy", "explain", "saf", *options, "--json").stdout)
    assert value["order"] == [3, 1, 2]
    assert [job["score"] for job in value["jobs"]] == [7200, 14400, 3600]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["show", "SPX"], 2, "unknown policy 'SPX'; did you mean SPT or SPF"),
        (["show", "none.json"], 1, "none.json: no such file"),
        (["explain", "F1", "--job", "p=1h q=64"], 2, "the job lacks r: add r=..."),
        (["explain", "F1", "--job", "p=soon"], 2, "is not a duration"),
        (["explain", "F1", "--job", "64"], 2, "write for example 'p=1h q=64 r=2d'"),
        (["explain", "F1"], 2, "--job"),
        (["show"], 2, "NAME"),
    ],
)
def test_wrong_use(run, arguments: list[str], code: int, says: str) -> None:
    done = run("policy", *arguments, code=code)
    assert says in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_a_newer_model_file_is_refused_with_the_cure(run, tmp_path: Path) -> None:
    value = json.loads(run("policy", "show", "F1", "--json").stdout)
    (tmp_path / "new.json").write_text(json.dumps({**value, "schema_version": 99}))
    for command in (["policy", "show", "new.json"], ["export", "new.json", "--to", "c"]):
        error = run(*command, code=1).stderr
        assert "has model schema 99" in error
        assert "install a newer policyfactory" in error


def test_a_model_file_cannot_run_code(run, tmp_path: Path) -> None:
    value = json.loads(run("policy", "show", "F1", "--json").stdout)
    value["formula"] = "__import__('os').system('touch hacked')"
    (tmp_path / "bad.json").write_text(json.dumps(value))
    error = run("policy", "show", "bad.json", code=1).stderr
    assert "bad.json: formula: the character" in error
    assert "^" in error
    assert not (tmp_path / "hacked").exists()
