"""What an output may be: files, links, pipes and devices; what an input is not."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from policyfactory.core import inputs
from policyfactory.core.errors import OutputError, UsageError
from policyfactory.core.files import atomic_write, check_file, check_output, exclusive, refuse_earlier, together
from policyfactory.core.journal import Journal
from refusals import refusal, refused


def test_a_pipe_is_written_into_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with exclusive(pipe):
        refuse_earlier(pipe, overwrite=False)
        atomic_write(pipe, iter([b"a" * 100_000, b"b"]))
    reader.join()
    assert got == [b"a" * 100_000 + b"b"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_device_is_written_into_and_stays() -> None:
    before = Path("/dev/null").lstat()
    with exclusive(Path("/dev/null")), together():
        atomic_write(Path("/dev/null"), "gone")
    assert Path("/dev/null").lstat() == before
    refused(OutputError, "full /dev/full written", atomic_write, Path("/dev/full"), "a")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_is_gone_on_with(tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    program = (
        "import sys; from pathlib import Path\n"
        "from policyfactory.core.files import atomic_write\n"
        "print('before', flush=True); atomic_write(Path(sys.argv[1]), 'written\\n'); print('after')\n"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", program, name], stdout=out, check=True, cwd=tmp_path)
    assert (tmp_path / "out").read_text() == "before\nwritten\nafter\n"
    piped = subprocess.run([sys.executable, "-c", program, name], capture_output=True, check=True, cwd=tmp_path)
    assert piped.stdout == b"before\nwritten\nafter\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out"]


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("s")
        refused(OutputError, "socket file s", check_output, Path("s"))


def test_where_more_files_go_beside_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(OutputError, "pipe device manifest", check_file, tmp_path / "pipe", "its manifest")
    assert check_file(tmp_path / "file", "its manifest") == tmp_path / "file"


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "real").write_text("old")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("there/real")
    atomic_write(tmp_path / "one", "new")
    assert (tmp_path / "there" / "real").read_text() == "new"
    assert (tmp_path / "one").readlink() == Path("two")
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["real"]
    # One that points to nothing yet.
    (tmp_path / "new").symlink_to("there/made")
    atomic_write(tmp_path / "new", "made")
    assert (tmp_path / "there" / "made").read_text() == "made"
    (tmp_path / "circle").symlink_to("circle")
    refused(OutputError, "circle links lead", atomic_write, tmp_path / "circle", "no")
    # Two names of one file have one lock.
    with exclusive(tmp_path / "one"), refusal(OutputError, "real another run"):
        exclusive(tmp_path / "there" / "real").__enter__()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make links of other users")
def test_a_link_of_another_user_in_a_shared_folder_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "a").symlink_to(victim)
    os.chown(shared / "a", 12345, 12345, follow_symlinks=False)
    refused(OutputError, "a folder everybody", atomic_write, shared / "a", "no")
    assert victim.read_text() == "mine"
    # One's own link there, and anybody's elsewhere, are followed.
    os.chown(shared / "a", 0, 0, follow_symlinks=False)
    atomic_write(shared / "a", "yes")
    assert victim.read_text() == "yes"


def test_the_mode_of_what_is_replaced_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    atomic_write(path, "old")
    path.chmod(0o640)
    atomic_write(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    atomic_write(path, "new", executable=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_leaves_files_to_their_owners(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    os.chown(path, 12345, 23456)
    atomic_write(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_what_is_read_only_stays() -> None:
    with tempfile.TemporaryDirectory() as folder, somebody(Path(folder)):
        path = Path(folder, "a")
        path.write_text("old")
        path.chmod(0o444)
        with pytest.raises(OutputError, match="is read-only; make it writable"):
            atomic_write(path, "new")
        assert path.read_text() == "old"


@contextlib.contextmanager
def somebody(folder: Path) -> Iterator[None]:
    """Be a user who is not root, for whom modes count; the folder is theirs meanwhile."""
    user = os.geteuid()
    if not user:
        os.chown(folder, 12345, -1)
        os.seteuid(12345)
    try:
        yield
    finally:
        os.seteuid(user)


def test_the_folder_is_on_the_disk_after_a_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("fsync", "replace"):

        def noted(*args: object, name: str = name, call: object = getattr(os, name)) -> object:
            kind = "folder" if name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode) else "file"  # type: ignore[arg-type]
            calls.append(f"{name} {kind}")
            return call(*args)  # type: ignore[operator]

        monkeypatch.setattr(os, name, noted)
    atomic_write(tmp_path / "a", "new")
    assert calls == ["fsync file", "replace file", "fsync folder"]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("call", ["fsync", "close"])
def test_a_signal_after_the_last_byte_leaves_no_temporary_file(
    call: str, inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(os, call)

    def stopped(descriptor: int) -> None:
        real(descriptor)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, call, stopped)
    with pytest.raises(KeyboardInterrupt), together() if inside else contextlib.nullcontext():
        atomic_write(tmp_path / "out.txt", "whole")
    monkeypatch.undo()
    # Alone it may have its name already, and is whole then.
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} in ({}, {"out.txt": "whole"})


def test_no_partial_file_is_opened_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    with Journal(victim, {"a": 1}, 3) as journal:
        journal.append(0, b"one")
    before = victim.read_bytes()
    (tmp_path / "t.csv.partial").symlink_to(victim)
    refused(OutputError, "t.csv.partial link", Journal, tmp_path / "t.csv.partial", {"a": 1}, 3)
    assert victim.read_bytes() == before
    (tmp_path / ".o.lock").symlink_to(victim)
    with refusal(OutputError, "o written"), exclusive(tmp_path / "o"):
        pass
    assert victim.read_bytes() == before


def test_what_is_read_is_not_written_whatever_its_name(tmp_path: Path) -> None:
    log, manifest = tmp_path / "a.swf", tmp_path / "a.manifest.json"
    log.write_text("jobs")
    manifest.write_text("{}")
    os.link(log, tmp_path / "same.swf")
    (tmp_path / "link.swf").symlink_to(log)
    with inputs.command():
        inputs.note_input(log)
        for name in ("a.swf", "same.swf", "link.swf", "a.manifest.json"):
            path = tmp_path / name
            refused(UsageError, f"{name}: input", refuse_earlier, path, overwrite=True)
            refused(UsageError, f"{name}: input", exclusive(path).__enter__)
            refused(UsageError, f"{name}: input", atomic_write, path, "gone")
    claimed = exclusive(tmp_path / "same.swf")
    with inputs.command(), claimed, refusal(UsageError, "a.swf input command"):
        inputs.note_input(log)
    # In Python a log may be read, and then replaced.
    inputs.note_input(log)
    atomic_write(log, "other jobs")
    assert log.read_text() == "other jobs"
