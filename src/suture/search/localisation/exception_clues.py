"""What exceptions of failing tests say of the kind of mistake: `'<' not supported` is about a comparison."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.judge.trials.trial_records import Spectrum
from suture.mutation.edits import Mutant

LEAST_SHARE = 0.05
"""Of the failing tests, those that must say so."""
ELSEWHERE = 0.5
"""What is left of a clue's weight on lines that no traceback of its tests went through."""

# What an exception says -> how much likelier operators are. A group of a pattern is a sign or a name: what
# replaces just that counts in full.
SAID: tuple[tuple[str, Mapping[str, float]], ...] = (
    (
        r"unsupported operand type\(s\) for (\S+?)(?: or pow\(\))?:",
        {"arithmetic sign": 3.0, "call around": 1.5},
    ),
    (r"bad operand type for unary (\S):", {"negative": 3.0, "call around": 1.5}),
    (r"TypeError: '(\S+)' not supported between", {"comparison": 3.0, "call around": 1.5}),
    (
        r"'(?:function|method|builtin_function_or_method|property)'|<bound method|<function |not callable",
        {"decorator": 5.0, "attribute or name": 1.5},
    ),
    (
        r"TypeError: .*missing \d+ required",
        {"decorator": 3.0, "missing argument": 3.0, "argument elsewhere": 3.0},
    ),
    (
        r"TypeError: .*(?:takes .* arguments?|unexpected keyword|multiple values)",
        {"decorator": 3.0, "arguments": 2.0, "argument elsewhere": 1.5},
    ),
    (
        r"NameError: name '(\w+)' is not defined|ReferenceError: (\w+) is not defined",
        {"undefined name": 3.0, "name begins": 3.0, "exception class": 3.0, "worked out": 2.0},
    ),
    (
        r"AttributeError: .*has no attribute '(\w+)'",
        {"unknown attribute": 2.0, "attribute": 2.0, "worked out": 2.0},
    ),
    (
        r"TypeError: (?:\w+\.)*(\w+) is not a function",
        {"called name": 2.0, "call around": 1.5, "call within": 1.5},
    ),
    (r"TypeError: .*(?:is not iterable|cannot unpack|to unpack)", {"iterated": 3.0, "one more element": 3.0}),
    (
        r"'?NoneType'?|assert None\b",
        {
            **{"lacking return": 3.0, "returned": 3.0, "value given back": 3.0, "return at the end": 3.0},
            **{"value elsewhere": 2.5, "argument elsewhere": 2.0, "one more element": 2.0},
        },
    ),
    (
        r"AssertionError: assert (?:True|False) == -?\d",  # an answer where a number is meant
        {"negative": 3.0, "negation": 2.0, "boolean": 2.0, "comparison": 1.5, "returned": 1.5},
    ),
    (
        r"IndexError|StopIteration|(?:index|bounds) out of range|of (?:undefined|null)\b|Invalid array",
        {"off by one": 1.6, "constant": 1.4, "part of a sequence": 1.5, "comparison": 1.3, "condition": 1.5},
    ),
    (r"KeyError", {"key": 2.5, "condition": 1.5, "called name": 1.3}),
    (
        r"RecursionError|Timeout|Maximum call stack|stack overflow",
        {"loop": 2.0, "comparison": 1.5, "guard": 2.0, "accumulation": 1.5, "arithmetic sign": 1.5},
    ),
    (
        r"DID NOT RAISE|DID NOT WARN",
        {"negation": 1.5, "comparison": 1.3, "boolean": 1.3, "exception class": 1.5},
    ),
    (
        r"UnboundLocalError|before initialization",
        {"lacking assignment": 2.5, "name begins": 3.0, "nothing iterated": 2.0, "statement moves": 1.5},
    ),
)


@dataclass(frozen=True, kw_only=True)
class Clue:
    """A hint at the kind of mistake.

    Attributes:
        factors: Operator -> how much likelier its changes are.
        part: The sign or name that is spoken of; empty where none is.
        places: Path and line, where the exceptions went through.
        share: Of the failing tests, those that say so.
    """

    factors: Mapping[str, float]
    part: str
    places: frozenset[tuple[str, int]]
    share: float


def find_clues(spectrum: Spectrum) -> tuple[Clue, ...]:
    """What the failing tests say, each thing once."""
    failing = spectrum.failing
    counts: Counter[tuple[int, str]] = Counter()
    places: dict[tuple[int, str], set[tuple[str, int]]] = {}
    for test in failing:
        said = "Timeout" if test.outcome == "timeout" else test.fault
        for number, (pattern, _) in enumerate(SAID):
            match = re.search(pattern, said)
            if match is not None:
                key = (number, next((group for group in match.groups() if group), ""))
                counts[key] += 1
                places.setdefault(key, set()).update(test.frames)
    return tuple(
        Clue(
            factors=SAID[number][1],
            part=part.rstrip("=") if SAID[number][0].startswith("unsupported") else part,
            places=frozenset(places[number, part]),
            share=count / len(failing),
        )
        for (number, part), count in counts.items()
        if count >= LEAST_SHARE * len(failing)
    )


def clue_factor(mutant: Mutant, path: str, source: bytes, clues: Sequence[Clue]) -> float:
    """How much likelier a change is by what the failing tests say; 1 where they say nothing of it.

    Args:
        mutant: A change.
        path: Of what file.
        source: That file's text.
        clues: What they say.
    """
    best = 1.0
    for clue in clues:
        factor = clue.factors.get(mutant.operator)
        if factor is None:
            continue
        if clue.part and not _is_about(mutant, source, clue.part):
            factor = 1.0 + (factor - 1.0) / 4
        if clue.places and (path, mutant.line) not in clue.places and mutant.operator != "decorator":
            factor = 1.0 + (factor - 1.0) * ELSEWHERE
        best = max(best, 1.0 + (factor - 1.0) * clue.share**0.5)
    return best


def _is_about(mutant: Mutant, source: bytes, part: str) -> bool:
    """Whether a change replaces a sign, or something in which a name stands."""
    gone = (
        b" ".join(source[edit.start : edit.end] for edit in mutant.edits).decode("utf-8", "replace").strip()
    )
    return gone.rstrip("=") == part.rstrip("=") if not part.isidentifier() else part in gone
