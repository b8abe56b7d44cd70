"""A learned policy, and the evidence for it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import html
import math
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from policyfactory.core.files import (
    Manifest,
    atomic_write,
    check_directory,
    command_line,
    digest_of,
    dump_json,
    exclusive,
    package_versions,
    refuse_earlier,
    together,
)
from policyfactory.core.picture import keeps_settings
from policyfactory.core.text import DAY, WEEK, counted, enumerated, format_duration
from policyfactory.evaluation.experiment import Outcome
from policyfactory.evaluation.fidelity.compare import Fidelity
from policyfactory.evaluation.picture import draw_boxes
from policyfactory.evaluation.precision import needed
from policyfactory.evaluation.verdict import Row, against_record, nobody_waits, requests_invented, row_of
from policyfactory.fitting.fits import Fits
from policyfactory.learning.choice import ByReplicas, Tested
from policyfactory.learning.comparing import (
    CLASSICAL,
    POLICY,
    PREDICTOR,
    PUBLISHED,
    RANKING,
    SCORES,
    Compared,
    Rival,
    check_folder,
    choice_in_words,
    replicas_in_words,
    threshold_in_words,
    write_rivals,
)
from policyfactory.learning.options import LearnOptions, as_typed
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, save_model
from policyfactory.prediction.store import save_forests
from policyfactory.prediction.training import Forests
from policyfactory.report.verdict import Finding, Verdict, difference_in_words, judge, value_in_words
from policyfactory.search.environment.goals import EpisodeLimit
from policyfactory.simulation.metrics import METRICS, measure
from policyfactory.simulation.schedule import Schedule, lacking_starts, recorded_schedule
from policyfactory.statistics.compare import Comparison, compare_policies
from policyfactory.statistics.evaluation import Evaluation
from policyfactory.statistics.intervals import Interval
from policyfactory.trials.table import ScoreTable, write_score_table
from policyfactory.workload.swf.files import write_swf
from policyfactory.workload.swf.log import SwfLog

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_STATE = "/var/spool/policyfactory/history"  # as in docs/predictions.md


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Learned:
    """A policy that was learned from a log, or the published one that nothing learned is shown to be better than.

    Parameters
    ----------
    model : Model
        The policy, with the threshold that was asked for.
    options : LearnOptions
        How it was learned.
    parts : mapping of str to SwfLog
        What was learned from (``training``), chosen by (``choosing``) and tested on (``test``).
    scores : ScoreTable
        The scores of the training jobs.
    fits : mapping of str to Fits
        The formulas fitted to them, by family (``forms``, ``polynomials``), but for one that cannot be fitted.
    rivals : tuple of Rival
        All policies that competed.
    choosing : Compared
        How the rivals did on the second quarter.
    thresholds : Compared or None
        How the choice did there with thresholds, if one was to be chosen.
    test : Compared
        How the choice did on the second half.
    verdict : Verdict
        What the second half says of the choice: shown better, cannot tell, worse, or unsound, and why.
    epoch : int or None
        Unix time from which r counts; None if the log has no date.
    last : int or None
        Unix time of the last submission.
    source : SwfLog
        The whole log.
    replicas : ByReplicas or None
        The choice by replicas of the second quarter; None if it was by the quarter itself.
    tested : Tested or None
        The choice on replicas of the second half.
    predictor : Forests or None
        What predicts for a choice that reads predictions, trained on the jobs of the whole log that ended last.
    fidelity : Fidelity or None
        How near the simulation of the site is to the record of the log; None without a site, or without starts.
    """

    model: Model
    options: LearnOptions
    parts: Mapping[str, SwfLog]
    scores: ScoreTable
    fits: Mapping[str, Fits]
    rivals: tuple[Rival, ...]
    choosing: Compared
    thresholds: Compared | None
    test: Compared
    verdict: Verdict
    epoch: int | None
    last: int | None
    source: SwfLog
    replicas: ByReplicas | None = None
    tested: Tested | None = None
    predictor: Forests | None = None
    fidelity: Fidelity | None = None

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.model.policy

    @property
    def evaluation(self) -> Evaluation:
        """The values on the second half, which had no part in the choice."""
        return self.test.outcome.evaluation

    @property
    def choice_words(self) -> str:
        """What was chosen, in words."""
        published, policy = self.formula_name in PUBLISHED, self.policy
        if self.replicas is not None:
            tried: tuple[str, ...] = self.replicas.tried
            policy = self.replicas.winner.model.policy
            words = replicas_in_words(policy, self.replicas.ranking, len(self.rivals), published=published)
        else:
            tried = () if self.thresholds is None else tuple(rival.name for rival in self.thresholds.rivals[2:])
            tie = len(self.choosing.best) == len(self.rivals)
            words = choice_in_words(self.policy, len(self.rivals), published=published, tie=tie)
        return f"{words} {threshold_in_words(policy, tried)}".rstrip()

    @property
    def words(self) -> tuple[str, ...]:
        """What was chosen, what it is worth, and what the numbers rest on."""
        return (self.choice_words, *self.verdict.sentences, *self.verdict.caveats)

    @property
    def formula_name(self) -> str:
        """Name of the formula that was chosen, without its threshold."""
        return self.choosing.winner.name if self.replicas is None else self.replicas.ranking.chosen

    def summary(self) -> str:
        """Return the words, a paragraph each."""
        return "\n".join(self.words)

    def frame(self) -> pd.DataFrame:
        """Return the values on the second half: log, case, policy, metric, value."""
        return self.evaluation.frame()

    @keeps_settings
    def plot(self, metric: str | None = None) -> Figure:
        """Return the picture of a metric on the second half: a box of the windows for each policy.

        Parameters
        ----------
        metric : str, optional
            Default: the metric of the choice.
        """
        return draw_boxes(self.evaluation, metric or self.options.metric)

    def export_command(self, policy: str, log: str) -> list[str]:
        """Return the command that hands the policy to Slurm; one with two orders, which Slurm has not, to a file.

        Parameters
        ----------
        policy, log : str
            Files of the policy and of the log.
        """
        if self.policy.backfill_formula:
            return ["policyfactory", "export", policy, "--to", "json", "--output", "paired.json"]
        # What changes while a job waits, only the plugin can express.
        moving = not self.policy.is_static or self.policy.threshold != float("inf")
        target = ["--to", "slurm-site-factor-c", "--output", "plugin"] if moving else ["--output", "job_submit.lua"]
        reading = self.options.machine_words
        if self.options.estimate_missing != LearnOptions.estimate_missing:
            reading += ["--estimate-missing", self.options.estimate_missing]
        # Under whose rules the longest wait is simulated: an export has no others of them, and no --assume.
        backfill = self.options.backfill if self.options.backfill in {"easy", "slurm"} else None
        reading += as_typed({"backfill": backfill, "site": self.options.site})
        command = ["policyfactory", "export", policy, "--workload", log, *reading]
        if self.policy.needs_model:
            command += ["--predictor", str(Path(policy).parent / PREDICTOR), "--state", _STATE]
        if "r" in self.policy.variables:
            command += ["--epoch" if self.policy.epoch.rule == "window-start" else "--begin", self._day_of_use()]
        return command + target

    def _day_of_use(self) -> str:
        """Return the last job's day, about when the policy is put to use; of a log of years ago nobody knows it."""
        if self.last is None or time.time() - self.last > 180 * DAY:
            return "YYYY-MM-DD"
        return dt.datetime.fromtimestamp(self.last, dt.UTC).strftime("%Y-%m-%d")

    @keeps_settings
    def save(self, folder: Path | str) -> Path:
        """Write everything to a folder: parts of the log, scores, models, reports, and ``policy.json``.

        Parameters
        ----------
        folder : Path or str
            Made if it is not there.

        Returns
        -------
        Path
            The policy's file.

        Raises
        ------
        OutputError
            If the folder holds a learned policy already, or a file cannot be written.
        """
        folder = check_folder(Path(folder))
        with exclusive(folder / "learn"):
            refuse_earlier(folder / POLICY, overwrite=False)
            parts = {part: _moved(log, folder) for part, log in self.parts.items()}
            for log in parts.values():
                write_swf(log, log.path)
            self._save_scores(folder / SCORES, parts["training"])
            figures = check_directory(folder / "pictures")
            for family, fits in self.fits.items():
                drawn, report = figures if family == "forms" else None, folder / f"{family}.md"
                fits.save(folder / f"{family}.json", report=report, figures=drawn, overwrite=True)
            compared_parts = {"choosing": self.choosing, "thresholds": self.thresholds, "test": self.test}
            moved = {self.parts[part].path: log for part, log in parts.items()}
            for part, compared in compared_parts.items():
                if compared is not None:
                    write_rivals(compared.rivals, folder)
                    rivals = tuple(_moved_rival(rival, folder) for rival in compared.rivals)
                    log = moved.get(compared.log.path, compared.log)
                    dataclasses.replace(compared, log=log, rivals=rivals).write(check_directory(folder / part))
            if self.replicas is not None:
                more = (self.replicas.winner, self.replicas.published)
                write_rivals([*self.replicas.rivals, *more], folder)
            return self.write_policy(folder)

    def write_policy(self, folder: Path) -> Path:
        """Write the chosen policy and its manifest to an existing folder; return its file."""
        path, options = folder / POLICY, self.options
        inputs = {Path(self.source.path).name: self.source.sha256}
        if options.site is not None:
            inputs[Path(options.site).name] = self.test.study.protocol.hashes[str(Path(options.site))]
        parameters = {
            "metric": options.metric,
            "windows": options.windows,
            "threshold_s": self.policy.threshold if math.isfinite(self.policy.threshold) else None,
            "verdict": self.verdict.light,
            "epoch": self.epoch,
            "chosen": self.policy.name,
            **({} if options.site is None else {"fidelity": None if self.fidelity is None else self.fidelity.light}),
        }
        with together():
            save_model(self.model, path)
            outputs = {POLICY: digest_of(path)}
            if self.replicas is not None:
                rankings: dict[str, Any] = {"choosing": self.replicas.ranking.as_dict()}
                if self.replicas.screening is not None:
                    rankings["choosing_easy"] = self.replicas.screening.as_dict()
                if self.tested is not None:
                    to_peers = [ranking.as_dict() for ranking in self.tested.to_peers]
                    rankings["test"] = to_peers
                    if self.tested.to_baseline is not None:
                        rankings["test_fcfs"] = self.tested.to_baseline.as_dict()
                atomic_write(folder / RANKING, dump_json(rankings))
                outputs[RANKING] = digest_of(folder / RANKING)
            if self.predictor is not None:
                provenance = {"command": command_line(), "inputs": inputs, "versions": package_versions(), **parameters}
                save_forests(self.predictor, folder / PREDICTOR, provenance=provenance)
                outputs[PREDICTOR] = digest_of(folder / PREDICTOR)
            manifest = Manifest("learned-policy", command_line(), options.seed, inputs, parameters, outputs=outputs)
            manifest.write(Manifest.path_for(path))
        return path

    def _save_scores(self, path: Path, training: SwfLog) -> None:
        inputs = {Path(training.path).name: training.sha256}
        options = self.options
        parameters = {"origin": self.scores.origin, "tuples": options.tuples, "trials": options.trials}
        with together():
            write_score_table(self.scores, path)
            outputs = {path.name: digest_of(path)}
            manifest = Manifest("score-table", command_line(), options.seed, inputs, parameters, outputs=outputs)
            manifest.write(Manifest.path_for(path))

    def __repr__(self) -> str:
        return f"Learned({self.policy.name}: {self.policy.formula}; {self.verdict.light} in {self.options.metric})"

    def _repr_html_(self) -> str:
        paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in self.words)
        return f"<div><strong>{html.escape(repr(self))}</strong>{paragraphs}</div>"


def _moved(log: SwfLog, folder: Path) -> SwfLog:
    return dataclasses.replace(log, path=str(folder / Path(log.path).name))


def _moved_rival(rival: Rival, folder: Path) -> Rival:
    return dataclasses.replace(rival, source=f"{folder}/{rival.source}") if rival.is_file else rival


# What the second half says of a policy, for who has to decide about a queue -------------------------------------------
# The comparison that counts for a site is with what it has now: the recorded schedule. A policy is recommended only if
# it is shown to be better than the record, than the simulated baseline and than the best published policy, and if the
# replay of the baseline is near enough to the record for a simulation to mean anything
# (`policyfactory.report.verdict.judge`).

_BASELINE = CLASSICAL[0]
_TINY = 1e-300
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
    outcome : Outcome
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
    limits : tuple of EpisodeLimit
        What the choice may cost.
    peers : tuple of str
        Without replicas, the published policies that were best before, where what was learned is none of them.
    can_have_threshold : bool
        Whether an export carries one with the choice.
    """

    outcome: Outcome
    metric: str
    chosen: str
    baseline: Schedule
    choice: Schedule
    tested: Tested | None = None
    short: str = ""
    limits: tuple[EpisodeLimit, ...] = ()
    peers: tuple[str, ...] = ()
    can_have_threshold: bool = True

    def row(self, rows: Iterable[Row], policy: str = "") -> Row:
        """Return what is known of a policy, or else of the choice."""
        return row_of(rows, self.outcome.evaluation.logs[0], policy or self.chosen, self.metric)


def verdict_of(evidence: Evidence) -> Verdict:
    """Return the verdict on the choice.

    Parameters
    ----------
    evidence : Evidence
        The comparisons.
    """
    evaluation, jobs = evidence.outcome.evaluation, evidence.baseline.workload
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
    evidence = dataclasses.replace(evidence, outcome=_judged_alone(evidence.outcome, evidence.chosen))
    record, first = against_record(evidence.outcome, log, evidence.chosen)
    simulated, sentences = _against_baseline(evidence, weeks_help=record != "unsound")
    if record is None and not evidence.outcome.experiment.unrecorded:
        first = (_NO_RECORD,)
    by_peer, beside = _against_peer(evidence)
    in_simulation = judge(simulated)
    dear = _too_dear(evidence, is_gain=in_simulation == "better")
    allowed = [Finding("")] if dear else []
    light = judge(simulated, [Finding(record or "")], by_peer, allowed)
    # What a site has now comes first; but what is worse than no order at all is refused for that.
    words = (*sentences, *first) if in_simulation == "worse" else (*first, *sentences)
    step: tuple[str, ...] = ()
    if in_simulation == "better" and record == "cannot tell" and not dear:
        step = _to_record(evidence)
    elif in_simulation == record == "better" and by_peer and not dear:
        step = _to_peer(evidence)
    return Verdict(light, (*words, *beside, *dear, *_who_pays(evidence), *step))


def _judged_alone(outcome: Outcome, name: str) -> Outcome:
    """Return the outcome with the verdicts of the choice as of a single policy: it was chosen on other jobs."""

    def alone(row: Comparison) -> Comparison:
        if row.policy != name or not row.by_chance:
            return row
        return dataclasses.replace(row, verdict="better" if _is_gain(row) else "worse")

    comparisons, recorded = (tuple(map(alone, rows)) for rows in (outcome.comparisons, outcome.recorded_comparisons))
    return dataclasses.replace(outcome, comparisons=comparisons, recorded_comparisons=recorded)


def _is_gain(row: Comparison) -> bool:
    """Return whether the difference is in favour of the policy, as far as it is known."""
    lower = METRICS[row.metric].lower_is_better is not False
    return math.isnan(row.difference) or (row.difference < 0) == lower


def _to_peer(evidence: Evidence) -> tuple[str, ...]:
    """Return what to do where a published policy may be as good."""
    policies = ",".join((_BASELINE, *_unbeaten(evidence)))
    return (f"Next step: see what that is worth by itself, policyfactory evaluate LOG --policies {policies}.",)


def _unbeaten(evidence: Evidence) -> list[str]:
    """Return the best published policies that the choice is not shown to be better than."""
    if evidence.tested is not None:
        to_peers = evidence.tested.to_peers
        return [ranking.peer for ranking in to_peers if ranking.row(evidence.chosen).verdict != "better"]
    evaluation = evidence.outcome.evaluation
    what = evaluation.logs[0], evidence.metric, evidence.chosen
    paired = {peer: compare_policies(evaluation, *what, peer, statistic="mean") for peer in evidence.peers}
    return [peer for peer, pair in paired.items() if pair.verdict != "better"]


def _to_record(evidence: Evidence) -> tuple[str, ...]:
    """Return how long a log would show the choice to be better than the record."""
    row = evidence.row(evidence.outcome.recorded_comparisons)
    step = _more_weeks(evidence, row.difference, row.interval, is_gain=_is_gain(row))
    return (f"Next step: {step}.",)


# Better than the baseline, and than what the site has. ----------------------------------------------------------------


def _against_baseline(evidence: Evidence, *, weeks_help: bool) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return what replicas of the second half say, which its weeks may contradict; without replicas, its weeks.

    Where more weeks would not help, they are not proposed.
    """
    name, row = evidence.chosen, evidence.row(evidence.outcome.comparisons)
    where = "On the second half, which had no part in the choice,"
    choice, base = (value_in_words(evidence.row(evidence.outcome.summaries, policy)) for policy in (name, _BASELINE))
    against = f"simulated {_BASELINE} in {evidence.metric}: {choice} against {base}"
    if evidence.short:
        return (Finding(""),), (f"{where} {name} cannot be told from {against}: {evidence.short}.",)
    ranking = None if evidence.tested is None else evidence.tested.to_baseline
    if evidence.tested is None or ranking is None:
        sources: tuple[Finding, ...] = (Finding(row.verdict),)
        against = f"{against}{difference_in_words(row)}"
        if evidence.tested is None:
            more = _more_weeks(evidence, row.difference, row.interval, is_gain=_is_gain(row))
        else:  # a few weeks with a long queue rule its mean, in any number of them
            count = evidence.tested.to_peer.replicas
            more = f"--replicas {count} has {_BASELINE} on replicas of all jobs, too, which tell more than its weeks"
    else:
        tested = ranking.row(name)
        sources = (Finding(tested.verdict), Finding(row.verdict, needed=False))
        against = (
            f"{against}. On {ranking.replicas} replicas of {ranking.part} the ratio is {tested.ratio_text}, and its "
            f"price, as ratios: {ranking.price(tested)}"
        )
        if by_load := ranking.by_load(name):
            against += f"; by load the ratio is {by_load}"
        value, *ends = (math.log(max(ratio, _TINY)) for ratio in (tested.ratios[0], *(tested.interval or ())))
        interval = Interval(*ends) if ends else None
        more = _more_weeks(evidence, value, interval, evidence.tested.weeks, is_gain=value < 0)
        if {tested.verdict, row.verdict} == {"better", "worse"}:
            more = f"its replicas say {tested.verdict}, its own weeks {row.verdict}; import a longer time"
        elif row.verdict == "worse" and tested.verdict != "worse":
            against = f"{against}, and in its own weeks it is worse"
    light = judge(sources)
    if light == "better":
        return sources, (f"{where} {name} is better than {against}.",)
    if light == "worse":
        return sources, (
            f"{where} {name} is WORSE than {against}: do not use it; what was learned does not hold for later jobs.",
        )
    sentence = (
        f"{where} {name} is not shown to be better than {against}. There is no evidence yet for a change of the queue"
    )
    return sources, (f"{sentence}: {more}." if weeks_help else f"{sentence}.",)


def _more_weeks(
    evidence: Evidence, value: float, interval: Interval | None, seen: float | None = None, *, is_gain: bool
) -> str:
    """Return how much longer a log would show a gain if it stays: intervals shrink as 1 / sqrt(weeks).

    ``seen``: how many weeks the interval is of; all of the second half, if not given.
    """
    if not is_gain:
        return "leave the queue as it is"
    jobs = evidence.baseline.workload
    weeks = float(jobs.submit[-1] - jobs.submit[0]) / (WEEK * jobs.ticks)
    if interval is None or not value or not math.isfinite(interval.towards_zero(value)):
        return "import a longer time"
    want = needed(weeks if seen is None else seen, interval.towards_zero(value), abs(value))
    # Of a longer log, half are the second half.
    more = math.inf if want is None else max(math.ceil(2 * (want - weeks)), 2)
    if want is None or more > _LONGEST:
        return "so small a difference would not show in five years of jobs; leave the queue as it is"
    if seen is not None and seen < want <= weeks:
        return f"take replicas of {want:.0f} weeks of it (more --minutes); so large a difference would show then"
    return f"import {counted(int(more), 'more week')}; so large a difference would show then"


def _against_peer(evidence: Evidence) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return what replicas of the second half say of the choice and the best published policies.

    What is learned has to be better than each of them: so often wrong is that at most as each comparison alone. To be
    worse than a published formula, which needs nothing, is not to be worse than what a site has.
    """
    tested = evidence.tested
    if tested is None:
        return _against_published(evidence)
    if evidence.chosen in {_BASELINE, *(ranking.peer for ranking in tested.to_peers)}:
        return (), ()
    ranking, chosen = tested.to_peer, evidence.chosen
    row, peer = ranking.row(chosen), ranking.peer
    more = [f"{other.row(chosen).ratio_text} times that of {other.peer}" for other in tested.to_peers[1:]]
    next_best = f" ({', '.join(more)}, the next best)" if more else ""
    sentence = (
        f"On {ranking.replicas} replicas of {ranking.part} {ranking.measured[0]} is {row.ratio_text} times that of "
        f"{peer}, the best published policy before{next_best}; its price, as ratios: {ranking.price(row)}."
    )
    is_guarded_peer = chosen.removeprefix(f"{peer}-")[:-1].isdigit()
    if not is_guarded_peer and (by_load := ranking.by_load(chosen)):
        sentence += f" By load that is {by_load}."
    unbeaten = _unbeaten(evidence)
    if not unbeaten:
        return (), (sentence,)
    if is_guarded_peer and row.verdict != "worse":
        # The published policy itself, with a guard: there is nothing that it would have to be better than.
        return (), (sentence, f"{chosen} is {peer} with a threshold, which {_GUARDED}.")
    alike = f"So {chosen} is not shown to be better than {enumerated(unbeaten)}, which anybody can use"
    if math.isfinite(evidence.choice.rules.threshold):
        # The route that export takes by default has no threshold: who takes it gets the peer.
        alike += f" by any route into a scheduler; the threshold of {chosen} {_GUARDED}"
    return (Finding(""),), (sentence, f"{alike}.")


def _against_published(evidence: Evidence) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return what the second half itself says of what was learned and the published policies that were best before."""
    if not evidence.peers:
        return (), ()
    chosen, unbeaten = evidence.chosen, _unbeaten(evidence)

    def value(name: str) -> str:
        return value_in_words(evidence.row(evidence.outcome.summaries, name))

    beside = [f"{value(peer)} of {peer}{' (not shown)' if peer in unbeaten else ''}" for peer in evidence.peers]
    sentence = (
        f"There are no replicas, so that {chosen} has to be better on the second half itself than the published "
        f"policies that were best before: {value(chosen)} against {enumerated(beside)}."
    )
    return ((Finding(""),) if unbeaten else ()), (sentence,)


def _too_dear(evidence: Evidence, *, is_gain: bool) -> tuple[str, ...]:
    """Return in what the choice costs more than is allowed, beside the best published policy or the record.

    What could be done about it is said of a choice that gains something.
    """
    jobs, found = evidence.baseline.workload, []
    if evidence.tested is not None:
        found += [evidence.tested.to_peer.row(evidence.chosen).out]
    names = [limit.guard for limit in evidence.limits]
    choice = measure(evidence.choice, names) if names else {}
    found += [
        f"{limit.guard} is {format_duration(choice[limit.guard])}, and at most {limit.text} is allowed"
        for limit in evidence.limits
        if limit.times is None and choice[limit.guard] > limit.bound(0.0)
    ]
    if evidence.limits and not lacking_starts(jobs):
        record = measure(recorded_schedule(jobs), names)
        found += [
            f"{limit.guard} is {choice[limit.guard] / record[limit.guard]:.2f} times the record's, and at most "
            f"{limit.text} is allowed"
            for limit in evidence.limits
            if record[limit.guard] > 0 and limit.times and choice[limit.guard] > limit.bound(record[limit.guard])
        ]
    if not any(found):
        return ()
    sentence = (
        f"{evidence.chosen} costs more than is allowed, so it is not recommended: {'; '.join(filter(None, found))}."
    )
    if not is_gain:
        return (sentence,)
    guard = "learn with a threshold (--threshold 20h), or " if evidence.can_have_threshold else ""
    return (f"{sentence} Next step: {guard}allow more (--max-p99, --max-longest, --max-area).",)


# Who pays. ------------------------------------------------------------------------------------------------------------


def _who_pays(evidence: Evidence) -> tuple[str, ...]:
    """Return the longest waits and the jobs that wait longer than under the baseline, in one sentence."""
    base, choice, jobs = evidence.baseline.wait, evidence.choice.wait, evidence.baseline.workload
    longest = {evidence.chosen: choice, f"simulated {_BASELINE}": base}
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
    means = {
        name: (float(base[rows].mean()), float(choice[rows].mean())) for name, rows in groups.items() if rows.any()
    }
    losers = [
        f"{name} ({format_duration(was)} to {format_duration(now)} on average)"
        for name, (was, now) in means.items()
        if now > was + 60 and now > 1.05 * was
    ]
    who = f"; who waits longer than under {_BASELINE}: {', '.join(losers)}" if losers else ""
    cut = evidence.outcome.evaluation.cases[0].kind == "window"
    where = "In one continuous simulation of the second half, the" if cut else "The"
    return (f"{where} longest wait: {waits}{who}.",)
