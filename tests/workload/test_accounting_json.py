"""Reading sacct --json: in parts, in the forms of several versions, damaged."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfactory.core.errors import TraceFormatError
from policyfactory.workload.accounting import sacct_json
from policyfactory.workload.accounting.record import LimitKind, Record, Remark, State
from policyfactory.workload.accounting.sacct_json import read
from policyfactory.workload.accounting.times import Clock
from refusals import refused

JOB: dict[str, Any] = {
    "account": "physics", "allocation_nodes": 2, "association": {"user": "anna"}, "cluster": "one",
    "array": {"job_id": 0, "task": None, "task_id": None}, "het": {"job_id": 0, "job_offset": None},
    "time": {"elapsed": 7, "eligible": 1_700_000_000, "end": 1_700_000_027, "start": 1_700_000_020,
             "submission": 1_700_000_000, "suspended": 0, "limit": 5},
    "group": "users", "job_id": 11, "name": "a|b", "partition": "batch", "qos": "normal",
    "required": {"CPUs": 4, "memory": 0}, "state": {"current": "COMPLETED", "reason": "None"}, "steps": [{}],
    "tres": {"allocated": [{"type": "cpu", "count": 8}, {"type": "node", "count": 2}],
             "requested": [{"type": "cpu", "count": 4}, {"type": "node", "count": 1}]},
    "user": "anna",
}  # fmt: skip


def changed(**changes: Any) -> dict[str, Any]:
    """Give the job with other values; ``time__limit`` is an entry of ``time``."""
    one = copy.deepcopy(JOB)
    for name, value in changes.items():
        outer, _, inner = name.partition("__")
        if inner:
            one[outer][inner] = value
        else:
            one[outer] = value
    return one


def items_of(*jobs: Any, size: int = 1 << 20) -> list[Record | Remark]:
    text = json.dumps({"meta": {"a": [1, {}]}, "errors": [], "jobs": list(jobs), "more": "}]"})
    return list(read([text[at : at + size] for at in range(0, len(text), size)], "log", Clock()))


def record_of(**changes: Any) -> Record:
    (item,) = items_of(changed(**changes))
    assert isinstance(item, Record)
    return item


def test_a_job_becomes_a_record() -> None:
    assert record_of() == Record(
        1, "11", 1_700_000_000, 1_700_000_000, 1_700_000_020, 1_700_000_027, 7, 0, 300, LimitKind.given, 4, 8, 1, 2,
        State.completed, "anna", "users", "physics", "batch", "normal", "a|b", gpus=0, allocated_gpus=0,
    )  # fmt: skip


def test_numbers_that_later_versions_wrap_are_the_same() -> None:
    def wrapped(number: int) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": number}

    nothing = {"set": False, "infinite": False, "number": 0}
    later = record_of(
        time__limit=wrapped(5), state__current=["COMPLETED"], array={"job_id": 0, "task_id": nothing, "task": ""},
        het={"job_id": 0, "job_offset": nothing}, time__elapsed=7,
    )  # fmt: skip
    assert later == record_of()
    assert record_of(time__limit={"set": True, "infinite": True, "number": 0}).limit_kind is LimitKind.unlimited
    # What sacct -P prints as Partition_Limit.
    assert record_of(time__limit=nothing).limit_kind is LimitKind.partition
    assert record_of(time__limit=None).limit_kind is LimitKind.unlimited


def test_a_flag_behind_the_state_says_that_a_run_went_back_to_the_queue() -> None:
    states = {
        ("PENDING", "REQUEUED"): State.requeued,
        ("RUNNING", "RESIZING"): State.resized,
        ("FAILED", "?"): State.failed,
    }
    for words, state in states.items():
        again = record_of(state__current=[*words])
        assert (again.state, again.start, again.end) == (state, 1_700_000_020, 1_700_000_027)


def test_ids_are_those_that_the_site_writes() -> None:
    assert record_of(array={"job_id": 11, "task_id": 3}).job == "11_3"
    rest = record_of(array={"job_id": 57, "task_id": None, "task": "0-20%3"}, state__current="PENDING")
    assert (rest.job, rest.tasks, rest.start) == ("57_[0-20%3]", 21, None)
    part = record_of(het={"job_id": 17, "job_offset": 1})
    assert (part.job, part.group_id) == ("17+1", "17")


def test_the_limit_of_an_array_is_in_the_record_of_one_task() -> None:
    def limited(tasks: Any, **more: Any) -> Record:
        return record_of(array={"job_id": 11, "task_id": 3, "limits": {"max": {"running": {"tasks": tasks}}}} | more)

    assert [limited(tasks).array_limit for tasks in (2, 0, None)] == [2, None, None]
    assert limited({"set": True, "infinite": False, "number": 4}).array_limit == 4
    assert limited(0, task_id=None, task="0-20%3").array_limit == 3
    assert record_of(array={"job_id": 11, "task_id": 3, "limits": None}).array_limit is None
    assert record_of(array={"job_id": 11, "task_id": 3}, submit_line="sbatch -a 1-9%5 x").array_limit == 5


def test_zero_is_no_time_and_no_list_is_no_processor() -> None:
    waits = record_of(time__start=0, time__end=0, state__current="PENDING", tres__allocated=[], allocation_nodes=0)
    assert (waits.start, waits.end, waits.allocated, waits.allocated_nodes) == (None, None, 0, 0)
    # The least that it asked for: nothing shows yet whether it wants more.
    assert waits.requested_nodes is None
    assert record_of().requested_nodes == 1


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"time__limit": [5]}, "time.limit"), ({"tres": {"allocated": 3}}, "tres.allocated"),
        ({"required": {"CPUs": -4}}, "required.CPUs"), ({"time__elapsed": True}, "time.elapsed"),
        ({"tres__allocated": [{"count": 1}]}, "tres.allocated"), ({"time__end": "soon"}, "time.end"),
    ],
)  # fmt: skip
def test_an_entry_of_another_form_is_unknown_and_costs_no_job(change: dict[str, Any], column: str) -> None:
    remark, record = items_of(changed(**change))
    assert isinstance(remark, Remark)
    assert (remark.kind, remark.column) == ("sacct-json.odd_cell", column)
    assert isinstance(record, Record)
    # Nobody says that it never had the machine.
    assert record.allocated != 0


def test_an_entry_that_a_job_can_do_without_costs_no_job() -> None:
    odd = items_of(changed(time__limit={"number": "soon"}, tres__requested=[{"type": "mem", "count": -2}]))
    assert [(item.kind, item.column, item.value) for item in odd if isinstance(item, Remark)] == [
        ("sacct-json.odd_cell", "time.limit", '{"number": "soon"}'),
        ("sacct-json.odd_cell", "tres.requested", '[{"type": "mem", "count": -2}]'),
    ]
    (record,) = [item for item in odd if isinstance(item, Record)]
    assert (record.limit_kind, record.memory) == (LimitKind.missing, None)


def test_a_resource_is_that_of_the_allocation_where_the_request_has_none() -> None:
    more = [{"type": "mem", "count": 9}, {"type": "gres", "name": "gpu", "count": 3}]
    record = record_of(tres__allocated=[*JOB["tres"]["allocated"], *more])
    assert (record.memory, record.gpus) == (None, 0)
    assert (record.allocated_memory, record.allocated_gpus) == (9, 3)
    assert record_of(state__current=["RUNNING", "RESIZING"]).state is State.resized


def test_a_submit_line_shows_what_was_asked_for() -> None:
    assert record_of(submit_line="sbatch -t 5 x").limit_kind is LimitKind.asked
    assert record_of(submit_line="sbatch x").limit_kind is LimitKind.given


@settings(max_examples=60)
@given(st.integers(1, 400), st.integers(0, 4))
def test_parts_of_any_length_give_the_same(size: int, jobs: int) -> None:
    several = [changed(job_id=number) for number in range(1, jobs + 1)]
    assert items_of(*several, size=size) == items_of(*several)
    assert len(items_of(*several)) == jobs


@pytest.mark.parametrize(
    "change",
    [
        {"time__submission": "soon"}, {"time": None}, {"state": {}}, {"job_id": None}, {"time__start": 1 << 50},
        {"state__current": []}, {"time__end": "soon", "time__elapsed": None},
    ],
)  # fmt: skip
def test_a_job_of_another_form_is_counted_and_the_next_is_read(change: dict[str, Any]) -> None:
    bad, good = items_of(changed(**change), JOB)
    assert isinstance(bad, Remark)
    assert (bad.line, bad.action) == (1, "dropped")
    assert isinstance(good, Record)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "begin"), ('{"jobs": 3}', "list called"), ('{"jobs": [{"a": 1}', "1 after"),
        ('{"jobs": [{]}', "1 list"), ("{}", "list called"), ("", "begin"), ('{"a" 1}', "entry"),
        ('{"jobs": ' + "[" * 100_000, "nested deep"), ('{"jobs": [], "x": 1', "between entries"),
        ('{"a": ' + "9" * 5000 + "}", "number long"),
    ],
)  # fmt: skip
def test_what_is_no_json_of_sacct_is_refused_with_the_place(text: str, message: str) -> None:
    refused(TraceFormatError, f"--json {message}", list, read([text], "log", Clock()))


def test_two_clusters_are_refused() -> None:
    refused(TraceFormatError, "2 two one", items_of, JOB, changed(cluster="two"))


def test_the_genuine_output_is_read(shared: Callable[[str], Path]) -> None:
    text = shared("oracles/slurm/sacct_sample.json").read_text()
    items = list(read([text], "log", Clock()))
    assert len(items) == 52
    by_job = {item.job: item for item in items if isinstance(item, Record)}
    assert by_job["21"].requested == 1
    assert by_job["21"].allocated == 16
    assert by_job["20"].limit_kind is LimitKind.unlimited
    assert by_job["52"].state is State.running
    assert by_job["22"].limit == 3600


@pytest.mark.slow
def test_a_list_of_anything_but_jobs_ends_early() -> None:
    text = '{"jobs":[' + "{}," * 150_000
    found: list[object] = []
    refused(TraceFormatError, "log.json 100,001 entries", found.extend, sacct_json.read([text], "log.json", Clock()))
    assert len(found) == 100_000
