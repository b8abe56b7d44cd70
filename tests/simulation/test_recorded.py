"""The recorded schedule beside the policies, and how far the replays are from it."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import cells, conclude, schedule, table, workload
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluations import run_cases
from policyfactory.core.errors import EvaluationError, InputError, UsageError
from policyfactory.evaluation.analyses.replay import Replay, wait_distance
from policyfactory.evaluation.experiment import Experiment, Outcome, cases_of, with_cases
from policyfactory.evaluation.logs import ReadLog
from policyfactory.evaluation.options import LogTable, TsafrirTable
from policyfactory.evaluation.protocol import protocol_of, read_protocol
from policyfactory.evaluation.results_folder import finding, setting
from policyfactory.evaluation.run import join
from policyfactory.evaluation.standings import recorded_section
from policyfactory.evaluation.study import run_experiment
from policyfactory.evaluation.words import units_of
from policyfactory.policy.store import resolve
from policyfactory.report.sections import Section
from policyfactory.simulation.cases import case_of
from policyfactory.simulation.metrics import METRICS, measure
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import NOT_RECORDED, RECORDED, lacking_starts, overuse_of, recorded_schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.clean import read
from policyfactory.workload.jobs import Workload
from refusals import refused
from snapshots import snapshot

FIELDS = st.tuples(st.integers(0, 300), st.integers(1, 200), st.integers(1, 50), st.integers(1, 4), st.integers(0, 3))
# Four processors; the second job, which needs all, waits for the first.
FOUR = workload([(0, 600, 900, 3, 1), (60, 300, 400, 4, 2), (120, 30, 60, 1, 1), (180, 600, 900, 2, 1)])


def of_fields(fields: Sequence[tuple[int, int, int, int, int]], ticks: int = 1) -> Workload:
    """A workload of (submit, run time, request beyond it, processors, user)."""
    return workload(sorted((r, p, p + more, q, user) for r, p, more, q, user in fields), ticks=ticks)


def as_recorded(jobs: Workload, waits: Sequence[int]) -> Workload:
    return dataclasses.replace(jobs, start=jobs.submit + np.array(waits) * jobs.ticks)


def played(jobs: Workload, policy: str = "FCFS", rules: Rules | None = None) -> Workload:
    """The same jobs, recorded on a machine that our own simulation ran."""
    return dataclasses.replace(jobs, start=simulate(jobs, resolve(policy), rules).start)


def outcome_of(*workloads: Workload, policies: Sequence[str] = ("FCFS", "SAF"), **more: Any) -> Outcome:
    cases = tuple(case_of(jobs, number, kind="window") for number, jobs in enumerate(workloads, 1))
    contenders = tuple(map(resolve, policies))
    return run_experiment(Experiment("e", cases, contenders, recorded=True, **more))


def section(outcome: Outcome, name: str) -> Section:
    return next(each for each in outcome.sections if each.name == name)


# The record. ----------------------------------------------------------------------------------------------------------


def test_a_record_is_measured_like_any_schedule() -> None:
    jobs = as_recorded(FOUR, [0, 540, 0, 1000])
    record = recorded_schedule(jobs)
    assert (record.policy_name, record.start.tolist()) == (RECORDED, [0, 600, 120, 1180])
    assert record.end.tolist() == [600, 900, 150, 1780]
    # The second waits 540 s and runs 300 s, the last waits 1000 s and runs 600 s.
    assert measure(record, ["mean_bsld"])["mean_bsld"] == pytest.approx((1 + 2.8 + 1 + 8 / 3) / 4)


@pytest.mark.parametrize("ticks", [1, 10**6])
@given(fields=st.lists(FIELDS, min_size=1, max_size=30))
def test_the_replay_of_our_own_schedule_is_the_record(ticks: int, fields: list[tuple[int, int, int, int, int]]) -> None:
    jobs = played(of_fields(fields, ticks))
    case = case_of(jobs)
    result = Replay().observe(case, simulate(jobs, resolve("FCFS")))
    assert (result.distance, result.same_start) == (0, 100)
    assert result.median_wait[0] == result.median_wait[1]
    assert result.utilisation[0] == result.utilisation[1]
    assert (result.at_most[0] == result.at_most[1]).all()
    assert result.overuse.over_s == 0
    names = [name for name in METRICS if name not in NOT_RECORDED]
    evaluation = run_cases([case], [resolve("FCFS")], metrics=names, recorded=True)
    assert evaluation.recorded is not None
    assert evaluation.recorded[0].tolist() == evaluation.values[0, 0].tolist()


def test_a_record_that_says_too_little_is_refused() -> None:
    assert lacking_starts(as_recorded(FOUR, [0, 0, 0, 0])) == ""
    partly = dataclasses.replace(FOUR, start=np.array([0, -1, 120, -1]))
    snapshot(lacking_starts(partly), part="1")
    # Of those that are measured.
    assert lacking_starts(partly, 2).startswith("1 of 2 jobs")
    # A start before the submission is none.
    early = dataclasses.replace(FOUR, start=np.array([0, 59, 120, 180]))
    snapshot(lacking_starts(early), part="2")
    refused(EvaluationError, "2 4 --no-recorded", run_cases, [partly], [resolve("FCFS")], recorded=True)


def test_jobs_before_the_measured_ones_need_no_start() -> None:
    partly = dataclasses.replace(FOUR, start=np.array([-1, 60, 120, 180]))
    assert lacking_starts(partly, 1) == ""
    snapshot(lacking_starts(partly))
    # What nobody knows the start of takes no processors from those that are measured.
    measured = recorded_schedule(partly, 1).after(1)
    assert measured.start.tolist() == [0, 60, 120]
    assert measured.carried is not None
    assert measured.carried.processors.tolist() == []


def test_what_a_lead_in_left_running_counts_in_both_tables() -> None:
    jobs = as_recorded(FOUR, [0, 540, 0, 1000])
    case = dataclasses.replace(case_of(jobs), lead_in=1)
    result = Replay().observe(case, simulate(jobs, resolve("FCFS")).after(1))
    whole = measure(recorded_schedule(jobs, 1).after(1), ["utilisation"])["utilisation"]
    alone = measure(recorded_schedule(case.measured()), ["utilisation"])["utilisation"]
    assert result.utilisation[1] == whole > alone


@given(st.lists(st.tuples(FIELDS, st.integers(0, 400)), min_size=1, max_size=12))
def test_overuse_is_what_counting_second_by_second_says(jobs: list[tuple[tuple[int, int, int, int, int], int]]) -> None:
    fields = [each[0] for each in jobs]
    record = recorded_schedule(as_recorded(of_fields(fields), [each[1] for each in jobs]))
    used = np.zeros(int(record.end.max()), dtype=np.int64)
    for start, end, processors in zip(record.start, record.end, record.workload.processors, strict=True):
        used[start:end] += processors
    result = overuse_of(record)
    assert (result.peak, result.over_s) == (used.max(), np.count_nonzero(used > 4))
    assert result.span_s == record.end.max() - record.workload.submit.min()


@given(*[st.lists(st.integers(0, 20), min_size=1, max_size=30)] * 2)
def test_the_distance_of_waits_is_kolmogorovs_and_smirnovs(a: list[int], b: list[int]) -> None:
    gaps = [abs(sum(x <= t for x in a) / len(a) - sum(x <= t for x in b) / len(b)) for t in range(21)]
    result = wait_distance(np.array(a), np.array(b))
    assert result == pytest.approx(max(gaps), abs=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its p-value, which is not used
        assert result == pytest.approx(float(stats.ks_2samp(a, b, method="asymp").statistic), abs=1e-12)


# Beside the policies. -------------------------------------------------------------------------------------------------


def test_recorded_is_a_row_and_no_contender() -> None:
    # The record is better than any policy: jobs ran side by side that need six processors.
    better = [as_recorded(FOUR, [0, 0, 0, number]) for number in range(8)]
    outcome = outcome_of(*better, metrics=("mean_bsld", "utilisation", "backfilled"))
    assert outcome.evaluation.policies == ("FCFS", "SAF")
    values = table(section(outcome, "values"), "log")
    assert [row[0].value for row in values.rows] == ["FCFS", "SAF", RECORDED]
    row = cells(values, policy=RECORDED)
    assert row["mean_bsld"].mark == ""
    assert row["mean_bsld"].value == pytest.approx(1 + 3.5 / 600 / 4)
    assert row["mean_bsld"].interval is not None
    assert row["mean_bsld"].value < cells(values, policy="FCFS")["mean_bsld"].value
    # Both policies start all jobs alike: a tie has no best.
    assert {cells(values, policy=name)["mean_bsld"].mark for name in ("FCFS", "SAF")} == {""}
    # A log does not say who was overtaken.
    assert row["backfilled"].value is None
    assert {each.policy for each in outcome.comparisons} == {"SAF"}
    assert {each.baseline for each in outcome.comparisons} == {"FCFS"}
    for name in ("differences", "ranks", "wins"):
        own = section(outcome, name)
        texts = [cell.value for part in own.tables for line in part.rows for cell in line]
        assert RECORDED not in [*texts, *(column.title for part in own.tables for column in part.columns)]
    assert RECORDED not in " ".join(outcome.words)
    assert RECORDED not in set(outcome.evaluation.frame()["policy"])


def test_differences_from_the_record_are_paired() -> None:
    jobs = [as_recorded(FOUR, [0, 540, 0, 720 + 60 * number]) for number in range(8)]
    outcome = outcome_of(*jobs, metrics=("mean_wait",))
    own = section(outcome, "recorded")
    values = outcome.evaluation.matrix("log", "mean_wait")
    recorded = [(540 + 720 + 60 * number) / 4 for number in range(8)]
    assert outcome.evaluation.column("log", "mean_wait", RECORDED).tolist() == recorded
    for k, policy in enumerate(("FCFS", "SAF")):
        cell = cells(table(own, "differences"), policy=policy)["mean_wait"]
        assert cell.value == pytest.approx(float(np.median(values[:, k] - recorded)))
        assert cell.interval is not None
        # Judged together an interval beside zero may be chance; one that holds it is never called.
        assert cell.mark in {"lower", "no difference"}
        assert cell.mark == "no difference" or cell.interval.high < 0
    found = finding(outcome)["recorded"]
    assert [row["policy"] for row in found["summary"]] == [RECORDED]
    assert [(row["policy"], row["baseline"]) for row in found["differences"]] == [
        ("FCFS", RECORDED),
        ("SAF", RECORDED),
    ]
    assert [row["policy"] for row in found["replay"]["tables"]["distances"]] == ["FCFS", "SAF", RECORDED]
    assert setting(outcome.experiment, outcome.evaluation)["recorded"] is True


def test_the_words_say_what_is_too_small_to_mean_anything() -> None:
    # FCFS: the second waits 540 s, the last until 900, 720 s; SQF puts the last before the second.
    assert simulate(FOUR, resolve("FCFS")).start.tolist() == [0, 600, 120, 900]
    own = section(outcome_of(as_recorded(FOUR, [0, 540, 0, 840]), metrics=("mean_wait",)), "recorded")
    snapshot(own.paragraphs[1], part="1")
    equal = section(outcome_of(played(FOUR), metrics=("mean_wait",)), "recorded")
    snapshot(equal.paragraphs[1], part="2")
    unknown = section(outcome_of(played(FOUR), metrics=("backfilled",)), "recorded")
    snapshot(unknown.paragraphs[1], part="3")
    # The record's mean wait is 345 s, 30 s more than under FCFS and SPF, 45 s less than under LAF.
    jobs = as_recorded(FOUR, [0, 540, 0, 840])
    further = section(outcome_of(jobs, policies=("FCFS", "SPF", "LAF"), metrics=("mean_wait",)), "recorded")
    snapshot(further.paragraphs[1], part="4")


@pytest.mark.parametrize("statistic", ["median", "mean", "ratio"])
def test_all_metrics_and_statistics_have_a_row(statistic: Any) -> None:
    jobs = [as_recorded(FOUR, [0, 540, 0, 720 + 60 * number]) for number in range(7)]
    outcome = outcome_of(*jobs, metrics=tuple(METRICS), statistic=statistic)
    rows = {row.metric: row for row in outcome.recorded_summaries}
    assert [name for name, row in rows.items() if not row.cases] == [name for name in METRICS if name in NOT_RECORDED]
    middle = float(np.median([315 + 15 * number for number in range(7)]))
    assert rows["mean_wait"].value == pytest.approx(middle)
    base = next(row for row in outcome.recorded_comparisons if (row.metric, row.policy) == ("mean_wait", "FCFS"))
    expected = {"median": 315 - middle, "mean": 315 - middle, "ratio": 100 * (315 / middle - 1)}
    assert base.difference == pytest.approx(expected[statistic])
    # What no log says has no column of differences.
    (table,) = recorded_section(outcome, units_of(outcome.summaries)).tables
    assert len(table.columns) == 1 + sum(name not in NOT_RECORDED for name in METRICS)


def test_windows_have_the_record_of_their_own_jobs() -> None:
    jobs = played(of_fields([(300 * k, 200 + 10 * (k % 7), 50, 1 + k % 4, 0) for k in range(60)]))
    cases = cases_of(jobs, windows="6x10jobs")
    evaluation = run_cases(cases, [resolve("FCFS")], metrics=["mean_wait"], recorded=True, workers=2)
    means = [np.mean((jobs.start - jobs.submit)[10 * k : 10 * k + 10]) for k in range(6)]
    assert evaluation.column("log", "mean_wait", RECORDED).tolist() == pytest.approx(means)


def test_joined_evaluations_keep_the_record() -> None:
    cases = [case_of(as_recorded(FOUR, [0, 540, 0, 720 * number]), number) for number in (2, 1)]
    parts = [run_cases([case], [resolve("FCFS")], metrics=["max_wait"], recorded=True) for case in cases]
    evaluation = join(*parts)
    assert evaluation.column("log", "max_wait", RECORDED).tolist() == [720, 1440]
    assert [case[0].same_start for case in evaluation.observed[0]] == [100, 75]
    without = run_cases([FOUR], [resolve("FCFS")])
    refused(EvaluationError, "recorded=True measured", without.column, "log", "mean_wait", RECORDED)


@pytest.mark.parametrize("rules", [Rules(compatibility="sc17"), Rules(backfill="conservative"), Rules(overrun="kill")])
def test_any_rules_can_be_held_against_the_record(rules: Rules) -> None:
    result = Replay().observe(case_of(played(FOUR)), simulate(played(FOUR), resolve("FCFS"), rules))
    assert 0 <= result.distance <= 1


# How far the replay is. -----------------------------------------------------------------------------------------------


def test_the_distances_by_hand() -> None:
    jobs = as_recorded(FOUR, [0, 600, 0, 840])
    one = schedule(jobs, [0, 540, 0, 720], "FCFS"), schedule(jobs, [0, 600, 0, 840], "A")
    own = conclude(Replay(), [one])
    # Recorded waits 0, 0, 600, 840; of the replay 0, 0, 540, 720: at 720 s all against three of four.
    snapshot(own.paragraphs)
    result = table(own, "distances")
    row = cells(result, policy="FCFS")
    assert [row[name].value for name in ("distance of waits", "median wait", "same start")] == [0.25, 270, 75]
    record = cells(result, policy=RECORDED)
    assert (record["distance of waits"].value, record["median wait"].value) == (None, 300)
    # 600 * 3 + 300 * 4 + 30 + 600 * 2 processor-seconds, four processors, until 1620.
    assert record["utilisation"].value == pytest.approx(100 * 4230 / (4 * 1620))


def test_a_replay_that_is_the_record_is_said_to_be() -> None:
    jobs = as_recorded(FOUR, [0, 540, 0, 720])
    own = conclude(Replay(), [[schedule(jobs, [0, 540, 0, 720], "FCFS")]])
    snapshot(own.paragraphs[0])


def test_a_record_on_more_processors_than_there_are_is_said() -> None:
    # From 60 to 120 seven processors of four, from 120 to 150 eight, to 180 seven, then nine until 360; then five.
    jobs = as_recorded(FOUR, [0, 0, 0, 0])
    own = conclude(Replay(), [[schedule(jobs, [0, 540, 0, 720], "FCFS")]])
    share = 100 * (600 - 60) / 780
    assert (
        "The record uses up to 9 processors at once, and more than the machine's 4 for "
        f"{share:.1f} % of the time (9m): no replay can do that."
    ) in own.paragraphs[0]


def test_several_logs_have_a_row_each_and_a_picture_each() -> None:
    jobs = as_recorded(FOUR, [0, 540, 0, 720])
    own = conclude(Replay(), [[schedule(jobs, [0, 540, 0, 720], "P")]] * 2, ["one", "two"])
    assert [row[0].value for row in table(own, "distances").rows] == ["one", "one", "two", "two"]
    assert [picture.name for picture in own.pictures] == ["waits-one", "waits-two"]
    figure = own.pictures[0].draw()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [RECORDED, "P"]
    lines = figure.axes[0].get_lines()
    assert [line.get_ydata()[-1] for line in lines] == [100, 100]
    assert all((np.diff(line.get_ydata()) >= 0).all() for line in lines)


def test_a_case_without_waits_can_be_drawn() -> None:
    jobs = as_recorded(FOUR, [0, 0, 0, 0])
    own = conclude(Replay(), [[schedule(jobs, [0, 0, 0, 0], "P")]])
    assert own.pictures[0].draw().axes[0].get_lines()[0].get_ydata().tolist() == [100]


def test_the_record_of_kth(shared: Callable[[str], Path]) -> None:
    jobs = read(shared("traces/KTH-SP2-1996-2.1-cln.swf.gz"))
    metrics = ("mean_bsld", "mean_wait", "median_wait", "utilisation")
    outcome = run_experiment(Experiment("kth", (case_of(jobs),), (resolve("FCFS"),), metrics=metrics, recorded=True))
    assert outcome.evaluation.recorded is not None
    assert outcome.evaluation.recorded[0] == pytest.approx([192.503, 15291.209, 300, 70.106], abs=5e-4)
    row = cells(table(section(outcome, "replay"), "distances"), policy="FCFS")
    result = [row[name].value for name in ("distance of waits", "median wait", "utilisation", "same start")]
    assert result == pytest.approx([0.3127, 0, 70.109, 24.994], abs=5e-4)


# When it is shown. ----------------------------------------------------------------------------------------------------


def plan_of(jobs: Workload, *, tsafrir: bool = False, **keys: Any) -> tuple[Experiment, dict[str, ReadLog]]:
    content = {"name": "e", "policies": ["FCFS", "SAF"], **keys}
    protocol = protocol_of(
        {"schema_version": 1, "name": "p", "logs": {"log": {"embedded": True}}, "experiments": [content]}
    )
    source = LogTable(tsafrir=TsafrirTable(max_estimate="1h", seed=1) if tsafrir else None)
    return protocol.experiments[0], {"log": ReadLog("log", source, jobs, None, {}, {}, ())}


MONTH = played(of_fields([(86_400 * day, 600, 60, 2, 1) for day in range(30)]))
PARTLY = dataclasses.replace(FOUR, start=np.array([0, -1, 120, 180]))


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"jobs": MONTH, "resample": {"count": 2}}, "the cases are resampled logs"),
        ({"load": 1.1}, "the jobs arrive 1.1 times as fast as they did"),
        ({"estimates": "noisy:0.2"}, "requested times are not the users' but noisy:0.2"),
        ({"tsafrir": True}, "requested times are not the users' but modelled in log"),
        ({"jobs": PARTLY}, "log: 1 of 4 jobs has no recorded start, first job 2"),
        ({"jobs": PARTLY, "windows": "2x2jobs"}, "log, window 1: 1 of 2 jobs has no recorded start, first job 2"),
        ({"formulas": {"Recorded": "p"}}, "a policy is called recorded too, and needs another name"),
    ],
)
def test_what_never_happened_has_no_record(keys: dict[str, Any], why: str) -> None:
    given = {"jobs": played(FOUR), **keys}
    jobs = given.pop("jobs")
    message = refused(UsageError, "recorded false", lambda: with_cases(*plan_of(jobs, recorded=True, **given)))
    assert why in message
    quiet = with_cases(*plan_of(jobs, recorded="if-known", **given))
    assert not quiet.recorded
    assert (why in quiet.unrecorded) == (jobs is PARTLY)
    assert not with_cases(*plan_of(jobs, **given)).recorded


def test_it_is_shown_where_it_is_known_and_asked_for() -> None:
    assert with_cases(*plan_of(played(FOUR), recorded="if-known")).recorded
    assert with_cases(*plan_of(played(FOUR), recorded=True, windows="2x2jobs")).recorded
    assert not with_cases(*plan_of(played(FOUR))).recorded
    # The job without a start is in the first window, which is left out.
    assert with_cases(*plan_of(PARTLY, recorded=True, windows="2x2jobs", skip={"log": [1]})).recorded
    # A model's jobs never started: nobody will miss it.
    assert with_cases(*plan_of(FOUR, recorded="if-known")).unrecorded == ""


def test_what_is_missing_is_said_above_the_values() -> None:
    experiment = with_cases(*plan_of(PARTLY, recorded="if-known", metrics=["mean_wait"]))
    values = section(run_experiment(experiment), "values")
    snapshot(values.paragraphs)


def test_without_it_nothing_is_said_of_it() -> None:
    contenders = (resolve("FCFS"), resolve("SAF"))
    outcome = run_experiment(Experiment("e", (case_of(played(FOUR)),), contenders))
    assert not {"recorded", "replay"} & {each.name for each in outcome.sections}
    assert "recorded" not in finding(outcome)
    assert "recorded" not in setting(outcome.experiment, outcome.evaluation)
    assert outcome.evaluation.recorded is None


@pytest.mark.parametrize("value", ['"always"', "1", "[true]"])
def test_a_wrong_word_in_a_protocol_is_refused(value: str, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(
        "schema_version = 1\n[logs.a]\nembedded = true\n[[experiments]]\nname = 'e'\npolicies = ['FCFS']\n"
        f"recorded = {value}\n"
    )
    refused(InputError, "p.toml if-known recorded e", read_protocol, path)
