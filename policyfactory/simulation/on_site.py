"""A policy on a site under Slurm's rules: it enters as its export would, as the ``site_factor`` of each job.

That number may change while a run goes on: `SiteFactors` says when.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.options import Int64Array
from policyfactory.core.text import counted
from policyfactory.engine.events import NEVER
from policyfactory.engine.slurm.numbers import ROWS, LivePredictions, Numbering, follow_run, new_followed
from policyfactory.engine.slurm.state import NOW, WAITING
from policyfactory.engine.waiting import ASKED, COLUMNS
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.policy.scale import HIGHEST, PriorityScale, scale_of
from policyfactory.prediction.features import possible_predictions
from policyfactory.prediction.training import Predictor
from policyfactory.simulation.metrics import StoppedRuns
from policyfactory.simulation.predicted import Lessons, check_predictor, needed
from policyfactory.simulation.prepare import Prepared
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.slurm.jobs import limits_of, never_words, partitions_of, without_misfits
from policyfactory.simulation.slurm.run import Numbers, Parts, SlurmRun, advance, run_slurm
from policyfactory.site.fits import as_assumed, in_own_partitions, lay_out, site_of, without_strangers
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Requests, Workload

_BY_BACKFILLING = 2


def simulate_slurm(workload: Workload, policy: Policy, rules: Rules, predictor: Predictor | None = None) -> Schedule:
    """Return the schedule of a workload under Slurm's rules, its queue ordered by a policy.

    Each job gets the whole number that an export would set, when and as it would
    (`SiteFactors`). What else the site's priorities count is added, as Slurm adds it.

    Parameters
    ----------
    workload : Workload
        The jobs; times in seconds.
    policy : Policy
        Orders the queue; one that an export to Slurm can follow.
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


def _simulate(workload: Workload, name: str, rules: Rules, numbers: Callable[[Workload, Site], Numbers]) -> Schedule:
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
    stopped = StoppedRuns(run.preempted, run.lost) if site.preemption.on else None
    return Schedule(run.start, run.end, backfilled, held, name, rules, left_out=left_out, stopped=stopped)


def jobs_on_site(workload: Workload, site: Site) -> tuple[Workload, list[str]]:
    """Return the jobs as a site takes them, without those that it cannot run, and which these are."""
    if site.assumed:
        return as_assumed(workload, site), [site.assumed]
    workload, strangers = without_strangers(workload, site)
    workload, misfits = without_misfits(workload, site)
    return in_own_partitions(workload, site), [text for text in (strangers, misfits) if text]


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
    if policy.backfill_policy is not None:
        return (
            f"has an order of its own for backfilling, by {policy.backfill_formula}, and Slurm plans by one priority: "
            "take it without"
        )
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
    cut = (run.end - run.start < workload.run_time) & (run.preempted == 0)
    if cut.any():
        row = int(np.argmax(cut))
        raise EvaluationError(
            f"{workload.name}: job {workload.job_id[row]} runs more than a year longer than its limit of "
            f"{workload.requested_time[row]:,} s ({int(cut.sum())} such jobs); correct the log, or let jobs be killed "
            "(overrun kill)"
        )


# The number that an export sets for each job. -------------------------------------------------------------------------

# Waits (s) at which the scores of a policy with w are looked at for their scale.
_WAITS = (60, 600, 3600, 6 * 3600, 86400, 7 * 86400)


class SiteFactors:
    """What sets the numbers of the jobs of one run; a `policyfactory.simulation.slurm.run.Numbers`.

    A formula of what is known at submission gives a job its number once. With predictions it is worked out when the job
    is submitted, as `job_submit.lua` does it, from what has ended, started or was submitted in this very run by then,
    and again, at the first calculation of priorities of each of the predictor's periods, for the waiting jobs of users
    of whom a job has ended since: what `history update --renew` does in the export. With w or a threshold it is worked
    out whenever priorities are calculated, as the plugin in C does it; a job beyond the threshold is above all others.

    The range of scores that the numbers are spread over is learnt as the export learns it: from what the jobs ask for.
    Nothing that happens in the run is looked at; predictions are drawn as wide as they may be.

    Parameters
    ----------
    workload : Workload
        Its jobs as the site takes them.
    policy : Policy
        Without f, and without an r that changes.
    rules : Rules
        How long jobs run, and by what they are decided.
    site : Site
        Where time limits are from: those of Slurm are whole minutes.
    predictor : Predictor, optional
        What predicts the jobs for a policy that reads predictions.

    Raises
    ------
    EvaluationError
        If requests were filled with the run times that are to be predicted, or the policy reads e90 and a model that is
        given has no trees for it.

    Attributes
    ----------
    at_submission : bool
        Whether numbers are made when jobs are submitted.
    foresight : Lessons
        What is predicted of the jobs, in the order of submission.
    """

    def __init__(
        self, workload: Workload, policy: Policy, rules: Rules, site: Site, predictor: Predictor | None = None
    ) -> None:
        self._policy = policy
        order = np.lexsort((workload.job_id, workload.submit))
        jobs = workload.select(order)
        asked = jobs.requests or Requests.unknown(len(jobs))
        # Of a job that asks for no time it is the limit of the partition in which it was, whichever others it lists.
        limits = limits_of(jobs.requested_time, site, partitions_of(jobs, asked, site))
        prepared = Prepared(jobs, None, jobs.run_time, limits, rules)
        self._threshold = prepared.threshold(policy)
        self._changes = not policy.is_static or self._threshold < NEVER
        self.at_submission = policy.needs_predictions
        self._columns = np.zeros((ROWS, len(jobs)))
        predictions = self._columns[COLUMNS:-ASKED]
        predictor = needed(predictor or Predictor(), [policy])
        self._renews = self.at_submission and predictor.options.renew_s > 0
        tail = self.at_submission and check_predictor(jobs, [policy], predictor)
        # Where nothing is predicted, of no job.
        some = slice(None if self.at_submission else 0)
        self.foresight = Lessons(jobs.select(some), predictor, predictions[:, some], tail=tail)
        self._prepared = dataclasses.replace(prepared, predictions=predictions)
        self._scale = _learnt_scale(prepared, policy)

    @property
    def at_calculation(self) -> bool:
        """Whether numbers of waiting jobs change where priorities are calculated."""
        return self._changes or self._renews

    @functools.cached_property
    def first(self) -> Int64Array:
        """The numbers at submission, int64 (n,), in its order; the highest runs first. Unknown with predictions."""
        with np.errstate(all="ignore"):
            return self._scale.integers(self._prepared.scores(self._policy))

    @property
    def submit(self) -> Int64Array:
        """When jobs are submitted (s, on the workload's clock), in that order."""
        return self._prepared.workload.submit

    def numbers(self, jobs: Int64Array, now: int) -> Int64Array:
        """Return the numbers of some jobs at a second of the workload's clock; unknown with predictions."""
        if not self._changes:
            return self.first[jobs]
        waited = now - self.submit[jobs]
        with np.errstate(all="ignore"):
            numbers = self._scale.integers(self._prepared.scores(self._policy, jobs, waited))
        late = self._scale.largest + np.clip(waited, 0, HIGHEST - self._scale.largest)
        return np.where(waited > self._threshold, late, numbers)

    def run(self, parts: Parts, zero: int) -> None:
        """Run all jobs, and train where it is time; as of `policyfactory.simulation.slurm.run.Numbers`."""
        jobs, scale, formula = self._prepared, self._scale, self._prepared.formula(self._policy)
        others = parts.jobs.fixed.copy()
        if not self.at_submission:
            others -= self.first[parts.jobs.first]
        columns = self._columns
        columns[: COLUMNS - 1] = jobs.estimate, jobs.workload.processors, formula.r
        if formula.asked.shape[1]:
            columns[-ASKED:] = formula.asked
        numbering = Numbering(
            codes=formula.codes,
            operands=formula.operands,
            columns=columns,
            work=np.empty((ROWS + formula.depth, len(parts.jobs.first))),
            processors=float(jobs.workload.machine),
            low=scale.low,
            high=scale.high,
            largest=float(scale.largest),
            highest=float(HIGHEST),
            threshold=self._threshold,
            changes=self._changes,
            others=others,
        )
        run, count = parts.run, len(jobs)
        seen, lessons = new_followed(parts.jobs.submit[:count], run.start[:count], run.end[:count]), self.foresight

        # Made anew for each call: ``lessons.learn`` replaces ``lessons.sight``.
        def predictions() -> LivePredictions | None:
            return LivePredictions(seen, lessons.past, lessons.sight) if self.at_submission else None

        while advance(parts, numbering, predictions(), lessons.next + zero):
            while lessons.next + zero <= parts.run.state[NOW]:
                follow_run(seen, lessons.past, lessons.next + zero - 1)
                lessons.learn()


class SwitchedFactors:
    """What sets the numbers where one policy follows another; a `policyfactory.simulation.slurm.run.Numbers`.

    Parameters
    ----------
    factors : mapping of int to SiteFactors
        Those of each policy, of the same jobs.
    in_force : function
        Of times (s, on the workload's clock): which policy's numbers jobs are given then.
    """

    at_submission, at_calculation = False, True

    def __init__(self, factors: Mapping[int, SiteFactors], in_force: Callable[[Int64Array | int], Int64Array]) -> None:
        self._factors, self._in_force = factors, in_force
        arms = in_force(next(iter(factors.values())).submit)
        self.first = np.select([arms == arm for arm in factors], [arm_factor.first for arm_factor in factors.values()])

    def run(self, parts: Parts, zero: int) -> None:
        """Run all jobs; as of `policyfactory.simulation.slurm.run.Numbers`."""
        fixed, run, first = parts.jobs.fixed, parts.run, parts.jobs.first
        others = fixed - self.first[first]
        until = 0
        # A calculation of priorities at or after ``until`` waits for new numbers: first whichever comes first, then any
        # but the one at which the run stands, which has got them.
        while advance(parts, until=until):
            now, waiting = int(run.state[NOW]) - zero, run.waiting[: run.state[WAITING]]
            fixed[waiting] = others[waiting] + self._factors[int(self._in_force(now))].numbers(first[waiting], now)
            until = int(run.state[NOW]) + 1


def _learnt_scale(prepared: Prepared, policy: Policy) -> PriorityScale:
    """Return the range of the scores that jobs may have by what they ask for."""
    n = len(prepared)
    if policy.needs_predictions:
        drawn = possible_predictions(prepared.estimate.astype(np.float64))
        prepared = dataclasses.replace(prepared, predictions=drawn)
    with np.errstate(all="ignore"):
        waits = (0,) if policy.is_static else (0, *_WAITS)
        scores = np.concatenate([prepared.scores(policy, waited=np.full(n, wait)) for wait in waits])
    scale = scale_of(scores)
    if scale is not None:
        return scale
    # One score, or none: what has it still goes before what has none.
    known = scores[np.isfinite(scores)]
    middle = float(known[0]) if len(known) else 0.0
    room = max(1.0, abs(middle) / 2)
    return PriorityScale(middle - room, middle + room)
