"""A policy on a site under Slurm's rules: it enters as its export would, as the ``site_factor`` of each job."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.text import counted
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.policy.scale import Scale, scale_of
from policyfactory.simulate.prepare import Prepared
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule
from policyfactory.simulate.slurm.requests import limits_of, partitions_of
from policyfactory.simulate.slurm.run import SlurmRun, run_slurm
from policyfactory.site.default import as_assumed, site_of
from policyfactory.site.fits import in_own_partitions
from policyfactory.site.layout import lay_out
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload
from policyfactory.workload.requests import Requests

__all__ = ["check_policy", "simulate_slurm", "site_factors"]

_BY_BACKFILLING = 2
_MOST_NAMED = 5


def simulate_slurm(workload: Workload, policy: Policy, rules: Rules) -> Schedule:
    """Return the schedule of a workload under Slurm's rules, its queue ordered by a policy.

    Each job gets the whole number that an export would set when it is submitted: its score, on a scale that is learnt
    from the scores of all jobs. What else the site's priorities count is added, as Slurm adds it.

    Parameters
    ----------
    workload : Workload
        The jobs; times in seconds.
    policy : Policy
        Whose scores stay the same while jobs wait.
    rules : Rules
        With backfill "slurm".

    Returns
    -------
    Schedule
        Its rules have the site; a job is backfilled if the backfilling pass started it. Of a job that was put back when
        a node failed, the last start and end count.

    Raises
    ------
    UsageError
        If a score would change while a job waits, a policy needs predictions, or a threshold is given.
    EvaluationError
        If a job could never start, or the workload's clock does not count seconds.
    """
    check_policy(policy, rules)
    site = rules.site or site_of(workload)
    jobs = as_assumed(workload, site) if site.assumed else in_own_partitions(workload, site)
    run = run_slurm(jobs, _as_ruled(site, rules), site_factors(jobs, policy, rules, site))
    _check_started(workload, site, run)
    if rules.overrun == "run":
        _check_run_on(workload, run)
    # What utilisation is a part of.
    held = dataclasses.replace(workload, machine=int(lay_out(site).cores.sum()))
    backfilled = run.by == _BY_BACKFILLING
    return Schedule(run.start, run.end, backfilled, held, policy.name, dataclasses.replace(rules, site=site))


def check_policy(policy: Policy, rules: Rules) -> None:
    """Refuse a policy that could not order a queue of Slurm.

    Raises
    ------
    UsageError
        If its scores change while a job waits, it reads predictions, or it or the rules have a threshold.
    """
    if policy.needs_predictions:
        raise predictions_needed(policy, "a simulation under Slurm's rules")
    late = min(rules.threshold, policy.threshold)
    if not policy.is_static or math.isfinite(late):
        why = "changes while a job waits" if not policy.is_static else f"lets jobs go first after {late:,.0f} s"
        raise UsageError(
            f"policy {policy.name} {why}, and under Slurm's rules a job keeps the number that it gets when it is "
            "submitted; take a policy without w and without a threshold, or backfill easy or conservative"
        )


def site_factors(workload: Workload, policy: Policy, rules: Rules, site: Site) -> Int64Array:
    """Return the whole number that an export sets for each job: int64 (n,), the highest runs first.

    Parameters
    ----------
    workload : Workload
        Its jobs as the site takes them.
    policy : Policy
        Static.
    rules : Rules
    site : Site
        Where time limits are from: those of Slurm are whole minutes.
    """
    asked = workload.requests or Requests.unknown(len(workload))
    limits = limits_of(workload, site, partitions_of(workload, asked, site))
    prepared = Prepared(workload, None, workload.run_time, limits, rules)
    with np.errstate(all="ignore"):
        scores = prepared.scores(policy)
    return _scale(scores).integers(scores)


def _scale(scores: FloatArray) -> Scale:
    scale = scale_of(scores)
    if scale is not None:
        return scale
    # One score, or none: what has it still goes before what has none.
    known = scores[np.isfinite(scores)]
    middle = float(known[0]) if len(known) else 0.0
    room = max(1.0, abs(middle) / 2)
    return Scale(middle - room, middle + room)


def _as_ruled(site: Site, rules: Rules) -> Site:
    """Return the site as an export sets it up: its priority counts site_factor; and jobs are killed as asked for."""
    priority, scheduling = site.priority, site.scheduling
    if priority.kind != "multifactor":
        priority = dataclasses.replace(
            priority, kind="multifactor", age=0, fair_share=0, job_size=0, partition=0, qos=0, association=0, tres={}
        )
    if rules.overrun == "run":
        scheduling = dataclasses.replace(scheduling, kill_overrun=math.inf)
    return dataclasses.replace(site, priority=priority, scheduling=scheduling)


def _check_started(workload: Workload, site: Site, run: SlurmRun) -> None:
    never = np.flatnonzero(run.start < 0)
    if not len(never):
        return
    stopped: dict[str, list[int]] = {}
    for row in never.tolist():
        why = run.never.get(row, "no nodes that would take it come back")
        stopped.setdefault(why, []).append(int(workload.job_id[row]))
    reasons = [f"{_listed(jobs)} ({why})" for why, jobs in list(stopped.items())[:_MOST_NAMED]]
    more = "; and others" if len(stopped) > _MOST_NAMED else ""
    raise EvaluationError(
        f"{workload.name}: {len(never):,} of {counted(len(workload), 'job')} never start on site {site.name}: "
        f"{'; '.join(reasons)}{more}. Metrics need all jobs: see policyfactory site check LOG SITE, then correct the "
        "site file, or leave these jobs out of the log"
    )


def _listed(jobs: list[int]) -> str:
    rest = len(jobs) - _MOST_NAMED
    named = ", ".join(map(str, jobs[:_MOST_NAMED])) + (f" and {rest:,} more" if rest > 0 else "")
    return f"job{'s' if len(jobs) > 1 else ''} {named}"


def _check_run_on(workload: Workload, run: SlurmRun) -> None:
    cut = run.end - run.start < workload.run_time
    if cut.any():
        row = int(np.argmax(cut))
        raise EvaluationError(
            f"{workload.name}: job {workload.job_id[row]} runs more than a year longer than its limit of "
            f"{workload.requested_time[row]:,} s ({int(cut.sum())} such jobs); correct the log, or let jobs be killed "
            "(overrun kill)"
        )
