"""The results as files: a long CSV, one JSON with summary and protocol, a manifest.

``results.csv``, ``evaluation.json``, the report and what it shows are the same, byte for byte, whenever the same thing
is evaluated, for any number of workers; what differs from run to run (command line, speed) is in ``manifest.json``.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from policyfactory.core.artefact import Manifest, atomic_write, sha256_file

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["KIND", "MANIFEST_NAME", "listed", "plain", "remove", "results_csv", "save"]

KIND = "evaluation"
MANIFEST_NAME = "manifest.json"


def plain(value: Any) -> Any:
    """Return ``value`` as JSON values; what JSON has no word for (NaN, infinity) is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


def results_csv(evaluations: Mapping[str, Evaluation]) -> str:
    """Return the long table as CSV: experiment, log, case, policy, metric, value (full precision; NaN is empty).

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        The values of each experiment.
    """
    texts: list[str] = []
    for name, evaluation in evaluations.items():
        frame = evaluation.frame()
        frame.insert(0, "experiment", name)
        texts.append(frame.to_csv(index=False, header=not texts, lineterminator="\n"))
    return "".join(texts)


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
    """Remove files below ``directory`` and the folders that are empty then; return how many files there were.

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
        path.unlink()
        removed += 1
        for folder in path.parents:
            if folder == directory or any(folder.iterdir()):
                break
            folder.rmdir()
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
    for path, text in zip(written, texts.values(), strict=True):
        atomic_write(path, text)
    outputs = {path.relative_to(directory).as_posix(): sha256_file(path) for path in sorted([*written, *others])}
    dataclasses.replace(manifest, outputs=outputs).write(directory / MANIFEST_NAME)
    # Only now, so that a run that fails or is stopped leaves the earlier results; nothing of two runs is mixed.
    remove(directory, (name for name in earlier if name not in outputs))
    return [*written, directory / MANIFEST_NAME]
