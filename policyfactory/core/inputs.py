"""What a command reads is not what it writes: one check for all commands, by inode, whatever the names are.

A command notes the files that it reads, and those that it is to write. The two are compared when either is named, so
mostly before any work, and once more when a file is about to be replaced. The manifest beside an input belongs to it.
In Python, where a process is no single command, nothing is noted.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from policyfactory.core.errors import UsageError

__all__ = ["claimed", "command", "manifest_path", "note_input", "refuse_input"]

_Inode = tuple[int, int]

_read: dict[_Inode, Path] | None = None
_claimed: Counter[_Inode] = Counter()


@contextlib.contextmanager
def command() -> Iterator[None]:
    """Note what is read and written inside."""
    global _read  # noqa: PLW0603 (a process runs one command at a time)
    _read = {}
    _claimed.clear()
    try:
        yield
    finally:
        _read = None


def manifest_path(artefact: Path) -> Path:
    """Return where the manifest of a file lies: ``NAME.csv`` has ``NAME.manifest.json``."""
    return artefact.with_name(f"{artefact.stem}.manifest.json")


def note_input(path: Path) -> None:
    """Note that the command reads a file.

    Raises
    ------
    UsageError
        If the command is to write it.
    """
    if _read is None:
        return
    for one in (path, manifest_path(path)) if path.name else ():
        inode = _inode(one)
        if inode is None:
            continue
        if _claimed[inode]:
            raise _is_input(one, path)
        _read.setdefault(inode, path)


def refuse_input(path: Path) -> None:
    """Refuse to write a file that the command has read.

    Raises
    ------
    UsageError
        If it has.
    """
    inode = _inode(path) if _read else None
    if _read and inode is not None and inode in _read:
        raise _is_input(path, _read[inode])


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Refuse to read a file inside, as the command is to write it.

    Raises
    ------
    UsageError
        If it was read before.
    """
    refuse_input(path)
    inode = _inode(path) if _read is not None else None
    if inode is not None:
        _claimed[inode] += 1
    try:
        yield
    finally:
        if inode is not None:
            _claimed[inode] -= 1


def _inode(path: Path) -> _Inode | None:
    """Return which regular file a name stands for."""
    try:
        status = os.stat(path)  # noqa: PTH116 (the name may be bytes that are no text)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _is_input(path: Path, given: Path) -> UsageError:
    what = "an input of this command" if path == given else f"an input of this command ({given})"
    return UsageError(f"{path}: is {what}; name another output, so that the original stays")
