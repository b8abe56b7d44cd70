"""What a command reads: files, pipes and stdin; who else could have written them; and that it is not what is written.

A command notes the files that it reads, and those that it is to write. The two are compared by inode, whatever the
names are, when either is named, so mostly before any work, and once more when a file is about to be replaced. The
manifest beside an input belongs to it. In Python, where a process is no single command, nothing is noted.
"""

from __future__ import annotations

import contextlib
import grp
import hashlib
import io
import json
import os
import pwd
import re
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from policyfactory.core.errors import InputError, UsageError
from policyfactory.core.text import shortened

_BLOCK = 1 << 20  # bytes
_LARGEST_STREAM = 1 << 29  # bytes of a pipe, which does not say how many it has
_LARGEST_MANIFEST = 1 << 22
_PATIENCE = 10.0  # s that a pipe may lie there without a writer
_MOST_POINTS = 500  # of a line of TOML
_QUOTED = re.compile(rb'"[^"]*"')

_Inode = tuple[int, int]

_read: dict[_Inode, Path] | None = None
_claimed: set[_Inode] = set()


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
    known = device and any(Path(name).exists() and path.samefile(name) for name in (os.devnull, "/dev/stdin"))
    if stat.S_ISSOCK(mode) or (device and not known):
        raise InputError(f"{path}: is a device or a socket; name a file, or a pipe that something writes into")
    return path.open("rb")


def _pipe(path: Path) -> int:
    """Open a pipe. What opens one that has no writer waits for one, so a thread does, which nobody needs to end."""
    opened: Future[int] = Future()

    def wait() -> None:
        try:
            opened.set_result(os.open(path, os.O_RDONLY))
        except OSError as error:
            opened.set_exception(error)

    threading.Thread(target=wait, daemon=True).start()
    try:
        return opened.result(_PATIENCE)
    except TimeoutError:
        raise InputError(
            f"{path}: is a pipe that nobody wrote into for {_PATIENCE:.0f} s; start what writes into it first"
        ) from None


def read_bytes(path: Path, *, limit: int = 1 << 30, replaceable: bool = False) -> bytes:
    """Return the bytes of an input file; with ``replaceable``, of an output, which the command may replace.

    Raises
    ------
    InputError
        If there is no such file, it is a directory, cannot be read, is what `open_input` refuses, or is larger than
        ``limit`` bytes; a pipe, which says no size and may have no end, also if it is larger than 512 MiB.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; name a file in it")
        if not replaceable:
            note_input(path)
        status = path.stat()
        if status.st_size > limit:
            raise InputError(
                f"{path}: has {status.st_size:,} bytes, more than the {limit:,} that are read; split the file"
            )
        endless = not stat.S_ISREG(status.st_mode) and limit > _LARGEST_STREAM
        most = _LARGEST_STREAM if endless else limit
        # One buffer that grows: parts that are joined would be held twice.
        buffer = io.BytesIO()
        with open_input(path) as file:
            while block := file.read(_BLOCK):
                buffer.write(block)
                if buffer.tell() > most:
                    cure = "write it into a file first" if endless else "split the file"
                    raise InputError(f"{path}: has more than the {most:,} bytes that are read; {cure}")
        return buffer.getvalue()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the name and the current folder {Path.cwd()}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; check its permissions") from None


def read_toml(path: Path, *, limit: int, page: str) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of a TOML file, and what is in it.

    Parameters
    ----------
    path : Path
        The file.
    limit : int
        The most bytes that are read.
    page : str
        The page of the documentation that shows the layout, for messages.

    Raises
    ------
    InputError
        If it cannot be read, is larger than ``limit``, or is no TOML.
    """
    import tomllib  # the version of the package is said without it

    data = read_bytes(path, limit=limit)
    for number, line in enumerate(data.splitlines(), 1):
        # Names inside names: reading one takes the square of their number.
        if line.count(b".") > _MOST_POINTS and _QUOTED.sub(b"", line).count(b".") > _MOST_POINTS:
            raise InputError(f"{path}:{number}: has more than {_MOST_POINTS} points; break the line")
    try:
        return data, tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no UTF-8 text at byte {error.start}; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is no TOML: {error}; {page} shows the layout") from None
    except ValueError as error:
        # What Python itself refuses: a date that is none, a number of thousands of digits.
        raise InputError(
            f"{path}: has a number or a date that cannot be read ({shortened(str(error), 60)}); {page} shows the layout"
        ) from None
    except RecursionError:
        raise InputError(f"{path}: lists or tables are nested too deeply; {page} shows the layout") from None


# What is read is not written. -----------------------------------------------------------------------------------------


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
    """Return where the manifest of a file lies: ``NAME.csv`` has ``NAME.manifest.json``.

    Where that is the one of another file beside it (``NAME.swf``), it has ``NAME.csv.manifest.json``.
    """
    path = artefact.with_name(f"{artefact.stem}.manifest.json")
    outputs = _outputs(path)
    # Of a name that no file can have, os.path says that there is none.
    if artefact.name not in outputs and any(os.path.exists(artefact.parent / name) for name in outputs):  # noqa: PTH110
        return artefact.with_name(f"{artefact.name}.manifest.json")
    return path


def _outputs(manifest: Path) -> set[str]:
    """Return the names of the files that a manifest is about; none if that cannot be read."""
    try:
        if not manifest.is_file():
            return set()
        with manifest.open("rb") as file:
            outputs = json.loads(file.read(_LARGEST_MANIFEST)).get("outputs")
        return {name for name in outputs if name not in {"", ".."} and name == Path(name).name}
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        return set()


def note_input(path: Path) -> None:
    """Note that the command reads a file.

    Raises
    ------
    UsageError
        If the command is to write it.
    """
    if _read is None or not path.name:
        return
    beside = manifest_path(path)
    outputs = _outputs(beside)
    for used in (path, beside) if path.name in outputs or not outputs else (path,):
        inode = _inode(used)
        if inode in _claimed:
            raise _is_input(used, path)
        if inode is not None:
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
        _claimed.add(inode)
    try:
        yield
    finally:
        if inode is not None:
            _claimed.discard(inode)


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


# Whom an input is from. -----------------------------------------------------------------------------------------------


def who_else(path: Path) -> str:
    """Say who else than this user and root can change a file or a folder, by its owner and its mode.

    A group that is the user's alone, as many systems make one for each user, is no one else.

    Parameters
    ----------
    path : Path
        Exists.

    Returns
    -------
    str
        What is wrong, with owner or mode; empty if nothing is.

    Raises
    ------
    OSError
        If it cannot be looked at.
    """
    status = path.stat()
    if status.st_uid not in {0, os.geteuid()}:
        return f"{path} belongs to {_name(status.st_uid, pwd.getpwuid)}"
    writers = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if writers & stat.S_IWGRP and _is_own_group(status.st_gid):
        writers &= ~stat.S_IWGRP
    if not writers:
        return ""
    who = "everybody" if writers & stat.S_IWOTH else f"group {_name(status.st_gid, grp.getgrgid)}"
    return f"{path} can be written by {who} (mode {stat.S_IMODE(status.st_mode):04o})"


def _is_own_group(number: int) -> bool:
    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


def _name(number: int, entry: Callable[[int], Sequence[Any]]) -> str:
    try:
        return str(entry(number)[0])
    except KeyError:
        return f"user {number}" if entry is pwd.getpwuid else str(number)
