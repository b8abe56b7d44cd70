"""The records of the replays in tests/data/replay: made anew, and measured.

In the folder tests, with PYTHONPATH=. :

    python -m schedulers.replays record FOLDER [CASE ...]     a minute or three of a real slurmctld each
    python -m schedulers.replays table                         the table of docs/fidelity.md
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from naive.forced import Forced, distance, forced
from naive.slurm_forced import starts_by, wanted_by
from policyfactory.site.model import Site
from schedulers.record import Record, read_record, write_record
from schedulers.replay import describe, replay
from schedulers.replay_cases import CASES
from support import ROOT

FOLDER = ROOT / "tests/data/replay"
RATE = 100
# Seconds from the end of a job until its nodes have others, on a clock that goes 100 times too fast.
TURNROUND = 2


def names() -> list[str]:
    """Return the cases of which there is a record."""
    return [name for name in CASES if (FOLDER / f"{name}.json.gz").exists()]


def record_of(name: str) -> Record:
    """Return the record of a case."""
    return read_record(FOLDER / f"{name}.json.gz")


def again(name: str) -> Record | None:
    """Return the second record of a case, if there is one."""
    path = FOLDER / f"{name}-again.json.gz"
    return read_record(path) if path.exists() else None


def looks(site: Site) -> list[float]:
    """Return when reservations of a site begin and end, in seconds from the origin."""
    return [moment for one in site.reservations for moment in (max(one.known, 0.0), one.start, one.end)]


def force(record: Record, site: Site) -> Forced:
    """Return which starts of a record the plain Slurm wanted."""
    return forced(record, wanted_by(site, record), looks(site))


def real_starts(record: Record) -> list[float]:
    """Return the starts of a record's jobs, in seconds from the origin."""
    return [past.start / 1000 for past in record.past]


@dataclasses.dataclass(frozen=True, slots=True)
class Schedules:
    """A simulated schedule beside the real one.

    Parameters
    ----------
    away : float
        Mean difference of the starts / mean wait.
    waits : float
        Mean wait / the real one.
    itself : float
        As ``away``, of Slurm's second replay from its first; NaN where there was none.
    """

    away: float
    waits: float
    itself: float = math.nan


def compare(record: Record, site: Site, turnround: int = TURNROUND) -> Schedules:
    """Return how far the plain Slurm's schedule of the same jobs is from the real one."""
    waits, second = record.waits(), again(record.case)
    mean = sum(waits) / len(waits)
    starts, real = starts_by(site, record, turnround), real_starts(record)
    simulated = sum(start - past.submit / 1000 for start, past in zip(starts, record.past, strict=True)) / len(starts)
    itself = distance(real_starts(second), real, mean) if second else math.nan
    return Schedules(distance(starts, real, mean), simulated / mean, itself)


def table() -> Iterator[str]:
    """Give the lines of the table of docs/fidelity.md."""
    yield "| case | starts | wanted | lag: mean | 90 % | longest | mean wait | simulated | away | Slurm from itself |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for name in names():
        record, site = record_of(name), CASES[name]().site
        both = [compare(one, site) for one in (record, again(name)) if one]
        result, schedules = force(record, site), both[0]
        waits = record.waits()
        cells = [
            name,
            f"{len(result.starts)}",
            f"{result.agreement:.1%}",
            f"{result.mean_lag:.0f} s",
            f"{result.lag(0.9):.0f} s",
            f"{result.lag(1.0):.0f} s",
            f"{sum(waits) / len(waits):.0f} s",
            f"{schedules.waits - 1:+.1%}",
            ", ".join(f"{one.away:.2f}" for one in both),
            "" if math.isnan(schedules.itself) else f"{schedules.itself:.2f}",
        ]
        yield f"| {' | '.join(cells)} |"


def main(words: list[str]) -> None:
    """Do what the command line says."""
    match words:
        case ["table"]:
            for line in table():
                print(line, flush=True)  # noqa: T201 this is a command
        case ["record", folder, *wanted]:
            for name in wanted or list(CASES):
                record = replay(CASES[name](), RATE)
                write_record(record, Path(folder) / f"{name}.json.gz")
                print(describe(record), flush=True)  # noqa: T201
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
