"""One run at a time writes an output: locks that go with the process, also after ``kill -9``."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from policyfactory.core import inputs
from policyfactory.core.errors import OutputError
from policyfactory.core.output import check_output, file_of, reason

__all__ = ["exclusive", "has_name", "locked", "try_lock"]


@contextlib.contextmanager
def exclusive(*paths: Path | None) -> Iterator[None]:
    """Hold the right to write these outputs (None: nothing); a second run on one of them is refused at once.

    The locks belong to the process and go with it, also after ``kill -9``. On file systems without locks a second run
    is not noticed. A pipe or a device is nobody's.

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
                held.enter_context(locked(path, lock))
                held.callback(lock.unlink, missing_ok=True)
        yield


def locked(path: Path, lock: Path, *, empty: bool = False) -> IO[bytes]:
    """Open the file ``lock``, made if there is none, and take its lock, which goes when the file is closed.

    Parameters
    ----------
    path : Path
        The output, for messages.
    lock : Path
        A link there is not followed.
    empty : bool
        Whether one that is there already is replaced: who wrote it was killed.

    Raises
    ------
    OutputError
        If another run has it, or it cannot be made.
    """
    try:
        while True:
            there = lock.is_symlink() or lock.exists()
            flags = os.O_RDWR | os.O_NOFOLLOW | (0 if there else os.O_CREAT | os.O_EXCL)
            try:
                file = os.fdopen(os.open(lock, flags, 0o666), "r+b", buffering=0)
            except (FileExistsError, FileNotFoundError):
                continue  # another process was quicker
            try:
                mine = try_lock(file)
                # Who had the lock may have removed or renamed the file since it was opened here.
                if mine and has_name(lock, file.fileno()):
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
        raise OutputError(f"{path}: cannot be written: {lock.name}: {reason(error)}; check the permissions") from None


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


def has_name(path: Path, descriptor: int) -> bool:
    """Tell whether an open file still has that name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
