"""The folder of a learned policy: what is in it, and how it is made room for."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from policyfactory.core.errors import UsageError
from policyfactory.core.outputs import check_directory
from policyfactory.evaluate import results_folder
from policyfactory.learn.comparing import Rival
from policyfactory.policy.store import save_model

__all__ = [
    "KEPT",
    "POLICY",
    "PREDICTED",
    "PREDICTOR",
    "RANKING",
    "SCORES",
    "STEPS",
    "check_folder",
    "earlier_files",
    "files_of",
    "write_rivals",
]

POLICY = "policy.json"
STEPS = "steps.txt"  # what the command prints of the steps
SCORES = "scores.csv"
RANKING = "replicas.json"
PREDICTOR = "model.json"
_PARTS = ("training", "choosing", "test")  # of the log
_EVALUATIONS = ("choosing", "thresholds", "test", "resampled")  # the last one of earlier versions
# What a run that replaces another one begins with: scores of the same options are used again.
KEPT = (SCORES, "scores.manifest.json")
PREDICTED = "predicted"
_OF_RIVALS = ("dated", "thresholds", PREDICTED)
_FITTED = ("forms*.json", "polynomials*.json", "forms.md", "polynomials.md")
_MODELS = (*_FITTED, *(f"{name}/*.json" for name in _OF_RIVALS))


def check_folder(folder: Path) -> Path:
    """Return the folder, made if it is not there; refuse a name that cannot stand in a list of policies."""
    if "," in str(folder):
        raise UsageError(f"--output {str(folder)!a}: policies are listed by commas; name a folder without one")
    return check_directory(folder)


def earlier_files(folder: Path, name: str) -> list[str]:
    """Return the files of a finished run, relative to its folder; nothing if it has none.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str
        Of the log.
    """
    if not (folder / POLICY).exists():
        return []
    parts = [f"{glob.escape(name)}-{part}.swf" for part in _PARTS]
    return files_of(folder, (POLICY, "policy.manifest.json", STEPS, RANKING, PREDICTOR, *parts), _EVALUATIONS)


def files_of(folder: Path, own: Sequence[str], evaluations: Sequence[str]) -> list[str]:
    """Return the files of the stages, and others, that a folder has, relative to it.

    Parameters
    ----------
    folder : Path
        The folder.
    own : sequence of str
        Patterns of the others.
    evaluations : sequence of str
        The folders of comparisons.
    """
    patterns = (*own, *KEPT, *_MODELS, "pictures/*.png")
    files = [path for pattern in patterns for path in folder.glob(pattern)]
    found = [path.relative_to(folder).as_posix() for path in files if path.is_file()]
    return found + [f"{name}/{one}" for name in evaluations for one in results_folder.earlier_files(folder / name)]


def write_rivals(rivals: Sequence[Rival], folder: Path) -> None:
    """Write the models of the rivals that lie in folders of their own: ``dated``, ``thresholds``, ``predicted``."""
    for rival in rivals:
        path = folder / Path(rival.source).parent.name / f"{rival.name}.json"
        if path.parent.name in _OF_RIVALS and rival.source.endswith(f"{path.parent.name}/{path.name}"):
            check_directory(path.parent)
            save_model(rival.model, path)
