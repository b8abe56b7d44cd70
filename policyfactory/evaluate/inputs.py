"""From logs to windows: cut them, and give each job its predicted run time where a file has one."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.artefact import read_bytes, sha256_file
from policyfactory.core.errors import InputError, UsageError
from policyfactory.evaluate.run import Window
from policyfactory.workload.clean import load_workload
from policyfactory.workload.jobs import Workload
from policyfactory.workload.lublin import default_workload
from policyfactory.workload.windows import WindowSpec, cut

__all__ = ["Cleaning", "Inputs", "embedded_workload", "read_logs", "read_predictions", "windows_of"]

_LONGEST_S = 1e10  # 317 years; also keeps seconds times a million ticks inside 64 bits


@dataclasses.dataclass(frozen=True, slots=True)
class Cleaning:
    """How logs are read; see `policyfactory.workload.clean.load_workload`.

    Parameters
    ----------
    preset : str
        Name of the filter.
    estimate_missing : str
        What to do with jobs without a requested time: ``error``, ``runtime``, ``drop``.
    processors : int or None
        Processors of the machine, if the log does not say.
    """

    preset: str = "default"
    estimate_missing: str = "error"
    processors: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Inputs:
    """What is simulated, and where it is from.

    Parameters
    ----------
    windows : tuple of Window
        Of all logs.
    settings : dict
        What was done to the logs, as JSON values without paths.
    hashes : dict of str to str
        SHA-256 of each file that was read (by its path), or of the embedded workload (by its name).
    notes : tuple of str
        What was dropped and changed, in words.
    """

    windows: tuple[Window, ...]
    settings: dict[str, Any]
    hashes: dict[str, str]
    notes: tuple[str, ...]


def read_logs(
    paths: Sequence[Path | str],
    spec: WindowSpec | None = None,
    cleaning: Cleaning | None = None,
    predictions: Path | None = None,
) -> Inputs:
    """Read, clean and cut logs.

    Parameters
    ----------
    paths : sequence of Path or str
        Files in the Standard Workload Format.
    spec : WindowSpec, optional
        How to cut each of them; without it the whole log is one window.
    cleaning : Cleaning, optional
        How to read them.
    predictions : Path, optional
        Predicted run times of the one log.

    Raises
    ------
    InputError, WorkloadError
        If a file can not be read or used.
    UsageError
        If predictions are given for more than one log.
    """
    if predictions is not None and len(paths) != 1:
        raise UsageError(f"--predictions belongs to one log, {len(paths)} are given; evaluate one at a time")
    how = cleaning or Cleaning()
    windows: list[Window] = []
    logs: dict[str, Any] = {}
    hashes: dict[str, str] = {}
    notes: list[str] = []
    for path in paths:
        workload, report = load_workload(
            path, preset=how.preset, estimate_missing=how.estimate_missing, machine=how.processors
        )
        prediction = None
        if predictions is not None:
            prediction = read_predictions(predictions, workload)
            hashes[str(predictions)] = sha256_file(predictions)
        windows += windows_of(workload, spec, prediction)
        hashes[str(path)] = report.sha256
        logs[workload.name] = {key: value for key, value in report.as_dict().items() if key != "source"}
        notes.append(report.summary())
        notes += [f"  {s.what}: {s.jobs:,} ({s.why})" for s in report.steps if s.action == "changed"]
    settings = {"windows": None if spec is None else str(spec), "logs": logs}
    return Inputs(tuple(windows), settings, hashes, tuple(notes))


def embedded_workload(spec: WindowSpec | None = None) -> Inputs:
    """Return the default Lublin workload, cut as ``spec`` says.

    Parameters
    ----------
    spec : WindowSpec, optional
        How to cut it; without it the whole is one window.
    """
    workload = default_workload()
    return Inputs(
        windows=tuple(windows_of(workload, spec)),
        settings={"windows": None if spec is None else str(spec), "logs": {workload.name: {"origin": workload.origin}}},
        hashes={workload.name: workload.sha256()},
        notes=(f"no log given: {workload.origin}; {len(workload):,} jobs on {workload.machine} processors",),
    )


def windows_of(
    workload: Workload, spec: WindowSpec | None = None, prediction: NDArray[np.int64] | None = None
) -> list[Window]:
    """Return the windows of a log; without ``spec`` the whole log is the only one.

    Parameters
    ----------
    workload : Workload
        The log.
    spec : WindowSpec, optional
        How to cut it (`policyfactory.workload.windows.parse_windows`).
    prediction : int64 array (n,), ticks, optional
        Predicted run time of each job of the log.

    Raises
    ------
    WorkloadError
        If the log has fewer windows than asked for.
    """
    if spec is None:
        return [Window(workload.name, 1, workload, prediction)]
    parts = cut(workload, spec)
    if prediction is None:
        return [Window(workload.name, number, part) for number, part in enumerate(parts, 1)]
    order = np.argsort(workload.job_id, kind="stable")
    ids = workload.job_id[order]
    return [
        Window(workload.name, number, part, prediction[order[np.searchsorted(ids, part.job_id)]])
        for number, part in enumerate(parts, 1)
    ]


def read_predictions(path: Path, workload: Workload) -> NDArray[np.int64]:
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

    Raises
    ------
    InputError
        If the file can not be read, has no such columns, or lacks a job of the log or has it twice.
    """
    ids, seconds = _columns(path)
    order = np.argsort(ids, kind="stable")
    ids, seconds = ids[order], seconds[order]
    twice = ids[1:][np.diff(ids) == 0]
    if len(twice):
        raise InputError(f"{path}: job {twice[0]} has more than one prediction; keep one line a job")
    at = np.minimum(np.searchsorted(ids, workload.job_id), max(len(ids) - 1, 0))
    missing = workload.job_id[ids[at] != workload.job_id] if len(ids) else workload.job_id
    if len(missing):
        raise InputError(
            f"{path}: {len(missing):,} of {len(workload):,} jobs of {workload.name} have no prediction, the first is "
            f"job {missing[0]}; every job needs one"
        )
    chosen = seconds[at]
    bad = ~((chosen >= 0) & (chosen <= _LONGEST_S))
    if bad.any():
        first = int(np.argmax(bad))
        raise InputError(
            f"{path}: job {workload.job_id[first]} has the prediction {chosen[first]}; "
            f"expected seconds from 0 to {_LONGEST_S:g}"
        )
    ticks: NDArray[np.int64] = np.rint(chosen * workload.ticks).astype(np.int64)
    return ticks


def _columns(path: Path) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    import pandas as pd

    data = read_bytes(path)
    expected = "expected CSV with the columns job_id and prediction (seconds)"
    try:
        frame = pd.read_csv(io.BytesIO(data), skipinitialspace=True)
    except (ValueError, UnicodeDecodeError):
        # pandas' own errors are ValueErrors; their texts speak of its internals.
        raise InputError(f"{path}: is no table; {expected}") from None
    absent = [name for name in ("job_id", "prediction") if name not in frame.columns]
    if absent:
        found = ", ".join(ascii(str(name)[:40]) for name in frame.columns[:10])
        raise InputError(f"{path}: has no column {' and '.join(absent)} (it has {found}); {expected}")
    ids = pd.to_numeric(frame["job_id"], errors="coerce")
    seconds = pd.to_numeric(frame["prediction"], errors="coerce")
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
