"""``policyfactory review``: did a new order of the queue help, and who lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli.options import MissingOption, Overwrite
from policyfactory.core.files import Manifest, command_line, refuse_earlier, together
from policyfactory.report.terminal import note, show_sections, show_verdict

if TYPE_CHECKING:
    from policyfactory.policy.store import Model
    from policyfactory.report.sections import Section
    from policyfactory.report.verdict import Verdict


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
    overwrite: Overwrite = False,
) -> None:
    """Compare the waits before and after a change of the queue's order: did it help, and who lost.

    The load is taken into account in three ways: weeks of like load, a regression, and a simulation of both times. Only
    where the simulation and one more agree, and none contradicts, there is a verdict.

    Example: policyfactory review --before before.txt --after after.txt --policy policy.json --output review
    """
    from policyfactory.review.review import review as compare
    from policyfactory.review.review import sections_of
    from policyfactory.review.times import Reading

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


# ``policyfactory shadow``: what a log-only export would have done -----------------------------------------------------


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
    overwrite: Overwrite = False,
) -> None:
    """Compare the order that a log-only export would have made with the one in which the jobs were started.

    How many pairs of waiting jobs differ, who would go earlier or later, what a score costs, and what it would be worth
    by a simulation.

    Example: policyfactory shadow slurmctld.log --accounting sacct.txt --output shadow
    """
    from policyfactory.review.shadow import shadow as compare
    from policyfactory.review.times import Reading

    refuse_to_replace(output, overwrite=overwrite)
    model, hashes = model_of(policy)
    found = compare(logfile, accounting, Reading(processors, estimate_missing, unlimited, time_zone), model)
    show(found.verdict, found.sections())
    if output is not None:
        title = f"Log only: {', '.join(found.log.policies) or 'the logged numbers'}"
        parameters = {"policy": policy or "the logged numbers"}
        inputs = {str(logfile): found.log.sha256, **found.accounting.hashes, **hashes}
        write(output, title, found.verdict, found.sections(), inputs, parameters, overwrite=overwrite)


# What `shadow`, `review` and `site replay` share: how accounting is read, a verdict shown and written -----------------


ProcessorsOption = Annotated[
    int | None, typer.Option(help="Processors of the machine (default: the most in use at once).", min=1)
]
UnlimitedOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Requested time of jobs without a limit: 30d.")
]
ZoneOption = Annotated[
    str | None,
    typer.Option(metavar="ZONE", help="Zone of times that have none (default: this machine's): Europe/Berlin."),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder for the page and the tables (CSV).")
]

_PAGE = "report.html"


def refuse_to_replace(folder: Path | None, *, overwrite: bool) -> None:
    """Refuse a folder with a page before anything is computed.

    Raises
    ------
    OutputError
        If it has one that is not to be replaced.
    """
    if folder is not None:
        refuse_earlier(folder / _PAGE, overwrite=overwrite)


def model_of(policy: str | None) -> tuple[Model | None, dict[str, str]]:
    """Return the model that was named, and the digest of its file."""
    from policyfactory.policy.store import resolve_model

    if policy is None:
        return None, {}
    model = resolve_model(policy)
    return model, {policy: model.sha256} if model.sha256 else {}


def show(verdict: Verdict, sections: Sequence[Section]) -> None:
    """Print tables and verdict."""
    show_sections(sections)
    show_verdict(verdict)


def write(
    folder: Path,
    title: str,
    verdict: Verdict | None,
    sections: Sequence[Section],
    inputs: Mapping[str, str],
    parameters: Mapping[str, Any],
    others: Mapping[str, str] | None = None,
    *,
    overwrite: bool,
) -> None:
    """Write the page, the tables and the manifest into a folder.

    ``inputs`` are the digests of what was read, by file; ``others`` further texts, by their names in the folder.

    Raises
    ------
    OutputError
        If there is a page already and it is not to be replaced, or a file cannot be written.
    """
    from policyfactory.evaluation.results_folder import room, save
    from policyfactory.report.files import Drawings, save_sections
    from policyfactory.report.page import BoardGroup, Page, render

    manifest = Manifest("evaluation", command_line(), parameters.get("seed"), inputs, dict(parameters), {})
    drawings = Drawings()
    results = BoardGroup("Results", tuple(sections))
    content = Page(title, groups=(results,), manifest=manifest.as_dict(), verdict=verdict)
    with room(folder, overwrite=overwrite) as work_folder, together():
        parts = save_sections(work_folder, "", sections, drawings)
        save(work_folder, {_PAGE: render(content, drawings), **(others or {})}, manifest, parts)
    page = folder / _PAGE
    note(f"written: {page}, and a CSV file of each table beside it")
