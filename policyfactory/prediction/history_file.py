"""The file of a history, made to be read by a script at each submission: an index of hashes, then a part for each.

The first line has `HEADER` bytes; of the index each line has `LINE`, sorted by hash: the hash, where its part begins,
how long it is, and its Adler-32. So a reader finds the part of one user with some twenty short reads, and knows one
that is damaged. Hashes are the first 16 digits of SHA-256 of the key and the name; the key is in a file beside it.

Parts are lines of words::

    U waiting running ended submitted burst       of a user; then, of the same user,
    L start request processors running            the last start
    J end request processors run status           ended jobs, the newest first
    K kind request processors executable ln_run shortness share count last     groups of like jobs
    G ln_run shortness share count last           a group of users
    S ln_run shortness share count last           jobs that ask for the same
    F floor, then N job end                       ended jobs that were noted
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from policyfactory.core.errors import InputError, OutputError, TraceFormatError, UsageError
from policyfactory.core.files import atomic_write, check_output, reason
from policyfactory.core.inputs import read_bytes
from policyfactory.core.text import DAY
from policyfactory.prediction.features import FEATURE_SET
from policyfactory.prediction.history import (
    NO_NAME,
    Asleep,
    Ended,
    GroupKey,
    History,
    HistoryLimits,
    Means,
    Started,
    UserPast,
    without_numbers,
)
from policyfactory.workload.accounting.record import NAMES, NUMBERS, LimitKind, RecordBlock, Remark, State
from policyfactory.workload.accounting.sacct import read
from policyfactory.workload.accounting.source import Source
from policyfactory.workload.accounting.table import StepCounter
from policyfactory.workload.accounting.times import Clock
from policyfactory.workload.header import printable

HISTORY_SCHEMA = 1
HEADER, LINE = 128, 47  # bytes
_LARGEST = 1 << 30  # bytes of a file
_LARGEST_NUMBER = 1 << 53
_DIGITS = 16  # of a hash
_NOTED = "noted"
_HEAD = re.compile(
    rb"policyfactory-history (\d{1,9}) features (\d{1,9}) at (\d{1,12}) key ([0-9a-f]{16}) entries (\d{1,9}) "
    rb"bytes (\d{1,12}) names ([01]) *\n"
)
_INDEX = re.compile(rb"([0-9a-f]{16}) (\d{10}) (\d{9}) ([0-9a-f]{8})\n")
_CURE = "remove it, and let history update make it anew (sacct -S with some months)"
_NAME = re.compile(r"[\w+\[\].,:%-]{1,60}", re.ASCII)


def key_path(path: Path) -> Path:
    """Return where the key of a history lies."""
    return path.with_name(f"{path.name}.key")


def key_of(path: Path) -> bytes:
    """Return the key of a history; made, readable by its owner only, if there is none.

    Raises
    ------
    InputError
        If it cannot be read, or is no key.
    OutputError
        If it cannot be made.
    """
    where = key_path(path)
    check_output(path)
    if not where.exists():
        _make_key(where)
    return _read_key(path)


def _read_key(path: Path) -> bytes:
    where = key_path(path)
    text = read_bytes(where, limit=200).decode("ascii", "replace").strip()
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise InputError(
            f"{where}: is no key of 64 hexadecimal digits; remove it and {path.name}, and begin the history anew"
        )
    return bytes.fromhex(text)


def _make_key(where: Path) -> None:
    """Write a key that nobody else can read at any moment; the file has its name when it is whole."""
    draft = where.with_name(f".{where.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(f"{secrets.token_hex(32)}\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(where)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"{where}: cannot be written: {reason(error)}; nothing was changed; mend that, or name a file elsewhere"
        ) from None


def hash_with(key: bytes) -> Callable[[str], str]:
    """Return the function from a name to its hash under a key."""

    def hashed(name: str) -> str:
        return hashlib.sha256(key + name.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]

    return hashed


def write_history(history: History, path: Path, hashed: Callable[[str], str]) -> None:
    """Write a history; a reader sees the old file or the new one, whole.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    entries = {name: "".join(_user_lines(user)) for name, user in history.users.items()}
    entries |= {name: user.text for name, user in history.asleep.items()}
    for mark, table in (("G", history.groups), ("S", history.shapes)):
        entries |= {name: f"{mark} {_means(means)}\n" for name, means in table.items()}
    noted = [f"N {job} {end}\n" for job, end in history.noted.items()]
    entries[hashed(_NOTED)] = "".join([f"F {history.floor}\n", *noted])
    parts = [entries[name].encode() for name in sorted(entries)]
    offset, index = HEADER + LINE * len(parts), []
    for name, part in zip(sorted(entries), parts, strict=True):
        index.append(f"{name} {offset:010} {len(part):09} {zlib.adler32(part):08x}\n".encode())
        offset += len(part)
    head = (
        f"policyfactory-history {HISTORY_SCHEMA} features {FEATURE_SET} at {history.instant} key {hashed('key')} "
        f"entries {len(parts)} bytes {offset} names {int(history.names)}"
    )
    atomic_write(path, [head.ljust(HEADER - 1).encode() + b"\n", *index, *parts])


def _means(means: Means) -> str:
    return f"{means.ln_run!r} {means.shortness!r} {means.share!r} {means.count} {means.last}"


def _user_lines(user: UserPast) -> Iterator[str]:
    yield f"U {user.waiting} {user.running} {user.ended} {user.submitted} {user.burst}\n"
    if user.started is not None:
        yield f"L {' '.join(map(str, user.started))}\n"
    for job in reversed(user.jobs):
        yield f"J {' '.join(map(str, job))}\n"
    for key, means in user.groups.items():
        yield f"K {' '.join(map(str, key))} {_means(means)}\n"


def open_history(path: Path) -> tuple[History, Callable[[str], str]] | None:
    """Return the history of a file and the hashes of its names, None if there is none; nothing is written.

    Raises
    ------
    InputError
        If it, or its key, cannot be read or is damaged.
    """
    if not path.exists():
        return None
    hashed = hash_with(_read_key(path))
    return read_history(path, hashed), hashed


def read_history(path: Path, hashed: Callable[[str], str]) -> History:
    """Return the history of a file; an empty one if there is none.

    Raises
    ------
    InputError
        If it is damaged, of a newer version, of another set of features or of another key.
    """
    if not path.exists():
        return History()
    data = read_bytes(path, limit=_LARGEST, replaceable=True)
    head = _HEAD.match(data, 0, HEADER)
    if head is None:
        raise InputError(f"{path}: does not begin as the file of a history; name another, or {_CURE}")
    schema, features, instant, entries, size = (int(head[column]) for column in (1, 2, 3, 5, 6))
    if schema != HISTORY_SCHEMA:
        raise InputError(
            f"{path}: has version {schema} of the format, this policyfactory reads {HISTORY_SCHEMA}; take the one that "
            f"wrote it, or {_CURE}"
        )
    if features != FEATURE_SET:
        raise InputError(f"{path}: has set {features} of the features, this policyfactory {FEATURE_SET}; {_CURE}")
    if head[4].decode() != hashed("key"):
        raise InputError(f"{path}: was made with another key than that of {key_path(path)}; {_CURE}")
    if size != len(data) or HEADER + LINE * entries > len(data):
        raise InputError(f"{path}: has {len(data):,} bytes in place of {size:,}; it is damaged: {_CURE}")
    history = History(instant, names=head[7] == b"1")

    def read(text: str) -> UserPast:
        try:
            return _user_of(text)
        except (ValueError, IndexError):
            raise InputError(f"{path}: what it has of a user is damaged; {_CURE}") from None

    for number in range(entries):
        start = HEADER + LINE * number
        found = _INDEX.fullmatch(data, start, start + LINE)
        try:
            _add(history, data, found, read)
        except (ValueError, IndexError):
            raise InputError(f"{path}: entry {number + 1} of {entries} is damaged; {_CURE}") from None
    return history


def _add(history: History, data: bytes, found: re.Match[bytes] | None, read: Callable[[str], UserPast]) -> None:
    """Add what an entry of the index leads to."""
    if found is None:
        raise ValueError
    name, begin, length = found[1].decode(), int(found[2]), int(found[3])
    part = data[begin : begin + length]
    if len(part) != length or zlib.adler32(part) != int(found[4], 16):
        raise ValueError
    text = part.decode("ascii")
    match text[:2]:
        case "U ":
            if text.startswith("U 0 0 "):
                # The last start and end are among the first lines.
                latest = _user_of("\n".join(text.split("\n", 3)[:3]))
                history.asleep[name] = Asleep(latest.seen, text, read)
            else:
                history.users[name] = _user_of(text)
        case "G " | "S ":
            table = history.groups if text[0] == "G" else history.shapes
            table[name] = _means_of(text.split()[1:])
        case "F ":
            first, *lines = [line.split(" ") for line in text.splitlines()]
            history.floor = _whole(first[1])
            history.noted = {_name(line[1]): _whole(line[2]) for line in lines}
        case _:
            raise ValueError


def _user_of(text: str) -> UserPast:
    first, *lines = [line.split(" ") for line in text.splitlines()]
    waiting, running, ended, submitted, burst = map(_whole, _exactly(first[1:], 5))
    user = UserPast(waiting, running, ended, submitted, burst)
    for mark, *words in lines:
        if mark == "L":
            user.started = Started(*map(_whole, _exactly(words, 4)))
        elif mark == "J":
            user.jobs.append(Ended(*map(_whole, _exactly(words, 5))))
        elif mark == "K":
            key: GroupKey = (_whole(words[0]), _whole(words[1]), _whole(words[2]), _name(words[3]))
            user.groups[key] = _means_of(words[4:])
        else:
            raise ValueError
    user.jobs.reverse()
    return user


def _means_of(words: list[str]) -> Means:
    ln_run, shortness, share, count, last = _exactly(words, 5)
    return Means(_finite(ln_run), _finite(shortness), _finite(share), _whole(count), _whole(last))


def _exactly(words: list[str], count: int) -> list[str]:
    if len(words) != count:
        raise ValueError
    return words


def _whole(word: str) -> int:
    number = int(word)
    if not -1 <= number <= _LARGEST_NUMBER:
        raise ValueError
    return number


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError
    return number


def _name(word: str) -> str:
    if _NAME.fullmatch(word) is None:
        raise ValueError
    return word


# From a look at the accounting to what is known of the users ----------------------------------------------------------

# A history goes on from where it stood.


# Stands for the request of a job without a limit, as in the scripts of the schedulers.
UNLIMITED_S = 365 * DAY
# Field 11 of SWF.
_STATUS = {
    State.completed: 1, State.failed: 0, State.timeout: 0, State.node_fail: 0, State.cancelled: 5,
}  # fmt: skip
_LONGEST_ID = 40
_WANTED = ("user", "group", "name")
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


def read_jobs(
    path: Path | str, zone: dt.tzinfo = dt.UTC, notify: Callable[[str], None] = lambda _: None
) -> list[SiteJob]:
    """Return the jobs of an output of ``sacct -P``, one line each: of a job that is there twice, the later run.

    Parameters
    ----------
    path : Path or str
        The output.
    zone : tzinfo
        Of its times.
    notify : callable
        Is told what lines were left out, and why.

    Raises
    ------
    TraceFormatError
        If columns are missing, users are not numbers, or none of its lines can be read.
    InputError
        If the file cannot be read.
    """
    source, left_out, records = Source(path), StepCounter(), 0
    if not source.head.strip():
        raise TraceFormatError(
            f"{source.name}: is empty, without even the header line of sacct -P; did sacct fail? Nothing was changed; "
            "run it again"
        )
    latest: dict[str, tuple[tuple[int, int], SiteJob]] = {}
    unlimited: list[str] = []
    for block in read(source.blocks(), source.name, Clock(zone)):
        if isinstance(block, Remark):
            left_out.remark(block, source.name)
        if not isinstance(block, RecordBlock):
            continue
        records += len(block.job)
        for job in _jobs_of(block, source.name, unlimited):
            when = (job.submit, job.start)
            if job.job not in latest or latest[job.job][0] <= when:
                latest[job.job] = (when, job)
    dropped = [
        f"{step.what}: {step.count:,} (the first: {step.place}{', ' * bool(step.value)}{step.value})"
        for step in left_out.steps()
        if step.action == "dropped" and not step.expected
    ]
    if dropped and not records:
        raise TraceFormatError(
            f"{source.name}: none of its lines could be read: {'; '.join(dropped)}. Nothing was changed; ask sacct for "
            f"SLURM_TIME_FORMAT=%s sacct -a -X -P -o {_COLUMNS}"
        )
    if unlimited:
        dropped.append(f"jobs whose time limit is not known: {len(unlimited):,} (the first: {unlimited[0]})")
    for words in dropped:
        notify(f"{source.name}: left out: {words}")
    return _joined_components([job for _, job in latest.values()])


def _joined_components(jobs: Sequence[SiteJob]) -> list[SiteJob]:
    """Make one job of the components of a het job (``20+0``, ``20+1``), its first, with the processors of all."""
    first: dict[object, SiteJob] = {}
    for number, job in enumerate(jobs):
        leader, is_component, _ = job.job.partition("+")
        key = (leader, job.submit, job.start) if is_component else number
        known = first.get(key)
        first[key] = job if known is None else known._replace(processors=known.processors + job.processors)
    return list(first.values())


def _jobs_of(block: RecordBlock, source: str, unlimited: list[str]) -> Iterator[SiteJob]:
    """Give the jobs of a block; of those whose request is not known, nothing can be told: their numbers are added."""
    columns = {name: block.numbers[column].tolist() for column, name in enumerate(NUMBERS)}
    users, groups, names = (
        [texts[code] for code in codes] for codes, texts in (block.names[NAMES.index(name)] for name in _WANTED)
    )
    for row, job in enumerate(block.job):
        state, user = State(columns["state"][row]), users[row]
        if state not in _STATUS and state not in (State.running, State.pending):
            continue
        if not (user.isascii() and user.isdigit()):
            raise TraceFormatError(
                f"{source}:{columns['line'][row]}: the user is {user[:40]!a}, a number is needed; ask for the "
                f"column UID: sacct -a -X -P -o {_COLUMNS}"
            )
        limit, size = columns["limit"][row], columns["requested"][row]
        known = limit > 0 or columns["limit_kind"][row] == LimitKind.unlimited
        if not known and state != State.pending:
            unlimited.append(f"job {printable(job, 40)}")
            continue
        # One that waits has that of its partition, once it starts; until then it is only counted.
        yield SiteJob(
            job=_ODD.sub("_", job[:_LONGEST_ID]),
            user=user,
            group=groups[row] if groups[row].isascii() and groups[row].isdigit() else "",
            submit=columns["submit"][row],
            start=columns["start"][row] if columns["allocated"][row] != 0 else -1,
            end=columns["end"][row],
            run=columns["elapsed"][row],
            request=limit if limit > 0 else UNLIMITED_S,
            processors=max(size if size > 0 else columns["allocated"][row], 1),
            state=state,
            tasks=columns["tasks"][row],
            name=without_numbers(names[row]),
        )


def update(
    history: History, jobs: Sequence[SiteJob], instant: int, hashed: Callable[[str], str], limits: HistoryLimits
) -> Update:
    """Bring a history up to an instant.

    Parameters
    ----------
    history : History
        Changed in place.
    jobs : sequence of SiteJob
        All that waited, ran or ended since the last update, at least.
    instant : int
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
    if instant < history.instant:
        raise UsageError(
            f"the history is of {history.instant}, later than {instant} (Unix s); was the clock put back? Wait until "
            "then, or remove the file to begin anew"
        )
    ordered = sorted(jobs, key=lambda job: (job.submit, job.job))
    if ordered:
        history.names = any(job.name for job in ordered)
    ran = [job for job in ordered if job.start >= 0 or job.state not in _STATUS]
    _note_submissions(history, ran, instant, hashed)
    waiting, running = _note_present(history, ran, instant, hashed)
    _note_starts(history, ran, instant, hashed)
    ended, changed = _note_ends(history, ran, instant, hashed)
    history.instant = instant
    history.forget(limits)
    return Update(ended, waiting, running, tuple(sorted(changed, key=int)))


def _user(history: History, job: SiteJob, hashed: Callable[[str], str]) -> UserPast:
    name = hashed(f"u{job.user}")
    return history.user(name) or history.users.setdefault(name, UserPast())


def _is_over(job: SiteJob, instant: int) -> bool:
    """Return whether a job has ended; of one that is over, Slurm does not always know when (a node that failed)."""
    return job.end <= instant if job.state in _STATUS else 0 <= job.end <= instant


def _note_submissions(history: History, jobs: Sequence[SiteJob], instant: int, hashed: Callable[[str], str]) -> None:
    for job in jobs:
        if history.instant < job.submit <= instant:
            _user(history, job, hashed).note_submission(job.submit, job.tasks)


def _note_present(
    history: History, jobs: Sequence[SiteJob], instant: int, hashed: Callable[[str], str]
) -> tuple[int, int]:
    """Count what waits and runs at the instant; it replaces what the last look saw."""
    for user in history.users.values():  # nothing waits or runs of those asleep
        user.waiting = user.running = 0
    counts = [0, 0]
    for job in jobs:
        if job.submit > instant or _is_over(job, instant):
            continue
        user = _user(history, job, hashed)
        if 0 <= job.start <= instant:
            user.running += 1
            counts[1] += 1
        else:
            user.waiting += job.tasks
            counts[0] += job.tasks
    return counts[0], counts[1]


def _note_starts(history: History, jobs: Sequence[SiteJob], instant: int, hashed: Callable[[str], str]) -> None:
    started = sorted((job for job in jobs if 0 <= job.start <= instant), key=lambda job: job.start)
    for job in started:
        user = _user(history, job, hashed)
        if user.started is None or job.start >= user.started.start:
            user.started = Started(job.start, job.request, job.processors, int(not _is_over(job, instant)))


def _note_ends(
    history: History, jobs: Sequence[SiteJob], instant: int, hashed: Callable[[str], str]
) -> tuple[int, set[str]]:
    """Note the ends that were not noted yet; return how many there were, and the numbers of their users."""
    new = [
        job
        for job in jobs
        if job.state in _STATUS and history.floor < job.end <= instant and history.noted.get(job.job) != job.end
    ]
    changed = {job.user for job in new}
    for job in sorted(new, key=lambda job: job.end):
        # No longer than from its submission on, whatever a damaged line says: a number that large is not read again.
        run = max(min(job.run, job.end - job.submit), 0)
        ended = Ended(job.end, job.request, job.processors, run, _STATUS[job.state])
        executable = hashed(f"n{job.name}") if history.names and job.name else NO_NAME
        _user(history, job, hashed).note_end(ended, executable)
        if job.group:
            history.groups.setdefault(hashed(f"g{job.group}"), Means()).note(ended)
        history.shapes.setdefault(hashed(f"s{job.request}/{job.processors}"), Means()).note(ended)
        history.noted[job.job] = job.end
    return len(new), changed
