"""The Gantt chart in words: which stretch it shows, and who gains and loses in it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.analyses.common import place_of
from policyfactory.analyses.excerpt import Excerpt
from policyfactory.core.text import counted
from policyfactory.core.units import format_duration

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["gantt_in_words"]


def gantt_in_words(evaluation: Evaluation, found: Mapping[str, Excerpt], case: int, most: int) -> tuple[str, ...]:
    """Return a paragraph a log.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    found : mapping of str to Excerpt
        The stretch of each log.
    case : int
        Number of the case.
    most : int
        Rectangles that are drawn at most.
    """
    if not found:
        return (f"There is no case {case}, so there is no chart.",)
    paragraphs = []
    for log, own in found.items():
        name = f"{log}: " if len(found) > 1 else ""
        parts = [_where(evaluation, log, own, case), *_in_use(own), *_moved(own), *_left_out(own, most)]
        paragraphs.append(name + " ".join(parts))
    if len(evaluation.policies) == 1:
        paragraphs.append("Only one policy was run, so there is nothing beside it.")
    return tuple(paragraphs)


def _where(evaluation: Evaluation, log: str, own: Excerpt, case: int) -> str:
    ticks = own.jobs.ticks
    since = format_duration((own.first - int(own.jobs.submit[0])) / ticks)
    length = format_duration((own.last - own.first) / ticks)
    reason = {
        "busiest": f"the stretch in which most waits under {own.policies[0]}",
        "worst": f"around the wait of the job that loses most under {own.policies[-1]}",
        "first": "as asked for",
    }[own.why]
    where = place_of(evaluation, log, case)
    date = ""
    if own.jobs.unix_start is not None and not where.startswith("resampled"):
        instant = datetime.fromtimestamp(own.jobs.unix_start + own.first // ticks, UTC)
        date = f", from {instant:%Y-%m-%d %H:%M} UTC on"
    return f"Shown are {length} of {where}, beginning {since} after its first submission{date}: {reason}."


def _in_use(own: Excerpt) -> list[str]:
    told = [
        f"under {policy} {counted(len(np.unique(rectangles.row)), 'job runs', 'jobs run')} in it and "
        f"{own.utilisation(k):.0f} % of the machine is in use"
        for k, (policy, rectangles) in enumerate(zip(own.policies, own.drawn, strict=True))
    ]
    text = "; ".join(told)
    return [f"{text[0].upper()}{text[1:]}."]


def _moved(own: Excerpt) -> list[str]:
    if len(own.policies) < 2:
        return []
    change = own.change[own.shown]
    less, more = int((change < 0).sum()), int((change > 0).sum())
    fewer = counted(less, "waits", "wait")
    first, second = own.policies
    if not less and not more:
        return [f"Each of these jobs waits as long under {second} as under {first}."]
    text = (
        f"Of the {len(change):,} jobs that run in it under either policy, {fewer} less under {second} than under "
        f"{first}, {more:,} more, {len(change) - less - more:,} as long."
    )
    if own.loser is None:
        return [text]
    at, jobs = own.loser, own.jobs
    before, after = (format_duration(float(wait[at])) for wait in own.waits)
    size = counted(int(jobs.processors[at]), "processor")
    return [f"{text} Job {jobs.job_id[at]} ({size}, outlined) loses most: it waits {after} instead of {before}."]


def _left_out(own: Excerpt, most: int) -> list[str]:
    each = max(1, most // len(own.policies))
    told = []
    for policy, rectangles in zip(own.policies, own.drawn, strict=True):
        drawn = rectangles.largest(each)
        missing = len(np.unique(rectangles.row)) - len(np.unique(drawn.row))
        if len(drawn.row) < len(rectangles.row):
            share = 100 * (1 - float(drawn.area.sum()) / float(rectangles.area.sum()))
            told.append(f"{counted(missing, 'small job')} under {policy} ({share:.1f} % of the area)")
    return [f"Not drawn: {'; '.join(told)}."] if told else []
