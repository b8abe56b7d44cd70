"""Predictions of a log: what is counted, from which past, and beside which rules."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

import policyfactory as pf
from habits import users_with_habits, write_log
from policyfactory.core.errors import UsageError
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Predictor
from policyfactory.review.predictions import MODEL, RULES, Predicted
from policyfactory.simulation.predicted import run_predicted
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Attributes, Workload

OPTIONS = PredictorOptions(every_days=1, first_days=1, least=60, trees=10, leaves=5)


@pytest.fixture(scope="module")
def found() -> Predicted:
    return pf.predict(users_with_habits(1), "FCFS", OPTIONS)


def test_predictions_are_those_of_the_closed_loop(found: Predicted) -> None:
    prepared = prepare(found.workload, Rules())
    once = dataclasses.replace(OPTIONS, renew_s=0)
    loop = run_predicted(prepared, found.policy, Predictor(once), tail=True)
    np.testing.assert_array_equal([found.mean, found.shortness, found.tail], loop.predictions[:3])
    assert found.trained == tuple(one.forests.jobs for one in loop.trainings)
    assert len(found.trained) == 5


def test_habits_are_told_from_requests(found: Predicted) -> None:
    overall = found.overall.measures
    assert list(overall) == [MODEL, *RULES]
    assert overall[MODEL].absolute_s < 0.5 * overall["request"].absolute_s
    assert overall[MODEL].auc > 0.95
    # Four users out of eight have one habit: a request says nothing of it.
    assert overall["request"].auc < 0.6
    assert overall["request"].under == 0


def test_groups_are_all_jobs(found: Predicted) -> None:
    jobs = int(found.is_modelled.sum())
    assert found.overall.measures[MODEL].jobs == jobs
    for groups in (found.by_history, found.by_month):
        assert sum(group.measures[MODEL].jobs for group in groups) == jobs
    assert found.before is not None
    assert found.before.measures[MODEL].jobs == len(found) - jobs
    # Before the first training the request is taken, and only then.
    assert dataclasses.astuple(found.before.measures[MODEL])[:5] == (
        pytest.approx(dataclasses.astuple(found.before.measures["request"])[:5])
    )
    assert sum(row["jobs"] for row in found.calibration()) == jobs
    assert sum(row["jobs"] for row in found.times()) == jobs


def test_history_is_counted_in_the_simulation(found: Predicted) -> None:
    schedule = pf.simulate(found.workload, "FCFS")
    for row in range(0, len(found), 37):
        mine = found.workload.user == found.workload.user[row]
        assert found.history[row] == (mine & (schedule.end <= found.workload.submit[row])).sum()


def test_months_are_those_of_the_calendar_or_of_30_days() -> None:
    workload = users_with_habits(2, 400, days=70)
    dated = dataclasses.replace(workload, unix_start=993_945_600 - 86_400, time_zone="Europe/Stockholm")
    options = dataclasses.replace(OPTIONS, first_days=5, every_days=40)
    names = [group.name for group in pf.predict(dated, options=options).by_month]
    assert names == ["2001-07", "2001-08", "2001-09"]
    plain = pf.predict(workload, options=options).by_month
    assert [group.name for group in plain] == ["days 1 to 30", "days 31 to 60", "days 61 to 90"]


def test_requests_that_were_raised_are_counted() -> None:
    workload = users_with_habits(3)
    request = workload.requested_time.copy()
    run = workload.run_time.copy()
    run[100], request[100] = 7321, 7321  # raised: 7200 is a usual request
    run[101], request[101] = 7200, 7200  # met its limit, or was raised to it
    found = pf.predict(dataclasses.replace(workload, run_time=run, requested_time=request), options=OPTIONS)
    others = (run == request) & (np.arange(len(run)) != 100)
    assert (found.requests.undone, found.requests.left, found.requests.longer) == (1, others.sum(), 0)
    assert found.rules["request"][100] == 7200
    assert "1 were raised to the run time, which is undone" in found.summary()


def test_a_model_is_used_as_it_is(found: Predicted, tmp_path: Path) -> None:
    pf.save_forests(found.model, tmp_path / "model.json", provenance={})
    other = users_with_habits(9)
    given = pf.predict(other, model=tmp_path / "model.json")
    assert given.trained == ()
    assert given.is_modelled.all()
    assert given.before is None
    kept = Predictor(PredictorOptions(renew_s=0), found.model)
    loop = run_predicted(prepare(other, Rules()), given.policy, kept, tail=True)
    np.testing.assert_array_equal([given.mean, given.shortness, given.tail], loop.predictions[:3])
    assert "by a model of" in given.summary()
    # Without trees for the ninth decile there is none.
    short = dataclasses.replace(found.model, tail=found.model.tail._replace(roots=np.empty(0, dtype=np.int64)))
    none = pf.predict(other, model=short)
    assert math.isnan(none.coverage()["e90"])


def test_the_frame_and_the_picture(found: Predicted) -> None:
    frame = found.frame()
    assert len(frame) == len(found)
    assert {"e", "s", "e90", "mean_of_last_two", "user_ended", "training"} <= set(frame.columns)
    assert len(found.plot().axes) == 2


def without(workload: Workload, user: int) -> Workload:
    return dataclasses.replace(workload, user=np.full(len(workload), user))


def test_of_unknown_users_there_is_a_group() -> None:
    found = pf.predict(without(users_with_habits(4), -1), options=OPTIONS)
    assert [group.name for group in found.by_history if group.measures[MODEL].jobs] == ["user unknown"]
    assert found.missing[0].startswith("users: nothing is left but requests, processors")
    np.testing.assert_array_equal(found.rules["nearest neighbours"], found.rules["request"])


def test_what_is_left_out_is_not_looked_at() -> None:
    workload = users_with_habits(7)
    known = Attributes(**{field.name: workload.user for field in dataclasses.fields(Attributes)})
    names = ("requested_memory", "group", "executable", "queue", "partition")
    told = dataclasses.replace(workload, attributes=known)
    less = pf.predict(told, options=OPTIONS, leave_out=names)
    assert less.missing == ("group, executable, queue, requested memory",)
    assert pf.predict(told, options=OPTIONS).missing == ()
    status = dataclasses.replace(workload, attributes=known.without(names))
    np.testing.assert_array_equal(less.mean, pf.predict(status, options=OPTIONS).mean)
    with pytest.raises(UsageError, match="no attribute 'status' to leave out; choose of requested_memory, group"):
        pf.predict(told, options=OPTIONS, leave_out=["status"])


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("policy", [pytest.param("FCFS", marks=pytest.mark.slow), "-ln(s) + ln(e)"])
def test_what_happens_later_changes_no_earlier_prediction(tmp_path: Path, policy: str) -> None:
    workload = users_with_habits(5)
    order = pf.Policy("P", policy) if policy != "FCFS" else policy
    before = pf.predict(workload, order, OPTIONS, output=tmp_path / "before")
    at = int(workload.submit[400])
    schedule = pf.simulate(workload, order, predictor=Predictor(dataclasses.replace(OPTIONS, renew_s=0)))
    runs_on = schedule.end > at
    run = np.where(runs_on, np.maximum(workload.run_time, at - schedule.start) + 1234, workload.run_time)
    changed = dataclasses.replace(workload, run_time=run)
    after = pf.predict(changed, order, OPTIONS, output=tmp_path / "after")
    early = workload.submit <= at
    for name in ("mean", "shortness", "tail", "history"):
        np.testing.assert_array_equal(getattr(after, name)[early], getattr(before, name)[early])
    for rule in before.rules:
        np.testing.assert_array_equal(after.rules[rule][early], before.rules[rule][early])
    assert not np.array_equal(after.mean, before.mean), "nothing was changed"
    lines = [(tmp_path / name / "predictions.csv").read_text().splitlines() for name in ("before", "after")]
    rows = int(early.sum()) + 1
    assert lines[0][:rows] == lines[1][:rows]


def test_a_file_is_read_as_it_is_told(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.swf", users_with_habits(6), header="")
    found = pf.predict(log, options=OPTIONS, processors=8)
    assert found.workload.machine == 8
