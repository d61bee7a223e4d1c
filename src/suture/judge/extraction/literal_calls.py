"""Read which calls the tests of JavaScript, TypeScript and Go make with literals.

A value may be in the call, in a declaration of the test, or in a table over which the test loops.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from suture.core.records import Language
from suture.judge.split.call_values import to_python_data
from suture.judge.tuning import MAX_EXPRESSION_CHARS, MAX_METHOD_CALLS, MAX_TABLE_ROWS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, function_name, get_field, walk
from suture.mutation.tree_sitter.value_kinds import CALLS, FUNCTIONS, MEMBERS, NUMBERS, STRINGS
from suture.project.languages import LANGUAGES, CallDriver
from suture.project.python_source.parsing import PARSE_FAULTS

if TYPE_CHECKING:
    from tree_sitter import Node


Arguments = tuple[Any, ...]
Row = dict[str, str]
"""Name of a field or variable -> source of its value."""
DECLARATIONS = ("variable_declarator", "short_var_declaration", "var_spec", "const_spec")


def find_literal_calls(
    tests: Mapping[str, str], language: Language, driver: CallDriver
) -> dict[str, list[Arguments]]:
    """Return name of a function -> the arguments of the tests' calls that are plain data, each once.

    Args:
        tests: Path -> text of the tests in this language.
    """
    calls: dict[str, dict[str, Arguments]] = {}  # name -> source of the arguments -> arguments
    for path, text in tests.items():
        tree = SyntaxTree(text, path, language)
        for node in walk(tree.root):
            callee, argument_list = get_field(node, "function"), get_field(node, "arguments")
            if node.type not in CALLS or callee is None or argument_list is None:
                continue
            name = tree.text(get_field(callee, "property", "field") or callee)
            for source in (tree.text(argument_list)[1:-1], *expand_table_rows(tree, argument_list)):
                arguments = read_plain_literals(source, driver)
                if arguments:
                    calls.setdefault(name, {}).setdefault(source, arguments)
    return {name: list(by_source.values()) for name, by_source in calls.items()}


def read_plain_literals(text: str, driver: CallDriver) -> Arguments | None:
    """Return literals that are separated by commas as plain data; `None` if one is not a literal."""
    values = driver.read_literals(text)
    if values is None:
        return None
    with suppress(ValueError):
        return tuple(to_python_data(value, statically_typed=driver.statically_typed) for value in values)
    return None


def list_function_literals(text: str, path: str, language: Language, name: str) -> list[object]:
    """Return the number and string literals in the functions of a file that have a given name."""
    tree, driver = SyntaxTree(text, path, language), LANGUAGES[language].calls
    assert driver is not None
    named = (node for node in walk(tree.root) if node.type in FUNCTIONS)
    found = [node for node in named if (own := function_name(node)) is not None and tree.text(own) == name]
    parts = (part for node in found for part in walk(node) if part.type in (*NUMBERS, *STRINGS))
    return [value for part in parts for value in read_plain_literals(tree.text(part), driver) or ()]


def expand_table_rows(tree: SyntaxTree, argument_list: Node) -> list[str]:
    """Return the arguments of a call with values in place of fields and variables, once for each row of a table.

    Tests loop over tables of structs, objects or lists, and call `f(c.in)`, where `c` is a row, or `f(a, b)`.
    """
    arguments = argument_list.named_children
    names = {tree.text(name) for argument in arguments if (name := _row_name(argument)) is not None}
    test = outer = tree.enclosing_function(argument_list)
    while outer is not None:
        test, outer = outer, tree.enclosing_function(outer)
    for scope in (
        (test, tree.root) if names else ()
    ):  # a test's own table comes before one with the same names
        all_rows = tree.cached(f"rows {scope.id}", partial(_list_rows, scope)) if scope is not None else []
        rows = [row for row in all_rows if names <= row.keys()]
        if rows:
            return [
                ", ".join(_fill_in(tree, argument, row) for argument in arguments)
                for row in rows[:MAX_TABLE_ROWS]
            ]
    return []


def _row_name(argument: Node) -> Node | None:
    """Return the field in an argument such as `c.in`, or the variable that is the argument."""
    owner = get_field(argument, "operand", "object")
    if argument.type in MEMBERS and owner is not None and owner.type == "identifier":
        return get_field(argument, "field", "property")
    return argument if argument.type == "identifier" else None


def _fill_in(tree: SyntaxTree, argument: Node, row: Row) -> str:
    """Return the source of an argument, with the row's value in place of each field or variable."""
    name = _row_name(argument)
    return row[tree.text(name)] if name is not None else tree.text(argument)


def _list_rows(scope: Node, tree: SyntaxTree) -> list[Row]:
    """Return the rows of the tables of a scope; the last one has only what the scope declares once."""
    declared: dict[str, list[Node]] = {}
    for node in walk(scope):
        name, value = get_field(node, "name", "left"), get_field(node, "value", "right")
        if node.type in DECLARATIONS and name is not None and value is not None:
            declared.setdefault(tree.text(name), []).append(value)
    constants = {name: values[0] for name, values in declared.items() if len(values) == 1}
    shared = {name: tree.text(value) for name, value in constants.items()}
    rows = [
        {**shared, **row}
        for node in walk(scope)
        for row in (*_rows_of_literal(tree, node), *_rows_of_loop(tree, node, constants))
    ]
    return [*rows, shared]


def _rows_of_literal(tree: SyntaxTree, node: Node) -> Iterator[Row]:
    """Yield the rows of a table such as `[]struct{ in, out int }{{1, 2}}`, a map of structs, or `[{ in: 1 }]`."""
    table_type, body = get_field(node, "type"), get_field(node, "body")
    if node.type == "array":
        yield from (
            _row_values(tree, element, []) for element in node.named_children if element.type == "object"
        )
    if node.type != "composite_literal" or table_type is None or body is None:
        return
    names = _struct_fields(tree, get_field(table_type, "element", "value"))
    for element in body.named_children if names else ():
        row = _unwrap(element.named_children[-1] if element.type == "keyed_element" else element)
        if row.type == "literal_value":
            yield _row_values(tree, row, names)


def _rows_of_loop(tree: SyntaxTree, node: Node, constants: Mapping[str, Node]) -> Iterator[Row]:
    """Yield the rows of a loop over lists or single values.

    Such loops are `for (const [a, b] of [[1, 2]])`, `[[1, 2]].forEach(([a, b]) => ...)`, `each([[1, 2]])("", (a, b) =>
    ...)` and `for a, b := range map[int]int{1: 2}`.
    """
    names, table = _read_callback_loop(node) if node.type == "call_expression" else (
        get_field(node, "left"), get_field(node, "right")
    )  # fmt: skip
    if (
        names is None
        or table is None
        or node.type not in ("call_expression", "for_in_statement", "range_clause")
    ):
        return
    table = constants.get(tree.text(table), table)
    while table.type == "expression_list" and table.named_child_count == 1:
        table = table.named_children[0]
    table = get_field(table, "body") or table
    words = [tree.text(part) for part in walk(names) if part.type == "identifier"]
    for at, element in enumerate(table.named_children):
        if node.type == "range_clause" and element.type != "keyed_element":
            yield dict(zip(words, (str(at), tree.text(element)), strict=False))
        elif element.type in ("array", "keyed_element"):
            yield dict(zip(words, map(tree.text, element.named_children), strict=False))
        elif len(words) == 1:
            yield {words[0]: tree.text(element)}


def _read_callback_loop(call: Node) -> tuple[Node | None, Node | None]:
    """Return the parameters of a callback, and the table whose rows it gets."""
    callee, arguments = get_field(call, "function"), get_field(call, "arguments")
    callback = arguments.named_children[-1] if arguments is not None and arguments.named_child_count else None
    if callee is None or callback is None or callback.type not in FUNCTIONS:
        return None, None
    given = get_field(callee, "arguments")  # of `each`
    table = (
        given.named_children[0]
        if given is not None and given.named_child_count
        else get_field(callee, "object")
    )
    return get_field(callback, "parameters", "parameter"), table


def _unwrap(element: Node) -> Node:
    while element.type == "literal_element" and element.named_child_count == 1:
        element = element.named_children[0]
    return element


def _row_values(tree: SyntaxTree, row: Node, names: list[str]) -> Row:
    """Return field -> source of its value, for a struct such as `{1, 2}` or `{in: 1, out: 2}`, or an object."""
    elements = [element for element in row.named_children if element.type != "comment"]
    if all(element.type in ("keyed_element", "pair") for element in elements):
        return {tree.text(e.named_children[0]): tree.text(e.named_children[-1]) for e in elements}
    # In a file that does not compile, the numbers of values and fields may differ.
    return dict(zip(names, map(tree.text, elements), strict=False))


def _struct_fields(tree: SyntaxTree, struct: Node | None) -> list[str]:
    """Return the names of a struct's fields in order; a named struct must be declared in the file."""
    if struct is not None and struct.type == "type_identifier":
        specs = (node for node in walk(tree.root) if node.type == "type_spec")
        matching_specs = (spec for spec in specs if tree.text(spec.named_children[0]) == tree.text(struct))
        struct = get_field(spec, "type") if (spec := next(matching_specs, None)) is not None else None
    if struct is None or struct.type != "struct_type":
        return []
    declared = (node for node in walk(struct) if node.type == "field_declaration")
    return [tree.text(name) for node in declared for name in node.children_by_field_name("name")]


WORD_LITERALS = {"true": "True", "false": "False", "none": "None", "null": "None"}
"""Words that people write for a value, in any case -> the literal of Python."""
WORD_RE = re.compile(r"(true|false|none|null)\b", re.IGNORECASE)
VALUE_END_RE = re.compile(
    r"""[ \t]*(?:$|\n|\#|//|\(|--|["']{3}|[.;!](?:\s|$)|,?[ ](?:and|but|because|since)\b)"""
)
"""Matches what may follow a value: the end of the line, a comment, the end of the sentence or a conjunction."""
# The longest arguments, 200 characters, are chosen by judgement; not measured.
NEXT_EXAMPLE_RE = re.compile(
    r",[ \t]*`?[A-Za-z_][\w.]*\([^\n]{0,200}?\)`?[ \t]*(?:==?|->|=>|→|returns?\b|gives?\b|is\b|should\b|must\b)"
)
EQUALS_RE = re.compile(r"[ \t]*={1,2}[ \t]*(?!>)")
METHOD_CALL_RE = re.compile(r"\.\w+\(")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
LITERAL_NODES = (
    ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.USub, ast.UAdd,
    ast.BinOp, *OPERATORS, ast.Load,
)  # fmt: skip


def _parse_expression(source: str) -> ast.Expression | None:
    try:
        return ast.parse(source.strip(), mode="eval")
    except PARSE_FAULTS:
        return None


def is_literal(node: ast.AST) -> bool:
    """Whether an expression consists of constants, containers and arithmetic; `set()` counts too."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            if not (
                isinstance(part.func, ast.Name) and part.func.id in ("set", "frozenset") and not part.keywords
            ):
                return False
        elif isinstance(part, ast.Name):
            if part.id not in ("set", "frozenset"):
                return False
        elif isinstance(part, ast.BinOp):
            numbers = (side for side in (part.left, part.right) if isinstance(side, ast.Constant))
            if not all(isinstance(side.value, (int, float, complex)) for side in numbers):
                return False
        elif not isinstance(part, LITERAL_NODES):
            return False
    return True


def evaluate_literal(source: str) -> Any:
    """Return the value of a literal.

    Raises:
        ValueError: The literal has no value, for example because of a division by zero or an unhashable key.
    """
    try:
        return eval(source, {"__builtins__": {}, "set": set, "frozenset": frozenset})
    except (ArithmeticError, TypeError, SyntaxError, NameError) as fault:
        raise ValueError(str(fault)) from fault


def find_literal(text: str, start: int, closing: str = "") -> tuple[str, int] | None:
    """Return the literal that begins at a position in some text.

    Args:
        closing: What must directly follow the literal, such as the backtick that ends code.

    Returns:
        (source, end): the literal's source and the position after it. `None` if there is none, or if the
        text that follows makes it doubtful.
    """
    word = WORD_RE.match(text, start)
    if word:
        end = word.end() + len(closing)
        is_followed_well = text.startswith(closing, word.end()) and VALUE_END_RE.match(text, end)
        return (WORD_LITERALS[word[0].lower()], word.end()) if is_followed_well else None
    # Parsing comes last and stops at the next example, because many examples on one line would be slow.
    next_example = NEXT_EXAMPLE_RE.search(text, start, start + MAX_EXPRESSION_CHARS)
    limit = next_example.start() if next_example else len(text)
    for end in list_literal_ends(text, start):
        if end > limit or not _may_end(text, end, closing):
            continue
        source = text[start:end]
        if re.search(r"\d\.\s*$", source):
            continue  # the dot ends the sentence and is not a decimal point
        tree = _parse_expression(source)
        # Values without brackets, such as `1, 2`, may be an enumeration and not a tuple.
        if tree is None or not is_literal(tree) or (isinstance(tree.body, ast.Tuple) and source[0] != "("):
            continue
        literal = source.strip() if source[0] == "(" else ast.unparse(tree)
        return (literal, end) if _is_followed_well(text, source, end + len(closing)) else None
    return None


def _may_end(text: str, end: int, closing: str) -> bool:
    """Return whether the text after a position lets a value end there."""
    behind = end + len(closing)
    if not text.startswith(closing, end):
        return False
    return any(pattern.match(text, behind) for pattern in (VALUE_END_RE, EQUALS_RE, NEXT_EXAMPLE_RE))


def list_literal_ends(text: str, start: int) -> list[int]:
    """Return the positions where a literal could end, longest first; further lines only inside brackets."""
    depth = 0
    quote = ""
    ends: list[int] = []
    position = start
    limit = min(len(text), start + MAX_EXPRESSION_CHARS)
    while position < limit:
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif char == "\n" and not depth:
            break
        position += 1
        if not depth and not quote:
            ends.append(position)
    return ends[::-1]


def _is_followed_well(text: str, source: str, end: int) -> bool:
    """Return whether the text after a literal, or the same value written in another way, ends the example."""
    if VALUE_END_RE.match(text, end) or NEXT_EXAMPLE_RE.match(text, end):
        return True
    equals = EQUALS_RE.match(text, end)  # as in `f(2) -> 1 + 1 = 2`
    second_literal = find_literal(text, equals.end()) if equals else None
    if second_literal is None:
        return False
    try:
        return bool(evaluate_literal(source.strip()) == evaluate_literal(second_literal[0]))
    except ValueError:
        return False


def find_call(text: str, start: int) -> tuple[ast.Call, int] | None:
    """Return (call, end): the call at a position in some text, with the method calls after it, and its end."""
    end = _find_closing_bracket(text, text.index("(", start))
    for _ in range(MAX_METHOD_CALLS):
        method = METHOD_CALL_RE.match(text, end) if end is not None else None
        if method is None:
            break
        end = _find_closing_bracket(text, method.end() - 1)
    tree = _parse_expression(text[start:end]) if end is not None else None
    return (tree.body, end) if tree and end is not None and isinstance(tree.body, ast.Call) else None


def _find_closing_bracket(text: str, opening: int) -> int | None:
    """Return the position after the bracket that closes the one at a position."""
    return next((end for end in reversed(list_literal_ends(text, opening)) if text[end - 1] == ")"), None)
