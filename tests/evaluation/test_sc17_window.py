"""The script behind docs/papers.md runs, small, and the page has the numbers that it wrote."""

from __future__ import annotations

import csv
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naive import sc17 as naive
from policyfactory.policy.store import resolve
from policyfactory.simulation.compat import simulate_sc17
from policyfactory.simulation.simulate import Rules
from policyfactory.workload.jobs import Workload


@pytest.fixture(scope="module")
def script(root: Path) -> dict[str, Any]:
    return runpy.run_path(str(root / "evaluate" / "studies" / "sc17_window.py"))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_script_writes_its_numbers_and_picture(
    script: dict[str, Any], shared: Callable[[str], Path], tmp_path: Path
) -> None:
    traces = shared("traces/SDSC-BLUE-2000-4.2-cln.swf.gz").parent
    script["main"](["--traces", str(traces), "--output", str(tmp_path), "--windows", "1", "--seeds", "1"])
    names = ["sc17-pairs.csv", "sc17-seeds.csv", "sc17-window.csv"]
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == names
    assert len(rows(tmp_path / "data" / "sc17-window.csv")) == 3 * 4 * 8
    assert len(rows(tmp_path / "data" / "sc17-pairs.csv")) == 3 * 4 * 3
    assert len(rows(tmp_path / "data" / "sc17-seeds.csv")) == 2 * 2 * 8
    assert (tmp_path / "img" / "sc17-window.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["SPF", "F4", "WFP3", "UNICEF"])
def test_how_often_an_unseen_job_would_have_gone_first(script: dict[str, Any], name: str) -> None:
    # The plain scheduler is asked at each of its turns.
    rng = np.random.default_rng(5)
    n, unknown = 120, np.full(120, -1)
    submit, request = np.sort(rng.integers(0, 300, n)) * 3000, rng.integers(1, 60, n) * 3000
    submit[0] = 0
    workload = Workload("few", 4, np.arange(n), submit, request, request, rng.integers(1, 5, n), unknown, unknown)
    rules = Rules(backfill="none", compatibility="sc17")
    result = script["unseen_first"](simulate_sc17(workload, resolve(name), rules), resolve(name), rules)
    jobs = [
        naive.Job(int(s), float(p), float(p), float(p), int(q))
        for s, p, q in zip(submit, request, workload.processors, strict=True)
    ]
    key: naive.Key = naive.KEYS.get(name, lambda job, now: job.x)
    longer, better = 0, 0

    class Asked(naive.Sc17):
        def wait_for_head(self, i: int) -> None:
            nonlocal longer, better
            super().wait_for_head(i)
            now = int(self.now)
            unseen = [job for job in self.array[i + naive.WINDOW :] if job.submit <= now]
            if i >= naive.FIRST and unseen:
                longer += 1
                better += min(key(job, now) for job in unseen) < key(self.array[i], now)

    Asked(jobs, 4, name if name == "SPF" else key, False).run()
    assert longer > 20
    assert better > 5
    assert result == pytest.approx((100 * longer / (n - 16), 100 * better / (n - 16)))


def test_the_page_has_the_numbers_of_the_script(root: Path) -> None:
    page = (root / "docs" / "papers.md").read_text(encoding="utf-8")
    written = {
        (row["mode"], row["log"], row["policy"]): row for row in rows(root / "docs" / "data" / "sc17-window.csv")
    }
    logs = ("sdsc-blue", "curie", "lublin-256", "lublin-1024")
    result = re.findall(r"^\| (WFP3|UNICEF|SPF|F\d) ((?:\| \d+/\d+ ){4})\|$", page, re.MULTILINE)
    assert len(result) == 7
    for policy, cells in result:
        wanted = [
            "/".join(
                f"{float(written[mode, log, policy]['unseen_first_percent']):.0f}" for mode in ("actual", "estimates")
            )
            for log in logs
        ]
        assert cells.replace("|", " ").split() == wanted
    pairs = {(row["mode"], row["log"], row["way"]): row for row in rows(root / "docs" / "data" / "sc17-pairs.csv")}
    counts = [
        ", ".join(pairs[mode, log, way][key] for key in ("better", "no_difference", "worse"))
        for mode in ("actual", "backfilling")
        for log in logs
        for way in ("window", "whole queue", "clean")
    ]
    shown = re.findall(r"\| (\d+, \d+, \d+) (?=\|)", page.partition("## What the window")[0])
    assert shown[:12] + shown[15:] == counts
    assert shown[12:15] == ["16, 0, 0"] * 3
    assert {row["better"] for (mode, *_), row in pairs.items() if mode == "estimates"} == {"16"}
    seeds = rows(root / "docs" / "data" / "sc17-seeds.csv")
    # The value of FCFS without backfilling does not depend on requests; it is printed with two decimals.
    outside = [
        row["policy"]
        for row in seeds
        if not float(row["least"]) - 0.005 <= float(row["published"]) <= float(row["largest"]) + 0.005
    ]
    assert outside == ["WFP3", "F3"]
