"""What a protocol found, on one screen: published values that are met, and each claim in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from policyfactory.core.text import counted, enumerated
from policyfactory.evaluate.reference import PublishedValue, reference_values

if TYPE_CHECKING:
    from policyfactory.evaluate.experiment import Outcome
    from policyfactory.evaluate.study import Study

__all__ = ["in_brief", "score_of"]


def score_of(outcomes: Sequence[Outcome]) -> str:
    """Return how many published values are met; nothing if there are none.

    Parameters
    ----------
    outcomes : sequence of Outcome
        All experiments of a protocol.
    """
    values = [value for own in _by_source(outcomes).values() for value in own]
    if not values:
        return ""
    met = sum(value.met for value in values)
    return f"{met:,} of {counted(len(values), 'published value')} met to the printed digit"


def in_brief(study: Study) -> list[str]:
    """Return what is to be said of a protocol: what is met and what is not, claims, or else each experiment's verdict.

    Parameters
    ----------
    study : Study
        What was found.
    """
    lines = [f"{score}." for score in [score_of(study.outcomes)] if score]
    lines += [f"  {source}: {_met(own)}." for source, own in _by_source(study.outcomes).items()]
    lines += study.claims[0].paragraphs[1:] if study.claims else ()
    if lines:
        return lines
    for outcome in study.outcomes:
        about = outcome.experiment.title or outcome.experiment.name
        said = outcome.words[:1]
        if outcome.verdict is not None:
            said = tuple(f"{part.title}. {' '.join(part.sentences[:1])}" for part in outcome.verdict.parts)
        lines.append(f"{about}. {' '.join(said)}")
    return lines


def _by_source(outcomes: Iterable[Outcome]) -> dict[str, list[PublishedValue]]:
    """Return the published values by where they are printed."""
    found: dict[str, list[PublishedValue]] = {}
    for outcome in outcomes:
        for reference in outcome.experiment.references:
            values = reference_values(outcome.evaluation, reference, seed=outcome.experiment.seed)
            if values:
                found.setdefault(reference.source, []).extend(values)
    return found


def _met(values: Sequence[PublishedValue]) -> str:
    """Return how many values of one source are met, and on which logs others are not, and how far they are."""
    met, missed = sum(value.met for value in values), [value for value in values if not value.met]
    said = f"{met:,} of {len(values):,}"
    if not missed:
        return said
    parts = []
    for log in dict.fromkeys(value.log for value in missed):
        own = [abs(value.deviation) for value in missed if value.log == log and value.deviation is not None]
        far = f", up to {max(own):.2g} % away" if own else ""
        parts.append(f"{sum(value.log == log for value in missed):,} of {log}{far}")
    return f"{said}; not met are {enumerated(parts)}"
