"""One experiment: its cases, who competes, under which rules; and its outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from policyfactory.evaluation.analyses.analysis import Analysis
from policyfactory.evaluation.analyses.replay import Replay
from policyfactory.evaluation.fidelity.compare import Fidelity
from policyfactory.evaluation.logs import ReadLog
from policyfactory.evaluation.options import DEFAULT_METRICS, ExperimentTable, ReferenceTable
from policyfactory.report.sections import Section
from policyfactory.report.verdict import Verdict
from policyfactory.simulation.cases import Case
from policyfactory.simulation.metrics import PREEMPTION_METRICS
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.tuning.tuner import Contender
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.intervals import Statistic
from policyfactory.statistics.summary import Summary
from policyfactory.workload.sensitivity import Sensitivity


def default_metrics(rules: Rules) -> tuple[str, ...]:
    """Return what is measured where nobody says; on a site with preemption also what was stopped."""
    stops = rules.backfill == "slurm" and rules.site is not None and rules.site.preemption.on
    return (*DEFAULT_METRICS, *PREEMPTION_METRICS) if stops else DEFAULT_METRICS


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """What is simulated, and what is asked of it.

    Parameters
    ----------
    name : str
        Stem of its folder.
    cases : tuple of Case
        Of all logs, in the order of the logs and their numbers; none before the logs are read (`cases.with_cases`).
    contenders : tuple of Policy or Tuner
        With distinct names; the first is the baseline.
    title : str
        Its heading.
    rules : Rules
        The scheduler's rules, but for what a case has of its own.
    metrics : tuple of str
        Names in `METRICS`; the first decides.
    statistic : {"median", "mean", "ratio"}
        What stands for a policy over the cases.
    analyses : tuple of Analysis
        Looks beyond the metrics.
    references : tuple of ReferenceTable
        Published values.
    seed : int
        Seed of the bootstrap.
    more : mapping of str to callable
        For each log whose cases are drawn: returns its case of a number, so that there can be more of them.
    table : ExperimentTable
        How it was written.
    log_names : tuple of str
        Names of its logs.
    logs : mapping of str to ReadLog
        Its logs as they are simulated, on the site of its rules.
    recorded : bool
        Whether the recorded schedule is shown beside the policies; every job needs a recorded start then.
    unrecorded : str
        Why it is not shown where it was asked for if it is known; empty where nobody will miss it.
    unscored : mapping of str to tuple of str
        Log -> which policies give some of its jobs no score (NaN).
    """

    name: str
    cases: tuple[Case, ...]
    contenders: tuple[Contender, ...]
    title: str = ""
    rules: Rules = dataclasses.field(default_factory=Rules)
    metrics: tuple[str, ...] = DEFAULT_METRICS
    statistic: Statistic = "median"
    analyses: tuple[Analysis, ...] = ()
    references: tuple[ReferenceTable, ...] = ()
    seed: int = 0
    more: Mapping[str, Callable[[int], Case]] = dataclasses.field(default_factory=dict)
    table: ExperimentTable = dataclasses.field(default_factory=lambda: ExperimentTable(name=""))
    log_names: tuple[str, ...] = ()
    logs: Mapping[str, ReadLog] = dataclasses.field(default_factory=dict)
    recorded: bool = False
    unrecorded: str = ""
    unscored: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def times_longest(self) -> float | None:
        """The threshold as a multiple of the longest request of each log; None: that of the rules."""
        return None if self.table.rules.threshold is None else self.table.rules.threshold.times_longest

    @property
    def sensitivity(self) -> Sensitivity:
        """What is done to the jobs of every case."""
        return Sensitivity(self.table.load, self.table.estimates)

    @property
    def observers(self) -> tuple[Analysis, ...]:
        """What looks at every schedule: how far it is from the record, if that is shown, and the analyses."""
        return (Replay(), *self.analyses) if self.recorded else self.analyses

    @property
    def left_out(self) -> tuple[str, ...]:
        """Which jobs of a log are not simulated, since their partition is not one of the site: a sentence a log."""
        return tuple(log.left_out for log in self.logs.values() if log.left_out)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and which jobs have no score."""
        return (*self.left_out, *(text for texts in self.unscored.values() for text in texts))

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the contenders, in order."""
        return tuple(contender.name for contender in self.contenders)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What an experiment shows.

    Parameters
    ----------
    experiment : Experiment
        What was simulated.
    evaluation : Evaluation
        The values.
    summaries : tuple of Summary
        What the cases of a log say together.
    comparisons : tuple of Comparison
        Each policy against the baseline.
    words : tuple of str
        The conclusion, a paragraph a log.
    sections : tuple of Section
        All of it, and the conclusions of the analyses, as tables and pictures.
    precision : tuple of str
        Whether the intervals are as narrow as was asked for, a sentence a log.
    recorded_summaries : tuple of Summary
        What the cases of a log say of the recorded schedule, if that is shown.
    recorded_comparisons : tuple of Comparison
        Each policy against it.
    verdict : Verdict or None
        What follows for who has to decide about a queue, if there is anything to decide.
    chosen : str
        Name of the policy that was chosen before, which the verdict is on; empty: none was.
    fidelity : mapping of str to Fidelity
        How near the simulation of the rules' site is to the record of a log, by the log's name; empty without a site.
    """

    experiment: Experiment
    evaluation: Evaluation
    summaries: tuple[Summary, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    words: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    precision: tuple[str, ...] = ()
    recorded_summaries: tuple[Summary, ...] = ()
    recorded_comparisons: tuple[Comparison, ...] = ()
    verdict: Verdict | None = None
    chosen: str = ""
    fidelity: Mapping[str, Fidelity] = dataclasses.field(default_factory=dict)
