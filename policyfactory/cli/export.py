"""``policyfactory export``: hand a policy to a program or a scheduler."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli.options import Overwrite, complete_targets, note_compiling, with_options
from policyfactory.core.errors import UsageError
from policyfactory.core.options import declared, options_of
from policyfactory.exports.options import ExportOptions, instant
from policyfactory.report.terminal import note, print_json, say, show_columns, warn

if TYPE_CHECKING:
    import datetime as dt

    from policyfactory.exports.exported import Exported, Preview
    from policyfactory.exports.queue import Queue

_MOST_ROWS = 60
_HEADINGS = ("place", "job", "user", "today", "moves", "limit", "q", "waited", "score", "priority")
_LEADING = 2  # of them name the row
_TARGET = (
    "slurm-site-factor-lua, slurm-priority-lua, slurm-nice, slurm-weights, slurm-site-factor-c, gridengine, oar, pbs; "
    "python, c, lua, latex, json."
)


@with_options(declared(ExportOptions).values())
def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file or a catalogue name (policy list).")],
    to: Annotated[
        str, typer.Option("--to", metavar="TARGET", help=_TARGET, autocompletion=complete_targets)
    ] = "slurm-site-factor-lua",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE|FOLDER", help="Where to write; without it the file goes to stdout."
        ),
    ] = None,
    preview: Annotated[
        str | None,
        typer.Option(metavar="QUEUE.csv", help="Show what changes in this queue (printed by squeue; - is stdin)."),
    ] = None,
    moment: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="DATE",
            help="When the queue was printed, in the zone of its times; its latest submission without it.",
        ),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(metavar="ZONE", help="Of the queue's times, for example Europe/Paris; this machine's without it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the preview as JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print how to install it, how to roll back, and its limits as well.")
    ] = False,
    overwrite: Overwrite = False,
    **given: Any,
) -> None:
    """Export a policy to a scheduler (Slurm, Grid Engine, OAR, OpenPBS) or a program.

    The head of the file says how to install it, how to roll back, and what it cannot express. With --preview it is
    written only where --output says.

    Example: policyfactory export learned/policy.json --workload site.swf.gz --output job_submit.lua
    """
    from policyfactory.exports.export import export as export_policy
    from policyfactory.workload.accounting.times import find_zone

    if preview is None and (as_json or moment is not None or time_zone is not None):
        raise UsageError("--json, --at and --time-zone belong to a preview; add --preview QUEUE.csv")
    options = options_of(ExportOptions, given)
    queue = None
    if preview is not None:
        queue = _queue(preview, moment, None if time_zone is None else find_zone(time_zone))
    if options.under_slurm(to):
        note_compiling()
    exported = export_policy(model, to, output, options, overwrite=overwrite)
    _print(exported, queue, as_json=as_json, verbose=verbose)


def _print(exported: Exported, queue: Queue | None, *, as_json: bool, verbose: bool) -> None:
    """Say what was written, or print it; show the preview, or say what to do; then what must be known."""
    written, takes_out = exported.paths[: len(exported.files)], exported.paths[len(exported.files) :]
    if written:
        note(f"written: {', '.join(str(path) for path in written)}, {exported.policy.name} as {exported.description}")
    for path in takes_out:
        note(f"written: {path}, which takes it out again")
    if queue is not None:
        _show(exported, queue, as_json=as_json)
    else:
        if not exported.paths:
            if len(exported.files) > 1:
                names = ", ".join(file.name for file in exported.files)
                raise UsageError(
                    f"{exported.target.name} has {len(exported.files)} files ({names}); name a folder: --output FOLDER"
                )
            typer.echo(exported.text, nl=False)
        _advise(exported, verbose=verbose)
    for text in exported.notes:
        note(text)
    for text in exported.warnings:
        warn(text)


def _advise(exported: Exported, *, verbose: bool) -> None:
    """Say what must be done with the files and what they cannot do; all of it stands in their heads."""
    from policyfactory.exports.content import Export, instructions

    lines = exported.instructions() if verbose else instructions(Export(settings=exported.export.settings))
    if exported.export.install and not verbose:
        number = next((i for i, file in enumerate(exported.files) if "oll back" in file.text), 0)
        head = str(exported.paths[number]) if exported.paths else "the file"
        lines += ["", f"How to install it, how to roll back, and its limits: see the head of {head} (or --verbose)."]
    if lines:
        note("\n".join([*lines, ""]).lstrip("\n"))


def _queue(name: str, moment: str | None, zone: dt.tzinfo | None) -> Queue:
    """Read the queue, and say what was taken for granted."""
    from policyfactory.core.inputs import read_bytes
    from policyfactory.exports.queue import LARGEST_FILE, read_queue
    from policyfactory.workload.accounting.times import machine_zone, shown

    source = "stdin" if name == "-" else name
    printed = instant("--at", moment, zone or (None if moment is None else machine_zone()[0]))
    data = sys.stdin.buffer.read(LARGEST_FILE + 1) if name == "-" else read_bytes(Path(name), limit=LARGEST_FILE)
    queue, notes = read_queue(data, source, now=printed, zone=zone)
    for line in notes:
        note(line)
    if moment is None:
        end = shown(queue.now, zone or machine_zone()[0])
        note(f"waits are counted up to the latest submission in the queue, {end}; --at says when it was printed")
    return queue


def _show(exported: Exported, queue: Queue, *, as_json: bool) -> None:
    from policyfactory.workload.header import printable

    policy = exported.policy
    if "r" in policy.variables and policy.epoch.rule == "window-start":
        note("preview: r counts from the job that has waited longest, as the policy has no date (--epoch)")
    preview = exported.preview(queue)
    rows = preview.rows()
    if as_json:
        content: dict[str, Any] = {"policy": policy.name, "at": queue.now, "summary": preview.summary()}
        print_json({**content, "compared": preview.compared, "jobs": rows})
        return
    more = len(rows) - _MOST_ROWS
    today = "its priorities" if queue.priority is not None else "submit time"
    show_columns(
        f"The queue by {printable(policy.name)}; today it is sorted by {today}",
        list(zip(_HEADINGS, *_cells(preview), strict=True)),
        _LEADING,
        caption=f"and {more:,} more; --json has all" if more > 0 else None,
        left=(1, 2),
    )
    for line in preview.summary():
        say(printable(line, 400))
    say("Backfilling may start a job before those ahead of it.")
    say(preview.compared)


def _cells(preview: Preview) -> list[list[str]]:
    from policyfactory.core.text import format_duration
    from policyfactory.workload.header import printable

    def moved(up: int) -> str:
        return "=" if up == 0 else f"{'up' if up > 0 else 'down'} {abs(up)}"

    scores = preview.scores[preview.order].tolist()
    return [
        [
            str(row["place"]),
            printable(row["job"], 40),
            printable(row["user"], 20),
            str(row["today"]),
            moved(row["up"]),
            format_duration(row["p"]),
            str(row["q"]),
            format_duration(row["waited"]) + (" late" if row["overdue"] else ""),
            f"{score:.6g}",
            f"{row['priority']:.10g}",
        ]
        for row, score in zip(preview.rows()[:_MOST_ROWS], scores, strict=False)
    ]
