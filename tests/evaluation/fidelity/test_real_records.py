"""What a real slurmctld did with hundred jobs is near, in most of the replays that are kept."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter

import numpy as np

from naive.slurm_forced import at_origin, plain_jobs, turnrounds
from naive.slurm_workload import workload_of
from policyfactory.evaluation.fidelity.compare import Fidelity, fidelity
from policyfactory.simulation.slurm.run import run_slurm
from schedulers.record import Record
from schedulers.replay_cases import CASES
from schedulers.replays import names, records_of
from support import OTHER_KERNEL


def compared(record: Record) -> Fidelity:
    """Return how near the simulation is to a record."""
    site = at_origin(CASES[record.case]().site, record)
    jobs = plain_jobs(site, record)
    zero = min([record.begin, *(job.submit for job in jobs.values())])
    log = workload_of(site, list(jobs.values()), zero)
    rows = [jobs[int(number)] for number in log.job_id]
    past = {job.id: one for job, one in zip(record.jobs, record.past, strict=True)}
    start = np.array([past[job.id].start // 1000 + record.origin - zero for job in rows])
    log = dataclasses.replace(log, start=np.maximum(start, log.submit))
    place = {one.name: number for number, one in enumerate(site.reservations)}
    run = run_slurm(
        log,
        site,
        np.array([job.site_factor for job in rows]),
        reservation=np.array([place.get(job.reservation, -1) for job in rows]),
        origin=record.begin - zero,
        turn_round=round(statistics.median(turnrounds(record).values())),
    )
    return fidelity(log, site, run)


@OTHER_KERNEL
def test_the_records_of_a_real_slurm_are_near() -> None:
    records = [record for name in names() for record in records_of(name)]
    found = [compared(record) for record in records]
    lights = Counter(one.light for one in found)
    # Some have fewer than a hundred jobs to compare. Of so few jobs, chance alone moves some beyond the fit.
    small = sum(len(record.jobs) <= 100 for record in records)
    assert lights["cannot tell"] == small
    assert lights["near"] >= 0.8 * (len(found) - small)
    for one in found:
        everybody = one.groups[0]
        assert everybody.order is not None
        assert everybody.order > 0.5
        assert everybody.distance < 0.5
