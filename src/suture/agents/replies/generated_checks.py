"""Checks from a tester's reply: plain asserts, one each. Unusable tests are dropped and counted.

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

from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.tuning import (
    EXAMPLES_PER_PROPERTY,
    MAX_CHECK_CHARS,
    MAX_CHECKS,
    MAX_GENERATED_ITEMS,
    MAX_GENERATED_NUMBER,
    MAX_INSPECTED_TESTS,
)
from suture.core.records import Check, Provenance
from suture.errors import MalformedReply
from suture.judge.extraction.assert_checks import deduplicate_checks, make_check
from suture.models import Reply
from suture.project.python_source.parsing import limit_parsing_work, parse_module
from suture.project.python_source.statements import (
    Definition,
    Scope,
    complete_prefix,
    find_setup_statements,
    known_names,
    read_names,
    split_lines,
)

DRAW_NAME = "seeded_draw"
LOOP_TEMPLATE = (
    f"for {DRAW_NAME} in map(__import__('random').Random, range({EXAMPLES_PER_PROPERTY})):\n    pass"
)
ALPHABET = "abcdefghijklmnopqrstuvwxyz ABCXYZ019_-.,"


class _UnsupportedStrategy(Exception):
    """A strategy that cannot be drawn here."""


def is_hypothesis_test(node: ast.FunctionDef) -> bool:
    """Return whether hypothesis draws a test's arguments."""
    return any(_callee_name(one) == "given" for one in node.decorator_list)


def unroll_hypothesis_test(node: ast.FunctionDef) -> ast.For | None:
    """Return the test as one loop that draws its arguments; `None` if it uses an unsupported strategy.

    Args:
        node: A function with the decorator `given`.
    """
    given = next(one for one in node.decorator_list if _callee_name(one) == "given")
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    if not isinstance(given, ast.Call) or any(_changes_meaning_in_loop(part) for part in ast.walk(node)):
        return None
    last = names[len(names) - len(given.args) :]  # hypothesis fills them from the right
    strategies = dict(zip(last, given.args, strict=False)) | {k.arg or "": k.value for k in given.keywords}
    if set(strategies) != set(names):
        return None
    try:
        drawn = [ast.parse(f"{name} = {_draw_expression(strategies[name])}").body[0] for name in names]
    except (
        _UnsupportedStrategy,
        RecursionError,
        SyntaxError,
        MemoryError,
    ):  # a model may nest anything a thousand deep
        return None
    loop = ast.parse(LOOP_TEMPLATE).body[0]
    assert isinstance(loop, ast.For)
    loop.body = [*drawn, *(_without_assume(part) for part in node.body)]
    return ast.fix_missing_locations(loop)


def _changes_meaning_in_loop(part: ast.AST) -> bool:
    """Return whether a statement means something else in a loop than in a function."""
    return isinstance(part, ast.Return | ast.Yield | ast.YieldFrom | ast.Nonlocal | ast.Global)


def _without_assume(node: ast.stmt) -> ast.stmt:
    """Return `assume(x)` at the top level of a test as a skip to the next input."""
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
    """Return source that draws one value.

    Raises:
        _UnsupportedStrategy: The strategy, or one inside it, is unsupported.
    """
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


def _option(args: StrategyArgs, options: StrategyOptions, at: int, name: str, default: str) -> str:
    node = args[at] if at < len(args) else options.get(name)
    unset = node is None or (isinstance(node, ast.Constant) and node.value is None)
    return default if node is None or unset else f"({ast.unparse(node)})"


def _number_bounds(args: StrategyArgs, options: StrategyOptions) -> tuple[str, str]:
    low = _option(args, options, 0, "min_value", "")
    high = _option(args, options, 1, "max_value", "")
    least = low or (f"min(-{MAX_GENERATED_NUMBER}, {high})" if high else f"-{MAX_GENERATED_NUMBER}")
    return least, high or (
        f"max({MAX_GENERATED_NUMBER}, {low} + {MAX_GENERATED_NUMBER})" if low else f"{MAX_GENERATED_NUMBER}"
    )


def _integers(args: StrategyArgs, options: StrategyOptions) -> str:
    low, high = _number_bounds(args, options)
    return f"{DRAW_NAME}.choice([{low}, {high}] + [{DRAW_NAME}.randint({low}, {high}) for _ in range(6)])"


def _floats(args: StrategyArgs, options: StrategyOptions) -> str:
    low, high = _number_bounds(args, options)
    return f"{DRAW_NAME}.uniform({low}, {high})"


def _length(args: StrategyArgs, options: StrategyOptions, at: int) -> str:
    least = _option(args, options, at, "min_size", "0")
    most = _option(args, options, at + 1, "max_size", f"{least} + {MAX_GENERATED_ITEMS}")
    return f"range({DRAW_NAME}.randint({least}, {most}))"


def _text(args: StrategyArgs, options: StrategyOptions) -> str:
    alphabet = _option(args, options, 0, "alphabet", repr(ALPHABET))
    return f"''.join({DRAW_NAME}.choice({alphabet}) for _ in {_length(args, options, 1)})"


def _lists(args: StrategyArgs, options: StrategyOptions) -> str:
    if {"unique", "unique_by"} & set(options):
        raise _UnsupportedStrategy
    of = args[0] if args else options["elements"]
    return f"[{_draw_expression(of)} for _ in {_length(args, options, 1)}]"


def _one_of(args: StrategyArgs, options: StrategyOptions) -> str:
    return f"{DRAW_NAME}.choice([{', '.join(map(_draw_expression, [args[0], *args[1:]]))}])"


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
    "tuples": lambda args, options: "(" + "".join(f"{_draw_expression(one)}, " for one in args) + ")",
}
"""The strategies that models write; `st.integers().map(...)` and the like are unsupported."""


UNTRIED_TRUST = 0.0
"""Trust in a generated check that has not been compared with anything yet."""
COMPOUND_STATEMENTS = (ast.For, ast.While, ast.If, ast.With, ast.Try)

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
    """The checks of a tester's reply.

    Attributes:
        checks: The usable checks, each once.
        dropped: Why others are unusable -> how many.
    """

    checks: tuple[Check, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _FoundTest:
    """A statement that tests something, and the statements before it."""

    node: ast.stmt
    scope: Scope


@limit_parsing_work
def checks_from_reply(
    reply: Reply, provenance: Provenance, entry_point: str | None, *, trust: float = UNTRIED_TRUST
) -> GeneratedChecks:
    """Return the checks of a reply: its asserts, and loops and blocks that contain one.

    The bodies of functions without parameters whose names start with `test` count as top-level code;
    hypothesis tests count as loops over inputs from fixed seeds. Imports and definitions of the entry point
    are removed, so that a check never tests the tester's own code.

    Args:
        reply: The tester's reply.
        provenance: Provenance of the checks.
        entry_point: The function or class that each check must use; any if unknown.
        trust: Trust in each check, in [0, 1].

    Raises:
        MalformedReply: No check is usable.
    """
    dropped: Counter[DropReason] = Counter()
    checks: list[Check] = []
    for found in islice(_tests_in(_sources(reply, dropped), dropped), MAX_INSPECTED_TESTS):
        setup = find_setup_statements(found.node, found.scope, entry_point)
        reason = _unusable_reason(found, setup, entry_point)
        if reason is not None:
            dropped[reason] += 1
            continue
        *before, last = map(ast.unparse, [*setup, found.node])
        checks.append(make_check(last, provenance, trust=trust, setup=before))
    usable = deduplicate_checks(checks)
    if len(usable) > MAX_CHECKS:
        dropped["too_many"] += len(usable) - MAX_CHECKS
    if not usable:
        reasons = "; ".join(f"{count}: {DROP_TEXTS[reason]}" for reason, count in dropped.most_common(3))
        raise MalformedReply("the reply holds no usable assert" + (f" ({reasons})" if reasons else ""))
    return GeneratedChecks(
        checks=usable[:MAX_CHECKS], dropped={str(reason): count for reason, count in dropped.items()}
    )


def _sources(reply: Reply, dropped: Counter[DropReason]) -> Iterator[ast.Module]:
    """Yield the reply's blocks of code; of a block that does not parse, its lines that are asserts."""
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code]
    texts = [(b.code, b.is_closed) for b in blocks] or [(reply.text, reply.finish != "length")]
    for text, whole in texts:
        tree = parse_module(text if whole else complete_prefix(text))
        if tree is not None and (tree.body or not whole):
            if not whole:
                dropped["cut_off"] += 1
            yield tree
            continue
        alone = [
            _parse_single_line(line, dropped)
            for line in split_lines(text)
            if line.lstrip().startswith("assert ")
        ]
        yield ast.Module([node for node in alone if node is not None], [])


def _parse_single_line(line: str, dropped: Counter[DropReason]) -> ast.stmt | None:
    tree = parse_module(line.strip())
    if tree is None or len(tree.body) != 1:
        dropped["not_python"] += 1
        return None
    return tree.body[0]


def _tests_in(trees: Iterator[ast.Module], dropped: Counter[DropReason]) -> Iterator[_FoundTest]:
    above: Scope = ()
    for tree in trees:
        yield from _tests_in_body(tree.body, above, dropped)
        above = (*above, *tree.body)  # a second block may use the imports of the first


def _tests_in_body(
    body: Sequence[ast.stmt], above: Scope, dropped: Counter[DropReason]
) -> Iterator[_FoundTest]:
    for at, node in enumerate(body):
        scope = (*above, *body[:at])
        if isinstance(node, ast.Assert) or (isinstance(node, COMPOUND_STATEMENTS) and _holds_assert(node)):
            yield _FoundTest(node=node, scope=scope)
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            if is_hypothesis_test(node):
                loop = unroll_hypothesis_test(node)
                if loop is None:
                    dropped["unsupported_strategy"] += 1
                else:
                    yield from _tests_in_body([loop], (*above, *body), dropped)
            elif _needs_arguments(node) or node.decorator_list:
                dropped["has_parameters"] += 1
            else:
                yield from _tests_in_body(node.body, (*above, *body), dropped)
        elif isinstance(node, ast.ClassDef) and node.name.lower().startswith("test"):
            dropped["test_class"] += 1


def _holds_assert(node: ast.stmt) -> bool:
    return any(isinstance(part, ast.Assert) for part in ast.walk(node))


def _needs_arguments(node: ast.FunctionDef) -> bool:
    given = node.args
    return bool(given.posonlyargs or given.args or given.kwonlyargs or given.vararg or given.kwarg)


def _unusable_reason(
    found: _FoundTest, setup: Sequence[ast.stmt], entry_point: str | None
) -> DropReason | None:
    """Return why a test is unusable, or `None` if it is usable."""
    node = found.node
    if not _is_short([*setup, node]):
        return "too_long"
    if entry_point is None:
        calls = any(isinstance(part, ast.Call) for part in ast.walk(node))
        return None if calls else "calls_nothing"
    if entry_point not in read_names([*setup, node]):
        return "entry_point_unused"
    if any(isinstance(part, Definition) and part.name == entry_point for part in ast.walk(node)):
        return "entry_point_redefined"
    known = known_names([*setup, node]) | {entry_point}
    return None if read_names([*setup, node]) <= known else "unknown_names"


def _is_short(nodes: Sequence[ast.stmt]) -> bool:
    try:
        return sum(len(ast.unparse(node)) for node in nodes) <= MAX_CHECK_CHARS
    except RecursionError:  # a sum of a thousand terms nests a thousand deep
        return False


def mean_logprob(source: str, reply: Reply) -> float | None:
    """Return the mean log probability of the tokens in a program's lines, as a reply reports them.

    Args:
        source: The program; lines that the reply does not contain, such as added ones, are ignored.
        reply: The reply that it was read from.

    Returns:
        Nats per token, at most 0; `None` if the provider reports none, or no line is found.
    """
    if not reply.logprobs or len(reply.tokens) != len(reply.logprobs):
        return None
    text = "".join(reply.tokens)
    wanted = [False] * len(text)
    for line in {line.strip() for line in source.splitlines()} - {""}:
        at = text.find(line)
        if at >= 0:
            wanted[at : at + len(line)] = [True] * len(line)
    ends = list(accumulate(map(len, reply.tokens)))
    starts = [0, *ends]
    spans = zip(starts, ends, reply.logprobs, strict=False)
    of_lines = [logprob for start, end, logprob in spans if any(wanted[start:end])]
    return mean(of_lines) if of_lines else None
