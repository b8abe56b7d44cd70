"""The verdicts of judge and train: the rule of all verdicts, and how often they are wrong where nothing differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from habits import users_with_habits
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import CATALOGUE
from policyfactory.search.arena import Arena
from policyfactory.search.judging import HeldOutVerdict, Standing, counted, light_of
from policyfactory.search.replicated import best_published
from policyfactory.statistics.compare import compare_values
from policyfactory.statistics.intervals import Estimate, Interval

INTERVALS = {"better": (-0.4, -0.1), "worse": (0.1, 0.4), "no_difference": (-0.1, 0.4), "too_few": None}
# What the replicas say, down; what the weeks of the part itself say, across.
TABLE = """
               better       worse        no_difference  too_few
better         better       cannot_tell  better         better
worse          cannot_tell  worse        worse          worse
no_difference  cannot_tell  worse        cannot_tell    cannot_tell
too_few        cannot_tell  worse        cannot_tell    cannot_tell
"""


def estimate(word: str, scale: float) -> Estimate:
    ends = INTERVALS[word]
    interval = None if ends is None else Interval(scale * ends[0], scale * ends[1])
    return Estimate(0.0 if interval is None else (interval.low + interval.high) / 2, interval, None, 20)


def test_weeks_can_contradict_replicas_and_show_a_candidate_to_be_worse() -> None:
    head, *rows = [line.split() for line in TABLE.strip().splitlines()]
    for replicas, *lights in rows:
        for weeks, light in zip(head, lights, strict=True):
            of_weeks = estimate(weeks, 100.0)
            held = HeldOutVerdict(1, "", estimate(replicas, 1.0), weeks=of_weeks, blocks=20.0)
            assert held.verdict == light.replace("_", " "), (replicas, weeks)


def test_one_rule_under_two_names_cannot_be_told_from_itself(tmp_path: Path) -> None:
    log = users_with_habits(3, jobs=2_400, days=112)
    arena = Arena(log, ledger=tmp_path / "ledger.json", replicas=6, seed=4)
    vars(arena)["baseline"] = best_published(arena._training, among=(CATALOGUE["SAF"],))
    held = arena.judge(["7*p*q + 3"], held_out=True).candidates[0].verdict
    assert held is not None
    assert (held.verdict, held.interval) == ("cannot tell", Interval(1.0, 1.0))


BESIDE = "SAF", "P*SQRT(Q)", "F1"


def standings(values: np.ndarray, names: Sequence[str] = BESIDE) -> list[Standing]:
    """Return how the first row stands beside the others, by their sums over the windows."""
    rows = [Standing(Policy("CHOICE", "p/q"), "choice", (), None)]
    for name, row in zip(names, values[1:], strict=False):
        margin = compare_values(values[0], row, statistic="ratio", seed=1)
        rows.append(Standing(Policy(name, "p*q"), "beside", (), margin))
    return rows


@pytest.mark.parametrize(
    ("factors", "light"), [((2, 2), "better"), ((2, 1), "cannot tell"), ((2, 0.5), "worse"), ((0.5, 0.5), "worse")]
)
def test_a_choice_is_better_only_than_all_that_it_is_judged_beside(factors: tuple[float, ...], light: str) -> None:
    windows = np.random.default_rng(1).lognormal(sigma=0.1, size=20)
    rows = standings(np.outer([1, *factors], windows))
    assert light_of(rows, "SAF", held_out=True) == light
    # What it was learned on, or leaves the bands on, shows nobody to be better.
    kept = "cannot tell" if light == "better" else light
    assert light_of(rows, "SAF", held_out=False) == kept
    assert light_of([dataclasses.replace(rows[0], out="max_wait"), *rows[1:]], "SAF", held_out=True) == kept


@pytest.mark.parametrize(
    ("factor", "baseline", "light"),
    [
        (2, "SAF", "better"),
        (1, "SAF", "better"),
        (0.5, "SAF", "worse"),
        (2, "FCFS", "better"),
        (1, "FCFS", "cannot tell"),
        (0.5, "FCFS", "worse"),
    ],
)
def test_first_come_first_served_counts_as_the_baseline_and_where_the_choice_is_worse(
    factor: float, baseline: str, light: str
) -> None:
    windows = np.random.default_rng(1).lognormal(sigma=0.1, size=20)
    rows = standings(np.outer([1, factor, 2], windows), ("FCFS", "SAF"))
    assert light_of(rows, baseline, held_out=True) == light
    # What decides is told.
    names = [row.policy.name for row, _ in counted(rows, baseline)]
    assert names == (["SAF"] if (factor, baseline) in {(2, "SAF"), (1, "SAF")} else ["FCFS", "SAF"])


@pytest.mark.slow
@pytest.mark.parametrize("windows", [10, 30])
def test_where_nothing_differs_at_most_one_choice_of_twenty_is_called_better_or_worse(windows: int) -> None:
    # Four policies beside, first come, first served among them, and windows whose level all of them share.
    random, logs = np.random.default_rng(windows), 400
    wrong = 0
    for _ in range(logs):
        level = random.normal(size=windows)
        values = np.exp(level + random.normal(size=(5, windows)))
        light = light_of(standings(values, ("FCFS", *BESIDE)), "F1", held_out=True)
        wrong += light in {"better", "worse"}
    # At a rate of 5 % more have a probability below 1e-3.
    assert wrong <= stats.binom.ppf(1 - 1e-3, logs, 0.05)
