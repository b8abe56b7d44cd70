"""A real Chromium for the tests that are marked `browser`; every page in it is watched."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Watched", "chromium", "launched", "opening"]

FLAGS = [
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def chromium() -> str:
    for name in (os.environ.get("POLICYFACTORY_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"):
        if name and (result := shutil.which(name)):
            return result
    reason = "no Chromium is installed (Debian: apt-get install chromium), or name one by POLICYFACTORY_CHROMIUM"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextlib.contextmanager
def launched() -> Iterator[Any]:
    """Start the browser; skip where there is none."""
    program = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # The profile is a new, empty folder.
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


class Watched:
    """An open page, and everything that a reader would not expect of it."""

    def __init__(self, browser: Any, path: Path, *, unfolded: bool = True, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.messages: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.url = path.as_uri()
        self.page.goto(self.url)
        self.page.wait_for_load_state("networkidle")
        if unfolded:
            self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")

    def _dialog(self, dialog: Any) -> None:
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def column(self, at: int, table: int = 0) -> list[str]:
        rows = "[...document.querySelectorAll('main table')[table].tBodies[0].rows]"
        script = f"([table, at]) => {rows}.map(row => row.cells[at].innerText)"
        result: list[str] = self.page.evaluate(script, [table, at])
        return result

    def heading(self, at: int, table: int = 0) -> Any:
        return self.page.locator("main table").nth(table).locator("thead th").nth(at)


@contextlib.contextmanager
def opening(browser: Any, report: Path) -> Iterator[Callable[..., Watched]]:
    """Return what opens a page of its own."""
    made: list[Watched] = []

    def open_page(path: Path = report, **options: Any) -> Watched:
        made.append(Watched(browser, path, **({"viewport": {"width": 1280, "height": 900}} | options)))
        return made[-1]

    yield open_page
    for watched in made:
        watched.context.close()
