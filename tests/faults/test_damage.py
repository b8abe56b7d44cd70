"""A partial file that was cut off or changed: found by its checksums, done again, told; the same bytes at the end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.processes import NIGHTLY, Nursery, hidden, results, wait_until

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


# What is done to the file, and whether it is a record that is lost (else nothing but a torn end, or a whole file).
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut off in a checksum": lambda data: data[: record(data, 3) + 7],
    "cut off behind a checksum": lambda data: data[: record(data, 3) + 17],
    "cut off in a result": lambda data: data[: record(data, 3) + 40],
    "cut off before a line's end": lambda data: data[: record(data, 3) - 1],
    "a bit of a checksum": lambda data: flipped(data, record(data, 2) + 3),
    "a bit of a number": lambda data: flipped(data, record(data, 2) + 17),
    "a bit of a result": lambda data: flipped(data, record(data, 2) + 40),
    "a line's end": lambda data: flipped(data, record(data, 2) - 1),
    "a line's end in a result": lambda data: data[: record(data, 2) + 40] + b"\n" + data[record(data, 2) + 41 :],
    "a block of zeros": lambda data: data[: record(data, 2) + 5] + bytes(64) + data[record(data, 2) + 69 :],
    "something behind the end": lambda data: data + b"\0" * 100,
    "another record's number": lambda data: re.sub(
        rb" (\d+) ", lambda result: b" %d9 " % int(result[1]), data, count=0
    ),
}
# Every byte of it: tests/core/test_journal.py.
HEADS: dict[str, Callable[[bytes], bytes]] = {
    "half a head": lambda data: data[: record(data, 1) // 2],
    "a bit of the head's mark": lambda data: flipped(data, 0),
    "a bit of the head's layout": lambda data: flipped(data, data.index(b"{")),
    "a bit of the head's run": lambda data: flipped(data, data.index(b"method") + 9),
    "the head's end": lambda data: flipped(data, record(data, 1) - 1),
}
# Nobody's: no mark, no checksum and no piece is right.
STRANGERS: dict[str, Callable[[bytes], bytes]] = {
    "another's file": lambda _: b"notes\n" * 9,
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


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_pieces_are_done_again_and_counted(halfway: Halfway, tmp_path: Path, name: str) -> None:
    by_night(halfway, name, ("a bit of a result",))
    data = DAMAGE[name](halfway.data)
    assert data != halfway.data
    halfway.put(tmp_path, data)
    run = halfway.nursery.start(tmp_path, *halfway.words).must_end()
    assert results(tmp_path) == halfway.files
    assert hidden(tmp_path) == []
    assert re.search(r"[1-9][\d,]* damaged", run.stderr), run.stderr


@pytest.mark.parametrize("name", HEADS)
def test_a_damaged_first_line_costs_no_piece_that_is_there(halfway: Halfway, tmp_path: Path, name: str) -> None:
    by_night(halfway, name, ("a bit of the head's run",))
    data = HEADS[name](halfway.data)
    assert data != halfway.data
    halfway.put(tmp_path, data)
    run = halfway.nursery.start(tmp_path, *halfway.words).must_end()
    assert "evaluation.partial was damaged" in run.stderr or "t.csv.partial was damaged" in run.stderr, run.stderr
    kept = re.search(r"([\d,]+)(?: of [\d,]+)? (?:tuples|simulations) were finished by an earlier run", run.stderr)
    # A line more than the pieces: the first; a torn last one counts for none.
    there = halfway.data.count(b"\n") - 1 if len(data) == len(halfway.data) else 0
    assert int(kept[1].replace(",", "") if kept else 0) == there, run.stderr
    assert results(tmp_path) == halfway.files
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("name", STRANGERS)
def test_a_file_that_does_not_say_whose_it_is_is_not_gone_on_with(halfway: Halfway, tmp_path: Path, name: str) -> None:
    by_night(halfway, name, ())
    data = STRANGERS[name](halfway.data)
    halfway.put(tmp_path, data)
    run = halfway.nursery.start(tmp_path, *halfway.words).must_end(1)
    assert re.search(rf"{halfway.name}: .*(remove it|--overwrite)", run.stderr), run.stderr
    assert (tmp_path / "out" / halfway.name).read_bytes() == data
    halfway.nursery.start(tmp_path, *halfway.words, "--overwrite").must_end()
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
