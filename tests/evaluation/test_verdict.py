"""What an evaluation says of who leads, on logs that are made for each answer."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policyfactory as pf
from daily_log import daily, recorded
from policyfactory.core.text import DAY, HOUR, WEEK
from policyfactory.evaluation.results_folder import Result
from policyfactory.evaluation.verdict import _what_helps, verdict_of
from policyfactory.policy.store import Model, resolve
from policyfactory.report.verdict import Verdict
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.statistics.intervals import Interval
from policyfactory.workload.jobs import Workload
from policyfactory.workload.presets import CleaningReport, CleaningStep


def evaluated(log: Workload | list[Workload], policies: str = "FCFS,SPF", **options: Any) -> Result:
    return pf.evaluate(log, policies, **{"metrics": ["mean_bsld", "mean_wait"], **options})


def verdict(log: Workload | list[Workload], policies: str = "FCFS,SPF", **options: Any) -> Verdict:
    actual = evaluated(log, policies, **options).outcome.verdict
    assert actual is not None
    return actual


def for_site(actual: Verdict | None) -> Verdict:
    assert actual is not None
    assert actual.site is not None
    return actual.site


def test_better_in_simulation_and_for_the_site() -> None:
    actual = verdict(recorded(daily(), "FCFS"), "FCFS,SPF,LPF")
    assert (actual.light, actual.title) == ("better", "In simulation: shown to be better")
    assert actual.sentences[0].startswith("SPF is better than simulated FCFS in mean_bsld: ")
    site = for_site(actual)
    assert (site.light, site.title) == ("better", "For the site: shown to be better")
    assert site.sentences[0].startswith("SPF is better than the recorded schedule in mean_bsld: ")
    assert actual.caveats[0].startswith("The verdict rests on 1,372 jobs of 97d ")


def test_worse_than_the_record() -> None:
    outcome = evaluated(recorded(daily(), "SPF"), "FCFS,WFP3").outcome
    site = for_site(verdict_of(outcome))
    assert (site.light, site.title) == ("worse", "For the site: worse")
    assert "WFP3 is WORSE than the recorded schedule in mean_bsld" in site.sentences[0]
    rows = tuple(dataclasses.replace(row, verdict="no difference") for row in outcome.comparisons)
    site = for_site(verdict_of(dataclasses.replace(outcome, comparisons=rows)))
    assert (site.light, site.title) == ("worse", "For the site: worse")
    assert "Next step:" not in site.sentences[-1]


def test_a_log_without_a_record_says_nothing_of_a_site() -> None:
    actual = verdict(daily())
    assert actual.light == "better"
    assert actual.sentences[0].startswith("SPF is better than simulated FCFS in mean_bsld: ")
    assert actual.sentences[-1].startswith("There is no recorded schedule to compare with. So nothing is said about")
    assert actual.site is None


def test_a_record_that_was_left_out_is_not_said_to_lack() -> None:
    sentence = verdict(recorded(daily(), "FCFS"), recorded=False).sentences[-1]
    assert "not asked for (--recorded" in sentence
    assert "There is no recorded schedule" not in sentence


def test_a_record_that_the_replay_does_not_come_near() -> None:
    log = daily()
    slow = dataclasses.replace(log, start=simulate(log, resolve("FCFS"), Rules()).start + 2 * DAY)
    found = evaluated(slow)
    actual = found.outcome.verdict
    assert actual is not None
    # Who compares orders in simulation did not ask about the record: what is shown there is not taken back.
    assert (actual.light, actual.title) == ("better", "In simulation: shown to be better")
    site = for_site(actual)
    assert (site.light, site.title) == ("unsound", "For the site: unsound, no conclusion")
    assert site.sentences[0].startswith("The simulation is too far from the record to judge by it")
    said = found.summary()
    assert said.index("In simulation: shown to be better.") < said.index("For the site: unsound, no conclusion.")


def test_where_nobody_waits_no_order_is_better_and_what_helps_is_said() -> None:
    log = daily(machine=50)
    actual = verdict(dataclasses.replace(log, start=log.submit + 8 * HOUR), "FCFS,SPF,SAF")
    assert actual.light == "cannot tell"
    assert actual.sentences[0].startswith("Nobody waits in this log under any order")
    assert actual.sentences[1].startswith("In the record jobs waited 8h on average, though the machine had room")
    assert "(--load " in actual.sentences[-1]


def test_a_load_that_no_command_takes_is_not_proposed() -> None:
    assert "--load 90)" in _what_helps(0.95 / 90, 1.0)
    assert "--load 100)" in _what_helps(0.95 / 100, 1.0)
    assert "--load" not in _what_helps(0.95 / 250, 1.0)


def test_jobs_of_one_instant_have_no_load_and_cannot_arrive_faster() -> None:
    log = daily(machine=400).select(slice(0, 20))
    at_once = dataclasses.replace(log, submit=np.zeros(20, dtype=np.int64), start=np.full(20, -1), unix_start=86_400)
    actual = verdict(at_once)
    assert actual.light == "cannot tell"
    assert "no offered load, since all jobs are submitted at one instant): it cannot tell" in actual.sentences[0]
    assert actual.sentences[-1].startswith("What helps: jobs that were submitted over some time.")
    assert "20 jobs submitted at one instant, 1970-01-02; these have no offered load" in actual.caveats[0]
    assert not [text for text in (*actual.sentences, *actual.caveats) if "nan" in text or "--load" in text]


def test_the_load_that_is_named_is_the_one_simulated() -> None:
    log = daily(machine=50)
    once, twice = verdict(log), verdict(log, load=2)
    assert f"offered load {log.offered_load:.2f}" in once.sentences[0]
    assert f"offered load {2 * log.offered_load:.2f}" in twice.sentences[0]
    assert "the jobs arriving 2 times as fast as in the log" in twice.caveats[0]
    # What is proposed is an option, which counts from the log whatever was simulated before.
    assert f"(--load {0.95 / log.offered_load:.2g})" in once.sentences[-1]
    assert once.sentences[-1] == twice.sentences[-1]


def test_a_tie_has_no_winner() -> None:
    log = daily()
    same = np.full(len(log), 2 * HOUR)
    alike = dataclasses.replace(log, run_time=same, requested_time=same, processors=np.full(len(log), 3))
    actual = verdict(alike, "FCFS,SPF,SAF")
    assert (actual.light, actual.sentences) == (
        "cannot tell",
        ("All policies have the same mean_bsld: a tie has no winner; leave the queue as it is.",),
    )
    from policyfactory.evaluation.results_folder import finding

    assert finding(evaluated(alike).outcome)["winner"] is None


def test_a_baseline_that_is_best_is_recommended_only_if_all_others_are_worse() -> None:
    log = recorded(daily(), "FCFS")
    assert verdict(log, "FCFS,LPF").light == "worse"
    assert for_site(verdict(log, "FCFS,LPF")).light == "cannot tell"
    twin = dataclasses.replace(resolve("FCFS"), name="TWIN")
    actual = pf.evaluate(log, [resolve("FCFS"), twin, resolve("LPF")], metrics=["mean_bsld"]).outcome.verdict
    assert actual is not None
    assert (actual.light, actual.sentences) == (
        "cannot tell",
        ("No policy has a better mean_bsld than FCFS: leave the queue as it is.",),
    )


@pytest.mark.parametrize(("invented", "light"), [(0.66, "unsound"), (0.02, "better")])
def test_requests_that_are_mostly_invented_are_nobodys(invented: float, light: str) -> None:
    log = recorded(daily(), "FCFS")
    step = CleaningStep("changed", int(invented * 1000), "no requested time, the run time taken", "", 1, 1)
    report = CleaningReport("a.swf", "", "default", "", "runtime", 4, "the header", 1000, 1000, (step,), 0)
    actual = verdict(dataclasses.replace(log, cleaning=report))
    assert actual.light == light
    if light == "unsound":
        assert actual.sentences[0].startswith("66 % of the jobs have no requested time in the log, and were given one")
    assert f"{100 * invented:.3g} % of the jobs changed (no requested time" in actual.caveats[1]


def test_what_predictions_rest_on_is_said(tmp_path: Path) -> None:
    log = daily()
    users = dataclasses.replace(log, user=np.arange(len(log)) % 9)
    policies: Any = ["FCFS", pf.Policy("INDEX", "-ln(s) + ln(e)"), pf.Policy("OTHER", "e90*q")]
    first, lacks = verdict(users, policies).caveats[-2:]
    assert first == (
        "INDEX and OTHER read predictions, which each case makes from its own past: from day 7 and 500 ended jobs on, "
        "and before that from the request alone."
    )
    assert lacks == "To predict from, the log lacks group, executable, queue, requested memory."
    nobody = verdict(dataclasses.replace(log, user=np.full(len(log), -1)), policies[:2]).caveats
    assert nobody[-2].startswith("To predict from, the log lacks users: nothing is left but requests, processors and")
    cut = verdict(users, policies[:2], windows="10x7d").caveats
    assert cut[-2].startswith("Windows of 10 x 7d end, on average, before that: whole logs or longer windows show")
    drawn = verdict(users, policies[:2], resamples=2, length="4w").caveats
    assert drawn[-2].startswith("A resampled log has some weeks of a user several times")
    pf.save_model(Model(policies[1]), tmp_path / "index.json")
    own = verdict(users, backfill_order=str(tmp_path / "index.json")).caveats
    assert own[-2].startswith("INDEX reads predictions")
    assert not any("prediction" in text for text in verdict(users).caveats)


def test_windows_that_are_too_short_give_no_conclusion() -> None:
    log = recorded(daily(), "FCFS")
    short, long = verdict(log, windows="20x6h"), verdict(log, windows="12x7d")
    assert short.light == "unsound"
    assert short.sentences[0].startswith("Windows of 6h (20 x 6h) begin on an empty machine")
    assert long.light == "better"
    assert not any("empty machine" in text for text in long.caveats)


def test_one_of_many_that_looks_as_good_by_chance_is_not_shown() -> None:
    # A difference whose interval misses zero, but which does not stand among all comparisons.
    outcome = evaluated(recorded(daily(), "FCFS")).outcome
    row = dataclasses.replace(outcome.comparisons[0], verdict="no difference", p_holm=0.2)
    chance = dataclasses.replace(outcome, comparisons=(row, *outcome.comparisons[1:]))
    actual = verdict_of(chance)
    assert actual is not None
    assert actual.light == "cannot tell"
    assert "one looks as good by chance" in actual.sentences[0]


def test_several_logs_have_a_sentence_each_and_one_light_if_they_agree() -> None:
    busy = recorded(daily(), "FCFS")
    idle = dataclasses.replace(recorded(daily(machine=400), "FCFS"), name="idle")
    actual = verdict([busy, idle])
    assert actual.light == "cannot tell"
    assert actual.sentences[0].startswith("daily: Shown to be better. SPF is better than simulated FCFS")
    assert (
        for_site(actual).sentences[0].startswith("daily: Shown to be better. SPF is better than the recorded schedule")
    )
    assert actual.sentences[1].startswith("idle: Cannot tell. Nobody waits")
    assert {text.split(":")[0] for text in actual.caveats} == {"daily", "idle"}


def test_nothing_to_decide_has_no_verdict() -> None:
    assert evaluated(daily(4), "FCFS").outcome.verdict is None
    assert evaluated(daily(4), metrics=["backfilled"]).outcome.verdict is None


def test_the_price_stands_beside_the_gain() -> None:
    actual = verdict(recorded(daily(), "FCFS"), metrics=["mean_bsld", "max_wait"])
    gain, price = actual.sentences[-1].split(" The longest wait: ")
    assert gain.startswith("SPF is better than simulated FCFS")
    assert price.startswith("SPF ")
    assert ", FCFS " in price


def test_the_price_is_in_ratios_and_a_long_wait_says_how_it_is_shortened() -> None:
    log, metrics = daily(), ("mean_bsld", "p99_wait", "max_wait", "area_weighted_wait")
    found = evaluated(log, metrics=list(metrics))
    base, own = (pf.measure(simulate(log, resolve(name), Rules()), metrics) for name in ("FCFS", "SPF"))
    assert found.outcome.verdict is not None
    said = found.outcome.verdict.sentences[0]
    for metric in metrics[1:]:
        assert f"{metric} {own[metric] / base[metric]:.2f}" in said.partition(" The longest wait")[0]
    assert "--threshold" not in said
    # Where long jobs are longer, they are passed over for weeks.
    is_long = log.run_time > HOUR
    run_time, request = (np.where(is_long, 3 * times, times) for times in (log.run_time, log.requested_time))
    assert "--threshold" in verdict(dataclasses.replace(log, run_time=run_time, requested_time=request)).sentences[0]


def test_what_was_chosen_before_is_judged_and_not_what_leads() -> None:
    outcome = evaluated(daily(), "FCFS,SPF,SQF").outcome
    leader = next(row.policy for row in outcome.summaries if row.best and row.metric == "mean_bsld")
    other = ({"SPF", "SQF"} - {leader}).pop()
    judged = verdict_of(dataclasses.replace(outcome, chosen=other))
    assert judged is not None
    assert judged.sentences[0].startswith(f"{other} is ")
    # The baseline, where nothing was worth its price.
    nothing = verdict_of(dataclasses.replace(outcome, chosen="FCFS"))
    assert nothing is not None
    assert nothing.light == "cannot tell"
    assert "FCFS" in nothing.sentences[0]
    assert "better" not in nothing.sentences[0]


def test_what_the_replay_explains_is_not_the_policys() -> None:
    # The record is half as bad again as first come, first served would have been: no order explains that.
    log = daily()
    fcfs = simulate(log, resolve("FCFS"), Rules())
    late = dataclasses.replace(log, start=fcfs.start + np.where(fcfs.wait > 60, 600, 0))
    first = for_site(verdict(late)).sentences[0]
    assert first.startswith("SPF is better than the recorded schedule")
    assert first.endswith(" of the difference is what the simulation leaves out, and not the policy.")
    same = for_site(verdict(recorded(daily(), "FCFS"))).sentences[0]
    assert "leaves out" not in same


@pytest.mark.parametrize(
    ("weeks", "options", "step"),
    [
        (4, {}, "import 2 more weeks: 4 are there, and 6 are needed"),
        (9, {"windows": "4x14d"}, "4 cases give no interval; compare at least 6 windows"),
        (9, {"resamples": 3}, "3 cases give no interval; compare at least 6 resampled logs"),
    ],
)
def test_cannot_tell_names_the_one_next_step(weeks: int, options: dict[str, Any], step: str) -> None:
    actual = verdict(daily(weeks), recorded=False, **options)
    assert actual.light == "cannot tell"
    assert f"Next step: {step}." in actual.sentences


@pytest.mark.parametrize("length", ["log", "28w"])
def test_the_weeks_to_import_follow_from_the_end_towards_zero_and_the_log_that_is_there(length: str) -> None:
    log = daily(7)
    outcome = evaluated(log, recorded=False, resamples=8, length=length).outcome
    # 2.5 times the difference from one end to the other, 1.5 on the side of 0.
    rows = tuple(
        dataclasses.replace(
            row, verdict="no difference", interval=Interval(*sorted((2.0 * row.difference, -0.5 * row.difference)))
        )
        for row in outcome.comparisons
    )
    weeks = float(log.submit[-1] - log.submit[0]) / WEEK
    actual = verdict_of(dataclasses.replace(outcome, comparisons=rows))
    assert actual is not None
    more = math.ceil(1.5**2 * weeks) - math.floor(weeks)
    assert f"Next step: import {more} more weeks; so large a difference would show then." in actual.sentences


def test_a_difference_that_more_would_show_says_how_much_more() -> None:
    # Nearly the same order; one of the two leads, and is not shown to be better.
    both = [verdict(daily(7), names, recorded=False, windows="6x7d") for names in ("SPF,SRF", "SRF,SPF")]
    assert {one.light for one in both} == {"cannot tell"}
    said = " ".join(text for one in both for text in one.sentences)
    assert "more window" in said or "take either" in said or "a tie has no winner" in said
