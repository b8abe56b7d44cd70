"""What can be said of how a policy is learned with the simulator in the loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

from policyfactory.core.errors import UsageError
from policyfactory.core.random import check_seed
from policyfactory.search.environment.goals import BANDS, GUARDS, Band, Bound, EpisodeLimit, goal_of, limits_of
from policyfactory.simulate.rules import Rules
from policyfactory.workload.machine import parse_assumptions
from policyfactory.workload.presets import EstimateMissing
from policyfactory.workload.resample import LOADS
from policyfactory.workload.windows import parse_windows

__all__ = [
    "Mode",
    "Objective",
    "ReadOptions",
    "SearchOptions",
    "TrainOptions",
    "check_loads",
    "check_range",
    "parse_bands",
]

Mode: TypeAlias = Literal["standard", "paper"]
MODES: tuple[Mode, ...] = get_args(Mode)
Objective: TypeAlias = Literal["log-ratio", "mean"]

_MOST_WINDOWS = 10_000
_MOST_REPLICAS = 1_000
_MOST_EVALUATIONS = 10**6


def check_range(name: str, value: float, least: float, most: float, what: str = "") -> None:
    """Refuse an option's number outside its limits; ``name`` as a field has it.

    Raises
    ------
    UsageError
        If it is.
    """
    if not least <= value <= most:
        option = name.replace("_", "-")
        raise UsageError(f"--{option} {value}: give {least:,} to {most:,}{what}")


def check_loads(loads: tuple[float, float]) -> None:
    """Refuse loads of replicas that are out of range or not ascending.

    Raises
    ------
    UsageError
        If they are.
    """
    if not 0.1 <= loads[0] <= loads[1] <= 10:
        raise UsageError(f"--loads {loads[0]:g},{loads[1]:g}: give two ascending loads from 0.1 to 10")


# Without slots, so that the classes have the defaults: TrainOptions.window_jobs.
@dataclasses.dataclass(frozen=True)
class ReadOptions:
    """How a log is read: fields of `policyfactory.workload.clean.read`."""

    preset: str = "default"
    processors: int | None = None
    force_processors: bool = False
    estimate_missing: EstimateMissing = "error"
    assume: str | None = None

    def __post_init__(self) -> None:
        if self.assume is not None:
            parse_assumptions(self.assume)

    @property
    def reading(self) -> dict[str, Any]:
        """How the log is read, as keywords."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(ReadOptions)}


@dataclasses.dataclass(frozen=True)
class TrainOptions(ReadOptions):
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
    max_p99, max_longest : str or None
        The most that the 99 % quantile of the wait, and the longest wait, may be, in place of their bands: times the
        baseline's (``1.1x``), or a time (``20h``).
    preset, processors, force_processors, estimate_missing, assume
        How the log is read (`policyfactory.workload.clean.read`); in mode paper as its program does,
        unless another preset is named.

    Raises
    ------
    UsageError
        If a value is outside its limits or unknown.
    """

    goal: str = "mean_bsld"
    mode: Mode = "standard"
    backfill: Literal["easy", "none"] = "easy"
    window_jobs: int = 256
    training_windows: int = 40
    choosing_windows: int = 40
    judged_windows: int = 100
    parts: tuple[int, int, int] = (40, 20, 40)
    windows: str | None = None
    replicas: int = 0
    loads: tuple[float, float] = LOADS
    seed: int = 1
    bands: tuple[tuple[str, float], ...] | None = None
    max_p99: str | None = None
    max_longest: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "goal", goal_of(self.goal).name)
        check_seed(self.seed)
        if self.mode not in MODES:
            raise UsageError(f"--mode {self.mode!r}: choose one of {', '.join(MODES)}")
        if self.window_jobs < 2:
            raise UsageError(f"--window-jobs {self.window_jobs}: a window has at least 2 jobs")
        for name in ("training_windows", "choosing_windows", "judged_windows"):
            check_range(name, getattr(self, name), 1, _MOST_WINDOWS, " windows")
        if len(self.parts) != 3 or min(self.parts) < 1 or sum(self.parts) > 100:
            raise UsageError(
                f"--parts {','.join(map(str, self.parts))}: give three whole percentages, for learning, choosing and "
                "judging, that add up to at most 100: 40,20,40"
            )
        if self.windows is not None:
            parse_windows(self.windows)
        self._check_replicas()
        # Their words are checked there.
        _ = self.rules, self.guard_bands

    @property
    def rules(self) -> Rules:
        """The rules that are learned under and judged by."""
        return Rules(backfill=self.backfill, compatibility="rlscheduler" if self.mode == "paper" else "none")

    def _check_replicas(self) -> None:
        if self.replicas:
            check_range("replicas", self.replicas, 1, _MOST_REPLICAS, ", or 0 for windows")
        check_loads(self.loads)
        if self.replicas and (self.windows is not None or self.mode == "paper"):
            raise UsageError("--replicas takes whole parts of the log by our own rules; leave out --windows and --mode")

    @property
    def guard_bands(self) -> tuple[Bound, ...]:
        """How much worse than the baseline's each guard may be."""
        # The slack of the ones that everybody has: where hardly a job waits a factor alone would allow nothing.
        slack = {band.guard: band.slack for band in BANDS}
        bands: Sequence[Bound] = BANDS
        if self.bands is not None:
            bands = [Band(guard, factor, slack.get(guard, 0.0)) for guard, factor in self.bands]
        limits = self.limits
        limited = {one.guard for one in limits}
        return (*(band for band in bands if band.guard not in limited), *limits)

    @property
    def limits(self) -> tuple[EpisodeLimit, ...]:
        """What was given in place of bands."""
        return limits_of(self.max_p99, self.max_longest)

    @property
    def reading(self) -> dict[str, Any]:
        """How the log is read: keywords of `policyfactory.workload.clean.clean`."""
        given = super().reading
        if self.mode == "paper":
            # As the program reads logs.
            own = {"preset": ("default", "rlscheduler"), "estimate_missing": ("error", "runtime")}
            given |= {name: other for name, (default, other) in own.items() if given[name] == default}
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

    families: tuple[str, ...] = ("linear",)
    start: tuple[tuple[str, float], ...] = ()
    restarts: int = 3
    evaluations: int = 600
    step: float = 0.5
    objective: Objective = "log-ratio"
    pull: float = 0.001

    def __post_init__(self) -> None:
        if not self.families:
            raise UsageError("--family is empty; name a family or write a formula with named coefficients")
        check_range("restarts", self.restarts, 1, 100)
        check_range("evaluations", self.evaluations, 10, _MOST_EVALUATIONS)
        if not 0 < self.step <= 100:
            raise UsageError(f"--step {self.step}: give a number above 0, at most 100")
        if self.objective not in get_args(Objective):
            raise UsageError(f"--objective {self.objective!r}: choose one of {', '.join(get_args(Objective))}")
        check_range("pull", self.pull, 0, 1000)


def parse_bands(text: str) -> tuple[tuple[str, float], ...]:
    """Return the bands that a text gives: ``utilisation=0.95,max_wait=1.5``; ``none`` for none.

    Raises
    ------
    UsageError
        If it is no such list, or names what is no guard.
    """
    if text.strip().lower() == "none":
        return ()
    bands = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, number = part.partition("=")
        try:
            factor = float(number)
        except ValueError:
            factor = float("nan")
        name = name.strip().lower().replace("-", "_")
        if name not in GUARDS or factor != factor:  # noqa: PLR0124 (NaN)
            raise UsageError(
                f"--bands {part[:60]!a}: write GUARD=FACTOR, several separated by commas, as in "
                f"utilisation=0.95,max_wait=1.5 (guards: {', '.join(GUARDS)}), or none"
            )
        bands.append((name, factor))
    return tuple(bands)
