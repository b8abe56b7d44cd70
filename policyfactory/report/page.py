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
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from policyfactory.core.text import anchors, shown
from policyfactory.report.files import Drawings
from policyfactory.report.sections import Cell, Column, NumberFormat, Picture, Section, Table, format_for

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from policyfactory.report.verdict import Light, Verdict

MOST_ROWS = 2000  # more make a page slow on a phone; the CSV has them all
_TALL = 30  # rows from which a table scrolls below its headings
_LONG = 24  # letters; a longer text is broken between words, a longer word anywhere

# Words whose meaning has a colour; others are shown without one.
_KINDS = {"best": "best", "better": "better", "worse": "worse", "no difference": "same", "chosen": "chosen"}
_BENT_FROM = 20.0  # times the middle reach: beyond, one row would hide the others on a linear axis
_MARGIN = 4.0  # % of the axis at either end


@dataclasses.dataclass(frozen=True, slots=True)
class CellView:
    """A cell: ``text`` (interval and mark beside it); ``sort``: a number to sort by; ``wrap``: how its text breaks."""

    text: str
    sort: str
    number: bool
    interval: str
    mark: str
    kind: str
    wrap: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnView:
    """A heading; ``number``: its cells are aligned as numbers; ``room``: width of its intervals in digits, or 0."""

    title: str
    unit: str
    help: str
    number: bool
    room: int
    chosen: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """A difference on an axis: the point and the ends of its interval in % of its width; ``label``: both as text."""

    point: float
    low: float | None
    high: float | None
    kind: str
    label: str


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """The bars of a table, None for a row without a difference; ``zero``: where no difference is; ``ends`` as text."""

    column: int
    title: str
    bars: tuple[Bar | None, ...]
    zero: float
    bent: bool
    ends: str


@dataclasses.dataclass(frozen=True, slots=True)
class TableView:
    """A table, cut if it is too long; ``file`` is where all of it is; ``keys``: the policy that each row is about."""

    title: str
    note: str
    columns: tuple[ColumnView, ...]
    rows: tuple[tuple[CellView, ...], ...]
    all_rows: int
    file: str
    tall: bool
    keys: tuple[str, ...] = ()
    axis: Axis | None = None
    front: bool = False


def view(table: Table, folder: str, section: str, chosen: str = "") -> TableView:
    """Return ``table`` as the page shows it.

    Parameters
    ----------
    table : Table
        The numbers.
    folder, section : str
        Where its CSV lies: ``folder/section/NAME.csv``.
    chosen : str
        Name of a policy that is marked wherever it stands alone in a cell or a heading.
    """
    rows = table.rows[: MOST_ROWS if table.shown is None else min(table.shown, MOST_ROWS)]
    columns, cells = [], []
    for index, column in enumerate(table.columns):
        marked = [_marked(row[index], chosen) for row in rows]
        number_format = format_for(column, marked)
        shown = [_cell(cell, number_format) for cell in marked]
        number = any(cell.number for cell in shown)
        unit = _unit(column, number_format) if number else ""
        room = max((_room(cell.interval) for cell in shown), default=0)
        columns.append(
            ColumnView(column.heading, unit, column.help, number, room, bool(chosen) and column.title == chosen)
        )
        cells.append(shown)
    path = "/".join(part for part in (folder, section, f"{table.name}.csv") if part)
    turned = tuple(zip(*cells, strict=True)) if cells else ()
    places = [index for index, column in enumerate(table.columns) if column.title == "policy"]
    keys = tuple(str(row[places[0]].value) for row in rows) if places else ()
    axis = _axis(table, cells[table.bars], rows, columns[table.bars]) if table.bars > 0 else None
    tall = len(rows) > _TALL
    return TableView(
        title=table.title,
        note=table.note,
        columns=tuple(columns),
        rows=turned,
        all_rows=len(table.rows),
        file=path,
        tall=tall,
        keys=keys,
        axis=axis,
        front=table.front,
    )


def _marked(cell: Cell, chosen: str) -> Cell:
    return dataclasses.replace(cell, mark="chosen") if chosen and cell.value == chosen and not cell.mark else cell


def _axis(table: Table, shown: Sequence[CellView], rows: Sequence[Sequence[Cell]], column: ColumnView) -> Axis | None:
    """Return the differences of a column as bars; None if there are none."""
    index = table.bars
    cells = [row[index] for row in rows]
    points = [_points(cell) for cell in cells]
    reach = sorted(max(map(abs, numbers)) for numbers in points if numbers and any(numbers))
    if not reach:
        return None
    middle = reach[len(reach) // 2]
    bent = reach[-1] >= _BENT_FROM * middle
    scaled = [[math.asinh(value / middle) if bent else value for value in numbers] for numbers in points]
    ends = [0.0, *(value for numbers in scaled for value in numbers)]
    low, width = min(ends), max(ends) - min(ends)

    def position(value: float) -> float:
        return round(_MARGIN + (100 - 2 * _MARGIN) * (value - low) / width, 2)

    bars = []
    for cell, seen, numbers in zip(cells, shown, scaled, strict=True):
        label = " ".join(part for part in (seen.text, seen.interval, column.unit, seen.mark) if part)
        low_end, high_end = (position(numbers[1]), position(numbers[2])) if len(numbers) == 3 else (None, None)
        kind = _KINDS.get(cell.mark, "other")
        bars.append(Bar(position(numbers[0]), low_end, high_end, kind, label) if numbers else None)
    how = format_for(table.columns[index], cells)
    every = [0.0, *(value for numbers in points for value in numbers)]
    first, last = (how.texts(Cell(end))[0] if end else "0" for end in (min(every), max(every)))
    range_text = " ".join(part for part in (f"{first} to {last}", column.unit) if part)
    return Axis(index, column.title, tuple(bars), position(0.0), bent, range_text)


def _points(cell: Cell) -> list[float]:
    """Return the number of a cell and the ends of its interval; nothing if it has no finite number."""
    if cell.value is None or isinstance(cell.value, str) or not math.isfinite(cell.value):
        return []
    ends = [cell.interval.low, cell.interval.high] if cell.interval else []
    return [float(cell.value), *(ends if all(map(math.isfinite, ends)) else [])]


def _unit(column: Column, number_format: NumberFormat) -> str:
    """Return the unit to show: none for a pure number or where the heading says it already ("windows won")."""
    unit = number_format.scale.label
    return "" if unit == "1" or (len(unit) > 2 and unit.casefold() in column.heading.casefold()) else unit


def _room(text: str) -> int:
    """Return how many digits wide a text is at most; the page reserves it, so that the values before it line up."""
    narrow = sum(letter in " ,.-[]" for letter in text)
    return math.ceil(len(text) - 0.35 * narrow + 0.4 * text.count("+"))


def _cell(cell: Cell, number_format: NumberFormat) -> CellView:
    kind = _KINDS.get(cell.mark, "other")
    value = cell.value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return CellView("", "", False, "", cell.mark, kind)
    if isinstance(value, str):
        wrap = "" if len(value) <= _LONG else "wrap" if max(map(len, value.split()), default=0) <= _LONG else "break"
        return CellView(text=value, sort="", number=False, interval="", mark=cell.mark, kind=kind, wrap=wrap)
    text, interval = number_format.texts(cell)
    return CellView(text, f"{float(value):.12g}".replace("inf", "Infinity"), True, interval, cell.mark, kind)


# The page: every finding of a run in one HTML file that asks nothing of any other server ------------------------------


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


class BoardGroup(NamedTuple):
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
    groups : tuple of BoardGroup
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
    groups: tuple[BoardGroup, ...] = ()
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
    boards = [board for group in page.groups for board in group.boards]
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
        self.inline = _inline([section for group in page.groups for section in group.sections], drawings)

    def views(self) -> Iterator[_GroupView]:
        names = list(_OWN_ANCHORS)
        for group in self.page.groups:
            group_name = group.folder or group.heading
            names += [group_name, *(f"{group_name} {section.name}" for section in group.sections)]
        ids = iter(anchors(names)[len(_OWN_ANCHORS) :])
        for group in self.page.groups:
            group_id = next(ids)
            boards = _boards(f"{group_id}-board", group.boards, self.page.chosen)
            sections = [self._section(next(ids), section, group.folder) for section in group.sections]
            shown = tuple(part for part in sections if part.paragraphs or part.front or part.tables or part.pictures)
            yield _GroupView(group_id, group.heading, group.about, boards, shown)

    def _section(self, anchor: str, section: Section, folder: str) -> _SectionView:
        tables = [(table, self._table(table, folder, section.name)) for table in section.tables]
        return _SectionView(
            id=anchor,
            title=section.title,
            paragraphs=tuple(text for text in section.paragraphs if not _is_answer(text, self.page.answers)),
            front=tuple(seen for table, seen in tables if table.front),
            tables=tuple(seen for table, seen in tables if not table.front),
            pictures=tuple(self._picture(picture, folder, section.name) for picture in section.pictures),
            timelines=tuple(
                _TimelineView(drawn.title, drawn.note, text) for drawn in section.timelines if (text := drawn.pack())
            ),
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
        _BoardView(f"{stem}-{number}", board.log, board.metric, view(board.table, "", "", chosen))
        for number, board in enumerate(boards, 1)
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


def _is_answer(paragraph: str, answers: Iterable[str]) -> bool:
    """Return whether a paragraph stands at the head of the page already, perhaps after the experiment's title."""
    return any(answer == paragraph or answer.endswith(f". {paragraph}") for answer in answers)
