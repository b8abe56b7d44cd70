"""A policy on a site under Slurm's rules: it enters as its export would, as the ``site_factor`` of each job."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

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
from policyfactory.simulate.slurm.run import Renew, SlurmRun, run_slurm
from policyfactory.site.default import as_assumed, site_of
from policyfactory.site.fits import in_own_partitions, without_strangers
from policyfactory.site.layout import lay_out
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload
from policyfactory.workload.requests import Requests

__all__ = ["check_policy", "simulate_slurm", "simulate_timetable", "site_factors"]

_BY_BACKFILLING = 2
_MOST_NAMED = 5
# Waits (s) at which the scores of a policy with w are looked at for their scale.
_WAITS = (60, 600, 3600, 6 * 3600, 86400, 7 * 86400)


def simulate_slurm(workload: Workload, policy: Policy, rules: Rules) -> Schedule:
    """Return the schedule of a workload under Slurm's rules, its queue ordered by a policy.

    Each job gets the whole number that an export would set when it is submitted: its score, on a scale that is learnt
    from the scores of all jobs. Where scores change while jobs wait, the numbers do whenever Slurm calculates
    priorities, every PriorityCalcPeriod, as the plugin in C does it. What else the site's priorities count is added, as
    Slurm adds it.

    Parameters
    ----------
    workload : Workload
        The jobs; times in seconds.
    policy : Policy
    rules : Rules
        With backfill "slurm".

    Returns
    -------
    Schedule
        Its rules have the site; a job is backfilled if the backfilling pass started it. Of a job that was put back when
        a node failed, the last start and end count. Jobs of partitions that the site does not have are left out of it,
        which ``left_out`` says.

    Raises
    ------
    UsageError
        If a policy reads how many processors are free, or predictions, or a threshold is given.
    EvaluationError
        If a job could never start, most are of partitions that the site does not have, or the workload's clock does not
        count seconds.
    """
    check_policy(policy, rules)
    return _simulate(workload, policy.name, rules, lambda jobs, site: site_factors(jobs, policy, rules, site))


def simulate_timetable(
    workload: Workload, policies: Sequence[Policy], rules: Rules, choices: Int64Array, edges: Int64Array
) -> Schedule:
    """Return the schedule under Slurm's rules where one policy follows another.

    A job gets the number of the policy that is in force when it is submitted; one that waits gets that of the policy
    then in force whenever Slurm calculates priorities. Each policy has its own scale.

    Parameters
    ----------
    workload : Workload
        The jobs; times in seconds.
    policies : sequence of Policy
        Those that can be in force.
    rules : Rules
        With backfill "slurm".
    choices : int64 array (periods,)
        Which of them is in force in each period; without a period the first is.
    edges : int64 array (periods + 1,), s
        Period i is from ``edges[i]`` to before ``edges[i + 1]``, the last one until all jobs have started.

    Returns
    -------
    Schedule
        As `simulate_slurm`, which raises the same errors.
    """
    if not len(choices):
        return simulate_slurm(workload, policies[0], rules)
    used = {arm: policies[arm] for arm in np.unique(choices).tolist()}
    for policy in used.values():
        check_policy(policy, rules)

    def in_force(time: Int64Array | int) -> Int64Array:
        return choices[np.searchsorted(edges[1:-1], time, side="right")]

    def factors(jobs: Workload, site: Site) -> tuple[Int64Array, Renew]:
        made = {arm: site_factors(jobs, policy, rules, site) for arm, policy in used.items()}

        def renew(rows: Int64Array, now: int) -> Int64Array:
            fixed, again = made[int(in_force(now))]
            return fixed[rows] if again is None else again(rows, now)

        arms = in_force(jobs.submit)
        return np.select([arms == arm for arm in made], [fixed for fixed, _ in made.values()]), renew

    name = policies[choices[0]].name if len(used) == 1 else "switching"
    return _simulate(workload, name, rules, factors)


def _simulate(
    workload: Workload,
    name: str,
    rules: Rules,
    factors_of: Callable[[Workload, Site], tuple[Int64Array, Renew | None]],
) -> Schedule:
    """Return the schedule under the numbers that jobs are given on a site."""
    site, left_out = rules.site or site_of(workload), ""
    if not site.assumed:
        workload, left_out = without_strangers(workload, site)
    jobs = as_assumed(workload, site) if site.assumed else in_own_partitions(workload, site)
    factors, renew = factors_of(jobs, site)
    run = run_slurm(jobs, _as_ruled(site, rules), factors, renew=renew)
    _check_started(workload, site, run)
    if rules.overrun == "run":
        _check_run_on(workload, run)
    # What utilisation is a part of.
    held = dataclasses.replace(workload, machine=int(lay_out(site).cores.sum()))
    backfilled = run.by == _BY_BACKFILLING
    rules = dataclasses.replace(rules, site=site)
    return Schedule(run.start, run.end, backfilled, held, name, rules, left_out=left_out)


def check_policy(policy: Policy, rules: Rules) -> None:
    """Refuse a policy that could not order a queue of Slurm.

    Raises
    ------
    UsageError
        If it reads f, predictions or an r that changes, or it or the rules have a threshold.
    """
    if policy.needs_predictions:
        raise predictions_needed(policy, "a simulation under Slurm's rules")
    late = min(rules.threshold, policy.threshold)
    why = ""
    if "f" in policy.variables:
        why = "has f, the processors that are free, which Slurm tells no export"
    elif not policy.is_static and "w" not in policy.variables:
        why = "counts r from the job that has waited longest, which Slurm tells no export"
    elif math.isfinite(late):
        why = f"lets jobs go first after {late:,.0f} s"
    if why:
        raise UsageError(
            f"policy {policy.name} {why}; under Slurm's rules take a policy without f, such an r and a threshold, or "
            "backfill easy or conservative"
        )


def site_factors(workload: Workload, policy: Policy, rules: Rules, site: Site) -> tuple[Int64Array, Renew | None]:
    """Return the whole number that an export sets for each job, and how it is renewed; the highest runs first.

    Parameters
    ----------
    workload : Workload
        Its jobs as the site takes them.
    policy : Policy
    rules : Rules
    site : Site
        Where time limits are from: those of Slurm are whole minutes.

    Returns
    -------
    factors : int64 array (n,)
        At submission.
    renew : function or None
        The same of waiting jobs at a later time, for `run_slurm`; None where scores do not change.
    """
    asked = workload.requests or Requests.unknown(len(workload))
    limits = limits_of(workload, site, partitions_of(workload, asked, site))
    prepared = Prepared(workload, None, workload.run_time, limits, rules)
    with np.errstate(all="ignore"):
        scores = prepared.scores(policy)
        if policy.is_static:
            return _scale(scores).integers(scores), None
        waits = [prepared.scores(policy, waited=np.full(len(workload), wait)) for wait in _WAITS]
    scale = _scale(np.concatenate([scores, *waits]))

    def renew(rows: Int64Array, now: int) -> Int64Array:
        with np.errstate(all="ignore"):
            return scale.integers(prepared.scores(policy, rows, now - workload.submit[rows]))

    return scale.integers(scores), renew


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
