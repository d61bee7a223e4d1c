"""A test for hypothesis as a loop over inputs that are drawn with fixed seeds.

Generated tests are judged by a program of ours behind the wall, where hypothesis is not installed. What its
common strategies mean can be drawn without it: the same inputs each time, and a bounded number of them. What
is lost is its search for small failing inputs.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from statistics import mean

from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.core.records import Check, Provenance
from suture.errors import MalformedReply
from suture.judge.extraction.assert_checks import check_of, distinct
from suture.models import Reply
from suture.project.python_source.parsing import bounded, parsed
from suture.project.python_source.statements import (
    Definition,
    Scope,
    known_names,
    lines_of,
    read_names,
    setup_for,
    sound_prefix,
)

EXAMPLES = 25
"""Inputs that are drawn for each property."""
LARGEST, MOST_ITEMS = 100, 6
"""The bounds of numbers and of lengths where the strategy names none."""
DRAW = "seeded_draw"
TEMPLATE = f"for {DRAW} in map(__import__('random').Random, range({EXAMPLES})):\n    pass"
LETTERS = "abcdefghijklmnopqrstuvwxyz ABCXYZ019_-.,"


class _Unknown(Exception):
    """A strategy that is not among those that can be drawn here."""


def is_given(node: ast.FunctionDef) -> bool:
    """Whether a test's arguments are drawn by hypothesis."""
    return any(_called(one) == "given" for one in node.decorator_list)


def loop_of_given(node: ast.FunctionDef) -> ast.For | None:
    """The test as one loop that draws its arguments; `None` where a strategy of it is not known here.

    Args:
        node: A function that `given` decorates.
    """
    given = next(one for one in node.decorator_list if _called(one) == "given")
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    if not isinstance(given, ast.Call) or any(_leaves(part) for part in ast.walk(node)):
        return None
    last = names[len(names) - len(given.args) :]  # hypothesis fills them from the right
    strategies = dict(zip(last, given.args, strict=False)) | {k.arg or "": k.value for k in given.keywords}
    if set(strategies) != set(names):
        return None
    try:
        drawn = [ast.parse(f"{name} = {_drawn(strategies[name])}").body[0] for name in names]
    except (_Unknown, RecursionError, SyntaxError, MemoryError):  # a model may nest anything a thousand deep
        return None
    loop = ast.parse(TEMPLATE).body[0]
    assert isinstance(loop, ast.For)
    loop.body = [*drawn, *(_without_assume(part) for part in node.body)]
    return ast.fix_missing_locations(loop)


def _leaves(part: ast.AST) -> bool:
    """Whether a part means something else in a loop than in a function."""
    return isinstance(part, ast.Return | ast.Yield | ast.YieldFrom | ast.Nonlocal | ast.Global)


def _without_assume(node: ast.stmt) -> ast.stmt:
    """`assume(x)` at the top level of a test goes on to the next input."""
    if not (isinstance(node, ast.Expr) and _called(node.value) == "assume"):
        return node
    assert isinstance(node.value, ast.Call)
    return ast.If(ast.UnaryOp(ast.Not(), node.value.args[0]), [ast.Continue()], [])


def _called(node: ast.expr) -> str:
    """The last part of what is called, such as `given` for `hypothesis.given(...)`."""
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def _drawn(strategy: ast.expr) -> str:
    """Source that draws one value.

    Raises:
        _Unknown: The strategy, or one inside it, is not known.
    """
    draw = STRATEGIES.get(_called(strategy))
    if draw is None or not isinstance(strategy, ast.Call):
        raise _Unknown
    options = {option.arg or "": option.value for option in strategy.keywords}
    try:
        return draw(strategy.args, options)
    except (IndexError, KeyError):
        raise _Unknown from None


Args = Sequence[ast.expr]
Options = dict[str, ast.expr]


def _option(args: Args, options: Options, at: int, name: str, default: str) -> str:
    node = args[at] if at < len(args) else options.get(name)
    unset = node is None or (isinstance(node, ast.Constant) and node.value is None)
    return default if node is None or unset else f"({ast.unparse(node)})"


def _between(args: Args, options: Options) -> tuple[str, str]:
    low = _option(args, options, 0, "min_value", "")
    high = _option(args, options, 1, "max_value", "")
    least = low or (f"min(-{LARGEST}, {high})" if high else f"-{LARGEST}")
    return least, high or (f"max({LARGEST}, {low} + {LARGEST})" if low else f"{LARGEST}")


def _integers(args: Args, options: Options) -> str:
    low, high = _between(args, options)
    return f"{DRAW}.choice([{low}, {high}] + [{DRAW}.randint({low}, {high}) for _ in range(6)])"


def _floats(args: Args, options: Options) -> str:
    low, high = _between(args, options)
    return f"{DRAW}.uniform({low}, {high})"


def _length(args: Args, options: Options, at: int) -> str:
    least = _option(args, options, at, "min_size", "0")
    most = _option(args, options, at + 1, "max_size", f"{least} + {MOST_ITEMS}")
    return f"range({DRAW}.randint({least}, {most}))"


def _text(args: Args, options: Options) -> str:
    alphabet = _option(args, options, 0, "alphabet", repr(LETTERS))
    return f"''.join({DRAW}.choice({alphabet}) for _ in {_length(args, options, 1)})"


def _lists(args: Args, options: Options) -> str:
    if {"unique", "unique_by"} & set(options):
        raise _Unknown
    of = args[0] if args else options["elements"]
    return f"[{_drawn(of)} for _ in {_length(args, options, 1)}]"


def _one_of(args: Args, options: Options) -> str:
    return f"{DRAW}.choice([{', '.join(map(_drawn, [args[0], *args[1:]]))}])"


STRATEGIES: dict[str, Callable[[Args, Options], str]] = {
    "integers": _integers,
    "floats": _floats,
    "text": _text,
    "lists": _lists,
    "one_of": _one_of,
    "booleans": lambda args, options: f"{DRAW}.choice([False, True])",
    "none": lambda args, options: "None",
    "just": lambda args, options: ast.unparse(args[0]),
    "sampled_from": lambda args, options: f"{DRAW}.choice(list({ast.unparse(args[0])}))",
    "tuples": lambda args, options: "(" + "".join(f"{_drawn(one)}, " for one in args) + ")",
}
"""Those that models write; `st.integers().map(...)` and the like are not among them."""


UNTRIED = 0.0
"""The trust of a generated check that nothing has been compared with yet."""
MOST_CHECKS = 24
"""A small model that has begun to list cases may never end."""
MOST_LOOKED_AT = 400
"""Tests of one reply, usable or not."""
MOST_CHARS = 2000
COMPOUND = (ast.For, ast.While, ast.If, ast.With, ast.Try)


@dataclass(frozen=True, kw_only=True)
class WrittenChecks:
    """What a tester's reply holds.

    Attributes:
        checks: Those that can be run, each once.
        dropped: Why others cannot, and how many of each.
    """

    checks: tuple[Check, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A statement that tests something, and the statements before it."""

    node: ast.stmt
    scope: Scope


@bounded
def checks_from_reply(
    reply: Reply, provenance: Provenance, entry_point: str | None, *, trust: float = UNTRIED
) -> WrittenChecks:
    """The checks of a reply: its asserts, and loops and blocks that hold one.

    Functions without parameters whose names begin with `test` count as if their bodies stood alone, and tests
    for hypothesis as loops over inputs of fixed seeds (see `given_properties`). Imports
    and definitions of the entry point are left out, so that a check never tests the tester's own code.

    Args:
        reply: What the tester wrote.
        provenance: The kind of tester that wrote them.
        entry_point: The function or class under test, which each check must use; any where not known.
        trust: How far each check is believed, in [0, 1].

    Raises:
        MalformedReply: No check can be used.
    """
    dropped: Counter[str] = Counter()
    checks: list[Check] = []
    for found in islice(_tests_in(_sources(reply, dropped), dropped), MOST_LOOKED_AT):
        setup = setup_for(found.node, found.scope, entry_point)
        why = _unusable(found, setup, entry_point)
        if why:
            dropped[why] += 1
            continue
        *before, last = map(ast.unparse, [*setup, found.node])
        checks.append(check_of(last, provenance, trust=trust, setup=before))
    usable = distinct(checks)
    if len(usable) > MOST_CHECKS:
        dropped["more than enough"] += len(usable) - MOST_CHECKS
    if not usable:
        reasons = "; ".join(f"{count}: {why}" for why, count in dropped.most_common(3))
        raise MalformedReply("the reply holds no usable assert" + (f" ({reasons})" if reasons else ""))
    return WrittenChecks(checks=usable[:MOST_CHECKS], dropped=dict(dropped))


def _sources(reply: Reply, dropped: Counter[str]) -> Iterator[ast.Module]:
    """The reply's blocks of code; of a block that does not parse, the lines that are asserts."""
    blocks = [block for block in fenced_blocks(reply.text) if block.may_be_code]
    texts = [(b.code, b.closed) for b in blocks] or [(reply.text, reply.finish != "length")]
    for text, whole in texts:
        tree = parsed(text if whole else sound_prefix(text))
        if tree is not None and (tree.body or not whole):
            if not whole:
                dropped["cut short"] += 1
            yield tree
            continue
        alone = [_alone(line, dropped) for line in lines_of(text) if line.lstrip().startswith("assert ")]
        yield ast.Module([node for node in alone if node is not None], [])


def _alone(line: str, dropped: Counter[str]) -> ast.stmt | None:
    tree = parsed(line.strip())
    if tree is None or len(tree.body) != 1:
        dropped["no Python"] += 1
        return None
    return tree.body[0]


def _tests_in(trees: Iterator[ast.Module], dropped: Counter[str]) -> Iterator[_Found]:
    above: Scope = ()
    for tree in trees:
        yield from _tests_of(tree.body, above, dropped)
        above = (*above, *tree.body)  # a second block may use the imports of the first


def _tests_of(body: Sequence[ast.stmt], above: Scope, dropped: Counter[str]) -> Iterator[_Found]:
    for at, node in enumerate(body):
        scope = (*above, *body[:at])
        if isinstance(node, ast.Assert) or (isinstance(node, COMPOUND) and _holds_assert(node)):
            yield _Found(node=node, scope=scope)
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            if is_given(node):
                loop = loop_of_given(node)
                if loop is None:
                    dropped["a hypothesis test that cannot be drawn without hypothesis"] += 1
                else:
                    yield from _tests_of([loop], (*above, *body), dropped)
            elif _needs_arguments(node) or node.decorator_list:
                dropped["a test with parameters"] += 1
            else:
                yield from _tests_of(node.body, (*above, *body), dropped)
        elif isinstance(node, ast.ClassDef) and node.name.lower().startswith("test"):
            dropped["a test class"] += 1


def _holds_assert(node: ast.stmt) -> bool:
    return any(isinstance(part, ast.Assert) for part in ast.walk(node))


def _needs_arguments(node: ast.FunctionDef) -> bool:
    given = node.args
    return bool(given.posonlyargs or given.args or given.kwonlyargs or given.vararg or given.kwarg)


def _unusable(found: _Found, setup: Sequence[ast.stmt], entry_point: str | None) -> str:
    """Why a test cannot be used; empty where it can."""
    node = found.node
    if not _is_short([*setup, node]):
        return "too long"
    if entry_point is None:
        calls = any(isinstance(part, ast.Call) for part in ast.walk(node))
        return "" if calls else "calls nothing"
    if entry_point not in read_names([*setup, node]):
        return "does not use what is tested"
    if any(isinstance(part, Definition) and part.name == entry_point for part in ast.walk(node)):
        return "defines what is tested"
    known = known_names([*setup, node]) | {entry_point}
    return "" if read_names([*setup, node]) <= known else "uses names that nothing defines"


def _is_short(nodes: Sequence[ast.stmt]) -> bool:
    try:
        return sum(len(ast.unparse(node)) for node in nodes) <= MOST_CHARS
    except RecursionError:  # a sum of a thousand terms nests a thousand deep
        return False


def mean_logprob(source: str, reply: Reply) -> float | None:
    """The mean natural logarithm of the probability of the tokens of a program's lines, as a reply has them.

    Args:
        source: The program; lines of it that the reply does not have, such as added ones, are passed over.
        reply: Where it was read from.

    Returns:
        Nats per token, at most 0; `None` where the provider did not tell, or no line is found.
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
