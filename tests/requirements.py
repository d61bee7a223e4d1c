"""Requirements of tests: the type of the `require` fixture, whether bubblewrap works, and a sandbox with a cache."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from suture.errors import SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, Requirement

__all__ = ["CachingSandbox", "Require", "find_bubblewrap"]

Require = Callable[[str, bool, str], None]
"""`require(name, available, reason)` skips a test, or fails it if `SUTURE_REQUIRE` names the tool."""


class CachingSandbox(BubblewrapSandbox):
    """A sandbox with a cache folder, as users have it; without one, each run of Go compiles its own library."""

    def __init__(self, cache: Path | None) -> None:
        super().__init__()
        self.cache = cache


def find_bubblewrap() -> Requirement:
    """Return whether bubblewrap works here. If it does, the first word of the detail is its path."""

    async def choose() -> str:
        sandbox = BubblewrapSandbox()
        try:
            return await sandbox.choose_bubblewrap()
        finally:
            await sandbox.close()

    try:
        return Requirement(name="bubblewrap", ok=True, detail=f"{asyncio.run(choose())} works")
    except SandboxUnavailable as fault:
        return Requirement(name="bubblewrap", ok=False, detail=fault.message, remedy=fault.remedy)
