"""The cells of one column of a block of rows, from a text or from Parquet: as texts, numbers, times."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from policyfactory.core.options import FloatArray, Int64Array, Mask
from policyfactory.workload.accounting.record import coded
from policyfactory.workload.accounting.sacct import MB, memory_of_jobs
from policyfactory.workload.accounting.times import NO_TIME, UNREADABLE, Clock, duration, whole_numbers
from policyfactory.workload.tables.mapping import DURATION_UNITS, MEMORY_UNITS, MappedColumn

# What tables have where there is nothing.
NOTHING = frozenset({"", "nan", "NaN", "null", "NULL", "None", "none", "N/A", "NA", "\\N", "(null)", "NaT", "<NA>"})
# Characters of a cell that becomes a name; a longer one is cut, so that a table of huge texts takes no memory.
LONGEST = 256
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


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


class Cells:
    """One column of a block of rows: its cells as texts, and what these say.

    Attributes
    ----------
    kind : {"text", "number", "time", "duration", "other"}
        What the cells are; texts can hold anything.
    """

    kind = "text"

    def texts(self) -> list[str]:
        """Return the cells as texts; nothing is the empty text."""
        raise NotImplementedError

    def coded(self) -> tuple[Int64Array, list[str]]:
        """Return the cells as numbers of the different texts, and these."""
        return coded(self.texts())

    def numbers(self) -> tuple[FloatArray, Mask]:
        """Return the cells as numbers, NaN for nothing, and which of them are none."""
        return numbers_of(*self.coded())


class TextCells(Cells):
    """Cells of a text.

    Parameters
    ----------
    texts : list of str
        A text for each row.
    """

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def texts(self) -> list[str]:
        """Return the cells as they are."""
        return self._texts

    def numbers(self) -> tuple[FloatArray, Mask]:
        """Return the cells as numbers, many together where all are whole."""
        whole = whole_numbers(self._texts)
        return super().numbers() if whole is None else (whole.astype(np.float64), np.zeros(len(whole), dtype=bool))


def numbers_of(
    codes: Int64Array, texts: list[str], read: Callable[[str], float] = number_of
) -> tuple[FloatArray, Mask]:
    """Return coded texts as numbers, and which of them are none: ``read`` raises ValueError for these."""
    values, wrong = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
    for row, text in enumerate(texts):
        try:
            values[row] = read(text)
        except ValueError:
            wrong[row] = True
    return values[codes], wrong[codes]


class ArrowCells(Cells):
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

    def seconds(self) -> tuple[Int64Array, Mask]:
        """Return times or durations in whole seconds, rounded down, and which cells have one."""
        import pyarrow as pa

        known = ~np.asarray(self._array.is_null().to_numpy(zero_copy_only=False), dtype=bool)
        ticks = np.asarray(self._array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
        return ticks // _PER_SECOND[self._array.type.unit], known

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
            return super().coded()
        array = self._array if self._dictionary else self._array.dictionary_encode()
        texts = [_decoded(cell) for cell in array.dictionary.to_pylist()]
        codes = array.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False).astype(np.int64)
        # Only those that are there: a dictionary can be that of the whole file.
        present, again = np.unique(codes, return_inverse=True)
        return again.astype(np.int64), [texts[code] if code < len(texts) else "" for code in present.tolist()]

    def numbers(self) -> tuple[FloatArray, Mask]:
        """Return the cells as numbers."""
        if self.kind != "number":
            return super().numbers()
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
    text = cell[: 4 * LONGEST].decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else cell
    return str(text)[: 4 * LONGEST]


# From cells to numbers ------------------------------------------------------------------------------------------------

# Times, durations, counts, memory and names as a mapping says they are written.


# What a duration is where the table says that there is no limit; beside `NO_TIME` and `UNREADABLE`.
UNLIMITED = -4
_LARGEST = float(1 << 61)
_FRACTION = re.compile(r"(:\d{2})[.,]\d{1,12}", re.ASCII)
_SHORT_OFFSET = re.compile(r":\d{2}[+-]\d{2}$", re.ASCII)
_DAYS = re.compile(r"(\d{1,6}) days?,? (\d{1,2}):(\d{2}):(\d{2})(?:\.\d{1,12})?", re.ASCII)
_TRES = re.compile(r"([^=,]{1,100})=(\d{1,18}(?:\.\d{1,9})?)([KMGTP]?)(?=,|$)", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Times:
    """A column of times.

    Parameters
    ----------
    values : int64 array (n,)
        Unix times, or `NO_TIME`, `UNREADABLE` or `AMBIGUOUS`.
    texts : list of str
        The cells of those that can mean two.
    """

    values: Int64Array
    texts: list[str]


def read_times(cells: Cells, column: MappedColumn, clock: Clock, origin: int) -> Times:
    """Return a column of times.

    Parameters
    ----------
    cells : Cells
        The column.
    column : Column
        How it is written.
    clock : Clock
        For times that have no zone.
    origin : int
        Unix time from which times of the unit ``log`` count.
    """
    if isinstance(cells, ArrowCells) and cells.zoned:
        seconds, known = cells.seconds()
        return Times(np.where(known & (seconds > 0), seconds, NO_TIME), [])
    if column.unit == "date" or cells.kind == "time":
        if cells.kind == "number":
            # Numbers, where dates are expected: nothing says in which unit.
            return Times(np.full(len(cells.numbers()[0]), UNREADABLE, dtype=np.int64), [])
        none = NOTHING.union(column.none)
        texts = ["" if text in none else _as_printed(text) for text in cells.texts()]
        return Times(clock.column(texts), texts)
    values, wrong = cells.numbers()
    relative = column.unit == "log"
    nothing = np.isnan(values) | _is_one_of(cells, values, column.none)
    nothing |= (values < 0) if relative else (values <= 0)
    seconds = np.floor(_bounded(values) / _PER_SECOND.get(column.unit, 1)).astype(np.int64)
    result = np.where(nothing, NO_TIME, seconds + (origin if relative else 0))
    return Times(np.where(wrong, UNREADABLE, result), [])


def _as_printed(text: str) -> str:
    """Return a date and time of day as Slurm prints it: a T between them, no parts of a second."""
    text = text.strip()
    if text.endswith(" UTC"):
        text = f"{text[:-4]}Z"
    if len(text) > 10 and text[10] == " ":
        text = f"{text[:10]}T{text[11:]}"
    if len(text) > 19:
        text = _FRACTION.sub(r"\1", text, count=1)
        if _SHORT_OFFSET.search(text):
            text += ":00"
    return text


def _bounded(values: FloatArray) -> FloatArray:
    """Return numbers that have a place in 64 bits; 0 for those that are none."""
    return np.clip(np.nan_to_num(values, nan=0.0, posinf=_LARGEST, neginf=-1.0), -_LARGEST, _LARGEST)


def _is_one_of(cells: Cells, values: FloatArray, chosen: tuple[str, ...]) -> Mask:
    """Return which cells are one of some: by their text, and numbers by their value."""
    found = np.zeros(len(values), dtype=bool)
    if not chosen:
        return found
    numbers = []
    for text in chosen:
        try:
            numbers.append(number_of(text))
        except ValueError:
            continue
    if numbers:
        found |= np.isin(values, numbers)
    if cells.kind == "text":
        codes, texts = cells.coded()
        found |= np.array([text.strip() in chosen for text in texts], dtype=bool)[codes]
    return found


def read_durations(cells: Cells, column: MappedColumn) -> Int64Array:
    """Return a column of durations in seconds, or `NO_TIME`, `UNREADABLE` or `UNLIMITED`.

    A Parquet column of durations has a unit of its own; numbers have that of the mapping, texts as well unless they
    are written with colons (``12:00:00``, ``1-00:00:00``, ``1 days 00:00:00``).
    """
    if isinstance(cells, ArrowCells) and cells.kind == "duration":
        seconds, known = cells.seconds()
        return np.where(known & (seconds >= 0), seconds, NO_TIME)
    if cells.kind in {"time", "other"}:
        return np.full(len(cells.texts()), UNREADABLE, dtype=np.int64)
    factor = DURATION_UNITS[column.unit]
    values, wrong = cells.numbers()
    seconds = np.rint(np.clip(_bounded(values) * factor, -_LARGEST, _LARGEST)).astype(np.int64)
    result = np.where(np.isnan(values) | (values < 0), NO_TIME, seconds)
    if wrong.any():
        codes, texts = cells.coded()
        result = np.where(wrong, np.array([_written(text) for text in texts], dtype=np.int64)[codes], result)
    # Not in seconds: 4294967295 minutes are none, not seconds.
    result[_is_one_of(cells, values, column.none)] = NO_TIME
    result[_is_one_of(cells, values, column.unlimited) | np.isposinf(values)] = UNLIMITED
    return result


def _written(text: str) -> int:
    """Return the seconds of a duration that is no plain number."""
    text = text.strip()
    if text.upper() in {"UNLIMITED", "INFINITE"}:
        return UNLIMITED
    if text in {"Partition_Limit", "INVALID", "NOT_SET"}:
        return NO_TIME
    if match := _DAYS.fullmatch(text):
        days, hours, minutes, seconds = map(int, match.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    # With one colon it may be hours and minutes, or minutes and seconds.
    known = duration(text) if text.count(":") == 2 or ("-" in text and not text.startswith("-")) else None
    return UNREADABLE if known is None else known


def read_counts(cells: Cells, column: MappedColumn, *, absent: int = -1) -> Int64Array:
    """Return a column of counts: -1 where the table says nothing, `UNREADABLE` for what is no count.

    ``absent`` is what a list of trackable resources without the wanted one means.
    """
    values, wrong = _numbers(cells, column, lambda text: _entry(text, column.tres, _plain, float(absent)))
    none = np.isnan(values) | (values < 0)
    wrong |= ~none & (values != np.rint(values)) & (column.by == 1)
    if not (column.tres or column.after or column.before):
        none |= _is_one_of(cells, values, column.none)
    counts = np.ceil(_bounded(values) * column.times / column.by).astype(np.int64)
    return np.where(wrong, UNREADABLE, np.where(none, -1, counts))


def read_memory(cells: Cells, column: MappedColumn, nodes: Int64Array, cores: Int64Array) -> Int64Array:
    """Return a column of memory in MB over the whole job, rounded up: -1 for none, `UNREADABLE`.

    Parameters
    ----------
    cells : Cells
        The column.
    column : Column
        How it is written.
    nodes, cores : int64 array (n,)
        What each job asks for, -1 where it is not known: the memory may be that of each.
    """
    if column.unit == "slurm" and not column.tres and cells.kind == "text":
        codes, texts = cells.coded()
        clean = ["" if text.strip() in NOTHING else text.strip() for text in texts]
        values = memory_of_jobs(codes, clean, nodes, cores)
        wrong = values < 0
    else:
        values, wrong = _numbers(cells, column, lambda text: _entry(text, column.tres, MB.__getitem__, -1.0))
        if not column.tres:
            values = np.where(
                _is_one_of(cells, values, column.none), np.nan, values * (MEMORY_UNITS[column.unit] or 1.0)
            )
    none = np.isnan(values) | (values <= 0)
    megabytes = np.ceil(_bounded(values) * column.times / column.by).astype(np.int64)
    return np.where(wrong, UNREADABLE, np.where(none, -1, megabytes))


def _numbers(cells: Cells, column: MappedColumn, entry: Callable[[str], float]) -> tuple[FloatArray, Mask]:
    """Return a column of numbers, each of which may be a part of its cell, and which are none."""
    if not (column.tres or column.after or column.before):
        return cells.numbers()
    return numbers_of(*cells.coded(), entry if column.tres else lambda text: number_of(_part(text, column)))


def _part(text: str, column: MappedColumn) -> str:
    """Return the part of a cell that is read; a cell without the marks is nothing."""
    if column.after:
        text = text.rpartition(column.after)[2] if column.after in text else ""
    if column.before:
        text = text.partition(column.before)[0] if column.before in text else ""
    return text


def _plain(letter: str) -> float:
    return {"": 1.0, "K": 1e3, "M": 1e6}.get(letter, float("nan"))


def _entry(text: str, names: tuple[str, ...], scale: Callable[[str], float], absent: float) -> float:
    """Return the first of some entries of a list ``name=number``."""
    text = text.strip().strip("\"'")
    if text in NOTHING:
        return float("nan")
    entries = {name.strip(): float(number) * scale(letter) for name, number, letter in _TRES.findall(text)}
    if not entries:
        raise ValueError(text[:60])
    return next((entries[name] for name in names if name in entries), absent)


def read_names(cells: Cells, column: MappedColumn) -> tuple[Int64Array, list[str], int]:
    """Return a column of names as numbers of the different ones, these, and how many cells were cut."""
    codes, texts = cells.coded()
    none = NOTHING.union(column.none)
    cut = np.array([len(text) > LONGEST for text in texts], dtype=bool)
    names = ["" if text in none else _part(text, column)[:LONGEST] for text in (text.strip() for text in texts)]
    # Different cells may be one name now.
    again, names = coded(names)
    return again[codes], names, int(cut[codes].sum()) if cut.any() else 0
