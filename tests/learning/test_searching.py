"""Exponents by search: what a search finds, that it is the same whoever works, and where there is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from daily_log import habits
from policyfactory.core.errors import UsageError
from policyfactory.learning import choice
from policyfactory.learning.choice import Size, aims_of, replicas_of, searched, size_of, with_order
from policyfactory.learning.options import LearnOptions
from policyfactory.learning.ranking import Progress
from policyfactory.learning.steps import Steps
from policyfactory.policy.policy import Policy
from policyfactory.search.replicated import Part, foretold
from policyfactory.simulation.metrics import measure
from policyfactory.workload.jobs import Workload


class Heard(Progress):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def message(self, sentence: str) -> None:
        self.messages.append(sentence)


def parts_of(log: Workload, workers: int = 1, **options: Any) -> Any:
    chosen, edges = LearnOptions(backfill="easy", **options), (len(log) // 4, len(log) // 2)
    steps = Steps(None, workers, Heard(), [1.0])
    return SimpleNamespace(
        workload=log, options=chosen, edges=edges, steps=steps, rules=chosen.rules, judging=chosen.judging
    )


@pytest.mark.slow
def test_a_search_finds_what_is_better_on_its_replicas_whoever_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_CANDIDATES", 48)
    log = habits(26)
    found = [searched(parts, size_of(parts, "choosing", predicted=True)) for parts in (parts_of(log), parts_of(log, 2))]
    first, second = found
    assert first is not None
    assert second is not None
    assert first.formula == second.formula
    assert first.is_static
    # Where requests tell nothing, and users everything, the prediction orders.
    part = Part(len(log) // 4, len(log) // 2)
    arena, replicas = foretold(log, part, LearnOptions(backfill="easy").rules, count=4, seed=11)
    aims = aims_of(LearnOptions())[:1]

    def mean(policy: Policy) -> float:
        return float(np.mean([np.log(measure(arena.given(replica, policy), aims)[aims[0]]) for replica in replicas]))

    assert mean(first) < mean(Policy("SPF", "p")) - 0.3


@pytest.mark.parametrize(
    ("weeks", "options", "words"),
    [
        (16, {}, "weeks to search on, and 6 are the least"),
        (26, {"minutes": 0.1}, "--minutes 0.1 allow none of so many jobs"),
    ],
)
def test_where_there_is_too_little_to_search_on_nothing_is_searched(
    weeks: int, options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "_JOB_S", 1e-4)  # as of a log of a hundred times as many jobs
    log = habits(weeks)
    parts = parts_of(log, **options)
    first, last = parts.edges
    assert searched(parts, Size(6, Part(first, last), "the second quarter")) is None
    (message,) = parts.steps.progress.messages
    assert message.startswith("no search: ")
    assert words in message


def test_an_order_for_backfilling_is_taken_only_if_it_is_shown_to_be_better(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = parts_of(habits(16))
    size = size_of(parts, "choosing", predicted=True)
    arena = replicas_of(parts, "choosing", size)
    assert arena is not None
    # Requests are all alike: to try jobs by them is to try them as they came.
    monkeypatch.setattr(choice, "ORDERS", {"P": "p", "L": "-e", "E": "e"})
    queue = Policy("FCFS", "r")
    alike = with_order(parts, arena, queue, predicted=False)
    assert alike == queue
    taken = with_order(parts, arena, queue, predicted=True)
    assert (taken.name, taken.formula, taken.backfill_formula) == ("FCFS-BY-E", "r", "e")
    assert "FCFS-BY-E is taken" in parts.steps.progress.messages[-1]


def test_an_order_for_backfilling_needs_easy_and_replicas() -> None:
    assert LearnOptions(backfill="easy", backfill_order="auto").backfill_order == "auto"
    for wrong in (
        {},
        {"backfill": "slurm"},
        {"backfill": "easy", "replicas": 0},
        {"backfill": "easy", "windows": "3x7d"},
    ):
        with pytest.raises(UsageError, match=r"--backfill-order auto: .*(EASY|replicas)"):
            LearnOptions(backfill_order="auto", **wrong)


def test_the_loss_is_the_gain_and_what_is_beyond_the_limits() -> None:
    limits = LearnOptions(max_p99="1.1x", max_longest="10h", max_area=None).limits
    aims = ("mean_bsld", "p99_wait", "max_wait")
    base = np.array([[10.0, 3600.0, 7200.0], [20.0, 7200.0, 7200.0]])
    own = base * [0.5, 1.0, 1.0]
    assert choice._worth(own, base, aims, limits) == pytest.approx(np.log(0.5))
    dear = base * [0.5, 2.2, 1.0]
    # A second is added to waits before their logarithm is taken.
    assert choice._worth(dear, base, aims, limits) == pytest.approx(np.log(0.5) + 2 * np.log(2.0), rel=1e-3)
    long = base * [0.5, 1.0, 10.0]
    assert choice._worth(long, base, aims, limits) == pytest.approx(np.log(0.5) + 2 * np.log(2.0))
    own[0, 0] = np.inf
    assert choice._worth(own, base, aims, limits) == 1e6
