"""What is predicted from a history is what the engine predicts in a run."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np

from naive.site_history import described, foreseen
from policyfactory.prediction.history import Asked, History, UserPast, features_from, predictions_from
from policyfactory.prediction.history_file import hash_with, key_of, read_history
from policyfactory.prediction.training import Forests
from site_history import BEGIN, FIRST_GROUP, FIRST_USER, make_site_past, name_of, small_forests

QUEUE = 3


def asked_of(job: int) -> Asked:
    jobs = make_site_past().workload
    assert jobs.attributes is not None
    return Asked(
        FIRST_USER + int(jobs.user[job]),
        int(jobs.requested_time[job]),
        int(jobs.processors[job]),
        dt.datetime.fromtimestamp(BEGIN + int(jobs.submit[job]), dt.UTC),
        FIRST_GROUP + int(jobs.attributes.group[job]),
        name_of(jobs, job),
    )


def test_features_and_predictions_are_those_of_the_run(tmp_path: Path) -> None:
    site, state = make_site_past(), tmp_path / "history"
    chosen = site.comparable()[::9]
    assert len(chosen) > 20
    for job in chosen:
        site.bring_up(state, int(site.workload.submit[job]) - 1)
        hashed = hash_with(key_of(state))
        features = features_from(read_history(state, hashed), hashed, asked_of(job))
        assert features[QUEUE] == -1
        features[QUEUE] = site.foreseen.features[job, QUEUE]
        np.testing.assert_allclose(features, site.foreseen.features[job], rtol=1e-9, atol=1e-9)
        made = predictions_from(site.forests, features)
        np.testing.assert_allclose(made[:2], site.foreseen.predictions[:2, job], rtol=1e-9)
        np.testing.assert_allclose(made[3:], site.foreseen.predictions[3:, job])


def test_they_are_those_of_the_plain_twin(tmp_path: Path) -> None:
    site, state = make_site_past(), tmp_path / "history"
    site.bring_up(state, int(site.workload.submit[400]))
    hashed = hash_with(key_of(state))
    history, forests = read_history(state, hashed), small_forests()
    for job in (401, 402, 403, 404):
        asked = asked_of(job)
        when = int(asked.when.timestamp())
        plain = described(history, hashed, asked.user, asked.group, asked.p, asked.q, -1, when, asked.name)
        ours = features_from(history, hashed, asked)
        np.testing.assert_allclose(ours, plain, rtol=1e-9, atol=1e-9)
        # Where a threshold is met exactly a last digit decides.
        np.testing.assert_allclose(
            predictions_from(forests, ours), foreseen(forests, ours.tolist(), asked.p), rtol=1e-12
        )


def test_of_a_new_user_nothing_is_known() -> None:
    when = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)
    features = features_from(History(), hash_with(b"key"), Asked(7, 3600, 4, when))
    plain = described(History(), hash_with(b"key"), 7, -1, 3600, 4, -1, int(when.timestamp()))
    np.testing.assert_allclose(features, plain)


def test_a_clock_behind_the_history_is_that_of_the_history() -> None:
    hashed = hash_with(b"key")
    history = History(2_000_000_000, {hashed("u7"): UserPast(submitted=2_000_000_000)})
    when = dt.datetime.fromtimestamp(1_900_000_000, dt.UTC)
    assert np.isfinite(features_from(history, hashed, Asked(7, 3600, 4, when))).all()


def test_without_trees_for_it_e90_is_the_request() -> None:
    forests = small_forests()
    features = np.zeros(57)
    features[0] = np.log(600)
    made = predictions_from(Forests(forests.shortness, forests.share), features)
    np.testing.assert_allclose(made[2], 600)
