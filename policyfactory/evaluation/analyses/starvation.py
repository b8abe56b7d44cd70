"""The longest waits, and what the threshold did about them.

How often the threshold acted can be seen from the schedule alone: a job whose wait at its start is longer than the
threshold was overdue, so it had been put at the head of the queue. Some of these were started as backfilled jobs while
another waited ahead of them; the others were started from the head.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policyfactory.core.errors import UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import MINUTE, counted, enumerated, format_duration, number_text, parse_duration
from policyfactory.evaluation.analyses.analysis import (
    LogAnalysis,
    LogView,
    compared_columns,
    estimate_cell,
    pictures_by_log,
    policy_table,
    shared_unit,
    texts,
)
from policyfactory.evaluation.picture import Curve, Panel, draw_panels
from policyfactory.policy.policy import Policy
from policyfactory.report.sections import Column, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.simulation.cases import Case
    from policyfactory.simulation.schedule import Schedule
    from policyfactory.statistics.evaluation import Evaluation

# The curve's points: from a minute to four years, four in each doubling of the wait.
_CURVE = tuple(round(MINUTE * 2 ** (k / 4)) for k in range(85))

_IN_WORDS = 6  # policies that are named in words; the tables have all
_OFTEN = 0.05  # share of the jobs from which the order is for a good part that of submission


@dataclasses.dataclass(frozen=True, slots=True)
class Starvation(LogAnalysis):
    """Longest waits, p99, and jobs that waited longer than the threshold.

    Parameters
    ----------
    beyond : sequence of str
        Waits; how many jobs waited longer than each is counted, whatever the threshold.

    Raises
    ------
    UsageError
        If one of ``beyond`` is no finite duration.
    """

    name: ClassVar[str] = "starvation"

    beyond: Sequence[str] = ("20h", "40h", "1w")

    def __post_init__(self) -> None:
        given = texts(self.name, "beyond", self.beyond)
        for text in given:
            if math.isinf(parse_duration(text)):
                raise UsageError(f"analysis starvation: beyond has {text!r}; give waits as text, for example 20h, 1w")
        object.__setattr__(self, "beyond", tuple(sorted(set(given), key=parse_duration)))

    def observe(self, case: Case, schedule: Schedule) -> LongWaits:
        """Return the longest wait and how many jobs waited longer than what."""
        return waits_of(schedule, (*(int(parse_duration(text)) for text in self.beyond), *_CURVE))

    def conclude(self, evaluation: Evaluation, seen: list[list[Any]]) -> Section:
        """Return the longest waits, the counts, the words, and how the waits are distributed."""
        logs = self.by_log(evaluation, seen, LogWaits)
        waiting = [view for view in logs if (view.values("longest") > MINUTE).any()]
        pictures = pictures_by_log(
            "waits",
            waiting,
            "how many jobs wait longer than so long",
            lambda view: _draw(view, len(self.beyond)),
            "Both axes are logarithmic: the right end of a curve is the longest wait of one job.",
        )
        paragraphs = []
        for view in logs:
            name = f"{view.log}: " if len(logs) > 1 else ""
            paragraphs += [f"{name}{_longest(view)}", f"{name}{_threshold(view, self.beyond)}"]
        tables = _longest_table(logs), _waits_table(logs), _overdue_table(logs, self.beyond)
        return Section("starvation", "The longest waits, and the threshold", tuple(paragraphs), tables, pictures)


def _longest_table(logs: Sequence[LogWaits]) -> Table:
    unit = shared_unit(view.longest(k)[1].longest for view in logs for k in range(len(view.policies)))

    def of(get: Callable[[int, LongWaits], Any]) -> Callable[[LogWaits, int], Any]:
        def shown(view: LogWaits, index: int) -> Any:
            number, waits = view.longest(index)
            return get(number, waits) if waits.longest else None  # of a job that does not wait nothing is said

        return shown

    longest = Column("longest wait", "s", "of any job in any case", shown=unit)
    columns = {
        longest: lambda view, index: view.longest(index)[1].longest,
        Column("case"): of(lambda number, _: str(number)),
        Column("job", "", "its id in the log"): of(lambda _, waits: str(waits.job_id)),
        Column("user"): of(lambda _, waits: "unknown" if waits.user < 0 else str(waits.user)),
        Column("processors", "processors"): of(lambda _, waits: waits.processors),
        Column("requested time", "s"): of(lambda _, waits: waits.requested),
        Column("run time", "s"): of(lambda _, waits: waits.run_time),
    }
    return policy_table("longest", "The job that waits longest under each policy", logs, columns)


def _waits_table(logs: Sequence[LogWaits]) -> Table:
    unit = shared_unit(value for view in logs for value in view.values("longest").ravel())
    p99 = Column("p99 wait", "s", "99 % of a case's jobs wait less", unit)
    longest = Column("longest wait", "s", "of a case", unit)
    columns = {
        **compared_columns(p99, lambda view: view.values("p99"), logs[0].baseline),
        **compared_columns(longest, lambda view: view.values("longest"), logs[0].baseline),
    }
    return policy_table("waits", "The long waits of a case", logs, columns)


def _overdue_table(logs: Sequence[LogWaits], beyond: Sequence[str]) -> Table:
    acted = any(view.has_threshold(k) for view in logs for k in range(len(view.policies)))
    columns = _acted_columns() if acted else {}
    for number, text in enumerate(beyond):
        columns |= {
            Column(f"over {text}", "jobs", f"jobs that waited longer than {text}"): (
                lambda view, index, number=number: view.beyond(number, index)
            ),
            Column(f"over {text}, share", "%", "of the jobs of a case; median over cases"): (
                lambda view, index, number=number: estimate_cell(view.beyond_share(number)[:, index])
            ),
        }
    return policy_table("overdue", "Jobs that waited too long", logs, columns, "Jobs are those of all cases.")


def _acted_columns() -> dict[Column, Callable[..., Any]]:
    """Return what the threshold did; empty for a policy that has none."""

    def of(get: Callable[[LogWaits, int], Any]) -> Callable[[LogWaits, int], Any]:
        return lambda view, index: get(view, index) if view.has_threshold(index) else None

    return {
        Column("threshold", "", "waits beyond it put a job at the head of the queue"): LogWaits.threshold_text,
        Column("overdue", "jobs", "jobs whose wait at their start was longer than the threshold"): of(
            lambda view, index: view.count("overdue", index)
        ),
        Column("overdue, share", "%", "of the jobs of a case; median over cases"): of(
            lambda view, index: estimate_cell(view.share("overdue")[:, index])
        ),
        Column("from the head", "jobs", "overdue jobs that were started with none waiting ahead of them"): of(
            lambda view, index: view.count("from_head", index)
        ),
    }


def _draw(view: LogWaits, first: int) -> Figure:
    """Draw the share of the jobs that wait longer than x; the curve's counts begin at place ``first``."""
    x = np.array(_CURVE, dtype=np.float64)
    curves = []
    for k, policy in enumerate(view.policies):
        count = np.array([view.beyond(first + number, k) for number in range(len(_CURVE))], dtype=np.float64)
        there = count > 0
        end = max(view.longest(k)[1].longest, MINUTE)
        curves.append(Curve(policy, np.append(x[there], end), 100.0 * np.append(count[there], 1.0) / view.jobs))
    thresholds = {view.threshold(k) for k in range(len(view.policies))} - {math.inf}
    marks = [(theta, f"threshold {format_duration(theta)}") for theta in sorted(thresholds) if theta >= MINUTE]
    panel = Panel(
        f"{view.jobs:,} jobs", "wait", "jobs that wait longer (%)", curves, durations=True, log_y=True, marks=marks
    )
    return draw_panels([panel], height=3.4)


# In words. ------------------------------------------------------------------------------------------------------------


def _longest(view: LogWaits) -> str:
    sentences = []
    for k, policy in enumerate(view.policies[:_IN_WORDS]):
        number, waits = view.longest(k)
        if waits.longest == 0:
            sentences.append(f"{policy}: no job waits")
            continue
        where = f" of {view.case_name(number)}" if len(view.kept) > 1 else ""
        sentences.append(
            f"{policy}: {format_duration(waits.longest)}, job {waits.job_id}{where} "
            f"({counted(waits.processors, 'processor')}, {format_duration(waits.requested)} requested, "
            f"{format_duration(waits.run_time)} run)"
        )
    more = " Those of the other policies are in the table." if len(view.policies) > _IN_WORDS else ""
    return f"The longest wait of any job, {'; '.join(sentences)}.{more}"


def _threshold(view: LogWaits, beyond: Sequence[str]) -> str:
    guarded = [k for k in range(len(view.policies)) if view.has_threshold(k)]
    if not guarded:
        return f"There is no threshold. {_would_be(view, beyond)}"
    lengths = {view.threshold_text(k) for k in guarded}
    text = f"Jobs that wait longer than {enumerated(sorted(lengths))} go first, in the order of their submission. "
    if len(guarded) < len(view.policies):
        rest = [name for k, name in enumerate(view.policies) if k not in guarded]
        text += f"{enumerated(rest)} {'have' if len(rest) > 1 else 'has'} no threshold. "
    overdue = {k: view.count("overdue", k) for k in guarded}
    if not any(overdue.values()):
        return f"{text}It never acted: no job waited that long."
    idle = [k for k in guarded if overdue[k] and _is_submission_order(view, k)]
    acted = [k for k in guarded if overdue[k] and k not in idle]
    counts = "; ".join(_how_often_it_acted(view, k) for k in acted[:_IN_WORDS])
    parts = [f"Of {view.jobs:,} jobs that happened to {counts}."] if acted else []
    often = [view.policies[k] for k in acted if overdue[k] >= _OFTEN * view.jobs]
    if often:
        parts.append(
            f"Under {enumerated(often)} so many are overdue that the order is for a good part that of submission."
        )
    parts += [
        f"Under {view.policies[k]} it changes nothing ({counted(overdue[k], 'job was', 'jobs were')} overdue): the "
        "queue is in the order of submission anyway."
        for k in idle
    ]
    never = [view.policies[k] for k in guarded if not overdue[k]]
    if never:
        parts.append(f"Under {enumerated(never)} it never acted: no job waited that long.")
    return text + " ".join(parts)


def _how_often_it_acted(view: LogWaits, k: int) -> str:
    overdue = view.count("overdue", k)
    beyond = view.longest(k)[1].longest - view.threshold(k)
    return (
        f"{overdue:,} under {view.policies[k]} ({number_text(100 * overdue / view.jobs)} %; "
        f"the longest wait is {format_duration(beyond)} beyond it)"
    )


def _is_submission_order(view: LogWaits, k: int) -> bool:
    contender = view.evaluation.contenders[k]
    return isinstance(contender, Policy) and contender.formula.strip() == "r"


def _would_be(view: LogWaits, beyond: Sequence[str]) -> str:
    if not beyond:
        return ""
    lengths = enumerated(beyond)
    sentences = []
    for k, policy in enumerate(view.policies[:_IN_WORDS]):
        counts = [view.beyond(number, k) for number in range(len(beyond))]
        sentences.append(
            f"{policy} {enumerated(f'{count:,}' for count in counts)}" if any(counts) else f"{policy} none"
        )
    return (
        f"Of {view.jobs:,} jobs these waited longer than {lengths}: {'; '.join(sentences)}. A threshold of that length "
        "would have put them first, and so changed the waits of others."
    )


# The long waits of one schedule, and those of a log's cases together --------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class LongWaits:
    """The long waits of one schedule.

    Parameters
    ----------
    jobs : int
        Jobs of the schedule.
    longest, p99 : float, s
        The longest wait, and the 99 % quantile (linear between two jobs, as the metric p99_wait).
    job_id, user, processors : int
        Of the job that waited longest (the first of several); user -1 if unknown.
    requested, run_time : float, s
        Of that job; the run time is what the machine executed.
    threshold : float, s
        What the schedule was made with; inf for none.
    overdue, from_head : int
        Jobs that waited longer than the threshold; those of them that were not backfilled.
    beyond : int64 array (lengths,)
        Jobs that waited longer than each of the lengths asked for.
    """

    jobs: int
    longest: float
    p99: float
    job_id: int
    user: int
    processors: int
    requested: float
    run_time: float
    threshold: float
    overdue: int
    from_head: int
    beyond: Int64Array


def waits_of(schedule: Schedule, lengths: Sequence[int]) -> LongWaits:
    """Return the long waits of a schedule of at least one job.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    lengths : sequence of int, s
        Waits; the jobs that waited longer than each are counted.
    """
    jobs = schedule.workload
    wait = schedule.start - jobs.submit
    n, ticks = len(wait), jobs.ticks
    longest = int(np.argmax(wait))
    # Most jobs wait not at all or not long: those that did are few enough to be sorted.
    long = np.sort(wait[wait > 0])
    theta = schedule.rules.threshold
    # A whole number of ticks is longer than the threshold if and only if it is longer than its whole part.
    late = np.zeros(n, dtype=np.bool_) if math.isinf(theta) else wait > math.floor(theta * ticks)
    edges = np.array(lengths, dtype=np.int64) * ticks
    return LongWaits(
        jobs=n,
        longest=float(wait[longest]) / ticks,
        p99=_quantile(long, n, 0.99) / ticks,
        job_id=int(jobs.job_id[longest]),
        user=int(jobs.user[longest]),
        processors=int(jobs.processors[longest]),
        requested=float(jobs.requested_time[longest]) / ticks,
        run_time=float(schedule.end[longest] - schedule.start[longest]) / ticks,
        threshold=theta,
        overdue=int(np.count_nonzero(late)),
        from_head=int(np.count_nonzero(late & ~schedule.backfilled)),
        beyond=len(long) - np.searchsorted(long, edges, side="right"),
    )


def _quantile(positive: Int64Array, n: int, level: float) -> float:
    """Return the quantile of ``n`` numbers, of which these, ascending, are not 0."""
    position = level * (n - 1)
    below = math.floor(position)
    zeros = n - len(positive)
    left, right = (float(positive[k - zeros]) if k >= zeros else 0.0 for k in (below, min(below + 1, n - 1)))
    return left + (right - left) * (position - below)


class LogWaits(LogView):
    """The waits of all cases of a log."""

    @property
    def jobs(self) -> int:
        """Jobs of all cases."""
        return sum(case[0].jobs for case in self.kept)

    def share(self, field: str) -> FloatArray:
        """Return one count as a share of the case's jobs in %: float64 array (cases, policies)."""
        return self.values(lambda waits: 100.0 * getattr(waits, field) / waits.jobs)

    def count(self, field: str, k: int) -> int:
        """Return one count of policy k, all cases together."""
        return sum(getattr(case[k], field) for case in self.kept)

    def beyond(self, number: int, k: int) -> int:
        """Return the jobs that waited longer than length ``number`` under policy k, all cases together."""
        return sum(int(case[k].beyond[number]) for case in self.kept)

    def beyond_share(self, number: int) -> FloatArray:
        """Return the share of a case's jobs that waited longer than length ``number``, in %: (cases, policies)."""
        return self.values(lambda waits: 100.0 * waits.beyond[number] / waits.jobs)

    def longest(self, k: int) -> tuple[int, LongWaits]:
        """Return the number of the case with the longest wait under policy k, and its waits."""
        row = int(np.argmax([case[k].longest for case in self.kept]))
        return self.number(row), self.kept[row][k]

    def threshold(self, k: int) -> float:
        """Return the lowest threshold that policy k had in a case, in seconds; inf for none."""
        return float(min(case[k].threshold for case in self.kept))

    def has_threshold(self, k: int) -> bool:
        """Return whether policy k had a threshold in any case."""
        return not math.isinf(self.threshold(k))

    def threshold_text(self, k: int) -> str:
        """Return the threshold of policy k in words."""
        if not self.has_threshold(k):
            return "none"
        several = len({case[k].threshold for case in self.kept}) > 1
        return f"{format_duration(self.threshold(k))}{' and more' if several else ''}"
