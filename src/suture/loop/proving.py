"""What the loop knows of proof: something that is handed in, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suture.records import Candidate, Verdict

if TYPE_CHECKING:
    from suture.loop.context import RunContext

__all__ = ["Proven", "Prover"]


@dataclass(frozen=True, kw_only=True)
class Proven:
    """A healed candidate once more: the smallest part of it that heals.

    Attributes:
        candidate: It.
        verdict: Its verdict.
        confidence: In [0, 1].
    """

    candidate: Candidate
    verdict: Verdict
    confidence: float


Prover = Callable[["RunContext", Candidate, Verdict, Verdict | None], Awaitable[Proven]]
"""Proves a healed candidate, given its verdict and that on the code before; `proof.prove` is one."""
