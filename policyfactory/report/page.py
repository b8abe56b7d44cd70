"""The page: every finding of a run in one HTML file that asks nothing of any other server.

Style and script are inside the file, and its Content-Security-Policy admits these two alone (by their SHA-256): markup
that came in by a name could do nothing even if it were not escaped. Everything shown is escaped by the template
engine (autoescape), after characters that would deceive a reader were made visible (`text.visible`).
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from policyfactory.core.text import anchors, shown
from policyfactory.report.drawings import Drawings
from policyfactory.report.html_tables import TableView, view

if TYPE_CHECKING:
    from jinja2 import Environment

    from policyfactory.report.sections import Picture, Section
    from policyfactory.report.verdict import Light, Verdict

__all__ = ["Group", "Page", "caution_of", "render"]

_LARGE = 20_000_000  # bytes

_OWN_ANCHORS = ("content", "verdict", "in-short", "how-it-was-made")
# The light in words and in a shape, for who does not see its colour.
_LIGHTS: Mapping[Light, tuple[str, str]] = {
    "better": ("Shown better", "\u25b2"),
    "cannot tell": ("Cannot tell", "?"),
    "worse": ("Shown worse", "\u25bc"),
    "unsound": ("Unsound: no conclusion can be drawn", "!"),
}
_MANY_SECTIONS = 24  # with more, the contents list the experiments, and their parts on demand

# What differs between two runs of the same thing stays in manifest.json: equal results are equal pages.
_NOT_SHOWN = frozenset({"measured", "outputs"})


class Group(NamedTuple):
    """The sections of one experiment.

    Parameters
    ----------
    heading : str
        Title of the experiment.
    sections : tuple of Section
        What was found.
    folder : str
        Where their files lie, below the folder of the results; named where a table is cut.
    about : tuple of str
        Paragraphs: what was done, before what was found.
    """

    heading: str
    sections: tuple[Section, ...]
    folder: str = ""
    about: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Page:
    """What a report says, before it is HTML.

    Parameters
    ----------
    title : str
        Its heading.
    about : tuple of str
        Paragraphs: what was done.
    source : str
        The paper whose experiment it is, as a citation; empty if there is none.
    answers : tuple of str
        The closing words, a paragraph each: what was found.
    groups : tuple of Group, or of tuples with its fields
        The evidence, an experiment each.
    protocol : str
        The protocol as run (TOML); empty if the options of the command line were the protocol.
    manifest : mapping
        `Manifest.as_dict`; empty if there is none.
    verdict : Verdict or None
        What the numbers say, at the head of the page; None if nobody judged them.
    chosen : str
        Name of the policy that was chosen; it has the same mark wherever it is named. Empty: none was.
    """

    title: str
    about: tuple[str, ...] = ()
    source: str = ""
    answers: tuple[str, ...] = ()
    groups: tuple[Group | tuple[str, tuple[Section, ...]] | tuple[str, tuple[Section, ...], str], ...] = ()
    protocol: str = ""
    manifest: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    verdict: Verdict | None = None
    chosen: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class _SectionView:
    id: str
    title: str
    paragraphs: tuple[str, ...]
    tables: tuple[TableView, ...]
    pictures: tuple[tuple[Picture, str], ...]  # with its shapes


@dataclasses.dataclass(frozen=True, slots=True)
class _GroupView:
    id: str
    heading: str
    about: tuple[str, ...]
    sections: tuple[_SectionView, ...]


def caution_of(path: Path) -> str:
    """Return what is to be said of a page that is so large that a phone takes long to open it; else nothing."""
    if path.stat().st_size <= _LARGE:
        return ""
    return f"{path} is large, and a phone takes long to open it; the tables are in the files too"


def render(page: Page, drawings: Drawings | None = None) -> str:
    """Return the page as HTML; equal pages are equal bytes.

    Parameters
    ----------
    page : Page
        What it says.
    drawings : Drawings, optional
        Pictures that are drawn already (by `files.save_sections`), so that each is drawn once.
    """
    from markupsafe import Markup

    style, script = _source("page.css"), _source("page.js")
    groups = tuple(_group_views(page, drawings or Drawings()))
    tables = [table for group in groups for section in group.sections for table in section.tables]
    text: str = (
        _environment()
        .from_string(_source("page.html"))
        .render(
            page=page,
            light=None if page.verdict is None else _LIGHTS[page.verdict.light],
            groups=groups,
            folded=sum(len(group.sections) for group in groups) > _MANY_SECTIONS,
            policy=_content_policy(style, script),
            style=Markup(style),  # noqa: S704 - our own file, nothing of a reader's data in it
            script=Markup(script),  # noqa: S704 - our own file, nothing of a reader's data in it
            intervals=any(cell.interval for table in tables for row in table.rows for cell in row),
            marks=list(dict.fromkeys(cell.mark for table in tables for row in table.rows for cell in row if cell.mark)),
            manifest=_manifest_text(page.manifest),
        )
    )
    return text


def _source(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _environment() -> Environment:
    from jinja2 import Environment, StrictUndefined

    # Every expression goes through `shown`, then through the escaping: no template can forget it.
    return Environment(autoescape=True, finalize=shown, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _content_policy(style: str, script: str) -> str:
    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; script-src 'sha256-{digest(script)}'; style-src 'sha256-{digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _manifest_text(manifest: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in manifest.items() if key not in _NOT_SHOWN}
    return json.dumps(kept, sort_keys=True, indent=2, ensure_ascii=False) if kept else ""


def _group_views(page: Page, drawings: Drawings) -> Iterator[_GroupView]:
    from markupsafe import Markup

    groups = [Group(*group) for group in page.groups]
    names = list(_OWN_ANCHORS)
    for group in groups:
        own = group.folder or group.heading
        names += [own, *(f"{own} {section.name}" for section in group.sections)]
    ids = iter(anchors(names)[len(_OWN_ANCHORS) :])
    numbers = itertools.count(1)
    for group in groups:
        group_id = next(ids)
        sections = []
        for section in group.sections:
            tables = tuple(view(table, group.folder, section.name) for table in section.tables)
            drawn = [(picture, drawings.inline(picture, f"p{next(numbers)}-")) for picture in section.pictures]
            pictures = tuple((picture, Markup(svg)) for picture, svg in drawn)  # noqa: S704 - built from an allow-list
            paragraphs = tuple(text for text in section.paragraphs if not _said(text, page.answers))
            anchor = next(ids)
            if paragraphs or tables or pictures:
                sections.append(_SectionView(anchor, section.title, paragraphs, tables, pictures))
        yield _GroupView(group_id, group.heading, group.about, tuple(sections))


def _said(paragraph: str, answers: Iterable[str]) -> bool:
    """Return whether a paragraph stands at the head of the page already, perhaps after the experiment's title."""
    return any(answer == paragraph or answer.endswith(f". {paragraph}") for answer in answers)
