"""``policyfactory evaluate``: a paper's protocol, or policies on logs, compared case by case."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from policyfactory.cli import options as option
from policyfactory.cli.options import WORKERS, leave, note_compiling, options_given, workers_of
from policyfactory.core.errors import UsageError
from policyfactory.core.files import Manifest, command_line, dump_toml
from policyfactory.core.text import visible
from policyfactory.evaluation.options import OPTIONS, RUN_OPTIONS, TUNER_OPTIONS
from policyfactory.evaluation.protocol_content import of_logs, plain_content
from policyfactory.report.terminal import (
    BarScreen,
    console,
    note,
    print_json,
    show_sections,
    show_standings,
    show_verdict,
    warn,
)

if TYPE_CHECKING:
    from policyfactory.evaluation.protocol import Protocol
    from policyfactory.evaluation.results_folder import Result
    from policyfactory.evaluation.starts import Layout, StartsWriter
    from policyfactory.parallel.workers import Workers

# What can be said beside a protocol; the other declared options are in it.
_BESIDE_A_PROTOCOL = {
    "resamples": "beside a protocol, instead of its own number",
    "seed": "beside a protocol, instead of its own",
}


@option.with_options(
    [*OPTIONS.values(), *RUN_OPTIONS.values(), *WORKERS], defaults={"seed": None}, more=_BESIDE_A_PROTOCOL
)
def evaluate(
    context: typer.Context,
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="LOG",
            help="Logs in the Standard Workload Format (.swf, .swf.gz), or protocols (.toml); "
            "without any, the embedded Lublin workload.",
        ),
    ] = None,
    *,
    only: Annotated[
        list[str] | None, typer.Option(metavar="EXPERIMENT", help="Of a protocol, this experiment; can be repeated.")
    ] = None,
    log: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Of a protocol, this log; can be repeated.")
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of a protocol's logs (default: traces, then the protocol's folder)."),
    ] = None,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    starts: Annotated[
        Literal["none", "csv", "batsim", "trace"],
        typer.Option(
            metavar="WORD",
            help="Write the start of each job: our columns (csv), Batsim's jobs.csv (batsim), for Perfetto (trace).",
        ),
    ] = "none",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Of a protocol, print all tables and not one screen.")
    ] = False,
    json: option.Json = False,
    **options: Any,
) -> None:
    """Simulate policies on logs and say which is better, by how much, and how certain that is.

    Of a protocol (evaluate/*.toml), run its experiments and write a report; docs/protocols.md has its keys.

    Example: policyfactory evaluate site.swf.gz --policies FCFS,SAF --output results
    """
    paths = tuple(sources or ())
    protocols = [path for path in paths if path.suffix.lower() == ".toml"]
    request = Request(
        output=output,
        overwrite=overwrite,
        starts=starts,
        workers=workers_of(options),
        options={name: options.pop(name) for name in RUN_OPTIONS},
        as_json=json,
        folders=(traces or Path("traces"),) if protocols else (),
        in_brief=bool(protocols) and not verbose,
    )
    if not protocols:
        if only or log or traces is not None:
            raise UsageError("--only, --log and --traces belong to a protocol (a .toml file), and none is given")
        if output is None and options["analyses"] is None:
            options["analyses"] = []
        _run_content(plain_content(options, _log_tables(paths), "command"), request)
        return
    _refuse_options(context)
    if len(protocols) < len(paths):
        raise UsageError(f"{protocols[0]} is a protocol, which names its logs itself; give protocols or logs")
    changes = {name: options[name] for name in _BESIDE_A_PROTOCOL}
    _run_protocols(protocols, request, (tuple(only or ()), tuple(log or ())), changes)


def _refuse_options(context: typer.Context) -> None:
    """Refuse options that a protocol decides."""
    if decided := options_given(context, OPTIONS.keys() - set(_BESIDE_A_PROTOCOL)):
        raise UsageError(f"{', '.join(decided)}: the protocol says this; change it there, or name logs instead of it")


# ``policyfactory tune`` -----------------------------------------------------------------------------------------------

# Choose the policy of the next day or week from what the past ones have shown.


_NAME = "tuning"
_SHOWN = ("improvement", "choices")
# The cases are whole or resampled logs: a tuner learns from the past of its log.
_FIXED = {"windows", "predictions", "statistic", "analyses", "recorded"}
_DEFAULTS = {
    "policies": ["FCFS", "LCFS", "SPF", "LPF", "SQF", "LQF", "LEXP", "SEXP", "SRF", "LRF", "SAF", "LAF"],
    "metrics": ["total_wait", "mean_wait", "mean_bsld", "max_wait"],
    "threshold": "40h",
}
# The feedbacks that a number is for.
_NEEDING = {
    "epsilon": {"bandit"},
    "noise": {"noisy"},
    "discount": {"simulate", "noisy", "bandit", "thompson", "ucb"},
}
_MORE = {"policies": "the tuners also use it until past periods favour another policy"}
# Reservations for all jobs cannot change hands, nor do predictions belong to resampled logs.
_CHOICES = {
    "backfill": Literal["none", "easy", "slurm"],
    "decide_by": Literal["request", "runtime"],
    "compatibility": Literal["none", "ocst"],
}


@option.with_options(
    [*TUNER_OPTIONS.values(), *(option for name, option in OPTIONS.items() if name not in _FIXED), *WORKERS],
    _DEFAULTS,
    _CHOICES,
    _MORE,
)
def tune(
    traces: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="LOG",
            help="Logs in the Standard Workload Format (.swf, .swf.gz); without any, the embedded Lublin workload.",
        ),
    ] = None,
    *,
    feedback: Annotated[
        str,
        typer.Option(
            help="What is known of the past: simulate, noisy (every policy's wait, simulated), bandit, thompson, ucb "
            "(the waits under the policy in force), random (nothing); several separated by commas."
        ),
    ] = "simulate",
    period: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="How long a policy stays, for example 1d or 1w; several separated by commas."
        ),
    ] = "1w",
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
    **options: Any,
) -> None:
    """Choose the policy of the next day or week online, and say what that is worth.

    The tuners run beside each of their policies, of which one is the best in hindsight, and beside a random choice;
    docs/tuning.md says what they know and how they choose.

    Example: policyfactory tune site.swf.gz --policies FCFS,SPF,SAF --period 1w --output tuned
    """
    numbers = {name: options.pop(name) for name in TUNER_OPTIONS}
    who = workers_of(options)
    given = {**_DEFAULTS, **{name: value for name, value in options.items() if value is not None}}
    fixed = {"statistic": "ratio", "analyses": list(_SHOWN), "recorded": False}
    feedbacks = _words("feedback", feedback)
    for name, needing in _NEEDING.items():
        if numbers[name] != TUNER_OPTIONS[name].default and needing.isdisjoint(feedbacks):
            note(f"without effect: --{name}, which is for --feedback {' or '.join(sorted(needing))}")
    content = plain_content({**given, **fixed}, _log_tables(traces or ()), "command")
    content |= {"name": _NAME, "title": "Tuning " + ", ".join(content["logs"])}
    content["experiments"][0] |= {
        "name": _NAME,
        "title": "Tuners, policies and chance",
        "tuners": _tuners(feedbacks, _words("period", period), numbers),
    }
    none = {"precision": None, "max_resamples": None}
    _run_content(
        content,
        Request(
            output=output, overwrite=overwrite, starts="none", workers=who, options=none, as_json=json, shown=_SHOWN
        ),
    )


def _words(option_name: str, text: str) -> list[str]:
    words = list(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
    if not words:
        raise UsageError(f"--{option_name} is empty; the help says what there is")
    return words


def _tuners(feedbacks: list[str], periods: list[str], numbers: dict[str, float]) -> list[dict[str, Any]]:
    """Return the tuners as a protocol has them; a random choice is always among them."""
    return [
        {"name": f"{feedback} {period}", "feedback": feedback, "period": period, **numbers}
        for feedback in dict.fromkeys([*feedbacks, "random"])
        for period in periods
    ]


# From a protocol, or the options that make one, to the results on the terminal and in their folder --------------------


_RESULTS = "results"
_PARTIAL = "evaluation"


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """The options that are about the run, not about what is run.

    ``options`` are those of `RUN_OPTIONS`, ``shown`` the analyses that are printed too, ``folders`` those of the logs.
    ``in_brief``: print one screen, and leave the tables to the report.
    """

    output: Path | None
    overwrite: bool
    starts: Layout | Literal["none"]
    workers: Workers
    options: Mapping[str, Any]
    as_json: bool
    shown: Sequence[str] = ()
    folders: Sequence[Path] = ()
    in_brief: bool = False


def _log_tables(paths: Sequence[Path]) -> dict[str, Mapping[str, Any]]:
    """Return the tables of the logs in files; without any, of the embedded workload."""
    from policyfactory.workload.swf.files import log_name

    if not paths:
        return {"lublin-256": {"embedded": True}}
    return of_logs((log_name(path), {"file": str(path)}) for path in paths)


def _run_content(content: dict[str, Any], request: Request) -> None:
    """Run a protocol that was made from options."""
    from policyfactory.evaluation.protocol import protocol_of

    describes = _run(protocol_of(content), _headed(dump_toml(content), _narrowing(request)), request)
    leave(describes=describes)


def _run_protocols(
    paths: Sequence[Path],
    request: Request,
    only: tuple[Sequence[str], Sequence[str]],
    changes: Mapping[str, Any],
) -> None:
    """Run protocols one after the other.

    ``only`` are the experiments and the logs that are asked for, ``changes`` the seed and the number of resampled logs
    that are used in place of the protocol's own.
    """
    describes = True
    for path in paths:
        protocol, text = _of_protocol(path, request, only, changes)
        output = request.output or Path(_RESULTS) / protocol.name
        if len(paths) > 1:
            output = (request.output or Path(_RESULTS)) / protocol.name
            _heading(f"{path}: {protocol.title}")
        with_output = dataclasses.replace(request, output=output, in_brief=request.in_brief and _is_study(protocol))
        describes = _run(protocol, text, with_output) and describes
    leave(describes=describes)


def _is_study(protocol: Protocol) -> bool:
    """Return whether a protocol asks more than which policy is better in one experiment."""
    experiments = protocol.experiments
    return len(experiments) > 1 or bool(protocol.claims) or any(experiment.references for experiment in experiments)


def _of_protocol(
    path: Path, request: Request, only: tuple[Sequence[str], Sequence[str]], changes: Mapping[str, Any]
) -> tuple[Protocol, str]:
    """Return the protocol of a file and its text, as they are run."""
    from policyfactory.evaluation.protocol import protocol_of, read_file
    from policyfactory.evaluation.study import selected

    file = read_file(path)
    content, text = file.content, file.data.decode("utf-8")
    if _changed(content, changes["seed"], changes["resamples"]):
        text = dump_toml(content)
    protocol = selected(protocol_of(content, file), *only)
    if changes["resamples"] is not None and not any(experiment.table.resample for experiment in protocol.experiments):
        note(f"{path}: no experiment draws resampled logs, so --resamples changes nothing")
    beside = [f"--only {name}" for name in only[0]] + [f"--log {name}" for name in only[1]]
    beside += [f"--{name} {changes[name]}" for name in ("seed", "resamples") if changes[name] is not None]
    return protocol, _headed(text, [*beside, *_narrowing(request)])


def _narrowing(request: Request) -> list[str]:
    precision = request.options["precision"]
    if precision is None:
        return []
    return [f"--precision {precision.strip()}", f"--max-resamples {request.options['max_resamples']}"]


def _headed(text: str, beside: Sequence[str]) -> str:
    """Return a protocol with what was asked for beside it; not the whole command, which may differ in its folders."""
    text = re.sub(r"\A# As run, with .*\n", "", text)  # of an earlier run
    return f"# As run, with {visible(' '.join(beside))}\n{text}" if beside else text


def _changed(content: dict[str, Any], seed: int | None, resamples: int | None) -> bool:
    """Put what was asked for on the command line into a protocol; return whether that changed it."""
    changed = seed is not None and content.get("seed") != seed
    if seed is not None:
        content["seed"] = seed
    experiments = content.get("experiments")
    for table in experiments if resamples is not None and isinstance(experiments, list) else ():
        drawn = table.get("resample") if isinstance(table, dict) else None
        if isinstance(drawn, dict) and drawn.get("count") != resamples:
            drawn["count"] = resamples
            changed = True
    return changed


def _run(protocol: Protocol, text: str, request: Request) -> bool:
    """Run a protocol, whose text is kept with the results, and show what it says.

    Returns whether its sites describe its logs.
    """
    from policyfactory.core.journal import partial_path
    from policyfactory.evaluation.results_folder import room, write_report
    from policyfactory.report.page import caution_of

    output = request.output
    if output is None:
        if request.starts != "none":
            raise UsageError(f"--starts {request.starts} writes files; name their folder with --output DIR")
        return _show(*_study(protocol, request, None, None), request)
    with room(output, overwrite=request.overwrite, partial=partial_path(output / _PARTIAL)) as work_folder:
        writer = None if request.starts == "none" else _starts_writer(protocol, work_folder, request.starts)
        partial = partial_path(work_folder / _PARTIAL)
        study, manifest = _study(protocol, request, writer, partial)
        written = write_report(study, work_folder, manifest, text, _start_files(study, writer))
        partial.unlink(missing_ok=True)
    describes = _show(study, manifest, request)
    if caution := caution_of(output / "report.html"):
        warn(caution)
    if request.in_brief:
        note(f"all tables, pictures and intervals: {output}/report.html (--verbose prints the tables too)")
        return describes
    folders = [f"{outcome.experiment.name}/" for outcome in study.outcomes]
    folders += ["claims/"] * bool(study.claims) + ["starts/"] * (writer is not None)
    note("written: " + ", ".join(f"{output}/{name}" for name in [*written, *folders]))
    return describes


def _starts_writer(protocol: Protocol, output: Path, layout: Layout) -> StartsWriter:
    from policyfactory.evaluation.starts import StartsWriter, file_names

    experiment, *others = protocol.experiments
    if others:
        raise UsageError(
            f"--starts writes the starts of one experiment, and there are {1 + len(others)}; name it with --only"
        )
    names = file_names(experiment.log_names), file_names(experiment.policies)
    return StartsWriter(output / "starts", layout, *names)


def _start_files(study: Result, writer: StartsWriter | None) -> list[Path]:
    if writer is None:
        return []
    evaluations = [outcome.evaluation for outcome in study.outcomes]
    return [writer.path(case, name) for run in evaluations for case in run.cases for name in run.policies]


def _study(
    protocol: Protocol, request: Request, writer: StartsWriter | None, partial: Path | None
) -> tuple[Result, Manifest]:
    from policyfactory.evaluation.precision import Precision
    from policyfactory.evaluation.results_folder import protocol_dict
    from policyfactory.evaluation.study import RunSettings, RunTally, read_logs
    from policyfactory.evaluation.words import rules_in_words

    precision = Precision.of(request.options, "command")
    tally = RunTally(request.workers)
    try:
        logs = read_logs(protocol, request.folders, note)
        for experiment in () if request.in_brief else protocol.experiments:
            named = f"{experiment.name}: " if len(protocol.experiments) > 1 else ""
            words = rules_in_words(experiment.rules, experiment.times_longest, experiment.sensitivity)
            note(f"{named}{words}")
        if any(experiment.rules.backfill == "slurm" for experiment in protocol.experiments):
            note_compiling()
        with BarScreen() as screen:
            how = RunSettings(
                request.workers,
                precision,
                writer,
                progress=lambda experiment: screen.counter(f"{experiment.name}: simulations", "jobs/s"),
                replay=lambda: screen.counter("replayed on the site, %", "jobs/s"),
                partial=partial,
                overwrite=request.overwrite,
                beside={"starts": request.starts},
                notify=screen.message,
            )
            study = tally.run(protocol, logs, how, screen.kept)
    except KeyboardInterrupt as stop:
        if not tally.kept:
            more = "" if partial is not None else "; with --output DIR the same command would go on from here"
            stop.add_note(f"no result was written{more}")
        raise
    about = ("evaluation", command_line(), protocol.seed)
    return study, Manifest(*about, study.hashes, protocol_dict(study), tally.measured())


def _heading(text: str) -> None:
    from rich.text import Text

    console().rule(Text(visible(text)), align="left")


def _show(study: Result, manifest: Manifest, request: Request) -> bool:
    """Show what a study says; return whether its sites describe its logs."""
    from policyfactory.evaluation.results_folder import as_dict, in_brief, section_dict

    describes = all(replay.light != "far" for outcome in study.outcomes for replay in outcome.fidelity.values())
    if request.as_json:
        printed = {
            section.name: section_dict(section)
            for outcome in study.outcomes
            for section in outcome.sections
            if section.name in request.shown
        }
        print_json({**as_dict(study), **printed, "manifest": manifest.as_dict()})
        return describes
    if request.in_brief:
        for line in in_brief(study):
            console().print(visible(line), markup=False)
        return describes
    several = len(study.outcomes) > 1
    for outcome in study.outcomes:
        if several:
            _heading(outcome.experiment.title)
        show_standings(outcome.sections)
        show_sections(outcome.sections, names=request.shown)
        if outcome.verdict is not None:
            show_verdict(outcome.verdict)
    if study.claims:
        _heading(study.claims[0].title)
        show_sections(study.claims, names=["claims"])
    return describes
