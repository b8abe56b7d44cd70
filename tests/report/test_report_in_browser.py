"""The page of an evaluation in a real Chromium: one screen decides, three screens hold it, keys work it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import Watched, opening

import policyfactory as pf
from policyfactory.workload.models.lublin import default_workload

pytestmark = pytest.mark.browser

POLICIES = ["FCFS", "SAF", "F1", "SPF"]
WIDTHS = {1280: 800, 768: 1024, 360: 740}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    jobs = default_workload()[:6000]
    metrics = ["mean_bsld", "mean_wait", "max_wait", "mean_pp_bsld"]
    analyses = ["groups", "gantt", "load"]
    result = pf.evaluate(jobs, POLICIES, windows="8x4d", metrics=metrics, analyses=analyses)
    return result.report(tmp_path_factory.mktemp("report"))


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Callable[..., Watched]]:
    with opening(browser, report) as open_page:

        def folded(**options: Any) -> Watched:
            watched = open_page(unfolded=False, **options)
            watched.page.wait_for_selector(".timeline.ready")
            return watched

        yield folded


def visible(watched: Watched, selector: str) -> list[str]:
    return [one.strip() for one in watched.page.locator(f"{selector}:visible").all_inner_texts()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_asked_for_refused_or_wider_than_the_screen(
    width: int, scheme: str, opened: Callable[..., Watched]
) -> None:
    watched = opened(viewport={"width": width, "height": WIDTHS[width]}, color_scheme=scheme)
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.select_option("#metric", "max_wait")
    page.click("button[data-action=in]")
    assert [url for url in watched.requests if not url.startswith("data:,")] == [watched.url]
    # No complaint of the content security policy, no error of the script.
    assert watched.messages == []


def test_one_screen_decides_and_three_hold_it_all(opened: Callable[..., Watched], report: Path) -> None:
    assert report.stat().st_size < 1_000_000
    page = opened(viewport={"width": 1280, "height": 800}).page
    for selector in (".verdict", ".forest", "aside"):
        box = page.locator(selector).bounding_box()
        assert box["y"] + box["height"] < 800, selector
    # Four policies are few: all are there, and not again below.
    assert page.locator(".forest tbody tr").count() == len(POLICIES)
    assert page.locator(".group .board").count() == 3
    assert page.locator(".verdict h2").inner_text().strip()
    assert page.evaluate("document.documentElement.scrollHeight") <= 2450
    # What is not at the front is there, folded.
    assert page.locator("details.part").count() >= 8
    assert page.locator("details.part[open]").count() == 0


def test_the_metric_is_switched_and_policies_are_left_out_by_keyboard(opened: Callable[..., Watched]) -> None:
    watched = opened()
    page = watched.page
    assert len(visible(watched, ".group .board h4")) == 1
    first = visible(watched, ".group .board h4")[0]
    page.locator("#metric").focus()
    page.keyboard.press("ArrowDown")
    assert len(visible(watched, ".group .board h4")) == 1
    assert visible(watched, ".group .board h4")[0] != first
    summary = page.locator("#policies > summary")
    summary.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") in POLICIES
    name = page.evaluate("document.activeElement.value")
    assert any(name in row for row in visible(watched, ".group .board tbody th"))
    page.keyboard.press("Space")
    assert summary.inner_text() == f"Policies: {len(POLICIES) - 1} of {len(POLICIES)}"
    assert not any(name in row for row in visible(watched, "tbody tr[data-policy] th"))
    assert name not in " ".join(visible(watched, ".front thead th"))
    page.keyboard.press("Space")
    assert any(name in row for row in visible(watched, ".group .board tbody th"))
    assert watched.messages == []


def test_the_schedules_zoom_and_move_by_keyboard_and_say_what_is_shown(opened: Callable[..., Watched]) -> None:
    watched = opened()
    page = watched.page
    canvas, status = page.locator(".timeline canvas"), page.locator(".timeline .status")

    def shown() -> tuple[str, str]:
        found = re.match(r"([\d.]+ \w+) from (.+?)\. ", status.inner_text())
        assert found, status.inner_text()
        return found[1], found[2]

    canvas.focus()
    before = shown()
    page.keyboard.press("+")
    zoomed = shown()
    assert before[0] == "24.0 h"
    assert zoomed[0] == "12.0 h"
    page.keyboard.press("ArrowRight")
    assert shown()[0] == zoomed[0]
    assert shown()[1] != zoomed[1]
    page.keyboard.press("Home")
    assert shown() == before
    page.keyboard.press("0")
    assert shown()[0].endswith(" d")
    assert canvas.get_attribute("aria-label").endswith(status.inner_text())
    canvas.scroll_into_view_if_needed()
    canvas.hover(position={"x": 600, "y": 330})
    assert "jobs wait" in page.locator(".tip").inner_text()
    # One policy beside itself has no job that waits more or less.
    page.locator(".timeline select").nth(1).select_option("0")
    assert status.inner_text().count("in use") == 1
    assert watched.messages == []


def test_a_bar_shows_its_numbers(opened: Callable[..., Watched]) -> None:
    page = opened().page
    bar = page.locator(".forest td.bar[data-tip]").first
    bar.hover()
    text = page.locator(".tip").inner_text()
    assert re.search(r"-?[\d.]+ \[.+, .+\]", text), text
    assert text == bar.get_attribute("data-tip")


def test_it_prints_on_four_pages(opened: Callable[..., Watched]) -> None:
    watched = opened()
    watched.page.emulate_media(media="print")
    assert visible(watched, ".controls") == []
    assert visible(watched, "details.part") == []
    printed = watched.page.pdf(format="A4")
    assert 1 <= len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 4


def test_every_control_has_a_name(opened: Callable[..., Watched]) -> None:
    page = opened(viewport={"width": 360, "height": 740}).page
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, select, input, canvas')].filter(one => "
        "!(one.getAttribute('aria-label') || one.textContent.trim() && one.tagName === 'BUTTON' || one.labels?.length))"
        ".map(one => one.outerHTML)"
    )
    assert nameless == []
