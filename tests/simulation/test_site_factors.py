"""The numbers that jobs get under Slurm's rules, and how they change: against a plain Slurm that works them out."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.test_predicted_twin import flattened

from naive.online import Job as Past
from naive.predicted import Known, random_tree
from naive.site_history import described, foreseen
from naive.slurm import Job, Placed
from naive.slurm_predicted import Seen, run_numbered
from naive.slurm_random import draw
from naive.slurm_workload import BY, workload_of
from policyfactory.engine.past import FEATURES
from policyfactory.exports.content import ExportSite as Target
from policyfactory.exports.sample import ExportSample, learn_scale
from policyfactory.policy.policy import Policy
from policyfactory.policy.scale import HIGHEST, LARGEST, PriorityScale
from policyfactory.prediction.features import known_of
from policyfactory.prediction.history_file import hash_with, key_of, read_history
from policyfactory.prediction.options import PredictorOptions
from policyfactory.prediction.training import Forests, Predictor
from policyfactory.simulation.on_site import SiteFactors
from policyfactory.simulation.predicted import Foreseen
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.slurm.run import SlurmRun, run_slurm
from policyfactory.site.model import NodeGroup, Partition, Priority, Site
from policyfactory.workload.jobs import Attributes, Workload
from site_history import FIRST_GROUP, FIRST_USER, POLICY, make_site_past, name_of
from site_history import Site as Recorded
from support import OTHER_KERNEL, seeds

pytestmark = OTHER_KERNEL
STATIC = Policy("PREDICTED", "-ln(s) + ln(e) + 0.4*ln(q) + 0.01*e90 - 0.3*user_waiting + user_running/7")
TIMED = Policy("TIMED", "-ln(s) + ln(e) - 0.2*ln(1 + w) + 0.1*user_running")
AGES = Policy("AGES", "p*q - 40*w")
LATE = Policy("LATE", "p*q", threshold=900.0)
SEEDS = seeds(2, 8, 25)
MAY_HAVE = "cores", "partitions", "age", "plan", "eligible", "outages", "shares"


def features(seed: int) -> list[str]:
    return random.Random(seed).sample(MAY_HAVE, 4)


def test_the_first_two_cases_have_all_features() -> None:
    assert {*features(0), *features(1)} == set(MAY_HAVE)


def drawn(seed: int) -> tuple[Site, Workload, list[Job]]:
    """Return a site, and those of its jobs that could start there, of few users and groups."""
    site, jobs = draw(seed, 40, *features(seed))
    site = dataclasses.replace(site, priority=dataclasses.replace(site.priority, kind="multifactor"))
    zero = min(job.submit for job in jobs)
    log = workload_of(site, jobs, zero)
    never = set(log.job_id[run_slurm(log, site).start < 0].tolist())
    jobs = [dataclasses.replace(job, site_factor=0) for job in jobs if job.id not in never]
    log = workload_of(site, jobs, zero)
    more = np.random.default_rng(seed)
    columns = {field.name: more.integers(-1, 3, len(log)) for field in dataclasses.fields(Attributes)}
    return site, dataclasses.replace(log, attributes=Attributes(**columns)), jobs


def scale_of_export(log: Workload, policy: Policy) -> PriorityScale:
    """Return the range that an export learns from the same jobs; of one with w from some waits, all alike."""
    limits = (-(-log.requested_time // 60) * 60).astype(np.float64)
    waits = (0,) if policy.is_static else (0, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400)
    p, q = np.tile(limits, len(waits)), np.tile(log.processors.astype(np.float64), len(waits))
    sample = ExportSample(
        p, q, np.zeros(len(p)), np.repeat(np.array(waits, dtype=np.float64), len(log)), "the same jobs"
    )
    return learn_scale(policy, sample, largest=Target(lambda: sample).weight)


def run_plain(site: Site, log: Workload, jobs: list[Job], policy: Policy, seen: Seen | None) -> dict[int, Placed]:
    scale = scale_of_export(log, policy)

    def number(place: int, predictions: Sequence[float], waited: int) -> int:
        if waited > policy.threshold:
            return LARGEST + min(waited, HIGHEST - LARGEST)
        p = math.ceil(log.requested_time[place] / 60) * 60
        given = np.array(predictions)[:, None] if policy.needs_predictions else None
        score = policy.scores([p], log.processors[[place]], [0], [waited], log.machine, predictions=given)
        return int(scale.integers(score)[0])

    waits = not policy.is_static or math.isfinite(policy.threshold)
    return run_numbered(site, jobs, number, seen, waits=waits, begin=zero_of(log))


def zero_of(log: Workload) -> int:
    assert log.unix_start is not None
    return log.unix_start


def assert_alike(run: SlurmRun, log: Workload, plain: dict[int, Placed]) -> None:
    for row, id_ in enumerate(log.job_id.tolist()):
        one, zero = plain[id_], zero_of(log)
        mine = int(run.start[row]) + zero, int(run.end[row]) + zero, BY[run.by[row]], int(run.restarts[row])
        assert mine == (one.start, one.end, one.by, one.requeues)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("renew_s", [0, 300])
@pytest.mark.parametrize("policy", [STATIC, TIMED], ids=lambda policy: policy.name)
def test_predicted_numbers_are_those_of_a_plain_slurm(policy: Policy, renew_s: int, seed: int) -> None:
    site, log, jobs = drawn(seed)
    rng = np.random.default_rng(seed)
    trees = [[random_tree(rng, FEATURES, 4, 0.4) for _ in range(6)] for _ in range(3)]
    predictor = Predictor(PredictorOptions(renew_s=renew_s), Forests(*map(flattened, trees)))
    numbers = SiteFactors(log, policy, Rules(backfill="slurm"), site, predictor)
    run = run_slurm(log, site, numbers=numbers)
    known = [Known(int(user), *(row.tolist() for row in rows)) for user, *rows in zip(*known_of(log), strict=True)]
    past = [Past(row, int(submit) + zero_of(log), 0, 0, 0) for row, submit in enumerate(log.submit)]
    seen = Seen(past, 1, lambda *_: 0.0, known=known, forests=tuple(trees), period=renew_s)
    plain, rows = run_plain(site, log, jobs, policy, seen), range(len(log))
    np.testing.assert_allclose(numbers.foresight.features, [seen.features[row] for row in rows], rtol=1e-12)
    np.testing.assert_allclose(numbers.foresight.predictions.T, [seen.predictions[row] for row in rows], rtol=1e-12)
    assert_alike(run, log, plain)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", [AGES, LATE], ids=lambda policy: policy.name)
def test_numbers_that_follow_the_clock_are_those_of_a_plain_slurm(policy: Policy, seed: int) -> None:
    site, log, jobs = drawn(seed)
    run = run_slurm(log, site, numbers=SiteFactors(log, policy, Rules(backfill="slurm"), site))
    assert_alike(run, log, run_plain(site, log, jobs, policy, None))


def habits(jobs: int, **predictor: Any) -> tuple[Workload, SiteFactors, SlurmRun]:
    """Return the first jobs of users with habits, and their run on one partition."""
    past = make_site_past()
    log = past.workload.select(slice(0, jobs))
    site = Site("small", (NodeGroup("n[1-8]"),), (Partition("all"),), priority=Priority("multifactor"))
    numbers = SiteFactors(log, POLICY, Rules(backfill="slurm"), site, Predictor(**predictor))
    return log, numbers, run_slurm(log, site, numbers=numbers)


def test_predictions_at_submission_are_those_of_the_state_that_the_export_reads(tmp_path: Path) -> None:
    forests = make_site_past().forests
    log, numbers, run = habits(250, options=PredictorOptions(renew_s=0), forests=forests)
    features, predictions = numbers.foresight.features, numbers.foresight.predictions
    never = np.full(len(log), -1)
    past = Recorded(log, Foreseen(run.start, never < 0, predictions, features, never, ()), forests)
    state, compared = tmp_path / "history", past.comparable()[::3]
    assert len(compared) > 30
    assert log.attributes is not None
    for job in compared:
        submit = int(log.submit[job])
        past.bring_up(state, submit - 1)
        hashed = hash_with(key_of(state))
        who = FIRST_USER + int(log.user[job]), FIRST_GROUP + int(log.attributes.group[job])
        shape = int(log.requested_time[job]), int(log.processors[job]), int(log.attributes.queue[job])
        history = read_history(state, hashed)
        seen = described(history, hashed, *who, *shape, zero_of(log) + submit, name_of(log, job))
        np.testing.assert_allclose(features[job], seen, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(predictions[:, job], foreseen(forests, seen, shape[0]), rtol=1e-9)


def test_a_predictor_learns_from_what_has_ended_in_the_run_and_changes_no_earlier_number() -> None:
    options = PredictorOptions(first_days=0.5, every_days=0.5, least=50, trees=10, leaves=5)
    log, numbers, run = habits(220, options=options)
    assert len(numbers.foresight.trainings) >= 2
    now = int(log.submit[150])
    later = run.end > now
    assert later.sum() > 10
    others = dataclasses.replace(log, run_time=np.where(later, np.maximum(now - run.start, 0) + 7777, log.run_time))
    site = Site("small", (NodeGroup("n[1-8]"),), (Partition("all"),), priority=Priority("multifactor"))
    again = SiteFactors(others, POLICY, Rules(backfill="slurm"), site, Predictor(options))
    after = run_slurm(others, site, numbers=again)
    assert after.start[run.start < now].tolist() == run.start[run.start < now].tolist()
    before = slice(0, 151)
    assert again.foresight.features[before].tolist() == numbers.foresight.features[before].tolist()
    assert after.start.tolist() != run.start.tolist()
