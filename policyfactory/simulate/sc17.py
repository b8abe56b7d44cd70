"""The simulation of paper 004 (SC'17) to the letter: ``Rules(compatibility="sc17")``.

Carastan-Santos and de Camargo, "Obtaining dynamic scheduling policies with simulation and machine learning", SC 2017.
docs/sc17.md has the rules of its programs and says what they change.
"""

from __future__ import annotations

import math

import numpy as np

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.interruptible import interruptible
from policyfactory.engine.compat import sc17_order as orders
from policyfactory.engine.compat.sc17 import sc17
from policyfactory.engine.compat.sc17_events import Sc17Jobs
from policyfactory.engine.compat.sc17_order import VISIBLE, Sc17Order, program_keys
from policyfactory.engine.formula import ASKED, PREDICTIONS
from policyfactory.engine.waiting import Formula
from policyfactory.policy.catalogue import CATALOGUE
from policyfactory.policy.policy import Policy, asked_needed, predictions_needed
from policyfactory.simulate.prepare import formula_of
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.schedule import Schedule
from policyfactory.workload.jobs import Workload

__all__ = ["OWN_KEYS", "TICKS", "simulate_sc17"]

# Of the schedules: nanoseconds. A dispatch takes 0.00261025 s.
TICKS = 10**9

# Policies for which the program has code of its own, by name in the catalogue.
OWN_KEYS: dict[str, int] = {
    "FCFS": orders.AS_IT_IS,
    "SPF": orders.EXCHANGE,
    "WFP3": orders.WFP,
    "UNICEF": orders.UNICEF,
    "F1": orders.BY_KEY,
    "F2": orders.BY_KEY,
    "F3": orders.BY_KEY,
    "F4": orders.BY_KEY,
}
_FUNCTIONS = {"F1": orders.F1, "F2": orders.F2, "F3": orders.F3, "F4": orders.F4}

# The program's clock and requests are ints of C.
_LATEST = 2**31
_NOTHING = np.empty((PREDICTIONS, 0)), np.empty((ASKED, 0))
_NO_FORMULA = Formula(np.empty(0, dtype=np.int64), np.empty(0), 0, np.empty(0), False, *_NOTHING)


def simulate_sc17(workload: Workload, policy: Policy, rules: Rules, *, visible: int = VISIBLE) -> Schedule:
    """Return the schedule of ``workload`` as the SC'17 programs make it.

    FCFS, SPF (SPT), WFP3, UNICEF and F1 to F4 of the catalogue are ordered as the programs do it: with the
    coefficients of F1 to F4 not merged, single precision in WFP3, and SPF's exchange sort, which turns equal jobs
    round. Any other policy is ordered by its formula at the whole second of the clock, equal values as they were.

    Parameters
    ----------
    workload : Workload
        Times in whole seconds; jobs of equal submit time are taken in the order of the rows.
    policy : Policy
        The order of the queue.
    rules : Rules
        ``backfill`` "none" or "easy" and ``decide_by`` "request" or "runtime"; the others as they are by default.
    visible : int
        Jobs of the queue that the scheduler sees, by submission: 32 in the programs. For measuring what that does.

    Returns
    -------
    Schedule
        Over the same jobs on a clock of nanoseconds: starts are rounded to it, the programs have them as doubles.

    Raises
    ------
    UsageError
        If the policy has a threshold, f or predictions; `Rules` refuses the other rules that the programs do not have.
    EvaluationError
        If times are no whole seconds or too large for the programs.
    """
    if not math.isinf(policy.threshold):
        raise UsageError(
            f"policy {policy.name} has a threshold of {policy.threshold:g} s, which the programs of SC'17 do not have; "
            "use it without compatibility sc17, or a policy without one"
        )
    if "f" in policy.variables:
        raise UsageError(
            f"policy {policy.name} has f (free processors), which no policy of the programs of SC'17 sees; use it "
            "without compatibility sc17, or a policy without f"
        )
    if policy.needs_predictions:
        raise predictions_needed(policy, "a simulation with compatibility sc17")
    if policy.asked:
        raise asked_needed(policy, "a simulation with compatibility sc17")
    jobs = _jobs(workload, rules)
    # Compiled kernels say nothing of 1/0 in a key; with NUMBA_DISABLE_JIT numpy would.
    with np.errstate(all="ignore"):
        interruptible(sc17, jobs, _order(workload, policy, rules, jobs, visible), workload.machine)
    if len(workload) and jobs.end.max() + jobs.request.max() >= _LATEST:
        raise EvaluationError(
            f"{workload.name}: the last job ends after {jobs.end.max():.3g} s, the programs of SC'17 count to 2**31 s; "
            "cut the log into windows (for example sc17:15d)"
        )
    fine = workload.in_ticks(TICKS)
    zero = fine.submit[0] if len(fine) else 0
    start, end = (zero + np.rint(column * TICKS).astype(np.int64) for column in (jobs.start, jobs.end))
    return Schedule(start, end, jobs.backfilled, fine, policy.name, rules)


def _jobs(workload: Workload, rules: Rules) -> Sc17Jobs:
    ticks = workload.ticks
    columns = [workload.submit, workload.run_time, workload.requested_time]
    if any((column % ticks).any() for column in columns):
        raise EvaluationError(
            f"{workload.name}: times are in 1/{ticks} s, the programs of SC'17 have whole seconds; "
            "round the log to seconds, or use no compatibility mode"
        )
    submit, run_time, request = (np.ascontiguousarray(column // ticks, dtype=np.float64) for column in columns)
    n = len(submit)
    if n:
        submit -= submit[0]
    decide = request if rules.decide_by == "request" else run_time
    start, end = np.full(n, np.nan), np.full(n, np.nan)
    given = (submit, run_time, decide, decide, np.array(workload.processors))
    return Sc17Jobs(*given, start, end, np.zeros(n, dtype=np.bool_))


def _order(workload: Workload, policy: Policy, rules: Rules, jobs: Sc17Jobs, visible: int) -> Sc17Order:
    kind, key, formula = _kind(policy), jobs.decide, _NO_FORMULA
    if kind == orders.UNICEF:
        key = np.array([math.log2(q) for q in jobs.processors.tolist()], dtype=np.float64) * jobs.decide
    elif kind == orders.BY_KEY and policy.name in _FUNCTIONS and _is_published(policy):
        key = program_keys(_FUNCTIONS[policy.name], jobs.decide, jobs.processors, jobs.submit)
    elif kind == orders.BY_KEY:
        key = policy.scores(jobs.decide, jobs.processors, formula_of(workload, policy).r, m=workload.machine)
    elif kind == orders.BY_FORMULA:
        formula = formula_of(workload, policy)
    work = (np.empty(visible), np.empty((4 + formula.depth, visible)))
    return Sc17Order(kind, key, formula, float(workload.machine), rules.backfill == "easy", visible, *work)


def _kind(policy: Policy) -> int:
    """Return how the queue is ordered: as the programs do it if the policy is one of theirs."""
    if policy.name in OWN_KEYS and _is_published(policy):
        return OWN_KEYS[policy.name]
    return orders.BY_KEY if policy.is_static else orders.BY_FORMULA


def _is_published(policy: Policy) -> bool:
    known = CATALOGUE[policy.name]
    return (policy.formula, policy.epoch) == (known.formula, known.epoch)
