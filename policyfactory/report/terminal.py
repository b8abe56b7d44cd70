"""The terminal: results to stdout, as the same tables and numbers as on the page; progress and notes to stderr."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from policyfactory.core.files import dump_json
from policyfactory.core.process import Follower, WorkCounter
from policyfactory.core.text import visible
from policyfactory.report.sections import Section, Table, column_texts
from policyfactory.report.verdict import Verdict

if TYPE_CHECKING:
    from rich.progress import Progress

_PIPED_WIDTH = 140
_MOST_PRINTED = 1_000  # rows of a table of texts
_BETWEEN = 3  # blanks that a table puts between two columns


class _Plain(Console):
    """A console on which no text of a stranger hides or moves anything: neither strings nor what rich makes of them."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text that is as wide as it will be shown."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Give the parts of what is printed."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(visible(part.text), part.style)


def console(*, stderr: bool = False) -> Console:
    """Return a console; a pipe or a file gets wide lines, so that tables are not cut, or those that COLUMNS asks for.

    The terminal that the command was typed in says nothing of a file.
    """
    screen = _Plain(stderr=stderr, highlight=False, emoji=False)
    if not screen.is_terminal:
        asked = os.environ.get("COLUMNS", "")
        screen.width = int(asked) if asked.isascii() and asked.isdigit() and int(asked) else _PIPED_WIDTH
    return screen


def say(text: str, style: str = "") -> None:
    """Print a sentence of the results on stdout; the terminal breaks it, and nothing in it is markup."""
    console().print(text, style=style, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print JSON values on stdout."""
    console().file.write(dump_json(value))


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
        How much of which work.
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
    """Print a table of texts on stdout; the columns numbered in ``left`` are left, the others right aligned.

    Of very many rows the first are printed, and how many more there are: each takes half a millisecond.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for number, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if number in left else "right", overflow="fold")
    for row in rows[:_MOST_PRINTED]:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    screen = console()
    # Outside the table: a title is not broken because its table is narrow.
    screen.print(Text(title, style="bold"))
    screen.print(table)
    if len(rows) > _MOST_PRINTED:
        screen.print(Text(f"and {len(rows) - _MOST_PRINTED:,} more rows", style="dim italic"))
    if caption:
        screen.print(Text(caption, style="dim italic"))


def show_columns(
    title: str,
    columns: Sequence[Sequence[str]],
    leading: int,
    *,
    caption: str | None = None,
    left: tuple[int, ...] | None = None,
) -> None:
    """Print columns in as many tables as the width asks for, so that no number goes over two lines.

    Parameters
    ----------
    title : str
        Of the first table; those that continue it say so.
    columns : sequence of sequence of str
        Each with its heading first.
    leading : int
        How many columns at the beginning name the rows: they come again in each table.
    caption : str, optional
        Said below the last table.
    left : tuple of int, optional
        Which columns are left aligned, the others right; the leading ones without it.
    """
    left = tuple(range(leading)) if left is None else left
    room = console().width - sum(_width(column) for column in columns[:leading]) - 1
    parts: list[list[int]] = [[]]
    used = 0
    for number in range(leading, len(columns)):
        if parts[-1] and used + _width(columns[number]) > room:
            parts.append([])
            used = 0
        parts[-1].append(number)
        used += _width(columns[number])
    for index, part in enumerate(parts):
        shown = [*range(leading), *part]
        rows = [list(row) for row in zip(*(columns[number] for number in shown), strict=True)]
        show_table(
            title if index == 0 else f"{title} (continued)",
            rows[0],
            rows[1:],
            caption=caption if index == len(parts) - 1 else None,
            left=tuple(position for position, number in enumerate(shown) if number in left),
        )


def _width(column: Sequence[str]) -> int:
    return max(map(len, column)) + _BETWEEN


def progress(*fields: Any) -> Progress:
    """Return a progress bar on stderr: description, bar, count, the given columns, time gone and time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    class Left(TimeRemainingColumn):
        """The time left, by its field ``left`` where a task knows it better than the speed of its last seconds."""

        def render(self, task: Task) -> Text:
            left = task.fields.get("left")
            return (
                super().render(task)
                if left is None
                else Text(str(dt.timedelta(seconds=round(left))), "progress.remaining")
            )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        *fields,
        TimeElapsedColumn(),
        TextColumn("left"),
        Left(),
        console=console(stderr=True),
        transient=False,
    )


# How far the work is. -------------------------------------------------------------------------------------------------


class BarScreen(Follower):
    """Shows how far a run is: bars, which begin with the first of them."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stop()

    def counter(self, title: str, unit: str = "") -> WorkCounter:
        """Return a bar."""
        return CountBar(self._begun(), title, unit)

    def message(self, sentence: str) -> None:
        """Print a sentence on stderr, above the bars."""
        if self._bar is None:
            note(sentence)
        else:
            self._bar.console.print(sentence, markup=False, soft_wrap=True)

    def kept(self, stop: BaseException, what: str, partial: Path) -> None:
        """Say what is kept."""
        self._stop()
        note_kept(stop, what, partial)

    def _begun(self) -> Progress:
        """Return where the bars are."""
        from rich.progress import TextColumn

        if self._bar is None:
            self._bar = progress(TextColumn("{task.fields[speed]}"))
            self._bar.start()
        return self._bar

    def _stop(self) -> None:
        """Leave the bars as they are."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


@contextlib.contextmanager
def percent_bar(title: str, first: Callable[[], None] = lambda: None) -> Iterator[Callable[[float], None]]:
    """Give what shows which part of the work is done, 0 to 1; ``first`` is called, and the bar begins, with that."""
    bar = progress()
    task = bar.add_task(title, total=100)

    def show(part: float) -> None:
        if not bar.live.is_started:
            first()
            bar.start()
        bar.update(task, completed=int(100 * part))

    try:
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()


class CountBar(WorkCounter):
    """A bar with the speed of this run.

    Parameters
    ----------
    bar : rich.progress.Progress
        Where it is shown.
    title : str
        What stands before it.
    unit : str
        Of the amounts, for the speed; without one no speed is shown.
    whole : optional
        The bar of the whole run.
    """

    def __init__(self, bar: Progress, title: str, unit: str, whole: WorkCounter | None = None) -> None:
        self._bar = bar
        self._whole = whole or WorkCounter()
        self._unit = unit
        self._task = bar.add_task(title, total=0, speed="")
        self._total = self._amount = 0
        self._begin = time.perf_counter()

    def expect(self, count: int) -> None:
        """Lengthen the bar."""
        self._total += count
        self._bar.update(self._task, total=self._total)
        self._whole.expect(count)

    def resumed(self, count: int) -> None:
        """Advance over what was finished before, which says nothing of the speed."""
        self._begin = time.perf_counter()
        self._bar.update(self._task, advance=count)
        self._whole.done(count)

    def done(self, amount: int) -> None:
        """Advance by one."""
        self._amount += amount
        speed = self._amount / max(time.perf_counter() - self._begin, 1e-9)
        text = f"{rate_text(speed)} {self._unit}" if self._unit else ""
        self._bar.update(self._task, advance=1, speed=text)
        self._whole.done(1)


def rate_text(rate: float) -> str:
    """Return how many a second there are."""
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate:,.0f}"


# Sections. ------------------------------------------------------------------------------------------------------------


_MOST_ROWS = 100  # more would push what matters off the screen; the files have them all
_MOST_OTHERS = 8  # columns of a square table (wins): with more policies it is only in the files


def show_sections(sections: Sequence[Section], *, names: Iterable[str] | None = None) -> None:
    """Print sections, with their headings if there are several.

    Parameters
    ----------
    sections : sequence of Section
        Of `standings.sections_of`, of analyses, of claims.
    names : iterable of str, optional
        Print only the sections of these names.
    """
    wanted = None if names is None else set(names)
    for section in sections:
        if wanted is None or section.name in wanted:
            show_section(section)


def show_standings(sections: Sequence[Section]) -> None:
    """Print what a reader at a terminal wants: values, differences, record, published values, claims, words."""
    wanted = ("fidelity", "values", "differences", "recorded", "replay", "published", "claims")
    shown = [section for section in sections if section.name.startswith(wanted)]
    show_sections([*shown, *(section for section in sections if section.name == "in-short")])


def show_verdict(verdict: Verdict) -> None:
    """Print a verdict, each part under its light."""
    screen = console()
    for part in verdict.parts:
        screen.rule(f"[bold]{part.title}[/bold]", align="left")
        for text in part.sentences:
            say(visible(text))
    if verdict.site is not None:
        screen.rule("What this rests on", align="left")
    for text in verdict.caveats:
        say(visible(text))


def show_section(section: Section) -> None:
    """Print a section: its paragraphs, and its tables in as many parts as the width of the terminal asks for."""
    for text in section.paragraphs:
        console().print(visible(text), markup=False)
    for table in section.tables:
        _show(table)


def _show(table: Table) -> None:
    if len(table.columns) > _MOST_OTHERS + 1 and len(table.columns) > len(table.rows):
        size = f"{len(table.rows)} x {len(table.columns) - 1}"
        say(f"{visible(table.title)}: {size}, too wide to read here; it is in the files that --output writes")
        return
    shown = table.rows[:_MOST_ROWS]
    columns = [
        [visible(text) for text in column_texts(column, [row[index] for row in shown])]
        for index, column in enumerate(table.columns)
    ]
    best = any(cell.mark == "best" for row in shown for cell in row)
    caption = " ".join(part for part in ("* the best." if best else "", table.note) if part)
    if len(table.rows) > len(shown):
        caption = f"{caption} {len(shown)} of {len(table.rows):,} rows; the files have all.".strip()
    show_columns(visible(table.title), columns, table.leading, caption=visible(caption) or None)
