"""Two times of a machine, before and after a change of the queue's order: did it help, and who lost.

Three ways take the load into account: pairs of weeks of like load, a regression on the load, and a simulation of both
times under one policy, from which the record is measured. A verdict needs the simulation and one more to agree.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.errors import WorkloadError
from policyfactory.core.picture import keeps_settings, new_figure
from policyfactory.core.text import counted, format_duration
from policyfactory.evaluation.verdict import requests_invented
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.report.sections import Cell, Column, Picture, Section
from policyfactory.report.verdict import TOO_FAR, Light, Verdict
from policyfactory.review.compare import BASELINE, METRICS, Period, Review, Way, changes
from policyfactory.review.times import (
    Accounting,
    Reading,
    by_regression,
    difference,
    difference_of,
    in_words,
    match_weeks,
    means_of,
    nobody_waits,
    of_matched,
    plain_table,
    read_accounting,
    sign,
    weeks_of_schedule,
)
from policyfactory.simulation.schedule import Schedule, recorded_schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.statistics.intervals import MIN_CASES, Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.review.compare import Changed, Review


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
    own = None if policy is None else resolve(policy)
    first, second = (_period(read_accounting(paths, reading)) for paths in (before, after))
    _check_order(first.accounting, second.accounting)
    pairs = match_weeks(first.weeks, second.weeks)
    base = [simulate(period.schedule.workload, BASELINE) for period in (first, second)]
    ways = [
        Way("weeks of like load", *(of_matched(first.weeks, second.weeks, pairs, metric) for metric in METRICS)),
        Way("regression on the load", *(by_regression(first.weeks, second.weeks, metric) for metric in METRICS)),
    ]
    # Where most requested times are not the users', a simulation is not of this queue: it has no vote.
    if not any(requests_invented(period.schedule.workload) for period in (first, second)):
        wait, bsld = (_beside_simulation(first, second, base, metric) for metric in METRICS)
        ways.append(Way(f"record less simulated {BASELINE}", wait, bsld, simulated=True))
    gains = {}
    if own is not None:
        gains = {
            name: difference(simulate(period.schedule.workload, own), simulated, "bsld")
            for name, period, simulated in zip(("before", "after"), (first, second), base, strict=True)
        }
    groups = changes(first, second, pairs) if pairs else []
    distances = tuple(
        means_of(period.schedule).bsld / means_of(simulated).bsld
        for period, simulated in zip((first, second), base, strict=True)
    )
    found = Review(
        before=first,
        after=second,
        pairs=pairs,
        ways=tuple(ways),
        groups=groups,
        gains=gains,
        distances=distances,
        verdict=Verdict("cannot tell", ()),
    )
    return dataclasses.replace(found, verdict=judge(found))


def _period(accounting: Accounting) -> Period:
    """Return a time; jobs without a recorded start are left out, and its verdict counts them."""
    jobs = accounting.workload
    known = jobs.start >= jobs.submit
    if not known.any():
        raise WorkloadError(
            f"{accounting.name}: no job has a recorded start, so nothing is known of its waits; import accounting with "
            "start times (Start of sacct)"
        )
    if not known.all():
        jobs = jobs.select(np.flatnonzero(known))
        accounting = dataclasses.replace(accounting, workload=jobs)
    schedule = recorded_schedule(jobs)
    return Period(accounting, schedule, weeks_of_schedule(schedule))


def _check_order(before: Accounting, after: Accounting) -> None:
    """Refuse times of which the second does not begin after the first ends."""
    ends = [one.workload.unix_start for one in (before, after)]
    if ends[0] is None or ends[1] is None:
        return
    last = ends[0] + int(before.workload.submit[-1]) // before.workload.ticks
    first = ends[1] + int(after.workload.submit[0]) // after.workload.ticks
    if first < last:
        raise WorkloadError(
            f"{after.name}: begins before the last submission of {before.name}; give times that follow each other "
            "(workload import --from, --to, or sacct -S, -E)"
        )


def _beside_simulation(before: Period, after: Period, base: list[Schedule], metric: str) -> Estimate:
    """Return by how much more the record differs from its simulation after than before."""
    each: list[Estimate] = [
        difference(period.schedule, simulated, metric) for period, simulated in zip((before, after), base, strict=True)
    ]
    return difference_of(each[1], each[0])


# Verdict --------------------------------------------------------------------------------------------------------------

# Did a change of the queue's order help? Only where the ways to take the load into account agree.


_SAME_MACHINE = 0.02  # of its processors
_MOST_LOSERS = 5
_STILL_WAITING = 0.01  # of the jobs: those that wait longest would be missing from the means


def judge(review: Review) -> Verdict:
    """Return the verdict on two times."""
    caveats = (*_caveats(review), *_simulated(review))
    if why := [*_not_comparable(review)]:
        return Verdict("cannot tell", ("Cannot tell whether it helped: " + "; ".join(why) + ".",), caveats)
    sentences = tuple(
        f"By {way.name}, the mean bounded slowdown changed by {in_words(way.bsld)}, the mean wait by "
        f"{in_words(way.wait, 's')}."
        for way in review.ways
    )
    told = [sign(way.bsld) for way in review.ways if way.bsld.interval is not None]
    who = _who(review)
    simulated = {sign(way.bsld) for way in review.ways if way.simulated}
    agreed = next((way for way in (-1, 1) if told.count(way) >= 2 and -way not in told), 0)
    if agreed and agreed in simulated:
        lower, higher = ("lower", "higher") if agreed < 0 else ("higher", "lower")
        against = [way for way in review.ways if sign(way.wait) == -agreed]
        first = (
            f"at equal load the mean bounded slowdown is {lower} by {told.count(agreed)} of {len(told)} ways, {higher} "
            "by none"
        )
        if against:
            first += f"; but the mean wait is {higher} by {' and '.join(way.name for way in against)}"
        if not any(way.simulated for way in against):
            light: Light = "better" if agreed < 0 else "worse"
            helped = "It helped" if agreed < 0 else "It did not help"
            return Verdict(light, (f"{helped}: {first}.", *sentences, *who), caveats)
        reason = first
    elif agreed:
        reason = (
            "weeks of like load differ, and no simulation shows it; in a busier time such weeks find more jobs waiting "
            "from the weeks before"
        )
    elif 1 in told and -1 in told:
        reason = "the ways to take the load into account contradict each other"
    elif len(told) < 2:
        reason = "fewer than two ways to take the load into account give an interval; wait for more weeks"
    else:
        reason = "no difference is shown that two ways agree on"
    return Verdict("cannot tell", (f"Cannot tell whether it helped: {reason}.", *sentences, *who), caveats)


def _not_comparable(review: Review) -> Iterator[str]:
    """Give why the two times cannot be compared."""
    machines = [period.schedule.workload.machine for period in (review.before, review.after)]
    if abs(machines[1] - machines[0]) > _SAME_MACHINE * max(machines):
        guessed = not (review.before.accounting.machine_given and review.after.accounting.machine_given)
        cure = " (the most in use at once: give the true size, --processors)" if guessed else ""
        yield f"the machine had {machines[0]:,} processors before and {machines[1]:,} after{cure}"
    weeks = [len(period.weeks.jobs) for period in (review.before, review.after)]
    if min(weeks) < MIN_CASES:
        yield f"{counted(weeks[0], 'week')} before and {weeks[1]} after are too few, {MIN_CASES} each are needed"
        return
    for word, period in (("before", review.before), ("after", review.after)):
        if period.accounting.waiting > _STILL_WAITING * len(period.schedule):
            yield (
                f"{counted(period.accounting.waiting, 'job')} of the time {word} still waited when its accounting was "
                "taken, and those that wait longest are missing from its means; take it again when they have started"
            )
    means = [means_of(period.schedule) for period in (review.before, review.after)]
    if nobody_waits(*means):
        yield "nobody waits in either time, so that the order of the queue changes nothing"
        return
    if len(review.pairs) < MIN_CASES:
        loads = [period.weeks.load for period in (review.before, review.after)]
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
    for word, way in (("lost", 1), ("gained", -1)):
        who = [group for group in told if sign(group.of_wait) == way]
        who.sort(key=lambda group: -abs(group.of_wait.value) * min(group.jobs))
        names = "; ".join(_in_words(group) for group in who[:_MOST_LOSERS])
        more = f"; and {len(who) - _MOST_LOSERS} more" if len(who) > _MOST_LOSERS else ""
        yield f"Who {word}: {names or 'nobody is shown to have'}{more}."
    chance = 0.025 * len(told)
    yield (
        f"Of {counted(len(told), 'group')} looked at, chance alone would put {chance:.1f} among those who lost; groups "
        "are compared in the weeks of like load."
    )


def _in_words(group: Changed) -> str:
    name = f"{group.kind} {group.name}"
    if group.kind == "processors":
        name = f"jobs of {group.name} processor{'' if group.name == '1' else 's'}"
    return f"{name} ({format_duration(group.wait[0])} to {format_duration(group.wait[1])} on average)"


def _caveats(review: Review) -> Iterator[str]:
    for word, period in (("before", review.before), ("after", review.after)):
        yield from (f"{word}: {sentence}" for sentence in requests_invented(period.schedule.workload))
        jobs, weeks = period.schedule.workload, period.weeks
        left = len(period.accounting.log.job_id) - len(jobs)
        waiting = period.accounting.waiting
        changed = [f"{step.jobs:,} changed ({step.what})" for step in jobs.cleaning.steps if step.action == "changed"]
        yield (
            f"{word}: {period.accounting.name}, {len(jobs):,} jobs in {counted(len(weeks.jobs), 'week')}, offered load "
            f"{float(np.average(weeks.load)):.2f}, {jobs.machine:,} processors"
            + ("" if period.accounting.machine_given else " (the most in use at once)")
            + (f"; {counted(left, 'job')} left out (no start, or no use of the machine)" if left else "")
            + (f"; {counted(waiting, 'more job')} still waited" if waiting else "")
            + "".join(f"; {text}" for text in changed)
        )
    yield "what else changed between the two times (users, software, limits, nodes that were down) counts as well"


def _simulated(review: Review) -> Iterator[str]:
    """Give what the policy gains in a simulation, and whether that is near enough to the record."""
    for name, gain in review.gains.items():
        yield (f"simulated {name}: the policy changes the mean bounded slowdown of {BASELINE} by {in_words(gain)}")
    for name, period, ratio in zip(("before", "after"), (review.before, review.after), review.distances, strict=True):
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


_MARKS = {-1: "lower", 0: "no difference", 1: "higher"}  # better or worse is for the verdict


def sections_of(review: Review) -> tuple[Section, ...]:
    """Return what a review found."""
    return (_times(review), _ways(review), _groups(review), _weeks(review))


def _cell(estimate: Estimate) -> Cell:
    mark = "" if estimate.interval is None else _MARKS[sign(estimate)]
    return Cell(estimate.value if np.isfinite(estimate.value) else None, estimate.interval, mark)


def _times(review: Review) -> Section:
    columns = (
        Column("time"),
        Column("jobs", ""),
        Column("weeks", ""),
        Column("mean wait", "s"),
        Column("mean bounded slowdown", "1"),
        Column("longest wait", "s"),
        Column("jobs that wait longer than 10 s", "%"),
    )
    rows = []
    for name, period in (("before", review.before), ("after", review.after)):
        of, weeks = means_of(period.schedule), period.weeks
        jobs = float(len(period.schedule))
        rows.append((name, jobs, float(len(weeks.jobs)), of.wait_s, of.bsld, of.longest_s, 100 * of.waiting))
    return Section("times", "The two times as recorded", (), (plain_table("times", "As recorded", columns, rows),))


def _ways(review: Review) -> Section:
    columns = (Column("load taken into account by"), Column("mean wait", "s"), Column("mean bounded slowdown", "1"))
    rows = [(way.name, _cell(way.wait), _cell(way.bsld)) for way in review.ways]
    tables = [plain_table("ways", "What changed, after minus before, at like load", columns, rows)]
    if review.gains:
        of_policy = (Column("time"), Column("mean bounded slowdown", "1"))
        gains = [(name, _cell(gain)) for name, gain in review.gains.items()]
        title = "The policy less first come, first served, both simulated"
        tables.append(plain_table("simulated", title, of_policy, gains))
    return Section("ways", "Did it help?", (), tuple(tables))


def _groups(review: Review) -> Section:
    columns = (
        Column("kind"),
        Column("group"),
        Column("jobs before", ""),
        Column("jobs after", ""),
        Column("mean wait before", "s"),
        Column("mean wait after", "s"),
        Column("change of the mean wait", "s"),
        Column("change of the mean bounded slowdown", "1"),
    )
    rows = [
        (
            group.kind,
            group.name,
            *(float(count) for count in group.jobs),
            *group.wait,
            _cell(group.of_wait),
            _cell(group.of_bsld),
        )
        for group in review.groups
    ]
    tables = (plain_table("groups", "Groups in the weeks of like load", columns, rows),) if rows else ()
    return Section("groups", "Who gained, who lost", (), tables)


def _weeks(review: Review) -> Section:
    columns = (
        Column("time"),
        Column("week"),
        Column("offered load", "1"),
        Column("jobs", ""),
        Column("mean wait", "s"),
        Column("mean bounded slowdown", "1"),
        Column("compared with week before"),
    )
    rows = []
    like = {after: before for before, after in review.pairs}
    for name, period in (("before", review.before), ("after", review.after)):
        weeks, jobs = period.weeks, period.schedule.workload
        begins = (jobs.unix_start or 0) + int(jobs.submit[0]) // jobs.ticks
        for at, (load, count, wait, bsld) in enumerate(
            zip(weeks.load, weeks.jobs, weeks.mean("wait"), weeks.mean("bsld"), strict=True)
        ):
            date = dt.datetime.fromtimestamp(begins + 7 * 86_400 * at, dt.UTC).strftime("%Y-%m-%d")
            other = str(like[at] + 1) if name == "after" and at in like else ""
            values = (float(value) if np.isfinite(value) else None for value in (wait, bsld))
            rows.append((name, f"{at + 1} (from {date})", float(load), float(count), *values, other))
    table = plain_table("weeks", "The weeks of both times", columns, rows)

    @keeps_settings
    def draw() -> Figure:
        figure = new_figure()
        axes = figure.subplots()
        for name, period, marker in (("before", review.before, "o"), ("after", review.after, "^")):
            axes.scatter(period.weeks.load, period.weeks.mean("bsld"), marker=marker, label=name, alpha=0.7)
        axes.set_xlabel("offered load of the week")
        axes.set_ylabel("mean bounded slowdown")
        axes.legend()
        return figure

    picture = Picture("load", "Mean bounded slowdown of each week against its offered load", draw)
    return Section("weeks", "Week by week", (), (table,), (picture,))
