"""The arena: scores of formulas from anywhere, verdicts on what is held out, and what is counted."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import policyfactory.search.learner as ledgers
from habits import users_with_habits
from policyfactory.core.errors import InputError, OutputError, UsageError, WorkloadError
from policyfactory.core.files import exclusive
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from policyfactory.search.arena import Arena, judge
from policyfactory.search.families import PUBLISHED
from policyfactory.search.learner import count
from policyfactory.search.replicated import AIMS, MOST_CANDIDATES, best_published, lines_of, submitted, values_of
from policyfactory.statistics.intervals import Interval, adjusted, level_of
from policyfactory.workload.jobs import Workload
from refusals import refusal, refused

OWN = "-0.5*ln(s) + ln(e) + 0.3*ln(q)"


@pytest.fixture(scope="module")
def workload() -> Workload:
    return users_with_habits(3, jobs=2_400, days=112)


@pytest.fixture
def arena(workload: Workload, tmp_path: Path) -> Arena:
    return Arena(workload, ledger=tmp_path / "ledger.json", replicas=6, seed=4)


def test_a_score_is_the_ratio_to_the_published_policy_that_is_best_on_the_same_replicas(arena: Arena) -> None:
    found = arena.judge([OWN, '{"name": "area", "formula": "p*q"}', Policy("MINE", "p/(w + 1)"), {"formula": "q"}])
    best = min(found.baseline.means, key=lambda name: found.baseline.means[name])
    assert found.baseline.policy.name == best
    assert set(found.baseline.means) == {one.name for one in PUBLISHED}
    assert [one.name for one in found.candidates] == ["candidate-1", "area", "MINE", "candidate-4"]
    own = values_of(arena._training, [CATALOGUE["SAF"]])[:, 0]
    assert found.candidates[1].log_ratio == pytest.approx(np.log(own[:, 0] / found.baseline.values[:, 0]).mean())
    said = found.as_dict()["candidates"]
    assert said[0]["formula"] == OWN
    assert [one["static"] for one in said] == [True, True, False, True]
    assert [one["reads_predictions"] for one in said] == [["e", "s"], [], [], []]
    assert said[1]["aims"]["p99_wait"] == pytest.approx(own[:, 1].mean() / found.baseline.values[:, 1].mean())
    assert set(said[0]["aims"]) == set(AIMS)
    assert said[0]["interval"][0] <= said[0]["ratio"] <= said[0]["interval"][1]
    assert found.best is min(found.candidates, key=lambda one: one.ratio)
    assert "held_out" not in said[0]
    assert found.as_dict()["ledger"] == {"tried": 4, "held_out": 0}


def test_the_number_of_workers_says_nothing(workload: Workload, tmp_path: Path) -> None:
    said = [
        judge(workload, [OWN, "p*q"], ledger=tmp_path / f"{workers}.json", replicas=3, workers=workers).as_dict()
        for workers in (1, 2)
    ]
    for one in itertools.chain(*(each["candidates"] for each in said)):
        assert one.pop("seconds") >= 0
    assert said[0] == said[1]


HOSTILE = [
    "__import__('os').system('true')",
    "().__class__",
    "p" * 5_000,
    "(" * 500 + "p" + ")" * 500,
    "-" * 3_000 + "p",
    "+".join(["p"] * 1_000),
    "9" * 4_000,
    "1e999*p",
    "p**p**p**1000",
    "2",
    "a*p",
    "sqrt(-p)",
    "ln(0*p - 1)",
    "p\0q",
    "\u202ep*q",
    "{" * 19_000,
    "[" * 19_000,
    '{"a":' * 3_000 + "1" + "}" * 3_000,
    '{"formula": 3}',
    '{"formula": "p", "name": 1}',
    '{"formula": "p", "name": "' + "x" * 10_000 + '"}',
    '{"formula": "p", "name": "a\\u0000b"}',
    '{"formula": "p"',
    '{"formula": ' + "1" * 10_000 + "}",
    "x" * 30_000,
    {"name": "no formula"},
    {1: 2},
    Policy.from_function(lambda job: job.p, "FUNCTION"),
]


def test_what_is_hostile_has_an_error_and_stops_no_other(arena: Arena) -> None:
    begin = time.monotonic()
    found = arena.judge([*HOSTILE, "p*q"])
    assert time.monotonic() - begin < 60
    *bad, good = found.candidates
    assert [one.text[:20] for one in bad if not one.error] == []
    assert all(one.ratio == math.inf and one.interval is None for one in bad)
    assert good.ratio > 0
    assert found.best is good
    text = json.dumps(found.as_dict(), allow_nan=False)
    assert len(text) < 40_000
    # None of them was tried.
    assert found.counted.tried == 1


def test_lines_are_read_with_their_number_bounded() -> None:
    read = submitted(lines_of(b"# mine\n\np*q\r\n\xff*p\n"))
    assert [(one.name, bool(one.error)) for one in read] == [("candidate-1", False), ("candidate-2", True)]
    refused(UsageError, "1,000 candidates", submitted, itertools.repeat("p", MOST_CANDIDATES + 1))
    refused(UsageError, "candidate formulas", submitted, ["", "# p*q"])


def test_a_candidate_that_takes_too_long_is_left_between_two_replicas(workload: Workload, tmp_path: Path) -> None:
    found = judge(workload, ["p*q", "p"], ledger=tmp_path / "l.json", replicas=2, time_limit=1e-9)
    assert [one.error for one in found.candidates] == ["took longer than 1e-09 s: 0 of 2 replicas were done"] * 2
    assert found.as_dict()["candidates"][0]["formula"] == "p*q"


def test_what_is_held_out_is_judged_in_the_honest_closed_loop_and_counted(arena: Arena) -> None:
    arena.judge(["p"] * 20)
    found = arena.judge([OWN, "p*q", "import"], held_out=True)
    assert (found.counted.tried, found.counted.held_out) == (22, 2)
    verdict = found.candidates[0].verdict
    assert verdict is not None
    assert found.candidates[2].verdict is None
    honest = values_of(arena._last.replicas, [Policy("x", OWN)], learns=True)[:, 0]
    base = values_of(arena._last.replicas, [found.baseline.policy], learns=True)[:, 0]
    logs, whole = np.log(honest[:, 0] / base[:, 0]), arena._last.replicas.whole
    assert (whole, len(logs)) == (6, 12)
    assert verdict.estimate.value == pytest.approx(logs[:whole].mean())
    apart = (logs[whole::2] - logs[whole + 1 :: 2]) / 2
    half = stats.t.ppf(0.975, 3) * math.sqrt((apart**2).mean() * 4 / 3)
    assert verdict.estimate.interval.half_width == pytest.approx(half)
    # The jobs that are measured are those of the last part.
    assert len(arena._last.replicas.schedule(0, CATALOGUE["SAF"])) <= 2_400 - 1_440
    said = found.as_dict()["candidates"][0]["held_out"]
    assert said["level"] == pytest.approx(0.95 ** (1 / 22))
    plain = verdict.estimate.interval
    assert said["interval"][0] < math.exp(plain.low) < math.exp(plain.high) < said["interval"][1]
    assert said["verdict"] == ("cannot tell" if said["interval"][0] <= 1 <= said["interval"][1] else said["verdict"])
    assert said["weeks"]["ratio"] > 0
    assert arena.judge(["p"]).counted.tried == 23


def test_the_adjustment_is_that_of_sidak_by_students_quantiles() -> None:
    plain = Interval(-1.0, 2.0)
    assert adjusted(0.5, plain, 7, 1).low == pytest.approx(-1.0)
    wide = adjusted(0.5, plain, 7, 100)
    tail = (1 - 0.95 ** (1 / 100)) / 2
    factor = stats.t.ppf(1 - tail, 7) / stats.t.ppf(0.975, 7)
    assert (wide.low, wide.high) == pytest.approx((0.5 - 1.5 * factor, 0.5 + 1.5 * factor))
    assert level_of(1) == pytest.approx(0.95)
    assert math.isfinite(adjusted(0.5, plain, 5, 10**15).high)


def jobs_of(seed: int) -> Workload:
    random = np.random.default_rng(seed)
    columns = (np.sort(random.integers(0, 10**6, 500)), random.integers(1, 9_999, 500), np.full(500, 10_000))
    return Workload(f"log {seed}", 64, np.arange(500), *columns, np.full(500, 2), np.full(500, 1), np.full(500, -1))


LOG = jobs_of(1)


def test_a_ledger_counts_a_log_over_all_settings(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    count(path, LOG, {"seed": 1}, tried=3)
    count(path, jobs_of(2), {"seed": 1}, tried=7, held_out=1)
    counted = count(path, LOG, {"seed": 2}, tried=4, held_out=4)
    assert (counted.tried, counted.held_out) == (7, 4)
    content = json.loads(path.read_text())
    assert sorted(one["tried"] for one in content["logs"][LOG.sha256()]["settings"].values()) == [3, 4]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.json"]


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(LOG, processors=LOG.processors // 2),
        dataclasses.replace(LOG, machine=512, requested_time=LOG.requested_time + 7, name="called otherwise"),
        LOG.select(np.flatnonzero(np.arange(500) != 250)),
        LOG.select(slice(100, None), rebase=True),
        LOG.select(np.flatnonzero(np.arange(500) % 5 > 0)),
    ],
    ids=["half the processors", "another machine", "without one job", "without its first fifth", "without every fifth"],
)
def test_a_log_that_is_read_otherwise_is_no_new_one_to_the_ledger(tmp_path: Path, other: Workload) -> None:
    path = tmp_path / "ledger.json"
    count(path, LOG, {}, tried=1_000)
    count(path, jobs_of(2), {}, tried=50)
    assert count(path, other, {}, tried=1).tried == 1_001
    assert count(path, jobs_of(3), {}, tried=1).tried == 1, "another log is"


def test_a_ledger_of_the_version_before_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    log = {"name": "log", "tried": 9, "held_out": 2, "settings": {}}
    path.write_text(json.dumps({"kind": "judge-ledger", "schema_version": 1, "logs": {LOG.sha256(): log}}))
    assert count(path, LOG, {}, tried=1).tried == 10
    assert count(path, LOG.select(slice(5, None)), {}, tried=1).tried == 11


def ledger_of(log: object, version: object = 1) -> str:
    return json.dumps({"kind": "judge-ledger", "schema_version": version, "logs": {"x": log}})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "ledger.json JSON Invalid 1"),
        ("{", "ledger.json JSON Invalid 1"),
        ("[" * 100_000, "ledger.json JSON Invalid 1"),
        ("[]", "ledger.json ledger policyfactory"),
        ('{"kind": "trained-policy"}', "ledger.json judge-ledger should"),
        ('{"kind": "judge-ledger", "schema_version": 1}', "ledger.json Field required"),
        (ledger_of({}, "1"), "ledger.json schema_version 1"),
        (ledger_of({}, 3), "ledger.json schema_version version 1"),
        (ledger_of({"tried": -1, "held_out": 0, "settings": {}}), "ledger.json logs.x.tried 0"),
        (ledger_of({"tried": 1, "held_out": 0}), "ledger.json logs.x.settings"),
        (ledger_of({"tried": 1, "held_out": True, "settings": {}}), "ledger.json logs.x.held_out"),
        (ledger_of({"tried": 1, "held_out": 0, "settings": {"y": 1}}), "ledger.json logs.x.settings.y"),
        (ledger_of({"tried": 1, "held_out": 0, "settings": {}, "jobs": [1]}), "ledger.json logs.x.jobs.0"),
    ],
)
def test_a_ledger_that_cannot_be_believed_is_refused_and_stays(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(content)
    refused(InputError, said, count, path, LOG, {}, tried=1)
    assert path.read_text() == content


def test_a_ledger_that_another_run_holds_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.json"
    monkeypatch.setattr(ledgers, "_PATIENCE", 0.2)
    with exclusive(path), refusal(OutputError, "ledger.json another run"):
        count(path, LOG, {}, tried=1)
    assert count(path, LOG, {}, tried=1).tried == 1


def test_nothing_is_tried_that_could_not_be_counted(arena: Arena) -> None:
    arena.ledger.write_text("no ledger")
    refused(InputError, "ledger.json restore 1", arena.judge, ["p"])


def test_what_cannot_be_is_said_at_once(workload: Workload) -> None:
    for name, value in {"replicas": 0, "part": 5, "loads": (1.2, 0.8), "time_limit": 0.0, "seed": -1}.items():
        refused(UsageError, name.replace("_", "-"), Arena, workload, **{name: value})
    refused(WorkloadError, "whole weeks 60 habits", Arena, workload[:100])


def test_the_best_published_policy_is_that_of_the_least_mean_logarithm(arena: Arena) -> None:
    two = (CATALOGUE["LPF"], CATALOGUE["SPF"])
    best = best_published(arena._training, among=two)
    logs = [np.log(values_of(arena._training, [one])[:, 0, 0]).mean() for one in two]
    assert best.policy is two[int(np.argmin(logs))]
    assert [*best.means.values()] == pytest.approx(np.exp(logs))
