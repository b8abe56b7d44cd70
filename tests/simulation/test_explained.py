"""A job of a log explained: its user's past, its predictions and its place are those of the run."""

from __future__ import annotations

import dataclasses
import functools
import math
import re

import numpy as np
import pytest

from habits import users_with_habits
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.policy.expression import PREDICTIONS
from policyfactory.policy.policy import Policy
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import PastJob, Predictor, UserSeen, sentences
from policyfactory.simulation.explained import explain_job
from policyfactory.simulation.predicted import Foreseen, run_predicted, run_to_submission
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Workload
from refusals import refusal, refused

INDEX = Policy("INDEX", "-ln(s) + ln(e) + 0.4*ln(q)")
AGEING = Policy("AGEING", "ln(e) - ln(s) - w/20000")
# Predicted once: what a job was given at its submission is there at the end, too.
ONCE = Predictor(PredictorOptions(least=100, first_days=1, every_days=1, trees=10, renew_s=0))


@functools.cache
def busy_log() -> Workload:
    """Users with habits on a machine that is too small for them."""
    return users_with_habits(1, jobs=400, days=3)


@functools.cache
def whole(policy: Policy) -> Foreseen:
    return run_predicted(prepare(busy_log(), Rules()), policy, ONCE)


def past_of(run: Foreseen, row: int) -> UserSeen:
    """What had ended, ran and waited of the user, counted in the schedule."""
    jobs, now = busy_log(), int(busy_log().submit[row])
    end, own = run.start + jobs.run_time, jobs.user == jobs.user[row]
    before = own & (np.arange(len(jobs)) < row)
    over = np.flatnonzero(own & (end <= now) & (run.start < now))
    newest = over[np.lexsort((over, end[over]))][::-1]
    past = [
        PastJob(float(jobs.requested_time[at]), float(jobs.processors[at]), float(jobs.run_time[at])) for at in newest
    ]
    running = int((before & (run.start < now) & (end > now)).sum())
    return UserSeen(len(newest), tuple(past[:60]), int((before & (run.start >= now)).sum()), running)


@pytest.mark.parametrize("policy", [INDEX, AGEING], ids=lambda policy: policy.name)
def test_past_predictions_and_place_are_those_of_the_run(policy: Policy) -> None:
    jobs, run, ahead = busy_log(), whole(policy), 0
    for row in range(150, len(jobs), 23):
        made = explain_job(policy, jobs, int(jobs.job_id[row]), ONCE)
        assert [getattr(made.job, name) for name in PREDICTIONS] == run.predictions[:, row].tolist()
        assert made.seen[:2] == tuple(sentences(past_of(run, row), made.job.p, made.job.q))
        now = jobs.submit[row]
        queue = np.flatnonzero((jobs.submit <= now) & (run.start >= now))
        waited = (now - jobs.submit[queue]).astype(float)
        scores = policy.scores(
            jobs.requested_time[queue], jobs.processors[queue], waited, waited, predictions=run.predictions[:, queue]
        )
        assert made.score == pytest.approx(scores[queue == row][0], rel=1e-12)
        own = scores[queue == row]
        better = int(((scores < own) | ((scores == own) & (queue < row))).sum())
        ahead += better
        words = f"{len(queue) - 1:,} other job{'s' * (len(queue) != 2)} waited when it was submitted, {better} of them"
        if len(queue) == 1:
            words = "No other job waited when it was submitted"
        assert made.seen[2].startswith(words)
        assert ("was started at once" in made.seen[2]) == (run.start[row] == now)
    assert ahead > 20


def test_what_the_predictions_do_to_the_score_and_the_place() -> None:
    jobs = busy_log()
    made = explain_job(INDEX, jobs, int(jobs.job_id[350]), ONCE)
    p, q = made.job.p, made.job.q
    without = -math.log(10 / p) + math.log(p) + 0.4 * math.log(q)
    assert (
        f"By its request alone its score would be {without:.6g}; the predictions make it {made.score:.6g}"
        in (made.changes[0])
    )
    assert ("forward" in made.changes[0]) == (made.score < without)
    assert re.fullmatch(
        r"By its request alone, all others as they are, [\d,]+ jobs? would be ahead of it.", made.seen[3]
    )
    assert made.changes[1].startswith("By the past of its user it is expected to run ")
    assert made.as_dict()["seen"] == list(made.seen)


def test_before_the_first_training_the_request_is_taken() -> None:
    jobs = busy_log()
    made = explain_job(INDEX, jobs, int(jobs.job_id[30]))
    assert made.job.e == pytest.approx(made.job.p)
    assert "The request is taken for the run time." in made.seen
    assert "Too few jobs had ended in the log for a model to be trained." in made.seen
    assert made.changes[0].startswith("By its request alone it is expected to run ")


def test_of_an_unknown_user_the_jobs_of_others_speak() -> None:
    log = users_with_habits(1, jobs=400, days=3)
    user = np.where(np.arange(400) == 300, -1, log.user)
    jobs = dataclasses.replace(log, user=user)
    made = explain_job(INDEX, jobs, int(jobs.job_id[300]), ONCE)
    assert made.seen[0] == "Its user is not known, so there is no past to look at."
    assert made.changes[1].startswith("By its request and by jobs of others it is expected to run ")


def test_counts_that_the_policy_reads_are_said_once() -> None:
    jobs = busy_log()
    policy = Policy("FAIR", "ln(e) + user_waiting + user_running")
    made = explain_job(policy, jobs, int(jobs.job_id[300]), ONCE)
    assert sum("of its user waited" in one for one in (*made.seen, *made.changes)) == 1


def test_a_policy_without_predictions_has_a_place_too() -> None:
    jobs = busy_log()
    made = explain_job("SAF", jobs, int(jobs.job_id[300]))
    assert len(made.seen) == 1
    assert "when it was submitted" in made.seen[0]
    assert made.score == made.job.p * made.job.q


def test_jobs_over_the_threshold_are_ahead() -> None:
    jobs = busy_log()
    late = Policy("LATE", "-ln(s) + ln(e) + 0.4*ln(q)", threshold=0)
    row = 300
    made = explain_job(late, jobs, int(jobs.job_id[row]), ONCE)
    start = whole(late).start
    waiting = int(((jobs.submit < jobs.submit[row]) & (start >= jobs.submit[row])).sum())
    assert waiting
    assert f"{waiting} of them ahead of it" in made.seen[2]


def test_what_is_stopped_sees_no_later_job() -> None:
    prepared = prepare(busy_log(), Rules())
    at = run_to_submission(prepared, INDEX, 200, ONCE)
    now = busy_log().submit[200]
    np.testing.assert_array_equal(at.start >= 0, (whole(INDEX).start <= now))
    assert not at.predictions[:, busy_log().submit > now].any()


def test_wrong_use() -> None:
    refused(UsageError, "4000 400 1", explain_job, INDEX, busy_log(), 4000)
    forests = whole(INDEX).trainings[-1].forests
    with refusal(EvaluationError, "e90 reads habits"):
        explain_job(Policy("TAIL", "e90"), busy_log(), 300, Predictor(forests=forests))
