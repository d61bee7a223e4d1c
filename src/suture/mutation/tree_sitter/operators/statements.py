"""Statements: one too many, one that lacks, one that stands in the wrong place; a missing guard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.edits import Edit
from suture.mutation.changes import Change, shorten
from suture.mutation.tree_sitter.grammars import BLOCKS, FUNCTIONS, LOOPS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

SIMPLE = (
    *("expression_statement", "assignment_statement", "inc_statement", "dec_statement", "return_statement"),
    *("break_statement", "continue_statement"),
)
DECLARATIONS = ("lexical_declaration", "variable_declaration", "short_var_declaration", "var_declaration")
ENDS = ("return_statement", "break_statement", "continue_statement", "throw_statement")
HEADS = {"for_clause", "range_clause"}
NEAR = 4
"""Statements in each direction past which one is moved."""
MOST_COPIED = 8
MOST_NAMES = 6


def _goes(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A statement that is too many; a condition or a loop around statements that is."""
    if not view.is_statement(node) or node.type in (*DECLARATIONS, *FUNCTIONS):
        return
    start, end = _lines(node, view)
    yield Change(edits=(Edit(start=start, end=end, text=""),), note=f"without {shorten(view.text(node))}")
    body = get_field(node, "consequence") if node.type == "if_statement" else None
    if body is not None and get_field(node, "alternative") is None:
        inner = view.text(body).removeprefix("{").removesuffix("}").strip()
        edit = Edit(start=node.start_byte, end=node.end_byte, text=inner)
        yield Change(edits=(edit,), note="without its condition", weight=0.8)


def _moves(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """Two neighbours exchanged."""
    if not view.is_statement(node) or node.type not in (*SIMPLE, *DECLARATIONS, "if_statement"):
        return
    after = node.next_named_sibling
    if after is not None and view.is_statement(after):
        swapped = (
            Edit(start=node.start_byte, end=node.end_byte, text=view.text(after)),
            Edit(start=after.start_byte, end=after.end_byte, text=view.text(node)),
        )
        yield Change(edits=swapped, note=f"{shorten(view.text(node))} one line later", weight=0.8)
    yield from _further(node, view)


def _further(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A statement a little further on or back, or at an end of its block."""
    assert node.parent is not None, "a statement stands in a block"
    block = [other for other in node.parent.named_children if view.is_statement(other)]
    at = next(number for number, other in enumerate(block) if is_same_node(other, node))
    last, own, text = len(block) - 1, _lines(node, view), view.text(node)
    gone = Edit(start=own[0], end=own[1], text="")
    places = (*range(at + 2, at + 2 + NEAR), last, *range(at - 2, at - 2 - NEAR, -1), 0)
    for to in dict.fromkeys(to for to in places if 0 <= to <= last and abs(to - at) > 1):
        other, behind = block[to], to > at
        if (other if behind else node).type in ENDS:
            continue  # what comes behind it would never run
        indent = view.indent(other)
        place = other.end_byte if behind else other.start_byte
        put = Edit(start=place, end=place, text=f"\n{indent}{text}" if behind else f"{text}\n{indent}")
        note = f"{shorten(text)} {'behind' if behind else 'before'} {shorten(view.text(other))}"
        yield Change(edits=(gone, put), note=note, weight=0.4)


def _rehung(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """The statement leaves its block, or enters the one before it."""
    if not view.is_statement(node) or node.type not in (*SIMPLE, *DECLARATIONS, "if_statement"):
        return
    before = node.prev_named_sibling
    start, end = _lines(node, view)
    gone = Edit(start=start, end=end, text="")
    around = _statement_around(node, view)
    if around is not None and node.type not in DECLARATIONS:
        text = f"\n{view.indent(around)}{view.text(node)}"
        put = Edit(start=around.end_byte, end=around.end_byte, text=text)
        if gone.end <= put.start:
            note = f"{shorten(view.text(node))} behind the block"
            yield Change(edits=(gone, put), note=note, weight=1.0 if node.type in ENDS else 0.8)
    if before is not None and before.type in (*LOOPS, "if_statement"):
        inner = _last_block(before)
        if inner is not None:
            put = Edit(start=inner.end_byte - 1, end=inner.end_byte - 1, text=f"  {view.text(node)}\n")
            yield Change(edits=(put, gone), note=f"{shorten(view.text(node))} into the block", weight=0.7)


def _guard(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A base case, or a guard against nothing and empty, at the start of a function."""
    body, taken = get_field(node, "body"), get_field(node, "parameters", "parameter")
    if node.type not in FUNCTIONS or body is None or taken is None or not view.text(body).startswith("{"):
        return
    names = [view.text(n) for n in walk(taken) if n.type == "identifier"]
    equal = view.grammar.equal[0]
    returned = _own_answers(node, view)
    for name in names[:4]:
        length = view.grammar.length.format(name)
        tests = (f"{length} {equal} 0", f"{name} <= 0", f"{name} {equal} 0", f"{name} <= 1")
        for test in (*tests, f"{name} {equal} {view.grammar.nothing}", f"{length} < 2", f"!{name}"):
            for answer in dict.fromkeys((*returned, name, *view.grammar.answers)):
                text = view.grammar.test.format(test, f"return {answer}{view.grammar.end}")
                edit = Edit(start=body.start_byte + 1, end=body.start_byte + 1, text=f"\n  {text}")
                note = f"if {test}: return {answer}"
                yield Change(edits=(edit,), note=note, weight=1.0 if answer in returned else 0.6)


def _own_answers(node: Node, view: SyntaxTree) -> list[str]:
    """Short things that a function returns elsewhere."""
    found = []
    for inner in walk(node):
        if inner.type == "return_statement" and is_same_node(view.enclosing_function(inner), node) and inner.named_children:
            text = view.text(inner.named_children[0])
            found += [text] if len(text) <= MOST_NAMES else []
    return found


def _copied(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A statement that the function has elsewhere."""
    function = view.enclosing_function(node)
    if function is None or not view.is_statement(node):
        return
    others = [n for n in walk(function) if n.type in SIMPLE and not is_same_node(n, node)]
    others.sort(key=lambda other: abs(other.start_byte - node.start_byte))
    for text in list(dict.fromkeys(view.text(other) for other in others))[:MOST_COPIED]:
        yield from _beside(node, view, text, 0.8)


def _doubled(node: Node, view: SyntaxTree) -> Iterator[Change]:
    if view.is_statement(node) and node.type in SIMPLE and node.type not in ENDS:
        yield from _beside(node, view, view.text(node), 1.0, before=False)


def _assignment(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`previous = current`, left out."""
    if view.enclosing_function(node) is None or not view.is_statement(node):
        return
    names, end = view.scope_names(node)[: 2 * MOST_NAMES], view.grammar.end
    before = node.prev_named_sibling
    kept, put_back = _set(before, view) if before else None, _set(node, view)
    if before and kept and put_back and kept[0] == put_back[1] and kept[1] != put_back[0]:
        # What is kept comes back in another place: that other goes where it was.
        yield from _beside(before, view, f"{kept[1]} = {put_back[0]}{end}", 1.0, before=False)
    for target in names[-MOST_NAMES:]:
        yield from _beside(node, view, f"{target} += 1{end}", 0.7)
        for value in names:
            if value != target:
                yield from _beside(node, view, f"{target} = {value}{end}", 0.6)


def _set(statement: Node, view: SyntaxTree) -> tuple[str, str] | None:
    """What a statement sets, and to what; `None` where that is not all it does."""
    node = statement
    while (
        node.type in (*DECLARATIONS, "expression_statement", "expression_list")
        and node.named_child_count == 1
    ):
        node = node.named_children[0]
    target, value = get_field(node, "name", "left"), get_field(node, "value", "right")
    sign = get_field(node, "operator")
    is_plain = sign is None or sign.type in ("=", ":=")
    return (view.text(target), view.text(value)) if target and value and is_plain else None


def _put_in(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A sequence that is never filled, or not filled here."""
    if view.enclosing_function(node) is None or not view.is_statement(node):
        return
    names = view.scope_names(node)[: 2 * MOST_NAMES]
    for target in names:
        if any(f"{target}{mark}" in view.raw.decode("utf-8", "replace") for mark in (" = []", " := []")):
            for value in names:
                if value != target:
                    yield from _beside(node, view, view.grammar.put.format(target, value), 0.9)


def _lacking_return(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`return` where a block ends without one; an exit from a loop."""
    if view.enclosing_function(node) is None or not view.is_statement(node) or node.type in ENDS:
        return
    if node.next_named_sibling is not None:
        return
    value = node.named_children[0] if node.type == "expression_statement" else None
    if value is not None:
        yield view.replace_with(value, f"return {view.text(value)}", 1.0)
    for name in (*view.scope_names(node)[-MOST_NAMES:], "true", "false"):
        yield from _beside(node, view, f"return {name}{view.grammar.end}", 0.6, before=False)
    for word in ("break", "continue"):
        yield from _beside(node, view, f"{word}{view.grammar.end}", 0.5, before=False)


def _exits(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`break` and `continue`; `if` where a loop is meant, and the reverse."""
    once, again = ("if", "while") if view.grammar.end else ("if", "for")
    start = node.children[0] if node.children else None
    if node.type == "if_statement" and get_field(node, "alternative") is None and start is not None:
        yield view.replace_with(start, again, 0.5)
    elif start is not None and start.type == again and _is_while(node):
        yield view.replace_with(start, once, 0.5)
    if node.type in ("break_statement", "continue_statement") and node.named_child_count == 0:
        word = "continue" if node.type == "break_statement" else "break"
        yield view.replace_with(node, f"{word}{view.grammar.end}", 1.0)
        yield view.replace_with(node, f"return{view.grammar.end}", 0.3)
    if node.type == "return_statement" and node.named_child_count == 0 and _is_in_loop(node):
        for word in ("break", "continue"):
            yield view.replace_with(node, f"{word}{view.grammar.end}", 1.0)


def _is_in_loop(node: Node) -> bool:
    above = node.parent
    while above is not None and above.type not in (*LOOPS, *FUNCTIONS):
        above = above.parent
    return above is not None and above.type in LOOPS


def _is_while(node: Node) -> bool:
    """Whether a loop has a condition alone."""
    kinds = {child.type for child in node.named_children}
    return node.type == "while_statement" or (node.type == "for_statement" and not kinds & HEADS)


def _beside(node: Node, view: SyntaxTree, text: str, weight: float, *, before: bool = True) -> Iterator[Change]:
    """A statement behind another one, and before it where it is the first of its block."""
    indent = view.indent(node)
    if before and node.prev_named_sibling is None:
        edit = Edit(start=node.start_byte, end=node.start_byte, text=f"{text}\n{indent}")
        yield Change(edits=(edit,), note=f"{shorten(text)} before {shorten(view.text(node))}", weight=weight)
    if node.type not in ENDS:
        edit = Edit(start=node.end_byte, end=node.end_byte, text=f"\n{indent}{text}")
        yield Change(edits=(edit,), note=f"{shorten(text)} behind {shorten(view.text(node))}", weight=weight)


def _lines(node: Node, view: SyntaxTree) -> tuple[int, int]:
    """Where a statement begins and ends, with its line where nothing else is on it."""
    start, end = node.start_byte, node.end_byte
    before = view.raw.rfind(b"\n", 0, start) + 1
    after = view.raw.find(b"\n", end)
    if after >= 0 and not view.raw[before:start].strip() and not view.raw[end:after].strip():
        return before, after + 1
    return start, end


def _statement_around(node: Node, view: SyntaxTree) -> Node | None:
    """The statement in whose block a statement stands, in the same function."""
    above = node.parent
    while above is not None and above.type not in FUNCTIONS:
        if above.type not in BLOCKS and view.is_statement(above):
            return above
        above = above.parent
    return None


def _last_block(node: Node) -> Node | None:
    """The block that a statement ends with."""
    body = get_field(node, "body", "consequence")
    if body is not None and body.end_byte == node.end_byte and body.type in ("statement_block", "block"):
        return body
    return None


FAMILIES = {
    "statement goes": _goes,
    "statement moves": _moves,
    "statement twice": _doubled,
    "statement's block": _rehung,
    "guard": _guard,
    "copied statement": _copied,
    "lacking assignment": _assignment,
    "put into": _put_in,
    "lacking return": _lacking_return,
    "loop": _exits,
}
