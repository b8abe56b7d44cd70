"""What runs in a Dask worker: a run's shared data are put there once, and its work units are computed with them.

A Dask plugin carries them, so that workers that are started again or join later have them too.
"""

from __future__ import annotations

import pickle
from typing import Any

from distributed import Worker, WorkerPlugin

from policyfactory.core.errors import WorkersError
from policyfactory.core.version import __version__
from policyfactory.parallel.workers import StoppedError

# Function and shared data of each run that this process works for, and the runs that it cannot work for, with reasons.
_RUNS: dict[str, tuple[Any, Any]] = {}
_REFUSED: dict[str, str] = {}


class RunPlugin(WorkerPlugin):  # type: ignore[misc]
    """Function and shared data of a run.

    Parameters
    ----------
    token : str
        Name of the run.
    data : bytes
        Both, pickled.
    """

    idempotent = False

    def __init__(self, token: str, data: bytes) -> None:
        self.name = token
        self.data = data
        self.version = __version__

    def setup(self, worker: Worker) -> None:
        """Put them into this process."""
        if self.version != __version__:
            _REFUSED[self.name] = (
                f"{worker.address} has policyfactory {__version__}, this run is of {self.version}; install the same "
                "version on all workers"
            )
            return
        _RUNS[self.name] = pickle.loads(self.data)  # noqa: S301 (Dask runs what its scheduler sends in any case)
        self.data = b""

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 (Dask's)
        """Remove them; units of the run that are still computed end."""
        _RUNS.pop(self.name, None)
        _REFUSED.pop(self.name, None)


def compute(token: str, unit: Any) -> Any:
    """Return the result of a work unit of a run.

    Raises
    ------
    WorkersError
        If this worker cannot work for the run.
    """
    if token in _REFUSED:
        raise WorkersError(f"worker {_REFUSED[token]}")
    if token not in _RUNS:
        raise WorkersError(f"a Dask worker was not given the shared data of run {token}; see its log")
    function, shared = _RUNS[token]

    def check_stop() -> None:
        if token not in _RUNS:
            raise StoppedError

    return function(shared, unit, check_stop)
