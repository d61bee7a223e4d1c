"""A real browser, for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from requirements import Require
from web.browser import CHROMIUM, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser(require: Require) -> Iterator[Browser]:
    require("chromium", CHROMIUM is not None, "no chromium on PATH: apt-get install chromium")
    with chromium() as opened:
        yield opened
