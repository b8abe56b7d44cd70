"""The logs of a protocol: files that are looked for, checked and cleaned, or jobs of a model."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import InputError
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.evaluation.options import LogTable
from policyfactory.simulation.rules import Rules
from policyfactory.simulation.slurm.jobs import without_misfits
from policyfactory.workload.clean import clean
from policyfactory.workload.jobs import Workload
from policyfactory.workload.machine import assumed
from policyfactory.workload.models.lublin import default_workload, generate_lublin
from policyfactory.workload.models.tsafrir import tsafrir_estimates
from policyfactory.workload.swf.files import read_swf
from policyfactory.workload.swf.log import SwfLog


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ReadLog:
    """A log as it is simulated.

    Parameters
    ----------
    name : str
        What it is called in the results.
    source : LogTable
        Where it is from.
    workload : Workload
        Its jobs, by that name.
    prediction : int64 array (n,), ticks, or None
        Predicted run times.
    account : dict
        What was dropped and changed, as JSON values without paths.
    hashes : dict of str to str
        SHA-256 of each file that was read, by its path; of the jobs of a model, by its name.
    notes : tuple of str
        What was dropped and changed, in words.
    left_out : str
        Which jobs it has no more, since their partition is not one of the site that it is simulated on; empty if none.
    """

    name: str
    source: LogTable
    workload: Workload
    prediction: NDArray[np.int64] | None = None
    account: dict[str, Any] = dataclasses.field(default_factory=dict)
    hashes: dict[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    left_out: str = ""

    @classmethod
    def of_jobs(cls, name: str, source: LogTable, jobs: Workload, *notes: str) -> ReadLog:
        """Return jobs that are not from a file as a log."""
        account, hashes = {"origin": jobs.origin}, {name: jobs.sha256()}
        return cls(name, source, jobs, account=account, hashes=hashes, notes=notes)

    @property
    def longest_request_s(self) -> float:
        """The largest requested time of its jobs, in seconds."""
        return float(self.workload.requested_time.max()) / self.workload.ticks


def locate_log(name: str, folders: Sequence[Path]) -> Path:
    """Return the path of a file that lies in one of ``folders``.

    Parameters
    ----------
    name : str
        File name, or a path.
    folders : sequence of Path
        Where to look, in this order.

    Raises
    ------
    InputError
        If it lies in none.
    """
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    if set(folders) <= {Path()}:
        return Path(name)  # a path as it was typed: reading it says what is wrong
    places = ", ".join(f"{folder}/" for folder in dict.fromkeys(folders))
    from policyfactory.workload.swf.download import KNOWN_LOGS

    stem = name.removesuffix(".swf.gz")
    which = f"{stem} --output {folders[0]}" if stem in KNOWN_LOGS else "--list"
    raise InputError(
        f"{name!r} is not in {places}; name its folder with --traces DIR, or download it "
        f"(policyfactory workload download {which})"
    )


def read_log(name: str, source: LogTable, folders: Sequence[Path]) -> ReadLog:
    """Read and clean a log, or make the jobs of a model.

    Parameters
    ----------
    name : str
        What it is called in the results.
    source : LogTable
        What to read.
    folders : sequence of Path
        Where files are looked for, in this order.

    Raises
    ------
    InputError, WorkloadError, UsageError
        If the file is not there, is another one, or its jobs or the model's cannot be used.
    """
    if source.file is None:
        workload = dataclasses.replace(_of_model(source), name=name)
        what = f"{name}: " if source.lublin else "no log given, so the embedded workload: "
        note = f"{what}{workload.origin}; {len(workload):,} jobs on {workload.machine} processors"
        return ReadLog.of_jobs(name, source, workload, note)
    path = locate_log(source.file, folders)
    read = cleaned_log(name, source, read_swf(path))
    if source.predictions is None:
        return read
    file = locate_log(source.predictions, folders)
    prediction, digest = read_predictions(file, read.workload)
    return dataclasses.replace(read, prediction=prediction, hashes=read.hashes | {str(file): digest})


def cleaned_log(name: str, source: LogTable, log: SwfLog) -> ReadLog:
    """Clean a log that is in memory.

    Parameters
    ----------
    name : str
        What it is called in the results.
    source : LogTable
        How it is cleaned.
    log : SwfLog
        The log, as it was read from a file or made.

    Raises
    ------
    InputError, WorkloadError, UsageError
        If it is another one than the source says, or its jobs cannot be used.
    """
    workload = clean(
        log,
        preset=source.preset,
        processors=source.machine,
        force_processors=source.force_machine,
        estimate_missing=source.estimate_missing,
        assume=source.assume,
    )
    report = workload.cleaning
    if source.sha256 is not None and report.sha256 != source.sha256:
        raise InputError(
            f"{log.path}: has the SHA-256 {report.sha256}, the protocol is for {source.sha256}: this is another "
            "version of the log; get the one that is named, or change or leave out sha256 in the protocol"
        )
    notes = [report.summary(), *(f"  {s.what}: {s.jobs:,} ({s.why})" for s in report.steps if s.action == "changed")]
    account = {key: value for key, value in report.as_dict().items() if key != "source"}
    if source.assume is not None:
        account["assumed"] = [] if workload.requests is None else list(workload.requests.assumed)
        notes += [f"  {text}" for text in account["assumed"] or [f"the log says all that {source.assume} names"]]
    workload = dataclasses.replace(_with_requests(workload, source), name=name)
    return ReadLog(
        name=name,
        source=source,
        workload=workload,
        account=account,
        hashes={log.path: report.sha256},
        notes=tuple(notes),
    )


def on_site(log: ReadLog, rules: Rules) -> ReadLog:
    """Return a log without the jobs that could never start on the site of some rules.

    Parameters
    ----------
    log : ReadLog
        Any.
    rules : Rules
        Without a described site nothing is left out.
    """
    if rules.site is None or rules.site.assumed:
        return log
    workload, left_out = without_misfits(log.workload, rules.site)
    if not left_out:
        return log
    prediction = log.prediction
    if prediction is not None:
        prediction = prediction[np.isin(log.workload.job_id, workload.job_id)]
    return dataclasses.replace(log, workload=workload, prediction=prediction, left_out=left_out)


def _of_model(source: LogTable) -> Workload:
    if source.lublin is None:
        return assumed(default_workload(), source.assume)
    options = source.lublin.model_dump(exclude_none=True)
    workload = generate_lublin(options.pop("processors"), options.pop("jobs"), **options)
    return assumed(_with_requests(workload, source), source.assume)


def _with_requests(workload: Workload, source: LogTable) -> Workload:
    model = source.tsafrir
    if model is None:
        return workload
    return tsafrir_estimates(workload, max_estimate=model.max_estimate, seed=model.seed, stream=model.stream)


# Predicted run times of the jobs of a log, from a file ----------------------------------------------------------------


_LONGEST_LINE = 100_000  # bytes
_LONGEST_S = 1e10  # 317 years; also keeps seconds times a million ticks inside 64 bits


def read_predictions(path: Path, workload: Workload) -> tuple[NDArray[np.int64], str]:
    """Return the predicted run time of every job of a log, from a CSV with the columns job_id and prediction.

    Parameters
    ----------
    path : Path
        The file; predictions in seconds (fractions are rounded to the log's clock), at least 0; other columns and
        jobs that the log does not have are ignored.
    workload : Workload
        The log.

    Returns
    -------
    int64 array (n,), ticks
        In the order of the log's jobs.
    str
        SHA-256 of the file.

    Raises
    ------
    InputError
        If the file cannot be read, has no such columns, or lacks a job of the log or has it twice.
    """
    data = read_bytes(path)
    ids, seconds = _columns(path, data)
    order = np.argsort(ids, kind="stable")
    ids, seconds = ids[order], seconds[order]
    twice = ids[1:][np.diff(ids) == 0]
    if len(twice):
        raise InputError(f"{path}: job {twice[0]} has more than one prediction; keep one line a job")
    rows = np.minimum(np.searchsorted(ids, workload.job_id), max(len(ids) - 1, 0))
    missing = workload.job_id[ids[rows] != workload.job_id] if len(ids) else workload.job_id
    if len(missing):
        raise InputError(
            f"{path}: {len(missing):,} of {len(workload):,} jobs of {workload.name} have no prediction, the first is "
            f"job {missing[0]}; every job needs one"
        )
    chosen = seconds[rows]
    bad = ~((chosen >= 0) & (chosen <= _LONGEST_S))
    if bad.any():
        first = int(np.argmax(bad))
        raise InputError(
            f"{path}: job {workload.job_id[first]} has the prediction {chosen[first]}; "
            f"expected seconds from 0 to {_LONGEST_S:g}"
        )
    ticks: NDArray[np.int64] = np.rint(chosen * workload.ticks).astype(np.int64)
    return ticks, sha256_bytes(data)


def _columns(path: Path, data: bytes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    import pandas as pd

    expected = "expected CSV with the columns job_id and prediction (seconds)"
    if max(map(len, io.BytesIO(data)), default=0) > _LONGEST_LINE:
        raise InputError(f"{path}: has a line of more than {_LONGEST_LINE:,} characters; {expected}")
    try:
        frame = pd.read_csv(io.BytesIO(data), skipinitialspace=True, low_memory=False)
    except (ValueError, UnicodeDecodeError):
        # pandas' own errors are ValueErrors; their texts speak of its internals.
        raise InputError(f"{path}: is no table; {expected}") from None
    absent = [name for name in ("job_id", "prediction") if name not in frame.columns]
    if absent:
        there = ", ".join(ascii(str(name)[:40]) for name in frame.columns[:10])
        raise InputError(f"{path}: has no column {' and '.join(absent)} (it has {there}); {expected}")
    try:
        ids = pd.to_numeric(frame["job_id"], errors="coerce")
        seconds = pd.to_numeric(frame["prediction"], errors="coerce")
    except OverflowError:
        raise InputError(f"{path}: has a number of more than 300 digits; {expected}") from None
    wrong = ~(np.isfinite(ids) & np.isfinite(seconds) & (ids == np.floor(ids)) & (ids.abs() < 2**53)).to_numpy(
        dtype=bool
    )
    if wrong.any():
        line = int(np.argmax(wrong))
        raise InputError(
            f"{path}:{line + 2}: job_id {str(frame['job_id'].iloc[line])[:40]!a} and prediction "
            f"{str(frame['prediction'].iloc[line])[:40]!a} are not an integer and a number; {expected}"
        )
    return ids.to_numpy(dtype=np.int64), seconds.to_numpy(dtype=np.float64)
