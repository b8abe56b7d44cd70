"""Verdicts on logs that are made for them: true and useful, or why it cannot be actual."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from daily_log import daily, recorded

import policyfactory as pf
from policyfactory.core.units import DAY, HOUR
from policyfactory.evaluate.basis import basis_in_words, windows_too_short
from policyfactory.learn.verdict import Evidence, judge
from policyfactory.policy.catalogue import resolve
from policyfactory.report.verdict import Verdict
from policyfactory.simulate.simulate import Rules, simulate
from policyfactory.workload.cleaning_report import CleaningReport, CleaningStep
from policyfactory.workload.jobs import Workload
from policyfactory.workload.windows import parse_windows


def verdict(log: Workload, chosen: str = "SPF", *, resamples: int = 0, metric: str = "mean_bsld") -> Verdict:
    policies = list(dict.fromkeys(["FCFS", chosen]))
    metrics = list(dict.fromkeys([metric, "mean_wait"]))
    result: Any = pf.evaluate(log, policies, metrics=metrics, recorded="if-known")
    drawn: Any = pf.evaluate(log, policies, metrics=metrics, resamples=resamples) if resamples else None
    base, own = (simulate(log, resolve(name), Rules()) for name in ("FCFS", chosen))
    return judge(Evidence(result, metric, chosen, base, own, drawn))


def test_better_than_the_record_and_than_first_come_first_served() -> None:
    actual = verdict(recorded(daily(), "FCFS"))
    assert actual.light == "better"
    first, second, third = actual.sentences
    assert first.startswith("SPF is better than the recorded schedule in mean_bsld: ")
    assert "95 % interval" in first
    assert "On the last quarter, which had no part in the choice, SPF is better than simulated FCFS" in second
    # The longest waits stand beside it, of the choice, the baseline and the record, and who pays.
    assert third.startswith("The longest wait: SPF ")
    assert "simulated FCFS" in third
    assert "the record" in third
    assert "who waits longer than under FCFS: the longest quarter" in third


def test_what_is_worse_than_the_record_is_not_recommended() -> None:
    # The record is of a policy that is better than the choice, which is better than FCFS.
    actual = verdict(recorded(daily(), "SPF"), "WFP3")
    assert actual.light == "worse"
    assert "WFP3 is WORSE than the recorded schedule in mean_bsld" in actual.sentences[0]
    assert "leave the queue as it is" in actual.sentences[0]
    assert "WFP3 is better than simulated FCFS" in actual.sentences[1]


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


def test_without_a_record_nothing_is_recommended() -> None:
    actual = verdict(daily())
    assert actual.light == "cannot tell"
    assert "nothing is shown to be better than what your scheduler did" in actual.sentences[0]
    assert "SPF is better than simulated FCFS" in actual.sentences[1]


# Nothing to tell. -----------------------------------------------------------------------------------------------------


def test_where_nobody_waits_no_order_is_better() -> None:
    actual = verdict(recorded(daily(machine=400), "FCFS"))
    assert actual.light == "cannot tell"
    assert actual.sentences[0].startswith(
        "Nobody waits in this log under any order (0 % of the jobs wait longer than 10 s"
    )
    assert "submit times are its start times" in actual.sentences[1]
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
    assert actual.sentences == ("SPF starts every job when FCFS does: this log cannot tell the two apart.",)


def test_the_baseline_is_no_improvement() -> None:
    actual = verdict(recorded(daily(), "FCFS"), "FCFS")
    assert (actual.light, actual.sentences) == (
        "cannot tell",
        ("Nothing was better than FCFS: leave the queue as it is.",),
    )


# Few weeks. -----------------------------------------------------------------------------------------------------------


def test_few_weeks_are_drawn_anew() -> None:
    actual = verdict(recorded(daily(4), "FCFS"), resamples=40)
    # They agree on the baseline; but no drawn log has a record, and four weeks show nothing against it.
    assert actual.light == "cannot tell"
    assert "SPF is not shown to be better than the recorded schedule" in actual.sentences[0]
    assert "4 weeks are too few: 6 are needed" in actual.sentences[1]
    assert "So 40 logs of the same length were drawn from its users' weeks: SPF is better" in actual.sentences[1]
    assert "than simulated FCFS in 40 of them" in actual.sentences[1]


def test_logs_that_are_drawn_again_and_again_tell_nothing() -> None:
    log = recorded(daily(4), "FCFS")
    result: Any = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_bsld"], recorded=True)
    # Of forty draws one is left, since the others are the same.
    row = dataclasses.replace(result.outcome.comparisons[0], wins=1, losses=0, cases=1)
    drawn: Any = SimpleNamespace(outcome=SimpleNamespace(comparisons=(row,)))
    base, own = (simulate(log, resolve(name), Rules()) for name in ("FCFS", "SPF"))
    actual = judge(Evidence(result, "mean_bsld", "SPF", base, own, drawn))
    assert actual.light == "cannot tell"
    assert "cannot say whether SPF is better than FCFS" in actual.sentences[1]
    assert "and draws from its users' weeks make only 1 different log; import a longer time" in actual.sentences[1]


def test_why_no_logs_are_drawn_is_said() -> None:
    log = recorded(daily(4), "FCFS")
    result: Any = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_bsld"], recorded=True)
    base, own = (simulate(log, resolve(name), Rules()) for name in ("FCFS", "SPF"))
    actual = judge(Evidence(result, "mean_bsld", "SPF", base, own, undrawn="it has only one whole week"))
    assert actual.light == "cannot tell"
    assert "no logs can be drawn from them: it has only one whole week." in actual.sentences[1]


def test_few_weeks_that_do_not_agree_tell_nothing() -> None:
    log = recorded(daily(4), "FCFS")
    result: Any = pf.evaluate(log, ["FCFS", "SPF"], metrics=["mean_bsld"], recorded=True)
    row = dataclasses.replace(result.outcome.comparisons[0], wins=30, losses=10, cases=40)
    drawn: Any = SimpleNamespace(outcome=SimpleNamespace(comparisons=(row,)))
    base, own = (simulate(log, resolve(name), Rules()) for name in ("FCFS", "SPF"))
    actual = judge(Evidence(result, "mean_bsld", "SPF", base, own, drawn))
    assert actual.light == "cannot tell"
    assert "SPF is better than simulated FCFS in 30 of them and worse in 10" in actual.sentences[1]
    assert "import a longer time" in actual.sentences[1]


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
    alike = SimpleNamespace(name="SPF", ratios=(1.0, 1.0), interval=(0.9, 1.1), verdict="no difference", out="")
    ranking: Any = SimpleNamespace(peer="SAF", replicas=9, aims=("mean_bsld", "mean_wait"), row=lambda _: alike)
    tested: Any = SimpleNamespace(to_peer=ranking, to_baseline=ranking)
    said = " ".join(judge(Evidence(result, "mean_bsld", "SPF", base, own, None, tested)).sentences)
    assert "SPF is not shown to be better than SAF, which anybody can use" in said
    assert ("(policyfactory export --to slurm-site-factor-c)" in said) == math.isfinite(threshold)
