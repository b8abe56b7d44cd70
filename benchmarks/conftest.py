"""Before each benchmark: how fast is the machine? At the end of a session: one table, and what became worse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import results
import yardstick

import floors

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _machine(request: pytest.FixtureRequest) -> None:
    """Measure the yardstick, where somebody measures."""
    if request.config.getoption("--benchmark-enable"):
        floors.set_yardstick(yardstick.measure())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the measures of this session and print their table."""
    if not floors.MEASURES:
        return
    folder = ROOT / "build" / ("bench-small" if os.environ.get("POLICYFACTORY_BENCH_SMALL") == "1" else "bench")
    kept = results.add(folder, floors.MEASURES, floors.CURVES)
    terminalreporter.section("measures")
    for line in results.table(kept.measures):
        terminalreporter.write_line(line)
    terminalreporter.section("against docs/data/performance.csv")
    for line in results.compared(floors.MEASURES, ROOT / "docs" / "data" / "performance.csv"):
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"written to build/{folder.name}; benchmarks/page.py takes build/bench into docs")
