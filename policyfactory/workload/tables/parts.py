"""The tables in a file: the file itself, packed or not, or the members of a zip or tar archive.

Nothing is written under the name of a member: what they are called matters in messages only.
"""

from __future__ import annotations

import csv
import itertools
import operator
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from policyfactory.core.errors import InputError, TraceFormatError, UsageError
from policyfactory.core.inputs import sha256_file
from policyfactory.core.options import Int64Array
from policyfactory.core.text import did_you_mean
from policyfactory.workload.accounting.record import Remark
from policyfactory.workload.accounting.source import Source
from policyfactory.workload.header import parse_header, printable
from policyfactory.workload.swf.files import GZIP, PART, unpacked
from policyfactory.workload.tables.cells import ArrowCells, Cells, TextCells
from policyfactory.workload.tables.mapping import TableMapping

# Rows of a block: their cells are held as texts.
_BLOCK = 1 << 15
# Characters of a cell: a list of ten thousand nodes has some hundred thousand.
_LONGEST_CELL = 1 << 20
_MOST_COLUMNS = 5000
_MOST_COMMENTS = 5000

# Row numbers, and the cells of the columns asked for, in their order.
Rows = tuple[Int64Array, list[Cells]]


def check_columns(names: Sequence[str], wanted: Sequence[str], source: str) -> None:
    """Refuse a table that lacks a column.

    Raises
    ------
    TraceFormatError
        If it does; it names what is there, and what is near.
    """
    missing = [name for name in wanted if name not in names]
    if not missing:
        return
    hint = printable(did_you_mean(missing[0], names), 100)
    raise TraceFormatError(
        f"{source}: no column {printable(', '.join(missing), 200)}; {hint}the table has "
        f"{printable(', '.join(names), 800) or 'no columns'}. Name another --format, or your own --mapping"
    )


class TextTable:
    """A table in text.

    Parameters
    ----------
    lines : iterable of str
        Its lines, without their ends.
    source : str
        Its name, for messages.
    mapping : TableMapping
        How it is parted, and the names of its columns if it has none.

    Raises
    ------
    TraceFormatError
        If it is empty, or its line of names is none.
    """

    def __init__(self, lines: Iterable[str], source: str, mapping: TableMapping) -> None:
        self.source = source
        self._form = mapping.form
        self._line = 0
        self._lines = iter(lines)
        self._comments: list[str] = []
        self.names = tuple(mapping.header)
        if not self.names:
            self.names = self._header()

    def _header(self) -> tuple[str, ...]:
        rows = self._fields()
        first = next(rows, None)
        if first is None:
            raise TraceFormatError(f"{self.source}: is empty; a table has a line with the names of its columns")
        names = tuple(name.strip() for name in first)
        if len(names) > _MOST_COLUMNS or len(names) < 2:
            raise TraceFormatError(
                f"{self.source}:1: {printable(', '.join(names), 80)!r} are {len(names):,} names of columns; is this "
                f"the table, and parted as the mapping says ({self._form})?"
            )
        double = next((name for column, name in enumerate(names) if name in names[:column]), None)
        if double is not None:
            raise TraceFormatError(f"{self.source}:1: two columns are called {printable(double, 60)!r}; rename one")
        return names

    @property
    def origin(self) -> int:
        """The UnixStartTime of the comments ahead of the rows, 0 if there is none."""
        return parse_header(self._comments).unix_start or 0

    def blocks(self, wanted: Sequence[str]) -> Iterator[Rows | Remark]:
        """Give the cells of some columns, some ten thousand rows at a time; can be asked for once.

        Raises
        ------
        TraceFormatError
            If a column is missing, or quotes are not closed.
        """
        check_columns(self.names, wanted, self.source)
        places = [self.names.index(name) for name in wanted]
        # With one place alone it would give no tuple.
        pick = operator.itemgetter(*places, *places[:1])
        width = len(self.names)
        rows: list[tuple[str, ...]] = []
        lines: list[int] = []
        for fields in self._fields():
            if len(fields) == width:
                rows.append(pick(fields))
                lines.append(self._line)
            elif fields:
                yield Remark(self._line, "", "tables.cut_off" if len(fields) < width else "tables.surplus")
            if len(rows) >= _BLOCK:
                yield _block(lines, rows)
                rows, lines = [], []
        if rows:
            yield _block(lines, rows)

    def _fields(self) -> Iterator[list[str]]:
        """Give the fields of each line; ``_line`` is its number."""
        if self._form in {"tsv", "blank"}:
            yield from self._plain("\t" if self._form == "tsv" else None)
            return
        before = csv.field_size_limit(_LONGEST_CELL)
        reader = csv.reader(self._lines, strict=True)
        first = self._line
        try:
            for fields in reader:
                self._line = first + reader.line_num
                yield fields
        except csv.Error as error:
            raise TraceFormatError(
                f"{self.source}:{first + reader.line_num}: is no CSV ({printable(str(error), 80)}); a quote in a text "
                "is doubled, and a text with a comma stands in quotes"
            ) from None
        finally:
            csv.field_size_limit(before)

    def _plain(self, mark: str | None) -> Iterator[list[str]]:
        for line in self._lines:
            self._line += 1
            if mark is None and line.lstrip().startswith(";"):
                if len(self._comments) < _MOST_COMMENTS:
                    self._comments.append(line.strip())
            elif line.strip():
                yield line.split(mark)


def _block(lines: list[int], rows: list[tuple[str, ...]]) -> Rows:
    columns = list(zip(*rows, strict=True))[:-1]
    return np.array(lines, dtype=np.int64), [TextCells(list(column)) for column in columns]


# Tables in Parquet, read in batches of rows; pyarrow is an extra ------------------------------------------------------


# Rows of a batch: their cells are held at once.
_BATCH = 1 << 16
# A part of one column is unpacked at once: more than this is no list of jobs, or an attack.
_LARGEST_PART = 2 << 30


def _arrow() -> Any:
    """Return the library for Parquet.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed: pip install 'policyfactory[parquet]'; tables in CSV need "
            "nothing"
        ) from None
    return pyarrow.parquet


class ParquetTable:
    """A table in Parquet.

    Parameters
    ----------
    file : binary file
        It; stays open while the table is read.
    source : str
        Its name, for messages.

    Raises
    ------
    UsageError
        If pyarrow is not installed.
    InputError
        If it is damaged.
    """

    origin = 0

    def __init__(self, file: IO[bytes], source: str) -> None:
        self.source, self._file = source, file
        parquet = _arrow()
        try:
            known = parquet.ParquetFile(file)
            self.names = tuple(known.schema_arrow.names)
            self._texts = [field.name for field in known.schema_arrow if _is_text(field.type)]
            known.close(force=False)
        except _faults() as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"{self.source}: is damaged and cannot be read ({printable(str(error), 160)}); download or copy it again"
        )

    def blocks(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Give the cells of some columns, some ten thousand rows at a time.

        Raises
        ------
        TraceFormatError
            If a column is missing.
        InputError
            If the table is damaged, or a part of a column unpacks to more than 2 GiB.
        """
        check_columns(self.names, wanted, self.source)
        wanted = list(wanted)
        first = 1
        try:
            # Texts stay numbers of the different ones: a text that comes a million times is unpacked once.
            file = _arrow().ParquetFile(self._file, read_dictionary=[name for name in self._texts if name in wanted])
            self._check_size(file.metadata, wanted)
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                lines = np.arange(first, first + batch.num_rows, dtype=np.int64)
                first += batch.num_rows
                if batch.num_rows:
                    yield lines, [ArrowCells(batch.column(name)) for name in wanted]
        except _faults() as error:
            raise self._damaged(error) from None

    def _check_size(self, metadata: Any, wanted: list[str]) -> None:
        for group in range(metadata.num_row_groups):
            part = metadata.row_group(group)
            for number in range(part.num_columns):
                column = part.column(number)
                name, size = column.path_in_schema.partition(".")[0], column.total_uncompressed_size
                if name in wanted and size > _LARGEST_PART:
                    raise InputError(
                        f"{self.source}: the column {printable(name, 60)} unpacks to {size:,} bytes in one part, more "
                        f"than the {_LARGEST_PART:,} that are read; write the table in smaller row groups"
                    )


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _faults() -> tuple[type[Exception], ...]:
    import pyarrow as pa

    return (pa.ArrowException, OSError, EOFError, MemoryError)


# The tables in a file -------------------------------------------------------------------------------------------------


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
    """An input file: a table in text or Parquet, or an archive of such tables.

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
                members = [info for info in archive.infolist() if _is_table(info.filename) and not info.is_dir()]
                _check_count(len(members), self.name)
                for member in sorted(members, key=lambda member: member.filename):
                    location = f"{self.name}: {printable(member.filename, 120)}"
                    if member.flag_bits & 1:
                        raise InputError(f"{location}: is encrypted; unpack it first")
                    with archive.open(member) as packed:
                        parts = _bounded(_blocks(packed), member.compress_size, location)
                        yield from self._member(parts, location)
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

    def _member(self, parts: Iterator[bytes], location: str) -> Iterator[Table]:
        """Give the table that a member is; Parquet is read from its end, so it is laid on the disk."""
        first = next(parts, b"")
        parts = itertools.chain([first], parts)
        if not first.startswith(_PARQUET):
            yield TextTable(_Text(parts, location).lines(), location, self._mapping)
            return
        with tempfile.TemporaryFile() as copy:
            for part in parts:
                copy.write(part)
            copy.seek(0)
            yield ParquetTable(copy, location)


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


def _check_count(count: int, source: str) -> None:
    if not 1 <= count <= _MOST_MEMBERS:
        raise InputError(
            f"{source}: has {count:,} members that can be tables ({', '.join(_SUFFIXES)}), from 1 to {_MOST_MEMBERS:,} "
            "are read; is this the data set?"
        )


def _bounded(parts: Iterator[bytes], packed: int, location: str) -> Iterator[bytes]:
    """Give the parts of a member as long as it is no bomb."""
    given = 0
    for part in parts:
        given += len(part)
        if given > _LARGEST_MEMBER or (given > _FROM and given > _LARGEST_RATIO * packed):
            raise InputError(
                f"{location}: unpacks to more than {_LARGEST_RATIO} times its size or {_LARGEST_MEMBER:,} bytes, which "
                "no table of jobs does; if it is one, unpack it first"
            )
        yield part


class _Stream:
    """Bytes that come in parts, read by number."""

    def __init__(self, parts: Iterator[bytes], location: str) -> None:
        self._parts, self._rest, self._location = parts, b"", location

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
                raise InputError(f"{self._location}: ends in the middle of a member: it was cut off; download it again")
            size -= len(part)
            yield part


def _members_of_tar(parts: Iterator[bytes], source: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Give name and bytes of each file in a tar archive; links, folders and long names are passed over.

    Only ustar's own headers are read (POSIX.1-1988): each is 512 bytes, with the size in octal digits.
    """
    stream = _Stream(parts, source)
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
            raise InputError(f"{source}: has a damaged header of tar; download it again, or unpack it with tar")
        content = stream.exactly(size)
        if header[156:157] in b"0\0":
            yield name, content
        for _rest in content:
            pass
        for _rest in stream.exactly(-size % _HEADER):
            pass
    raise InputError(f"{source}: has too many members for a data set")
