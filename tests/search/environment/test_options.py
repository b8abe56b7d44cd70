"""What an episode can be, and what is said where it cannot."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from naive.online_cases import Shape, policy, random_workload
from policyfactory.core.errors import EvaluationError, UsageError
from policyfactory.search.environment.episodes import INPUTS, EpisodeOptions, Episodes, PaperEpisodes
from policyfactory.simulation.rules import Rules
from policyfactory.workload.jobs import Workload
from refusals import refused
from support import ROOT


def a_log(jobs: int = 30) -> Workload:
    log = random_workload(np.random.default_rng(5), Shape(jobs=200, gap=3))
    return log.select(slice(0, jobs))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"jobs": 0}, "0 1"),
        ({"jobs": 2.5}, "jobs 2.5"),
        ({"jobs": True}, "jobs True"),
        ({"lead_in": -1}, "lead_in -1 0"),
        ({"running": -1}, "running -1"),
        ({"reward": "often"}, "reward often"),
        ({"goal": "speed"}, "speed goal"),
        ({"goal": "utilisation", "reward": "interval"}, "utilisation accrue"),
        ({"goal": lambda schedule: 1.0, "reward": "interval"}, "accrue"),
        ({"rules": Rules(backfill="conservative")}, "backfill conservative"),
        ({"rules": Rules(decide_by="prediction")}, "decide_by prediction"),
        ({"rules": Rules(threshold=5)}, "threshold 5"),
        ({"rules": Rules(ties="lifo")}, "ties lifo"),
        ({"rules": Rules(backfill_policy=policy("p"))}, "backfill_policy rule"),
        ({"rules": Rules(compatibility="rlscheduler")}, "compatibility rlscheduler"),
    ],
)
def test_options_that_cannot_be(fields: dict[str, object], message: str) -> None:
    refused(UsageError, message, EpisodeOptions, **fields)


@pytest.mark.parametrize("kind", [Episodes, PaperEpisodes])
def test_windows_longer_than_the_log(kind: type) -> None:
    refused(EvaluationError, "31 30 random", kind, a_log(), EpisodeOptions(jobs=31))


def test_a_lead_in_that_leaves_no_window() -> None:
    refused(EvaluationError, "20 11 random", Episodes, a_log(), EpisodeOptions(jobs=20, lead_in=11))


@pytest.mark.parametrize("kind", [Episodes, PaperEpisodes])
@pytest.mark.parametrize("goal", ["user_mean_bsld", "user_max_bsld"])
def test_a_goal_that_the_log_cannot_give(kind: type, goal: str) -> None:
    refused(EvaluationError, "whose jobs -1 random", kind, a_log(), EpisodeOptions(jobs=10, goal=goal))


@pytest.mark.parametrize("kind", [Episodes, PaperEpisodes])
@pytest.mark.parametrize("starts", [(-1, 3), (3, 2), (0, 21)])
def test_starts_outside_the_log(kind: type, starts: tuple[int, int]) -> None:
    refused(UsageError, "10 0 20", kind, a_log(), EpisodeOptions(jobs=10, starts=starts))


@pytest.mark.parametrize("kind", [Episodes, PaperEpisodes])
@pytest.mark.parametrize("first", [-1, 21])
def test_a_window_that_begins_nowhere(kind: type, first: int) -> None:
    refused(UsageError, f"{first} random 0 20", kind(a_log(), EpisodeOptions(jobs=10)).begin, 0, first)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lead_in": 3}, "lead_in 3 0"),
        ({"reward": "interval"}, "reward interval"),
        ({"rules": Rules(overrun="kill")}, "overrun kill"),
    ],
)
def test_options_that_the_program_of_rlscheduler_does_not_have(fields: dict[str, object], message: str) -> None:
    refused(UsageError, message, PaperEpisodes, a_log(), EpisodeOptions(jobs=10, **fields))


def test_every_column_is_described() -> None:
    episodes = Episodes(a_log(), EpisodeOptions(jobs=10))
    view = episodes.view
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    assert len(INPUTS) == view.jobs.shape[2]
    for array, shape in (
        ("jobs", f"slots, {view.jobs.shape[2]}"),
        ("machine", f"{view.machine.shape[1]}"),
        ("running", f"`running`, {view.running.shape[2]}"),
    ):
        assert f"| `{array}` | {shape} |" in page
    slots, columns = PaperEpisodes(a_log(), EpisodeOptions(jobs=10)).jobs.shape[1:]
    assert f"{slots} waiting jobs as {slots} x {columns} numbers" in page


def test_what_is_seen_of_a_job_is_what_the_formulas_give() -> None:
    """The array machine's numbers, to the last bit of a float32."""
    rng = np.random.default_rng(1605)
    looked_at = 0
    for _ in range(30):
        log = random_workload(rng, Shape(jobs=60, machine=16, gap=3, ticks=int(rng.choice([1, 3]))))
        episodes = Episodes(log, EpisodeOptions(jobs=len(log)))
        episodes.begin(0, 0)
        while not episodes.done[0]:
            # Nobody waits where nothing is decided in the whole episode.
            if episodes.view.machine[0, 1] > 0:
                allowed = episodes.mask[0]
                for column, formula in enumerate(INPUTS[:5]):
                    scores = episodes.scores(policy(formula))
                    assert (episodes.view.jobs[0, allowed, column] == scores[allowed].astype(np.float32)).all()
                    looked_at += int(allowed.sum())
            episodes.step(np.array([rng.choice(np.flatnonzero(episodes.mask[0]))]))
    assert looked_at > 1000


def test_without_gymnasium_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "from policyfactory.core.errors import UsageError\n"
        "import policyfactory.search.environment.episodes, policyfactory.search.environment.goals\n"
        "for name in ('env',):\n"
        "    try:\n"
        "        __import__(f'policyfactory.search.environment.{name}')\n"
        "    except UsageError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = (
        "the environment needs Gymnasium, which is not installed; install the extra rl: pip install 'policyfactory[rl]'"
    )
    assert done.stdout.splitlines() == [expected]
