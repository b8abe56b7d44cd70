"""Where predictions are not made, a policy that reads them is refused by name, with what does make them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import numpy as np
import pytest

from environment_logs import busy_log
from policyfactory.core.errors import UsageError
from policyfactory.policy.network import Network
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import resolve
from policyfactory.search.distill import distill
from policyfactory.search.environment.episodes import EpisodeOptions, Episodes, PaperEpisodes
from policyfactory.search.families import family_of
from policyfactory.search.learner import played
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.simulate import simulate
from policyfactory.simulation.tuning.tuner import SwitchingSimulation, Tuner, simulate_periods
from policyfactory.workload.jobs import Workload
from refusals import refused

POLICY = Policy("INDEX", "-ln(s) + ln(e) + 0.4*ln(q)")
AGEING = Policy("AGEING", "ln(e90) - user_waiting - w")
FCFS = resolve("FCFS")
COMMITTED = Rules(compatibility="rlscheduler")


def family(log: Workload) -> object:
    form = family_of("index=-ln(s) + a*ln(e)").form
    return next(played([log], COMMITTED).schedules(form.with_values([1.0])))


def distilled(log: Workload) -> object:
    network = Network.of("NET", ("log10(p)", "log10(q)"), [([[-1.0], [-1.0]], [0.0])])
    return distill(network, log, families=("index=-ln(s) + a*ln(e)",))


@pytest.mark.parametrize(
    ("use", "where"),
    [
        (lambda log: simulate(log, POLICY, compatibility="ocst", overrun="kill"), "compatibility ocst INDEX"),
        (
            lambda log: simulate(log, FCFS, compatibility="ocst", overrun="kill", backfill_policy=POLICY),
            "compatibility ocst INDEX",
        ),
        (lambda log: simulate(log, POLICY, compatibility="sc17", backfill="none"), "compatibility sc17"),
        (lambda log: simulate(log, AGEING, compatibility="sc17", backfill="none"), "compatibility sc17"),
        (lambda log: simulate(log, POLICY, compatibility="rlscheduler"), "compatibility rlscheduler"),
        (lambda log: simulate(log, AGEING, compatibility="rlscheduler"), "compatibility rlscheduler"),
        (family, "compatibility rlscheduler"),
        (lambda log: SwitchingSimulation(log, [FCFS, POLICY]), "one policy another"),
        (lambda log: SwitchingSimulation(log, [FCFS], Rules(backfill_policy=POLICY)), "one policy another"),
        (lambda log: simulate_periods(log, [AGEING], None, [0, 20]), "one policy another"),
        (
            lambda log: simulate_periods(log, [POLICY], Rules(backfill="conservative"), [0, 20]),
            "one policy another",
        ),
        (lambda log: Tuner("T", (FCFS, POLICY)), "tuner T INDEX"),
        (lambda log: _begun(Episodes(log, EpisodeOptions(jobs=20))).scores(POLICY), "episode environment"),
        (lambda log: _begun(PaperEpisodes(log, EpisodeOptions(jobs=20))).scores(AGEING), "episode environment"),
        (lambda log: POLICY.scores([1], [1], [1]), "scores without predictions INDEX"),
        (distilled, "network formula index"),
    ],
)
def test_it_is_said_what_is_read_and_where_there_are_none(use: Callable[[Workload], object], where: str) -> None:
    message = refused(UsageError, where, use, busy_log())
    assert re.search(r"(?i)(index .*e, s|ageing .*e90, user_waiting)", message)


def _begun(episodes: Episodes | PaperEpisodes) -> Episodes | PaperEpisodes:
    episodes.begin(0, 20)
    return episodes


def test_a_network_sees_no_predictions() -> None:
    refused(UsageError, "input 2 log10", Network.of, "NET", ("log10(p)", "log10(e)"), [([[-1.0], [-1.0]], [0.0])])


def test_what_plays_windows_by_our_own_rules_predicts() -> None:
    log, form = busy_log(), family_of("index=-ln(s) + a*ln(e)").form
    # Whole minutes, as people write them: an unusual request that is near the run time would tell it.
    log = dataclasses.replace(log, requested_time=-(-log.requested_time // 60) * 60)
    (schedule,) = played([log], Rules()).schedules(form.with_values([1.0]))
    assert schedule.start.tolist() == simulate(log, Policy("INDEX", "-ln(s) + ln(e)")).start.tolist()


def test_a_lead_in_may_be_ordered_by_predictions() -> None:
    log = busy_log()
    log = dataclasses.replace(log, requested_time=-(-log.requested_time // 60) * 60)
    episodes = Episodes(log, EpisodeOptions(jobs=20, lead_in=40, lead_in_policy=POLICY))
    episodes.begin(0, 60)
    assert np.isfinite(episodes.scores("SPF")).any()
