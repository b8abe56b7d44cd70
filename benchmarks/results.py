"""The measures of a session as files: build/bench/performance.json, .csv and .md; and beside those of another run."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from floors import Curve, Measure
from policyfactory.core.files import Manifest, atomic_write, command_line, dump_json

__all__ = ["Results", "add", "compared", "csv_text", "load", "machine", "markdown", "number", "read_csv", "table"]

COLUMNS = ("group", "what", "value", "unit", "floor", "ceiling", "ratio", "to", "yardstick")
# A measure that is worse by more than this share is named. Two runs on one busy machine differ by as much.
NOISE = {"s": 0.5, "MB": 0.1, "default": 0.25}


@dataclasses.dataclass(frozen=True, slots=True)
class Results:
    """What was measured on one machine, with what it was made by."""

    manifest: dict[str, Any]
    measures: tuple[Measure, ...]
    curves: tuple[Curve, ...]


def machine() -> dict[str, Any]:
    """Return what is known of this machine, without its name."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    system = f"{platform.system()} {platform.machine()}"
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30),
        "system": system,
    }


def add(folder: Path, measures: Sequence[Measure], curves: Sequence[Curve]) -> Results:
    """Write the measures of a session; what it did not measure stays, if it is of the same machine and versions."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "performance.json"
    loads = [round(load, 2) for load in os.getloadavg()]
    manifest = Manifest("performance", command_line(), None, parameters=machine(), measured={"load": loads}).as_dict()
    before = load(path) if path.exists() else None
    rows: dict[Any, Measure] = {}
    lines: dict[Any, Curve] = {}
    if before is not None and all(before.manifest[name] == manifest[name] for name in ("parameters", "versions")):
        rows |= {measure.key: measure for measure in before.measures}
        lines |= {(curve.figure, curve.name): curve for curve in before.curves}
    rows |= {measure.key: measure for measure in measures}
    lines |= {(curve.figure, curve.name): curve for curve in curves}
    # Groups stay together, also those of several sessions.
    groups = list(dict.fromkeys(measure.group for measure in rows.values()))
    kept = Results(manifest, tuple(sorted(rows.values(), key=lambda row: groups.index(row.group))), (*lines.values(),))
    content = {
        "manifest": manifest,
        "measures": [dataclasses.asdict(measure) for measure in kept.measures],
        "curves": [dataclasses.asdict(curve) for curve in kept.curves],
    }
    atomic_write(path, dump_json(content))
    atomic_write(folder / "performance.csv", csv_text(kept.measures))
    atomic_write(folder / "performance.md", "\n".join(markdown(kept.measures)) + "\n")
    return kept


def load(path: Path) -> Results:
    """Return what `add` wrote."""
    import json

    content = json.loads(path.read_text(encoding="utf-8"))
    curves = [Curve(**{**curve, "points": tuple((x, y) for x, y in curve["points"])}) for curve in content["curves"]]
    return Results(content["manifest"], tuple(Measure(**row) for row in content["measures"]), tuple(curves))


def csv_text(measures: Iterable[Measure]) -> str:
    """Return measures as CSV, numbers with four digits."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for measure in measures:
        cells = (getattr(measure, name) for name in COLUMNS)
        out.writerow(["" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else cell for cell in cells])
    return text.getvalue()


def read_csv(path: Path) -> list[Measure]:
    """Return what `csv_text` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    optional = ("floor", "ceiling", "ratio")
    return [
        Measure(
            **{name: row[name] for name in ("group", "what", "unit", "to")},
            value=float(row["value"]),
            yardstick=float(row["yardstick"]),
            **{name: float(row[name]) if row[name] else None for name in optional},
        )
        for row in rows
    ]


def number(value: float | None) -> str:
    """Return three digits, without an exponent where it can be read without."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _cells(measure: Measure) -> tuple[str, ...]:
    bound = "" if measure.floor is None else f"≥ {measure.floor:g}"
    bound = bound if measure.ceiling is None else f"≤ {measure.ceiling:g}"
    beside = "" if measure.ratio is None else f"{number(measure.ratio)} × {measure.to}"
    return measure.what, number(measure.value), measure.unit, bound + (" MISSED" if measure.missed else ""), beside


def table(measures: Iterable[Measure]) -> Iterator[str]:
    """Give the lines of the table for a terminal."""
    rows = [(measure.group, _cells(measure)) for measure in measures]
    widths = [max(len(cells[column]) for _, cells in rows) for column in range(4)]
    group = ""
    for own, cells in rows:
        if own != group:
            yield f"{own}:"
            group = own
        what, value, unit, bound, beside = cells
        line = f"  {what:<{widths[0]}}  {value:>{widths[1]}} {unit:<{widths[2]}}  {bound:<{widths[3]}}  {beside}"
        yield line.rstrip()


def markdown(measures: Iterable[Measure]) -> Iterator[str]:
    """Give the lines of the table for a page."""
    group = ""
    yield "| measure | value | unit | promised | times as good as |"
    yield "|---|---:|---|---|---|"
    for measure in measures:
        if measure.group != group:
            group = measure.group
            yield f"| **{group}** | | | | |"
        yield f"| {' | '.join(_cells(measure))} |"


def compared(measures: Sequence[Measure], path: Path) -> Iterator[str]:
    """Give a line for each measure that is worse than in ``path`` by more than the noise."""
    if not path.exists():
        yield "nothing to compare with"
        return
    before = {measure.key: measure for measure in read_csv(path)}
    # Slopes are beside theory, not better or worse; an error of theirs is part of the unit.
    known = [row for row in measures if row.key in before and not row.unit.startswith("slope")]
    worse = 0
    for measure in known:
        old = before[measure.key].tracked
        noise = NOISE.get(measure.unit, NOISE["default"])
        if old > 0 and measure.tracked < old * (1 - noise):
            worse += 1
            yield f"WORSE  {measure.group}: {measure.what}: {measure.tracked / old:.2f} times as good as it was"
    noise = ", ".join(f"{share:.0%} ({unit})" for unit, share in NOISE.items())
    yield f"{worse} of {len(known)} measures are worse by more than the noise: {noise}. Speeds are in yardsticks."
