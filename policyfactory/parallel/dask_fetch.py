"""Results of pieces, fetched from Dask's workers: none waits for another that has to be made again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from concurrent.futures import Future as Promise
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Fetches"]

# Seconds: until the results of a batch are fetched one by one; between two tries of one.
_SOON = 1.0
# So often a result is asked for that cannot be fetched although the scheduler is there.
_TRIES = 5


class Fetches:
    """What is fetched, and what has arrived.

    Parameters
    ----------
    client : distributed.Client
        The connection.
    loss : callable
        Gives the error that says that the scheduler is lost, from what was raised.
    """

    def __init__(self, client: Client, loss: Callable[[BaseException], BaseException]) -> None:
        self._client = client
        self._loss = loss
        self._arrived: SimpleQueue[tuple[Future, Any, BaseException | None]] = SimpleQueue()
        # An event loop alone would not keep its tasks from the garbage collector.
        self._running: set[asyncio.Task[Any]] = set()

    def fetch(self, futures: list[Future]) -> None:
        """Fetch the results of finished pieces, all at once; what does not come soon, each by itself.

        A result that went with its worker is made again, and is waited for as long as that takes.
        """
        good = [future for future in futures if future.status == "finished"]
        values: dict[str, Any] = {}
        try:
            found = self._in_loop(self._all, good).result(_SOON)
            values = dict(zip((future.key for future in good), found, strict=True))
        except (Exception, CancelledError):  # noqa: BLE001, S110 (told when it is fetched by itself)
            pass
        for future in futures:
            if future.key in values:
                self._arrived.put((future, values[future.key], None))
            else:
                self._in_loop(self._one, future)

    def arrived(self) -> Iterator[tuple[Future, Any, BaseException | None]]:
        """Give what has arrived: the piece's future, its result, or its error."""
        while True:
            try:
                yield self._arrived.get_nowait()
            except Empty:
                return

    def _in_loop(self, work: Callable[[Any], Coroutine[Any, Any, Any]], what: Any) -> Promise[Any]:
        """Start a coroutine in the connection's thread, which cancels what is left when the connection is closed.

        The coroutine is made in that thread: one made here would never be awaited if the connection closes meanwhile.
        """
        promise: Promise[Any] = Promise()

        def hand_on(task: asyncio.Task[Any]) -> None:
            if task.cancelled():
                promise.cancel()
            elif (error := task.exception()) is not None:
                promise.set_exception(error)
            else:
                promise.set_result(task.result())

        def start() -> None:
            task = asyncio.ensure_future(work(what))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            task.add_done_callback(hand_on)

        try:
            self._client.loop.asyncio_loop.call_soon_threadsafe(start)
        except RuntimeError as error:  # the connection is closed
            promise.set_exception(error)
        return promise

    async def _all(self, futures: list[Future]) -> list[Any]:
        return list(await self._client.gather(futures, asynchronous=True))

    async def _one(self, future: Future) -> None:
        for tried in range(1, _TRIES + 1):
            try:
                (value,) = await self._all([future])
            except (Exception, CancelledError) as error:  # noqa: BLE001 (the task's own among them)
                told: BaseException = error
                if future.status != "error":
                    # A lost connection is known as such after an instant.
                    await asyncio.sleep(_SOON)
                    lost = future.status == "cancelled" or self._client.status != "running"
                    if not lost and tried < _TRIES:
                        continue
                    told = self._loss(error) if lost else error
                self._arrived.put((future, None, told))
            else:
                self._arrived.put((future, value, None))
            return
