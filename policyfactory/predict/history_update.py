"""From a look at the accounting to what is known of the users: a history goes on from where it stood."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from policyfactory.core.errors import TraceFormatError, UsageError
from policyfactory.core.units import DAY
from policyfactory.predict.history import NO_NAME, Ended, History, HistoryLimits, Means, Started, UserPast
from policyfactory.workload.accounting.record import NAMES, NUMBERS, Limit, RecordBlock, State
from policyfactory.workload.accounting.sacct import read
from policyfactory.workload.accounting.source import Source
from policyfactory.workload.accounting.times import Clock

__all__ = ["UNLIMITED_S", "SiteJob", "Update", "read_jobs", "update"]

# Stands for the request of a job without a limit, as in the scripts of the schedulers.
UNLIMITED_S = 365 * DAY
# Field 11 of SWF.
_STATUS = {
    State.completed: 1, State.failed: 0, State.timeout: 0, State.node_fail: 0, State.cancelled: 5,
}  # fmt: skip
_LONGEST_ID, _LONGEST_NAME = 40, 100
_WANTED = ("user", "group", "name")
_DIGITS = re.compile(r"[0-9]+")
_ODD = re.compile(r"[^\w+\[\].,:%-]", re.ASCII)
_COLUMNS = "JobID,UID,GID,State,Submit,Start,End,ElapsedRaw,TimelimitRaw,ReqCPUS,AllocCPUS,AllocNodes"


class SiteJob(NamedTuple):
    """A line of the accounting: the job's number, those of user and group, times (Unix s, -1 for none), and so on.

    In the name each number is one ``#``.
    """

    job: str
    user: str
    group: str
    submit: int
    start: int
    end: int
    run: int
    request: int
    processors: int
    state: State
    tasks: int
    name: str = ""


class Update(NamedTuple):
    """What an update did.

    Parameters
    ----------
    ended : int
        Ends that were noted.
    waiting, running : int
        Jobs that wait and run.
    changed : tuple of str
        Numbers of the users of whom a job has ended since the last update.
    """

    ended: int
    waiting: int
    running: int
    changed: tuple[str, ...]


def read_jobs(path: Path | str, zone: dt.tzinfo = dt.UTC) -> list[SiteJob]:
    """Return the jobs of an output of ``sacct -P``, one line each: of a job that is there twice, the later run.

    Raises
    ------
    TraceFormatError
        If columns are missing, or users are not numbers.
    InputError
        If the file cannot be read.
    """
    source = Source(path)
    if not source.head.strip():
        raise TraceFormatError(
            f"{source.name}: is empty, without even the header line of sacct -P; did sacct fail? Nothing was changed"
        )
    latest: dict[str, tuple[tuple[int, int], SiteJob]] = {}
    for block in read(source.blocks(), source.name, Clock(zone)):
        for job in _jobs_of(block, source.name) if isinstance(block, RecordBlock) else ():
            when = (job.submit, job.start)
            if job.job not in latest or latest[job.job][0] <= when:
                latest[job.job] = (when, job)
    return [job for _, job in latest.values()]


def _jobs_of(block: RecordBlock, place: str) -> Iterator[SiteJob]:
    columns = {name: block.numbers[at].tolist() for at, name in enumerate(NUMBERS)}
    users, groups, names = (
        [texts[code] for code in codes] for codes, texts in (block.names[NAMES.index(name)] for name in _WANTED)
    )
    for row, job in enumerate(block.job):
        state, user = State(columns["state"][row]), users[row]
        if state not in _STATUS and state not in (State.running, State.pending):
            continue
        if not (user.isascii() and user.isdigit()):
            raise TraceFormatError(
                f"{place}:{columns['line'][row]}: the user is {user[:40]!a}, a number is needed; ask for the "
                f"column UID: sacct -a -X -P -o {_COLUMNS}"
            )
        limit, size = columns["limit"][row], columns["requested"][row]
        if limit <= 0 and columns["limit_kind"][row] != Limit.unlimited:
            continue  # the request is not known, and nothing can be told from such a job
        yield SiteJob(
            _ODD.sub("_", job[:_LONGEST_ID]),
            user,
            groups[row] if groups[row].isascii() and groups[row].isdigit() else "",
            columns["submit"][row],
            columns["start"][row] if columns["allocated"][row] != 0 else -1,
            columns["end"][row],
            columns["elapsed"][row],
            limit if limit > 0 else UNLIMITED_S,
            max(size if size > 0 else columns["allocated"][row], 1),
            state,
            columns["tasks"][row],
            _DIGITS.sub("#", names[row])[:_LONGEST_NAME],
        )


def update(
    history: History, jobs: Sequence[SiteJob], at: int, hashed: Callable[[str], str], limits: HistoryLimits
) -> Update:
    """Bring a history up to an instant.

    Parameters
    ----------
    history : History
        Changed in place.
    jobs : sequence of SiteJob
        All that waited, ran or ended since the last update, at least.
    at : int
        Unix s; what happened later is left to the next update.
    hashed : function of str to str
        The hash of a name.
    limits : HistoryLimits
        How much is kept.

    Raises
    ------
    UsageError
        If the history is of a later instant.
    """
    if at < history.at:
        raise UsageError(
            f"the history is of {history.at}, later than {at} (Unix s); was the clock put back? Wait until then, or "
            "remove the file to begin anew"
        )
    ordered = sorted(jobs, key=lambda job: (job.submit, job.job))
    if ordered:
        history.names = any(job.name for job in ordered)
    ran = [job for job in ordered if job.start >= 0 or job.state not in _STATUS]
    _note_submissions(history, ran, at, hashed)
    waiting, running = _note_present(history, ran, at, hashed)
    _note_starts(history, ran, at, hashed)
    ended, changed = _note_ends(history, ran, at, hashed)
    history.at = at
    history.forget(limits)
    return Update(ended, waiting, running, tuple(sorted(changed, key=int)))


def _user(history: History, job: SiteJob, hashed: Callable[[str], str]) -> UserPast:
    name = hashed(f"u{job.user}")
    return history.user(name) or history.users.setdefault(name, UserPast())


def _note_submissions(history: History, jobs: Sequence[SiteJob], at: int, hashed: Callable[[str], str]) -> None:
    for job in jobs:
        if history.at < job.submit <= at:
            _user(history, job, hashed).note_submission(job.submit, job.tasks)


def _note_present(history: History, jobs: Sequence[SiteJob], at: int, hashed: Callable[[str], str]) -> tuple[int, int]:
    """Count what waits and runs at the instant; it replaces what the last look saw."""
    for user in history.users.values():  # nothing waits or runs of those asleep
        user.waiting = user.running = 0
    counts = [0, 0]
    for job in jobs:
        if job.submit > at or 0 <= job.end <= at:
            continue
        user = _user(history, job, hashed)
        if 0 <= job.start <= at:
            user.running += 1
            counts[1] += 1
        else:
            user.waiting += job.tasks
            counts[0] += job.tasks
    return counts[0], counts[1]


def _note_starts(history: History, jobs: Sequence[SiteJob], at: int, hashed: Callable[[str], str]) -> None:
    started = sorted((job for job in jobs if 0 <= job.start <= at), key=lambda job: job.start)
    for job in started:
        user = _user(history, job, hashed)
        if user.started is None or job.start >= user.started.start:
            user.started = Started(job.start, job.request, job.processors, int(not 0 <= job.end <= at))


def _note_ends(
    history: History, jobs: Sequence[SiteJob], at: int, hashed: Callable[[str], str]
) -> tuple[int, set[str]]:
    """Note the ends that were not noted yet; return how many there were, and the numbers of their users."""
    new = [
        job
        for job in jobs
        if job.state in _STATUS and history.floor < job.end <= at and history.noted.get(job.job) != job.end
    ]
    changed = {job.user for job in new}
    for job in sorted(new, key=lambda one: one.end):
        ended = Ended(job.end, job.request, job.processors, max(job.run, 0), _STATUS[job.state])
        executable = hashed(f"n{job.name}") if history.names and job.name else NO_NAME
        _user(history, job, hashed).note_end(ended, executable)
        if job.group:
            history.groups.setdefault(hashed(f"g{job.group}"), Means()).note(ended)
        history.shapes.setdefault(hashed(f"s{job.request}/{job.processors}"), Means()).note(ended)
        history.noted[job.job] = job.end
    return len(new), changed
