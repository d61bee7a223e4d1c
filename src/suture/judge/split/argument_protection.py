"""Deciding which variables of a test may receive the changes that a candidate makes to its arguments.

A test sees what a function does to a list in place, because arguments travel back from the candidate. But if
a test computes the expected value from its arguments, as `assert f(x) == sorted(x)` does, a candidate that
empties the list chooses the value that it is compared with. So a program in which an argument changed runs a
second time, and in that run the arguments keep their values. If it fails where it *inspects* a variable, as in
`f(x); assert len(x) == 1`, it runs a third time, and the changes reach that variable, unless the test *compares*
it with an answer of the candidate. If it fails where nothing inspects a changed argument, it fails.

If in doubt, the analysis considers too many variables as compared, and too few as inspected. Runs inside the sandbox.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from suture.judge.split.inspections import EQUALITY_ASSERTS, Inspections
from suture.judge.split.program_variables import SEQUENCES, ProgramVariables, Variable

SEPARATE_PARTS = (
    ast.Tuple, ast.List, ast.BoolOp, ast.Subscript, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.Lambda,
)  # fmt: skip
"""Expressions that keep their parts separate, or select one."""
COLLECTING_FUNCTIONS = frozenset(("add", "append", "extend", "insert", "isinstance", "print"))
"""Functions that only store their arguments, or whose result says nothing about the values."""
TRANSPARENT_FUNCTIONS = frozenset(("len", "list", "repr", "str", "tuple"))
"""Functions that do not compare the elements of their argument with each other."""
IDENTITY_OPERATORS = (ast.Is, ast.IsNot)
IDENTITY_ASSERTS = frozenset(("assertIs", "assertIsNot"))
"""Asserts that compare objects by identity, which the content of an argument cannot change."""


Variables = frozenset[Variable]


@dataclass(frozen=True, kw_only=True)
class ArgumentUse:
    """How a test uses its variables.

    Attributes:
        inspected: Variables whose changes the test needs.
        compared: Variables that the test compares or combines with an answer of the candidate.
        compared_items: Pairs (loop variables, the variables that a loop like `for xs, expected in cases`
            iterates over). The latter count as compared, except for the item that the loop is at.
        pinned: Line of a call -> variables whose value the test checks after the call against a value of its
            own, or by identity. A candidate cannot choose that value, so the changes reach them in any case.
        is_joint: Whether the statement on a line is a joint check; see `Inspections.is_joint`.
    """

    inspected: Variables
    compared: Variables
    compared_items: tuple[tuple[Variables, Variables], ...]
    pinned: dict[int, set[Variable]]
    is_joint: Callable[[int], bool]


def has_variables(tree: ast.AST) -> bool:
    """Whether a test stores anything in a variable. If not, no argument outlives its call."""
    return any(
        isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        for node in ast.walk(tree)
    )


def find_argument_use(
    tree: ast.Module, candidate_names: Collection[str], failed_lines: Collection[int]
) -> ArgumentUse:
    """Return how a test uses its variables.

    Args:
        candidate_names: The names that the candidate provides.
        failed_lines: Lines where the test failed because arguments kept their values.
    """
    analysis = _UseAnalysis(tree, candidate_names)
    inspections = analysis.make_inspections(tree)
    compared = analysis.compared
    return ArgumentUse(
        inspected=inspections.find_driving() | inspections.find_at(failed_lines),
        is_joint=inspections.is_joint,
        compared=compared,
        compared_items=analysis.find_compared_items(compared),
        pinned=analysis.find_pinned(),
    )


class _UseAnalysis:
    """Finds the uses of variables in a test; see `find_argument_use`."""

    def __init__(self, tree: ast.Module, candidate_names: Collection[str]) -> None:
        self._nodes = list(ast.walk(tree))
        self._program = ProgramVariables(tree)
        self._candidate: Variables = frozenset(((), name) for name in candidate_names)
        self._answers = set(self._candidate)
        """Variables that hold an answer or a function of the candidate, or something made from one."""
        self._find_answers()
        self._sources: dict[Variable, set[Variable]] = defaultdict(set)
        """Variable -> the variables that its values are made from."""
        self._item_sources: dict[Variable, set[Variable]] = defaultdict(set)
        """Variable that separates the items of a loop -> the variables that the loop iterates over."""
        for binding in self._program.bindings:
            sources = self._list_variables(binding.value)
            for target in binding.targets:
                (self._item_sources if binding.separates else self._sources)[target] |= sources
        bound = frozenset[Variable]().union(*(binding.targets for binding in self._program.bindings))
        self._own_values = bound - self._answers - self._program.functions
        self._mixtures: set[Variable] = set()
        """Variables whose elements are partly answers and partly other values, as in `pair = f(x), len(x)`."""
        self._find_mixtures()

    def make_inspections(self, tree: ast.Module) -> Inspections:
        """Return the inspections of the test."""
        return Inspections(tree, self._program, self._list_variables, self._depends_on_answer)

    @cached_property
    def compared(self) -> Variables:
        """The variables that the test compares or combines with an answer."""
        messages = {
            part
            for node in self._nodes
            if isinstance(node, ast.Assert) and node.msg is not None
            for part in ast.walk(node.msg)
        }
        compared: set[Variable] = set()
        for node in self._nodes:
            if isinstance(node, ast.expr) and node not in messages:
                parts = list(self._list_combined_parts(node))
                compared |= self._find_combined(parts)
                if isinstance(node, ast.Call) and not _is_transparent(node):
                    for part in filter(self._is_mixed, parts):
                        compared |= self._list_variables(part)
        return self._add_sources(compared)

    def find_compared_items(self, compared: Variables) -> tuple[tuple[Variables, Variables], ...]:
        """Return the loops over compared items; see `ArgumentUse.compared_items`."""
        return tuple(
            (binding.targets, self._add_sources(self._list_variables(binding.value), with_items=True))
            for binding in self._program.bindings
            if binding.separates and binding.targets & compared
        )

    def find_pinned(self) -> dict[int, set[Variable]]:
        """Return line of a call -> the variables that are pinned after it; see `ArgumentUse`."""
        pinned: dict[int, set[Variable]] = defaultdict(set)
        for node in self._nodes:
            for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
                if isinstance(body, list):
                    self._pin_variables(body, pinned)
        return dict(pinned)

    def _pin_variables(self, body: list[ast.stmt], pinned: dict[int, set[Variable]]) -> None:
        """Add what the statements of one block pin."""
        checked = [pair for statement in body for pair in self._find_checked(statement)]
        for position, statement in enumerate(body):
            for variable in self._find_pins(statement, checked):
                call = self._find_call_before(variable, body[: position + 1])
                if call is None or (isinstance(statement, ast.Return) and not isinstance(call, ast.Expr)):
                    continue
                for line in range(call.lineno, (call.end_lineno or call.lineno) + 1):
                    pinned[line].add(variable)

    def _find_answers(self) -> None:
        by_node = self._program.by_node
        parameters = {by_node[node] for node in self._nodes if isinstance(node, ast.arg)}
        for node in self._nodes:
            match node:
                case ast.ExceptHandler() if node in by_node:  # the exception may be the candidate's
                    self._answers.add(by_node[node])
                case ast.withitem(optional_vars=ast.expr() as target):  # as in `assertRaises(...) as caught`
                    self._answers |= self._program.list_variables(target)
                case ast.Call(func=function) if (
                    by_node.get(function) in parameters
                ):  # it may be the candidate's
                    self._answers.add(by_node[function])
        uses: dict[Variable, set[Variable]] = defaultdict(set)
        """Variable -> the variables whose values depend on it."""
        for binding in self._program.bindings:
            for variable in self._program.list_variables(binding.value):
                uses[variable] |= binding.targets
        unvisited = list(self._answers)
        while unvisited:
            dependents = uses[unvisited.pop()] - self._answers
            self._answers |= dependents
            unvisited += dependents

    def _find_mixtures(self) -> None:
        bindings = self._program.bindings
        answers, others = set[Variable](), set[Variable]()
        for binding in bindings:
            if self._depends_on_answer(binding.value):
                answers |= binding.targets
            elif self._contains_other_value(binding.value):
                others |= binding.targets
        self._mixtures |= answers & others
        size = -1
        while size != len(self._mixtures):
            size = len(self._mixtures)
            for binding in bindings:
                if self._is_mixed(binding.value):
                    self._mixtures |= binding.targets

    def _is_mixed(self, node: ast.AST) -> bool:
        """Whether a value has elements of which some are answers and some are other values."""
        for part in ast.walk(node):
            if self._program.by_node.get(part) in self._mixtures:
                return True
            if isinstance(part, ast.Starred) and self._contains_answer(part):
                return True
            is_display = isinstance(part, SEQUENCES) and self._contains_answer(part)
            if is_display and any(map(self._contains_other_value, ast.iter_child_nodes(part))):
                return True
        return False

    def _contains_other_value(self, node: ast.AST) -> bool:
        """Whether a value is made from variables that the test sets itself."""
        return not self._own_values.isdisjoint(self._list_variables(node))

    def _depends_on_answer(self, node: ast.AST) -> bool:
        return not self._answers.isdisjoint(self._program.list_variables(node))

    def _contains_answer(self, node: ast.AST) -> bool:
        """Whether a value is made from an answer; in `x[f(x)]`, an answer only selects."""
        if node in self._program.by_node:
            return self._program.by_node[node] in self._answers
        children = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
        return any(map(self._contains_answer, children))

    def _list_variables(self, node: ast.AST) -> set[Variable]:
        """Return the variables in a piece of code, without those that it only passes to the candidate."""
        if node in self._program.by_node:
            return {self._program.by_node[node]}
        children = ast.iter_child_nodes(node)
        if isinstance(node, ast.Call) and self._program.by_node.get(node.func) in self._candidate:
            children = iter((node.func,))
        return set().union(*map(self._list_variables, children))

    def _add_sources(self, variables: Iterable[Variable], *, with_items: bool = False) -> Variables:
        """Return variables together with all those that their values are made from.

        Args:
            with_items: Whether the source of `xs` in `for xs, expected in cases` includes `cases`.
        """
        graphs = (self._sources, self._item_sources) if with_items else (self._sources,)
        found: set[Variable] = set()
        unvisited = list(variables)
        while unvisited:
            variable = unvisited.pop()
            if variable not in found:
                found.add(variable)
                for graph in graphs:
                    unvisited += graph.get(variable, ())
        return frozenset(found)

    def _list_combined_parts(self, node: ast.expr) -> Iterator[ast.AST]:
        """Yield the parts of an expression whose values it combines into one."""
        if isinstance(node, SEPARATE_PARTS):
            return
        if isinstance(node, ast.Compare) and all(isinstance(op, IDENTITY_OPERATORS) for op in node.ops):
            return
        if isinstance(node, ast.Call) and self._combines_nothing(node):
            return
        yield from (part for part in ast.iter_child_nodes(node) if isinstance(part, (ast.expr, ast.keyword)))

    def _combines_nothing(self, call: ast.Call) -> bool:
        """Whether a function is the candidate's, or one of the test's own, whose body is read as well."""
        if _get_function_name(call) in COLLECTING_FUNCTIONS | IDENTITY_ASSERTS:
            return True
        if _get_function_name(call) in self._program.function_names:
            return True
        return not isinstance(call.func, ast.Attribute) and self._contains_answer(call.func)

    def _find_combined(self, parts: list[ast.AST]) -> set[Variable]:
        """Return the variables that are combined with an answer in some other part.

        Two parts in which an answer only selects, as in `xs[f(xs)] == other[f(xs)]`, are independent of the
        answer unless they select from the same values.
        """
        combined: set[Variable] = set()
        answers = [part for part in parts if self._contains_answer(part)]
        selections = [part for part in parts if part not in answers and self._selects(part)]
        for answer in (*answers, *selections):
            for part in parts:
                if part is not answer and not (answer in selections and part in selections):
                    combined |= self._list_variables(part)
        if len(selections) > 1:
            sources = [self._add_sources(self._list_variables(part)) - self._answers for part in selections]
            combined |= frozenset.intersection(*sources)
        return combined

    def _selects(self, node: ast.AST) -> bool:
        return any(
            isinstance(part, ast.Subscript) and self._contains_answer(part.slice) for part in ast.walk(node)
        )

    def _find_pins(
        self, statement: ast.stmt, checked: list[tuple[Variable, Variables]]
    ) -> Iterator[Variable]:
        """Yield the variables that a statement returns, compares with its own value, or checks by identity.

        Identity says nothing about the content. It pins a variable whose content the block checks, or compares with
        no answer.

        Args:
            checked: What `_find_checked` yields for the statements of the block.
        """
        by_node = self._program.by_node
        if isinstance(statement, ast.Return) and statement.value in by_node:
            yield by_node[statement.value]
        for variable, sources in self._find_checked(statement):
            if sources.isdisjoint(self._add_sources({variable})):
                yield variable
        for left, right in _list_identical(statement):
            both = [by_node[side] for side in (left, right) if side in by_node]
            own = self._add_sources(both)
            is_checked = any(variable in both and sources.isdisjoint(own) for variable, sources in checked)
            if is_checked or self.compared.isdisjoint(both):
                yield from both

    def _find_checked(self, statement: ast.stmt) -> Iterator[tuple[Variable, Variables]]:
        """Yield each variable that a statement compares with a value of the test, and what that is made from."""
        by_node = self._program.by_node
        for condition in _list_conditions(statement):
            pairs: list[tuple[ast.expr, ast.expr]] = []
            match condition:
                case ast.UnaryOp(op=ast.Not(), operand=operand) if operand in by_node:  # it must be empty
                    yield by_node[operand], frozenset()
                case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                    pairs = [(left, right), (right, left)]
                case ast.Call(args=[left, right, *_]) if _get_function_name(condition) in EQUALITY_ASSERTS:
                    pairs = [(left, right), (right, left)]
            for side, other in pairs:
                if side in by_node and not self._depends_on_answer(other):
                    yield by_node[side], self._add_sources(self._list_variables(other))

    def _find_call_before(self, variable: Variable, statements: list[ast.stmt]) -> ast.stmt | None:
        """Return the last of some statements that calls the candidate, if the variable is not set after it."""
        for statement in reversed(statements):
            nodes = list(ast.walk(statement))
            if any(isinstance(node, ast.Call) and self._depends_on_answer(node.func) for node in nodes):
                return statement if isinstance(statement, (ast.Expr, ast.Assign, ast.Assert)) else None
            if any(
                self._program.by_node.get(node) == variable
                and isinstance(getattr(node, "ctx", None), ast.Store)
                for node in nodes
            ):
                return None
        return None


def _list_conditions(statement: ast.stmt) -> list[ast.expr]:
    """Return the conditions that a statement asserts."""
    match statement:
        case ast.Assert(test=ast.BoolOp(op=ast.And(), values=conditions)):
            return conditions
        case ast.Assert(test=condition) | ast.Expr(value=condition):
            return [condition]
    return []


def _list_identical(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the sides of each comparison by identity that a statement asserts."""
    for condition in _list_conditions(statement):
        match condition:
            case ast.Compare(left=left, ops=[ast.Is()], comparators=[right]):
                yield left, right
            case ast.Call(args=[left, right, *_]) if _get_function_name(condition) == "assertIs":
                yield left, right


def _is_transparent(call: ast.Call) -> bool:
    name = _get_function_name(call)
    return name.startswith("assert") or name in TRANSPARENT_FUNCTIONS


def _get_function_name(call: ast.Call) -> str:
    """Return the name of a called function without what it is an attribute of, such as `assertEqual`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
