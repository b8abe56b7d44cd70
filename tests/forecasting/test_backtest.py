"""The backtest: its measures by hand, what it must show of the truth, of noise, and of what is calibrated."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from forecasting.queues_of import SITE, busy, given_up, loop, recorded_log

from policyfactory.cli.forecast import RESULTS, read_calibration
from policyfactory.core.errors import EvaluationError, InputError, UsageError
from policyfactory.forecasting import backtest as module
from policyfactory.forecasting.backtest import (
    BOOSTING,
    NO_ARRIVALS,
    NO_FOLLOWERS,
    OTHERS,
    OURS,
    PLAN,
    QUARTER,
    RAW,
    TRUE_ARRIVALS,
    TRUE_RUNS,
    Backtest,
    backtest,
    features_of,
    waits_alike,
)
from policyfactory.forecasting.record import loop_of
from policyfactory.forecasting.views import sections_of_backtest
from policyfactory.site.model import Partition, Site
from policyfactory.site.values import Named
from policyfactory.statistics.calibration import LEVELS, Stretch
from policyfactory.workload.jobs import Requests
from refusals import refusal


@pytest.fixture(scope="module", params=[None, pytest.param(SITE, marks=pytest.mark.slow)], ids=["easy", "slurm"])
def tried(request: pytest.FixtureRequest) -> Backtest:
    return backtest(busy(14), request.param, 40, futures=20)


def test_each_method_is_measured_and_true_run_times_are_best(tried: Backtest) -> None:
    scores = {name: tried.score(name) for name in tried.methods}
    assert len({score.jobs for score in scores.values()}) == 1
    assert min(scores, key=lambda name: scores[name].pinball) == TRUE_RUNS
    assert scores[OURS].pinball < scores[PLAN].pinball
    assert tried.loss_ratio(OURS, PLAN).value == pytest.approx(scores[OURS].pinball / scores[PLAN].pinball)
    for score in scores.values():
        assert score.inside50 <= score.inside90 <= 1
        assert score.inside90 + score.early + score.late == pytest.approx(1)


def test_measures_are_those_written_out_for_each_instant(tried: Backtest) -> None:
    losses, inside = [], []
    for told in tried.told:
        values = told.quantiles[OURS]
        mine = [
            sum(max(p * (y - q), (p - 1) * (y - q)) for p, q in zip(LEVELS, column, strict=True)) / 5
            for y, column, new in zip(told.start, values.T, told.is_new, strict=True)
            if not new
        ]
        certain = ((values[0] >= 86_400) & (told.start >= 86_400)) | ((values[4] <= 0) & (told.start <= 0))
        within = [
            low <= y <= high
            for y, low, high, new, sure in zip(told.start, values[0], values[4], told.is_new, certain, strict=True)
            if not new and not sure
        ]
        losses += [np.mean(mine)] if mine else []
        inside += [np.mean(within)] if within else []
    assert tried.score(OURS).pinball == pytest.approx(np.mean(losses))
    assert tried.score(OURS).inside90 == pytest.approx(np.mean(inside))


@pytest.mark.parametrize("cancels", [False, True], ids=["", "cancels"])
def test_what_changes_nothing_is_worth_nothing_to_the_digit(*, cancels: bool) -> None:
    log = busy(14)
    nobody = dataclasses.replace(log, user=np.full(len(log), -1))
    found = backtest(nobody, None, 10, futures=10, cancelled=given_up(log) if cancels else None)
    assert set(found.changed) >= {NO_ARRIVALS, NO_FOLLOWERS, TRUE_ARRIVALS, TRUE_RUNS}
    # Nobody is known to follow; fewer futures are not what it costs to leave them out.
    assert found.loss_ratio(QUARTER, NO_FOLLOWERS).value == 1.0
    assert found.loss_ratio(RAW, QUARTER).value != 1.0
    assert set(found.as_dict()["loss_over_quarter"]) == {*found.changed}


def test_forecasts_learn_only_from_those_whose_horizons_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(outcomes: list[object], horizon: float) -> Stretch:
        seen.append(len(outcomes))
        return Stretch(0.1, (1.0, 1.0, 1.0, 1.0), max(len(outcomes), 1))

    monkeypatch.setattr(module, "stretch_of", watched)
    found = backtest(busy(14), None, 20, futures=10)
    times = [told.now for told in found.told]
    # The last count is for forecasts after the log, by which all horizons are over.
    for now, count in zip(times, seen[:-1], strict=True):
        assert count <= 10 + sum(other + 86_400 <= now for other in times)
    assert seen[-1] >= len(times)


def test_a_backtest_by_the_record_is_that_of_the_simulation_if_the_record_is_simulated() -> None:
    found, _ = loop()
    log = recorded_log(found)
    by_record, by_simulation = (backtest(log, None, 10, futures=10, recorded=recorded) for recorded in (True, False))
    for first, second in zip(by_record.told, by_simulation.told, strict=True):
        assert first.quantiles[RAW].tobytes() == second.quantiles[RAW].tobytes()


def test_jobs_of_several_partitions_wait_for_all_and_run_in_one() -> None:
    two = Partition("fat", "n[1-8]", default=True), Partition("thin", "n[9-16]")
    site, log = dataclasses.replace(SITE, partitions=two), busy(10)
    asked = Requests.unknown(len(log))
    names = {"partition": ("fat",), "partitions": ("fat,thin",)}
    ones = {"partition": np.zeros(len(log), dtype=np.int64), "partitions": np.where(log.processors <= 8, 0, -1)}
    log = dataclasses.replace(log, requests=dataclasses.replace(asked, names=names, **ones))
    instants = log.submit[-400::40]
    found = loop_of(log, site, instants, is_recorded=False)
    jobs = [job for now in instants.tolist() for job in found.standing(now).snapshot.jobs if job.cores <= 8]
    assert {job.partitions for job in jobs if job.state == "running"} == {("fat",), ("thin",)}
    assert {job.partitions for job in jobs if job.state == "waiting"} == {("fat", "thin")}
    for job in jobs:
        nodes = {int(name[1:]) for name in Named().expand(job.node_list)} if job.node_list else set()
        assert not nodes or (max(nodes) <= 8) == (job.partitions == ("fat",))


def test_nobody_is_forecast_who_does_not_wait() -> None:
    log = busy(14)
    with refusal(EvaluationError, "busy nothing", cure=False):
        backtest(dataclasses.replace(log, machine=10_000), None, 10, futures=5)


@pytest.mark.parametrize("site", [None, SITE])
def test_short_logs_and_wrong_numbers_are_refused(site: Site | None) -> None:
    log = busy(14)
    for facts, call in (
        ("backtest 3", lambda: backtest(log, site, 3)),
        ("horizon 1s", lambda: backtest(log, site, 20, horizon="1s")),
        ("busy week", lambda: backtest(log.select(log.submit < 86_400 * 12), site, 20)),
    ):
        with refusal(UsageError, facts):
            call()


def test_waits_of_like_jobs_are_of_those_that_waited_as_long_and_started_before() -> None:
    found, instants = loop()
    record, now = found.record, instants[-1]
    rows = record.waiting(now)
    told = waits_alike(record, rows, now, 86_400)
    assert told.shape == (5, len(rows))
    assert (np.diff(told, axis=0) >= 0).all()
    later = np.where(record.start >= now, record.start + 999, record.start)
    changed = dataclasses.replace(record, start=later)
    assert waits_alike(changed, rows, now, 86_400).tobytes() == told.tobytes()
    assert features_of(changed, rows, now).tobytes() == features_of(record, rows, now).tobytes()


def test_what_a_backtest_teaches_comes_back_from_its_file(tried: Backtest, tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text(json.dumps(tried.as_dict()))
    assert read_calibration(tmp_path) == tried.stretch
    assert read_calibration(tmp_path / RESULTS) == tried.stretch


THREE = '{"calibration": {"shift": 0, "factors": [1, 1, 1], "instants": 5}}'


@pytest.mark.parametrize("text", [None, "{", "{}", THREE, THREE.replace("5", "1e999"), "[]", "[" * 100_000])
def test_what_is_no_calibration_is_refused(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / RESULTS).write_text(text)
    with refusal(InputError, "--backtest --output"):
        read_calibration(tmp_path)


def test_the_report_has_all_methods_and_says_how_many_starts_were_contained(tried: Backtest) -> None:
    (section,) = sections_of_backtest(tried)
    names = {table.name for table in section.tables}
    assert names == {"methods-intervals", "methods-errors", "groups-intervals", "groups-errors"}
    assert [row[0].value for row in section.tables[0].rows] == list(tried.methods)
    assert {BOOSTING, *OTHERS} < {*tried.methods}
    content = json.loads(json.dumps(tried.as_dict()))
    assert content["methods"][OURS]["jobs"] == tried.score(OURS).jobs
