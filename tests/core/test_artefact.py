"""Artefacts are written whole or not at all, by one run at a time, and say how they were made."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from policyfactory.core import files, inputs
from policyfactory.core import files as artefact
from policyfactory.core import files as outputs
from policyfactory.core.errors import InputError, OutputError
from policyfactory.core.inputs import read_toml
from policyfactory.review.shadow import read_shadow
from policyfactory.workload.accounting.source import Source
from refusals import refusal, refused


def test_atomic_write_replaces_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    files.atomic_write(path, "old")
    files.atomic_write(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    refused(OutputError, "a.txt nothing changed", files.atomic_write, path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_check_output_names_the_cure(tmp_path: Path) -> None:
    refused(OutputError, "directory name", outputs.check_output, tmp_path)
    refused(OutputError, "a.csv exist create", outputs.check_output, tmp_path / "no" / "a.csv")
    refused(OutputError, "a.csv /proc", outputs.check_output, Path("/proc/a.csv"))


def test_check_directory(tmp_path: Path) -> None:
    assert outputs.check_directory(tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    refused(OutputError, "file folder", outputs.check_directory, tmp_path / "file")


def test_read_bytes_says_what_is_wrong(tmp_path: Path) -> None:
    refused(InputError, "none no such file", inputs.read_bytes, tmp_path / "none")
    refused(InputError, f"{tmp_path} directory", inputs.read_bytes, tmp_path)
    (tmp_path / "large").write_bytes(b"x" * 11)
    refused(InputError, "large has 11 10", inputs.read_bytes, tmp_path / "large", limit=10)
    assert inputs.read_bytes(tmp_path / "large", limit=11) == b"x" * 11
    (tmp_path / "empty").touch()
    assert inputs.read_bytes(tmp_path / "empty") == b""


def test_a_pipe_without_an_end_is_read_to_the_limit_only() -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        with refusal(InputError, "3,000,000 bytes"):
            inputs.read_bytes(Path(f"/dev/fd/{endless.stdout.fileno()}"), limit=3_000_000)
        endless.kill()


def test_a_device_or_a_socket_is_no_input(tmp_path: Path) -> None:
    for name in ("/dev/zero", "/dev/urandom", "/dev/full"):
        refused(InputError, f"{name}: device", inputs.read_bytes, Path(name))
    assert inputs.read_bytes(Path("/dev/null")) == b""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
        refused(InputError, "socket device", inputs.read_bytes, tmp_path / "socket")


READERS: dict[str, Callable[[Path], object]] = {
    "bytes": inputs.read_bytes,
    "accounting": Source,
    "shadow": read_shadow,
    "TOML": lambda path: read_toml(path, limit=1000, page="x"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_that_nobody_writes_into_is_not_waited_for(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_PATIENCE", 0.2)
    os.mkfifo(tmp_path / "pipe")
    refused(InputError, "pipe 0 nobody", READERS[reader], tmp_path / "pipe")


@pytest.mark.parametrize("reader", READERS)
def test_no_reader_reads_a_device(reader: str) -> None:
    refused(InputError, "zero /dev/zero device", READERS[reader], Path("/dev/zero"))


def test_what_a_shell_writes_into_a_pipe_is_read_however_late(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from policyfactory.core import inputs\n"
        "inputs._PATIENCE = 0.2\n"
        "print(inputs.read_bytes(Path(sys.argv[1])))"
    )
    words = ["bash", "-c", '"$0" -c "$1" <(sleep 1; echo here)', sys.executable, script]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "b'here\\n'\n"


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    content = bytes(range(256)) * 10_000
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    assert inputs.read_bytes(tmp_path / "pipe") == content
    writer.join()


def test_only_one_run_writes_an_output(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    other = (
        "import sys; from pathlib import Path\n"
        "from policyfactory.core.files import exclusive\n"
        "from policyfactory.core.errors import OutputError\n"
        "try:\n    with exclusive(Path(sys.argv[1])): print('mine')\n"
        "except OutputError as error: print(error)"
    )

    def second_run() -> str:
        return subprocess.run([sys.executable, "-c", other, path], capture_output=True, text=True, check=True).stdout

    with outputs.exclusive(path):
        assert "another run is writing it" in second_run()
    assert second_run() == "mine\n"
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_says_how_the_artefact_was_made(tmp_path: Path) -> None:
    path = tmp_path / "scores.manifest.json"
    assert artefact.Manifest.path_for(tmp_path / "scores.csv") == path
    artefact.Manifest("score-table", "policyfactory generate", 7, {"a.swf": "00"}).write(path)
    manifest = json.loads(path.read_text(encoding="utf-8"))
    assert manifest["schema_version"] == artefact.MANIFEST_SCHEMA
    assert (manifest["kind"], manifest["command"], manifest["seed"]) == ("score-table", "policyfactory generate", 7)
    assert {"policyfactory", "python", "numpy", "numba"} <= set(manifest["versions"])


def test_the_manifest_of_another_file_of_its_stem_stays(tmp_path: Path) -> None:
    log, site = tmp_path / "hpc.swf", tmp_path / "hpc.toml"

    def write(path: Path) -> Path:
        path.write_text("x", encoding="utf-8")
        manifest = artefact.Manifest.path_for(path)
        artefact.Manifest("any", "policyfactory", None, outputs={path.name: "00"}).write(manifest)
        return manifest

    names = {"hpc.swf": "hpc.manifest.json", "hpc.toml": "hpc.toml.manifest.json"}
    for path in (log, site, log, site):
        assert write(path).name == names[path.name]
    # Whose file is gone is no other's; and what cannot be read is its own.
    log.unlink()
    assert artefact.Manifest.path_for(site).name == "hpc.manifest.json"
    for text in ("{", '{"outputs": {"": "0", "..": "0", "%s": "0"}}' % ("x" * 5000), '{"outputs": {"a\\u0000": 1}}'):
        (tmp_path / "hpc.manifest.json").write_text(text, encoding="utf-8")
        assert artefact.Manifest.path_for(site).name == "hpc.manifest.json"


def test_the_command_line_can_be_typed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/policyfactory/__main__.py", "fit", "my table.csv"])
    assert artefact.command_line() == "policyfactory fit 'my table.csv'"


def test_json_has_one_form() -> None:
    assert artefact.dump_json({"b": 1, "a": "é"}) == '{\n  "a": "é",\n  "b": 1\n}\n'
    with pytest.raises(ValueError, match="Out of range"):
        artefact.dump_json(float("nan"))


def test_what_a_killed_writer_left_is_replaced_and_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    (tmp_path / ".a.txt.tmp").write_text("half of a", encoding="utf-8")
    files.atomic_write(path, "whole")
    assert path.read_text(encoding="utf-8") == "whole"
    assert list(tmp_path.iterdir()) == [path]
    victim = tmp_path / "victim"
    victim.write_text("untouched", encoding="utf-8")
    (tmp_path / ".a.txt.tmp").symlink_to(victim)
    refused(OutputError, "a.txt written", files.atomic_write, path, "new")
    assert (path.read_text(encoding="utf-8"), victim.read_text(encoding="utf-8")) == ("whole", "untouched")


def test_two_writers_of_a_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"

    def parts() -> Iterator[bytes]:
        yield b"first "
        refused(OutputError, "a.txt a.txt.tmp writing", files.atomic_write, path, "second")
        yield b"still first"

    files.atomic_write(path, parts())
    assert path.read_bytes() == b"first still first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_locks_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(outputs.fcntl, "flock", no_locks)
    with outputs.exclusive(path):
        files.atomic_write(path, "written")

    def parts() -> Iterator[bytes]:
        yield b"first"
        files.atomic_write(path, "second")

    # The first finds its file gone, and says so in place of giving another's half its name.
    refused(OutputError, "a.txt another run", files.atomic_write, path, parts())
    assert path.read_text(encoding="utf-8") == "second"


def test_a_folder_is_tried_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tmp_path.stat().st_mtime_ns
    outputs.check_output(tmp_path / "a.txt")
    assert tmp_path.stat().st_mtime_ns == before
    # Where files without names are not known.
    monkeypatch.setattr(tempfile, "_O_TMPFILE_WORKS", False)
    outputs.check_output(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []
    refused(OutputError, "a.csv /proc", outputs.check_output, Path("/proc/a.csv"))
