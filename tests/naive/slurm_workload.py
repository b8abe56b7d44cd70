"""The jobs of the plain Slurm as a workload, and what `run_slurm` makes of them: for comparing the two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from naive.slurm import Job, Placed
from naive.slurm_jobs import limit_of
from policyfactory.core.options import Int64Array
from policyfactory.simulation.slurm.run import run_slurm
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Requests, Workload

__all__ = ["run_fast", "workload_of"]

BY = ("", "main", "backfill")


def _named(values: Iterable[str]) -> tuple[tuple[str, ...], Int64Array]:
    values = list(values)
    names = tuple(sorted({value for value in values if value}))
    return names, np.array([names.index(value) if value else -1 for value in values], dtype=np.int64)


def workload_of(site: Site, jobs: Sequence[Job], zero: int) -> Workload:
    """Return the jobs on a clock that began at ``zero`` (Unix seconds), in the order of submission.

    A workload has a limit for every job: that of the partition where the job asks for none.
    """
    jobs = sorted(jobs, key=lambda job: (job.submit, job.id))
    partitions = {part.name: part for part in site.partitions}
    default = next((part for part in site.partitions if part.default), site.partitions[0])

    def column(name: str) -> Int64Array:
        return np.array([getattr(job, name) for job in jobs], dtype=np.int64)

    (parts, part), (qualities, quality), (accounts, account), (users, user) = (
        _named(getattr(job, name) for job in jobs) for name in ("partition", "qos", "account", "user")
    )
    lists, several = _named(",".join(job.partitions) for job in jobs)
    requests = Requests(
        nodes=column("nodes"),
        memory=column("memory"),
        gpus=column("gpus"),
        exclusive=column("exclusive"),
        eligible=np.where(column("eligible") < 0, -1, column("eligible") - zero),
        after=column("after"),
        partition=part,
        qos=quality,
        account=account,
        user_name=user,
        array=column("array"),
        array_limit=column("array_limit"),
        partitions=several,
        names={"partition": parts, "qos": qualities, "account": accounts, "user": users, "partitions": lists},
    )
    return Workload(
        "drawn",
        2**20,
        column("id"),
        column("submit") - zero,
        column("run_time"),
        np.array([limit_of(job, partitions.get(job.partition, default)) for job in jobs], dtype=np.int64),
        np.maximum(column("cores"), 1),
        user,
        np.array([job.submit - zero if job.ran else -1 for job in jobs], dtype=np.int64),
        unix_start=zero,
        requests=requests,
    )


def run_fast(site: Site, jobs: Sequence[Job], *, begin: int | None = None, turnround: int = 0) -> dict[int, Placed]:
    """Return what `run_slurm` makes of the jobs, by id, as `naive.slurm.simulate` does, but for the nodes."""
    begin = min((job.submit for job in jobs), default=0) if begin is None else begin
    zero = min([begin, *(job.submit for job in jobs)])
    workload = workload_of(site, jobs, zero)
    number = {one.name: place for place, one in enumerate(site.reservations)}
    by_id = {job.id: job for job in jobs}
    ordered = [by_id[int(id_)] for id_ in workload.job_id]
    run = run_slurm(
        workload,
        site,
        np.array([job.site_factor for job in ordered], dtype=np.int64),
        reservation=np.array([number.get(job.reservation, -1) for job in ordered], dtype=np.int64),
        origin=begin - zero,
        turn_round=turnround,
        cancelled=np.array([job.cancelled - zero if job.cancelled >= 0 else -1 for job in ordered], dtype=np.int64),
    )
    return {
        job.id: Placed(
            int(run.start[row]) + zero,
            int(run.end[row]) + zero,
            (),
            BY[run.by[row]],
            int(run.restarts[row]),
            int(run.preempted[row]),
            int(run.lost[row]),
        )
        if run.start[row] >= 0
        else Placed(requeues=int(run.restarts[row]), preempted=int(run.preempted[row]), lost=int(run.lost[row]))
        for row, job in enumerate(ordered)
    }
