"""Every system call by which results are written fails once, and the process is killed before each: whole files.

No time and no other program is needed, so this runs with the quick tests.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from faults.calls import content, every_fault, hidden
from policyfactory.core.errors import OutputError
from policyfactory.core.files import atomic_write, check_directory, exclusive, remove_file, replaced_whole, together

OLD = {"a.csv": b"old a", "a.manifest.json": b"old m", "sub/b.csv": b"old b", "stale/c.csv": b"old c"}
NEW = {"a.csv": b"new a", "a.manifest.json": b"new m", "sub/b.csv": b"new b", "d.csv": b"new d"}


def put(folder: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.mark.parametrize("earlier", [OLD, {"other.txt": b"of the user"}], ids=["old files", "no old files"])
def test_several_files_are_whole_before_the_first_takes_its_name(tmp_path: Path, earlier: dict[str, bytes]) -> None:
    folder = tmp_path / "r"
    after = NEW | {name: data for name, data in earlier.items() if name == "other.txt"}

    def write() -> None:
        check_directory(folder / "sub")
        with together():
            for name, data in NEW.items():
                atomic_write(folder / name, data)
            remove_file(folder / "stale" / "c.csv")

    seen = set()
    for fault, error in every_fault(lambda: put(folder, earlier), write):
        found = content(folder)
        if "nothing was changed" in error:
            assert found == earlier, fault
            # Only what could not be removed by the failing call itself may be left.
            assert len(hidden(folder)) <= 1, fault
        if not error:
            assert found == after, fault
        # Who is killed between two renames leaves files of both, each of them whole.
        assert all(data in {earlier.get(name), after.get(name)} for name, data in found.items()), (fault, error)
        seen.add(found == after)
        write()
        assert content(folder) == after, fault
        assert hidden(folder) == [], fault
        assert not (folder / "stale").exists(), fault
        assert "not reported" not in error, error
    assert seen == {False, True}


def test_a_signal_between_two_renames_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, calls = os.replace, []

    def interrupted(*names: str) -> None:
        replace(*names)
        calls.append(names)
        if len(calls) == 2:
            raise KeyboardInterrupt

    put(tmp_path, OLD)
    monkeypatch.setattr(os, "replace", interrupted)

    def write() -> None:
        with together():
            for name, data in NEW.items():
                atomic_write(tmp_path / name, data)
            remove_file(tmp_path / "stale" / "c.csv")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert content(tmp_path) == NEW
    assert hidden(tmp_path) == []


def test_one_file_is_replaced_whole(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    path = folder / "a.csv"

    def write() -> None:
        with exclusive(path):
            atomic_write(path, iter([b"new", b" ", b"a"]))

    for fault, error in every_fault(lambda: put(folder, {"a.csv": b"old a"}), write):
        found = content(folder)["a.csv"]
        assert found in (b"old a", b"new a"), fault
        assert found == b"old a" or "nothing was changed" not in error, (fault, error)
        assert "not reported" not in error, error
        write()
        assert content(folder) == {"a.csv": b"new a"}, fault
        assert hidden(folder) == [], fault


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder, old = tmp_path / "r", tmp_path / ".r.policyfactory-old"
    own = {"notes.txt": b"of the user", "sub/mine.txt": b"of the user too", "theirs/x": b"x", ".hidden": b"h"}

    def prepare() -> None:
        put(tmp_path, {f"r/{name}": data for name, data in (OLD | own).items()})
        (folder / "empty").mkdir()
        (folder / "link").symlink_to("notes.txt")

    def write() -> None:
        with exclusive(check_directory(folder) / "a.csv"), replaced_whole(folder, OLD) as place:
            check_directory(place / "sub")
            for name, data in NEW.items():
                atomic_write(place / name, data)

    shown = {name: data for name, data in own.items() if name != ".hidden"}
    before, after = ({**files, **shown, "link": b"of the user"} for files in (OLD, NEW))
    seen = set()
    for fault, error in every_fault(prepare, write):
        found = content(folder)
        assert "as it was" not in error or found == before, (fault, error)
        assert "not reported" not in error, error
        seen.add(found == after)
        if old.exists():
            # Killed, or stopped, at work on the names: both results are there, and nothing more is done to them.
            there = content(folder) | content(old)
            assert {name: there[name] for name in shown} == shown, fault
            assert all(there[name] in {OLD.get(name), NEW.get(name)} for name in OLD | NEW if name in there), fault
            with pytest.raises(OutputError, match=r"move what you need of it to .*, remove it, and run the command"):
                write()
            continue
        assert found in (before, after), (fault, error)
        if found == before:
            write()
        # The lock that a killed run leaves keeps nobody out.
        with exclusive(folder / "a.csv"):
            pass
        assert content(folder) == after, fault
        assert (folder / ".hidden").read_bytes() == b"h"
        assert (folder / "empty").is_dir()
        assert (folder / "link").readlink() == Path("notes.txt")
        assert not (folder / "stale").exists()
        assert hidden(tmp_path) == ["r/.hidden"], fault
    assert seen == {False, True}


@pytest.mark.parametrize("why", ["current folder", "mount point"])
def test_a_folder_that_cannot_be_moved_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    folder = tmp_path / "r"
    put(folder, OLD | {"theirs/x": b"x"})
    if why == "current folder":
        monkeypatch.chdir(folder / "sub")
    else:
        monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == folder)
    with exclusive(folder / "a.csv"), replaced_whole(folder, OLD) as place:
        assert place == folder
    # What is written over minutes would be mixed with it.
    with pytest.raises(OutputError, match=r"cannot be moved: .*; run the command from another"):
        replaced_whole(folder, OLD, in_place=False).__enter__()
    with replaced_whole(folder, [], in_place=False) as place:
        assert place == folder
    assert content(folder) == OLD | {"theirs/x": b"x"}
    assert hidden(tmp_path) == []
