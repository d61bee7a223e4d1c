"""What a change must know to write a piece of a language."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """What a language writes in its own way.

    Attributes:
        length: Of `{}`, a sequence.
        end: Of a statement.
        test: An `if` with a condition and a statement.
        stop: A statement that ends what runs it with a fault.
        equal: Whether two are the same, and whether they are not.
        nothing: What stands for no value.
        put: How a value `{1}` gets into a sequence `{0}`.
        around: Expressions that people forget around or behind `{}`, the likeliest first.
        answers: What a function may return where it has nothing to say.
        better: Of two, `{0}` and `{1}`, the greater and the smaller.
        rest: A sequence `{0}` from a place `{1}` on, and up to it.
        families: Names of which one is easily taken for another.
        joined: A sequence `{0}` and behind it another, `{1}`.
        own_names: Names that no file has to define; none where other files of a folder may define some.
        own_members: Names of members of its own objects.
    """

    length: str
    end: str
    test: str
    stop: str
    equal: tuple[str, str]
    nothing: str
    put: str
    around: tuple[str, ...]
    answers: tuple[str, ...]
    better: tuple[str, ...]
    rest: tuple[str, ...]
    families: tuple[tuple[str, ...], ...]
    joined: tuple[str, ...] = ()
    own_names: frozenset[str] = frozenset()
    own_members: frozenset[str] = frozenset()
