"""The journal of a run: its finished results on disk, from which the same command resumes after an interruption.

``NAME.partial`` begins with one line that says which run it belongs to: a mark, a checksum, and the run as JSON. Each
further line is one record: a checksum, the number of the work unit, and its result. The checksum of a record is also
one of the run, so that no record can be taken for one of another run. A line is written by one call of the system, so
after Ctrl-C or ``kill -9`` at most the last one is torn; it is cut off and its unit is computed again. Any other damage
is an error that names the line.
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
from typing import Any, BinaryIO, Self, cast

import numpy as np

from policyfactory.core.errors import OutputError
from policyfactory.core.files import atomic_write, package_versions

_MARK = b"policyfactory partial result"
_CHECK = 16
_BEFORE = len(_MARK) + 1 + _CHECK + 1  # bytes of the first line before the run
_LONGEST = 1 << 26
_SYNC = 5.0  # seconds between two calls that wait for the disk
# Another version of one of these may differ in the last bits of a number, or train other trees.
_LIBRARIES = ("numba", "numpy", "scikit-learn", "scipy")


def partial_path(output: Path) -> Path:
    """Return where the journal of an unfinished output lies: ``NAME.csv`` has ``NAME.csv.partial``."""
    return output.with_name(f"{output.name}.partial")


def library_versions() -> dict[str, str]:
    """Return the versions that belong to a run beside its options: results of different ones are not mixed."""
    return {name: version for name, version in package_versions().items() if name in _LIBRARIES}


def claim(
    path: Path,
    run: Mapping[str, Any],
    what: str,
    difference: Callable[[Mapping[str, Any], Mapping[str, Any]], str],
    *,
    overwrite: bool,
) -> None:
    """Make sure that a journal, if there is one, belongs to a run; one of another run goes with ``overwrite``.

    Parameters
    ----------
    path : Path
        The file.
    run : mapping
        The run (JSON values).
    what : str
        What its results are, in the plural.
    difference : callable
        Returns in words in what two runs differ: that of the file and this one.
    overwrite : bool
        Whether the file of another run may be removed.

    Raises
    ------
    OutputError
        If the file belongs to another run or is no journal, and ``overwrite`` is not given.
    """
    here = json.loads(json.dumps(run))
    try:
        there = _run_of(path)
        if there is None or there == here:
            return
        if not overwrite:
            raise OutputError(
                f"{path}: holds finished {what} of a run with {difference(there, here)}; give the same options to "
                "go on with it, --overwrite to drop it, or another --output"
            )
    except OutputError:
        if not overwrite or not path.is_file():
            raise
    path.unlink()


class Journal:
    """The finished results of one run on disk; memory holds 8 bytes a work unit.

    Parameters
    ----------
    path : Path
        The file; made if there is none.
    run : mapping
        The run (JSON values).
    count : int
        How many work units the run has.

    Raises
    ------
    OutputError
        If the file is of another run or no journal, is damaged before its last line, or cannot be written.
    """

    def __init__(self, path: Path, run: Mapping[str, Any], count: int) -> None:
        self.path = path
        self._offsets = np.full(count, -1, dtype=np.int64)
        self._synced = time.monotonic()
        content = json.dumps(run, sort_keys=True).encode("ascii")
        self._digest = hashlib.sha256(content).digest()
        there = _run_of(path)
        if there is None:
            atomic_write(path, b"%b %b %b\n" % (_MARK, _checksum(content), content))
        elif there != json.loads(content):
            raise OutputError(f"{path}: holds the finished results of another run; remove it or name another output")
        try:
            self._file: BinaryIO = _open(path, "r+b", buffering=0)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}; check its permissions") from None
        try:
            self._end = self._scan()
            self._file.truncate(self._end)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()

    def __len__(self) -> int:
        return int((self._offsets >= 0).sum())

    def missing(self) -> list[int]:
        """Return the numbers of the work units that are still to be done."""
        return [int(number) for number in np.flatnonzero(self._offsets < 0)]

    def append(self, number: int, result: bytes) -> None:
        """Keep the result of work unit ``number``: bytes without a line break.

        Every few seconds it waits until the disk has all of them, so that a power loss costs seconds of work.

        Raises
        ------
        OutputError
            If the disk does not take it, or it is no record.
        """
        body = b"%d %b" % (number, result)
        line = b"%b %b\n" % (_checksum(self._digest + body), body)
        if len(line) > _LONGEST or b"\n" in result:
            raise OutputError(f"{self.path}: the result of work unit {number} is no line of at most {_LONGEST:,} bytes")
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

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Give number and result of each finished work unit, in the order of the numbers; errors as for `read`."""
        for number in np.flatnonzero(self._offsets >= 0).tolist():
            yield number, self.read(number) or b""

    def read(self, number: int) -> bytes | None:
        """Return the result of a work unit, None if it is not there.

        Raises
        ------
        OutputError
            If the record was changed since it was written or read.
        """
        if self._offsets[number] < 0:
            return None
        with _open(self.path) as file:
            file.seek(self._offsets[number])
            record = _check(file.readline(_LONGEST), self._digest)
        if record is None or record[0] != number:
            raise OutputError(
                f"{self.path}: the record of work unit {number} was changed on disk; run the same command again"
            )
        return record[1]

    def _scan(self) -> int:
        """Note where each record lies; return the end of the last whole one."""
        with _open(self.path) as file:
            end, number = len(file.readline(_LONGEST)), 1
            while line := file.readline(_LONGEST):
                number += 1
                record = _check(line, self._digest)
                if record is None and not file.read(1):
                    break  # torn
                if record is None or record[0] >= len(self._offsets):
                    raise OutputError(
                        f"{self.path}:{number}: is damaged; remove the file, and the same command begins anew, or cut "
                        f"it off before this line (head -n {number - 1})"
                    )
                self._offsets[record[0]] = end
                end = file.tell()
        return end


def _open(path: Path, mode: str = "rb", buffering: int = -1) -> BinaryIO:
    """Open a file; a link is not followed, which could lead to any file of the user's."""
    file = open(path, mode, buffering, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW))  # noqa: SIM115 (the caller closes it)
    return cast("BinaryIO", file)


def _run_of(path: Path) -> dict[str, Any] | None:
    """Return the run that a journal names; None if there is no file, or it is cut off in its first line.

    Raises
    ------
    OutputError
        If it is no journal.
    """
    if path.is_symlink():
        raise OutputError(f"{path}: is a link, where finished results are to be kept; remove it or name another output")
    if not path.exists():
        return None
    if not path.is_file():
        raise OutputError(
            f"{path}: is a pipe, a device or a directory, where finished results are to be kept; remove it or name "
            "another output"
        )
    try:
        with _open(path) as file:
            first = file.readline(_LONGEST)
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror}; check its permissions") from None
    begins = _MARK.startswith(first[: len(_MARK)])
    if begins and not first.endswith(b"\n"):
        return None
    content = first[_BEFORE:-1]
    if begins and first[len(_MARK) + 1 : _BEFORE - 1] == _checksum(content):
        with contextlib.suppress(ValueError, RecursionError):
            return cast("dict[str, Any]", json.loads(content))
    raise OutputError(
        f"{path}: is not a journal of finished results, or its first line is damaged; remove it or name another output"
    )


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_CHECK].encode()


def _check(line: bytes, digest: bytes) -> tuple[int, bytes] | None:
    """Return number and result of a record if it is whole and matches its checksum and its run."""
    body = line[_CHECK + 1 : -1]
    if not line.endswith(b"\n") or line[: _CHECK + 1] != _checksum(digest + body) + b" ":
        return None
    number, _, result = body.partition(b" ")
    if not number.isdigit() or len(number) > _CHECK:
        return None
    return int(number), result
