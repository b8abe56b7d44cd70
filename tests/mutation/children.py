"""Forked children with limits of time and memory: start one, hear what it says, wait for one to end."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["NOT_SET", "Children", "write_line"]

NOT_SET = -1
MEMORY = 4 << 30


def _limit(cpu_seconds: int, output: str) -> None:
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    if cpu_seconds != NOT_SET:
        # A fork begins with no time used.
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def write_line(pipe: int, record: dict[str, Any]) -> None:
    data = (json.dumps(record) + "\n").encode()
    while data:
        data = data[os.write(pipe, data) :]


@dataclass
class _Running:
    at: int
    pid: int
    pipe: int
    folder: str
    began: float
    heard: bytes = b""


class Children:
    """Forked children: start one, wait for one to end."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        self.cpu_seconds = NOT_SET
        self.running: list[_Running] = []

    def start(self, at: int, work: Callable[[int], int]) -> None:
        """Fork a child that does ``work(pipe)`` and exits with what it returns."""
        folder = tempfile.mkdtemp(dir=self.scratch)
        reading, writing = os.pipe()
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            code = 3
            try:
                os.close(reading)
                tempfile.tempdir = os.environ["TMPDIR"] = folder
                _limit(self.cpu_seconds, f"{folder}/output" if self.cpu_seconds == NOT_SET else os.devnull)
                code = work(writing)
            except BaseException:  # noqa: BLE001 (a child ends here, whatever the mutant does)
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writing)
        os.set_blocking(reading, False)
        self.running.append(_Running(at, pid, reading, folder, began))

    def next_to_end(self) -> tuple[int, int, float, list[dict[str, Any]], str]:
        """Wait; return the child's number, its wait status, its processor seconds, its records and its output."""
        while True:
            for child in self.running:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
                with contextlib.suppress(BlockingIOError):
                    child.heard += os.read(child.pipe, 1 << 20)
                if not pid:
                    if self.cpu_seconds != NOT_SET and time.monotonic() - child.began > 20 * self.cpu_seconds + 60:
                        os.kill(child.pid, signal.SIGKILL)
                    continue
                self.running.remove(child)
                os.close(child.pipe)
                output = Path(child.folder, "output")
                said = output.read_text(errors="replace")[-4000:] if output.exists() else ""
                shutil.rmtree(child.folder, ignore_errors=True)
                whole = child.heard[: child.heard.rfind(b"\n") + 1].splitlines()
                records = [json.loads(line) for line in whole]
                return child.at, status, usage.ru_utime + usage.ru_stime, records, said
            time.sleep(0.003)

    def stop(self) -> None:
        for child in self.running:
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
