"""What a log is good for, and what it is not: in words, from its numbers."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np

from policyfactory.core.text import WEEK, counted, format_duration
from policyfactory.workload.describe import (
    LONG_WAIT,
    Description,
    WaitTable,
    mean,
    room_share,
    share,
    wait_tables,
)
from policyfactory.workload.machine import joined_log, size_of
from policyfactory.workload.presets import FEW_MISSING
from policyfactory.workload.resample import VERDICT_WEEKS
from policyfactory.workload.swf.log import SwfLog

Grade = Literal["good", "limited", "no"]

_ALL = 0.99  # share from which "all" is said
_AT_ONCE = 1  # s: who waits no longer started at the submission
_MANY_PROCESSORS = 256  # a machine that serial jobs alone seldom fill
_HALF = 0.5  # of the machine in use, or of the jobs that waited
_ROOM = 0.3  # of the jobs that waited long, while all would have fit: more than that waits for what is not simulated
_IDLE, _QUIET = 0.3, 0.5  # load below which hardly anybody waits, or few do
_FEWEST, _FEW = 250, 2_000  # jobs
_WEEKS, _MANY_WEEKS = 4, 2 * VERDICT_WEEKS  # learn keeps half of a log for its verdict
FULL = 0.9  # of the machine in use: then somebody has to wait
# What headers of logs of many sites say of themselves; Grid Engine is a scheduler.
_SITES = re.compile(r"\b(?:multiple|many|several|\d{1,6}) (?:sites|clusters)\b|\bgrid\b(?!\s*engine)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """What a log can be used for.

    Parameters
    ----------
    name : str
        The use.
    grade : str
        ``"good"``, ``"limited"`` or ``"no"``.
    why : str
        The reasons.
    """

    name: str
    grade: Grade
    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class LogJudgement:
    """What is to be known before a log is used.

    Parameters
    ----------
    findings : tuple of str
        What forbids a use, or limits one, in sentences.
    uses : tuple of Use
        What the log is good for.
    waits : tuple of WaitTable
        The recorded waits over time, by queue and by partition.
    """

    findings: tuple[str, ...]
    uses: tuple[Use, ...]
    waits: tuple[WaitTable, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the judgement as JSON values."""
        uses = [dataclasses.asdict(use) for use in self.uses]
        return {"findings": list(self.findings), "uses": uses, "waits": [table.as_dict() for table in self.waits]}


@dataclasses.dataclass(frozen=True, slots=True)
class _Facts:
    """What the judgement rests on; shares are 0 to 1, NaN where the log does not say."""

    jobs: int  # that ran and can be simulated
    weeks: float
    load: float  # work of the jobs over the capacity from first to last submission
    known_waits: float  # share of the jobs with a recorded wait
    at_once: float  # of those, share that started at the submission
    mean_wait: float  # s
    room: float  # of those that waited long, share for which there was room
    peak: float  # most processors in use at once, over the machine's
    sites: str  # why this looks like a log of many sites; empty if the jobs do not
    hint: str  # what the header says of many sites, or nothing

    @property
    def starts_at_once(self) -> bool:
        """Whether hardly any job has a wait in the record."""
        return self.at_once > _ALL

    @property
    def starts_for_submits(self) -> bool:
        """Whether that cannot be, as the machine is full at times."""
        return self.starts_at_once and self.peak >= FULL


def judge_log(log: SwfLog, description: Description) -> LogJudgement:
    """Return what a log is good for.

    Parameters
    ----------
    log : SwfLog
        As it was read.
    description : Description
        Its numbers.
    """
    log = joined_log(log)
    facts = _facts(log, description)
    uses = (
        _use("learning an order", _learning(facts, description)),
        _use("testing an order", _testing(facts, description)),
        _use("comparing with the recorded schedule", _comparing(facts, description)),
        _use("predicting run times", _predicting(log, facts)),
        _use("the load of the machine", _loading(facts, description)),
    )
    return LogJudgement(tuple(_findings(facts, description)), uses, wait_tables(log))


def _facts(log: SwfLog, description: Description) -> _Facts:
    size = size_of(log)
    ran = (log.run_time > 0) & (size > 0) & (log.submit >= 0)
    waits = log.wait[ran & (log.wait >= 0)]
    known = share(log.wait >= 0, ran)
    machine, span = description.machine, description.span
    work = float((log.run_time[ran].astype(np.float64) * size[ran]).sum())
    # Without the other jobs' starts nobody knows what was free.
    room = room_share(log, machine) if machine is not None and known > _ALL else math.nan
    facts = _Facts(
        jobs=int(np.count_nonzero(ran)),
        weeks=0.0 if math.isnan(span) else span / WEEK,
        load=work / (machine * span) if machine is not None and span > 0 else math.nan,
        known_waits=0.0 if math.isnan(known) else known,
        at_once=share(waits <= _AT_ONCE),
        mean_wait=mean(waits),
        room=room,
        peak=description.peak_processors / machine if machine is not None else math.nan,
        sites="",
        hint=_hint(log),
    )
    return dataclasses.replace(facts, sites=_many_sites(description, facts))


def _hint(log: SwfLog) -> str:
    """Return what the header says of many sites."""
    for label in ("Computer", "Installation", "MaxNodes"):
        for value in log.header.values(label):
            if found := _SITES.search(value[:1000]):
                return f"The header's {label} speaks of {found.group(0)!a}"
    return ""


def _many_sites(description: Description, facts: _Facts) -> str:
    """Return why the jobs look like those of many sites added together; empty if they do not."""
    machine, peak = description.machine, description.peak_processors
    if machine is None or machine < _MANY_PROCESSORS or facts.jobs < _FEW or not description.serial_share > _ALL:
        return ""
    if peak < _HALF * machine:
        return (
            f"{_percent(description.serial_share)} of the jobs take one processor, and at no time were more than "
            f"{peak:,} of the {machine:,} processors in use"
        )
    if facts.room > _HALF:
        return (
            f"{_percent(description.serial_share)} of the jobs take one processor, and {_percent(facts.room)} of those "
            "that waited long did so while there were processors for all"
        )
    return ""


def _percent(part: float) -> str:
    return f"{100 * part:.3g} %"


def _findings(facts: _Facts, description: Description) -> Iterator[str]:
    if facts.sites:
        yield (
            f"This looks like the log of many sites added together: {facts.sites}. Jobs of different sites never stood "
            "in one queue; take those of one site (its partition or queue) and the processors of that site."
        )
    elif facts.hint:
        yield f"{facts.hint}: if its jobs did not stand in one queue, take those of one site, with its processors."
    if not facts.known_waits:
        yield "No wait is recorded: nobody can say how long jobs waited, nor compare a policy with what the site has."
    elif facts.starts_at_once:
        part = _percent(facts.at_once)
        at_once = f"{part} of the jobs with a recorded wait started within {_AT_ONCE} s of their submission"
        if facts.starts_for_submits:
            yield (
                f"The submit times are the start times: {at_once}, and a machine that is full at times cannot do that. "
                "The log says nothing about waiting: ask for the accounting with the real submissions."
            )
        else:
            yield (
                f"Nobody waited in the record: {at_once}. Either the submit times are the start times, or there was "
                f"always room (at most {_percent(facts.peak)} of the machine was in use)."
            )
    elif facts.room > _ROOM:
        yield (
            f"{_percent(facts.room)} of the jobs that waited longer than {format_duration(LONG_WAIT)} did so mostly "
            "while the machine had room for all jobs that were there: in the record they wait for what the log does "
            "not have (limits of users and queues, partitions, reservations, nodes that were down), and not for the "
            "order of the queue."
        )
    if facts.load < _QUIET:
        waiting = "hardly anybody waits" if facts.load < _IDLE else "few wait"
        yield (
            f"The load is {_percent(facts.load)} of the machine: {waiting} under any order. Let the jobs arrive faster "
            "(--load), or take a busier time."
        )
    missing = description.request_missing_share
    if missing >= FEW_MISSING:
        yield f"{_percent(missing)} of the jobs have no requested time: what backfilling does with them is a guess."


# One use after the other: what speaks against it, and what for it ----------------------------------------------------


def _use(name: str, found: Iterable[tuple[Grade, str]]) -> Use:
    """Return a use with the worst of the grades that were found, and why it is that."""
    reasons: dict[Grade, list[str]] = {"no": [], "limited": [], "good": []}
    for grade, why in found:
        reasons[grade].append(why)
    worst, whys = next((grade, whys) for grade, whys in reasons.items() if whys)
    return Use(name, worst, "; ".join(whys))


def _size(facts: _Facts) -> str:
    return f"{counted(facts.jobs, 'job')} that ran, {facts.weeks:,.0f} weeks"


def _learning(facts: _Facts, description: Description) -> Iterator[tuple[Grade, str]]:
    if facts.jobs < _FEWEST:
        yield "no", f"{counted(facts.jobs, 'job')} that ran: {_FEWEST} are the least"
    elif facts.jobs < _FEW:
        yield "limited", f"only {counted(facts.jobs, 'job')} that ran"
    if description.machine is None:
        yield "no", "the size of the machine is unknown: give --processors"
    if description.serial_share > _ALL:
        yield "limited", "all jobs take one processor, so that an order can go by time only"
    if facts.sites:
        yield "limited", "many sites are not one queue"
    if not facts.known_waits:
        yield "limited", "no waits are recorded: nothing can be shown to be better than what the site has"
    yield from _waiting(facts)
    yield from _requests(description)
    yield "good", _size(facts)


def _waiting(facts: _Facts) -> Iterator[tuple[Grade, str]]:
    """Yield why no order can be told from another: nobody waits, or too few."""
    if facts.starts_for_submits:
        yield "no", "its submit times are its start times: they have been put in order already"
    elif facts.starts_at_once:
        yield "limited", "nobody waited in the record"
    if facts.load < _IDLE:
        yield "no", f"a load of {_percent(facts.load)}: hardly anybody waits"
    elif facts.load < _QUIET:
        yield "limited", f"a load of {_percent(facts.load)}: few wait"


def _requests(description: Description) -> Iterator[tuple[Grade, str]]:
    """Yield why backfilling cannot plan as the site's scheduler did."""
    if description.request_missing_share > _HALF:
        yield "no", "most requested times are missing"
    elif description.request_missing_share >= FEW_MISSING:
        yield "limited", f"{_percent(description.request_missing_share)} of the requested times are missing"


def _testing(facts: _Facts, description: Description) -> Iterator[tuple[Grade, str]]:
    if description.machine is None:
        yield "no", "the size of the machine is unknown: give --processors"
    if facts.sites:
        yield "no", "many sites are not one queue"
    elif facts.hint:
        yield "limited", "the header speaks of many sites"
    yield from _waiting(facts)
    if facts.weeks < _WEEKS:
        yield "no", f"{facts.weeks:.1f} weeks: {_WEEKS} are the least for an interval"
    elif facts.weeks < _MANY_WEEKS:
        wide = f"only {facts.weeks:.1f} weeks, so that intervals are wide"
        yield "limited", f"{wide}; learn needs more than {_MANY_WEEKS} for a verdict"
    yield from _requests(description)
    yield "good", f"{_size(facts)}, a load of {_percent(facts.load)}"


def _comparing(facts: _Facts, description: Description) -> Iterator[tuple[Grade, str]]:
    if not facts.known_waits:
        yield "no", "no waits are recorded"
    elif facts.starts_at_once:
        yield "no", "nobody waits in it"
    elif facts.known_waits < _ALL:
        yield "limited", f"{_percent(1 - facts.known_waits)} of the jobs that ran have no recorded wait"
    if facts.sites:
        yield "no", "many sites are not one queue"
    if facts.room > _HALF:
        yield "no", "most that waited long did not wait for processors"
    elif facts.room > _ROOM:
        yield "limited", f"{_percent(facts.room)} of those that waited long did not wait for processors"
    if description.above_capacity_share > 0.05:
        above = _percent(description.above_capacity_share)
        yield "limited", f"for {above} of the time it uses more processors than the machine has"
    waited = ""
    if not math.isnan(facts.mean_wait):
        waited = f", mean wait of the jobs that ran {format_duration(float(round(facts.mean_wait)))}"
    yield "good", f"starts are recorded{waited}"


def _predicting(log: SwfLog, facts: _Facts) -> Iterator[tuple[Grade, str]]:
    named = share(log.user >= 0)
    users = len(np.unique(log.user[log.user >= 0]))
    if not users:
        yield "no", "users are not recorded"
    elif named < _ALL:
        yield "limited", f"{_percent(1 - named)} of the jobs have no user"
    if users == 1:
        yield "limited", "there is one user only"
    if facts.jobs < _FEWEST:
        yield "no", f"{counted(facts.jobs, 'job')} that ran are too few"
    yield "good", f"{counted(users, 'user')}, {counted(facts.jobs, 'run time')}"


def _loading(facts: _Facts, description: Description) -> Iterator[tuple[Grade, str]]:
    if description.machine is None:
        yield "no", "the size of the machine is unknown: give --processors"
    if facts.weeks < _WEEKS:
        yield "limited", f"{facts.weeks:.1f} weeks: no pattern of weeks can be seen"
    if facts.load > 1:
        more = f"the work is {_percent(facts.load)} of what the machine could do, so check its size (--processors)"
        yield "limited", more
    if description.missing_run_share > 0.05:
        yield "limited", f"{_percent(description.missing_run_share)} of the jobs have no run time"
    if description.unix_start is None:
        yield "limited", "days of the week are unknown without a date (UnixStartTime)"
    yield "good", f"{_percent(facts.load)} over {facts.weeks:,.0f} weeks"
