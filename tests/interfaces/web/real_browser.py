"""A real Chromium that can reach only the server under test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Dialog, Page, Route, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PATIENCE_MS = 100_000
WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")
SHOTS = "SUTURE_SCREENSHOTS"
"""The variable with the folder for pictures of the page, where somebody wants to look at them."""


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Opened:
    """A page, and whatever it did that it should not.

    Args:
        browser: Which one.
        url: The server's; a request to any other is stopped and remembered.
        options: Of the browser's context: its width, its colours.
    """

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url = url
        self.strangers: list[str] = []
        self.faults: list[str] = []
        self._context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self._context.route("**/*", self._route)
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        self.page.on("dialog", self._dialog)

    def _route(self, route: Route) -> None:
        if route.request.url.startswith(f"{self.url}/"):
            route.continue_()
        else:
            self.strangers.append(route.request.url)
            route.abort()

    def _dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def go(self, path: str) -> Page:
        """Show an address of the page, and wait until it is drawn."""
        self.page.goto(f"{self.url}/#{path}")
        self.page.wait_for_selector("main h1")
        self.page.wait_for_function("() => !document.querySelector('main .loading')")
        return self.page

    def shot(self, name: str) -> None:
        if folder := os.environ.get(SHOTS):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    def close(self) -> None:
        """Close it; the page has asked nobody else, and no script of it has failed."""
        self._context.close()
        assert self.strangers == []
        assert self.faults == []
