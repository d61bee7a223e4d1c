"""Read the checks in a tester's reply. Each is a single assert, loop or block; unusable ones are counted.

A hypothesis test becomes a loop over inputs from fixed seeds. Generated checks run inside the sandbox, where
hypothesis is not installed; its common strategies can be drawn without it, always with the same inputs. Only
its search for small failing inputs is lost.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from statistics import mean
from typing import Literal

from suture.agents import tuning
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.core.records import Check, Provenance
from suture.errors import MalformedReply
from suture.judge.extraction.doctest_examples import deduplicate_checks, make_check
from suture.models import Reply
from suture.project.python_source.parsing import limit_parsing_work, parse_module
from suture.project.python_source.statement_edits import (
    Definition,
    Scope,
    complete_prefix,
    find_setup_statements,
    known_names,
    read_names,
    split_lines,
)

DRAW_NAME = "seeded_draw"
"""The loop variable with the random generator, which is seeded with the number of the round."""
LOOP_TEMPLATE = (
    f"for {DRAW_NAME} in map(__import__('random').Random, range({tuning.EXAMPLES_PER_PROPERTY})):\n    pass"
)
ALPHABET = "abcdefghijklmnopqrstuvwxyz ABCXYZ019_-.,"
"""Characters of the strings that a strategy without an alphabet generates."""


class _UnsupportedStrategy(Exception):
    """A strategy that cannot be drawn without hypothesis."""


def _is_hypothesis_test(node: ast.FunctionDef) -> bool:
    """Return whether hypothesis draws a test's arguments."""
    return any(_callee_name(decorator) == "given" for decorator in node.decorator_list)


def _unroll_hypothesis_test(test: ast.FunctionDef) -> ast.For | None:
    """Return the test as one loop that draws its arguments; `None` if that is not possible."""
    given = next(decorator for decorator in test.decorator_list if _callee_name(decorator) == "given")
    names = [arg.arg for arg in (*test.args.posonlyargs, *test.args.args, *test.args.kwonlyargs)]
    # These statements mean something else in a loop than in a function.
    function_only = (ast.Return, ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)
    if not isinstance(given, ast.Call) or any(isinstance(node, function_only) for node in ast.walk(test)):
        return None
    positional = names[len(names) - len(given.args) :]  # Hypothesis fills them from the right.
    strategies = dict(zip(positional, given.args, strict=False))
    # A `**mapping` has no name. Its empty name matches no argument, so such a test is not unrolled.
    strategies |= {keyword.arg or "": keyword.value for keyword in given.keywords}
    if set(strategies) != set(names):
        return None
    try:
        draws = [ast.parse(f"{name} = {_draw_expression(strategies[name])}").body[0] for name in names]
    # A model may nest anything a thousand deep.
    except (_UnsupportedStrategy, RecursionError, SyntaxError, MemoryError):
        return None
    loop = ast.parse(LOOP_TEMPLATE).body[0]
    assert isinstance(loop, ast.For)
    loop.body = [*draws, *map(_replace_assume, test.body)]
    return ast.fix_missing_locations(loop)


def _replace_assume(node: ast.stmt) -> ast.stmt:
    """Return a skip to the next input in place of `assume(x)`, and any other statement as it is."""
    if not (isinstance(node, ast.Expr) and _callee_name(node.value) == "assume"):
        return node
    assert isinstance(node.value, ast.Call)
    return ast.If(ast.UnaryOp(ast.Not(), node.value.args[0]), [ast.Continue()], [])


def _callee_name(node: ast.expr) -> str:
    """Return the last part of the called name, such as `given` for `hypothesis.given(...)`."""
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def _draw_expression(strategy: ast.expr) -> str:
    """Return source that draws one value of a strategy, or raise `_UnsupportedStrategy`."""
    draw = STRATEGIES.get(_callee_name(strategy))
    if draw is None or not isinstance(strategy, ast.Call):
        raise _UnsupportedStrategy
    options = {option.arg or "": option.value for option in strategy.keywords}
    try:
        return draw(strategy.args, options)
    except (IndexError, KeyError):
        raise _UnsupportedStrategy from None


StrategyArgs = Sequence[ast.expr]
StrategyOptions = dict[str, ast.expr]


def _option(args: StrategyArgs, options: StrategyOptions, position: int, name: str, default: str) -> str:
    """Return the source of an argument that is given by position or by name."""
    node = args[position] if position < len(args) else options.get(name)
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return default
    return f"({ast.unparse(node)})"


def _number_bounds(args: StrategyArgs, options: StrategyOptions) -> tuple[str, str]:
    """Return the sources of `(lower bound, upper bound)`."""
    low = _option(args, options, 0, "min_value", "")
    high = _option(args, options, 1, "max_value", "")
    default_low = (
        f"min(-{tuning.MAX_GENERATED_NUMBER}, {high})" if high else f"-{tuning.MAX_GENERATED_NUMBER}"
    )
    default_high = f"{tuning.MAX_GENERATED_NUMBER}"
    if low:
        default_high = f"max({tuning.MAX_GENERATED_NUMBER}, {low} + {tuning.MAX_GENERATED_NUMBER})"
    return low or default_low, high or default_high


def _integers(args: StrategyArgs, options: StrategyOptions) -> str:
    low, high = _number_bounds(args, options)
    # Each bound is one of eight choices, so that bounds are among the tested inputs. The number of the other
    # choices is chosen by judgement; not measured.
    return f"{DRAW_NAME}.choice([{low}, {high}] + [{DRAW_NAME}.randint({low}, {high}) for _ in range(6)])"


def _floats(args: StrategyArgs, options: StrategyOptions) -> str:
    low, high = _number_bounds(args, options)
    return f"{DRAW_NAME}.uniform({low}, {high})"


def _size_range(args: StrategyArgs, options: StrategyOptions) -> str:
    """Return source of a range with a drawn length; the sizes are the second and the third argument."""
    min_size = _option(args, options, 1, "min_size", "0")
    max_size = _option(args, options, 2, "max_size", f"{min_size} + {tuning.MAX_GENERATED_ITEMS}")
    return f"range({DRAW_NAME}.randint({min_size}, {max_size}))"


def _text(args: StrategyArgs, options: StrategyOptions) -> str:
    alphabet = _option(args, options, 0, "alphabet", repr(ALPHABET))
    return f"''.join({DRAW_NAME}.choice({alphabet}) for _ in {_size_range(args, options)})"


def _lists(args: StrategyArgs, options: StrategyOptions) -> str:
    if {"unique", "unique_by"} & set(options):
        raise _UnsupportedStrategy
    elements = args[0] if args else options["elements"]
    return f"[{_draw_expression(elements)} for _ in {_size_range(args, options)}]"


def _one_of(args: StrategyArgs, options: StrategyOptions) -> str:
    alternatives = [args[0], *args[1:]]  # Without any, `args[0]` raises, and the strategy is unsupported.
    return f"{DRAW_NAME}.choice([{', '.join(map(_draw_expression, alternatives))}])"


STRATEGIES: dict[str, Callable[[StrategyArgs, StrategyOptions], str]] = {
    "integers": _integers,
    "floats": _floats,
    "text": _text,
    "lists": _lists,
    "one_of": _one_of,
    "booleans": lambda args, options: f"{DRAW_NAME}.choice([False, True])",
    "none": lambda args, options: "None",
    "just": lambda args, options: ast.unparse(args[0]),
    "sampled_from": lambda args, options: f"{DRAW_NAME}.choice(list({ast.unparse(args[0])}))",
    "tuples": lambda args, options: "(" + "".join(f"{_draw_expression(arg)}, " for arg in args) + ")",
}
"""Name of each supported strategy -> the function that returns the source of a draw.

`st.integers().map(...)` and the like are unsupported."""


UNTRIED_TRUST = 0.0
"""Trust in a generated check that has not been compared with anything yet."""
TEST_STATEMENTS = (ast.Assert, ast.For, ast.While, ast.If, ast.With, ast.Try)
"""Statements that are a test if they are, or contain, an assert."""

DropReason = Literal[
    "cut_off",
    "not_python",
    "unsupported_strategy",
    "has_parameters",
    "test_class",
    "too_long",
    "calls_nothing",
    "entry_point_unused",
    "entry_point_redefined",
    "unknown_names",
    "too_many",
]
"""Why a test of a reply is not used."""
DROP_TEXTS: Mapping[DropReason, str] = {
    "cut_off": "cut short",
    "not_python": "no Python",
    "unsupported_strategy": "a hypothesis test that cannot be drawn without hypothesis",
    "has_parameters": "a test with parameters",
    "test_class": "a test class",
    "too_long": "too long",
    "calls_nothing": "calls nothing",
    "entry_point_unused": "does not use what is tested",
    "entry_point_redefined": "defines what is tested",
    "unknown_names": "uses names that nothing defines",
    "too_many": "more than enough",
}
"""The reasons in words, for the message of a reply without any usable test."""


@dataclass(frozen=True, kw_only=True)
class GeneratedChecks:
    """The usable checks of a tester's reply, and how many others were dropped for each reason."""

    checks: tuple[Check, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@limit_parsing_work
def checks_from_reply(reply: Reply, provenance: Provenance, entry_point: str | None) -> GeneratedChecks:
    """Return the checks of a reply: its asserts, and loops and blocks that contain one.

    The bodies of functions without parameters whose names start with `test` count as top-level code;
    hypothesis tests count as loops over inputs from fixed seeds. Imports and definitions of the entry point
    are removed, so that a check never tests the tester's own code.

    Args:
        entry_point: The function or class that each check must use; any if unknown.

    Raises:
        MalformedReply: No check is usable.
    """
    dropped: Counter[DropReason] = Counter()
    checks: list[Check] = []
    for test, scope in islice(_tests_in_reply(reply, dropped), tuning.MAX_INSPECTED_TESTS):
        setup = find_setup_statements(test, scope, entry_point)
        reason = _unusable_reason(test, setup, entry_point)
        if reason is not None:
            dropped[reason] += 1
            continue
        *setup_sources, source = map(ast.unparse, [*setup, test])
        checks.append(make_check(source, provenance, trust=UNTRIED_TRUST, setup=setup_sources))
    usable = deduplicate_checks(checks)
    if len(usable) > tuning.MAX_CHECKS:
        dropped["too_many"] += len(usable) - tuning.MAX_CHECKS
    if not usable:
        reasons = "; ".join(f"{count}: {DROP_TEXTS[reason]}" for reason, count in dropped.most_common(3))
        raise MalformedReply("the reply holds no usable assert" + (f" ({reasons})" if reasons else ""))
    return GeneratedChecks(
        checks=usable[: tuning.MAX_CHECKS], dropped={str(reason): count for reason, count in dropped.items()}
    )


def _parse_blocks(reply: Reply, dropped: Counter[DropReason]) -> Iterator[list[ast.stmt]]:
    """Yield the statements of each block of code; of a block that does not parse, its lines that are asserts."""
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code]
    texts = [(b.code, b.is_closed) for b in blocks] or [(reply.text, reply.finish != "length")]
    for text, is_complete in texts:
        tree = parse_module(text if is_complete else complete_prefix(text))
        if tree is not None and (tree.body or not is_complete):
            if not is_complete:
                dropped["cut_off"] += 1
            yield tree.body
            continue
        lines = [line.strip() for line in split_lines(text) if line.lstrip().startswith("assert ")]
        asserts = [
            line_tree.body[0]
            for line in lines
            if (line_tree := parse_module(line)) and len(line_tree.body) == 1
        ]
        if len(asserts) < len(lines):
            dropped["not_python"] += len(lines) - len(asserts)
        yield asserts


def _tests_in_reply(reply: Reply, dropped: Counter[DropReason]) -> Iterator[tuple[ast.stmt, Scope]]:
    """Yield `(test, statements before it)` for each statement of a reply that tests something."""
    scope: Scope = ()
    for body in _parse_blocks(reply, dropped):
        yield from _tests_in_body(body, scope, dropped)
        scope = (*scope, *body)  # A second block may use the imports of the first.


def _tests_in_body(
    body: Sequence[ast.stmt], outer: Scope, dropped: Counter[DropReason]
) -> Iterator[tuple[ast.stmt, Scope]]:
    for number, node in enumerate(body):
        has_assert = any(isinstance(part, ast.Assert) for part in ast.walk(node))
        if isinstance(node, TEST_STATEMENTS) and has_assert:
            yield node, (*outer, *body[:number])
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            if _is_hypothesis_test(node):
                loop = _unroll_hypothesis_test(node)
                if loop is None:
                    dropped["unsupported_strategy"] += 1
                else:
                    yield from _tests_in_body([loop], (*outer, *body), dropped)
            elif node.decorator_list or any(isinstance(part, ast.arg) for part in ast.walk(node.args)):
                dropped["has_parameters"] += 1
            else:
                yield from _tests_in_body(node.body, (*outer, *body), dropped)
        elif isinstance(node, ast.ClassDef) and node.name.lower().startswith("test"):
            dropped["test_class"] += 1


def _unusable_reason(test: ast.stmt, setup: Sequence[ast.stmt], entry_point: str | None) -> DropReason | None:
    """Return why a test is unusable, or `None` if it is usable."""
    program = [*setup, test]
    try:
        is_short = sum(len(ast.unparse(node)) for node in program) <= tuning.MAX_CHECK_CHARS
    except RecursionError:  # A sum of a thousand terms nests a thousand deep.
        is_short = False
    if not is_short:
        return "too_long"
    if entry_point is None:
        calls_something = any(isinstance(node, ast.Call) for node in ast.walk(test))
        return None if calls_something else "calls_nothing"
    if entry_point not in read_names(program):
        return "entry_point_unused"
    if any(isinstance(node, Definition) and node.name == entry_point for node in ast.walk(test)):
        return "entry_point_redefined"
    return None if read_names(program) <= known_names(program) | {entry_point} else "unknown_names"


def mean_logprob(source: str, reply: Reply) -> float | None:
    """Return the mean log probability of the tokens in a program's lines, in nats per token, at most 0.

    It is `None` if the provider reports none, or the reply contains no line of the program. Other lines that the
    reply does not contain, such as added ones, are ignored.
    """
    if not reply.logprobs or len(reply.tokens) != len(reply.logprobs):
        return None
    text = "".join(reply.tokens)
    is_in_program = [False] * len(text)
    for line in {line.strip() for line in source.splitlines()} - {""}:
        start = text.find(line)
        if start >= 0:
            is_in_program[start : start + len(line)] = [True] * len(line)
    ends = list(accumulate(map(len, reply.tokens)))
    tokens = zip([0, *ends], ends, reply.logprobs, strict=False)
    logprobs = [logprob for start, end, logprob in tokens if any(is_in_program[start:end])]
    return mean(logprobs) if logprobs else None
