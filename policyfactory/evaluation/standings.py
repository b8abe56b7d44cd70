"""How the policies stand: values, differences from the baseline, ranks, wins, published values; as sections.

The same sections are the report page, the CSV files and the tables of the terminal.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.options import Int64Array
from policyfactory.core.text import anchors, counted, percent_change
from policyfactory.evaluation.paper import reference_section
from policyfactory.evaluation.picture import draw_boxes, draw_differences, draw_ranks, draw_wins
from policyfactory.evaluation.words import units_of
from policyfactory.report.caveats import (
    OF_PAIRS,
    chance_in_words,
    difference_cell,
    difference_column,
    intervals_in_words,
    listed,
    noun,
)
from policyfactory.report.page import Board
from policyfactory.report.sections import Cell, Column, Picture, Section, Table, with_ends
from policyfactory.simulation.metrics import METRICS
from policyfactory.simulation.schedule import RECORDED
from policyfactory.statistics.compare import Comparison, Rank, mean_ranks, wins
from policyfactory.statistics.intervals import MIN_CASES, Interval
from policyfactory.statistics.summary import Summary

if TYPE_CHECKING:
    from policyfactory.evaluation.experiment import Outcome
    from policyfactory.statistics.evaluation import Evaluation

_OVER = {"median": "median over", "mean": "mean over", "ratio": "mean over"}
_MANY_PLAYERS = 30  # beyond, a square of wins cannot be read


def sections_of(outcome: Outcome) -> list[Section]:
    """Return how the policies stand: in short, values, differences, ranks, wins, published values.

    What cannot be said is left out: no differences of a single policy, no ranks and wins of a single case.

    Parameters
    ----------
    outcome : Outcome
        With all but its sections.
    """
    evaluation, experiment = outcome.evaluation, outcome.experiment
    units = units_of(outcome.summaries)
    sections = [_in_short(outcome), _values(outcome, units)]
    if outcome.comparisons:
        sections.append(_differences(outcome, units))
    if outcome.recorded_comparisons:
        sections.append(recorded_section(outcome, units))
    several = [log for log in evaluation.logs if len(evaluation.rows(log)) > 1]
    ranked = [metric for metric in evaluation.metrics if METRICS[metric].lower_is_better is not None]
    if outcome.comparisons and several and ranked:
        sections.append(_ranks(outcome, several, ranked))
        if evaluation.metrics[0] in ranked:
            sections.append(_wins(outcome, several))
    for number, reference in enumerate(experiment.references, 1):
        sections.append(reference_section(evaluation, reference, number, seed=experiment.seed))
    return sections


def restated(outcome: Outcome) -> Outcome:
    """Return an outcome, of which something else is known since, with its sections on the standings made again."""
    fresh = {section.name: section for section in sections_of(outcome)}
    sections = (fresh.get(section.name) or _chosen_first(section, outcome.chosen) for section in outcome.sections)
    return dataclasses.replace(outcome, sections=tuple(sections))


def _chosen_first(section: Section, chosen: str) -> Section:
    """Return a section in whose front tables the column of the choice is the first one of a policy."""

    def turned(table: Table) -> Table:
        titles = [column.title for column in table.columns]
        if not table.front or chosen not in titles:
            return table
        index = titles.index(chosen)
        first = next(number for number, column in enumerate(table.columns) if column.unit == table.columns[index].unit)
        order = [*range(first), index, *(number for number in range(first, len(titles)) if number != index)]
        rows = tuple(tuple(row[number] for number in order) for row in table.rows)
        return dataclasses.replace(table, columns=tuple(table.columns[number] for number in order), rows=rows)

    return dataclasses.replace(section, tables=tuple(map(turned, section.tables)))


def _in_short(outcome: Outcome) -> Section:
    evaluation, precision = outcome.evaluation, outcome.precision
    # What is said of the precision ends the closing words; here the chance findings come before it.
    closing = outcome.words[: len(outcome.words) - len(precision)]
    chance = chance_in_words(outcome.comparisons, evaluation.metrics[0])
    what = " ".join(intervals_in_words(evaluation))
    paragraphs = [*closing, chance, *precision, what]
    return Section("in-short", "In short", tuple(paragraph for paragraph in paragraphs if paragraph))


def _each_log(logs: Sequence[str], table: Callable[[str, str], Table]) -> tuple[Table, ...]:
    """Return a table for each log, made from its name and its stem."""
    return tuple(table(log, stem) for log, stem in zip(logs, anchors(logs), strict=True))


# Values. -------------------------------------------------------------------------------------------------------------


def _values(outcome: Outcome, units: dict[str, str]) -> Section:
    evaluation, experiment = outcome.evaluation, outcome.experiment
    pictures = tuple(
        Picture(
            f"{stem}-boxes",
            f"{metric} of each case, by log and policy",
            functools.partial(draw_boxes, evaluation, metric, units[metric], outcome.chosen),
        )
        for metric, stem in zip(evaluation.metrics, anchors(evaluation.metrics), strict=True)
    )
    words = tuple(text for text in (experiment.unrecorded, *experiment.warnings) if text)
    return Section("values", "Values", words, value_tables(outcome, units), pictures)


def value_tables(outcome: Outcome, units: dict[str, str]) -> tuple[Table, ...]:
    """Return the values of the metrics, a table for each log, with a row for each policy.

    Parameters
    ----------
    outcome : Outcome
        With all but its sections.
    units : dict of str to str
        In what each metric is shown (`words.units_of`).
    """
    return _each_log(outcome.evaluation.logs, lambda log, stem: _values_table(outcome, log, stem, units))


def _values_table(outcome: Outcome, log: str, stem: str, units: dict[str, str]) -> Table:
    evaluation = outcome.evaluation
    contenders = [row for row in outcome.summaries if row.log == log]
    recorded = [row for row in outcome.recorded_summaries if row.log == log]
    by_policy = {(row.policy, row.metric): row for row in (*contenders, *recorded)}
    cases = len(evaluation.rows(log))
    title = log
    if cases > 1:
        title += f": {_OVER[contenders[0].statistic]} {counted(cases, noun(evaluation, log))}"
        title += ", with 95 % interval" if cases >= MIN_CASES else ""
    elif (weeks := evaluation.weekly.get(log)) is not None and weeks.enough:
        title += f": over all jobs, with 95 % interval over {counted(len(weeks.jobs), 'week')}"
    ties = {metric for metric in evaluation.metrics if all(row.best for row in contenders if row.metric == metric)}
    columns = {Column("policy"): lambda policy: policy} | {
        Column(
            metric,
            METRICS[metric].unit,
            METRICS[metric].description,
            units[metric],
            label=METRICS[metric].title,
        ): (lambda policy, metric=metric: _value(by_policy[policy, metric], tie=metric in ties))
        for metric in evaluation.metrics
    }
    note = " ".join(part for part in (_missing(contenders, cases), RECORDED_NOTE if recorded else "") if part)
    return Table.of(stem, title, columns, zip(dict.fromkeys(policy for policy, _ in by_policy)), note)


def _value(row: Summary, *, tie: bool) -> Cell:
    known = row.cases or row.policy != RECORDED
    return Cell(row.value if known else None, row.interval, "best" if row.best and not tie else "")


def _missing(rows: Sequence[Summary], cases: int) -> str:
    lacking = [f"{row.policy}, {row.metric}: {row.cases}" for row in rows if row.cases < cases]
    if not lacking:
        return ""
    return f"Not all {cases} cases have a value, and these have fewer: " + "; ".join(lacking) + "."


# Differences. --------------------------------------------------------------------------------------------------------


def _differences(outcome: Outcome, units: dict[str, str]) -> Section:
    evaluation, pairs = outcome.evaluation, outcome.comparisons
    title = f"Differences from {evaluation.baseline}"
    tables, pictures = [], []
    for metric, stem in zip(evaluation.metrics, anchors(evaluation.metrics), strict=True):
        rows = [row for row in pairs if row.metric == metric]
        tables.append(_difference_table(rows, stem, units))
        if any(row.interval for row in rows):
            shown = f"{metric} against {evaluation.baseline}: difference and 95 % interval, by log and policy"
            draw = functools.partial(draw_differences, rows, metric, units[metric], outcome.chosen)
            pictures.append(Picture(f"{stem}-differences", shown, draw))
    if not any(row.interval for row in pairs) and all(len(evaluation.rows(log)) == 1 for log in evaluation.logs):
        single = _each_log(evaluation.logs, lambda log, stem: _single_table(evaluation, pairs, log, stem, units))
        return Section("differences", title, (), single, tuple(pictures))
    chances = [text for metric in evaluation.metrics if (text := chance_in_words(pairs, metric))]
    how = (
        "Each interval has its 95 % for itself, so it is drawn and not called: of many, some leave out zero by chance. "
        "Better, worse or differs is said only where the Holm p, which judges all comparisons of the metric together, "
        "is below 0.05; elsewhere no difference is shown."
    )
    words = (how, " ".join(chances)) if chances else ()
    return Section("differences", title, words, tuple(tables), tuple(pictures))


def _single_table(
    evaluation: Evaluation, pairs: Sequence[Comparison], log: str, stem: str, units: dict[str, str]
) -> Table:
    """Return the differences in a single case: one table a log, a column a metric."""
    by_policy = {(row.policy, row.metric): row for row in pairs if row.log == log}
    columns = {Column("policy"): lambda policy: policy} | {
        difference_column(metric, pairs[0], units): lambda policy, metric=metric: by_policy[policy, metric].difference
        for metric in evaluation.metrics
    }
    return Table.of(stem, f"{log}: minus {evaluation.baseline}", columns, zip(evaluation.policies[1:]))


def _difference_table(rows: Sequence[Comparison], stem: str, units: dict[str, str]) -> Table:
    first = rows[0]
    columns: dict[Column, Callable[[Comparison], Any]] = {
        Column("log"): lambda row: row.log,
        Column("policy"): lambda row: row.policy,
        difference_column(first.metric, first, units, "difference"): difference_cell,
        Column("change", "%", f"the difference relative to {first.baseline}, case by case"): (
            lambda row: None if row.relative is None else 100 * row.relative
        ),
        Column("better in", "", "cases, or weeks of a whole log, in which the policy is better than the baseline"): (
            lambda row: f"{row.wins} of {row.cases}"
        ),
        Column("Holm p", "1", "probability that chance does as much, adjusted for all comparisons"): (
            lambda row: row.p_holm
        ),
    }
    left_out = {
        "log": all(row.log == first.log for row in rows),
        "change": all(row.relative is None for row in rows),
        "better in": all(row.cases == 1 for row in rows),
        "Holm p": not any(row.interval for row in rows),
    }
    shown = {column: show for column, show in columns.items() if not left_out.get(column.title)}
    title = f"{first.metric} {'against' if first.statistic == 'ratio' else 'minus'} that of {first.baseline}"
    if not left_out["better in"]:
        title += f": {OF_PAIRS[first.statistic]}"
    return Table.of(stem, title, shown, zip(rows))


# Ranks. --------------------------------------------------------------------------------------------------------------


def _ranks(outcome: Outcome, logs: Sequence[str], metrics: Sequence[str]) -> Section:
    evaluation, seed = outcome.evaluation, outcome.experiment.seed
    *stems, together = anchors([*logs, "all logs"])

    def ranks_over(*over: str) -> dict[str, list[Rank]]:
        return {metric: mean_ranks(evaluation, metric, over, seed=seed) for metric in metrics}

    by_log = {log: ranks_over(log) for log in logs}
    tables = []
    for log, stem in zip(logs, stems, strict=True):
        title = f"{log}: mean place in {counted(len(evaluation.rows(log)), noun(evaluation, log))}, 1 is the best"
        tables.append(_rank_table(evaluation, by_log[log], (stem, title)))
    how = (
        "In each case the policies are placed from 1, the best; equal values share the mean place. What is shown to "
        "differ, the differences say; here it is only drawn how often a policy is ahead."
    )
    paragraphs = [how]
    if len(logs) > 1:
        title = f"all {len(logs)} logs: mean over the logs of the mean place"
        tables.append(_rank_table(evaluation, ranks_over(*logs), (together, title)))
        paragraphs.append(
            "Over the logs: the mean of the logs' mean places, each log counting alike. Cases are drawn anew within "
            "each log (the logs are strata, and stay as they are), so these intervals say nothing about other logs."
        )
    pictures = []
    if metrics[0] == evaluation.metrics[0]:
        drawn = {log: rows for log, ranks in by_log.items() if (rows := ranks[metrics[0]])}
        title = f"Mean rank by {metrics[0]} with 95 % interval, by log and policy"
        pictures.append(Picture("ranks", title, functools.partial(draw_ranks, drawn, metrics[0], outcome.chosen)))
    return Section("ranks", "Ranks", tuple(paragraphs), tuple(tables), tuple(pictures))


def _rank_table(evaluation: Evaluation, ranks: Mapping[str, Sequence[Rank]], named: tuple[str, str]) -> Table:
    def column(metric: str) -> Callable[[str], Cell]:
        by_policy = {rank.policy: rank for rank in ranks[metric]}
        return lambda policy: _rank(by_policy.get(policy))

    columns = {
        Column(metric, "1", f"mean place by {metric}", label=METRICS[metric].title): column(metric) for metric in ranks
    }
    return Table.of(*named, {Column("policy"): lambda policy: policy, **columns}, zip(evaluation.policies))


def _rank(rank: Rank | None) -> Cell:
    return Cell(None) if rank is None else Cell(rank.mean.value, rank.mean.interval)


# Wins. ---------------------------------------------------------------------------------------------------------------


def _wins(outcome: Outcome, logs: Sequence[str]) -> Section:
    evaluation = outcome.evaluation
    metric, names = evaluation.metrics[0], evaluation.policies
    results = {log: wins(evaluation, log, metric) for log in logs}

    def table(stem: str, title: str, counts: Int64Array) -> Table:
        columns = {Column("policy"): names.__getitem__} | {
            Column(name, "", f"cases in which the policy has the better value than {name}"): lambda a, b=b: (
                None if a == b else int(counts[a, b])
            )
            for b, name in enumerate(names)
        }
        return Table.of(stem, title, columns, zip(range(len(names))))

    *stems, together = anchors([*logs, "all logs"])
    cases = {log: len(evaluation.rows(log)) for log in logs}
    tables = [
        table(
            stem, f"{log}: in how many of {counted(cases[log], noun(evaluation, log))} the row is better", results[log]
        )
        for log, stem in zip(logs, stems, strict=True)
    ]
    if len(logs) > 1:
        title = f"all {len(logs)} logs: of {sum(cases.values())} cases"
        tables.append(table(together, title, sum(results.values(), np.zeros_like(results[logs[0]]))))
    note = (
        f"By {metric}. Equal values count for neither. These are counts: what is shown to differ, the differences say."
    )
    pictures = []
    if len(names) <= _MANY_PLAYERS:
        title = f"In how many cases each policy is better than each other by {metric}"
        pictures.append(Picture("wins", title, functools.partial(draw_wins, results, cases, names, outcome.chosen)))
    return Section("wins", "Wins", (note,), tuple(tables), tuple(pictures))


# The recorded schedule beside the policies ----------------------------------------------------------------------------

# Its row of values, and how far each policy is from it.


RECORDED_NOTE = f"{RECORDED}: the same jobs as the log recorded them; it is no contender."
_HOW = (
    "Each policy minus the record of the same jobs. From each other the policies differ by their orders alone, since "
    "they are simulated alike; from the record they differ also by all that the simulation does not know."
)


def recorded_section(outcome: Outcome, units: Mapping[str, str]) -> Section:
    """Return the differences of the policies from the recorded schedule, which is shown.

    Parameters
    ----------
    outcome : Outcome
        The outcome.
    units : mapping of str to str
        The unit in which each metric is shown.
    """
    evaluation, pairs = outcome.evaluation, outcome.recorded_comparisons
    by_log = {(row.log, row.policy, row.metric): row for row in pairs}
    log = {Column("log"): lambda log, _: log} if len(evaluation.logs) > 1 else {}
    columns = {**log, Column("policy"): lambda _, policy: policy} | {
        difference_column(metric, pairs[0], units): lambda *key, metric=metric: _cell(by_log[*key, metric])
        for metric in evaluation.metrics
        if any(row.cases for row in pairs if row.metric == metric)  # a log does not say who was overtaken
    }
    title = f"minus {RECORDED}: {OF_PAIRS[pairs[0].statistic].replace('the baseline', 'the record')}"
    table = Table.of("differences", title, columns, itertools.product(evaluation.logs, evaluation.policies))
    metric = evaluation.metrics[0]
    deciding = [[by_log[log, policy, metric] for policy in evaluation.policies] for log in evaluation.logs]
    words = [_within(rows, units[metric]) for rows in deciding]
    return Section("recorded", "Differences from the recorded schedule", (_HOW, *words), (table,))


def _cell(row: Comparison) -> Cell:
    # Better and worse are for policies: the record was made under other rules.
    differs = row.verdict in {"better", "worse", "differs"}
    direction = "lower" if row.difference < 0 else "higher"
    mark = (direction if differs else row.verdict) if row.interval else ""
    return Cell(row.difference if row.cases else None, row.interval, mark)


def _within(rows: Sequence[Comparison], shown: str) -> str:
    """Return how near the baseline's replay is to the record of a log, and which policies are further away."""
    base = rows[0]
    if not base.cases:
        return f"{base.log}: a record has no {base.metric}."
    bound = _bound(base)
    if bound == 0:
        return f"{base.log}: by {base.metric} the replay under {base.policy} is equal to the record."
    value, ends = with_ends(base.difference, base.interval, base.unit, shown, signed=True)
    distance = f"difference {value}"
    distance += f", {percent_change(base.relative)}" if base.relative is not None else ""
    distance += f"; 95 % interval {ends}" if ends else ""
    most, _ = with_ends(bound, base.interval, base.unit, shown)
    further = [row.policy for row in rows[1:] if row.cases and abs(row.difference) > bound]
    return (
        f"{base.log}: by {base.metric} the replay under {base.policy} is within {most} of the record ({distance}). So "
        "much of a difference from the record may be what the simulation leaves out, and not the policy."
        f"{listed('Further from the record', further)}"
    )


def _bound(row: Comparison) -> float:
    """Return how far a policy may be from the record: the far end of the interval, or the difference without one."""
    ends = (row.interval.low, row.interval.high) if row.interval else (row.difference,)
    return max((abs(end) for end in ends if math.isfinite(end)), default=0.0)


# The table of each log and metric at the head of the page: values, differences, ranks; and the few that decide --------


def boards_of(outcome: Outcome) -> tuple[Board, ...]:
    """Return a table a log and metric; the chosen policy is the first row.

    Parameters
    ----------
    outcome : Outcome
        What an experiment shows.
    """
    evaluation = outcome.evaluation
    return tuple(
        Board(log, metric, METRICS[metric].title, _table(outcome, log, metric, _rows_of(outcome, log, metric)))
        for metric in evaluation.metrics
        for log in evaluation.logs
    )


def forests_of(outcome: Outcome) -> tuple[Board, ...]:
    """Return what decides, of each log by the first metric: of many rows the choice, baseline, record and next best.

    Parameters
    ----------
    outcome : Outcome
        As in `boards_of`; without a second policy nothing is decided.
    """
    if not outcome.comparisons:
        return ()
    metric = outcome.evaluation.metrics[0]
    boards = []
    for log in outcome.evaluation.logs:
        rows = _rows_of(outcome, log, metric)
        whole = len(rows) <= _WHOLE
        table = _table(
            outcome, log, metric, rows if whole else [(row, role) for row, role in rows if role], short=not whole
        )
        boards.append(Board(log, metric, METRICS[metric].title, table))
    return tuple(boards)


def _rows_of(outcome: Outcome, log: str, metric: str) -> list[tuple[Summary, str]]:
    """Return who has a row, and as what: the choice, or else the best, the baseline, the record, all others."""
    summaries = [row for row in outcome.summaries if (row.log, row.metric) == (log, metric)]
    recorded = [row for row in outcome.recorded_summaries if (row.log, row.metric) == (log, metric) and row.cases]
    direction = METRICS[metric].lower_is_better
    roles = _roles(summaries, outcome.evaluation.baseline, outcome.chosen, lower_is_better=direction)
    order = sorted(summaries, key=lambda row: (_position(roles[row.policy], outcome.chosen in roles), row.rank or 0))
    rows = [(row, roles[row.policy]) for row in order]
    return [*rows[:2], *((row, "record") for row in recorded), *rows[2:]]


_WHOLE = 6  # rows that are shown at once, so that they need not be shown again
_BEST = "best value"
_PLACES = {"chosen": 0, _BEST: 0, "baseline": 1, "next best": 2, "": 3}


def _position(role: str, a_choice: bool) -> int:  # noqa: FBT001 (there is a choice or not)
    return _PLACES["next best"] if role == _BEST and a_choice else _PLACES[role]


def _roles(rows: Sequence[Summary], baseline: str, chosen: str, *, lower_is_better: bool | None) -> dict[str, str]:
    """Return who is the choice (or else the best), the baseline and the best of the others."""
    sign = -1.0 if lower_is_better is False else 1.0
    ordered = sorted((row for row in rows if row.cases), key=lambda row: sign * row.value)
    base = next(row.value for row in rows if row.policy == baseline)
    names = [row.policy for row in ordered if row.policy != baseline and row.value != base]
    roles = {row.policy: "" for row in rows} | {baseline: "baseline"}
    if lower_is_better is None:
        return roles
    first = chosen if chosen in roles else next(iter(names), "")
    if first and first != baseline:
        roles[first] = "chosen" if first == chosen else _BEST
    # Who is exactly as good as the baseline is no better than it.
    second = next((name for name in names if name != first), "")
    leads = any(row.best for row in rows if row.policy == second)
    return roles | ({second: _BEST if leads else "next best"} if second else {})


def _difference(row: Comparison | None, *, judged: bool = True) -> Cell:
    if row is None or not row.cases:
        return Cell(None)
    return Cell(row.difference, row.interval, row.verdict if row.interval and judged else "")


def _turned(row: Comparison | None) -> Cell:
    """Return the record minus the baseline, of the baseline minus the record; a ratio cannot be turned."""
    if row is None or not row.cases or row.statistic == "ratio":
        return Cell(None)
    return Cell(-row.difference, Interval(-row.interval.high, -row.interval.low) if row.interval else None)


def _table(
    outcome: Outcome, log: str, metric: str, rows: Sequence[tuple[Summary, str]], *, short: bool = False
) -> Table:
    evaluation, units = outcome.evaluation, units_of(outcome.summaries)
    base, unit = evaluation.baseline, METRICS[metric].unit
    pairs, records = (
        {row.policy: row for row in compared if (row.log, row.metric) == (log, metric)}
        for compared in (outcome.comparisons, outcome.recorded_comparisons)
    )
    tie = all(row.best for row in outcome.summaries if (row.log, row.metric) == (log, metric))

    def value(row: Summary, role: str) -> Cell:
        return Cell(row.value, row.interval, "best" if row.best and not tie and role != _BEST else "")

    def difference(row: Summary, role: str) -> Cell:
        return _turned(records.get(base)) if role == "record" else _difference(pairs.get(row.policy))

    columns: dict[Column, Callable[[Summary, str], Any]] = {
        Column("policy"): lambda row, role: Cell(row.policy, mark=role),
        Column("value", unit, METRICS[metric].description, units[metric]): value,
    }
    if pair := next(iter(pairs.values()), None):
        columns[difference_column(metric, pair, units, f"difference from {base}")] = difference
    changes = {row.policy: 100 * row.relative for row in pairs.values() if row.relative is not None}
    if changes and not short:
        columns[Column("change", "%", f"the difference relative to {base}")] = lambda row, _: changes.get(row.policy)
    several = pair is not None and len(evaluation.rows(log)) > 1 and not short
    ranks = mean_ranks(evaluation, metric, (log,), seed=outcome.experiment.seed) if several else []
    if ranks:
        ranked = {rank.policy: rank for rank in ranks}
        mean_rank = Column("mean rank", "1", "mean place in the cases, 1 is the best")
        columns[mean_rank] = lambda row, _: _rank(ranked.get(row.policy))
    if any(row.cases for row in records.values()) and not short:
        from_record = difference_column(metric, next(iter(records.values())), units, "difference from the record")
        columns[from_record] = lambda row, _: _difference(records.get(row.policy), judged=False)
    apart = {row.policy: difference(row, role) for row, role in rows if role != "record"}
    table = Table.of(f"{log} {metric}", _title(outcome, log, metric, pair), columns, rows, _same(apart, base))
    return dataclasses.replace(table, bars=2 if pair is not None else -1, names=1, front=True)


def _title(outcome: Outcome, log: str, metric: str, pair: Comparison | None) -> str:
    evaluation = outcome.evaluation
    weeks, cases = evaluation.weekly.get(log), len(evaluation.rows(log))
    over = counted(len(weeks.jobs), "week") if weeks is not None else counted(cases, noun(evaluation, log))
    how = f"; differences: {OF_PAIRS[pair.statistic].replace('baseline', evaluation.baseline)}" if pair else ""
    return f"{log}: {METRICS[metric].title} ({metric}), {over}{how}"


def _same(differences: Mapping[str, Cell], baseline: str) -> str:
    """Return which policies are not shown to differ, in one sentence."""
    names = [policy for policy, cell in differences.items() if cell.mark == "no difference"]
    equal = [policy for policy, cell in differences.items() if cell.value == 0 and policy not in names]
    return f"{listed(f'No difference is shown from {baseline}', names)}{listed(f'Equal to {baseline}', equal)}".strip()


def winners(summaries: Sequence[Summary], metric: str) -> dict[str, str | None]:
    """Return the policy that is best in ``metric`` on each log; None where several are equally good.

    Parameters
    ----------
    summaries : sequence of Summary
        Of `summary.summarise`.
    metric : str
        The metric that decides.
    """
    best: dict[str, list[str]] = {}
    for row in summaries:
        if row.metric == metric:
            best.setdefault(row.log, []).extend([row.policy] * row.best)
    return {log: names[0] if len(names) == 1 else None for log, names in best.items()}
