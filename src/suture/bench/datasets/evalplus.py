"""Turn records of HumanEval+ and MBPP+ into problems.

EvalPlus publishes inputs, and a reference that defines the right answers.

The inputs are JSON. Which of them stand for tuples, sets and complex numbers depends on the task's id, and
what counts as equal depends on the function's name. Both follow EvalPlus of October 2025
(`evalplus/data/mbpp.py`, `evalplus/eval/`); docs/benchmark.md lists the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from suture.bench.datasets.record_sources import Record
from suture.bench.problem import Problem, ProblemFactory

CASE = "_case"
"""The function that the test program calls once per input, with the candidate's arguments."""

Arguments = list[Any]
"""The arguments of one call, as JSON has them."""


def adapt_humaneval_plus(record: Record, make: ProblemFactory) -> Problem:
    """Return a HumanEval+ problem. The examples in the docstring are visible."""
    return _problem(record, make, equal=POLYNOMIAL if record["entry_point"] == "find_zero" else EQUAL)


def adapt_mbpp_plus(record: Record, make: ProblemFactory) -> Problem:
    """Return an MBPP+ problem. The assert in the statement is visible."""
    number = int(record["task_id"].rpartition("/")[2])
    decode = next((decoder for ids, decoder in DECODERS if number in ids), list)
    return _problem(record, make, equal=MBPP_EQUAL.get(record["entry_point"], EQUAL), decode=decode)


def _problem(
    record: Record, make: ProblemFactory, *, equal: str, decode: Callable[[Arguments], Iterable[Any]] = list
) -> Problem:
    prompt, name = record["prompt"], record["entry_point"]
    reference = f"{prompt}\n{record['canonical_solution']}"
    program = PROGRAM.format(reference=reference, name=name, equal=equal)
    atol = repr(float(record.get("atol") or 0))
    for part in ("base_input", "plus_input"):  # each part is compared on its own
        cases = "".join(f"{CASE}({', '.join(map(repr, decode(given)))})\n" for given in record[part])
        program += f"_atol = {atol}\n{cases}"
    return make(
        id=record["task_id"],
        kind="write",
        statement=prompt,
        entry_point=name,
        visible="\n".join(line.strip() for line in prompt.splitlines() if line.strip().startswith("assert ")),
        hidden=program,
        reference=reference,
    )


def _deep_tuple(value: Any) -> Any:
    return tuple(map(_deep_tuple, value)) if isinstance(value, list) else value


def _decode_sets(given: Arguments) -> Arguments:
    # EvalPlus turns an empty list into a dictionary here, because it writes `{}`.
    return [[set(item) if isinstance(item, list) and item else {} for item in given[0]]]


DECODERS: tuple[tuple[frozenset[int], Callable[[Arguments], Iterable[Any]]], ...] = (
    (
        frozenset((2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429))
        | frozenset((470, 560, 579, 596, 616, 630, 726, 740, 744, 809)),
        lambda given: map(tuple, given),
    ),
    (
        frozenset((63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780)),
        lambda given: [list(map(tuple, one)) for one in given],
    ),
    (frozenset((75, 413, 444, 753)), lambda given: [list(map(tuple, given[0])), *given[1:]]),
    (frozenset((106, 750)), lambda given: [given[0], tuple(given[1])]),
    (frozenset((250, 307, 405, 446, 617, 720, 763, 808)), lambda given: [tuple(given[0]), *given[1:]]),
    (frozenset((259, 401, 445)), lambda given: [tuple(map(tuple, one)) for one in given]),
    (
        frozenset((278,)),
        lambda given: [tuple(tuple(one) if isinstance(one, list) else one for one in given[0])],
    ),
    (frozenset((580, 615, 791)), lambda given: map(_deep_tuple, given)),
    (frozenset((722,)), lambda given: [{key: tuple(value) for key, value in given[0].items()}, *given[1:]]),
    (frozenset((115,)), _decode_sets),
    (frozenset((124,)), lambda given: [float(given[0]), complex(given[1])]),
    (frozenset((252,)), lambda given: [complex(given[0])]),
)
"""Ids of MBPP+ -> how to decode the arguments from JSON values; other ids use the values as they are."""

EQUAL = "got == wanted"
"""The condition for a right answer, as source that `PROGRAM` contains; `got` is the candidate's answer and `wanted` the
reference's."""
POLYNOMIAL = "abs(sum(c * math.pow(got, n) for n, c in enumerate(given[0]))) <= _atol"
"""For HumanEval/32, which asks for any zero and not for the reference's zero."""
SET_RESULTS = (
    "similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum",
    "intersection_array", "find_dissimilar", "Diff",
)  # fmt: skip
"""Functions of MBPP+ whose results are compared as sets."""
MATCH_RESULTS = ("check_str", "text_match_three", "text_starta_endb")
"""Functions of MBPP+ that may return a match object or a truth value."""
MBPP_EQUAL = {
    "are_equivalent": "True",
    "sum_div": "got == wanted or got == 0",
    "surface_Area": "got == wanted or abs(got - _upright(*given)) <= _atol",
    "digit_distance_nums": "got == wanted or got == _padded(*given)",
    **dict.fromkeys(SET_RESULTS, "set(got) == set(wanted)"),
    **dict.fromkeys(
        MATCH_RESULTS, "(got if isinstance(got, bool) else got is not None) == (wanted is not None)"
    ),
}
"""Functions of MBPP+ whose answers need not equal the reference's -> the condition for a right answer."""

PROGRAM = """
import cmath, copy, math

inf, nan = float("inf"), float("nan")
infj, nanj = complex(0, inf), complex(0, nan)

def _reference():
    scope = {{}}
    exec({reference!r}, scope)
    return scope[{name!r}]

_right = _reference()

def _upright(base_edge, height):
    return round(base_edge ** 2 + 2 * base_edge * math.sqrt((base_edge / 2) ** 2 + height ** 2))

def _padded(*numbers):
    digits = [str(number) for number in numbers]
    longest = max(map(len, digits))
    return sum(abs(int(a) - int(b)) for a, b in zip(*(text.zfill(longest) for text in digits)))

def _floats(wanted):
    if isinstance(wanted, (list, tuple)):
        return bool(wanted) and all(isinstance(one, float) for one in wanted)
    return isinstance(wanted, float)

def _close(got, wanted):
    if isinstance(got, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return len(got) == len(wanted) and all(map(_close, got, wanted))
    numbers = (int, float, complex)
    if not isinstance(got, numbers) or not isinstance(wanted, numbers):
        return False
    if not cmath.isfinite(got) or not cmath.isfinite(wanted):
        return got == wanted
    return abs(got - wanted) <= _atol + 1e-7 * abs(wanted)

def _case(*given):
    global _atol
    wanted = _right(*copy.deepcopy(given))
    got = {name}(*copy.deepcopy(given))
    equal = {equal}
    if _floats(wanted):
        _atol = _atol or 1e-6
    assert equal or (_atol and type(got) is type(wanted) and _close(got, wanted))

"""
"""The reference is computed where the tests run, never together with the candidate."""
