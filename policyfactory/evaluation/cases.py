"""From an experiment as it is written to one that can be run: its logs cut, or drawn from, case by case.

A case is made when it is run and dropped when its contenders are done, so memory is that of the logs and of the cases
that are running; what is random in a case depends on its number alone, so that batches and workers change nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import UsageError, WorkloadError
from policyfactory.evaluation.experiment import Experiment
from policyfactory.evaluation.logs import ReadLog, on_site
from policyfactory.evaluation.options import ExperimentTable, LogTable, ResampleTable
from policyfactory.policy.policy import Policy
from policyfactory.simulation.cases import Case
from policyfactory.simulation.prepare import unscored
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.schedule import RECORDED, lacking_starts
from policyfactory.simulation.tuning.tuner import Tuner
from policyfactory.site.fits import site_of
from policyfactory.workload.jobs import Workload
from policyfactory.workload.resample import DrawFrom, UserWeeks, parse_length
from policyfactory.workload.windows import cut, parse_windows


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
