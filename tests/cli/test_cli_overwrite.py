"""One rule for every command that writes: what is there is replaced with --overwrite only, and stays else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from naive.logs import text_of
from policyfactory.cli.main import build_app
from policyfactory.core.errors import OutputError
from policyfactory.core.files import refuse_earlier

Run = Callable[..., Any]
SMALL = ("--tuples", 32, "--trials", 512, "--state-size", 2, "--queue-size", 4, "--seed", 2)

# What each command writes, and the first of it that it refuses to replace.
WRITERS: dict[str, tuple[tuple[object, ...], str]] = {
    "workload show": (("site.swf", "--output", "out"), "out/site-arrivals.png"),
    "workload clean": (("site.swf", "--output", "out.swf"), "out.swf"),
    "workload clean --report": (("site.swf", "--report", "out.json"), "out.json"),
    "workload window": (("site.swf", "--jobs", 9, "--output", "out.swf"), "out.swf"),
    "workload window --windows": (("site.swf", "--windows", "2x3d", "--output", "out"), "out/site-w01.swf.gz"),
    "workload lublin": (("--jobs", 50, "--output", "out.swf"), "out.swf"),
    "workload estimates": (("site.swf", "--output", "out.swf"), "out.swf"),
    "workload import": (("filetxt.log", "--time-zone", "UTC", "--output", "out.swf"), "out.swf"),
    "workload resample": (("site.swf", "--output", "out.swf"), "out.swf"),
    "generate --convergence": (
        ("site.swf", "--convergence", *SMALL, "--repeats", 2, "--output", "out.svg"),
        "out.svg",
    ),
    "fit": (("table.csv", "--bootstrap", 0, "--output", "out.json"), "out.json"),
    "fit --report": (("table.csv", "--bootstrap", 0, "--report", "out.md"), "out.md"),
    "fit --figures": (("table.csv", "--form", "a*p + b*q", "--bootstrap", 0, "--figures", "out"), "out/ranking.png"),
    "evaluate": (("site.swf", "--policies", "FCFS,SAF", "--analyses", "none", "--output", "out"), "out/results.csv"),
    "tune": (("site.swf", "--policies", "FCFS,SAF", "--output", "out"), "out/results.csv"),
    "predict": (
        ("site.swf", "--least", 50, "--first-days", 3, "--trees", 2, "--output", "out"),
        "out/report.html",
    ),
    "site import": (("slurm.conf", "--output", "out.toml"), "out.toml"),
    "site replay": (("site.swf", "site.toml", "--output", "out"), "out/report.html"),
    "export": (("SAF", "--to", "python", "--output", "out.py"), "out.py"),
}
# Their tests are with the others of them: they take long, or need logs of their own. `download` never replaces: what is
# there is not fetched again.
ELSEWHERE = {
    "judge", "learn", "train", "distill", "demo", "generate", "shadow", "review", "policy explain", "forecast",
}  # fmt: skip
NEVER = {"workload download"}


@pytest.fixture
def inputs(tmp_path: Path) -> None:
    jobs: list[dict[str, object]] = [
        {"submit": 3600 * n, "user": n % 3, "allocated": n % 4 + 1, "run_time": 30 + n % 9} for n in range(2 * 168 + 1)
    ]
    (tmp_path / "site.swf").write_text(text_of(jobs))
    (tmp_path / "slurm.conf").write_text("NodeName=n1\nPartitionName=p Nodes=n1\n")
    (tmp_path / "site.toml").write_text(
        'schema = 1\nnodes = [{names = "n1", cores = 4}]\npartitions = [{name = "p"}]\n'
    )
    (tmp_path / "filetxt.log").write_text(
        "JobId=1 UserId=a(1) GroupId=a(1) Name=x JobState=COMPLETED Partition=p TimeLimit=60 "
        "StartTime=2026-01-01T00:00:10 EndTime=2026-01-01T00:01:00 NodeList=n1 NodeCnt=1 ProcCnt=4 "
        "WorkDir=/ SubmitTime=2026-01-01T00:00:00 EligibleTime=2026-01-01T00:00:00\n"
    )
    rng = np.random.default_rng(3)
    rows = [
        f"{rng.integers(10, 9999)},{rng.integers(1, 64)},{60 * n},{score:.12g},0.001,{part}"
        for part in range(3)
        for n, score in enumerate(rng.dirichlet(np.full(32, 9.0)))
    ]
    (tmp_path / "table.csv").write_text("\n".join(["p,q,r,score,stderr,tuple", *rows, ""]))


def commands(group: Any, before: str = "") -> Iterator[tuple[str, set[str]]]:
    """Give each command by its words, and its options."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", {option for parameter in command.params for option in parameter.opts}


def test_every_command_that_writes_is_tested_here_and_has_the_option() -> None:
    app = typer.main.get_command(build_app())
    writing = {name: options for name, options in commands(app) if "--output" in options}
    tested = {words.split(" --")[0] for words in WRITERS}
    assert set(writing) - NEVER == tested | ELSEWHERE
    assert {name for name, options in writing.items() if "--overwrite" not in options} == NEVER
    # Nothing is written by another word.
    assert not {name for name, options in commands(app) if {"--out", "--target", "--file"} & options}


@pytest.mark.parametrize("words", WRITERS)
@pytest.mark.usefixtures("inputs")
@pytest.mark.usefixtures("blank_pictures")
def test_a_file_that_is_there_is_replaced_on_demand_only(run: Run, words: str, tmp_path: Path) -> None:
    arguments, name = WRITERS[words]
    command = words.split(" --", maxsplit=1)[0].split()
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("a thing of mine")
    before = {one: one.stat().st_mtime_ns for one in tmp_path.rglob("*") if one.is_file()}
    refused = run(*command, *arguments, code=1)
    assert f"{name}: exists; add --overwrite" in refused.stderr
    assert {one: one.stat().st_mtime_ns for one in tmp_path.rglob("*") if one.is_file()} == before
    run(*command, *arguments, "--overwrite")
    assert path.read_bytes() != b"a thing of mine"
    run(*command, *arguments, code=1)


def test_pipes_and_devices_are_no_earlier_results(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    refuse_earlier(Path(os.devnull), tmp_path / "pipe", tmp_path / "none", None, overwrite=False)
    refuse_earlier(tmp_path / "file", overwrite=True)
    with pytest.raises(OutputError, match=r"file: exists; add --overwrite to replace it"):
        refuse_earlier(None, tmp_path / "file", overwrite=False)
