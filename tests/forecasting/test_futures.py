"""Futures: with the truth in them they are what happened; nothing later is looked at; draws are the same for all."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from forecasting.queues_of import SITE, busy, given_up, loop

from policyfactory.engine.events import NEVER
from policyfactory.forecasting.futures import (
    ComingJobs,
    Draws,
    arrivals_of,
    as_recorded,
    queues_of,
    starts_of,
)
from policyfactory.forecasting.record import JobRecord, Loop, QueueStanding, loop_of, record_of
from policyfactory.policy.store import resolve
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Predictor
from policyfactory.simulation.predicted import predict_record, run_predicted
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.slurm.queue import on_nodes
from policyfactory.site.model import NodeGroup, Priority, Site
from policyfactory.workload.jobs import Workload
from policyfactory.workload.snapshot import QueuedJob, Snapshot

TRUTH = Draws(futures=1, run_times="true", arrivals="true")
DAY = 86_400


def starts(found: Loop, standing: QueueStanding, draws: Draws, workers: int = 1) -> np.ndarray:
    return starts_of(standing, queues_of(standing, found.site, draws.horizon), draws, workers)


def happened(standing: QueueStanding) -> np.ndarray:
    rows = standing.rows[standing.running :]
    return np.minimum(standing.record.start[rows] - standing.now, DAY)


def test_with_true_run_times_and_arrivals_easy_gives_what_happened() -> None:
    found, instants = loop()
    assert len(instants) > 10
    for now in instants:
        standing = found.standing(now)
        np.testing.assert_array_equal(starts(found, standing, TRUTH)[0], happened(standing))


AGED = dataclasses.replace(SITE, priority=Priority(age=1_000_000, job_size=100_000))
RULES = {
    "slurm": SITE,
    "age": AGED,
    "accrue": dataclasses.replace(AGED, priority=dataclasses.replace(AGED.priority, flags=("ACCRUE_ALWAYS",))),
}


@pytest.mark.parametrize("site", [SITE, AGED], ids=["slurm", "age"])
def test_with_the_truth_slurm_gives_what_happened_but_for_the_clocks_of_its_passes(site: Site) -> None:
    found, instants = loop(site)
    away = []
    for now in instants:
        standing = found.standing(now)
        away += np.abs(starts(found, standing, TRUTH)[0] - happened(standing)).tolist()
    assert np.quantile(away, 0.9) <= 60


@pytest.mark.parametrize(("site", "away"), [(None, 0), (SITE, 60)], ids=["easy", "slurm"])
def test_with_true_cancellations_too_there_is_what_happened(site: Site | None, away: int) -> None:
    found, instants = loop(site, cancels=True)
    record, off, gone = found.record, [], 0
    assert record.has_cancelled
    for now in instants:
        standing = found.standing(now)
        rows, running = standing.rows, standing.running
        later = np.flatnonzero((record.jobs.submit > now) & (record.jobs.submit <= now + DAY))
        run = queues_of(standing, site, DAY)(as_recorded(later))
        patience = np.where((record.start[rows] < 0) & (record.end[rows] < NEVER), record.end[rows] - now, NEVER)
        told = np.minimum(run(record.run_time(rows, NEVER - 1), patience, 0), DAY)
        came = record.starts(rows[running:], now, DAY)
        off += np.abs(told - came)[~np.isnan(came)].tolist()
        assert (told[np.isnan(came)] == DAY).all()
        gone += int(np.isnan(came).sum())
    assert gone > 5
    assert np.quantile(off, 0.9) <= away


def record_with_hazard(mean: float) -> JobRecord:
    """Return a record of jobs that would start after an hour, and are cancelled before at random."""
    rng, n = np.random.default_rng(2), 4000
    log = dataclasses.replace(busy(), submit=np.arange(len(busy())) * 600)[:n]
    patience = rng.exponential(mean, len(log)).astype(np.int64)
    start = np.where(patience < 3600, -1, log.submit + 3600)
    end = np.where(start < 0, log.submit + patience, start + 10)
    ones = np.ones(len(log))
    return JobRecord(log, start, end, ones, ones, by_end=np.argsort(end))


@pytest.mark.parametrize("waited", [0, 1800])
def test_jobs_are_cancelled_as_often_as_others_were_that_had_waited_as_long(waited: int) -> None:
    record = record_with_hazard(7200.0)
    model = record.hazard(int(record.jobs.submit[-1]))
    drawn = model.draw(waited, (np.arange(10_000) + 0.5) / 10_000)
    assert (drawn >= 1).all()
    for within in (600, 1200, 1700):
        assert (drawn <= within).mean() == pytest.approx(1 - np.exp(-within / 7200), abs=0.02)
    # Nobody has waited for longer than an hour.
    assert (drawn[drawn > 3600 - waited] == NEVER).all()


def test_nobody_is_taken_to_cancel_where_nobody_did_or_if_that_is_left_out() -> None:
    for cancels, draws in ((False, Draws(futures=20)), (True, Draws(futures=20, cancellations="none"))):
        found, instants = loop(cancels=cancels)
        standing = found.standing(instants[3])
        told = starts(found, standing, draws)
        assert told.tobytes() == starts(found, standing, dataclasses.replace(draws, cancellations="none")).tobytes()


def test_jobs_behind_others_start_earlier_where_some_are_cancelled() -> None:
    found, instants = loop(cancels=True)
    gains = []
    for now in instants[:8]:
        standing = found.standing(now)
        drawn, kept = (starts(found, standing, Draws(futures=40, cancellations=how)) for how in ("drawn", "none"))
        gains.append((kept - drawn).mean())
    assert np.mean(gains) > 60


@pytest.mark.parametrize("rules", ["easy", *RULES])
def test_who_waits_for_an_end_comes_when_it_is_over(rules: str) -> None:
    site, moved = RULES.get(rules), 0
    found, instants = loop(site)
    jobs = found.record.jobs
    for now in instants[:6]:
        come = np.flatnonzero((jobs.submit > now) & (jobs.submit <= now + DAY))[:40]
        # They are short, and so may go ahead of those that wait. Of jobs whose limits end in one second, their numbers
        # would decide between nodes.
        limit, end, later = jobs.requested_time.copy(), found.record.end.copy(), jobs.submit.copy()
        limit[come], end[come] = 1800 + 7 * np.arange(len(come)), found.record.start[come] + 1200
        short = dataclasses.replace(jobs, requested_time=limit)
        standing = found.standing(now)
        running, waiting = standing.running, len(standing.rows) - standing.running
        left = 900 * (1 + np.arange(running))
        run_time = standing.elapsed + np.append(left, np.full(waiting, 14_400))
        # Every second of them follows, and these are told in another order than that of their ends.
        submit = left[min(running, 2) - 1] + 60 * np.arange(len(come))
        follows = np.flatnonzero(np.arange(len(come)) % 2)
        leader = np.arange(len(follows)) % min(running, 2)
        # The same jobs, of a record in which they come at these times whatever ends.
        later[come], kept = now + submit, np.arange(len(jobs)) <= come[-1]
        fixed = dataclasses.replace(short.select(kept), submit=later[kept])

        def told(
            log: Workload,
            arrivals: ComingJobs,
            *,
            standing: QueueStanding = standing,
            end: np.ndarray = end,
            run_time: np.ndarray = run_time,
        ) -> np.ndarray:
            ends = end[: len(log)]
            record = dataclasses.replace(found.record, jobs=log, start=found.record.start[: len(log)], end=ends)
            queue = queues_of(dataclasses.replace(standing, record=record), site, DAY)(arrivals)
            return np.minimum(queue(run_time, np.full(len(run_time), NEVER), 3), DAY)

        first = told(fixed, as_recorded(come))
        order = np.argsort(leader, kind="stable")
        rows = np.append(np.delete(come, follows), come[follows][order])
        none = np.zeros(len(rows) - len(follows), dtype=np.int64)
        leaders, think = np.append(none - 1, leader[order]), np.append(none, (submit[follows] - left[leader])[order])
        np.testing.assert_array_equal(first, told(fixed, ComingJobs(0, rows, leaders, think)))
        moved += int((first != told(short, as_recorded(come[:0]))).sum())
    assert moved > 0


def answered() -> Workload:
    """Return a log in which users answer the ends of half of their jobs, as they were, with a short one."""
    record = loop()[0].record
    log, ended = record.jobs, np.flatnonzero(record.end < NEVER)[::2]
    submit = np.concatenate([log.submit, record.end[ended] + 300])
    order, n = np.argsort(submit, kind="stable"), len(submit)
    columns = {
        name: np.concatenate([getattr(log, name), np.full(len(ended), value)])[order]
        for name, value in (("run_time", 1200), ("requested_time", 1800), ("processors", 1), ("start", -1))
    }
    user = np.concatenate([log.user, log.user[ended]])[order]
    return dataclasses.replace(log, job_id=np.arange(1, n + 1), submit=submit[order], user=user, **columns)


def answering() -> tuple[Loop, list[int]]:
    log = answered()
    record = loop_of(log, None, log.submit[:0], is_recorded=False).record
    assert (record.followers.leader >= 0).mean() > 0.25
    instants = [now for now in log.submit[len(log) // 2 : -200 : 60].tolist() if len(record.waiting(now)) > 2]
    return Loop(record, None, {}, ()), instants[:10]


def test_users_answer_ends_as_they_did_unless_they_are_not_known_or_that_is_left_out() -> None:
    found, instants = answering()
    nobody = dataclasses.replace(found.record.jobs, user=np.full(len(found.record.jobs), -1))
    hidden, changed = dataclasses.replace(found, record=dataclasses.replace(found.record, jobs=nobody)), 0
    for now in instants:
        drawn, left_out = (starts(found, found.standing(now), Draws(20, followers=how)) for how in ("drawn", "none"))
        changed += drawn.tobytes() != left_out.tobytes()
        unknown, too = (starts(hidden, hidden.standing(now), Draws(20, followers=how)) for how in ("drawn", "none"))
        assert unknown.tobytes() == too.tobytes()
    assert changed > 5


@pytest.mark.parametrize("strangers", [False, True], ids=["known", "strangers"])
def test_as_many_come_as_came_in_other_weeks_whoever_runs(*, strangers: bool) -> None:
    found, instants = answering()
    come, came = 0, 0
    for now in instants:
        standing = found.standing(now)
        if strangers:
            user = found.record.jobs.user.copy()
            user[standing.rows] = 90 + np.arange(len(standing.rows))
            record = dataclasses.replace(found.record, jobs=dataclasses.replace(found.record.jobs, user=user))
            standing = dataclasses.replace(standing, record=record)
        run_time = standing.record.run_time(standing.rows, NEVER - 1)
        for how in ("drawn", "none"):
            weeks, _ = arrivals_of(standing, Draws(20, followers=how))
            count = sum(int((week.submit(standing, run_time) <= DAY).sum()) for week in weeks)
            come, came = come + count * (how == "drawn"), came + count * (how == "none")
    assert came > 1000
    assert come == pytest.approx(came, rel=0.1)


def test_without_a_week_before_nobody_comes_and_nothing_is_known_of_anybody() -> None:
    found, _ = answering()
    submit = found.record.jobs.submit
    for day in (3, 4, 5, 6):
        weeks, _ = arrivals_of(found.standing(int(submit[0]) + day * DAY), Draws(20))
        assert [len(week.rows) for week in weeks] == [0]


def test_an_end_is_that_of_its_job_also_beside_arrays_of_tasks() -> None:
    found, instants = loop()
    standing = found.standing(next(now for now in instants if found.standing(now).running > 1))
    jobs = [
        dataclasses.replace(job, tasks=3 if number == 0 else 1) for number, job in enumerate(standing.snapshot.jobs)
    ]
    array = dataclasses.replace(standing, snapshot=dataclasses.replace(standing.snapshot, jobs=tuple(jobs)))
    run_time = np.repeat(standing.elapsed, array.tasks) + 1000 * np.repeat(1 + np.arange(len(jobs)), array.tasks)
    arrivals = ComingJobs(0, standing.rows[:2], np.array([0, 1]), np.array([5, 5]))
    assert arrivals.submit(array, run_time).tolist() == [1005, 2005]


def test_a_record_is_predicted_as_the_closed_loop_predicts_its_jobs_when_they_are_submitted() -> None:
    log, policy = busy(4), resolve("FCFS")
    options = PredictorOptions(every_days=3, first_days=3, least=60, trees=10, leaves=5, renew_s=0)
    made = run_predicted(prepare(log, Rules()), policy, Predictor(options), tail=False)
    predicted, trainings = predict_record(log, made.start, made.start + log.run_time, Predictor(options))
    np.testing.assert_array_equal(predicted, made.predictions[:2])
    assert [training.instant for training in trainings] == [training.instant for training in made.trainings]
    again, _ = predict_record(log, made.start, made.start + log.run_time, Predictor(options, trainings=trainings))
    np.testing.assert_array_equal(again, predicted)


@pytest.mark.parametrize("cancels", [False, True], ids=["", "cancels"])
@pytest.mark.parametrize("site", [None, SITE], ids=["easy", "slurm"])
def test_nothing_that_comes_later_changes_a_forecast(site: Site | None, *, cancels: bool) -> None:
    found, instants = loop(site, cancels=cancels)
    now = instants[len(instants) // 2]
    jobs = found.record.jobs
    later = jobs.submit > now
    rng = np.random.default_rng(3)
    other = dataclasses.replace(
        jobs,
        run_time=np.where(later, rng.permutation(jobs.run_time), jobs.run_time),
        processors=np.where(later, rng.integers(1, 9, len(jobs)), jobs.processors),
        user=np.where(later, rng.integers(0, 99, len(jobs)), jobs.user),
    )
    # What is cancelled by then is; what is cancelled later, or submitted, is so at other times.
    cancelled = given_up(busy()) if cancels else np.full(len(jobs), -1)
    changed_later = np.where(cancelled > now, cancelled + 3600, cancelled)
    changed = loop_of(other, site, np.array([now]), changed_later, is_recorded=False)
    assert (changed.record.start != found.record.start).any()
    draws = Draws(futures=20)
    first, second = (starts(its, its.standing(now), draws) for its in (found, changed))
    assert first.tobytes() == second.tobytes()
    # Nor do the true run times of jobs that run.
    record = found.record
    end = np.where((record.end > now) & (record.start >= 0), record.start + jobs.requested_time, record.end)
    hidden = record_of(jobs, record.start, end)
    told = dataclasses.replace(found, record=hidden)
    assert starts(told, told.standing(now), draws).tobytes() == first.tobytes()


def test_the_same_seed_gives_the_same_bytes_whatever_the_workers_and_another_one_others() -> None:
    found, instants = loop()
    standing = found.standing(instants[0])
    first = starts(found, standing, Draws(futures=40))
    assert first.tobytes() == starts(found, standing, Draws(futures=40), workers=3).tobytes()
    assert first.tobytes() != starts(found, standing, Draws(futures=40, seed=2)).tobytes()


def test_the_first_of_the_queue_starts_no_later_than_if_all_ran_to_their_limits() -> None:
    found, instants = loop()
    for now in instants[:5]:
        standing = found.standing(now)
        by_limits = starts(found, standing, Draws(futures=1, run_times="limit", arrivals="none"))
        drawn = starts(found, standing, Draws(futures=30, arrivals="none"))
        assert (drawn[:, 0] <= by_limits[0, 0]).all()


def test_running_jobs_without_nodes_get_free_ones_and_no_node_twice() -> None:
    site = dataclasses.replace(SITE, nodes=(NodeGroup("n[1-4]", 4),))
    jobs = tuple(
        QueuedJob(str(n), n, "running", "u", "", "", ("all",), 0, start=0, limit=60, cores=cores, nodes=nodes)
        for n, cores, nodes in ((1, 3, 0), (2, 4, 2), (3, 5, 0), (4, 9, 0))
    )
    placed = on_nodes(Snapshot("made", 10, jobs), site)
    held: dict[str, int] = {}
    for job in placed.jobs:
        for name, cores in zip(job.node_list.split(","), job.node_cores, strict=True):
            held[name] = held.get(name, 0) + cores
    assert [sum(job.node_cores) for job in placed.jobs] == [3, 4, 5, 4]
    assert max(held.values()) <= 4
