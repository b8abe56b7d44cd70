"""One experiment: who competes, under which rules, on which cases, cut or drawn from its logs; and its outcome."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.evaluation.analyses.analysis import Analysis
from policyfactory.evaluation.analyses.replay import Replay
from policyfactory.evaluation.fidelity.compare import Fidelity
from policyfactory.evaluation.logs import ReadLog, on_site
from policyfactory.evaluation.options import DEFAULT_METRICS, ExperimentTable, LogTable, ReferenceTable, ResampleTable
from policyfactory.policy.policy import Policy
from policyfactory.report.sections import Section
from policyfactory.report.verdict import Verdict
from policyfactory.simulation.cases import Case
from policyfactory.simulation.metrics import PREEMPTION_METRICS
from policyfactory.simulation.prepare import unscored
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import RECORDED, lacking_starts
from policyfactory.simulation.tuning.tuner import Contender, Tuner
from policyfactory.site.fits import site_of
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.intervals import Statistic
from policyfactory.statistics.summary import Summary
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import DrawFrom, UserWeeks, parse_length
from policyfactory.workload.sensitivity import Sensitivity
from policyfactory.workload.windows import cut, parse_windows


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
        Of all logs, in the order of the logs and their numbers; none before the logs are read (`with_cases`).
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


# Its cases ------------------------------------------------------------------------------------------------------------
# A case is made when it is run and dropped when its contenders are done, so memory is that of the logs and of the cases
# that are running; what is random in a case depends on its number alone, so that batches and workers change nothing.


def with_cases(experiment: Experiment, logs: Mapping[str, ReadLog]) -> Experiment:
    """Return an experiment with its logs, put on the site of its rules, and their cases.

    Parameters
    ----------
    experiment : Experiment
        As written.
    logs : mapping of str to ReadLog
        The logs by name; those of the experiment that are not among them are left out.

    Raises
    ------
    UsageError
        If no log is left, a case that is to be skipped does not exist, predictions cannot follow a resample, or the
        recorded schedule is to be shown and is not known.
    WorkloadError
        If a log has fewer windows than asked for or no whole week.
    """
    names = experiment.log_names
    chosen = [on_site(logs[name], experiment.rules) for name in names if name in logs]
    if not chosen:
        raise UsageError(
            f"experiment {experiment.name}: none of its logs is left ({', '.join(names)}); name one of them"
        )
    if experiment.rules.decide_by == "prediction":
        _check_predictions(experiment, chosen)
    cases: list[Case] = []
    more = {}
    for log in chosen:
        table = experiment.table.resample
        if table is None:
            cases += _without_skipped(experiment, log.name, _cases(experiment, log))
        else:
            more[log.name] = draw = _drawing(experiment, log, table)
            cases += map(draw, range(1, table.count + 1))
    recorded, unrecorded = _record(experiment, chosen, cases)
    return dataclasses.replace(
        experiment,
        cases=tuple(cases),
        more=more,
        logs={log.name: log for log in chosen},
        recorded=recorded,
        unrecorded=unrecorded,
        unscored={log.name: found for log in chosen if (found := _unscored(experiment, log))},
    )


def _unscored(experiment: Experiment, log: ReadLog) -> tuple[str, ...]:
    """Return which policies have no score for some jobs of a log."""
    ordering = (*experiment.contenders, experiment.rules.backfill_policy)
    policies = [policy for order in ordering for policy in (order.arms if isinstance(order, Tuner) else (order,))]
    distinct = dict.fromkeys(
        order for policy in policies if policy is not None for order in (policy, policy.backfill_policy) if order
    )
    return tuple(filter(None, (unscored(log.workload, policy) for policy in distinct)))


def cases_of(
    workload: Workload,
    *,
    windows: str | None = None,
    resamples: int | None = None,
    length: str = "log",
    draw: DrawFrom = "log",
    seed: int = 0,
) -> list[Case]:
    """Return the cases of one log: its windows, logs that are drawn from it, or the whole of it.

    Parameters
    ----------
    workload : Workload
        The log.
    windows : str, optional
        How to cut it, for example ``10x15d``.
    resamples : int, optional
        Or how many logs to draw from it.
    length : str
        Length of a drawn log: ``2y``, ``26w``, ``log`` (as long as the log).
    draw : {"log", "active"}
        Which weeks of a user are drawn from; see `Resampling`.
    seed : int
        Seed of what is drawn.

    Raises
    ------
    UsageError
        If a text is no windows or no length, or both windows and drawn logs are asked for.
    WorkloadError
        If the log is too short.
    """
    if windows is not None and resamples is not None:
        raise UsageError("a log is cut into windows or drawn from, not both; leave one out")
    drawn = None if resamples is None else ResampleTable(count=resamples, length=parse_length(length), draw=draw)
    cuts = None if windows is None else parse_windows(windows)
    table = ExperimentTable(name="cases", windows=cuts, resample=drawn)
    name = workload.name
    experiment = Experiment(table.name, (), (), seed=seed, table=table, log_names=(name,))
    return list(with_cases(experiment, {name: ReadLog(name, LogTable(), workload)}).cases)


def _check_predictions(experiment: Experiment, logs: list[ReadLog]) -> None:
    for log in logs:
        if log.prediction is None:
            raise UsageError(
                f"experiment {experiment.name}: decisions by prediction, and log {log.name} has no predictions; name "
                "a file with them (predictions), or decide by request"
            )
    if experiment.table.resample is not None:
        raise UsageError(
            f"experiment {experiment.name}: predictions belong to the jobs of the log itself; use windows, not "
            "resampled logs"
        )
    if not all(isinstance(contender, Policy) for contender in experiment.contenders):
        raise UsageError(f"experiment {experiment.name}: tuners cannot decide by prediction; decide by request")


def _record(experiment: Experiment, logs: Sequence[ReadLog], cases: Sequence[Case]) -> tuple[bool, str]:
    """Return whether the recorded schedule is shown, and why not where it is known in part."""
    if experiment.table.recorded is False:
        return False, ""
    why = _not_as_recorded(experiment, logs)
    partly = False
    if not why:
        lacking = [f"{_called(case)}: {text}" for case in cases if (text := lacking_starts(case.make(), case.lead_in))]
        partly = bool(lacking) and any((case.make().start >= 0).any() for case in cases)
        more = f" ({len(lacking)} such cases)" if len(lacking) > 1 else ""
        why = f"{lacking[0]}{more}" if lacking else ""
    if any(contender.name.casefold() == RECORDED for contender in experiment.contenders):
        why = why or f"a policy is called {RECORDED} too, and needs another name"
    if why and experiment.table.recorded is True:
        raise UsageError(
            f"experiment {experiment.name}: the recorded schedule cannot be shown: {why}; leave it out (--no-recorded, "
            "recorded = false)"
        )
    return not why, f"The recorded schedule is not shown: {why}." if partly else ""


def _called(case: Case) -> str:
    return case.log if case.kind == "log" else f"{case.log}, {case.kind} {case.number}"


def _not_as_recorded(experiment: Experiment, logs: Sequence[ReadLog]) -> str:
    """Return why the cases are not what the log's own machine was given; empty if they are."""
    if experiment.table.resample is not None:
        return "the cases are resampled logs, which no machine ever ran"
    if experiment.table.load != 1:
        return f"the jobs arrive {experiment.table.load:g} times as fast as they did"
    rule = str(experiment.table.estimates)
    modelled = [log.name for log in logs if log.source.tsafrir is not None]
    if rule != "user" or modelled:
        return f"requested times are not the users' but {rule if rule != 'user' else f'modelled in {modelled[0]}'}"
    return ""


def _case_of(experiment: Experiment, log: ReadLog) -> functools.partial[Case]:
    """Return what makes a case of a log: all cases of a log have the same rules."""
    return functools.partial(Case, log=log.name, rules=_rules_of(experiment, log), seed=experiment.seed)


def _rules_of(experiment: Experiment, log: ReadLog) -> Rules | None:
    """Return the rules of a log of its own, if it has any: a threshold by its longest request, an assumed site."""
    rules = shared = experiment.rules
    if rules.backfill == "slurm" and rules.site is None:
        # Of the whole log, so that its windows have one.
        rules = dataclasses.replace(rules, site=site_of(log.workload))
    if experiment.times_longest is not None:
        rules = dataclasses.replace(rules, threshold=math.floor(experiment.times_longest * log.longest_request_s))
    return None if rules is shared else rules


def _axes_of(experiment: Experiment, log: ReadLog) -> Callable[..., Workload]:
    """Return what is done to the jobs of the case of a number; its requests are drawn anew for each case.

    As ``policyfactory workload resample`` does it: the same seed and number give the same jobs.
    """
    longest_s = math.ceil(log.longest_request_s)
    return functools.partial(experiment.sensitivity.apply, seed=experiment.seed, longest_s=longest_s)


# What is there: windows and whole logs. -------------------------------------------------------------------------------


def _cases(experiment: Experiment, log: ReadLog) -> list[Case]:
    case, axes = _case_of(experiment, log), _axes_of(experiment, log)
    if experiment.table.windows is None:
        lead_in = 0 if experiment.table.lead_in is None else experiment.table.lead_in.rows(log.workload)
        if lead_in and lead_in >= len(log.workload):
            raise WorkloadError(
                f"experiment {experiment.name}: the lead-in of {experiment.table.lead_in} is all of {log.name}, which "
                f"has {len(log.workload):,} jobs; leave some to be measured"
            )
        make = functools.partial(axes, log.workload, number=1)
        return [case(number=1, kind="log", make=make, prediction=log.prediction, lead_in=lead_in)]
    parts = cut(log.workload, experiment.table.windows)
    predictions = _predictions(log, parts)
    return [
        case(number=number, kind="window", make=functools.partial(axes, part, number=number), prediction=prediction)
        for number, (part, prediction) in enumerate(zip(parts, predictions, strict=True), 1)
    ]


def _predictions(log: ReadLog, parts: list[Workload]) -> list[NDArray[np.int64]] | list[None]:
    """Return the predictions of the jobs of each window."""
    if log.prediction is None:
        return [None] * len(parts)
    order = np.argsort(log.workload.job_id, kind="stable")
    ids = log.workload.job_id[order]
    return [log.prediction[order[np.searchsorted(ids, part.job_id)]] for part in parts]


def _without_skipped(experiment: Experiment, log: str, cases: list[Case]) -> list[Case]:
    skipped = experiment.table.skip.get(log, ())
    for number in skipped:
        if not 1 <= number <= len(cases):
            raise UsageError(
                f"experiment {experiment.name}: skip names window {number} of {log}, which has {len(cases)}; "
                "name one of them, or leave it out"
            )
    left = [case for case in cases if case.number not in skipped]
    if not left:
        raise WorkloadError(
            f"experiment {experiment.name}: all cases of {log} are skipped; leave one, or leave out the log"
        )
    return left


# What is drawn: resampled logs. ---------------------------------------------------------------------------------------


def _drawing(experiment: Experiment, log: ReadLog, table: ResampleTable) -> Callable[[int], Case]:
    """Return what draws the resampled log of a number; the same in any batch."""
    history, weeks = UserWeeks(log.workload), table.length
    sample = functools.partial(history.sample, weeks=weeks or history.weeks, seed=experiment.seed, draw=table.draw)
    case, make = _case_of(experiment, log), functools.partial(_drawn, sample, _axes_of(experiment, log))
    # From n weeks one draws with a spread that is smaller by n - 1 to n; longer logs, and no shorter, have less of it.
    widening = math.sqrt(max(weeks or 0, history.weeks) / (history.weeks - 1))
    return lambda number: case(number=number, kind="resample", make=functools.partial(make, number), widening=widening)


def _drawn(sample: Callable[..., Workload], axes: Callable[..., Workload], number: int) -> Workload:
    return axes(sample(number=number), number=number)
