"""The rules of a simulation: what the scheduler may do and what it knows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints

from policyfactory.core.errors import UsageError
from policyfactory.core.text import parse_duration
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.site.model import Site

Backfill = Literal["none", "easy", "conservative", "slurm"]
DecideBy = Literal["request", "runtime", "prediction"]
Ties = Literal["fifo", "lifo"]
Overrun = Literal["run", "kill"]
Compatibility = Literal["none", "ocst", "sc17", "rlscheduler"]

# Whose scheduler each of these modes is; they have few rules to choose from.
_PROGRAMS = {"sc17": "SC'17", "rlscheduler": "RLScheduler"}

# The arguments of `policyfactory.simulation.simulate.simulate` besides the rules: under which of them each is read.
_READ_UNDER = {
    "prediction": ("compatibility none", "compatibility ocst"),
    "tie_rank": ("compatibility ocst",),
    "predictor": ("compatibility none", "backfill slurm"),
}

# Compared by identity, since every value can be given.
_NOT_GIVEN = float("nan")


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What the scheduler may do and what it knows.

    Parameters
    ----------
    backfill : {"easy", "none", "conservative", "slurm"}
        Aggressive backfilling with one reservation, strict order, a reservation for every queued job, or the passes of
        Slurm's own scheduler.
    decide_by : {"request", "runtime", "prediction"}
        The p of the policy and of the reservations: requested time, actual run time, or a given column.
    threshold : float
        Seconds; jobs that have waited longer go first, in submit order. ``math.inf``: the policy's own threshold. Not
        given: ``math.inf``, but 0 with compatibility "ocst", as in that program.
    ties : {"fifo", "lifo"}
        Which of two jobs with equal score goes first: the one submitted first (then the smaller job id), or the
        reverse of that. With compatibility "ocst" always ``lifo``.
    overrun : {"run", "kill"}
        What happens to a job at its requested time: it runs on to the end of its run time, or is killed.
    backfill_policy : Policy or None
        The order in which jobs are tried for backfilling; None is the queue's order. It ignores the threshold.
    compatibility : {"none", "ocst", "sc17", "rlscheduler"}
        Our rules; those of ocst, the simulator of IEEE TPDS 29(10), 2018; those of the simulators of SC'17 and of
        RLScheduler (docs/simulator.md, docs/papers.md, docs/rlscheduler.md).
    site : Site or None
        With backfill "slurm": the cluster and the scheduler's settings. None: what is assumed of the log
        (`policyfactory.site.fits.site_of`).

    Raises
    ------
    UsageError
        If a rule is not one of the words above, the threshold is negative, or two rules exclude each other.
    """

    backfill: Backfill = "easy"
    decide_by: DecideBy = "request"
    threshold: float = _NOT_GIVEN
    ties: Ties = "fifo"
    overrun: Overrun = "run"
    backfill_policy: Policy | None = None
    compatibility: Compatibility = "none"
    site: Site | None = None

    def __post_init__(self) -> None:
        for name, words in _WORDS.items():
            value = getattr(self, name)
            if value not in words:
                raise UsageError(f"{name} is {value!r}; choose one of {', '.join(words)}")
        if self.threshold is _NOT_GIVEN:
            object.__setattr__(self, "threshold", 0.0 if self.compatibility == "ocst" else math.inf)
        if not self.threshold >= 0:
            raise UsageError(f"threshold is {self.threshold!r} s; give a duration from 0, or inf for none")
        if self.backfill_policy is not None and self.backfill != "easy":
            raise UsageError(f"an order of its own for backfilling needs backfill easy, not {self.backfill}")
        if self.site is not None and not isinstance(self.site, Site):
            raise UsageError(f"site is a {type(self.site).__name__}; give a Site, or the path of a site file")
        if self.backfill == "slurm":
            self._check_slurm()
        elif self.site is not None:
            raise UsageError(
                f"site {self.site.name} is simulated under Slurm's rules: choose backfill slurm, or leave out the site"
            )
        if self.compatibility == "ocst":
            if self.backfill == "conservative":
                raise UsageError(
                    "ocst has no conservative backfilling; choose backfill easy or none, or leave out ocst"
                )
            object.__setattr__(self, "ties", "lifo")
        if self.compatibility in _PROGRAMS:
            self._check_program(_PROGRAMS[self.compatibility])

    def check_given(self, **given: object) -> None:
        """Refuse arguments of a simulation, by name, that nothing reads under these rules.

        Raises
        ------
        UsageError
            If one is given (not None) that is for other rules.
        """
        mode = "backfill slurm" if self.backfill == "slurm" else f"compatibility {self.compatibility}"
        for name, value in given.items():
            if value is not None and mode not in _READ_UNDER[name]:
                raise UsageError(f"a {name} is for {' or '.join(_READ_UNDER[name])}; with {mode} leave it out")

    def _check_slurm(self) -> None:
        refused = (
            ("decide_by", self.decide_by, self.decide_by != "request", "request"),
            (
                "ties",
                self.ties,
                self.ties != "fifo",
                "fifo (of two jobs with one priority the first submitted goes first)",
            ),
            ("compatibility", self.compatibility, self.compatibility != "none", "none"),
        )
        _refuse(refused, "Slurm does", "backfill slurm")

    def _check_program(self, of: str) -> None:
        refused = (
            ("backfill", self.backfill, self.backfill == "conservative", "none or easy"),
            ("decide_by", self.decide_by, self.decide_by == "prediction", "request or runtime"),
            ("threshold", f"{self.threshold:g} s", not math.isinf(self.threshold), "inf"),
            ("ties", self.ties, self.ties != "fifo", "fifo (equal jobs stay as they are)"),
            ("overrun", self.overrun, self.overrun != "run", "run"),
            ("backfill_policy", "given", self.backfill_policy is not None, "left out"),
        )
        _refuse(refused, f"the programs of {of} do", f"compatibility {self.compatibility}")


def _refuse(refused: Iterable[tuple[str, str, bool, str]], who: str, mode: str) -> None:
    for name, value, wrong, cure in refused:
        if wrong:
            raise UsageError(f"{name} is {value}, which {who} not have; with {mode} it must be {cure}")


_WORDS = {name: get_args(kind) for name, kind in get_type_hints(Rules).items() if get_origin(kind) is Literal}


class RuleOptions(TypedDict, total=False):
    """The fields of `Rules` as keywords; a threshold may be a text (``"20h"``), a policy a name, a site its file."""

    backfill: Backfill
    decide_by: DecideBy
    threshold: float | str
    ties: Ties
    overrun: Overrun
    backfill_policy: PolicyLike | None
    compatibility: Compatibility
    site: Site | Path | str | None


def rules_with(rules: Rules | None, options: RuleOptions) -> Rules:
    """Return ``rules`` (default: `Rules`) with the ``options`` in place of its own.

    Raises
    ------
    UsageError
        As `Rules`, or if there is no rule of a name.
    SiteError, InputError
        If a site file cannot be used.
    """
    given: dict[str, Any] = dict(options)
    unknown = set(given) - {field.name for field in dataclasses.fields(Rules)}
    if unknown:
        names = ", ".join(field.name for field in dataclasses.fields(Rules))
        raise UsageError(f"there is no rule {min(unknown)!r}; the rules are {names}")
    if isinstance(given.get("threshold"), str):
        given["threshold"] = parse_duration(given["threshold"])
    if given.get("backfill_policy") is not None:
        given["backfill_policy"] = resolve(given["backfill_policy"])
    if isinstance(given.get("site"), Path | str):
        from policyfactory.site.file import read_site

        given["site"] = read_site(given["site"])
    if given.get("site") is not None:
        given.setdefault("backfill", "slurm")
    elif given.get("backfill", "slurm") != "slurm":
        given.setdefault("site", None)
    if not given:
        return rules or Rules()
    return Rules(**given) if rules is None else dataclasses.replace(rules, **given)
