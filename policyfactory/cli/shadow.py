"""``policyfactory shadow``: what a log-only export would have done."""

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

__all__ = ["shadow"]


def shadow(
    logfile: Annotated[
        Path, typer.Argument(metavar="LOGFILE", help="slurmctld.log, or the script's log, of an export --log-only.")
    ],
    accounting: Annotated[
        list[Path],
        typer.Option("--accounting", help="Accounting of the same time (sacct and the like, or SWF); repeatable."),
    ],
    policy: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Simulate this policy, in place of each job's number at its submission."),
    ] = None,
    processors: ProcessorsOption = None,
    estimate_missing: MissingOption = "model",
    unlimited: UnlimitedOption = None,
    time_zone: ZoneOption = None,
    output: OutputOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Compare the order that a log-only export would have made with the one in which the jobs were started.

    How many pairs of waiting jobs differ, who would go earlier or later, what a score costs, and what it would be worth
    by a simulation.
    """
    from policyfactory.review.accounting import Reading
    from policyfactory.review.shadow import shadow as compare

    refuse_to_replace(output, overwrite=overwrite)
    model, hashes = model_of(policy)
    found = compare(logfile, accounting, Reading(processors, estimate_missing, unlimited, time_zone), model)
    show(found.verdict, found.sections())
    if output is not None:
        title = f"Log only: {', '.join(found.log.policies) or 'the logged numbers'}"
        parameters = {"policy": policy or "the logged numbers"}
        inputs = {str(logfile): found.log.sha256, **found.accounting.hashes, **hashes}
        write(output, title, found.verdict, found.sections(), inputs, parameters, overwrite=overwrite)
