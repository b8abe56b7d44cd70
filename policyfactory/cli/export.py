"""``policyfactory export``: hand a policy to a program or a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["export"]


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file or a catalogue name (policy list).")],
    to: Annotated[str, typer.Option("--to", metavar="TARGET", help="python, c, lua, latex, json or pbs.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; stdout without it.")
    ] = None,
    epoch: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="From when r counts: 2026-01-01 (UTC), 2026-01-01T08:00+02:00 or Unix seconds."
        ),
    ] = None,
    processors: Annotated[int | None, typer.Option(metavar="N", help="Size of the machine, written for m.")] = None,
) -> None:
    """Export a policy: to python, c, lua, latex, json (a model file) or pbs (OpenPBS)."""
    from policyfactory.cli.console import note
    from policyfactory.core.artefact import atomic_write, check_output
    from policyfactory.core.errors import UsageError
    from policyfactory.export import TARGETS, prepare
    from policyfactory.policy.catalogue import resolve_model

    target = TARGETS.get(to.lower())
    if target is None:
        known = "; ".join(f"{name}: {one.description}" for name, one in TARGETS.items())
        raise UsageError(f"unknown target {to!a}; choose one of {known}")
    if output is not None:
        check_output(output)
    found = prepare(resolve_model(model), epoch=None if epoch is None else _instant(epoch), processors=processors)
    text = target.render(found)
    if output is None:
        typer.echo(text, nl=False)
    else:
        atomic_write(output, text)
        note(f"wrote {output}: {found.policy.name} as {target.description}")
    counts_from_window = "r" in found.policy.variables and found.policy.epoch.rule == "window-start"
    if counts_from_window and target.name in {"python", "c", "lua"}:
        note("r counts from the start of a window, which production does not have: fix it with --epoch 2026-01-01")


def _instant(text: str) -> int:
    """Return the Unix seconds of a date or of a number."""
    import datetime as dt

    from policyfactory.core.errors import UsageError

    clean = text.strip()
    if clean.isascii() and clean.isdigit() and len(clean) <= 12:
        return int(clean)
    try:
        found = dt.datetime.fromisoformat(clean)
    except ValueError:
        raise UsageError(f"epoch {text!a} is no date; write 2026-01-01 (UTC) or seconds since 1970") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=dt.UTC)
    return int(found.timestamp())
