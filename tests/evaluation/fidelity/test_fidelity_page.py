"""The table of docs/fidelity.md sums up docs/data/fidelity.csv, which has a row for each case that was replayed."""

from __future__ import annotations

import csv
from statistics import fmean

from support import ROOT


def test_the_table_of_the_page_sums_up_that_of_all_cases() -> None:
    with (ROOT / "docs/data/fidelity.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = (ROOT / "docs/fidelity.md").read_text(encoding="utf-8")
    for slurm, kind in dict.fromkeys((row["slurm"], row["cases"]) for row in rows):
        own = [row for row in rows if (row["slurm"], row["cases"]) == (slurm, kind)]
        starts = [int(row["starts"]) for row in own]

        def missed(column: str) -> str:
            shares = [1 - float(row[column]) / 100 for row in own]  # noqa: B023 used in this turn of the loop
            count = round(sum(share * of for share, of in zip(shares, starts, strict=True)))  # noqa: B023
            return f"all but {count}" if count else "all"

        near = sum(abs(float(row["waits_differ_percent"])) <= 5 for row in own)
        cells = [slurm, f"{len(own)} {kind}", f"{sum(int(row['replays']) for row in own)}", f"{sum(starts):,}"]
        cells += [missed("wanted_percent"), missed("same_nodes_percent")]
        cells += [f"{fmean(float(row['mean_lag_s']) for row in own):.0f} s", f"{near} of {len(own)}"]
        cells += [f"{fmean(float(row['away']) for row in own):.2f}"]
        # One replay has no distance to another.
        pairs = [float(row["slurm_from_itself"]) for row in own if row["slurm_from_itself"]]
        cells += [f"{fmean(pairs):.2f}"] if len(pairs) == len(own) else []
        assert f"| {' | '.join(cells)} |" in page
    assert max(int(row["longest_lag_s"]) for row in rows) == 35
