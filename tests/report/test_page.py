"""The page: escaping, numbers, pictures, size, bytes."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from policyfactory.core.picture import new_figure, svg_bytes
from policyfactory.core.text import anchors, visible
from policyfactory.report import page
from policyfactory.report.files import Drawings
from policyfactory.report.page import MOST_ROWS, Board, BoardGroup, Page, render
from policyfactory.report.sections import Cell, Column, Picture, Section, Table, format_for
from policyfactory.report.verdict import Light, Verdict
from policyfactory.statistics.intervals import Interval

HOSTILE = "</script><script>alert(\"1 & 2\")</script>\u202e\x00\ud800<b title='x'>"


def drawn(text: str) -> Callable[[], Any]:
    def draw() -> Any:
        figure = new_figure(4, 3)
        axes = figure.subplots()
        axes.plot([1, 2, 3], [3, 1, 2], "o-")
        axes.imshow(np.eye(2), extent=(1, 2, 1, 2))
        axes.bar([3], [2], hatch="//")
        axes.fill_between([1, 2], [1, 2], alpha=0.3)
        axes.pcolormesh([[1, 2], [3, 4]])
        axes.set_xlabel("time (h)")
        axes.set_title(visible(text), fontsize=5)
        return figure

    return draw


def table(*cells: Cell, unit: str = "1", name: str = "values") -> Table:
    rows = tuple((Cell(f"row {at}"), cell) for at, cell in enumerate(cells))
    return Table(name, "Values", (Column("policy"), Column("value", unit)), rows)


def page_of(*tables: Table, pictures: tuple[Picture, ...] = (), **changes: Any) -> Page:
    section = Section("medians", "Medians", ("What was found.",), tables, pictures)
    return dataclasses.replace(Page("A title", groups=(BoardGroup("KTH", (section,), "kth"),)), **changes)


class Elements(HTMLParser):
    """Collects what a browser would see: elements with their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_every_string_is_escaped_wherever_it_stands() -> None:
    everywhere = Table(
        "t", HOSTILE, (Column(HOSTILE, HOSTILE, HOSTILE),) * 2,
        ((Cell(HOSTILE, None, HOSTILE), Cell(1.0, Interval(0.0, 2.0), HOSTILE)),), HOSTILE,
    )  # fmt: skip
    section = Section("s", HOSTILE, (HOSTILE,), (everywhere,), (Picture("p", HOSTILE, drawn(HOSTILE), HOSTILE),))
    page = Page(
        HOSTILE, (HOSTILE,), HOSTILE, (HOSTILE,), (BoardGroup(HOSTILE, (section,)),), HOSTILE,
        {"command": HOSTILE, HOSTILE: HOSTILE},
    )  # fmt: skip
    html = render(page)
    seen = Elements(html)
    assert len(seen.named("script")) == 1
    assert not seen.named("b")
    assert not any(name.startswith("on") for _, attributes in seen.tags for name in attributes)
    # Each of them is there, as text, and what would hide or turn text is written out.
    assert html.count("alert(&#34;1 &amp; 2&#34;)") >= 15
    assert "\\u202e\\u0000\\ud800" in html
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", html)


def test_the_page_asks_nothing_of_any_other_server() -> None:
    html = render(page_of(table(Cell(1.0)), pictures=(Picture("p", "A picture", drawn("a")),)))
    seen = Elements(html)
    loading = {"src", "href", "xlink:href", "srcset", "data", "action", "poster", "style"}
    for tag, attributes in seen.tags:
        for name in loading & set(attributes):
            value = attributes[name] or ""
            assert value.startswith(("#", "data:,", "data:image/png;base64,")), (tag, name, value[:40])
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    policy = next(meta["content"] for meta in seen.named("meta") if meta.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_equal_pages_are_equal_bytes_and_a_picture_is_drawn_once() -> None:
    calls = []
    inner = drawn("a")
    picture = Picture("p", "A picture", lambda: calls.append(1) or inner())  # type: ignore[func-returns-value]
    page = page_of(table(Cell(1.0)), pictures=(picture,))
    kept = Drawings()
    assert kept.file(picture).startswith("<?xml")
    first = render(page, kept)
    assert len(calls) == 1
    assert render(page) == first
    assert len(calls) == 2


def test_what_differs_from_run_to_run_is_not_on_the_page() -> None:
    manifest = {
        "command": "policyfactory evaluate x.toml",
        "seed": 3,
        "measured": {"seconds": 51.252},
        "outputs": {"a": "b"},
    }
    html = render(page_of(manifest=manifest))
    assert "51.252" not in html
    assert "&#34;seed&#34;: 3" in html
    assert "outputs" not in html
    assert html == render(page_of(manifest={**manifest, "measured": {"seconds": 7.5}}))


def test_how_to_run_it_again_is_said_with_a_protocol_and_without_one() -> None:
    assert "policyfactory evaluate log.swf --seed 3" in render(
        page_of(manifest={"command": "policyfactory evaluate log.swf --seed 3"})
    )
    with_protocol = render(
        page_of(protocol='name = "sc17"\n', manifest={"command": "policyfactory evaluate sc17.toml"})
    )
    assert "policyfactory evaluate protocol.toml --traces FOLDER" in with_protocol
    assert "name = &#34;sc17&#34;" in with_protocol
    assert "How it was made" in render(Page("Nothing at all"))


def test_two_pictures_do_not_share_an_identifier_and_every_reference_has_its_target() -> None:
    pictures = (Picture("p", "One", drawn("a")), Picture("q", "Two", drawn("a")))
    html = render(page_of(table(Cell(1.0)), pictures=pictures))
    seen = Elements(html)
    ids = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', html))
    assert len(targets) > 20
    assert targets <= set(ids)


def test_a_letter_that_the_font_does_not_have_is_no_warning() -> None:
    # Warnings are errors here.
    assert "<use" in Drawings().inline(Picture("p", "A picture", drawn("\u65e5\u672c")), "")


def test_a_picture_is_shapes_alone_and_stands_as_a_file_too() -> None:
    picture = Picture("p", 'A <picture> & "more"', drawn("--> <script>"))
    root = ET.fromstring(Drawings().file(picture))
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    # What matplotlib writes beside these is metadata and a style sheet.
    everything = {element.tag.rpartition("}")[2] for element in ET.fromstring(svg_bytes(picture.draw())).iter()}
    assert (
        everything - tags == {"metadata", "RDF", "Work", "type", "format", "creator", "Agent", "title", "style"} - tags
    )
    assert tags == {"svg", "title", "g", "defs", "path", "use", "clipPath", "rect", "image", "pattern"}
    assert root[0].text == 'A <picture> & "more"'
    text = Drawings().file(picture)
    assert "<!--" not in text
    assert "style" not in text
    assert " fill=" in text
    assert 'aria-label="A &lt;picture&gt; &amp; &quot;more&quot;"' in Drawings().inline(picture, "x-")


@pytest.mark.parametrize(
    ("unit", "values", "texts"),
    [
        ("1", [299.83, 10.22, 0.01234, 12345.6], ["300", "10.2", "0.0123", "12,346"]),
        ("jobs", [1234567.0, 3.0], ["1,234,567", "3"]),
        ("s", [30.0, 60.0, 90.0], ["30", "60", "90"]),
        ("s", [3600.0, 5400.0, 9000.0], ["60", "90", "150"]),
        ("s", [86400.0, 172800.0, 432000.0], ["1", "2", "5"]),
        ("s", [7200.0, 9000.0, 2592000.0], ["2.00", "2.50", "720"]),
        ("%", [-1.5, 2.25, 0.0], ["-1.50", "+2.25", "0"]),
        ("1", [1e-9, 1.5], ["1e-09", "1.50"]),
        ("1", [math.inf, 2.5], ["infinite", "2.50"]),
    ],
)
def test_numbers_of_a_column(unit: str, values: list[float], texts: list[str]) -> None:
    cells = [Cell(value) for value in values]
    result = format_for(Column("value", unit), cells)
    assert [result.texts(cell)[0] for cell in cells] == texts


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (34.3, 29.1, 40.2, "34.3 [29.1, 40.2]"),
        (1234.12, 1233.6, 1234.4, "1,234.12 [1,233.60, 1,234.40]"),
        (5.0, 5.0, 5.0, "5.00 [5.00, 5.00]"),
        (-0.4, -5.2, 6.1, "-0.400 [-5.20, +6.10]"),
        (7.25, 1.0, math.inf, "7.25 [1.00, infinite]"),
    ],
)
def test_an_interval_has_the_digits_that_tell_its_ends_apart(value: float, low: float, high: float, text: str) -> None:
    cell = Cell(value, Interval(low, high))
    assert " ".join(format_for(Column("value"), [cell]).texts(cell)) == text


def test_seconds_are_shown_in_one_unit_and_sorted_in_their_own() -> None:
    html = render(
        page_of(table(Cell(7200.0, Interval(3600.0, 9000.0)), Cell(10800.0), Cell(None), Cell("none"), unit="s"))
    )
    cells = Elements(html)
    assert [entry["data-v"] for entry in cells.named("td") if "data-v" in entry] == ["7200", "10800"]
    assert '<span class="unit">(h)</span>' in html
    assert re.search(r'<span class="v">2.00</span> <span class="ci w\d+">\[1.00, 2.50\]</span>', html)


def test_marks_are_words() -> None:
    marks = ("best", "better", "worse", "no difference", "too few cases")
    html = render(page_of(table(*(Cell(1.0, None, mark) for mark in marks))))
    result = re.findall(r'<span class="mark (\w+)">([^<]+)</span> <span class="v">', html)
    assert result == [
        (kind, mark) for kind, mark in zip(["best", "better", "worse", "same", "other"], marks, strict=True)
    ]
    assert "with all policies judged together (Holm)" in html
    assert "leaves out zero" not in render(page_of(table(Cell(1.0, None, "best"))))


def test_a_long_table_is_cut_and_the_file_with_all_of_it_is_named() -> None:
    html = render(page_of(table(*(Cell(float(at)) for at in range(MOST_ROWS + 500)))))
    assert html.count("<tr") == MOST_ROWS + 1
    assert "first 2,000 of 2,500 rows" in html
    assert "<code>kth/medians/values.csv</code>" in html
    assert "rows; all of them" not in render(page_of(table(Cell(1.0))))


def test_groups_have_anchors_of_their_own_and_tables_may_be_empty() -> None:
    section = Section("s", "Nothing found", (), (Table("t", "Empty", (Column("a"), Column("b")), ()),))
    some = [("one", (section,)), ("two", (section,), "folder", ("Rules.",)), ("three", (section,), "content")]
    groups = tuple(BoardGroup(*group) for group in some)
    html = render(Page("T", groups=groups))
    ids = [attributes["id"] for _, attributes in Elements(html).tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert [name for name in ids if "-table-" not in name] == [
        "content", "one", "one-s", "folder", "folder-s", "content-2", "content-s", "how-it-was-made",
    ]  # fmt: skip
    assert '<p class="note">Rules.</p>' in html


def test_the_evidence_is_folded_if_there_is_something_in_front_of_it() -> None:
    sections = tuple(Section(f"s{at}", f"Section {at}", ("x",)) for at in range(30))
    board = Board("log", "cost", "cost", table(Cell(1.0)))
    html = render(Page("T", groups=(BoardGroup("one", sections, boards=(board,)),)))
    assert html.count('<details class="part" id="one-s') == 30
    assert not re.search('<details class="part" id="one-s[0-9]+" open', html)
    alone = render(Page("T", groups=(BoardGroup("one", sections),)))
    assert len(re.findall('<details class="part" id="one-s[0-9]+" open', alone)) == 30


def test_what_the_head_of_the_page_says_is_not_said_again() -> None:
    sections = (Section("in-short", "In short", ("F1 wins.",)), Section("ranks", "Ranks", ("F1 wins.", "It is first.")))
    html = render(Page("T", answers=("Experiment one. F1 wins.",), groups=(BoardGroup("one", sections, "one"),)))
    assert html.count("F1 wins.") == 1
    assert "It is first." in html
    # A section of which nothing is left is not announced.
    assert 'id="one-in-short"' not in html
    assert html.count(">In short<") == 1


def test_anchors_are_distinct_and_plain() -> None:
    assert anchors(["A b", "a  B", "", "<>", "a-b-2", "x" * 90]) == [
        "a-b",
        "a-b-2",
        "part",
        "part-2",
        "a-b-2-2",
        "x" * 60,
    ]


def test_numbers_of_numpy_are_numbers() -> None:
    html = render(page_of(table(Cell(np.int64(3)), Cell(np.float64(4.0)), Cell(math.nan))))  # type: ignore[arg-type]
    assert [entry["data-v"] for entry in Elements(html).named("td") if "data-v" in entry] == ["3", "4"]


@pytest.mark.parametrize(
    ("light", "word"),
    [("better", "Shown to be better"), ("cannot tell", "Cannot tell"), ("worse", "Worse: "), ("unsound", "Unsound: ")],
)
def test_the_verdict_opens_the_page_in_colour_shape_and_word(light: Light, word: str) -> None:
    verdict = Verdict(light, ("MINE is what it is.", "And why."), ("66 % of the requests are invented.",))
    html = render(page_of(answers=("FCFS has the lowest median.",), verdict=verdict, chosen="MINE"))
    first = html.index(word)
    assert first < html.index("MINE is what it is.") < html.index("And why.") < html.index("66 % of the requests")
    assert html.index("66 % of the requests") < html.index("FCFS has the lowest median.")
    assert f'class="verdict {light.replace(" ", "-")}"' in html
    assert html.count('class="sign" aria-hidden="true"') == 1
    assert 'id="verdict"' not in render(page_of())


def test_what_the_page_has_no_room_for_is_named_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = [Picture(name, f"Picture {name}", drawn(name)) for name in ("a", "b", "c", "d")]
    many = tuple(Cell(float(at)) for at in range(60))
    sections = (
        Section("one", "One", (), (table(*many, name="first"),), (pictures[0], pictures[1])),
        Section(
            "two", "Two", (), (table(*many, name="second"), table(*many, name="third")), (pictures[2], pictures[3])
        ),
    )
    one = len(Drawings().inline(pictures[0], "p1-"))
    monkeypatch.setattr(page, "_PICTURES", int(2.5 * one))
    monkeypatch.setattr(page, "_CELLS", 130)
    html = render(Page("T", groups=(BoardGroup("G", sections, "g"),)))
    # The first picture of each section before all others.
    assert [f'aria-label="Picture {name}" width' in html for name in "abcd"] == [True, False, True, False]
    assert "<code>g/one/b.svg</code>" in html
    assert "<code>g/two/d.svg</code>" in html
    # 120 cells, then the first rows of a table that is too long, then none of the next.
    assert html.count("<tr data-policy") == 60 + 12
    assert "first 12 of 60 rows; all of them are in <code>g/two/second.csv</code>" in html
    assert "Its 60 rows are in <code>g/two/third.csv</code>" in html
