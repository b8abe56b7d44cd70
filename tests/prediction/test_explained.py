"""A job that is about to be submitted, explained by a site's history."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest

from policyfactory.core.errors import InputError, UsageError
from policyfactory.policy.explain import Explanation, parse_job
from policyfactory.policy.policy import Policy
from policyfactory.prediction.explained import Submitter, explain_submission
from policyfactory.prediction.history_file import hash_with, key_of, key_path, open_history
from policyfactory.prediction.training import Forests
from refusals import refused
from site_history import BEGIN, FIRST_USER, POLICY, make_site_past

AT = 200_000  # s of the log


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "history"
    make_site_past().bring_up(path, AT)
    return path


def explained(
    state: Path, user: int | None, later_s: int = 120, policy: Policy = POLICY, job: str = "p=1h q=2"
) -> Explanation:
    when = dt.datetime.fromtimestamp(BEGIN + AT + later_s, dt.UTC)
    submitter = Submitter(open_history(state), make_site_past().forests, when, user)
    return explain_submission(policy, parse_job(job), submitter)


def test_users_of_short_and_of_long_jobs_stand_apart(state: Path) -> None:
    short, long = explained(state, FIRST_USER), explained(state, FIRST_USER + 1)
    assert short.score < long.score
    for made, most in ((short, 200), (long, 9000)):
        ended, alike, *_ = made.seen[0].split("; ")
        assert re.fullmatch(r"\d+ jobs of its user had ended", ended)
        assert "the last five " in alike
        assert made.job.e <= most
        assert made.seen[1].endswith(" ran.")
        assert made.seen[2] == "The history was brought up to date 2m before."
        assert "By its request alone its score would be" in made.changes[0]
        assert made.changes[1].startswith("By the past of its user it is expected to run ")
    hashed = hash_with(key_of(state))
    past = open_history(state)
    assert past is not None
    user = past[0].user(hashed(f"u{FIRST_USER}"))
    assert user is not None
    assert short.seen[0].startswith(f"{user.ended} jobs of its user")


@pytest.mark.parametrize(("user", "says"), [(None, "Its user is not known"), (1, "No job of its user had ended.")])
def test_without_a_past_the_request_is_taken(state: Path, user: int | None, says: str) -> None:
    made = explained(state, user)
    assert made.seen[0].startswith(says)
    assert "The request is taken for the run time." in made.seen
    assert (made.job.e, made.job.s) == (3600, 10 / 3600)
    assert made.changes[0] == "By its request alone it is expected to run 1h on average, 100 % of its request."


def test_without_a_history_the_request_is_taken_and_nothing_is_written(tmp_path: Path) -> None:
    made = explained(tmp_path / "none", FIRST_USER)
    assert made.seen[-2:] == ("The request is taken for the run time.", "There is no history yet.")
    assert made.job.e == 3600
    assert list(tmp_path.iterdir()) == []


def test_an_old_history_is_named(state: Path) -> None:
    assert "takes the request where it is older than its --stale" in explained(state, FIRST_USER, 7 * 3600).seen[2]
    assert explained(state, FIRST_USER, -1).seen[2] == "The history is of a later time."


def test_no_hash_is_printed(state: Path) -> None:
    made = explained(state, FIRST_USER)
    assert not re.search(r"\b[0-9a-f]{16}\b", " ".join((*made.seen, *made.changes)))
    assert hash_with(key_of(state))(f"u{FIRST_USER}") not in str(made.as_dict())


def test_wrong_use(state: Path) -> None:
    for job, says in (
        ("p=1h", "q predicted 3600 p"),
        ("w=1h", "p q predicted 3600 w"),
        ("p=1h q=2 e=5m", "e predicted 3600 p"),
    ):
        refused(UsageError, says, explained, state, FIRST_USER, job=job)
    refused(UsageError, "SAF predictions", explained, state, FIRST_USER, policy=Policy("SAF", "p*q"))
    forests = make_site_past().forests
    when = dt.datetime.fromtimestamp(BEGIN + AT, dt.UTC)
    without = Submitter(open_history(state), Forests(forests.shortness, forests.share), when, FIRST_USER)
    refused(UsageError, "e90 reads TAIL", explain_submission, Policy("TAIL", "e90"), parse_job("p=1h q=2"), without)


def test_a_history_without_its_key_is_refused(state: Path) -> None:
    key_path(state).unlink()
    refused(InputError, "history.key file", open_history, state)
    assert not key_path(state).exists()
