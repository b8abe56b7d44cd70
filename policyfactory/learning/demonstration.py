"""The whole job on jobs of a model: random orders of a queue, formulas, a choice, a comparison, an exported formula.

Each part has jobs of its own: one workload teaches, others choose the formula and its threshold, and one judges what
was chosen.
"""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import numpy as np

from policyfactory.core.files import atomic_write, check_directory, exclusive, refuse_earlier, replaced_whole
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.text import HOUR
from policyfactory.evaluation.verdict import verdict_of
from policyfactory.exports.export import export
from policyfactory.learning.choice import guarded
from policyfactory.learning.comparing import CLASSICAL, Compared, Rival, files_of, write_rivals
from policyfactory.learning.options import DEMO_TRIALS, DEMO_TUPLES, LearnOptions
from policyfactory.learning.ranking import Progress, rank
from policyfactory.learning.steps import Steps
from policyfactory.parallel.workers import Workers
from policyfactory.search.replicated import AIMS, Replicated, values_of
from policyfactory.simulation.rules import Rules
from policyfactory.trials.table import GenerateOptions
from policyfactory.workload.clean import clean
from policyfactory.workload.models.lublin import LublinModel
from policyfactory.workload.models.lublin_log import Recipe, format_log, make_log
from policyfactory.workload.swf.files import parse_swf
from policyfactory.workload.swf.log import SwfLog

_SECONDS = (1, 1, 15, 15, 4, 5, 10, 1)  # about, of each step
_LUBLIN = ("workload", "lublin", "--processors", "256", "--jobs", "20000", "--load", "0.7", "--estimates", "tsafrir")
_PROCESSORS, _JOBS, _LOAD, _LONGEST = 256, 20_000, 0.7, 18 * HOUR
_EVALUATED = {"metrics": AIMS}
_EVALUATION = "evaluation"
_LOGS = ("training", "test")
_CHOOSING = range(3, 9)  # seeds of the workloads by which is chosen
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
    rivals, chosen = _choose(steps, steps.rivals(steps.fit(table)))
    steps.begin(
        "The choice and all others against FCFS under EASY backfilling, deciding by requested times",
        *("evaluate", test.path, "--policies", ",".join(rival.source for rival in rivals)),
        *("--backfill", "easy", "--decide-by", "request"),
        *("--metric", ",".join(_EVALUATED["metrics"]), "--output", steps.path_of(_EVALUATION), "--overwrite"),
    )
    compared = steps.compare(test, rivals, _EVALUATED, _EVALUATION)
    verdict = verdict_of(dataclasses.replace(compared.outcome, chosen=chosen))
    compared = compared if verdict is None else compared.judged(verdict, chosen)
    steps.write(compared, _EVALUATION)
    for target, name in _WINNERS.items():
        _export(steps, compared.chosen, target, name)
    return compared


def _choose(steps: Steps, rivals: list[Rival]) -> tuple[list[Rival], str]:
    """Return the policies with the best learned one and the best classical one among them, and the name of the former.

    Best is what gains most on other workloads, of what costs no more than is allowed there; most are so only with a
    threshold. If no learned one is, the choice is the baseline.
    """
    steps.begin(f"The formula and its threshold, chosen on {len(_CHOOSING)} other workloads of the model")
    workloads = [clean(parse_swf(_log_text(seed)[0], f"choosing-{seed}")) for seed in _CHOOSING]
    arena, baseline = Replicated(workloads, 0, Rules()), rivals[0]
    waits = np.concatenate([schedule.wait for schedule in arena.schedules(baseline.model.policy)])
    candidates = {rival.name: [rival] for rival in rivals}
    for rival in rivals[1:]:
        candidates[rival.name] += guarded(rival, waits, steps.path_of("thresholds"))
    every = {rival.name: rival for group in candidates.values() for rival in group}
    names = list(every)
    counter = steps.progress.counter("workloads")
    counter.expect(len(arena))
    policies = [rival.model.policy for rival in every.values()]
    values = values_of(arena, policies, workers=steps.workers, done=counter.done, notify=steps.progress.message)
    chosen = baseline.name
    for kind, others in (("classical", rivals[1 : len(CLASSICAL)]), ("learned", rivals[len(CLASSICAL) :])):
        some = [baseline.name, *(rival.name for other in others for rival in candidates[other.name])]
        rows = [names.index(name) for name in some]
        ranking = rank(values[:, rows], some, [baseline.name], AIMS, limits=LearnOptions().limits)
        chosen = ranking.chosen
        words = "none" if chosen == baseline.name else ranking.in_words(chosen)
        steps.progress.message(f"the best {kind} one at a price that is allowed: {words}")
        rivals = [*rivals, *([] if every[chosen] in rivals else [every[chosen]])]
    if steps.folder is not None:
        write_rivals(rivals, steps.folder)
    return rivals, chosen


def _workload(steps: Steps, name: str, seed: int, title: str) -> SwfLog:
    path = steps.path_of(f"{name}.swf")
    steps.begin(title, *_words(seed), "--output", path, "--overwrite")
    text, notes = _log_text(seed)
    for line in notes:
        steps.progress.message(line)
    if steps.folder is not None:
        atomic_write(steps.folder / f"{name}.swf", text)
        steps.wrote([steps.folder / f"{name}.swf"])
    # The jobs as the text has them.
    return parse_swf(text, path, sha256=sha256_bytes(text))


def _words(seed: int) -> tuple[str, ...]:
    return (*_LUBLIN, "--seed", str(seed))


def _log_text(seed: int) -> tuple[bytes, tuple[str, ...]]:
    """Return a workload of the model in the Standard Workload Format, and what is to be said of it."""
    recipe = Recipe(LublinModel.for_machine(_PROCESSORS), _JOBS, seed, load=_LOAD, max_estimate=_LONGEST)
    log, notes = make_log(recipe, shlex.join(("policyfactory", *_words(seed))))
    return format_log(log), notes


def _export(steps: Steps, chosen: Rival, target: str, name: str) -> None:
    words = ("export", chosen.source, "--to", target, "--epoch", _DATE)
    steps.begin(f"The choice, {chosen.name}, as {target}", *words, "--output", steps.path_of(name), "--overwrite")
    path = None if steps.folder is None else steps.folder / name
    exported = export(chosen.model, target, path, source=chosen.source, epoch=_DATE, overwrite=True)
    steps.wrote(exported.paths)
    for text in exported.warnings:
        steps.progress.warning(text)
