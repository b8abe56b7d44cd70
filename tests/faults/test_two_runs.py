"""Two processes on one output: one wins, the other is told at once; nobody is told of a process that is gone."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from faults.processes import Nursery, hidden, results, wait_until
from policyfactory.core.files import exclusive
from support import NIGHTLY

# Name: command, and the output of which only one may be at work.
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "generate": (("generate", "LOG", "--tuples", "2", "--trials", "256", "--output", "t.csv"), "t.csv"),
    "fit": (("fit", "SCORES", "--output", "f.json"), "f.json"),
    "fit's report": (("fit", "SCORES", "--report", "f.md"), "f.md"),
    "fit's pictures": (("fit", "SCORES", "--figures", "p"), "p/pictures"),
    "evaluate": (("evaluate", "LOG", "--policies", "FCFS,SAF", "--output", "e"), "e/results.csv"),
    "tune": (("tune", "LOG", "--output", "e"), "e/results.csv"),
    "learn": (("learn", "LOG", "--estimate-missing", "runtime", "--output", "l"), "l/learn"),
    "demo": (("demo", "--output", "d"), "d/demo"),
    "export": (("export", "SAF", "--to", "lua", "--output", "s.lua"), "s.lua"),
    "export to a folder": (("export", "SAF", "--to", "lua", "--output", "x"), "x/export"),
    "import": (("workload", "import", "LOG", "--output", "i.swf"), "i.swf"),
    "lublin": (("workload", "lublin", "--jobs", "10", "--output", "m.swf"), "m.swf"),
    "estimates": (("workload", "estimates", "LOG", "--output", "q.swf"), "q.swf"),
    "clean": (("workload", "clean", "LOG", "--output", "c.swf"), "c.swf"),
    "clean's report": (("workload", "clean", "LOG", "--output", "c.swf", "--report", "c.json"), "c.json"),
    "window": (("workload", "window", "LOG", "--output", "w.swf", "--jobs", "10"), "w.swf"),
    "windows": (("workload", "window", "LOG", "--output", "w", "--windows", "2x100jobs"), "w/windows"),
    "resample": (("workload", "resample", "LOG", "--output", "r.swf"), "r.swf"),
    "show": (("workload", "show", "LOG", "--output", "p"), "p/pictures"),
    "download": (
        ("workload", "download", "kth", "--base-url", "http://127.0.0.1:9", "--output", "."),
        "KTH-SP2-1996-2.1-cln.swf.gz",
    ),
}


@pytest.fixture(scope="module")
def scores(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory, log: Path) -> Path:
    folder = tmp_path_factory.mktemp("scores")
    nursery.start(folder, "generate", log, "--tuples", "64", "--trials", "256", "--output", "t.csv").must_end()
    return folder / "t.csv"


def test_the_second_run_of_every_command_is_reported_at_once(
    nursery: Nursery, tmp_path: Path, log: Path, scores: Path
) -> None:
    places = {"LOG": str(log), "SCORES": str(scores)}
    for words, output in COMMANDS.values():
        path = tmp_path / output
        path.parent.mkdir(exist_ok=True)
        with exclusive(path):
            run = nursery.start(tmp_path, *(places.get(word, word) for word in words)).must_end(1)
        assert re.search(
            rf"{re.escape(path.name)}: another run is writing it \(lock .*\.lock\); wait for it", run.stderr
        )
        assert results(tmp_path) == {}
        assert hidden(tmp_path) == []


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM"])
def test_one_of_two_real_runs_wins(nursery: Nursery, tmp_path: Path, log: Path, end: str) -> None:
    words = ("generate", log, "--tuples", "4000", "--trials", "25600", "--workers", "1", "--output", "t.csv")
    first = nursery.start(tmp_path, *words)
    wait_until((tmp_path / "t.csv.partial").exists, "did not begin")
    second = nursery.start(tmp_path, *words).must_end(1)
    assert "another run is writing it" in second.stderr
    assert first.running()
    first.kill(signal.Signals[end])
    first.end()
    kept = (tmp_path / "t.csv.partial").stat().st_size
    # The lock of a process that is gone, whose file may still be there, holds nobody up.
    third = nursery.start(tmp_path, *words)
    wait_until(lambda: (tmp_path / "t.csv.partial").stat().st_size > kept or not third.running(), "did not begin")
    third.kill(signal.SIGTERM)
    third.must_end(143)


def test_of_runs_that_begin_together_one_wins_and_the_file_is_whole(nursery: Nursery, tmp_path: Path) -> None:
    words = ("workload", "lublin", "--jobs", "300", "--output", "m.swf", "--overwrite")
    nursery.start(tmp_path, *words).must_end()
    whole = results(tmp_path)
    for _ in range(30 if NIGHTLY else 3):
        (tmp_path / "m.swf").unlink()
        together = [nursery.start(tmp_path, *words) for _ in range(4)]
        codes = [run.end() for run in together]
        assert 0 in codes
        assert set(codes) <= {0, 1}
        for run, code in zip(together, codes, strict=True):
            run.must_end(code)
            assert ("another run is writing it" in run.stderr) == bool(code)
        assert results(tmp_path) == whole
        assert hidden(tmp_path) == []
