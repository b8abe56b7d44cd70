"""The folder of a learned policy: what is in it, and how it is made room for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from policyfactory.core.errors import UsageError
from policyfactory.core.output import check_directory, refuse_earlier
from policyfactory.learn.comparing import Rival
from policyfactory.policy.store import save_model

__all__ = ["POLICY", "SCORES", "check_folder", "make_room", "remove_results", "write_rivals"]

POLICY = "policy.json"
SCORES = "scores.csv"
_OF_RIVALS = ("dated", "thresholds")


def check_folder(folder: Path) -> Path:
    """Return the folder, made if it is not there; refuse a name that cannot stand in a list of policies."""
    if "," in str(folder):
        raise UsageError(f"--output {str(folder)!a}: policies are listed by commas; name a folder without one")
    return check_directory(folder)


def make_room(folder: Path, *, overwrite: bool) -> None:
    """Refuse to replace a learned policy, or remove it; what an interrupted run left is resumed.

    The score table stays: of the same options it is used again, and another one is replaced when it is written.

    Raises
    ------
    OutputError
        If the folder has a policy and it may not be replaced.
    """
    if not (folder / POLICY).exists():
        return
    refuse_earlier(folder / POLICY, overwrite=overwrite)
    (folder / POLICY).unlink()
    _remove_models(folder)


def remove_results(folder: Path) -> None:
    """Remove the score table and the models of an earlier run, so that they are neither resumed nor compared."""
    for name in (SCORES, "scores.manifest.json", f"{SCORES}.partial"):
        (folder / name).unlink(missing_ok=True)
    _remove_models(folder)


def _remove_models(folder: Path) -> None:
    for path in (*folder.glob("forms*.json"), *folder.glob("polynomials*.json")):
        if path.is_file():
            path.unlink()


def write_rivals(rivals: Sequence[Rival], folder: Path) -> None:
    """Write the models of the rivals that lie in folders of their own: ``dated``, ``thresholds``."""
    for rival in rivals:
        path = folder / Path(rival.source).parent.name / f"{rival.name}.json"
        if path.parent.name in _OF_RIVALS and rival.source.endswith(f"{path.parent.name}/{path.name}"):
            check_directory(path.parent)
            save_model(rival.model, path)
