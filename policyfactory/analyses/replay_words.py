"""How far the replays are from the record, in words, and what a record holds that a replay has not."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from policyfactory.analyses.common import scaled
from policyfactory.core.text import number_text
from policyfactory.core.units import format_duration
from policyfactory.simulate.recorded import Overuse

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation
    from policyfactory.statistics.intervals import Estimate

__all__ = ["Distances", "replay_in_words"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """The replays of one log beside its record, over its cases.

    Parameters
    ----------
    log : str
        The log.
    policies : tuple of str
        The first is the baseline.
    distance, same_start, median_wait, utilisation : list of Estimate [policy]
        Kolmogorov-Smirnov distance of the waits; jobs that start when they did, in %; seconds; %.
    recorded_wait, recorded_utilisation : Estimate
        Median wait (s) and utilisation (%) of the record.
    overuse : Overuse
        Of the record, all cases together.
    machine : int
        Processors of the machine.
    """

    log: str
    policies: tuple[str, ...]
    distance: list[Estimate]
    same_start: list[Estimate]
    median_wait: list[Estimate]
    utilisation: list[Estimate]
    recorded_wait: Estimate
    recorded_utilisation: Estimate
    overuse: Overuse
    machine: int

    @property
    def cases(self) -> int:
        """How many cases."""
        return self.recorded_wait.cases


def replay_in_words(evaluation: Evaluation, found: dict[str, Distances]) -> tuple[str, ...]:
    """Return a paragraph a log, and what separates a replay from a record beside the policy.

    Parameters
    ----------
    evaluation : Evaluation
        What was simulated.
    found : dict of str to Distances
        Of each log.
    """
    paragraphs = []
    for log, own in found.items():
        sentences = [_how_far(own), _closest(own), _overused(own)]
        paragraphs.append(f"{log}: " + " ".join(sentence for sentence in sentences if sentence))
    return (*paragraphs, _what_a_record_holds(evaluation))


def _how_far(own: Distances) -> str:
    policy = own.policies[0]
    far = own.distance[0].value
    if far == 0 and own.same_start[0].value == 100:
        return f"under {policy} the replay is the record: every job starts when it did, or within a minute of that."
    middle = "" if own.cases == 1 else f" (median over {own.cases} cases)"
    return (
        f"under {policy} the waits of the replay have a Kolmogorov-Smirnov distance of {number_text(far)}{middle} "
        "from those of the record, where 0 is the same distribution and 1 has nothing in common. The median wait is "
        f"{scaled(own.median_wait[0].value, 's')} and was {scaled(own.recorded_wait.value, 's')}; the utilisation is "
        f"{_share(own.utilisation[0])} and was {_share(own.recorded_utilisation)}; {_share(own.same_start[0])} of the "
        "jobs start within a minute of when they did."
    )


def _closest(own: Distances) -> str:
    """Name the policy whose waits are most like the record's, if it is not the baseline."""
    closest = min(range(len(own.policies)), key=lambda k: own.distance[k].value)
    if own.distance[closest].value >= own.distance[0].value:
        return ""
    return f"The waits under {own.policies[closest]} are the closest, {number_text(own.distance[closest].value)}."


def _overused(own: Distances) -> str:
    over = own.overuse
    if over.peak <= own.machine:
        return ""
    share = 100.0 * over.over_s / over.span_s if over.span_s else 0.0
    return (
        f"The record uses up to {over.peak:,} processors at once, and more than the machine's {own.machine:,} for "
        f"{number_text(share)} % of the time ({format_duration(round(over.over_s))}): no replay can do that. Either "
        "the machine was larger (say so: --processors, or machine in a protocol), or jobs shared processors, or "
        "recorded times are wrong."
    )


def _what_a_record_holds(evaluation: Evaluation) -> str:
    windows = any(case.kind == "window" for case in evaluation.cases)
    empty = " A window's replay begins on an empty machine; in the record older jobs ran and waited." if windows else ""
    return (
        "A record holds what a replay has not: the site's priorities, limits and reservations, processors that were "
        f"down, and jobs that are not in the log or were dropped when it was cleaned.{empty}"
    )


def _share(estimate: Estimate) -> str:
    return f"{number_text(estimate.value)} %"
