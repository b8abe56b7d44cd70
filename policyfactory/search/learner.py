"""What a learner is given and what it returns, whatever it learns: formulas by search, networks by reinforcement."""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from policyfactory.core.errors import InputError, OutputError, WorkloadError
from policyfactory.core.files import atomic_write, check_output, command_line, dump_json, exclusive, package_versions
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.process import Follower
from policyfactory.core.random import generator
from policyfactory.parallel.workers import Workers
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import FittedNumber
from policyfactory.search.environment.goals import GUARDS, Goal
from policyfactory.search.families import REFERENCES
from policyfactory.search.options import TrainOptions
from policyfactory.search.replicated import Part, replicated
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.prepare import Prepared, asked_of, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import run_prepared
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import parse_windows, slices_of

_SCHEMA = 2
_SAMPLE = 128  # jobs that a log is known by
_ALIKE = 0.25  # share of them that two readings of one log have in common, at least
_LARGEST = 1 << 26  # bytes
_MOST = 10**15
_PATIENCE = 10.0  # s that another run may take to count
_PAUSE = 0.05  # s


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """What a ledger says of a log.

    Parameters
    ----------
    tried : int
        Candidates that were tried on it, those of this run included.
    held_out : int
        Held-out verdicts that were asked for, those of this run included.
    """

    tried: int
    held_out: int


def count(path: Path, workload: Workload, settings: Mapping[str, Any], *, tried: int, held_out: int = 0) -> Counted:
    """Add to a ledger, which is made if there is none, and return what it then says of the log.

    Parameters
    ----------
    path : Path
        The ledger.
    workload : Workload
        The log.
    settings : mapping
        What the replicas depend on, as JSON values.
    tried, held_out : int
        Candidates that are about to be tried, and to be judged on what is held out.

    Raises
    ------
    InputError
        If it is no ledger, is damaged, or of a newer version.
    OutputError
        If another run holds it for more than ten seconds, or it cannot be written.
    """
    check_output(path)
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            with exclusive(path):
                return _add(path, workload, settings, tried, held_out)
        except OutputError:
            # Runs beside this one count too, each in a moment.
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE)


def _add(path: Path, workload: Workload, settings: Mapping[str, Any], tried: int, held_out: int) -> Counted:
    content = _read(path)
    digest, jobs, logs = workload.sha256(), _sample(workload), content["logs"]
    alike = {known: len({*log.get("jobs", ())} & {*jobs}) for known, log in logs.items()}
    nearest = max(alike, key=lambda known: alike[known], default=digest)
    if digest not in logs and alike.get(nearest, 0) >= max(_ALIKE * len(jobs), 1):
        digest = nearest
    log = logs.setdefault(digest, {"name": workload.name, "tried": 0, "held_out": 0, "settings": {}})
    log.setdefault("jobs", jobs)
    key = sha256_bytes(dump_json(settings).encode())[:16]
    setting = log["settings"].setdefault(key, {"tried": 0, "held_out": 0, "options": settings})
    for counts in (log, setting):
        counts["tried"] += tried
        counts["held_out"] += held_out
    atomic_write(path, dump_json(content))
    return Counted(log["tried"], log["held_out"])


def _sample(workload: Workload) -> list[str]:
    """Return what a log is known by: a random sample of its jobs, which is nearly the same of nearly the same jobs.

    A job is its run time, that of the job before it, and the time between the two. The sample is of those whose digests
    are the lowest (A. Z. Broder, "On the resemblance and containment of documents", SEQUENCES 1997).
    """
    run, gap = (workload.run_time // workload.ticks)[:-1], np.diff(workload.submit // workload.ticks)
    after = (workload.run_time // workload.ticks)[1:]
    mixed = np.zeros(len(gap), dtype=np.uint64)
    for column in (run, gap, after):
        # The finalizer of splitmix64 (G. L. Steele et al., OOPSLA 2014) on each.
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return [f"{number:016x}" for number in np.unique(mixed)[:_SAMPLE].tolist()]


class _Counts(BaseModel, strict=True):
    tried: Annotated[int, Field(ge=0, le=_MOST)]
    held_out: Annotated[int, Field(ge=0, le=_MOST)]


class _LogCounts(_Counts):
    settings: dict[str, _Counts]
    jobs: list[str] = Field(default=[], max_length=_SAMPLE)


class _LedgerFile(BaseModel, strict=True):
    kind: Literal["judge-ledger"]
    schema_version: Literal[1, 2]
    logs: dict[str, _LogCounts]


def read_declared(path: Path, declared: type[BaseModel], *, what: str, cure: str) -> dict[str, Any]:
    """Return the content of a JSON file that is as it is declared.

    Parameters
    ----------
    path : Path
        The file, of at most 64 MiB.
    declared : type
        What it must have; what it has besides is returned too.
    what, cure : str
        What it is else, and what to do then.

    Raises
    ------
    InputError
        If it cannot be read, or is otherwise; the first wrong field is named.
    """
    data = read_bytes(path, limit=_LARGEST, replaceable=True)
    try:
        declared.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(ascii(part)[:60].strip("'") for part in first["loc"])
        raise InputError(f"{path}: is {what}: {where}{': ' if where else ''}{first['msg']}; {cure}") from None
    content: dict[str, Any] = json.loads(data)
    return content


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"kind": "judge-ledger", "schema_version": _SCHEMA, "logs": {}}
    content = read_declared(
        path,
        _LedgerFile,
        what="no ledger of policyfactory judge",
        cure="restore it, use the version that wrote it, or name another by --ledger, which begins to count at 0",
    )
    return {**content, "schema_version": _SCHEMA}


# The windows of a log -------------------------------------------------------------------------------------------------

# Early ones to learn from, later ones to choose by, and the latest to judge on.
#
# They are drawn at random places of three parts of the log that follow each other in time and share no job. Those for
# judging do not overlap either, since overlapping windows are not independent and would make intervals too narrow.


STEPS = ("training", "choosing", "judged")
_PURPOSE = 71  # of the random stream; see core.random


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The rows at which the windows for learning, choosing and judging begin.

    Parameters
    ----------
    training, choosing, judged : int64 array (k, 2)
        First row of each, and the row after its last, ascending.
    held_out : bool
        Whether the three share no job; they are the same windows otherwise.
    noun : str
        ``windows``, or ``replicas`` of the parts: each then is a row, that of its part.
    """

    training: Int64Array
    choosing: Int64Array
    judged: Int64Array
    held_out: bool
    noun: str = "windows"

    def cut(self, workload: Workload, step: str) -> list[Workload]:
        """Return the windows of a step, each re-based to its first job."""
        return [
            workload.select(slice(first, end), name=f"{workload.name}[{first}:{end}]", rebase=True)
            for first, end in getattr(self, step).tolist()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the windows as JSON values."""
        return {"held_out": self.held_out, **{step: getattr(self, step).tolist() for step in STEPS}}

    def warnings(self, wanted: int, learned: str) -> list[str]:
        """Return why a verdict by the judged windows should not be trusted.

        Parameters
        ----------
        wanted : int
            How many windows to judge on were asked for.
        learned : str
            What was done on the windows for training: ``learned``, ``fitted``.
        """
        if not self.held_out:
            return [f"nothing was held out: it was {learned}, chosen and judged on the same windows"]
        if self.noun != "windows" or len(self.judged) >= wanted:
            return []
        return [f"{len(self.judged)} of {wanted} windows to judge on fit side by side in the last part of the log"]


def draw_windows(workload: Workload, options: TrainOptions) -> Windows:
    """Return the windows of a log.

    Parameters
    ----------
    workload : Workload
        The jobs, in the order of their submission.
    options : TrainOptions
        How many, how long, and from which parts.

    Raises
    ------
    WorkloadError
        If a window is longer than the part of the log that it is drawn from, or the log has no such windows.
    UsageError
        If given windows cannot be read.
    """
    if options.windows is not None:
        slices = slices_of(parse_windows(options.windows), workload.submit, workload.name, workload.ticks)
        given = np.array(sorted((window.start, window.stop) for window in slices), dtype=np.int64)
        return Windows(given, given, given, held_out=False)
    size, total = options.window_jobs, len(workload)
    edges = np.cumsum([0, *options.parts]) * total // 100
    if options.replicas:
        training, choosing, judged = (np.tile(edges[number : number + 2], (options.replicas, 1)) for number in range(3))
        return Windows(training, choosing, judged, held_out=True, noun="replicas")
    shortest = int(np.diff(edges).min())
    if size > shortest:
        raise WorkloadError(
            f"{workload.name}: windows of {size:,} jobs, and the shortest of the parts to learn from, choose by and "
            f"judge on has {shortest:,} of the log's {total:,} jobs; give a smaller --window-jobs, other --parts or a "
            "longer log"
        )
    counts = (options.training_windows, options.choosing_windows, options.judged_windows)
    drawn = []
    for step, (first, end, count) in enumerate(zip(edges[:-1], edges[1:], counts, strict=True)):
        places = _places(int(first), int(end), size, count, options.seed, step)
        drawn.append(np.stack([places, places + size], axis=1))
    return Windows(drawn[0], drawn[1], drawn[2], held_out=True)


def _places(first: int, end: int, size: int, count: int, seed: int, step: int) -> Int64Array:
    """Return where the windows of a part begin; those to judge on side by side, as many as fit."""
    random = generator(seed, _PURPOSE, step)
    if STEPS[step] != "judged":
        return first + np.sort(random.integers(0, end - first - size + 1, count))
    count = min(count, (end - first) // size)
    # Gaps between windows, drawn uniformly: where they begin if the jobs in them are left out.
    gaps = np.sort(random.integers(0, end - first - count * size + 1, count))
    return first + gaps + np.arange(count, dtype=np.int64) * size


# What a learner is given and what it returns --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is to be learned from what.

    Parameters
    ----------
    workload : Workload
        The log.
    windows : Windows
        Where its windows begin.
    options : TrainOptions
        Goal, rules and bands.
    workers : Workers
        Who does the work.
    journal : Path or None
        Where to keep what is finished, so that the same run goes on from there; None: nowhere.
    overwrite : bool
        Whether a journal of another run may be dropped.
    follower : Follower
        Who follows how far the work is.
    baseline : Policy
        What the goal and the guards are relative to.
    """

    workload: Workload
    windows: Windows
    options: TrainOptions
    workers: Workers
    journal: Path | None
    overwrite: bool
    follower: Follower
    baseline: Policy = REFERENCES["SAF"]

    def played(self, step: str, policies: Iterable[Policy] = ()) -> Played:
        """Return the windows or replicas of a step, ready to be played.

        Parameters
        ----------
        step : str
            As in `policyfactory.search.learner.STEPS`. Predictors learn once for each replica, but while the choice is
            judged, where they learn in each run itself.
        policies : iterable of Policy
            Who will play: the models that they need are made.
        """
        options = self.options
        if not options.replicas:
            return played(self.windows.cut(self.workload, step), options.rules)
        first, last = getattr(self.windows, step)[0].tolist()
        # Replicas of each part have random numbers of their own.
        seed = (options.seed + STEPS.index(step)) % 2**63
        judged = step == "judged"
        windows = replicated(
            *(self.workload, Part(first, last), options.rules),
            count=options.replicas,
            seed=seed,
            loads=options.loads,
            halves=judged,
        )
        windows.learns = judged
        if not judged:
            windows.teach(policies, self.workers, self.follower.message)
        return windows


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """What a learner proposes.

    Parameters
    ----------
    policy : Policy
        The policy.
    training : float or None
        What the learner minimised, on the windows that it learned from; None of what was not learned.
    coefficients : tuple of FittedNumber
        The numbers of a formula.
    origin : str
        How the learner came to it, in words.
    out : str
        Why it is out: the guards that left their bands, in words; empty if it is not.
    """

    policy: Policy
    training: float | None
    coefficients: tuple[FittedNumber, ...] = ()
    origin: str = ""
    out: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Proposals:
    """What a learner has found.

    Parameters
    ----------
    candidates : tuple of Candidate
        Its proposals.
    history : tuple of mapping
        One row of numbers and words a step, the same keys in all: what ``history.csv`` has.
    curves : mapping of str to sequence of (float, float)
        Name of a curve -> how much work was done, and how good the best was by then.
    work : str
        What the work is counted in.
    axis : str
        What the curves show; empty: the best inside the bands as log ratio to the baseline.
    warnings : tuple of str
        Why the candidates should not be trusted as they stand.
    """

    candidates: tuple[Candidate, ...]
    history: tuple[Mapping[str, Any], ...]
    curves: Mapping[str, Sequence[tuple[float, float]]]
    work: str
    axis: str = ""
    warnings: tuple[str, ...] = ()


class Learner(Protocol):
    """Proposes policies from the windows of a task."""

    @property
    def name(self) -> str:
        """What ``--learner`` calls it."""

    def describe(self) -> dict[str, Any]:
        """Return all options of its own that determine what it finds, as JSON values."""

    def learn(self, task: Task) -> Proposals:
        """Learn from the windows for training."""


# Windows that are played again and again ------------------------------------------------------------------------------

# Whatever does not depend on the policy is prepared once.


# The columns of what is measured of a window: the goal, then the guards.
MEASURED = ("goal", *GUARDS)


def named_means(goal: str, means: Sequence[float]) -> dict[str, float]:
    """Return means in the order of `MEASURED` as a report names them."""
    return dict(zip((goal, *(f"guard_{name}" for name in GUARDS)), means, strict=True))


def provenance_of(workload: Workload, seed: int, **more: Any) -> dict[str, Any]:
    """Return how a model was made, as JSON values; ``more`` is what only some have."""
    return {
        "command": command_line(),
        "seed": seed,
        "workload": workload.name,
        "workload_sha256": workload.sha256(),
        "versions": package_versions(),
        **more,
    }


def without_number(jobs: Workload, policy: Policy) -> float:
    """Return the share of the jobs whose score at submission is no finite number: they run first or last.

    Raises
    ------
    UsageError
        If the policy reads what the jobs do not say.
    """
    p = jobs.requested_time / jobs.ticks
    none = np.zeros(len(jobs))
    predicted = np.array([p, 10 / np.maximum(p, 10), p, none, none]) if policy.needs_predictions else None
    r = (jobs.submit - jobs.submit[0]) / jobs.ticks
    with np.errstate(all="ignore"):
        asked = asked_of(jobs, policy)
        scores = policy.scores(p, jobs.processors, r, m=jobs.machine, predictions=predicted, asked=asked)
    return float((~np.isfinite(scores)).mean())


class Played(Protocol):
    """Windows of a log, ready to be played under any policy."""

    def schedules(self, policy: Policy) -> Iterator[Schedule]:
        """Give the schedule of each window, in their order."""

    def __len__(self) -> int: ...


def measured(windows: Played, policy: Policy, goal: Goal) -> FloatArray:
    """Return goal and guards of each window under a policy: float64 array (windows, 1 + guards), as in `MEASURED`."""
    values = np.empty((len(windows), len(MEASURED)))
    for row, schedule in zip(values, windows.schedules(policy), strict=True):
        guards = measure(schedule, GUARDS)
        row[:] = [goal.value(schedule), *(guards[name] for name in GUARDS)]
    return values


def played(windows: list[Workload], rules: Rules) -> Played:
    """Return windows of one size, ready to be played by the rules.

    Raises
    ------
    EvaluationError
        If the rules refuse the jobs.
    """
    if rules.compatibility == "rlscheduler":
        from policyfactory.simulation.compat import CommittedLog, committed_schedule

        return _Windows(
            [functools.partial(committed_schedule, CommittedLog.of_workload(log), log, rules) for log in windows]
        )
    return _Windows([functools.partial(_simulated, prepare(window, rules)) for window in windows])


class _Windows:
    """Windows, each as a function from a policy to its schedule."""

    def __init__(self, windows: list[Callable[[Policy], Schedule]]) -> None:
        self._windows = windows

    def __len__(self) -> int:
        return len(self._windows)

    def schedules(self, policy: Policy) -> Iterator[Schedule]:
        """Give the schedule of each window."""
        return (window(policy) for window in self._windows)


def _simulated(prepared: Prepared, policy: Policy) -> Schedule:
    with np.errstate(all="ignore"):
        start, backfilled = run_prepared(prepared, policy)
    return Schedule(start, start + prepared.run_time, backfilled, prepared.workload, policy.name, prepared.rules)
