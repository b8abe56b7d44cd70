"""A schedule as a trace: events by hand, and no two jobs on one line at once."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np

from policyfactory.evaluation.starts import trace_json
from policyfactory.policy.store import resolve
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.lublin import default_workload


def jobs(submit: list[int], run: list[int], processors: list[int], machine: int, ticks: int = 1) -> Workload:
    count = len(submit)
    times = [np.array(column, dtype=np.int64) for column in (submit, run, [max(1, p) for p in run], processors)]
    unknown = np.full(count, -1, dtype=np.int64)
    return Workload("log", machine, np.arange(1, count + 1), *times, unknown, unknown, ticks=ticks)


def events(schedule: Schedule, kind: str) -> list[dict[str, Any]]:
    made = json.loads(trace_json(schedule, "</script> log"))
    return [event for event in made["traceEvents"] if event["ph"] == kind]


def test_a_trace_by_hand() -> None:
    # Four processors: job 1 has all of them for 10 s, then 2 and 3 run side by side.
    schedule = simulate(jobs([100, 101, 102], [10, 5, 3], [4, 1, 3], 4), resolve("FCFS"))
    blocks = [(e["name"], e["tid"], e["ts"], e["dur"], e["args"]["block"]) for e in events(schedule, "X")]
    assert blocks == [
        ("job 1", 0, 0, 10_000_000, "0-3"),
        ("job 2", 0, 10_000_000, 5_000_000, "0-0"),
        ("job 3", 1, 10_000_000, 3_000_000, "1-3"),
    ]
    assert [event["args"]["wait (s)"] for event in events(schedule, "X")] == [0, 9, 8]
    counts = {
        name: [(e["ts"] // 1_000_000, e["args"]["count"]) for e in events(schedule, "C") if e["name"] == name]
        for name in ("jobs in the queue", "processors in use")
    }
    assert counts["jobs in the queue"] == [(0, 0), (1, 1), (2, 2), (10, 0)]
    assert counts["processors in use"] == [(0, 4), (10, 4), (13, 1), (15, 0)]


def test_half_seconds_are_microseconds_and_a_job_of_no_time_is_no_event() -> None:
    schedule = simulate(jobs([0, 1, 2], [3, 0, 1], [1, 1, 1], 1, ticks=2), resolve("FCFS"))
    assert [(e["name"], e["ts"], e["dur"]) for e in events(schedule, "X")] == [
        ("job 1", 0, 1_500_000), ("job 3", 1_500_000, 500_000),
    ]  # fmt: skip


def test_no_two_jobs_are_on_one_line_at_once_and_all_of_the_work_is_there() -> None:
    schedule = simulate(default_workload()[:2000], resolve("SAF"))
    blocks = sorted(events(schedule, "X"), key=lambda event: (event["tid"], event["ts"]))
    for one, other in itertools.pairwise(blocks):
        assert one["tid"] != other["tid"] or one["ts"] + one["dur"] <= other["ts"]
    width = [int(high) - int(low) + 1 for low, high in (event["args"]["block"].split("-") for event in blocks)]
    work = sum(event["dur"] * wide for event, wide in zip(blocks, width, strict=True))
    run = schedule.workload
    assert work == int((run.run_time * run.processors).sum()) * 1_000_000
    for name in ("jobs in the queue", "processors in use"):
        counts = [event["args"]["count"] for event in events(schedule, "C") if event["name"] == name]
        assert min(counts) >= 0
        assert counts[-1] == 0
