"""``policyfactory train``: learn a policy with the simulator in the loop, and judge it on later windows of the log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from policyfactory.cli import options as option
from policyfactory.cli.options import WORKERS, with_options, workers_of
from policyfactory.core.options import declared, options_of
from policyfactory.report.terminal import note, warn
from policyfactory.search.options import JudgeOptions, SearchOptions, TrainOptions

if TYPE_CHECKING:
    from policyfactory.search.learner import Learner


@with_options([*declared(TrainOptions).values(), *declared(SearchOptions).values(), *WORKERS])
def train(
    log: option.PastLog,
    output: option.LearningOutput = Path("trained"),
    learner: Annotated[
        Literal["search", "ppo"],
        typer.Option(
            help="How: search finds the coefficients of formulas by CMA-ES; ppo trains a network by proximal policy "
            "optimisation (policyfactory[rl])."
        ),
    ] = "search",
    training: Annotated[
        Literal["ours", "paper"],
        typer.Option(
            "--training",
            help="Of ppo: ours compares rollouts of the same window; paper is as RLScheduler was trained.",
        ),
    ] = "ours",
    rounds: Annotated[int | None, typer.Option(help="Of ppo: rounds of rollouts and updates.")] = None,
    filtering: Annotated[
        Literal["none", "paper", "code"],
        typer.Option(
            help="Of ppo: windows of the first rounds (--set filtered=N): all (none), or those on which SJF is neither "
            "very good nor very bad, by the paper's rule or by its program's (code)."
        ),
    ] = "none",
    device: Annotated[Literal["cpu", "cuda"], typer.Option(help="Of ppo: what calculates the updates.")] = "cpu",
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Of ppo: another value than the preset's of one of its options (docs/train.md): --set rate=0.001; "
            "can be repeated.",
        ),
    ] = None,
    pick: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|NUMBER",
            help="Search nothing: make this member of the front in --output its policy.json (with --overwrite).",
        ),
    ] = None,
    overwrite: option.Overwrite = False,
    **options: Any,
) -> None:
    """Learn a policy with the simulator in the loop, and judge it on windows later in time.

    Candidates are learned on windows of the first part of the log, one is chosen by the second, and the third says what
    it is worth beside SAF and p*sqrt(q). An interrupted run goes on with the same command.

    Example: policyfactory train site.swf.gz --family linear --output trained
    """
    from policyfactory.cli.screen import BarScreen
    from policyfactory.cli.screens import show_trained
    from policyfactory.search.formulas import FormulaSearch
    from policyfactory.search.run import train as train_policy

    if pick is not None:
        _pick(output, pick, overwrite=overwrite)
        return
    task, searching = options_of(TrainOptions, options), options_of(SearchOptions, options)
    who = workers_of(options)
    learners: dict[str, Callable[[], Learner]] = {
        "search": lambda: FormulaSearch.of(searching),
        "ppo": lambda: _ppo(training, change, iterations=rounds, filtering=filtering, device=device),
    }
    ppo = {"training": training != "ours", "rounds": rounds, "filtering": filtering != "none"}
    _refuse_idle(learner, {**ppo, "device": device != "cpu", "set": change}, searching)
    algorithm = learners[learner]()
    begin = time.monotonic()
    with BarScreen() as screen:
        trained = train_policy(log, algorithm, task, output=output, overwrite=overwrite, workers=who, follower=screen)
    show_trained(trained)
    files = "policy.json, report.json, history.csv, learning.png" + ", front.json, front.png" * bool(trained.front)
    note(f"everything is in {output}/ ({time.monotonic() - begin:.0f} s): {files}")


def _refuse_idle(learner: str, ppo: dict[str, object], searching: SearchOptions) -> None:
    """Refuse options of the learner that was not chosen; ``ppo``: whether each of its own was given."""
    from policyfactory.core.errors import UsageError

    plain = SearchOptions()
    search = {
        name: getattr(searching, known.field) != getattr(plain, known.field)
        for name, known in declared(SearchOptions).items()
    }
    other, idle = ("ppo", ppo) if learner == "search" else ("search", search)
    if given := [f"--{name.replace('_', '-')}" for name, is_given in idle.items() if is_given]:
        raise UsageError(
            f"{', '.join(given)}: said to the learner {other}, and --learner {learner} would ignore it; leave it out, "
            f"or give --learner {other}"
        )


def _pick(folder: Path, which: str, *, overwrite: bool) -> None:
    from policyfactory.search.run import pick

    model = pick(folder, which, overwrite=overwrite)
    note(f"{folder}/policy.json is now {model.policy.name}: {model.policy.formula}")
    for text in model.warnings:
        warn(text)


def _ppo(preset: Literal["ours", "paper"], change: list[str] | None, **named: Any) -> Learner:
    from policyfactory.search.reinforce.learner import Reinforcement
    from policyfactory.search.reinforce.options import changes_of

    return Reinforcement.of(preset, **{**named, **changes_of(change or [])})


# ``policyfactory judge`` ----------------------------------------------------------------------------------------------

# The score of other people's formulas on training replicas of a log, as JSON.


_STDIN = Path("-")


@with_options([*declared(JudgeOptions).values(), *WORKERS])
def judge(
    log: option.PastLog,
    formula: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FORMULA",
            help="Candidates: 'ln(e) - ln(s) + 0.4*ln(q)'; behind -- where one begins with a minus sign.",
        ),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='More of them: a formula a line, or JSON lines {"name": ..., "formula": ...}; -: standard input.',
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="JSON file (default: standard output).")
    ] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Judge them on the last part of the log too; this is counted.")
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where candidates and held-out verdicts are counted (default: judge-ledger.json beside the output).",
        ),
    ] = None,
    overwrite: option.Overwrite = False,
    **options: Any,
) -> None:
    """Score candidates, from whatever search they come, on replicas of the first part of a log.

    A score is the ratio of the mean bounded slowdown to that of the published policy that is best there, with its
    interval. A candidate that cannot be used has an error and stops no other. --held-out asks the rest of the log;
    intervals are adjusted by the number of candidates ever tried on it.

    Example: policyfactory judge site.swf.gz 'p*sqrt(q)' 'ln(e) - ln(s) + 0.4*ln(q)'
    """
    from policyfactory.cli.screen import BarScreen
    from policyfactory.core.files import atomic_write, dump_json, exclusive, refuse_earlier
    from policyfactory.core.text import counted as words
    from policyfactory.search.arena import LEDGER, Arena

    given = [*(formula or []), *_lines(candidates)]
    how = options_of(JudgeOptions, options)
    who = workers_of(options)
    refuse_earlier(output, overwrite=overwrite)
    beside = LEDGER if output is None else output.parent / LEDGER
    with exclusive(output), BarScreen() as screen:
        arena = Arena(log, how, ledger=ledger or beside, workers=who, follower=screen)
        found = arena.judge(given, held_out=held_out)
        text = dump_json(found.as_dict())
        if output is not None:
            atomic_write(output, text)
    if output is None:
        typer.echo(text, nl=False)
        return
    many = words(len(found.candidates), "candidate")
    note(
        f"{output}: {many} against {found.baseline.policy.name}, the published policy that is best there; "
        f"{words(found.counted.tried, 'candidate')} so far on this log"
    )


def _lines(path: Path | None) -> list[str]:
    """Return the lines of the file of candidates, or of standard input."""
    from policyfactory.core.errors import InputError
    from policyfactory.core.inputs import read_bytes
    from policyfactory.search.replicated import MOST_BYTES, lines_of

    if path is None:
        return []
    if path != _STDIN:
        return lines_of(read_bytes(path, limit=MOST_BYTES))
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"standard input: has more than the {MOST_BYTES:,} bytes that are read; split it")
    return lines_of(data)
