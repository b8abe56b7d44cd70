"""The closing words: who wins, by how much, how certain it is, and who is worst off.

Every sentence follows from the numbers and stays true when there is no effect: a policy is said to be better only
if it is so with all policies judged together.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from policyfactory.core.options import FloatArray
from policyfactory.core.text import DAY, counted, enumerated, format_duration, percent_change
from policyfactory.prediction.features import missing
from policyfactory.prediction.options import PredictorOptions
from policyfactory.report.caveats import listed, noun, price_in_words, too_few_cases, too_few_weeks
from policyfactory.report.sections import scale_for, shown_units, with_ends
from policyfactory.simulation.metrics import METRICS
from policyfactory.statistics.compare import Comparison, compare_policies
from policyfactory.statistics.intervals import MIN_CASES, judged_together
from policyfactory.statistics.summary import Summary, worst_off
from policyfactory.workload.jobs import Workload
from policyfactory.workload.presets import CleaningReport
from policyfactory.workload.windows import WindowSpec

if TYPE_CHECKING:
    from policyfactory.simulation.rules import Rules
    from policyfactory.site.model import Site
    from policyfactory.statistics.evaluation import Evaluation
    from policyfactory.workload.sensitivity import Sensitivity


def closing_words(
    evaluation: Evaluation, summaries: Sequence[Summary], comparisons: Sequence[Comparison], *, seed: int = 0
) -> list[str]:
    """Return the conclusion as paragraphs, one a log; the first metric decides who wins.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    summaries : sequence of Summary
        Of `summary.summarise`.
    comparisons : sequence of Comparison
        Of `compare.compare`, all with one baseline.
    seed : int
        Seed of the bootstrap.
    """
    units = units_of(summaries)
    paragraphs = []
    for log in evaluation.logs:
        about = _Log(
            evaluation,
            log,
            [row for row in summaries if row.log == log and row.metric == evaluation.metrics[0]],
            [row for row in comparisons if row.log == log],
            units,
            seed,
        )
        sentences = [about.who_wins(), *about.what_it_costs(), about.who_is_worst_off()]
        paragraphs.append(f"{log}: " + " ".join(sentence for sentence in sentences if sentence))
    return paragraphs


def units_of(summaries: Sequence[Summary]) -> dict[str, str]:
    """Return the unit in which each metric is shown all over the report; see `shown_units`."""
    metrics = dict.fromkeys(row.metric for row in summaries)
    by_metric = {metric: [row for row in summaries if row.metric == metric] for metric in metrics}
    return shown_units({metric: (rows[0].unit, [row.value for row in rows]) for metric, rows in by_metric.items()})


def rules_in_words(rules: Rules, times_longest: float | None = None, axes: Sensitivity | None = None) -> str:
    """Return the rules of the simulation as one line.

    Parameters
    ----------
    rules : Rules
        The rules.
    times_longest : float, optional
        The threshold as a multiple of the longest request of each log, instead of that of the rules.
    axes : Sensitivity, optional
        What was changed in the jobs; nothing is said of what was not.
    """
    backfill = {
        "easy": "EASY backfilling",
        "none": "no backfilling",
        "conservative": "conservative backfilling",
        "slurm": f"Slurm's own passes on {_site_in_words(rules.site)}",
    }
    decide = {"request": "requested times", "runtime": "actual run times", "prediction": "predicted run times"}
    order_policy = rules.backfill_policy
    threshold = "no threshold but the policies' own"
    if times_longest is not None:
        threshold = f"jobs that waited longer than {times_longest:g} times the longest request of the log go first"
    elif not math.isinf(rules.threshold):
        threshold = f"jobs that waited longer than {format_duration(rules.threshold)} go first"
    parts = [
        *([] if rules.compatibility == "none" else [f"those of {rules.compatibility} where they differ from ours"]),
        backfill[rules.backfill] + ("" if order_policy is None else f" in the order of {order_policy.name}"),
        f"decisions by {decide[rules.decide_by]}",
        threshold,
        f"ties {rules.ties}",
        "jobs beyond their request " + ("run on" if rules.overrun == "run" else "are killed"),
    ]
    return "rules: " + "; ".join([*parts, *_changed_jobs(axes)])


def _site_in_words(site: Site | None) -> str:
    if site is None:
        return "a site that is assumed of each log"
    return f"site {site.name} ({counted(len(site.node_names), 'node')})"


def _changed_jobs(axes: Sensitivity | None) -> list[str]:
    if axes is None:
        return []
    parts = []
    if axes.load != 1:
        parts.append(f"what if: the jobs arrive {axes.load:g} times as fast as in the log")
    if str(axes.estimates) != "user":
        parts.append(f"what if: requested times are not the users' but {axes.estimates}")
    return parts


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Log:
    """What is said of one log: the deciding metric's summaries, all its comparisons, the units of the metrics."""

    evaluation: Evaluation
    log: str
    rows: list[Summary]
    pairs: list[Comparison]
    units: dict[str, str]
    seed: int

    @property
    def metric(self) -> str:
        """The metric that decides."""
        return self.rows[0].metric

    @property
    def deciding(self) -> list[Comparison]:
        """The comparisons in it."""
        return [row for row in self.pairs if row.metric == self.metric]

    @property
    def cases(self) -> str:
        """What several cases, or weeks, are called."""
        return f"{self.unit}s"

    @property
    def unit(self) -> str:
        """What is drawn for the intervals."""
        return "week" if self.log in self.evaluation.weekly else noun(self.evaluation, self.log)

    @property
    def baseline(self) -> str:
        return self.evaluation.baseline

    def who_wins(self) -> str:
        rows, metric, cases = self.rows, self.metric, self.rows[0].cases
        better = METRICS[metric].lower_is_better
        winners = [row for row in rows if row.best]
        if better is None:
            return f"{metric} has no better direction, so no winner is named."
        if not winners:
            return f"{metric} has no value in any case, so no winner is named."
        scale = scale_for(rows[0].unit, [row.value for row in rows], self.units[metric])
        value = f"{scale.text(winners[0].value)}{scale.suffix}"
        statistic = f"{'median' if rows[0].statistic == 'median' else 'mean of'} {metric}"
        if len(rows) == 1:
            return f"{self.baseline} has a {statistic} of {value}; there is no other policy to compare it with."
        extreme = "lowest" if better else "highest"
        have = "have" if len(winners) > 1 else "has"
        what = metric if cases == 1 else f"{statistic} over {cases} {self.cases}"
        if len(winners) == len(rows):
            certain = "" if cases == 1 else f" {self.by_test(self.deciding)}"
            return f"all policies have the same {what}, {value}.{certain}"
        base = next(row for row in rows if row.policy == self.baseline)
        against = "" if base in winners else f" ({self.baseline}: {scale.text(base.value)}{scale.suffix})"
        names = enumerated(row.policy for row in winners)
        return f"{names} {have} the {extreme} {what}, {value}{against}. {self.how_certain(winners, cases)}"

    def how_certain(self, winners: list[Summary], cases: int) -> str:
        if no_interval := self.no_interval(cases):
            return no_interval
        leading = [row for row in self.deciding if row.policy == winners[0].policy]
        others = [row for row in self.deciding if row.policy != winners[0].policy]
        parts = (*map(self.against_baseline, leading), self.by_test(others), self.not_shown_to_beat(winners))
        return " ".join(part for part in parts if part)

    def no_interval(self, cases: int) -> str:
        """Return why there is no interval; empty if the cases, or the weeks of one, give one."""
        if cases > 1:
            return too_few_cases(cases, self.unit) if cases < MIN_CASES else ""
        weeks = self.evaluation.weekly.get(self.log)
        unknown = "whether the order would be the same in another month is not known (draw logs with --resamples)."
        if weeks is None:
            return f"This is one {self.unit}, so there is no spread and no interval: {unknown}"
        if self.evaluation.weekly_column(self.log, self.metric, self.baseline) is None:
            return f"{self.metric} is no mean over the jobs, so its weeks give no interval: {unknown}"
        return "" if weeks.enough else f"There is no interval, since {too_few_weeks(weeks, self.baseline)}: {unknown}"

    def not_shown_to_beat(self, winners: list[Summary]) -> str:
        """Say which others may be as good: the lowest value alone is no proof."""
        first = winners[0]
        statistic = "mean" if first.statistic == "weeks" else first.statistic
        others = [
            name for name in self.evaluation.policies if name not in {*(row.policy for row in winners), self.baseline}
        ]
        pairs = [
            compare_policies(
                self.evaluation, self.log, self.metric, first.policy, name, statistic=statistic, seed=self.seed
            )
            for name in others
        ]
        called = judged_together([pair.verdict for pair in pairs], [pair.estimate.p for pair in pairs])
        names = [name for name, (verdict, _) in zip(others, called, strict=True) if verdict != "better"]
        return f"{first.policy} is not shown to be better than {enumerated(names)}." if names else ""

    def by_test(self, pairs: Sequence[Comparison]) -> str:
        phrases = {
            "better": "Shown to be better than",
            "worse": "Shown to be worse than",
            "no difference": "No difference is shown from",
            "too few cases": f"Too few {self.cases} for a comparison with",
        }
        return "".join(
            listed(f"{phrase} {self.baseline}", [row.policy for row in pairs if row.verdict == verdict])
            for verdict, phrase in phrases.items()
        ).strip()

    def against_baseline(self, row: Comparison) -> str:
        if row.interval is None:
            return f"Only {row.cases} of its {self.cases} can be compared with {row.baseline}, too few for an interval."
        by, ends = with_ends(row.difference, row.interval, row.unit, self.units[row.metric], signed=True)
        change = f", {percent_change(row.relative)}" if row.relative is not None else ""
        what = {
            "median": f"{self.unit} by {self.unit} it differs from {row.baseline} by {by} in the median{change}",
            "mean": f"it differs from {row.baseline} by {by} in the mean{change}",
            "ratio": f"its sum over all {self.cases} differs from that of {row.baseline} by {by}",
            "weeks": f"over all jobs it differs from {row.baseline} by {by}{change}",
        }[row.statistic]
        parts = f"{what} (95 % interval {ends}; better in {row.wins} of {counted(row.cases, self.unit)})"
        if row.verdict == "no difference":
            why = (
                "among so many comparisons chance does as much (Holm)" if row.by_chance else "the interval covers zero"
            )
            return f"But {parts}: {why}, so no difference from {row.baseline} is shown."
        return f"{parts[0].upper()}{parts[1:]}."

    def what_it_costs(self) -> list[str]:
        winners = [row.policy for row in self.rows if row.best]
        worse = [row for row in self.pairs if row.metric != self.metric and row.verdict == "worse"]
        return [
            price_in_words([row for row in worse if row.policy == name][:4], self.units, self.unit) for name in winners
        ]

    def who_is_worst_off(self) -> str:
        worst_of = {row.policy: row for row in worst_off(self.evaluation, self.log)}
        worst = max(worst_of.values(), key=lambda row: row.wait_s)
        several = len(self.evaluation.rows(self.log)) > 1
        if worst.wait_s == 0:
            return "No job waits under any policy."
        where = f"job {worst.job_id}" + (f" in {noun(self.evaluation, self.log)} {worst.case}" if several else "")
        text = f"Worst off is {where}, which waits {format_duration(worst.wait_s)} under {worst.policy}"
        interesting = dict.fromkeys([self.baseline, *(row.policy for row in self.rows if row.best)])
        others = [name for name in interesting if name != worst.policy][:3]
        if others:
            longest = enumerated(f"{format_duration(worst_of[name].wait_s)} under {name}" for name in others)
            text += f"; the longest wait is {longest}"
        return text + "."


# What the numbers of an evaluation rest on, in sentences that go wherever the verdict goes ----------------------------


_REQUESTS = 4  # of the longest requests, in a window: below, its end and its empty start decide
_MANY = 0.05  # share of the jobs or of the work: more than that is said
_MOST = 0.25  # and with more than that there is no conclusion


def basis_in_words(jobs: Workload, load: float = 1.0) -> tuple[str, ...]:
    """Return what was measured, and what was changed in the log before.

    Parameters
    ----------
    jobs : Workload
        Those that the verdict is about; its account is of the whole log.
    load : float
        How many times as fast the jobs arrive as in the log.
    """
    report = jobs.cleaning
    machine = f"{jobs.machine:,} processors"
    if report.source:
        machine += f" ({report.machine_source})"
    faster = "" if load == 1 else f", the jobs arriving {load:g} times as fast as in the log"
    offered = jobs.offered_load * load
    have = f"an offered load of {offered:.2f} on {machine}{faster}"
    if math.isnan(offered):
        have = f"no offered load, which is work over time; the machine has {machine}"
    lasts, days = period_in_words(jobs)
    period = f"{f'of {lasts}' if lasts else 'submitted at one instant'}{f', {days}' if days else ''}"
    rest = f"The verdict rests on {counted(len(jobs), 'job')} {period}; these have {have}."
    actions = {"dropped": "left out", "changed": "changed"}
    changes = [
        f"{100 * step.jobs / max(report.read, 1):.3g} % of the jobs {actions[step.action]} ({step.what})"
        for step in report.steps
        if step.action in actions and step.jobs
    ]
    return (rest, *([f"Of the log: {'; '.join(changes)}."] if changes else []))


def invented_share(report: CleaningReport) -> float:
    """Return the share of the jobs kept whose requested time is not the user's."""
    invented = sum(
        step.jobs for step in report.steps if step.action == "changed" and step.what.startswith("no requested time")
    )
    return invented / max(report.kept, 1)


def period_in_words(jobs: Workload) -> tuple[str, str]:
    """Return over how long jobs were submitted, and from which day to which; empty if it is an instant, or unknown."""
    span = float(jobs.submit[-1] - jobs.submit[0]) / jobs.ticks
    lasts = format_duration(span) if span else ""
    if jobs.unix_start is None:
        return lasts, ""
    first, last = (
        dt.datetime.fromtimestamp(jobs.unix_start + int(submit) // jobs.ticks, dt.UTC).date()
        for submit in (jobs.submit[0], jobs.submit[-1])
    )
    return lasts, f"{first} to {last}" if span else f"{first}"


def predictions_in_words(
    names: Sequence[str], jobs: Workload, windows: WindowSpec | None, *, drawn: bool = False
) -> tuple[str, ...]:
    """Return from what policies are predicted with, and from when on; nothing without such policies.

    Parameters
    ----------
    names : sequence of str
        The policies that read predictions.
    jobs : Workload
        The log; at least one job.
    windows : WindowSpec or None
        How it is cut.
    drawn : bool
        Whether resampled logs are simulated.
    """
    if not names:
        return ()
    options = PredictorOptions()
    sentences = [
        (
            f"{enumerated(names)} {'reads' if len(names) == 1 else 'read'} predictions, which each case makes from its "
            f"own past: from day {options.first_days:g} and {options.least:,} ended jobs on, and before that from the "
            "request alone."
        )
    ]
    if windows is not None:
        lasts = float(jobs.submit[-1] - jobs.submit[0]) / jobs.ticks
        share = windows.jobs / len(jobs) if windows.jobs else windows.length / max(lasts, 1.0)
        if share * lasts < options.first_days * DAY or share * len(jobs) < options.least:
            sentences.append(
                f"Windows of {windows} end, on average, before that: whole logs or longer windows show what "
                "predictions are worth."
            )
    if drawn:
        sentences.append(
            "A resampled log has some weeks of a user several times, and what was seen of a job is known of its "
            "copies: predictions look better there than they are."
        )
    return (*sentences, *(f"To predict from, the log lacks {what}." for what in missing(jobs)))


def windows_too_short(jobs: Workload, windows: WindowSpec, *, unsound: bool = False) -> tuple[str, ...]:
    """Return a warning if windows are shorter than several of the longest requests; nothing if they are long enough.

    Parameters
    ----------
    jobs : Workload
        At least one job.
    windows : WindowSpec
        How they are cut.
    unsound : bool
        Only if so much is misjudged that there can be no conclusion.
    """
    lasts = float(jobs.submit[-1] - jobs.submit[0]) / jobs.ticks
    length = float(windows.length) if windows.length else lasts * windows.jobs / len(jobs)
    long = jobs.requested_time / jobs.ticks > length / _REQUESTS
    work = jobs.run_time.astype(np.float64) * jobs.processors
    by_jobs, by_work = float(np.mean(long)), float(work[long].sum() / max(work.sum(), 1.0))
    busy = float(np.mean(_busy_periods(jobs) > length / _REQUESTS))
    if max(by_jobs, by_work, busy) < (_MOST if unsound else _MANY):
        return ()
    return (
        (
            f"Windows of {format_duration(length)} ({windows}) begin on an empty machine and end with their "
            f"last job, and {100 * by_jobs:.2g} % of the jobs ({100 * by_work:.2g} % of the work) request more than a "
            f"quarter of that, {100 * busy:.2g} % come in busy periods longer than that: what waits for them is "
            "misjudged. Leave out --windows (one continuous simulation), or make them longer."
        ),
    )


def _busy_periods(jobs: Workload) -> FloatArray:
    """Return the length in seconds of the busy period in which each job comes: float64 array (jobs,).

    Of a machine that packs perfectly: it is busy from a job that finds no work left until all work that came is done.
    """
    arrival = jobs.submit / jobs.ticks
    come = np.cumsum(jobs.run_time.astype(np.float64) * jobs.processors) / (jobs.machine * jobs.ticks)
    before = np.concatenate([[0.0], come[:-1]]) - arrival
    least = np.minimum.accumulate(before)
    first = np.flatnonzero(before <= least)
    last = np.append(first[1:], len(jobs)) - 1
    length = arrival[last] - arrival[first] + (come - arrival - least)[last]
    repeated: FloatArray = np.repeat(length, last - first + 1)
    return repeated
