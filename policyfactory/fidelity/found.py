"""How near a replay is to its record, as numbers: waits of groups, cores in use over time, and the verdict."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from policyfactory.core.arrays import FloatArray, Int64Array
from policyfactory.fidelity.reasons import Reason

__all__ = ["Course", "Fidelity", "GroupFit", "Light", "Waits"]

Light = Literal["near", "far", "cannot tell"]


@dataclasses.dataclass(frozen=True, slots=True)
class Waits:
    """Waits of a group, recorded or simulated, in seconds.

    Parameters
    ----------
    median, p90, mean : float
        Of the jobs.
    by_work : float
        The mean in which each job counts by its processors times its run time.
    """

    median: float
    p90: float
    mean: float
    by_work: float


@dataclasses.dataclass(frozen=True, slots=True)
class GroupFit:
    """The waits of a group of jobs, as recorded and as simulated.

    Parameters
    ----------
    kind, name : str
        ``all``, ``partition`` or ``QOS``; and which.
    jobs : int
        That are compared.
    observed, simulated : Waits or None
        None of no job.
    distance : float
        Kolmogorov-Smirnov distance of the waits, those below a minute being alike.
    order : float or None
        Rank correlation of the waits, job by job; None where next to nobody waits.
    light : {"near", "far", "cannot tell"}
        By the stated fit.
    beyond : tuple of str
        Which of ``distance``, ``median``, ``p90``, ``order`` are beyond it.
    """

    kind: str
    name: str
    jobs: int
    observed: Waits | None
    simulated: Waits | None
    distance: float
    order: float | None
    light: Light
    beyond: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Course:
    """The load over time, from the end of the lead-in to the last submission; means over bins.

    Parameters
    ----------
    width : float, s
        Of a bin.
    observed, simulated : float64 array (bins,), %
        Cores in use, in % of the site's.
    difference : float
        Mean of their absolute differences, in points.
    correlation : float or None
        Of both; None where one does not change.
    """

    width: float
    observed: FloatArray
    simulated: FloatArray
    difference: float
    correlation: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "width": self.width,
            "observed": self.observed.tolist(),
            "simulated": self.simulated.tolist(),
            "difference": self.difference,
            "correlation": self.correlation,
        }


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Fidelity:
    """How near the simulation of a site is to its record.

    Parameters
    ----------
    workload, site : str
        Their names.
    light : {"near", "far", "cannot tell"}
        Whether to trust what is simulated on this site.
    jobs, lead_in : int
        Of the log; the first of them, which fill the machine and are not compared.
    unrecorded, never : int
        Jobs without a recorded start; jobs that never start on the site. Neither is compared.
    groups : tuple of GroupFit
        All, then partitions, then QOS, the larger ones first.
    course : Course or None
        None where all jobs are submitted at once.
    beyond : tuple of str
        What is beyond the stated fit, in words.
    reasons : tuple of Reason
        What is probably missing.
    waits : tuple of int64 array (compared,), s
        As recorded and as simulated; for the picture.
    itself : GroupFit or None
        All jobs, as simulated (``observed``), and simulated again with nodes that are free a second later
        (``simulated``): what chance alone makes. None: not asked for.
    unknown : tuple of str
        What the log does not say, of what the site limits.
    left_out : str
        Which of the jobs that never start were not simulated, since the site does not have their partition; empty if
        none.
    stopped : bool
        Whether the replay was stopped since its queue ran away: then no waits are compared.
    """

    workload: str
    site: str
    light: Light
    jobs: int
    lead_in: int
    unrecorded: int
    never: int
    groups: tuple[GroupFit, ...]
    course: Course | None
    beyond: tuple[str, ...]
    reasons: tuple[Reason, ...]
    waits: tuple[Int64Array, Int64Array]
    itself: GroupFit | None = None
    left_out: str = ""
    stopped: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether the fit is reached."""
        return self.light == "near"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        kept = ("workload", "site", "light", "jobs", "lead_in", "unrecorded", "never", "left_out")
        return {
            "schema_version": 1,
            **{name: getattr(self, name) for name in (*kept, "stopped", "unknown", "beyond")},
            "groups": [dataclasses.asdict(one) for one in self.groups],
            "course": None if self.course is None else self.course.as_dict(),
            "reasons": [dataclasses.asdict(one) for one in self.reasons],
            "itself": None if self.itself is None else dataclasses.asdict(self.itself),
        }
