"""Make the calls of a verdict again in another order, to see whether a candidate answers by the order of the calls.

A function that hands out prepared answers one by one, or returns what another function was given before, passes tests
that call it in the order of these answers. A function that only uses its arguments answers alike in any order.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

MAX_REPEATED_CALLS = 100
"""Calls of a verdict that are made again. Chosen by judgement; not measured."""
FOREIGN_TAGS = ("h", "it", "o")
"""Tags of values that are no data, but stand for an object of the candidate's process (see wire.py)."""

Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
Exchange = tuple[dict[str, Any], dict[str, Any]]
"""A request to the candidate, and its reply."""


class RecordedCalls:
    """The calls that one process of a candidate answered, each with the items that were read of its result."""

    def __init__(self) -> None:
        self._calls: list[list[Exchange]] = []
        self._owners: dict[int, list[Exchange]] = {}
        """Handle of an iterator -> the call whose result it is."""

    def __len__(self) -> int:
        return len(self._calls)

    def record(self, request: dict[str, Any], reply: dict[str, Any]) -> None:
        """Add a request that was answered. A call with an object of the candidate cannot be made again alone."""
        exchanges = self._owners.get(request.get("handle", -1))
        is_call = request["op"] == "call" and not _has_foreign([request["value"], request["nodes"]])
        if is_call and len(self._calls) < MAX_REPEATED_CALLS:
            exchanges = []
            self._calls.append(exchanges)
        if exchanges is not None:
            exchanges.append((request, reply))
            for handle in _find_handles(reply):
                self._owners[handle] = exchanges

    async def find_order_dependence(self, restart: Callable[[], Awaitable[Ask | None]]) -> bool:
        """Return whether the calls have other answers in the reverse order, and the same ones in the same order.

        Whatever differs for another reason, such as a random number, says nothing.

        Args:
            restart: Starts a fresh process of the candidate, and returns how to ask it; `None` if that fails.
        """
        if len(self._calls) < 2:
            return False
        recorded = [[_normalise(reply) for _, reply in exchanges] for exchanges in self._calls]
        backwards = await _repeat(self._calls[::-1], restart)
        if backwards is None or backwards[::-1] == recorded:
            return False
        return await _repeat(self._calls, restart) == recorded and (
            await _repeat(self._calls[::-1], restart) == backwards
        )


async def _repeat(
    calls: Sequence[Sequence[Exchange]], restart: Callable[[], Awaitable[Ask | None]]
) -> list[list[str]] | None:
    """Return the replies of a fresh process to some calls; `None` if they are not known."""
    ask = await restart()
    if ask is None:
        return None
    replies: list[list[str]] = []
    for exchanges in calls:
        handles: dict[int, int] = {}
        replies.append([])
        for request, recorded in exchanges:
            handle = request.get("handle")
            if handle is not None and handle not in handles:
                break
            reply = await ask(request if handle is None else {**request, "handle": handles[handle]})
            replies[-1].append(_normalise(reply))
            handles.update(zip(_find_handles(recorded), _find_handles(reply), strict=False))
    return replies


def _find_handles(reply: dict[str, Any]) -> list[int]:
    return [value[1] for value in _iter_foreign(reply.get("value"))]


def _has_foreign(value: Any) -> bool:
    return any(True for _ in _iter_foreign(value))


def _iter_foreign(value: Any) -> Iterator[list[Any]]:
    """Yield the parts of an encoded value that stand for an object of the candidate's process."""
    if isinstance(value, list):
        if value[:1] and value[0] in FOREIGN_TAGS and len(value) > 1 and type(value[1]) is int:
            yield value
        for part in value:
            yield from _iter_foreign(part)


def _normalise(reply: dict[str, Any]) -> str:
    """Return a reply as a text that does not depend on the numbers of objects."""
    copied = json.loads(json.dumps(reply))
    for value in _iter_foreign([copied.get("value"), copied.get("nodes")]):
        value[1] = 0
    return json.dumps(copied)
