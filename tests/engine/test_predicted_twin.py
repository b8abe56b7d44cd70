"""The closed loop against its plain twin: features, predictions, starts, with and without renewal."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from naive.online import Job
from naive.online_cases import Shape, random_workload
from naive.predicted import Known, Predicted, Tree, random_tree
from policyfactory.engine.conservative import conservative
from policyfactory.engine.easy import easy, easy_timed
from policyfactory.engine.events import new_jobs
from policyfactory.engine.past import FEATURES, LEAF, MOST_RENEWED, Forest, no_forest
from policyfactory.policy.policy import Policy
from policyfactory.prediction.features import known_of
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Forests, Predictor
from policyfactory.simulation.predicted import Foreseen, run_predicted
from policyfactory.simulation.prepare import Prepared, prepare
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Attributes, Workload
from support import cases

STATIC = "-ln(s) + ln(e) + 0.4*ln(q) + 0.01*e90 - 0.3*user_waiting + user_running/7"
TIMED = "-ln(s) + ln(e) - 0.2*ln(1 + w) + 0.1*user_running"
SHAPE = Shape(jobs=40, machine=8, gap=60, longest=400)


def flattened(trees: list[Tree]) -> Forest:
    """Return plain trees as the engine's table."""
    rows: list[tuple[int, float, int, int]] = []

    def put(tree: Tree) -> int:
        at = len(rows)
        rows.append((LEAF, tree.value, 0, 0))
        if tree.left is not None and tree.right is not None:
            rows[at] = (tree.feature, tree.threshold, put(tree.left), put(tree.right))
        return at

    roots = [put(tree) for tree in trees]
    feature, threshold, left, right = (np.array(column) for column in zip(*rows, strict=True))
    return Forest(feature, threshold.astype(np.float64), left, right, np.array(roots), 0.0)


def random_case(seed: int, ticks: int = 1) -> tuple[np.random.Generator, Workload]:
    """Return jobs of few users and groups, so that there is a past to learn from."""
    rng = np.random.default_rng(seed)
    workload = random_workload(rng, dataclasses.replace(SHAPE, ticks=ticks))
    n = len(workload)
    columns = {field.name: rng.integers(-1, 3, n) for field in dataclasses.fields(Attributes)}
    # A request to the second would tell the run time.
    asked = workload.requested_time + workload.same_requests
    workload = dataclasses.replace(workload, requested_time=asked)
    return rng, dataclasses.replace(workload, user=rng.integers(-1, 4, n), attributes=Attributes(**columns))


def plain_run(prepared: Prepared, policy: Policy, trees: list[list[Tree]], period: int) -> Predicted:
    """Return the twin's run of the same jobs and rules."""
    workload, rules = prepared.workload, prepared.rules
    known = [Known(int(user), *(row.tolist() for row in rows)) for user, *rows in zip(*known_of(workload), strict=True)]
    columns = (workload.submit, prepared.run_time, prepared.estimate, workload.processors)
    jobs = [Job(row, *map(int, values)) for row, values in enumerate(zip(*columns, strict=True))]

    def score(job: Job, now: int, oldest: int, free: int) -> float:
        values = (job.estimate, job.submit - workload.submit[0], now - job.submit)
        p, r, w = (np.array([value / workload.ticks]) for value in values)
        predictions = np.array(twin.predictions[job.id])[:, None]
        q = np.array([job.processors])
        return float(policy.scores(p, q, r, w, workload.machine, predictions=predictions)[0])

    twin = Predicted(
        jobs, workload.machine, score,
        backfill=rules.backfill, threshold=rules.threshold * workload.ticks, ties=rules.ties,
        known=known, forests=tuple(trees), period=period, ticks=workload.ticks,
    )  # fmt: skip
    twin.run()
    return twin


@pytest.mark.parametrize("renew_s", [0, 7, 100])
@pytest.mark.parametrize("formula", [STATIC, TIMED])
@pytest.mark.parametrize("backfill", ["easy", "none", "conservative"])
def test_the_twin_sees_predicts_and_starts_the_same(backfill: str, formula: str, renew_s: int) -> None:
    policy = Policy("PREDICTED", formula)
    moved = 0
    for seed in cases(4, 25):
        rng, workload = random_case(seed, ticks=1 + seed % 2)
        rules = Rules(backfill=backfill, threshold=[math.inf, 300.0][seed % 2], ties=["fifo", "lifo"][seed % 3 == 0])
        prepared = prepare(workload, rules)
        trees = [[random_tree(rng, FEATURES, 4, 0.4) for _ in range(6)] for _ in range(3)]
        forests = Forests(*map(flattened, trees))
        ours = run_predicted(prepared, policy, Predictor(PredictorOptions(renew_s=renew_s), forests))
        twin = plain_run(prepared, policy, trees, renew_s * workload.ticks)
        rows = range(len(workload))
        np.testing.assert_allclose(ours.features, [twin.features[row] for row in rows], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours.predictions.T, [twin.predictions[row] for row in rows], rtol=1e-12)
        assert ours.start.tolist() == [job.start for job in twin.jobs]
        if renew_s:
            once = run_predicted(prepared, policy, Predictor(PredictorOptions(renew_s=0), forests))
            moved += not np.array_equal(once.start, ours.start)
    assert bool(moved) == bool(renew_s), "renewal changes schedules"


def test_of_a_user_who_floods_the_first_ones_are_renewed() -> None:
    rng = np.random.default_rng(1)
    n = MOST_RENEWED + 20
    # The first job has the whole machine until the others, all there by then, are predicted anew and start.
    submit, width = np.minimum(np.arange(n), 1), np.where(np.arange(n) == 0, n, 1)
    run, request = np.where(np.arange(n) == 0, 1000, 5), rng.integers(1000, 3000, n)
    columns = (submit, run, request, width, np.zeros(n), np.full(n, -1))
    workload = Workload("flood", n, np.arange(1, n + 1), *(column.astype(np.int64) for column in columns))
    prepared = prepare(workload, Rules())
    policy = Policy("PREDICTED", STATIC)
    trees = [[random_tree(rng, FEATURES, 4, 0.4) for _ in range(6)] for _ in range(3)]
    ours = run_predicted(prepared, policy, Predictor(PredictorOptions(renew_s=600), Forests(*map(flattened, trees))))
    twin = plain_run(prepared, policy, trees, 600)
    assert ours.start.tolist() == [job.start for job in twin.jobs]
    np.testing.assert_allclose(ours.predictions.T, [twin.predictions[row] for row in range(n)], rtol=1e-12)
    once = run_predicted(prepared, policy, Predictor(PredictorOptions(renew_s=0), Forests(*map(flattened, trees))))
    same = (ours.predictions == once.predictions).all(axis=0)
    assert same[MOST_RENEWED + 1 :].all()
    assert not same[1 : MOST_RENEWED + 1].all()


def test_without_a_model_the_request_is_taken() -> None:
    _, workload = random_case(1)
    ours = run_predicted(prepare(workload, Rules()), Policy("P", "e + s + e90"))
    request = workload.requested_time
    np.testing.assert_allclose(ours.predictions[:3], [request, 10 / np.maximum(request, 10), request], rtol=1e-12)


def known_beforehand(prepared: Prepared, policy: Policy, foreseen: Foreseen) -> np.ndarray:
    """Return the starts of a run in which the predictions are given, by the engine's kernels without the loop."""
    filled = dataclasses.replace(prepared, predictions=foreseen.predictions)
    order, machine = filled.order(policy), filled.workload.machine
    if prepared.rules.backfill == "conservative":
        conservative(jobs := filled.columns(), filled.formula(policy), order, machine)
    elif filled.is_sorted(policy):
        easy(jobs := filled.sorted_jobs(policy), order, machine)
    else:
        easy_timed(jobs := filled.columns(), *filled.formulas(policy), order, machine)
    return jobs.start


@pytest.mark.parametrize("formula", [STATIC, TIMED])
@pytest.mark.parametrize(
    ("backfill", "own"),
    [("easy", None), ("easy", Policy("OWN", "q/s")), ("easy", Policy("SPF", "p")), ("conservative", None)],
)
def test_the_loop_is_a_run_with_the_predictions_known_beforehand(
    backfill: str, own: Policy | None, formula: str
) -> None:
    policy = Policy("PREDICTED", formula)
    for seed in cases(4, 25):
        rng, workload = random_case(seed)
        prepared = prepare(workload, Rules(backfill=backfill, backfill_policy=own))
        forests = [flattened([random_tree(rng, FEATURES, 4, 0.4) for _ in range(6)]) for _ in range(3)]
        ours = run_predicted(prepared, policy, Predictor(PredictorOptions(renew_s=0), Forests(*forests)))
        assert ours.start.tolist() == known_beforehand(prepared, policy, ours).tolist()


def test_the_order_of_starts_is_written_down_where_asked_for() -> None:
    jobs = new_jobs(*(np.array(column) for column in ([0, 0, 5], [9, 4, 3], [9, 4, 3], [2, 2, 2])), noted=True)
    assert len(jobs.started) == 3
    assert len(no_forest().roots) == 0
