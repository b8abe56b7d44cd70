"""``policyfactory learn``: from a log to a policy for it, and the evidence on jobs that had no part in the choice."""

from __future__ import annotations

import math
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli import options as option
from policyfactory.cli.options import WORKERS, leave, note_compiling, with_options, workers_of
from policyfactory.core.options import declared, options_of
from policyfactory.core.text import format_duration
from policyfactory.learning.options import DEMO_TRIALS, DEMO_TUPLES, LearnOptions
from policyfactory.report.terminal import console, note, say, show_verdict, warn

if TYPE_CHECKING:
    from policyfactory.learning.comparing import Compared
    from policyfactory.learning.learned import Learned


@with_options([*declared(LearnOptions).values(), *WORKERS])
def learn(
    log: option.PastLog,
    output: option.LearningOutput = Path("learned"),
    overwrite: option.Overwrite = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print all tables; without it they are in a file.")
    ] = False,
    **options: Any,
) -> None:
    """Learn a policy from a log and test it: generate, fit and evaluate in one, on three parts of the log.

    Formulas are learned from the first quarter of the jobs. On replicas of the second quarter they compete with
    published policies and formulas that read predictions; the best is tested on the second half, under Slurm's own
    rules unless --backfill says otherwise. An interrupted run goes on with the same command. With --site the log's own
    jobs are first replayed on it; where that is far from the record the command stops, or with --anyway goes on and
    recommends nothing.

    Example: policyfactory learn site.swf.gz --output learned
    """
    how = options_of(LearnOptions, options)
    who = workers_of(options)

    from policyfactory.cli.screen import Screen
    from policyfactory.learning.comparing import STEPS
    from policyfactory.learning.run import learn as learn_policy

    first = note_compiling if how.judged_under_slurm else lambda: None
    begin = time.monotonic()
    with Screen(None if verbose else STEPS, first) as screen:
        learned = learn_policy(log, how, output=output, overwrite=overwrite, workers=who, progress=screen)
    _close(learned, output, log)
    shown = "" if verbose else f", {STEPS}: all tables"
    note(f"everything is in {output}/ ({time.monotonic() - begin:.0f} s): test/report.html: the evidence{shown}")
    leave(describes=learned.fidelity is None or learned.fidelity.light != "far")


def _close(learned: Learned, folder: Path, log: Path) -> None:
    """Print the closing words, and the next command where the choice is better."""
    say(learned.choice_words)
    show_verdict(learned.verdict)
    for text in learned.model.warnings:
        warn(f"of the fit of {learned.policy.name}: {text}")
    if learned.verdict.light == "better":
        note(f"next: {shlex.join(learned.export_command(f'{folder}/policy.json', str(log)))}")


# ``policyfactory demo`` -----------------------------------------------------------------------------------------------

# The whole job on the embedded workload, each step the command that a user would type.


@with_options(
    [declared(LearnOptions)[name] for name in ("tuples", "trials")],
    defaults={"tuples": DEMO_TUPLES, "trials": DEMO_TRIALS},
)
def demo(
    output: option.LearningOutput = Path("demo"),
    overwrite: option.Overwrite = False,
    **options: Any,
) -> None:
    """Do the main job end to end on the embedded workload: generate, fit, evaluate, export; about a minute.

    Example: policyfactory demo
    """
    from policyfactory.cli.screen import Screen
    from policyfactory.learning.demonstration import demonstrate

    how, who = options_of(LearnOptions, options), workers_of({})
    begin = time.monotonic()
    with Screen() as screen:
        compared = demonstrate(
            output, overwrite=overwrite, tuples=how.tuples, trials=how.trials, workers=who, progress=screen
        )
    _close_demo(compared)
    seconds = format_duration(time.monotonic() - begin)
    note(f"everything is in {output}/ ({seconds}); evaluation/report.html says how far to trust it")


def _close_demo(compared: Compared) -> None:
    from policyfactory.learning.comparing import formula_in_words

    policy, outcome = compared.chosen.model.policy, compared.outcome
    screen = console()
    screen.rule("[bold]In words[/bold]", align="left")
    guard = "" if math.isinf(policy.threshold) else f"; who has waited {format_duration(policy.threshold)} goes first"
    allowed = ", ".join(f"{limit.guard} {limit.times:g}" for limit in LearnOptions().limits)
    screen.print(
        f"{policy.name} sorts the queue by {formula_in_words(policy)}, the lower value first{guard}. It was chosen on "
        f"other workloads, where its price may be at most, as ratios to {compared.rivals[0].name}: {allowed}; it is "
        "judged on one that had no part in that.",
        markup=False,
    )
    if outcome.verdict is not None:
        show_verdict(outcome.verdict)
    screen.rule("[bold]All policies on that workload[/bold]", align="left")
    for line in outcome.words:
        screen.print(line, markup=False)
    # The best of many on some weeks is in part the luckiest on them: the demo must not teach otherwise.
    screen.print(
        f"Who leads here was not chosen: of {len(compared.rivals)} one is the luckiest on these jobs, and nothing "
        f"bounds what it costs. The intervals compare each policy with {compared.rivals[0].name}, not with the "
        "runner-up.",
        markup=False,
    )
