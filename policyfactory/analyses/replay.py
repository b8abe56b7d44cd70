"""How far the replays are from the record: waits, utilisation and starts, simulated and as the log has them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.analyses.analysis import Analysis
from policyfactory.analyses.estimates import by_log, mean_of, median_of
from policyfactory.analyses.plots import Curve, Panel, draw_panels
from policyfactory.analyses.tables import cell_of, log_cells, policy_columns, stem_by_log
from policyfactory.analyses.wording import scaled, shared_unit
from policyfactory.core.text import number_text
from policyfactory.core.units import MINUTE, format_duration
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.recorded import RECORDED, Overuse, overuse_of, recorded_schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulate.cases import Case
    from policyfactory.simulate.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation
    from policyfactory.statistics.intervals import Estimate

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
        distances = {log: _distances(evaluation, log, own) for log, own in cases.items()}
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
        words = replay_in_words(evaluation, distances)
        return Section(
            "replay", "How far the replays are from the record", words, (_table(distances),), tuple(pictures)
        )


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


def _table(distances: dict[str, Distances]) -> Table:
    logs = list(distances)
    waits = [each.value for own in distances.values() for each in (*own.median_wait, own.recorded_wait)]
    columns = policy_columns(
        logs,
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
    for log, own in distances.items():
        for k, policy in enumerate(own.policies):
            each = (own.distance[k], own.median_wait[k], own.utilisation[k], own.same_start[k])
            rows.append((*log_cells(logs, log), Cell(policy), *map(cell_of, each)))
        record = (Cell(None), cell_of(own.recorded_wait), cell_of(own.recorded_utilisation), Cell(None))
        rows.append((*log_cells(logs, log), Cell(RECORDED), *record))
    note = "Distances and waits are medians over the cases, shares are means." if _several(distances) else ""
    return Table(
        "distances", "Replays and record: the same jobs, simulated and as they ran", columns, tuple(rows), note
    )


def _several(distances: dict[str, Distances]) -> bool:
    return any(own.cases > 1 for own in distances.values())


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


# In words. ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """The replays of one log beside its record, over its cases.

    Parameters
    ----------
    log : str
        The log.
    policies : tuple of str
        The first is the baseline.
    distance, same_start, median_wait, utilisation : list of Estimate [policy]
        Kolmogorov-Smirnov distance of the waits; jobs that start when they did, in %; seconds; %.
    recorded_wait, recorded_utilisation : Estimate
        Median wait (s) and utilisation (%) of the record.
    overuse : Overuse
        Of the record, all cases together.
    machine : int
        Processors of the machine.
    """

    log: str
    policies: tuple[str, ...]
    distance: list[Estimate]
    same_start: list[Estimate]
    median_wait: list[Estimate]
    utilisation: list[Estimate]
    recorded_wait: Estimate
    recorded_utilisation: Estimate
    overuse: Overuse
    machine: int

    @property
    def cases(self) -> int:
        """How many cases."""
        return self.recorded_wait.cases


def replay_in_words(evaluation: Evaluation, distances: dict[str, Distances]) -> tuple[str, ...]:
    """Return a paragraph a log, and what separates a replay from a record beside the policy.

    Parameters
    ----------
    evaluation : Evaluation
        What was simulated.
    distances : dict of str to Distances
        Of each log.
    """
    paragraphs = []
    for log, own in distances.items():
        sentences = [_how_far(own), _closest(own), _overused(own)]
        paragraphs.append(f"{log}: " + " ".join(sentence for sentence in sentences if sentence))
    return (*paragraphs, _what_a_record_holds(evaluation))


def _how_far(own: Distances) -> str:
    policy = own.policies[0]
    far = own.distance[0].value
    if far == 0 and own.same_start[0].value == 100:
        return f"under {policy} the replay is the record: every job starts when it did, or within a minute of that."
    middle = "" if own.cases == 1 else f" (median over {own.cases} cases)"
    return (
        f"under {policy} the waits of the replay have a Kolmogorov-Smirnov distance of {number_text(far)}{middle} "
        "from those of the record, where 0 is the same distribution and 1 has nothing in common. The median wait is "
        f"{scaled(own.median_wait[0].value, 's')} and was {scaled(own.recorded_wait.value, 's')}; the utilisation is "
        f"{_share(own.utilisation[0])} and was {_share(own.recorded_utilisation)}; {_share(own.same_start[0])} of the "
        "jobs start within a minute of when they did."
    )


def _closest(own: Distances) -> str:
    """Name the policy whose waits are most like the record's, if it is not the baseline."""
    closest = min(range(len(own.policies)), key=lambda k: own.distance[k].value)
    if own.distance[closest].value >= own.distance[0].value:
        return ""
    return f"The waits under {own.policies[closest]} are the closest, {number_text(own.distance[closest].value)}."


def _overused(own: Distances) -> str:
    over = own.overuse
    if over.peak <= own.machine:
        return ""
    share = 100.0 * over.over_s / over.span_s if over.span_s else 0.0
    return (
        f"The record uses up to {over.peak:,} processors at once, and more than the machine's {own.machine:,} for "
        f"{number_text(share)} % of the time ({format_duration(round(over.over_s))}): no replay can do that. Either "
        "the machine was larger (say so: --processors, or machine in a protocol), or jobs shared processors, or "
        "recorded times are wrong."
    )


def _what_a_record_holds(evaluation: Evaluation) -> str:
    windows = any(case.kind == "window" for case in evaluation.cases)
    empty = " A window's replay begins on an empty machine; in the record older jobs ran and waited." if windows else ""
    return (
        "A record holds what a replay has not: the site's priorities, limits and reservations, processors that were "
        f"down, and jobs that are not in the log or were dropped when it was cleaned.{empty}"
    )


def _share(estimate: Estimate) -> str:
    return f"{number_text(estimate.value)} %"
