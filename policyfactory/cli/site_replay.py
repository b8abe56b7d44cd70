"""``policyfactory site replay``: the log's own jobs, under the site's priorities, beside their record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.cli.compiling import note_compiling
from policyfactory.cli.evaluate_options import with_options
from policyfactory.cli.exits import leave
from policyfactory.cli.learning_options import READING
from policyfactory.cli.review_output import OutputOption, OverwriteOption, refuse_to_replace, show, write
from policyfactory.core.artefact import dump_json
from policyfactory.evaluate.plain import OPTIONS
from policyfactory.report.terminal import console, note, progress, warn

if TYPE_CHECKING:
    from policyfactory.workload.jobs import Workload

__all__ = ["JsonOption", "SiteOption", "note_assumed", "replay"]

SiteOption = Annotated[Path, typer.Argument(metavar="SITE", help="A site file (TOML).", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]


@with_options(OPTIONS[name] for name in READING)
def replay(
    log: Annotated[
        Path,
        typer.Argument(metavar="LOG", help="The site's log, with its starts (SWF, also .gz).", show_default=False),
    ],
    path: SiteOption,
    output: OutputOption = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="Only jobs from this time on: 30d after the first job, or a date 2026-05-01."),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="Up to this time, not included; as --from.")] = None,
    json: JsonOption = False,
    overwrite: OverwriteOption = False,
    **reading: Any,
) -> None:
    """Simulate the log's own jobs on its site, and say how near the waits are to the recorded ones.

    Under the site's own priorities; by partition and QOS, and the cores in use over time. Where it is too far from the
    record, nothing that is simulated on this site is to be trusted, and what is probably missing is told. A replay
    whose queue runs away, many times as long as the record's ever was, is stopped, and what holds its jobs is named.
    """
    from policyfactory.fidelity.compare import fidelity
    from policyfactory.fidelity.words import sections_of, verdict_of
    from policyfactory.site.file import site_and_digest
    from policyfactory.workload.clean import read

    refuse_to_replace(output, overwrite=overwrite)
    site, digest = site_and_digest(path)
    workload = read(log, **reading).between(start, end)
    note_assumed(workload)
    with _bar(2 * len(workload)) as follow:
        found = fidelity(workload, site, twice=True, progress=follow)
    verdict, sections = verdict_of(found), sections_of(found)
    text = dump_json(found.as_dict())
    if json:
        console().file.write(text)
    else:
        # The load over time is for the page, and the verdict says in words what is missing.
        show(verdict, [one for one in sections if one.name == "fidelity"])
    if output is not None:
        inputs = {str(log): workload.cleaning.sha256, str(path): digest}
        parameters = {"from": start, "to": end, **reading}
        title = f"{workload.name} on site {site.name}, under the site's priorities"
        write(output, title, verdict, sections, inputs, parameters, {"fidelity.json": text}, overwrite=overwrite)
    elif not json:
        note("add --output DIR for a page with pictures")
    leave(describes=found.light != "far")


@contextlib.contextmanager
def _bar(jobs: int) -> Iterator[Callable[[int], None]]:
    """Give what shows how many jobs are replayed; nothing is shown, or said of the compiler, before it begins."""
    bar = progress()
    task = bar.add_task("replayed twice, jobs", total=jobs)

    def follow(done: int) -> None:
        if not bar.live.is_started:
            note_compiling()
            bar.start()
        bar.update(task, completed=done)

    try:
        yield follow
    finally:
        if bar.live.is_started:
            bar.stop()


def note_assumed(workload: Workload) -> None:
    """Say what was assumed of the jobs (``--assume``), and first if most of the log's were dropped."""
    if workload.cleaning.warning:
        warn(workload.cleaning.warning)
    for text in () if workload.requests is None else workload.requests.assumed:
        note(text)
