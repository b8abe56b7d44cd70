"""What the numbers of a learned policy rest on, in sentences that go wherever the verdict goes."""

from __future__ import annotations

import datetime as dt

import numpy as np

from policyfactory.core.text import counted
from policyfactory.core.units import format_duration
from policyfactory.simulate.schedule import Schedule
from policyfactory.workload.cleaning_report import CleaningReport
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import parse_windows

__all__ = ["caveats_of", "windows_too_short"]

_REQUESTS = 4  # of the longest requests, in a window: below, its end and its empty start decide
_MANY = 0.05  # share of the jobs or of the work


def caveats_of(report: CleaningReport, measured: Schedule) -> list[str]:
    """Return what was measured, and what was changed in the log before.

    Parameters
    ----------
    report : CleaningReport
        Of the whole log.
    measured : Schedule
        The jobs that the verdict is about, under any policy.
    """
    jobs = measured.workload
    machine = (
        f"{jobs.machine:,} processors ({report.machine_source})" if report.source else f"{jobs.machine:,} processors"
    )
    rest = (
        f"The verdict rests on {counted(len(jobs), 'job')}{_period(jobs)}, with an offered load of "
        f"{jobs.offered_load:.2f} on {machine}."
    )
    actions = {"dropped": "left out", "changed": "changed"}
    changes = [
        f"{100 * step.jobs / max(report.read, 1):.3g} % of the jobs {actions[step.action]} ({step.what})"
        for step in report.steps
        if step.action in actions and step.jobs
    ]
    return [rest, *([f"Of the log: {'; '.join(changes)}."] if changes else [])]


def _period(jobs: Workload) -> str:
    lasts = format_duration(float(jobs.submit[-1] - jobs.submit[0]) / jobs.ticks)
    if jobs.unix_start is None:
        return f" of {lasts}"
    first, last = (
        dt.datetime.fromtimestamp(jobs.unix_start + int(submit) // jobs.ticks, dt.UTC).date()
        for submit in (jobs.submit[0], jobs.submit[-1])
    )
    return f" of {lasts}, {first} to {last}"


def windows_too_short(workload: Workload, windows: str) -> str:
    """Return a warning if windows are shorter than several of the longest requests; nothing if they are long enough.

    Parameters
    ----------
    workload : Workload
        At least one job.
    windows : str
        How it is cut.
    """
    spec = parse_windows(windows)
    lasts = float(workload.submit[-1] - workload.submit[0]) / workload.ticks
    length = float(spec.length) if spec.length else lasts * spec.jobs / len(workload)
    long = workload.requested_time / workload.ticks > length / _REQUESTS
    work = workload.run_time.astype(np.float64) * workload.processors
    by_jobs, by_work = float(np.mean(long)), float(work[long].sum() / max(work.sum(), 1.0))
    if max(by_jobs, by_work) < _MANY:
        return ""
    return (
        f"--windows {windows}: windows of {format_duration(length)} begin on an empty machine and end with their last "
        f"job, and {100 * by_jobs:.2g} % of the jobs ({100 * by_work:.2g} % of the work) request more than a quarter "
        "of that: what waits for them is misjudged; leave out --windows (one continuous simulation), or make them "
        "longer"
    )
