"""From Workload, Policy and Rules to what the engine's kernels take: ordered columns, keys, programs, thresholds.

Also which jobs a policy gives no score: NaN, which sorts behind all others without a word.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import DAY, counted
from policyfactory.engine.events import NEVER, Jobs, Order, new_jobs, sort_keys
from policyfactory.engine.metrics import TAU
from policyfactory.engine.waiting import ASKED, PREDICTIONS, Formula
from policyfactory.policy.policy import Policy, predictions_needed
from policyfactory.workload.machine import COLUMN_OF, how_to_assume

if TYPE_CHECKING:
    from policyfactory.simulation.rules import Rules
    from policyfactory.workload.jobs import Workload

Scalar = TypeVar("Scalar", np.int64, np.bool_)

_BLOCK = 8192


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A workload in the engine's order, and what the scheduler believes of it.

    Parameters
    ----------
    workload : Workload
        The jobs by submit time, then job id (or recorded rank).
    rank : int array (n,) or None
        Which row of the workload that was given each of them is; None: the order is the same.
    run_time, estimate : int64 array (n,), ticks
        What the machine executes; the p of policies and reservations.
    rules : Rules
        The rules.
    predictions : float64 array (5, n) or None
        e, s, e90, user_waiting and user_running, if they are known; see `policyfactory.simulation.predicted`.
    """

    workload: Workload
    rank: NDArray[np.intp] | None
    run_time: Int64Array
    estimate: Int64Array
    rules: Rules
    predictions: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.run_time)

    def scan_policy(self, policy: Policy) -> Policy | None:
        """Return the order in which jobs are tried for backfilling, None if it is that of the queue.

        Raises
        ------
        UsageError
            As `check_backfill_order`.
        """
        check_backfill_order(policy, self.rules)
        if policy.backfill_policy is not None:
            return policy.backfill_policy
        scan = self.rules.backfill_policy
        return policy if scan is None and self.rules.compatibility == "ocst" else scan

    def is_sorted(self, policy: Policy) -> bool:
        """Say whether the queue stays sorted while jobs wait: all scores that are asked for are static."""
        scan = self.scan_policy(policy)
        return policy.is_static and (scan is None or scan.is_static)

    def threshold(self, policy: Policy) -> int:
        """Return the threshold in ticks: that of the rules, if they have one, or the policy's own."""
        seconds = policy.threshold if math.isinf(self.rules.threshold) else self.rules.threshold
        ticks = seconds * self.workload.ticks
        # A whole number of ticks is longer than a threshold if and only if it is longer than its whole part.
        return NEVER if ticks >= NEVER else math.floor(ticks)

    def order(self, policy: Policy) -> Order:
        """Return what decides besides the keys or scores."""
        rules, scan = self.rules, self.scan_policy(policy)
        last_first, backfill = rules.ties == "lifo", rules.backfill == "easy"
        has_own, is_same = scan is not None, scan is policy
        return Order(self.threshold(policy), last_first, backfill, has_own, is_same, self.workload.ticks)

    def columns(self, key: Int64Array | None = None, backfill_key: Int64Array | None = None) -> Jobs:
        """Return the jobs for the engine, none of them started yet."""
        jobs = self.workload
        given = (jobs.submit, self.run_time, self.estimate, jobs.processors)
        return new_jobs(*given, key=key, backfill_key=backfill_key, listed=self.rules.compatibility == "ocst")

    def keys(self, policy: Policy, since: Int64Array | None = None) -> Int64Array:
        """Return the sort key of each job under a static policy.

        ``since``: the instant from which r counts for each job; ignored if the policy has a fixed date.
        """
        keys = np.empty(len(self), dtype=np.int64)
        # Block by block: what is between the columns and the keys stays in the cache. A function sees all jobs at once.
        block = _BLOCK if policy.function is None else max(len(keys), 1)
        for first in range(0, len(keys), block):
            rows = slice(first, first + block)
            keys[rows] = sort_keys(self.scores(policy, rows, since=since))
        return keys

    def scores(
        self,
        policy: Policy,
        rows: slice | Int64Array = slice(None),
        waited: Int64Array | None = None,
        since: Int64Array | None = None,
    ) -> FloatArray:
        """Return the score of each job, or of some rows, under a policy.

        ``waited``: for how long each of them has (ticks); ``since``: as for `keys`, of all jobs.
        """
        jobs, epoch = self.workload, _epoch(self.workload, policy, since)
        r = (jobs.submit[rows] - (epoch if isinstance(epoch, int) else epoch[rows])) / jobs.ticks
        p = self.estimate[rows] / jobs.ticks
        predicted, asked = self._predicted(policy, rows), asked_of(jobs, policy, rows)
        w = None if waited is None else waited / jobs.ticks
        return policy.scores(p, jobs.processors[rows], r, w, m=jobs.machine, predictions=predicted, asked=asked)

    def formula(self, policy: Policy, since: Int64Array | None = None) -> Formula:
        """Return the policy as a program of the engine; of a function, its scores take the place of r."""
        formula = formula_of(self.workload, policy, since)
        asked = asked_of(self.workload, policy)
        if asked is not None:
            formula = formula._replace(asked=asked)
        predicted = self._predicted(policy, slice(None))
        if predicted is not None:
            return formula._replace(predictions=predicted)
        if policy.function is None:
            return formula
        jobs = self.workload
        scores = policy.scores(self.estimate / jobs.ticks, jobs.processors, formula.r, m=jobs.machine)
        return formula._replace(r=scores)

    def _predicted(self, policy: Policy, rows: slice | Int64Array) -> FloatArray | None:
        """Return the predictions of some jobs, None if the policy reads none."""
        if not policy.needs_predictions:
            return None
        if self.predictions is None:
            raise predictions_needed(policy, "this run")
        return self.predictions[:, rows]

    def sorted_jobs(self, policy: Policy, since: Int64Array | None = None) -> Jobs:
        """Return the jobs with their keys in the queue and in the order for backfilling."""
        scan, key = self.scan_policy(policy), self.keys(policy, since)
        return self.columns(key, None if scan is None else key if scan is policy else self.keys(scan, since))

    def formulas(self, policy: Policy, since: Int64Array | None = None) -> tuple[Formula, Formula]:
        """Return the programs of the queue and of the order for backfilling."""
        scan, formula = self.scan_policy(policy), self.formula(policy, since)
        return formula, formula if scan is None or scan is policy else self.formula(scan, since)

    def in_rows(self, column: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return ``column`` in the order of the workload that was given."""
        if self.rank is None:
            return column
        back = np.empty_like(column)
        back[self.rank] = column
        return back


def check_backfill_order(policy: Policy, rules: Rules) -> None:
    """Refuse a policy with an order of its own for backfilling under rules that have none, or another.

    Raises
    ------
    UsageError
        If the rules are not those of our EASY, or have an order for all policies.
    """
    easy = rules.backfill == "easy" and rules.compatibility == "none"
    if policy.backfill_formula and not (easy and rules.backfill_policy is None):
        raise UsageError(
            f"policy {policy.name} has an order of its own for backfilling, by {policy.backfill_formula}; simulate it "
            "with backfill easy, no compatibility and no other order, or take it without"
        )


def prepare(
    workload: Workload,
    rules: Rules,
    prediction: Int64Array | None = None,
    tie_rank: Int64Array | None = None,
) -> Prepared:
    """Return ``workload`` as the engine takes it.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    rules : Rules
        The rules.
    prediction, tie_rank
        As for `policyfactory.simulation.simulate.simulate`.

    Raises
    ------
    UsageError
        If there is a ``tie_rank`` and the rules are not those of ocst, or are those of Slurm, which has jobs in another
        form.
    EvaluationError
        If a prediction or rank is missing or malformed, times leave the clock's range, or ocst refuses the jobs.
    """
    if rules.backfill == "slurm":
        raise UsageError(
            "backfill slurm is for simulate, evaluate, learn, tune and export; choose easy, conservative or none here"
        )
    rules.check_given(prediction=prediction, tie_rank=tie_rank)
    if tie_rank is not None:
        tie_rank = _checked(workload, tie_rank, "tie_rank", "rank")
    if prediction is not None:
        prediction = _checked(workload, prediction, "prediction", "number of ticks")
        if (prediction < 0).any():
            row = int(np.argmax(prediction < 0))
            what = f"{workload.name}: the prediction of job {workload.job_id[row]} is {prediction[row]}"
            raise EvaluationError(f"{what}; give a time of at least 0")
    # Most logs are in that order.
    rank = _submission_rank(workload, tie_rank)
    ordered = workload if rank is None else workload.select(rank)
    if prediction is not None and rank is not None:
        prediction = prediction[rank]
    run_time = ordered.run_time
    if rules.overrun == "kill":
        run_time = np.minimum(run_time, ordered.requested_time)
    estimate = _estimate(ordered, run_time, rules, prediction)
    _check_clock(ordered, run_time, estimate)
    if rules.compatibility == "ocst":
        _check_ocst(ordered, run_time, estimate)
    return Prepared(ordered, rank, run_time, estimate, rules)


def _checked(workload: Workload, column: Int64Array, name: str, what: str) -> Int64Array:
    values = np.asarray(column)
    if values.shape != (len(workload),) or values.dtype.kind not in "iu":
        raise EvaluationError(
            f"{workload.name}: the {name} has shape {values.shape} and type {values.dtype}; "
            f"give one whole {what} for each of the {len(workload)} jobs"
        )
    return values.astype(np.int64)


def _submission_rank(workload: Workload, tie_rank: Int64Array | None) -> NDArray[np.intp] | None:
    """Return the rows by submit time, then job id; None if that is their order.

    With ``tie_rank`` those of one instant by falling rank: what ties of ocst go by, the last first, is then rising.
    """
    if tie_rank is not None:
        return np.lexsort((workload.job_id, -tie_rank, workload.submit))
    same_instant = np.diff(workload.submit) == 0
    if not (same_instant & (np.diff(workload.job_id) < 0)).any():
        return None
    return np.lexsort((workload.job_id, workload.submit))


def _estimate(workload: Workload, run_time: Int64Array, rules: Rules, prediction: Int64Array | None) -> Int64Array:
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


def _check_clock(workload: Workload, run_time: Int64Array, estimate: Int64Array) -> None:
    """Refuse times that could leave the range of the clock."""
    if not len(workload):
        return
    latest = float(workload.submit[-1]) + float(run_time.sum(dtype=np.float64)) + float(estimate.max())
    if latest >= NEVER:
        row = int(np.argmax(np.maximum(run_time, estimate)))
        raise EvaluationError(
            f"{workload.name}: run times and estimates add up to {latest:.3g} ticks, more than the clock has (2**62); "
            f"the longest is that of job {workload.job_id[row]}: clean the log first (policyfactory workload clean)"
        )


def _check_ocst(workload: Workload, run_time: Int64Array, estimate: Int64Array) -> None:
    """Refuse jobs that outlive their estimate, as ocst does."""
    # It refuses run times of 0 as well, but its rules say what becomes of them.
    beyond = run_time > estimate
    if beyond.any():
        row = int(np.argmax(beyond))
        raise EvaluationError(
            f"{workload.name}: job {workload.job_id[row]} runs {run_time[row]} ticks, more than the {estimate[row]} "
            f"that the scheduler believes ({int(beyond.sum())} such jobs), which ocst refuses; let jobs be killed at "
            "their request (overrun kill), and decide by request"
        )


def _epoch(workload: Workload, policy: Policy, since: Int64Array | None = None) -> int | Int64Array:
    """Return from when (ticks) the policy counts r: its fixed date, ``since``, or the first submission."""
    if policy.epoch.rule != "fixed" and since is not None:
        return since
    if policy.epoch.rule != "fixed" or "r" not in policy.variables:
        return int(workload.submit[0]) if len(workload) else 0
    if workload.unix_start is None or policy.epoch.unix_time is None:
        raise EvaluationError(
            f"{workload.name}: policy {policy.name} counts r from Unix time {policy.epoch.unix_time}, but the log "
            "does not say when it began (header UnixStartTime); add that, or use another epoch"
        )
    return (policy.epoch.unix_time - workload.unix_start) * workload.ticks


def formula_of(workload: Workload, policy: Policy, since: Int64Array | None = None) -> Formula:
    """Return the policy as a program of the engine, with r for each job.

    Parameters
    ----------
    workload : Workload
        The jobs in the engine's order.
    policy : Policy
        The policy.
    since : int64 array (n,), optional
        From when r counts, in ticks, for each job, unless the policy has a fixed date; default: the policy's epoch.
    """
    program = policy.program
    r = (workload.submit - _epoch(workload, policy, since)) / workload.ticks
    from_oldest = policy.epoch.rule == "oldest-waiting"
    return Formula(
        codes=program.codes,
        operands=program.operands,
        depth=program.depth,
        r=r,
        from_oldest=from_oldest,
        predictions=np.empty((PREDICTIONS, 0)),
        asked=np.empty((ASKED, 0)),
    )


# What jobs ask for besides processors and time. -----------------------------------------------------------------------


def asked_of(workload: Workload, policy: Policy, rows: slice | Int64Array = slice(None)) -> FloatArray | None:
    """Return n, mem (MB) and g of some jobs, None if the policy reads none of them.

    Parameters
    ----------
    workload : Workload
        The jobs.
    policy : Policy
        Whose formula reads them.
    rows : slice or int64 array
        Which jobs.

    Returns
    -------
    float64 array (3, jobs) or None
        NaN in a row that the policy does not read.

    Raises
    ------
    UsageError
        If the log does not say it of every job.
    """
    if not policy.asked:
        return None
    known = np.full((len(COLUMN_OF), len(workload.submit[rows])), np.nan)
    for column_number, (name, column) in enumerate(COLUMN_OF.items()):
        if name in policy.asked:
            values = None if workload.requests is None else getattr(workload.requests, column)
            missing = len(workload) if values is None else int(np.count_nonzero(values < 0))
            if values is None or missing:
                raise UsageError(
                    f"{workload.name}: policy {policy.name} reads {name}, the requested {column}, which the log does "
                    f"not say of {missing:,} of {counted(len(workload), 'job')}; {how_to_assume(name)}, or take a "
                    f"policy without {name}"
                )
            known[column_number] = values[rows]
    return known


# Jobs without a score. ------------------------------------------------------------------------------------------------

_WAITED = (0.0, float(DAY))  # s: as a job is submitted, and after a day


def unscored(workload: Workload, policy: Policy) -> str:
    """Return how many jobs a policy gives no score; empty if none.

    Parameters
    ----------
    workload : Workload
        The jobs; r counts from the first submission, predictions are as if requests were exact.
    policy : Policy
        The policy.

    Raises
    ------
    EvaluationError
        If it gives no job a score: that is no order.
    """
    if not len(workload):
        return ""
    p = np.minimum(workload.requested_time / workload.ticks, np.finfo(np.float64).max)
    r = (workload.submit - workload.submit.min()) / workload.ticks
    if policy.epoch.rule == "fixed" and workload.unix_start is not None and policy.epoch.unix_time is not None:
        r = r + (workload.unix_start + workload.submit.min() / workload.ticks - policy.epoch.unix_time)
    waits = _WAITED[:1] if policy.is_static else _WAITED
    nan = np.isnan([_scores(workload, policy, (p, r, np.full(len(p), waited))) for waited in waits])
    lacking = nan.any(axis=0)
    count = int(lacking.sum())
    if not count:
        return ""
    row = int(np.argmax(lacking))
    first = f"job {workload.job_id[row]} (p {p[row]:g}, q {workload.processors[row]}, r {r[row]:g})"
    why = "0/0, or a logarithm or root of a negative number" if policy.function is None else "its function returns NaN"
    if nan.all():
        raise EvaluationError(
            f"policy {policy.name}: none of the {counted(count, 'job')} of {workload.name} has a score, all are NaN, "
            f"as of {first}: {why}; give a policy that is a number for every job"
        )
    return (
        f"policy {policy.name} has no score (NaN) for {count:,} of {counted(len(workload), 'job')} of {workload.name}, "
        f"which come behind all others; the first is {first}: {why}"
    )


def _scores(workload: Workload, policy: Policy, given: tuple[FloatArray, FloatArray, FloatArray]) -> FloatArray:
    p, r, w = given
    ones = np.ones(len(p))
    # In the order of PREDICTIONS: e, s, e90, user_waiting, user_running.
    predicted = np.array([p, TAU / np.maximum(p, TAU), p, ones, ones]) if policy.needs_predictions else None
    asked = asked_of(workload, policy)
    with np.errstate(all="ignore"):
        return policy.scores(
            p, workload.processors, r, w, m=workload.machine, predictions=predicted, asked=asked, undefined=np.nan
        )
