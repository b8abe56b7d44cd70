"""The ledger of a log: how many candidates were ever tried on it, and how many held-out verdicts were asked for.

Who tries a thousand formulas finds one that looks good. So what is tried is counted before it is tried, in a file, and
an interval of a held-out verdict is as wide as the count asks for. A formula that is handed in twice counts twice. The
count is that of the log, by the digest of its jobs; beside it is how often which settings were used.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policyfactory.core.artefact import dump_json, read_bytes, sha256_bytes
from policyfactory.core.claims import exclusive
from policyfactory.core.errors import InputError, OutputError
from policyfactory.core.output import check_output
from policyfactory.core.together import atomic_write

__all__ = ["Counted", "count"]

_KIND, _SCHEMA = "judge-ledger", 1
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


def count(
    path: Path, workload: tuple[str, str], settings: Mapping[str, Any], *, tried: int, held_out: int = 0
) -> Counted:
    """Add to a ledger, which is made if there is none, and return what it then says of the log.

    Parameters
    ----------
    path : Path
        The ledger.
    workload : tuple of str
        Digest and name of the log.
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


def _add(path: Path, workload: tuple[str, str], settings: Mapping[str, Any], tried: int, held_out: int) -> Counted:
    content = _read(path)
    digest, name = workload
    log = content["logs"].setdefault(digest, {"name": name, "tried": 0, "held_out": 0, "settings": {}})
    key = sha256_bytes(dump_json(settings).encode())[:16]
    own = log["settings"].setdefault(key, {"tried": 0, "held_out": 0, "options": settings})
    for counts in (log, own):
        counts["tried"] += tried
        counts["held_out"] += held_out
    atomic_write(path, dump_json(content))
    return Counted(log["tried"], log["held_out"])


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
    logs = content.get("logs")
    if version != _SCHEMA or not isinstance(logs, dict):
        raise _damaged(path, "schema or logs are missing")
    for digest, log in logs.items():
        if not _has_counts(log) or not isinstance(log.get("settings"), dict):
            raise _damaged(path, f"the counts of log {digest[:16]!a} are no counts")
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
