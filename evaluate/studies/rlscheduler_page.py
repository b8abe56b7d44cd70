"""The tables of RL's cells in docs/rlscheduler.md, from what rlscheduler_networks.py wrote.

    python evaluate/studies/rlscheduler_page.py docs/data/rlscheduler-networks.csv

A cell is the mean over the seeds with its 95 % interval (Student's t, so wide with three), by the most probable job.
"""  # noqa: INP001 (a script beside the package, not a part of it)

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import t as student

__all__ = ["main", "tables"]

Row = dict[str, str]
LOGS = {"lublin-1": "Lublin-1", "lublin-2": "Lublin-2", "hpc2n": "HPC2N", "kth": "KTH", "sdsc-blue": "SDSC-BLUE"}
# Printed for RL, without and with backfilling; on HPC2N that of table VII (V has another, docs/rlscheduler.md).
PRINTED = {
    "mean_bsld": {"lublin-1": ("254.67", "58.64"), "lublin-2": ("724.51", "118.79"), "hpc2n": ("186.42", "115.79")},
    "utilisation_to_last_start": {
        "lublin-1": ("71.4", "85.0"),
        "lublin-2": ("56.2", "59.3"),
        "hpc2n": ("64.0", "64.2"),
    },
    "mean_slowdown": {"lublin-1": ("429.5", "85.55"), "lublin-2": ("1181.2", "114.3"), "hpc2n": ("270.7", "170.7")},
    "mean_wait": {"lublin-1": ("20550", "12460"), "lublin-2": ("17809", "5172"), "hpc2n": ("6858", "5394")},
    "user_max_bsld": {"hpc2n": ("1147", "519")},
}
WORDS = {
    "mean_bsld": "V, VII: mean bounded slowdown",
    "utilisation_to_last_start": "VI: utilisation, %",
    "mean_slowdown": "X: mean slowdown",
    "mean_wait": "XI: mean wait, s",
    "user_max_bsld": "VIII: worst-off user",
}


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Return the tables as Markdown, by name: ``cells``.

    Parameters
    ----------
    rows : sequence of dict
        Of the file.
    """
    usual = [row for row in rows if (row["network"], row["filtering"]) == ("kernel", "none")]
    return {"cells": _cells(usual)}


def _cells(rows: Sequence[Row]) -> str:
    lines = ["| table | log | no backfilling: printed | ours | with it: printed | ours |", "|---|---|---|---|---|---|"]
    for goal, words in WORDS.items():
        title = words
        for log, printed in PRINTED[goal].items():
            own = [row for row in rows if (row["goal"], row["log"], row["tested"]) == (goal, log, log)]
            if not own:
                continue
            cells = [title, LOGS[log]]
            for place, backfill in enumerate(("False", "True")):
                values = [float(row["most probable"]) for row in own if row["backfilling"] == backfill]
                cells += [printed[place], _interval(values)]
            lines.append(f"| {' | '.join(cells)} |")
            title = ""
    return "\n".join(lines)


def _interval(values: Sequence[float]) -> str:
    mean = float(np.mean(values))
    if len(values) < 2:
        return _number(mean)
    half = float(student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return f"{_number(mean)} [{_number(mean - half)}, {_number(mean + half)}]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="rlscheduler-networks.csv")
    with parser.parse_args(arguments).file.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name, text in tables(rows).items():
        print(f"{name}\n\n{text}\n")  # noqa: T201 (a script)


if __name__ == "__main__":
    main()
