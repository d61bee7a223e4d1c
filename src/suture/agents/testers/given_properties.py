"""A test for hypothesis as a loop over inputs that are drawn with fixed seeds.

Generated tests are judged by a program of ours behind the wall, where hypothesis is not installed. What its
common strategies mean can be drawn without it: the same inputs each time, and a bounded number of them. What
is lost is its search for small failing inputs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

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
