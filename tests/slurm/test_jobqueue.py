"""The page "More machines than one", command by command, on a Slurm: its workers are jobs, and jobs get lost.

The page's network, memory and number of jobs are replaced by those of the test's machine, and few tuples are scored.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from commands import runner
from schedulers.processes import kill_marked, short_directory, wait_for
from schedulers.slurm import Cluster
from support import NIGHTLY, ROOT, shared_path

PAGE = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
TRACE = "traces/KTH-SP2-1996-2.1-cln.swf.gz"
# What is of the page's machine, and what the test's has instead: one processor's worker needs a third of a gigabyte.
SITE = {
    '"ib0"': '"lo"',
    "--interface ib0": "--interface lo",
    '"2GB"': '"900MB"',
    "--mem=2G": "--mem=900M",
    "--memory-limit 2GB": "--memory-limit 900MB",
    "jobs = int(sys.argv[1])": "jobs = 2",
    "--array=1-20": "--array=1-2",
    " NUMBA_CACHE_DIR=$HOME/.cache/numba": "",
}
FEW = "--tuples 6 --trials 2560"
TUPLES = 50
MANY = f"--tuples {TUPLES} --trials 1000000"


# The second way's scripts serve by day too, where the scheduler is cancelled.
WAYS = [("First way: dask-jobqueue", "lublin.csv")]
if NIGHTLY:
    WAYS.append(("Second way: two job scripts", "lublin-2.csv"))


def site(text: str) -> str:
    for there, here in SITE.items():
        text = text.replace(there, here)
    return text


def file_of_page(name: str) -> str:
    """Return a script of the page, with the names of the test's machine."""
    result = re.search(rf'^```\w+ title="{re.escape(name)}"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)
    assert result is not None, name
    return site(result.group(1))


def commands(heading: str) -> list[str]:
    """Return the commands of a section of the page in order."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```console\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    result = [line[2:] for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.startswith("$ ")]
    assert result, heading
    return [site(line) for line in result]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    for package in ("distributed", "dask_jobqueue"):
        if find_spec(package) is None:
            assert os.environ.get("CI") != "true", f"{package} is in the extra test"
            pytest.skip(f"{package} is not installed")
    with short_directory() as folder, Cluster(folder, nodes=2, processors=4) as started:
        yield started


@pytest.fixture
def place(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A user's folder, with the page's scripts in it; afterwards no job is left."""
    (tmp_path / "traces").symlink_to(shared_path("traces"))
    (tmp_path / "training_data").mkdir()
    for name in ("cluster.py", "scheduler.sh", "workers.sh"):
        (tmp_path / name).write_text(file_of_page(name))
    yield tmp_path
    kill_marked(f"PLACE={tmp_path}")
    cluster.empty()


def start(cluster: Cluster, folder: Path, line: str) -> subprocess.Popen[str]:
    """Run lines of the page as its reader would."""
    path = f"{Path(sys.executable).parent}:{cluster.environment['PATH']}"
    environment = {**cluster.environment, "PATH": path, "PLACE": str(folder)}
    pipe = subprocess.PIPE
    words = ["bash", "-m", "-c", line]
    return subprocess.Popen(words, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str], code: int = 0, seconds: float = 120.0) -> str:
    out, err = process.communicate(timeout=seconds)
    # Dask tells in its log where a connection was closed under what it still wanted to send.
    assert "Traceback" not in err.partition("distributed.batched")[0], err
    assert process.returncode == code, f"{process.args}\n{out}\n{err}"
    return out + err


def running(cluster: Cluster, name: str) -> list[str]:
    """Return the jobs of a name that run."""
    return cluster.run("squeue", "-h", "-r", "-t", "R", "-n", name, "-o", "%i").split()


def kept(table: Path) -> int:
    """Return how many tuples of an unfinished table are kept."""
    partial = table.with_name(f"{table.name}.partial")
    return max(0, partial.read_bytes().count(b"\n") - 1) if partial.exists() else 0


@contextlib.contextmanager
def workers_of_jobqueue(cluster: Cluster, folder: Path) -> Iterator[None]:
    process = start(cluster, folder, "exec python cluster.py 2")
    try:
        wait_for("workers", lambda: (folder / "scheduler.json").exists() and len(running(cluster, "dask-worker")) == 2)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        finish(process)


def test_the_ways_of_the_page_give_the_bytes_of_one_machine(
    cluster: Cluster, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run = runner(tmp_path, monkeypatch, capfd)
    run("generate", *FEW.split(), "--workers", 1, "--output", "here.csv")
    run("evaluate", TRACE, "--policies", "FCFS,SAF", "--output", "here")
    for heading, name in WAYS:
        lines = "\n".join(line.replace("generate ", f"generate {FEW} ") for line in commands(heading))
        until = "until [ -e scheduler.json ]; do sleep 0.2; done"
        lines = lines.replace("python cluster.py 20 &", f"python cluster.py 20 &\n{until}")
        finish(start(cluster, place, f"set -e\n{lines}\nwait"))
        assert (place / "training_data" / name).read_bytes() == (tmp_path / "here.csv").read_bytes()
        wait_for("the worker jobs' end", lambda: not cluster.run("squeue", "-h").strip())
    for values in (tmp_path / "here").rglob("*.csv"):
        there = place / "evaluation" / values.relative_to(tmp_path / "here")
        assert there.read_bytes() == values.read_bytes(), values.name
    names = [job["JobName"] for job in cluster.show_all().values()]
    assert names.count("dask-worker") >= 2 * len(WAYS)
    assert ("dask-scheduler" in names) == (len(WAYS) == 2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table of some seconds' work, made on this machine."""
    folder = tmp_path_factory.mktemp("whole")
    command = [str(Path(sys.executable).parent / "policyfactory"), "generate", *MANY.split(), "--output", "whole.csv"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (folder / "whole.csv").read_bytes()


def test_a_cancelled_worker_costs_its_pieces_only(cluster: Cluster, place: Path, whole: bytes) -> None:
    from distributed import Client

    with workers_of_jobqueue(cluster, place):
        table = place / "table.csv"
        command = start(cluster, place, f"exec policyfactory generate {MANY} --scheduler scheduler.json -o {table}")
        wait_for("the first tuples", lambda: kept(table) >= 3)
        cluster.run("scancel", running(cluster, "dask-worker")[0])
        output = finish(command)
        with Client(scheduler_file=str(place / "scheduler.json"), set_as_default=False) as client:
            # A function without a name is sent whole: the scheduler cannot import this file.
            times = client.run_on_scheduler(
                lambda dask_scheduler: sum(
                    entry[1:3] == ("processing", "memory") for entry in dask_scheduler.transition_log
                )
            )
    assert table.read_bytes() == whole
    assert "has gone; what it had begun is computed again by others" in output
    # Done and not yet fetched when its worker went: two at most, of which one is being done.
    assert TUPLES <= times <= TUPLES + 2


def test_after_the_scheduler_was_cancelled_the_same_command_goes_on(
    cluster: Cluster, place: Path, whole: bytes
) -> None:
    *submit, wait, _, _ = commands("Second way: two job scripts")
    table = place / "table.csv"
    generate = f"exec policyfactory generate {MANY} --scheduler scheduler.json -o {table}"
    finish(start(cluster, place, "\n".join([*submit, wait])))
    command = start(cluster, place, generate)
    wait_for("the first tuples", lambda: kept(table) >= 3)
    cluster.run("scancel", (place / "scheduler.id").read_text().strip())
    output = " ".join(finish(command, 1).split())
    result = kept(table)
    assert "was lost" in output
    assert "the same command goes on" in output
    assert 3 <= result < TUPLES
    assert not table.exists()
    wait_for("the workers' end", lambda: not cluster.run("squeue", "-h").strip())
    finish(start(cluster, place, "\n".join([*submit, wait])))
    output = finish(start(cluster, place, generate))
    assert f"{result} tuples were finished by an earlier run" in output
    assert table.read_bytes() == whole
