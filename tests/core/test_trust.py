"""Files that others could have written are not run: kept machine code, and the addresses of schedulers."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from copies import run_code
from policyfactory.core.errors import InputError
from policyfactory.core.inputs import who_else
from policyfactory.parallel.dask import scheduler_address
from refusals import refused
from support import ROOT

ROOT_USER = os.geteuid() == 0
STRANGER = 54321  # a user that no system has


def test_what_only_this_user_and_root_can_write_is_trusted(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "file").touch(0o644)
    (tmp_path / "link").symlink_to("file")
    assert who_else(tmp_path / "file") == ""
    assert who_else(tmp_path / "link") == ""
    assert who_else(Path("/etc/passwd")) == ""


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
def test_a_folder_that_others_can_write_is_not_trusted(tmp_path, mode):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(mode)
    assert who_else(folder) == f"{folder} can be written by everybody (mode {mode:04o})"


@pytest.mark.skipif(not ROOT_USER, reason="only root can give a file to others")
def test_what_belongs_to_others_is_not_trusted(tmp_path):
    folder, file = tmp_path / "folder", tmp_path / "folder" / "file"
    folder.mkdir()
    file.touch(0o644)
    os.chown(file, STRANGER, -1)
    assert who_else(file) == f"{file} belongs to user {STRANGER}"
    os.chown(file, 0, STRANGER)
    file.chmod(0o664)
    assert who_else(file) == f"{file} can be written by group {STRANGER} (mode 0664)"


KERNEL = """
from policyfactory.core.jit import kernel

@kernel
def twice(n):
    return n + n
"""
USE = "import mykernel; print(mykernel.twice(4))"


class _Evil:
    def __reduce__(self):
        return os.mkdir, ("ran",)


def others() -> dict[str, str]:
    """Return the variables that do not say where machine code is kept."""
    return {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}


def use(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Use a kernel in a process of its own."""
    (folder / "mykernel.py").write_text(KERNEL)
    done = run_code(USE, folder, others() | environment, [folder])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "8\n"
    return done


def poison(cache: Path) -> Path:
    """Put pickles that make a folder ``ran`` in the place of all kept code; return the folder they are in."""
    files = [*cache.rglob("*.nb[ci]")]
    assert files
    for file in files:
        file.write_bytes(pickle.dumps(_Evil()))
    return files[0].parent


def test_machine_code_that_others_could_have_written_is_not_loaded(tmp_path):
    cache = tmp_path / "cache"
    assert use(tmp_path, NUMBA_CACHE_DIR=str(cache)).stderr == ""
    assert use(tmp_path, NUMBA_CACHE_DIR=str(cache)).stderr == ""
    folder = poison(cache)
    folder.chmod(0o777)
    done = use(tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert not (tmp_path / "ran").exists()
    assert f"kept machine code is not used: {folder} can be written by everybody (mode 0777)" in done.stderr
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o646)
    done = use(tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert not (tmp_path / "ran").exists()
    assert done.stderr.count("can be written by everybody (mode 0646)") == 1


def test_the_folder_of_machine_code_is_not_named_by_a_file_of_the_current_folder(tmp_path):
    pytest.importorskip("yaml", reason="without it numba reads no such file")
    cache = tmp_path / "cache"
    use(tmp_path, NUMBA_CACHE_DIR=str(cache))
    poison(cache)
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: cache\n")
    # Where numba looks for it when it is imported.
    words, places = [sys.executable, "-c", USE], os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(words, cwd=tmp_path, env=others() | {"PYTHONPATH": places}, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"8\n"), done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_scheduler_file_that_others_can_write_is_refused(tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text('{"address": "tcp://10.0.0.1:8786"}')
    assert scheduler_address(str(file)) == "tcp://10.0.0.1:8786"
    file.chmod(0o666)
    refused(InputError, "scheduler.json 0666 everybody", scheduler_address, str(file))
