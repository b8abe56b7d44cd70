"""Every system call by which results are written fails once, and the process is killed before each: old or new, whole.

No time and no other program is needed, so this runs with the quick tests.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from faults.calls import content, every_fault, hidden
from policyfactory.core import whole_folder
from policyfactory.core.claims import exclusive
from policyfactory.core.errors import OutputError
from policyfactory.core.output import check_directory
from policyfactory.core.together import atomic_write, complete, remove_file, together
from policyfactory.core.whole_folder import recover, replaced_whole

OLD = {"a.csv": b"old a", "a.manifest.json": b"old m", "sub/b.csv": b"old b", "stale/c.csv": b"old c"}
NEW = {"a.csv": b"new a", "a.manifest.json": b"new m", "sub/b.csv": b"new b", "d.csv": b"new d"}


def put(folder: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.mark.parametrize("earlier", [OLD, {"other.txt": b"of the user"}], ids=["old files", "no old files"])
def test_several_files_take_their_names_together(tmp_path: Path, earlier: dict[str, bytes]) -> None:
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
        if "nothing was changed" in error:
            assert content(folder) == earlier, fault
            # Only what could not be removed by the failing call itself may be left.
            assert len(hidden(folder)) <= 1, fault
        if not error:
            assert content(folder) == after, fault
        complete(folder)
        found = content(folder)
        assert found in (earlier, after), (fault, error, found)
        seen.add(found == after)
        write()
        assert content(folder) == after, fault
        assert hidden(folder) == [], fault
        assert not (folder / "stale").exists(), fault
        assert "not reported" not in error, error
    assert seen == {False, True}


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


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool) -> None:
    if not can_exchange:

        def no_such_call(*_: object) -> None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

        monkeypatch.setattr(whole_folder, "_exchange", no_such_call)
    folder = tmp_path / "r"
    own = {"notes.txt": b"of the user", "sub/mine.txt": b"of the user too", ".hidden": b"h"}
    shown = {name: data for name, data in own.items() if name != ".hidden"}

    def prepare() -> None:
        put(tmp_path, {f"r/{name}": data for name, data in (OLD | own).items()})
        (folder / "empty").mkdir()
        (folder / "link").symlink_to("notes.txt")

    def write() -> None:
        recover(folder)
        if content(folder) == NEW | shown | {"link": b"of the user"}:
            return
        with exclusive(folder / "a.csv"), replaced_whole(folder, OLD) as place:
            check_directory(place / "sub")
            for name, data in NEW.items():
                atomic_write(place / name, data)

    before, after = ({**files, **shown, "link": b"of the user"} for files in (OLD, NEW))
    seen = set()
    for fault, error in every_fault(prepare, write):
        found = content(folder)
        if can_exchange or "killed" not in error:
            assert found in (before, after), (fault, error)
        else:
            # Where two names cannot be exchanged, the folder has none for a moment.
            assert found in (before, after, {}), (fault, error)
        assert "as it was" not in error or found == before, (fault, error)
        assert "not reported" not in error, error
        seen.add(found == after)
        write()
        # The lock that a killed run leaves keeps nobody out.
        with exclusive(folder / "a.csv"):
            pass
        assert content(folder) == after, fault
        assert (folder / ".hidden").read_bytes() == b"h"
        assert (folder / "empty").is_dir()
        assert (folder / "link").readlink() == Path("notes.txt")
        assert hidden(tmp_path) == ["r/.hidden"], fault
    assert seen == {False, True}


def test_what_a_killed_run_had_decided_for_another_folder_is_no_other_run(tmp_path: Path) -> None:
    """The record lies in the folder above: the same files are staged again before it is found."""
    folder = tmp_path / "r"

    def write() -> None:
        with together():
            for name in ("sub/b.csv", "sub/c.csv", "a.csv"):
                atomic_write(folder / name, NEW.get(name, b"new c"))

    put(folder, {"sub/b.csv": b"old b"})
    for fault, _ in every_fault(lambda: put(folder, {"sub/b.csv": b"old b"}), write):
        write()
        assert content(folder) == {"a.csv": b"new a", "sub/b.csv": b"new b", "sub/c.csv": b"new c"}, fault
        assert hidden(folder) == [], fault


@pytest.mark.parametrize("why", ["folder of another", "current folder", "mount point"])
def test_a_folder_that_cannot_be_moved_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    folder = tmp_path / "r"
    put(folder, OLD | {"theirs/x": b"x"})
    if why == "current folder":
        monkeypatch.chdir(folder / "sub")
    elif why == "mount point":
        monkeypatch.setattr(whole_folder.os.path, "ismount", lambda path: Path(path) == folder)
    else:
        may = os.access
        monkeypatch.setattr(
            whole_folder.os,
            "access",
            lambda path, *more, **how: Path(path).name != "theirs" and may(path, *more, **how),
        )
    with exclusive(folder / "a.csv"), replaced_whole(folder, OLD) as place:
        assert place == folder
    # What is written over minutes would be mixed with it.
    with pytest.raises(OutputError, match=r"cannot be moved: .*; run the command from another"):
        replaced_whole(folder, OLD, in_place=False).__enter__()
    with replaced_whole(folder, [], in_place=False) as place:
        assert place == folder
    assert content(folder) == OLD | {"theirs/x": b"x"}
    assert hidden(tmp_path) == []
