"""Pictures of a log: when jobs come, how large and how long they are, and what they request."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.picture import COLOURS, keeps_settings, new_figure, save_picture
from policyfactory.core.units import DAY, HOUR, MINUTE, format_duration
from policyfactory.workload.clock import LONGEST_SPAN, arrivals
from policyfactory.workload.describe import Description, joined_log
from policyfactory.workload.machine import size_of
from policyfactory.workload.swf.log import SwfLog

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_accuracy", "draw_arrivals", "draw_log", "draw_run_times", "draw_sizes", "picture_paths"]

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TIME_TICKS = (1, 10, MINUTE, 10 * MINUTE, HOUR, DAY, 10 * DAY, 100 * DAY)
_TIME_NAMES = ("1 s", "10 s", "1 min", "10 min", "1 h", "1 d", "10 d", "100 d")
# Two bins a power of two: fine enough for the peaks at round requests, coarse enough for a small log.
_BINS_PER_OCTAVE = 2
_POPULAR = 12


@keeps_settings
def draw_log(log: SwfLog, description: Description, folder: Path) -> list[Path]:
    """Draw all pictures of a log into ``folder``; a picture without data is left out.

    Parameters
    ----------
    log : SwfLog
        As it was read.
    description : Description
        Its numbers.
    folder : Path
        Where ``NAME-arrivals.png`` and the others are written.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    jobs = joined_log(log)
    drawn = {what: draw(jobs, description) for what, draw in _PICTURES.items()}
    paths = picture_paths(log.name, folder)
    return [save_picture(figure, paths[what]) for what, figure in drawn.items() if figure is not None]


def picture_paths(name: str, folder: Path) -> dict[str, Path]:
    """Return where the pictures of the log called ``name`` are written, by what they show."""
    stem = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "log"
    return {what: folder / f"{stem}-{what}.png" for what in _PICTURES}


def draw_arrivals(log: SwfLog, description: Description) -> Figure | None:
    """Draw the jobs submitted by hour of the day, by hour of the week, and week after week."""
    if not (log.submit >= 0).any() or log.submit.max() > LONGEST_SPAN:
        return None
    when = arrivals(log)
    figure = new_figure(9.0, 6.5)
    figure.suptitle(f"{description.name}: when jobs are submitted ({when.clock})")
    panels = figure.subplot_mosaic([["day", "weeks"], ["week", "week"]])
    day, weeks, week = panels["day"], panels["weeks"], panels["week"]
    hours = np.arange(25)
    if when.dated:
        day.stairs(when.rate(slice(0, 5)), hours, label="Monday to Friday", linewidth=1.5)
        day.stairs(when.rate(slice(5, 7)), hours, label="weekend", linewidth=1.5, color=COLOURS[1])
        # At night there is room.
        day.legend(loc="upper left", fontsize=9)
    else:
        day.stairs(when.rate(slice(0, 7)), hours, linewidth=1.5)
    day.set(
        xlabel="hour of the day", ylabel="jobs an hour (mean)", xlim=(0, 24), xticks=range(0, 25, 3), ylim=(0, None)
    )
    weeks.bar(np.arange(len(when.per_week)), when.per_week, width=1.0)
    weeks.set(xlabel="week of the log", ylabel="jobs a week", xlim=(-0.5, len(when.per_week) - 0.5))
    rate = when.hour_of_week / np.maximum(when.hours_seen, 1)
    week.stairs(rate, np.arange(169), fill=True)
    week.set(ylabel="jobs an hour (mean)", xlim=(0, 168), ylim=(0, None), xticks=range(0, 169, 24))
    week.set_xticklabels([])
    week.set_xticks(range(12, 168, 24), labels=_DAYS if when.dated else [f"day {n + 1}" for n in range(7)], minor=True)
    week.tick_params(axis="x", which="minor", length=0)
    week.set_xlabel("hour of the week" if when.dated else "hour of the log's own week")
    return figure


def draw_sizes(log: SwfLog, description: Description) -> Figure | None:
    """Draw how many jobs, and how much of the machine's time, each class of sizes has."""
    size = size_of(log)
    known = size > 0
    if not known.any():
        return None
    size, run_time = size[known], np.maximum(log.run_time[known], 0).astype(np.float64)
    # Class k has the sizes above 2**(k - 1) up to 2**k; class 0 the serial jobs.
    octave = np.ceil(np.log2(size)).astype(np.int64)
    classes = int(octave.max()) + 1
    jobs = np.bincount(octave, minlength=classes) / len(size)
    area = np.bincount(octave, weights=run_time * size, minlength=classes)
    exact = np.bincount(octave, weights=(size == 2.0**octave), minlength=classes) / len(size)
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    place = np.arange(classes)
    axes.bar(place - 0.2, 100 * jobs, width=0.4, color=COLOURS[5], label="jobs")
    axes.bar(place - 0.2, 100 * exact, width=0.4, color=COLOURS[0], label="jobs of exactly the upper size")
    axes.bar(place + 0.2, 100 * area / max(area.sum(), 1.0), width=0.4, color=COLOURS[1], label="processor seconds")
    names = ["1", "2", *(f"{2 ** (k - 1) + 1:,}–{2**k:,}" for k in range(2, classes))][:classes]
    axes.set_xticks(place, labels=names, rotation=40 if classes > 6 else 0, ha="right" if classes > 6 else "center")
    axes.set(xlabel="processors of the job", ylabel="share, %", title=f"{description.name}: sizes")
    axes.grid(visible=False, axis="x")
    axes.legend()
    return figure


def _time_axis(axes: Axes, longest: float) -> None:
    """Give ``axes`` a logarithmic time axis with names that people use."""
    shown = [n for n, tick in enumerate(_TIME_TICKS) if tick <= max(longest, 10) * 1.5]
    axes.set_xscale("log")
    axes.set_xticks([_TIME_TICKS[n] for n in shown], labels=[_TIME_NAMES[n] for n in shown])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.8, max(longest, 10) * 1.2)


def _histogram(axes: Axes, times: NDArray[Any], longest: float, **style: Any) -> None:
    """Draw the share of jobs in bins of equal width on a logarithmic axis; 0 s is put with 1 s."""
    steps = int(np.ceil(np.log2(max(longest, 2.0)) * _BINS_PER_OCTAVE)) + 1
    edges = 2.0 ** (np.arange(steps + 1) / _BINS_PER_OCTAVE)
    # A whole second belongs to the bin that it begins.
    counts, _ = np.histogram(np.clip(times, 1, edges[-1] - 0.5), bins=edges - 0.01)
    axes.stairs(100 * counts / len(times), edges, **style)


def draw_run_times(log: SwfLog, description: Description) -> Figure | None:
    """Draw how long jobs run and for how long they ask, as histograms and as cumulative shares."""
    run_time = log.run_time[log.run_time >= 0]
    request = log.requested_time[log.requested_time > 0]
    if not len(run_time):
        return None
    # A handful of absurd requests would squeeze the rest.
    longest = float(max(run_time.max(), np.quantile(request, 0.9999) if len(request) else 0))
    figure = new_figure(9.0, 4.0)
    figure.suptitle(f"{description.name}: run times" + (" and requested times" if len(request) else ""))
    share, below = figure.subplots(1, 2)
    for times, label, colour in ((run_time, "run time", COLOURS[0]), (request, "requested time", COLOURS[1])):
        if not len(times):
            continue
        _histogram(share, times, longest, color=colour, label=label, linewidth=1.5)
        order = np.sort(np.clip(times, 1, None))
        pick = np.unique(np.linspace(0, len(order) - 1, 2000).astype(np.int64))
        below.plot(order[pick], 100 * (pick + 1) / len(order), color=colour, label=label)
    share.set(xlabel="time (0 s is drawn at 1 s)", ylabel="jobs in a bin of half a power of two, %", ylim=(0, None))
    below.set(xlabel="time", ylabel="jobs of at most this time, %", ylim=(0, 100))
    for axes in (share, below):
        _time_axis(axes, longest)
    below.legend(loc="upper left")
    return figure


def draw_accuracy(log: SwfLog, description: Description) -> Figure | None:
    """Draw the part of the requested time that jobs use, and the requests that are asked for most."""
    both = (log.run_time >= 0) & (log.requested_time > 0)
    if not both.any():
        return None
    accuracy = log.run_time[both] / log.requested_time[both]
    figure = new_figure(9.0, 4.0)
    figure.suptitle(f"{description.name}: how well requests predict run times")
    used, popular = figure.subplots(1, 2)
    edges = np.arange(0, 106, 2) / 100
    # A run that ends with its request belongs below 100 %.
    shown = np.where(accuracy <= 1, np.minimum(accuracy, 0.999), np.minimum(accuracy, 1.03))
    counts, _ = np.histogram(shown, bins=edges)
    shares = 100 * counts / len(accuracy)
    used.bar(100 * edges[:50], shares[:50], width=2.0, align="edge")
    # The last bar holds all that is above 102 %.
    used.bar(100 * edges[50:52], shares[50:], width=2.0, align="edge", color=COLOURS[1], label="beyond the request")
    used.set(xlabel="run time / requested time, %", ylabel="jobs, %", xlim=(0, 104))
    used.axvline(100 * float(np.median(accuracy)), color=COLOURS[7], linestyle="--", linewidth=1, label="median")
    used.legend(loc="upper center", frameon=True, framealpha=0.9, edgecolor="none")
    values, jobs = np.unique(log.requested_time[both], return_counts=True)
    most = np.argsort(-jobs, kind="stable")[:_POPULAR][::-1]
    names = [format_duration(float(value)) for value in values[most]]
    popular.barh(np.arange(len(most)), 100 * jobs[most] / len(accuracy), color=COLOURS[2])
    popular.set_yticks(np.arange(len(most)), labels=names)
    popular.set(
        xlabel="jobs, %", ylabel="requested time", title=f"the {len(most)} most frequent of {len(values):,} requests"
    )
    popular.grid(visible=False, axis="y")
    return figure


_PICTURES = {"arrivals": draw_arrivals, "sizes": draw_sizes, "run-times": draw_run_times, "accuracy": draw_accuracy}
