"""``policyfactory learn``: from a log to a policy for it, and the evidence on jobs that had no part in the choice."""

from __future__ import annotations

import dataclasses
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli.compiling import note_compiling
from policyfactory.cli.exits import leave
from policyfactory.cli.options import (
    READING,
    BackendOption,
    MaxLongest,
    MaxP99,
    SchedulerOption,
    WorkersOption,
    complete_metrics,
    with_options,
    workers_of,
)
from policyfactory.core.text import format_duration
from policyfactory.evaluate.options import OPTIONS
from policyfactory.learn.options import LearnOptions
from policyfactory.report.terminal import console, note, show_verdict, warn

if TYPE_CHECKING:
    from policyfactory.learn.comparing import Compared
    from policyfactory.learn.learned import Learned

__all__ = ["demo", "learn"]

_BACKFILL = dataclasses.replace(
    OPTIONS["backfill"],
    option=dataclasses.replace(
        OPTIONS["backfill"].option,
        stated="easy where the policy is chosen, slurm on the second half; with a site slurm",
    ),
)


@with_options([*(OPTIONS[name] for name in READING), _BACKFILL, OPTIONS["site"]])
def learn(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="Log in the Standard Workload Format (workload import makes one).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for everything.")] = Path(
        "learned"
    ),
    tuples: Annotated[int, typer.Option(help="Tuples to score.", min=32)] = LearnOptions.tuples,
    trials: Annotated[int, typer.Option(help="Trials a tuple.", min=256)] = LearnOptions.trials,
    metric: Annotated[
        str, typer.Option(help="Metric whose best value chooses the policy.", autocompletion=complete_metrics)
    ] = LearnOptions.metric,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Jobs that have waited longer go first: 20h; inf: never; auto: chosen on the log too."
        ),
    ] = str(LearnOptions.threshold),
    windows: Annotated[
        str | None,
        typer.Option(
            metavar="NxLENGTH",
            help="Cut the jobs to choose by and to test on (default: one continuous simulation).",
        ),
    ] = LearnOptions.windows,
    predictions: Annotated[
        bool,
        typer.Option(
            help="Let formulas compete that read what is predicted of a job from its user's past; --no-predictions: "
            "for a site that can run no predictor."
        ),
    ] = LearnOptions.predictions,
    replicas: Annotated[
        int,
        typer.Option(
            help="Replicas of the second quarter to choose by, and of the second half to test on (users' weeks moved, "
            "loads of 0.8 to 1.2); 0: choose by the second quarter itself."
        ),
    ] = LearnOptions.replicas,
    max_p99: MaxP99 = LearnOptions.max_p99,
    max_longest: MaxLongest = LearnOptions.max_longest,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out",
            metavar="NAME",
            help="What predictions do not look at, though the log has it: requested_memory, group, executable, queue, "
            "partition; can be repeated.",
        ),
    ] = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            help="Go on where the log has more than ten times the work that its machine can do, or with --site its "
            "replay is far from the record.",
        ),
    ] = LearnOptions.anyway,
    seed: Annotated[int, typer.Option(help="Seed of the tuples, orders and replicas.")] = LearnOptions.seed,
    workers: WorkersOption = None,
    backend: BackendOption = None,
    scheduler: SchedulerOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run left in DIR.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print all tables; without it they are in a file.")
    ] = False,
    **reading: Any,
) -> None:
    """Learn a policy from a log and test it: generate, fit and evaluate in one, on three parts of the log.

    Formulas are learned from the first quarter of the jobs; on replicas of the second quarter they, and formulas that
    read predictions, compete with the published policies, and the best is chosen; the second half, which nothing has
    seen, says what the choice is worth: under Slurm's own rules, with EASY's values beside them, unless --backfill says
    otherwise. An interrupted run goes on with the same command. With --site the log's own jobs are first replayed
    on it, under the site's priorities; where that is far from the record the command stops there, before hours of
    work; with --anyway it goes on, and recommends nothing.
    """
    reading |= {"predictions": predictions, "replicas": replicas, "leave_out": tuple(leave_out or ())}
    reading |= {"anyway": anyway, "max_p99": max_p99, "max_longest": max_longest}
    options = LearnOptions(tuples, trials, metric, threshold, windows, seed=seed, **reading)
    who = workers_of(workers, backend, scheduler)

    from policyfactory.cli.screen import Screen
    from policyfactory.learn.comparing import STEPS
    from policyfactory.learn.run import learn as learn_policy

    first = note_compiling if options.judged_under_slurm else lambda: None
    begin = time.monotonic()
    with Screen(None if verbose else STEPS, first) as screen:
        learned = learn_policy(log, options, output=output, overwrite=overwrite, workers=who, progress=screen)
    _close(learned, output, log)
    shown = "" if verbose else f", {STEPS}: all tables"
    note(f"everything is in {output}/ ({time.monotonic() - begin:.0f} s): test/report.html: the evidence{shown}")
    leave(describes=learned.fidelity is None or learned.fidelity.light != "far")


def _close(learned: Learned, folder: Path, log: Path) -> None:
    """Print the closing words, and the next command where the choice is better."""
    console().print(learned.choice_words, markup=False, soft_wrap=True)
    show_verdict(learned.verdict)
    for text in learned.model.warnings:
        warn(f"of the fit of {learned.policy.name}: {text}")
    if learned.verdict.light == "better":
        note(f"next: {shlex.join(learned.export_command(f'{folder}/policy.json', str(log)))}")


# ``policyfactory demo`` -----------------------------------------------------------------------------------------------

# The whole job on the embedded workload, each step the command that a user would type.


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for everything that is made.")] = Path("demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier demo left.")] = False,
    tuples: Annotated[int, typer.Option(help="Tuples to score.", min=32)] = 1000,
    trials: Annotated[int, typer.Option(help="Trials a tuple.", min=256)] = 4096,
) -> None:
    """Do the main job end to end on the embedded workload: generate, fit, evaluate, export; about a minute."""
    from policyfactory.cli.options import workers_of
    from policyfactory.cli.screen import Screen
    from policyfactory.learn.demonstration import demonstrate

    begin = time.monotonic()
    with Screen() as screen:
        compared = demonstrate(
            output, overwrite=overwrite, tuples=tuples, trials=trials, workers=workers_of(None), progress=screen
        )
    _close_demo(compared)
    seconds = format_duration(time.monotonic() - begin)
    note(f"everything is in {output}/ ({seconds}); evaluation/report.html says how far to trust it")


def _close_demo(compared: Compared) -> None:
    from policyfactory.learn.comparing import formula_in_words

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
