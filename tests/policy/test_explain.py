"""Scores in words."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given

from naive.formula import evaluate, expressions, random_jobs
from policyfactory.core.errors import UsageError
from policyfactory.policy.explain import Job, additive_terms, explain, parse_job, rank_jobs
from policyfactory.policy.expression import parse
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from support import examples


def test_a_job_is_read_with_durations() -> None:
    job = parse_job("p=1h30m, q=64;r=2d w=0 m=256")
    assert (job.p, job.q, job.r, job.w, job.m) == (5400, 64, 172800, 0, 256)
    assert job.given == set("pqrwm")
    assert parse_job("p=2.5").p == 2.5
    assert job.describe() == "p = 5400 s (1h 30m), q = 64, r = 172800 s (2d), w = 0 s (0s), m = 256"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not NAME=VALUE"),
        ("p", "'p' is not NAME=VALUE"),
        ("x=3", "'x=3' is not NAME=VALUE"),
        ("p=3 p=4", "p is given twice"),
        ("p=soon", "is not a duration"),
        ("p=0", "a time .* from 1"),
        ("q=0", "a whole number from 1"),
        ("q=1.5", "a whole number from 1"),
        ("q=1h", "a whole number from 1"),
        ("r=-5", "is not a duration"),
        ("p=inf", "a time"),
        ("p=nan", "is not a duration"),
        ("q=99999999999999999999", "a whole number"),
        ("s=0", "s='0': expected a number above 0, at most 1"),
        ("s=1.5", "a number above 0, at most 1"),
        ("s=1h", "a number above 0, at most 1"),
        ("e=soon", "is not a duration"),
        ("user_waiting=0.5", "a whole number from 0"),
        ("user_running=1h", "a whole number from 0"),
    ],
)
def test_invalid_jobs(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_job(text)


def test_predictions_are_said_in_words_and_what_makes_them_anew() -> None:
    policy = Policy("INDEX", "-ln(s) + ln(e) + 0.4*ln(q)")
    result = explain(policy, parse_job("p=4h q=16 s=0.3 e=20m"))
    assert result.job.describe() == "p = 14400 s (4h), q = 16, e = 1200 s (20m), s = 0.3"
    assert result.score == pytest.approx(-math.log(0.3) + math.log(1200) + 0.4 * math.log(16))
    assert [term.words for term in result.terms] == [
        "a job that is more likely to be short: sooner",
        "a longer predicted run time: later",
        "more processors: later",
    ]
    assert result.changes[:2] == (
        "By the past of its user it is expected to run 20m on average, 8.3 % of its request.",
        (
            "Its shortness is 0.3: that of jobs of 33s; so it may be far shorter than that average, and a short job "
            "suffers most from waiting."
        ),
    )
    assert result.changes[-1] == (
        "Waiting alone does not change this score; once a job of the same user has ended it is predicted anew."
    )
    assert result.as_dict()["job"] == {"p": 14400.0, "q": 16.0, "e": 1200.0, "s": 0.3}
    sure = explain(policy, parse_job("q=1 s=1 e=5")).changes
    assert sure[:2] == (
        "By the past of its user it is expected to run 5s on average.",
        "Its shortness is 1: it is sure to end within 10 s.",
    )
    others = explain(
        Policy("P", "e90 + user_waiting - user_running"), parse_job("e90=3h user_waiting=1 user_running=0")
    )
    assert others.score == 10_801
    assert others.changes[:3] == (
        "One such job in ten is expected to run longer than 3h.",
        "When it was submitted 1 other job of its user waited.",
        "When it was submitted 0 other jobs of its user ran.",
    )
    with pytest.raises(UsageError, match="the job lacks q, e and s: add q="):
        explain(policy, parse_job("p=1h"))


def test_terms_in_their_order() -> None:
    def terms(text: str) -> list[str]:
        return [term.text() for term in additive_terms(parse(text))]

    assert terms("p + 2*q - 3*r") == ["p", "2*q", "-3*r"]
    assert terms("p - (q - r)") == ["p", "-q", "r"]
    assert terms("-(p + q)") == ["-p", "-q"]
    assert terms("p*(q + r)") == ["p*(q + r)"]


@examples(200)
@given(expressions(depth=4, functions=("sqrt", "abs")))
def test_terms_add_up(tree) -> None:
    for job in random_jobs(3, seed=2):
        whole = evaluate(tree, job)
        parts = [evaluate(term, job) for term in additive_terms(tree)]
        if math.isfinite(whole) and all(map(math.isfinite, parts)):
            assert math.fsum(parts) == pytest.approx(whole, rel=1e-9, abs=1e-9 * max(map(abs, parts)))


def test_f1_term_by_term() -> None:
    result = explain(CATALOGUE["F1"], parse_job("p=1000 q=64 r=10000"))
    assert [(term.text, term.value) for term in result.terms] == [("log10(p)*q", 192), ("870*log10(r)", 3480)]
    assert result.score == 3672
    assert result.terms[0].words == "a longer request or more processors: later"
    assert result.terms[1].words == "a later submission: later"
    assert result.changes == (
        "Half the requested run time (8m 20s) changes the score from 3672 to 3652.73: sooner.",
        "Half the processors (32) changes the score from 3672 to 3576: sooner.",
        "Waiting does not change this score; the job moves up as jobs with lower scores start.",
    )


def test_words_for_other_policies() -> None:
    wfp = explain(CATALOGUE["WFP3"], parse_job("p=1h q=64 w=2h"))
    assert wfp.terms[0].words == "a longer request: later; more processors or a longer wait: sooner"
    assert wfp.changes[-1] == "One more hour of waiting changes the score from -512 to -1728: sooner."
    lin = explain(CATALOGUE["LIN-SYNTHETIC"], parse_job("p=1 q=1 r=0"))
    assert [term.words for term in lin.terms] == [
        "the same for all jobs",
        "a longer request: later",
        "more processors: later",
        "a later submission: sooner",
    ]
    first = explain(CATALOGUE["F1"], parse_job("p=10 q=1 r=0"))
    assert first.score == -math.inf
    assert first.terms[1].words == "ahead of all jobs without it"
    late = dataclasses.replace(CATALOGUE["SAF"], threshold=72_000.0)
    assert "waited more than 20h" in explain(late, parse_job("p=1 q=1")).changes[-1]
    flat = explain(Policy("x", "min(p, 10)*q/q"), parse_job("p=1h q=4"))
    assert flat.terms[0].words == "does not change near this job"
    assert flat.changes[0] == "Half the requested run time (30m) leaves the score at 10."
    nothing = explain(Policy("x", "sqrt(q - p)"), parse_job("p=2 q=1"))
    assert nothing.terms[0].words == "has no value here: the job runs last"
    assert nothing.score == math.inf
    assert explain(Policy("x", "-log10(r) + p"), parse_job("p=2 r=0")).terms[0].words == "behind all jobs without it"


def test_missing_values_are_named() -> None:
    for job, lacks in [("p=1h", "q and r: add q=... r=..."), ("w=1h", "p, q and r: add p=... q=... r=...")]:
        with pytest.raises(UsageError) as raised:
            explain(CATALOGUE["F1"], parse_job(job))
        assert str(raised.value).endswith(f"; the job lacks {lacks}")


def test_ranks_by_score_then_submission() -> None:
    jobs = [
        Job(5, 1, 9, given=frozenset("pqr")),
        Job(5, 1, 3, given=frozenset("pqr")),
        Job(1, 1, 99, given=frozenset("pqr")),
    ]
    assert rank_jobs([explain(CATALOGUE["SPF"], job) for job in jobs]) == [2, 1, 0]


def test_json_has_no_infinity() -> None:
    value = explain(CATALOGUE["F1"], parse_job("p=10 q=1 r=0")).as_dict()
    assert value["score"] == "-inf"
    assert value["job"] == {"p": 10, "q": 1, "r": 0}
    json.dumps(value, allow_nan=False)


def test_free_processors() -> None:
    policy = Policy("x", "p - 100*min(1, max(0, f - q + 1)) + f/m")
    with pytest.raises(UsageError, match=r"the job lacks m and f: add m=... f=..."):
        explain(policy, parse_job("p=60 q=4"))
    result = explain(policy, parse_job("p=60 q=4 m=8 f=3"))
    assert result.score == 60.375
    assert [term.words for term in result.terms] == [
        "a longer request: later",
        "more free processors: sooner",
        "the same for all jobs",
    ]
    assert "Enough free processors (4) changes the score from 60.375 to -39.5: sooner." in result.changes
    assert not any("Enough" in text for text in explain(policy, parse_job("p=60 q=4 m=8 f=4")).changes)
    assert parse_job("f=0").f == 0
    with pytest.raises(UsageError, match="f=9 is more than the m=8 processors"):
        parse_job("f=9 m=8")


def test_a_job_wider_than_the_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="q=1024 is more than the m=256 processors of the machine"):
        parse_job("p=2h q=1024 m=256")
