"""The options that `train`, `distill` and `learn` share: the log, the goal, the windows, and what a gain may cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policyfactory.core.errors import UsageError

__all__ = [
    "READING",
    "ChoosingWindows",
    "Goal",
    "JudgedWindows",
    "Loads",
    "Log",
    "Output",
    "Overwrite",
    "Parts",
    "TrainingWindows",
    "WindowJobs",
    "Windows",
    "loads_of",
    "parts_of",
]

# How a log is read, as for an evaluation.
READING = ("processors", "force_processors", "estimate_missing", "preset", "assume")

Log = Annotated[
    Path, typer.Argument(metavar="LOG", help="Log in the Standard Workload Format (workload import makes one).")
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for everything.")]
MaxP99 = Annotated[
    str | None,
    typer.Option(
        metavar="1.1x|20h",
        help="Most that the 99 % quantile of the wait may be: times the baseline's (learn, train --replicas: the best "
        "published policy's).",
    ),
]
MaxLongest = Annotated[
    str | None, typer.Option(metavar="1.0x|20d", help="Most that the longest wait may be, in the same way.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run left in DIR.")]
Goal = Annotated[
    str,
    typer.Option(
        help="What policies are compared in: mean_bsld, mean_wait, mean_turnaround, mean_slowdown, utilisation, "
        "utilisation_to_last_start, user_mean_bsld, user_max_bsld."
    ),
]
WindowJobs = Annotated[int, typer.Option(help="Jobs of a window.")]
TrainingWindows = Annotated[int, typer.Option(help="Windows to learn from.")]
ChoosingWindows = Annotated[int, typer.Option(help="Windows to choose by.")]
JudgedWindows = Annotated[int, typer.Option(help="Windows to judge on: at most so many, side by side.")]
Parts = Annotated[
    str,
    typer.Option(
        metavar="N,N,N", help="Percent of the jobs, in time, to draw windows from: to learn, to choose, to judge."
    ),
]
Loads = Annotated[
    str, typer.Option(metavar="LOW,HIGH", help="Loads of the replicas, evenly between, in units of the log's.")
]
Windows = Annotated[
    str | None,
    typer.Option(
        metavar="NxLENGTH",
        help="Learn, choose and judge on these very windows, so that nothing is held out: "
        "rlscheduler:10x1024jobs:1 are those of the paper's tables.",
    ),
]


def parts_of(text: str) -> tuple[int, int, int]:
    """Return the three percentages of ``--parts``.

    Raises
    ------
    UsageError
        If they are not three whole numbers.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not all(part.isdecimal() and len(part) <= 3 for part in parts):
        raise UsageError(f"--parts {text[:60]!a}: write three whole percentages separated by commas: 40,20,40")
    first, second, third = map(int, parts)
    return first, second, third


def loads_of(text: str) -> tuple[float, float]:
    """Return the two loads of ``--loads``.

    Raises
    ------
    UsageError
        If they are not two numbers.
    """
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"--loads {text[:60]!a}: write two numbers separated by a comma: 0.8,1.2") from None
    return low, high
