"""What runs in a Dask worker: what is common to all pieces of a run is put there once, and pieces are done with it.

A Dask plugin of the run carries it, so that workers that are started again or join later have it too.
"""

from __future__ import annotations

import pickle
from typing import Any

from distributed import Worker, WorkerPlugin

from policyfactory.core.errors import WorkersError
from policyfactory.core.version import __version__
from policyfactory.parallel.backend import StopError

__all__ = ["RunPlugin", "do"]

# Task and what is common, of each run that this process works for.
_RUNS: dict[str, tuple[Any, Any]] = {}
_OTHERS: dict[str, str] = {}


class RunPlugin(WorkerPlugin):  # type: ignore[misc]
    """Task and what is common to all pieces of a run.

    Parameters
    ----------
    token : str
        The run.
    data : bytes
        Both, pickled.
    """

    idempotent = False

    def __init__(self, token: str, data: bytes) -> None:
        self.name = token
        self.data = data
        self.version = __version__

    def setup(self, worker: Worker) -> None:
        """Put it into this process."""
        if self.version != __version__:
            _OTHERS[self.name] = (
                f"{worker.address} has policyfactory {__version__}, this run is of {self.version}; install the same "
                "version on all workers"
            )
            return
        _RUNS[self.name] = pickle.loads(self.data)  # noqa: S301 (Dask runs what its scheduler sends in any case)
        self.data = b""

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 (Dask's)
        """Remove it; what is still running for the run ends."""
        _RUNS.pop(self.name, None)
        _OTHERS.pop(self.name, None)


def do(token: str, piece: Any) -> Any:
    """Return the result of a piece of a run.

    Raises
    ------
    WorkersError
        If this worker cannot work for the run.
    """
    if token in _OTHERS:
        raise WorkersError(f"worker {_OTHERS[token]}")
    if token not in _RUNS:
        raise WorkersError(f"a Dask worker was not given what is common to the pieces of run {token}; see its log")
    task, shared = _RUNS[token]

    def go_on() -> None:
        if token not in _RUNS:
            raise StopError

    return task(shared, piece, go_on)
