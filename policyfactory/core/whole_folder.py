"""A folder of results that is replaced is built beside and takes the other's place as a whole.

The new folder is built while the earlier one stays as it is; at the end the two change names in one step, so that
nobody sees half of each, whenever the run is killed. What else lies in the folder is carried over. On a file system
that cannot exchange two names the earlier folder is set aside for a moment. Whatever a killed run leaves is finished
by the next that writes the folder.

A folder that cannot be moved (the current one, a mount point, one in a folder that cannot be written to) is written in
place, its files together (`policyfactory.core.together`).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from policyfactory.core import inputs
from policyfactory.core.errors import OutputError
from policyfactory.core.output import reported
from policyfactory.core.together import complete
from policyfactory.core.writing import sync_folder, temporary, write_temporary

__all__ = ["recover", "replaced_whole"]

# What a folder is: one that is being built, one that is whole, and the earlier one, whose files are named in it.
_BUILDING, _WHOLE, _EARLIER = (f".policyfactory-{word}" for word in ("building", "whole", "earlier"))
_MOST_OTHERS = 10_000
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_CANNOT_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}


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
        Whether all files are written `together` at the end, so that a folder that cannot be moved can be given as it
        is; else it is refused.

    Raises
    ------
    OutputError
        If the folder beside cannot be made or used, or the two cannot change places; the earlier result is as it was.
    UsageError
        If the command has read a file of the earlier result.
    """
    recover(folder)
    names = [name for name in dict.fromkeys(earlier) if (folder / name).is_file()]
    for name in names:
        inputs.refuse_input(folder / name)
    if not names or not _can_move(folder) or _others(folder, names) is None:
        if names and not in_place:
            raise OutputError(
                f"{folder}: has an earlier result, which is replaced whole, and cannot be moved: it is the current "
                "folder or a mount point, or others have folders in or above it; run the command from another folder, "
                "or name another --output"
            )
        yield folder
        return
    real, new = Path(os.path.realpath(folder)), _beside(folder, "new")
    with reported(folder, "replaced", "the earlier result is as it was"):
        _begin(new, real, [name for name in names if name in kept])
    complete(new)
    yield new
    with reported(
        folder, "replaced", f"the earlier result is as it was, the new one in {new}; run the same command again"
    ):
        for name in _others(real, names) or ():
            if not os.path.lexists(new / name):
                _carry(real / name, new / name)
        (new / _BUILDING).rename(new / _WHOLE)
        _sync_all(new)
        # From here on it is decided, and `recover` does the rest.
        _write_names(real / _EARLIER, names)
    _change_places(real, new)


def recover(folder: Path) -> None:
    """Finish what a killed run has left of a change of places.

    Raises
    ------
    OutputError
        If that is not possible, or something else has the name of the folder that is built.
    """
    real, new, old = Path(os.path.realpath(folder)), _beside(folder, "new"), _beside(folder, "old")
    for beside in (new, old):
        if os.path.lexists(beside) and not _is_own_folder(beside):
            raise OutputError(f"{beside}: is no folder of this user, and would be used for {folder}; remove it")
    if (new / _WHOLE).exists() and (real / _EARLIER).exists():
        _change_places(real, new)
    with reported(folder, "replaced", "run the same command again"):
        if (new / _WHOLE).exists():
            if (old / _EARLIER).exists() and not os.path.lexists(real):
                new.rename(real)
            else:
                (new / _WHOLE).rename(new / _BUILDING)
        for beside in (new, old):
            if (beside / _EARLIER).exists() and real.is_dir():
                _clear_away(real, beside)
            elif beside.is_dir() and not any(beside.iterdir()):
                beside.rmdir()
        if real.is_dir():
            (real / _WHOLE).unlink(missing_ok=True)


def _beside(folder: Path, suffix: str) -> Path:
    real = Path(os.path.realpath(folder))
    return real.with_name(f".{real.name or 'root'}.policyfactory-{suffix}")


def _is_own_folder(path: Path) -> bool:
    return not path.is_symlink() and path.is_dir() and path.lstat().st_uid == os.geteuid()


def _can_move(folder: Path) -> bool:
    """Say whether a folder can change its name: nobody of us is in it, and nothing is mounted there."""
    real = Path(os.path.realpath(folder))
    here = Path(os.path.realpath(Path.cwd()))
    if here.is_relative_to(real) or os.path.ismount(real):
        return False
    return os.access(real.parent, os.W_OK | os.X_OK, effective_ids=True) and real.lstat().st_uid == os.geteuid()


def _others(folder: Path, names: Iterable[str]) -> list[str] | None:
    """Return what else lies below a folder, relative to it; None if not all of it can be carried over.

    That is so if it is too much, on another file system, or in folders of others.
    """
    ours, device = set(names), folder.stat().st_dev
    others: list[str] = []
    for top, folders, files in os.walk(folder):
        at = Path(top)
        if at.stat().st_dev != device or not os.access(at, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
            return None
        links = [name for name in folders if (at / name).is_symlink()]
        empty = [name for name in folders if name not in links and not any((at / name).iterdir())]
        found = [(at / name).relative_to(folder).as_posix() for name in (*files, *links, *empty)]
        others += [name for name in found if name not in ours and _EARLIER not in Path(name).name]
        if len(others) > _MOST_OTHERS:
            return None
    return others


def _begin(new: Path, real: Path, kept: Iterable[str]) -> None:
    """Make the folder beside, unless an interrupted run has; give it what the new result begins with."""
    if (new / _BUILDING).exists():
        return
    new.mkdir(exist_ok=True)
    if any(new.iterdir()):
        raise OutputError(f"{new}: is not empty, and would be used for {real}; remove it")
    status = real.stat()
    new.chmod(status.st_mode & 0o7777)
    with contextlib.suppress(PermissionError):
        os.chown(new, -1, status.st_gid)
    for name in kept:
        _carry(real / name, new / name)
    (new / _BUILDING).touch()


def _carry(source: Path, target: Path) -> None:
    """Give a file, a link or an empty folder a second name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir() and not source.is_symlink():
        target.mkdir(exist_ok=True)
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        return
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EXDEV, errno.ENOSYS}:
            raise
        shutil.copy2(source, target, follow_symlinks=False)


def _sync_all(folder: Path) -> None:
    for top, _, _ in os.walk(folder):
        sync_folder(Path(top))


def _change_places(real: Path, new: Path) -> None:
    """Let the new folder take the name of the earlier one; remove that."""
    beside = new
    with reported(
        real, "replaced", f"the earlier result is as it was, the new one in {new}; run the same command again"
    ):
        try:
            _exchange(new, real)
        except OSError as error:
            if error.errno not in _CANNOT_EXCHANGE:
                raise
            beside = _beside(real, "old")
            real.rename(beside)
            try:
                new.rename(real)
            except OSError:
                beside.rename(real)
                raise
    with reported(real, "replaced", f"the new result is there, the rest of the earlier one in {beside}"):
        sync_folder(real.parent)
        _clear_away(real, beside)
        (real / _WHOLE).unlink()


def _write_names(path: Path, names: Iterable[str]) -> None:
    """Write the names of the files of a result, whole or not at all."""
    write_temporary(path, path, [json.dumps(list(names)).encode()])
    temporary(path).replace(path)


def _exchange(one: Path, other: Path) -> None:
    """Exchange two names in one step (Linux)."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _clear_away(real: Path, beside: Path) -> None:
    """Remove the earlier result; what others have put there meanwhile goes to the new one."""
    ours = set(json.loads((beside / _EARLIER).read_text(encoding="ascii")))
    for top, folders, files in os.walk(beside, topdown=False):
        at = Path(top)
        links = [name for name in folders if (at / name).is_symlink()]
        for name in (*files, *links):
            own, relative = at / name, (at / name).relative_to(beside)
            if name == _EARLIER:
                continue
            if relative.as_posix() in ours or os.path.lexists(real / relative):
                own.unlink()
            else:
                (real / relative).parent.mkdir(parents=True, exist_ok=True)
                own.rename(real / relative)
        for name in folders:
            if name not in links:
                (at / name).rmdir()
    # Last, since it says what the others are.
    (beside / _EARLIER).unlink()
    beside.rmdir()
