"""Two times of a machine compared: what is known before it is put into words."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import WorkloadError
from policyfactory.core.options import Int64Array
from policyfactory.core.text import counted, format_duration
from policyfactory.evaluation.verdict import requests_invented
from policyfactory.evaluation.words import basis_in_words
from policyfactory.policy.policy import Policy
from policyfactory.report.sections import Column, Section
from policyfactory.report.verdict import TOO_FAR, Verdict
from policyfactory.review.shadow_log import Logged, ShadowLog
from policyfactory.review.times import (
    Accounting,
    WeekMeans,
    Weeks,
    difference,
    difference_of,
    in_words,
    means_of,
    nobody_waits,
    plain_table,
    sign,
)
from policyfactory.simulation.metrics import job_values
from policyfactory.simulation.schedule import Schedule, lacking_starts, recorded_schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.statistics.evaluation import estimate_weekly
from policyfactory.statistics.intervals import Estimate
from policyfactory.workload.jobs import Workload, load_in_words

_MOST_PAIRS = 20_000_000
# Rows of the accounting by user, submit time, limit and processors.
_Alike = dict[tuple[str, int, int, int], list[int]]
_CLOCK = (0, 1, -1)  # s: a script may look at its clock just before or after Slurm does


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Lines with their jobs.

    Parameters
    ----------
    lines : list of Logged
        Those of which the job is known; one for each job where a line is about several that are alike.
    rows : int64 array (lines,)
        The row of the accounting of each.
    without : int
        Lines of no job in the accounting.
    larger : int
        Jobs that were given more processors than a line of theirs counts.
    """

    lines: list[Logged]
    rows: Int64Array
    without: int
    larger: int = 0


def match(log: ShadowLog, accounting: Accounting) -> Matched:
    """Return the lines with the jobs that they are about.

    By the job's number, of an array by that of the array for tasks that have no line of their own. A line without a
    number is about all jobs of its user that were submitted at its time (give or take 1 s) with its limit and size:
    they have one score. The size is what was requested; where no such job is, what was allocated, as Slurm before 24.05
    records what is asked for by GPU.

    Raises
    ------
    WorkloadError
        If there are more than 20 million pairs of a line and a job, as of large arrays that are logged again and again.
    """
    swf = accounting.log
    begins = swf.header.unix_start or 0
    submit = (swf.submit + begins).astype(np.int64).tolist()
    allocated = swf.allocated.astype(np.int64)
    sizes = np.where(swf.requested > 0, swf.requested, allocated).astype(np.int64).tolist(), allocated.tolist()
    limit = swf.requested_time.astype(np.int64).tolist()
    by_id: dict[str, list[int]] = defaultdict(list)
    for row, job in enumerate(accounting.job):
        by_id[job].append(row)
        if "_" in job:
            by_id[job.partition("_")[0]].append(row)
    users = accounting.user if all(user.isdigit() for user in accounting.user) else ()
    alike: tuple[_Alike, _Alike] = defaultdict(list), defaultdict(list)
    for known, size in zip(alike, sizes, strict=True):
        for row, (second, seconds, processors) in enumerate(zip(submit, limit, size, strict=True)):
            known[users[row] if users else "", second, seconds, processors].append(row)
    lines: list[Logged] = []
    rows: list[int] = []
    without = 0
    for line in log.lines:
        found = by_id.get(line.job, []) if line.job else _alike(alike, line, line.user if users else "")
        without += not found
        rows += found
        lines += [line] * len(found)
        if len(rows) > _MOST_PAIRS:
            raise WorkloadError(
                f"{log.path}: its lines are about more than {_MOST_PAIRS:,} jobs, the tasks of an array counted "
                "each time; give a shorter time of the log"
            )
    found_rows = np.array(rows, dtype=np.int64)
    counted = np.array([line.processors for line in lines], dtype=np.int64)
    larger = np.unique(found_rows[allocated[found_rows] > counted]).size
    return Matched(lines, found_rows, without, larger)


def _alike(alike: tuple[_Alike, _Alike], line: Logged, user: str) -> list[int]:
    keys = [(user, line.submit + off, line.time, line.processors) for off in _CLOCK]
    return next((found for known in alike for key in keys if (found := known.get(key))), [])


# What a policy would be worth on the jobs of a time -------------------------------------------------------------------

# Against the record, and against first come, first served.


BASELINE = "FCFS"
_FEW_JOBS = 100


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class JudgedTime:
    """Schedules of one time and what separates them.

    Parameters
    ----------
    means : dict of str to Means
        Of the policy, of the baseline and, where the starts are known, of the record.
    verdict : Verdict
        Whether the policy is better than both.
    """

    means: dict[str, WeekMeans]
    verdict: Verdict

    def section(self, name: str = "simulated", title: str = "Simulated with EASY backfilling") -> Section:
        """Return the values as a table."""
        columns = (
            Column("order"),
            Column("mean wait", "s"),
            Column("mean bounded slowdown", "1"),
            Column("longest wait", "s"),
            Column("jobs that wait longer than 10 s", "%"),
        )
        rows = [(who, of.wait_s, of.bsld, of.longest_s, 100 * of.waiting) for who, of in self.means.items()]
        table = plain_table("values", "One continuous simulation of the jobs", columns, rows)
        return Section(name, title, (), (table,))


def judge_simulated(workload: Workload, policy: Policy) -> JudgedTime:
    """Simulate the jobs of a time by a policy and first come, first served, and compare both with the record.

    Parameters
    ----------
    workload : Workload
        Its jobs.
    policy : Policy
        The order that is judged.
    """
    new, base = simulate(workload, policy), simulate(workload, BASELINE)
    name = policy.name
    means = {f"{name}, simulated": means_of(new), f"{BASELINE}, simulated": means_of(base)}
    lacking = lacking_starts(workload)
    record = None if lacking else recorded_schedule(workload)
    if record is not None:
        means["recorded"] = means_of(record)
    verdict = _judge(name, new, base, record, lacking)
    if verdict.light != "cannot tell" and (invented := requests_invented(workload)):
        verdict = Verdict("unsound", (*invented, *verdict.sentences))
    return JudgedTime(means, dataclasses.replace(verdict, caveats=basis_in_words(workload)))


def _judge(name: str, new: Schedule, base: Schedule, record: Schedule | None, lacking: str) -> Verdict:
    own, first = means_of(new), means_of(base)
    if len(new) < _FEW_JOBS:
        return Verdict("cannot tell", (f"What it would be worth cannot be told from {counted(len(new), 'job')}.",))
    if nobody_waits(own, first):
        load = new.workload.offered_load
        return Verdict(
            "cannot tell",
            (f"Nobody waits in a simulation under either order ({load_in_words(load)}): it cannot tell them apart.",),
        )
    against_base = difference(new, base, "bsld")
    sentences = [
        (
            f"Simulated with EASY, the mean bounded slowdown is {own.bsld:.3g} against {first.bsld:.3g} of {BASELINE}: "
            f"{in_words(against_base)}; the mean wait {format_duration(own.wait_s)} against "
            f"{format_duration(first.wait_s)}, the longest {format_duration(own.longest_s)} against "
            f"{format_duration(first.longest_s)}."
        )
    ]
    if record is None:
        return Verdict("cannot tell", (*sentences, f"It cannot be compared with the record: {lacking}."))
    was = means_of(record)
    against_record = difference(new, record, "bsld")
    recorded = f"In the record the mean bounded slowdown is {was.bsld:.3g}, the mean wait {format_duration(was.wait_s)}"
    if was.bsld > TOO_FAR * first.bsld:
        far = f"{recorded}: the simulation of {BASELINE} is too far from that to judge by it (limits, partitions, ...)."
        return Verdict("unsound", (far, *sentences))
    sentences.append(f"{recorded}; against that {name} is {in_words(against_record)}.")
    signs = [sign(against_base), sign(against_record)]
    if signs == [-1, -1]:
        return Verdict("better", tuple(sentences))
    if 1 in signs:
        return Verdict("worse", tuple(sentences))
    return Verdict("cannot tell", (*sentences, "It is not shown to be better than both."))


# Who gained and who lost: users, sizes and partitions, in the matched weeks of both times -----------------------------


_FEWEST = 30  # jobs of a group in each time
_MOST = 50  # groups of a kind
_SIZES = ((1, 1), (2, 8), (9, 64), (65, 512), (513, 1 << 40))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Period:
    """One of the two times.

    Parameters
    ----------
    accounting : Accounting
        Its jobs.
    schedule : Schedule
        As recorded.
    weeks : Weeks
        Its weeks.
    """

    accounting: Accounting
    schedule: Schedule
    weeks: Weeks


@dataclasses.dataclass(frozen=True, slots=True)
class Changed:
    """A group of jobs before and after.

    Parameters
    ----------
    kind, name : str
        What groups them (user, size, partition), and which.
    jobs : tuple of int
        How many it has in each time.
    wait, bsld : tuple of float
        Mean wait (s) and mean bounded slowdown of each time.
    of_wait, of_bsld : Estimate
        The differences, after minus before, with intervals.
    """

    kind: str
    name: str
    jobs: tuple[int, int]
    wait: tuple[float, float]
    bsld: tuple[float, float]
    of_wait: Estimate
    of_bsld: Estimate


def changes(before: Period, after: Period, pairs: Sequence[tuple[int, int]]) -> list[Changed]:
    """Return the groups that have jobs enough in the matched weeks of both times, the largest first.

    Parameters
    ----------
    before, after : Period
        The two times.
    pairs : sequence of (int, int)
        The matched weeks.
    """
    kept = [np.unique([pair[at] for pair in pairs]).astype(np.int64) for at in (0, 1)]
    blocks = [before.weeks.block, after.weeks.block]
    block = None if None in blocks else max(one for one in blocks if one is not None)
    found = []
    for kind in ("user", "processors", "partition"):
        names = [_names(period.accounting, kind) for period in (before, after)]
        inside = [np.isin(period.weeks.week, weeks) for period, weeks in zip((before, after), kept, strict=True)]
        counts = [
            dict(zip(*np.unique(own[rows], return_counts=True), strict=True))
            for own, rows in zip(names, inside, strict=True)
        ]
        common = [name for name in counts[0] if min(counts[0][name], counts[1].get(name, 0)) >= _FEWEST]
        common.sort(key=lambda name: (-counts[0][name] - counts[1][name], name))
        for name in common[:_MOST]:
            parts = [
                _part(period, own == name, rows, weeks, block)
                for period, own, rows, weeks in zip((before, after), names, inside, kept, strict=True)
            ]
            waits, bslds = ([part[at] for part in parts] for at in (0, 1))
            found.append(
                Changed(
                    kind=kind,
                    name=str(name),
                    jobs=(int(counts[0][name]), int(counts[1][name])),
                    wait=(waits[0].value, waits[1].value),
                    bsld=(bslds[0].value, bslds[1].value),
                    of_wait=difference_of(waits[1], waits[0]),
                    of_bsld=difference_of(bslds[1], bslds[0]),
                )
            )
    return found


def _part(
    period: Period, own: NDArray[np.bool_], inside: NDArray[np.bool_], weeks: Int64Array, block: int | None
) -> tuple[Estimate, Estimate]:
    """Return mean wait and mean bounded slowdown of a group in some weeks."""
    rows = own & inside
    place = np.searchsorted(weeks, period.weeks.week[rows])
    jobs = np.bincount(place, minlength=len(weeks)).astype(np.float64)
    wait, bsld = (
        estimate_weekly(
            np.bincount(place, job_values(period.schedule, of)[rows], len(weeks)).astype(np.float64), jobs, block
        )
        for of in ("wait", "bsld")
    )
    return wait, bsld


def _names(accounting: Accounting, kind: str) -> NDArray[np.str_]:
    """Return the group of each job of the workload, by name."""
    jobs, rows = accounting.workload, accounting.rows
    if kind == "processors":
        names = [f"{low}" if low == high else f"{low} to {high}" for low, high in _SIZES[:-1]] + ["more than 512"]
        place = np.searchsorted([high for _, high in _SIZES], jobs.processors)
        return np.array(names)[place]
    texts, column = (
        (accounting.user, accounting.log.user) if kind == "user" else (accounting.partition, accounting.log.queue)
    )
    return np.array(texts)[rows] if texts else column[rows].astype(np.int64).astype(str)


# Two times of a machine compared: what is known before it is put into words -------------------------------------------


METRICS = ("wait", "bsld")


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """One way to take the load into account.

    Parameters
    ----------
    name : str
        In words.
    wait, bsld : Estimate
        The difference, after minus before, of the mean wait (s) and the mean bounded slowdown.
    simulated : bool
        Whether it is by a simulation, which alone knows what each week finds waiting from the weeks before.
    """

    name: str
    wait: Estimate
    bsld: Estimate
    simulated: bool = dataclasses.field(default=False, kw_only=True)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Review:
    """Two times compared.

    Parameters
    ----------
    before, after : Period
        The times.
    pairs : list of (int, int)
        Weeks of like load.
    ways : tuple of Way
        By matched weeks, by regression and, unless most requested times are invented, against the simulation.
    groups : list of Changed
        Users, sizes and partitions.
    gains : dict of str to Estimate
        What the policy gains over first come, first served in a simulation of each time, in mean bounded slowdown;
        empty without one.
    distances : tuple of float
        Of each time, the mean bounded slowdown of the record over that of simulated first come, first served.
    verdict : Verdict
        Did it help.
    """

    before: Period
    after: Period
    pairs: list[tuple[int, int]]
    ways: tuple[Way, ...]
    groups: list[Changed]
    gains: dict[str, Estimate]
    distances: tuple[float, ...]
    verdict: Verdict
