"""The records of the replays in tests/data/replay: made anew, and measured.

In the folder tests, with PYTHONPATH=. :

    python -m schedulers.replays record FOLDER [CASE ...]     a minute or three of a real slurmctld each
    python -m schedulers.replays table [FOLDER [CASE ...]]    a row of numbers for each case
    python -m schedulers.replays fidelity RELEASE TIMES [CASE ...]
        both, on the Slurm of a release of Debian: trixie (24.11) or sid (26.05), set up where it is not there

CASE is one of `ALL`, or drawn: drawn-1, drawn-2 and so on.
Of a case that has a record in the folder a further one is made: CASE-2. Replays of ``fidelity`` are kept in .night.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from naive.forced import Forced, distance, forced
from naive.slurm_forced import starts_by, wanted_by
from policyfactory.site.model import Site
from schedulers.record import Record, read_record, write_record
from schedulers.replay import Case, describe, replay
from schedulers.replay_cases import CASES
from schedulers.replay_drawn import drawn, seed_of
from schedulers.replay_mixed import MIXED
from schedulers.replay_preemption import CASES as PREEMPTION
from schedulers.replay_settings import SETTINGS

# Not from `support`: a modern Slurm's folder has this package and pytest, and not all that the tests have.
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/replay"
RATE = 100
# Where Slurms of other releases are (`.ci/modern-slurm`), and what they did.
NIGHT = Path(os.environ.get("POLICYFACTORY_SLURMS", ROOT / ".night"))
ALL = CASES | MIXED | SETTINGS | PREEMPTION


def case_of(name: str) -> Case:
    """Return a case by its name: one of `ALL`, or ``drawn-1`` and so on."""
    seed = seed_of(name)
    if seed is None and name not in ALL:
        sys.exit(f"there is no case {name}; there are {', '.join(ALL)}, and drawn-1, drawn-2 and so on")
    return ALL[name]() if seed is None else drawn(seed)


def names(folder: Path = FOLDER) -> list[str]:
    """Return the cases of which there is a record."""
    found = [name for name in ALL if (folder / f"{name}.json.gz").exists()]
    others = sorted(path.name.partition(".")[0] for path in folder.glob("drawn-*.json.gz"))
    return found + [name for name in others if seed_of(name) is not None]


def record_of(name: str, folder: Path = FOLDER) -> Record:
    """Return the record of a case."""
    return read_record(folder / f"{name}.json.gz")


def _files(name: str, folder: Path) -> Iterator[Path]:
    yield folder / f"{name}.json.gz"
    yield from (folder / f"{name}-{number}.json.gz" for number in itertools.count(2))


def records_of(name: str, folder: Path = FOLDER) -> list[Record]:
    """Return all records of a case: replays of the same jobs, one after the other."""
    return list(map(read_record, itertools.takewhile(Path.exists, _files(name, folder))))


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
    """The schedules that Slurm made of a case in several replays, and those that are simulated of the same jobs.

    Parameters
    ----------
    real, simulated : tuple of float
        Mean waits in seconds, of each replay.
    away : float
        Mean difference of the starts, simulated and real, / the mean wait; mean of the replays.
    itself : float
        The same of two replays; mean of the pairs, NaN where there is one replay only.
    """

    real: tuple[float, ...]
    simulated: tuple[float, ...]
    away: float
    itself: float

    @property
    def difference(self) -> float:
        """How much longer jobs wait in the simulation, as a share of what they really wait."""
        return statistics.fmean(self.simulated) / statistics.fmean(self.real) - 1

    @property
    def within(self) -> bool:
        """Whether the mean of the simulated waits is not beyond all that Slurm itself came to."""
        return min(self.real) <= statistics.fmean(self.simulated) <= max(self.real)


def compare(records: Sequence[Record], site: Site) -> Schedules:
    """Return how far the plain Slurm's schedules of the same jobs are from the real ones."""
    real = [real_starts(record) for record in records]
    simulated = [starts_by(site, record) for record in records]
    waits = [statistics.fmean(record.waits()) for record in records]
    mean = statistics.fmean(waits)
    away = [distance(ours, theirs, mean) for ours, theirs in zip(simulated, real, strict=True)]
    apart = [distance(one, other, mean) for one, other in itertools.combinations(real, 2)]
    return Schedules(
        tuple(waits),
        tuple(
            statistics.fmean(start - past.submit / 1000 for start, past in zip(starts, record.past, strict=True))
            for starts, record in zip(simulated, records, strict=True)
        ),
        statistics.fmean(away),
        statistics.fmean(apart) if apart else math.nan,
    )


def table(folder: Path = FOLDER, wanted: Sequence[str] = ()) -> Iterator[str]:
    """Give the lines of a table of all cases, or of those that are wanted; docs/fidelity.md has it."""
    cells = ["case", "Slurm", "replays", "starts", "wanted", "on the same nodes", "mean lag", "longest", "waits differ"]
    yield f"| {' | '.join(cells)} | away | Slurm from itself |"
    yield "|---|---|" + "---:|" * 9
    for name in wanted or names(folder):
        records, site = records_of(name, folder), case_of(name).site
        schedules, results = compare(records, site), [force(record, site) for record in records]
        both = Forced(tuple(start for result in results for start in result.starts), ())
        cells = [
            name,
            ", ".join(sorted({record.version for record in records})),
            f"{len(records)}",
            f"{len(both.starts)}",
            f"{100 * both.agreement:.1f} %",
            f"{100 * both.placed_alike:.1f} %",
            f"{both.mean_lag:.0f} s",
            f"{both.lag(1.0):.0f} s",
            f"{100 * schedules.difference:+.1f} %",
            f"{schedules.away:.2f}",
            "" if math.isnan(schedules.itself) else f"{schedules.itself:.2f}",
        ]
        yield f"| {' | '.join(cells)} |"


def record_again(case: Case, folder: Path) -> Record:
    """Replay a case and keep the record as the next one in a folder."""
    record = replay(case, RATE)
    write_record(record, next(path for path in _files(case.name, folder) if not path.exists()))
    return record


def replay_elsewhere(release: str, names: Sequence[str], out: Path) -> None:
    """Replay cases on the Slurm of another release of Debian, and keep their records in a folder."""
    command = [ROOT / ".ci/modern-slurm", release, NIGHT / release, out]
    subprocess.run([*command, "python", "-m", "schedulers.replays", "record", "/out", *names], check=True)


def main(words: list[str]) -> None:
    """Do what the command line says."""
    match words:
        case ["table"]:
            _show(table())
        case ["table", folder, *wanted]:
            _show(table(Path(folder), wanted))
        case ["record", folder, *wanted]:
            _show(describe(record_again(case_of(name), Path(folder))) for name in wanted or list(CASES))
        case ["fidelity", release, times, *wanted]:
            out, wanted = NIGHT / f"replays-{release}", wanted or list(MIXED)
            replay_elsewhere(release, wanted * int(times), out)
            _show(table(out, wanted))
        case _:
            sys.exit(__doc__)


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201 this is a command


if __name__ == "__main__":
    main(sys.argv[1:])
