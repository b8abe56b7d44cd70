"""Carrying out an experiment: every contender on every case, every look, and the conclusion."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from policyfactory.analyses.replay import Replay
from policyfactory.evaluate import precision as narrowing
from policyfactory.evaluate.experiment import Experiment, Outcome, Watch
from policyfactory.evaluate.precision import Precision
from policyfactory.evaluate.run import Looks, evaluate, join
from policyfactory.evaluate.standings import illustrated, sections_of
from policyfactory.evaluate.words import closing_words
from policyfactory.evaluate.work import ScheduleSink
from policyfactory.parallel.workers import Notify, Workers
from policyfactory.simulate.cases import Case
from policyfactory.statistics.compare import compare, compare_recorded
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.summary import summarise, summarise_recorded

if TYPE_CHECKING:
    from policyfactory.evaluate.resume import Finished
    from policyfactory.report.sections import Section

__all__ = ["conclude", "run_experiment"]


def run_experiment(
    experiment: Experiment,
    *,
    workers: Workers | int = 1,
    precision: Precision | None = None,
    keep: ScheduleSink | None = None,
    watch: Watch | None = None,
    finished: Finished | None = None,
    notify: Notify = lambda _: None,
) -> Outcome:
    """Simulate all contenders on all cases, look at every schedule, and conclude.

    Parameters
    ----------
    experiment : Experiment
        What to simulate.
    workers : Workers or int
        Who simulates; a number means so many threads. The outcome does not depend on it.
    precision : Precision, optional
        Draw more resampled logs until the intervals are as narrow.
    keep : ScheduleSink, optional
        Who keeps the schedules; see `evaluate`.
    watch : Watch, optional
        Told of the progress.
    finished : Finished, optional
        What an earlier run has finished, and where what is finished now is kept.
    notify : callable
        Called with a sentence when a worker was lost.

    Raises
    ------
    UsageError, EvaluationError, WorkloadError
        If the experiment cannot be run.
    WorkersError, OutputError
        If the workers are lost for good, or what is finished cannot be kept.
    """

    def some(cases: Sequence[Case]) -> tuple[Evaluation, Looks]:
        looks = Looks((*([Replay()] if experiment.recorded else []), *experiment.analyses))
        if watch is not None:
            watch.expect(len(cases) * len(experiment.contenders))
        found = evaluate(
            cases,
            experiment.contenders,
            rules=experiment.rules,
            metrics=experiment.metrics,
            workers=workers,
            looks=looks,
            keep=keep,
            progress=None if watch is None else watch.done,
            recorded=experiment.recorded,
            finished=finished,
            resumed=None if watch is None else watch.resumed,
            notify=notify,
        )
        return found, looks

    for analysis in experiment.analyses:
        analysis.check(experiment.cases, experiment.policies)
    evaluation, looks = some(experiment.cases)
    told: tuple[str, ...] = ()
    if precision is not None:
        evaluation, looks = _refine(experiment, precision, some, (evaluation, looks))
        told = narrowing.in_words(experiment, evaluation, precision)
    return conclude(experiment, evaluation, looks, told)


def conclude(
    experiment: Experiment, evaluation: Evaluation, looks: Looks | None = None, told: tuple[str, ...] = ()
) -> Outcome:
    """Return what the values mean.

    Parameters
    ----------
    experiment : Experiment
        What was simulated.
    evaluation : Evaluation
        The values.
    looks : Looks, optional
        What its analyses saw.
    told : tuple of str
        Whether the intervals are as narrow as was asked for.
    """
    how: dict[str, Any] = {"statistic": experiment.statistic, "seed": experiment.seed}
    rows, pairs = summarise(evaluation, **how), compare(evaluation, **how)
    words = (*closing_words(evaluation, rows, pairs, seed=experiment.seed), *told)
    outcome = Outcome(
        experiment,
        evaluation,
        tuple(rows),
        tuple(pairs),
        words,
        (),
        told,
        tuple(summarise_recorded(evaluation, **how)),
        tuple(compare_recorded(evaluation, **how)),
    )
    standings = illustrated(outcome, sections_of(outcome))
    seen = zip(looks.analyses, looks.seen, strict=True) if looks else ()
    concluded = [analysis.conclude(evaluation, kept) for analysis, kept in seen]
    return dataclasses.replace(outcome, sections=tuple(_distinct([*standings, *concluded])))


def _distinct(sections: Sequence[Section]) -> Iterator[Section]:
    """Yield the sections, the names of those that occur again numbered: an analysis can be asked for twice."""
    counts: Counter[str] = Counter()
    for section in sections:
        counts[section.name] += 1
        again = counts[section.name]
        yield section if again == 1 else dataclasses.replace(section, name=f"{section.name}-{again}")


def _refine(
    experiment: Experiment,
    precision: Precision,
    some: Callable[[Sequence[Case]], tuple[Evaluation, Looks]],
    found: tuple[Evaluation, Looks],
) -> tuple[Evaluation, Looks]:
    """Add batches of resampled logs until the target is reached or cannot be."""
    counts = {log: max(case.number for case in experiment.cases if case.log == log) for log in experiment.more}
    while True:
        widths = narrowing.widest(experiment, found[0])
        batch = narrowing.next_batch(experiment, widths, counts, precision)
        if not batch:
            return found
        found = join(
            found, some([experiment.more[log](number) for log, numbers in batch.items() for number in numbers])
        )
        counts |= {log: numbers[-1] for log, numbers in batch.items()}
