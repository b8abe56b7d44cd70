"""What can be said of an export beside the policy and the target; each option once, with its default."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import numbers
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from policyfactory.core.errors import UsageError
from policyfactory.core.text import parse_duration
from policyfactory.workload.presets import ESTIMATE_MISSING, EstimateMissing

if TYPE_CHECKING:
    from policyfactory.prediction.training import Forests
    from policyfactory.site.model import Site
    from policyfactory.workload.jobs import Workload

_LATEST = 4_133_980_800  # 2101-01-01


# Without slots, so that the class has the defaults: ExportOptions.life.
@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """What a site fixes of a policy, and the jobs that whole numbers are made for.

    Parameters
    ----------
    epoch : str or int, optional
        From when r counts: ``2026-01-01`` (in UTC), ``2026-01-01T08:00+02:00``, Unix seconds, or ``oldest-waiting``.
    threshold : str or float, optional
        Jobs that have waited longer go first: ``20h``, or seconds as a number; inf: never.
    processors : int, optional
        Size of the machine, written for m; of the log, too, where its header does not say it.
    force_processors : bool
        Read the log with ``processors`` also where its header has another number.
    nodes : int, optional
        Nodes of the machine, for slurm-weights.
    weight : int, optional
        Largest whole number of a score: how much the formula counts beside fair-share, QOS and partition.
    workload : Path, str or Workload, optional
        The cluster's own jobs: whole numbers are spread over their scores.
    estimate_missing : {"error", "runtime", "model", "drop"}
        What to do with jobs of the log without a requested time.
    begin : str or int, optional
        When the policy is put to use, a date in UTC or Unix seconds; the epoch without it.
    life : str or int
        For how long it will order jobs: ``365d``, or seconds as a number.
    predictor : Path, str or Forests, optional
        The trained model of a policy that reads predictions (`policyfactory predict` writes it).
    state : str, optional
        Where `policyfactory history update` keeps what the scheduler knows of the users: an absolute path on its host.
    stale : str or float
        That file is not used when it is older: ``6h``, or seconds as a number.
    log_only : bool
        Compute and log the numbers, and change nothing; for Slurm.
    backfill : {"easy", "slurm"}, optional
        Under whose rules the workload is simulated, for what is said of the longest wait. Default: for Slurm's targets
        under Slurm's own, with EASY's value beside them, for all others under EASY.
    site : Path, str or Site, optional
        The cluster whose Slurm is simulated, instead of one that is assumed of the workload.
    """

    epoch: str | int | None = None
    threshold: str | float | None = None
    processors: int | None = None
    nodes: int | None = None
    weight: int | None = None
    workload: Path | str | Workload | None = None
    estimate_missing: EstimateMissing = "error"
    begin: str | int | None = None
    life: str | int = "365d"
    force_processors: bool = False
    log_only: bool = False
    predictor: Path | str | Forests | None = None
    state: str | None = None
    stale: str | float = "6h"
    backfill: Literal["easy", "slurm"] | None = None
    site: Path | str | Site | None = None

    def __post_init__(self) -> None:
        """Refuse what is of another type, before anything is done with it: the command reads its own as these."""
        for name in ("processors", "nodes", "weight"):
            self._check(name, (numbers.Integral, type(None)), "a whole number")
        for name in ("threshold", "life", "stale"):
            also_none = (type(None),) if name == "threshold" else ()
            self._check(name, (str, numbers.Real, *also_none), "a time: '20h' or '365d', or seconds as a number")
        if self.workload is not None and not isinstance(self.workload, str | os.PathLike):
            from policyfactory.workload.jobs import Workload

            self._check("workload", (Workload,), "a log: its path, or a Workload")
        self._check("state", (str, os.PathLike, type(None)), "a path on the host of the scheduler")
        if self.predictor is not None and not isinstance(self.predictor, str | os.PathLike):
            from policyfactory.prediction.training import Forests

            self._check("predictor", (Forests,), "a model: its path, or Forests")
        if self.estimate_missing not in ESTIMATE_MISSING:
            raise UsageError(f"estimate_missing {self.estimate_missing!a}: choose one of {', '.join(ESTIMATE_MISSING)}")
        if self.site is not None and not isinstance(self.site, str | os.PathLike):
            from policyfactory.site.model import Site

            self._check("site", (Site,), "a site: the path of its file, or a Site")
        if self.backfill not in {None, "easy", "slurm"}:
            raise UsageError(f"backfill {ascii(self.backfill)[:60]}: choose easy or slurm")
        if self.backfill == "easy" and self.site is not None:
            raise UsageError("--site is simulated under Slurm's rules: leave out --backfill easy or the site")
        if self.slurm and self.workload is None:
            raise UsageError("--backfill slurm and --site are for the simulation of --workload LOG; give that as well")
        for name in ("force_processors", "log_only"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} {ascii(getattr(self, name))[:60]}: give True or False")

    def _check(self, name: str, types: tuple[type, ...], expected: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, types):
            raise UsageError(f"{name} {ascii(value)[:60]}: give {expected}")

    def given(self) -> dict[str, str]:
        """Return the options that differ from their defaults: ``--epoch`` -> ``2026-01-01``, a flag -> nothing."""
        values = {field: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            f"--{field.name.replace('_', '-')}": "" if value is True else _written(value)
            for field, value in values.items()
            if value is not None and value != field.default
        }

    def under_slurm(self, target: str) -> bool:
        """Return whether the workload of an export to a target is simulated under Slurm's own rules."""
        default = self.backfill is None and target.lower().startswith("slurm-")
        return self.workload is not None and (self.slurm or default)

    @property
    def slurm(self) -> bool:
        """Whether it was asked for a simulation under Slurm's own rules."""
        return self.backfill == "slurm" or self.site is not None

    @property
    def counts_from(self) -> int | Literal["oldest-waiting"] | None:
        """The epoch: Unix seconds, or the rule."""
        return "oldest-waiting" if self.epoch == "oldest-waiting" else instant("--epoch", self.epoch)

    @property
    def threshold_s(self) -> float | None:
        """The threshold, s."""
        return None if self.threshold is None else _seconds("--threshold", self.threshold)

    @property
    def stale_s(self) -> float:
        """How old the history of the users may be, s."""
        return _seconds("--stale", self.stale)

    @property
    def begin_s(self) -> int | None:
        """When the policy is put to use, Unix seconds."""
        return instant("--begin", self.begin)

    @property
    def life_s(self) -> int:
        """For how long, s."""
        seconds = _seconds("--life", self.life)
        if math.isinf(seconds):
            raise UsageError(f"--life {self.life}: scores without an end cannot be mapped; give for example 365d")
        return int(seconds)


def _written(value: Any) -> str:
    """Return a value as it is typed; a site that is no file, by its name."""
    return f"<Site {value.name}>" if type(value).__name__ == "Site" else str(value)


def _seconds(option: str, value: str | float) -> float:
    """Return the seconds of a time; of a text that is none, the error names the option."""
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value, unit=True)
    except UsageError as error:
        raise UsageError(f"{option} {error}") from None


def instant(option: str, value: str | int | None, zone: dt.tzinfo | None = None) -> int | None:
    """Return the Unix seconds of a date (in UTC without a zone) or of a number.

    Parameters
    ----------
    option : str
        For messages.
    value : str, int or None
        The date.
    zone : tzinfo, optional
        Of a date without one.

    Raises
    ------
    UsageError
        If it is no date of the years 1970 to 2100.
    """
    from policyfactory.workload.accounting.times import parse_date

    if value is None:
        return None
    seconds = parse_date(str(value), zone or dt.UTC, option)
    if not 0 <= seconds < _LATEST:
        raise UsageError(f"{option} {value!a} is outside the years 1970 to 2100; give a date of these")
    return seconds
