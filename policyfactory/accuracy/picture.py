"""The calibration as a picture: what was predicted and what came of it, by tenths of the jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyfactory.core.picture import COLOURS, new_figure, plain_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from policyfactory.accuracy.compared import Compared

__all__ = ["draw_calibration"]


def draw_calibration(predicted: Compared) -> Figure:
    """Draw predicted and actual shortness, and predicted and actual mean run times, a point a tenth of the jobs."""
    figure = new_figure(8.0, 4.0)
    left, right = figure.subplots(1, 2)
    tenths = predicted.calibration()
    guessed = [row["predicted"] for row in tenths]
    left.plot([0, 1], [0, 1], color="black", linewidth=1)
    left.plot(guessed, [row["actual"] for row in tenths], "o-", color=COLOURS[0], label="10 / max(run time, 10 s)")
    left.plot(guessed, [row["short"] for row in tenths], "s--", color=COLOURS[1], label="share below a minute")
    left.set(xlabel="predicted shortness s", ylabel="actual", xlim=(0, 1), ylim=(0, 1.02))
    left.legend(fontsize=8)
    times = [row for row in predicted.times() if row["predicted_s"] > 0 and row["actual_s"] > 0]
    ends = [end for row in times for end in (row["predicted_s"], row["actual_s"])]
    if ends:
        right.plot([min(ends), max(ends)], [min(ends), max(ends)], color="black", linewidth=1)
        right.plot([row["predicted_s"] for row in times], [row["actual_s"] for row in times], "o-", color=COLOURS[0])
        right.set(xscale="log", yscale="log")
        for axis in (right.xaxis, right.yaxis):
            plain_numbers(axis, minor=False)
    right.set(xlabel="predicted mean run time e (s)", ylabel="actual mean (s)")
    return figure
