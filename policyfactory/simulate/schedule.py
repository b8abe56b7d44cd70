"""A schedule: when each job of a workload ran, under which rules."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.picture import keeps_settings
from policyfactory.core.present import facts_html, facts_text
from policyfactory.core.text import number_text
from policyfactory.core.units import MINUTE, format_duration
from policyfactory.simulate.metrics import METRICS, job_values, measure
from policyfactory.simulate.rules import Rules
from policyfactory.workload.jobs import Workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Carried", "Schedule"]

_SUMMARY = ("mean_wait", "max_wait", "mean_bsld", "median_bsld", "p95_bsld", "utilisation", "makespan", "backfilled")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """Jobs of a lead-in that take processors from those that are measured.

    Parameters
    ----------
    start, end : int64 array (n,), ticks
        When they run, from the first measured submission on.
    processors : int64 array (n,)
        What they take.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    processors: NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schedule:
    """When each job of a workload ran.

    Parameters
    ----------
    start, end : int64 array (n,)
        Start and end of each job on the workload's clock, in its ticks, in the order of the workload's rows.
    backfilled : bool array (n,)
        Whether the job was started while a job ahead of it in the queue stayed waiting.
    workload : Workload
        The jobs.
    policy_name : str
        The policy that ordered the queue.
    rules : Rules
        The rules it ran under, with the threshold that held (the policy's own where the rules had none).
    carried : Carried or None
        What was still running of a lead-in.
    left_out : str
        Which jobs of the log the workload has no more, since their partition is not one of the site; empty if none.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    backfilled: NDArray[np.bool_]
    workload: Workload
    policy_name: str
    rules: Rules
    carried: Carried | None = dataclasses.field(default=None, kw_only=True)
    left_out: str = dataclasses.field(default="", kw_only=True)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def wait(self) -> NDArray[np.float64]:
        """Seconds that each job waited."""
        return job_values(self, "wait")

    @property
    def bounded_slowdown(self) -> NDArray[np.float64]:
        """Bounded slowdown of each job."""
        return job_values(self, "bsld")

    def after(self, lead_in: int) -> Schedule:
        """Return the schedule without its first jobs, times counted from the first submission that is left.

        Parameters
        ----------
        lead_in : int
            How many, fewer than there are. Those that run on after them are `carried`.
        """
        if not lead_in:
            return self
        rows, zero = slice(lead_in, None), int(self.workload.submit[lead_in])
        start, end = self.start - zero, self.end - zero
        runs_on = np.flatnonzero(end[:lead_in] > 0)
        processors = self.workload.processors[runs_on]
        return dataclasses.replace(
            self,
            start=start[rows],
            end=end[rows],
            backfilled=self.backfilled[rows],
            workload=self.workload.select(rows, rebase=True),
            carried=Carried(np.maximum(start[runs_on], 0), end[runs_on], processors),
        )

    def frame(self) -> pd.DataFrame:
        """Return one row a job: the workload's columns, start and end in seconds, wait, slowdown, backfilled."""
        frame = self.workload.frame()
        ticks = self.workload.ticks
        start, end = (column if ticks == 1 else column / ticks for column in (self.start, self.end))
        return frame.assign(
            start=start, end=end, wait=self.wait, bounded_slowdown=self.bounded_slowdown, backfilled=self.backfilled
        )

    def summary(self) -> str:
        """Return the main metrics as text."""
        return facts_text(repr(self)[1:-1], self._facts())

    @keeps_settings
    def plot(self, start: str = "0s", length: str = "2d") -> Figure:
        """Return a Gantt chart of a stretch: processors over time, a colour for each of the largest users.

        Parameters
        ----------
        start : str
            When it begins, after the first submission: ``"30d"``.
        length : str
            How long it is.
        """
        from policyfactory.simulate.gantt import draw_schedule

        return draw_schedule(self, start, length)

    def _facts(self) -> dict[str, str]:
        values = measure(self, _SUMMARY) if len(self) else {}
        facts = {name: _shown(value, METRICS[name].unit) for name, value in values.items()}
        return facts | ({"left out": self.left_out} if self.left_out else {})

    def __repr__(self) -> str:
        return f"<Schedule of {self.workload.name} under {self.policy_name}: {len(self):,} jobs>"

    def _repr_html_(self) -> str:
        return facts_html(repr(self)[1:-1], self._facts())


def _shown(value: float, unit: str) -> str:
    if unit == "s" and math.isfinite(value):
        seconds = f"{value:,.6g} s" if value < 1e5 else f"{value:,.0f} s"
        return seconds if value < MINUTE else f"{format_duration(value)} ({seconds})"
    return f"{number_text(value)} {unit}".removesuffix(" 1")
