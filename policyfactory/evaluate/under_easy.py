"""What the literature's scheduler, EASY, makes of the same policies and cases, beside a verdict under Slurm's rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from policyfactory.core.text import enumerated
from policyfactory.evaluate.described import winners
from policyfactory.evaluate.experiment import Experiment, Outcome
from policyfactory.evaluate.run import run_cases
from policyfactory.evaluate.standings import value_tables
from policyfactory.evaluate.words import units_of
from policyfactory.parallel.workers import Notify, Workers
from policyfactory.report.sections import Section
from policyfactory.simulate.cases import Case, CaseFacts
from policyfactory.simulate.rules import Rules
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.summary import summarise

__all__ = ["NAME", "under_easy"]

NAME = "easy"
_EASY = (
    "Most of the literature simulates EASY on one pool of processors, and these are the policies' values under that "
    "(--backfill easy says more)."
)


def under_easy(
    experiment: Experiment, evaluation: Evaluation, workers: Workers | int, notify: Notify
) -> tuple[Section, Sequence[str]]:
    """Return the policies' values under EASY, and in words whether another one would lead.

    Parameters
    ----------
    experiment : Experiment
        Under Slurm's rules.
    evaluation : Evaluation
        Its values; its cases are simulated again.
    workers : Workers or int
        Who simulates.
    notify : callable
        Called with a sentence when a worker was lost.
    """
    cases = [_easy_case(experiment, facts) for facts in evaluation.cases]
    other = run_cases(
        cases,
        experiment.contenders,
        rules=_as_easy(experiment.rules),
        metrics=experiment.metrics,
        workers=workers,
        notify=notify,
    )
    own, theirs = (
        tuple(summarise(one, statistic=experiment.statistic, seed=experiment.seed)) for one in (evaluation, other)
    )
    outcome = Outcome(dataclasses.replace(experiment, cases=tuple(cases), unrecorded="", left_out=()), other, theirs)
    metric = evaluation.metrics[0]
    leads = _leads(metric, winners(own, metric), winners(theirs, metric))
    sites = dict.fromkeys(
        case.rules.site.assumed for case in experiment.cases if case.rules is not None and case.rules.site is not None
    )
    paragraphs = (
        *(text for text in sites if text),
        f"What is said above holds under Slurm's own rules. {_EASY}",
        *leads,
    )
    return Section(NAME, "The same under EASY", paragraphs, value_tables(outcome, units_of(theirs))), leads


def _easy_case(experiment: Experiment, facts: CaseFacts) -> Case:
    known = {(case.log, case.number): case for case in experiment.cases}
    case = known.get((facts.log, facts.number)) or experiment.more[facts.log](facts.number)
    return dataclasses.replace(case, rules=None if case.rules is None else _as_easy(case.rules))


def _as_easy(rules: Rules) -> Rules:
    return dataclasses.replace(rules, backfill="easy", site=None)


def _leads(metric: str, own: dict[str, str | None], theirs: dict[str, str | None]) -> Sequence[str]:
    """Return on which logs the same policy leads in the deciding metric, and on which another one does."""
    same = [log for log, name in own.items() if name is not None and theirs.get(log) == name]
    turned = [log for log, name in own.items() if name is not None and theirs.get(log) not in {None, name}]
    sentences = [
        f"{log}: {theirs[log]} leads in {metric} under EASY, {own[log]} under Slurm's rules." for log in turned
    ]
    if same:
        sentences.insert(0, f"On {enumerated(same)} the same policy leads in {metric} under EASY, too.")
    return [" ".join(sentences)] if sentences else []
