"""The accounting of a time, as ``workload import`` reads it, or a log in the Standard Workload Format."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import UsageError
from policyfactory.workload.accounting.importing import Zone, import_logs
from policyfactory.workload.accounting.limits import ImportRules, parse_limit
from policyfactory.workload.accounting.rules import STILL_WAIT
from policyfactory.workload.clean import clean
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import Workload
from policyfactory.workload.presets import EstimateMissing
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog

__all__ = ["Accounting", "Reading", "read_accounting"]


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """How accounting is read; the same for all times that are compared.

    Parameters
    ----------
    processors : int or None
        Of the machine; None: the most in use at once.
    estimate_missing : {"error", "runtime", "model", "drop"}
        What to do with jobs without a requested time.
    unlimited : str or None
        Requested time of jobs without a limit.
    time_zone : str or None
        Of times that have none; None: this machine's.
    """

    processors: int | None = None
    estimate_missing: EstimateMissing = "model"
    unlimited: str | None = None
    time_zone: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Accounting:
    """Jobs of a time, with their starts.

    Parameters
    ----------
    name : str
        The files, for messages.
    log : SwfLog
        The jobs as recorded, in order of submission.
    workload : Workload
        Those that a simulation can use.
    job, user, partition : tuple of str
        Numbers, users and partitions of the jobs of ``log`` as the site writes them; empty for a log in SWF.
    machine_given : bool
        Whether the size of the machine was given or is in the header, and not the most in use at once.
    waiting : int
        Jobs that waited when the accounting was taken, which are not in ``log``; 0 for a log in SWF, which has none.
    hashes : dict of str to str
        SHA-256 of the files, as they were read.
    """

    name: str
    log: SwfLog
    workload: Workload
    job: tuple[str, ...]
    user: tuple[str, ...]
    partition: tuple[str, ...]
    machine_given: bool
    waiting: int = 0
    hashes: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def rows(self) -> Int64Array:
        """The row of ``log`` of each job of the workload."""
        order = np.argsort(self.log.job_id, kind="stable")
        return np.asarray(order[np.searchsorted(self.log.job_id[order], self.workload.job_id)], dtype=np.int64)


def read_accounting(paths: Sequence[Path | str], reading: Reading | None = None) -> Accounting:
    """Read the accounting of one time.

    Parameters
    ----------
    paths : sequence of Path or str
        Its files: what sacct, PBS or TORQUE wrote, or one log in the Standard Workload Format (``.swf``, ``.swf.gz``).
    reading : Reading, optional
        How it is read.

    Raises
    ------
    InputError, TraceFormatError, WorkloadError
        If a file cannot be read, is no accounting, or no job is left.
    UsageError
        If an option is refused.
    """
    reading = reading or Reading()
    name = printable(", ".join(Path(path).name for path in paths[:3]), 200) + (", ..." if len(paths) > 3 else "")
    swf = [path for path in paths if str(path).lower().endswith((".swf", ".swf.gz"))]
    if swf:
        if len(paths) > 1:
            raise UsageError(f"{name}: give one log in SWF, or files of accounting")
        log = _numbered(read_swf(swf[0]))
        given, of = reading.processors is not None, reading.estimate_missing
        workload = clean(log, processors=reading.processors, force_processors=given, estimate_missing=of)
        workload.cleaning.warn()
        return Accounting(
            name,
            log.select(np.argsort(log.submit, kind="stable")),
            workload,
            (),
            (),
            (),
            machine_given=True,
            hashes={str(swf[0]): log.sha256},
        )
    from policyfactory.workload.accounting.times import find_zone

    zone = None
    if reading.time_zone is not None:
        zone = Zone(find_zone(reading.time_zone), reading.time_zone, "given by --time-zone")
    unlimited = None if reading.unlimited is None else parse_limit(reading.unlimited, "--unlimited")
    imported = import_logs(paths, rules=ImportRules(unlimited=unlimited), zone=zone, processors=reading.processors)
    workload = clean(imported.log, estimate_missing=reading.estimate_missing)
    workload.cleaning.warn()
    given = reading.processors is not None
    names = (imported.job, imported.user, imported.partition)
    waiting = sum(step.count for step in imported.report.steps if step.what.endswith(STILL_WAIT))
    hashes = {path: digest for path, _, digest in imported.report.inputs}
    return Accounting(name, imported.log, workload, *names, machine_given=given, waiting=waiting, hashes=hashes)


def _numbered(log: SwfLog) -> SwfLog:
    """Return a log of which no two jobs have one number, so that a number finds its job after the cleaning too.

    The parts of a job (status 2, 3, 4) share its number and are joined by it.
    """
    numbers = log.job_id.copy()
    whole = np.flatnonzero((log.status < 2) | (log.status > 4))
    _, first = np.unique(numbers[whole], return_index=True)
    again = np.delete(whole, first)
    numbers[again] = max(0, int(numbers.max(initial=0))) + 1 + np.arange(len(again))
    return dataclasses.replace(log, job_id=numbers)
