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
import fcntl
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from policyfactory.core import inputs
from policyfactory.core.errors import OutputError
from policyfactory.core.text import json_text
from policyfactory.core.version import __version__

# Of a file system that does not know how: there is nothing to wait for.
_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES}
_UNCHANGED = "nothing was changed"
_OTHER_RUN = f"another run is writing it; {_UNCHANGED}; wait for that run, or name another output"
_ELSEWHERE = "mend that, or name an output elsewhere"


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
                raise OutputError(f"{staged.path}: {_OTHER_RUN}")
        for path, content in self.streams:
            _write_into(path, [content])
        try:
            self._rename()
        except KeyboardInterrupt:
            # It is decided: a signal leaves no half of them.
            self._rename()
            raise

    def _rename(self) -> None:
        state = f"{_UNCHANGED}; {_ELSEWHERE}"
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
    if where is not None:
        _write_file(path, where, parts, executable=executable)
        return
    with together() as result:
        result.streams.append((path, b"".join(parts)))


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


def _write_file(path: Path, where: Path, parts: Iterable[bytes], *, executable: bool) -> None:
    """Write a file under its temporary name, wait for the disk, and make it part of the result.

    Nothing is left of one that cannot be written, or of which a signal is the end.
    """
    name = _temporary(where)
    descriptor = locked(path, name, anew=True)
    inode = os.fstat(descriptor).st_ino
    try:
        digest = _write(descriptor, parts)
        _copy_owner(descriptor, where, executable=executable)
        os.fsync(descriptor)
        if not is_inode(name, inode):
            # Only where the file system has no locks.
            raise OutputError(f"{path}: {_OTHER_RUN}")
        # Only now: the parts may come from what writes files of its own.
        with together() as result:
            result.files[where] = _Staged(path, inode, digest)
            result.removed.pop(where, None)
    except BaseException as error:
        unlink(name, inode)
        if isinstance(error, OSError):
            raise OutputError(f"{path}: cannot be written: {reason(error)}; {_UNCHANGED}; {_ELSEWHERE}") from None
        raise
    finally:
        os.close(descriptor)


def _write_into(path: Path, parts: Iterable[bytes]) -> None:
    """Write into a pipe, a device or an open file."""
    where = destination(path)
    with reported(path, "written", f"it may have got a part; {_ELSEWHERE}"):
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


def _copy_owner(descriptor: int, where: Path, *, executable: bool) -> None:
    """Give a new file the owner, where that is allowed, and the mode of the one that it replaces."""
    status = os.fstat(descriptor)
    mode = stat.S_IMODE(status.st_mode)
    with contextlib.suppress(FileNotFoundError):
        earlier = where.stat()
        mode = stat.S_IMODE(earlier.st_mode) & 0o777
        for owner in (earlier.st_uid, -1):
            with contextlib.suppress(PermissionError):
                os.fchown(descriptor, owner, earlier.st_gid)
                break
    if executable:
        mode |= 0o111
    if mode != stat.S_IMODE(status.st_mode):
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
        mixed = there.is_dir() or any(folder.is_relative_to(path) for folder in ours)
        if mixed and path.is_dir() and not path.is_symlink():
            _keep_others(path, there, ours)
        elif path not in ours and not os.path.lexists(there):
            new.mkdir(parents=True, exist_ok=True)
            path.rename(there)


# What an output may be, and that one run at a time writes it ----------------------------------------------------------

# The rules of every output of every command:
#
# - A file is written as ``.NAME.tmp`` and takes its name when it is whole and on the disk. It keeps the mode of the one
#   that it replaces, and its owner where that is allowed.
# - Several files that are written inside `together` are all whole before the first takes its name.
# - A link is followed, as by ``>`` in a shell: it stays, and what it points to is replaced. A link of another user in a
#   folder that everybody writes (``/tmp``) is refused.
# - A pipe, a device, or an open file of the process (``/dev/stdout``) is written into and never replaced. Where more
#   files lie beside an output, it is refused.
# - A file that the same command reads is no output (`policyfactory.core.inputs`).
# - One run at a time writes an output. Locks belong to the process and go with it, also after ``kill -9``.


_MOST_LINKS = 40

_created: list[Path] = []


# What can be written. -------------------------------------------------------------------------------------------------


def destination(path: Path) -> Path | int:
    """Return what an output stands for: its file with all links followed, or the number of an open file of ours.

    Raises
    ------
    OutputError
        If there is a link of another user in a folder that everybody writes, or links lead in a circle.
    """
    link = path
    for _ in range(_MOST_LINKS):
        folder = Path(os.path.realpath(link.parent))
        if str(folder) == f"/proc/{os.getpid()}/fd" and link.name.isdigit():
            return int(link.name)
        if not link.is_symlink():
            return folder / link.name
        above = folder.stat()
        shared = above.st_mode & stat.S_ISVTX and above.st_mode & stat.S_IWOTH
        if shared and link.lstat().st_uid not in {os.geteuid(), above.st_uid}:
            raise OutputError(
                f"{path}: {link} is a link of another user in a folder that everybody writes; choose another"
            )
        link = folder / link.readlink()
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
    absent = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be created: {error.strerror}; choose another folder") from None
    _created.extend(folder.absolute() for folder in absent)
    check_output(path / "probe")
    return path


@contextlib.contextmanager
def no_empty_folders() -> Iterator[None]:
    """Remove the folders that were made inside and have nothing in them: a command that changed nothing leaves none."""
    before = len(_created)
    try:
        yield
    finally:
        created = _created[before:]
        del _created[before:]
        # The deepest first.
        for folder in sorted(created, key=lambda path: -len(path.parts)):
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
def exclusive(*paths: Path | None, overwrite: bool = True) -> Iterator[None]:
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
        if not overwrite:
            refuse_earlier(*paths, overwrite=False)
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


# Files that say how they were made ------------------------------------------------------------------------------------


MANIFEST_SCHEMA = 1
_PACKAGES = ("numpy", "scipy", "numba", "pandas", "statsmodels", "scikit-learn", "joblib", "sympy", "matplotlib")


def command_line() -> str:
    """Return the command that is running, as it could be typed again."""
    import shlex

    program = Path(sys.argv[0]).name if sys.argv else "python"
    if program == "__main__.py":
        program = "policyfactory"
    return shlex.join([program, *sys.argv[1:]])


@functools.cache
def package_versions() -> dict[str, str]:
    """Return the versions of policyfactory, Python and the libraries that can change a number."""
    versions = {"policyfactory": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def dump_json(value: Any) -> str:
    r"""Return ``value`` as JSON text: sorted keys, indented, one newline at the end, NaN refused.

    What would hide or reorder text is written as ``\u202e``; so are, of a file's name that is no UTF-8, the bytes that
    are none (``\udcff``). Both are read so again.
    """
    return json_text(json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def dump_toml(content: Mapping[str, Any]) -> str:
    """Return ``content`` as TOML; reading it gives equal content, and nothing in it is hidden from the eye.

    Parameters
    ----------
    content : mapping
        Strings, integers, floats, booleans, lists and mappings of these; None leaves an entry out.

    Raises
    ------
    TypeError
        If a value is of another type.
    """
    import tomli_w

    # On lines of their own, texts would lose the carriage returns at their lines' ends.
    text = tomli_w.dumps(_without_none(content), multiline_strings="\\r" not in repr(content), indent=2)
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [_without_none(entry) for entry in value]
    return value


def _escaped(character: str) -> str:
    if 0xD800 <= ord(character) < 0xE000:
        # A byte of a file's name that is no UTF-8: TOML has no way to write it, so its number stands in the text.
        return f"\\\\u{ord(character):04x}"
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


@dataclasses.dataclass(frozen=True, slots=True)
class Manifest:
    """How an artefact was made.

    Parameters
    ----------
    kind : str
        What the artefact is, for example ``"score-table"``.
    command : str
        The command that made it.
    seed : int or None
        The seed of its random numbers.
    inputs : mapping of str to str
        Name of each input and its SHA-256.
    parameters : mapping
        The settings that determine the content.
    measured : mapping
        What was measured while it was made (speed, seconds); differs from run to run.
    """

    kind: str
    command: str
    seed: int | None
    inputs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    measured: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    outputs: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the manifest as plain JSON values, with schema version and package versions."""
        return {"schema_version": MANIFEST_SCHEMA, **dataclasses.asdict(self), "versions": package_versions()}

    def write(self, path: Path) -> None:
        """Write the manifest as JSON."""
        atomic_write(path, dump_json(self.as_dict()))

    @classmethod
    def write_beside(
        cls,
        output: Path,
        kind: str,
        seed: int | None,
        *,
        inputs: Mapping[str, str],
        parameters: Mapping[str, Any],
        command: str = "",
    ) -> None:
        """Write beside a file how it was made: by the command that runs, if no other is given."""
        found = cls(kind, command or command_line(), seed, inputs, parameters, outputs={output.name: digest_of(output)})
        found.write(cls.path_for(output))

    @staticmethod
    def path_for(artefact: Path) -> Path:
        """Return where the manifest of ``artefact`` lies: see `policyfactory.core.inputs.manifest_path`."""
        return inputs.manifest_path(artefact)
