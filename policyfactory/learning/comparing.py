"""Policies compared on a log: who competes, and the report of it."""

from __future__ import annotations

import dataclasses
import glob
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyfactory.core.errors import UsageError
from policyfactory.core.files import Manifest, check_directory, command_line, dump_json, dump_toml
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.text import format_duration
from policyfactory.evaluation import results_folder
from policyfactory.evaluation.experiment import Outcome
from policyfactory.evaluation.protocol import Protocol, protocol_of
from policyfactory.evaluation.protocol_content import plain_content
from policyfactory.evaluation.results_folder import Result, protocol_dict, write_report
from policyfactory.evaluation.standings import restated
from policyfactory.exports.foresight import UNKNOWN
from policyfactory.policy.algebra import round_coefficients
from policyfactory.policy.policy import Policy
from policyfactory.policy.store import Model, model_to_json, save_model
from policyfactory.report.verdict import Verdict
from policyfactory.search.families import NAMES
from policyfactory.workload.swf.log import SwfLog

if TYPE_CHECKING:
    from policyfactory.learning.ranking import Ranking
    from policyfactory.simulation.rules import Rules
    from policyfactory.workload.jobs import Workload

# The policies that whatever was learned has to beat; the first is the baseline.
CLASSICAL = ("FCFS", "SPF", "SQF", "SAF", "WFP3", "UNICEF", "F1")
# The best of all published ones is what there is to beat.
PUBLISHED = NAMES


@dataclasses.dataclass(frozen=True, slots=True)
class Rival:
    """A policy that competes.

    Parameters
    ----------
    model : Model
        The policy.
    source : str
        What names it on the command line: a name of the catalogue, or a file.
    """

    model: Model
    source: str

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.model.policy.name

    @property
    def is_file(self) -> bool:
        """Whether it is no policy of the catalogue."""
        return self.source.endswith(".json")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Policies compared on a log.

    Parameters
    ----------
    study : Result
        Values, comparisons, words.
    log : SwfLog
        Of which jobs.
    rivals : tuple of Rival
        Of which policies.
    options : mapping
        Options of the evaluation.
    measured : dict
        Seconds and the like, for the manifest.
    """

    study: Result
    log: SwfLog
    rivals: tuple[Rival, ...]
    options: Mapping[str, Any]
    measured: Mapping[str, Any]

    @property
    def outcome(self) -> Outcome:
        """The values and what follows from them."""
        return self.study.outcomes[0]

    @property
    def winner(self) -> Rival:
        """The policy that is best in the first metric, the first of equals."""
        return next((rival for rival in self.rivals if rival.name in self.best), self.rivals[0])

    @property
    def chosen(self) -> Rival:
        """The policy that was chosen before, on other jobs, or else the winner."""
        return next((rival for rival in self.rivals if rival.name == self.outcome.chosen), self.winner)

    @property
    def best(self) -> set[str]:
        """Names of the policies that are best in the first metric: several are equally good."""
        metric = self.outcome.evaluation.metrics[0]
        return {row.policy for row in self.outcome.summaries if row.best and row.metric == metric}

    def judged(self, verdict: Verdict, chosen: str) -> Compared:
        """Return the same with the verdict on the choice, in place of that on whoever leads."""
        judged = restated(dataclasses.replace(self.outcome, verdict=verdict, chosen=chosen))
        outcomes = (judged, *self.study.outcomes[1:])
        return dataclasses.replace(self, study=dataclasses.replace(self.study, outcomes=outcomes))

    def write(self, folder: Path) -> list[Path]:
        """Write report, tables and pictures into an existing folder; return the files in the folder itself."""
        protocol, text = comparison_protocol(self.log, self.rivals, self.options)
        hashes = {self.log.path: self.log.sha256, **protocol.hashes}
        for rival in self.rivals:
            if rival.is_file:
                hashes[rival.source] = sha256_bytes(dump_json(model_to_json(rival.model)).encode())
        parameters = protocol_dict(self.study)
        manifest = Manifest("evaluation", command_line(), protocol.seed, hashes, parameters, self.measured)
        written = write_report(self.study, folder, manifest, text)
        return [folder / name for name in written]


def comparison_protocol(log: SwfLog, rivals: Sequence[Rival], options: Mapping[str, Any]) -> tuple[Protocol, str]:
    """Return the protocol of a comparison, with the policies that are in memory, and its text.

    Parameters
    ----------
    log : SwfLog
        The log.
    rivals : sequence of Rival
        The policies; the first is the baseline.
    options : mapping
        Options of the evaluation.
    """
    content = plain_content({"policies": [], **options}, {log.name: {"file": log.path}}, "call")
    protocol = protocol_of(content, by="call", policies=[rival.model.policy for rival in rivals])
    content["experiments"][0]["policies"] = [rival.source for rival in rivals]
    return protocol, dump_toml(content)


# What was chosen, in words --------------------------------------------------------------------------------------------


def formula_in_words(policy: Policy) -> str:
    """Return the sort key, its coefficients rounded as everywhere."""
    return round_coefficients(policy.expression).text()


def whole_hours(hours: float) -> int:
    """Return the hours of a threshold, rounded up; from three days on to whole days."""
    return math.ceil(hours) if hours <= 72 else 24 * math.ceil(hours / 24)


def hours_text(count: int) -> str:
    """Return what a threshold of so many hours is called in the name of a policy."""
    return f"{count // 24}d" if count > 72 else f"{count}h"


def limits_in_words(policy: Policy) -> tuple[str, ...]:
    """Return what most routes into a scheduler cannot express of a policy."""
    if policy.backfill_formula:
        text = (
            "No route into a scheduler carries an order of its own for backfilling: policy.json is for simulation, and "
            "for a scheduler of yours."
        )
        return (text,)
    parts = [
        *(["its threshold"] if math.isfinite(policy.threshold) else []),
        *([] if policy.is_static else ["what changes while a job waits"]),
    ]
    if not parts:
        return ()
    what = " and ".join(parts)
    text = (
        f"Of the routes into Slurm only the plugin in C (slurm-site-factor-c) can express {what} for all jobs: by "
        "another one the queue differs from the one measured here."
    )
    return (text,)


def judging_in_words(rules: Rules, judging: Rules, *, screened: bool) -> tuple[str, ...]:
    """Return under which rules a choice was judged, if they are not those under which all policies ran.

    Parameters
    ----------
    rules, judging : Rules
        Under which all ran, and under which the choice was judged.
    screened : bool
        Whether the best of them were chosen from under the latter.
    """
    if rules.backfill == judging.backfill:
        return ()
    how = (
        "the policies were screened under EASY, the literature's scheduler, and the best of them chosen from and judged"
        if screened
        else "the choice was made under EASY, the literature's scheduler, and judged on the second half"
    )
    text = f"{how} under Slurm's own rules, on a site that is assumed of the log (all under EASY: --backfill easy)"
    return (text,)


def threshold_in_words(policy: Policy, tried: Sequence[str]) -> str:
    """Return from which wait on a job goes first, and why; nothing if the user said it.

    Parameters
    ----------
    policy : Policy
        The choice.
    tried : sequence of str
        Names of the choice with the thresholds that were tried on the second quarter.
    """
    if not tried or policy.threshold == float("inf"):
        return ""
    return (
        f"Jobs that have waited {format_duration(policy.threshold)} go first: the lowest threshold of {len(tried)} "
        "with which nine tenths of its gain are sure to be kept there."
    )


def choice_in_words(policy: Policy, candidates: int, *, published: bool, tie: bool = False) -> str:
    """Return what was chosen, among how many, and its sort key.

    Parameters
    ----------
    policy : Policy
        The choice.
    candidates : int
        How many policies competed.
    published : bool
        Whether it is one of the classical policies.
    tie : bool
        Whether all policies did the same.
    """
    if tie:
        return (
            f"All {candidates} policies did the same on the second quarter of the jobs, so that none of them was "
            f"chosen: {policy.name} stands for all."
        )
    origin = (
        "It is a published policy: no formula learned from this log was better there."
        if published
        else "It was learned from the first quarter."
    )
    return (
        f"{policy.name} was the best of {candidates} policies on the second quarter of the jobs. {origin} It sorts the "
        f"queue by {formula_in_words(policy)}, the lower value first."
    )


def replicas_in_words(policy: Policy, ranking: Ranking, candidates: int, *, published: bool) -> str:
    """Return what was chosen by replicas, among how many, and its sort key.

    Parameters
    ----------
    policy : Policy
        The choice.
    ranking : Ranking
        How the policies did.
    candidates : int
        How many there were before the best under EASY were taken.
    published : bool
        Whether it is one of the classical policies.
    """
    count = len(ranking.rows)
    screened = "" if candidates == count else f", the best of {candidates} under EASY,"
    where = f"on {ranking.replicas} replicas of {ranking.part} (jobs moved by weeks, loads of 0.8 to 1.2 of the log's)"
    scan = f", and tries jobs for backfilling by {policy.backfill_formula}" if policy.backfill_formula else ""
    key = f"It sorts the queue by {formula_in_words(policy)}, the lower value first{scan}."
    if published:
        return (
            f"{policy.name} was the best published policy {where}, and none of the other {count - 1}{screened} was "
            f"better at a price that is allowed. {key}"
        )
    row = ranking.row(ranking.chosen)
    sentence = (
        f"{policy.name} was the best, at a price that is allowed, of {count} policies{screened} {where}: "
        f"{ranking.measured[0]} is "
        f"{row.ratios[0]:.2f} times that of {ranking.peer}, the best published one, there, and "
        f"{ranking.expected:.2f} where such a choice had no part in it (each replica left out in turn)."
    )
    if ranking.runner_up and ranking.margin is not None and ranking.margin.verdict != "better":
        sentence += f" {ranking.runner_up} cannot be told from it."
    return f"{sentence} {key}"


def unknown_in_words(workload: Workload) -> tuple[str, ...]:
    """Return what predictions looked at that Slurm's script does not know at submission, or only if it is told."""
    attributes, sentences = workload.attributes, []
    if attributes is None:
        return ()
    read = [name for name in UNKNOWN.values() if (getattr(attributes, name) >= 0).any()]
    if read:
        words = " and ".join(name.replace("_", " ") for name in read)
        options = " ".join(f"--leave-out {name}" for name in read)
        what = f"The predictions look at {words}, which the script for Slurm does not know when a job is submitted"
        sentences.append(f"{what}: for Slurm learn with {options}.")
    if (attributes.executable >= 0).any():
        sentences.append(
            "The predictions look at the names of jobs, which Slurm's script compares with those of the history: have "
            "it updated with JobName, or learn with --leave-out executable."
        )
    return tuple(sentences)


# The folder of a learned policy: what is in it, and how it is made room for -------------------------------------------


POLICY = "policy.json"
STEPS = "steps.txt"  # what the command prints of the steps
SCORES = "scores.csv"
RANKING = "replicas.json"
PREDICTOR = "model.json"
_PARTS = ("training", "choosing", "test")  # of the log
_EVALUATIONS = ("choosing", "thresholds", "test", "resampled")  # the last one of earlier versions
# What a run that replaces another one begins with: scores of the same options are used again.
KEPT = (SCORES, "scores.manifest.json")
PREDICTED = "predicted"
PAIRED = "paired"
_OF_RIVALS = ("dated", "thresholds", PREDICTED, PAIRED)
_FITTED = ("forms*.json", "polynomials*.json", "forms.md", "polynomials.md")
_MODELS = (*_FITTED, *(f"{name}/*.json" for name in _OF_RIVALS))


def check_folder(folder: Path) -> Path:
    """Return the folder, made if it is not there; refuse a name that cannot stand in a list of policies."""
    if "," in str(folder):
        raise UsageError(f"--output {str(folder)!a}: policies are listed by commas; name a folder without one")
    return check_directory(folder)


def earlier_files(folder: Path, name: str) -> list[str]:
    """Return the files of a finished run, relative to its folder; nothing if it has none.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str
        Of the log.
    """
    if not (folder / POLICY).exists():
        return []
    parts = [f"{glob.escape(name)}-{part}.swf" for part in _PARTS]
    return files_of(folder, (POLICY, "policy.manifest.json", STEPS, RANKING, PREDICTOR, *parts), _EVALUATIONS)


def files_of(folder: Path, other_patterns: Sequence[str], evaluations: Sequence[str]) -> list[str]:
    """Return the files of the stages, and others, that a folder has, relative to it.

    Parameters
    ----------
    folder : Path
        The folder.
    other_patterns : sequence of str
        Patterns of the others.
    evaluations : sequence of str
        The folders of comparisons.
    """
    patterns = (*other_patterns, *KEPT, *_MODELS, "pictures/*.png")
    files = [path for pattern in patterns for path in folder.glob(pattern)]
    found = [path.relative_to(folder).as_posix() for path in files if path.is_file()]
    return found + [f"{name}/{file}" for name in evaluations for file in results_folder.earlier_files(folder / name)]


def write_rivals(rivals: Sequence[Rival], folder: Path) -> None:
    """Write the models of the rivals that lie in folders of their own: ``dated``, ``thresholds``, ``predicted``."""
    for rival in rivals:
        path = folder / Path(rival.source).parent.name / f"{rival.name}.json"
        if path.parent.name in _OF_RIVALS and rival.source.endswith(f"{path.parent.name}/{path.name}"):
            check_directory(path.parent)
            save_model(rival.model, path)
