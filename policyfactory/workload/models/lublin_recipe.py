"""From a recipe to a log: model jobs, the load they are to offer, and their requested times, in one go."""

from __future__ import annotations

import dataclasses

from policyfactory.core.units import format_duration
from policyfactory.workload.models.lublin import LublinModel, Stream, cut_run_times, draw_jobs, scale_to_load
from policyfactory.workload.models.lublin_swf import load_of, log_of_draw
from policyfactory.workload.models.tsafrir import Estimates, UserBin, draw_estimates
from policyfactory.workload.swf.log import SwfLog

__all__ = ["Recipe", "make_log", "tell_estimates"]


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """What determines a model log.

    Parameters
    ----------
    model : LublinModel
        Machine and classes of jobs.
    jobs : int
        How many.
    seed : int
        Seed of jobs and of requests.
    stream : {"numpy", "drand48"}
        Random numbers of both.
    load : float or None
        Offered load to meet, with the run times as they are after cutting.
    max_estimate : int or None
        Longest request (s) of the estimate model; without it there are no requests.
    user_bins : tuple of (int, int)
        Requests (s) and jobs that are known to use them.
    """

    model: LublinModel
    jobs: int
    seed: int
    stream: Stream = "numpy"
    load: float | None = None
    max_estimate: int | None = None
    user_bins: tuple[UserBin, ...] = ()


def make_log(recipe: Recipe, command: str) -> tuple[SwfLog, tuple[str, ...]]:
    """Return the log, and in words what was done.

    Parameters
    ----------
    recipe : Recipe
        What to make.
    command : str
        The command, for the header.

    Raises
    ------
    UsageError
        If a number cannot be meant.
    WorkloadError
        If the run times are too long for the requests.
    """
    draw = draw_jobs(recipe.model, recipe.jobs, seed=recipe.seed, stream=recipe.stream)
    how = f"{recipe.stream} stream, seed {recipe.seed}"
    notes = [f"random numbers: {how}"]
    if draw.oversized:
        what = "drawn again" if recipe.stream == "numpy" else "cut to it"
        notes.append(f"{draw.oversized} of {recipe.jobs} jobs were drawn larger than the machine and {what}")
    cut = 0
    if recipe.max_estimate is not None:
        # Before the load is met, which depends on the run times.
        draw, cut = cut_run_times(draw, recipe.max_estimate)
    if recipe.load is not None:
        draw = scale_to_load(draw, recipe.load)
        notes.append(f"gaps between arrivals (before the daily cycle) scaled to offered load {recipe.load:g}")
    made = None
    if recipe.max_estimate is not None:
        made = draw_estimates(
            draw.run_time, recipe.max_estimate, seed=recipe.seed, user_bins=recipe.user_bins, stream=recipe.stream
        )
        made = dataclasses.replace(made, cut=cut)
        notes.append(tell_estimates(made, recipe.max_estimate, how))
    log = log_of_draw(draw, (command, *notes), made)
    return log, (recipe.model.describe(), f"{recipe.jobs:,} jobs; {load_of(log, recipe.model.processors)}", *notes)


def tell_estimates(made: Estimates, longest: int, how: str) -> str:
    """Return in one line how requested times were made.

    Parameters
    ----------
    made : Estimates
        The requests.
    longest : int
        Longest request, s.
    how : str
        Stream and seed.
    """
    return (
        f"requested times: Tsafrir-Etsion-Feitelson model, {how}, {len(made.histogram.times)} values, "
        f"at most {format_duration(longest)}; {made.cut} longer run times were cut to that"
    )
