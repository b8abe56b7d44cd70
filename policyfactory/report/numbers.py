"""Numbers of a column as people read them: one unit, three significant digits, as many as the interval bears."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence

from policyfactory.report.display import scale_for
from policyfactory.report.sections import Cell, Column

__all__ = ["NumberFormat", "format_for"]

_SIGNIFICANT = 3
_MOST = 6  # decimals
_DIFFERENCE = re.compile(r"\b(difference|change|minus|deviation)\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class NumberFormat:
    """How the numbers of one column are shown.

    Parameters
    ----------
    divisor : float
        Shown value = value / ``divisor``.
    unit : str
        Unit of the shown value; empty for a pure number.
    signed : bool
        Whether positive numbers carry a plus: in a column of differences.
    decimals : int or None
        Digits after the point; None: three significant digits.
    """

    divisor: float
    unit: str
    signed: bool
    decimals: int | None

    def texts(self, cell: Cell) -> tuple[str, str]:
        """Return the number of ``cell`` and its interval (``[low, high]``, or nothing) as text."""
        ends = (cell.interval.low / self.divisor, cell.interval.high / self.divisor) if cell.interval else ()
        width = ends[1] - ends[0] if ends else math.nan
        # A narrow interval needs more digits than three: its ends would look the same.
        least = 1 - math.floor(math.log10(width / 2)) if 0 < width < math.inf else 0
        value = self._text(float(cell.value or 0) / self.divisor, least)
        return value, f"[{', '.join(self._text(end, least) for end in ends)}]" if ends else ""

    def _text(self, number: float, least: int) -> str:
        if not math.isfinite(number):
            return "-" if math.isnan(number) else f"{number:+}".replace("inf", "infinite").lstrip("+")
        if number == 0:
            return "0"
        decimals = self.decimals
        if decimals is None:
            own = _SIGNIFICANT - 1 - math.floor(math.log10(abs(number)))
            decimals = min(max(own, least, 0), _MOST)
        sign = "+" if self.signed else ""
        text = f"{number:{sign},.{decimals}f}"
        # What is not zero is not shown as zero.
        return text if text.strip("+-0.") else f"{number:{sign}.0e}"


def format_for(column: Column, cells: Sequence[Cell]) -> NumberFormat:
    """Return the format in which all numbers of a column are readable.

    Parameters
    ----------
    column : Column
        Its unit; seconds become minutes, hours or days where the numbers ask for it.
    cells : sequence of Cell
        Its cells; texts are left alone.
    """
    values = [float(cell.value) for cell in cells if cell.value is not None and not isinstance(cell.value, str)]
    ends = [end for cell in cells if cell.interval for end in (cell.interval.low, cell.interval.high)]
    sizes = sorted(abs(value) for value in values if value and math.isfinite(value))
    # The middle one decides: one job that waits for a month shall not turn all others into 0.0001 months.
    scale = scale_for(column.unit, sizes[len(sizes) // 2 :][:1], column.shown)
    finite = [value / scale.divisor for value in values if math.isfinite(value)]
    whole = not ends and all(value == round(value) for value in finite)
    decimals = 0 if whole and column.decimals is None else column.decimals
    signed = any(value < 0 for value in finite) or _DIFFERENCE.search(column.title) is not None
    return NumberFormat(scale.divisor, scale.label, signed, decimals)
