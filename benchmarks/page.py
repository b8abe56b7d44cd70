"""Take the measures of ``make bench`` over into docs/: the data, the curves as pictures, the tables of performance.md.

``make bench && python benchmarks/page.py`` takes some twenty minutes, this script some seconds of it. Numbers in
docs/performance.md stand between two marks and are written here, so that they are those of docs/data.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from results import Results, csv_text, load, number

from floors import Curve, Measure, slope_of
from policyfactory.core.files import atomic_write, dump_json
from policyfactory.core.picture import COLOURS, new_figure, save_picture

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "build" / "bench" / "performance.json"
TITLES = {
    "generate": "Trials",
    "queue": "The queue of a trial",
    "machine": "The machine",
    "jobs": "Jobs of a log",
    "memory": "Memory",
}


def main(arguments: list[str] | None = None) -> None:
    """Write data, pictures and tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bench", type=Path, default=BENCH, help="what make bench wrote")
    parser.add_argument("--output", type=Path, default=ROOT / "docs")
    given = parser.parse_args(arguments)
    data, pictures, page = given.output / "data", given.output / "img", given.output / "performance.md"
    pictures.mkdir(parents=True, exist_ok=True)
    data.mkdir(parents=True, exist_ok=True)
    if given.bench.exists():
        result = load(given.bench)
        atomic_write(data / "performance.csv", csv_text(result.measures))
        atomic_write(data / "performance-curves.csv", curves_csv(result.curves))
        atomic_write(data / "performance.manifest.json", dump_json(result.manifest))
        for figure in dict.fromkeys(curve.figure for curve in result.curves):
            draw(figure, [curve for curve in result.curves if curve.figure == figure], pictures)
        replace(page, {"machine": lambda: of_machine(result), "table": lambda: groups(result.measures)})
        replace(page, {"slopes": lambda: slopes(result.curves)})
    peers = data / "performance-peers.csv"
    if peers.exists():
        replace(page, {"peers": lambda: of_peers(peers)})


def replace(page: Path, parts: dict[str, Callable[[], Iterable[str]]]) -> None:
    """Write the parts of the page that stand between marks."""
    text = page.read_text(encoding="utf-8")
    for name, lines in parts.items():
        begin, end = f"<!-- {name}: written by benchmarks/page.py -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise SystemExit(f"{page}: no marks {begin!r} and {end!r}")
        new = "\n".join([begin, "", *lines(), "", end])
        text = re.sub(re.escape(begin) + r".*?" + re.escape(end), lambda _, new=new: new, text, flags=re.DOTALL)
    atomic_write(page, text)


def of_machine(result: Results) -> Iterable[str]:
    """Give one paragraph: where and with what the numbers were measured."""
    where, versions = result.manifest["parameters"], result.manifest["versions"]
    loads = result.manifest["measured"]["load"]
    names = ("policyfactory", "python", "numpy", "numba", "scipy", "pandas")
    yield (
        f"Measured on {where['system']}, {where['processor']}, {where['cores']} cores, {where['memory_gib']} GiB; "
        f"{', '.join(f'{name} {versions[name]}' for name in names if name in versions)}. Processes that wanted to run "
        f"at the end, on average over 1, 5 and 15 minutes: {', '.join(f'{load:g}' for load in loads)}."
    )
    yardsticks = sorted(measure.yardstick for measure in result.measures if measure.yardstick)
    if yardsticks:
        middle = yardsticks[len(yardsticks) // 2]
        yield (
            f"The yardstick (plain C, before each measure) ran at {number(middle)} million trials a CPU second in "
            f"the median, from {number(yardsticks[0])} to {number(yardsticks[-1])}: so much did the machine vary."
        )
    missed = [measure for measure in result.measures if measure.missed]
    names = "; ".join(f"{measure.group}: {measure.what}" for measure in missed)
    yield f"{len(result.measures)} measures; {len(missed)} miss what is promised{f' ({names})' if names else ''}."


def groups(measures: Iterable[Measure]) -> Iterable[str]:
    """Give a table with a row a group and unit: the worst and the best of its measures, and what is promised."""
    rows: dict[tuple[str, str], list[Measure]] = {}
    for measure in measures:
        # Slopes have a table of their own.
        if not measure.unit.startswith("slope"):
            rows.setdefault((measure.group, measure.unit), []).append(measure)
    yield "| group | from | to | unit | promised |"
    yield "|---|---:|---:|---|---|"
    for (group, unit), own in rows.items():
        floors = [measure.floor for measure in own if measure.floor is not None]
        ceilings = [measure.ceiling for measure in own if measure.ceiling is not None]
        promised = [f"{sign} {span(bounds)}" for sign, bounds in (("≥", floors), ("≤", ceilings)) if bounds]
        least, most = (number(end(measure.value for measure in own)) for end in (min, max))
        yield f"| {group} | {least} | {most} | {unit} | {', '.join(promised)} |"


def span(values: list[float]) -> str:
    """Return the least and the largest of some bounds; one number where all are the same."""
    ends = dict.fromkeys(number(value) for value in (min(values), max(values)))
    return " to ".join(ends)


def slopes(curves: Iterable[Curve]) -> Iterable[str]:
    """Give a table of slopes beside theory."""
    yield "| what | sizes | slope | theory |"
    yield "|---|---|---:|---:|"
    for curve in curves:
        slope, error = slope_of(curve)
        sizes = [x for x, _ in curve.points if x >= curve.begin]
        theory = "" if curve.theory is None else f"{curve.theory:g}"
        span = f"{number(sizes[0])} to {number(sizes[-1])} {curve.by}"
        yield f"| {curve.name} | {span} | {slope:.2f} ± {error:.2f} | {theory} |"


def of_peers(path: Path) -> Iterable[str]:
    """Give the table of the comparison side by side."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    yield "| log | program | simulation, CPU s | process, CPU s | peak, MB | jobs/CPU s | other starts | mean wait, s |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        rate, other = number(float(row["jobs_per_cpu_s"])), int(row["other_starts"])
        cells = (
            f"{row['log']} ({int(row['jobs']):,} jobs)", row["program"], row["simulation_cpu_s"], row["process_cpu_s"],
            row["peak_mb"], rate, f"{other:,}", row["mean_wait_s"],
        )  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def curves_csv(curves: Iterable[Curve]) -> str:
    """Return all points as CSV."""
    lines = ["figure,name,by,unit,x,y"]
    for curve in curves:
        name, by = f'"{curve.name}"', f'"{curve.by}"'
        lines += [f"{curve.figure},{name},{by},{curve.unit},{x:g},{y:.4g}" for x, y in curve.points]
    return "\n".join(lines) + "\n"


def draw(figure: str, curves: list[Curve], pictures: Path) -> None:
    """Draw the curves of one picture, a dashed line of theory's slope through the last point of each."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    canvas = new_figure(9.0, 4.2)
    axis: Any = canvas.subplots()
    for colour, curve in zip(COLOURS, curves, strict=False):
        x, y = zip(*curve.points, strict=True)
        axis.plot(x, y, "o-", color=colour, label=f"{curve.name}: {slope_of(curve)[0]:.2f}", markersize=4)
        if curve.theory is not None:
            line = [y[-1] * (size / x[-1]) ** curve.theory for size in x]
            axis.plot(x, line, "--", color=colour, linewidth=0.8, alpha=0.6)
    axis.set(xscale="log", yscale="log", title=TITLES.get(figure, figure))
    axis.set_xlabel(" or ".join(dict.fromkeys(curve.by for curve in curves)))
    axis.set_ylabel(" or ".join(dict.fromkeys(curve.unit for curve in curves)))
    for side, values in (
        (axis.xaxis, [x for curve in curves for x, _ in curve.points]),
        (axis.yaxis, [y for curve in curves for _, y in curve.points]),
    ):
        # Numbers as text, as save_picture has no mathematics; a short axis has more of them than powers of ten.
        side.set_major_locator(LogLocator(subs=(1, 2, 5) if max(values) < 40 * min(values) else (1,)))
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
        side.set_minor_formatter(FuncFormatter(lambda *_: ""))
    axis.legend(
        fontsize=8, title="slope; dashed: theory", title_fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5)
    )
    save_picture(canvas, pictures / f"performance-{figure}.png", dpi=110)


if __name__ == "__main__":
    main()
