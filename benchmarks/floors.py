"""What a benchmark says: named measures and curves, with the least that a speed may be.

A floor that is missed is a failure where somebody measures, and a line in the log of CI (shared machines). At the end
of a session conftest.py writes all of them to build/bench and compares them with docs/data/performance.csv.
"""

from __future__ import annotations

import dataclasses
import os

import numpy as np

__all__ = [
    "CURVES",
    "MEASURES",
    "Curve",
    "Measure",
    "hold",
    "promise",
    "record",
    "record_curve",
    "set_yardstick",
    "slope_of",
]


@dataclasses.dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table.

    Parameters
    ----------
    group, what : str
        Under what it stands, and its name there; together they are its key from run to run.
    value : float
        In ``unit``.
    unit : str
        ``"M trials/CPU s"``, ``"CPU s"``, ``"s"``, ``"MB"``, ``"ratio"`` ...
    floor, ceiling : float or None
        The least, or the most, that it may be.
    ratio : float or None
        How many times as good as ``to``, measured in the same run: more is better.
    to : str
        What it is compared with.
    yardstick : float
        Million trials a CPU second of trials.c just before: how fast the machine was at that moment; 0: not known.
    """

    group: str
    what: str
    value: float
    unit: str
    floor: float | None = None
    ceiling: float | None = None
    ratio: float | None = None
    to: str = ""
    yardstick: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """What it is found by in another run."""
        return self.group, self.what

    @property
    def missed(self) -> bool:
        """Whether it is outside what was promised."""
        return (self.floor is not None and self.value < self.floor) or (
            self.ceiling is not None and self.value > self.ceiling
        )

    @property
    def more_is_better(self) -> bool:
        """Whether a larger value is the better one: speeds and ratios are, seconds and bytes are not."""
        return self.unit.endswith("/CPU s") or self.unit in {"ratio", "share"}

    @property
    def tracked(self) -> float:
        """What is compared from run to run, as free of the machine as can be: more is better.

        The ratio where there is one; else a speed in units of the yardstick's; bytes and shares as they are.
        """
        if self.ratio is not None:
            return self.ratio
        timed = "s" in self.unit.replace("/", " ").split()
        speed = self.value if self.more_is_better else 1 / self.value if self.value else 0.0
        return speed / self.yardstick if timed and self.yardstick else speed


@dataclasses.dataclass(frozen=True, slots=True)
class Curve:
    """How a cost grows.

    Parameters
    ----------
    figure, name : str
        The picture it belongs to, and its name there.
    by, unit : str
        What x and y are.
    points : tuple of (float, float)
        Sizes and costs.
    theory : float or None
        The slope that theory says; None: it says none.
    reason : str
        Why.
    begin : float
        The slope is that of the points from here on: below, costs that do not grow are seen.
    """

    figure: str
    name: str
    by: str
    unit: str
    points: tuple[tuple[float, float], ...]
    theory: float | None
    reason: str
    begin: float = 0.0


# Of this session, in order.
MEASURES: list[Measure] = []
CURVES: list[Curve] = []
# The yardstick as measured last; conftest.py sets it before each test.
_yardstick = [0.0]


def set_yardstick(speed: float) -> None:
    """Remember how fast plain C is at this moment, in million trials a CPU second."""
    _yardstick[0] = speed


def record(
    group: str,
    what: str,
    value: float,
    unit: str,
    *,
    floor: float | None = None,
    ceiling: float | None = None,
    ratio: float | None = None,
    to: str = "",
) -> None:
    """Say a measure and keep it for the table; fail if it misses its floor or ceiling and this is not CI.

    The parameters are those of `Measure`.
    """
    measure = Measure(group, what, float(value), unit, floor, ceiling, ratio, to, _yardstick[0])
    MEASURES.append(measure)
    bound = f" (at least {floor:g})" if floor is not None else f" (at most {ceiling:g})" if ceiling is not None else ""
    beside = f", {ratio:.3g} times {to}" if ratio is not None else ""
    print(f"\n{group}: {what}: {value:.4g} {unit}{bound}{beside}{' MISSED' if measure.missed else ''}", end="")
    if measure.missed and os.environ.get("CI") != "true":
        raise AssertionError(f"{what} is {value:.3g} {unit}{bound} as promised; is the machine quiet?")


def promise(what: str, value: float, *, least: float) -> None:
    """Fail if ``value`` is below ``least`` and this is not CI."""
    if value < least and os.environ.get("CI") != "true":
        raise AssertionError(f"{what} is {value:.3g}, at least {least:g} is promised; is the machine quiet?")


def hold(what: str, value: float, *, least: float, group: str = "others", to: str = "") -> None:
    """Record a ratio or a share that has a floor."""
    record(group, what, value, "ratio" if to else "share", floor=least, ratio=value if to else None, to=to)


def record_curve(curve: Curve) -> None:
    """Keep a curve for the pictures, and its slope for the table."""
    CURVES.append(curve)
    slope, error = slope_of(curve)
    beside = "" if curve.theory is None else f", theory {curve.theory:g}"
    print(f"\n{curve.figure}: {curve.name}: slope {slope:.3f} +- {error:.3f}{beside}", end="")


def slope_of(curve: Curve) -> tuple[float, float]:
    """Return the slope of log y over log x by least squares, and its standard error."""
    points = np.array([point for point in curve.points if point[0] >= curve.begin], dtype=float)
    x, y = np.log(points).T
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    left = y - slope * x
    return slope, float(np.sqrt(left @ left / max(len(x) - 2, 1) / (x @ x)))
