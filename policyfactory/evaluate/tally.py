"""What a run did and took, for its manifest and for what is said when it does not come to its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from policyfactory.evaluate.experiment import SimulationProgress

if TYPE_CHECKING:
    from policyfactory.parallel.workers import Workers

__all__ = ["Tally"]


class Tally:
    """Counts the simulations of all experiments of a run, from now on.

    Parameters
    ----------
    workers : Workers
        Who simulates.
    """

    def __init__(self, workers: Workers) -> None:
        self.done = 0
        self.resumed = 0
        self.jobs = 0
        self._workers = workers
        self._begin = time.perf_counter(), time.process_time()

    @property
    def finished(self) -> int:
        """Simulations that are finished, those of an earlier run among them."""
        return self.done + self.resumed

    def counting(self, shown: SimulationProgress) -> SimulationProgress:
        """Return a progress that is counted here, and shown there."""
        return _Counted(self, shown)

    def measured(self) -> dict[str, Any]:
        """Return seconds and speeds until now, for the manifest."""
        seconds, cpu = time.perf_counter() - self._begin[0], time.process_time() - self._begin[1]
        who = self._workers
        measured: dict[str, Any] = {
            "seconds": round(seconds, 3),
            "jobs_simulated": self.jobs,
            "jobs_per_second": round(self.jobs / seconds),
            "backend": who.backend,
            # Of a cluster nobody knows how many: workers come and go.
            "workers": who.count if who.scheduler is None else None,
            "simulations_done": self.done,
            "simulations_resumed": self.resumed,
        }
        if who.backend == "threading":
            # Of other processes nothing is known.
            measured |= {"cpu_seconds": round(cpu, 3), "jobs_per_cpu_second": round(self.jobs / cpu)}
        return measured


class _Counted(SimulationProgress):
    def __init__(self, tally: Tally, shown: SimulationProgress) -> None:
        self._tally = tally
        self._shown = shown

    def expect(self, simulations: int) -> None:
        self._shown.expect(simulations)

    def resumed(self, simulations: int) -> None:
        self._tally.resumed += simulations
        self._shown.resumed(simulations)

    def done(self, jobs: int) -> None:
        self._tally.done += 1
        self._tally.jobs += jobs
        self._shown.done(jobs)
