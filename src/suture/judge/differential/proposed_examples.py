"""Propose calls of newly written code with their results, so that a person can say which results are right.

The task states no example. So the arguments are guessed from the literals of the task, and from the annotations and
names of the function's parameters.
"""

from __future__ import annotations

import ast
import asyncio
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from suture.core.ledger.kinds import ProposedExample, RaisingCall
from suture.core.records import Candidate
from suture.judge.differential.behaviour_comparison import make_call_program, read_answer, render_call
from suture.judge.differential.input_generation import Arguments, edge_inputs, mutate_inputs
from suture.judge.split.split_runner import ProgramOutcome
from suture.judge.suite import Suite
from suture.judge.tuning import (
    MAX_DIFFERING_EXAMPLES,
    MAX_EXAMPLE_CHARS,
    MAX_PROPOSED_CALLS,
    MAX_PROPOSED_EXAMPLES,
    MAX_RAISING_CALLS,
    PROPOSALS_TIMEOUT_S,
    PROPOSED_CALL_TIMEOUT_S,
)
from suture.judge.verdicts import run_programs
from suture.project.python_source.parsing import parse_module

Values = tuple[Any, ...]
INTEGERS: Values = (10, 4, 3, 1, 0, -4)
TEXTS: Values = ("Hello, World!", "level", "Crème brûlée", " two  spaces ", "")
INTEGER_LISTS: Values = ([1, 2, 3, 4, 5, 6], [-2, 7, 4], [3, 3, 1], [10], [])
TEXT_LISTS: Values = (["apple", "fig", "kiwi"], ["b", "a", "b"], ["x"], [])
SAMPLES: Mapping[str, Values] = {
    "int": INTEGERS,
    "float": (2.5, 10.0, 0.5, 100.0, 0.0),
    "str": TEXTS,
    "bool": (True, False),
    "bytes": (b"abc", b""),
    "list[int]": INTEGER_LISTS,
    "list[str]": TEXT_LISTS,
    "list[list[int]]": ([[1, 2], [3, 4]], [[1, 3], [2, 6], [8, 10]], [[5, 6]], []),
    "dict[str, int]": ({"a": 1, "b": 2}, {"x": 3, "y": 3, "z": 1}, {}),
}
"""Values of a type for which a person can compute the result mentally. Chosen by judgement; not measured."""
NAMES: Sequence[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"matrix|grid|board|intervals|pairs|points|rows|lists", "list[list[int]]"),
        (r"words|strings|strs|names|texts|sentences|tokens|lines", "list[str]"),
        (
            r"(.*_)?(nums|numbers|integers|ints|lst|list|arr|array|values|items|elements|data|seq|xs)\d?",
            "list[int]",
        ),
        (r"(.*_)?(dict|dictionary|mapping|counts|d)\d?", "dict[str, int]"),
        (
            r"(.*_)?(str|string|text|word|sentence|phrase|name|title|message|email|url|line|char|letter|s)\d?",
            "str",
        ),
        (r"(is|has|allow|ignore|reverse).*|flag", "bool"),
        (r"(.*_)?(price|rate|radius|celsius|fahrenheit|temperature|weight|ratio|percent)", "float"),
        (
            r"[abijkmnxy]\d?|(.*_)?(num|number|count|size|length|limit|index|year|month|day|target|amount|age"
            r"|cents|total|people|persons|quantity|days|hours|minutes|seconds|width|height)\d?",
            "int",
        ),
    )
]
"""Names of parameters, and the types that they usually have."""
FALLBACK_TYPES = ("list[int]", "int", "str")
"""Tried where neither annotation nor name says more, or where the first guess gives no result."""
SHOWN_LITERAL_RE = re.compile(
    r"(?<!\w)(?P<quote>['\"])(?=\S)(?P<text>[^\n]{1,60}?)(?P=quote)(?!\w)|(?P<items>\[[^\[\]\n]{1,60}\])"
    r"|(?<![\w.-])(?P<word>[\w#+:./-]*\d[\w:./-]*(?<![:./-])%?)"
)
"""Matches a quoted text, a list, or a word with a digit, such as `1h30m`, in the statement of a task."""
MAX_SHOWN_LITERALS = 5
"""Literals of a statement that are tried as arguments. Chosen by judgement; not measured."""

MISUSE = ("", "TypeError", "AttributeError")
"""Exceptions that show nothing about the code, because the guessed arguments may have the wrong type."""


@dataclass(frozen=True, kw_only=True)
class ProposedCalls:
    """What a person sees of new code.

    Attributes:
        examples: Calls with their results: first those on which the candidates agree, then some on which they differ.
        raising_calls: Calls on which the first candidate raises an exception.
    """

    examples: tuple[ProposedExample, ...] = ()
    raising_calls: tuple[RaisingCall, ...] = ()


async def propose_examples(candidates: Sequence[Candidate], suite: Suite, *, seed: int = 0) -> ProposedCalls:
    """Return a few calls of the function that the task asks for, with the results of all candidates.

    There are none if no function can be called with plain data, or if it returns nothing that an assert could compare.

    Args:
        candidates: Different candidates, the likeliest first. The calls name the function of the first one.
        seed: Seed of the random generator that varies the arguments.
    """
    path, entry_point = suite.task.module, suite.task.entry_point
    functions = [find_main_function(candidate.files.get(path, ""), entry_point) for candidate in candidates]
    pairs = [
        (candidate, function) for candidate, function in zip(candidates, functions, strict=True) if function
    ]
    if not pairs or functions[0] is None:
        return ProposedCalls()
    shown = find_shown_literals(suite.task.statement, functions[0].name)
    arguments_by_likelihood = generate_arguments(functions[0], random.Random(seed), shown)
    calls = list(itertools.islice(arguments_by_likelihood, MAX_PROPOSED_CALLS))
    results: list[list[str | None]] = []
    exceptions: list[list[str]] = []
    try:
        async with asyncio.timeout(PROPOSALS_TIMEOUT_S):
            for candidate, function in pairs:
                programs = [
                    make_call_program(render_call(function.name, repr(arguments))) for arguments in calls
                ]
                outcomes = await run_programs(candidate, suite, programs, PROPOSED_CALL_TIMEOUT_S)
                results.append([_read_literal(outcome) for outcome in outcomes])
                exceptions.append([_read_exception(outcome) for outcome in outcomes])
    except TimeoutError:
        pass  # only what ran in time is proposed
    if not results:
        return ProposedCalls()
    name = functions[0].name
    raising_calls = [
        RaisingCall(
            call=render_call(name, repr(arguments)),
            exception=exception,
            is_shown=not {*map(repr, shown)}.isdisjoint(map(repr, arguments)),
        )
        for arguments, exception in zip(calls, exceptions[0], strict=True)
        if exception not in MISUSE
    ]
    return ProposedCalls(
        examples=_select_examples(name, zip(calls, *results, strict=True)),
        raising_calls=tuple(call for call in raising_calls if len(call.call) <= MAX_EXAMPLE_CHARS)[
            :MAX_RAISING_CALLS
        ],
    )


def find_main_function(text: str, entry_point: str | None) -> ast.FunctionDef | None:
    """Return the function that a module is about: the entry point, or the first public one that no other calls.

    Return `None` for a generator, because an assert cannot compare what it returns.
    """
    tree = parse_module(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)] if tree else []
    called = {
        node.func.id
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != function.name
    }
    wanted = [function for function in functions if function.name == entry_point] or [
        function
        for function in functions
        if entry_point is None
        and function.name not in {*called, "main"}
        and not function.name.startswith("_")
    ]
    found = next(iter(wanted), None)
    is_generator = found is not None and any(
        isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(found)
    )
    return None if is_generator else found


def render_main_call(texts: Iterable[str], entry_point: str | None = None) -> str:
    """Return a call of the function that some modules are about, with its parameters as arguments: `show(text)`.

    It is empty if there is no such function.
    """
    functions = (find_main_function(text, entry_point) for text in texts)
    function = next(filter(None, functions), None)
    if function is None:
        return ""
    parameters = (parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args))
    return f"{function.name}({', '.join(parameters)})"


def find_shown_literals(statement: str, name: str) -> Values:
    """Return the first literals of a statement, without the name of the function that it asks for."""
    found: dict[str, Any] = {}
    for match in SHOWN_LITERAL_RE.finditer(statement):
        value: Any = match["text"] or match["word"]
        if not match["text"]:
            with suppress(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
                value = ast.literal_eval(match[0])
        if value not in (None, name):
            found.setdefault(repr(value), value)
    return tuple(found.values())[:MAX_SHOWN_LITERALS]


def generate_arguments(
    function: ast.FunctionDef, draw: random.Random, shown: Values = ()
) -> Iterator[Arguments]:
    """Yield different arguments for a function, the likeliest first; parameters with a default are left out.

    Args:
        shown: Values that the task shows. Those of a parameter's type are its likeliest ones.
    """
    spec = function.args
    required = [*spec.posonlyargs, *spec.args]
    required = required[: len(required) - len(spec.defaults)]
    # Equal values stay one object, by which the combinations of types are made.
    extended: dict[str, Values] = {}
    guesses = [
        [extended.setdefault(repr(values), _put_first(shown, values)) for values in _guess_values(parameter)]
        for parameter in required
    ]
    seeds = [*_combine([values for values, *_ in guesses])]
    near = [*mutate_inputs(seeds, 6, draw), *edge_inputs(seeds, 6)]
    # Where neither annotation nor name shows a type, another type is likelier to work than other values of the first.
    knows_types = all(parameter.annotation or _types_by_name(parameter) for parameter in required)
    others = _take_turns(guesses)
    yield from _drop_repetitions([*seeds, *near, *others] if knows_types else [*seeds, *others, *near])


def _put_first(shown: Values, values: Values) -> Values:
    """Return the values of a type, after those that the task shows of it."""
    kinds = {type(value) for value in values}
    return (*(value for value in shown if type(value) in kinds), *values)


def _take_turns(guesses: Sequence[Sequence[Values]]) -> Iterator[Arguments]:
    """Yield arguments of each combination of types in turn, so that few calls try many combinations."""
    combinations = itertools.islice(_combine_types(guesses), MAX_PROPOSED_CALLS)
    for row in itertools.zip_longest(*map(_combine, combinations)):
        yield from (arguments for arguments in row if arguments is not None)


def _combine_types(guesses: Sequence[Sequence[Values]]) -> Iterator[Sequence[Values]]:
    """Yield values for each parameter, first all of one type where they can be, then one of another type.

    Two parameters often have the same type. All combinations would be too many: ten parameters have 59,049.
    """
    kinds = {id(values): values for choices in guesses for values in choices}.values()
    # A parameter that cannot have the type has its own likeliest one.
    uniform = [
        tuple(next((values for values in choices if values is kind), choices[0]) for choices in guesses)
        for kind in kinds
    ]
    yield from uniform
    for number, choices in enumerate(guesses):
        for columns in uniform:
            others = (values for values in choices if values is not columns[number])
            yield from ((*columns[:number], values, *columns[number + 1 :]) for values in others)


def _combine(columns: Sequence[Values]) -> Iterator[Arguments]:
    """Yield arguments from the values of each parameter; two parameters of one type get different values."""
    for number in range(max(map(len, columns), default=1)):
        yield tuple(column[(number + shift) % len(column)] for shift, column in enumerate(columns))


def _drop_repetitions(arguments: Iterable[Arguments]) -> Iterator[Arguments]:
    yield from {repr(values): values for values in arguments}.values()


def _guess_values(parameter: ast.arg) -> list[Values]:
    """Return values for a parameter, those of its likeliest type first."""
    annotated = _values_of_type(ast.unparse(parameter.annotation)) if parameter.annotation else ()
    if annotated:
        return [annotated]
    return [SAMPLES[kind] for kind in dict.fromkeys((*_types_by_name(parameter)[:1], *FALLBACK_TYPES))]


def _types_by_name(parameter: ast.arg) -> list[str]:
    """Return the types that parameters of this name usually have."""
    return [kind for pattern, kind in NAMES if pattern.fullmatch(parameter.arg.lower())]


def _values_of_type(annotation: str) -> Values:
    """Return values of a type; none if the annotation names no type of plain data."""
    text = re.sub(r"^Optional\[(.*)\]$|\s*\|\s*None$", r"\1", annotation.replace("typing.", ""))
    text = re.sub(r"\b(?:Iterable|Sequence|Collection|List)\b", "list", text)
    text = text.replace("Dict", "dict").replace("Set", "set").replace("Tuple", "tuple")
    text = {"list": "list[int]", "dict": "dict[str, int]", "set": "set[int]", "tuple": "tuple[int, ...]"}.get(
        text, text
    )
    if text in SAMPLES:
        return SAMPLES[text]
    container, _, inner = text.removesuffix("]").partition("[")
    if container == "list" and (items := _values_of_type(inner)):
        return (list(items[:3]), list(items[:1]), [])
    if container == "set" and (lists := _values_of_type(f"list[{inner}]")):
        return tuple(map(set, lists))
    if container == "tuple" and inner.endswith(", ...") and (lists := _values_of_type(f"list[{inner[:-5]}]")):
        return tuple(map(tuple, lists))
    if container == "tuple" and all(columns := [_values_of_type(part) for part in inner.split(", ")]):
        return tuple(_combine(columns))
    return ()


def _read_literal(outcome: ProgramOutcome) -> str | None:
    """Return a call's result as the source of a literal; `None` if it has none, or is too long to be checked by eye."""
    answer = read_answer(outcome)
    if answer is None or not outcome.digest or len(answer.text) > MAX_EXAMPLE_CHARS:
        return None
    try:
        return repr(ast.literal_eval(answer.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _read_exception(outcome: ProgramOutcome) -> str:
    """Return the name of the exception that a call raised; empty if it returned, or if it took too long."""
    if outcome.digest or outcome.live_reason or outcome.status == "timeout":
        return ""
    return str(outcome.fact.get("exception", "")).partition(":")[0]


def _select_examples(
    name: str, rows: Iterable[tuple[Arguments, *tuple[str | None, ...]]]
) -> tuple[ProposedExample, ...]:
    """Return calls whose results differ from each other, first those on which the candidates agree."""
    agreeing: dict[str, ProposedExample] = {}
    repeated: list[ProposedExample] = []
    differing: list[ProposedExample] = []
    for arguments, *results in rows:
        answers = [
            answer for answer, _ in Counter(result for result in results if result is not None).most_common()
        ]
        call = render_call(name, repr(arguments))
        if None in results or len(call) > MAX_EXAMPLE_CHARS:
            continue
        example = ProposedExample(call=call, answers=tuple(answers))
        if len(answers) > 1:
            differing.append(example)
        elif answers[0] in agreeing:
            repeated.append(example)
        else:
            agreeing[answers[0]] = example
    if not differing and agreeing.keys() <= {"None"}:
        return ()
    differing = differing[:MAX_DIFFERING_EXAMPLES]
    return (*(*agreeing.values(), *repeated)[: MAX_PROPOSED_EXAMPLES - len(differing)], *differing)
