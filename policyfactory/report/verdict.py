"""The verdict of a report: a light, by one rule, why, and what the numbers rest on; and single results in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from policyfactory.report.sections import scaled, with_ends

if TYPE_CHECKING:
    from policyfactory.statistics.compare import Comparison
    from policyfactory.statistics.summary import Summary

Light = Literal["better", "cannot tell", "worse", "unsound"]

NOBODY = 0.01  # share of the jobs: fewer that wait cannot show which order is better
TOO_FAR = 2.0  # times as bad as the replay of the baseline: the record waits for what is not simulated

UNTRUSTED = "Not to be trusted here"  # the heading where the site's simulation is far from its record

# What each light is called where it stands alone.
LIGHTS: dict[Light, str] = {
    "better": "Shown to be better",
    "cannot tell": "Cannot tell",
    "worse": "Worse: do not use it",
    "unsound": "Unsound: no conclusion",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What one source of a comparison says about a policy: weeks, replicas, the replay on a site.

    Parameters
    ----------
    word : str
        ``better`` or ``worse``, by an interval at a known error rate; ``unsound``: no simulation means anything here.
        Any other word, or none, shows nothing: as where the source is missing.
    needed : bool
        Whether no policy is better without it. A source whose interval does not hold how weeks vary is not, since it
        cannot speak of other weeks: it can only contradict, or show it to be worse.
    """

    word: str
    needed: bool = True


def judge(*comparisons: Sequence[Finding]) -> Light:
    """Return the light of all comparisons of a policy together: of learn, evaluate, train, judge, review and shadow.

    A comparison (with the simulated baseline, with the record) is worse if one of its sources shows it and none shows
    the policy to be better; better if all of its sources that are needed show it, and there is one, and none shows it
    to be worse. Contradictions and all else cannot be told. Together they are unsound if one source is; worse if one
    comparison is: what is worse than what a site has is not made up for by being better than another order; better if
    all are.

    Parameters
    ----------
    *comparisons : sequence of Finding
        One without a source does not count.

    Examples
    --------
    >>> judge([Finding("better"), Finding("worse")]), judge([Finding("better")], [Finding("worse")])
    ('cannot tell', 'worse')
    """
    lights = [_light(sources) for sources in comparisons if sources]
    if "unsound" in lights:
        return "unsound"
    if "worse" in lights:
        return "worse"
    return "better" if {*lights} == {"better"} else "cannot tell"


def _light(sources: Sequence[Finding]) -> Light:
    """Return the light of one comparison."""
    words = {source.word for source in sources}
    if "unsound" in words:
        return "unsound"
    if "worse" in words:
        return "cannot tell" if "better" in words else "worse"
    return "better" if {source.word for source in sources if source.needed} == {"better"} else "cannot tell"


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What the numbers say, for who has to decide about a queue.

    Parameters
    ----------
    light : {"better", "cannot tell", "worse", "unsound"}
        ``better``: than what the site has now, and than first come, first served. ``unsound``: the simulation is too
        far from the record, or the jobs are changed too much, to judge by it.
    sentences : tuple of str
        Why, the most important first.
    caveats : tuple of str
        What the numbers rest on: dropped jobs, invented requests, load, time.
    heading : str
        What it is called, where the name of its light (`LIGHTS`) would not say it.
    site : Verdict or None
        Where this one is about the policies in simulation: what that says about the site, by its record.
    """

    light: Light
    sentences: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    heading: str = ""
    site: Verdict | None = None

    @property
    def title(self) -> str:
        """The heading, or else the name of the light."""
        return self.heading or LIGHTS[self.light]

    @property
    def trusted(self) -> bool:
        """Whether no part says that what is simulated is not to be trusted: such numbers have no colours."""
        return not any(part.title.lower().endswith(UNTRUSTED.lower()) for part in self.parts)

    @property
    def parts(self) -> tuple[Verdict, ...]:
        """It, and what is said about the site."""
        return (self,) if self.site is None else (self, self.site)


def difference_in_words(row: Comparison, shown: str = "", case: str = "case") -> str:
    """Return a difference with its interval, in brackets, behind a blank; nothing of no case.

    Parameters
    ----------
    row : Comparison
        The difference.
    shown : str
        The unit in which seconds are shown, where it is decided already.
    case : str
        What a case is called, if it is not a week.
    """
    if not row.cases:
        return ""
    value, interval = with_ends(row.difference, row.interval, row.unit, shown, signed=True)
    typical = "median difference " if row.statistic == "median" else ""
    if not interval:
        return f" ({typical}{value}, no interval)"
    better = f"better in {row.wins} of {row.cases} {'week' if row.statistic == 'weeks' else case}s"
    return f" ({typical}{value}, 95 % interval {interval}; {better})"


def value_in_words(row: Summary) -> str:
    """Return a value with its unit."""
    return scaled(row.value, row.unit)
