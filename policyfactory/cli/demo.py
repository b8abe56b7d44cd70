"""``policyfactory demo``: the whole job on the embedded workload, each step the command that a user would type."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from policyfactory.cli.console import console, note
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
from policyfactory.core.artefact import check_directory, exclusive
from policyfactory.core.units import format_duration

__all__ = ["demo"]


def _workloads(training: str, test: str) -> list[Step]:
    lublin = ("workload", "lublin", "--processors", "256", "--jobs", "20000", "--estimates", "tsafrir")
    return [
        Step(
            "A workload to learn from (Lublin-Feitelson model, users' requests by Tsafrir's model)",
            (*lublin, "--seed", "1", "--output", training),
        ),
        Step("Another one to test on, which nothing has learned from", (*lublin, "--seed", "2", "--output", test)),
    ]


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for everything that is made.")] = Path("demo"),
    tuples: Annotated[int, typer.Option(help="Tuples to score.", min=32)] = 1000,
    trials: Annotated[int, typer.Option(help="Trials a tuple.", min=256)] = 4096,
) -> None:
    """Do the main job end to end on the embedded workload: generate, fit, evaluate, export; about a minute."""
    begin = time.monotonic()
    with exclusive(check_directory(output) / "demo"):
        # A second demo starts afresh: an old score table is not resumed.
        remove_results(output)
        _run_all(output, tuples, trials, begin)


def _run_all(output: Path, tuples: int, trials: int, begin: float) -> None:
    training, test = f"{output}/training.swf", f"{output}/test.swf"
    steps = [*_workloads(training, test), *fit_steps(str(output), training, tuples, trials, seed=1)]
    total = len(steps) + 2
    run_steps(steps, 1, total)
    evaluate: tuple[str, ...] = ("evaluate", test, "--policies", ",".join((*CLASSICAL, *learned_models(output))))
    evaluate += ("--backfill", "easy", "--decide-by", "request", "--windows", "10x15d")
    evaluate += ("--metrics", "mean_bsld,mean_wait,max_wait", "--output", f"{output}/evaluation", "--overwrite")
    title = "The best of both against the classical policies under EASY backfilling, deciding by requested times"
    run_steps([Step(title, evaluate)], total - 1, total)
    summary = evaluation_of(output / "evaluation")
    source = model_named(output, summary["winner"])
    for target, file in (("python", "winner.py"), ("lua", "winner.lua")):
        # r needs a fixed date in production; any will do for a demonstration.
        arguments = ("export", source, "--to", target, "--epoch", "2026-01-01")
        written = ("--output", f"{output}/{file}", "--overwrite")
        run_steps([Step(f"The winner, {summary['winner']}, as {target}", (*arguments, *written))], total, total)
    _close(output, source, summary, time.monotonic() - begin)


def _close(output: Path, source: str, summary: dict[str, Any], seconds: float) -> None:
    from policyfactory.policy.catalogue import resolve
    from policyfactory.policy.simplify import round_coefficients

    policy = resolve(source)
    formula = round_coefficients(policy.expression, 4).text()
    screen = console()
    screen.rule("[bold]In words[/bold]", align="left")
    for line in summary["words"]:
        screen.print(line, markup=False)
    screen.print(f"{policy.name} sorts the queue by {formula}, the lower value first.", markup=False)
    # The best of many on some windows is in part the luckiest on them: the demo must not teach otherwise.
    policies = len({row["policy"] for row in summary["summary"]})
    screen.print(
        f"It is the best of {policies} on the windows that chose it. The intervals compare each policy with "
        f"{summary['differences'][0]['baseline']}, not with the runner-up: look at the ranks, and evaluate "
        "the first few on another log before you trust their order.",
        markup=False,
    )
    note(f"everything is in {output}/ ({format_duration(seconds)}); evaluation/report.html says how far to trust it")
