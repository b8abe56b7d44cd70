"""What this package's runs are called on a Dask scheduler, and a scheduler with workers inside this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CLIENT", "left_behind", "local_cluster", "token_of"]

CLIENT = "policyfactory"


def token_of(client: str) -> str:
    """Return the name of what the run of a client puts on the workers."""
    return f"{CLIENT}-{client}"


def left_behind() -> Callable[..., list[str]]:
    """Return a function for a scheduler that finds what runs left on its workers whose client has gone."""
    begin = token_of("")

    # A function in a function is sent whole: a scheduler can work without this package.
    def find(dask_scheduler: Any) -> list[str]:
        return [
            plugin
            for plugin in dask_scheduler.worker_plugins
            if plugin.startswith(begin) and plugin.removeprefix(begin) not in dask_scheduler.clients
        ]

    return find


def local_cluster(threads: int) -> Any:
    """Start a scheduler and one worker of so many threads in this process.

    They talk in memory. Dask starts a web server for each in any case; theirs have no pages, and listen to this machine
    alone.
    """
    import dask.config
    from distributed import Scheduler, SpecCluster, Worker

    common = {"protocol": "inproc://", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    empty: dict[str, list[str]] = {f"distributed.{who}.http.routes": [] for who in ("scheduler", "worker")}
    with dask.config.set(empty):
        return SpecCluster(
            scheduler={"cls": Scheduler, "options": common},
            workers={"threads": {"cls": Worker, "options": {**common, "nthreads": threads, "memory_limit": 0}}},
            silence_logs=60,
        )
