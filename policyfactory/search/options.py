"""What can be said of a search, of a distillation, and of how candidates are judged; each option once."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from policyfactory.core.errors import UsageError
from policyfactory.core.options import Option, check_values, option, same_option
from policyfactory.core.random import check_seed
from policyfactory.core.text import parse_duration
from policyfactory.evaluation.options import OPTIONS
from policyfactory.simulation.rules import Backfill, Rules
from policyfactory.workload.machine import parse_assumptions
from policyfactory.workload.presets import EstimateMissing
from policyfactory.workload.resample import LOADS
from policyfactory.workload.windows import parse_windows

if TYPE_CHECKING:
    from policyfactory.search.environment.goals import Bound, EpisodeLimit

Mode: TypeAlias = Literal["standard", "paper"]
Objective: TypeAlias = Literal["log-ratio", "mean"]


def parse_start(text: str) -> dict[str, float]:
    """Return the values that a text gives: ``a=0.5,b=1e3``.

    Raises
    ------
    UsageError
        If it is no such list.
    """
    values: dict[str, float] = {}
    for part, name, value in _pairs(text):
        if not abs(value) <= 1e300:
            raise UsageError(f"--start {part[:60]!a}: write NAME=NUMBER, several separated by commas: a=0.5,b=0.1")
        values[name] = value
    return values


def _pairs(text: str) -> Iterator[tuple[str, str, float]]:
    """Give the parts of ``a=0.5,b=1e3``, each with its name and its number; NaN where that is none."""
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, number = part.partition("=")
        value = math.nan
        with contextlib.suppress(ValueError):
            value = float(number)
        yield part, name.strip(), value


def parse_parts(text: str) -> tuple[int, ...]:
    """Return the percentages that a text gives: ``40,20,40``.

    Raises
    ------
    UsageError
        If they are no whole numbers.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not all(part.isdecimal() and len(part) <= 3 for part in parts):
        raise UsageError(f"--parts {text[:60]!a}: write three whole percentages separated by commas: 40,20,40")
    return tuple(map(int, parts))


def parse_loads(text: str) -> tuple[float, float]:
    """Return the two loads that a text gives: ``0.8,1.2``.

    Raises
    ------
    UsageError
        If they are not two numbers.
    """
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"--loads {text[:60]!a}: write two numbers separated by a comma: 0.8,1.2") from None
    return low, high


def check_loads(loads: tuple[float, float]) -> None:
    """Refuse loads of replicas that are out of range or not in order."""
    if not 0.1 <= loads[0] <= loads[1] <= 10:
        raise UsageError(f"--loads {loads[0]:g},{loads[1]:g}: give two ascending loads from 0.1 to 10")


def parse_bands(text: str) -> tuple[tuple[str, float], ...]:
    """Return the bands that a text gives: ``utilisation=0.95,max_wait=1.5``; ``none`` for none.

    Raises
    ------
    UsageError
        If it is no such list, or names what is no guard.
    """
    from policyfactory.search.environment.goals import GUARDS

    if text.strip().lower() == "none":
        return ()
    bands = []
    for part, given, factor in _pairs(text):
        name = given.lower().replace("-", "_")
        if name not in GUARDS or math.isnan(factor):
            raise UsageError(
                f"--bands {part[:60]!a}: write GUARD=FACTOR, several separated by commas, as in "
                f"utilisation=0.95,max_wait=1.5 (guards: {', '.join(GUARDS)}), or none"
            )
        bands.append((name, factor))
    return tuple(bands)


_READING = ("preset", "processors", "force_processors", "estimate_missing", "assume")
_WINDOWS = (1, 10_000)
_COUNTS = ("training_windows", "choosing_windows", "judged_windows")
GOAL = Option(
    "what policies are compared in: mean_bsld, mean_wait, mean_turnaround, mean_slowdown, utilisation, "
    "utilisation_to_last_start, user_mean_bsld, user_max_bsld",
    metavar="NAME",
)
MAX_P99 = Option(
    "most that the 99 % quantile of the wait may be: times the baseline's (learn, train --replicas: the best published "
    "policy's)",
    metavar="1.1x|20h",
    kind='times the best published policy\'s, for example "1.1x", or a duration',
)
MAX_LONGEST = Option("most that the longest wait may be, in the same way", metavar="1.5x|20d", kind=MAX_P99.kind)
MAX_AREA = Option(
    "most that the wait weighted by processors and run time may be, in the same way",
    metavar="1.2x|20h",
    kind=MAX_P99.kind,
)
REPLICA_LOADS = Option(
    "loads of the replicas, evenly between, in units of the log's",
    metavar="LOW,HIGH",
    plain="0.8,1.2",
    parse=parse_loads,
)


# Without slots, so that the class has the defaults: TrainOptions.window_jobs.
@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """What every learner is told: the goal, the rules, the windows, the bands, and how the log is read.

    Parameters
    ----------
    goal : str
        What is to be improved (`policyfactory.search.environment.goals`).
    mode : {"standard", "paper"}
        The rules of this simulator, or those of RLScheduler's.
    backfill : {"easy", "none"}
        As in `Rules`.
    window_jobs : int
        Consecutive jobs of a window.
    training_windows, choosing_windows, judged_windows : int
        How many windows to learn from, to choose by, and to judge on; of the last as many as fit side by side.
    parts : tuple of int
        Percent of the jobs, from the first on, that windows for learning, choosing and judging are drawn from.
    windows : str or None
        Windows to learn from, choose by and judge on, all the same ones, so that nothing is held out, for example
        ``rlscheduler:10x1024jobs:1``; None: windows of ``window_jobs`` jobs are drawn from ``parts``.
    replicas : int
        Learn, choose and judge on so many replicas of each part, with the past ahead, in place of windows; 0: windows.
        The baseline is then the published policy that is best on the training replicas, and not SAF.
    loads : tuple of float
        The lowest and the highest load of a replica, in units of the log's.
    seed : int
        Seed of windows or replicas, and of the learner.
    bands : tuple of (str, float), or None
        Guard -> how many times the value of SAF its mean over the windows may be, at most or, of the utilisation, at
        least; None: those of `policyfactory.search.environment.goals`. Empty: no formula is out.
    max_p99, max_longest, max_area : str or None
        The most that the 99 % quantile of the wait, the longest wait, and the wait weighted by processors and run time
        may be, in place of their bands: times the baseline's (``1.1x``), or a time (``20h``).
    preset, processors, force_processors, estimate_missing, assume
        How the log is read (`policyfactory.workload.clean.clean`); in mode paper as its program does,
        unless another preset is named.

    Raises
    ------
    UsageError
        If a value is outside its limits or unknown.
    """

    goal: str = option("mean_bsld", GOAL)
    mode: Mode = option("standard", "the rules: those of this simulator (standard), or of RLScheduler's (paper)")
    backfill: Literal["easy", "none"] = option("easy", "backfilling")
    window_jobs: int = option(256, "jobs of a window", limits=(2, None))
    training_windows: int = option(40, "windows to learn from", limits=_WINDOWS)
    choosing_windows: int = option(40, "windows to choose by", limits=_WINDOWS)
    judged_windows: int = option(100, "windows to judge on: at most so many, side by side", limits=_WINDOWS)
    parts: tuple[int, int, int] = option(
        (40, 20, 40),
        "percent of the jobs, in time, to draw windows from: to learn, to choose, to judge",
        metavar="N,N,N",
        plain="40,20,40",
        parse=parse_parts,
    )
    windows: str | None = option(
        None,
        "learn, choose and judge on these very windows, so that nothing is held out: `rlscheduler:10x1024jobs:1` are "
        "those of the paper's tables",
        metavar="NxLENGTH",
    )
    replicas: int = option(
        0,
        "of search: learn, choose and judge on so many replicas of each part, with the past ahead, in place of "
        "windows; the baseline is the published policy that is best there",
        limits=(0, 1_000),
    )
    loads: tuple[float, float] = option(LOADS, REPLICA_LOADS)
    seed: int = option(1, "seed of everything that is drawn")
    bands: tuple[tuple[str, float], ...] | None = option(
        None,
        "how many times the baseline's value each guard may be; on windows SAF's; `none`: no bands",
        stated="utilisation=0.95, p99_wait=1.5, max_wait=1.5, area_weighted_wait=1.5",
        metavar="GUARD=FACTOR,...",
        parse=parse_bands,
    )
    max_p99: str | None = option(None, MAX_P99)
    max_longest: str | None = option(None, MAX_LONGEST)
    max_area: str | None = option(None, MAX_AREA)
    preset: str = same_option(OPTIONS["preset"])
    processors: int | None = same_option(OPTIONS["processors"])
    force_processors: bool = same_option(OPTIONS["force_processors"])
    estimate_missing: EstimateMissing = same_option(OPTIONS["estimate_missing"])
    assume: str | None = same_option(OPTIONS["assume"])

    def __post_init__(self) -> None:
        from policyfactory.search.environment.goals import goal_of

        object.__setattr__(self, "goal", goal_of(self.goal).name)
        check_values(self)
        check_seed(self.seed)
        if self.assume is not None:
            parse_assumptions(self.assume)
        if len(self.parts) != 3 or min(self.parts) < 1 or sum(self.parts) > 100:
            raise UsageError(
                f"--parts {','.join(map(str, self.parts))}: give three whole percentages, for learning, choosing and "
                "judging, that add up to at most 100: 40,20,40"
            )
        if self.windows is not None:
            parse_windows(self.windows)
        check_loads(self.loads)
        if not self.replicas and self.loads != LOADS:
            raise UsageError("--loads are those of replicas, and there are none; give --replicas 8 as well")
        if self.replicas and (self.windows is not None or self.mode == "paper"):
            raise UsageError("--replicas takes whole parts of the log by our own rules; leave out --windows and --mode")
        if self.replicas:
            self.refuse_idle("--replicas", "window_jobs", *_COUNTS)
        if self.windows is not None:
            self.refuse_idle("--windows", "parts", *_COUNTS)
        # Their words are checked there.
        _ = self.rules, self.guard_bands

    def refuse_idle(self, beside: str, *names: str) -> None:
        """Refuse options that have no effect ``beside`` what was chosen."""
        if idle := [name for name in names if getattr(self, name) != getattr(TrainOptions, name)]:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in idle)
            raise UsageError(f"{flags}: without effect beside {beside}; leave out one or the other")

    @property
    def rules(self) -> Rules:
        """The rules that are learned under and judged by."""
        return Rules(backfill=self.backfill, compatibility="rlscheduler" if self.mode == "paper" else "none")

    @property
    def guard_bands(self) -> tuple[Bound, ...]:
        """How much worse than the baseline's each guard may be."""
        from policyfactory.search.environment.goals import BANDS, Band

        # The slack of the ones that everybody has: where hardly a job waits a factor alone would allow nothing.
        slack = {band.guard: band.slack for band in BANDS}
        bands: Sequence[Bound] = BANDS
        if self.bands is not None:
            bands = [Band(guard, factor, slack.get(guard, 0.0)) for guard, factor in self.bands]
        limits = self.limits
        limited = {limit.guard for limit in limits}
        return (*(band for band in bands if band.guard not in limited), *limits)

    @property
    def limits(self) -> tuple[EpisodeLimit, ...]:
        """What was given in place of bands."""
        from policyfactory.search.environment.goals import limits_of

        return limits_of(self.max_p99, self.max_longest, self.max_area)

    @property
    def reading(self) -> dict[str, Any]:
        """How the log is read: keywords of `policyfactory.workload.clean.clean`."""
        given = {name: getattr(self, name) for name in _READING}
        if self.mode == "paper":
            # As the program reads logs.
            defaults = {"preset": ("default", "rlscheduler"), "estimate_missing": ("error", "runtime")}
            given |= {name: other for name, (default, other) in defaults.items() if given[name] == default}
        return given


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """How coefficients are searched.

    Parameters
    ----------
    families : tuple of str
        Names of stock families, or formulas with named coefficients (`policyfactory.search.families`).
    start : tuple of (str, float)
        First values of coefficients, in place of a family's own.
    restarts : int
        Searches of each family, each with its own random numbers.
    evaluations : int
        Most candidates that one search tries.
    step : float
        The first step, in units of each coefficient's scale.
    objective : {"log-ratio", "mean"}
        What is minimised: the mean over the windows of the logarithm of the goal's ratio to the baseline's, which no
        single window can decide; or the ratio of the means.
    pull : float
        What one unit of distance from the start, squared, costs in the objective.

    Raises
    ------
    UsageError
        If a value is outside its limits.
    """

    families: tuple[str, ...] = option(
        ("linear",),
        "of search: a family of formulas (power, curved, linear, stretch, ageing, fits, products; with predictions: "
        "predicted, predicted-ageing, -capped, -log, -users, -threshold), or a formula with named coefficients, "
        "log10(p) + a*log10(q)",
        name="family",
        stated="linear",
        metavar="NAME|FORMULA",
    )
    start: tuple[tuple[str, float], ...] = option(
        (),
        "of search: first values of coefficients: a=0.5,b=0.1",
        metavar="NAME=NUMBER,...",
        plain="",
        parse=lambda text: tuple(parse_start(text).items()),
    )
    restarts: int = option(3, "of search: searches of each family", limits=(1, 100))
    evaluations: int = option(600, "of search: most candidates of a search", limits=(10, 10**6))
    step: float = option(0.5, "of search: the first step", limits=(None, 100))
    objective: Objective = option(
        "log-ratio",
        "of search: what is minimised over the windows: the mean log ratio to SAF (log-ratio), which no single window "
        "decides, or the ratio of the means (mean)",
    )
    pull: float = option(0.001, "of search: what a unit of distance from the start, squared, costs", limits=(0, 1000))

    def __post_init__(self) -> None:
        if not self.families:
            raise UsageError("--family is empty; name a family or write a formula with named coefficients")
        check_values(self)
        if not self.step > 0:
            raise UsageError(f"--step {self.step}: expected a number above 0, at most 100")


@dataclasses.dataclass(frozen=True)
class DistillOptions:
    """Where the network plays, what is asked of it there, and which formulas are fitted to its order.

    Parameters
    ----------
    windows : TrainOptions
        Windows, goal, rules and how the log is read; those for training are fitted on. The mode is the network's.
    families : tuple of str
        As for a search (`policyfactory.search.families`), besides the forms of `fit` and the published policies;
        none named: all of them, and `SURFACE`.
    decisions : int
        Decisions of a window: at most so many are drawn.
    pairs : int
        Pairs of a decision: at most so many are drawn.
    margin : float
        What a wait in a formula must add to the share of pairs ordered alike to be worth it: some schedulers take a
        key that never changes only; the interval over the windows must be above 0 too, where there are enough for one.
        The same of the free processors.

    Raises
    ------
    UsageError
        If a value is outside its limits.
    """

    windows: TrainOptions = dataclasses.field(default_factory=lambda: TrainOptions(bands=()))
    families: tuple[str, ...] = option(
        (),
        "a family of formulas (power, curved, linear, stretch, ageing, fits, products), or a formula with named "
        "coefficients; the forms of fit and the published policies are always tried",
        name="family",
        stated="all, and the second degree in p, q and w",
        metavar="NAME|FORMULA",
    )
    decisions: int = option(40, "decisions of a window that are looked at, at most", limits=(1, 10_000))
    pairs: int = option(100, "pairs of a decision that are looked at, at most", limits=(1, 100_000))
    margin: float = option(
        0.01,
        "what the wait, or the free processors, must add to the share of pairs ordered alike to be taken into the "
        "formula",
    )

    def __post_init__(self) -> None:
        check_values(self)
        if not 0 <= self.margin < 1:
            raise UsageError(f"--margin {self.margin}: give a share of pairs from 0 to below 1, as in 0.01")


@dataclasses.dataclass(frozen=True)
class JudgeOptions:
    """What candidates are judged on.

    Parameters
    ----------
    replicas : int
        Replicas of the first part of the log, and as many of the last.
    part : int
        Percent of the jobs, from the first on, that belong to the first part.
    loads : tuple of float
        The lowest and the highest load of a replica, in units of the log's.
    backfill : {"easy", "none", "conservative"}
        As in `Rules`.
    threshold : float
        As in `Rules`; seconds.
    time_limit : float
        Seconds that a candidate has for all its replicas; looked at between two of them.
    seed : int
        Seed of the replicas and of the intervals.
    preset, processors, force_processors, estimate_missing, assume
        How the log is read (`policyfactory.workload.clean.read`).

    Raises
    ------
    UsageError
        If a value is outside its limits, or the rules are Slurm's own.
    """

    replicas: int = option(8, "replicas of a part of the log", limits=(1, 1_000))
    part: int = option(60, "percent of the jobs, in time, to train on; the rest is held out", limits=(10, 90))
    loads: tuple[float, float] = option(LOADS, REPLICA_LOADS)
    backfill: Backfill = option("easy", "backfilling: easy, none, conservative; slurm is for evaluate")
    threshold: float = option(
        math.inf,
        "jobs that have waited longer go first: `20h`; `inf`: never",
        metavar="TIME",
        plain="inf",
        parse=parse_duration,
    )
    time_limit: float = option(
        300.0,
        "what a candidate has for all its replicas: `90s`, `5m`",
        metavar="TIME",
        plain="5m",
        parse=parse_duration,
    )
    seed: int = option(1, "seed of the replicas")
    preset: str = same_option(OPTIONS["preset"])
    processors: int | None = same_option(OPTIONS["processors"])
    force_processors: bool = same_option(OPTIONS["force_processors"])
    estimate_missing: EstimateMissing = same_option(OPTIONS["estimate_missing"])
    assume: str | None = same_option(OPTIONS["assume"])

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.assume is not None:
            parse_assumptions(self.assume)
        check_values(self)
        check_loads(self.loads)
        if not 0 < self.time_limit <= 86_400:
            raise UsageError(f"--time-limit {self.time_limit:g}: give seconds above 0, at most a day")
        if self.backfill == "slurm":
            raise UsageError(
                "backfill is slurm, under which many candidates take days; judge under easy, conservative or none, "
                "and the best of them with policyfactory evaluate --backfill slurm"
            )
        _ = self.rules

    @property
    def rules(self) -> Rules:
        """The rules."""
        return Rules(backfill=self.backfill, threshold=self.threshold)

    @property
    def reading(self) -> dict[str, Any]:
        """How the log is read."""
        return {name: getattr(self, name) for name in _READING}

    @property
    def settings(self) -> dict[str, Any]:
        """What the scores depend on besides the log, as JSON values."""
        left_out = {*_READING, "time_limit"}
        values = {name: value for name, value in dataclasses.asdict(self).items() if name not in left_out}
        return {
            **values,
            "loads": list(self.loads),
            "threshold": None if self.threshold == math.inf else self.threshold,
        }
