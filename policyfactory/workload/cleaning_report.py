"""What a cleaning did to a log: every job dropped or changed is counted, with the reason and an example."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

from policyfactory.core.units import format_duration
from policyfactory.workload.header import printable

__all__ = ["NOT_CLEANED", "CleaningReport", "CleaningStep"]


@dataclasses.dataclass(frozen=True, slots=True)
class CleaningStep:
    """One thing that was done, or noticed and left.

    Parameters
    ----------
    action : str
        ``"dropped"``, ``"changed"`` or ``"kept"`` (noticed, nothing done).
    jobs : int
        How many jobs.
    what : str
        What they have, and what was done.
    why : str
        Why that is right, or why it matters.
    first_job : int
        Number of the first of them in the file.
    first_line : int
        Its line in the file.
    """

    action: str
    jobs: int
    what: str
    why: str
    first_job: int
    first_line: int


@dataclasses.dataclass(frozen=True, slots=True)
class CleaningReport:
    """The account of a cleaning.

    Parameters
    ----------
    source : str
        The file.
    sha256 : str
        Its digest.
    preset : str
        The filter.
    description : str
        What the filter does.
    estimate_missing : str
        What was asked for where no time is requested.
    machine : int
        Processors of the machine.
    machine_source : str
        Where that number is from.
    read, kept : int
        Lines with jobs in the file, and jobs kept.
    steps : tuple of CleaningStep
        What was done, in order.
    shift : int
        Seconds on the log's clock at which the first kept job was submitted: the new 0.
    """

    source: str
    sha256: str
    preset: str
    description: str
    estimate_missing: str
    machine: int
    machine_source: str
    read: int
    kept: int
    steps: tuple[CleaningStep, ...]
    shift: int

    @property
    def dropped(self) -> int:
        """Jobs in the file that are not kept."""
        return self.read - self.kept

    @property
    def warning(self) -> str:
        """That most jobs were dropped, and for what; empty if they were not."""
        if 2 * self.dropped <= self.read:
            return ""
        most = max((step for step in self.steps if step.action == "dropped"), key=lambda step: step.jobs, default=None)
        why = "" if most is None else f", {most.jobs:,} of them for: {most.what}"
        return f"most jobs of {printable(self.source, 300)} were dropped, {self.dropped:,} of {self.read:,}{why}"

    def warn(self) -> None:
        """Give `warning`, if there is one, as a warning: on the terminal it is said before what follows."""
        if self.warning:
            warnings.warn(self.warning, stacklevel=2)

    @property
    def _first(self) -> str:
        return f"{self.warning}. " if self.warning else ""

    def counts(self, action: str) -> int:
        """Return the sum of the jobs of all steps with ``action``."""
        return sum(step.jobs for step in self.steps if step.action == action)

    def summary(self) -> str:
        """Return the report in one sentence."""
        if not self.source:
            return "these jobs were not read from a log: nothing was dropped or changed"
        share = 100 * self.kept / self.read if self.read else 0.0
        reasons = [f"{step.what}: {step.jobs:,}" for step in self.steps if step.action == "dropped"]
        dropped = f"; dropped: {', '.join(reasons)}" if reasons else ""
        return (
            f"{self._first}{printable(self.source, 300)}: {self.kept:,} of {self.read:,} jobs kept ({share:.2f} %, "
            f"preset {self.preset}, {self.machine:,} processors){dropped}"
        )

    def rows(self) -> list[list[str]]:
        """Return the steps as cells of a table: action, what, why, first, jobs, percent."""
        return [
            [
                step.action,
                step.what,
                step.why,
                f"job {step.first_job} (line {step.first_line})",
                f"{step.jobs:,}",
                f"{100 * step.jobs / max(self.read, 1):.2f}",
            ]
            for step in self.steps
        ]

    def totals(self) -> str:
        """Return the totals and the time base in words."""
        return (
            f"{self._first}{self.read:,} jobs read, {self.dropped:,} dropped, {self.kept:,} kept; machine of "
            f"{self.machine:,} processors ({self.machine_source}); times count from the first job kept, "
            f"{self.shift:,} s ({format_duration(self.shift)}) after the file's 0"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            **dataclasses.asdict(self),
            "dropped": self.dropped,
            "steps": [dataclasses.asdict(s) for s in self.steps],
        }


# Of jobs that come from a model or a table.
NOT_CLEANED = CleaningReport("", "", "none", "", "error", 0, "", 0, 0, (), 0)
