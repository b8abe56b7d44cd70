"""What runs in a Dask worker."""

from __future__ import annotations

import pickle
from typing import Any

from policyfactory.core.errors import WorkersError
from policyfactory.core.version import __version__
from policyfactory.parallel.workers import Function, StoppedError

# Runs whose results nobody waits for any more.
_ENDED: set[str] = set()


def received(data: bytes) -> tuple[Function[Any, Any, Any], Any]:
    """Return the function of a run and what is the same for all its units."""
    function, shared = pickle.loads(data)  # noqa: S301 (Dask runs what its scheduler sends in any case)
    return function, shared


def compute(version: str, run: str, call: tuple[Function[Any, Any, Any], Any], unit: Any) -> Any:
    """Return the result of a work unit of a run.

    Raises
    ------
    WorkersError
        If the run is of another version than this worker.
    """
    if version != __version__:
        raise WorkersError(
            f"a worker has policyfactory {__version__}, this run is of {version}; install the same version on all "
            "workers"
        )

    def check_stop() -> None:
        if run in _ENDED:
            raise StoppedError

    function, shared = call
    return function(shared, unit, check_stop)


def end_units(run: str) -> None:
    """End the work units of a run that this process computes."""
    _ENDED.add(run)
