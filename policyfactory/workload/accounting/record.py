"""What the readers of accounting logs give, whatever the scheduler: a record, many as columns, a remark on a line."""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

# The columns of `Record`, in this order; ``state`` and ``limit_kind`` are numbers of `State` and `LimitKind`.
NUMBERS = (
    "line", "submit", "eligible", "start", "end", "elapsed", "suspended", "limit", "requested", "allocated",
    "requested_nodes", "allocated_nodes", "tasks", "state", "limit_kind", "memory", "gpus", "exclusive",
    "array_limit", "allocated_gpus", "allocated_memory",
)  # fmt: skip
# In what a job has to wait for.
SINGLE, CORRESPONDING = "singleton", "*"
NAMES = ("user", "group", "account", "partition", "qos", "name", "user_name", "after", "partitions")
_NUMBERS_OF = operator.attrgetter(*NUMBERS)
# What 64 bits surely hold of a number; the table says which are more than a cluster counts to.
_LARGEST = 1 << 62
_INDICES = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12})(?::([0-9]{1,12}))?)?")
_MOST_TASKS = 10**7


class State(enum.IntEnum):
    """How a run of a job ended, or that it has not."""

    completed = 0
    failed = 1  # exit code, out of memory, boot failure
    timeout = 2
    node_fail = 3
    cancelled = 4
    requeued = 5  # this run ended and the job went back to the queue: another record follows
    running = 6  # also suspended: started, not over
    pending = 7
    unknown = 8
    resized = 9  # this part ended and the job went on with another size: another record follows


class LimitKind(enum.IntEnum):
    """What the log says about the requested run time."""

    given = 0  # a number: asked for by the user, or the partition's default; the log seldom says which
    asked = 1  # a number that the user asked for: the log shows it (the submit line has --time)
    unlimited = 2
    partition = 3  # the partition's limit, whose number the record does not have
    missing = 4


@dataclasses.dataclass(slots=True)
class Record:
    """One run of a job; a requeued job has several.

    Times are Unix seconds, None where the log has none; counts are None where the log has none.

    Parameters
    ----------
    line : int
        Line of the file (from 1), or place of the job in a JSON list (from 1), for messages.
    job : str
        The job's id as the site writes it: ``1234``, ``11_3`` (array task), ``17+1`` (component of a het job),
        ``407.host``.
    group_id : str or None
        Id shared by the parts of one job that start together (het job); None: the record stands for itself.
    tasks : int
        How many jobs the record stands for: 1, or the tasks of an array that have not begun yet.
    submit, eligible, start, end : int or None
        When it was submitted, could have run at the earliest, began, ended.
    elapsed : int or None
        Seconds it ran, without the time it was suspended.
    suspended : int or None
        Seconds it was suspended.
    limit : int or None
        Requested run time, s; None if ``limit_kind`` has no number.
    limit_kind : LimitKind
        What the log says about it.
    requested : int or None
        Processors asked for.
    allocated : int or None
        Processors it had; 0 or None if it never had any.
    requested_nodes, allocated_nodes : int or None
        Nodes likewise.
    state : State
        How the run ended.
    user, group, account, partition, qos, name : str
        Names or numbers as in the log, the last one the job's own; empty if it has none.
    memory, gpus : int or None
        MB and GPUs asked for, over the whole job.
    allocated_gpus, allocated_memory : int or None
        GPUs and MB that it had.
    exclusive : int or None
        1 if it asked for whole nodes, 0 if it shares them.
    array_limit : int or None
        How many tasks of its array may run at once.
    user_name : str
        The user's name, where ``user`` is a number.
    after : str
        Ids of the jobs that had to end first, with ``:`` between; `CORRESPONDING` stands for the job's own task, and
        `SINGLE` for all earlier jobs of the same user and name.
    partitions : str
        All partitions that it asked for, with commas between, where these are several.
    """

    line: int
    job: str
    submit: int | None = None
    eligible: int | None = None
    start: int | None = None
    end: int | None = None
    elapsed: int | None = None
    suspended: int | None = None
    limit: int | None = None
    limit_kind: LimitKind = LimitKind.missing
    requested: int | None = None
    allocated: int | None = None
    requested_nodes: int | None = None
    allocated_nodes: int | None = None
    state: State = State.unknown
    user: str = ""
    group: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    name: str = ""
    memory: int | None = None
    gpus: int | None = None
    exclusive: int | None = None
    array_limit: int | None = None
    allocated_gpus: int | None = None
    allocated_memory: int | None = None
    user_name: str = ""
    after: str = ""
    partitions: str = ""
    group_id: str | None = None
    tasks: int = 1


def array_ranges(indices: str) -> list[range]:
    """Return the tasks of ``0-9``, ``0-8:2`` or ``1,4-6`` (with ``%5`` behind it); none if it cannot be read."""
    matches = [_INDICES.fullmatch(part.strip()) for part in indices.partition("%")[0].split(",")]
    known = [match for match in matches if match is not None]
    if len(known) < len(matches):
        return []
    return [range(int(match[1]), int(match[2] or match[1]) + 1, max(int(match[3] or 1), 1)) for match in known]


def array_size(indices: str) -> int:
    """Return how many tasks `array_ranges` has."""
    return min(sum(map(len, array_ranges(indices))), _MOST_TASKS)


def coded(texts: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return texts as numbers of the different ones, in order of appearance, and these."""
    known: dict[str, int] = {}
    codes = [known.setdefault(text, len(known)) for text in texts]
    return np.array(codes, dtype=np.int64), list(known)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RecordBlock:
    """Records of one file as columns.

    Parameters
    ----------
    numbers : int64 array (20, n)
        A row for each of `NUMBERS`; -1 where the log has no number.
    names : tuple of (int64 array (n,), list of str)
        For each of `NAMES` a number for each record, and the names that the numbers stand for.
    job : sequence of str
        Ids as the site writes them.
    groups : mapping of int to str
        Group id of each record that has one, by its place in the block.
    """

    numbers: NDArray[np.int64]
    names: tuple[tuple[NDArray[np.int64], list[str]], ...]
    job: Sequence[str]
    groups: dict[int, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordBlock:
        """Return records as columns."""
        numbers = [-1 if number is None else number for record in records for number in _NUMBERS_OF(record)]
        try:
            flat = np.array(numbers, dtype=np.int64)
        except OverflowError:
            flat = np.array([max(-1, min(number, _LARGEST)) for number in numbers], dtype=np.int64)
        return cls(
            flat.reshape(-1, len(NUMBERS)).T,
            tuple(coded([getattr(record, name) for record in records]) for name in NAMES),
            [record.job for record in records],
            {row: record.group_id for row, record in enumerate(records) if record.group_id is not None},
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Remark:
    """What a reader or a rule left out of a line, changed or noticed, beside the record that it may give of it.

    The report adds up what has the same ``action`` and ``what``, and names the first; so both are fixed texts, those
    of ``remarks.toml``, without anything of the line in them but the name of a column.

    Parameters
    ----------
    line : int
        Line of the file (from 1), or place of the job in a JSON list (from 1).
    job : str
        Id of the job, as far as it could be read; may be empty.
    kind : str
        Section and name in ``remarks.toml``, for example ``"sacct.steps"``.
    count : int
        How many jobs or lines it stands for.
    column : str
        The column that it is about, or what else its words leave open.
    value : str
        What stands there.
    """

    line: int
    job: str
    kind: str
    count: int = 1
    column: str = ""
    value: str = ""

    @property
    def action(self) -> str:
        """``"dropped"``, ``"changed"``, ``"kept"`` or ``"skipped"``."""
        return _remarks()[self.kind][0]

    @property
    def what(self) -> str:
        """What was found in the line."""
        return _remarks()[self.kind][1].replace("{column}", self.column)

    @property
    def why(self) -> str:
        """Why that is right, or why it matters."""
        return _remarks()[self.kind][2]

    @property
    def expected(self) -> bool:
        """Whether what is left out was not wanted."""
        return "expected" in _remarks()[self.kind][3:]


@functools.cache
def _remarks() -> dict[str, list[str]]:
    sections = tomllib.loads(files(__package__).joinpath("remarks.toml").read_text("utf-8"))
    return {f"{section}.{name}": texts for section, kinds in sections.items() for name, texts in kinds.items()}
