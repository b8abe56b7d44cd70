"""Units, random streams, errors and pictures."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from policyfactory.core import picture
from policyfactory.core import text as units
from policyfactory.core.errors import FormulaError, OutputError, UsageError
from policyfactory.core.random import generator
from refusals import refused


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("15d", 1_296_000), ("20h", 72_000), ("2h30m", 9_000), ("1w", 604_800), ("0.5h", 1_800), ("0", 0)],
)
def test_durations(text: str, seconds: int) -> None:
    assert units.parse_duration(text) == seconds
    assert units.parse_duration(f" {text.upper()} ") == seconds


def test_a_number_without_a_unit_can_be_refused() -> None:
    refused(UsageError, "15 15m 15h 15d 15s", units.parse_duration, "15", unit=True)
    assert [units.parse_duration(text, unit=True) for text in ("0", "15s", "inf")] == [0, 15, math.inf]


def test_no_limit() -> None:
    assert units.parse_duration("inf") == units.parse_duration("none") == math.inf
    assert units.format_duration(math.inf) == "no limit"


@pytest.mark.parametrize("text", ["", "h", "1x", "1d 2h", "-5", "1e3", "nan", "0.0001s", "1d" * 40, "٣"])
def test_what_is_no_duration(text: str) -> None:
    refused(UsageError, "duration", units.parse_duration, text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.6, "1m"), (3_600, "1h"), (90_061, "1d 1h"), (-61, "-1m 1s"), (200, "3m 20s")],
)
def test_format_duration(seconds: float, text: str) -> None:
    assert units.format_duration(seconds) == text


@pytest.mark.parametrize("seconds", [0, 7200, 7200.0, 10**15 - 1, math.inf])
def test_seconds_are_written_as_they_are_read(seconds: float) -> None:
    assert units.parse_duration(units.duration_text("threshold", seconds), unit=True) == seconds


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "-5"),
        (0.5, "0.5"),
        (1e20, "1e+20"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        pytest.param(10**5000, "of hundreds of digits", id="long"),
    ],
)
def test_numbers_that_are_no_time_are_shown_as_they_were_given(seconds: float, shown: str) -> None:
    refused(UsageError, f"threshold {shown} 0 1e15", units.duration_text, "threshold", seconds)


def test_streams_are_addressed_not_drawn_in_turn() -> None:
    first = generator(7, 1, 2).random(4)
    generator(7, 1, 1).random(100)
    assert np.array_equal(generator(7, 1, 2).random(4), first)
    assert not np.array_equal(generator(7, 2, 1).random(4), first)
    assert not np.array_equal(generator(8, 1, 2).random(4), first)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_out_of_range(seed: int) -> None:
    refused(UsageError, "non-negative 0", generator, seed)


def test_a_formula_error_shows_the_place() -> None:
    error = FormulaError("unexpected '*'", "p ** * q", 5)
    assert str(error) == "unexpected '*' (at character 6)\n    p ** * q\n         ^"
    control = FormulaError("unexpected character", "p\x1b[31m", 1)
    assert "\x1b" not in str(control)


def test_a_picture_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    for suffix in ("png", "svg", "pdf"):
        files = [tmp_path / f"{name}.{suffix}" for name in "ab"]
        for file in files:
            figure = picture.new_figure()
            figure.subplots().set_title("a $name$ from a log")
            picture.save_picture(figure, file)
        assert files[0].read_bytes() == files[1].read_bytes()
    refused(OutputError, "a.gif png svg", picture.save_picture, picture.new_figure(), tmp_path / "a.gif")


def test_a_picture_that_is_written_later_has_the_same_bytes_too() -> None:
    @picture.keeps_settings
    def draw() -> Figure:
        figure = picture.new_figure()
        figure.subplots().plot([1, 2, 3])
        return figure

    at_once = picture.keeps_settings(lambda: picture.svg_bytes(draw()))()
    assert picture.svg_bytes(draw()) == picture.svg_bytes(draw()) == at_once
