"""Files that say how they were made, and the bytes of inputs."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import queue
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from policyfactory.core import inputs
from policyfactory.core.errors import InputError
from policyfactory.core.text import json_text
from policyfactory.core.together import atomic_write, complete
from policyfactory.core.version import __version__

__all__ = [
    "Manifest",
    "command_line",
    "dump_json",
    "open_input",
    "package_versions",
    "read_bytes",
    "sha256_bytes",
    "sha256_file",
]

MANIFEST_SCHEMA = 1
_BLOCK = 1 << 20  # bytes
_LARGEST_STREAM = 1 << 29  # bytes of a pipe, which does not say how many it has
_PATIENCE = 10.0  # s that a pipe may lie there without a writer
_PACKAGES = ("numpy", "scipy", "numba", "pandas", "statsmodels", "scikit-learn", "joblib", "sympy", "matplotlib")


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with open_input(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_input(path: Path) -> io.BufferedReader:
    """Open an input: a file, a pipe that someone writes into, or stdin by its name; ``/dev/null`` is an empty file.

    Raises
    ------
    InputError
        If it is a socket or another device, which may have no end, or a pipe that nobody writes into for 10 s.
    OSError
        If it cannot be opened.
    """
    mode = path.stat().st_mode
    if stat.S_ISFIFO(mode):
        return os.fdopen(_pipe(path), "rb")
    device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
    known = device and any(Path(one).exists() and path.samefile(one) for one in (os.devnull, "/dev/stdin"))
    if stat.S_ISSOCK(mode) or (device and not known):
        raise InputError(f"{path}: is a device or a socket; name a file, or a pipe that something writes into")
    return path.open("rb")


def _pipe(path: Path) -> int:
    """Open a pipe. What opens one that has no writer waits for one, so a thread does, which nobody needs to end."""
    opened: queue.SimpleQueue[int | OSError] = queue.SimpleQueue()

    def wait() -> None:
        try:
            opened.put(os.open(path, os.O_RDONLY))
        except OSError as error:
            opened.put(error)

    threading.Thread(target=wait, daemon=True).start()
    try:
        descriptor = opened.get(timeout=_PATIENCE)
    except queue.Empty:
        raise InputError(
            f"{path}: is a pipe that nobody wrote into for {_PATIENCE:.0f} s; start what writes into it first"
        ) from None
    if isinstance(descriptor, OSError):
        raise descriptor
    return descriptor


def read_bytes(path: Path, *, limit: int = 1 << 30, own: bool = False) -> bytes:
    """Return the bytes of an input file; with ``own``, of an output, which the command may replace.

    Raises
    ------
    InputError
        If there is no such file, it is a directory, cannot be read, is what `open_input` refuses, or is larger than
        ``limit`` bytes; a pipe, which says no size and may have no end, also if it is larger than 512 MiB.
    """
    blocks = _blocks(path, limit, whole=True, own=own)
    data = next(blocks, b"")
    more = next(blocks, b"")
    if not more:
        return data
    # One buffer that grows: parts that are joined would be held twice.
    buffer = io.BytesIO()
    buffer.write(data)
    buffer.write(more)
    buffer.writelines(blocks)
    return buffer.getvalue()


def _blocks(path: Path, limit: int, *, whole: bool = False, own: bool = False) -> Iterator[bytes]:
    """Give the bytes of an input file in blocks; with ``whole``, those of a file that says its size in the first."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; name a file in it")
        complete(path.parent)
        if not own:
            inputs.note_input(path)
        status = path.stat()
        if status.st_size > limit:
            raise InputError(
                f"{path}: has {status.st_size:,} bytes, more than the {limit:,} that are read; split the file"
            )
        endless = not stat.S_ISREG(status.st_mode) and limit > _LARGEST_STREAM
        most = room = _LARGEST_STREAM if endless else limit
        wanted = status.st_size + 1 if whole and status.st_size else _BLOCK
        with open_input(path) as file:
            while block := file.read(min(wanted, room + 1)):
                room -= len(block)
                if room < 0:
                    cure = "write it into a file first" if endless else "split the file"
                    raise InputError(f"{path}: has more than the {most:,} bytes that are read; {cure}")
                yield block
                wanted = _BLOCK
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the name and the current folder {Path.cwd()}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; check its permissions") from None


def command_line() -> str:
    """Return the command that is running, as it could be typed again."""
    import shlex

    program = Path(sys.argv[0]).name if sys.argv else "python"
    if program == "__main__.py":
        program = "policyfactory"
    return shlex.join([program, *sys.argv[1:]])


def package_versions() -> dict[str, str]:
    """Return the versions of policyfactory, Python and the libraries that can change a number."""
    versions = {"policyfactory": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def dump_json(value: Any) -> str:
    r"""Return ``value`` as JSON text: sorted keys, indented, one newline at the end, NaN refused.

    What would hide or reorder text is written as ``\u202e``; so are, of a file's name that is no UTF-8, the bytes that
    are none (``\udcff``). Both are read so again.
    """
    return json_text(json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


@dataclasses.dataclass(frozen=True, slots=True)
class Manifest:
    """How an artefact was made.

    Parameters
    ----------
    kind : str
        What the artefact is, for example ``"score-table"``.
    command : str
        The command that made it.
    seed : int or None
        The seed of its random numbers.
    inputs : mapping of str to str
        Name of each input and its SHA-256.
    parameters : mapping
        The settings that determine the content.
    measured : mapping
        What was measured while it was made (speed, seconds); differs from run to run.
    """

    kind: str
    command: str
    seed: int | None
    inputs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    measured: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    outputs: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the manifest as plain JSON values, with schema version and package versions."""
        return {"schema_version": MANIFEST_SCHEMA, **dataclasses.asdict(self), "versions": package_versions()}

    def write(self, path: Path) -> None:
        """Write the manifest as JSON."""
        atomic_write(path, dump_json(self.as_dict()))

    @staticmethod
    def path_for(artefact: Path) -> Path:
        """Return where the manifest of ``artefact`` lies: ``NAME.csv`` has ``NAME.manifest.json``."""
        return inputs.manifest_path(artefact)
