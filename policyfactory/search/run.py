"""Learn a policy from a log with the simulator in the loop: one run, whatever the learner."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from policyfactory.core.errors import UsageError
from policyfactory.core.journal import partial_path
from policyfactory.core.options import changed
from policyfactory.core.outputs import check_directory, exclusive, refuse_earlier
from policyfactory.environment.goals import check_goal, goal_of
from policyfactory.parallel.workers import Workers
from policyfactory.search.files import MODEL, write_result
from policyfactory.search.formulas import FormulaSearch
from policyfactory.search.judging import baseline_of, choose, judge_choice
from policyfactory.search.learner import Follower, Learner, Task
from policyfactory.search.options import SearchOptions, TrainOptions
from policyfactory.search.result import Trained
from policyfactory.search.windows import draw_windows
from policyfactory.workload.jobs import Workload

__all__ = ["train"]


def train(
    workload: Workload | Path | str,
    learner: Learner | None = None,
    options: TrainOptions | None = None,
    *,
    output: Path | str | None = None,
    overwrite: bool = False,
    workers: Workers | int = 1,
    follower: Follower | None = None,
    **changes: Any,
) -> Trained:
    """Learn on early windows of a log, choose by later ones, and judge the choice on later ones still.

    Parameters
    ----------
    workload : Workload, Path or str
        The jobs, or a file in the Standard Workload Format.
    learner : Learner, optional
        How to learn; `policyfactory.search.formulas.FormulaSearch` with its defaults if not given.
    options : TrainOptions, optional
        Goal, rules, windows and bands.
    output : Path or str, optional
        Folder for model, history, picture and report; an interrupted run is resumed by the same call. Without it all
        is in memory.
    overwrite : bool
        Replace what an earlier run left in the folder.
    workers : Workers or int
        Who works; a number means so many threads. The result does not depend on it.
    follower : Follower, optional
        Who follows how far the work is.
    **changes
        Fields of `TrainOptions`, in place of ``options`` or on top of them: ``goal``, ``window_jobs``, ``mode``, ...

    Raises
    ------
    UsageError
        If an option is outside its limits.
    WorkloadError
        If the log is shorter than its windows, or cannot be used.
    EvaluationError
        If the log cannot give the goal, or no candidate kept within the bands.
    OutputError
        If the folder holds a learned policy, is being written by another run, or cannot be written.
    """
    options = changed(options or TrainOptions(), changes)
    learner = learner or FormulaSearch.of(SearchOptions())
    if not isinstance(workload, Workload):
        from policyfactory.workload.clean import read

        workload = read(Path(workload), **options.reading)
        workload.cleaning.warn()
    if options.replicas and learner.name != "search":
        raise UsageError(f"--replicas are for the learner search; {learner.name} learns on windows")
    check_goal(goal_of(options.goal), workload)
    windows = draw_windows(workload, options)
    task = Task(workload, windows, options, Workers.of(workers), None, overwrite, follower or Follower())
    if output is None:
        return _run(task, learner)
    folder = check_directory(Path(output))
    with exclusive(folder / MODEL):
        refuse_earlier(folder / MODEL, overwrite=overwrite)
        journal = partial_path(folder / "train")
        trained = _run(dataclasses.replace(task, journal=journal), learner)
        write_result(trained, folder)
        journal.unlink(missing_ok=True)
    return trained


def _run(task: Task, learner: Learner) -> Trained:
    if task.options.replicas:
        task = dataclasses.replace(task, baseline=baseline_of(task))
    learned = learner.learn(task)
    if not learned.candidates:
        raise UsageError(f"learner {learner.name} proposed nothing; let it learn longer")
    chosen = choose(task, learned.candidates)
    standings = judge_choice(task, chosen)
    return Trained(task, learner.name, learner.describe(), learned, chosen, standings)
