"""Schedules inside a page: what is packed is what was scheduled, and nothing grows beyond its bounds."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
import pytest

from policyfactory.policy.store import resolve
from policyfactory.report import timeline
from policyfactory.report.timeline import Drawn, packed
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.models.lublin import default_workload


def drawn(jobs: Workload, *policies: str) -> list[Drawn]:
    schedules = [simulate(jobs, resolve(name)) for name in policies]
    return [Drawn(name, one.start, one.end) for name, one in zip(policies, schedules, strict=True)]


def unpacked(text: str) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    head = json.loads(text)
    raw = np.frombuffer(zlib.decompress(base64.b64decode(head["data"])), dtype=np.uint8)
    lengths = [head["jobs"]] * 3
    for count in head["rectangles"]:
        lengths += [head["jobs"]] * 2 + [count] * 3
    columns, at = [], 0
    for length in lengths:
        planes = raw[at : at + 4 * length].reshape(4, length)
        columns.append(np.ascontiguousarray(planes.T).view("<i4").ravel())
        at += 4 * length
    assert at == len(raw)
    return head, columns


def test_what_is_packed_is_what_was_scheduled() -> None:
    jobs = default_workload()[:500]
    schedules = drawn(jobs, "FCFS", "SAF")
    head, columns = unpacked(packed(jobs, schedules, int(jobs.submit[0]), int(jobs.submit[99])))
    submit = np.cumsum(columns[0])
    assert (submit == jobs.submit - jobs.submit[0]).all()
    assert (columns[1] == jobs.processors).all()
    assert (np.cumsum(columns[2]) == jobs.job_id).all()
    assert (head["jobs"], head["of"], head["machine"]) == (500, 500, jobs.machine)
    assert head["policies"] == ["FCFS", "SAF"]
    assert head["view"] == [0, int(jobs.submit[99] - jobs.submit[0])]
    for at, one in zip((3, 8), schedules, strict=True):
        wait, run, row, low, more = columns[at : at + 5]
        assert (submit + wait == one.start - jobs.submit[0]).all()
        assert (run == one.end - one.start).all()
        assert (np.bincount(np.cumsum(row), more + 1, 500) == jobs.processors * (run > 0)).all()
        assert low.min() >= 0
        assert (low + more).max() < jobs.machine


def test_of_many_jobs_those_around_what_is_shown_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_JOBS", 100)
    monkeypatch.setattr(timeline, "_MOST_STARTS", 250)
    jobs = default_workload()[:500]
    shown = int(jobs.submit[300])
    head, columns = unpacked(packed(jobs, drawn(jobs, "FCFS", "SAF", "F1"), shown, shown))
    assert (head["jobs"], head["of"]) == (100, 500)
    assert np.cumsum(columns[2]).tolist() == jobs.job_id[250:350].tolist()
    # Two are kept whatever their size, a third one does not fit.
    assert head["policies"] == ["FCFS", "SAF"]
    assert head["view"][0] == shown - int(jobs.submit[250])


def test_equal_schedules_are_equal_texts_and_ages_are_not_drawn() -> None:
    jobs = default_workload()[:50]
    assert packed(jobs, drawn(jobs, "FCFS"), 0, 1) == packed(jobs, drawn(jobs, "FCFS"), 0, 1)
    one = drawn(jobs, "FCFS")[0]
    late = Drawn("late", one.start + 2**31, one.end + 2**31)
    assert packed(jobs, [late], 0, 1) == ""
