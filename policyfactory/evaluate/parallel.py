"""Pieces of work on threads, their results in order, and an end without noise when the user stops it.

Kernels hold no lock, so threads are enough, and they share the logs. ``concurrent.futures`` rather than joblib: it can
take back what has not begun, so that Ctrl-C ends at once and says nothing of workers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order"]

T = TypeVar("T")

_AHEAD = 64  # pieces for each worker that may be done before the first unfinished one


def in_order(pieces: Iterable[Callable[[threading.Event], T]], workers: int) -> Iterator[T]:
    """Yield the result of each piece of work, in the order of the pieces.

    Parameters
    ----------
    pieces : iterable of callable
        Each is called once, in a thread of its own if there is more than one worker; its argument is set when the
        results are no longer wanted, and a long piece looks at it now and then. An error is raised here.
    workers : int
        Pieces that run side by side.
    """
    stopped = threading.Event()
    if workers == 1:
        for piece in pieces:
            yield piece(stopped)
        return
    pending: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="simulation")
    try:
        for piece in pieces:
            pending.append(pool.submit(piece, stopped))
            if len(pending) >= _AHEAD * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)
