"""How bytes get to the disk: under a temporary name beside the file, or into a pipe or a device."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from policyfactory.core.errors import OutputError
from policyfactory.core.locks import has_name, locked
from policyfactory.core.output import destination, reason

__all__ = ["sync_folder", "temporary", "write_into", "write_temporary"]

_BLOCK = 1 << 20  # bytes
# Of a file system that does not know how: there is nothing to wait for.
_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES}


def temporary(where: Path) -> Path:
    """Return the name that a file has while it is written."""
    return where.with_name(f".{where.name}.tmp")


def write_temporary(path: Path, where: Path, parts: Iterable[bytes], *, executable: bool = False) -> tuple[int, str]:
    """Write a file under its temporary name and wait for the disk; return its inode and its SHA-256.

    Raises
    ------
    OutputError
        If it cannot be written; nothing is left of it then.
    """
    name = temporary(where)
    with locked(path, name, empty=True) as file:
        descriptor = file.fileno()
        try:
            digest = _write_all(descriptor, parts)
            _take_over(descriptor, where, executable=executable)
            os.fsync(descriptor)
            if not has_name(name, descriptor):
                # Only where the file system has no locks.
                raise OutputError(f"{path}: another run is writing it; nothing was changed")
            return os.fstat(descriptor).st_ino, digest
        except BaseException as error:
            with contextlib.suppress(OSError):
                if has_name(name, descriptor):
                    os.unlink(name)  # noqa: PTH108 (system calls of writing are called by their names)
            if not isinstance(error, OSError):
                raise
            raise OutputError(f"{path}: cannot be written: {reason(error)}; nothing was changed") from None


def write_into(path: Path, parts: Iterable[bytes]) -> None:
    """Write into a pipe, a device or an open file.

    Raises
    ------
    OutputError
        If it does not take all.
    """
    where = destination(path)
    try:
        descriptor = os.dup(where) if isinstance(where, int) else os.open(where, os.O_WRONLY | os.O_NOCTTY)
        try:
            _write_all(descriptor, parts)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {reason(error)}; it may have got a part") from None


def _write_all(descriptor: int, parts: Iterable[bytes]) -> str:
    """Write parts in large blocks; return the SHA-256 of all."""
    digest = hashlib.sha256()
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        digest.update(part)
        waiting.append(part)
        size += len(part)
        if size >= _BLOCK:
            _write(descriptor, b"".join(waiting))
            waiting, size = [], 0
    _write(descriptor, b"".join(waiting))
    return digest.hexdigest()


def _write(descriptor: int, block: bytes) -> None:
    left = memoryview(block)
    while left:
        left = left[os.write(descriptor, left) :]


def _take_over(descriptor: int, where: Path, *, executable: bool) -> None:
    """Give a new file the owner and the mode of the one that it replaces."""
    own = os.fstat(descriptor)
    mode = stat.S_IMODE(own.st_mode)
    with contextlib.suppress(FileNotFoundError):
        earlier = where.stat()
        mode = stat.S_IMODE(earlier.st_mode) & 0o777
        if (earlier.st_uid, earlier.st_gid) != (own.st_uid, own.st_gid):
            try:
                os.fchown(descriptor, earlier.st_uid, earlier.st_gid)
            except PermissionError:
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, -1, earlier.st_gid)
    if executable:
        mode |= 0o111
    if mode != stat.S_IMODE(own.st_mode):
        os.fchmod(descriptor, mode)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the file system can tell."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno in _CANNOT_SYNC:
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)
