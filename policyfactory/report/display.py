"""Numbers and names as people read them: one unit for a whole column, three to four digits, names that fit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping

from policyfactory.core.text import visible
from policyfactory.core.units import DAY, HOUR, MINUTE

__all__ = ["Scale", "percent", "scale_for", "shortened", "shown_units"]

_TIME = ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (5 * MINUTE, MINUTE, "min"))


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """How the values of one metric are shown.

    Parameters
    ----------
    divisor : float
        Shown value = value / ``divisor``.
    label : str
        Unit of the shown value; empty for a pure number.
    decimals : int
        At most so many, so that the small values of a column do not claim more than the large ones.
    """

    divisor: float
    label: str
    decimals: int = 5

    @property
    def suffix(self) -> str:
        """The unit as it follows a number: `` h``, or nothing for a pure number."""
        return f" {self.label}" if self.label else ""

    def text(self, value: float, *, signed: bool = False) -> str:
        """Return the value in this unit with about four digits, without the unit."""
        if not math.isfinite(value):
            return "-" if math.isnan(value) else f"{value:+}".replace("inf", "infinite")
        shown = value / self.divisor
        if shown == 0:
            return "0"
        plus = "+" if signed else ""
        text = f"{shown:{plus},.{min(self.decimals, _decimals(abs(shown)))}f}"
        # What is not zero is not shown as zero: its sign may decide a comparison.
        return text if float(text.replace(",", "")) else f"{shown:{plus}.1e}"


def _decimals(size: float) -> int:
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 3 if size >= 0.1 else 5


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
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    divisor, label = next(((by, name) for least, by, name in _TIME if largest >= least), (1, "s"))
    if shown:
        divisor, label = next(((by, name) for _, by, name in _TIME if name == shown), (1, "s"))
    if unit != "s":
        divisor, label = 1, "" if unit == "1" else unit
    return Scale(divisor, label, min(5, _decimals(largest / divisor) + 1))


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


def percent(share: float) -> str:
    """Return a relative change as text, for example ``+32 %``, ``-0.3 %``, ``0 %``."""
    value = 100 * share
    text = f"{value:+,.0f}" if abs(value) >= 10 else f"{value:+.1f}"
    return f"{text} %" if float(text.replace(",", "")) else "0 %"


def shortened(name: str, length: int = 30) -> str:
    """Return a name on one line; of a long one its beginning and its end, which tell models apart."""
    name = " ".join(visible(name).split())
    end = length // 3
    return name if len(name) <= length else f"{name[: length - end - 1]}…{name[-end:]}"
