"""What `shadow`, `review` and `site replay` share: how accounting is read, a verdict shown and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyfactory.core.artefact import Manifest, command_line
from policyfactory.core.files import together
from policyfactory.core.outputs import refuse_earlier
from policyfactory.report.terminal import note, show_sections, show_verdict
from policyfactory.workload.presets import MISSING_HELP, EstimateMissing

if TYPE_CHECKING:
    from policyfactory.policy.store import Model
    from policyfactory.report.sections import Section
    from policyfactory.report.verdict import Verdict

__all__ = [
    "MissingOption",
    "OutputOption",
    "OverwriteOption",
    "ProcessorsOption",
    "UnlimitedOption",
    "ZoneOption",
    "model_of",
    "refuse_to_replace",
    "show",
    "write",
]

ProcessorsOption = Annotated[
    int | None, typer.Option(help="Processors of the machine (default: the most in use at once).", min=1)
]
MissingOption = Annotated[EstimateMissing, typer.Option(help=MISSING_HELP)]
UnlimitedOption = Annotated[str | None, typer.Option(help="Requested time of jobs without a limit: 30d.")]
ZoneOption = Annotated[str | None, typer.Option(help="Zone of times that have none: Europe/Berlin.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder for the page and the tables (CSV).")
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run wrote.")]

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
    from policyfactory.policy.catalogue import resolve_model

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
    verdict: Verdict,
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
    from policyfactory.evaluate.results_folder import room, save
    from policyfactory.report.drawings import Drawings
    from policyfactory.report.files import save_sections
    from policyfactory.report.page import Group, Page, render

    manifest = Manifest("evaluation", command_line(), 0, inputs, dict(parameters), {})
    drawings = Drawings()
    content = Page(title, groups=(Group(title, tuple(sections)),), manifest=manifest.as_dict(), verdict=verdict)
    with room(folder, overwrite=overwrite) as place, together():
        parts = save_sections(place, "", sections, drawings)
        save(place, {_PAGE: render(content, drawings), **(others or {})}, manifest, parts)
    page = folder / _PAGE
    note(f"written: {page}, and a CSV file of each table beside it")
