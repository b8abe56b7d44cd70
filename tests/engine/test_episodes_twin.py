"""Random decisions in random episodes, beside the plain simulator that is asked step by step."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from naive import episodes as naive
from naive.online_cases import STATIC, TIMED, Shape, plain_jobs, policy, random_workload
from policyfactory.core.errors import EvaluationError
from policyfactory.engine.episodes import SINCE, TOTAL
from policyfactory.search.environment.episodes import EpisodeOptions, Episodes
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import Schedule
from policyfactory.simulation.simulate import simulate
from policyfactory.workload.jobs import Workload
from refusals import refused
from support import seeds

DAILY = 12
COSTS = {"wait": "mean_wait", "turnaround": "mean_turnaround", "bsld": "mean_bsld", "slowdown": "mean_slowdown"}


def random_case(rng: np.random.Generator) -> tuple[Workload, EpisodeOptions, str]:
    log = random_workload(rng, Shape(jobs=60, machine=16, gap=int(rng.integers(1, 6)), ticks=int(rng.choice([1, 3]))))
    jobs = int(rng.integers(1, len(log) + 1))
    lead_in = int(rng.integers(0, len(log) - jobs + 1)) if rng.random() < 0.6 else 0
    rules = Rules(
        backfill=str(rng.choice(["easy", "easy", "none"])),
        decide_by=str(rng.choice(["request", "runtime"])),
        overrun=str(rng.choice(["run", "kill"])),
    )
    cost = str(rng.choice(list(COSTS)))
    options = EpisodeOptions(
        jobs=jobs,
        lead_in=lead_in,
        lead_in_policy=str(rng.choice(["FCFS", "SAF", "WFP3"])),
        goal=COSTS[cost],
        reward="interval",
        running=int(rng.integers(0, 6)),
        rules=rules,
    )
    return log, options, cost


def twin_of(episodes: Episodes, first: int, cost: str) -> tuple[naive.Episode, list[naive.Job]]:
    """Return the same episode, plainly; its lead-in is simulated, and cut at the beginning, by hand."""
    options, ordered = episodes.options, episodes.workload
    begin, end = first - options.lead_in, first + options.jobs
    now = int(ordered.submit[first])
    jobs = plain_jobs(ordered.select(slice(begin, end)), options.rules)
    lead_in = jobs[: options.lead_in]
    if lead_in:
        schedule = simulate(ordered.select(slice(begin, first)), options.lead_in_policy, options.rules)
        for job, start in zip(lead_in, schedule.start.tolist(), strict=True):
            job.start = start if start < now else -1
    kept = [job for job in jobs if job.start < 0 or job.start + job.run_time >= now]
    backfills = options.rules.backfill == "easy"
    plain = naive.begin(kept, ordered.machine, now, backfills=backfills, ticks=ordered.ticks, cost=cost)
    return plain, [job for job in kept if job in plain.measured]


def same_view(episodes: Episodes, at: int, plain: naive.Episode) -> None:
    """Compare what is seen; the plain one has a row for each job, the kernel zeros behind them."""
    view, seen = episodes.view, plain.seen
    assert view.done[at] == (seen is None)
    assert view.replaced[at] == plain.replaced
    if seen is None:
        assert not view.mask[at].any()
        return
    assert np.flatnonzero(view.mask[at]).tolist() == seen.allowed
    if plain.nothing:
        return
    shown = np.zeros_like(view.jobs[at])
    shown[: len(seen.jobs)] = seen.jobs
    np.testing.assert_array_equal(view.jobs[at], shown)
    np.testing.assert_array_equal(view.machine[at], np.array(seen.machine, dtype=np.float32))
    # Jobs of one predicted end come in any order.
    rows = min(len(seen.running), view.running.shape[1])
    np.testing.assert_array_equal(view.running[at, :rows, 0], np.array([row[0] for row in seen.running], "f4")[:rows])
    assert not view.running[at, rows:].any()
    if len(seen.running) <= view.running.shape[1]:
        expected = sorted(tuple(np.float32(row).tolist()) for row in seen.running)
        assert sorted(map(tuple, view.running[at, :rows].tolist())) == expected


def same_end(episodes: Episodes, at: int, measured: list[naive.Job]) -> None:
    schedule = episodes.schedule(at)
    zero = measured[0].submit
    assert (schedule.start + zero).tolist() == [job.start for job in measured]
    assert (schedule.end + zero).tolist() == [job.start + job.run_time for job in measured]
    assert schedule.backfilled.tolist() == [job.backfilled for job in measured]


def test_the_random_cases_have_what_they_are_for() -> None:
    """Heads with a reservation, several decisions in a pass, jobs that wait or run at the beginning."""
    decisions, behind, lead_ins = 0, 0, 0
    for seed in range(DAILY):
        rng = np.random.default_rng((1601, seed))
        log, options, cost = random_case(rng)
        plain, _ = twin_of(Episodes(log, options), options.lead_in, cost)
        lead_ins += bool(plain.running or plain.queue) and options.lead_in > 0
        while plain.seen is not None:
            decisions += not plain.nothing
            behind += not plain.nothing and plain.seen.machine[3] == 1
            plain.step(int(rng.choice(plain.seen.allowed)))
    assert decisions > 200
    assert behind > 12
    assert lead_ins > 3


@pytest.mark.parametrize("seed", seeds(DAILY, 300, 300))
def test_random_decisions_as_the_twin(seed: int) -> None:
    rng = np.random.default_rng((1601, seed))
    log, options, cost = random_case(rng)
    count = 3
    episodes = Episodes(log, options, count)
    for _ in range(2):  # the second time on used space
        firsts = rng.integers(episodes.first, episodes.last + 1, count).tolist()
        plains = [twin_of(episodes, first, cost) for first in firsts]
        for at, first in enumerate(firsts):
            episodes.begin(at, first)
            same_view(episodes, at, plains[at][0])
        while not episodes.view.done.all():
            # Now and then a slot that cannot be chosen, or none at all.
            actions = [
                int(rng.integers(-2, episodes.slots + 2))
                if rng.random() < 0.2
                else int(rng.choice(plain.seen.allowed))
                if plain.seen is not None
                else 0
                for plain, _ in plains
            ]
            over = episodes.view.done.copy()
            episodes.step(np.array(actions))
            naive.step_all([plain for plain, _ in plains], actions)
            for at, (plain, _) in enumerate(plains):
                same_view(episodes, at, plain)
                if not over[at]:
                    assert episodes.view.cost[at, SINCE] == pytest.approx(plain.reward_part, rel=1e-9, abs=1e-9)
                    assert episodes.view.cost[at, TOTAL] == pytest.approx(plain.reported, rel=1e-9)
        for at, (_, measured) in enumerate(plains):
            same_end(episodes, at, measured)


def play(episodes: Episodes, first: int, name: object) -> Schedule:
    episodes.begin(0, first)
    while not episodes.view.done[0]:
        episodes.step(np.array([np.argmin(episodes.scores(name))]))
    return episodes.schedule()


FORMULAS = [(text, rule) for text in (*STATIC, *TIMED) for rule in ("window-start", "oldest-waiting")]


@pytest.mark.parametrize(("text", "rule"), FORMULAS)
def test_the_least_score_step_by_step_is_the_policys_schedule(text: str, rule: str) -> None:
    rng = np.random.default_rng((1602, len(text), len(rule)))
    order = policy(text, rule)
    for _ in range(8):
        log, options, _ = random_case(rng)
        options = dataclasses.replace(options, lead_in=0)
        episodes = Episodes(log, options)
        first = int(rng.integers(episodes.first, episodes.last + 1))
        played = play(episodes, first, order)
        whole = simulate(
            episodes.workload.select(slice(first, first + options.jobs), rebase=True), order, options.rules
        )
        assert played.start.tolist() == whole.start.tolist()
        assert played.end.tolist() == whole.end.tolist()
        assert played.backfilled.tolist() == whole.backfilled.tolist()


def test_a_policy_goes_on_behind_its_own_lead_in() -> None:
    """What waits at the beginning is the agent's: with one policy before and after, the log goes on as it was."""
    rng = np.random.default_rng(1603)
    waited, carried = 0, 0
    for _ in range(60):
        log = random_workload(rng, Shape(jobs=40, gap=3))
        lead_in = int(rng.integers(0, len(log)))
        options = EpisodeOptions(jobs=len(log) - lead_in, lead_in=lead_in, lead_in_policy="SAF")
        episodes = Episodes(log, options)
        played = play(episodes, lead_in, "SAF")
        whole = simulate(episodes.workload, "SAF")
        measured = np.flatnonzero(np.isin(whole.workload.job_id, played.workload.job_id))
        zero = int(whole.workload.submit[measured[0]])
        assert (played.start + zero).tolist() == whole.start[measured].tolist()
        # What a lead-in left running is counted once, and never more than there is.
        assert measure(played, "utilisation")["utilisation"] <= 100 + 1e-9
        waited += len(played) - options.jobs
        if played.carried is not None and len(played.carried.end):
            carried += 1
            beside = np.setdiff1d(np.arange(len(log)), measured)
            held = beside[whole.end[beside] > zero]
            assert sorted((played.carried.end + zero).tolist()) == sorted(whole.end[held].tolist())
    assert waited > 50
    assert carried > 30


def test_an_episode_that_is_not_over_has_no_schedule() -> None:
    log = random_workload(np.random.default_rng(3), Shape(jobs=30, gap=1))
    episodes = Episodes(log, EpisodeOptions(jobs=len(log)))
    episodes.begin(0, 0)
    refused(EvaluationError, "random episode", episodes.schedule)
