"""A study as files: results.csv, evaluation.json, report.html, every table and picture, the protocol, a manifest.

``results.csv``, ``evaluation.json``, the report and what it shows are the same, byte for byte, whenever the same thing
is evaluated, for any number of workers; what differs from run to run (command line, speed) is in ``manifest.json``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from policyfactory.core.artefact import Manifest, dump_json
from policyfactory.core.files import atomic_write, digest_of, remove_file, replaced_whole, together
from policyfactory.core.outputs import check_directory, exclusive, refuse_earlier
from policyfactory.core.text import csv_text
from policyfactory.evaluate.described import EVALUATION_SCHEMA, finding, plain, setting
from policyfactory.evaluate.page import page_of
from policyfactory.report.drawings import Drawings
from policyfactory.report.files import save_sections
from policyfactory.report.page import render

if TYPE_CHECKING:
    import pandas as pd

    from policyfactory.evaluate.plan import Plan
    from policyfactory.evaluate.study import Study
    from policyfactory.statistics.evaluation import Evaluation

__all__ = [
    "CLAIMS_FOLDER",
    "KIND",
    "MANIFEST_NAME",
    "as_dict",
    "earlier_files",
    "listed",
    "protocol_dict",
    "refuse_evaluation",
    "remove",
    "results_csv",
    "room",
    "save",
    "weeks_csv",
    "write_report",
]

CLAIMS_FOLDER = "claims"
_OURS = ("results.csv", "evaluation.json", "report.html")


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
        "lead_in": None if table.lead_in is None else str(table.lead_in),
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
    as_json: dict[str, Any] = plain(
        {
            "kind": KIND,
            "schema_version": EVALUATION_SCHEMA,
            "title": protocol.title,
            "source": protocol.source,
            "about": protocol.about,
            "protocol": protocol_dict(study),
            "experiments": {outcome.experiment.name: finding(outcome) for outcome in study.outcomes},
            "claims": [{"title": section.title, "words": list(section.paragraphs)} for section in study.claims],
        }
    )
    return as_json


def write_report(
    study: Study,
    directory: Path,
    manifest: Manifest,
    protocol_text: str,
    others: Iterable[Path] = (),
    *,
    drawings: Drawings | None = None,
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
    drawings : Drawings, optional
        Keeps the pictures, if the same report is written again.

    Returns
    -------
    list of str
        Names of the files in the folder itself.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    drawings = drawings or Drawings()
    html = render(page_of(study, manifest, protocol_text), drawings)
    evaluations = {outcome.experiment.name: outcome.evaluation for outcome in study.outcomes}
    weeks = weeks_csv(evaluations)
    texts = {
        "report.html": html,
        "results.csv": results_csv(evaluations),
        **({"weeks.csv": weeks} if weeks else {}),
        "evaluation.json": dump_json(as_dict(study)),
        "protocol.toml": protocol_text,
    }
    with together():
        parts: list[Path] = []
        for outcome in study.outcomes:
            parts += save_sections(directory, outcome.experiment.name, outcome.sections, drawings)
        if study.claims:
            parts += save_sections(directory, CLAIMS_FOLDER, study.claims, drawings)
        return [path.name for path in save(directory, texts, manifest, [*parts, *others])]


# Files. ---------------------------------------------------------------------------------------------------------------


KIND = "evaluation"
MANIFEST_NAME = "manifest.json"


def results_csv(evaluations: Mapping[str, Evaluation]) -> str:
    """Return the long table as CSV: experiment, log, case, policy, metric, value (full precision; NaN is empty).

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        The values of each experiment.
    """
    return _long_csv({name: evaluation.frame() for name, evaluation in evaluations.items()})


def weeks_csv(evaluations: Mapping[str, Evaluation]) -> str:
    """Return the values of whole logs by week: experiment, log, week, jobs, policy, metric, value; empty without weeks.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        The values of each experiment.
    """
    return _long_csv({name: one.weekly_frame() for name, one in evaluations.items() if one.weekly})


def _long_csv(frames: Mapping[str, pd.DataFrame]) -> str:
    texts: list[str] = []
    for name, frame in frames.items():
        frame.insert(0, "experiment", name)
        for column in ("experiment", "log", "policy"):
            frame[column] = frame[column].map(csv_text)
        texts.append(frame.to_csv(index=False, header=not texts, lineterminator="\n"))
    return "".join(texts)


def refuse_evaluation(directory: Path, *, overwrite: bool) -> None:
    """Refuse to replace an evaluation.

    Raises
    ------
    OutputError
        If the folder holds one, or files of its names, and ``overwrite`` is not given.
    """
    manifest = directory / MANIFEST_NAME if listed(directory) else None
    refuse_earlier(*(directory / name for name in _OURS), manifest, overwrite=overwrite)


@contextlib.contextmanager
def room(directory: Path, *, overwrite: bool, partial: Path | None = None) -> Iterator[Path]:
    """Give the folder in which to make an evaluation, alone; at the end it is that of the results.

    Parameters
    ----------
    directory : Path
        The folder of the results; made if there is none, and removed again if nothing gets into it.
    overwrite : bool
        Whether an earlier evaluation is replaced, as a whole and at the end.
    partial : Path, optional
        The journal of a run that did not come to its end: what is there is unfinished, and is gone on with.

    Raises
    ------
    OutputError
        If the folder holds an evaluation that is not to be replaced, or cannot be written.
    UsageError
        If the command reads a file of it.
    """
    unfinished = partial is not None and partial.exists()
    if not unfinished:
        refuse_evaluation(directory, overwrite=overwrite)
    made = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    check_directory(directory)
    try:
        with exclusive(directory / _OURS[0]):
            earlier = [] if unfinished else earlier_files(directory)
            with replaced_whole(directory, earlier) as place:
                yield place
    except BaseException:
        with contextlib.suppress(OSError):
            for folder in made:
                folder.rmdir()
        raise


def earlier_files(directory: Path) -> list[str]:
    """Return the files of an evaluation in ``directory``, relative to it."""
    names = listed(directory)
    return [*names, *([MANIFEST_NAME] if names else []), *(name for name in _OURS if (directory / name).is_file())]


def listed(directory: Path) -> list[str]:
    """Return the files that an earlier evaluation wrote into ``directory``, by its manifest there.

    Parameters
    ----------
    directory : Path
        The folder of the results.
    """
    try:
        manifest = json.loads((directory / MANIFEST_NAME).read_text(encoding="utf-8"))
        return [str(name) for name in manifest["outputs"]] if manifest["kind"] == KIND else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def remove(directory: Path, names: Iterable[str]) -> int:
    """Remove files below ``directory`` and, with others, the folders that are empty then; return how many there were.

    Parameters
    ----------
    directory : Path
        The folder of the results; nothing outside it is touched, whatever the names say.
    names : iterable of str
        Paths relative to it.
    """
    top = directory.resolve()
    removed = 0
    for name in names:
        relative = PurePosixPath(name)
        path = directory / relative
        if relative.is_absolute() or ".." in relative.parts or path.is_symlink() or not path.is_file():
            continue
        if not path.resolve().is_relative_to(top):
            continue
        remove_file(path)
        removed += 1
    return removed


def save(directory: Path, texts: Mapping[str, str], manifest: Manifest, others: Iterable[Path] = ()) -> list[Path]:
    """Write the texts, then the manifest with the digests of all outputs, and remove what an earlier run left.

    Parameters
    ----------
    directory : Path
        The folder of the results; exists.
    texts : mapping of str to str
        File name and content.
    manifest : Manifest
        Without outputs.
    others : iterable of Path
        Files below ``directory`` that are written already (pictures, starts).

    Returns
    -------
    list of Path
        The files of ``texts`` and the manifest.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    earlier = listed(directory)
    written = [directory / name for name in texts]
    with together():
        for path, text in zip(written, texts.values(), strict=True):
            atomic_write(path, text)
        outputs = {path.relative_to(directory).as_posix(): digest_of(path) for path in sorted([*written, *others])}
        dataclasses.replace(manifest, outputs=outputs).write(directory / MANIFEST_NAME)
        # Nothing of two runs is mixed.
        remove(directory, (name for name in earlier if name not in outputs))
    return [*written, directory / MANIFEST_NAME]
