"""The queues that a network had to decide on: which jobs waited together, and what was known of them then.

The network plays windows by the rules that it was made for. In mode standard its schedule says all: at the beginning
of a pass those jobs wait that were submitted and have not been started before. In mode paper, where a choice is
committed to, the windows are played decision by decision, and the jobs that are shown are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.core.random import generator
from policyfactory.policy.policy import Policy
from policyfactory.simulate.prepare import Prepared, prepare
from policyfactory.simulate.rules import Rules
from policyfactory.simulate.simulate import run_prepared
from policyfactory.workload.jobs import Workload

__all__ = ["MOST_WAITING", "Queues", "collect_queues"]

MOST_WAITING = 512  # jobs kept of a queue; of a longer one so many are drawn
_PURPOSE = 74  # of the random stream; see core.random

# Rows of jobs in the queue's order, and the processors free.
Snapshot = tuple[FloatArray, float]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Queues:
    """Queues at decisions, one behind the other; n jobs in k of them.

    Parameters
    ----------
    decision : int64 array (n,)
        Which queue a job is in, ascending; within one, jobs are in the order that decides between equals.
    p, q, w : float64 array (n,)
        Requested seconds, processors, seconds waited until then.
    free : float64 array (k,)
        Processors free at each decision.
    window : int64 array (k,)
        The window of each decision.
    machine : int
        Processors of the machine.
    longer : int
        Decisions of whose queues only some jobs were kept.
    """

    decision: Int64Array
    p: FloatArray
    q: FloatArray
    w: FloatArray
    free: FloatArray
    window: Int64Array
    machine: int
    longer: int

    def __len__(self) -> int:
        return len(self.free)

    @property
    def edges(self) -> Int64Array:
        """First row of each queue, and the row after the last: int64 array (k + 1,)."""
        return np.searchsorted(self.decision, np.arange(len(self) + 1)).astype(np.int64)

    def only(self, rows: Int64Array) -> Queues:
        """Return these rows (ascending), and the decisions that they are from."""
        kept, decision = np.unique(self.decision[rows], return_inverse=True)
        columns = (self.p[rows], self.q[rows], self.w[rows])
        return Queues(decision, *columns, self.free[kept], self.window[kept], self.machine, self.longer)

    def scores(self, policy: Policy) -> FloatArray:
        """Return what each job is worth to a policy at its decision, lower runs first: float64 array (n,).

        A job's r counts from its decision, and is minus its wait.
        """
        r = -self.w
        with np.errstate(all="ignore"):
            if "f" not in policy.variables:
                return policy.scores(self.p, self.q, r, self.w, self.machine)
            values, edges = np.empty_like(self.p), self.edges.tolist()
            for at, free in enumerate(self.free.tolist()):
                rows = slice(edges[at], edges[at + 1])
                values[rows] = policy.scores(self.p[rows], self.q[rows], r[rows], self.w[rows], self.machine, free)
        return values


def collect_queues(
    windows: list[Workload], network: Policy, rules: Rules, *, decisions: int, seed: int, step: int
) -> Queues:
    """Return queues at which the network decided.

    Parameters
    ----------
    windows : list of Workload
        What is played.
    network : Policy
        Who decides.
    rules : Rules
        As for `policyfactory.simulate.simulate.simulate`.
    decisions : int
        At most so many of each window, drawn evenly of all at which at least two jobs wait and one of them fits (in
        the compatibility mode: at which two are shown).
    seed, step : int
        Address of the random numbers.

    Raises
    ------
    EvaluationError
        If the rules refuse the jobs.
    """
    parts: list[FloatArray] = []
    free: list[float] = []
    of_window: list[int] = []
    longer = 0
    for number, window in enumerate(windows):
        random = generator(seed, _PURPOSE, step, number)
        for waiting, left in _snapshots(window, network, rules, decisions, random):
            rows = waiting
            if waiting.shape[1] > MOST_WAITING:
                rows = waiting[:, np.sort(random.choice(waiting.shape[1], MOST_WAITING, replace=False))]
                longer += 1
            parts.append(rows)
            free.append(left)
            of_window.append(number)
    columns = np.concatenate(parts, axis=1) if parts else np.empty((3, 0))
    decision = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts]).astype(np.int64)
    p, q, w = (np.ascontiguousarray(column) for column in columns)
    machine = windows[0].machine
    return Queues(decision, p, q, w, np.array(free), np.array(of_window, dtype=np.int64), machine, longer)


def _snapshots(
    window: Workload, network: Policy, rules: Rules, decisions: int, random: np.random.Generator
) -> Iterator[Snapshot]:
    if rules.compatibility != "rlscheduler":
        prepared = prepare(window, rules)
        with np.errstate(all="ignore"):
            start, _ = run_prepared(prepared, network)
        yield from _passes(prepared, start, decisions, random)
        return
    every = list(_committed(window, network, rules))
    for at in sorted(random.permutation(len(every))[:decisions].tolist()):
        yield every[at]


def _passes(prepared: Prepared, start: Int64Array, decisions: int, random: np.random.Generator) -> Iterator[Snapshot]:
    """Give p, q, w of the waiting jobs, and the processors free, as some passes of a schedule begin."""
    jobs, ticks = prepared.workload, prepared.workload.ticks
    end = start + prepared.run_time
    instants = np.unique(np.concatenate([jobs.submit, end]))
    submitted = np.searchsorted(jobs.submit, instants, side="right")
    waiting = submitted - np.searchsorted(np.sort(start), instants, side="left")
    kept: list[tuple[int, Snapshot]] = []
    for now in random.permutation(instants[waiting >= 2]).tolist():
        if len(kept) == decisions:
            break
        free = jobs.machine - int(jobs.processors[(start < now) & (end > now)].sum())
        rows = np.flatnonzero((jobs.submit <= now) & (start >= now))
        if jobs.processors[rows].min() <= free:
            columns = (prepared.estimate[rows] / ticks, jobs.processors[rows], (now - jobs.submit[rows]) / ticks)
            kept.append((now, (np.stack(columns), float(free))))
    for _, snapshot in sorted(kept, key=lambda one: one[0]):
        yield snapshot


def _committed(window: Workload, network: Policy, rules: Rules) -> Iterator[Snapshot]:
    """Give p, q, w of the jobs that are shown, and the processors free, at each decision among two or more."""
    from policyfactory.engine.compat.rlscheduler import FREE
    from policyfactory.simulate.compat import CommittedEpisodes, CommittedLog

    log = CommittedLog.of_workload(window)
    episode = CommittedEpisodes(log, 1, len(window), backfill=rules.backfill == "easy")
    episode.reset(np.zeros(1, dtype=np.int64))
    while not episode.over[0]:
        shown = episode.jobs_shown[0, : episode.shown[0]]
        free = float(episode.episodes.state[0, FREE] * log.machine // log.nodes)
        p, q = log.jobs.request[shown].astype(np.float64), log.processors[shown].astype(np.float64)
        w = (episode.now[0] - log.jobs.submit[shown]).astype(np.float64)
        if len(shown) > 1:
            yield np.stack([p, q, w]), free
        scores = network.scores(p, q, np.zeros_like(p), w, log.machine, free)
        episode.step(np.array([int(np.argmin(scores))]))
