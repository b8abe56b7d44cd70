"""The arena for other people's searches: formulas in, scores on training replicas out, held-out verdicts on request.

Everything that is fast and repeatable is on replicas of the first part of the log. What that is worth on the last part,
which no candidate has seen, is said only when it is asked for, and counted, for who asks often enough hears what he
likes: see `policyfactory.search.learner`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from policyfactory.core.errors import PolicyfactoryError, UsageError
from policyfactory.core.options import FloatArray, changed
from policyfactory.core.process import Follower
from policyfactory.parallel.pool import results
from policyfactory.parallel.workers import StopCheck, Workers
from policyfactory.policy.policy import Policy
from policyfactory.search.judging import HeldOutVerdict, Judged, Judgement
from policyfactory.search.learner import Counted, count, without_number
from policyfactory.search.options import JudgeOptions
from policyfactory.search.replicated import (
    Best,
    Given,
    Part,
    Replicated,
    Submitted,
    best_published,
    replicated,
    submitted,
)
from policyfactory.simulation.metrics import weekly_sums
from policyfactory.simulation.schedule import Schedule
from policyfactory.statistics.compare import compare_replicas, compare_values
from policyfactory.statistics.evaluation import block_weeks, estimate_weekly_ratio
from policyfactory.statistics.intervals import Estimate
from policyfactory.workload.jobs import Workload

LEDGER = Path("judge-ledger.json")
_GOAL = "mean_bsld"


class _ArenaUnit(NamedTuple):
    """A candidate, and how it is played."""

    number: int
    policy: Policy
    learns: bool
    limit: float


class _UnitAims(NamedTuple):
    """Its aims on each replica (None if it came to no end), why it did not, and the seconds that it took."""

    values: FloatArray | None
    error: str
    seconds: float


class Arena:
    """Replicas of the first part of a log, made once, on which candidates are judged again and again.

    Parameters
    ----------
    workload : Workload, Path or str
        The jobs, or a file in the Standard Workload Format.
    options : JudgeOptions, optional
        Replicas, rules and how the log is read.
    ledger : Path or str
        Where what is tried is counted.
    workers : Workers or int
        Who works; a number means so many threads. The scores do not depend on it.
    follower : Follower, optional
        Who follows how far the work is.
    **changes
        Fields of `JudgeOptions`, in place of ``options`` or on top of them.

    Raises
    ------
    UsageError
        If an option is outside its limits.
    WorkloadError
        If one of the two parts is shorter than two whole weeks, or the log cannot be used.
    """

    def __init__(
        self,
        workload: Workload | Path | str,
        options: JudgeOptions | None = None,
        *,
        ledger: Path | str = LEDGER,
        workers: Workers | int = 1,
        follower: Follower | None = None,
        **changes: Any,
    ) -> None:
        self.options = changed(options or JudgeOptions(), changes)
        if not isinstance(workload, Workload):
            from policyfactory.workload.clean import read

            workload = read(Path(workload), **self.options.reading)
            workload.cleaning.warn()
        self.workload, self.ledger = workload, Path(ledger)
        self._workers, self._follower = Workers.of(workers), follower or Follower()
        self._edge = len(workload) * self.options.part // 100
        self._training = self._replicas(Part(0, self._edge))

    def _replicas(self, part: Part, *, halves: bool = False) -> Replicated:
        options = self.options
        return replicated(
            self.workload,
            part,
            options.rules,
            count=options.replicas,
            seed=options.seed,
            loads=options.loads,
            halves=halves,
        )

    @functools.cached_property
    def baseline(self) -> Best:
        """The published policy that is best on the training replicas: what ratios are to."""
        return best_published(self._training, self._workers, notify=self._follower.message)

    @functools.cached_property
    def _last(self) -> _Last:
        """What is held out: made when it is first asked for."""
        part = Part(self._edge, len(self.workload))
        some, lead_in = part.cut(self.workload)
        return _Last(self._replicas(part, halves=True), Replicated([some], lead_in, self.options.rules))

    def judge(self, candidates: Iterable[Given], *, held_out: bool = False) -> Judgement:
        """Judge candidates.

        Parameters
        ----------
        candidates : iterable of str, mapping or Policy
            Formulas; lines with a JSON object of name and formula, or such mappings; or policies. One that cannot be
            used, or takes too long, has an ``error`` and stops no other.
        held_out : bool
            Judge them on the last part of the log too, which is counted.

        Raises
        ------
        UsageError
            If there is no candidate, or more than 1,000.
        InputError, OutputError
            If the ledger cannot be used.
        """
        given = submitted([candidates] if isinstance(candidates, str | Policy) else candidates)
        read = [self._ranking(candidate) for candidate in given]
        last = self._last if held_out else None
        policies = {number: candidate.policy for number, candidate in enumerate(read) if candidate.policy is not None}
        tried = len(policies)
        identity = self.workload.sha256(), self.workload.name
        counted = count(
            self.ledger, self.workload, self.options.settings, tried=tried, held_out=tried if held_out else 0
        )
        baseline = self.baseline
        # No candidate pays for the models. A log that teaches nothing is an error of those that need them only.
        with contextlib.suppress(PolicyfactoryError):
            self._training.teach(policies.values(), self._workers, self._follower.message)
        aims = self._play(self._training, policies, "candidates")
        verdicts = {} if last is None else self._verdicts(last, policies, counted)
        judged = tuple(
            self._judged(candidate, aims.get(number), verdicts.get(number)) for number, candidate in enumerate(read)
        )
        return Judgement(*identity, self.options.settings, baseline, judged, counted, held_out)

    def _ranking(self, candidate: Submitted) -> Submitted:
        """Return a candidate, without its policy if that has a number for no job, or reads what the log lacks."""
        why = "its score is a finite number for no job; change it so that it ranks jobs"
        try:
            if candidate.policy is None or self._without_number(candidate.policy) < 1:
                return candidate
        except UsageError as error:
            why = str(error)
        return dataclasses.replace(candidate, policy=None, error=why)

    def _play(
        self, arena: Replicated, policies: dict[int, Policy], title: str, *, learns: bool = False
    ) -> dict[int, _UnitAims]:
        counter = self._follower.counter(title, "candidates/s")
        counter.expect(len(policies))
        units = [_ArenaUnit(number, policy, learns, self.options.time_limit) for number, policy in policies.items()]
        done = {}
        for number, result in results(_measure, arena, units, self._workers, notify=self._follower.message):
            counter.done(1)
            done[number] = result
        return done

    def _judged(self, candidate: Submitted, aims: _UnitAims | None, verdict: HeldOutVerdict | None) -> Judged:
        if candidate.policy is None or aims is None:
            return Judged(candidate.name, candidate.text, None, candidate.error)
        if aims.values is None:
            return Judged(candidate.name, candidate.text, candidate.policy, aims.error, seconds=aims.seconds)
        baseline = self.baseline.values
        ratio = compare_values(
            np.log(aims.values[:, 0]), np.log(baseline[:, 0]), statistic="mean", seed=self.options.seed
        )
        return Judged(
            *(candidate.name, candidate.text, candidate.policy, "", ratio, aims.values, baseline),
            seconds=aims.seconds,
            without_number=self._without_number(candidate.policy),
            verdict=verdict,
        )

    def _without_number(self, policy: Policy) -> float:
        return without_number(self.workload.select(slice(0, self._edge)), policy)

    def _verdicts(self, last: _Last, policies: dict[int, Policy], counted: Counted) -> dict[int, HeldOutVerdict]:
        """Return the verdicts on what is held out, in the honest closed loop."""
        everyone = {**policies, -1: self.baseline.policy}
        aims = self._play(last.replicas, everyone, "held out", learns=True)
        base, verdicts, whole = aims[-1].values, {}, last.replicas.whole
        for number, policy in policies.items():
            values = aims[number].values
            if values is None or base is None:
                verdicts[number] = HeldOutVerdict(counted.tried, aims[number].error or aims[-1].error)
                continue
            ratio = compare_replicas(np.log(values[:, 0]), np.log(base[:, 0]), whole)
            weeks = last.by_weeks(policy, self.baseline.policy, self.options.seed)
            verdicts[number] = HeldOutVerdict(counted.tried, "", ratio.estimate, values[:whole], base[:whole], *weeks)
        return verdicts


class _Last:
    """The last part of a log: its replicas, and itself."""

    def __init__(self, replicas: Replicated, itself: Replicated) -> None:
        self.replicas, self._itself = replicas, itself
        self._baseline: Schedule | None = None

    def by_weeks(self, policy: Policy, baseline: Policy, seed: int) -> tuple[Estimate | None, float]:
        """Return the change in %, over the weeks of the part itself, and the blocks that its weeks make."""
        if self._baseline is None:
            self._baseline = self._itself.schedule(0, baseline, learns=True)
        weekly = weekly_sums(self._itself.schedule(0, policy, learns=True), [_GOAL])
        level = weekly_sums(self._baseline, [_GOAL])
        if weekly is None or level is None:
            return None, 0.0
        block = block_weeks(max(weekly.memory_s, level.memory_s))
        estimate = estimate_weekly_ratio(weekly.values[:, 0], level.values[:, 0], block, seed=seed)
        return estimate, 0.0 if block is None else len(level.values) / block


def _measure(arena: Replicated, unit: _ArenaUnit, go_on: StopCheck) -> tuple[int, _UnitAims]:
    begin = time.monotonic()
    rows: list[Sequence[float]] = []
    for replica in range(len(arena)):
        go_on()
        if (passed := time.monotonic() - begin) > unit.limit:
            late = f"took longer than {unit.limit:g} s: {replica} of {len(arena)} replicas were done"
            return unit.number, _UnitAims(None, late, passed)
        try:
            rows.append(arena.aims(replica, unit.policy, learns=unit.learns))
        except PolicyfactoryError as error:
            return unit.number, _UnitAims(None, str(error), time.monotonic() - begin)
    return unit.number, _UnitAims(np.array(rows), "", time.monotonic() - begin)


def judge(
    workload: Workload | Path | str,
    candidates: Iterable[Given],
    options: JudgeOptions | None = None,
    *,
    held_out: bool = False,
    **named: Any,
) -> Judgement:
    """Judge formulas on replicas of the first part of a log, against the published policy that is best there.

    Parameters
    ----------
    workload, candidates, options, held_out
        As of `Arena` and `Arena.judge`, which is better where candidates come one batch after another.
    **named
        ``ledger``, ``workers`` and ``follower`` of `Arena`, and fields of `JudgeOptions`.

    Raises
    ------
    PolicyfactoryError
        As `Arena` and `Arena.judge`.
    """
    return Arena(workload, options, **named).judge(candidates, held_out=held_out)
