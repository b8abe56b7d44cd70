"""Learn a policy from a log: the first quarter teaches, the second quarter chooses, the second half tests."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from policyfactory.core.errors import EvaluationError, WorkloadError
from policyfactory.core.files import exclusive, refuse_earlier, replaced_whole
from policyfactory.core.options import changed
from policyfactory.core.text import WEEK, format_duration
from policyfactory.evaluation.fidelity.compare import Fidelity
from policyfactory.evaluation.fidelity.compare import verdict_of as fidelity_verdict
from policyfactory.evaluation.verdict import gate_in_words, gated, headed, replay_logs
from policyfactory.evaluation.words import basis_in_words
from policyfactory.exports.advice import gaming
from policyfactory.exports.expressible import prepare
from policyfactory.fitting.fits import Fits
from policyfactory.learning.choice import (
    COUNTED,
    FORMULAS,
    KEPT_GAIN,
    SOFTENED,
    ByReplicas,
    Size,
    Tested,
    baseline_minutes,
    finalists,
    guarded,
    rank_on,
    replicas_of,
    searched,
    size_of,
    stock_rivals,
    tested_on,
    why_not,
    why_not_counted,
    with_order,
    with_threshold,
)
from policyfactory.learning.comparing import (
    CLASSICAL,
    KEPT,
    PAIRED,
    POLICY,
    PREDICTED,
    PUBLISHED,
    Compared,
    Rival,
    check_folder,
    earlier_files,
    judging_in_words,
    limits_in_words,
    unknown_in_words,
    write_rivals,
)
from policyfactory.learning.learned import Evidence, Learned, verdict_of
from policyfactory.learning.options import LearnOptions, as_typed
from policyfactory.learning.parts import LogParts
from policyfactory.learning.ranking import PEERS, Progress, Ranking
from policyfactory.learning.steps import Steps
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import Model, resolve_model
from policyfactory.prediction.training import Forests
from policyfactory.report.verdict import Verdict
from policyfactory.search.replicated import Replicated
from policyfactory.simulation.metrics import METRICS
from policyfactory.simulation.predicted import last_model
from policyfactory.simulation.prepare import prepare as prepare_jobs
from policyfactory.simulation.rules import Rules
from policyfactory.statistics.compare import compare_policies
from policyfactory.trials.table import GenerateOptions, ScoreTable
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog, log_of_workload

_TINY = 1e-300
_MOST_LOAD = 10.0  # that of a log whose machine is known is about 1

_NO_USERS = (
    "The log has no users, so that its replicas move each day by itself: what lasts for longer, as a user's campaign "
    "does, is not in their intervals, which are too short."
)
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
    steps = Steps(folder, workers, progress or Progress(), _seconds(jobs, chosen), overwrite=overwrite)
    run = Run(LogParts(jobs, chosen, steps), chosen)
    if folder is None:
        return run.all_stages()
    check_folder(folder)
    with exclusive(folder / "learn"):  # not of the policy itself: the step that writes it holds that
        refuse_earlier(folder / POLICY, overwrite=overwrite)
        earlier = earlier_files(folder, run.parts.log.name)
        with replaced_whole(folder, earlier, kept=KEPT, in_place=False) as work_folder:
            steps.work_in(work_folder)
            return run.all_stages()


def _swf(log: Workload | SwfLog | Path | str) -> SwfLog:
    if isinstance(log, SwfLog):
        return log
    if not isinstance(log, Workload):
        return read_swf(log)
    if log.ticks != 1:
        raise WorkloadError(f"{log.name}: times in 1/{log.ticks} s; learn from a workload in seconds")
    return log_of_workload(log)


@dataclasses.dataclass(eq=False)
class Run:
    """What a run knows: each of its `STAGES` reads what those before it have found, and adds its own.

    Parameters
    ----------
    parts : LogParts
        The log and its parts.
    options : LearnOptions
        How to learn.
    gate : Fidelity or None
        How near the replay on the site is to the record.
    """

    parts: LogParts
    options: LearnOptions
    gate: Fidelity | None = None
    logs: dict[str, SwfLog] = dataclasses.field(init=False)
    short: str = dataclasses.field(init=False)  # what to import, where the second half is too short for a verdict
    scores: ScoreTable = dataclasses.field(init=False)
    fits: dict[str, Fits] = dataclasses.field(init=False)
    rivals: list[Rival] = dataclasses.field(init=False)
    replicas: ByReplicas | None = dataclasses.field(init=False)
    choosing: Compared = dataclasses.field(init=False)
    thresholds: Compared | None = dataclasses.field(init=False)
    winner: Rival = dataclasses.field(init=False)
    test: Compared = dataclasses.field(init=False)
    tested: Tested | None = dataclasses.field(init=False)
    verdict: Verdict = dataclasses.field(init=False)
    learned: Learned = dataclasses.field(init=False)

    @property
    def steps(self) -> Steps:
        """Where the files go, who works and who follows."""
        return self.parts.steps

    def all_stages(self) -> Learned:
        """Take all stages in turn."""
        for stage in STAGES:
            stage(self)
        return self.learned


def _check(run: Run) -> None:
    """Refuse what cannot be learned from, and say what weakens the result."""
    run.parts.warn()
    run.parts.check_windows()
    _check_load(run)


def _cut(run: Run) -> None:
    """Cut the log in three."""
    run.logs = run.parts.cut()
    run.short = run.parts.too_short()
    if run.short:
        run.steps.progress.warning(f"there will be no verdict: {run.short}")


def _score(run: Run) -> None:
    """Score the jobs of the first quarter."""
    options = run.options
    run.scores = run.steps.score(
        run.logs["training"],
        GenerateOptions(options.tuples, options.trials, seed=options.seed),
        *("--preset", options.preset, *options.machine_words),
        reading=run.parts.reading,
    )


def _fit(run: Run) -> None:
    """Fit formulas to the scores."""
    run.fits = run.steps.fit(run.scores)
    run.rivals = run.parts.dated(run.parts.possible(run.steps.rivals(run.fits)))


def _choose(run: Run) -> None:
    """Choose by replicas of the second quarter, or by the quarter itself."""
    run.replicas = _replicas(run, run.rivals)
    if run.replicas is None:
        title, rivals = "The formulas against the classical policies", run.rivals
        run.choosing = run.parts.compare_on(title, "choosing", run.logs, rivals)
        run.winner, run.thresholds = _with_threshold(run, run.choosing)
        return
    run.rivals, run.winner, run.thresholds = list(run.replicas.rivals), run.replicas.winner, None
    title = "Policies without predictions on the second quarter itself"
    run.choosing = run.parts.compare_on(title, "choosing", run.logs, run.replicas.shown)


def _test(run: Run) -> None:
    """Test the choice on the second half, and on replicas of it."""
    # The baseline, what is hard to beat, and the best published one stand beside the choice.
    named = {rival.name: rival for rival in (*run.rivals, run.winner)}
    peers = _best_before(run) if run.replicas is None else ()
    if run.replicas is not None:
        named[run.replicas.published.name] = run.replicas.published
        peers = (*run.replicas.ranking.best, run.replicas.published.name)
    beside = [named[name] for name in dict.fromkeys((*BESIDE, *peers, run.winner.name))]
    title = f"The choice, {run.winner.name}, on jobs that had no part in the choice"
    run.test = run.parts.compare_on(title, "test", run.logs, beside)
    run.tested = None if run.short or run.replicas is None else _tested(run, run.replicas, named)


def _best_before(run: Run) -> tuple[str, ...]:
    """Return the published policies that were best on the second quarter itself, for a choice that is none of them."""
    name = run.winner.name
    if name in PUBLISHED or name.rpartition("-")[0] in PUBLISHED:
        return ()
    metric = run.options.metric
    rows = [row for row in run.choosing.outcome.summaries if row.metric == metric and row.policy in PUBLISHED]
    sign = -1.0 if METRICS[metric].lower_is_better is False else 1.0
    rows.sort(key=lambda row: (sign * row.value if math.isfinite(row.value) else math.inf, row.policy))
    return tuple(row.policy for row in rows[:PEERS])


def _judge(run: Run) -> None:
    """Say what the choice is worth; if it is not better than the best published policy, what that one is worth."""
    run.verdict, chosen = _verdict(run, run.winner), run.winner.name
    if run.tested is not None and run.replicas is not None and run.verdict.light != "better":
        ranking, peer = run.tested.to_peer, run.replicas.published
        if peer.name not in {chosen, CLASSICAL[0]}:
            instead = _verdict(run, peer)
            if instead.light == "better":
                row = ranking.row(chosen)
                dear = f", and {row.out}" if row.out else ""
                why = (
                    f"{chosen} was chosen on the second quarter; on replicas of {ranking.part} its "
                    f"{ranking.measured[0]} is {row.ratio_text} times that of {ranking.peer}, the best published "
                    f"policy before{dear}. So it is not recommended, and {peer.name} stands in its place."
                )
                run.winner = peer
                run.verdict = dataclasses.replace(
                    instead, sentences=(*instead.sentences[:1], why, *instead.sentences[1:])
                )
    run.test = run.test.judged(run.verdict, run.winner.name)
    run.steps.write(run.test, "test")


def _write(run: Run) -> None:
    """Write the policy."""
    chosen = prepare(run.winner.model, threshold=run.options.threshold_s)
    words = f"{run.verdict.title}. {run.verdict.sentences[0]}"
    run.learned = Learned(
        model=dataclasses.replace(chosen, diagnostics={**chosen.diagnostics, "verdict": words}),
        options=run.options,
        parts=run.logs,
        scores=run.scores,
        fits=run.fits,
        rivals=tuple(run.rivals),
        choosing=run.choosing,
        thresholds=run.thresholds,
        test=run.test,
        verdict=run.verdict,
        epoch=run.parts.epoch,
        last=run.parts.last,
        source=run.parts.log,
        replicas=run.replicas,
        tested=run.tested,
        predictor=_predictor(run, run.winner),
        fidelity=run.gate,
    )
    held = run.learned.policy.threshold
    run.steps.begin(
        "The policy as a file",
        *("export", run.winner.source, "--to", "json", "--threshold", f"{held:.0f}s" if held < math.inf else "inf"),
        *("--output", run.steps.path_of(POLICY), "--overwrite"),
    )
    if run.steps.folder is not None:
        run.steps.wrote([run.learned.write_policy(run.steps.folder)])


def _check_load(run: Run) -> None:
    """Refuse a log with far more work than its machine can have done: each simulation would go on for years."""
    load = run.parts.workload.offered_load
    if _MOST_LOAD < load < math.inf and not run.options.anyway:
        machine = f"{run.parts.workload.machine:,} processors"
        raise WorkloadError(
            f"{run.parts.log.path}: its jobs are {load:,.0f} times the work that {machine} do in the time in which "
            "they were submitted, so nothing was learned: all queues would run away. Give the "
            "machine's size (--processors N --force-processors), or go on all the same with --anyway"
        )


def _replay(run: Run) -> None:
    """Replay the log's own jobs on its site, before hours of work, where there is one."""
    if run.options.site is None:
        return
    run.steps.begin(
        "The log's own jobs, replayed on its site",
        *("site", "replay", run.parts.log.path, run.options.site, *as_typed(run.options.reading)),
    )
    counter = functools.partial(run.steps.progress.counter, "replayed, %", "jobs/s")
    found = replay_logs(run.parts.rules, {run.parts.log.name: run.parts.read}, run.steps.progress.warning, counter)
    run.gate = found.get(run.parts.log.name)
    if run.gate is not None and run.gate.light == "far" and not run.options.anyway:
        words = " ".join(fidelity_verdict(run.gate).sentences)
        raise EvaluationError(
            f"{run.parts.log.path}: the replay on {run.options.site} is far from the record, so nothing was learned. "
            f"{words} Correct the site file (policyfactory site replay says more), or go on all the same with "
            "--anyway"
        )


def _predictor(run: Run, winner: Rival) -> Forests | None:
    """Return the model that the choice needs from the end of the log on."""
    if not winner.model.policy.needs_model:
        return None
    return last_model(prepare_jobs(run.parts.workload, Rules()), winner.model.policy)


# What is chosen, and what it is worth ---------------------------------------------------------------------------------


def _with_threshold(run: Run, choosing: Compared) -> tuple[Rival, Compared | None]:
    """Return the winner of the second quarter with the lowest threshold that is sure to keep its gain there."""
    winner = choosing.winner
    if not run.options.chooses_threshold or winner.name == CLASSICAL[0]:
        return winner, None
    waits = run.parts.schedule(winner, "choosing", run.logs).wait
    candidates = guarded(winner, waits, run.steps.path_of("thresholds"))
    candidates = [rival for rival in candidates if rival.model.policy.threshold < waits.max(initial=0.0)]
    if not candidates:
        return winner, None
    if run.steps.folder is not None:
        write_rivals(candidates, run.steps.folder)
    title = f"A longest wait for {winner.name}: quantiles of its waits as thresholds"
    baseline = next(rival for rival in choosing.rivals if rival.name == CLASSICAL[0])
    compared = run.parts.compare_on(title, "thresholds", run.logs, [baseline, winner, *candidates])
    values = {row.policy: row.value for row in compared.outcome.summaries if row.metric == run.options.metric}
    unguarded, gain = winner.name, values[winner.name] - values[baseline.name]
    for candidate in reversed(candidates):
        if _loss(run, compared, candidate.name, unguarded) > (1 - KEPT_GAIN) * abs(gain):
            break
        winner = candidate
    return winner, compared


def _loss(run: Run, compared: Compared, name: str, without: str) -> float:
    """Return how much worse a policy may be with its threshold than without: by the interval, if there is one."""
    metric, evaluation = run.options.metric, compared.outcome.evaluation
    pair = compare_policies(evaluation, evaluation.logs[0], metric, name, without, statistic="mean")
    lower = METRICS[metric].lower_is_better
    estimate = pair.estimate
    low, high = (estimate.interval.low, estimate.interval.high) if estimate.interval else [estimate.value] * 2
    return high if lower else -low


def _replicas(run: Run, rivals: list[Rival]) -> ByReplicas | None:
    """Return the choice by replicas of the second quarter; None if it is chosen by the quarter itself."""
    options = run.options
    if run.parts.windows or options.replicas == 0:
        return None
    why, uncounted = why_not(run.parts.workload), why_not_counted(run.parts.workload)
    if options.judged_under_slurm and math.isfinite(run.parts.judging.threshold):
        uncounted = uncounted or f"no export to Slurm carries them together with --threshold {options.threshold_text}"
    why = (why or uncounted) if options.predictions else "--no-predictions"
    sized = _replicas_of(run, "choosing", predicted=not why)
    if sized is None:
        return None
    replicas, size = sized
    _say_size(run, size)
    part = size.words
    run.steps.begin(f"The formulas on replicas of {part}: jobs moved by weeks, loads of 0.8 to 1.2")
    folder, known = run.steps.path_of(PREDICTED), {rival.name for rival in rivals}
    more = [Rival(resolve_model(name), name) for name in PUBLISHED if name not in known]
    more += stock_rivals(SOFTENED, folder)
    if not uncounted:
        more += stock_rivals(COUNTED, folder)
    elif why != uncounted:
        run.steps.progress.message(f"no counts of a user's jobs: {uncounted}")
    if why:
        run.steps.progress.message(f"no predictions: {why}")
    else:
        more += stock_rivals(FORMULAS, folder)
        if (found := searched(run.parts, size)) is not None:
            more.append(Rival(Model(found), f"{folder}/{found.name}.json"))
    every = [*rivals, *run.parts.dated(run.parts.possible(more))]
    policies = {rival.name: rival.model.policy for rival in every}
    screening, ranking = None, rank_on(run.parts, replicas, list(policies.values()), part)
    run.steps.progress.ranked(ranking)
    if run.parts.rules.backfill != run.parts.judging.backfill:
        run.steps.begin("The best of them on the same replicas under Slurm's rules, which judge")
        screening, replicas = ranking, replicas.under_slurm(run.parts.judging)
        ranking = rank_on(run.parts, replicas, [policies[name] for name in finalists(screening)], part)
        run.steps.progress.ranked(ranking)
    by_name = {rival.name: rival for rival in every}
    # The baseline is not among the best, which alone run under Slurm's rules: there it takes the longest.
    published, tried = _guarded(run, replicas, screening or ranking, by_name[ranking.peer])
    winner = published
    if ranking.chosen != ranking.peer:
        winner, tried = _guarded(run, replicas, screening or ranking, by_name[ranking.chosen])
    if options.backfill_order == "auto" and winner.name != CLASSICAL[0]:
        policy = with_order(run.parts, replicas, winner.model.policy, predicted=not why)
        if policy.backfill_formula:
            model = dataclasses.replace(winner.model, policy=policy)
            winner = Rival(model, run.steps.path_of(f"{PAIRED}/{policy.name}.json"))
    if run.steps.folder is not None:
        write_rivals([*every, winner, published], run.steps.folder)
    return ByReplicas(tuple(every), screening, ranking, winner, published, tried)


def _guarded(run: Run, replicas: Replicated, ranking: Ranking, rival: Rival) -> tuple[Rival, tuple[str, ...]]:
    """Return a policy with the lowest threshold that keeps its gain on replicas, and the names of those tried."""
    # No route into a scheduler carries both a threshold and a predictor; limits bound what it costs.
    if not run.options.chooses_threshold or rival.name == CLASSICAL[0] or rival.model.policy.needs_predictions:
        return rival, ()
    base, best = (max(ranking.row(name).ratios[0], _TINY) for name in (CLASSICAL[0], rival.name))
    return with_threshold(run.parts, replicas, rival, abs(math.log(base) - math.log(best)))


def _replicas_of(run: Run, part: str, *, predicted: bool, baseline: bool = True) -> tuple[Replicated, Size] | None:
    """Return the replicas of a part, and how many of what they are; None if it is too short for any."""
    size = size_of(run.parts, part, predicted=predicted, baseline=baseline)
    replicas = replicas_of(run.parts, part, size)
    return None if replicas is None else (replicas, size)


def _say_size(run: Run, size: Size) -> None:
    """Say how many replicas there are, where it was not said to the command."""
    if run.options.replicas is not None:
        return
    minutes, takes = run.options.minutes, format_duration(round(size.seconds))
    more = "; with fewer, or shorter ones, there is no verdict" if size.seconds > 60 * minutes / 2 else ""
    sized = f"{size.count} replicas of {size.words}, some {takes} on two cores{more}"
    run.steps.progress.message(f"--minutes {minutes:g}: {sized}")


def _tested(run: Run, replicas: ByReplicas, named: Mapping[str, Rival]) -> Tested | None:
    """Return the choice on replicas of the second half, each predictor learning in its own run."""
    if replicas.winner.name == CLASSICAL[0]:
        return None
    best = (*replicas.ranking.best, replicas.published.name)
    names = list(dict.fromkeys((CLASSICAL[0], *best, replicas.winner.name)))
    predicted = replicas.winner.model.policy.needs_model
    sized, minutes = _replicas_of(run, "test", predicted=predicted), 0.0
    if sized is not None and CLASSICAL[0] not in best:
        minutes = baseline_minutes(run.parts, sized[0])
        if minutes:  # without it there is time for more
            names, sized = names[1:], _replicas_of(run, "test", predicted=predicted, baseline=False)
    if sized is None:
        return None
    test_replicas, size = sized
    _say_size(run, size)
    if minutes:
        minutes = max(minutes, baseline_minutes(run.parts, test_replicas))
        run.steps.progress.message(
            f"{CLASSICAL[0]} has so long a queue under Slurm's rules that its replicas would take some "
            f"{format_duration(round(60 * minutes))} more: the weeks of the second half stand for them (--minutes)"
        )
    run.steps.begin(f"The choice on replicas of {size.words}, each predictor learning in its own run")
    policies = [named[name].model.policy for name in names]
    tested = tested_on(run.parts, test_replicas, policies, replicas.ranking.best, size)
    run.steps.progress.ranked(tested.to_peer)
    return tested


def _verdict(run: Run, winner: Rival) -> Verdict:
    """Return what the second half says of a policy, with what that rests on."""
    test = run.test
    baseline = next(rival for rival in test.rivals if rival.name == CLASSICAL[0])
    base, choice = (run.parts.schedule(rival, "test", run.logs) for rival in (baseline, winner))
    verdict = verdict_of(
        Evidence(
            outcome=test.outcome,
            metric=run.options.metric,
            chosen=winner.name,
            baseline=base,
            choice=choice,
            tested=run.tested,
            short=run.short,
            limits=run.options.limits,
            peers=_best_before(run) if run.replicas is None else (),
            can_have_threshold=not (run.options.judged_under_slurm and winner.model.policy.needs_predictions),
        )
    )
    if short := run.parts.windows_too_short(unsound=True):
        verdict = Verdict("unsound", (*short, *verdict.sentences))
    light, sentences = gated(verdict.light, verdict.sentences, run.gate)
    verdict = dataclasses.replace(verdict, light=light, sentences=sentences)
    measured = dataclasses.replace(base.workload, cleaning=run.parts.workload.cleaning)
    policy = prepare(winner.model, threshold=run.options.threshold_s).policy
    # What a site would have to live with; of what is there already, nothing.
    more = () if winner.name == baseline.name else (*limits_in_words(policy), gaming(policy, measured.machine))
    if policy.needs_model:
        more = (*more, *unknown_in_words(measured))
    more = (*more, run.parts.left_out) if run.parts.left_out else more
    if run.tested is not None and why_not_counted(run.parts.workload):
        more = (*more, _NO_USERS)
    judged = judging_in_words(run.parts.rules, run.parts.judging, screened=run.replicas is not None)
    caveats = (*gate_in_words(run.gate), *judged, *basis_in_words(measured), *more)
    found = () if run.gate is None else (run.gate,)
    return headed(dataclasses.replace(verdict, caveats=caveats), found)


STAGES: tuple[Callable[[Run], None], ...] = (_check, _replay, _cut, _score, _fit, _choose, _test, _judge, _write)


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
    if not options.windows and options.replicas != 0 and _is_long(log):
        # A training takes as long as 100,000 jobs; there are about as many as months.
        each = (options.replicas or 0) * (1.0 + jobs / 20_000)
        parts = [2 * each, each + 2 * (options.replicas or 0) * judged]
        if options.replicas is None:
            parts = [30.0 * options.minutes] * 2
        stages = 1 + (options.under_slurm != options.judged_under_slurm)
        replicas, thresholds, test = [parts[0] / stages] * stages, [], [parts[1]]
    return [*cuts, scores, 8.0, 3.0, *replicas, 13 * simulated + page, *thresholds, 6 * judged + page, *test, 0.1]


def _is_long(log: SwfLog) -> bool:
    """Say whether the parts that choose and test have two whole weeks, so that there are replicas of them."""
    if not len(log):
        return False
    quarter, half, last = (int(log.submit[row]) for row in (len(log) // 4, len(log) // 2, len(log) - 1))
    return min(half - quarter, last - half) >= 2 * WEEK
