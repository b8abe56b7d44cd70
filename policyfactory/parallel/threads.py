"""Workers that are threads of this process; they share everything."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from policyfactory.parallel.workers import Function, StoppedError

__all__ = ["ThreadExecutor"]

_AHEAD = 64  # units for each worker


class ThreadExecutor:
    """Threads that compute units with one function.

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
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="worker", initializer=initializer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._threads.shutdown(cancel_futures=True)

    def submit(self, unit: Any) -> Future[Any]:
        """Have a unit computed by the next thread that is free."""
        return self._threads.submit(self._run, unit)

    def check(self) -> None:
        """Do nothing: threads are not lost."""

    def _run(self, unit: Any) -> Any:
        self._check_stop()
        return self._function(self._shared, unit, self._check_stop)

    def _check_stop(self) -> None:
        if self._stopped.is_set():
            raise StoppedError
