"""The log's own jobs, replayed on the site, beside the record: waits by partition and QOS, load over time, verdict."""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.core.options import FloatArray, Int64Array, Mask
from policyfactory.core.text import DAY, HOUR, MINUTE, counted, format_duration, number_text
from policyfactory.engine.metrics import binned_integral
from policyfactory.evaluation.analyses.load import bin_width
from policyfactory.evaluation.analyses.replay import wait_distance
from policyfactory.evaluation.fidelity.reasons import FIT, LongQueue, Reason, Replayed, close, reasons_of
from policyfactory.evaluation.picture import Curve, Panel, draw_panels
from policyfactory.report.sections import Column, Columns, Picture, Section, Table
from policyfactory.report.verdict import UNTRUSTED, Verdict
from policyfactory.simulation.schedule import lacking_starts
from policyfactory.simulation.slurm.jobs import fit_to, partitions_of
from policyfactory.simulation.slurm.run import SlurmRun, Watch, run_slurm
from policyfactory.site.fits import SiteFit, in_own_partitions, lay_out, without_strangers
from policyfactory.site.model import Site
from policyfactory.workload.jobs import Requests, Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    replayed = Replayed(
        workload=workload,
        site=site,
        run=run,
        known=known,
        compared=compared,
        unknown=fit.unknown,
        left_out=(strangers, left_out),
        queue=queue,
    )
    return Fidelity(
        workload=workload.name,
        site=site.name,
        light=light,
        jobs=n,
        lead_in=lead_in,
        unrecorded=int((~known).sum()),
        never=never,
        groups=groups,
        course=course,
        beyond=beyond,
        reasons=reasons_of(replayed) if light == "far" else (),
        waits=(observed[compared], simulated[compared]),
        itself=_itself(workload, run, run_slurm(workload, site_then, turn_round=1, watch=again), compared)
        if twice and not stopped
        else None,
        left_out=left_out,
        stopped=stopped,
        unknown=fit.unknown,
    )


def _longest_queue(workload: Workload, known: Mask) -> int:
    """Return how many jobs waited at once in the record, at most; of jobs without a start as many as of the others."""
    # In the order of time; who is submitted when another one starts waits beside it.
    submit, start = np.sort(workload.submit[known]), np.sort(workload.start[known])
    waiting = np.arange(1, len(submit) + 1) - np.searchsorted(start, submit, side="left")
    return math.ceil(int(waiting.max(initial=0)) * len(known) / max(int(known.sum()), 1))


def _as_recorded(site: Site) -> Site:
    """Return a site that kills no job: how long each ran is recorded."""
    return dataclasses.replace(site, scheduling=dataclasses.replace(site.scheduling, kill_overrun=math.inf))


def _itself(workload: Workload, run: SlurmRun, again: SlurmRun, compared: Mask) -> GroupFit:
    rows = compared & (again.start >= 0)
    work = workload.processors.astype(np.float64) * workload.run_time
    first, second = (schedule.start[rows] - workload.submit[rows] for schedule in (run, again))
    return _group("itself", "all", first, second, work[rows])


def _first_of(fit: SiteFit) -> str:
    return f" (job {fit.first[0][0]}: {fit.first[0][1]})" if fit.first else ""


# Groups. -------------------------------------------------------------------------------------------------------------


def _groups(
    workload: Workload, site: Site, observed: Int64Array, simulated: Int64Array, compared: Mask
) -> Iterator[GroupFit]:
    asked = workload.requests or Requests.unknown(len(workload))
    work = workload.processors.astype(np.float64) * workload.run_time.astype(np.float64)

    def group(kind: str, name: str, rows: Mask) -> GroupFit:
        return _group(kind, name, observed[rows], simulated[rows], work[rows])

    yield group("all", "all", compared)
    partition = partitions_of(workload, asked, site)
    kinds = (
        ("partition", partition, [part.name for part in site.partitions]),
        ("QOS", asked.qos, list(asked.names.get("qos", ()))),
    )
    for kind, membership, names in kinds:
        sizes = np.bincount(membership[compared & (membership >= 0)], minlength=len(names))
        present = int(np.count_nonzero(sizes))
        # One that has all jobs says nothing that the first row does not.
        if present > 1:
            for number in np.argsort(-sizes, kind="stable")[:present].tolist():
                yield group(kind, names[number], compared & (membership == number))


def _group(kind: str, name: str, observed: Int64Array, simulated: Int64Array, work: FloatArray) -> GroupFit:
    jobs = len(observed)
    if not jobs:
        return GroupFit(kind, name, 0)
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
    light: Nearness = "cannot tell" if jobs < FIT.least_jobs else "far" if beyond else "near"
    return GroupFit(
        kind=kind,
        name=name,
        jobs=jobs,
        observed=was,
        simulated=is_now,
        distance=distance,
        order=order,
        light=light,
        beyond=beyond,
    )


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


def _course(workload: Workload, site: Site, run: SlurmRun, known: Mask, lead_in: int) -> Course | None:
    begin, last = int(workload.submit[lead_in]), int(workload.submit[-1])
    if last <= begin:
        return None
    # Over days, what was submitted says how busy a machine is, whatever its order.
    width = min(max(bin_width(last - begin, FIT.bins), HOUR), DAY, last - begin)
    count = max((last - begin) // width, 1)
    cores = float(lay_out(site).cores.sum())

    def used(rows: Mask, start: Int64Array, end: Int64Array) -> FloatArray:
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
) -> tuple[Nearness, tuple[str, ...]]:
    """Return the light, and what is beyond the stated fit."""
    everybody = groups[0]
    beyond = [_WORDS[name] for name in everybody.beyond]
    if everybody.light != "cannot tell" and course is not None and course.difference > FIT.utilisation:
        beyond.append("the cores in use over time")
    for kind in ("partition", "QOS"):
        judged = [fit for fit in groups if fit.kind == kind and fit.light != "cannot tell"]
        far = [fit for fit in judged if fit.light == "far"]
        if sum(fit.jobs for fit in far) > FIT.most_otherwise * sum(fit.jobs for fit in judged) and len(judged) > 1:
            beyond.append(f"the waits in {kind} {', '.join(fit.name for fit in far)}")
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


Nearness = Literal["near", "far", "cannot tell"]


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
    observed: Waits | None = None
    simulated: Waits | None = None
    distance: float = 0.0
    order: float | None = None
    light: Nearness = "cannot tell"
    beyond: tuple[str, ...] = ()


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
    light: Nearness
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


# In words, tables and pictures ----------------------------------------------------------------------------------------


HEADINGS: dict[Nearness, str] = {
    "near": "Near enough to the record to be trusted",
    "far": UNTRUSTED,
    "cannot tell": "Cannot tell whether to trust it",
}
STATED = (
    f"The fit that is asked for, of all jobs together: waits with a Kolmogorov-Smirnov distance of at most "
    f"{FIT.distance} (waits below {format_duration(FIT.alike)} count as alike); a median and a 90th percentile within "
    f"{format_duration(FIT.seconds)}, {100 * FIT.share:.0f} % or {100 * FIT.places:.0f} percentiles of the record's; "
    f"an order of the jobs by their waits whose rank correlation is at least {FIT.order}; cores in use that differ by "
    f"at most {FIT.utilisation:.0f} points of the site's in the mean over time. Where fewer than "
    f"{100 * FIT.fewest_waiting:.0f} % of the jobs wait longer than {format_duration(FIT.alike)} in one of the two "
    f"alone, it cannot be told. At most {100 * FIT.most_otherwise:.0f} % of the jobs may be in partitions, or in QOS, "
    f"whose waits are farther than that; at most {100 * FIT.most_never:.0f} % may never start. Groups of fewer than "
    f"{FIT.least_jobs} jobs are not judged. The first {100 * FIT.lead_in:.0f} % of the jobs fill the machine, which is "
    "empty at first, and are not compared."
)
_MARKS: dict[Nearness, str] = {"near": "near", "far": "far", "cannot tell": "too few jobs"}
_EDGES = np.unique(np.geomspace(1, 400 * DAY, 400).astype(np.int64))


def verdict_of(found: Fidelity) -> Verdict:
    """Return the verdict on a replay."""
    caveats = tuple(_caveats(found))
    if found.light == "near":
        near = f"{_how_near(found)} What is simulated on it can be trusted as far as that."
        return Verdict("better", (near,), caveats, HEADINGS["near"])
    if found.light == "cannot tell":
        return Verdict("cannot tell", (_why_open(found),), caveats, HEADINGS["cannot tell"])
    reasons = tuple(f"{reason.text[0].upper()}{reason.text[1:]}." for reason in found.reasons)
    why = f"On site {found.site} the simulation is too far from the record in {'; in '.join(found.beyond)}."
    sentences = (why, *([_how_near(found)] if found.groups[0].jobs else []))
    lacks = reasons or ("Nothing that is looked for in the record tells what is missing.",)
    return Verdict("unsound", (*sentences, *lacks), caveats, HEADINGS["far"])


def _why_open(found: Fidelity) -> str:
    """Say why it cannot be told whether to trust a simulation."""
    jobs = found.groups[0].jobs
    if jobs < FIT.least_jobs:
        return f"Only {counted(jobs, 'job')} can be compared, and {FIT.least_jobs} are asked for."
    return (
        f"Either in the record or in the simulation fewer than {100 * FIT.fewest_waiting:.0f} % of the jobs wait "
        f"longer than {format_duration(FIT.alike)}, so that nothing tells whether the right ones would. "
        f"{_how_near(found)}"
    )


def in_short(found: Fidelity) -> str:
    """Return the verdict in one line: its heading, and what is beyond the fit."""
    heading = f"{HEADINGS[found.light][0].lower()}{HEADINGS[found.light][1:]}"
    return f"{heading} ({'; '.join(found.beyond)})" if found.beyond else heading


def _how_near(found: Fidelity) -> str:
    everybody = found.groups[0]
    if everybody.observed is None or everybody.simulated is None:
        return ""
    was, is_now = everybody.observed, everybody.simulated
    course = found.course
    over_time = "" if course is None else f"; the cores in use differ by {number_text(course.difference)} points"
    return (
        f"The median wait is {format_duration(round(is_now.median))} simulated and was "
        f"{format_duration(round(was.median))}, the 90th percentile {format_duration(round(is_now.p90))} and "
        f"{format_duration(round(was.p90))}; the distance of the distributions is {number_text(everybody.distance)}"
        f"{over_time}."
    )


def _caveats(found: Fidelity) -> Iterator[str]:
    compared = (
        "none of which is compared, since the replay was stopped"
        if found.stopped
        else f"of which {found.lead_in:,} fill the machine and {found.groups[0].jobs:,} are compared"
    )
    yield f"{found.workload} on site {found.site}: {found.jobs:,} jobs, {compared}"
    yield from _chance(found.itself)
    if found.unrecorded:
        yield f"{counted(found.unrecorded, 'job')} without a recorded start: simulated, and not compared"
    if found.never and found.light != "far":
        yield f"{counted(found.never, 'job')} of the record never start on this site"
        yield from filter(None, [found.left_out.rstrip(".")])
    if found.light != "far":
        yield from found.unknown
    others = [fit for fit in found.groups[1:] if fit.light == "far"]
    if others and found.light == "near":
        yield "far from the record: " + ", ".join(f"{fit.kind} {fit.name} ({fit.jobs:,} jobs)" for fit in others)
    yield "priorities, limits and nodes are taken to be those of the site file for the whole time of the log"


def _chance(itself: GroupFit | None) -> Iterator[str]:
    """Say how far the simulation is from itself."""
    if itself is None or itself.observed is None or itself.simulated is None:
        return
    first, second = itself.observed, itself.simulated
    order = "" if itself.order is None else f", their order a rank correlation of {number_text(itself.order)}"
    yield (
        "chance: simulated again with nodes that are free a second later, the waits have a distance of "
        f"{number_text(itself.distance)} from themselves{order}; the 90th percentile is "
        f"{format_duration(round(first.p90))} and {format_duration(round(second.p90))}"
    )


def sections_of(found: Fidelity) -> tuple[Section, ...]:
    """Return the sections: the waits by group, the load over time, what is probably missing."""
    return tuple(
        section for section in (_waits_section(found), _over_time(found), _lacks(found)) if section is not None
    )


def _waits_section(found: Fidelity) -> Section | None:
    if found.stopped:
        return None
    whose: Columns = {Column("waits of"): lambda fit: "all jobs" if fit.kind == "all" else f"{fit.kind} {fit.name}"}
    columns: Columns = {
        **whose,
        Column("jobs", ""): lambda fit: float(fit.jobs),
        Column("fit", "", "by the stated fit, and what is beyond it"): _fit,
        Column("median, recorded", "s", label="median, rec."): lambda fit: _wait(fit, "observed", "median"),
        Column("median, simulated", "s", label="median, sim."): lambda fit: _wait(fit, "simulated", "median"),
        Column("90 %, recorded", "s", "nine jobs in ten wait at most so long", label="90 %, rec."): (
            lambda fit: _wait(fit, "observed", "p90")
        ),
        Column("90 %, simulated", "s", label="90 %, sim."): lambda fit: _wait(fit, "simulated", "p90"),
        Column("distance", "1", "Kolmogorov-Smirnov, of the waits"): lambda fit: fit.distance if fit.jobs else None,
        Column("order", "1", "rank correlation of the waits, job by job"): lambda fit: fit.order,
    }
    rows = [(fit,) for fit in found.groups]
    legend = "Rec.: recorded; sim.: simulated."
    groups = Table.of("groups", "Waits as recorded and as simulated on the site", columns, rows, legend)
    of_means: Columns = {
        **whose,
        Column("mean, recorded", "s"): lambda fit: _wait(fit, "observed", "mean"),
        Column("mean, simulated", "s"): lambda fit: _wait(fit, "simulated", "mean"),
        Column("by work, recorded", "s"): lambda fit: _wait(fit, "observed", "by_work"),
        Column("by work, simulated", "s"): lambda fit: _wait(fit, "simulated", "by_work"),
    }
    by_work = "By work: the mean in which each job counts by its processors times its run time."
    means = Table.of("means", "Mean waits", of_means, rows, by_work)
    pictures: tuple[Picture, ...] = ()
    if len(found.waits[0]):
        note = "The black dashed curve is the record. The widest gap between both is the distance."
        title = "How many jobs wait how long, simulated and recorded"
        pictures = (Picture("waits", title, functools.partial(_draw_waits, *found.waits), note),)
    tables = (dataclasses.replace(groups, front=True), means)
    return Section("fidelity", "How near is the simulation to the record?", (STATED,), tables, pictures)


def _wait(fit: GroupFit, which: str, what: str) -> float | None:
    waits = getattr(fit, which)
    return None if waits is None else float(getattr(waits, what))


def _fit(fit: GroupFit) -> str:
    named = {"p90": "90 %"}
    beyond = ", ".join(named.get(name, name) for name in fit.beyond)
    return f"{_MARKS[fit.light]}: {beyond}" if beyond else _MARKS[fit.light]


def _over_time(found: Fidelity) -> Section | None:
    course = found.course
    if course is None:
        return None
    correlation = "" if course.correlation is None else f", their correlation is {number_text(course.correlation)}"
    text = (
        f"The cores in use differ by {number_text(course.difference)} points in the mean{correlation} "
        f"(recorded {number_text(course.observed.mean())} %, simulated {number_text(course.simulated.mean())} % of the "
        f"site's cores; spans of {format_duration(round(course.width))})."
    )
    columns = {
        Column("from", "s", "since the lead-in ended"): lambda row: float(row * course.width),
        Column("recorded", "%"): lambda row: float(course.observed[row]),
        Column("simulated", "%"): lambda row: float(course.simulated[row]),
    }
    rows = [(row,) for row in range(len(course.observed))]
    table = Table.of("utilisation", "Cores in use, means over spans of time", columns, rows)
    draw, note = functools.partial(_draw_course, found.workload, course), "The black dashed curve is the record."
    picture = Picture("utilisation", "Cores in use over time, simulated and recorded", draw, note)
    return Section("cores-in-use", "Cores in use over time", (text,), (table,), (picture,))


def _lacks(found: Fidelity) -> Section | None:
    if not found.reasons:
        return None
    columns = {
        Column("what"): lambda reason: reason.name,
        Column("evidence", "1"): lambda reason: reason.value,
        Column("in words"): lambda reason: reason.text,
    }
    table = Table.of("reasons", "What is probably missing", columns, [(reason,) for reason in found.reasons])
    return Section("lacking", "What is probably missing", (), (table,))


# Pictures. -----------------------------------------------------------------------------------------------------------


def _draw_waits(observed: Int64Array, simulated: Int64Array) -> Figure:
    edges = _EDGES[: int(np.searchsorted(_EDGES, max(observed.max(), simulated.max(), 10 * MINUTE))) + 1]

    def curve(name: str, waits: Int64Array) -> Curve:
        share = np.searchsorted(np.sort(waits), edges, side="right") / len(waits)
        return Curve(name, edges.astype(np.float64), 100.0 * share)

    label = "wait of the job (1 second and less: at the left end)"
    panel = Panel(
        f"{len(observed):,} jobs", label, "jobs (%)", [curve("simulated", simulated)], durations=True,
        reference=curve("recorded", observed),
    )  # fmt: skip
    return draw_panels([panel], height=3.4)


def _draw_course(log: str, course: Course) -> Figure:
    days = np.arange(len(course.observed)) * course.width / DAY
    panel = Panel(
        f"{log}, means over {format_duration(round(course.width))}", "days since the lead-in ended",
        "cores in use (%)", [Curve("simulated", days, course.simulated)], steps=True,
        reference=Curve("recorded", days, course.observed),
    )  # fmt: skip
    return draw_panels([panel], height=3.0)
