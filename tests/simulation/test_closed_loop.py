"""Predictions come from the simulated past, and from nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from engine.test_predicted_twin import flattened

from habits import users_with_habits
from naive.online import Job as Past
from naive.predicted import Known, random_tree
from naive.slurm_predicted import Seen, foresee_record
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.engine.events import NEVER
from policyfactory.engine.past import FEATURES
from policyfactory.policy.policy import Policy
from policyfactory.prediction.features import known_of
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Forests, Predictor
from policyfactory.simulation.predicted import Foreseen, predict_record, run_predicted
from policyfactory.simulation.prepare import prepare
from policyfactory.simulation.rules import Backfill, Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from policyfactory.workload.presets import CleaningStep
from refusals import refusal, refused
from support import OTHER_KERNEL

POLICY = Policy("PREDICTED", "-ln(s) + ln(e) + 0.4*ln(q)")
OPTIONS = PredictorOptions(every_days=1, first_days=1, least=60, trees=10, leaves=5)


def foreseen(workload: Workload, options: PredictorOptions = OPTIONS) -> Foreseen:
    return run_predicted(prepare(workload, Rules()), POLICY, Predictor(options))


def slowdown(start: np.ndarray, workload: Workload) -> float:
    wait = start - workload.submit
    return float(np.maximum((wait + workload.run_time) / np.maximum(workload.run_time, 10), 1).mean())


@pytest.mark.parametrize("renew_s", [0, 300])
def test_what_happens_after_a_decision_changes_no_earlier_key(renew_s: int) -> None:
    workload = users_with_habits(1)
    options = dataclasses.replace(OPTIONS, renew_s=renew_s)
    before = foreseen(workload, options)
    n, now = len(workload), int(workload.submit[400])
    ends = before.start + workload.run_time
    rng = np.random.default_rng(2)
    # All that is decided after this instant: who comes then, and how long those run who have not ended by then.
    later, runs_on = workload.submit > now, (before.start < now) & (ends > now)
    run = np.where(runs_on, now - before.start + rng.integers(1, 5000, n), workload.run_time)
    run = np.where(before.start >= now, rng.integers(1, 9000, n), run)
    changed = dataclasses.replace(
        workload,
        run_time=run,
        requested_time=np.where(later, rng.integers(1, 9000, n), workload.requested_time),
        processors=np.where(later, rng.integers(1, 9, n), workload.processors),
        user=np.where(later, rng.integers(0, 9, n), workload.user),
    )
    after = foreseen(changed, options)
    assert len(before.trainings) >= 3
    assert after.start[before.start < now].tolist() == before.start[before.start < now].tolist()
    np.testing.assert_array_equal(after.features[~later], before.features[~later])
    decided = before.start < now
    np.testing.assert_array_equal(after.predictions[:, decided], before.predictions[:, decided])
    assert (after.start != before.start).any(), "nothing was changed"


def test_history_is_that_of_the_simulated_schedule() -> None:
    # The recorded starts are another schedule's: they change nothing.
    workload = users_with_habits(3)
    recorded = dataclasses.replace(workload, start=workload.submit + 100_000)
    np.testing.assert_array_equal(foreseen(recorded).features, foreseen(workload).features)


def test_habits_are_learned_and_used() -> None:
    workload = users_with_habits(4, 1500)
    made = foreseen(workload)
    half = np.arange(len(workload)) >= 750
    short = half & (workload.user % 2 == 0)
    assert np.median(made.predictions[1, short]) > 0.2 > np.median(made.predictions[1, half & ~short])
    assert slowdown(made.start, workload) < slowdown(simulate(workload, "SPF").start, workload)


def test_simulate_closes_the_loop_by_itself_and_gives_the_same() -> None:
    workload = users_with_habits(5, 200)
    schedule = simulate(workload, POLICY, predictor=Predictor(OPTIONS))
    assert schedule.start.tolist() == foreseen(workload).start.tolist()
    assert len(simulate(workload, "SPF", backfill_policy=POLICY).start) == 200


def test_a_kept_model_is_not_trained_anew() -> None:
    workload = users_with_habits(6)
    model = foreseen(workload).trainings[-1].forests
    kept = run_predicted(prepare(workload, Rules()), POLICY, Predictor(OPTIONS, model))
    assert kept.trainings == ()
    assert (kept.predictions[1, :20] < 1).all()


def test_models_of_an_earlier_run_of_the_same_jobs_come_at_the_same_instants() -> None:
    workload = users_with_habits(6)
    first = foreseen(workload)
    again = run_predicted(prepare(workload, Rules()), POLICY, Predictor(OPTIONS, trainings=first.trainings))
    assert again.start.tolist() == first.start.tolist()
    assert again.model_of.tolist() == first.model_of.tolist()
    assert again.predictions.tolist() == first.predictions.tolist()


def test_a_kept_model_without_a_ninth_decile_is_refused_where_it_is_read() -> None:
    workload = users_with_habits(6)
    model = foreseen(workload).trainings[-1].forests
    refused(
        EvaluationError,
        "TAIL e90 habits",
        simulate,
        workload,
        Policy("TAIL", "e90"),
        predictor=Predictor(OPTIONS, model),
    )
    assert len(simulate(workload, POLICY, predictor=Predictor(OPTIONS, model)).start) == len(workload)


def test_requests_that_are_run_times_are_refused() -> None:
    workload = users_with_habits(7, 50)
    step = dataclasses.make_dataclass("Step", ["what", "jobs"])("no requested time, the run time taken", 7)
    cleaning = dataclasses.replace(workload.cleaning, steps=(step,))
    refused(EvaluationError, "7 requested habits", simulate, dataclasses.replace(workload, cleaning=cleaning), POLICY)


def test_rules_of_other_programs_are_refused() -> None:
    refused(UsageError, "compatibility ocst", simulate, users_with_habits(8, 50), POLICY, compatibility="ocst")
    with refusal(EvaluationError, "compatibility ocst"):
        run_predicted(prepare(users_with_habits(8, 50), Rules(compatibility="ocst")), Policy("SHORT", "p"))


def test_an_empty_log_and_one_job() -> None:
    workload = users_with_habits(9, 50)
    assert len(simulate(workload[0:0], POLICY).start) == 0
    assert simulate(workload[0:1], POLICY).start.tolist() == [workload.submit[0]]


@pytest.mark.parametrize("backfill", ["easy", pytest.param("slurm", marks=OTHER_KERNEL), "conservative"])
def test_for_counts_of_the_users_jobs_nothing_is_trained(backfill: Backfill) -> None:
    workload = users_with_habits(1)
    policy = Policy("COUNTED", "ln(p) + 0.3*ln(1 + user_running) - 0.1*ln(1 + user_waiting)")
    assert policy.needs_predictions
    assert not policy.needs_model
    rules = Rules(backfill=backfill)
    found = simulate(workload, policy, rules)
    if backfill != "slurm":
        assert run_predicted(prepare(workload, rules), policy).trainings == ()
    # With e in the formula, though it orders nothing, a model is trained; the counts are the same.
    same = Policy("SAME", f"{policy.formula} + 0*e")
    assert same.needs_model
    assert simulate(workload, same, rules, predictor=Predictor(OPTIONS)).start.tolist() == found.start.tolist()
    assert found.start.tolist() != simulate(workload, "SPF", rules).start.tolist()
    # Requests that tell the run times tell a count nothing.
    step = CleaningStep("changed", len(workload), "no requested time, the run time taken", "", 1, 1)
    cleaning = dataclasses.replace(workload.cleaning, steps=(step,))
    telling = dataclasses.replace(workload, cleaning=cleaning)
    assert simulate(telling, policy, rules).start.tolist() == found.start.tolist()
    refused(EvaluationError, "--estimate-missing", simulate, telling, same, rules)


@pytest.mark.parametrize("seed", range(4))
def test_a_record_is_predicted_as_the_plain_twin_predicts_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    log = users_with_habits(1).select(slice(0, 250))
    # Any starts will do, some of them unknown, and jobs that have not ended.
    start = log.submit + rng.integers(0, 40_000, len(log))
    start = np.where(rng.random(len(log)) < 0.05, -1, start)
    end = np.where(start < 0, NEVER, start + log.run_time)
    end = np.where(rng.random(len(log)) < 0.05, NEVER, end)
    trees = [[random_tree(rng, FEATURES, 4, 0.4) for _ in range(6)] for _ in range(3)]
    predictor = Predictor(OPTIONS, Forests(*map(flattened, trees)))
    predicted, trainings = predict_record(log, start, end, predictor)
    known = [Known(int(user), *(row.tolist() for row in rows)) for user, *rows in zip(*known_of(log), strict=True)]
    past = [Past(row, int(submit), 0, 0, 0) for row, submit in enumerate(log.submit)]
    seen = Seen(past, 1, lambda *_: 0.0, known=known, forests=tuple(trees))
    foresee_record(seen, start.tolist(), end.tolist())
    plain = np.array([seen.predictions[row][:2] for row in range(len(log))]).T
    np.testing.assert_allclose(predicted, plain, rtol=1e-12)
    assert not trainings
