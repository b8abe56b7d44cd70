"""How results get to the disk: written beside, synced, renamed; pipes and devices are written into.

A file is whole or not there. Several files of one result are all whole before the first takes its name; who is killed
while they are renamed leaves some of each, and the manifest that goes with them names the digests of its own. A folder
that replaces an earlier result is built beside and takes its name as a whole.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from policyfactory.core import inputs
from policyfactory.core.errors import OutputError
from policyfactory.core.outputs import check_output, destination, file_of, is_inode, locked, reason, reported, unlink

__all__ = ["atomic_write", "digest_of", "remove_file", "replaced_whole", "sync_folder", "together"]

# Of a file system that does not know how: there is nothing to wait for.
_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES}
_UNCHANGED = "nothing was changed"


@dataclasses.dataclass(frozen=True, slots=True)
class _Staged:
    """A file under its temporary name: the output as it was given, its inode and its SHA-256."""

    path: Path
    inode: int
    digest: str


class _Result:
    """What is written and removed inside one `together`."""

    def __init__(self) -> None:
        self.files: dict[Path, _Staged] = {}
        self.streams: list[tuple[Path, bytes]] = []
        self.removed: dict[Path, None] = {}

    def drop(self) -> None:
        """Remove what was written and has no name yet."""
        for where, staged in self.files.items():
            unlink(_temporary(where), staged.inode)

    def put_in_place(self) -> None:
        """Give all files their names."""
        for where, staged in self.files.items():
            if not is_inode(_temporary(where), staged.inode):
                raise OutputError(f"{staged.path}: another run is writing it; {_UNCHANGED}")
        for path, content in self.streams:
            _write_into(path, [content])
        try:
            self._rename()
        except KeyboardInterrupt:
            # It is decided: a signal leaves no half of them.
            self._rename()
            raise

    def _rename(self) -> None:
        state = _UNCHANGED
        for where, staged in self.files.items():
            with reported(staged.path, "written", state), contextlib.suppress(FileNotFoundError):
                os.replace(_temporary(where), where)  # noqa: PTH105 (system calls of writing are called by name)
            state = "other files of the result are there already; run the command again"
        for where in self.removed:
            with reported(where, "removed", state):
                where.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # until one is not empty
                for above in where.parents:
                    above.rmdir()
        for folder, staged in {where.parent: staged for where, staged in self.files.items()}.items():
            with reported(staged.path, "written", "it is there, but may not be on the disk yet"):
                sync_folder(folder)


_current: contextvars.ContextVar[_Result | None] = contextvars.ContextVar("_current", default=None)


@contextlib.contextmanager
def together() -> Iterator[_Result]:
    """Let all files that are written and removed inside take their names at the end, when all are whole.

    Inside another one it is part of that. Pipes and devices get their content first.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    result = _Result()
    token = _current.set(result)
    try:
        try:
            yield result
        finally:
            _current.reset(token)
        result.put_in_place()
    except BaseException:
        result.drop()
        raise


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
    where = file_of(path)
    if where is None and _current.get() is None:
        _write_into(path, parts)
        return
    # Before it is part of anything: the parts may come from what writes files of its own.
    staged = None if where is None else _write_temporary(path, where, parts, executable=executable)
    with together() as result:
        if where is None or staged is None:
            result.streams.append((path, b"".join(parts)))
        else:
            result.files[where] = staged
            result.removed.pop(where, None)


def remove_file(path: Path) -> None:
    """Remove a file, and the folders that are empty then; inside `together` with the others.

    Raises
    ------
    UsageError
        If the command has read it.
    """
    inputs.refuse_input(path)
    with together() as result:
        result.removed[path.parent.resolve() / path.name] = None


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file as it will be: of what is written inside `together`, or as it is."""
    result, where = _current.get(), file_of(path)
    if result is not None and where in result.files:
        return result.files[where].digest
    return inputs.sha256_file(path)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the file system can tell."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def _temporary(where: Path) -> Path:
    """Return the name that a file has while it is written."""
    return where.with_name(f".{where.name}.tmp")


def _write_temporary(path: Path, where: Path, parts: Iterable[bytes], *, executable: bool) -> _Staged:
    """Write a file under its temporary name and wait for the disk; nothing is left of one that cannot be written."""
    name = _temporary(where)
    descriptor = locked(path, name, anew=True)
    inode = os.fstat(descriptor).st_ino
    try:
        digest = _write(descriptor, parts)
        _take_over(descriptor, where, executable=executable)
        os.fsync(descriptor)
        if not is_inode(name, inode):
            # Only where the file system has no locks.
            raise OutputError(f"{path}: another run is writing it; {_UNCHANGED}")
    except BaseException as error:
        unlink(name, inode)
        if isinstance(error, OSError):
            raise OutputError(f"{path}: cannot be written: {reason(error)}; {_UNCHANGED}") from None
        raise
    finally:
        os.close(descriptor)
    return _Staged(path, inode, digest)


def _write_into(path: Path, parts: Iterable[bytes]) -> None:
    """Write into a pipe, a device or an open file."""
    where = destination(path)
    with reported(path, "written", "it may have got a part"):
        descriptor = os.dup(where) if isinstance(where, int) else os.open(where, os.O_WRONLY | os.O_NOCTTY)
        try:
            _write(descriptor, parts)
        finally:
            os.close(descriptor)


def _write(descriptor: int, parts: Iterable[bytes]) -> str:
    """Write parts; return the SHA-256 of all."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
        left = memoryview(part)
        while left:
            left = left[os.write(descriptor, left) :]
    return digest.hexdigest()


def _take_over(descriptor: int, where: Path, *, executable: bool) -> None:
    """Give a new file the owner, where that is allowed, and the mode of the one that it replaces."""
    own = os.fstat(descriptor)
    mode = stat.S_IMODE(own.st_mode)
    with contextlib.suppress(FileNotFoundError):
        earlier = where.stat()
        mode = stat.S_IMODE(earlier.st_mode) & 0o777
        for owner in (earlier.st_uid, -1):
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, owner, earlier.st_gid)
                break
    if executable:
        mode |= 0o111
    if mode != stat.S_IMODE(own.st_mode):
        os.fchmod(descriptor, mode)


# A folder that takes the place of an earlier one. ---------------------------------------------------------------------


@contextlib.contextmanager
def replaced_whole(
    folder: Path, earlier: Iterable[str], *, kept: Collection[str] = (), in_place: bool = True
) -> Iterator[Path]:
    """Give the folder in which to build what takes the place of an earlier result at the end.

    What an interrupted run has built is found there again. Where there is no earlier result, it is the folder itself.

    Parameters
    ----------
    folder : Path
        Exists, and is held by `exclusive`.
    earlier : iterable of str
        The files of the earlier result, relative to the folder. They are gone at the end; all others stay.
    kept : collection of str
        Those of them that the new result begins with.
    in_place : bool
        Whether all files are written `together` at the end, so that a folder that cannot be moved (the current one, a
        mount point, one in a folder that cannot be written to) can be given as it is; else it is refused.

    Raises
    ------
    OutputError
        If the folder beside cannot be made or used, or the two cannot change places; the earlier result is as it was.
    UsageError
        If the command has read a file of the earlier result.
    """
    real = Path(os.path.realpath(folder))
    new, old = (real.with_name(f".{real.name or 'root'}.policyfactory-{word}") for word in ("new", "old"))
    names = [name for name in dict.fromkeys(earlier) if (folder / name).is_file()]
    for name in names:
        inputs.refuse_input(folder / name)
    if os.path.lexists(old):
        raise OutputError(
            f"{old}: is the earlier result of {folder}, which a run that was killed has replaced; move what you need "
            f"of it to {folder}, remove it, and run the command again"
        )
    if not names or not _can_move(real):
        if names and not in_place:
            raise OutputError(
                f"{folder}: has an earlier result, which is replaced whole, and cannot be moved: it is the current "
                "folder or a mount point, or its folder is not yours to write; run the command from another folder, "
                "or name another --output"
            )
        yield folder
        return
    with reported(folder, "replaced", "the earlier result is as it was"):
        if not os.path.lexists(new):
            new.mkdir()
            new.chmod(stat.S_IMODE(real.stat().st_mode))
            with contextlib.suppress(PermissionError):
                os.chown(new, -1, real.stat().st_gid)
            for name in kept:
                if name in names:
                    shutil.copy2(real / name, new / name)
        elif new.is_symlink() or not new.is_dir() or new.stat().st_uid != os.geteuid():
            raise OutputError(f"{new}: is no folder of this user, and would be used for {folder}; remove it")
    yield new
    with reported(
        folder, "replaced", f"the earlier result is as it was, the new one in {new}; run the same command again"
    ):
        for top, _, _ in os.walk(new):
            sync_folder(Path(top))
        try:
            real.rename(old)
            new.rename(real)
        except BaseException:
            if not os.path.lexists(real):
                old.rename(real)
            raise
    with reported(folder, "replaced", f"the new result is there, the rest of the earlier one in {old}"):
        _keep_others(old, real, {old / name for name in names})
        shutil.rmtree(old)
        sync_folder(real.parent)


def _can_move(real: Path) -> bool:
    """Say whether a folder can change its name: nobody of us is in it, and nothing is mounted there."""
    if Path(os.path.realpath(Path.cwd())).is_relative_to(real) or os.path.ismount(real):
        return False
    return os.access(real.parent, os.W_OK | os.X_OK, effective_ids=True) and real.lstat().st_uid == os.geteuid()


def _keep_others(old: Path, new: Path, ours: Collection[Path]) -> None:
    """Give the new folder what lies in the old one and was no part of its result."""
    for path in [*old.iterdir()]:
        there = new / path.name
        mixed = there.is_dir() or any(one.is_relative_to(path) for one in ours)
        if mixed and path.is_dir() and not path.is_symlink():
            _keep_others(path, there, ours)
        elif path not in ours and not os.path.lexists(there):
            new.mkdir(parents=True, exist_ok=True)
            path.rename(there)
