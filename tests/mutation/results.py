"""What became of mutants: keep it, join what several runs have kept, and count it per module for the docs.

The joined table is a file of comma-separated values: of each module the mutants there are, those that were run, killed
(a test failed), without an end, and survived with and without an explanation.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mutation.operators import Mutant

__all__ = [
    "BEGIN",
    "END",
    "KILLED",
    "OUT_OF_TIME",
    "SURVIVED",
    "Identity",
    "Key",
    "Result",
    "append_record",
    "count_fates",
    "page_table",
    "put_table",
    "read_records",
    "read_table",
    "write_table",
]

Key = tuple[str, str, str, str]
Identity = tuple[str, str, str, str, int]
PARTS = ("module", "function", "before", "after", "nth")

SURVIVED, KILLED, OUT_OF_TIME = "survived", "killed", "out of time"
COLUMNS = ("module", "mutants", "run", "killed", "without_end", "explained", "unexplained")
BEGIN, END = "<!-- mutants: written by python -m mutation -->", "<!-- end of mutants -->"


@dataclass(frozen=True)
class Result:
    """What became of a mutant: ``killed``, ``out of time`` or ``survived``; the test that killed it."""

    mutant: Mutant
    fate: str
    by: str
    seconds: float


def append_record(path: Path, result: Result) -> None:
    """Add a result to a file, on a line of its own whatever a kill has left at the end of the file."""
    record = {
        **dict(zip(PARTS, result.mutant.identity, strict=True)),
        "line": result.mutant.line, "operator": result.mutant.operator,
        "fate": result.fate, "by": result.by, "seconds": round(result.seconds, 2),
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            torn = file.read(1) != b"\n"
            file.write(b"\n" * torn)
        file.write(json.dumps(record).encode() + b"\n")


def read_records(paths: Iterable[Path]) -> dict[Identity, str]:
    """Return the fates in files of results; of several for one mutant the last. What a kill cut off is skipped."""
    fates: dict[Identity, str] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                row = json.loads(line)
                fates[tuple(row[part] for part in PARTS)] = row["fate"]
    return fates


def count_fates(
    actual: Mapping[Identity, Mutant], fates: Mapping[Identity, str], reasons: Mapping[Key, str]
) -> dict[str, Counter[str]]:
    """Return the row of each module: the columns of the table. What is no longer a mutant of the source is left out."""
    rows: dict[str, Counter[str]] = {}
    for identity, mutant in actual.items():
        row = rows.setdefault(mutant.module, Counter())
        row["mutants"] += 1
        fate = fates.get(identity)
        if fate is None:
            continue
        row["run"] += 1
        if fate == SURVIVED:
            row["explained" if mutant.key in reasons else "unexplained"] += 1
        else:
            row["killed" if fate == KILLED else "without_end"] += 1
    return rows


def write_table(path: Path, rows: Mapping[str, Counter[str]]) -> None:
    """Write the rows as comma-separated values."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([module, *(row[column] for column in COLUMNS[1:])] for module, row in rows.items())


def read_table(path: Path) -> dict[str, Counter[str]]:
    """Return the rows of such a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["module"]: Counter({name: int(row[name]) for name in COLUMNS[1:]}) for row in csv.DictReader(file)}


def page_table(rows: Mapping[str, Counter[str]]) -> str:
    """Return the table as it stands in the docs: the sums of folders, the whole."""
    title = (
        "| part | mutants | run | killed | of these did not end | explained | unexplained | killed, % of those run "
        "| killed, % without the explained |"
    )
    lines = [title, "|---|---|---|---|---|---|---|---|---|"]
    folders = {"engine": "engine", "trials": "scores", "fitting": "fits"}
    for folder, sum_of in folders.items():
        of_folder = [row for name, row in rows.items() if name.split("/")[1] == folder]
        lines.append(_line(sum_of, sum(of_folder, Counter())))
    lines.append(_line("all", sum(rows.values(), Counter())))
    return "\n".join(lines) + "\n"


def _line(title: str, row: Counter[str]) -> str:
    dead, run = row["killed"] + row["without_end"], row["run"]
    numbers = [row["mutants"], run, dead, row["without_end"], row["explained"], row["unexplained"]]
    shares = [_percent(dead, run), _percent(dead, run - row["explained"])]
    return f"| {title} | " + " | ".join([*(f"{number:,}" for number in numbers), *shares]) + " |"


def _percent(part: int, whole: int) -> str:
    # Downwards, so that 100.0 says all and 90.0 at least that.
    return f"{1000 * part // whole / 10:.1f}" if whole else "-"


def put_table(page: str, rows: Mapping[str, Counter[str]]) -> str:
    """Return a page with the table between its two marks renewed."""
    before, after = page.split(BEGIN, 1)[0], page.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{page_table(rows)}\n{END}{after}"
