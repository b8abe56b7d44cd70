"""A learned policy, and the evidence for it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import html
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from policyfactory.learn.comparing import CLASSICAL
from policyfactory.learn.words import choice_in_words, record_in_words, row_of, verdict_in_words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from policyfactory.fit.fits import Fits
    from policyfactory.learn.comparing import Compared, Rival
    from policyfactory.learn.options import LearnOptions
    from policyfactory.policy.policy import Policy
    from policyfactory.policy.store import Model
    from policyfactory.statistics.evaluation import Evaluation
    from policyfactory.trials.table import ScoreTable
    from policyfactory.workload.swf.log import SwfLog

__all__ = ["Learned"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Learned:
    """A policy that was learned from a log, or the published one that beat all that was learned.

    Parameters
    ----------
    model : Model
        The policy, with the threshold that was asked for.
    options : LearnOptions
        How it was learned.
    parts : mapping of str to SwfLog
        What was learned from (``training``), chosen by (``choosing``) and tested on (``test``).
    scores : ScoreTable
        The scores of the training jobs.
    forms, polynomials : Fits
        The formulas fitted to them.
    rivals : tuple of Rival
        All policies that competed.
    choosing, test : Compared
        How the rivals did on the third quarter, and the choice on the last.
    epoch : int or None
        Unix time from which r counts; None if the log has no date.
    last : int or None
        Unix time of the last submission.
    source : SwfLog
        The whole log.
    """

    model: Model
    options: LearnOptions
    parts: Mapping[str, SwfLog]
    scores: ScoreTable
    forms: Fits
    polynomials: Fits
    rivals: tuple[Rival, ...]
    choosing: Compared
    test: Compared
    epoch: int | None
    last: int | None
    source: SwfLog

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.model.policy

    @property
    def evaluation(self) -> Evaluation:
        """The values on the last quarter, which chose nothing."""
        return self.test.outcome.evaluation

    @property
    def verdict(self) -> str:
        """The choice against FCFS on the last quarter: ``better``, ``worse``, ``no difference``, ``too few cases``."""
        row = row_of(self.test.outcome.comparisons, self.policy.name, self.options.metric)
        return "no difference" if row is None else row.verdict

    @property
    def words(self) -> tuple[str, ...]:
        """What was chosen, what it is worth, and how the simulation compares with the recorded schedule."""
        outcome, metric, name = self.test.outcome, self.options.metric, self.policy.name
        sentences = (
            choice_in_words(self.policy, len(self.rivals), published=name in CLASSICAL),
            verdict_in_words(name, CLASSICAL[0], outcome.comparisons, metric),
            record_in_words(outcome.recorded_summaries, outcome.summaries, CLASSICAL[0], metric),
        )
        return tuple(text for text in sentences if text)

    def summary(self) -> str:
        """Return the words, a paragraph each."""
        return "\n".join(self.words)

    def frame(self) -> pd.DataFrame:
        """Return the values on the last quarter: log, case, policy, metric, value."""
        return self.evaluation.frame()

    def plot(self, metric: str | None = None) -> Figure:
        """Return the picture of a metric on the last quarter: a box of the windows for each policy.

        Parameters
        ----------
        metric : str, optional
            The metric that chose, without it.
        """
        from policyfactory.evaluate.picture import draw_boxes

        return draw_boxes(self.evaluation, metric or self.options.metric)

    def export_command(self, policy: str, log: str) -> list[str]:
        """Return the command that hands the policy to Slurm.

        Parameters
        ----------
        policy, log : str
            Files of the policy and of the log.
        """
        # What changes while a job waits, only the plugin can express.
        moving = not self.policy.is_static or self.policy.threshold != float("inf")
        target = ["--to", "slurm-site-factor-c", "--output", "plugin"] if moving else ["--output", "job_submit.lua"]
        command = ["policyfactory", "export", policy, "--workload", log]
        if "r" in self.policy.variables:
            # The last job's day: about when the policy is put to use.
            day = (
                "YYYY-MM-DD" if self.last is None else dt.datetime.fromtimestamp(self.last, dt.UTC).strftime("%Y-%m-%d")
            )
            command += ["--epoch", "YYYY-MM-DD"] if self.policy.epoch.rule == "window-start" else ["--begin", day]
        return command + target

    def save(self, folder: Path | str) -> Path:
        """Write everything to a folder: parts of the log, scores, models, reports, and ``policy.json``.

        Parameters
        ----------
        folder : Path or str
            Made if it is not there.

        Returns
        -------
        Path
            The policy's file.

        Raises
        ------
        OutputError
            If the folder holds a learned policy already, or a file cannot be written.
        """
        from policyfactory.learn.files import save_learned

        return save_learned(self, Path(folder))

    def __repr__(self) -> str:
        return f"Learned({self.policy.name}: {self.policy.formula}; {self.verdict} in {self.options.metric})"

    def _repr_html_(self) -> str:
        paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in self.words)
        return f"<div><strong>{html.escape(repr(self))}</strong>{paragraphs}</div>"
