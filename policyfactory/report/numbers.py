"""Numbers with their units as people read them: one unit for a whole column, and one for a metric all over a report."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from policyfactory.core.text import number_text
from policyfactory.core.units import DAY, HOUR, MINUTE
from policyfactory.report.sections import Cell, Column

__all__ = ["NumberFormat", "Scale", "format_for", "scale_for", "shown_units"]

_TIME = ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (5 * MINUTE, MINUTE, "min"))
_DIFFERENCE = re.compile(r"\b(difference|change|minus|deviation)\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """In which unit the values of one metric are shown.

    Parameters
    ----------
    divisor : float
        Shown value = value / ``divisor``.
    label : str
        Unit of the shown value; empty for a pure number.
    """

    divisor: float
    label: str

    @property
    def most(self) -> int | None:
        """Digits behind the point, of a unit that seconds are shown in: a second is the least that is meant."""
        return math.ceil(math.log10(self.divisor)) if self.divisor > 1 else None

    @property
    def suffix(self) -> str:
        """The unit as it follows a number: `` h``, or nothing for a pure number."""
        return f" {self.label}" if self.label else ""

    def text(self, value: float, *, signed: bool = False) -> str:
        """Return the value in this unit, without the unit."""
        return number_text(value / self.divisor, signed=signed, most=self.most)


def scale_for(unit: str, values: Iterable[float], shown: str = "") -> Scale:
    """Return the scale on which the values of a metric are all readable.

    Parameters
    ----------
    unit : str
        Unit of the values; ``s`` becomes minutes, hours or days where the largest values ask for it.
    values : iterable of float
        What will be shown.
    shown : str
        The unit in which seconds are shown ("s", "min", "h", "d"), where it is decided already (`shown_units`).
    """
    if unit != "s":
        return Scale(1, "" if unit == "1" else unit)
    if shown:
        return next((Scale(by, name) for _, by, name in _TIME if name == shown), Scale(1, "s"))
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return next((Scale(by, name) for least, by, name in _TIME if largest >= least), Scale(1, "s"))


def shown_units(values: Mapping[str, tuple[str, Iterable[float]]]) -> dict[str, str]:
    """Return one unit for each metric, so that its numbers can be compared all over a report.

    Parameters
    ----------
    values : mapping of str to (str, iterable of float)
        Metric: its unit, and the values of all policies on all logs (not of their differences or single cases).

    Returns
    -------
    dict of str to str
        What `scale_for` takes as ``shown``; empty where there is nothing to choose.
    """
    return {metric: scale_for("s", own).label if unit == "s" else "" for metric, (unit, own) in values.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class NumberFormat:
    """How the numbers of one column are shown.

    Parameters
    ----------
    scale : Scale
        In which unit.
    signed : bool
        Whether positive numbers carry a plus: in a column of differences.
    decimals : int or None
        Digits after the point; None: by the significant digits.
    digits : int
        Significant digits.
    """

    scale: Scale
    signed: bool
    decimals: int | None
    digits: int = 3

    def texts(self, cell: Cell) -> tuple[str, str]:
        """Return the number of ``cell`` and its interval (``[low, high]``, or nothing) as text."""
        ends = [cell.interval.low, cell.interval.high] if cell.interval else []
        width = (ends[1] - ends[0]) / self.scale.divisor if ends else math.nan
        # A narrow interval needs more digits than three: its ends would look the same.
        least = 1 - math.floor(math.log10(width / 2)) if 0 < width < math.inf else 0
        value, *bounds = (self._text(shown, least) for shown in (float(cell.value or 0), *ends))
        return value, f"[{', '.join(bounds)}]" if bounds else ""

    def _text(self, value: float, least: int) -> str:
        shown = value / self.scale.divisor
        most = self.scale.most
        return number_text(
            shown, signed=self.signed, decimals=self.decimals, least=least, digits=self.digits, most=most
        )


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
    with_interval = any(cell.interval for cell in cells)
    sizes = sorted(abs(value) for value in values if value and math.isfinite(value))
    # The middle one decides: one job that waits for a month shall not turn all others into 0.0001 months.
    scale = scale_for(column.unit, sizes[len(sizes) // 2 :][:1], column.shown)
    finite = [value / scale.divisor for value in values if math.isfinite(value)]
    whole = not with_interval and all(value == round(value) for value in finite)
    decimals = 0 if whole and column.decimals is None else column.decimals
    signed = any(value < 0 for value in finite) or _DIFFERENCE.search(column.title) is not None
    return NumberFormat(scale, signed, decimals, column.digits)
