"""The state of a training run on disk: a plain npz file, from which the same command goes on to the same result.

It may come from a stranger or be damaged: nothing in it is run, its size is bounded, and every array is checked. The
random numbers of a round are those of its seed and number, so there is no state of them to keep.
"""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.errors import ModelFileError
from policyfactory.core.files import atomic_write
from policyfactory.core.inputs import read_bytes
from policyfactory.core.version import __version__

__all__ = ["CHECKPOINT_KIND", "CHECKPOINT_SCHEMA", "Checkpoint", "load_checkpoint", "save_checkpoint"]

CHECKPOINT_KIND = "policyfactory-training"
CHECKPOINT_SCHEMA = 1
_LARGEST = 1 << 28  # bytes of the file
_LARGEST_ARRAY = 1 << 30
_HEAD = "head"


@dataclasses.dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a run stands.

    Parameters
    ----------
    run : mapping
        The run (JSON values): what determines its result.
    iteration : int
        Rounds that are done.
    history : tuple of mapping
        A row of each.
    arrays : mapping of str to array
        Numbers of the networks, of their optimisers, and of the candidates.
    """

    run: Mapping[str, Any]
    iteration: int
    history: tuple[Mapping[str, Any], ...]
    arrays: Mapping[str, NDArray[Any]]


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, whole or not at all; the same state gives the same bytes.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    head = {
        "kind": CHECKPOINT_KIND,
        "schema_version": CHECKPOINT_SCHEMA,
        "written_by": f"policyfactory {__version__}",
        "run": dict(checkpoint.run),
        "iteration": checkpoint.iteration,
        "history": [dict(row) for row in checkpoint.history],
    }
    text = np.frombuffer(json.dumps(head, sort_keys=True).encode(), dtype=np.uint8)
    data = io.BytesIO()
    # np.savez writes the time of day into its file.
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as file:
        for name, array in {_HEAD: text, **checkpoint.arrays}.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.ascontiguousarray(array), allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue())
    atomic_write(path, data.getvalue())


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises
    ------
    InputError
        If there is no such file.
    ModelFileError
        If it is no checkpoint, is damaged, or of a newer schema.
    """
    data = read_bytes(path, limit=_LARGEST, own=True)
    try:
        # What zipfile, zlib and numpy raise at damage has no common base: NotImplementedError, RuntimeError,
        # SyntaxError, struct.error, MemoryError and others. Nothing of ours but one refusal is called in here.
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            if sum(part.file_size for part in file.infolist()) > _LARGEST_ARRAY:
                raise ModelFileError(f"{path}: unpacks to more than {_LARGEST_ARRAY:,} bytes; is it a checkpoint?")
            found = {
                part.filename.removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(file.read(part)), allow_pickle=False
                )
                for part in file.infolist()
            }
        head = json.loads(found.pop(_HEAD).tobytes())
    except ModelFileError:
        raise
    except Exception:  # noqa: BLE001 (see above)
        # A file that is cut has no table of contents, which is at its end.
        cut = data.startswith(b"PK")
        why = f"ends in the middle or is damaged ({len(data):,} bytes)" if cut else "is no checkpoint of a training run"
        raise ModelFileError(f"{path}: {why}; --overwrite drops it and begins anew, or name another --output") from None
    _check_head(path, head)
    return Checkpoint(head["run"], head["iteration"], tuple(head["history"]), found)


def _check_head(path: Path, head: Any) -> None:
    if not isinstance(head, dict) or head.get("kind") != CHECKPOINT_KIND:
        raise ModelFileError(f"{path}: is no checkpoint of a training run; remove it, or name another --output")
    version = head.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelFileError(f"{path}: has no schema version; --overwrite drops it and begins anew")
    if version > CHECKPOINT_SCHEMA:
        written = str(head.get("written_by"))
        by = f", written by {written[:60]}," if written.isprintable() else ""
        raise ModelFileError(
            f"{path}: has checkpoint schema {version}{by} but policyfactory {__version__} reads schemas up to "
            f"{CHECKPOINT_SCHEMA}; install a newer policyfactory, or begin anew with --overwrite"
        )
    iteration, history, run = head.get("iteration"), head.get("history"), head.get("run")
    rows = isinstance(history, list) and all(isinstance(row, dict) for row in history)
    whole = isinstance(iteration, int) and not isinstance(iteration, bool) and iteration >= 0
    if not (rows and whole and isinstance(run, dict) and len(history) == iteration):  # type: ignore[arg-type]
        raise ModelFileError(f"{path}: its head does not say what was done; --overwrite drops it and begins anew")
