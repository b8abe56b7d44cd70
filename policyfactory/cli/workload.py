"""``policyfactory workload``: look at logs, clean them, cut them, download them; make workloads from models."""

from __future__ import annotations

import dataclasses
import glob
import math
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from policyfactory.cli import options as option
from policyfactory.cli import workload_import
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.files import (
    Manifest,
    atomic_write,
    check_directory,
    check_file,
    dump_json,
    exclusive,
    refuse_earlier,
    together,
)
from policyfactory.core.text import format_duration, parse_duration
from policyfactory.core.version import __version__
from policyfactory.evaluation.options import OPTIONS
from policyfactory.report.terminal import note, print_json, say, show_table, warn
from policyfactory.workload.header import printable
from policyfactory.workload.presets import CleaningReport, Overrun, Preset, ZeroRun, find_preset

if TYPE_CHECKING:
    from policyfactory.workload.describe import Description
    from policyfactory.workload.jobs import Workload
    from policyfactory.workload.judge import LogJudgement
    from policyfactory.workload.models.lublin import PerClass
    from policyfactory.workload.models.tsafrir import UserBin
    from policyfactory.workload.resample import Resampling, UserWeeks
    from policyfactory.workload.sensitivity import Sensitivity
    from policyfactory.workload.swf.log import SwfLog

app = typer.Typer(
    help="Workload logs and models: show, clean, cut, import, download, resample, make.", no_args_is_help=True
)


# Columns of a table that stays readable.
_LOGS_ABREAST = 5


@app.command()
def show(
    traces: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Logs (SWF, also .gz).", show_default=False)],
    processors: Annotated[
        int | None,
        typer.Option(help="Processors of the machine, where the log does not say.", min=1),
    ] = None,
    force_processors: Annotated[
        bool, typer.Option("--force-processors", help="Use that size also where the log's header has another.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder for pictures of each log.")
    ] = None,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
) -> None:
    """Describe logs: what each is good for and why, size, load, waits, requests, what is missing, what is odd.

    Example: policyfactory workload show site.swf.gz
    """
    from policyfactory.workload.describe import describe, draw_log, find_quirks, picture_paths
    from policyfactory.workload.judge import judge_log
    from policyfactory.workload.swf.files import log_name, read_swf

    option.refuse_idle(output, overwrite=overwrite)
    described: list[tuple[Description, LogJudgement, list[str]]] = []
    pictures: list[Path] = []
    with exclusive(None if output is None else check_directory(output) / "pictures"):
        if output is not None:
            drawn = [path for trace in traces for path in picture_paths(log_name(trace), output).values()]
            refuse_earlier(*drawn, overwrite=overwrite)
        with together():
            for trace in traces:
                log = read_swf(trace)
                description = describe(log, processors, force=force_processors)
                described.append((description, judge_log(log, description), find_quirks(log, description)))
                pictures += draw_log(log, description, output) if output is not None else ()
    for path in pictures:
        note(f"written: {path}")
    if json:
        values = [
            {**description.as_dict(), **judgement.as_dict(), "quirks": quirks}
            for description, judgement, quirks in described
        ]
        print_json({"schema_version": 1, "logs": values})
        return
    _print_descriptions(described)


def _print_descriptions(described: list[tuple[Description, LogJudgement, list[str]]]) -> None:
    from policyfactory.workload.describe import COLUMNS, description_rows

    for description, judgement, _ in described:
        say(f"{description.name}: what it is good for", style="bold")
        for use in judgement.uses:
            say(f"  {use.grade:<7} {use.name}: {use.why}")
        for finding in judgement.findings:
            say(finding)
        say("")
    for first in range(0, len(described), _LOGS_ABREAST):
        logs = [description for description, _, _ in described[first : first + _LOGS_ABREAST]]
        show_table("What the logs hold", ["", *(log.name for log in logs)], description_rows(logs))
    for description, judgement, quirks in described:
        for table in judgement.waits:
            show_table(f"{description.name}: {table.title}", list(COLUMNS), table.cells())
        say(f"{description.name}: what to know", style="bold")
        for quirk in quirks or ["nothing is odd"]:
            say(f"  - {quirk}")
        say("")


@app.command()
@option.with_options(OPTIONS[name] for name in option.READING)
def clean(
    source: option.LogFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Log to write (.gz is packed); without it only the account.",
        ),
    ] = None,
    overrun: Annotated[
        Overrun | None, typer.Option(help="Jobs that ran beyond their request (default: as the preset has it).")
    ] = None,
    zero_run: Annotated[
        ZeroRun | None, typer.Option(help="Jobs of run time 0 (default: as the preset has it).")
    ] = None,
    longest_request: Annotated[
        str | None, typer.Option(metavar="TIME", help="Cap requested times, for example at 30d.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the account as JSON to this file too.")] = None,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
    **reading: Any,
) -> None:
    """Drop and repair what cannot be simulated, sort, count times from the first job; say what was done and why.

    Example: policyfactory workload clean site.swf.gz --output clean.swf --report cleaned.json
    """
    from policyfactory.workload.clean import clean_log
    from policyfactory.workload.swf.files import read_swf, write_swf

    option.refuse_idle(output, report, overwrite=overwrite)
    assume = reading.pop("assume")
    rules = _rules(reading.pop("preset"), overrun, zero_run, longest_request)
    with exclusive(output, report, overwrite=overwrite):
        log, account = clean_log(read_swf(source), preset=rules, **reading)
        assumptions: tuple[str, ...] = ()
        if assume is not None:
            from policyfactory.workload.machine import assume_of_log

            log, assumptions = assume_of_log(log, assume)
        with together():
            if output is not None:
                write_swf(log, output)
            if report is not None:
                atomic_write(report, dump_json(account.as_dict()))
    if json:
        print_json(account.as_dict())
    else:
        _print_report(account)
    for text in assumptions if assumptions or assume is None else (f"the log says all that --assume {assume} names",):
        note(text)
    note("no log was written; add --output OUT.swf.gz" if output is None else f"written: {output}")


def _rules(preset: str, overrun: Overrun | None, zero_run: ZeroRun | None, longest_request: str | None) -> Preset:
    """Return the preset with the changes asked for."""
    rules = find_preset(preset)
    longest = None if longest_request is None else parse_duration(longest_request)
    if longest is not None and not 1 <= longest < float("inf"):
        raise UsageError(f"--longest-request {longest_request!r}: a cap is at least 1 s; leave it out for none")
    asked: dict[str, Any] = {"overrun": overrun, "zero_run": zero_run, "longest_request": longest}
    changes = {key: value for key, value in asked.items() if value is not None}
    if not changes:
        return rules
    words = ", ".join(f"{key} {value}" for key, value in changes.items())
    return dataclasses.replace(rules, name=f"{rules.name} with {words}", **changes)


def _print_report(account: CleaningReport) -> None:
    columns = ["", "what", "why", "first of them", "jobs", "% of all read"]
    show_table(f"preset {account.preset}: {account.description}", columns, account.rows(), left=(0, 1, 2, 3))
    say(account.totals())
    if account.kept < account.read / 2:
        warn(f"more than half of the jobs were dropped ({account.dropped:,} of {account.read:,}): is the preset right?")


@app.command()
def window(
    source: option.LogFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Log to write, or with --windows a folder.",
            show_default=False,
        ),
    ],
    windows: Annotated[
        str | None,
        typer.Option(
            metavar="NxLENGTH",
            help="Cut into windows: 10x15d, 15d (as many as there are), 10x5000jobs, sc17:10x15d, "
            "rlscheduler:10x1024jobs:1.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="DATE", help="From this time on: 30d after the first job, or a date 2000-05-01[T12:00]."
        ),
    ] = None,
    end: option.EndOption = None,
    skip: Annotated[int, typer.Option(help="Leave out this many jobs at the beginning.", min=0)] = 0,
    jobs: Annotated[int | None, typer.Option(help="Keep at most this many jobs.", min=1)] = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Cut a log by time or by number of jobs; all fields are kept, times count from the first job of each part.

    Example: policyfactory workload window site.swf.gz --from 2026-03-01 --to 2026-04-01 --output march.swf
    """
    from policyfactory.workload.swf.files import read_swf, write_swf
    from policyfactory.workload.windows import cut_between, cut_windows, in_order, parse_windows

    by_place = start is not None or end is not None or jobs is not None or skip > 0
    if windows is not None and by_place:
        raise UsageError("--windows cuts the whole log: give it without --from, --to, --skip and --jobs")
    if windows is None and not by_place:
        raise UsageError("say what to cut: --windows 10x15d, --from 30d --to 60d, or --jobs 5000")
    spec = None if windows is None else parse_windows(windows)
    with exclusive(output if spec is None else check_directory(output) / "windows"):
        log, dropped = in_order(read_swf(source))
        if dropped:
            warn(f"{dropped:,} jobs without a submit time were left out")
        if spec is None:
            parts = {output: cut_between(log, start=start, end=end, skip=skip, jobs=jobs)}
        else:
            parts = {output / f"{part.name}.swf.gz": part for part in cut_windows(log, spec)}
        refuse_earlier(*parts, overwrite=overwrite)
        with together():
            for path, part in parts.items():
                write_swf(part, path)
    earlier = () if spec is None else set(output.glob(f"{glob.escape(log.name)}-w[0-9]*.swf.gz")) - parts.keys()
    if earlier:
        names = printable(", ".join(sorted(path.name for path in earlier)), 300)
        warn(f"{output} has windows of an earlier cut as well, which stay: {names}; remove them")
    show_written(parts)


def show_written(logs: dict[Path, SwfLog]) -> None:
    """Print which logs were written, a row each."""
    rows = []
    for path, log in logs.items():
        begins = log.header.text("StartTime") or "-"
        rows.append([str(path), begins, f"{len(log):,}", format_duration(float(log.submit.max()))])
    show_table("written", ["file", "begins", "jobs", "last submission after"], rows, left=(0, 1))


app.command()(workload_import.download)
app.command("import", cls=workload_import.Import)(workload_import.import_log)


# ``policyfactory workload lublin`` and ``policyfactory workload estimates``: jobs and requests that models make -------

_DEFAULT_MAX_ESTIMATE = "18h"


_SEED = Annotated[int, typer.Option(help="Seed of the random numbers: the same seed, the same jobs.")]
_OUTPUT = Annotated[
    Path | None, typer.Option("--output", "-o", help="SWF file to write (.gz is packed); without it stdout.")
]
_Stream = Literal["numpy", "drand48"]
_BINS = Annotated[
    list[str] | None,
    typer.Option(
        "--bin",
        help="Known requests of a site: TIME=JOBS or TIME=PERCENT%, for example 18h=9.7%; up to 20 times.",
        metavar="TIME=JOBS",
    ),
]


@app.command()
def lublin(
    processors: Annotated[int, typer.Option(help="Processors of the machine; any number.")] = 256,
    jobs: Annotated[int, typer.Option(help="Number of jobs.")] = 20_000,
    seed: _SEED = 1,
    stream: Annotated[
        _Stream, typer.Option(help="Random numbers: ours, or those of the archive's program, job for job.")
    ] = "numpy",
    typed: Annotated[
        bool, typer.Option("--typed/--typeless", help="Interactive and batch jobs apart, or one kind of job.")
    ] = False,
    uhi: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="log2 of the largest job; with --typed also INTERACTIVE,BATCH. Default: log2(processors), interactive "
            "1.5 less.",
        ),
    ] = None,
    umed: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="log2 of where large jobs begin. Default: UHI - 2.5 (batch: - 2)."),
    ] = None,
    ulow: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="log2 of the smallest parallel job. Default: 0.8 (interactive 1, batch 1.2)."
        ),
    ] = None,
    uprob: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="Share of parallel jobs below UMED. Default: 0.86 (interactive 0.705, batch 0.875)."
        ),
    ] = None,
    load: Annotated[
        float | None, typer.Option(help="Offered load to meet, for example 0.9; the gaps between arrivals are scaled.")
    ] = None,
    start_hour: Annotated[int, typer.Option(help="Hour of the day at time 0.")] = 0,
    requests: Annotated[
        Literal["none", "tsafrir"],
        typer.Option("--estimates", help="Requested times: none (-1), or of the Tsafrir model."),
    ] = "none",
    max_estimate: Annotated[
        str | None, typer.Option(metavar="TIME", help="Longest request of --estimates tsafrir. Default: 18h.")
    ] = None,
    bins: _BINS = None,
    output: _OUTPUT = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Make jobs with the Lublin-Feitelson model and write them as SWF.

    The offered load is the sum of run time times processors, over the machine's processors times the time from
    the first submission to the last.

    Example: policyfactory workload lublin --processors 256 --jobs 10000 --seed 1 --output lublin.swf
    """
    from policyfactory.workload.models.lublin import LublinModel
    from policyfactory.workload.models.lublin_log import Recipe, make_log, write_log

    option.refuse_idle(output, overwrite=overwrite)
    if requests == "none" and (max_estimate or bins):
        raise UsageError("--max-estimate and --bin belong to the estimate model; add --estimates tsafrir")
    model = LublinModel.for_machine(
        processors,
        typed=typed,
        start_hour=start_hour,
        uhi=_per_class("--uhi", uhi),
        umed=_per_class("--umed", umed),
        ulow=_per_class("--ulow", ulow),
        uprob=_per_class("--uprob", uprob),
    )
    longest = None if requests == "none" else _longest(max_estimate or _DEFAULT_MAX_ESTIMATE)
    recipe = Recipe(
        model=model,
        jobs=jobs,
        seed=seed,
        stream=stream,
        load=load,
        max_estimate=longest,
        user_bins=tuple(_user_bins(bins or [], jobs)),
    )
    with exclusive(output, overwrite=overwrite):
        log, notes = make_log(recipe, _command())
        write_log(log, output)
    _report(notes, output)


def _per_class(option: str, text: str | None) -> PerClass | None:
    """Return the number, or the pair of numbers, of an option."""
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    raise UsageError(
        f"{option} {text!r} is no number; write for example {option} 5.5, or INTERACTIVE,BATCH with --typed"
    )


def _longest(text: str) -> int:
    seconds = parse_duration(text)
    if math.isinf(seconds):
        raise UsageError(f"--max-estimate {text}: the model needs a longest request; give for example 18h")
    return int(seconds)


def _user_bins(texts: list[str], jobs: int) -> list[UserBin]:
    """Return estimate (s) and jobs of each ``TIME=JOBS`` or ``TIME=PERCENT%``."""
    pairs = []
    for text in texts:
        time, equals, count = text.partition("=")
        try:
            number = float(count.removesuffix("%")) if equals else math.nan
        except ValueError:
            number = math.nan
        if count.endswith("%"):
            number = float(round(number / 100 * jobs)) if math.isfinite(number) else math.nan
        seconds = parse_duration(time)
        if not (math.isfinite(number) and number == int(number) and math.isfinite(seconds)):
            raise UsageError(f"--bin {text!r} is not TIME=JOBS or TIME=PERCENT%; write for example 18h=970 or 18h=9.7%")
        pairs.append((int(seconds), int(number)))
    return pairs


def _command() -> str:
    """Return the command without the name of its output: the same jobs, the same bytes."""
    words = sys.argv[1:]
    kept = [
        word
        for word, before in zip(words, ["", *words], strict=False)
        if not word.startswith(("-o", "--output", "--overwrite")) and before not in ("-o", "--output")
    ]
    return shlex.join(["policyfactory", *kept])


def _report(notes: Iterable[str], output: Path | None) -> None:
    for line in notes:
        note(line)
    if output is not None:
        note(f"written: {output}")


@app.command()
def estimates(
    trace: option.LogFile,
    max_estimate: Annotated[
        str, typer.Option(metavar="TIME", help="Longest request that is allowed.")
    ] = _DEFAULT_MAX_ESTIMATE,
    seed: _SEED = 1,
    stream: Annotated[
        _Stream, typer.Option(help="Random numbers: ours, or those of the model's original program.")
    ] = "numpy",
    bins: _BINS = None,
    output: _OUTPUT = None,
    overwrite: option.Overwrite = False,
) -> None:
    """Give the jobs of a log the requested times of the Tsafrir-Etsion-Feitelson model.

    All other fields stay. Run times above the longest request are cut to it; lines without run time or processors
    are dropped.

    Example: policyfactory workload estimates lublin.swf --seed 1 --output requests.swf
    """
    from policyfactory.workload.models.tsafrir import draw_estimates, replace_requests, usable_lines
    from policyfactory.workload.swf.files import read_swf, write_swf

    option.refuse_idle(output, overwrite=overwrite)
    longest = _longest(max_estimate)
    with exclusive(output, overwrite=overwrite):
        log = read_swf(trace)
        pairs = _user_bins(bins or [], int(usable_lines(log).sum()))
        result, estimates = replace_requests(
            log, lambda run_time: draw_estimates(run_time, longest, seed=seed, user_bins=pairs, stream=stream)
        )
        write_swf(result, output)
    if len(log) > len(result):
        warn(f"{len(log) - len(result):,} of {len(log):,} lines have no run time or no processors and were dropped")
    _report([f"{len(result):,} jobs", estimates.note], output)


# ``policyfactory workload resample``: new logs from the weeks of each user of a real one ------------------------------


@app.command()
@option.with_options(OPTIONS[name] for name in option.READING if name != "assume")
def resample(
    trace: option.LogFile,
    weeks: Annotated[int | None, typer.Option(help="Length of the new log in weeks.")] = None,
    length: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Length in words: 2y (104 weeks), 26w, log (as the log, the default)."),
    ] = None,
    seed: _SEED = 1,
    number: Annotated[int, typer.Option(help="Which of the resamples of that seed, from 1.")] = 1,
    draw: Annotated[
        Literal["log", "active"],
        typer.Option(
            help="Draw from all weeks of the log (log, keeps its load), or from those of the user's jobs (active)."
        ),
    ] = "log",
    load: Annotated[
        float, typer.Option(help="Divide the times between arrivals by this: 1.1 is 10 % more load.")
    ] = 1.0,
    estimates: Annotated[
        str, typer.Option(help="Requested times: user, exact, noisy:F (up to 1 + F run times), tsafrir (a model).")
    ] = "user",
    output: _OUTPUT = None,
    overwrite: option.Overwrite = False,
    **reading: Any,
) -> None:
    """Make a new log: for every week and user, one week of that user's history, drawn at random.

    The log is cleaned first. Its week begins at its first submission; jobs keep their second of the week.
    Other arrivals and other requested times come with --load and --estimates.

    Example: policyfactory workload resample site.swf.gz --number 2 --output drawn-2.swf.gz
    """
    from policyfactory.workload.clean import read
    from policyfactory.workload.resample import Resampling, UserWeeks, parse_length
    from policyfactory.workload.sensitivity import Sensitivity, parse_estimates
    from policyfactory.workload.swf.files import write_swf

    option.refuse_idle(output, overwrite=overwrite)
    if weeks is not None and length is not None:
        raise UsageError("--weeks and --length say the same thing; give one of them")
    how = Resampling(weeks if length is None else parse_length(length), draw)
    axes = Sensitivity(load, parse_estimates(estimates))
    if output is not None:
        check_file(output, "its manifest")
    with exclusive(output, overwrite=overwrite):
        log = read(trace, **reading)
        history = UserWeeks(log)
        longest = math.ceil(int(log.requested_time.max()) / log.ticks)
        drawn = history.sample(how.weeks, seed, number, how.draw)
        resampled = axes.apply(drawn, seed=seed, number=number, longest_s=longest)
        if not len(resampled):
            raise WorkloadError(
                f"{trace}: no user had a job in the week drawn for it; ask for more weeks or another --seed"
            )
        _report_resamples(history, how, resampled)
        with together():
            write_swf(_as_log(resampled), output)
            if output is not None:
                _manifest(output, log.cleaning, seed, {"number": number, **_parameters(history, how, axes)})
    if output is not None:
        note(f"written: {output}")


def _report_resamples(history: UserWeeks, how: Resampling, resampled: Workload) -> None:
    from policyfactory.workload.jobs import load_in_words

    log = history.workload
    note(log.cleaning.totals())
    rest = f"; {history.left_out:,} jobs after the last whole week are left out" if history.left_out else ""
    note(f"the log has {history.weeks} whole weeks of {history.users:,} users with {history.jobs:,} jobs{rest}")
    note(f"{len(resampled):,} jobs: {resampled.origin.removeprefix(f'{log.origin}; ')}")
    note(f"{load_in_words(resampled.offered_load, 4)}; that of the log is {log.offered_load:.4f}")
    if history.users == 1:
        warn("the log has one user only, so that whole weeks of it are drawn")
    if how.draw == "active":
        more = history.expected_work("active") / history.expected_work("log") if history.expected_work() else 1.0
        warn(f"every user is active every week: the expected work of a week is {more:.2f} times the log's")


def _as_log(workload: Workload) -> SwfLog:
    """Return the jobs as a log whose header has a note for each step that made them."""
    from policyfactory.workload.swf.log import log_of_workload

    log = log_of_workload(dataclasses.replace(workload, origin=""))
    header = log.header.replace({"Conversion": f"policyfactory {__version__}"}, tuple(workload.origin.split("; ")))
    return dataclasses.replace(log, header=header)


def _parameters(history: UserWeeks, how: Resampling, axes: Sensitivity) -> dict[str, object]:
    return {
        "weeks": how.weeks or history.weeks,
        "draw": how.draw,
        "load": axes.load,
        "estimates": str(axes.estimates),
        "log_weeks": history.weeks,
        "log_users": history.users,
        "left_out_jobs": history.left_out,
    }


def _manifest(output: Path, account: CleaningReport, seed: int, parameters: dict[str, object]) -> None:
    cleaning = {"preset": account.preset, "estimate_missing": account.estimate_missing, "machine": account.machine}
    inputs = {Path(account.source).name: account.sha256}
    Manifest.write_beside(output, "resampled-log", seed, inputs=inputs, parameters={**parameters, **cleaning})
