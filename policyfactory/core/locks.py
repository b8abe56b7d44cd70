"""Locks on files: they belong to the process and go with it, also after ``kill -9``."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import IO

from policyfactory.core.errors import OutputError
from policyfactory.core.output import reason

__all__ = ["has_name", "locked", "try_lock"]


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
