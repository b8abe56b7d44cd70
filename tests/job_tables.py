"""Small tables of jobs for tests, each with the columns that its data set publishes."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policyfactory.workload.accounting.importing import Imported
from policyfactory.workload.accounting.options import ImportRules
from policyfactory.workload.tables.mapping import parse_mapping, stock_mapping
from policyfactory.workload.tables.reader import import_tables

# 2024-03-05 12:00:00 UTC, a Tuesday.
T0 = 1_709_640_000
MINUTE = 60

# A mapping of one's own with the fewest words.
OWN = """
schema = 1
[table]
form = "csv"
[columns]
job = "id"
submit = "submitted"
start = "began"
end = "ended"
limit = { column = "limit", unit = "s" }
requested = "cores"
allocated = "cores"
"""


def moment(seconds: int, zone: dt.tzinfo | None = dt.UTC) -> dt.datetime:
    """Give the time ``seconds`` after T0."""
    return dt.datetime.fromtimestamp(T0 + seconds, zone)


def write_csv(path: Path, names: Sequence[str], rows: Sequence[Sequence[object]], delimiter: str = ",") -> Path:
    """Write a table in text."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows([names, *rows])
    return path


def write_lines(path: Path, names: str, lines: Sequence[str]) -> Path:
    """Write a table in text, as it is."""
    path.write_text("\n".join([names, *lines]) + "\n", encoding="utf-8")
    return path


def write_parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    """Write a table in Parquet; values are Arrow arrays or lists."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, **options)
    return path


def own(text: str = OWN, name: str = "mine.toml") -> Any:
    """Give a mapping of one's own."""
    return parse_mapping(text.encode(), name, name.removesuffix(".toml"))


def imported(
    name: str, *paths: Path, without_limits: bool = False, processors: int | None = None, **rules: Any
) -> Imported:
    """Give the import of tables of a published data set."""
    mapping = stock_mapping(name)
    asked = ImportRules(**{"unit": mapping.unit, **rules})
    return import_tables(paths, mapping, rules=asked, processors=processors, without_limits=without_limits)
