"""What the numbers do not say, what stands of many comparisons, and what the best costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from policyfactory.core.text import counted, enumerated, format_duration
from policyfactory.report.sections import Cell, Column
from policyfactory.report.verdict import difference_in_words
from policyfactory.simulation.metrics import METRICS
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.intervals import MIN_CASES, difference_unit

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation, WeeklyValues

_NOUNS = {"window": "window", "resample": "resampled log", "log": "log"}


def noun(evaluation: Evaluation, log: str) -> str:
    """Return what a case of this log is called: window, resampled log, log."""
    return _NOUNS[evaluation.cases[int(evaluation.rows(log)[0])].kind]


def intervals_in_words(evaluation: Evaluation) -> list[str]:
    """Return what the intervals of this evaluation mean, a sentence or two for each kind of case."""
    sentences = []
    counts = {log: len(evaluation.rows(log)) for log in evaluation.logs}
    enough = {noun(evaluation, log) for log, count in counts.items() if count >= MIN_CASES}
    if "window" in enough:
        sentences.append(
            "A 95 % interval is over the windows of a log: it says what other windows of the same log and time would "
            "give, and nothing about another machine or another year."
        )
    if "resampled log" in enough:
        sentences.append(
            "A 95 % interval is over resamples of a log, each of which differs from the log as the log differs from "
            "other weeks of its users: it says what those would give, however many resamples there are, and nothing "
            "about other users, another machine or another year."
        )
    for log, count in counts.items():
        if again := evaluation.repeated(log):
            sentences.append(
                f"{log}: {again:,} of {again + count:,} resampled logs have the jobs of an earlier one, and count no "
                "further: the log has too few weeks or users for so many draws."
            )
    few = [log for log, count in counts.items() if 1 < count < MIN_CASES]
    if few:
        sentences.append(
            f"{enumerated(few)}: fewer than {MIN_CASES} cases cannot give a 95 % interval, so none is given."
        )
    for log, weeks in evaluation.weekly.items():
        if weeks.enough:
            drawn = "one by one" if weeks.block == 1 else f"{weeks.block} in a row"
            sentences.append(
                f"{log}: one continuous simulation. A 95 % interval is over its {len(weeks.jobs)} weeks of submission, "
                f"drawn {drawn}, since the queue remembers about {format_duration(weeks.memory_s)}: it says what other "
                "weeks of the same log and time would give, and nothing about another machine or another year. Only "
                "means over the jobs have one."
            )
    single = [log for log, count in counts.items() if count == 1 and log not in evaluation.weekly]
    if single:
        sentences.append(f"{enumerated(single)}: a single case has no spread and gives no interval.")
    return sentences


def too_few_cases(count: int, kind: str) -> str:
    """Return why so few cases give no interval."""
    if kind == "log":
        return "No interval of a single case (draw logs with --resamples)."
    return f"No interval: {counted(count, kind)}, {MIN_CASES} are needed."


def listed(phrase: str, names: Sequence[str]) -> str:
    """Return a sentence that begins with a blank, ``PHRASE: A and B.``; empty without names."""
    return f" {phrase}: {enumerated(names)}." if names else ""


def too_few_weeks(weeks: WeeklyValues, baseline: str) -> str:
    """Return why the weeks of a log give no interval."""
    count = len(weeks.jobs)
    if weeks.block is None:
        return f"under {baseline} its queue remembers longer than {counted(count, 'week')} can tell"
    return (
        f"{counted(count, 'week')} are too few: {MIN_CASES * weeks.block} are needed, since under {baseline} the queue "
        f"remembers about {format_duration(weeks.memory_s)}"
    )


def chance_in_words(comparisons: Sequence[Comparison], metric: str) -> str:
    """Return how many of the comparisons in a metric are shown to differ, judged together.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Of `compare.compare`.
    metric : str
        One of their metrics; without an interval in it the answer is empty.
    """
    rows = [row for row in comparisons if row.metric == metric and row.interval is not None]
    if not rows:
        return ""
    shown = sum(row.verdict != "no difference" for row in rows)
    differ = "differs" if shown == 1 else "differ"
    text = f"{metric}: {shown} of {counted(len(rows), 'comparison')} with {rows[0].baseline} {differ}"
    if len(rows) == 1:
        return f"{text}."
    text = f"{text}, all {len(rows)} judged together (Holm)."
    if chance := sum(row.by_chance for row in rows):
        text += f" {chance} more {'leaves' if chance == 1 else 'leave'} out zero: among so many that may be chance."
    return text


def price_in_words(rows: Iterable[Comparison], units: Mapping[str, str] | None = None, case: str = "case") -> str:
    """Return in what a policy is shown to be worse than what it is compared with; nothing where it is not.

    Parameters
    ----------
    rows : iterable of Comparison
        Of one policy.
    units : mapping of str to str, optional
        The unit in which each metric is shown, where it is decided already.
    case : str
        What a case is called.
    """
    worse = [row for row in rows if row.verdict == "worse"]
    parts = [
        f"{METRICS[row.metric].title}{difference_in_words(row, (units or {}).get(row.metric, ''), case)}"
        for row in worse
    ]
    return f"{worse[0].policy} is worse than {worse[0].baseline} in {'; '.join(parts)}." if worse else ""


# Small parts of the tables of a report --------------------------------------------------------------------------------


OF_PAIRS = {
    "median": "median of the paired differences",
    "mean": "mean of the paired differences",
    "ratio": "sum over all cases against the baseline's sum, minus 1",
    "weeks": "difference of the means over all jobs",
}


def difference_column(metric: str, row: Comparison, units: Mapping[str, str], title: str = "") -> Column:
    """Return the column of the differences in one metric.

    Parameters
    ----------
    metric : str
        The metric.
    row : Comparison
        One of its comparisons.
    units : mapping of str to str
        The unit in which each metric is shown.
    title : str
        Its heading, if not the metric.
    """
    unit = difference_unit(row.statistic, METRICS[metric].unit)
    named = {"pp": "percentage points"}.get(unit, unit)
    shown = units[metric] if unit == "s" else ""
    label = "" if title else METRICS[metric].title
    return Column(title or metric, named, OF_PAIRS[row.statistic], shown, label=label)


def difference_cell(row: Comparison) -> Cell:
    """Return the difference with its interval, and the verdict where there is one."""
    return Cell(row.difference, row.interval, row.verdict if row.interval else "")
