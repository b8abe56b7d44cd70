"""A replay beside its record as sections of a report, and its verdict."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.text import DAY, MINUTE, counted, format_duration, number_text
from policyfactory.evaluate.fidelity.compare import Fidelity, GroupFit, Light
from policyfactory.evaluate.fidelity.reasons import FIT
from policyfactory.evaluate.picture import Curve, Panel, draw_panels
from policyfactory.report.sections import Column, Columns, Picture, Section, Table
from policyfactory.report.verdict import UNTRUSTED, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.core.options import Int64Array

__all__ = ["HEADINGS", "STATED", "in_short", "sections_of", "verdict_of"]

HEADINGS: dict[Light, str] = {
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
_MARKS: dict[Light, str] = {"near": "near", "far": "far", "cannot tell": "too few jobs"}
_EDGES = np.unique(np.geomspace(1, 400 * DAY, 400).astype(np.int64))


def verdict_of(found: Fidelity) -> Verdict:
    """Return the verdict on a replay."""
    caveats = tuple(_caveats(found))
    if found.light == "near":
        near = f"{_how_near(found)} What is simulated on it can be trusted as far as that."
        return Verdict("better", (near,), caveats, HEADINGS["near"])
    if found.light == "cannot tell":
        return Verdict("cannot tell", (_why_open(found),), caveats, HEADINGS["cannot tell"])
    reasons = tuple(f"{one.text[0].upper()}{one.text[1:]}." for one in found.reasons)
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
    others = [one for one in found.groups[1:] if one.light == "far"]
    if others and found.light == "near":
        yield "far from the record: " + ", ".join(f"{one.kind} {one.name} ({one.jobs:,} jobs)" for one in others)
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
    return tuple(section for section in (_waits(found), _over_time(found), _lacks(found)) if section is not None)


def _waits(found: Fidelity) -> Section | None:
    if found.stopped:
        return None
    whose: Columns = {Column("waits of"): lambda one: "all jobs" if one.kind == "all" else f"{one.kind} {one.name}"}
    columns: Columns = {
        **whose,
        Column("jobs", ""): lambda one: float(one.jobs),
        Column("fit", "", "by the stated fit, and what is beyond it"): _fit,
        Column("median, recorded", "s", label="median, rec."): lambda one: _wait(one, "observed", "median"),
        Column("median, simulated", "s", label="median, sim."): lambda one: _wait(one, "simulated", "median"),
        Column("90 %, recorded", "s", "nine jobs in ten wait at most so long", label="90 %, rec."): (
            lambda one: _wait(one, "observed", "p90")
        ),
        Column("90 %, simulated", "s", label="90 %, sim."): lambda one: _wait(one, "simulated", "p90"),
        Column("distance", "1", "Kolmogorov-Smirnov, of the waits"): lambda one: one.distance if one.jobs else None,
        Column("order", "1", "rank correlation of the waits, job by job"): lambda one: one.order,
    }
    rows = [(one,) for one in found.groups]
    said = "Rec.: recorded; sim.: simulated."
    groups = Table.of("groups", "Waits as recorded and as simulated on the site", columns, rows, said)
    of_means: Columns = {
        **whose,
        Column("mean, recorded", "s"): lambda one: _wait(one, "observed", "mean"),
        Column("mean, simulated", "s"): lambda one: _wait(one, "simulated", "mean"),
        Column("by work, recorded", "s"): lambda one: _wait(one, "observed", "by_work"),
        Column("by work, simulated", "s"): lambda one: _wait(one, "simulated", "by_work"),
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


def _wait(one: GroupFit, which: str, what: str) -> float | None:
    waits = getattr(one, which)
    return None if waits is None else float(getattr(waits, what))


def _fit(one: GroupFit) -> str:
    named = {"p90": "90 %"}
    beyond = ", ".join(named.get(name, name) for name in one.beyond)
    return f"{_MARKS[one.light]}: {beyond}" if beyond else _MARKS[one.light]


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
        Column("from", "s", "since the lead-in ended"): lambda at: float(at * course.width),
        Column("recorded", "%"): lambda at: float(course.observed[at]),
        Column("simulated", "%"): lambda at: float(course.simulated[at]),
    }
    rows = [(at,) for at in range(len(course.observed))]
    table = Table.of("utilisation", "Cores in use, means over spans of time", columns, rows)
    picture = Picture(
        "utilisation", "Cores in use over time, simulated and recorded", functools.partial(_draw_course, found),
        "The black dashed curve is the record.",
    )  # fmt: skip
    return Section("cores-in-use", "Cores in use over time", (text,), (table,), (picture,))


def _lacks(found: Fidelity) -> Section | None:
    if not found.reasons:
        return None
    columns = {
        Column("what"): lambda one: one.name,
        Column("evidence", "1"): lambda one: one.value,
        Column("in words"): lambda one: one.text,
    }
    table = Table.of("reasons", "What is probably missing", columns, [(one,) for one in found.reasons])
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


def _draw_course(found: Fidelity) -> Figure:
    course = found.course
    if course is None:  # pragma: no cover - no picture is made of none
        raise ValueError("no course")
    days = np.arange(len(course.observed)) * course.width / DAY
    panel = Panel(
        f"{found.workload}, means over {format_duration(round(course.width))}", "days since the lead-in ended",
        "cores in use (%)", [Curve("simulated", days, course.simulated)], steps=True,
        reference=Curve("recorded", days, course.observed),
    )  # fmt: skip
    return draw_panels([panel], height=3.0)
