"""The cells of RL in the tables of RLScheduler, by networks that are trained here, and the curves of its figures.

    python evaluate/studies/rlscheduler_networks.py --traces traces --output docs --models models/rlscheduler

Each network is trained on windows of 256 jobs anywhere in the first 10,000 jobs of a log, as the SC'20 paper does,
without backfilling (preset ours); of its candidates the one is taken that is best on 48 other windows of 1,024 jobs;
and it plays the ten windows of its table without and with backfilling, by the most probable job and by drawn ones (5
draws), on its own log and, trained for bounded slowdown, on all logs (table VII). Three seeds each. Memory, user, group
and executable are not shown to it: what it learns is a function of wait, request, processors and whether a job fits.

It writes ``data/rlscheduler-networks.csv`` (a row for each network, tested log, and kind of backfilling),
``data/rlscheduler-curves.csv`` and the pictures ``img/rlscheduler-curves.png`` (figures 10 to 13) and
``img/rlscheduler-shapes.png`` (8 and 9), and the networks for bounded slowdown as model files. Half an hour of two
cores; ``--kept DIR`` keeps what is finished there and goes on with it, ``--only lublin-1`` does the tasks whose name
has the word.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray

from policyfactory.core.files import atomic_write, package_versions
from policyfactory.core.picture import new_figure, plain_numbers, save_picture
from policyfactory.core.random import generator
from policyfactory.policy.network import network_to_json
from policyfactory.search.environment.goals import GOALS
from policyfactory.search.reinforce.networks import KERNEL, NETWORKS, network_of, torch_module
from policyfactory.search.reinforce.options import PpoOptions, ppo_options
from policyfactory.search.reinforce.rollouts import PaperWorld, filtered_starts, play
from policyfactory.search.reinforce.training import AgentTraining, TrainedNumbers, chooser_of
from policyfactory.simulation.compat import CommittedLog
from policyfactory.workload.clean import read
from policyfactory.workload.windows import RLSCHEDULER_JOBS, starts_rlscheduler

__all__ = ["TASKS", "Task", "done", "main", "write"]

JOBS, TESTED, CHOSEN_BY, DRAWS = 256, 1024, 48, 5
_PURPOSE, _TESTS = 78, 77  # of the random streams; see core.random
LOGS = {
    "lublin-1": "lublin_256.swf",
    "lublin-2": "lublin_256_new2.swf",
    "hpc2n": "HPC2N-2002-2.1-cln.swf.gz",
    "kth": "KTH-SP2-1996-2.1-cln.swf.gz",
    "sdsc-blue": "SDSC-BLUE-2000-4.2-cln.swf.gz",
}
# Table, and the seed of its windows, of each goal.
TABLES = {
    "mean_bsld": ("V, VII", "1"),
    "utilisation_to_last_start": ("VI", "1"),
    "mean_slowdown": ("X", "2"),
    "mean_wait": ("XI", "20"),
    "user_max_bsld": ("VIII", "1"),
}
SEEDS = (0, 1, 2)


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """A network to be trained and tested: on which log, for what, with which seed; its shape and its filter."""

    log: str
    goal: str = "mean_bsld"
    seed: int = 0
    network: str = KERNEL
    filtering: str = "none"

    @property
    def name(self) -> str:
        """Its name, as of a file."""
        return "-".join([self.log, self.goal, self.network, self.filtering, str(self.seed)])

    @property
    def is_usual(self) -> bool:
        """Whether it is a kernel network that learned from all windows."""
        return self.network == KERNEL and self.filtering == "none"


def _tasks() -> tuple[Task, ...]:
    real = ("lublin-1", "lublin-2", "hpc2n")
    made = [Task(log, seed=seed) for log in LOGS for seed in SEEDS]
    for goal in ("utilisation_to_last_start", "mean_slowdown", "mean_wait"):
        made += [Task(log, goal, seed) for log in real for seed in SEEDS]
    made += [Task(log, "user_max_bsld", seed) for log in ("hpc2n", "sdsc-blue") for seed in SEEDS]
    # Figure 8, and figure 9 on the most skewed of our logs.
    made += [Task("lublin-1", network=network) for network in NETWORKS if network != KERNEL]
    made += [Task("kth", filtering=filtering) for filtering in ("paper", "code")]
    return tuple(made)


TASKS = _tasks()


def done(task: Task, traces: Path, rounds: int | None = None) -> dict[str, Any]:
    """Train and test a network: its ``rows``, its ``curve`` and, of a usual one, its ``model``, as JSON values.

    Parameters
    ----------
    task : Task
        What to do.
    traces : Path
        Folder of the logs.
    rounds : int, optional
        Of training; those of the preset, if not given.
    """
    log = _log(task.log, traces)
    options = ppo_options("ours", network=task.network, filtering=task.filtering, iterations=rounds)
    options = dataclasses.replace(options, filtered=options.iterations // 2 if task.filtering != "none" else 0)
    begin = time.process_time()
    trained = _trained(task, log, options)
    spent = time.process_time() - begin
    others = generator(0, _PURPOSE).integers(0, _end(log) - TESTED + 1, CHOSEN_BY)
    world = PaperWorld(log, TESTED, CHOSEN_BY, goal=task.goal)
    means = [float(_costs(world, others, numbers, task.network).mean()) for numbers in trained.numbers]
    best = int(np.argmin(means))
    numbers, taken = trained.numbers[best], trained.iterations[best]
    row = {
        **dataclasses.asdict(task),
        "rounds": taken,
        "decisions": trained.history[taken - 1]["decisions"],
        "training (CPU s)": round(spent, 1),
    }
    tested = LOGS if task.goal == "mean_bsld" and task.is_usual else [task.log]
    rows = [
        row
        | {
            "table": TABLES[task.goal][0],
            "tested": name,
            **_tested(task, _log(name, traces), numbers, backfill=backfill),
        }
        for name in tested
        for backfill in (False, True)
    ]
    made: dict[str, Any] = {"rows": rows, "curve": [_point(task, one) for one in trained.history]}
    if task.is_usual and task.goal == "mean_bsld":
        made["model"] = _model(task, log, numbers, row) | {"provenance": _provenance(task, traces)}
    return made


def _log(name: str, traces: Path) -> CommittedLog:
    # What a workload does not have is not shown: memory, group and executable, and whose a job is.
    return CommittedLog.of_workload(read(traces / LOGS[name], preset="rlscheduler", estimate_missing="runtime"))


def _end(log: CommittedLog) -> int:
    return min(len(log), RLSCHEDULER_JOBS)


def _trained(task: Task, log: CommittedLog, options: PpoOptions) -> TrainedNumbers:
    starts = np.arange(_end(log) - JOBS + 1)
    world = PaperWorld(log, JOBS, options.windows * options.rollouts, goal=task.goal)
    phase_one = filtered_starts(world, starts, options.filtering) if options.filtered else None
    return AgentTraining(world, starts, options, task.seed, {"task": task.name}).train(filtered=phase_one)


def _costs(world: PaperWorld, starts: Any, numbers: Any, network: str, draw: int | None = None) -> NDArray[np.float64]:
    """Return the goal of each window: where the most probable job is taken, or one is drawn as in the paper."""
    random = None if draw is None else generator(draw, _TESTS)
    return play(world, starts, chooser_of(numbers, network, world), random).costs


def _tested(task: Task, log: CommittedLog, numbers: Any, *, backfill: bool) -> dict[str, Any]:
    """Return what a network gives on the windows of its table."""
    world = PaperWorld(log, TESTED, 10, backfill=backfill, goal=task.goal)
    windows = starts_rlscheduler(len(log), TESTED, 10, TABLES[task.goal][1])
    sign = 1 if GOALS[task.goal].lower_is_better else -1
    drawn = [sign * float(_costs(world, windows, numbers, task.network, draw).mean()) for draw in range(DRAWS)]
    return {
        "backfilling": backfill,
        "most probable": round(sign * float(_costs(world, windows, numbers, task.network).mean()), 2),
        "drawn, mean": round(float(np.mean(drawn)), 2),
        "drawn, least": round(min(drawn), 2),
        "drawn, most": round(max(drawn), 2),
    }


def _point(task: Task, row: dict[str, Any]) -> dict[str, Any]:
    """Return what a round of training is in the table of curves."""
    sign = 1 if GOALS[task.goal].lower_is_better else -1
    values = {name: round(sign * row[key], 3) for name, key in (("drawn", "cost"), ("SJF", "SJF"), ("F1", "F1"))}
    return {**dataclasses.asdict(task), "decisions": row["decisions"], **values}


def _model(task: Task, log: CommittedLog, numbers: Any, row: dict[str, Any]) -> dict[str, Any]:
    world = PaperWorld(log, TESTED, 1)
    network = network_of(
        numbers,
        f"RL-{task.log.upper()}-{task.seed}",
        world.inputs,
        description="kernel network of RLScheduler, trained for mean bounded slowdown without backfilling",
        source="evaluate/studies/rlscheduler_networks.py",
        mode="paper",
        diagnostics={"rounds": row["rounds"], "decisions": row["decisions"]},
    )
    return network_to_json(network)


def _provenance(task: Task, traces: Path) -> dict[str, Any]:
    """Return how a network was made."""
    digest = read(traces / LOGS[task.log], preset="rlscheduler", estimate_missing="runtime").cleaning.sha256
    return {
        "command": "python evaluate/studies/rlscheduler_networks.py",
        "inputs": {LOGS[task.log]: digest},
        "seed": task.seed,
        "preset": "ours",
        "versions": {**package_versions(), "torch": str(torch_module().__version__)},
    }


# What is written. -----------------------------------------------------------------------------------------------------


def write(made: Sequence[dict[str, Any]], output: Path, models: Path | None) -> None:
    """Write tables, pictures and model files."""
    for folder in ("data", "img"):
        (output / folder).mkdir(parents=True, exist_ok=True)
    rows, curves = ([row for one in made for row in one[key]] for key in ("rows", "curve"))
    atomic_write(output / "data" / "rlscheduler-networks.csv", _csv(rows))
    atomic_write(output / "data" / "rlscheduler-curves.csv", _csv(curves))
    _draw_goals(curves, output / "img" / "rlscheduler-curves.png")
    _draw_shapes(curves, output / "img" / "rlscheduler-shapes.png")
    if models is not None:
        models.mkdir(parents=True, exist_ok=True)
        for one in made:
            if "model" in one:
                text = json.dumps(one["model"], indent=1, sort_keys=True) + "\n"
                atomic_write(models / f"{one['model']['name'].lower()}.json", text)


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _usual(row: dict[str, Any]) -> bool:
    return row["network"] == KERNEL and row["filtering"] == "none"


def _draw_goals(curves: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the training of the kernel network, a panel for each goal and log: figures 10 to 13."""
    goals = [goal for goal in TABLES if goal != "user_max_bsld"]
    logs = ("lublin-1", "lublin-2", "hpc2n")
    figure = new_figure(9.0, 2.2 * len(goals))
    axes = figure.subplots(len(goals), len(logs), squeeze=False)
    for line, goal in enumerate(goals):
        for column, log in enumerate(logs):
            axis = axes[line][column]
            here = [row for row in curves if _usual(row) and (row["goal"], row["log"]) == (goal, log)]
            for seed in SEEDS:
                _line(axis, [row for row in here if row["seed"] == seed], "drawn", "#0072b2", "network, three seeds")
            for name, colour in (("SJF", "#d55e00"), ("F1", "#555555")):
                _line(axis, [row for row in here if row["seed"] == SEEDS[0]], name, colour, f"{name}, same windows")
            _look(axis, goal)
            if line == 0:
                axis.set_title(log)
            if column == 0:
                axis.set_ylabel(goal.replace("_to_last_start", ", %"))
    _finish(figure, axes[0][0], path)


def _draw_shapes(curves: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the other networks on Lublin-1 and the filters on KTH-SP2: figures 8 and 9."""
    figure = new_figure(9.0, 3.4)
    left, right = figure.subplots(1, 2)
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555")
    of_seed = [row for row in curves if row["goal"] == "mean_bsld" and row["seed"] == 0]
    for network, colour in zip(NETWORKS, colours, strict=True):
        chosen = [row for row in of_seed if (row["log"], row["network"]) == ("lublin-1", network)]
        _line(left, chosen, "drawn", colour, network)
    for filtering, colour in zip(("none", "paper", "code"), colours, strict=False):
        chosen = [row for row in of_seed if (row["log"], row["filtering"]) == ("kth", filtering)]
        _line(right, chosen, "drawn", colour, f"filter: {filtering}")
    for axis, title in ((left, "Lublin-1: networks"), (right, "KTH-SP2: filters in the first half")):
        _look(axis, "mean_bsld")
        axis.set_title(title)
        axis.legend(fontsize=8)
    left.set_ylabel("mean_bsld")
    figure.supxlabel("decisions, millions", size="medium")
    save_picture(figure, path)


def _line(axis: Any, rows: Sequence[dict[str, Any]], name: str, colour: str, label: str) -> None:
    axis.plot([row["decisions"] / 1e6 for row in rows], [row[name] for row in rows], color=colour, label=label, lw=1.1)


def _look(axis: Any, goal: str) -> None:
    if goal != "utilisation_to_last_start":
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        plain_numbers(axis.yaxis, minor=False)
    axis.tick_params(labelsize=8)


def _finish(figure: Any, axis: Any, path: Path) -> None:
    handles, labels = axis.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    figure.legend(shown.values(), shown.keys(), loc="outside upper right", ncols=len(shown))
    figure.supxlabel("decisions, millions", size="medium")
    save_picture(figure, path)


def _kept(task: Task, traces: Path, folder: Path | None, rounds: int | None) -> dict[str, Any]:
    """Return what a task gives, from the folder if it was finished before."""
    path = None if folder is None else folder / f"{task.name}.json"
    if path is not None and path.is_file():
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return known
    made = done(task, traces, rounds)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, json.dumps(made))
    return made


def main(arguments: list[str] | None = None) -> None:
    """Train, test, write and draw."""
    parser = argparse.ArgumentParser(description="the cells of RL in the tables of RLScheduler")
    parser.add_argument("--traces", type=Path, default=Path("traces"), help="folder of the logs")
    parser.add_argument("--output", type=Path, required=True, help="folder that gets data/ and img/")
    parser.add_argument("--models", type=Path, help="folder that gets the networks for bounded slowdown")
    parser.add_argument("--kept", type=Path, help="folder that keeps what is finished")
    parser.add_argument("--only", default="", help="a word that the names of tasks must have")
    parser.add_argument("--rounds", type=int, help="rounds of training")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    given = parser.parse_args(arguments)
    tasks = [task for task in TASKS if given.only in task.name]
    run = joblib.delayed(_kept)
    made = []
    finished = joblib.Parallel(n_jobs=given.workers, return_as="generator")(
        run(task, given.traces, given.kept, given.rounds) for task in tasks
    )
    for number, one in enumerate(finished, 1):
        made.append(one)
        own = one["rows"][0]
        print(f"{number} of {len(tasks)}: {own['log']} {own['goal']} {own['network']} {own['seed']}", flush=True)  # noqa: T201
    write(made, given.output, given.models)


if __name__ == "__main__":
    main()
