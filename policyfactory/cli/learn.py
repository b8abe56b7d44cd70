"""``policyfactory learn``: from a log to a policy for it, and the evidence on jobs that chose nothing."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli.console import console, note, warn
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
from policyfactory.core.artefact import Manifest, check_directory, command_line, exclusive, sha256_file
from policyfactory.core.errors import OutputError, UsageError, WorkloadError
from policyfactory.core.units import DAY, format_duration

if TYPE_CHECKING:
    from policyfactory.workload.jobs import Workload

__all__ = ["learn"]

_POLICY = "policy.json"
# A tuple is 48 jobs, and a comparison of fewer jobs than a tuple has says nothing.
_FEWEST = 200
_WINDOWS = 6
_LENGTHS = (15, 7, 3, 1)
_METRICS = "mean_bsld,mean_wait,p95_wait,max_wait,utilisation"


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
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run left in DIR.")] = False,
) -> None:
    """Learn a policy from a log and test it: generate, fit and evaluate in one, on three parts of the log.

    Formulas are learned from the first half of the jobs; on the third quarter they compete with the classical
    policies, and the best is chosen; the last quarter, which nothing has seen, says what the choice is worth. An
    interrupted run goes on with the same command.
    """
    from policyfactory.workload.clean import load_workload

    _check(metric, threshold, windows, seed)
    begin = time.monotonic()
    workload, cleaning = load_workload(log, preset=preset, estimate_missing=estimate_missing, machine=processors)
    if len(workload) < _FEWEST:
        raise WorkloadError(
            f"{log}: {len(workload):,} jobs are left after cleaning, and {_FEWEST} are the least to learn from, "
            "choose by and test on; import a longer time"
        )
    folder = check_directory(output)
    with exclusive(folder / _POLICY):
        if (folder / _POLICY).exists():
            if not overwrite:
                raise OutputError(
                    f"{folder}: holds a learned policy ({_POLICY}); add --overwrite to replace it, or name another "
                    "folder with --output"
                )
            (folder / _POLICY).unlink()
            remove_results(folder)
        common = ["--preset", preset, *(("--processors", str(processors)) if processors else ())]
        judged = [*common, "--estimate-missing", estimate_missing, "--threshold", threshold]
        judged += ["--metrics", ",".join(dict.fromkeys([metric, *_METRICS.split(",")]))]
        cut = windows or _windows(workload)
        if cut is None:
            warn("the log is too short for several windows: each comparison is one case, without an interval")
        else:
            judged += ["--windows", cut]
        _run(log, folder, (tuples, trials, seed), threshold, common, judged)
        chosen, found = _result(folder)
        Manifest(
            "learned-policy",
            command_line(),
            seed,
            inputs={log.name: cleaning.sha256},
            parameters={"metric": metric, "windows": cut, "threshold": threshold, "chosen": chosen},
            outputs={_POLICY: sha256_file(folder / _POLICY)},
        ).write(Manifest.path_for(folder / _POLICY))
    _close(log, folder, chosen, found, metric, time.monotonic() - begin)


def _check(metric: str, threshold: str, windows: str | None, seed: int) -> None:
    """Refuse what a later step would refuse, before any work."""
    from policyfactory.core.random import check_seed
    from policyfactory.core.units import parse_duration
    from policyfactory.evaluate.metrics import METRICS
    from policyfactory.workload.windows import parse_windows

    check_seed(seed)
    parse_duration(threshold, unit=True)
    if metric not in METRICS:
        raise UsageError(f"--metric: unknown metric {metric!a}; choose from {', '.join(METRICS)}")
    if windows is not None:
        parse_windows(windows)


def _windows(workload: Workload) -> str | None:
    """Return windows of which a quarter of the jobs has several."""
    quarter = workload.submit[3 * len(workload) // 4 :]
    lasts = int(quarter[-1] - quarter[0]) // workload.ticks
    for days in _LENGTHS:
        if lasts >= _WINDOWS * days * DAY:
            return f"{days}d"
    jobs = len(quarter) // _WINDOWS
    return f"{_WINDOWS}x{jobs}jobs" if jobs >= _FEWEST // 2 else None


def _run(
    log: Path, folder: Path, how: tuple[int, int, int], threshold: str, common: list[str], judged: list[str]
) -> None:
    """Run all steps up to the policy's file."""
    from policyfactory.workload.cutting import in_order
    from policyfactory.workload.swf import read_swf

    tuples, trials, seed = how
    jobs = len(in_order(read_swf(log))[0])
    half, quarter = jobs // 2, jobs // 4
    parts = {
        "training": ("The first half of the jobs, to learn from", ("--jobs", str(half))),
        "choosing": ("The third quarter, to choose by", ("--skip", str(half), "--jobs", str(quarter))),
        "test": ("The last quarter, to test the choice on", ("--skip", str(half + quarter))),
    }
    place = {name: f"{folder}/{name}.swf" for name in parts}
    steps = [
        Step(title, ("workload", "window", str(log), place[name], *options)) for name, (title, options) in parts.items()
    ]
    fits = fit_steps(str(folder), place["training"], tuples, trials, seed)
    fits[0] = Step(fits[0].title, (*fits[0].arguments, *common))
    steps += fits
    total = len(steps) + 3
    run_steps(steps, 1, total)
    rivals = (*CLASSICAL, *learned_models(folder))
    choose = _evaluate("The formulas against the classical policies", place["choosing"], rivals, judged)
    run_steps([choose], total - 2, total)
    winner = evaluation_of(folder / "choosing")["winner"]
    source = model_named(folder, winner)
    # The baseline, and two that are hard to beat, stand beside the choice.
    beside = tuple(dict.fromkeys(("FCFS", "SAF", "F1", source)))
    last = [
        _evaluate(f"The choice, {winner}, on jobs that chose nothing", place["test"], beside, judged),
        Step(
            "The policy as a file",
            ("export", source, "--to", "json", "--threshold", threshold, "--output", f"{folder}/{_POLICY}"),
        ),
    ]
    run_steps(last, total - 1, total)


def _evaluate(title: str, log: str, policies: tuple[str, ...], judged: list[str]) -> Step:
    arguments = ("evaluate", log, "--policies", ",".join(policies), *judged)
    return Step(title, (*arguments, "--output", str(Path(log).with_suffix("")), "--overwrite"))


def _result(folder: Path) -> tuple[str, dict[str, Any]]:
    from policyfactory.policy.catalogue import resolve

    return resolve(str(folder / _POLICY)).name, evaluation_of(folder / "test")


def _close(log: Path, folder: Path, chosen: str, found: dict[str, Any], metric: str, seconds: float) -> None:
    from policyfactory.policy.catalogue import resolve_model
    from policyfactory.policy.simplify import round_coefficients

    model = resolve_model(str(folder / _POLICY))
    formula = round_coefficients(model.policy.expression, 4).text()
    screen = console()
    screen.rule("[bold]In words[/bold]", align="left")
    screen.print(
        f"{chosen} was the best of {len(CLASSICAL) + len(learned_models(folder))} policies on the third quarter of the "
        f"jobs. It sorts the queue by {formula}, the lower value first.",
        markup=False,
    )
    screen.print(verdict(chosen, found, metric), markup=False)
    for line in found["words"]:
        screen.print(line, markup=False)
    for text in model.warnings:
        warn(f"of the fit of {chosen}: {text}")
    note(f"everything is in {folder}/ ({format_duration(seconds)}); test/report.html is the evidence")
    command = ["policyfactory", "export", f"{folder}/{_POLICY}", "--workload", str(log), "--output", "job_submit.lua"]
    if "r" in model.policy.variables:
        command += ["--epoch", "YYYY-MM-DD"]
    note(f"next: {shlex.join(command)}")


def verdict(chosen: str, found: dict[str, Any], metric: str) -> str:
    """Return what the last quarter says about the choice, in words.

    Parameters
    ----------
    chosen : str
        The policy.
    found : dict
        The evaluation of the last quarter.
    metric : str
        By what was chosen.
    """
    baseline = CLASSICAL[0]
    if chosen == baseline:
        return f"Nothing was better than {baseline} there: leave the queue as it is."
    rows = {row["metric"]: row for row in found["differences"] if row["policy"] == chosen}
    row = rows.get(metric)
    if row is None or row["verdict"] not in {"better", "worse"}:
        return (
            f"On the last quarter, which chose nothing, it is not shown to be better than {baseline} in {metric}"
            f"{_difference(row)}: there is no evidence yet for a change of the queue; import a longer time."
        )
    if row["verdict"] == "worse":
        return (
            f"On the last quarter, which chose nothing, it is WORSE than {baseline} in {metric}{_difference(row)}: "
            "do not use it; what was learned does not hold for later jobs."
        )
    prices = [f"{name}{_difference(other)}" for name, other in rows.items() if other["verdict"] == "worse"]
    paid = f" It pays for that in {', '.join(prices)}." if prices else " No other metric shown there is worse."
    return (
        f"On the last quarter, which chose nothing, it is better than {baseline} in {metric}{_difference(row)}.{paid}"
    )


def _difference(row: dict[str, Any] | None) -> str:
    """Return a difference with its interval, in brackets."""
    from policyfactory.evaluate.report.display import scale_for

    if row is None:
        return ""
    ends = [row["interval"]["low"], row["interval"]["high"]] if row["interval"] else []
    scale = scale_for(row["unit"], [row["difference"], *ends])
    value, *interval = (scale.text(end, signed=True) for end in (row["difference"], *ends))
    certain = f", 95 % interval {interval[0]} to {interval[1]}" if interval else ", one case, no interval"
    return f" ({value}{scale.suffix}{certain})"
