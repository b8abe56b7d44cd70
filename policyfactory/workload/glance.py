"""One picture of a workload: how much comes when, how long and how large jobs are, and what they request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.picture import new_figure, plain_numbers
from policyfactory.core.units import DAY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_glance"]

FloatArray = NDArray[np.float64]


def draw_glance(
    name: str, submit: FloatArray, run_time: FloatArray, requested_time: FloatArray, processors: NDArray[np.int64]
) -> Figure:
    """Draw the jobs of a workload.

    Parameters
    ----------
    name : str
        Its name.
    submit, run_time, requested_time : float64 array (n,)
        Seconds.
    processors : int64 array (n,)
        Processors of each job.
    """
    figure = new_figure(9.0, 5.5)
    figure.suptitle(f"{name}: {len(submit):,} jobs")
    days, sizes, times, shares = figure.subplots(2, 2).ravel()
    if len(submit):
        day = ((submit - submit[0]) // DAY).astype(np.int64)
        days.bar(np.arange(day[-1] + 1), np.bincount(day), width=1.0)
        octave = np.bincount(np.ceil(np.log2(processors)).astype(np.int64))
        sizes.bar([f"{2**power}" for power in range(len(octave))], octave)
        longest = max(float(run_time.max()), float(requested_time.max()), 2.0)
        edges = np.geomspace(1.0, longest, 40)
        for label, values in (("run time", run_time), ("requested", requested_time)):
            times.hist(np.maximum(values, 1.0), edges, histtype="step", linewidth=1.5, label=label)
        times.legend(fontsize=9)
        shares.hist(np.minimum(run_time / np.maximum(requested_time, 1.0), 1.0), np.linspace(0.0, 1.0, 41))
    days.set(xlabel="day since the first submission", ylabel="jobs a day")
    sizes.set(xlabel="processors (up to)", ylabel="jobs")
    sizes.tick_params("x", rotation=45)
    times.set(xlabel="seconds", ylabel="jobs", xscale="log")
    plain_numbers(times.xaxis, minor=False)
    shares.set(xlabel="run time over requested time (at most 1)", ylabel="jobs")
    return figure
