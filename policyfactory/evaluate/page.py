"""The page of a study: the card of its logs, what decides, how the policies stand, and the evidence."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.text import counted
from policyfactory.core.units import format_duration
from policyfactory.evaluate.basis import invented_share
from policyfactory.evaluate.board import boards_of, forests_of
from policyfactory.evaluate.brief import score_of
from policyfactory.evaluate.words import rules_in_words
from policyfactory.policy.policy import Policy
from policyfactory.policy.simplify import round_coefficients
from policyfactory.report.page import Card, Group, Page

if TYPE_CHECKING:
    from policyfactory.core.artefact import Manifest
    from policyfactory.evaluate.experiment import Outcome
    from policyfactory.evaluate.logs import ReadLog
    from policyfactory.evaluate.plan import Plan
    from policyfactory.evaluate.study import Study
    from policyfactory.simulate.cases import CaseFacts
    from policyfactory.workload.jobs import Workload

__all__ = ["page_of"]

_CLAIMS = "claims"


def page_of(study: Study, manifest: Manifest, protocol_text: str) -> Page:
    """Return what the page of a study says.

    Parameters
    ----------
    study : Study
        What was found.
    manifest : Manifest
        How it was made.
    protocol_text : str
        The protocol as it was run, TOML.
    """
    protocol, outcomes = study.protocol, study.outcomes
    several = len(outcomes) > 1
    answers = list(study.claims[0].paragraphs[1:]) if study.claims else []
    groups = [Group("What the paper concludes", study.claims, _CLAIMS)] if study.claims else []
    plans = {plan.name: plan for plan in protocol.experiments}
    forests = () if several or not outcomes else forests_of(outcomes[0])
    whole = {(one.log, one.metric, len(one.table.rows)) for one in forests}
    for outcome in outcomes:
        experiment = outcome.experiment
        if not several:
            answers += _in_short(outcome)
        elif not study.claims:
            answers += [f"{experiment.title}. {words}" for words in outcome.words]
        about = (_rules(plans[experiment.name]),) if several else ()
        heading = experiment.title or experiment.name
        # A table that stands in full at the head of the page is not shown again.
        boards = tuple(one for one in boards_of(outcome) if (one.log, one.metric, len(one.table.rows)) not in whole)
        groups.append(Group(heading, outcome.sections, experiment.name, about, boards))
    about_all = [paragraph.strip() for paragraph in protocol.about.split("\n\n") if paragraph.strip()]
    if not several:
        about_all += [_rules(plan) for plan in protocol.experiments]
    return Page(
        title=protocol.title,
        about=tuple(about_all),
        source=protocol.source,
        answers=tuple(answers),
        groups=tuple(groups),
        protocol=protocol_text,
        # What differs between two runs of the same thing is in manifest.json: equal results are equal pages.
        manifest=dataclasses.replace(manifest, command="see manifest.json").as_dict(),
        verdict=None if several or not outcomes else outcomes[0].verdict,
        chosen="" if several or not outcomes else outcomes[0].chosen,
        choice="" if several or not outcomes else _choice(outcomes[0]),
        score=score_of(outcomes),
        cards=tuple(_card(log, study) for log in study.logs),
        forests=forests,
    )


def _in_short(outcome: Outcome) -> tuple[str, ...]:
    """Return what the analyses answer, then the closing words with what is said about their certainty."""
    answers = [answer for section in outcome.sections for answer in section.answers]
    own = [section.paragraphs for section in outcome.sections if section.name == "in-short"]
    return (*answers, *(own[0] if own else outcome.words))


def _choice(outcome: Outcome) -> str:
    """Return by what the chosen policy sorts the queue; nothing if none was chosen."""
    policy = next((one for one in outcome.evaluation.contenders if one.name == outcome.chosen), None)
    if not isinstance(policy, Policy):
        return ""
    formula = round_coefficients(policy.expression).text() if policy.has_formula else policy.formula
    late = (
        "" if math.isinf(policy.threshold) else f"; jobs that have waited {format_duration(policy.threshold)} go first"
    )
    return f"sorts the queue by {formula}, the lower value first{late}"


def _rules(plan: Plan) -> str:
    words = rules_in_words(plan.experiment.rules, plan.times_longest, plan.sensitivity)
    return f"{words[0].upper()}{words[1:]}."


# The card of a log. ---------------------------------------------------------------------------------------------------


def _card(name: str, study: Study) -> Card:
    log = study.logs[name]
    cases = [case for outcome in study.outcomes for case in outcome.evaluation.cases if case.log == name]
    report, jobs = log.workload.cleaning, log.workload
    facts = {
        "machine": f"{jobs.machine:,} processors",
        "jobs": f"{len(jobs):,}" + (f" of {report.read:,} in the log" if report.dropped else ""),
        "measured": _measured(cases),
        "period": _period(jobs),
        "offered load": f"{jobs.offered_load:.2f}, of the whole log" if math.isfinite(jobs.offered_load) else "",
        "recorded wait": _recorded_wait(jobs),
        "requests": _requests(log),
        "left out": f"{_share(report.dropped, report.read)} of the jobs" if report.source else "",
    }
    return Card(name, tuple((key, value) for key, value in facts.items() if value))


def _measured(cases: Sequence[CaseFacts]) -> str:
    if not cases:
        return ""
    kinds = {"window": "window", "resample": "resampled log", "log": "simulation"}
    each = [case.jobs for case in cases]
    jobs = f"{min(each):,} to {max(each):,} jobs each" if min(each) < max(each) else counted(each[0], "job")
    return f"{counted(len(cases), kinds[cases[0].kind])}, {jobs}"


def _period(jobs: Workload) -> str:
    lasts = format_duration(float(jobs.submit[-1] - jobs.submit[0]) / jobs.ticks)
    if jobs.unix_start is None:
        return lasts
    first, last = (
        dt.datetime.fromtimestamp(jobs.unix_start + int(submit) // jobs.ticks, dt.UTC).date()
        for submit in (jobs.submit[0], jobs.submit[-1])
    )
    return f"{first} to {last}"


def _recorded_wait(jobs: Workload) -> str:
    known = jobs.start >= jobs.submit
    if not known.any():
        return "not in the log"
    wait = (jobs.start - jobs.submit)[known] / jobs.ticks
    return (
        f"{format_duration(float(wait.mean()))} on average, half of the jobs {format_duration(float(np.median(wait)))}"
    )


def _requests(log: ReadLog) -> str:
    """Return what share of the requested times is not the log's; whose those are, a log does not say."""
    report = log.workload.cleaning
    if log.source.tsafrir is not None or (log.source.file is None and log.source.lublin is not None):
        return "made by a model"
    if not report.source:
        return ""
    share = invented_share(report)
    return f"{100 * share:.2g} % invented" if share else "as in the log"


def _share(part: int, of: int) -> str:
    return "none" if not part else f"{100 * part / max(of, 1):.2g} %"
