"""What a log-only export would have done: its order of the queue against the one in which the jobs were started."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import InputError, TraceFormatError, WorkloadError
from policyfactory.core.inputs import note_input, open_input
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import counted, format_duration
from policyfactory.evaluation.verdict import requests_invented
from policyfactory.evaluation.words import basis_in_words
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.report.sections import Column, Columns, Section, Table
from policyfactory.report.verdict import TOO_FAR, Finding, Verdict, judge
from policyfactory.review.times import (
    BASELINE,
    MEANS,
    Accounting,
    Reading,
    WeekMeans,
    difference,
    in_words,
    means_of,
    nobody_waits,
    read_accounting,
)
from policyfactory.simulation.schedule import Schedule, lacking_starts, recorded_schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.statistics.compare import verdict_of as word_of
from policyfactory.workload.header import printable
from policyfactory.workload.jobs import Workload, load_in_words
from policyfactory.workload.swf.files import GZIP, PART, unpacked

_MOST_PAIRS = 20_000_000
_MOST_STARTS = 20_000
_MOST_LOOKS = 1_000_000_000
# Rows of the accounting by user, submit time, limit and processors.
_Alike = dict[tuple[str, int, int, int], list[int]]
_CLOCK = 1  # s: a script may look at its clock just before or after Slurm does


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Lines with their jobs.

    Parameters
    ----------
    lines : list of Logged
        Those of which the job is known; one for each job where a line is about several that are alike.
    rows : int64 array (lines,)
        The row of the accounting of each.
    without : int
        Lines of no job in the accounting.
    larger : int
        Jobs that were given more processors than a line of theirs counts.
    """

    lines: list[Logged]
    rows: Int64Array
    without: int
    larger: int = 0


def match(log: ShadowLog, accounting: Accounting) -> Matched:
    """Return the lines with the jobs that they are about.

    By the job's number, of an array by that of the array for tasks that have no line of their own. A line without a
    number is about all jobs of its user that were submitted at its time (give or take 1 s) with its limit and size:
    they have one score. The size is what was requested; where no such job is, what was allocated, as Slurm before 24.05
    records what is asked for by GPU.

    Raises
    ------
    WorkloadError
        If there are more than 20 million pairs of a line and a job, as of large arrays that are logged again and again.
    """
    swf = accounting.log
    begins = swf.header.unix_start or 0
    submit = (swf.submit + begins).astype(np.int64).tolist()
    allocated = swf.allocated.astype(np.int64)
    sizes = np.where(swf.requested > 0, swf.requested, allocated).astype(np.int64).tolist(), allocated.tolist()
    limit = swf.requested_time.astype(np.int64).tolist()
    by_id: dict[str, list[int]] = defaultdict(list)
    for row, job in enumerate(accounting.job):
        by_id[job].append(row)
        if "_" in job:
            by_id[job.partition("_")[0]].append(row)
    users = accounting.user if all(user.isdigit() for user in accounting.user) else ()
    alike: tuple[_Alike, _Alike] = defaultdict(list), defaultdict(list)
    for known, size in zip(alike, sizes, strict=True):
        for row, (second, seconds, processors) in enumerate(zip(submit, limit, size, strict=True)):
            known[users[row] if users else "", second, seconds, processors].append(row)
    lines: list[Logged] = []
    rows: list[int] = []
    without = 0
    for line in log.lines:
        found = by_id.get(line.job, []) if line.job else _alike(alike, line, line.user if users else "")
        without += not found
        rows += found
        lines += [line] * len(found)
        if len(rows) > _MOST_PAIRS:
            raise WorkloadError(
                f"{log.path}: its lines are about more than {_MOST_PAIRS:,} jobs, the tasks of an array counted "
                "each time; give a shorter time of the log"
            )
    found_rows = np.array(rows, dtype=np.int64)
    counted = np.array([line.processors for line in lines], dtype=np.int64)
    larger = np.unique(found_rows[allocated[found_rows] > counted]).size
    return Matched(lines, found_rows, without, larger)


def _alike(alike: tuple[_Alike, _Alike], line: Logged, user: str) -> list[int]:
    keys = [(user, line.submit + off, line.time, line.processors) for off in (0, _CLOCK, -_CLOCK)]
    return next((found for known in alike for key in keys if (found := known.get(key))), [])


# How two orders differ, start by start --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class OrderedPairs:
    """Pairs of jobs of which one started while the other waited.

    Parameters
    ----------
    starts : int
        Starts beside which another job waited, of those that were looked at.
    passed : int
        Of these starts, those while a job waited that the numbers put before: they would differ.
    pairs, other : int
        Pairs, and those that the numbers have the other way round.
    by_submit : int
        Pairs in which the earlier submission started later: what is not in submit order today.
    prior, other_prior : int
        Pairs of which both priorities were logged, and those of them that the priorities have the other way round.
    up, down : int64 array (n,)
        Of each job: pairs in which it would go before the other and did not, and the reverse.
    beside : int64 array (n,)
        Of each job: its pairs.
    """

    starts: int
    passed: int
    pairs: int
    other: int
    by_submit: int
    prior: int
    other_prior: int
    up: Int64Array
    down: Int64Array
    beside: Int64Array

    @property
    def tau(self) -> float:
        """Kendall's tau of the two orders over these pairs: 1 the same, -1 the reverse; NaN without pairs."""
        return 1 - 2 * self.other / self.pairs if self.pairs else float("nan")


def compare_orders(
    submit: Int64Array, start: Int64Array, rows: Int64Array, lines: list[Logged], ready: Int64Array | None = None
) -> OrderedPairs:
    """Return how the order by the logged numbers differs from the order of the starts.

    At each start, the job that starts is compared with all that wait then, by the numbers that were the latest known
    at that time; of equal numbers the earlier submission goes first, as for the scheduler.

    Parameters
    ----------
    submit, start : int64 array (n,)
        Unix times of the jobs, s; start -1: never. In order of submission.
    rows : int64 array (lines,)
        The job of each line.
    lines : list of Logged
        In any order.
    ready : int64 array (n,), optional
        Unix times from which the jobs could run, s; when they were submitted, if not given.
    """
    ready = submit if ready is None else ready
    instants = np.array([line.instant for line in lines], dtype=np.int64)
    order = np.argsort(instants, kind="stable")
    instants, rows = instants[order], rows[order]
    number, present = (np.array([getattr(line, name) for line in lines])[order] for name in ("number", "present"))
    known = np.full((2, len(submit)), np.nan)
    began = np.flatnonzero(start >= 0)
    began = began[np.argsort(start[began], kind="stable")]
    leaves = np.where(start < 0, submit, start)
    longest = int((leaves - submit).max(initial=0))
    first = np.searchsorted(submit, start[began] - longest)
    last = np.searchsorted(submit, start[began], "right")
    looks = np.cumsum(last - first)
    step = max(1, -(-len(began) // _MOST_STARTS), -(-int(looks[-1]) // _MOST_LOOKS)) if len(began) else 1
    counts = Counter(starts=0, passed=0, pairs=0, other=0, by_submit=0, prior=0, other_prior=0)
    up, down, beside = np.zeros((3, len(submit)), dtype=np.int64)
    seen = 0
    for position in range(0, len(began), step):
        job = int(began[position])
        now = int(start[job])
        until = int(np.searchsorted(instants, now + _CLOCK, "right"))
        known[0, rows[seen:until]] = number[seen:until]
        known[1, rows[seen:until]] = present[seen:until]
        seen = until
        near = np.arange(first[position], last[position])
        could = (ready[near] <= now) & (leaves[near] > now) & (near != job)
        waiting = near[could & ~np.isnan(known[0, near])]
        if not len(waiting) or np.isnan(known[0, job]):
            continue
        other = _before(waiting, job, known[0])
        prior = ~np.isnan(known[1, waiting]) & ~np.isnan(known[1, job])
        counts.update(
            starts=1,
            passed=int(other.any()),
            pairs=len(waiting),
            other=int(other.sum()),
            by_submit=int((waiting < job).sum()),
            prior=int(prior.sum()),
            other_prior=int((_before(waiting, job, known[1]) & prior).sum()),
        )
        up[waiting[other]] += 1
        down[job] += int(other.sum())
        beside[waiting] += 1
        beside[job] += len(waiting)
    return OrderedPairs(**counts, up=up, down=down, beside=beside)


def _before(jobs: Int64Array, job: int, value: FloatArray) -> NDArray[np.bool_]:
    """Return which jobs go before another one: by the higher value, then by submission, then by place."""
    return np.asarray((value[jobs] > value[job]) | ((value[jobs] == value[job]) & (jobs < job)))


# What a policy would be worth on the jobs of a time: against first come, first served, and against the record ---------


_FEW_JOBS = 100


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class JudgedTime:
    """Schedules of one time and what separates them.

    Parameters
    ----------
    means : dict of str to WeekMeans
        Of the policy, of the baseline and, where the starts are known, of the record.
    verdict : Verdict
        Whether the policy is better than both.
    """

    means: dict[str, WeekMeans]
    verdict: Verdict


def judge_simulated(workload: Workload, policy: Policy) -> JudgedTime:
    """Simulate the jobs of a time by a policy and first come, first served, and compare both with the record.

    Parameters
    ----------
    workload : Workload
        Its jobs.
    policy : Policy
        The order that is judged.
    """
    schedules = {
        f"{policy.name}, simulated": simulate(workload, policy),
        f"{BASELINE}, simulated": simulate(workload, BASELINE),
    }
    if not lacking_starts(workload):
        schedules["recorded"] = recorded_schedule(workload)
    verdict = _judged(policy.name, *schedules.values())
    means = {who: means_of(schedule) for who, schedule in schedules.items()}
    return JudgedTime(means, dataclasses.replace(verdict, caveats=basis_in_words(workload)))


def _judged(name: str, new: Schedule, base: Schedule, record: Schedule | None = None) -> Verdict:
    workload, means, first = new.workload, means_of(new), means_of(base)
    if len(new) < _FEW_JOBS:
        return Verdict("cannot tell", (f"What it would be worth cannot be told from {counted(len(new), 'job')}.",))
    if nobody_waits(new, base):
        load = load_in_words(workload.offered_load)
        why = f"Nobody waits in a simulation under either order ({load}): it cannot tell them apart."
        return Verdict("cannot tell", (why,))
    gain = difference(new, base, "bsld")
    words: list[str] = [word_of(gain.interval)]
    unsound = requests_invented(workload)
    sentences = [
        (
            f"Simulated with EASY, the mean bounded slowdown is {means.bsld:.3g} against {first.bsld:.3g} of "
            f"{BASELINE}: {in_words(gain)}; the mean wait {format_duration(means.wait_s)} against "
            f"{format_duration(first.wait_s)}, the longest {format_duration(means.longest_s)} "
            f"against {format_duration(first.longest_s)}."
        )
    ]
    if record is None:
        words.append("")
        sentences.append(f"It cannot be compared with the record: {lacking_starts(workload)}.")
    else:
        was, by_record = means_of(record), difference(new, record, "bsld")
        recorded = (
            f"In the record the mean bounded slowdown is {was.bsld:.3g}, the mean wait {format_duration(was.wait_s)}"
        )
        if was.bsld > TOO_FAR * first.bsld:
            far = f"the simulation of {BASELINE} is too far from that to judge by it (limits, partitions, ...)."
            unsound = (*unsound, f"{recorded}: {far}")
        else:
            words.append(word_of(by_record.interval))
            sentences.append(f"{recorded}; against that {name} is {in_words(by_record)}.")
    light = judge(*([Finding(word)] for word in (*words, *(["unsound"] if unsound else []))))
    if light == "cannot tell" and record is not None:
        sentences.append("It is not shown to be better than both.")
    return Verdict(light, (*unsound, *sentences))


# What a log-only export would have done -------------------------------------------------------------------------------


_FEW_PAIRS, _FEW_STARTS = 100, 20
_MOST_ROWS = 20
_LARGER = (
    "got more processors than the score counted (whole nodes, or slurm.conf's defaults by GPU, which Lua is not told: "
    "docs/slurm.md)"
)
_ENOUGH = 0.95  # of the jobs must have a number, or a simulation of their order says nothing


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Shadow:
    """What a log-only export would have done.

    Parameters
    ----------
    log : ShadowLog
        What was logged.
    accounting : Accounting
        The jobs.
    matched : Matched
        The lines with their jobs.
    pairs : Pairs
        The two orders.
    judged : Judged or None
        Both orders simulated; None where they could not be.
    verdict : Verdict
        In words.
    """

    log: ShadowLog
    accounting: Accounting
    matched: Matched
    pairs: OrderedPairs
    judged: JudgedTime | None
    verdict: Verdict

    def sections(self) -> tuple[Section, ...]:
        """Return what was found, for page, files and terminal."""
        orders = Section("orders", "The two orders", (), (_orders_table(self.pairs), *_costs(self.log)))
        jobs = Section("jobs", "Who would go earlier, who later", (), (self._jobs(), self._users()))
        if self.judged is None:
            return orders, jobs
        columns: Columns = {Column("order"): lambda who, _: who, **MEANS}
        table = Table.of("values", "One continuous simulation of the jobs", columns, self.judged.means.items())
        return orders, jobs, Section("simulated", "Simulated with EASY backfilling", (), (table,))

    def _jobs(self) -> Table:
        pairs, log = self.pairs, self.accounting.log
        net = pairs.up - pairs.down
        order = np.argsort(-np.abs(net), kind="stable")
        columns: Columns = {
            Column("job"): lambda row: self.accounting.job[row] if self.accounting.job else str(int(log.job_id[row])),
            Column("user"): lambda row: _user(self.accounting, row),
            Column("requested time", "s"): lambda row: float(log.requested_time[row]),
            Column("processors", ""): lambda row: float(log.requested[row]),
            Column("waited", "s"): lambda row: float(log.wait[row]),
            Column("jobs it would pass", ""): lambda row: float(pairs.up[row]),
            Column("jobs that would pass it", ""): lambda row: float(pairs.down[row]),
        }
        rows = [(row,) for row in order[net[order] != 0][:_MOST_ROWS].tolist()]
        return Table.of("jobs", "The jobs that would move most", columns, rows)

    def _users(self) -> Table:
        pairs = self.pairs
        users, code = np.unique([_user(self.accounting, row) for row in range(len(pairs.beside))], return_inverse=True)
        up, down, beside = (np.bincount(code, column).tolist() for column in (pairs.up, pairs.down, pairs.beside))
        columns: Columns = {
            Column("user"): lambda user: str(users[user]),
            Column("would go earlier", "%", "Pairs in which its job would pass the other"): (
                lambda user: 100 * up[user] / beside[user]
            ),
            Column("would go later", "%", "Pairs in which the other would pass its job"): (
                lambda user: 100 * down[user] / beside[user]
            ),
            Column("pairs", ""): lambda user: beside[user],
        }
        order = np.argsort(-np.abs(np.subtract(up, down)), kind="stable")[: 2 * _MOST_ROWS].tolist()
        rows = [(user,) for user in order if beside[user]]
        return Table.of("users", "The users whose jobs would move most", columns, rows)


def shadow(
    logfile: Path | str,
    accounting: Sequence[Path | str],
    reading: Reading | None = None,
    policy: PolicyLike | None = None,
) -> Shadow:
    """Compare the order that a log-only export would have made with the one that was.

    Parameters
    ----------
    logfile : Path or str
        slurmctld.log, or the log of the script; its lines are those of ``export --log-only``.
    accounting : sequence of Path or str
        The accounting of the same time, see `read_accounting`.
    reading : Reading, optional
        How it is read.
    policy : PolicyLike, optional
        What is simulated; without it, each job's number at its submission.

    Raises
    ------
    InputError, TraceFormatError, WorkloadError
        If a file cannot be read, or no line is about a job of the accounting.
    """
    log = read_shadow(logfile)
    known = read_accounting(accounting, reading)
    matched = match(log, known)
    if not matched.lines:
        raise WorkloadError(
            f"{log.path}: none of its {len(log.lines):,} lines is about a job of {known.name}; give the accounting of "
            "the same cluster and time (sacct with UID, JobID, TimelimitRaw and ReqCPUS, as workload import asks for)"
        )
    swf = known.log
    submit = swf.submit.astype(np.int64) + (swf.header.unix_start or 0)
    start = np.where(swf.wait >= 0, submit + swf.wait.astype(np.int64), -1)
    eligible = swf.extra.get("eligible", np.full(len(submit), -1))
    ready = np.where(eligible >= 0, np.maximum(eligible + (swf.header.unix_start or 0), submit), submit)
    pairs = compare_orders(submit, start, matched.rows, matched.lines, ready)
    judged, why = _simulated(known, matched, None if policy is None else resolve(policy))
    return Shadow(log, known, matched, pairs, judged, _verdict(log, known, matched, pairs, judged, why))


def _simulated(known: Accounting, matched: Matched, policy: Policy | None) -> tuple[JudgedTime | None, str]:
    """Return both orders simulated, or why they are not."""
    numbers = _at_submission(known, matched)
    rows = known.rows
    share = float(np.mean(~np.isnan(numbers[rows])))
    if policy is None:
        if share < _ENOUGH:
            return None, f"{100 * share:.0f} % of the jobs have a logged number: too few to simulate their order"
        # A job without a number is last, as it is for Slurm.
        jobs = known.workload
        logged = numbers[rows][np.lexsort((jobs.job_id, jobs.submit))]
        scores = np.where(np.isnan(logged), np.inf, -logged)
        policy = Policy.from_function(lambda _: scores, "LOGGED")
    return judge_simulated(known.workload, policy), ""


def _at_submission(known: Accounting, matched: Matched) -> FloatArray:
    """Return the first number that each job of the log was given; NaN without one."""
    numbers = np.full(len(known.log.job_id), math.nan)
    instants = np.array([line.instant for line in matched.lines])
    backwards = np.argsort(-instants, kind="stable")
    numbers[matched.rows[backwards]] = np.array([line.number for line in matched.lines])[backwards]
    return numbers


def _verdict(
    log: ShadowLog, known: Accounting, matched: Matched, pairs: OrderedPairs, judged: JudgedTime | None, why: str
) -> Verdict:
    having = len(np.unique(matched.rows))
    caveats = [
        (
            f"{having:,} of {len(known.log.job_id):,} jobs of {known.name} have a logged number; "
            f"{matched.without:,} of {len(log.lines):,} lines are of jobs that are not in the accounting"
        ),
        *([f"{counted(matched.larger, 'job')} {_LARGER}"] if matched.larger else []),
        *([f"{log.unread:,} lines of {log.path} begin as a logged score and cannot be read"] if log.unread else []),
        *filter(None, [known.late_text]),
        (
            "starts are those of the real scheduler, with its backfilling, limits and partitions: some jobs start out "
            "of turn whatever the order of the queue is"
        ),
    ]
    if pairs.pairs < _FEW_PAIRS or pairs.starts < _FEW_STARTS:
        return Verdict(
            "cannot tell",
            (
                (
                    f"Cannot tell: at {counted(pairs.starts, 'start')} another job waited "
                    f"({counted(pairs.pairs, 'pair')} of jobs). Fewer than {_FEW_STARTS} starts or {_FEW_PAIRS} pairs "
                    "say nothing about an order: log for a longer or a busier time."
                ),
            ),
            tuple(caveats),
        )
    words = _order_words(pairs)
    if judged is None:
        return Verdict("cannot tell", (*words, f"What it would be worth cannot be told: {why}."), tuple(caveats))
    light, simulated, heading = judged.verdict.light, judged.verdict.sentences, ""
    if light == "unsound":  # that is the simulation; the pairs are of the record
        heading = "The orders are compared; what the new one would be worth cannot be told"
        simulated = ("The simulation is unsound, so that nothing can be concluded from it:", *simulated)
    return Verdict(light, (*words, *simulated), (*caveats, *judged.verdict.caveats), heading)


def _order_words(pairs: OrderedPairs) -> tuple[str, ...]:
    if not pairs.pairs:
        return ("No job started while another one with a number waited.",)
    return (
        (
            f"Of {pairs.pairs:,} pairs of waiting jobs, {100 * pairs.other / pairs.pairs:.1f} % would go the other way "
            f"round (Kendall's tau {pairs.tau:.2f}; 1: the same order). At {100 * pairs.passed / pairs.starts:.1f} % "
            f"of {counted(pairs.starts, 'start')} a job waited that would have stood before the one that started."
        ),
    )


def _orders_table(pairs: OrderedPairs) -> Table:
    rows = [
        ("by the logged numbers", pairs.other, pairs.pairs),
        ("by submit time (first come, first served)", pairs.by_submit, pairs.pairs),
        *([("by the logged priorities of today", pairs.other_prior, pairs.prior)] if pairs.prior else []),
    ]
    columns: Columns = {
        Column("order"): lambda name, *_: name,
        Column("pairs the other way round than the starts", "%"): lambda _, other, total: (
            100 * other / total if total else None
        ),
        Column("Kendall's tau", "1"): lambda _, other, total: 1 - 2 * other / total if total else None,
        Column("pairs", ""): lambda _, __, total: float(total),
    }
    return Table.of("orders", "Orders of the waiting jobs against that of the starts", columns, rows)


def _costs(log: ShadowLog) -> tuple[Table, ...]:
    cost = np.array([line.cost_us for line in log.lines])
    cost = cost[~np.isnan(cost)]
    if not len(cost):
        return ()
    values = {"mean": cost.mean(), "99 % take at most": np.quantile(cost, 0.99), "longest": cost.max()}
    columns: Columns = {Column("cost"): lambda name, _: name, Column("microseconds"): lambda _, value: float(value)}
    return (Table.of("cost", f"What a score took, of {len(cost):,} that were timed", columns, values.items()),)


def _user(accounting: Accounting, row: int) -> str:
    return accounting.user[row] if accounting.user else str(int(accounting.log.user[row]))


# The lines that an export with --log-only writes: what each job's number would have been ------------------------------
# They stand among other lines, in slurmctld.log or in the log of a script. The file is a stranger's: lines are bounded,
# numbers are checked, and what cannot be read is counted.

# Where slurmctld's log puts it: behind a time or syslog's head, and words of Slurm's own. Elsewhere on a line the mark
# stands in what a user wrote.
_MARK = re.compile(
    rb"(?:\[[^\[\]]{1,80}\] |(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.,Z+-]{8,24}) [^\s:]{1,255} "
    rb"slurmctld(?:\[\d{1,10}\])?: )?(?:slurmctld: )?(?:sched: )?(?:(?:job_submit/)?lua: )?policyfactory-shadow: "
)
_LONGEST_LINE = 4096
_MOST_LINES = 20_000_000
_LARGEST_LOG = 64 << 30  # bytes; a pipe may have no end
_LARGEST = float(1 << 40)
_FIELD = re.compile(r"\b(\w+)=(\S+)", re.ASCII)  # from the start of a word: else the square of its length
_JOB = re.compile(r"\d{1,15}(?:_\d{1,10})?", re.ASCII)
_NUMBERS = ("at", "submit", "time", "processors")


@dataclasses.dataclass(frozen=True, slots=True)
class Logged:
    """One line.

    Parameters
    ----------
    instant : int
        Unix time at which the number was computed.
    job : str
        The job's number as the scheduler writes it (``12``, ``12_3``); empty where it had none yet.
    user : str
        Number of its user; empty if unknown.
    submit, time, processors : int
        Submit time (Unix s), requested time (s) and processors that the number was computed from.
    number : float
        By what the scheduler would have sorted, HIGHER first.
    present : float
        Its priority then; NaN if unknown.
    cost_us : float
        What the computation took, microseconds; NaN if it was not measured.
    """

    instant: int
    job: str
    user: str
    submit: int
    time: int
    processors: int
    number: float
    present: float
    cost_us: float


@dataclasses.dataclass(frozen=True, slots=True)
class ShadowLog:
    """What was logged.

    Parameters
    ----------
    path : str
        The file.
    policies : tuple of str
        Names of the policies in it.
    lines : tuple of Logged
        In the order of the file.
    unread : int
        Lines that begin as ours do and cannot be read.
    sha256 : str
        Of the file, as it was read.
    """

    path: str
    policies: tuple[str, ...]
    lines: tuple[Logged, ...]
    unread: int
    sha256: str = ""


def read_shadow(path: Path | str) -> ShadowLog:
    """Read the lines of an export with ``--log-only``; all others are passed over.

    Parameters
    ----------
    path : Path or str
        slurmctld.log or a script's log, also packed with gzip.

    Raises
    ------
    InputError
        If the file cannot be read, is damaged, has more than 64 GiB, or unpacks to more than 50 times its size.
    TraceFormatError
        If no line in it is of such an export, or there are more than 20 million.
    """
    path = Path(path)
    name = printable(str(path), 300)
    lines: list[Logged] = []
    policies: dict[str, None] = {}
    unread, digest = 0, hashlib.sha256()
    for text in _ours(path, name, digest):
        fields = dict(_FIELD.findall(text))
        logged = _line(fields)
        if logged is None:
            unread += 1
            continue
        lines.append(logged)
        if len(lines) > _MOST_LINES:
            raise TraceFormatError(f"{name}: more than {_MOST_LINES:,} lines of scores; give a shorter time of the log")
        if (policy := fields.get("policy", "-")) != "-":
            policies[printable(policy, 60)] = None
    if not lines:
        odd = f" ({unread:,} begin as one and cannot be read)" if unread else ""
        raise TraceFormatError(
            f"{name}: no line of a log-only export in it{odd}; expected lines with 'policyfactory-shadow:', as "
            "export --log-only makes Slurm write (SlurmctldDebug=info or more)"
        )
    return ShadowLog(name, tuple(list(policies)[:10]), tuple(lines), unread, digest.hexdigest())


def _ours(path: Path, name: str, digest: Any) -> Iterator[str]:
    """Give what stands behind the mark in each line that has it."""
    try:
        note_input(path)
        with open_input(path) as file:
            blocks = _blocks(file, name, digest)
            first = next(blocks, b"")
            blocks = itertools.chain([first], blocks)
            begins, rest = True, b""
            for block in unpacked(blocks, name) if first.startswith(GZIP) else blocks:
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    yield from _behind_mark(line, begins=begins)
                    begins = True
                # Of a line that is longer only the beginning is looked at.
                if len(rest) > _LONGEST_LINE:
                    yield from _behind_mark(rest, begins=begins)
                    begins, rest = False, b""
            yield from _behind_mark(rest, begins=begins)
    except OSError as error:
        problem = getattr(error, "strerror", None) or error
        raise InputError(f"{name}: cannot be read: {problem}; check the path and its permissions") from None


def _blocks(file: IO[bytes], name: str, digest: Any) -> Iterator[bytes]:
    room = _LARGEST_LOG
    while block := file.read(PART):
        room -= len(block)
        if room < 0:
            raise InputError(f"{name}: has more than {_LARGEST_LOG:,} bytes; give a shorter time of the log")
        digest.update(block)
        yield block


def _behind_mark(line: bytes, *, begins: bool) -> Iterator[str]:
    match = _MARK.match(line) if begins else None
    if match:
        yield line[match.end() : _LONGEST_LINE].decode("ascii", "replace")


def _line(fields: dict[str, str]) -> Logged | None:
    """Return a line; None if a part is missing or is no number that can be."""
    try:
        instant, submit, time, processors = (float(fields[name]) for name in _NUMBERS)
        number = float(fields["number"])
        present, cost = (math.nan if fields[name] == "-" else float(fields[name]) for name in ("present", "us"))
        job, user = fields["job"], fields["user"]
    except (KeyError, ValueError):
        return None
    # A job without a limit that is known has none to compare, but its number counts.
    whole = all(0 <= value <= _LARGEST for value in (instant, submit, processors)) and -1 <= time <= _LARGEST
    if not whole or math.isnan(number) or (job != "-" and not _JOB.fullmatch(job)):
        return None
    if not (math.isnan(cost) or 0 <= cost <= 1e12):
        return None
    if not 0 < present < 4_294_967_294:  # held, or not computed yet
        present = math.nan
    return Logged(
        instant=int(instant),
        job="" if job == "-" else job,
        user="" if user == "-" else user[:40],
        submit=int(submit),
        time=int(time),
        processors=int(processors),
        number=number,
        present=present,
        cost_us=cost,
    )
