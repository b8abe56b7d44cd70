"""A policy on a site under Slurm's rules: it enters as its export would, as the ``site_factor`` of each job."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from policyfactory.core.arrays import Int64Array
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.text import counted
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.predict.predictor import Predictor
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule
from policyfactory.simulate.site_factors import SiteFactors, SwitchedFactors
from policyfactory.simulate.slurm.misfits import never_words, without_misfits
from policyfactory.simulate.slurm.run import Numbers, SlurmRun, run_slurm
from policyfactory.site.default import as_assumed, site_of
from policyfactory.site.fits import in_own_partitions, without_strangers
from policyfactory.site.layout import lay_out
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload

__all__ = ["check_policy", "simulate_slurm", "simulate_timetable", "unfit"]

_BY_BACKFILLING = 2


def simulate_slurm(workload: Workload, policy: Policy, rules: Rules, predictor: Predictor | None = None) -> Schedule:
    """Return the schedule of a workload under Slurm's rules, its queue ordered by a policy.

    Each job gets the whole number that an export would set, when and as it would
    (`policyfactory.simulate.site_factors`). What else the site's priorities count is added, as Slurm adds it.

    Parameters
    ----------
    workload : Workload
        The jobs; times in seconds.
    policy : Policy
    rules : Rules
        With backfill "slurm".
    predictor : Predictor, optional
        What predicts the jobs for a policy that reads predictions; with its defaults if not given.

    Returns
    -------
    Schedule
        Its rules have the site; a job is backfilled if the backfilling pass started it. Of a job that was put back when
        a node failed, the last start and end count. Jobs that could never start on a described site are left out of it,
        which ``left_out`` says.

    Raises
    ------
    UsageError
        If no export could follow the policy.
    EvaluationError
        If a job never starts on nodes that are away for good, or most jobs could never start, the workload's clock does
        not count seconds, or the jobs cannot be predicted.
    """
    check_policy(policy, rules)
    threshold = policy.threshold if math.isinf(rules.threshold) else rules.threshold
    return _simulate(
        *(workload, policy.name, dataclasses.replace(rules, threshold=threshold)),
        lambda jobs, site: SiteFactors(jobs, policy, rules, site, predictor),
    )


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
        if policy.needs_predictions:
            raise predictions_needed(policy, "a run that goes from one policy to another")

    def in_force(time: Int64Array | int) -> Int64Array:
        return choices[np.searchsorted(edges[1:-1], time, side="right")]

    def numbers(jobs: Workload, site: Site) -> SwitchedFactors:
        return SwitchedFactors({arm: SiteFactors(jobs, policy, rules, site) for arm, policy in used.items()}, in_force)

    name = policies[choices[0]].name if len(used) == 1 else "switching"
    return _simulate(workload, name, rules, numbers)


def _simulate(
    workload: Workload,
    name: str,
    rules: Rules,
    numbers: Callable[[Workload, Site], Numbers],
) -> Schedule:
    """Return the schedule under the numbers that jobs are given on a site."""
    site, left_out = rules.site or site_of(workload), ""
    if not site.assumed:
        workload, left_out = without_strangers(workload, site)

    def run_on(workload: Workload) -> SlurmRun:
        jobs = as_assumed(workload, site) if site.assumed else in_own_partitions(workload, site)
        return run_slurm(jobs, _as_ruled(site, rules), numbers=numbers(jobs, site))

    run = run_on(workload)
    # Mostly there is none: who simulates a log more than once has left them out.
    if run.never and not site.assumed:
        workload, more = without_misfits(workload, site)
        run, left_out = run_on(workload), f"{left_out} {more}".strip()
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
        If it reads f or an r that changes, or reads predictions and it or the rules have a threshold.
    """
    if why := unfit(policy, rules):
        raise UsageError(f"policy {policy.name} {why}, or backfill easy or conservative")


def unfit(policy: Policy, rules: Rules) -> str:
    """Return why a policy is not simulated under Slurm's rules, and what else to take; empty if it is."""
    late = min(rules.threshold, policy.threshold)
    if "f" in policy.variables:
        return "has f, the processors that are free, which Slurm tells no export: take a policy without it"
    if "r" in policy.variables and policy.epoch.rule == "oldest-waiting":
        return (
            "counts r from the job that has waited longest, which is not simulated under Slurm's rules: take another "
            "epoch"
        )
    if policy.needs_predictions and math.isfinite(late):
        return (
            f"reads predictions and lets jobs go first after {late:,.0f} s, and no export does both: take it without "
            "the threshold"
        )
    return ""


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
    never = {
        row: run.never.get(row, "no nodes that would take it come back")
        for row in np.flatnonzero(run.start < 0).tolist()
    }
    if never:
        raise EvaluationError(
            f"{workload.name}: {len(never):,} of {counted(len(workload), 'job')} never start on site {site.name}: "
            f"{never_words(workload, never)}. Metrics need all jobs: correct the site file"
        )


def _check_run_on(workload: Workload, run: SlurmRun) -> None:
    cut = run.end - run.start < workload.run_time
    if cut.any():
        row = int(np.argmax(cut))
        raise EvaluationError(
            f"{workload.name}: job {workload.job_id[row]} runs more than a year longer than its limit of "
            f"{workload.requested_time[row]:,} s ({int(cut.sum())} such jobs); correct the log, or let jobs be killed "
            "(overrun kill)"
        )
