"""What the numbers of an evaluation rest on, in sentences that go wherever the verdict goes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence

import numpy as np

from policyfactory.core.arrays import FloatArray
from policyfactory.core.text import counted, enumerated
from policyfactory.core.units import DAY, format_duration
from policyfactory.predict.features import missing
from policyfactory.predict.options import PredictorOptions
from policyfactory.workload.cleaning_report import CleaningReport
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import WindowSpec

__all__ = ["basis_in_words", "invented_share", "predictions_in_words", "windows_too_short"]

_REQUESTS = 4  # of the longest requests, in a window: below, its end and its empty start decide
_MANY = 0.05  # share of the jobs or of the work: more than that is said
_MOST = 0.25  # and with more than that there is no conclusion


def basis_in_words(jobs: Workload, load: float = 1.0) -> tuple[str, ...]:
    """Return what was measured, and what was changed in the log before.

    Parameters
    ----------
    jobs : Workload
        Those that the verdict is about; its account is of the whole log.
    load : float
        How many times as fast the jobs arrive as in the log.
    """
    report = jobs.cleaning
    machine = f"{jobs.machine:,} processors"
    if report.source:
        machine += f" ({report.machine_source})"
    faster = "" if load == 1 else f", the jobs arriving {load:g} times as fast as in the log"
    offered = jobs.offered_load * load
    have = f"an offered load of {offered:.2f} on {machine}{faster}"
    if math.isnan(offered):
        have = f"no offered load, which is work over time; the machine has {machine}"
    rest = f"The verdict rests on {counted(len(jobs), 'job')}{_period(jobs)}; these have {have}."
    actions = {"dropped": "left out", "changed": "changed"}
    changes = [
        f"{100 * step.jobs / max(report.read, 1):.3g} % of the jobs {actions[step.action]} ({step.what})"
        for step in report.steps
        if step.action in actions and step.jobs
    ]
    return (rest, *([f"Of the log: {'; '.join(changes)}."] if changes else []))


def invented_share(report: CleaningReport) -> float:
    """Return the share of the jobs kept whose requested time is not the user's."""
    invented = sum(
        step.jobs for step in report.steps if step.action == "changed" and step.what.startswith("no requested time")
    )
    return invented / max(report.kept, 1)


def _period(jobs: Workload) -> str:
    span = float(jobs.submit[-1] - jobs.submit[0]) / jobs.ticks
    lasts = f" of {format_duration(span)}" if span else " submitted at one instant"
    if jobs.unix_start is None:
        return lasts
    first, last = (
        dt.datetime.fromtimestamp(jobs.unix_start + int(submit) // jobs.ticks, dt.UTC).date()
        for submit in (jobs.submit[0], jobs.submit[-1])
    )
    return f"{lasts}, {first} to {last}" if span else f"{lasts}, {first}"


def predictions_in_words(
    names: Sequence[str], jobs: Workload, windows: WindowSpec | None, *, drawn: bool = False
) -> tuple[str, ...]:
    """Return from what policies are predicted with, and from when on; nothing without such policies.

    Parameters
    ----------
    names : sequence of str
        The policies that read predictions.
    jobs : Workload
        The log; at least one job.
    windows : WindowSpec or None
        How it is cut.
    drawn : bool
        Whether resampled logs are simulated.
    """
    if not names:
        return ()
    options = PredictorOptions()
    said = [
        (
            f"{enumerated(names)} {'reads' if len(names) == 1 else 'read'} predictions, which each case makes from its "
            f"own past: from day {options.first_days:g} and {options.least:,} ended jobs on, and before that from the "
            "request alone."
        )
    ]
    if windows is not None:
        lasts = float(jobs.submit[-1] - jobs.submit[0]) / jobs.ticks
        share = windows.jobs / len(jobs) if windows.jobs else windows.length / max(lasts, 1.0)
        if share * lasts < options.first_days * DAY or share * len(jobs) < options.least:
            said.append(
                f"Windows of {windows} end, on average, before that: whole logs or longer windows show what "
                "predictions are worth."
            )
    if drawn:
        said.append(
            "A resampled log has some weeks of a user several times, and what was seen of a job is known of its "
            "copies: predictions look better there than they are."
        )
    return (*said, *(f"To predict from, the log lacks {what}." for what in missing(jobs)))


def windows_too_short(jobs: Workload, windows: WindowSpec, *, unsound: bool = False) -> tuple[str, ...]:
    """Return a warning if windows are shorter than several of the longest requests; nothing if they are long enough.

    Parameters
    ----------
    jobs : Workload
        At least one job.
    windows : WindowSpec
        How they are cut.
    unsound : bool
        Only if so much is misjudged that there can be no conclusion.
    """
    lasts = float(jobs.submit[-1] - jobs.submit[0]) / jobs.ticks
    length = float(windows.length) if windows.length else lasts * windows.jobs / len(jobs)
    long = jobs.requested_time / jobs.ticks > length / _REQUESTS
    work = jobs.run_time.astype(np.float64) * jobs.processors
    by_jobs, by_work = float(np.mean(long)), float(work[long].sum() / max(work.sum(), 1.0))
    busy = float(np.mean(_busy_periods(jobs) > length / _REQUESTS))
    if max(by_jobs, by_work, busy) < (_MOST if unsound else _MANY):
        return ()
    return (
        (
            f"Windows of {format_duration(length)} ({windows}) begin on an empty machine and end with their "
            f"last job, and {100 * by_jobs:.2g} % of the jobs ({100 * by_work:.2g} % of the work) request more than a "
            f"quarter of that, {100 * busy:.2g} % come in busy periods longer than that: what waits for them is "
            "misjudged. Leave out --windows (one continuous simulation), or make them longer."
        ),
    )


def _busy_periods(jobs: Workload) -> FloatArray:
    """Return the length in seconds of the busy period in which each job comes: float64 array (jobs,).

    Of a machine that packs perfectly: it is busy from a job that finds no work left until all work that came is done.
    """
    arrival = jobs.submit / jobs.ticks
    come = np.cumsum(jobs.run_time.astype(np.float64) * jobs.processors) / (jobs.machine * jobs.ticks)
    before = np.concatenate([[0.0], come[:-1]]) - arrival
    least = np.minimum.accumulate(before)
    first = np.flatnonzero(before <= least)
    last = np.append(first[1:], len(jobs)) - 1
    length = arrival[last] - arrival[first] + (come - arrival - least)[last]
    repeated: FloatArray = np.repeat(length, last - first + 1)
    return repeated
