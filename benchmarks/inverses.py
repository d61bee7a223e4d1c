"""Of the bugs that mutation tools make, those whose original is among the search's proposals, by kind.

    python benchmarks/inverses.py [--files N] [--each N] [--seed N] [--show KIND]

The kinds are those that cosmic-ray and mutmut are known for. They are made here, of files of the running
Python's own standard library, drawn by seed; of each kind in each file a few. A bug counts as found where one
proposal near the changed line gives the original back, but for spaces, parentheses and the kind of quotes. No
test is run: this says what the operators can reach, not what a search finds in its time.
"""

from __future__ import annotations

import argparse
import ast
import random
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from suture.mutation import Edit, apply_edits, generate_mutants
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree, is_docstring, parse_python_tree

Made = Iterator[tuple[tuple[Edit, ...], str]]
"""Edits that make a bug, and what it is of its kind."""
SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
COMPARED = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
ORDERED = ("<", "<=", ">", ">=", "==", "!=", "is", "is not")


def _binary_sign(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        sign, other = SIGNS[type(node.op)], draw.choice(list(SIGNS.values()))
        yield from _sign(view, node.left, node.right, sign, other)


def _augmented_sign(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.AugAssign) and type(node.op) in SIGNS:
        sign, other = SIGNS[type(node.op)], draw.choice(("+", "-", "*", "/", "//", ""))
        yield from _sign(view, node.target, node.value, f"{sign}=", f"{other}=")


def _comparison(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sign = COMPARED[type(node.ops[0])]
        if sign not in ("in", "not in"):
            yield from _sign(view, node.left, node.comparators[0], sign, draw.choice(ORDERED))


def _membership(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)) and len(node.ops) == 1:
        sign = COMPARED[type(node.ops[0])]
        yield from _sign(view, node.left, node.comparators[0], sign, "in" if sign == "not in" else "not in")


def _sign(view: PythonTree, left: ast.expr, right: ast.expr, sign: str, other: str) -> Made:
    start, stop = view.span(left)[1], view.span(right)[0]
    at = view.raw[start:stop].find(sign.encode())
    if at >= 0 and sign != other and b"#" not in view.raw[start:stop]:
        edit = Edit(start=start + at, end=start + at + len(sign), text=other)
        yield (edit,), f"{sign} to {other}"


def _number(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, (int, float))
        and not isinstance(node.value, bool)
    ):
        value = node.value + draw.choice((1, -1))
        yield (view.replacement(node, repr(value)),), "by one"


def _boolean(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield (view.replacement(node, str(not node.value)),), f"{node.value} flipped"


def _text(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and not is_docstring(view.enclosing_statement(node))
    ):
        start, end = view.span(node)
        raw = view.raw[start:end].decode()
        if raw[:1] in "\"'" and not raw.startswith(('"""', "'''")) and len(raw) > 2 and "\n" not in raw:
            other = draw.choice((f"{raw[0]}XX{raw[1:-1]}XX{raw[-1]}", raw.upper(), raw.lower()))
            if other != raw and (raw.upper() == raw or "\\" not in raw):
                yield (Edit(start=start, end=end, text=other),), "XX" if "XX" in other else "case"


def _none_for_value(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.Assign) and view.text(node.value) != "None" and len(view.text(node.value)) < 60:
        yield (view.replacement(node.value, "None"),), "assigned"
    if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        yield (view.replacement(node.args[0], "None"),), "argument"


def _value_for_none(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
        yield (view.replacement(node.value, '""'),), "assigned"


def _left_out(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.Call) and len(node.args) > 1:
        start, end = view.span(node.args[-2])[1], view.span(node.args[-1])[1]
        yield (Edit(start=start, end=end, text=""),), "argument"
    if isinstance(node, ast.Call) and node.keywords and node.keywords[-1].arg:
        before = [*node.args, *(k.value for k in node.keywords[:-1])]
        if before:
            edit = Edit(start=view.span(before[-1])[1], end=view.span(node.keywords[-1])[1], text="")
            yield (edit,), "keyword argument"


def _loop_exit(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, (ast.Break, ast.Continue)):
        start, end = view.span(node)
        other = "continue" if isinstance(node, ast.Break) else "break"
        yield (Edit(start=start, end=end, text=other),), f"{view.text(node)} to {other}"
        if isinstance(node, ast.Break):
            yield (Edit(start=start, end=end, text="return"),), "break to return"


def _negation(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, (ast.If, ast.While)):
        inner = view.text(node.test)
        yield (view.replacement(node.test, f"not ({inner})"),), "added"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield (view.replacement(node, view.text(node.operand)),), "removed"


def _unary(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        yield (view.replacement(node, view.text(node.operand)),), "removed"
        if isinstance(node.op, ast.USub):
            start, _ = view.span(node)
            yield (Edit(start=start, end=start + 1, text=draw.choice("+~")),), "changed"


def _and_or(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.BoolOp) and len(node.values) == 2:
        signs = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        yield from _sign(view, node.values[0], node.values[1], *signs)


def _decorator(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, FUNCTIONS) and node.decorator_list:
        first = node.decorator_list[0]
        start = view.offset(first.lineno, 0)
        end = view.raw.find(b"\n", view.span(first)[1]) + 1
        yield (
            (Edit(start=start, end=end, text=""),),
            view.text(first).partition("(")[0].partition(".")[2] or view.text(first).partition("(")[0],
        )


def _exception(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name):
        yield (view.replacement(node.type, "CosmicRayTestingException"),), "unknown class"
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
        yield (view.replacement(node.exc.func, "ValueError"),), "raised"


def _no_iteration(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, ast.For) and len(view.text(node.iter)) < 60:
        yield (view.replacement(node.iter, "[]"),), "over []"


def _default(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    if isinstance(node, FUNCTIONS):
        for value in node.args.defaults[:2]:
            if isinstance(value, ast.Constant) and isinstance(value.value, (int, float)):
                other = str(not value.value) if isinstance(value.value, bool) else repr(value.value + 1)
                yield (view.replacement(value, other),), "changed"
            elif isinstance(value, ast.Constant) and value.value is None:
                yield (view.replacement(value, '""'),), "None to text"


def _method(node: ast.AST, view: PythonTree, draw: random.Random) -> Made:
    pairs = (
        ("lower", "upper"),
        ("strip", "lstrip"),
        ("find", "rfind"),
        ("split", "rsplit"),
        ("startswith", "endswith"),
    )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        for one, other in (*pairs, *(pair[::-1] for pair in pairs)):
            if node.func.attr == one:
                end = view.span(node.func)[1]
                yield (Edit(start=end - len(one), end=end, text=other),), f"{one} to {other}"


KINDS: dict[str, Callable[[ast.AST, PythonTree, random.Random], Made]] = {
    "binary sign": _binary_sign,
    "augmented sign": _augmented_sign,
    "comparison": _comparison,
    "in, not in": _membership,
    "number": _number,
    "boolean": _boolean,
    "text": _text,
    "None for a value": _none_for_value,
    "value for None": _value_for_none,
    "left out": _left_out,
    "loop exit": _loop_exit,
    "not": _negation,
    "unary": _unary,
    "and, or": _and_or,
    "decorator removed": _decorator,
    "exception": _exception,
    "no iteration": _no_iteration,
    "default": _default,
    "method": _method,
}


def plain(source: str) -> str:
    """A source without what does not count."""
    return "".join(source.replace('"', "'").split()).replace("(", "").replace(")", "").replace(",", "")


def is_found(broken: str, original: str, line: int) -> bool:
    """Whether a proposal near a line gives the original back."""
    wanted = plain(original)
    near = range(line - 2, line + 3)
    return any(plain(apply_edits(broken, m.edits)) == wanted for m in generate_mutants(broken, near))


def measure(files: int, each: int, seed: int, show: str) -> None:
    """Make bugs, look for their originals, and print the shares."""
    draw = random.Random(seed)
    paths = [
        p for p in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")) if 3000 < p.stat().st_size < 30_000
    ]
    made: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for path in draw.sample(paths, min(files, len(paths))):
        source = path.read_text("utf-8")
        view = parse_python_tree(source)
        if view is None:
            continue
        nodes = [
            n
            for n in ast.walk(view.module)
            if view.enclosing_function(n) is not None or isinstance(n, FUNCTIONS)
        ]
        for kind, make in KINDS.items():
            bugs = [bug for node in nodes if not _in_f_string(node, view) for bug in make(node, view, draw)]
            for edits, what in draw.sample(bugs, min(each, len(bugs))):
                broken = apply_edits(source, edits)
                if parse_python_tree(broken) is None:
                    continue
                good = is_found(broken, source, view.line_at(edits[0].start))
                made[kind] += 1
                found[kind] += good
                if show == kind and not good:
                    line = broken.splitlines()[view.line_at(edits[0].start) - 1]
                    print(f"  {path.name}: {what}: {line.strip()}")
    for kind in KINDS:
        if made[kind]:
            print(f"{kind:20} {found[kind]:4} of {made[kind]:4}  {100 * found[kind] / made[kind]:3.0f} %")
    print(f"{'all':20} {found.total():4} of {made.total():4}  {100 * found.total() / made.total():3.0f} %")


def _in_f_string(node: ast.AST, view: PythonTree) -> bool:
    return any(isinstance(parent, ast.JoinedStr) for parent in view.ancestors(node))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--show", default="", metavar="KIND")
    wanted = parser.parse_args()
    measure(wanted.files, wanted.each, wanted.seed, wanted.show)


if __name__ == "__main__":
    main()
