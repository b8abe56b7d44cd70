"""``policyfactory train``, ``judge``, ``distill``: learn with the simulator in the loop, and judge on later windows."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from policyfactory.cli import options as option
from policyfactory.cli.options import WORKERS, options_given, with_options, workers_of
from policyfactory.core.errors import UsageError
from policyfactory.core.options import declared, options_of
from policyfactory.core.text import number_text, shortened
from policyfactory.report.terminal import BarScreen, note, say, show_table, warn
from policyfactory.search.options import DistillOptions, JudgeOptions, SearchOptions, TrainOptions

if TYPE_CHECKING:
    from policyfactory.search.distill import Distilled, Rated
    from policyfactory.search.judging import RankedCandidate, Standing
    from policyfactory.search.learner import Learner
    from policyfactory.search.run import Trained
    from policyfactory.statistics.compare import Paired


@with_options([*declared(TrainOptions).values(), *declared(SearchOptions).values(), *WORKERS])
def train(
    context: typer.Context,
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
    from policyfactory.search.formulas import FormulaSearch
    from policyfactory.search.run import train as train_policy

    if pick is not None:
        if idle := options_given(context, context.params.keys() - {"log", "output", "pick", "overwrite"}):
            raise UsageError(f"--pick searches nothing, so {', '.join(idle)} would be ignored; leave it out")
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
    from policyfactory.search.reinforce.options import changes_of
    from policyfactory.search.reinforce.training import Reinforcement

    changes, plain = changes_of(change or []), {"iterations": None, "filtering": "none", "device": "cpu"}
    if twice := [name for name in changes if name in plain and named[name] != plain[name]]:
        flag = twice[0].replace("iterations", "rounds")
        raise UsageError(f"--set {twice[0]}={changes[twice[0]]} and --{flag} {named[twice[0]]}: leave out one of them")
    return Reinforcement.of(preset, **{**named, **changes})


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


# ``policyfactory distill``: make a formula of a network, and say how far it is the same policy ------------------------

# A network says by which rules it was trained.
_OF_WINDOWS = (
    *("goal", "backfill", "window_jobs", "training_windows", "choosing_windows", "judged_windows", "parts", "windows"),
    *("seed", *option.READING),
)
_MORE = {"backfill": "without it as the network was trained, if it says so, else easy"}


_PLAYED = {name: option for name, option in declared(TrainOptions).items() if name in _OF_WINDOWS}


@with_options([*declared(DistillOptions).values(), *_PLAYED.values()], defaults={"backfill": None}, more=_MORE)
def distill(
    network: Annotated[Path, typer.Argument(metavar="NETWORK", help="Network file (train makes one).")],
    log: option.PastLog,
    output: option.LearningOutput = Path("distilled"),
    overwrite: option.Overwrite = False,
    **options: Any,
) -> None:
    """Make a formula of a network: one that orders the queue as the network does, and can be exported.

    Formulas are fitted to the network's order of jobs that wait together, one is chosen by its agreement on later
    windows, and the last ones say how far the two agree and what the formula costs or gains in the simulator.

    Example: policyfactory distill net.json site.swf.gz --output distilled
    """
    from policyfactory.search.distill import distill as distill_network
    from policyfactory.search.distill import network_of, trained_with

    backfill = options.pop("backfill")
    windows = options_of(TrainOptions, options, bands=())
    begin = time.monotonic()
    given = network_of(network)
    windows = dataclasses.replace(windows, backfill=backfill or trained_with(given))
    how = options_of(DistillOptions, options, windows=windows)
    found = distill_network(given, log, how, output=output, overwrite=overwrite, follower=BarScreen())
    show_distilled(found)
    files = "policy.json, static.json, agreement.png, report.json"
    note(f"everything is in {output}/ ({time.monotonic() - begin:.0f} s): {files}")


# What ``policyfactory train`` and ``distill`` print: the tables of the result -----------------------------------------


_MOST_SHOWN = 12  # candidates; the report has all
_LONGEST_FORMULA = 80


def show_trained(trained: Trained) -> None:
    """Print what a run has found: the candidates, the judged windows, and the verdict."""
    from policyfactory.search.environment.goals import GUARDS
    from policyfactory.simulation.metrics import COSTS, METRICS

    goal = trained.task.options.goal
    ranked = trained.chosen.ranked
    show_table(
        f"On the {len(trained.task.windows.choosing)} {trained.task.windows.noun} for choosing",
        ["policy", goal, f"log ratio to {trained.task.baseline.name}", "sort key"],
        [_candidate_row(candidate) for candidate in ranked[:_MOST_SHOWN]],
        caption=f"{_MOST_SHOWN} of {len(ranked)}; report.json has all" if len(ranked) > _MOST_SHOWN else None,
        left=(0, 3),
    )
    windows = trained.task.windows
    where = f"later {windows.noun}" if windows.held_out else "windows, the ones that were learned on"
    titles = [METRICS[name].title for name in GUARDS]
    show_table(
        f"Judged on {len(windows.judged)} {where}: means, and the choice against each",
        ["policy", goal, f"{trained.policy.name} against it", "", *titles],
        [_standing_row(standing) for standing in trained.standings],
        left=(0, 3),
    )
    if trained.front:
        against = trained.task.baseline.name
        show_table(
            f"Pareto front on the {len(windows.choosing)} replicas for choosing: ratios to {against}",
            ["", "policy", goal, *(METRICS[name].title for name in COSTS)],
            [_front_row(number, candidate) for number, candidate in enumerate(trained.front[:_MOST_SHOWN], 1)],
            caption=f"{_MOST_SHOWN} of {len(trained.front)}; front.json has all"
            if len(trained.front) > _MOST_SHOWN
            else None,
            left=(1,),
        )
    for text in filter(None, [trained.margin, trained.verdict, f"{trained.policy.name}: {trained.policy.formula}"]):
        say(text)
    for text in trained.warnings:
        warn(text)


def _candidate_row(ranked: RankedCandidate) -> list[str]:
    out = " (out of its bands)" if ranked.out else ""
    name = f"{ranked.candidate.policy.name}{out if ranked.learned else ' (published)'}"
    return [
        name,
        number_text(ranked.means[0]),
        f"{ranked.gain:+.4f}",
        shortened(ranked.candidate.policy.formula, _LONGEST_FORMULA),
    ]


def _front_row(number: int, ranked: RankedCandidate) -> list[str]:
    out = " (out of its bands)" if ranked.out else "" if ranked.learned else " (published)"
    return [str(number), f"{ranked.name}{out}", *(f"{value:.3f}" for value in ranked.ratios)]


def _standing_row(standing: Standing) -> list[str]:
    from policyfactory.search.environment.goals import GUARDS
    from policyfactory.simulation.metrics import METRICS

    goal, *guards = standing.means
    units = [METRICS[name].unit for name in GUARDS]
    shown = [
        f"{value / 3600:.1f} h" if unit == "s" else f"{number_text(value)} {unit}"
        for unit, value in zip(units, guards, strict=True)
    ]
    if standing.margin is None:
        return [f"{standing.policy.name} ({standing.role})", number_text(goal), "", "", *shown]
    role = " (runner-up)" if standing.role == "runner-up" else ""
    return [f"{standing.policy.name}{role}", number_text(goal), *_change(standing.margin), *shown]


# What ``policyfactory distill`` prints --------------------------------------------------------------------------------


_NEEDS = {"static": "", "w": "wait", "f": "free processors"}


def show_distilled(found: Distilled) -> None:
    """Print what was found: the candidates, the judged windows, and the verdict."""
    shown = found.best(_MOST_SHOWN)
    pairs = found.pairs["judged"]
    show_table(
        f"Agreement with network {found.network.name}: {len(pairs):,} pairs at {len(pairs.queues):,} decisions of "
        f"{len(found.windows.judged)} judged windows",
        ["formula", "pairs alike", "Kendall's tau", "same job first", "needs", "sort key"],
        [_rated_row(found, rated) for rated in shown],
        caption=f"{len(shown)} of {len(found.rated)}; report.json has all" if len(found.rated) > len(shown) else None,
        left=(0, 4, 5),
    )
    goal = found.options.windows.goal
    show_table(
        "What it costs in the simulator: means over the judged windows",
        ["policy", goal, f"{found.policy.name} against it", "", "it against the network", ""],
        [_judged_row(standing) for standing in found.judged],
        left=(0, 3, 5),
    )
    say(found.verdict)
    say(f"{found.policy.name}: {found.policy.formula}")
    for text in found.warnings:
        warn(text)


def _rated_row(found: Distilled, rated: Rated) -> list[str]:
    role = " (choice)" if rated is found.chosen.choice else " (best static)" if rated is found.chosen.static else ""
    judged, policy = rated.judged, rated.formula.policy
    shares = [f"{100 * judged.pairs:.1f} %", f"{judged.tau:.3f}", f"{100 * judged.first:.1f} %"]
    return [f"{policy.name}{role}", *shares, _NEEDS[rated.formula.kind], shortened(policy.formula, _LONGEST_FORMULA)]


def _judged_row(standing: Standing) -> list[str]:
    role = "" if standing.role == "beside" else f" ({standing.role})"
    return [
        f"{standing.policy.name}{role}",
        number_text(standing.means[0]),
        *_change(standing.margin),
        *_change(standing.network),
    ]


def _change(paired: Paired | None) -> tuple[str, str]:
    if paired is None:
        return "", ""
    if not paired.wins + paired.losses:
        return "+0.0 %", "the same"
    interval = paired.estimate.interval
    ends = "" if interval is None else f" [{interval.low:+.1f}, {interval.high:+.1f}]"
    return f"{paired.estimate.value:+.1f}{ends} %", {"no difference": "cannot tell"}.get(paired.verdict, paired.verdict)
