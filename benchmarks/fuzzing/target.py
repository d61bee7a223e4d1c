"""What a target of the fuzzer is."""

from __future__ import annotations

import random
from typing import Protocol

__all__ = ["Target"]


class Target(Protocol):
    """Something hostile input must not get through."""

    async def try_case(self, draw: random.Random) -> str:
        """Make one case and try it.

        Args:
            draw: Where all chance of the case comes from, so that its seed makes it again.

        Returns:
            What went wrong, with the case; empty where all held.
        """
        ...

    async def close(self) -> None:
        """Let go of processes and folders."""
        ...
