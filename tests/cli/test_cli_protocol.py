"""``policyfactory evaluate PROTOCOL.toml`` as a user types it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from policyfactory.cli import main
from policyfactory.evaluation.protocol import read_file

Run = Callable[..., "subprocess.CompletedProcess[str]"]

PROTOCOL = """
schema_version = 1
name = "tiny"
title = "A tiny protocol"
source = "Nobody, 2026"
seed = 3

[logs.small]
lublin = { processors = 32, jobs = 8000, seed = 1 }
[logs.other]
file = "other.swf"

[[experiments]]
name = "drawn"
title = "Resampled logs [/x]"
logs = ["small"]
resample = { count = 7, length = "2w" }
policies = ["FCFS", "SPF"]
metrics = ["mean_bsld"]
statistic = "mean"

[[experiments]]
name = "windows"
windows = "3x3d"
policies = ["FCFS", "SPF"]
formulas = { MINE = "p*sqrt(q)" }
metrics = ["mean_wait"]
[experiments.reference]
source = "table 1"
metric = "mean_wait"
values.small = { FCFS = 1.5 }

[[claims]]
text = "Short jobs first is better"
better = ["SPF"]
than = ["FCFS"]
metric = "mean_bsld"
experiments = ["drawn"]
"""


@pytest.fixture
def protocol(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(PROTOCOL)
    jobs = [
        f"{n} {n * 600} -1 {60 + 7 * (n % 90)} {1 + n % 4} -1 -1 {1 + n % 4} 900 -1 1 1 1 -1 -1 -1 -1 -1\n"
        for n in range(2000)
    ]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "other.swf").write_text("; MaxProcs: 4\n" + "".join(jobs))
    return path


@pytest.mark.usefixtures("blank_pictures")
def test_a_protocol_is_run_and_written_to_results(run: Run, protocol: Path, tmp_path: Path) -> None:
    done = run("evaluate", "tiny.toml", "--traces", "logs", "--verbose")
    assert "written: results/tiny/report.html" in done.stderr
    assert "14/14" in done.stderr
    assert "drawn: rules: EASY backfilling" in done.stderr
    for output in ("Resampled logs", "mean over 7 resampled logs", "Which conclusions survive", "Claim 1: Short jobs"):
        assert output in done.stdout
    out = tmp_path / "results" / "tiny"
    assert (out / "protocol.toml").read_text() == PROTOCOL
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert {(row["experiment"], row["log"]) for row in rows} == {
        ("drawn", "small"), ("windows", "small"), ("windows", "other"),
    }  # fmt: skip
    content = json.loads((out / "evaluation.json").read_text())
    assert content["title"] == "A tiny protocol"
    assert set(content["experiments"]) == {"drawn", "windows"}
    assert content["experiments"]["drawn"]["winner"] == "SPF"
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(manifest["inputs"]) == {"small", "tiny.toml", "logs/other.swf"}
    assert manifest["seed"] == 3
    page = (out / "report.html").read_text()
    for output in ("A tiny protocol", "Nobody, 2026", "Claim 1: Short jobs first is better", "table 1"):
        assert output in page
    # A second run does not replace the first by mistake.
    assert "--overwrite" in run("evaluate", "tiny.toml", "--traces", "logs", code=1).stderr


@pytest.mark.usefixtures("blank_pictures")
def test_a_protocol_is_one_screen(run: Run, protocol: Path, tmp_path: Path) -> None:
    more = [
        "[[claims]]", 'text = "Short jobs first is worse"', 'better = ["FCFS"]', 'than = ["SPF"]',
        'metric = "mean_bsld"', 'experiments = ["drawn"]',
    ]  # fmt: skip
    protocol.write_text(PROTOCOL + "\n".join(more) + "\n")
    done = run("evaluate", "tiny.toml", "--traces", "logs")
    lines = done.stdout.splitlines()
    assert lines[0] == "0 of 1 published value met to the printed digit."
    assert lines[1].startswith("  table 1: 0 of 1; not met are 1 of small, up to ")
    assert lines[2] == "Claim 1: Short jobs first is better. Holds in 1 of 1."
    assert lines[3] == "Claim 2: Short jobs first is worse. Does not hold in 1 of 1."
    assert len(lines) == 4
    assert "all tables, pictures and intervals: results/tiny/report.html (--verbose" in done.stderr
    assert "rules:" not in done.stderr
    # Without either, what is said of each experiment.
    bare = PROTOCOL.partition("[experiments.reference]")[0]
    (tmp_path / "bare.toml").write_text(bare)
    lines = " ".join(run("evaluate", "bare.toml", "--traces", "logs", "-o", "bare").stdout.split())
    assert "Resampled logs [/x]. In simulation: " in lines
    assert "minus that of" not in lines


def test_parts_and_numbers_from_the_command_line_are_in_the_protocol_as_run(
    run: Run, protocol: Path, tmp_path: Path
) -> None:
    words = ("--only", "drawn", "--resamples", 8, "--seed", 4, "--json", "--output", "out")
    content = json.loads(run("evaluate", "tiny.toml", *words).stdout)
    (experiment,) = content["protocol"]["experiments"]
    assert (len(experiment["cases"]), experiment["bootstrap"]["seed"]) == (8, 4)
    again = read_file(tmp_path / "out" / "protocol.toml").content
    assert (again["seed"], again["experiments"][0]["resample"]["count"]) == (4, 8)
    head = (tmp_path / "out" / "protocol.toml").read_text().splitlines()[0]
    assert head == "# As run, with --only drawn --seed 4 --resamples 8"
    # Run again as it says, all is the same but what names the input.
    run("evaluate", "out/protocol.toml", *words[:-1], "again")
    for path in (tmp_path / "out").rglob("*.*"):
        same = path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path / "out")).read_bytes()
        assert same != (path.name in {"report.html", "manifest.json"}), path
    run("evaluate", "out/protocol.toml", "--only", "drawn", "--output", "third")
    assert (tmp_path / "third" / "protocol.toml").read_text().count("# As run") == 1


@pytest.mark.usefixtures("blank_pictures")
def test_two_protocols_get_a_folder_each(run: Run, protocol: Path, tmp_path: Path) -> None:
    (tmp_path / "second.toml").write_text(PROTOCOL.replace('name = "tiny"', 'name = "second"'))
    words = ("--only", "windows", "--log", "small", "--output", "out")
    done = run("evaluate", "tiny.toml", "second.toml", *words)
    assert "so --resamples" not in done.stderr
    for name in ("tiny", "second"):
        assert (tmp_path / "out" / name / "report.html").stat().st_size > 10_000


WRONG = [
    (["tiny.toml", "--policies", "FCFS", "--load", "1.1"], 2, "--policies, --load: the protocol says this"),
    (["tiny.toml", "--metric", "mean_wait"], 2, "--metric: the protocol says this"),
    (["tiny.toml", "log.swf"], 2, "tiny.toml is a protocol, which names its logs itself"),
    (["--only", "drawn"], 2, "belong to a protocol (a .toml file), and none is given"),
    (["tiny.toml", "--only", "dawn"], 2, "has no experiment 'dawn'; it has drawn, windows"),
    (["tiny.toml", "--log", "big"], 2, "has no log 'big'; it has small, other"),
    (["tiny.toml", "--only", "drawn", "--log", "other"], 2, "none of the experiments has one of the logs other"),
    (["tiny.toml"], 1, "'other.swf' is not in traces/"),
    (["gone.toml"], 1, "gone.toml: no such file"),
    (["tiny.toml", "--starts", "csv", "--traces", "logs"], 2, "and there are 2; name it with --only"),
    (["tiny.toml", "--precision", "much", "--traces", "logs"], 2, "--precision 'much': is no share"),
    (["tiny.toml", "--output", "tiny.toml", "--traces", "logs"], 2, "is an input of this command; name another output"),
    (["--formula", "A=p", "--formula", "A=q"], 2, "two formulas are called A"),
    (["nan.toml", "--traces", "logs"], 1, "load = nan: is not finite"),
    (["date.toml", "--traces", "logs", "--resamples", "1"], 1, "load = "),
    (["--length", "2y"], 2, "--length and --draw belong to resampled logs; add --resamples N"),
    (["--resamples", "2", "--windows", "5d"], 2, "--windows and --resamples exclude each other"),
    (["--load", "1000"], 2, "--load 1000.0: is out of range"),
    (["--analyses", "grops"], 2, "no analysis is called 'grops'; did you mean groups?"),
    (["--estimates", "loud"], 2, "--estimates 'loud': no such rule; write user, exact"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG, ids=lambda value: str(value)[:60])
def test_wrong_use_is_refused(
    arguments: list[str],
    code: int,
    message: str,
    protocol: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(protocol.parent)
    for name, load in (("nan", "nan"), ("date", "1979-05-27")):
        text = protocol.read_text(encoding="utf-8")
        Path(f"{name}.toml").write_text(
            text.replace("[[experiments]]", f"[[experiments]]\nload = {load}", 1), encoding="utf-8"
        )
    monkeypatch.setattr(sys, "argv", ["policyfactory", "evaluate", *arguments])
    with pytest.raises(SystemExit) as end:
        main.run()
    output = capsys.readouterr()
    assert message in output.err
    assert end.value.code == code
    assert output.err.splitlines()[-1].startswith("error: ")
    assert not list(protocol.parent.rglob("results.csv"))
    assert not Path("results").exists()  # nor an empty folder
