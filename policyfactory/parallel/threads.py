"""Workers that are threads of this process; they share everything."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from policyfactory.parallel.backend import Done, StopError
from policyfactory.parallel.pool import Task

__all__ = ["ThreadCrew"]

_AHEAD = 64  # pieces for each worker that may be done before the first unfinished one


class ThreadCrew:
    """Threads that take pieces from one queue.

    Parameters
    ----------
    task : callable
        What is done to a piece.
    shared : object
        What is common to all.
    count : int
        How many threads.
    """

    def __init__(self, task: Task[Any, Any, Any], shared: Any, count: int) -> None:
        self.waiting = 2 * count
        self.ahead = _AHEAD * count
        self._task = task
        self._shared = shared
        self._stopped = threading.Event()
        self._queue: SimpleQueue[tuple[Any, Done] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, args=(number,), name=f"worker-{number}", daemon=True)
            for number in range(1, count + 1)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def begin(self, piece: Any, done: Done) -> None:
        """Put a piece into the queue."""
        self._queue.put((piece, done))

    def stop(self) -> None:
        """End what was begun: tasks see it when they ask whether to go on."""
        self._stopped.set()

    def work(self, number: int, piece: Any) -> Any:  # noqa: ARG002 (processes have numbers)
        """Return the result of a piece, done by worker ``number``."""
        return self._task(self._shared, piece, self.go_on)

    def go_on(self) -> None:
        """End the work if nobody waits for it.

        Raises
        ------
        StopError
            Then.
        """
        if self._stopped.is_set():
            raise StopError

    def _serve(self, number: int) -> None:
        while (job := self._queue.get()) is not None:
            piece, done = job
            outcome: tuple[Any, BaseException | None]
            try:
                self.go_on()
                outcome = self.work(number, piece), None
            except BaseException as error:  # noqa: BLE001 (raised again where the results are taken)
                outcome = None, error
            done(outcome)
            # Nothing of a finished piece is kept while waiting for the next.
            del job, piece, done, outcome
