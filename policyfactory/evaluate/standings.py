"""How the policies stand: values, differences from the baseline, ranks, wins, published values; as sections.

The same sections are the report page, the CSV files and the tables of the terminal.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from policyfactory.core.text import anchors, counted
from policyfactory.evaluate.picture import draw_boxes, draw_differences, draw_ranks, draw_wins
from policyfactory.evaluate.recorded_sections import RECORDED_NOTE, recorded_row, recorded_section
from policyfactory.evaluate.reference import reference_section
from policyfactory.evaluate.words import units_of
from policyfactory.report.caveats import chance_in_words, chances_in_words, intervals_in_words, noun
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.report.tables import OF_PAIRS, difference_column
from policyfactory.simulate.metrics import METRICS
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.intervals import MIN_CASES, Statistic
from policyfactory.statistics.ranks import Rank, mean_ranks, wins
from policyfactory.statistics.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.evaluate.experiment import Outcome
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["illustrated", "sections_of"]

_OVER = {"median": "median over", "mean": "mean over", "ratio": "mean over"}


def sections_of(outcome: Outcome) -> list[Section]:
    """Return how the policies stand: in short, values, differences, ranks, wins, published values.

    What cannot be said is left out: no differences of a single policy, no ranks and wins of a single case.

    Parameters
    ----------
    outcome : Outcome
        With all but its sections.
    """
    evaluation, experiment = outcome.evaluation, outcome.experiment
    how: tuple[Statistic, int] = (experiment.statistic, experiment.seed)
    rows, pairs = outcome.summaries, outcome.comparisons
    units = units_of(rows)
    results = [_in_short(outcome), _values(outcome, rows, units)]
    recorded = recorded_section(outcome, units)
    if pairs:
        results.append(_differences(evaluation, pairs, units))
    results += [recorded] if recorded else []
    if pairs:
        several = [log for log in evaluation.logs if len(evaluation.rows(log)) > 1]
        places = _ranks(evaluation, several, how[1]), _wins(evaluation, several, how)
        results += [section for section in places if section]
    results += [
        reference_section(evaluation, reference, number, seed=how[1])
        for number, reference in enumerate(experiment.references, 1)
    ]
    return results


def _in_short(outcome: Outcome) -> Section:
    evaluation, precision = outcome.evaluation, outcome.precision
    # What is said of the precision ends the closing words; here the chance findings come before it.
    closing = outcome.words[: len(outcome.words) - len(precision)]
    chance = chance_in_words(outcome.comparisons, evaluation.metrics[0])
    what = " ".join(intervals_in_words(evaluation))
    paragraphs = [*closing, chance, *precision, what]
    return Section("in-short", "In short", tuple(paragraph for paragraph in paragraphs if paragraph))


# Values. -------------------------------------------------------------------------------------------------------------


def _values(outcome: Outcome, rows: Sequence[Summary], units: dict[str, str]) -> Section:
    evaluation = outcome.evaluation
    tables = []
    for log, stem in zip(evaluation.logs, anchors(evaluation.logs), strict=True):
        own = [row for row in rows if row.log == log]
        cases = len(evaluation.rows(log))
        title = log
        if cases > 1:
            title += f": {_OVER[own[0].statistic]} {counted(cases, noun(evaluation, log))}"
            title += ", with 95 % interval" if cases >= MIN_CASES else ""
        columns = [Column("policy"), *(_metric_column(metric, units) for metric in evaluation.metrics)]
        cells = [
            (Cell(policy), *(_value(row) for row in own if row.policy == policy)) for policy in evaluation.policies
        ]
        recorded = recorded_row(outcome, log)
        note = " ".join(part for part in (_missing(own, cases), RECORDED_NOTE if recorded else "") if part)
        cells += [recorded] if recorded else []
        tables.append(Table(stem, title, tuple(columns), tuple(cells), note))
    unrecorded = outcome.experiment.unrecorded
    return Section("values", "Values", (unrecorded,) if unrecorded else (), tuple(tables))


def _metric_column(metric: str, units: dict[str, str]) -> Column:
    return Column(metric, METRICS[metric].unit, METRICS[metric].description, units[metric])


def _value(row: Summary) -> Cell:
    return Cell(row.value, row.interval, "best" if row.best else "")


def _missing(rows: Sequence[Summary], cases: int) -> str:
    lacking = [f"{row.policy}, {row.metric}: {row.cases}" for row in rows if row.cases < cases]
    if not lacking:
        return ""
    return f"Not all {cases} cases have a value, and these have fewer: " + "; ".join(lacking) + "."


# Differences. --------------------------------------------------------------------------------------------------------


def _differences(evaluation: Evaluation, pairs: Sequence[Comparison], units: dict[str, str]) -> Section:
    title = f"Differences from {evaluation.baseline}"
    if all(len(evaluation.rows(log)) == 1 for log in evaluation.logs):
        tables = [
            _single_table(evaluation, [row for row in pairs if row.log == log], stem, units)
            for log, stem in zip(evaluation.logs, anchors(evaluation.logs), strict=True)
        ]
        return Section("differences", title, tables=tuple(tables))
    tables = [
        _difference_table([row for row in pairs if row.metric == metric], stem, len(evaluation.logs) > 1, units)
        for metric, stem in zip(evaluation.metrics, anchors(evaluation.metrics), strict=True)
    ]
    chances = chances_in_words(pairs)
    how = (
        "Each interval has its 95 % for itself, and 'no difference' is said where it covers zero. A verdict with a "
        "Holm p below 0.05 stands also when all comparisons of the metric are judged together."
    )
    return Section("differences", title, (how, chances) if chances else (), tuple(tables))


def _single_table(evaluation: Evaluation, rows: list[Comparison], stem: str, units: dict[str, str]) -> Table:
    """Return the differences in a single case: one table a log, a column a metric."""
    columns = [Column("policy"), *(difference_column(metric, rows[0], units) for metric in evaluation.metrics)]
    cells = tuple(
        (Cell(policy), *(Cell(row.difference) for row in rows if row.policy == policy))
        for policy in evaluation.policies[1:]
    )
    return Table(stem, f"{rows[0].log}: minus {evaluation.baseline}", tuple(columns), cells)


def _difference_table(rows: list[Comparison], stem: str, several: bool, units: dict[str, str]) -> Table:  # noqa: FBT001
    first = rows[0]
    certain = any(row.interval for row in rows)
    columns = [Column("policy"), difference_column(first.metric, first, units, "difference")]
    cells = [
        [Cell(row.policy), Cell(row.difference, row.interval, row.verdict if row.interval else "")] for row in rows
    ]
    if any(row.relative is not None for row in rows):
        columns.append(Column("change", "%", f"the difference relative to {first.baseline}, case by case"))
        for row, line in zip(rows, cells, strict=True):
            line.append(Cell(None if row.relative is None else 100 * row.relative))
    columns.append(Column("better in", "", "cases in which the policy is better than the baseline, of all"))
    for row, line in zip(rows, cells, strict=True):
        line.append(Cell(f"{row.wins} of {row.cases}"))
    if certain:
        columns.append(Column("Holm p", "1", "probability that chance does as much, adjusted for all comparisons"))
        for row, line in zip(rows, cells, strict=True):
            line.append(Cell(row.p_holm))
    if several:
        columns.insert(0, Column("log"))
        cells = [[Cell(row.log), *line] for row, line in zip(rows, cells, strict=True)]
    title = f"{first.metric} minus that of {first.baseline}"
    if first.statistic == "ratio":
        title = f"{first.metric} against that of {first.baseline}"
    return Table(stem, f"{title}: {OF_PAIRS[first.statistic]}", tuple(columns), tuple(map(tuple, cells)))


# Ranks. --------------------------------------------------------------------------------------------------------------


def _ranks(evaluation: Evaluation, logs: Sequence[str], seed: int) -> Section | None:
    metrics = [metric for metric in evaluation.metrics if METRICS[metric].lower_is_better is not None]
    if not metrics or not logs:
        return None
    stems = anchors([*logs, "all logs"])
    tables = []
    for log, stem in zip(logs, stems, strict=False):
        title = f"{log}: mean place in {counted(len(evaluation.rows(log)), noun(evaluation, log))}, 1 is the best"
        tables.append(_rank_table(evaluation, metrics, [log], seed, (stem, title)))
    how = (
        "In each case the policies are placed from 1, the best; equal values share the mean place. A policy is called "
        f"better or worse than {evaluation.baseline} if the interval of the difference of their mean places does not "
        "cover zero."
    )
    paragraphs = [how]
    if len(logs) > 1:
        title = f"all {len(logs)} logs: mean over the logs of the mean place"
        tables.append(_rank_table(evaluation, metrics, logs, seed, (stems[-1], title)))
        paragraphs.append(
            "Over the logs: the mean of the logs' mean places, each log counting alike. Cases are drawn anew within "
            "each log (the logs are strata, and stay as they are), so these intervals say nothing about other logs."
        )
    return Section("ranks", "Ranks", tuple(paragraphs), tuple(tables))


def _rank_table(
    evaluation: Evaluation, metrics: Sequence[str], logs: Sequence[str], seed: int, named: tuple[str, str]
) -> Table:
    results: list[dict[str, Rank]] = [
        {rank.policy: rank for rank in mean_ranks(evaluation, metric, logs, seed=seed)} for metric in metrics
    ]
    rows = tuple((Cell(policy), *(_rank(ranked.get(policy)) for ranked in results)) for policy in evaluation.policies)
    columns = (Column("policy"), *(Column(metric, "1", f"mean place by {metric}") for metric in metrics))
    return Table(named[0], named[1], columns, rows)


def _rank(rank: Rank | None) -> Cell:
    if rank is None:
        return Cell(None)
    certain = rank.difference is not None and rank.difference.interval is not None
    return Cell(rank.mean.value, rank.mean.interval, rank.verdict if certain else "")


# Wins. ---------------------------------------------------------------------------------------------------------------


def _wins(evaluation: Evaluation, logs: Sequence[str], how: tuple[Statistic, int]) -> Section | None:
    metric = evaluation.metrics[0]
    if METRICS[metric].lower_is_better is None or not logs:
        return None
    names = evaluation.policies
    tables, total = [], [[0] * len(names) for _ in names]
    stems = anchors([*logs, "all logs"])
    columns = (
        Column("policy"),
        *(Column(name, "", f"cases in which the policy is better than {name}") for name in names),
    )
    for log, stem in zip(logs, stems, strict=False):
        results = wins(evaluation, log, metric, statistic=how[0], seed=how[1])
        rows = []
        for a, line in enumerate(results):
            cells = [Cell(names[a])]
            for b, pair in enumerate(line):
                total[a][b] += pair.wins if pair else 0
                cells.append(
                    Cell(None) if pair is None else Cell(pair.wins, mark=pair.verdict if pair.estimate.interval else "")
                )
            rows.append(tuple(cells))
        title = f"{log}: in how many of {counted(len(evaluation.rows(log)), noun(evaluation, log))} the row is better"
        tables.append(Table(stem, title, columns, tuple(rows)))
    if len(logs) > 1:
        rows = [
            (Cell(name), *(Cell(None if a == b else total[a][b]) for b in range(len(names))))
            for a, name in enumerate(names)
        ]
        cases = sum(len(evaluation.rows(log)) for log in logs)
        tables.append(Table(stems[-1], f"all {len(logs)} logs: of {cases} cases", columns, tuple(rows)))
    pairs = len(names) * (len(names) - 1) // 2
    note = (
        f"By {metric}. Equal values count for neither. The verdict is that of the paired interval of row minus column, "
        f"each with its 95 % for itself: of {pairs} pairs that do not differ, {0.05 * pairs:.2g} would be called "
        "different by chance, on average."
    )
    return Section("wins", "Wins", (note,), tuple(tables))


# Pictures. ------------------------------------------------------------------------------------------------------------


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
        "values": _value_pictures(outcome),
        "differences": _difference_pictures(outcome),
        "ranks": _rank_pictures(outcome),
        "wins": _win_pictures(outcome),
    }
    return [
        dataclasses.replace(section, pictures=(*section.pictures, *pictures.get(section.name, ())))
        for section in sections
    ]


def _value_pictures(outcome: Outcome) -> list[Picture]:
    units = units_of(outcome.summaries)
    return [
        Picture(
            f"{stem}-boxes",
            f"{metric} of each case, by log and policy",
            _bound(draw_boxes, outcome.evaluation, metric, units[metric]),
        )
        for metric, stem in _stems(outcome)
    ]


def _difference_pictures(outcome: Outcome) -> list[Picture]:
    results, units = [], units_of(outcome.summaries)
    for metric, stem in _stems(outcome):
        rows = [row for row in outcome.comparisons if row.metric == metric]
        if any(row.interval for row in rows):
            title = f"{metric} against {outcome.evaluation.baseline}: difference and 95 % interval, by log and policy"
            results.append(Picture(f"{stem}-differences", title, _bound(draw_differences, rows, metric, units[metric])))
    return results


def _rank_pictures(outcome: Outcome) -> list[Picture]:
    evaluation, metric = outcome.evaluation, outcome.evaluation.metrics[0]
    several = _several(outcome)
    if METRICS[metric].lower_is_better is None or not several:
        return []

    def draw() -> Figure:
        results = {log: mean_ranks(evaluation, metric, [log], seed=outcome.experiment.seed) for log in several}
        return draw_ranks({log: rows for log, rows in results.items() if rows}, metric)

    return [Picture("ranks", f"Mean rank by {metric} with 95 % interval, by log and policy", draw)]


def _win_pictures(outcome: Outcome) -> list[Picture]:
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
    return list(zip(metrics, anchors(metrics), strict=True))


def _bound(draw: Callable[..., Figure], *arguments: Any) -> Callable[[], Figure]:
    return functools.partial(draw, *arguments)
