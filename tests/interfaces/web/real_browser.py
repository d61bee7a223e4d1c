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
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 100_000
WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")
SCREENSHOTS_VARIABLE = "SUTURE_SCREENSHOTS"
"""The environment variable that names a folder for screenshots of the page; unset means none."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class BrowserPage:
    """A page in a browser, with a record of script errors and of requests to other servers.

    Args:
        browser: The browser.
        url: The address of the server; a request to any other is aborted and recorded.
        options: Options of the browser's context, such as its width or its colour scheme.
    """

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url = url
        self.foreign_requests: list[str] = []
        self.script_errors: list[str] = []
        self._context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self._context.route("**/*", self._route)
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("pageerror", lambda error: self.script_errors.append(str(error)))
        self.page.on("dialog", self._dialog)

    def _route(self, route: Route) -> None:
        if route.request.url.startswith(f"{self.url}/"):
            route.continue_()
        else:
            self.foreign_requests.append(route.request.url)
            route.abort()

    def _dialog(self, dialog: Dialog) -> None:
        self.script_errors.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def visit(self, path: str) -> Page:
        """Open a path of the page, and wait until it is drawn."""
        self.page.goto(f"{self.url}/#{path}")
        self.page.wait_for_selector("main h1")
        self.page.wait_for_function("() => !document.querySelector('main .loading')")
        return self.page

    def save_screenshot(self, name: str) -> None:
        """Save a screenshot if the environment names a folder for it."""
        if folder := os.environ.get(SCREENSHOTS_VARIABLE):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    def close(self) -> None:
        """Close the page, and assert that it sent no foreign request and had no script error."""
        self._context.close()
        assert self.foreign_requests == []
        assert self.script_errors == []
