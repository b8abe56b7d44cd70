"""Commands as processes that tests kill, stop, starve and watch."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from support import ROOT

__all__ = ["EVALUATE", "Nursery", "Run", "hidden", "is_stopping", "results", "tree", "wait_until"]

# An evaluation of some windows of LOG; the folder of its results comes behind it.
EVALUATE = ("evaluate", "LOG", "--policies", "FCFS,SAF", "--estimate-missing", "runtime", "--windows", "6x100jobs")
EVALUATE += ("--output",)
_PATIENCE = 600.0
# Who is stopped while a file is read leaves it open to the end; Python says so only where it is asked to.
_WARNINGS = ("-W", "error", "-W", "ignore::ResourceWarning")


def wait_until(what: Callable[[], object], message: str, seconds: float = _PATIENCE, pause: float = 0.002) -> None:
    """Wait until something holds; fail with ``message`` if it never does."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            pytest.fail(message)
        time.sleep(pause)


def tree(folder: Path) -> dict[str, bytes]:
    """Return name and content of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def results(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder without hidden ones and manifests, which say how long a run took."""
    result = tree(folder)
    return {name: result[name] for name in result if "/." not in f"/{name}" and not name.endswith("manifest.json")}


def hidden(folder: Path) -> list[str]:
    """Return what no run may leave below a folder: locks, temporary and partial files."""
    return [
        name
        for name in (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")))
        if Path(name).name.startswith(".") or name.endswith((".tmp", ".lock", ".partial"))
    ]


def is_stopping(pid: int) -> bool:
    """Tell whether a process has a handler for SIGTERM."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def members(session: int) -> list[int]:
    """Return the living processes of a session."""
    result = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] not in "ZX":
                result.append(int(entry.name))
    return sorted(result)


@dataclasses.dataclass
class Run:
    """One command, running or ended."""

    pid: int
    words: str
    out: Path
    err: Path
    _wait: Callable[[], int]
    _code: int | None = None

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the main process."""
        os.kill(self.pid, number)

    def running(self) -> bool:
        """Tell whether the main process is there and no zombie."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] not in "ZX"

    def workers(self) -> list[int]:
        """Return the other processes of this command."""
        return [pid for pid in members(self.pid) if pid != self.pid]

    def end(self, seconds: float = _PATIENCE) -> int:
        """Wait for the end of all its processes; return the exit code, -N after signal N."""
        if self._code is None:
            wait_until(lambda: not self.running(), f"{self.words}: did not end\n{self.stderr}", seconds)
            self._code = self._wait()
            wait_until(lambda: not members(self.pid), f"{self.words}: left processes {members(self.pid)}", 30)
        return self._code

    @property
    def stderr(self) -> str:
        """What it wrote on stderr."""
        return self.err.read_text(encoding="utf-8", errors="replace")

    @property
    def printed(self) -> str:
        """What it wrote on stdout."""
        return self.out.read_text(encoding="utf-8", errors="replace")

    def must_end(self, code: int = 0) -> Self:
        """Wait for the end and check the exit code, and that there was no traceback or other noise."""
        result = self.end()
        report = (
            f"{self.words}: exit code {result}\n--- stdout\n{self.printed[-3000:]}\n--- stderr\n{self.stderr[-6000:]}"
        )
        assert result == code, report
        for noise in ("Traceback", "Exception ignored", "Warning:", "resource_tracker", "leaked"):
            assert noise not in self.stderr, report
        return self


class Nursery:
    """Starts commands; see `faults.nursery`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
        self._process = subprocess.Popen(
            [sys.executable, *_WARNINGS, Path(__file__).with_name("nursery.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Self:
        assert self._line() == "ready", "the nursery did not start"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _ask(self, request: Mapping[str, Any]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def _files(self) -> tuple[Path, Path]:
        self._number += 1
        out, err = (self._folder / f"{self._number}.{kind}" for kind in ("out", "err"))
        out.touch()
        err.touch()
        return out, err

    def start(
        self,
        folder: Path,
        *arguments: object,
        fuse: int | None = None,
        largest_file: int | None = None,
        brief: bool = False,
        **environment: str,
    ) -> Run:
        """Start a command in ``folder`` with everything imported already.

        ``fuse``: kill it before the so-many-th change of a file; ``largest_file``: bytes that a file may have;
        ``brief``: leave out the end of the interpreter, which takes as long as a small run.
        """
        words = [str(argument) for argument in arguments]
        out, err = self._files()
        pid = self._ask(
            {
                "folder": str(folder),
                "arguments": words,
                "out": str(out),
                "err": str(err),
                "fuse": fuse,
                "brief": brief,
                "largest_file": largest_file,
                "environment": environment,
            }
        )
        return Run(pid, " ".join(words), out, err, lambda: self._ask({"wait": pid}))

    def fresh(self, folder: Path, *arguments: object, **environment: str) -> Run:
        """Start a command as a user does, from the interpreter's start on."""
        words = [str(argument) for argument in arguments]
        out, err = self._files()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, *_WARNINGS, "-m", "policyfactory", *words],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                env={**os.environ, **environment},
            )
        return Run(process.pid, " ".join(words), out, err, process.wait)
