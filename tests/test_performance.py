"""Speed is tracked: what became worse is named, and not what only the machine made slower."""

from __future__ import annotations

from pathlib import Path

import pytest
import results

import floors
from floors import Curve, Measure, slope_of

# A test of the tools of benchmarks: for the night.
pytestmark = pytest.mark.slow


def speed(value: float, yardstick: float) -> Measure:
    return Measure("g", "speed", value, "M jobs/CPU s", yardstick=yardstick)


def time(value: float, yardstick: float) -> Measure:
    return Measure("g", "time", value, "CPU s", yardstick=yardstick)


def lines(measures: list[Measure], before: list[Measure], folder: Path) -> list[str]:
    path = folder / "before.csv"
    path.write_text(results.csv_text(before), encoding="utf-8")
    return [line for line in results.compared(measures, path) if line.startswith("WORSE")]


@pytest.mark.parametrize(
    ("unit", "old", "new", "named"),
    [
        ("M jobs/CPU s", 4.0, 3.2, False),
        ("M jobs/CPU s", 4.0, 2.9, True),
        ("M jobs/CPU s", 4.0, 8.0, False),
        ("CPU s", 1.0, 1.3, False),
        ("CPU s", 1.0, 1.4, True),
        ("CPU s", 1.0, 0.1, False),
        ("MB", 100.0, 108.0, False),
        ("MB", 100.0, 115.0, True),
    ],
)
def test_what_is_worse_by_more_than_the_noise_is_named(
    tmp_path: Path, unit: str, old: float, new: float, named: bool
) -> None:
    result = lines(
        [Measure("g", "w", new, unit, yardstick=2.0)], [Measure("g", "w", old, unit, yardstick=2.0)], tmp_path
    )
    assert bool(result) == named


def test_a_slower_machine_is_no_worse_program(tmp_path: Path) -> None:
    before = [
        Measure("g", "speed", 4.0, "M jobs/CPU s", yardstick=2.0),
        Measure("g", "time", 1.0, "CPU s", yardstick=2.0),
    ]
    after = [
        Measure("g", "speed", 1.0, "M jobs/CPU s", yardstick=0.5),
        Measure("g", "time", 4.0, "CPU s", yardstick=0.5),
    ]
    assert lines(after, before, tmp_path) == []


def test_a_ratio_of_one_run_counts_more_than_the_yardstick(tmp_path: Path) -> None:
    before = [Measure("g", "w", 4.0, "MB/CPU s", ratio=5.0, to="pandas", yardstick=2.0)]
    worse = [Measure("g", "w", 4.0, "MB/CPU s", ratio=3.0, to="pandas", yardstick=2.0)]
    assert lines(worse, before, tmp_path) == ["WORSE  g: w: 0.60 times as good as it was"]


def test_a_session_is_added_to_what_is_there(tmp_path: Path) -> None:
    curve = Curve("f", "n", "jobs", "CPU s", ((10.0, 1.0), (100.0, 10.0), (1000.0, 100.0)), 1.0, "why")
    results.add(tmp_path, [Measure("a", "x", 1.0, "MB"), Measure("b", "y", 2.0, "MB")], [curve])
    kept = results.add(tmp_path, [Measure("a", "z", 3.0, "MB"), Measure("b", "y", 4.0, "MB", ceiling=3.0)], [])
    assert [(row.what, row.value) for row in kept.measures] == [("x", 1.0), ("z", 3.0), ("y", 4.0)]
    assert results.load(tmp_path / "performance.json").curves == (curve,)
    assert [line for line in results.markdown(kept.measures) if "MISSED" in line] == ["| y | 4 | MB | ≤ 3 MISSED |  |"]
    assert results.read_csv(tmp_path / "performance.csv") == list(kept.measures)


def test_the_slope_is_that_of_the_points_from_its_beginning() -> None:
    points = ((1.0, 50.0), (10.0, 50.0), (100.0, 300.0), (1000.0, 9000.0), (10_000.0, 270_000.0))
    slope, error = slope_of(Curve("f", "n", "x", "s", points, None, "", begin=100))
    assert slope == pytest.approx(1.4771, abs=1e-4)
    assert error == pytest.approx(0, abs=1e-9)


def test_a_missed_floor_fails_where_somebody_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floors, "MEASURES", [])
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(AssertionError, match=r"^jobs is 1 M jobs/CPU s \(at least 2\) as promised"):
        floors.record("g", "jobs", 1.0, "M jobs/CPU s", floor=2.0)
    monkeypatch.setenv("CI", "true")
    floors.record("g", "jobs", 1.0, "M jobs/CPU s", floor=2.0)
    assert [row.missed for row in floors.MEASURES] == [True, True]
