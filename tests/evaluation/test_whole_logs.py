"""A whole log in one simulation: its weeks give the interval, and a lead-in is not measured."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pytest

import policyfactory as pf
from evaluations import run_cases
from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.core.text import DAY, HOUR, WEEK
from policyfactory.evaluation.results_folder import weeks_csv
from policyfactory.evaluation.run import _has_weeks
from policyfactory.policy.store import resolve
from policyfactory.simulation.cases import Case, case_of
from policyfactory.simulation.metrics import WeeklySums, measure
from policyfactory.simulation.schedule import RECORDED
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.statistics.compare import compare, compare_recorded
from policyfactory.statistics.summary import summarise
from policyfactory.workload.jobs import Workload
from refusals import refused


def busy_days(weeks: int, *, machine: int = 4, seed: int = 1) -> Workload:
    """Return a log in which a queue forms every day and is gone the next morning, so that weeks are independent."""
    drawn = np.random.default_rng(seed)
    days = 7 * weeks
    jobs = 14 * days
    run_time = np.where(drawn.random(jobs) < 0.6, drawn.integers(60, 600, jobs), drawn.integers(HOUR, 3 * HOUR, jobs))
    submit = np.repeat(np.arange(days) * DAY, 14) + drawn.integers(0, 4 * HOUR, jobs)
    order = np.argsort(submit)
    log = Workload(
        "busy", machine, job_id=np.arange(1, jobs + 1), submit=(submit - submit.min())[order], run_time=run_time,
        requested_time=run_time * 2, processors=drawn.integers(1, machine, jobs), user=np.zeros(jobs, dtype=np.int64),
        start=np.full(jobs, -1), unix_start=1_000_000_000,
    )  # fmt: skip
    return dataclasses.replace(log, start=simulate(log, resolve("FCFS"), Rules()).start)


@pytest.fixture(scope="module")
def log() -> Workload:
    return busy_days(14)


def test_the_weeks_of_a_log_give_the_interval(log: Workload) -> None:
    result = run_cases([case_of(log)], [resolve("FCFS"), resolve("SPF")], metrics=["mean_bsld", "max_wait"])
    weeks = result.weekly["busy"]
    assert (len(weeks.jobs), weeks.block, weeks.enough) == (14, 1, True)
    row, longest = compare(result)
    fcfs, spf = (measure(simulate(log, resolve(name), Rules()), ["mean_bsld"])["mean_bsld"] for name in ("FCFS", "SPF"))
    assert row.difference == pytest.approx(spf - fcfs, rel=1e-9)
    assert (row.statistic, row.cases, row.verdict) == ("weeks", 14, "better")
    assert row.interval is not None
    assert row.interval.high < 0
    assert row.relative == pytest.approx(spf / fcfs - 1)
    assert row.wins + row.losses + row.draws == 14
    # The longest wait of all is not the mean of the longest waits of the weeks.
    assert (longest.interval, longest.verdict) == (None, "too few cases")
    values = {(one.policy, one.metric): one for one in summarise(result)}
    assert values["SPF", "mean_bsld"].value == spf
    assert values["SPF", "mean_bsld"].interval is not None
    assert values["SPF", "max_wait"].interval is None


def test_no_policy_is_better_than_itself(log: Workload) -> None:
    same = dataclasses.replace(resolve("FCFS"), name="SAME")
    (row,) = compare(run_cases([case_of(log)], [resolve("FCFS"), same], metrics=["mean_bsld"]))
    assert (row.difference, row.verdict, row.draws) == (0.0, "no difference", 14)


def test_the_recorded_schedule_is_compared_over_weeks_too(log: Workload) -> None:
    result = run_cases([case_of(log)], [resolve("FCFS"), resolve("SPF")], metrics=["mean_bsld"], recorded=True)
    same, better = compare_recorded(result)
    assert (same.baseline, same.difference, same.verdict) == (RECORDED, 0.0, "no difference")
    assert better.verdict == "better"
    assert better.difference == compare(result)[0].difference


def test_a_ratio_of_weeks_is_that_of_the_sums(log: Workload) -> None:
    result = run_cases([case_of(log)], [resolve("FCFS"), resolve("SPF")], metrics=["mean_bsld"])
    (row,) = compare(result, statistic="ratio")
    fcfs, spf = result.values[0, :, 0]
    assert (row.statistic, row.unit) == ("ratio", "%")
    assert row.difference == pytest.approx(100 * (spf / fcfs - 1))


def test_windows_and_resampled_logs_have_no_weeks(log: Workload) -> None:
    for kind in ("window", "resample"):
        assert run_cases([case_of(log, kind=kind)], [resolve("FCFS")]).weekly == {}


def test_a_queue_that_is_never_empty_has_no_interval() -> None:
    # Twice the work that the machine can do: the queue only grows, and its weeks are one story.
    log = busy_days(14, machine=2)
    log = dataclasses.replace(log, submit=log.submit // 4, start=np.full(len(log), -1))
    result = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_bsld"])
    assert not result.outcome.evaluation.weekly["busy"].enough
    assert "There is no interval" in result.summary()
    assert "draw logs with --resamples" in result.summary()


def test_a_lead_in_is_simulated_and_not_measured(log: Workload) -> None:
    lead_in = int(np.searchsorted(log.submit, 5 * WEEK))
    result = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_wait", "max_wait"], lead_in="5w", recorded=True)
    evaluation = result.outcome.evaluation
    assert evaluation.cases[0].jobs == len(log) - lead_in
    assert evaluation.cases[0].unix_start == 1_000_000_000 + int(log.submit[lead_in])
    whole = simulate(log, resolve("SPF"), Rules())
    wait = (whole.start - log.submit)[lead_in:]
    assert evaluation.values[0, 1].tolist() == [pytest.approx(wait.mean()), wait.max()]
    assert evaluation.recorded is not None
    assert evaluation.recorded[0].tolist() == evaluation.values[0, 0].tolist()
    assert len(evaluation.weekly["busy"].jobs) == 9
    again = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_wait", "max_wait"], lead_in=f"{lead_in}jobs")
    assert again.outcome.evaluation.values.tolist() == evaluation.values.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lead_in": "5w", "windows": "3x7d"}, "lead_in 5w windows"),
        ({"lead_in": "5w", "resamples": 3}, "lead_in 5w windows"),
        ({"lead_in": "inf"}, "lead_in inf 30d 5000jobs"),
        ({"lead_in": "some jobs"}, "5000jobs number jobs"),
        ({"lead_in": "5"}, "lead_in 5"),
    ],
)
def test_a_lead_in_that_cannot_be_is_refused(log: Workload, options: dict[str, object], message: str) -> None:
    refused(UsageError, message, pf.evaluate, log, ["FCFS"], **options)


def test_a_lead_in_leaves_some_jobs(log: Workload) -> None:
    refused(WorkloadError, "210d 1,372", pf.evaluate, log, ["FCFS"], lead_in="30w")


@pytest.mark.usefixtures("blank_pictures")
def test_the_weeks_are_written(log: Workload, tmp_path: Path) -> None:
    result = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_bsld", "max_wait"], analyses=[])
    result.report(tmp_path / "folder")
    text = (tmp_path / "folder" / "weeks.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 2 * 14
    assert {row["metric"] for row in rows} == {"mean_bsld"}
    own = [row for row in rows if row["policy"] == "SPF"]
    assert [int(row["week"]) for row in own] == list(range(1, 15))
    mean = sum(int(row["jobs"]) * float(row["value"]) for row in own) / len(log)
    assert mean == pytest.approx(result.outcome.evaluation.values[0, 1, 0])
    manifest = json.loads((tmp_path / "folder" / "manifest.json").read_text(encoding="utf-8"))
    assert "weeks.csv" in manifest["outputs"]
    assert weeks_csv({"x": run_cases([case_of(log, kind="window")], [resolve("FCFS")])}) == ""


def test_weeks_of_another_number_are_no_record_of_the_case(log: Workload) -> None:
    facts = run_cases([case_of(log)], [resolve("FCFS")], metrics=["mean_bsld"]).cases[0]
    good = WeeklySums(np.ones(14, dtype=np.int64), np.ones((14, 1)), np.ones((14, 1)), 0.0)
    assert _has_weeks(good, facts, 1)
    assert not _has_weeks(None, facts, 1)
    assert not _has_weeks(good, facts, 2)
    assert not _has_weeks(dataclasses.replace(good, values=np.ones((13, 1))), facts, 1)
    assert not _has_weeks(good, dataclasses.replace(facts, kind="window"), 1)
    assert _has_weeks(None, dataclasses.replace(facts, kind="window"), 1)


def test_workers_change_nothing(log: Workload) -> None:
    case = Case("busy", 1, "log", lambda: log, lead_in=100)
    one, two = (run_cases([case], [resolve("FCFS"), resolve("SPF")], workers=workers) for workers in (1, 2))
    assert one.values.tobytes() == two.values.tobytes()
    assert one.weekly["busy"].values.tobytes() == two.weekly["busy"].values.tobytes()
