"""Tables that sacctmgr prints with -P: ``A|B|C`` and rows of that many cells, one of which may hold the mark itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from policyfactory.core.errors import SiteError
from policyfactory.core.text import shortened
from policyfactory.site.origin import Setting
from policyfactory.site.slurm.conf import read_text

__all__ = ["read_rows"]

_MOST_CELLS = 3_000_000  # each takes some hundred bytes


def read_rows(path: Path, needed: tuple[str, ...], free: str, cure: str) -> tuple[list[dict[str, Setting]], str]:
    """Return the rows of a table by the names of their columns in lower case, and the SHA-256 of the file.

    Parameters
    ----------
    path : Path
        The file.
    needed : tuple of str
        Columns that must be there.
    free : str
        The column in which a ``|`` may stand.
    cure : str
        The command that prints such a table.

    Raises
    ------
    SiteError
        If a column is not there, or a row has fewer cells than the header (names file and line).
    InputError
        If the file cannot be read.
    """
    text, digest = read_text(path)
    return list(_rows(text, path, needed, free.lower(), cure)), digest


def _rows(text: str, path: Path, needed: tuple[str, ...], free: str, cure: str) -> Iterator[dict[str, Setting]]:
    lines = text.splitlines()
    names = lines[0].strip().rstrip("|").split("|") if lines else []
    if len(lines) * len(names) > _MOST_CELLS:
        raise SiteError(
            f"{path}: has {len(lines):,} lines of {len(names):,} cells, and {_MOST_CELLS:,} cells are read; split the "
            "file"
        )
    columns = [name.lower() for name in names]
    missing = [name for name in needed if name.lower() not in columns]
    if missing:
        raise SiteError(f"{path}:1: has no column {missing[0]}; print it with: {cure}")
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = line.split("|")
        extra = len(cells) - len(columns)
        if extra == 1 and not cells[-1] and lines[0].rstrip().endswith("|"):
            cells, extra = cells[:-1], 0
        if extra > 0 and free in columns:
            at = columns.index(free)
            cells[at : at + extra + 1] = ["|".join(cells[at : at + extra + 1])]
        if len(cells) != len(columns):
            raise SiteError(
                f"{path}:{number}: {shortened(line, 60)!r} has {len(cells)} cells, and there are {len(columns)} "
                f"columns; print it with: {cure}"
            )
        place = f"{path.name}:{number}"
        yield {name.lower(): Setting(name, cell.strip(), place) for name, cell in zip(names, cells, strict=True)}
