"""Decide whether a comparison method of a Python class may call different objects equal.

A test compares a result with what it expects. A method that answers without comparing anything of the two objects
lets a wrong result pass. So each path on which `__eq__` says "equal" must have compared something of its own object
with something of the other one. An order such as `__lt__` must do so on some path.

The analysis reads only the method and the functions of its module that it calls, and follows no values of objects:
`self.ok == other.ok` counts as a comparison, although both may be always true.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from suture.project.python_source.module_names import ModuleNames

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
EQUALITIES = ("__eq__", "__ne__")
ORDERS = ("__lt__", "__le__", "__gt__", "__ge__")
MEMBERSHIPS = ("__instancecheck__", "__subclasscheck__", "__subclasshook__", "__contains__")
"""Methods that decide about their argument alone. They only must not ignore it."""
COMPARISON_METHODS = frozenset((*EQUALITIES, *ORDERS, *MEMBERSHIPS))
TAINT_ROUNDS = 3
"""How many variables a value is followed through. Comparisons are short; chosen by judgement."""
COMPARING_BUILTINS = frozenset(("all", "any", "abs", "sum", "bool", "getattr"))
"""Builtin functions whose result may be that of a comparison among their arguments."""
COMPARING_FUNCTIONS = frozenset((
    "math.isclose", "cmath.isclose", "hmac.compare_digest", "secrets.compare_digest", "filecmp.cmp",
    "os.path.samefile", "os.path.samestat", "fnmatch.fnmatch", "fnmatch.fnmatchcase", "re.match", "re.fullmatch",
    "re.search", "functools.reduce", "operator.contains", "operator.is_not", "operator.sub",
))  # fmt: skip
"""Functions of the standard library whose result compares two arguments. Others, as `operator.truth`, do not."""
NUMBER_CALLS = ("int", "float", "len", "bool", "min")
"""Functions that do not turn a difference into a distance, as `abs` does."""
OPERATORS: Mapping[str, ast.cmpop] = {
    "eq": ast.Eq(), "ne": ast.NotEq(), "lt": ast.Lt(), "le": ast.LtE(), "gt": ast.Gt(), "ge": ast.GtE(),
}  # fmt: skip
"""Name in the module `operator`, and of the method without underscores -> what it does."""
TYPE_CHECKS = ("isinstance", "issubclass")


@dataclass(frozen=True, kw_only=True)
class ComparedClass:
    """What is known about the class of a comparison method.

    Attributes:
        functions: Functions of the module whose names are unique, by name.
        classes: Names of the classes that the module defines.
        is_stateless: Whether no instance has data of its own, so that all of them are equal.
    """

    names: ModuleNames
    functions: Mapping[str, Function]
    classes: frozenset[str]
    is_stateless: bool = True


def is_loose(name: str, function: Function, owner: ComparedClass) -> bool:
    """Return whether a comparison method may call different objects equal.

    One that only raises, or returns `NotImplemented`, decides nothing.

    Args:
        name: Name of the method, one of `COMPARISON_METHODS`.
    """
    if name in MEMBERSHIPS:
        return _ignores_argument(function)
    try:
        return _Method(name, function, owner, frozenset()).is_loose()
    except RecursionError:  # thousands of operators in one expression
        return True


def get_body(function: Function) -> list[ast.stmt]:
    """Return the statements of a function; a lambda has one, which returns."""
    return [ast.Return(value=function.body)] if isinstance(function, ast.Lambda) else function.body


def _parameters(function: Function) -> list[str]:
    names = [part.arg for part in (*function.args.posonlyargs, *function.args.args)]
    rest = function.args.vararg
    return names if rest is None else [*names, rest.arg, rest.arg]


def _returned_values(statements: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    """Yield what a function returns; functions inside of it return for themselves."""
    for node in get_own_nodes(statements):
        if isinstance(node, ast.Return):
            yield node.value or ast.Constant(value=None)


def get_own_nodes(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of some statements, without those of functions and classes in them."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _is_not_implemented(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "NotImplemented"


def _ignores_argument(function: Function) -> bool:
    """Return whether a method does not read its argument, or returns nothing but one true constant."""
    parameters, body = _parameters(function), get_body(function)
    results = [value for value in _returned_values(body) if not _is_not_implemented(value)]
    if not results:
        return False
    argument = parameters[1] if len(parameters) > 1 else ""
    is_read = not argument or any(
        isinstance(part, ast.Name) and part.id == argument for part in get_own_nodes(body)
    )
    is_constant = all(isinstance(value, ast.Constant) for value in results)
    return not is_read or (is_constant and len({ast.dump(value) for value in results}) == 1)


@dataclass
class _Method:
    """The analysis of one method, or of a function that it calls.

    *Evidence* is a comparison of something of the own object with something of the other one.

    Attributes:
        callers: Names of the functions that led here, so that calls in a circle end.
        own: Variables that depend on the own object.
        other: Variables that depend on the other object.
        followed: Variables whose values are just being analysed.
    """

    name: str
    function: Function
    owner: ComparedClass
    callers: frozenset[str]
    own: set[str] = field(default_factory=set)
    other: set[str] = field(default_factory=set)
    followed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        parameters = _parameters(self.function)
        if not self.callers and len(parameters) > 1:
            self.own, self.other = {parameters[0]}, {parameters[1]}
        self.body = get_body(self.function)
        self.nodes = list(get_own_nodes(self.body))
        self._follow_variables()

    def is_loose(self) -> bool:
        """Return whether some path answers "equal" without evidence."""
        if len(_parameters(self.function)) < 2:
            # A plain function would raise, but a property returns the function that compares.
            return bool(getattr(self.function, "decorator_list", ()))
        if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in self.nodes):
            return True  # a generator is true
        results = list(_returned_values(self.body))
        if not results or all(_is_not_implemented(value) for value in results):
            return False
        if self.name in ORDERS:  # an order often begins with what only the types of the objects say
            return not self.has_evidence(True, False) and not all(
                self._proves(value, True) for value in results
            )
        return self._changes_objects() or self._check(self.body, has_evidence=False)[0]

    def has_evidence(self, *outcomes: bool) -> bool:
        """Return whether a condition, or a result of one of these outcomes, compares the objects on some path."""
        results = list(_returned_values(self.body))
        if all(map(_is_not_implemented, results)):
            return True  # subclasses define it
        conditions = [node.test for node in self.nodes if isinstance(node, ast.If | ast.IfExp)]
        return any(
            self._depends_on_both(part) and self._proves(part, outcome)
            for parts, possible in ((results, outcomes), (conditions, (True, False)))
            for part in parts
            for outcome in possible
        )

    def _follow_variables(self) -> None:
        """Find the variables that depend on the own object, and on the other one."""
        bindings = list(self._find_bindings())
        replaced = {name for name, value in bindings if name in self.other and not self._depends(value)[1]}
        self.other -= replaced  # after `other = self`, the other object is out of reach
        for _ in range(TAINT_ROUNDS):
            for name, value in bindings:
                is_own, is_other = self._depends(value)
                self.own |= {name} if is_own else set()
                self.other |= {name} if is_other and name not in replaced else set()

    def _find_bindings(self) -> Iterator[tuple[str, ast.expr]]:
        for node in self.nodes:
            pairs: list[tuple[ast.expr, ast.expr | None]] = []
            if isinstance(node, ast.Assign):
                pairs = [(target, node.value) for target in node.targets]
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
                pairs = [(node.target, node.value)]
            elif isinstance(node, ast.For | ast.comprehension):
                pairs = [(node.target, node.iter)]
            elif isinstance(node, ast.Match):
                captured = [
                    part.name for part in ast.walk(node) if isinstance(part, ast.MatchAs | ast.MatchStar)
                ]
                pairs = [(ast.Name(id=name), node.subject) for name in captured if name is not None]
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                pairs = [(node.optional_vars, node.context_expr)]
            for target, value in pairs:
                names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
                is_binding = not isinstance(target, ast.Attribute | ast.Subscript) and value is not None
                yield from ((name, value) for name in names if is_binding and value is not None)

    def _depends(self, node: ast.AST) -> tuple[bool, bool]:
        """Return whether an expression depends on the own object, and whether on the other one."""
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        return bool(names & (self.own | {"super"})), bool(names & self.other)

    def _depends_on_both(self, node: ast.AST) -> bool:
        return all(self._depends(node))

    def _changes_objects(self) -> bool:
        """Return whether a comparison changes what it compares, as in `self.__dict__ = other.__dict__`."""
        for node in self.nodes:
            if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
                if any(self._depends(node.value)) and self._assigns_from_other(node):
                    return True
            elif isinstance(node, ast.Call) and self._depends_on_both(node) and self._is_setter(node.func):
                return True
        return False

    def _is_setter(self, function: ast.expr) -> bool:
        """Return whether a called function sets attributes, as `setattr` or `self.__dict__.update` do."""
        if isinstance(function, ast.Attribute) and function.attr == "update":
            return self.owner.names.find_namespace_owner(function.value) is not None
        return self.owner.names.resolve(function) in ("setattr", "object.__setattr__")

    def _assigns_from_other(self, target: ast.expr) -> bool:
        return any(
            isinstance(node, ast.Assign)
            and any(target is part for goal in node.targets for part in ast.walk(goal))
            and self._depends_on_both(node)
            for node in self.nodes
        )

    def _check(self, statements: Sequence[ast.stmt], *, has_evidence: bool) -> tuple[bool, bool]:
        """Return whether a return in a block lacks evidence, and whether there is evidence after the block."""
        lacks = False
        for statement in statements:
            found, has_evidence = self._check_statement(statement, has_evidence)
            lacks = lacks or found
        return lacks, has_evidence

    def _check_statement(self, statement: ast.stmt, has_evidence: bool) -> tuple[bool, bool]:
        if isinstance(statement, ast.Return):
            value = statement.value or ast.Constant(value=None)
            # `__ne__` says "equal" by returning something false.
            return not has_evidence and not self._proves(value, self.name != "__ne__"), has_evidence
        if isinstance(statement, ast.If):
            return self._check_if(statement, has_evidence)
        if isinstance(statement, ast.Assert):
            return False, has_evidence or self._proves(statement.test, True)
        if isinstance(statement, ast.Try):
            return self._check_try(statement, has_evidence)
        if isinstance(statement, ast.Match):
            parts = [statement.subject, *(case.pattern for case in statement.cases)]
            depends = [self._depends(part) for part in parts]
            compares = any(own for own, _ in depends) and any(other for _, other in depends)
            blocks = [
                self._check(case.body, has_evidence=has_evidence or compares) for case in statement.cases
            ]
            return any(found for found, _ in blocks), has_evidence or compares
        inner = [
            self._check(block, has_evidence=has_evidence)
            for block in (getattr(statement, "body", ()), getattr(statement, "orelse", ()))
            if isinstance(statement, ast.For | ast.While | ast.With | ast.AsyncFor | ast.AsyncWith)
        ]
        return any(found for found, _ in inner), has_evidence or any(after for _, after in inner)

    def _check_if(self, statement: ast.If, has_evidence: bool) -> tuple[bool, bool]:
        in_body = has_evidence or self._proves(statement.test, True)
        in_else = has_evidence or self._proves(statement.test, False)
        body_lacks, after_body = self._check(statement.body, has_evidence=in_body)
        else_lacks, after_else = self._check(statement.orelse, has_evidence=in_else)
        ends = (_always_ends(statement.body), _always_ends(statement.orelse))
        # What follows is reached only through the branches that do not end the function.
        after = (ends[0] or after_body) and (ends[1] or after_else)
        return body_lacks or else_lacks, after

    def _check_try(self, statement: ast.Try, has_evidence: bool) -> tuple[bool, bool]:
        lacks, after = self._check([*statement.body, *statement.orelse], has_evidence=has_evidence)
        for handler in statement.handlers:
            found, after_handler = self._check(handler.body, has_evidence=has_evidence)
            lacks = lacks or found
            after = after and (_always_ends(handler.body) or after_handler)
        # `finally` runs on each path, also on those that answered "different".
        found, _ = self._check(statement.finalbody, has_evidence=False)
        return lacks or found, after

    def _proves(self, node: ast.expr, outcome: bool) -> bool:
        """Return whether there is evidence if the truth of an expression is `outcome`."""
        if isinstance(node, ast.Constant):
            return bool(node.value) != outcome
        if _is_not_implemented(node):
            return True
        if isinstance(node, ast.BoolOp):
            needs_one = isinstance(node.op, ast.And) == outcome
            return (any if needs_one else all)(self._proves(value, outcome) for value in node.values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            needs_one = isinstance(node.op, ast.BitAnd) == outcome
            return (any if needs_one else all)(
                self._proves(value, outcome) for value in (node.left, node.right)
            )
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
            return self._proves(node.operand, not outcome)
        if isinstance(node, ast.IfExp):
            in_body = self._proves(node.test, True) or self._proves(node.body, outcome)
            return in_body and (self._proves(node.test, False) or self._proves(node.orelse, outcome))
        if isinstance(node, ast.NamedExpr | ast.Await):
            return self._proves(node.value, outcome)
        if isinstance(node, ast.Compare):
            return self._compare_proves(node, outcome)
        if isinstance(node, ast.Call):
            return self._call_proves(node, outcome)
        if isinstance(node, ast.Name):
            return self._variable_proves(node.id, outcome)
        # `self.n - other.n` is zero for equal objects.
        is_difference = isinstance(node, ast.BinOp) and (not outcome or self.name in ORDERS)
        return (is_difference or isinstance(node, ast.Subscript)) and self._depends_on_both(node)

    def _compare_proves(self, node: ast.Compare, outcome: bool) -> bool:
        sides = [node.left, *node.comparators]
        proofs = [
            self._pair_proves(sides[index], operation, sides[index + 1], outcome)
            for index, operation in enumerate(node.ops)
        ]
        return any(proofs) if outcome else all(proofs)

    def _pair_proves(self, left: ast.expr, operation: ast.cmpop, right: ast.expr, outcome: bool) -> bool:
        is_equality = isinstance(operation, ast.Eq | ast.Is | ast.In)
        is_order = isinstance(operation, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        if not (is_order or is_equality == outcome or self.name in ORDERS):
            return False
        if ast.dump(left) == ast.dump(right):
            return False
        if any(
            self._merely_holds_both(one) and not any(self._depends(opposite))
            for one, opposite in ((left, right), (right, left))
        ):
            return False
        if (
            is_order
            and outcome
            and self.name in EQUALITIES
            and not self._limits_difference(left, operation, right)
        ):
            return False
        own, other = (any(found) for found in zip(self._depends(left), self._depends(right), strict=True))
        if _is_type(left) and _is_type(right):
            return own and other and self.owner.is_stateless
        # Comparing the other object with a constant says which object it is, if only one side depends on it.
        is_exact = isinstance(operation, ast.Eq | ast.Is | ast.NotEq | ast.IsNot)
        is_one_sided = self._depends(left)[1] != self._depends(right)[1]
        return other and (own or (is_exact and is_one_sided and not _is_none(left) and not _is_none(right)))

    def _limits_difference(self, left: ast.expr, operation: ast.cmpop, right: ast.expr) -> bool:
        """Return whether an order compares own and other side, or says that a distance is small.

        `abs(self.n) + abs(other.n) >= 0` always holds, and `self.n - other.n <= 1` for all smaller objects.
        """
        small, large = (left, right) if isinstance(operation, ast.Lt | ast.LtE) else (right, left)
        if not self._depends_on_both(small):
            return not self._depends_on_both(large)
        return any(
            (isinstance(part, ast.Call) and self.owner.names.resolve(part.func) not in NUMBER_CALLS)
            or (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow | ast.Mult))
            for part in ast.walk(small)
        )

    def _merely_holds_both(self, node: ast.expr) -> bool:
        """Return whether an expression depends on both objects without comparing them, as `len([self, other])`."""
        if not isinstance(node, ast.Call):
            return False
        function = self.owner.names.resolve(node.func)
        is_comparing = function in COMPARING_BUILTINS or not hasattr(builtins, function)
        return not is_comparing and self._depends_on_both(node)

    def _call_proves(self, node: ast.Call, outcome: bool) -> bool:
        function = self.owner.names.resolve(node.func)
        if function == "bool" and node.args:
            return self._proves(node.args[0], outcome)
        if function in TYPE_CHECKS and len(node.args) == 2:
            return outcome and self.owner.is_stateless and self._is_own_class(node.args[1])
        compared = self._find_compared(node)
        if compared is not None:
            return self._pair_proves(*compared, outcome)
        if not self._depends_on_both(node):
            return False
        values = node.args[0] if function in ("all", "any") else None
        if isinstance(values, ast.GeneratorExp | ast.ListComp):
            return self._proves(values.elt, outcome)
        if isinstance(values, ast.List | ast.Tuple | ast.Set):
            needs_one = (function == "all") == outcome
            return (any if needs_one else all)(self._proves(value, outcome) for value in values.elts)
        if self._merely_holds_both(node):
            return False
        return self._called_function_proves(node, outcome)

    def _find_compared(self, node: ast.Call) -> tuple[ast.expr, ast.cmpop, ast.expr] | None:
        """Return what `operator.eq(a, b)`, `a.__eq__(b)` or `int.__eq__(a, b)` compares."""
        function = self.owner.names.resolve(node.func)
        name = get_called_name(node)
        operation = OPERATORS.get(name.removeprefix("__").removesuffix("__"))
        is_method = isinstance(node.func, ast.Attribute) and name.startswith("__")
        if operation is None or not (is_method or function == f"operator.{name}"):
            return None
        if len(node.args) == 2:
            return node.args[0], operation, node.args[1]
        if is_method and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
            return node.func.value, operation, node.args[0]
        return None

    def _called_function_proves(self, node: ast.Call, outcome: bool) -> bool:
        """Return whether a called function compares anything, if it is in this module.

        A function of the standard library is on a list, and one of another module is believed.
        """
        called = get_called_name(node)
        function = self.owner.functions.get(called)
        if function is None:
            name = self.owner.names.resolve(node.func)
            is_library = "." in name and name.partition(".")[0] in sys.stdlib_module_names
            is_library = is_library and self.owner.names.is_imported(node.func)
            return not is_library or name in COMPARING_FUNCTIONS
        if function is self.function or called in self.callers:
            return True
        is_method = isinstance(node.func, ast.Attribute)
        arguments = [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args]
        is_method = is_method and len(_parameters(function)) >= len(arguments)
        passed = dict(zip(_parameters(function), arguments if is_method else node.args, strict=False))
        method = _Method(
            called,
            function,
            self.owner,
            self.callers | {self.name, called},
            own={parameter for parameter, value in passed.items() if self._depends(value)[0]},
            other={parameter for parameter, value in passed.items() if self._depends(value)[1]},
        )
        return method.has_evidence(outcome)

    def _is_own_class(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Tuple):
            return all(map(self._is_own_class, node.elts))
        return _is_type(node) or (
            isinstance(node, ast.Name) and node.id in {*self.owner.classes, "__class__"}
        )

    def _variable_proves(self, name: str, outcome: bool) -> bool:
        """Return whether a variable's last value has evidence, or whether the flag `name` is set by evidence."""
        values = [
            node.value
            for node in sorted(
                (node for node in self.nodes if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)),
                key=lambda node: node.lineno,
            )
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name) and target.id == name and node.value is not None
        ]
        if not values:
            return name in self.own and name in self.other  # a parameter that was compared before
        if name in self.followed:
            return False
        if all(isinstance(value, ast.Constant) for value in values):
            tests = [node.test for node in self.nodes if isinstance(node, ast.If)]
            return any(self._proves(test, True) or self._proves(test, False) for test in tests)
        if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(values[-1])):
            return self._depends_on_both(values[-1])  # `same = same and self.x == other.x`
        self.followed.add(name)  # variables that are computed from each other would be followed for ever
        try:
            return self._proves(values[-1], outcome)
        finally:
            self.followed.remove(name)


def _always_ends(statements: Sequence[ast.stmt]) -> bool:
    """Return whether a block ends the function, or the round of the loop that it is in."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always_ends(last.body) and _always_ends(last.orelse)
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)


def get_called_name(node: ast.Call) -> str:
    """Return the last part of the name of a called function, empty if it has none."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_type(node: ast.expr) -> bool:
    """Return whether an expression is `type(x)` or `x.__class__`."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"
    return is_call or (isinstance(node, ast.Attribute) and node.attr == "__class__")
