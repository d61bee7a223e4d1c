"""What the exceptions of failing tests say about the kind of mistake.

For example, `'<' not supported between` is about a comparison.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.judge.trials.trial_records import Spectrum
from suture.mutation import Mutant, OperatorName
from suture.search.tuning import MIN_CLUE_SHARE, OFF_TRACEBACK_FACTOR, OTHER_PART_FACTOR

FACTORS_BY_EXCEPTION: Mapping[str, Mapping[OperatorName, float]] = {
    r"unsupported operand type\(s\) for (\S+?)(?: or pow\(\))?:": {
        "arithmetic_operator": 3.0, "wrap_in_call": 1.5,
    },
    r"bad operand type for unary (\S):": {"sign_change": 3.0, "wrap_in_call": 1.5},
    r"TypeError: '(\S+)' not supported between": {"comparison": 3.0, "wrap_in_call": 1.5},
    r"'(?:function|method|builtin_function_or_method|property)'|<bound method|<function |not callable": {
        "decorator": 5.0, "attribute_or_name": 1.5,
    },
    r"TypeError: .*missing \d+ required": {
        "decorator": 3.0, "missing_argument": 3.0, "reused_argument": 3.0,
    },
    r"TypeError: .*(?:takes .* arguments?|unexpected keyword|multiple values)": {
        "decorator": 3.0, "arguments": 2.0, "reused_argument": 1.5,
    },
    r"NameError: name '(\w+)' is not defined|ReferenceError: (\w+) is not defined": {
        "undefined_name": 3.0, "missing_initialisation": 3.0, "exception_class": 3.0,
    },
    r"AttributeError: .*has no attribute '(\w+)'": {
        "unknown_attribute": 2.0, "attribute": 2.0,
    },
    r"TypeError: (?:\w+\.)*(\w+) is not a function": {
        "called_name": 2.0, "wrap_in_call": 1.5, "unwrap_call": 1.5,
    },
    r"TypeError: .*(?:is not iterable|cannot unpack|to unpack)": {"iteration": 3.0, "append_element": 3.0},
    r"'?NoneType'?|assert None\b": {
        "missing_return": 3.0, "return_value": 3.0, "bare_return": 3.0, "final_return": 3.0,
        "reused_value": 2.5, "reused_argument": 2.0, "append_element": 2.0, "truth_test": 1.5, "conversion": 1.5,
    },
    # A boolean where a number is expected.
    r"AssertionError: assert (?:True|False) == -?\d": {
        "sign_change": 3.0, "negation": 2.0, "boolean_operator": 2.0, "comparison": 1.5, "return_value": 1.5,
    },
    r"IndexError|StopIteration|(?:index|bounds) out of range|of (?:undefined|null)\b|Invalid array": {
        "off_by_one": 1.6, "constant": 1.4, "sequence_part": 1.5, "comparison": 1.3, "condition": 1.5,
    },
    r"can only concatenate|must be \w+, not|expected str|a bytes-like object": {"conversion": 3.0},
    r"UnicodeDecodeError|UnicodeEncodeError": {"missing_argument": 3.0},
    r"KeyError": {"subscript_key": 2.5, "condition": 1.5, "called_name": 1.3},
    r"RecursionError|Timeout|Maximum call stack|stack overflow": {
        "loop_control": 2.0, "comparison": 1.5, "guard": 2.0, "accumulation": 1.5, "arithmetic_operator": 1.5,
    },
    r"DID NOT RAISE|DID NOT WARN": {
        "negation": 1.5, "comparison": 1.3, "boolean_operator": 1.3, "exception_class": 1.5,
    },
    r"UnboundLocalError|before initialization": {
        "missing_assignment": 2.5, "missing_initialisation": 3.0, "empty_iteration": 2.0,
        "move_statement": 1.5,
    },
}  # fmt: skip
"""Pattern of an exception -> operator -> factor on its changes.

A group of a pattern is an operator or a name: a change that replaces exactly that gets the full factor. The
factors are chosen by judgement and not measured.
"""


@dataclass(frozen=True, kw_only=True)
class Clue:
    """A hint at the kind of mistake.

    Attributes:
        factors: Mutation operator -> factor on the score of its changes.
        part: The operator or name in the exception; empty where there is none.
        places: `(path, line)` of all frames in the tracebacks.
        share: Share of the failing tests that show the exception.
    """

    factors: Mapping[OperatorName, float]
    part: str
    places: frozenset[tuple[str, int]]
    share: float


def find_clues(spectrum: Spectrum) -> tuple[Clue, ...]:
    """Return the clues in the exceptions of the failing tests, each once."""
    failing = spectrum.failing
    counts: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for test in failing:
        message = "Timeout" if test.outcome == "timeout" else test.error
        for pattern in FACTORS_BY_EXCEPTION:
            match = re.search(pattern, message)
            if match is not None:
                key = (pattern, next((group for group in match.groups() if group), ""))
                counts[key] += 1
                places.setdefault(key, set()).update(test.frames)
    return tuple(
        Clue(
            factors=FACTORS_BY_EXCEPTION[pattern],
            # The operator of `+=` is `+`, whereas that of `<=` is whole.
            part=part.rstrip("=") if pattern.startswith("unsupported") else part,
            places=frozenset(places[pattern, part]),
            share=count / len(failing),
        )
        for (pattern, part), count in counts.items()
        if count >= MIN_CLUE_SHARE * len(failing)
    )


def clue_factor(mutant: Mutant, path: str, source: bytes, clues: Sequence[Clue]) -> float:
    """Return the factor on a change's score by the clues; 1 where no clue is about its operator."""
    best = 1.0
    for clue in clues:
        if mutant.operator not in clue.factors:
            continue
        factor = clue.factors[mutant.operator]
        if clue.part and not _replaces_part(mutant, source, clue.part):
            factor = 1.0 + (factor - 1.0) * OTHER_PART_FACTOR
        # A missing decorator shows where the function is used, and not at its definition.
        if clue.places and (path, mutant.line) not in clue.places and mutant.operator != "decorator":
            factor = 1.0 + (factor - 1.0) * OFF_TRACEBACK_FACTOR
        # By the square root, a clue of a few tests still counts. Chosen by judgement; not measured.
        best = max(best, 1.0 + (factor - 1.0) * clue.share**0.5)
    return best


def _replaces_part(mutant: Mutant, source: bytes, part: str) -> bool:
    """Return whether a change replaces exactly an operator, or code that contains a name."""
    raw = b" ".join(source[edit.start : edit.end] for edit in mutant.edits)
    replaced = raw.decode("utf-8", "replace").strip()
    if part.isidentifier():
        return part in replaced
    return replaced.rstrip("=") == part.rstrip("=")  # `+=` raises an exception about `+=` or about `+`
