"""Finding the variables whose changes a test needs: the ones that it inspects where it failed without them.

Data flows count, as in `f(x); y = sorted(x); assert y == [1]`. Conditions count only where no answer of the
candidate is involved, as in `f(x); if x != [1]: errors += 1`. Otherwise a candidate could empty a list to make
the test skip its checks, or count fewer elements in it.

Runs inside the sandbox, in the judge.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property

from suture.judge.split.program_variables import Binding, ProgramVariables, Variable

Variables = frozenset[Variable]
Condition = ast.If | ast.Match
CONDITIONS = (ast.If, ast.Match)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
EQUALITY_ASSERTS = frozenset((
    "assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertSetEqual", "assertSequenceEqual",
))  # fmt: skip


class Inspections:
    """The inspections of a test.

    Args:
        list_variables: Returns the variables in a piece of code, without those that it only passes to the
            candidate.
        depends_on_answer: Whether a piece of code uses an answer or a function of the candidate.
    """

    def __init__(
        self,
        tree: ast.Module,
        program: ProgramVariables,
        list_variables: Callable[[ast.AST], set[Variable]],
        depends_on_answer: Callable[[ast.AST], bool],
    ) -> None:
        self._program = program
        self._list_variables = list_variables
        self._depends_on_answer = depends_on_answer
        self._nodes = list(ast.walk(tree))
        self._parents = {child: node for node in self._nodes for child in ast.iter_child_nodes(node)}
        self._bindings: dict[Variable, list[Binding]] = {}
        for binding in program.bindings:
            for target in binding.targets:
                self._bindings.setdefault(target, []).append(binding)

    def find_driving(self) -> Variables:
        """Return the variables that end a loop or a recursion which passes them to the candidate.

        Without their changes the test might never end.
        """
        driving: set[Variable] = set()
        for node in self._nodes:
            if isinstance(node, ast.While) and self._list_passed(node.body):
                driving |= self._list_variables(node.test)
            elif isinstance(node, (ast.Break, ast.Return)):
                driving |= self._find_ending(node)
        return frozenset(driving)

    def _find_ending(self, end: ast.stmt) -> set[Variable]:
        """Return the variables under whose condition a statement ends a loop or a recursion.

        A condition before the call guards it. One after the call, as at the end of a loop, must not skip checks.
        """
        condition, around = self._find_condition(end), self._parents.get(end)
        while around is not None and not isinstance(around, (*LOOPS, *FUNCTIONS)):
            around = self._parents.get(around)
        if condition is None or around is None or isinstance(around, ast.Lambda):
            return set()
        variables = self._list_variables(_get_subject(condition))
        later = [node for node in ast.walk(around) if getattr(node, "lineno", 0) > end.lineno]
        guards_call = not variables.isdisjoint(self._list_passed(later))
        skips_check = any(isinstance(node, (ast.Assert, ast.Raise)) for node in later)
        ends_loop = isinstance(around, ast.While) and not skips_check and bool(self._list_passed(around.body))
        return variables if guards_call or ends_loop else set()

    def find_at(self, lines: Collection[int]) -> Variables:
        """Return the variables that the statements on some lines inspect, and those that they are made from."""
        inspected: set[Variable] = set()
        for line in lines:
            statement = self._find_statement(line)
            if statement is not None:
                inspected |= self._find_inspected(statement)
        return frozenset(inspected)

    def is_joint(self, line: int) -> bool:
        """Whether a statement checks an answer and an argument together, so that neither explains the other.

        `assert sorted(taken + left) == before` holds for right answers only together with the change. The same
        holds for `assert taken == table["taken"]` if the test compares `taken` with a literal too, and for
        `assert got == sorted(x)` if the test asserts that `got is x`.
        """
        statement = self._find_statement(line)
        if statement is None:
            return False
        if self._depends_on_answer(statement):
            return self._has_joint_pair(statement) or self._checks_identical(statement)
        variables = self._list_variables(statement)  # as in `assert table["taken"] == 3`
        return any(
            self._has_joint_pair(node) and not variables.isdisjoint(self._program.list_variables(node))
            for node in self._nodes
        )

    def _list_passed(self, nodes: Iterable[ast.AST]) -> set[Variable]:
        """Return the variables that some code passes to the candidate."""
        calls = [node for tree in nodes for node in ast.walk(tree) if isinstance(node, ast.Call)]
        return {
            variable
            for call in calls
            if self._depends_on_answer(call.func)
            for argument in call.args
            for variable in self._program.list_variables(argument)
        }

    def _has_joint_pair(self, statement: ast.AST) -> bool:
        equal, contained = _list_compared(statement, ast.Eq), _list_compared(statement, ast.In, ast.NotIn)
        sides = [pair for left, right in equal for pair in ((left, right), (right, left))]
        sums = any(
            not self._depends_on_answer(other)
            and self._is_known_before(other)
            and any(map(self._is_joint_sum, ast.walk(side)))
            for side, other in sides
        )
        return sums or any(
            self._is_fixed(side) and bool(self._list_variables(other)) for side, other in (*sides, *contained)
        )

    def _is_joint_sum(self, node: ast.AST) -> bool:
        """Whether a sum consists of an answer and an argument."""
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            return False
        operands = (node.left, node.right)
        own = [part for part in operands if not self._depends_on_answer(part)]
        return len(own) == 1 and not self._passed.isdisjoint(self._list_variables(own[0]))

    def _is_known_before(self, value: ast.expr) -> bool:
        """Whether a value is made from no argument, or was made before the argument's first call."""
        return all(
            variable not in self._passed
            and all(
                binding.value.lineno <= self._passed_lines[source]
                for binding in self._bindings.get(variable, ())
                if isinstance(binding.value, ast.expr)
                for source in self._passed & self._program.list_variables(binding.value)
            )
            for variable in self._list_variables(value)
        )

    def _checks_identical(self, statement: ast.AST) -> bool:
        """Whether a statement is about an answer of which the test asserts that it is an argument."""
        variables = self._program.list_variables(statement)
        return any(
            self._depends_on_answer(side)
            and not variables.isdisjoint(self._program.list_variables(side))
            and not self._passed.isdisjoint(self._program.list_variables(other))
            for node in self._nodes
            for pair in _list_compared(node, ast.Is)
            for side, other in (pair, pair[::-1])
        )

    @cached_property
    def _passed(self) -> Variables:
        """The variables that the test passes to the candidate."""
        return frozenset(self._passed_lines)

    @cached_property
    def _passed_lines(self) -> dict[Variable, int]:
        """Variable that is passed to the candidate -> the line of the first such call."""
        lines: dict[Variable, int] = {}
        for node in self._nodes:
            if isinstance(node, ast.Call):
                for variable in self._list_passed([node]):
                    lines[variable] = min(node.lineno, lines.get(variable, node.lineno))
        return lines

    def _is_fixed(self, side: ast.expr) -> bool:
        """Whether the test also compares an expression, or the answers in it, with literals."""
        answers = [
            part for part in ast.walk(side) if part in self._program.by_node and self._depends_on_answer(part)
        ]
        return bool(answers) and (self._equals_literal(side) or all(map(self._equals_literal, answers)))

    def _equals_literal(self, answer: ast.AST) -> bool:
        """Whether the test compares an answer with a literal, without setting its variables again."""
        by_node = self._program.by_node
        stores = [by_node[node] for node in by_node if isinstance(getattr(node, "ctx", None), ast.Store)]
        if any(stores.count(variable) > 1 for variable in self._program.list_variables(answer)):
            return False
        text, variables = ast.unparse(answer), self._program.list_variables(answer)
        return any(
            ast.unparse(side) == text
            and self._program.list_variables(side) == variables  # not those of another function
            and not self._program.list_variables(other)
            for node in self._nodes
            for pair in _list_compared(node, ast.Eq)
            for side, other in (pair, pair[::-1])
        )

    def _find_statement(self, line: int) -> ast.stmt | None:
        """Return the innermost statement on a line."""
        around = [
            node
            for node in self._nodes
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        return min(around, key=lambda node: (node.end_lineno or 0) - node.lineno, default=None)

    def _find_inspected(self, statement: ast.stmt) -> set[Variable]:
        condition = self._find_condition(statement) if _always_fails(statement) else None
        if condition is not None:
            checked = self._list_checked(condition)
        else:
            checked = self._list_checked(statement)
        with_conditions = not any(map(self._holds_answer, checked))
        return self._add_sources(checked, with_conditions=with_conditions) | self._list_changed(
            statement, checked
        )

    def _list_checked(self, statement: ast.stmt) -> set[Variable]:
        match statement:
            case ast.If(test=test):
                return self._list_parts(test, negated=True)
            case ast.Match(subject=ast.Tuple(elts=parts)) if any(map(self._depends_on_answer, parts)):
                return set().union(*map(self._list_variables, filter(self._depends_on_answer, parts)))
            case ast.Match(subject=subject):
                return self._list_variables(subject)
            case ast.Assert(test=test):
                return self._list_parts(test, negated=False)
            case ast.While(test=part) | ast.For(iter=part):
                return self._list_variables(part)
            case ast.With(items=items):
                return set().union(*map(self._list_variables, items))
            case ast.Try() | ast.FunctionDef() | ast.ClassDef():
                return set()
        return self._list_variables(statement)

    def _list_parts(self, condition: ast.AST, *, negated: bool) -> set[Variable]:
        """Return the variables in a condition or another value, without alternatives to a part that checks an answer.

        In `assert got == [1] or not x`, the change of `x` must not replace the check of `got`.

        Args:
            negated: Whether the test fails if the condition holds.
        """
        if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
            return self._list_parts(condition.operand, negated=not negated)
        if not isinstance(condition, ast.BoolOp):
            return self._list_variables(condition)
        parts = condition.values
        has_alternatives = isinstance(condition.op, ast.And) == negated
        if has_alternatives and any(map(self._depends_on_answer, parts)):
            parts = [
                part for part in parts if self._depends_on_answer(part) and not isinstance(part, ast.BoolOp)
            ]
        return set().union(*(self._list_parts(part, negated=negated) for part in parts))

    def _find_condition(self, node: ast.AST) -> Condition | None:
        """Return the innermost condition that decides whether a piece of code runs."""
        parent = self._parents.get(node)
        while parent is not None and not isinstance(parent, (*CONDITIONS, *FUNCTIONS)):
            parent = self._parents.get(parent)
        return parent if isinstance(parent, CONDITIONS) else None

    def _holds_answer(self, variable: Variable) -> bool:
        return any(
            self._depends_on_answer(binding.value)
            for binding in self._bindings.get(variable, ())
            if not isinstance(binding.value, FUNCTIONS)
        )

    def _add_sources(self, variables: Iterable[Variable], *, with_conditions: bool) -> set[Variable]:
        """Return variables together with all those that their values are made from.

        Args:
            with_conditions: Whether the conditions under which the values are made count as well.
        """
        found: set[Variable] = set()
        unvisited = list(variables)
        while unvisited:
            variable = unvisited.pop()
            if variable in found:
                continue
            found.add(variable)
            for binding in self._bindings.get(variable, ()):
                condition = self._find_condition(binding.value)
                if condition is not None and self._depends_on_answer(_get_subject(condition)):
                    continue  # as in `if got != want: errors.append(x)`, which checks the answer
                unvisited += self._list_parts(binding.value, negated=False)
                if condition is not None and with_conditions:
                    unvisited += self._list_variables(_get_subject(condition))
        return found

    def _list_changed(self, statement: ast.stmt, checked: set[Variable]) -> set[Variable]:
        """Return the arguments of a checked call that the test itself changed before.

        The candidate then gets the test's object, so the object must have the earlier changes of the candidate.
        """
        values = [binding.value for variable in checked for binding in self._bindings.get(variable, ())]
        calls = [
            node
            for value in (statement, *values)
            for node in ast.walk(value)
            if isinstance(node, ast.Call) and self._depends_on_answer(node.func)
        ]
        changes = list(self._list_own_changes())
        return {
            variable
            for call in calls
            for variable in set().union(*map(self._program.list_variables, call.args))
            for change, changed in changes
            if variable in changed and self._precedes(change, call, variable)
        }

    def _list_own_changes(self) -> Iterator[tuple[ast.expr, Variables]]:
        for node in self._nodes:
            match node:
                case ast.Subscript(ctx=ast.Store() | ast.Del(), value=part):
                    yield node, self._program.list_variables(part)
                case ast.Call(func=ast.Attribute(value=part), args=[_, *_]):
                    yield node, self._program.list_variables(part)

    def _precedes(self, change: ast.expr, call: ast.Call, variable: Variable) -> bool:
        """Whether a change may take place before a call: above it, or in a loop around both."""
        if change.lineno < call.lineno:
            return True
        loop = self._parents.get(call)
        while loop is not None and not isinstance(loop, LOOPS):
            loop = self._parents.get(loop)
        nodes = [] if loop is None else list(ast.walk(loop))
        is_set = any(
            self._program.by_node.get(node) == variable and isinstance(getattr(node, "ctx", None), ast.Store)
            for node in nodes
        )
        return change in nodes and not is_set


def _always_fails(statement: ast.stmt) -> bool:
    """Whether a statement fails the test whenever it runs, so that the condition around it is the check."""
    match statement:
        case ast.Raise() | ast.Assert(test=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="fail"))):
            return True
    return False


def _get_subject(condition: Condition) -> ast.expr:
    return condition.test if isinstance(condition, ast.If) else condition.subject


def _list_compared(node: ast.AST, *operators: type[ast.cmpop]) -> list[tuple[ast.expr, ast.expr]]:
    """Return the sides of each comparison with one of some operators that a statement asserts."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_])):
            operator = ast.Is if name == "assertIs" else ast.Eq if name in EQUALITY_ASSERTS else None
            return [(left, right)] if operator in operators else []
        case ast.Assert(test=ast.BoolOp(op=ast.And(), values=conditions)):
            pass
        case ast.Assert(test=condition):
            conditions = [condition]
        case _:
            return []
    return [
        (condition.left, condition.comparators[0])
        for condition in conditions
        if isinstance(condition, ast.Compare)
        and len(condition.ops) == 1
        and isinstance(condition.ops[0], operators)
    ]
