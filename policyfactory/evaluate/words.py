"""The closing words: who wins, by how much, how certain it is, and who is worst off.

Every sentence follows from the numbers and stays true when there is no effect: a policy is said to be better only
if its interval does not cover zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from policyfactory.core.units import format_duration
from policyfactory.evaluate.compare import MIN_WINDOWS, Comparison
from policyfactory.evaluate.display import Scale, percent, scale_for
from policyfactory.evaluate.metrics import METRICS
from policyfactory.evaluate.summary import Summary, worst_off

if TYPE_CHECKING:
    from policyfactory.evaluate.run import Evaluation
    from policyfactory.evaluate.simulate import Rules

__all__ = ["closing_words", "rules_in_words"]


def closing_words(evaluation: Evaluation, summaries: Sequence[Summary], comparisons: Sequence[Comparison]) -> list[str]:
    """Return the conclusion as paragraphs, one a trace; the first metric decides who wins.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    summaries : sequence of Summary
        Of `summary.summarise`.
    comparisons : sequence of Comparison
        Of `compare.compare`, all with one baseline.
    """
    metric = evaluation.metrics[0]
    paragraphs = []
    for trace in evaluation.traces:
        own = [row for row in summaries if row.trace == trace and row.metric == metric]
        pairs = [row for row in comparisons if row.trace == trace]
        sentences = [_who_wins(own, [row for row in pairs if row.metric == metric])]
        sentences += _what_it_costs(own, pairs, metric)
        sentences.append(_who_is_worst_off(evaluation, trace, own))
        paragraphs.append(f"{trace}: " + " ".join(sentence for sentence in sentences if sentence))
    return paragraphs


def rules_in_words(rules: Rules) -> str:
    """Return the rules of the simulation as one line."""
    backfill = {"easy": "EASY backfilling", "none": "no backfilling", "conservative": "conservative backfilling"}
    decide = {"request": "requested times", "runtime": "actual run times", "prediction": "predicted run times"}
    own = rules.backfill_policy
    parts = [
        backfill[rules.backfill] + ("" if own is None else f" in the order of {own.name}"),
        f"decisions by {decide[rules.decide_by]}",
        "thresholds of the policies themselves"
        if math.isinf(rules.threshold)
        else f"jobs that waited longer than {format_duration(rules.threshold)} go first",
        f"ties {rules.ties}",
        "jobs beyond their request " + ("run on" if rules.overrun == "run" else "are killed"),
    ]
    return "rules: " + "; ".join(parts)


def _listed(names: Iterable[str]) -> str:
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last


def _who_wins(rows: list[Summary], pairs: list[Comparison]) -> str:
    metric, windows = rows[0].metric, rows[0].windows
    better = METRICS[metric].lower_is_better
    winners = [row for row in rows if row.best]
    if better is None:
        return f"{metric} has no better direction, so no winner is named."
    if not winners:
        return f"{metric} has no value in any window, so no winner is named."
    scale = scale_for(rows[0].unit, [row.median for row in rows])
    value = f"{scale.text(winners[0].median)}{scale.suffix}"
    baseline = pairs[0].baseline if pairs else rows[0].policy
    if len(rows) == 1:
        return f"{baseline} has a median {metric} of {value}; there is no other policy to compare it with."
    extreme = "lowest" if better else "highest"
    names = _listed(row.policy for row in winners)
    have = "have" if len(winners) > 1 else "has"
    what = metric if windows == 1 else f"median {metric} over {windows} windows"
    if len(winners) == len(rows):
        certain = "" if windows == 1 else f" {_by_test(pairs, baseline)}"
        return f"all policies have the same {what}, {value}.{certain}"
    base = next(row for row in rows if row.policy == baseline)
    against = "" if base in winners else f" ({baseline}: {scale.text(base.median)}{scale.suffix})"
    return f"{names} {have} the {extreme} {what}, {value}{against}. " + _how_certain(winners, pairs, windows, baseline)


def _how_certain(winners: list[Summary], pairs: list[Comparison], windows: int, baseline: str) -> str:
    if windows == 1:
        return (
            "This is one window, so there is no spread and no interval: whether the order would be the same in "
            "another month is not known (cut the log with --windows)."
        )
    if windows < MIN_WINDOWS:
        return f"{windows} windows are too few for a 95 % interval (at least {MIN_WINDOWS} are needed)."
    own = [row for row in pairs if row.policy == winners[0].policy]
    others = [row for row in pairs if row.policy != winners[0].policy]
    return " ".join(part for part in (*map(_against_baseline, own), _by_test(others, baseline)) if part)


def _by_test(pairs: Sequence[Comparison], baseline: str) -> str:
    sentences = []
    for verdict, phrase in (
        ("better", "Shown to be better than"),
        ("worse", "Shown to be worse than"),
        ("no difference", "No difference from"),
        ("too few windows", "Too few windows for a comparison with"),
    ):
        names = [row.policy for row in pairs if row.verdict == verdict]
        if names:
            sentences.append(f"{phrase} {baseline}: {_listed(names)}.")
    return " ".join(sentences)


def _against_baseline(row: Comparison) -> str:
    if row.interval is None:
        return f"Only {row.windows} of its windows can be compared with {row.baseline}, too few for an interval."
    scale = scale_for(METRICS[row.metric].unit, [row.difference, row.interval.low, row.interval.high])
    low, high = (scale.text(end, signed=True) for end in (row.interval.low, row.interval.high))
    change = f", {percent(row.relative)}" if row.relative is not None else ""
    told = (
        f"window by window it differs from {row.baseline} by {scale.text(row.difference, signed=True)}{scale.suffix} "
        f"in the median{change} (95 % interval {low} to {high}{scale.suffix}; "
        f"better in {row.wins} of {row.windows} windows)"
    )
    if row.verdict == "no difference":
        return f"But {told}: the interval covers zero, so no difference from {row.baseline} is shown."
    return f"{told[0].upper()}{told[1:]}."


def _what_it_costs(rows: list[Summary], pairs: list[Comparison], metric: str) -> list[str]:
    winners = {row.policy for row in rows if row.best}
    worse = [row for row in pairs if row.policy in winners and row.verdict == "worse" and row.metric != metric]
    if not worse:
        return []
    told = []
    for row in worse[:4]:
        ends = (row.interval.low, row.interval.high) if row.interval else ()
        scale: Scale = scale_for(METRICS[row.metric].unit, [row.difference, *ends])
        interval = f" ({' to '.join(scale.text(end, signed=True) for end in ends)})" if ends else ""
        told.append(f"{row.metric} {scale.text(row.difference, signed=True)}{scale.suffix}{interval}")
    name = worse[0].policy
    return [f"{name} pays for it against {worse[0].baseline}: {'; '.join(told)}."]


def _who_is_worst_off(evaluation: Evaluation, trace: str, rows: list[Summary]) -> str:
    found = {row.policy: row for row in worst_off(evaluation, trace)}
    worst = max(found.values(), key=lambda row: row.wait_s)
    several = len(evaluation.rows(trace)) > 1
    if worst.wait_s == 0:
        return "No job waits under any policy."
    where = f"job {worst.job_id}" + (f" in window {worst.window}" if several else "")
    text = f"Worst off is {where}, which waits {format_duration(worst.wait_s)} under {worst.policy}"
    interesting = dict.fromkeys([evaluation.baseline, *(row.policy for row in rows if row.best)])
    others = [name for name in interesting if name != worst.policy][:3]
    if others:
        text += "; the longest wait is " + _listed(
            f"{format_duration(found[name].wait_s)} under {name}" for name in others
        )
    return text + "."
