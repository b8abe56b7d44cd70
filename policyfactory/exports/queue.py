"""The jobs that wait now, and their order: by the scores of a policy, and by what a scheduler makes of them."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import TraceFormatError, UsageError
from policyfactory.core.options import FloatArray
from policyfactory.core.text import DAY, format_duration
from policyfactory.exports.expressible import check_known, check_size
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import PriorityScale
from policyfactory.workload.accounting.sacct import gres_gpus
from policyfactory.workload.accounting.times import given_duration

# Stands for the requested time of a job without a limit: what Slurm itself plans such a job with.
UNLIMITED_S = 365 * DAY
# The number of a job, and of its task in an array: 7, 7_3, 7_[0-3]; of PBS 7.server, 7[3].server.
_NUMBER = re.compile(r"(\d{1,18})(?:[_\[]+(\d{1,18}))?(?!\w)", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """Waiting jobs.

    Parameters
    ----------
    job : tuple of str
        Ids as the site writes them.
    user : tuple of str
        Names, empty where unknown.
    p : int64 array (n,)
        Requested run time, s.
    q : int64 array (n,)
        Requested processors.
    submit : int64 array (n,)
        Submit time, Unix s.
    priority : float64 array (n,) or None
        What the scheduler sorts by today, HIGHER first; None: submit order.
    now : int
        Unix time at which the queue is looked at.
    """

    job: tuple[str, ...]
    user: tuple[str, ...]
    p: NDArray[np.int64]
    q: NDArray[np.int64]
    submit: NDArray[np.int64]
    priority: NDArray[np.float64] | None
    now: int

    def __len__(self) -> int:
        return len(self.job)

    @property
    def ages(self) -> NDArray[np.int64]:
        """Keys that decide ties, the last first: submit time, number of the job, of the array's task, then the line.

        Ids that are no numbers leave the numbers out.
        """
        found = [_NUMBER.match(job) for job in self.job]
        numbers = [(int(match[2] or 0), int(match[1])) for match in found if match is not None]
        known = np.array(numbers if len(numbers) == len(found) else [(0, 0)] * len(found), dtype=np.int64)
        return np.vstack((np.arange(len(found)), known.reshape(-1, 2).T, self.submit))


def scores_of(policy: Policy, queue: Queue) -> FloatArray:
    """Return the score of every job of a queue at its ``now``; LOWER runs first.

    With a fixed epoch r is at least 1 s, as in the scripts of all schedulers: a job submitted before the epoch counts
    as submitted at it, and log10(r) always has a value. Without one, r counts from the submission of the job that has
    waited longest, whose r is 0, as in the simulator.

    Parameters
    ----------
    policy : Policy
        What is exported.
    queue : Queue
        The jobs that wait.

    Raises
    ------
    ExportError
        If the formula has m, f, predictions or n, mem, g.
    """
    check_size(policy)
    check_known(policy, "a list of waiting jobs")
    epoch = policy.epoch.unix_time
    oldest = queue.submit.min(initial=queue.now)
    r = queue.submit - oldest if epoch is None else np.maximum(queue.submit - epoch, 1)
    return policy.scores(queue.p, queue.q, r, queue.now - queue.submit)


def before_epoch(policy: Policy, queue: Queue) -> int:
    """Return how many jobs were submitted before the fixed date from which the policy counts r; 0 without one."""
    epoch = policy.epoch.unix_time
    if epoch is None or "r" not in policy.variables:
        return 0
    return int((queue.submit < epoch).sum())


def overdue(policy: Policy, queue: Queue) -> NDArray[np.bool_]:
    """Return which jobs have waited longer than the policy's threshold."""
    return np.asarray(queue.now - queue.submit > policy.threshold)


def policy_priorities(policy: Policy, queue: Queue) -> FloatArray:
    """Return numbers in the policy's own order, HIGHER first: overdue jobs in submit order, the others by score."""
    late = overdue(policy, queue)
    scores = scores_of(policy, queue)
    order = np.lexsort((*queue.ages, np.where(late, 0.0, scores), ~late))
    ranks = np.empty(len(queue))
    ranks[order] = np.arange(len(queue), 0, -1, dtype=np.float64)
    return ranks


def scaled_priorities(policy: Policy, scale: PriorityScale) -> Callable[[Queue], FloatArray]:
    """Return the function from a queue to the whole numbers of a scale, for `Export.priorities`."""

    def priorities(queue: Queue) -> FloatArray:
        return scale.integers(scores_of(policy, queue)).astype(np.float64)

    return priorities


def start_order(priorities: FloatArray, queue: Queue) -> NDArray[np.intp]:
    """Return the indices of jobs in the order of their starts: HIGHER first, ties by submit time, then by number."""
    return np.lexsort((*queue.ages, -priorities))


# Read the jobs that wait now from a table as ``squeue`` prints it, or a site writes it --------------------------------

# What Slurm 22.05.8 prints, seen: limits ``1:00`` (a minute), ``2:00:00``, ``2-02:00:00``, ``UNLIMITED``; the rest of
# an array as one line ``7_[0-3,7%2]`` (with commas, also where fields are separated by commas); held jobs with priority
# 0; local times, or Unix seconds with ``SLURM_TIME_FORMAT=%s``.


# With -O, as -o has no processors by GPU: before 24.05 the number of processors is without them.
QUEUE_COMMAND = (
    'SLURM_TIME_FORMAT=%s squeue -r -t PD -O "JobArrayID:|,PriorityLong:|,SubmitTime:|,TimeLimit:|,NumCPUs:|,'
    'UserName:|,tres-alloc:|,NumTasks:|,cpus-per-tres:|,tres-per-job:|,tres-per-node:|,tres-per-socket:|,tres-per-task:|"'
)
LARGEST_FILE = 64 << 20
_MOST_JOBS = 1_000_000

# Name of a field -> what a column may be called, in any case; the first is squeue's.
_NAMES = {
    "job": ("jobid", "job", "job_id"),
    "priority": ("priority",),
    "submit": ("submit_time", "submit"),
    "limit": ("time_limit", "limit"),
    "processors": ("cpus", "processors"),
    "user": ("user",),
    "least": ("tres_alloc",),
    "tasks": ("tasks",),
    "cpus_per_gpu": ("cpus_per_tres",),
    "by_job": ("tres_per_job",),
    "by_node": ("tres_per_node",),
    "by_socket": ("tres_per_socket",),
    "by_task": ("tres_per_task",),
}
_NEEDED = frozenset({"job", "submit", "limit", "processors"})
_LATEST = 4_133_980_800  # 2101-01-01
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
# Of a waiting job, what squeue calls allocated is asked for: "cpu=8,mem=160M,node=2"; its own nodes are the most.
_NODES = re.compile(r"(?:^|,)node=(\d{1,9})", re.ASCII)
_NO_LIMIT = frozenset({"UNLIMITED", "NOT_SET", "INVALID", "PARTITION_LIMIT"})


@dataclasses.dataclass(slots=True)
class _Row:
    """One line of the file."""

    location: str
    fields: dict[str, str]

    def fail(self, name: str, expected: str) -> NoReturn:
        shown = ascii(self.fields[name][:60])
        raise TraceFormatError(f"{self.location}: {name} {shown}, expected {expected}")

    def whole(self, name: str, least: int, most: int) -> int:
        text = self.fields[name]
        if text.isascii() and text.isdigit() and len(text) <= 15 and least <= int(text) <= most:
            return int(text)
        return self.fail(name, f"a whole number from {least} to {most:,}")

    def processors(self) -> int:
        """Return the processors, also where they are asked for by GPU."""
        asked = self.whole("processors", 1, 10**9)
        by_gpu = self._gpus("cpus_per_gpu")
        if not by_gpu:
            return asked
        tasks = self.whole("tasks", 1, 10**9) if "tasks" in self.fields else 1
        nodes = _NODES.search(self.fields.get("least", ""))
        by_node = int(nodes[1] if nodes else 1) * max(self._gpus("by_node"), self._gpus("by_socket"))
        found = max(asked, by_gpu * max(self._gpus("by_job"), by_node, tasks * self._gpus("by_task")))
        return found if found <= 10**9 else self.fail("cpus_per_gpu", "at most 1,000,000,000 processors with the GPUs")

    def _gpus(self, name: str) -> int:
        return gres_gpus(self.fields.get(name, "")) or 0

    def priority(self) -> float:
        try:
            value = float(self.fields["priority"])
        except ValueError:
            value = np.nan
        return value if np.isfinite(value) else self.fail("priority", "a number")

    def limit(self) -> int | None:
        """Return the requested time, s; None for a job without a limit."""
        text = self.fields["limit"]
        if text.upper() in _NO_LIMIT:
            return None
        # A number alone is seconds here; sbatch, which reads the same forms, takes it for minutes.
        seconds = given_duration(text, unit=False, minutes=True)
        if seconds is None or not 0 <= seconds <= 100 * UNLIMITED_S:
            self.fail("limit", "a time as D-HH:MM:SS, MM:SS, 2h30m, seconds, or UNLIMITED")
        return max(int(seconds), 1)

    def submit(self, zone: dt.tzinfo | None) -> tuple[int, bool]:
        """Return the submit time, Unix s, and whether a zone had to be taken for it."""
        text = self.fields["submit"]
        seconds, local = -1, False
        if text.isascii() and text.isdigit() and len(text) <= 12:
            seconds = int(text)
        else:
            # Years at the ends of the calendar leave it in another zone.
            with contextlib.suppress(ValueError, OverflowError):
                moment = dt.datetime.fromisoformat(text)
                local = moment.tzinfo is None
                if local:
                    moment = moment.replace(tzinfo=zone) if zone is not None else moment.astimezone()
                seconds = int(moment.timestamp())
        if not 0 <= seconds < _LATEST:
            self.fail("submit", "Unix seconds or a time as 2026-01-31T08:00:00, of the years 1970 to 2100")
        return seconds, local


def read_queue(
    data: bytes, source: str, *, now: int | None = None, zone: dt.tzinfo | None = None
) -> tuple[Queue, tuple[str, ...]]:
    """Return the waiting jobs of a table with a header line, and what was taken for granted, in sentences.

    Parameters
    ----------
    data : bytes
        Content of the file; columns as squeue names them, or job, priority, submit, limit, processors, user (in any
        order and case; priority and user may be missing), separated by commas, ``|`` or ``;``. Where it has what is
        asked for by GPU, as squeue -O prints it, processors are counted with it.
    source : str
        Its name, for messages.
    now : int, optional
        Unix time (s) at which the queue is looked at; the latest submission without it.
    zone : tzinfo, optional
        Of times without one; this machine's without it.

    Raises
    ------
    TraceFormatError
        If a line cannot be understood (file and line), a column is missing, or no job is left.
    UsageError
        If ``now`` is before a submission.
    """
    if len(data) > LARGEST_FILE:
        raise TraceFormatError(
            f"{source}: has {len(data):,} bytes, more than the {LARGEST_FILE:,} of a queue; is it one?"
        )
    rows = list(_rows(data.decode("utf-8", "replace"), source))
    _check_ids(rows)
    notes = []
    if rows and "priority" in rows[0].fields:
        waiting = [row for row in rows if row.priority() > 0 or not row.fields["slurm"]]
        if len(waiting) < len(rows):
            notes.append(f"held jobs (priority 0), left out as an export releases none: {len(rows) - len(waiting):,}")
        rows = waiting
    if not rows:
        raise TraceFormatError(f"{source}: no waiting job in it; print the queue with {QUEUE_COMMAND}")
    limits = [row.limit() for row in rows]
    if unlimited := limits.count(None):
        notes.append(
            f"jobs without a time limit, ordered as if they asked for {format_duration(UNLIMITED_S)}: {unlimited:,}"
        )
    submits = [row.submit(zone) for row in rows]
    if local := sum(taken for _, taken in submits):
        whose = "this machine's (--time-zone ZONE gives another)" if zone is None else str(zone)
        notes.append(f"submit times without a zone, taken as {whose}: {local:,}")
    queue = _queue(rows, limits, [seconds for seconds, _ in submits], now)
    return queue, tuple(notes)


def _check_ids(rows: list[_Row]) -> None:
    """Refuse a job that stands in two lines: it would take two places."""
    seen: dict[str, str] = {}
    for row in rows:
        job = row.fields["job"]
        if job in seen:
            raise TraceFormatError(
                f"{row.location}: job {job[:60]!a} stands in line {seen[job].rpartition(':')[2]} already; keep one of "
                "them"
            )
        seen[job] = row.location


def _queue(rows: list[_Row], limits: list[int | None], submits: list[int], now: int | None) -> Queue:
    submit = np.array(submits, dtype=np.int64)
    latest = int(submit.max())
    if now is not None and now < latest:
        raise UsageError(
            f"--at {now} is before the submission of job {rows[int(submit.argmax())].fields['job']!a} at {latest}; "
            "give the time at which the queue was printed"
        )
    priorities = "priority" in rows[0].fields
    return Queue(
        job=tuple(row.fields["job"] for row in rows),
        user=tuple(row.fields.get("user", "") for row in rows),
        p=np.array([UNLIMITED_S if limit is None else limit for limit in limits], dtype=np.int64),
        q=np.array([row.processors() for row in rows], dtype=np.int64),
        submit=submit,
        priority=np.array([row.priority() for row in rows]) if priorities else None,
        now=latest if now is None else now,
    )


def _rows(text: str, source: str) -> Iterator[_Row]:
    lines = text.lstrip("\ufeff").split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    separator = max(",|;", key=lines[first].count)
    names = [name.strip().lower() for name in lines[first].split(separator)]
    columns = _columns(names, f"{source}:{first + 1}")
    # squeue's own names: priority 0 is a hold there.
    slurm = "yes" if "jobid" in names else ""
    for number, line in enumerate(lines[first + 1 :], first + 2):
        if not line.strip():
            continue
        if number > _MOST_JOBS:
            raise TraceFormatError(f"{source}: has more than {_MOST_JOBS:,} lines; is it a queue?")
        values = _split(line.rstrip("\r"), separator, f"{source}:{number}")
        if len(values) != len(names):
            raise TraceFormatError(
                f"{source}:{number}: has {len(values)} fields, the header {len(names)}; "
                f"print the queue with {QUEUE_COMMAND}"
            )
        yield _Row(
            f"{source}:{number}", {name: values[column].strip() for name, column in columns.items()} | {"slurm": slurm}
        )


def _split(line: str, separator: str, location: str) -> list[str]:
    """Return the fields of a line; the tasks of an array ``[0-3,7]`` stay in one."""
    inner = _BRACKETS.sub(lambda tasks: tasks[0].replace(separator, "\x1f"), line)
    try:
        fields = next(csv.reader([inner], delimiter=separator, strict=True))
    except csv.Error as error:
        raise TraceFormatError(f"{location}: {error}; check the quotes") from None
    return [field.replace("\x1f", separator) for field in fields]


def _columns(names: list[str], location: str) -> Mapping[str, int]:
    """Return in which column each field stands."""
    columns = {}
    for field, known in _NAMES.items():
        places = [column for column, name in enumerate(names) if name in known]
        if len(places) > 1:
            raise TraceFormatError(f"{location}: two columns are the {field}; keep one")
        if places:
            columns[field] = places[0]
        elif field in _NEEDED:
            raise TraceFormatError(
                f"{location}: no column {known[0].upper()} (or {known[1]}) in the header; "
                f"print the queue with {QUEUE_COMMAND}"
            )
    return columns
