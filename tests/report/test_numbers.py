"""Numbers as people read them: of a time in hours nothing below a second, and no zero with a sign."""

from __future__ import annotations

import pytest

from policyfactory.report.sections import Cell, Column, format_for, scale_for


@pytest.mark.parametrize(
    ("seconds", "unit", "said"),
    [
        (-0.137, "h", "0"),
        (0.137, "h", "0"),
        (-1e-9, "d", "0"),
        (0.4, "d", "0"),
        (-0.2, "min", "0"),
        (-2.0, "h", "-0.0006"),
        (4.4, "h", "0.0012"),
        (3_600.0, "h", "1.00"),
        (-44_444.0, "h", "-12.3"),
        (1_100.0, "d", "0.0127"),
        (-0.137, "s", "-0.137"),
        (0.0, "h", "0"),
        (-0.0, "h", "0"),
    ],
)
def test_what_is_less_than_a_second_is_nothing_in_hours(seconds: float, unit: str, said: str) -> None:
    assert scale_for("s", [seconds], unit).text(seconds) == said
    cells = [Cell(seconds), Cell(0.5)]
    shown = format_for(Column("difference", "s", shown=unit), cells).texts(cells[0])[0]
    assert shown == (f"+{said}" if seconds > 0 and said != "0" else said)


def test_a_pure_number_that_is_small_is_still_shown() -> None:
    assert scale_for("1", [-3.8e-5]).text(-3.8e-5) == "-0.000038"
