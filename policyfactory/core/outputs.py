"""What an output may be, and that one run at a time writes it.

The rules of every output of every command:

- A file is written as ``.NAME.tmp`` and takes its name when it is whole and on the disk. It keeps the mode of the one
  that it replaces, and its owner where that is allowed.
- Several files that are written inside `together` are all whole before the first takes its name.
- A link is followed, as by ``>`` in a shell: it stays, and what it points to is replaced. A link of another user in a
  folder that everybody writes (``/tmp``) is refused.
- A pipe, a device, or an open file of the process (``/dev/stdout``) is written into and never replaced. Where more
  files lie beside an output, it is refused.
- A file that the same command reads is no output (`policyfactory.core.inputs`).
- One run at a time writes an output. Locks belong to the process and go with it, also after ``kill -9``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from policyfactory.core import inputs
from policyfactory.core.errors import OutputError

__all__ = [
    "check_directory", "check_file", "check_output", "destination", "exclusive", "file_of", "is_inode", "is_stream",
    "locked", "no_empty_folders", "reason", "refuse_earlier", "reported", "try_lock",
    "unlink",
]  # fmt: skip

_MOST_LINKS = 40

_made: list[Path] = []


# What can be written. -------------------------------------------------------------------------------------------------


def destination(path: Path) -> Path | int:
    """Return what an output stands for: its file with all links followed, or the number of an open file of ours.

    Raises
    ------
    OutputError
        If there is a link of another user in a folder that everybody writes, or links lead in a circle.
    """
    at = path
    for _ in range(_MOST_LINKS):
        folder = Path(os.path.realpath(at.parent))
        if str(folder) == f"/proc/{os.getpid()}/fd" and at.name.isdigit():
            return int(at.name)
        if not at.is_symlink():
            return folder / at.name
        above = folder.stat()
        shared = above.st_mode & stat.S_ISVTX and above.st_mode & stat.S_IWOTH
        if shared and at.lstat().st_uid not in {os.geteuid(), above.st_uid}:
            raise OutputError(
                f"{path}: {at} is a link of another user in a folder that everybody writes; choose another"
            )
        at = folder / at.readlink()
    raise OutputError(f"{path}: links lead in a circle; name another output")


def file_of(path: Path) -> Path | None:
    """Return the file that an output stands for; None if it is a pipe, a device or an open file.

    Raises
    ------
    OutputError
        As `destination` says.
    """
    where = destination(path)
    if isinstance(where, int):
        return None
    try:
        mode = where.stat().st_mode
    except OSError:
        return where
    return where if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else None


def is_stream(path: Path) -> bool:
    """Say whether an output is a pipe, a device or an open file, which is written into."""
    return file_of(path) is None


def check_output(path: Path) -> Path:
    """Return ``path`` if it can be written; call it before hours of work.

    Raises
    ------
    OutputError
        If it is a directory or a socket, is read-only, or its folder is missing or cannot be written to.
    """
    if path.is_dir():
        raise OutputError(f"{path}: is a directory; name the file to write, for example {path / 'result'}")
    where = file_of(path)
    if where is None:
        if path.is_socket():
            raise OutputError(f"{path}: is a socket; name a file")
        return path
    folder = where.parent
    if not folder.is_dir():
        shown = folder if path.is_symlink() else path.parent
        raise OutputError(f"{path}: the folder {shown} does not exist; create it first (mkdir -p {shown})")
    if where.exists() and not os.access(where, os.W_OK, effective_ids=True):
        raise OutputError(f"{path}: is read-only; make it writable (chmod u+w), or name another output")
    # access() answers yes for root on a file system that is mounted read-only: try it, with a file that has no name.
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OutputError(f"{path}: cannot write in {folder}: {error.strerror}; choose another folder") from None
    return path


def check_file(path: Path, beside: str) -> Path:
    """Return ``path`` if it can be written and be a file with ``beside``, in words, in the same folder.

    Raises
    ------
    OutputError
        If it is a pipe or a device, or as `check_output` says.
    """
    if is_stream(path):
        raise OutputError(f"{path}: is a pipe or a device, and beside it goes {beside}; name a file")
    return check_output(path)


def check_directory(path: Path) -> Path:
    """Return ``path``, created if needed, as a folder in which files can be written.

    Raises
    ------
    OutputError
        If it is a file or cannot be created or written to.
    """
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path}: is a file; name a folder for the results")
    absent = [one for one in (path, *path.parents) if not os.path.lexists(one)]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be created: {error.strerror}; choose another folder") from None
    _made.extend(one.absolute() for one in absent)
    check_output(path / "probe")
    return path


@contextlib.contextmanager
def no_empty_folders() -> Iterator[None]:
    """Remove the folders that were made inside and have nothing in them: a command that changed nothing leaves none."""
    before = len(_made)
    try:
        yield
    finally:
        made = _made[before:]
        del _made[before:]
        # The deepest first.
        for folder in sorted(made, key=lambda one: -len(one.parts)):
            with contextlib.suppress(OSError):
                folder.rmdir()


def reason(error: OSError) -> str:
    """Return in words why the system refused."""
    words = {errno.ENOSPC: "no space left", errno.EDQUOT: "no space left (quota)", errno.EFBIG: "too large (ulimit -f)"}
    return words.get(error.errno or 0, error.strerror or str(error))


@contextlib.contextmanager
def reported(path: Path, done: str, state: str) -> Iterator[None]:
    """Say of an error of the system what could not be done (``written``, ``replaced``), and what is there now.

    Raises
    ------
    OutputError
        In place of the system's error.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be {done}: {reason(error)}; {state}") from None


# One run at a time. ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def exclusive(*paths: Path | None) -> Iterator[None]:
    """Hold the right to write these outputs (None: nothing); a second run on one of them is refused at once.

    On file systems without locks a second run is not noticed. A pipe or a device is nobody's.

    Raises
    ------
    OutputError
        If another run holds one, or it cannot be written.
    UsageError
        If the command has read one, or reads one inside.
    """
    with contextlib.ExitStack() as held:
        for path in paths:
            if path is None:
                continue
            check_output(path)
            held.enter_context(inputs.claimed(path))
            where = file_of(path)
            if where is not None:
                lock = where.with_name(f".{where.name}.lock")
                descriptor = locked(path, lock)
                held.callback(os.close, descriptor)
                held.callback(unlink, lock, os.fstat(descriptor).st_ino)
        yield


def refuse_earlier(*paths: Path | None, overwrite: bool) -> None:
    """Refuse to replace what is there: the one rule of every command that writes (None: nothing is written).

    A pipe or a device is no earlier result.

    Raises
    ------
    OutputError
        If one of the files exists and ``overwrite`` is not given.
    UsageError
        If the command reads one of the files.
    """
    for path in paths:
        if path is None:
            continue
        inputs.refuse_input(path)
        if path.is_file() and not is_stream(path) and not overwrite:
            raise OutputError(
                f"{path}: exists; add --overwrite to replace it (in Python overwrite=True), or name another output"
            )


def locked(path: Path, lock: Path, *, anew: bool = False) -> int:
    """Open the file ``lock``, made if there is none, and take its lock, which goes when the file is closed.

    Parameters
    ----------
    path : Path
        The output, for messages.
    lock : Path
        A link there is not followed.
    anew : bool
        Whether one that is there already is replaced: who wrote it was killed.

    Raises
    ------
    OutputError
        If another run has it, or it cannot be made.
    """
    with reported(path, f"written: {lock.name}", "check the permissions"):
        while True:
            there = os.path.lexists(lock)
            flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (0 if there else os.O_CREAT | os.O_EXCL)
            try:
                descriptor = os.open(lock, flags, 0o666)
            except (FileExistsError, FileNotFoundError):
                continue  # another process was quicker
            if not try_lock(descriptor):
                os.close(descriptor)
                raise OutputError(
                    f"{path}: another run is writing it (lock {lock}); wait for it, stop it, or name another output"
                )
            # Who had the lock may have removed or renamed the file since it was opened here.
            if is_inode(lock, os.fstat(descriptor).st_ino):
                if not (there and anew):
                    return descriptor
                lock.unlink()
            os.close(descriptor)


def try_lock(file: IO[bytes] | int) -> bool:
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


def is_inode(path: Path, inode: int) -> bool:
    """Say whether a name is that of a certain file."""
    try:
        return path.lstat().st_ino == inode
    except OSError:
        return False


def unlink(path: Path, inode: int) -> None:
    """Remove a file, if it still is that one and can be removed."""
    with contextlib.suppress(OSError):
        if is_inode(path, inode):
            path.unlink()
