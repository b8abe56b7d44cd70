"""What an import is asked for: which records become jobs, what their limits mean, what the new log says of itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from policyfactory.core.errors import UsageError
from policyfactory.core.options import check_values, option
from policyfactory.core.random import check_seed
from policyfactory.core.text import parse_duration
from policyfactory.workload.accounting.times import duration
from policyfactory.workload.header import printable

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
    unit: Literal["cpus", "nodes"] = option(
        "cpus",
        "what a job is measured in: cpus, or nodes where nodes are not shared",
        stated="cpus, or as a table's mapping says",
    )
    begin: int | None = None
    end: int | None = None
    requeued: Literal["last", "runs", "drop"] = option(
        "last", "jobs that ran several times: the last run counts (last), each run is a job (runs), or none (drop)"
    )
    keep_unstarted: bool = option(False, "keep jobs cancelled before they started, without a run time")
    unlimited: int | None = option(
        None,
        "requested time of jobs without a limit: 30d",
        metavar="TIME",
        parse=lambda text: parse_limit(text, "--unlimited"),
    )
    partition_limit: Mapping[str, int] = dataclasses.field(default_factory=dict)
    default_limit: Mapping[str, int] = dataclasses.field(default_factory=dict)
    defaults: Literal["keep", "unknown"] = option(
        "keep", "limits equal to their partition's default: keep, or unknown (-1)"
    )
    assumed: int | None = option(
        None,
        "requested time of jobs of which the log says none: 24h, or unknown (-1). A table without requested times "
        "needs it",
        name="assume_limit",
        metavar="TIME",
        parse=lambda text: None if text == "unknown" else parse_limit(text, "--assume-limit"),
    )

    def __post_init__(self) -> None:
        if self.defaults == "unknown" and not self.default_limit:
            raise UsageError(
                "--defaults unknown: no default is known; give those of partitions, --default-limit batch=1h"
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Labels:
    """What the header says that is not in the log.

    Parameters
    ----------
    computer, installation : str
        The machine and the site; empty: unknown.
    nodes : int or None
        Nodes of the machine.
    command : str
        The command that imports.
    anonymous : bool
        Leave out every name, and number them in a random order.
    seed : int
        Seed of that order.
    notes : tuple of str
        What else to say of the log.
    users : bool
        Write the names of users too; those of partitions, accounts and qualities of service are written anyway.

    Raises
    ------
    UsageError
        If a value is of a wrong type or out of range, or names are both left out and written.
    """

    computer: str = option("", "what the machine is, for the header")
    installation: str = option("", "where it stands, for the header")
    nodes: int | None = option(None, "nodes of the machine, for the header", limits=(1, None))
    command: str = "import_logs"
    anonymous: bool = option(False, "number users, groups and partitions at random, write no names", name="anonymize")
    seed: int = option(1, "seed of the random order of --anonymize")
    notes: tuple[str, ...] = ()
    users: bool = option(False, "write the users' names into the log's header (sacct: ask for User)", name="user_names")

    def __post_init__(self) -> None:
        check_values(self)
        check_seed(self.seed)
        if self.anonymous and self.users:
            raise UsageError("--anonymize writes no names, and --user-names writes them; give one of the two")
        if self.seed != 1 and not self.anonymous:
            raise UsageError(f"--seed {self.seed} is of the order of --anonymize; add that, or leave it out")
