"""What an import is asked for, and what a limit in an accounting log says about what the user asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.units import parse_duration
from policyfactory.workload.accounting.record import Limit
from policyfactory.workload.accounting.report import PartitionLimits
from policyfactory.workload.accounting.table import Column, RecordTable, Sieve
from policyfactory.workload.accounting.times import duration
from policyfactory.workload.header import printable

__all__ = ["ImportRules", "parse_limit", "parse_limits", "partition_limits", "settle_limits", "unrequested"]

# More than a hundred years are no limit.
_LONGEST = 1 << 32


def parse_limit(text: str, option: str) -> int:
    """Return the seconds of a limit: ``24h``, ``1d``, ``90m``, or as Slurm writes it, ``1-00:00:00``, ``24:00:00``.

    Raises
    ------
    UsageError
        If it is none; a number without a unit is none, since Slurm would mean minutes.
    """
    clean = text.strip()
    seconds: float | None
    if ":" in clean or "-" in clean:
        seconds = duration(clean) if clean.count(":") == 2 or "-" in clean else None
        if seconds is None:
            raise UsageError(f"{option} {printable(text, 60)!r} is no limit; write 24h, 90m, 24:00:00 or 1-00:00:00")
    else:
        try:
            seconds = parse_duration(clean, unit=True)
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from None
    if not 1 <= seconds < _LONGEST:
        raise UsageError(f"{option} {printable(text, 60)!r}: a limit is at least 1 s and at most 100 years")
    return int(seconds)


def parse_limits(texts: list[str], option: str) -> dict[str, int]:
    """Return the limits of ``PARTITION=TIME`` texts, in seconds.

    Raises
    ------
    UsageError
        If one is not of that form, or a partition comes twice.
    """
    limits: dict[str, int] = {}
    for text in texts:
        name, mark, value = text.rpartition("=")
        if not mark or not name:
            raise UsageError(f"{option} {printable(text, 60)!r}: write PARTITION=TIME, for example batch=24h")
        if name in limits:
            raise UsageError(f"{option}: partition {printable(name, 60)} comes twice; give its limit once")
        limits[name] = parse_limit(value, f"{option} {printable(name, 60)}")
    return limits


@dataclasses.dataclass(frozen=True, slots=True)
class ImportRules:
    """What was asked for.

    Parameters
    ----------
    partitions : tuple of str
        Partitions to keep; none at all: every partition.
    unit : str
        What a job is measured in: ``"cpus"`` or ``"nodes"``.
    begin, end : int or None
        Keep jobs submitted from ``begin`` on and before ``end``, Unix seconds.
    requeued : str
        ``"last"``, ``"runs"`` or ``"drop"``, see `runs.settle_runs`.
    keep_unstarted : bool
        Keep jobs that ended before they started.
    unlimited : int or None
        Requested time of a job without limit, s; None: unknown.
    partition_limit : mapping of str to int
        Requested time of jobs with their partition's limit, s, by partition.
    default_limit : mapping of str to int
        Default limit of each partition, s.
    defaults : str
        ``"keep"``: a limit that is its partition's default is a request; ``"unknown"``: it is none.
    assumed : int or None
        Requested time of jobs of which the log says none at all, s; None: unknown.
    """

    partitions: tuple[str, ...] = ()
    unit: str = "cpus"
    begin: int | None = None
    end: int | None = None
    requeued: str = "last"
    keep_unstarted: bool = False
    unlimited: int | None = None
    partition_limit: Mapping[str, int] = dataclasses.field(default_factory=dict)
    default_limit: Mapping[str, int] = dataclasses.field(default_factory=dict)
    defaults: str = "keep"
    assumed: int | None = None


def settle_limits(sieve: Sieve, rules: ImportRules) -> None:
    """Give a number to the limits that have none, where one was given, and take away what nobody asked for.

    Parameters
    ----------
    sieve : Sieve
        The column ``limit`` of its table is changed.
    rules : ImportRules
        What was asked for.

    Raises
    ------
    UsageError
        If a limit was given for a partition that the log does not have.
    """
    table, count, kind = sieve.table, sieve.count, sieve.table.limit_kind
    table.check_partitions(rules.partition_limit, "--partition-limit")
    table.check_partitions(rules.default_limit, "--default-limit")
    unlimited = kind == Limit.unlimited
    if rules.unlimited is None:
        why = "field 9 is -1; --unlimited TIME gives them a number"
        count("kept", unlimited, "jobs without a limit (UNLIMITED)", why)
    else:
        count("changed", unlimited, f"jobs without a limit (UNLIMITED): {rules.unlimited} s", "--unlimited")
        table.limit[unlimited & sieve.alive] = rules.unlimited
    limits = _by_partition(table, rules.partition_limit)
    of_partition = kind == Limit.partition
    known = of_partition & (limits >= 0)
    count("changed", known, "jobs with the limit of their partition, as given", "--partition-limit")
    table.limit[known] = limits[known]
    why = "field 9 is -1; --partition-limit PARTITION=TIME gives them a number"
    count("kept", of_partition & ~known, "jobs with the limit of their partition (Partition_Limit)", why)
    missing = kind == Limit.missing
    if rules.assumed is None:
        count("kept", missing, "jobs without a requested time in the log", "field 9 is -1")
    else:
        why = "--assume-limit; backfilling (EASY) on them is an assumption, and no user asked for this"
        count("changed", missing, f"jobs without a requested time in the log: {rules.assumed} s assumed", why)
        table.limit[missing & sieve.alive] = rules.assumed
    count("kept", kind == Limit.asked, "limits that the submit line shows to be asked for", "-t or --time")
    perhaps = (kind == Limit.given) & (table.limit >= 0) & (table.limit == _by_partition(table, rules.default_limit))
    what = "limits equal to their partition's default: asked for or not, the log does not say"
    if rules.defaults == "unknown":
        count("changed", perhaps, f"{what}; now unknown", "--defaults unknown")
        table.limit[perhaps] = -1
    else:
        count("kept", perhaps, what, "--defaults unknown makes them -1")


def _by_partition(table: RecordTable, limits: Mapping[str, int]) -> Column:
    """Return the limit given for each row's partition, -1 where none was."""
    names = table.names["partition"]
    return np.array([limits.get(name, -1) for name in names], dtype=np.int64)[table.partition]


def partition_limits(
    table: RecordTable, rows: Column, limit: Column, defaults: Mapping[str, int]
) -> tuple[PartitionLimits, ...]:
    """Return what the jobs of each partition request, largest partition first.

    Parameters
    ----------
    table : RecordTable
        The records.
    rows : int64 array (n,)
        The jobs.
    limit : int64 array (records,)
        Limits as the log has them, before a rule took any away.
    defaults : mapping of str to int
        Defaults that were given.
    """
    partitions = []
    for number, name in enumerate(table.names["partition"]):
        mine = rows[table.partition[rows] == number]
        if not len(mine):
            continue
        asked = table.limit_kind[mine] == Limit.asked
        limited = limit[mine] >= 0
        values, counts = np.unique(limit[mine][limited & ~asked], return_counts=True)
        most = int(np.argmax(counts)) if len(counts) else -1
        partitions.append(
            PartitionLimits(
                name,
                len(mine),
                int(limited.sum()),
                int((asked & limited).sum()),
                int(values[most]) if most >= 0 else None,
                float(counts[most] / limited.sum()) if most >= 0 else 0.0,
                defaults.get(name),
            )
        )
    return tuple(sorted(partitions, key=lambda one: (-one.jobs, one.partition)))


def unrequested(table: RecordTable, rows: Column, limit: Column) -> dict[str, int]:
    """Return how many jobs have no requested time, by what the log says of it.

    Parameters
    ----------
    table : RecordTable
        The records, after the rules.
    rows : int64 array (n,)
        The jobs.
    limit : int64 array (records,)
        Limits as the log has them, before a rule took any away.
    """
    rows = rows[table.limit[rows] < 0]
    known, kind = limit[rows] >= 0, table.limit_kind[rows]
    kinds = {
        "UNLIMITED": ~known & (kind == Limit.unlimited),
        "Partition_Limit": ~known & (kind == Limit.partition),
        "made unknown by --defaults unknown": known,
    }
    counts = {name: int(mask.sum()) for name, mask in kinds.items()}
    counts["without one in the log"] = len(rows) - sum(counts.values())
    return {name: count for name, count in counts.items() if count}
