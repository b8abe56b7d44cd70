"""Sections as Markdown: headings, paragraphs, tables with the numbers of the page and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from policyfactory.core.text import markdown_text
from policyfactory.report.numbers import format_for
from policyfactory.report.sections import Cell, Column, Table

__all__ = ["bullets_markdown", "table_markdown"]


def table_markdown(table: Table) -> list[str]:
    """Return the lines of a table below its title."""
    columns = [_column(column, [row[at] for row in table.rows]) for at, column in enumerate(table.columns)]
    align = ["---" if at < table.leading else "--:" for at in range(len(columns))]
    head, *rows = ("| " + " | ".join(map(markdown_text, row)) + " |" for row in zip(*columns, strict=True))
    title = f"## {markdown_text(table.title)}"
    return [title, "", head, f"|{'|'.join(align)}|", *rows, "", markdown_text(table.note), ""]


def bullets_markdown(title: str, texts: Iterable[str]) -> list[str]:
    """Return the lines of a list below its title."""
    return [f"**{markdown_text(title)}**", "", *(f"- {markdown_text(text)}" for text in texts), ""]


def _column(column: Column, cells: Sequence[Cell]) -> list[str]:
    how = format_for(column, cells)
    unit = f" ({how.scale.label})" if how.scale.label else ""
    texts = [
        cell.mark if cell.value is None else cell.value if isinstance(cell.value, str) else " ".join(how.texts(cell))
        for cell in cells
    ]
    return [f"{column.title}{unit}", *(text.strip() for text in texts)]
