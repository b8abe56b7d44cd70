"""Two times of a machine, before and after a change of the queue's order: did it help, and who lost.

Three ways take the load into account: pairs of weeks of like load, a regression on the load, and a simulation of both
times under one policy, from which the record is measured. A verdict needs the simulation and one more to agree.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import WorkloadError
from policyfactory.core.options import Int64Array
from policyfactory.core.picture import keeps_settings, new_figure
from policyfactory.core.text import WEEK, counted, format_duration
from policyfactory.evaluation.verdict import requests_invented
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.report.sections import Cell, Column, Columns, Picture, Section, Table
from policyfactory.report.verdict import TOO_FAR, Finding, Light, Verdict, judge
from policyfactory.review.times import (
    BASELINE,
    MEANS,
    METRICS,
    Accounting,
    Reading,
    Weeks,
    by_regression,
    difference,
    difference_of,
    in_words,
    match_weeks,
    means_of,
    nobody_waits,
    of_matched,
    read_accounting,
    shared_block,
    weeks_of_schedule,
)
from policyfactory.simulation.metrics import job_values
from policyfactory.simulation.schedule import Schedule, recorded_schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.statistics.compare import verdict_of as word_of
from policyfactory.statistics.evaluation import estimate_weekly
from policyfactory.statistics.intervals import LEVEL, MIN_CASES, Estimate
from policyfactory.workload.accounting.times import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Period:
    """One of the two times.

    Parameters
    ----------
    accounting : Accounting
        Its jobs.
    schedule, simulated : Schedule
        As recorded, and as simulated under first come, first served.
    weeks : Weeks
        Its weeks, as recorded.
    """

    accounting: Accounting
    schedule: Schedule
    simulated: Schedule
    weeks: Weeks

    @property
    def distance(self) -> float:
        """The mean bounded slowdown of the record over that of the simulation."""
        return means_of(self.schedule).bsld / means_of(self.simulated).bsld


@dataclasses.dataclass(frozen=True, slots=True)
class Changed:
    """A group of jobs before and after.

    Parameters
    ----------
    kind, name : str
        What groups them (user, size, partition), and which.
    jobs : tuple of int
        How many it has in each time.
    wait, bsld : tuple of Estimate
        Mean wait (s) and mean bounded slowdown of each time.
    """

    kind: str
    name: str
    jobs: tuple[int, int]
    wait: tuple[Estimate, Estimate]
    bsld: tuple[Estimate, Estimate]

    @property
    def of_wait(self) -> Estimate:
        """The difference of the mean waits, after minus before, s."""
        return difference_of(*self.wait[::-1])

    @property
    def of_bsld(self) -> Estimate:
        """The difference of the mean bounded slowdowns, after minus before."""
        return difference_of(*self.bsld[::-1])


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
    verdict : Verdict
        Did it help.
    """

    before: Period
    after: Period
    pairs: list[tuple[int, int]]
    ways: tuple[Way, ...]
    groups: list[Changed]
    gains: dict[str, Estimate]
    verdict: Verdict

    @property
    def times(self) -> tuple[tuple[str, Period], ...]:
        """Both times, with their names."""
        return ("before", self.before), ("after", self.after)


def review(
    before: Sequence[Path | str],
    after: Sequence[Path | str],
    policy: PolicyLike | None = None,
    reading: Reading | None = None,
) -> Review:
    """Compare the waits before and after a change of the queue's order.

    Parameters
    ----------
    before, after : sequence of Path or str
        Accounting of both times, see `read_accounting`.
    policy : PolicyLike, optional
        What was put to use: both times are simulated under it as well.
    reading : Reading, optional
        How the accounting is read.

    Raises
    ------
    InputError, TraceFormatError
        If a file cannot be read.
    WorkloadError
        If the times overlap, or no job of one of them has a start.
    """
    resolved = None if policy is None else resolve(policy)
    known = [_started(read_accounting(paths, reading)) for paths in (before, after)]
    first, second = map(_period, (known[0], _not_before(*known)))
    weeks, pairs = (first.weeks, second.weeks), match_weeks(first.weeks, second.weeks)
    ways = [
        Way("weeks of like load", *(of_matched(*weeks, pairs, metric) for metric in METRICS)),
        Way("regression on the load", *(by_regression(*weeks, metric) for metric in METRICS)),
    ]
    # Where most requested times are not the users', a simulation is not of this queue: it has no vote.
    if not any(requests_invented(period.schedule.workload) for period in (first, second)):
        beside = (
            difference_of(*(difference(period.schedule, period.simulated, metric) for period in (second, first)))
            for metric in METRICS
        )
        ways.append(Way(f"record less simulated {BASELINE}", *beside, simulated=True))
    found = Review(
        before=first,
        after=second,
        pairs=pairs,
        ways=tuple(ways),
        groups=changes(first, second, pairs) if pairs else [],
        gains={},
        verdict=Verdict("cannot tell", ()),
    )
    if resolved is not None:
        for name, period in found.times:
            found.gains[name] = difference(simulate(period.schedule.workload, resolved), period.simulated, "bsld")
    return dataclasses.replace(found, verdict=verdict_of(found))


def _started(accounting: Accounting) -> Accounting:
    """Return a time without its jobs that have no recorded start, which its verdict counts."""
    jobs, last = accounting.workload, _last_submission(accounting)
    known = jobs.start >= jobs.submit
    if last is not None and jobs.unix_start is not None:
        # What could run only later belongs to another time.
        known &= jobs.unix_start + jobs.submit // jobs.ticks <= last
    if not known.any():
        raise WorkloadError(
            f"{accounting.name}: no job has a recorded start, so nothing is known of its waits; import accounting with "
            "start times (Start of sacct)"
        )
    return (
        dataclasses.replace(accounting, workload=jobs.select(np.flatnonzero(known))) if not known.all() else accounting
    )


def _period(accounting: Accounting) -> Period:
    schedule = recorded_schedule(accounting.workload)
    return Period(accounting, schedule, simulate(accounting.workload, BASELINE), weeks_of_schedule(schedule))


def _last_submission(accounting: Accounting) -> int | None:
    """Return the Unix time of the last submission as recorded; None if it is not known."""
    begin = accounting.log.header.unix_start
    return None if begin is None else begin + int(accounting.log.submit.max())


def _not_before(before: Accounting, after: Accounting) -> Accounting:
    """Return the time after without the jobs that were submitted before it: what ran or waited at the change.

    Raises
    ------
    WorkloadError
        If jobs of it were over before the last submission of the time before.
    """
    jobs, last = after.workload, _last_submission(before)
    if last is None or jobs.unix_start is None:
        return after
    submit, end = (jobs.unix_start + times // jobs.ticks for times in (jobs.submit, jobs.start + jobs.run_time))
    early = submit < last
    over = early & (end <= last)
    if over.any() or early.all():
        raise WorkloadError(
            f"{after.name}: {counted(int(early.sum()), 'job')} from {shown(int(submit[0]), dt.UTC)} on were submitted "
            f"before the last submission of {before.name} at {shown(last, dt.UTC)}, {int(over.sum()):,} of them over "
            "by then; give times that follow each other (sacct -E of the first and -S of the second: when the order "
            "was changed)"
        )
    if not early.any():
        return after
    return dataclasses.replace(after, workload=jobs.select(np.flatnonzero(~early)), early=int(early.sum()))


# Who gained and who lost: users, sizes and partitions, in the matched weeks of both times -----------------------------


_FEWEST = 30  # jobs of a group in each time
_MOST = 50  # groups of a kind
_COLUMNS = {"user": "user_name", "partition": "partition"}  # of what jobs ask for, by kind of group
_SIZES = {1: "1", 8: "2 to 8", 64: "9 to 64", 512: "65 to 512"}  # processors, at most


def changes(before: Period, after: Period, pairs: Sequence[tuple[int, int]]) -> list[Changed]:
    """Return the groups that have jobs enough in the matched weeks of both times, the largest first.

    Parameters
    ----------
    before, after : Period
        The two times.
    pairs : sequence of (int, int)
        The matched weeks.
    """
    periods = (before, after)
    kept = [np.unique(weeks).astype(np.int64) for weeks in zip(*pairs, strict=True)]
    inside = [np.isin(period.weeks.week, weeks) for period, weeks in zip(periods, kept, strict=True)]
    block = shared_block(before.weeks, after.weeks)
    found = []
    for kind in ("user", "processors", "partition"):
        names, named = zip(*(_names(period.accounting, kind) for period in periods), strict=True)
        if named[0] != named[1]:
            continue
        first, second = (Counter(group[rows].tolist()) for group, rows in zip(names, inside, strict=True))
        common = [name for name in first if min(first[name], second[name]) >= _FEWEST]
        common.sort(key=lambda name: (-first[name] - second[name], name))
        for name in common[:_MOST]:
            waits, bslds = zip(
                *(
                    _means(period, rows & (group == name), weeks, block)
                    for period, group, rows, weeks in zip(periods, names, inside, kept, strict=True)
                ),
                strict=True,
            )
            found.append(Changed(kind, name, (first[name], second[name]), waits, bslds))
    return found


def _means(period: Period, rows: NDArray[np.bool_], weeks: Int64Array, block: int | None) -> list[Estimate]:
    """Return mean wait and mean bounded slowdown of some jobs in some weeks."""
    week = np.searchsorted(weeks, period.weeks.week[rows])
    jobs = np.bincount(week, minlength=len(weeks)).astype(np.float64)
    sums = (np.bincount(week, job_values(period.schedule, metric)[rows], len(weeks)) for metric in METRICS)
    return [estimate_weekly(column.astype(np.float64), jobs, block) for column in sums]


def _names(accounting: Accounting, kind: str) -> tuple[NDArray[np.str_], bool]:
    """Return the group of each job of the workload, and whether it is a name; else it is a number of the log's own."""
    jobs = accounting.workload
    if kind == "processors":
        return np.array([*_SIZES.values(), "more than 512"])[np.searchsorted([*_SIZES], jobs.processors)], True
    texts = accounting.user if kind == "user" else accounting.partition
    if texts:
        return np.array(texts)[accounting.rows], True
    names = () if jobs.requests is None else jobs.requests.names.get(kind, ())
    if jobs.requests is None or all(name.isdigit() for name in names):
        numbers = accounting.log.user if kind == "user" else accounting.log.queue
        return numbers[accounting.rows].astype(np.int64).astype(str), False
    return np.array([*names, "-1"])[getattr(jobs.requests, _COLUMNS[kind])], True


def _unnamed(review: Review) -> Iterator[str]:
    """Give of which groups there are no names in both times."""
    for kind in _COLUMNS:
        named = [_names(period.accounting, kind)[1] for _, period in review.times]
        cure = "; import with --user-names" if kind == "user" else ""
        if named[0] != named[1]:
            yield f"only one of the logs has the names of its {kind}s: they were not compared{cure}"
        elif not named[0]:
            yield f"{kind}s are compared by number, which is theirs only if both logs are of one import{cure}"


# Verdict --------------------------------------------------------------------------------------------------------------

# Did a change of the queue's order help? Only where the ways to take the load into account agree.


_SIDES = {"better": "lower", "worse": "higher"}  # nothing is called good or bad before the verdict
_CONTRARY = {"better": "worse", "worse": "better"}
_HELPED: dict[Light, str] = {
    "better": "It helped",
    "worse": "It did not help",
    "cannot tell": "Cannot tell whether it helped",
}
_SAME_MACHINE = 0.02  # of its processors
_MOST_LOSERS = 5
_STILL_WAITING = 0.01  # of the jobs: those that wait longest would be missing from the means


def verdict_of(review: Review) -> Verdict:
    """Return the verdict on two times."""
    caveats = (*_caveats(review), *_simulated(review))
    if why := [*_not_comparable(review)]:
        return Verdict("cannot tell", ("Cannot tell whether it helped: " + "; ".join(why) + ".",), caveats)
    light, reason = _judged(review.ways)
    sentences = (
        f"By {way.name}, the mean bounded slowdown changed by {in_words(way.bsld)}, the mean wait by "
        f"{in_words(way.wait, 's')}."
        for way in review.ways
    )
    return Verdict(light, (f"{_HELPED[light]}: {reason}.", *sentences, *_who(review)), caveats)


def _judged(ways: Sequence[Way]) -> tuple[Light, str]:
    """Return whether it helped, and why: the simulation and one more way have to agree."""
    words = [word_of(way.bsld.interval) for way in ways if way.bsld.interval is not None]
    called = [word for word in words if word in _SIDES]
    if len({*called}) > 1:
        return "cannot tell", "the ways to take the load into account contradict each other; wait for more weeks"
    if len(words) < 2:
        return "cannot tell", (
            "fewer than two ways to take the load into account give an interval; wait for more weeks"
        )
    if len(called) < 2:
        return "cannot tell", "no difference is shown that two ways agree on"
    simulated = [way for way in ways if way.simulated]
    findings = [Finding(word_of(way.bsld.interval)) for way in simulated]
    if judge(findings) == "cannot tell":
        return "cannot tell", (
            "weeks of like load differ, and no simulation shows it; in a busier time such weeks find more jobs waiting "
            "from the weeks before"
        )
    lower, higher = _SIDES[called[0]], _SIDES[_CONTRARY[called[0]]]
    reason = (
        f"at equal load the mean bounded slowdown is {lower} by {len(called)} of {len(words)} ways, {higher} by none"
    )
    against = [way.name for way in ways if word_of(way.wait.interval) == _CONTRARY[called[0]]]
    if against:
        reason += f"; but the mean wait is {higher} by {' and '.join(against)}"
    # What each week finds waiting from the weeks before, only the simulation knows: its mean wait has a vote.
    waits = [Finding(word_of(way.wait.interval), needed=False) for way in simulated]
    return judge([*findings, *waits]), reason


def _not_comparable(review: Review) -> Iterator[str]:
    """Give why the two times cannot be compared."""
    machines = [period.schedule.workload.machine for _, period in review.times]
    if abs(machines[1] - machines[0]) > _SAME_MACHINE * max(machines):
        guessed = not (review.before.accounting.machine_given and review.after.accounting.machine_given)
        cure = " (the most in use at once: give the true size, --processors)" if guessed else ""
        yield f"the machine had {machines[0]:,} processors before and {machines[1]:,} after{cure}"
    late = {name: period.accounting.late for name, period in review.times}
    if None in late.values() and any(late.values()):
        lacking = next(name for name, count in late.items() if count is None)
        yield (
            f"when jobs could run is not known of the time {lacking}, so that waits for begin times, holds and "
            "dependencies count as waits in it alone; take both with Eligible"
        )
    weeks = [len(period.weeks.jobs) for _, period in review.times]
    if min(weeks) < MIN_CASES:
        yield f"{counted(weeks[0], 'week')} before and {weeks[1]} after are too few, {MIN_CASES} each are needed"
        return
    for word, period in review.times:
        if period.accounting.waiting > _STILL_WAITING * len(period.schedule):
            yield (
                f"{counted(period.accounting.waiting, 'job')} of the time {word} still waited when its accounting was "
                "taken, and those that wait longest are missing from its means; take it again when they have started"
            )
    if nobody_waits(*(period.schedule for _, period in review.times)):
        yield "nobody waits in either time, so that the order of the queue changes nothing"
        return
    if len(review.pairs) < MIN_CASES:
        loads = [period.weeks.load for _, period in review.times]
        spans = [f"{load.min():.2f} to {load.max():.2f}" for load in loads]
        yield (
            f"the loads are not comparable: weeks have an offered load of {spans[0]} before and {spans[1]} after, and "
            f"only {counted(len(review.pairs), 'pair')} of weeks are alike"
        )


def _who(review: Review) -> Iterator[str]:
    """Give who lost and who gained, in words."""
    told = [group for group in review.groups if group.of_wait.interval is not None]
    if not told:
        yield "Who lost cannot be told: no user, size or partition has enough jobs in enough weeks of like load."
        return
    for word, called in (("lost", "worse"), ("gained", "better")):
        who = [group for group in told if word_of(group.of_wait.interval) == called]
        who.sort(key=lambda group: -abs(group.of_wait.value) * min(group.jobs))
        names = "; ".join(_in_words(group) for group in who[:_MOST_LOSERS])
        more = f"; and {len(who) - _MOST_LOSERS} more" if len(who) > _MOST_LOSERS else ""
        yield f"Who {word}: {names or 'nobody is shown to have'}{more}."
    chance = (1 - LEVEL) / 2 * len(told)
    yield (
        f"Of {counted(len(told), 'group')} looked at, chance alone would put {chance:.1f} among those who lost; groups "
        "are compared in the weeks of like load."
    )


def _in_words(group: Changed) -> str:
    name = f"{group.kind} {group.name}"
    if group.kind == "processors":
        name = f"jobs of {group.name} processor{'' if group.name == '1' else 's'}"
    before, after = (format_duration(mean.value) for mean in group.wait)
    return f"{name} ({before} to {after} on average)"


def _caveats(review: Review) -> Iterator[str]:
    for word, period in review.times:
        yield from (f"{word}: {sentence}" for sentence in requests_invented(period.schedule.workload))
        jobs, weeks = period.schedule.workload, period.weeks
        early, waiting = period.accounting.early, period.accounting.waiting
        left = len(period.accounting.log.job_id) - len(jobs) - early
        changed = [f"{step.jobs:,} changed ({step.what})" for step in jobs.cleaning.steps if step.action == "changed"]
        yield (
            f"{word}: {period.accounting.name}, {len(jobs):,} jobs in {counted(len(weeks.jobs), 'week')}, offered load "
            f"{float(np.average(weeks.load)):.2f}, {jobs.machine:,} processors"
            + ("" if period.accounting.machine_given else " (the most in use at once)")
            + (f"; {counted(left, 'job')} left out (no start, no use of the machine, or begun later)" if left else "")
            + (f"; {counted(early, 'job')} left out that were submitted in the time before" if early else "")
            + (f"; {counted(waiting, 'more job')} still waited" if waiting else "")
            + (f"; {period.accounting.late_text}" if period.accounting.late else "")
            + "".join(f"; {text}" for text in changed)
        )
    yield from _unnamed(review)
    if review.before.accounting.late is review.after.accounting.late is None:
        yield review.before.accounting.late_text
    yield "what else changed between the two times (users, software, limits, nodes that were down) counts as well"


def _simulated(review: Review) -> Iterator[str]:
    """Give what the policy gains in a simulation, and whether that is near enough to the record."""
    for name, gain in review.gains.items():
        yield (f"simulated {name}: the policy changes the mean bounded slowdown of {BASELINE} by {in_words(gain)}")
    for name, period in review.times:
        ratio = period.distance
        if max(ratio, 1 / ratio) > TOO_FAR:
            # A record that is much better may simply have the better order.
            why = "the scheduler does what a simulation leaves out"
            if ratio < 1:
                why = f"its order is better than {BASELINE}, or {why}"
            yield (
                f"{name}: the mean bounded slowdown of the record is {ratio:.2g} times that of simulated {BASELINE} "
                f"({len(period.schedule):,} jobs): {why}"
            )


# A review as sections -------------------------------------------------------------------------------------------------

# Tables of the ways, the weeks and the groups, and a picture of the weeks.


def sections_of(review: Review) -> tuple[Section, ...]:
    """Return what a review found."""
    return (_times(review), _ways(review), _groups(review), _weeks(review))


def _cell(estimate: Estimate) -> Cell:
    word = word_of(estimate.interval)
    mark = "" if estimate.interval is None else _SIDES.get(word, word)
    return Cell(estimate.value if np.isfinite(estimate.value) else None, estimate.interval, mark)


def _times(review: Review) -> Section:
    columns: Columns = {
        Column("time"): lambda name, *_: name,
        Column("jobs", ""): lambda _, period, *__: float(len(period.schedule)),
        Column("weeks", ""): lambda _, period, *__: float(len(period.weeks.jobs)),
        **MEANS,
    }
    rows = [(name, period, means_of(period.schedule)) for name, period in review.times]
    return Section("times", "The two times as recorded", (), (Table.of("times", "As recorded", columns, rows),))


def _ways(review: Review) -> Section:
    columns: Columns = {
        Column("load taken into account by"): lambda way: way.name,
        Column("mean wait", "s"): lambda way: _cell(way.wait),
        Column("mean bounded slowdown", "1"): lambda way: _cell(way.bsld),
    }
    title = "What changed, after minus before, at like load"
    tables = [Table.of("ways", title, columns, [(way,) for way in review.ways])]
    if review.gains:
        of_policy: Columns = {
            Column("time"): lambda name, _: name,
            Column("mean bounded slowdown", "1"): lambda _, gain: _cell(gain),
        }
        title = "The policy less first come, first served, both simulated"
        tables.append(Table.of("simulated", title, of_policy, review.gains.items()))
    return Section("ways", "Did it help?", (), tuple(tables))


def _groups(review: Review) -> Section:
    columns: Columns = {
        Column("kind"): lambda group: group.kind,
        Column("group"): lambda group: group.name,
        Column("jobs before", ""): lambda group: float(group.jobs[0]),
        Column("jobs after", ""): lambda group: float(group.jobs[1]),
        Column("mean wait before", "s"): lambda group: group.wait[0].value,
        Column("mean wait after", "s"): lambda group: group.wait[1].value,
        Column("change of the mean wait", "s"): lambda group: _cell(group.of_wait),
        Column("change of the mean bounded slowdown", "1"): lambda group: _cell(group.of_bsld),
    }
    title = "Groups in the weeks of like load"
    tables = (Table.of("groups", title, columns, [(group,) for group in review.groups]),) if review.groups else ()
    return Section("groups", "Who gained, who lost", (), tables)


def _weeks(review: Review) -> Section:
    like = {("after", after): str(before + 1) for before, after in review.pairs}
    columns: Columns = {
        Column("time"): lambda name, *_: name,
        Column("week"): lambda _, period, week: f"{week + 1} (from {_begin(period, week)})",
        Column("offered load", "1"): lambda _, period, week: float(period.weeks.load[week]),
        Column("jobs", ""): lambda _, period, week: float(period.weeks.jobs[week]),
        Column("mean wait", "s"): lambda _, period, week: _mean(period, "wait", week),
        Column("mean bounded slowdown", "1"): lambda _, period, week: _mean(period, "bsld", week),
        Column("compared with week before"): lambda name, _, week: like.get((name, week), ""),
    }
    rows = [(name, period, week) for name, period in review.times for week in range(len(period.weeks.jobs))]
    table = Table.of("weeks", "The weeks of both times", columns, rows)

    @keeps_settings
    def draw() -> Figure:
        figure = new_figure()
        axes = figure.subplots()
        for (name, period), marker in zip(review.times, "o^", strict=True):
            axes.scatter(period.weeks.load, period.weeks.mean("bsld"), marker=marker, label=name, alpha=0.7)
        axes.set_xlabel("offered load of the week")
        axes.set_ylabel("mean bounded slowdown")
        axes.legend()
        return figure

    picture = Picture("load", "Mean bounded slowdown of each week against its offered load", draw)
    return Section("weeks", "Week by week", (), (table,), (picture,))


def _begin(period: Period, week: int) -> str:
    jobs = period.schedule.workload
    seconds = (jobs.unix_start or 0) + int(jobs.submit[0]) // jobs.ticks + WEEK * week
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d")


def _mean(period: Period, metric: str, week: int) -> float | None:
    value = float(period.weeks.mean(metric)[week])
    return value if np.isfinite(value) else None
