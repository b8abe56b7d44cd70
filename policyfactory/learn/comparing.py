"""Policies compared on a log: who competes, and the report of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from policyfactory.core.artefact import Manifest, command_line, dump_json
from policyfactory.core.inputs import sha256_bytes
from policyfactory.core.toml import dump_toml
from policyfactory.evaluate.experiment import Outcome
from policyfactory.evaluate.plain import plain_content
from policyfactory.evaluate.protocol import Protocol, planned
from policyfactory.evaluate.results_folder import protocol_dict, write_report
from policyfactory.evaluate.standings import restated
from policyfactory.evaluate.study import Study
from policyfactory.policy.store import Model, model_to_json
from policyfactory.report.drawings import Drawings
from policyfactory.report.verdict import Verdict
from policyfactory.search.published import NAMES
from policyfactory.workload.swf.log import SwfLog

__all__ = ["CLASSICAL", "PUBLISHED", "Compared", "Rival", "comparison_protocol"]

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
    study : Study
        Values, comparisons, words.
    log : SwfLog
        Of which jobs.
    rivals : tuple of Rival
        Of which policies.
    options : mapping
        Options of the evaluation.
    measured : dict
        Seconds and the like, for the manifest.
    drawings : Drawings
        Pictures that were drawn already.
    """

    study: Study
    log: SwfLog
    rivals: tuple[Rival, ...]
    options: Mapping[str, Any]
    measured: Mapping[str, Any]
    drawings: Drawings = dataclasses.field(default_factory=Drawings)

    @property
    def outcome(self) -> Outcome:
        """The values and what follows from them."""
        return self.study.outcomes[0]

    @property
    def winner(self) -> Rival:
        """The policy that is best in the first metric, the first of equals."""
        return next((rival for rival in self.rivals if rival.name in self.best), self.rivals[0])

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
        written = write_report(self.study, folder, manifest, text, drawings=self.drawings)
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
    protocol = planned(content, by="call", policies=[rival.model.policy for rival in rivals])
    content["experiments"][0]["policies"] = [rival.source for rival in rivals]
    return protocol, dump_toml(content)
