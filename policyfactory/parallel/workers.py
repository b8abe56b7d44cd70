"""Who does the work: threads of this process by default; and the words that all executors share."""

from __future__ import annotations

import dataclasses
import os
import reprlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Literal, Self, TypeVar

from policyfactory.core import process
from policyfactory.core.errors import UsageError, WorkersError

Backend = Literal["threading", "loky", "dask"]
BACKENDS: tuple[Backend, ...] = ("threading", "loky", "dask")

Notify = Callable[[str], None]
StopCheck = Callable[[], None]

S = TypeVar("S")
U = TypeVar("U")
R = TypeVar("R")

# A worker more than there are cores computes nothing; a process takes memory and a second to begin.
_MOST = {"threading": 1024, "loky": 256, "dask": 1024}
_AHEAD = 64  # units for each thread
_GRACE = 1.0  # seconds that a thread has to end when a signal ends the command; a kernel may take longer

# What is done to a work unit: called with the shared data, the unit, and a check that ends work nobody waits for.
Function = Callable[[S, U, StopCheck], R]


class StoppedError(Exception):
    """StoppedError is raised in a worker whose results nobody waits for any more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Workers:
    """Who does the work; the results do not depend on it.

    Parameters
    ----------
    count : int
        How many work side by side; of a running Dask cluster all workers are used, however many there are.
    backend : {"threading", "loky", "dask"}
        Threads of this process, processes of this machine, or Dask.
    scheduler : str or None
        Address of a running Dask scheduler (``tcp://node:8786``), or the name of its scheduler file; None starts a
        scheduler with ``count`` threads inside this process, for backend ``dask``.

    Raises
    ------
    UsageError
        If ``count`` is below 1 or beyond what the backend can have, the backend is unknown, or there is a scheduler and
        the backend is not ``dask``.
    """

    count: int = 1
    backend: Backend = "threading"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UsageError(f"{self.count} workers; give at least 1")
        if self.backend not in BACKENDS:
            raise UsageError(f"there is no backend {self.backend!r}; there are {', '.join(BACKENDS)}")
        most = max(_MOST[self.backend], os.cpu_count() or 1)
        if self.count > most:
            given = f"{self.count:,}" if self.count < 10**18 else "a number of 19 or more digits of"
            raise UsageError(
                f"{given} workers; backend {self.backend} has at most {most:,}, and more than one a core do not make "
                "it faster"
            )
        if self.scheduler is not None and self.backend != "dask":
            raise UsageError(f"a scheduler ({self.scheduler}) is for backend dask, not {self.backend}; leave one out")

    @classmethod
    def of(cls, workers: Self | int) -> Self:
        """Return ``workers``; a number means that many threads."""
        return cls(workers) if isinstance(workers, int) else workers


class ThreadExecutor:
    """Threads of this process, which share everything; the workers of Dask have the same methods.

    They exist inside a ``with`` block, with which all work that was submitted ends soon. ``ahead``: how many units may
    be submitted before the result of the first is taken.

    Parameters
    ----------
    function : callable
        ``function(shared, unit, check_stop)``.
    shared : object
        What is the same for all units.
    count : int
        Number of threads.
    initializer : callable, optional
        Called first in each thread.
    """

    def __init__(
        self, function: Function[Any, Any, Any], shared: Any, count: int, initializer: Callable[[], None] | None = None
    ) -> None:
        self.ahead = _AHEAD * count
        self._function = function
        self._shared = shared
        self._stopped = threading.Event()
        self._open: set[Future[Any]] = set()
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="worker", initializer=initializer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        if process.stopping():
            self._threads.shutdown(wait=False, cancel_futures=True)
            if wait(tuple(self._open), _GRACE).not_done:
                process.abandon()
                return
        self._threads.shutdown(cancel_futures=True)

    def submit(self, unit: Any) -> Future[Any]:
        """Have a unit computed by the next thread that is free.

        Raises
        ------
        WorkersError
            If the system has no room for another thread.
        """
        try:
            future = self._threads.submit(self._run, unit)
        except RuntimeError as error:
            raise WorkersError(
                f"a worker cannot begin ({error}); give fewer --workers, or more memory or processes (ulimit -v, -u)"
            ) from None
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        return future

    def check(self) -> None:
        """Raise an error if the workers are lost for good, as threads never are; called several times a second."""

    def _run(self, unit: Any) -> Any:
        self._check_stop()
        return self._function(self._shared, unit, self._check_stop)

    def _check_stop(self) -> None:
        if self._stopped.is_set():
            raise StoppedError


def never_stop() -> None:
    """Go on: the caller computes the unit itself, or ends this process when it no longer waits for the result."""


def unit_text(unit: Any) -> str:
    """Return a unit as messages name it, shortened if it is long."""
    return reprlib.repr(unit) if len(repr(unit)) > 100 else repr(unit)
