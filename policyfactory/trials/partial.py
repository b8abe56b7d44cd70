"""The file of finished tuples: what an interrupted run leaves, and the same command goes on from.

``NAME.csv.partial`` begins with one line of JSON that says which run it belongs to. Each further line is one
finished tuple: a checksum of the rest of the line, and the tuple's lines of the table. A line is written by one
call of the system, so after Ctrl-C or ``kill -9`` at most the last one is torn; it is cut off and its tuple is
done again. So is a tuple whose line does not match its checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from policyfactory.core.artefact import atomic_write
from policyfactory.core.errors import OutputError

__all__ = ["PartialFile", "partial_path", "read_head"]

_MARK = "policyfactory partial score table"
_CHECK = 16
# A line break inside a record; the numbers of a table have none of it.
_BREAK = b"|"


def partial_path(output: Path) -> Path:
    """Return where the finished tuples of an unfinished table lie: ``NAME.csv`` has ``NAME.csv.partial``."""
    return output.with_name(f"{output.name}.partial")


def read_head(path: Path) -> dict[str, Any] | None:
    """Return the run that a partial file belongs to, None if there is no such file.

    Raises
    ------
    OutputError
        If the file is not a partial score table.
    """
    if not path.exists():
        return None
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline(1 << 16))
        if head.pop("mark") == _MARK:
            return dict(head)
    except (OSError, ValueError, AttributeError, KeyError, RecursionError):
        pass
    raise OutputError(
        f"{path}: is not a file of finished tuples, and would be overwritten; remove it or name another output"
    )


class PartialFile:
    """The finished tuples of one run on disk; memory holds 8 bytes a tuple.

    Parameters
    ----------
    path : Path
        The file; made if there is none.
    head : mapping
        The run (JSON values); must be what the file says, if there is one.
    tuples : int
        How many tuples the run has.
    """

    def __init__(self, path: Path, head: Mapping[str, Any], tuples: int) -> None:
        self.path = path
        self.damaged = 0
        self._offsets = np.full(tuples, -1, dtype=np.int64)
        if not path.exists():
            atomic_write(path, json.dumps({"mark": _MARK, **head}, sort_keys=True) + "\n")
        try:
            self._file: BinaryIO = path.open("r+b", buffering=0)
        except OSError as error:
            raise OutputError(f"{path}: can not be written: {error.strerror}; check its permissions") from None
        try:
            self._end = self._scan()
            self._file.truncate(self._end)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return int((self._offsets >= 0).sum())

    def missing(self) -> list[int]:
        """Return the tuples that are still to be done."""
        return [int(number) for number in np.flatnonzero(self._offsets < 0)]

    def _scan(self) -> int:
        """Note where each whole record lies; return the end of the last whole line."""
        end = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file):
                if not line.endswith(b"\n"):
                    self.damaged += 1
                    break
                if number:
                    record = _check(line)
                    at = _number(record) if record is not None else -1
                    if 0 <= at < len(self._offsets):
                        self._offsets[at] = end
                    else:
                        self.damaged += 1
                end += len(line)
        return end

    def append(self, number: int, rows: str) -> None:
        """Keep the finished tuple ``number``; ``rows`` are its lines of the table, each ended by a newline.

        Raises
        ------
        OutputError
            If the disk does not take them.
        """
        body = rows.encode("ascii").rstrip(b"\n").replace(b"\n", _BREAK)
        line = _checksum(body) + b" " + body + b"\n"
        try:
            self._file.seek(self._end)
            if self._file.write(line) != len(line):
                raise OSError(28, os.strerror(28))
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise OutputError(
                f"{self.path}: can not be written: {error.strerror}; make room, the same command then goes on from here"
            ) from None
        self._offsets[number] = self._end
        self._end += len(line)

    def rows(self) -> Iterator[bytes]:
        """Give the lines of the table, tuple by tuple in order of their numbers.

        Raises
        ------
        OutputError
            If a record was changed since it was written or read.
        """
        with self.path.open("rb") as file:
            for number, offset in enumerate(self._offsets.tolist()):
                file.seek(offset)
                record = _check(file.readline())
                if record is None or _number(record) != number:
                    raise OutputError(f"{self.path}: tuple {number} was changed on disk; run the same command again")
                yield record.replace(_BREAK, b"\n") + b"\n"


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_CHECK].encode()


def _check(line: bytes) -> bytes | None:
    """Return the body of a record if it matches its checksum."""
    body = line[_CHECK + 1 : -1]
    return body if line[:_CHECK] == _checksum(body) else None


def _number(record: bytes) -> int:
    """Return the tuple number: the last column of any of its lines."""
    return int(record[record.rfind(b",") + 1 :])
