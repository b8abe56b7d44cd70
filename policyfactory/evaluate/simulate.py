"""Run a policy on a workload: the step from Workload, Policy and Rules to the arrays of the engine, and back.

The rules are those of EASY(P, theta) as in Algorithm 1 of Gaussier, Lelong, Reis and Trystram, "Online tuning of
EASY-backfilling using queue reordering policies", IEEE TPDS 29(10), 2018; every choice that the algorithm leaves
open is stated in docs/simulator.md.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.engine.conservative import conservative
from policyfactory.engine.easy import Order, easy
from policyfactory.engine.events import NEVER, new_jobs
from policyfactory.engine.sliding import sort_keys
from policyfactory.engine.timed import easy_timed
from policyfactory.engine.waiting import Formula, Timing
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from policyfactory.policy.policy import Policy

__all__ = ["Rules", "Schedule", "simulate"]

Backfill = Literal["none", "easy", "conservative"]
DecideBy = Literal["request", "runtime", "prediction"]
Ties = Literal["fifo", "lifo"]
Overrun = Literal["run", "kill"]

_BLOCK = 8192


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What the scheduler may do and what it knows.

    Parameters
    ----------
    backfill : {"easy", "none", "conservative"}
        Aggressive backfilling with one reservation, strict order, or a reservation for every queued job.
    decide_by : {"request", "runtime", "prediction"}
        The p of the policy and of the reservations: requested time, actual run time, or a given column.
    threshold : float
        Seconds; jobs that have waited longer go first, in submit order. ``math.inf``: the policy's own threshold.
    ties : {"fifo", "lifo"}
        Which of two jobs with equal score goes first: the one submitted first (then the smaller job id), or the
        reverse of that.
    overrun : {"run", "kill"}
        What happens to a job at its requested time: it runs on to the end of its run time, or is killed.
    backfill_policy : Policy or None
        The order in which jobs are tried for backfilling; None is the queue's order. It ignores the threshold.

    Raises
    ------
    UsageError
        If a rule is not one of the words above, or the threshold is negative.
    """

    backfill: Backfill = "easy"
    decide_by: DecideBy = "request"
    threshold: float = math.inf
    ties: Ties = "fifo"
    overrun: Overrun = "run"
    backfill_policy: Policy | None = None

    def __post_init__(self) -> None:
        for name, words in (("backfill", Backfill), ("decide_by", DecideBy), ("ties", Ties), ("overrun", Overrun)):
            value = getattr(self, name)
            if value not in get_args(words):
                raise UsageError(f"{name} is {value!r}; choose one of {', '.join(get_args(words))}")
        if not self.threshold >= 0:
            raise UsageError(f"threshold is {self.threshold!r} s; give a duration from 0, or inf for none")
        if self.backfill_policy is not None and self.backfill != "easy":
            raise UsageError(f"an order of its own for backfilling needs backfill easy, not {self.backfill}")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """When each job of a workload ran.

    Parameters
    ----------
    start, end : int64 array (n,)
        Start and end of each job on the workload's clock, in its ticks, in the order of the workload's rows.
    backfilled : bool array (n,)
        Whether the job was started while a job ahead of it in the queue stayed waiting.
    workload : Workload
        The jobs.
    policy_name : str
        The policy that ordered the queue.
    rules : Rules
        The rules it ran under.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    backfilled: NDArray[np.bool_]
    workload: Workload
    policy_name: str
    rules: Rules

    def __len__(self) -> int:
        return len(self.start)


def simulate(
    workload: Workload, policy: Policy, rules: Rules | None = None, prediction: NDArray[np.int64] | None = None
) -> Schedule:
    """Return the schedule of ``workload`` under ``policy`` and ``rules``.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    policy : Policy
        The order of the queue; lower scores run first.
    rules : Rules, optional
        Default: EASY backfilling, decisions by requested time, no threshold but the policy's.
    prediction : int64 array (n,), ticks, optional
        Predicted run times for ``decide_by="prediction"``, at least 0.

    Raises
    ------
    EvaluationError
        If a prediction is missing or malformed, or the policy needs a date that the workload does not have.
    """
    rules = rules or Rules()
    # The engine takes jobs by submit time, then job id; most logs are in that order.
    rank = _submission_rank(workload)
    ordered = workload if rank is None else workload.select(rank)
    if prediction is not None:
        prediction = _checked_prediction(workload, prediction)
        prediction = prediction if rank is None else prediction[rank]
    run_time = ordered.run_time
    if rules.overrun == "kill":
        run_time = np.minimum(run_time, ordered.requested_time)
    estimate = _estimate(ordered, run_time, rules, prediction)
    _check_clock(ordered, run_time, estimate)
    # Compiled kernels say nothing of 1/0 in a formula; with NUMBA_DISABLE_JIT numpy would.
    with np.errstate(all="ignore"):
        start, backfilled = _run(ordered, run_time, estimate, policy, rules)
    end = start + run_time
    if rank is not None:
        back = np.argsort(rank)
        start, end, backfilled = start[back], end[back], backfilled[back]
    return Schedule(start, end, backfilled, workload, policy.name, rules)


def _submission_rank(workload: Workload) -> NDArray[np.intp] | None:
    """Return the rows by submit time, then job id; None if that is their order."""
    same_instant = np.diff(workload.submit) == 0
    if not (same_instant & (np.diff(workload.job_id) < 0)).any():
        return None
    return np.lexsort((workload.job_id, workload.submit))


def _checked_prediction(workload: Workload, prediction: NDArray[np.int64]) -> NDArray[np.int64]:
    values = np.asarray(prediction)
    if values.shape != (len(workload),) or values.dtype.kind not in "iu":
        raise EvaluationError(
            f"{workload.name}: the prediction has shape {values.shape} and type {values.dtype}; "
            f"give one whole number of ticks for each of the {len(workload)} jobs"
        )
    if (values < 0).any():
        at = int(np.argmax(values < 0))
        raise EvaluationError(
            f"{workload.name}: the prediction of job {workload.job_id[at]} is {values[at]}; give a time of at least 0"
        )
    return values.astype(np.int64)


def _estimate(
    workload: Workload, run_time: NDArray[np.int64], rules: Rules, prediction: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Return what the scheduler believes of each job's run time."""
    if rules.decide_by == "request":
        return workload.requested_time
    if rules.decide_by == "runtime":
        return run_time
    if prediction is None:
        raise EvaluationError(
            f"{workload.name}: decisions by prediction need a column of predicted run times; "
            "give one, or decide by request"
        )
    return prediction


def _check_clock(workload: Workload, run_time: NDArray[np.int64], estimate: NDArray[np.int64]) -> None:
    """Refuse times that could leave the range of the clock."""
    if not len(workload):
        return
    latest = float(workload.submit[-1]) + float(run_time.sum(dtype=np.float64)) + float(estimate.max())
    if latest >= NEVER:
        at = int(np.argmax(np.maximum(run_time, estimate)))
        raise EvaluationError(
            f"{workload.name}: run times and estimates add up to {latest:.3g} ticks, more than the clock has (2**62); "
            f"the longest is that of job {workload.job_id[at]}: clean the log first (policyfactory workload clean)"
        )


def _run(
    workload: Workload, run_time: NDArray[np.int64], estimate: NDArray[np.int64], policy: Policy, rules: Rules
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Choose the engine's kernel for the rules, run it, and return start and backfilled."""
    threshold = _threshold(workload, policy, rules)
    last_first, backfill = rules.ties == "lifo", rules.backfill == "easy"
    own = rules.backfill_policy
    given = (workload.submit, run_time, estimate, workload.processors)
    if rules.backfill != "conservative" and policy.is_static and (own is None or own.is_static):
        key = _keys(workload, estimate, policy)
        jobs = new_jobs(*given, key=key, backfill_key=None if own is None else _keys(workload, estimate, own))
        easy(jobs, Order(threshold, last_first, backfill, own is not None), workload.machine)
        return jobs.start, jobs.backfilled
    jobs = new_jobs(*given)
    timing = Timing(threshold, last_first, backfill, own is not None, workload.ticks)
    formula = _formula(workload, policy)
    if rules.backfill == "conservative":
        conservative(jobs, formula, timing, workload.machine)
    else:
        easy_timed(jobs, formula, formula if own is None else _formula(workload, own), timing, workload.machine)
    return jobs.start, jobs.backfilled


def _threshold(workload: Workload, policy: Policy, rules: Rules) -> int:
    """Return the threshold in ticks: that of the rules, if they have one, or the policy's own."""
    seconds = policy.threshold if math.isinf(rules.threshold) else rules.threshold
    # A whole number of ticks is longer than a threshold if and only if it is longer than its whole part.
    return NEVER if seconds * workload.ticks >= NEVER else math.floor(seconds * workload.ticks)


def _keys(workload: Workload, estimate: NDArray[np.int64], policy: Policy) -> NDArray[np.int64]:
    """Return the sort key of each job under a static policy."""
    epoch, ticks = _epoch(workload, policy), workload.ticks
    keys = np.empty(len(workload), dtype=np.int64)
    # Block by block: what is between the columns and the keys stays in the cache.
    for first in range(0, len(keys), _BLOCK):
        rows = slice(first, first + _BLOCK)
        p, r = estimate[rows] / ticks, (workload.submit[rows] - epoch) / ticks
        keys[rows] = sort_keys(policy.scores(p, workload.processors[rows], r, m=workload.machine))
    return keys


def _epoch(workload: Workload, policy: Policy) -> int:
    """Return the instant (ticks) from which the policy counts r: the first submission, or its fixed date."""
    if policy.epoch.rule != "fixed" or "r" not in policy.variables:
        return int(workload.submit[0]) if len(workload) else 0
    if workload.unix_start is None or policy.epoch.unix_time is None:
        raise EvaluationError(
            f"{workload.name}: policy {policy.name} counts r from Unix time {policy.epoch.unix_time}, but the log "
            "does not say when it began (header UnixStartTime); add that, or use another epoch"
        )
    return (policy.epoch.unix_time - workload.unix_start) * workload.ticks


def _formula(workload: Workload, policy: Policy) -> Formula:
    program = policy.program
    from_oldest = policy.epoch.rule == "oldest-waiting"
    r = (workload.submit - _epoch(workload, policy)) / workload.ticks
    return Formula(program.codes, program.operands, program.depth, r, from_oldest)
