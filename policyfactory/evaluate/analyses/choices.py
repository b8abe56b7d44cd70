"""Which policy each tuner chose, and when: the share of every policy among its periods.

Figures 7 and 8 of Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering
policies", IEEE TPDS 29(10), 2018: at each time the share of the cases in which a policy was in force.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.picture import new_figure
from policyfactory.core.text import DAY, HOUR, WEEK, counted, enumerated, format_duration, shortened
from policyfactory.evaluate.analyses.analysis import LogAnalysis, LogView, stem_by_log
from policyfactory.evaluate.picture import area_look
from policyfactory.report.sections import Column, Columns, Picture, Section, Table
from policyfactory.simulate.tuning.tuner import TunedSchedule, Tuner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["ArmShares", "Choices"]

_NAMED = 3  # policies that a sentence names
_PERIODS = {HOUR: "hour", DAY: "day", WEEK: "week"}


@dataclasses.dataclass(frozen=True, slots=True)
class Choices(LogAnalysis):
    """Shares of the policies that each tuner chose."""

    name: ClassVar[str] = "choices"

    def observe(self, case: Case, schedule: Schedule) -> NDArray[np.uint8] | None:
        """Return the choices; None of a policy."""
        return schedule.choices.astype(np.uint8) if isinstance(schedule, TunedSchedule) else None

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return what every tuner chose in words, a table and a picture a log."""
        title = "What the tuners chose"
        logs = self.by_log(evaluation, seen, LogView)
        each_log = [_shares_of(own) for own in logs]
        shares = [one for own in each_log for one in own]
        if not shares:
            return Section("choices", title, ("No tuner was evaluated: each policy was in force all the time.",))
        several = len(logs) > 1
        stems = stem_by_log("choices", [own.log for own in logs]).values()
        pictures = tuple(map(_picture, each_log, stems))
        paragraphs = tuple(_in_words(one, several=several) for one in shares)
        return Section("choices", title, paragraphs, (_course(shares, several), _all(shares, several)), pictures)


def _shares_of(own: LogView) -> list[ArmShares]:
    """Return what each tuner chose on one log."""
    results = []
    for at, tuner in enumerate(own.evaluation.contenders):
        if isinstance(tuner, Tuner):
            rows = [case[at].astype(np.int64) for case in own.kept]
            periods = max(map(len, rows))
            choices = np.array([np.pad(row, (0, periods - len(row)), constant_values=-1) for row in rows])
            results.append(
                ArmShares(own.log, tuner.name, tuple(arm.name for arm in tuner.arms), tuner.period_s, choices)
            )
    return results


# Words and tables. ----------------------------------------------------------------------------------------------------


def _in_words(one: ArmShares, *, several: bool) -> str:
    shares, late = one.shares(), one.shares(0.75, 1.0)
    top = int(np.argmax(late))
    steady = np.count_nonzero(shares) > 1
    end = f" In the last quarter of the time it was {one.arms[top]} in {_percent(late[top])}." if steady else ""
    where = f"{one.tuner} on {one.log}" if several else one.tuner
    return f"{where}: {_most(one, shares)}; {_percent(one.changes)} of them began with a change.{end}"


def _most(one: ArmShares, shares: FloatArray) -> str:
    """Return the policies with the largest shares: ``SPF in 83 % and SRF in 8 % of the periods, 2 other ...``."""
    order = [int(arm) for arm in np.argsort(-shares, kind="stable") if shares[arm] > 0]
    named = enumerated(f"{one.arms[arm]} in {_percent(shares[arm])}" for arm in order[:_NAMED])
    rest = len(order) - _NAMED
    others = f", {counted(rest, 'other policy', 'other policies')} in the rest" if rest > 0 else ""
    return f"{named} of the periods{others}"


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 1 or value == 0 else "under 1 %"


def _course(shares: Sequence[ArmShares], several: bool) -> Table:  # noqa: FBT001 (a column is there or not)
    """Return the policies that each tuner chose most, by quarters of the time."""
    quarters = {
        Column(f"{word} quarter", "", f"policies with the largest shares in the {word} quarter of the time, in %"): (
            lambda one, at=at: _largest(one, at / 4)
        )
        for at, word in enumerate(("first", "second", "third", "last"))
    }
    columns = {
        **_names(several),
        Column("period"): lambda one: _PERIODS.get(one.period_s) or format_duration(one.period_s),
        Column("changes", "%", "periods that began with a change of the policy"): lambda one: one.changes,
        **quarters,
    }
    title = "The policies that each tuner chose most, as time passes (% of the periods)"
    return Table.of("course", title, columns, zip(shares))


def _names(several: bool) -> Columns:  # noqa: FBT001 (as above)
    log = {Column("log"): lambda one: one.log} if several else {}
    return {**log, Column("tuner"): lambda one: one.tuner}


def _largest(one: ArmShares, first: float) -> str:
    shares = one.shares(first, first + 0.25)
    order = [int(arm) for arm in np.argsort(-shares, kind="stable")[:_NAMED] if shares[arm] > 0]
    return ", ".join(f"{one.arms[arm]} {shares[arm]:.0f}" for arm in order)


def _all(shares: Sequence[ArmShares], several: bool) -> Table:  # noqa: FBT001 (a column is there or not)
    """Return the share of each policy among all periods of each tuner."""
    arms = {
        Column(arm, "%"): lambda one, arm=arm: dict(zip(one.arms, one.shares().tolist(), strict=True)).get(arm)
        for arm in used_arms(shares)
    }
    title = "Share of each policy among all periods of each tuner"
    return Table.of(
        "shares", title, {**_names(several), **arms}, zip(shares), "Policies that no tuner chose are left out."
    )


def _picture(shares: Sequence[ArmShares], stem: str) -> Picture:
    cases = len(shares[0].choices)
    what = "of the cases" if cases > 1 else "of the time"
    return Picture(
        stem,
        f"{shares[0].log}: the policies that each tuner had in force, as time passes",
        functools.partial(draw_shares, shares),
        f"The height of a colour is the share {what} in which the policy was in force. Policies that were never chosen "
        "are left out.",
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ArmShares:
    """What one tuner chose on the cases of one log.

    Parameters
    ----------
    log, tuner : str
        Where, and who.
    arms : tuple of str
        The policies that it chose from.
    period_s : int
        Length of a period in seconds.
    choices : int64 array (cases, periods)
        Which of ``arms``; -1 where a case has ended.
    """

    log: str
    tuner: str
    arms: tuple[str, ...]
    period_s: int
    choices: Int64Array

    def shares(self, first: float = 0.0, last: float = 1.0) -> FloatArray:
        """Return the share of each arm in a part of the time, in %: float64 array (arms,).

        Parameters
        ----------
        first, last : float
            Where the part begins and ends, as parts of the whole; it has one period at least.
        """
        periods = self.choices.shape[1]
        begin = min(int(first * periods), periods - 1)
        return self._of(begin, max(begin + 1, round(last * periods)))

    def _of(self, begin: int, end: int) -> FloatArray:
        part = self.choices[:, begin:end]
        counts = np.bincount(part[part >= 0], minlength=len(self.arms))
        return np.asarray(100 * counts / max(1, counts.sum()), dtype=np.float64)

    def over_time(self, most: int) -> tuple[FloatArray, FloatArray]:
        """Return the edges of at most ``most`` bins in days (bins + 1,), and the shares in each (bins, arms), in %."""
        periods = self.choices.shape[1]
        edges = np.unique(np.linspace(0, periods, min(periods, most) + 1).astype(np.int64))
        rows = [self._of(begin, end) for begin, end in itertools.pairwise(edges.tolist())]
        return edges * self.period_s / DAY, np.array(rows)

    @property
    def changes(self) -> float:
        """How many of the periods begin with a change of the policy, in %."""
        both = (self.choices[:, 1:] >= 0) & (self.choices[:, :-1] >= 0)
        changed = both & (self.choices[:, 1:] != self.choices[:, :-1])
        return 100 * float(changed.sum()) / max(1, int(both.sum()))


_MOST_BINS = 52
_ABREAST = 2
_LONGEST, _LEGEND_WIDTH = 30, 84  # letters of a name, and of a line of the legend
_WEEKS_FROM = 60  # days from which time is counted in weeks


def used_arms(shares: Sequence[ArmShares]) -> list[str]:
    """Return the policies that some tuner chose, in the order of the tuners' lists.

    Parameters
    ----------
    shares : sequence of Shares
        Of one log or several.
    """
    names = list(dict.fromkeys(arm for one in shares for arm in one.arms))
    chosen = {one.arms[arm] for one in shares for arm in np.flatnonzero(one.shares() > 0)}
    return [name for name in names if name in chosen]


def draw_shares(shares: Sequence[ArmShares]) -> Figure:
    """Draw the shares of each tuner in a panel of its own, with one legend.

    Parameters
    ----------
    shares : sequence of Shares
        Of one log.

    Returns
    -------
    Figure
    """
    used = used_arms(shares)
    across = min(_ABREAST, len(shares))
    down = -(-len(shares) // across)
    lines = -(-len(used) // _legend_names(used)[1])
    figure = new_figure(7.0, (3.0 if across == 1 else 1.9) * down + 0.6 + 0.22 * lines)
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for axes in grid.ravel()[len(shares) :]:
        axes.set_axis_off()
    for at, (axes, one) in enumerate(zip(grid.ravel(), shares, strict=False)):
        unit = _shares_panel(axes, one, used)
        axes.tick_params(labelbottom=at >= len(shares) - across)
        if at >= len(shares) - across:
            axes.set_xlabel(f"time ({unit})")
    figure.supylabel("share (%)", fontsize=10)
    _legend(figure, used)
    return figure


def _shares_panel(axes: Any, one: ArmShares, used: Sequence[str]) -> str:
    days, rows = one.over_time(_MOST_BINS)
    unit, divisor = ("weeks", 7) if days[-1] >= _WEEKS_FROM else ("days", 1)
    bottom = np.zeros(len(rows))
    for place, name in enumerate(used):
        if name not in one.arms:
            continue
        top = bottom + rows[:, one.arms.index(name)]
        low, high = np.append(bottom, bottom[-1]), np.append(top, top[-1])
        axes.fill_between(days / divisor, low, high, step="post", **area_look(place))
        bottom = top
    axes.set_title(shortened(one.tuner, 40), loc="left", fontsize=9)
    axes.set_xlim(0, days[-1] / divisor)
    axes.set_ylim(0, 100)
    axes.grid(visible=False)
    return unit


def _legend_names(used: Sequence[str]) -> tuple[list[str], int]:
    """Return the names as they are written below the picture, and how many abreast."""
    names = [shortened(name, _LONGEST) for name in used]
    return names, max(1, min(6, len(used), _LEGEND_WIDTH // (max(map(len, names)) + 6)))


def _legend(figure: Figure, used: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    names, abreast = _legend_names(used)
    handles = [Patch(**area_look(place)) for place in range(len(used))]
    figure.legend(handles, names, loc="outside lower center", ncols=abreast, fontsize=9)
