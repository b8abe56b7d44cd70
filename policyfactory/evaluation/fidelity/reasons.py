"""What is probably missing where a replay is far from its record: hints, each with the number that it comes from.

None of them is a proof. Limits, nodes that were down and users who wait for their own jobs leave traces in a record,
and these are looked for.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from policyfactory.core.options import FloatArray, Int64Array, Mask
from policyfactory.core.text import HOUR, MINUTE, format_duration, number_text
from policyfactory.engine.metrics import binned_integral
from policyfactory.evaluation.analyses.load import bin_width
from policyfactory.simulation.slurm.jobs import partitions_of
from policyfactory.simulation.slurm.run import Held, SlurmRun
from policyfactory.site.fits import Layout, lay_out
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Requests, Workload
from policyfactory.workload.windows import in_use

_OVER = 0.01  # of the time in which more runs than there is
_PRESSED = 0.2  # of the cores, wanted by jobs that wait
_LOW = 0.9  # of the cores, never exceeded though the machine is pressed
_MANY_BINS = 0.25  # of the pressed ones
_FEW_BINS = 3
_IDLE, _MORE_IDLE = 0.2, 0.1  # of the waiting time; more than in the simulation
_WAITED = 5 * MINUTE
_FEW_WAIT = 20  # jobs of a partition that is named
_SAMPLE = 2_000
_SOON = MINUTE
_BY_CHANCE = (-2 * HOUR, -HOUR, HOUR, 2 * HOUR)
_MORE_SOON = 0.1  # of the submissions, beyond chance
_MOST_NAMED = 4
_FAR_PAST = 4.0  # half-lives after which earlier usage is forgotten


@dataclasses.dataclass(frozen=True, slots=True)
class StatedFit:
    """The fit that is asked for before a simulation of a site is trusted, stated once."""

    distance: float = 0.2  # Kolmogorov-Smirnov, of the waits
    share: float = 0.25  # of the recorded median, or 90th percentile
    seconds: int = 5 * MINUTE  # by which these may always differ
    places: float = 0.04  # or the simulated value is a quantile of the record so near by
    order: float = 0.5  # rank correlation of the waits, job by job
    fewest_waiting: float = 0.01  # of the jobs wait longer than `alike`: of fewer the order says nothing
    utilisation: float = 5.0  # points of the site's cores, mean over time
    alike: int = MINUTE  # s; shorter waits are alike: they are the scheduler's rhythm, which no record gives
    least_jobs: int = 100  # of a group that is judged
    most_otherwise: float = 0.1  # of the judged jobs may be in partitions, or in QOS, that are far
    most_never: float = 0.05  # of the jobs may never start on the site
    lead_in: float = 0.1  # of the jobs fill the machine, which is empty at first, and are not compared
    # Times the record's longest queue, and jobs more, from which on what holds it is asked, and the replay is stopped.
    longer: tuple[int, int] = (2, 20)
    runaway: tuple[int, int] = (10, 1_000)
    bins: int = 100  # of the time, at most, unless they were longer than a day


FIT = StatedFit()


@dataclasses.dataclass(frozen=True, slots=True)
class Reason:
    """A hint.

    Parameters
    ----------
    name : {"queue", "never", "small", "away", "idle", "closed loop", "requests", "not modelled", "earlier usage"}
        What is probably missing.
    text : str
        In words, with the evidence.
    value : float
        The evidence as a number: a share, a ratio or a count.
    """

    name: str
    text: str
    value: float


@dataclasses.dataclass(frozen=True, slots=True)
class LongQueue:
    """A queue that became much longer than the record's.

    Parameters
    ----------
    longest : int
        The most jobs that waited at once in the record.
    held : Held
        How long it became, and what held its jobs then.
    stopped : int or None
        When the replay was stopped for it (s on the workload's clock).
    """

    longest: int
    held: Held
    stopped: int | None


@dataclasses.dataclass(frozen=True, eq=False)
class Replayed:
    """A replay beside its record, and what hints look at.

    Parameters
    ----------
    workload, site, run
        What was replayed, where, and how it went.
    known, compared : bool array (n,)
        Jobs with a recorded start; jobs that are compared.
    unknown : tuple of str
        What the log does not say, of what the site limits.
    left_out : (int, str)
        How many jobs of the log are not in the workload, since the site does not have their partition; which.
    queue : LongQueue or None
        What the queue was when it was much longer than the record's.
    """

    workload: Workload
    site: Site
    run: SlurmRun
    known: Mask
    compared: Mask
    unknown: tuple[str, ...]
    left_out: tuple[int, str] = (0, "")
    queue: LongQueue | None = None

    @functools.cached_property
    def asked(self) -> Requests:
        """What the jobs ask for."""
        return self.workload.requests or Requests.unknown(len(self.workload))

    @functools.cached_property
    def partition(self) -> Int64Array:
        """The partition of each job."""
        return partitions_of(self.workload, self.asked, self.site)

    @property
    def runs(self) -> Mask:
        """Which jobs start in the simulation."""
        return self.run.start >= 0

    @property
    def recorded(self) -> tuple[Int64Array, Int64Array]:
        """Recorded starts and ends; where no start is known no job runs, and no core is in use."""
        return self.workload.start, self.workload.start + self.workload.run_time

    @functools.cached_property
    def layout(self) -> Layout:
        """The site's nodes."""
        return lay_out(self.site)

    def cores_of(self, partition: int) -> int:
        """Return the cores of a partition."""
        return int(self.layout.cores[self.layout.members[partition]].sum())

    def in_use(self, rows: Mask, *, recorded: bool) -> Busy:
        """Return the cores that some jobs use over time."""
        start, end = self.recorded if recorded else (self.run.start, self.run.end)
        rows = rows & (self.known if recorded else self.runs)
        return Busy(*in_use(start[rows], end[rows], self.workload.processors[rows]))

    def beside(self, partition: int) -> Mask:
        """Say which jobs may use a node of a partition: its own, and those of partitions that share nodes with it."""
        members = self.layout.members
        sharing = (members & members[partition]).any(axis=1)
        return np.asarray(sharing[self.partition], dtype=np.bool_)


def reasons_of(replayed: Replayed) -> tuple[Reason, ...]:
    """Return what is probably missing, what the record shows first."""
    if replayed.queue is not None and replayed.queue.stopped is not None:
        # Of a part of a schedule the others say nothing.
        return (*_queue(replayed), *_left_out(replayed), *_requests(replayed), *_not_modelled(replayed))
    looked: tuple[Callable[[Replayed], Iterator[Reason]], ...] = (
        _queue, _left_out, _never, _small, _away, _idle, _closed_loop, _requests, _not_modelled, _earlier_usage,
    )  # fmt: skip
    return tuple(reason for look in looked for reason in look(replayed))


def _percent(share: float) -> str:
    return f"{number_text(100 * share)} %"


def _queue(replayed: Replayed) -> Iterator[Reason]:
    queue = replayed.queue
    if queue is None:
        return
    held, span = queue.held, format_duration(max((queue.stopped or 0) - int(replayed.workload.submit[0]), 0))
    goes_on = queue.stopped is None
    when = "in the simulation" if goes_on else f"the queue runs away: {span} after the first submission"
    end = "" if goes_on else ", and the replay was stopped there"
    yield Reason(
        "queue",
        f"{when} {held.waiting:,} jobs wait at once, where the record never has more than {queue.longest:,}; "
        f"{held.text}{end}. The jobs ran, so this is probably tighter than on the cluster: correct the site file",
        held.waiting / max(queue.longest, 1),
    )


def _left_out(replayed: Replayed) -> Iterator[Reason]:
    lost, left_out = replayed.left_out
    if lost:
        why = f"{left_out.rstrip('.')}. They ran, so a partition is missing in the site file"
        yield Reason("never", why, lost / (len(replayed.workload) + lost))


def _never(replayed: Replayed) -> Iterator[Reason]:
    rows = np.flatnonzero(~replayed.runs)
    if not len(rows):
        return
    first = int(rows[0])
    why = replayed.run.never.get(first, "it waits for what never comes")
    yield Reason(
        "never",
        f"{len(rows):,} of {len(replayed.workload):,} jobs never start on the site, the first is job "
        f"{replayed.workload.job_id[first]}: {why}. They ran, so a limit of the site file is not the cluster's",
        len(rows) / len(replayed.workload),
    )


def _small(replayed: Replayed) -> Iterator[Reason]:
    """Look whether more ran at once than the site has."""
    everybody = np.ones(len(replayed.workload), dtype=np.bool_)
    places = [("the site", everybody, int(replayed.layout.cores.sum()))]
    if len(replayed.site.partitions) > 1:
        places += [
            (f"partition {partition.name}", replayed.partition == number, replayed.cores_of(number))
            for number, partition in enumerate(replayed.site.partitions)
        ]
    for name, rows, cores in places:
        busy = replayed.in_use(rows, recorded=True)
        over = busy.share_above(cores)
        if over > _OVER:
            yield Reason(
                "small",
                f"the record has up to {busy.peak:,} cores of {name} in use at once, which has {cores:,}, and more "
                f"than that in {_percent(over)} of the time: nodes are missing in the site file, or the log is another "
                "cluster's",
                busy.peak / cores,
            )


def _away(replayed: Replayed) -> Iterator[Reason]:
    """Look for cores that the site has and the record never uses, though jobs wait."""
    jobs, cores = replayed.workload, int(replayed.layout.cores.sum())
    rows = replayed.known
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    width = max(bin_width(last - first, FIT.bins), HOUR)
    count = (last - first) // width
    if count < _FEW_BINS:
        return
    waiting = binned_integral(jobs.submit[rows], jobs.start[rows], jobs.processors[rows], first, width, count)
    pressed = waiting >= _PRESSED * cores * width
    edges = first + width * np.arange(count + 1, dtype=np.int64)
    everybody = np.ones(len(jobs), dtype=np.bool_)
    most, simulated = (replayed.in_use(everybody, recorded=real).most_in(edges) / cores for real in (True, False))
    low = pressed & (most < _LOW)
    if low.sum() < max(_FEW_BINS, _MANY_BINS * pressed.sum()) or np.median(simulated[low]) <= np.median(most[low]):
        return
    yield Reason(
        "away",
        f"in {int(low.sum()):,} of {int(pressed.sum()):,} spans of {format_duration(width)} in which jobs waited for a "
        f"fifth of the machine or more, the record never used more than {_percent(_LOW)} of its cores (median "
        f"{_percent(float(np.median(most[low])))}, simulated {_percent(float(np.median(simulated[low])))}): nodes were "
        "down or kept for others (site import --events, --reservations), or the site file has too many",
        float(low.sum() / pressed.sum()),
    )


def _idle(replayed: Replayed) -> Iterator[Reason]:
    """Look for jobs that wait though there is room, as limits make them."""
    jobs = replayed.workload
    ready = np.maximum(jobs.submit, replayed.asked.eligible)
    idle, waited = {True: 0, False: 0}, {True: 0, False: 0}
    worst = 0.0, 0.0, ""
    for number, partition in enumerate(replayed.site.partitions):
        shares, counts = {}, {}
        for recorded, start in ((True, jobs.start), (False, replayed.run.start)):
            rows = np.flatnonzero((replayed.partition == number) & replayed.compared & (start - ready > _WAITED))
            counts[recorded] = len(rows)
            rows = rows[:: len(rows) // _SAMPLE + 1]
            busy = replayed.in_use(replayed.beside(number), recorded=recorded)
            room = replayed.cores_of(number) - jobs.processors
            # Of a partition that shares nodes this says less than there is: others may be elsewhere.
            idle_seconds = sum(busy.time_at_most(int(room[row]), int(ready[row]), int(start[row])) for row in rows)
            total = int((start[rows] - ready[rows]).sum())
            idle[recorded] += idle_seconds
            waited[recorded] += total
            shares[recorded] = idle_seconds / total if total else 0.0
        if counts[True] >= _FEW_WAIT:
            worst = max(worst, (shares[True], shares[False], partition.name))
    share, simulated = (idle[which] / max(waited[which], 1) for which in (True, False))
    if max(share, worst[0]) < _IDLE or max(share - simulated, worst[0] - worst[1]) < _MORE_IDLE:
        return
    several = len(replayed.site.partitions) > 1 and worst[2]
    where = f"; most in partition {worst[2]}, {_percent(worst[0])}" if several else ""
    yield Reason(
        "idle",
        f"in {_percent(share)} of the time that jobs waited, their partition had enough idle cores for them "
        f"(simulated: {_percent(simulated)}{where}): limits of users, accounts or QOS that the site file lacks, "
        "reservations, nodes that were down, or jobs that were held or waited for others",
        share,
    )


def _closed_loop(replayed: Replayed) -> Iterator[Reason]:
    """Look for users who submit when an earlier job of theirs has ended, which a simulation does not follow."""
    jobs, asked = replayed.workload, replayed.asked
    user = asked.user_name if (asked.user_name >= 0).any() else jobs.user
    rows = replayed.known & (user >= 0)
    if not rows.any():
        return
    whose = np.unique(user[rows], return_inverse=True)[1].reshape(-1).astype(np.int64)
    follows, *others = (
        _share_soon(whose, jobs.submit[rows], replayed.recorded[1][rows], shift) for shift in (0, *_BY_CHANCE)
    )
    chance = float(np.mean(others))
    if follows - chance < _MORE_SOON:
        return
    yield Reason(
        "closed loop",
        f"{_percent(follows)} of the jobs were submitted within a minute after another job of their user had ended "
        f"(by chance it would be {_percent(chance)}): users wait for their own jobs, and in a simulation they submit "
        "when the log says, however late those end",
        follows - chance,
    )


def _share_soon(user: Int64Array, submit: Int64Array, end: Int64Array, shift: int) -> float:
    """Return the share of submissions, moved by ``shift`` seconds, shortly after an end of a job of the same user.

    ``user`` counts users from 0.
    """
    span = int(max(end.max(), submit.max())) + 2 * max(_BY_CHANCE) + 1
    zero = user * span + max(_BY_CHANCE)
    ends = np.sort(zero + end)
    keys = zero + submit + shift
    earlier = np.searchsorted(ends, keys, side="right")
    gap = keys - ends[np.maximum(earlier - 1, 0)]
    return float(((earlier > 0) & (gap <= _SOON)).mean())


def _requests(replayed: Replayed) -> Iterator[Reason]:
    if replayed.unknown:
        yield Reason(
            "requests",
            f"{'; '.join(replayed.unknown)}. Take what is missing from the accounting (policyfactory workload import)",
            float(len(replayed.unknown)),
        )


def _not_modelled(replayed: Replayed) -> Iterator[Reason]:
    """Name settings of the site that the simulation leaves out."""
    names = list(Counter(setting.name for setting in replayed.site.not_modelled))
    if names:
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        yield Reason(
            "not modelled",
            f"the site has settings that matter and are not modelled: {', '.join(names[:_MOST_NAMED])}{more} "
            "(policyfactory site show says what each would change)",
            float(len(names)),
        )


def _earlier_usage(replayed: Replayed) -> Iterator[Reason]:
    """Say that fair share begins without the usage from before the log."""
    priority, jobs = replayed.site.priority, replayed.workload
    span = int(jobs.submit[-1] - jobs.submit[0])
    if priority.kind != "multifactor" or not priority.fair_share:
        return
    if priority.half_life and span >= _FAR_PAST * priority.half_life:
        return
    forgets = f"halves in {format_duration(priority.half_life)}" if priority.half_life else "does not decay"
    yield Reason(
        "earlier usage",
        f"fair share counts usage from before the log, which {forgets}; the log has {format_duration(span)}, and the "
        "simulation begins without any: replay a longer log",
        span / priority.half_life if priority.half_life else 0.0,
    )


# What runs at each instant of a schedule, as a step function, exactly -------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Busy:
    """Cores in use over time.

    Parameters
    ----------
    times : int64 array (k,), s
        Ascending, each once; nothing is in use before the first.
    cores : int64 array (k,)
        In use from each time on.
    """

    times: Int64Array
    cores: Int64Array

    @property
    def peak(self) -> int:
        """The most in use at once."""
        return int(self.cores.max(initial=0))

    def share_above(self, cores: float) -> float:
        """Return the share of the time from the first to the last change in which more than so many are in use."""
        lasts = np.diff(self.times)
        total = float(lasts.sum())
        return float(lasts[self.cores[:-1] > cores].sum()) / total if total else 0.0

    def time_at_most(self, cores: float, begin: int, end: int) -> int:
        """Return for how many seconds of [begin, end) at most so many are in use."""
        first, last = np.searchsorted(self.times, (begin, end), side="right").tolist()
        edges = np.concatenate([[begin], self.times[first:last], [end]])
        held = np.concatenate([[self.cores[first - 1] if first else 0], self.cores[first:last]])
        return int(np.diff(edges)[held <= cores].sum())

    def most_in(self, edges: Int64Array) -> FloatArray:
        """Return the most in use in each of the bins [edges[i], edges[i + 1])."""
        found = np.zeros(len(edges) - 1)
        for index, (begin, end) in enumerate(itertools.pairwise(edges.tolist())):
            first, last = np.searchsorted(self.times, (begin, end)).tolist()
            before = int(self.cores[first - 1]) if first else 0
            found[index] = max(before, int(self.cores[first:last].max(initial=0)))
        return found


def close(quantile: float, observed: Int64Array, simulated: Int64Array) -> bool:
    """Say whether a quantile of simulated waits (s) is near enough to the recorded one.

    It is where their difference is small, or where the record has the simulated value as a quantile close by: of waits
    that are either short or long, a middle value says little.

    Parameters
    ----------
    quantile : float
        0.5 is the median.
    observed, simulated : int64 array (n,), n >= 1, s
        The waits.
    """
    was, now = float(np.quantile(observed, quantile)), float(np.quantile(simulated, quantile))
    if abs(now - was) <= max(FIT.seconds, FIT.share * was):
        return True
    low, high = np.quantile(observed, (quantile - FIT.places, quantile + FIT.places))
    return bool(low <= now <= high)
