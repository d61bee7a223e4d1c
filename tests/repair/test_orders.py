"""The order in which changes are tried, where some of them are dear."""

from __future__ import annotations

from suture.repair.ordering.orders import CHEAP_BETWEEN, spread
from suture.repair.trials.records import Proposal


def proposals(kinds: str) -> list[Proposal]:
    """`a` for one that is imported anew, `s` for one that is put in place."""
    return [
        Proposal(path="m.py", edits=(), label=str(n), score=1.0, operators=(), swap=kind == "s")
        for n, kind in enumerate(kinds)
    ]


def kinds_of(found: list[Proposal]) -> str:
    return "".join("s" if proposal.swap else "a" for proposal in found)


def test_dear_changes_do_not_keep_cheap_ones_waiting() -> None:
    found = spread(proposals("aaa" + "s" * 20))
    assert kinds_of(found) == "a" + "s" * CHEAP_BETWEEN + "a" + "s" * CHEAP_BETWEEN + "a" + "s" * 4
    assert [p.label for p in found if not p.swap] == ["0", "1", "2"]
    assert [p.label for p in found if p.swap] == [str(n) for n in range(3, 23)]


def test_where_nothing_cheap_is_left_the_dear_ones_follow() -> None:
    assert kinds_of(spread(proposals("saasa"))) == "sasaa"
    assert kinds_of(spread(proposals("aaa"))) == "aaa"
