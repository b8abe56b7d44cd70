"""What became of mutants: keep it, join what several runs have kept, and count it per module for the docs.

The joined table is a file of comma-separated values: of each module the mutants there are, those that were run, killed
(a test failed), without an end, and survived with and without an explanation.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.operators import Mutant

__all__ = [
    "BEGIN",
    "END",
    "KILLED",
    "OUT_OF_TIME",
    "SURVIVED",
    "Key",
    "Result",
    "count_fates",
    "join_records",
    "page_table",
    "put_table",
    "read_table",
    "write_records",
    "write_table",
]

Key = tuple[str, str, str, str]

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


def write_records(path: Path, results: list[Result]) -> None:
    """Keep results, one on a line."""
    lines = []
    for result in results:
        mutant = result.mutant
        record = {
            "module": mutant.module, "line": mutant.line, "function": mutant.function, "operator": mutant.operator,
            "before": mutant.before, "after": mutant.after, "fate": result.fate, "by": result.by,
            "seconds": round(result.seconds, 2),
        }  # fmt: skip
        lines.append(json.dumps(record) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def join_records(paths: Iterable[Path]) -> dict[Key, list[str]]:
    """Return the fates of files of results; of a change that several files have, those of the last file.

    A change can be there several times: the same statement twice in one function.
    """
    joined: dict[Key, list[str]] = {}
    for path in paths:
        of_file: dict[Key, list[str]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            of_file.setdefault((row["module"], row["function"], row["before"], row["after"]), []).append(row["fate"])
        joined |= of_file
    return joined


def count_fates(
    actual: Mapping[str, Sequence[Mutant]], fates: Mapping[Key, list[str]], reasons: Mapping[Key, str]
) -> dict[str, Counter[str]]:
    """Return the row of each module: the columns of the table. What is no longer a mutant of the source is left out."""
    rows = {}
    for module, all_ in actual.items():
        row = rows[module] = Counter(mutants=len(all_))
        left = {key: list(of_key) for key, of_key in fates.items() if key[0] == module}
        for mutant in all_:
            if not left.get(mutant.key):
                continue
            fate = left[mutant.key].pop()
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
    """Return the table as it stands in the docs: the modules by top folder, the sums of folders, the whole."""
    title = (
        "| module | mutants | run | killed | of these did not end | explained | unexplained | killed, % of those run "
        "| killed, % without the explained |"
    )
    lines = [title, "|---|---|---|---|---|---|---|---|---|"]
    folders = {"engine": "engine", "trials": "scores", "fit": "fits"}
    for folder, sum_of in folders.items():
        of_folder = {name: row for name, row in rows.items() if name.split("/")[1] == folder}
        lines += [_line(f"`{name.split('/', 1)[1].removesuffix('.py')}`", row) for name, row in of_folder.items()]
        lines.append(_line(f"**{sum_of}**", sum(of_folder.values(), Counter())))
    lines.append(_line("**all**", sum(rows.values(), Counter())))
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
