"""What the last quarter says about a chosen policy, for who has to decide about a queue.

The comparison that counts for a site is with what it has now: the recorded schedule. A policy is recommended only if it
is shown to be better than the record and than the simulated baseline, and if the replay of the baseline is near enough
to the record for a simulation to mean anything.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from policyfactory.core.text import counted
from policyfactory.core.units import format_duration
from policyfactory.evaluate.verdict import against_record, nobody_waits, requests_invented
from policyfactory.learn.choice import Tested
from policyfactory.learn.comparing import CLASSICAL, Compared
from policyfactory.learn.ranking import Ranked
from policyfactory.report.caveats import too_few_weeks
from policyfactory.report.verdict import Light, Verdict, difference_in_words, value_in_words
from policyfactory.simulate.metrics import METRICS
from policyfactory.simulate.schedule import Schedule
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.intervals import MIN_CASES
from policyfactory.statistics.summary import Summary

__all__ = ["Evidence", "judge"]

_BASELINE = CLASSICAL[0]
_AGREE = 0.975  # share of the resampled logs
_NO_RECORD = (
    (
        "The log does not say when its jobs started, so nothing is shown to be better than what your scheduler did: "
        "import the accounting with its start times."
    ),
)


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
    tested : Tested or None
        The choice on replicas of the last quarter.
    undrawn : str
        Why no logs can be drawn from the last quarter; empty if they can, or need not be.
    """

    compared: Compared
    metric: str
    chosen: str
    baseline: Schedule
    choice: Schedule
    resampled: Compared | None = None
    tested: Tested | None = None
    undrawn: str = ""

    def row(self, compared: Compared) -> Comparison | None:
        """Return the comparison of the choice with the baseline."""
        rows = compared.outcome.comparisons
        return next((row for row in rows if row.policy == self.chosen and row.metric == self.metric), None)

    def value(self, policy: str) -> Summary | None:
        """Return the value of a policy on the last quarter."""
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
        alike = f"{evidence.chosen} starts every job when {_BASELINE} does: this log cannot tell the two apart."
        return Verdict("cannot tell", (alike,))
    light, sentences = _against_baseline(evidence)
    by_record, first = against_record(evidence.compared.outcome, log, evidence.chosen)
    # What a site has now comes first; but what is worse than no order at all is refused for that.
    if not by_record and not evidence.compared.outcome.experiment.unrecorded:
        first = _NO_RECORD
    words = (*sentences, *first) if light == "worse" else (*first, *sentences)
    if by_record == "unsound":
        light = "unsound"
    elif light == "better":
        light = by_record or "cannot tell"
    beside, by_peer = _against_peer(evidence)
    if light == "better":
        light = by_peer or light
    return Verdict(light, (*words, *beside, *_who_pays(evidence)))


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
    if row.verdict == "too few cases" and evidence.tested is not None:
        return _by_replicas(evidence, evidence.tested, against)
    if row.verdict == "worse":
        return "worse", (
            f"{where} {name} is WORSE than {against}: do not use it; what was learned does not hold for later jobs.",
        )
    few = f" Its weeks give no interval, and no logs can be drawn from them: {evidence.undrawn}."
    return "cannot tell", (
        (
            f"{where} {name} is not shown to be better than {against}: there is no evidence yet for a change of the "
            f"queue; import a longer time.{few if evidence.undrawn else ''}"
        ),
    )


def _by_resampled_logs(evidence: Evidence, resampled: Compared, row: Comparison) -> tuple[Light, tuple[str, ...]]:
    """Return what logs drawn from the last quarter say: the choice must win in nearly all of them, and in it."""
    name = evidence.chosen
    drawn = evidence.row(resampled)
    weeks = next(iter(evidence.compared.outcome.evaluation.weekly.values()), None)
    no_mean = f"{evidence.metric} is no mean over the jobs, so that weeks give it no interval"
    why = no_mean if weeks is None or weeks.enough else too_few_weeks(weeks, _BASELINE)
    if drawn is None or not drawn.cases:
        return "cannot tell", (f"The last quarter cannot say whether {name} is better than {_BASELINE}: {why}.",)
    if drawn.cases < MIN_CASES:
        # Logs that are drawn again and again are one piece of evidence.
        alike = f"draws from its users' weeks make only {counted(drawn.cases, 'different log')}"
        few = f"The last quarter cannot say whether {name} is better than {_BASELINE}: {why}, and {alike}"
        return "cannot tell", (f"{few}; import a longer time.",)
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


def _by_replicas(evidence: Evidence, tested: Tested, against: str) -> tuple[Light, tuple[str, ...]]:
    """Return what replicas of the last quarter say, where its own weeks are too few for an interval."""
    name, ranking = evidence.chosen, tested.to_baseline
    row = ranking.row(name)
    first = (
        f"The weeks of the last quarter are too few for an interval ({name} against {against}). On "
        f"{ranking.replicas} replicas of it {evidence.metric} is {_ratio(row)} times that of simulated {_BASELINE}"
    )
    if row.verdict == "better":
        return "better", (f"{first}: {name} is better.",)
    if row.verdict == "worse":
        return "worse", (f"{first}: {name} is WORSE, do not use it.",)
    return "cannot tell", (f"{first}: that is no evidence for a change of the queue; import a longer time.",)


def _against_peer(evidence: Evidence) -> tuple[tuple[str, ...], Light | None]:
    """Return what replicas of the last quarter say of the choice and the best published policy; None if it is better.

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
        f"On {ranking.replicas} replicas of the last quarter {evidence.metric} is {_ratio(row)} times that of {peer}, "
        f"the best published policy before; its price, as ratios: {prices}."
    )
    if row.verdict == "better":
        return (said,), None
    alike = f"So {evidence.chosen} is not shown to be better than {peer}, which anybody can use"
    if math.isfinite(evidence.choice.rules.threshold):
        # The route that export takes by default has no threshold: who takes it gets the peer.
        alike += (
            f" by any route into a scheduler; the threshold of {evidence.chosen} is kept by the plugin in C "
            "(policyfactory export --to slurm-site-factor-c) and left out by Lua"
        )
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
    where = "In one continuous simulation of the last quarter, the" if cut else "The"
    return (f"{where} longest wait: {waits}{who}.",)
