"""Find where a Python file imports a test, or compares with values that only tests use."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

TEST_MODULE = re.compile(r"(?:.*\.)?(?:test_\w+|\w+_test|conftest)(?:\..*)?|test(?:\..*)?", re.DOTALL)
"""The name of a module of tests, of something in it, or of the standard library's package of tests."""
TEST_VALUE = re.compile(r".*@example\.(?:com|org|net).*|\.?test_\w+|conftest(?:\.py)?", re.DOTALL)
"""A string that hardly anything but a test passes on."""
DOUBLE_NAME = re.compile(r"_?(?:fake|mock|stub|dummy|spy|test)s?\w*", re.IGNORECASE)
"""The name, or its beginning, of a class with which tests replace another one, or of its module."""
IDENTITIES = ("__name__", "__qualname__", "__module__", "__class__")
SEARCHES = ("startswith", "endswith", "find", "index", "count")


def find_test_imports(node: ast.Import | ast.ImportFrom, names: ModuleNames) -> Iterator[Use]:
    """Yield a module of tests that is imported."""
    imported = list(names.imported_by(node))
    if isinstance(node, ast.ImportFrom) and node.level:
        imported = [".".join(filter(None, (node.module, name.name))) for name in node.names]
    for name in imported:
        # `binom_test` of `scipy.stats` is a function.
        is_function = isinstance(node, ast.ImportFrom) and node.module and name.endswith("_test")
        if TEST_MODULE.fullmatch(name.rpartition(".")[0] if is_function else name):
            yield Use(code="reads_tests", name=name, line=node.lineno, key=name.rpartition(".")[0] or name)


def find_test_data_uses(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield a comparison of a value with a string that only tests use, or of a class with the name of a test double."""
    if isinstance(node, ast.Call) and names.is_import_call(node):
        text = names.fold_text(node.args[0])
        if text is not None and TEST_MODULE.fullmatch(text):
            yield Use(code="reads_tests", name=text, line=node.lineno, key=text)
    sides: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES:
        sides = [node.func.value, *node.args]
    parts = [part for side in sides for part in getattr(side, "elts", (side,))]
    is_identity = any(isinstance(part, ast.Attribute) and part.attr in IDENTITIES for part in parts)
    for part in parts:
        text = names.fold_text(part)
        if text and (TEST_VALUE.fullmatch(text) or (is_identity and DOUBLE_NAME.fullmatch(text))):
            yield Use(code="detects_environment", name=text, line=part.lineno, key=text)
