"""The output of sacct -P read line by line and cell by cell: the twin of policyfactory.workload.accounting.sacct."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator

from policyfactory.workload.accounting.record import Record, Remark, State
from policyfactory.workload.accounting.sacct_columns import Columns
from policyfactory.workload.accounting.slurm import (
    HET_ID,
    array_tasks,
    mark_asked,
    one_cluster,
    read_limit,
    state_of,
    tres,
    tres_gpus,
    tres_memory,
)
from policyfactory.workload.accounting.times import Clock, duration, settle


def read(lines: Iterable[str], zone: dt.tzinfo) -> Iterator[Record | Remark]:
    """Give the records of lines without their ends, and the remarks on them."""
    numbered = enumerate(lines, start=1)
    number, header = next(((number, line) for number, line in numbered if line.strip()), (1, ""))
    log = _Log(Clock(zone), Columns(header, f"log:{number}"), header)
    for number, line in numbered:
        yield from log.line(number, line)
    if log.zoneless:
        yield Remark(*log.first_zoneless, "sacct.zoneless", log.zoneless)


class _Log:
    def __init__(self, clock: Clock, columns: Columns, header: str) -> None:
        self.clock = clock
        self.columns = columns
        self.first_name = header.partition(columns.delimiter)[0]
        self.cluster = ""
        self.zoneless = 0
        self.first_zoneless = (0, "")

    def values(self, fields: list[str]) -> dict[str, str]:
        places = self.columns.place
        names = (
            "id", "state", "submit", "eligible", "start", "end", "elapsed_raw", "elapsed", "limit_raw", "limit",
            "requested", "allocated", "requested_nodes", "allocated_nodes", "allocated_tres", "requested_tres", "user",
            "group", "account", "partition", "qos", "suspended", "submit_line", "cluster",
            "user_name",
        )  # fmt: skip
        return {name: fields[places[name]] if name in places else "" for name in names}

    def line(self, number: int, line: str) -> Iterator[Record | Remark]:
        columns = self.columns
        fields = line.split(columns.delimiter)
        if columns.closed and fields[-1] == "":
            fields.pop()
        if len(fields) > 1 and fields[0] == self.first_name:
            self.columns = Columns(line, f"log:{number}")
        elif len(fields) == columns.width:
            yield from self.plain(number, self.values(fields))
        elif line.strip():
            yield from self.odd(number, fields)

    def plain(self, number: int, values: dict[str, str]) -> Iterator[Record | Remark]:
        if "." in values["id"]:
            yield Remark(number, values["id"], "sacct.steps")
            return
        self.cluster = one_cluster(values["cluster"], self.cluster, f"log:{number}")
        try:
            record, how = self.record(values, number)
        except ValueError:
            yield Remark(number, values["id"], "sacct.unreadable")
            return
        if how:
            yield Remark(number, record.job, f"sacct.{how}")
        self.count(values, record)
        yield record

    def count(self, values: dict[str, str], record: Record) -> None:
        if len(values["submit"]) == 19:
            self.first_zoneless = self.first_zoneless if self.zoneless else (record.line, record.job)
            self.zoneless += 1

    def record(self, values: dict[str, str], line: int) -> tuple[Record, str]:
        ran = int(values["elapsed_raw"]) if values["elapsed_raw"] else duration(values["elapsed"])
        rested = suspended(values["suspended"])
        times = [self.clock.read(values[name]) for name in ("submit", "start", "end")]
        submit, start, end = (time[0] if time else None for time in times)
        how = ""
        if any(len(time) == 2 for time in times):
            (submit, start, end), how = settle(times, None if ran is None or ran < 0 else ran + (rested or 0))
        eligible = self.clock.read(values["eligible"])
        limit, kind = read_limit(values["limit_raw"], values["limit"])
        record = Record(
            line, values["id"], submit, eligible[0] if eligible else None, start, end, ran, rested, limit, kind,
            either(values["requested"], values["requested_tres"], "cpu"),
            either(values["allocated"], values["allocated_tres"], "cpu"),
            either(values["requested_nodes"], values["requested_tres"], "node"),
            either(values["allocated_nodes"], values["allocated_tres"], "node"),
            state_of(values["state"]),
            *(values[name] for name in ("user", "group", "account", "partition", "qos")),
            tasks=array_tasks(values["id"]),
        )  # fmt: skip
        if record.state in {State.running, State.pending}:
            record.end = None
        if record.state is State.pending:
            record.start = None
        if (record.allocated_nodes or 0) <= 0:
            record.requested_nodes = None
        nothing = record.allocated_nodes == 0 or (
            "allocated_tres" in self.columns.place and not values["allocated_tres"]
        )
        if nothing and (not ran or ran < 0):
            record.allocated = 0
        if match := HET_ID.fullmatch(values["id"]):
            record.group_id = match[1]
        asked = values["requested_tres"] or values["allocated_tres"]
        record.memory, record.gpus, record.user_name = tres_memory(asked), tres_gpus(asked), values["user_name"]
        mark_asked(record, values["submit_line"])
        return record, how

    def odd(self, number: int, fields: list[str]) -> Iterator[Record | Remark]:
        place = self.columns.place["id"]
        job = fields[place] if place < len(fields) else ""
        if len(fields) < self.columns.width:
            yield Remark(number, job, "sacct.cut_off")
            return
        readings: dict[str, dict[str, str]] = {}
        for text in self.columns.placements(self.columns.delimiter.join(fields)):
            values = self.values(text.split(self.columns.delimiter))
            record = self.sensible(values, number)
            if record is not None:
                readings.setdefault(repr(record), values)
        if len(readings) != 1:
            yield Remark(number, job, "sacct.ambiguous" if readings else "sacct.senseless")
            return
        (values,) = readings.values()
        if "." not in values["id"]:
            yield Remark(number, values["id"], "sacct.mended")
        yield from self.plain(number, values)

    def sensible(self, values: dict[str, str], number: int) -> Record | None:
        step = "." in values["id"]
        whole = ("requested", "allocated", "requested_nodes", "allocated_nodes", "elapsed_raw")
        if not re.fullmatch(r"\d+(?:[_+](?:\d+|\[[^\]]*\]))?(?:\.\w+)?", values["id"], re.ASCII):
            return None
        if any(values[name] and not values[name].isdigit() for name in whole):
            return None
        for name, column in (("user", "uid"), ("group", "gid")):
            numbered = self.columns.is_called(name, column)
            if numbered and not (values[name].isdigit() or (step and not values[name])):
                return None
        try:
            record, _ = self.record(values, number)
        except ValueError:
            return None
        return record if record.state is not State.unknown and record.submit is not None else None


def either(count: str, resources: str, name: str) -> int | None:
    if not count:
        return tres(resources, name)
    return int(count.removesuffix("K")) * 1024 if count.endswith("K") else int(count)


def suspended(text: str) -> int | None:
    seconds = duration(text)
    if text and seconds is None:
        raise ValueError(text)
    return seconds
