"""The protocol of a target of the fuzzer."""

from __future__ import annotations

import random
from typing import Protocol

__all__ = ["Target"]


class Target(Protocol):
    """A part of Suture that hostile input must not break."""

    async def try_case(self, draw: random.Random) -> str:
        """Make one case and try it.

        Args:
            draw: The only source of randomness of the case, so that its seed reproduces it.

        Returns:
            What went wrong, with the case; empty if nothing did.
        """
        ...

    async def close(self) -> None:
        """Release processes and folders."""
        ...
