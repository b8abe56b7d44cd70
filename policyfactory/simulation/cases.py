"""Cases: what is simulated on its own, the machine empty at its start. A window of a log, a resampled log, a log.

The first jobs of a case may be a lead-in: they are simulated, so that the machine is busy and the queue is there, but
what is measured begins after them.

A case is made when it is run and forgotten afterwards, so that memory does not grow with their number.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from policyfactory.simulation.rules import Rules

Kind = Literal["log", "window", "resample"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One unit of comparison: all policies run it, and cases are what is resampled for intervals.

    Parameters
    ----------
    log : str
        Name of the log that it comes from.
    number : int
        Its place among the log's cases, from 1.
    kind : {"log", "window", "resample"}
        What it is.
    make : callable
        Returns its jobs, times counted from the first of them; the same at every call.
    rules : Rules or None
        The rules of this log where they differ from those of the experiment (a threshold that depends on the log).
    prediction : int64 array (n,) or None
        Predicted run time of each job, in ticks.
    seed : int
        Seed of what is random in a contender (tuners); equal for all contenders.
    lead_in : int
        So many jobs, the first ones, are simulated but not measured.
    widening : float
        By how much more the log deviates from the truth than a log drawn from it deviates from the log; 1 of all else.
    """

    log: str
    number: int
    kind: Kind
    make: Callable[[], Workload]
    rules: Rules | None = None
    prediction: NDArray[np.int64] | None = None
    seed: int = 0
    lead_in: int = 0
    widening: float = 1.0

    def measured(self) -> Workload:
        """Return the jobs that are measured, times counted from the first of them."""
        workload = self.make()
        return workload.select(slice(self.lead_in, None), rebase=True) if self.lead_in else workload


@dataclasses.dataclass(frozen=True, slots=True)
class CaseFacts:
    """What a table says about a case.

    Parameters
    ----------
    log, number, kind
        As in `Case`.
    jobs : int
        Its jobs, without those of a lead-in.
    machine : int
        Processors of the machine.
    span_s : float
        First to last submission, in seconds.
    unix_start : int or None
        Unix time of its first submission, if the log says so.
    sha256 : str
        Digest of its jobs.
    widening : float
        As in `Case`.
    """

    log: str
    number: int
    kind: Kind
    jobs: int
    machine: int
    span_s: float
    unix_start: int | None
    sha256: str
    widening: float = 1.0


def case_of(
    workload: Workload,
    number: int = 1,
    *,
    log: str | None = None,
    kind: Kind = "log",
    prediction: NDArray[np.int64] | None = None,
) -> Case:
    """Return jobs that are there already as a case.

    Parameters
    ----------
    workload : Workload
        Its jobs.
    number : int
        Its place among the log's cases, from 1.
    log : str, optional
        Name of the log; the workload's name if not given.
    kind : {"log", "window", "resample"}
        What it is.
    prediction : int64 array (n,), ticks, optional
        Predicted run time of each job.
    """
    # Not a closure: other processes are given cases too.
    make = functools.partial(_itself, workload)
    return Case(workload.name if log is None else log, number, kind, make, prediction=prediction)


def _itself(workload: Workload) -> Workload:
    return workload


def facts_of(case: Case, workload: Workload) -> CaseFacts:
    """Return what a table says about a case.

    Parameters
    ----------
    case : Case
        The case.
    workload : Workload
        Those of its jobs that are measured, at least one.
    """
    return CaseFacts(
        log=case.log,
        number=case.number,
        kind=case.kind,
        jobs=len(workload),
        machine=workload.machine,
        span_s=float(workload.submit[-1] - workload.submit[0]) / workload.ticks,
        unix_start=workload.unix_start,
        sha256=workload.sha256(),
        widening=case.widening,
    )
