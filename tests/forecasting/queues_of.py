"""A log with habits and queues of it, under EASY and on a site."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from daily_log import habits
from policyfactory.forecasting.record import Loop, loop_of
from policyfactory.site.model import NodeGroup, Partition, Site
from policyfactory.workload.jobs import Workload

__all__ = ["SITE", "busy", "given_up", "loop", "recorded_log", "snapshot_at"]

SITE = Site("made", (NodeGroup("n[1-16]", 1),), (Partition("all", default=True), Partition("short", max_time=7200)))

_LOOPS: dict[tuple[str, int, bool], tuple[Loop, list[int]]] = {}


@functools.cache
def busy(weeks: int = 10) -> Workload:
    """Return a log of one user after another with habits of their own, in which jobs wait for half a day."""
    return dataclasses.replace(habits(weeks), name="busy")


def given_up(log: Workload) -> np.ndarray:
    """Return when a third of the jobs are cancelled if they wait still: after two hours on average."""
    rng = np.random.default_rng(7)
    patience = 1 + rng.exponential(7200, len(log)).astype(np.int64)
    return np.where(rng.random(len(log)) < 1 / 3, log.submit + patience, -1)


def loop(site: Site | None = None, weeks: int = 10, *, cancels: bool = False) -> tuple[Loop, list[int]]:
    """Return what happens to the log, and instants of its second half at which a job waits."""
    made = repr(site), weeks, cancels
    if made not in _LOOPS:
        log = busy(weeks)
        submit = np.unique(log.submit)
        instants = submit[len(submit) // 2 : -200 : 40]
        found = loop_of(log, site, instants, given_up(log) if cancels else None, is_recorded=False)
        submit, record = found.record.jobs.submit, found.record
        waiting = [now for now in instants.tolist() if (submit[record.waiting(now)] < now).any()]
        _LOOPS[made] = found, waiting
    return _LOOPS[made]


def recorded_log(found: Loop) -> Workload:
    """Return the log with the starts that it had."""
    return dataclasses.replace(found.record.jobs, start=found.record.start)


def snapshot_at(found: Loop, now: int):
    """Return the queue of an instant as squeue would show it."""
    return found.standing(now).snapshot
