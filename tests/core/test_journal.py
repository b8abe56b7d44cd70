"""The journal: whatever happens to it, a whole record is read and the work unit of a damaged one is done again."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from pathlib import Path

import pytest

from policyfactory.core import journal as module
from policyfactory.core.errors import OutputError
from policyfactory.core.journal import Journal, _checksum, claim, library_versions, partial_path
from support import run_of

HEAD = {"seed": 1}
COUNT = 6


def record(body: bytes, head: object = HEAD) -> bytes:
    digest = hashlib.sha256(json.dumps(head).encode()).digest()
    return _checksum(digest + body) + b" " + body + b"\n"


def refused(_there: object, _here: object) -> str:
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


def kept(path: Path) -> tuple[list[int], int]:
    """Return the units whose records are found, each checked, and how many damaged records there were."""
    with Journal(path, HEAD, COUNT) as journal:
        records = dict(journal.records())
        assert all(text == b"found %d" % number for number, text in records.items())
        assert sorted({*range(COUNT)} - {*records}) == journal.missing()
        assert len(journal) == len(records)
        return list(records), journal.damaged


def test_finished_results_are_read_again_in_order(path):
    assert path.name == "t.csv.partial"
    assert run_of(path) == HEAD
    assert kept(path) == ([0, 3, 4], 0)


@pytest.mark.usefixtures("quick_disk")
def test_every_cut_leaves_the_whole_records_before_it(path):
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for cut in range(head, len(whole) + 1):
        path.write_bytes(whole[:cut])
        lines = whole[head:cut].count(b"\n")
        torn = not whole[:cut].endswith(b"\n")
        assert kept(path) == (sorted([3, 0, 4][:lines]), torn)
        # The torn one is cut off: what is written next begins on a line of its own.
        assert kept(path) == (sorted([3, 0, 4][:lines]), 0)


@pytest.mark.usefixtures("quick_disk")
def test_every_flipped_bit_is_noticed(path):
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for at in range(head, len(whole)):
        for bit in (0, 5):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            records, damaged = kept(path)
            assert len(records) < 3
            assert damaged >= 1


@pytest.mark.parametrize(
    "body",
    [
        b"6 found 6", b"-1 found", b"99999999999999999999 x", b"1" * 5000 + b" x", b"x found", b" found", b"",
        b"\xb2 x", b"1_0 found", b"+1 found", b"1.0 found", b"nan x", b"\x00\xff",
    ],
)  # fmt: skip
def test_a_record_with_a_right_checksum_and_no_number_of_a_work_unit_is_damaged(path, body):
    path.write_bytes(path.read_bytes() + record(body))
    assert kept(path) == ([0, 3, 4], 1)


def test_of_two_records_of_a_work_unit_the_later_counts(path):
    path.write_bytes(path.read_bytes() + record(b"3 later"))
    with Journal(path, HEAD, COUNT) as journal:
        assert dict(journal.records())[3] == b"later"
        assert (len(journal), journal.damaged) == (3, 0)


def test_a_line_without_end_is_not_held_in_memory(path, monkeypatch):
    monkeypatch.setattr(module, "_LONGEST", 1 << 16)
    whole = path.read_bytes()
    for end in (b"", b"\n" + record(b"5 found 5")):
        path.write_bytes(whole + b"0" * (1 << 23) + end)
        tracemalloc.start()
        assert kept(path) == ([0, 3, 4, 5] if end else [0, 3, 4], 1)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()


@pytest.mark.parametrize("text", [b"a\nb", b"0" * (1 << 26)])
def test_what_is_no_record_is_not_written(path, text):
    before = path.read_bytes()
    with Journal(path, HEAD, COUNT) as journal, pytest.raises(OutputError, match="of work unit 1 cannot be kept"):
        journal.append(1, text)
    assert path.read_bytes() == before


def test_a_record_changed_while_the_run_is_on_is_noticed(path):
    with Journal(path, HEAD, COUNT) as journal:
        path.write_bytes(path.read_bytes().replace(b"found 3", b"found 4"))
        with pytest.raises(OutputError, match="work unit 3 was changed on disk"):
            list(journal.records())


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
    with pytest.raises(OutputError, match="is not a journal of finished results"):
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
    with pytest.raises(OutputError, match=r"holds finished tuples of a run with seed 1 \(now 2\); give the same"):
        claim(path, {"seed": 2}, "tuples", difference, overwrite=False)
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
def test_every_flip_in_the_first_line_is_noticed_and_costs_no_record(path):
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    for at in range(head):
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            claim(path, HEAD, "tuples", refused, overwrite=False)
            with Journal(path, HEAD, COUNT) as journal:
                assert [*dict(journal.records())] == [0, 3, 4]
                assert journal.head_damaged
                assert f"the first line of {path} was damaged and is written anew" in journal.in_words()
            assert path.read_bytes() == whole


@pytest.mark.usefixtures("quick_disk")
def test_records_of_another_run_do_not_become_this_one_s_by_a_flip_in_the_first_line(path):
    whole = path.read_bytes()
    flips = [(at, bit) for at in range(whole.index(b"\n")) for bit in range(8)]
    begun = 0
    for at, bit in flips:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        other = {"seed": 3}
        try:
            claim(path, other, "tuples", refused, overwrite=False)
        except OutputError:
            continue
        begun += 1
        with Journal(path, other, COUNT) as journal:
            assert len(journal) == 0
            assert journal.damaged >= 3
            assert "damaged ones are done again" in journal.in_words()
        assert run_of(path) == other
    # The checksum and the run can be damaged; with the mark damaged it is known whose the file is.
    assert 8 * len('{"seed": 1}') < begun < len(flips)


def test_a_changed_seed_with_its_checksum_made_right_brings_no_record_of_the_other_seed(path):
    head = json.dumps({"seed": 3}).encode()
    _, _, records = path.read_bytes().partition(b"\n")
    path.write_bytes(b"policyfactory partial result " + _checksum(head) + b" " + head + b"\n" + records)
    with Journal(path, {"seed": 3}, COUNT) as journal:
        assert (len(journal), journal.damaged, journal.head_damaged) == (0, 3, False)


@pytest.mark.usefixtures("quick_disk")
def test_a_file_that_is_cut_off_in_its_first_line_is_begun_anew(path):
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n") + 1):
        path.write_bytes(whole[:cut])
        claim(path, HEAD, "tuples", refused, overwrite=False)
        with Journal(path, HEAD, COUNT) as journal:
            assert (len(journal), journal.head_damaged) == (0, True)
        assert kept(path) == ([], 0)


def test_a_block_of_zeros_over_the_first_line_leaves_the_records_of_this_run(path):
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    path.write_bytes(bytes(head + 5) + whole[head + 5 :])
    claim(path, HEAD, "tuples", refused, overwrite=False)
    with Journal(path, HEAD, COUNT) as journal:
        assert [*dict(journal.records())] == [0, 4]
        assert journal.head_damaged
    path.write_bytes(bytes(head + 5) + whole[head + 5 :])
    with pytest.raises(OutputError, match="is not a journal of finished results"):
        claim(path, {"seed": 2}, "tuples", refused, overwrite=False)


def test_the_records_of_another_run_are_not_overwritten_by_who_does_not_ask(path):
    before = path.read_bytes()
    with pytest.raises(OutputError, match="holds the finished results of another run"):
        Journal(path, {"seed": 2}, COUNT)
    assert path.read_bytes() == before


def test_a_file_that_does_not_say_whose_it_is(path):
    with pytest.raises(OutputError, match=r"does not say of which run \(its first line lacks sizes, trials\)"):
        claim(path, {"seed": 1, "trials": 2, "sizes": [1]}, "tuples", refused, overwrite=False)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, overwrite):
    path = tmp_path / "t.csv.partial"
    os.mkfifo(path)
    for open_it in (
        lambda: claim(path, HEAD, "tuples", refused, overwrite=overwrite),
        lambda: Journal(path, HEAD, COUNT),
    ):
        with pytest.raises(
            OutputError, match=r"is a pipe, a device or a directory, .* remove it or name another output"
        ):
            open_it()
    assert path.is_fifo()


def test_an_unusable_record_is_damaged_and_does_not_hide_a_usable_one(path):
    path.write_bytes(path.read_bytes() + record(b"3 useless") + record(b"1 useless"))
    with Journal(path, HEAD, COUNT, lambda number, text: text == b"found %d" % number) as journal:
        assert [*dict(journal.records())] == [0, 3, 4]
        assert journal.damaged == 2


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
        with pytest.raises(OutputError, match="work unit 4 was changed on disk"):
            journal.read(4)


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
    with Journal(path, HEAD, COUNT) as journal, pytest.raises(OutputError, match="Input/output error"):
        journal.append(1, b"x")
    assert path.read_bytes() == before


def test_libraries_that_change_last_digits_belong_to_a_run():
    assert sorted(library_versions()) == ["numba", "numpy", "scikit-learn", "scipy"]
