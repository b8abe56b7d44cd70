"""Where results go: files are replaced whole, pipes and devices are written into.

The rules of every output of every command:

- A file is written beside, as ``.NAME.tmp``, and takes its name when it is whole and on the disk. It keeps the mode of
  the one that it replaces, and its owner where that is allowed.
- Several files that are written inside `together` take their names together.
- A link is followed, as by ``>`` in a shell: it stays, and what it points to is replaced. A link of another user in a
  folder that everybody writes (``/tmp``) is refused.
- A pipe, a device, or an open file of the process (``/dev/stdout``) is written into and never replaced. Where more
  files lie beside an output, it is refused.
- A file that the same command reads is no output (`policyfactory.core.inputs`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from policyfactory.core.errors import OutputError

__all__ = [
    "check_directory",
    "check_file",
    "check_output",
    "destination",
    "file_of",
    "is_stream",
    "no_empty_folders",
    "reason",
    "reported",
]

_MOST_LINKS = 40


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
    # access() answers yes for root on a file system that is mounted read-only: try it.
    try:
        _try_to_write(folder)
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


_made: list[Path] = []


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
