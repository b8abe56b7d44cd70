"""``policyfactory workload``: look at logs, clean them, cut them, download them; make workloads from models."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli import options as option
from policyfactory.cli import workload_import, workload_make
from policyfactory.core.errors import UsageError
from policyfactory.core.files import atomic_write, check_directory, dump_json, exclusive, refuse_earlier, together
from policyfactory.evaluation.options import OPTIONS
from policyfactory.report.terminal import console, note, show_table, warn
from policyfactory.workload.presets import Overrun, Preset, ZeroRun, find_preset

if TYPE_CHECKING:
    from policyfactory.workload.describe import Description
    from policyfactory.workload.jobs import CleaningReport
    from policyfactory.workload.judge import LogJudgement
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
        console().file.write(dump_json({"schema_version": 1, "logs": values}))
        return
    _print_descriptions(described)


def _print_descriptions(described: list[tuple[Description, LogJudgement, list[str]]]) -> None:
    from policyfactory.workload.describe import COLUMNS, description_rows

    out = console()
    for description, judgement, _ in described:
        out.print(f"{description.name}: what it is good for", style="bold", markup=False)
        for use in judgement.uses:
            out.print(f"  {use.grade:<7} {use.name}: {use.why}", markup=False, soft_wrap=True)
        for finding in judgement.findings:
            out.print(finding, markup=False, soft_wrap=True)
        out.print()
    for first in range(0, len(described), _LOGS_ABREAST):
        logs = [description for description, _, _ in described[first : first + _LOGS_ABREAST]]
        show_table("What the logs hold", ["", *(log.name for log in logs)], description_rows(logs))
    for description, judgement, quirks in described:
        for table in judgement.waits:
            show_table(f"{description.name}: {table.title}", list(COLUMNS), table.cells())
        out.print(f"{description.name}: what to know", style="bold", markup=False)
        for quirk in quirks or ["nothing is odd"]:
            out.print(f"  - {quirk}", markup=False, soft_wrap=True)
        out.print()


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
        console().file.write(dump_json(account.as_dict()))
    else:
        _print_report(account)
    for text in assumptions if assumptions or assume is None else (f"the log says all that --assume {assume} names",):
        note(text)
    note("no log was written; add --output OUT.swf.gz" if output is None else f"written: {output}")


def _rules(preset: str, overrun: Overrun | None, zero_run: ZeroRun | None, longest_request: str | None) -> Preset:
    """Return the preset with the changes asked for."""
    from policyfactory.core.text import parse_duration

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
    console().print(account.totals(), markup=False, soft_wrap=True)
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
    show_written(parts)


def show_written(logs: dict[Path, SwfLog]) -> None:
    """Print which logs were written, a row each."""
    from policyfactory.core.text import format_duration

    rows = []
    for path, log in logs.items():
        begins = log.header.text("StartTime") or "-"
        rows.append([str(path), begins, f"{len(log):,}", format_duration(float(log.submit.max()))])
    show_table("written", ["file", "begins", "jobs", "last submission after"], rows, left=(0, 1))


app.command()(workload_import.download)
app.command("import", cls=workload_import.Import)(workload_import.import_log)
for command in (workload_make.lublin, workload_make.estimates, workload_make.resample):
    app.command()(command)
