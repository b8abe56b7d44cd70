"""Work units shared out to workers, and their results.

Kernels hold no lock, so on one machine threads are enough, and they share the jobs (backend ``threading``). Processes
(``loky``) and clusters (``dask``) get the shared data once a worker, and small work units after that. The results are
the same on each backend: a unit contains all that its result depends on.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from policyfactory.parallel.workers import Function, Notify, ThreadExecutor, Workers, never_stop

if TYPE_CHECKING:
    from policyfactory.parallel.dask import DaskExecutor, DaskUnit

    Executor = ThreadExecutor | DaskExecutor
    SentUnit = Future[Any] | DaskUnit

_LOOK = 0.1  # seconds between two checks of the workers

S = TypeVar("S")
U = TypeVar("U")
R = TypeVar("R")


def results(
    function: Function[S, U, R],
    shared: S,
    work_units: Iterable[U],
    workers: Workers | int = 1,
    *,
    notify: Notify = lambda _: None,
) -> Generator[R, None, None]:
    """Yield the result of each work unit, as they are finished.

    Parameters
    ----------
    function : callable
        ``function(shared, unit, check_stop)``, a function of a module (other processes find it by its name). It calls
        ``check_stop`` several times a second, which raises an error when nobody waits for the result any more.
    shared : object
        What is the same for all units; each worker has it once.
    work_units : iterable
        What differs: small, and made when it is needed.
    workers : Workers or int
        Who does the work; a number means that many threads.
    notify : callable
        Called with a sentence when a worker was lost and its unit is computed again, and when workers are waited for;
        from any thread.

    Raises
    ------
    WorkersError
        If the workers cannot be reached, or are lost for good.
    Exception
        What the function raises.
    """
    with batches(function, shared, workers, notify=notify) as compute:
        yield from compute(work_units)


@contextlib.contextmanager
def batches(
    function: Function[S, U, R],
    shared: S,
    workers: Workers | int = 1,
    *,
    notify: Notify = lambda _: None,
) -> Iterator[Callable[[Iterable[U]], Iterator[R]]]:
    """Give what computes batches of work units, one batch after another, by the same workers.

    For work whose next units depend on the results of the last ones. What is given takes work units and yields the
    result of each as it is finished; a batch must be taken to its end before the next.

    Parameters
    ----------
    function, shared, workers, notify
        As for `results`.
    """
    workers = Workers.of(workers)
    if workers.count == 1 and workers.backend == "threading":
        yield lambda units: (function(shared, unit, never_stop) for unit in units)
        return
    with _executor(function, shared, workers, notify) as executor:
        yield lambda units: (future.result() for future in _finished(executor, iter(units)))


def _executor(function: Function[S, U, R], shared: S, workers: Workers, notify: Notify) -> Executor:
    if workers.backend == "dask":
        from policyfactory.parallel.dask import DaskExecutor

        return DaskExecutor(function, shared, workers, notify)
    if workers.backend == "loky":
        from policyfactory.parallel.processes import ProcessExecutor

        return ProcessExecutor(function, shared, workers.count, notify)
    return ThreadExecutor(function, shared, workers.count)


def _finished(executor: Executor, units: Iterator[Any]) -> Iterator[SentUnit]:
    """Give the future of each unit when it is finished; a bounded number of units is submitted ahead."""
    ended: SimpleQueue[SentUnit] = SimpleQueue()
    open_ = 0
    while True:
        for unit in itertools.islice(units, executor.ahead - open_):
            executor.submit(unit).add_done_callback(ended.put)
            open_ += 1
        if not open_:
            return
        yield _next(executor, ended)
        open_ -= 1


def _next(executor: Executor, ended: SimpleQueue[SentUnit]) -> SentUnit:
    """Return the unit that is finished next."""
    while True:
        executor.check()
        with contextlib.suppress(Empty):
            return ended.get(timeout=_LOOK)
