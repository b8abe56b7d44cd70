"""``policyfactory export``: hand a policy to a program or a scheduler."""

from __future__ import annotations

import enum
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyfactory.core.errors import UsageError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

__all__ = ["export"]

_DEFAULT_LIFE = "365d"


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
            help="From when r counts: 2026-01-01 (UTC), 2026-01-01T08:00+02:00, Unix seconds, or oldest-waiting.",
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Jobs that have waited longer go first, for example 20h; inf: never."),
    ] = None,
    processors: Annotated[int | None, typer.Option(metavar="N", help="Size of the machine, written for m.")] = None,
    nodes: Annotated[int | None, typer.Option(metavar="N", help="Nodes of the machine, for slurm-weights.")] = None,
    workload: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="The cluster's own jobs (SWF): whole numbers are spread over their scores."),
    ] = None,
    estimate_missing: Annotated[
        EstimateMissing, typer.Option(help="Jobs of the log without a requested time.")
    ] = EstimateMissing.error,
    begin: Annotated[
        str | None, typer.Option(metavar="DATE", help="When the policy is put to use; the epoch without it.")
    ] = None,
    life: Annotated[str, typer.Option(metavar="TIME", help="For how long it will order jobs.")] = _DEFAULT_LIFE,
    preview: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE.csv",
            help="Show what changes in this queue (printed by squeue; - is stdin).",
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="DATE", help="When the queue was printed; its latest submission without it.")
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Of the queue's times, for example Europe/Paris.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the preview as JSON.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace earlier files.")] = False,
) -> None:
    """Export a policy to a scheduler (Slurm, Grid Engine, OAR, OpenPBS) or a program.

    The file says in its header how to install it, how to roll back, and what it can not express. With --preview it is
    written only where --output says.
    """
    from policyfactory.cli.export_run import Request, carry_out
    from policyfactory.core.units import parse_duration

    if preview is None and (as_json or at is not None or time_zone is not None):
        raise UsageError("--json, --at and --time-zone belong to a preview; add --preview QUEUE.csv")
    target = to.lower()
    options = {
        "--epoch": epoch,
        "--threshold": threshold,
        "--processors": processors,
        "--nodes": nodes,
        "--workload": workload,
        "--estimate-missing": None if estimate_missing is EstimateMissing.error else estimate_missing.value,
        "--begin": begin,
        "--life": None if life == _DEFAULT_LIFE else life,
    }
    carry_out(
        Request(
            model=model,
            target=target,
            command=_command(model, target, options),
            output=output,
            overwrite=overwrite,
            epoch="oldest-waiting" if epoch == "oldest-waiting" else _instant("epoch", epoch),
            threshold=None if threshold is None else parse_duration(threshold, unit=True),
            processors=processors,
            nodes=nodes,
            workload=workload,
            estimate_missing=estimate_missing.value,
            begin=_instant("begin", begin),
            life=_life(life),
            preview=preview,
            at=_instant("at", at),
            zone=_zone(time_zone),
            as_json=as_json,
        )
    )


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
        raise UsageError(f"--life {text}: scores without an end can not be mapped; give for example 365d")
    return int(seconds)


def _instant(option: str, text: str | None) -> int | None:
    """Return the Unix seconds of a date or of a number."""
    import datetime as dt

    if text is None:
        return None
    clean = text.strip()
    if clean.isascii() and clean.isdigit() and len(clean) <= 12:
        return int(clean)
    try:
        found = dt.datetime.fromisoformat(clean)
    except ValueError:
        raise UsageError(f"{option} {text!a} is no date; write 2026-01-01 (UTC) or seconds since 1970") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=dt.UTC)
    return int(found.timestamp())


def _zone(name: str | None) -> dt.tzinfo | None:
    import zoneinfo

    if name is None:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"--time-zone {name!a} is unknown; write for example Europe/Paris or UTC") from None
