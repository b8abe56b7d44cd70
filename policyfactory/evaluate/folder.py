"""A study as files: results.csv, evaluation.json, report.html, every table and picture, the protocol, a manifest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyfactory.core.artefact import Manifest, dump_json
from policyfactory.evaluate import store
from policyfactory.evaluate.described import EVALUATION_SCHEMA, finding, setting
from policyfactory.evaluate.words import rules_in_words
from policyfactory.report.drawings import Drawings
from policyfactory.report.files import save_sections
from policyfactory.report.page import Group, Page, render

if TYPE_CHECKING:
    from policyfactory.evaluate.experiment import Outcome
    from policyfactory.evaluate.plan import Plan
    from policyfactory.evaluate.study import Study

__all__ = ["CLAIMS_FOLDER", "as_dict", "protocol_dict", "write_report"]

CLAIMS_FOLDER = "claims"


def protocol_dict(study: Study) -> dict[str, Any]:
    """Return everything that determines the numbers, as JSON values.

    Parameters
    ----------
    study : Study
        What was found.
    """
    protocol = study.protocol
    plans = {plan.name: plan for plan in protocol.experiments}
    return {
        "name": protocol.name,
        "seed": protocol.seed,
        "logs": {name: log.account for name, log in study.logs.items()},
        "experiments": [
            setting(outcome.experiment, outcome.evaluation, _axes(plans[outcome.experiment.name]))
            for outcome in study.outcomes
        ],
    }


def _axes(plan: Plan) -> dict[str, Any]:
    table = plan.table
    drawn = table.resample
    return {
        "windows": None if table.windows is None else str(table.windows),
        "resample": None if drawn is None else {"weeks": drawn.length, "draw": drawn.draw},
        "skip": {log: list(numbers) for log, numbers in table.skip.items()},
        "load": table.load,
        "estimates": str(table.estimates),
    }


def as_dict(study: Study) -> dict[str, Any]:
    """Return all of it but the values of single cases, as JSON values: the content of ``evaluation.json``.

    Parameters
    ----------
    study : Study
        What was found.
    """
    protocol = study.protocol
    found: dict[str, Any] = store.plain(
        {
            "kind": store.KIND,
            "schema_version": EVALUATION_SCHEMA,
            "title": protocol.title,
            "source": protocol.source,
            "about": protocol.about,
            "protocol": protocol_dict(study),
            "experiments": {outcome.experiment.name: finding(outcome) for outcome in study.outcomes},
            "claims": [{"title": section.title, "words": list(section.paragraphs)} for section in study.claims],
        }
    )
    return found


def write_report(
    study: Study, directory: Path, manifest: Manifest, protocol_text: str, others: Iterable[Path] = ()
) -> list[str]:
    """Write all files of a study; they replace those of an earlier one.

    Parameters
    ----------
    study : Study
        What was found.
    directory : Path
        An existing folder.
    manifest : Manifest
        Without outputs.
    protocol_text : str
        The protocol as it was run, TOML.
    others : iterable of Path
        Files below the folder that are written already and belong to the report.

    Returns
    -------
    list of str
        Names of the files in the folder itself.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    drawings = Drawings()
    parts: list[Path] = []
    for outcome in study.outcomes:
        parts += save_sections(directory, outcome.experiment.name, outcome.sections, drawings)
    if study.claims:
        parts += save_sections(directory, CLAIMS_FOLDER, study.claims, drawings)
    page = render(_page(study, manifest, protocol_text), drawings)
    evaluations = {outcome.experiment.name: outcome.evaluation for outcome in study.outcomes}
    texts = {
        "report.html": page,
        "results.csv": store.results_csv(evaluations),
        "evaluation.json": dump_json(as_dict(study)),
        "protocol.toml": protocol_text,
    }
    return [path.name for path in store.save(directory, texts, manifest, [*parts, *others])]


def _page(study: Study, manifest: Manifest, protocol_text: str) -> Page:
    protocol = study.protocol
    several = len(study.outcomes) > 1
    answers = list(study.claims[0].paragraphs[1:]) if study.claims else []
    groups = [Group("What the paper concludes", study.claims, CLAIMS_FOLDER)] if study.claims else []
    plans = {plan.name: plan for plan in protocol.experiments}
    for outcome in study.outcomes:
        experiment = outcome.experiment
        if not several:
            answers += _in_short(outcome)
        elif not study.claims:
            answers += [f"{experiment.title}. {words}" for words in outcome.words]
        about = (_rules(plans[experiment.name]),) if several else ()
        groups.append(Group(experiment.title or experiment.name, outcome.sections, experiment.name, about))
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
    )


def _in_short(outcome: Outcome) -> tuple[str, ...]:
    """Return what the analyses answer, then the closing words with what is said about their certainty."""
    answers = [answer for section in outcome.sections for answer in section.answers]
    own = [section.paragraphs for section in outcome.sections if section.name == "in-short"]
    return (*answers, *(own[0] if own else outcome.words))


def _rules(plan: Plan) -> str:
    words = rules_in_words(plan.experiment.rules, plan.times_longest, plan.sensitivity)
    return f"{words[0].upper()}{words[1:]}."
