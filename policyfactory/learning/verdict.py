"""What the second half says about a chosen policy, for who has to decide about a queue.

The comparison that counts for a site is with what it has now: the recorded schedule. A policy is recommended only if it
is shown to be better than the record and than the simulated baseline, and if the replay of the baseline is near enough
to the record for a simulation to mean anything.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from policyfactory.core.text import WEEK, counted, format_duration
from policyfactory.evaluation.precision import needed
from policyfactory.evaluation.verdict import against_record, nobody_waits, requests_invented
from policyfactory.learning.choice import Tested
from policyfactory.learning.comparing import CLASSICAL, Compared
from policyfactory.learning.ranking import Ranked
from policyfactory.report.verdict import Light, Verdict, difference_in_words, value_in_words
from policyfactory.simulation.schedule import Schedule
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.summary import Summary

_BASELINE = CLASSICAL[0]
_TINY = 1e-300
_CANNOT_TELL = "cannot tell"
_GUARDED = "is kept by the plugin in C (policyfactory export --to slurm-site-factor-c) and left out by Lua"
_LONGEST = 260  # weeks: who would have to import more has too small a difference
_NO_RECORD = (
    "The log does not say when its jobs started, so nothing is shown to be better than what your scheduler did: "
    "import the accounting with its start times."
)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a verdict is made from.

    Parameters
    ----------
    compared : Compared
        The choice and others on the second half.
    metric : str
        By what was chosen.
    chosen : str
        Name of the choice.
    baseline, choice : Schedule
        The second half under the simulated baseline, and under the choice.
    tested : Tested or None
        The choice on replicas of the second half.
    short : str
        What to import, where the second half is too short for a verdict; empty if it is not.
    """

    compared: Compared
    metric: str
    chosen: str
    baseline: Schedule
    choice: Schedule
    tested: Tested | None = None
    short: str = ""

    def row(self, compared: Compared) -> Comparison | None:
        """Return the comparison of the choice with the baseline."""
        rows = compared.outcome.comparisons
        return next((row for row in rows if row.policy == self.chosen and row.metric == self.metric), None)

    def value(self, policy: str) -> Summary | None:
        """Return the value of a policy on the second half."""
        rows = self.compared.outcome.summaries
        return next((row for row in rows if row.policy == policy and row.metric == self.metric), None)


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict.

    Parameters
    ----------
    evidence : Evidence
        The comparisons.
    """
    evaluation, jobs = evidence.compared.outcome.evaluation, evidence.baseline.workload
    log = evaluation.logs[0]
    if quiet := nobody_waits(evaluation, log, jobs):
        return Verdict("cannot tell", quiet)
    if invented := requests_invented(jobs):
        return Verdict("unsound", (*invented, "No policy is recommended."))
    if evidence.chosen == _BASELINE:
        return Verdict("cannot tell", (f"Nothing was better than {_BASELINE}: leave the queue as it is.",))
    if (evidence.baseline.start == evidence.choice.start).all():
        alike = (
            f"{evidence.chosen} starts every job when {_BASELINE} does: this log cannot tell the two apart; leave the "
            "queue as it is."
        )
        return Verdict("cannot tell", (alike,))
    light, sentences = _against_baseline(evidence)
    by_record, first = against_record(evidence.compared.outcome, log, evidence.chosen)
    # What a site has now comes first; but what is worse than no order at all is refused for that.
    if not by_record and not evidence.compared.outcome.experiment.unrecorded:
        first = (_NO_RECORD,)
    words = (*sentences, *first) if light == "worse" else (*first, *sentences)
    beside, by_peer = _against_peer(evidence)
    step: tuple[str, ...] = ()
    if by_record == "unsound":
        light = "unsound"
    elif light == "better" and by_record == "better":
        light, step = by_peer or light, _to_peer(evidence) if by_peer else ()
    elif light == "better":
        light, step = by_record or "cannot tell", _to_record(evidence) if by_record == "cannot tell" else ()
    return Verdict(light, (*words, *beside, *_who_pays(evidence), *step))


def _to_peer(evidence: Evidence) -> tuple[str, ...]:
    """Return what to do where the published policy may be as good."""
    peer = "" if evidence.tested is None else evidence.tested.to_peer.peer
    return (
        f"Next step: see what {peer} is worth by itself, policyfactory evaluate LOG --policies {_BASELINE},{peer}.",
    )


def _to_record(evidence: Evidence) -> tuple[str, ...]:
    """Return how long a log would show the choice to be better than the record."""
    rows = evidence.compared.outcome.recorded_comparisons
    row = next(row for row in rows if (row.policy, row.metric) == (evidence.chosen, evidence.metric))
    ends = None if row.interval is None else (row.interval.low, row.interval.high)
    return (f"Next step: {_more_weeks(evidence, row.difference, ends)}.",)


# Better than the baseline, and than what the site has. ----------------------------------------------------------------


def _against_baseline(evidence: Evidence) -> tuple[Light, tuple[str, ...]]:
    """Return what replicas of the second half say, unless its weeks say the contrary; without replicas, its weeks."""
    name, row = evidence.chosen, evidence.row(evidence.compared)
    if row is None:
        return "cannot tell", (f"{name} was not compared with {_BASELINE}.",)
    where = "On the second half, which had no part in the choice,"
    against = f"simulated {_BASELINE} in {evidence.metric}: {_both(evidence)}"
    if evidence.short:
        return "cannot tell", (f"{where} {name} cannot be told from {against}: {evidence.short}.",)
    word: str = row.verdict
    if evidence.tested is None:
        against = f"{against}{difference_in_words(row)}"
        ends = None if row.interval is None else (row.interval.low, row.interval.high)
        more = _more_weeks(evidence, row.difference, ends)
    else:
        ranking = evidence.tested.to_baseline
        tested = ranking.row(name)
        word = _CANNOT_TELL if {tested.verdict, row.verdict} == {"better", "worse"} else tested.verdict
        against = f"{against}. On {ranking.replicas} replicas of it the ratio is {_ratio(tested)}"
        ends = tested.interval and (math.log(max(tested.interval[0], _TINY)), math.log(tested.interval[1]))
        more = _more_weeks(evidence, math.log(max(tested.ratios[0], _TINY)), ends)
        if word == _CANNOT_TELL:
            more = f"its replicas say {tested.verdict}, its own weeks {row.verdict}; import a longer time"
    if word == "better":
        return "better", (f"{where} {name} is better than {against}.",)
    if word == "worse":
        return "worse", (
            f"{where} {name} is WORSE than {against}: do not use it; what was learned does not hold for later jobs.",
        )
    said = (
        f"{where} {name} is not shown to be better than {against}. There is no evidence yet for a change of the queue"
    )
    return "cannot tell", (f"{said}: {more}.",)


def _more_weeks(evidence: Evidence, value: float, ends: tuple[float, float] | None) -> str:
    """Return how much longer a log would show the difference if it stays: intervals shrink as 1 / sqrt(weeks)."""
    jobs = evidence.baseline.workload
    weeks = float(jobs.submit[-1] - jobs.submit[0]) / (WEEK * jobs.ticks)
    if ends is None or not value or not all(map(math.isfinite, (value, *ends))):
        return "import a longer time"
    want = needed(weeks, (ends[1] - ends[0]) / 2, abs(value))
    if want is None or want > _LONGEST:
        return "so small a difference would not show in five years of jobs; leave the queue as it is"
    # Of a longer log, half are the second half.
    return (
        f"import {counted(max(math.ceil(2 * (want - weeks)), 2), 'more week')}; so large a difference would show then"
    )


def _against_peer(evidence: Evidence) -> tuple[tuple[str, ...], Light | None]:
    """Return what replicas of the second half say of the choice and the best published policy; None if it is better.

    What is learned and needs a predictor has to be better than a published formula, which needs nothing.
    """
    tested = evidence.tested
    if tested is None or evidence.chosen in (tested.to_peer.peer, _BASELINE):
        return (), None
    ranking = tested.to_peer
    row, peer = ranking.row(evidence.chosen), ranking.peer
    prices = ", ".join(
        f"{aim} {ratio:.2f}"
        for aim, ratio in zip(ranking.aims[1:], row.ratios[1:], strict=True)
        if math.isfinite(ratio)
    )
    said = (
        f"On {ranking.replicas} replicas of the second half {evidence.metric} is {_ratio(row)} times that of {peer}, "
        f"the best published policy before; its price, as ratios: {prices}."
    )
    if row.verdict == "better":
        return (said,), None
    if evidence.chosen.removeprefix(f"{peer}-")[:-1].isdigit() and row.verdict != "worse":
        # The published policy itself, with a guard: there is nothing that it would have to be better than.
        return (said, f"{evidence.chosen} is {peer} with a threshold, which {_GUARDED}."), None
    alike = f"So {evidence.chosen} is not shown to be better than {peer}, which anybody can use"
    if math.isfinite(evidence.choice.rules.threshold):
        # The route that export takes by default has no threshold: who takes it gets the peer.
        alike += f" by any route into a scheduler; the threshold of {evidence.chosen} {_GUARDED}"
    return (said, f"{alike}."), "cannot tell"


def _ratio(row: Ranked) -> str:
    low, high = row.interval or (row.ratios[0], row.ratios[0])
    return f"{row.ratios[0]:.2f} [{low:.2f}, {high:.2f}]"


def _both(evidence: Evidence) -> str:
    choice, base = evidence.value(evidence.chosen), evidence.value(_BASELINE)
    if choice is None or base is None:
        return "no value"
    return f"{value_in_words(choice)} against {value_in_words(base)}"


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
    cut = evidence.compared.outcome.evaluation.cases[0].kind == "window"
    where = "In one continuous simulation of the second half, the" if cut else "The"
    return (f"{where} longest wait: {waits}{who}.",)
