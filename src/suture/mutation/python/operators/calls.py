"""Changes calls: arguments, and a missing or superfluous call around a value. Also initial values and generators.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from suture.mutation.changes import Change, insert_text, replace_span, shorten
from suture.mutation.python.python_tree import ATOMS, PythonOperator, PythonTree, is_read, replace_with
from suture.mutation.python.scope_names import ValueKind, guess_kind
from suture.mutation.tuning import MAX_CONVERSIONS, MAX_SWAPPED_ARGUMENTS
from suture.project.python_source.statement_edits import is_docstring

WRAPPERS: dict[ValueKind, tuple[str, ...]] = {
    "number": ("abs", "int", "str", "float", "round"),
    "sequence": ("list", "sorted", "set", "len", "reversed", "tuple", "sum"),
    "text": ("list", "len", "int", "str", "sorted", "repr"),
    "set": ("list", "sorted", "len"),
    "mapping": ("list", "dict", "sorted", "len"),
    "callable": (),
    "unknown": ("list", "len", "abs", "sorted", "str", "int", "set", "tuple"),
}
"""Kind of value -> builtins that may be missing around it, the likeliest first. Chosen by judgement."""
WRAPPABLE_PARENTS = (
    ast.Return, ast.Assign, ast.AugAssign, ast.Compare, ast.Call, ast.For, ast.BinOp, ast.keyword,
)  # fmt: skip
"""Parents whose children may lack a call around them."""
FORGOTTEN_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "open": ("encoding='utf-8'", "newline=''", "'rb'", "mode='rb'", "errors='replace'"),
    **dict.fromkeys(("read_text", "write_text"), ("encoding='utf-8'",)),
    **dict.fromkeys(("split", "rsplit"), ("1", "maxsplit=1")),
    **dict.fromkeys(("decode", "encode"), ("'utf-8'", "errors='replace'", "errors='ignore'")),
    **dict.fromkeys(("getattr", "next", "pop", "get"), ("None", "''", "()", "False", "{}", "[]")),
    **dict.fromkeys(("compile", "match", "search", "sub"), ("re.DOTALL", "re.IGNORECASE", "re.S", "re.I")),
    **dict.fromkeys(("parse_qs", "parse_qsl"), ("keep_blank_values=True",)),
}  # fmt: skip
"""Function or method -> arguments that are often forgotten."""
EXTENSIBLE = ("round", "int", "sorted", "sum", "pow", "range", "get", "pop", "zip")
"""Builtins and methods whose further argument, a variable or a number, is often forgotten."""
FORMS = (
    "str({})", "list({})", "bool({})", "{}.strip()", "{}.lower()", "{}.copy()", "{} or None", "{} or ''", "{} or []",
    "{} or {{}}", "{} or 0", "float({})", "{}.upper()", "{}.rstrip()", "{}.lstrip()",
)  # fmt: skip
"""Forms in which a value may be meant, and defaults for an empty one: those that fixes in the tuning half of
`benchmarks/real_fixes.py` use, and similar ones."""
NOT_CONVERSIONS = ("print", "len", "super", "isinstance", "type", "iter", "next", "hasattr", "range")
"""Functions of one argument whose result is not a converted form of it."""
CONVERTIBLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.BoolOp, ast.Compare)
NOT_RETURNED = (ast.Yield, ast.YieldFrom, ast.Await, ast.Starred)
"""Expressions that are complete statements, so that no `return` is missing before them."""


def _change_arguments(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Swap two arguments, or drop one."""
    assert isinstance(node, ast.Call)
    arguments = node.args
    if len(arguments) <= MAX_SWAPPED_ARGUMENTS:
        for (left_index, left), (right_index, right) in combinations(enumerate(arguments), 2):
            left_text, right_text = tree.text(left), tree.text(right)
            if left_text != right_text:
                edits = (tree.replacement(left, right_text), tree.replacement(right, left_text))
                note = f"arguments {left_text} and {right_text} are swapped"
                yield Change(edits=edits, note=note, weight=1.0 if right_index == left_index + 1 else 0.7)
    yield from _drop_argument(node, tree)


def _drop_argument(node: ast.Call, tree: PythonTree) -> Iterator[Change]:
    """Drop an argument with its comma and parentheses: a keyword, or any where there are no keywords."""
    arguments = sorted([*node.args, *node.keywords], key=tree.span)
    # The span of an argument has no parentheses, so its place is the part between two commas.
    commas = [tree.raw.index(b",", tree.span(argument)[1]) for argument in arguments[:-1]]
    ends = [*commas, tree.span(node)[1] - 1]
    for index, argument in enumerate(arguments):
        start, end = ends[index - 1], ends[index]
        if not index:
            start = tree.raw.index(b"(", tree.span(node.func)[1]) + 1
            while tree.raw[end : end + 1] in (b",", b" "):
                end += 1
        if isinstance(argument, ast.keyword):
            yield replace_span(start, end, "", f"{shorten(tree.text(argument))} is dropped", 0.2)
        elif not node.keywords:
            yield replace_span(start, end, "", f"argument {tree.text(argument)} is dropped", 0.4)


def _add_argument(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add an argument, where the called function takes more, or is a builtin that may."""
    assert isinstance(node, ast.Call)
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    callee = tree.functions.get(name)
    end, forgotten = tree.span(node)[1] - 1, FORGOTTEN_ARGUMENTS.get(name, ())
    # The new comma must not follow a trailing one.
    if tree.raw[end : end + 1] != b")" or tree.raw[:end].rstrip().endswith(b","):
        return
    separator = ", " if node.args or node.keywords else ""
    for text in forgotten if not any(isinstance(a, ast.GeneratorExp) for a in node.args) else ():
        is_passed = any(text.startswith(f"{keyword.arg}=") for keyword in node.keywords)
        if not is_passed and ("=" in text or not node.keywords):
            yield insert_text(end, f"{separator}{text}", f"{name}() also gets {text}", 0.3)
    if callee is None and name not in EXTENSIBLE:
        return
    if node.keywords or (callee is not None and len(node.args) >= len(callee.args.args)):
        return  # a positional argument must not follow keywords
    names = tree.scope_names(node)
    argument_texts = {tree.text(argument) for argument in node.args}
    if node.args and isinstance(node.args[-1], ast.GeneratorExp):
        return  # the generator expression shares its parentheses with the call
    variables = names.fitting("unknown", tree.enclosing_statement(node).lineno)
    for other, fit in [*variables, ("0", 0.5), ("1", 0.5), ("2", 0.4)]:
        if other not in argument_texts:
            text = f", {other}" if node.args else other
            yield insert_text(end, text, f"{name}() also gets {other}", fit)


def _wrap_in_call(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Wrap a value in a call, or copy it."""
    assert isinstance(node, ast.expr)
    if not isinstance(tree.parent(node), WRAPPABLE_PARENTS) or not is_read(node):
        return
    if tree.is_called(node) or (isinstance(node, ast.Name) and node.id in tree.functions):
        return
    text, kind = tree.text(node), guess_kind(node, tree.scope_names(node))
    for rank, name in enumerate(WRAPPERS[kind]):
        if not text.startswith(f"{name}("):
            weight = (1.0 if kind != "unknown" else 0.7) - 0.08 * rank
            yield replace_with(tree, node, f"{name}({text})", weight)
    if kind in ("sequence", "set", "mapping", "unknown") and isinstance(node, (ast.Name, ast.Attribute)):
        yield replace_with(tree, node, f"{text}.copy()", 0.7)
    if kind in ("number", "unknown"):
        for bound in ("max(0, {})", "min(0, {})", "max(1, {})"):
            yield replace_with(tree, node, bound.format(text), 0.7 if "0" in bound else 0.4)


def _convert(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Convert a value in a way that the file uses or in a common one, or give it a default."""
    assert isinstance(node, ast.expr)
    parent, text = tree.parent(node), tree.text(node)
    if not is_read(node) or tree.is_called(node) or isinstance(parent, ast.Expr) or node in tree.annotations:
        return
    for rank, form in enumerate(dict.fromkeys((*tree.cached("conversions", _used_conversions), *FORMS))):
        fits = form.endswith(")") or not isinstance(parent, ast.Attribute)
        if fits and (form.endswith("({})") or isinstance(node, ATOMS)):
            yield replace_with(tree, node, form.format(text), 0.98**rank)


def _used_conversions(tree: PythonTree) -> list[str]:
    """Return the calls of one argument, and of methods without, that the file makes most often."""
    forms: Counter[str] = Counter()
    for node in tree.nodes:
        if isinstance(node, ast.Call) and not node.keywords and not isinstance(tree.parent(node), ast.Expr):
            name = tree.text(node.func)
            if len(node.args) == 1 and name.replace(".", "").isidentifier() and name not in NOT_CONVERSIONS:
                forms[f"{name}({{}})"] += 1
            elif isinstance(node.func, ast.Attribute) and not node.args:
                forms[f"{{}}.{node.func.attr}()"] += 1
    return [form for form, _ in forms.most_common(MAX_CONVERSIONS)]


def _unwrap_call(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace a call with an argument or its receiver; but a function usually calls itself on purpose."""
    assert isinstance(node, ast.Call)
    function = tree.enclosing_function(node)
    is_recursive = function is not None and tree.text(node.func).rpartition(".")[2] == function.name
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            weight = 1.0 if len(node.args) == 1 else 0.6
            yield replace_with(tree, node, tree.text(argument), 0.4 * weight if is_recursive else weight)
    if isinstance(node.func, ast.Attribute):
        yield replace_with(tree, node, tree.text(node.func.value), 0.6)


def _accumulate(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Combine with the previous value: `best = max(best, x)`, `total += x`, `d[k].append(x)`."""
    assert isinstance(node, ast.Assign)
    if len(node.targets) != 1 or isinstance(node.targets[0], (ast.Tuple, ast.List)):
        return
    target, value = tree.text(node.targets[0]), tree.text(node.value)
    kind = guess_kind(node.value, tree.scope_names(node))
    if kind in ("number", "unknown"):
        for name in ("max", "min"):
            yield replace_with(tree, node.value, f"{name}({target}, {value})", 1.0)
    start, end = tree.span(node)
    sign = tree.raw.find(b"=", tree.span(node.targets[0])[1])
    for other, weight in (("+=", 0.8), ("-=", 0.45), ("*=", 0.3)):
        yield replace_span(sign, sign + 1, other, f"= becomes {other} in {shorten(tree.text(node))}", weight)
    if isinstance(node.value, ast.UnaryOp) and isinstance(node.value.op, (ast.UAdd, ast.USub)):
        unary_sign = "+" if isinstance(node.value.op, ast.UAdd) else "-"  # `x =+ 1`
        text = f"{target} {unary_sign}= {tree.text(node.value.operand)}"
        yield replace_span(start, end, text, text)
    if isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
        text = f"{value} = {target}"
        yield replace_span(start, end, text, f"{text} instead of the reverse", 0.4)
    weight = 0.8 if isinstance(node.targets[0], ast.Subscript) and kind != "number" else 0.3
    for method in ("update", "append", "extend", "add"):
        text = f"{target}.{method}({value})"
        yield replace_span(start, end, text, f"{target} = becomes .{method}()", weight)


def _change_initial_value(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Start from another value: an empty literal that should hold something, or the reverse."""
    texts: list[tuple[str, float]] = []
    if isinstance(node, ast.List) and isinstance(node.ctx, ast.Load):
        if node.elts:
            texts += [("[]", 0.7), (f"[{tree.text(node)}]", 0.4)]
        else:
            variables = tree.scope_names(node).fitting("unknown", tree.enclosing_statement(node).lineno)
            texts += [("[[]]", 0.9), *((f"[{name}]", fit) for name, fit in variables)]
            texts += [("[0]", 0.5), ("None", 0.3), ("{}", 0.3), ("set()", 0.4)]
    elif isinstance(node, ast.Dict) and not node.keys:
        texts += [("[]", 0.5), ("set()", 0.5), ("None", 0.3)]
    elif isinstance(node, ast.Constant) and node.value is None:
        texts += [("[]", 0.6), ("0", 0.5), ("{}", 0.4), ("False", 0.4), ("''", 0.4)]
        texts += [(name, 0.5) for name in tree.scope_names(node).parameters]
    elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
        first, second = (tree.text(element) for element in node.elts)
        edits = (tree.replacement(node.elts[0], second), tree.replacement(node.elts[1], first))
        yield Change(edits=edits, note=f"{first} and {second} are swapped", weight=0.8)
    if isinstance(node, ast.expr):
        for text, weight in texts:
            yield replace_with(tree, node, text, weight)


def _change_generator(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Switch `yield` and `yield from`, or add or remove an `await`."""
    if isinstance(node, ast.Yield) and node.value is not None:
        yield replace_with(tree, node, f"yield from {tree.text(node.value)}")
        if isinstance(node.value, ast.Call):
            for argument in node.value.args:
                yield replace_with(tree, node, f"yield {tree.text(argument)}")
    elif isinstance(node, ast.YieldFrom):
        yield replace_with(tree, node, f"yield {tree.text(node.value)}")
    elif isinstance(node, ast.Await):
        yield replace_with(tree, node, tree.text(node.value), 0.5)
    elif isinstance(node, ast.Call):
        is_awaited = isinstance(tree.parent(node), ast.Await)
        if isinstance(tree.enclosing_function(node), ast.AsyncFunctionDef) and not is_awaited:
            yield replace_with(tree, node, f"(await {tree.text(node)})")


def _change_return(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Return a value that is only computed, or do not return one yet."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):  # `x == 1` where `x = 1` is meant
        yield from _turn_into_assignment(node.value, tree)
    if isinstance(node, ast.Expr) and not isinstance(node.value, NOT_RETURNED) and not is_docstring(node):
        start, text = tree.span(node)[0], tree.text(node)
        callee = node.value.func if isinstance(node.value, ast.Call) else None
        is_method = isinstance(callee, ast.Attribute)  # a method is often called only for its effect
        yield insert_text(start, "return ", f"{text} is returned", 0.5 if is_method else 1.0)
        if isinstance(callee, ast.Attribute):
            yield insert_text(start, f"{tree.text(callee.value)} = ", f"{text} is assigned back", 0.7)
    elif isinstance(node, ast.Return) and node.value is not None:
        start, value_start = tree.span(node)[0], tree.span(node.value)[0]
        yield replace_span(start, value_start, "", f"{tree.text(node)} no longer returns", 0.3)


def _turn_into_assignment(node: ast.Compare, tree: PythonTree) -> Iterator[Change]:
    """Turn a comparison used as a statement into an assignment."""
    if len(node.ops) == 1 and isinstance(node.left, (ast.Name, ast.Attribute, ast.Subscript)):
        start, end = tree.span(node.left)[1], tree.span(node.comparators[0])[0]
        yield replace_span(start, end, " = ", f"{shorten(tree.text(node))} becomes an assignment")


VALUES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.List, ast.GeneratorExp)
"""Expressions that may need a call around them."""
OPERATORS = (
    PythonOperator(name="arguments", nodes=(ast.Call,), changes=_change_arguments),
    PythonOperator(name="missing_argument", nodes=(ast.Call,), changes=_add_argument),
    PythonOperator(name="conversion", nodes=CONVERTIBLE, changes=_convert),
    PythonOperator(name="wrap_in_call", nodes=VALUES, changes=_wrap_in_call),
    PythonOperator(name="unwrap_call", nodes=(ast.Call,), changes=_unwrap_call),
    PythonOperator(name="accumulation", nodes=(ast.Assign,), changes=_accumulate),
    PythonOperator(
        name="initial_value",
        nodes=(ast.List, ast.Dict, ast.Constant, ast.Tuple),
        changes=_change_initial_value,
    ),
    PythonOperator(
        name="generator", nodes=(ast.Yield, ast.YieldFrom, ast.Await, ast.Call), changes=_change_generator
    ),
    PythonOperator(name="return_value", nodes=(ast.Expr, ast.Return), changes=_change_return),
)
