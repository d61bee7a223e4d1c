"""What every room's tests share."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

Require = Callable[[str, bool, str], None]


@pytest.fixture(scope="session")
def require() -> Require:
    """`require(name, available, reason)` skips a test, or fails it where `SUTURE_REQUIRE` names the tool."""

    def check(name: str, available: bool, reason: str) -> None:
        if available:
            return
        if name in os.environ.get("SUTURE_REQUIRE", "").split(","):
            pytest.fail(f"SUTURE_REQUIRE names {name!r}, and it does not work here: {reason}")
        pytest.skip(f"{name}: {reason}")

    return check
