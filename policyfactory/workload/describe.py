"""What a log looks like: the numbers in which one machine's load differs from another's.

Utilisation is the sum of run time x allocated processors over the jobs that have both, divided by the machine's
processors x (last end - first start). Premature jobs are those whose request is at least 100 times their run
time. Lines that are parts of a job (status 2, 3, 4) are joined first; nothing else is dropped: each number says of
itself which jobs it counts.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.picture import BLACK, BLUE, GREEN, SKY, VERMILION, keeps_settings, new_figure, save_picture
from policyfactory.core.text import DAY, HOUR, MINUTE, format_duration, plain
from policyfactory.workload.header import assumed_request, printable
from policyfactory.workload.machine import join_parts, joined_log, known_machine, size_of
from policyfactory.workload.presets import ABSURD_REQUEST
from policyfactory.workload.swf.log import FIELD_NAMES, SwfLog, has_partitions_in_queue, names_of
from policyfactory.workload.windows import LONGEST_SPAN, arrivals, in_use

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PREMATURE = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Occupancy:
    """How full the machine was, by the recorded starts.

    Parameters
    ----------
    peak : int
        Most processors in use at once.
    above : float
        Share of the time (first start to last end) with more processors in use than the machine has, 0 to 1.
    utilisation : float
        Used processor seconds / processor seconds there were, 0 to 1; NaN without a machine.
    """

    peak: int
    above: float
    utilisation: float


class Shown(NamedTuple):
    """How the table shows a number: its label, its format, in how many of its units, and what stands for unknown."""

    label: str
    form: str = ",.0f"
    unit: int = 1
    unknown: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """The numbers of one log, in the order of the table; NaN where the log does not say.

    Shares are 0 to 1, times are seconds.
    """

    name: str
    sha256: str
    jobs: Annotated[int, Shown("jobs")]
    machine: Annotated[int | None, Shown("MaxProcs")]
    nodes: Annotated[int | None, Shown("MaxNodes")]
    unix_start: int | None
    time_zone: str | None
    span: Annotated[float, Shown("span, days", ",.1f", DAY)]
    utilisation: Annotated[float, Shown("utilisation (first start to last end), %", ".2%")]
    users: Annotated[int, Shown("users", unknown=0)]
    mean_processors: Annotated[float, Shown("mean size, processors", ",.1f")]
    largest_job: Annotated[int, Shown("largest size")]
    size_gcd: Annotated[int, Shown("gcd of sizes")]
    serial_share: Annotated[float, Shown("serial, % of known sizes", ".1%")]
    power_of_two_share: Annotated[float, Shown("powers of two, % of known sizes", ".1%")]
    mean_run_time: Annotated[float, Shown("mean run time, s")]
    median_run_time: Annotated[float, Shown("median run time, s")]
    mean_requested_time: Annotated[float, Shown("mean request, s")]
    distinct_requests: Annotated[int, Shown("distinct requests")]
    mean_accuracy: Annotated[float, Shown("mean run / request", ",.3f")]
    median_accuracy: Annotated[float, Shown("median run / request", ",.3f")]
    premature_share: Annotated[float, Shown("request / run ≥ 100, % of both known", ".2%")]
    mean_wait: Annotated[float, Shown("mean wait of all jobs with one, s")]
    request_missing_share: Annotated[float, Shown("request missing, % of jobs", ".2%")]
    requested_processors_missing_share: Annotated[float, Shown("requested q missing, % of jobs", ".2%")]
    allocated_missing_share: Annotated[float, Shown("allocated q missing, % of jobs", ".2%")]
    size_differs_share: Annotated[float, Shown("requested ≠ allocated, % of both known", ".2%")]
    overrun_share: Annotated[float, Shown("run > request, % of both known", ".2%")]
    zero_run_share: Annotated[float, Shown("run 0, % of jobs", ".3%")]
    missing_run_share: Annotated[float, Shown("run missing, % of jobs", ".2%")]
    out_of_order_share: Annotated[float, Shown("out of order, % of lines", ".2%")]
    tie_share: float
    above_capacity_share: float
    peak_processors: Annotated[int, Shown("peak processors")]
    statuses: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON values: None for what is not known."""
        as_json: dict[str, Any] = plain(dataclasses.asdict(self))
        return as_json


def share(mask: NDArray[np.bool_], base: NDArray[np.bool_] | None = None) -> float:
    """Return which part of ``base`` (default: all) is in ``mask``; NaN for an empty base."""
    total = len(mask) if base is None else int(np.count_nonzero(base))
    hits = np.count_nonzero(mask if base is None else mask & base)
    return float(hits) / total if total else math.nan


def mean(values: NDArray[Any]) -> float:
    """Return the mean; NaN of nothing."""
    return float(values.mean()) if len(values) else math.nan


def median(values: NDArray[Any]) -> float:
    """Return the median; NaN of nothing."""
    return float(np.median(values)) if len(values) else math.nan


def occupancy(log: SwfLog, machine: int | None) -> Occupancy:
    """Return how full the machine was.

    Parameters
    ----------
    log : SwfLog
        Jobs with run time and allocated processors count for the utilisation; for the peak also those whose
        requested processors alone are known. An unknown wait counts as 0.
    machine : int or None
        Processors of the machine.
    """
    sizes = size_of(log)
    ran = (log.run_time > 0) & (sizes > 0) & (log.submit >= 0)
    if not ran.any():
        return Occupancy(0, math.nan, math.nan)
    start = (log.submit + np.maximum(log.wait, 0))[ran]
    run_time, size = log.run_time[ran], sizes[ran]
    end = start + run_time
    times, used = in_use(start, end, size)
    peak = int(used.max())
    if machine is None:
        return Occupancy(peak, math.nan, math.nan)
    over = float(np.diff(times)[used[:-1] > machine].sum()) / float(times[-1] - times[0])
    known = log.allocated[ran] > 0
    if not known.any():
        return Occupancy(peak, over, math.nan)
    area = float((run_time[known].astype(np.float64) * size[known]).sum())
    return Occupancy(peak, over, area / (machine * float(end[known].max() - start[known].min())))


def describe(log: SwfLog, machine: int | None = None, *, force: bool = False) -> Description:
    """Return the numbers of a log.

    Parameters
    ----------
    log : SwfLog
        As it was read.
    machine : int, optional
        Processors of the machine (default: the header's; where it has none, utilisation is NaN).
    force : bool
        Use ``machine`` also where the header has another number.

    Raises
    ------
    UsageError
        If ``machine`` contradicts the header and is not forced.
    """
    log = joined_log(log)
    machine, _ = known_machine(log, machine, force=force) or (None, "")
    use = occupancy(log, machine)
    submitted = log.submit[log.submit >= 0]
    size = size_of(log)
    sizes = size[size > 0]
    two_sizes = (log.allocated > 0) & (log.requested > 0)
    ran, asked = log.run_time > 0, log.requested_time > 0
    two_times = ran & asked
    run_time = log.run_time[log.run_time >= 0]
    with np.errstate(over="ignore"):
        accuracy = log.run_time[two_times] / log.requested_time[two_times]
    statuses = zip(*np.unique(log.status, return_counts=True), strict=True)
    return Description(
        name=printable(log.name, 80),
        sha256=log.sha256,
        jobs=len(log),
        machine=machine,
        nodes=log.header.nodes,
        unix_start=log.header.unix_start,
        time_zone=log.header.time_zone,
        span=float(submitted.max() - submitted.min()) if len(submitted) else math.nan,
        utilisation=use.utilisation,
        users=len(np.unique(log.user[log.user >= 0])),
        mean_processors=mean(sizes),
        largest_job=int(sizes.max(initial=0)),
        size_gcd=int(np.gcd.reduce(sizes)),
        serial_share=share(sizes == 1),
        power_of_two_share=share((sizes & (sizes - 1)) == 0),
        mean_run_time=mean(run_time),
        median_run_time=median(run_time),
        mean_requested_time=mean(log.requested_time[asked]),
        distinct_requests=len(np.unique(log.requested_time[asked])),
        mean_accuracy=mean(accuracy),
        median_accuracy=median(accuracy),
        premature_share=share(log.requested_time >= PREMATURE * log.run_time, two_times),
        mean_wait=mean(log.wait[log.wait >= 0]),
        request_missing_share=share(~asked),
        requested_processors_missing_share=share(log.requested <= 0),
        allocated_missing_share=share(log.allocated <= 0),
        size_differs_share=share(log.allocated != log.requested, two_sizes),
        overrun_share=share(log.run_time > log.requested_time, (log.run_time >= 0) & asked),
        zero_run_share=share(log.run_time == 0),
        missing_run_share=share(log.run_time < 0),
        out_of_order_share=share(np.diff(log.submit) < 0),
        tie_share=share(np.diff(log.submit) == 0),
        above_capacity_share=use.above,
        peak_processors=use.peak,
        statuses={str(status): int(count) for status, count in statuses},
    )


# The table of a description. ------------------------------------------------------------------------------------------

_STATUS = {
    "-1": "status -1 (unknown)",
    "0": "status 0 (failed)",
    "1": "status 1 (completed)",
    "5": "status 5 (cancelled)",
}
_OTHER_STATUS = "status not of the format"


def description_rows(descriptions: list[Description]) -> list[list[str]]:
    """Return the cells of the table: the name of the number, then one cell for each log."""
    hints = get_type_hints(Description, include_extras=True)
    shown = {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}
    rows = [[how.label, *(_cell(getattr(log, name), how) for log in descriptions)] for name, how in shown.items()]
    statuses = [Counter[str]() for _ in descriptions]
    for log, counted in zip(descriptions, statuses, strict=True):
        for status, jobs in log.statuses.items():
            counted[_STATUS.get(status, _OTHER_STATUS)] += jobs
    # A status that no log has is not worth a line.
    seen = [label for label in (*_STATUS.values(), _OTHER_STATUS) if any(counted[label] for counted in statuses)]
    return rows + [[label, *(f"{counted[label]:,}" for counted in statuses)] for label in seen]


def _cell(value: float | None, how: Shown) -> str:
    if value is None or math.isnan(value) or value == how.unknown:
        return "-"
    return format(value / how.unit, how.form).removesuffix("%")


# What is odd about a log ----------------------------------------------------------------------------------------------

# What is odd about a log, in words: each sentence has its numbers and what follows from them.


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
        yield f"the header has {header.no_processors}{nodes}"
    if len(sizes := dict.fromkeys(header.values("MaxProcs"))) > 1:
        yield f"the header has several MaxProcs, {printable(', '.join(sizes), 80)}: the first number is taken"
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
        merged = f"{int(joined.merged.sum()):,} jobs are written in parts only (status 2, 3, 4), joined here"
        yield f"{merged} without the gaps: utilisation can be above 100 %"
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


# Pictures of a log: when jobs come, how large and how long they are, and what they request ----------------------------


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TIME_TICKS = (1, 10, MINUTE, 10 * MINUTE, HOUR, DAY, 10 * DAY, 100 * DAY)
_TIME_NAMES = ("1 s", "10 s", "1 min", "10 min", "1 h", "1 d", "10 d", "100 d")
# Two bins a power of two: fine enough for the peaks at round requests, coarse enough for a small log.
_BINS_PER_OCTAVE = 2
_POPULAR = 12


@keeps_settings
def draw_log(log: SwfLog, description: Description, folder: Path) -> list[Path]:
    """Draw all pictures of a log into ``folder``; a picture without data is left out.

    Parameters
    ----------
    log : SwfLog
        As it was read.
    description : Description
        Its numbers.
    folder : Path
        Where ``NAME-arrivals.png`` and the others are written.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    jobs = joined_log(log)
    drawn = {what: draw(jobs, description) for what, draw in _PICTURES.items()}
    paths = picture_paths(log.name, folder)
    return [save_picture(figure, paths[what]) for what, figure in drawn.items() if figure is not None]


def picture_paths(name: str, folder: Path) -> dict[str, Path]:
    """Return where the pictures of the log called ``name`` are written, by what they show."""
    stem = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "log"
    return {what: folder / f"{stem}-{what}.png" for what in _PICTURES}


def draw_arrivals(log: SwfLog, description: Description) -> Figure | None:
    """Draw the jobs submitted by hour of the day, by hour of the week, and week after week."""
    if not (log.submit >= 0).any() or log.submit.max() > LONGEST_SPAN:
        return None
    when = arrivals(log)
    figure = new_figure(9.0, 6.5)
    figure.suptitle(f"{description.name}: when jobs are submitted ({when.clock})")
    panels = figure.subplot_mosaic([["day", "weeks"], ["week", "week"]])
    day, weeks, week = panels["day"], panels["weeks"], panels["week"]
    hours = np.arange(25)
    if when.dated:
        day.stairs(when.rate(slice(0, 5)), hours, label="Monday to Friday", linewidth=1.5)
        day.stairs(when.rate(slice(5, 7)), hours, label="weekend", linewidth=1.5, color=VERMILION)
        # At night there is room.
        day.legend(loc="upper left", fontsize=9)
    else:
        day.stairs(when.rate(slice(0, 7)), hours, linewidth=1.5)
    day.set(
        xlabel="hour of the day", ylabel="jobs an hour (mean)", xlim=(0, 24), xticks=range(0, 25, 3), ylim=(0, None)
    )
    weeks.bar(np.arange(len(when.per_week)), when.per_week, width=1.0)
    weeks.set(xlabel="week of the log", ylabel="jobs a week", xlim=(-0.5, len(when.per_week) - 0.5))
    rate = when.hour_of_week / np.maximum(when.hours_seen, 1)
    week.stairs(rate, np.arange(169), fill=True)
    week.set(ylabel="jobs an hour (mean)", xlim=(0, 168), ylim=(0, None), xticks=range(0, 169, 24))
    week.set_xticklabels([])
    week.set_xticks(range(12, 168, 24), labels=_DAYS if when.dated else [f"day {n + 1}" for n in range(7)], minor=True)
    week.tick_params(axis="x", which="minor", length=0)
    week.set_xlabel("hour of the week" if when.dated else "hour of the log's own week")
    return figure


def draw_sizes(log: SwfLog, description: Description) -> Figure | None:
    """Draw how many jobs, and how much of the machine's time, each class of sizes has."""
    size = size_of(log)
    known = size > 0
    if not known.any():
        return None
    size, run_time = size[known], np.maximum(log.run_time[known], 0).astype(np.float64)
    # Class k has the sizes above 2**(k - 1) up to 2**k; class 0 the serial jobs.
    octave = np.ceil(np.log2(size)).astype(np.int64)
    classes = int(octave.max()) + 1
    jobs = np.bincount(octave, minlength=classes) / len(size)
    area = np.bincount(octave, weights=run_time * size, minlength=classes)
    exact = np.bincount(octave, weights=(size == 2.0**octave), minlength=classes) / len(size)
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    position = np.arange(classes)
    axes.bar(position - 0.2, 100 * jobs, width=0.4, color=SKY, label="jobs")
    axes.bar(position - 0.2, 100 * exact, width=0.4, color=BLUE, label="jobs of exactly the upper size")
    axes.bar(position + 0.2, 100 * area / max(area.sum(), 1.0), width=0.4, color=VERMILION, label="processor seconds")
    names = ["1", "2", *(f"{2 ** (k - 1) + 1:,}–{2**k:,}" for k in range(2, classes))][:classes]
    axes.set_xticks(position, labels=names, rotation=40 if classes > 6 else 0, ha="right" if classes > 6 else "center")
    axes.set(xlabel="processors of the job", ylabel="share, %", title=f"{description.name}: sizes")
    axes.grid(visible=False, axis="x")
    axes.legend()
    return figure


def _time_axis(axes: Axes, longest: float) -> None:
    """Give ``axes`` a logarithmic time axis with names that people use."""
    shown = [n for n, tick in enumerate(_TIME_TICKS) if tick <= max(longest, 10) * 1.5]
    axes.set_xscale("log")
    axes.set_xticks([_TIME_TICKS[n] for n in shown], labels=[_TIME_NAMES[n] for n in shown])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.8, max(longest, 10) * 1.2)


def _histogram(axes: Axes, times: NDArray[Any], longest: float, **style: Any) -> None:
    """Draw the share of jobs in bins of equal width on a logarithmic axis; 0 s is put with 1 s."""
    steps = int(np.ceil(np.log2(max(longest, 2.0)) * _BINS_PER_OCTAVE)) + 1
    edges = 2.0 ** (np.arange(steps + 1) / _BINS_PER_OCTAVE)
    # A whole second belongs to the bin that it begins.
    counts, _ = np.histogram(np.clip(times, 1, edges[-1] - 0.5), bins=edges - 0.01)
    axes.stairs(100 * counts / len(times), edges, **style)


def draw_run_times(log: SwfLog, description: Description) -> Figure | None:
    """Draw how long jobs run and for how long they ask, as histograms and as cumulative shares."""
    run_time = log.run_time[log.run_time >= 0]
    request = log.requested_time[log.requested_time > 0]
    if not len(run_time):
        return None
    # A handful of absurd requests would squeeze the rest.
    longest = float(max(run_time.max(), np.quantile(request, 0.9999) if len(request) else 0))
    figure = new_figure(9.0, 4.0)
    figure.suptitle(f"{description.name}: run times" + (" and requested times" if len(request) else ""))
    share, below = figure.subplots(1, 2)
    for times, label, colour in ((run_time, "run time", BLUE), (request, "requested time", VERMILION)):
        if not len(times):
            continue
        _histogram(share, times, longest, color=colour, label=label, linewidth=1.5)
        order = np.sort(np.clip(times, 1, None))
        pick = np.unique(np.linspace(0, len(order) - 1, 2000).astype(np.int64))
        below.plot(order[pick], 100 * (pick + 1) / len(order), color=colour, label=label)
    share.set(xlabel="time (0 s is drawn at 1 s)", ylabel="jobs in a bin of half a power of two, %", ylim=(0, None))
    below.set(xlabel="time", ylabel="jobs of at most this time, %", ylim=(0, 100))
    for axes in (share, below):
        _time_axis(axes, longest)
    below.legend(loc="upper left")
    return figure


def draw_accuracy(log: SwfLog, description: Description) -> Figure | None:
    """Draw the part of the requested time that jobs use, and the requests that are asked for most."""
    both = (log.run_time >= 0) & (log.requested_time > 0)
    if not both.any():
        return None
    accuracy = log.run_time[both] / log.requested_time[both]
    figure = new_figure(9.0, 4.0)
    figure.suptitle(f"{description.name}: how well requests predict run times")
    used, popular = figure.subplots(1, 2)
    edges = np.arange(0, 106, 2) / 100
    # A run that ends with its request belongs below 100 %.
    shown = np.where(accuracy <= 1, np.minimum(accuracy, 0.999), np.minimum(accuracy, 1.03))
    counts, _ = np.histogram(shown, bins=edges)
    shares = 100 * counts / len(accuracy)
    used.bar(100 * edges[:50], shares[:50], width=2.0, align="edge")
    # The last bar holds all that is above 102 %.
    used.bar(100 * edges[50:52], shares[50:], width=2.0, align="edge", color=VERMILION, label="beyond the request")
    used.set(xlabel="run time / requested time, %", ylabel="jobs, %", xlim=(0, 104))
    used.axvline(100 * float(np.median(accuracy)), color=BLACK, linestyle="--", linewidth=1, label="median")
    used.legend(loc="upper center", frameon=True, framealpha=0.9, edgecolor="none")
    values, jobs = np.unique(log.requested_time[both], return_counts=True)
    most = np.argsort(-jobs, kind="stable")[:_POPULAR][::-1]
    names = [format_duration(float(value)) for value in values[most]]
    popular.barh(np.arange(len(most)), 100 * jobs[most] / len(accuracy), color=GREEN)
    popular.set_yticks(np.arange(len(most)), labels=names)
    popular.set(
        xlabel="jobs, %", ylabel="requested time", title=f"the {len(most)} most frequent of {len(values):,} requests"
    )
    popular.grid(visible=False, axis="y")
    return figure


_PICTURES = {"arrivals": draw_arrivals, "sizes": draw_sizes, "run-times": draw_run_times, "accuracy": draw_accuracy}


# How long jobs waited in the record -----------------------------------------------------------------------------------

# Over time, by queue, by partition, and whether the machine had room for them.


LONG_WAIT = 600  # s: a scheduler that has room starts a job sooner
_PERIODS = 12
_GROUPS = 8
_LATEST = 253_370_764_800  # the year 9999: no date is later


@dataclasses.dataclass(frozen=True, slots=True)
class WaitTable:
    """The recorded waits of groups of jobs.

    Parameters
    ----------
    title : str
        What the groups are.
    rows : tuple of dict
        Of each group: its name, its jobs, their share of all jobs and of all work (0 to 1), and of those with a
        recorded wait the mean, the median, 95 % and the longest, s; NaN where none is recorded.
    """

    title: str
    rows: tuple[dict[str, Any], ...]

    def cells(self) -> list[list[str]]:
        """Return the cells of the table."""
        return [
            [
                row["group"],
                f"{row['jobs']:,}",
                f"{row['share_of_jobs']:.1%}".removesuffix("%"),
                f"{row['share_of_work']:.1%}".removesuffix("%"),
                *(_time(row[name]) for name in ("mean", "median", "p95", "longest")),
            ]
            for row in self.rows
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the table as JSON values: None for what is not known."""
        return {"title": self.title, "rows": plain(self.rows)}


COLUMNS = ("", "jobs", "% of jobs", "% of work", "mean wait", "median", "95 % wait at most", "longest")


def _time(seconds: float) -> str:
    return "-" if math.isnan(seconds) else format_duration(float(round(seconds)))


def wait_tables(log: SwfLog) -> tuple[WaitTable, ...]:
    """Return the waits by time, and by queue, partition and quality of service where the log has several.

    Parameters
    ----------
    log : SwfLog
        One line for each job.
    """
    tables = [_by_time(log)]
    imported = has_partitions_in_queue(log.header)
    for numbers, label, word in (
        (log.queue, "Queue", "partition" if imported else "queue"),
        (log.partition, *(("QOS", "QOS") if imported else ("Partition", "partition"))),
    ):
        if len(np.unique(numbers[numbers >= 0])) > 1:
            tables.append(_by_number(log, numbers, word, names_of(log.header, label)))
    return tuple(table for table in tables if table is not None)


def _by_time(log: SwfLog) -> WaitTable | None:
    known = log.submit >= 0
    if not known.any() or log.submit.max() > LONGEST_SPAN:
        return None
    first, last = float(log.submit[known].min()), float(log.submit[known].max())
    # Whole weeks, so that each period has as many weekends.
    weeks = max(1, math.ceil((last - first + 1) / (7 * DAY) / _PERIODS))
    length = weeks * 7 * DAY
    period = np.where(known, (log.submit - first) // length, -1).astype(np.int64)
    start = log.header.unix_start
    if start is not None and start + last > _LATEST:
        start = None

    def name(number: int) -> str:
        if start is None:
            return f"day {number * weeks * 7 + 1}"
        return f"{dt.datetime.fromtimestamp(start + first + number * length, dt.UTC):%Y-%m-%d}"

    plural = "week" if weeks == 1 else f"{weeks} weeks"
    groups = [(name(number), period == number) for number in range(int(period.max()) + 1)]
    return WaitTable(f"waits in the record, by {plural} of submission, from", _rows(log, groups))


def _by_number(log: SwfLog, numbers: NDArray[np.int64], word: str, names: dict[int, str]) -> WaitTable:
    values, jobs = np.unique(numbers, return_counts=True)
    most = values[np.argsort(-jobs, kind="stable")][:_GROUPS].tolist()
    named = (f"{word} {names.get(number, number)}" if number >= 0 else f"no {word}" for number in sorted(most))
    groups = [(name, numbers == number) for name, number in zip(named, sorted(most), strict=True)]
    if len(values) > len(most):
        groups.append((f"{len(values) - len(most):,} others", ~np.isin(numbers, most)))
    return WaitTable(f"waits in the record, by {word}", _rows(log, groups))


def _rows(log: SwfLog, groups: list[tuple[str, NDArray[np.bool_]]]) -> tuple[dict[str, Any], ...]:
    work = np.maximum(log.run_time, 0).astype(np.float64) * np.maximum(size_of(log), 0)
    rows = []
    for name, members in groups:
        waits = log.wait[members & (log.wait >= 0)].astype(np.float64)
        ends = np.quantile(waits, [0.5, 0.95, 1.0]).tolist() if len(waits) else [math.nan] * 3
        rows.append(
            {
                "group": name,
                "jobs": int(np.count_nonzero(members)),
                "share_of_jobs": float(members.mean()),
                "share_of_work": float(work[members].sum() / max(work.sum(), 1.0)),
                "mean": mean(waits),
                **dict(zip(("median", "p95", "longest"), ends, strict=True)),
            }
        )
    return tuple(rows)


def room_share(log: SwfLog, machine: int) -> float:
    """Return which part of the jobs that waited long did so for most of the time while everything would have fit.

    At such a time the processors of all jobs that were there, running and waiting, are at most the machine's: under
    any order all of them run, so that they wait for something else.

    Parameters
    ----------
    log : SwfLog
        One line for each job.
    machine : int
        Its processors.

    Returns
    -------
    float
        0 to 1, of the jobs that waited longer than `LONG_WAIT`; NaN if there is none.
    """
    size = size_of(log)
    ran = (log.run_time > 0) & (size > 0) & (log.submit >= 0) & (log.wait >= 0)
    submit, wait, size = log.submit[ran].astype(np.float64), log.wait[ran], size[ran]
    long = wait > LONG_WAIT
    if not long.any():
        return math.nan
    times, there = in_use(submit, submit + wait + log.run_time[ran], size)
    roomy = np.concatenate([[0.0], np.cumsum(np.diff(times) * (there[:-1] <= machine))])
    since, until = (np.interp(moment[long], times, roomy) for moment in (submit, submit + wait))
    return float(np.mean(until - since > wait[long] / 2))
