"""The file of finished pieces: what an interrupted run leaves, and the same command goes on from.

``NAME.partial`` begins with one line that says which run it belongs to: a mark, a checksum, and the run as JSON. Each
further line is one finished piece: a checksum, the piece's number, and what was found. The checksum of a piece is also
one of the run, so that no piece can be taken for one of another run. A line is written by one call of the system, so
after Ctrl-C or ``kill -9`` at most the last one is torn; it is cut off and its piece is done again. So is a piece whose
line does not match its checksum. Where the first line itself is damaged, the pieces that match this run are kept.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from policyfactory.core.artefact import atomic_write, package_versions
from policyfactory.core.errors import OutputError

__all__ = ["Journal", "claim", "library_versions", "partial_path", "read_head"]

_MARK = b"policyfactory partial result"
_CHECK = 16
_BEFORE = len(_MARK) + 1 + _CHECK + 1  # bytes of the first line before the run
_HEAD = 1 << 20
_LONGEST = 1 << 26
_SYNC = 5.0  # seconds between two calls that wait for the disk
# Another version of one of these may differ in the last bits of a number.
_LIBRARIES = ("numba", "numpy", "scipy")


def partial_path(output: Path) -> Path:
    """Return where the finished pieces of an unfinished output lie: ``NAME.csv`` has ``NAME.csv.partial``."""
    return output.with_name(f"{output.name}.partial")


def library_versions() -> dict[str, str]:
    """Return the versions that belong to a run beside its options: pieces of different ones are not mixed."""
    return {name: version for name, version in package_versions().items() if name in _LIBRARIES}


def read_head(path: Path) -> dict[str, Any] | None:
    """Return the run that a partial file belongs to, None if there is no such file.

    Raises
    ------
    OutputError
        If the file is not a file of finished pieces, or its first line is damaged.
    """
    first = _first_line(path, _HEAD)
    head = None if first is None else _parse(first)
    if first is not None and head is None:
        raise _stranger(path)
    return head


def _first_line(path: Path, longest: int) -> bytes | None:
    """Return the first line of a file, None if there is no file."""
    if not path.exists():
        return None
    if not path.is_file():
        raise OutputError(
            f"{path}: is a pipe, a device or a directory, where finished pieces are to be kept; remove it or name "
            "another output"
        )
    try:
        with path.open("rb") as file:
            return file.readline(longest)
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror}; check its permissions") from None


def _parse(first: bytes) -> dict[str, Any] | None:
    """Return the run that a first line names, None if it does not match its checksum; its mark may be damaged."""
    content = first[_BEFORE:-1]
    if not first.endswith(b"\n") or first[len(_MARK) + 1 : _BEFORE - 1] != _checksum(content):
        return None
    try:
        head = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return head if isinstance(head, dict) else None


def _stranger(path: Path) -> OutputError:
    return OutputError(
        f"{path}: is not a file of finished pieces, and would be overwritten; remove it or name another output"
    )


class _Head:
    """The first line of the file of a run.

    Parameters
    ----------
    run : mapping
        The run (JSON values).
    """

    def __init__(self, run: Mapping[str, Any]) -> None:
        content = json.dumps(run, sort_keys=True).encode("ascii")
        self.run = json.loads(content)
        self.line = b"%b %b %b\n" % (_MARK, _checksum(content), content)
        self.digest = hashlib.sha256(content).digest()

    def run_of(self, path: Path) -> dict[str, Any] | None:
        """Return the run that a file names; None if there is no file, or its first line is damaged.

        Raises
        ------
        OutputError
            If the file is not one of finished pieces by its mark, its checksum, or a piece of this run.
        """
        first = _first_line(path, max(_HEAD, len(self.line)))
        if first is None or first == self.line:
            return None if first is None else self.run
        run = _parse(first)
        if run is not None or first.startswith(_MARK):
            return run
        # Cut off in its first line, it has nothing to lose.
        if self.line.startswith(first) and path.stat().st_size == len(first):
            return None
        with path.open("rb") as file:
            if any(_check(line, self.digest) for _, line, _ in _lines(file)):
                return None
        raise _stranger(path)

    def is_whole(self, path: Path) -> bool:
        """Say whether the first line of a file is this one, byte by byte."""
        return _first_line(path, max(_HEAD, len(self.line))) == self.line

    def begin(self, path: Path) -> int:
        """Return where the pieces begin in a file whose first line is damaged."""
        with path.open("rb") as file:
            first = file.read(len(self.line))
            if first[:-1] == self.line[:-1]:
                return len(first)  # only its end is damaged
            file.seek(0)
            for _ in _lines(file):
                break
            return file.tell()


def claim(
    path: Path,
    head: Mapping[str, Any],
    what: str,
    difference: Callable[[Mapping[str, Any], Mapping[str, Any]], str],
    *,
    overwrite: bool,
) -> None:
    """Make sure that a partial file, if there is one, belongs to a run; one of another run goes with ``overwrite``.

    Parameters
    ----------
    path : Path
        The file.
    head : mapping
        The run (JSON values).
    what : str
        What its pieces are, in the plural.
    difference : callable
        Returns in words in what two runs differ: that of the file and this one.
    overwrite : bool
        Whether the file of another run may be removed.

    Raises
    ------
    OutputError
        If the file belongs to another run or is no partial file, and ``overwrite`` is not given.
    """
    wanted = _Head(head)
    try:
        found = wanted.run_of(path)
    except OutputError:
        if not overwrite or not path.is_file():
            raise
        path.unlink()
        return
    if found is None or found == wanted.run:
        return
    if not overwrite:
        if not wanted.run.keys() <= found.keys():
            lacking = ", ".join(sorted(wanted.run.keys() - found.keys()))
            raise OutputError(
                f"{path}: holds finished {what}, but does not say of which run (its first line lacks {lacking}); "
                "--overwrite drops it, or name another --output"
            )
        raise OutputError(
            f"{path}: holds finished {what} of a run with {difference(found, wanted.run)}; give the same options to go "
            "on with it, --overwrite to drop it, or another --output"
        )
    path.unlink()


class Journal:
    """The finished pieces of one run on disk; memory holds 8 bytes a piece.

    Parameters
    ----------
    path : Path
        The file; made if there is none.
    head : mapping
        The run (JSON values).
    count : int
        How many pieces the run has.
    usable : callable, optional
        Says whether what was found of a piece can be used; a piece that cannot is damaged.

    Raises
    ------
    OutputError
        If the file is of another run or none of finished pieces, or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        head: Mapping[str, Any],
        count: int,
        usable: Callable[[int, bytes], bool] = lambda _number, _found: True,
    ) -> None:
        self.path = path
        self.damaged = 0
        self.head_damaged = False
        self._usable = usable
        self._offsets = np.full(count, -1, dtype=np.int64)
        self._synced = time.monotonic()
        here = _Head(head)
        self._digest = here.digest
        if not path.exists():
            atomic_write(path, here.line)
        elif here.run_of(path) not in (None, here.run):
            raise OutputError(f"{path}: holds the finished pieces of another run; remove it or name another output")
        elif not here.is_whole(path):
            self.head_damaged = True
            atomic_write(path, self._rescued(here))
        try:
            self._file: BinaryIO = path.open("r+b", buffering=0)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}; check its permissions") from None
        try:
            self._end = self._scan(len(here.line))
            self._file.truncate(self._end)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()

    def __len__(self) -> int:
        return int((self._offsets >= 0).sum())

    def missing(self) -> list[int]:
        """Return the numbers of the pieces that are still to be done."""
        return [int(number) for number in np.flatnonzero(self._offsets < 0)]

    def in_words(self) -> str:
        """Return what was damaged and is done again; empty if nothing was."""
        words = [f"the first line of {self.path} was damaged and is written anew"] * self.head_damaged
        words += [f"{self.damaged:,} damaged ones are done again"] * bool(self.damaged)
        return ", ".join(words)

    def _rescued(self, here: _Head) -> Iterator[bytes]:
        """Give the right first line and the pieces that are of this run; count the others."""
        yield here.line
        begin = here.begin(self.path)
        with self.path.open("rb") as file:
            file.seek(begin)
            for _, line, _ in _lines(file):
                if _check(line, self._digest) is None:
                    self.damaged += 1
                else:
                    yield line

    def _scan(self, begin: int) -> int:
        """Note where each whole record lies from ``begin`` on; return the end of the last whole line."""
        end = begin
        with self.path.open("rb") as file:
            file.seek(begin)
            for at, line, whole in _lines(file):
                if not whole:
                    self.damaged += 1
                    break
                record = _check(line, self._digest)
                if record is not None and record[0] < len(self._offsets) and self._usable(*record):
                    self._offsets[record[0]] = at
                else:
                    self.damaged += 1
                end = file.tell()
        return end

    def append(self, number: int, found: bytes) -> None:
        """Keep what was found of piece ``number``: bytes without a line break.

        Every few seconds it waits until the disk has all of them, so that a power loss costs seconds of work.

        Raises
        ------
        OutputError
            If the disk does not take them, or they are no record.
        """
        body = b"%d %b" % (number, found)
        line = _checksum(self._digest + body) + b" " + body + b"\n"
        if len(line) > _LONGEST or b"\n" in found:
            raise OutputError(f"{self.path}: what was found of piece {number} cannot be kept ({len(line):,} bytes)")
        try:
            self._file.seek(self._end)
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if time.monotonic() - self._synced >= _SYNC:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise OutputError(
                f"{self.path}: cannot be written: {error.strerror}; make room, the same command then goes on from here"
            ) from None
        self._offsets[number] = self._end
        self._end += len(line)

    def found(self) -> Iterator[tuple[int, bytes]]:
        """Give the number of each finished piece and what was found, in the order of the numbers.

        Raises
        ------
        OutputError
            If a record was changed since it was written or read.
        """
        with self.path.open("rb") as file:
            for number in np.flatnonzero(self._offsets >= 0).tolist():
                yield number, self._at(file, number)

    def read(self, number: int) -> bytes | None:
        """Return what was found of a piece, None if it is not there.

        Raises
        ------
        OutputError
            If the record was changed since it was written or read.
        """
        if self._offsets[number] < 0:
            return None
        with self.path.open("rb") as file:
            return self._at(file, number)

    def _at(self, file: BinaryIO, number: int) -> bytes:
        file.seek(self._offsets[number])
        record = _check(file.readline(_LONGEST), self._digest)
        if record is None or record[0] != number:
            raise OutputError(f"{self.path}: piece {number} was changed on disk; run the same command again")
        return record[1]


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
    """Give where each line begins, the line, and whether it has an end; of one too long for a record the beginning."""
    while line := file.readline(_LONGEST):
        at = file.tell() - len(line)
        # What is left of it is skipped, not held.
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(_LONGEST)
        yield at, line, bool(rest)


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_CHECK].encode()


def _check(line: bytes, digest: bytes) -> tuple[int, bytes] | None:
    """Return number and content of a record if it is whole and matches its checksum and its run."""
    body = line[_CHECK + 1 : -1]
    if not line.endswith(b"\n") or line[: _CHECK + 1] != _checksum(digest + body) + b" ":
        return None
    number, _, found = body.partition(b" ")
    if not number.isdigit() or len(number) > _CHECK:
        return None
    return int(number), found
