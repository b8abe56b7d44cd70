"""The terminal of a command that takes many steps: each step's command, its progress, and its results."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyfactory.core.errors import OutputError, PolicyfactoryError
from policyfactory.core.process import WorkCounter
from policyfactory.learning.ranking import Progress, Ranked, Ranking, Step
from policyfactory.report.terminal import BarScreen, CountBar, console, note, show_standings, show_table, warn

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from policyfactory.evaluation.results_folder import Result
    from policyfactory.fitting.fits import Fits
    from policyfactory.trials.files import Written
    from policyfactory.trials.table import GenerateOptions
    from policyfactory.workload.swf.log import SwfLog


class Screen(BarScreen, Progress):
    """Shows the steps.

    Parameters
    ----------
    tables : str, optional
        Name of the file of the folder of results that gets the tables; without it they are printed.
    first : callable, optional
        Called before the first step, behind what is refused.
    """

    def __init__(self, tables: str | None = None, first: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._name, self._first = tables, first
        self._tables: Path | None = None
        self._step: Step | None = None
        # Steps whose heads are not in the file yet: one that gives nothing makes none.
        self._heads: list[Step] = []
        self._all: _AllSteps | None = None
        self._began = time.monotonic()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stop()
        if error is None:
            self._write_heads()
        if isinstance(error, PolicyfactoryError) and self._step is not None:
            note(f"step {self._step.number}/{self._step.total} could not be done:")

    def works_in(self, folder: Path) -> None:
        """Put the tables where the other results are."""
        self._tables = None if self._name is None else folder / self._name

    def begin(self, step: Step) -> None:
        """Print the head of a step."""
        self._stop()
        if self._step is None:
            self._first()
        self._step = step
        self._heads.append(step)
        _head(step)

    def counter(self, title: str, unit: str = "") -> WorkCounter:
        """Return a bar."""
        if self._bar is None and self._step is not None:
            self._all = _AllSteps(self._begun(), self._step, self._began)
        return CountBar(self._begun(), title, unit, self._all)

    def warning(self, sentence: str) -> None:
        """Print a warning."""
        self._stop()
        warn(sentence)

    def cut(self, log: SwfLog) -> None:
        """Print the row of a log."""
        from policyfactory.cli.workload import show_written

        with self._results():
            show_written({Path(log.path): log})

    def scored(self, written: Written, options: GenerateOptions) -> None:
        """Print how precise the scores are."""
        from policyfactory.cli.generate import show_scores

        with self._results():
            show_scores(written, options)

    def fitted(self, fits: Fits) -> None:
        """Print the formulas."""
        from policyfactory.cli.fit import show_fit

        with self._results():
            show_fit(fits, as_json=False)

    def compared(self, study: Result) -> None:
        """Print values, differences and words."""
        with self._results():
            for outcome in study.outcomes:
                show_standings(outcome.sections)

    def ranked(self, ranking: Ranking) -> None:
        """Print how policies did on replicas."""
        with self._results():
            title = f"On {ranking.replicas} replicas, as ratios to {ranking.peer}, the best published policy"
            heads = ["policy", *ranking.measured, "95 % interval of the first", ""]
            show_table(title, heads, [_ranked(row) for row in ranking.rows])

    def wrote(self, paths: Sequence[Path]) -> None:
        """Name the files; the folder may take another name behind the last of them."""
        self._stop()
        self._write_heads()
        note("written: " + ", ".join(map(str, paths)))

    def _stop(self) -> None:
        super()._stop()
        self._all = None

    def _write_heads(self) -> None:
        """Write the heads of steps that gave nothing."""
        if self._heads and self._tables is not None:
            with self._to_tables():
                pass

    @contextlib.contextmanager
    def _results(self) -> Iterator[None]:
        """Print results on the screen, or into the file for them."""
        self._stop()
        if self._tables is None:
            yield
            sys.stdout.flush()
            return
        with self._to_tables():
            yield

    @contextlib.contextmanager
    def _to_tables(self) -> Iterator[None]:
        """Print into the file, the heads of the steps first."""
        mode = "w" if any(step.number == 1 for step in self._heads) else "a"
        assert self._tables is not None  # noqa: S101 (its callers look)
        try:
            with (
                self._tables.open(mode, encoding="utf-8", errors="backslashreplace") as file,
                contextlib.redirect_stdout(file),
            ):
                for step in self._heads:
                    _head(step)
                self._heads.clear()
                yield
        except OSError as error:
            if error.filename is not None:
                raise
            raise OutputError(f"{self._tables}: cannot be written: {error.strerror or error}") from None


def _head(step: Step) -> None:
    """Print the head of a step."""
    screen = console()
    screen.rule(f"[bold]{step.number}/{step.total}[/bold]  {step.title}", align="left", style="dim")
    if step.command:
        typed = f"$ policyfactory {shlex.join(step.command)}"
        screen.print(typed, style="cyan", markup=False, soft_wrap=True)
    sys.stdout.flush()


def _ranked(row: Ranked) -> list[str]:
    """Return the cells of a policy's row."""
    interval = "" if row.interval is None else f"{row.interval[0]:.2f} to {row.interval[1]:.2f}"
    return [row.name, *(f"{ratio:.2f}" for ratio in row.ratios), interval, row.out or row.verdict]


class _AllSteps(WorkCounter):
    """The bar of the whole run, above those of a step, whose counters say how far they are."""

    def __init__(self, bar: Bar, step: Step, began: float) -> None:
        self._bar, self._step, self._began = bar, step, began
        self._task = bar.add_task("all steps, %", total=100, completed=round(100 * step.before), speed="")
        # The time gone is that of the run.
        bar.tasks[-1].start_time = bar.get_time() - (time.monotonic() - began)
        self._finished = self._expected = 0

    def expect(self, count: int) -> None:
        self._expected += count

    def done(self, count: int) -> None:
        self._finished += count
        part = min(1.0, self._finished / max(self._expected, 1))
        whole = self._step.before + part * self._step.share
        gone = time.monotonic() - self._began
        self._bar.update(self._task, completed=round(100 * whole), left=gone * (1 - whole) / max(whole, 0.01))
