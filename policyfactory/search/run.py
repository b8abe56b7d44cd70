"""Learn a policy from a log with the simulator in the loop: one run, whatever the learner."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from policyfactory.core.errors import UsageError
from policyfactory.core.files import atomic_write, check_directory, dump_json, exclusive, together
from policyfactory.core.journal import partial_path
from policyfactory.core.options import changed
from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, plain_numbers, save_picture
from policyfactory.core.process import Follower
from policyfactory.core.text import csv_text, plain, shortened
from policyfactory.parallel.workers import Workers
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, model_from_json, model_to_json, save_model
from policyfactory.report.files import csv_of
from policyfactory.report.verdict import LIGHTS
from policyfactory.search.environment.goals import Band, check_goal, goal_of
from policyfactory.search.formulas import FormulaSearch
from policyfactory.search.judging import (
    Chosen,
    RankedCandidate,
    Standing,
    baseline_of,
    choose,
    counted,
    judge_choice,
    light_of,
    margin_json,
    margin_words,
    percent,
)
from policyfactory.search.learner import (
    MEASURED,
    Learner,
    Proposals,
    Task,
    draw_windows,
    named_means,
    provenance_of,
    read_declared,
)
from policyfactory.search.options import SearchOptions, TrainOptions
from policyfactory.simulation.metrics import COSTS
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KIND = "trained-policy"
SCHEMA = 1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What a run has found.

    Parameters
    ----------
    task : Task
        What it learned from.
    learner : str
        How.
    settings : dict
        The learner's own options.
    learned : Learned
        All candidates and the history.
    chosen : Chosen
        The choice.
    standings : tuple of Standing
        The judged windows: the choice first.
    """

    task: Task
    learner: str
    settings: dict[str, Any]
    learned: Proposals
    chosen: Chosen
    standings: tuple[Standing, ...]

    @property
    def policy(self) -> Policy:
        """The choice."""
        return self.chosen.winner.policy

    @property
    def model(self) -> Model:
        """The choice with its coefficients, what it is worth, and how it was made."""
        diagnostics = {
            "goal": self.task.options.goal,
            "chosen_by": self.chosen.winner.origin,
            "judged": [self._standing(standing) for standing in self.standings],
            "warnings": self.warnings,
            "verdict": self.verdict,
        }
        policy = self.policy
        if policy.network is not None:
            kept = {**policy.network.diagnostics, **diagnostics}
            network = dataclasses.replace(policy.network, diagnostics=kept, provenance=self.provenance)
            policy = Policy.from_network(network)
        return Model(policy, self.chosen.winner.coefficients, diagnostics, self.provenance)

    @property
    def provenance(self) -> dict[str, Any]:
        """How it was made."""
        options = self.task.options
        return provenance_of(
            self.task.workload,
            options.seed,
            learner=self.learner,
            options=dataclasses.asdict(options),
            settings=self.settings,
        )

    @property
    def verdict(self) -> str:
        """What the judged windows say of the choice, in sentences."""
        goal = self.task.options.goal
        windows = len(self.task.windows.judged)
        noun = self.task.windows.noun
        baseline = self.task.baseline.name
        compared = [margin_words(margin, row.policy.name) for row, margin in counted(self.standings, baseline)]
        later = f"later {noun}" if noun == "windows" else "replicas of later jobs, where predictors learn in each run,"
        if not self.task.windows.held_out:
            later = "windows, the same that it was learned on,"
        light = LIGHTS[light_of(self.standings, baseline, held_out=self.task.windows.held_out)]
        return f"{light}. On {windows} {later} {goal} of {self.policy.name} is {'; '.join(compared)}."

    @property
    def members(self) -> tuple[RankedCandidate, ...]:
        """All that was ranked on the replicas for choosing; empty on windows."""
        return self.chosen.ranked if self.task.options.replicas else ()

    @property
    def front(self) -> tuple[RankedCandidate, ...]:
        """Those of them that nothing beats in goal and price at once, the best in the goal first."""
        return tuple(member for member in self.members if member.on_front)

    @property
    def margin(self) -> str:
        """What the windows for choosing say of the choice and the runner-up, in a sentence; empty without one."""
        chosen = self.chosen
        if chosen.margin is None or chosen.runner_up is None:
            return ""
        change, noun = chosen.margin.estimate.mapped(percent), self.task.windows.noun
        ends = change.interval
        more = f"95 % interval {ends.low:+.1f} to {ends.high:+.1f} %" if ends else "no interval of so few"
        word = {"better": "the choice is clear", "worse": "the other is better"}.get(
            chosen.margin.verdict, "cannot tell"
        )
        return (
            f"Of the candidates {chosen.winner.policy.name} was taken by {len(self.task.windows.choosing)} {noun} for "
            f"choosing, {change.value:+.1f} % beside {chosen.runner_up.policy.name}, the second ({more}): {word}."
        )

    @property
    def warnings(self) -> list[str]:
        """Why the result should not be trusted as it stands."""
        windows = self.task.windows
        warnings = [*self.learned.warnings, *windows.warnings(self.task.options.judged_windows, "learned")]
        if self.standings[0].out:
            warnings.append(f"on the judged {windows.noun} {self.standings[0].out}")
        first = self.chosen.ranked[0]
        if not first.learned:
            warnings.append(f"on the {windows.noun} for choosing {first.name} was better than all candidates")
        return warnings

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        windows = self.task.windows
        report = {
            "kind": KIND,
            "schema_version": SCHEMA,
            "policy": self.policy.name,
            "formula": self.policy.formula,
            "verdict": self.verdict,
            "warnings": self.warnings,
            "margin": self.margin,
            "goal": self.task.options.goal,
            "baseline": self.task.baseline.name,
            "bands": {band.guard: band.factor for band in self.task.options.guard_bands if isinstance(band, Band)},
            "limits": [dataclasses.asdict(limit) for limit in self.task.options.limits],
            "windows": {"noun": windows.noun, **windows.as_dict()},
            "candidates": [
                {
                    "policy": ranked.name,
                    "formula": ranked.candidate.policy.formula,
                    "origin": ranked.candidate.origin,
                    "training": ranked.candidate.training,
                    "choosing": ranked.means[0],
                    "gain": ranked.gain,
                    "out": ranked.out,
                    "learned": ranked.learned,
                }
                for ranked in self.chosen.ranked
            ],
            "judged": [self._standing(standing) for standing in self.standings],
            "front": [
                {
                    "policy": member.name,
                    "published": not member.learned,
                    "out": member.out,
                    "ratios": dict(zip((self.task.options.goal, *COSTS), member.ratios, strict=True)),
                }
                for member in self.front
            ],
            "provenance": self.provenance,
        }
        as_json: dict[str, Any] = plain(report)
        return as_json

    def _standing(self, standing: Standing) -> dict[str, Any]:
        policy = standing.policy
        row: dict[str, Any] = {"policy": policy.name, "formula": policy.formula, "role": standing.role}
        row |= named_means(self.task.options.goal, standing.means)
        if standing.margin is not None:
            row |= margin_json(standing.margin)
        if standing.typical is not None:
            in_percent = standing.typical.estimate.mapped(percent)
            typical = margin_json(dataclasses.replace(standing.typical, estimate=in_percent))
            row |= {f"typical_{key}": typical[key] for key in ("change_percent", "interval", "verdict")}
        return {**row, "out": standing.out}


# Learn from a log -----------------------------------------------------------------------------------------------------


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
    if learner.name == "ppo":
        options.refuse_idle("learner ppo, which learns on any window of the first part", "training_windows")
    elif options.windows is not None:
        options.refuse_idle("--windows", "window_jobs")
    check_goal(goal_of(options.goal), workload)
    windows = draw_windows(workload, options)
    task = Task(
        workload=workload,
        windows=windows,
        options=options,
        workers=Workers.of(workers),
        journal=None,
        overwrite=overwrite,
        follower=follower or Follower(),
    )
    if output is None:
        return _run(task, learner)
    folder = check_directory(Path(output))
    with exclusive(folder / MODEL, overwrite=overwrite):
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
            paths += [folder / FRONT, folder / FRONT_PICTURE]
            atomic_write(paths[-2], dump_json(front_json(trained)))
            save_picture(keeps_settings(draw_front)(trained), paths[-1])
    return paths


def history_csv(trained: Trained) -> str:
    """Return the history as CSV: a line a step."""
    rows = trained.learned.history
    names = list(rows[0]) if rows else []
    cells = ([csv_text(row[name]) if isinstance(row[name], str) else row[name] for name in names] for row in rows)
    return csv_of([names, *cells]) if rows else ""


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


# The Pareto front on disk ---------------------------------------------------------------------------------------------

FRONT = "front.json"
_KIND, _SCHEMA = "pareto-front", 1


def front_json(trained: Trained) -> dict[str, Any]:
    """Return the front as JSON values, a model for each member: what `pick` takes one from."""
    task = trained.task
    members = []
    for number, member in enumerate(trained.front, 1):
        named = dict(zip((task.options.goal, *COSTS), member.ratios, strict=True))
        ratios = {name: value if math.isfinite(value) else None for name, value in named.items()}
        members.append(
            {
                "number": number,
                "name": member.name,
                "published": not member.learned,
                "chosen": member.candidate is trained.chosen.winner,
                "out": member.out,
                "ratios": ratios,
                "model": model_to_json(_model(trained, member, ratios)),
            }
        )
    limits = [dataclasses.asdict(limit) for limit in task.options.limits]
    return {
        "kind": _KIND,
        "schema_version": _SCHEMA,
        "baseline": task.baseline.name,
        "replicas": len(task.windows.choosing),
        "limits": limits,
        "members": members,
    }


def _model(trained: Trained, ranked: RankedCandidate, ratios: dict[str, float | None]) -> Model:
    candidate = ranked.candidate
    replicas = len(trained.task.windows.choosing)
    warnings = [f"picked from the front of {replicas} replicas, and judged on nothing that is held out"]
    if ranked.out:
        warnings.append(ranked.out)
    diagnostics = {"goal": trained.task.options.goal, "chosen_by": candidate.origin, "ratios": ratios}
    return Model(candidate.policy, candidate.coefficients, {**diagnostics, "warnings": warnings}, trained.provenance)


def pick(folder: Path, which: str, *, overwrite: bool = False) -> Model:
    """Make another member of a front the policy of its folder, and return it; nothing is searched.

    Parameters
    ----------
    folder : Path
        Of a search on replicas.
    which : str
        Name or number of the member.
    overwrite : bool
        Replace the policy that is there.

    Raises
    ------
    InputError
        If the folder has no front, or it cannot be used.
    UsageError
        If there is no such member.
    OutputError
        If there is a policy and ``overwrite`` is not given, or it cannot be written.
    """
    path, model = folder / FRONT, folder / "policy.json"
    members = read_declared(
        path,
        _FrontFile,
        what="no front of policyfactory train --replicas",
        cure="name the folder of such a run, use the version that wrote it, or search again",
    )["members"]
    names = [f"{number} {member['name']}" for number, member in enumerate(members, 1)]
    found = [
        row for number, row in enumerate(members, 1) if which.strip() == str(number) or which.strip() == row["name"]
    ]
    if not found:
        raise UsageError(f"--pick {which[:60]!a}: {path} has {', '.join(names)[:1000]}; give a number or a name")
    picked = model_from_json(found[0]["model"], f"{path}: {found[0]['name'][:100]!a}")
    with exclusive(model, overwrite=overwrite):
        save_model(picked, model)
    return picked


class _MemberRecord(BaseModel):
    name: str
    model: dict[str, Any]


class _FrontFile(BaseModel):
    kind: Literal["pareto-front"]
    schema_version: Literal[1]
    members: list[_MemberRecord] = Field(min_length=1, max_length=10_000)


# The picture of a Pareto front: what the goal gains against each of its prices ----------------------------------------


_WORDS = {
    "p99_wait": "99 % quantile of the wait",
    "max_wait": "longest wait",
    "area_weighted_wait": "area-weighted wait",
}
_TRIED, _PUBLISHED = "#b0b0b0", "black"
_FRONT, _OUT, _CHOICE = COLOURS[:3]
_FAR = 20.0  # times the baseline's: what lies beyond is not drawn


def draw_front(trained: Trained) -> Figure:
    """Draw goal against price, as ratios to the baseline, in a panel for each price.

    Parameters
    ----------
    trained : Trained
        A run on replicas.

    Returns
    -------
    Figure
    """
    figure = new_figure(11.0, 4.4)
    panels = figure.subplots(1, len(COSTS), sharex=True)
    for number, (axes, cost) in enumerate(zip(panels, COSTS, strict=True), 1):
        _panel(axes, trained, number)
        axes.set_title(_WORDS[cost], fontsize=10)
        axes.set_xlabel(trained.task.options.goal, fontsize=9)
    panels[0].set_ylabel(f"ratio to {trained.task.baseline.name}", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=6, fontsize=8)
    return figure


def _panel(axes: Axes, trained: Trained, number: int) -> None:
    """Draw one price: the place of its ratio in a member's."""
    drawn = [member for member in trained.members if _is_near(member, number)]
    learned = [member for member in drawn if member.learned]
    groups = (
        ("tried", _TRIED, 10, [member for member in learned if not member.on_front]),
        ("front, within the limits", _FRONT, 26, [member for member in learned if member.on_front and not member.out]),
        ("front, beyond them", _OUT, 26, [member for member in learned if member.on_front and member.out]),
    )
    for label, colour, size, members in groups:
        axes.scatter(*_columns(members, number), s=size, color=colour, label=label, zorder=3 if size > 10 else 2)
    chosen = [member for member in drawn if member.candidate is trained.chosen.winner]
    x, y = _columns(chosen, number)
    axes.scatter(x, y, s=130, facecolors="none", edgecolors=_CHOICE, linewidths=1.8, label="choice", zorder=4)
    published = [member for member in drawn if not member.learned]
    axes.scatter(*_columns(published, number), s=30, color=_PUBLISHED, marker="x", label="published", zorder=4)
    for member in published:
        # The baseline stands where the lines cross, and in the label of the axis.
        if member.name != trained.task.baseline.name:
            _write(axes, shortened(member.name, 16), member, number)
    for rank, member in enumerate(trained.front, 1):
        if member in drawn and member.learned:
            _write(axes, str(rank), member, number)
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.axvline(1, color="grey", linewidth=0.8)
    bound = _bound(trained, number)
    if bound is not None:
        axes.axhline(bound, color=_OUT, linewidth=1, linestyle="--", label="limit")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(axis.get_major_formatter())
        plain_numbers(axis, minor=False)
        _ticks(axis)
    axes.tick_params(labelsize=8)
    axes.margins(0.12)


def _ticks(axis: object) -> None:
    """Put a few round numbers on an axis, however little of a decade it shows."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))  # type: ignore[attr-defined]
    axis.set_minor_locator(NullLocator())  # type: ignore[attr-defined]


def _write(axes: Axes, text: str, member: RankedCandidate, number: int) -> None:
    axes.annotate(
        text, (member.ratios[0], member.ratios[number]), xytext=(4, 3), textcoords="offset points", fontsize=7
    )


def _is_near(member: RankedCandidate, number: int) -> bool:
    values = member.ratios[0], member.ratios[number]
    return all(math.isfinite(value) and 1 / _FAR < value < _FAR for value in values)


def _columns(members: list[RankedCandidate], number: int) -> tuple[list[float], list[float]]:
    return [member.ratios[0] for member in members], [member.ratios[number] for member in members]


def _bound(trained: Trained, number: int) -> float | None:
    """Return the most that a price may be, as a ratio to the baseline's; None without a limit or band."""
    cost = COSTS[number - 1]
    base = next(point for point in trained.members if point.name == trained.task.baseline.name and not point.learned)
    value = base.means[MEASURED.index(cost)]
    for band in trained.task.options.guard_bands:
        if band.guard == cost and value:
            bound = band.bound(value) / value
            return bound if bound < _FAR else None
    return None
