"""The log's own jobs, replayed on the site, beside the record: waits by partition and QOS, and the load over time."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.options import FloatArray, Int64Array
from policyfactory.core.text import DAY, HOUR
from policyfactory.engine.metrics import binned_integral
from policyfactory.evaluate.analyses.load import bin_width
from policyfactory.evaluate.analyses.replay import wait_distance
from policyfactory.evaluate.fidelity.reasons import FIT, LongQueue, Reason, Replayed, close, reasons_of
from policyfactory.simulate.schedule import lacking_starts
from policyfactory.simulate.slurm.jobs import fit_to, partitions_of
from policyfactory.simulate.slurm.run import SlurmRun, Watch, run_slurm
from policyfactory.site.fits import SiteFit, in_own_partitions, lay_out, without_strangers
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Requests, Workload

__all__ = ["Course", "Fidelity", "GroupFit", "Light", "Waits", "fidelity", "has_record"]

_Mask = NDArray[np.bool_]


def has_record(workload: Workload) -> bool:
    """Say whether most jobs of a workload have a recorded start."""
    return 2 * int((workload.start >= workload.submit).sum()) > len(workload)


def fidelity(
    workload: Workload,
    site: Site,
    run: SlurmRun | None = None,
    *,
    twice: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Fidelity:
    """Replay a log's own jobs on a site, under the site's own priorities, and compare with its record.

    Where many times as many jobs wait as ever did in the record, the replay is stopped: its queue runs away, which
    takes ever longer to simulate and says the same, that the site is not the cluster's.

    Parameters
    ----------
    workload : Workload
        With the starts of its log.
    site : Site
        Where it ran.
    run : SlurmRun, optional
        What `run_slurm` made of them, without those of partitions that the site does not have; without it, it is run.
    twice : bool
        Simulate it again with nodes that are free a second later, to show what chance alone makes.
    progress : callable, optional
        Called with how many jobs have been submitted in the simulations.

    Raises
    ------
    UsageError
        If most jobs have no recorded start.
    EvaluationError
        If most jobs do not fit the site, or the workload cannot be simulated on it.
    """
    n = len(workload)
    if not has_record(workload):
        raise UsageError(
            f"{workload.name}: {lacking_starts(workload) or 'it has no jobs'}; a simulation is compared with the "
            "starts of the log: give the accounting of a cluster (policyfactory workload import), or a log that has "
            "wait times"
        )
    fit = fit_to(site, workload)
    if fit.other_cluster:
        raise EvaluationError(
            f"{workload.name}: {fit.jobs - fit.fitting:,} of {fit.jobs:,} jobs do not fit site {site.name}"
            f"{_first_of(fit)}: is this log of another cluster? Nothing was simulated; policyfactory site check says "
            "what does not fit"
        )
    workload, left_out = without_strangers(in_own_partitions(workload, site), site)
    known = workload.start >= workload.submit
    site_then, watch = _as_recorded(site), None
    longest = _longest_queue(workload, known)
    if run is None:
        (times, more), (out, over) = FIT.longer, FIT.runaway
        watch = Watch(times * longest + more, out * longest + over, progress)
        run = run_slurm(workload, site_then, watch=watch)
    queue = None if watch is None or watch.held is None else LongQueue(longest, watch.held, watch.stopped)
    stopped = queue is not None and queue.stopped is not None
    again = Watch(sys.maxsize, sys.maxsize, lambda jobs: progress(len(workload) + jobs))
    lead_in = int(FIT.lead_in * len(workload))
    runs = run.start >= 0
    # Of a replay that was stopped, the jobs that have started are those that wait least.
    compared = known & runs & (not stopped)
    compared[:lead_in] = False
    observed, simulated = workload.start - workload.submit, run.start - workload.submit
    groups = tuple(_groups(workload, site, observed, simulated, compared))
    strangers = n - len(workload)
    course = None if stopped else _course(workload, site, run, known, lead_in)
    never = (0 if stopped else int((~runs).sum())) + strangers
    light, beyond = _judge(groups, course, n, never / n)
    if stopped:
        light, beyond = "far", ("the length of the queue, which runs away", *beyond)
    if light == "near" and _waits_on_one_side(observed[compared], simulated[compared]):
        light = "cannot tell"
    replayed = Replayed(workload, site, run, known, compared, fit.unknown, (strangers, left_out), queue)
    return Fidelity(
        workload.name,
        site.name,
        light,
        n,
        lead_in,
        int((~known).sum()),
        never,
        groups,
        course,
        beyond,
        reasons_of(replayed) if light == "far" else (),
        (observed[compared], simulated[compared]),
        _itself(workload, run, run_slurm(workload, site_then, turn_round=1, watch=again), compared)
        if twice and not stopped
        else None,
        left_out,
        stopped,
        fit.unknown,
    )


def _longest_queue(workload: Workload, known: _Mask) -> int:
    """Return how many jobs waited at once in the record, at most; of jobs without a start as many as of the others."""
    # In the order of time; who is submitted when another one starts waits beside it.
    submit, start = np.sort(workload.submit[known]), np.sort(workload.start[known])
    waiting = np.arange(1, len(submit) + 1) - np.searchsorted(start, submit, side="left")
    return math.ceil(int(waiting.max(initial=0)) * len(known) / max(int(known.sum()), 1))


def _as_recorded(site: Site) -> Site:
    """Return a site that kills no job: how long each ran is recorded."""
    return dataclasses.replace(site, scheduling=dataclasses.replace(site.scheduling, kill_overrun=math.inf))


def _itself(workload: Workload, run: SlurmRun, again: SlurmRun, compared: _Mask) -> GroupFit:
    rows = compared & (again.start >= 0)
    work = workload.processors.astype(np.float64) * workload.run_time
    first, second = (one.start[rows] - workload.submit[rows] for one in (run, again))
    return _group("itself", "all", first, second, work[rows])


def _first_of(fit: SiteFit) -> str:
    return f" (job {fit.first[0][0]}: {fit.first[0][1]})" if fit.first else ""


# Groups. -------------------------------------------------------------------------------------------------------------


def _groups(
    workload: Workload, site: Site, observed: Int64Array, simulated: Int64Array, compared: _Mask
) -> Iterator[GroupFit]:
    asked = workload.requests or Requests.unknown(len(workload))
    work = workload.processors.astype(np.float64) * workload.run_time.astype(np.float64)

    def group(kind: str, name: str, rows: _Mask) -> GroupFit:
        return _group(kind, name, observed[rows], simulated[rows], work[rows])

    yield group("all", "all", compared)
    partition = partitions_of(workload, asked, site)
    kinds = (
        ("partition", partition, [one.name for one in site.partitions]),
        ("QOS", asked.qos, list(asked.names.get("qos", ()))),
    )
    for kind, place, names in kinds:
        by_place = np.bincount(place[compared & (place >= 0)], minlength=len(names))
        present = int(np.count_nonzero(by_place))
        # One that has all jobs says nothing that the first row does not.
        if present > 1:
            for number in np.argsort(-by_place, kind="stable")[:present].tolist():
                yield group(kind, names[number], compared & (place == number))


def _group(kind: str, name: str, observed: Int64Array, simulated: Int64Array, work: FloatArray) -> GroupFit:
    jobs = len(observed)
    if not jobs:
        return GroupFit(kind, name, 0, None, None, 0.0, None, "cannot tell", ())
    was, is_now = _waits(observed, work), _waits(simulated, work)
    alike = np.maximum(observed, FIT.alike), np.maximum(simulated, FIT.alike)
    distance, order = wait_distance(*alike), _rank_correlation(*alike)
    far = {
        "distance": distance > FIT.distance,
        "median": not close(0.5, observed, simulated),
        "p90": not close(0.9, observed, simulated),
        "order": order is not None and order < FIT.order and _matters(*alike),
    }
    beyond = tuple(name for name, is_far in far.items() if is_far) if jobs >= FIT.least_jobs else ()
    light: Light = "cannot tell" if jobs < FIT.least_jobs else "far" if beyond else "near"
    return GroupFit(kind, name, jobs, was, is_now, distance, order, light, beyond)


def _waits(waits: Int64Array, work: FloatArray) -> Waits:
    by_work = float(np.average(waits, weights=work)) if work.sum() > 0 else float(waits.mean())
    return Waits(float(np.median(waits)), float(np.percentile(waits, 90)), float(waits.mean()), by_work)


def _rank_correlation(first: Int64Array, second: Int64Array) -> float | None:
    """Return Spearman's correlation, ties sharing their ranks; None where next to nobody waits in one of them."""
    from scipy.stats import rankdata

    if (
        min(map(_waiting, (first, second))) < FIT.fewest_waiting
        or first.min() == first.max()
        or second.min() == second.max()
    ):
        return None
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def _waiting(waits: Int64Array) -> float:
    """Return the share of the jobs whose wait is more than the scheduler's rhythm."""
    return float((waits > FIT.alike).mean()) if len(waits) else 0.0


def _waits_on_one_side(observed: Int64Array, simulated: Int64Array) -> bool:
    """Say whether next to nobody waits either in the record or in the simulation, so that nothing tells who would."""
    fewer, more = sorted(map(_waiting, (observed, simulated)))
    return fewer < FIT.fewest_waiting <= more


def _matters(observed: Int64Array, simulated: Int64Array) -> bool:
    """Say whether enough jobs wait for their order to mean something."""
    return min(map(_waiting, (observed, simulated))) >= FIT.most_otherwise


# Over time. ----------------------------------------------------------------------------------------------------------


def _course(workload: Workload, site: Site, run: SlurmRun, known: _Mask, lead_in: int) -> Course | None:
    begin, last = int(workload.submit[lead_in]), int(workload.submit[-1])
    if last <= begin:
        return None
    # Over days, what was submitted says how busy a machine is, whatever its order.
    width = min(max(bin_width(last - begin, FIT.bins), HOUR), DAY, last - begin)
    count = max((last - begin) // width, 1)
    cores = float(lay_out(site).cores.sum())

    def used(rows: _Mask, start: Int64Array, end: Int64Array) -> FloatArray:
        held = binned_integral(start[rows], end[rows], workload.processors[rows], begin, width, count)
        return np.asarray(100.0 * held / (width * cores), dtype=np.float64)

    observed = used(known, workload.start, workload.start + workload.run_time)
    simulated = used(run.start >= 0, run.start, run.end)
    varies = count > 1 and np.ptp(observed) > 0 and np.ptp(simulated) > 0
    correlation = float(np.corrcoef(observed, simulated)[0, 1]) if varies else None
    return Course(float(width), observed, simulated, float(np.abs(observed - simulated).mean()), correlation)


# The verdict. --------------------------------------------------------------------------------------------------------


def _judge(
    groups: tuple[GroupFit, ...], course: Course | None, jobs: int, never: float
) -> tuple[Light, tuple[str, ...]]:
    """Return the light, and what is beyond the stated fit."""
    everybody = groups[0]
    beyond = [_WORDS[name] for name in everybody.beyond]
    if everybody.light != "cannot tell" and course is not None and course.difference > FIT.utilisation:
        beyond.append("the cores in use over time")
    for kind in ("partition", "QOS"):
        judged = [one for one in groups if one.kind == kind and one.light != "cannot tell"]
        far = [one for one in judged if one.light == "far"]
        if sum(one.jobs for one in far) > FIT.most_otherwise * sum(one.jobs for one in judged) and len(judged) > 1:
            beyond.append(f"the waits in {kind} {', '.join(one.name for one in far)}")
    if never > FIT.most_never and jobs >= FIT.least_jobs:
        beyond.append("the jobs that never start on the site")
    return ("far" if beyond else everybody.light), tuple(beyond)


_WORDS = {
    "distance": "the distribution of the waits",
    "median": "the median wait",
    "p90": "the 90th percentile of the waits",
    "order": "which jobs wait long",
}


# How near a replay is to its record -----------------------------------------------------------------------------------

# How near a replay is to its record, as numbers: waits of groups, cores in use over time, and the verdict.


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
    waits: tuple[Int64Array, ...]
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
        content = dataclasses.asdict(dataclasses.replace(self, waits=()))
        del content["waits"]
        if self.course is not None:
            content["course"] |= {name: content["course"][name].tolist() for name in ("observed", "simulated")}
        return {"schema_version": 1, **content}
