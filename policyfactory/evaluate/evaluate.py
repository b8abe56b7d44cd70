"""The verb: policies compared on logs, case by case, with what says how certain that is."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policyfactory.core.errors import UsageError
from policyfactory.core.files import Manifest
from policyfactory.core.options import plain_value
from policyfactory.core.picture import keeps_settings
from policyfactory.core.toml import dump_toml
from policyfactory.evaluate.experiment import Outcome
from policyfactory.evaluate.logs import ReadLog, read_log
from policyfactory.evaluate.options import RUN_OPTIONS, of_logs, plain_content
from policyfactory.evaluate.picture import draw_boxes
from policyfactory.evaluate.precision import Precision
from policyfactory.evaluate.protocol import Places, planned
from policyfactory.evaluate.results_folder import protocol_dict, room, write_report
from policyfactory.evaluate.study import RunSettings, Study, run_protocol
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.statistics.compare import Comparison
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import log_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Evaluated", "evaluate"]

Log = Workload | Path | str


@dataclasses.dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluated(Study):
    """Policies compared on logs.

    Parameters
    ----------
    text : str
        What was run, as a protocol.
    """

    text: str

    @property
    def outcome(self) -> Outcome:
        """Values, summaries and comparisons."""
        return self.outcomes[0]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each policy against the first, by log and metric: difference, interval, verdict."""
        return self.outcome.comparisons

    @property
    def verdicts(self) -> dict[tuple[str, str, str], str]:
        """The verdict on each log, metric and policy: ``better``, ``worse``, ``no difference``, ``too few cases``."""
        return {(row.log, row.metric, row.policy): row.verdict for row in self.comparisons}

    def frame(self) -> pd.DataFrame:
        """Return the long table: log, case, policy, metric, value."""
        return self.outcome.evaluation.frame()

    def summary(self) -> str:
        """Return the conclusion, a paragraph for each log, and the verdict."""
        verdict = self.outcome.verdict
        parts = () if verdict is None else verdict.parts
        said = [text for part in parts for text in (f"{part.title}.", *part.sentences)]
        return "\n".join((*self.outcome.words, *said, *(verdict.caveats if verdict else ())))

    @keeps_settings
    def plot(self, metric: str | None = None) -> Figure:
        """Return the picture of a metric: a box of the cases for each policy, on each log.

        Parameters
        ----------
        metric : str, optional
            The metric that decides, without it.
        """
        return draw_boxes(self.outcome.evaluation, metric or self.outcome.evaluation.metrics[0])

    @keeps_settings
    def report(self, folder: Path | str, *, overwrite: bool = False) -> Path:
        """Write the report, the tables, the pictures and the protocol to a folder, as the command does.

        Parameters
        ----------
        folder : Path or str
            The folder; made if there is none.
        overwrite : bool
            Replace an earlier evaluation in it.

        Returns
        -------
        Path
            The page, ``report.html``.

        Raises
        ------
        OutputError
            If it holds an evaluation already, or cannot be written.
        """
        directory = Path(folder)
        hashes = {name: digest for log in self.logs.values() for name, digest in log.hashes.items()}
        hashes |= self.protocol.hashes
        manifest = Manifest("evaluation", "policyfactory.evaluate", self.protocol.seed, hashes, protocol_dict(self), {})
        with room(directory, overwrite=overwrite) as place:
            write_report(self, place, manifest, self.text)
        return directory / "report.html"

    def __repr__(self) -> str:
        evaluation = self.outcome.evaluation
        logs = f"{len(evaluation.cases)} cases of {', '.join(evaluation.logs)}"
        return f"Evaluated({', '.join(evaluation.policies)}; {logs}; {', '.join(evaluation.metrics)})"

    def _repr_html_(self) -> str:
        paragraphs = "".join(f"<p>{html.escape(text)}</p>" for text in self.outcome.words)
        return f"<div><strong>{html.escape(repr(self))}</strong>{paragraphs}</div>"


def evaluate(
    logs: Log | Sequence[Log],
    policies: str | Sequence[PolicyLike],
    *,
    workers: Workers | int = 1,
    **options: Any,
) -> Evaluated:
    """Simulate policies on logs and say which is better, by how much, and how certain that is.

    Parameters
    ----------
    logs : Workload, or path of a log, or sequence of these
        What the policies run on.
    policies : sequence of Policy, or name of one, or model, or its file, or fit
        With distinct names; the first is the baseline.
    workers : Workers or int
        Who simulates; a number means so many threads. The result does not depend on it.
    **options
        Those of ``policyfactory evaluate`` with ``_`` for ``-``, in the same words: ``windows="10x15d"``,
        ``threshold="20h"``, ``metrics=["mean_bsld"]``, ``precision="2%"``; docs/commands.md has them all.

    Raises
    ------
    UsageError
        If there is no such option, a value is not what it must be, or two exclude each other.
    InputError, WorkloadError, EvaluationError
        If a log cannot be read or used.
    """
    options = {name: plain_value(value) for name, value in options.items()}
    given = list(logs) if isinstance(logs, Sequence) and not isinstance(logs, str) else [logs]
    tables = of_logs(_named(log) for log in given)
    run = {name: options.pop(name, None) for name in RUN_OPTIONS}
    if isinstance(run["precision"], float):
        run["precision"] = str(run["precision"])
    names = policies.split(",") if isinstance(policies, str) else policies
    if not isinstance(names, Sequence):
        raise UsageError(f"{ascii(policies)[:60]} is no list of policies; give names, files or policies in a list")
    content = plain_content({"policies": [], **options}, tables, "call")
    _check_jobs(given, options)
    places = Places(Path())
    contenders = [places.policy(str(one)) if isinstance(one, str | Path) else resolve(one) for one in names]
    protocol = planned(content, by="call", policies=contenders)
    protocol = dataclasses.replace(protocol, hashes={**protocol.hashes, **places.hashes})
    read = [_read(log, name, protocol.logs[name]) for log, name in zip(given, tables, strict=True)]
    settings = RunSettings(workers, Precision.of(run, "call"))
    study = run_protocol(protocol, {log.name: log for log in read}, settings)
    content["experiments"][0]["policies"] = [policy.name for policy in contenders]
    text = f"# As evaluated from Python, where jobs and policies may have been objects\n{dump_toml(content)}"
    return Evaluated(study.protocol, study.logs, study.outcomes, study.claims, text)


def _named(log: Log) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(log, Workload | Path | str):
        raise UsageError(f"{ascii(log)[:60]} is no workload; a Workload or the path of a log is expected")
    return (log.name, {"file": log.name}) if isinstance(log, Workload) else (log_name(Path(log)), {"file": str(log)})


def _check_jobs(logs: Sequence[Log], options: Mapping[str, Any]) -> None:
    """Refuse options that say how a file is read where there is none."""
    reading = ("preset", "processors", "force_processors", "estimate_missing", "assume", "predictions")
    wrong = [name for name in reading if name in options]
    if wrong and any(isinstance(log, Workload) for log in logs):
        raise UsageError(
            f"{', '.join(wrong)}: the jobs are read already; say it to policyfactory.read, or give the path of the log"
        )


def _read(log: Log, name: str, table: Any) -> ReadLog:
    if not isinstance(log, Workload):
        return read_log(name, table, [Path()])
    return ReadLog(name, table, log, None, {"origin": log.origin}, {name: log.sha256()}, ())
