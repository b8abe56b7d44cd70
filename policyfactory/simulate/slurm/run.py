"""A workload on a site under Slurm's rules."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.interruptible import interruptible
from policyfactory.engine.slurm import slurm
from policyfactory.engine.slurm_state import new_run
from policyfactory.simulate.slurm.jobs import place_jobs
from policyfactory.simulate.slurm.machine import machine_of, settings_of, weights_of
from policyfactory.simulate.slurm.shares import shares_of
from policyfactory.simulate.slurm.watch import Parts, Watch
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload

__all__ = ["Numbers", "Parts", "SlurmRun", "run_slurm"]


class Numbers(Protocol):
    """What sets site_factor of the jobs; they are in the order of their submission."""

    @property
    def at_submission(self) -> bool:
        """Whether numbers are made when jobs are submitted."""

    @property
    def at_calculation(self) -> bool:
        """Whether numbers of waiting jobs change when priorities are calculated."""

    @property
    def first(self) -> Int64Array:
        """The numbers at submission, where they are known before: int64 (n,)."""

    def run(self, parts: Parts, zero: int) -> None:
        """Run all jobs where numbers change.

        Parameters
        ----------
        parts : Parts
            Of a run that has not begun; its jobs have no numbers but the first.
        zero : int
            When the workload's clock began, on the run's (s).
        """


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SlurmRun:
    """When Slurm would run each job; arrays (n,) in the order of the workload's rows.

    Parameters
    ----------
    start, end : int64 array
        Seconds on the workload's clock; -1 for a job that never starts.
    by : int64 array
        1: started by the main pass, 2: by the backfilling pass.
    restarts : int64 array
        How often a node under the job failed.
    never : dict of int to str
        Rows of jobs that cannot start on this site, and why.
    """

    start: Int64Array
    end: Int64Array
    by: Int64Array
    restarts: Int64Array
    never: dict[int, str]


def run_slurm(
    workload: Workload,
    site: Site,
    factor: Int64Array | None = None,
    *,
    numbers: Numbers | None = None,
    reservation: Int64Array | None = None,
    origin: int | None = None,
    turn_round: int = 0,
    watch: Watch | None = None,
) -> SlurmRun:
    """Return when Slurm would run the jobs of a workload on a site.

    Parameters
    ----------
    workload : Workload
        With `Requests` where the log says more than processors.
    site : Site
    factor : int64 array (n,), optional
        site_factor of each job.
    numbers : Numbers, optional
        What sets it instead as the run goes on, as an export does.
    reservation : int64 array (n,), optional
        The number of the site's reservation that each job asks for; -1 for none.
    origin : int, optional
        When the scheduler was started (s on the workload's clock); default: at the first submission.
    turn_round : int
        Seconds from a job's end until its nodes are free.
    watch : Watch, optional
        Who follows a run whose ``numbers`` do not change, and stops it where its queue is too long.

    Raises
    ------
    EvaluationError
        If the workload's clock does not count seconds, or it names a partition that the site does not have.
    UsageError
        If the site has reservations or outages and the workload has no date.
    """
    n = len(workload)
    machine, layout = machine_of(site, workload.unix_start)
    shares, associations = shares_of(site)
    none = np.full(n, -1, dtype=np.int64)
    factor, reservation = none + 1 if factor is None else factor, none if reservation is None else reservation
    placed = place_jobs(workload, site, layout, associations, factor, reservation)
    if origin is None:
        origin = int(workload.submit[0]) if n else 0
    # On the Unix clock: planned times are rounded there.
    zero = workload.unix_start or 0
    settings = settings_of(site, origin + zero, turn_round, stops=numbers is not None and numbers.at_calculation)
    settings = settings._replace(foretells=numbers is not None and numbers.at_submission)
    run = new_run(placed.jobs, machine, placed.most, max(len(placed.held), 1), settings)
    parts = Parts(placed.jobs, machine, run, settings, weights_of(site), shares)
    if numbers is not None and not numbers.at_submission:
        placed.jobs.fixed[:] += numbers.first
    if numbers is not None and (numbers.at_submission or numbers.at_calculation):
        numbers.run(parts, zero)
    elif watch is not None:
        watch.run(parts, placed, site, zero)
    else:
        interruptible(slurm, *parts)

    def in_rows(column: Int64Array) -> Int64Array:
        rows = np.empty(n, dtype=np.int64)
        rows[placed.order] = column
        return rows

    def on_clock(column: Int64Array) -> Int64Array:
        return np.where(run.start >= 0, column - zero, -1)

    return SlurmRun(
        in_rows(on_clock(run.start)), in_rows(on_clock(run.end)), in_rows(run.by), in_rows(run.restarts), placed.never
    )
