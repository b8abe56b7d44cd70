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

from policyfactory.core.errors import UsageError
from policyfactory.engine.conservative import conservative
from policyfactory.engine.easy import easy
from policyfactory.engine.timed import easy_timed
from policyfactory.evaluate.prepare import Prepared, formula_of, prepare
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from policyfactory.policy.policy import Policy

__all__ = ["Rules", "Schedule", "simulate"]

Backfill = Literal["none", "easy", "conservative"]
DecideBy = Literal["request", "runtime", "prediction"]
Ties = Literal["fifo", "lifo"]
Overrun = Literal["run", "kill"]
Compatibility = Literal["none", "ocst", "sc17"]

# Told from a threshold that was given by its identity: no value is left that could not be given.
_NOT_GIVEN = float("nan")
_WORDS = {
    "backfill": Backfill,
    "decide_by": DecideBy,
    "ties": Ties,
    "overrun": Overrun,
    "compatibility": Compatibility,
}


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
        Seconds; jobs that have waited longer go first, in submit order. ``math.inf``: the policy's own threshold. Not
        given: ``math.inf``, but 0 with compatibility "ocst", as in that program.
    ties : {"fifo", "lifo"}
        Which of two jobs with equal score goes first: the one submitted first (then the smaller job id), or the
        reverse of that. With compatibility "ocst" always ``lifo``.
    overrun : {"run", "kill"}
        What happens to a job at its requested time: it runs on to the end of its run time, or is killed.
    backfill_policy : Policy or None
        The order in which jobs are tried for backfilling; None is the queue's order. It ignores the threshold.
    compatibility : {"none", "ocst", "sc17"}
        Our rules; those of ocst, the simulator of IEEE TPDS 29(10), 2018; those of the simulator of SC'17
        (docs/simulator.md, docs/sc17.md).

    Raises
    ------
    UsageError
        If a rule is not one of the words above, the threshold is negative, or two rules exclude each other.
    """

    backfill: Backfill = "easy"
    decide_by: DecideBy = "request"
    threshold: float = _NOT_GIVEN
    ties: Ties = "fifo"
    overrun: Overrun = "run"
    backfill_policy: Policy | None = None
    compatibility: Compatibility = "none"

    def __post_init__(self) -> None:
        for name, words in _WORDS.items():
            value = getattr(self, name)
            if value not in get_args(words):
                raise UsageError(f"{name} is {value!r}; choose one of {', '.join(get_args(words))}")
        if self.threshold is _NOT_GIVEN:
            object.__setattr__(self, "threshold", 0.0 if self.compatibility == "ocst" else math.inf)
        if not self.threshold >= 0:
            raise UsageError(f"threshold is {self.threshold!r} s; give a duration from 0, or inf for none")
        if self.backfill_policy is not None and self.backfill != "easy":
            raise UsageError(f"an order of its own for backfilling needs backfill easy, not {self.backfill}")
        if self.compatibility == "ocst":
            if self.backfill == "conservative":
                raise UsageError(
                    "ocst has no conservative backfilling; choose backfill easy or none, or leave out ocst"
                )
            object.__setattr__(self, "ties", "lifo")
        if self.compatibility == "sc17":
            self._check_sc17()

    def _check_sc17(self) -> None:
        refused = (
            ("backfill", self.backfill, self.backfill == "conservative", "none or easy"),
            ("decide_by", self.decide_by, self.decide_by == "prediction", "request or runtime"),
            ("threshold", f"{self.threshold:g} s", not math.isinf(self.threshold), "inf"),
            ("ties", self.ties, self.ties != "fifo", "fifo (equal jobs stay as they are)"),
            ("overrun", self.overrun, self.overrun != "run", "run"),
            ("backfill_policy", "given", self.backfill_policy is not None, "left out"),
        )
        for name, value, wrong, cure in refused:
            if wrong:
                raise UsageError(
                    f"{name} is {value}, which the programs of SC'17 do not have; with compatibility sc17 it must be "
                    f"{cure}"
                )


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
        The rules it ran under, with the threshold that held (the policy's own where the rules had none).
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
    workload: Workload,
    policy: Policy,
    rules: Rules | None = None,
    prediction: NDArray[np.int64] | None = None,
    tie_rank: NDArray[np.int64] | None = None,
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
    tie_rank : int64 array (n,), optional
        Only with compatibility "ocst": of jobs that are submitted at one instant the one with the least rank counts as
        the last. Default: the one with the largest job id.

    Raises
    ------
    UsageError
        If there is a ``tie_rank`` and the rules are not those of ocst.
    EvaluationError
        If a prediction or rank is missing or malformed, the policy needs a date that the workload does not have, or
        the rules of ocst are asked for and a job runs longer than it was believed to.
    """
    rules = rules or Rules()
    if rules.compatibility == "sc17":
        from policyfactory.evaluate.sc17 import simulate_sc17

        return simulate_sc17(workload, policy, rules)
    prepared = prepare(workload, rules, prediction, tie_rank)
    # Compiled kernels say nothing of 1/0 in a formula; with NUMBA_DISABLE_JIT numpy would.
    with np.errstate(all="ignore"):
        start, backfilled = _run(prepared, policy)
    end = prepared.in_rows(start + prepared.run_time)
    if math.isinf(rules.threshold) and not math.isinf(policy.threshold):
        rules = dataclasses.replace(rules, threshold=policy.threshold)
    return Schedule(prepared.in_rows(start), end, prepared.in_rows(backfilled), workload, policy.name, rules)


def _run(prepared: Prepared, policy: Policy) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Choose the engine's kernel for the rules, run it, and return start and backfilled."""
    own, machine = prepared.own_order(policy), prepared.workload.machine
    conserves = prepared.rules.backfill == "conservative"
    if prepared.is_sorted(policy) and not conserves:
        key = prepared.keys(policy)
        own_key = None if own is None else key if own is policy else prepared.keys(own)
        jobs = prepared.columns(key, own_key)
        easy(jobs, prepared.order(policy), machine)
        return jobs.start, jobs.backfilled
    jobs, timing = prepared.columns(), prepared.timing(policy)
    formula = formula_of(prepared.workload, policy)
    if conserves:
        conservative(jobs, formula, timing, machine)
    else:
        own_formula = formula if own is None or own is policy else formula_of(prepared.workload, own)
        easy_timed(jobs, formula, own_formula, timing, machine)
    return jobs.start, jobs.backfilled
