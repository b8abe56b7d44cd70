"""``policyfactory train``: learn a policy with the simulator in the loop, and judge it on later windows of the log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from policyfactory.cli import options as option
from policyfactory.cli.options import BackendOption, SchedulerOption, WorkersOption, with_options, workers_of
from policyfactory.evaluate.options import OPTIONS
from policyfactory.report.terminal import note, warn

if TYPE_CHECKING:
    from policyfactory.search.learner import Learner

__all__ = ["judge", "train"]

Family = Annotated[
    list[str] | None,
    typer.Option(
        "--family",
        metavar="NAME|FORMULA",
        help="Of search: a family of formulas (power, curved, linear, stretch, ageing, fits, products; with "
        "predictions: predicted, predicted-ageing, -capped, -log, -users, -threshold), or a formula with named "
        "coefficients, log10(p) + a*log10(q); can be repeated (default: linear).",
    ),
]
Change = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Of ppo: another value than the preset's of one of its options (docs: Training): --set rate=0.001; can be "
        "repeated.",
    ),
]
Training = Annotated[
    Literal["ours", "paper"],
    typer.Option(
        "--training",
        help="Of ppo: ours compares rollouts of the same window; paper is as RLScheduler was trained.",
    ),
]
Rounds = Annotated[int | None, typer.Option(help="Of ppo: rounds of rollouts and updates.")]
Filtering = Annotated[
    Literal["none", "paper", "code"],
    typer.Option(
        help="Of ppo: windows of the first rounds (--set filtered=N): all (none), or those on which SJF is neither "
        "very good nor very bad, by the paper's rule or by its program's (code)."
    ),
]
Device = Annotated[Literal["cpu", "cuda"], typer.Option(help="Of ppo: what calculates the updates.")]
Start = Annotated[
    str,
    typer.Option(metavar="NAME=NUMBER,...", help="Of search: first values of coefficients: a=0.5,b=0.1."),
]
Replicas = Annotated[
    int,
    typer.Option(
        help="Of search: learn, choose and judge on so many replicas of each part, with the past ahead, in place "
        "of windows; the baseline is the published policy that is best there."
    ),
]
Bands = Annotated[
    str | None,
    typer.Option(
        metavar="GUARD=FACTOR,...",
        help="How many times the baseline's value each guard may be; on windows SAF's (default: utilisation=0.95, "
        "p99_wait=1.5, max_wait=1.5, area_weighted_wait=1.5; none: no bands).",
    ),
]
HowGood = Annotated[
    Literal["log-ratio", "mean"],
    typer.Option(
        help="Of search: what is minimised over the windows: the mean log ratio to SAF (log-ratio), which no "
        "single window decides, or the ratio of the means (mean)."
    ),
]
Pick = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|NUMBER",
        help="Search nothing: make this member of the front in DIR its policy.json (with --overwrite).",
    ),
]


@with_options(OPTIONS[name] for name in option.READING)
def train(
    log: option.PastLog,
    output: option.LearningOutput = Path("trained"),
    goal: option.Goal = "mean_bsld",
    learner: Annotated[
        Literal["search", "ppo"],
        typer.Option(
            help="How: search finds the coefficients of formulas by CMA-ES; ppo trains a network by proximal policy "
            "optimisation (policyfactory[rl])."
        ),
    ] = "search",
    mode: Annotated[
        Literal["standard", "paper"],
        typer.Option(help="The rules: those of this simulator (standard), or of RLScheduler's (paper)."),
    ] = "standard",
    backfill: Annotated[Literal["easy", "none"], typer.Option(help="Backfilling: easy, none.")] = "easy",
    window_jobs: option.WindowJobs = 256,
    training_windows: option.TrainingWindows = 40,
    choosing_windows: option.ChoosingWindows = 40,
    judged_windows: option.JudgedWindows = 100,
    parts: option.Parts = "40,20,40",
    windows: option.Windows = None,
    replicas: Replicas = 0,
    loads: option.Loads = "0.8,1.2",
    bands: Bands = None,
    max_p99: option.MaxP99 = None,
    max_longest: option.MaxLongest = None,
    family: Family = None,
    start: Start = "",
    restarts: Annotated[int, typer.Option(help="Of search: searches of each family.")] = 3,
    evaluations: Annotated[int, typer.Option(help="Of search: most candidates of a search.")] = 600,
    step: Annotated[float, typer.Option(help="Of search: the first step.")] = 0.5,
    objective: HowGood = "log-ratio",
    pull: Annotated[
        float, typer.Option(help="Of search: what a unit of distance from the start, squared, costs.")
    ] = 0.001,
    training: Training = "ours",
    rounds: Rounds = None,
    filtering: Filtering = "none",
    device: Device = "cpu",
    change: Change = None,
    pick: Pick = None,
    seed: Annotated[int, typer.Option(help="Seed of windows and learner.")] = 1,
    workers: WorkersOption = None,
    backend: BackendOption = None,
    scheduler: SchedulerOption = None,
    overwrite: option.LearningOverwrite = False,
    **reading: Any,
) -> None:
    """Learn a policy with the simulator in the loop, and judge it on windows later in time.

    Candidates are learned on windows of the first part of the log, one is chosen by windows of the second, and the
    third says what the choice is worth beside SAF and p*sqrt(q). An interrupted run goes on with the same command.
    """
    from policyfactory.cli.screens import TrainScreen, show_trained
    from policyfactory.search.families import parse_start
    from policyfactory.search.formulas import FormulaSearch
    from policyfactory.search.options import SearchOptions, TrainOptions, parse_bands
    from policyfactory.search.run import train as train_policy

    if pick is not None:
        _pick(output, pick, overwrite=overwrite)
        return
    options = TrainOptions(
        goal=goal,
        mode=mode,
        backfill=backfill,
        window_jobs=window_jobs,
        training_windows=training_windows,
        choosing_windows=choosing_windows,
        judged_windows=judged_windows,
        parts=option.parts_of(parts),
        windows=windows,
        replicas=replicas,
        loads=option.loads_of(loads),
        max_p99=max_p99,
        max_longest=max_longest,
        bands=None if bands is None else parse_bands(bands),
        seed=seed,
        **reading,
    )
    first = tuple(parse_start(start).items())
    own = SearchOptions(tuple(family or ["linear"]), first, restarts, evaluations, step, objective, pull)
    who = workers_of(workers, backend, scheduler)
    learners: dict[str, Callable[[], Learner]] = {
        "search": lambda: FormulaSearch.of(own),
        "ppo": lambda: _ppo(training, change, iterations=rounds, filtering=filtering, device=device),
    }
    made = learners[learner]()
    begin = time.monotonic()
    with TrainScreen() as screen:
        trained = train_policy(log, made, options, output=output, overwrite=overwrite, workers=who, follower=screen)
    show_trained(trained)
    files = "policy.json, report.json, history.csv, learning.png" + ", front.json, front.png" * bool(trained.front)
    note(f"everything is in {output}/ ({time.monotonic() - begin:.0f} s): {files}")


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


@with_options(OPTIONS[name] for name in option.READING)
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
    replicas: Annotated[int, typer.Option(help="Replicas of a part of the log.")] = 8,
    loads: option.Loads = "0.8,1.2",
    part: Annotated[int, typer.Option(help="Percent of the jobs, in time, to train on; the rest is held out.")] = 60,
    backfill: Annotated[str, typer.Option(help="Backfilling: easy, none, conservative.")] = "easy",
    threshold: Annotated[
        str, typer.Option(metavar="TIME", help="Jobs that have waited longer go first: 20h; inf: never.")
    ] = "inf",
    time_limit: Annotated[
        str, typer.Option(metavar="TIME", help="What a candidate has for all its replicas: 90s, 5m.")
    ] = "5m",
    seed: Annotated[int, typer.Option(help="Seed of the replicas.")] = 1,
    workers: WorkersOption = None,
    backend: BackendOption = None,
    scheduler: SchedulerOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier output.")] = False,
    **reading: Any,
) -> None:
    """Score candidates, from whatever search they come, on replicas of the first part of a log.

    A score is the ratio of the mean bounded slowdown to that of the published policy that is best there, with its
    interval. A candidate that cannot be used has an error and stops no other. What is held out is asked on request
    only, and intervals of the answer are adjusted by the number of candidates that were ever tried on the log.
    """
    from policyfactory.cli.screens import TrainScreen
    from policyfactory.core.files import atomic_write, dump_json, exclusive, refuse_earlier
    from policyfactory.core.text import counted as words
    from policyfactory.core.text import parse_duration
    from policyfactory.search.arena import LEDGER, Arena, JudgeOptions

    given = [*(formula or []), *_lines(candidates)]
    options = JudgeOptions(
        replicas=replicas,
        part=part,
        loads=option.loads_of(loads),
        backfill=backfill,  # type: ignore[arg-type]  # its words are checked there
        threshold=parse_duration(threshold),
        time_limit=parse_duration(time_limit),
        seed=seed,
        **reading,
    )
    who = workers_of(workers, backend, scheduler)
    refuse_earlier(output, overwrite=overwrite)
    beside = LEDGER if output is None else output.parent / LEDGER
    with exclusive(output), TrainScreen() as screen:
        arena = Arena(log, options, ledger=ledger or beside, workers=who, follower=screen)
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
