"""Verdicts on logs that are made for them: true and useful, or why it cannot be actual."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import policyfactory as pf
from daily_log import daily, recorded
from policyfactory.core.text import DAY, HOUR
from policyfactory.evaluation.words import basis_in_words, windows_too_short
from policyfactory.learning import choice
from policyfactory.learning.comparing import unknown_in_words
from policyfactory.learning.learned import Evidence, verdict_of
from policyfactory.learning.ranking import Ranked, Ranking
from policyfactory.policy.store import resolve
from policyfactory.report.verdict import Verdict
from policyfactory.search.environment.goals import EpisodeLimit, limits_of
from policyfactory.simulation.metrics import measure
from policyfactory.simulation.simulate import Rules, simulate
from policyfactory.statistics.intervals import Interval
from policyfactory.workload.jobs import Attributes, Workload
from policyfactory.workload.presets import CleaningReport, CleaningStep
from policyfactory.workload.resample import weeks_to_import
from policyfactory.workload.windows import parse_windows


def verdict(
    log: Workload,
    chosen: str = "SPF",
    *,
    tested: Any = None,
    metric: str = "mean_bsld",
    short: str = "",
    weeks: str = "",
    limits: tuple[EpisodeLimit, ...] = (),
    peers: tuple[str, ...] = (),
) -> Verdict:
    policies = list(dict.fromkeys(["FCFS", chosen, *peers]))
    metrics = list(dict.fromkeys([metric, "mean_wait"]))
    outcome = pf.evaluate(log, policies, metrics=metrics, recorded="if-known").outcome
    if weeks:
        both = Interval(-1e9, 1e9)
        rows = tuple(
            dataclasses.replace(row, verdict=weeks, interval=both if weeks == "no difference" else row.interval)
            for row in outcome.comparisons
        )
        outcome = dataclasses.replace(outcome, comparisons=rows)
    base, own = (simulate(log, resolve(name), Rules()) for name in ("FCFS", chosen))
    return verdict_of(Evidence(outcome, metric, chosen, base, own, tested, short, limits, peers))


def test_better_than_the_record_and_than_first_come_first_served() -> None:
    actual = verdict(recorded(daily(), "FCFS"))
    assert actual.light == "better"
    first, second, third = actual.sentences
    assert first.startswith("SPF is better than the recorded schedule in mean_bsld: ")
    assert "95 % interval" in first
    assert "On the second half, which had no part in the choice, SPF is better than simulated FCFS" in second
    # The longest waits stand beside it, of the choice, the baseline and the record, and who pays.
    assert third.startswith("The longest wait: SPF ")
    assert "simulated FCFS" in third
    assert "the record" in third
    assert "who waits longer than under FCFS: the longest quarter" in third


def test_what_is_worse_than_the_record_is_worse_though_better_than_first_come_first_served() -> None:
    # The record is of a policy that is better than the choice, which is better than FCFS.
    actual = verdict(recorded(daily(), "SPF"), "WFP3")
    assert actual.light == "worse"
    assert "WFP3 is WORSE than the recorded schedule in mean_bsld" in actual.sentences[0]
    assert "leave the queue as it is" in actual.sentences[0]
    assert "WFP3 is better than simulated FCFS" in actual.sentences[1]


def test_what_is_worse_than_the_record_and_not_shown_to_be_better_than_anything_is_worse() -> None:
    actual = verdict(recorded(daily(), "SPF"), "WFP3", weeks="no difference")
    assert actual.light == "worse"
    assert "WFP3 is WORSE than the recorded schedule in mean_bsld" in actual.sentences[0]
    assert "WFP3 is not shown to be better than simulated FCFS" in actual.sentences[1]


def test_what_is_worse_than_first_come_first_served_is_said_first() -> None:
    actual = verdict(recorded(daily(), "FCFS"), "LPF")
    assert actual.light == "worse"
    assert "LPF is WORSE than simulated FCFS" in actual.sentences[0]


def test_a_record_that_no_replay_comes_near_gives_no_verdict() -> None:
    log = daily()
    slow = dataclasses.replace(log, start=simulate(log, resolve("FCFS"), Rules()).start + 2 * DAY)
    actual = verdict(slow)
    assert actual.light == "unsound"
    assert actual.sentences[0].startswith("The simulation is too far from the record to judge by it")
    assert "nothing is recommended" in actual.sentences[0]
    assert "policyfactory site import" in actual.sentences[0]
    # More weeks would not bring the simulation nearer to it.
    unshown = verdict(slow, "WFP3", tested=replicas("cannot tell", 0.9, (0.7, 1.2), "WFP3"))
    assert "not shown to be better than simulated FCFS" in unshown.sentences[1]
    assert not any("import" in text for text in unshown.sentences[1:])


def test_without_a_record_nothing_is_recommended() -> None:
    actual = verdict(daily())
    assert actual.light == "cannot tell"
    assert "nothing is shown to be better than what your scheduler did" in actual.sentences[0]
    assert "SPF is better than simulated FCFS" in actual.sentences[1]


# Nothing to tell. -----------------------------------------------------------------------------------------------------


def test_where_nobody_waits_no_order_is_better() -> None:
    actual = verdict(recorded(daily(machine=50), "FCFS"))
    assert actual.light == "cannot tell"
    assert actual.sentences[0].startswith(
        "Nobody waits in this log under any order (0 % of the jobs wait longer than 10 s"
    )
    assert "there was always room (at most " in actual.sentences[1]
    full = recorded(daily(machine=50), "FCFS")
    busy = verdict(dataclasses.replace(full, processors=np.where(np.arange(len(full)) == 5, 50, full.processors)))
    assert busy.sentences[1].startswith("The log's submit times are its start times")
    assert "jobs arriving faster (--load " in actual.sentences[-1]


def test_a_record_that_waits_where_no_order_does_waits_for_something_else() -> None:
    log = daily(machine=400)
    actual = verdict(dataclasses.replace(log, start=log.submit + 8 * HOUR))
    assert actual.light == "cannot tell"
    assert actual.sentences[1].startswith("In the record jobs waited 8h on average, though the machine had room")


def test_a_tie_has_no_winner() -> None:
    # All jobs alike: any order is first come, first served.
    log = daily()
    same = np.full(len(log), 2 * HOUR)
    actual = verdict(dataclasses.replace(log, run_time=same, requested_time=same, processors=np.full(len(log), 3)))
    assert actual.light == "cannot tell"
    assert actual.sentences == (
        "SPF starts every job when FCFS does: this log cannot tell the two apart; leave the queue as it is.",
    )


def test_the_baseline_is_no_improvement() -> None:
    actual = verdict(recorded(daily(), "FCFS"), "FCFS")
    assert (actual.light, actual.sentences) == (
        "cannot tell",
        ("Nothing was better than FCFS: leave the queue as it is.",),
    )


# Replicas, and few weeks. ---------------------------------------------------------------------------------------------


def replicas(
    word: str,
    ratio: float = 0.5,
    interval: tuple[float, float] | None = (0.4, 0.6),
    name: str = "SPF",
    weeks: float = 13.9,
) -> choice.Tested:
    ranking = ranking_to("SPF", Ranked(name, (ratio, 1.0), interval, word, ""))
    return choice.Tested((ranking,), ranking, weeks)


def ranking_to(peer: str, row: Ranked) -> Ranking:
    return Ranking(("mean_bsld", "p99_wait"), peer, (row,), row.name, None, "", 9, part="the second half")


@pytest.mark.parametrize(("weeks", "word", "light"), [(4, "better", "cannot tell"), (14, "better", "better")])
def test_replicas_decide_and_the_record_too(weeks: int, word: str, light: str) -> None:
    # Four weeks show nothing against the record.
    actual = verdict(recorded(daily(weeks), "FCFS"), tested=replicas(word))
    assert actual.light == light
    said = " ".join(actual.sentences)
    assert "SPF is better than simulated FCFS in mean_bsld" in said
    assert (
        "On 9 replicas of the second half the ratio is 0.50 [0.40, 0.60], and its price, as ratios: p99_wait " in said
    )
    assert ("Next step: import a longer time." in said) == (light == "cannot tell")


def test_replicas_that_say_worse_are_heeded() -> None:
    actual = verdict(recorded(daily(4), "FCFS"), tested=replicas("worse", 1.5, (1.2, 1.9)))
    assert actual.light == "worse"
    assert "SPF is WORSE than simulated FCFS" in actual.sentences[0]


def test_replicas_and_weeks_that_contradict_each_other_tell_nothing() -> None:
    actual = verdict(recorded(daily(), "FCFS"), tested=replicas("worse", 1.5, (1.2, 1.9)))
    assert actual.light == "cannot tell"
    assert "its replicas say worse, its own weeks better" in " ".join(actual.sentences)


def test_weeks_that_say_worse_are_heeded_where_replicas_show_nothing() -> None:
    actual = verdict(recorded(daily(), "FCFS"), tested=replicas("no difference", 1.1, (0.8, 1.5)), weeks="worse")
    # The record is first come, first served too, and it is better than that: but what is worse is not made up for.
    assert actual.light == "worse"
    assert "SPF is WORSE than simulated FCFS" in actual.sentences[0]
    assert "in its own weeks it is worse: do not use it" in actual.sentences[0]
    alone = verdict(daily(), tested=replicas("no difference", 1.1, (0.8, 1.5)), weeks="worse")
    assert alone.light == "worse"


def test_the_choice_is_judged_alone_however_many_policies_stand_beside_it() -> None:
    log = daily()
    outcome = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_bsld"], recorded=False).outcome
    (row,) = outcome.comparisons
    by_chance = dataclasses.replace(outcome, comparisons=(dataclasses.replace(row, verdict="no difference"),))
    base, own = (simulate(log, resolve(name), Rules()) for name in ("FCFS", "SPF"))
    actual = verdict_of(Evidence(by_chance, "mean_bsld", "SPF", base, own))
    assert any("SPF is better than simulated FCFS" in sentence for sentence in actual.sentences)


def test_what_gains_nothing_has_no_next_step_but_to_leave_it() -> None:
    limits = limits_of("0.1x", None, None)
    actual = verdict(recorded(daily(), "SAF"), tested=replicas("no difference", 1.06, (0.5, 2.1)), limits=limits)
    said = " ".join(actual.sentences)
    assert "costs more than is allowed" in said
    assert "leave the queue as it is" in said
    assert "Next step" not in said
    assert "more week" not in said


@pytest.mark.parametrize(
    ("ratio", "interval", "step"),
    [
        # Weeks there, 14: 14 times the square of half the interval over the value, and twice the rest of that.
        (0.9, (0.9 / 1.25, 0.9 * 1.25), "import 99 more weeks; so large a difference would show then"),
        # Less than five years of a longer log, and more.
        (0.9, (0.9**2.5, 0.9**-1.21), "import 109 more weeks; so large a difference would show then"),
        (0.9, (0.9**6, 0.9**-2.3), "so small a difference would not show in five years of jobs"),
        (0.99, (0.5, 1.8), "so small a difference would not show in five years of jobs; leave the queue as it is"),
        (0.9, None, "import a longer time"),
    ],
)
def test_cannot_tell_names_the_next_step(ratio: float, interval: tuple[float, float] | None, step: str) -> None:
    actual = verdict(recorded(daily(), "FCFS"), tested=replicas("no difference", ratio, interval))
    assert actual.light == "cannot tell"
    assert f"There is no evidence yet for a change of the queue: {step}" in " ".join(actual.sentences)


def test_a_published_policy_that_may_be_as_good_is_the_next_step() -> None:
    alike = ranking_to("SAF", Ranked("SPF", (1.0, 1.0), (0.9, 1.1), "no difference", ""))
    tested = dataclasses.replace(replicas("better"), to_peers=(alike,))
    actual = verdict(recorded(daily(), "FCFS"), tested=tested)
    assert actual.light == "cannot tell"
    assert actual.sentences[-1].endswith("policyfactory evaluate LOG --policies FCFS,SAF.")
    # To be better than the best one before is not enough: the next may be better by now.
    better = ranking_to("WFP3", Ranked("SPF", (0.6, 1.0), (0.5, 0.7), "better", ""))
    both = verdict(recorded(daily(), "FCFS"), tested=dataclasses.replace(tested, to_peers=(better, alike)))
    assert both.light == "cannot tell"
    (said,) = (text for text in both.sentences if "times that of WFP3" in text)
    assert (
        "0.60 [0.50, 0.70] times that of WFP3, the best published policy before (1.00 [0.90, 1.10] times that" in said
    )
    assert any("not shown to be better than SAF, which anybody can use" in text for text in both.sentences)
    assert both.sentences[-1].endswith("policyfactory evaluate LOG --policies FCFS,SAF.")
    thirds = {
        "loads": ((0.8, 0.9), (0.95, 1.05), (1.1, 1.2)),
        "rows": (dataclasses.replace(better.row("SPF"), by_load=(0.9, 0.6, 0.4)),),
    }
    better = dataclasses.replace(better, **thirds)
    shown = verdict(recorded(daily(), "FCFS"), tested=dataclasses.replace(tested, to_peers=(better, better)))
    assert shown.light == "better"
    assert any("By load that is 0.90 at loads of 0.80 to 0.90, 0.60 at" in text for text in shown.sentences)


def test_what_costs_more_than_is_allowed_on_replicas_or_beside_the_record_is_not_recommended() -> None:
    log = recorded(daily(14), "FCFS")
    cheap = verdict(log, tested=replicas("better"), limits=limits_of("1.1x", "1.5x", "1.2x"))
    assert cheap.light == "better"
    dear = Ranked("SPF", (0.5, 1.3), (0.4, 0.6), "better", "p99_wait is 1.3 times that of SAF")
    on_replicas = verdict(log, tested=dataclasses.replace(replicas("better"), to_peers=(ranking_to("SAF", dear),)))
    base, own = (measure(simulate(log, resolve(name), Rules()), ["max_wait"])["max_wait"] for name in ("FCFS", "SPF"))
    allowed = f"{own / base - 0.01:.2f}x"
    beside_record = verdict(log, tested=replicas("better"), limits=limits_of(None, allowed, None))
    for found, words in ((on_replicas, dear.out), (beside_record, f"max_wait is {own / base:.2f} times the record's")):
        assert found.light == "cannot tell"
        (said,) = (text for text in found.sentences if words in text)
        assert "not recommended" in said
        assert "--max-longest" in said


def test_a_limit_in_seconds_holds_whatever_the_record_is() -> None:
    longest = measure(simulate(daily(), resolve("SPF"), Rules()), ["max_wait"])["max_wait"]
    for log in (recorded(daily(), "FCFS"), daily()):
        for tested in (None, replicas("better")):
            found = verdict(log, tested=tested, limits=limits_of(None, f"{int(longest) - 60}s", None))
            assert found.light != "better"
            assert any("max_wait is" in text and "not recommended" in text for text in found.sentences)
    kept = verdict(recorded(daily(), "FCFS"), limits=limits_of(None, f"{int(longest) + 60}s", None))
    assert kept.light == "better"


def test_where_no_export_carries_a_threshold_none_is_proposed() -> None:
    log, limits = recorded(daily(), "FCFS"), limits_of(None, "1m", None)
    result: Any = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_bsld"], recorded="if-known")
    base, own = (simulate(log, resolve(name), Rules()) for name in ("FCFS", "SPF"))
    for can in (True, False):
        evidence = Evidence(result.outcome, "mean_bsld", "SPF", base, own, limits=limits, can_have_threshold=can)
        assert ("--threshold" in " ".join(verdict_of(evidence).sentences)) == can


def test_a_published_policy_need_not_be_better_than_others_that_order_alike() -> None:
    # On jobs of one width these are one policy.
    alike = Ranked("SPF", (1.0, 1.0), (1.0, 1.0), "no difference", "")
    tested = replicas("better")
    tested = dataclasses.replace(tested, to_peers=tuple(ranking_to(name, alike) for name in ("SAF", "SPF", "SRF")))
    assert verdict(recorded(daily(), "FCFS"), tested=tested).light == "better"


@pytest.mark.parametrize(("peer", "light"), [("SPF", "cannot tell"), ("LPF", "better")])
def test_without_replicas_what_was_learned_has_to_be_better_than_published_policies(peer: str, light: str) -> None:
    # It orders as SPF does.
    log, policy = recorded(daily(), "FCFS"), pf.Policy("LEARNED", "p + 1")
    result: Any = pf.evaluate(log, ["FCFS", policy, peer], metrics=["mean_bsld"], recorded="if-known")
    base, own = (simulate(log, its, Rules()) for its in (resolve("FCFS"), policy))
    found = verdict_of(Evidence(result.outcome, "mean_bsld", "LEARNED", base, own, peers=(peer,)))
    assert found.light == light
    assert any("no replicas" in text and peer in text for text in found.sentences)
    # What may be as good is the next step.
    assert any(f"--policies FCFS,{peer}" in text for text in found.sentences) == (light != "better")
    assert any("Next step" in text for text in found.sentences) == (light != "better")


def test_weeks_to_import_follow_from_the_weeks_that_were_replicated() -> None:
    unsure = replicas("no difference", 0.9, (0.9 / 1.25, 0.9 * 1.25), weeks=2.0)
    said = " ".join(verdict(recorded(daily(), "FCFS"), tested=unsure).sentences)
    assert "take replicas of 9 weeks of it (more --minutes)" in said
    # Where all of them were, there is nothing left to take.
    whole = replicas("no difference", 0.9, (0.9 / 1.06, 0.9 * 1.06), weeks=13.9)
    assert "import 2 more weeks" in " ".join(verdict(recorded(daily(), "FCFS"), tested=whole).sentences)


def test_where_the_baseline_had_no_time_on_replicas_these_are_the_next_step() -> None:
    tested = dataclasses.replace(replicas("better"), to_baseline=None)
    said = " ".join(verdict(recorded(daily(), "FCFS"), tested=tested, weeks="no difference").sentences)
    assert "There is no evidence yet for a change of the queue: --replicas 9 has FCFS on replicas" in said
    assert "import" not in said


def test_too_few_weeks_say_how_many_to_import() -> None:
    short = weeks_to_import(3, "the second half", 2)
    actual = verdict(recorded(daily(4), "FCFS"), short=short)
    assert actual.light == "cannot tell"
    assert "import 6 more weeks: the second half has 3 whole weeks, and 6 are needed" in " ".join(actual.sentences)
    assert not weeks_to_import(6, "the second half", 2)


# What the numbers rest on. --------------------------------------------------------------------------------------------


def test_the_caveats_name_time_load_machine_and_what_was_changed() -> None:
    steps = (
        CleaningStep("changed", 660, "no requested time, the run time taken", "", 1, 1),
        CleaningStep("dropped", 10, "run time 0", "", 1, 1),
        CleaningStep("kept", 5, "noticed", "", 1, 1),
    )
    report = CleaningReport("a.swf", "", "default", "", "runtime", 4, "--processors", 1000, 990, steps, 0)
    first, second = basis_in_words(dataclasses.replace(daily(), cleaning=report))
    assert first.startswith("The verdict rests on 1,372 jobs of 97d ")
    assert "2001-09-09 to 2001-12-15" in first
    assert first.endswith(" on 4 processors (--processors).")
    assert second == (
        "Of the log: 66 % of the jobs changed (no requested time, the run time taken); 1 % of the jobs left out (run "
        "time 0)."
    )


@pytest.mark.parametrize(
    ("windows", "short", "unsound"),
    [
        ("10x6h", True, True),
        ("3x7d", False, False),
        ("30x30h", True, False),
        ("100x20jobs", True, False),
        ("5x2jobs", True, True),
    ],
)
def test_windows_shorter_than_several_requests_are_warned_of(windows: str, short: bool, unsound: bool) -> None:
    # 40 % of the jobs request 2 to 6 hours, and nearly all the work is theirs; 14 jobs come in a day, which are done
    # long before the next.
    jobs, cut = daily(), parse_windows(windows)
    sentences = windows_too_short(jobs, cut)
    assert bool(sentences) == short
    assert windows_too_short(jobs, cut, unsound=True) == (sentences if unsound else ())
    if short:
        assert f"({cut}) begin on an empty machine" in sentences[0]
        assert "% of the work) request more than a quarter of that" in sentences[0]


@pytest.mark.parametrize("threshold", [65.0 * HOUR, math.inf])
def test_where_a_threshold_is_all_that_is_more_the_route_that_keeps_it_is_named(threshold: float) -> None:
    log = recorded(daily(), "FCFS")
    result: Any = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_bsld", "mean_wait"], recorded="if-known")
    base, own = (simulate(log, resolve(name), Rules(threshold=threshold)) for name in ("FCFS", "SPF"))
    alike = ranking_to("SAF", Ranked("SPF", (1.0, 1.0), (0.9, 1.1), "no difference", ""))
    tested = choice.Tested((alike,), alike, 14.0)
    said = " ".join(verdict_of(Evidence(result.outcome, "mean_bsld", "SPF", base, own, tested)).sentences)
    assert "SPF is not shown to be better than SAF, which anybody can use" in said
    assert "Next step: " not in said  # The replicas do not show it to be better than first come, first served either.
    assert ("(policyfactory export --to slurm-site-factor-c)" in said) == math.isfinite(threshold)


@pytest.mark.parametrize(("word", "light"), [("no difference", "better"), ("worse", "cannot tell")])
def test_the_best_published_policy_with_a_threshold_need_not_be_better_than_without(word: str, light: str) -> None:
    log = recorded(daily(), "FCFS")
    guarded = pf.Policy("SPF-65h", "p", threshold=65.0 * HOUR)
    result: Any = pf.evaluate(log, ["FCFS", guarded], metrics=["mean_bsld", "mean_wait"], recorded="if-known")
    base, own = (simulate(log, resolve(name), Rules(threshold=65.0 * HOUR)) for name in ("FCFS", "SPF"))
    peer, first = (
        ranking_to(name, Ranked("SPF-65h", (1.0, 1.0), (0.9, 1.1), found, ""))
        for name, found in (("SPF", word), ("FCFS", "better"))
    )
    tested = choice.Tested((peer,), first, 14.0)
    actual = verdict_of(Evidence(result.outcome, "mean_bsld", "SPF-65h", base, own, tested))
    assert actual.light == light
    assert "slurm-site-factor-c" in " ".join(actual.sentences)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ((), ()),
        (("group", "queue"), ()),
        (("executable",), ("JobName",)),
        (("requested_memory", "partition"), ("--leave-out requested_memory --leave-out partition",)),
        (("requested_memory", "executable"), ("--leave-out requested_memory", "JobName")),
    ],
)
def test_what_predictions_read_and_a_script_does_not_know_is_said(
    known: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    log = daily(4)
    attributes = dataclasses.replace(
        Attributes.unknown(len(log)), **{name: np.arange(len(log), dtype=np.int64) for name in known}
    )
    sentences = unknown_in_words(dataclasses.replace(log, attributes=attributes))
    assert len(sentences) == len(expected)
    assert all(words in sentence for words, sentence in zip(expected, sentences, strict=True))
    assert unknown_in_words(dataclasses.replace(log, attributes=None)) == ()
