"""The options that say who does the work, shared by the commands that share it out."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from policyfactory.core.errors import UsageError
from policyfactory.parallel.workers import Backend, Workers

__all__ = ["BackendOption", "SchedulerOption", "WorkersOption", "workers_of"]


WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", help="Workers on this machine (default: one a core); the result is the same."),
]
BackendOption = Annotated[
    Backend | None,
    typer.Option(
        "--backend",
        help="What the workers are: threads of this process (threading, the default), processes of this machine "
        "(loky), or those of a Dask cluster (dask, with --scheduler; alone: threads). The result is the same.",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Work on the Dask cluster of this scheduler: tcp://HOST:PORT, tls://HOST:PORT, or its scheduler file "
        "(FILE.json). Only on networks that you trust.",
    ),
]


def workers_of(workers: int | None, backend: Backend | None = None, scheduler: str | None = None) -> Workers:
    """Return who does the work, from the options of a command.

    Parameters
    ----------
    workers : int or None
        ``--workers``; None means one worker a core.
    backend : Backend or None
        ``--backend``; None means threads, and Dask if there is a scheduler.
    scheduler : str or None
        ``--scheduler``; it means backend ``dask``.

    Raises
    ------
    UsageError
        If the options contradict each other, the address is none, or the backend is not installed.
    InputError
        If the scheduler file cannot be read.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers}: give at least 1 worker")
    if scheduler is not None:
        if backend not in {None, "dask"}:
            raise UsageError(f"--scheduler {scheduler} is for --backend dask, not {backend}; leave one of them out")
        if workers is not None:
            raise UsageError(
                f"--workers {workers} with --scheduler {scheduler}: the workers of the cluster do the work, as many as "
                "it has; leave --workers out"
            )
    kind: Backend = backend or ("dask" if scheduler is not None else "threading")
    if kind == "dask":
        from policyfactory.parallel.dask_connection import check_installed, scheduler_address

        check_installed()
        if scheduler is not None:
            # Before hours of reading logs; the file is read again when the work begins.
            scheduler_address(scheduler)
    return Workers(workers or len(os.sched_getaffinity(0)), kind, scheduler)
