"""Learn a policy from a log with the simulator in the loop: one run, whatever the learner."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyfactory.core.errors import UsageError
from policyfactory.core.files import atomic_write, check_directory, dump_json, exclusive, refuse_earlier, together
from policyfactory.core.journal import partial_path
from policyfactory.core.options import changed
from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, save_picture
from policyfactory.core.text import csv_text, shortened
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import save_model
from policyfactory.search.environment.goals import check_goal, goal_of
from policyfactory.search.formulas import FormulaSearch
from policyfactory.search.judging import baseline_of, choose, judge_choice
from policyfactory.search.learner import Follower, Learner, Task, draw_windows
from policyfactory.search.options import SearchOptions, TrainOptions
from policyfactory.search.result import Trained
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.search.result import Trained

__all__ = [
    "FRONT_PICTURE",
    "HISTORY",
    "MODEL",
    "PICTURE",
    "REPORT",
    "draw_learning",
    "history_csv",
    "train",
    "write_result",
]


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


# The folder of a run: the model, the history, the learning curve and the report ---------------------------------------


MODEL, HISTORY, PICTURE, REPORT = "policy.json", "history.csv", "learning.png", "report.json"
FRONT_PICTURE = "front.png"


def write_result(trained: Trained, folder: Path) -> list[Path]:
    """Write all files of a run together, and return them.

    Raises
    ------
    OutputError
        If one cannot be written; then none is.
    """
    paths = [folder / name for name in (MODEL, HISTORY, PICTURE, REPORT)]
    with together():
        save_model(trained.model, paths[0])
        atomic_write(paths[1], history_csv(trained))
        save_picture(keeps_settings(draw_learning)(trained), paths[2])
        atomic_write(paths[3], dump_json(trained.as_dict()))
        if trained.members:
            from policyfactory.search.front import FRONT, draw_front, front_json

            paths += [folder / FRONT, folder / FRONT_PICTURE]
            atomic_write(paths[-2], dump_json(front_json(trained)))
            save_picture(keeps_settings(draw_front)(trained), paths[-1])
    return paths


def history_csv(trained: Trained) -> str:
    """Return the history as CSV: a line a step."""
    rows = trained.learned.history
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow([_cell(value) for value in row.values()])
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return csv_text(value) if isinstance(value, str) else repr(value)


# The learning curve: how good the best was after how much work --------------------------------------------------------


_MOST_NAMED = 8  # curves with a name of their own in the legend


def draw_learning(trained: Trained) -> Figure:
    """Draw the best so far of each search over the work done, relative to the baseline.

    Parameters
    ----------
    trained : Trained
        The run.

    Returns
    -------
    Figure
    """
    figure = new_figure(7.0, 4.0)
    axes = figure.add_subplot()
    curves = trained.learned.curves
    for number, (name, points) in enumerate(curves.items()):
        label = shortened(name, 40) if number < _MOST_NAMED else None
        work, best = zip(*points, strict=True)
        axes.plot(work, best, color=COLOURS[number % len(COLOURS)], linewidth=1.4, label=label)
    if trained.learned.axis:
        axes.set_xlabel(trained.learned.work)
        axes.set_ylabel(trained.learned.axis)
    else:
        axes.axhline(0, color="black", linewidth=1)
        name = trained.task.baseline.name
        axes.annotate(name, (0, 0), xytext=(4, 4), textcoords="offset points", fontsize=9)
        axes.set_xlabel(f"{trained.learned.work} tried")
        how = f"ratio to {name}'s, minus 1" if trained.settings.get("objective") == "mean" else f"log ratio to {name}'s"
        axes.set_ylabel(f"{trained.task.options.goal} of the best inside the bands,\n{how}")
    if curves:
        axes.legend(fontsize=8)
    return figure
