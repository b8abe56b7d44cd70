"""Where the commands print: results to stdout, progress and notes to stderr."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["console", "note", "note_kept", "progress", "show_table", "warn"]

_PIPED_WIDTH = 140


def console(*, stderr: bool = False) -> Console:
    """Return a console; a pipe or a file gets wide lines, so that tables are not cut."""
    screen = Console(stderr=stderr, highlight=False, emoji=False)
    if not screen.is_terminal:
        screen.width = max(_PIPED_WIDTH, shutil.get_terminal_size().columns)
    return screen


def note(text: str) -> None:
    """Say something about the work (not a result) on stderr."""
    console(stderr=True).print(text, markup=False, soft_wrap=True)


def note_kept(stop: BaseException, what: str, partial: Path) -> None:
    """Say what is kept of a run that does not come to its end, and how to go on.

    Of a signal it is a note to the exception, of which the command makes its one message; of an error, whose message
    is about something else, a line of its own.

    Parameters
    ----------
    stop : BaseException
        What ends the run.
    what : str
        How many of which pieces.
    partial : Path
        The file that has them.
    """
    words = f"{what} are kept in {partial}; the same command goes on from there"
    if isinstance(stop, KeyboardInterrupt):
        stop.add_note(words)
    else:
        note(f"stopped: {words}")


def warn(text: str) -> None:
    """Say on stderr why a result should not be trusted as it stands."""
    console(stderr=True).print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)


def show_table(
    title: str,
    columns: list[str],
    rows: list[list[str]],
    *,
    caption: str | None = None,
    left: tuple[int, ...] = (0,),
) -> None:
    """Print a table of texts on stdout; the columns numbered in ``left`` are left, the others right aligned."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for number, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if number in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    screen = console()
    # Outside the table: a title is not broken because its table is narrow.
    screen.print(Text(title, style="bold"))
    screen.print(table)
    if caption:
        screen.print(Text(caption, style="dim italic"))


def progress(*fields: Any) -> Progress:
    """Return a progress bar on stderr: description, bar, count, the given columns, time gone and time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        *fields,
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=False,
    )
