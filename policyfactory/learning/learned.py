"""A learned policy, and the evidence for it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import html
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyfactory.core.files import (
    Manifest,
    atomic_write,
    check_directory,
    command_line,
    digest_of,
    dump_json,
    exclusive,
    package_versions,
    refuse_earlier,
    together,
)
from policyfactory.core.picture import keeps_settings
from policyfactory.core.text import DAY
from policyfactory.evaluation.fidelity.compare import Fidelity
from policyfactory.evaluation.picture import draw_boxes
from policyfactory.fitting.fits import Fits
from policyfactory.learning.choice import ByReplicas, Tested
from policyfactory.learning.comparing import (
    POLICY,
    PREDICTOR,
    PUBLISHED,
    RANKING,
    SCORES,
    Compared,
    Rival,
    check_folder,
    choice_in_words,
    replicas_in_words,
    threshold_in_words,
    write_rivals,
)
from policyfactory.learning.options import LearnOptions, as_typed
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, save_model
from policyfactory.prediction.store import save_forests
from policyfactory.prediction.training import Forests
from policyfactory.report.verdict import Verdict
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.trials.table import ScoreTable, write_score_table
from policyfactory.workload.swf.files import write_swf
from policyfactory.workload.swf.log import SwfLog

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_STATE = "/var/spool/policyfactory/history"  # as in docs/predictions.md


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Learned:
    """A policy that was learned from a log, or the published one that nothing learned is shown to be better than.

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
    fits : mapping of str to Fits
        The formulas fitted to them, by family (``forms``, ``polynomials``), but for one that cannot be fitted.
    rivals : tuple of Rival
        All policies that competed.
    choosing : Compared
        How the rivals did on the second quarter.
    thresholds : Compared or None
        How the choice did there with thresholds, if one was to be chosen.
    test : Compared
        How the choice did on the second half.
    verdict : Verdict
        What the second half says of the choice: shown better, cannot tell, worse, or unsound, and why.
    epoch : int or None
        Unix time from which r counts; None if the log has no date.
    last : int or None
        Unix time of the last submission.
    source : SwfLog
        The whole log.
    replicas : ByReplicas or None
        The choice by replicas of the second quarter; None if it was by the quarter itself.
    tested : Tested or None
        The choice on replicas of the second half.
    predictor : Forests or None
        What predicts for a choice that reads predictions, trained on the jobs of the whole log that ended last.
    fidelity : Fidelity or None
        How near the simulation of the site is to the record of the log; None without a site, or without starts.
    """

    model: Model
    options: LearnOptions
    parts: Mapping[str, SwfLog]
    scores: ScoreTable
    fits: Mapping[str, Fits]
    rivals: tuple[Rival, ...]
    choosing: Compared
    thresholds: Compared | None
    test: Compared
    verdict: Verdict
    epoch: int | None
    last: int | None
    source: SwfLog
    replicas: ByReplicas | None = None
    tested: Tested | None = None
    predictor: Forests | None = None
    fidelity: Fidelity | None = None

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.model.policy

    @property
    def evaluation(self) -> Evaluation:
        """The values on the second half, which had no part in the choice."""
        return self.test.outcome.evaluation

    @property
    def choice_words(self) -> str:
        """What was chosen, in words."""
        published, policy = self.formula_name in PUBLISHED, self.policy
        if self.replicas is not None:
            tried: tuple[str, ...] = self.replicas.tried
            policy = self.replicas.winner.model.policy
            words = replicas_in_words(policy, self.replicas.ranking, len(self.rivals), published=published)
        else:
            tried = () if self.thresholds is None else tuple(rival.name for rival in self.thresholds.rivals[2:])
            tie = len(self.choosing.best) == len(self.rivals)
            words = choice_in_words(self.policy, len(self.rivals), published=published, tie=tie)
        return f"{words} {threshold_in_words(policy, tried)}".rstrip()

    @property
    def words(self) -> tuple[str, ...]:
        """What was chosen, what it is worth, and what the numbers rest on."""
        return (self.choice_words, *self.verdict.sentences, *self.verdict.caveats)

    @property
    def formula_name(self) -> str:
        """Name of the formula that was chosen, without its threshold."""
        return self.choosing.winner.name if self.replicas is None else self.replicas.ranking.chosen

    def summary(self) -> str:
        """Return the words, a paragraph each."""
        return "\n".join(self.words)

    def frame(self) -> pd.DataFrame:
        """Return the values on the second half: log, case, policy, metric, value."""
        return self.evaluation.frame()

    @keeps_settings
    def plot(self, metric: str | None = None) -> Figure:
        """Return the picture of a metric on the second half: a box of the windows for each policy.

        Parameters
        ----------
        metric : str, optional
            Default: the metric of the choice.
        """
        return draw_boxes(self.evaluation, metric or self.options.metric)

    def export_command(self, policy: str, log: str) -> list[str]:
        """Return the command that hands the policy to Slurm; one with two orders, which Slurm has not, to a file.

        Parameters
        ----------
        policy, log : str
            Files of the policy and of the log.
        """
        if self.policy.backfill_formula:
            return ["policyfactory", "export", policy, "--to", "json", "--output", "paired.json"]
        # What changes while a job waits, only the plugin can express.
        moving = not self.policy.is_static or self.policy.threshold != float("inf")
        target = ["--to", "slurm-site-factor-c", "--output", "plugin"] if moving else ["--output", "job_submit.lua"]
        reading = self.options.machine_words
        if self.options.estimate_missing != LearnOptions.estimate_missing:
            reading += ["--estimate-missing", self.options.estimate_missing]
        # Under whose rules the longest wait is simulated: an export has no others of them, and no --assume.
        backfill = self.options.backfill if self.options.backfill in {"easy", "slurm"} else None
        reading += as_typed({"backfill": backfill, "site": self.options.site})
        command = ["policyfactory", "export", policy, "--workload", log, *reading]
        if self.policy.needs_model:
            command += ["--predictor", str(Path(policy).parent / PREDICTOR), "--state", _STATE]
        if "r" in self.policy.variables:
            command += ["--epoch" if self.policy.epoch.rule == "window-start" else "--begin", self._day_of_use()]
        return command + target

    def _day_of_use(self) -> str:
        """Return the last job's day, about when the policy is put to use; of a log of years ago nobody knows it."""
        if self.last is None or time.time() - self.last > 180 * DAY:
            return "YYYY-MM-DD"
        return dt.datetime.fromtimestamp(self.last, dt.UTC).strftime("%Y-%m-%d")

    @keeps_settings
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
        folder = check_folder(Path(folder))
        with exclusive(folder / "learn"):
            refuse_earlier(folder / POLICY, overwrite=False)
            parts = {part: _moved(log, folder) for part, log in self.parts.items()}
            for log in parts.values():
                write_swf(log, log.path)
            self._save_scores(folder / SCORES, parts["training"])
            figures = check_directory(folder / "pictures")
            for family, fits in self.fits.items():
                drawn, report = figures if family == "forms" else None, folder / f"{family}.md"
                fits.save(folder / f"{family}.json", report=report, figures=drawn, overwrite=True)
            compared_parts = {"choosing": self.choosing, "thresholds": self.thresholds, "test": self.test}
            moved = {self.parts[part].path: log for part, log in parts.items()}
            for part, compared in compared_parts.items():
                if compared is not None:
                    write_rivals(compared.rivals, folder)
                    rivals = tuple(_moved_rival(rival, folder) for rival in compared.rivals)
                    log = moved.get(compared.log.path, compared.log)
                    dataclasses.replace(compared, log=log, rivals=rivals).write(check_directory(folder / part))
            if self.replicas is not None:
                more = (self.replicas.winner, self.replicas.published)
                write_rivals([*self.replicas.rivals, *more], folder)
            return self.write_policy(folder)

    def write_policy(self, folder: Path) -> Path:
        """Write the chosen policy and its manifest to an existing folder; return its file."""
        path, options = folder / POLICY, self.options
        inputs = {Path(self.source.path).name: self.source.sha256}
        if options.site is not None:
            inputs[Path(options.site).name] = self.test.study.protocol.hashes[str(Path(options.site))]
        parameters = {
            "metric": options.metric,
            "windows": options.windows,
            "threshold_s": self.policy.threshold if math.isfinite(self.policy.threshold) else None,
            "verdict": self.verdict.light,
            "epoch": self.epoch,
            "chosen": self.policy.name,
            **({} if options.site is None else {"fidelity": None if self.fidelity is None else self.fidelity.light}),
        }
        with together():
            save_model(self.model, path)
            outputs = {POLICY: digest_of(path)}
            if self.replicas is not None:
                rankings: dict[str, Any] = {"choosing": self.replicas.ranking.as_dict()}
                if self.replicas.screening is not None:
                    rankings["choosing_easy"] = self.replicas.screening.as_dict()
                if self.tested is not None:
                    to_peers = [ranking.as_dict() for ranking in self.tested.to_peers]
                    rankings["test"] = to_peers
                    if self.tested.to_baseline is not None:
                        rankings["test_fcfs"] = self.tested.to_baseline.as_dict()
                atomic_write(folder / RANKING, dump_json(rankings))
                outputs[RANKING] = digest_of(folder / RANKING)
            if self.predictor is not None:
                provenance = {"command": command_line(), "inputs": inputs, "versions": package_versions(), **parameters}
                save_forests(self.predictor, folder / PREDICTOR, provenance=provenance)
                outputs[PREDICTOR] = digest_of(folder / PREDICTOR)
            manifest = Manifest("learned-policy", command_line(), options.seed, inputs, parameters, outputs=outputs)
            manifest.write(Manifest.path_for(path))
        return path

    def _save_scores(self, path: Path, training: SwfLog) -> None:
        inputs = {Path(training.path).name: training.sha256}
        options = self.options
        parameters = {"origin": self.scores.origin, "tuples": options.tuples, "trials": options.trials}
        with together():
            write_score_table(self.scores, path)
            outputs = {path.name: digest_of(path)}
            manifest = Manifest("score-table", command_line(), options.seed, inputs, parameters, outputs=outputs)
            manifest.write(Manifest.path_for(path))

    def __repr__(self) -> str:
        return f"Learned({self.policy.name}: {self.policy.formula}; {self.verdict.light} in {self.options.metric})"

    def _repr_html_(self) -> str:
        paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in self.words)
        return f"<div><strong>{html.escape(repr(self))}</strong>{paragraphs}</div>"


def _moved(log: SwfLog, folder: Path) -> SwfLog:
    return dataclasses.replace(log, path=str(folder / Path(log.path).name))


def _moved_rival(rival: Rival, folder: Path) -> Rival:
    return dataclasses.replace(rival, source=f"{folder}/{rival.source}") if rival.is_file else rival
