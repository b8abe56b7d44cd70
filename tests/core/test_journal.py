"""The journal: its whole records are read again, a torn end is cut off, and other damage is named."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from policyfactory.core import journal as module
from policyfactory.core.errors import OutputError
from policyfactory.core.journal import Journal, _checksum, claim, library_versions, partial_path
from refusals import refusal, refused
from support import run_of

HEAD = {"seed": 1}
COUNT = 6


def record(body: bytes, head: object = HEAD) -> bytes:
    digest = hashlib.sha256(json.dumps(head).encode()).digest()
    return _checksum(digest + body) + b" " + body + b"\n"


def differs(_there: object, _here: object) -> str:
    return "other options"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a file with the records 3, 0 and 4 of six."""
    file = partial_path(tmp_path / "t.csv")
    with Journal(file, HEAD, COUNT) as journal:
        for number in (3, 0, 4):
            journal.append(number, b"found %d" % number)
    return file


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: hundreds of files are written, and nobody cuts the power."""
    monkeypatch.setattr("os.fsync", lambda _: None)


def kept(path: Path) -> list[int]:
    """Return the units whose records are found, each checked."""
    with Journal(path, HEAD, COUNT) as journal:
        records = dict(journal.records())
        assert all(text == b"found %d" % number for number, text in records.items())
        assert sorted({*range(COUNT)} - {*records}) == journal.missing()
        assert len(journal) == len(records)
        return list(records)


def test_finished_results_are_read_again_in_order(path):
    assert path.name == "t.csv.partial"
    assert run_of(path) == HEAD
    assert kept(path) == [0, 3, 4]


@pytest.mark.usefixtures("quick_disk")
def test_every_cut_leaves_the_whole_records_before_it(path):
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for cut in range(head, len(whole) + 1):
        path.write_bytes(whole[:cut])
        lines = whole[head:cut].count(b"\n")
        assert kept(path) == sorted([3, 0, 4][:lines])
        # The torn one is cut off: what is written next begins on a line of its own.
        assert kept(path) == sorted([3, 0, 4][:lines])


def test_damage_before_the_end_is_named_and_changes_nothing(path):
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    cases = {
        2: lines[0] + lines[1].replace(b"found", b"fount") + lines[2],
        3: lines[0] + lines[1] + b"garbage\n" + lines[2],
        4: lines[0] + lines[1] + lines[2] + bytes(64) + b"\n" + lines[3],
        5: whole + record(b"6 found 6"),
    }
    for number, damaged in cases.items():
        path.write_bytes(damaged)
        refused(OutputError, f"t.csv.partial:{number}: damaged -n {number - 1}", Journal, path, HEAD, COUNT)
        assert path.read_bytes() == damaged
    # What a power loss leaves behind the last line is no line.
    path.write_bytes(whole + bytes(4096))
    assert kept(path) == [0, 3, 4]
    assert path.read_bytes() == whole


def test_a_damaged_first_line_is_no_journal(path):
    path.write_bytes(path.read_bytes().replace(b'"seed": 1', b'"seed": 2'))
    refused(OutputError, "t.csv.partial damaged remove", Journal, path, {"seed": 2}, COUNT)


def test_of_two_records_of_a_work_unit_the_later_counts(path):
    path.write_bytes(path.read_bytes() + record(b"3 later"))
    with Journal(path, HEAD, COUNT) as journal:
        assert dict(journal.records())[3] == b"later"
        assert len(journal) == 3


@pytest.mark.parametrize("text", [b"a\nb", b"0" * (1 << 26)])
def test_what_is_no_record_is_not_written(path, text):
    before = path.read_bytes()
    with Journal(path, HEAD, COUNT) as journal, refusal(OutputError, "t.csv.partial 1 work"):
        journal.append(1, text)
    assert path.read_bytes() == before


def test_a_record_changed_while_the_run_is_on_is_noticed(path):
    with Journal(path, HEAD, COUNT) as journal:
        path.write_bytes(path.read_bytes().replace(b"found 3", b"found 4"))
        refused(OutputError, "t.csv.partial 3 changed", list, journal.records())


def test_memory_is_eight_bytes_a_work_unit(tmp_path):
    with Journal(tmp_path / "p", {}, 100_000) as journal:
        assert journal._offsets.nbytes == 800_000
        assert not [name for name in vars(journal) if isinstance(getattr(journal, name), (list, dict))]


@pytest.mark.parametrize(
    "text",
    [
        "\n",
        "my notes\n",
        "[]\n",
        "{}\n",
        '{"mark": "other"}\n',
        "[" * 100_000,
        "\xff\n",
        "1" * 5000 + "\n",
        "policyx\n",
    ],
)
def test_what_is_no_journal_is_not_touched(tmp_path, text):
    path = tmp_path / "t.partial"
    path.write_text(text, encoding="latin-1")
    with refusal(OutputError, "t.partial journal finished"):
        claim(path, HEAD, "tuples", lambda _there, _here: "", overwrite=False)
    assert path.read_text(encoding="latin-1") == text
    claim(path, HEAD, "tuples", lambda _there, _here: "", overwrite=True)
    assert not path.exists()


def test_a_file_belongs_to_the_run_that_it_names(path):
    compared: list[tuple[object, object]] = []

    def difference(there, here):
        compared.append((there, here))
        return "seed 1 (now 2)"

    before = path.read_bytes()
    claim(path, HEAD, "tuples", difference, overwrite=True)
    refused(OutputError, "t.csv.partial 1 2", claim, path, {"seed": 2}, "tuples", difference, overwrite=False)
    assert compared == [({"seed": 1}, {"seed": 2})]
    assert path.read_bytes() == before
    claim(path, {"seed": 2}, "tuples", difference, overwrite=True)
    assert not path.exists()
    claim(path, {"seed": 2}, "tuples", difference, overwrite=False)


def test_a_head_is_compared_as_json_has_it(tmp_path):
    head = {"sizes": (1, 2), "share": 0.1}
    with Journal(tmp_path / "p", head, 1):
        pass
    claim(tmp_path / "p", head, "tuples", lambda there, here: json.dumps([there, here]), overwrite=False)
    assert (tmp_path / "p").exists()


@pytest.mark.usefixtures("quick_disk")
def test_a_file_that_is_cut_off_in_its_first_line_is_begun_anew(path):
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n")):
        path.write_bytes(whole[:cut])
        claim(path, HEAD, "tuples", differs, overwrite=False)
        with Journal(path, HEAD, COUNT) as journal:
            assert len(journal) == 0
        assert kept(path) == []


def test_the_records_of_another_run_are_not_overwritten_by_who_does_not_ask(path):
    before = path.read_bytes()
    refused(OutputError, "t.csv.partial finished results", Journal, path, {"seed": 2}, COUNT)
    assert path.read_bytes() == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, overwrite):
    path = tmp_path / "t.csv.partial"
    os.mkfifo(path)
    for open_it in (
        lambda: claim(path, HEAD, "tuples", differs, overwrite=overwrite),
        lambda: Journal(path, HEAD, COUNT),
    ):
        refused(OutputError, "t.csv.partial device directory", open_it)
    assert path.is_fifo()


def test_one_record_is_read_by_its_number(path):
    with Journal(path, HEAD, COUNT) as journal:
        assert [journal.read(number) for number in range(COUNT)] == [
            b"found 0",
            None,
            None,
            b"found 3",
            b"found 4",
            None,
        ]
        journal.append(1, b"new")
        assert journal.read(1) == b"new"
        path.write_bytes(path.read_bytes().replace(b"found 4", b"found 5"))
        refused(OutputError, "t.csv.partial 4 changed", journal.read, 4)


def test_the_disk_is_waited_for_every_few_seconds_and_at_the_end(path, monkeypatch):
    now, synced = [100.0], []
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.os, "fsync", lambda _: synced.append(now[0]))
    with Journal(path, HEAD, COUNT) as journal:
        for seconds in (1.0, 3.9, 0.2, 4.0, 2.0):
            now[0] += seconds
            journal.append(1, b"x")
        assert synced == pytest.approx([105.1, 111.1])
        now[0] += 1
    assert len(synced) == 3


def test_a_disk_that_does_not_take_what_it_was_given_is_an_error(path, monkeypatch):
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(module.os, "fsync", fail)
    monkeypatch.setattr(module, "_SYNC", 0.0)
    with Journal(path, HEAD, COUNT) as journal, refusal(OutputError, "t.csv.partial Input/output error"):
        journal.append(1, b"x")
    assert path.read_bytes() == before


def test_libraries_that_change_last_digits_belong_to_a_run():
    assert sorted(library_versions()) == ["numba", "numpy", "scikit-learn", "scipy"]
