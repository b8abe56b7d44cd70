"""The tables of docs/tuning.md say what the protocol of the article found: docs/data/tpds18.csv, of a full run."""

from __future__ import annotations

import csv
import re

from support import ROOT

LOGS = {"KTH-SP2": "kth-sp2", "SDSC-BLUE": "sdsc-blue", "CEA-Curie": "cea-curie"}
FIXED = ("LCFS", "SPF", "LPF", "SQF", "LQF", "LEXP", "SEXP", "SRF", "LRF", "SAF", "LAF")
TUNERS = ("Full", "Noisy", "Bandit", "Thompson", "UCB", "Random")


def measured() -> dict[tuple[str, str, str], float]:
    with (ROOT / "docs/data/tpds18.csv").open(encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return {(row["experiment"], row["log"], row["policy"]): float(row["difference_percent"]) for row in rows}


def rows_of(first: str) -> list[list[str]]:
    lines = (ROOT / "docs/tuning.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith(f"| {first}")]


def test_the_tuners_of_the_first_table_are_those_that_were_measured() -> None:
    values = measured()
    for title, log in LOGS.items():
        row = next(cells for cells in rows_of(f"{title} |") if len(cells) == 8)
        best = re.fullmatch(r"(-\d+) \((\w+)\)", row[1])
        assert best is not None
        lowest = min(FIXED, key=lambda policy: values["tables", log, policy])
        assert (round(values["tables", log, lowest]), lowest) == (int(best[1]), best[2])
        for cell, tuner in zip(row[2:], TUNERS, strict=True):
            week, day = cell.split(" / ")
            assert week == f"{values['tables', log, f'{tuner}, week']:.1f}"
            assert day == f"{values['tables', log, f'{tuner}, day']:.1f}"
