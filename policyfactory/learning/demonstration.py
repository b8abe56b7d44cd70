"""The whole job on jobs of a model: random orders of a queue, formulas, a comparison, and an exported winner."""

from __future__ import annotations

import shlex
from pathlib import Path

from policyfactory.core.files import atomic_write, check_directory, exclusive, refuse_earlier, replaced_whole
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.text import HOUR
from policyfactory.exports.export import export
from policyfactory.learning.comparing import Compared, Rival, files_of
from policyfactory.learning.options import DEMO_TRIALS, DEMO_TUPLES
from policyfactory.learning.ranking import Progress
from policyfactory.learning.steps import Steps
from policyfactory.parallel.workers import Workers
from policyfactory.trials.options import GenerateOptions
from policyfactory.workload.models.lublin import LublinModel
from policyfactory.workload.models.lublin_log import Recipe, format_log, make_log
from policyfactory.workload.swf.files import parse_swf
from policyfactory.workload.swf.log import SwfLog

_SECONDS = (1, 1, 15, 15, 4, 10, 1)  # about, of each step
_LUBLIN = ("workload", "lublin", "--processors", "256", "--jobs", "20000", "--load", "0.7", "--estimates", "tsafrir")
_PROCESSORS, _JOBS, _LOAD, _LONGEST = 256, 20_000, 0.7, 18 * HOUR
_EVALUATED = {"metrics": ("mean_bsld", "mean_wait", "max_wait")}
_EVALUATION = "evaluation"
_LOGS = ("training", "test")
_WINNERS = {"python": "winner.py", "lua": "winner.lua"}
# r needs a fixed date in production; any will do for a demonstration.
_DATE = "2026-01-01"


def demonstrate(
    folder: Path,
    *,
    overwrite: bool = False,
    tuples: int = DEMO_TUPLES,
    trials: int = DEMO_TRIALS,
    workers: Workers | int = 1,
    progress: Progress | None = None,
) -> Compared:
    """Learn from one workload of the model, test on another, and export the winner; all files go to a folder.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    overwrite : bool
        Replace what an earlier demonstration left.
    tuples, trials : int
        Tuples to score, and trials of each.
    workers : Workers or int
        Who works; a number means so many threads.
    progress : Progress, optional
        Who follows how far the work is.

    Returns
    -------
    Compared
        The formulas and the classical policies on the second workload.

    Raises
    ------
    OutputError
        If the folder holds an earlier demonstration, or cannot be written.
    """
    with exclusive(check_directory(folder) / "demo"):
        refuse_earlier(*(folder / f"{name}.swf" for name in _LOGS), overwrite=overwrite)
        steps = Steps(folder, workers, progress or Progress(), _SECONDS, overwrite=True)
        with replaced_whole(folder, _earlier_files(folder), in_place=False) as work_folder:
            steps.work_in(work_folder)
            return _run(steps, tuples, trials)


def _earlier_files(folder: Path) -> list[str]:
    """Return the files of an earlier demonstration, relative to its folder; a second one starts afresh."""
    return files_of(folder, (*(f"{name}.swf" for name in _LOGS), *_WINNERS.values()), [_EVALUATION])


def _run(steps: Steps, tuples: int, trials: int) -> Compared:
    """Take all steps."""
    training = _workload(
        steps, "training", 1, "A workload to learn from (Lublin-Feitelson model, users' requests by Tsafrir's model)"
    )
    test = _workload(steps, "test", 2, "Another one to test on, which nothing has learned from")
    table = steps.score(training, GenerateOptions(tuples, trials, seed=1))
    rivals = steps.rivals(steps.fit(table))
    steps.begin(
        "The best of both against the classical policies under EASY backfilling, deciding by requested times",
        *("evaluate", test.path, "--policies", ",".join(rival.source for rival in rivals)),
        *("--backfill", "easy", "--decide-by", "request"),
        *("--metric", ",".join(_EVALUATED["metrics"]), "--output", steps.path_of(_EVALUATION), "--overwrite"),
    )
    compared = steps.compare(test, rivals, _EVALUATED, _EVALUATION)
    steps.write(compared, _EVALUATION)
    for target, name in _WINNERS.items():
        _export(steps, compared.winner, target, name)
    return compared


def _workload(steps: Steps, name: str, seed: int, title: str) -> SwfLog:
    path = steps.path_of(f"{name}.swf")
    words = (*_LUBLIN, "--seed", str(seed))
    steps.begin(title, *words, "--output", path, "--overwrite")
    recipe = Recipe(LublinModel.for_machine(_PROCESSORS), _JOBS, seed, load=_LOAD, max_estimate=_LONGEST)
    log, notes = make_log(recipe, shlex.join(("policyfactory", *words)))
    text = format_log(log)
    for line in notes:
        steps.progress.message(line)
    if steps.folder is not None:
        atomic_write(steps.folder / f"{name}.swf", text)
        steps.wrote([steps.folder / f"{name}.swf"])
    # The jobs as the text has them.
    return parse_swf(text, path, sha256=sha256_bytes(text))


def _export(steps: Steps, winner: Rival, target: str, name: str) -> None:
    words = ("export", winner.source, "--to", target, "--epoch", _DATE)
    steps.begin(f"The winner, {winner.name}, as {target}", *words, "--output", steps.path_of(name), "--overwrite")
    path = None if steps.folder is None else steps.folder / name
    exported = export(winner.model, target, path, source=winner.source, epoch=_DATE, overwrite=True)
    steps.wrote(exported.paths)
    for text in exported.warnings:
        steps.progress.warning(text)
