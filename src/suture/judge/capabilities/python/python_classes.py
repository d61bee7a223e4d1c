"""Find classes of a Python file that make wrong results look right without a loose comparison method.

A result may equal what a test expects because its class leaves fields out of comparisons, hands out one object for all
values, or answers the arithmetic that `pytest.approx` does. A base class may change the tests that inherit from it.
"""

from __future__ import annotations

import ast
import builtins
import unittest
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from suture.judge.capabilities.python.python_evidence import get_called_name
from suture.judge.capabilities.use import MERGED_NAME, Use
from suture.project.python_source.module_names import ModuleNames
from suture.project.python_source.scopes import FUNCTIONS

FIELD_CALLS = frozenset(
    ("field", "ib", "attrib", "dataclass", "make_dataclass", "s", "attrs", "define", "mutable")
)
"""Last parts of the names of functions of `dataclasses` and `attrs` that declare fields or classes."""
FIELD_MODULES = ("dataclasses.", "attr.", "attrs.")
COMPARISON_OPTIONS = ("compare", "eq", "cmp")
"""Options of those functions that take a field, or a whole class, out of comparisons."""
VALUE_CLASSES = frozenset((
    "int", "float", "complex", "str", "bytes", "bytearray", "list", "tuple", "dict", "set", "frozenset",
    "decimal.Decimal", "fractions.Fraction", "datetime.date", "datetime.datetime", "datetime.time",
    "datetime.timedelta", "collections.UserList", "collections.UserDict", "collections.UserString",
    "collections.OrderedDict", "collections.defaultdict", "collections.Counter", "collections.deque",
    "numbers.Number", "numbers.Complex", "numbers.Real", "numbers.Rational", "numbers.Integral", "numpy.ndarray",
))  # fmt: skip
"""Classes of plain values. Tests compare objects of their subclasses with plain values."""
ASSERTED_METHODS = frozenset((
    "__sub__", "__rsub__", "__add__", "__radd__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__",
    "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__", "__rpow__", "__and__", "__rand__", "__or__",
    "__ror__", "__xor__", "__rxor__", "__array__", "__array_interface__", "__array_wrap__", "__array_prepare__",
    "startswith", "endswith", "issubset", "issuperset", "isdisjoint",
))  # fmt: skip
"""Methods of plain values that get what a test expects: `pytest.approx` and `assertAlmostEqual` subtract it."""
FOLDING_CALLS = frozenset((
    "sorted", "set", "frozenset", "len", "round", "lower", "upper", "casefold", "swapcase", "title", "strip",
    "lstrip", "rstrip", "replace", "translate", "split", "sub",
))  # fmt: skip
"""Last parts of the names of functions and methods after which different plain values may be equal."""
DIFFERENCES = ("__sub__", "__rsub__")
ARRAY_PROTOCOLS = ("__array_function__", "__array_ufunc__")
"""Methods through which `numpy.allclose` leaves its answer to one of its arguments."""
LIBRARY_HOOKS = frozenset(
    ("make_comparable", "_richcmp", "_cmp", "_cparts", "_parts_normcase", "_str_normcase", "_from_iterable")
)
"""Methods that the comparisons of classes of the standard library call."""
SETTER_NAMES = ("setattr", "delattr", "__setattr__", "__delattr__")
CLASS_HOOKS = ("__init_subclass__", "__set_name__")
"""Methods that Python calls when somebody else's class is created."""
TEST_ATTRIBUTES = ("__test__", "__unittest_skip__", "pytestmark", "setUp", "tearDown", "runTest")


def find_class_uses(
    tree: ast.Module, names: ModuleNames, imported: Iterable[ast.ClassDef] = ()
) -> Iterator[Use]:
    """Yield what the classes of a module do to comparisons of their objects, and to tests that inherit from them.

    Args:
        imported: Classes of other files, named as this module names them. Their bases have their full names.
    """
    nodes = (*imported, *ast.walk(tree))
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    examined: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            examined.update(node.decorator_list)
            examined.update(
                part.value
                for part in node.body
                if isinstance(part, ast.Assign | ast.AnnAssign) and part.value
            )
            yield from _find_uses(node, _find_bases(node, classes, names), classes, functions, names)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and node not in examined
            and _find_omissions(_find_options(node, names))
        ):
            key = f"{ast.unparse(node.func)}(compare)"
            yield Use(code="loosens_comparison", name=key, line=node.lineno, key=key)


def _find_bases(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef], names: ModuleNames) -> set[str]:
    """Return the full names of the bases of a class, and of the bases of those that are known."""
    bases: set[str] = set()
    waiting, followed = [*node.bases], {node.name}
    while waiting:
        base = waiting.pop()
        bases.add(names.resolve(base))
        name = ast.unparse(base)
        if name in classes and name not in followed:
            followed.add(name)
            waiting += classes[name].bases
    return bases


def _find_uses(
    node: ast.ClassDef,
    bases: set[str],
    classes: Mapping[str, ast.ClassDef],
    functions: Mapping[str, ast.FunctionDef],
    names: ModuleNames,
) -> Iterator[Use]:
    found: list[tuple[str, int]] = [
        *_find_left_out_fields(node, names),
    ]
    for member, line in _find_merged_members(node, bases, names):
        key = f"{MERGED_NAME}{node.name}.{member}"
        yield Use(code="loosens_comparison", name=key, line=line, key=key)
    # A class of this module may add its methods to those of a plain value.
    mixed_in = [classes[name] for name in map(ast.unparse, node.bases) if name in classes]
    for statement in (part for owner in (node, *mixed_in) for part in owner.body):
        if isinstance(statement, FUNCTIONS) and _is_lying_method(statement, bases):
            found.append((statement.name, statement.lineno))
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            is_same = isinstance(statement.value, ast.Attribute) and statement.value.attr == name
            if not is_same and (
                name in ARRAY_PROTOCOLS or (name in ASSERTED_METHODS and bases & VALUE_CLASSES)
            ):
                found.append((name, statement.lineno))
    found += _find_shared_states(node)
    for name, line in found:
        key = f"{node.name}.{name}"
        yield Use(code="loosens_comparison", name=key, line=line, key=key)
    for function in node.body:
        if isinstance(function, FUNCTIONS) and _changes_tests(function, bases, functions):
            key = f"{node.name}.{function.name}"
            yield Use(code="patches_code", name=key, line=function.lineno, key=key)


def _find_shared_states(node: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Yield where objects get attributes that they share with others: `self.__dict__ = STATE`."""
    for function in (part for part in node.body if isinstance(part, FUNCTIONS)):
        own = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
        own |= {
            part.id
            for part in ast.walk(function)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        for part in ast.walk(function):
            if not isinstance(part, ast.Assign):
                continue
            sets_all = any(
                isinstance(target, ast.Attribute) and target.attr == "__dict__" for target in part.targets
            )
            owner = part.value
            while isinstance(owner, ast.Attribute) and owner.attr != "__dict__":
                owner = owner.value
            if sets_all and isinstance(owner, ast.Name) and owner.id not in own:
                yield "__dict__", part.lineno


def is_test_attribute(name: str) -> bool:
    """Return whether an attribute of a class is a test, or decides how tests run."""
    return name.startswith("test_") or name in TEST_ATTRIBUTES


def _find_left_out_fields(node: ast.ClassDef, names: ModuleNames) -> Iterator[tuple[str, int]]:
    """Yield fields that a generated `__eq__` leaves out, and the decorator that omits the method."""
    options = [option for decorator in node.decorator_list for option in _find_options(decorator, names)]
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    has_base = any(not names.resolve(base).startswith(("typing.", "abc.")) for base in bases)
    # Without bases, objects are equal to themselves only. A base compares the fields that it knows.
    for option in _find_omissions(options) if has_base else []:
        yield str(option.arg), option.value.lineno
    # In a queue, `order=True` orders entries by a priority, and the payload is left out on purpose.
    is_ordered = any(option.arg == "order" and _is_true(option.value) for option in options)
    for statement in node.body:
        if (
            isinstance(statement, ast.AnnAssign | ast.Assign)
            and statement.value is not None
            and not is_ordered
        ):
            target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
            for option in _find_omissions(_find_options(statement.value, names)):
                yield f"{ast.unparse(target)}({option.arg})", statement.lineno


def _find_omissions(options: Sequence[ast.keyword]) -> list[ast.keyword]:
    """Return the options that omit comparisons. A field that the caller does not pass is often a cache."""
    is_internal = any(
        option.arg == "init" and isinstance(option.value, ast.Constant) and not option.value.value
        for option in options
    )
    return [
        option
        for option in options
        if option.arg in (*COMPARISON_OPTIONS, None) and not _is_true(option.value) and not is_internal
    ]


def _find_options(node: ast.expr, names: ModuleNames) -> list[ast.keyword]:
    """Return the options of a call that declares a field, or a class with fields."""
    if not isinstance(node, ast.Call):
        return []
    name = names.resolve(node.func)
    if name == "functools.partial" and node.args:
        name = names.resolve(node.args[0])
    is_declaration = name.startswith(FIELD_MODULES) and name.rpartition(".")[2] in FIELD_CALLS
    return node.keywords if is_declaration else []


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _find_merged_members(
    node: ast.ClassDef, bases: set[str], names: ModuleNames
) -> Iterator[tuple[str, int]]:
    """Yield the members of an enumeration that are the same object as an earlier one."""
    if not any(base.startswith("enum.") and base.endswith(("Enum", "Flag")) for base in bases):
        return
    values: list[Any] = []
    members: set[str] = set()
    for statement in node.body:
        if not isinstance(statement, ast.Assign):
            continue
        value = names.fold(statement.value)
        value = ast.dump(statement.value) if value is None else value
        is_alias = isinstance(statement.value, ast.Name) and statement.value.id in members
        is_repeated = value in values and not any(
            isinstance(part, ast.Call) for part in ast.walk(statement.value)
        )
        targets = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        for name in targets if is_alias or is_repeated else targets[1:]:
            yield name, statement.lineno
        values.append(value)
        members.update(targets)


def _is_lying_method(function: ast.FunctionDef | ast.AsyncFunctionDef, bases: set[str]) -> bool:
    name = function.name
    if name in ARRAY_PROTOCOLS or (name in ASSERTED_METHODS and bases & VALUE_CLASSES):
        return True
    if name in ("__eq__", "__ne__") and bases & VALUE_CLASSES:
        return any(_folds_one_side(part) for part in ast.walk(function) if isinstance(part, ast.Compare))
    if name in DIFFERENCES and not _reads_parameter(function, 1):
        return True
    if name == "__contains__" and bases & VALUE_CLASSES:
        return not _reads_parameter(function, 0)
    if name in LIBRARY_HOOKS:
        return any("." in base.strip(".") and not base.startswith(".") for base in bases)
    if name == "__iter__":
        # `Set.__eq__` compares the sizes and what `__iter__` yields.
        is_collection = any(base.startswith("collections.abc.") for base in bases)
        return is_collection and not _reads_parameter(function, 0)
    if name == "__new__" or (name == "__call__" and "type" in bases):
        return not _makes_object(function)
    return False


def _folds_one_side(node: ast.Compare) -> bool:
    """Return whether a comparison converts only one of two values into a form that different values share."""
    folded = [
        any(isinstance(part, ast.Call) and get_called_name(part) in FOLDING_CALLS for part in ast.walk(side))
        for side in (node.left, *node.comparators)
    ]
    return any(folded) and not all(folded)


def _reads_parameter(function: ast.FunctionDef | ast.AsyncFunctionDef, index: int) -> bool:
    parameters = [*function.args.posonlyargs, *function.args.args]
    if index >= len(parameters) or _only_raises(function):
        return True
    name = parameters[index].arg
    return any(isinstance(part, ast.Name) and part.id == name for part in _own_nodes(function.body))


def _only_raises(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    values = [part.value for part in _own_nodes(function.body) if isinstance(part, ast.Return)]
    has_result = any(isinstance(part, ast.Yield | ast.YieldFrom) for part in _own_nodes(function.body))
    return not has_result and all(
        value is None or (isinstance(value, ast.Name) and value.id == "NotImplemented") for value in values
    )


def _own_nodes(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    return (part for statement in statements for part in ast.walk(statement))


def _makes_object(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether each result of `__new__` is made by a call, and not taken from a class or a dictionary."""
    if any(not isinstance(part, ast.Name) or part.id != "staticmethod" for part in function.decorator_list):
        return False  # such as a cache
    parts = list(_own_nodes(function.body))
    results = [part.value for part in parts if isinstance(part, ast.Return) and part.value is not None]
    variables = {result.id for result in results if isinstance(result, ast.Name)}
    values = [
        part.value
        for part in parts
        if isinstance(part, ast.Assign | ast.NamedExpr)
        for target in (part.targets if isinstance(part, ast.Assign) else [part.target])
        if isinstance(target, ast.Name) and target.id in variables
    ]
    return not any(
        isinstance(value, ast.Attribute | ast.Subscript | ast.BoolOp)
        or (
            isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "get"
        )
        for value in (*results, *values)
    )


def _changes_tests(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    bases: set[str],
    functions: Mapping[str, ast.FunctionDef],
) -> bool:
    """Return whether a method changes the tests of other classes, or replaces an assert method of `unittest`.

    Args:
        functions: The functions of the module, which the method may call.
    """
    name = function.name
    is_assert = name.startswith("assert") and hasattr(unittest.TestCase, name)
    if is_assert and any(base.startswith("unittest.") for base in bases):
        return True
    is_hook = name in CLASS_HOOKS or ("type" in bases and name in ("__new__", "__init__"))
    parts = list(_own_nodes(function.body)) if is_hook else []
    called = {get_called_name(part) for part in parts if isinstance(part, ast.Call)} & functions.keys()
    parts += [part for name in sorted(called) for part in _own_nodes(functions[name].body)]
    harmless = {part.func for part in parts if isinstance(part, ast.Call) and _names_no_test(part)}
    return any(_sets_by_name(part) or _names_tests(part) for part in parts if part not in harmless)


def _names_tests(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("test")


def _names_no_test(node: ast.Call) -> bool:
    """Return whether a call such as `setattr(cls, "name", value)` shows that it changes no test."""
    texts = [part.value for part in node.args[:2] if isinstance(part, ast.Constant)]
    return any(isinstance(text, str) and not is_test_attribute(text) for text in texts)


def _sets_by_name(node: ast.AST) -> bool:
    """Return whether a node is a function that sets attributes, whatever it is called on."""
    if isinstance(node, ast.Constant):
        return node.value in SETTER_NAMES[2:]
    if isinstance(node, ast.Attribute):
        return node.attr in SETTER_NAMES[2:]
    return isinstance(node, ast.Name) and node.id in SETTER_NAMES and hasattr(builtins, node.id)
