"""A partial file that was cut off is gone on with, one that was changed is named; the same bytes at the end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.processes import Nursery, hidden, results, wait_until
from support import NIGHTLY

GENERATE = ("--tuples", "40", "--trials", "6400", "--workers", "1", "--output", "out/t.csv")
EVALUATE = ("--policies", "FCFS,SAF,SPF", "--estimate-missing", "runtime", "--windows", "6x100jobs", "--workers", "1")
EVALUATE += ("--output", "out")


def flipped(data: bytes, at: int) -> bytes:
    """Return data of which one bit is another."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def record(data: bytes, number: int) -> int:
    """Return where record ``number`` begins, from 1; 0 is the head."""
    at = 0
    for _ in range(number):
        at = data.index(b"\n", at) + 1
    return at


# What a kill or a power loss leaves: a torn end.
TORN: dict[str, Callable[[bytes], bytes]] = {
    "cut off in the head": lambda data: data[: record(data, 1) // 2],
    "cut off in a checksum": lambda data: data[: record(data, 3) + 7],
    "cut off in a result": lambda data: data[: record(data, 3) + 40],
    "cut off before a line's end": lambda data: data[: record(data, 3) - 1],
    "zeros behind the end": lambda data: data + b"\0" * 100,
}
# What nothing of that leaves, and the words for it.
DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a bit of a result": (lambda data: flipped(data, record(data, 2) + 40), r":3: is damaged; remove the file"),
    "a line's end": (lambda data: flipped(data, record(data, 2) - 1), r":2: is damaged; remove the file"),
    "a bit of the head": (lambda data: flipped(data, data.index(b"method") + 9), "or its first line is damaged"),
    "another's file": (lambda _: b"notes\n" * 9, "is not a journal of finished results"),
}


class Halfway:
    """A partial file that a killed run left, and what the whole run makes."""

    def __init__(self, nursery: Nursery, folder: Path, name: str, *words: object) -> None:
        self.nursery = nursery
        self.words = words
        whole, half = folder / "whole", folder / "half"
        for one in (whole, half):
            (one / "out").mkdir(parents=True)
        nursery.start(whole, *words).must_end()
        self.files = results(whole)
        run = nursery.start(half, *words)
        path = half / "out" / name
        wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") > 5, f"{words}: no pieces", pause=0.0005)
        run.kill()
        run.end()
        self.name = name
        self.data = path.read_bytes()

    def put(self, folder: Path, data: bytes) -> None:
        """Put a partial file where a run finds it."""
        (folder / "out").mkdir()
        (folder / "out" / self.name).write_bytes(data)


@pytest.fixture(scope="module", params=["generate", "evaluate"])
def halfway(request: pytest.FixtureRequest, nursery: Nursery, tmp_path_factory, log: Path) -> Halfway:
    folder = tmp_path_factory.mktemp("halfway")
    if request.param == "generate":
        return Halfway(nursery, folder, "t.csv.partial", "generate", log, *GENERATE)
    return Halfway(nursery, folder, "evaluation.partial", "evaluate", log, *EVALUATE)


def by_night(halfway: Halfway, name: str, often: tuple[str, ...]) -> None:
    """Skip the many that take seconds each, for their report."""
    if halfway.words[0] == "evaluate" and name not in often and not NIGHTLY:
        pytest.skip("every kind of damage with evaluate: make nightly")


@pytest.mark.parametrize("name", TORN)
def test_a_torn_end_costs_the_piece_that_was_torn(halfway: Halfway, tmp_path: Path, name: str) -> None:
    by_night(halfway, name, ("cut off in a result",))
    halfway.put(tmp_path, TORN[name](halfway.data))
    run = halfway.nursery.start(tmp_path, *halfway.words).must_end()
    kept = re.search(r"([\d,]+)(?: of [\d,]+)? (?:tuples|simulations) were finished by an earlier run", run.stderr)
    # A line more than the pieces: the first.
    there = max(TORN[name](halfway.data).count(b"\n") - 1, 0)
    assert int(kept[1].replace(",", "") if kept else 0) == there, run.stderr
    assert results(tmp_path) == halfway.files
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("name", DAMAGE)
def test_other_damage_is_named_and_the_file_left(halfway: Halfway, tmp_path: Path, name: str) -> None:
    by_night(halfway, name, ())
    damage, words = DAMAGE[name]
    data = damage(halfway.data)
    halfway.put(tmp_path, data)
    run = halfway.nursery.start(tmp_path, *halfway.words).must_end(1)
    assert re.search(f"{halfway.name}.*{words}", run.stderr), run.stderr
    assert (tmp_path / "out" / halfway.name).read_bytes() == data
    (tmp_path / "out" / halfway.name).unlink()
    halfway.nursery.start(tmp_path, *halfway.words).must_end()
    assert results(tmp_path) == halfway.files
    assert hidden(tmp_path) == []


def test_a_result_that_was_changed_since_is_not_used(nursery: Nursery, tmp_path: Path, log: Path) -> None:
    words = ("generate", log, "--tuples", "33", "--trials", "256", "--output", "t.csv")
    nursery.start(tmp_path, *words).must_end()
    table = tmp_path / "t.csv"
    good = table.read_bytes()
    table.write_bytes(flipped(good, len(good) // 2))
    for command in (("fit", "t.csv", "--bootstrap", "0"), words):
        output = nursery.start(tmp_path, *command).must_end(1).stderr
        assert re.search(r"t\.csv: (is not the table that|was changed since)", output), output
    nursery.start(tmp_path, *words, "--overwrite").must_end()
    assert table.read_bytes() == good
    assert len(json.loads((tmp_path / "t.manifest.json").read_text(encoding="utf-8"))["outputs"]["t.csv"]) == 64
