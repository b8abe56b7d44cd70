"""The pictures of the standings: boxes, differences, ranks and wins beside their tables."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from policyfactory.evaluate.picture import draw_boxes, draw_differences, draw_ranks, draw_wins
from policyfactory.evaluate.words import units_of
from policyfactory.report.sections import Picture, Section
from policyfactory.report.tables import file_stems
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.ranks import mean_ranks, wins

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.evaluate.experiment import Outcome

__all__ = ["illustrated"]

_MANY_PLAYERS = 30  # beyond, a square of wins cannot be read


def illustrated(outcome: Outcome, sections: Sequence[Section]) -> list[Section]:
    """Return the sections of `standings.sections_of` with their pictures.

    Parameters
    ----------
    outcome : Outcome
        What was found.
    sections : sequence of Section
        By their names; what has none of these names is returned as it is.
    """
    pictures = {
        "values": _values(outcome),
        "differences": _differences(outcome),
        "ranks": _ranks(outcome),
        "wins": _wins(outcome),
    }
    return [
        dataclasses.replace(section, pictures=(*section.pictures, *pictures.get(section.name, ())))
        for section in sections
    ]


def _values(outcome: Outcome) -> list[Picture]:
    units = units_of(outcome.summaries)
    return [
        Picture(
            f"{stem}-boxes",
            f"{metric} of each case, by log and policy",
            _bound(draw_boxes, outcome.evaluation, metric, units[metric]),
        )
        for metric, stem in _stems(outcome)
    ]


def _differences(outcome: Outcome) -> list[Picture]:
    found, units = [], units_of(outcome.summaries)
    for metric, stem in _stems(outcome):
        rows = [row for row in outcome.comparisons if row.metric == metric]
        if any(row.interval for row in rows):
            title = f"{metric} against {outcome.evaluation.baseline}: difference and 95 % interval, by log and policy"
            found.append(Picture(f"{stem}-differences", title, _bound(draw_differences, rows, metric, units[metric])))
    return found


def _ranks(outcome: Outcome) -> list[Picture]:
    evaluation, metric = outcome.evaluation, outcome.evaluation.metrics[0]
    several = _several(outcome)
    if METRICS[metric].lower_is_better is None or not several:
        return []

    def draw() -> Figure:
        found = {log: mean_ranks(evaluation, metric, [log], seed=outcome.experiment.seed) for log in several}
        return draw_ranks({log: rows for log, rows in found.items() if rows}, metric)

    return [Picture("ranks", f"Mean rank by {metric} with 95 % interval, by log and policy", draw)]


def _wins(outcome: Outcome) -> list[Picture]:
    evaluation, metric = outcome.evaluation, outcome.evaluation.metrics[0]
    several = _several(outcome)
    if METRICS[metric].lower_is_better is None or not several or len(evaluation.policies) > _MANY_PLAYERS:
        return []

    def draw() -> Figure:
        how: dict[str, Any] = {"statistic": outcome.experiment.statistic, "seed": outcome.experiment.seed}
        return draw_wins({log: wins(evaluation, log, metric, **how) for log in several}, evaluation.policies)

    return [Picture("wins", f"In how many cases each policy is better than each other by {metric}", draw)]


def _several(outcome: Outcome) -> list[str]:
    evaluation = outcome.evaluation
    return [log for log in evaluation.logs if len(evaluation.rows(log)) > 1] if len(evaluation.policies) > 1 else []


def _stems(outcome: Outcome) -> list[tuple[str, str]]:
    metrics = outcome.evaluation.metrics
    return list(zip(metrics, file_stems(metrics), strict=True))


def _bound(draw: Callable[..., Figure], *arguments: Any) -> Callable[[], Figure]:
    return functools.partial(draw, *arguments)
