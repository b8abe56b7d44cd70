"""Score tables on disk: begun, interrupted, continued, finished.

A run may find four things where it is to write:

- nothing: it begins;
- a partial file of the same run: it goes on from there (with ``overwrite`` too: that is how an interrupted
  ``overwrite`` is continued);
- a partial file of another run, or a table: an error, unless ``overwrite`` is given;
- the finished table of the same run: nothing is left to do.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.artefact import (
    Manifest,
    atomic_write,
    check_output,
    command_line,
    exclusive,
    read_bytes,
    sha256_file,
)
from policyfactory.core.errors import InputError, OutputError
from policyfactory.trials.estimators import trials_run
from policyfactory.trials.partial import PartialFile, partial_path, read_head
from policyfactory.trials.run import GenerateOptions, Report, check_options, describe, finished_tuples
from policyfactory.trials.table import HEADER
from policyfactory.workload.jobs import Workload

__all__ = ["KIND", "Written", "write_scores"]

KIND = "score-table"


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
    """What a run did.

    Parameters
    ----------
    output : Path
        The table.
    resumed : int
        Tuples that an earlier run had finished.
    damaged : int
        Records of the partial file that were torn or changed, and done again.
    done : int
        Tuples finished by this run.
    trials : int
        Trials run by this run.
    seconds : float
        How long they took.
    trials_each : int
        Trials of a tuple.
    precision : tuple of float
        Standard error of a score in percent of the mean score: of the best tuple, the median, and the worst.
    idle : int
        Tuples in which all orders have the same value, so that all scores are equal.
    """

    output: Path
    resumed: int
    damaged: int
    done: int
    trials: int
    seconds: float
    trials_each: int
    precision: tuple[float, float, float]
    idle: int


def write_scores(
    workload: Workload,
    options: GenerateOptions,
    output: Path,
    *,
    jobs: int = 1,
    overwrite: bool = False,
    inputs: Mapping[str, str] | None = None,
    report: Report = lambda _: None,
) -> Written:
    """Write the score table of a workload to ``output`` and its manifest beside it.

    Parameters
    ----------
    workload, options, jobs, report
        As in `policyfactory.trials.generate.generate_scores`; ``report`` is first called with the tuples found on disk.
    output : Path
        The table, ``NAME.csv``.
    overwrite : bool
        Replace a finished table, or the partial file of another run.
    inputs : mapping of str to str, optional
        Further inputs for the manifest: name and SHA-256.

    Raises
    ------
    OutputError
        If the output can not be written, belongs to another run, or is being written by one.
    UsageError, WorkloadError
        As in `policyfactory.trials.run.check_options`.
    """
    check_options(workload, options)
    run = describe(workload, options)
    check_output(output)
    with exclusive(output):
        partial = partial_path(output)
        if not overwrite and not partial.exists() and output.exists():
            _check_finished(output, run)
            return Written(output, options.tuples, 0, 0, 0, 0.0, _trials(options), *_recorded(output))
        _claim(partial, run, overwrite=overwrite)
        written = _fill(workload, options, output, run, jobs=jobs, report=report)
        manifest = Manifest(
            kind=KIND,
            command=command_line(),
            seed=options.seed,
            inputs={workload.name: workload.sha256(), **(inputs or {})},
            parameters={
                **run,
                "idle_tuples": written.idle,
                "origin": workload.origin,
                "standard_error_percent": list(written.precision),
                "trials_run": written.trials_each,
            },
            measured=_measured(written, jobs),
            outputs={output.name: sha256_file(output)},
        )
        manifest.write(Manifest.path_for(output))
        partial.unlink()
    return written


def _fill(
    workload: Workload, options: GenerateOptions, output: Path, run: dict[str, Any], *, jobs: int, report: Report
) -> Written:
    """Finish the partial file and write the table from it."""
    with PartialFile(partial_path(output), run, options.tuples) as partial:
        resumed = len(partial)
        report(resumed)
        begin = time.monotonic()
        done = 0
        for number, rows in finished_tuples(workload, options, partial.missing(), jobs=jobs):
            partial.append(number, rows)
            done += 1
            report(resumed + done)
        seconds = time.monotonic() - begin
        errors = np.empty(options.tuples)
        spreads = np.empty(options.tuples)
        atomic_write(output, _table(partial, errors, spreads))
    low, middle, high = np.quantile(100 * options.queue_size * errors, [0.0, 0.5, 1.0]).tolist()
    # In floating point equal scores differ in their last bits.
    idle = int((spreads < 1e-12).sum())
    trials = _trials(options)
    return Written(output, resumed, partial.damaged, done, done * trials, seconds, trials, (low, middle, high), idle)


def _table(partial: PartialFile, errors: NDArray[np.float64], spreads: NDArray[np.float64]) -> Iterator[bytes]:
    """Give the table in parts; note for each tuple the typical standard error and the range of the scores."""
    yield HEADER.encode() + b"\n"
    names = HEADER.split(",")
    for number, rows in enumerate(partial.rows()):
        columns = dict(zip(names, zip(*(line.split(b",") for line in rows.splitlines()), strict=True), strict=True))
        errors[number] = np.sqrt(np.mean(np.array(columns["stderr"], dtype=np.float64) ** 2))
        spreads[number] = np.ptp(np.array(columns["score"], dtype=np.float64))
        yield rows


def _trials(options: GenerateOptions) -> int:
    return trials_run(options.estimator, options.trials, options.queue_size)


def _measured(written: Written, jobs: int) -> dict[str, Any]:
    speed = round(written.trials / written.seconds) if written.seconds > 0 and written.trials else None
    return {
        "seconds": round(written.seconds, 3),
        "trials_per_second": speed,
        "tuples_done": written.done,
        "tuples_resumed": written.resumed,
        "workers": jobs,
    }


def _claim(partial: Path, run: dict[str, Any], *, overwrite: bool) -> None:
    """Make sure that a partial file, if there is one, belongs to this run."""
    try:
        head = read_head(partial)
    except OutputError:
        if not overwrite:
            raise
        head = {}
    if head is None or head == json.loads(json.dumps(run)):
        return
    if not overwrite:
        raise OutputError(
            f"{partial}: holds finished tuples of a run with {_difference(head, run)}; give the same options to go on "
            "with it, --overwrite to drop it, or another --output"
        )
    partial.unlink()


def _check_finished(output: Path, run: dict[str, Any]) -> None:
    """Check that a table that is already there is the one that this run would write."""
    manifest = Manifest.path_for(output)
    try:
        content = json.loads(read_bytes(manifest, limit=1 << 20))
        parameters = {key: content["parameters"].get(key) for key in run}
        same = content["outputs"][output.name] == sha256_file(output)
    except (ValueError, KeyError, AttributeError, TypeError, InputError, RecursionError):
        raise OutputError(
            f"{output}: exists, and has no manifest that says how it was made; --overwrite replaces it, "
            "or name another output"
        ) from None
    if parameters != run:
        raise OutputError(
            f"{output}: exists and was made with {_difference(parameters, run)}; --overwrite replaces it, "
            "or name another output"
        )
    if not same:
        raise OutputError(
            f"{output}: was changed since it was made; --overwrite makes it again, or name another output"
        )


def _recorded(output: Path) -> tuple[tuple[float, float, float], int]:
    """Return what the manifest of a finished table says about its precision and its idle tuples."""
    parameters = json.loads(read_bytes(Manifest.path_for(output), limit=1 << 20))["parameters"]
    try:
        low, middle, high = map(float, parameters["standard_error_percent"])
        return (low, middle, high), int(parameters["idle_tuples"])
    except (KeyError, TypeError, ValueError):
        return (math.nan, math.nan, math.nan), 0


def _difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return in words in what two runs differ."""
    words = {
        "machine": "--processors",
        "method": "an older or newer method",
        "workload_sha256": "another workload",
        "policyfactory": "policyfactory version",
    }
    found = []
    for key in sorted(set(there) | set(here)):
        if there.get(key) != here.get(key):
            name = words.get(key, "--" + key.replace("_", "-"))
            told = "" if key in {"method", "workload_sha256"} else f" {there.get(key)} (now {here.get(key)})"
            found.append(name + told)
    return ", ".join(found) or "other options"
