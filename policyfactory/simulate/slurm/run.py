"""A workload on a site under Slurm's rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.interruptible import interruptible
from policyfactory.engine.slurm import slurm
from policyfactory.engine.slurm_state import NOW, WAITING, new_run
from policyfactory.simulate.slurm.jobs import place_jobs
from policyfactory.simulate.slurm.machine import machine_of, settings_of, weights_of
from policyfactory.simulate.slurm.shares import shares_of
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload

__all__ = ["Renew", "SlurmRun", "run_slurm"]

# Rows of waiting jobs, a time (s) -> their site_factor.
Renew = Callable[[Int64Array, int], Int64Array]


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
    renew: Renew | None = None,
    reservation: Int64Array | None = None,
    origin: int | None = None,
    turn_round: int = 0,
) -> SlurmRun:
    """Return when Slurm would run the jobs of a workload on a site.

    Parameters
    ----------
    workload : Workload
        With `Requests` where the log says more than processors.
    site : Site
    factor : int64 array (n,), optional
        site_factor of each job, as an export sets it at submission.
    renew : function, optional
        Of the rows (k,) of waiting jobs and a time (s, on the workload's clock): their site_factor from then on, int64
        (k,), as a plugin sets it whenever Slurm calculates priorities (priority/multifactor).
    reservation : int64 array (n,), optional
        The number of the site's reservation that each job asks for; -1 for none.
    origin : int, optional
        When the scheduler was started (s on the workload's clock); default: at the first submission.
    turn_round : int
        Seconds from a job's end until its nodes are free.

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
    placed = place_jobs(workload, site, layout, associations, factor if renew is None else none + 1, reservation)
    if origin is None:
        origin = int(workload.submit[0]) if n else 0
    # On the Unix clock: planned times are rounded there.
    zero = workload.unix_start or 0
    settings = settings_of(site, origin + zero, turn_round, stops=renew is not None)
    run = new_run(placed.jobs, machine, placed.most, placed.counters, settings)
    fixed, others = placed.jobs.fixed, placed.jobs.fixed.copy()
    if renew is not None:
        fixed += factor[placed.order]
    while interruptible(slurm, placed.jobs, machine, run, settings, weights_of(site), shares) and renew is not None:
        waiting = run.waiting[: run.state[WAITING]]
        fixed[waiting] = others[waiting] + renew(placed.order[waiting], int(run.state[NOW]) - zero)

    def in_rows(column: Int64Array) -> Int64Array:
        rows = np.empty(n, dtype=np.int64)
        rows[placed.order] = column
        return rows

    def on_clock(column: Int64Array) -> Int64Array:
        return np.where(run.start >= 0, column - zero, -1)

    return SlurmRun(
        in_rows(on_clock(run.start)), in_rows(on_clock(run.end)), in_rows(run.by), in_rows(run.restarts), placed.never
    )
