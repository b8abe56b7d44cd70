"""Pieces of work for distribution.py that other processes find by name, and workers for those that sleep."""  # noqa: INP001 (beside the package, not a part of it)

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

from policyfactory.parallel.workers import StopCheck

__all__ = ["marked_nap", "nap", "nothing", "serve"]


def nothing(_shared: object, unit: int, _go_on: StopCheck) -> int:
    """Return the work unit."""
    return unit


def nap(seconds: float, unit: int, _go_on: StopCheck) -> int:
    """Sleep: a work unit that takes time and no processor."""
    time.sleep(seconds)
    return unit


def marked_nap(shared: tuple[str, float], unit: int, _go_on: StopCheck) -> int:
    """Note in a file that the work unit was begun, and by whom, and sleep."""
    with Path(shared[0]).open("a", encoding="ascii") as file:
        file.write(f"{unit} {os.getpid()}\n")
    time.sleep(shared[1])
    return unit


def serve(address: str, count: int) -> None:
    """Be ``count`` workers of a Dask scheduler, of one thread each and with sockets of their own."""
    from distributed import Worker

    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            workers = [
                await stack.enter_async_context(Worker(address, nthreads=1, dashboard_address=None, memory_limit=0))
                for _ in range(count)
            ]
            await asyncio.gather(*(worker.finished() for worker in workers))

    asyncio.run(work())


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
