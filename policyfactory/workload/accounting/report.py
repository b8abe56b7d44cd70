"""What an import did: every record is a job of the new log, or is counted with the rule that took it away."""

from __future__ import annotations

import dataclasses
from typing import Any

from policyfactory.core.units import format_duration
from policyfactory.workload.accounting.passed import Passed
from policyfactory.workload.header import printable

__all__ = ["ImportReport", "ImportStep", "PartitionLimits", "Tally"]

# Above this share one limit of a partition looks like a default that nobody asked for.
SUSPECT_SHARE = 0.3
_FEWEST_JOBS = 10


@dataclasses.dataclass(frozen=True, slots=True)
class ImportStep:
    """One rule and what it met.

    Parameters
    ----------
    action : str
        ``"skipped"`` (lines that are no records of their own), ``"dropped"``, ``"merged"`` (became one with another
        record), ``"changed"`` or ``"kept"`` (noticed, nothing done).
    count : int
        How many records, or lines.
    what : str
        What they have, and what was done.
    why : str
        Why that is right, or why it matters.
    first_job : str
        Id of the first of them.
    place : str
        Its file and line.
    """

    action: str
    count: int
    what: str
    why: str
    first_job: str
    place: str

    @property
    def first(self) -> str:
        """The first of them in words, without the file's folder."""
        return f"job {self.first_job or '?'} ({self.place.rpartition('/')[2]})"


class Tally:
    """Counts while an import goes on; steps stay in the order in which they were met first."""

    def __init__(self) -> None:
        self._steps: dict[tuple[str, str], list[Any]] = {}

    def add(self, action: str, what: str, why: str, count: int, job: str, place: str) -> None:
        """Count ``count`` more; nothing happens if it is 0."""
        if count:
            self._steps.setdefault((action, what), [0, why, job, place])[0] += count

    def passed(self, item: Passed, path: str) -> None:
        """Count what a reader passed over."""
        step = self._steps.get((item.action, item.what))
        if step is not None:
            step[0] += item.count
        else:
            self.add(item.action, item.what, item.why, item.count, item.job, f"{printable(path, 200)}:{item.line}")

    def steps(self) -> tuple[ImportStep, ...]:
        """Return the steps, those that took something away first."""
        order = ("skipped", "dropped", "merged", "changed", "kept")
        made = [
            ImportStep(action, count, what, why, printable(job, 40), place)
            for (action, what), (count, why, job, place) in self._steps.items()
        ]
        return tuple(sorted(made, key=lambda step: order.index(step.action)))


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionLimits:
    """What the jobs of one partition request.

    Parameters
    ----------
    partition : str
        Its name.
    jobs : int
        Jobs in it.
    limited : int
        Of these, jobs with a number as limit.
    asked : int
        Of these, jobs whose submit line shows that the limit was asked for.
    commonest : int or None
        The most frequent limit that the log does not show to be asked for, s.
    share : float
        Its share of all limits of the partition.
    default : int or None
        The default that was told, s.
    """

    partition: str
    jobs: int
    limited: int
    asked: int
    commonest: int | None
    share: float
    default: int | None

    def question(self) -> str | None:
        """Return the question that the numbers ask, or None."""
        if self.default is not None or self.commonest is None:
            return None
        if self.share <= SUSPECT_SHARE or self.limited < _FEWEST_JOBS:
            return None
        name = printable(self.partition, 60) or "(none)"
        return (
            f"partition {name}: {100 * self.share:.0f} % of the limits are {format_duration(self.commonest)}; is that "
            f"the partition's default, which nobody asked for (scontrol show partition: DefaultTime, or MaxTime)? Then "
            f"say --default-limit {name}={self.commonest}s, and --defaults unknown if it should not count as a request"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class ImportReport:
    """The account of an import.

    Parameters
    ----------
    inputs : tuple of (str, str, str)
        Name, format and SHA-256 of each input.
    time_zone : str
        Zone of times without one, and of dates.
    time_zone_source : str
        Where the zone is from.
    unit : str
        What fields 5 and 8 count: ``"cpus"`` or ``"nodes"``.
    machine : int
        Processors (or nodes) of the machine.
    machine_source : str
        Where that number is from.
    records : int
        Records read; the waiting rest of an array counts with its tasks.
    jobs : int
        Jobs in the new log.
    begins, ends : int
        Unix time of the first submission and of the last end.
    steps : tuple of ImportStep
        What the rules did.
    partitions : tuple of PartitionLimits
        The limits of each partition.
    """

    inputs: tuple[tuple[str, str, str], ...]
    time_zone: str
    time_zone_source: str
    unit: str
    machine: int
    machine_source: str
    records: int
    jobs: int
    begins: int
    ends: int
    steps: tuple[ImportStep, ...]
    partitions: tuple[PartitionLimits, ...]

    def count(self, action: str) -> int:
        """Return the sum over all steps with ``action``."""
        return sum(step.count for step in self.steps if step.action == action)

    def rows(self) -> list[list[str]]:
        """Return the steps as cells of a table: action, what, why, first, count."""
        return [[step.action, step.what, step.why, step.first, f"{step.count:,}"] for step in self.steps]

    def partition_rows(self) -> list[list[str]]:
        """Return the partitions as cells of a table: name, jobs, with a limit, asked, commonest limit, its share."""
        return [
            [
                printable(one.partition, 60) or "(none)",
                f"{one.jobs:,}",
                f"{one.limited:,}",
                f"{one.asked:,}",
                "-" if one.commonest is None else format_duration(one.commonest),
                f"{100 * one.share:.1f}",
                "-" if one.default is None else format_duration(one.default),
            ]
            for one in self.partitions
        ]

    def questions(self) -> list[str]:
        """Return what only the site can answer."""
        return [question for one in self.partitions if (question := one.question()) is not None]

    def totals(self) -> str:
        """Return the totals in words."""
        files = "1 file" if len(self.inputs) == 1 else f"{len(self.inputs)} files"
        names = {"cpus": "processors", "nodes": "nodes"}
        records = "1 record" if self.records == 1 else f"{self.records:,} records"
        jobs = "1 job" if self.jobs == 1 else f"{self.jobs:,} jobs"
        return (
            f"{records} of {files}: {jobs}, {self.count('dropped'):,} dropped, "
            f"{self.count('merged'):,} merged; machine of {self.machine:,} {names[self.unit]} ({self.machine_source}); "
            f"{format_duration(self.ends - self.begins)} from the first submission to the last end; times in "
            f"{self.time_zone} ({self.time_zone_source})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "schema_version": 1,
            **dataclasses.asdict(self),
            "inputs": [dict(zip(("name", "format", "sha256"), one, strict=True)) for one in self.inputs],
            "dropped": self.count("dropped"),
            "merged": self.count("merged"),
            "questions": self.questions(),
        }
