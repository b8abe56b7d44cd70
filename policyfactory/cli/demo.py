"""``policyfactory demo``: the whole job on the embedded workload, each step the command that a user would type."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyfactory.core.units import format_duration
from policyfactory.report.terminal import console, note, show_verdict

if TYPE_CHECKING:
    from policyfactory.learn.comparing import Compared

__all__ = ["demo"]


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for everything that is made.")] = Path("demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier demo left.")] = False,
    tuples: Annotated[int, typer.Option(help="Tuples to score.", min=32)] = 1000,
    trials: Annotated[int, typer.Option(help="Trials a tuple.", min=256)] = 4096,
) -> None:
    """Do the main job end to end on the embedded workload: generate, fit, evaluate, export; about a minute."""
    from policyfactory.cli.screen import Screen
    from policyfactory.cli.workers_options import workers_of
    from policyfactory.learn.demonstration import demonstrate

    begin = time.monotonic()
    with Screen() as screen:
        compared = demonstrate(
            output, overwrite=overwrite, tuples=tuples, trials=trials, workers=workers_of(None), progress=screen
        )
    _close(compared)
    seconds = format_duration(time.monotonic() - begin)
    note(f"everything is in {output}/ ({seconds}); evaluation/report.html says how far to trust it")


def _close(compared: Compared) -> None:
    from policyfactory.learn.words import formula_in_words

    policy = compared.winner.model.policy
    screen = console()
    screen.rule("[bold]In words[/bold]", align="left")
    for line in compared.outcome.words:
        screen.print(line, markup=False)
    if compared.outcome.verdict is not None:
        show_verdict(compared.outcome.verdict)
    screen.print(f"{policy.name} sorts the queue by {formula_in_words(policy)}, the lower value first.", markup=False)
    # The best of many on some windows is in part the luckiest on them: the demo must not teach otherwise.
    screen.print(
        f"It is the best of {len(compared.rivals)} on the jobs by which it was chosen. The intervals compare each "
        f"policy with {compared.rivals[0].name}, not with the runner-up: look at the ranks, and evaluate "
        "the first few on another log before you trust their order.",
        markup=False,
    )
