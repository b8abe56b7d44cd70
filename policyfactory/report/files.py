"""The sections of a report as files: each table as CSV, each picture as SVG."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from pathlib import Path
from xml.etree import ElementTree as ET

from policyfactory.core.errors import OutputError
from policyfactory.core.files import atomic_write, check_directory
from policyfactory.core.picture import keeps_settings, svg_bytes
from policyfactory.core.text import csv_text, html_text, markdown_text
from policyfactory.report.sections import Cell, Column, Picture, Section, Table, column_texts

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def save_sections(
    directory: Path, group: str, sections: Sequence[Section], drawings: Drawings | None = None
) -> list[Path]:
    """Write ``directory/group/SECTION/TABLE.csv`` and ``PICTURE.svg``; return the files.

    Parameters
    ----------
    directory : Path
        The folder of the results; exists.
    group : str
        Folder of an experiment; empty for none of its own.
    sections : sequence of Section
        What was found.
    drawings : Drawings, optional
        Keeps the pictures, so that `html.page.render` need not draw them again.

    Raises
    ------
    OutputError
        If a name is no file name or occurs twice, or a file cannot be written.
    """
    drawings = drawings or Drawings()
    top = directory / _checked(group, "an experiment") if group else directory
    parts: dict[Path, Table | Picture] = {}
    for section in sections:
        folder = top / _checked(section.name, "a section")
        section_parts: tuple[Table | Picture, ...] = (*section.tables, *section.pictures)
        for part in section_parts:
            suffix = ".csv" if isinstance(part, Table) else ".svg"
            path = folder / (_checked(part.name, f"a part of section {section.name}") + suffix)
            if path in parts:
                raise OutputError(f"{path}: two parts of the section have this name; give each a name of its own")
            parts[path] = part
    for path, part in parts.items():
        check_directory(path.parent)
        atomic_write(path, table_csv(part) if isinstance(part, Table) else drawings.file(part))
    return list(parts)


def _checked(name: str, what: str) -> str:
    if not _NAME.fullmatch(name) or ".." in name:
        raise OutputError(f"{name!r} cannot be the file name of {what}; use letters, digits and hyphens")
    return name


def table_csv(table: Table) -> str:
    """Return a table as CSV: full precision, units in the headings, columns of their own for interval and mark.

    Parameters
    ----------
    table : Table
        A column with intervals gets two more (``low``, ``high``), one with marks another (``mark``); what is not
        there is empty.
    """
    columns = [
        part
        for index, column in enumerate(table.columns)
        for part in _csv_columns(column, [row[index] for row in table.rows])
    ]
    return csv_of(zip(*columns, strict=True))


def csv_of(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def _csv_columns(column: Column, cells: Sequence[Cell]) -> Iterator[list[str]]:
    """Give what a column of a table needs in a file, headings first: its values, perhaps intervals and marks."""
    unit = f" ({column.unit})" if column.unit not in {"", "1"} else ""
    yield [csv_text(f"{column.title}{unit}"), *(_plain(cell.value) for cell in cells)]
    if any(cell.interval for cell in cells):
        for end in ("low", "high"):
            ends = (_plain(getattr(cell.interval, end, None)) for cell in cells)
            yield [csv_text(f"{column.title} {end}{unit}"), *ends]
    if any(cell.mark for cell in cells):
        yield [csv_text(f"{column.title} mark"), *(csv_text(cell.mark) for cell in cells)]


def _plain(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return csv_text(value or "")
    # Also numpy's numbers, whose repr is not a number.
    number = float(value)
    return "" if math.isnan(number) else str(int(number)) if isinstance(value, Integral) else repr(number)


# Pictures as SVG that may stand inside a page -------------------------------------------------------------------------

# Drawn once, reduced to shapes, names made unique.
#
# matplotlib's SVG is rebuilt from an allow-list of elements and attributes. What is left can neither load nor run
# anything; comments (they hold the texts of the picture) and metadata are dropped, style attributes become presentation
# attributes (a page may then forbid inline styles), and coordinates are rounded to a hundredth of a point.


_HREF = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = frozenset({"g", "defs", "path", "use", "clipPath", "rect", "circle", "ellipse", "line", "image", "pattern"})
_ATTRIBUTES = frozenset({
    "clip-path", "clip-rule", "cx", "cy", "d", "fill", "fill-opacity", "fill-rule", "height", "image-rendering",
    "opacity", "patternTransform", "patternUnits", "preserveAspectRatio", "r", "rx", "ry", "stroke",
    "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
    "stroke-opacity", "stroke-width", "transform", "width", "x", "x1", "x2", "y", "y1", "y2"
})  # fmt: skip
_ROUNDED = frozenset({"d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"})
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_NAMES = re.compile(r'(?<= id=")|(?<= xlink:href="#)|(?<=="url\(#)')


class Drawings:
    """Pictures that were drawn, each once."""

    def __init__(self) -> None:
        self._drawn: dict[Picture, tuple[str, str]] = {}

    def file(self, picture: Picture) -> str:
        """Return ``picture`` as the text of an SVG file."""
        size, shapes = self._parts(picture)
        namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        title = f"<title>{html_text(picture.title)}</title>"
        return f'<?xml version="1.0" encoding="utf-8"?>\n<svg {namespaces} {size}>{title}{shapes}</svg>\n'

    def inline(self, picture: Picture, prefix: str) -> str:
        """Return ``picture`` as an element of a page.

        Parameters
        ----------
        picture : Picture
            What to draw; its title is read out by a screen reader.
        prefix : str
            Put before its identifiers, so that those of two pictures in one page do not meet.
        """
        size, shapes = self._parts(picture)
        label = html_text(picture.title)
        return f'<svg role="img" aria-label="{label}" {size}>{_NAMES.sub(prefix, shapes)}</svg>'

    @keeps_settings
    def _parts(self, picture: Picture) -> tuple[str, str]:
        if picture not in self._drawn:
            self._drawn[picture] = _reduced(svg_bytes(picture.draw()))
        return self._drawn[picture]


def _reduced(svg: bytes) -> tuple[str, str]:
    """Return the size (attributes of the outermost element) and the shapes in it."""
    # matplotlib has just written it: no entities or external parts of a stranger's making.
    root = ET.fromstring(svg)  # noqa: S314
    text = svg.decode()
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', text))
    size = " ".join(f'{name}="{html_text(root.get(name, ""))}"' for name in ("width", "height", "viewBox"))
    # Lines end as matplotlib's style sheet says; that sheet is not taken over.
    body = "".join(_text(child, used) for child in root)
    return size, f'<g stroke-linejoin="round" stroke-linecap="butt">{body}</g>'


def _text(element: ET.Element, used: set[str]) -> str:
    tag = element.tag.rpartition("}")[2]
    if tag not in _ELEMENTS:
        return ""
    attributes = {name: value for name, value in element.attrib.items() if name in _ATTRIBUTES}
    for rule in element.get("style", "").split(";"):
        name, _, value = rule.partition(":")
        if name.strip() in _ATTRIBUTES:
            attributes[name.strip()] = value.strip()
    if element.get("id") in used:
        attributes["id"] = element.get("id", "")
    target = element.get(_HREF, "")
    if target.startswith("data:image/png;base64," if tag == "image" else "#"):
        attributes["xlink:href"] = target
    elif tag in {"image", "use"}:
        return ""
    written = "".join(f' {name}="{html_text(_rounded(name, value))}"' for name, value in attributes.items())
    inside = "".join(_text(child, used) for child in element)
    if tag in {"g", "defs"} and not inside:
        return ""
    if tag == "g" and not attributes:
        return inside
    return f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>"


def _rounded(name: str, value: str) -> str:
    if name not in _ROUNDED:
        return " ".join(value.split())
    return " ".join(_LONG_NUMBER.sub(lambda match: f"{float(match.group()):.2f}", value).split())


# Sections as Markdown -------------------------------------------------------------------------------------------------

# Headings, paragraphs, tables with the numbers of the page and the terminal.


def table_markdown(table: Table) -> list[str]:
    """Return the lines of a table below its title."""
    columns = [column_texts(column, [row[index] for row in table.rows]) for index, column in enumerate(table.columns)]
    align = ["---" if index < table.leading else "--:" for index in range(len(columns))]
    head, *rows = ("| " + " | ".join(map(markdown_text, row)) + " |" for row in zip(*columns, strict=True))
    title = f"## {markdown_text(table.title)}"
    return [title, "", head, f"|{'|'.join(align)}|", *rows, "", markdown_text(table.note), ""]


def bullets_markdown(title: str, texts: Iterable[str]) -> list[str]:
    """Return the lines of a list below its title."""
    return [f"**{markdown_text(title)}**", "", *(f"- {markdown_text(text)}" for text in texts), ""]
