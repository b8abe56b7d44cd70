"""Policies compared on a log: who competes, how, and the report of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from policyfactory.core.artefact import Manifest, check_directory, command_line, dump_json, exclusive, sha256_bytes
from policyfactory.core.errors import PolicyfactoryError
from policyfactory.core.journal import partial_path
from policyfactory.core.toml import dump_toml
from policyfactory.evaluate.checking import Written
from policyfactory.evaluate.described import winners
from policyfactory.evaluate.experiment import Outcome
from policyfactory.evaluate.logs import ReadLog, cleaned_log
from policyfactory.evaluate.options import ProtocolTable
from policyfactory.evaluate.plain import PLAIN_NAME, plain_content
from policyfactory.evaluate.protocol import Protocol, planned
from policyfactory.evaluate.results_folder import protocol_dict, write_report
from policyfactory.evaluate.study import RunSettings, Study, run_protocol
from policyfactory.evaluate.tally import Tally
from policyfactory.evaluate.words import rules_in_words
from policyfactory.learn.progress import Progress
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import Model, model_to_json
from policyfactory.report.page import caution_of
from policyfactory.workload.swf.log import SwfLog

__all__ = ["CLASSICAL", "Compared", "Comparing", "Rival", "compare_policies"]

# The policies that whatever was learned has to beat; the first is the baseline.
CLASSICAL = ("FCFS", "SPF", "SQF", "SAF", "WFP3", "UNICEF", "F1")


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


@dataclasses.dataclass(frozen=True, slots=True)
class Comparing:
    """How policies are compared on a log.

    Parameters
    ----------
    metrics : tuple of str
        The first decides.
    windows : str or None
        How the log is cut; None: the whole log is one case.
    threshold : str
        Jobs that have waited longer go first; ``inf`` for never.
    preset, estimate_missing, processors
        How the log is read.
    """

    metrics: tuple[str, ...]
    windows: str | None
    threshold: str = "inf"
    preset: str = "default"
    estimate_missing: str = "error"
    processors: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Policies compared on a log.

    Parameters
    ----------
    study : Study
        Values, comparisons, words.
    log : SwfLog
        Of which jobs.
    rivals : tuple of Rival
        Of which policies.
    how : Comparing
        The rest.
    measured : dict
        Seconds and the like, for the manifest.
    """

    study: Study
    log: SwfLog
    rivals: tuple[Rival, ...]
    how: Comparing
    measured: Mapping[str, Any]

    @property
    def outcome(self) -> Outcome:
        """The values and what follows from them."""
        return self.study.outcomes[0]

    @property
    def winner(self) -> Rival:
        """The policy that is best in the first metric."""
        name = winners(self.outcome.summaries, self.how.metrics[0])[self.log.name]
        return next((rival for rival in self.rivals if rival.name == name), self.rivals[0])

    def write(self, folder: Path) -> list[Path]:
        """Write report, tables and pictures into an existing folder; return the files in the folder itself."""
        protocol, text = _protocol(self.log, self.rivals, self.how)
        hashes = {self.log.path: self.log.sha256}
        hashes |= {rival.source: _sha256(rival.model) for rival in self.rivals if rival.is_file}
        parameters = protocol_dict(self.study)
        manifest = Manifest("evaluation", command_line(), protocol.seed, hashes, parameters, self.measured)
        return [folder / name for name in write_report(self.study, folder, manifest, text)]


def compare_policies(
    log: SwfLog,
    rivals: Sequence[Rival],
    how: Comparing,
    output: Path | None,
    *,
    workers: Workers | int = 1,
    progress: Progress,
) -> Compared:
    """Return how policies do on a log; with ``output``, write the report there, which an interrupted run resumes.

    Parameters
    ----------
    log : SwfLog
        The log.
    rivals : sequence of Rival
        The policies; the first is the baseline.
    how : Comparing
        The rest.
    output : Path or None
        Folder of the report; what an earlier comparison left there is replaced.
    workers, progress
        Who works, and who hears how far it is.
    """
    protocol, _ = _protocol(log, rivals, how)
    read = cleaned_log(log.name, protocol.logs[log.name], log)
    for sentence in read.notes:
        progress.message(sentence)
    for plan in protocol.experiments:
        progress.message(rules_in_words(plan.experiment.rules, plan.times_longest, plan.sensitivity))
    files: list[Path] = []
    partial = None if output is None else partial_path(check_directory(output) / PLAIN_NAME)
    with exclusive(None if output is None else output / "results.csv"):
        study, measured = _run(protocol, read, partial, workers, progress)
        compared = Compared(study, log, tuple(rivals), how, measured)
        if output is not None and partial is not None:
            files = compared.write(output)
            partial.unlink(missing_ok=True)
    progress.compared(study)
    if output is not None:
        progress.wrote(files)
        if caution := caution_of(output / "report.html"):
            progress.warning(caution)
    return compared


def _sha256(model: Model) -> str:
    return sha256_bytes(dump_json(model_to_json(model)).encode())


def _protocol(log: SwfLog, rivals: Sequence[Rival], how: Comparing) -> tuple[Protocol, str]:
    """Return the protocol of a comparison, with the policies that are in memory, and its text."""
    never = how.threshold.strip().lower() in {"inf", "none"}
    options: dict[str, Any] = {
        "windows": how.windows,
        "policies": [],
        "metrics": how.metrics,
        "threshold": None if never else how.threshold,
        "preset": how.preset,
        "processors": how.processors,
        "estimate_missing": how.estimate_missing,
    }
    content = plain_content(options, {log.name: {"file": log.path}}, "call")
    protocol = planned(Written(ProtocolTable, content, by="call"), policies=[rival.model.policy for rival in rivals])
    content["experiments"][0]["policies"] = [rival.source for rival in rivals]
    return protocol, dump_toml(content)


def _run(
    protocol: Protocol, log: ReadLog, partial: Path | None, workers: Workers | int, progress: Progress
) -> tuple[Study, dict[str, Any]]:
    """Return the study and what was measured while it was made."""
    who = Workers.of(workers)
    tally = Tally(who)
    counter = progress.counter(f"{PLAIN_NAME}: simulations", "jobs/s")
    settings = RunSettings(
        who,
        progress=lambda _: tally.counting(counter),
        partial=partial,
        overwrite=True,
        beside={"starts": "none"},
        notify=progress.message,
    )
    try:
        study = run_protocol(protocol, {log.name: log}, settings)
    except (KeyboardInterrupt, PolicyfactoryError) as stop:
        if tally.finished and partial is not None:
            progress.kept(stop, f"{tally.finished:,} finished simulations", partial)
        raise
    return study, tally.measured()
