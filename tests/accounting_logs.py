"""Small accounting logs for tests: lines of sacct with what a test is about, all else ordinary."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from importlib.resources import files
from pathlib import Path

from policyfactory.workload.accounting.importing import Imported, Zone, import_logs
from policyfactory.workload.accounting.options import ImportRules, Labels
from policyfactory.workload.accounting.record import NAMES, NUMBERS, LimitKind, Record, RecordBlock, Remark, State
from policyfactory.workload.accounting.sacct import read
from policyfactory.workload.accounting.sacct_columns import RECOMMENDED
from policyfactory.workload.accounting.table import ImportStep
from policyfactory.workload.accounting.times import Clock

COLUMNS = RECOMMENDED.rpartition(" ")[2].split(",")
UTC = Zone(dt.UTC, "UTC", "named by the test")
T0 = 1_700_000_000
REMARKS = tomllib.loads(files("policyfactory.workload.accounting").joinpath("remarks.toml").read_text("utf-8"))

Cells = dict[str, object]


def job(number: object, submit: int = 0, start: int | None = None, run: int = 100, **changes: object) -> Cells:
    """Give one line: submitted at T0 + ``submit``, begun at T0 + ``start``, ended ``run`` seconds later."""
    begun = T0 + (submit if start is None else start)
    cells: Cells = {
        "JobIDRaw": number, "JobID": number, "UID": 1000, "User": "ada", "GID": 100, "Account": "physics",
        "Partition": "batch",
        "QOS": "normal", "State": "COMPLETED", "Submit": T0 + submit, "Eligible": T0 + submit, "Start": begun,
        "End": begun + run, "ElapsedRaw": run, "TimelimitRaw": 60, "ReqCPUS": 4, "AllocCPUS": 4, "ReqNodes": 1,
        "NNodes": 1, "AllocNodes": 1, "ReqTRES": "billing=4,cpu=4,mem=1000M,node=1", "Suspended": "00:00:00",
        "Flags": "SchedMain,StartRecieved",
    }  # fmt: skip
    return cells | changes


def waiting(number: object, submit: int = 0, **changes: object) -> Cells:
    """Give the line of a job that waits."""
    cells = job(number, submit, State="PENDING", Start="Unknown", End="Unknown", ElapsedRaw=0, AllocNodes=0)
    return cells | changes


def sacct_text(*jobs: Cells, columns: list[str] | None = None, delimiter: str = "|") -> str:
    """Give what ``sacct -P`` prints."""
    names = columns or COLUMNS
    lines = [delimiter.join(names), *(delimiter.join(str(cells[name]) for name in names) for cells in jobs)]
    return "\n".join(lines) + "\n"


def records_of(block: RecordBlock) -> list[Record]:
    """Give the records of a block one by one."""
    records = []
    for row, job_id in enumerate(block.job):
        numbers = block.numbers[:, row].tolist()
        values = {name: None if number < 0 else number for name, number in zip(NUMBERS, numbers, strict=True)}
        values |= {name: texts[codes[row]] for name, (codes, texts) in zip(NAMES, block.names, strict=True)}
        values |= {"state": State(values["state"]), "limit_kind": LimitKind(values["limit_kind"])}
        records.append(Record(job=job_id, group_id=block.groups.get(row), **values))
    return records


def read_lines(text: str, zone: dt.tzinfo = dt.UTC) -> tuple[list[Record], list[Remark]]:
    """Give the records of a text, and the remarks on its lines."""
    items = list(read([text.splitlines()], "log", Clock(zone)))
    records = [record for item in items if isinstance(item, RecordBlock) for record in records_of(item)]
    return records, [item for item in items if isinstance(item, Remark)]


def imported(folder: Path, *jobs: Cells, labels: Labels | None = None, **rules: object) -> Imported:
    """Give the import of these lines."""
    path = folder / "log.txt"
    path.write_text(sacct_text(*jobs))
    return import_logs([path], rules=ImportRules(**rules), labels=labels, zone=UTC)


def _name(step: ImportStep) -> str:
    """Give the first name in remarks.toml of what is counted, or its text where a mapping made it up."""
    for section, remarks in REMARKS.items():
        for name, (action, what, *_) in remarks.items():
            if action == step.action and re.fullmatch(".*".join(map(re.escape, what.split("{column}"))), step.what):
                return f"{section}.{name}"
    return step.what


def counts(done: Imported) -> dict[str, int]:
    """Give what the report counts, by the names in remarks.toml."""
    return {_name(step): step.count for step in done.report.steps}


def column(done: Imported, *names: str) -> list[tuple[int, ...]]:
    """Give some fields of each job of the new log."""
    return list(zip(*(getattr(done.log, name).tolist() for name in names), strict=True))
