"""Predicted run times of the jobs of a log, from a file."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import InputError
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.workload.jobs import Workload

__all__ = ["read_predictions"]

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
