"""Jobs as they wait in the queues of a schedule: what a policy that looks at waits and free processors really sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.policy.catalogue import PolicyLike, resolve
from policyfactory.policy.effects import JobSample, NetworkEffects, network_effects
from policyfactory.simulate.schedule import Schedule
from policyfactory.simulate.simulate import simulate
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload

__all__ = ["explain_network", "queued_jobs"]

_INSTANTS = 200
_EACH = 5  # jobs of one queue


def explain_network(
    policy: PolicyLike, workload: Workload | Path | str | None = None, *, estimate_missing: str = "error"
) -> NetworkEffects:
    """Return what each input of a network does to the scores of jobs; `draw_effects` draws it.

    Parameters
    ----------
    policy : Policy, or a network file
        The network.
    workload : Workload, or path of a log, optional
        Over the jobs that wait when the network orders this log; without it over jobs of all sizes.
    estimate_missing : str
        As for `policyfactory.workload.clean.read`, of a log that is read.

    Raises
    ------
    UsageError
        If the policy is no network, or there are no jobs.
    """
    policy = resolve(policy)
    if policy.network is None:
        raise UsageError(
            f"policy {policy.name} is no network; explain a job's score: policyfactory policy explain --job"
        )
    if workload is None:
        return network_effects(policy.network)
    jobs = workload if isinstance(workload, Workload) else read(workload, estimate_missing=estimate_missing)
    return network_effects(policy.network, queued_jobs(simulate(jobs, policy)))


def queued_jobs(schedule: Schedule, *, instants: int = _INSTANTS, each: int = _EACH) -> JobSample:
    """Return jobs that wait when others start, the same number of each queue, evenly over the schedule.

    Parameters
    ----------
    schedule : Schedule
        Of a log, under the policy in question or another.
    instants : int
        At most so many starts of jobs are looked at.
    each : int
        At most so many jobs of each queue.
    """
    workload, start, end = schedule.workload, schedule.start, schedule.end
    ticks, machine = workload.ticks, workload.machine
    times = np.unique(start)
    times = times[np.linspace(0, len(times) - 1, min(instants, len(times))).astype(np.intp)] if len(times) else times
    rows: list[int] = []
    waited: list[float] = []
    free: list[float] = []
    for now in times:
        queue = np.flatnonzero((workload.submit <= now) & (start >= now))
        held = int(workload.processors[(start < now) & (end > now)].sum())
        some = queue[np.linspace(0, len(queue) - 1, min(each, len(queue))).astype(np.intp)]
        rows.extend(some.tolist())
        waited.extend(((now - workload.submit[some]) / ticks).tolist())
        free.extend([float(machine - held)] * len(some))
    p, q = (column[rows].astype(np.float64) for column in (workload.requested_time / ticks, workload.processors))
    about = f"{len(rows):,} waiting jobs of {workload.name} under {schedule.policy_name}"
    return JobSample(p, q, np.array(waited), np.array(free), float(machine), about)
