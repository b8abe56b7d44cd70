"""What SJF makes of every window that RLScheduler can be trained on: figures 3 and 7 of its paper, and its filter.

    python evaluate/studies/rlscheduler_windows.py --traces traces --output docs

The paper shows PIK-IPLEX, which is not among our logs. Each of ours is cut into all windows of 256 jobs that its first
10,000 jobs have, and each window is scheduled with SJF by the rules of the paper's program. It writes
``data/rlscheduler-windows.csv``, what the windows of a log give and how many of them the filter of the paper (between
median and twice the mean) and that of its program (between 10 and 150) let through; and the picture
``img/rlscheduler-windows.png``. Ten seconds.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.files import atomic_write
from policyfactory.core.picture import new_figure, plain_numbers, save_picture
from policyfactory.policy.store import CATALOGUE
from policyfactory.simulation.compat import CommittedLog, starts_by_formula
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.windows import RLSCHEDULER_JOBS

__all__ = ["main", "rows_of", "window_means"]

LOGS = {
    "Lublin-1": "lublin_256.swf",
    "Lublin-2": "lublin_256_new2.swf",
    "HPC2N": "HPC2N-2002-2.1-cln.swf.gz",
    "KTH-SP2": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.2-cln.swf.gz",
}
JOBS = 256
CODE = (10.0, 150.0)


def window_means(log: CommittedLog) -> NDArray[np.float64]:
    """Return the mean bounded slowdown of SJF, without backfilling, in the windows that begin with jobs 1, 2, ...

    Parameters
    ----------
    log : CommittedLog
        The log.

    Returns
    -------
    float64 array (windows,)
        The program runs all of these when it starts with its filter on.
    """
    first = np.arange(1, min(len(log), RLSCHEDULER_JOBS) - JOBS + 1)
    r = log.jobs.submit.astype(np.float64)
    start, _ = starts_by_formula(log, CATALOGUE["SPF"], first, JOBS, backfill=False, r=r)
    rows = first[:, None] + np.arange(JOBS)
    run_time = log.jobs.run_time[rows]
    slowdown = (start - log.jobs.submit[rows] + run_time) / np.maximum(run_time, 10)
    means: NDArray[np.float64] = np.maximum(slowdown, 1.0).mean(axis=1)
    return means


def rows_of(name: str, means: NDArray[np.float64]) -> dict[str, str | float]:
    """Return one row of the table."""
    median, mean = float(np.median(means)), float(means.mean())
    inside = (means > median) & (means < 2 * mean)
    by_code = (means > CODE[0]) & (means < CODE[1])
    return {
        "log": name,
        "windows": len(means),
        "median": round(median, 2),
        "mean": round(mean, 2),
        "largest": round(float(means.max()), 2),
        "skewness": round(float(((means - mean) ** 3).mean() / means.std() ** 3), 2),
        "filter of the paper (%)": round(100 * float(inside.mean()), 1),
        "filter of the program (%)": round(100 * float(by_code.mean()), 1),
    }


def draw(means: dict[str, NDArray[np.float64]], path: Path) -> None:
    """Draw the values of all windows of each log, in the order of the log, with what the two filters let through."""
    figure = new_figure(9.0, 1.7 * len(means))
    axes = figure.subplots(len(means), 1, sharex=True)
    for axis, (name, values) in zip(axes, means.items(), strict=True):
        low, high = np.median(values), 2 * values.mean()
        axis.axhspan(low, high, color="#0072b2", alpha=0.18, linewidth=0, label="the paper's filter")
        axis.axhspan(*CODE, color="#d55e00", alpha=0.15, linewidth=0, label="its program's")
        axis.plot(values, color="#222222", linewidth=0.6)
        axis.set(yscale="log", title=name)
        axis.margins(x=0)
        plain_numbers(axis.yaxis, minor=False)
    axes[-1].set_xlabel("first job of the window")
    figure.supylabel("mean bounded slowdown of SJF over 256 jobs", size="medium")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2)
    save_picture(figure, path)


def main(arguments: list[str] | None = None) -> None:
    """Schedule, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, default=Path("traces"), help="folder of the logs")
    parser.add_argument("--output", type=Path, required=True, help="folder that gets data/ and img/")
    given = parser.parse_args(arguments)
    means = {
        name: window_means(CommittedLog.of_swf(read_swf(given.traces / file))) for name, file in LOGS.items()
    }  # fmt: skip
    rows = [rows_of(name, values) for name, values in means.items()]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for folder in ("data", "img"):
        (given.output / folder).mkdir(parents=True, exist_ok=True)
    atomic_write(given.output / "data" / "rlscheduler-windows.csv", text.getvalue())
    draw(means, given.output / "img" / "rlscheduler-windows.png")


if __name__ == "__main__":
    main()
