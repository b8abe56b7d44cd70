"""How often "82 % sure to be earlier" is right, which `policyfactory forecast --submit` says of half the time limit.

    python evaluate/studies/alternatives.py --traces traces --output docs

Each log is simulated under EASY, first come, first served. At submissions of its second half that have to wait, the
job is forecast as it was, and with half of its limit, or a quarter, where it ran for less; then both are simulated with
what really came: all run times and all later jobs are known there. It writes ``data/forecast-alternatives.csv``, by
what was told; ten minutes.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from policyfactory.core.files import atomic_write
from policyfactory.core.options import FloatArray
from policyfactory.forecasting.futures import Draws, queues_of, starts_of
from policyfactory.forecasting.record import Loop, QueueStanding, loop_of
from policyfactory.report.terminal import note
from policyfactory.workload.clean import read

__all__ = ["Told", "main", "rows_of", "told_of"]

TRACES = ("KTH-SP2-1996-2.1-cln.swf.gz", "SDSC-BLUE-2000-4.2-cln.swf.gz", "HPC2N-2002-2.1-cln.swf.gz")
JOBS, INSTANTS, HORIZON = 60_000, 300, 86_400
LEAST = 60  # s: below, "the same" is told
SURE = 0.5, 0.7, 0.9, 0.99, 1.01  # ends of the groups
TRUTH = Draws(futures=1, horizon=HORIZON, run_times="true", arrivals="true")


class Told(NamedTuple):
    """What was told of an alternative, and what came: seconds that it is earlier, later if negative."""

    sure: float
    earlier: float
    came: float


def _starts(found: Loop, standing: QueueStanding, row: int, share: float, draws: Draws) -> FloatArray:
    """Return when a waiting job starts in each future if it asks for a part of its time: float64 (futures,), s."""
    jobs, place = found.record.jobs, int(np.flatnonzero(standing.rows == row)[0])
    limit = jobs.requested_time.copy()
    limit[row] = max(int(limit[row] * share), 1)
    asked = list(standing.snapshot.jobs)
    asked[place] = dataclasses.replace(asked[place], limit=int(limit[row]))
    record = dataclasses.replace(found.record, jobs=dataclasses.replace(jobs, requested_time=limit))
    other = dataclasses.replace(
        standing, snapshot=dataclasses.replace(standing.snapshot, jobs=tuple(asked)), record=record
    )
    starts = starts_of(other, queues_of(other, None, draws.horizon), draws, workers=2)
    return np.asarray(starts[:, place - standing.running])


def told_of(found: Loop, instants: int, draws: Draws) -> Iterator[Told]:
    """Give what is told of alternatives that are told to be earlier.

    Parameters
    ----------
    found : Loop
    instants : int
        So many submissions.
    draws : Draws
    """
    record = found.record
    jobs, ran = record.jobs, record.end - record.start
    half = len(jobs) // 2
    last = int(jobs.submit[-1]) - draws.horizon
    able = (record.start - jobs.submit >= LEAST) & (2 * ran < jobs.requested_time) & (jobs.submit < last)
    rows = np.flatnonzero(able & (np.arange(len(jobs)) >= half))
    truth = dataclasses.replace(TRUTH, horizon=draws.horizon)
    for row in rows[np.unique(np.linspace(0, len(rows) - 1, instants).astype(int))].tolist():
        standing = found.standing(int(jobs.submit[row]))
        asked, came = (_starts(found, standing, row, 1.0, its) for its in (draws, truth))
        for share in (0.5, 0.25) if 4 * ran[row] < jobs.requested_time[row] else (0.5,):
            other, really = (_starts(found, standing, row, share, its) for its in (draws, truth))
            gain = asked - other
            if gain.mean() >= LEAST:
                yield Told(float((gain > 0).mean()), float(gain.mean()), float(came[0] - really[0]))


def rows_of(name: str, told: list[Told]) -> list[dict[str, Any]]:
    """Return by how sure it was told: how often it came so, and what was won."""
    rows = []
    for low, high in zip((0.0, *SURE), SURE, strict=False):
        mine = [its for its in told if low <= its.sure < high]
        if mine:
            sure, earlier, came = np.array(mine).T
            rows.append(
                {
                    "log": name,
                    "told": f"{100 * low:.0f} to {min(100 * high, 100):.0f} %",
                    "alternatives": len(mine),
                    "told_sure": round(float(sure.mean()), 3),
                    "was_earlier": round(float((came > 0).mean()), 3),
                    "was_later": round(float((came < 0).mean()), 3),
                    "told_minutes": round(float(earlier.mean()) / 60, 1),
                    "came_minutes": round(float(came.mean()) / 60, 1),
                }
            )
    return rows


def main() -> None:
    """Study the logs and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    rows = []
    for name in TRACES:
        log = read(given.traces / name)[:JOBS]
        found = loop_of(log, None, np.zeros(0, dtype=np.int64), is_recorded=False)
        rows += rows_of(log.name, list(told_of(found, INSTANTS, Draws(horizon=HORIZON))))
        note(f"{log.name}: done")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic_write(given.output / "data" / "forecast-alternatives.csv", text.getvalue())


if __name__ == "__main__":
    main()
