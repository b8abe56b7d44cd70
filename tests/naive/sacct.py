"""The output of sacct -P read line by line and cell by cell: the twin of policyfactory.workload.accounting.sacct."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Iterator

from policyfactory.workload.accounting.record import LimitKind, Record, Remark, State
from policyfactory.workload.accounting.sacct import (
    HET_ID,
    array_tasks,
    gres_gpus,
    mark_asked,
    one_cluster,
    read_limit,
    state_of,
    tres,
    tres_gpus,
    tres_memory,
)
from policyfactory.workload.accounting.sacct_columns import Columns
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
        places = self.columns.number
        names = (
            "id", "state", "submit", "eligible", "start", "end", "elapsed_raw", "elapsed", "limit_raw", "limit",
            "requested", "allocated", "requested_nodes", "allocated_nodes", "allocated_tres", "requested_tres", "user",
            "group", "account", "partition", "qos", "suspended", "submit_line", "cluster",
            "user_name", "requested_memory", "requested_gres", "allocated_gres",
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
        record, how, odd, lost = self.record(values, number)
        for name, value in odd:
            column = self.columns.names[self.columns.number[name]]
            yield Remark(number, values["id"], "sacct.unreadable" if lost else "sacct.odd_cell", 1, column, value)
            if lost:
                return
        if how:
            yield Remark(number, record.job, f"sacct.{how}")
        self.count(values, record)
        yield record

    def count(self, values: dict[str, str], record: Record) -> None:
        if len(values["submit"]) == 19:
            self.first_zoneless = self.first_zoneless if self.zoneless else (record.line, record.job)
            self.zoneless += 1

    def record(
        self, values: dict[str, str], line: int, *, strict: bool = False
    ) -> tuple[Record, str, list[tuple[str, str]], bool]:
        """Give the record, how its times were settled, cells that cannot be read, and whether it has no times."""
        odd: list[tuple[str, str]] = []

        def first(*sources: tuple[str, Callable[[str], int | None]]) -> int | None:
            """Return what the first source says that says something."""
            wrong = None
            for name, read in sources:
                try:
                    value = read(values[name]) if values[name] else None
                except ValueError:
                    wrong = wrong or (name, values[name])
                    if strict:
                        break
                else:
                    if value is not None or (values[name] and not name.endswith("_tres")):
                        return value
            if wrong:
                odd.append(wrong)
            return None

        def time(name: str) -> tuple[int, ...]:
            try:
                return self.clock.read(values[name])
            except ValueError:
                odd.append((name, values[name]))
                return ()

        ran = first(("elapsed_raw", int), ("elapsed", duration))
        beginning = len(odd)
        times = [time(name) for name in ("submit", "start", "end")]
        wrong = [name for name, _ in odd[beginning:]]
        lost = "submit" in wrong or "start" in wrong or ("end" in wrong and (ran is None or ran < 0))
        if lost:
            odd = odd[beginning:]
        submit, start, end = (time[0] if time else None for time in times)
        how = ""
        if any(len(time) == 2 for time in times) and not lost:
            (submit, start, end), how = settle(
                times, None if ran is None or ran < 0 else ran + (rested_of(values) or 0)
            )
        eligible = time("eligible")
        limit, kind = None, LimitKind.missing
        for name in ("limit_raw", "limit"):
            if not values[name]:
                continue
            try:
                limit, kind = read_limit(values[name], "") if name == "limit_raw" else read_limit("", values[name])
            except ValueError:
                odd.append((name, values[name]))
                if strict:
                    break
            else:
                if odd and odd[-1][0] == "limit_raw" and limit is not None and not strict:
                    odd.pop()
                break
        record = Record(
            line, values["id"], submit, eligible[0] if eligible else None, start, end, ran,
            first(("suspended", suspended)), limit, kind,
            first(("requested", count), ("requested_tres", tres_of("cpu"))),
            first(("allocated", count), ("allocated_tres", tres_of("cpu"))),
            first(("requested_nodes", count), ("requested_tres", tres_of("node"))),
            first(("allocated_nodes", count), ("allocated_tres", tres_of("node"))),
            state_of(values["state"]),
            *(values[name] for name in ("user", "group", "account", "partition", "qos")),
            tasks=array_tasks(values["id"]),
        )  # fmt: skip
        nodes = record.allocated_nodes if (record.allocated_nodes or 0) > 0 else record.requested_nodes
        record.memory = tres_memory(values["requested_tres"])
        record.allocated_memory = tres_memory(values["allocated_tres"])
        if record.memory is None and record.allocated_memory is None and values["requested_memory"]:
            record.memory = self.memory(values["requested_memory"], nodes, record, odd)
        record.gpus, record.allocated_gpus = tres_gpus(values["requested_tres"]), tres_gpus(values["allocated_tres"])
        for name, column in (("gpus", "requested_gres"), ("allocated_gpus", "allocated_gres")):
            of_node = gres_gpus(values[column])
            if of_node is not None and not getattr(record, name) and nodes and nodes > 0:
                setattr(record, name, of_node * nodes)
        if record.state in {State.running, State.pending}:
            record.end = None
        if record.state is State.pending:
            record.start = None
        if (record.allocated_nodes or 0) <= 0:
            record.requested_nodes = None
        nothing = record.allocated_nodes == 0 or (
            "allocated_tres" in self.columns.number and not values["allocated_tres"]
        )
        elsewhere = record.state is State.cancelled and record.allocated_nodes == 0
        if elsewhere or (nothing and (not ran or ran < 0)):
            record.allocated = 0
        if match := HET_ID.fullmatch(values["id"]):
            record.group_id = match[1]
        record.user_name = values["user_name"]
        mark_asked(record, values["submit_line"])
        return record, how, odd, lost

    @staticmethod
    def memory(text: str, nodes: int | None, record: Record, odd: list[tuple[str, str]]) -> int | None:
        """Return the memory of the whole job that column ReqMem says."""
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGTP]?)([nc]?)", text)
        if match is None:
            odd.append(("requested_memory", text))
            return None
        cores = record.requested if (record.requested or 0) > 0 else record.allocated
        each = float(match[1]) * 1024.0 ** {"K": -1, "": 0, "M": 0, "G": 1, "T": 2, "P": 3}[match[2]]
        times = {"": 1, "n": nodes, "c": cores}[match[3]]
        return math.ceil(each * times) if each and times and times > 0 else None

    def odd(self, number: int, fields: list[str]) -> Iterator[Record | Remark]:
        place = self.columns.number["id"]
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
        record, _, odd, _ = self.record(values, number, strict=True)
        if odd:
            return None
        return record if record.state is not State.unknown and record.submit is not None else None


def count(text: str) -> int:
    return int(text.removesuffix("K")) * 1024 if text.endswith("K") else int(text)


def tres_of(name: str) -> Callable[[str], int | None]:
    return lambda text: tres(text, name)


def rested_of(values: dict[str, str]) -> int | None:
    return duration(values["suspended"])


def suspended(text: str) -> int | None:
    seconds = duration(text)
    if text and seconds is None:
        raise ValueError(text)
    return seconds
