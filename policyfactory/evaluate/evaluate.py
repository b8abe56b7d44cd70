"""The verb: policies compared on logs, case by case, with what says how certain that is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from policyfactory.core.errors import UsageError
from policyfactory.core.options import plain_value
from policyfactory.core.toml import dump_toml
from policyfactory.evaluate.logs import ReadLog, read_log
from policyfactory.evaluate.options import RUN_OPTIONS
from policyfactory.evaluate.precision import Precision
from policyfactory.evaluate.protocol import Places, protocol_of
from policyfactory.evaluate.results_folder import Result
from policyfactory.evaluate.study import RunSettings, run_protocol
from policyfactory.evaluate.written import of_logs, plain_content
from policyfactory.parallel.workers import Workers
from policyfactory.policy.store import PolicyLike, resolve
from policyfactory.workload.jobs import Workload
from policyfactory.workload.swf.files import log_name

__all__ = ["evaluate"]

Log = Workload | Path | str


def evaluate(
    logs: Log | Sequence[Log],
    policies: str | Sequence[PolicyLike],
    *,
    workers: Workers | int = 1,
    **options: Any,
) -> Result:
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
    protocol = protocol_of(content, by="call", policies=contenders)
    protocol = dataclasses.replace(protocol, hashes={**protocol.hashes, **places.hashes})
    read = [_read(log, name, protocol.logs[name]) for log, name in zip(given, tables, strict=True)]
    settings = RunSettings(workers, Precision.of(run, "call"))
    result = run_protocol(protocol, {log.name: log for log in read}, settings)
    content["experiments"][0]["policies"] = [policy.name for policy in contenders]
    text = f"# As evaluated from Python, where jobs and policies may have been objects\n{dump_toml(content)}"
    return dataclasses.replace(result, text=text)


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
