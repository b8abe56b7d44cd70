"""How far the replays are from the record: waits, utilisation and starts, simulated and as the log has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import Int64Array
from policyfactory.core.text import MINUTE, format_duration, number_text
from policyfactory.evaluation.analyses.analysis import (
    Analysis,
    LogView,
    cell_of,
    estimate_of,
    log_column,
    pictures_by_log,
    shared_unit,
)
from policyfactory.evaluation.picture import Curve, Panel, draw_panels
from policyfactory.report.sections import Column, Section, Table, scaled
from policyfactory.simulation.metrics import METRICS
from policyfactory.simulation.schedule import RECORDED, Overuse, Schedule, overuse_of, recorded_schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.statistics.evaluation import Evaluation
    from policyfactory.statistics.intervals import Estimate

SAME_START = MINUTE  # s; jobs whose starts differ by no more are said to start when they did
_EDGES = np.unique(np.rint(2.0 ** (np.arange(91) / 3))).astype(np.int64)  # s; the last one is 34 years


def wait_distance(replayed: Int64Array, recorded: Int64Array) -> float:
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
    waits = np.concatenate([first, second])
    shares = (np.searchsorted(each, waits, side="right") / len(each) for each in (first, second))
    return float(np.max(np.abs(np.subtract(*shares))))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ReplayedCase:
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

    def observe(self, case: Case, schedule: Schedule) -> ReplayedCase:
        """Return the distances of one schedule from the record of the same jobs.

        Raises
        ------
        EvaluationError
            If a job has no recorded start.
        """
        # The schedule's own jobs: a simulator may have a finer clock than the log.
        jobs = schedule.workload
        record = recorded_schedule(jobs)
        # In use is also what a lead-in left running.
        whole = recorded_schedule(case.make(), case.lead_in).after(case.lead_in) if case.lead_in else record
        waits = schedule.start - jobs.submit, record.start - jobs.submit
        same = np.abs(schedule.start - record.start) <= SAME_START * jobs.ticks
        edges = _EDGES * jobs.ticks
        replayed, recorded = (np.searchsorted(np.sort(wait), edges, side="right").astype(np.int32) for wait in waits)
        busy, median = METRICS["utilisation"].function, METRICS["median_wait"].function
        return ReplayedCase(
            jobs=len(jobs),
            distance=wait_distance(*waits),
            same_start=100.0 * float(np.count_nonzero(same)) / len(jobs),
            median_wait=(median(schedule), median(record)),
            utilisation=(busy(schedule), busy(whole)),
            at_most=(replayed, recorded),
            overuse=overuse_of(record),
        )

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return a table of the distances, the waits as curves, and what they say."""
        logs = self.by_log(evaluation, seen, _ReplaysOfLog)
        pictures = pictures_by_log(
            "waits",
            logs,
            "how many jobs wait how long, replayed and recorded",
            _draw,
            "The black dashed curve is the record. Where a replay's curve is above it, more jobs of the replay wait no "
            "longer than that. The widest gap is the distance, here over the jobs of all cases.",
        )
        title, words = "How far the replays are from the record", replay_in_words(evaluation, logs)
        return Section("replay", title, words, (_table(logs),), pictures)


class _ReplaysOfLog(LogView):
    """The replays of one log beside its record."""

    def distance(self, index: int) -> Estimate:
        """Return the Kolmogorov-Smirnov distance of the waits under a policy."""
        return estimate_of(self.values("distance")[:, index])

    def same_start(self, index: int) -> Estimate:
        """Return the share of the jobs that start when they did, in %."""
        return estimate_of(self.values("same_start")[:, index], "share")

    def median_wait(self, index: int | None) -> Estimate:
        """Return the median wait in seconds under a policy; None: of the record."""
        return estimate_of(self.values(lambda kept: kept.median_wait[index is None])[:, index or 0])

    def utilisation(self, index: int | None) -> Estimate:
        """Return the utilisation in % under a policy; None: of the record."""
        return estimate_of(self.values(lambda kept: kept.utilisation[index is None])[:, index or 0], "share")


def _table(logs: Sequence[_ReplaysOfLog]) -> Table:
    rows = [(view, index) for view in logs for index in (*range(len(view.policies)), None)]
    unit = shared_unit(view.median_wait(index).value for view, index in rows)
    distance = (
        "Kolmogorov-Smirnov: the largest difference of the shares of jobs that wait at most t; 0 is the same "
        "distribution, 1 has nothing in common"
    )
    same_start = f"jobs whose start differs from the recorded one by at most {SAME_START} s"
    columns = {
        **log_column(several=len(logs) > 1),
        Column("policy"): lambda view, k: RECORDED if k is None else view.policies[k],
        Column("distance of waits", "1", distance): lambda view, k: None if k is None else cell_of(view.distance(k)),
        Column("median wait", "s", "of the jobs", shown=unit): lambda view, k: cell_of(view.median_wait(k)),
        Column("utilisation", "%", "sum of q p over (processors x makespan)"): (
            lambda view, k: cell_of(view.utilisation(k))
        ),
        Column("same start", "%", same_start): lambda view, k: None if k is None else cell_of(view.same_start(k)),
    }
    several = any(len(view.kept) > 1 for view in logs)
    note = "Distances and waits are medians over the cases, shares are means." if several else ""
    return Table.of("distances", "Replays and record: the same jobs, simulated and as they ran", columns, rows, note)


def _draw(view: _ReplaysOfLog) -> Figure:
    """Draw the share of all jobs of a log that wait at most so long, as recorded and under each policy."""
    jobs = sum(case[0].jobs for case in view.kept)
    edges = _EDGES.astype(np.float64)

    def curve(name: str, counts: Sequence[NDArray[np.int32]]) -> Curve:
        total: Int64Array = np.sum(counts, axis=0, dtype=np.int64)
        return Curve(name, edges, 100.0 * total / jobs)

    record = curve(RECORDED, [case[0].at_most[1] for case in view.kept])
    curves = [curve(name, [case[k].at_most[0] for case in view.kept]) for k, name in enumerate(view.policies)]
    # Beyond the longest wait of all there is nothing to see.
    waiting = np.min([line.y for line in (record, *curves)], axis=0) < 100
    shown = int(np.count_nonzero(waiting)) + 1
    record, *curves = (Curve(line.name, line.x[:shown], line.y[:shown]) for line in (record, *curves))
    label = "wait of the job (1 second and less: at the left end)"
    panel = Panel(f"{jobs:,} jobs", label, "jobs (%)", curves, durations=True, reference=record)
    return draw_panels([panel], height=3.4)


# In words. ------------------------------------------------------------------------------------------------------------


def replay_in_words(evaluation: Evaluation, logs: Sequence[_ReplaysOfLog]) -> tuple[str, ...]:
    """Return a paragraph a log, and what separates a replay from a record beside the policy.

    Parameters
    ----------
    evaluation : Evaluation
        What was simulated.
    logs : sequence of _ReplaysOfLog
        The logs.
    """
    paragraphs = []
    for view in logs:
        sentences = [_how_far(view), _closest(view), _overused(view)]
        paragraphs.append(f"{view.log}: " + " ".join(sentence for sentence in sentences if sentence))
    return (*paragraphs, _what_a_record_holds(evaluation))


def _how_far(view: _ReplaysOfLog) -> str:
    policy, far, same = view.baseline, view.distance(0).value, view.same_start(0).value
    if far == 0 and same == 100:
        return f"under {policy} the replay is the record: every job starts when it did, or within a minute of that."
    cases = len(view.kept)
    middle = "" if cases == 1 else f" (median over {cases} cases)"
    ours, theirs = (scaled(view.median_wait(index).value, "s") for index in (0, None))
    busy, was_busy = (number_text(view.utilisation(index).value) for index in (0, None))
    return (
        f"under {policy} the waits of the replay have a Kolmogorov-Smirnov distance of {number_text(far)}{middle} "
        "from those of the record, where 0 is the same distribution and 1 has nothing in common. The median wait is "
        f"{ours} and was {theirs}; the utilisation is {busy} % and was {was_busy} %; {number_text(same)} % of the jobs "
        "start within a minute of when they did."
    )


def _closest(view: _ReplaysOfLog) -> str:
    """Name the policy whose waits are most like the record's, if it is not the baseline."""
    distances = [view.distance(index).value for index in range(len(view.policies))]
    closest = min(range(len(distances)), key=distances.__getitem__)
    if distances[closest] >= distances[0]:
        return ""
    return f"The waits under {view.policies[closest]} are the closest, {number_text(distances[closest])}."


def _overused(view: _ReplaysOfLog) -> str:
    record: list[Overuse] = [case[0].overuse for case in view.kept]
    peak, over_s = max(overuse.peak for overuse in record), sum(overuse.over_s for overuse in record)
    span_s = sum(overuse.span_s for overuse in record)
    if peak <= view.machine:
        return ""
    share = 100.0 * over_s / span_s if span_s else 0.0
    return (
        f"The record uses up to {peak:,} processors at once, and more than the machine's {view.machine:,} for "
        f"{number_text(share)} % of the time ({format_duration(round(over_s))}): no replay can do that. Either "
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
