"""The folder of predictions: the page, the tables, what was predicted of each job, the last model."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policyfactory.accuracy.compared import Compared, Group
from policyfactory.accuracy.words import sections_of, sentences
from policyfactory.core.artefact import Manifest, command_line, dump_json, package_versions
from policyfactory.core.files import together
from policyfactory.core.outputs import refuse_earlier
from policyfactory.evaluate.results_folder import KIND as FOLDER
from policyfactory.evaluate.results_folder import refuse_evaluation, room, save
from policyfactory.predict.store import save_forests
from policyfactory.report.drawings import Drawings
from policyfactory.report.files import save_sections
from policyfactory.report.page import Group as Part
from policyfactory.report.page import Page, render

__all__ = ["MODEL_FILE", "as_dict", "refuse_to_replace", "write_predicted"]

MODEL_FILE = "model.json"
_PAGE, _REPORT, _JOBS = "report.html", "accuracy.json", "predictions.csv"
_KIND, _SCHEMA = "prediction-accuracy", 1


def refuse_to_replace(folder: Path, *, overwrite: bool) -> Path:
    """Return the folder, if what is in it may be replaced; call it before minutes of work.

    Raises
    ------
    OutputError
        If it has results that are not to be replaced.
    """
    refuse_evaluation(folder, overwrite=overwrite)
    refuse_earlier(*(folder / name for name in (MODEL_FILE, _REPORT, _JOBS)), overwrite=overwrite)
    return folder


def as_dict(predicted: Compared) -> dict[str, Any]:
    """Return what was found as JSON values; null where nothing could be measured."""
    before = predicted.before
    report = {
        "kind": _KIND,
        "schema_version": _SCHEMA,
        "log": predicted.workload.name,
        "workload_sha256": predicted.workload.sha256(),
        "jobs": len(predicted),
        "policy": {"name": predicted.policy.name, "formula": predicted.policy.formula},
        "options": dataclasses.asdict(predicted.options),
        "trained_on": list(predicted.trained),
        "model_jobs": predicted.model.jobs,
        "model_has_seen_the_jobs": predicted.seen,
        "requests": dataclasses.asdict(predicted.requests),
        "missing": list(predicted.missing),
        "overall": _group(predicted.overall),
        "by_history": [_group(group) for group in predicted.by_history],
        "by_month": [_group(group) for group in predicted.by_month],
        "before_first_training": None if before is None else _group(before),
        "coverage": predicted.coverage(),
        "shortness_by_tenth": predicted.calibration(),
        "run_time_by_tenth": predicted.times(),
        "words": sentences(predicted),
    }
    return {name: _plain(value) for name, value in report.items()}


def _group(group: Group) -> dict[str, Any]:
    return {"jobs_of": group.name, "by": {name: dataclasses.asdict(found) for name, found in group.measures.items()}}


def _plain(value: Any) -> Any:
    """Return JSON values with null in place of numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_predicted(predicted: Compared, folder: Path, inputs: Mapping[str, str], *, overwrite: bool) -> list[Path]:
    """Write everything together, with a manifest, and return the files.

    Parameters
    ----------
    predicted : Compared
        What was found.
    folder : Path
        Where to.
    inputs : mapping of str to str
        Digests of what was read, by name.
    overwrite : bool
        Whether earlier results in the folder are replaced.

    Raises
    ------
    OutputError
        If there are results that are not to be replaced, or a file cannot be written.
    """
    parameters = {"policy": predicted.policy.name, **dataclasses.asdict(predicted.options)}
    manifest = Manifest(FOLDER, command_line(), None, dict(inputs), parameters)
    drawings, sections = Drawings(), sections_of(predicted)
    title = f"Predictions of the jobs of {predicted.workload.name}"
    page = Page(title, groups=(Part(title, sections),), manifest=manifest.as_dict())
    with room(folder, overwrite=overwrite) as place, together():
        parts = save_sections(place, "", sections, drawings)
        if predicted.trained:
            # A model that was given stays where it is.
            made_of = {"inputs": dict(inputs), "workload_sha256": predicted.workload.sha256()}
            provenance = {"command": command_line(), **made_of, "versions": package_versions(), **parameters}
            save_forests(predicted.model, place / MODEL_FILE, provenance=provenance)
            parts.append(place / MODEL_FILE)
        texts = {
            _PAGE: render(page, drawings),
            _REPORT: dump_json(as_dict(predicted)),
            _JOBS: _jobs_csv(predicted),
        }
        return [*save(place, texts, manifest, parts), *parts]


def _jobs_csv(predicted: Compared) -> str:
    """Return what was predicted of each job, as ``policyfactory evaluate --predictions`` reads it."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("job_id", "prediction", "s", "e90", "user_ended", "training"))
    columns = (predicted.workload.job_id, predicted.mean, predicted.shortness, predicted.tail)
    rows = (column.tolist() for column in (*columns, predicted.history, predicted.model_of))
    writer.writerows(zip(*rows, strict=True))
    return file.getvalue()
