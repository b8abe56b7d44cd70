"""What can be said of an export beside the policy and the target; each option once, with its default."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from pathlib import Path
from typing import Any, Literal

from policyfactory.core.errors import UsageError
from policyfactory.core.options import check_values, option
from policyfactory.core.text import parse_duration
from policyfactory.policy.scale import LARGEST
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Workload
from policyfactory.workload.presets import MISSING_HELP, EstimateMissing

_LATEST = 4_133_980_800  # 2101-01-01
_TIME = "a time: '20h' or '365d', or seconds as a number"


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

    epoch: str | int | None = option(
        None,
        "from when r counts: 2026-01-01 (in UTC), 2026-01-01T08:00+02:00, Unix seconds, or oldest-waiting",
        metavar="DATE",
    )
    threshold: str | float | None = option(
        None, "jobs that have waited longer go first, for example 20h; inf: never", metavar="TIME", kind=_TIME
    )
    processors: int | None = option(None, "size of the machine, written for m", metavar="N")
    nodes: int | None = option(None, "nodes of the machine, for slurm-weights", metavar="N")
    weight: int | None = option(
        None,
        "largest whole number of a score, 2 to 2000000000 (taken without it): how much the formula counts beside "
        "fair-share, QOS and partition",
        metavar="N",
        limits=(2, LARGEST),
    )
    workload: Path | str | Workload | None = option(
        None,
        "the cluster's own jobs (SWF): whole numbers are spread over their scores",
        metavar="LOG",
        kind="a log: its path, or a Workload",
    )
    estimate_missing: EstimateMissing = option("error", MISSING_HELP, "workloads.md")
    begin: str | int | None = option(
        None, "when the policy is put to use, in UTC; the epoch without it", metavar="DATE"
    )
    life: str | float = option("365d", "for how long it will order jobs", metavar="TIME", kind=_TIME)
    force_processors: bool = option(False, "use that size also where the log's header has another")
    log_only: bool = option(False, "compute and log the numbers, change nothing (Slurm); see shadow")
    # Or Forests, whose module takes half a second to load.
    predictor: Path | str | Any | None = option(
        None, "of a policy that reads predictions: the trained model (see predict)", metavar="MODEL.json"
    )
    state: Path | str | None = option(
        None,
        "where history update keeps what is known of the users, on the host of the scheduler",
        metavar="FILE",
        kind="a path on the host of the scheduler",
        parse=str,
    )
    stale: str | float = option("6h", "that file is not used when it is older", metavar="TIME", kind=_TIME)
    backfill: Literal["easy", "slurm"] | None = option(
        None,
        "for what is said of the longest wait, the workload is simulated under: easy, slurm",
        stated="for Slurm's targets slurm, with easy beside it; for others easy",
    )
    site: Path | str | Site | None = option(
        None,
        "site file of the cluster whose Slurm is simulated for that",
        metavar="FILE",
        kind="a site: the path of its file, or a Site",
    )

    def __post_init__(self) -> None:
        """Refuse what is of another type, before anything is done with it: the command reads its own as these."""
        check_values(self)
        if self.predictor is not None and not isinstance(self.predictor, Path | str):
            from policyfactory.prediction.training import Forests

            if not isinstance(self.predictor, Forests):
                raise UsageError(f"--predictor {ascii(self.predictor)[:60]}: expected a model: its path, or Forests")
        if self.backfill == "easy" and self.site is not None:
            raise UsageError("--site is simulated under Slurm's rules: leave out --backfill easy or the site")
        if self.slurm and self.workload is None:
            raise UsageError("--backfill slurm and --site are for the simulation of --workload LOG; give that as well")
        idle = [name for name in ("--estimate-missing", "--force-processors") if name in self.given()]
        if idle and self.workload is None:
            raise UsageError(f"{', '.join(idle)}: for the jobs of --workload LOG; give that as well")

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
