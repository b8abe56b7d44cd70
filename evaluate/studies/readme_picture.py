# ruff: noqa: INP001 (a script)
"""Draw the picture at the top of the README: what five queue orders give on the embedded workload, at what price.

    python evaluate/studies/readme_picture.py docs/img/readme.svg

It runs ``policyfactory evaluate`` on twelve windows of 15 days, some seconds, and draws medians with 95 % intervals.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

COMMAND = "evaluate --policies FCFS,WFP3,SPF,F1,SAF --windows 12x15d --metric mean_bsld,max_wait"
PANELS = (
    ("mean_bsld", "", 1.0, "Mean bounded slowdown", (20, 50, 100, 200, 500)),
    ("max_wait", " (s)", 86_400.0, "Longest wait, days", (3, 5, 10, 15)),
)
COLOURS = {"FCFS": "#555555", "WFP3": "#0072b2", "SPF": "#009e73", "F1": "#cc79a7", "SAF": "#d55e00"}


def measured() -> list[dict[str, str]]:
    """Run the evaluation and return its table of values, a row for each policy."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "policyfactory", *COMMAND.split(), "--output", folder]
        subprocess.run([*command, "--overwrite"], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (written above)
        with next(Path(folder).glob("evaluation/values/*.csv")).open(encoding="utf-8") as file:
            return list(csv.DictReader(file))


def draw(rows: list[dict[str, str]], output: Path) -> None:
    """Draw one panel for each metric: a dot for the median, a line for the interval."""
    mpl.rcParams.update({"svg.hashsalt": "policyfactory", "svg.fonttype": "path", "font.size": 11})
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.7), sharey=True, layout="constrained")
    for axis, (metric, unit, scale, title, ticks) in zip(axes, PANELS, strict=True):
        for place, row in enumerate(rows):
            value, low, high = (
                float(row[name]) / scale for name in (f"{metric}{unit}", f"{metric} low{unit}", f"{metric} high{unit}")
            )
            colour = COLOURS[row["policy"]]
            axis.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.45, solid_capstyle="round")
            axis.plot(value, place, "o", color=colour, markersize=8)
            axis.annotate(
                f"{value:.3g}", (value, place), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=9
            )
        axis.set_xscale("log")
        axis.set_title(f"{title} (less is better)", size=11)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.set_xticks([], minor=True)
        axis.grid(axis="x", color="#dddddd", linewidth=0.6)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(rows)), [row["policy"] for row in rows])
    axes[0].set_ylim(len(rows) - 0.4, -0.8)
    figure.savefig(output, metadata={"Date": None})


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="the picture, SVG or PNG")
    draw(measured(), parser.parse_args().output)


if __name__ == "__main__":
    main()
