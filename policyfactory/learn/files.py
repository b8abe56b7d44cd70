"""The folder of a learned policy: what is in it, and how it is made room for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyfactory.core.artefact import Manifest, check_directory, command_line, exclusive, sha256_file
from policyfactory.core.errors import OutputError, UsageError
from policyfactory.learn.comparing import Compared, Rival
from policyfactory.policy.store import Model, save_model

if TYPE_CHECKING:
    from policyfactory.learn.learned import Learned
    from policyfactory.learn.options import LearnOptions
    from policyfactory.workload.swf.log import SwfLog

__all__ = ["POLICY", "SCORES", "check_folder", "make_room", "remove_results", "save_learned", "write_policy"]

POLICY = "policy.json"
SCORES = "scores.csv"


def check_folder(folder: Path) -> Path:
    """Return the folder, made if it is not there; refuse a name that cannot stand in a list of policies."""
    if "," in str(folder):
        raise UsageError(f"--output {str(folder)!a}: policies are listed by commas; name a folder without one")
    return check_directory(folder)


def make_room(folder: Path, *, overwrite: bool) -> None:
    """Refuse to replace a learned policy, or remove it; what an interrupted run left is resumed.

    Raises
    ------
    OutputError
        If the folder has a policy and it may not be replaced.
    """
    if not (folder / POLICY).exists():
        return
    if not overwrite:
        raise OutputError(
            f"{folder}: holds a learned policy ({POLICY}); add --overwrite to replace it, or name another folder "
            "with --output"
        )
    (folder / POLICY).unlink()
    remove_results(folder)


def remove_results(folder: Path) -> None:
    """Remove the score table and the models of an earlier run, so that they are neither resumed nor compared."""
    for name in (SCORES, "scores.manifest.json", f"{SCORES}.partial"):
        (folder / name).unlink(missing_ok=True)
    for path in (*folder.glob("forms*.json"), *folder.glob("polynomials*.json")):
        if path.is_file():
            path.unlink()


def write_dated(rivals: Sequence[Rival], folder: Path) -> None:
    """Write the models of the rivals that lie in a folder ``dated``."""
    for rival in rivals:
        if rival.source.endswith(f"dated/{rival.name}.json"):
            check_directory(folder / "dated")
            save_model(rival.model, folder / "dated" / f"{rival.name}.json")


def write_policy(
    model: Model, folder: Path, options: LearnOptions, inputs: Mapping[str, str], windows: str | None, epoch: int | None
) -> Path:
    """Write the chosen policy and its manifest.

    Parameters
    ----------
    model : Model
        The policy.
    folder : Path
        Where to.
    options : LearnOptions
        How it was learned.
    inputs : mapping of str to str
        Name and SHA-256 of the log.
    windows : str or None
        How the parts were cut.
    epoch : int or None
        From when r counts.
    """
    path = folder / POLICY
    save_model(model, path)
    parameters = {
        "metric": options.metric,
        "windows": windows,
        "threshold": options.threshold,
        "epoch": epoch,
        "chosen": model.policy.name,
    }
    outputs = {POLICY: sha256_file(path)}
    manifest = Manifest("learned-policy", command_line(), options.seed, inputs, parameters, outputs=outputs)
    manifest.write(Manifest.path_for(path))
    return path


def save_learned(learned: Learned, folder: Path) -> Path:
    """Write all that was learned in memory; see `Learned.save`."""
    from policyfactory.trials.table import write_score_table
    from policyfactory.workload.swf.files import write_swf

    check_folder(folder)
    with exclusive(folder / "learn"):
        make_room(folder, overwrite=False)
        parts = {part: _moved(log, folder) for part, log in learned.parts.items()}
        for log in parts.values():
            write_swf(log, log.path)
        scores = folder / SCORES
        write_score_table(learned.scores, scores)
        inputs = {Path(parts["training"].path).name: parts["training"].sha256}
        parameters = {
            "origin": learned.scores.origin,
            "tuples": learned.options.tuples,
            "trials": learned.options.trials,
        }
        outputs = {SCORES: sha256_file(scores)}
        manifest = Manifest("score-table", command_line(), learned.options.seed, inputs, parameters, outputs=outputs)
        manifest.write(Manifest.path_for(scores))
        figures = check_directory(folder / "pictures")
        learned.forms.save(folder / "forms.json", report=folder / "forms.md", figures=figures)
        learned.polynomials.save(folder / "polynomials.json", report=folder / "polynomials.md")
        write_dated(learned.rivals, folder)
        for part, compared in (("choosing", learned.choosing), ("test", learned.test)):
            rivals = tuple(_moved_rival(rival, folder) for rival in compared.rivals)
            _relocated(compared, parts[part], rivals).write(check_directory(folder / part))
        source = learned.source
        inputs = {Path(source.path).name: source.sha256}
        return write_policy(learned.model, folder, learned.options, inputs, learned.test.how.windows, learned.epoch)


def _moved(log: SwfLog, folder: Path) -> SwfLog:
    return dataclasses.replace(log, path=str(folder / Path(log.path).name))


def _moved_rival(rival: Rival, folder: Path) -> Rival:
    return dataclasses.replace(rival, source=f"{folder}/{rival.source}") if rival.is_file else rival


def _relocated(compared: Compared, log: SwfLog, rivals: tuple[Rival, ...]) -> Compared:
    return dataclasses.replace(compared, log=log, rivals=rivals)
