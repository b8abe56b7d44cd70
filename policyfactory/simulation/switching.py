"""Simulations in which the policy in force changes: step by step, by a timetable, or each period on its own.

Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering policies", IEEE TPDS
29(10), 2018, section 5. A switch is no event: the next pass, at the next submission or completion, uses the new order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from policyfactory.core.errors import UsageError
from policyfactory.core.jit import interruptible, read_only
from policyfactory.core.options import Int64Array
from policyfactory.engine.events import NEVER, NEXT, NOW, STARTED
from policyfactory.engine.switching import Arms, SwitchingState, new_run, run_timetable, total_waits
from policyfactory.policy.policy import Policy, asked_needed, predictions_needed
from policyfactory.simulation.prepare import Prepared, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload


class SwitchingSimulation:
    """A run in which the policy in force can be changed at any instant.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    policies : sequence of Policy
        Those that can be in force, static and time-dependent ones.
    rules : Rules, optional
        As for `policyfactory.simulation.simulate.simulate`; no conservative backfilling, not compatibility "sc17" or
        "rlscheduler". The threshold is that of the rules or, where they have none, of the policy in force.
    prediction, tie_rank : int64 array (n,), optional
        As for `policyfactory.simulation.simulate.simulate`.

    Raises
    ------
    UsageError
        If there is no policy, or a policy cannot be switched under these rules.
    EvaluationError
        As `policyfactory.simulation.simulate.simulate`.
    """

    def __init__(
        self,
        workload: Workload,
        policies: Sequence[Policy],
        rules: Rules | None = None,
        prediction: Int64Array | None = None,
        tie_rank: Int64Array | None = None,
    ) -> None:
        self.workload = workload
        self.policies = tuple(policies)
        self.rules = rules or Rules()
        if not self.policies:
            raise UsageError("a run needs a policy; give at least one")
        if not _can_switch(self.rules):
            raise UsageError(
                "policies are switched under backfill easy or none, compatibility none or ocst; not under backfill "
                f"{self.rules.backfill}, compatibility {self.rules.compatibility}"
            )
        _refuse_predictions(self.policies, self.rules)
        self._prepared = prepare(workload, self.rules, prediction, tie_rank)
        self._arms = _Arms(self._prepared, self.policies)
        self._order = self._prepared.order(self.policies[0])
        self.reset()

    def reset(self) -> None:
        """Go back to the empty machine before the first submission; what was learned of the policies is kept."""
        self._jobs = self._prepared.columns()
        self._run: SwitchingState = new_run(len(self._prepared), self.workload.machine, self._arms.arrays.depth)
        self._start = read_only(self._jobs.start)
        # Every job before this place ended before that instant.
        self._ended, self._ended_before = 0, 0

    @property
    def now(self) -> int:
        """The instant of the last event, in ticks."""
        return int(self._run.space.state[NOW])

    @property
    def finished(self) -> bool:
        """Whether every job was started."""
        return int(self._run.space.state[STARTED]) == len(self.workload)

    @property
    def start(self) -> Int64Array:
        """Start of each job in ticks, -1 before it, in the order of the workload's rows; read-only."""
        return self._prepared.in_rows(self._start)

    @property
    def end(self) -> Int64Array:
        """End of each job in ticks, known from its start on; -1 before that."""
        started = self._start >= 0
        return self._prepared.in_rows(np.where(started, self._start + self._prepared.run_time, -1))

    @property
    def backfilled(self) -> NDArray[np.bool_]:
        """Whether each job was started while one ahead of it in the queue stayed waiting."""
        return self._prepared.in_rows(self._jobs.backfilled.copy())

    def run(self, policy: int, until: int = NEVER) -> None:
        """Handle every event strictly before ``until`` (ticks) with ``policies[policy]`` in force.

        Raises
        ------
        UsageError
            If there is no such policy.
        """
        self._go(np.array([policy], dtype=np.int64), np.array([min(until, NEVER)], dtype=np.int64))

    def run_timetable(self, choices: ArrayLike, edges: ArrayLike) -> None:
        """Run to the end: each policy until the next one takes over, the last one to the end.

        Parameters
        ----------
        choices : array of int (periods,)
            Which policy is in force in each period.
        edges : array of int (periods + 1,), ticks
            Period i is from ``edges[i]`` to before ``edges[i + 1]``. What happens before the first edge belongs to the
            first period, what happens from the last edge on to the last period.

        Raises
        ------
        UsageError
            If there is no such policy, or the edges do not rise or do not fit the choices.
        """
        arms, ticks = np.array(choices, dtype=np.int64), np.asarray(edges, dtype=np.int64)
        if ticks.shape != (arms.size + 1,) or not arms.size or (np.diff(ticks) < 0).any():
            raise UsageError(f"{arms.size} choices and {ticks.size} edges; give ascending edges, one more than choices")
        self._go(arms, np.append(np.minimum(ticks[1:-1], NEVER), NEVER))

    def _go(self, arms: Int64Array, untils: Int64Array) -> None:
        for arm in set(arms.tolist()):
            if not 0 <= arm < len(self.policies):
                raise UsageError(f"there is no policy {arm}; give numbers from 0 to {len(self.policies) - 1}")
            self._arms.complete(arm)
        with np.errstate(all="ignore"):
            state = (self._jobs, self._run, self._arms.arrays)
            interruptible(run_timetable, *state, self._order, arms, untils, self.workload.machine)

    def ended(self, since: int, until: int) -> NDArray[np.intp]:
        """Return the rows of the jobs that ended from ``since`` to before ``until`` (ticks), in submit order.

        They are all known once the run went up to ``until``. Cheap where ``since`` rises from call to call: what ended
        before it is not looked at again.
        """
        if since < self._ended_before:
            self._ended = 0
        self._ended_before = since
        first, stop = self._ended, int(self._run.space.state[NEXT])
        start = self._start[first:stop]
        end = np.where(start >= 0, start + self._prepared.run_time[first:stop], NEVER)
        over = end < since
        self._ended = first + (int(np.argmin(over)) if not over.all() else len(over))
        places = first + np.flatnonzero(~over & (end < until))
        return places if self._prepared.rank is None else self._prepared.rank[places]

    def schedule(self, name: str) -> Schedule:
        """Return the schedule under the name of what made it.

        Raises
        ------
        UsageError
            If jobs still wait.
        """
        if not self.finished:
            raise UsageError(f"{name}: the run is not finished at {self.now}; run it on until every job was started")
        return Schedule(self.start.copy(), self.end, self.backfilled, self.workload, name, self.rules)


def _refuse_predictions(policies: Sequence[Policy], rules: Rules) -> None:
    for policy in (*policies, rules.backfill_policy):
        if policy is not None and policy.needs_predictions:
            raise predictions_needed(policy, "a run that goes from one policy to another")
        if policy is not None and policy.asked:
            raise asked_needed(policy, "a run that goes from one policy to another")
        if policy is not None and policy.backfill_formula:
            raise UsageError(
                f"policy {policy.name} has an order of its own for backfilling, which a run that goes from one policy "
                "to another has not; take it without, or give one order for all (--backfill-order)"
            )


def _can_switch(rules: Rules) -> bool:
    return rules.backfill in {"none", "easy"} and rules.compatibility in {"none", "ocst"}


class _Arms:
    """The policies as arrays of the engine; keys and r are filled in when a policy is first used."""

    def __init__(self, prepared: Prepared, policies: tuple[Policy, ...]) -> None:
        self._prepared = prepared
        backfill_policy = prepared.rules.backfill_policy
        self._policies = policies if backfill_policy is None else (*policies, backfill_policy)
        count, jobs = len(self._policies), len(prepared)
        programs = [policy.program for policy in self._policies]
        # Rows that are never filled in take no memory.
        self._keys = np.empty((count, jobs), dtype=np.int64)
        self._has_key, self._has_r = [False] * count, [False] * count
        own_arm = np.arange(count) if backfill_policy is None else np.full(count, count - 1)
        self.arrays = Arms(
            keys=read_only(self._keys),
            is_sorted=np.array([prepared.is_sorted(policy) for policy in self._policies]),
            backfill_arm=own_arm.astype(np.int64),
            threshold=np.array([prepared.threshold(policy) for policy in self._policies], dtype=np.int64),
            programs=np.cumsum([0, *(len(program.codes) for program in programs)], dtype=np.int64),
            places=np.cumsum([0, *(len(program.operands) for program in programs)], dtype=np.int64),
            codes=np.concatenate([program.codes for program in programs]),
            operands=np.concatenate([program.operands for program in programs]),
            depth=max(program.depth for program in programs),
            r=np.empty((count, jobs)),
            from_oldest=np.array([policy.epoch.rule == "oldest-waiting" for policy in self._policies]),
        )

    def complete(self, arm: int) -> None:
        """Fill in what the policy ``arm`` and its order for backfilling need."""
        is_sorted = bool(self.arrays.is_sorted[arm])
        has = self._has_key if is_sorted else self._has_r
        for row in (arm, int(self.arrays.backfill_arm[arm])):
            if has[row]:
                continue
            if is_sorted:
                self._keys[row] = self._prepared.keys(self._policies[row])
            else:
                self.arrays.r[row] = self._prepared.formula(self._policies[row]).r
            has[row] = True


def simulate_periods(
    workload: Workload,
    policies: Sequence[Policy],
    rules: Rules | None,
    edges: ArrayLike,
    prediction: Int64Array | None = None,
    tie_rank: Int64Array | None = None,
) -> NDArray[np.float64]:
    """Return what each policy would have cost in each period: the full feedback of equation (3).

    The jobs that are submitted in a period are simulated alone, from an empty machine until all have started. As in a
    window, r counts from the first of them unless the policy says otherwise.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    policies : sequence of Policy
        The policies.
    rules : Rules, optional
        As for `policyfactory.simulation.simulate.simulate`.
    edges : array of int (periods + 1,), ticks, ascending
        Period i has the jobs submitted from ``edges[i]`` to before ``edges[i + 1]``.
    prediction, tie_rank : int64 array (n,), optional
        As for `policyfactory.simulation.simulate.simulate`.

    Returns
    -------
    float64 array (periods, policies)
        Total wait of the period's jobs, in seconds.

    Raises
    ------
    UsageError
        If the edges do not rise, a policy reads predictions, or an argument is given that is for other rules.
    EvaluationError
        As `policyfactory.simulation.simulate.simulate`.
    """
    rules = rules or Rules()
    rules.check_given(prediction=prediction, tie_rank=tie_rank)
    ticks = np.asarray(edges, dtype=np.int64)
    if ticks.ndim != 1 or not ticks.size or (np.diff(ticks) < 0).any():
        raise UsageError(f"the edges of the periods must rise: {ticks}")
    _refuse_predictions(policies, rules)
    if not _can_switch(rules):
        return _cut_and_simulate(workload, policies, rules, ticks, prediction)
    prepared = prepare(workload, rules, prediction, tie_rank)
    bounds = np.searchsorted(prepared.workload.submit, ticks).astype(np.int64)
    since = _first_submissions(prepared.workload.submit, bounds)
    depth = max((policy.program.depth for policy in (*policies, rules.backfill_policy) if policy), default=1)
    space = new_run(len(prepared), workload.machine, depth)
    costs = np.empty((len(ticks) - 1, len(policies)))
    with np.errstate(all="ignore"):
        for arm, policy in enumerate(policies):
            costs[:, arm] = _periods(prepared, policy, space, bounds, since)
    return costs / workload.ticks


def _first_submissions(submit: Int64Array, bounds: Int64Array) -> Int64Array:
    """Return for each job the submission of the first of its period."""
    since = np.empty(len(submit), dtype=np.int64)
    if len(submit):
        first = submit[np.minimum(bounds[:-1], len(submit) - 1)]
        since[: bounds[0]] = since[bounds[-1] :] = submit[0]
        since[bounds[0] : bounds[-1]] = np.repeat(first, np.diff(bounds))
    return since


def _periods(
    prepared: Prepared, policy: Policy, space: SwitchingState, bounds: Int64Array, since: Int64Array
) -> Int64Array:
    """Return the total waits (ticks) under one policy."""
    machine, order = prepared.workload.machine, prepared.order(policy)
    by_keys = prepared.is_sorted(policy)
    jobs = prepared.sorted_jobs(policy, since) if by_keys else prepared.columns()
    formulas = None if by_keys else prepared.formulas(policy, since)
    return interruptible(total_waits, jobs, space, formulas, order, bounds, machine)


def _cut_and_simulate(
    workload: Workload,
    policies: Sequence[Policy],
    rules: Rules,
    edges: Int64Array,
    prediction: Int64Array | None,
) -> NDArray[np.float64]:
    """Return the same period by period, for rules that have no kernel for it."""
    costs = np.zeros((len(edges) - 1, len(policies)))
    for period, bound in enumerate(itertools.pairwise(edges)):
        first, last = np.searchsorted(workload.submit, bound)
        if first == last:
            continue
        part = workload.select(slice(first, last))
        believed = None if prediction is None else prediction[first:last]
        for arm, policy in enumerate(policies):
            schedule = simulate(part, policy, rules, believed)
            costs[period, arm] = (schedule.start - schedule.workload.submit).sum() / schedule.workload.ticks
    return costs
