"""The ledger of a log: how many candidates were ever tried on it, and how many held-out verdicts were asked for.

Who tries a thousand formulas finds one that looks good. So what is tried is counted before it is tried, in a file, and
an interval of a held-out verdict is as wide as the count asks for. A formula that is handed in twice counts twice. The
count is that of the log, however it was read: it is known again by a sample of its jobs, also if some were left out, or
their processors are others. Beside it is how often which settings were used.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from policyfactory.core.artefact import dump_json
from policyfactory.core.errors import InputError, OutputError
from policyfactory.core.files import atomic_write
from policyfactory.core.inputs import read_bytes, sha256_bytes
from policyfactory.core.outputs import check_output, exclusive
from policyfactory.workload.jobs import Workload

__all__ = ["Counted", "count"]

_KIND, _SCHEMA = "judge-ledger", 2
_SAMPLE = 128  # jobs that a log is known by
_ALIKE = 0.25  # share of them that two readings of one log have in common, at least
_LARGEST = 1 << 24  # bytes
_MOST = 10**15
_PATIENCE = 10.0  # s that another run may take to count
_PAUSE = 0.05  # s


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """What a ledger says of a log.

    Parameters
    ----------
    tried : int
        Candidates that were tried on it, those of this run included.
    held_out : int
        Held-out verdicts that were asked for, those of this run included.
    """

    tried: int
    held_out: int


def count(path: Path, workload: Workload, settings: Mapping[str, Any], *, tried: int, held_out: int = 0) -> Counted:
    """Add to a ledger, which is made if there is none, and return what it then says of the log.

    Parameters
    ----------
    path : Path
        The ledger.
    workload : Workload
        The log.
    settings : mapping
        What the replicas depend on, as JSON values.
    tried, held_out : int
        Candidates that are about to be tried, and to be judged on what is held out.

    Raises
    ------
    InputError
        If it is no ledger, is damaged, or of a newer version.
    OutputError
        If another run holds it for more than ten seconds, or it cannot be written.
    """
    check_output(path)
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            with exclusive(path):
                return _add(path, workload, settings, tried, held_out)
        except OutputError:
            # Runs beside this one count too, each in a moment.
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE)


def _add(path: Path, workload: Workload, settings: Mapping[str, Any], tried: int, held_out: int) -> Counted:
    content = _read(path)
    digest, jobs, logs = workload.sha256(), _sample(workload), content["logs"]
    alike = {known: len({*one.get("jobs", ())} & {*jobs}) for known, one in logs.items()}
    nearest = max(alike, key=lambda known: alike[known], default=digest)
    if digest not in logs and alike.get(nearest, 0) >= max(_ALIKE * len(jobs), 1):
        digest = nearest
    log = logs.setdefault(digest, {"name": workload.name, "tried": 0, "held_out": 0, "settings": {}})
    log.setdefault("jobs", jobs)
    key = sha256_bytes(dump_json(settings).encode())[:16]
    own = log["settings"].setdefault(key, {"tried": 0, "held_out": 0, "options": settings})
    for counts in (log, own):
        counts["tried"] += tried
        counts["held_out"] += held_out
    atomic_write(path, dump_json(content))
    return Counted(log["tried"], log["held_out"])


def _sample(workload: Workload) -> list[str]:
    """Return what a log is known by: a random sample of its jobs, which is nearly the same of nearly the same jobs.

    A job is its run time, that of the job before it, and the time between the two. The sample is of those whose digests
    are the lowest (A. Z. Broder, "On the resemblance and containment of documents", SEQUENCES 1997).
    """
    run, gap = (workload.run_time // workload.ticks)[:-1], np.diff(workload.submit // workload.ticks)
    after = (workload.run_time // workload.ticks)[1:]
    mixed = np.zeros(len(gap), dtype=np.uint64)
    for column in (run, gap, after):
        # The finalizer of splitmix64 (G. L. Steele et al., OOPSLA 2014) on each.
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return [f"{one:016x}" for one in np.unique(mixed)[:_SAMPLE].tolist()]


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"kind": _KIND, "schema_version": _SCHEMA, "logs": {}}
    try:
        content = json.loads(read_bytes(path, limit=_LARGEST, own=True))
    except (ValueError, RecursionError):
        raise _damaged(path, "it is no JSON") from None
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise _damaged(path, "it is not of that kind")
    version = content.get("schema_version")
    if isinstance(version, int) and version > _SCHEMA:
        raise InputError(
            f"{path}: a ledger of schema {version}, this version knows {_SCHEMA}; use the version that wrote it"
        )
    content["schema_version"] = _SCHEMA
    logs = content.get("logs")
    if version not in (1, _SCHEMA) or not isinstance(logs, dict):
        raise _damaged(path, "schema or logs are missing")
    for digest, log in logs.items():
        if not _has_counts(log) or not isinstance(log.get("settings"), dict):
            raise _damaged(path, f"the counts of log {digest[:16]!a} are no counts")
        jobs = log.get("jobs", [])
        if not isinstance(jobs, list) or len(jobs) > _SAMPLE or not all(isinstance(one, str) for one in jobs):
            raise _damaged(path, f"what log {digest[:16]!a} is known by is no list of {_SAMPLE} words")
        if not all(map(_has_counts, log["settings"].values())):
            raise _damaged(path, f"the counts of a setting of log {digest[:16]!a} are no counts")
    return content


def _has_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(name), int) and not isinstance(value[name], bool) and 0 <= value[name] <= _MOST
        for name in ("tried", "held_out")
    )


def _damaged(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: is no ledger of policyfactory judge: {why}; restore it, or name another by --ledger, which begins to "
        "count at 0"
    )
