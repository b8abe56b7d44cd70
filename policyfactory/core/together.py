"""Several files of one result take their names together: all or none, whether the disk is full or the run is killed.

Inside `together` a file is written under its temporary name only. At the end, when all are on the disk, a record of
what is to be renamed and removed is written into the folder of the first; from then on the result is decided. Who was
killed before has changed nothing. Who is killed after leaves the record, and the next command that reads or writes in
that folder does what it says (`complete`). A record counts only if it is the user's own and whole, and a file only if
it has the content that the record names.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from policyfactory.core import inputs
from policyfactory.core.errors import OutputError
from policyfactory.core.locks import has_name
from policyfactory.core.output import check_output, file_of, reason, reported
from policyfactory.core.writing import sync_folder, temporary, write_into, write_temporary

__all__ = ["atomic_write", "complete", "digest_of", "record_path", "remove_file", "together"]

_MARK = "policyfactory commit 1"
_LONGEST = 1 << 24  # bytes of a record


@dataclasses.dataclass(frozen=True, slots=True)
class _Staged:
    """A file under its temporary name: the output as it was given, its inode and its SHA-256."""

    path: Path
    inode: int
    digest: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done in a folder.

    ``replace`` has of each file its temporary name, its own, and its SHA-256; all names are relative to the folder.
    """

    replace: list[tuple[str, str, str]]
    remove: list[str]


class _Result:
    """What is written and removed inside one `together`."""

    def __init__(self) -> None:
        self.files: dict[Path, _Staged] = {}
        self.streams: list[tuple[Path, bytes]] = []
        self.removed: dict[Path, None] = {}

    def drop(self) -> None:
        """Remove what was written."""
        for where, staged in self.files.items():
            _unlink_inode(temporary(where), staged.inode)

    def put_in_place(self) -> None:
        """Give all files their names."""
        for where, staged in self.files.items():
            # It has its name already if a record of a killed run named the same content.
            if not (_is_inode(temporary(where), staged.inode) or _is_inode(where, staged.inode)):
                raise OutputError(f"{staged.path}: another run is writing it; nothing was changed")
        for path, content in self.streams:
            write_into(path, [content])
        folders = dict.fromkeys(where.parent for where in (*self.files, *self.removed))
        if len(self.files) + len(self.removed) > 1:
            self._put_several(_home(list(folders)))
        else:
            for where, staged in self.files.items():
                with reported(staged.path, "written", "nothing was changed"), contextlib.suppress(FileNotFoundError):
                    os.replace(temporary(where), where)  # noqa: PTH105 (system calls of writing are called by name)
                _sync(staged.path, [where])
            for where in self.removed:
                with reported(where, "written", "nothing was changed"):
                    where.unlink(missing_ok=True)

    def _put_several(self, folder: Path) -> None:
        plan = _Plan(
            [
                (os.path.relpath(temporary(where), folder), os.path.relpath(where, folder), staged.digest)
                for where, staged in self.files.items()
            ],
            [os.path.relpath(where, folder) for where in self.removed],
        )
        first = next((staged.path for staged in self.files.values()), folder)
        with _record(folder, first) as descriptor:
            try:
                _write(descriptor, plan)
                sync_folder(folder)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, 0)
                raise OutputError(f"{first}: cannot be written: {reason(error)}; nothing was changed") from None
            _carry_out(folder, plan, first)


_current: contextvars.ContextVar[_Result | None] = contextvars.ContextVar("_current", default=None)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Let all files that are written and removed inside take their names at the end, or none of them.

    Inside another one it is part of that. Pipes and devices get their content first.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    if _current.get() is not None:
        yield
        return
    result = _Result()
    token = _current.set(result)
    try:
        yield
    except BaseException:
        result.drop()
        raise
    finally:
        _current.reset(token)
    _put_in_place(result)


def atomic_write(path: Path, data: bytes | str | Iterable[bytes], *, executable: bool = False) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the whole new one, never a part.

    Inside `together` the file takes its name with the others. What does not fit into memory is given as parts, one
    after the other. What ``kill -9`` leaves of a file (``.NAME.tmp``) is removed by the next who writes it.

    Parameters
    ----------
    path : Path
        The output; a pipe or a device is written into.
    data : bytes, str or iterable of bytes
        The content.
    executable : bool
        Whether it can be run.

    Raises
    ------
    OutputError
        If the file cannot be written, or another process is writing it (the old one is untouched then).
    UsageError
        If the command has read it.
    """
    check_output(path)
    inputs.refuse_input(path)
    # Names of files that are no UTF-8 have surrogates in them, which are written as \udcff.
    content = data.encode(errors="backslashreplace") if isinstance(data, str) else data
    parts = [content] if isinstance(content, bytes) else content
    result = _current.get()
    where = file_of(path)
    if where is None:
        if result is None:
            write_into(path, parts)
        else:
            result.streams.append((path, b"".join(parts)))
        return
    complete(where.parent)
    if result is not None and where in result.files:
        _unlink_inode(temporary(where), result.files.pop(where).inode)
    staged = _Staged(path, *write_temporary(path, where, parts, executable=executable))
    if result is not None:
        result.removed.pop(where, None)
        result.files[where] = staged
        return
    alone = _Result()
    alone.files[where] = staged
    _put_in_place(alone)


def remove_file(path: Path) -> None:
    """Remove a file, inside `together` with the others.

    Raises
    ------
    UsageError
        If the command has read it.
    """
    inputs.refuse_input(path)
    result = _current.get()
    where = path.parent.resolve() / path.name
    if result is None:
        where.unlink(missing_ok=True)
    else:
        result.removed[where] = None


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file as it will be: of what is written inside `together`, or as it is."""
    result, where = _current.get(), file_of(path)
    if result is not None and where in result.files:
        return result.files[where].digest
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _home(folders: list[Path]) -> Path:
    """Return the folder of the record: that which all others are in, if it is one of them."""
    common = Path(os.path.commonpath(folders))
    return common if common in folders else folders[0]


def _put_in_place(result: _Result) -> None:
    """Give all files their names; once that is decided, an interruption does not stop it."""
    try:
        result.put_in_place()
    except BaseException as error:
        folders = [where.parent for where in (*result.files, *result.removed)]
        folder = _home(folders) if folders else None
        if folder is None or not _decided(folder):
            result.drop()
            raise
        complete(folder)
        if not isinstance(error, OutputError):
            raise


def record_path(folder: Path) -> Path:
    """Return where the record of a folder lies: each user has one."""
    return folder / f".policyfactory-commit-{os.geteuid()}"


# What is decided is done. ---------------------------------------------------------------------------------------------


def complete(folder: Path) -> None:
    """Do what the record in a folder says, if a killed command has left one.

    Raises
    ------
    OutputError
        If that is not possible.
    """
    try:
        found = record_path(folder).lstat()
    except OSError:
        return
    if not _is_own(found):
        return
    with _record(folder, folder):
        pass


@contextlib.contextmanager
def _record(folder: Path, path: Path) -> Iterator[int]:
    """Open the record of a folder, made if there is none, alone; an earlier one is carried out before."""
    name = record_path(folder)
    with reported(path, "written", "nothing was changed"):
        while True:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if has_name(name, descriptor):
                break
            os.close(descriptor)
    try:
        if not _is_own(os.fstat(descriptor)):
            raise OutputError(f"{name}: is not this user's own; remove it, or name another folder")
        earlier = _read(descriptor)
        if earlier is not None:
            _carry_out(folder, earlier, path)
        with reported(path, "written", "nothing was changed"):
            os.ftruncate(descriptor, 0)
        yield descriptor
        with reported(path, "written", f"the result is there, but {name} could not be removed"):
            name.unlink()
    finally:
        os.close(descriptor)


def _carry_out(folder: Path, plan: _Plan, path: Path) -> None:
    """Rename and remove what a plan says and is not done yet."""
    for source, target, digest in plan.replace:
        new, where = folder / source, folder / target
        with reported(path, "written", f"{where.name} has not got its name yet; run the command again"):
            if new == temporary(where) and _has_content(new, digest):
                os.replace(new, where)  # noqa: PTH105 (system calls of writing are called by name)
    for name in plan.remove:
        with reported(path, "written", f"the result is written, but {name} of the earlier one is still there"):
            gone = Path(os.path.normpath(folder / name))
            gone.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # until one is not empty
                for above in gone.parents:
                    above.rmdir()
    _sync(path, [folder / target for _, target, _ in plan.replace])


def _sync(path: Path, files: Iterable[Path]) -> None:
    with reported(path, "written", "it is there, but may not be on the disk yet"):
        for folder in dict.fromkeys(file.parent for file in files):
            sync_folder(folder)


def _write(descriptor: int, plan: _Plan) -> None:
    body = json.dumps({"mark": _MARK, **dataclasses.asdict(plan)}).encode()
    left = memoryview(body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n")
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def _read(descriptor: int) -> _Plan | None:
    """Return the plan of a record; None if it was not written to its end, and so nothing is decided."""
    body, _, rest = os.pread(descriptor, _LONGEST, 0).partition(b"\n")
    if rest.strip() != hashlib.sha256(body).hexdigest().encode():
        return None
    content = json.loads(body)
    if content["mark"] != _MARK:
        return None
    return _Plan([(new, name, digest) for new, name, digest in content["replace"]], content["remove"])


def _decided(folder: Path) -> bool:
    """Say whether the record of a folder is there, whole."""
    try:
        descriptor = os.open(record_path(folder), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return _read(descriptor) is not None
    finally:
        os.close(descriptor)


def _is_own(status: os.stat_result) -> bool:
    own = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return own and stat.S_ISREG(status.st_mode)


def _has_content(path: Path, digest: str) -> bool:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
    except FileNotFoundError:
        return False  # renamed already


def _is_inode(path: Path, inode: int) -> bool:
    try:
        return path.lstat().st_ino == inode
    except OSError:
        return False


def _unlink_inode(path: Path, inode: int) -> None:
    with contextlib.suppress(OSError):
        if _is_inode(path, inode):
            path.unlink()
