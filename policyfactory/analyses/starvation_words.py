"""The longest waits in words, and whether the threshold mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from policyfactory.analyses.common import place_of
from policyfactory.analyses.waits import LogWaits
from policyfactory.core.text import counted, enumerated, number_text
from policyfactory.core.units import format_duration
from policyfactory.policy.policy import Policy

if TYPE_CHECKING:
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["starvation_in_words"]

_TOLD = 6  # policies; the tables have all
_OFTEN = 0.05  # share of the jobs from which the order is for a good part that of submission


def starvation_in_words(
    evaluation: Evaluation, found: Mapping[str, LogWaits], beyond: Sequence[str]
) -> tuple[str, ...]:
    """Return, for each log, the longest waits and what the threshold did.

    Parameters
    ----------
    evaluation : Evaluation
        What was run.
    found : mapping of str to LogWaits
        The waits of each log.
    beyond : sequence of str
        Waits that were counted.
    """
    paragraphs = []
    for log, own in found.items():
        name = f"{log}: " if len(found) > 1 else ""
        paragraphs.append(name + _longest(evaluation, log, own))
        paragraphs.append(name + _threshold(evaluation, own, beyond))
    return tuple(paragraphs)


def _longest(evaluation: Evaluation, log: str, own: LogWaits) -> str:
    several = len(own.cases) > 1
    told = []
    for k, policy in enumerate(own.policies[:_TOLD]):
        row, waits = own.longest(k)
        if waits.longest == 0:
            told.append(f"{policy}: no job waits")
            continue
        number = evaluation.cases[int(evaluation.rows(log)[row])].number
        where = f" of {place_of(evaluation, log, number)}" if several else ""
        told.append(
            f"{policy}: {format_duration(waits.longest)}, job {waits.job_id}{where} "
            f"({counted(waits.processors, 'processor')}, {format_duration(waits.requested)} requested, "
            f"{format_duration(waits.run_time)} run)"
        )
    more = " Those of the other policies are in the table." if len(own.policies) > _TOLD else ""
    return f"The longest wait of any job, {'; '.join(told)}.{more}"


def _threshold(evaluation: Evaluation, own: LogWaits, beyond: Sequence[str]) -> str:
    with_one = [k for k in range(len(own.policies)) if own.has_threshold(k)]
    if not with_one:
        return f"There is no threshold. {_would_be(own, beyond)}"
    lengths = {own.threshold_text(k) for k in with_one}
    text = f"Jobs that wait longer than {enumerated(sorted(lengths))} go first, in the order of their submission. "
    if len(with_one) < len(own.policies):
        rest = [name for k, name in enumerate(own.policies) if k not in with_one]
        text += f"{enumerated(rest)} {'have' if len(rest) > 1 else 'has'} no threshold. "
    overdue = {k: own.count("overdue", k) for k in with_one}
    if not any(overdue.values()):
        return f"{text}It never acted: no job waited that long."
    idle = [k for k in with_one if overdue[k] and _is_submission_order(evaluation, k)]
    acted = [k for k in with_one if overdue[k] and k not in idle]
    parts = (
        [f"Of {own.jobs:,} jobs that happened to {'; '.join(_acted(own, k) for k in acted[:_TOLD])}."] if acted else []
    )
    often = [own.policies[k] for k in acted if overdue[k] >= _OFTEN * own.jobs]
    if often:
        parts.append(
            f"Under {enumerated(often)} so many are overdue that the order is for a good part that of submission."
        )
    parts += [
        f"Under {own.policies[k]} it changes nothing ({counted(overdue[k], 'job was', 'jobs were')} overdue): the "
        "queue is in the order of submission anyway."
        for k in idle
    ]
    never = [own.policies[k] for k in with_one if not overdue[k]]
    if never:
        parts.append(f"Under {enumerated(never)} it never acted: no job waited that long.")
    return text + " ".join(parts)


def _acted(own: LogWaits, k: int) -> str:
    overdue = own.count("overdue", k)
    beyond = own.longest(k)[1].longest - own.threshold(k)
    return (
        f"{overdue:,} under {own.policies[k]} ({number_text(100 * overdue / own.jobs)} %; "
        f"the longest wait is {format_duration(beyond)} beyond it)"
    )


def _is_submission_order(evaluation: Evaluation, k: int) -> bool:
    contender = evaluation.contenders[k]
    return isinstance(contender, Policy) and contender.formula.strip() == "r"


def _would_be(own: LogWaits, beyond: Sequence[str]) -> str:
    if not beyond:
        return ""
    lengths = enumerated(beyond)
    told = []
    for k, policy in enumerate(own.policies[:_TOLD]):
        counts = [own.beyond(at, k) for at in range(len(beyond))]
        told.append(f"{policy} {enumerated(f'{count:,}' for count in counts)}" if any(counts) else f"{policy} none")
    return (
        f"Of {own.jobs:,} jobs these waited longer than {lengths}: {'; '.join(told)}. A threshold of that length would "
        "have put them first, and so changed the waits of others."
    )
