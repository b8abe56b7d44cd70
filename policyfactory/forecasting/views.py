"""Forecasts and backtests as sections of a report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.options import FloatArray
from policyfactory.core.text import counted
from policyfactory.forecasting.backtest import OTHERS, OURS, PLAN, Backtest, Told, waited
from policyfactory.forecasting.forecast import Forecast, JobForecast
from policyfactory.report.sections import Cell, Column, Picture, Section, Table, number_cell, span, with_ends
from policyfactory.site.submission import NEW
from policyfactory.statistics.calibration import TRUSTED, Score
from policyfactory.statistics.intervals import Estimate
from policyfactory.workload.accounting.times import shown

_HOUR = 3600


def sections_of(found: Forecast, seconds: int | None = None) -> list[Section]:
    """Return what a forecast says: the queue, and alternatives if a job was to be submitted.

    Parameters
    ----------
    found : Forecast
    seconds : int, optional
        Within which the chance of a start is told; an hour if not given.
    """
    where = "the log's processors under EASY" if found.site is None else found.site.name
    calibrated, taken = found.stretch.instants, shown(found.snapshot.taken, found.zone)
    how = f"calibrated on {counted(calibrated, 'earlier forecast')}" if calibrated else "not calibrated"
    futures = f"{counted(found.draws.futures, 'future')} of the {span(found.draws.horizon)} after it"
    what = f"The queue of {taken}, {futures}; intervals are {how}."
    texts = (what, *(f"Assumed: {text}" for text in found.assumed))
    pictures = (Picture("queue", "The queue: 50 % and 90 % of the futures", found.plot),) if found.jobs else ()
    waiting = sum(its.job.name != NEW for its in found.jobs)
    title = f"{counted(waiting, 'waiting job')} on {where}"
    sections = [Section("queue", title, texts, (_queue(found, seconds),) if found.jobs else (), pictures)]
    if found.alternatives:
        sections.insert(0, _alternatives(found))
    return sections


def _queue(found: Forecast, asked: int | None) -> Table:
    seconds = asked or min(_HOUR, found.draws.horizon)
    within = Column(span(seconds), help="In which part of the futures it has started by then.")
    columns = {
        Column("job"): lambda its: its.job.name,
        Column("user"): lambda its: its.job.user,
        Column("median", help="Half of the futures have started it by then."): _median,
        Column("50 %", help="From a quarter to three quarters of the futures."): lambda its: _range(its, 1, 3),
        Column("90 %", help="From the earliest to the latest 5 % of the futures; +: or later."): lambda its: _range(
            its, 0, 4
        ),
        within: lambda its: "-" if its.outside else f"{100 * its.chance(seconds):.0f} %",
    }
    if any(its.waits for its in found.jobs):
        columns[Column("waits for")] = lambda its: its.waits[0].short.partition(" (")[0] if its.waits else ""
    note = f"{span(seconds)}: the chance of a start by then."
    return Table.of("queue", "When jobs will start", columns, ((its,) for its in found.jobs), note)


def _alternatives(found: Forecast) -> Section:
    asked = found.alternatives[0].asked
    rows, answers = [_alternative("as asked", asked)], []
    for its in found.alternatives:
        gain, size, sure = its.earlier, "the same", ""
        if abs(gain) >= 60:
            size = f"{span(abs(gain))} {'earlier' if gain > 0 else 'later'}"
            sure = f"{100 * its.sure:.0f} %"
        if gain >= 60 and its.sure >= 0.5:
            answers.append(f"{its.words[0].upper()}{its.words[1:]}: {size} on average, {sure} sure to be earlier.")
            if its.killed >= 0.005:
                answers[-1] += f" But {100 * its.killed:.0f} % of like jobs ran longer than that limit."
        rows.append(_alternative(its.words, its.found, size, sure, f"{100 * its.killed:.0f} %"))
    sure_help = "In which part of the futures it is so."
    killed = Column("killed", help="Like jobs that ran longer than this limit.")
    heads = *map(Column, ("job", "median", "90 %", "on average")), Column("sure", help=sure_help), killed
    table = Table("alternatives", "What else could be asked for, in the same futures", heads, tuple(rows))
    texts = answers or [asked.outside or "Nothing that was tried is more likely than not to start earlier."]
    return Section("submission", "The job that is to be submitted", tuple(texts), (table,))


def _alternative(words: str, its: JobForecast, size: str = "", sure: str = "", killed: str = "") -> tuple[Cell, ...]:
    return tuple(Cell(text) for text in (words, _median(its), _range(its, 0, 4), size, sure, killed))


def _median(its: JobForecast) -> str:
    if its.outside:
        return "-"
    return span(its.median) if math.isfinite(its.median) else f"> {span(its.horizon)}"


def _range(its: JobForecast, low: int, high: int) -> str:
    """Return two ends of an interval in one unit."""
    if its.outside:
        return "-"
    first, last = its.quantiles[[low, high]].tolist()
    if not math.isfinite(first):
        return f"> {span(its.horizon)}"
    return span(first, last) if math.isfinite(last) else span(first, its.horizon).replace(" ", "+ ")


# A backtest -----------------------------------------------------------------------------------------------------------


def sections_of_backtest(found: Backtest) -> list[Section]:
    """Return how good forecasts were: beside other methods, and by horizon, size and partition."""
    score, plan, best = found.score(OURS), found.loss_ratio(OURS, PLAN), _best(found)
    where = "EASY on the log's processors" if found.loop.site is None else found.loop.site.name
    shift, many = math.expm1(found.stretch.shift), found.stretch.instants
    contained = (
        f"{counted(score.instants, 'instant')} of the second half, {score.jobs:,} forecasts of jobs that waited, on "
        f"{where}. Their intervals of 50 % contained {100 * score.inside50:.0f} % of the starts, those of 90 % "
        f"{100 * score.inside90:.0f} %."
    )
    if gone := sum(told.cancelled for told in found.told):
        contained += f" {counted(gone, 'more was', 'more were')} cancelled before they started."
    if score.inside90 < TRUSTED:
        contained += " They are not to be trusted here."
    compared = (
        f"Their loss is {_ratio(plan)} times that of a plan by limits, and {_ratio(best[1])} times that of the best "
        f"other method, {best[0]}."
    )
    taught = "Too few earlier forecasts to calibrate the next ones by."
    if many:
        taught = (
            f"Forecasts after this log are stretched by what the last {many:,} teach: medians by {100 * shift:+.0f} %, "
            f"intervals of 90 % by {found.stretch.factors[0]:.2f} below and {found.stretch.factors[3]:.2f} above."
        )
    came = "What came is a simulation by the same rules: how near that is to your scheduler, --recorded tells."
    texts = [contained, compared, taught, *(f"Assumed: {text}" for text in found.loop.assumed)]
    texts += [] if found.loop.is_recorded else [came]
    title = f"How good forecasts of {found.loop.record.jobs.name} are"
    return [Section("backtest", title, tuple(texts), tuple(_tables(found)))]


def _best(found: Backtest) -> tuple[str, Estimate]:
    others = {name: found.loss_ratio(OURS, name) for name in OTHERS}
    return max(others.items(), key=lambda entry: entry[1].value)


def _ratio(estimate: Estimate) -> str:
    value, ends = with_ends(estimate.value, estimate.interval, "1")
    return f"{value} ({ends})" if ends else value


_INTERVALS: dict[Column, Callable[[Score], float]] = {
    Column("in 50 %", "%", "Starts in the intervals of 50 %."): lambda its: 100 * its.inside50,
    Column("in 90 %", "%", "Starts in the intervals of 90 %."): lambda its: 100 * its.inside90,
    Column("before", "%", "Starts before the interval of 90 %."): lambda its: 100 * its.early,
    Column("after", "%", "Starts after the interval of 90 %."): lambda its: 100 * its.late,
    Column("by median", "%", "Starts by the median; half of them if it is not biased."): lambda its: 100 * its.below,
}
_ERRORS: dict[Column, Callable[[Score], float]] = {
    Column("loss", "s", "Pinball loss, the mean over five levels."): lambda its: its.pinball,
    Column("error", "s", "Mean absolute error of the median."): lambda its: its.absolute,
    Column("factor", "1", "e to the mean absolute error of ln(start + 60 s)."): lambda its: its.ratio,
    Column("in 1 min", "%", "Median within a minute of the start."): lambda its: 100 * its.minute,
    Column("in 10 min", "%", "Median within ten minutes of the start."): lambda its: 100 * its.ten_minutes,
}


def _tables(found: Backtest) -> Iterator[Table]:
    """Give the tables of methods, then those of groups of jobs: how right intervals are, and how large errors."""
    by_method = [((Cell(name),), found.score(name)) for name in found.methods]
    by_group = [
        ((Cell(kind), Cell(name), Cell(score.jobs)), score)
        for kind, name, which in _groups(found)
        if (score := found.score(OURS, which)).jobs
    ]
    of_group = (Column("jobs by"), Column("which"), Column("n"))
    note = (
        "Of jobs that waited before; each instant is one vote. Below a quarter of the futures, not calibrated, stand "
        "as many, with less or more known."
    )
    methods, groups = ("methods", (Column("method"),), by_method, note), ("groups", of_group, by_group, "")
    for stem, first, rows, note in (methods, groups):
        for kind, scores in (("intervals", _INTERVALS), ("errors", _ERRORS)):
            words = "beside what else could be told a user" if stem == "methods" else "by job"
            cells = [(*names, *(number_cell(show(score)) for show in scores.values())) for names, score in rows]
            yield Table(f"{stem}-{kind}", f"{kind.title()} of forecasts {words}", (*first, *scores), tuple(cells), note)


Which = Callable[[Told], NDArray[np.bool_]]


def _groups(found: Backtest) -> Iterator[tuple[str, str, Which]]:
    """Give groups of jobs: their kind, their name, and which they are."""
    jobs = found.loop.record.jobs

    def among(values: Callable[[Told], FloatArray], low: float, high: float) -> Which:
        return lambda told: waited(told) & (values(told) > low) & (values(told) <= high)

    yield "submission", "now, and starts at once", lambda told: told.is_new & (told.start < 60)
    yield "submission", "now, and waits", lambda told: told.is_new & (told.start >= 60)
    ends = [-1.0, 600.0, _HOUR, 6 * _HOUR, math.inf]
    for low, high in itertools.pairwise(ends):
        name = f"{f'{span(low)} to' if low > 0 else 'up to'} {span(high)}" if high < math.inf else f"over {span(low)}"
        yield "start", name, among(lambda told: told.start, low, high)
    share = jobs.processors / jobs.machine
    for low, high, name in ((0.0, 0.01, "up to 1 %"), (0.01, 0.1, "1 to 10 %"), (0.1, 1.0, "more than 10 %")):
        yield "size", name, among(lambda told: share[told.rows], low, high)
    if jobs.requests is not None:
        names, partition = jobs.requests.names.get("partition", ()), jobs.requests.partition.astype(np.float64)
        for number, name in enumerate(names if len(names) > 1 else ()):
            yield "partition", name, among(lambda told: partition[told.rows], number - 0.5, number + 0.5)
