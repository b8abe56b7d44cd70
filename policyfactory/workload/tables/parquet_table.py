"""Tables in Parquet, read in batches of rows; pyarrow is an extra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from policyfactory.core.errors import InputError, UsageError
from policyfactory.workload.header import printable
from policyfactory.workload.tables.cells import ArrowCells
from policyfactory.workload.tables.text_table import Rows, check_columns

__all__ = ["ParquetTable"]

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
    place : str
        Its name, for messages.

    Raises
    ------
    UsageError
        If pyarrow is not installed.
    InputError
        If it is damaged.
    """

    origin = 0

    def __init__(self, file: IO[bytes], place: str) -> None:
        self.place, self._file = place, file
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
            f"{self.place}: is damaged and cannot be read ({printable(str(error), 160)}); download or copy it again"
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
        check_columns(self.names, wanted, self.place)
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
            for place in range(part.num_columns):
                column = part.column(place)
                name, size = column.path_in_schema.partition(".")[0], column.total_uncompressed_size
                if name in wanted and size > _LARGEST_PART:
                    raise InputError(
                        f"{self.place}: the column {printable(name, 60)} unpacks to {size:,} bytes in one part, more "
                        f"than the {_LARGEST_PART:,} that are read; write the table in smaller row groups"
                    )


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _faults() -> tuple[type[Exception], ...]:
    import pyarrow as pa

    return (pa.ArrowException, OSError, EOFError, MemoryError)
