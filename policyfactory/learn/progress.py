"""Who follows how far the work is; in a notebook nobody, on the command line the screen."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyfactory.core.progress import WorkCounter

if TYPE_CHECKING:
    from policyfactory.evaluate.study import Study
    from policyfactory.fit.fits import Fits
    from policyfactory.learn.ranking import Ranking
    from policyfactory.trials.files import Written
    from policyfactory.trials.run import GenerateOptions
    from policyfactory.workload.swf.log import SwfLog

__all__ = ["Progress", "Step"]


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A part of the work, and the command that does the same.

    Parameters
    ----------
    number, total : int
        Number of the step, from 1, and of all steps.
    title : str
        In words.
    command : tuple of str
        What stands behind ``policyfactory``; empty if no other command does this.
    before, share : float
        What part of all the work is done before it, and what part it is, by a rough guess.
    """

    number: int
    total: int
    title: str
    command: tuple[str, ...]
    before: float = 0.0
    share: float = 0.0


class Progress:
    """Follows how far the work is, and shows each result; this one says nothing."""

    def works_in(self, place: Path) -> None:
        """Learn in which folder the results lie while they are made; called before the first step."""

    def begin(self, step: Step) -> None:
        """Begin a step; the one before it is done."""

    def counter(self, title: str, unit: str = "") -> WorkCounter:  # noqa: ARG002
        """Return a counter of work units; ``unit`` is that of the amounts."""
        return WorkCounter()

    def message(self, sentence: str) -> None:
        """Say something about the work that is no result."""

    def warning(self, sentence: str) -> None:
        """Say why a result should not be trusted as it stands."""

    def kept(self, stop: BaseException, what: str, partial: Path) -> None:
        """Say what is kept, in ``partial``, of work that does not come to its end."""

    def cut(self, log: SwfLog) -> None:
        """Show a part of the log."""

    def scored(self, written: Written, options: GenerateOptions) -> None:
        """Show how precise the score table is."""

    def fitted(self, fits: Fits) -> None:
        """Show the formulas of a family."""

    def compared(self, study: Study) -> None:
        """Show how policies did."""

    def ranked(self, ranking: Ranking) -> None:
        """Show how policies did on replicas."""

    def wrote(self, paths: Sequence[Path]) -> None:
        """Name the files that were written."""
