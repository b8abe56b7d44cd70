"""Which fields a line of a log has, and what is kept of them: the 18, and further ones that the header names."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from policyfactory.workload.header import Header
from policyfactory.workload.swf.extra import EXTRA_FIELDS, WIDEST, named_fields
from policyfactory.workload.swf.log import FIELD_NAMES, FIELDS

__all__ = ["LineFields", "line_fields"]


@dataclasses.dataclass(frozen=True, slots=True)
class LineFields:
    """The fields of a line.

    Parameters
    ----------
    names : tuple of str
        What is kept: the 18, and those of `EXTRA_FIELDS` that the header names.
    rows : int64 array (fields,)
        For each field of a line its place among these, -1 if it is passed over.
    ignored : str
        What is passed over, in words; empty: nothing.
    """

    names: tuple[str, ...]
    rows: NDArray[np.int64]
    ignored: str = ""

    def called(self, field: int) -> str:
        """Return what messages call the field at place ``field``, from 0."""
        row = int(self.rows[field]) if field < len(self.rows) else -1
        if row < 0:
            return f"field {field + 1}"
        name = self.names[row]
        return f"field {field + 1} ({FIELD_NAMES.get(name) or EXTRA_FIELDS[name].partition(',')[0]})"


def line_fields(header: Header, first: bytes) -> LineFields:
    """Return what a line has, by the header or, for fields without a name, by the first line.

    Parameters
    ----------
    header : Header
        May name further fields.
    first : bytes
        The first line of a job.
    """
    named = named_fields(header)[: WIDEST - len(FIELDS)]
    rows = list(range(len(FIELDS)))
    names = list(FIELDS)
    for name in named:
        known = name in EXTRA_FIELDS and name not in names
        rows.append(len(names) if known else -1)
        names += [name] if known else []
    width = len(first.split(maxsplit=WIDEST))
    if not named and len(FIELDS) < width <= WIDEST:
        rows += [-1] * (width - len(FIELDS))
    passed = [place + 1 for place, row in enumerate(rows) if row < 0]
    ignored = ""
    if passed:
        fields = f"field {passed[0]}" if len(passed) == 1 else f"fields {', '.join(map(str, passed))}"
        ignored = f"{fields} that no name of ExtraFields tells the meaning of, passed over"
    return LineFields(tuple(names), np.array(rows, dtype=np.int64), ignored)
