"""A Dask cluster of processes that a test may kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from support import ROOT

__all__ = ["Cluster"]


class Cluster:
    """A scheduler and workers of one thread each, found by the scheduler's file."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.logs = 0
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)
        )
        end = time.monotonic() + 600
        while not (self.file.exists() and self.file.read_text().rstrip().endswith("}")):
            assert time.monotonic() < end
            assert self.scheduler.poll() is None
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]
        self.workers = [self.add() for _ in range(workers)]

    def add(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start one more worker."""
        return self._start(
            "worker", "--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--local-directory", str(self.folder), "--host", "127.0.0.1", **environment,
        )  # fmt: skip

    def _start(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [environment.pop("first", ""), str(ROOT), str(ROOT / "tests")]))
        self.logs += 1
        with (self.folder / f"{self.logs}-{words[0]}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                stdout=log, stderr=log, cwd=self.folder, env={**os.environ, "PYTHONPATH": path, **environment},
            )  # fmt: skip

    def close(self) -> None:
        """End all of it."""
        for process in [*self.workers, self.scheduler]:
            process.send_signal(signal.SIGKILL)
            process.wait()
