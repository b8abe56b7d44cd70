"""Did a change of the queue's order help? Only where the ways to take the load into account agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.text import counted
from policyfactory.core.units import format_duration
from policyfactory.evaluate.verdict import requests_invented
from policyfactory.report.verdict import TOO_FAR, Light, Verdict
from policyfactory.review.judging import BASELINE
from policyfactory.review.simulated import in_words, means_of, nobody_waits, sign
from policyfactory.statistics.intervals import MIN_CASES

if TYPE_CHECKING:
    from policyfactory.review.compared import Review
    from policyfactory.review.groups import Changed

__all__ = ["judge"]

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
