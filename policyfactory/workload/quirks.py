"""What is odd about a log, in words: each sentence has its numbers and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.units import DAY, format_duration
from policyfactory.workload.clock import LONGEST_SPAN
from policyfactory.workload.describe import Description, joined_log, share
from policyfactory.workload.header import assumed_request
from policyfactory.workload.machine import size_of
from policyfactory.workload.parts import join_parts
from policyfactory.workload.presets import ABSURD_REQUEST
from policyfactory.workload.swf.log import FIELD_NAMES, SwfLog

__all__ = ["find_quirks"]

# A job that failed this near to its request was stopped by it.
_AT_LIMIT = 60


def find_quirks(log: SwfLog, description: Description) -> list[str]:
    """Return what a user of the log should know, in sentences.

    Parameters
    ----------
    log : SwfLog
        As it was read.
    description : Description
        Its numbers.
    """
    jobs = joined_log(log)
    sentences: list[str] = []
    for look in (_header, _lines):
        sentences += look(log, description)
    for look in (_clock, _runs, _requests, _processors, _statuses):
        sentences += look(jobs, description)
    return sentences


def _percent(part: float) -> str:
    return f"{100 * part:.2f} %"


def _jobs(mask: NDArray[np.bool_], base: NDArray[np.bool_] | None = None, of: str = "all") -> str:
    """Return how many jobs ``mask`` has, and which part of ``base`` (default: all), whose name is ``of``."""
    count = int(np.count_nonzero(mask))
    part = count / (len(mask) if base is None else int(np.count_nonzero(base)))
    # A small part is not called 0.00 %.
    size = _percent(part) if part >= 0.0001 else "less than 0.01 %"
    return f"{count:,} {'job' if count == 1 else 'jobs'} ({size} of {of})"


def _counted(*noticed: tuple[NDArray[np.bool_], str]) -> Iterator[str]:
    """Give a sentence for each thing that some jobs have."""
    return (f"{_jobs(mask)} {what}" for mask, what in noticed if mask.any())


def _header(log: SwfLog, description: Description) -> Iterator[str]:
    header = log.header
    if not header.lines:
        yield "no header: the machine, the date and the time zone are unknown; give --processors"
    elif header.processors is None:
        taken = "is taken" if description.machine == header.nodes else "is too small for its jobs, give --processors"
        nodes = f"; MaxNodes, {header.nodes:,}, {taken}" if header.nodes is not None else "; give --processors"
        yield f"the header has no MaxProcs{nodes}"
    most, removed = header.positive("MaxJobs"), header.removed or 0
    if most is not None and most - removed != len(log):
        less_removed = f" minus the {removed:,} it says were removed" if removed else ""
        less = most - removed - len(log)
        yield (
            f"the file has {len(log):,} lines, its header's MaxJobs {most:,}{less_removed} makes {most - removed:,}: "
            f"{abs(less):,} {'are missing, it was filtered again or cut off' if less > 0 else 'too many'}"
        )
    records = header.positive("MaxRecords")
    if records is not None and records not in (most, len(log)):
        yield f"the header's MaxRecords is {records:,}, the file has {len(log):,} lines"
    if header.removed is not None:
        yield f"the header says that {removed:,} jobs were removed"
    if description.machine is not None and description.nodes is not None and description.machine != description.nodes:
        per_node = description.machine / description.nodes
        even = f"of {per_node:.0f} processors" if per_node == int(per_node) else "of several kinds"
        yield f"{description.nodes:,} nodes {even}"


def _lines(log: SwfLog, _: Description) -> Iterator[str]:
    for what, count in log.oddities.items():
        yield f"{what}: {count:,}"
    for number, (field, column) in enumerate(log.columns().items(), start=1):
        if column.dtype != np.int64:
            some = int(np.count_nonzero(column != np.floor(column)))
            if some:
                yield f"decimals in field {number} ({FIELD_NAMES[field]}) of {some:,} lines"
            else:
                yield f"field {number} ({FIELD_NAMES[field]}) is written with decimals, all of them 0"
    joined = join_parts(log)
    if joined.summed_up.any():
        parts = int(joined.summed_up.sum())
        yield f"{parts:,} lines are parts (status 2, 3, 4) of jobs with a line of their own, left out here"
    if joined.merged.any():
        yield f"{int(joined.merged.sum()):,} jobs are written in parts only (status 2, 3, 4), joined here"
    again = len(log) - int((joined.summed_up | joined.merged_away).sum()) - len(np.unique(log.job_id))
    if again > 0:
        yield f"{again:,} job numbers are used more than once"
    linked = (log.preceding > 0) | (log.think_time > 0)
    which = "that wait for another one (field 17: simulated under Slurm's rules only; field 18: never)"
    yield from _counted((linked, which))


def _clock(log: SwfLog, description: Description) -> Iterator[str]:
    yield from _counted((log.submit < 0, "without submit time"))
    known = log.submit[log.submit >= 0]
    if len(known) and known.max() > LONGEST_SPAN:
        yield f"the last job is submitted {known.max() / DAY:,.0f} days after the log's 0: are these times in seconds?"
    elif len(known) and known.min() > 0:
        after = format_duration(float(known.min()))
        yield f"the first job is submitted {after} after the log's 0; cleaning counts from it"
    if (np.diff(known) < 0).any():
        yield f"{int((np.diff(known) < 0).sum()):,} jobs stand behind a later one; cleaning sorts"
    if description.tie_share >= 0.01:
        yield f"{_percent(description.tie_share)} of the lines share the submit second of the one before: ties matter"
    no_wait = log.wait < 0
    if no_wait.all():
        yield (
            "no wait is recorded: starts are taken to be the submit times, so that utilisation and peak are those of "
            "the demand, which no machine had to hold"
        )
    elif no_wait.any():
        yield f"{_jobs(no_wait)} without a recorded wait, 0 is taken"


def _runs(log: SwfLog, _: Description) -> Iterator[str]:
    yield from _counted((log.run_time < 0, "without run time"), (log.run_time == 0, "with run time 0"))
    known = (log.run_time >= 0) & (log.requested_time > 0)
    over = known & (log.run_time > log.requested_time)
    if over.any():
        yield f"{_jobs(over, known, 'those with a run time and a request')} with a run longer than requested"
    both = (log.run_time > 0) & (log.requested_time > 0)
    if share(over, known) > 0.2 and float((log.run_time[both] / log.requested_time[both]).mean()) > 1:
        yield "on average jobs run longer than they request: the request is no limit here, perhaps it is CPU time"


def _requests(log: SwfLog, description: Description) -> Iterator[str]:
    if description.request_missing_share == 1:
        yield "no job has a requested time: backfilling needs --estimate-missing model (or runtime)"
    elif description.request_missing_share > 0:
        yield f"{_jobs(log.requested_time <= 0)} without requested time"
    assumed = assumed_request(log.header)
    if assumed is not None:
        yield (
            f"the requested times of {format_duration(assumed)} ({_jobs(log.requested_time == assumed)}) were assumed "
            "when the log was imported: users asked for none, and backfilling (EASY) on them is an assumption"
        )
    absurd = log.requested_time[log.requested_time > ABSURD_REQUEST]
    if len(absurd):
        yield (
            f"{len(absurd):,} requests are longer than {format_duration(ABSURD_REQUEST)}, the longest "
            f"{float(absurd.max()):,.0f} s; cap them with --longest-request"
        )
    limit = log.header.positive("MaxRuntime")
    if limit is not None and (log.requested_time > limit).any():
        yield f"{int((log.requested_time > limit).sum()):,} requests exceed the header's MaxRuntime of {limit:,} s"
    if 0 < description.distinct_requests <= 10:
        yield f"only {description.distinct_requests} different requested times"


def _processors(log: SwfLog, description: Description) -> Iterator[str]:
    if (log.requested <= 0).all():
        yield "no job has requested processors: the allocated ones are all there is"
    elif (log.requested <= 0).any():
        yield f"{_jobs(log.requested <= 0)} without requested processors"
    if (log.allocated <= 0).any():
        ran = int(((log.allocated <= 0) & (log.run_time > 0)).sum())
        yield f"{_jobs(log.allocated <= 0)} without allocated processors" + (f", {ran:,} of them ran" if ran else "")
    both = (log.allocated > 0) & (log.requested > 0)
    differ = both & (log.allocated != log.requested)
    if differ.any():
        more = int((log.allocated > log.requested)[differ].sum())
        some = _jobs(differ, both, "those with both numbers")
        yield f"{some} with other processors allocated than requested, {more:,} of them with more"
    if description.size_gcd > 1:
        yield f"all sizes are multiples of {description.size_gcd}: whole nodes are given out"
    machine = description.machine
    if machine is None:
        return
    too_large = f"larger than the machine's {machine:,} processors: is the number right?"
    yield from _counted((size_of(log) > machine, too_large))
    # Without waits the starts are made up, and no machine had to hold them.
    if description.peak_processors > machine and (log.wait >= 0).any():
        yield (
            f"by its own times the log used up to {description.peak_processors:,} processors at once, more than the "
            f"machine has for {_percent(description.above_capacity_share)} of the time: its starts cannot be replayed "
            "as they are"
        )


def _statuses(log: SwfLog, description: Description) -> Iterator[str]:
    statuses = description.statuses
    unknown = statuses.get("-1", 0)
    if unknown == description.jobs:
        yield "no status is recorded"
    elif unknown:
        yield f"{_jobs(log.status == -1)} of unknown status"
    cancelled = log.status == 5
    if cancelled.any():
        ran = cancelled & (log.run_time > 0)
        yield f"{_jobs(cancelled)} cancelled (status 5), {int(ran.sum()):,} of them after the start"
    failed = log.status == 0
    at_limit = failed & (log.requested_time > 0) & (np.abs(log.run_time - log.requested_time) <= _AT_LIMIT)
    if at_limit.any() and share(at_limit, failed) >= 0.05:
        unknown = int(np.count_nonzero(failed & (log.requested_time <= 0)))
        rest = f" ({unknown:,} of the failed jobs have no request)" if unknown else ""
        yield (
            f"{_jobs(at_limit, failed, 'the failed ones, status 0')} failed within {_AT_LIMIT} s of their request: "
            f"they reached their limit{rest}"
        )
