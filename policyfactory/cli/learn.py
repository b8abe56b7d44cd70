"""``policyfactory learn``: from a log to a policy for it, and the evidence on jobs that chose nothing."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyfactory.cli.console import note, warn
from policyfactory.cli.steps import (
    CLASSICAL,
    Step,
    evaluation_of,
    fit_steps,
    learned_models,
    model_named,
    remove_results,
    run_steps,
)
from policyfactory.cli.workers_options import Backend, BackendOption, JobsOption, SchedulerOption, workers_of
from policyfactory.core.artefact import Manifest, check_directory, command_line, exclusive, sha256_file
from policyfactory.core.errors import InputError, OutputError, UsageError, WorkloadError
from policyfactory.core.units import DAY

if TYPE_CHECKING:
    from policyfactory.workload.jobs import Workload

__all__ = ["Plan", "learn"]

_POLICY = "policy.json"
_STEPS = "steps.txt"
# A tuple is 48 jobs, and a comparison of fewer jobs than a tuple has says nothing.
_FEWEST = 200
_WINDOWS = 10
_LENGTHS = (15, 7, 3, 1)
_METRICS = "mean_bsld,mean_wait,p95_wait,max_wait,utilisation"


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What is learned from, how, and by what it is judged.

    Parameters
    ----------
    log : Path
        The log.
    name : str
        What it is called.
    folder : Path
        Where everything goes.
    jobs : int
        Jobs of the log that have a submit time.
    epoch : int or None
        Unix time from which r counts in the evaluation and in production; None if the log has no date.
    tuples, trials, seed : int
        As of ``policyfactory generate``.
    threshold : str
        As of ``policyfactory evaluate``.
    scoring, judging : tuple of str
        Options of the step that scores jobs, and of the evaluations.
    sha256 : str
        Digest of the log.
    """

    log: Path
    name: str
    folder: Path
    jobs: int
    epoch: int | None
    tuples: int
    trials: int
    seed: int
    threshold: str
    scoring: tuple[str, ...]
    judging: tuple[str, ...]
    sha256: str


def learn(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="Log in the Standard Workload Format (workload import makes one).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for everything.")] = Path(
        "learned"
    ),
    tuples: Annotated[int, typer.Option(help="Tuples to score.", min=32)] = 1000,
    trials: Annotated[int, typer.Option(help="Trials a tuple.", min=256)] = 16_000,
    metric: Annotated[str, typer.Option(help="Metric whose lowest median chooses the policy.")] = "mean_bsld",
    threshold: Annotated[
        str, typer.Option(metavar="TIME", help="Jobs that have waited longer go first: 20h; inf for never.")
    ] = "inf",
    windows: Annotated[
        str | None,
        typer.Option(
            metavar="NxLENGTH", help="How the jobs to choose by and to test on are cut (default: as they last)."
        ),
    ] = None,
    processors: Annotated[int | None, typer.Option(help="Processors of the machine, if the log does not say.")] = None,
    estimate_missing: Annotated[
        str, typer.Option(help="Jobs without a requested time: error, runtime (as if known exactly), drop.")
    ] = "error",
    preset: Annotated[str, typer.Option(help="Filter for the log (policyfactory workload clean).")] = "default",
    seed: Annotated[int, typer.Option(help="Seed of the tuples and of the orders.")] = 1,
    jobs: JobsOption = None,
    backend: BackendOption = None,
    scheduler: SchedulerOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run left in DIR.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print all tables; without it they are in a file.")
    ] = False,
) -> None:
    """Learn a policy from a log and test it: generate, fit and evaluate in one, on three parts of the log.

    Formulas are learned from the first half of the jobs; on the third quarter they compete with the classical
    policies, and the best is chosen; the last quarter, which nothing has seen, says what the choice is worth. An
    interrupted run goes on with the same command.
    """
    from policyfactory.workload.clean import read

    _check(metric, threshold, windows, seed)
    workers_of(jobs, backend, scheduler)
    if "," in str(output):
        raise UsageError(f"--output {str(output)!a}: policies are listed by commas; name a folder without one")
    begin = time.monotonic()
    workload = read(log, preset=preset, estimate_missing=estimate_missing, processors=processors)
    if len(workload) < _FEWEST:
        raise WorkloadError(
            f"{log}: {len(workload):,} jobs are left after cleaning, and {_FEWEST} are the least to learn from, "
            "choose by and test on; import a longer time"
        )
    cut = windows or _windows(workload)
    sharing = _sharing(jobs, backend, scheduler)
    reading = ("--preset", preset, *(("--processors", str(processors)) if processors else ()))
    judging = (*reading, *sharing, "--estimate-missing", estimate_missing, "--threshold", threshold)
    judging += ("--metrics", ",".join(dict.fromkeys([metric, *_METRICS.split(",")])))
    judging += () if cut is None else ("--windows", cut)
    folder = check_directory(output)
    plan = Plan(
        log,
        workload.name,
        folder,
        _jobs(log),
        _epoch(workload),
        tuples,
        trials,
        seed,
        threshold,
        (*reading, *sharing),
        judging,
        workload.cleaning.sha256,
    )
    # Not of the policy itself: the step that writes it holds that.
    with exclusive(folder / "learn"):
        _make_room(folder, overwrite=overwrite)
        if cut is None:
            warn("the log is too short for several windows: each comparison is one case, without an interval")
        if plan.epoch is None:
            warn(
                "the log has no date (UnixStartTime): r counts from the start of each window, which production has not"
            )
        candidates, chosen = _run(plan, None if verbose else folder / _STEPS)
        Manifest(
            "learned-policy",
            command_line(),
            seed,
            inputs={log.name: workload.cleaning.sha256},
            parameters={
                "metric": metric,
                "windows": cut,
                "threshold": threshold,
                "epoch": plan.epoch,
                "chosen": chosen,
            },
            outputs={_POLICY: sha256_file(folder / _POLICY)},
        ).write(Manifest.path_for(folder / _POLICY))
    from policyfactory.cli.learn_words import close

    # The last job's day: about when the policy is put to use.
    last = None if workload.unix_start is None else workload.unix_start + int(workload.submit[-1]) // workload.ticks
    close(plan, evaluation_of(folder / "test"), metric, candidates, last)
    shown = "" if verbose else f", {_STEPS}: all tables"
    note(f"everything is in {folder}/ ({time.monotonic() - begin:.0f} s): test/report.html: the evidence{shown}")


def _check(metric: str, threshold: str, windows: str | None, seed: int) -> None:
    """Refuse what a later step would refuse, before any work."""
    from policyfactory.core.random import check_seed
    from policyfactory.core.units import parse_duration
    from policyfactory.simulate.metrics import METRICS
    from policyfactory.workload.windows import parse_windows

    check_seed(seed)
    parse_duration(threshold, unit=True)
    if metric not in METRICS:
        raise UsageError(f"--metric: unknown metric {metric!a}; choose from {', '.join(METRICS)}")
    if windows is not None:
        parse_windows(windows)


def _sharing(jobs: int | None, backend: Backend | None, scheduler: str | None) -> tuple[str, ...]:
    """Return the options that say who does the work, as they were given."""
    given = {"--jobs": jobs, "--backend": backend, "--scheduler": scheduler}
    return tuple(word for name, value in given.items() if value is not None for word in (name, str(value)))


def _make_room(folder: Path, *, overwrite: bool) -> None:
    """Refuse to replace a finished run, or remove it; what an interrupted one left is gone on with."""
    if not (folder / _POLICY).exists():
        return
    if not overwrite:
        raise OutputError(
            f"{folder}: holds a learned policy ({_POLICY}); add --overwrite to replace it, or name another folder "
            "with --output"
        )
    (folder / _POLICY).unlink()
    remove_results(folder)


def _jobs(log: Path) -> int:
    from policyfactory.workload.cutting import in_order
    from policyfactory.workload.swf.files import read_swf

    return len(in_order(read_swf(log))[0])


def _windows(workload: Workload) -> str | None:
    """Return windows of which a quarter of the jobs has several."""
    quarter = workload.submit[3 * len(workload) // 4 :]
    lasts = int(quarter[-1] - quarter[0]) // workload.ticks
    for days in _LENGTHS:
        if lasts >= _WINDOWS * days * DAY:
            return f"{days}d"
    jobs = len(quarter) // _WINDOWS
    return f"{_WINDOWS}x{jobs}jobs" if jobs >= _FEWEST // 2 else None


def _epoch(workload: Workload) -> int | None:
    """Return the day (UTC) on which the log begins: r has in production the size that it has in the tests."""
    return None if workload.unix_start is None else workload.unix_start // DAY * DAY


def _run(plan: Plan, quiet: Path | None) -> tuple[int, str]:
    """Run all steps up to the policy's file; return how many policies competed, and the name of the best."""
    folder, half, quarter = plan.folder, plan.jobs // 2, plan.jobs // 4
    parts = {
        "training": ("The first half of the jobs, to learn from", ("--jobs", str(half))),
        "choosing": ("The third quarter, to choose by", ("--skip", str(half), "--jobs", str(quarter))),
        "test": ("The last quarter, to test the choice on", ("--skip", str(half + quarter))),
    }
    place = {part: f"{folder}/{plan.name}-{part}.swf" for part in parts}
    steps = [
        Step(title, ("workload", "window", str(plan.log), place[part], *options))
        for part, (title, options) in parts.items()
    ]
    fits = fit_steps(str(folder), place["training"], plan.tuples, plan.trials, plan.seed)
    fits[0] = Step(fits[0].title, (*fits[0].arguments, *plan.scoring))
    total = len(steps) + len(fits) + 3
    run_steps(steps, 1, total, quiet=quiet)
    if sha256_file(plan.log) != plan.sha256:
        raise InputError(
            f"{plan.log}: was changed while it was read, so that the parts are not of one log; run the command again, "
            "on a copy if it keeps growing"
        )
    run_steps(fits, len(steps) + 1, total, quiet=quiet)
    rivals = _dated(plan, [*CLASSICAL, *learned_models(folder)])
    choose = _evaluate(plan, "The formulas against the classical policies", "choosing", place, tuple(rivals.values()))
    run_steps([choose], total - 2, total, quiet=quiet)
    winner = evaluation_of(folder / "choosing")["winner"]
    source = rivals.get(winner) or model_named(folder, winner)
    # The baseline, and two that are hard to beat, stand beside the choice.
    beside = tuple(dict.fromkeys((rivals["FCFS"], rivals["SAF"], rivals["F1"], source)))
    export = ("export", source, "--to", "json", "--threshold", plan.threshold, "--output", f"{folder}/{_POLICY}")
    last = [
        _evaluate(plan, f"The choice, {winner}, on jobs that chose nothing", "test", place, beside),
        Step("The policy as a file", export),
    ]
    run_steps(last, total - 1, total, quiet=quiet)
    return len(rivals), winner


def _dated(plan: Plan, specs: list[str]) -> dict[str, str]:
    """Return name -> what to evaluate; those with r become files whose r counts from the first day of the log.

    From the start of a window log10(r) is steep, a year after a fixed date it is flat: the same formula, another order.
    """
    from policyfactory.export.prepare import prepare
    from policyfactory.policy.catalogue import resolve_model
    from policyfactory.policy.store import save_model

    found: dict[str, str] = {}
    for spec in specs:
        model = resolve_model(spec)
        name = model.policy.name
        found[name] = spec
        if plan.epoch is not None and "r" in model.policy.variables:
            found[name] = f"{check_directory(plan.folder / 'dated')}/{name}.json"
            save_model(prepare(model, epoch=plan.epoch), Path(found[name]))
    return found


def _evaluate(plan: Plan, title: str, part: str, place: dict[str, str], policies: tuple[str, ...]) -> Step:
    arguments = ("evaluate", place[part], "--policies", ",".join(policies), *plan.judging)
    return Step(title, (*arguments, "--output", f"{plan.folder}/{part}", "--overwrite"))
