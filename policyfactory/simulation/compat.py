"""Two papers' simulations to the letter, ``Rules(compatibility="sc17")`` and ``Rules(compatibility="rlscheduler")``.

Carastan-Santos and de Camargo, "Obtaining dynamic scheduling policies with simulation and machine learning", SC 2017;
Zhang, Dai, He, Bao and Xie, "RLScheduler: an automated HPC batch job scheduler using reinforcement learning", SC 2020,
whose episodes `policyfactory.search.environment.episodes` plays step by step. docs/papers.md and
docs/rlscheduler.md have the rules of the programs and say what they change.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.jit import interruptible
from policyfactory.core.options import Int64Array
from policyfactory.engine.compat import sc17 as orders
from policyfactory.engine.compat.rlscheduler import NEARLY_ONE, Committed, new_episodes, play
from policyfactory.engine.compat.sc17 import VISIBLE, Sc17Jobs, Sc17Order, program_keys, sc17
from policyfactory.engine.waiting import ASKED, PREDICTIONS, Formula
from policyfactory.policy.policy import Policy, asked_needed, predictions_needed
from policyfactory.policy.store import CATALOGUE
from policyfactory.simulation.prepare import formula_of
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.log import SwfLog

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
_NO_FORMULA = Formula(
    codes=np.empty(0, dtype=np.int64),
    operands=np.empty(0),
    depth=0,
    r=np.empty(0),
    from_oldest=False,
    predictions=np.empty((PREDICTIONS, 0)),
    asked=np.empty((ASKED, 0)),
)


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
    _refuse_threshold(policy, rules, "the programs of SC'17 do")
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
    given = (workload.submit, workload.run_time, workload.requested_time)
    columns = _in_seconds(workload, given, "the programs of SC'17 have")
    submit, run_time, request = (np.ascontiguousarray(column, dtype=np.float64) for column in columns)
    n = len(submit)
    if n:
        submit -= submit[0]
    decide = request if rules.decide_by == "request" else run_time
    return Sc17Jobs(
        submit=submit,
        run_time=run_time,
        decide=decide,
        request=decide,
        processors=np.array(workload.processors),
        start=np.full(n, np.nan),
        end=np.full(n, np.nan),
        backfilled=np.zeros(n, dtype=np.bool_),
    )


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
    return Sc17Order(
        kind=kind,
        key=key,
        formula=formula,
        machine=float(workload.machine),
        backfill=rules.backfill == "easy",
        visible=visible,
        keys=np.empty(visible),
        work=np.empty((4 + formula.depth, visible)),
    )


def _kind(policy: Policy) -> int:
    """Return how the queue is ordered: as the programs do it if the policy is one of theirs."""
    if policy.name in OWN_KEYS and _is_published(policy):
        return OWN_KEYS[policy.name]
    return orders.BY_KEY if policy.is_static else orders.BY_FORMULA


def _is_published(policy: Policy) -> bool:
    known = CATALOGUE[policy.name]
    return (policy.formula, policy.epoch) == (known.formula, known.epoch)


# Both. ----------------------------------------------------------------------------------------------------------------


def _refuse_threshold(policy: Policy, rules: Rules, who: str) -> None:
    if not math.isinf(policy.threshold):
        raise UsageError(
            f"policy {policy.name} has a threshold of {policy.threshold:g} s, which {who} not have; use it without "
            f"compatibility {rules.compatibility}, or a policy without one"
        )


def _in_seconds(workload: Workload, times: Sequence[Int64Array], who: str) -> list[Int64Array]:
    ticks = workload.ticks
    if any((column % ticks).any() for column in times):
        raise EvaluationError(
            f"{workload.name}: times are in 1/{ticks} s, {who} whole seconds; round the log to seconds, or use no "
            "compatibility mode"
        )
    return [column // ticks for column in times]


# RLScheduler. ---------------------------------------------------------------------------------------------------------

_NO_KEYS, _NO_CODES = np.empty(0), np.empty(0, dtype=np.int64)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class CommittedLog:
    """A log as the program reads it.

    Parameters
    ----------
    name : str
        What it is called.
    jobs : Committed
        Its jobs, for the kernels.
    processors : int64 array (n,)
        Of each job.
    job_id, user : int64 array (n,)
        As in the log.
    machine, nodes : int
        Processors and nodes of the machine.
    longest_run : int
        The largest run time of the log, by which requests are divided, in seconds.
    """

    name: str
    jobs: Committed
    processors: Int64Array
    job_id: Int64Array
    user: Int64Array
    machine: int
    nodes: int
    longest_run: int

    def __len__(self) -> int:
        return len(self.job_id)

    @classmethod
    def of_swf(cls, log: SwfLog) -> CommittedLog:
        """Return a log in the Standard Workload Format.

        Processors are the larger of allocated and requested ones; a missing requested time is the run time; a run
        time under 0 is 10 s, of 0 drops the job; jobs are in the order of their numbers, and take whole nodes.

        Raises
        ------
        EvaluationError
            If the header does not say how large the machine is, or a job is larger.
        """
        machine = log.header.positive("MaxProcs") or log.header.positive("MaxNodes")
        if not machine:
            raise EvaluationError(f"{log.name}: the header has neither MaxProcs nor MaxNodes; add the machine's size")
        nodes = log.header.positive("MaxNodes") or machine
        size = np.maximum(log.allocated, log.requested)
        request = np.where(log.requested_time == -1, log.run_time, log.requested_time)
        run_time = np.where(log.run_time < 0, 10, log.run_time)
        longest = max(int(log.run_time.max(initial=0)), 1)
        shares = [request / longest, size / machine]
        others = (log.requested_memory, log.user, log.group, log.executable)
        shares += [np.where(column == -1, 2.0, column / max(float(column.max(initial=0)), 1e-300)) for column in others]
        features = np.minimum(np.stack(shares, axis=1), NEARLY_ONE)
        # A missing number is 1, more than any share that is shown.
        features[:, 2:][np.stack(shares[2:], axis=1) == 2.0] = 1.0
        rows = np.flatnonzero(run_time > 0)
        rows = rows[np.argsort(log.job_id[rows], kind="stable")]
        columns = [np.asarray(column[rows], dtype=np.int64) for column in (log.submit, run_time, request, size)]
        kept = (np.asarray(log.job_id[rows], dtype=np.int64), np.asarray(log.user[rows], dtype=np.int64))
        return cls._from_columns(log.name, columns, features[rows].astype(np.float32), kept, (machine, nodes, longest))

    @classmethod
    def of_workload(cls, workload: Workload, *, by_run_time: bool = False) -> CommittedLog:
        """Return jobs that are read already; each processor is a node, and memory, group and executable are unknown.

        Parameters
        ----------
        workload : Workload
            Times in whole seconds.
        by_run_time : bool
            The scheduler knows the run times instead of the requests.

        Raises
        ------
        EvaluationError
            If times are no whole seconds.
        """
        times = (workload.submit, workload.run_time, workload.run_time if by_run_time else workload.requested_time)
        columns = [*_in_seconds(workload, times, "the program of RLScheduler has"), workload.processors]
        longest = max(int(columns[1].max(initial=0)), 1)
        features = np.ones((len(workload), 6), dtype=np.float32)
        for column, share in enumerate((columns[2] / longest, workload.processors / workload.machine)):
            features[:, column] = np.minimum(share, NEARLY_ONE)
        kept = (workload.job_id, workload.user)
        machine = workload.machine
        return cls._from_columns(workload.name, columns, features, kept, (machine, machine, longest))

    @classmethod
    def _from_columns(
        cls,
        name: str,
        columns: Sequence[Int64Array],
        features: NDArray[np.float32],
        kept: tuple[Int64Array, Int64Array],
        sizes: tuple[int, int, int],
    ) -> CommittedLog:
        submit, run_time, request, size = columns
        machine, nodes, longest = sizes
        takes = -(-size * nodes // machine)
        if (takes > nodes).any():
            row = int(np.argmax(takes > nodes))
            raise EvaluationError(
                f"{name}: job {kept[0][row]} has {size[row]} processors, the machine {machine}; "
                "drop it, or mend the header"
            )
        jobs = Committed(
            submit=np.ascontiguousarray(submit),
            run_time=np.ascontiguousarray(run_time),
            request=np.ascontiguousarray(request),
            nodes=np.ascontiguousarray(takes),
            features=np.ascontiguousarray(features),
            by_request=_rank(request, submit, size),
            by_size=_rank(size, submit, request),
        )
        job_id, user = kept
        return cls(name, jobs, size, job_id, user, machine=machine, nodes=nodes, longest_run=longest)


def _rank(*columns: Int64Array) -> Int64Array:
    """Return the rank of each job by these columns, the first first; equal ones by their place."""
    rank = np.empty(len(columns[0]), dtype=np.int64)
    rank[np.lexsort(columns[::-1])] = np.arange(len(rank))
    return rank


def starts_by_formula(
    log: CommittedLog, policy: Policy, first: Int64Array, jobs: int, *, backfill: bool, r: NDArray[np.float64]
) -> tuple[Int64Array, NDArray[np.bool_]]:
    """Return the start of each job of windows in which the job of the least value is chosen.

    Parameters
    ----------
    log : CommittedLog
        The log.
    policy : Policy
        A formula sees the whole queue; a network of mode paper the jobs that are shown, 128 at most.
    first : int64 array (k,)
        First job of each window.
    jobs : int
        Jobs of a window.
    backfill : bool
        Whether jobs may start while the chosen one is waited for.
    r : float64 array (n,)
        Submit time of each job of the log since the policy's epoch, s.

    Returns
    -------
    int64 array (k, jobs)
        Seconds.
    bool array (k, jobs)
        Whether it was started while another was waited for.

    Raises
    ------
    UsageError
        If the policy reads predictions.
    """
    if policy.needs_predictions:
        raise predictions_needed(policy, "a simulation with compatibility rlscheduler")
    columns = np.stack([log.jobs.request.astype(np.float64), log.processors.astype(np.float64), r])
    episodes = new_episodes(len(first), jobs)
    keys, codes, operands, depth = _NO_KEYS, _NO_CODES, _NO_KEYS, 1
    # Compiled kernels say nothing of 1/0 in a formula; with NUMBA_DISABLE_JIT numpy would.
    with np.errstate(all="ignore"):
        if policy.is_static:
            keys = policy.scores(columns[0], columns[1], columns[2], m=log.machine)
        else:
            codes, operands, depth = policy.program.codes, policy.program.operands, policy.program.depth
        machine, work = (log.nodes, log.machine), np.empty((6 + depth, jobs))
        rules = (backfill, policy.network is not None and policy.network.mode == "paper")
        interruptible(play, log.jobs, episodes, first, machine, rules, codes, operands, keys, columns, work)
    return episodes.start, episodes.backfilled


def committed_schedule(log: CommittedLog, workload: Workload, rules: Rules, policy: Policy) -> Schedule:
    """Return the schedule of a window with a formula as the program's agent.

    Parameters
    ----------
    log, workload : CommittedLog and Workload
        The same jobs, as the program reads them and as the metrics do.
    rules : Rules
        Whose ``backfill`` counts.
    policy : Policy
        As of `starts_by_formula`.

    Raises
    ------
    UsageError
        If the policy reads predictions.
    """
    r = workload.submit / workload.ticks if policy.epoch.rule == "window-start" else formula_of(workload, policy).r
    first = np.zeros(min(len(workload), 1), dtype=np.int64)
    backfill = rules.backfill == "easy"
    start, backfilled = starts_by_formula(log, policy, first, len(workload), backfill=backfill, r=r)
    start = start.ravel() * workload.ticks
    return Schedule(start, start + workload.run_time, backfilled.ravel(), workload, policy.name, rules)


def simulate_rlscheduler(workload: Workload, policy: Policy, rules: Rules) -> Schedule:
    """Return the schedule of ``workload`` as the program of RLScheduler makes it with a formula as its agent.

    Parameters
    ----------
    workload : Workload
        One window; times in whole seconds. A formula's r is the time on the workload's clock, as in the program,
        unless the policy has an epoch of a fixed date.
    policy : Policy
        The order of the queue; equal values go by submit time, then job id.
    rules : Rules
        ``backfill`` "none" or "easy": the program's own backfilling. The others as they are by default.

    Raises
    ------
    UsageError
        If the policy has a threshold, reads predictions, or counts r from the oldest waiting job; `Rules` refuses the
        other rules that the program does not have.
    EvaluationError
        If times are no whole seconds.
    """
    _refuse_threshold(policy, rules, "the program of RLScheduler does")
    if policy.epoch.rule == "oldest-waiting" and "r" in policy.variables:
        raise UsageError(
            f"policy {policy.name} counts r from the oldest waiting job, which the program of RLScheduler does not; "
            "use it without compatibility rlscheduler, or with another epoch"
        )
    log = CommittedLog.of_workload(workload, by_run_time=rules.decide_by == "runtime")
    return committed_schedule(log, workload, rules, policy)
