"""The graph's nodes: each an async function `(state, runtime) -> update` in a file of its own."""

from suture.loop.nodes.check import check
from suture.loop.nodes.decide import decide_next
from suture.loop.nodes.equip import equip
from suture.loop.nodes.finish import finish
from suture.loop.nodes.mutate import mutate
from suture.loop.nodes.prepare import prepare
from suture.loop.nodes.propose import Branch, propose
from suture.loop.nodes.reflect import reflect
from suture.loop.nodes.review import needs_review, review
from suture.loop.nodes.try_repairs import try_repairs
from suture.loop.nodes.write_test import accept_test, wants_test, write_test

__all__ = [
    "Branch",
    "accept_test",
    "check",
    "decide_next",
    "equip",
    "finish",
    "mutate",
    "needs_review",
    "prepare",
    "propose",
    "reflect",
    "review",
    "try_repairs",
    "wants_test",
    "write_test",
]
