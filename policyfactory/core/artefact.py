"""Files that say how they were made, are written whole or not at all, and are written by one run at a time."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from policyfactory.core.errors import InputError, OutputError
from policyfactory.core.version import __version__

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
    "refuse_earlier",
    "sha256_bytes",
    "sha256_file",
    "try_lock",
    "unchanged",
]

MANIFEST_SCHEMA = 1
_BLOCK = 1 << 20  # bytes
_LARGEST_STREAM = 1 << 29  # bytes of a pipe or a device, which do not say how many they have
_PACKAGES = ("numpy", "scipy", "numba", "pandas", "statsmodels", "scikit-learn", "joblib", "sympy", "matplotlib")


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_bytes(path: Path, *, limit: int = 1 << 30) -> bytes:
    """Return the bytes of an input file.

    Raises
    ------
    InputError
        If there is no such file, it is a directory, cannot be read, or is larger than ``limit`` bytes; a pipe or a
        device, which says no size and may have no end, also if it is larger than 512 MiB.
    """
    blocks = _blocks(path, limit, whole=True)
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


def _blocks(path: Path, limit: int, *, whole: bool = False) -> Iterator[bytes]:
    """Give the bytes of an input file in blocks; with ``whole``, those of a file that says its size in the first."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; name a file in it")
        status = path.stat()
        if status.st_size > limit:
            raise InputError(
                f"{path}: has {status.st_size:,} bytes, more than the {limit:,} that are read; split the file"
            )
        endless = not stat.S_ISREG(status.st_mode) and limit > _LARGEST_STREAM
        most = room = _LARGEST_STREAM if endless else limit
        wanted = status.st_size + 1 if whole and status.st_size else _BLOCK
        with path.open("rb") as file:
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


@contextlib.contextmanager
def unchanged(path: Path, *, limit: int = 1 << 30) -> Iterator[str]:
    """Give the SHA-256 of an input file that is read inside, so that it is that of what was read.

    Raises
    ------
    InputError
        If the file cannot be read, is larger than ``limit`` bytes, or was another one afterwards.
    """
    before = _sha256_at_most(path, limit)
    yield before
    if _sha256_at_most(path, limit) != before:
        raise InputError(f"{path}: was changed while it was read; run the command again, on a copy if it keeps growing")


def _sha256_at_most(path: Path, limit: int) -> str:
    digest = hashlib.sha256()
    for block in _blocks(path, limit):
        digest.update(block)
    return digest.hexdigest()


def check_output(path: Path) -> Path:
    """Return ``path`` if a file can be written there; call it before hours of work.

    Raises
    ------
    OutputError
        If it is a directory, its folder is missing or cannot be written to.
    """
    if path.is_dir():
        raise OutputError(f"{path}: is a directory; name the file to write, for example {path / 'result'}")
    folder = path.parent
    if not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist; create it first (mkdir -p {folder})")
    # access() answers for the real user only, and always yes for root: try it.
    try:
        _try_to_write(folder)
    except OSError as error:
        raise OutputError(f"{path}: cannot write in {folder}: {error.strerror}; choose another folder") from None
    return path


def refuse_earlier(*paths: Path | None, overwrite: bool) -> None:
    """Refuse to replace what is there: the one rule of every command that writes (None: nothing is written).

    A pipe or a device is no earlier result.

    Raises
    ------
    OutputError
        If one of the files exists and ``overwrite`` is not given.
    """
    for path in paths:
        if path is not None and path.is_file() and not overwrite:
            raise OutputError(
                f"{path}: exists; add --overwrite to replace it (in Python overwrite=True), or name another output"
            )


def _try_to_write(folder: Path) -> None:
    """Make a file without a name, of which nothing can be left, or one with a name where a file system has no such."""
    if hasattr(os, "O_TMPFILE"):
        try:
            os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))
        except OSError as error:
            if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT}:
                raise
        else:
            return
    trial = folder / ".policyfactory-probe"
    os.close(os.open(trial, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    trial.unlink(missing_ok=True)


def check_directory(path: Path) -> Path:
    """Return ``path``, created if needed, as a folder in which files can be written.

    Raises
    ------
    OutputError
        If it is a file or cannot be created or written to.
    """
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path}: is a file; name a folder for the results")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be created: {error.strerror}; choose another folder") from None
    check_output(path / "probe")
    return path


def atomic_write(path: Path, data: bytes | str | Iterable[bytes]) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the whole new one, never a part.

    What does not fit into memory is given as parts, one after the other. The new file is ``.NAME.tmp`` while it is
    written; what ``kill -9`` leaves of that is removed by the next who writes the file.

    Raises
    ------
    OutputError
        If the file cannot be written, or another process is writing it (the old one is untouched then).
    """
    check_output(path)
    content = data.encode() if isinstance(data, str) else data
    parts = [content] if isinstance(content, bytes) else content
    temporary = path.with_name(f".{path.name}.tmp")
    with _locked(path, temporary, empty=True) as file:
        try:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
            if not _is(temporary, file):
                # Only where the file system has no locks.
                raise OutputError(f"{path}: another run is writing it; nothing was changed")
            temporary.replace(path)
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            # Closing tries once more to write what is left, and would fail once more.
            with contextlib.suppress(OSError):
                file.close()
            if not isinstance(error, OSError):
                raise
            raise OutputError(f"{path}: cannot be written: {_reason(error)}; nothing was changed") from None


@contextlib.contextmanager
def exclusive(*paths: Path | None) -> Iterator[None]:
    """Hold the right to write these outputs (None: nothing); a second run on one of them is refused at once.

    The locks belong to the process and go with it, also after ``kill -9``. On file systems without locks a second run
    is not noticed.

    Raises
    ------
    OutputError
        If another run holds one, or it cannot be written.
    """
    with contextlib.ExitStack() as held:
        for path in paths:
            if path is not None:
                lock = check_output(path).with_name(f".{path.name}.lock")
                held.enter_context(_locked(path, lock))
                held.callback(lock.unlink, missing_ok=True)
        yield


def _locked(path: Path, lock: Path, *, empty: bool = False) -> IO[bytes]:
    """Open the file ``lock``, made if there is none, and take its lock, which goes when the file is closed.

    With ``empty``, one that is there already is replaced: who wrote it was killed.
    """
    try:
        while True:
            there = lock.is_symlink() or lock.exists()
            flags = os.O_RDWR | os.O_NOFOLLOW | (0 if there else os.O_CREAT | os.O_EXCL)
            try:
                file = os.fdopen(os.open(lock, flags, 0o666), "r+b")
            except (FileExistsError, FileNotFoundError):
                continue  # another process was quicker
            try:
                mine = try_lock(file)
                # Who had the lock may have removed or renamed the file since it was opened here.
                if mine and _is(lock, file):
                    if not (there and empty):
                        return file
                    lock.unlink()
            except BaseException:
                file.close()
                raise
            file.close()
            if not mine:
                raise OutputError(
                    f"{path}: another run is writing it (lock {lock}); wait for it, stop it, or name another output"
                )
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {lock.name}: {_reason(error)}; check the permissions") from None


def try_lock(file: IO[bytes]) -> bool:
    """Lock a file; say whether nobody else has it, or nobody can know."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # File systems of clusters are often mounted without locks.
        if error.errno not in {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK}:
            raise
    return True


def _is(path: Path, file: IO[bytes]) -> bool:
    """Tell whether an open file still has that name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _reason(error: OSError) -> str:
    words = {errno.ENOSPC: "no space left", errno.EDQUOT: "no space left (quota)", errno.EFBIG: "too large (ulimit -f)"}
    return words.get(error.errno or 0, error.strerror or str(error))


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
        return {"schema_version": MANIFEST_SCHEMA, **dataclasses.asdict(self), "versions": package_versions()}

    def write(self, path: Path) -> None:
        """Write the manifest as JSON."""
        atomic_write(path, dump_json(self.as_dict()))

    @staticmethod
    def path_for(artefact: Path) -> Path:
        """Return where the manifest of ``artefact`` lies: ``NAME.csv`` has ``NAME.manifest.json``."""
        return artefact.with_name(f"{artefact.stem}.manifest.json")
