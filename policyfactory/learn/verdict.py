"""What the last quarter says about a chosen policy, for who has to decide about a queue.

The comparison that counts for a site is with what it has now: the recorded schedule. A policy is recommended only if it
is shown to be better than the record and than the simulated baseline, and if the replay of the baseline is near enough
to the record for a simulation to mean anything.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from policyfactory.core.text import percent_change
from policyfactory.core.units import format_duration
from policyfactory.learn.comparing import CLASSICAL, Compared
from policyfactory.learn.words import difference_in_words, value_in_words
from policyfactory.report.caveats import too_few_weeks
from policyfactory.report.verdict import Light, Verdict
from policyfactory.simulate.metrics import METRICS, TAU
from policyfactory.simulate.schedule import Schedule
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.summary import Summary

__all__ = ["Evidence", "judge"]

_BASELINE = CLASSICAL[0]
_NOBODY = 0.01  # share of the jobs: fewer that wait tell no orders apart
_TOO_FAR = 2.0  # times as bad as the replay of the baseline: the record waits for what is not simulated
_AGREE = 0.975  # share of the resampled logs
_BUSY = 0.95  # offered load that is proposed instead


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a verdict is made from.

    Parameters
    ----------
    compared : Compared
        The choice and others on the last quarter.
    metric : str
        By what was chosen.
    chosen : str
        Name of the choice.
    baseline, choice : Schedule
        The last quarter under the simulated baseline, and under the choice.
    resampled : Compared or None
        The same policies on logs drawn from the last quarter, where its own weeks are too few.
    """

    compared: Compared
    metric: str
    chosen: str
    baseline: Schedule
    choice: Schedule
    resampled: Compared | None = None

    def row(self, compared: Compared, *, recorded: bool = False) -> Comparison | None:
        """Return the comparison of the choice with the baseline, or with the record."""
        outcome = compared.outcome
        rows = outcome.recorded_comparisons if recorded else outcome.comparisons
        return next((row for row in rows if row.policy == self.chosen and row.metric == self.metric), None)

    def value(self, policy: str) -> Summary | None:
        """Return the value of a policy on the last quarter, or of the record."""
        outcome = self.compared.outcome
        rows = (*outcome.summaries, *outcome.recorded_summaries)
        return next((row for row in rows if row.policy == policy and row.metric == self.metric), None)


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict.

    Parameters
    ----------
    evidence : Evidence
        The comparisons.
    """
    load = evidence.baseline.workload.offered_load
    if quiet := _nobody_waits(evidence, load):
        return Verdict("cannot tell", quiet)
    if evidence.chosen == _BASELINE:
        return Verdict("cannot tell", (f"Nothing was better than {_BASELINE}: leave the queue as it is.",))
    light, sentences = _against_baseline(evidence)
    if light == "better":
        light, more = _against_record(evidence)
        sentences = (*more, *sentences)
    return Verdict(light, (*sentences, *_who_pays(evidence)))


# Whether there is anything to tell. -----------------------------------------------------------------------------------


def _nobody_waits(evidence: Evidence, load: float) -> tuple[str, ...]:
    """Return why no order of the queue can be told from another; nothing if one can."""
    waiting = max(float(np.mean(schedule.wait > TAU)) for schedule in (evidence.baseline, evidence.choice))
    alike = bool((evidence.baseline.start == evidence.choice.start).all()) and evidence.chosen != _BASELINE
    if waiting < _NOBODY:
        first = (
            f"Nobody waits in this log under any order ({100 * waiting:.2g} % of the jobs wait longer than {TAU} s; "
            f"offered load {load:.2f}): it cannot tell orders apart."
        )
        return (first, *_why_the_record_waits(evidence), _what_helps(load))
    if alike:
        return (f"{evidence.chosen} starts every job when {_BASELINE} does: this log cannot tell the two apart.",)
    return ()


def _why_the_record_waits(evidence: Evidence) -> tuple[str, ...]:
    jobs = evidence.baseline.workload
    known = jobs.start >= jobs.submit
    if not known.any():
        return ()
    wait = (jobs.start - jobs.submit)[known] / jobs.ticks
    if float(np.mean(wait == 0)) > 1 - _NOBODY:
        return (
            (
                "The log's submit times are its start times (no job waits in the record either), so that it says "
                "nothing about waiting: ask for the accounting with the real submissions."
            ),
        )
    if float(wait.mean()) > 60:
        return (
            (
                f"In the record jobs waited {format_duration(float(wait.mean()))} on average, though the machine had "
                "room: for what the log does not have (limits of users and queues, partitions, reservations, nodes "
                "that were down), and not for the order of the queue."
            ),
        )
    return ()


def _what_helps(load: float) -> str:
    faster = f"--load {max(_BUSY / load, 1.1):.1f}" if load > 0 else "--load 2"
    return (
        f"What helps: evaluate the policies with the jobs arriving faster ({faster}), learn from a busier time or "
        "machine, or from the jobs of the site's busiest partition with that partition's processors."
    )


# Better than the baseline, and than what the site has. ----------------------------------------------------------------


def _against_baseline(evidence: Evidence) -> tuple[Light, tuple[str, ...]]:
    name, row = evidence.chosen, evidence.row(evidence.compared)
    if row is None:
        return "cannot tell", (f"{name} was not compared with {_BASELINE}.",)
    where = "On the last quarter, which had no part in the choice,"
    if evidence.resampled is not None:
        return _by_resampled_logs(evidence, evidence.resampled, row)
    against = f"simulated {_BASELINE} in {evidence.metric}: {_both(evidence)}{difference_in_words(row)}"
    if row.verdict == "better":
        return "better", (f"{where} {name} is better than {against}.",)
    if row.verdict == "worse":
        return "worse", (
            f"{where} {name} is WORSE than {against}: do not use it; what was learned does not hold for later jobs.",
        )
    return "cannot tell", (
        (
            f"{where} {name} is not shown to be better than {against}: there is no evidence yet for a change of the "
            "queue; import a longer time."
        ),
    )


def _by_resampled_logs(evidence: Evidence, resampled: Compared, row: Comparison) -> tuple[Light, tuple[str, ...]]:
    """Return what logs drawn from the last quarter say: the choice must win in nearly all of them, and in it."""
    name = evidence.chosen
    drawn = evidence.row(resampled)
    weeks = next(iter(evidence.compared.outcome.evaluation.weekly.values()), None)
    why = "its weeks give no interval" if weeks is None or weeks.enough else too_few_weeks(weeks, _BASELINE)
    if drawn is None or not drawn.cases:
        return "cannot tell", (f"The last quarter cannot say whether {name} is better than {_BASELINE}: {why}.",)
    better = METRICS[evidence.metric].lower_is_better
    sign = -1 if better else 1
    first = (
        f"In the last quarter {evidence.metric} is {_both(evidence)} under {_BASELINE}; there is no interval, since "
        f"{why}. So {drawn.cases} logs of the same length were drawn from its users' weeks:"
    )
    if drawn.wins >= _AGREE * drawn.cases and sign * row.difference > 0:
        return "better", (f"{first} {name} is better than simulated {_BASELINE} in {drawn.wins} of them.",)
    if drawn.losses >= _AGREE * drawn.cases and sign * row.difference < 0:
        return "worse", (f"{first} {name} is WORSE than simulated {_BASELINE} in {drawn.losses}: do not use it.",)
    return "cannot tell", (
        (
            f"{first} {name} is better than simulated {_BASELINE} in {drawn.wins} of them and worse in {drawn.losses}. "
            "That is no evidence for a change of the queue; import a longer time."
        ),
    )


def _both(evidence: Evidence) -> str:
    choice, base = evidence.value(evidence.chosen), evidence.value(_BASELINE)
    if choice is None or base is None:
        return "no value"
    return f"{value_in_words(choice)} against {value_in_words(base)}"


def _against_record(evidence: Evidence) -> tuple[Light, tuple[str, ...]]:
    """Return whether the choice is better than the record too, and whether the replay is near enough to say so."""
    name, metric = evidence.chosen, evidence.metric
    record, base, row = evidence.value("recorded"), evidence.value(_BASELINE), evidence.row(
        evidence.compared, recorded=True
    )  # fmt: skip
    if record is None or base is None or row is None or not math.isfinite(record.value):
        return "cannot tell", (
            (
                "The log does not say when its jobs started, so nothing is shown to be better than what your scheduler "
                "did: import the accounting with its start times."
            ),
        )
    own = evidence.value(name)
    values = f"{value_in_words(own)} against {value_in_words(record)}" if own else value_in_words(record)
    against = f"the recorded schedule in {metric}: {values}{difference_in_words(row)}"
    better = METRICS[metric].lower_is_better
    # A record that is much better than the baseline may have a better policy; one that is much worse has other reasons.
    worse, nearer = (record.value, base.value) if better else (base.value, record.value)
    far = nearer > 0 and worse / nearer > _TOO_FAR
    if far:
        return "unsound", (
            (
                f"The simulation is too far from the record to judge by it: {metric} was {value_in_words(record)}, and "
                f"the replay under {_BASELINE} has {value_in_words(base)} "
                f"({percent_change(base.value / record.value - 1)}). Your scheduler does what the simulation leaves "
                "out (priorities, limits, reservations, partitions, nodes that were down), so nothing is recommended."
            ),
        )
    if row.verdict == "better":
        return "better", (f"{name} is better than {against}.",)
    if row.verdict == "worse":
        return "worse", (f"{name} is WORSE than {against}: leave the queue as it is.",)
    return "cannot tell", (f"{name} is not shown to be better than {against}: nothing is recommended.",)


# Who pays. ------------------------------------------------------------------------------------------------------------


def _who_pays(evidence: Evidence) -> tuple[str, ...]:
    """Return the longest waits and the jobs that wait longer than under the baseline, in one sentence."""
    base, own, jobs = evidence.baseline.wait, evidence.choice.wait, evidence.baseline.workload
    longest = {evidence.chosen: own, f"simulated {_BASELINE}": base}
    if (jobs.start >= jobs.submit).all():
        longest["the record"] = (jobs.start - jobs.submit) / jobs.ticks
    ends = {name: np.quantile(wait, [1, 0.99]).tolist() for name, wait in longest.items()}
    waits = "; ".join(
        f"{name} {format_duration(most)} (99 % of the jobs: {format_duration(nearly)})"
        for name, (most, nearly) in ends.items()
    )
    groups = {
        "the widest quarter of the jobs": jobs.processors >= np.quantile(jobs.processors, 0.75),
        "the longest quarter": jobs.run_time >= np.quantile(jobs.run_time, 0.75),
        "the shortest quarter": jobs.run_time <= np.quantile(jobs.run_time, 0.25),
        "jobs of one processor": jobs.processors == 1,
    }
    means = {name: (float(base[rows].mean()), float(own[rows].mean())) for name, rows in groups.items() if rows.any()}
    losers = [
        f"{name} ({format_duration(was)} to {format_duration(now)} on average)"
        for name, (was, now) in means.items()
        if now > was + 60 and now > 1.05 * was
    ]
    who = f"; who waits longer than under {_BASELINE}: {', '.join(losers)}" if losers else ""
    return (f"The longest wait: {waits}{who}.",)
