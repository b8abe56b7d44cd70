"""Files that say how they were made, are written whole or not at all, and are written by one run at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from policyfactory import __version__
from policyfactory.core.errors import InputError, OutputError

__all__ = [
    "Manifest",
    "atomic_write",
    "check_directory",
    "check_output",
    "command_line",
    "dump_json",
    "exclusive",
    "package_versions",
    "read_bytes",
    "sha256_bytes",
    "sha256_file",
]

MANIFEST_SCHEMA = 1
_PACKAGES = ("numpy", "scipy", "numba", "pandas", "statsmodels", "scikit-learn", "joblib", "sympy", "matplotlib")


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_bytes(path: Path, *, limit: int = 1 << 30) -> bytes:
    """Return the bytes of an input file.

    Raises
    ------
    InputError
        If there is no such file, it is a directory, can not be read, or is larger than ``limit`` bytes.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; name a file in it")
        size = path.stat().st_size
        if size > limit:
            raise InputError(f"{path}: has {size:,} bytes, more than the {limit:,} that are read; split the file")
        with path.open("rb") as file:
            data = _read_at_most(file, limit + 1, size + 1)
        if len(data) > limit:
            raise InputError(f"{path}: has more than the {limit:,} bytes that are read; split the file")
        return data
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the name and the current folder {Path.cwd()}") from None
    except OSError as error:
        raise InputError(f"{path}: can not be read: {error.strerror}; check its permissions") from None


def _read_at_most(file: IO[bytes], most: int, first: int) -> bytes:
    """Return up to ``most`` bytes; ``first`` of them at once, and more of what has no size, as a pipe or a device."""
    parts = []
    wanted = min(first, most)
    while part := file.read(wanted):
        parts.append(part)
        most -= len(part)
        wanted = min(1 << 20, most)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def check_output(path: Path) -> Path:
    """Return ``path`` if a file can be written there; call it before hours of work.

    Raises
    ------
    OutputError
        If it is a directory, its folder is missing or can not be written to.
    """
    if path.is_dir():
        raise OutputError(f"{path}: is a directory; name the file to write, for example {path / 'result'}")
    folder = path.parent
    if not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist; create it first (mkdir -p {folder})")
    # access() answers for the real user only, and always yes for root: try it.
    try:
        handle, trial = tempfile.mkstemp(prefix=".policyfactory-", dir=folder)
        os.close(handle)
        Path(trial).unlink()
    except OSError as error:
        raise OutputError(f"{path}: can not write in {folder}: {error.strerror}; choose another folder") from None
    return path


def check_directory(path: Path) -> Path:
    """Return ``path``, created if needed, as a folder in which files can be written.

    Raises
    ------
    OutputError
        If it is a file or can not be created or written to.
    """
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path}: is a file; name a folder for the results")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: can not be created: {error.strerror}; choose another folder") from None
    check_output(path / "probe")
    return path


def atomic_write(path: Path, data: bytes | str | Iterable[bytes]) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the whole new one, never a part.

    What does not fit into memory is given as parts, one after the other.

    Raises
    ------
    OutputError
        If the file can not be written (the old one is untouched then).
    """
    check_output(path)
    content = data.encode() if isinstance(data, str) else data
    parts = [content] if isinstance(content, bytes) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        reason = "no space left" if error.errno == errno.ENOSPC else error.strerror
        raise OutputError(f"{path}: can not be written: {reason}; nothing was changed") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the right to write ``path``; a second run on the same output is told so at once.

    The lock belongs to the process and goes with it, also after ``kill -9``.

    Raises
    ------
    OutputError
        If another run holds it.
    """
    check_output(path)
    lock = path.with_name(f".{path.name}.lock")
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The holder removes the file: a lock on a removed file guards nothing.
            held = lock.exists() and lock.stat().st_ino == os.fstat(file.fileno()).st_ino
        except OSError:
            held = False
        if not held:
            raise OutputError(
                f"{path}: another run is writing it (lock {lock}); wait for it, stop it, or name another output"
            )
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


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
    """Return ``value`` as JSON text: sorted keys, indented, one newline at the end, NaN refused."""
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


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
        return {
            "schema_version": MANIFEST_SCHEMA,
            "kind": self.kind,
            "command": self.command,
            "seed": self.seed,
            "inputs": dict(self.inputs),
            "parameters": dict(self.parameters),
            "measured": dict(self.measured),
            "outputs": dict(self.outputs),
            "versions": package_versions(),
        }

    def write(self, path: Path) -> None:
        """Write the manifest as JSON."""
        atomic_write(path, dump_json(self.as_dict()))

    @staticmethod
    def path_for(artefact: Path) -> Path:
        """Return where the manifest of ``artefact`` lies: ``NAME.csv`` has ``NAME.manifest.json``."""
        return artefact.with_name(f"{artefact.stem}.manifest.json")
