"""The script behind the windows of docs/rlscheduler.md gives what RLScheduler's records have."""

from __future__ import annotations

import csv
import gzip
import json
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

NAMES = {"Lublin-1": "lublin_256.swf", "Lublin-2": "lublin_256_new2.swf", "HPC2N": "HPC2N-2002-2.1-cln.swf"}


@pytest.mark.slow
def test_the_windows_of_the_script_are_those_of_the_records(
    root: Path, shared: Callable[[str], Path], tmp_path: Path
) -> None:
    script = runpy.run_path(str(root / "evaluate" / "studies" / "rlscheduler_windows.py"))
    script["main"](["--traces", str(shared("traces")), "--output", str(tmp_path)])
    written = (tmp_path / "data" / "rlscheduler-windows.csv").read_text(encoding="utf-8")
    assert written == (root / "docs" / "data" / "rlscheduler-windows.csv").read_text(encoding="utf-8")
    assert (tmp_path / "img" / "rlscheduler-windows.png").stat().st_size > 10_000
    rows = {row["log"]: row for row in csv.DictReader(written.splitlines())}
    with gzip.open(shared("oracles/rlscheduler_env.json.gz")) as file:
        known = json.load(file)["sjf_filter"]
    for name, row in rows.items():
        _, _, median, mean, _, skewness, paper, program = row.values()
        if name in NAMES:
            summary = known[NAMES[name]]["summary"]
            expected = [summary[key] for key in ("median", "mean", "skewness")]
            expected += [100 * summary["share_in_median_2mean"], 100 * summary["share_in_10_150"]]
            assert [float(value) for value in (median, mean, skewness, paper, program)] == pytest.approx(
                expected, abs=0.051
            )
