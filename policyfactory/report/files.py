"""The sections of a report as files: each table as CSV, each picture as SVG."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import re
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path

from policyfactory.core.errors import OutputError
from policyfactory.core.files import atomic_write
from policyfactory.core.outputs import check_directory
from policyfactory.core.text import csv_text
from policyfactory.report.drawings import Drawings
from policyfactory.report.sections import Cell, Column, Picture, Section, Table

__all__ = ["save_sections", "table_csv"]

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
        own: tuple[Table | Picture, ...] = (*section.tables, *section.pictures)
        for part in own:
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
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    parts = [_Parts.of(column, [row[at] for row in table.rows]) for at, column in enumerate(table.columns)]
    writer.writerow([heading for part in parts for heading in part.headings()])
    for row in table.rows:
        writer.writerow([value for part, cell in zip(parts, row, strict=True) for value in part.values(cell)])
    return file.getvalue()


@dataclasses.dataclass(frozen=True, slots=True)
class _Parts:
    """What a column of a table needs in a file: its value, and perhaps its interval and its mark."""

    column: Column
    interval: bool
    mark: bool

    @classmethod
    def of(cls, column: Column, cells: Sequence[Cell]) -> _Parts:
        return cls(column, any(cell.interval for cell in cells), any(cell.mark for cell in cells))

    def headings(self) -> list[str]:
        unit = f" ({self.column.unit})" if self.column.unit not in {"", "1"} else ""
        words = ["", *([" low", " high"] if self.interval else [])]
        texts = [f"{self.column.title}{word}{unit}" for word in words]
        return [csv_text(heading) for heading in [*texts, *([f"{self.column.title} mark"] if self.mark else [])]]

    def values(self, cell: Cell) -> list[str]:
        texts = [_plain(cell.value)]
        if self.interval:
            texts += [_plain(cell.interval.low), _plain(cell.interval.high)] if cell.interval else ["", ""]
        return [*texts, *([csv_text(cell.mark)] if self.mark else [])]


def _plain(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return csv_text(value or "")
    # Also numpy's numbers, whose repr is not a number.
    number = float(value)
    return "" if math.isnan(number) else str(int(number)) if isinstance(value, Integral) else repr(number)
