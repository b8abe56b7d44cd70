"""``policyfactory export``: hand a policy to a program or a scheduler."""

from __future__ import annotations

import enum
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyfactory.core.artefact import exclusive
from policyfactory.core.errors import UsageError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

__all__ = ["export"]

_DEFAULT_LIFE = "365d"
_WEIGHT = (
    "Largest whole number of a score, 2 to 2000000000 (taken without it): how much the formula counts beside "
    "fair-share, QOS and partition."
)
_LATEST = 4_133_980_800  # 2101-01-01


class EstimateMissing(enum.StrEnum):
    """What to do with jobs of the log without a requested time."""

    error = "error"
    runtime = "runtime"
    drop = "drop"


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file or a catalogue name (policy list).")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TARGET",
            help="slurm-site-factor-lua, slurm-priority-lua, slurm-nice, slurm-weights, slurm-site-factor-c, "
            "gridengine, oar, pbs; python, c, lua, latex, json.",
        ),
    ] = "slurm-site-factor-lua",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE|FOLDER", help="Where to write; without it the file goes to stdout."
        ),
    ] = None,
    epoch: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="From when r counts: 2026-01-01 (in UTC), 2026-01-01T08:00+02:00, Unix seconds, or oldest-waiting.",
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Jobs that have waited longer go first, for example 20h; inf: never."),
    ] = None,
    processors: Annotated[int | None, typer.Option(metavar="N", help="Size of the machine, written for m.")] = None,
    nodes: Annotated[int | None, typer.Option(metavar="N", help="Nodes of the machine, for slurm-weights.")] = None,
    weight: Annotated[int | None, typer.Option(metavar="N", help=_WEIGHT)] = None,
    workload: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="The cluster's own jobs (SWF): whole numbers are spread over their scores."),
    ] = None,
    estimate_missing: Annotated[
        EstimateMissing, typer.Option(help="Jobs of the log without a requested time.")
    ] = EstimateMissing.error,
    begin: Annotated[
        str | None, typer.Option(metavar="DATE", help="When the policy is put to use, in UTC; the epoch without it.")
    ] = None,
    life: Annotated[str, typer.Option(metavar="TIME", help="For how long it will order jobs.")] = _DEFAULT_LIFE,
    preview: Annotated[
        str | None,
        typer.Option(metavar="QUEUE.csv", help="Show what changes in this queue (printed by squeue; - is stdin)."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
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
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace earlier files.")] = False,
) -> None:
    """Export a policy to a scheduler (Slurm, Grid Engine, OAR, OpenPBS) or a program.

    The head of the file says how to install it, how to roll back, and what it cannot express. With --preview it is
    written only where --output says.
    """
    from policyfactory.cli.export_run import Request, carry_out
    from policyfactory.core.units import parse_duration
    from policyfactory.workload.accounting.times import find_zone

    if preview is None and (as_json or at is not None or time_zone is not None):
        raise UsageError("--json, --at and --time-zone belong to a preview; add --preview QUEUE.csv")
    target = to.lower()
    options = {
        "--epoch": epoch,
        "--threshold": threshold,
        "--processors": processors,
        "--nodes": nodes,
        "--weight": weight,
        "--workload": workload,
        "--estimate-missing": None if estimate_missing is EstimateMissing.error else estimate_missing.value,
        "--begin": begin,
        "--life": None if life == _DEFAULT_LIFE else life,
    }
    zone = None if time_zone is None else find_zone(time_zone)
    request = Request(
        model=model,
        target=target,
        command=_command(model, target, options),
        given=frozenset(name for name, value in options.items() if value is not None),
        output=output,
        overwrite=overwrite,
        epoch="oldest-waiting" if epoch == "oldest-waiting" else _instant("--epoch", epoch),
        threshold=None if threshold is None else parse_duration(threshold, unit=True),
        processors=processors,
        nodes=nodes,
        weight=weight,
        workload=workload,
        estimate_missing=estimate_missing.value,
        begin=_instant("--begin", begin),
        life=_life(life),
        preview=preview,
        at=None if at is None else _instant("--at", at, zone or _here()),
        zone=zone,
        as_json=as_json,
        verbose=verbose,
    )
    with exclusive(_claim(output)):
        carry_out(request)


def _claim(output: Path | None) -> Path | None:
    """Return what another export must not write meanwhile; a folder in folders that are not there yet is nobody's."""
    if output is None or not output.parent.is_dir():
        return None
    return output / "export" if output.is_dir() else output


def _command(model: str, target: str, options: Mapping[str, object]) -> str:
    """Return the command for the header: what determines the bytes of the file, and not where it is written."""
    words = ["policyfactory", "export", model, "--to", target]
    for name, value in options.items():
        words += [] if value is None else [name, str(value)]
    return shlex.join(words)


def _life(text: str) -> int:
    from policyfactory.core.units import parse_duration

    seconds = parse_duration(text, unit=True)
    if math.isinf(seconds):
        raise UsageError(f"--life {text}: scores without an end cannot be mapped; give for example 365d")
    return int(seconds)


def _instant(option: str, text: str | None, zone: dt.tzinfo | None = None) -> int | None:
    """Return the Unix seconds of a date (in UTC without a zone) or of a number."""
    import datetime as dt

    from policyfactory.workload.accounting.times import parse_date

    if text is None:
        return None
    seconds = parse_date(text, zone or dt.UTC, option)
    if not 0 <= seconds < _LATEST:
        raise UsageError(f"{option} {text!a} cannot be meant; give a date of the years 1970 to 2100")
    return seconds


def _here() -> dt.tzinfo:
    from policyfactory.workload.accounting.times import machine_zone

    return machine_zone()[0]
