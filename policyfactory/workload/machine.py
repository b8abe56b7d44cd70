"""How many processors the machine of a log has: what its header says, or what the caller says where it says nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import LARGEST_MACHINE
from policyfactory.workload.swf.log import SwfLog

__all__ = ["FORCE", "known_machine", "machine_of", "size_of"]

# The option by which a size is used that contradicts the header.
FORCE = "--force-processors"


def size_of(log: SwfLog) -> NDArray[np.int64]:
    """Return each job's processors: allocated, else requested, else -1."""
    size = np.where(log.allocated > 0, log.allocated, log.requested)
    return np.where(size > 0, size, -1)


def known_machine(log: SwfLog, machine: int | None = None, *, force: bool = False) -> tuple[int, str] | None:
    """Return the processors of a log's machine and where the number is from; None if nobody says it.

    The header's MaxNodes is taken where it has no MaxProcs and no job is larger.

    Parameters
    ----------
    log : SwfLog
        As it was read.
    machine : int, optional
        Processors as the caller has them.
    force : bool
        Use ``machine`` also where the header's MaxProcs is another number.

    Raises
    ------
    UsageError
        If a machine of less than one processor or of more than any is asked for, or one that contradicts the header
        and is not forced.
    """
    header = log.header
    if machine is None:
        if force:
            raise UsageError(f"{FORCE} belongs to a machine size; add --processors N")
        if header.processors is not None:
            return header.processors, "MaxProcs of the header"
        nodes = header.nodes
        if nodes is not None and _largest(log) <= nodes:
            return nodes, "MaxNodes of the header, which has no MaxProcs"
        return None
    if not 1 <= machine <= LARGEST_MACHINE:
        raise UsageError(f"--processors {machine}: a machine has from 1 to {LARGEST_MACHINE:,} processors")
    if header.processors in (None, machine):
        return machine, "as asked for"
    if not force:
        raise UsageError(_contradiction(log, machine, header.processors))
    return machine, f"as asked for, against MaxProcs {header.processors:,} of the header"


def machine_of(log: SwfLog, machine: int | None = None, *, force: bool = False) -> tuple[int, str]:
    """Return the processors of a log's machine and where the number is from; parameters are those of `known_machine`.

    Raises
    ------
    UsageError
        As `known_machine`.
    WorkloadError
        If neither the caller nor the header says it.
    """
    known = known_machine(log, machine, force=force)
    if known is not None:
        return known
    largest = _largest(log)
    nodes = log.header.nodes
    size = f"MaxNodes {nodes:,} only, and jobs of {largest:,} processors" if nodes else "no MaxProcs"
    raise WorkloadError(
        f"{printable(log.path, 300)}: the header has {size}, so that the machine is unknown; say how many processors "
        f"it has with --processors (the largest job has {largest:,})"
    )


def _largest(log: SwfLog) -> int:
    """Return the most processors that a job had or asked for."""
    return int(max(log.allocated.max(initial=0), log.requested.max(initial=0)))


def _contradiction(log: SwfLog, machine: int, processors: int) -> str:
    larger = int(np.count_nonzero(size_of(log) > machine))
    jobs = f", and {larger:,} of its {len(log):,} jobs are larger than {machine:,}" if larger else ""
    return (
        f"--processors {machine}: {printable(log.path, 300)} says MaxProcs {processors} in its header{jobs}; leave "
        f"--processors out, or add {FORCE} (force_processors in Python, force_machine in a protocol) to use "
        f"{machine} all the same"
    )
