"""Daemons that a test starts: free ports, waiting, and ending them with everything they left."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest


def require(*programs: str) -> None:
    """Skip where one of the programs is absent; fail in CI, where they are installed."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [program for program in programs if shutil.which(program, path=path) is None]
    if missing:
        reason = f"{', '.join(missing)} not installed (.ci/install names the Debian packages)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def require_root() -> None:
    """Skip where the tests do not run as root, who can become an ordinary user; fail in CI, where they do."""
    if os.geteuid() != 0:
        reason = "only root can become an ordinary user"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@contextlib.contextmanager
def short_directory(within: str = "/tmp") -> Iterator[Path]:
    """Give an empty directory with a short name: a socket of Slurm needs one below about 80 characters."""
    folder = Path(tempfile.mkdtemp(prefix="pf-", dir=within))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_ports(count: int) -> int:
    """Return the first of ``count`` neighbouring ports on which nobody listens."""
    # Each worker of a parallel run looks in a range of its own, below those that the kernel hands out itself.
    worker = int("".join(filter(str.isdigit, os.environ.get("PYTEST_XDIST_WORKER", ""))) or 0)
    span = 1_500
    first = 11_000 + (worker % 10) * span
    start = first + os.getpid() % (span - count)
    for offset in range(span):
        port = first + (start - first + offset) % (span - count)
        if all(_is_free(port + i) for i in range(count)):
            return port
    raise RuntimeError(f"no {count} free ports from {first} on")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
        return True


def wait_for(what: str, ready: Callable[[], bool], seconds: float = 300.0, pause: float = 0.1) -> None:
    """Wait until ``ready`` is true; say what did not come."""
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(pause)


def run_command(command: Sequence[object], environment: Mapping[str, str], folder: Path, *, check: bool = True) -> str:
    """Return what a command of a scheduler prints; without ``check``, its errors too."""
    done = subprocess.run(
        [str(part) for part in command],
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout if check else done.stdout + done.stderr


class Daemons:
    """The daemons of one scheduler, each leader of a process group of its own."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        self.environment = dict(environment)
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str | Path]) -> None:
        with (self.log / f"{name}.out").open("ab") as out:
            self.started[name] = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.log,
                start_new_session=True,
            )

    def alive(self, name: str) -> bool:
        return name in self.started and self.started[name].poll() is None

    def stop(self, *names: str, seconds: float = 15.0) -> None:
        """Stop daemons together; one that does not end in time is killed."""
        ending = [self.started.pop(name) for name in names if name in self.started]
        for daemon in ending:
            daemon.terminate()
        for daemon in ending:
            try:
                daemon.wait(seconds)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def stop_all(self) -> None:
        """Stop them one after the other, the last started first."""
        for name in reversed(list(self.started)):
            self.stop(name)

    def output(self) -> str:
        """Return the ends of all logs, for the message of a failed start."""
        files = [file for file in sorted(self.log.iterdir()) if file.is_file()]
        return "\n".join(f"-- {file.name}\n{file.read_text(errors='replace')[-1500:]}" for file in files)


def kill_marked(*marks: str) -> None:
    """Kill every process whose environment holds all of ``marks``: jobs outlive the daemons that started them."""
    own = os.getpid()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == own:
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if all(any(mark.encode() in variable for variable in environment) for mark in marks):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)
