"""What a run did and took, for its manifest and for what is said when it does not come to its end."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from policyfactory.core.errors import PolicyfactoryError
from policyfactory.core.progress import WorkCounter
from policyfactory.evaluate.logs import ReadLog
from policyfactory.evaluate.protocol import Protocol
from policyfactory.evaluate.study import RunSettings, Study, run_protocol
from policyfactory.parallel.workers import Workers

__all__ = ["RunTally"]


class RunTally(WorkCounter):
    """Counts the simulations of all experiments of a run, from now on.

    Parameters
    ----------
    workers : Workers
        Who simulates.
    """

    def __init__(self, workers: Workers) -> None:
        self._done = self._resumed = self._jobs = 0
        self._kept = False
        self._workers = workers
        self._shown = WorkCounter()
        self._begin = time.perf_counter(), time.process_time()

    @property
    def kept(self) -> bool:
        """Whether the run was interrupted, and something of it is kept."""
        return self._kept

    def run(
        self,
        protocol: Protocol,
        logs: Mapping[str, ReadLog],
        settings: RunSettings,
        kept: Callable[[BaseException, str, Path], None],
    ) -> Study:
        """Run a protocol, as `run_protocol` does.

        Parameters
        ----------
        protocol, logs, settings
            As for `run_protocol`.
        kept : callable
            Called if the run is interrupted: with the exception, what is kept, and in which file.
        """

        def counting(shown: WorkCounter) -> WorkCounter:
            self._shown = shown
            return self

        counted = dataclasses.replace(settings, progress=lambda experiment: counting(settings.counter(experiment)))
        try:
            return run_protocol(protocol, logs, counted)
        except (KeyboardInterrupt, PolicyfactoryError) as stop:
            if settings.partial is not None and (finished := self._done + self._resumed):
                self._kept = True
                kept(stop, f"{finished:,} finished simulations", settings.partial)
            raise

    def expect(self, count: int) -> None:
        """Show that more simulations are to be done."""
        self._shown.expect(count)

    def resumed(self, count: int) -> None:
        """Count simulations that an earlier run has finished."""
        self._resumed += count
        self._shown.resumed(count)

    def done(self, amount: int) -> None:
        """Count a simulation of so many jobs."""
        self._done += 1
        self._jobs += amount
        self._shown.done(amount)

    def measured(self) -> dict[str, Any]:
        """Return seconds and speeds until now, for the manifest."""
        seconds, cpu = time.perf_counter() - self._begin[0], time.process_time() - self._begin[1]
        who = self._workers
        measured: dict[str, Any] = {
            "seconds": round(seconds, 3),
            "jobs_simulated": self._jobs,
            "jobs_per_second": round(self._jobs / seconds),
            "backend": who.backend,
            # Of a cluster nobody knows how many: workers come and go.
            "workers": who.count if who.scheduler is None else None,
            "simulations_done": self._done,
            "simulations_resumed": self._resumed,
        }
        if who.backend == "threading":
            # Of other processes nothing is known.
            measured |= {"cpu_seconds": round(cpu, 3), "jobs_per_cpu_second": round(self._jobs / cpu)}
        return measured
