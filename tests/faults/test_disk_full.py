"""The disk is full: the message names the file, nothing is half written, and with room the same command goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.disks import Disk, read_only, small_disk
from faults.processes import EVALUATE, Nursery, Run, hidden, results, tree
from support import NIGHTLY

TUPLES = ("--tuples", "64", "--trials", "256")
# Name: command, and how much room there is: none at all, or enough to begin.
COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "a model's log": (("workload", "lublin", "--jobs", "2000", "--output", "DISK/m.swf"), 4096),
    "a cleaned log": (
        (
            "workload",
            "clean",
            "LOG",
            "--output",
            "DISK/c.swf",
            "--estimate-missing",
            "runtime",
            "--report",
            "DISK/c.json",
        ),
        0,
    ),
    "windows": (("workload", "window", "LOG", "--output", "DISK/w", "--windows", "6x100jobs", "--overwrite"), 4096),
    "scores": (("generate", "LOG", *TUPLES, "--output", "DISK/t.csv"), 16384),
    "scores, from the first": (("generate", "LOG", *TUPLES, "--output", "DISK/t.csv"), 0),
    "formulas": (("fit", "SCORES", "--bootstrap", "0", "--output", "DISK/f.json", "--report", "DISK/f.md"), 0),
    "a plugin": (("export", "SAF", "--to", "lua", "--output", "DISK/saf.lua"), 0),
    "several files": (("export", "SAF", "--to", "gridengine", "--processors", "64", "--output", "DISK/ge"), 0),
    "an evaluation": (
        (*EVALUATE, "DISK/e"),
        32768,
    ),
}
if NIGHTLY:
    COMMANDS |= {
        "the demonstration": (("demo", "--tuples", "64", "--trials", "256", "--output", "DISK/d"), 65536),
        "all from a log": (
            ("learn", "LOG", *TUPLES, "--estimate-missing", "runtime", "--output", "DISK/l"),
            65536,
        ),
    }


@pytest.fixture(scope="module")
def scores(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory, log: Path) -> Path:
    folder = tmp_path_factory.mktemp("scores")
    nursery.start(folder, "generate", log, *TUPLES, "--output", "t.csv").must_end()
    return folder / "t.csv"


# The others need seconds each.
DAILY = ("a model's log", "windows", "scores", "a plugin", "several files")


@pytest.fixture(params=COMMANDS if NIGHTLY else DAILY)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def disk(tmp_path: Path, name: str) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk", COMMANDS[name][1]) as made:
        yield made


def words_of(name: str, log: Path, scores: Path) -> list[str]:
    """Return a command that writes where it is run."""
    places = {"LOG": str(log), "SCORES": str(scores)}
    return [places.get(word, word.replace("DISK/", "")) for word in COMMANDS[name][0]]


def test_a_full_disk_is_reported_and_costs_no_file(
    nursery: Nursery, tmp_path: Path, disk: Disk, name: str, log: Path, scores: Path
) -> None:
    words = words_of(name, log, scores)

    def run(largest: int | None) -> Run:
        return nursery.start(disk.folder, *words, largest_file=largest)

    (disk.folder / "earlier.txt").write_text("earlier", encoding="ascii")
    disk.fill()
    before = results(disk.folder)
    failed = run(disk.largest_file).must_end(1)
    output = failed.stderr.splitlines()[-1]
    names = "|".join(re.escape(word.removeprefix("DISK/")) for word in COMMANDS[name][0] if word.startswith("DISK/"))
    assert re.search(rf"error: ({names}).*(no space left|too large)", output, re.IGNORECASE), failed.stderr
    left = results(disk.folder)
    assert {key: left[key] for key in before} == before
    assert not [one for one in hidden(disk.folder) if not one.endswith(".partial")]
    disk.make_room()
    run(None).must_end()
    made = results(disk.folder)
    assert hidden(disk.folder) == []
    whole = tmp_path / "whole"
    whole.mkdir()
    nursery.start(whole, *words).must_end()
    expected = results(whole)
    assert set(made) == set(expected) | {"earlier.txt"}
    # What was written before the disk was full is whole too.
    for key, content in expected.items():
        if not key.endswith("steps.txt"):  # a report for the terminal, with durations
            assert made[key] == content, key
        if key in left and not key.endswith("steps.txt"):
            assert left[key] == content, key


def test_an_earlier_file_outlives_a_full_disk(nursery: Nursery, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4096) as disk:
        words = ("workload", "lublin", "--output", "m.swf", "--jobs")
        nursery.start(disk.folder, *words, 1000).must_end()
        earlier = tree(disk.folder)
        disk.fill()
        nursery.start(disk.folder, *words, 2000, largest_file=disk.largest_file).must_end(1)
        assert {key: content for key, content in tree(disk.folder).items() if key != "filler"} == earlier


WHERE_NOBODY_WRITES = {
    **{name: words for name, (words, _) in COMMANDS.items() if name != "scores, from the first"},
    # Hours of work, had it begun.
    "scores": ("generate", "--tuples", "100000", "--output", "DISK/t.csv"),
    "pictures": ("workload", "show", "LOG", "--output", "DISK"),
    "requests": ("workload", "estimates", "LOG", "--output", "DISK/r.swf"),
    "an archive": ("workload", "download", "kth", "--base-url", "http://127.0.0.1:9", "--output", "DISK"),
    "precision": ("generate", "--convergence", "--output", "DISK/c.svg"),
    "tuning": ("tune", "LOG", "--estimate-missing", "runtime", "--output", "DISK/t"),
}


def test_where_nobody_can_write_every_command_says_so_before_it_works(
    nursery: Nursery, tmp_path: Path, log: Path, scores: Path
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    places = {"LOG": str(log), "SCORES": str(scores)}
    with read_only(folder):
        for words in WHERE_NOBODY_WRITES.values():
            run = nursery.start(tmp_path, *(places.get(word, word.replace("DISK", str(folder))) for word in words))
            run.must_end(1)
            assert re.search(r"error: .*/disk.*(cannot write in|cannot be created)", run.stderr), run.stderr
            # Not even the first progress bar.
            assert "━" not in run.stderr, run.stderr
    assert tree(folder) == {}
