"""The cells of one column of a block of rows, from a text or from Parquet: as texts, numbers, times."""

from __future__ import annotations

import re
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfactory.core.arrays import Int64Array
from policyfactory.workload.accounting.record import coded
from policyfactory.workload.accounting.times import whole_numbers

__all__ = ["LONGEST", "NOTHING", "ArrowCells", "Cells", "TextCells", "number_of"]

# What tables have where there is nothing.
NOTHING = frozenset({"", "nan", "NaN", "null", "NULL", "None", "none", "N/A", "NA", "\\N", "(null)", "NaT", "<NA>"})
# Characters of a cell that becomes a name; a longer one is cut, so that a table of huge texts takes no memory.
LONGEST = 256
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_UNIT = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def number_of(text: str) -> float:
    """Return the number that a cell is: NaN where it says nothing.

    Raises
    ------
    ValueError
        If it is something else.
    """
    text = text.strip()
    if text in NOTHING:
        return float("nan")
    if not _NUMBER.fullmatch(text):
        raise ValueError(text[:60])
    return float(text)


class Cells(Protocol):
    """One column of a block of rows.

    Attributes
    ----------
    kind : {"text", "number", "time", "duration", "other"}
        What the cells are; texts can hold anything.
    """

    kind: str

    def texts(self) -> list[str]:
        """Return the cells as texts; nothing is the empty text."""

    def coded(self) -> tuple[Int64Array, list[str]]:
        """Return the cells as numbers of the different texts, and these."""

    def numbers(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the cells as numbers, NaN for nothing, and which of them are none."""


class TextCells:
    """Cells of a text.

    Parameters
    ----------
    texts : list of str
        A text for each row.
    """

    kind = "text"

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def texts(self) -> list[str]:
        """Return the cells as they are."""
        return self._texts

    def coded(self) -> tuple[Int64Array, list[str]]:
        """Return the cells as numbers of the different texts, and these."""
        return coded(self._texts)

    def numbers(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the cells as numbers."""
        whole = whole_numbers(self._texts)
        if whole is not None:
            return whole.astype(np.float64), np.zeros(len(whole), dtype=bool)
        return numbers_of(*self.coded())


def numbers_of(codes: Int64Array, texts: list[str]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return coded texts as numbers, and which of them are none."""
    values, wrong = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
    for place, text in enumerate(texts):
        try:
            values[place] = number_of(text)
        except ValueError:
            wrong[place] = True
    return values[codes], wrong[codes]


class ArrowCells:
    """Cells of a column of Parquet.

    Parameters
    ----------
    array : pyarrow.Array
        The cells.
    """

    def __init__(self, array: Any) -> None:
        import pyarrow as pa

        kind = array.type
        if pa.types.is_dictionary(kind) and not _is_text(kind.value_type):
            array = array.dictionary_decode()
            kind = array.type
        if pa.types.is_date(kind):
            array = array.cast(pa.timestamp("s"))
            kind = array.type
        self._array = array
        self._dictionary = pa.types.is_dictionary(kind)
        if self._dictionary or _is_text(kind):
            self.kind = "text"
        elif pa.types.is_timestamp(kind):
            self.kind = "time"
        elif pa.types.is_duration(kind):
            self.kind = "duration"
        else:
            numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
            self.kind = "number" if any(is_one(kind) for is_one in numeric) or pa.types.is_null(kind) else "other"

    @property
    def zoned(self) -> bool:
        """Tell whether times have a zone: they are moments, and no clock's hands."""
        return self.kind == "time" and self._array.type.tz is not None

    def seconds(self) -> tuple[Int64Array, NDArray[np.bool_]]:
        """Return times or durations in whole seconds, rounded down, and which cells have one."""
        import pyarrow as pa

        known = ~np.asarray(self._array.is_null().to_numpy(zero_copy_only=False), dtype=bool)
        ticks = np.asarray(self._array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        return ticks // _UNIT[self._array.type.unit], known

    def texts(self) -> list[str]:
        """Return the cells as texts; times as ``2026-03-01T12:00:00``, without zone and parts of a second."""
        if self.kind == "text":
            codes, texts = self.coded()
            return [texts[code] for code in codes.tolist()]
        if self.kind == "time":
            seconds, known = self.seconds()
            shown = np.datetime_as_string(seconds.astype("M8[s]")).tolist()
            return [text if there else "" for text, there in zip(shown, known.tolist(), strict=True)]
        return ["" if cell is None else str(cell)[:LONGEST] for cell in self._array.to_pylist()]

    def coded(self) -> tuple[Int64Array, list[str]]:
        """Return the cells as numbers of the different texts, and these."""
        if self.kind != "text":
            return coded(self.texts())
        array = self._array if self._dictionary else self._array.dictionary_encode()
        texts = [_decoded(cell) for cell in array.dictionary.to_pylist()]
        codes = array.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False).astype(np.int64)
        # Only those that are there: a dictionary can be that of the whole file.
        present, again = np.unique(codes, return_inverse=True)
        return again.astype(np.int64), [texts[code] if code < len(texts) else "" for code in present.tolist()]

    def numbers(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the cells as numbers."""
        if self.kind != "number":
            return numbers_of(*self.coded())
        import pyarrow as pa

        values = self._array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=np.float64), np.zeros(len(self._array), dtype=bool)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )  # fmt: skip


def _decoded(cell: Any) -> str:
    """Return a text of Parquet, cut; texts without their encoding are taken as UTF-8."""
    if cell is None:
        return ""
    text = cell[: 4 * LONGEST].decode("utf-8", "replace") if isinstance(cell, bytes) else cell
    return str(text)[: 4 * LONGEST]
