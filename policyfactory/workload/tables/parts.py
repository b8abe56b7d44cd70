"""The tables in a file: the file itself, packed or not, or the members of a zip or tar archive.

Nothing is written under the name of a member: what they are called matters in messages only.
"""

from __future__ import annotations

import itertools
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from policyfactory.core.errors import InputError
from policyfactory.core.inputs import sha256_file
from policyfactory.workload.accounting.source import Source
from policyfactory.workload.header import printable
from policyfactory.workload.swf.packed import GZIP, PART, unpacked
from policyfactory.workload.tables.mapping import TableMapping
from policyfactory.workload.tables.parquet_table import ParquetTable
from policyfactory.workload.tables.text_table import TextTable

__all__ = ["TableFile"]

_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"
_TAR = slice(257, 262)
_HEADER = 512  # bytes of a header of tar, and of the blocks behind it
_MOST_MEMBERS = 20_000
_LARGEST_MEMBER = 64 << 30  # bytes
# Members of a zip pack as well as files of gzip do (swf/packed.py).
_LARGEST_RATIO, _FROM = 50, 8 << 20
_SUFFIXES = (".parquet", ".csv", ".tsv", ".txt", ".swf")

Table = TextTable | ParquetTable


class _Text(Source):
    """The text of a member of an archive, read as that of a file."""

    def __init__(self, parts: Iterator[bytes], name: str) -> None:
        self._parts = parts
        super().__init__(name)

    def _unpacked(self) -> Iterator[bytes]:
        return self._parts


class TableFile:
    """One input.

    Parameters
    ----------
    path : Path or str
        Parquet, text (plain or packed with gzip), a zip or tar archive of such files (the latter also packed with
        gzip); ``-`` is a text on stdin.
    mapping : TableMapping
        How texts are parted.
    """

    def __init__(self, path: Path | str, mapping: TableMapping) -> None:
        self._path, self._mapping = path, mapping
        self.name = "stdin" if str(path) == "-" else str(path)
        self._digest = ""
        self._source: Source | None = None

    @property
    def sha256(self) -> str:
        """Digest of the file as it lies on the disk, once it has been read."""
        return self._digest if self._source is None else self._source.sha256

    def tables(self) -> Iterator[Table]:
        """Give the tables in it, each to be read before the next is asked for; can be asked for once.

        Raises
        ------
        InputError
            If the file cannot be read, is damaged, or unpacks to more than any table of jobs.
        UsageError
            If it needs pyarrow, which is not installed.
        """
        first = b"" if self.name == "stdin" else _beginning(Path(self._path))
        if first.startswith(_PARQUET):
            with self._opened() as file:
                yield ParquetTable(file, self.name)
        elif first.startswith(_ZIP):
            with self._opened() as file:
                yield from self._zipped(file)
        elif first[_TAR] == b"ustar" or (first.startswith(GZIP) and _unpacked_head(first)[_TAR] == b"ustar"):
            with self._opened() as file:
                yield from self._tarred(file, packed=first.startswith(GZIP))
        else:
            self._source = Source(self._path)
            yield TextTable(self._source.lines(), self.name, self._mapping)

    def _opened(self) -> IO[bytes]:
        path = Path(self._path)
        self._digest = sha256_file(path)
        return path.open("rb")

    def _zipped(self, file: IO[bytes]) -> Iterator[Table]:
        try:
            with zipfile.ZipFile(file) as archive:
                members = [one for one in archive.infolist() if _is_table(one.filename) and not one.is_dir()]
                _check_count(len(members), self.name)
                for member in sorted(members, key=lambda one: one.filename):
                    place = f"{self.name}: {printable(member.filename, 120)}"
                    if member.flag_bits & 1:
                        raise InputError(f"{place}: is encrypted; unpack it first")
                    with archive.open(member) as packed:
                        parts = _bounded(_blocks(packed), member.compress_size, place)
                        yield from self._member(parts, place)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
            raise InputError(
                f"{self.name}: is damaged and cannot be unpacked ({printable(str(error), 120)}); download it again"
            ) from None

    def _tarred(self, file: IO[bytes], *, packed: bool) -> Iterator[Table]:
        blocks = _blocks(file)
        count = 0
        for name, parts in _members_of_tar(unpacked(blocks, self.name) if packed else blocks, self.name):
            if _is_table(name):
                count += 1
                yield from self._member(parts, f"{self.name}: {printable(name, 120)}")
        _check_count(count, self.name)

    def _member(self, parts: Iterator[bytes], place: str) -> Iterator[Table]:
        """Give the table that a member is; Parquet is read from its end, so it is laid on the disk."""
        first = next(parts, b"")
        parts = itertools.chain([first], parts)
        if not first.startswith(_PARQUET):
            yield TextTable(_Text(parts, place).lines(), place, self._mapping)
            return
        with tempfile.TemporaryFile() as copy:
            for part in parts:
                copy.write(part)
            copy.seek(0)
            yield ParquetTable(copy, place)


def _beginning(path: Path) -> bytes:
    """Return the first bytes of a file, none of what is no regular file: `Source` says what is wrong with it."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(1 << 16)
    except OSError:
        return b""


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(PART):
        yield block


def _unpacked_head(first: bytes) -> bytes:
    """Return the beginning of what a file of gzip holds."""
    try:
        return zlib.decompressobj(wbits=31).decompress(first, _HEADER)
    except zlib.error:
        return b""


def _is_table(name: str) -> bool:
    """Tell whether a member can be a table, by its name; what other systems lay beside files is none."""
    plain = name.lower().removesuffix(".gz")
    return plain.endswith(_SUFFIXES) and not name.rpartition("/")[2].startswith((".", "_")) and "__MACOSX" not in name


def _check_count(count: int, place: str) -> None:
    if not 1 <= count <= _MOST_MEMBERS:
        raise InputError(
            f"{place}: has {count:,} members that can be tables ({', '.join(_SUFFIXES)}), from 1 to {_MOST_MEMBERS:,} "
            "are read; is this the data set?"
        )


def _bounded(parts: Iterator[bytes], packed: int, place: str) -> Iterator[bytes]:
    """Give the parts of a member as long as it is no bomb."""
    given = 0
    for part in parts:
        given += len(part)
        if given > _LARGEST_MEMBER or (given > _FROM and given > _LARGEST_RATIO * packed):
            raise InputError(
                f"{place}: unpacks to more than {_LARGEST_RATIO} times its size or {_LARGEST_MEMBER:,} bytes, which no "
                "table of jobs does; if it is one, unpack it first"
            )
        yield part


class _Stream:
    """Bytes that come in parts, read by number."""

    def __init__(self, parts: Iterator[bytes], place: str) -> None:
        self._parts, self._rest, self._place = parts, b"", place

    def some(self, most: int) -> bytes:
        """Return some bytes, at most ``most``; none at the end."""
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return b""
            self._rest = part
        given, self._rest = self._rest[:most], self._rest[most:]
        return given

    def exactly(self, size: int) -> Iterator[bytes]:
        """Give ``size`` bytes in parts.

        Raises
        ------
        InputError
            If there are fewer.
        """
        while size:
            part = self.some(size)
            if not part:
                raise InputError(f"{self._place}: ends in the middle of a member: it was cut off; download it again")
            size -= len(part)
            yield part


def _members_of_tar(parts: Iterator[bytes], place: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Give name and bytes of each file in a tar archive; links, folders and long names are passed over.

    Only ustar's own headers are read (POSIX.1-1988): each is 512 bytes, with the size in octal digits.
    """
    stream = _Stream(parts, place)
    for _ in range(100 * _MOST_MEMBERS):
        first = stream.some(_HEADER)
        header = first + b"".join(stream.exactly(_HEADER - len(first))) if first else b""
        if not header.strip(b"\0"):
            return
        try:
            size = int(header[124:136].strip(b"\0 ") or b"0", 8)
            name = header[:100].rstrip(b"\0").decode("utf-8", "replace")
        except ValueError:
            size = -1
        if header[_TAR] != b"ustar" or not 0 <= size <= _LARGEST_MEMBER:
            raise InputError(f"{place}: has a damaged header of tar; download it again, or unpack it with tar")
        content = stream.exactly(size)
        if header[156:157] in b"0\0":
            yield name, content
        for _rest in content:
            pass
        for _rest in stream.exactly(-size % _HEADER):
            pass
    raise InputError(f"{place}: has too many members for a data set")
