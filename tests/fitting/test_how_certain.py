"""The script behind docs/how-certain.md runs, small, and writes what the page shows."""

from __future__ import annotations

import csv
import re
import runpy
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.mark.slow
def test_the_script_writes_its_numbers_and_pictures(root: Path, shared: Callable[[str], Path], tmp_path: Path) -> None:
    script = runpy.run_path(str(root / "evaluate" / "studies" / "how_certain.py"))
    published = shared("oracles/sc17-score-distribution.csv")
    small = ["--jobs-in-log", "3000", "--tuples", "40", "--trials", "992", "--replicates", "5"]
    few = ["--logs", "1", "--log-tuples", "20"]
    script["main"](["--output", str(tmp_path), "--published", str(published), *small, *few])
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "certainty-forms.csv",
        "certainty-logs.csv",
        "certainty.csv",
    ]
    assert sorted(path.name for path in (tmp_path / "img").iterdir()) == ["certainty.png", "shuffle.png"]
    rows = (tmp_path / "data" / "certainty-forms.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 5 + 6 + 1 + len(script["RICH"]) + 3 + 1
    assert np.isclose(script["first_of_the_shuffle"](32).sum(), 1)


def test_the_numbers_in_the_repository_are_of_the_experiment_that_the_page_tells(root: Path) -> None:
    lines = (root / "docs" / "data" / "certainty.csv").read_text(encoding="utf-8").splitlines()
    sizes = sorted({int(line.split(",")[0]) for line in lines[1:]})
    assert sizes[0] == 25
    assert sizes[-1] == 24_000
    for size in sizes:
        shares = [float(line.split(",")[2]) for line in lines[1:] if line.startswith(f"{size},")]
        # Each is written with four digits.
        assert abs(sum(shares) - 1) < 1e-3


# The figures of the page are those of the files. ---------------------------------------------------------------------


def rows_of(root: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((root / "docs" / "data" / name).read_text(encoding="utf-8").splitlines()))


def page_table(root: Path, heading: str) -> list[list[str]]:
    """Return the cells of the table of the page whose heading begins so, without backslashes and emphasis."""
    lines = (root / "docs" / "how-certain.md").read_text(encoding="utf-8").splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith(heading))
    result = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        plain = line.replace("\\*", "\0").replace("*", "").replace("\0", "*")
        result.append([cell.strip() for cell in plain.strip("|").split("|")])
    return result


def is_printed(text: str, value: float) -> bool:
    """Return whether ``value`` rounds to the digits that are printed, for example 561, 2,505, 13.3e4, 62 %."""
    number = re.fullmatch(r"(-?[\d,]+)(?:\.(\d+))?(?:e(-?\d+))?( %)?", text)
    assert number, text
    places = len(number[2] or "") - int(number[3] or 0) + (2 if number[4] else 0)
    shown = float(text.replace(",", "").removesuffix(" %")) / (100 if number[4] else 1)
    return abs(shown - value) <= 0.5 * 10.0**-places * (1 + 1e-6)


def test_the_sentence_on_logs(root: Path) -> None:
    text = " ".join((root / "docs" / "how-certain.md").read_text(encoding="utf-8").split())
    rows = rows_of(root, "certainty-logs.csv")
    first = Counter(row["first"] for row in rows)
    assert first == {"p*log10(q) + log10(r)": 6, "p*q + log10(r)": 3, "p*sqrt(q) + log10(r)": 1}
    assert "First is `p*log10(q)` on six of them, `p*q` on three and `p*sqrt(q)` on one" in text
    assert {row["rank_of_f1"] for row in rows} == {"2", "3", "4", "5"}
    ratios = [float(row["f1_ratio"]) for row in rows]
    assert f"870 in the paper, lies between {min(ratios):.0f} and {max(ratios):.1f}." in text


def test_the_table_of_ratios(root: Path) -> None:
    rows = {(row["tuples"], row["form"]): row for row in rows_of(root, "certainty.csv")}
    for form, _, *intervals in page_table(root, "| form | published |"):
        name = form.split(": ")[1].replace("c*", "")
        for size, shown in zip(("400", "24000"), intervals, strict=True):
            row = rows[size, name]
            for text, key in zip(shown.split(" to "), ("ratio_low", "ratio_high"), strict=True):
                assert is_printed(text, float(row[key])), (form, size, text)


def test_the_table_of_formulas(root: Path) -> None:
    rows = {row["name"]: row for row in rows_of(root, "certainty-forms.csv")}
    named = {
        "p**0.117*q**0.055 - 0.17*log10(r)": "free exponents",
    }
    shown = page_table(root, "| formula | terms |")
    assert len(shown) == 12
    for name, terms, mae, held, pairs in shown:
        row = rows[named.get(name, "") or re.split(r"[:,]", name)[0]]
        assert terms == (row["terms"] if terms else "")
        for text, key in ((mae, "mae"), (held, "held_out"), (pairs, "pairs")):
            assert not text or is_printed(text, float(row[key])), (name, key)


def test_the_figures_in_the_text(root: Path) -> None:
    text = " ".join((root / "docs" / "how-certain.md").read_text(encoding="utf-8").split())
    rows = rows_of(root, "certainty.csv")

    def first(size: int) -> list[float]:
        return sorted(float(row["first"]) for row in rows if row["tuples"] == str(size))

    best, second = sorted(float(row["mae_median"]) for row in rows if row["tuples"] == "24000")[:2]
    ratio = {row["tuples"]: row for row in rows if row["form"] == "p*sqrt(q) + log10(r)"}
    spans = {size: float(ratio[size]["ratio_high"]) / float(ratio[size]["ratio_low"]) for size in ("400", "24000")}
    assert f"none is in more than {100 * first(200)[-1]:.0f} % of the tables" in text
    assert f"first in {100 * first(24_000)[-1]:.0f} %" in text
    assert f"its error is {100 * (1 - best / second):.1f} % smaller" in text
    assert f"spans a factor of {spans['400']:.0f}, at 24,000 still {spans['24000']:.1f}" in text
