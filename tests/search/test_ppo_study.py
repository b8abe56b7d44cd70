"""The script behind the cells of RL in docs/rlscheduler.md runs, small, and the page has the numbers that it wrote."""

from __future__ import annotations

import csv
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfactory.policy.network import load_network
from policyfactory.policy.store import resolve
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.clean import read
from policyfactory.workload.windows import cut
from support import extra_module

WINDOWS = "rlscheduler:10x1024jobs:1"


@pytest.fixture(scope="module")
def script(root: Path) -> dict[str, Any]:
    extra_module("torch", "rl")
    return runpy.run_path(str(root / "evaluate" / "studies" / "rlscheduler_networks.py"))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_script_writes_rows_curves_pictures_and_networks(
    script: dict[str, Any], shared: Callable[[str], Path], tmp_path: Path
) -> None:
    traces = str(shared("traces"))
    given = ["--traces", traces, "--output", str(tmp_path), "--models", str(tmp_path / "models"), "--rounds", "1"]
    given += ["--only", "lublin-1-mean_bsld-kernel-none-0", "--workers", "1", "--kept", str(tmp_path / "kept")]
    script["main"](given)
    made = rows(tmp_path / "data" / "rlscheduler-networks.csv")
    assert [(row["tested"], row["backfilling"]) for row in made] == [
        (log, backfill) for log in script["LOGS"] for backfill in ("False", "True")
    ]
    assert len(rows(tmp_path / "data" / "rlscheduler-curves.csv")) == 1
    assert {path.name for path in (tmp_path / "img").iterdir()} == {
        "rlscheduler-curves.png", "rlscheduler-shapes.png",
    }  # fmt: skip
    network = load_network(tmp_path / "models" / "rl-lublin-1-0.json")
    assert network.parameters == 961
    check_row(made[0], tmp_path / "models" / "rl-lublin-1-0.json", shared)


def check_row(row: dict[str, str], network: Path, shared: Callable[[str], Path]) -> None:
    """Play the windows of table V by the network's file: what the script said of it."""
    log = read(shared("traces/lublin_256.swf"), preset="rlscheduler", estimate_missing="runtime")
    policy = resolve(network)
    values = [
        measure(simulate(window, policy, compatibility="rlscheduler", backfill="none"), ["mean_bsld"])["mean_bsld"]
        for window in cut(log, WINDOWS)
    ]
    # The script decides by what is shown, in single precision, and the policy by formulas.
    assert float(np.mean(values)) == pytest.approx(float(row["most probable"]), rel=0.02)


def test_the_page_has_the_tables_that_the_script_makes_of_its_numbers(root: Path) -> None:
    page = (root / "docs" / "rlscheduler.md").read_text(encoding="utf-8")
    tables = runpy.run_path(str(root / "evaluate" / "studies" / "rlscheduler_page.py"))["tables"]
    for name, text in tables(rows(root / "docs" / "data" / "rlscheduler-networks.csv")).items():
        assert text in page, f"{name}: put in the table that evaluate/studies/rlscheduler_page.py prints"
