"""The page: every finding of a run in one HTML file that asks nothing of any other server.

Style and script are inside the file, and its Content-Security-Policy admits these two alone (by their SHA-256): markup
that came in by a name could do nothing even if it were not escaped. Everything shown is escaped by the template
engine (autoescape), after characters that would deceive a reader were made visible (`text.visible`).
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from policyfactory.core.text import anchors, shown
from policyfactory.report.drawings import Drawings
from policyfactory.report.html_tables import MOST_ROWS, TableView, view

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from policyfactory.report.sections import Picture, Section, Table
    from policyfactory.report.verdict import Light, Verdict

__all__ = ["Board", "Card", "Group", "Page", "caution_of", "render"]

_LARGE = 20_000_000  # bytes
_PICTURES = 300_000  # bytes of all pictures inside the page; those after are named by their files
_CELLS = (
    8_000  # of all tables together; the first one beyond shows its first rows, those after are named by their files
)
_FEW_ROWS = 12

_OWN_ANCHORS = (
    "content",
    "verdict",
    "verdict-site",
    "forest",
    "in-short",
    "metric",
    "log",
    "policies",
    "how-it-was-made",
)

# What differs between two runs of the same thing stays in manifest.json: equal results are equal pages.
_NOT_SHOWN = frozenset({"measured", "outputs"})
# The shape of a light, for who does not see its colour.
_SIGNS: Mapping[Light, str] = {"better": "\u25b2", "cannot tell": "?", "worse": "\u25bc", "unsound": "!"}


class Card(NamedTuple):
    """What a log is: its name, and facts with their names."""

    log: str
    facts: tuple[tuple[str, str], ...]


class Board(NamedTuple):
    """How all policies stand in one metric (its name, and in words) on one log."""

    log: str
    metric: str
    label: str
    table: Table


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
    boards : tuple of Board
        How its policies stand; the page shows one of them at a time.
    """

    heading: str
    sections: tuple[Section, ...]
    folder: str = ""
    about: tuple[str, ...] = ()
    boards: tuple[Board, ...] = ()


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
    choice : str
        What it does, to follow its name.
    score : str
        What is most of all to be said of published values.
    cards : tuple of Card
        The logs.
    forests : tuple of Board
        The few differences that decide, a table a log.
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
    choice: str = ""
    score: str = ""
    cards: tuple[Card, ...] = ()
    forests: tuple[Board, ...] = ()


class _PictureView(NamedTuple):
    title: str
    note: str
    file: str
    svg: Markup | None


class _TimelineView(NamedTuple):
    title: str
    note: str
    text: str


class _BoardView(NamedTuple):
    id: str
    log: str
    metric: str
    table: TableView


@dataclasses.dataclass(frozen=True, slots=True)
class _SectionView:
    id: str
    title: str
    paragraphs: tuple[str, ...]
    front: tuple[TableView, ...]
    tables: tuple[TableView, ...]
    pictures: tuple[_PictureView, ...]
    timelines: tuple[_TimelineView, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _GroupView:
    id: str
    heading: str
    about: tuple[str, ...]
    boards: tuple[_BoardView, ...]
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

    groups = tuple(_GroupsOf(page, drawings or Drawings()).views())
    style, script = _source("page.css"), _source("page.js")
    if any(section.timelines for group in groups for section in group.sections):
        script += "\n" + _source("timeline.js")
    tables = [table for group in groups for section in group.sections for table in (*section.front, *section.tables)]
    tables += [board.table for group in groups for board in group.boards]
    boards = [board for group in page.groups for board in Group(*group).boards]
    named = [*page.forests, *boards]
    text: str = (
        _environment()
        .from_string(_source("page.html"))
        .render(
            page=page,
            untrusted=page.verdict is not None and not page.verdict.trusted,
            verdicts=[(part, _SIGNS[part.light]) for part in page.verdict.parts] if page.verdict else [],
            groups=groups,
            forests=_boards("forest", page.forests, page.chosen),
            metrics={board.metric: f"{board.label} ({board.metric})" for board in boards},
            logs=list(dict.fromkeys(board.log for board in boards)),
            policies=list(dict.fromkeys(str(row[0].value) for board in named for row in board.table.rows)),
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


class _GroupsOf:
    """Makes the views of the groups of a page, within its room for pictures and cells."""

    def __init__(self, page: Page, drawings: Drawings) -> None:
        self.page, self.cells = page, _CELLS
        self.inline = _inline([section for group in page.groups for section in Group(*group).sections], drawings)

    def views(self) -> Iterator[_GroupView]:
        groups = [Group(*group) for group in self.page.groups]
        names = list(_OWN_ANCHORS)
        for group in groups:
            own = group.folder or group.heading
            names += [own, *(f"{own} {section.name}" for section in group.sections)]
        ids = iter(anchors(names)[len(_OWN_ANCHORS) :])
        for group in groups:
            group_id = next(ids)
            boards = _boards(f"{group_id}-board", group.boards, self.page.chosen)
            sections = [self._section(next(ids), section, group.folder) for section in group.sections]
            shown = tuple(one for one in sections if one.paragraphs or one.front or one.tables or one.pictures)
            yield _GroupView(group_id, group.heading, group.about, boards, shown)

    def _section(self, anchor: str, section: Section, folder: str) -> _SectionView:
        tables = [(table, self._table(table, folder, section.name)) for table in section.tables]
        return _SectionView(
            anchor,
            section.title,
            tuple(text for text in section.paragraphs if not _said(text, self.page.answers)),
            tuple(seen for table, seen in tables if table.front),
            tuple(seen for table, seen in tables if not table.front),
            tuple(self._picture(picture, folder, section.name) for picture in section.pictures),
            tuple(_TimelineView(one.title, one.note, text) for one in section.timelines if (text := one.pack())),
        )

    def _table(self, table: Table, folder: str, section: str) -> TableView:
        rows = min(len(table.rows), MOST_ROWS if table.shown is None else table.shown)
        if not table.front and rows * len(table.columns) > self.cells:
            rows = min(rows, _FEW_ROWS) if self.cells > 0 else 0
            table = dataclasses.replace(table, shown=rows)
        self.cells -= rows * len(table.columns)
        return view(table, folder, section, self.page.chosen)

    def _picture(self, picture: Picture, folder: str, section: str) -> _PictureView:
        file = "/".join(part for part in (folder, section, f"{picture.name}.svg") if part)
        return _PictureView(picture.title, picture.note, file, self.inline.get(picture))


def _boards(stem: str, boards: Iterable[Board], chosen: str) -> tuple[_BoardView, ...]:
    return tuple(
        _BoardView(f"{stem}-{at}", one.log, one.metric, view(one.table, "", "", chosen))
        for at, one in enumerate(boards, 1)
    )


def _inline(sections: Sequence[Section], drawings: Drawings) -> dict[Picture, Markup]:
    """Return the pictures that the page has room for: the first one of each section before all others."""
    from markupsafe import Markup

    firsts = [picture for section in sections for picture in section.pictures[:1]]
    others = [picture for section in sections for picture in section.pictures[1:]]
    room, kept = _PICTURES, {}
    for number, picture in enumerate([*firsts, *others], 1):
        svg = drawings.inline(picture, f"p{number}-") if room > 0 else ""
        if 0 < len(svg) <= room:
            kept[picture] = Markup(svg)  # noqa: S704 - built from an allow-list
        room -= len(svg)
    return kept


def _said(paragraph: str, answers: Iterable[str]) -> bool:
    """Return whether a paragraph stands at the head of the page already, perhaps after the experiment's title."""
    return any(answer == paragraph or answer.endswith(f". {paragraph}") for answer in answers)
