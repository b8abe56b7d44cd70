"""Policies on replicas: ratios to the best published one, what may be taken, and what it costs."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from daily_log import habits
from policyfactory.core.errors import UsageError
from policyfactory.learning import choice, run
from policyfactory.learning.choice import FORMULAS, SOFTENED, finalists, why_not
from policyfactory.learning.comparing import Rival
from policyfactory.learning.learned import Evidence
from policyfactory.learning.options import LearnOptions
from policyfactory.learning.ranking import Ranking, expected_ratio, rank
from policyfactory.learning.run import learn
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model
from policyfactory.report.verdict import Light, Verdict
from policyfactory.search.environment.goals import limits_of
from policyfactory.workload.jobs import Workload
from support import NIGHTLY, OTHER_KERNEL

AIMS = ("mean_bsld", "p99_wait", "utilisation")
NAMES = ("FCFS", "SPF", "A", "B", "C")
PUBLISHED = ("FCFS", "SPF")


def made(own: dict[str, tuple[float, float]], replicas: int = 8, noise: float = 0.02, seed: int = 1) -> np.ndarray:
    """Return values of the policies: of each the ratio of the mean bounded slowdown, and of the waits, to SPF."""
    rng = np.random.default_rng(seed)
    replica = rng.uniform(5, 50, (replicas, 1))
    values = np.empty((replicas, len(NAMES), 3))
    ratios = {"FCFS": (3.0, 1.0), "SPF": (1.0, 1.0), **own}
    for at, name in enumerate(NAMES):
        jitter = np.exp(noise * rng.standard_normal((replicas, 1)))
        values[:, at, :1] = replica * ratios[name][0] * jitter
        values[:, at, 1:2] = 36_000 * ratios[name][1]
    values[:, :, 2] = 80.0
    return values


def test_the_best_is_taken_unless_it_costs_too_much() -> None:
    values = made({"A": (0.5, 1.3), "B": (0.7, 1.05), "C": (0.8, 1.0)})
    ranking = rank(values, NAMES, PUBLISHED, AIMS, limits=limits_of("1.1x", None, None))
    assert (ranking.peer, ranking.chosen, ranking.runner_up) == ("SPF", "B", "C")
    assert [row.name for row in ranking.rows] == ["A", "B", "C", "SPF", "FCFS"]
    row = ranking.row("B")
    assert row.ratios[0] == pytest.approx(0.7, rel=0.05)
    assert row.interval is not None
    assert row.interval[0] < row.ratios[0] < row.interval[1] < 1
    assert ranking.row("A").out.startswith("p99_wait is 1.3")
    assert ranking.margin is not None
    assert ranking.margin.verdict == "better"
    assert ranking.margin.wins == 8
    # By the definition: geometric means of the ratios.
    by_hand = np.exp(np.log(values[:, 3, 0] / values[:, 1, 0]).mean())
    assert row.ratios[0] == pytest.approx(by_hand, rel=1e-12)
    assert json.loads(json.dumps(ranking.as_dict(), allow_nan=False))["chosen"] == "B"
    # The published ones, the best first; under Slurm's rules run these, the others that do not cost too much, and the
    # best of those that do.
    assert ranking.best == ("SPF", "FCFS")
    assert finalists(ranking) == ["SPF", "FCFS", "B", "C", "A"]


def test_ratios_are_told_by_load() -> None:
    values = made({"A": (0.5, 1.0), "B": (0.7, 1.0), "C": (0.8, 1.0)}, replicas=9, noise=0.0)
    loads = [1.2, 0.8, 1.0, 0.85, 1.15, 1.05, 0.95, 0.9, 1.1]
    # Where there is much load A gains less.
    values[[0, 4, 8], 2, 0] *= 1.5
    ranking = rank(values, NAMES, PUBLISHED, AIMS, loads=loads)
    assert ranking.loads == ((0.8, 0.9), (0.95, 1.05), (1.1, 1.2))
    assert ranking.row("A").by_load == pytest.approx((0.5, 0.5, 0.75))
    assert ranking.row("SPF").by_load == (1.0, 1.0, 1.0)
    assert ranking.by_load("A").startswith("0.50 at loads of 0.80 to 0.90, 0.50 at loads of 0.95 to 1.05, 0.75 at")
    assert json.loads(json.dumps(ranking.as_dict(), allow_nan=False))["policies"][0]["by_load"]
    assert rank(values, NAMES, PUBLISHED, AIMS).by_load("A") == ""


def test_the_best_need_not_be_shown_to_be_better_to_be_chosen_and_what_it_gains_is_told_by_others() -> None:
    # The replicas of the second half judge it; here all are as good, and one is the luckiest.
    ratios, expected = [], []
    for seed in range(40):
        values = made({"A": (1.0, 1.0), "B": (1.0, 1.0), "C": (1.0, 1.0)}, noise=0.3, seed=seed)
        ranking = rank(values, NAMES, PUBLISHED, AIMS)
        best = ranking.rows[0]
        assert ranking.chosen == (best.name if round(best.ratios[0], 2) < 1 else ranking.peer)
        ratios.append(math.log(best.ratios[0]))
        expected.append(math.log(ranking.expected))
    assert np.mean(ratios) < -0.05
    assert abs(np.mean(expected)) < 0.05


@pytest.mark.parametrize(("ratio", "taken"), [(0.5, "A"), (0.68, "B"), (0.8, "B")])
def test_what_was_searched_for_such_jobs_is_taken_only_if_it_is_shown_to_be_better_than_the_next(
    ratio: float, taken: str
) -> None:
    values = made({"A": (ratio, 1.0), "B": (0.7, 1.0), "C": (0.9, 1.0)}, noise=0.1)
    ranking = rank(values, NAMES, PUBLISHED, AIMS, searched=["A"])
    assert ranking.chosen == taken
    assert bool(ranking.row("A").out) == (ratio == 0.68)
    assert ranking.runner_up == {"A": "B", "B": "A" if ratio == 0.8 else "C"}[taken]
    assert rank(values, NAMES, PUBLISHED, AIMS).chosen == ("B" if ratio == 0.8 else "A")


def test_of_a_metric_that_is_better_when_higher_less_is_still_a_worse_ratio() -> None:
    values = made({"A": (1.0, 1.0), "B": (1.0, 1.0), "C": (1.0, 1.0)})[:, :, [2]]
    values[:, 2] = 90.0
    values += np.random.default_rng(3).normal(0, 0.1, values.shape)
    ranking = rank(values, NAMES, PUBLISHED, ["utilisation"])
    assert ranking.chosen == "A"
    assert ranking.row("A").ratios[0] == pytest.approx(8 / 9, rel=0.01)
    # Words and files say what it is a ratio of.
    assert "times the 1/utilisation of " in ranking.in_words("A")
    assert ranking.as_dict()["aims"] == ["1/utilisation"]


@pytest.mark.parametrize("ratio", [1.0, 1.0 - 1e-12, 0.999, 1.004, 0.97, 1.03])
@pytest.mark.parametrize("halves", ["alike", "near", "as the whole"])
def test_what_is_shown_as_equal_to_the_peer_is_neither_better_nor_worse(ratio: float, halves: str) -> None:
    values = np.repeat(made({"A": (1.0, 1.0), "B": (1.0, 1.0), "C": (1.0, 1.0)}), 2, axis=0)
    values[:, 2:] = values[:, [1]]
    values[:8, 2] *= ratio
    values[8:, 2] *= {"alike": 1.0, "near": 1 + np.arange(8)[:, None] * 1e-6, "as the whole": ratio}[halves]
    for whole in (8, None):
        ranking = rank(values, NAMES, PUBLISHED, AIMS, whole=whole)
        row = ranking.row("A")
        assert row.interval is not None
        if [f"{end:.2f}" for end in row.interval] == ["1.00", "1.00"]:
            assert row.verdict not in {"better", "worse"}
            assert ranking.chosen != "A"
        if halves == "alike":
            # A policy that is the peer in all halves is shown to be nothing else.
            assert whole is None or row.verdict == "no difference"
        elif whole and abs(ratio - 1) > 0.01:
            assert row.verdict == ("better" if ratio < 1 else "worse")


def test_the_price_has_an_interval_where_halves_give_one() -> None:
    values = np.repeat(made({"A": (0.5, 1.2), "B": (0.7, 1.0), "C": (0.8, 0.9)}, noise=0.1), 2, axis=0)
    values[8:, 2, 1] *= np.exp(np.random.default_rng(4).normal(0, 0.1, 8))
    ranking = rank(values, NAMES, PUBLISHED, AIMS, whole=8)
    row = ranking.row("A")
    (p99, _) = row.price_intervals
    assert p99 is not None
    assert 0.9 < p99[0] < 1.2 < p99[1] < 1.6
    assert f"p99_wait 1.20 [{p99[0]:.2f}, {p99[1]:.2f}]" in ranking.price(row)
    assert ranking.row("SPF").price_intervals == ()
    choosing = rank(values, NAMES, PUBLISHED, AIMS)
    assert "[" not in choosing.price(choosing.row("A"))


def test_a_policy_without_a_value_comes_last() -> None:
    values = made({"A": (0.5, 1.0), "B": (0.7, 1.0), "C": (0.8, 1.0)})
    values[:, 2, 0] = math.inf
    ranking = rank(values, NAMES, PUBLISHED, AIMS)
    assert ranking.rows[-1].name == "A"
    assert ranking.chosen == "B"
    assert json.dumps(ranking.as_dict(), allow_nan=False)


@pytest.mark.parametrize("formula", [*FORMULAS.values(), *SOFTENED.values()])
def test_the_formulas_are_static_so_that_a_scheduler_can_have_them(formula: str) -> None:
    policy = Policy("P", formula)
    assert policy.is_static
    assert policy.needs_predictions == (formula in FORMULAS.values())


@pytest.mark.usefixtures("blank_pictures")
def test_where_users_have_habits_a_formula_with_predictions_is_chosen_and_shown_to_be_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each of the nine is simulated on each replica, and Slurm's rules with predictions take half a minute to compile.
    rules = {} if NIGHTLY else {"backfill": "easy"}
    if not NIGHTLY:
        few = {name: FORMULAS[name] for name in ("E", "E-S50-Q30", "E-USERS")}
        monkeypatch.setattr(choice, "FORMULAS", few)
    learned = learn(habits(), tuples=32, trials=320, replicas=6, threshold="inf", output=tmp_path, **rules)
    assert learned.replicas is not None
    assert learned.tested is not None
    assert learned.formula_name in FORMULAS
    row = learned.tested.to_peer.row(learned.policy.name)
    assert row.verdict == "better"
    assert row.ratios[0] < 0.6
    assert f"{learned.policy.name} was the best, at a price that is allowed, of " in learned.words[0]
    assert any("replicas of the second half" in sentence for sentence in learned.verdict.sentences)
    kept = json.loads((tmp_path / "replicas.json").read_text())
    assert kept["choosing"]["chosen"] == learned.formula_name
    assert (tmp_path / "predicted" / f"{learned.formula_name}.json").exists()


def test_thresholds_are_tried_from_the_highest_to_the_first_that_loses_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    losses = {f"SPF-{hours}h": loss for hours, loss in ((40, 1.0), (30, 1.01), (20, 1.3), (10, 1.0))}
    rival, thresholds = Rival(Model(Policy("SPF", "p")), "SPF"), {name: 3600.0 * float(name[4:-1]) for name in losses}
    tried = [Rival(Model(Policy(name, "p", threshold=held)), name) for name, held in thresholds.items()]
    monkeypatch.setattr(choice, "guarded", lambda *_: tried[::-1])
    monkeypatch.setattr(choice, "measure", lambda *_: {"mean_bsld": 10.0})
    monkeypatch.setattr(choice, "values_of", lambda _, some, *__, **___: np.full((8, 1, 1), 10 * losses[some[0].name]))
    waits = SimpleNamespace(wait=np.array([0.0, 50 * 3600.0]))
    parts = SimpleNamespace(
        options=LearnOptions(),
        steps=SimpleNamespace(workers=1, progress=SimpleNamespace(message=print), path_of=str),
    )
    replicas: Any = type("Eight", (), {"__len__": lambda _: 8, "schedule": lambda *_: waits})()
    found, names = choice.with_threshold(parts, replicas, rival, gain=1.0)
    assert (found.name, names) == ("SPF-30h", ("SPF-40h", "SPF-30h", "SPF-20h"))
    assert choice.with_threshold(parts, replicas, rival, gain=0.0)[0].name == "SPF-40h"


@OTHER_KERNEL
def test_where_the_baseline_would_take_too_long_on_replicas_its_weeks_stand_for_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    how: dict[str, Any] = {"tuples": 32, "trials": 320, "threshold": "inf", "predictions": False, "minutes": 0.1}
    monkeypatch.setattr(choice, "_BASELINE_SHARE", 0.0)
    without = learn(habits(), **how)
    assert without.tested is not None
    assert without.tested.to_baseline is None
    assert without.tested.to_peer.row(without.policy.name).interval
    assert any("is better than simulated FCFS" in text and "weeks" in text for text in without.verdict.sentences)
    without.write_policy(tmp_path)
    assert "test_fcfs" not in json.loads((tmp_path / "replicas.json").read_text())


@OTHER_KERNEL
def test_a_site_without_a_predictor_gets_a_formula_without_predictions() -> None:
    learned = learn(habits(), tuples=32, trials=320, replicas=6, threshold="inf", predictions=False)
    assert learned.replicas is not None
    assert not any(rival.model.policy.needs_model for rival in learned.rivals)
    # Jobs that wait and run the scheduler counts itself.
    assert any(rival.model.policy.needs_predictions for rival in learned.rivals)
    assert not learned.policy.needs_model
    # Under EASY run all of them, under Slurm's rules the best.
    assert learned.replicas.screening is not None
    assert len(learned.replicas.screening.rows) == len(learned.rivals)
    assert {row.name for row in learned.replicas.ranking.rows} == set(finalists(learned.replicas.screening))
    assert f"the best of {len(learned.rivals)} under EASY" in learned.words[0]
    assert learned.tested is None or len(learned.tested.to_peers) == 3


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(
    ("lights", "taken"),
    [
        ({"P-Q20": "cannot tell", "peer": "better"}, "peer"),
        pytest.param({"P-Q20": "better", "peer": "better"}, "P-Q20", marks=pytest.mark.slow),
        pytest.param({"P-Q20": "cannot tell", "peer": "cannot tell"}, "P-Q20", marks=pytest.mark.slow),
    ],
)
def test_where_the_choice_is_not_shown_to_be_better_the_best_published_policy_stands_in_its_place(
    lights: dict[str, Light], taken: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def ranked(*args: Any) -> Ranking:
        return dataclasses.replace(choice.rank_on(*args), chosen="P-Q20")

    def judged(evidence: Evidence) -> Verdict:
        return Verdict(lights.get(evidence.chosen, lights["peer"]), (f"Of {evidence.chosen}.",))

    monkeypatch.setattr(run, "rank_on", ranked)
    monkeypatch.setattr(run, "verdict_of", judged)
    learned = learn(
        habits(),
        tuples=32,
        trials=320,
        replicas=6,
        threshold="inf",
        backfill="easy",
        predictions=False,
        output=tmp_path,
    )
    assert learned.tested is not None
    peer = learned.tested.to_peer.peer
    name = peer if taken == "peer" else taken
    assert learned.replicas is not None
    assert learned.replicas.published.name == peer
    assert learned.policy.name == learned.test.outcome.chosen == name
    assert json.loads((tmp_path / "policy.json").read_text())["name"] == name
    assert learned.verdict.light == lights[taken]
    assert learned.words[0].startswith("P-Q20 was the best, at a price that is allowed, of ")
    assert learned.verdict.sentences[0] == f"Of {name}."
    why = [text for text in learned.verdict.sentences if f"{peer} stands in its place" in text]
    assert len(why) == (taken == "peer")
    assert not why or learned.tested.to_peer.row("P-Q20").ratio_text in why[0]


def test_why_nothing_is_predicted_is_said() -> None:
    log = habits()
    assert why_not(log) == ""
    unknown = Workload(
        "unknown", 16, log.job_id, log.submit, log.run_time, log.requested_time, log.processors,
        np.full(len(log), -1), log.start,
    )  # fmt: skip
    assert why_not(unknown).startswith("the log does not say whose jobs they are")


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="--replicas 2: give 6 to 1,000"):
        LearnOptions(replicas=2)
    for text in ("0x", "-1x", "nan", "1.1", "", "inf"):
        with pytest.raises(UsageError, match=r"--max-p99 .*: give times the baseline's, as 1.1x, or a time, as 20h"):
            LearnOptions(max_p99=text)
    with pytest.raises(UsageError, match="--max-longest"):
        LearnOptions(max_longest="long")
    with pytest.raises(UsageError, match=r"^--max-p99 1\.1: expected times the best"):
        LearnOptions(max_p99=1.1)  # type: ignore[arg-type]


@pytest.mark.slow
def test_what_a_choice_is_worth_is_told_by_the_replicas_that_had_no_part_in_it() -> None:
    # Twenty policies that are all as good as the published one: the best of them is so by luck alone.
    rng = np.random.default_rng(5)
    names = ["SPF", *(f"P{number}" for number in range(20))]
    expected, best = [], []
    for _ in range(60):
        values = np.exp(0.3 * rng.standard_normal((8, len(names), 1)))
        expected.append(math.log(expected_ratio(values, names, ["SPF"], ["mean_bsld"])))
        best.append(math.log(rank(values, names, ["SPF"], ["mean_bsld"]).rows[0].ratios[0]))
    # Standard error of a mean of 60: 0.3 * sqrt(2 / 8 / 60), about 0.02; beyond four of them once in 15,000.
    assert abs(np.mean(expected)) < 0.08
    assert np.mean(best) < -0.15
    # A real gain is what it is, and what costs too much is not taken.
    values = made({"A": (0.5, 1.3), "B": (0.7, 1.05), "C": (0.8, 1.0)})
    limits = limits_of("1.1x", None, None)
    assert expected_ratio(values, NAMES, PUBLISHED, AIMS) == pytest.approx(0.5, rel=0.05)
    assert expected_ratio(values, NAMES, PUBLISHED, AIMS, limits=limits) == pytest.approx(0.7, rel=0.05)


def test_a_limit_in_seconds_binds_published_policies_too() -> None:
    values = made({"A": (0.5, 1.3), "B": (0.7, 0.8), "C": (0.9, 1.0), "FCFS": (3.0, 0.9)})
    limits = limits_of("34000s", None, None)
    ranking = rank(values, NAMES, PUBLISHED, AIMS, limits=limits)
    assert (ranking.peer, ranking.best, ranking.chosen) == ("FCFS", ("FCFS",), "B")
    assert ranking.row("SPF").out
    # Under Slurm's rules run those of them that keep it.
    assert finalists(ranking)[:2] == ["FCFS", "B"]
    # Where none keeps it, the best of them is what it is, and that costs too much.
    none = rank(values[:, [0, 1, 2]], NAMES[:3], PUBLISHED, AIMS, limits=limits_of("1h", None, None))
    assert (none.peer, none.chosen) == ("SPF", "SPF")
    assert none.row("SPF").out.startswith("p99_wait is 10h on average")
    assert rank(values, NAMES, PUBLISHED, AIMS, limits=limits_of("0.5x", None, None)).row("SPF").out == ""


def test_of_published_policies_that_order_alike_the_peer_is_the_first_of_the_best() -> None:
    values = made({"A": (0.9, 1.0), "B": (1.0, 1.0), "C": (1.0, 1.0)})
    values[:, [0, 3, 4]] = values[:, [1]]
    assert rank(values, NAMES, ("SPF", "FCFS", "B", "C"), AIMS).peer == "FCFS"
    assert rank(values[:, ::-1], NAMES[::-1], ("SPF", "FCFS", "B", "C"), AIMS).best == ("C", "B", "FCFS")


def test_what_a_searched_one_gains_where_it_had_no_part_is_not_told_of_another_that_is_taken() -> None:
    values = made({"A": (0.68, 1.0), "B": (0.7, 1.0), "C": (0.9, 1.0)}, noise=0.1)
    stock = values[:, [0, 1, 3, 4]]
    found = rank(values, NAMES, PUBLISHED, AIMS, searched=["A"])
    assert found.chosen == "B"
    assert found.expected == pytest.approx(rank(stock, [*NAMES[:2], "B", "C"], PUBLISHED, AIMS).expected, rel=0.02)


def test_a_limit_may_be_a_time_and_on_the_longest_wait() -> None:
    values = made({"A": (0.5, 1.3), "B": (0.7, 1.05), "C": (0.8, 0.9)})
    by_time = rank(values, NAMES, PUBLISHED, AIMS, limits=limits_of("10h", None, None))
    assert by_time.chosen == "C"
    assert by_time.row("A").out.startswith("p99_wait is 13h on average")
    assert rank(values, NAMES, PUBLISHED, AIMS, limits=()).chosen == "A"
    aims = ("mean_bsld", "max_wait", "utilisation")
    assert rank(values, NAMES, PUBLISHED, aims, limits=limits_of(None, "1.1x", None)).chosen == "B"
