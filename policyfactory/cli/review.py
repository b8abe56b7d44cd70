"""``policyfactory review``: did a new order of the queue help, and who lost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policyfactory.cli.review_output import (
    MissingOption,
    OutputOption,
    OverwriteOption,
    ProcessorsOption,
    UnlimitedOption,
    ZoneOption,
    model_of,
    refuse_to_replace,
    show,
    write,
)

__all__ = ["review"]


def review(
    before: Annotated[
        list[Path],
        typer.Option("--before", help="Accounting from before the change (sacct, PBS, ..., or SWF); repeatable."),
    ],
    after: Annotated[list[Path], typer.Option("--after", help="Accounting from after it; repeatable.")],
    policy: Annotated[
        str | None, typer.Option(metavar="MODEL", help="What was put to use: both times are simulated under it.")
    ] = None,
    processors: ProcessorsOption = None,
    estimate_missing: MissingOption = "model",
    unlimited: UnlimitedOption = None,
    time_zone: ZoneOption = None,
    output: OutputOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Compare the waits before and after a change of the queue's order: did it help, and who lost.

    The load is taken into account in three ways: weeks of like load, a regression, and a simulation of both times. Only
    where the simulation and one more agree, and none contradicts, there is a verdict.
    """
    from policyfactory.review.accounting import Reading
    from policyfactory.review.review import review as compare
    from policyfactory.review.words import sections_of

    refuse_to_replace(output, overwrite=overwrite)
    reading = Reading(processors, estimate_missing, unlimited, time_zone)
    model, hashes = model_of(policy)
    found = compare(before, after, model, reading)
    *main, weeks = sections_of(found)  # the weeks are for the page and the files
    show(found.verdict, main)
    if output is not None:
        inputs = found.before.accounting.hashes | found.after.accounting.hashes | hashes
        parameters = {"policy": policy or ""}
        write(output, "Before and after", found.verdict, [*main, weeks], inputs, parameters, overwrite=overwrite)
