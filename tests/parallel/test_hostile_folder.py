"""Files in the current folder that have a library's name are not run, whoever does the work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT

pytestmark = pytest.mark.slow

# What Python, loky, Dask and the package import, early and late.
NAMES = [
    "asyncio", "cloudpickle", "joblib", "json", "multiprocessing", "numba", "numpy", "pickle", "runpy", "scipy",
    "shellingham", "signal", "sitecustomize", "socket", "subprocess", "tempfile", "threading", "yaml",
]  # fmt: skip

SCRIPT = """
import sys
from pathlib import Path
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import Workers
import its_work
if __name__ == "__main__":
    print(sorted(results(its_work.square, 0, range(4), Workers(2, sys.argv[1]))))
"""
ITS_WORK = """
def square(shared, unit, check_stop):
    return unit * unit
"""


def hostile(folder: Path) -> Path:
    """Fill a folder with modules that say who has run them."""
    folder.mkdir()
    for name in NAMES:
        ran = f"open({str(folder.parent / 'ran')!r}, 'a').write('{name} ')"
        (folder / f"{name}.py").write_text(f"{ran}\nraise ImportError({name!r})\n")
    return folder


def run(folder: Path, *command: object, **environment: str) -> str:
    """Run a command in a hostile folder; return what it prints if nothing of the folder was run."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        env={**{name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}, **environment},
    )  # fmt: skip
    ran = folder.parent / "ran"
    assert not ran.exists(), ran.read_text()
    assert done.returncode == 0, done.stderr
    return done.stdout


WAYS = {
    "command": [Path(sys.executable).with_name("policyfactory")],
    "module": [sys.executable, "-m", "policyfactory"],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("backend", ["threading", "loky", "dask"])
def test_a_command_runs_no_module_of_the_current_folder(tmp_path, way, backend):
    folder = hostile(tmp_path / "folder")
    run(
        folder, *WAYS[way], "generate", "--tuples", 2, "--trials", 256, "--workers", 2, "--backend", backend,
        "--output", tmp_path / "scores.csv",
    )  # fmt: skip
    assert (tmp_path / "scores.csv").stat().st_size > 1000


@pytest.mark.parametrize("backend", ["threading", "loky", "dask"])
def test_a_script_elsewhere_has_its_own_modules_and_none_of_the_current_folder(tmp_path, backend):
    folder = hostile(tmp_path / "folder")
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "script.py").write_text(SCRIPT)
    (scripts / "its_work.py").write_text(ITS_WORK)
    printed = run(folder, sys.executable, scripts / "script.py", backend, PYTHONPATH=str(ROOT))
    assert printed == "[0, 1, 4, 9]\n"


@pytest.mark.parametrize("backend", ["threading", "loky", "dask"])
def test_a_script_in_the_current_folder_finds_its_own_modules(tmp_path, backend):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "its_work.py").write_text(ITS_WORK)
    assert run(tmp_path, sys.executable, "script.py", backend, PYTHONPATH=str(ROOT)) == "[0, 1, 4, 9]\n"


def test_dask_in_the_command_uses_no_folder_that_others_may_have_made(tmp_path):
    # It imports first from its scratch folder, which in /tmp belongs to whoever came first.
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "its_work.py").write_text(ITS_WORK)
    scratch = tmp_path / "temporary" / "dask-scratch-space"
    scratch.mkdir(parents=True)
    run(tmp_path, sys.executable, "script.py", "dask", PYTHONPATH=str(ROOT), TMPDIR=str(scratch.parent))
    assert list(scratch.parent.rglob("*")) == [scratch]
