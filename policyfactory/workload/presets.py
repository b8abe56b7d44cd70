"""Cleaning: named filters (``presets.toml``) say which jobs of a log are used, a report says what they did to it."""

from __future__ import annotations

import dataclasses
import tomllib
import warnings
from importlib.resources import files
from typing import Any, Literal, get_args

from policyfactory.core.errors import UsageError
from policyfactory.core.text import DAY, did_you_mean, format_duration
from policyfactory.workload.header import printable

EstimateMissing = Literal["error", "runtime", "model", "drop"]
Overrun = Literal["keep", "cut", "raise", "drop"]
ZeroRun = Literal["drop", "keep", "one"]
ASSUME_HELP = "Nodes, memory (MB) and GPUs of jobs of which the log does not say them: n=q/32,mem=2000*q,g=0."
MISSING_HELP = (
    "jobs without a requested time: error (fewer than 1 % are left out), their run time as if known (runtime), a guess "
    "from their user's other requests, their queue's, or a model (model), or left out (drop)"
)
ESTIMATE_MISSING: tuple[EstimateMissing, ...] = get_args(EstimateMissing)
# Below this share of the usable jobs those without a requested time are left out even where that is an error.
FEW_MISSING = 0.01
# Longer requests are taken for entries by mistake, or for "no limit".
ABSURD_REQUEST = 90 * DAY


@dataclasses.dataclass(frozen=True, slots=True)
class Preset:
    """What a filter does; every preset sorts by submit time.

    Parameters
    ----------
    name : str
        Its name on the command line.
    description : str
        What it does and whose it is, in a sentence.
    size : str
        Which number of processors is a job's q: ``"allocated"``, ``"requested"``, or the ``"larger"`` of them.
    other_size : bool
        Take the other number where the one of ``size`` is missing.
    large : str
        Drop jobs larger than the machine by their q (``"used"``), or by any of the two numbers (``"either"``).
    zero_run : str
        Jobs with run time 0: ``"drop"``, ``"keep"``, or ``"one"`` (1 s).
    overrun : str
        Jobs that ran longer than they requested: ``"keep"``, ``"cut"`` the run to the request, ``"raise"`` the
        request to the run, ``"drop"``.
    drop_missing_request : bool
        Drop jobs without a requested time, whatever is asked for with ``--estimate-missing``.
    strict : bool
        Drop and repair nothing: a job that cannot be used is an error.
    longest_request : int or None
        Cap for requested times in seconds.
    negative_run : int or None
        What a negative run time becomes, in seconds; None drops the job.
    keep_clock : bool
        Times stay those of the log.
    """

    name: str
    description: str
    size: Literal["allocated", "requested", "larger"] = "allocated"
    other_size: bool = True
    large: Literal["used", "either"] = "used"
    zero_run: ZeroRun = "drop"
    overrun: Overrun = "keep"
    drop_missing_request: bool = False
    strict: bool = False
    longest_request: int | None = None
    negative_run: int | None = None
    keep_clock: bool = False


def _read_presets() -> dict[str, Preset]:
    text = files(__package__).joinpath("presets.toml").read_text(encoding="utf-8")
    return {name: Preset(name, **rules) for name, rules in tomllib.loads(text).items()}


PRESETS = _read_presets()


def find_preset(name: str | Preset) -> Preset:
    """Return the preset called ``name``.

    Raises
    ------
    UsageError
        If there is none, with those there are.
    """
    if isinstance(name, Preset):
        return name
    if name in PRESETS:
        return PRESETS[name]
    hint = did_you_mean(name, PRESETS)
    raise UsageError(f"no cleaning preset is called {name!r}; {hint}there are {', '.join(PRESETS)}")


# What a cleaning did to a log -----------------------------------------------------------------------------------------

# Every job dropped or changed is counted, with the reason and an example.


@dataclasses.dataclass(frozen=True, slots=True)
class CleaningStep:
    """One thing that was done, or noticed and left.

    Parameters
    ----------
    action : str
        ``"dropped"``, ``"changed"`` or ``"kept"`` (noticed, nothing done).
    jobs : int
        How many jobs.
    what : str
        What they have, and what was done.
    why : str
        Why that is right, or why it matters.
    first_job : int
        Number of the first of them in the file.
    first_line : int
        Its line in the file.
    """

    action: str
    jobs: int
    what: str
    why: str
    first_job: int
    first_line: int


@dataclasses.dataclass(frozen=True, slots=True)
class CleaningReport:
    """The account of a cleaning; the defaults are those of jobs that come from a model or a table.

    Parameters
    ----------
    source : str
        The file.
    sha256 : str
        Its digest.
    preset : str
        The filter.
    description : str
        What the filter does.
    estimate_missing : str
        What was asked for where no time is requested.
    machine : int
        Processors of the machine.
    machine_source : str
        Where that number is from.
    read, kept : int
        Lines with jobs in the file, and jobs kept.
    steps : tuple of CleaningStep
        What was done, in order.
    shift : int
        Seconds on the log's clock at which the first kept job was submitted: the new 0.
    """

    source: str = ""
    sha256: str = ""
    preset: str = "none"
    description: str = ""
    estimate_missing: str = "error"
    machine: int = 0
    machine_source: str = ""
    read: int = 0
    kept: int = 0
    steps: tuple[CleaningStep, ...] = ()
    shift: int = 0

    @property
    def dropped(self) -> int:
        """Jobs in the file that are not kept."""
        return self.read - self.kept

    @property
    def warning(self) -> str:
        """That most jobs were dropped, and for what; empty if they were not."""
        if 2 * self.dropped <= self.read:
            return ""
        most = max((step for step in self.steps if step.action == "dropped"), key=lambda step: step.jobs, default=None)
        why = "" if most is None else f", {most.jobs:,} of them for: {most.what}"
        return f"most jobs of {printable(self.source, 300)} were dropped, {self.dropped:,} of {self.read:,}{why}"

    def warn(self) -> None:
        """Give `warning`, if there is one, as a warning: on the terminal it is said before what follows."""
        if self.warning:
            warnings.warn(self.warning, stacklevel=2)

    @property
    def _first(self) -> str:
        return f"{self.warning}. " if self.warning else ""

    def counts(self, action: str) -> int:
        """Return the sum of the jobs of all steps with ``action``."""
        return sum(step.jobs for step in self.steps if step.action == action)

    def summary(self) -> str:
        """Return the report in one sentence."""
        if not self.source:
            return "these jobs were not read from a log: nothing was dropped or changed"
        share = 100 * self.kept / self.read if self.read else 0.0
        reasons = [f"{step.what}: {step.jobs:,}" for step in self.steps if step.action == "dropped"]
        dropped = f"; dropped: {', '.join(reasons)}" if reasons else ""
        return (
            f"{self._first}{printable(self.source, 300)}: {self.kept:,} of {self.read:,} jobs kept ({share:.2f} %, "
            f"preset {self.preset}, {self.machine:,} processors){dropped}"
        )

    def rows(self) -> list[list[str]]:
        """Return the steps as cells of a table: action, what, why, first, jobs, percent."""
        return [
            [
                step.action,
                step.what,
                step.why,
                f"job {step.first_job} (line {step.first_line})",
                f"{step.jobs:,}",
                f"{100 * step.jobs / max(self.read, 1):.2f}",
            ]
            for step in self.steps
        ]

    def totals(self) -> str:
        """Return the totals and the time base in words."""
        return (
            f"{self._first}{self.read:,} jobs read, {self.dropped:,} dropped, {self.kept:,} kept; machine of "
            f"{self.machine:,} processors ({self.machine_source}); times count from the first job kept, "
            f"{self.shift:,} s ({format_duration(self.shift)}) after the file's 0"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**dataclasses.asdict(self), "dropped": self.dropped}
