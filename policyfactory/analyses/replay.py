"""How far the replays are from the record: waits, utilisation and starts, simulated and as the log has them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.base import Analysis
from policyfactory.analyses.common import log_cells, log_columns, shared_unit, stem_by_log
from policyfactory.analyses.curves import Curve, Panel, draw_panels
from policyfactory.analyses.over_cases import by_log, cell_of, mean_of, median_of
from policyfactory.analyses.replay_words import Distances, replay_in_words
from policyfactory.core.units import MINUTE
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.recorded import RECORDED, Overuse, overuse_of, recorded_schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

__all__ = ["SAME_START", "Replay", "Replayed", "wait_distance"]

SAME_START = MINUTE  # s; jobs whose starts differ by no more are said to start when they did
_EDGES = np.unique(np.rint(2.0 ** (np.arange(91) / 3))).astype(np.int64)  # s; the last one is 34 years


def wait_distance(replayed: NDArray[np.int64], recorded: NDArray[np.int64]) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples of waits.

    The largest difference of the shares of jobs that wait at most t, over all t: 0 if both are the same distribution,
    1 if all of one are below all of the other.

    Parameters
    ----------
    replayed, recorded : int64 array (n,), n >= 1
        Waits in one unit, in any order.

    Notes
    -----
    There is no p-value beside it: jobs of one queue are not independent draws.
    """
    first, second = np.sort(replayed), np.sort(recorded)
    at = np.concatenate([first, second])
    shares = (np.searchsorted(each, at, side="right") / len(each) for each in (first, second))
    return float(np.max(np.abs(np.subtract(*shares))))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """One contender's schedule of one case beside the record.

    Parameters
    ----------
    jobs : int
        Jobs of the case.
    distance : float
        Kolmogorov-Smirnov distance of the waits.
    same_start : float, %
        Share of the jobs whose start differs by at most `SAME_START`.
    median_wait, utilisation : tuple of float
        Of the replay and of the record; s and %.
    at_most : tuple of int64 array (edges,)
        Jobs that wait at most so long, in the replay and in the record.
    overuse : Overuse
        Of the record.
    """

    jobs: int
    distance: float
    same_start: float
    median_wait: tuple[float, float]
    utilisation: tuple[float, float]
    at_most: tuple[NDArray[np.int32], NDArray[np.int32]]
    overuse: Overuse


@dataclasses.dataclass(frozen=True, slots=True)
class Replay(Analysis):
    """How far each replay is from the record; for cases of which each job has a recorded start."""

    name: ClassVar[str] = "replay"

    def observe(self, case: Case, schedule: Schedule) -> Replayed:
        """Return the distances of one schedule from the record of the same jobs.

        Raises
        ------
        EvaluationError
            If a job has no recorded start.
        """
        # The schedule's own jobs: a simulator may have a finer clock than the log.
        jobs = schedule.workload
        record = recorded_schedule(jobs)
        waits = schedule.start - jobs.submit, record.start - jobs.submit
        same = np.abs(schedule.start - record.start) <= SAME_START * jobs.ticks
        edges = _EDGES * jobs.ticks
        replayed, recorded = (np.searchsorted(np.sort(wait), edges, side="right").astype(np.int32) for wait in waits)
        busy, median = METRICS["utilisation"].function, METRICS["median_wait"].function
        return Replayed(
            jobs=len(jobs),
            distance=wait_distance(*waits),
            same_start=100.0 * float(np.count_nonzero(same)) / len(jobs),
            median_wait=(median(schedule), median(record)),
            utilisation=(busy(schedule), busy(record)),
            at_most=(replayed, recorded),
            overuse=overuse_of(record),
        )

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return a table of the distances, the waits as curves, and what they say."""
        cases = {log: by_log(evaluation, seen, log) for log in evaluation.logs}
        found = {log: _distances(evaluation, log, own) for log, own in cases.items()}
        pictures = [
            Picture(
                stem,
                f"{log}: how many jobs wait how long, replayed and recorded",
                functools.partial(_draw, cases[log], evaluation.policies),
                "The black dashed curve is the record. Where a replay's curve is above it, more jobs of the replay "
                "wait no longer than that. The widest gap is the distance, here over the jobs of all cases.",
            )
            for log, stem in stem_by_log("waits", evaluation.logs).items()
        ]
        words = replay_in_words(evaluation, found)
        return Section("replay", "How far the replays are from the record", words, (_table(found),), tuple(pictures))


def _distances(evaluation: Evaluation, log: str, cases: list[list[Replayed]]) -> Distances:
    def column(get: Any) -> list[NDArray[np.float64]]:
        return [np.array([get(case[k]) for case in cases]) for k in range(len(evaluation.policies))]

    overuse = [case[0].overuse for case in cases]
    return Distances(
        log=log,
        policies=evaluation.policies,
        distance=[median_of(each) for each in column(lambda one: one.distance)],
        same_start=[mean_of(each) for each in column(lambda one: one.same_start)],
        median_wait=[median_of(each) for each in column(lambda one: one.median_wait[0])],
        utilisation=[mean_of(each) for each in column(lambda one: one.utilisation[0])],
        recorded_wait=median_of(np.array([case[0].median_wait[1] for case in cases])),
        recorded_utilisation=mean_of(np.array([case[0].utilisation[1] for case in cases])),
        overuse=Overuse(
            max(one.peak for one in overuse), sum(one.over_s for one in overuse), sum(one.span_s for one in overuse)
        ),
        machine=max(facts.machine for facts in evaluation.cases if facts.log == log),
    )


def _table(found: dict[str, Distances]) -> Table:
    logs = list(found)
    waits = [each.value for own in found.values() for each in (*own.median_wait, own.recorded_wait)]
    columns = (
        *log_columns(logs),
        Column("policy"),
        Column(
            "distance of waits", "1",
            "Kolmogorov-Smirnov: the largest difference of the shares of jobs that wait at most t; 0 is the same "
            "distribution, 1 has nothing in common",
        ),
        Column("median wait", "s", "of the jobs", shown=shared_unit(waits)),
        Column("utilisation", "%", "sum of q p over (processors x makespan)"),
        Column("same start", "%", f"jobs whose start differs from the recorded one by at most {SAME_START} s"),
    )  # fmt: skip
    rows = []
    for log, own in found.items():
        for k, policy in enumerate(own.policies):
            each = (own.distance[k], own.median_wait[k], own.utilisation[k], own.same_start[k])
            rows.append((*log_cells(logs, log), Cell(policy), *map(cell_of, each)))
        record = (Cell(None), cell_of(own.recorded_wait), cell_of(own.recorded_utilisation), Cell(None))
        rows.append((*log_cells(logs, log), Cell(RECORDED), *record))
    note = "Distances and waits are medians over the cases, shares are means." if _several(found) else ""
    return Table(
        "distances", "Replays and record: the same jobs, simulated and as they ran", columns, tuple(rows), note
    )


def _several(found: dict[str, Distances]) -> bool:
    return any(own.cases > 1 for own in found.values())


def _draw(cases: list[list[Replayed]], policies: Sequence[str]) -> Figure:
    """Draw the share of all jobs of a log that wait at most so long, as recorded and under each policy."""
    jobs = sum(case[0].jobs for case in cases)
    edges = _EDGES.astype(np.float64)

    def curve(name: str, counts: Sequence[NDArray[np.int32]]) -> Curve:
        total: NDArray[np.int64] = np.sum(counts, axis=0, dtype=np.int64)
        return Curve(name, edges, 100.0 * total / jobs)

    record = curve(RECORDED, [case[0].at_most[1] for case in cases])
    curves = [curve(name, [case[k].at_most[0] for case in cases]) for k, name in enumerate(policies)]
    # Beyond the longest wait of all there is nothing to see.
    waiting = np.min([one.y for one in (record, *curves)], axis=0) < 100
    shown = int(np.count_nonzero(waiting)) + 1
    record, *curves = (Curve(one.name, one.x[:shown], one.y[:shown]) for one in (record, *curves))
    label = "wait of the job (1 second and less: at the left end)"
    panel = Panel(f"{jobs:,} jobs", label, "jobs (%)", curves, durations=True, reference=record)
    return draw_panels([panel], height=3.4)
