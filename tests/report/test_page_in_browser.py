"""The report in a real Chromium: it renders, fetches nothing, sorts, fits a phone and can be read in the dark.

Chromium is not installed by this test: Debian's package is `chromium`; another one is named by POLICYFACTORY_CHROMIUM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import Watched, opening

from policyfactory.core.picture import new_figure
from policyfactory.core.text import visible
from policyfactory.report.page import BoardGroup, Page, render
from policyfactory.report.sections import Cell, Column, Picture, Section, Table
from policyfactory.statistics.intervals import Interval

pytestmark = pytest.mark.browser

POLICY = "<img src=x onerror=alert(1)>"
LOG = "</script><script>alert(2)</script>"
# Policy, mean bounded slowdown with interval, mean wait in seconds.
ROWS: list[tuple[str, float | None, tuple[float, float] | None, float | None]] = [
    ("FCFS", 100.0, (80.0, 130.0), 36_000.0),
    (POLICY, 9.5, (9.1, 9.9), 7_200.0),
    ("SAF & 'co' \"q\"", None, None, None),
    ("F1", 1234.5, (1000.0, 1500.0), 9_000.0),
    ("SPF", 9.5, (1.0, 900.0), 86_400.0),
    ("never-breaks-" + "x" * 120, -3.25, (-4.0, -2.0), 3_600.0),
]
NAMES = [row[0] for row in ROWS]


def _figure() -> Any:
    figure = new_figure(7, 3)
    axes = figure.subplots()
    axes.barh([visible(name)[:30] for name in NAMES], range(1, 7))
    axes.set_title(LOG)
    return figure


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = tuple(
        (
            Cell(name),
            Cell(value, Interval(*ends) if ends else None, "best" if value == 9.5 else ""),
            Cell(wait),
            Cell(wait),
        )
        for name, value, ends, wait in ROWS
    )
    columns = (Column("policy"), Column("mean bsld", "1", POLICY), Column("mean wait", "s"), Column("p95 wait", "s"))
    values = Table("values", f"Values on {LOG}", columns, rows, "A note.")
    differences = Table(
        "differences", "Differences", (Column("policy"), Column("difference", "s")),
        tuple((Cell(name), Cell(at - 2.5, None, mark)) for at, (name, mark) in
              enumerate([("F1", "better"), ("F2", "worse"), ("F3", "no difference"), ("F4", "too few cases")])),
    )  # fmt: skip
    long = Table("long", "Long", (Column("n"),), tuple((Cell(float(at)),) for at in range(60)))
    pictures = tuple(Picture(name, f"Picture {name} of {LOG}", _figure, "A note.") for name in ("one", "two"))
    section = Section("values", f"Values {POLICY}", (f"About {LOG} " * 9,), (values, differences, long), pictures)
    page = Page(
        f"Evaluation of {LOG}", ("What was done.",), "A. Author, A paper, 2017", (f"{LOG}: F1 is the best.",),
        (BoardGroup(LOG, (section,), "log"),), "name = 'x'\n" + "# a long line " * 30,
        {"command": "policyfactory evaluate"},
    )  # fmt: skip
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(page), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Callable[..., Watched]]:
    with opening(browser, report) as open_page:
        yield open_page


def test_it_renders_and_fetches_nothing(opened: Callable[..., Watched]) -> None:
    watched = opened()
    page = watched.page
    assert page.title() == f"Evaluation of {LOG}"
    assert page.locator("h1").inner_text() == f"Evaluation of {LOG}"
    assert watched.column(0) == NAMES
    assert page.locator("main table").count() == 3
    assert page.locator("main img").count() == 0
    sizes = page.evaluate(
        "[...document.querySelectorAll('main svg')].map(s => s.getBoundingClientRect()).map(r => [r.width, r.height])"
    )
    assert len(sizes) == 2
    assert all(width > 400 and height > 150 for width, height in sizes)
    # The style sheet and the script were admitted: the headings are buttons, the table has lines.
    assert page.locator("thead button").count() == 7
    assert page.evaluate("getComputedStyle(document.querySelector('main td')).borderBottomWidth") == "1px"
    assert [url for url in watched.requests if not url.startswith("data:,")] == [watched.url]
    assert watched.messages == []


def test_what_would_slip_through_could_not_run_and_the_watch_would_see_it(
    opened: Callable[..., Watched], report: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.html"
    slipped = "<script>alert(3)</script><img src=http://127.0.0.1:9/x onerror=alert(4)><p onclick=alert(5)>x</p></main>"
    broken.write_text(report.read_text().replace("</main>", slipped))
    messages = " ".join(opened(broken).messages)
    assert "dialog" not in messages
    assert messages.count("Content Security Policy") >= 2
    # Without the policy the same page does all of it, and the watch of these tests notices.
    open_to_all = tmp_path / "open.html"
    open_to_all.write_text(broken.read_text().replace("Content-Security-Policy", "x"))
    watched = opened(open_to_all)
    assert {"dialog: 3", "dialog: 4"} <= set(watched.messages)
    assert "http://127.0.0.1:9/x" in watched.requests


def test_a_column_with_intervals_sorts_by_value_and_empty_cells_stay_last(opened: Callable[..., Watched]) -> None:
    watched = opened()
    heading = watched.heading(1)
    long = NAMES[5]
    assert heading.get_attribute("aria-sort") == "none"
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    # Equal values (9.5) keep their order.
    assert watched.column(0) == [long, POLICY, "SPF", "FCFS", "F1", NAMES[2]]
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert watched.column(0) == ["F1", "FCFS", POLICY, "SPF", long, NAMES[2]]
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "none"
    assert watched.column(0) == NAMES
    assert watched.column(1)[0].split() == ["+100", "[+80.0,", "+130]"]


def test_sorting_by_keyboard(opened: Callable[..., Watched]) -> None:
    watched = opened()
    watched.heading(2).locator("button").focus()
    watched.page.keyboard.press("Enter")
    assert watched.column(0) == [NAMES[5], POLICY, "F1", "FCFS", "SPF", NAMES[2]]
    watched.page.keyboard.press("Space")
    assert watched.heading(2).get_attribute("aria-sort") == "descending"
    assert watched.column(0) == ["SPF", "FCFS", "F1", POLICY, NAMES[5], NAMES[2]]
    watched.page.keyboard.press("Shift+Tab")
    watched.page.keyboard.press("Shift+Tab")
    watched.page.keyboard.press("Enter")
    assert watched.heading(2).get_attribute("aria-sort") == "none"
    assert watched.column(0)[0] == POLICY
    assert watched.messages == []


def test_a_phone_does_not_scroll_sideways_but_its_tables_do(opened: Callable[..., Watched]) -> None:
    watched = opened(viewport={"width": 375, "height": 740}, is_mobile=True, has_touch=True)
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    page.evaluate("scrollTo(500, 0)")
    assert page.evaluate("scrollX") == 0
    for at in range(page.locator(".box").count()):
        box = page.locator(".box").nth(at).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375
    # The first column stays while the others move below it.
    box = page.locator(".table .box").first
    first = box.locator("tbody th").first
    left = first.bounding_box()["x"]
    assert box.evaluate("b => b.scrollWidth - b.clientWidth") > 20
    box.evaluate("b => b.scrollLeft = 1000")
    assert first.bounding_box()["x"] == pytest.approx(left, abs=1)
    assert watched.messages == []


CONTRAST = """() => {
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const light = (rgb) => { const c = rgb.map(v => v / 255).map(
                             v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                           return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
  const behind = (node) => { for (; node; node = node.parentElement) {
    const colour = parse(getComputedStyle(node).backgroundColor); if (colour[3] > 0) return colour.slice(0, 3); }
    return [255, 255, 255]; };
  document.querySelectorAll('details').forEach(d => d.open = true);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const worst = {};
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || node.closest('script, style, svg, .skip')) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color).slice(0, 3)), light(behind(node))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const what = node.tagName.toLowerCase() + (node.className ? '.' + node.className : '');
    worst[what] = Math.min(worst[what] ?? 99, ratio);
  }
  return worst;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(scheme: str, opened: Callable[..., Watched]) -> None:
    """Every text has at least the contrast that WCAG 2.2, criterion 1.4.3 (level AA), asks for: 4.5."""
    watched = opened(color_scheme=scheme)
    result = watched.page.evaluate(CONTRAST)
    assert len(result) > 20
    assert {what: ratio for what, ratio in result.items() if ratio < 4.5} == {}
    background = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_without_script_it_is_all_there_unsorted(opened: Callable[..., Watched]) -> None:
    watched = opened(java_script_enabled=False, unfolded=False)
    assert watched.page.locator("main tbody tr").count() == len(ROWS) + 4 + 60
    assert watched.page.locator("thead button").count() == 0
    assert not watched.page.locator(".scripted").is_visible()
    assert watched.page.get_by_text("How it was made").is_visible()


def test_it_can_be_printed(opened: Callable[..., Watched]) -> None:
    watched = opened()
    watched.page.emulate_media(media="print")
    assert not watched.page.locator(".tip").is_visible()
    # A box that scrolls would be cut on paper.
    assert (
        watched.page.evaluate("[...document.querySelectorAll('.box')].map(b => getComputedStyle(b).overflowX)").count(
            "visible"
        )
        == 5
    )
    assert watched.page.pdf(format="A4").startswith(b"%PDF")
