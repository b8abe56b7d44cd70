"""Learn a policy from a log: the first quarter teaches, the second quarter chooses, the second half tests."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.errors import EvaluationError, WorkloadError
from policyfactory.core.files import exclusive, refuse_earlier, replaced_whole
from policyfactory.core.options import changed
from policyfactory.core.text import HOUR, WEEK
from policyfactory.evaluate.fidelity.words import verdict_of
from policyfactory.evaluate.verdict import gate_in_words, gated, headed, replay_logs
from policyfactory.evaluate.words import basis_in_words
from policyfactory.export.advice import gaming
from policyfactory.export.expressible import prepare
from policyfactory.learn.choice import (
    KEPT_GAIN,
    QUANTILES,
    ByReplicas,
    Choice,
    Tested,
    predicted_rivals,
    softened_rivals,
    why_not,
)
from policyfactory.learn.comparing import (
    CLASSICAL,
    KEPT,
    POLICY,
    PREDICTED,
    PUBLISHED,
    Compared,
    Rival,
    check_folder,
    earlier_files,
    hours_text,
    judging_in_words,
    limits_in_words,
    unknown_in_words,
    whole_hours,
    write_rivals,
)
from policyfactory.learn.learned import Learned
from policyfactory.learn.options import LearnOptions
from policyfactory.learn.ranking import Progress
from policyfactory.learn.stages import Quarters
from policyfactory.learn.verdict import Evidence, judge
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import Model, resolve_model
from policyfactory.predict.training import Forests
from policyfactory.report.verdict import Verdict
from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.predicted import last_model
from policyfactory.simulate.prepare import prepare as prepare_jobs
from policyfactory.simulate.rules import Rules
from policyfactory.statistics.compare import compare_policies
from policyfactory.trials.run import GenerateOptions
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog, log_of_workload

__all__ = ["learn"]

_MOST_LOAD = 10.0  # that of a log whose machine is known is about 1

BESIDE = ("FCFS", "SAF", "F1")


def learn(
    log: Workload | SwfLog | Path | str,
    options: LearnOptions | None = None,
    *,
    output: Path | str | None = None,
    overwrite: bool = False,
    workers: Workers | int = 1,
    progress: Progress | None = None,
    **changes: Any,
) -> Learned:
    """Learn a policy from a log and test it on jobs that nothing has seen.

    Formulas are fitted to the scores of the first quarter of the jobs; on the second quarter they compete with the
    classical policies, and the best is chosen; the second half says what the choice is worth.

    Parameters
    ----------
    log : Workload, SwfLog, Path or str
        The jobs, or a file in the Standard Workload Format.
    options : LearnOptions, optional
        How to learn.
    output : Path or str, optional
        Folder for everything; an interrupted run is resumed by the same call. Without it all is in memory, and
        `Learned.save` writes it.
    overwrite : bool
        Replace what an earlier run left in the folder.
    workers : Workers or int
        Who works; a number means so many threads. The result does not depend on it.
    progress : Progress, optional
        Who follows how far the work is.
    **changes
        Fields of `LearnOptions`, in place of ``options`` or on top of them: ``tuples``, ``metric``, ``windows``, ...

    Raises
    ------
    UsageError
        If an option is outside its limits.
    WorkloadError
        If the log is too short, cannot be used, or has more than ten times the work that its machine can do, and it is
        not to go on ``anyway``.
    EvaluationError
        If the log's replay on its site is far from the record, and it is not to go on ``anyway``.
    OutputError
        If the folder holds a learned policy, or cannot be written.
    """
    chosen = changed(options or LearnOptions(), changes)
    folder = None if output is None else Path(output)
    jobs = _swf(log).without(chosen.leave_out)
    work = _Learning(jobs, chosen, folder, workers, progress or Progress(), _seconds(jobs, chosen), overwrite=overwrite)
    if work.folder is None:
        return work.run()
    check_folder(work.folder)
    with exclusive(work.folder / "learn"):  # not of the policy itself: the step that writes it holds that
        refuse_earlier(work.folder / POLICY, overwrite=overwrite)
        earlier = earlier_files(work.folder, work.log.name)
        with replaced_whole(work.folder, earlier, kept=KEPT, in_place=False) as place:
            work.work_in(place)
            return work.run()


def _swf(log: Workload | SwfLog | Path | str) -> SwfLog:
    if isinstance(log, SwfLog):
        return log
    if not isinstance(log, Workload):
        return read_swf(log)
    if log.ticks != 1:
        raise WorkloadError(f"{log.name}: times in 1/{log.ticks} s; learn from a workload in seconds")
    return log_of_workload(log)


class _Learning(Quarters):
    """One run."""

    def run(self) -> Learned:
        """Take all steps."""
        self.warn()
        self.check_windows()
        self._check_load()
        self._replay()
        options, parts = self.options, self.cut()
        if short := self.too_short():
            self.progress.warning(f"there will be no verdict: {short}")
        scores = self.score(
            parts["training"],
            GenerateOptions(options.tuples, options.trials, seed=options.seed),
            *self.reading_words(),
            reading=options.reading,
        )
        fits = self.fit(scores)
        rivals = self.dated(self.rivals(fits))
        replicas = self._replicas(rivals)
        if replicas is None:
            choosing = self.compare_on("The formulas against the classical policies", "choosing", parts, rivals)
            winner, thresholds = self._with_threshold(choosing, parts)
        else:
            rivals, winner, thresholds = list(replicas.rivals), replicas.winner, None
            title = "The choice and the classical policies on the second quarter itself"
            choosing = self.compare_on(title, "choosing", parts, replicas.shown)
        # The baseline, what is hard to beat, and the best published one stand beside the choice.
        named = {rival.name: rival for rival in (*rivals, winner)}
        peer = () if replicas is None else (replicas.ranking.peer,)
        beside = [named[name] for name in dict.fromkeys((*BESIDE, *peer, winner.name))]
        test = self.compare_on(
            f"The choice, {winner.name}, on jobs that had no part in the choice", "test", parts, beside
        )
        tested = None if short or replicas is None else self._tested(replicas, named)
        verdict = self._verdict(test, winner, parts, (tested, short))
        # Written before, so that a run that is stopped leaves it; now with what follows from it.
        test = test.judged(verdict, winner.name)
        if self.folder is not None:
            test.write(self.folder / "test")
        chosen = prepare(winner.model, threshold=options.threshold_s)
        said = f"{verdict.title}. {verdict.sentences[0]}"
        learned = Learned(
            dataclasses.replace(chosen, diagnostics={**chosen.diagnostics, "verdict": said}),
            options,
            parts,
            scores,
            fits,
            tuple(rivals),
            choosing,
            thresholds,
            test,
            verdict,
            self.epoch,
            self.last,
            self.log,
            replicas,
            tested,
            self._predictor(winner),
            self.gate,
        )
        held = learned.policy.threshold
        self.begin(
            "The policy as a file",
            *("export", winner.source, "--to", "json", "--threshold", f"{held:.0f}s" if held < math.inf else "inf"),
            *("--output", self.place(POLICY), "--overwrite"),
        )
        if self.folder is not None:
            self.wrote([learned.write_policy(self.folder)])
        return learned

    def _check_load(self) -> None:
        """Refuse a log with far more work than its machine can have done: each simulation would go on for years."""
        load = self.workload.offered_load
        if _MOST_LOAD < load < math.inf and not self.options.anyway:
            machine = f"{self.workload.machine:,} processors"
            raise WorkloadError(
                f"{self.log.path}: its jobs are {load:,.0f} times the work that {machine} do in the time in which they "
                "were submitted, so nothing was learned: all queues would run away. Give the "
                "machine's size (--processors N --force-processors), or go on all the same with --anyway"
            )

    def _replay(self) -> None:
        """Replay the log's own jobs on its site, before hours of work, where there is one."""
        if self.options.site is None:
            return
        self.begin(
            "The log's own jobs, replayed on its site",
            "site",
            "replay",
            self.log.path,
            self.options.site,
            *self.reading_in_full(),
        )
        counter = functools.partial(self.progress.counter, "replayed, %", "jobs/s")
        found = replay_logs(self.rules, {self.log.name: self.read}, self.progress.warning, counter)
        self.gate = found.get(self.log.name)
        if self.gate is not None and self.gate.light == "far" and not self.options.anyway:
            words = " ".join(verdict_of(self.gate).sentences)
            raise EvaluationError(
                f"{self.log.path}: the replay on {self.options.site} is far from the record, so nothing was learned. "
                f"{words} Correct the site file (policyfactory site replay says more), or go on all the same with "
                "--anyway"
            )

    def _predictor(self, winner: Rival) -> Forests | None:
        """Return the model that the choice needs from the end of the log on."""
        if not winner.model.policy.needs_predictions:
            return None
        return last_model(prepare_jobs(self.workload, Rules()), winner.model.policy)

    # What is chosen, and what it is worth. ----------------------------------------------------------------------------

    def _with_threshold(self, choosing: Compared, parts: dict[str, SwfLog]) -> tuple[Rival, Compared | None]:
        """Return the winner of the second quarter with the lowest threshold that is sure to keep its gain there."""
        winner = choosing.winner
        if not self.options.chooses_threshold or winner.name == CLASSICAL[0]:
            return winner, None
        waits = self.schedule(winner, "choosing", parts).wait
        hours = sorted({whole_hours(float(np.quantile(waits, share)) / HOUR) for share in QUANTILES} - {0})
        candidates = [
            Rival(
                _named(prepare(winner.model, threshold=float(count * HOUR)), f"{winner.name}-{hours_text(count)}"), ""
            )
            for count in hours
        ]
        if not candidates:
            return winner, None
        candidates = [dataclasses.replace(one, source=self.place(f"thresholds/{one.name}.json")) for one in candidates]
        if self.folder is not None:
            write_rivals(candidates, self.folder)
        title = f"A longest wait for {winner.name}: quantiles of its waits as thresholds"
        baseline = next(rival for rival in choosing.rivals if rival.name == CLASSICAL[0])
        compared = self.compare_on(title, "thresholds", parts, [baseline, winner, *candidates])
        values = {row.policy: row.value for row in compared.outcome.summaries if row.metric == self.options.metric}
        gain = values[winner.name] - values[baseline.name]
        for one in candidates:
            if self._loss(compared, one.name, winner.name) <= (1 - KEPT_GAIN) * abs(gain):
                return one, compared
        return winner, compared

    def _loss(self, compared: Compared, name: str, without: str) -> float:
        """Return how much worse a policy may be with its threshold than without: by the interval, if there is one."""
        metric, evaluation = self.options.metric, compared.outcome.evaluation
        pair = compare_policies(evaluation, evaluation.logs[0], metric, name, without, statistic="mean")
        lower = METRICS[metric].lower_is_better
        estimate = pair.estimate
        low, high = (estimate.interval.low, estimate.interval.high) if estimate.interval else [estimate.value] * 2
        return high if lower else -low

    def _replicas(self, rivals: list[Rival]) -> ByReplicas | None:
        """Return the choice by replicas of the second quarter; None if it is chosen by the quarter itself."""
        options = self.options
        if self.windows or not options.replicas:
            return None
        choice = Choice(self.workload, options, self.edges, self.workers, self.progress, self.rules, self.judging)
        made = choice.replicas("choosing")
        if made is None:
            return None
        self.begin("The formulas on replicas of the second quarter: users' weeks moved, loads of 0.8 to 1.2")
        why = why_not(self.workload) if options.predictions else "--no-predictions"
        if options.judged_under_slurm and math.isfinite(self.judging.threshold):
            why = why or f"no export to Slurm carries them together with --threshold {options.threshold_text}"
        if why:
            self.progress.message(f"no predictions: {why}")
        place, known = self.place(PREDICTED), {rival.name for rival in rivals}
        more = [Rival(resolve_model(name), name) for name in PUBLISHED if name not in known]
        more += [*softened_rivals(place), *([] if why else predicted_rivals(place))]
        every = [*rivals, *self.dated(self.possible(more))]
        names = {rival.name for rival in every}
        published = [name for name in PUBLISHED if name in names]
        ranking = choice.rank(made, [rival.model.policy for rival in every], published)
        self.progress.ranked(ranking)
        winner = next(rival for rival in every if rival.name == ranking.chosen)
        tried: tuple[str, ...] = ()
        # No route into a scheduler carries both a threshold and a predictor; limits bound what it costs.
        if options.chooses_threshold and winner.name != CLASSICAL[0] and not winner.model.policy.needs_predictions:
            baseline = next(rival.model.policy for rival in every if rival.name == CLASSICAL[0])
            policy, tried = choice.thresholds(made, winner.model.policy, baseline)
            if policy is not winner.model.policy:
                model = _named(prepare(winner.model, threshold=policy.threshold), policy.name)
                winner = Rival(model, self.place(f"thresholds/{policy.name}.json"))
        if self.folder is not None:
            write_rivals([*every, winner], self.folder)
        return ByReplicas(choice, tuple(every), ranking, winner, tried)

    def _tested(self, replicas: ByReplicas, named: Mapping[str, Rival]) -> Tested | None:
        """Return the choice on replicas of the second half, each predictor learning in its own run."""
        made = replicas.choice.replicas("test")
        if made is None or replicas.winner.name == CLASSICAL[0]:
            return None
        names = list(dict.fromkeys((CLASSICAL[0], replicas.ranking.peer, replicas.winner.name)))
        self.begin("The choice on replicas of the second half, each predictor learning in its own run")
        tested = replicas.choice.tested(made, [named[name].model.policy for name in names], replicas.ranking.peer)
        self.progress.ranked(tested.to_peer)
        return tested

    def _verdict(
        self,
        test: Compared,
        winner: Rival,
        parts: dict[str, SwfLog],
        more_evidence: tuple[Tested | None, str],
    ) -> Verdict:
        baseline = next(rival for rival in test.rivals if rival.name == CLASSICAL[0])
        base, own = (self.schedule(rival, "test", parts) for rival in (baseline, winner))
        verdict = judge(Evidence(test, self.options.metric, winner.name, base, own, *more_evidence))
        if short := self.windows_too_short(unsound=True):
            verdict = Verdict("unsound", (*short, *verdict.sentences))
        light, sentences = gated(verdict.light, verdict.sentences, self.gate)
        verdict = dataclasses.replace(verdict, light=light, sentences=sentences)
        measured = dataclasses.replace(base.workload, cleaning=self.workload.cleaning)
        policy = prepare(winner.model, threshold=self.options.threshold_s).policy
        # What a site would have to live with; of what is there already, nothing.
        more = () if winner.name == baseline.name else (*limits_in_words(policy), gaming(policy, measured.machine))
        if policy.needs_predictions:
            more = (*more, *unknown_in_words(measured))
        more = (*more, self.left_out) if self.left_out else more
        judged = judging_in_words(self.rules, self.judging)
        caveats = (*gate_in_words(self.gate), *judged, *basis_in_words(measured), *more)
        found = () if self.gate is None else (self.gate,)
        return headed(dataclasses.replace(verdict, caveats=caveats), found)


def _seconds(log: SwfLog, options: LearnOptions) -> list[float]:
    """Return about how long each step takes, as measured on one machine of two cores; only their ratios matter."""
    jobs, page = len(log), 2.0
    simulated, judged = (
        jobs / (20_000 if slurm else 500_000) for slurm in (options.under_slurm, options.judged_under_slurm)
    )
    cuts = ([jobs / 50_000] if options.site else []) + 3 * [jobs / 400_000]
    scores = options.tuples * options.trials / 500_000
    thresholds, test = [7 * simulated + page] * options.chooses_threshold, []
    replicas: list[float] = []
    if not options.windows and options.replicas and _is_long(log):
        # A training takes as long as 100,000 jobs; there are about as many as months.
        each = options.replicas * (1.0 + jobs / 20_000)
        replicas, thresholds, test = [2 * each], [], [each + 2 * options.replicas * judged]
    return [*cuts, scores, 8.0, 3.0, *replicas, 13 * simulated + page, *thresholds, 6 * judged + page, *test, 0.1]


def _is_long(log: SwfLog) -> bool:
    """Say whether the parts that choose and test have two whole weeks, so that there are replicas of them."""
    if not len(log):
        return False
    quarter, half, last = (int(log.submit[row]) for row in (len(log) // 4, len(log) // 2, len(log) - 1))
    return min(half - quarter, last - half) >= 2 * WEEK


def _named(model: Model, name: str) -> Model:
    return dataclasses.replace(model, policy=dataclasses.replace(model.policy, name=name))
