"""Sentences of analyses: estimates, differences, and names of cases and policies as a text has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.analyses.estimates import marks_of, median_differences, policies_by_mark
from policyfactory.core.arrays import FloatArray
from policyfactory.core.text import enumerated
from policyfactory.core.units import DAY
from policyfactory.report.numbers import scale_for
from policyfactory.statistics.intervals import Estimate

if TYPE_CHECKING:
    from policyfactory.analyses.logs import LogView
    from policyfactory.statistics.evaluation import Evaluation


__all__ = [
    "against",
    "difference_text",
    "differences_in_words",
    "listed",
    "marked_in_words",
    "scaled",
    "shared_unit",
    "value_text",
]


def shared_unit(seconds: Iterable[float]) -> str:
    """Return the unit in which all these times are shown, so that they can be compared: s, min, h or d.

    Parameters
    ----------
    seconds : iterable of float
        The times; not finite ones do not count.
    """
    largest = max((abs(value) for value in seconds if math.isfinite(value)), default=0.0)
    # Waits are given in hours; only what takes weeks is not.
    return "d" if largest >= 10 * DAY else scale_for("s", [min(largest, DAY)]).label


def scaled(value: float, unit: str) -> str:
    """Return one number with the unit that suits it: ``4.20 h``."""
    scale = scale_for(unit, [value])
    return f"{scale.text(value)}{scale.suffix}"


def value_text(estimate: Estimate, unit: str = "1", *, signed: bool = False) -> str:
    """Return the value with its unit and interval: ``12.3 % [11.9, 12.8]``."""
    ends = [] if estimate.interval is None else [estimate.interval.low, estimate.interval.high]
    scale = scale_for(unit, [estimate.value, *ends])
    text = f"{scale.text(estimate.value, signed=signed)}{scale.suffix}"
    if not ends:
        return text
    low, high = (scale.text(end, signed=signed) for end in ends)
    return f"{text} [{low}, {high}]"


def difference_text(difference: Estimate, unit: str, words: tuple[str, str]) -> str:
    """Return a difference in words: ``7.71 h longer (95 % interval 4.86 to 15.5 h)``.

    Parameters
    ----------
    difference : Estimate
        With a value.
    unit : str
        Its unit.
    words : tuple of str
        What a positive and a negative difference are called.
    """
    value, interval = difference.value, difference.interval
    word = words[0] if value > 0 else words[1]
    if interval is None:
        return f"{scaled(abs(value), unit)} {word}"
    scale = scale_for(unit, [value, interval.low, interval.high])
    sign = -1.0 if value < 0 else 1.0
    ends = sorted((sign * interval.low, sign * interval.high))
    low, high = map(scale.text, ends)
    return f"{scale.text(abs(value))}{scale.suffix} {word} (95 % interval {low} to {high}{scale.suffix})"


def against(evaluation: Evaluation) -> str:
    """Return what the marks of a table mean; nothing where there is nobody to compare with."""
    if len(evaluation.policies) == 1:
        return ""
    return f" Marks: against {evaluation.baseline}, paired by case."


def listed(phrase: str, policies: Sequence[str]) -> str:
    """Return a sentence that begins with a blank, ``PHRASE: A and B.``; empty without policies."""
    return f" {phrase}: {enumerated(policies)}." if policies else ""


def marked_in_words(
    policies: Sequence[str],
    mark: Callable[[int], str],
    phrases: Mapping[str, str],
    named: Callable[[str], str] = str,
) -> str:
    """Return which policies have which verdict, in sentences that begin with a blank.

    Parameters
    ----------
    policies : sequence of str
        The first is the baseline.
    mark : callable
        From the place of a policy to its verdict.
    phrases : mapping of str to str
        Verdict -> what the sentence begins with; in this order.
    named : callable
        From a policy to its name in the sentence, with a number perhaps.
    """
    marked = policies_by_mark(policies, mark)
    return "".join(listed(phrase, list(map(named, marked.get(word, [])))) for word, phrase in phrases.items())


def differences_in_words(
    own: LogView,
    values: FloatArray,
    what: tuple[str, str],
    words: tuple[str, str],
    *,
    lower_is_better: bool = True,
) -> str:
    """Return how each policy differs from the baseline in one number, in sentences that begin with a blank.

    Parameters
    ----------
    own : LogView
        The log.
    values : float64 array (cases, policies)
        The number.
    what : tuple of str
        What it is called, and its unit.
    words : tuple of str
        What a positive and a negative difference are called.
    lower_is_better : bool
        Which way is good.
    """
    name, unit = what
    differs, same, policies = [], [], own.policies
    differences = median_differences(values)
    marks = marks_of(differences, values, own.drawn, lower_is_better=lower_is_better)
    for policy, difference, mark in list(zip(policies, differences, marks, strict=True))[1:]:
        if mark == "no difference" or difference.value == 0:
            same.append(policy)
        elif np.isfinite(difference.value):
            differs.append(f"{policy} {difference_text(difference, unit, words)}")
    text = f" {name[0].upper()}{name[1:]}, against {policies[0]}: {'; '.join(differs)}." if differs else ""
    if same:
        under = "any policy" if len(same) == len(policies) - 1 > 1 else enumerated(same)
        text += f" No difference in {name} under {under}."
    return text
