"""Run a policy on a workload: the step from Workload, Policy and Rules to the arrays of the engine, and back.

The rules are those of EASY(P, theta) as in Algorithm 1 of Gaussier, Lelong, Reis and Trystram, "Online tuning of
EASY-backfilling using queue reordering policies", IEEE TPDS 29(10), 2018; every choice that the algorithm leaves
open is stated in docs/simulator.md.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.jit import interruptible
from policyfactory.core.options import Int64Array
from policyfactory.engine.conservative import conservative
from policyfactory.engine.easy import easy, easy_timed
from policyfactory.engine.events import NEVER
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.prediction.training import Predictor
from policyfactory.simulation.predicted import reads_predictions, run_predicted
from policyfactory.simulation.prepare import Prepared, check_backfill_order, prepare, unscored
from policyfactory.simulation.rules import RuleOptions, Rules, rules_with
from policyfactory.simulation.schedule import Schedule
from policyfactory.workload.jobs import Workload


def simulate(
    workload: Workload | Path | str,
    policy: PolicyLike,
    rules: Rules | None = None,
    prediction: NDArray[np.int64] | None = None,
    tie_rank: NDArray[np.int64] | None = None,
    predictor: Predictor | None = None,
    **options: Unpack[RuleOptions],
) -> Schedule:
    """Return the schedule of ``workload`` under ``policy`` and ``rules``.

    Parameters
    ----------
    workload : Workload, or path of a log
        The jobs and the machine.
    policy : Policy, or name of one, or model, or its file, or fit
        The order of the queue; lower scores run first.
    rules : Rules, optional
        Default: EASY backfilling, decisions by requested time, no threshold but the policy's.
    prediction : int64 array (n,), ticks, optional
        Predicted run times for ``decide_by="prediction"``, at least 0. Only with compatibility "none" and "ocst".
    tie_rank : int64 array (n,), optional
        Only with compatibility "ocst": of jobs that are submitted at one instant the one with the least rank counts as
        the last. Default: the one with the largest job id.
    predictor : Predictor, optional
        What predicts the jobs for a policy that reads e, s, e90, user_waiting or user_running, in the closed loop: from
        what has ended, runs or waits in this schedule. By default one that learns as simulated time goes on. Only with
        compatibility "none".
    **options
        The fields of `Rules`, in place of those of ``rules``: ``threshold="20h"``, ``backfill="conservative"``. With
        ``site="site.toml"`` Slurm's own rules hold on that site; with ``backfill="slurm"`` alone on the one that is
        assumed of the log.

    Raises
    ------
    UsageError
        If there is no such policy or rule, ``workload`` is neither jobs nor a path, an argument is given that is for
        other rules, or the policy does not go under these.
    SiteError, InputError
        If a site file cannot be used.
    EvaluationError
        If a prediction or rank is missing or malformed, the policy needs a date that the workload does not have, the
        rules of ocst are asked for and a job runs longer than it was believed to, a job never starts on the site, or
        the policy gives no job a score.

    Warns
    -----
    UserWarning
        If a function of Python gives some of the jobs no score (NaN).

    Examples
    --------
    >>> import policyfactory as pf
    >>> log = pf.generate_lublin(256, 500, seed=1)
    >>> pf.simulate(log, "SAF", threshold="20h")
    <Schedule of lublin-256 under SAF: 500 jobs>
    """
    policy, rules = resolve(policy), rules_with(rules, options)
    if not isinstance(workload, Workload):
        from policyfactory.workload.clean import read

        workload = read(workload)
    if policy.function is not None and (words := unscored(workload, policy)):
        warnings.warn(words, stacklevel=2)
    return simulated(workload, policy, rules, prediction, tie_rank, predictor)


def simulated(
    workload: Workload,
    policy: Policy,
    rules: Rules,
    prediction: NDArray[np.int64] | None = None,
    tie_rank: NDArray[np.int64] | None = None,
    predictor: Predictor | None = None,
) -> Schedule:
    """Return what `simulate` does, for who has looked at the scores before; its parameters and errors."""
    rules.check_given(prediction=prediction, tie_rank=tie_rank, predictor=predictor)
    check_backfill_order(policy, rules)
    match (rules.backfill, rules.compatibility):
        case "slurm", _:
            from policyfactory.simulation.on_site import simulate_slurm

            return simulate_slurm(workload, policy, rules, predictor)
        case _, "sc17":
            from policyfactory.simulation.compat import simulate_sc17

            return simulate_sc17(workload, policy, rules)
        case _, "rlscheduler":
            from policyfactory.simulation.compat import simulate_rlscheduler

            return simulate_rlscheduler(workload, policy, rules)
        case _:
            prepared = prepare(workload, rules, prediction, tie_rank)
            return _schedule(workload, prepared, policy, *run_prepared(prepared, policy, predictor))


def _schedule(
    workload: Workload, prepared: Prepared, policy: Policy, start: NDArray[np.int64], backfilled: NDArray[np.bool_]
) -> Schedule:
    rules, end = prepared.rules, prepared.in_rows(start + prepared.run_time)
    if math.isinf(rules.threshold) and not math.isinf(policy.threshold):
        rules = dataclasses.replace(rules, threshold=policy.threshold)
    return Schedule(prepared.in_rows(start), end, prepared.in_rows(backfilled), workload, policy.name, rules)


# Compiled kernels say nothing of 1/0 in a formula; with NUMBA_DISABLE_JIT numpy would.
@np.errstate(all="ignore")
def run_prepared(
    prepared: Prepared, policy: Policy, predictor: Predictor | None = None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Choose the engine's kernel for the rules, run it, and return start and backfilled.

    Parameters
    ----------
    prepared : Prepared
        The jobs and the rules; it can be run again and again, under any policy.
    policy : Policy
        The order of the queue.
    predictor : Predictor, optional
        What predicts the jobs for a policy that reads predictions.

    Returns
    -------
    int64 array (n,), bool array (n,)
        In ticks and in the order of ``prepared``: `policyfactory.simulation.prepare.Prepared.in_rows` gives the log's.
    """
    if reads_predictions(prepared, policy):
        foreseen = run_predicted(prepared, policy, predictor)
        return foreseen.start, foreseen.backfilled
    machine, order = prepared.workload.machine, prepared.order(policy)
    if prepared.rules.backfill == "conservative":
        jobs = prepared.columns()
        interruptible(conservative, jobs, prepared.formula(policy), order, machine)
    elif prepared.is_sorted(policy):
        jobs = prepared.sorted_jobs(policy)
        interruptible(easy, jobs, order, machine)
    else:
        jobs = prepared.columns()
        interruptible(easy_timed, jobs, *prepared.formulas(policy), order, machine)
    return jobs.start, jobs.backfilled


class FcfsEasy:
    """EASY, first come, first served, of the same jobs with different run times.

    Parameters
    ----------
    workload : Workload
    """

    def __init__(self, workload: Workload) -> None:
        prepared, fcfs = prepare(workload, Rules(backfill="easy")), resolve("FCFS")
        self._prepared, self._key, self._order = prepared, prepared.keys(fcfs), prepared.order(fcfs)
        self._rank = np.arange(len(workload)) if prepared.rank is None else prepared.rank

    def starts(self, run_time: Int64Array, cancelled: Int64Array) -> Int64Array:
        """Return when jobs start.

        Parameters
        ----------
        run_time : int64 array (n,), s
        cancelled : int64 array (n,), s
            When each is cancelled if it waits, on the workload's clock; `NEVER` where it is not.

        Returns
        -------
        int64 array (n,), s
            `NEVER` where it was cancelled.
        """
        prepared, rank = self._prepared, self._rank
        columns = dataclasses.replace(prepared, run_time=run_time[rank]).columns(self._key)
        gone = cancelled[rank] if (cancelled < NEVER).any() else None
        interruptible(easy, columns, self._order, prepared.workload.machine, gone)
        found = np.empty_like(columns.start)
        found[rank] = columns.start
        return found
