"""What an evaluation says to who has to decide about a queue: better than what there is, worse, or nobody can tell.

It has two parts. *In simulation*: who compares orders does not ask about a record. Where nobody waits, the policies tie
or requested times are invented, none is shown to be better, whatever the means are. *For the site*, with a record: the
comparison that counts there is with what it has now, and says nothing where the replay is far from the record. The
second part never takes back the first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np

from policyfactory.core.errors import EvaluationError
from policyfactory.core.process import WorkCounter
from policyfactory.core.text import WEEK, anchors, counted, enumerated, format_duration, percent_change
from policyfactory.engine.metrics import TAU
from policyfactory.evaluation.experiment import Experiment, Outcome
from policyfactory.evaluation.fidelity.compare import HEADINGS, Fidelity, fidelity, has_record, in_short, sections_of
from policyfactory.evaluation.fidelity.compare import verdict_of as fidelity_verdict
from policyfactory.evaluation.precision import needed
from policyfactory.evaluation.words import basis_in_words, invented_share, predictions_in_words, windows_too_short
from policyfactory.parallel.workers import Notify
from policyfactory.policy.policy import Policy
from policyfactory.report.caveats import noun, price_in_words
from policyfactory.report.sections import Section
from policyfactory.report.verdict import (
    LIGHTS,
    NOBODY,
    TOO_FAR,
    Finding,
    Light,
    Verdict,
    difference_in_words,
    judge,
    value_in_words,
)
from policyfactory.simulation.metrics import COSTS, METRICS
from policyfactory.simulation.rules import Rules
from policyfactory.site.model import Site
from policyfactory.statistics.compare import Comparison
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.intervals import MIN_CASES
from policyfactory.statistics.summary import Summary, worst_off
from policyfactory.workload.jobs import Workload, load_in_words
from policyfactory.workload.judge import FULL
from policyfactory.workload.sensitivity import MOST_LOAD
from policyfactory.workload.windows import in_use

_INVENTED = 0.5  # share of the jobs: with more requests that are not the users', no plan is the scheduler's
_EASY = (
    "This is textbook EASY, the literature's scheduler. Slurm by default plans otherwise, and who leads can depend on "
    "it: --backfill slurm simulates its own rules, --site those of your cluster."
)
_STOPPED = (
    "Running jobs are stopped for others on this site: start, wait and slowdown of a job are those of its last run, "
    "and one that is cancelled has ended then. It is assumed that a stopped job uses all of its grace time, and "
    "begins anew where it is put back."
)
_MOST = 10  # times what was compared: a difference that takes more is none to a site
_BUSY = 0.95  # offered load that is proposed instead
_LONG = 1.5  # times the longest wait under the baseline, beyond which it is said how to shorten it
_SAID: dict[Light, str] = {"worse": "worse", "unsound": "unsound, no conclusion"}
_NOTHING = "Nothing is recommended: no policy is shown to be better in simulation."
_NO_RECORD = "The recorded schedule is not shown beside the policies."
_Part: TypeAlias = tuple[Light, tuple[str, ...]]
Row = TypeVar("Row", Summary, Comparison)


def verdict_of(outcome: Outcome) -> Verdict | None:
    """Return the verdict on the policy that was chosen before, or that leads: in simulation, and for the site.

    Parameters
    ----------
    outcome : Outcome
        With all but its sections.

    Returns
    -------
    Verdict or None
        None where there is nothing to decide: a single policy, a metric without a better direction, or an experiment
        that is there to meet published values. Of several logs each has its sentences; lights that differ are
        "cannot tell".
    """
    evaluation = outcome.evaluation
    nothing = len(evaluation.policies) < 2 or METRICS[evaluation.metrics[0]].lower_is_better is None
    if nothing or outcome.experiment.references:
        return None
    simulated: dict[str, _Part] = {}
    at_site: dict[str, _Part] = {}
    caveats: list[str] = []
    for log in evaluation.logs:
        found = outcome.fidelity.get(log)
        simulated[log], record = _on_log(outcome, log)
        if record is not None or found is not None:
            at_site[log] = gated(*(record or ("cannot tell", (_NO_RECORD,))), found)
        several = f"{log}: " if len(evaluation.logs) > 1 else ""
        caveats += [f"{several}{text}" for text in _basis(outcome, log)]
    site = _about("For the site", headed(_part(at_site), outcome.fidelity.values())) if at_site else None
    return dataclasses.replace(_about("In simulation", _part(simulated)), caveats=tuple(caveats), site=site)


def _about(what: str, part: Verdict) -> Verdict:
    return dataclasses.replace(part, heading=f"{what}: {part.title[0].lower()}{part.title[1:]}")


def _part(of_logs: Mapping[str, _Part]) -> Verdict:
    """Return one part of the verdict from what is said of each log; lights that differ are "cannot tell"."""
    lights = {light for light, _ in of_logs.values()}
    light: Light = lights.pop() if len(lights) == 1 else "cannot tell"
    sentences = [
        text
        for log, (light, words) in of_logs.items()
        for text in (words if len(of_logs) == 1 else (f"{log}: {LIGHTS[light]}. {' '.join(words)}",))
    ]
    return Verdict(light, tuple(sentences), heading=_SAID.get(light, ""))


def _on_log(outcome: Outcome, log: str) -> tuple[_Part, _Part | None]:
    """Return what is said of the policies in simulation, and, where there is a record, for the site."""
    evaluation, experiment = outcome.evaluation, outcome.experiment
    metric, baseline, workload = evaluation.metrics[0], evaluation.baseline, experiment.logs[log].workload
    rows = [row for row in outcome.summaries if row.log == log and row.metric == metric]
    leaders = [row for row in rows if (row.policy == outcome.chosen if outcome.chosen else row.best)]
    light: Light = "cannot tell"
    words: tuple[str, ...]
    if quiet := nobody_waits(evaluation, log, _measured(experiment, log), experiment.table.load):
        words = quiet
    elif unsound := (*requests_invented(workload), *_windows(experiment, workload, unsound=True)):
        light, words = "unsound", (*unsound, "No policy is recommended.")
    elif not leaders:
        words = (f"{metric} has no value in any case: choose another one (--metric).",)
    elif len(leaders) == len(rows):
        words = (f"All policies have the same {metric}: a tie has no winner; leave the queue as it is.",)
    elif outcome.chosen == baseline:
        words = (f"Nothing was chosen in place of {baseline}: leave the queue as it is.",)
    elif baseline in {row.policy for row in leaders}:
        light, words = _baseline_leads(outcome, log, metric)
    else:
        return _leader(outcome, leaders[0])
    record, why = against_record(outcome, log, baseline)
    if record is None:
        return (light, words), None
    if record != "unsound":
        record, why = "unsound" if light == "unsound" else "cannot tell", (_NOTHING,)
    return (light, words), (record, why)


def _leader(outcome: Outcome, best: Summary) -> tuple[_Part, _Part | None]:
    """Return both parts on a policy: the one that was chosen before, or that has the best value."""
    log, name, metric, baseline = best.log, best.policy, best.metric, outcome.evaluation.baseline
    row, base = row_of(outcome.comparisons, log, name, metric), row_of(outcome.summaries, log, baseline, metric)
    against = f"{baseline} in {metric}: {value_in_words(best)} against {value_in_words(base)}{difference_in_words(row)}"
    shown = Finding(row.verdict)
    light = judge([shown])
    if light == "better":
        words: tuple[str, ...] = (f"{name} is better than simulated {against}{_price(outcome, log, name)}",)
    else:
        why = ": among so many policies one looks as good by chance (Holm's adjustment)" if row.by_chance else ""
        leads = "is" if name == outcome.chosen else "has the best value, but is"
        words = (
            f"{name} {leads} not shown to be better than {against}{why}.",
            f"Next step: {_next_step(outcome, row)}.",
        )
    record, by_record = against_record(outcome, log, name)
    if record is None:
        return (light, (*words, *by_record)), None
    if record == "better" and light != "better":
        by_record = (*by_record, _NOTHING)
    elif record == "cannot tell" and light == "better":
        step = _next_step(outcome, row_of(outcome.recorded_comparisons, log, name, metric))
        by_record = (*by_record, f"Next step: {step}.")
    return (light, words), (judge([shown], [Finding(record)]), by_record)


def _next_step(outcome: Outcome, row: Comparison) -> str:
    """Return what would tell the policy of a comparison from its baseline."""
    evaluation, jobs = outcome.evaluation, _measured(outcome.experiment, row.log)
    kind, weeks = noun(evaluation, row.log), evaluation.weekly.get(row.log)
    # Logs drawn longer than the log they are drawn from tell no more than it.
    span = float(jobs.submit[-1] - jobs.submit[0]) / (WEEK * jobs.ticks)
    if row.interval is None:
        if kind != "log":
            return f"{row.cases} cases give no interval; compare at least {MIN_CASES} {kind}s"
        if weeks is None or weeks.block is None:
            return "import a longer time"
        short = MIN_CASES * weeks.block - len(weeks.jobs)
        more = f"import {counted(short, 'more week')}" if short > 0 else f"draw logs (--resamples 10) for {row.metric}"
        return f"{more}: {len(weeks.jobs)} are there, and {MIN_CASES * weeks.block} are needed" if short > 0 else more
    # Intervals shrink as 1 / sqrt(cases), or weeks; one more of twenty would be by chance.
    there = row.cases if kind == "window" else span if weeks is None else len(weeks.jobs)
    want = needed(there, row.interval.towards_zero(row.difference), abs(row.difference)) if row.difference else None
    if want is None or want > _MOST * there:
        return "so small a difference would not show in ten times as much of this log; take either"
    more = counted(max(want - math.floor(there), 1), "more window" if kind == "window" else "more week")
    return f"{'compare' if kind == 'window' else 'import'} {more}; so large a difference would show then"


def _baseline_leads(outcome: Outcome, log: str, metric: str) -> _Part:
    rows = [row for row in outcome.comparisons if row.log == log and row.metric == metric]
    baseline = outcome.evaluation.baseline
    if all(row.verdict == "worse" for row in rows):
        names = enumerated(row.policy for row in rows)
        return "worse", (f"{names}: shown to be worse than {baseline} in {metric}; leave the queue as it is.",)
    return "cannot tell", (f"No policy has a better {metric} than {baseline}: leave the queue as it is.",)


# What the verdict rests on. -------------------------------------------------------------------------------------------


def _measured(experiment: Experiment, log: str) -> Workload:
    lead_in, workload = experiment.table.lead_in, experiment.logs[log].workload
    rows = 0 if lead_in is None else lead_in.rows(workload)
    return workload.select(slice(rows, None), rebase=True) if rows else workload


def _windows(experiment: Experiment, jobs: Workload, *, unsound: bool) -> tuple[str, ...]:
    """Return why the windows are too short: for any conclusion, or only to be trusted."""
    windows = experiment.table.windows
    return () if windows is None else windows_too_short(jobs, windows, unsound=unsound)


def _basis(outcome: Outcome, log: str) -> tuple[str, ...]:
    experiment = outcome.experiment
    table, known = experiment.table, experiment.logs[log]
    policies = [
        policy for policy in (*experiment.contenders, experiment.rules.backfill_policy) if isinstance(policy, Policy)
    ]
    predicted = list(dict.fromkeys(policy.name for policy in policies if policy.needs_model))
    return (
        *gate_in_words(outcome.fidelity.get(log)),
        *basis_in_words(_measured(experiment, log), table.load),
        *_windows(experiment, known.workload, unsound=False),
        *predictions_in_words(predicted, known.workload, table.windows, drawn=table.resample is not None),
        *_site(experiment, log),
        *filter(None, [known.left_out]),
        *experiment.unscored.get(log, ()),
    )


def _site(experiment: Experiment, log: str) -> tuple[str, ...]:
    """Return what of a site is assumed or left out; of a cluster's jobs under EASY, that Slurm plans otherwise."""
    requests = experiment.logs[log].workload.requests
    rules = next((case.rules for case in experiment.cases if case.log == log and case.rules), experiment.rules)
    if rules.site is None:
        # Names of accounts and QOS are those of an accounting log.
        is_imported = requests is not None and bool(requests.names.get("account") or requests.names.get("qos"))
        return (_EASY,) if is_imported and rules.backfill == "easy" and rules.compatibility == "none" else ()
    if rules.site.assumed:
        return (f"{rules.site.assumed} Describe your own in a site file (--site, docs/site.md).",)
    lacking, words = len(rules.site.not_modelled), rules.site.scheduling.rules_in_words
    what = "setting that matters and is" if lacking == 1 else "settings that matter and are"
    return (
        *([f"Site {rules.site.name}: {words}."] if rules.backfill == "slurm" and words.startswith("assumed") else []),
        *([_STOPPED] if rules.backfill == "slurm" and rules.site.preemption.on else []),
        *(
            [f"Site {rules.site.name} has {lacking:,} {what} not modelled (policyfactory site show)."]
            if lacking
            else []
        ),
    )


def requests_invented(jobs: Workload) -> tuple[str, ...]:
    """Return why no verdict can rest on jobs most of whose requested times are not the users'; else nothing.

    Parameters
    ----------
    jobs : Workload
        With the account of its cleaning.
    """
    share = invented_share(jobs.cleaning)
    if share <= _INVENTED:
        same = float(np.mean(jobs.same_requests)) if len(jobs) else 0.0
        if same <= _INVENTED:
            return ()
        sentence = (
            f"{100 * same:.3g} % of the requested times are the run times, to the second, which no user knows: "
            "backfilling plans by requested times, so that the simulation is not of this site's queue."
        )
        return (sentence,)
    sentence = (
        f"{100 * share:.3g} % of the jobs have no requested time in the log, and were given one: backfilling plans by "
        "requested times, so that the simulation is not of this site's queue."
    )
    return (sentence,)


# Nobody waits. --------------------------------------------------------------------------------------------------------


def nobody_waits(evaluation: Evaluation, log: str, jobs: Workload, faster: float = 1.0) -> tuple[str, ...]:
    """Return why no order of the queue can be told from another; nothing if one can.

    Parameters
    ----------
    evaluation : Evaluation
        The values.
    log : str
        Name of the log.
    jobs : Workload
        Its jobs that are measured, with their recorded starts.
    faster : float
        How many times as fast they arrive in the simulation as in the log.
    """
    rows = evaluation.rows(log)
    total = sum(evaluation.cases[row].jobs for row in rows.tolist())
    waiting = float(evaluation.waiting[rows].sum(axis=0).max()) / total
    if waiting >= NOBODY:
        return ()
    load = jobs.offered_load * faster
    first = (
        f"Nobody waits in this log under any order ({100 * waiting:.2g} % of the jobs wait longer than {TAU} s; "
        f"{load_in_words(load)}): it cannot tell orders apart."
    )
    return (first, *_why_the_record_waits(jobs), _what_helps(load, faster))


def _why_the_record_waits(jobs: Workload) -> tuple[str, ...]:
    known = jobs.start >= jobs.submit
    if not known.any():
        return ()
    wait = (jobs.start - jobs.submit)[known] / jobs.ticks
    if float(np.mean(wait == 0)) > 1 - NOBODY:
        size, start = jobs.processors[known], jobs.start[known]
        peak = int(in_use(start, start + jobs.run_time[known], size)[1].max()) / jobs.machine
        if peak < FULL:
            sentence = (
                "Nobody waits in the record either: its submit times are its start times, or there was always room (at "
                f"most {100 * peak:.0f} % of the machine was in use)."
            )
            return (sentence,)
        sentence = (
            "The log's submit times are its start times (no job waits in the record either, though the machine was "
            "full at times), so that it says nothing about waiting: ask for the accounting with the real submissions."
        )
        return (sentence,)
    if float(wait.mean()) > 60:
        sentence = (
            f"In the record jobs waited {format_duration(float(wait.mean()))} on average, though the machine had room: "
            "for what the log does not have (limits of users and queues, partitions, reservations, nodes that were "
            "down), and not for the order of the queue."
        )
        return (sentence,)
    return ()


def _what_helps(load: float, faster: float) -> str:
    if math.isnan(load):
        # No time between submissions that could be divided.
        return (
            "What helps: jobs that were submitted over some time. Import a longer log, and see whether its submit "
            "times are those of the real submissions."
        )
    # The option counts from the log, not from what was simulated.
    factor = float(f"{faster * (max(_BUSY / load, 1.1) if load > 0 else 2):.2g}")
    sooner = f"evaluate the policies with the jobs arriving faster (--load {factor:g}), " * (factor <= MOST_LOAD)
    return (
        f"What helps: {sooner}learn from a busier time or machine, or from the jobs of the site's busiest partition "
        "with that partition's processors."
    )


def _price(outcome: Outcome, log: str, name: str) -> str:
    """Return what a policy costs, behind what it gains: ratios, longest waits, and in what it is shown to be worse."""
    evaluation = outcome.evaluation
    baseline = evaluation.baseline
    values = {(row.policy, row.metric): row.value for row in outcome.summaries if row.log == log}
    ratios = [
        f"{metric} {values[name, metric] / values[baseline, metric]:.2f}"
        for metric in COSTS
        if values.get((baseline, metric), 0) > 0
    ]
    waits = {row.policy: row.wait_s for row in worst_off(evaluation, log)}
    longest = f"The longest wait: {name} {format_duration(waits[name])}, {baseline} {format_duration(waits[baseline])}"
    if waits[name] > _LONG * waits[baseline]:
        longest += "; --threshold TIME shortens it: who has waited so long goes first"
    cost = price_in_words(row for row in outcome.comparisons if (row.log, row.policy) == (log, name))
    price = f", and its price, as ratios to {baseline}: {', '.join(ratios)}" if ratios else ""
    return f"{price}. {longest}. {cost}".strip()


# The record. ----------------------------------------------------------------------------------------------------------


def _not_the_policy(record: Summary, base: Summary, *, lower: bool) -> str:
    """Return how far the replay under the baseline is from the record, which no order of the queue explains."""
    replay = f"The replay under {base.policy} has {value_in_words(base)} where the record has {value_in_words(record)}"
    if (base.value < record.value) != lower or base.value == record.value:
        return f"{replay}."
    part = value_in_words(dataclasses.replace(record, value=abs(record.value - base.value)))
    return f"{replay}: {part} of the difference is what the simulation leaves out, and not the policy."


def row_of(rows: Iterable[Row], log: str, policy: str, metric: str) -> Row:
    """Return what is known of a policy in a metric on a log."""
    return next(row for row in rows if (row.log, row.policy, row.metric) == (log, policy, metric))


_NOT_ASKED_FOR = 'The recorded schedule was not asked for (--recorded; recorded = "if-known" in a protocol).'


def against_record(outcome: Outcome, log: str, name: str) -> tuple[Light | None, tuple[str, ...]]:
    """Return whether a policy is better than the record too, and whether the replay is near enough to say so.

    Parameters
    ----------
    outcome : Outcome
        With the recorded schedule, if it is known.
    log, name : str
        The log and the policy; the metric is the one that decides.

    Returns
    -------
    Light or None
        None if the record is not known.
    tuple of str
        Why.
    """
    metric, baseline = outcome.evaluation.metrics[0], outcome.evaluation.baseline
    rows = [row for row in outcome.recorded_summaries if (row.log, row.metric) == (log, metric)]
    if not rows or not math.isfinite(rows[0].value):
        there = bool((outcome.experiment.logs[log].workload.start >= 0).any())
        left_out = there and outcome.experiment.table.recorded is False
        what = _NOT_ASKED_FOR if left_out else "There is no recorded schedule to compare with."
        why = outcome.experiment.unrecorded or what
        return None, (f"{why} So nothing is said about what a site has now.",)
    chosen, base = (row_of(outcome.summaries, log, policy, metric) for policy in (name, baseline))
    record, row = rows[0], row_of(outcome.recorded_comparisons, log, name, metric)
    # A record that is much better than the baseline may have a better policy; one that is much worse has other reasons.
    lower = METRICS[metric].lower_is_better
    worse, nearer = (record.value, base.value) if lower else (base.value, record.value)
    if nearer > 0 and worse / nearer > TOO_FAR:
        why = (
            f"The simulation is too far from the record to judge by it: {metric} was {value_in_words(record)}, and the "
            f"replay under {base.policy} has {value_in_words(base)} ({percent_change(base.value / record.value - 1)}). "
            "The real scheduler did what the simulation leaves out (priorities, limits, reservations, partitions, "
            f"nodes that were down), so nothing is recommended. {_nearer(outcome.experiment.rules.site)}"
        )
        return "unsound", (why,)
    against = f"the recorded schedule in {metric}: {value_in_words(chosen)} against {value_in_words(record)}"
    against += difference_in_words(row)
    if row.verdict == "better":
        return "better", (f"{name} is better than {against}. {_not_the_policy(record, base, lower=bool(lower))}",)
    if row.verdict == "worse":
        return "worse", (f"{name} is WORSE than {against}: leave the queue as it is.",)
    return "cannot tell", (f"{name} is not shown to be better than {against}: nothing is recommended.",)


def _nearer(site: Site | None) -> str:
    """Return what brings a simulation nearer to the record."""
    if site is None or site.assumed:
        return "Next step: a site file (policyfactory site import), given with --site; more weeks change nothing here."
    return "Next step: see what the site file lacks (policyfactory site replay); more weeks change nothing here."


# Before a site is believed --------------------------------------------------------------------------------------------

# Each log's own jobs are replayed on it, and their waits compared with the record.


def replay_logs(
    rules: Rules,
    logs: Mapping[str, Workload],
    notify: Notify = lambda _: None,
    counter: Callable[[], WorkCounter] = WorkCounter,
) -> dict[str, Fidelity]:
    """Return how near the site of some rules is to the record of each log, by the log's name.

    Parameters
    ----------
    rules : Rules
        Without a site of somebody's own nothing is replayed: what is assumed of a log is nobody's cluster.
    logs : mapping of str to Workload
        One whose jobs have no recorded starts is left out.
    notify : callable
        Called with a sentence for each log.
    counter : callable
        Returns who counts how far a replay is, in % of its jobs.

    Raises
    ------
    EvaluationError
        If a log is another cluster's or cannot be simulated on the site.
    """
    site = rules.site
    if site is None or site.assumed:
        return {}
    found = {}
    for log, jobs in logs.items():
        if not has_record(jobs):
            notify(f"{log}: no recorded starts, so that nothing shows how near the simulation of {site.name} is")
            continue
        found[log] = fidelity(jobs, site, progress=_in_percent(counter(), len(jobs)))
        notify(f"{log}, its own jobs replayed on {site.name}: {in_short(found[log])}")
    return found


def refuse_runaway(gates: Iterable[Mapping[str, Fidelity]]) -> None:
    """Refuse to simulate policies where the queue of a log's own jobs runs away: each would take hours.

    Raises
    ------
    EvaluationError
        With what holds the jobs.
    """
    for found in (replay for gate in gates for replay in gate.values()):
        if found.stopped:
            raise EvaluationError(
                f"{found.workload}: {' '.join(fidelity_verdict(found).sentences)} No policy was simulated; "
                "policyfactory site replay shows the same"
            )


def _in_percent(counter: WorkCounter, jobs: int) -> Callable[[int], None]:
    """Return what notes how many of the jobs are done."""
    counter.expect(100)
    done = 0

    def note(now: int) -> None:
        nonlocal done
        while done < 100 * now // max(jobs, 1):
            done += 1
            counter.done(jobs // 100)

    return note


def gated(light: Light, sentences: tuple[str, ...], found: Fidelity | None) -> tuple[Light, tuple[str, ...]]:
    """Return a light and its sentences as far as the site is to be trusted.

    Parameters
    ----------
    light : Light
        What the policies' numbers say.
    sentences : tuple of str
        Why.
    found : Fidelity or None
        How near the site's simulation is to the record; None: nothing was replayed.
    """
    if found is None or found.trusted:
        return light, sentences
    verdict = fidelity_verdict(found)
    trusted = judge([Finding(light)], [Finding(verdict.light)])
    if found.light == "far":
        return trusted, (*verdict.sentences, "No policy is recommended.")
    if trusted == light:
        return light, sentences
    why = f"{HEADINGS['cannot tell']}: {verdict.sentences[0]}"
    return trusted, (f"{why} No policy is recommended.", *sentences)


def gate_in_words(found: Fidelity | None) -> tuple[str, ...]:
    """Return in a sentence what the replay of a log says; nothing where none was replayed."""
    if found is None:
        return ()
    return (f"the log's own jobs, replayed on site {found.site}: {in_short(found)}",)


def headed(verdict: Verdict, found: Iterable[Fidelity]) -> Verdict:
    """Return a verdict under the heading of a site that is not to be trusted, if all logs say so."""
    lights = {replay.light for replay in found}
    return dataclasses.replace(verdict, heading=HEADINGS["far"]) if lights == {"far"} else verdict


def gate_sections(found: Mapping[str, Fidelity]) -> tuple[Section, ...]:
    """Return the sections of all logs; of several each has the log in its name and title."""
    if len(found) == 1:
        return tuple(section for replay in found.values() for section in sections_of(replay))
    return tuple(
        dataclasses.replace(section, name=f"{section.name}-{stem}", title=f"{log}: {section.title}")
        for (log, replay), stem in zip(found.items(), anchors(found), strict=True)
        for section in sections_of(replay)
    )


def gates_as_dict(found: Mapping[str, Fidelity]) -> dict[str, Any]:
    """Return what was found as JSON values, with its key; nothing where nothing was replayed."""
    return {"fidelity": {log: replay.as_dict() for log, replay in found.items()}} if found else {}
