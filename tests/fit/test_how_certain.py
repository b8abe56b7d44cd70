"""The script behind docs/how-certain.md runs, small, and writes what the page shows."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np


def test_the_script_writes_its_numbers_and_pictures(root: Path, shared: Callable[[str], Path], tmp_path: Path) -> None:
    script = runpy.run_path(str(root / "evaluate" / "how_certain.py"))
    published = shared("oracles/sc17-score-distribution.csv")
    small = ["--jobs-in-log", "3000", "--tuples", "40", "--trials", "992", "--replicates", "5"]
    few = ["--logs", "1", "--log-tuples", "20"]
    script["main"](["--output", str(tmp_path), "--published", str(published), *small, *few])
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "certainty-forms.csv",
        "certainty-logs.csv",
        "certainty.csv",
    ]
    assert sorted(path.name for path in (tmp_path / "img").iterdir()) == ["certainty.png", "shuffle.png"]
    rows = (tmp_path / "data" / "certainty-forms.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 5 + 6 + 1 + len(script["RICH"]) + 3 + 1
    assert np.isclose(script["first_of_the_shuffle"](32).sum(), 1)


def test_the_numbers_in_the_repository_are_of_the_experiment_that_the_page_tells(root: Path) -> None:
    lines = (root / "docs" / "data" / "certainty.csv").read_text(encoding="utf-8").splitlines()
    sizes = sorted({int(line.split(",")[0]) for line in lines[1:]})
    assert sizes[0] == 25
    assert sizes[-1] == 24_000
    for size in sizes:
        shares = [float(line.split(",")[2]) for line in lines[1:] if line.startswith(f"{size},")]
        # Each is written with four digits.
        assert abs(sum(shares) - 1) < 1e-3
