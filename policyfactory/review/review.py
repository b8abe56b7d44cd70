"""Two times of a machine, before and after a change of the queue's order: did it help, and who lost.

Three ways take the load into account: pairs of weeks of like load, a regression on the load, and a simulation of both
times under one policy, from which the record is measured. A verdict needs the simulation and one more to agree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from policyfactory.core.errors import WorkloadError
from policyfactory.evaluate.verdict import requests_invented
from policyfactory.policy.catalogue import PolicyLike, resolve
from policyfactory.report.verdict import Verdict
from policyfactory.review.accounting import Accounting, Reading, read_accounting
from policyfactory.review.compared import METRICS, Review, Way
from policyfactory.review.groups import Period, changes
from policyfactory.review.judging import BASELINE
from policyfactory.review.simulated import difference, means_of
from policyfactory.review.verdict import judge
from policyfactory.review.weeks import by_regression, difference_of, match_weeks, of_matched, weeks_of_schedule
from policyfactory.simulate.schedule import Schedule, recorded_schedule
from policyfactory.simulate.simulate import simulate
from policyfactory.statistics.intervals import Estimate

__all__ = ["review"]


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
    found = Review(first, second, pairs, tuple(ways), groups, gains, distances, Verdict("cannot tell", ()))
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
