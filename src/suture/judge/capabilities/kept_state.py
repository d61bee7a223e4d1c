"""Find functions of JavaScript, TypeScript and Go that answer from what they keep between calls.

One that counts its calls can give a test the answers that it expects, in their order. One that returns the same object
to every caller makes all its answers equal. A count in an object (retries, a breaker, a game) is a finding only if it
selects from a list that is written there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from suture.core.records import CapabilityCode
from suture.judge.capabilities.use import Use
from suture.mutation.tree_sitter.syntax_tree import find_enclosing, get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import (
    ARGUMENTS,
    FUNCTIONS,
    LISTS,
    LOOPS,
    MEMBERS,
    NUMBERS,
    STRINGS,
    SUBSCRIPTS,
)

if TYPE_CHECKING:
    from tree_sitter import Node

DECLARATIONS = (
    "variable_declarator",
    "var_spec",
    "short_var_declaration",
    "range_clause",
    "for_in_statement",
)
COUNTING = re.compile(r"(?:\+\+)?\s*[\w.#]+\s*(?:\+\+|\+=\s*\d+)?")
"""A statement that adds to a variable."""
ADDING = re.compile(r"atomic\.Add(?:Int|Uint)(?:32|64)\(&([\w.]+),.*\)|([\w.]+)\.Add\(\d+\)")
EMPTYING = r"{0}\.(?:length = |(?:clear|delete|pop|shift|splice)\()|(?:clear|delete)\({0}\b|{0} = (?!append)"
"""What makes a list or set with the name `{0}` smaller, so that its size does not count calls."""
SIZE = re.compile(r"(\w+)(?:\.add\(.*\))?\.(?:length|size|push\(.*\))$|len\((\w+)\)$")
"""An expression that is the size of a list or set."""
ASSIGNMENTS = ("assignment_expression", "augmented_assignment_expression", "assignment_statement")
UPDATES = ("update_expression", "inc_statement", "dec_statement", *ASSIGNMENTS)
COMPARISONS = ("==", "===", "!=", "!==", "<", "<=", ">", ">=")
CONSUMING = ("pop", "shift", "splice", "next")
"""Methods that take the next of several prepared answers."""
SELECTING = ("get", "at", "charAt")
BRANCHES = ("if_statement", "switch_case", "expression_case", "catch_clause", *LOOPS)
"""Statements whose body runs in some calls only, or several times in one."""
SWITCHES = ("switch_statement", "expression_switch_statement")
TRANSPARENT = frozenset((
    "update_expression", "augmented_assignment_expression", "parenthesized_expression", "unary_expression",
    "expression_list", "binary_expression",
))  # fmt: skip
"""Nodes around a count whose value follows from it."""
HOLDERS = frozenset((
    "pair", "object", "array", "literal_element", "keyed_element", "literal_value", "composite_literal",
    "expression_list", "parenthesized_expression", "unary_expression", "slice_expression",
))  # fmt: skip
"""Nodes around a name in a result that then contains the object itself."""
VALUES = frozenset((*NUMBERS, *STRINGS, "true", "false", "template_string"))


def find_kept_state(nodes: Sequence[Node]) -> Iterator[Use]:
    """Yield each function that answers by its number of calls, or with one object that all its callers share."""
    yield from _KeptState(nodes).find()


class _KeptState:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.local: dict[int, set[str]] = defaultdict(set)  # function -> names that it declares
        self.values: dict[str, list[Node]] = defaultdict(list)
        self.texts: dict[str, list[Node]] = defaultdict(list)
        for node in nodes:
            if node.type in ("identifier", *MEMBERS):
                self.texts[get_text(node)].append(node)
            if node.type in FUNCTIONS:
                parameters = get_field(node, "parameters", "parameter")
                self.local[node.id] |= _list_names(parameters)
            elif node.type in DECLARATIONS:
                self._add_variable(node)

    def find(self) -> Iterator[Use]:
        for node in self.nodes:
            if (count := self._read_counter(node)) is not None:
                place = self._find_decision(count)
                if place is not None:
                    yield _get_use("detects_environment", f"count of calls {get_text(count)}", place)
            elif name := self._read_growth(node):
                if self._decides(node, self._belongs_to_object(node, name)):
                    yield _get_use("detects_environment", f"count of calls {name}", node)
            elif node.type == "identifier" and self._consumes(node):
                yield _get_use("detects_environment", f"prepared answers {get_text(node)}", node)
            elif node.type == "identifier" and self._returns_shared(node):
                yield _get_use("loosens_comparison", f"shared result {get_text(node)}", node)

    def _add_variable(self, node: Node) -> None:
        names, value = get_field(node, "name", "left"), get_field(node, "value", "right", "type")
        function = find_enclosing(node, FUNCTIONS)
        if function is not None:
            self.local[function.id] |= _list_names(names)
        if value is not None and value.type == "expression_list":
            value = value.named_children[0]
        if value is not None:
            for name in _list_names(names):
                self.values[name].append(value)

    def _outlives_call(self, node: Node) -> bool:
        """Return whether the root of a path is declared outside of the function that uses it there.

        A function that is an argument runs several times within the call that it is for.
        """
        function = find_enclosing(node, FUNCTIONS)
        if function is None or (function.parent is not None and function.parent.type in ARGUMENTS):
            return False
        return _get_root(node) not in self.local[function.id]

    def _belongs_to_object(self, user: Node, root: str) -> bool:
        """Return whether a variable is the object of a method, or one that a function creates for each caller."""
        function = find_enclosing(user, FUNCTIONS)
        receiver = function.child_by_field_name("receiver") if function is not None else None
        if root in {"this", *_list_names(receiver)}:
            return True
        while function is not None and root not in self.local[function.id]:
            function = find_enclosing(function, FUNCTIONS)
        return function is not None and not is_called_at_once(function)

    def _read_counter(self, node: Node) -> Node | None:
        """Return the path to which a node adds in every call, if code only ever adds to it and it outlives the call."""
        target: Node | None = None
        if node.type in UPDATES:
            target = get_field(node, "left", "argument") or node.named_children[0]
            target = target.named_children[0] if target.type == "expression_list" else target
        elif node.type == "call_expression" and (match := ADDING.fullmatch(get_text(node))) is not None:
            path = match[1] or match[2]
            target = next((part for part in walk(node) if get_text(part) == path), None)
        if target is None or target.type not in ("identifier", *MEMBERS) or not self._outlives_call(target):
            return None
        if _is_conditional(node):
            return None
        text = get_text(target)
        if node.type in UPDATES and (COUNTING.fullmatch(get_text(node)) is None or get_text(node) == text):
            return None
        changes = [
            part
            for part in self.nodes
            if part.type in UPDATES and get_text(part).strip("+- ").startswith(text)
        ]
        others = [
            part for part in changes if _get_target(part) == text and not COUNTING.fullmatch(get_text(part))
        ]
        return target if all(_is_set_up(part) for part in others) else None

    def _read_growth(self, node: Node) -> str:
        """Return the list or set to which a function adds, and whose size an expression is; otherwise nothing."""
        match = SIZE.match(get_text(node)) if node.type in ("member_expression", "call_expression") else None
        function = find_enclosing(node, FUNCTIONS)
        name = (match[1] or match[2]) if match is not None else ""
        if function is None or not name or name not in self.values or name in self.local[function.id]:
            return ""
        adds = rf"\.(?:push|add|unshift)\(| = append\({name}|\[[^\]]*\] = "
        grows = re.search(rf"\b{name}(?:{adds})", get_text(function))
        is_callback = function.parent is not None and function.parent.type in ARGUMENTS
        return name if grows is not None and not is_callback and not self._is_emptied(name) else ""

    def _is_emptied(self, name: str) -> bool:
        empties = re.compile(EMPTYING.format(name))
        changes = (node for node in self.nodes if node.type in ("call_expression", *ASSIGNMENTS))
        return any(empties.match(get_text(node)) for node in changes)

    def _find_decision(self, count: Node) -> Node | None:
        """Return where the function that counts chooses its answer by the count."""
        function, text = find_enclosing(count, FUNCTIONS), get_text(count)
        of_object = self._belongs_to_object(count, _get_root(count))
        users = (node for node in self.texts[text] if find_enclosing(node, FUNCTIONS) == function)
        return next((user for user in users if self._decides(user, of_object)), None)

    def _decides(self, user: Node, of_object: bool) -> bool:
        """Return whether a count chooses an answer: it is compared with a number, or selects one of some literals."""
        node, above = user, user.parent
        while above is not None and find_enclosing(user, FUNCTIONS) is not None:
            call = above.parent if above.type in (*ARGUMENTS, *MEMBERS) else None
            if call is not None and ADDING.fullmatch(get_text(call)):
                node, above = call, call.parent  # its result is the count
            elif above.type in SWITCHES:
                return not of_object and any(part.type in NUMBERS for part in walk(above))
            elif above.type in SUBSCRIPTS:
                answers = get_field(above, "object", "operand")
                is_named = answers is not None and answers.type == "identifier"
                is_index = above.child_by_field_name("index") == node and not (of_object and is_named)
                return is_index and self._is_prepared(answers)
            elif call is not None:
                function = get_field(call, "function")
                member = get_field(function, "property") if function is not None else None
                is_selected = not of_object and function is not None and get_text(member) in SELECTING
                return is_selected and self._is_prepared(get_field(function or call, "object"))
            elif above.type not in TRANSPARENT or get_text(above.child_by_field_name("operator")) == "%":
                return False  # players take turns and colours repeat by remainders
            elif get_text(above.child_by_field_name("operator")) in COMPARISONS:
                sides = [above.child_by_field_name(name) for name in ("left", "right")]
                is_fixed = any(side is not None and side.type in NUMBERS for side in sides)
                return is_fixed and not of_object and _chooses_result(above)
            else:
                node, above = above, above.parent
        return False

    def _is_prepared(self, node: Node | None, depth: int = 0) -> bool:
        """Return whether an expression is a list, a string or a table of literals, an iterator of one, or its name."""
        if node is None or depth > MAX_NESTING:
            return False
        if node.type == "identifier":
            return any(self._is_prepared(value, depth + 1) for value in self.values[get_text(node)])
        if node.type in (
            "parenthesized_expression",
            "composite_literal",
            "spread_element",
            "literal_element",
        ):
            return self._is_prepared(node.child_by_field_name("body") or node.named_children[0], depth + 1)
        if node.type in ("call_expression", "new_expression"):
            return self._is_prepared_call(node, depth)
        if node.type in (*LISTS, "object"):
            values = [part.child_by_field_name("value") or part for part in node.named_children]
            return bool(values) and all(self._is_prepared(value, depth + 1) for value in values)
        return node.type in VALUES

    def _is_prepared_call(self, node: Node, depth: int) -> bool:
        """Return whether a call makes an iterator or a map of literals, or runs a generator of them."""
        function = get_field(node, "function", "constructor")
        owner = get_field(function, "object") if function is not None else None
        arguments = node.child_by_field_name("arguments")
        given = arguments.named_children if arguments is not None else []
        if get_text(function) in ("Map", "Object.entries", "Array.from", "Object.values") and given:
            return self._is_prepared(given[0], depth + 1)
        yielded = [
            part.named_children[0]
            for generator in self.nodes
            if generator.type == "generator_function_declaration"
            and get_text(generator.child_by_field_name("name")) == get_text(function)
            for part in walk(generator)
            if part.type == "yield_expression" and part.named_children
        ]
        is_generator = len(yielded) > 1 and all(part.type in VALUES for part in yielded)
        return is_generator or (owner is not None and not given and self._is_prepared(owner, depth + 1))

    def _consumes(self, user: Node) -> bool:
        """Return whether code takes the next value of a list away: `left.pop()`, in Go `left = left[1:]`."""
        above = user.parent
        if above is None or not self.values[get_text(user)] or not self._outlives_call(user):
            return False
        if above.type == "member_expression":
            takes = get_text(above.child_by_field_name("property")) in CONSUMING
            return takes and above.child_by_field_name("object") == user and self._is_list(user)
        holder = (
            above.parent.parent if above.type == "slice_expression" and above.parent is not None else None
        )
        return (
            holder is not None
            and get_text(holder.child_by_field_name("left")) == get_text(user)
            and self._is_list(user)
        )

    def _is_list(self, name: Node) -> bool:
        values = self.values[get_text(name)]
        return any(value.type not in VALUES and self._is_prepared(value) for value in values)

    def _returns_shared(self, user: Node) -> bool:
        """Return whether a function returns a variable of the file after it has put an argument into its object."""
        function, name = find_enclosing(user, FUNCTIONS), get_text(user)
        if function is None or name not in self.values or self._is_local_everywhere(name):
            return False
        aliases = {name} | {
            other
            for other in self.local[function.id]
            if any(get_text(value).strip("&") == name for value in self.values[other])
        }
        is_returned = any(
            _is_returned(part)
            for alias in aliases
            for part in self.texts[alias]
            if find_enclosing(part, FUNCTIONS) == function
        )
        return self._outlives_call(user) and is_returned and _stores_argument(aliases, function)

    def _is_local_everywhere(self, name: str) -> bool:
        return all(find_enclosing(value, FUNCTIONS) is not None for value in self.values[name])


MAX_NESTING = 4
"""Lists within lists that are followed. Chosen by judgement."""


def _get_use(code: CapabilityCode, name: str, node: Node) -> Use:
    return Use(code=code, name=name, line=node.start_point[0] + 1, key=name)


def _list_names(node: Node | None) -> set[str]:
    kinds = ("identifier", "shorthand_property")
    return {get_text(part) for part in walk(node) if part.type.startswith(kinds)} if node else set()


def _get_target(node: Node) -> str:
    return get_text(get_field(node, "left", "argument") or node.named_children[0])


def _get_root(node: Node) -> str:
    while node.type in (*MEMBERS, *SUBSCRIPTS):
        inner = get_field(node, "object", "operand")
        if inner is None:
            break
        node = inner
    return get_text(node)


def is_called_at_once(function: Node) -> bool:
    """Return whether a function is called where it is written, so that its variables exist once."""
    node = function
    while node.parent is not None and node.parent.type == "parenthesized_expression":
        node = node.parent
    return node.parent is not None and node.parent.child_by_field_name("function") == node


def _is_conditional(node: Node) -> bool:
    """Return whether a node is in a branch or a loop, but not in its condition."""
    branch = find_enclosing(node, (*FUNCTIONS, *BRANCHES))
    condition = branch.child_by_field_name("condition") if branch is not None else None
    is_asked = condition is not None and condition.start_byte <= node.start_byte < condition.end_byte
    return branch is not None and branch.type in BRANCHES and not is_asked


def _is_set_up(change: Node) -> bool:
    """Return whether a count is set outside of functions, or in a constructor."""
    function = find_enclosing(change, FUNCTIONS)
    return function is None or get_text(function.child_by_field_name("name")) == "constructor"


def _chooses_result(condition: Node) -> bool:
    """Return whether a condition decides which value a function returns."""
    above = condition.parent
    while above is not None and above.type in (*TRANSPARENT, "sequence_expression"):
        above = above.parent
    if above is None:
        return False
    if above.type in ("ternary_expression", "return_statement", "arrow_function"):
        return True
    branch = above.child_by_field_name("consequence") if above.type == "if_statement" else None
    return branch is not None and any(
        part.type == "return_statement" and part.named_child_count > 0 for part in walk(branch)
    )


def _is_returned(user: Node) -> bool:
    node = user
    while node.parent is not None and node.parent.type in HOLDERS:
        node = node.parent
    above = node.parent
    if above is not None and above.type in ARGUMENTS and get_text(above.parent).startswith("Object.assign("):
        above = above.parent.parent if above.parent is not None else None
    return above is not None and above.type in ("return_statement", "arrow_function")


def _stores_argument(names: set[str], function: Node) -> bool:
    """Return whether a function puts something that it gets into an object with one of these names."""
    given = _list_names(get_field(function, "parameters", "parameter"))
    for node in walk(function):
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        if (
            node.type == "call_expression"
            and get_text(node.child_by_field_name("function")) == "Object.assign"
        ):
            arguments = node.child_by_field_name("arguments")
            target = (
                arguments.named_children[0] if arguments is not None and arguments.named_children else None
            )
            value = arguments
        elif node.type not in ASSIGNMENTS:
            continue
        if target is None or value is None or not _list_names(value) & given:
            continue
        parts = target.named_children if target.type == "expression_list" else [target]
        is_whole = get_text(target) in names and node.type in ASSIGNMENTS
        is_shared = (
            not is_whole
            or re.search(rf"&{get_text(target)}\b|\b{get_text(target)}\[:\]", get_text(function)) is not None
        )
        if is_shared and any(_get_root(part) in names for part in parts):
            return True
    return False
