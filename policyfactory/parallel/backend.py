"""The joblib backend of this package: joblib shares out and puts in order, a crew does the work.

Joblib's own process backend ends all its processes when one is killed, its Dask backend waits for ever when the
scheduler is lost, and results that are not asked for pile up in all of them. So the crews are our own, behind joblib's
interface for backends. How many pieces may be begun before their results are taken is bounded here, for all crews.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from joblib.parallel import ParallelBackendBase

__all__ = ["Crew", "Done", "PieceBackend", "StopError"]

Done = Callable[[tuple[Any, BaseException | None]], None]


class StopError(Exception):
    """StopError is raised in a worker whose results nobody waits for any more."""


class Crew(Protocol):
    """Those who do the work; a context manager: its workers are there until the end of it."""

    @property
    def waiting(self) -> int:
        """How many pieces are handed over before the first is done."""

    @property
    def ahead(self) -> int:
        """How many pieces may be begun whose results were not taken yet."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, piece: Any, done: Done) -> None:
        """Have a piece done; ``done`` is called later, by another thread, with its result or its error."""

    def stop(self) -> None:
        """End all work that was begun, soon."""


class PieceBackend(ParallelBackendBase):  # type: ignore[misc]
    """A parallel backend of joblib over a crew.

    Parameters
    ----------
    crew : Crew
        Who does the work.
    """

    supports_retrieve_callback = True
    uses_threads = True
    supports_sharedmem = True

    def __init__(self, crew: Crew) -> None:
        super().__init__()
        self._crew = crew
        self._lock = threading.Lock()
        self._held: deque[tuple[Any, Done]] = deque()
        self._begun = 0

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return how many work side by side; joblib would do the work itself if it were 1."""
        return max(n_jobs, 2)

    def submit(self, func: Any, callback: Done) -> None:
        """Begin a batch of one piece, or hold it until the results of earlier ones are taken."""
        ((_, (piece,), _),) = func.items
        with self._lock:
            if self._begun >= self._crew.ahead:
                self._held.append((piece, callback))
                return
            self._begun += 1
        self._crew.begin(piece, callback)

    # The name of the same in joblib 1.4.
    apply_async = submit

    def taken(self) -> None:
        """Note that a result was taken: one more piece may be begun."""
        with self._lock:
            if not self._held:
                self._begun -= 1
                return
            piece, callback = self._held.popleft()
        self._crew.begin(piece, callback)

    def retrieve_result_callback(self, out: tuple[Any, BaseException | None]) -> list[Any]:
        """Return the results of a batch, or raise its error."""
        result, error = out
        if error is not None:
            raise error
        return [result]

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002, FBT001 (joblib's)
        """End the work."""
        self._crew.stop()
