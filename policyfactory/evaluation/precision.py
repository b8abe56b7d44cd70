"""Adding resampled logs until the intervals are as narrow as was asked for, and saying where that cannot be.

What is looked at: on each log, for each policy but the baseline, half the width of the 95 % interval of its difference
from the baseline in the first metric, of drawn logs that of their mean, relative to the size of the baseline's value
(`half_widths`; for the statistic ratio the half-width itself). The target is reached on a log when the largest of these
is no larger than it. Then nothing is added to that log; the others go on.

Widths shrink like 1 / sqrt(n), so n (width / target)^2 resampled logs are needed; a batch goes there, but to no more
than twice what there is: from few cases the width itself is only roughly known.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from policyfactory.core.errors import UsageError
from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.options import DEFAULT_MAX_RESAMPLES, PrecisionOptions
from policyfactory.evaluation.protocol_content import ProtocolContent
from policyfactory.statistics.compare import half_widths
from policyfactory.statistics.evaluation import Evaluation

_LEAST_BATCH = 4
_MARGIN = 1.05  # a batch goes a little further than predicted: else half of the predictions would fall short
_CURE = "; resample the log (--resamples), or cut it into more windows"


@dataclasses.dataclass(frozen=True, slots=True)
class Precision:
    """How narrow the intervals shall be.

    Parameters
    ----------
    target : float
        Largest half-width as a share of the baseline's value, for example 0.02.
    most : int
        Most resampled logs of a log.

    Raises
    ------
    UsageError
        If the target is not between 0 and 1, or the most are none.
    """

    target: float
    most: int = DEFAULT_MAX_RESAMPLES

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise UsageError(f"precision {self.target:g} is not between 0 and 1; write for example 2%")
        if self.most < 1:
            raise UsageError(f"{self.most} resampled logs at most; give at least 1")

    @classmethod
    def of(cls, options: Mapping[str, Any], by: Literal["command", "call"]) -> Precision | None:
        """Return the precision that the options ``precision`` and ``max_resamples`` ask for, if they do.

        Raises
        ------
        UsageError
            If the precision is no share, or the number out of range.
        """
        given = {name: value for name, value in options.items() if value is not None}
        table = ProtocolContent(PrecisionOptions, given, by=by).checked()
        if table.precision is None and table.max_resamples != DEFAULT_MAX_RESAMPLES:
            named = "--max-resamples" if by == "command" else "max_resamples"
            raise UsageError(f"{named} {table.max_resamples}: bounds how many logs a precision draws; give a precision")
        return None if table.precision is None else cls(table.precision, table.max_resamples)


def widest(experiment: Experiment, evaluation: Evaluation) -> dict[str, tuple[float, str]]:
    """Return for each log the largest relative half-width and the policy whose it is; nothing for a single policy."""
    widths: dict[str, tuple[float, str]] = {}
    for log, policy, width in half_widths(evaluation, statistic=experiment.statistic, seed=experiment.seed):
        if width > widths.get(log, (-1.0, ""))[0]:
            widths[log] = (width, policy)
    return widths


def needed(cases: float, width: float, target: float) -> int | None:
    """Return about how many cases give half-widths of ``target``, if ``cases`` give ``width``; None if unknown."""
    return math.ceil(cases * (width / target) ** 2) if math.isfinite(width) else None


def next_batch(
    experiment: Experiment, widths: Mapping[str, tuple[float, str]], counts: Mapping[str, int], precision: Precision
) -> dict[str, range]:
    """Return the numbers of the resampled logs that each log gets next; empty when all is reached or cannot be.

    Parameters
    ----------
    experiment : Experiment
        Its ``more`` says which logs can be drawn from.
    widths : mapping
        Of `widest`.
    counts : mapping of str to int
        The highest number so far of each log.
    precision : Precision
        What is asked for.
    """
    batch = {}
    for log, (width, _) in widths.items():
        have = counts.get(log, precision.most)
        if log not in experiment.more or width <= precision.target or have >= precision.most:
            continue
        want = needed(have, width, precision.target)
        goal = 2 * have if want is None else min(math.ceil(_MARGIN * want), 2 * have)
        batch[log] = range(have + 1, min(max(goal, have + _LEAST_BATCH), precision.most) + 1)
    return batch


def in_words(experiment: Experiment, evaluation: Evaluation, precision: Precision) -> tuple[str, ...]:
    """Return a sentence a log: whether the target is reached, and if not, why and what it would take."""
    widths = widest(experiment, evaluation)
    return tuple(
        _sentence(log, len(evaluation.rows(log)), *widths[log], experiment.more.get(log), precision)
        for log in evaluation.logs
        if log in widths
    )


def _sentence(
    log: str, cases: int, width: float, policy: str, more: Callable[[int], object] | None, precision: Precision
) -> str:
    target = f"{100 * precision.target:g} %"
    if width <= precision.target:
        what = "all intervals" if more is None else "the mean over them"
        return f"{log}: {cases} cases give {what} a half-width of at most {target} (the widest: {policy})."
    if math.isinf(width):
        return (
            f"{log}: {cases} {'case has' if cases == 1 else 'cases have'} no interval relative to the baseline, so "
            f"{target} cannot be reached{'' if more else _CURE}."
        )
    want = needed(cases, width, precision.target)
    what = "interval" if more is None else "mean over the draws"
    reached = f"{log}: the {what} of {policy} has a half-width of {100 * width:.2g} %, not {target}"
    if more is None:
        return f"{reached}; about {want:,} cases like these {cases} would be needed, and the log has no more{_CURE}."
    allowed = f"with the {cases:,} resampled logs that were allowed"
    return f"{reached}, {allowed}; about {want:,} would be needed (--max-resamples)."
