"""Which policy each tuner chose, and when: the share of every policy among its periods.

Figures 7 and 8 of Gaussier, Lelong, Reis and Trystram, "Online tuning of EASY-backfilling using queue reordering
policies", IEEE TPDS 29(10), 2018: at each time the share of the cases in which a policy was in force.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.base import Analysis
from policyfactory.analyses.choices_picture import draw_shares, used_arms
from policyfactory.analyses.common import chosen_logs, log_cells, log_columns, stem_by_log
from policyfactory.core.text import counted, enumerated
from policyfactory.core.units import DAY, HOUR, WEEK, format_duration
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.tuning.tuner import TunedSchedule, Tuner

if TYPE_CHECKING:
    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

from policyfactory.analyses.choices_shares import Shares

__all__ = ["Choices", "Shares"]

FloatArray = NDArray[np.float64]

_NAMED = 3  # policies that a sentence names
_PERIODS = {HOUR: "hour", DAY: "day", WEEK: "week"}


@dataclasses.dataclass(frozen=True, slots=True)
class Choices(Analysis):
    """Shares of the policies that each tuner chose.

    Parameters
    ----------
    log : str
        The log to look at; empty: each.
    """

    name: ClassVar[str] = "choices"

    log: str = ""

    def observe(self, case: Case, schedule: Schedule) -> NDArray[np.uint8] | None:
        """Return the choices; None of a policy."""
        return schedule.choices.astype(np.uint8) if isinstance(schedule, TunedSchedule) else None

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return what every tuner chose in words, a table and a picture a log."""
        logs = chosen_logs(evaluation, self.name, self.log)
        tuners = [at for at, one in enumerate(evaluation.contenders) if isinstance(one, Tuner)]
        if not tuners:
            none = "No tuner was evaluated: each policy was in force all the time."
            return Section("choices", "What the tuners chose", (none,))
        found = {log: [_gather(evaluation, log, at, seen) for at in tuners] for log in logs}
        pictures = [_picture(found[log], stem) for log, stem in stem_by_log("choices", logs).items()]
        told = [_in_words(one, several=len(logs) > 1) for log in logs for one in found[log]]
        return Section("choices", "What the tuners chose", tuple(told), _tables(found), tuple(pictures))


def _gather(evaluation: Evaluation, log: str, at: int, seen: list[list[Any]]) -> Shares:
    tuner = evaluation.contenders[at]
    assert isinstance(tuner, Tuner)  # noqa: S101 (for the type: conclude chose them)
    rows = [seen[row][at].astype(np.int64) for row in evaluation.rows(log).tolist()]
    periods = max(len(row) for row in rows)
    choices = np.array([np.pad(row, (0, periods - len(row)), constant_values=-1) for row in rows])
    return Shares(log, tuner.name, tuple(arm.name for arm in tuner.arms), tuner.period_s, choices)


# Words and tables. ----------------------------------------------------------------------------------------------------


def _in_words(one: Shares, *, several: bool) -> str:
    shares, late = one.shares(), one.shares(0.75, 1.0)
    top = int(np.argmax(late))
    steady = np.count_nonzero(shares) > 1
    end = f" In the last quarter of the time it was {one.arms[top]} in {_percent(late[top])}." if steady else ""
    where = f"{one.tuner} on {one.log}" if several else one.tuner
    return f"{where}: {_most(one, shares)}; {_percent(one.changes)} of them began with a change.{end}"


def _most(one: Shares, shares: FloatArray) -> str:
    """Return the policies with the largest shares: ``SPF in 83 % and SRF in 8 % of the periods, 2 other ...``."""
    order = [int(arm) for arm in np.argsort(-shares, kind="stable") if shares[arm] > 0]
    named = enumerated(f"{one.arms[arm]} in {_percent(shares[arm])}" for arm in order[:_NAMED])
    rest = len(order) - _NAMED
    others = f", {counted(rest, 'other policy', 'other policies')} in the rest" if rest > 0 else ""
    return f"{named} of the periods{others}"


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 1 or value == 0 else "under 1 %"


def _tables(found: dict[str, list[Shares]]) -> tuple[Table, Table]:
    return _course(found), _all(found)


def _course(found: dict[str, list[Shares]]) -> Table:
    """Return the policies that each tuner chose most, by quarters of the time."""
    logs = list(found)
    columns = (
        *log_columns(logs),
        Column("tuner"),
        Column("period"),
        Column("changes", "%", "periods that began with a change of the policy"),
        *(Column(f"{word} quarter", "", f"policies with the largest shares in the {word} quarter of the time, in %")
          for word in ("first", "second", "third", "last")),
    )  # fmt: skip
    rows = tuple(
        (
            *log_cells(logs, log),
            Cell(one.tuner),
            Cell(_PERIODS.get(one.period_s) or format_duration(one.period_s)),
            Cell(one.changes),
            *(Cell(_largest(one, part / 4)) for part in range(4)),
        )
        for log in logs
        for one in found[log]
    )
    return Table("course", "The policies that each tuner chose most, as time passes (% of the periods)", columns, rows)


def _largest(one: Shares, first: float) -> str:
    shares = one.shares(first, first + 0.25)
    order = [int(arm) for arm in np.argsort(-shares, kind="stable")[:_NAMED] if shares[arm] > 0]
    return ", ".join(f"{one.arms[arm]} {shares[arm]:.0f}" for arm in order)


def _all(found: dict[str, list[Shares]]) -> Table:
    """Return the share of each policy among all periods of each tuner."""
    logs = list(found)
    used = used_arms([one for log in logs for one in found[log]])
    rows = []
    for log in logs:
        for one in found[log]:
            shares = dict(zip(one.arms, one.shares().tolist(), strict=True))
            rows.append((*log_cells(logs, log), Cell(one.tuner), *(Cell(shares.get(arm)) for arm in used)))
    columns = (*log_columns(logs), Column("tuner"), *(Column(arm, "%") for arm in used))
    title = "Share of each policy among all periods of each tuner"
    return Table("shares", title, columns, tuple(rows), "Policies that no tuner chose are left out.")


def _picture(shares: Sequence[Shares], stem: str) -> Picture:
    cases = len(shares[0].choices)
    what = "of the cases" if cases > 1 else "of the time"
    return Picture(
        stem,
        f"{shares[0].log}: the policies that each tuner had in force, as time passes",
        functools.partial(draw_shares, shares),
        f"The height of a colour is the share {what} in which the policy was in force. Policies that were never chosen "
        "are left out.",
    )
