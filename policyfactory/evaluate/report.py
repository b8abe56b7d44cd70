"""One evaluation with all that follows from it: summary, comparisons, words, JSON, files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from policyfactory.core.artefact import Manifest, dump_json
from policyfactory.core.picture import save_picture
from policyfactory.evaluate import store
from policyfactory.evaluate.compare import Comparison, compare
from policyfactory.evaluate.picture import draw_boxes, draw_differences
from policyfactory.evaluate.run import Evaluation
from policyfactory.evaluate.summary import Summary, summarise
from policyfactory.evaluate.words import closing_words

__all__ = ["Report", "conclude", "write_report"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What was found, and what it means.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    summaries : tuple of Summary
        Median, spread and rank of each policy.
    comparisons : tuple of Comparison
        Each policy against the baseline.
    words : tuple of str
        The conclusion, a paragraph a trace.
    protocol : dict
        What determines the numbers, as JSON values.
    """

    evaluation: Evaluation
    summaries: tuple[Summary, ...]
    comparisons: tuple[Comparison, ...]
    words: tuple[str, ...]
    protocol: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it but the single windows as JSON values."""
        return store.evaluation_json(self.evaluation, self.summaries, self.comparisons, self.words, self.protocol)


def conclude(evaluation: Evaluation, *, seed: int = 0, settings: Mapping[str, Any] | None = None) -> Report:
    """Summarise, compare with the baseline and say it in words.

    Parameters
    ----------
    evaluation : Evaluation
        The values; its first policy is the baseline, its first metric decides who wins.
    seed : int
        Seed of the bootstrap.
    settings : mapping, optional
        What was done to the logs before, as JSON values; kept in the protocol.
    """
    summaries = summarise(evaluation)
    comparisons = compare(evaluation, seed=seed)
    return Report(
        evaluation,
        tuple(summaries),
        tuple(comparisons),
        tuple(closing_words(evaluation, summaries, comparisons)),
        store.protocol(evaluation, seed=seed, settings=settings),
    )


def write_report(report: Report, directory: Path, manifest: Manifest, starts: Iterable[Path] = ()) -> list[str]:
    """Write ``results.csv``, ``evaluation.json``, the pictures and ``manifest.json``; they replace an earlier report.

    Parameters
    ----------
    report : Report
        What was found.
    directory : Path
        An existing folder.
    manifest : Manifest
        Without outputs.
    starts : iterable of Path
        Files below the folder that are written already and belong to the report.

    Returns
    -------
    list of str
        Names of the files.

    Raises
    ------
    OutputError
        If a file can not be written.
    """
    pictures = []
    for metric in report.evaluation.metrics:
        pictures.append(save_picture(draw_boxes(report.evaluation, metric), directory / f"{metric}.png"))
        if any(row.interval for row in report.comparisons if row.metric == metric):
            figure = draw_differences(report.comparisons, metric)
            pictures.append(save_picture(figure, directory / f"{metric}-differences.png"))
    texts = {"results.csv": store.results_csv(report.evaluation), "evaluation.json": dump_json(report.as_dict())}
    written = store.save(directory, texts, manifest, [*pictures, *starts])
    return [path.name for path in [*written, *pictures]]
