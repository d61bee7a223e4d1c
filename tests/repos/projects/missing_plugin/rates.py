"""Rates of exchange, asked of a service."""

from __future__ import annotations

from collections.abc import Callable


def in_euros(amount: float, currency: str, ask: Callable[[str], float]) -> float:
    """An amount in euros, rounded to cents."""
    return round(amount / ask(currency), 2)


async def later(amount: float, currency: str, ask: Callable[[str], float]) -> float:
    """The same, for those who wait for it."""
    return in_euros(amount, currency, ask)
