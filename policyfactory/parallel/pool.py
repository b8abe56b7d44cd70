"""Pieces of work shared out to workers, their results, and an end without noise when the user stops it.

Kernels hold no lock, so on one machine threads are enough, and they share the jobs (backend ``threading``). Processes
(``loky``) and clusters (``dask``) get what is common to all pieces once a worker, and small pieces after that. The
results are the same on each backend: a piece has all that its result depends on.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from policyfactory.core.errors import UsageError

if TYPE_CHECKING:
    from policyfactory.parallel.backend import Crew

__all__ = ["BACKENDS", "Backend", "GoOn", "Task", "Tell", "Workers", "results"]

Backend = Literal["threading", "loky", "dask"]
BACKENDS: tuple[Backend, ...] = ("threading", "loky", "dask")

GoOn = Callable[[], None]
Tell = Callable[[str], None]

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")

# What is done to a piece: called with what is common to all, the piece, and what ends work that nobody waits for.
Task = Callable[[S, P, GoOn], R]


@dataclasses.dataclass(frozen=True, slots=True)
class Workers:
    """Who does the work; it changes nothing of the results.

    Parameters
    ----------
    count : int
        How many work side by side; of a Dask cluster that is running already, its workers are taken, however many.
    backend : {"threading", "loky", "dask"}
        Threads of this process, processes of this machine, or Dask.
    scheduler : str or None
        Address of a running Dask scheduler (``tcp://node:8786``), or the name of its scheduler file; None starts a
        scheduler with ``count`` threads inside this process, for backend ``dask``.

    Raises
    ------
    UsageError
        If ``count`` is below 1, the backend is unknown, or there is a scheduler and the backend is not ``dask``.
    """

    count: int = 1
    backend: Backend = "threading"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UsageError(f"{self.count} workers; give at least 1")
        if self.backend not in BACKENDS:
            raise UsageError(f"there is no backend {self.backend!r}; there are {', '.join(BACKENDS)}")
        if self.scheduler is not None and self.backend != "dask":
            raise UsageError(f"a scheduler ({self.scheduler}) is for backend dask, not {self.backend}")

    @classmethod
    def of(cls, workers: Self | int) -> Self:
        """Return workers as they are; a number means so many threads."""
        return cls(workers) if isinstance(workers, int) else workers


def results(
    task: Task[S, P, R],
    shared: S,
    pieces: Iterable[P],
    workers: Workers | int = 1,
    *,
    in_order: bool = False,
    tell: Tell = lambda _: None,
) -> Generator[R, None, None]:
    """Yield the result of each piece of work.

    Parameters
    ----------
    task : callable
        ``task(shared, piece, go_on)``, a function of a module (other processes find it by its name). It calls ``go_on``
        several times a second; an exception of that ends the work.
    shared : object
        What is common to all pieces; each worker has it once.
    pieces : iterable
        What is different: small, and made when it is needed.
    workers : Workers or int
        Who does the work; a number means so many threads.
    in_order : bool
        Yield in the order of the pieces, not as they are finished.
    tell : callable
        Called with a sentence when a worker was lost and its piece is done again, and when workers are waited for;
        from any thread.

    Raises
    ------
    WorkersError
        If the workers cannot be reached, or are lost for good.
    Exception
        What a task raises.
    """
    workers = Workers.of(workers)
    if workers.count == 1 and workers.backend == "threading":
        for piece in pieces:
            yield task(shared, piece, _go_on)
        return

    from joblib import Parallel, delayed

    from policyfactory.parallel.backend import PieceBackend

    order: Any = "generator" if in_order else "generator_unordered"
    with _crew(task, shared, workers, tell) as crew:
        backend = PieceBackend(crew)
        parallel = Parallel(
            n_jobs=workers.count, backend=backend, return_as=order, batch_size=1, pre_dispatch=crew.waiting
        )
        found = parallel(delayed(task)(piece) for piece in pieces)
        try:
            for result in found:
                yield result
                backend.taken()
        finally:
            crew.stop()
            # Joblib warns of results that nobody asked for: that is what ending early means.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                found.close()


def _crew(task: Task[S, P, R], shared: S, workers: Workers, tell: Tell) -> Crew:
    """Return those who do the work."""
    if workers.backend == "dask":
        from policyfactory.parallel.dask import DaskCrew

        return DaskCrew(task, shared, workers, tell)
    if workers.backend == "loky":
        from policyfactory.parallel.loky import ProcessCrew

        return ProcessCrew(task, shared, workers.count, tell)
    from policyfactory.parallel.threads import ThreadCrew

    return ThreadCrew(task, shared, workers.count)


def _go_on() -> None:
    """Go on: the one worker is the caller itself."""
